"""Draw static/lots.svg, the first page's first picture: `python docs/lots_picture.py`.

120 lots of real sentences under two pairs of metrics, from two_errors.csv. Each lot is
a dot at its quality and diversity, in standard deviations from the mean.
"""

import sys
from pathlib import Path

import numpy as np
from frontier_picture import (
    BOTTOM,
    LEFT,
    ORANGE,
    RIGHT,
    STATIC,
    TOP,
    labelled,
    svg,
    text,
)

DATA = Path(__file__).parents[1] / "notebooks/data"
PICTURE = STATIC / "lots.svg"
REACH = 3.6  # standard deviations to each side
SEEN = (
    "Two plots of diversity against quality of the same 120 lots of real sentences."
    " Under coverage and repetition the dots lie on a falling line. Under BLEU and"
    " Self-BLEU they form a cloud, and a dashed corner marks the lots that are lucky in"
    " both."
)


def lots(quality, diversity):
    """Both metrics of each lot of 500 sentences, in standard deviations."""
    sys.path.insert(0, str(DATA))
    from tables import read

    rows = read("two_errors.csv")
    both = np.array(
        [
            [float(row[quality]), float(row[diversity])]
            for row in rows
            if (row["kind"], row["size"]) == ("lots", "500")
        ]
    )
    return (both - both.mean(axis=0)) / both.std(axis=0, ddof=1)


def panel(dots, title, quality, diversity):
    """One plane: a dot for each lot, and how they are correlated."""
    x0, y0 = (LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2
    across, up = (RIGHT - LEFT) / 2 / REACH, (BOTTOM - TOP) / 2 / REACH
    rho = f"{np.corrcoef(dots.T)[0, 1]:.2f}".replace("-", "&#8722;")
    axes = f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"
    middle = f"M{x0} {TOP}V{BOTTOM}M{LEFT} {y0}H{RIGHT}"
    shown = [
        f'<path d="{axes}" fill="none" stroke="currentColor" opacity=".5"/>',
        f'<path d="{middle}" fill="none" stroke="currentColor" opacity=".4"'
        ' stroke-dasharray="4 4"/>',
        *(
            f'<circle cx="{x0 + x * across:.1f}" cy="{y0 - y * up:.1f}" r="3.2"'
            f' style="fill: {ORANGE if min(x, y) > 0 else "currentColor"}"'
            ' fill-opacity=".7"/>'
            for x, y in dots.tolist()
        ),
        text(RIGHT - 4, TOP + 14, "lucky in both", text_anchor="end"),
        text(LEFT + 10, BOTTOM - 12, f"correlation {rho}"),
    ]
    return labelled(shown, title, quality, diversity)


def panels():
    """The two planes: a pair that is compatible, and one that is not."""
    yield panel(
        *(lots("CR-2", "NRR-2"), "Coverage and repetition: a line"),
        *("coverage rate", "minus repetition"),
    )
    yield panel(
        *(lots("BLEU-2", "Self-BLEU-2"), "BLEU and Self-BLEU: a cloud"),
        *("BLEU-2", "minus Self-BLEU-2"),
    )


def main():
    """Draw, write."""
    ground = '<rect width="100%" height="100%" fill="#fffdf8"/>\n'
    more = {"color": "#22262b", "role": "img", "aria-label": SEEN}
    PICTURE.write_text(svg(panels(), ground, **more), encoding="utf-8")


if __name__ == "__main__":
    main()
