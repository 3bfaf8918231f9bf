r"""QDisc and DRate: the quality that a model can gain over P at no loss of diversity.

$\mathrm{QDisc} = \max_Q U(Q; P) - U(P; P)$ subject to $V(Q) \ge V(P)$, and DRate is
QDisc divided by the range from the quality of the most diverse model to the greatest
quality (Li et al. 2020, section 6). Solved exactly for quality linear in Q and
$V = \sum_i g(Q_i)$ with g strictly concave (root-finding in the frontier's weight) or
concave up to an inflection c and convex beyond (`bounds/concave_convex.py`); bounded
from both sides for any concave V (`bounds/interior_point.py`); bounded from below by a
search for any other pair.

A result is called exact if an upper bound by weak duality, independent of the solvers,
matches it: for any price $\eta \ge 0$ of diversity, every Q with $V(Q) \ge V(P)$ has
$U(Q) \le \max_{Q'} [U(Q') + \eta V(Q')] - \eta V(P)$. On the frontier $\eta = -1 / w$.
`certify` adds to any result an upper bound that does not trust it. A *seal* is the
status "exact" or "certified", which `bounds/seal.py` alone gives.

`_methods` says what solves and what bounds each form of a pair; the solvers follow.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from qdtheory import forms, frontier, pairs
from qdtheory.bounds import (
    concave_convex,
    cubic,
    duality,
    envelope,
    interior_point,
    quadratic,
    tails,
)
from qdtheory.bounds.bounds import Bounds, not_below
from qdtheory.bounds.concavity import look_for_violations
from qdtheory.bounds.cubic import CubicCertificate
from qdtheory.bounds.seal import distinguishable, seal
from qdtheory.distributions import as_distribution, rounding_note
from qdtheory.forms import Form, Functional, Problem, expected_score
from qdtheory.formulas.code import only_tried
from qdtheory.functions import Function
from qdtheory.pairs import BleuPair, Pair, as_pair
from qdtheory.search import NUM_STARTS, Search, search_each
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import (
    CONTRADICTION,
    EPS,
    MARGIN,
    NOISE,
    TIGHTEST,
    PerText,
    TextArray,
    one_of,
)

Method: TypeAlias = Literal["exact", "convex", "ascent", "sgd", "certified"]
SUMMED = (
    "QDisc is exact for a pair with a score for each text and a diversity that sums "
    "g(Q_i), a SeparablePair or LinearPair"
)
CONCAVE = "QDisc is a convex problem for a ConcavePair or a VendiPair"
# What a solver may stop with on a g of a kind that it was not made for.
STOPS = (ArithmeticError, IndexError, RuntimeError, ValueError)


class Discrepancy(Bounds):
    r"""How far P is from Pareto-optimal, and the model that shows it.

    Attributes:
        qdisc: as in `Bounds`: U(Q) - U(P) of the best Q with V(Q) >= V(P).
        upper_bound: as in `Bounds`.
        q: the maximiser Q, shape (N,); if only diversity can be gained, the model
            that gains most. V(q) >= V(p) holds as evaluated in 64 bits; if P itself
            maximises V, up to rounding.
        status: "exact": weak duality shows that qdisc is optimal to within 1e-9 of
            what a model can gain (the range of the scores, or the distance from U(P)
            to the greatest score if that is less), or the rounding error of quality;
            "certified": the dual of a convex problem or `qdtheory.certify` shows it to
            within 1e-5 of that; "lower_bound": the best model found. What a bound
            assumes of V, and what keeps a result from a seal, is stated in `reason`.
        reason: the method, and why there is no DRate if there is none.
        drate: qdisc / quality_range; None if the range is 0 or infinite. It exceeds
            1 only if the most diverse model itself beats P in quality.
        quality_range: the greatest quality minus that of `most_diverse`.
        most_diverse: Q', the maximiser of V, of greatest quality if there are
            several, shape (N,).
        dominated_in: "quality" if some model gains quality at no loss of diversity,
            "diversity" if models only gain diversity at no loss of quality, None if
            P is Pareto-optimal, up to rounding or to `upper_bound`, or if a search
            found no such model.
        num_starts: number of starts of a search; None if none was needed.
        num_agreeing: number of starts within a relative 1e-4 of qdisc before the best
            few were polished; it may be 0 although qdisc is right.
        converged: whether a search ended at a local optimum.
        pair: the pair that this result is for.
        p: the real distribution that this result is for, shape (N,).
    """

    drate: float | None = field(init=False)
    quality_range: float
    most_diverse: TextArray
    dominated_in: Literal["quality", "diversity"] | None
    num_starts: int | None = None
    num_agreeing: int | None = None
    converged: bool | None = None
    pair: Pair | None = field(default=None, repr=False)
    p: TextArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        known = 0 < self.quality_range < np.inf
        drate = self.qdisc / self.quality_range if known else None
        object.__setattr__(self, "drate", drate)


def quality_discrepancy(
    pair: Pair | str,
    p: PerText,
    *,
    method: Method | None = None,
    num_starts: int = NUM_STARTS,
) -> Discrepancy:
    r"""QDisc and DRate of a pair at one real distribution.

    Exact if quality is linear in Q and diversity is $\sum_i g(Q_i)$ with g strictly
    concave on [0, 1], or concave up to a point and convex beyond. BLEU has this form
    when its order equals the single length of the texts: it then tests whether the
    text is among the references. A `ConcavePair` is solved as a convex problem, which
    bounds QDisc from both sides. A pair with code gets no seal, at best a lower bound.

    Args:
        pair: any pair that JAX can differentiate, or the name of one ("LL-SE").
        p: the real distribution, shape (N,).
        method: "exact"; "convex"; "ascent" or "sgd", searches, see
            `qdtheory.search.search`; None for "exact" or "convex" if they apply, else
            "ascent"; "certified" for the same, bounded by `qdtheory.certify`.
        num_starts: number of starts in each round of "ascent".

    Returns:
        The discrepancies with the models that attain them.

    Raises:
        TypeError: "exact" for a pair without scores or without g, "convex" for one
            that does not state a concave diversity, or "certified" for a pair for
            which no bound is known.
        ValueError: `p` is not a distribution, its own quality is not finite, a score
            is NaN or $+\infty$, the method is unknown, "exact" is requested for g of
            another shape, or a `ConcavePair` is not concave.

    References:
        Li et al. 2020, section 6; the exact solutions are ours.

    Claims: T3.10, N5.7, N16.2.

    Example:
        >>> from qdtheory.pairs import CR_NRR, LL_NRR
        >>> p = np.array([0.6, 0.3, 0.1])
        >>> print(f"{quality_discrepancy(LL_NRR, p).qdisc:.6f}")
        0.013566
        >>> quality_discrepancy(CR_NRR, p).dominated_in is None
        True
    """
    if method is not None:
        one_of(get_args(Method), method=method)
    problem = pairs.pose(pair, p)
    if method == "certified":
        _bound_of(problem.form)  # refuses before a search, not after it
    found = _solve(problem, method, num_starts)
    if method == "certified":
        found = _certified(problem, found)
    return replace(found, reason=found.reason + rounding_note(p, problem.p))


def certify(
    pair: Pair | str,
    p: PerText,
    found: Discrepancy | PerText | None = None,
    *,
    tolerance: float | None = None,
    max_steps: int | None = None,
) -> Bounds:
    """Bound QDisc from above, and improve the model that was found.

    By the method that the pair's form allows: branch and bound on the tails of the word
    counts for BLEU-1 on texts of one length; the doubly nonnegative relaxation for
    kernels and for BLEU of any order with one Self-BLEU reference; the cubic relaxation
    for BLEU of any order with two, on at most 64 texts, whose certificate `cubic_bound`
    checks; the concave envelope for sums of g(Q_i), where g is a formula with two
    bounded derivatives on [0, 1], NRR, or the g of single-token BLEU; a convex problem
    for a `VendiPair`. Code is refused.

    Args:
        pair: the pair, or its name, or that of the search.
        p: the real distribution, shape (N,), or that of the search.
        found: the result of `quality_discrepancy(pair, p)`; or a model to improve,
            shape (N,); P itself by default. The better it is, the sooner the bounds
            meet.
        tolerance: width at which to stop, as a share of the range of the finite
            scores, positive; 1e-6 by default. The doubly nonnegative relaxation and a
            convex problem take none, as they do not split.
        max_steps: number of splits at which to stop, 1000 by default, or of steps of
            the cubic relaxation, 3000 by default.

    Returns:
        The two bounds, with what shows the upper one as `evidence`; apart if the
        relaxation is not tight or the steps are exhausted. For a `Discrepancy`: that
        result with its `upper_bound`, and status "certified" if the bound exceeds
        `qdisc`, recomputed from the model, by at most 1e-5 of the range of the texts'
        scores; exact and certified results are returned unchanged.

    Raises:
        TypeError: no bound is known for the pair, or it has code.
        ValueError: `found` is the result of another pair or another distribution, `p`
            or a model is not a distribution, too many texts, a tolerance that is not
            positive or a limit where the method takes none, or a g whose shape
            interval arithmetic cannot determine.
        ImportError: the doubly nonnegative relaxation without cvxpy.
        RuntimeError: a model gains more than its bound, which would be a bug in this
            library.

    Claims: N8.7, N8.21, N17.6, N17.8, N17.10, N17.13, N17.22.

    Example:
        >>> from qdtheory import BleuPair, TextSpace
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=2), 1, 2, 3)
        >>> p = np.array([0.4, 0.3, 0.2, 0.1])
        >>> certify(pair, p, quality_discrepancy(pair, p)).status
        'certified'
        >>> certify(pair, p).gap <= 1e-6
        True
    """
    problem = pairs.pose(pair, p)
    bound, _ = _bound_of(problem.form)
    given = {"tolerance": tolerance, "max_steps": max_steps}.items()
    limits: dict[str, Any] = {name: x for name, x in given if x is not None}
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    if isinstance(found, Discrepancy):
        _require_subject(as_pair(pair), problem.p, found)
        return _certified(problem, found, **limits)
    start = problem.p if found is None else found
    start = np.asarray(as_distribution(start, "found", problem.p.size))
    bounds = bound(problem, start, **limits)
    return replace(bounds, reason=bounds.reason + rounding_note(p, problem.p))


# --- What solves and what bounds a pair -----------------------------------------------
# Of the problem at P: its QDisc; and bounds on it, given a model to begin with.
Bound: TypeAlias = Callable[..., Bounds]


def _methods(form: Form) -> tuple[Callable | None, tuple[Bound, str] | None]:
    """The solver of a form other than a search, and what bounds its QDisc, in words."""
    by_tails = _tails, tails.METHOD
    match form:
        case forms.Vendi():
            return _convex, (_convex_bounds, "a convex problem")
        case forms.Concave():
            return _convex, None
        # For texts of one token the tails are the probabilities: a route of their own.
        case forms.Separable(pair=BleuPair(max_order=1)):
            return _exact, by_tails
        case forms.Separable():
            return _exact, (envelope.envelope_bounds, envelope.ENVELOPE)
        case forms.Bleu(pair=BleuPair(max_order=1, space=TextSpace(lengths=(_,)))):
            return None, by_tails
        case forms.Kernel() | forms.Bleu(pair=BleuPair(num_self_references=1)):
            return None, (_relaxed, quadratic.METHOD)
        case forms.Bleu(pair=BleuPair(num_self_references=2)):
            return None, (_cubic, cubic.METHOD)
    return None, None


def _solve(problem: Problem, method: Method | None, num_starts: int) -> Discrepancy:
    """QDisc by the method that was asked for, or that the pair's form allows."""
    form, result, stopped = problem.form, None, ""
    solver, _ = _methods(form)
    for name, of, needed in (("exact", _exact, SUMMED), ("convex", _convex, CONCAVE)):
        if method == name and solver is not of:
            raise TypeError(f"{needed}; got a {type(form.pair).__name__}")
    by_search = method in ("ascent", "sgd")
    if solver is _exact and not by_search and method != "exact":
        by_search = not _is_solvable(form.g)
    if by_search:
        solver = None
    if solver is _exact:
        _ = problem.real_diversity, problem.scores  # raise if they are not finite
    if solver is not None:
        try:
            with warnings.catch_warnings(action="ignore"):
                result = solver(problem)
        except STOPS as error:
            if solver is not _exact or method == "exact":
                raise
            stopped = f"The exact solver stopped: {error}. "
    if result is None:
        way = "sgd" if method == "sgd" else "ascent"
        search = search_each([problem], method=way, num_starts=num_starts)
        result = _searched(problem, jax.tree.map(lambda x: x[0], search))
    reason = stopped + result.reason
    if result.drate is None:
        size = "infinite" if result.quality_range else "0"
        reason += f" There is no DRate, as the quality range is {size}."
    return replace(result, reason=reason, pair=form.pair, p=jnp.asarray(problem.p))


