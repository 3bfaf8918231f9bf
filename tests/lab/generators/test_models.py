"""Tables text by text; exact policy gradients, against derivatives and sums."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from lab.generators import (
    LogitTable,
    Model,
    PrefixTable,
    policy_gradient,
    prefix_distribution,
    token_policy_gradient,
)
from models import DIVERGENCES
from referees.enumerated_batches import batches
from refusals import refused

import qdtheory as qd
from qdtheory.rewards import REWARDS, optimal_rewards

SPACES = qd.TextSpace(2, 3), qd.TextSpace(4, 3), qd.TextSpace(3, 5), qd.TextSpace(4, 5)
WORDS = qd.TextSpace(3, 3)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def models(space, seed):
    rng = np.random.default_rng(seed)
    prefixes = sum(space.vocab_size**t for t in range(space.max_length))
    yield qd.LSTMLanguageModel.random(jax.random.key(seed), space.vocab_size, 6, 8)
    yield LogitTable(rng.normal(size=space.num_texts))
    yield PrefixTable(rng.normal(size=(prefixes, space.vocab_size)))


def gap(found, expected):
    return np.linalg.norm(flat(found) - flat(expected)) / np.linalg.norm(flat(expected))


def rows(tree):
    """The gradient of each reward as a row."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return np.hstack([leaf.reshape(len(leaf), -1) for leaf in leaves])


def test_a_table_of_texts_is_a_softmax(rng):
    logits = rng.normal(size=27)
    expected = np.exp(logits) / np.exp(logits).sum()
    found = LogitTable(logits).probabilities(WORDS)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_table_of_prefixes_multiplies_token_by_token(rng):
    logits = rng.normal(size=(1 + 3 + 9, 3))
    prefixes = [s for length in range(3) for s in product(range(3), repeat=length)]
    weights = {s: np.exp(row) for s, row in zip(prefixes, logits)}
    found = PrefixTable(logits).probabilities(WORDS)
    for text, q in zip(product(range(3), repeat=3), found):
        rows = [weights[text[:t]] for t in range(3)]
        expected = [row[token] / row.sum() for row, token in zip(rows, text)]
        assert float(q) == pytest.approx(np.prod(expected), rel=1e-14)


def test_both_hold_any_positive_distribution(rng):
    for q in rng.dirichlet(np.ones(27), 10):
        for table in (LogitTable.of(q), PrefixTable.of(q, WORDS)):
            assert isinstance(table, Model)
            np.testing.assert_allclose(table.probabilities(WORDS), q, rtol=1e-13)
    assert isinstance(qd.LSTMLanguageModel.random(jax.random.key(0), 3), Model)


@pytest.mark.parametrize("table", [LogitTable, PrefixTable])
def test_tables_are_pytrees(rng, table):
    shape = (27,) if table is LogitTable else (13, 3)
    batch = jax.vmap(table)(jnp.asarray(rng.normal(size=(4, *shape))))
    found = jax.jit(jax.vmap(lambda model: model.probabilities(WORDS)))(batch)
    for logits, q in zip(batch.logits, found):
        np.testing.assert_allclose(table(logits).probabilities(WORDS), q, rtol=1e-14)
    slope = jax.grad(lambda m: m.probabilities(WORDS)[0])(table(batch.logits[0]))
    # A constant added to the logits of one softmax changes nothing.
    assert np.abs(np.asarray(slope.logits).sum(axis=-1)).max() <= 1e-15


@pytest.mark.slow
@pytest.mark.claim("N20.1")
def test_a_step_is_the_gradient_of_the_divergence():
    worst, count = 0.0, 0
    for space, seed in product(SPACES, range(9)):
        p = np.random.default_rng([seed, 7]).dirichlet(np.ones(space.num_texts))
        for model in models(space, seed):
            count += 1
            found, expected = map(rows, steps(model, p, space))
            off = np.linalg.norm(found - expected, axis=1)
            worst = max(worst, (off / np.linalg.norm(expected, axis=1)).max())
    assert count >= 100
    assert worst <= 1e-10


@partial(jax.jit, static_argnums=2)
def steps(model, p, space):
    """Policy gradients of all rewards, and automatic derivatives of divergences."""

    def descended(m):
        q = m.probabilities(space)
        return -jnp.stack([divergence(q, p) for divergence in DIVERGENCES.values()])

    q, (_, pull) = model.probabilities(space), jax.vjp(descended, model)
    (slopes,) = jax.vmap(pull)(jnp.eye(len(DIVERGENCES)))
    rewards = jnp.stack([optimal_rewards(REWARDS[n], q, p) for n in DIVERGENCES])
    return jax.vmap(lambda r: policy_gradient(model, space, r))(rewards), slopes


