"""The exercises of the lectures, the kinds of graders, and what a lecture shows."""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from processes import python
from refusals import refused

import qdtheory as qd
from qdtheory.course import check, claim, grading, tabulate
from qdtheory.course.answers import is_compatible, temper_tokens
from qdtheory.course.exercises import EXERCISES, evaluated


class Unprintable:
    def __str__(self):
        raise RuntimeError("no text")


WRONG = (
    *(Unprintable(), "no", "?", [], {}, np.inf, -1234.5, np.full((3, 2), np.nan)),
    *([[1], [1, 2]], lambda: 1, lambda *_: "text"),
    *(lambda *_: 1 / 0, object, np),
)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_nothing_is_no_attempt_and_a_wrong_answer_is_refused(exercise, capsys):
    check(exercise, None)
    for answer in (*WRONG, *"ABCD"):
        check(exercise, answer)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"{exercise} not attempted"
    refusals = [line for line in others if line.startswith(f"{exercise} not yet: ")]
    assert len(refusals) == len(others) == len(WRONG) + 4


def test_an_unknown_exercise_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"no exercise '99.1'; there are: 01.0, 01.1"):
        check("99.1", None)


def test_an_expression_has_what_numpy_imports_late():
    # In this process NumPy has imported all.
    script = """
from qdtheory.course.exercises import evaluated
print(evaluated("(lambda x: x.mean())(np.ones(2))"))
"""
    assert python("-c", script) == "1.0\n"


def test_a_pair_that_is_not_shown_compatible_is_told_as_its_verdict():
    refused(
        ("undecided: All models", is_compatible, "5", "-x**2"),
        ("incompatible: g'", is_compatible, "log(x)", "-x**2"),
        error=grading.Fault,
    )


def temper_unordered(p, beta):
    """Tempered tokens in the order aa, ba, ab, bb."""
    return temper_tokens(p, beta)[[0, 2, 1, 3]]


# What a reader might type, and what is said, beside the mistakes of the table.
SAID = [
    ("03.2", [0.2] * 5, "[0.2, 0.2, 0.2, 0.2, 0.2]: all are equal, which every pair"),
    ("03.2", [0.5, 0.2, 0.1, 0.1, 0.1], "below the frontier: the optimum at weight "),
    ("03.2", [*[0.2001] * 4, 0.1996], "they differ by 0.0005, expected .001 or more"),
    ("04.2", 2, 'expected a formula in x as text, like "sqrt(x)"'),
    ("04.2", lambda x: 3 * x, "the pair is incompatible: g' is not a falling line"),
    ("05.2", np.array([1, 1, 0, 1, 1, 2, 1, 1]) / 8, "moved, expected 1/4 or more"),
    ("01.2", [0.4, 0.1, 0.3, 0.2], "a and b are equally likely first tokens"),
    ("02.2", [0, -1], "g'' is -3.3 at .55, expected 0 or more: g is not convex"),
    ("06.2", [np.eye(3), [0.25] * 4], "K has shape (3, 3), expected (4, 4)"),
    ("07.2", ["ab", "ab", "ba"], "BLEU-1 is 1, and 1 with the other reference; it"),
    ("08.2", [0.5, 0.3, 0.15, 0.05], "diversity by 0, expected both to rise"),
    ("09.2", [[1 / 8] * 8] * 2, "they are 0 apart, expected .2"),
    ("01.1", temper_unordered, "the right numbers in another order"),
    ("20.3", lambda d: 1 + (d > 0.6) * 2, "right at both values, but the objective is"),
    ("20.3", 3, 'expected a formula of D as text, like "log(D)", or a function'),
    ("20.3", "D*(1 - D)", "the reward D*(1 - D) falls"),
    ("14.3", [[1 / 8] * 8], "expected (p, q), each eight numbers of sum 1"),
    # What only looks right: the last one is an instance of statement D.
    ("01.2", {"aa": 0.2501, "ba": 0.25, "ab": 0.4999, "bb": 0}, ""),
    ("20.4", "D N20.7", ""),
]


@pytest.mark.parametrize(("exercise", "answer", "words"), SAID)
def test_a_wrong_answer_gets_words_that_lead_on(exercise, answer, words, capsys):
    check(exercise, answer)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{exercise} not yet: ")
    assert words in printed


def top_gap(p):
    """Distance of the two greatest probabilities that differ."""
    return np.diff(np.unique(p))[-1]


