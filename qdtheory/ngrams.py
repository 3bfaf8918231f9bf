"""Metrics of n-grams: CR, NRR and CND, MS-Jaccard, Distinct; and the n-gram map.

CR, NRR and CND take distributions over any finite set: whole texts, or the n-grams of
`TextSpace.ngram_distribution`. MS-Jaccard and Distinct are of distributions over texts.
The map from these to expected counts of n-grams is linear: a matrix, and its rank.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Shaped
from numpy.typing import DTypeLike

from qdtheory.distributions import (
    as_distribution,
    as_distributions,
    require_positive,
)
from qdtheory.spaces import TextSpace, require_space
from qdtheory.support.numbers import PerText, Scalar


def coverage_rate(q: PerText, p: PerText) -> Scalar:
    r"""Coverage rate, a quality: $CR(Q; P) = \sum_i Q_i P_i$.

    The probability that a draw from Q equals a draw from P.

    Estimated on n-grams by `qd.text.coverage_rate(..., estimator="pairs")`.

    Args:
        q: the model, a distribution over texts or n-grams, shape (N,).
        p: the real distribution, shape (N,).

    Returns:
        A scalar in [0, 1].

    Raises:
        ValueError: `q` and `p` are not distributions of the same size.

    References:
        Li et al. 2020, section 5.2.

    Claims: N2.9.

    Example:
        >>> float(coverage_rate(np.array([0.5, 0.5]), np.array([1.0, 0.0])))
        0.5
    """
    return jnp.vdot(*as_distributions(q=q, p=p))


def negative_repetition_rate(q: PerText) -> Scalar:
    r"""Negative repetition rate, a diversity: $NRR(Q) = -\sum_i Q_i^2$.

    Minus the probability that two draws from Q are equal: Simpson's diversity index
    $SDI = 1 - \sum_i Q_i^2$, minus 1.

    Estimated on n-grams by `qd.text.negative_repetition_rate(..., estimator="pairs")`.

    Args:
        q: a distribution over texts or n-grams, shape (N,).

    Returns:
        A scalar in [-1, -1/N].

    Raises:
        ValueError: `q` is not a distribution.

    References:
        Li et al. 2020, section 5.2.

    Claims: N0.3, N2.9.

    Example:
        >>> float(negative_repetition_rate(np.array([0.5, 0.5])))
        -0.5
    """
    q = as_distribution(q, "q")
    return -jnp.vdot(q, q)


def cnd(q: PerText, p: PerText) -> Scalar:
    r"""CR-NRR divergence: $CND(Q; P) = \sum_i (Q_i - P_i)^2$.

    Equal to $3[\Psi(P) - \Psi(Q)]$ with $\Psi = \frac23 CR + \frac13 NRR$, as
    $-2 \sum_i Q_i P_i + \sum_i Q_i^2 + \sum_i P_i^2$ is the square. Computed as
    a sum of squares, so it keeps its precision when Q is close to P. On n-grams it is
    0 iff the n-gram distributions are equal, which does not imply Q = P.

    Estimated on n-grams by `qd.text.cnd(..., estimator="pairs")`.

    Args:
        q: the model, a distribution over texts or n-grams, shape (N,).
        p: the real distribution, shape (N,).

    Returns:
        A scalar in [0, 2].

    Raises:
        ValueError: `q` and `p` are not distributions of the same size.

    References:
        Li et al. 2020, section 5.2.

    Claims: N2.9, N2.10, N2.11, N9.4, N9.22.

    Example:
        >>> float(cnd(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
        2.0
    """
    q, p = as_distributions(q=q, p=p)
    difference = q - p
    return jnp.vdot(difference, difference)


def ms_jaccard(
    space: TextSpace, q: PerText, p: PerText, max_order: int = 4
) -> Float[Array, " orders"]:
    r"""MS-Jaccard of two distributions, the limit of that of two corpora.

    $\mathrm{MSJ}_n = (J_1 \cdots J_n)^{1/n}$ with
    $J_n = \sum_g \min(c_g, d_g) / \sum_g \max(c_g, d_g)$, where $c_g$ and $d_g$ are
    the expected counts of the n-gram g in one text of q and of p. Where the value is
    0, the gradient is defined as 0.

    Estimated by `qd.text.ms_jaccard`.

    Args:
        space: the texts.
        q: the model, shape (num_texts,).
        p: the real distribution, shape (num_texts,).
        max_order: highest order of the n-grams, 1 .. max_length.

    Returns:
        MS-Jaccard-1 to MS-Jaccard-max_order, each in [0, 1]; 1 iff the expected counts
        of all these orders are equal, which for orders below the greatest length does
        not imply Q = P.

    Raises:
        ValueError: `q` or `p` is not a distribution over the space, `max_order` is out
            of range, or in one of them no text of positive probability has
            `max_order` tokens.

    References:
        Montahaei et al. 2019, equation 1, in its limit.

    Claims: N13.4, N13.6.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> q, p = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.5, 0.0, 0.5, 0.0])
        >>> ms_jaccard(space, q, p, max_order=2).round(4).tolist()
        [1.0, 0.5774]
    """
    require_space(space)
    q, p = as_distributions(space.num_texts, q=q, p=p)
    require_positive(max_order=max_order)
    indices = jnp.stack([_jaccard(space, q, p, n) for n in range(1, max_order + 1)])
    # The geometric means (J_1 .. J_n)^(1/n), and 0 once an index is 0.
    logs = jnp.log(jnp.where(indices > 0, indices, 1.0))
    means = jnp.exp(jnp.cumsum(logs) / np.arange(1, max_order + 1))
    return jnp.where(jnp.cumprod(indices > 0), means, 0.0)


def _jaccard(space: TextSpace, q: Array, p: Array, n: int) -> Array:
    c, d = space.ngram_counts(q, n), space.ngram_counts(p, n)
    fewest = jnp.minimum(c.sum(), d.sum())
    if not isinstance(fewest, Tracer) and fewest == 0:
        raise ValueError(
            f"in q or in p no text of positive probability has {n} tokens; take a "
            "smaller max_order"
        )
    return jnp.minimum(c, d).sum() / jnp.maximum(c, d).sum()


def chance_seen(x: Float[ArrayLike, "..."], k: int) -> Float[Array, "..."]:
    """Chance 1 - (1 - x)^k that k draws contain an outcome of probability x."""
    x = jnp.asarray(x)
    certain = x >= 1
    unseen = k * jnp.log1p(-jnp.where(certain, 0.0, x))
    return jnp.where(certain, 1.0, -jnp.expm1(unseen))


def expected_distinct(space: TextSpace, q: PerText, n: int, num_texts: int) -> Scalar:
    r"""Expected Distinct-n of m texts from q: distinct n-grams over all n-grams.

    For one length L it is $\sum_g [1 - (1 - T_g)^m] / (m (L - n + 1))$, where $T_g$ is
    the probability that a text contains g. For several lengths the total number t of
    n-grams is random too: let $A(z) = \sum_x q_x z^{(|x| - n + 1)_+}$, and let $A_g(z)$
    be the sum over the texts without g. The value is $\sum_{t \ge 1} a_t / t$ with the
    coefficients $a_t$ of $\sum_g [A(z)^m - A_g(z)^m]$: $a_t$ is the sum over g of the
    chance that the m texts hold t n-grams, g among them.

    Estimated by `qd.text.distinct`.

    Args:
        space: the texts.
        q: a distribution over them, shape (num_texts,).
        n: order, 1 .. max_length.
        num_texts: m, at least 1.

    Returns:
        A scalar in [0, 1]; a sample without n-grams counts as 0.

    Raises:
        ValueError: `q` is not a distribution over the space, `n` or `num_texts` is out
            of range, or the coefficients would not fit into memory.

    References:
        Li et al. 2016 (Distinct-n).

    Claims: N13.22.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> float(expected_distinct(space, np.array([0.5, 0.5]), 1, num_texts=2))
        0.75
    """
    q = as_distribution(q, "q", space.num_texts)
    require_positive(num_texts=num_texts)
    contains = ngram_matrix(space, n) > 0
    if len(space.lengths) == 1:
        different = chance_seen((jnp.asarray(contains) * q).sum(axis=1), num_texts)
        return different.sum() / (num_texts * (space.max_length - n + 1))
    counts = np.maximum(space.text_lengths - n + 1, 0)
    # Row t marks the texts of t n-grams, so that `mass.sum(axis=1)` is A(z), and column
    # g of `mass @ ~contains.T` is A_g(z), by their coefficients.
    of_count = counts == np.arange(counts.max() + 1)[:, None]
    size = num_texts * int(counts.max()) + 1
    space.refuse_beyond_memory(16 * len(contains) * size, f"sums over {n}-grams")

    def power(coefficients: Array) -> Array:
        """A(z)^m at the roots of unity, as many as it has coefficients."""
        return jnp.fft.fft(coefficients, size, axis=0) ** num_texts

    mass = of_count * q
    powers = power(mass.sum(axis=1)[:, None]) - power(mass @ ~contains.T)
    coefficients = jnp.fft.ifft(powers.sum(axis=1)).real
    return (coefficients[1:] / np.arange(1, size)).sum()


def ngram_matrix(
    space: TextSpace, n: int, dtype: DTypeLike = np.int64
) -> Shaped[np.ndarray, "ngrams texts"]:
    """The linear n-gram map as a matrix: the count of each n-gram in each text.

    Args:
        space: the texts.
        n: order, 1 .. max_length.
        dtype: type of the counts.

    Returns:
        Counts, shape (vocab_size**n, num_texts); `matrix @ q` is
        `space.ngram_counts(q, n)`.

    Raises:
        ValueError: `n` is out of range, or the matrix would not fit into memory.

    Example:
        >>> ngram_matrix(TextSpace(vocab_size=2, lengths=2), 1).tolist()
        [[2, 1, 1, 0], [0, 1, 1, 2]]
    """
    ngrams = space.ngrams(n)
    shape = (space.vocab_size**n, space.num_texts)
    num_bytes = np.dtype(dtype).itemsize * shape[0] * shape[1]
    space.refuse_beyond_memory(num_bytes, f"matrix of {n}-grams")
    matrix = np.zeros(shape, dtype)
    texts, positions = np.nonzero(ngrams >= 0)
    np.add.at(matrix, (ngrams[texts, positions], texts), 1)
    return matrix


def ngram_rank(space: TextSpace, orders: int | Sequence[int]) -> int:
    r"""Rank of the n-gram map, orders stacked: how much of Q the n-grams determine.

    For one length L the rank is $|V|^n$ for every $n \le L$; the null space, of
    dimension $|V|^L - |V|^n$, contains the changes in Q that leave all n-grams fixed.

    Args:
        space: the texts.
        orders: one order, or several whose maps are stacked.

    Returns:
        The rank, at most num_texts.

    Raises:
        ValueError: an order is out of range, or the matrix would not fit into memory.

    Example:
        >>> ngram_rank(TextSpace(vocab_size=4, lengths=3), (1, 2))
        19
    """
    orders = (orders,) if isinstance(orders, int) else orders
    stacked = np.concatenate([ngram_matrix(space, n) for n in orders])
    return int(np.linalg.matrix_rank(stacked))
