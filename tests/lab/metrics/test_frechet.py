"""Frechet distance against closed forms and scipy.linalg.sqrtm, where that is safe."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import metrics
from lab.metrics.frechet import gaussian_distance
from refusals import refused
from scipy.linalg import sqrtm
from scripts import published

SEEDS = st.integers(0, 10**6)
FEW = settings(max_examples=20)  # each draws a whole world


def random_world(seed, texts, features):
    """Two distributions with some zeros, and a feature map."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(2, texts)) * (rng.random((2, texts)) < 0.8)
    weights[:, 0] += 0.1
    return *(w / w.sum() for w in weights), rng.normal(size=(texts, features))


def moments(q, features):
    mean = q @ features
    return mean, np.cov(features.T, aweights=q, ddof=0).reshape(2 * [len(mean)])


def by_matrix_root(q, p, features):
    """Equation 2 as it is printed, squared."""
    (m1, c1), (m2, c2) = moments(q, features), moments(p, features)
    return np.sum((m1 - m2) ** 2) + np.trace(c1 + c2 - 2 * sqrtm(c1 @ c2)).real


@FEW
@given(seed=SEEDS)
def test_equals_the_printed_formula_where_covariances_are_regular(seed):
    q, p, features = random_world(seed, texts=40, features=4)
    found = metrics.frechet_distance(q, p, features, squared=True)
    # Conditions below 1e3 cost sqrtm a few digits of 16.
    assert float(found) == pytest.approx(by_matrix_root(q, p, features), rel=1e-9)
    rooted = metrics.frechet_distance(q, p, features)
    assert float(rooted) ** 2 == pytest.approx(float(found), rel=1e-14)


@FEW
@given(seed=SEEDS)
def test_one_feature_is_two_means_and_two_deviations(seed):
    q, p, features = random_world(seed, texts=9, features=1)
    (m1, c1), (m2, c2) = moments(q, features), moments(p, features)
    expected = np.hypot(m1 - m2, np.sqrt(c1) - np.sqrt(c2)).item()
    assert float(metrics.frechet_distance(q, p, features)) == pytest.approx(
        expected, rel=1e-12
    )


@FEW
@given(seed=SEEDS, rank=st.sampled_from([1, 3, 8]))
def test_commuting_covariances_differ_as_their_roots(seed, rank):
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    # Standard deviations 0 too: the covariances are singular for ranks 1 and 3.
    a, b = (np.where(np.arange(8) < rank, rng.exponential(size=8), 0) for _ in "ab")
    zero = np.zeros(8)
    covariances = ((axes.T * x**2) @ axes for x in (a, b))
    found = gaussian_distance(zero, next(covariances), zero, next(covariances))
    assert found == pytest.approx(np.linalg.norm(a - b), abs=1e-12)


@FEW
@given(seed=SEEDS, features=st.sampled_from([2, 30]))
def test_symmetric_and_blind_to_rotations_and_shifts(seed, features):
    q, p, f = random_world(seed, texts=20, features=features)
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(features, features)))[0]
    found = float(metrics.frechet_distance(q, p, f))
    assert float(metrics.frechet_distance(p, q, f)) == pytest.approx(found, rel=1e-12)
    moved = metrics.frechet_distance(q, p, f @ rotation + 3)
    assert float(moved) == pytest.approx(found, rel=1e-12)
    assert float(metrics.frechet_distance(q, p, 5 * f)) == pytest.approx(5 * found)


def test_zero_where_the_moments_agree_though_the_distributions_differ():
    # On a square, its corners against its edges' midpoints: variance 1/2 both ways.
    angles = np.arange(8) * np.pi / 4
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    corners = np.tile([0.25, 0.0], 4)
    assert (
        float(metrics.frechet_distance(corners, corners[::-1].copy(), features)) < 1e-15
    )
    third = np.column_stack([features, np.tile([1.0, 0.0], 4)])
    assert float(
        metrics.frechet_distance(corners, corners[::-1].copy(), third)
    ) == pytest.approx(1)


@FEW
@given(seed=SEEDS, features=st.sampled_from([2, 30]))
def test_zero_for_equal_and_small_for_close_distributions(seed, features):
    q, p, f = random_world(seed, texts=20, features=features)
    assert float(metrics.frechet_distance(q, q, f)) < 1e-13
    # To first order in the step the distance is linear in it: no digits are lost.
    near, nearer = (
        float(metrics.frechet_distance((1 - t) * q + t * p, q, f[:, :2]))
        for t in (1e-6, 1e-8)
    )
    assert near / nearer == pytest.approx(100, rel=1e-3)


def test_bad_input_is_refused(as_a_user):
    distance, half, ones = metrics.frechet_distance, np.full(2, 0.5), np.ones((2, 1))
    refused(
        ("of the 2 texts, got shape (3, 2)", distance, half, half, np.ones((3, 2))),
        ("matrix with a row a text and a column", distance, half, half, np.ones(2)),
        ("got shape (2, 0)", distance, half, half, np.ones((2, 0))),
        ("finite, got nan at [1, 0]", distance, half, half, [[1.0], [np.nan]]),
        ("q must sum to 1", distance, 2 * half, half, ones),
        ("p must have 2 entries, got 3", distance, half, np.full(3, 1 / 3), ones),
    )
    refused(
        ("be real numbers, got dtype <U1", distance, half, half, [["a"], ["b"]]),
        ("real numbers, got dtype complex", distance, half, half, [[1j], [1]]),
        error=TypeError,
    )


@pytest.mark.claim("E13.2")
def test_the_square_of_the_frechet_distance_is_no_distance():
    # Points on a line: the distance is that of the points. Counts may be features.
    x, points = np.arange(3)[:, None], np.eye(3)
    squares = [
        float(metrics.frechet_distance(points[i], points[j], x, squared=True))
        for i, j in ((0, 1), (1, 2), (0, 2))
    ]
    np.testing.assert_allclose(squares, [1, 1, 4], rtol=1e-14)
    assert published("montahaei2019", "1", "MLE", "FBD") ** 0.5 == pytest.approx(
        1.404, abs=5e-4
    )
