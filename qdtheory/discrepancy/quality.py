r"""QDisc and DRate: the quality that a model can gain over P at no loss of diversity.

$\mathrm{QDisc} = \max_Q U(Q; P) - U(P; P)$ subject to $V(Q) \ge V(P)$, and DRate is
QDisc divided by the range from the quality of the most diverse model to the greatest
quality. Solved exactly for quality linear in Q and $V = \sum_i g(Q_i)$ with g
strictly concave (root-finding in the frontier's weight) or concave up to an
inflection c and convex beyond (`concave_convex`); bounded from both sides for any
concave V (`interior_point`); bounded from below by a search for any other pair.
A result is called exact if an upper bound by weak duality (`weak_duality`,
independent of the solvers) matches it.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from qdtheory.discrepancy.concave_convex import (
    NOISE,
    TIGHTEST,
    chord_height,
    inflection_point,
    models_of_diversity,
    most_diverse_model,
    values_of,
)
from qdtheory.discrepancy.weak_duality import (
    EXACT,
    rounding,
    s_shaped_bound,
    tangent_bound,
)
from qdtheory.pairs.base import LinearPair, Pair, expected_score, total_diversity
from qdtheory.pairs.concave import ConcavePair
from qdtheory.pairs.forms import checked_scores, separable_form
from qdtheory.pairs.scalar_functions import ScalarFunction
from qdtheory.pairs.separable import SeparablePair
from qdtheory.solvers.concavity import require_concave
from qdtheory.solvers.interior_point import (
    Face,
    Optimum,
    best_model,
    face_of,
    favoured,
    most_diverse,
)
from qdtheory.solvers.search import NUM_STARTS, Method, Search, search
from qdtheory.theory.concavity import concavity_claim
from qdtheory.theory.frontier import (
    NEAREST_WEIGHT,
    maximise,
    require_solved,
    saturation_weight_of,
    score_gaps,
)
from qdtheory.world.numbers import EPS

# Bounds meet if they differ by at most this share of the range of scores.
CERTIFIED = 1e-5
# A gain may exceed a bound by this share of that range. A model as diverse as P in 64
# bits may fall short of V(P) by a rounding error e, which near the greatest diversity
# is worth the order of the square root of e in quality: 1e-7.
CONTRADICTION = 1e-6


def bounds_meet(
    lower: float,
    upper: float,
    scores: Float[np.ndarray, " texts"],
    error: float = 0.0,
) -> bool:
    """Whether the bounds on a gain in quality are close enough to be certified.

    Args:
        lower: a gain that some model attains.
        upper: an upper bound on the gain.
        scores: the quality of each text, shape (N,), finite or minus infinity.
        error: error bound of a score, beyond rounding.

    Returns:
        Whether they differ by at most 1e-5 of the range of the finite scores or, if
        these are all equal, by the rounding error of sums of N of them. Invariant to
        the unit of the scores.

    Example:
        >>> scores = np.array([0.0, 1e-6])
        >>> bounds_meet(0.0, 1e-11, scores), bounds_meet(0.0, 1e-8, scores)
        (True, False)
    """
    finite = scores[np.isfinite(scores)]
    rounding = 4 * (finite.size * EPS * float(np.abs(finite).max()) + error)
    return bool(upper - lower <= max(CERTIFIED * float(np.ptp(finite)), rounding))


@dataclass(frozen=True)
class Discrepancy:
    r"""How far P is from Pareto-optimal, and the model that shows it.

    Attributes:
        qdisc: U(Q) - U(P) of the best Q with V(Q) >= V(P), at least 0.
        drate: qdisc / quality_range; None if the range is 0 or infinite. It exceeds
            1 only if the most diverse model itself beats P in quality.
        q: the maximiser Q, shape (N,); if only diversity can be gained, the model
            that gains most. V(q) >= V(p) holds as evaluated in 64 bits; if P itself
            maximises V, up to rounding.
        status: "exact": weak duality shows that qdisc is optimal to within 1e-9 of
            the range of the texts' scores, or the rounding error of quality;
            "certified": the dual of a convex problem or `qdtheory.certify` shows it to
            within 1e-5 of that range; "lower_bound": the best model found. What a
            bound assumes of g or V is stated in `reason`.
        upper_bound: upper bound on QDisc; infinite if none is known.
        quality_range: the greatest quality minus that of `most_diverse`.
        most_diverse: Q', the maximiser of V, of greatest quality if there are
            several, shape (N,).
        dominated_in: "quality" if some model gains quality at no loss of diversity,
            "diversity" if models only gain diversity at no loss of quality, None if
            P is Pareto-optimal, up to rounding or to `upper_bound`, or if a search
            found no such model.
        reason: the method, and why there is no DRate if there is none.
        num_starts: number of starts of a search; None if none was needed.
        num_agreeing: number of starts within a relative 1e-4 of qdisc before the best
            few were polished; it may be 0 although qdisc is right.
        converged: whether a search ended at a local optimum.
        pair: the pair that this result is for.
        p: the real distribution that this result is for, shape (N,).
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
    pair: Pair | None = field(default=None, repr=False)
    p: Float[Array, " texts"] | None = field(default=None, repr=False)