UNLIKE = {"aa": 0.251, "ba": 0.499, "ab": 0.25, "bb": 0}
# Right answers as different people type them.
RIGHT = [
    *(("04.2", x) for x in ("log(x) + 2*x", "2x + ln x", "3 log x + 6x - 1")),
    *(("04.2", lambda x, f=f: f(x) + 2 * x) for f in (np.log, math.log, jnp.log)),
    *(("20.3", x) for x in ("1 + 2*log(D/(1-D))", r"1 + 2\log\frac{D}{1 - D}")),
    *(("03.0", x) for x in ("94.1%", "0,941", "= 16/17", ".64/.68", [16 / 17])),
    *(("20.1", x) for x in (np.float32(-1 / 30), jnp.array(-1 / 30, "float32"))),
    *(("01.2", x) for x in ("0.251, 0.25, 0.499, 0", [[0.251, 0.25], [0.499, 0]])),
    *(("01.2", x) for x in (UNLIKE, pd.Series(UNLIKE), [0, 0.499, 0.25, 0.251])),
    ("03.1", lambda p: pd.Series(-1.5 / (p == p.max()).sum() ** 2 / top_gap(p))),
    ("05.2", np.array([0, 2, 0, 1, 2, 1, 1, 1]).reshape(2, 2, 2) / 8),
    ("09.1", lambda p: (p + 1 / len(p))[:, None] / 2),
    ("09.2", pd.DataFrame(np.eye(8)[[2, 5]])),
    *(("07.2", (few, "aa", "bbbbb")) for few in ("aaaa", [*"aaaa"])),
]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_a_right_answer_is_right_in_any_spelling(exercise, answer, capsys):
    check(exercise, answer)
    assert capsys.readouterr().out == f"{exercise} right\n"


KINDS = {"number", "function", "witness", "statement"}


@pytest.mark.parametrize("exercise", [e for e, x in EXERCISES.items() if "cases" in x])
def test_each_argument_of_a_function_varies_over_the_cases(exercise):
    cases = evaluated(EXERCISES[exercise]["cases"])
    for values in zip(*cases, strict=True):
        assert len(set(map(repr, values))) > 1


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_mistake_is_wrong_and_gets_its_own_hint(exercise, capsys):
    assert len(KINDS & EXERCISES[exercise].keys()) == 1
    for mistake in EXERCISES[exercise].get("mistakes", ()):
        assert mistake["hint"]
        texts = [mistake[k] for k in ("number", "function") if k in mistake]
        wrong = texts and evaluated(texts[0])
        check(exercise, wrong if texts else mistake["formula"])
        assert capsys.readouterr().out == f"{exercise} not yet: {mistake['hint']}\n"


@pytest.mark.parametrize("text", ["__import__('os')", "np.__dict__", "(x := 1)"])
def test_an_expression_reads_values_and_does_nothing_else(text):
    with pytest.raises(ValueError, match="may not stand in an expression"):
        evaluated(text)


# --- graders ---------------------------------------------------------------------


def test_near_beta_0_both_temperatures_agree_only_if_all_texts_are_possible():
    """Statement B of exercise 01.3, and what its hypothesis is for."""
    for p, apart in ((0.4, 0.3, 0.2, 0.1), 0), ((0.5, 0, 0.25, 0.25), 1 / 6):
        p = np.array(p)
        gap = temper_tokens(p, 1e-9) - qd.temper(p, 1e-9)
        np.testing.assert_allclose(np.abs(gap).max(), apart, atol=1e-6)


def test_a_statement_is_right_with_a_claim_that_refutes_it():
    known = (grading.digest("00.1", f"C N1.{n}") for n in (1, 2))
    grade = grading.statement("00.1", *known)
    right = ["C N1.1", " c n1.2 ", "C: N1.1", "CN1.1.", ("C", "N1.1"), "N1.1 C"]
    right += ["C N1.1 N1.2", "c because of n1.1, by a search", "C N 1.1", "(C), N1.1"]
    wrong = ["A N1.1", "C N1.3", "C", "N1.1", "C N1.1 N1.3", "C D N1.1", "C N11", ""]
    wrong += ["C or D, N1.1", "C/D N1.1", "not C but N1.1"]
    assert [answer for answer in right + wrong if grade(answer) is None] == right
    assert grade(3) == "3, expected a letter and a claim, like 'A N1.1'"


