r"""Upper bounds on quality at a given diversity, by weak duality.

The status "exact" rests on these bounds. Quality is $u \cdot Q$ and diversity
$V = \sum_i g(Q_i)$. For every Lagrange multiplier $\eta \ge 0$ of the constraint
$V(Q) \ge s$ (the price of diversity), each feasible Q satisfies
$u \cdot Q \le u \cdot Q + \eta (V(Q) - s)$. A concave g lies below its tangents, so for
any tangent points x the right-hand side is at most
$\max_i [u_i + \eta g'(x_i)] + \eta \sum_i [g(x_i) - g'(x_i) x_i] - \eta s$.

If g is concave up to c and convex beyond, some optimum has at most one probability
above c, that of a best text: of two such texts, moving mass from the one of smaller
probability, hence score, to the other until the former is at c lowers neither quality
nor $\sum_i g(Q_i)$. The range of the best text's probability is therefore split into
boxes. In a box, with a multiplier $\nu$ of $\sum_i Q_i = 1$ (the level), quality is at
most
$\nu - \eta s + \max_t [(u_1 - \nu) t + \eta g(t)]
+ \sum_{i > 1} \max_{x \le c} [(u_i - \nu) x + \eta g(x)]$:
a convex g is maximal at an endpoint, and a concave g lies below its tangents.

Any multipliers and tangent points give a valid bound: an error in them can only loosen
it. Sums are rounded up.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from qdtheory.formulas.scalar_functions import ScalarFunction, error_of
from qdtheory.qdisc.convex import chord_height, slope_table, values_of
from qdtheory.world.numbers import EPS, LEAST_PROBABILITY, TINY

# Boxes per batch, so that few shapes are compiled.
BATCH = 32
MAX_BOXES = 1024
NEWTON_STEPS = 6
# Range of initial prices, relative to the expected price.
PRICES = (1e-6, 1e2)
NUM_PRICES = 12
NUM_HALVINGS = 30


def rounding(num_terms: int, error: float = EPS) -> float:
    """Bound on the rounding error of a sum, relative to the sum of absolute values.

    Valid for terms of a few operations each, added pairwise or in blocks.
    """
    return (16 + num_terms**0.5) * error


def tangent_bound(
    g: ScalarFunction,
    scores: Float[np.ndarray, " texts"],
    price: float,
    points: Float[np.ndarray, " texts"],
) -> float:
    r"""Upper bound on $u \cdot Q + \eta \sum_i g(Q_i)$ for concave g, rounded up.

    $\max_i [u_i + \eta g'(x_i)] + \eta \sum_i [g(x_i) - g'(x_i) x_i]$.
    """
    points = np.maximum(points, LEAST_PROBABILITY)  # a tangent at 0 may be vertical
    value, slope, _ = values_of(g, points)
    finite = np.isfinite(scores)
    heights = np.where(finite, scores + price * slope, -np.inf)
    sizes = np.where(finite, np.abs(scores) + price * np.abs(slope), 0.0)
    rest = price * (value - slope * points)
    loss = price * (np.abs(value) + np.abs(slope * points))
    error = error_of(g)
    highest = (heights + rounding(1, error) * sizes).max()
    return float(highest + rest.sum() + rounding(scores.size, error) * loss.sum())


def concave_convex_bound(
    g: ScalarFunction,
    inflection: float,
    scores: Float[np.ndarray, " texts"],
    least: float,
    enough: float,
    found: tuple[float, float] | None = None,
) -> float:
    r"""Upper bound on $u \cdot Q$ subject to $\sum_i g(Q_i) \ge s$, rounded up."""
    finite = scores[np.isfinite(scores)]
    best, unit = float(finite.max()), float(np.ptp(finite))
    if unit == 0 or enough >= best:
        return best
    at_zero = float(values_of(g, np.zeros(1))[0][0])
    problem = _Problem(
        g,
        np.sort((finite - best) / unit)[::-1],
        least - (scores.size - finite.size) * at_zero,
        inflection,
        slope_table(g, inflection)[:2],
        1 / chord_height(g),
        (found[0] / unit, (found[1] - best) / unit) if found else None,
    )
    enough = (enough - best) / unit
    ends = np.concatenate([[0.0], np.geomspace(inflection, 1.0, 9)])
    multipliers = np.full(9, problem.price), np.zeros(9)
    boxes = np.column_stack([ends[:-1], ends[1:], *multipliers])
    height = best + unit * _largest_bound(problem, boxes, enough)
    return float(height + rounding(1) * (abs(best) + abs(height)))


def _largest_bound(problem: "_Problem", boxes: np.ndarray, enough: float) -> float:
    """Largest bound of boxes, which are halved while theirs is above a target.

    All at once, not the largest first: each has to be settled, and many share a call.
    """
    settled, tried = -np.inf, 0
    while True:
        parts = np.array_split(boxes, -(-len(boxes) // BATCH))
        pieces = [_bounded(problem, part, enough) for part in parts]
        bound, boxes = (np.concatenate(part) for part in zip(*pieces, strict=True))
        tried += len(boxes)
        left = bound > enough
        settled = bound[~left].max(initial=settled)
        if not left.any() or tried > MAX_BOXES:
            break
        low, high, *multipliers = boxes[left].T
        middle = (low + high) / 2
        halves = [low, middle, *multipliers], [middle, high, *multipliers]
        boxes = np.concatenate([np.column_stack(half) for half in halves])
    return float(bound.max(initial=settled))


@dataclass(frozen=True)
class _Problem:
    """Maximise u . Q s.t. sum g(Q_i) >= s and Q_i <= c except for the best text."""

    g: ScalarFunction
    scores: np.ndarray  # descending from 0 to -1
    least: float
    inflection: float
    table: tuple[np.ndarray, np.ndarray]  # x and g'(x)
    price: float  # expected order of magnitude
    found: tuple[float, float] | None  # the price and the level of a good model


@dataclass(frozen=True)
class _Boxes:
    """Intervals of the best text's probability, with a point in each."""

    problem: _Problem
    low: np.ndarray
    high: np.ndarray
    at: np.ndarray

    @property
    def convex(self) -> np.ndarray:
        return self.low >= self.problem.inflection

    def points(self, price: np.ndarray, level: np.ndarray) -> np.ndarray:
        r"""Approximate maximisers of $\eta g(x) + (u_i - \nu) x$, (boxes, texts).

        Where g is convex, the best text's probability is the box's point.
        """
        x, slopes = self.problem.table
        below = x <= self.problem.inflection
        wanted = (level[:, None] - self.problem.scores) / price[:, None]
        found = np.interp(wanted, slopes[below][::-1], x[below][::-1])
        top = np.clip(found[:, 0], self.low, self.high)
        found[:, 0] = np.where(self.convex, self.at, top)
        return found

    def values(self, x: np.ndarray) -> Iterator[np.ndarray]:
        """g, g' and g'' at a matrix of probabilities."""
        return (part.reshape(x.shape) for part in values_of(self.problem.g, x.ravel()))


