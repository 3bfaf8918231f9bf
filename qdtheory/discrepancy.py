r"""QDisc and DRate: the quality a model can gain over P at no loss of diversity.

$\mathrm{QDisc} = \max_Q U(Q; P) - U(P; P)$ subject to $V(Q) \ge V(P)$, and DRate is
its share of the range from the quality of the most diverse model to the greatest
quality. Solved exactly for quality linear in Q and $V = \sum_i g(Q_i)$, with g
strictly concave (a root in the frontier's weight) or concave up to an inflection c
and convex beyond (roots on a curve in the largest probability); searched for with any
other pair, which gives a lower bound.

At an optimum of the second kind $g'(Q_i) = w \phi_i + b$ with w < 0. Beyond c lies
at most one text, a most probable one: of two, the better would need the smaller
slope, hence the smaller probability; and two equals gain diversity by moving apart.
So the largest probability t fixes all others: $Q_i$ is the root in [0, c] of
$g'(Q_i) = g'(t) + |w| (\phi_{max} - \phi_i)$, and |w| makes the sum 1. Along this
curve dV = w dU, so that the optimum is a point with V(Q) = V(P), or an end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from qdtheory.bleu import BleuPair
from qdtheory.distributions import check_distribution, require_x64
from qdtheory.frontier import NEAREST_WEIGHT, pareto_optimum, saturation_weight
from qdtheory.pairs import (
    LinearPair,
    Pair,
    ScalarFunction,
    SeparablePair,
    expected_score,
    single_token_bleu_pair,
)
from qdtheory.regularized_argmax import EPS, require_concave, slope_at_zero, slopes_of
from qdtheory.search import NUM_STARTS, Method, Search, search

NUM_POINTS = 257
# Rounding of a sum, in units of the sum of its terms' sizes.
NOISE = 8 * EPS
# The tightest that SciPy's root-finder accepts.
TIGHTEST = np.float64(4 * EPS)


@dataclass(frozen=True)
class Discrepancy:
    r"""How far P is from Pareto-optimal, and the model that shows it.

    Attributes:
        qdisc: U(Q) - U(P) of the best Q with V(Q) >= V(P), at least 0.
        drate: qdisc / quality_range; None where that is 0 or infinite. It exceeds
            1 where the most diverse model also beats P in quality by more than the
            range.
        q: that model Q, shape (N,); where only diversity can be gained, the model
            that gains most. V(q) >= V(p) holds as evaluated in 64 bits, unless P
            itself maximises V: then up to rounding.
        status: "exact": up to rounding, no better model exists; "lower_bound": the
            best model that a search found.
        upper_bound: no model gains more quality than this; infinite if not known.
        quality_range: the greatest quality minus that of `most_diverse`.
        most_diverse: Q', the maximiser of V, of greatest quality if there are
            several, shape (N,).
        dominated_in: "quality" if some model gains quality at no loss of diversity,
            "diversity" if models only gain diversity at no loss of quality, None if
            P is Pareto-optimal, up to rounding, or if a search found no such model.
        reason: the method, and why there is no DRate if there is none.
        num_starts: how many starts a search made; None if none was needed.
        num_agreeing: how many of them ended within 1e-4 of qdisc, relatively.
        converged: whether a search ended at a local optimum.
    """

    qdisc: float
    drate: float | None
    q: Float[Array, " texts"]
    status: Literal["exact", "certified", "lower_bound"]
    upper_bound: float
    quality_range: float
    most_diverse: Float[Array, " texts"]
    dominated_in: Literal["quality", "diversity"] | None
    reason: str
    num_starts: int | None = None
    num_agreeing: int | None = None
    converged: bool | None = None


def quality_discrepancy(
    pair: Pair,
    p: Float[ArrayLike, " texts"],
    *,
    method: Literal["exact"] | Method | None = None,
    num_starts: int = NUM_STARTS,
    key: PRNGKeyArray | None = None,
) -> Discrepancy:
    r"""QDisc and DRate of a pair at one real distribution.

    Exact where quality is linear in Q and diversity is $\sum_i g(Q_i)$, with g strictly
    concave on [0, 1], or concave up to a point and convex beyond. BLEU of the order of
    the texts' one length is of this form: it asks if the text is among the references.

    Args:
        pair: any pair that JAX can differentiate.
        p: the real distribution, shape (N,).
        method: "exact"; "ascent" or "penalty", see `qdtheory.search.search`; None for
            "exact" where that applies and else "ascent".
        num_starts: starts in each round of "ascent".
        key: of its random starts; `jax.random.key(0)` if None.

    Returns:
        The discrepancies with the models that attain them.

    Raises:
        TypeError: "exact" was asked for a pair without scores or without g.
        ValueError: `p` is no distribution, its own quality is not finite, a score is
            NaN or $+\infty$, an unknown method, or "exact" was asked for g of another
            shape.

    References:
        Li et al. 2020, section 5; the exact solutions are ours.

    Example:
        >>> from qdtheory.pairs import CR_NRR, LL_NRR
        >>> p = np.array([0.6, 0.3, 0.1])
        >>> print(f"{quality_discrepancy(LL_NRR, p).qdisc:.6f}")
        0.013566
        >>> quality_discrepancy(CR_NRR, p).dominated_in is None
        True
    """
    require_x64()
    separable = _separable(pair)
    if separable is not None and (
        method == "exact" or (method is None and _is_solvable(separable))
    ):
        return _solved(separable, np.asarray(check_distribution(p)))
    if method == "exact":
        raise TypeError(
            "QDisc is exact for a pair with a score for each text and a diversity "
            "that sums g(Q_i), a SeparablePair or LinearPair; got a "
            f"{type(pair).__name__}"
        )
    p = np.asarray(check_distribution(p))
    return _searched(
        pair,
        p,
        search(pair, p, method=method or "ascent", num_starts=num_starts, key=key),
    )


def _separable(pair: Pair) -> SeparablePair | LinearPair | None:
    """The pair with scores and a sum of g(Q_i), if it has that form."""
    if isinstance(pair, SeparablePair | LinearPair):
        return pair
    if (
        isinstance(pair, BleuPair)
        and pair.smoothing is None
        and pair.space.lengths == (pair.max_order,)
    ):
        # The n-gram of the whole text matches only where the text is a reference.
        return single_token_bleu_pair(
            int(pair.num_references), int(pair.num_self_references)
        )
    return None


def _is_solvable(pair: SeparablePair | LinearPair) -> bool:
    try:
        inflection_point(pair.g)
    except ValueError:
        return False
    return True


def _searched(pair: Pair, p: np.ndarray, found: Search) -> Discrepancy:
    """What a search found, as a lower bound."""
    qdisc, quality_range = float(found.gain), float(found.quality_range)
    quality = float(pair.quality(p, p))
    noise = NOISE * max(abs(quality), abs(quality + qdisc))
    q, dominated_in = found.q, "quality" if qdisc > noise else None
    if dominated_in is None:
        loss = quality - float(pair.quality(found.most_diverse, p))
        rise = float(pair.diversity(found.most_diverse) - pair.diversity(p))
        if loss <= 0 and rise > NOISE * abs(float(pair.diversity(p))):
            q, dominated_in = found.most_diverse, "diversity"
    reason = (
        f"A search: {found.num_agreeing} of {found.num_starts} starts ended within "
        "1e-4 of the best gain, relatively."
    )
    drate = qdisc / quality_range if noise < quality_range < np.inf else None
    if drate is None:
        size = "infinite" if quality_range == np.inf else "0"
        reason += f" There is no DRate, as the quality range is {size}."
    return Discrepancy(
        qdisc=qdisc,
        drate=drate,
        q=q,
        status="lower_bound",
        upper_bound=np.inf,
        quality_range=quality_range,
        most_diverse=found.most_diverse,
        dominated_in=dominated_in,
        reason=reason,
        num_starts=found.num_starts,
        num_agreeing=int(found.num_agreeing),
        converged=bool(found.converged),
    )


# --- The exact cases ----------------------------------------------------------------


def _solved(pair: SeparablePair | LinearPair, p: np.ndarray) -> Discrepancy:
    """QDisc and DRate where `inflection_point` accepts the pair's g."""
    scores = np.asarray(pair.text_quality(p))
    if not np.isfinite(expected_score(p, scores)) or not (scores < np.inf).all():
        raise ValueError(
            "the quality of P itself must be finite, and no score NaN or +inf; the "
            "pair's scores are not so at this p"
        )
    inflection = inflection_point(pair.g)
    most_diverse = _spread(pair.g, inflection, scores, scores >= -np.inf)
    quality_range = float(scores.max() - expected_score(most_diverse, scores))
    if quality_range <= NOISE * np.abs(scores[np.isfinite(scores)]).max():
        quality_range = 0.0
    q, qdisc, dominated_in = _best_model(pair, p, scores, inflection)
    reason = "A root in the frontier's weight: g is strictly concave."
    if inflection < 1:
        reason = (
            "Roots on a curve in the largest probability: g is concave up to "
            f"{inflection:.6g} and convex beyond."
        )
    drate = qdisc / quality_range if 0 < quality_range < np.inf else None
    if drate is None:
        size = "infinite" if quality_range else "0"
        reason += f" There is no DRate, as the quality range is {size}."
    return Discrepancy(
        qdisc=qdisc,
        drate=drate,
        q=jnp.asarray(q),
        status="exact",
        upper_bound=qdisc,
        quality_range=quality_range,
        most_diverse=jnp.asarray(most_diverse),
        dominated_in=dominated_in,
        reason=reason,
    )


