"""Each known mistake is wrong, is recognised, and leads on without the answer."""

import numpy as np
import pytest

from qdtheory.course import check
from qdtheory.course.answers import GRADERS
from qdtheory.course.mistakes import MISTAKES

# Some mistakes as a reader would type them, and how the hint begins.
TYPED = [
    ("01.0", 64, "64 texts have exactly three"),
    ("01.1", lambda p, beta: p**beta / (p**beta).sum(), "these are whole texts"),
    ("03.0", np.float32(2 / 3), "a weight of -2 squares"),
    ("04.1", lambda q, p: sum((q**4 - p**4) / 4 - p**3 * (q - p)), "these are the"),
    ("04.2", "log(x)", "log(x) fits SE alone"),
    ("04.2", "log(x)+x", "close: CR counts half"),
    ("04.2", "2*x + 0", "2*x fits NRR alone"),
    ("12.1", lambda shares: -(shares.mean(axis=0) ** 2).sum(), "this is the plug-in"),
    ("24.1", 50.0, "the loss is a share"),
]


@pytest.mark.parametrize(("exercise", "answer", "start"), TYPED)
def test_a_mistake_is_recognised(exercise, answer, start, capsys):
    check(exercise, answer)
    assert capsys.readouterr().out.startswith(f"{exercise} not yet: {start}")


# What is no mistake that anybody knows, with its reason.
REASONS = [
    ("03.2", [0.2] * 5, "[0.2, 0.2, 0.2, 0.2, 0.2]: all are equal, which every pair"),
    ("03.2", [0.3, 0.3, 0.2, 0.1, 0.099], "the sum is 0.999, expected 1"),
    ("03.2", [0.5, 0.5], "2 numbers, expected 5 probabilities"),
    ("03.2", [0.5, 0.6, -0.1, 0, 0], "a probability is negative"),
    ("03.2", [0.5, 0.5, 0, 0, 0], "a probability is 0, expected five positive"),
    ("03.2", "a lot", "expected probabilities, a list of numbers"),
    ("04.2", "ln(x)+2*x", "the natural logarithm is log(x)"),
    ("04.2", "2x", "a product is 2*x"),
    ("04.2", lambda x: 2 * x, 'expected a formula in x as text, like "sqrt(x)"'),
    ("04.2", "x**3", "the pair is incompatible: g' is not a falling line in this f"),
    ("04.3", "A", "A, expected with it the claim that refutes it: 'A N1.1'"),
    ("04.3", "A T3.1", "expected another statement, or another claim"),
    ("04.3", "B T3.12", "expected another statement, or another claim"),
    ("04.3", "T3.12", "expected a letter and a claim"),
]


@pytest.mark.parametrize(("exercise", "answer", "reason"), REASONS)
def test_a_wrong_answer_gets_a_reason_that_leads_on(exercise, answer, reason, capsys):
    check(exercise, answer)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{exercise} not yet: ")
    assert reason in printed


@pytest.mark.parametrize("answer", ["A T3.12", "a, t3.12", " A: T3.12 "])
def test_a_letter_and_its_claim_are_right_however_they_are_typed(answer, capsys):
    check("04.3", answer)
    assert capsys.readouterr().out == "04.3 right\n"


def test_no_letter_is_found_by_four_tries(capsys):
    for exercise in GRADERS:
        for letter in "ABCD":
            check(exercise, letter)
    assert "right" not in capsys.readouterr().out.split()


def test_every_mistake_belongs_to_an_exercise_and_says_something():
    assert MISTAKES.keys() <= GRADERS.keys()
    words = [said for known in MISTAKES.values() for _, said in known]
    assert len(words) >= 60
    assert all(len(said) > 15 for said in words)