@pytest.mark.claim("N20.5")
@pytest.mark.parametrize("space", SPACES[:3])
def test_the_token_form_is_the_sequence_form(space):
    rewards = jnp.asarray(np.random.default_rng(5).normal(size=space.num_texts))
    for model in models(space, 5):
        assert gap(*both_forms(model, rewards, space)) <= 1e-12


@partial(jax.jit, static_argnums=2)
def both_forms(model, rewards, space):
    forms = token_policy_gradient, policy_gradient
    return [form(model, space, rewards) for form in forms]


@pytest.mark.claim("N20.5")
def test_the_token_form_is_seqgans_sum_over_prefixes():
    """Token by token, with completions enumerated, for the model's and stale ones."""
    space, rng = qd.TextSpace(3, 3), np.random.default_rng(1)
    stale, rewards = rng.dirichlet(np.ones(27)), rng.normal(size=27)
    prefixes = [s for t in range(4) for s in product(range(3), repeat=t)]
    extend = {s: (space.tokens[:, : len(s)] == s).all(axis=1) for s in prefixes}

    @jax.jit
    @jax.grad
    def log_next(m, mine, before):
        law = m.probabilities(space)
        return jnp.log((law * mine).sum() / (law * before).sum())

    for model in models(space, 2):
        q = np.asarray(model.probabilities(space))
        slopes = {s: flat(log_next(model, extend[s], extend[s[:-1]]))
                  for s in prefixes[1:]}  # fmt: skip
        for given in (None, stale):
            completing, expected = q if given is None else given, 0.0
            for s, slope in slopes.items():
                mine = extend[s]
                value = completing[mine] @ rewards[mine] / completing[mine].sum()
                expected += q[mine].sum() * value * slope
            found = flat(token_policy_gradient(model, space, rewards, given))
            np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.claim("N20.10")
def test_stale_roll_outs_change_the_step_and_not_the_last_token():
    space, rng = qd.TextSpace(2, 2), np.random.default_rng(3)
    model = PrefixTable(rng.normal(size=(3, 2)))
    stale, rewards = rng.dirichlet(np.ones(4)), rng.normal(size=4)
    fresh = policy_gradient(model, space, rewards).logits
    found = token_policy_gradient(model, space, rewards, stale).logits
    assert np.abs(np.asarray(found - fresh)[0]).max() > 1e-3
    np.testing.assert_allclose(found[1:], fresh[1:], atol=1e-15)


def laws(x):
    """Of the first token and of both, over two texts of two words."""
    return [x.reshape(2, 2).sum(axis=1), x]


TWO, REAL = qd.TextSpace(2, 2), np.array([0.4, 0.3, 0.2, 0.1])
LOGITS = np.array([[0.3, -0.2], [0.5, 0.1], [-0.4, 0.6]])


def two_tokens(logits):
    rows = jax.nn.softmax(jnp.asarray(logits))
    return (rows[0][:, None] * rows[1:]).ravel()


@pytest.mark.claim("N20.11")
def test_seqgan_step_descends_a_sum_over_lengths():
    def objective(logits):
        pairs = zip(laws(two_tokens(logits)), laws(REAL))
        return -sum(p @ jnp.log(2 * p / (p + q)) for q, p in pairs)

    def step(logits, gamma):
        q, p = laws(two_tokens(logits)), laws(REAL)
        first, both = (b / (a + b) for a, b in zip(q, p))
        first = np.repeat(first, 2)
        earned = np.stack([first + gamma * both, both], axis=1)
        return token_policy_gradient(PrefixTable(logits), TWO, earned).logits

    expected = jax.grad(objective)(LOGITS)
    np.testing.assert_allclose(step(LOGITS, 1.0), expected, atol=1e-14)
    # With gamma < 1: work around a loop in two logits of different rows.
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    for gamma, least, most in ((1.0, 0, 1e-12), (0.5, 1e-4, 1)):
        work = 0.0
        for x, y in zip(np.cos(angles), np.sin(angles)):
            at, way = np.zeros((2, 3, 2))
            at[:2, 0], way[:2, 0] = (x, y), (-y, x)
            work += float((step(LOGITS + at, gamma) * way).sum()) / 60
        assert least <= abs(work) <= most
    at_p = np.asarray(PrefixTable.of(REAL, TWO).logits)
    np.testing.assert_allclose(step(at_p, 0.5), 0, atol=1e-15)


