"""The ascent where its end is known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.search import (
    BEST,
    UNBOUNDED,
    greatest_quality,
    optimality_gap,
    program_of,
    solve,
)

P = np.array([0.5, 0.3, 0.2])
# Maximise scores . q where q . q <= P . P: q moves from 1/3 along the centred scores.
SCORES = np.array([0.0, 0.1, 0.3])
UP = SCORES - SCORES.mean()
RADIUS = np.sqrt(P @ P - 1 / 3)
BEST_MODEL = 1 / 3 + RADIUS * UP / np.linalg.norm(UP)
PAIR = qd.LinearPair(SCORES, qd.functions.NRR)
FREE = program_of(PAIR, jnp.asarray(P), BEST, UNBOUNDED)


def test_the_best_model_within_a_ball():
    assert (BEST_MODEL > 0).all()
    problem = program_of(PAIR, jnp.asarray(P), BEST, PAIR.diversity(P))
    parents = jnp.stack([P, np.full(3, 1 / 3)])
    key, inside = jax.random.key(0), jnp.asarray(P)
    population, value, values = solve(problem, inside, parents, key, 8)
    np.testing.assert_allclose(population[0], BEST_MODEL, atol=1e-5)
    assert float(value) == pytest.approx(SCORES @ BEST_MODEL, abs=1e-9)
    assert values.shape == (3, 8)
    assert float(values.max()) <= SCORES @ BEST_MODEL + 1e-12


def test_gap_and_price_there_and_elsewhere():
    problem = program_of(PAIR, jnp.asarray(P), BEST, PAIR.diversity(P))
    gap, price = optimality_gap(problem, jnp.asarray(BEST_MODEL))
    # scores = 2 price q + constant on the sphere
    assert float(price) == pytest.approx(np.linalg.norm(UP) / (2 * RADIUS), rel=1e-9)
    assert float(gap) == pytest.approx(0, abs=1e-12)
    gap, _ = optimality_gap(problem, jnp.asarray(P))
    assert gap > 0.01
    # Where diversity is in excess, it has no price, and the best text gains most.
    inside = jnp.full(3, 1 / 3)
    gap, price = optimality_gap(FREE, inside)
    assert float(price) == 0
    assert float(gap) == pytest.approx(UP.max(), abs=1e-12)


def test_the_greatest_quality_of_one_text_and_of_a_mixture():
    p = jnp.asarray(P)
    assert float(greatest_quality(FREE, p, is_linear=True)) == SCORES.max()
    round_top = qd.FunctionPair(lambda q, p: -((q - p) ** 2).sum(), PAIR.diversity)
    free = program_of(round_top, p, BEST, UNBOUNDED)
    found = greatest_quality(free, p, is_linear=False)
    assert float(found) == pytest.approx(0, abs=1e-9)
