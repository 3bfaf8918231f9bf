"""Tables, exact gradients, training and empty rewards: against loops in NumPy."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from lab import generators as gen
from lab.generators import (
    LogitTable,
    PrefixTable,
    Range,
    constant_reward_drift,
    optimal_rewards,
    train,
)
from models import DIVERGENCES
from numpy.testing import assert_allclose
from referees.enumerated_batches import batches
from refusals import refused
from scipy.special import logit, logsumexp, softmax
from scipy.stats import kstest

import qdtheory as qd
from qdtheory.rewards import REWARDS

LARGE = qd.TextSpace(4, 3)
WORDS = qd.TextSpace(3, 3)
lstm_of = qd.LSTMLanguageModel.random


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def models(space, seed):
    rng = np.random.default_rng(seed)
    prefixes = sum(space.vocab_size**t for t in range(space.max_length))
    yield lstm_of(jax.random.key(seed), space.vocab_size, 6, 8)
    yield LogitTable(rng.normal(size=space.num_texts))
    yield PrefixTable(rng.normal(size=(prefixes, space.vocab_size)))


def test_tables_are_softmaxes_of_texts_and_of_tokens_one_by_one():
    space, logits = WORDS, np.random.default_rng(0).normal(size=27 + 39)
    prefixes = [s for length in range(3) for s in product(range(3), repeat=length)]
    weights = np.exp(logits)
    texts, rows = weights[:27], dict(zip(prefixes, weights[27:].reshape(13, 3)))
    found = LogitTable(logits[:27]).probabilities(space)
    assert_allclose(found, texts / texts.sum(), rtol=1e-14)
    laws, expected = {s: row / row.sum() for s, row in rows.items()}, np.ones(27)
    for i, text in enumerate(product(range(3), repeat=3)):
        expected[i] = np.prod([laws[text[:t]][text[t]] for t in range(3)])
    found = PrefixTable(logits[27:].reshape(13, 3)).probabilities(space)
    assert_allclose(found, expected, rtol=1e-14)
    for table in (LogitTable.of(expected), PrefixTable.of(expected, space)):
        assert isinstance(table, gen.Model)
        assert_allclose(table.probabilities(space), expected, rtol=1e-13)


@partial(jax.jit, static_argnums=2)
def steps(model, p, space):
    """Policy gradients of all rewards, and automatic derivatives of divergences."""

    def descended(m):
        q = m.probabilities(space)
        return -jnp.stack([divergence(q, p) for divergence in DIVERGENCES.values()])

    q, (_, pull) = model.probabilities(space), jax.vjp(descended, model)
    (slopes,) = jax.vmap(pull)(jnp.eye(len(DIVERGENCES)))
    rewards = jnp.stack([optimal_rewards(REWARDS[n], q, p) for n in DIVERGENCES])
    found = jax.vmap(lambda r: gen.policy_gradient(model, space, r))(rewards)
    return [jax.vmap(lambda x: ravel_pytree(x)[0])(tree) for tree in (found, slopes)]


@pytest.mark.claim("N20.1")
def test_a_step_is_the_gradient_of_the_divergence():
    p = np.random.default_rng(7).dirichlet(np.ones(64))
    for model in models(LARGE, 5):
        found, expected = map(np.asarray, steps(model, p, LARGE))
        off = np.linalg.norm(found - expected, axis=1)
        assert (off / np.linalg.norm(expected, axis=1)).max() <= 1e-10


def test_the_token_form_is_seqgans_sum_over_prefixes():
    """Token by token, with completions enumerated, for the model's and stale ones."""
    space, rng = WORDS, np.random.default_rng(1)
    stale, rewards = rng.dirichlet(np.ones(27)), rng.normal(size=27)
    prefixes = [s for t in range(4) for s in product(range(3), repeat=t)]
    extend = {s: (space.tokens[:, : len(s)] == s).all(axis=1) for s in prefixes}

    @jax.jit
    @jax.grad
    def log_next(m, mine, before):
        law = m.probabilities(space)
        return jnp.log((law * mine).sum() / (law * before).sum())

    for model in models(space, 2):
        q, expected = np.asarray(model.probabilities(space)), [0.0, 0.0]
        for s in prefixes[1:]:
            mine = extend[s]
            slope = flat(log_next(model, mine, extend[s[:-1]]))
            for i, law in enumerate((q, stale)):
                value = law[mine] @ rewards[mine] / law[mine].sum()
                expected[i] = expected[i] + q[mine].sum() * value * slope
        for total, given in zip(expected, (None, stale)):
            found = flat(gen.token_policy_gradient(model, space, rewards, given))
            assert_allclose(found, total, atol=1e-13)


