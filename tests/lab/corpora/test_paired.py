"""BLEU and ROUGE of pairs, against NLTK and the definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import corpora
from referees.ngram_counts import counted
from referees.nltk_bleu import nltk_bleu, nltk_scores
from refusals import refused

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
    scores = corpora.paired_bleu_scores(candidates, references, 4, smoothing)
    expected = nltk_scores(alone, candidates, 4, smoothing)
    assert scores == pytest.approx(expected, abs=1e-12)
    mean = corpora.paired_bleu(candidates, references, 4, smoothing)
    np.testing.assert_allclose(mean, scores.mean(axis=0), rtol=1e-13)
    pooled = corpora.paired_bleu(candidates, references, 4, smoothing, "pooled")
    expected = nltk_bleu(alone, candidates, 4, smoothing)
    assert pooled == pytest.approx(expected, abs=1e-12)


@given(PAIRS)
def test_rouge_is_its_definition(pairs):
    candidates, references = (list(side) for side in zip(*pairs))
    scores = corpora.rouge_scores(candidates, references, 3)
    for n in (1, 2, 3):
        expected = [rouge_by_hand(*pair, n) for pair in pairs]
        for name, column in zip(("recall", "precision", "f1"), zip(*expected)):
            found = getattr(scores, name)[:, n - 1]
            np.testing.assert_allclose(found, column, atol=1e-14)
    mean = corpora.rouge(candidates, references, 3)
    np.testing.assert_allclose(mean.f1, scores.f1.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(mean.recall, scores.recall.mean(axis=0), atol=1e-14)


def test_bad_input(as_a_user):
    paired, one = corpora.paired_bleu, ["a"]
    refused(
        ("got 1 candidates and 2 references", paired, one, ["a", "b"]),
        ("expected 1 or more, got 0", corpora.rouge, one, one, 0),
        ('expected None or "epsilon"', paired, one, one, 4, "add"),
        ('expected "mean" or "pooled"', paired, one, one, 4, None, "sum"),
    )
    refused(("max_order: expected an in", paired, one, one, 2.5), error=TypeError)
