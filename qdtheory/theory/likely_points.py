"""Real distributions P at which a pair is likely to be beaten, if it is at all."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from jaxtyping import Float

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.formulas.signs import find_peak, find_sign, number_sign
from qdtheory.theory.beyond_theorem_3 import mirrored_curvature
from qdtheory.theory.theorem_3 import EXACT_POINTS, GRID, Functions

NUM_SAMPLES = 64
# Total number of probabilities drawn, so that many texts do not take minutes.
MAX_DRAWN = 2**18
# Random P tried before those that a formula suggests, which take longer to find.
NUM_FIRST = 4


def random_points(num_texts: int) -> Iterator[Float[np.ndarray, " texts"]]:
    """Draw random interior P, from nearly uniform to peaked.

    Args:
        num_texts: N.

    Yields:
        Up to 64 distributions, shape (N,).
    """
    rng = np.random.default_rng(0)
    num_samples = np.clip(MAX_DRAWN // num_texts, 1, NUM_SAMPLES)
    for concentration in np.resize([3.0, 1.0, 10.0, 0.5], num_samples):
        draw = rng.dirichlet(np.full(num_texts, concentration)) + 1e-6
        yield draw / draw.sum()


def likely_points(
    functions: Functions, num_texts: int
) -> Iterator[Float[np.ndarray, " texts"]]:
    """Generate interior P for a separable pair that no theorem shows compatible.

    Args:
        functions: f and g.
        num_texts: N.

    Yields:
        Distributions, shape (N,): first those with a text where f decreases or g is
        convex on the grid, then random ones; for formulas also those with a text at
        places that ball arithmetic finds.
    """
    wrong = functions.x[(functions.f.slope <= 0) | (functions.g.curvature >= 0)]
    rng = np.random.default_rng(1)
    for i in np.linspace(0, wrong.size - 1, 8 if wrong.size else 0).astype(int):
        yield from _around(float(wrong[i]), num_texts, rng)
        if wrong[i] > 0.5 and num_texts > 3:
            # The least that two texts of one sum leave to the others, see
            # `keeps_order_with_one_text`.
            yield _with_two(float(wrong[i]), num_texts, rng)
    if (worst := _least_curved(functions)) is not None and num_texts > 2:
        yield _with_two(worst, num_texts, rng)
    points = random_points(num_texts)
    if functions.formulas is not None and functions.smooth:
        yield from islice(points, NUM_FIRST)
        yield from _at_features(*functions.formulas, num_texts)
    yield from points


def _at_features(f: Expression, g: Expression, num_texts: int) -> Iterator[np.ndarray]:
    """Generate P where f falls, g is convex or (f, g') is far from a line."""
    x, (score, rise, _) = variable(), f.derivatives()
    _, slope, curvature = g.derivatives()
    fall = find_sign(rise, x, -1)
    places = [fall, find_sign(curvature, x, 1)]
    # Where (f, g') is farthest from the line through two ordinary points.
    ends = [{x: t} for t in EXACT_POINTS[1:3]]
    run = score.subs(ends[1]) - score.subs(ends[0])
    if number_sign(run) in (1, -1):
        climb = slope.subs(ends[1]) - slope.subs(ends[0])
        off = slope - slope.subs(ends[0]) - climb / run * (score - score.subs(ends[0]))
        places += find_peak(off, x)
    rng = np.random.default_rng(2)
    for place in filter(None, places):
        yield from _around(float(place), num_texts, rng)
        if place == fall and 2 * place < 1 and num_texts > 2:
            # Put two texts there: separating them gains diversity at no cost in U.
            yield _with_texts([float(place)] * 2, num_texts, rng)
    start = score.subs(x, 0)
    if (
        fall is not None
        and 2 * fall > 1
        and num_texts > 2
        and number_sign(start) is not None
    ):
        place = find_sign(mirrored_curvature(f).subs(x, (1 + x) / 2), x, -1)
        if place is not None:
            yield _with_two(float(1 + place) / 2, num_texts, rng)


def _least_curved(functions: Functions) -> float | None:
    """The likeliest x above 1/2 of the grid for two texts at x and nearly 1 - x."""
    even = GRID >= 1e-3
    value, slope = functions.f.value[even], functions.f.slope[even]
    rise = value - functions.f.value[0]
    with np.errstate(all="ignore"):
        # The least sum of f'(P_i) d_i^2, see `keeps_order_with_one_text`.
        curved = slope + slope[::-1] * (rise / rise[::-1]) ** 2
    curved = np.where((GRID[even] > 0.5) & np.isfinite(curved), curved, np.inf)
    return float(GRID[even][curved.argmin()]) if curved.min() < 0 else None


def _around(
    place: float, num_texts: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Generate P with one text of this probability."""
    return (_with_texts([place], num_texts, rng) for _ in range(4))


def _with_two(
    place: float, num_texts: int, rng: np.random.Generator
) -> Float[np.ndarray, " texts"]:
    """Draw a P with a text of this probability, another with nearly all the rest."""
    return _with_texts([place, 0.99 * (1 - place)], num_texts, rng)


def _with_texts(
    places: list[float], num_texts: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw a P with texts of these probabilities, the others sharing the rest."""
    rest = rng.dirichlet(np.ones(num_texts - len(places))) + 1e-6
    return np.r_[places, (1 - sum(places)) * rest / rest.sum()]