def _best_model(
    pair: SeparablePair | LinearPair,
    p: np.ndarray,
    scores: np.ndarray,
    inflection: float,
) -> tuple[np.ndarray, float, Literal["quality", "diversity"] | None]:
    """The feasible model of greatest quality, its gain, and how it beats P."""
    start = float(pair.diversity(p))
    noise = NOISE * np.abs(_values(pair.g, p)[0]).sum()
    finite = np.isfinite(scores)
    inner = _spread(pair.g, inflection, scores, finite)
    on_modes = _spread(pair.g, inflection, scores, scores == scores.max())
    excess = float(pair.diversity(on_modes)) - start
    if excess >= -noise:
        points = [(on_modes, -np.inf)]
    elif inflection == 1:
        points = [_on_frontier(pair, p, inner, start)]
    else:
        points = _on_curve(pair.g, inflection, scores, start)
    best, gain, weight = p, 0.0, -np.inf
    for point, w in points:
        q = _repaired(pair, point, inner, start, noise)
        rise = float(expected_score(q - p, scores))
        if rise > gain:
            best, gain, weight = q, rise, w
    error = NOISE * float(expected_score(p + best, np.abs(scores)))
    # An error in V moves Q along the frontier, and U by 1 / |w| times as much; near
    # the maximum of V, where w is 0, by the order of its root.
    error += min(2 * noise / -weight, np.sqrt(noise) * np.ptp(scores[finite]))
    if gain > error:
        return best, gain, "quality"
    if expected_score(on_modes - p, scores) <= error and excess > 2 * noise:
        return on_modes, gain, "diversity"
    return best, gain, None


