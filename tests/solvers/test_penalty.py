"""The paper's search against a plain loop."""

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.solvers.search import penalty_curve


def test_the_papers_curve_is_sgd_with_momentum():
    # A plain loop with gradients by hand; from this P the start has V(Q) = V(P).
    p = np.array([0.5, 0.25, 0.125, 0.125])
    gains = np.asarray(penalty_curve(qd.LL_NRR, p))
    assert gains.shape == (3, 5000)
    for rate, curve in zip((0.1, 1.0, 10.0), gains):
        logits, velocity, expected = np.log(p), np.zeros(4), []
        for _ in range(200):
            q = np.exp(logits) / np.exp(logits).sum()
            u, s = q @ np.log(p), p @ p - q @ q
            gain = u - p @ np.log(p)
            expected.append(gain if gain > 0 and s > 0 else np.nan)
            share = {-1: 1.0, 0: 0.5, 1: 0.0}[int(np.sign(s))]
            slope = -np.log(p) + share * 2 * 2 * q
            velocity = 0.9 * velocity + q * (slope - q @ slope)
            logits = logits - rate * velocity
        assert curve[:200] == pytest.approx(expected, rel=1e-9, nan_ok=True)
    found = qd.solvers.search(qd.LL_NRR, p, method="penalty")
    assert float(found.gain) == pytest.approx(np.nanmax(gains), rel=1e-12)
    best = np.nan_to_num(gains).max(axis=1).argmax()
    assert float(found.learning_rate) == (0.1, 1.0, 10.0)[best]
