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
from qdtheory.generators.leakgan import VARIANTS, prefix_scores

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
def test_a_million_texts_have_the_exact_distribution(variant):
    model, rng, n = draw(variant), np.random.default_rng(9), 1_000_000
    q = np.asarray(model.probabilities(SPACE))
    assert q.sum() == pytest.approx(1, abs=1e-12)
    reached = {(): n}  # how many texts begin so
    for _ in range(3):
        further = {}
        for prefix, count in reached.items():
            *_, law = next_tokens(model, (*prefix, 0))
            for token, number in enumerate(rng.multinomial(count, law)):
                further[*prefix, token] = number
        reached = further
    found = np.array([reached[text] for text in product(range(2), repeat=3)]) / n
    assert (abs(found - q) <= 4 * np.sqrt(q * (1 - q) / n)).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_are_a_product_over_tokens(variant):
    model = draw(variant)
    q = np.asarray(model.probabilities(SPACE))
    scores = np.asarray(prefix_scores(model.discriminator, SPACE))
    for row, text in enumerate(product(range(2), repeat=3)):
        chance = 1.0
        for t, law in enumerate(next_tokens(model, text)):
            chance *= law[text[t]]
        for t, d in enumerate(states(model.discriminator, text)):
            judged = d @ np.asarray(model.discriminator.output_weights)
            judged = judged + np.asarray(model.discriminator.output_biases)
            assert scores[row, t] == pytest.approx(judged[text[t]], abs=1e-13)
        assert q[row] == pytest.approx(chance, rel=1e-12)


def test_the_step_moves_both():
    model, p = draw("mixed"), jnp.asarray(P)
    found, _ = LeakGAN(0.9).ascent((), model, SPACE, p)
    q = model.probabilities(SPACE)

    def likelihood(discriminator):
        d = jax.nn.sigmoid(prefix_scores(discriminator, SPACE))
        return (p[:, None] * jnp.log(d) + q[:, None] * jnp.log(1 - d)).sum()

    expected = jax.grad(likelihood)(model.discriminator)
    np.testing.assert_allclose(
        flat(found.discriminator), flat(expected), rtol=1e-10, atol=1e-14
    )
    d = np.asarray(jax.nn.sigmoid(prefix_scores(model.discriminator, SPACE)))
    earned = d.copy()
    for t in (1, 0):
        earned[:, t] += 0.9 * earned[:, t + 1]
    field = token_policy_gradient(model, SPACE, earned)
    assert np.abs(flat(field.discriminator)).max() == 0
    for part in ("generator", "mixing_weights", "mixing_biases"):
        np.testing.assert_allclose(
            flat(getattr(found, part)), flat(getattr(field, part)), atol=1e-14
        )


@pytest.mark.claim("N22.8")
def test_a_table_takes_the_same_step_whatever_is_leaked():
    """Logits of a table plus any function of the prefix and the next token."""
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(8, 3))
    logits = rng.normal(size=(7, 2))
    plain = token_policy_gradient(PrefixTable(logits), SPACE, rewards).logits

    for seed in range(20):
        leak = np.random.default_rng(seed).normal(size=(7, 2), scale=3)

        def probabilities(theta, leak=leak):
            return PrefixTable(theta + leak).probabilities(SPACE)

        q = probabilities(logits - leak)
        pull = jax.vjp(probabilities, jnp.asarray(logits - leak))[1]
        # Rewards of whole texts are enough: with tokens' the pooling is the same.
        whole = rng.normal(size=8)
        expected = token_policy_gradient(PrefixTable(logits), SPACE, whole).logits
        np.testing.assert_allclose(pull(jnp.asarray(whole))[0], expected, atol=1e-13)
        assert q.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(plain).max() > 0


@pytest.mark.claim("N22.8")
def test_noleak_does_not_see_the_discriminator():
    model = draw("noleak")
    other = replace(model, discriminator=draw("noleak", 5).discriminator)
    q = model.probabilities(SPACE)
    np.testing.assert_array_equal(q, other.probabilities(SPACE))
    for variant in ("leak", "mixed"):
        model = draw(variant)
        other = replace(model, discriminator=draw(variant, 5).discriminator)
        gap = model.probabilities(SPACE) - other.probabilities(SPACE)
        assert np.abs(gap).max() > 1e-3


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