# --- A search -------------------------------------------------------------------------
def _searched(problem: Problem, search: Search) -> Discrepancy:
    """Report the result of a search as a lower bound."""
    qdisc, quality_range = float(search.gain), float(search.quality_range)
    quality = problem.real_quality
    noise = NOISE * max(abs(quality), abs(quality + qdisc))
    q, dominated_in = search.q, "quality"
    if qdisc <= noise + _price_of_rounding(problem, search) * quality_range:
        q, qdisc, dominated_in = jnp.asarray(problem.p), 0.0, None
        loss = quality - problem.quality(search.most_diverse)
        rise = problem.diversity(search.most_diverse) - problem.real_diversity
        if loss <= 0 and rise > NOISE * abs(problem.real_diversity):
            q, dominated_in = search.most_diverse, "diversity"
    outcome = "none gained quality"
    if dominated_in == "quality":
        outcome = (
            f"before the best few were polished, {search.num_agreeing} came within "
            "1e-4 of the best gain, relatively"
        )
    reason = f"A search of {search.num_starts} starts; {outcome}."
    if search.learning_rate is not None:
        reason = (
            "SGD on a penalty: the best feasible iterate, at the learning rate "
            f"{float(search.learning_rate):g}."
        )
    return Discrepancy(
        qdisc=qdisc,
        q=q,
        status="lower_bound",
        upper_bound=np.inf,
        quality_range=quality_range if quality_range > noise else 0.0,
        most_diverse=search.most_diverse,
        dominated_in=dominated_in,
        reason=reason,
        num_starts=search.num_starts,
        num_agreeing=int(search.num_agreeing),
        converged=bool(search.converged),
    )


