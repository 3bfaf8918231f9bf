"""The four kinds of graders."""

from fractions import Fraction

import numpy as np
from refusals import refused

from qdtheory.course.grading import (
    Fault,
    as_distribution,
    digest,
    function,
    number,
    statement,
    witness,
)


def test_a_statement_is_right_with_a_claim_that_refutes_it():
    grade = statement("00.1", digest("00.1", "C N1.1"), digest("00.1", "C N1.2"))
    right = ["C N1.1", " c n1.2 ", "C: N1.1", "C, N1.2", "C (N1.1)", "CN1.1."]
    right += ["(C), N1.1"]
    wrong = ["A N1.1", "C N1.3", "C", "N1.1", "C N1.1 N1.2", "C N11", ""]
    assert [answer for answer in right + wrong if grade(answer) is None] == right
    assert grade(3) == "3, expected a letter and a claim, like 'A N1.1'"


def test_an_example_that_raises_a_fault_is_refused_with_its_words():
    def test(answer):
        raise Fault("too small") if answer < 1 else Fault("too large")

    assert witness(test, "any")(0) == "0: too small"


def test_what_is_no_distribution_is_told_apart():
    refused(
        (
            "the sum is 0.999, expected 1; qd.normalize(q)",
            as_distribution,
            [0.5, 0.499],
        ),
        ("3 numbers, expected 2 probabilities", as_distribution, [0.5, 0.25, 0.25], 2),
        ("a table of shape (1, 2), expected 2", as_distribution, [[0.5, 0.5]], 2),
        ("a probability is negative, or no number", as_distribution, [1.5, -0.5]),
        ("a probability is negative, or no number", as_distribution, [np.nan, 1]),
        ("expected probabilities, a list of numbers", as_distribution, "half"),
        error=Fault,
    )


def test_numbers_of_any_kind_are_read_and_compared_to_the_tolerance():
    grade = number(0.5, 1e-3)
    for answer in (0.5, 0.5004, np.float32(0.5), np.array(0.5), Fraction(1, 2)):
        assert grade(answer) is None
    assert grade(0.51) == "0.51, expected another number"
    assert number(2 / 3, 1e-9)(0.6667) == "0.6667: close; give the term, or more digits"
    assert number(69.0, 1e-9)(68.97) == "68.97, expected another number"
    for answer in ("0.5", [0.5], 0.5j):
        assert "expected one number" in str(grade(answer))
    assert number(0.0, 1e-3)(1e-4) is None


def test_functions_are_compared_on_every_input():
    grade = function(lambda x: x**2, [(np.array([1.0, 2.0]),)], 1e-9)
    for answer in (lambda x: x * x, lambda x: [1, 4]):
        assert grade(answer) is None
    off = str(grade(lambda x: x**2 + 1e-6))
    assert off.startswith("your function of ([1. 2.]) gave [1.000001 4.000001], expec")
    assert "expected shape (2,)" in str(grade(lambda x: 1))
    assert "raised ZeroDivisionError: division by zero" in str(grade(lambda x: 1 / 0))
    assert grade(2) == "2, expected a function"


def test_an_example_that_its_test_fails_on_is_refused_with_the_hint():
    grade = witness(lambda x: x > 1, "a number above 1")
    assert grade(2) is None
    assert grade(1) == "1, expected a number above 1"
    assert grade("b") == "b, expected a number above 1"
