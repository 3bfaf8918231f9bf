"""The ELBO and its parts, against SciPy's quadrature over codes."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, vonmises

import qdtheory as qd
from qdtheory.generators import (
    Autoencoder,
    circle_grid,
    gauss_hermite_grid,
    latent_report,
    normal_grid,
    refined,
)

SPACE = qd.TextSpace(2, 2)
P = np.array([0.1, 0.2, 0.3, 0.4])


def draw(grid, sigma=0.5, seed=0, **settings):
    return Autoencoder.random(jax.random.key(seed), SPACE, grid, sigma, **settings)


@pytest.mark.claim("N23.1")
@pytest.mark.parametrize("grid", [normal_grid(257), circle_grid(128)])
def test_the_bound_and_its_parts_add_up(grid):
    for seed in range(3):
        model = draw(grid, seed=seed)
        found = latent_report(model, SPACE, P)
        q = np.asarray(model.probabilities(SPACE))
        assert float(found.log_likelihood) == pytest.approx(P @ np.log(q), abs=1e-12)
        whole = float(found.elbo + found.gap)
        assert whole == pytest.approx(float(found.log_likelihood), abs=1e-10)
        parts = float(found.mutual_information + found.marginal_kl)
        assert parts == pytest.approx(float(found.kl), abs=1e-10)
        assert min(found.gap, found.mutual_information, found.marginal_kl) >= 0


@pytest.mark.claim("N23.1")
@pytest.mark.claim("N23.2")
def test_parts_are_integrals_over_the_line():
    model = draw(normal_grid(129), 0.7)
    found = latent_report(model, SPACE, P)
    codes = np.asarray(model.codes)[:, 0]
    posteriors = [norm(code, 0.7) for code in codes]
    one = jax.jit(lambda z: model.log_decoded(SPACE, z))

    def log_decoded(z):
        return np.asarray(one(np.array([[z]])))[0]

    def mean(law, f):
        return quad(lambda z: law.pdf(z) * f(z), -9, 9, epsabs=1e-11, limit=200)[0]

    def mixture(z):
        return sum(p * law.pdf(z) for p, law in zip(P, posteriors))

    q = [quad(lambda z, i=i: norm.pdf(z) * np.exp(log_decoded(z)[i]), -9, 9)[0]
         for i in range(4)]  # fmt: skip
    reading = [mean(law, lambda z, i=i: log_decoded(z)[i])
               for i, law in enumerate(posteriors)]  # fmt: skip
    assert float(found.reconstruction) == pytest.approx(P @ reading, abs=1e-8)
    assert float(found.log_likelihood) == pytest.approx(P @ np.log(q), abs=1e-8)
    # The divergence of Gaussians in closed form.
    kl = (0.49 + codes**2 - 1) / 2 - np.log(0.7)
    assert float(found.kl) == pytest.approx(P @ kl, abs=1e-8)
    information = [mean(law, lambda z, law=law: np.log(law.pdf(z) / mixture(z)))
                   for law in posteriors]  # fmt: skip
    assert float(found.mutual_information) == pytest.approx(P @ information, abs=1e-8)


def test_gauss_hermite_agrees_with_the_trapezoidal_rule():
    wide = draw(normal_grid(129), 0.9)
    # A decoder without sharp steps, for which few nodes are enough.
    smooth = replace(wide.decoder, inner=0.2 * wide.decoder.inner)
    wide = replace(wide, decoder=smooth)
    other = replace(wide, grid=gauss_hermite_grid(85))
    found, expected = (latent_report(model, SPACE, P) for model in (other, wide))
    for name in ("elbo", "mutual_information", "gap"):
        a, b = getattr(found, name), getattr(expected, name)
        assert float(a) == pytest.approx(float(b), abs=1e-8)


def test_a_report_is_mapped_over_models():
    keys = jax.random.split(jax.random.key(3), 2)
    batch = jax.vmap(lambda k: Autoencoder.random(k, SPACE, circle_grid(128), 0.5))(
        keys
    )
    found = jax.vmap(lambda model: latent_report(model, SPACE, P))(batch)
    one = latent_report(
        Autoencoder.random(keys[1], SPACE, circle_grid(128), 0.5), SPACE, P
    )
    assert float(found.elbo[1]) == pytest.approx(float(one.elbo), abs=1e-12)


@pytest.mark.claim("N23.2")
@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    coarse = draw(normal_grid(33), 0.1)
    with pytest.raises(ValueError, match="the grid is too coarse: the marginal kl"):
        latent_report(coarse, SPACE, P)
    with pytest.raises(ValueError, match="when 33 nodes on an axis become 65; take"):
        latent_report(coarse, SPACE, P)
    fine = refined(refined(refined(refined(coarse))))
    assert np.isfinite(float(latent_report(fine, SPACE, P).elbo))
    with pytest.raises(ValueError, match="codes without noise are points"):
        latent_report(draw(normal_grid(33), None), SPACE, P)
    with pytest.raises(ValueError, match="prior of an ARAE is learned"):
        latent_report(draw(normal_grid(33), learned_prior=True), SPACE, P)
    lost = replace(coarse, codes=np.full((4, 1), np.nan))
    broken = replace(
        coarse, decoder=replace(coarse.decoder, outer_biases=np.full(10, np.nan))
    )
    with pytest.raises(ValueError, match="holds NaN: its training diverged"):
        latent_report(broken, SPACE, P)
    with pytest.raises(ValueError, match="holds NaN: its training diverged"):
        latent_report(lost, SPACE, P)
    with pytest.raises(ValueError, match="p must have 4 entries, got 3"):
        latent_report(coarse, SPACE, np.full(3, 1 / 3))


@pytest.mark.claim("N23.11")
@pytest.mark.parametrize("sigma", [0.1, 0.3, 1.0])
def test_noise_on_the_circle_limits_what_a_code_tells(sigma):
    capacity = np.log(2 * np.pi) - vonmises(1 / sigma**2).entropy()
    entropy = float(qd.entropy(P))
    evenly = np.stack([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    for seed in range(3):
        for codes in (None, evenly):
            model = draw(circle_grid(256), sigma, seed)
            model = model if codes is None else replace(model, codes=codes)
            found = latent_report(model, SPACE, P)
            information = float(found.mutual_information)
            assert information <= min(capacity, entropy) + 1e-9
            assert -float(found.reconstruction) >= entropy - information - 1e-9
