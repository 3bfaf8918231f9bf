r"""Upper bounds on QDisc that are valid whatever the solver's errors.

BLEU-1 on texts of one length L, any numbers of references. A clipped count is
$\min(a, b) = \sum_j [a \ge j][b \ge j]$, where a is the candidate's count of a word g
and b the largest count in the references, which are independent. So expected BLEU-1
depends on Q only through the tail probabilities
$T_{gj} = \Pr_Q(\text{count of } g \ge j)$, linear in Q:
$L\,U = \sum_{gj} T_{gj} (1 - (1 - T_{gj}(P))^n)$ and
$L\,V = -\sum_{gj} \varphi(T_{gj})$ with $\varphi(t) = t - t (1 - t)^k$, which is
convex up to $2 / (k + 1)$ and concave beyond.
Branch and bound on boxes of tails: in each box $\varphi$ is replaced by lines below its
convex envelope, which leaves a linear program over mixtures of count vectors.

Any multipliers give a valid bound. For every $\mu \ge 0$ and y, and lines
$a_i + b_i t \le \varphi(t)$ on the box $[l, h]$, each Q in the box with
$\sum_i \varphi(T_i) \le s$ satisfies
$w \cdot T \le w \cdot T + \mu (s - \sum_i \varphi(T_i)) \le \mu (s - \sum_i a_i)
+ \max_x (w - \mu b - y) \cdot T(x) + \sum_i \max(y_i l_i, y_i h_i)$,
where x ranges over the count vectors. A solver's error can only loosen the bound.

One Self-BLEU reference, or a kernel: $V = -Q'KQ$ is quadratic. For every
$\mu \ge 0$ and every positive semidefinite S, each Q with $Q'KQ \le s$ satisfies
$u \cdot Q \le u \cdot Q + \mu (s - Q'KQ) + Q'SQ
\le \max_{ij} [(u_i + u_j) / 2 + \mu (s - K_{ij}) + S_{ij}]$,
as $Q'MQ$ is a mean of the entries of M. The tightest such bound is the doubly
nonnegative relaxation, a semidefinite program; its solution X represents a mixture of
$QQ'$.
"""

import math
import warnings
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.bleu import BleuPair, text_bleu
from qdtheory.concave import ConcavePair
from qdtheory.discrepancy import (
    CONTRADICTION,
    Discrepancy,
    bounds_meet,
    quality_discrepancy,
)
from qdtheory.distributions import check_distribution
from qdtheory.kernels import KernelPair
from qdtheory.ngrams import ngram_matrix
from qdtheory.pairs import LinearPair, Pair, SeparablePair, expected_score

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
# Penalty per unit of constraint violation in a linear program whose scores have range
# 1: it keeps the bound finite in a box without a feasible Q.
PENALTY = 1e5
# Margin of a local search inside the constraint, so that rounding does not violate it;
# scores and diversity have ranges of about 1.
MARGIN = 1e-9
# The semidefinite program has N^2 / 2 variables and as many constraints, so time grows
# as N^6: 64 texts take some ten seconds, 128 some ten minutes.
MAX_TEXTS = 128


@dataclass(frozen=True)
class Interval:
    """Lower and upper bound on QDisc.

    Attributes:
        lower: the gain in quality of `q`, at least 0.
        upper: upper bound on the gain of models with V(Q) >= V(P).
        q: a model with V(q) >= V(p) as evaluated in 64 bits, shape (N,).
        steps: number of boxes split, or of solver iterations.
    """

    lower: float
    upper: float
    q: Float[Array, " texts"]
    steps: int


