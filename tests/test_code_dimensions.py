"""Autoencoders with codes that are drawn, and their table."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from lab.generators import (
    AUTOENCODERS,
    circle_grid,
    normal_grid,
    reconstruct,
)
from scipy.special import gammaln, ive
from scripts import frame, script

import qdtheory as qd

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


# --- the tables -----------------------------------------------------------------------

DEFAULT = "ARAE (default)"


@pytest.fixture(scope="module")
def table():
    index = ["length", "dimension", "oracle"]
    return frame("code_dimensions.csv").set_index(index).sort_index()


def drawn_rows(table, length, dimension, column):
    """A column of models trained on draws, oracles by models."""
    rows = table[table.trained == "draws"].loc[length, dimension]
    return rows.set_index("model", append=True)[column].unstack()


def trained_plainly(codes, name, length, dimension, oracle):
    """A plain autoencoder without noise, for which there is nothing to draw."""
    space = codes.SPACES[length]
    p = qd.oracle(space, oracle)

    def loss(model):
        return -p @ jnp.diagonal(model.log_decoded(space, model.text_codes()))

    @jax.jit
    def half(model):
        adam = optax.adam(codes.RATE)

        def step(at, _):
            model, state = at
            move, state = adam.update(jax.grad(loss)(model), state)
            return (optax.apply_updates(model, move), state), None

        at = model, adam.init(model)
        return jax.lax.scan(step, at, length=codes.STEPS // 2)[0][0]

    start = codes.drawn(AUTOENCODERS[name], space, dimension, oracle)
    return half(half(start)), space, p


@pytest.mark.slow
@pytest.mark.claim("N23.23")
@pytest.mark.parametrize("name", ["AE-gauss-det (d=1)", "AE-sph (sigma=0 d=1)"])
def test_a_row_is_made_again_by_plain_gradients_and_draws_of_numpy(codes, table, name):
    model, space, p = trained_plainly(codes, name, 3, 4, 1)
    row = table[table.model == name].loc[3, 4, 1]
    assert reconstruct(model, space, p).nll == pytest.approx(row.read_nll, rel=1e-2)
    z = np.random.default_rng(8).normal(size=(20_000, model.codes.shape[1]))
    if model.grid.rule == "circle":
        z /= np.linalg.norm(z, axis=1, keepdims=True)
    q = np.exp(model.log_decoded(space, jnp.asarray(z))).mean(axis=0)
    for column, found in (
        ("nll", qd.cross_entropy(p, q)),
        ("oracle_nll", qd.cross_entropy(q, p)),
        ("js", qd.jensen_shannon_divergence(p, q)),
    ):
        # Two independent samples: the table's is 2**16 draws, this one 20,000.
        error = row[f"{column}_error"] * np.sqrt(1 + 2**16 / 20_000)
        assert abs(found - row[column]) < 4.5 * error + 1e-3 * row[column]


@pytest.mark.slow
@pytest.mark.claim("N23.26")
def test_reconstruction_of_longer_texts_is_made_again(codes, table):
    name = "AE-sph (sigma=0 d=1)"
    model, space, p = trained_plainly(codes, name, 6, 8, 0)
    found, row = reconstruct(model, space, p), table[table.model == name].loc[6, 8, 0]
    expected = row[["read_accuracy", "read_bleu", "read_rouge"]].astype(float)
    scores = [found.accuracy, found.bleu[2], found.rouge[2]]
    np.testing.assert_allclose(scores, expected, atol=1e-3)


@pytest.mark.slow
@pytest.mark.claim("N23.25")
def test_an_arae_at_its_default_is_further_from_real_text_when_trained_again(codes):
    """Its critic makes each run another one, down to the rounding of sums."""
    space = codes.SPACES[3]
    p = qd.oracle(space, 0)
    start = codes.drawn(codes.ARAE_DEFAULT, space, 2, 0)
    model = codes.trained_arae(3, codes.STEPS, start, p, jax.random.key(2000))
    z = jnp.asarray(np.random.default_rng(9).normal(size=(20_000, 3)))
    q = np.exp(model.log_decoded(space, model.generator(z))).mean(axis=0)
    ours = frame("generators.csv").query(
        "model == 'ARAE' and decoding == 'drawn' and oracle == 0"
    )
    assert qd.cross_entropy(p, q) > 1.05 * ours.nll.item()
    assert qd.cross_entropy(q, p) > 1.05 * ours.oracle_nll.item()


@pytest.mark.slow
@pytest.mark.claim("N23.24")
def test_an_adversary_harms_the_gaussian_autoencoder_in_eight_dimensions(codes):
    space, names = codes.SPACES[3], ["AE-gauss-det (d=1)", NOISY[2]]
    p = qd.oracle(space, 1)
    each = [
        (codes.drawn(setup, space, 8, 1), codes.numbers(setup, 8))
        for setup in map(AUTOENCODERS.get, names)
    ]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
    models = codes.trained("line", 3, codes.STEPS, *both, p, jax.random.key(2001))
    z, forward = jnp.asarray(np.random.default_rng(11).normal(size=(20_000, 8))), []
    for i in range(2):
        model = jax.tree.map(lambda leaf, i=i: leaf[i], models)
        q = np.exp(model.log_decoded(space, z)).mean(axis=0)
        forward.append(qd.cross_entropy(p, q))
    assert forward[1] > forward[0] + 0.1


def test_what_an_arae_at_its_default_shows_next_to_the_optimal_critic(table):
    ours = frame("generators.csv").query("model == 'ARAE' and decoding == 'drawn'")
    ours = ours.set_index("oracle")
    for metric, least in (("js", 16), ("oracle_nll", 15)):
        rows = [drawn_rows(table, 3, d, metric)[DEFAULT] for d in (1, 2, 4, 8)]
        above = [row > ours[metric].loc[row.index] for row in rows]
        assert np.sum(above) >= least


def test_the_step_of_an_arae_moves_codes_up_the_critic_and_the_decoder(codes):
    """One step without the critic's part is one of plain noisy likelihood."""
    space = codes.SPACES[3]
    p = qd.oracle(space, 0)
    start = codes.drawn(codes.ARAE_DEFAULT, space, 2, 0)
    after = codes.trained_arae(3, 1, start, p, jax.random.key(1))
    # Adam's first step is the rate in every direction that has a slope.
    moves = np.abs(np.asarray(after.codes - start.codes))
    assert moves.max() <= codes.RATE * (1 + 1e-9)
    assert np.median(moves) == pytest.approx(codes.RATE, rel=1e-3)
    moved = np.abs(np.asarray(after.generator.outer - start.generator.outer))
    assert moved.max() == pytest.approx(codes.GENERATOR_RATE, rel=1e-2)