def _price_of_rounding(problem: Problem, search: Search) -> float:
    """What a rounding error of V may gain near its maximum, in the range of U.

    There V falls with the square of the step, so a step costs the root of the error.
    """
    towards_one = (problem.p + (np.arange(problem.p.size) == problem.p.argmax())) / 2
    height = problem.diversity(search.most_diverse) - problem.diversity(towards_one)
    noise = NOISE * abs(problem.real_diversity)
    return float(np.sqrt(noise / height)) if height > noise else 0.0


# --- What both solvers share ----------------------------------------------------------
@dataclass(frozen=True)
class _Ends:
    """The two ends of the frontier, and the rounding error of V."""

    most_diverse: np.ndarray  # the most diverse model on the texts of finite score
    on_modes: np.ndarray  # the most diverse one on the texts of greatest score
    noise: float


def _dominated_in(
    problem: Problem, q: np.ndarray, ends: _Ends, price: float
) -> Literal["quality", "diversity"] | None:
    """What P lacks beyond rounding: quality, or diversity at the greatest quality.

    Args:
        problem: the pair at P.
        q: the best model.
        ends: of the frontier.
        price: the multiplier of diversity at the best model.
    """
    # An error in V moves Q along the frontier and changes U by as much times the price;
    # near the maximum of V, where that is infinite, by the order of its square root.
    noise, p, scores = ends.noise, problem.p, problem.scores
    error = min(2 * noise * price, np.sqrt(noise) * problem.spread)
    error += NOISE * problem.magnitude(q)
    gain, at_modes = (float(expected_score(x - p, scores)) for x in (q, ends.on_modes))
    if gain > error:
        return "quality"
    excess = problem.diversity(ends.on_modes) - problem.real_diversity
    return "diversity" if at_modes <= error and excess > 2 * noise else None


