"""Which models beat another in quality and diversity (Definition 1), and Theorem 1.

Theorem 1 says when a pair of f and g deserves the names quality and diversity at all.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Real

from qdtheory.distributions import require_x64
from qdtheory.functions import ScalarFunction
from qdtheory.pairs import SeparablePair, as_pair
from qdtheory.support.numbers import NOISE, TextArray, require, within
from qdtheory.support.records import Record


# --- Dominance ------------------------------------------------------------------------
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


# --- Theorem 1 ------------------------------------------------------------------------
class Rationality(Record):
    """Whether a separable pair satisfies the rationality conditions of Theorem 1.

    Attributes:
        rational: both conditions hold at every pair of probabilities tested.
        quality_violation: (x1, x2) with x1 > x2 and f(x1) <= f(x2), or None.
        diversity_violation: (x1, x2) with x1 > x2 and g'(x1) >= g'(x2), or None.
    """

    rational: bool
    quality_violation: tuple[float, float] | None
    diversity_violation: tuple[float, float] | None


def check_rationality(pair: SeparablePair | str, resolution: int = 1024) -> Rationality:
    r"""Test the conditions of Theorem 1 on a grid of pairs of probabilities.

    For all $x_1 > x_2 > 0$ with $x_1 + x_2 \le 1$: $f(x_1) > f(x_2)$ and
    $g'(x_1) < g'(x_2)$, where on the line $x_1 + x_2 = 1$ equality of g' is allowed
    at isolated points. With N >= 3 texts these conditions are necessary and
    sufficient for "moving mass to a more probable text raises quality" and "moving
    mass to a text of no smaller probability lowers diversity".

    Args:
        pair: f and g, differentiable, or the name of such a pair ("LL-SE").
        resolution: the grid is 1/resolution, 2/resolution, ...; violations between
            grid points are not detected.

    Returns:
        The verdict, with the worst violation of each kind. Values equal up to
        rounding count as a violation unless the derivative shows a strict change
        between them.

    Raises:
        ValueError: a resolution below 3, which would test nothing.

    References:
        Li et al. 2020, Theorem 1; the exact condition on the line is ours. "If" is
        machine-checked: `theorem_1_quality`, `theorem_1_diversity` and
        `slopes_that_fall` in proofs/Theorem1.v.

    Claims: T1.1, T1.2, T1.3, T1.4, T1.5, T1.6, T1.7, T1.8, T1.9, T1.10, T1.11.

    Example:
        >>> from qdtheory.pairs import single_token_bleu_pair
        >>> check_rationality(single_token_bleu_pair(1, 3)).rational
        True
        >>> check_rationality(single_token_bleu_pair(1, 4)).diversity_violation
        (0.6669921875, 0.3330078125)
    """
    require_x64()
    pair = as_pair(pair)
    require("a SeparablePair, such as qd.LL_SE", SeparablePair, pair=pair)
    within(resolution=resolution, low=3)
    quality = _worst_violation(pair.f, resolution, isolated_ties_on_line=False)
    minus_slope = jax.grad(lambda x: -pair.g(x))
    diversity = _worst_violation(minus_slope, resolution, isolated_ties_on_line=True)
    return Rationality(quality is None and diversity is None, quality, diversity)


def _worst_violation(
    h: ScalarFunction, resolution: int, *, isolated_ties_on_line: bool
) -> tuple[float, float] | None:
    """Find the worst pair x1 + x2 <= 1 where h fails to increase strictly."""
    x = np.arange(1, resolution) / resolution
    values, slopes = (np.asarray(a) for a in jax.vmap(jax.value_and_grad(h))(x))
    small, large = np.triu_indices(x.size, k=1)
    on_line = small + large + 2 == resolution
    inside = small + large + 2 <= resolution
    small, large, on_line = small[inside], large[inside], on_line[inside]

    rise = values[large] - values[small]
    scale = np.maximum(np.abs(values[large]), np.abs(values[small]))
    tied = np.abs(rise) <= NOISE * scale
    # Where values saturate, rounding hides a strict increase; a derivative that is
    # never negative and somewhere positive in between still proves it.
    positive, negative = (
        np.concatenate([[0], np.cumsum(s)]) for s in (slopes > 0, slopes < 0)
    )
    shown = (positive[large + 1] > positive[small]) & (
        negative[large + 1] == negative[small]
    )
    bad_tie = tied & ~shown
    if isolated_ties_on_line:
        ties_on_line = np.sort(large[bad_tie & on_line])
        isolated = not (np.diff(ties_on_line) == 1).any()
        bad_tie &= ~on_line | (not isolated)
    bad = bad_tie | (~tied & (rise < 0)) | np.isnan(rise)
    if not bad.any():
        return None
    worst = np.where(bad)[0][np.argmin(rise[bad])]
    return float(x[large[worst]]), float(x[small[worst]])
