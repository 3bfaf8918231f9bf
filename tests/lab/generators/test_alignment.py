"""Optima by their conditions and by search, best of n and drift by enumeration."""

from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.generators import (
    best_of_n,
    bradley_terry,
    diversity_price,
    dpo_loss,
    dpo_optimum,
    fitted_rewards,
    forward_kl_optimum,
    kl_optimum,
    self_training,
)
from referees.enumerated_batches import batches
from refusals import refused
from scipy.optimize import minimize
from scipy.special import rel_entr

import qdtheory as qd

SCORES = np.array([2.0, 1.0])


def worlds(count, size=6):
    rng = np.random.default_rng(size)
    for _ in range(count):
        yield rng.dirichlet(np.ones(size)), rng.normal(size=size), rng.uniform(0.1, 2)


WORLDS = pytest.mark.parametrize(("q0", "rewards", "beta"), [*worlds(3)])


def highest(objective, size):
    """The maximiser over the simplex, by BFGS on logits."""
    down = jax.jit(jax.value_and_grad(lambda x: -objective(jax.nn.softmax(x))))
    found = minimize(down, np.zeros(size), jac=True, options={"gtol": 1e-10})
    return np.asarray(jax.nn.softmax(found.x))


def kl(a, b):
    return float(rel_entr(a, b).sum())


@WORLDS
@pytest.mark.claim("N24.12")
def test_the_kl_optimum_is_the_highest(q0, rewards, beta):
    found = kl_optimum(q0, rewards, beta)
    best = highest(lambda q: q @ rewards - beta * qd.kl_divergence(q, q0), 6)
    np.testing.assert_allclose(found, best, atol=1e-6)


@pytest.mark.claim("N24.12")
def test_the_price_is_the_slope_of_entropy_in_reward():
    for q0, rewards, beta in worlds(5):
        ends = [kl_optimum(q0, rewards, beta * f) for f in (1 - 1e-5, 1 + 1e-5)]
        (u, v), (other_u, other_v) = ((q @ rewards, qd.entropy(q)) for q in ends)
        found = float(diversity_price(q0, rewards, beta))
        assert found == pytest.approx(-float((v - other_v) / (u - other_u)), 1e-5)


@pytest.mark.claim("N24.12")
def test_ll_as_a_reward_for_p_stays_on_the_frontier():
    for p, _, beta in worlds(5):
        found = kl_optimum(p, np.log(p), beta)
        best = qd.pareto_optimum(qd.LL_SE, p, -1 - 1 / beta)
        np.testing.assert_allclose(found, best.q, atol=1e-13)
        price = float(diversity_price(p, np.log(p), beta))
        assert price == pytest.approx(1 + 1 / beta, rel=1e-10)


@WORLDS
@pytest.mark.claim("N24.14")
def test_the_forward_optimum(q0, rewards, beta):
    found = forward_kl_optimum(q0, rewards, beta)
    best = highest(lambda q: q @ rewards - beta * qd.kl_divergence(q0, q), 6)
    np.testing.assert_allclose(found, best, atol=1e-5)
    multipliers = rewards + beta * q0 / found
    assert np.ptp(multipliers) <= 1e-9
    assert (found >= q0 * beta / (beta + np.ptp(rewards)) * (1 - 1e-9)).all()


@pytest.mark.claim("N24.14")
def test_how_fast_the_best_text_takes_all():
    q0, rewards = np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.5, 0.0])
    rest = (q0 / (1 - rewards + (rewards == 1)))[1:].sum()
    for beta in (1e-3, 1e-5, 1e-7):
        left = 1 - forward_kl_optimum(q0, rewards, beta)[0]
        assert left / beta / rest == pytest.approx(1, abs=20 * beta)
    for beta in (0.05, 0.02):
        left = float(kl_optimum(q0, rewards, beta)[1:].sum())
        assert log(left) == pytest.approx(-0.5 / beta + log(0.3 / 0.2), abs=1e-3)


