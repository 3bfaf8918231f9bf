"""Implied truths against closed forms, and against models that might beat them."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from lab import metrics
from refusals import refused
from scipy.optimize import brentq

import qdtheory as qd

SCORES = np.array([3.0, 1.0, 2.5, 0.5, 1.5])


@pytest.mark.claim("N25.7")
def test_with_entropy_they_are_the_softmax():
    found = qd.rewards.implied_truths(SCORES, "SE", [0.5, 2.0, 8.0])
    for eta, p, gap in zip(found.prices, found.p, found.gap):
        expected = np.exp(SCORES / eta)
        np.testing.assert_allclose(p, expected / expected.sum(), atol=1e-6)
        assert gap <= 1e-9 * np.ptp(SCORES)


@pytest.mark.claim("N25.7")
def test_with_distinct_k_they_have_the_closed_form():
    k = 5
    found = qd.rewards.implied_truths(
        SCORES, partial(metrics.distinct_k, k=k), [2.0, 5.0]
    )
    for eta, p in zip(found.prices, found.p):

        def model(c, eta=eta):
            left = np.clip((c - SCORES) / (eta * k), 0, 1)
            return 1 - left ** (1 / (k - 1))

        c = brentq(lambda c: model(c).sum() - 1, 0, 3 + float(eta) * k)
        np.testing.assert_allclose(p, model(c), atol=1e-6)


@pytest.mark.claim("N25.7")
def test_pass_at_1_against_pass_at_k():
    right = np.array([0.5, 0.3, 0.15, 0.05])  # the chance that each answer is right

    def pass_at(q, k):
        return jnp.vdot(right, 1 - (1 - q) ** k)

    found = qd.rewards.implied_truths(right, partial(pass_at, k=10), [0.3])
    p = np.asarray(found.p[0])
    gain = right + 0.3 * right * 10 * (1 - p) ** 9
    inside = p > 1e-6
    assert np.ptp(gain[inside]) < 1e-6
    # The answers' own frequencies are not among the family.
    pair = qd.ConcavePair(lambda p: jnp.asarray(right), partial(pass_at, k=10))
    assert qd.check_compatibility(pair, right).compatible is False


def test_bad_input_is_refused(as_a_user):
    truths = qd.rewards.implied_truths
    refused(
        ("scores must be finite", truths, [1.0, -np.inf], "SE", [1.0]),
        ("prices must be positive", truths, SCORES, "SE", [0.0]),
        ("prices must be positive", truths, SCORES, "SE", []),
        ("concave", truths, SCORES, "x**2", [1.0]),
    )
