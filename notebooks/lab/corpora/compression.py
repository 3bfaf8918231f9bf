r"""How far a sample compresses: by LZ78, whose length is exact, or by gzip.

LZ78 cuts tokens into phrases, each the shortest that is new: a phrase before it and
one token more. Phrase j names one of the j phrases before it, the empty one among them,
and a token: $\lceil \log_2 j \rceil + \lceil \log_2 |V| \rceil$ bits. As the sample
grows, bits per token tend to the entropy rate of its source (Ziv and Lempel 1978).
"""

import zlib
from collections.abc import Iterable
from math import log2
from typing import Literal, TypeAlias

import numpy as np

from qdtheory.text.checks import require_choice
from qdtheory.text.corpus import Texts, as_corpus

Method: TypeAlias = Literal["lz78", "gzip"]


def compression_ratio(candidates: Texts, method: Method = "lz78") -> float:
    r"""Compression ratio of a sample; the higher, the more it repeats itself.

    "lz78": $\log_2 |V|$ bits a token, with |V| the number of different tokens, over
    those of LZ78's code of all sentences one after another. "gzip": bytes of the
    sentences, joined by spaces, over those of zlib at level 9 without gzip's header.
    Increases with sample size.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        method: "lz78" or "gzip".

    Returns:
        A positive number; of lz78 0 if there is one token only.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; or an unknown method.

    References:
        Ziv and Lempel 1978; Shaib et al. 2024, whose code compresses twice.

    Claims: N25.19.

    Example:
        >>> [round(compression_ratio(["a b"] * n), 4) for n in (4, 90)]
        [0.6154, 1.44]
    """
    require_choice("method", method, Method)
    corpus = as_corpus(candidates)
    if method == "gzip":
        plain = " ".join(" ".join(map(str, text)) for text in corpus).encode()
        return len(plain) / len(zlib.compress(plain, 9))
    _, tokens = np.unique(corpus.tokens, return_inverse=True)
    size = int(tokens.max()) + 1
    bits = lz78_bits(lz78_phrases(tokens.tolist()), size)
    return len(tokens) * log2(size) / bits


def lz78_phrases(tokens: Iterable[int]) -> int:
    """Count the phrases into which LZ78 cuts tokens, with an unfinished last one."""
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
    """Bits of LZ78's code: for each phrase a phrase before it and a token."""
    numbers = np.arange(1, num_phrases + 1)
    pointers = np.ceil(np.log2(numbers)).astype(int).sum()
    return int(pointers) + num_phrases * (vocab_size - 1).bit_length()
