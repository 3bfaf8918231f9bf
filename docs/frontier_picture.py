"""Draw static/frontier.svg and static/social.png: `python docs/frontier_picture.py`.

One real distribution under two pairs of metrics. The frontier on the left is exact. On
the right it is the best that a search found: what it shows above the star is above it.
The README shows both planes; other sites show the second beside a link to this one.
"""

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import qdtheory as qd

STATIC = Path(__file__).parent / "static"
STYLE = {
    "svg.fonttype": "none",  # letters stay letters
    "svg.hashsalt": "qdtheory",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "#fffdf8",  # reads on a light page and on a dark one
    "axes.facecolor": "#fffdf8",
}


def planes():
    """Of each pair: pair, P, frontier, reach, where words are, title, and sides."""
    space = qd.TextSpace(vocab_size=4, lengths=3)
    p = qd.oracle(space, seed=0)
    pair, sides = qd.CR_NRR, ("coverage rate", "minus repetition")
    exact, title = qd.pareto_frontier(pair, p, 400), "Coverage and repetition: unbeaten"
    yield pair, p, exact, (0.04, 0.08), 0.4, title, sides
    pair, sides = qd.BleuPair(space, 2, 2, 2), ("BLEU-2", "minus Self-BLEU-2")
    found, title = qd.search.search_frontier(pair, p, 20), "BLEU and Self-BLEU: beaten"
    yield pair, p, found, (0.09, 0.09), 0.05, title, sides


def draw(ax, pair, p, curve, reach, words, title, sides):
    """One plane: the frontier, the real distribution, and what is better in both."""
    u, v = float(pair.quality(p, p)), float(pair.diversity(p))
    order = np.argsort(np.asarray(curve.quality))
    x, y = np.asarray(curve.quality)[order], np.asarray(curve.diversity)[order]
    ax.plot(x, y, color="#0072b2", linewidth=2.5)
    ax.plot(u, v, "k*", markersize=15)
    right = np.linspace(u, u + reach[0], 81)
    top = np.interp(right, x, y)
    if top[0] > v + reach[1] / 50:
        ax.fill_between(right, v, top, where=top > v, color="#d55e00", alpha=0.35)
        inside, line = (u + 0.17 * reach[0], v + 0.12 * reach[1]), {"arrowstyle": "-"}
        ax.annotate(
            "better in both", inside, (0.64, 0.76), "data", "axes fraction", line
        )
    words_below = {"ha": "right", "va": "top", "transform": ax.transAxes}
    ax.text(0.46, 0.47, "the real\ndistribution", **words_below)
    ax.text(words, 0.77, "the best models", color="#0072b2", transform=ax.transAxes)
    ax.set(xlim=(u - reach[0], u + reach[0]), ylim=(v - reach[1], v + reach[1]))
    ax.set(title=title, xticks=[], yticks=[])
    ax.set(xlabel=f"quality: {sides[0]} →", ylabel=f"diversity: {sides[1]} →")


def main():
    """Compute, draw, write."""
    jax.config.update("jax_enable_x64", True)
    drawn = [*planes()]
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.2), layout="constrained")
        for ax, plane in zip(axes, drawn, strict=True):
            draw(ax, *plane)
        figure.savefig(STATIC / "frontier.svg", metadata={"Date": None})
        plt.style.use({"font.size": 9, "axes.titlesize": 10.5})
        card = plt.figure(figsize=(6, 3.15))
        draw(card.add_axes((0.535, 0.17, 0.44, 0.64)), *drawn[1])
        said = "Can a model beat\nthe real distribution?"
        card.text(0.05, 0.55, said, size=16.5, family="serif")
        said = "Quality and diversity of generated\ntext, computed exactly"
        card.text(0.05, 0.36, said, size=9, family="serif", color="#4a525b")
        card.savefig(STATIC / "social.png", dpi=200)


if __name__ == "__main__":
    main()