def _quality_range(scores: np.ndarray, most_diverse: np.ndarray) -> float:
    """The greatest quality minus that of the most diverse model."""
    size = float(scores.max() - expected_score(most_diverse, scores))
    return size if size > NOISE * np.abs(scores[np.isfinite(scores)]).max() else 0.0


def _as_diverse(problem: Problem, q: np.ndarray, ends: _Ends) -> np.ndarray:
    """Mix the model with the most diverse one until it is as diverse as P."""
    least = problem.real_diversity
    for share in (0.0, *np.geomspace(1e-17, 1, 52)):
        mixed = (1 - share) * q + share * ends.most_diverse
        if problem.diversity(mixed) >= least:
            return mixed
    # P maximises V, so the maximisers differ only by rounding.
    near = problem.diversity(q) >= least - 2 * ends.noise
    return q if near else ends.most_diverse


# --- Sums of g(Q_i): exact ------------------------------------------------------------
def _is_solvable(g: Function) -> bool:
    """Whether g is proved to have one of the two shapes, or is code that seems to."""
    try:
        inflection = concave_convex.inflection_point(g)
    except ValueError:
        return False
    return g.formula is None or g.is_concave(inflection)


@np.errstate(all="ignore")
def _exact(problem: Problem) -> Discrepancy:
    """QDisc and DRate where `inflection_point` accepts the pair's g."""
    scores, g = problem.scores, problem.g
    inflection = concave_convex.inflection_point(g)
    all_texts = np.ones(scores.size, bool)
    most_diverse = concave_convex.most_diverse_model(g, inflection, scores, all_texts)
    q, qdisc, dominated_in, price = _best_model(problem, inflection)
    proved, upper = g.is_concave(inflection), np.inf
    if proved:
        # Half of what a seal allows, so that both bounds may be off by a rounding.
        enough = problem.real_quality + qdisc + distinguishable(problem, q) / 2
        bound = _upper_bound(problem, inflection, q, price, enough)
        upper = not_below(problem, q, qdisc, bound - problem.real_quality)
    status, fault = seal(problem, q, qdisc, upper, "exact")
    reason = "A root in the frontier's weight: g is strictly concave"
    if inflection < 1:
        reason = (
            "Roots on a curve in the largest probability: g is concave up to "
            f"{inflection:.6g} and convex beyond"
        )
    reason += f", {'proved' if proved else 'which is not proved'}."
    if fault:
        reason += f" No seal: {fault}."
    elif status != "exact" and proved:
        reason += f" 64 bits leave the bounds {upper - qdisc:.0e} apart."
    return Discrepancy(
        qdisc=qdisc,
        q=jnp.asarray(q),
        status=status,
        upper_bound=upper,
        quality_range=_quality_range(scores, most_diverse),
        most_diverse=jnp.asarray(most_diverse),
        dominated_in=dominated_in,
        reason=reason,
    )