def test_an_end_token_is_a_token():
    space = qd.TextSpace(2, (1, 2, 3))
    model = lstm_of(jax.random.key(0), 3, 6, 8, end_token=2)
    rewards = np.random.default_rng(4).normal(size=space.num_texts)
    forms = gen.token_policy_gradient, gen.policy_gradient
    by_token, whole = (flat(form(model, space, rewards)) for form in forms)
    assert_allclose(by_token, whole, atol=1e-13)


SPACE = qd.TextSpace(2, 3)
P = np.random.default_rng(0).dirichlet(np.ones(8))
START = np.random.default_rng(1).normal(size=8)
TABLE = LogitTable(START)
SEEN = np.array([3, 0, 1, 2, 0, 0, 1, 1]) / 8


def by_hand(steps, rate, rho, optimizer, training=P, discriminator_steps=1):
    """Policy gradient ascent on a table of logits, the discriminator kept k steps."""
    logits = START.copy()
    for step in range(steps):
        q = softmax(logits)
        if step % discriminator_steps == 0:
            rewards = rho(training / (training + q))
        slope = rewards if optimizer == "replicator" else q * (rewards - q @ rewards)
        logits = logits + rate * slope
    return softmax(logits)


def odds(d):
    return d / (1 - d)


@pytest.mark.claim("N20.9")
@pytest.mark.parametrize(
    ("objective", "steps", "rate", "rho", "options"),
    [
        *(("logit D", 60, 0.5, logit, {"discriminator_steps": k}) for k in (1, 20)),
        ("D", 30, 0.1, lambda d: d, {"optimizer": "replicator"}),
        (gen.MaximumLikelihood(), 40, 0.3, odds, {}),
        ("D/(1-D)", 50, 0.5, odds, {"training": SEEN}),
    ],
)
def test_training_is_the_loop_in_numpy(objective, steps, rate, rho, options):
    """A kept discriminator is a linear objective, the flow multiplies by the rewards.

    The objective sees the training set, and the metrics the truth.
    """
    options, settings = {"optimizer": "sgd"} | options, (objective, TABLE, SPACE, P)
    found = train(*settings, steps, learning_rate=rate, every=10, **options)
    expected = by_hand(steps, rate, rho, **options)
    assert_allclose(found.model.probabilities(SPACE), expected, rtol=1e-11)
    assert found.step.tolist() == list(range(0, steps + 1, 10))
    assert float(found.nll[-1]) == pytest.approx(-P @ np.log(expected), rel=1e-11)


@pytest.mark.claim("N20.15")
def test_kl_may_rise_under_gradient_steps_on_logits():
    rng, rose = np.random.default_rng(15), 0
    for q, p in 0.999 * rng.dirichlet(np.full(8, 0.3), (40, 2)) + 0.001 / 8:
        run = partial(train, "logit D", LogitTable.of(q), SPACE, p, 20)
        ways = [run(optimizer=x, learning_rate=0.01) for x in ("sgd", "replicator")]
        for found in ways:
            assert (np.diff(found.oracle_nll - found.entropy) <= 1e-12).all()
        rose += bool((np.diff(ways[0].nll) > 1e-9).any())
        assert (np.diff(ways[1].nll) <= 1e-12).all()
    assert rose >= 1


