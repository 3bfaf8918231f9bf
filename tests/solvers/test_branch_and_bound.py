"""Branch and bound on a function of one variable, whose bounds are known."""

import numpy as np
import pytest

from qdtheory.solvers.branch_and_bound import Box, branch_and_bound


def bounded(ends, enough):
    """The greatest of x (1 - x) on an interval, from above by its ends and slope 1."""
    (low, high), ends = ends, np.array(ends)
    at = ends.mean(keepdims=True)
    bound = float((ends * (1 - ends)).max() + (high - low) / 2)
    return Box(np.array([low]), np.array([high]), bound, at, np.ones(1), at, ends)


def halves(box):
    _, cut = box.cut()
    yield box.low[0], cut
    yield cut, box.high[0]


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
def test_the_bound_closes_on_the_greatest_value(tolerance):
    def value(q):
        return float(q[0] * (1 - q[0]))

    climbed = []

    def climb(box):
        climbed.append(box)
        return box.q

    start = bounded, (0.0, 1.0), halves, climb, value, np.zeros(1), tolerance
    bound, best, splits = branch_and_bound(*start, 1000)
    assert value(best) <= 0.25 <= bound <= value(best) + tolerance
    assert len(climbed) == int(np.log2(splits))
    wide, _, once = branch_and_bound(*start, 1)
    assert once == 1
    assert wide > bound


def test_a_cut_is_not_in_the_outer_tenths():
    gaps, at = np.array([0.1, 0.3]), np.array([0.5, 0.001])
    box = Box(np.zeros(2), np.ones(2), 1.0, at, gaps, at, at)
    assert box.cut() == (1, 0.1)
