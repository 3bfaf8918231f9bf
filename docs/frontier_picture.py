"""Draw static/frontier.svg, the README's picture: `python docs/frontier_picture.py`.

One real distribution under two pairs of metrics. The frontier on the left is exact. On
the right it is the best that a search found: what it shows above the star is above it.
"""

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import qdtheory as qd
from qdtheory.plotting import STYLE, plot_frontier, plot_model

PICTURE = Path(__file__).parent / "static/frontier.svg"


def frontiers():
    """Of each pair: its frontier, and U and V of the real distribution."""
    space = qd.TextSpace(vocab_size=4, lengths=3)
    p = qd.oracle(space, seed=0)
    for pair, num_points in ((qd.CR_NRR, 400), (qd.BleuPair(space, 2, 2, 2), 20)):
        curve = qd.pareto_frontier(pair, p, num_points)
        yield curve, float(pair.quality(p, p)), float(pair.diversity(p))


def draw(ax, curve, u, v, width, height):
    """A frontier round the real distribution; the models that beat it are shaded."""
    quality, diversity = np.asarray(curve.quality), np.asarray(curve.diversity)
    order = np.argsort(quality)
    x = np.linspace(u, u + width, 500)
    y = np.interp(x, quality[order], diversity[order])
    if y[0] > v + 1e-3 * height:
        ax.fill_between(x, v, y, where=y > v, color="C1", alpha=0.4, linewidth=0)
        ax.annotate(
            "better in both",
            (u + 0.1 * width, v + 0.1 * height),
            (u + 0.32 * width, v + 0.5 * height),
            arrowprops={"arrowstyle": "-", "color": "0.3"},
        )
    plot_frontier(curve, ax=ax, linewidth=2.4, label="best models")
    plot_model(u, v, ax=ax, markersize=17, label="the real distribution")
    ax.set(xlim=(u - width, u + width), ylim=(v - height, v + height))
    ax.set(xticks=[], yticks=[])


def main():
    """Compute, draw, write."""
    jax.config.update("jax_enable_x64", True)
    plt.style.use(STYLE)
    plt.rcParams.update({"svg.hashsalt": "qdtheory", "axes.titlesize": 12})
    # A ground of its own: it reads on a light page and on a dark one.
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), facecolor="white")
    (coverage, *at), (bleu, *bleu_at) = frontiers()
    draw(left, coverage, *at, 0.04, 0.08)
    draw(right, bleu, *bleu_at, 0.12, 0.12)
    left.set(title="Coverage and repetition: unbeaten")
    left.set(xlabel="quality: coverage rate", ylabel="diversity: minus repetition rate")
    right.set(title="BLEU and Self-BLEU: beaten")
    right.set(xlabel="quality: BLEU-2", ylabel="diversity: minus Self-BLEU-2")
    left.legend(loc="lower left")
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
