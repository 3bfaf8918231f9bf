"""MS-Jaccard against a count with dictionaries, and its bounds."""

from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qdtheory as qd
from qdtheory.text import as_corpus, ms_jaccard

SENTENCES = st.lists(
    st.lists(st.sampled_from("abc"), min_size=2, max_size=6) | st.just([]),
    min_size=1,
    max_size=6,
).filter(any)


def index(left, right, n):
    """Equation 1 of Montahaei et al. 2019, in fractions."""
    rates = []
    for texts in (left, right):
        grams = Counter(
            tuple(text[i : i + n]) for text in texts for i in range(len(text) - n + 1)
        )
        rates.append({g: Fraction(count, len(texts)) for g, count in grams.items()})
    both = [(rates[0].get(g, 0), rates[1].get(g, 0)) for g in {*rates[0], *rates[1]}]
    return sum(map(min, both)) / sum(map(max, both))


@given(left=SENTENCES, right=SENTENCES)
def test_equals_the_count_in_fractions(left, right):
    found = ms_jaccard(left, right, 2)
    first, second = (float(index(left, right, n)) for n in (1, 2))
    assert found == pytest.approx([first, (first * second) ** 0.5], abs=1e-12)


@given(left=SENTENCES, right=SENTENCES)
def test_symmetric_and_blind_to_copies_of_a_whole_corpus(left, right):
    found = ms_jaccard(left, right, 2)
    assert ms_jaccard(right, left, 2) == pytest.approx(found, abs=1e-12)
    assert ms_jaccard(left * 3, right * 2, 2) == pytest.approx(found, abs=1e-12)
    assert ms_jaccard(left, left, 2) == pytest.approx([1, 1], abs=1e-12)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()


def test_the_example_of_its_authors():
    references = [
        "It is a guide to action that ensures that the military will forever heed "
        "Party commands",
        "It is the guiding principle which guarantees the military forces always "
        "being under the command of the Party",
        "It is the practical guide for the army always to heed the directions of the "
        "party",
    ]
    candidates = [
        "It is a guide to action which ensures that the military always obeys the "
        "commands of the party",
        "he read the book because he was interested in world history",
    ]
    found = ms_jaccard(candidates, references, 5)
    # Printed with two places, two of them rounded and the last one cut.
    assert found[2:] == pytest.approx([0.17, 0.13, 0.09], abs=0.01)


def test_nothing_in_common_is_zero():
    assert ms_jaccard(["a b"], ["c d"], 2).tolist() == [0, 0]
    assert ms_jaccard(["a b", "b c"], ["b a", "c b"], 2)[1] == 0


def test_other_words_and_integers():
    # Each side numbers its words in its own order.
    left, right = as_corpus([[3, 1, 2], [1, 2]]), as_corpus([[2, 3, 1], [9, 1, 2]])
    expected = float(index([[3, 1, 2], [1, 2]], [[2, 3, 1], [9, 1, 2]], 1))
    assert ms_jaccard(left, right, 1)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a b"], ["a b"], 0), ValueError, "expected 1 or more, got 0"),
        ((["a b"], ["a b"], 1.5), TypeError, "expected an integer, got float"),
        ((["a b"], ["a b c"], 3), ValueError, "no sentence has 3 tokens"),
        ((["a b c"], ["a b"], 3), ValueError, "no sentence has 3 tokens"),
        (([], ["a b"], 1), ValueError, "at least one sentence"),
        (("a b", ["a b"], 1), TypeError, "expected a list of sentences"),
    ],
)
def test_bad_input(as_a_user, arguments, error, message):
    with pytest.raises(error, match=message):
        ms_jaccard(*arguments)


@pytest.mark.claim("N16.25")
@pytest.mark.parametrize("length", [3, 5, 7])
def test_alternating_texts_differ_in_unigrams_alone(length):
    texts = np.array([[0, 1] * length, [1, 0] * length])[:, :length].tolist()
    for d in (
        partial(qd.text.cnd, estimator="plug-in"),
        lambda a, b, n: 1 - qd.text.jaccard_index(a, b, n),
    ):
        assert float(d([texts[0]], [texts[1]], 2)) == pytest.approx(0, abs=1e-15)
        assert float(d([texts[0]], [texts[1]], 1)) > 0
