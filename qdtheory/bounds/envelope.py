r"""Certified QDisc where $V = \sum_i g(Q_i)$ with g of any shape, by branch and bound.

If the optimum with g replaced by its concave envelope (`duality`) lies on a chord, the
box is split. Exchanging two probabilities does not change $\sum_i g(Q_i)$, so without
loss of generality the better of two texts has the larger probability: the i-th best has
at most 1 / i, and if it has at least c, so have all better ones.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from qdtheory.bounds import bounds
from qdtheory.bounds.boxes import Box, branch_and_bound, climb_from
from qdtheory.bounds.duality import SeparableProgram, bounded
from qdtheory.bounds.shapes import ends_of, shape_of
from qdtheory.forms import Problem
from qdtheory.support.numbers import EPS

ENVELOPE = "the concave envelope and branch and bound"
# A local search's time grows as N^3: some seconds for 64 texts, minutes for 256.
MAX_TEXTS = 256


def envelope_bounds(
    problem: Problem, start: np.ndarray, tolerance: float = 1e-6, max_steps: int = 1000
) -> bounds.Bounds:
    """Bound QDisc for a diversity that sums g(Q_i), g a formula of any shape."""
    bounds.require_few_texts(problem, MAX_TEXTS)
    p, scores, g = problem.p, problem.scores, problem.g
    # The others have score -inf, hence no mass.
    order = np.argsort(-scores, kind="stable")[: np.isfinite(scores).sum()]
    units = bounds.in_units(scores[order], p[order])
    if units is None:
        upper = bounds.constant_gain(scores[order], p[order])
        return bounds.sealed_bounds(problem, p, upper, ENVELOPE)
    shape = shape_of(g)  # refuses a g without bounds
    values = [g.enclosure(x, x)[0] for x in p.tolist()]
    left_out = g.enclosure(0.0, 0.0)[0] * (p.size - order.size)
    # Rounded down from the diversity of P.
    least = ends_of(sum(values) - left_out)[0]
    program = SeparableProgram(g, units.scores, least, shape)
    # Minus the diversity, in the unit of g without its tilt t: sum (t Q_i - g(Q_i)) is
    # t - V, so that V(Q) >= s reads sum (t Q_i - g(Q_i)) <= t - s.
    budget = (shape.tilt - least) / shape.unit

    def spent(q: np.ndarray) -> tuple[float, np.ndarray]:
        jet = g.jet(q)
        used = (shape.tilt * q.sum() - float(jet.value.sum())) / shape.unit
        return used, (shape.tilt - jet.slope) / shape.unit

    def value(q: np.ndarray) -> float:
        return units.quality + problem.gain(q) / units.unit

    def climb(box: Box) -> np.ndarray:
        climbed = np.zeros(p.size)
        climbed[order] = climb_from(units.scores, spent, budget, box.q)
        return climbed

    best = max([p, start], key=value)
    # The i-th best has at most 1 / i, here not rounded down.
    high = np.nextafter(1 / np.arange(1.0, order.size + 1), 2)
    columns = np.array([p[order], np.full(order.size, 1 / order.size)])
    root, relaxed = (0 * high, np.minimum(high, 1), columns), partial(bounded, program)
    bound, best, splits = branch_and_bound(
        relaxed, root, _halves, climb, value, best, tolerance, max_steps
    )
    return bounds.sealed_bounds(
        problem, best, units.gain(bound), ENVELOPE, steps=splits
    )


def _halves(box: Box) -> Iterator[tuple]:
    """Split a box in two where the envelope is farthest from g."""
    # Below the cut at i, so are all worse texts; above it, so are all better ones.
    i, cut = box.cut()
    place = np.arange(box.q.size)
    high = np.where(place >= i, np.minimum(box.high, cut), box.high)
    yield box.low, high, box.planes
    low = np.where(place <= i, np.maximum(box.low, cut), box.low)
    # At most what the others' least leave of 1, with a little more than its rounding.
    left = 1 - (low.sum() - low) + 4 * place.size * EPS
    high = np.minimum(box.high, left)
    if (low <= high).all():
        yield low, high, box.planes
