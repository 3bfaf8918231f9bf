"""Draw static/frontier.svg and static/social.png: `python docs/frontier_picture.py`.

One real distribution under two pairs of metrics. The frontier on the left is exact. On
the right it is the best that a search found: what it shows above the star is above it.
The README shows the picture whole, the first page its two panels, side by side or one
below the other, in the colours of the page. Chromium takes the second picture, which
other sites show beside a link to this one.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np

import qdtheory as qd

STATIC = Path(__file__).parent / "static"
PICTURE = STATIC / "frontier.svg"
SOCIAL = STATIC / "social.png"

WIDTH, HEIGHT = 360, 300  # of a panel; its text is 14 high, 10 points on a phone
LEFT, RIGHT, TOP, BOTTOM = 30, 352, 38, 268
BLUE = "var(--picture-frontier, #0072b2)"
ORANGE = "var(--picture-better, #d55e00)"
SEEN = (
    "Two plots of diversity against quality, each with the frontier of the best models"
    " and a star for the same real distribution. Under coverage and repetition the star"
    " is on the frontier. Under BLEU and Self-BLEU it is below, and a shaded corner"
    " marks the models that are better in both."
)


def frontiers():
    """Of each pair: its frontier, and U and V of the real distribution."""
    space = qd.TextSpace(vocab_size=4, lengths=3)
    p = qd.oracle(space, seed=0)
    for pair, num_points in ((qd.CR_NRR, 400), (qd.BleuPair(space, 2, 2, 2), 20)):
        curve = qd.pareto_frontier(pair, p, num_points)
        order = np.argsort(np.asarray(curve.quality))
        line = np.asarray(curve.quality)[order], np.asarray(curve.diversity)[order]
        yield line, (float(pair.quality(p, p)), float(pair.diversity(p)))


def path(x, y):
    """A line through points, in the units of a panel."""
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def star(x, y, radius=11):
    """A star of five points."""
    angles = np.pi * np.arange(10) / 5
    radii = np.where(np.arange(10) % 2, 0.42, 1) * radius
    return path(x + radii * np.sin(angles), y - radii * np.cos(angles)) + "Z"


def text(x, y, words, **attributes):
    """Words at a place."""
    more = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in attributes.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{more}>{words}</text>'


def labelled(shown, title, quality, diversity):
    """What a plane shows, with its title and the names of both sides."""
    middle = (LEFT + RIGHT) / 2
    return "\n".join(
        [
            '<g font-family="system-ui, sans-serif" font-size="14"'
            ' fill="currentColor">',
            *shown,
            text(
                *(middle, 20, title),
                **{"text_anchor": "middle", "font_weight": "600", "font_size": 16},
            ),
            text(middle, 290, f"quality: {quality} →", text_anchor="middle"),
            text(
                *(-(TOP + BOTTOM) / 2, 18, f"diversity: {diversity} →"),
                **{"text_anchor": "middle", "transform": "rotate(-90)"},
            ),
            "</g>",
        ]
    )


def panel(line, real, reach, title, quality, diversity, said):
    """One plane: the frontier, the real distribution, and what is better in both."""
    (u, v), (du, dv) = real, reach
    x0, y0 = (LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2

    def across(x):
        return x0 + (x - u) / du * (RIGHT - LEFT) / 2

    def up(y):
        return y0 - (y - v) / dv * (BOTTOM - TOP) / 2

    x = np.linspace(u - du, u + du, 81)
    y = np.interp(x, *line)
    seen = (y > v - dv) & (y < v + dv) & (x >= line[0][0]) & (x <= line[0][-1])
    x, y = x[seen], y[seen]
    shown = []
    better = (x >= u - 1e-12) & (y > v)
    if y[better].max(initial=v) > v + dv / 50:
        edge = path(across(x[better]), up(y[better]))
        corner = f"L{across(x[better][-1]):.1f} {y0:.1f}L{x0:.1f} {y0:.1f}Z"
        shown.append(f'<path d="{edge}{corner}" style="fill: {ORANGE}" opacity=".35"/>')
        shown.append(text(x0 + 46, y0 - 62, "better in both"))
        leader = f"M{x0 + 58} {y0 - 56}L{x0 + 28} {y0 - 16}"
        shown.append(f'<path d="{leader}" stroke="currentColor"/>')
    axes = f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"
    shown += [
        f'<path d="{axes}" fill="none" stroke="currentColor" opacity=".5"/>',
        f'<path d="{path(across(x), up(y))}" fill="none" style="stroke: {BLUE}"'
        ' stroke-width="3" stroke-linejoin="round"/>',
        f'<path d="{star(x0, y0)}"/>',
        text(x0 - 14, y0 + 28, "the real distribution", text_anchor="end"),
        text(*said, "the best models", style=f"fill: {BLUE}"),
    ]
    return labelled(shown, title, quality, diversity)


def panels():
    """The two planes: a pair that is compatible, and one that is not."""
    (one, at), (other, other_at) = frontiers()
    yield panel(
        *(one, at, (0.04, 0.08), "Coverage and repetition: unbeaten"),
        *("coverage rate", "minus repetition", (158, 92)),
    )
    yield panel(
        *(other, other_at, (0.09, 0.09), "BLEU and Self-BLEU: beaten"),
        *("BLEU-2", "minus Self-BLEU-2", (46, 92)),
    )


def svg(drawn, ground="", **attributes):
    """A picture of that many panels, side by side, each an `svg` of its own."""
    drawn, size = list(drawn), f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    inner = "\n".join(
        f'<svg class="panel" x="{i * WIDTH}" width="{WIDTH}" height="{HEIGHT}" {size}>'
        f"\n{one}\n</svg>"
        for i, one in enumerate(drawn)
    )
    more = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {len(drawn) * WIDTH} {HEIGHT}"{more}>\n{ground}{inner}\n</svg>\n'
    )


def photograph(page, target, width, height):
    """A picture of a page, made by Chromium."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "page.html")
        source.write_text(page, encoding="utf-8")
        subprocess.run(
            [
                *("chromium", "--headless=new", "--no-sandbox", "--disable-gpu"),
                *("--hide-scrollbars", f"--window-size={width},{height}"),
                *(f"--screenshot={target}", f"--user-data-dir={folder}/chromium"),
                source.as_uri(),
            ],
            check=True,
            capture_output=True,
        )


CARD = """<body style="margin: 0; background: #fffdf8; color: #22262b; display: flex;
    align-items: center; height: 100vh; font-family: Georgia, serif">
<div style="width: 46%; padding-left: 60px; box-sizing: border-box">
<p style="font-size: 54px; line-height: 1.15; margin: 0 0 28px">Can a model beat
the real distribution?</p>
<p style="font-size: 28px; line-height: 1.4; margin: 0; color: #4a525b">Quality and
diversity of generated text, computed exactly</p></div>
<div style="width: 52%">PANEL</div></body>"""


def main():
    """Compute, draw, write."""
    jax.config.update("jax_enable_x64", True)
    drawn = list(panels())
    # A ground of its own: it reads on a light page and on a dark one.
    ground = '<rect width="100%" height="100%" fill="#fffdf8"/>\n'
    more = {"color": "#22262b", "role": "img", "aria-label": SEEN}
    PICTURE.write_text(svg(drawn, ground, **more), encoding="utf-8")
    if not shutil.which("chromium"):
        sys.exit(f"{SOCIAL.name} needs Chromium (Debian, Ubuntu: chromium)")
    photograph(CARD.replace("PANEL", svg(drawn[1:])), SOCIAL, 1200, 630)


if __name__ == "__main__":
    main()
