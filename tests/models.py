"""Real distributions to test on, and what a found model has to satisfy."""

import jax
import numpy as np

import qdtheory as qd


def oracle(space, seed, sigma, size=8):
    """The distribution over the space's texts of a random LSTM oracle."""
    model = qd.LSTMLanguageModel.random(
        jax.random.key(seed),
        vocab_size=space.vocab_size,
        embedding_size=size,
        hidden_size=size,
        sigma=sigma,
    )
    return np.asarray(model.probabilities(space))


def assert_attained(pair, p, q, gain):
    """The model is a distribution, as diverse as P, and gains this much quality."""
    q = np.asarray(q)
    assert q.min() >= 0
    assert abs(q.sum() - 1) <= 1e-13  # some hundreds of roundings
    assert pair.diversity(q) >= pair.diversity(p)
    found = float(pair.quality(q, p) - pair.quality(p, p))
    assert abs(found - float(gain)) <= 1e-14
