"""In the notebooks stubs are no attempts, and the solutions are right."""

import re

import build
import nbformat
import pytest

from qdtheory.course.exercises import EXERCISES

SOURCES = sorted(build.FOLDER.glob("src/*.md"))
# The map, and the one that imports nothing of ours, the grader included.
WITHOUT = {"00_map", "00b_one_sitting"}
TAUGHT = [path for path in SOURCES if path.stem not in WITHOUT]
VERDICT = re.compile(
    r"^\d\d[a-z]?\.\d (?:not attempted|not yet|right).*$", re.MULTILINE
)


def verdicts(path):
    """The lines of `check` in an executed notebook."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [o for cell in cells for o in cell.get("outputs", [])]
    return VERDICT.findall("\n".join(o.get("text", "") for o in outputs))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_stubs_are_not_attempted_and_solutions_right(source):
    number = source.stem.split("_")[0]
    own = [exercise for exercise in EXERCISES if exercise.split(".")[0] == number]
    reader = build.FOLDER / f"{source.stem}.ipynb"
    solutions = build.FOLDER / "solutions" / reader.name
    assert verdicts(reader) == [f"{exercise} not attempted" for exercise in own]
    if own:
        assert verdicts(solutions) == [f"{exercise} right" for exercise in own]


@pytest.mark.parametrize("source", TAUGHT, ids=lambda path: path.stem)
def test_a_lecture_has_exercises_and_a_wrong_statement(source):
    text = source.read_text()
    number = source.stem.split("_")[0]
    own = [exercise for exercise in EXERCISES if exercise.split(".")[0] == number]
    assert 3 <= text.count('check("') == len(own) <= 5
    assert text.count("**Warm-up.** ") == 1
    assert text.count("<summary>Hint for ") == len(own) - 1
    assert text.count("One of these statements is wrong") == 1


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_lecture_has_a_reading_time_and_three_lines_to_remember(source):
    text = source.read_text()
    assert text.count("\n**Reading** {minutes} min, ") == 1
    _, remember = text.split("\n## What to remember\n")
    assert len(re.findall(r"^[*-] ", remember.split("\n## ")[0], re.MULTILINE)) == 3
