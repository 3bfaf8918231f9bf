"""Vendi of feature vectors, by covariance and by the matrix of cosines."""

from itertools import product

import numpy as np
import pytest

import qdtheory as qd
from qdtheory import text

X = np.random.default_rng(0).normal(size=(40, 6)) + 0.7


@pytest.mark.claim("N25.12")
@pytest.mark.parametrize("order", [0.5, 1, 2, np.inf])
def test_equals_the_eigenvalues_of_the_matrix_of_cosines(order):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    uniform = np.full(40, 1 / 40)
    expected = float(qd.metrics.vendi_score(uniform, unit @ unit.T, order))
    assert text.vendi_score(X, order) == pytest.approx(expected, rel=1e-9)


@pytest.mark.claim("N25.11")
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_bias_of_order_2_is_known_and_that_of_order_1_is_downwards(n):
    features = np.array([[1.0, 0], [0.6, 0.8], [0, 1]])
    q = np.array([0.5, 0.2, 0.3])
    kernel = features @ features.T
    mean = {1: 0.0, 2: 0.0}
    for sample in product(range(3), repeat=n):
        chance = q[list(sample)].prod()
        mean[1] += chance * np.log(text.vendi_score(features[list(sample)]))
        mean[2] += chance / text.vendi_score(features[list(sample)], 2)
    expected = (1 - 1 / n) / float(qd.metrics.vendi_score(q, kernel, 2)) + 1 / n
    assert mean[2] == pytest.approx(expected, abs=1e-12)
    assert mean[1] < float(np.log(qd.metrics.vendi_score(q, kernel)))


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("features", "order", "message"),
    [
        (np.ones(3), 1, "one vector a text"),
        (np.zeros((2, 2)), 1, "other than 0"),
        (np.eye(2), -1, "positive number"),
    ],
)
def test_bad_input_is_refused(features, order, message):
    with pytest.raises(ValueError, match=message):
        text.vendi_score(features, order)
