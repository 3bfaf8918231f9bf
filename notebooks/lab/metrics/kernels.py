r"""More similarities of two texts, and the Vendi score of a model by a similarity.

The Vendi score is the exponential of an entropy of the density matrix $\rho$: of order
1 von Neumann's, of order a $\log \mathrm{tr}(\rho^a) / (1 - a)$. For $K = I$ it is the
exponential of SE.
"""

from collections.abc import Iterator
from itertools import product

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from qdtheory.distributions import as_distribution, as_distributions
from qdtheory.kernels import (
    density_matrix,
    features_of,
    matrix_log,
    von_neumann_entropy,
)
from qdtheory.ngrams import ngram_matrix
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import Number, PerText, Scalar, TextMatrix


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

    Claims: N25.13.

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


def vendi_score(q: PerText, kernel: TextMatrix, order: Number = 1) -> Scalar:
    r"""Vendi score of a model, the effective number of its different texts.

    Estimated by `corpora.vendi_score`.

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
    rho = density_matrix(as_distribution(q, "q", len(features)), features)
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
    q, p = as_distributions(len(features), q=q, p=p)
    model, real = (density_matrix(x, features) for x in (q, p))
    return -von_neumann_entropy(model) - (model * matrix_log(real)).sum()
