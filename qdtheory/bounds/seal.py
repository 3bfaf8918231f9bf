"""The one door through which a result on QDisc gets its seal.

A solver hands in a model, a bound and what it claims. The seal rests on the answer
alone: the model is a distribution as diverse as P, by enclosures where g has a formula;
the bound holds for the multiplier recomputed from the model, in ball arithmetic; and
both are compared in the unit of what a model can gain at all.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import ctx

from qdtheory.forms import Problem
from qdtheory.formulas.code import only_tried
from qdtheory.formulas.trees import PRECISION, ball
from qdtheory.support.numbers import CERTIFIED, EPS, EXACT, NOISE

Status = Literal["exact", "certified", "lower_bound"]
# Deviation of a model's sum from 1.
SUMS = 1e-9
# More texts are not added up in balls, some 20 microseconds each.
MAX_TEXTS = 2**14


def seal(
    problem: Problem,
    q: np.ndarray,
    gain: float,
    upper: float,
    aim: Literal["exact", "certified"],
) -> tuple[Status, str]:
    """Decide the status, given what the bound may show, and say what refuses a seal."""
    # Tried at points, a function is not proved to have any property.
    if problem.form.code:
        return "lower_bound", only_tried(problem.form.code)
    if (fault := next(_faults(problem, q, gain, upper), None)) is not None:
        return "lower_bound", fault
    if aim == "exact":
        met = upper - gain <= distinguishable(problem, q)
    else:
        # By a share of the range, or as far as 64 bits can tell.
        met = upper - gain <= max(CERTIFIED * _unit(problem), problem.rounding(q))
    return (aim if met else "lower_bound"), ""


def distinguishable(problem: Problem, q: np.ndarray) -> float:
    """The difference of two gains at which a result is not exact."""
    # Of U(Q) - U(P), whose rounding error is a share of the sizes of both sums.
    return max(EXACT * _unit(problem), NOISE * problem.magnitude(q))


def _unit(problem: Problem) -> float:
    """What a model can gain: a rare text with a score of -1e11 is no measure of it."""
    return min(problem.spread, float(problem.scores.max()) - problem.real_quality)


def _faults(
    problem: Problem, q: np.ndarray, gain: float, upper: float
) -> Iterator[str]:
    """What is wrong with an answer, most elementary first."""
    if not (np.isfinite(q).all() and q.min() >= 0 and abs(q.sum() - 1) <= SUMS):
        yield "the model found is no distribution"
        return
    values = problem.quality(q), problem.diversity(q), problem.real_diversity
    if not np.isfinite(values).all():
        yield "the quality or the diversity of P or of the model is not finite"
    if not upper >= gain:
        yield "the bound is below the gain"
    if problem.g is not None:
        yield from _faults_of_g(problem, q)


def _faults_of_g(problem: Problem, q: np.ndarray) -> Iterator[str]:
    g, p = problem.g, problem.p
    if p.size > MAX_TEXTS or np.array_equal(q, p):
        return
    rise, size = _rise(g.formula, p, q)
    # An infinite error would allow any model: it is judged as if 64 bits were enough.
    error = g.error if np.isfinite(g.error) else EPS
    # Models are as diverse as P in 64 bits: in truth, they may fall short by the
    # rounding of two sums of N values, relative to their terms (`duality.rounding`).
    if not rise >= -(32 + p.size**0.5) * error * size:
        yield f"the model falls short of the diversity of P by {float(-rise):.1e}"


def _rise(g: Any, p: np.ndarray, q: np.ndarray) -> tuple[Any, float]:
    """V(q) - V(p) in balls, and the size of its terms."""
    at_zero = g.numerics.zero[0]
    with ctx.workprec(PRECISION):
        # Equal probabilities have equal values: one ball for all of them.
        total, size = ball(Fraction()), 0.0
        for sign, x in ((1, q), (-1, p)):
            for number, count in zip(*np.unique(x, return_counts=True), strict=True):
                if number == 0:
                    value = ball(at_zero)
                else:
                    (value,) = g.balls(ball(Fraction(float(number))))
                total += sign * int(count) * value
                size += int(count) * abs(float(value))
        return total, size
