"""Rewards that say nothing, against batches listed one by one in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from lab import generators as gen
from lab.generators import LogitTable, constant_reward_drift, expectation, fisher_drift
from numpy.testing import assert_allclose
from referees.enumerated_batches import batches
from refusals import refused
from scipy.special import logsumexp, softmax
from scipy.stats import spearmanr

import qdtheory as qd

ONE = (1.0,), (1.0,)  # a reward, and its chance
TWO = np.array([2.0, -0.5]), np.array([0.3, 0.7])
MEAN, VARIANCE = 0.25, 0.3 * 0.7 * 2.5**2


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def texts(num_texts):
    return qd.TextSpace(vocab_size=num_texts, lengths=1)


def listed(q, batch_size, values, chances):
    """All batches of texts with their rewards, and the chance of each."""
    drawn, weights = batches(np.outer(q, chances).ravel(), batch_size)
    which, kinds = np.divmod(drawn, len(values))
    return which, np.take(values, kinds), weights


def moved(q, eta, batch_size, rewards=ONE, steps=1):
    """Logits after each batch, and its chance."""
    which, rewards, weights = listed(q, batch_size, *rewards)
    logits = np.tile(np.log(q), (len(which), 1))
    for _ in range(steps):
        now = softmax(logits, axis=1)
        pull = rewards * np.take_along_axis(now, which, 1) / q[which]
        scores = np.eye(len(q))[which] - now[:, None]
        logits = logits + eta / batch_size * (pull[..., None] * scores).sum(axis=1)
    return logits, weights


def drifted(q, *settings, **more):
    """The mean change of q, over all batches."""
    logits, weights = moved(q, *settings, **more)
    return weights @ softmax(logits, axis=1) - q


def updated(model, rule, *settings):
    """The function from a batch and its rewards to the model after it."""
    start, space = (model, rule.init(model)), texts(model.logits.size)
    return lambda x, r: gen.policy_update(start, space, x, r, rule, *settings)[0]


@pytest.mark.claim("N21.1")
@pytest.mark.parametrize("num_texts", [2, 3, 5])
@pytest.mark.parametrize("batch_size", [2, 3])
def test_drift_is_that_of_all_batches_up_to_the_third_order(rng, num_texts, batch_size):
    q, errors = 0.9 * rng.dirichlet(np.ones(num_texts)) + 0.1 / num_texts, []
    for eta in (0.02, 0.01):
        found = np.asarray(constant_reward_drift(q, eta, batch_size))
        off = np.abs(found - drifted(q, eta, batch_size)).max()
        errors.append(off / np.abs(found).max())
    # Halving the step halves the relative error.
    assert errors[1] <= 0.02
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)


@pytest.mark.claim("N21.3", "N21.6")
@pytest.mark.parametrize(
    ("eta", "rewards", "mean", "variance", "steps"),
    [
        (0.01, TWO, MEAN, VARIANCE, 1),
        (0.01, (TWO[0] - MEAN, TWO[1]), 0.0, VARIANCE, 1),
        *((0.002, ONE, 1.0, 0.0, k) for k in (2, 3)),
    ],
    ids=["any", "centred", "two steps", "three steps"],
)
def test_rewards_count_by_two_moments_and_steps_on_one_batch_flatten(
    rng, eta, rewards, mean, variance, steps
):
    q = rng.dirichlet(np.ones(3))
    found = constant_reward_drift(q, eta, 2, mean, variance, num_steps=steps)
    expected = drifted(q, eta, 2, rewards, steps=steps)
    error = 1e-2 * abs(found).max() if steps > 1 else 0
    assert_allclose(found, expected, rtol=0.02 + 0.01 * (steps > 1), atol=error)


@pytest.mark.claim("N21.2", "N21.6")
def test_common_texts_gain_below_a_sixth_and_lose_above(rng):
    def drift(q, steps=1):
        return np.asarray(constant_reward_drift(q, 0.1, 4, num_steps=steps))

    for q in rng.dirichlet(np.full(40, 2.0), 50):
        assert q.max() <= 1 / 6
        assert (np.diff((drift(q) / q)[np.argsort(q)]) >= 0).all()
        p = rng.uniform(0.5, 1)
        assert drift(np.array([p, 1 - p]))[0] <= 0
    for first, rest, sign in ((0.3, np.full(7, 0.1), 1), (0.6, np.full(4, 0.1), -1)):
        assert sign * drift(np.r_[first, rest])[0] > 0
    # At (1 + 4 S2) / 10 < q < (1 + 2 S2) / 6, many steps turn a gain into a loss.
    near = np.r_[0.15, 0.13, np.full(72, 0.01)]
    for k in (1, 50):
        growth = drift(near, k) / near
        assert (growth[0] > growth[1]) == (k == 1)


@pytest.mark.claim("N21.3")
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_mean_of_the_batch_or_of_the_others_leaves_some_variance(rng, scale):
    q = rng.dirichlet(np.ones(3))
    after = updated(LogitTable.of(q), optax.sgd(0.005))

    def change(x, r):
        return after(x, scale * (r - r.mean())).probabilities(texts(3)) - q

    left = scale**2 * (1 - 1 / 3) * VARIANCE
    expected = constant_reward_drift(q, 0.005, 3, 0.0, left)
    assert_allclose(expectation(change, q, 3, *TWO), expected, rtol=0.02)


@pytest.mark.claim("N21.4")
@pytest.mark.parametrize("eta", [0.01, 1.0, 30.0])
def test_logits_keep_their_mean_and_nll_rises_for_any_p(rng, eta):
    for _ in range(5):
        q, p = rng.dirichlet(np.ones(4), 2)
        logits, weights = moved(q, eta, 2)
        assert_allclose(weights @ logits, np.log(q), atol=1e-13 * max(1, eta))
        rise = weights @ (logsumexp(logits, axis=1) - logits @ p) + p @ np.log(q)
        assert rise > 0
        if eta == 0.01:
            squares, cubes = (np.sum(q**k) for k in (2, 3))
            second = eta**2 / 4 * (squares - 2 * cubes + squares**2)
            assert rise == pytest.approx(second, rel=0.02)


@pytest.mark.claim("N21.5")
@pytest.mark.parametrize("kind", ["lstm", "prefixes"])
def test_fisher_drift_is_a_trace_of_matrices(rng, kind):
    space = qd.TextSpace(2, 3)
    model = qd.LSTMLanguageModel.random(jax.random.key(1), 2, 2, 2)
    if kind == "prefixes":
        model = gen.PrefixTable.of(rng.dirichlet(np.ones(8)), space)
    flat, build = ravel_pytree(model)

    def q_of(x):
        return build(x).probabilities(space)

    q, slopes = q_of(flat), jax.jit(jax.jacobian(q_of))(flat)
    drift = jnp.einsum(
        "jk,ijk->i", (slopes.T / q) @ slopes, jax.jit(jax.hessian(q_of))(flat)
    )
    expected = 0.01 / 8 * drift
    assert_allclose(fisher_drift(model, space, 0.1, 4), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.claim("N21.5")
def test_a_prefix_drifts_as_often_as_it_is_seen(rng):
    space, q = qd.TextSpace(3, 2), rng.dirichlet(np.ones(9))

    def conditionals(q):
        rows = q.reshape(3, 3)
        return rows / rows.sum(axis=1, keepdims=True)

    found = fisher_drift(gen.PrefixTable.of(q, space), space, 0.1, 4, of=conditionals)
    for share, row, drift in zip(q.reshape(3, 3).sum(axis=1), conditionals(q), found):
        assert_allclose(drift, share * constant_reward_drift(row, 0.1, 4), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.claim("N21.7")
def test_oracle_nll_improves_where_q_is_p_unless_it_is_an_lstm():
    space, rising = qd.TextSpace(4, 3), 0

    def change(model, p):
        def both(q):
            return jnp.stack([-q @ jnp.log(p), -p @ jnp.log(q)])

        return fisher_drift(model, space, 0.1, 8, of=both)

    for seed in range(6):
        lstm = qd.LSTMLanguageModel.random(jax.random.key(seed), 4, 8, 8, sigma=0.5)
        p = lstm.probabilities(space)
        assert float(p.max()) < 1 / 6
        oracle_nll, nll = change(LogitTable.of(p), p)
        assert oracle_nll < 0 < nll
        assert float(spearmanr(constant_reward_drift(p, 0.1, 8) / p, p)[0]) > 0.999
        oracle_nll, nll = change(lstm, p)
        assert nll > 0
        rising += bool(oracle_nll > 0)
    assert rising > 0


def signs(q, batch_size, values, chances):
    """The mean over all batches of the sign of each logit's gradient."""
    which, rewards, weights = listed(q, batch_size, values, chances)
    slopes = (rewards[..., None] * (np.eye(q.size)[which] - q)).sum(axis=1)
    slopes[np.abs(slopes) < 1e-12] = 0
    return weights @ np.sign(slopes)


