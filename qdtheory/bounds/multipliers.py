r"""The price and the level of the least bound of a box by weak duality.

The dual function (2) of `duality` is the maximum over x in the box of
$$u \cdot x + \eta \Big(\sum_i g(x_i) - s\Big) + \nu \Big(1 - \sum_i x_i\Big),
\qquad (1)$$
planes in $(\eta, \nu)$: it is convex, and is minimised by cutting planes. Those of a
few x bound it from below; the maximisers at their minimum are the next x. The
multipliers of the planes mix the x to the optimum with g replaced by its concave
envelope.

If g is concave up to c and convex beyond, some optimum has at most one probability
above c, that of a best text: of two such texts, moving mass from the one of smaller
probability, hence score, to the other until the former is at c lowers neither quality
nor $\sum_i g(Q_i)$. So boxes of the best text's probability are enough.
"""

from itertools import pairwise

import numpy as np

from qdtheory.bounds.boxes import Box
from qdtheory.bounds.duality import SeparableProgram, rounding
from qdtheory.bounds.shapes import two_pieces
from qdtheory.functions import Function
from qdtheory.support.numbers import TextVector

# Of x in a box, as the linear program grows with them.
MAX_COLUMNS = 200
# Boxes of the best text's probability that are tried.
MAX_BOXES = 64
# Largest price of diversity, for scores and g of range 1: keeps the bound of a box
# without a feasible Q finite, but too low to matter.
MAX_PRICE = 1e6
# How far a linear program's solution may be from feasible, below the default of 1e-7.
FEASIBLE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


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
    at_zero = float(g.compiled_jet(np.zeros(1)).value[0])
    least = least - (scores.size - finite.size) * at_zero
    scores = 1 + np.sort((finite - best) / unit)[::-1]
    program = SeparableProgram(g, scores, least, two_pieces(g, inflection))
    if multipliers:
        multipliers = multipliers[0] / unit, 1 + (multipliers[1] - best) / unit
    target = 1 + (target - best) / unit
    height = best + unit * (
        _greatest_bound(program, inflection, target, multipliers) - 1
    )
    return float(height + rounding(1) * (abs(best) + abs(height) + unit))


def _greatest_bound(
    program: SeparableProgram, inflection: float, target: float, pair: tuple | None
) -> float:
    """The greatest bound of boxes of the best text; `pair` is a price and a level."""
    n = program.scores.size
    # The inflection is known up to rounding; allow for texts slightly beyond it.
    low, high = np.zeros(n), np.full(n, min(inflection * (1 + 1e-10), 1.0))
    ends = [0.0, *np.geomspace(inflection, 1.0, 9)]
    boxes, greatest, tried = [*pairwise(ends)], -np.inf, 0
    while boxes:
        low[0], high[0] = box = boxes.pop()
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

    The part is the box's ends and rows of x to begin with. The box keeps the x of (1)
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
    """Minimise the maximum of the planes (1) over the multipliers.

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
