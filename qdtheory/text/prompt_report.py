"""What `evaluate_prompts` finds: fair kernel scores, their tests, and how many prompts."""

from typing import Any

import numpy as np
from jaxtyping import Float

from qdtheory.world.records import Record


class KernelScore(Record):
    """Fair kernel score and its halves: numbers, arrays over prompts or estimates.

    Attributes:
        quality: mean similarity of outputs and references.
        diversity: minus the mean similarity of two outputs.
        score: 2 quality + diversity; higher is better, as of all three.
    """

    quality: Any
    diversity: Any
    score: Any


def moments(gram: Float[np.ndarray, "texts texts"], k: int) -> tuple[float, ...]:
    r"""Quality and diversity of k outputs, and both variances of their score's kernel.

    The score is a U-statistic of $h(x, x') = a(x) + a(x') - K(x, x')$, where a is the
    mean similarity to the references. For these its variance is $(4 (k - 2) \zeta_1 +
    2 \zeta_2) / (k (k - 1))$, $\zeta_1$ the variance of h's mean given x, $\zeta_2$ of
    h: here without bias, from pairs, triples and quadruples of different outputs, so
    that they are NaN for fewer than four.

    References:
        Hoeffding 1948.
    """
    own, near = gram[:k, :k], gram[:k, k:].mean(axis=1)
    pairs = k * (k - 1)
    quality, diversity = near.mean(), (np.trace(own) - own.sum()) / pairs
    if k < 4:
        return float(quality), float(diversity), np.nan, np.nan
    h = near[:, None] + near - own
    np.fill_diagonal(h, 0)
    rows, squares = h.sum(axis=1), (h**2).sum()
    triples = rows @ rows - squares
    quadruples = rows.sum() ** 2 - 4 * triples - 2 * squares
    square = quadruples / (pairs * (k - 2) * (k - 3))
    first, second = triples / (pairs * (k - 2)) - square, squares / pairs - square
    return float(quality), float(diversity), float(first), float(second)
