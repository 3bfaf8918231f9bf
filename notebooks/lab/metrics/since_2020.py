r"""Metrics since 2020: of k draws, of a sample's compression, of its repetition.

Those of k draws need a distribution over any finite set: whole texts, or classes of
texts that a reader takes for the same answer.
"""

from collections.abc import Sequence
from itertools import product
from math import log2

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lab.corpora.compression import lz78_bits, lz78_phrases
from qdtheory.distributions import (
    as_distribution,
    as_vector,
    require_positive,
)
from qdtheory.ngrams import chance_seen, ngram_matrix
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import Number, PerText, Scalar, within

# --- k draws ------------------------------------------------------------------------


def distinct_k(q: Float[ArrayLike, " classes"], k: int) -> Scalar:
    r"""Expected number of different outcomes in k draws, $\sum_i 1 - (1 - Q_i)^k$.

    A concave diversity; `qd.pairs.distinct_k_pair(k)` has its quality. For k = 2 it is
    NRR + 2.

    Estimated without bias by `corpora.distinct_k`.

    Args:
        q: a distribution over texts or classes, shape (N,).
        k: number of draws, at least 1.

    Returns:
        A number in [1, k].

    Raises:
        ValueError: `q` is not a distribution, or k is below 1.

    References:
        Zhang et al. 2025 (NoveltyBench); Hurlbert 1971 (rarefaction).

    Claims: N25.1, N25.3.

    Example:
        >>> float(distinct_k(jnp.array([0.5, 0.5]), 2))
        1.5
    """
    require_positive(k=k)
    return chance_seen(as_distribution(q, "q"), k).sum()


def utility_k(
    q: Float[ArrayLike, " classes"],
    utilities: Float[ArrayLike, " classes"] | Sequence[Number],
    k: int,
    patience: Number = 0.8,
) -> Scalar:
    r"""Mean utility of k draws to a reader who wants each answer once.

    $\frac{1 - p}{1 - p^k} \sum_{i=1}^{k} p^{i-1} E[u_{c_i}; c_i \ne c_j, j < i]$, where
    p is the patience and $c_i$ the class of draw i. Equal to
    $\frac{1 - p}{1 - p^k} \sum_c u_c Q_c
    \frac{1 - (p (1 - Q_c))^k}{1 - p (1 - Q_c)}$.

    Estimated without bias by `corpora.utility_k`.

    Args:
        q: a distribution over classes, shape (N,).
        utilities: u, one a class, shape (N,).
        k: number of draws, at least 1.
        patience: p, the chance that the reader asks for one more, in [0, 1].

    Returns:
        A number between 0 and the greatest utility if none is negative.

    Raises:
        ValueError: `q` is not a distribution, the utilities are not one a class, k is
            below 1, or the patience is not in [0, 1].

    References:
        Zhang et al. 2025 (NoveltyBench), where p = 0.8 and k = 10.

    Claims: N25.5.

    Example:
        >>> q = jnp.array([0.5, 0.5])
        >>> print(f"{utility_k(q, [1.0, 0.0], 2, patience=0.5):.6f}")
        0.416667
    """
    q = as_distribution(q, "q")
    u = as_vector(utilities, "utilities", q.size)
    require_positive(k=k)
    weights = patience_weights(k, patience)
    # Chances to meet a class first at draw 1, ..., k.
    first = q * (1 - q) ** jnp.arange(k)[:, None]
    return weights @ (first @ u)


def patience_weights(k: int, patience: Number) -> Float[Array, " draws"]:
    """Weights of the draws 1, ..., k to a reader of some patience, of sum 1."""
    within(patience=patience, low=0, high=1)
    powers = jnp.asarray(patience, float) ** jnp.arange(k)
    return powers / powers.sum()


