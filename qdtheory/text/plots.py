"""Figures of reports; their method `plot` draws these."""

from itertools import cycle
from typing import Any

from qdtheory.support.packages import required

with required("plotting", "plot"):
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

# As `qdtheory.plotting.STYLE`, by its name.
LOOK = "qdtheory.qdtheory"


def plot_report(report: Any, n: int | None = None) -> Figure:
    """Draw candidates in the planes of CR and NRR and of BLEU and Self-BLEU.

    The bars are the intervals, the star is real text. Self-BLEU grows downwards, so
    that more quality and more diversity are up and to the right in both planes.

    Args:
        report: from `qdtheory.text.evaluate`.
        n: the order of the n-grams; 2 by default, if the report has it.

    Raises:
        ValueError: the report has no such order, or no references.

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
    n = min(2, max(orders, default=2)) if n is None else n
    if n not in orders:
        raise ValueError(f"n: expected an order of the report, {orders}, got {n}")
    figure, (first, second) = plt.subplots(1, 2, figsize=(9, 3.8))
    for name, shape in zip(report, cycle("os^DvPX"), strict=False):
        scores = report[name]
        marker, size = ("*", 14) if name == report.real else (shape, 6)
        for ax, quality, diversity in (
            (first, scores[f"CR-{n}"], scores[f"NRR-{n}"]),
            (second, scores[f"BLEU-{n}"], scores[f"Self-BLEU-{n}"]),
        ):
            x, y = quality.value, diversity.value
            xerr = [[x - quality.low], [quality.high - x]]
            yerr = [[y - diversity.low], [diversity.high - y]]
            ax.errorbar(x, y, yerr, xerr, fmt=marker, ms=size, label=name)
    first.set(xlabel=f"quality, CR-{n}", ylabel=f"diversity, NRR-{n}")
    second.set(xlabel=f"quality, BLEU-{n}")
    second.set(ylabel=f"Self-BLEU-{n}, less is more diverse")
    second.invert_yaxis()
    first.legend()
    return figure
