"""What make sets up, what `make quick` runs, how tables and metrics are made."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import quick
from other_pythons import copy_checkout
from processes import ROOT, python, ran
from scripts import TABLES, rows_of, script

# --- what make sets up ----------------------------------------------------------

# Stands for every Python: makes no environment but a copy of itself, installs
# nothing, notes what it was asked to run, and fails where FAILING says.
STUB = """#!/bin/sh
case "$*" in
    "-m venv "*) rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
case "$*" in "-m "*) echo "$2 $3 $4" >> "$CALLS" ;; esac
case "$*" in *"$FAILING"*) exit 1 ;; esac
"""
PACKAGES = ["pip install --quiet", "uv pip sync"]
PROJECT = "uv pip install"
OPEN_LAB = "jupyterlab --notebook-dir notebooks"
FROM_NOTHING = ["venv --clear .venv", *PACKAGES, PROJECT, OPEN_LAB]
INPUTS = "pyproject.toml", "requirements/lock.txt"


class Checkout:
    """A folder with what set-up reads, and a stub as the only Python."""

    def __init__(self, folder):
        self.folder, self.tools = folder / "a checkout", folder / "tools"
        self.calls = folder / "calls"
        (self.folder / "requirements").mkdir(parents=True)
        self.tools.mkdir()
        (self.tools / "python3").write_text(STUB)
        (self.tools / "python3").chmod(0o755)
        shutil.copy(ROOT / "Makefile", self.folder)
        for name in INPUTS:
            (self.folder / name).write_text("first")

    def lab(self, failing="nothing"):
        """What `make lab` ran, and what it printed."""
        self.calls.write_text("")
        path = os.pathsep.join([str(self.tools), os.environ["PATH"]])
        ours = {"CALLS": str(self.calls), "FAILING": failing, "PATH": path}
        # Not what a `make` hands on that runs this test.
        ours |= {name: "" for name in os.environ if "MAKE" in name}
        done = ran("make", "lab", cwd=self.folder, **ours)
        assert (done.returncode == 0) is (failing == "nothing"), done.stderr
        # Later writes are newer by more than a clock tick.
        for made in (self.folder / name for name in (".venv/ready", *INPUTS)):
            if made.exists():
                os.utime(made, (made.stat().st_mtime - 10,) * 2)
        return self.calls.read_text().splitlines(), done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_what_changed_is_set_up_once(checkout):
    calls, printed = checkout.lab()
    assert calls == FROM_NOTHING
    assert len(printed.splitlines()) == 2
    assert checkout.lab() == ([OPEN_LAB], "")
    for name, installed in zip(INPUTS, ([], PACKAGES), strict=True):
        (checkout.folder / name).write_text("second")
        assert checkout.lab()[0] == [*installed, PROJECT, OPEN_LAB]
        assert checkout.lab() == ([OPEN_LAB], "")
    checkout.folder = checkout.folder.rename(checkout.folder.parent / "moved")
    assert checkout.lab()[0] == FROM_NOTHING
    (checkout.folder / ".venv/bin/python").unlink()
    assert checkout.lab()[0] == FROM_NOTHING


@pytest.mark.parametrize("failing", ["-m venv", "pip install", "pip sync", "-e ."])
def test_an_environment_half_made_is_made_anew(checkout, failing):
    assert OPEN_LAB not in checkout.lab(failing)[0]
    assert checkout.lab()[0] == FROM_NOTHING


def test_a_python_that_will_not_do_is_refused(checkout):
    old, bare = "qdtheory needs Python 3.11 or newer", "python3 has no venv module"
    for failing, message in (("sys.version_info", old), ("import ensurepip", bare)):
        calls, printed = checkout.lab(failing)
        assert calls == []
        assert message in printed


def test_make_quick_checks_the_rooms_of_files_and_always_the_contracts():
    checks = quick.checks(["qdtheory/text/ngrams.py", "README.md"])
    assert checks["types"][2:] == ["qdtheory/text"]
    contracts = {f"tests/test_{name}.py" for name in quick.CONTRACTS}
    assert {*checks["tests"]} >= {"tests/text", "qdtheory/text", *contracts}
    assert all((ROOT / name).exists() for name in contracts)


# --- tables that are made problem by problem ------------------------------------

# A script beside tables.py, with problems that take no time.
SQUARES = '''"""Squares."""
import pathlib
import tables

def solve(problem):
    with pathlib.Path(__file__).with_name("calls").open("a") as file:
        file.write(f"{problem} ")
    return [problem**2 + 0.5, "a word"]

if __name__ == "__main__":
    problems = {(str(k),): k for k in (3, 1, 2)}
    scheduler = tables.arguments(__doc__).parse_args().scheduler
    columns = "number", "square", "word"
    tables.complete("squares.csv", ["by us"], columns, problems, solve, scheduler)
'''
WHOLE = "# by us\nnumber,square,word\n3,9.5,a word\n1,1.5,a word\n2,4.5,a word\n"


@pytest.fixture
def squares(tmp_path):
    (tmp_path / "squares.py").write_text(SQUARES)
    shutil.copy(TABLES / "tables.py", tmp_path)
    return tmp_path / "squares.py"


def test_a_table_is_completed_in_the_order_of_the_problems(squares):
    table, calls = squares.with_suffix(".csv"), squares.with_name("calls")
    assert ran(sys.executable, squares).returncode == 0
    assert table.read_text() == WHOLE
    # A row that is there is kept, whatever it says; one of no problem is not.
    table.write_text(WHOLE.replace("1.5", "9").replace("2,4.5", "8,4"))
    calls.unlink()
    assert ran(sys.executable, squares).returncode == 0
    assert table.read_text() == WHOLE.replace("1.5", "9")
    assert calls.read_text() == "2 "


def problems_of(name):
    """The problems of a script by the keys of their rows, and what solves them."""
    made = script(f"make_{name}")
    if name == "growth":
        return made.problems(), made.rest
    return made.problems(10 if name == "certificates" else 100), made.values


@pytest.mark.parametrize("name", ["table1", "table1_bounds", "certificates", "growth"])
def test_a_table_has_the_rows_of_its_script_and_no_other(name):
    problems, _ = problems_of(name)
    rows = [tuple(row.values()) for row in rows_of(f"{name}.csv")]
    assert [row[: len(key)] for row, key in zip(rows, problems)] == [*problems]
    assert len(rows) == len(problems)


PLACES = {"table1": 1, "table1_bounds": 700, "certificates": 0, "growth": 5}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), PLACES.items())
def test_a_row_is_solved_anew(name, place):
    problems, solve = problems_of(name)
    key = [*problems][place]
    row = [*rows_of(f"{name}.csv")[place].values()][len(key) :]
    for ours, theirs in zip(solve(problems[key]), row, strict=True):
        try:
            assert float(ours) == pytest.approx(float(theirs), rel=1e-4)
        except (TypeError, ValueError):
            assert ("" if ours is None else ours) == theirs


# --- the steps of docs/adding.md ------------------------------------------------

# The indentation of a step's block, and its text.
BLOCK = re.compile(r"^( *)```\w+\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def steps(title):
    """The file of tests that a section names, and its blocks, not indented."""
    page = (ROOT / "docs/adding.md").read_text()
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    (tests,) = re.findall(r"at\s+the\s+end\s+of\s+`(tests/\S+\.py)`", section)
    blocks = BLOCK.findall(section)
    return tests, [re.sub(f"^{x}", "", text, flags=re.M) for x, text in blocks]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project, in which commands run and files are changed."""
    copy_checkout(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def here(*arguments, **environment):
    return python(*arguments, cwd=Path.cwd(), **environment)


def insert(path, text, before="", after=""):
    """Put text between pieces of a file that stand beside each other, or at its end."""
    whole = Path(path).read_text()
    assert not before + after or whole.count(before + after) == 1
    place = whole.index(before + after) + len(before) if before + after else len(whole)
    Path(path).write_text(whole[:place] + text + whole[place:])


def check(style, *tests):
    here("-m", "ruff", "check", *style)
    here("-m", "ruff", "format", "--check", *style)
    here("-m", "pytest", "-q", "-m", "not slow", *tests)


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_a_diversity_is_added_as_the_page_says():
    tests, blocks = steps("Adding a diversity")
    function, asked, test, cell, row, build = blocks
    functions = "qdtheory/functions.py"
    insert(functions, f"\n\n{function}", after="\n\n# --- Families")
    call, _, expected = asked.partition("  # ")
    arguments = shlex.split(call)[1:]
    assert here("-m", "qdtheory", *arguments).startswith(f"{expected.strip()}: ")
    insert(tests, f"\n\n{test}")
    _, script_, name = shlex.split(build)
    source = Path(f"notebooks/src/{name}.md")
    before, mark, after = source.read_text().partition('\n+++ {"tags": ["exercise"]}')
    cell = f"\n```{{code-cell}} ipython3\n{cell}```\n"
    source.write_text(before + cell + mark + after)
    here(script_, name)
    insert("docs/coverage.csv", row)
    check([functions, tests], "tests/test_claims.py")
    claim = re.search(r'claim\("(.+?)"\)', test)[1]
    assert "1 passed" in here("-m", "pytest", "-q", "--claim", claim)


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_a_metric_of_texts_is_added_as_the_page_says():
    tests, blocks = steps("Adding a metric of texts")
    function, name, names, row, entry, commands, test = blocks
    text = "qdtheory/text"
    insert(f"{text}/repetition.py", f"\n\n{function}")
    insert(f"{text}/__init__.pyi", f"    {name}", "from .repetition import (\n")
    insert(f"{text}/metric_names.py", f"        {row}", '    "diversity": {\n')
    unordered = f", {row.split(':')[0]}"
    insert(f"{text}/metric_names.py", unordered, 'UNORDERED = {"ROUGE-L"')
    insert("qdtheory/catalogue/metrics.toml", f"\n{entry}")
    insert(tests, f"\n\n{test}")
    added, written = map(shlex.split, names.splitlines())
    insert(added[-1], f"{added[1]}\n")
    here(written[-1], PYTHONPATH=f".{os.pathsep}docs")
    lines = ("".join(f"{word} " for word in f"{k:05b}") for k in range(2_100))
    Path("real.txt").write_text("\n".join(lines))
    known, measured = (shlex.split(line)[1:] for line in commands.splitlines())
    said = here("-m", "qdtheory", *known)
    assert said.startswith("Sound beside nothing that is known")
    assert f"{known[-1]} (diversity). No verdict: " in said
    assert measured[-1] in here("-m", "qdtheory", *measured)
    kept = "tests/test_release.py::test_no_public_name_or_parameter_is_lost_unnoticed"
    check([text, tests], kept, "tests/test_claims.py", tests, f"{text}/repetition.py")
    here("-m", "pytest", "-q", "tests/catalogue", "-k", known[-1])
