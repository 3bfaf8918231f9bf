"""Figures show what they are given: finite points, stars, sorted probabilities."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import qdtheory as qd
from qdtheory import plotting

P = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.fixture
def ax():
    figure = plt.figure()
    yield figure.gca()
    plt.close(figure)


def test_a_frontier_is_drawn_without_its_points_of_infinite_quality(ax):
    frontier = qd.pareto_frontier(qd.LL_SE, np.array([0.5, 0.3, 0.2, 0.0]), 9)
    assert frontier.quality[0] == -np.inf
    plotting.plot_frontier(frontier, ax=ax, label="LL-SE")
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), frontier.quality[1:])
    np.testing.assert_array_equal(line.get_ydata(), frontier.diversity[1:])
    assert line.get_label() == "LL-SE"


def test_models_are_stars_unless_told_otherwise(ax):
    plotting.plot_model(0.5, -0.4, ax=ax)
    plotting.plot_model(np.array([0.4, 0.5]), np.array([-0.3, -0.4]), ax=ax, marker=".")
    assert [line.get_marker() for line in ax.lines] == ["*", "."]
    assert [len(line.get_xdata()) for line in ax.lines] == [1, 2]
    assert all(line.get_linestyle() == "None" for line in ax.lines)


def test_probabilities_fall_and_zeros_are_left_out(ax):
    p = np.array([0.25, 0.0, 0.6, 0.15])
    plotting.plot_sorted_probabilities(p, ax=ax)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(line.get_ydata(), np.log([0.6, 0.25, 0.15]))


def test_the_current_axes_are_the_default(ax):
    plt.sca(ax)
    assert plotting.plot_model(0.0, 0.0) is ax


def test_the_style_is_one_that_matplotlib_reads():
    with plt.style.context(plotting.STYLE):
        assert plt.rcParams["figure.dpi"] > 0


@pytest.mark.parametrize("pair", [qd.LL_SE, qd.LL_NRR], ids=lambda pair: pair.name)
def test_the_plane_has_the_star_in_the_middle_and_the_frontier_at_two_corners(pair, ax):
    curve = qd.pareto_frontier(pair, P)
    plotting.plot_plane(pair, P, curve, width=0.1, ax=ax)
    line, star = ax.lines
    u, v = float(pair.quality(P, P)), float(pair.diversity(P))
    assert (star.get_xdata(), star.get_ydata()) == (u, v)
    assert sum(ax.get_xlim()) / 2 == pytest.approx(u, abs=1e-12)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert np.interp(left, *line.get_data()) == pytest.approx(high, abs=1e-12)
    assert np.interp(right, *line.get_data()) == pytest.approx(low, abs=1e-12)
    assert low < v < high


def test_without_a_width_the_plane_shows_the_whole_frontier(ax):
    curve = qd.pareto_frontier(qd.CR_NRR, P)
    plotting.plot_plane(qd.CR_NRR, P, curve, ax=ax, label="best")
    assert ax.get_xlim()[0] < curve.quality[0] < curve.quality[-1] < ax.get_xlim()[1]
    labels = [line.get_label() for line in ax.lines]
    assert labels == ["best", "real distribution"]