def _best_model(
    problem: Problem, inflection: float
) -> tuple[np.ndarray, float, Literal["quality", "diversity"] | None, float]:
    """Find the feasible model of greatest quality, its gain, dominance and price."""
    g, p, scores = problem.g, problem.p, problem.scores
    known = g, inflection, scores
    modes = np.asarray(frontier.score_gaps(scores)) == 0
    chosen = np.isfinite(scores), modes
    inner, outer = (
        concave_convex.most_diverse_model(*known, texts) for texts in chosen
    )
    ends = _Ends(inner, outer, NOISE * np.abs(g.compiled_jet(p).value).sum())
    least = problem.real_diversity
    if problem.diversity(ends.on_modes) - least >= -ends.noise:
        points = [(ends.on_modes, -np.inf)]
    elif inflection == 1:
        points = [_on_frontier(problem, ends.most_diverse)]
    else:
        points = concave_convex.models_of_diversity(*known, least)
    best, gain, weight = p, 0.0, -np.inf
    for point, w in points:
        q = _as_diverse(problem, point, ends)
        rise = float(expected_score(q - p, scores))
        if rise > gain or inflection == 1:
            weight = w
        if rise > gain:
            best, gain = q, rise
    price = -1 / weight  # the frontier falls by dV = w dU
    dominated_in = _dominated_in(problem, best, ends, price)
    best = ends.on_modes if dominated_in == "diversity" else best
    return best, gain, dominated_in, price


