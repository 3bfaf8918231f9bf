"""Figures of what the other modules compute: data in, matplotlib Axes out.

Nothing is solved, shown or saved here, and sizes are the caller's. Where no `ax` is
given, the current axes are drawn on; other arguments are passed to `Axes.plot`. The
style is `plt.style.use(qdtheory.plotting.STYLE)`.
"""

from importlib.resources import files
from itertools import cycle
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.pairs.base import Pair
from qdtheory.theory.frontier import ParetoFrontier
from qdtheory.world.numbers import PerText
from qdtheory.world.packages import required

with required("plotting", "plot"):
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = str(files("qdtheory") / "qdtheory.mplstyle")


def plot_frontier(
    frontier: ParetoFrontier, *, ax: Axes | None = None, **kwargs: Any
) -> Axes:
    """Draw a Pareto frontier in the plane of quality and diversity.

    Points of infinite quality, the isolated ones before a jump, are left out.

    Example:
        >>> from qdtheory import pareto_frontier
        >>> from qdtheory.pairs.named import CR_NRR
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
    pair: Pair,
    p: PerText,
    frontier: ParetoFrontier,
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


def plot_report(report: Any, n: int | None = None) -> Figure:
    """Draw candidates in the planes of CR and NRR and of BLEU and Self-BLEU.

    The bars are the intervals. Self-BLEU grows downwards, so that better is up and to
    the right in both planes.

    Args:
        report: from `qdtheory.text.evaluate`.
        n: the order of the n-grams; the highest of the report by default.

    Raises:
        ValueError: the report has no such order.

    Example:
        >>> from qdtheory.text import evaluate
        >>> real = ["a b c", "b c d", "a b d", "c d a"] * 3
        >>> few = {"copy": real[:8], "other": ["a b", "c d"] * 4}
        >>> figure = plot_report(evaluate(few, real, max_order=2))
        >>> [ax.get_ylabel() for ax in figure.axes]
        ['diversity, NRR-2', 'Self-BLEU-2, less is more diverse']
        >>> plt.close(figure)
    """
    orders = [int(name[3:]) for name in report.metrics if name.startswith("CR-")]
    n = max(orders) if n is None else n
    if n not in orders:
        raise ValueError(f"n: expected an order of the report, {orders}, got {n}")
    figure, (first, second) = plt.subplots(1, 2, figsize=(9, 3.8))
    for name, marker in zip(report, cycle("os^DvPX"), strict=False):
        scores = report[name]
        for ax, quality, diversity in (
            (first, scores[f"CR-{n}"], scores[f"NRR-{n}"]),
            (second, scores[f"BLEU-{n}"], scores[f"Self-BLEU-{n}"]),
        ):
            x, y = quality.value, diversity.value
            xerr = [[x - quality.low], [quality.high - x]]
            yerr = [[y - diversity.low], [diversity.high - y]]
            ax.errorbar(x, y, yerr, xerr, fmt=marker, linestyle="none", label=name)
    first.set(xlabel=f"quality, CR-{n}", ylabel=f"diversity, NRR-{n}")
    second.set(xlabel=f"quality, BLEU-{n}")
    second.set(ylabel=f"Self-BLEU-{n}, less is more diverse")
    second.invert_yaxis()
    first.legend()
    return figure


def plot_diagnosis(diagnosis: Any) -> Figure:
    """Draw lots of real text, and the witness, in standard deviations of a lot.

    Where the errors of quality and diversity cancel, the lots lie on the dotted line.

    Args:
        diagnosis: from `qdtheory.text.doctor`.
    """
    figure, ax = plt.subplots(figsize=(5, 4.5))
    lots, spread = diagnosis.lots, diagnosis.lots.std(axis=0, ddof=1)
    x, y = ((lots - lots.mean(axis=0)) / spread).T
    ax.axline((0, 0), slope=-1, linestyle=":", color="gray")
    ax.plot(x, y, "o", label=f"{len(lots)} lots of {diagnosis.lot} real texts")
    gains = diagnosis.quality_gain, diagnosis.diversity_gain
    (a, b), (da, db) = (
        [getattr(gain, name) / size for gain, size in zip(gains, spread)]
        for name in ("value", "standard_error")
    )
    if diagnosis.num_blocks > 1:
        ax.errorbar(a, b, db, da, fmt="*", label="the witness, real sentences too")
    unit = "in standard deviations"
    ax.set(xlabel=f"quality by {diagnosis.quality}, {unit}")
    ax.set(ylabel=f"diversity by {diagnosis.diversity}, {unit}")
    figure.legend(loc="outside upper center")
    return figure