def test_few_texts_and_ties():
    q0, rewards = np.array([0.4, 0.0, 0.6]), np.array([1.0, 2.0, 1.0])
    np.testing.assert_allclose(forward_kl_optimum(q0, rewards, 0.1), q0, atol=1e-12)
    np.testing.assert_allclose(kl_optimum(q0, rewards, 0.1), q0, atol=1e-15)
    assert np.isnan(float(diversity_price(q0, np.ones(3), 0.1)))


@pytest.mark.claim("N24.13")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_best_of_n_by_all_samples(n):
    rng = np.random.default_rng(n)
    for scores in (rng.normal(size=5), np.array([1.0, 0, 1, 2, 0]), np.zeros(5)):
        q0 = rng.dirichlet(np.ones(5))
        texts, chances = batches(q0, n)
        first = texts[range(len(texts)), scores[texts].argmax(axis=1)]
        found = best_of_n(q0, scores, n)
        expected = np.bincount(first, chances, 5)
        np.testing.assert_allclose(found, expected, atol=1e-14)
        assert kl(found, q0) <= log(n) - (n - 1) / n + 1e-12


@pytest.mark.claim("N24.13")
def test_best_of_many():
    rng = np.random.default_rng(0)
    q0, scores = rng.dirichlet(np.full(2000, 0.5)), rng.normal(size=2000)
    for n in (2, 10, 100):
        found = best_of_n(q0, scores, n)
        bound = log(n) - (n - 1) / n
        assert 0.9 * bound <= kl(found, q0) <= bound
    # A text of 1e-18 has n times that; by differences of powers it would have 0.
    q0 = np.array([1e-18, 1 - 1e-18])
    assert best_of_n(q0, SCORES, 5)[0] == pytest.approx(5e-18, rel=1e-12)
    assert best_of_n(np.array([0.0, 1.0]), SCORES, 5).tolist() == [0, 1]


@WORLDS
@pytest.mark.claim("N24.15")
def test_dpo_finds_the_kl_optimum_whatever_is_compared(q0, rewards, beta):
    said, expected = bradley_terry(rewards), kl_optimum(q0, rewards, beta)
    best = highest(lambda q: -dpo_loss(q, q0, said, beta), 6)
    np.testing.assert_allclose(best, expected, atol=1e-4)
    np.testing.assert_allclose(dpo_optimum(q0, said, beta), expected, rtol=1e-9)
    slope = jax.grad(lambda x: dpo_loss(jax.nn.softmax(x), q0, said, beta))
    assert np.abs(slope(jnp.log(expected))).max() <= 1e-12
    assert np.ptp(fitted_rewards(np.roll(q0, 1), said) - rewards) <= 1e-9


@pytest.mark.claim("N24.15")
def test_preferences_without_a_reward():
    rng = np.random.default_rng(5)
    upper = np.triu(rng.uniform(0.05, 0.95, (5, 5)), 1)
    chances = jnp.asarray(upper + np.tril(1 - upper.T, -1) + np.eye(5) / 2)
    q0 = rng.dirichlet(np.ones(5))
    found = dpo_optimum(q0, chances, 0.5)
    slope = jax.jit(jax.grad(lambda x: dpo_loss(jax.nn.softmax(x), q0, chances, 0.5)))
    assert np.abs(slope(jnp.log(found))).max() <= 1e-11
    certain = np.tril(np.ones((3, 3)), -1) + np.eye(3) / 2
    with pytest.raises(ValueError, match="some texts always win against all others"):
        dpo_optimum(np.full(3, 1 / 3), certain, 10.0)