def _repaired(
    pair: SeparablePair | LinearPair,
    q: np.ndarray,
    inner: np.ndarray,
    least: float,
    noise: float,
) -> np.ndarray:
    """The model, mixed with the most diverse one until its V is at least `least`."""
    for share in (0.0, *np.geomspace(1e-17, 1, 52)):
        mixed = (1 - share) * q + share * inner
        if pair.diversity(mixed) >= least:
            return mixed
    # P is as diverse as any, so that only rounding tells the maximisers apart.
    return q if pair.diversity(q) >= least - 2 * noise else inner


# Under jit the checks of the input, done once already, take no time.
_optimum = jax.jit(pareto_optimum)


def _on_frontier(
    pair: SeparablePair | LinearPair, p: np.ndarray, inner: np.ndarray, diversity: float
) -> tuple[np.ndarray, float]:
    """The frontier's point of a given V, for concave g; `inner` is its end at w = 0."""
    from scipy.optimize import brentq  # a fifth of a second that few need

    def weight(alpha):
        return -np.inf if alpha == 1 else min(NEAREST_WEIGHT, alpha / (alpha - 1))

    def excess(alpha):
        if alpha == 0:
            return float(pair.diversity(inner)) - diversity
        return float(_optimum(pair, p, weight(alpha)).diversity) - diversity

    if excess(0.0) <= 0:  # P is the most diverse
        return p, NEAREST_WEIGHT
    lowest = float(saturation_weight(pair, p))
    end = 1.0 if np.isinf(lowest) else lowest / (lowest - 1)
    w = weight(brentq(excess, 0.0, end, xtol=1e-300, rtol=TIGHTEST))
    # Where g'' is nearly 0 the sum is off by 1e-11, which would add to the gain.
    q = np.asarray(pareto_optimum(pair, p, w).q)
    return q / q.sum(), w


