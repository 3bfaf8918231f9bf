"""The formula of BLEU, from clipped counts and lengths.

`qdtheory.bleu` takes its expectation over all texts, `qdtheory.text` its value of a
corpus. It needs NumPy only, so that the latter can be imported without JAX.
"""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

# NLTK's smoothing method 1 replaces a count of 0 by this.
EPSILON = 0.1
Smoothing: TypeAlias = Literal["epsilon"] | None


class Matches(NamedTuple):
    """Sufficient statistics of BLEU, of candidates or summed over candidates."""

    clipped: np.ndarray  # clipped matches, one row per order
    possible: np.ndarray  # number of n-grams, at least 1, one row per order
    length: np.ndarray  # of the candidates
    closest: np.ndarray  # the closest reference lengths


def matches(clipped: np.ndarray, length: np.ndarray, closest: np.ndarray) -> Matches:
    """Add the number of possible n-grams, 1 if a text is shorter than an order."""
    orders = np.arange(len(clipped)).reshape(-1, *[1] * np.ndim(length))
    return Matches(clipped, np.maximum(1, length - orders), length, closest)


def bleu_of_matches(
    matches: Matches, smoothing: Smoothing
) -> Float[np.ndarray, "orders ..."]:
    r"""BLEU of all orders, $\exp(\min(0, 1 - r / c))\,(\prod_{m \le n} p_m)^{1/n}$.

    Here c is the candidate's length, r the closest of its references', and $p_m$ the
    share of the candidate's m-grams that are matched, clipped over possible ones
    (Li et al. 2020, section 5.1).
    """
    clipped, possible, length, closest = matches
    counts = clipped if smoothing is None else np.where(clipped == 0, EPSILON, clipped)
    with np.errstate(divide="ignore"):
        logs = np.log(counts / possible)
    orders = np.arange(1, len(clipped) + 1).reshape(-1, *[1] * (logs.ndim - 1))
    precision = np.exp(np.cumsum(logs, axis=0) / orders)
    # Without tokens nothing matches, so the length is irrelevant.
    brevity = np.exp(np.minimum(0, 1 - closest / np.maximum(length, 1)))
    return np.where(clipped[0] > 0, brevity * precision, 0.0)


def closest_length(
    lengths: Int[np.ndarray, " texts"],
    references: Int[np.ndarray, " references"],
    lone: Bool[np.ndarray, " texts"] | bool = False,
) -> Float[np.ndarray, " texts"]:
    """Closest reference length, of those ascending, to each; the shorter on ties.

    A blank reference is no length: beside it, short texts would have no penalty. A lone
    text is among the references, and the only one of its length: the closest is
    another's, and NaN if there is none.

    Example:
        >>> closest_length(np.array([1, 4, 9]), np.array([3, 5])).tolist()
        [3.0, 3.0, 5.0]
        >>> lengths = np.array([1, 3, 4])
        >>> closest_length(lengths, lengths, np.array([True, True, False])).tolist()
        [3.0, 4.0, 4.0]
        >>> closest_length(np.array([1, 4]), np.array([0, 9])).tolist()
        [9.0, 9.0]
    """
    references = references[references > 0]
    padded = np.concatenate([[-np.inf], references, [np.inf, np.inf]])
    above = np.searchsorted(references, lengths) + 1
    shorter, longer = padded[above - 1], padded[above + (lone & (lengths > 0))]
    closest = np.where(lengths - shorter <= longer - lengths, shorter, longer)
    return np.where(np.isinf(closest), np.nan, closest)


def require_smoothing(smoothing: Smoothing) -> None:
    """Raise unless smoothing is known."""
    if smoothing is not None and str(smoothing) != "epsilon":
        raise ValueError(f'smoothing: expected None or "epsilon", got {smoothing!r}')
