"""Figures show what they are given: finite points, stars, sorted probabilities."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import qdtheory as qd
from qdtheory import plotting


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