@pytest.mark.slow
@pytest.mark.claim("N23.27")
def test_codes_of_a_vae_stray_as_often_when_drawn_again(codes):
    space, name = codes.SPACES[3], "VAE (dw=0.5)"
    p, setup = np.asarray(qd.oracle(space, 0)), AUTOENCODERS[name]
    start, numbers = codes.drawn(setup, space, 8, 0), codes.numbers(setup, 8)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (start, numbers))
    model = codes.trained("VAE", 3, codes.STEPS, *one, p, jax.random.key(2000))
    texts = np.argsort(-p)[:10]
    mean, sigma = np.asarray(model.codes[0])[texts], np.exp(model.log_sigma[0])[texts]
    noise = np.random.default_rng(10).normal(size=(1000, 10, 8))
    gaps = ((mean + sigma * noise)[:, :, None] - mean) ** 2
    found = (gaps.sum(axis=-1).argmin(axis=-1) != np.arange(10)).mean()
    places = frame("code_places.csv").query("dimension == 8 and model == 'VAE'")
    assert len(places) == 1000
    assert found == pytest.approx((places.nearest != places.text).mean(), abs=0.07)


def test_codes_without_noise_are_ten_points(codes):
    places = frame("code_places.csv").query("dimension == 2")
    own = places[places.model == "AAE-gauss-det"].groupby("text")
    assert (own[["x", "y"]].std() < 2 * codes.SPREAD).all(axis=None)
    centres = own[["x", "y"]].mean().to_numpy()
    assert ((centres[:, None] - centres) ** 2).sum(axis=-1)[
        ~np.eye(10, dtype=bool)
    ].min() > 1e-2
