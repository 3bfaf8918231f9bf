"""Similarities of two texts: common n-grams, BLEU of one by the other."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from qdtheory.metrics.bleu_table import bleu_table, text_bleu
from qdtheory.metrics.ngrams import ngram_matrix
from qdtheory.world.spaces import TextSpace


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
    if len(space.lengths) > 1:
        raise ValueError(
            "the n-gram kernel needs texts of one length, got lengths "
            f"{space.lengths}; NgramPair takes several"
        )
    counts = ngram_matrix(space, n)
    return counts.T @ counts / (space.max_length - n + 1) ** 2


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
    if len(space.lengths) > 1:
        raise ValueError(
            "BLEU is a symmetric kernel for texts of one length only, got lengths "
            f"{space.lengths}"
        )
    space.refuse_beyond_memory(8 * space.num_texts**2, "BLEU kernel")
    table = bleu_table(space, max_order)
    columns = jax.lax.map(lambda b: text_bleu(table, b, 1), jnp.eye(space.num_texts))
    kernel = np.asarray(columns)
    # Symmetric up to the rounding of sums in different orders.
    return (kernel + kernel.T) / 2
