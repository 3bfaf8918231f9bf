"""The package as a whole: which way imports point, what is tested, what it weighs."""

import ast
import re
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import freshness
import mutants
import pytest
from typer.main import get_command

from qdtheory.commands.cli import app

ROOT = Path(__file__).parents[1]
LIBRARY, LAB = ROOT / "qdtheory", ROOT / "notebooks/lab"
MISTAKES = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(LIBRARY.rglob("*.py"))
    if not path.stem.startswith("__")
}
# What stands beside the mathematics, and what each may import of the library.
MATHEMATICS = ("", "formulas", "proofs", "bounds", "support")
BESIDE = {
    "text": {"bleu_formula", "catalogue", "distributions", "lstm", "support", "text"},
    "catalogue": {*MATHEMATICS, "catalogue"},
    "course": {*MATHEMATICS, "text", "catalogue", "course"},
    "commands": {*MATHEMATICS, "text", "catalogue", "course", "commands"},
}


@cache
def imported(path):
    """The package's modules that a file imports, late imports and names included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                found |= {f"{module}.{alias.name}" for alias in names}
                found |= {module} - {"qdtheory"}  # whose names are modules or the top's
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
    return found


def part(module):
    """The folder that a module lies in, "" for a flat file."""
    folders = module.split(".")[1:-1]
    return folders[0] if folders else ""


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_to_the_mathematics_and_to_no_lecture(module):
    names = imported(MODULES[module])
    assert not {name for name in names if name.split(".")[0] in ("lab", "data")}
    if part(module) in MATHEMATICS:  # not through the top, which imports all
        tops = {n for n in names if n.startswith("qdtheory") and n.count(".") < 2}
        assert tops <= {*MODULES, *(f"qdtheory.{x}" for x in MATHEMATICS)}
    used = names & MODULES.keys()
    allowed = BESIDE.get(part(module), set(MATHEMATICS))
    wrong = {n for n in used if not {part(n), n.split(".")[1]} & allowed}
    assert not wrong, f"{module} imports {wrong}"


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: imported(path) & MODULES.keys() for name, path in MODULES.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert len(order) == len(MODULES) >= 50


# What takes a pair: it asks for its form, and hands arrays and functions on.
DOORS = {
    *("search", "beaten", "frontier", "compatibility", "discrepancy", "rewards"),
    *("plotting", "catalogue", "commands", "course"),
}


def test_proofs_and_bounds_see_no_pair():
    importing = {
        part(module) or module.split(".")[1]
        for module, path in MODULES.items()
        if "qdtheory.pairs" in imported(path)
    }
    assert importing <= DOORS, importing - DOORS


# --- what is tested ----------------------------------------------------------------


def test_every_public_name_is_called_by_a_test_or_made_by_what_is():
    """In a file of tests or an example; a result is made by a function."""
    files = {*(ROOT / "tests").rglob("*.py")} - {Path(__file__)}
    code = "\n".join(path.read_text() for path in files)
    library = "\n".join(path.read_text() for path in LIBRARY.rglob("*.py"))
    code += "\n".join(re.findall(r"^ +(?:>>>|\.\.\.) .*", library, re.MULTILINE))
    returned = " ".join(re.findall(r"-> ([^:]+):$", library, re.MULTILINE))
    public = (ROOT / "tests/public_names.txt").read_text()
    names = set(re.findall(r"(\w+)(?:\(.*)?$", public, re.MULTILINE))
    results = names & set(re.findall(r"[A-Z]\w*", returned))
    assert names - results <= set(re.findall(r"\w+", code))
    assert len(names) > 100


@pytest.mark.parametrize("part", MISTAKES)
def test_each_mistake_to_plant_has_its_line(part):
    code = "\n".join(path.read_text() for path in mutants.files_of(ROOT, part))
    assert [old for old, _ in MISTAKES[part] if code.count(old) != 1] == []


# --- what it weighs ---------------------------------------------------------------


def code_lines(*paths):
    """Lines that hold code: no comment, no docstring, no blank line."""
    codes = (freshness.code(path.read_text(encoding="utf-8")) for path in paths)
    return sum(code.count("\n") + bool(code) for code in codes)


def lecture_weights():
    """Number of lectures, words of their text, lines of their code."""
    cell = re.compile(r"^```\{code-cell\}.*?^```", re.MULTILINE | re.DOTALL)
    sources = [p.read_text("utf-8") for p in ROOT.glob("notebooks/src/*.md")]
    code = [block for source in sources for block in cell.findall(source)]
    return {
        "lectures": len(sources),
        "words of lectures": sum(len(cell.sub("", s).split()) for s in sources),
        "code of lectures": sum(block.count("\n") - 1 for block in code),
    }


@cache
def weights():
    """Weights by the names of tests/budget.toml."""
    found = {"flat files": code_lines(*LIBRARY.glob("*.py"))}
    for folder in (p for p in LIBRARY.iterdir() if any(p.glob("*.py"))):
        found[folder.name] = code_lines(*folder.rglob("*.py"))
    found["library"] = sum(found.values())
    found["lab"] = code_lines(*LAB.rglob("*.py"))
    tests = [*(ROOT / "tests").rglob("*.py")]
    found |= {"tests": code_lines(*tests), "files of tests": len(tests)}
    evaluate = get_command(app).commands["evaluate"]
    named = [p for p in evaluate.params if p.param_type_name == "option"]
    return found | lecture_weights() | {"options of evaluate": len(named)}


BUDGETS = tomllib.loads((ROOT / "tests/budget.toml").read_text())


@pytest.mark.parametrize("name", BUDGETS)
def test_nothing_is_over_its_budget(name):
    weight, most = weights()[name], BUDGETS[name]
    assert weight <= most, f"{name}: {weight}, {weight - most} over its budget"