def solve_or_search(
    pair: Pair,
    p: np.ndarray,
    *,
    method: Literal["exact"] | Method | None = None,
    num_starts: int = NUM_STARTS,
    key: PRNGKeyArray | None = None,
) -> Discrepancy:
    """Compute the discrepancy by the method that the pair's form allows, uncertified.

    Args:
        pair: any pair that JAX can differentiate.
        p: the real distribution, already checked, shape (N,).
        method: as in `qdtheory.quality_discrepancy`.
        num_starts: likewise.
        key: likewise.

    Returns:
        The discrepancies with the models that attain them.

    Raises:
        TypeError: "exact" was asked for a pair without scores or without g.
        ValueError: as in `qdtheory.quality_discrepancy`.

    Example:
        >>> from qdtheory.pairs.named import LL_NRR
        >>> solve_or_search(LL_NRR, np.array([0.6, 0.3, 0.1])).status
        'exact'
    """
    separable = separable_form(pair)
    if separable is not None and (
        method == "exact" or (method is None and _is_solvable(separable))
    ):
        return _solved(separable, p)
    if isinstance(pair, ConcavePair) and method is None:
        return _convex(pair, p)
    if method == "exact":
        raise TypeError(
            "QDisc is exact for a pair with a score for each text and a diversity "
            "that sums g(Q_i), a SeparablePair or LinearPair; got a "
            f"{type(pair).__name__}"
        )
    found = search(pair, p, method=method or "ascent", num_starts=num_starts, key=key)
    return _searched(pair, p, found)


def _is_solvable(pair: SeparablePair | LinearPair) -> bool:
    """Whether g has one of the two shapes, as far as this can be determined."""
    try:
        inflection = inflection_point(pair.g)
    except ValueError:
        return False
    return concavity_claim(pair.g, inflection) is not None


def _with_rate(
    *, qdisc: float, quality_range: float, reason: str, **fields: Any
) -> Discrepancy:
    """Build the result, with DRate or the reason why there is none."""
    drate = None
    if 0 < quality_range < np.inf:
        drate = qdisc / quality_range
    else:
        size = "infinite" if quality_range else "0"
        reason += f" There is no DRate, as the quality range is {size}."
    return Discrepancy(
        qdisc=qdisc,
        drate=drate,
        quality_range=quality_range,
        reason=reason,
        **fields,
    )