def certify(
    pair: Pair, p: Float[ArrayLike, " texts"], found: Discrepancy
) -> Discrepancy:
    """Add an upper bound to the QDisc that a search found, and improve its model.

    Uses `bleu_1_interval` for BLEU of order 1 on texts of one length,
    `quadratic_interval` for kernels and for BLEU of any order with one Self-BLEU
    reference, `qdtheory.concave_envelope.separable_interval` for sums of g(Q_i), and
    `qdtheory.third_order_interval` for BLEU of any order with two Self-BLEU references.

    Args:
        pair: the pair of the search.
        p: the real distribution of the search, shape (N,).
        found: the result of `quality_discrepancy(pair, p)`.

    Returns:
        The result with `upper_bound`, and status "certified" if the bound exceeds
        `qdisc`, recomputed from the model, by at most 1e-5 of the range of the texts'
        scores; exact and certified results are returned unchanged.

    Raises:
        TypeError: no bound is known for the pair.
        ValueError: `found` is the result of another pair or another distribution.
        ImportError: the quadratic case without cvxpy.
        RuntimeError: a model gains more than its bound, which would be a bug in this
            library.

    Example:
        >>> from qdtheory import TextSpace, quality_discrepancy
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=2), 1, 2, 3)
        >>> p = np.array([0.4, 0.3, 0.2, 0.1])
        >>> certify(pair, p, quality_discrepancy(pair, p)).status
        'certified'
    """
    _check_subject(pair, p, found)
    if found.status != "lower_bound":
        return found
    interval, method = bounding_method(pair)
    bounds = interval(pair, p, start=found.q)
    scored: Any = pair  # every pair with a bound has scores
    scores, reason = np.asarray(scored.text_quality(p)), found.reason
    gain, q, dominated_in = _gain_of(pair, p, scores, found.q), found.q, "quality"
    # A difference within the margin of the local search is not an improvement.
    if bounds.lower > gain + MARGIN * _range(scores):
        gain, q = bounds.lower, bounds.q
        reason += " A local search improved on it."
    else:
        dominated_in = found.dominated_in
    error = _score_error(pair, np.asarray(p))
    size, met = found.quality_range, bounds_meet(gain, bounds.upper, scores, error)
    return replace(
        found,
        qdisc=gain,
        drate=gain / size if 0 < size < np.inf else None,
        q=q,
        dominated_in=dominated_in,
        upper_bound=bounds.upper,
        status="certified" if met else "lower_bound",
        reason=f"{reason} Bounded by {method}.",
    )


def _gain_of(pair: Any, p: ArrayLike, scores: np.ndarray, q: ArrayLike) -> float:
    """Gain in quality of a model; minus infinity if it is less diverse than P."""
    if pair.diversity(q) < pair.diversity(p):
        return -np.inf
    return max(float(expected_score(jnp.asarray(q) - p, scores)), 0.0)


def bounding_method(pair: Pair) -> tuple[Callable[..., Interval], str]:
    """Select the method that bounds QDisc of a pair from above.

    Args:
        pair: any pair.

    Returns:
        A function of the pair, p and a starting model, and the name of the method.

    Raises:
        TypeError: no bound is known for the pair.

    Example:
        >>> bounding_method(KernelPair(np.eye(2)))[1]
        'the doubly nonnegative relaxation'
    """
    from qdtheory.concave_envelope import separable_interval  # it imports this module
    from qdtheory.third_order import is_cubic, third_order_interval  # and so does it

    if isinstance(pair, ConcavePair):
        return _convex_interval, "a convex problem, if V is concave as the pair states"
    if _has_tails(pair):
        return bleu_1_interval, "branch and bound"
    if _is_quadratic(pair):
        return quadratic_interval, "the doubly nonnegative relaxation"
    if isinstance(pair, SeparablePair | LinearPair):
        return separable_interval, "the concave envelope and branch and bound"
    if is_cubic(pair):
        return third_order_interval, "the third-order relaxation"
    raise TypeError(
        "an upper bound is known for BLEU of order 1 on texts of one length, for "
        "BLEU with one or two Self-BLEU references, for a KernelPair, for a "
        "ConcavePair and for a diversity that sums g(Q_i); got "
        f"{getattr(pair, 'name', type(pair).__name__)}"
    )


def _convex_interval(
    pair: Any, p: ArrayLike, start: ArrayLike | None = None
) -> Interval:
    """Bounds from the convex problem, which needs no starting model."""
    found = quality_discrepancy(pair, p)
    return Interval(found.qdisc, found.upper_bound, found.q, 0)


def _check_subject(pair: Pair, p: ArrayLike, found: Discrepancy) -> None:
    """Raise if a result belongs to another problem."""
    advice = "call quality_discrepancy(pair, p, certify=True), which does both"
    if not _is_same(pair, found.pair):
        names = (getattr(x, "name", type(x).__name__) for x in (pair, found.pair))
        raise ValueError(
            "found must be about this pair, {}; it is about another one, {} (functions "
            "count as the same if they are one object); {}".format(*names, advice)
        )
    if not np.array_equal(np.asarray(p), np.asarray(found.p)):
        raise ValueError(
            f"found must be about this p; it is about another distribution; {advice}"
        )


