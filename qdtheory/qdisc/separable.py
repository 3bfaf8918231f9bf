r"""Upper bounds on QDisc for $V = \sum_i g(Q_i)$ with g of any shape.

Quality is $u \cdot Q$. In a box $l_i \le Q_i \le h_i$, for every $\eta \ge 0$ and every
$\nu$, each distribution Q with $V(Q) \ge s$ satisfies
$u \cdot Q \le u \cdot Q + \eta (V(Q) - s) + \nu (1 - \sum_i Q_i)
\le \nu - \eta s + \sum_i \max_x [(u_i - \nu) x + \eta g(x)]$, with x in $[l_i, h_i]$.
The tightest of these bounds is the optimum with g replaced by its concave envelope on
each side of the box. If that optimum lies on a chord, the box is split.

Exchanging two probabilities does not change $\sum_i g(Q_i)$, so without loss of
generality the better of two texts has the larger probability: the i-th best has at most
1 / i, and if it has at least c, so have all better ones.

The maximum over x is bounded by interval arithmetic on g: where g'' <= 0 is proved, by
a tangent at any point; elsewhere by chords, which g may exceed by `FLAT` times its own
size. A solver's error can only loosen the bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.formulas.posed import Posed
from qdtheory.formulas.scalar_functions import ScalarFunction, formula_of, jet_of
from qdtheory.formulas.trees import ball
from qdtheory.qdisc.bounds import (
    Bounds,
    constant_gain,
    in_units,
    require_few_texts,
    sealed_bounds,
)
from qdtheory.solvers.boxes import Box, branch_and_bound, climb_from
from qdtheory.world.numbers import EPS

METHOD = "the concave envelope and branch and bound"
FLAT = 1e-14
NARROWEST = Fraction(1, 2**60)
MAX_STRETCHES = 4000
TABLE_POINTS = 1025
MAX_COLUMNS = 200
# Largest price of diversity, for scores and g of range 1: keeps the bound of a box
# without a feasible Q finite, but too low to matter.
MAX_PRICE = 1e6
# Replaces a price of 0 in divisions.
LEAST_PRICE = 1e-30
# A local search's time grows as N^3: some seconds for 64 texts, minutes for 256.
MAX_TEXTS = 256


# --- The bound at given multipliers -------------------------------------------------
def dual_bound(
    g: ScalarFunction,
    scores: Float[ArrayLike, " texts"],
    least: float,
    price: float,
    level: float,
    low: Float[ArrayLike, " texts"] | float = 0.0,
    high: Float[ArrayLike, " texts"] | float = 1.0,
) -> float:
    r"""Upper bound on $u \cdot Q$ s.t. $\sum_i g(Q_i) \ge s$, from any multipliers.

    The dual function $\nu - \eta s + \sum_i \max_x [(u_i - \nu) x + \eta g(x)]$,
    rounded up.

    Args:
        g: as in `separable_interval`.
        scores: u, finite, shape (N,).
        least: s.
        price: $\eta$, nonnegative.
        level: $\nu$.
        low: lower limits of the probabilities, in [0, 1], scalar or shape (N,).
        high: upper limits, likewise, at least `low`.

    Returns:
        The bound.

    Raises:
        TypeError: g has no formula.
        ValueError: a negative price, or g whose shape cannot be determined.

    Claims: N17.1, N17.2, N17.3, N17.4, N17.5.

    Example:
        >>> from qdtheory.formulas.scalar_functions import NRR
        >>> scores, p = np.array([0.7, 0.3]), np.array([0.6, 0.4])
        >>> round(dual_bound(NRR, scores, -(p @ p), price=1.0, level=-0.5), 9)
        0.54
        >>> float(scores @ p)
        0.54
    """
    if not price >= 0:
        raise ValueError(
            f"the price of diversity must be at least 0, got {price}; weak duality "
            "needs it"
        )
    scores = np.asarray(scores, float)
    low, high = (np.broadcast_to(end, scores.shape) for end in (low, high))
    x, widths = _candidates(g, low, high, (level - scores) / max(price, LEAST_PRICE))
    value, least_slope, greatest_slope = _enclosed(g, x)
    costs = (level - scores)[:, None]
    tops = price * value - costs * x
    tops += np.maximum(price * greatest_slope - costs, 0) * widths[1]
    tops += np.maximum(costs - price * least_slope, 0) * widths[0]
    flat = scores.size * price * FLAT * _shape(g).unit
    total = level - price * least + tops.max(axis=1).sum() + flat
    # Rounding error of sums of at most N + 16 terms of these sizes.
    steepest = np.maximum(np.abs(least_slope), np.abs(greatest_slope))
    parts = price * np.abs(value) + np.abs(costs)
    parts += (price * steepest + np.abs(costs)) * (widths[0] + widths[1])
    sizes = abs(level) + price * abs(least) + parts.max(axis=1).sum() + flat
    return float(total + (scores.size + 16) * EPS * sizes)


def _candidates(
    g: ScalarFunction, low: np.ndarray, high: np.ndarray, slopes: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Candidate maximisers of g(x) - slope x between low and high, a row per slope.

    Ends of pieces, with widths 0, and a tangent point in each concave piece, with the
    widths to its left and right on which the tangent is needed.
    """
    shape = _shape(g)
    low, high = low[:, None], high[:, None]
    ends = np.clip(shape.ends, low, high)
    starts, stops = (np.clip(end, low, high) for end in shape.concave.T)
    touch = np.clip(shape.touching(g, slopes), starts, stops)
    none = np.zeros_like(ends)
    left, right = np.hstack([none, touch - starts]), np.hstack([none, stops - touch])
    return np.hstack([ends, touch]), (left, right)


