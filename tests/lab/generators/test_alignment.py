"""Optima by their conditions and by search, best of n and drift by enumeration."""

from collections import Counter
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import generators as gen
from lab.generators import best_of_n, diversity_price, kl_optimum, self_training
from numpy.testing import assert_allclose
from referees.enumerated_batches import batches
from refusals import refused
from scipy.optimize import minimize
from scipy.special import rel_entr

import qdtheory as qd

approx = pytest.approx


def worlds(count, size=6):
    rng = np.random.default_rng(size)
    for _ in range(count):
        yield rng.dirichlet(np.ones(size)), rng.normal(size=size), rng.uniform(0.1, 2)


def by_logits(function):
    return jax.jit(jax.grad(lambda x: function(jax.nn.softmax(x))))


def highest(objective, size):
    """The maximiser over the simplex, by BFGS on logits."""
    down = jax.jit(jax.value_and_grad(lambda x: -objective(jax.nn.softmax(x))))
    found = minimize(down, np.zeros(size), jac=True, options={"gtol": 1e-10})
    return np.asarray(jax.nn.softmax(found.x))


@pytest.mark.parametrize(("q0", "rewards", "beta"), [*worlds(3)])
@pytest.mark.claim("N24.12", "N24.14", "N24.15")
def test_optima_are_the_highest(q0, rewards, beta):
    """DPO finds the KL optimum, whatever is compared."""
    optimum, said = kl_optimum(q0, rewards, beta), gen.bradley_terry(rewards)
    forward = gen.forward_kl_optimum(q0, rewards, beta)
    for found, objective, error in (
        (optimum, lambda q: q @ rewards - beta * qd.kl_divergence(q, q0), 1e-6),
        (forward, lambda q: q @ rewards - beta * qd.kl_divergence(q0, q), 1e-5),
        (optimum, lambda q: -gen.dpo_loss(q, q0, said, beta), 1e-4),
    ):
        assert_allclose(found, highest(objective, 6), atol=error)
    assert np.ptp(rewards + beta * q0 / forward) <= 1e-9  # one multiplier
    assert (forward >= q0 * beta / (beta + np.ptp(rewards)) * (1 - 1e-9)).all()
    assert_allclose(gen.dpo_optimum(q0, said, beta), optimum, rtol=1e-9)
    slope = by_logits(lambda q: gen.dpo_loss(q, q0, said, beta))
    assert np.abs(slope(jnp.log(optimum))).max() <= 1e-12
    assert np.ptp(gen.fitted_rewards(np.roll(q0, 1), said) - rewards) <= 1e-9


@pytest.mark.claim("N24.12", "N24.16")
@pytest.mark.parametrize(("q0", "rewards", "beta"), [*worlds(3)])
def test_the_price_is_the_slope_of_entropy_in_reward(q0, rewards, beta):
    ends = [kl_optimum(q0, rewards, beta * f) for f in (1 - 1e-5, 1 + 1e-5)]
    (u, v), (other_u, other_v) = ((q @ rewards, qd.entropy(q)) for q in ends)
    found = float(diversity_price(q0, rewards, beta))
    assert found == approx(-float((v - other_v) / (u - other_u)), 1e-5)
    # LL as a reward for P stays on the frontier.
    best = qd.pareto_optimum(qd.LL_SE, q0, -1 - 1 / beta)
    assert_allclose(kl_optimum(q0, np.log(q0), beta), best.q, atol=1e-13)
    price = float(diversity_price(q0, np.log(q0), beta))
    assert price == approx(1 + 1 / beta, rel=1e-10)
    for taste in (0.1, 2.0):  # for the typical: a temperature
        found = kl_optimum(q0, rewards + taste * np.log(q0), beta)
        expected = kl_optimum(qd.temper(q0, 1 + taste / beta), rewards, beta)
        assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.claim("N24.14")
def test_how_fast_the_best_text_takes_all():
    q0, rewards = np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.5, 0.0])
    rest = (q0[1:] / (1 - rewards[1:])).sum()
    for beta in (1e-3, 1e-5, 1e-7):
        left = 1 - gen.forward_kl_optimum(q0, rewards, beta)[0]
        assert left / beta / rest == approx(1, abs=20 * beta)
    for beta in (0.05, 0.02):
        left = float(kl_optimum(q0, rewards, beta)[1:].sum())
        assert log(left) == approx(-0.5 / beta + log(0.3 / 0.2), abs=1e-3)
    # Ties, and a text that the start never writes.
    q0, rewards = np.array([0.4, 0.0, 0.6]), np.array([1.0, 2.0, 1.0])
    assert_allclose(gen.forward_kl_optimum(q0, rewards, 0.1), q0, atol=1e-12)
    assert_allclose(kl_optimum(q0, rewards, 0.1), q0, atol=1e-15)
    assert np.isnan(float(diversity_price(q0, np.ones(3), 0.1)))


@pytest.mark.claim("N24.13")
@pytest.mark.parametrize("n", [1, 2, 4])
def test_best_of_n_by_all_samples(n):
    rng = np.random.default_rng(n)
    for scores in (rng.normal(size=5), np.array([1.0, 0, 1, 2, 0]), np.zeros(5)):
        q0 = rng.dirichlet(np.ones(5))
        texts, chances = batches(q0, n)
        first = texts[range(len(texts)), scores[texts].argmax(axis=1)]
        found = best_of_n(q0, scores, n)
        assert_allclose(found, np.bincount(first, chances, 5), atol=1e-14)
        assert rel_entr(found, q0).sum() <= log(n) - (n - 1) / n + 1e-12


