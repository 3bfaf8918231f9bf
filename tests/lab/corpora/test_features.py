"""Frechet distance and Vendi of samples: by other formulas, and the exact limit."""

from itertools import product

import numpy as np
import pytest
from lab import corpora, metrics
from refusals import refused
from scipy.linalg import sqrtm

# -- Frechet distance ----------------------------------------------------------------


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
        assert corpora.frechet_distance(a, b, squared=True) == pytest.approx(
            expected, rel=1e-9
        )
        assert corpora.frechet_distance(a, b) == pytest.approx(expected**0.5, rel=1e-9)


def test_fewer_texts_than_features():
    # Rotated into the plane that holds all texts, the distance is the same.
    rng = np.random.default_rng(1)
    plane = np.linalg.qr(rng.normal(size=(40, 5)))[0]
    a, b = rng.normal(size=(4, 5)), rng.normal(size=(7, 5))
    expected = corpora.frechet_distance(a, b)
    assert corpora.frechet_distance(a @ plane.T, b @ plane.T) == pytest.approx(
        expected, rel=1e-12
    )
    # Two texts a side: one direction each, r and s, deviations along it.
    a, b = np.zeros((2, 3)), np.zeros((2, 3))
    a[1, 0], b[1, 1] = 2, 2
    # Means (1, 0, 0) and (0, 1, 0); variances 2 on orthogonal axes: 2 + 2 + 2 - 0.
    assert corpora.frechet_distance(a, b, squared=True) == pytest.approx(6, rel=1e-12)


def test_symmetric_zero_for_one_sample_and_blind_to_the_order():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 30, 50)).astype(np.float32)
    found = corpora.frechet_distance(a, b)
    assert found > 1
    assert corpora.frechet_distance(b, a) == pytest.approx(found, rel=1e-12)
    assert corpora.frechet_distance(a, rng.permutation(a)) < 1e-12
    assert corpora.frechet_distance(np.rint(9 * a).astype(int), 9 * a) < found


# -- Vendi ---------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(40, 6)) + 0.7


@pytest.mark.claim("N25.12")
@pytest.mark.parametrize("order", [0.5, 1, 2, np.inf])
def test_equals_the_eigenvalues_of_the_matrix_of_cosines(order):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    uniform = np.full(40, 1 / 40)
    expected = float(metrics.vendi_score(uniform, unit @ unit.T, order))
    assert corpora.vendi_score(X, order) == pytest.approx(expected, rel=1e-9)


@pytest.mark.claim("N25.11")
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_bias_of_order_2_is_known_and_that_of_order_1_is_downwards(n):
    features = np.array([[1.0, 0], [0.6, 0.8], [0, 1]])
    q = np.array([0.5, 0.2, 0.3])
    kernel = features @ features.T
    mean = {1: 0.0, 2: 0.0}
    for sample in product(range(3), repeat=n):
        chance = q[list(sample)].prod()
        mean[1] += chance * np.log(corpora.vendi_score(features[list(sample)]))
        mean[2] += chance / corpora.vendi_score(features[list(sample)], 2)
    expected = (1 - 1 / n) / float(metrics.vendi_score(q, kernel, 2)) + 1 / n
    assert mean[2] == pytest.approx(expected, abs=1e-12)
    assert mean[1] < float(np.log(metrics.vendi_score(q, kernel)))


# -- bad input -----------------------------------------------------------------------

INFINITE = np.array([[1.0, np.inf], [1, 1]])


def test_bad_input(as_a_user):
    distance, vendi, some = (
        corpora.frechet_distance,
        corpora.vendi_score,
        np.ones((5, 3)),
    )
    unlike = "as many features of candidates as of references, got 3"
    lone = "_features: a covariance needs two texts"
    refused(
        (unlike, distance, some, np.ones((5, 4))),
        (f"candidate{lone}", distance, some[:1], some),
        (f"reference{lone}", distance, some, some[:1]),
        ("candidate_features must be a matrix", distance, np.ones(5), some),
        ("finite, got inf", distance, np.ones((2, 2)), INFINITE),
        ("one vector a text", vendi, np.ones(3)),
        ("other than 0", vendi, np.zeros((2, 2))),
        ("expected finite vectors", vendi, INFINITE),
        ("positive number", vendi, np.eye(2), -1),
    )