@pytest.mark.claim("N21.8")
@pytest.mark.parametrize(("batch_size", "reward"), [(2, 1.0), (3, -3.0), (5, 1.0)])
def test_adam_starts_with_signs(rng, batch_size, reward):
    for q in (rng.dirichlet(np.ones(4)), np.array([0.4, 0.2, 0.2, 0.2])):
        found = np.sign(reward) * gen.adam_drift(q, 0.01, batch_size)
        expected = 0.01 * signs(q, batch_size, (reward,), (1.0,))
        assert_allclose(found, expected, atol=1e-15)
    after = updated(LogitTable.of(q), optax.adam(0.01))
    mean = expectation(after, q, batch_size, np.array([reward])).logits
    assert_allclose(found, mean - np.log(q), atol=1e-7)


@pytest.mark.claim("N21.8")
def test_adam_at_the_size_of_a_batch():
    q = np.repeat([0.04, 0.001], [20, 200])
    drift = np.asarray(gen.adam_drift(q, 1.0, 64))[[0, -1]]
    draws = np.random.default_rng(8).multinomial(64, q, 20_000) - 64 * q
    sampled = np.sign(draws).mean(axis=0)
    assert_allclose([sampled[:20].mean(), sampled[20:].mean()], drift, atol=0.01)
    assert_allclose(drift, [-0.05, -0.88], atol=0.005)
    half = 1 - 0.5 ** (1 / 64)
    for x, sign in ((half - 1e-6, -1), (half + 1e-6, 1)):
        assert np.sign(gen.adam_drift(np.array([x, 1 - x]), 1.0, 64)[0]) == sign


