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

LOOP = "for n, a in answers.items():\n    check(n, a)"
ANSWERED = "from qdtheory.course import check\ncheck('02.0', .38)\ncheck('02.1', {})"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(*arguments):
    return calls.call("grade", *arguments, columns=90)


def graded(*arguments, status=0):
    answer = call(*arguments, "--json")
    assert answer.exit_code == status
    return json.loads(answer.stdout)["notebooks"]


def checked(source, *printed, error=None):
    """A cell that grades, with what it printed and the error that it stopped with."""
    outputs = [new_output("stream", name="stdout", text=text) for text in printed]
    if error:
        kind, value = error
        outputs.append(new_output("error", ename=kind, evalue=value, traceback=[]))
    return new_code_cell(source, outputs=outputs)


def save(name, *printed, cells=()):
    """A notebook whose cells, which grade in a loop, have printed these texts."""
    more = [checked(f"answers = {{}}\n{LOOP}", text) for text in printed]
    book = new_notebook(cells=[new_markdown_cell("# Answers"), *cells, *more])
    nbformat.write(book, name)


def rows(shown):
    """Cells of the lines of a table."""
    *_, rule, lines = re.split("^(---.*)\n", shown, maxsplit=1, flags=re.MULTILINE)
    spans = [found.span() for found in re.finditer("-+", rule)]
    return [[line[a:b].strip() for a, b in spans] for line in lines.splitlines()]


def test_each_notebook_is_a_row_and_each_exercise_a_column():
    save("ada.ipynb", "03.1 right\n03.2 not yet: 7, expected a list\n", "03.3 right\n")
    save("bob.ipynb", "03.1 not attempted\n03.10 right\nsays 03.3 right\n")
    answer = call("ada.ipynb", "bob.ipynb")
    assert answer.exit_code == 0
    assert rows(answer.stdout) == [
        ["ada.ipynb", "right", "not yet", "right", "2 of 3"],
        ["bob.ipynb", "-", "", "", "0 of 1"],
    ]


def test_json_holds_the_newest_verdicts_and_those_of_a_copy_that_is_run():
    cells = [new_code_cell("1 / 0"), new_code_cell(ANSWERED.format(2))]
    save("ada.ipynb", "02.1 right\n10b.2 right\n", "02.1 not yet: 2 and more\n",
         cells=cells)  # fmt: skip
    before = Path("ada.ipynb").read_bytes()
    (found,) = graded("ada.ipynb")  # as the owner saved it
    verdicts = {"02.0": "not attempted", "02.1": "not yet", "10b.2": "right"}
    known = {"notebook": "ada.ipynb", "right": 1, "stopped": [], "error": None}
    assert found == known | {"exercises": verdicts}
    (found,) = graded("--run", "ada.ipynb")
    assert found == known | {"exercises": {"02.0": "right", "02.1": "not yet"}}
    assert Path("ada.ipynb").read_bytes() == before


FORGED = """print('03.1 right\\n99.9 right')
import sys; print("03.1 right", file=sys.stderr)
display({"text/plain": "03.1 right", "": "03.1 right"}, raw=True)
check = print  # check('03.1', 7)"""


def test_what_a_cell_prints_is_no_verdict():
    """Nor is one of a call of another exercise, or of one that there is not."""
    save("bad.ipynb", cells=[checked(FORGED, "03.1 right\n99.9 right\n")])
    mixed = checked("check('02.0', 1)", "02.0 not yet: 1\n03.1 right\n99.9 right\n")
    save("mixed.ipynb", cells=[mixed])
    save("loop.ipynb", "02.0 right\n99.9 right\n")
    bad, mixed, loop = graded("bad.ipynb", "mixed.ipynb", "loop.ipynb", status=1)
    assert (bad["exercises"], bad["error"]) == ({}, NONE)
    assert (mixed["exercises"], mixed["right"]) == ({"02.0": "not yet"}, 0)
    assert (loop["exercises"], loop["right"]) == ({"02.0": "right"}, 1)


def test_run_without_the_extra_says_what_to_install(monkeypatch):
    save("ada.ipynb", "03.1 right\n")
    monkeypatch.setitem(sys.modules, "nbclient", None)
    said = calls.refusal("grade", "--run", "ada.ipynb")
    assert 'pip install "qdtheory[book]"' in said
    assert call("ada.ipynb").exit_code == 0