def _on_frontier(
    problem: Problem, most_diverse: np.ndarray
) -> tuple[np.ndarray, float]:
    """Frontier point as diverse as P, for concave g; its end at w = 0 is known."""
    from scipy.optimize import brentq  # a fifth of a second that few need

    g, scores = problem.g, problem.scores
    # Scores on this scale have weights of order 1, where alpha is precise.
    unit = concave_convex.chord_height(g) / problem.spread
    scaled = jnp.asarray((scores - scores.max()) * unit)

    def model(alpha: float) -> np.ndarray:
        if alpha == 0:
            return most_diverse
        return np.asarray(frontier.maximise(g, scaled, frontier.weight_of(alpha))[0])

    def excess(alpha: float) -> float:
        return problem.diversity(model(alpha)) - problem.real_diversity

    if excess(0.0) <= 0:  # P is the most diverse
        return problem.p, frontier.NEAREST_WEIGHT
    lowest = float(frontier.saturation_weight_of(g, scaled))
    end = 1.0 if np.isinf(lowest) else lowest / (lowest - 1)
    alpha: Any = brentq(excess, 0.0, end, xtol=1e-300, rtol=TIGHTEST)
    q = model(alpha)
    frontier.require_solved(jnp.abs(q.sum() - 1))
    # If g'' is nearly 0 the sum is off by 1e-11, which would add to the gain.
    return q / q.sum(), frontier.weight_of(alpha) * unit


def _upper_bound(
    problem: Problem, inflection: float, q: np.ndarray, price: float, enough: float
) -> float:
    """Upper bound on the quality of models as diverse as P, by weak duality.

    The maximum of U + price V over all models, minus price V(P), from the tangents of g
    (or, beyond the inflection, its chords).

    Args:
        problem: the pair at P.
        inflection: that of g.
        q: the best model known.
        price: the multiplier of diversity there.
        enough: stop once the bound is at most this.
    """
    g, p, scores = problem.g, problem.p, problem.scores
    values, _, error = duality.accurate_values(g, p)
    # V(P) rounded down: the bound falls with it.
    least = float(values.sum())
    least -= duality.rounding(p.size, error) * float(np.abs(values).sum())
    if inflection < 1:
        found = _multipliers(g, scores, q)
        return duality.concave_convex_bound(g, inflection, scores, least, enough, found)
    possible = np.isfinite(scores)
    if p[possible].min() == p[possible].max():
        # By Jensen's inequality no other model on these texts is as diverse.
        return problem.real_quality
    unit = problem.spread / concave_convex.chord_height(g)
    bound = float(scores.max())
    # Near the greatest diversity the best multiplier is lost to rounding: try several.
    for tried in (price, *(unit * np.geomspace(1e2, 1e8, 13))):
        if bound <= enough:
            break
        x = np.asarray(frontier.maximise(g, scores, -1 / tried)[0])
        new = duality.tangent_bound(g, scores, tried, x) - tried * least
        bound = min(bound, new + duality.rounding(1) * (abs(new) + tried * abs(least)))
    return bound


def _multipliers(
    g: Function, scores: np.ndarray, q: np.ndarray
) -> tuple[float, float] | None:
    r"""Multipliers $\eta$, $\nu$ with $u_i + \eta g'(q_i) = \nu$ at two texts of q."""
    on = np.flatnonzero(q > 0)
    best, worst = on[scores[on].argmax()], on[scores[on].argmin()]
    slopes = g.compiled_jet(q).slope
    rise, fall = scores[best] - scores[worst], slopes[worst] - slopes[best]
    if not (rise > 0 and fall > 0):
        return None
    price = float(rise / fall)
    return price, float(scores[best] + price * slopes[best])


