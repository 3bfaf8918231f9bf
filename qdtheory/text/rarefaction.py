"""Rarefaction: different classes among a few samples, from how many have which count.

It needs NumPy only, so that samples are evaluated without JAX.
"""

import numpy as np
from jaxtyping import Int


def expected_distinct(
    counts: Int[np.ndarray, " counts"],
    times: Int[np.ndarray, " counts"],
    n: int,
    k: int,
) -> float:
    r"""Sum $1 - \binom{n - c}{k} / \binom{n}{k}$ over classes, see `distinct_k`.

    The quotient is a product of k factors, or as well of c.

    Args:
        counts: each count c of a class, ascending.
        times: how many classes have it.
        n: number of samples.
        k: number of draws, from 1 to n.

    Returns:
        The expected number of classes among k samples.

    Example:
        >>> round(expected_distinct(np.array([1, 2]), np.array([1, 1]), 3, 2), 6)
        1.666667
    """
    few = np.searchsorted(counts, k, side="right")
    steps = np.arange(counts[few - 1] if few else 0)
    factors = np.maximum(n - k - steps, 0) / (n - steps)
    short = np.append(1, np.cumprod(factors))[counts[:few]]
    steps = np.arange(k)[:, None]
    long = np.prod(np.maximum(n - counts[few:] - steps, 0) / (n - steps), axis=0)
    return float(times @ (1 - np.append(short, long)))