def _bounded(
    problem: _Problem, boxes: np.ndarray, enough: float
) -> tuple[np.ndarray, np.ndarray]:
    """Bound boxes; return the bounds, and the boxes with their best multipliers.

    Tries the multipliers of the model with the best text at the centre of its box or
    at an endpoint, which may be the only feasible point, and those of the best known
    model: if few texts share the rest, no other model determines them.
    """
    low, high, price, level = boxes.T.copy()
    bound = np.full(low.size, np.inf)

    def keep_better(part: _Boxes, *new: np.ndarray) -> None:
        height = _lagrangian_bound(part, *new)
        better = height < bound
        for old, other in zip((bound, price, level), (height, *new), strict=True):
            old[better] = other[better]

    part = _Boxes(problem, low, high, (low + high) / 2)
    keep_better(part, *_improved(part, price, level, enough))
    if (bound > enough).any():
        keep_better(part, *_improved(part, *_binding(part), enough))
    for at in (low, high):
        if (bound > enough).any():
            part = _Boxes(problem, low, high, at)
            keep_better(part, *_improved(part, price, level, enough))
    if problem.found:
        keep_better(part, *(np.full_like(low, value) for value in problem.found))
    return bound, np.column_stack([low, high, price, level])


def _lagrangian_bound(
    boxes: _Boxes, price: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """Upper bound on the quality of feasible models in each box."""
    problem, low, high = boxes.problem, boxes.low, boxes.high
    x = boxes.points(price, level)
    n = problem.scores.size
    costs = level[:, None] - problem.scores
    # The inflection is known up to rounding; allow for texts slightly beyond it.
    least = np.zeros_like(x)
    most = np.full_like(x, min(problem.inflection * (1 + 1e-10), 1.0))
    least[:, 0], most[:, 0] = low, high
    for _ in range(2):  # the tangent's maximum is off in proportion to its slope
        _, slope, curvature = boxes.values(x)
        step = (costs / price[:, None] - slope) / np.minimum(curvature, -EPS)
        x = np.clip(np.nan_to_num(x + step), np.maximum(least, TINY), most)
    value, slope, _ = boxes.values(x)
    value, slope = price[:, None] * value, price[:, None] * slope
    rise = slope - costs
    tops = value - costs * x + np.maximum(rise * (most - x), rise * (least - x))
    ends = np.column_stack([low, high])
    at_ends = price[:, None] * next(boxes.values(ends)) - costs[:, :1] * ends
    tops[boxes.convex, 0] = at_ends[boxes.convex].max(axis=1)
    bound = level - price * problem.least + tops.sum(axis=1)
    sizes = np.abs(level) + price * abs(problem.least) + np.abs(value).sum(axis=1)
    sizes += ((np.abs(costs) + 1) * most + np.abs(slope) * (most - least)).sum(axis=1)
    error = error_of(problem.g)
    return bound + rounding(n, error) * (sizes + np.abs(at_ends).sum(axis=1))


def _level(boxes: _Boxes, price: np.ndarray) -> np.ndarray:
    """Level at which the points of each box sum to 1, or as close as possible."""
    x, slopes = boxes.problem.table
    falling = slopes[(x <= boxes.problem.inflection) & (x > 0)]
    low, high = price * falling[-1] - 1, price * falling[0]
    for _ in range(NUM_HALVINGS):
        middle = (low + high) / 2
        above = boxes.points(price, middle).sum(axis=1) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2


def _binding(boxes: _Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Price at which the points of each box have the required diversity, and level.

    If no price in the range does, the last one tried.
    """
    low, high = (np.full(boxes.low.size, s * boxes.problem.price) for s in PRICES)
    for _ in range(NUM_PRICES):
        middle = np.sqrt(low * high)
        value, _, _ = boxes.values(boxes.points(middle, _level(boxes, middle)))
        diverse = value.sum(axis=1) > boxes.problem.least
        low, high = np.where(diverse, low, middle), np.where(diverse, middle, high)
    return high, _level(boxes, high)


def _improved(
    boxes: _Boxes, price: np.ndarray, level: np.ndarray, enough: float
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the dual function over price and level by damped Newton steps.

    Stops well below `enough`: without a feasible model the dual is unbounded below.
    """
    damping = np.full(price.size, 1e-9)
    best = [price.copy(), level.copy(), *_dual(boxes, price, level)]
    for _ in range(NEWTON_STEPS):
        price, level, _, gradient, hessian = best
        size = np.trace(hessian, axis1=1, axis2=2) + EPS
        matrix = hessian + (damping * size)[:, None, None] * np.eye(2)
        step = np.linalg.solve(matrix, -gradient[..., None])[..., 0]
        factor = np.exp(np.clip(step[:, 0], -2, 2))
        price, level = price * factor, price * factor * (level / price + step[:, 1])
        now = [price, level, *_dual(boxes, price, level)]
        better = (now[2] < best[2]) & (best[2] > enough - 1)
        for old, new in zip(best, now, strict=True):
            old[better] = new[better]
        damping = np.where(better, damping / 10, np.maximum(damping, 1e-4) * 10)
    return best[0], best[1]


def _dual(
    boxes: _Boxes, price: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Dual function at the points, with its gradient and Hessian.

    The variables are $\log \eta$ and $\nu / \eta$: at a point g' is
    $(\nu - u_i) / \eta$.
    """
    problem = boxes.problem
    x = boxes.points(price, level)
    value, _, curvature = boxes.values(x)
    missing = 1 - x.sum(axis=1)
    by_price = price * (value.sum(axis=1) - problem.least) + level * missing
    height = by_price + x @ problem.scores
    free = (x > problem.table[0][1]) & (x < problem.inflection) & (curvature < 0)
    free[:, 0] &= (x[:, 0] > boxes.low) & (x[:, 0] < boxes.high) & ~boxes.convex
    weight = np.where(free, -1 / np.where(free, curvature, 1.0), 0.0)
    first = weight @ problem.scores**2 / price + np.maximum(by_price, 0)
    cross, second = weight @ problem.scores, price * weight.sum(axis=1)
    hessian = np.moveaxis(np.array([[first, cross], [cross, second]]), 2, 0)
    return height, np.stack([by_price, price * missing], axis=1), hessian