@pytest.mark.claim("N24.13")
def test_best_of_many():
    rng = np.random.default_rng(0)
    q0, scores = rng.dirichlet(np.full(2000, 0.5)), rng.normal(size=2000)
    for n in (2, 10, 100):
        bound = log(n) - (n - 1) / n
        assert 0.9 * bound <= rel_entr(best_of_n(q0, scores, n), q0).sum() <= bound
    # A text of 1e-18 has n times that; by differences of powers it would have 0.
    for rare, expected in ((1e-18, 5e-18), (0.0, 0.0)):
        found = best_of_n(np.array([rare, 1 - rare]), np.array([2.0, 1.0]), 5)
        assert float(found[0]) == approx(expected, rel=1e-12, abs=0)


@pytest.mark.claim("N24.15")
def test_preferences_without_a_reward():
    rng = np.random.default_rng(5)
    upper = np.triu(rng.uniform(0.05, 0.95, (5, 5)), 1)
    chances = jnp.asarray(upper + np.tril(1 - upper.T, -1) + np.eye(5) / 2)
    q0 = rng.dirichlet(np.ones(5))
    slope = by_logits(lambda q: gen.dpo_loss(q, q0, chances, 0.5))
    assert np.abs(slope(jnp.log(gen.dpo_optimum(q0, chances, 0.5)))).max() <= 1e-11
    certain = np.tril(np.ones((3, 3)), -1) + np.eye(3) / 2
    words = "some texts always win against all others"
    refused((words, gen.dpo_optimum, np.full(3, 1 / 3), certain, 10.0))


@pytest.mark.claim("N24.17", "N24.18")
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_self_training_by_all_training_sets(share):
    p, found_in = np.array([0.5, 0.3, 0.2]), Counter({(1, 1, 2): 1.0})
    found = self_training(np.array([0.25, 0.25, 0.5]), p, 4, 3, share)
    for generation in range(4):
        models = np.array([*found_in]) / 4
        chances = np.array([*found_in.values()])
        squares = (np.square(x).sum(axis=1) for x in (models, models - p))
        nrr, cnd = (chances @ x for x in squares)
        values = [x[generation] for x in (found.cr, found.nrr, found.cnd)]
        assert_allclose(values, (chances @ models @ p, -nrr, cnd), atol=1e-13)
        found_in = Counter()
        for model, chance in zip(models, chances):
            for texts, likely in zip(*batches((1 - share) * model + share * p, 4)):
                found_in[tuple(np.bincount(texts, minlength=3))] += chance * likely


@pytest.mark.claim("N24.17", "N24.18")
def test_self_training_in_the_long_run():
    """The rate is Wright and Fisher's; a real text a generation keeps two thirds."""
    p, generations = np.random.default_rng(0).dirichlet(np.ones(20)), np.arange(1, 51)
    for share, kept in ((0.0, 0.9**generations), (1.0, 0.9)):
        found = self_training(p, p, 10, 50, share)
        assert_allclose(1 + found.nrr[1:], (1 - p @ p) * kept, rtol=1e-12)
        assert_allclose(found.cr, p @ p, rtol=1e-12)
    assert self_training(p, p, 10, 3).nrr_limit == -1
    gaps = []
    for size in (100, 1000, 10_000):
        found = self_training(p, p, size, 20 * size, 1 / size)
        assert found.nrr[-1] == approx(found.nrr_limit, rel=1e-6)
        gaps.append(abs((1 + found.nrr_limit) / (1 - float(p @ p)) - 2 / 3))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] <= 1e-4


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    half, rewards, ones = np.full(2, 0.5), np.array([0.0, 1.0]), np.ones((2, 2))
    infinite = np.array([0, np.inf])
    for optimum in (kl_optimum, gen.forward_kl_optimum, diversity_price):
        refused(
            ("q0 must sum to 1", optimum, np.ones(2), rewards, 1.0),
            ("rewards must have 2 entries, got 3", optimum, half, np.ones(3), 1.0),
            ("rewards must be finite", optimum, half, infinite, 1.0),
            ("beta must be positive and finite, got 0", optimum, half, rewards, 0),
        )
    refused(
        ("n must be at least 1, got 0", best_of_n, half, rewards, 0),
        ("scores must not be NaN", best_of_n, half, [0.0, np.nan], 2),
        ("preferences must have shape (2, 2)", gen.dpo_optimum, half, half, 1.0),
        (
            "preferences must be chances, with the rev",
            gen.dpo_loss,
            half,
            half,
            ones,
            1.0,
        ),
        ("q0 must be positive", gen.fitted_rewards, rewards, np.full((2, 2), 0.5)),
        ("num_texts must be at least 1, got 0", self_training, half, half, 0, 3),
        ("num_generations must be at least 1, got 0", self_training, half, half, 3, 0),
        ("must lie in [0, 1], got 1.1", self_training, half, half, 3, 3, 1.1),
    )