def test_records_are_the_metrics_of_the_model():
    found = train("logit D", TABLE, SPACE, P, 6, every=3)
    ends = softmax(START), np.asarray(found.model.probabilities(SPACE))
    names = "oracle_nll", "nll", "js", "entropy", "bhattacharyya", "cr", "nrr", "cnd"
    for record, q in zip((0, -1), ends):
        m = (q + P) / 2
        js = (P @ np.log(P / m) + q @ np.log(q / m)) / 2
        nats = -q @ np.log(P), -P @ np.log(q), js, -q @ np.log(q)
        rest = -np.log(np.sqrt(P * q).sum()), P @ q, -q @ q, ((P - q) ** 2).sum()
        values = [float(getattr(found, name)[record]) for name in names]
        assert_allclose(values, (*nats, *rest), rtol=1e-10)
    # Rewards may be any function of q and p.
    mine = train(lambda q, p: jnp.log(p / q), TABLE, SPACE, P, 6, every=3)
    assert_allclose(mine.js, found.js, rtol=1e-9)


def test_steps_that_are_too_long_diverge_with_an_error_and_mapped_as_nan(as_a_user):
    """By overflow of the model, and of P/Q where Q is 0 by underflow."""

    def run(rewards, model=TABLE, rate=1e200):
        return train(rewards, model, SPACE, P, 4, optimizer="sgd", learning_rate=rate)

    refused(
        ("at step 1: the model is not fin", run, lambda q, p: 1e200 * p / q),
        ("num_steps=1 keeps", run, "D/(1-D)"),
        ("at step 2: the state of 'D/", run, "D/(1-D)"),
        ("not finite before the first step", run, "D", LogitTable(START + np.inf)),
        error=FloatingPointError,
    )
    both = jax.vmap(lambda rate: run("D/(1-D)", TABLE, rate))(jnp.array([0.1, 1e200]))
    assert np.isfinite(both.js).tolist() == [[True] * 5, [True, True, *[False] * 3]]


# --- Random search and retraining -----------------------------------------------------

RANGES = {"rate": Range(1e-3, 10), "kind": ("a", "b")}


def noise(settings, seed):
    """Metrics that ignore the settings."""
    rng = np.random.default_rng(seed)
    return {"fd": rng.normal(), "bleu": rng.normal()}


def test_logarithms_and_choices_are_uniform():
    found = gen.random_search(noise, RANGES, "fd", num_trials=2000).trials.settings
    rates = (np.log10([each["rate"] for each in found]) + 3) / 4
    assert kstest(rates, "uniform").pvalue > 1e-4
    shares = np.mean([each["kind"] == "a" for each in found])
    assert abs(shares - 0.5) < 4 * 0.5 / np.sqrt(2000)


@pytest.mark.claim("N22.16")
def test_the_least_of_many_runs_is_not_what_its_setting_gives():
    """Of pure noise the best of 100 is 2.5 deviations low, its retrained mean at 0."""
    found = [gen.random_search(noise, RANGES, "fd", seed=1000 * k) for k in range(40)]

    def mean(part, name):
        return np.mean([getattr(each, part)[name] for each in found])

    draws = np.random.default_rng(0).normal(size=(4000, 100)).min(axis=1)
    assert abs(mean("selected_at", "fd") - draws.mean()) < 4 * draws.std() / np.sqrt(40)
    assert abs(mean("mean", "fd")) < 4 / np.sqrt(40 * 7)
    spread = np.mean([each.deviation["fd"] ** 2 for each in found])
    assert abs(spread - 1) < 4 * np.sqrt(2 / 6 / 40)
    # The other metric of the run is not selected for, and stays at its mean.
    assert abs(mean("selected_at", "bleu")) < 4 / np.sqrt(40)


