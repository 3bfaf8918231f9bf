"""Theorem 1: the more probable a text, the better it scores and the less it adds."""

import jax
import numpy as np

from qdtheory.formulas.scalar_functions import ScalarFunction
from qdtheory.pairs.base import SeparablePair
from qdtheory.pairs.named import as_pair
from qdtheory.world.distributions import require_x64
from qdtheory.world.numbers import NOISE, require, within
from qdtheory.world.records import Record


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
        >>> from qdtheory.pairs.named import single_token_bleu_pair
        >>> check_rationality(single_token_bleu_pair(1, 3)).rational
        True
        >>> check_rationality(single_token_bleu_pair(1, 4)).diversity_violation
        (0.6669921875, 0.3330078125)
    """
    require_x64()
    pair = as_pair(pair)
    require("a SeparablePair, such as qd.LL_SE", SeparablePair, pair=pair)
    within(resolution=resolution, low=3)
    quality = _violation(pair.f, resolution, isolated_ties_on_line=False)
    minus_slope = jax.grad(lambda x: -pair.g(x))
    diversity = _violation(minus_slope, resolution, isolated_ties_on_line=True)
    return Rationality(quality is None and diversity is None, quality, diversity)


def _violation(
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