@pytest.mark.claim("N20.12")
def test_normalised_batches_are_biased_by_the_inverse_of_their_size():
    rng = np.random.default_rng(12)
    q, p = 0.5 * rng.dirichlet(np.ones(4), 2) + 0.5 / 4
    r, found = p / q, {}
    for m in (1, 2, 3, 6):
        texts, chances = batches(q, m)
        share = chances[:, None] * r[texts] / r[texts].sum(axis=1, keepdims=True)
        found[m] = m * (np.bincount(texts.ravel(), share.ravel()) - p)
    np.testing.assert_allclose(found[1], q - p, atol=1e-15)
    # The delta method's limit; what is left falls like 1/m.
    limit = p * ((p * r).sum() - r)
    left = [np.abs(found[m] - limit).max() for m in (2, 3, 6)]
    assert left[0] > left[1] > left[2]
    assert left[2] <= 0.2 * np.abs(limit).max()


@pytest.mark.claim("N20.13")
def test_cot_drops_where_a_token_leads():
    def two_js(logits):
        q = two_tokens(logits)
        m = (q + REAL) / 2
        return -(REAL @ jnp.log(REAL / m) + q @ jnp.log(q / m))

    q = two_tokens(LOGITS)
    gains = []
    for both in laws((q + REAL) / 2), laws(q):
        first = np.repeat(both[0], 2)
        gains.append(np.log(np.stack([first, both[1] / first], axis=1)))
    gain = gains[0] - gains[1]
    future = np.stack([gain.sum(axis=1), gain[:, 1]], axis=1)
    whole, cot = (
        np.asarray(token_policy_gradient(PrefixTable(LOGITS), TWO, rewards).logits)
        for rewards in (future, gain)
    )
    np.testing.assert_allclose(whole, jax.grad(two_js)(LOGITS), atol=1e-14)
    # The last token leads nowhere.
    np.testing.assert_allclose(cot[1:], whole[1:], atol=1e-15)
    assert np.abs(cot[0] - whole[0]).max() >= 1e-3


def test_an_end_token_is_a_token():
    space = qd.TextSpace(2, (1, 2, 3))
    model = qd.LSTMLanguageModel.random(jax.random.key(0), 3, 6, 8, end_token=2)
    rewards = jnp.asarray(np.random.default_rng(4).normal(size=space.num_texts))
    assert gap(*both_forms(model, rewards, space)) <= 1e-13
    law = prefix_distribution(space, model.probabilities(space))
    first = [float(law[space.tokens[:, 0] == a, 0].max()) for a in (0, 1)]
    assert sum(first) == pytest.approx(1, abs=1e-14)


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    space, table = qd.TextSpace(2, 2), LogitTable(np.zeros(4))
    lstm, zeros = qd.LSTMLanguageModel.random(jax.random.key(0), 3), np.zeros(4)
    for form in (policy_gradient, token_policy_gradient):
        words = "model must be a pytree with probabilities(space)"
        refused((words, form, [0.25] * 4, space, zeros), error=TypeError)
        refused(
            (
                "logits must have 8 entries, got 4",
                form,
                table,
                qd.TextSpace(2, 3),
                np.zeros(8),
            ),
            ("model's texts are over 3 tokens", form, lstm, space, zeros),
            ("rewards must be finite", form, table, space, zeros + np.inf),
        )
    stale, form = np.eye(4)[0], token_policy_gradient
    shapes = "rewards must have shape (4,), or (4, 2) for one a token, got (4, 3)"
    refused(
        ("must have 4 entries, got 3", policy_gradient, table, space, zeros[:3]),
        (shapes, form, table, space, np.zeros((4, 3))),
        ("roll_out must be positive", form, table, space, zeros, stale),
    )
    mixed, words = qd.TextSpace(3, (1, 2)), "of one length, got lengths (1, 2); take a"
    short = PrefixTable(np.zeros((4, 3))).probabilities
    refused(
        ("shape (4, 3), the space needs (13, 3)", short, WORDS),
        (words, short, mixed),
        (words, PrefixTable.of, np.full(12, 1 / 12), mixed),
        ("q must be positive everywhere", LogitTable.of, [1.0, 0.0]),
        ("q must sum to 1", LogitTable.of, [1.0, 1.0]),
    )
    text = LogitTable("ab").probabilities, space
    refused(("logits must be an array or list", *text), error=TypeError)
