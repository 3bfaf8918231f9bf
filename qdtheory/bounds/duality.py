r"""Upper bounds on quality at a given diversity, by weak duality.

The seals of sums of g rest on these bounds. Quality is $u \cdot Q$ and diversity
$V = \sum_i g(Q_i)$. For every Lagrange multiplier $\eta \ge 0$ of the constraint
$V(Q) \ge s$ (the price of diversity), each feasible Q satisfies
$u \cdot Q \le u \cdot Q + \eta (V(Q) - s)$. A concave g lies below its tangents, so for
any tangent points x the right-hand side is at most
$\max_i [u_i + \eta g'(x_i)] + \eta \sum_i [g(x_i) - g'(x_i) x_i] - \eta s$.

For g of any shape, in a box $l_i \le Q_i \le h_i$ and with any multiplier $\nu$ of
$\sum_i Q_i = 1$ (the level), quality is at most
$\nu - \eta s + \sum_i \max_x [(u_i - \nu) x + \eta g(x)]$, with x in $[l_i, h_i]$.
The least of these bounds is the optimum with g replaced by its concave envelope on
each side of the box. The maximum over x is bounded by interval arithmetic on g: where
g'' <= 0 is proved, by a tangent at any point; elsewhere by chords, which g may exceed
by `FLAT` times its own size.

If g is concave up to c and convex beyond, some optimum has at most one probability
above c, that of a best text: of two such texts, moving mass from the one of smaller
probability, hence score, to the other until the former is at c lowers neither quality
nor $\sum_i g(Q_i)$. So boxes of the best text's probability are enough.

Any multipliers and tangent points give a valid bound: an error in them can only loosen
it. Sums are rounded up.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from qdtheory.bounds.boxes import Box
from qdtheory.bounds.concave_convex import chord_height, slope_table
from qdtheory.formulas.code import only_tried
from qdtheory.formulas.trees import ball
from qdtheory.functions import Function, ScalarFunction, as_function
from qdtheory.support.numbers import (
    EPS,
    LEAST_PROBABILITY,
    PerText,
    TextVector,
    within,
)

FLAT = 1e-14
NARROWEST = Fraction(1, 2**60)
MAX_STRETCHES = 4000
TABLE_POINTS = 1025
MAX_COLUMNS = 200
# Boxes of the best text's probability that are tried.
MAX_BOXES = 64
# Largest price of diversity, for scores and g of range 1: keeps the bound of a box
# without a feasible Q finite, but too low to matter.
MAX_PRICE = 1e6
# Replaces a price of 0 in divisions.
LEAST_PRICE = 1e-30
# How far a linear program's solution may be from feasible, below the default of 1e-7.
FEASIBLE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def rounding(num_terms: int, error: float = EPS) -> float:
    """Bound on the rounding error of a sum, relative to the sum of absolute values.

    Valid for terms of a few operations each, added pairwise or in blocks.
    """
    return (16 + num_terms**0.5) * error


def tangent_bound(
    g: Function, scores: TextVector, price: float, points: TextVector
) -> float:
    r"""Upper bound on $u \cdot Q + \eta \sum_i g(Q_i)$ for concave g, rounded up.

    $\max_i [u_i + \eta g'(x_i)] + \eta \sum_i [g(x_i) - g'(x_i) x_i]$.
    """
    points = np.maximum(points, LEAST_PROBABILITY)  # a tangent at 0 may be vertical
    value, slope, error = accurate_values(g, points)
    finite = np.isfinite(scores)
    heights = np.where(finite, scores + price * slope, -np.inf)
    sizes = np.where(finite, np.abs(scores) + price * np.abs(slope), 0.0)
    rest = price * (value - slope * points)
    loss = price * (np.abs(value) + np.abs(slope * points))
    highest = (heights + rounding(1, error) * sizes).max()
    return float(highest + rest.sum() + rounding(scores.size, error) * loss.sum())


def accurate_values(g: Function, x: TextVector) -> tuple[TextVector, TextVector, float]:
    """Values and slopes to a relative error, in balls where 64 bits do not have it."""
    jet, formula = g.compiled_jet(x), g.formula
    if np.isfinite(g.error) or formula is None:
        return jet.value, jet.slope, g.error
    points, index = np.unique(x, return_inverse=True)
    inside = (ball(Fraction(float(point))) for point in points if point > 0)
    rows = [[*map(float, formula.balls(point, 1))] for point in inside]
    rows = [g.at_zero] * (points.size - len(rows)) + rows
    value, slope = np.array(rows)[index].T
    return value, slope, EPS


def dual_bound(
    g: ScalarFunction | str,
    scores: PerText,
    least: float,
    price: float,
    level: float,
    low: PerText | float = 0.0,
    high: PerText | float = 1.0,
) -> float:
    r"""Upper bound on $u \cdot Q$ s.t. $\sum_i g(Q_i) \ge s$, from any multipliers.

    The dual function $\nu - \eta s + \sum_i \max_x [(u_i - \nu) x + \eta g(x)]$,
    rounded up.

    Args:
        g: as for the concave envelope of `qdtheory.certify`.
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
        >>> from qdtheory.functions import NRR
        >>> scores, p = np.array([0.7, 0.3]), np.array([0.6, 0.4])
        >>> round(dual_bound(NRR, scores, -(p @ p), price=1.0, level=-0.5), 9)
        0.54
        >>> float(scores @ p)
        0.54
    """
    within(price=price, low=0)  # weak duality needs it
    g = as_function(g, "g")
    if g.formula is None:
        raise TypeError(f"there is no bound: {only_tried(['g'])}")
    program = SeparableProgram(g, np.asarray(scores, float), least, shape_of(g))
    low, high = (np.broadcast_to(end, program.scores.shape) for end in (low, high))
    return program.bound(price, level, low, high)


@dataclass(frozen=True)
class Shape:
    """The proved shape of g: a partition of [0, 1], and its concave pieces, joined."""

    tilt: float  # of the line from g(0) to g(1), which says nothing of diversity
    unit: float  # how far g is from that line
    flat: float  # by how much g may exceed chords outside the concave pieces
    ends: np.ndarray  # from 0 to 1
    concave: np.ndarray  # a row of two ends each
    tables: list[tuple[np.ndarray, np.ndarray]] = field(repr=False)  # x, falling g'

    def touching(self, g: Function, slopes: np.ndarray) -> np.ndarray:
        """Approximate points of given slopes in each concave piece, (slopes, pieces).

        By interpolation and two Newton steps.
        """
        columns = [np.empty((slopes.size, 0))]
        for x, falling in self.tables:
            touch = np.interp(slopes, falling[::-1], x[::-1])
            for _ in range(2):
                jet = g.jet(touch)
                with np.errstate(invalid="ignore"):  # of infinite slopes at an end
                    gap = slopes - jet.slope
                    step = gap / np.minimum(jet.curvature, -EPS * self.unit)
                step = np.where(np.isfinite(step), step, 0)
                touch = np.clip(touch + step, x[0], x[-1])
            columns.append(touch[:, None])
        return np.hstack(columns)


@dataclass(frozen=True)
class SeparableProgram:
    """Maximise u . Q subject to sum g(Q_i) >= s."""

    g: Function
    scores: np.ndarray  # u, finite
    least: float  # s
    shape: Shape

    def candidates(
        self, price: float, level: float, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        r"""Candidate maximisers of $(u - \nu) x + \eta g(x)$ in a box, a row per text.

        Ends of pieces, with widths 0, and a tangent point in each concave piece, with
        the widths to its left and right on which the tangent is needed.
        """
        slopes = (level - self.scores) / max(price, LEAST_PRICE)
        low, high = low[:, None], high[:, None]
        ends = np.clip(self.shape.ends, low, high)
        starts, stops = (np.clip(end, low, high) for end in self.shape.concave.T)
        touch = np.clip(self.shape.touching(self.g, slopes), starts, stops)
        none = np.zeros_like(ends)
        left = np.hstack([none, touch - starts])
        return np.hstack([ends, touch]), (left, np.hstack([none, stops - touch]))

    def bound(
        self, price: float, level: float, low: np.ndarray, high: np.ndarray
    ) -> float:
        """Upper bound on quality in a box from any multipliers, see `dual_bound`."""
        x, widths = self.candidates(price, level, low, high)
        value, least_slope, greatest_slope = _enclosed(self.g, x)
        costs = (level - self.scores)[:, None]
        tops = price * value - costs * x
        tops += np.maximum(price * greatest_slope - costs, 0) * widths[1]
        tops += np.maximum(costs - price * least_slope, 0) * widths[0]
        # Each candidate with its own rounding error: far ones are large, and not tops.
        steepest = np.maximum(np.abs(least_slope), np.abs(greatest_slope))
        parts = price * np.abs(value) + np.abs(costs) * x
        parts += (price * steepest + np.abs(costs)) * (widths[0] + widths[1])
        tops = (tops + rounding(1) * parts).max(axis=1)
        flat = costs.size * price * self.shape.flat
        total = level - price * self.least + tops.sum() + flat
        sizes = abs(level) + price * abs(self.least) + np.abs(tops).sum() + flat
        return float(total + rounding(costs.size) * sizes)


@lru_cache(maxsize=64)
def shape_of(g: Function) -> Shape:
    """Split [0, 1] until interval arithmetic determines the shape of each piece."""
    x = np.linspace(0, 1, TABLE_POINTS)
    y = g.jet(x).value
    if not np.isfinite(y).all():
        raise ValueError(
            "this bound takes a g with two bounded derivatives on [0, 1]; at "
            f"{x[~np.isfinite(y)][0]:.3g} its value is {y[~np.isfinite(y)][0]}"
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
            bend = ends_of(g.enclosure(low, high)[2])
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
    tables = [(x, g.jet(x).slope) for x in points]
    return Shape(tilt, unit, FLAT * unit, ends, concave, tables)


@lru_cache(maxsize=64)
def _two_pieces(g: Function, inflection: float) -> Shape:
    """The shape of a g that is known to be concave up to a point, and convex beyond."""
    x, slopes, values = slope_table(g, inflection)
    # Not from 0 on, where the slope may be infinite.
    below = (x > 0) & (x <= inflection)
    concave, ends = np.array([[0.0, inflection]]), np.array([0.0, inflection, 1.0])
    tilt, tables = float(values[-1] - values[0]), [(x[below], slopes[below])]
    return Shape(tilt, chord_height(g), 0.0, ends, concave, tables)


def _enclosed(g: Function, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Upper bound on g, lower and upper bound on g', at each entry."""
    points, index = np.unique(x, return_inverse=True)
    rows = np.array([_enclosed_at(g, float(point)) for point in points])
    value, least, greatest = rows[index.reshape(x.shape)].transpose(2, 0, 1)
    return value, least, greatest


