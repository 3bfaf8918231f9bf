"""BLEU and ROUGE of pairs, against NLTK and the definitions written out."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate import bleu_score
from nltk.util import ngrams

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
    ours, theirs = (Counter(ngrams(x, n)) for x in (candidate, reference))
    shared = (ours & theirs).total()
    precision = shared / max(ours.total(), 1)
    recall = shared / max(theirs.total(), 1)
    both = precision + recall
    return recall, precision, 2 * precision * recall / both if both else 0.0


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_paired_bleu_is_that_of_nltk(n):
    candidates, references = drawn()
    smooth = bleu_score.SmoothingFunction().method1
    weights = (1 / n,) * n
    for smoothing, function in (("epsilon", smooth), (None, None)):
        found = text.paired_bleu_scores(candidates, references, n, smoothing)
        for row, candidate, reference in zip(found, candidates, references):
            settings = {"weights": weights, "smoothing_function": function}
            if function is None:
                settings["smoothing_function"] = lambda p_n, **_: p_n
            with np.errstate(all="ignore"):
                expected = nltk_bleu([reference], candidate, settings)
            assert row[-1] == pytest.approx(expected, abs=1e-12)
        mean = text.paired_bleu(candidates, references, n, smoothing)
        np.testing.assert_allclose(mean, found.mean(axis=0), rtol=1e-13)


def nltk_bleu(references, candidate, settings):
    """NLTK's score; without smoothing it is 0 where an order has no match."""
    n = len(settings["weights"])
    counts = [
        bleu_score.modified_precision(references, candidate, k).numerator
        for k in range(1, n + 1)
    ]
    unsmoothed = settings["smoothing_function"].__name__ == "<lambda>"
    if counts[0] == 0 or (unsmoothed and 0 in counts):
        return 0.0
    return bleu_score.sentence_bleu(references, candidate, **settings)


def test_pooled_bleu_is_nltks_corpus_bleu():
    candidates, references = drawn(seed=1)
    found = text.paired_bleu(
        candidates, references, 3, smoothing=None, aggregate="pooled"
    )
    lists = [[reference] for reference in references]
    for n in (1, 2, 3):
        expected = bleu_score.corpus_bleu(lists, candidates, weights=(1 / n,) * n)
        assert found[n - 1] == pytest.approx(expected, abs=1e-12)


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
def test_bad_input():
    with pytest.raises(ValueError, match="got 1 candidates and 2 references"):
        text.paired_bleu(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="at the same place"):
        text.rouge(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="max_order: expected 1 or more, got 0"):
        text.rouge(["a"], ["a"], 0)
    with pytest.raises(ValueError, match='expected None or "epsilon"'):
        text.paired_bleu(["a"], ["a"], smoothing="add")
    with pytest.raises(ValueError, match='expected "mean" or "pooled"'):
        text.paired_bleu(["a"], ["a"], aggregate="sum")
    with pytest.raises(TypeError, match="max_order: expected an integer"):
        text.paired_bleu(["a"], ["a"], 2.5)
