"""What metrics do not see, and by how much their estimates err: every sample listed."""

from itertools import product
from math import comb

import jax
import numpy as np
import pytest
from lab import metrics
from models import draw
from scipy.stats import binom, multinomial

import qdtheory as qd

SPACE = qd.TextSpace(2, 3)


def in_the_kernel(rows, p, seed):
    """P moved along a null vector of the rows, half-way to the edge."""
    kernel = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    move = np.random.default_rng(seed).normal(size=len(kernel)) @ kernel
    return p + move * (-p / move)[move < 0].min() / 2


def every_count(num_draws, p):
    """All counts of three outcomes, with their probabilities."""
    pairs = product(range(num_draws + 1), repeat=2)
    counts = np.array(
        [(a, b, num_draws - a - b) for a, b in pairs if a + b <= num_draws]
    )
    return counts, multinomial.pmf(counts, num_draws, p)


def limit(value, size):
    """Of a function of n that is its limit plus O(1/n), from n and 2n."""
    return 2 * value(2 * size) - value(size)


# -- the first table -----------------------------------------------------------------


@pytest.mark.claim("N13.1")
def test_divergences_prefer_the_real_distribution_and_quality_does_not():
    p, q = draw(1, 8, 2.0), draw(2, 8, 2.0)
    features = qd.ngrams.ngram_matrix(SPACE, 2).T.astype(float)
    worst = {
        qd.divergences.bhattacharyya_distance: 0,
        qd.divergences.jeffreys_divergence: 0,
        metrics.frontier_integral: 0,
        lambda q, p: qd.divergences.renyi_divergence(q, p, 2): 0,
        lambda q, p: -metrics.mauve(q, p): -1,
        lambda q, p: -qd.ms_jaccard(SPACE, q, p, 3)[-1]: -1,
        lambda q, p: metrics.frechet_distance(q, p, features): 0,
        lambda q, p: qd.cross_entropy(p, q): float(qd.entropy(p)),
    }
    for divergence, value in worst.items():
        assert float(divergence(p, p)) == pytest.approx(value, abs=1e-7)
        assert float(divergence(q, p)) > value + 1e-4
    # Power 1.1 has more quality than P, power 0.9 more diversity.
    sharp, flat = (qd.temper(p, beta) for beta in (1.1, 0.9))
    assert qd.cross_entropy(sharp, p) < qd.entropy(p) < qd.entropy(flat)


# -- Bhattacharyya -------------------------------------------------------------------


@pytest.mark.claim("N13.2")
def test_bias_of_the_bhattacharyya_estimate_over_every_sample():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.35, 0.4])
    root = np.sqrt(q / p)

    def bias_times_n(n):
        total = 0.0
        for law, terms in ((p, root), (q, 1 / root)):
            counts, weight = every_count(n, law)
            total += weight @ np.log(counts @ terms / n)
        return n * (-total / 2 - float(qd.divergences.bhattacharyya_distance(q, p)))

    overlap = np.sqrt(p * q).sum()
    expected = (overlap**-2 - 1) / 2
    # The error of the extrapolation is O(n^-2).
    assert limit(bias_times_n, 60) == pytest.approx(expected, rel=1e-3)


# -- blind spots ---------------------------------------------------------------------


@pytest.mark.claim("N13.6")
@pytest.mark.parametrize("max_order", [1, 2])
def test_ms_jaccard_is_blind_in_the_kernel_of_the_ngram_map(max_order):
    p = draw(1, 8, 2.0)
    rows = np.concatenate(
        [qd.ngrams.ngram_matrix(SPACE, n) for n in range(1, max_order + 1)]
    )
    q = in_the_kernel(rows.astype(float), p, seed=2)
    assert float(qd.divergences.total_variation(q, p)) > 1e-3
    found = qd.ms_jaccard(SPACE, q, p, 3)
    np.testing.assert_allclose(found[:max_order], 1, rtol=1e-13)
    assert float(found[-1]) < 1 - 1e-4


@pytest.mark.claim("N13.7")
def test_frechet_is_blind_to_all_but_two_moments():
    p, x = draw(3, 8, 2.0), np.arange(8.0)
    q = in_the_kernel(np.stack([np.ones(8), x, x**2]), p, seed=4)
    assert float(qd.divergences.total_variation(q, p)) > 1e-2
    assert float(metrics.frechet_distance(q, p, x[:, None])) <= 1e-6
    # The third moment is seen, as a feature.
    features = np.stack([x, x**3], axis=1)
    assert float(metrics.frechet_distance(q, p, features)) > 1e-2


@pytest.mark.claim("N13.8")
def test_bias_of_the_frechet_distance_over_every_pair_of_samples():
    p, x = np.array([0.4, 0.35, 0.25]), np.array([0.0, 1.0, 3.0])
    variance = p @ (x - p @ x) ** 2
    product_variance = p @ (x - p @ x) ** 4 - variance**2

    def bias_times_n(n):
        counts, weight = every_count(n, p)
        mean = counts @ x / n
        deviation = np.sqrt(np.maximum(counts @ x**2 / n - mean**2, 0))
        # (m - m')^2 + (s - s')^2 of two independent samples.
        spreads = [weight @ y**2 - (weight @ y) ** 2 for y in (mean, deviation)]
        return n * 2 * sum(spreads)

    expected = 2 * variance + product_variance / (2 * variance)
    assert limit(bias_times_n, 100) == pytest.approx(expected, rel=1e-2)


