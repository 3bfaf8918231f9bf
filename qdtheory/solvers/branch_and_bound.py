"""Best-first branch and bound over boxes, with local searches in between."""

from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Box:
    """A box, and the solution of the relaxation that bounds it.

    Attributes:
        low: lower limits of the variables.
        high: upper limits of the variables.
        bound: upper bound on the objective in the box.
        at: the variables at the relaxation's optimum.
        gaps: by how much the relaxation is off at each of them.
        q: the distribution at the optimum.
        planes: the relaxation's rows, from which those of the halves start.
    """

    low: np.ndarray
    high: np.ndarray
    bound: float
    at: np.ndarray
    gaps: np.ndarray
    q: np.ndarray
    planes: np.ndarray

    def cut(self) -> tuple[int, float]:
        """Choose where to split the box.

        Returns:
            The variable of largest gap, and the point, not in the outer tenths.
        """
        i = int(self.gaps.argmax())
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

    Args:
        bounded: bounds a box, as far as a target.
        root: what it takes for the box that holds every solution.
        halves: what it takes for each part of a box.
        climb: a local search from the optimum of a box's relaxation.
        value: the objective of a distribution; minus infinity if it is infeasible.
        best: a feasible distribution.
        tolerance: distance from its value at which to stop.
        max_splits: number of splits at which to stop.

    Returns:
        The largest bound left, the best distribution found and the number of splits.
    """
    splits, enough = 0, value(best) + tolerance
    boxes = [bounded(root, enough)]
    while boxes[-1].bound > enough and splits < max_splits:
        box = boxes.pop()
        splits += 1
        # A local search costs as much as many splits: run one at split 2, 4, 8, ...
        if splits > 1 and splits & (splits - 1) == 0:
            best = max([best, climb(box)], key=value)
            enough = value(best) + tolerance
        for half in halves(box):
            insort(boxes, bounded(half, enough), key=lambda box: box.bound)
    return boxes[-1].bound, best, splits
