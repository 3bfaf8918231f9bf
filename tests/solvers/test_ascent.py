"""Local ascent: the top of a cap, and a solver that is lost."""

import numpy as np
import pytest
import scipy.optimize

import qdtheory as qd
from qdtheory.qdisc.quadratic import quadratic_interval
from qdtheory.solvers.ascent import climb_from


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


def test_a_local_search_that_fails_leaves_the_start(monkeypatch):
    class Lost:
        x = np.full(3, np.nan)

    kernel = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
    p = np.array([0.3, 0.3, 0.4])
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *args, **kwargs: Lost())
    found = quadratic_interval(qd.KernelPair(kernel), p)
    assert found.qdisc == 0
    assert found.q.tolist() == p.tolist()
