"""Tables text by text; exact policy gradients, against derivatives and sums."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from lab import generators as gen
from lab.generators import LogitTable, PrefixTable, policy_gradient
from models import DIVERGENCES
from numpy.testing import assert_allclose
from refusals import refused

import qdtheory as qd
from qdtheory.rewards import REWARDS, optimal_rewards

SPACE = qd.TextSpace(4, 3)
WORDS = qd.TextSpace(3, 3)
random_lstm = qd.LSTMLanguageModel.random


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def models(space, seed):
    rng = np.random.default_rng(seed)
    prefixes = sum(space.vocab_size**t for t in range(space.max_length))
    yield random_lstm(jax.random.key(seed), space.vocab_size, 6, 8)
    yield LogitTable(rng.normal(size=space.num_texts))
    yield PrefixTable(rng.normal(size=(prefixes, space.vocab_size)))


def test_tables_are_softmaxes_of_texts_and_of_tokens_one_by_one():
    rng, space = np.random.default_rng(0), WORDS
    prefixes = [s for length in range(3) for s in product(range(3), repeat=length)]
    for logits in rng.normal(size=(3, 27 + 39)):
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
    assert isinstance(random_lstm(jax.random.key(0), 3), gen.Model)


@pytest.mark.parametrize("table", [LogitTable, PrefixTable])
def test_tables_are_pytrees(table):
    shape = (27,) if table is LogitTable else (13, 3)
    batch = np.random.default_rng(0).normal(size=(4, *shape))
    found = jax.jit(jax.vmap(lambda x: table(x).probabilities(WORDS)))(batch)
    one = table(jnp.asarray(batch[1]))
    assert_allclose(found[1], one.probabilities(WORDS), rtol=1e-14)
    slope = jax.grad(lambda m: m.probabilities(WORDS)[0])(one)
    # A constant added to the logits of one softmax changes nothing.
    assert np.abs(np.asarray(slope.logits).sum(axis=-1)).max() <= 1e-15


@partial(jax.jit, static_argnums=2)
def steps(model, p, space):
    """Policy gradients of all rewards, and automatic derivatives of divergences."""

    def descended(m):
        q = m.probabilities(space)
        return -jnp.stack([divergence(q, p) for divergence in DIVERGENCES.values()])

    q, (_, pull) = model.probabilities(space), jax.vjp(descended, model)
    (slopes,) = jax.vmap(pull)(jnp.eye(len(DIVERGENCES)))
    rewards = jnp.stack([optimal_rewards(REWARDS[n], q, p) for n in DIVERGENCES])
    found = jax.vmap(lambda r: policy_gradient(model, space, r))(rewards)
    return [jax.vmap(lambda x: ravel_pytree(x)[0])(tree) for tree in (found, slopes)]


@partial(jax.jit, static_argnums=2)
def both_forms(model, rewards, space):
    forms = gen.token_policy_gradient, policy_gradient
    return [ravel_pytree(form(model, space, rewards))[0] for form in forms]


@pytest.mark.claim("N20.1", "N20.5")
def test_a_step_is_the_gradient_of_the_divergence_in_both_forms():
    p, rewards = np.random.default_rng(7).dirichlet(np.ones(64), 2)
    for model in models(SPACE, 5):
        found, expected = map(np.asarray, steps(model, p, SPACE))
        off = np.linalg.norm(found - expected, axis=1)
        assert (off / np.linalg.norm(expected, axis=1)).max() <= 1e-10
        by_token, whole = map(np.asarray, both_forms(model, jnp.log(rewards), SPACE))
        assert np.linalg.norm(by_token - whole) <= 1e-12 * np.linalg.norm(whole)


@pytest.mark.claim("N20.5", "N20.10")
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
    model = random_lstm(jax.random.key(0), 3, 6, 8, end_token=2)
    rewards = np.random.default_rng(4).normal(size=space.num_texts)
    by_token, whole = both_forms(model, rewards, space)
    assert_allclose(by_token, whole, atol=1e-13)
    law = gen.prefix_distribution(space, model.probabilities(space))
    first = [float(law[space.tokens[:, 0] == a, 0].max()) for a in (0, 1)]
    assert sum(first) == pytest.approx(1, abs=1e-14)


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    space, table, many = qd.TextSpace(2, 2), LogitTable(np.zeros(4)), np.zeros(64)
    lstm, zeros = random_lstm(jax.random.key(0), 3), np.zeros(4)
    for form in (policy_gradient, gen.token_policy_gradient):
        words = "model must be a pytree with probabilities(space)"
        refused((words, form, [0.25] * 4, space, zeros), error=TypeError)
        refused(
            ("logits must have 64 entries, got 4", form, table, SPACE, many),
            ("model's texts are over 3 tokens", form, lstm, space, zeros),
            ("rewards must be finite", form, table, space, zeros + np.inf),
        )
    stale, form = np.eye(4)[0], gen.token_policy_gradient
    shapes = "rewards must have shape (4,), or (4, 2) for one a token, got (4, 3)"
    mixed, words = qd.TextSpace(3, (1, 2)), "of one length, got lengths (1, 2); take a"
    short = PrefixTable(np.zeros((4, 3))).probabilities
    refused(
        ("must have 4 entries, got 3", policy_gradient, table, space, zeros[:3]),
        (shapes, form, table, space, np.zeros((4, 3))),
        ("roll_out must be positive", form, table, space, zeros, stale),
        ("shape (4, 3), the space needs (13, 3)", short, WORDS),
        (words, short, mixed),
        (words, PrefixTable.of, np.full(12, 1 / 12), mixed),
        ("q must be positive everywhere", LogitTable.of, [1.0, 0.0]),
        ("q must sum to 1", LogitTable.of, [1.0, 1.0]),
    )
    text = LogitTable("ab").probabilities, space
    refused(("logits must be an array or list", *text), error=TypeError)
