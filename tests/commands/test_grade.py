"""The command grade: a table, JSON, notebooks run anew, and errors in one line."""

import csv
import json
import re
import sys
from pathlib import Path

import calls
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ANSWERED = "from qdtheory.course import check\ncheck('02.0', .38)\ncheck('02.1', 2)"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments):
    return calls.call("grade", *arguments, columns=90)


def refusal(*arguments):
    return calls.refusal("grade", *arguments, columns=90)


def save(name, *printed, source="", cells=()):
    """A notebook whose code cells have printed these texts."""
    book = new_notebook(cells=[new_markdown_cell("# Answers"), *cells])
    for text in printed:
        output = new_output("stream", name="stdout", text=text)
        book.cells.append(new_code_cell(source, outputs=[output]))
    nbformat.write(book, name)


def row(name, right, exercises):
    """A row of JSON."""
    verdicts = {"notebook": name, "right": right, "exercises": exercises}
    return verdicts | {"stopped": [], "error": None}


def rows(shown):
    """Cells of the lines of a table."""
    _, rule, *lines = shown.splitlines()
    spans = [found.span() for found in re.finditer("-+", rule)]
    return [[line[a:b].strip() for a, b in spans] for line in lines]


def test_each_notebook_is_a_row_and_each_exercise_a_column():
    save("ada.ipynb", "03.1 right\n03.2 not yet: 7, expected a list\n", "03.3 right\n")
    save("bob.ipynb", "03.1 not attempted\n03.10 right\nsays 03.3 right\n")
    answer = call("ada.ipynb", "bob.ipynb")
    assert answer.exit_code == 0
    assert rows(answer.stdout) == [
        ["ada.ipynb", "right", "not yet", "right", "2 of 3"],
        ["bob.ipynb", "-", "", "", "0 of 1"],
    ]
    head = next(line for line in answer.stdout.splitlines() if "notebook" in line)
    assert head.split() == ["notebook", "03.1", "03.2", "03.3", "right"]


def test_json_holds_the_newest_verdicts():
    save("ada.ipynb", "03.1 right\n10b.2 right\n", "10b.2 not yet: (1, 2) and more\n")
    save("bob.ipynb", "03.1 not attempted\n")
    assert json.loads(call("--json", "ada.ipynb", "bob.ipynb").stdout) == {
        "notebooks": [
            row("ada.ipynb", 1, {"03.1": "right", "10b.2": "not yet"}),
            row("bob.ipynb", 0, {"03.1": "not attempted"}),
        ]
    }


def test_an_output_in_lines_is_read_whole():
    save("ada.ipynb", "03.1 right\n03.2 right\n")
    book = json.loads(Path("ada.ipynb").read_text())
    output = book["cells"][1]["outputs"][0]
    assert isinstance(output["text"], list)  # as Jupyter saves it
    assert "2 of 2" in call("ada.ipynb").stdout


def test_run_executes_a_copy(folder):
    cells = [new_code_cell("1 / 0"), new_code_cell(ANSWERED)]
    save("ada.ipynb", "02.1 right\n", cells=cells)
    before = Path("ada.ipynb").read_bytes()
    assert "1 of 2" in call("ada.ipynb").stdout  # as the owner saved it
    (found,) = json.loads(call("--run", "--json", "ada.ipynb").stdout)["notebooks"]
    assert found == row("ada.ipynb", 1, {"02.0": "right", "02.1": "not yet"})
    assert Path("ada.ipynb").read_bytes() == before


def test_run_without_the_extra_says_what_to_install(monkeypatch):
    save("ada.ipynb", "03.1 right\n")
    monkeypatch.setitem(sys.modules, "nbclient", None)
    assert 'pip install "qdtheory[book]"' in refusal("--run", "ada.ipynb")
    assert call("ada.ipynb").exit_code == 0


EXPECTED = "cannot be read: expected a notebook, a file that JupyterLab saved as .ipynb"
NONE = "no exercise was graded there; run its cells, or take --run"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda name: None, "cannot be read: No such file or directory"),
        (lambda name: Path(name).write_text('{"cells": 3}'), EXPECTED),
        (lambda name: Path(name).write_text('{"cells": [3, {"outputs": 1}]}'), NONE),
        (save, NONE),
        (lambda name: save(name, "right: 03.1\n"), NONE),
    ],
)
def test_what_is_no_answered_notebook_costs_its_own_row(make, said):
    save("good.ipynb", "03.1 right\n")
    make("bad.ipynb")
    answer = call("bad.ipynb", "good.ipynb")
    assert answer.exit_code == 1
    bad = ["bad.ipynb", "", re.split("[:;]", said)[0]]
    assert rows(answer.stdout) == [bad, ["good.ipynb", "right", "1 of 1"]]
    assert answer.stderr == f"qdtheory: bad.ipynb: {said}\n"
    assert refusal("bad.ipynb") == f"bad.ipynb: {said}"


# --- cells that stop ---------------------------------------------------------------


def checked(source, *printed, error=None):
    """A cell that grades, with what it printed and the error that it stopped with."""
    outputs = [new_output("stream", name="stdout", text=text) for text in printed]
    if error:
        kind, value = error
        outputs.append(new_output("error", ename=kind, evalue=value, traceback=[]))
    return new_code_cell(source, outputs=outputs)


THREE = 'check("03.0", a)\ncheck("03.1", b)\ncheck("03.2", c)  # check("03.3", d)'
LOOP = "for n, a in answers.items():\n    check(n, a)"
ERROR = "NameError", "name 'c' is not\ndefined"
TOLD = "cell 2 stopped: NameError: name 'c' is not defined"
RIGHT = {"03.0": "right", "03.1": "right"}


