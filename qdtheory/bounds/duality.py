r"""Upper bounds on quality at a given diversity, by weak duality.

The seals of sums of g rest on these bounds. Quality is $u \cdot Q$ and diversity
$V = \sum_i g(Q_i)$. For every Lagrange multiplier $\eta \ge 0$ of the constraint
$V(Q) \ge s$ (the price of diversity), each feasible Q satisfies
$u \cdot Q \le u \cdot Q + \eta (V(Q) - s)$. A concave g lies below its tangents,
$g(Q_i) \le g(x_i) + g'(x_i) (Q_i - x_i)$, so for any tangent points x the right-hand
side is at most, as Q sums to 1,
$$\max_i [u_i + \eta g'(x_i)] + \eta \sum_i [g(x_i) - g'(x_i) x_i] - \eta s.
\qquad (1)$$

For g of any shape, in a box $l_i \le Q_i \le h_i$ and with any multiplier $\nu$ of
$\sum_i Q_i = 1$ (the level), $u \cdot Q + \eta (V(Q) - s) + \nu (1 - \sum_i Q_i)$, and
with it quality, is at most the dual function
$$\nu - \eta s + \sum_i \max_{l_i \le x \le h_i} [(u_i - \nu) x + \eta g(x)].
\qquad (2)$$
The least of these bounds is the optimum with g replaced by its concave envelope on
each interval from $l_i$ to $h_i$. The maximum over x is bounded by the proved shape of
g (`shapes`): by the values at the ends of pieces, plus $\eta$ times the excess over
chords, and in each concave piece, cut to the box, then from l to h, by a tangent at any
point t,
$$(u - \nu) x + \eta g(x) \le (u - \nu) t + \eta g(t)
+ \max\{(h - t)\,(\eta g'(t) - (\nu - u)),\ (t - l)\,((\nu - u) - \eta g'(t)),\ 0\}.
\qquad (3)$$

Any $\eta \ge 0$, $\nu$ and tangent points give a valid bound: an error in them can only
loosen it. Sums are rounded up.

The least bound of a box: (2) is the maximum over x in the box of
$$u \cdot x + \eta \Big(\sum_i g(x_i) - s\Big) + \nu \Big(1 - \sum_i x_i\Big),
\qquad (4)$$
planes in $(\eta, \nu)$: it is convex, and is minimised by cutting planes. Those of a
few x bound it from below; the maximisers at their minimum are the next x. The
multipliers of the planes mix the x to the optimum with g replaced by its concave
envelope.

If g is concave up to c and convex beyond, some optimum has at most one probability
above c, that of a best text. Exchanging two probabilities leaves V as it is, so let
better texts have larger ones. Of two texts above c, moving mass from the one of smaller
probability, hence score, to the other until the former is at c lowers neither quality
nor $\sum_i g(Q_i)$, as g is convex there. So boxes of the best text's probability are
enough.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from qdtheory.bounds.boxes import Box
from qdtheory.bounds.shapes import Shape, enclosed, shape_of, two_pieces
from qdtheory.formulas.code import only_tried
from qdtheory.formulas.trees import ball
from qdtheory.functions import Function, ScalarFunction, as_function
from qdtheory.support.numbers import EPS, LEAST_PROBABILITY, PerText, TextVector, within

# Replaces a price of 0 in divisions.
LEAST_PRICE = 1e-30
# Of x in a box, as the linear program grows with them.
MAX_COLUMNS = 200
# Boxes of the best text's probability that are tried.
MAX_BOXES = 64
# Largest price of diversity, for scores and g of range 1: keeps the bound of a box
# without a feasible Q finite, but too low to matter.
MAX_PRICE = 1e6
# How far a linear program's solution may be from feasible, below the default of 1e-7.
FEASIBLE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


# --- Bounds from any multipliers ------------------------------------------------------
def rounding(num_terms: int, error: float = EPS) -> float:
    """Bound on the rounding error of a sum, relative to the sum of absolute values.

    Valid for terms of a few operations each, added pairwise or in blocks.
    """
    # NumPy adds blocks of 128 in eight sums of 16 each, and these pairwise: about
    # 16 + log2 N roundings, of EPS / 2 each. The root allows for blocks of that size.
    return (16 + num_terms**0.5) * error


def tangent_bound(
    g: Function, scores: TextVector, price: float, points: TextVector
) -> float:
    r"""Upper bound on $u \cdot Q + \eta \sum_i g(Q_i)$ for concave g, rounded up.

    $\max_i [u_i + \eta g'(x_i)] + \eta \sum_i [g(x_i) - g'(x_i) x_i]$.
    """
    points = np.maximum(points, LEAST_PROBABILITY)  # a tangent at 0 may be vertical
    value, slope, error = accurate_values(g, points)
    # Texts of score -inf have no mass: their tangents add to the sum in (1) only.
    finite = np.isfinite(scores)
    heights = np.where(finite, scores + price * slope, -np.inf)
    sizes = np.where(finite, np.abs(scores) + price * np.abs(slope), 0.0)
    # The second term of (1). The third, -price * s, is left to the caller.
    rest = price * (value - slope * points)
    magnitudes = price * (np.abs(value) + np.abs(slope * points))
    # Each height with its own error: where a slope is huge so is the error, and the
    # height is not the maximum.
    highest = (heights + rounding(1, error) * sizes).max()
    return float(highest + rest.sum() + rounding(scores.size, error) * magnitudes.sum())


def accurate_values(g: Function, x: TextVector) -> tuple[TextVector, TextVector, float]:
    """Values and slopes to a relative error, in balls where 64 bits do not have it."""
    if g.formula is None or np.isfinite(g.error):
        jet = g.compiled_jet(x)
        # x^.01 at the least 64-bit number is not near its limit.
        limit = jet.value if g.formula is None else g.at_zero[0]
        return np.where(x > 0, jet.value, limit), jet.slope, g.error
    # Balls where g cancels, as x - log(1 + x) near 0; at 0 itself the limits.
    points, index = np.unique(x, return_inverse=True)
    inside = (ball(Fraction(float(point))) for point in points if point > 0)
    rows = [[*map(float, g.formula.balls(point, 1))] for point in inside]
    rows = [g.at_zero] * (points.size - len(rows)) + rows
    return *np.array(rows)[index].T, EPS


def dual_bound(
    g: ScalarFunction | str,
    scores: PerText,
    least: float,
    price: float,
    level: float,
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

    Returns:
        The bound.

    Raises:
        TypeError: g has no formula.
        ValueError: a negative price, or g whose shape cannot be determined.

    Claims: N17.1, N17.2, N17.3.

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
    none = np.zeros_like(program.scores)
    return program.bound(price, level, none, none + 1)


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
        # The maximum in a concave piece is where eta g' = nu - u, or at an end.
        slopes = (level - self.scores) / max(price, LEAST_PRICE)
        low, high = low[:, None], high[:, None]
        # A piece outside of the box becomes the end of the box that is nearer.
        ends = np.clip(self.shape.ends, low, high)
        starts, stops = (np.clip(end, low, high) for end in self.shape.concave.T)
        touch = np.clip(self.shape.touching(self.g, slopes), starts, stops)
        none = np.zeros_like(ends)
        left = np.hstack([none, touch - starts])  # t - l of (3)
        return np.hstack([ends, touch]), (left, np.hstack([none, stops - touch]))

    def bound(
        self, price: float, level: float, low: np.ndarray, high: np.ndarray
    ) -> float:
        """Upper bound on quality in a box from any multipliers, see `dual_bound`."""
        x, (left, right) = self.candidates(price, level, low, high)
        value, least_slope, greatest_slope = enclosed(self.g, x)
        costs = (level - self.scores)[:, None]  # nu - u
        # (3), where at most one of the two is above 0, but for the enclosure of g'.
        maxima = price * value - costs * x
        maxima += np.maximum(price * greatest_slope - costs, 0) * right
        maxima += np.maximum(costs - price * least_slope, 0) * left
        # Each candidate with its own rounding error: far ones are large, and no maxima.
        steepest = np.maximum(np.abs(least_slope), np.abs(greatest_slope))
        magnitudes = price * np.abs(value) + np.abs(costs) * x
        magnitudes += (price * steepest + np.abs(costs)) * (left + right)
        maxima = (maxima + rounding(1) * magnitudes).max(axis=1)
        # (2). Off the concave pieces g is at most its chord plus the excess, and a
        # chord is greatest at an end, a candidate: so one excess a text is enough.
        excess = costs.size * price * self.shape.excess
        total = level - price * self.least + maxima.sum() + excess
        sizes = abs(level) + price * abs(self.least) + np.abs(maxima).sum() + excess
        return float(total + rounding(costs.size) * sizes)


# --- The multipliers of the least bound -----------------------------------------------
def concave_convex_bound(
    g: Function,
    inflection: float,
    scores: TextVector,
    least: float,
    target: float,
    multipliers: tuple[float, float] | None = None,
) -> float:
    r"""Upper bound on $u \cdot Q$ subject to $\sum_i g(Q_i) \ge s$, rounded up.

    For a g that is proved to be concave up to an inflection and convex beyond. Tries
    the given price and level first; stops at a bound of at most the target.
    """
    finite = scores[np.isfinite(scores)]
    best, unit = float(finite.max()), float(np.ptp(finite))
    if unit == 0 or target >= best:
        return best
    # Scores in [0, 1], best first; a text of score -inf adds g(0) to V and no more.
    # Not rounded down: the margin of the caller's `least` counts these terms too.
    if finite.size < scores.size:
        least -= (scores.size - finite.size) * g.at_zero[0]
    scores = 1 + np.sort((finite - best) / unit)[::-1]
    program = SeparableProgram(g, scores, least, two_pieces(g, inflection))
    if multipliers:
        multipliers = multipliers[0] / unit, 1 + (multipliers[1] - best) / unit
    target = 1 + (target - best) / unit
    greatest = _greatest_bound(program, inflection, target, multipliers)
    height = best + unit * (greatest - 1)
    return float(height + rounding(1) * (abs(best) + abs(height) + unit))


def _greatest_bound(
    program: SeparableProgram, inflection: float, target: float, pair: tuple | None
) -> float:
    """The greatest bound of boxes of the best text; `pair` is a price and a level."""
    n = program.scores.size
    # The inflection is known up to rounding; allow for texts slightly beyond it. That g
    # bends the other way within such a distance d costs |g'''| d^3, below any rounding.
    low, high = np.zeros(n), np.full(n, min(inflection * (1 + 1e-10), 1.0))
    ends = [0.0, *np.geomspace(inflection, 1.0, 9)]
    boxes, greatest, tried = [*pairwise(ends)], -np.inf, 0
    while boxes:
        low[0], high[0] = box = boxes.pop()  # text 0 is a best one, alone above c
        bound, tried = np.inf, tried + 1
        # Most boxes are settled by the multipliers of the optimum, without a program.
        if pair:
            bound = min(bound, program.bound(pair[0], pair[1], low, high))
        if bound > target:
            part = low, high, np.full((1, n), 1 / n)
            bound = min(bound, bounded(program, part, target).bound)
        if bound > target and tried < MAX_BOXES:
            middle = sum(box) / 2
            boxes += [(box[0], middle), (middle, box[1])]
        else:
            greatest = max(greatest, bound)
    return greatest


def bounded(program: SeparableProgram, part: tuple, target: float) -> Box:
    """Minimise the bound of a box over the multipliers by cutting planes.

    The part is the box's ends and rows of x to begin with. The box keeps the x of (4)
    whose mixture is the optimum; a gap is from g to its envelope.
    """
    low, high, columns = part
    x = np.clip(np.vstack([columns, low, high]), low, high)
    values = program.g.jet(x).value
    bound, best = np.inf, (0.0, 0.0)
    while True:
        floor, shares, price, level = _multipliers(program, x, values)
        # The dual function there, not rounded up, and its maximisers.
        candidates, _ = program.candidates(price, level, low, high)
        heights = program.g.jet(candidates).value
        maxima = price * heights - (level - program.scores)[:, None] * candidates
        height = level - price * program.least + maxima.max(axis=1).sum()
        if height < bound:
            bound, best = height, (price, level)
        # The least bound of the box is from `floor` to `bound`: stop where that is a
        # twentieth of what is above the target, as a split gains more.
        close = bound - floor <= 0.05 * (bound - target)
        if bound <= target or close or len(x) > MAX_COLUMNS:
            break
        at = maxima.argmax(axis=1)[:, None]
        x = np.vstack([x, np.take_along_axis(candidates, at, 1).T])
        values = np.vstack([values, np.take_along_axis(heights, at, 1).T])
    bound = program.bound(*best, low, high)
    q = shares @ x
    gaps = shares @ values - program.g.jet(q).value
    return Box(low, high, bound, q, gaps, q, x[shares > 0])


def _multipliers(
    program: SeparableProgram, x: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray, float, float]:
    """Minimise the maximum of the planes (4) over the multipliers.

    Returns that minimum, the shares of the planes, the price and the level.
    """
    from scipy.optimize import linprog  # late: slow to import

    shape, lack = program.shape, 1 - x.sum(axis=1)
    # A linear term of g is a constant in diversity, and shifts the level: with the tilt
    # t, sum g(x_i) - s is a surplus less t times what x lacks of 1.
    surplus = values.sum(axis=1) - program.least + shape.tilt * lack
    # The least z with z >= u . x + price surplus + (level - price t) lack.
    planes = [-np.ones(len(x)), surplus / shape.unit, lack]
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
    # Back from the units of g and without its tilt.
    price = max(price, 0.0) / shape.unit
    return floor, shares / shares.sum(), price, level + price * shape.tilt