@pytest.mark.claim("N24.16")
def test_a_taste_for_the_typical_is_a_temperature():
    for (q0, rewards, beta), a in product(worlds(5), (0.1, 0.5, 2.0)):
        found = kl_optimum(q0, rewards + a * np.log(q0), beta)
        expected = kl_optimum(qd.temper(q0, 1 + a / beta), rewards, beta)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def one_generation(law, p, num_texts, share):
    """The distribution of the next model: a dict from counts to chances."""
    found = {}
    for state, chance in law.items():
        mixed = (1 - share) * np.array(state) / sum(state) + share * p
        for texts, likely in zip(*batches(mixed, num_texts)):
            key = tuple(np.bincount(texts, minlength=p.size).tolist())
            found[key] = found.get(key, 0) + chance * likely
    return found


@pytest.mark.claim("N24.17")
@pytest.mark.claim("N24.18")
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_self_training_by_all_training_sets(share):
    p, num_texts = np.array([0.5, 0.3, 0.2]), 4
    q = np.array([0.25, 0.25, 0.5])
    found = self_training(q, p, num_texts, 3, share)
    law = {(1, 1, 2): 1.0}
    for generation in range(4):
        models = np.array([np.array(s) / sum(s) for s in law])
        chances = np.array(list(law.values()))
        expected = (
            chances @ (models @ p),
            -chances @ (models**2).sum(axis=1),
            chances @ ((models - p) ** 2).sum(axis=1),
        )
        values = [x[generation] for x in (found.cr, found.nrr, found.cnd)]
        np.testing.assert_allclose(values, expected, atol=1e-13)
        law = one_generation(law, p, num_texts, share)


@pytest.mark.claim("N24.17")
def test_the_rate_is_wright_fishers():
    p = np.random.default_rng(0).dirichlet(np.ones(20))
    found = self_training(p, p, 10, 50)
    ratio = (1 + found.nrr[1:]) / (1 + found.nrr[:-1])
    np.testing.assert_allclose(ratio, 0.9, rtol=1e-12)
    np.testing.assert_allclose(found.cr, p @ p, rtol=1e-12)
    assert found.nrr_limit == -1


@pytest.mark.claim("N24.18")
def test_one_real_text_a_generation_keeps_two_thirds():
    p = np.random.default_rng(1).dirichlet(np.ones(20))
    gaps = []
    for size in (100, 1000, 10_000):
        found = self_training(p, p, size, 20 * size, 1 / size)
        assert found.nrr[-1] == pytest.approx(found.nrr_limit, rel=1e-6)
        kept = (1 + found.nrr_limit) / (1 - float(p @ p))
        gaps.append(abs(kept - 2 / 3))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] <= 1e-4
    everything = self_training(p, p, 10, 3, 1.0)
    np.testing.assert_allclose(1 + everything.nrr[1:], 0.9 * (1 - p @ p), rtol=1e-12)


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    half, rewards = np.full(2, 0.5), np.array([0.0, 1.0])
    for optimum in (kl_optimum, forward_kl_optimum, diversity_price):
        refused(
            ("q0 must sum to 1", optimum, np.ones(2), rewards, 1.0),
            ("rewards must have 2 entries, got 3", optimum, half, np.ones(3), 1.0),
            ("rewards must be finite", optimum, half, np.array([0, np.inf]), 1.0),
            ("beta must be positive and finite, got 0", optimum, half, rewards, 0),
        )
    ones, none = np.ones((2, 2)), np.array([0.0, 1.0])
    refused(
        ("n must be at least 1, got 0", best_of_n, half, rewards, 0),
        ("scores must not be NaN", best_of_n, half, [0.0, np.nan], 2),
        ("preferences must have shape (2, 2)", dpo_optimum, half, half, 1.0),
        ("preferences must be chances, with the rev", dpo_loss, half, half, ones, 1.0),
        ("q0 must be positive", fitted_rewards, none, np.full((2, 2), 0.5)),
        ("num_texts must be at least 1, got 0", self_training, half, half, 0, 3),
        ("num_generations must be at least 1, got 0", self_training, half, half, 3, 0),
        ("must lie in [0, 1], got 1.1", self_training, half, half, 3, 3, 1.1),
    )