@pytest.mark.claim("N21.9")
@pytest.mark.parametrize(
    ("values", "chances", "ignored"),
    [
        ((-1, 1), (0.5, 0.5), True),
        ((-3, 0, 3), (0.3, 0.4, 0.3), True),
        ((-1, 9), (0.9, 0.1), False),  # a mean of 0 is not enough
    ],
)
def test_adam_ignores_symmetric_rewards_only(values, chances, ignored):
    mean = np.abs(signs(np.array([0.6, 0.3, 0.1]), 3, values, chances)).max()
    assert mean <= 1e-15 if ignored else mean >= 0.05


@pytest.mark.claim("N21.10")
def test_sampled_training_follows_the_drift():
    q, space, rate = np.r_[0.12, np.full(11, 0.08)], texts(12), 0.05
    keys, model = jax.random.split(jax.random.key(10), 4000), LogitTable.of(q)
    settings = 20, 2, lambda key, x: jnp.ones(2), optax.sgd(rate)
    paths = jax.vmap(lambda k: gen.train_on_rewards(model, space, k, *settings))(keys)
    assert paths.shape == (4000, 21, 12)
    assert_allclose(paths[:, 0], np.tile(q, (4000, 1)), rtol=1e-12)
    change = np.asarray(paths[:, -1] - q)
    error = change.std(axis=0) / np.sqrt(len(keys))
    # The drift of 20 steps, nearly that of the first; four standard errors.
    expected = 20 * np.asarray(constant_reward_drift(q, rate, 2))
    assert (np.abs(change.mean(axis=0) - expected) <= 4 * error).all()


@pytest.mark.claim("N21.11")
@pytest.mark.parametrize(("clip", "sign"), [(0.15, 1), (0.27, -1)])
def test_a_clip_as_small_as_the_step_drifts_at_first_order(clip, sign):
    q = np.r_[0.28, np.full(4, 0.18)]
    drawn, chances = batches(q, 3)
    scores = (np.eye(5) - q)[drawn]
    # Of log Q(x_b) in a step, over eta.
    rise = (scores * scores.sum(axis=1, keepdims=True)).sum(axis=2) / 3
    total = chances @ (scores * (rise < clip)[..., None]).sum(axis=1) / 3
    assert sign * total[0] > 0.02 > -0.005 > sign * total[-1]
    model = LogitTable.of(q)
    after = updated(model, optax.sgd(1e-4), 1e-4 * clip, 2)
    found = (expectation(after, q, 3).logits - model.logits) / 1e-4
    assert_allclose(found, total, atol=1e-3)


def test_the_surrogate_is_clipped_where_it_should_be():
    # One text of each kind: rewarded, risen beyond the clip; punished, fallen beyond.
    batch = jnp.array([0, 1]), jnp.array([1.0, -1.0])
    for clip, moves in ((0.01, False), (10.0, True)):
        settings = LogitTable.of(np.array([0.5, 0.3, 0.2])), optax.sgd(1.0), clip
        once, twice = (updated(*settings, k)(*batch) for k in (1, 2))
        assert (np.abs(twice.logits - once.logits).max() > 1e-9) == moves


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    q, space, rule = np.array([0.5, 0.5]), texts(2), optax.sgd(0.1)
    model, lost = LogitTable.of(q), LogitTable(np.array([0.0, -1e9]))
    state, x, r = (model, rule.init(model)), jnp.array([0, 1]), jnp.ones(2)
    drift, rate = constant_reward_drift, "learning_rate must be positive and finite"

    def batch(x, r):
        return x

    refused(
        *((rate, drift, q, wrong, 2) for wrong in (0.0, -1.0, np.inf, np.nan)),
        ("batch_size must be at least 1", gen.adam_drift, q, 0.1, 0),
        ("num_steps must be at least 1", drift, q, 0.1, 2, 1.0, 0.0, 0),
        ("finite, nonnegative variance", drift, q, 0.1, 2, 1.0, -1.0),
        ("finite mean", drift, q, 0.1, 2, np.nan),
        ("q must sum to 1", drift, np.ones(2), 0.1, 2),
        ("logits must have 3 entries, got 2", fisher_drift, model, texts(3), 0.1, 2),
        ("positive probability", fisher_drift, lost, space, 0.1, 2),
        ("clip must be positive", gen.policy_update, state, space, x, r, rule, 0.0),
        ("shapes (2,) and (3,)", gen.policy_update, state, space, x, jnp.ones(3), rule),
        ("there are 1,048,576 batches", expectation, batch, q, 20),
        ("must have 2 entries", expectation, batch, q, 2, np.ones(2), np.ones(1)),
    )