@pytest.mark.parametrize(
    ("cells", "verdicts", "said"),
    [
        ([checked(THREE, "03.0 right\n", "03.1 right\n", error=ERROR)],
         RIGHT | {"03.2": "stopped"}, [TOLD]),
        ([checked(THREE, error=ERROR)],
         dict.fromkeys(["03.0", "03.1", "03.2"], "stopped"), [TOLD]),
        ([checked(LOOP, "03.0 right\n03.1 right\n", error=ERROR)],
         RIGHT | {"cell 2": "stopped"}, [TOLD]),
        ([checked(THREE, "03.0 right\n03.1 right\n03.2 right\n", error=ERROR)],
         RIGHT | {"03.2": "right"}, [TOLD]),
        # Right at first, then the cell was run again.
        ([checked("", "03.2 right\n"), checked('check("03.2", c)', error=ERROR)],
         {"03.2": "stopped"}, [TOLD.replace("2", "3", 1)]),
        # One that never ran, and one that stops but grades nothing.
        ([checked("", "03.0 right\n"), checked(THREE), checked("1 / 0", error=ERROR)],
         {"03.0": "right", "03.1": "not attempted", "03.2": "not attempted"}, []),
    ],
)  # fmt: skip
def test_what_a_cell_that_stopped_has_not_graded_is_not_right(cells, verdicts, said):
    save("ada.ipynb", cells=cells)
    (row,) = json.loads(call("--json", "ada.ipynb").stdout)["notebooks"]
    assert (row["exercises"], row["stopped"]) == (verdicts, said)
    shown = call("ada.ipynb")
    assert shown.exit_code == 0
    right = [*verdicts.values()].count("right")
    assert rows(shown.stdout)[0][-1] == f"{right} of {len(verdicts)}"
    named = [f"ada.ipynb: {line}" for line in said]
    assert [x for x in shown.stdout.splitlines() if x.startswith("ada.ipynb:")] == named


@pytest.mark.slow
def test_a_cell_that_stops_when_it_is_run_is_told_too():
    source = ANSWERED.replace("2)", "answer_1)")
    save("ada.ipynb", "02.0 right\n02.1 right\n", cells=[new_code_cell(source)])
    save("bob.ipynb", cells=[new_code_cell("import os; os._exit(0)")])
    answer = call("--run", "ada.ipynb", "bob.ipynb")
    assert answer.exit_code == 1
    table, _, line = answer.stdout.strip().rpartition("\n")
    assert rows(table) == [
        ["ada.ipynb", "right", "stopped", "1 of 2"],
        ["bob.ipynb", "", "", "did not run to its end"],
    ]
    said = "cell 2 stopped: NameError: name 'answer_1' is not defined"
    assert line == f"ada.ipynb: {said}"
    said = "qdtheory: bob.ipynb: did not run to its end: DeadKernelError\n"
    assert answer.stderr == said


@pytest.mark.slow
def test_two_notebooks_run_at_a_time():
    wait = """
import pathlib, time
pathlib.Path("{}").touch()
for _ in range(600):
    if pathlib.Path("{}").exists(): break
    time.sleep(0.1)
else: raise TimeoutError("alone")
from qdtheory.course import check
check("02.0", .38)"""
    for name, other in ("ab", "ba"):
        save(f"{name}.ipynb", cells=[new_code_cell(wait.format(name, other))])
    answer = call("--run", "a.ipynb", "b.ipynb")
    assert [row[-1] for row in rows(answer.stdout)] == ["1 of 1"] * 2


# --- other forms -------------------------------------------------------------------


def test_csv_has_the_words_the_counts_and_what_went_wrong():
    cell = checked(THREE, "03.0 right\n03.1 not yet: 7\n", error=ERROR)
    save("ada.ipynb", cells=[cell])
    save("bob.ipynb", "03.0 not attempted\n")
    answer = call("--format", "csv", "ada.ipynb", "bob.ipynb", "gone.ipynb")
    assert answer.exit_code == 1
    assert [*csv.reader(answer.stdout.splitlines())] == [
        ["notebook", "03.0", "03.1", "03.2", "right", "of", "note"],
        ["ada.ipynb", "right", "not yet", "stopped", "1", "3", TOLD],
        ["bob.ipynb", "not attempted", "", "", "0", "1", ""],
        ["gone.ipynb", *[""] * 5, "cannot be read: No such file or directory"],
    ]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_file_gets_what_would_be_printed(form):
    save("ada.ipynb", cells=[checked(THREE, "03.0 right\n", error=ERROR)])
    printed = call("--format", form, "ada.ipynb").stdout
    answer = call("--format", form, "ada.ipynb", "gone.ipynb", "--output", "grades")
    assert (answer.exit_code, answer.stdout) == (1, "")
    written = Path("grades").read_text("utf-8")
    assert "gone.ipynb" in written
    assert call("--format", form, "ada.ipynb", "--output", "grades").exit_code == 0
    assert Path("grades").read_text("utf-8") == printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.ipynb", "--output", "old"], "gone.ipynb: cannot be read: No such"),
        (["ada.ipynb", "--output", "ada.ipynb"], "--output: ada.ipynb is a file that"),
    ],
)
def test_nothing_that_was_written_is_lost(arguments, said):
    save("ada.ipynb", "03.1 right\n")
    before = Path("ada.ipynb").read_bytes()
    Path("old").write_text("grades of last week")
    assert refusal(*arguments).startswith(said)
    assert Path("old").read_text() == "grades of last week"
    assert Path("ada.ipynb").read_bytes() == before