@dataclass(frozen=True)
class _Shape:
    """The proved shape of g: a partition of [0, 1], and its concave pieces, joined."""

    tilt: float  # of the line from g(0) to g(1), which says nothing of diversity
    unit: float  # how far g is from that line
    ends: np.ndarray  # from 0 to 1
    concave: np.ndarray  # a row of two ends each
    tables: list[tuple[np.ndarray, np.ndarray]] = field(repr=False)  # x, falling g'

    def touching(self, g: ScalarFunction, slopes: np.ndarray) -> np.ndarray:
        """Approximate points of given slopes in each concave piece, (slopes, pieces).

        By interpolation and two Newton steps.
        """
        columns = [np.empty((slopes.size, 0))]
        for x, falling in self.tables:
            touch = np.interp(slopes, falling[::-1], x[::-1])
            for _ in range(2):
                jet = jet_of(g, touch)
                with np.errstate(invalid="ignore"):  # of infinite slopes at an end
                    gap = slopes - jet.slope
                    step = gap / np.minimum(jet.curvature, -EPS * self.unit)
                step = np.where(np.isfinite(step), step, 0)
                touch = np.clip(touch + step, x[0], x[-1])
            columns.append(touch[:, None])
        return np.hstack(columns)


@lru_cache(maxsize=64)
def _shape(g: ScalarFunction) -> _Shape:
    """Split [0, 1] until interval arithmetic determines the shape of each piece."""
    x = np.linspace(0, 1, TABLE_POINTS)
    y = jet_of(g, x).value
    if not np.isfinite(y).all():
        raise ValueError(
            f"g must be finite on [0, 1], but is {y[~np.isfinite(y)][0]} at "
            f"{x[~np.isfinite(y)][0]:.3g}"
        )
    tilt, size = float(y[-1] - y[0]), float(np.abs(y).max())
    unit = max(float(np.abs(y - y[0] - tilt * x).max()), EPS * size) or 1.0
    waiting, told = [(Fraction(0), Fraction(1))], []
    while waiting:
        low, high = waiting.pop()
        width = high - low
        if width < NARROWEST or len(told) > MAX_STRETCHES:
            raise ValueError(
                "interval arithmetic cannot tell where g is concave near "
                f"{float(low):.3g}; use a g with two bounded derivatives on [0, 1]"
            )
        try:
            bend = _bounds(_enclosure(g, low, high)[2])
        except ValueError:  # too wide to decide
            bend = -np.inf, np.inf
        if bend[1] <= 0:
            told.append((low, high, True))
        # g exceeds a chord over a width h by at most -g'' h^2 / 8.
        elif -bend[0] * float(width) ** 2 / 8 <= FLAT * unit:
            told.append((low, high, False))
        else:
            middle = (low + high) / 2
            waiting += [(middle, high), (low, middle)]
    joined: list[list[Fraction]] = []
    for low, high, concave in told:
        if concave and joined and joined[-1][1] == low:
            joined[-1][1] = high
        elif concave:
            joined.append([low, high])
    concave = np.array(joined, float).reshape(-1, 2)
    points = [np.linspace(low, high, TABLE_POINTS) for low, high in concave]
    ends = np.array([0.0] + [float(high) for _, high, _ in told])
    tables = [(x, jet_of(g, x).slope) for x in points]
    return _Shape(tilt, unit, ends, concave, tables)