@pytest.mark.claim("N13.11")
def test_a_short_memory_is_blind_to_long_contexts():
    p = draw(5, 8, 2.0)
    starts = SPACE.tokens[:, 0] == np.arange(2)[:, None]
    rows = np.vstack([starts, qd.ngrams.ngram_matrix(SPACE, 2)]).astype(float)
    q = in_the_kernel(rows, p, seed=6)
    fits = [[metrics.markov_projection(SPACE, x, k) for x in (q, p)] for k in (1, 2)]
    np.testing.assert_allclose(*fits[0], rtol=1e-13)
    assert float(qd.divergences.total_variation(*fits[1])) > 1e-3


# -- cross-entropies of fitted models ------------------------------------------------


@pytest.mark.claim("N13.10")
def test_data_bias_over_every_sample_of_coins():
    # Texts of one token of two: one free parameter, add one to both counts.
    space, p = qd.TextSpace(2, 1), np.array([0.7, 0.3])

    def excess_times_2n(n):
        heads = np.arange(n + 1)
        fits = np.stack([heads + 1, n - heads + 1]) / (n + 2)
        scores = -(p @ np.log(fits))
        return 2 * n * (binom.pmf(heads, n, p[0]) @ scores - float(qd.entropy(p)))

    assert limit(excess_times_2n, 400) == pytest.approx(1, rel=1e-3)
    # The library's fit to counts is this one.
    fit = metrics.markov_projection(space, np.array([7.0, 2.0]), 0, alpha=1.0)
    np.testing.assert_allclose(fit, [8 / 11, 3 / 11], rtol=1e-14)


# -- one text ------------------------------------------------------------------------


@pytest.mark.claim("N13.14")
@pytest.mark.parametrize("seed", range(3))
def test_one_text_has_the_most_of_a_linear_metric(seed):
    p = draw(seed, 8, 2.0)
    points, q = np.eye(8), draw(seed + 50, 8, 2.0)
    for metric in (
        lambda q: -qd.cross_entropy(q, p),
        lambda q: qd.expected_bleu(SPACE, q, p, 2, 2)[1],
    ):
        each = np.array([float(metric(x)) for x in points])
        assert float(metric(q)) == pytest.approx(q @ each, abs=1e-13)
        assert each.max() > float(metric(q))
    assert float(qd.cross_entropy(points[p.argmax()], p)) == -np.log(p.max())


# -- copies of the training set ------------------------------------------------------

TINY = qd.TextSpace(2, 2)


def over_training_sets(metric, p, m):
    """The mean over every sequence of m texts."""
    sets = list(product(range(4), repeat=m))
    weights = [np.prod(p[list(chosen)]) for chosen in sets]
    copies = [np.bincount(chosen, minlength=4) / m for chosen in sets]
    # A batch, so that one shape is compiled.
    return np.array(weights) @ np.asarray(jax.vmap(metric)(np.array(copies)))


@pytest.mark.claim("N13.19")
@pytest.mark.parametrize("m", [1, 3])
def test_linear_metrics_do_not_see_copies(m):
    p = draw(7, 4, 2.0)
    for metric in (
        lambda q: qd.cross_entropy(q, p),
        lambda q: qd.coverage_rate(q, p),
        lambda q: qd.expected_bleu(TINY, q, p, 2, 2)[1],
    ):
        found = over_training_sets(metric, p, m)
        assert found == pytest.approx(float(metric(p)), rel=1e-13)


@pytest.mark.claim("N13.20")
@pytest.mark.parametrize("m", [1, 3])
def test_cnd_sees_copies_by_one_over_m(m):
    p = draw(8, 4, 2.0)
    found = over_training_sets(lambda q: qd.cnd(q, p), p, m)
    assert found == pytest.approx((1 - (p**2).sum()) / m, rel=1e-13)


@pytest.mark.claim("N13.21")
@pytest.mark.parametrize("m", [2, 5])
def test_memory_sees_what_copies_lack(m):
    p = draw(9, 4, 2.0)

    def infinite(order):
        def metric(q):
            return np.inf == qd.cross_entropy(
                p, metrics.markov_projection(TINY, q, order)
            )

        return over_training_sets(metric, p, m)

    # Order 0 lacks a token, order 1 a text: inclusion and exclusion.
    assert infinite(0) == pytest.approx(p[0] ** m + p[3] ** m, rel=1e-12)
    subsets = (np.array(x) for x in product((False, True), repeat=4))
    complete = sum((-1.0) ** (4 - x.sum()) * p[x].sum() ** m for x in subsets)
    assert infinite(1) == pytest.approx(1 - complete, rel=1e-12)


@pytest.mark.claim("N13.22")
def test_copies_repeat_themselves():
    p, m = draw(10, 4, 2.0), 3
    for size in (1, 3, 6):
        found = over_training_sets(
            lambda q, size=size: qd.ngrams.expected_distinct(TINY, q, 2, size), p, m
        )
        # A text of the sample is new unless an earlier one chose the same place of
        # the training set, or another place with the same text.
        expected = 0.0
        for x in p:
            places = [comb(m, j) * x**j * (1 - x) ** (m - j) for j in range(m + 1)]
            absent = [(1 - j / m) ** size for j in range(m + 1)]
            expected += 1 - np.dot(places, absent)
        assert found == pytest.approx(expected / size, rel=1e-12)
        fresh = float(qd.ngrams.expected_distinct(TINY, p, 2, size))
        assert found < fresh or size == 1
