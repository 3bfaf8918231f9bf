"""Figures of what the other modules compute: data in, matplotlib Axes out.

Nothing is solved, shown or saved here, and sizes are the caller's. Where no `ax` is
given, the current axes are drawn on; other arguments are passed to `Axes.plot`. The
style is `plt.style.use(qdtheory.plotting.STYLE)`.
"""

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.support.numbers import PerText
from qdtheory.support.packages import required

with required("plotting", "plot"):
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

# Figures need no solver: these are loaded by whoever has a pair or a frontier.
if TYPE_CHECKING:
    import qdtheory.frontier
    import qdtheory.pairs

STYLE = str(files("qdtheory") / "qdtheory.mplstyle")


def plot_frontier(
    frontier: "qdtheory.frontier.ParetoFrontier",
    *,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw a Pareto frontier in the plane of quality and diversity.

    Points of infinite quality, the isolated ones before a jump, are left out.

    Example:
        >>> from qdtheory import pareto_frontier
        >>> from qdtheory.pairs import CR_NRR
        >>> frontier = pareto_frontier(CR_NRR, np.array([0.6, 0.3, 0.1]))
        >>> ax = plot_frontier(frontier, ax=plt.figure().gca())
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('quality U', 'diversity V')
    """
    ax = ax or plt.gca()
    quality, diversity = np.asarray(frontier.quality), np.asarray(frontier.diversity)
    drawn = np.isfinite(quality)
    ax.plot(quality[drawn], diversity[drawn], **kwargs)
    ax.set(xlabel="quality U", ylabel="diversity V")
    return ax


def plot_model(
    quality: Float[ArrayLike, "*models"],
    diversity: Float[ArrayLike, "*models"],
    *,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Mark one or several models in the plane of quality and diversity.

    Args:
        quality: U, a scalar or a vector.
        diversity: V, of the same shape.
        ax: where to draw; the current axes by default.
        **kwargs: passed to `Axes.plot`; a black star by default, the sign of the
            real distribution throughout the notebooks.

    Example:
        >>> u, v = np.array([0.4, 0.5]), np.array([-0.3, -0.4])
        >>> ax = plot_model(u, v, ax=plt.figure().gca())
        >>> [line.get_marker() for line in ax.lines]
        ['*']
    """
    ax = ax or plt.gca()
    style = {"linestyle": "none", "marker": "*", "markersize": 14, "color": "black"}
    ax.plot(np.atleast_1d(quality), np.atleast_1d(diversity), **(style | kwargs))
    ax.set(xlabel="quality U", ylabel="diversity V")
    return ax


def plot_plane(
    pair: "qdtheory.pairs.Pair",
    p: PerText,
    frontier: "qdtheory.frontier.ParetoFrontier",
    *,
    width: float | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw a pair's frontier and the real distribution as a star.

    Args:
        pair: metrics, for the place of the star.
        p: real distribution, shape (N,).
        frontier: of this pair and p, from `pareto_frontier`.
        width: zoom in to qualities at most this far from that of p, and to the
            frontier's diversities there; None draws the whole frontier.
        ax: where to draw; the current axes by default.
        **kwargs: passed to `plot_frontier`.

    Example:
        >>> from qdtheory import CR_NRR, pareto_frontier
        >>> p = np.array([0.6, 0.3, 0.1])
        >>> curve = pareto_frontier(CR_NRR, p)
        >>> ax = plot_plane(CR_NRR, p, curve, width=0.1, ax=plt.figure().gca())
        >>> [round(float(x), 2) for x in ax.get_xlim()]
        [0.36, 0.56]
    """
    u, v = float(pair.quality(p, p)), float(pair.diversity(p))
    ax = plot_frontier(frontier, ax=ax, **kwargs)
    plot_model(u, v, ax=ax, label="real distribution", zorder=3)
    if width is not None:
        quality, diversity = map(np.asarray, (frontier.quality, frontier.diversity))
        low, high = np.interp([u + width, u - width], quality, diversity)
        ax.set(xlim=(u - width, u + width), ylim=(low, high))
    return ax


def plot_sorted_probabilities(
    p: PerText, *, ax: Axes | None = None, **kwargs: Any
) -> Axes:
    """Draw the log-probabilities of a distribution in descending order.

    Texts of probability 0 are left out.

    References:
        Li et al. 2020, figure 7.

    Example:
        >>> p = np.array([0.25, 0.0, 0.75])
        >>> ax = plot_sorted_probabilities(p, ax=plt.figure().gca())
        >>> np.exp(ax.lines[0].get_ydata()).round(9).tolist()
        [0.75, 0.25]
    """
    ax = ax or plt.gca()
    descending = np.sort(np.asarray(p))[::-1]
    positive = descending[descending > 0]
    ax.plot(np.arange(1, positive.size + 1), np.log(positive), **kwargs)
    ax.set(xlabel="rank of the text", ylabel="log-probability (nats)")
    return ax
