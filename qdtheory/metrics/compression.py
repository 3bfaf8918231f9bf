r"""LZ78: how short a sample becomes, a diversity without n-grams or embeddings.

The tokens are cut into phrases, each the shortest that is new: a phrase before it and
one token more. Phrase j names one of the j phrases before it, the empty one among them,
and a token: $\lceil \log_2 j \rceil + \lceil \log_2 |V| \rceil$ bits. As the sample
grows, bits per token tend to the entropy rate of its source (Ziv and Lempel 1978).
"""

from collections.abc import Iterable
from itertools import product
from math import log2

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.world.distributions import check_distribution, check_positive
from qdtheory.world.spaces import TextSpace


def lz78_phrases(tokens: Iterable[int]) -> int:
    """Number of phrases into which LZ78 cuts tokens, an unfinished last one included.

    Args:
        tokens: integers.

    Returns:
        The number, 0 without tokens.

    Example:
        >>> lz78_phrases([0, 0, 0, 1, 0, 1])  # 0, 00, 1, 01
        4
    """
    phrases: dict[tuple[int, int], int] = {}
    current, unfinished = 0, False
    for token in tokens:
        follower = phrases.get((current, token))
        unfinished = follower is not None
        if follower is None:
            phrases[current, token] = len(phrases) + 1
            current = 0
        else:
            current = follower
    return len(phrases) + unfinished


def lz78_bits(num_phrases: int, vocab_size: int) -> int:
    """Bits of LZ78's code for a number of phrases.

    Args:
        num_phrases: from `lz78_phrases`.
        vocab_size: |V|.

    Returns:
        The sum over phrases of the bits for a phrase before it and for a token.

    Example:
        >>> lz78_bits(4, vocab_size=2)
        9
    """
    numbers = np.arange(1, num_phrases + 1)
    pointers = np.ceil(np.log2(numbers)).astype(int).sum()
    return int(pointers) + num_phrases * (vocab_size - 1).bit_length()


def compression_table(
    space: TextSpace, num_texts: int = 1
) -> Float[np.ndarray, "*texts"]:
    """LZ78's compression ratio of every sample of m texts, one after another.

    Args:
        space: the texts.
        num_texts: m.

    Returns:
        Bits of the plain sample, log2 |V| a token, over those of its code; an array
        with m axes of N entries.

    Raises:
        ValueError: the table would have more than a million entries.
    """
    check_positive(num_texts=num_texts)
    shape = (space.num_texts,) * num_texts
    if space.num_texts**num_texts > 10**6:
        raise ValueError(
            f"{space.num_texts}**{num_texts} samples are too many to compress; take "
            "fewer texts, or qd.text.compression_ratio of a drawn sample"
        )
    texts = [row[row >= 0].tolist() for row in space.tokens]
    table = np.empty(shape)
    for chosen in product(range(space.num_texts), repeat=num_texts):
        tokens = [token for i in chosen for token in texts[i]]
        bits = lz78_bits(lz78_phrases(tokens), space.vocab_size)
        table[chosen] = len(tokens) * log2(space.vocab_size) / bits
    return table


def expected_compression(
    space: TextSpace, q: Float[ArrayLike, " texts"], num_texts: int = 1
) -> Float[Array, ""]:
    """Expected compression ratio of m texts from q; minus it is a diversity.

    A polynomial of degree m in q: for one text it is linear, and the most diverse model
    is a single text.

    Estimated by `qd.text.compression_ratio`.

    Args:
        space: the texts, of two tokens or more in the vocabulary.
        q: a distribution over them, shape (num_texts,).
        num_texts: m.

    Returns:
        A positive number, greater for samples that repeat themselves.

    Raises:
        ValueError: `q` is not a distribution over the space, or there are more than a
            million samples.

    References:
        Ziv and Lempel 1978; Shaib et al. 2024 report gzip's ratio.

    Claims: N25.19.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> float(expected_compression(space, np.array([1.0, 0, 0, 0]), 3))
        1.0
    """
    q = check_distribution(q, "q", space.num_texts)
    value = jnp.asarray(compression_table(space, num_texts))
    for _ in range(num_texts):
        value = value @ q
    return value