def test_each_run_has_a_seed_of_its_own_and_trials_are_kept():
    seeds = []

    def run(settings, seed):
        seeds.append(seed)
        return noise(settings, seed)

    options = {"num_seeds": 3, "seed": 5}
    found = gen.random_search(run, RANGES, "fd", num_trials=9, **options)
    assert seeds == list(range(5, 17))
    assert found.values["bleu"].tolist() == [noise({}, x)["bleu"] for x in (14, 15, 16)]
    assert found.deviation["fd"] == pytest.approx(np.std(found.values["fd"], ddof=1))
    options |= {"lowest": False, "trials": found.trials}
    other = gen.random_search(run, RANGES, "bleu", **options)
    assert seeds[12:] == [14, 15, 16]
    best = int(found.trials.values["bleu"].argmax())
    assert other.settings == found.trials.settings[best]


def test_a_run_that_diverged_is_not_selected():
    def run(settings, seed):
        loss = np.nan if seed % 2 else (-np.inf if seed == 4 else seed)
        return {"loss": loss, "nll": np.inf}

    found = gen.random_search(run, RANGES, "loss", num_trials=6, num_seeds=2)
    assert (found.selected_at["loss"], found.mean["nll"]) == (0, np.inf)
    none = gen.random_search, lambda *_: {"loss": np.nan}, RANGES, "loss"
    refused(("loss is finite in none of 100 runs", *none))


def test_metrics_of_samples_converge_to_the_exact_ones():
    q, p = np.random.default_rng(3).dirichlet(np.ones(8), 2)

    def metrics(q, p):
        return {"cr": float(q @ p), "nrr": -float(q @ q)}

    found = [gen.of_samples(metrics, q, p, 400, seed) for seed in range(60)]
    for name, mean in (("cr", q @ p), ("nrr", -q @ q - (1 - q @ q) / 400)):
        values = np.array([each[name] for each in found])
        assert abs(values.mean() - mean) < 4 * values.std(ddof=1) / np.sqrt(60)


def test_training_refuses_bad_input(as_a_user):
    def run(objective="D", model=TABLE, **settings):
        return lambda: train(objective, model, SPACE, P, 3, **settings)

    def search(ranges):
        return lambda: gen.random_search(noise, ranges, "fd")

    few, lstm = np.eye(8)[0], lstm_of(jax.random.key(0), 2, 4, 4)
    unseen = "training must be positive everywhere for the reward log D"
    q, rule = np.full(2, 0.5), optax.sgd(0.1)
    update = gen.policy_update, (TABLE, rule.init(TABLE)), SPACE, jnp.array([0, 1])
    once = constant_reward_drift, q, 0.1, 2
    token, short = gen.token_policy_gradient, PrefixTable(np.zeros((4, 3)))
    shapes = "rewards must have shape (8,), or (8, 3) for one a token, got (8, 4)"
    refused(
        (shapes, token, TABLE, SPACE, np.zeros((8, 4))),
        ("logits must have 64 entries", token, TABLE, LARGE, np.zeros(64)),
        ("shape (4, 3), the space needs (13, 3)", short.probabilities, WORDS),
        *(("the reward -D falls", run("-D")), ("multiple of every = 2", run(every=2))),
        ("must be one of adam, sgd, replicator, got", run(optimizer="lion")),
        ("take a LogitTable, got a LSTM", run(model=lstm, optimizer="replicator")),
        ("one entry a text, (8,), got shape ()", run(lambda q, p: q @ p)),
        ("for rewards; Maximum", run(gen.MaximumLikelihood(), discriminator_steps=2)),
        (unseen, run("log D", training=few)),
        *(("ends in order, got 1, 0", Range, 1, 0), ("positive ends", Range, 0, 1)),
        *(("nothing", search({})), ("kind has no values", search({"kind": ()}))),
        *(("finite mean", *once, np.nan), ("nonnegative variance", *once, 1.0, -1.0)),
        ("shapes (2,) and (3,)", *update, jnp.ones(3), rule),
        ("there are 1,048,576 batches", gen.expectation, max, q, 20),
    )
    refused(
        ("rewards(q, p) or an Objective; got 3", run(3)),
        ("a pytree with probabilities(space)", token, [0.125] * 8, SPACE, np.zeros(8)),
        error=TypeError,
    )


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


