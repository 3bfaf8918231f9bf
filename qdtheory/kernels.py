r"""How alike two texts are: a kernel K, such as BLEU's, and its density matrices.

Let $K_{ij} = \phi_i \cdot \phi_j$ be a similarity of texts with features $\phi_i$ of
length 1. A distribution Q has the *density matrix*
$\rho_Q = \sum_i Q_i \phi_i \phi_i'$, of trace 1, and von Neumann's entropy
$S(\rho) = -\mathrm{tr}\,\rho \log \rho$, the log of the Vendi score. For $K = I$ it is
SE.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, ArrayLike, Float

from qdtheory.bleu import bleu_table, text_bleu
from qdtheory.distributions import require_finite
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import (
    EPS,
    NOISE,
    TINY,
    PerText,
    Scalar,
    TextMatrix,
)


def require_kernel(kernel: Any) -> None:
    """Raise unless a kernel is a float64 array, square, finite and symmetric."""
    if not isinstance(kernel, np.ndarray | jax.Array) or kernel.dtype != np.float64:
        got = getattr(kernel, "dtype", type(kernel).__name__)
        raise TypeError(
            f"kernel must be a NumPy or JAX array of float64, got {got}; "
            "convert it with numpy.asarray(kernel, dtype=float)"
        )
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1] or not kernel.size:
        raise ValueError(
            "kernel must be a square matrix with a row and a column for each text, "
            f"got shape {kernel.shape}"
        )
    values = np.asarray(kernel)
    require_finite(values, "kernel")
    asymmetry = np.abs(values - values.T)
    if asymmetry.max() > NOISE * np.abs(values).max():
        i, j = np.unravel_index(asymmetry.argmax(), values.shape)
        raise ValueError(
            f"kernel must be symmetric, got {values[i, j]:.6g} at [{i}, {j}] and "
            f"{values[j, i]:.6g} at [{j}, {i}]; (kernel + kernel.T) / 2 is symmetric"
        )


def bleu_kernel(space: TextSpace, max_order: int) -> Float[np.ndarray, "texts texts"]:
    """BLEU of each text with each text as the single reference.

    Its pair is expected BLEU and negative Self-BLEU with one reference each.

    Args:
        space: texts of one length.
        max_order: highest order of the n-grams.

    Returns:
        K, shape (num_texts, num_texts), symmetric.

    Raises:
        ValueError: `max_order` is below 1, the table would not fit into memory, or the
            texts have several lengths, so that the brevity penalty makes BLEU
            asymmetric.

    References:
        Li et al. 2020, section 5.1; the kernel view is ours.

    Claims: N16.14, N16.28.

    Example:
        >>> bleu_kernel(TextSpace(vocab_size=2, lengths=2), 2)[1].round(4).tolist()
        [0.0, 1.0, 0.0, 0.0]
    """
    space.only_length("BLEU as a symmetric kernel")
    kernel = np.asarray(bleu_of_pairs(space, max_order))
    # Symmetric up to the rounding of sums in different orders.
    return (kernel + kernel.T) / 2


def bleu_of_pairs(space: TextSpace, max_order: int) -> Float[Array, "texts texts"]:
    """BLEU of each text as reference (row) with each text as candidate (column)."""
    space.refuse_beyond_memory(8 * space.num_texts**2, "BLEU kernel")
    table = bleu_table(space, max_order)
    return jax.lax.map(lambda b: text_bleu(table, b, 1), jnp.eye(space.num_texts))


# --- The density matrix ---------------------------------------------------------------


def features_of(kernel: TextMatrix) -> Float[np.ndarray, "texts features"]:
    """Features of texts, unit vectors whose inner products are a similarity."""
    kernel = np.asarray(kernel, dtype=float)
    require_kernel(kernel)
    if np.abs(np.diag(kernel) - 1).max() > NOISE:
        raise ValueError(
            "kernel must be 1 on the diagonal, the similarity of a text to itself; "
            "divide K_ij by the root of K_ii K_jj"
        )
    # K = V diag(values) V', so that the rows of V diag(values)^(1/2) are features.
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
    q: PerText, features: Float[ArrayLike, "texts features"]
) -> Float[Array, "features features"]:
    r"""Return $\rho_Q = \sum_i Q_i \phi_i \phi_i'$, of trace 1."""
    features = jnp.asarray(features)
    return (features.T * jnp.asarray(q)) @ features


@jax.custom_jvp
def matrix_log(
    rho: Float[ArrayLike, "features features"],
) -> Float[Array, "features features"]:
    """Logarithm of a positive semidefinite matrix, of eigenvalues at least 1e-300.

    The derivative holds for repeated eigenvalues too (Daleckii and Krein): for
    rho = W diag(l) W' and a change H it is W (D * W'HW) W', where * is elementwise and
    D_ij = (log l_i - log l_j) / (l_i - l_j), or 1 / l_i where they are equal.
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
def von_neumann_entropy(rho: Float[ArrayLike, "features features"]) -> Scalar:
    r"""Entropy of a density matrix, $-\mathrm{tr}\,\rho \log \rho$, in nats."""
    return entr(jnp.maximum(jnp.linalg.eigvalsh(rho), 0.0)).sum()


@von_neumann_entropy.defjvp
def _von_neumann_entropy_jvp(primals, tangents):
    rho = primals[0]
    # dS = -tr((log rho + I) drho).
    slope = -matrix_log(rho) - jnp.eye(len(rho))
    return von_neumann_entropy(rho), (slope * tangents[0]).sum()
