"""LeakGAN's policies, against loops over texts and automatic derivatives."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from refusals import refused

import qdtheory as qd
from qdtheory.generators import (
    LeakGAN,
    LeakyLSTM,
    MaximumLikelihood,
    PrefixTable,
    Sampled,
    token_policy_gradient,
    train,
)
from qdtheory.generators.adversarial import VARIANTS, prefix_scores

SPACE = qd.TextSpace(2, 3)
P = np.random.default_rng(7).dirichlet(np.ones(8))


def draw(variant, seed=0):
    return LeakyLSTM.random(jax.random.key(seed), 2, variant, size=3, sigma=0.7)


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def states(network, text):
    """h after the start token and after each token but the last, in NumPy."""
    w = {k: np.asarray(v) for k, v in vars(network).items() if k != "end_token"}
    h = c = np.zeros(w["recurrent_weights"].shape[0])
    found = []
    for token in [0, *text[:-1]]:
        gates = w["embeddings"][token] @ w["input_weights"] + w["gate_biases"]
        gates = gates + h @ w["recurrent_weights"]
        i, f, o, cell = np.split(gates, 4)
        sigmoid = [1 / (1 + np.exp(-x)) for x in (i, f, o)]
        c = sigmoid[1] * c + sigmoid[0] * np.tanh(cell)
        h = sigmoid[2] * np.tanh(c)
        found.append(h)
    return found


def next_tokens(model, text):
    """The laws of each token of a text, in NumPy."""
    own, leaked = VARIANTS[model.variant]
    networks = model.generator, model.discriminator
    for g, d in zip(*(states(n, text) for n in networks)):
        seen = np.concatenate([g] * own + [d] * leaked)
        hidden = np.tanh(seen @ model.mixing_weights + model.mixing_biases)
        logits = hidden @ model.generator.output_weights + model.generator.output_biases
        yield np.exp(np.asarray(logits)) / np.exp(logits).sum()


@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_are_a_product_over_tokens(variant):
    model = draw(variant)
    q = np.asarray(model.probabilities(SPACE))
    scores = np.asarray(prefix_scores(model.discriminator, SPACE))
    weights, biases = (
        np.asarray(x)
        for x in (
            model.discriminator.output_weights,
            model.discriminator.output_biases,
        )
    )
    for row, text in enumerate(product(range(2), repeat=3)):
        chances = [law[token] for token, law in zip(text, next_tokens(model, text))]
        assert q[row] == pytest.approx(np.prod(chances), rel=1e-12)
        judged = np.array(states(model.discriminator, text)) @ weights + biases
        expected = judged[range(3), text]
        np.testing.assert_allclose(scores[row], expected, rtol=0, atol=1e-13)


def test_the_step_moves_both():
    model, p = draw("mixed"), jnp.asarray(P)
    ascent = jax.jit(LeakGAN(0.9).ascent, static_argnums=2)
    found, _ = ascent((), model, SPACE, p)
    q = model.probabilities(SPACE)

    def likelihood(discriminator):
        d = jax.nn.sigmoid(prefix_scores(discriminator, SPACE))
        return (p[:, None] * jnp.log(d) + q[:, None] * jnp.log(1 - d)).sum()

    expected = flat(jax.jit(jax.grad(likelihood))(model.discriminator))
    np.testing.assert_allclose(
        flat(found.discriminator), expected, rtol=1e-10, atol=1e-14
    )
    d = np.asarray(jax.nn.sigmoid(prefix_scores(model.discriminator, SPACE)))
    earned = d.copy()
    for t in (1, 0):
        earned[:, t] += 0.9 * earned[:, t + 1]
    field = token_policy_gradient(model, SPACE, earned)
    assert np.abs(flat(field.discriminator)).max() == 0
    field = replace(field, discriminator=found.discriminator)
    np.testing.assert_allclose(flat(found), flat(field), atol=1e-14)


@pytest.mark.claim("N22.8")
def test_a_table_takes_the_same_step_whatever_is_leaked():
    """Logits of a table plus any function of the prefix and the next token."""
    rng = np.random.default_rng(1)
    logits = jnp.asarray(rng.normal(size=(7, 2)))

    @jax.jit
    def both(leak, rewards):
        def probabilities(theta):
            return PrefixTable(theta + leak).probabilities(SPACE)

        q, pull = jax.vjp(probabilities, logits - leak)
        return q, pull(rewards)[0]

    for seed in range(20):
        leak = np.random.default_rng(seed).normal(size=(7, 2), scale=3)
        # Rewards of whole texts are enough: with tokens' the pooling is the same.
        rewards = rng.normal(size=8)
        expected = token_policy_gradient(PrefixTable(logits), SPACE, rewards).logits
        q, found = both(leak, rewards)
        np.testing.assert_allclose(found, expected, atol=1e-13)
        assert q.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(expected).max() > 0


@pytest.mark.claim("N22.8")
def test_noleak_does_not_see_the_discriminator():
    for variant in VARIANTS:
        model = draw(variant)
        other = replace(model, discriminator=draw(variant, 5).discriminator)
        q, moved = (m.probabilities(SPACE) for m in (model, other))
        assert (np.abs(q - moved).max() > 1e-3) == (variant != "noleak")
        assert variant != "noleak" or (q == moved).all()


@pytest.mark.slow
def test_training():
    model = draw("leak")
    first = train(MaximumLikelihood(), model, SPACE, P, 300, every=300)
    assert float(first.nll[-1]) < float(first.nll[0])
    np.testing.assert_array_equal(
        flat(first.model.discriminator), flat(model.discriminator)
    )
    for objective in (LeakGAN(), Sampled(LeakGAN(), 16)):
        found = train(objective, first.model, SPACE, P, 10, every=10)
        moved = flat(found.model.discriminator) - flat(model.discriminator)
        assert np.abs(moved).max() > 1e-3
        assert np.isfinite(float(found.js[-1]))


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    model, table = draw("leak"), PrefixTable(np.zeros((7, 2)))
    size, one = (
        "over 2 tokens here, the space over 3",
        "a LeakyLSTM is for texts of one",
    )
    refused(
        ("variant must be one of leak, noleak, mixed, got 'both'", draw, "both"),
        (size, model.probabilities, qd.TextSpace(3, 2)),
        (one, model.probabilities, qd.TextSpace(2, (1, 2))),
        ("gamma must lie in [0, 1], got 2", LeakGAN, 2),
    )
    words = "LeakGAN trains a LeakyLSTM, got a PrefixTable"
    refused((words, train, LeakGAN(), table, SPACE, P, 1), error=TypeError)
