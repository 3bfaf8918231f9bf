r"""The shape of g, proved: the pieces of [0, 1] on which it is concave, and the others.

By interval arithmetic g'' is enclosed on a piece. Where $g'' \le 0$ is proved, every
tangent is above g on the piece. On the others, of width h, g exceeds the chord through
the ends a and b by at most `CHORD_EXCESS` times its height over [0, 1], as
$$g(x) - \mathrm{chord}(x) = -\tfrac{1}{2} g''(\xi)\,(x - a)(b - x)
\le \max(-g'')\,h^2 / 8, \qquad (1)$$
so that the maximum of g plus a linear function is at an end, up to that excess. Both
hold for any part of a piece.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from qdtheory.bounds.concave_convex import chord_height, slope_table
from qdtheory.functions import Function
from qdtheory.support.numbers import EPS

# Some tens of roundings of a value of g: it costs a bound nothing that can be seen.
CHORD_EXCESS = 1e-14
# Where g'' has no bound halving does not end: g is refused at this width, or after so
# many pieces.
NARROWEST = Fraction(1, 2**60)
MAX_PIECES = 4000
# Of the tables of g', which only start Newton's method, and of the scale of g.
TABLE_POINTS = 1025


@dataclass(frozen=True)
class Shape:
    """The proved shape of g: a partition of [0, 1], and its concave pieces, joined."""

    tilt: float  # of the line from g(0) to g(1), which says nothing of diversity
    unit: float  # how far g is from that line
    excess: float  # by how much g may exceed chords outside the concave pieces
    ends: np.ndarray  # from 0 to 1
    concave: np.ndarray  # a row of two ends each
    tables: list[tuple[np.ndarray, np.ndarray]] = field(repr=False)  # x, falling g'

    def touching(self, g: Function, slopes: np.ndarray) -> np.ndarray:
        """Approximate points of given slopes in each concave piece, (slopes, pieces).

        By interpolation and two Newton steps.
        """
        columns = [np.empty((slopes.size, 0))]
        for x, falling in self.tables:
            # The inverse of g', which falls; the end of the piece where it has no root.
            touch = np.interp(slopes, falling[::-1], x[::-1])
            for _ in range(2):
                jet = g.jet(touch)
                with np.errstate(invalid="ignore"):  # of infinite slopes at an end
                    gap = slopes - jet.slope
                    # At the rim of a piece g'' is about 0, and may be rounded above.
                    step = gap / np.minimum(jet.curvature, -EPS * self.unit)
                step = np.where(np.isfinite(step), step, 0)
                touch = np.clip(touch + step, x[0], x[-1])
            columns.append(touch[:, None])
        return np.hstack(columns)


@lru_cache(maxsize=64)
def shape_of(g: Function) -> Shape:
    """Split [0, 1] until interval arithmetic determines the shape of each piece."""
    x = np.linspace(0, 1, TABLE_POINTS)
    y = g.jet(x).value
    if not np.isfinite(y).all():
        raise ValueError(
            "this bound takes a g with two bounded derivatives on [0, 1]; at "
            f"{x[~np.isfinite(y)][0]:.3g} its value is {y[~np.isfinite(y)][0]}"
        )
    tilt, size = float(y[-1] - y[0]), float(np.abs(y).max())
    # Not below the rounding of g; and 1 for a g of zeros.
    unit = max(float(np.abs(y - y[0] - tilt * x).max()), EPS * size) or 1.0
    pieces = _pieces(g, CHORD_EXCESS * unit)
    ends = np.array([0.0] + [float(high) for _, high, _ in pieces])
    # Neighbours that are both concave are one piece, with one tangent.
    runs = [[*run] for concave, run in groupby(pieces, lambda x: x[2]) if concave]
    concave = np.array([(run[0][0], run[-1][1]) for run in runs], float).reshape(-1, 2)
    points = [np.linspace(low, high, TABLE_POINTS) for low, high in concave]
    tables = [(x, g.jet(x).slope) for x in points]
    return Shape(tilt, unit, CHORD_EXCESS * unit, ends, concave, tables)


def _pieces(g: Function, excess: float) -> list[tuple[Fraction, Fraction, bool]]:
    """Ends of the pieces, ascending, and whether g is proved to be concave there."""
    undecided, pieces = [(Fraction(0), Fraction(1))], []
    while undecided:
        low, high = undecided.pop()
        width = high - low
        if width < NARROWEST or len(pieces) > MAX_PIECES:
            raise ValueError(
                "interval arithmetic cannot tell where g is concave near "
                f"{float(low):.3g}; use a g with two bounded derivatives on [0, 1]"
            )
        try:
            least, greatest = ends_of(g.enclosure(low, high)[2])
        except ValueError:  # too wide to decide
            least, greatest = -np.inf, np.inf
        # Concave, or below its chords up to the excess, by (1).
        if greatest <= 0 or -least * float(width) ** 2 / 8 <= excess:
            pieces.append((low, high, greatest <= 0))
        else:
            middle = (low + high) / 2
            undecided += [(middle, high), (low, middle)]  # the lower is next
    return pieces


@lru_cache(maxsize=64)
def two_pieces(g: Function, inflection: float) -> Shape:
    """The shape of a g that is proved to be concave up to a point, then convex."""
    x, slopes, values = slope_table(g, inflection)
    # Not from 0 on, where the slope may be infinite.
    below = (x > 0) & (x <= inflection)
    concave, ends = np.array([[0.0, inflection]]), np.array([0.0, inflection, 1.0])
    tilt, tables = float(values[-1] - values[0]), [(x[below], slopes[below])]
    return Shape(tilt, chord_height(g), 0.0, ends, concave, tables)


def enclosed(g: Function, x: np.ndarray) -> np.ndarray:
    """Upper bound on g, lower and upper bound on g', at each entry of a matrix."""
    # Balls cost some 20 microseconds, and most entries are ends of pieces.
    points, index = np.unique(x, return_inverse=True)
    rows = np.array([_enclosed_at(g, float(point)) for point in points])
    return rows[index.reshape(x.shape)].transpose(2, 0, 1)


@lru_cache(maxsize=1 << 14)
def _enclosed_at(g: Function, x: float) -> tuple[float, float, float]:
    try:
        value, slope, _ = g.enclosure(x, x)
    except ValueError:
        if x != 0:
            raise
        # Like -x log x: no tangent touches g there, so that its slope does not matter.
        value = g.at_zero[0]
        return float(np.nextafter(value + EPS * abs(value), np.inf)), 0.0, 0.0
    return ends_of(value)[1], *ends_of(slope)


def ends_of(ball: Any) -> tuple[float, float]:
    """The ends of a ball, rounded outwards."""
    low, high = float(ball.lower()), float(ball.upper())
    return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))