def moved(q, eta, batch_size, rewards=ONE):
    """Logits after each batch, and its chance."""
    which, rewards, weights = listed(q, batch_size, *rewards)
    pushed = rewards[..., None] * (np.eye(len(q))[which] - q)
    return np.log(q) + eta / batch_size * pushed.sum(axis=1), weights


def drifted(q, *settings):
    """The mean change of q, over all batches."""
    logits, weights = moved(q, *settings)
    return weights @ softmax(logits, axis=1) - q


def updated(model, rule):
    """The function from a batch and its rewards to the model after it."""
    start, space = (model, rule.init(model)), texts(model.logits.size)
    return lambda x, r: gen.policy_update(start, space, x, r, rule)[0]


@pytest.mark.claim("N21.1")
@pytest.mark.parametrize(("num_texts", "batch_size"), [(2, 2), (3, 3), (5, 2)])
def test_drift_is_that_of_all_batches_up_to_the_third_order(rng, num_texts, batch_size):
    q, errors = 0.9 * rng.dirichlet(np.ones(num_texts)) + 0.1 / num_texts, []
    for eta in (0.02, 0.01):
        found = np.asarray(constant_reward_drift(q, eta, batch_size))
        off = np.abs(found - drifted(q, eta, batch_size)).max()
        errors.append(off / np.abs(found).max())
    # Halving the step halves the relative error.
    assert errors[1] <= 0.02
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)


@pytest.mark.claim("N21.3")
@pytest.mark.parametrize("baseline", [0.0, MEAN])
def test_rewards_count_by_two_moments(rng, baseline):
    q, rewards = rng.dirichlet(np.ones(3)), (TWO[0] - baseline, TWO[1])
    found = constant_reward_drift(q, 0.01, 2, MEAN - baseline, VARIANCE)
    assert_allclose(found, drifted(q, 0.01, 2, rewards), rtol=0.02)


@pytest.mark.claim("N21.2")
def test_common_texts_gain_below_a_sixth_and_lose_above(rng):
    def growth(q):
        return np.asarray(constant_reward_drift(q, 0.1, 4)) / q

    for q in rng.dirichlet(np.full(40, 2.0), 50):
        assert q.max() <= 1 / 6
        assert (np.diff(growth(q)[np.argsort(q)]) >= 0).all()
        p = rng.uniform(0.5, 1)
        assert growth(np.array([p, 1 - p]))[0] <= 0
    for first, rest, sign in ((0.3, np.full(7, 0.1), 1), (0.6, np.full(4, 0.1), -1)):
        assert sign * growth(np.r_[first, rest])[0] > 0


@pytest.mark.claim("N21.3")
def test_the_mean_of_the_batch_or_of_the_others_leaves_some_variance(rng):
    q = rng.dirichlet(np.ones(3))
    after = updated(LogitTable.of(q), optax.sgd(0.005))
    for scale in (1.0, 1.5):

        def change(x, r, scale=scale):
            return after(x, scale * (r - r.mean())).probabilities(texts(3)) - q

        left = scale**2 * (1 - 1 / 3) * VARIANCE
        expected = constant_reward_drift(q, 0.005, 3, 0.0, left)
        assert_allclose(gen.expectation(change, q, 3, *TWO), expected, rtol=0.02)


@pytest.mark.claim("N21.4")
@pytest.mark.parametrize("eta", [0.01, 30.0])
def test_logits_keep_their_mean_and_nll_rises_for_any_p(rng, eta):
    for _ in range(5):
        q, p = rng.dirichlet(np.ones(4), 2)
        logits, weights = moved(q, eta, 2)
        assert_allclose(weights @ logits, np.log(q), atol=1e-13 * max(1, eta))
        rise = weights @ (logsumexp(logits, axis=1) - logits @ p) + p @ np.log(q)
        assert rise > 0
        if eta == 0.01:
            squares, cubes = q @ q, (q**3).sum()
            second = eta**2 / 4 * (squares - 2 * cubes + squares**2)
            assert rise == pytest.approx(second, rel=0.02)


