"""The four kinds of graders, and what a lecture shows."""

from fractions import Fraction

import numpy as np
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from refusals import refused

from qdtheory.course import claim, tabulate
from qdtheory.course.grading import (
    Fault,
    NotAttempted,
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
    right += ["(C), N1.1", "C N1.1 N1.2", ("C", "N1.1"), "N1.1 C", "C: a claim (N1.1)"]
    right += ["c because of n1.1, by a search", "C N 1.1", "C, refuted by N1.1."]
    right += ["Statement C is wrong (a claim, N1.1)"]
    wrong = ["A N1.1", "C N1.3", "C", "N1.1", "C N1.1 N1.3", "C D N1.1", "C N11", ""]
    wrong += ["C or D, N1.1", "C/D N1.1", "not C but N1.1"]
    assert [answer for answer in right + wrong if grade(answer) is None] == right
    assert grade(3) == "3, expected a letter and a claim, like 'A N1.1'"


def test_an_example_is_refused_with_the_fault_of_its_test_or_the_hint():
    def told(answer):
        raise Fault("too small") if answer < 1 else Fault("too large")

    assert witness(told, "any")(0) == "0: too small"
    grade = witness(lambda x: x > 1, "a number above 1")
    assert [grade(x) for x in (2, 1, "b")] == [
        None,
        "1, expected a number above 1",
        "b, expected a number above 1",
    ]


def test_what_is_no_distribution_is_told_apart():
    halves, near = [0.5, 0.25, 0.25], [0.5, 0.499]
    refused(
        ("the sum is 0.999, expected 1; qd.normalize(q)", as_distribution, near),
        ("3 numbers, expected 2 probabilities", as_distribution, halves, 2),
        ("a table of shape (2, 2), expected 2", as_distribution, np.eye(2), 2),
        ("a probability is negative, or no number", as_distribution, [1.5, -0.5]),
        ("a probability is negative, or no number", as_distribution, [np.nan, 1]),
        ("expected probabilities, a list of numbers", as_distribution, "half"),
        error=Fault,
    )


RIGHT = [
    (0.5, [0.5, 0.5004, np.float32(0.5), np.array(0.5), [0.5], Fraction(1, 2)]),
    (0.5, ["1/2", ".5", "0.5", "2^-1", " exp(0)/2 "]),
    (0.8, ["80%", "80 %", "80 per cent", "80 percent", "0,8", ".8 nats"]),
    (1365.0, ["1,365", "1365 texts", "1,365 texts"]),
    (2 / 3, [0.67, 0.667, "2/3", np.float32(0.6667)]),
    (0.6776, [0.68, 0.678, ".68"]),
    (-1 / 30, [-0.033, "-1/30"]),
    (0.0, [1e-4, 0]),
]


@pytest.mark.parametrize(("expected", "answers"), RIGHT)
def test_a_number_is_right_however_it_is_written_and_well_rounded(expected, answers):
    grade = number(expected, 1e-3)
    assert [answer for answer in answers if grade(answer) is not None] == []


@pytest.mark.parametrize(
    ("expected", "answer", "words"),
    [
        (0.6776, 0.67, "close; give the term, or more digits"),
        (0.965132, 0.96713215599, "close, but off by 0.002"),
        (69.0, 68.97, "too small"),
        (0.5, 0.51, "too large"),
        (0.3, -0.3, "the sign is the other one"),
        (0.3, -0.6, "-2 times the right value"),
        (0.3, 30, "100 times the right value: these are percent"),
        (0.3, 0.7, "1 minus the right value"),
        (0.3, 1 / 0.3, "1 over the right value"),
        (3.3, 4.3, "right up to a constant, 1"),
        (3.0, 3 / np.log(2), "this is in bits; logarithms are natural here"),
        (0.0, 2.0, "too large"),
        (0.5, np.inf, "not a finite number"),
    ],
)
def test_a_wrong_number_is_told_how_it_is_wrong(expected, answer, words):
    assert number(expected, 1e-9)(answer) == f"{answer}: {words}"


def test_what_is_not_one_number_is_refused():
    for answer in ("half", "x", "1,5", "", ".5 bits", 10**400, [0.5, 0.5], [], 0.5j):
        fault = str(number(0.5, 1e-3)(answer))
        assert fault.endswith("; Python computes a term without quotes")


CASES = [(np.array([0.3, 1.2]), 0.25), (np.array([2.0, 0.1]), 0.5)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x, a: x**a + 1e-6, "close, but off by up to 1e-06; do not round"),
        (lambda x, a: 1.5 * x**a, "1.5 times the right value"),
        (lambda x, a: x**a + 0.3, "right up to a constant, 0.3"),
        (lambda x, a: a**x, "right with its arguments exchanged"),
        (lambda x, a: x, "too large for some arguments, too small for others"),
    ],
)
def test_a_wrong_function_is_told_how_it_is_wrong(answer, words):
    said = str(function(lambda x, a: x**a, CASES, 1e-9)(answer))
    assert said.startswith("your function of ([0.3 1.2], 0.25) gave ")
    assert said.endswith(f": {words}")


def test_functions_are_compared_on_every_input():
    def cumulated(x):
        x += x * (x - 1)  # which changes its argument
        return x

    def forgot(x):
        x**2

    def stub(x):
        """To be filled in."""
        return None

    grade = function(lambda x: x**2, [(np.array([1.0, 2.0]),)], 1e-9)
    for answer in (lambda x: x * x, lambda x: [1, 4], cumulated):
        assert grade(answer) is None
    for answer, words in (
        (lambda x: 1, "expected shape (2,)"),
        (lambda x: "1 4", "gave 1 4, expected numbers, not text"),
        (lambda x: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (forgot, "gave None: end it with `return` and the value"),
        (2, "2, expected a function: its name, without arguments"),
    ):
        assert words in str(grade(answer))
    with pytest.raises(NotAttempted):
        grade(stub)


# --- what a lecture shows -----------------------------------------------------------


@pytest.fixture
def published():
    """What a running IPython is given to show."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
    yield shell.display_pub.outputs
    InteractiveShell.clear_instance()


def test_a_claim_is_printed_in_lines_that_begin_below_the_sentence(capsys):
    claim("N8.16 " + "word " * 12 + "abc " + "BLEU-2 " * 6)  # whole at a hyphen
    first, second = capsys.readouterr().out.splitlines()
    assert first == "N8.16  " + "word " * 12 + "abc"
    assert second == "       " + " ".join(["BLEU-2"] * 6)
    claim("""T2.1 one
    and  more""")
    assert capsys.readouterr().out == "T2.1  one and more\n"


def test_a_notebook_shows_claims_and_tables_as_markdown(published, capsys):
    claim("T2.1 the *sum* is $1$")
    table = "| $n$ | QDisc |\n| --- | --- |\n| 1 | 0.5 |\n| 2 | 0.25 |"
    tabulate(("$n$", "QDisc"), (1, 0.5), (2, 0.25))
    assert [shown["data"] for shown in published] == [
        {
            "text/plain": "T2.1  the *sum* is $1$",
            "text/markdown": "**T2.1** the *sum* is $1$",
        },
        {
            "text/plain": "$n$  QDisc\n---  -----\n1    0.5\n2    0.25",
            "text/markdown": table,
        },
    ]
    assert capsys.readouterr().out == ""
    refused(("argument 2 is shorter", tabulate, ("n", "QDisc"), (1,)))
