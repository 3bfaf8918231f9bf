"""Real distributions to test on, and what a found model has to satisfy."""

import numpy as np

import qdtheory as qd


def oracle(space, seed, sigma, size=8):
    """P of a random LSTM, a small one unless told."""
    return np.asarray(qd.oracle(space, seed, sigma, size))


def assert_attained(pair, p, q, gain):
    """The model is a distribution, as diverse as P, and gains this much quality."""
    q = np.asarray(q)
    assert q.min() >= 0
    assert abs(q.sum() - 1) <= 1e-13  # some hundreds of roundings
    assert pair.diversity(q) >= pair.diversity(p)
    found = float(pair.quality(q, p) - pair.quality(p, p))
    assert abs(found - float(gain)) <= 1e-14
