"""Frechet distance of samples: the published formula, few texts, the exact limit."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

import qdtheory as qd
from qdtheory.text import frechet_distance


def test_equals_the_published_code_where_that_is_safe():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(6, 6))
    for texts in (50, 200):
        a = rng.normal(size=(texts, 6)) @ mixing
        b = rng.normal(size=(80, 6)) + 1
        c1, c2 = np.cov(a.T), np.cov(b.T)
        expected = np.sum((a.mean(0) - b.mean(0)) ** 2) + np.trace(
            c1 + c2 - 2 * sqrtm(c1 @ c2).real
        )
        assert frechet_distance(a, b, squared=True) == pytest.approx(expected, rel=1e-9)
        assert frechet_distance(a, b) == pytest.approx(expected**0.5, rel=1e-9)


def test_fewer_texts_than_features():
    # Rotated into the plane that holds all texts, the distance is the same.
    rng = np.random.default_rng(1)
    plane = np.linalg.qr(rng.normal(size=(40, 5)))[0]
    a, b = rng.normal(size=(4, 5)), rng.normal(size=(7, 5))
    expected = frechet_distance(a, b)
    assert frechet_distance(a @ plane.T, b @ plane.T) == pytest.approx(
        expected, rel=1e-12
    )
    # Two texts a side: one direction each, r and s, deviations along it.
    a, b = np.zeros((2, 3)), np.zeros((2, 3))
    a[1, 0], b[1, 1] = 2, 2
    # Means (1, 0, 0) and (0, 1, 0); variances 2 on orthogonal axes: 2 + 2 + 2 - 0.
    assert frechet_distance(a, b, squared=True) == pytest.approx(6, rel=1e-12)


def test_symmetric_zero_for_one_sample_and_blind_to_the_order():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 30, 50)).astype(np.float32)
    found = frechet_distance(a, b)
    assert found > 1
    assert frechet_distance(b, a) == pytest.approx(found, rel=1e-12)
    assert frechet_distance(a, rng.permutation(a)) < 1e-12
    assert frechet_distance(np.rint(9 * a).astype(int), 9 * a) < found


def test_converges_to_the_exact_distance_from_above():
    rng = np.random.default_rng(3)
    q, p = rng.dirichlet(np.ones(12), size=2)
    features = rng.normal(size=(12, 5))
    exact = float(qd.metrics.frechet_distance(q, p, features, squared=True))
    means = []
    for size in (25, 100, 1600):
        found = [
            frechet_distance(
                features[rng.choice(12, size, p=q)],
                features[rng.choice(12, size, p=p)],
                squared=True,
            )
            for _ in range(200)
        ]
        means.append(np.mean(found) - exact)
    assert means[0] > 2 * means[1] > 4 * abs(means[2])  # a bias of order 1/size
    assert abs(means[2]) < 0.02 * exact


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((5, 3), (5, 4)), "as many features of candidates as of references, got 3"),
        (((1, 3), (5, 3)), "candidate_features: a covariance needs two texts"),
        (((5, 3), (1, 3)), "reference_features: a covariance needs two texts"),
        (((5,), (5, 3)), "candidate_features must be a matrix"),
    ],
)
def test_bad_shapes(as_a_user, shapes, message):
    with pytest.raises(ValueError, match=message):
        frechet_distance(*map(np.ones, shapes))


def test_not_finite(as_a_user):
    a, b = np.ones((2, 5, 3))
    b[4, 2] = np.inf
    with pytest.raises(ValueError, match=r"reference_features must be finite, got inf"):
        frechet_distance(a, b)
