"""The record of every result on QDisc, and what all that bound it share."""

import math
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.bounds.seal import Status, seal
from qdtheory.forms import Problem
from qdtheory.support.numbers import CONTRADICTION, EPS, TextVector
from qdtheory.support.records import Display, Record


class Bounds(Record, Display):
    """A gain in quality over P at no loss of diversity, between its two bounds.

    Attributes:
        qdisc: the gain of `q`, at least 0: a lower bound on QDisc.
        upper_bound: upper bound on the gain of every such model; infinite if none is
            known.
        q: the model, shape (N,), with V(q) >= V(p) as evaluated in 64 bits; or a
            conditional one, shape (conditions, texts), as diverse as P up to rounding
            (1e-10 in the pooled distribution of `lab.conditional`).
        status: "exact" or "certified" if the two bounds meet, "lower_bound" if they
            are apart or a seal is refused; see `Discrepancy`.
        reason: the method, and what keeps a result from a seal.
        steps: number of boxes split, or of solver iterations, if the method counts.
        evidence: what shows the upper bound to a checker that trusts no solver: a
            `CubicCertificate` for `cubic_bound`, or prices of `lab.conditional`.
    """

    qdisc: float
    upper_bound: float
    q: Float[Array, "..."]
    status: Status
    reason: str
    steps: int | None = field(default=None, kw_only=True)
    evidence: Any = field(default=None, kw_only=True)

    @property
    def gap(self) -> float:
        """How far apart the two bounds are."""
        return self.upper_bound - self.qdisc


def require_few_texts(problem: Problem, most: int) -> None:
    """Raise if a bound would take too long."""
    if problem.p.size > most:
        raise ValueError(
            f"this bound takes {most} texts at most, got {problem.p.size}; take a "
            "smaller space"
        )


def sealed_bounds(
    problem: Problem,
    q: np.ndarray,
    upper: float,
    method: str,
    *,
    steps: int = 0,
    evidence: Any = None,
) -> Bounds:
    """Seal a model as diverse as P and a claimed bound, unless they contradict."""
    gain = problem.gain(q)
    upper = not_below(problem, q, gain, upper)
    status, fault = seal(problem, q, gain, upper, "certified")
    reason = (f"No seal: {fault}. " if fault else "") + f"Bounded by {method}."
    return Bounds(
        gain, upper, jnp.asarray(q), status, reason, steps=steps, evidence=evidence
    )


def not_below(problem: Problem, q: np.ndarray, gain: float, upper: float) -> float:
    """The bound, or the gain that is above it by rounding; raise if by more."""
    # The gain is attained: beyond its rounding, a bound below it is wrong, as is NaN.
    beyond = CONTRADICTION * problem.spread + problem.rounding(q)
    if not gain <= upper + beyond:
        raise RuntimeError(
            f"a model gains {gain:.9g}, more than the bound {upper:.9g}, which is "
            "wrong then; please report this pair and P"
        )
    return float(max(gain, upper))


# --- Units --------------------------------------------------------------------------
@dataclass(frozen=True)
class UnitScores:
    """Scores rescaled to [0, 1], which removes their unit and additive constants."""

    scores: TextVector  # (u - min u) / unit
    quality: float  # U(P) on that scale
    unit: float  # the range of the scores u
    rounding: float  # error bound of a gain, on that scale

    def gain(self, bound: float) -> float:
        """The gain, rounded up, that a bound on the mean of `scores` allows."""
        # Scores are at most 1, whatever a solver says. The last term is for the
        # roundings of the sum and of the product.
        share = min(bound, 1.0) - self.quality + self.rounding
        return self.unit * (share + 4 * EPS * abs(share))


def in_units(
    scores: TextVector, p: TextVector, error: float = 0.0
) -> UnitScores | None:
    """Rescale scores, each off by `error` at most; None if they are equal up to it."""
    low, unit = float(scores.min()), float(np.ptp(scores))
    # Below what rounding makes of equal scores, their range says nothing.
    if unit <= rounding_of(scores) + 2 * error:
        return None
    # U(P) = low sum(p) + unit shares . p, and U(Q) = low + unit shares . q: the
    # deviation of sum(p) from 1 is multiplied by the constant in the scores.
    offset = low / unit * math.fsum([*p.tolist(), -1.0])
    shares = (scores - low) / unit
    # Three roundings of a share, N of the sum and few of the offset, of terms of these
    # sizes; u is off by the error at the model and at P.
    rounding = (p.size + 10) * EPS * (1 + abs(offset)) + 2 * error / unit
    return UnitScores(shares, float(shares @ p) + offset, unit, rounding)


def rounding_of(scores: TextVector) -> float:
    """Rounding of N products of scores and their sum, for a model and for P."""
    return scores.size * EPS * float(np.abs(scores).max())


def constant_gain(scores: TextVector, p: TextVector, error: float = 0.0) -> float:
    """Upper bound on a gain whose scores are equal up to rounding.

    Besides their range and their rounding it is the mass that P lacks or has too much.
    """
    lack = abs(math.fsum([*p.tolist(), -1.0])) * float(np.abs(scores).max())
    return float(np.ptp(scores)) + lack + rounding_of(scores) + 2 * error
