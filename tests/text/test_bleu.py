"""BLEU and Self-BLEU of corpora against NLTK, published values and fractions."""

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import accumulate, combinations, combinations_with_replacement, product
from operator import mul

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models import GUIDE, GUIDES, TROOPS
from referees.ngram_counts import ngrams_of
from referees.nltk_bleu import nltk_bleu, nltk_scores, others
from refusals import refused

from qdtheory import text
from qdtheory.text import as_corpus, bleu, bleu_scores, self_bleu, self_bleu_scores

# Both sides exponentiate a mean of logarithms of the same fractions.
close = partial(pytest.approx, rel=0, abs=1e-12)
smoothings = st.sampled_from([None, "epsilon"])


def assert_as_nltk(candidates, references, max_order, smoothing):
    """Scores of sentences and of pooled counts; without references, Self-BLEU."""
    how = max_order, smoothing
    if references is None:
        scores, known = self_bleu_scores(candidates, *how), others(candidates)
        pooled = self_bleu(candidates, *how, aggregate="pooled")
    else:
        scores = bleu_scores(candidates, references, *how)
        pooled = bleu(candidates, references, *how, aggregate="pooled")
        known = [references] * len(candidates)
    # A blank one is no length; without another, nothing matches.
    known = [[*filter(None, some)] or [[]] for some in known]
    assert scores == close(nltk_scores(known, candidates, *how))
    assert pooled == close(nltk_bleu(known, candidates, *how))


# Few short sentences of few words: ties, repeated sentences, sentences of one token or
# of none and sentences shorter than the order are all common.
words = st.lists(st.sampled_from("abc"), max_size=7)
texts = st.lists(words, min_size=1, max_size=6).filter(any)
pools = st.lists(words, min_size=3, max_size=3)
rows = st.lists(st.sampled_from(range(3)), min_size=2, max_size=7)
repeating = st.builds(lambda pool, row: [pool[i] for i in row], pools, rows).filter(any)


@settings(max_examples=2 * settings().max_examples)
@given(texts | repeating, texts | st.none(), smoothings)
def test_bleu_and_self_bleu_are_those_of_nltk(candidates, references, smoothing):
    assume(references or len(candidates) > 1)
    assert_as_nltk(candidates, references, 4, smoothing)


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_an_empty_text_has_bleu_0_and_is_no_length_for_others(smoothing):
    candidates = [[], ["a"], ["a", "b", "c"], []]
    references = [["a", "b"], [], ["a", "c", "c"]]
    assert_as_nltk(candidates, references, 2, smoothing)
    scores = bleu_scores(candidates, references, 2, smoothing)
    assert scores[[0, 3]].tolist() == [[0, 0], [0, 0]]
    # Of the lengths 2 and 3 the first is closer to 1.
    assert scores[1, 0] == np.exp(-1)
    # Two equal empty texts do not match either: nothing is there to match.
    assert self_bleu_scores(["", "", "a"], 1).tolist() == [[0], [0], [0]]
    kept = as_corpus(candidates, empty="skip")
    assert (bleu_scores(kept, references, 2, smoothing) == scores[1:3]).all()


# -- published values ----------------------------------------------------------------


def test_examples_of_papineni_et_al_2002():
    cats, the = ["the cat is on the mat", "there is a cat on the mat"], ["the " * 7]
    assert bleu(the, cats, 2, smoothing=None).tolist() == [2 / 7, 0]
    p1, p2 = np.array([[17 / 18, 8 / 14], [10 / 17, 1 / 13]])
    # The second has 14 tokens, the shortest reference 16.
    brevity = np.exp([0, 1 - 16 / 14])
    found = bleu_scores([GUIDE, TROOPS], GUIDES, 2, smoothing=None).T
    assert found == close(np.array([p1, np.sqrt(p1 * p2)]) * brevity)
    # Seven tokens, of which one is in references of eight or eleven; to four digits.
    found = bleu([["a", *"bcdefg"]], [["a"] * 11, ["a"] * 8], 1)
    assert found[0] == pytest.approx(0.8669 / 7, rel=1e-4)


# -- between orders, in fractions over every text of four tokens (notebook 13) ---------

SHORT = [*product("ab", repeat=4)]
ORDERS = [*combinations(range(1, 5), 2)]


