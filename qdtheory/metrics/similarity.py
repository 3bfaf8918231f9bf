r"""Similarities of two texts, and the Vendi score of a model by such a similarity.

For the Vendi score let $K_{ij} = \phi_i \cdot \phi_j$ be a similarity of texts with
features $\phi_i$ of length 1. A distribution Q has the *density matrix*
$\rho_Q = \sum_i Q_i \phi_i \phi_i'$, of trace 1. Vendi is the exponential of
its entropy: of order 1, von Neumann's $S(\rho) = -\mathrm{tr}\,\rho \log \rho$; of
order a, $\log \mathrm{tr}(\rho^a) / (1 - a)$. For $K = I$ it is the exponential of SE.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, ArrayLike, Float

from qdtheory.metrics.bleu import bleu_table, text_bleu
from qdtheory.metrics.bleu_formula import Smoothing
from qdtheory.metrics.ngrams import ngram_matrix
from qdtheory.world.distributions import (
    check_distribution,
    check_distributions,
    check_finite,
)
from qdtheory.world.numbers import EPS, NOISE, TINY, Number, PerText, Scalar, TextMatrix
from qdtheory.world.spaces import TextSpace


def check_kernel(kernel: Any) -> None:
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
    check_finite(values, "kernel")
    asymmetry = np.abs(values - values.T)
    if asymmetry.max() > NOISE * np.abs(values).max():
        i, j = np.unravel_index(asymmetry.argmax(), values.shape)
        raise ValueError(
            f"kernel must be symmetric, got {values[i, j]:.6g} at [{i}, {j}] and "
            f"{values[j, i]:.6g} at [{j}, {i}]; (kernel + kernel.T) / 2 is symmetric"
        )


def ngram_kernel(space: TextSpace, n: int) -> Float[np.ndarray, "texts texts"]:
    """The n-gram kernel: probability that random n-grams of two texts are equal.

    Its pair is CR-NRR on n-grams, and its squared MMD is CND.

    Args:
        space: texts of one length.
        n: order, 1 .. the texts' length.

    Returns:
        K, shape (num_texts, num_texts), positive semidefinite.

    Raises:
        ValueError: `n` is out of range, the matrix would not fit into memory, or the
            texts have several lengths, so that n-gram frequencies are not linear in Q.

    Example:
        >>> ngram_kernel(TextSpace(vocab_size=2, lengths=2), 1)[0].tolist()
        [1.0, 0.5, 0.5, 0.0]
    """
    length = space.only_length("the n-gram kernel", "take a PooledPair")
    counts = ngram_matrix(space, n)
    return counts.T @ counts / (length - n + 1) ** 2


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


def bleu_of_pairs(
    space: TextSpace, max_order: int, smoothing: Smoothing = None
) -> Float[Array, "texts texts"]:
    """BLEU of each text as reference (row) with each text as candidate (column)."""
    space.refuse_beyond_memory(8 * space.num_texts**2, "BLEU kernel")
    table = bleu_table(space, max_order, smoothing)
    return jax.lax.map(lambda b: text_bleu(table, b, 1), jnp.eye(space.num_texts))


def lcs_kernel(space: TextSpace) -> Float[np.ndarray, "texts texts"]:
    r"""ROUGE-L of each text with each: the longest common subsequence over the length.

    For lengths a and b the F-measure, $2\,LCS / (a + b)$. Its pair is expected ROUGE-L
    with a real text, and minus the mean ROUGE-L of two texts of the model.

    Estimated by `qd.text.pairwise_rouge_l`.

    Args:
        space: the texts.

    Returns:
        K, shape (num_texts, num_texts), symmetric, ones on the diagonal.

    Raises:
        ValueError: the matrix would not fit into memory.

    References:
        Lin 2004, section 3; the kernel view is ours.

    Claims: N25.13, N25.14.

    Example:
        >>> lcs_kernel(TextSpace(vocab_size=2, lengths=2))[1].tolist()
        [0.5, 1.0, 0.5, 0.5]
    """
    best = np.zeros((space.max_length + 1,) * 2 + (space.num_texts,) * 2, np.int8)
    for i, j, same in _tables(space):
        longer = np.maximum(best[i, j + 1], best[i + 1, j])
        best[i + 1, j + 1] = np.where(same, best[i, j] + 1, longer)
    lengths = space.text_lengths
    return 2 * best[-1, -1] / (lengths[:, None] + lengths)


def edit_kernel(space: TextSpace) -> Float[np.ndarray, "texts texts"]:
    """One minus Levenshtein's distance of two texts over the greater length.

    Args:
        space: the texts.

    Returns:
        K, shape (num_texts, num_texts), symmetric, ones on the diagonal.

    Raises:
        ValueError: the matrix would not fit into memory.

    References:
        Wagner and Fischer 1974; the kernel view is ours.

    Claims: N25.15.

    Example:
        >>> edit_kernel(TextSpace(vocab_size=2, lengths=2))[1].tolist()
        [0.5, 1.0, 0.0, 0.5]
    """
    size, texts = space.max_length + 1, np.arange(space.num_texts)
    fewest = np.zeros((size,) * 2 + (texts.size,) * 2, np.int8)
    fewest[:, 0] += np.arange(size, dtype=np.int8)[:, None, None]
    fewest[0] += np.arange(size, dtype=np.int8)[:, None, None]
    for i, j, same in _tables(space):
        aside = np.minimum(fewest[i, j + 1], fewest[i + 1, j]) + 1
        fewest[i + 1, j + 1] = np.minimum(aside, fewest[i, j] + ~same)
    lengths = space.text_lengths
    edits = fewest[lengths[:, None], lengths, texts[:, None], texts]
    return 1 - edits / np.maximum(lengths[:, None], lengths)


def _tables(space: TextSpace) -> Iterator[tuple[int, int, np.ndarray]]:
    """Positions i and j, and of each two texts whether their tokens there agree."""
    size = (space.max_length + 1) ** 2 * space.num_texts**2
    space.refuse_beyond_memory(size, "table of prefixes")
    for i, j in product(range(space.max_length), repeat=2):
        first, second = space.tokens[:, i], space.tokens[:, j]
        yield i, j, (first[:, None] == second) & (second >= 0)


# --- Vendi --------------------------------------------------------------------------


def features_of(kernel: TextMatrix) -> Float[np.ndarray, "texts features"]:
    """Features of texts, unit vectors whose inner products are a similarity."""
    kernel = np.asarray(kernel, dtype=float)
    check_kernel(kernel)
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

    The derivative holds for repeated eigenvalues too (Daleckii and Krein).
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
    slope = -matrix_log(rho) - jnp.eye(len(rho))
    return von_neumann_entropy(rho), (slope * tangents[0]).sum()


def vendi_score(q: PerText, kernel: TextMatrix, order: Number = 1) -> Scalar:
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


def quantum_relative_entropy(q: PerText, p: PerText, kernel: TextMatrix) -> Scalar:
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
