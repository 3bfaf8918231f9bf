"""Figures show what they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.plotting import plot_plane

P = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("pair", [qd.LL_SE, qd.LL_NRR], ids=lambda pair: pair.name)
def test_the_plane_has_the_star_in_the_middle_and_the_frontier_at_two_corners(pair):
    curve = qd.pareto_frontier(pair, P)
    ax = plot_plane(pair, P, curve, width=0.1, ax=plt.figure().gca())
    line, star = ax.lines
    u, v = float(pair.quality(P, P)), float(pair.diversity(P))
    assert (star.get_xdata(), star.get_ydata()) == (u, v)
    assert sum(ax.get_xlim()) / 2 == pytest.approx(u, abs=1e-12)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert np.interp(left, *line.get_data()) == pytest.approx(high, abs=1e-12)
    assert np.interp(right, *line.get_data()) == pytest.approx(low, abs=1e-12)
    assert low < v < high


def test_without_a_width_the_plane_shows_the_whole_frontier():
    curve = qd.pareto_frontier(qd.CR_NRR, P)
    ax = plot_plane(qd.CR_NRR, P, curve, ax=plt.figure().gca(), label="best")
    assert ax.get_xlim()[0] < curve.quality[0] < curve.quality[-1] < ax.get_xlim()[1]
    labels = [line.get_label() for line in ax.lines]
    assert labels == ["best", "real distribution"]
