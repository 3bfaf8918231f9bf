"""Grids of codes, against SciPy's quadrature."""

import numpy as np
import pytest
from refusals import refused
from scipy.integrate import quad
from scipy.stats import norm, vonmises

from qdtheory.generators import (
    LatentGrid,
    circle_grid,
    gauss_hermite_grid,
    log_posterior,
    normal_grid,
)


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
        pdf = law.pdf
        expected = quad(lambda z, f=pdf: np.sin(z) * f(z), -9, 9, epsabs=1e-13)[0]
        q = law_of(grid, [[code]], [[sigma]])
        assert q @ np.sin(grid.nodes[:, 0]) == pytest.approx(expected, abs=error)


def test_the_trapezoidal_rule_resolves_narrower_posteriors_than_gauss_hermite():
    # Variance of a posterior of standard deviation .25, on 65 nodes.
    error = {}
    for grid in (normal_grid(65), gauss_hermite_grid(65)):
        q = law_of(grid, [[0.1]], [[0.25]])
        error[grid.rule] = abs(q @ (grid.nodes[:, 0] - 0.1) ** 2 - 0.0625)
    assert error["normal"] < 1e-6
    assert error["Gauss-Hermite"] > 1e-5


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


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    refused(
        ("a grid needs 2 to 100,000 nodes, got 1", normal_grid, 1),
        ("underflow beyond 350 nodes, got 400", gauss_hermite_grid, 400),
        ("a grid needs 2 to 100,000 nodes, got 100,001", circle_grid, 100_001),
    )
