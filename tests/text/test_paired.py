"""BLEU and ROUGE of pairs, against NLTK and the definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referees.ngram_counts import counted
from referees.nltk_bleu import nltk_bleu, nltk_scores

from qdtheory import text

SENTENCES = st.lists(st.sampled_from("abc"), max_size=7)
WHOLE = ["a", "b"]  # a corpus needs a token
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), max_size=5).map(
    lambda pairs: [(WHOLE, WHOLE), *pairs]
)


def drawn(seed=0, num_pairs=40, words=6):
    """Random sentences, and copies with some of the words replaced."""
    rng = np.random.default_rng(seed)
    pairs = []
    for length in rng.integers(1, 12, num_pairs):
        tokens = rng.integers(0, words, length)
        other = np.where(
            rng.random(length) < 0.3, rng.integers(0, words, length), tokens
        )
        pairs.append(
            (list(map(str, other[: rng.integers(1, 13)])), list(map(str, tokens)))
        )
    return [list(side) for side in zip(*pairs)]


def rouge_by_hand(candidate, reference, n):
    """As in rouge-score's `_score_ngrams`: clipped matches, 0 if a side is empty."""
    ours, theirs = (counted([x], n) for x in (candidate, reference))
    shared = (ours & theirs).total()
    precision = shared / max(ours.total(), 1)
    recall = shared / max(theirs.total(), 1)
    both = precision + recall
    return recall, precision, 2 * precision * recall / both if both else 0.0


@pytest.mark.parametrize("smoothing", ["epsilon", None])
def test_paired_bleu_is_that_of_nltk(smoothing):
    candidates, references = drawn()
    alone = [[reference] for reference in references]
    scores = text.paired_bleu_scores(candidates, references, 4, smoothing)
    expected = nltk_scores(alone, candidates, 4, smoothing)
    assert scores == pytest.approx(expected, abs=1e-12)
    mean = text.paired_bleu(candidates, references, 4, smoothing)
    np.testing.assert_allclose(mean, scores.mean(axis=0), rtol=1e-13)
    pooled = text.paired_bleu(candidates, references, 4, smoothing, "pooled")
    expected = nltk_bleu(alone, candidates, 4, smoothing)
    assert pooled == pytest.approx(expected, abs=1e-12)


@given(PAIRS)
def test_rouge_is_its_definition(pairs):
    candidates, references = (list(side) for side in zip(*pairs))
    scores = text.rouge_scores(candidates, references, 3)
    for n in (1, 2, 3):
        expected = [rouge_by_hand(*pair, n) for pair in pairs]
        for name, column in zip(("recall", "precision", "f1"), zip(*expected)):
            found = getattr(scores, name)[:, n - 1]
            np.testing.assert_allclose(found, column, atol=1e-14)
    mean = text.rouge(candidates, references, 3)
    np.testing.assert_allclose(mean.f1, scores.f1.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(mean.recall, scores.recall.mean(axis=0), atol=1e-14)


@given(PAIRS)
def test_one_pair_is_bleu_against_one_reference(pairs):
    candidates, references = (list(side) for side in zip(*pairs))
    found = text.paired_bleu_scores(candidates, references, 3)
    for row, candidate, reference in zip(found, candidates, references):
        if candidate and reference:
            alone = text.bleu_scores([candidate], [reference], 3)[0]
            np.testing.assert_allclose(row, alone, atol=1e-14)


def test_a_perfect_reconstruction_has_1_and_shares_decide():
    same = ["a b c d", "b b a c"]
    assert text.paired_bleu(same, same).tolist() == [1, 1, 1, 1]
    found = text.rouge(same, same)
    assert (found.recall == 1).all()
    assert (found.precision == 1).all()
    # Swapped, each reconstruction is another's text.
    swapped = text.rouge(same, same[::-1], 3)
    assert swapped.f1[2] == 0
    assert text.bleu(same, same[::-1]).tolist() == [1, 1, 1, 1]
    # Recall and precision change places with the sides.
    one, other = (
        text.rouge(["ab", "a"], ["ab a", "a"], 1),
        text.rouge(["ab a", "a"], ["ab", "a"], 1),
    )
    assert one.recall.tolist() == other.precision.tolist()


def test_an_unknown_word_matches_nothing():
    found = text.rouge(["x y a"], ["z w a"], 2)
    assert found.recall.round(12).tolist() == [round(1 / 3, 12), 0]


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: text.paired_bleu(["a"], ["a", "b"]),
            ValueError,
            "at the same place; got 1 candidates and 2 references",
        ),
        (lambda: text.rouge(["a"], ["a"], 0), ValueError, "expected 1 or more, got 0"),
        (
            lambda: text.paired_bleu(["a"], ["a"], smoothing="add"),
            ValueError,
            'expected None or "epsilon"',
        ),
        (
            lambda: text.paired_bleu(["a"], ["a"], aggregate="sum"),
            ValueError,
            'expected "mean" or "pooled"',
        ),
        (
            lambda: text.paired_bleu(["a"], ["a"], 2.5),
            TypeError,
            "max_order: expected an integer",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