# --- Concave, then convex g ---------------------------------------------------------


def _spread(
    g: ScalarFunction, inflection: float, scores: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """The most diverse distribution on some texts, of greatest quality among equals.

    Its probabilities are equal, or one stands out: that of a best text then.
    """
    n = int(chosen.sum())
    best = np.where(chosen, 1 / n, 0.0)
    if inflection == 1 or n == 1:
        return best
    first = int(np.where(chosen, scores, -np.inf).argmax())
    for top in (1.0, *_balanced(g, inflection, n - 1)):
        q = np.where(chosen, (1 - top) / (n - 1), 0.0)
        q[first] = top
        if _values(g, q)[0].sum() >= _values(g, best)[0].sum():
            best = q
    return best


def _balanced(g: ScalarFunction, inflection: float, others: int) -> list[float]:
    """Largest probabilities beyond c that, with n others of equal slope, sum to 1."""
    if others == 0:
        return []

    def excess(top):
        return _values(g, (1 - top) / others)[1] - _values(g, top)[1]

    # Each of the others is at most c.
    return _roots(excess, max(inflection, 1 - others * inflection), 1.0)


def _on_curve(
    g: ScalarFunction, inflection: float, scores: np.ndarray, diversity: float
) -> Iterator[tuple[np.ndarray, float]]:
    """The models of a given V that meet the optimality conditions, and all of w = 0.

    A table of g' finds them; Newton's method on the conditions makes them exact.
    """
    from scipy.optimize.elementwise import find_root

    finite = np.isfinite(scores)
    first = int(np.where(finite, scores, -np.inf).argmax())
    others = np.flatnonzero(finite & (np.arange(scores.size) != first))
    gaps = scores[first] - scores[others]
    x, slopes, values = _table(g, inflection)
    below = x <= inflection
    falling_x, rising_slopes = x[below][::-1], slopes[below][::-1]
    left_out = (scores.size - finite.sum()) * values[0]

    def rest(tops, alphas):
        """The other texts' probabilities where |w| is alpha / (1 - alpha) a gap."""
        w = alphas / (1 - alphas) / gaps.max()
        target = np.interp(tops, x, slopes)[..., None] + w[..., None] * gaps
        return np.interp(target, rising_slopes, falling_x, right=0.0)

    def excess_mass(alphas, tops):
        return rest(tops, alphas).sum(axis=-1) + tops - 1

    def solved(tops):
        none, all_but = np.zeros_like(tops), np.full_like(tops, 1 - EPS)
        alphas = find_root(excess_mass, (none, all_but), args=(tops,)).x
        alphas = np.where(excess_mass(none, tops) <= 0, none, alphas)
        return np.where(excess_mass(all_but, tops) >= 0, all_but, alphas)

    def excess(tops):
        total = np.interp(rest(tops, solved(tops)), x, values).sum(axis=-1)
        return total + np.interp(tops, x, values) + left_out - diversity

    def model(top):
        alpha = solved(np.array([top]))
        q = np.zeros(scores.size)
        q[first], q[others] = top, rest(np.array([top]), alpha)[0]
        w = -float(alpha[0] / (1 - alpha[0])) / gaps.max()
        return _polished(g, scores, q, w, diversity)

    # The curve runs from w = 0, all others equal, to where only equals of the best
    # text are left, w = -infinity.
    equals = int((gaps == 0).sum())
    starts, ends = (_balanced(g, inflection, n) for n in (others.size, equals))
    breaks = [inflection, *starts, *ends, 1.0]
    if (uniform := 1 / finite.sum()) < inflection:
        starts.append(uniform)
        breaks += [uniform, min(1 / (equals + 1), inflection)]
    for top in starts:
        q = np.where(finite, (1 - top) / others.size, 0.0)
        q[first] = top
        yield q, NEAREST_WEIGHT
        near = _nearby(g, scores, q, diversity)
        if near is not None:
            yield _polished(g, scores, *near, diversity)
    for low, high in pairwise(np.unique(breaks)):
        middle = np.array([(low + high) / 2])
        most, least = (excess_mass(np.full(1, a), middle) for a in (0, 1 - EPS))
        if least < 0 < most:
            yield from map(model, _roots(excess, low, high))


def _nearby(
    g: ScalarFunction, scores: np.ndarray, q: np.ndarray, diversity: float
) -> tuple[np.ndarray, float] | None:
    """From a maximum of V, to second order, the best model of a slightly lesser V.

    The table's error hides it where V(P) is as great to eight digits.
    """
    value, _, bend = _values(g, q)
    free = np.isfinite(scores) & (bend != 0)
    inverse = np.where(free, 1 / np.where(free, bend, 1), 0.0)
    score = np.where(free, scores, 0.0)
    score = np.where(free, score - inverse @ score / inverse.sum(), 0.0)
    decline = -(inverse * score) @ score
    excess = value.sum() - diversity
    if not (excess > 0 and decline > 0):
        return None
    w = -np.sqrt(2 * excess / decline)
    near = q + w * inverse * score
    return (near, w) if near.min() >= 0 else None


@lru_cache(maxsize=16)
def _table(
    g: ScalarFunction, inflection: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities in [0, 1], g' and g there."""
    small = np.geomspace(1e-15, 1, 2048) * inflection
    even = np.linspace(0, inflection, 2049)
    large = np.linspace(inflection, 1, 2049)
    x = np.unique(np.concatenate([even, small, large]))
    values, slopes, _ = _values(g, x)
    slopes[0] = slope_at_zero(g)
    return x, slopes, values


def _polished(
    g: ScalarFunction, scores: np.ndarray, q: np.ndarray, w: float, diversity: float
) -> tuple[np.ndarray, float]:
    r"""Newton's method for $g'(q_i) = w \phi_i + b$, the sum 1 and a given V.

    Texts whose probability falls to 0 stay there. Where it fails, the start is kept.
    """
    start = q / q.sum(), w
    top = q.argmax()
    others = np.isfinite(scores) & (np.arange(q.size) != top)
    gaps = np.where(others, scores - scores[top], 0.0)
    b = _values(g, q)[1][top]
    for _ in range(20):
        value, slope, bend = _values(g, q)
        # The others follow from w and b; the top's g'' may be 0, so its step is kept.
        free = others & (q > 0)
        slack = np.where(free, (w * gaps + b - slope) / np.where(free, bend, 1), 0.0)
        by_b = np.where(free, 1 / np.where(free, bend, 1), 0.0)
        by_w = by_b * gaps
        marginal = np.where(free, slope, 0.0)
        system = [
            [bend[top], 0.0, -1.0],
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
        if np.abs(step).max() <= 2 * EPS:
            return q, w
    return (q, w) if abs(q.sum() - 1) <= NOISE else start


def _roots(
    function: Callable[[np.ndarray], np.ndarray], low: float, high: float
) -> list[float]:
    """Where a function of a vector crosses 0.

    A dip towards 0 between equal signs is looked at closer: two roots may hide in it.
    """
    from scipy.optimize import brentq  # a fifth of a second that few need

    roots, stretches = [], [(low, high)]
    while stretches:
        low, high = stretches.pop()
        x = np.geomspace(low, high, NUM_POINTS)
        value = function(x)
        side = value >= 0
        for i in np.flatnonzero(side[1:] != side[:-1]):
            roots.append(
                brentq(
                    lambda t: function(np.array([t]))[0], x[i], x[i + 1], rtol=TIGHTEST
                )
            )
        size = np.abs(value)
        left, right = size[:-2] - size[1:-1], size[2:] - size[1:-1]
        hiding = (left > 0) & (right > 0) & (size[1:-1] < np.maximum(left, right))
        same = (side[:-2] == side[1:-1]) & (side[1:-1] == side[2:])
        if high - low > 1e-4 * high:
            stretches += [(x[i], x[i + 2]) for i in np.flatnonzero(hiding & same)]
    return roots


def _values(
    g: ScalarFunction, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """g, with its limit at 0, g' and g'' at each entry of a vector."""
    # Few sizes, as each is compiled; g may be NaN at 0, as -x * log(x) is.
    size = max(1024, 1 << (x.size - 1).bit_length())
    padded = np.full(size, 0.5)
    padded[: x.size] = np.maximum(x, np.finfo(float).tiny)
    value, slope, bend = (np.array(y) for y in _compiled_values(g, padded))
    return value[: x.size], slope[: x.size], bend[: x.size]


@partial(jax.jit, static_argnums=0)
def _compiled_values(g: ScalarFunction, x: Array) -> tuple[Array, Array, Array]:
    slope = jax.grad(g)
    return jax.vmap(g)(x), jax.vmap(slope)(x), jax.vmap(jax.grad(slope))(x)


@lru_cache(maxsize=128)
def inflection_point(g: ScalarFunction) -> float:
    """Where g turns from concave to convex; 1 if it is strictly concave.

    Args:
        g: a scalar function that JAX can trace, differentiable on (0, 1].

    Returns:
        c in (0, 1].

    Raises:
        ValueError: g' does anything else than fall up to c and rise beyond.

    Example:
        >>> round(inflection_point(lambda x: -2 * x**2 + x**3), 12)
        0.666666666667
    """
    try:
        require_concave(g)
    except ValueError as error:
        refusal = error
    else:
        return 1.0
    x, slopes = slopes_of(g)
    least = int(slopes.argmin())
    noise = 8 * EPS * np.maximum(np.abs(slopes[1:]), np.abs(slopes[:-1]))
    wrong_way = np.where(np.arange(x.size - 1) < least, 1, -1) * np.diff(slopes)
    # Above c rounding may hide the rise, as of (1 - x)**1000; below it, g' has to
    # have an inverse. Points below 1e-3 are too close to tell.
    flat = (wrong_way >= -noise)[64:least]
    stretch = (flat[2:] & flat[1:-1] & flat[:-2]).any()
    if 0 < least < x.size - 1 and not stretch and not (wrong_way > noise).any():
        return _roots(lambda x: _values(g, x)[2], x[least - 1], x[least + 1])[0]
    raise ValueError(
        f"{refusal}. QDisc is exact for g that is strictly concave, or concave up to "
        "one point and convex beyond"
    )