def pass_at_k(
    successes: Float[ArrayLike, " problems"] | Sequence[Number], k: int
) -> Scalar:
    r"""Chance that one of k draws is right, $1 - (1 - s)^k$, averaged over problems.

    Estimated without bias by `corpora.pass_at_k`.

    Args:
        successes: s, the chance of each problem that one draw is right, shape (M,).
        k: number of draws, at least 1.

    Returns:
        A number in [0, 1].

    Raises:
        ValueError: a chance is not in [0, 1], or k is below 1.

    References:
        Chen et al. 2021 (Codex).

    Claims: N25.6.

    Example:
        >>> float(pass_at_k([0.5, 0.0], 2))
        0.375
    """
    s = as_vector(successes, "successes")
    require_positive(k=k)
    within(successes=s, low=0, high=1)
    return chance_seen(s, k).mean()


# --- compression --------------------------------------------------------------------


def compression_table(
    space: TextSpace, num_texts: int = 1
) -> Float[np.ndarray, "*texts"]:
    """LZ78's compression ratio of every sample of m texts: an array with m axes."""
    require_positive(num_texts=num_texts)
    shape = (space.num_texts,) * num_texts
    if space.num_texts**num_texts > 10**6:
        raise ValueError(
            f"{space.num_texts}**{num_texts} samples are too many to compress; take "
            "fewer texts, or lab.corpora.compression_ratio of a drawn sample"
        )
    texts = [row[row >= 0].tolist() for row in space.tokens]
    table = np.empty(shape)
    for chosen in product(range(space.num_texts), repeat=num_texts):
        tokens = [token for i in chosen for token in texts[i]]
        bits = lz78_bits(lz78_phrases(tokens), space.vocab_size)
        table[chosen] = len(tokens) * log2(space.vocab_size) / bits
    return table


def expected_compression(space: TextSpace, q: PerText, num_texts: int = 1) -> Scalar:
    """Expected compression ratio of m texts from q; minus it is a diversity.

    A polynomial of degree m in q: for one text it is linear, and the most diverse model
    is a single text.

    Estimated by `lab.corpora.compression_ratio`.

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
    q = as_distribution(q, "q", space.num_texts)
    value = jnp.asarray(compression_table(space, num_texts))
    for _ in range(num_texts):
        value = value @ q
    return value


# --- Repetition ---------------------------------------------------------------------


def expected_self_repetition(
    space: TextSpace, q: PerText, n: int, num_texts: int
) -> Scalar:
    r"""Expected self-repetition score of m texts from q, in nats.

    The mean over texts of $\log(1 + \sum_{y} c(x, y))$, where y runs over the m - 1
    other texts and c(x, y) counts the distinct n-grams of x that occur in y. Minus it
    is a diversity.

    Estimated by `lab.corpora.self_repetition`.

    Args:
        space: the texts.
        q: a distribution over them, shape (num_texts,).
        n: order, 1 .. max_length.
        num_texts: m, at least 2.

    Returns:
        A number, at least 0.

    Raises:
        ValueError: `q` is not a distribution over the space, or `n` or `num_texts` is
            out of range.

    References:
        Salkar et al. 2022; Shaib et al. 2024.

    Claims: N25.18.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> q = np.array([0.5, 0.5])
        >>> round(float(expected_self_repetition(space, q, 1, num_texts=2)), 6)
        0.346574
    """
    q = as_distribution(q, "q", space.num_texts)
    within(num_texts=num_texts, low=2)
    contains = (ngram_matrix(space, n) > 0).astype(int)
    shared = contains.T @ contains
    most = int(shared.max())
    counts = np.arange(most + 1)
    size = most * (num_texts - 1) + 1
    num_bytes = 16 * space.num_texts * max(size, space.num_texts * most)
    space.refuse_beyond_memory(num_bytes, "sums of shared n-grams")
    # The distribution of c(x, y) for each x, then of the sum over m - 1 independent y.
    chances = (jnp.asarray(shared[:, None] == counts[:, None]) * q).sum(axis=-1)
    transform = jnp.fft.fft(chances, size, axis=1)
    total = jnp.fft.ifft(transform ** (num_texts - 1), axis=1).real
    return q @ (total @ np.log1p(np.arange(size)))
