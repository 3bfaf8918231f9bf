r"""Exact optima for g concave up to a point c and convex beyond.

Maximising quality linear in Q at a given $V = \sum_i g(Q_i)$ has the optimality
conditions $g'(Q_i) = w \phi_i + b$ with w < 0. At most one probability exceeds c, the
largest: of two, the better text would need the smaller slope, hence the smaller
probability; and two texts of equal score gain diversity by moving apart. So the largest
probability t determines all others: $Q_i$ is the root in [0, c] of
$g'(Q_i) = g'(t) + |w| (\phi_{max} - \phi_i)$, and |w| is fixed by the sum 1. Along
this curve dV = w dU, so the optimum is a point with the given V, or an endpoint.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from qdtheory.argmax import require_concave, slopes_of
from qdtheory.frontier import NEAREST_WEIGHT
from qdtheory.functions import Function
from qdtheory.support.numbers import EPS, NOISE, TIGHTEST

# Points of a stretch at which `_roots` looks for changes of sign.
NUM_POINTS = 257


@lru_cache(maxsize=128)
def inflection_point(g: Function) -> float:
    """Find the inflection of g from concave to convex; 1 if g is strictly concave."""
    try:
        require_concave(g)
    except ValueError as error:
        refusal = error
    else:
        return 1.0
    # g' falls up to c, where it is least, and rises beyond.
    x, slopes = slopes_of(g)
    least = int(slopes.argmin())
    noise = NOISE * np.maximum(np.abs(slopes[1:]), np.abs(slopes[:-1]))
    with np.errstate(invalid="ignore"):  # slopes may overflow near 0
        wrong_way = np.where(np.arange(x.size - 1) < least, 1, -1) * np.diff(slopes)
    # Above c rounding may hide the increase, as for (1 - x)**1000; below c, g' must be
    # invertible. Points below 1e-3 are too close to decide.
    flat = (wrong_way >= -noise)[64:least]
    stretch = (flat[2:] & flat[1:-1] & flat[:-2]).any()
    if 0 < least < x.size - 1 and not stretch and not (wrong_way > noise).any():
        around = x[least - 1], x[least + 1]
        return _roots(lambda x: g.compiled_jet(x).curvature, *around)[0]
    raise ValueError(
        f"{refusal}. QDisc is exact for g that is strictly concave, or concave up to "
        "one point and convex beyond"
    )


@lru_cache(maxsize=128)
def chord_height(g: Function) -> float:
    """Range of g over [0, 1] after subtracting the line through its endpoints.

    This is the unit of diversity: linear terms of g do not matter, as the
    probabilities sum to 1.
    """
    # Of a linear g there is no unit; 1 then.
    x = np.linspace(0, 1, 1025)
    values = g.compiled_jet(x).value
    return float(np.ptp(values - values[0] - (values[-1] - values[0]) * x)) or 1.0


def most_diverse_model(
    g: Function, inflection: float, scores: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """The most diverse distribution on chosen texts; on ties, of greatest quality.

    Its probabilities are all equal, or equal except for that of a best text.
    """
    n = int(chosen.sum())
    best = np.where(chosen, 1 / n, 0.0)
    if inflection == 1 or n == 1:
        return best
    # At most one probability is above c: it is 1, or the slopes are equal.
    first = int(np.where(chosen, scores, -np.inf).argmax())
    for top in (1.0, *_balanced(g, inflection, n - 1)):
        q = np.where(chosen, (1 - top) / (n - 1), 0.0)
        q[first] = top
        if g.compiled_jet(q).value.sum() >= g.compiled_jet(best).value.sum():
            best = q
    return best


def _balanced(g: Function, inflection: float, others: int) -> list[float]:
    """Largest probabilities above c that, with n others of equal slope, sum to 1."""
    if others == 0:
        return []

    # V is stationary where the slope of the largest is that of the others.
    def excess(top):
        return g.compiled_jet((1 - top) / others).slope - g.compiled_jet(top).slope

    # All others are at most c.
    slopes = g.compiled_jet(np.array([inflection, 1.0])).slope
    noise = NOISE * float(np.abs(slopes).max())
    return _roots(excess, max(inflection, 1 - others * inflection), 1.0, noise)


def models_of_diversity(
    g: Function, inflection: float, scores: np.ndarray, diversity: float
) -> Iterator[tuple[np.ndarray, float]]:
    """Models of a given V that satisfy the optimality conditions, and all with w = 0.

    Located by interpolation in a table of g', then refined by Newton's method.
    """
    # Of texts of equal score any may have the largest probability: take one.
    finite = np.isfinite(scores)
    first = int(np.where(finite, scores, -np.inf).argmax())
    rest = np.flatnonzero(finite & (np.arange(scores.size) != first))
    gaps, table = scores[first] - scores[rest], slope_table(g, inflection)
    curve = _Curve(first, rest, gaps, *table, inflection, scores.size, diversity)
    others = rest.size
    # The curve runs from w = 0, with all others equal, to w = -infinity, with mass only
    # on texts tied with the best.
    equals = int((gaps == 0).sum())
    starts, ends = (_balanced(g, inflection, n) for n in (others, equals))
    breaks = [inflection, *starts, *ends, 1.0]
    if (uniform := 1 / finite.sum()) < inflection:
        starts.append(uniform)
        breaks += [uniform, min(1 / (equals + 1), inflection)]
    for top in starts:
        q = np.where(finite, (1 - top) / others, 0.0)
        q[first] = top
        yield q, NEAREST_WEIGHT
        near = _nearby(g, scores, q, diversity)
        if near is not None:
            yield _polished(g, scores, *near, diversity)
    # Between two breaks the curve exists everywhere or nowhere.
    for low, high in pairwise(np.unique(breaks)):
        if curve.exists_at((low + high) / 2):
            for top in _roots(curve.excess, low, high, NOISE * abs(diversity)):
                yield _polished(g, scores, *curve.model(top), diversity)


@dataclass(frozen=True)
class _Curve:
    """Models for each largest probability, by interpolation in a table of g'."""

    first: int  # the text of largest probability
    others: np.ndarray
    gaps: np.ndarray  # of their scores
    x: np.ndarray
    slopes: np.ndarray
    values: np.ndarray
    inflection: float
    num_texts: int
    diversity: float

    def rest(self, tops: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Probabilities of the other texts at |w| = alpha / (1 - alpha) / max gap."""
        # alpha from 0 to 1 takes |w| from 0 to infinity, in the unit of the gaps.
        w = alphas / (1 - alphas) / self.gaps.max()
        level = np.interp(tops, self.x, self.slopes)
        # The inverse of g' on [0, c], where it falls; at a slope above g'(0) it is 0.
        below = self.x <= self.inflection
        slopes, x = self.slopes[below][::-1], self.x[below][::-1]
        levels = level[..., None] + w[..., None] * self.gaps
        return np.interp(levels, slopes, x, right=0.0)

    def excess_mass(self, alphas: np.ndarray, tops: np.ndarray) -> np.ndarray:
        return self.rest(tops, alphas).sum(axis=-1) + tops - 1

    def alphas(self, tops: np.ndarray) -> np.ndarray:
        """Values of alpha at which the probabilities sum to 1."""
        from scipy.optimize.elementwise import find_root

        # The mass falls as |w| grows; without a root, the end that is nearer.
        none, all_but = np.zeros_like(tops), np.full_like(tops, 1 - EPS)
        alphas = find_root(self.excess_mass, (none, all_but), args=(tops,)).x
        alphas = np.where(self.excess_mass(none, tops) <= 0, none, alphas)
        return np.where(self.excess_mass(all_but, tops) >= 0, all_but, alphas)

    def exists_at(self, top: float) -> bool:
        tops = np.array([top])
        most, least = (self.excess_mass(np.full(1, a), tops) for a in (0, 1 - EPS))
        return bool(least < 0 < most)

    def excess(self, tops: np.ndarray) -> np.ndarray:
        """V minus the given diversity."""
        rest = self.rest(tops, self.alphas(tops))
        total = np.interp(rest, self.x, self.values).sum(axis=-1)
        # Texts of score -inf have probability 0.
        left_out = (self.num_texts - 1 - self.others.size) * self.values[0]
        top_value = np.interp(tops, self.x, self.values)
        return total + top_value + left_out - self.diversity

    def model(self, top: float) -> tuple[np.ndarray, float]:
        """The model with a given largest probability, and its weight."""
        tops = np.array([top])
        alphas = self.alphas(tops)
        q = np.zeros(self.num_texts)
        q[self.first], q[self.others] = top, self.rest(tops, alphas)[0]
        return q, -float(alphas[0] / (1 - alphas[0])) / self.gaps.max()


def _nearby(
    g: Function, scores: np.ndarray, q: np.ndarray, diversity: float
) -> tuple[np.ndarray, float] | None:
    """Best model of slightly smaller V near a maximum of V, to second order.

    The table is too coarse to find it if V(P) equals the maximum to eight digits.
    """
    jet = g.compiled_jet(q)
    curvature = jet.curvature
    free = np.isfinite(scores) & (curvature != 0)
    if not free.any():  # at the inflection
        return None
    # A step d of sum 0 changes V by sum g'' d^2 / 2, as q is stationary; of all that
    # change it alike, the greatest quality has g'' d = w (phi - nu), as a multiplier.
    inverse = np.where(free, 1 / np.where(free, curvature, 1), 0.0)
    score = np.where(free, scores, 0.0)
    score = np.where(free, score - inverse @ score / inverse.sum(), 0.0)
    decline = -(inverse * score) @ score
    excess = jet.value.sum() - diversity
    if not (excess > 0 and decline > 0):
        return None
    # V changes by -w^2 / 2 times the decline; w < 0 is the direction of more quality.
    w = -np.sqrt(2 * excess / decline)
    near = q + w * inverse * score
    return (near, w) if near.min() >= 0 else None


@lru_cache(maxsize=16)
def slope_table(
    g: Function, inflection: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ascending probabilities, c among them, with g' and g there."""
    # Near 0 slopes may be infinite, as of -x log x, and probabilities tiny.
    small = np.geomspace(1e-15, 1, 2048) * inflection
    even = np.linspace(0, inflection, 2049)
    large = np.linspace(inflection, 1, 2049)
    x = np.unique(np.concatenate([even, small, large]))
    jet = g.compiled_jet(x)
    jet.slope[0] = g.at_zero[1]
    return x, jet.slope, jet.value


@np.errstate(all="ignore")  # if a step is not finite, the start is kept
def _polished(
    g: Function, scores: np.ndarray, q: np.ndarray, w: float, diversity: float
) -> tuple[np.ndarray, float]:
    r"""Newton's method for $g'(q_i) = w \phi_i + b$, sum 1 and a given V.

    Probabilities that reach 0 stay there. If it fails, the start is returned.
    """
    start = q / q.sum(), w
    top = q.argmax()
    others = np.isfinite(scores) & (np.arange(q.size) != top)
    gaps = np.where(others, scores - scores[top], 0.0)
    b = g.compiled_jet(q).slope[top]
    for _ in range(20):
        jet = g.compiled_jet(q)
        value, slope, curvature = jet.value, jet.slope, jet.curvature
        # Eliminate the others' steps, but not the top's, as its g'' may be 0.
        free = others & (q > 0)
        # g'' dq = (w + dw) gap + b + db - g': dq = slack + by_w dw + by_b db.
        by_b = np.where(free, 1 / np.where(free, curvature, 1), 0.0)
        by_w = by_b * gaps
        slack = by_b * np.where(free, w * gaps + b - slope, 0.0)
        marginal = np.where(free, slope, 0.0)
        # For the steps of the top, w and b: the top's slope is b, the sum is 1, and V.
        system = [
            [curvature[top], 0.0, -1.0],
            [1.0, by_w.sum(), by_b.sum()],
            [slope[top], by_w @ marginal, by_b @ marginal],
        ]
        lacking = [
            b - slope[top],
            1 - q.sum() - slack.sum(),
            diversity - value.sum() - slack @ marginal,
        ]
        try:
            top_step, w_step, b_step = np.linalg.solve(system, lacking)
        except np.linalg.LinAlgError:  # all other texts are at 0
            break
        step = slack + by_w * w_step + by_b * b_step
        step[top] = top_step
        w, b, q = w + w_step, b + b_step, np.maximum(q + step, 0.0)
        if not (np.isfinite(q).all() and np.isfinite([w, b]).all()):
            break
        if np.abs(step).max() <= 2 * EPS:
            return q, w
    return (q, w) if abs(q.sum() - 1) <= NOISE else start


def _roots(
    function: Callable[[np.ndarray], np.ndarray],
    low: float,
    high: float,
    noise: float = 0.0,
) -> list[float]:
    """Zeros of a vectorised function; none if its values are within the noise.

    A dip towards 0 without a sign change is refined, as it may contain two roots.
    """
    from scipy.optimize import brentq  # a fifth of a second that few need

    def at(x: float) -> float:
        return function(np.array([x]))[0]

    roots, stretches = [], [(low, high)]
    while stretches:
        low, high = stretches.pop()
        x = np.geomspace(low, high, NUM_POINTS)
        value = function(x)
        if np.abs(value).max() <= noise:
            continue
        side = value >= 0
        for i in np.flatnonzero(side[1:] != side[:-1]):
            roots.append(brentq(at, x[i], x[i + 1], rtol=TIGHTEST))
        # A value nearer to 0 than both neighbours, by more from one of them than it is
        # large itself: at that slope it would be 0 within a step.
        size = np.abs(value)
        left, right = size[:-2] - size[1:-1], size[2:] - size[1:-1]
        hiding = np.minimum(left, right) > noise
        hiding &= size[1:-1] < np.maximum(left, right)
        same = (side[:-2] == side[1:-1]) & (side[1:-1] == side[2:])
        if high - low > 1e-4 * high:
            stretches += [(x[i], x[i + 2]) for i in np.flatnonzero(hiding & same)]
    return roots