# --- Concave diversity: between two bounds --------------------------------------------
def _convex(problem: Problem) -> Discrepancy:
    """QDisc between two bounds, and DRate, for concave V."""
    p, scores, diversity = problem.p, problem.scores, problem.form.diversity
    face = interior_point.face_of(diversity, scores)
    top = interior_point.most_diverse(face)
    ends = _Ends(
        interior_point.favoured(face, top, scores),
        _most_diverse_on_modes(diversity, scores),
        NOISE * top.size,
    )
    excess, claim = problem.diversity(ends.on_modes) - problem.real_diversity, ""
    if excess >= -ends.noise:
        q, price = ends.on_modes, 0.0
        upper = float(scores.max()) - problem.real_quality
    else:
        best = interior_point.best_model(face, scores - problem.real_quality, p)
        q, upper, price = best.q, best.upper, best.price
        claim = _tried(face, best, p)
    # A score less U(P) has the roundings of that sum.
    largest = float(np.abs(scores[np.isfinite(scores)]).max())
    upper += (p.size + 2) * EPS * largest
    q = _as_diverse(problem, q, ends)
    gain = max(float(expected_score(q - p, scores)), 0.0)
    beyond = CONTRADICTION * problem.spread + NOISE * problem.magnitude(q)
    if gain > upper + beyond:
        raise interior_point.not_concave(
            f"a model gains {gain:.6g}, more than the {upper:.6g} that its tangents "
            "allow"
        )
    dominated_in = _dominated_in(problem, q, ends, price)
    upper = max(upper, gain)
    most_diverse = ends.most_diverse
    everywhere = interior_point.face_of(diversity, np.zeros(p.size))
    of_all = interior_point.most_diverse(everywhere)
    if of_all.value > top.value + ends.noise:
        most_diverse = everywhere.model(of_all.x)
    q = {"quality": q, "diversity": ends.on_modes, None: p}[dominated_in]
    status, fault = seal(problem, q, gain, upper, "certified")
    claim += f". No seal: {fault}" if fault else ""
    return Discrepancy(
        qdisc=gain,
        q=jnp.asarray(q),
        status=status,
        upper_bound=upper,
        quality_range=_quality_range(scores, most_diverse),
        most_diverse=jnp.asarray(most_diverse),
        dominated_in=dominated_in,
        reason=f"A convex problem, whose bounds are {upper - gain:.0e} apart{claim}.",
    )


def _tried(
    face: interior_point.Face, best: interior_point.Optimum, p: np.ndarray
) -> str:
    """State the concavity that a bound assumes, unless a search refutes it."""
    if best.tangent is None:
        return ""
    at, heights = (face.model(x) for x in (best.tangent.x, best.tangent.ends))
    models = np.stack([p, best.q])
    looks = look_for_violations(face.diversity, face.texts, at, heights, models)
    return (
        f" if V is concave, as the pair states; no violation found at {looks:,} models"
    )


def _most_diverse_on_modes(diversity: Functional, scores: np.ndarray) -> np.ndarray:
    """Find the most diverse of the models of greatest quality."""
    modes = np.where(scores == scores.max(), 0.0, -np.inf)
    face = interior_point.face_of(diversity, modes)
    if len(face.texts) == 1:  # a slope may be infinite there
        return face.model(np.ones(1))
    return face.model(interior_point.most_diverse(face).x)


# --- Certificates ---------------------------------------------------------------------
def _bound_of(form: Form) -> tuple[Bound, str]:
    """What bounds QDisc, and its name in words."""
    if form.code:
        raise TypeError(f"there is no certificate: {only_tried(form.code)}")
    if (bound := _methods(form)[1]) is None:
        raise TypeError(
            "an upper bound is known for BLEU of order 1 on texts of one length, for "
            "BLEU with one or two Self-BLEU references, for a KernelPair, for a "
            "VendiPair and for a diversity that sums g(Q_i); got "
            f"{pairs.name_of(form.pair)}"
        )
    return bound