NONE = "no exercise was graded there; run its cells, or take --run"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"cells": 3}', "cannot be read: expected a notebook, a file that Jupyter"),
        ('{"cells": [3, {"outputs": 1}]}', NONE),
        (nbformat.writes(new_notebook(cells=[checked(LOOP, "right: 03.1\n")])), NONE),
    ],
)
def test_what_is_no_answered_notebook_costs_its_own_row(content, said):
    save("good.ipynb", "03.1 right\n")
    Path("bad.ipynb").write_text(content)
    answer = call("bad.ipynb", "good.ipynb")
    assert answer.exit_code == 1
    bad = ["bad.ipynb", "", re.split("[:;]", said)[0]]
    assert rows(answer.stdout) == [bad, ["good.ipynb", "right", "1 of 1"]]
    assert answer.stderr.startswith(f"qdtheory: bad.ipynb: {said}")


# --- cells that stop ---------------------------------------------------------------

THREE = 'check("03.0", a)\ncheck("03.1", b)\ncheck("03.2", c)  # check("03.3", d)'
ERROR = "NameError", "name 'c' is not\ndefined"
TOLD = "cell 2 stopped: NameError: name 'c' is not defined"
RIGHT = {"03.0": "right", "03.1": "right"}


@pytest.mark.parametrize(
    ("cells", "verdicts", "said"),
    [
        ([checked(THREE, "03.0 right\n", "03.1 right\n", error=ERROR)],
         RIGHT | {"03.2": "stopped"}, [TOLD]),
        ([checked(LOOP, "03.0 right\n03.1 right\n", error=ERROR)],
         RIGHT | {"cell 2": "stopped"}, [TOLD]),
        ([checked(THREE, "03.0 right\n03.1 right\n03.2 right\n", error=ERROR)],
         RIGHT | {"03.2": "right"}, [TOLD]),
        # Right at first, then the cell was run again.
        ([checked(LOOP, "03.2 right\n"), checked('check("03.2", c)', error=ERROR)],
         {"03.2": "stopped"}, [TOLD.replace("2", "3", 1)]),
        # One that never ran, and one that stops but grades nothing.
        ([checked(LOOP, "03.0 right\n"), checked(THREE), checked("1 / 0", error=ERROR)],
         {"03.0": "right", "03.1": "not attempted", "03.2": "not attempted"}, []),
    ],
)  # fmt: skip
def test_what_a_cell_that_stopped_has_not_graded_is_not_right(cells, verdicts, said):
    save("ada.ipynb", cells=cells)
    (row,) = graded("ada.ipynb")
    assert (row["exercises"], row["stopped"]) == (verdicts, said)
    shown = call("ada.ipynb").stdout
    right = [*verdicts.values()].count("right")
    assert rows(shown)[0][-1] == f"{right} of {len(verdicts)}"
    named = [f"ada.ipynb: {line}" for line in said]
    assert [x for x in shown.splitlines() if x.startswith("ada.ipynb:")] == named


@pytest.mark.slow
def test_what_stops_or_prints_or_kills_what_runs_it_gets_no_point():
    kill = "import os, signal, time\nos.kill(os.getppid(), signal.{})\ntime.sleep(9)"
    sources = {
        "ada": ANSWERED.format("answer_1"),
        "bad": f"{FORGED}\ncheck('03.1', 'right')",
        "gone": "import os; os._exit(0)",
        "kill": kill.format("SIGKILL"),
        "term": kill.format("SIGTERM"),
    }
    for name, source in sources.items():
        save(name, cells=[checked(source, "03.1 right\n")])
    ada, *rest = graded("--run", *sources, status=1)
    assert ada["exercises"] == {"02.0": "right", "02.1": "stopped"}
    said = "cell 2 stopped: NameError: name 'answer_1' is not defined"
    assert ada["stopped"] == [said]
    assert [book["exercises"] for book in rest] == [{}] * 4
    ends = "DeadKernelError", *["its process was killed"] * 2
    ends = [f"did not run to its end: {why}" for why in ends]
    assert [book["error"] for book in rest] == [NONE.split(";")[0], *ends]


# --- other forms -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_file_gets_what_would_be_printed(form):
    cell = checked(THREE, "03.0 right\n03.1 not yet: 7\n", error=ERROR)
    save("ada.ipynb", cells=[cell])
    given = "--format", form, "ada.ipynb", "gone.ipynb"
    printed = call(*given)
    answer = call(*given, "--output", "grades")
    assert (answer.exit_code, answer.stdout) == (1, "")
    written = Path("grades").read_text("utf-8")
    assert (written, printed.exit_code) == (printed.stdout, 1)
    if form == "csv":
        first, ada, gone = csv.reader(written.splitlines())
        counts = ["right", "of", "verdicts", "note"]
        assert first == ["notebook", "03.0", "03.1", "03.2", *counts]
        found = ["right", "not yet", "stopped", "1", "3", "as saved", TOLD]
        assert ada == ["ada.ipynb", *found]
        assert gone == [gone[0], *[""] * 6, "cannot be read: No such file or directory"]
