"""Means over samples of fixed size against the exact wing's expectations.

Two spaces of an LSTM oracle: every text of three of four words, and every text of one
to three. A mean over 400 samples must lie within 4 of its standard errors; over all
checks here chance alone would break that once in a hundred seeds.
"""

from collections.abc import Callable

import jax
import numpy as np
import pytest
from referees.sample_means import counts_of, expectations

import qdtheory as qd
from qdtheory.metrics.bleu import expected_corpus_bleu
from qdtheory.text import (
    as_corpus,
    bleu,
    cnd,
    coverage_rate,
    distinct,
    negative_repetition_rate,
    ngram_counts,
    self_bleu,
)

# Thousands of calls: their types are checked in the metrics' own tests.
pytestmark = pytest.mark.usefixtures("as_a_user")

REPEATS = 400
SIZES = 6, 3  # candidates, references


@pytest.fixture(scope="module", params=["one length", "three lengths"])
def oracle(request):
    """A space with a model and real distribution of two LSTMs."""
    mixed = request.param == "three lengths"
    space = qd.TextSpace(vocab_size=4, lengths=(1, 2, 3) if mixed else 3)
    q, p = (
        np.asarray(
            qd.LSTMLanguageModel.random(
                key,
                vocab_size=5 if mixed else 4,
                embedding_size=8,
                hidden_size=8,
                end_token=4 if mixed else None,
            ).probabilities(space)
        )
        for key in jax.random.split(jax.random.key(3), 2)
    )
    return space, q, p


def samples(space, q, p, sizes=SIZES, enough: Callable = lambda *index: True):
    """Corpora of candidates and references, as often as 400 times are enough."""
    rng = np.random.default_rng(0)
    drawn = 0
    while drawn < REPEATS:
        index = [rng.choice(space.num_texts, n, p=x) for n, x in zip(sizes, (q, p))]
        if enough(*index):
            drawn += 1
            yield [
                as_corpus([row[row >= 0].tolist() for row in space.tokens[rows]])
                for rows in index
            ]


def assert_means(found, expected):
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / len(found) ** 0.5
    assert (error > 0).all()
    assert (abs(found.mean(axis=0) - np.array(expected)) <= 4 * error).all()


# -- BLEU ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_bleu_and_self_bleu(oracle, smoothing):
    space, q, p = oracle
    size, num_references = SIZES
    found = [
        [*bleu(ours, theirs, 3, smoothing), *self_bleu(ours, 3, smoothing)]
        for ours, theirs in samples(*oracle)
    ]
    expected = [
        *qd.expected_bleu(space, q, p, 3, num_references, smoothing),
        *qd.expected_self_bleu(space, q, 3, size - 1, smoothing),
    ]
    assert_means(found, expected)


def test_self_bleu_against_a_second_sample(oracle):
    space, q, _ = oracle
    found = [
        self_bleu(ours, 2, against=second, smoothing=None)
        for ours, second in samples(space, q, q)
    ]
    assert_means(found, qd.expected_self_bleu(space, q, 2, SIZES[1]))


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_pooled_bleu(oracle, smoothing):
    space, q, p = oracle
    sizes = 3, 1
    found = [
        bleu(ours, theirs, 2, smoothing, aggregate="pooled")
        for ours, theirs in samples(*oracle, sizes)
    ]
    expected = expected_corpus_bleu(space, q, p, 2, sizes[1], sizes[0], smoothing)
    assert_means(found, expected)


# -- n-grams -------------------------------------------------------------------------


def sentence_averaged(space, q, n):
    """The law of an n-gram of a random text among those with n tokens."""
    counts = counts_of(space, n)
    totals = counts.sum(axis=1)
    shares = counts[totals > 0] / totals[totals > 0, None]
    return q[totals > 0] @ shares / q[totals > 0].sum()


ESTIMATORS = "plug-in", "pairs", "sentence-pairs"


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_rates(oracle, n):
    space, q, p = oracle

    def two_long(*index):
        return all((space.text_lengths[rows] >= n).sum() > 1 for rows in index)

    found = []
    for corpora in samples(*oracle, enough=two_long):
        ours, theirs = (ngram_counts(corpus, n) for corpus in corpora)
        found.append(
            [
                coverage_rate(ours, theirs, n),
                coverage_rate(ours, theirs, n, "sentence-pairs"),
                *(negative_repetition_rate(ours, n, e) for e in ESTIMATORS),
                *(cnd(ours, theirs, n, e) for e in ESTIMATORS),
                distinct(ours, n),
            ]
        )
    (mean_q, square_q, pairs_q, kinds), (mean_p, square_p, pairs_p, _) = (
        expectations(space, x, n, size) for x, size in zip((q, p), SIZES)
    )
    ours, theirs = (sentence_averaged(space, x, n) for x in (q, p))
    coverage = mean_q @ mean_p
    expected = [
        coverage,
        ours @ theirs,
        -square_q,
        -pairs_q,
        -ours @ ours,
        square_q + square_p - 2 * coverage,
        pairs_q + pairs_p - 2 * coverage,
        ((ours - theirs) ** 2).sum(),
        kinds,
    ]
    assert_means(found, expected)
    # The bias of the plug-in is no rounding: without it NRR would miss.
    error = np.std(found, axis=0)[2] / REPEATS**0.5
    assert square_q - pairs_q > 4 * error


@pytest.mark.parametrize("n", [1, 2])
def test_targets(oracle, n):
    """For one length the pairs' expectations are the exact wing's own values."""
    space, q, p = oracle
    exact_q, exact_p = (np.asarray(space.ngram_distribution(x, n)) for x in (q, p))
    (mean_q, _, pairs_q, kinds), (mean_p, _, pairs_p, _) = (
        expectations(space, x, n, size) for x, size in zip((q, p), SIZES)
    )
    exact = [
        float(qd.coverage_rate(exact_q, exact_p)),
        float(qd.negative_repetition_rate(exact_q)),
        float(qd.cnd(exact_q, exact_p)),
    ]
    coverage = mean_q @ mean_p
    found = [coverage, -pairs_q, pairs_q + pairs_p - 2 * coverage]
    if len(space.lengths) == 1:
        assert found == pytest.approx(exact, abs=1e-14)
        # E distinct = sum of 1 - (1 - Pr(a text holds g))^S over S (L - n + 1).
        absent = 1 - q @ (counts_of(space, n) > 0)
        total = SIZES[0] * (space.max_length - n + 1)
        assert kinds == pytest.approx((1 - absent ** SIZES[0]).sum() / total, abs=1e-14)
    elif n == 1:  # the pooled law of few sentences is not that of many
        assert min(abs(np.array(found) - exact)) > 1e-4