def _certified(problem: Problem, found: Discrepancy, **limits: Any) -> Discrepancy:
    """A result with an upper bound, improved by the model that bounding found."""
    if found.status != "lower_bound":
        return found
    bound, method = _bound_of(problem.form)
    bounds = bound(problem, np.asarray(found.q), **limits)
    gain, q, dominated_in = problem.gain(found.q), found.q, found.dominated_in
    reason = found.reason
    # A difference within the margin of the local search is not an improvement.
    if bounds.qdisc > gain + MARGIN * problem.spread:
        gain, q, dominated_in = bounds.qdisc, bounds.q, "quality"
        reason += " A local search improved on it."
    gain, upper = max(gain, 0.0), bounds.upper_bound
    status, fault = seal(problem, np.asarray(q), gain, upper, "certified")
    reason += f" No seal: {fault}." if fault else ""
    return replace(
        found,
        qdisc=gain,
        q=q,
        dominated_in=dominated_in,
        upper_bound=upper,
        status=status,
        reason=f"{reason} Bounded by {method}.",
        steps=bounds.steps,
        evidence=bounds.evidence,
    )


def _tails(problem: Problem, start: np.ndarray, **limits: Any) -> Bounds:
    pair = problem.form.pair
    references = float(pair.num_references), float(pair.num_self_references)
    return tails.tail_bounds(problem, pair.space, references, start, **limits)


def _relaxed(problem: Problem, start: np.ndarray, **limits: Any) -> Bounds:
    _refuse_limits(limits)
    kernel = pairs.quadratic_form(problem.form.pair)
    return quadratic.relaxed_bounds(problem, kernel, start)


def _cubic(problem: Problem, start: np.ndarray, **limits: Any) -> Bounds:
    return cubic.cubic_bounds(problem, problem.form.pair.table, start, **limits)


def _convex_bounds(problem: Problem, _: np.ndarray, **limits: Any) -> Bounds:
    _refuse_limits(limits)
    return _solve(problem, None, NUM_STARTS)


def _refuse_limits(limits: dict[str, Any]) -> None:
    if limits:
        raise ValueError(
            "a relaxation or a convex problem is solved once, to its own precision: "
            f"leave out {' and '.join(limits)}"
        )


def _require_subject(pair: Pair, p: ArrayLike, found: Discrepancy) -> None:
    """Raise if a result belongs to another problem."""
    advice = 'call quality_discrepancy(pair, p, method="certified"), which does both'
    if not _is_same(pair, found.pair):
        raise ValueError(
            f"found must be about this pair, {pairs.name_of(pair)}; it is about "
            f"another one, {pairs.name_of(found.pair)}; {advice}"
        )
    if not np.array_equal(np.asarray(p), np.asarray(found.p)):
        raise ValueError(
            f"found must be about this p; it is about another distribution; {advice}"
        )


def _is_same(a: Any, b: Any) -> bool:
    """Whether two pairs are equal, arrays by their entries."""
    if a is b:
        return True
    (leaves, form), (others, other_form) = map(jax.tree.flatten, (a, b))
    # A class unknown to JAX is a leaf, which cannot be compared.
    if type(a) is not type(b) or form != other_form or jax.tree_util.all_leaves([a]):
        return False
    return all(map(np.array_equal, leaves, others))


def cubic_bound(pair: BleuPair, p: PerText, certificate: CubicCertificate) -> float:
    """Upper bound on QDisc from a certificate of any origin.

    Args:
        pair: BLEU with two Self-BLEU references, on at most 64 texts.
        p: the real distribution, shape (num_texts,).
        certificate: certificate for this pair and distribution.

    Returns:
        Upper bound on the gain of models with V(Q) >= V(P).

    Raises:
        TypeError: another pair.
        ValueError: `p` is not a distribution, too many texts, or a certificate with a
            negative price, a matrix that is not positive semidefinite, or of another
            size.

    Claims: N17.22.

    Example:
        >>> from qdtheory.spaces import TextSpace
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=1), 1, 2, 2)
        >>> zeros = np.zeros((2, 2, 2)), np.zeros((2, 2))
        >>> nothing = CubicCertificate(0.0, *zeros, floor=0.0)
        >>> print(f"{cubic_bound(pair, np.array([0.7, 0.3]), nothing):.2f}")
        0.12
    """
    match pair:
        case BleuPair(num_self_references=2):
            problem = pairs.pose(pairs.bleu_form(pair), p)
            return cubic.certificate_bound(problem, pair.table, certificate)
    raise TypeError(
        "a cubic certificate is for BLEU with two Self-BLEU references; got "
        f"{pairs.name_of(pair)}"
    )
