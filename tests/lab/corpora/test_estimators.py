"""Estimators from samples, against their exact means over all samples and closed forms.

Distances of Bhattacharyya, draws of k answers, Vendi scores, compression, bootstrap.
"""

from functools import partial

import numpy as np
import pytest
from lab import corpora, metrics
from lab.corpora import estimate_bhattacharyya
from referees.enumerated_batches import batches
from refusals import refused
from scipy import stats
from scipy.optimize import brentq

import qdtheory as qd
from qdtheory.text import as_corpus

approx = pytest.approx

Q, UTILITIES = np.array([0.6, 0.3, 0.1]), np.array([1.0, 5.0, 9.0])
FEATURES = np.array([[1.0, 0], [0.6, 0.8], [0, 1]])


def expectation(n, estimate):
    """The exact mean of a function of n labels drawn from Q."""
    samples, chances = batches(Q, n)
    return chances @ [estimate(sample) for sample in samples.tolist()]


@pytest.mark.claim("N25.4", "N25.5", "N25.6")
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (5, 3), (5, 4)])
def test_estimators_of_k_draws_are_unbiased(n, k):
    for estimate, expected in (
        (lambda s: corpora.distinct_k(s, k), metrics.distinct_k(Q, k)),
        (lambda s: corpora.pass_at_k(n, s.count(1), k), 1 - (1 - Q[1]) ** k),
    ):
        assert expectation(n, estimate) == approx(float(expected), abs=1e-12)
    utility = corpora.utility_k
    for x in (0.0, 0.8, 1.0):
        found = expectation(n, lambda s, x=x: utility(s, UTILITIES[s], k, x))
        exact = float(metrics.utility_k(Q, UTILITIES, k, x))
        assert found == approx(exact, abs=1e-12)
    for classes in ([["a", "b"], ["a", "b"], ["c"]], as_corpus(["a b", "a b", "c"])):
        assert corpora.distinct_k(classes, 2) == approx(5 / 3)


@pytest.mark.claim("N25.11", "N25.16")
@pytest.mark.parametrize("n", [2, 5])
def test_entropies_of_samples_are_biased_downwards(n):
    """That of order 2 by a known share; of labels by half their number over n."""
    kernel, vendi = FEATURES @ FEATURES.T, metrics.vendi_score
    of_sample = corpora.vendi_score
    second = expectation(n, lambda s: 1 / of_sample(FEATURES[s], 2))
    assert second == approx((1 - 1 / n) / float(vendi(Q, kernel, 2)) + 1 / n, abs=1e-12)
    first = expectation(n, lambda s: np.log(of_sample(FEATURES[s])))
    assert first < float(np.log(vendi(Q, kernel)))
    bias = expectation(n, corpora.semantic_entropy) - float(qd.entropy(Q))
    assert -1.6 / n < bias < -0.5 / n
    assert corpora.semantic_entropy(["x"]) == 0


@pytest.mark.claim("N25.12")
@pytest.mark.parametrize("order", [0.5, 1, 2, np.inf])
def test_vendi_equals_the_eigenvalues_of_the_matrix_of_cosines(order):
    x = np.random.default_rng(0).normal(size=(40, 6)) + 0.7
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    expected = float(metrics.vendi_score(np.full(40, 1 / 40), unit @ unit.T, order))
    assert corpora.vendi_score(x, order) == approx(expected, rel=1e-9)


@pytest.mark.claim("N25.19")
def test_repeated_texts_compress_better():
    words = np.random.default_rng(0).integers(0, 50, (200, 8)).astype(str)
    varied, ratio = list(map(" ".join, words.tolist())), corpora.compression_ratio
    for method in ("lz78", "gzip"):
        assert ratio(varied[:20] * 10, method) > 1.3 * ratio(varied, method)


def test_the_bootstrap_of_a_mean():
    corpus = as_corpus(["a " * n for n in np.random.default_rng(0).integers(1, 9, 60)])
    found = corpora.bootstrap_interval(
        lambda c: float(c.lengths.mean()), corpus, num_resamples=4000
    )
    error = corpus.lengths.std() / 60**0.5
    # 4,000 resamples: a standard deviation to 1.1 %, the percentiles to 0.04 of it.
    assert found.standard_error == approx(error, rel=0.05)
    ends = stats.norm.interval(0.95, found.value, error)
    assert (found.low, found.high) == approx(ends, abs=0.2 * error)


# -- Bhattacharyya's distance --------------------------------------------------------


def sampled(p, q, size, rng):
    """Log-probabilities of texts of P and of Q, the four arguments."""
    logs = np.log([p, q])
    return [row for law in (p, q) for row in logs[:, rng.choice(len(p), size, p=law)]]


def laws(rng, size, scale):
    raw = np.exp(rng.normal(scale=scale, size=(2, size)))
    return raw / raw.sum(axis=1, keepdims=True)


def cantelli(c, mean, share):
    return mean - c - np.sqrt(share * (1 - c * c))


