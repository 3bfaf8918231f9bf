"""Branch and bound where the bounds are known, and the local search within a budget."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize

import qdtheory as qd
from qdtheory.bounds.boxes import Box, branch_and_bound, climb_from


def bounded(ends, target):
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


def test_the_top_of_a_cap_is_reached_and_its_budget_kept():
    # With q.q bounded the best q is the centre and a step along the scores.
    scores, budget = np.array([0.0, 0.3, 1.0]), 0.36
    across = scores - scores.mean()
    top = 1 / 3 + across * np.sqrt((budget - 1 / 3) / (across @ across))
    for start in np.eye(3)[0], np.full(3, 1 / 3), np.array([0.2, 0.3, 0.5]):
        q = climb_from(scores, lambda q: (q @ q, 2 * q), budget, start)
        assert q @ q <= budget
        assert q.sum() == pytest.approx(1, abs=1e-15)
        np.testing.assert_allclose(q, top, atol=1e-6)


def test_a_search_that_stops_outside_goes_back_towards_the_start(monkeypatch):
    outside = SimpleNamespace(x=np.array([0.0, 0.0, 1.0]))
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *args, **kwargs: outside)
    start = np.full(3, 1 / 3)
    q = climb_from(outside.x, lambda q: (q @ q, 2 * q), 0.36, start)
    # On the line q.q = 1/3 + 2/3 (1 - share)^2.
    assert q[2] == pytest.approx(1 / 3 + 2 / 3 * np.sqrt(0.04), abs=1e-7)
    assert q @ q <= 0.36


def test_a_local_search_that_fails_leaves_the_start(monkeypatch):
    lost = SimpleNamespace(x=np.full(3, np.nan))
    kernel = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
    p = np.array([0.3, 0.3, 0.4])
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *args, **kwargs: lost)
    found = qd.certify(qd.KernelPair(kernel), p)
    assert found.qdisc == 0
    assert found.q.tolist() == p.tolist()
