"""Best-first branch and bound over boxes, and the local searches in between."""

from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from qdtheory.support.numbers import MARGIN


@dataclass(frozen=True)
class Box:
    """A box of the variables, and the solution of the relaxation that bounds it."""

    low: np.ndarray
    high: np.ndarray
    bound: float  # on the objective in the box
    at: np.ndarray  # the variables at the relaxation's optimum
    gaps: np.ndarray  # by how much the relaxation is off at each of them
    q: np.ndarray  # the distribution at the optimum
    planes: np.ndarray  # the relaxation's rows, from which those of the halves start

    def cut(self) -> tuple[int, float]:
        """Split at the variable of largest gap, at a point not in the outer tenths."""
        i = int(self.gaps.argmax())
        # At the optimum, as an envelope is exact at the ends of its box. Each half
        # loses a tenth of the width at least, so that widths, hence gaps, tend to 0.
        tenth = (self.high[i] - self.low[i]) / 10
        inside = self.low[i] + tenth, self.high[i] - tenth
        return i, float(np.clip(self.at[i], *inside))


def branch_and_bound(
    bounded: Callable[[tuple, float], Box],
    root: tuple,
    halves: Callable[[Box], Iterator[tuple]],
    climb: Callable[[Box], np.ndarray],
    value: Callable[[np.ndarray], float],
    best: np.ndarray,
    tolerance: float,
    max_splits: int,
) -> tuple[float, np.ndarray, int]:
    """Split the box of the largest bound until it is close to the best value known.

    A box is bounded only as far as a target; `root` and `halves` give what `bounded`
    takes. Returns the largest bound left, the best distribution and the splits.
    """
    splits, target = 0, value(best) + tolerance
    # The boxes cover the root at all times, so that the largest of their bounds bounds
    # the objective everywhere; ascending, so that it is the last.
    boxes = [bounded(root, target)]
    while boxes[-1].bound > target and splits < max_splits:
        box = boxes.pop()
        splits += 1
        # A local search costs as much as many splits: run one at split 2, 4, 8, ...
        if splits > 1 and splits & (splits - 1) == 0:
            best = max([best, climb(box)], key=value)
            target = value(best) + tolerance
        # A half whose bound is below the target stays in the list, but is never split.
        for half in halves(box):
            insort(boxes, bounded(half, target), key=lambda box: box.bound)
    return boxes[-1].bound, best, splits


def climb_from(
    scores: np.ndarray,
    spent: Callable[[np.ndarray], tuple[float, np.ndarray]],
    budget: float,
    start: np.ndarray,
) -> np.ndarray:
    """Maximise scores . q locally over distributions q with spent(q) <= budget."""
    from scipy.optimize import brentq, minimize  # late: slow to import

    # Inside by the margin: what rounding adds to the constraint is far less.
    limit = budget - MARGIN
    normalised = {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like}
    feasible = {"type": "ineq", "fun": lambda q: limit - spent(q)[0]}
    feasible["jac"] = lambda q: -spent(q)[1]
    solution = minimize(
        lambda q: -q @ scores,
        start,
        jac=lambda q: -scores,
        constraints=[normalised, feasible],
        bounds=[(0, 1)] * start.size,
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-13},
    )
    # Bounds and the sum hold up to the solver's tolerance; make them exact.
    q = np.clip(solution.x, 0, 1)
    if not q.sum() > 0:  # it failed, with NaN perhaps
        return start
    q = q / q.sum()

    def slack(share: float) -> float:
        return limit - spent(q + share * (start - q))[0]

    # Where it stops early it is a little outside: go back towards the start.
    return q + brentq(slack, 0, 1) * (start - q) if slack(0) < 0 < slack(1) else q
