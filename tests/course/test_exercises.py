"""Wrong answers are refused, and mistakes that many make recognised, with a reason."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from processes import python

from qdtheory.course import check
from qdtheory.course.answers.common import temper_tokens
from qdtheory.course.answers.lecture_04 import is_compatible
from qdtheory.course.exercises import EXERCISES, evaluated, names_of
from qdtheory.course.grading import Fault


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
    assert len(others) == len(WRONG) + 4
    assert all(line.startswith(f"{exercise} not yet: ") for line in others)


def test_an_unknown_exercise_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"no exercise '99.1'; there are: 01.0, 01.1"):
        check("99.1", None)


def test_a_process_loads_the_answers_of_one_lecture_and_what_numpy_imports_late():
    # In this process NumPy has imported all.
    script = """
import sys, numpy
from qdtheory.course import check
from qdtheory.course.exercises import evaluated
evaluated("(lambda x: x.mean())(np.ones(2))", {"np": numpy})
check("04.0", 1)
print(*sorted(m for m in sys.modules if "answers." in m))
"""
    *_, loaded = python("-c", script).splitlines()
    answers = "qdtheory.course.answers."
    assert loaded.split() == [f"{answers}common", f"{answers}lecture_04"]


@pytest.mark.parametrize(
    ("f", "said"), [("5", "undecided: All models"), ("log(x)", "incompatible: g'")]
)
def test_a_pair_that_is_not_shown_compatible_is_told_as_its_verdict(f, said):
    with pytest.raises(Fault, match=said):
        is_compatible(f, "-x**2")


def temper_unordered(p, beta):
    """Tempered tokens in the order aa, ba, ab, bb."""
    return temper_tokens(p, beta)[[0, 2, 1, 3]]


# What a reader might type, and what is said, beside the mistakes of the table.
SAID = [
    ("03.2", [0.2] * 5, "[0.2, 0.2, 0.2, 0.2, 0.2]: all are equal, which every pair"),
    ("03.2", [0.5, 0.5, 0, 0, 0], "a probability is 0, expected five positive"),
    ("03.2", [0.5, 0.2, 0.1, 0.1, 0.1], "below the frontier: the optimum at weight "),
    ("03.2", [*[0.2001] * 4, 0.1996], "they differ by 0.0005, expected .001 or more"),
    ("04.2", 2, 'expected a formula in x as text, like "sqrt(x)"'),
    ("04.2", lambda x: 3 * x, "the pair is incompatible: g' is not a falling line"),
    ("04.2", "x**3", "the pair is incompatible: g' is not a falling line in this f"),
    ("04.3", "A T3.1", "expected another statement, or another claim"),
    ("05.2", [1.0, *[0] * 7], "a bigram has 1, expected 1/4"),
    ("05.2", np.array([1, 1, 0, 1, 1, 2, 1, 1]) / 8, "moved, expected 1/4 or more"),
    ("01.2", [0.4, 0.1, 0.3, 0.2], "a and b are equally likely first tokens"),
    ("01.2", [0.5, 0.2, 0.2, 0.1], "the greedy text has 1 of the mode's probability"),
    ("01.2", [0.25 + 1e-12, 0.25, 0.5 - 1e-12, 0], "equally likely first tokens"),
    ("01.2", [0.2525, 0.2525, 0.495, 0], "has 0.5101 of the mode's probability"),
    ("02.2", [0, -1], "g'' is -3.3 at .55, expected 0 or more: g is not convex"),
    ("02.2", (-3, 2), "g is not rational: "),
    ("06.2", [np.eye(3), [0.25] * 4], "K has shape (3, 3), expected (4, 4)"),
    ("06.2", [2 * np.eye(4), [0.25] * 4], "K has not 1 on its diagonal"),
    ("06.2", [np.eye(4) - np.eye(4)[::-1], [0.25] * 4], "entry outside [0, 1]"),
    ("06.2", [np.triu(np.ones((4, 4))), [0.25] * 4], "K is not symmetric"),
    ("07.2", ["ab", "a", "ab"], "a text has fewer than two tokens"),
    ("07.2", ["ab", "ab", "ba"], "BLEU-1 is 1, and 1 with the other reference; it"),
    ("08.2", [0.5, 0.3, 0.15, 0.05], "diversity by 0, expected both to rise"),
    ("09.2", [[1 / 8] * 8] * 2, "they are 0 apart, expected .2"),
    ("09.2", [[1 / 8] * 8, [1, *[0] * 7]], "a bigram is 0.75 likelier in one"),
    ("09.2", [1, *[0] * 7], "expected two rows of eight numbers"),
    ("01.1", temper_unordered, "the right numbers in another order"),
    ("20.3", "log(D)", "-0.6931 at D = .5, expected 1"),
    ("20.3", lambda d: 1 + (d > 0.6) * 2, "right at both values, but the objective is"),
    ("20.3", "D*(1 - D)", "the reward D*(1 - D) falls"),
    ("20.3", 3, 'expected a formula of D as text, like "log(D)", or a function'),
    ("14.3", [[1 / 8] * 8], "expected (p, q), each eight numbers of sum 1"),
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


HALVES = [0.5, 0, 0.25, 0.25], [0, 0.5, 0.25, 0.25]
UNLIKE = {"aa": 0.251, "ba": 0.499, "ab": 0.25, "bb": 0}
# Right answers as different people type them.
RIGHT = [
    *(("04.2", x) for x in ("log(x) + 2*x", "2x + ln x", "3 log x + 6x - 1")),
    *(
        ("04.2", lambda x, log=log: log(x) + 2 * x)
        for log in (np.log, math.log, jnp.log)
    ),
    *(("20.3", x) for x in ("1 + 2*log(D/(1-D))", r"1 + 2\log\frac{D}{1 - D}")),
    ("20.3", lambda d: 1 + 2 * jax.scipy.special.logit(d)),
    ("09.0", "\N{MINUS SIGN}1/50"),
    *(("03.0", x) for x in ("94.1%", "0,941", "= 16/17", ".64/.68", [16 / 17])),
    *(("20.1", x) for x in (np.float32(-1 / 30), jnp.array(-1 / 30, "float32"))),
    ("01.1", lambda p, beta: temper_tokens(p, beta).reshape(2, 2)),
    ("01.1", lambda p, beta: dict(zip("abcd", temper_tokens(p, beta), strict=True))),
    ("01.1", lambda p, beta=1.0: temper_tokens(p, beta).astype("float32")),
    *(("01.2", x) for x in ("0.251, 0.25, 0.499, 0", [[0.251, 0.25], [0.499, 0]])),
    *(("01.2", x) for x in (UNLIKE, pd.Series(UNLIKE), [0, 0.499, 0.25, 0.251])),
    ("03.1", lambda p: [-1.5 / (p == p.max()).sum() ** 2 / top_gap(p)]),
    ("03.1", lambda p: pd.Series(-1.5 / (p == p.max()).sum() ** 2 / top_gap(p))),
    ("03.2", "[1/4, 1/4, 1/4, 1/8, 1/8]"),
    ("03.2", np.array([np.float32([0.6, *[0.1] * 4])])),
    ("05.2", np.array([0, 2, 0, 1, 2, 1, 1, 1]).reshape(2, 2, 2) / 8),
    ("08.2", [Fraction(51, 100), Fraction(28, 100), Fraction(16, 100), 0.05]),
    ("09.1", lambda p: ((x + 1 / len(p)) / 2 for x in p)),
    ("09.1", lambda p: (p + 1 / len(p))[:, None] / 2),
    ("09.2", pd.DataFrame(np.eye(8)[[2, 5]])),
    ("09.2", {"P": np.eye(8)[2], "Q": np.eye(8)[5]}),
    *(("07.2", (few, "aa", "bbbbb")) for few in ("aaaa", [*"aaaa"])),
    ("22.3", {"aa": 0.4, "bb": 0.1, "ab": 0.2, "ba": 0.3}),
    *(("25.3", (*HALVES, classes)) for classes in ([1, 1, 2, 2], "aabb")),
]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_a_right_answer_is_right_in_any_spelling(exercise, answer, capsys):
    check(exercise, answer)
    assert capsys.readouterr().out == f"{exercise} right\n"


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("01.2", {"aa": 0.2501, "ba": 0.25, "ab": 0.4999, "bb": 0}),
        ("20.4", "D N20.7"),  # an instance of statement D
        ("25.3", (*HALVES, [0, 0.4, 1, 1])),
    ],
)
def test_what_only_looks_right_is_refused(exercise, answer, capsys):
    check(exercise, answer)
    assert capsys.readouterr().out.startswith(f"{exercise} not yet: ")


KEYS = {"number", "function", "witness", "statement"}


def test_an_entry_has_one_kind_and_each_mistake_says_something():
    mistakes = [m for entry in EXERCISES.values() for m in entry.get("mistakes", ())]
    assert len(mistakes) >= 60
    assert all(len(mistake["hint"]) > 15 for mistake in mistakes)
    assert all(len(KEYS & entry.keys()) == 1 for entry in EXERCISES.values())


@pytest.mark.parametrize("exercise", [e for e, x in EXERCISES.items() if "cases" in x])
def test_each_argument_of_a_function_varies_over_the_cases(exercise):
    cases = evaluated(EXERCISES[exercise]["cases"], names_of(exercise))
    for values in zip(*cases, strict=True):
        assert len(set(map(repr, values))) > 1


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_mistake_is_wrong_and_gets_its_own_hint(exercise, capsys):
    for mistake in EXERCISES[exercise].get("mistakes", ()):
        texts = [mistake[k] for k in ("number", "function") if k in mistake]
        wrong = texts and evaluated(texts[0], names_of(exercise))
        check(exercise, wrong if texts else mistake["formula"])
        assert capsys.readouterr().out == f"{exercise} not yet: {mistake['hint']}\n"


@pytest.mark.parametrize("text", ["__import__('os')", "np.__dict__", "(x := 1)"])
def test_an_expression_reads_values_and_does_nothing_else(text):
    with pytest.raises(ValueError, match="may not stand in an expression"):
        evaluated(text, {})
