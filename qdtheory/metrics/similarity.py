"""Similarities of two texts: common n-grams, BLEU, subsequences, edits."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.metrics.bleu_formula import Smoothing
from qdtheory.metrics.bleu_table import bleu_table, text_bleu
from qdtheory.metrics.ngrams import ngram_matrix
from qdtheory.world.numbers import NOISE
from qdtheory.world.spaces import TextSpace


def check_kernel(kernel: Any) -> None:
    """Raise unless a kernel is a float64 array, square, finite and symmetric."""
    if not isinstance(kernel, np.ndarray | jax.Array) or kernel.dtype != np.float64:
        got = (
            f"dtype {kernel.dtype}"
            if hasattr(kernel, "dtype")
            else f"a {type(kernel).__name__}"
        )
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
    if not np.isfinite(values).all():
        i, j = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"kernel must be finite, got {values[i, j]} at [{i}, {j}]")
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
    common, lengths = _lcs(space), space.text_lengths
    return 2 * common / (lengths[:, None] + lengths)


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
    lengths = space.text_lengths
    return 1 - _edits(space) / np.maximum(lengths[:, None], lengths)


def _tables(space: TextSpace) -> Iterator[tuple[int, int, np.ndarray]]:
    """Positions i and j, and of each two texts whether their tokens there agree."""
    space.refuse_beyond_memory(
        (space.max_length + 1) ** 2 * space.num_texts**2, "table of prefixes"
    )
    for i, j in product(range(space.max_length), repeat=2):
        first, second = space.tokens[:, i], space.tokens[:, j]
        yield i, j, (first[:, None] == second) & (second >= 0)


def _lcs(space: TextSpace) -> np.ndarray:
    """Length of the longest common subsequence of each two texts."""
    shape = (space.max_length + 1,) * 2 + (space.num_texts,) * 2
    best = np.zeros(shape, np.int8)
    for i, j, same in _tables(space):
        longer = np.maximum(best[i, j + 1], best[i + 1, j])
        best[i + 1, j + 1] = np.where(same, best[i, j] + 1, longer)
    return best[-1, -1]


def _edits(space: TextSpace) -> np.ndarray:
    """Fewest insertions, deletions and substitutions from one text to another."""
    size = space.max_length + 1
    fewest = np.zeros((size, size) + (space.num_texts,) * 2, np.int8)
    fewest[:, 0] += np.arange(size, dtype=np.int8)[:, None, None]
    fewest[0] += np.arange(size, dtype=np.int8)[:, None, None]
    for i, j, same in _tables(space):
        aside = np.minimum(fewest[i, j + 1], fewest[i + 1, j]) + 1
        fewest[i + 1, j + 1] = np.minimum(aside, fewest[i, j] + ~same)
    a, b = (x[..., None] for x in (space.text_lengths,) * 2)
    texts = np.arange(space.num_texts)
    return fewest[a, b.T, texts[:, None], texts]
