"""Wrong answers are refused, and mistakes that many make recognised, with a reason."""

import subprocess
import sys

import numpy as np
import pytest

from qdtheory.course import check
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
    assert len(others) == len(WRONG) + 4
    assert all(line.startswith(f"{exercise} not yet: ") for line in others)


def test_an_unknown_exercise_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"no exercise '99.1'; there are: 01.0, 01.1"):
        check("99.1", None)


def test_numpy_imports_at_its_first_call_where_an_expression_calls_it():
    # In this process it has imported all.
    code = "from qdtheory.course.exercises import evaluated; "
    code += "evaluated('(lambda x: x.mean())(np.ones(2))')"
    subprocess.run([sys.executable, "-c", code], check=True)


# What a reader might type, and what is said: first some mistakes that many make.
SAID = [
    ("01.0", 64, "64 texts have exactly three"),
    ("01.1", lambda p, beta: p**beta / (p**beta).sum(), "these are whole texts"),
    ("03.0", np.float32(2 / 3), "a weight of -2 squares"),
    ("04.1", lambda q, p: sum((q**4 - p**4) / 4 - p**3 * (q - p)), "these are the"),
    ("04.2", "log(x)", "log(x) fits SE alone"),
    ("04.2", "log(x)+x", "close: CR counts half"),
    ("04.2", "2*x + 0", "2*x fits NRR alone"),
    ("12.1", lambda shares: -(shares.mean(axis=0) ** 2).sum(), "this is the plug-in"),
    ("24.1", 50.0, "the loss is a share"),
    ("03.2", [0.2] * 5, "[0.2, 0.2, 0.2, 0.2, 0.2]: all are equal, which every pair"),
    ("03.2", [0.5, 0.5], "2 numbers, expected 5 probabilities"),
    ("03.2", [0.5, 0.5, 0, 0, 0], "a probability is 0, expected five positive"),
    ("04.2", lambda x: 2 * x, 'expected a formula in x as text, like "sqrt(x)"'),
    ("04.2", "x**3", "the pair is incompatible: g' is not a falling line in this f"),
    ("04.3", "A", "A, expected with it the claim that refutes it: 'A N1.1'"),
    ("04.3", "A T3.1", "expected another statement, or another claim"),
    ("04.3", "B T3.12", "expected another statement, or another claim"),
    ("04.3", "T3.12", "expected a letter and a claim"),
    ("05.2", [1.0, *[0] * 7], "expected eight numbers of sum 1"),
    ("13.3", [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], "2 numbers, expected 3"),
    ("14.3", [[1 / 8] * 8], "expected (p, q), each eight numbers of sum 1"),
]


@pytest.mark.parametrize(("exercise", "answer", "words"), SAID)
def test_a_wrong_answer_gets_words_that_lead_on(exercise, answer, words, capsys):
    check(exercise, answer)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{exercise} not yet: ")
    assert words in printed


@pytest.mark.parametrize("answer", ["A T3.12", "a, t3.12", " A: T3.12 "])
def test_a_letter_and_its_claim_are_right_however_they_are_typed(answer, capsys):
    check("04.3", answer)
    assert capsys.readouterr().out == "04.3 right\n"


KEYS = {"number", "function", "witness", "statement"}


def test_an_entry_has_one_kind_and_each_mistake_says_something():
    mistakes = [m for entry in EXERCISES.values() for m in entry.get("mistakes", ())]
    assert len(mistakes) >= 60
    assert all(len(mistake["hint"]) > 15 for mistake in mistakes)
    assert all(len(KEYS & entry.keys()) == 1 for entry in EXERCISES.values())


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_mistake_is_wrong_and_gets_its_own_hint(exercise, capsys):
    for mistake in EXERCISES[exercise].get("mistakes", ()):
        texts = [mistake[k] for k in ("number", "function") if k in mistake]
        check(exercise, evaluated(texts[0]) if texts else mistake["formula"])
        assert capsys.readouterr().out == f"{exercise} not yet: {mistake['hint']}\n"


@pytest.mark.parametrize("text", ["__import__('os')", "np.__dict__", "(x := 1)"])
def test_an_expression_reads_values_and_does_nothing_else(text):
    with pytest.raises(ValueError, match="may not stand in an expression"):
        evaluated(text)