def _searched(pair: Pair, p: np.ndarray, found: Search) -> Discrepancy:
    """Report the result of a search as a lower bound."""
    qdisc, quality_range = float(found.gain), float(found.quality_range)
    quality = float(pair.quality(p, p))
    noise = NOISE * max(abs(quality), abs(quality + qdisc))
    q, dominated_in = found.q, "quality" if qdisc > noise else None
    if dominated_in is None:
        loss = quality - float(pair.quality(found.most_diverse, p))
        rise = float(pair.diversity(found.most_diverse) - pair.diversity(p))
        if loss <= 0 and rise > NOISE * abs(float(pair.diversity(p))):
            q, dominated_in = found.most_diverse, "diversity"
    reason = f"A search of {found.num_starts} starts; none gained quality."
    if dominated_in == "quality":
        reason = (
            f"A search of {found.num_starts} starts; before the best few were "
            f"polished, {found.num_agreeing} came within 1e-4 of the best gain, "
            "relatively."
        )
    if found.learning_rate is not None:
        reason = (
            "SGD on a penalty: the best feasible iterate, at the learning rate "
            f"{float(found.learning_rate):g}."
        )
    return _with_rate(
        qdisc=qdisc,
        q=q,
        status="lower_bound",
        upper_bound=np.inf,
        quality_range=quality_range if quality_range > noise else 0.0,
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
    scores = checked_scores(pair, p)
    inflection = inflection_point(pair.g)
    most_diverse = most_diverse_model(pair.g, inflection, scores, scores >= -np.inf)
    quality_range = _range(scores, most_diverse)
    q, qdisc, dominated_in, weight = _best_model(pair, p, scores, inflection)
    quality = float(expected_score(p, scores))
    spread = float(np.ptp(scores[np.isfinite(scores)]))
    # Two qualities are distinguishable only up to their rounding error.
    close = max(EXACT * spread, NOISE * float(expected_score(p + q, np.abs(scores))))
    enough = quality + qdisc + close / 2
    bound = _bound(pair, p, scores, inflection, q, weight, enough)
    upper = max(bound - quality, qdisc)
    reason = "A root in the frontier's weight: g is strictly concave"
    if inflection < 1:
        reason = (
            "Roots on a curve in the largest probability: g is concave up to "
            f"{inflection:.6g} and convex beyond"
        )
    claim = concavity_claim(pair.g, inflection)
    exact = claim is not None and upper - qdisc <= close
    reason += f", {claim or 'which is not proved'}."
    if not exact:
        reason += f" 64 bits leave the bounds {upper - qdisc:.0e} apart."
    return _with_rate(
        qdisc=qdisc,
        q=jnp.asarray(q),
        status="exact" if exact else "lower_bound",
        upper_bound=upper if claim else np.inf,
        quality_range=quality_range,
        most_diverse=jnp.asarray(most_diverse),
        dominated_in=dominated_in,
        reason=reason,
    )


def _bound(
    pair: SeparablePair | LinearPair,
    p: np.ndarray,
    scores: np.ndarray,
    inflection: float,
    q: np.ndarray,
    weight: float,
    enough: float,
) -> float:
    """Upper bound on the quality of models as diverse as P, by weak duality."""
    values = values_of(pair.g, p)[0]
    least = float(values.sum())
    least -= rounding(p.size) * float(np.abs(values).sum())
    if inflection < 1:
        found = _multipliers(pair.g, scores, q)
        return s_shaped_bound(pair.g, inflection, scores, least, enough, found)
    possible = np.isfinite(scores)
    if p[possible].min() == p[possible].max():
        # By Jensen's inequality no other model on these texts is as diverse.
        return float(expected_score(p, scores))
    unit = float(np.ptp(scores[possible])) / chord_height(pair.g)
    bound = float(scores.max())
    # Near the greatest diversity the best multiplier is lost to rounding: try several.
    for price in (-1 / weight, *(unit * np.geomspace(1e2, 1e8, 13))):
        if bound <= enough:
            break
        x = np.asarray(maximise(pair.g, scores, -1 / price)[0])
        new = tangent_bound(pair.g, scores, price, x) - price * least
        bound = min(bound, new + rounding(1) * (abs(new) + price * abs(least)))
    return bound


def _multipliers(
    g: ScalarFunction, scores: np.ndarray, q: np.ndarray
) -> tuple[float, float] | None:
    r"""Multipliers $\eta$, $\nu$ with $u_i + \eta g'(q_i) = \nu$ at two texts of q."""
    on = np.flatnonzero(q > 0)
    best, worst = on[scores[on].argmax()], on[scores[on].argmin()]
    slopes = values_of(g, q)[1]
    rise, fall = scores[best] - scores[worst], slopes[worst] - slopes[best]
    if not (rise > 0 and fall > 0):
        return None
    price = float(rise / fall)
    return price, float(scores[best] + price * slopes[best])


def _range(scores: np.ndarray, most_diverse: np.ndarray) -> float:
    """The greatest quality minus that of the most diverse model."""
    size = float(scores.max() - expected_score(most_diverse, scores))
    return size if size > NOISE * np.abs(scores[np.isfinite(scores)]).max() else 0.0


def _best_model(
    pair: SeparablePair | LinearPair,
    p: np.ndarray,
    scores: np.ndarray,
    inflection: float,
) -> tuple[np.ndarray, float, Literal["quality", "diversity"] | None, float]:
    """Find the feasible model of greatest quality, its gain, dominance and weight."""
    start = float(pair.diversity(p))
    noise = NOISE * np.abs(values_of(pair.g, p)[0]).sum()
    finite = np.isfinite(scores)
    inner = most_diverse_model(pair.g, inflection, scores, finite)
    modes = np.asarray(score_gaps(scores)) == 0
    on_modes = most_diverse_model(pair.g, inflection, scores, modes)
    excess = float(pair.diversity(on_modes)) - start
    if excess >= -noise:
        points = [(on_modes, -np.inf)]
    elif inflection == 1:
        points = [_on_frontier(pair, p, scores, inner, start)]
    else:
        points = models_of_diversity(pair.g, inflection, scores, start)
    best, gain, weight = p, 0.0, -np.inf
    for point, w in points:
        q = _repaired(pair, point, inner, start, noise)
        rise = float(expected_score(q - p, scores))
        if rise > gain or inflection == 1:
            weight = w
        if rise > gain:
            best, gain = q, rise
    error = NOISE * float(expected_score(p + best, np.abs(scores)))
    # An error in V moves Q along the frontier and changes U by 1 / |w| times as much;
    # near the maximum of V, where w is 0, by the order of its square root.
    error += min(2 * noise / -weight, np.sqrt(noise) * np.ptp(scores[finite]))
    if gain > error:
        return best, gain, "quality", weight
    if expected_score(on_modes - p, scores) <= error and excess > 2 * noise:
        return on_modes, gain, "diversity", weight
    return best, gain, None, weight


def _repaired(
    pair: SeparablePair | LinearPair | ConcavePair,
    q: np.ndarray,
    inner: np.ndarray,
    least: float,
    noise: float,
) -> np.ndarray:
    """Mix the model with the most diverse one until its V is at least `least`."""
    for share in (0.0, *np.geomspace(1e-17, 1, 52)):
        mixed = (1 - share) * q + share * inner
        if pair.diversity(mixed) >= least:
            return mixed
    # P maximises V, so the maximisers differ only by rounding.
    return q if pair.diversity(q) >= least - 2 * noise else inner


def _on_frontier(
    pair: SeparablePair | LinearPair,
    p: np.ndarray,
    scores: np.ndarray,
    inner: np.ndarray,
    diversity: float,
) -> tuple[np.ndarray, float]:
    """Frontier point with a given V, for concave g; `inner` is the end at w = 0."""
    from scipy.optimize import brentq  # a fifth of a second that few need

    finite = scores[np.isfinite(scores)]
    # Scores on this scale have weights of order 1, where alpha is precise.
    unit = chord_height(pair.g) / float(np.ptp(finite))
    scaled = jnp.asarray((scores - finite.max()) * unit)

    def weight(alpha):
        return -np.inf if alpha == 1 else min(NEAREST_WEIGHT, alpha / (alpha - 1))

    def model(alpha):
        if alpha == 0:
            return inner
        return np.asarray(maximise(pair.g, scaled, weight(alpha))[0])

    def excess(alpha):
        return float(total_diversity(pair.g, model(alpha))) - diversity

    if excess(0.0) <= 0:  # P is the most diverse
        return p, NEAREST_WEIGHT
    lowest = float(saturation_weight_of(pair.g, scaled))
    end = 1.0 if np.isinf(lowest) else lowest / (lowest - 1)
    alpha = brentq(excess, 0.0, end, xtol=1e-300, rtol=TIGHTEST)
    q = model(alpha)
    require_solved(jnp.abs(q.sum() - 1))
    # If g'' is nearly 0 the sum is off by 1e-11, which would add to the gain.
    return q / q.sum(), weight(alpha) * unit


# --- Concave diversity --------------------------------------------------------------
def _convex(pair: ConcavePair, p: np.ndarray) -> Discrepancy:
    """QDisc between two bounds, and DRate, for concave V."""
    quality = float(pair.quality(p, p))  # checks the shape of the scores
    scores, start = checked_scores(pair, p), float(pair.diversity(p))
    face = face_of(pair.diversity, scores)
    top = most_diverse(face)
    inner, noise = favoured(face, top, scores), NOISE * top.size
    on_modes = _most_diverse_on_modes(pair, scores)
    excess = float(pair.diversity(on_modes)) - start
    claim = ""
    if excess >= -noise:
        q, upper, price = on_modes, float(scores.max()) - quality, 0.0
    else:
        best = best_model(face, scores - quality, p)
        q, upper, price = best.q, best.upper, best.price
        claim = _tried(face, best, p)
    q = _repaired(pair, q, inner, start, noise)
    gain = max(float(expected_score(q - p, scores)), 0.0)
    error = NOISE * float(expected_score(p + q, np.abs(scores)))
    spread = float(np.ptp(scores[np.isfinite(scores)]))
    error += min(2 * noise * price, np.sqrt(noise) * spread)
    dominated_in = "quality" if gain > error else None
    at_greatest = expected_score(on_modes - p, scores) <= error
    if dominated_in is None and at_greatest and excess > 2 * noise:
        q, dominated_in = on_modes, "diversity"
    elif dominated_in is None:
        q = p
    rounded = NOISE * float(expected_score(p + q, np.abs(scores)))
    if gain > upper + CONTRADICTION * spread + rounded:
        raise ValueError(
            f"the diversity must be concave: a model gains {gain:.6g}, more than the "
            f"{upper:.6g} that its tangents allow; use FunctionPair, and a search"
        )
    upper = max(upper, gain)
    everywhere = face_of(pair.diversity, np.zeros(p.size))
    if most_diverse(everywhere).value > top.value + noise:
        inner = everywhere.model(most_diverse(everywhere).x)
    return _with_rate(
        qdisc=gain,
        q=jnp.asarray(q),
        status="certified" if bounds_meet(gain, upper, scores) else "lower_bound",
        upper_bound=upper,
        quality_range=_range(scores, inner),
        most_diverse=jnp.asarray(inner),
        dominated_in=dominated_in,
        reason=f"A convex problem, whose bounds are {upper - gain:.0e} apart{claim}.",
    )


def _tried(face: Face, best: Optimum, p: np.ndarray) -> str:
    """State the concavity that a bound assumes, unless a search refutes it."""
    if best.tangent is None:
        return ""
    at, heights = (face.model(x) for x in (best.tangent.x, best.tangent.ends))
    models = np.stack([p, best.q])
    looks = require_concave(face.diversity, face.texts, at, heights, models)
    return (
        f" if V is concave, as the pair states; no violation found at {looks:,} models"
    )


def _most_diverse_on_modes(pair: ConcavePair, scores: np.ndarray) -> np.ndarray:
    """Find the most diverse of the models of greatest quality."""
    modes = np.where(scores == scores.max(), 0.0, -np.inf)
    face = face_of(pair.diversity, modes)
    if len(face.texts) == 1:  # a slope may be infinite there
        return face.model(np.ones(1))
    return face.model(most_diverse(face).x)