def _is_same(a: Any, b: Any) -> bool:
    """Whether two pairs are equal: arrays by their entries, functions by identity."""
    if a is b:
        return True
    (leaves, form), (others, other_form) = map(jax.tree.flatten, (a, b))
    # A class unknown to JAX is a leaf, which cannot be compared.
    if type(a) is not type(b) or form != other_form or jax.tree_util.all_leaves([a]):
        return False
    return all(map(np.array_equal, leaves, others))


def _range(scores: np.ndarray) -> float:
    """The greatest finite score minus the least."""
    return float(np.ptp(scores[np.isfinite(scores)]))


def checked_interval(
    lower: float,
    upper: float,
    q: np.ndarray,
    steps: int,
    unit: float,
) -> Interval:
    """Build the interval from a gain and a bound, and check that they are consistent.

    Args:
        lower: the gain of `q`, a model as diverse as P in 64 bits.
        upper: the claimed upper bound.
        q: the model, shape (N,).
        steps: number of steps of the method.
        unit: the range of the scores.

    Returns:
        The interval; its upper end is `lower` if that is above by rounding only.

    Raises:
        RuntimeError: the gain exceeds the bound by more than rounding explains.
    """
    if not lower <= upper + CONTRADICTION * unit:
        raise RuntimeError(
            f"a model gains {lower:.9g}, more than the bound {upper:.9g}, which is "
            "wrong then; please report this pair and P"
        )
    upper = float(max(lower, upper))
    return Interval(float(lower), upper, jnp.asarray(q), steps)


# --- Units --------------------------------------------------------------------------


@dataclass(frozen=True)
class UnitScores:
    """Scores rescaled to [0, 1], which removes their unit and additive constants.

    Attributes:
        scores: (u - min u) / unit, shape (N,).
        quality: U(P) on that scale.
        unit: the range of the scores u.
        rounding: error bound of a gain, on that scale.
    """

    scores: Float[np.ndarray, " texts"]
    quality: float
    unit: float
    rounding: float

    def gain(self, bound: float) -> float:
        """Upper bound on the gain in the unit of u, rounded up.

        Args:
            bound: upper bound on the mean score, on the scale from 0 to 1.

        Returns:
            The bound, in the unit of u.
        """
        share = min(bound, 1.0) - self.quality + self.rounding
        return self.unit * (share + 4 * EPS * abs(share))


def in_units(
    scores: Float[np.ndarray, " texts"],
    p: Float[np.ndarray, " texts"],
    error: float = 0.0,
) -> UnitScores | None:
    """Rescale scores to [0, 1].

    Args:
        scores: u, finite, shape (N,).
        p: the real distribution, shape (N,).
        error: error bound of a score.

    Returns:
        The scores; None if they are equal up to rounding, so that no model gains.
    """
    low, unit = float(scores.min()), float(np.ptp(scores))
    if unit <= constant_gain(scores, error):
        return None
    # The deviation of sum(p) from 1 is multiplied by the constant in the scores.
    offset = low / unit * math.fsum([*p.tolist(), -1.0])
    shares = (scores - low) / unit
    rounding = (p.size + 10) * EPS * (1 + abs(offset)) + 2 * error / unit
    return UnitScores(shares, float(shares @ p) + offset, unit, rounding)


def constant_gain(scores: Float[np.ndarray, " texts"], error: float = 0.0) -> float:
    """Upper bound on the gain due to rounding if all scores are equal.

    Args:
        scores: u, finite, shape (N,).
        error: error bound of a score.

    Returns:
        A nonnegative number.
    """
    return scores.size * EPS * float(np.abs(scores).max()) + 2 * error


def _score_error(pair: Pair, p: np.ndarray) -> float:
    """Error bound of a score in 64 bits, taking the kernel or table as exact."""
    if isinstance(pair, KernelPair):
        sizes = np.abs(np.asarray(pair.kernel)) @ p
        return (p.size + 2) * EPS * float(sizes.max())
    if isinstance(pair, BleuPair):
        return bleu_error(pair, float(pair.num_references))
    return 0.0  # a user's function, taken as exact


def bleu_error(pair: BleuPair, num_references: float) -> float:
    """Error bound of a text's expected BLEU in 64 bits, taking the table as exact.

    Args:
        pair: the pair whose table is used.
        num_references: n.

    Returns:
        Rounding error of the probabilities, their powers and the sum of the terms.
    """
    table, n = pair.table, pair.space.num_texts
    sizes = np.bincount(np.asarray(table.text), np.abs(table.weight))
    roundings = num_references * (n + 2) + table.num_sets + 4
    return roundings * EPS * float(sizes.max())


