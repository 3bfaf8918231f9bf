"""The Bhattacharyya distance estimated from log-probabilities of samples."""

import numpy as np
import pytest
from lab.corpora import estimate_bhattacharyya
from refusals import refused
from scipy.optimize import brentq


def sampled(p, q, size, rng):
    """Log-probabilities of texts of P and of Q, the four arguments."""
    with np.errstate(divide="ignore"):
        logs = np.log([p, q])
    return [row for law in (p, q) for row in logs[:, rng.choice(len(p), size, p=law)]]


def laws(rng, size, scale):
    raw = np.exp(rng.normal(scale=scale, size=(2, size)))
    return raw / raw.sum(axis=1, keepdims=True)


def exact(p, q):
    return -np.log(np.sqrt(p * q).sum())


@pytest.mark.claim("N13.2")
def test_the_estimate_is_equation_3_and_its_bias_is_the_expansions():
    """By hand; that the mean is the expansion's is shown with the blind spots."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    rng = np.random.default_rng(0)
    found = estimate_bhattacharyya(*sampled(p, q, 50, rng))
    rng = np.random.default_rng(0)
    first, second = (rng.choice(3, 50, p=law) for law in (p, q))
    one = sum(np.sqrt(q[i] / p[i]) for i in first) / 50
    other = sum(np.sqrt(p[i] / q[i]) for i in second) / 50
    assert found.value == pytest.approx(-np.log(one * other) / 2, rel=1e-12)
    at = found.bias * 50 / np.expm1(2 * found.value)
    assert at == pytest.approx(0.5, rel=1e-12)


@pytest.mark.claim("N13.23")
@pytest.mark.parametrize("scale", [0.1, 1, 3, 8])
@pytest.mark.parametrize("size", [2, 30, 1000])
def test_the_interval_covers_whatever_the_laws(scale, size):
    """500 intervals at level .8 miss at most 100 + 4 deviations of 9."""
    rng = np.random.default_rng([size, int(10 * scale)])
    missed = 0
    for _ in range(500):
        p, q = laws(rng, 40, scale)
        found = estimate_bhattacharyya(*sampled(p, q, size, rng), level=0.8)
        assert 0 <= found.low <= found.high
        missed += not found.low <= exact(p, q) <= found.high
    assert missed <= 136


@pytest.mark.claim("N13.23")
def test_the_limits_are_those_of_the_three_inequalities():
    """Cantelli's by a root search."""
    rng = np.random.default_rng(3)
    for scale in (0.3, 1, 2, 4):
        p, q = laws(rng, 20, scale)
        x_p, x_q, y_p, y_q = sampled(p, q, 300, rng)
        x_p, x_q = x_p[:200], x_q[:200]
        found = estimate_bhattacharyya(x_p, x_q, y_p, y_q, level=0.9)
        delta, lowest, highest = 0.1 / 6, [], []
        for terms in (np.exp((x_q - x_p) / 2), np.exp((y_p - y_q) / 2)):
            mean, size = terms.mean(), len(terms)
            highest.append(mean + np.sqrt(2 * np.log(1 / delta) / size))
            lowest.append(delta * mean)
            share = (1 - delta) / (delta * size)

            def cantelli(c, mean=mean, share=share):
                return mean - c - np.sqrt(share * (1 - c * c))

            if cantelli(0) > 0:
                top = 1 / np.sqrt(1 + share)  # the right side is least there
                lowest.append(brentq(cantelli, 0, top, xtol=1e-15))
        assert found.low == pytest.approx(-np.log(min(1, *highest)), abs=1e-12)
        assert found.high == pytest.approx(-np.log(max(lowest)), abs=1e-10)


def test_the_standard_error_is_that_of_many_samples():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    rng = np.random.default_rng(4)
    found = [estimate_bhattacharyya(*sampled(p, q, 200, rng)) for _ in range(400)]
    spread = np.std([x.value for x in found])
    assert np.mean([x.standard_error for x in found]) == pytest.approx(spread, rel=0.15)


def test_disjoint_laws_and_equal_laws():
    inf = np.inf
    apart = estimate_bhattacharyya([-1.0] * 9, [-inf] * 9, [-inf] * 9, [-1.0] * 9)
    assert (apart.value, apart.high, apart.bias) == (inf, inf, inf)
    assert 0 <= apart.low < inf
    same = estimate_bhattacharyya([-1.0], [-1.0], [-2.0], [-2.0])
    assert (same.value, same.low, same.bias) == (0, 0, 0)
    far = estimate_bhattacharyya([-1] * 4, [-3000] * 4, [-3000.0], [-1.0])
    assert far.value == pytest.approx(1499.5)


def test_bad_input_is_refused(as_a_user):
    names = "real_log_p", "real_log_q", "model_log_p", "model_log_q"

    def changed(**change):
        logs = {name: [-1, -2] for name in names}
        return lambda: estimate_bhattacharyya(**logs | change)

    inf, nan = float("inf"), float("nan")
    unlike = "real_log_p and real_log_q: expected one number a"
    refused(
        ("real_log_p: expected the log-prob", changed(real_log_p=[])),
        (unlike, changed(real_log_q=[-1.0])),
        ("model_log_p: expected log-prob", changed(model_log_p=[0.5, -1.0])),
        ("model_log_q: expected log-prob", changed(model_log_q=[-1.0, nan])),
        ("text 1 has probability 0", changed(real_log_p=[-1.0, -inf])),
        ("got an array of shape (1, 1)", changed(model_log_q=[[-1.0]])),
        ("level: expected a number between 0 and 1, got 1", changed(level=1)),
    )