def matched(one, references, n):
    """Clipped matches of a text, and whether some of its n-grams are clipped."""
    ours = Counter(ngrams_of(one, n))
    real = [Counter(ngrams_of(reference, n)) for reference in references]
    most = {g: max(counts[g] for counts in real) for g in ours}
    clipped = any(0 < most[g] < ours[g] for g in ours)
    return sum(min(ours[g], most[g]) for g in ours), clipped


@pytest.mark.claim("N13.25", "N13.27")
@pytest.mark.parametrize("number", [1, 2])
def test_bleu_of_one_order_bounds_that_of_the_next(number):
    rises = Counter()
    for references in combinations_with_replacement(SHORT[:8], number):
        scores = bleu_scores(SHORT, references, smoothing=None)
        for one, row in zip(SHORT, scores, strict=True):
            matches, clips = zip(*(matched(one, references, n) for n in range(1, 5)))
            parts = (Fraction(x, 5 - n) for n, x in enumerate(matches, 1))
            power = [*accumulate(parts, mul)]  # BLEU-n to the power n
            assert row == pytest.approx([x ** (1 / n) for n, x in enumerate(power, 1)])
            for m, n in ORDERS:
                assert power[n - 1] <= power[m - 1]
                of_n, of_m = power[n - 1] ** m, power[m - 1] ** n
                rises[any(clips)] += of_n > of_m
                if number == 1:
                    assert of_n <= of_m * Fraction(4, 5 - n) ** (m * (n - m))
    assert rises[False] == 0 < rises[True]


def test_self_bleu_of_many_texts_has_a_least_value():
    for lot in combinations_with_replacement(product("ab", repeat=2), 5):
        found = sum(matched(*pair, 1)[0] for pair in zip(lot, others(lot)))
        assert Fraction(found, 10) >= 1 - Fraction(2, 5)
        assert self_bleu(lot, 1, None) == pytest.approx([found / 10])


@pytest.mark.parametrize("digits", [2, 3, 4])
def test_printed_bleu_obeys_the_bound_and_an_entry_beyond_it_does_not(digits):
    half = Fraction(1, 2 * 10**digits)  # what a printed number may be off
    for reference in SHORT:
        for row in bleu_scores(SHORT, [reference], smoothing=None):
            printed = [Fraction(f"{x:.{digits}f}") for x in row]
            low = [max(x - half, 0) for x in printed]
            high = [x + half for x in printed]
            assert all(low[n - 1] ** n <= high[m - 1] ** m for m, n in ORDERS)
            beyond = Fraction(f"{max(row[2], 0.01) ** 0.75 + 0.03:.4f}")
            assert (beyond - Fraction(1, 20_000)) ** 4 > high[2] ** 3


# -- arguments -----------------------------------------------------------------------


@given(texts, texts, smoothings, st.integers(1, 3))
def test_prepared_references_serve_all_lower_orders(ours, theirs, smoothing, n):
    known = text.prepare_references(theirs, 4)
    expected = bleu_scores(ours, theirs, 4, smoothing)[:, :n]
    assert (bleu_scores(ours, known, n, smoothing) == expected).all()
    assert (bleu(ours, known, n, smoothing) == expected.mean(0)).all()
    assert (self_bleu(ours, n, smoothing, against=known) == expected.mean(0)).all()


def test_bad_input(as_a_user):
    known, one = text.prepare_references(["a"], 2), as_corpus(["a b", ""], empty="skip")
    refused(
        ("at least one sentence with a token", bleu, ["a"], [""]),
        ("max_order: expected 1 or more", bleu, ["a"], ["a"], 0),
        ("None or \"epsilon\", got 'add-1'", bleu, ["a"], ["a"], 1, "add-1"),
        ("\"pooled\", got 'sum'", partial(self_bleu, aggregate="sum"), ["a", "b"]),
        ("prepared for orders up to 2, got max_order=3", bleu, ["a"], known, 3),
        ("Self-BLEU needs another sentence", self_bleu, one),
        ("at least 2 candidates", self_bleu_scores, ["a b"]),
    )
    whole = "max_order: expected an integer, got float"
    refused((whole, bleu, ["a"], ["a"], 2.0), error=TypeError)