# --- BLEU-1 -------------------------------------------------------------------------


def bleu_1_interval(
    pair: BleuPair,
    p: Float[ArrayLike, " texts"],
    start: Float[ArrayLike, " texts"] | None = None,
    tolerance: float = 1e-6,
    max_splits: int = 1000,
) -> Interval:
    """Bound QDisc of BLEU-1 by branch and bound on the tails of the word counts.

    Args:
        pair: BLEU of order 1, on texts of one length.
        p: the real distribution, shape (num_texts,).
        start: a model to improve, shape (num_texts,); P itself by default.
        tolerance: width at which to stop, as a share of the range of the texts'
            scores, positive.
        max_splits: number of splits at which to stop.

    Returns:
        The interval, wider than `tolerance` only if the splits are exhausted.

    Raises:
        ValueError: another pair, `p` or `start` is not a distribution, or a tolerance
            that is not positive.

    Example:
        >>> from qdtheory.spaces import TextSpace
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=3), max_order=1)
        >>> p = np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05])
        >>> found = bleu_1_interval(pair, p)
        >>> found.upper - found.lower <= 1e-6
        True
    """
    if not _has_tails(pair):
        raise ValueError(
            "branch and bound takes BLEU of order 1 on texts of one length, got order "
            f"{pair.max_order} and lengths {pair.space.lengths}"
        )
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    p = np.asarray(check_distribution(p, "p", pair.space.num_texts))
    start = p if start is None else check_distribution(start, "start", p.size)
    scores, error = np.asarray(pair.text_quality(p)), _score_error(pair, p)
    if in_units(scores, p, error) is None:
        return checked_interval(0.0, constant_gain(scores, error), p, 0, 0.0)
    problem, kind = _tails(pair, p)
    quality = float(problem.weights @ problem.real)
    gain, q = best_feasible(pair, p, [p, np.asarray(start)])
    enough = quality + gain / problem.unit + tolerance
    ends = np.zeros_like(problem.real), np.ones_like(problem.real)
    boxes = [_bounded(problem, *ends, np.empty((0, 3)), problem.real, enough)]
    splits, seen = 0, np.zeros(len(problem.vertices), bool)
    while boxes[-1].bound > enough and splits < max_splits:
        box = boxes.pop()
        splits += 1
        seen |= box.q > 0
        # A local search costs as much as many splits: run one at split 1, 2, 4, ...
        if splits & (splits - 1) == 0:
            climbed = np.zeros(seen.size)
            part = replace(problem, vertices=problem.vertices[seen])
            climbed[seen] = climb_from(
                part.vertices @ part.weights, part.spent, part.budget, box.q[seen]
            )
            # Texts with the same count vector are equivalent in both metrics.
            gain, q = best_feasible(pair, p, [q, (climbed / np.bincount(kind))[kind]])
            enough = quality + gain / problem.unit + tolerance
        for low, high in _halves(box):
            half = _bounded(problem, low, high, box.lines, box.tails, enough)
            insort(boxes, half, key=lambda box: box.bound)
    share = boxes[-1].bound - quality + problem.rounding
    return checked_interval(gain, problem.unit * share, q, splits, problem.unit)