@pytest.mark.claim("N13.2")
def test_the_estimate_is_equation_3_with_the_error_of_many_samples():
    """Its bias is the expansion's; that of all samples is, too: see the blind spots."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    rng, every = np.random.default_rng(4), []
    for _ in range(400):
        x_p, x_q, y_p, y_q = logs = sampled(p, q, 200, rng)
        every.append(estimate_bhattacharyya(*logs))
    one, other = np.exp((x_q - x_p) / 2).mean(), np.exp((y_p - y_q) / 2).mean()
    assert every[-1].value == approx(-np.log(one * other) / 2, rel=1e-12)
    assert every[-1].bias == approx(np.expm1(2 * every[-1].value) / 400, rel=1e-12)
    error = np.mean([found.standard_error for found in every])
    assert error == approx(np.std([found.value for found in every]), rel=0.15)


@pytest.mark.claim("N13.23")
@pytest.mark.parametrize(("scale", "size"), [(0.1, 30), (1, 2), (3, 1000), (8, 30)])
def test_the_interval_covers_whatever_the_laws(scale, size):
    """500 intervals at level .8 miss at most 100 + 4 deviations of 9."""
    rng, missed = np.random.default_rng([size, int(10 * scale)]), 0
    for _ in range(500):
        p, q = laws(rng, 40, scale)
        found = estimate_bhattacharyya(*sampled(p, q, size, rng), level=0.8)
        assert 0 <= found.low <= found.high
        missed += not found.low <= -np.log(np.sqrt(p * q).sum()) <= found.high
    assert missed <= 136


@pytest.mark.claim("N13.23")
def test_the_limits_are_those_of_the_three_inequalities():
    """Cantelli's by a root search."""
    rng = np.random.default_rng(3)
    for scale in (0.3, 1, 2, 4):
        x_p, x_q, y_p, y_q = sampled(*laws(rng, 20, scale), 300, rng)
        x_p, x_q = x_p[:200], x_q[:200]
        found = estimate_bhattacharyya(x_p, x_q, y_p, y_q, level=0.9)
        delta, lowest, highest = 0.1 / 6, [], [1]
        for terms in (np.exp((x_q - x_p) / 2), np.exp((y_p - y_q) / 2)):
            mean, size = terms.mean(), len(terms)
            highest.append(mean + np.sqrt(2 * np.log(1 / delta) / size))
            lowest.append(delta * mean)
            share = (1 - delta) / (delta * size)
            if mean > np.sqrt(share):
                top = 1 / np.sqrt(1 + share)  # the right side is least there
                lowest.append(brentq(cantelli, 0, top, (mean, share), 1e-15))
        assert found.low == approx(-np.log(min(highest)), abs=1e-12)
        assert found.high == approx(-np.log(max(lowest)), abs=1e-10)


def test_disjoint_laws_and_equal_laws():
    inf = np.inf
    apart = estimate_bhattacharyya([-1.0] * 9, [-inf] * 9, [-inf] * 9, [-1.0] * 9)
    assert (apart.value, apart.high, apart.bias) == (inf, inf, inf)
    assert 0 <= apart.low < inf
    same = estimate_bhattacharyya([-1.0], [-1.0], [-2.0], [-2.0])
    assert (same.value, same.low, same.bias) == (0, 0, 0)
    far = estimate_bhattacharyya([-1] * 4, [-3000] * 4, [-3000.0], [-1.0])
    assert far.value == approx(1499.5)


def test_bad_input(as_a_user):
    def distance(**change):
        names = "real_log_p", "real_log_q", "model_log_p", "model_log_q"
        logs = {name: [-1, -2] for name in names}
        return lambda: estimate_bhattacharyya(**logs | change)

    inf, nan = float("inf"), float("nan")
    distinct, vendi = corpora.distinct_k, corpora.vendi_score
    interval = partial(corpora.bootstrap_interval, len)
    refused(
        ("real_log_p: expected the log-prob", distance(real_log_p=[])),
        ("real_log_q: expected one number a", distance(real_log_q=[-1.0])),
        ("model_log_q: expected log-prob", distance(model_log_q=[-1.0, nan])),
        ("text 1 has probability 0", distance(real_log_p=[-1.0, -inf])),
        ("level: expected a number between 0 and 1, got 1", distance(level=1)),
        ("at least one sample", distinct, [], 2),
        ("from 1 to 2, the number of samples, got 0", distinct, [1, 2], 0),
        ("one a sample", corpora.utility_k, [1, 2], [1.0], 2),
        ("patience", corpora.utility_k, [1], [1.0], 1, 2),
        ("from 0 to num_samples", corpora.pass_at_k, 5, [6], 2),
        ("one vector a text", vendi, np.ones(3)),
        ("other than 0", vendi, np.zeros((2, 2))),
        ("expected finite vectors", vendi, np.array([[1.0, inf], [1, 1]])),
        ("positive number", vendi, np.eye(2), -1),
        ('"lz78" or "gzip"', corpora.compression_ratio, ["a b"], "zip"),
        ("at least one corpus after the metric", interval),
        ("got 95", partial(interval, level=95), ["a"]),
        ("from 2 on, got 1", partial(interval, num_resamples=1), ["a"]),
    )
    refused(("a single string", distinct, "abc", 2), error=TypeError)