def test_an_example_is_refused_with_the_fault_of_its_test_or_the_hint():
    def told(answer):
        raise grading.Fault("too small") if answer < 1 else grading.Fault("too large")

    assert grading.witness(told, "any")(0) == "0: too small"
    grade = grading.witness(lambda x: x > 1, "a number above 1")
    said = [None, *(f"{x}, expected a number above 1" for x in (1, "b"))]
    assert [grade(x) for x in (2, 1, "b")] == said


def test_what_is_no_distribution_is_told_apart():
    halves, near = [0.5, 0.25, 0.25], [0.5, 0.499]
    as_distribution = grading.as_distribution
    refused(
        ("the sum is 0.999, expected 1; qd.normalize(q)", as_distribution, near),
        ("3 numbers, expected 2 probabilities", as_distribution, halves, 2),
        ("a table of shape (2, 2), expected 2", as_distribution, np.eye(2), 2),
        ("a probability is negative, or no number", as_distribution, [np.nan, 1]),
        ("expected probabilities, a list of numbers", as_distribution, "half"),
        error=grading.Fault,
    )


NUMBERS = [
    (0.5, [0.5004, np.float32(0.5), np.array(0.5), [0.5], Fraction(1, 2), "2^-1"]),
    (0.8, ["80%", "80 %", "80 per cent", "80 percent", "0,8", ".8 nats"]),
    (1365.0, ["1,365", "1365 texts", "1,365 texts"]),
    *((2 / 3, [0.67, "2/3", np.float32(0.6667)]), (0.6776, [0.68, 0.678, ".68"])),
    *((-1 / 30, [-0.033, "-1/30"]), (0.0, [1e-4, 0])),
]


@pytest.mark.parametrize(("expected", "answers"), NUMBERS)
def test_a_number_is_right_however_it_is_written_and_well_rounded(expected, answers):
    grade = grading.number(expected, 1e-3)
    assert [answer for answer in answers if grade(answer) is not None] == []


@pytest.mark.parametrize(
    ("expected", "answer", "words"),
    [
        (69.0, 68.97, "too small"),
        (0.3, -0.3, "the sign is the other one"),
        (0.3, -0.6, "-2 times the right value"),
        (0.3, 30, "100 times the right value: these are percent"),
        (0.3, 0.7, "1 minus the right value"),
        (0.3, 1 / 0.3, "1 over the right value"),
        (3.3, 4.3, "right up to a constant, 1"),
        (3.0, 3 / np.log(2), "this is in bits; logarithms are natural here"),
        (0.5, np.inf, "not a finite number"),
    ],
)
def test_a_wrong_number_is_told_how_it_is_wrong(expected, answer, words):
    assert grading.number(expected, 1e-9)(answer) == f"{answer}: {words}"


def test_what_is_not_one_number_is_refused():
    for answer in ("half", "x", "1,5", "", ".5 bits", 10**400, [0.5, 0.5], [], 0.5j):
        fault = str(grading.number(0.5, 1e-3)(answer))
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
    said = str(grading.function(lambda x, a: x**a, CASES, 1e-9)(answer))
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

    grade = grading.function(lambda x: x**2, [(np.array([1.0, 2.0]),)], 1e-9)
    for answer in (lambda x: x * x, lambda x: [1, 4], cumulated):
        assert grade(answer) is None
    for answer, words in (
        (lambda x: 1, "expected shape (2,)"),
        (lambda x: "1 4", "gave 1 4, expected real numbers"),
        (lambda x: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (forgot, "gave None: end it with `return` and the value"),
        (2, "2, expected a function: its name, without arguments"),
    ):
        assert words in str(grade(answer))
    with pytest.raises(grading.NotAttempted):
        grade(stub)


# --- what a lecture shows -----------------------------------------------------------


def test_a_notebook_shows_claims_and_tables_as_markdown(capsys):
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
    claim("T2.1 the *sum* is $1$")
    tabulate(("$n$", "QDisc"), (1, 0.5), (2, 0.25))
    shown = [output["data"]["text/markdown"] for output in shell.display_pub.outputs]
    InteractiveShell.clear_instance()
    table = "| $n$ | QDisc |\n| --- | --- |\n| 1 | 0.5 |\n| 2 | 0.25 |"
    assert shown == ["**T2.1** the *sum* is $1$", table]
    assert capsys.readouterr().out == ""
    refused(("argument 2 is shorter", tabulate, ("n", "QDisc"), (1,)))
