"""What every certificate shares: the interval, its units and its rounding."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.pairs.base import Pair
from qdtheory.pairs.posed import Posed, pose
from qdtheory.qdisc.gain import Gain
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import CONTRADICTION, EPS

# Penalty per unit of constraint violation in a linear program whose scores have range
# 1: it keeps the bound finite in a box without a feasible Q.
PENALTY = 1e5


class Interval(Gain):
    """An interval that holds QDisc, with V(q) >= V(p) as evaluated in 64 bits.

    Attributes:
        qdisc: as in `Gain`.
        upper_bound: as in `Gain`.
        q: as in `Gain`, shape (N,).
        steps: number of boxes split, or of solver iterations.
    """

    steps: int


def pose_with_start(
    pair: Pair, p: ArrayLike, start: ArrayLike | None, tolerance: float = 1.0
) -> tuple[Posed, np.ndarray]:
    """Check what a reader gives to a method: P, a model to improve, and a width.

    Args:
        pair: a pair of the method's form.
        p: the real distribution, shape (N,).
        start: the model, shape (N,); None for P itself.
        tolerance: width at which to stop.

    Returns:
        The posed pair, and the model.

    Raises:
        ValueError: `p` or `start` is not a distribution, or a tolerance that is not
            positive.
    """
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    posed = pose(pair, p)
    if start is None:
        return posed, posed.p
    return posed, np.asarray(check_distribution(start, "start", posed.p.size))


def checked_interval(
    lower: float,
    upper: float,
    q: np.ndarray,
    steps: int,
    unit: float,
) -> Interval:
    """Build the interval from a gain and a bound, and check that they are consistent.

    Args:
        lower: the gain of `q`, a model as diverse as P in 64 bits.
        upper: the claimed upper bound.
        q: the model, shape (N,).
        steps: number of steps of the method.
        unit: the range of the scores.

    Returns:
        The interval; its upper end is `lower` if that is above by rounding only.

    Raises:
        RuntimeError: the gain exceeds the bound by more than rounding explains.
    """
    if not lower <= upper + CONTRADICTION * unit:
        raise RuntimeError(
            f"a model gains {lower:.9g}, more than the bound {upper:.9g}, which is "
            "wrong then; please report this pair and P"
        )
    upper = float(max(lower, upper))
    return Interval(float(lower), upper, jnp.asarray(q), steps)


# --- Units --------------------------------------------------------------------------
@dataclass(frozen=True)
class UnitScores:
    """Scores rescaled to [0, 1], which removes their unit and additive constants.

    Attributes:
        scores: (u - min u) / unit, shape (N,).
        quality: U(P) on that scale.
        unit: the range of the scores u.
        rounding: error bound of a gain, on that scale.
    """

    scores: Float[np.ndarray, " texts"]
    quality: float
    unit: float
    rounding: float

    def gain(self, bound: float) -> float:
        """Upper bound on the gain in the unit of u, rounded up.

        Args:
            bound: upper bound on the mean score, on the scale from 0 to 1.

        Returns:
            The bound, in the unit of u.
        """
        share = min(bound, 1.0) - self.quality + self.rounding
        return self.unit * (share + 4 * EPS * abs(share))


def in_units(
    scores: Float[np.ndarray, " texts"],
    p: Float[np.ndarray, " texts"],
    error: float = 0.0,
) -> UnitScores | None:
    """Rescale scores to [0, 1].

    Args:
        scores: u, finite, shape (N,).
        p: the real distribution, shape (N,).
        error: error bound of a score.

    Returns:
        The scores; None if they are equal up to rounding, so that no model gains.
    """
    low, unit = float(scores.min()), float(np.ptp(scores))
    if unit <= constant_gain(scores, error):
        return None
    # The deviation of sum(p) from 1 is multiplied by the constant in the scores.
    offset = low / unit * math.fsum([*p.tolist(), -1.0])
    shares = (scores - low) / unit
    rounding = (p.size + 10) * EPS * (1 + abs(offset)) + 2 * error / unit
    return UnitScores(shares, float(shares @ p) + offset, unit, rounding)


def constant_gain(scores: Float[np.ndarray, " texts"], error: float = 0.0) -> float:
    """Upper bound on the gain due to rounding if all scores are equal.

    Args:
        scores: u, finite, shape (N,).
        error: error bound of a score.

    Returns:
        A nonnegative number.
    """
    return scores.size * EPS * float(np.abs(scores).max()) + 2 * error
