"""Autoencoders as exact distributions, against sampling and a decoder in NumPy."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.generators import (
    Autoencoder,
    Elbo,
    Model,
    circle_grid,
    normal_grid,
    refined,
    train,
)
from qdtheory.generators.autoencoders import masked_prefixes

SPACE = qd.TextSpace(2, 3)
P = np.random.default_rng(0).dirichlet(np.ones(8))
TEXTS = list(product(range(2), repeat=3))


def draw(grid, sigma=0.5, seed=0, **settings):
    return Autoencoder.random(jax.random.key(seed), SPACE, grid, sigma, **settings)


def next_token(model, codes, prefixes=None):
    """Laws of the next token by prefix, seen or masked, computed apart."""
    net = model.decoder
    hidden = np.tanh(codes @ np.asarray(net.inner) + np.asarray(net.inner_biases))
    out = np.hstack([codes, hidden]) @ np.asarray(net.outer) + np.asarray(
        net.outer_biases
    )
    laws = {}
    for row, prefix in enumerate(masked_prefixes(SPACE)[:prefixes]):
        weights = np.exp(out[:, 2 * row : 2 * row + 2])
        laws[prefix] = weights / weights.sum(axis=1, keepdims=True)
    bag = np.exp(out[:, -2:])
    return laws, bag / bag.sum(axis=1, keepdims=True)


@pytest.mark.claim("N23.4")
@pytest.mark.parametrize("kind", ["circle", "learned"])
def test_a_million_texts_have_the_exact_distribution(kind):
    rng, n = np.random.default_rng(4), 1_000_000
    grid = circle_grid(64) if kind == "circle" else normal_grid(129)
    model = draw(grid, learned_prior=kind == "learned")
    q = np.asarray(model.probabilities(SPACE))
    assert q.sum() == pytest.approx(1, abs=1e-12)
    if kind == "circle":
        angles = rng.uniform(0, 2 * np.pi, n)
        codes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        codes = rng.normal(size=(n, 1))
        if model.generator is not None:
            codes = np.asarray(model.generator(jnp.asarray(codes)))
    laws, _ = next_token(model, codes, 7)
    drawn = np.zeros((n, 3), int)
    for t in range(3):
        ones = np.select(
            [(drawn[:, :t] == s).all(axis=1) for s in product(range(2), repeat=t)],
            [laws[s][:, 1] for s in product(range(2), repeat=t)],
        )
        drawn[:, t] = rng.uniform(size=n) < ones
    counts = np.bincount(SPACE.index(drawn), minlength=8)
    errors = np.sqrt(q * (1 - q) / n)
    assert (np.abs(counts / n - q) <= 4 * errors).all()


@pytest.mark.claim("N23.3")
@pytest.mark.parametrize("keep", [1.0, 0.5, 0.2])
def test_word_dropout_is_the_mean_over_all_masks(keep):
    model, codes = draw(normal_grid(9)), np.array([[-1.0], [0.4]])
    laws, bag = next_token(model, codes)
    expected = np.zeros((2, 8))
    for seen in product((True, False), repeat=3):
        chance = np.prod([keep if see else 1 - keep for see in seen])
        for i, text in enumerate(TEXTS):
            shown = tuple(a if see else -1 for a, see in zip(text, seen))
            logs = [np.log(laws[shown[:t]][:, text[t]]) for t in range(3)]
            expected[:, i] += chance * np.sum(logs, axis=0)
    found = model.log_decoded(SPACE, jnp.asarray(codes), keep)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    words = [[np.log(bag[:, a]) for a in text] for text in TEXTS]
    np.testing.assert_allclose(
        model.log_bag(SPACE, jnp.asarray(codes)), np.sum(words, axis=1).T, rtol=1e-12
    )


@pytest.mark.parametrize("grid", [normal_grid(129), circle_grid(64)])
def test_the_distribution_is_an_integral(grid):
    model = draw(grid)
    q = model.probabilities(SPACE)
    for _ in range(2):
        model = refined(model)
        np.testing.assert_allclose(model.probabilities(SPACE), q, atol=1e-9)


def test_autoencoders_are_pytrees():
    keys = jax.random.split(jax.random.key(0), 3)
    batch = jax.vmap(lambda k: Autoencoder.random(k, SPACE, circle_grid(16), 0.3))(keys)
    found = jax.jit(jax.vmap(lambda model: model.probabilities(SPACE)))(batch)
    one = Autoencoder.random(keys[1], SPACE, circle_grid(16), 0.3)
    assert isinstance(one, Model)
    np.testing.assert_allclose(found[1], one.probabilities(SPACE), rtol=1e-12)
    assert one.grid is not None


def test_noise_on_the_circle_is_kept_and_elsewhere_learned():
    for grid, moves in ((circle_grid(32), False), (normal_grid(65), True)):
        start = draw(grid)
        end = train(Elbo(), start, SPACE, P, 2).model
        assert (np.abs(end.log_sigma - start.log_sigma).max() > 0) == moves
        assert np.abs(end.codes - start.codes).max() > 0


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    grid, key = normal_grid(9), jax.random.key(0)
    with pytest.raises(ValueError, match=r"sigma must lie in \(0, 100\), got -1"):
        draw(grid, -1.0)
    with pytest.raises(ValueError, match="hidden_size must be at least 1, got 0"):
        draw(grid, hidden_size=0)
    with pytest.raises(ValueError, match=r"texts of one length, got lengths \(1, 2\)"):
        Autoencoder.random(key, qd.TextSpace(2, (1, 2)), grid)
    with pytest.raises(ValueError, match="has 8 codes and 28 outputs, the space needs"):
        draw(grid).probabilities(qd.TextSpace(2, 2))
    with pytest.raises(ValueError, match="codes without noise are points"):
        draw(grid, None).log_posterior()
    moved = replace(draw(grid), codes=np.zeros((4, 1)))
    with pytest.raises(ValueError, match="has 4 codes"):
        train(Elbo(), moved, SPACE, P, 1)
    with pytest.raises(ValueError, match="too large to enumerate: its table of prefix"):
        Autoencoder.random(key, qd.TextSpace(2, 22), grid)
