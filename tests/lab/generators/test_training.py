"""Training by exact gradients, against a loop in NumPy, Optax and the flow's laws."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from lab.generators import LogitTable, policy_gradient, train
from refusals import refused
from scipy.special import softmax

import qdtheory as qd
from qdtheory.rewards import REWARDS, optimal_rewards

SPACE = qd.TextSpace(2, 3)
P = np.random.default_rng(0).dirichlet(np.ones(8))
START = np.random.default_rng(1).normal(size=8)
TABLE = LogitTable(START)


def by_hand(k, rate, steps, rho, replicator=False):
    """Policy gradient ascent on a table of logits, the discriminator kept k steps."""
    logits = START.copy()
    for step in range(steps):
        q = softmax(logits)
        if step % k == 0:
            rewards = rho(P / (P + q))
        slope = q * (rewards - q @ rewards)
        logits = logits + rate * (rewards if replicator else slope)
    return softmax(logits)


@pytest.mark.claim("N20.9")
@pytest.mark.parametrize("k", [1, 3, 20])
def test_a_kept_discriminator_is_a_linear_objective(k):
    settings = {"optimizer": "sgd", "learning_rate": 0.5, "discriminator_steps": k}
    found = train(REWARDS["logit D"], TABLE, SPACE, P, 60, every=20, **settings)
    expected = by_hand(k, 0.5, 60, lambda d: np.log(d / (1 - d)))
    q = found.model.probabilities(SPACE)
    np.testing.assert_allclose(q, expected, rtol=1e-11)
    assert found.step.tolist() == [0, 20, 40, 60]


def test_the_replicator_flow_multiplies_by_the_rewards():
    """And is the natural gradient of any objective, here of maximum likelihood."""
    settings = {"optimizer": "replicator", "learning_rate": 0.1}
    for objective, rho in (("D", lambda d: d), (Momentum(0.0), lambda d: d / (1 - d))):
        found = train(objective, TABLE, SPACE, P, 30, **settings)
        expected = by_hand(1, 0.1, 30, rho, replicator=True)
        q = found.model.probabilities(SPACE)
        np.testing.assert_allclose(q, expected, rtol=1e-11)
        assert (np.diff(found.nll) < 0).all()


@pytest.mark.claim("N20.15")
def test_kl_may_rise_under_gradient_steps_on_logits():
    rng = np.random.default_rng(15)
    rose = 0
    for q, p in rng.dirichlet(np.full(8, 0.3), (40, 2)):
        p, q = 0.999 * p + 0.001 / 8, 0.999 * q + 0.001 / 8
        settings = (LogitTable.of(q), SPACE, p, 20)
        found = {
            way: train("logit D", *settings, optimizer=way, learning_rate=0.01)
            for way in ("sgd", "replicator")
        }
        rose += bool((np.diff(found["sgd"].nll) > 1e-9).any())
        for run in found.values():
            descended = run.oracle_nll - run.entropy
            assert (np.diff(descended) <= 1e-12).all()
        assert (np.diff(found["replicator"].nll) <= 1e-12).all()
    assert rose >= 1


def test_adam_is_that_of_optax():
    model = qd.LSTMLanguageModel.random(jax.random.key(0), 2, 4, 4)
    found = train("log D", model, SPACE, P, 15, learning_rate=0.03)
    optimizer = optax.adam(0.03)

    @jax.jit
    def step(model, moments):
        rewards = optimal_rewards(REWARDS["log D"], model.probabilities(SPACE), P)
        descent = jax.tree.map(jnp.negative, policy_gradient(model, SPACE, rewards))
        move, moments = optimizer.update(descent, moments)
        return optax.apply_updates(model, move), moments

    moments = optimizer.init(model)
    for _ in range(15):
        model, moments = step(model, moments)
    q, expected = (m.probabilities(SPACE) for m in (found.model, model))
    np.testing.assert_allclose(q, expected, rtol=1e-9, atol=1e-12)


def test_records_are_the_metrics_of_the_model():
    found = train("logit D", TABLE, SPACE, P, 6, every=3)
    ends = softmax(START), np.asarray(found.model.probabilities(SPACE))
    for record, q in zip((0, -1), ends):
        m = (q + P) / 2
        for name, expected in {
            "oracle_nll": -q @ np.log(P),
            "nll": -P @ np.log(q),
            "js": (P @ np.log(P / m) + q @ np.log(q / m)) / 2,
            "entropy": -q @ np.log(q),
            "bhattacharyya": -np.log(np.sqrt(P * q).sum()),
            "cr": P @ q,
            "nrr": -q @ q,
            "cnd": ((P - q) ** 2).sum(),
        }.items():
            values = getattr(found, name)
            assert values.shape == (3,)
            assert float(values[record]) == pytest.approx(expected, rel=1e-10)


def test_many_seeds_are_one_mapped_run():
    keys = jax.random.split(jax.random.key(3), 3)

    def run(key):
        model = qd.LSTMLanguageModel.random(key, 2, 4, 4, 0.5)
        return train("-log(1-D)", model, SPACE, P, 8, every=4).js

    together = jax.jit(jax.vmap(run))(keys)
    assert together.shape == (3, 3)
    np.testing.assert_allclose(together, [run(key) for key in keys], rtol=1e-9)


def test_rewards_may_be_any_function_of_q_and_p():
    def rewards(q, p):
        return jnp.log(p / q)

    settings = (TABLE, SPACE, P, 10)
    mine, named = train(rewards, *settings), train("logit D", *settings)
    np.testing.assert_allclose(mine.js, named.js, rtol=1e-9)


@dataclass(frozen=True)
class Momentum:
    """Maximum likelihood by an average of all gradients so far, kept as the state."""

    decay: float

    def start(self, model, space, p):
        return jax.tree.map(jnp.zeros_like, model)

    def ascent(self, state, model, space, p):
        def likelihood(model):
            return p @ jnp.log(model.probabilities(space))

        def mixed(old, new):
            return self.decay * old + (1 - self.decay) * new

        state = jax.tree.map(mixed, state, jax.grad(likelihood)(model))
        return state, state


def test_an_objective_keeps_its_state():
    settings = {"optimizer": "sgd", "learning_rate": 0.3}
    found = train(Momentum(0.9), TABLE, SPACE, P, 40, **settings)
    logits, average = START.copy(), 0.0
    for _ in range(40):
        average = 0.9 * average + 0.1 * (P - softmax(logits))
        logits = logits + 0.3 * average
    q = found.model.probabilities(SPACE)
    np.testing.assert_allclose(q, softmax(logits), rtol=1e-11)


def test_the_objective_sees_the_training_set_and_the_metrics_the_truth():
    seen = np.array([3, 0, 1, 2, 0, 0, 1, 1]) / 8
    settings = {"training": seen, "optimizer": "sgd", "learning_rate": 0.5}
    found = train("D/(1-D)", TABLE, SPACE, P, 50, **settings)
    logits = START.copy()
    for _ in range(50):
        logits = logits + 0.5 * (seen - softmax(logits))
    q = softmax(logits)
    np.testing.assert_allclose(found.model.probabilities(SPACE), q, rtol=1e-11)
    assert float(found.nll[-1]) == pytest.approx(-P @ np.log(q), rel=1e-11)


@dataclass(frozen=True)
class Broken:
    """Maximum likelihood whose state or direction breaks at some step."""

    part: str
    step: int

    def start(self, model, space, p):
        return jnp.array(0.0)

    def ascent(self, state, model, space, p):
        broken = jnp.where(state + 1 == self.step, jnp.nan, 0.0)
        slope = jax.grad(lambda m: p @ jnp.log(m.probabilities(space)))(model)
        if self.part == "direction":
            slope = jax.tree.map(lambda leaf: leaf + broken, slope)
            broken = 0.0
        return slope, state + 1 + broken


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("step", [1, 2, 5, 6])
def test_a_run_that_diverges_names_the_step_and_the_part(step):
    settings = TABLE, SPACE, P, 6
    for part, name in (("state", "the state of B"), ("direction", "the direction of")):
        with pytest.raises(FloatingPointError) as error:
            train(Broken(part, step), *settings, every=3, learning_rate=0.5)
        message = str(error.value)
        assert f"training diverged at step {step}: {name}" in message
        assert "take a learning_rate below 0.5" in message
        assert (f"num_steps={step - 1} keeps" in message) == (step > 1)
        assert len(message.splitlines()) == 1
    # What it says to do is enough, and the run up to there is the same.
    if step > 1:
        found = train(Broken("state", step), *settings[:-1], step - 1)
        whole = train(Broken("state", 99), *settings)
        np.testing.assert_array_equal(found.nll, whole.nll[:step])


@pytest.mark.usefixtures("as_a_user")
def test_steps_that_are_too_long_diverge_with_one_error():
    """By overflow of the model, and of P/Q where Q is 0 by underflow."""
    rewards = {"optimizer": "sgd", "learning_rate": 1e200}
    with pytest.raises(FloatingPointError, match="at step 1: the model is not fin"):
        train(lambda q, p: 1e200 * p / q, TABLE, SPACE, P, 9, **rewards)
    with pytest.raises(FloatingPointError, match="at step 2: the state of 'D/"):
        train("D/(1-D)", TABLE, SPACE, P, 9, **rewards)
    with pytest.raises(FloatingPointError, match="not finite before the first step"):
        train("D", LogitTable(START + np.inf), SPACE, P, 9)


def test_a_run_that_diverges_among_others_is_nan_from_there_on():
    def run(rate):
        settings = {"optimizer": "sgd", "learning_rate": rate}
        return train("D/(1-D)", TABLE, SPACE, P, 4, **settings)

    both = jax.vmap(run)(jnp.array([0.1, 1e200]))
    assert np.isfinite(both.js[0]).all()
    assert np.isnan(both.js[1, 2:]).all()
    assert np.isnan(both.model.logits[1]).any()


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    def run(objective="D", model=TABLE, space=SPACE, p=P, **settings):
        return lambda: train(objective, model, space, p, 3, **settings)

    lstm = qd.LSTMLanguageModel.random(jax.random.key(0), 2)
    four, few, flow = np.full(4, 0.25), np.eye(8)[0], {"optimizer": "replicator"}
    long = qd.TextSpace(2, 4), np.full(16, 1 / 16)
    unseen = "training must be positive everywhere for the reward log D"
    refused(
        ("logits must have 16 entries, got 8", run("D", TABLE, *long)),
        ("p must have 8 entries, got 4", run(p=four)),
        ("p must be positive everywhere", run(p=few)),
        ("the reward -D falls", run("-D")),
        ("num_steps must be a multiple of every = 2", run(every=2)),
        ("discriminator_steps must be at least 1, got 0", run(discriminator_steps=0)),
        ("learning_rate must be positive and finite, got 0", run(learning_rate=0)),
        ("must be one of adam, sgd, replicator, got", run(optimizer="lion")),
        ("take a LogitTable, got a LSTMLanguageModel", run("D", lstm, **flow)),
        ("one entry a text, (8,), got shape ()", run(lambda q, p: q @ p)),
        ("is for rewards; Moment", run(Momentum(0.5), discriminator_steps=2)),
        (unseen, run("log D", training=few)),
        ("training must have 8 entries, got 4", run(training=four)),
    )
    refused(("rewards(q, p) or an Objective; got 3", run(3)), error=TypeError)
