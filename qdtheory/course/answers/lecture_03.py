"""Lecture 03."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import require


def is_on_frontier(p: np.ndarray) -> Truth:
    """Five positive probabilities, not all equal, that LL-NRR has on its frontier."""
    require(p.min() > 0, "a probability is 0, expected five positive ones")
    require(np.ptp(p) > 0, "all are equal, which every pair has on its frontier")
    require(np.ptp(p) >= 1e-3, f"they differ by {np.ptp(p):.2g}, expected .001 or more")
    w = -2 * np.ptp(p) / np.ptp(np.log(p))
    gap = np.abs(qd.pareto_optimum(qd.LL_NRR, p, w).q - p).max()
    why = f"below the frontier: the optimum at weight {w:.3g} is {gap:.2g} away"
    require(gap <= 1e-9, f"{why}, and P must be a line in log P")
    return True