@lru_cache(maxsize=1 << 14)
def _enclosed_at(g: Function, x: float) -> tuple[float, float, float]:
    try:
        value, slope, _ = g.enclosure(x, x)
    except ValueError:
        if x != 0:
            raise
        # Like -x log x: no tangent touches g there, so that its slope does not matter.
        value = g.at_zero[0]
        return float(np.nextafter(value + EPS * abs(value), np.inf)), 0.0, 0.0
    return ends_of(value)[1], *ends_of(slope)


def ends_of(enclosed: Any) -> tuple[float, float]:
    """The ends of a ball, rounded outwards."""
    low, high = float(enclosed.lower()), float(enclosed.upper())
    return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))


def concave_convex_bound(
    g: Function,
    inflection: float,
    scores: TextVector,
    least: float,
    enough: float,
    found: tuple[float, float] | None = None,
) -> float:
    r"""Upper bound on $u \cdot Q$ subject to $\sum_i g(Q_i) \ge s$, rounded up.

    For a g that is proved to be concave up to an inflection and convex beyond. Tries
    the price and the level found first; stops at a bound that is low enough.
    """
    finite = scores[np.isfinite(scores)]
    best, unit = float(finite.max()), float(np.ptp(finite))
    if unit == 0 or enough >= best:
        return best
    at_zero = float(g.compiled_jet(np.zeros(1)).value[0])
    program = SeparableProgram(
        g,
        1 + np.sort((finite - best) / unit)[::-1],
        least - (scores.size - finite.size) * at_zero,
        _two_pieces(g, inflection),
    )
    target = 1 + (enough - best) / unit
    # The inflection is known up to rounding; allow for texts slightly beyond it.
    low = np.zeros(finite.size)
    high = np.full(finite.size, min(inflection * (1 + 1e-10), 1.0))
    columns = np.full((1, finite.size), 1 / finite.size)
    ends = [0.0, *np.geomspace(inflection, 1.0, 9)]
    boxes, largest, tried = [*pairwise(ends)], -np.inf, 0
    while boxes:
        low[0], high[0] = box = boxes.pop()
        bound, tried = np.inf, tried + 1
        if found:  # NaN does not count as less
            price, level = found[0] / unit, 1 + (found[1] - best) / unit
            bound = min(bound, program.bound(price, level, low, high))
        if bound > target:
            bound = min(bound, bounded(program, (low, high, columns), target).bound)
        if bound > target and tried < MAX_BOXES:
            middle = sum(box) / 2
            boxes += [(box[0], middle), (middle, box[1])]
        else:
            largest = max(largest, bound)
    height = best + unit * (largest - 1)
    return float(height + rounding(1) * (abs(best) + abs(height) + unit))


