"""Autoencoders and their parts, against sampling, a decoder in NumPy and quadrature."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.generators import (
    Autoencoder,
    Elbo,
    LatentGrid,
    LatentReport,
    Model,
    circle_grid,
    gauss_hermite_grid,
    latent_report,
    log_posterior,
    normal_grid,
    refined,
    train,
)
from lab.generators.autoencoders import masked_prefixes
from refusals import refused
from scipy.integrate import quad
from scipy.stats import norm, vonmises

import qdtheory as qd

SPACE, SHORT = qd.TextSpace(2, 3), qd.TextSpace(2, 2)
P = np.random.default_rng(0).dirichlet(np.ones(8))
P4 = np.array([0.1, 0.2, 0.3, 0.4])
TEXTS = list(product(range(2), repeat=3))


def draw(grid, sigma=0.5, seed=0, space=SPACE, **settings):
    return Autoencoder.random(jax.random.key(seed), space, grid, sigma, **settings)


def short(grid, sigma=0.5, seed=0, **settings):
    return draw(grid, sigma, seed, SHORT, **settings)


def next_token(model, codes, prefixes=None):
    """Distributions of the next token by prefix, seen or masked, computed apart."""
    inner, inner_biases, outer, outer_biases = map(
        np.asarray, jax.tree.leaves(model.decoder)
    )
    hidden = np.tanh(codes @ inner + inner_biases)
    weights = np.exp(np.hstack([codes, hidden]) @ outer + outer_biases)
    rows = weights.reshape(len(codes), -1, 2)
    rows = rows / rows.sum(axis=-1, keepdims=True)
    seen = masked_prefixes(SPACE)[:prefixes]
    return {prefix: rows[:, i] for i, prefix in enumerate(seen)}, rows[:, -1]


@pytest.mark.slow
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
        codes = np.asarray(model.generator(jnp.asarray(rng.normal(size=(n, 1)))))
    rows, _ = next_token(model, codes, 7)
    drawn = np.zeros((n, 3), int)
    for t in range(3):
        prefixes = list(product(range(2), repeat=t))
        here = [(drawn[:, :t] == s).all(axis=1) for s in prefixes]
        drawn[:, t] = rng.uniform(size=n) < np.select(
            here, [rows[s][:, 1] for s in prefixes]
        )
    counts = np.bincount(SPACE.index(drawn), minlength=8)
    errors = np.sqrt(q * (1 - q) / n)
    assert (np.abs(counts / n - q) <= 4 * errors).all()


@pytest.mark.claim("N23.3")
@pytest.mark.parametrize("keep", [1.0, 0.5, 0.2])
def test_word_dropout_is_the_mean_over_all_masks(keep):
    model, codes = draw(normal_grid(9)), np.array([[-1.0], [0.4]])
    rows, bag = next_token(model, codes)
    expected = np.zeros((2, 8))
    for seen in product((True, False), repeat=3):
        chance = np.prod([keep if see else 1 - keep for see in seen])
        for i, text in enumerate(TEXTS):
            shown = tuple(a if see else -1 for a, see in zip(text, seen))
            logs = [np.log(rows[shown[:t]][:, text[t]]) for t in range(3)]
            expected[:, i] += chance * np.sum(logs, axis=0)
    codes = jnp.asarray(codes)
    found = model.log_decoded(SPACE, codes, keep)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    words = np.log(bag)[:, np.array(TEXTS)].sum(axis=2)
    np.testing.assert_allclose(model.log_bag(SPACE, codes), words, rtol=1e-12)


@pytest.mark.parametrize("grid", [normal_grid(129), circle_grid(64)])
def test_the_distribution_is_an_integral(grid):
    model = draw(grid)
    q = model.probabilities(SPACE)
    for _ in range(2):
        model = refined(model)
        np.testing.assert_allclose(model.probabilities(SPACE), q, atol=1e-9)


def test_autoencoders_are_pytrees_and_reports_are_mapped():
    def both(key):
        model = Autoencoder.random(key, SHORT, circle_grid(128), 0.5)
        return model.probabilities(SHORT), latent_report(model, SHORT, P4)

    keys = jax.random.split(jax.random.key(0), 2)
    assert isinstance(short(circle_grid(16)), Model)
    together, one = jax.jit(jax.vmap(both))(keys), both(keys[1])
    for many, single in zip(*map(jax.tree.leaves, (together, one)), strict=True):
        np.testing.assert_allclose(many[1], single, rtol=1e-10, atol=1e-12)


def test_noise_on_the_circle_is_kept_and_elsewhere_learned():
    for grid, moves in ((circle_grid(32), False), (normal_grid(65), True)):
        start = draw(grid)
        end = train(Elbo(), start, SPACE, P, 2).model
        assert (np.abs(end.log_sigma - start.log_sigma).max() > 0) == moves
        assert np.abs(end.codes - start.codes).max() > 0


# --- Grids ----------------------------------------------------------------------------


def law_of(grid, code, sigma):
    return np.exp(log_posterior(grid, np.array(code), np.array(sigma)))[0]


def smooth(z):
    return 1 / (1 + np.exp(3 * z - 1))


@pytest.mark.parametrize("grid", [normal_grid(81), gauss_hermite_grid(161)])
def test_the_prior_integrates_as_scipy(grid):
    expected = quad(lambda z: smooth(z) * norm.pdf(z), -9, 9, epsabs=1e-13)[0]
    assert grid.weights.sum() == pytest.approx(1, abs=1e-14)
    assert grid.weights @ smooth(grid.nodes[:, 0]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.claim("N23.2")
@pytest.mark.parametrize(
    ("grid", "sigma", "error"),
    [
        (normal_grid(41), 0.6, 1e-8),
        (normal_grid(161), 0.15, 1e-10),
        (gauss_hermite_grid(41), 0.9, 1e-8),
        (gauss_hermite_grid(161), 0.5, 1e-9),
    ],
)
def test_posteriors_integrate_as_scipy(grid, sigma, error):
    for code in (-1.2, 0.3):
        law = norm(code, sigma)
        expected = law.expect(np.sin, lb=-9, ub=9, epsabs=1e-13)
        q = law_of(grid, [[code]], [[sigma]])
        assert q @ np.sin(grid.nodes[:, 0]) == pytest.approx(expected, abs=error)


@pytest.mark.claim("N23.2")
@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
def test_noise_on_the_circle_is_von_mises(sigma):
    grid = circle_grid(256)
    angles = np.arctan2(grid.nodes[:, 1], grid.nodes[:, 0])
    q = law_of(grid, [[3.0, 4.0]], [[sigma]])
    expected = vonmises.pdf(angles, 1 / sigma**2, loc=np.arctan2(4, 3))
    np.testing.assert_allclose(q, 2 * np.pi / 256 * expected, atol=1e-12)


@pytest.mark.parametrize(
    "grid", [normal_grid(5), gauss_hermite_grid(5), circle_grid(5)]
)
def test_a_refined_grid_has_half_the_distance(grid):
    fine = grid.refined()
    assert isinstance(fine, LatentGrid)
    if grid.rule != "Gauss-Hermite":
        np.testing.assert_allclose(fine.nodes[::2], grid.nodes, atol=1e-15)
    assert fine.refined().size in (17, 20)


# --- What the codes hold --------------------------------------------------------------


@pytest.mark.claim("N23.1")
@pytest.mark.parametrize("grid", [normal_grid(257), circle_grid(128)])
def test_the_bound_and_its_parts_add_up(grid):
    for seed in range(3):
        model = short(grid, seed=seed)
        found = latent_report(model, SHORT, P4)
        q = np.asarray(model.probabilities(SHORT))
        assert float(found.log_likelihood) == pytest.approx(P4 @ np.log(q), abs=1e-12)
        whole = float(found.elbo + found.gap)
        assert whole == pytest.approx(float(found.log_likelihood), abs=1e-10)
        parts = float(found.mutual_information + found.marginal_kl)
        assert parts == pytest.approx(float(found.kl), abs=1e-10)
        assert min(found.gap, found.mutual_information, found.marginal_kl) >= 0


@pytest.mark.claim("N23.1")
@pytest.mark.claim("N23.2")
def test_parts_are_integrals_over_the_line():
    model = short(normal_grid(129), 0.7)
    found = latent_report(model, SHORT, P4)
    codes = np.asarray(model.codes)[:, 0]
    posteriors = [norm(code, 0.7) for code in codes]
    one = jax.jit(lambda z: model.log_decoded(SHORT, z))

    def log_decoded(z):
        return np.asarray(one(np.array([[z]])))[0]

    def mean(law, f):
        return quad(lambda z: law.pdf(z) * f(z), -9, 9, epsabs=1e-11, limit=200)[0]

    def mixture(z):
        return sum(p * law.pdf(z) for p, law in zip(P4, posteriors))

    def information(law):
        return mean(law, lambda z: np.log(law.pdf(z) / mixture(z)))

    q = [mean(norm, lambda z, i=i: np.exp(log_decoded(z)[i])) for i in range(4)]
    reading = [
        mean(law, lambda z, i=i: log_decoded(z)[i]) for i, law in enumerate(posteriors)
    ]
    # The divergence of Gaussians in closed form.
    kl = (0.49 + codes**2 - 1) / 2 - np.log(0.7)
    expected = {
        "reconstruction": P4 @ reading,
        "log_likelihood": P4 @ np.log(q),
        "kl": P4 @ kl,
        "mutual_information": P4 @ [information(law) for law in posteriors],
    }
    for name, value in expected.items():
        assert float(getattr(found, name)) == pytest.approx(value, abs=1e-8)


def test_gauss_hermite_agrees_with_the_trapezoidal_rule():
    wide = short(normal_grid(129), 0.9)
    # A decoder without sharp steps, for which few nodes are enough.
    smooth = replace(wide.decoder, inner=0.2 * wide.decoder.inner)
    wide = replace(wide, decoder=smooth)
    other = replace(wide, grid=gauss_hermite_grid(85))
    found, expected = (latent_report(model, SHORT, P4) for model in (other, wide))
    assert isinstance(found, LatentReport)
    np.testing.assert_allclose(*map(jax.tree.leaves, (found, expected)), atol=1e-8)


@pytest.mark.claim("N23.11")
@pytest.mark.parametrize("sigma", [0.1, 0.3, 1.0])
def test_noise_on_the_circle_limits_what_a_code_tells(sigma):
    capacity = np.log(2 * np.pi) - vonmises(1 / sigma**2).entropy()
    entropy = float(qd.entropy(P4))
    evenly = np.stack([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    for seed in range(3):
        model = short(circle_grid(256), sigma, seed)
        for codes in (model.codes, evenly):
            found = latent_report(replace(model, codes=codes), SHORT, P4)
            information = float(found.mutual_information)
            assert information <= min(capacity, entropy) + 1e-9
            assert -float(found.reconstruction) >= entropy - information - 1e-9


@pytest.mark.claim("N23.2")
@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    def report(model, p=P4, **change):
        return lambda: latent_report(replace(model, **change), SHORT, p)

    grid, coarse = normal_grid(9), short(normal_grid(33), 0.1)
    lost = replace(coarse.decoder, outer_biases=np.full(10, np.nan))
    moved = replace(draw(grid), codes=np.zeros((4, 1)))
    nan, third = "holds NaN: its training diverged", np.full(3, 1 / 3)
    points = "codes without noise are points"

    def drawn(space=SPACE, *setting, **settings):
        return lambda: draw(grid, *setting, space=space, **settings)

    nodes = "size must lie in [2, 100000], got"
    refused(
        (f"{nodes} 1", normal_grid, 1),
        (f"{nodes} 100001", circle_grid, 100_001),
        ("underflow beyond 350 nodes, got 400", gauss_hermite_grid, 400),
        ("sigma must lie in (0, 100), got -1", draw, grid, -1.0),
        ("is for texts of one length, g", drawn(qd.TextSpace(2, (1, 2)))),
        ("to enumerate: its table of prefix", drawn(qd.TextSpace(2, 22))),
        ("has 8 codes and 28 outputs, the sp", draw(grid).probabilities, SHORT),
        (points, draw(grid, None).log_posterior),
        ("has 4 codes", train, Elbo(), moved, SPACE, P, 1),
        ("the grid is too coarse: the marginal kl changes by", report(coarse)),
        ("when 33 nodes become 65; take more", report(coarse)),
        (points, report(short(grid, None))),
        ("prior of an ARAE is learned", report(short(grid, learned_prior=True))),
        (nan, report(coarse, decoder=lost)),
        (nan, report(coarse, codes=np.full((4, 1), np.nan))),
        ("p must have 4 entries, got 3", report(coarse, third)),
    )
    fine = refined(refined(refined(refined(coarse))))
    assert np.isfinite(float(report(fine)().elbo))
