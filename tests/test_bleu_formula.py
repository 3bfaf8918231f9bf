"""BLEU from counts, against NLTK's sentence_bleu on the texts that give them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from qdtheory.bleu_formula import (
    bleu_of_matches,
    closest_length,
    matches,
    require_smoothing,
)

pytestmark = pytest.mark.filterwarnings(r"ignore:\s*The hypothesis contains 0 counts")
texts = st.lists(st.integers(0, 2), min_size=1, max_size=6)


def clipped(candidate, references, n):
    """Clipped matches of order n, counted in lists."""

    def grams(text):
        return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]

    return sum(
        min(grams(candidate).count(g), max(grams(r).count(g) for r in references))
        for g in set(grams(candidate))
    )


@settings(max_examples=60)
@given(texts, st.lists(texts, min_size=1, max_size=3), st.booleans())
def test_the_formula_is_that_of_nltk(candidate, references, smoothed):
    found = np.array([[clipped(candidate, references, n)] for n in (1, 2, 3)])
    lengths = np.unique([len(r) for r in references])
    closest = closest_length(np.array([len(candidate)]), lengths)
    scores = bleu_of_matches(
        matches(found, np.array([len(candidate)]), closest),
        "epsilon" if smoothed else None,
    )
    method = SmoothingFunction().method1 if smoothed else None
    for n, (score,) in enumerate(scores, start=1):
        weights = (1 / n,) * n
        theirs = sentence_bleu(references, candidate, weights, method)
        # Without smoothing NLTK puts the smallest float for a count of 0.
        assert score == pytest.approx(theirs if theirs > 1e-50 else 0, abs=1e-14)


def test_of_two_lengths_equally_close_the_shorter_counts():
    assert closest_length(np.array([4]), np.array([3, 5])).tolist() == [3]
    assert closest_length(np.array([4]), np.array([5])).tolist() == [5]


def test_an_empty_text_scores_nothing():
    nothing = matches(np.zeros((2, 1)), np.array([0]), np.array([3]))
    for smoothing in (None, "epsilon"):
        assert bleu_of_matches(nothing, smoothing).tolist() == [[0], [0]]


def test_an_unknown_smoothing_is_refused(as_a_user):
    with pytest.raises(ValueError, match=r"expected None or .epsilon., got 'add'"):
        require_smoothing("add")