@dataclass(frozen=True)
class _Tails:
    """Maximise w . T subject to sum phi(T) <= s, T a mixture of the vertices."""

    vertices: np.ndarray  # T of each count vector, one per row, entries 0 and 1
    weights: np.ndarray  # w, in the unit of quality that gives scores the range 1
    real: np.ndarray  # T of P
    k: float
    budget: float  # s, rounded up
    unit: float
    rounding: float  # error bound of a gain, in the unit

    def spent(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of phi(T), with its gradient in the mixture q."""
        t = q @ self.vertices
        return float(_phi(self.k, t).sum()), self.vertices @ _slope(self.k, t)


def _has_tails(pair: Pair) -> TypeGuard[BleuPair]:
    return (
        isinstance(pair, BleuPair)
        and pair.max_order == 1
        and len(pair.space.lengths) == 1
    )


def _tails(pair: BleuPair, p: np.ndarray) -> tuple[_Tails, np.ndarray]:
    """Build the problem, and the index of each text's vertex."""
    (length,) = pair.space.lengths
    n, k = float(pair.num_references), float(pair.num_self_references)
    counts = ngram_matrix(pair.space, 1).T[:, :, None]
    tails = (counts >= np.arange(1, length + 1)).reshape(p.size, -1).astype(float)
    vertices, kind = np.unique(tails, axis=0, return_inverse=True)
    # Off by a single rounding error, for any number of texts.
    real = np.array([math.fsum(p[column > 0]) for column in tails.T])
    weights = (1 - (1 - real) ** n) / length
    unit = float(np.ptp(vertices @ weights))
    # BLEU and Self-BLEU of P assume that P sums to 1.
    lack = abs(math.fsum([*p.tolist(), -1.0]))
    spent = _phi(k, real)
    budget = spent.sum() + _phi_error(k, real).sum()
    budget += real.size * EPS * spent.sum() + (k + 2) * length * lack
    # A weight has n + 8 roundings, counted twice; a text's tails sum to its length.
    rounding = 2 * ((n + 8) * EPS + n * lack) / unit
    rounding += (real.size + 8) * EPS * float(weights @ real + weights.sum()) / unit
    found = _Tails(vertices, weights / unit, real, k, float(budget), unit, rounding)
    return found, kind


def _phi(k: float, t: np.ndarray) -> np.ndarray:
    return t - t * (1 - t) ** k


def _slope(k: float, t: np.ndarray) -> np.ndarray:
    return 1 - (1 - t) ** k + k * t * (1 - t) ** (k - 1)


# 1 - t is off by one rounding, its power by k / 2 of them and four more of NumPy's own;
# t itself may be off by one, which phi, of slope at most 2, doubles.


def _phi_error(k: float, t: np.ndarray) -> np.ndarray:
    return EPS * (4 * t + (k + 8) * t * (1 - t) ** k)


def _slope_error(k: float, t: np.ndarray) -> np.ndarray:
    return EPS * (2 + (k + 8) * ((1 - t) ** k + k * t * (1 - t) ** (k - 1)))


@dataclass(frozen=True)
class _Box:
    """A box of tails in [low, high], and the solution of its linear program."""

    low: np.ndarray
    high: np.ndarray
    lines: np.ndarray  # below phi on the box: rows of (index of the tail, a, b)
    bound: float
    q: np.ndarray
    tails: np.ndarray
    gaps: np.ndarray  # from the highest line to phi, at each tail


def _bounded(
    problem: _Tails,
    low: np.ndarray,
    high: np.ndarray,
    lines: np.ndarray,
    tails: np.ndarray,
    enough: float,
) -> _Box:
    """Bound a box by cutting planes: add lines at solutions while the bound improves.

    Args:
        problem: the problem to bound.
        low: lower limits of the tails.
        high: upper limits of the tails.
        lines: lines known to be below phi on the box.
        tails: where to add the first lines.
        enough: stop once the bound is at most this.
    """
    last = np.inf
    while True:
        tails = np.clip(tails, low, high)
        new = _supports(problem.k, low, high, tails)
        # Lines within the linear program's tolerance of others are redundant.
        higher = _level(new, tails) > _level(lines, tails) + 1e-9
        lines = np.vstack([lines, new[higher]])
        bound, q = _relaxation(problem, low, high, lines)
        tails = q @ problem.vertices
        if bound <= enough or last - bound < 0.05 * (bound - enough):
            gaps = _phi(problem.k, tails) - _level(lines, tails)
            return _Box(low, high, lines, bound, q, tails, gaps)
        last = bound


def _level(lines: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """Height of the highest line at each tail."""
    level = np.full(tails.size, -np.inf)
    index = lines[:, 0].astype(int)
    np.maximum.at(level, index, lines[:, 1] + lines[:, 2] * tails[index])
    return level


def _supports(k: float, low: np.ndarray, high: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Supporting lines at t of the convex envelopes of phi on [low, high].

    The envelope is phi up to the point whose tangent passes through (high, phi(high)),
    then that tangent. A line is below phi if it is so at `high` and up to the
    inflection, as phi is concave beyond. Up to the inflection phi is above its tangent
    at the point of contact; the line is lowered by as much as it may exceed that.
    """
    inflection = 2 / (k + 1)
    touch, end = np.minimum(low, inflection), np.minimum(high, inflection)
    for _ in range(53):  # bits of a float
        middle = (touch + end) / 2
        tangent = _phi(k, middle) + _slope(k, middle) * (high - middle)
        below = tangent < _phi(k, high)
        touch, end = np.where(below, middle, touch), np.where(below, end, middle)
    touch = np.maximum(touch, low)
    on_phi = (high <= inflection) | (t < touch)
    run = np.where(on_phi, 1, np.maximum(high - touch, TINY))
    rise = (_phi(k, high) - _phi(k, touch)) / run
    b = np.where(on_phi, _slope(k, t), rise)
    at = np.where(on_phi, t, touch)
    a = _phi(k, at) - b * at
    steeper, error = _slope(k, at) - b, _slope_error(k, at)
    bend_end = np.clip(inflection, low, high)
    excess = np.maximum(steeper + error, 0) * (at - low)
    excess += np.maximum(error - steeper, 0) * np.maximum(bend_end - at, 0)
    at_high = a + b * high - _phi(k, high) + _phi_error(k, high)
    excess = np.maximum(excess + _phi_error(k, at), at_high)
    a -= excess + 4 * EPS * (1 + np.abs(b))
    return np.column_stack([np.arange(t.size), a, b])


def _halves(box: _Box) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split a box in two along the tail with the largest gap."""
    i = int(box.gaps.argmax())
    tenth = (box.high[i] - box.low[i]) / 10
    cut = np.clip(box.tails[i], box.low[i] + tenth, box.high[i] - tenth)
    across = np.arange(box.gaps.size) == i
    yield box.low, np.where(across, cut, box.high)
    yield np.where(across, cut, box.low), box.high


def _relaxation(
    problem: _Tails, low: np.ndarray, high: np.ndarray, lines: np.ndarray
) -> tuple[float, np.ndarray]:
    """Upper bound on w . T in a box, and the optimal mixture of the linear program.

    The variables are the mixture, a value in place of phi at each tail, and one slack
    shared by all constraints, which makes every box feasible.
    """
    from scipy.optimize import linprog  # late: slow to import

    vertices, weights = problem.vertices, problem.weights
    n, m = vertices.shape
    index, (a, b) = lines[:, 0].astype(int), lines[:, 1:].T
    rows = np.zeros((2 * m + 1 + index.size, n + m + 1))
    rows[:m, :n], rows[m : 2 * m, :n] = vertices.T, -vertices.T
    rows[2 * m, n : n + m] = 1
    rows[: 2 * m + 1, -1] = -1
    rows[2 * m + 1 :, :n] = b[:, None] * vertices.T[index]
    rows[2 * m + 1 + np.arange(index.size), n + index] = -1
    solution = linprog(
        np.concatenate([-vertices @ weights, np.zeros(m), [PENALTY]]),
        A_ub=rows,
        b_ub=np.concatenate([high, -low, [problem.budget], -a]),
        A_eq=np.repeat([[1.0, 0.0]], [n, m + 1], axis=1),
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)] * m + [(0, None)],
        method="highs-ds",
    )
    # If the solver fails, multipliers of 0 give the score of the best text as bound.
    q, multipliers = np.ones(n), np.zeros(len(rows))
    if solution.x is not None and solution.ineqlin.marginals is not None:
        q, multipliers = np.maximum(solution.x[:n], 0), -solution.ineqlin.marginals
    # Positive, so that the weights of a tail's lines can be normalised.
    multipliers = np.maximum(multipliers, TINY)
    mu, y = multipliers[2 * m], multipliers[:m] - multipliers[m : 2 * m]
    share = multipliers[2 * m + 1 :]
    share = share / np.bincount(index, share)[index]
    size = np.bincount(index, share * (np.abs(a) + np.abs(b))).sum()
    a, b = np.bincount(index, share * a), np.bincount(index, share * b)
    rest = weights - mu * b - y
    bound = mu * (problem.budget - a.sum()) + (vertices @ rest).max()
    bound += np.maximum(y * low, y * high).sum()
    # Rounding of the sum of the shares (phi is at most 1), of the means of the lines
    # and of sums of m terms.
    size = mu * (problem.budget + size + m) + np.abs(weights).sum() + np.abs(y).sum()
    terms = 2 * m + np.bincount(index).max() + 8
    return bound + 2 * terms * EPS * size, q / q.sum()


# --- Quadratic diversity ------------------------------------------------------------


def quadratic_interval(
    pair: KernelPair | BleuPair,
    p: Float[ArrayLike, " texts"],
    start: Float[ArrayLike, " texts"] | None = None,
) -> Interval:
    """Bound QDisc if diversity is minus the expected similarity of two texts.

    Args:
        pair: a kernel pair, or BLEU with one Self-BLEU reference.
        p: the real distribution, shape (N,).
        start: a model to improve, shape (N,); P itself by default.

    Returns:
        The interval; the relaxation need not be tight.

    Raises:
        TypeError: another pair.
        ValueError: `p` or `start` is not a distribution, or too many texts.
        ImportError: cvxpy is not installed.

    Example:
        >>> kernel = np.array([[1, 0.9, 0.1], [0.9, 1, 0.1], [0.1, 0.1, 1]])
        >>> p = np.array([0.2, 0.5, 0.3])
        >>> found = quadratic_interval(KernelPair(kernel), p)
        >>> found.upper - found.lower <= 1e-6
        True
    """
    kernel = _kernel(pair)
    p = np.asarray(check_distribution(p, "p", len(kernel)))
    if p.size > MAX_TEXTS:
        raise ValueError(
            f"the relaxation takes {MAX_TEXTS} texts at most, got {p.size}; take a "
            "smaller space"
        )
    start = p if start is None else check_distribution(start, "start", p.size)
    start, scores = np.asarray(start), np.asarray(pair.text_quality(p))
    error = _score_error(pair, p)
    units = in_units(scores, p, error)
    if units is None:
        return checked_interval(0.0, constant_gain(scores, error), p, 0, 0.0)
    kernel, budget, rounding = _unit_kernel(pair, kernel, p)
    upper, mixture, steps = _relaxed(units.scores, kernel, budget + rounding)

    def spent(q: np.ndarray) -> tuple[float, np.ndarray]:
        return float(q @ kernel @ q), 2 * kernel @ q

    # If X is a mixture of QQ', its rows are proportional to means of the Q's.
    heaviest = np.argsort(mixture.sum(axis=1), kind="stable")[:-4:-1]
    starts = [mixture.sum(axis=0), *mixture[heaviest], start]
    climbed = [
        climb_from(units.scores, spent, budget, q / q.sum())
        for q in starts
        if q.sum() > 0  # the solver may have failed
    ]
    gain, q = best_feasible(pair, p, [p, start, *climbed])
    return checked_interval(gain, units.gain(upper), q, steps, units.unit)


def _unit_kernel(
    pair: KernelPair | BleuPair, kernel: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Rescale K to [0, 1]; return it with P'KP and the rounding error of the two.

    A constant in K is a constant in V, as a distribution sums to 1.
    """
    low = float(kernel.min())
    # Rounding of the symmetrisation, or of BLEU's own terms.
    error = EPS * float(np.abs(kernel).max())
    if isinstance(pair, BleuPair):
        error += bleu_error(pair, 1.0)
    unit = max(float(np.ptp(kernel)), 4 * error)
    unit = unit or 1.0  # a kernel of zeros
    kernel = (kernel - low) / unit
    lack = math.fsum([*p.tolist(), -1.0])
    offset = low / unit * lack * (2 + lack)
    rounding = (2 * p.size + 8) * EPS * (1 + abs(offset)) + 2 * error / unit
    return kernel, float(p @ kernel @ p) + offset, rounding


def _is_quadratic(pair: Pair) -> TypeGuard[KernelPair | BleuPair]:
    return isinstance(pair, KernelPair) or (
        isinstance(pair, BleuPair) and float(pair.num_self_references) == 1
    )


def _kernel(pair: KernelPair | BleuPair) -> np.ndarray:
    """Return the symmetric K with V = -Q'KQ."""
    if not _is_quadratic(pair):
        raise TypeError(
            "the relaxation takes a KernelPair, or BLEU with one Self-BLEU reference; "
            f"got {getattr(pair, 'name', type(pair).__name__)}"
        )
    if isinstance(pair, KernelPair):
        kernel = np.asarray(pair.kernel)
    else:
        texts = np.eye(pair.space.num_texts)
        kernel = np.asarray(jax.lax.map(lambda b: text_bleu(pair.table, b, 1), texts))
    return (kernel + kernel.T) / 2


def _relaxed(
    scores: np.ndarray, kernel: np.ndarray, budget: float
) -> tuple[float, np.ndarray, int]:
    """Upper bound on scores . q if q'Kq <= budget; 2 X; the number of iterations."""
    try:
        import cvxpy as cp  # late: an extra, and slow to import
    except ImportError as error:
        raise ImportError(
            "this certificate needs cvxpy; install it with "
            "pip install 'qdtheory[certify]'"
        ) from error

    n = scores.size
    bound, price = cp.Variable(), cp.Variable(nonneg=True)
    gram = cp.Variable((n, n), PSD=True)
    matrix = (scores[:, None] + scores) / 2 + price * (budget - kernel) + gram
    upper = np.triu_indices(n)
    entries = cp.vec(matrix, order="F")[upper[0] + n * upper[1]] <= bound
    program = cp.Problem(cp.Minimize(bound), [entries])
    # An inaccurate or missing solution only loosens the bound.
    with warnings.catch_warnings(), suppress(cp.SolverError):
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL)
    solution: Any = price.value, gram.value, entries.dual_value
    mixture = np.zeros((n, n))
    if any(part is None or not np.isfinite(part).all() for part in solution):
        return float(scores.max()), mixture, 0  # the bound at multiplier 0
    steps: Any = program.solver_stats.num_iters
    mixture[upper] = np.maximum(solution[2], 0)
    bound = _quadratic_bound(scores, kernel, budget, *solution[:2])
    return bound, mixture + mixture.T, steps


def _quadratic_bound(
    scores: np.ndarray,
    kernel: np.ndarray,
    budget: float,
    price: float,
    gram: np.ndarray,
) -> float:
    """Upper bound on scores . q if q'Kq <= budget, from any multipliers; rounded up.

    An inner product of N terms, summed in any order, is off by at most N EPS times
    that of the absolute values.
    """
    price, n = max(float(price), 0.0), scores.size
    eigenvalues, vectors = np.linalg.eigh(gram)
    # A matrix times its transpose is positive semidefinite, despite errors in eigh.
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0))
    gram, sizes = root @ root.T, np.abs(root) @ np.abs(root).T
    means = (scores[:, None] + scores) / 2
    matrix = means + price * (budget - kernel) + gram
    # Four roundings per part, and those of the product, counted twice.
    sizes = 2 * n * sizes + 4 * (np.abs(means) + gram)
    sizes += 4 * price * (abs(budget) + np.abs(kernel))
    return float((matrix + 2 * EPS * sizes).max())


