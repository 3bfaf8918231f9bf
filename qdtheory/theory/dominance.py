"""Which models beat another in quality and diversity at once."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Real

from qdtheory.world.distributions import require_x64
from qdtheory.world.numbers import TextArray
from qdtheory.world.records import Record


class Witness(Record):
    """A distribution that beats the real one in both metrics.

    For formulas both gains are proved to be positive in 77-digit ball arithmetic, for
    the exact values of the floats; for code they exceed its rounding error.

    Attributes:
        p: the real distribution, shape (N,).
        q: the model that beats it, shape (N,).
        quality_gain: U(Q; P) - U(P; P), positive.
        diversity_gain: V(Q) - V(P), positive.
    """

    p: TextArray
    q: TextArray
    quality_gain: float
    diversity_gain: float


@jax.tree_util.register_dataclass
class Dominance(Record):
    """Whether one model dominates another, in each of the senses of Definition 1.

    Attributes:
        in_quality: higher quality and no lower diversity.
        in_diversity: higher diversity and no lower quality.
        either: either of the two.
    """

    in_quality: Bool[Array, "..."]
    in_diversity: Bool[Array, "..."]

    @property
    def either(self) -> Bool[Array, "..."]:
        """Whether at least one of the two holds."""
        return self.in_quality | self.in_diversity


def dominance(
    quality: Real[ArrayLike, "..."],
    diversity: Real[ArrayLike, "..."],
    other_quality: Real[ArrayLike, "..."],
    other_diversity: Real[ArrayLike, "..."],
) -> Dominance:
    """Test whether models dominate other models, from their metrics.

    Args:
        quality: U of the models, any shape.
        diversity: V of the models, same shape.
        other_quality: U of the models that may be dominated.
        other_diversity: V of the models that may be dominated.

    Returns:
        Both kinds of dominance, elementwise.

    References:
        Li et al. 2020, Definition 1.

    Claims: T2.8, T3.8, T3.12, T3.13, T3.14, L5.1, L5.2, N3.3.

    Example:
        >>> beats = dominance(0.5, -0.2, 0.4, -0.2)
        >>> bool(beats.in_quality), bool(beats.in_diversity)
        (True, False)
    """
    require_x64()
    u, v, other_u, other_v = (
        jnp.asarray(x) for x in (quality, diversity, other_quality, other_diversity)
    )
    return Dominance(
        in_quality=(u > other_u) & (v >= other_v),
        in_diversity=(u >= other_u) & (v > other_v),
    )


def pareto_filter(
    quality: Real[ArrayLike, " models"], diversity: Real[ArrayLike, " models"]
) -> Bool[np.ndarray, " models"]:
    """Select the nondominated models, by one sort.

    Args:
        quality: U of each model, without NaN.
        diversity: V of each model, without NaN.

    Returns:
        A mask, True for the nondominated models; equal models share one value.

    Raises:
        ValueError: the arguments are not vectors of one length, or contain NaN.

    References:
        Li et al. 2020, Definition 1.

    Example:
        >>> pareto_filter(np.array([1.0, 2.0, 2.0]), np.array([5.0, 3.0, 4.0])).tolist()
        [True, False, True]
    """
    u, v = np.asarray(quality), np.asarray(diversity)
    if u.ndim != 1 or u.shape != v.shape:
        raise ValueError(
            f"quality and diversity must be vectors of one length, got shapes "
            f"{u.shape} and {v.shape}"
        )
    if np.isnan(u).any() or np.isnan(v).any():
        raise ValueError("quality and diversity must not hold NaN")
    _, level = np.unique(-u, return_inverse=True)
    best = np.full(level.max(initial=-1) + 1, -np.inf)
    np.maximum.at(best, level, v)
    best_above = np.concatenate([[-np.inf], np.maximum.accumulate(best)[:-1]])
    # At V = -inf nothing is strictly above "no model", hence the level test.
    return (v == best[level]) & ((v > best_above[level]) | (level == 0))
