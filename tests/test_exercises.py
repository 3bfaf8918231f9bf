"""Graders refuse wrong answers; stubs are no attempts; the solutions are right."""

import re
from fractions import Fraction

import build
import nbformat
import numpy as np
import pytest

from qdtheory.exercises import check
from qdtheory.exercises.answers import GRADERS
from qdtheory.exercises.grading import function, letter, number, witness

SOURCES = sorted(build.FOLDER.glob("src/*.md"))
VERDICT = re.compile(
    r"^\d\d[a-z]?\.\d (?:not attempted|not yet|right).*$", re.MULTILINE
)


class Unprintable:
    def __str__(self):
        raise RuntimeError("no text")


WRONG = (
    *(Unprintable(), "no", "?", [], {}, np.inf, -1234.5, np.full((3, 2), np.nan)),
    *([[1], [1, 2]], lambda: 1, lambda *_: "text"),
    *(lambda *_: 1 / 0, object, np),
)


@pytest.mark.parametrize("exercise", GRADERS)
def test_nothing_is_no_attempt_and_a_wrong_answer_is_refused(exercise, capsys):
    check(exercise, None)
    for answer in WRONG:
        check(exercise, answer)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"{exercise} not attempted"
    assert len(others) == len(WRONG)
    assert all(line.startswith(f"{exercise} not yet: ") for line in others)


def test_one_letter_is_right_in_either_case():
    grade = letter("00.1", "6ad49846")
    assert [grade(x) is None for x in ("A", "B", "C", "D", " c ", "c", "CC")] == [
        *(False, False, True, False, True, True, False)
    ]
    assert grade("A") == "A, expected another letter"
    assert grade(3) == "3, expected one letter"


def test_numbers_of_any_kind_are_read_and_compared_to_the_tolerance():
    grade = number(lambda: np.float64(0.5), 1e-3)
    for answer in (0.5, 0.5004, np.float32(0.5), np.array(0.5), Fraction(1, 2)):
        assert grade(answer) is None
    assert grade(0.5006) == "0.5006, expected another number, to 0.001"
    for answer in ("0.5", [0.5], 0.5j):
        assert "expected one number" in str(grade(answer))
    assert number(0.0, 1e-3)(1e-4) is None


def test_functions_are_compared_on_every_input():
    grade = function(lambda x: x**2, lambda: [(np.array([1.0, 2.0]),)], 1e-9)
    for answer in (lambda x: x * x, lambda x: [1, 4]):
        assert grade(answer) is None
    off = grade(lambda x: x**2 + 1e-6)
    assert (
        off
        == "your function of ([1. 2.]) gave [1.000001 4.000001], expected another value"
    )
    assert "expected shape (2,)" in str(grade(lambda x: 1))
    assert "raised ZeroDivisionError: division by zero" in str(grade(lambda x: 1 / 0))
    assert grade(2) == "2, expected a function"


def test_an_example_that_its_test_fails_on_is_refused_with_the_hint():
    grade = witness(lambda x: x > 1, "a number above 1")
    assert grade(2) is None
    assert grade(1) == "1, expected a number above 1"
    assert grade("b") == "b, expected a number above 1"


def test_an_unknown_exercise_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"no exercise '99.1'; there are: 01.1, 01.2"):
        check("99.1", None)


def verdicts(path):
    """The lines of `check` in an executed notebook."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [o for cell in cells for o in cell.get("outputs", [])]
    return VERDICT.findall("\n".join(o.get("text", "") for o in outputs))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_stubs_are_not_attempted_and_solutions_right(source):
    number = source.stem.split("_")[0]
    own = [exercise for exercise in GRADERS if exercise.split(".")[0] == number]
    reader = build.FOLDER / f"{source.stem}.ipynb"
    solutions = build.FOLDER / "solutions" / reader.name
    assert verdicts(reader) == [f"{exercise} not attempted" for exercise in own]
    if own:
        assert verdicts(solutions) == [f"{exercise} right" for exercise in own]


@pytest.mark.parametrize("source", SOURCES[1:], ids=lambda path: path.stem)
def test_a_lecture_has_exercises_a_wrong_statement_and_three_lines_to_remember(source):
    text = source.read_text()
    assert 2 <= text.count('check("') <= 4
    assert text.count("One of these statements is wrong") == 1
    assert text.count("\n**Time** ") == 1
    _, remember = text.split("\n## What to remember\n")
    assert len(re.findall(r"^[*-] ", remember.split("\n## ")[0], re.MULTILINE)) == 3
