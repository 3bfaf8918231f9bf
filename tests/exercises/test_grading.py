"""The four kinds of graders."""

from fractions import Fraction

import numpy as np

from qdtheory.exercises.grading import function, letter, number, witness


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
