r"""The Vendi score: the entropy of texts that are more or less alike.

Let $K_{ij} = \phi_i \cdot \phi_j$ be a similarity of texts with features $\phi_i$ of
length 1. A distribution Q has the *density matrix*
$\rho_Q = \sum_i Q_i \phi_i \phi_i'$, of trace 1. Vendi is the exponential of
its entropy: of order 1, von Neumann's $S(\rho) = -\mathrm{tr}\,\rho \log \rho$; of
order a, $\log \mathrm{tr}(\rho^a) / (1 - a)$. For $K = I$ it is the exponential of SE.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, ArrayLike, Float

from qdtheory.world.distributions import (
    Number,
    check_distribution,
    check_distributions,
)
from qdtheory.world.numbers import EPS, NOISE, TINY


def features_of(
    kernel: Float[ArrayLike, "texts texts"],
) -> Float[np.ndarray, "texts features"]:
    """Features of texts whose inner products are a similarity.

    Args:
        kernel: K, symmetric and positive semidefinite up to rounding, with ones on the
            diagonal, shape (N, N).

    Returns:
        Unit vectors, shape (N, rank).

    Raises:
        ValueError: K is not square and symmetric, has an entry other than 1 on the
            diagonal, or a negative eigenvalue.

    Example:
        >>> features_of(np.ones((2, 2))).round(12).tolist()
        [[1.0], [1.0]]
    """
    kernel = np.asarray(kernel, dtype=float)
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1] or not kernel.size:
        raise ValueError(
            f"kernel must be a square matrix, one row a text, got shape {kernel.shape}"
        )
    if not np.abs(kernel - kernel.T).max() <= NOISE:
        raise ValueError("kernel must be finite and symmetric")
    if np.abs(np.diag(kernel) - 1).max() > NOISE:
        raise ValueError(
            "kernel must be 1 on the diagonal, the similarity of a text to itself; "
            "divide K_ij by the root of K_ii K_jj"
        )
    values, vectors = np.linalg.eigh((kernel + kernel.T) / 2)
    if values[0] < -8 * NOISE * len(kernel):
        raise ValueError(
            "kernel must be positive semidefinite, or there are no features; its least "
            f"eigenvalue is {values[0]:.4g}"
        )
    kept = values > 8 * NOISE * len(kernel)
    features = vectors[:, kept] * np.sqrt(values[kept])
    largest = np.abs(features).argmax(axis=0)  # the signs are arbitrary
    return features * np.sign(features[largest, np.arange(kept.sum())])


def density_matrix(
    q: Float[ArrayLike, " texts"], features: Float[ArrayLike, "texts features"]
) -> Float[Array, "features features"]:
    r"""Return $\rho_Q = \sum_i Q_i \phi_i \phi_i'$.

    Args:
        q: a distribution, shape (N,).
        features: one unit vector a text, shape (N, d).

    Returns:
        A matrix of trace 1, shape (d, d).
    """
    features = jnp.asarray(features)
    return (features.T * jnp.asarray(q)) @ features


@jax.custom_jvp
def matrix_log(
    rho: Float[ArrayLike, "features features"],
) -> Float[Array, "features features"]:
    """Logarithm of a positive semidefinite matrix, of eigenvalues at least 1e-300.

    The derivative holds for repeated eigenvalues too (Daleckii and Krein).

    Args:
        rho: symmetric, shape (d, d).

    Returns:
        A symmetric matrix, shape (d, d).
    """
    values, vectors = jnp.linalg.eigh(rho)
    return (vectors * jnp.log(jnp.maximum(values, TINY))) @ vectors.T


@matrix_log.defjvp
def _matrix_log_jvp(primals, tangents):
    values, vectors = jnp.linalg.eigh(primals[0])
    # Below this they are rounding: of a singular matrix the slope stays finite, and
    # right for texts that lie in its range.
    values = jnp.maximum(values, EPS * values[-1])
    a, b = values[:, None], values[None]
    ratio = (a - b) / b
    near = jnp.abs(ratio) < 1e-4
    # (log a - log b) / (a - b), by its series where a and b are close.
    series = (1 - ratio / 2 + ratio**2 / 3 - ratio**3 / 4) / b
    apart = (jnp.log(a) - jnp.log(b)) / jnp.where(near, 1.0, a - b)
    quotients = jnp.where(near, series, apart)
    inner = vectors.T @ tangents[0] @ vectors
    return matrix_log(primals[0]), vectors @ (quotients * inner) @ vectors.T


@jax.custom_jvp
def von_neumann_entropy(
    rho: Float[ArrayLike, "features features"],
) -> Float[Array, ""]:
    r"""Entropy of a density matrix, $-\mathrm{tr}\,\rho \log \rho$, in nats.

    Args:
        rho: symmetric, positive semidefinite, of trace 1, shape (d, d).

    Returns:
        A number in $[0, \log d]$.

    Example:
        >>> float(von_neumann_entropy(np.eye(2) / 2).round(6))
        0.693147
    """
    return entr(jnp.maximum(jnp.linalg.eigvalsh(rho), 0.0)).sum()


@von_neumann_entropy.defjvp
def _von_neumann_entropy_jvp(primals, tangents):
    rho = primals[0]
    slope = -matrix_log(rho) - jnp.eye(len(rho))
    return von_neumann_entropy(rho), (slope * tangents[0]).sum()


def vendi_score(
    q: Float[ArrayLike, " texts"],
    kernel: Float[ArrayLike, "texts texts"],
    order: Number = 1,
) -> Float[Array, ""]:
    r"""Vendi score of a model, the effective number of its different texts.

    Estimated by `qd.text.vendi_score`.

    Args:
        q: the model, shape (N,).
        kernel: K, positive semidefinite with ones on the diagonal, shape (N, N).
        order: a, positive: 1 for von Neumann's entropy, 2 for minus the log of the
            mean squared similarity of two texts, infinity for the largest eigenvalue.

    Returns:
        A number from 1 to N.

    Raises:
        ValueError: as in `features_of`; `q` is not a distribution over its texts, or
            the order is not positive.

    References:
        Friedman and Dieng 2023; Pasarkar and Dieng 2024 for other orders.

    Claims: N25.8, N25.11.

    Example:
        >>> q = np.array([0.5, 0.5])
        >>> [round(float(vendi_score(q, k)), 6) for k in (np.eye(2), np.ones((2, 2)))]
        [2.0, 1.0]
    """
    if not order > 0:
        raise ValueError(f"order must be positive, got {order}")
    features = features_of(kernel)
    rho = density_matrix(check_distribution(q, "q", len(features)), features)
    if order == 1:
        return jnp.exp(von_neumann_entropy(rho))
    values = jnp.maximum(jnp.linalg.eigvalsh(rho), 0.0)
    if order == jnp.inf:
        return 1 / values.max()
    return (values**order).sum() ** (1 / (1 - order))


def quantum_relative_entropy(
    q: Float[ArrayLike, " texts"],
    p: Float[ArrayLike, " texts"],
    kernel: Float[ArrayLike, "texts texts"],
) -> Float[Array, ""]:
    r"""Divergence of the log of Vendi, $\mathrm{tr}\,\rho_Q (\log\rho_Q - \log\rho_P)$.

    It is 0 iff $\rho_Q = \rho_P$, which implies Q = P only if the squared similarity is
    positive definite. For $K = I$ it is KL(Q || P).

    Args:
        q: the model, shape (N,).
        p: the real distribution, shape (N,).
        kernel: K, positive semidefinite with ones on the diagonal, shape (N, N).

    Returns:
        Nats, at least 0 up to rounding.

    Raises:
        ValueError: as in `features_of`; or `q` or `p` is not a distribution over its
            texts.

    References:
        Umegaki 1962; Bach 2023 for kernels.

    Claims: N25.10.

    Example:
        >>> a, b = np.array([0.5, 0.5]), np.array([0.25, 0.75])
        >>> float(quantum_relative_entropy(a, b, np.eye(2)).round(6))
        0.143841
    """
    features = features_of(kernel)
    q, p = check_distributions(len(features), q=q, p=p)
    model, real = (density_matrix(x, features) for x in (q, p))
    return -von_neumann_entropy(model) - (model * matrix_log(real)).sum()
