"""Lecture 03."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import at_least, near, require


def is_on_frontier(p: np.ndarray) -> bool:
    """Five positive probabilities, not all equal, that LL-NRR has on its frontier."""
    require(p.min() > 0, "a probability is 0, expected five positive ones")
    require(np.ptp(p) > 0, "all are equal, which every pair has on its frontier")
    at_least(np.ptp(p), 1e-3, "they differ by {:.2g}, expected .001 or more")
    w = -2 * np.ptp(p) / np.ptp(np.log(p))
    why = f"below the frontier: the optimum at weight {w:.3g} is {{:.2g}} away"
    best = qd.pareto_optimum(qd.LL_NRR, p, w).q
    return near(best, p, f"{why}, and P must be a line in log P")
