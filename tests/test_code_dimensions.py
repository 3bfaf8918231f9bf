"""Autoencoders with codes that are drawn, and their table."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln, ive
from scripts import script

import qdtheory as qd
from qdtheory.generators import AUTOENCODERS, circle_grid, normal_grid, reconstruct

NOISY = ["AE-sph (sigma=0.1)", "AAE-gauss", "AAE-gauss-det (lambda=10 d=1)"]
AE = "AE-sph (sigma=0.1)"


@pytest.fixture(scope="module")
def codes():
    return script("make_code_dimensions")


def started(codes, name, dimension=1, length=3):
    """A model that is not trained, and the numbers of its kind."""
    setup = AUTOENCODERS[name]
    model = codes.drawn(setup, codes.SPACES[length], dimension, 0)
    return model, codes.numbers(setup, dimension), codes.kind(setup)


def drawn_codes(codes, name, num_codes, dimension=1):
    model, numbers, which = started(codes, name, dimension)
    keys = jax.random.split(jax.random.key(5))
    width = model.codes.shape[1]
    noise = jax.random.normal(keys[0], (64, num_codes, width))
    share = jax.random.uniform(keys[1], (64, num_codes))
    return codes.noisy(model, numbers, which, noise, share)


@pytest.mark.parametrize("name", NOISY)
def test_noise_and_optimal_discriminator_are_those_of_a_grid(codes, name):
    model, numbers, which = started(codes, name)
    round_ = which.startswith("circle")
    grid = circle_grid(4096) if round_ else normal_grid(8001)
    sigma = {"line": 0.3, "circle, noisy": 0.1}.get(which)
    log_q = replace(model, grid=grid).log_posterior(sigma)
    p = qd.oracle(codes.SPACES[3], 0)
    near = np.abs(grid.nodes[:, 0]) < 4
    expected = np.log(p @ np.exp(log_q)) - np.log(grid.weights)
    found = codes.log_ratio(model, numbers, which, p, jnp.asarray(grid.nodes))
    np.testing.assert_allclose(found[near], expected[near], atol=1e-9)
    z = drawn_codes(codes, name, 20_000)
    powers = np.concatenate([grid.nodes, grid.nodes**2], axis=1)
    moments = np.concatenate([z.mean(axis=1), (z**2).mean(axis=1)], axis=1)
    np.testing.assert_allclose(moments, np.exp(log_q) @ powers, atol=0.05)


@pytest.mark.parametrize("dimension", [1, 2, 8])
@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_noise_on_a_sphere_has_the_moments_of_von_mises_and_fisher(
    codes, dimension, sigma
):
    quantiles, log_mean = codes.sphere_noise(sigma, dimension)
    kappa, half = sigma**-2, (dimension + 1) / 2
    ratio = ive(half, kappa) / ive(half - 1, kappa)
    assert quantiles.mean() == pytest.approx(ratio, abs=1e-4)
    log_bessel = np.log(ive(half - 1, kappa)) + kappa
    expected = gammaln(half) + log_bessel - (half - 1) * np.log(kappa / 2)
    assert log_mean == pytest.approx(expected, abs=1e-6)


def test_noisy_codes_of_a_sphere_lie_on_it(codes):
    z = drawn_codes(codes, AE, 50, dimension=4)
    np.testing.assert_allclose(np.linalg.norm(z, axis=-1), 1, atol=1e-12)


@pytest.mark.parametrize("length", [3, 6])
def test_a_text_is_read_by_its_own_rows_of_the_decoder(codes, length):
    space = codes.SPACES[length]
    model, _, _ = started(codes, "VAE (dw=0.5)", 2, length)
    rows = codes.masked_rows(space, 1.0, 1, jax.random.key(1))
    found = codes.own_logs(model, space, model.codes[:, None], rows)[:, 0]
    expected = jnp.diagonal(model.log_decoded(space, model.codes))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_drawn_masks_have_the_mean_over_all_masks(codes):
    space = codes.SPACES[3]
    model, _, _ = started(codes, "VAE (dw=0.5)")
    rows = codes.masked_rows(space, 0.5, 4000, jax.random.key(1))
    z = jnp.repeat(model.codes[:, None], 4000, axis=1)
    found = codes.own_logs(model, space, z, rows)
    expected = jnp.diagonal(model.log_decoded(space, model.codes, 0.5))
    error = found.std(axis=1) / np.sqrt(4000)
    assert (abs(found.mean(axis=1) - expected) < 5 * error + 1e-12).all()


@pytest.mark.claim("N23.22")
@pytest.mark.parametrize("name", ["VAE (dw=0.5)", AE])
def test_standard_errors_are_the_spread_over_repeats_around_the_grid(codes, name):
    space = codes.SPACES[3]
    p = qd.oracle(space, 0)
    model, _, _ = started(codes, name)
    keys, size = jax.random.split(jax.random.key(7), 40), codes.CHUNK
    each = [
        codes.by_draws(3, model, p, jax.random.normal(key, (size, 9))) for key in keys
    ]
    values, errors = (np.array([e[i] for e in each]) for i in (1, 2))
    ratio = values.std(axis=0, ddof=1) / errors.mean(axis=0)
    assert (ratio > 0.6).all()
    assert (ratio < 1.5).all()
    law = replace(model, grid=model.grid.refined()).probabilities(space)
    exact = qd.cross_entropy(p, law), qd.cross_entropy(law, p)
    away = abs(values[:, :2].mean(axis=0) - np.array(exact))
    assert (away < 5 * errors[:, :2].mean(axis=0) / np.sqrt(40)).all()


@pytest.mark.parametrize("length", [3, 6])
def test_what_is_read_is_what_the_library_reconstructs(codes, length):
    space = codes.SPACES[length]
    p = qd.oracle(space, 1)
    model, _, _ = started(codes, AE, 8, length)
    read = codes.reading(length, model, p, codes.pair_scores(length))
    found = reconstruct(model, space, p)
    expected = found.nll, found.accuracy, found.bleu[2], found.rouge[2]
    np.testing.assert_allclose(read, expected, atol=1e-12)
