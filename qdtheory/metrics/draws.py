r"""Metrics of k draws from one model: how many differ, are useful, or are right.

They need distributions over any finite set: whole texts, or classes of texts that a
reader takes for the same answer.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from qdtheory.world.distributions import (
    Number,
    check_distribution,
    check_positive,
    check_vector,
)


def chance_seen(x: Float[ArrayLike, "..."], k: int) -> Float[Array, "..."]:
    """Chance 1 - (1 - x)^k that k draws contain an outcome of probability x.

    Args:
        x: probabilities, any shape.
        k: number of draws.

    Returns:
        Chances of the same shape, to full relative precision.

    Example:
        >>> float(chance_seen(0.5, 2))
        0.75
    """
    x = jnp.asarray(x)
    certain = x >= 1
    unseen = k * jnp.log1p(-jnp.where(certain, 0.0, x))
    return jnp.where(certain, 1.0, -jnp.expm1(unseen))


def class_distribution(
    q: Float[ArrayLike, " texts"], classes: Int[ArrayLike, " texts"], num_classes: int
) -> Float[Array, " classes"]:
    """Add up the probabilities of the texts of each class.

    Args:
        q: a distribution over texts, shape (N,).
        classes: the class of each, from 0 to num_classes - 1, shape (N,).
        num_classes: their number.

    Returns:
        A distribution over classes.

    Example:
        >>> q, classes = jnp.array([0.25, 0.25, 0.5]), jnp.array([0, 0, 1])
        >>> class_distribution(q, classes, 2).tolist()
        [0.5, 0.5]
    """
    return jnp.zeros(num_classes).at[jnp.asarray(classes)].add(jnp.asarray(q))


def distinct_k(q: Float[ArrayLike, " classes"], k: int) -> Float[Array, ""]:
    r"""Expected number of different outcomes in k draws, $\sum_i 1 - (1 - Q_i)^k$.

    A concave diversity; `qd.pairs.distinct_k_pair(k)` has its quality. For k = 2 it is
    NRR + 2.

    Estimated without bias by `qd.text.distinct_k`.

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
    check_positive(k=k)
    return chance_seen(check_distribution(q, "q"), k).sum()


def utility_k(
    q: Float[ArrayLike, " classes"],
    utilities: Float[ArrayLike, " classes"] | Sequence[Number],
    k: int,
    patience: Number = 0.8,
) -> Float[Array, ""]:
    r"""Mean utility of k draws to a reader who wants each answer once.

    $\frac{1 - p}{1 - p^k} \sum_{i=1}^{k} p^{i-1} E[u_{c_i}; c_i \ne c_j, j < i]$, where
    p is the patience and $c_i$ the class of draw i. Equal to
    $\frac{1 - p}{1 - p^k} \sum_c u_c Q_c
    \frac{1 - (p (1 - Q_c))^k}{1 - p (1 - Q_c)}$.

    Estimated without bias by `qd.text.utility_k`.

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
    q = check_distribution(q, "q")
    u = check_vector(utilities, "utilities", q.size)
    check_positive(k=k)
    weights = patience_weights(k, patience)
    # Chances to meet a class first at draw 1, ..., k.
    first = q * (1 - q) ** jnp.arange(k)[:, None]
    return weights @ (first @ u)


def patience_weights(k: int, patience: Number) -> Float[Array, " draws"]:
    """Weights of the draws 1, ..., k to a reader of some patience, of sum 1.

    Args:
        k: number of draws.
        patience: p, in [0, 1].

    Returns:
        The powers of p from 0 to k - 1 over their sum.

    Raises:
        ValueError: the patience is not in [0, 1].

    Example:
        >>> patience_weights(3, 0.5).round(4).tolist()
        [0.5714, 0.2857, 0.1429]
    """
    if not 0 <= patience <= 1:
        raise ValueError(f"patience must be in [0, 1], got {patience}")
    powers = jnp.asarray(patience, float) ** jnp.arange(k)
    return powers / powers.sum()


def pass_at_k(
    successes: Float[ArrayLike, " problems"] | Sequence[Number], k: int
) -> Float[Array, ""]:
    r"""Chance that one of k draws is right, $1 - (1 - s)^k$, averaged over problems.

    Estimated without bias by `qd.text.pass_at_k`.

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
    s = check_vector(successes, "successes")
    check_positive(k=k)
    if not bool(((s >= 0) & (s <= 1)).all()):
        raise ValueError("successes must be chances, between 0 and 1")
    return chance_seen(s, k).mean()
