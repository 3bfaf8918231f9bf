"""The scripts of tables that are made problem by problem, here and on a cluster."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import TABLES, rows_of, script

ROOT = Path(__file__).parents[1]
# A script beside tables.py, with problems that take no time.
SCRIPT = '''"""Squares."""

import contextlib
import os
import signal
import sys
from functools import cache
from pathlib import Path

import tables


@cache  # which no pickle holds: workers must import the module
def offset():
    return 0.5


def solve(problem):
    dies = Path(os.environ.get("DIES", "never"))
    with contextlib.suppress(FileNotFoundError):  # only one of two workers dies
        dies.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    with Path(__file__).with_name("calls").open("a") as file:
        file.write(f"{problem} {os.getpid()}\\\\n")
    return [problem**2 + offset(), "a word"]


def rows(oracle):
    return [[oracle, k, k / 3] for k in range(2)]


def main():
    if sys.argv[1] == "parts":
        del sys.argv[1]
        return tables.in_parts(__doc__, "parts", "abc", "ours", (), rows, 3)
    problems = {(str(k),): k for k in (3, 1, 2)}
    scheduler = tables.arguments(__doc__).parse_args(sys.argv[2:]).scheduler
    columns = "number", "square", "word"
    tables.complete("squares.csv", ["by us"], columns, problems, solve, scheduler)


if __name__ == "__main__":
    import squares

    squares.main()
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "squares.py").write_text(SCRIPT.replace("\\\\n", "\\n"))
    shutil.copy(TABLES / "tables.py", tmp_path)
    return tmp_path


def run(folder, *options):
    command = [sys.executable, str(folder / "squares.py"), *map(str, options)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


WHOLE = "# by us\nnumber,square,word\n3,9.5,a word\n1,1.5,a word\n2,4.5,a word\n"


def test_a_table_is_completed_in_the_order_of_the_problems(folder):
    table = folder / "squares.csv"
    assert run(folder, "rows").returncode == 0
    assert table.read_text() == WHOLE
    # A row that is there is kept, whatever it says; one of no problem is not.
    table.write_text(WHOLE.replace("1.5", "9").replace("2,4.5", "8,4"))
    (folder / "calls").unlink()
    assert run(folder, "rows").returncode == 0
    assert table.read_text() == WHOLE.replace("1.5", "9")
    assert (folder / "calls").read_text().split()[::2] == ["2"]


@pytest.mark.slow
def test_two_workers_make_the_same_tables(folder, monkeypatch):
    pytest.importorskip("distributed")
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    assert run(folder, "parts", folder / "one").returncode == 0
    serial = (folder / "parts.csv").read_text()
    found = run(folder, "parts", folder / "two", "--scheduler", "2")
    assert found.returncode == 0, found.stderr
    assert (folder / "parts.csv").read_text() == serial
    assert serial.splitlines()[-1] == "2,1,0.33333"
    parts = [path.name for path in sorted((folder / "two").iterdir())]
    assert parts == [f"parts_00{k}.csv" for k in range(3)]
    # What a worker that dies had in hand is solved again.
    monkeypatch.setenv("DIES", str(folder / "dies"))
    (folder / "dies").touch()
    found = run(folder, "rows", "--scheduler", "2")
    assert found.returncode == 0, found.stderr
    assert (folder / "squares.csv").read_text() == WHOLE
    assert not (folder / "dies").exists()


@pytest.mark.parametrize(
    "address",
    # The first is tried for ten seconds.
    [pytest.param("tcp://127.0.0.1:1", marks=pytest.mark.slow), "nowhere:"],
)
def test_a_scheduler_that_is_not_there_is_named_in_one_line(folder, address):
    pytest.importorskip("distributed")
    found = run(folder, "rows", "--scheduler", address)
    assert found.returncode == 1
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"--scheduler: {address}: ")
    assert line.endswith("is dask scheduler up?")
    assert not (folder / "squares.csv").exists()


# -- the scripts ---------------------------------------------------------------------


def problems_of(name):
    """The problems of a script by the keys of their rows, and what solves them."""
    made = script(f"make_{name}")
    if name == "growth":
        return made.problems(), made.rest
    if name == "certificates":
        return made.problems(10), made.values
    return made.problems(100), made.values


@pytest.mark.parametrize("name", ["table1", "table1_bounds", "certificates", "growth"])
def test_a_table_has_the_rows_of_its_script_and_no_other(name):
    problems, _ = problems_of(name)
    rows = [tuple(row.values()) for row in rows_of(f"{name}.csv")]
    assert [row[: len(key)] for row, key in zip(rows, problems)] == [*problems]
    assert len(rows) == len(problems)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "place"),
    [("table1", 1), ("table1_bounds", 700), ("certificates", 0), ("growth", 5)],
)
def test_a_row_is_solved_anew(name, place):
    problems, solve = problems_of(name)
    key = [*problems][place]
    row = [*rows_of(f"{name}.csv")[place].values()][len(key) :]
    for ours, theirs in zip(solve(problems[key]), row, strict=True):
        try:
            assert float(ours) == pytest.approx(float(theirs), rel=1e-4)
        except (TypeError, ValueError):
            assert ("" if ours is None else ours) == theirs
