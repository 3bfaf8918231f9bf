"""Discriminators, against loops over texts, SciPy and the optimum in closed form."""

from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.generators import (
    LogisticDiscriminator,
    OptimalDiscriminator,
    prefix_distribution,
)
from lab.generators.discriminators import features
from refusals import refused
from scipy.optimize import minimize

import qdtheory as qd

SPACE = qd.TextSpace(2, 3)
Q, P = np.random.default_rng(0).dirichlet(np.ones(8), 2)


def laws(*distributions):
    return [prefix_distribution(SPACE, x) for x in distributions]


def test_features_are_the_ngrams_of_a_prefix():
    for space in (SPACE, qd.TextSpace(3, (1, 2, 3))):
        found, words = features(space, 2), range(space.vocab_size)
        grams = [*product(words), *product(words, words)]
        for row, text in enumerate(space.tokens.tolist()):
            for end in range(space.max_length):
                prefix = [t for t in text[: end + 1] if t >= 0]
                windows = {*zip(prefix), *pairwise(prefix)}
                held = [float(gram in windows) for gram in grams]
                where = np.eye(space.max_length)[end].tolist()
                assert found[row, end].tolist() == held + where


def likelihood(logits, q, p):
    """Of judging real prefixes real and the model's not, per position of each text."""
    real, fake = np.logaddexp(0, -logits), np.logaddexp(0, logits)
    return -(p @ real + q @ fake).sum()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_long_training_is_logistic_regression(order):
    learned = LogisticDiscriminator(order, num_steps=5000)
    found, weights = learned.logits(learned.start(SPACE, 3), *laws(Q, P), SPACE)
    seen = features(SPACE, order)
    best = minimize(lambda w: -likelihood(seen @ w, Q, P), np.zeros(weights.size))
    assert likelihood(found, Q, P) >= -best.fun - 1e-7


def test_a_weight_for_each_prefix_learns_the_optimum():
    learned = LogisticDiscriminator(None, num_steps=5000)
    best, _ = OptimalDiscriminator().logits((), *laws(Q, P), SPACE)
    found, _ = learned.logits(learned.start(SPACE, 3), *laws(Q, P), SPACE)
    np.testing.assert_allclose(found, best, atol=1e-6)
    texts = [jnp.asarray(x)[:, None] for x in (Q, P)]
    found, _ = learned.logits(learned.start(SPACE, 1), *texts, SPACE)
    np.testing.assert_allclose(found[:, 0], np.log(P / Q), atol=1e-6)


def test_each_step_ascends():
    learned, texts = LogisticDiscriminator(2, 1), laws(Q, P)
    weights, values = learned.start(SPACE, 3), []
    one = jax.jit(lambda weights: learned.logits(weights, *texts, SPACE))
    for _ in range(50):
        logits, weights = one(weights)
        values.append(likelihood(np.asarray(logits), Q, P))
    assert (np.diff(values) >= -1e-13).all()
    assert values[0] > -6 * np.log(2)  # three judgements of two texts


def test_texts_that_are_never_real_have_d_zero():
    p = jnp.array([[0.5], [0.0]])
    logits, _ = OptimalDiscriminator().logits((), jnp.full((2, 1), 0.5), p, SPACE)
    assert logits[:, 0].tolist() == [0, -np.inf]


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    long = LogisticDiscriminator(4)
    refused(
        ("num_steps must be at least 1, got 0", LogisticDiscriminator, 2, 0),
        ("order must be at least 1, got 0", LogisticDiscriminator, 0),
        ("order must lie in [1, 3], got 4", long.start, SPACE, 1),
    )