def test_fisher_drift_is_a_trace_of_matrices():
    model = lstm_of(jax.random.key(1), 2, 2, 2)
    flat, build = ravel_pytree(model)

    def q_of(x):
        return build(x).probabilities(SPACE)

    q, slopes = q_of(flat), jax.jit(jax.jacobian(q_of))(flat)
    fisher, bends = (slopes.T / q) @ slopes, jax.jit(jax.hessian(q_of))(flat)
    expected = 0.01 / 8 * jnp.einsum("jk,ijk->i", fisher, bends)
    found = gen.fisher_drift(model, SPACE, 0.1, 4)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


def test_a_prefix_drifts_as_often_as_it_is_seen(rng):
    space, q = qd.TextSpace(3, 2), rng.dirichlet(np.ones(9))

    def conditionals(q):
        rows = q.reshape(3, 3)
        return rows / rows.sum(axis=1, keepdims=True)

    table = PrefixTable.of(q, space)
    found = gen.fisher_drift(table, space, 0.1, 4, of=conditionals)
    for share, row, drift in zip(q.reshape(3, 3).sum(axis=1), conditionals(q), found):
        assert_allclose(drift, share * constant_reward_drift(row, 0.1, 4), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.claim("N21.7")
def test_oracle_nll_improves_where_q_is_p_unless_it_is_an_lstm():
    space, rising = qd.TextSpace(4, 3), 0

    def change(model, p):
        def both(q):
            return jnp.stack([-q @ jnp.log(p), -p @ jnp.log(q)])

        return gen.fisher_drift(model, space, 0.1, 8, of=both)

    for seed in range(6):
        lstm = qd.LSTMLanguageModel.random(jax.random.key(seed), 4, 8, 8, sigma=0.5)
        p = lstm.probabilities(space)
        assert float(p.max()) < 1 / 6
        (table, nll), (of_lstm, other) = map(change, (LogitTable.of(p), lstm), (p, p))
        assert table < 0 < min(nll, other)
        rising += bool(of_lstm > 0)
    assert rising > 0


def signs(q, batch_size, values, chances):
    """The mean over all batches of the sign of each logit's gradient."""
    which, rewards, weights = listed(q, batch_size, values, chances)
    slopes = (rewards[..., None] * (np.eye(q.size)[which] - q)).sum(axis=1)
    slopes[np.abs(slopes) < 1e-12] = 0
    return weights @ np.sign(slopes)


@pytest.mark.claim("N21.8")
@pytest.mark.parametrize(("batch_size", "reward"), [(3, -3.0), (5, 1.0)])
def test_adam_starts_with_signs(rng, batch_size, reward):
    for q in (rng.dirichlet(np.ones(4)), np.array([0.4, 0.2, 0.2, 0.2])):
        found = np.sign(reward) * gen.adam_drift(q, 0.01, batch_size)
        expected = 0.01 * signs(q, batch_size, (reward,), (1.0,))
        assert_allclose(found, expected, atol=1e-15)
    after = updated(LogitTable.of(q), optax.adam(0.01))
    mean = gen.expectation(after, q, batch_size, np.array([reward])).logits
    assert_allclose(found, mean - np.log(q), atol=1e-7)


@pytest.mark.claim("N21.9")
def test_adam_ignores_symmetric_rewards_only():
    q = np.array([0.6, 0.3, 0.1])
    for symmetric in (((-1, 1), (0.5, 0.5)), ((-3, 0, 3), (0.3, 0.4, 0.3))):
        assert np.abs(signs(q, 3, *symmetric)).max() <= 1e-15
    # A mean of 0 is not enough.
    assert np.abs(signs(q, 3, (-1, 9), (0.9, 0.1))).max() >= 0.05
