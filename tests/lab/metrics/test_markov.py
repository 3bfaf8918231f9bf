"""The Markov projection, against counting with dictionaries."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import metrics
from models import (
    assert_compiles_and_batches,
    assert_slope,
    oracle,
    random_distribution,
)
from refusals import refused
from scripts import column_of

import qdtheory as qd

EPS = np.finfo(float).eps
SPACES = {
    "3^3": qd.TextSpace(3, 3),
    "2^4": qd.TextSpace(2, 4),
    "1^3": qd.TextSpace(1, 3),
    "lengths 1 to 3": qd.TextSpace(2, (1, 2, 3)),
    "lengths 1 and 4": qd.TextSpace(2, (1, 4)),
}
cases = given(
    st.sampled_from(["2^4", "lengths 1 to 3"]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 0.4]),
)
few_examples = settings(max_examples=20)
# Compiled once for each space and order.
project = jax.jit(metrics.markov_projection, static_argnums=(0, 2))


def by_dictionaries(space, q, order, alpha=0.0):
    """The maximum-likelihood Markov model, event by event."""
    texts = [row[row >= 0].tolist() for row in space.tokens]
    size = space.vocab_size

    def events(text):
        padded = [None] * order + text
        for i in range(len(text) + 1):
            context = tuple(padded[i : i + order])
            if i in space.lengths[:-1]:
                yield "end", context, i == len(text)
            if i < len(text):
                yield "token", context, text[i]

    counts = Counter()
    for text, weight in zip(texts, q, strict=True):
        for event in events(text):
            counts[event] += weight

    def share(kind, context, outcome):
        sizes = (
            {True: 1, False: size} if kind == "end" else dict.fromkeys(range(size), 1)
        )
        smoothed = {o: counts[kind, context, o] + alpha * s for o, s in sizes.items()}
        total = sum(smoothed.values())
        if total == 0:
            smoothed, total = sizes, sum(sizes.values())
        return smoothed[outcome] / total

    return np.array([np.prod([share(*e) for e in events(text)]) for text in texts])


@pytest.mark.claim("N13.9")
@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", SPACES)
def test_projection_agrees_with_counting(name, order, alpha):
    space = SPACES[name]
    # With zeros some contexts are never continued; counts are weights too.
    for zeros, total in ((0.0, 1), (0.6, 1), (0.3, 30)):
        q = total * random_distribution(space.num_texts, order, zeros)
        found = project(space, q, order, alpha)
        expected = by_dictionaries(space, q, order, alpha)
        np.testing.assert_allclose(found, expected, rtol=50 * EPS, atol=1e-300)
        np.testing.assert_allclose(found.sum(), 1, rtol=50 * EPS)


@pytest.mark.parametrize("name", SPACES)
def test_long_memory_keeps_everything(name):
    space = SPACES[name]
    q = random_distribution(space.num_texts, 1, 0.3)
    for order in (space.max_length - 1, space.max_length, 40):
        found = metrics.markov_projection(space, q, order)
        np.testing.assert_allclose(found, q, rtol=50 * EPS)


@cases
@few_examples
def test_projection_is_the_closest_markov_model(name, seed, zeros):
    space = SPACES[name]
    q = random_distribution(space.num_texts, seed, zeros)
    r = random_distribution(space.num_texts, seed + 1, 0)
    distances = []
    for order in (0, 1, 2):
        closest, other = (project(space, x, order) for x in (q, r))
        distances.append(float(qd.kl_divergence(q, closest)))
        assert distances[-1] <= float(qd.kl_divergence(q, other)) + 1e-14
        # A Markov model is its own projection.
        again = project(space, closest, order)
        np.testing.assert_allclose(again, closest, rtol=1e-12, atol=1e-300)
    # More memory, closer.
    assert sorted(distances, reverse=True) == pytest.approx(distances, abs=1e-14)


@pytest.mark.parametrize("name", ["3^3", "lengths 1 to 3"])
def test_derivatives_and_batches(name):
    space = SPACES[name]
    batch = np.stack([random_distribution(space.num_texts, s, 0) for s in range(3)])
    assert_compiles_and_batches(lambda q: project(space, q, 1, 0.1), batch)

    def forward(q):
        return qd.cross_entropy(batch[0], project(space, q, 1))

    assert_slope(forward, batch[1], batch[2] - batch[1], rtol=1e-6)
    point = jnp.eye(space.num_texts)[0]
    some = jax.grad(lambda q: project(space, q, 1)[0])(point)
    assert np.isfinite(some).all()


def test_bad_input(as_a_user):
    space, q, fit = qd.TextSpace(2, 2), np.full(4, 0.25), metrics.markov_projection
    refused(
        ("q must have 4 entries, got 3", fit, space, np.full(3, 1 / 3), 1),
        ("nonnegative, got -0.1", fit, space, np.array([0.5, 0.6, -0.1, 0]), 1),
        ("all zero", fit, space, np.zeros(4), 1),
        ("order must be finite and at least 0, got -1", fit, space, q, -1),
        ("alpha must be finite and at least 0, got -0.5", fit, space, q, 1, -0.5),
    )


@pytest.mark.claim("N13.13")
@pytest.mark.parametrize("seed", range(3))
def test_a_fitted_scorer_can_prefer_a_model_of_more_entropy(seed):
    space = qd.TextSpace(2, 3)
    p = oracle(space, seed, sigma=1.0)
    scorer = metrics.markov_projection(space, p, 0)
    bias = float(qd.kl_divergence(p, scorer))
    # A power so close to 1 that most of the model bias is left as entropy.
    q = qd.temper(scorer, 1 + bias / 10)
    bar, score = (float(qd.cross_entropy(x, scorer)) for x in (p, q))
    assert score < bar
    assert float(qd.entropy(q)) > float(qd.entropy(p))
    assert score > bar - bias
    cifka = column_of("cifka2018", "1", "Reverse")
    assert sum(x < cifka["real data"] for x in cifka.values()) == 7
    assert len(cifka) == 15