# --- Feasible models ----------------------------------------------------------------


def climb_from(
    scores: np.ndarray,
    spent: Callable[[np.ndarray], tuple[float, np.ndarray]],
    budget: float,
    start: np.ndarray,
) -> np.ndarray:
    """Maximise scores . q locally over distributions q with spent(q) <= budget.

    Args:
        scores: shape (N,), with a range of about 1.
        spent: the constraint function and its gradient, on a similar scale.
        budget: upper limit of the constraint.
        start: a distribution, feasible or not.

    Returns:
        A distribution; infeasible only if SLSQP fails.
    """
    from scipy.optimize import minimize  # late: slow to import

    whole = {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like}
    within = {
        "type": "ineq",
        "fun": lambda q: budget - MARGIN - spent(q)[0],
        "jac": lambda q: -spent(q)[1],
    }
    found = minimize(
        lambda q: -q @ scores,
        start,
        jac=lambda q: -scores,
        constraints=[whole, within],
        bounds=[(0, 1)] * start.size,
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-13},
    )
    q = np.clip(found.x, 0, 1)
    return q / q.sum() if q.sum() > 0 else start


def best_feasible(
    pair: KernelPair | BleuPair, p: np.ndarray, models: Sequence[np.ndarray]
) -> tuple[float, np.ndarray]:
    """Select the model of greatest gain in quality among those as diverse as P.

    Args:
        pair: a pair with quality linear in Q.
        p: the real distribution, shape (N,).
        models: candidates, including P itself, so that one is feasible.

    Returns:
        The gain and the model.
    """
    least, scores = _diversity_and_scores(pair, p)
    feasible = [q for q in models if _diversity_and_scores(pair, q)[0] >= least]
    gains = [float((q - p) @ scores) for q in feasible]
    best = int(np.argmax(gains))
    return gains[best], feasible[best]


@jax.jit
def _diversity_and_scores(pair: KernelPair | BleuPair, p: Array) -> tuple[Array, Array]:
    return pair.diversity(p), pair.text_quality(p)