def _enclosure(g: ScalarFunction, low: Fraction, high: Fraction) -> list:
    """Arb balls that hold g, g' and g'' from low to high."""
    formula = _formula(g)
    if formula is None:
        raise TypeError(
            "the bound needs a formula for g; write it as a qdtheory.Expression, got "
            f"{getattr(g, '__name__', type(g).__name__)}"
        )
    found = formula.balls(ball(low).union(ball(high)), 2)
    if not all(part.is_finite() for part in found):
        raise ValueError(f"{formula.text} has no bounded enclosure at {low}")
    return found


_formula = lru_cache(maxsize=64)(formula_of)


def _enclosed(
    g: ScalarFunction, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Upper bound on g, lower and upper bound on g', at each entry."""
    points, index = np.unique(x, return_inverse=True)
    rows = np.array([_enclosed_at(g, float(point)) for point in points])
    value, least, greatest = rows[index.reshape(x.shape)].transpose(2, 0, 1)
    return value, least, greatest


@lru_cache(maxsize=1 << 14)
def _enclosed_at(g: ScalarFunction, x: float) -> tuple[float, float, float]:
    value, slope, _ = _enclosure(g, Fraction(x), Fraction(x))
    return _bounds(value)[1], *_bounds(slope)


def _bounds(enclosed: Any) -> tuple[float, float]:
    """The ends of a ball, rounded outwards."""
    low, high = float(enclosed.lower()), float(enclosed.upper())
    return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))


# --- Branch and bound ---------------------------------------------------------------
def envelope_bounds(
    posed: Posed, start: np.ndarray, tolerance: float = 1e-6, max_steps: int = 1000
) -> Bounds:
    """Bound QDisc for a diversity that sums g(Q_i), g a formula of any shape."""
    require_few_texts(posed, MAX_TEXTS)
    p, scores, g = posed.p, posed.scores, posed.g
    # The others have score -inf, hence no mass.
    order = np.argsort(-scores, kind="stable")[: np.isfinite(scores).sum()]
    units = in_units(scores[order], p[order])
    if units is None:
        return sealed_bounds(posed, p, constant_gain(scores[order]), METHOD)
    problem = _problem(g, units.scores, p, p.size - order.size)

    def value(q: np.ndarray) -> float:
        return units.quality + posed.gain(q) / units.unit

    def climb(box: Box) -> np.ndarray:
        climbed, to = np.zeros(p.size), problem
        climbed[order] = climb_from(to.scores, to.spent, to.budget, box.q)
        return climbed

    def bounded(part: tuple, enough: float) -> Box:
        return _bounded(problem, *part, enough=enough)

    best = max([p, start], key=value)
    # No less than 1 / i.
    high = np.nextafter(1 / np.arange(1.0, order.size + 1), 2)
    columns = np.array([p[order], np.full(order.size, 1 / order.size)])
    root = 0 * high, np.minimum(high, 1), columns
    bound, best, splits = branch_and_bound(
        bounded, root, _halves, climb, value, best, tolerance, max_steps
    )
    return sealed_bounds(posed, best, units.gain(bound), METHOD, steps=splits)


