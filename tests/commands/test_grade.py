"""The command grade: a table, JSON, notebooks run anew, and errors in one line."""

import json
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from typer.testing import CliRunner

from qdtheory.commands import cli

ANSWERED = "from qdtheory.exercises import check\ncheck('02.0', .38)\ncheck('02.1', 2)"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli.app, ("grade", *arguments), env={"COLUMNS": "90"})


def save(name, *printed, source="", cells=()):
    """A notebook whose code cells have printed these texts."""
    book = new_notebook(cells=[new_markdown_cell("# Answers"), *cells])
    for text in printed:
        output = new_output("stream", name="stdout", text=text)
        book.cells.append(new_code_cell(source, outputs=[output]))
    nbformat.write(book, name)


def rows(shown):
    """Cells of the lines of a table."""
    lines = [line for line in shown.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


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
    assert head.strip("┃").replace("┃", " ").split() == [
        *("notebook", "03.1", "03.2", "03.3", "right"),
    ]


def test_json_holds_the_verdicts():
    save("ada.ipynb", "03.1 right\n10b.2 not yet: (1, 2) and more\n")
    save("bob.ipynb", "03.1 not attempted\n")
    assert json.loads(call("--json", "ada.ipynb", "bob.ipynb").stdout) == {
        "notebooks": [
            {
                "notebook": "ada.ipynb",
                "right": 1,
                "exercises": {"03.1": "right", "10b.2": "not yet"},
            },
            {
                "notebook": "bob.ipynb",
                "right": 0,
                "exercises": {"03.1": "not attempted"},
            },
        ]
    }


def test_the_newest_verdict_of_an_exercise_counts():
    save("ada.ipynb", "03.1 right\n", "03.1 not yet: 7\n")
    (row,) = json.loads(call("--json", "ada.ipynb").stdout)["notebooks"]
    assert row["exercises"] == {"03.1": "not yet"}


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
    assert "1 of 1" in call("ada.ipynb").stdout  # as the owner saved it
    (row,) = json.loads(call("--run", "--json", "ada.ipynb").stdout)["notebooks"]
    assert row == {
        "notebook": "ada.ipynb",
        "right": 1,
        "exercises": {"02.0": "right", "02.1": "not yet"},
    }
    assert Path("ada.ipynb").read_bytes() == before


def test_run_without_the_extra_says_what_to_install(monkeypatch):
    save("ada.ipynb", "03.1 right\n")
    monkeypatch.setitem(sys.modules, "nbclient", None)
    answer = call("--run", "ada.ipynb")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert 'pip install "qdtheory[book]"' in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert call("ada.ipynb").exit_code == 0


def not_text(name):
    Path(name).write_bytes(b"\xff\xfe\x00")


EXPECTED = "expected a notebook, a file that JupyterLab saved as .ipynb"
NONE = "no exercise was graded there; run its cells, or take --run"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda name: None, "No such file or directory"),
        (lambda name: Path(name).mkdir(), "Is a directory"),
        (lambda name: Path(name).write_text("03.1 right"), EXPECTED),
        (not_text, EXPECTED),
        (lambda name: Path(name).write_text("[1, 2]"), EXPECTED),
        (lambda name: Path(name).write_text('{"cells": 3}'), EXPECTED),
        (lambda name: Path(name).write_text('{"cells": [3, {"outputs": 1}]}'), NONE),
        (save, NONE),
        (lambda name: save(name, "right: 03.1\n"), NONE),
    ],
)
def test_what_is_no_answered_notebook_gets_one_line(make, said):
    save("good.ipynb", "03.1 right\n")
    make("bad.ipynb")
    answer = call("good.ipynb", "bad.ipynb")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == f"qdtheory: bad.ipynb: {said}\n"


def test_a_notebook_is_needed():
    answer = call()
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("qdtheory: Missing argument 'notebooks'")


def test_help_has_an_example():
    shown = call("--help").stdout
    assert "Example: qdtheory grade class/*/03_pareto_frontier.ipynb" in shown
    assert "--run" in shown
