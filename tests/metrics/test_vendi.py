"""Vendi against eigenvalues of the kernel matrix, and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import logm

import qdtheory as qd
from qdtheory.metrics.vendi import (
    density_matrix,
    features_of,
    matrix_log,
    von_neumann_entropy,
)


def cosine_kernel(seed, size, rank):
    x = np.random.default_rng(seed).normal(size=(size, rank))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


KERNELS = [cosine_kernel(0, 7, 3), cosine_kernel(1, 6, 9), np.eye(5), np.ones((4, 4))]


def weights(seed, size):
    return np.random.default_rng(seed).dirichlet(np.ones(size))


@pytest.mark.claim("N25.8")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [0.5, 1, 2, 3.5, np.inf])
def test_equals_the_entropy_of_the_weighted_kernel(kernel, order):
    # Friedman and Dieng take the N by N matrix with entries K_ij root(q_i q_j).
    q = weights(0, len(kernel))
    values = np.linalg.eigvalsh(np.sqrt(q)[:, None] * kernel * np.sqrt(q))
    values = values[values > 1e-13]
    if order == 1:
        expected = np.exp(-values @ np.log(values))
    elif order == np.inf:
        expected = 1 / values.max()
    else:
        expected = (values**order).sum() ** (1 / (1 - order))
    assert qd.metrics.vendi_score(q, kernel, order) == pytest.approx(expected, rel=1e-9)


def test_order_2_is_the_mean_squared_similarity():
    kernel, q = KERNELS[0], weights(1, 7)
    assert 1 / qd.metrics.vendi_score(q, kernel, 2) == pytest.approx(q @ kernel**2 @ q)


@pytest.mark.claim("N25.10")
@pytest.mark.parametrize("kernel", KERNELS)
def test_relative_entropy_equals_scipys_logarithms(kernel):
    features = features_of(kernel)
    q, p = weights(2, len(kernel)), weights(3, len(kernel))
    model, real = (np.asarray(density_matrix(x, features)) for x in (q, p))
    expected = np.trace(model @ (logm(model) - logm(real)))
    found = float(qd.metrics.quantum_relative_entropy(q, p, kernel))
    assert found == pytest.approx(float(expected), abs=1e-10)
    assert found >= -1e-14
    if (kernel == np.eye(len(kernel))).all():
        assert found == pytest.approx(float(qd.kl_divergence(q, p)), abs=1e-13)


@pytest.mark.parametrize("rho", [np.eye(3) / 3, np.diag([0.5, 0.3, 0.2])])
def test_derivatives_equal_differences_even_of_repeated_eigenvalues(rho):
    step = np.array([[1.0, 0.5, 0], [0.5, -0.7, 0.2], [0, 0.2, -0.3]])

    def along(t):
        return von_neumann_entropy(jnp.asarray(rho) + t * step)

    t = 1e-4
    slope = (along(t) - along(-t)) / (2 * t)
    bend = (along(t) - 2 * along(0.0) + along(-t)) / t**2
    assert jax.grad(along)(0.0) == pytest.approx(float(slope), abs=1e-6)
    assert jax.grad(jax.grad(along))(0.0) == pytest.approx(float(bend), rel=1e-5)
    np.testing.assert_allclose(matrix_log(jnp.asarray(rho)), logm(rho), atol=1e-12)


def test_a_model_without_some_texts_has_finite_entropy():
    q = np.array([0.5, 0.5, 0, 0, 0])
    assert float(qd.metrics.vendi_score(q, np.eye(5))) == pytest.approx(2, abs=1e-12)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (np.ones((2, 3)), "square matrix"),
        (np.array([[1, 0.5], [0.2, 1]]), "symmetric"),
        (2 * np.eye(2), "1 on the diagonal"),
        (np.array([[1, 2.0], [2, 1]]), "positive semidefinite"),
    ],
)
def test_bad_kernels_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        qd.metrics.vendi_score([0.5, 0.5], kernel)


def test_the_order_is_positive(as_a_user):
    with pytest.raises(ValueError, match="order must be positive"):
        qd.metrics.vendi_score([0.5, 0.5], np.eye(2), 0)


@pytest.mark.claim("N25.8")
def test_a_large_sample_comes_close():
    kernel, q = KERNELS[0], weights(4, 7)
    features = features_of(kernel)
    drawn = np.random.default_rng(5).choice(7, p=q, size=50_000)
    for order in (1, 2):
        found = qd.text.vendi_score(features[drawn], order)
        assert found == pytest.approx(
            float(qd.metrics.vendi_score(q, kernel, order)), rel=0.01
        )