@dataclass(frozen=True)
class _Problem:
    """Maximise u . Q subject to sum g(Q_i) >= s, texts in descending order of u."""

    g: ScalarFunction
    scores: np.ndarray  # from 0 to 1
    least: float

    @property
    def budget(self) -> float:
        """Upper limit of `spent`, in the unit of g without its tilt."""
        shape = _shape(self.g)
        return (shape.tilt - self.least) / shape.unit

    def spent(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the diversity of a distribution in that unit, with its gradient."""
        jet, shape = jet_of(self.g, q), _shape(self.g)
        value = shape.tilt * q.sum() - float(jet.value.sum())
        return value / shape.unit, (shape.tilt - jet.slope) / shape.unit


def _problem(
    g: ScalarFunction, scores: np.ndarray, p: np.ndarray, num_left_out: int
) -> _Problem:
    """Build the problem, with the required diversity rounded down from that of P."""
    _shape(g)  # refuses a g without bounds
    values = [_enclosure(g, Fraction(x), Fraction(x))[0] for x in p.tolist()]
    left_out = _enclosure(g, Fraction(0), Fraction(0))[0] * num_left_out
    return _Problem(g, scores, _bounds(sum(values) - left_out)[0])


def _bounded(
    problem: _Problem,
    low: np.ndarray,
    high: np.ndarray,
    columns: np.ndarray,
    enough: float,
) -> Box:
    """Minimise the bound of a box over the multipliers by cutting planes.

    The bound is convex in the multipliers; any x in the box gives a supporting plane.
    The box keeps those whose mixture is the optimum; a gap is from g to its envelope.
    """
    x = np.clip(np.vstack([columns, low, high]), low, high)
    values = jet_of(problem.g, x).value
    bound, best = np.inf, (0.0, 0.0)
    while True:
        floor, share, price, level = _multipliers(problem, x, values)
        costs = level - problem.scores
        tried, _ = _candidates(problem.g, low, high, costs / max(price, LEAST_PRICE))
        tried_values = jet_of(problem.g, tried).value
        tops = price * tried_values - costs[:, None] * tried
        top = level - price * problem.least + tops.max(axis=1).sum()
        if top < bound:
            bound, best = top, (price, level)
        close = bound - floor <= 0.05 * (bound - enough)
        if bound <= enough or close or len(x) > MAX_COLUMNS:
            break
        at = tops.argmax(axis=1)[:, None]
        x = np.vstack([x, np.take_along_axis(tried, at, 1).T])
        values = np.vstack([values, np.take_along_axis(tried_values, at, 1).T])
    bound = dual_bound(problem.g, problem.scores, problem.least, *best, low, high)
    q = share @ x
    gaps = share @ values - jet_of(problem.g, q).value
    return Box(low, high, bound, q, gaps, q, x[share > 0])


def _multipliers(
    problem: _Problem, x: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray, float, float]:
    """Minimise the maximum of the planes over the multipliers, by a linear program."""
    from scipy.optimize import linprog  # late: slow to import

    shape, left = _shape(problem.g), 1 - x.sum(axis=1)
    # A linear term of g is a constant in diversity, and shifts the level.
    spare = values.sum(axis=1) - problem.least + shape.tilt * left
    planes = [-np.ones(len(x)), spare / shape.unit, left]
    tolerances = dict.fromkeys(
        ["primal_feasibility_tolerance", "dual_feasibility_tolerance"], 1e-10
    )
    solution = linprog(
        [1.0, 0.0, 0.0],
        A_ub=np.column_stack(planes),
        b_ub=-(x @ problem.scores),
        bounds=[(None, None), (0, MAX_PRICE), (-MAX_PRICE, MAX_PRICE)],
        method="highs-ds",
        options=tolerances,
    )
    if solution.x is None:  # at price 0 the best text bounds quality
        shares = np.full(len(x), 1 / len(x))
        return np.inf, shares, 0.0, float(problem.scores.max())
    shares = np.maximum(-solution.ineqlin.marginals, 0)
    floor, price, level = solution.x
    price = max(price, 0.0) / shape.unit
    return floor, shares / shares.sum(), price, level + price * shape.tilt


def _halves(box: Box) -> Iterator[tuple]:
    """Split a box in two where the envelope is farthest from g."""
    i, cut = box.cut()
    place = np.arange(box.q.size)
    high = np.where(place >= i, np.minimum(box.high, cut), box.high)
    yield box.low, high, box.planes
    low = np.where(place <= i, np.maximum(box.low, cut), box.low)
    # What the others leave, and a little more than its rounding.
    left = 1 - (low.sum() - low) + 4 * place.size * EPS
    high = np.minimum(box.high, left)
    if (low <= high).all():
        yield low, high, box.planes