def bounded(
    program: SeparableProgram,
    part: tuple[np.ndarray, np.ndarray, np.ndarray],
    enough: float,
) -> Box:
    """Minimise the bound of a box over the multipliers by cutting planes.

    The bound is convex in the multipliers; any x in the box gives a supporting plane.
    The box keeps those whose mixture is the optimum; a gap is from g to its envelope.
    """
    low, high, columns = part
    x = np.clip(np.vstack([columns, low, high]), low, high)
    values = program.g.jet(x).value
    bound, best = np.inf, (0.0, 0.0)
    while True:
        floor, share, price, level = _multipliers(program, x, values)
        tried, _ = program.candidates(price, level, low, high)
        tried_values = program.g.jet(tried).value
        tops = price * tried_values - (level - program.scores)[:, None] * tried
        top = level - price * program.least + tops.max(axis=1).sum()
        if top < bound:
            bound, best = top, (price, level)
        close = bound - floor <= 0.05 * (bound - enough)
        if bound <= enough or close or len(x) > MAX_COLUMNS:
            break
        at = tops.argmax(axis=1)[:, None]
        x = np.vstack([x, np.take_along_axis(tried, at, 1).T])
        values = np.vstack([values, np.take_along_axis(tried_values, at, 1).T])
    bound = program.bound(*best, low, high)
    q = share @ x
    gaps = share @ values - program.g.jet(q).value
    return Box(low, high, bound, q, gaps, q, x[share > 0])


def _multipliers(
    program: SeparableProgram, x: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray, float, float]:
    """Minimise the maximum of the planes over the multipliers, by a linear program."""
    from scipy.optimize import linprog  # late: slow to import

    shape, left = program.shape, 1 - x.sum(axis=1)
    # A linear term of g is a constant in diversity, and shifts the level.
    spare = values.sum(axis=1) - program.least + shape.tilt * left
    planes = [-np.ones(len(x)), spare / shape.unit, left]
    solution = linprog(
        [1.0, 0.0, 0.0],
        A_ub=np.column_stack(planes),
        b_ub=-(x @ program.scores),
        bounds=[(None, None), (0, MAX_PRICE), (-MAX_PRICE, MAX_PRICE)],
        method="highs-ds",
        options=FEASIBLE,
    )
    if solution.x is None:  # at price 0 the best text bounds quality
        shares = np.full(len(x), 1 / len(x))
        return np.inf, shares, 0.0, float(program.scores.max())
    shares = np.maximum(-solution.ineqlin.marginals, 0)
    floor, price, level = solution.x
    price = max(price, 0.0) / shape.unit
    return floor, shares / shares.sum(), price, level + price * shape.tilt
