r"""Upper bounds on QDisc that do not trust the solver that found them.

BLEU-1 on texts of one length L, any numbers of references. A clipped count is
$\min(a, b) = \sum_j [a \ge j][b \ge j]$, a the candidate's count of a word g and b the
largest of the references', which are independent. So expected BLEU-1 depends on Q only
through the tails $T_{gj} = \Pr_Q(\text{count of } g \ge j)$, linear in Q:
$L\,U = \sum_{gj} T_{gj} (1 - (1 - T_{gj}(P))^n)$ and
$L\,V = -\sum_{gj} \varphi(T_{gj})$, $\varphi(t) = t - t (1 - t)^k$, which is convex
up to $2 / (k + 1)$ and concave beyond.
Branch and bound on boxes of tails: in a box, lines below the convex envelope of
$\varphi$ take its place, which leaves a linear program over mixtures of count vectors.

A bound is computed from multipliers, whatever they are worth. For every
$\mu \ge 0$ and y, and lines $a_i + b_i t \le \varphi(t)$ on the box $[l, h]$, a Q in
the box with $\sum_i \varphi(T_i) \le s$ has
$w \cdot T \le w \cdot T + \mu (s - \sum_i \varphi(T_i)) \le \mu (s - \sum_i a_i)
+ \max_x (w - \mu b - y) \cdot T(x) + \sum_i \max(y_i l_i, y_i h_i)$,
x over the count vectors. A solver's error can only make it larger.

One Self-BLEU reference, or a kernel: $V = -Q'KQ$ is quadratic. For every
$\mu \ge 0$ and every positive semidefinite S, a Q with $Q'KQ \le s$ has
$u \cdot Q \le u \cdot Q + \mu (s - Q'KQ) + Q'SQ
\le \max_{ij} [(u_i + u_j) / 2 + \mu (s - K_{ij}) + S_{ij}]$,
as $Q'MQ$ is a mean of the entries of M. The least such bound is the doubly nonnegative
relaxation, a semidefinite program; its solution X stands for a mixture of $QQ'$.
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
# The cost of a unit of violated constraints in a linear program, where the scores have
# the range 1: its bound is finite in a box without a feasible Q too.
PENALTY = 1e5
# A local search aims this far inside the constraint, so that rounding keeps it there;
# scores and diversity have ranges of about 1.
MARGIN = 1e-9
# The semidefinite program has N^2 / 2 unknowns and as many constraints, so that time
# grows as N^6: 64 texts take some ten seconds, 128 some ten minutes.
MAX_TEXTS = 128


@dataclass(frozen=True)
class Interval:
    """What is known of QDisc.

    Attributes:
        lower: the gain in quality of `q`, at least 0.
        upper: no model with V(Q) >= V(P) gains more.
        q: a model with V(q) >= V(p) as evaluated in 64 bits, shape (N,).
        steps: how many boxes were split, or iterations of the solver.
    """

    lower: float
    upper: float
    q: Float[Array, " texts"]
    steps: int


def certify(
    pair: Pair, p: Float[ArrayLike, " texts"], found: Discrepancy
) -> Discrepancy:
    """Add an upper bound to the QDisc that a search found, and improve on the model.

    BLEU of order 1 on texts of one length is bounded by `bleu_1_interval`; kernels,
    and BLEU of any order with one Self-BLEU reference, by `quadratic_interval`; sums of
    g(Q_i) by `qdtheory.concave_envelope.separable_interval`; BLEU of any order with two
    Self-BLEU references by `qdtheory.third_order_interval`.

    Args:
        pair: the pair of the search.
        p: the real distribution of the search, shape (N,).
        found: the result of `quality_discrepancy(pair, p)`.

    Returns:
        The result with `upper_bound`, and the status "certified" if that is within
        1e-5 of the range of the texts' scores of `qdisc`, which is computed anew from
        the model; an exact or a certified result as it is.

    Raises:
        TypeError: a pair for which no bound is known.
        ValueError: `found` is about another pair or another distribution.
        ImportError: the quadratic case without cvxpy.
        RuntimeError: a model gains more than its bound, which would be an error of
            this library.

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
    scored: Any = pair  # all that have a bound do
    scores, reason = np.asarray(scored.text_quality(p)), found.reason
    gain, q, dominated_in = _gain_of(pair, p, scores, found.q), found.q, "quality"
    # What a local search gives away inside the constraint is no improvement.
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
    """A model's gain in quality; minus infinity if it is less diverse than P."""
    if pair.diversity(q) < pair.diversity(p):
        return -np.inf
    return max(float(expected_score(jnp.asarray(q) - p, scores)), 0.0)


def bounding_method(pair: Pair) -> tuple[Callable[..., Interval], str]:
    """What bounds QDisc of a pair from above, and its name.

    Args:
        pair: any pair.

    Returns:
        A function of the pair, p and a model to start from, and how to call it.

    Raises:
        TypeError: a pair for which no bound is known.

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
    """The bounds of the convex problem, which takes no start."""
    found = quality_discrepancy(pair, p)
    return Interval(found.qdisc, found.upper_bound, found.q, 0)


def _check_subject(pair: Pair, p: ArrayLike, found: Discrepancy) -> None:
    """Refuse a result of another problem."""
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
    """Whether two pairs are one: arrays by their entries, functions by identity."""
    if a is b:
        return True
    (leaves, form), (others, other_form) = map(jax.tree.flatten, (a, b))
    # A class that JAX does not know is a leaf, of which nothing can be compared.
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
    """The interval of a gain and a bound, unless the gain refutes the bound.

    Args:
        lower: the gain of `q`, a model as diverse as P in 64 bits.
        upper: what is claimed to bound it.
        q: the model, shape (N,).
        steps: of the method.
        unit: the range of the scores.

    Returns:
        The interval; its upper end is `lower` where rounding alone puts that above.

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
    """Scores from 0 to 1, so that no unit and no constant in them matters.

    Attributes:
        scores: (u - min u) / unit, shape (N,).
        quality: U(P) on that scale.
        unit: the range of the scores u.
        rounding: what a gain may be off by, in this unit.
    """

    scores: Float[np.ndarray, " texts"]
    quality: float
    unit: float
    rounding: float

    def gain(self, bound: float) -> float:
        """What no model gains, in the unit of u, rounded up.

        Args:
            bound: what none of the scores' means exceeds, from 0 to 1.

        Returns:
            A number, in the unit of u.
        """
        share = min(bound, 1.0) - self.quality + self.rounding
        return self.unit * (share + 4 * EPS * abs(share))


def in_units(
    scores: Float[np.ndarray, " texts"],
    p: Float[np.ndarray, " texts"],
    error: float = 0.0,
) -> UnitScores | None:
    """The scores on a scale from 0 to 1.

    Args:
        scores: u, finite, shape (N,).
        p: the real distribution, shape (N,).
        error: what a score may be off by.

    Returns:
        The scores; None if they are equal up to rounding, so that no model gains.
    """
    low, unit = float(scores.min()), float(np.ptp(scores))
    if unit <= constant_gain(scores, error):
        return None
    # What the sum of p lacks would be multiplied by a constant in the scores.
    offset = low / unit * math.fsum([*p.tolist(), -1.0])
    shares = (scores - low) / unit
    rounding = (p.size + 10) * EPS * (1 + abs(offset)) + 2 * error / unit
    return UnitScores(shares, float(shares @ p) + offset, unit, rounding)


def constant_gain(scores: Float[np.ndarray, " texts"], error: float = 0.0) -> float:
    """What rounding alone may add to quality where all scores are equal.

    Args:
        scores: u, finite, shape (N,).
        error: what a score may be off by.

    Returns:
        A number, at least 0.
    """
    return scores.size * EPS * float(np.abs(scores).max()) + 2 * error


def _score_error(pair: Pair, p: np.ndarray) -> float:
    """What a score in 64 bits may be off by, for the kernel or table as it is."""
    if isinstance(pair, KernelPair):
        sizes = np.abs(np.asarray(pair.kernel)) @ p
        return (p.size + 2) * EPS * float(sizes.max())
    if isinstance(pair, BleuPair):
        return bleu_error(pair, float(pair.num_references))
    return 0.0  # a function of the user's, taken as it is


def bleu_error(pair: BleuPair, num_references: float) -> float:
    """What expected BLEU of a text may be off by in 64 bits, for its table as it is.

    Args:
        pair: whose table it is computed from.
        num_references: n.

    Returns:
        Rounding of the chances, their powers and the sum of the terms.
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
        pair: of order 1, on texts of one length.
        p: the real distribution, shape (num_texts,).
        start: a model to improve on, shape (num_texts,); P itself by default.
        tolerance: the width at which to stop, as a share of the range of the texts'
            scores, positive.
        max_splits: the number of splits at which to stop.

    Returns:
        The interval, wider than `tolerance` only if the splits ran out.

    Raises:
        ValueError: another pair, no distribution, or a tolerance that is not positive.

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
        # A local search costs as much as many splits: the 1st, 2nd, 4th, ... try one.
        if splits & (splits - 1) == 0:
            climbed = np.zeros(seen.size)
            part = replace(problem, vertices=problem.vertices[seen])
            climbed[seen] = climb_from(
                part.vertices @ part.weights, part.spent, part.budget, box.q[seen]
            )
            # Texts of one count vector are alike in both metrics.
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

    vertices: np.ndarray  # T of each count vector, a row of 0 and 1
    weights: np.ndarray  # w, in a unit of quality in which scores have the range 1
    real: np.ndarray  # T of P
    k: float
    budget: float  # rounded up
    unit: float
    rounding: float  # of a gain, in the unit

    def spent(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum phi(T), with its gradient in the mixture q."""
        t = q @ self.vertices
        return float(_phi(self.k, t).sum()), self.vertices @ _slope(self.k, t)


def _has_tails(pair: Pair) -> TypeGuard[BleuPair]:
    return (
        isinstance(pair, BleuPair)
        and pair.max_order == 1
        and len(pair.space.lengths) == 1
    )


def _tails(pair: BleuPair, p: np.ndarray) -> tuple[_Tails, np.ndarray]:
    """The problem, and which of its vertices each text is."""
    (length,) = pair.space.lengths
    n, k = float(pair.num_references), float(pair.num_self_references)
    counts = ngram_matrix(pair.space, 1).T[:, :, None]
    tails = (counts >= np.arange(1, length + 1)).reshape(p.size, -1).astype(float)
    vertices, kind = np.unique(tails, axis=0, return_inverse=True)
    # Off by one rounding, whatever the number of texts.
    real = np.array([math.fsum(p[column > 0]) for column in tails.T])
    weights = (1 - (1 - real) ** n) / length
    unit = float(np.ptp(vertices @ weights))
    # P's own BLEU and Self-BLEU take its sum for 1.
    lack = abs(math.fsum([*p.tolist(), -1.0]))
    spent = _phi(k, real)
    budget = spent.sum() + _phi_error(k, real).sum()
    budget += real.size * EPS * spent.sum() + (k + 2) * length * lack
    # Of a weight n + 8 roundings, twice; a text's tails sum to its length.
    rounding = 2 * ((n + 8) * EPS + n * lack) / unit
    rounding += (real.size + 8) * EPS * float(weights @ real + weights.sum()) / unit
    found = _Tails(vertices, weights / unit, real, k, float(budget), unit, rounding)
    return found, kind


def _phi(k: float, t: np.ndarray) -> np.ndarray:
    return t - t * (1 - t) ** k


def _slope(k: float, t: np.ndarray) -> np.ndarray:
    return 1 - (1 - t) ** k + k * t * (1 - t) ** (k - 1)


# 1 - t is off by a rounding, its power by k / 2 of them and four more of NumPy's own,
# and t itself may be off by one, which phi, of slope 2 at most, doubles.


def _phi_error(k: float, t: np.ndarray) -> np.ndarray:
    return EPS * (4 * t + (k + 8) * t * (1 - t) ** k)


def _slope_error(k: float, t: np.ndarray) -> np.ndarray:
    return EPS * (2 + (k + 8) * ((1 - t) ** k + k * t * (1 - t) ** (k - 1)))


@dataclass(frozen=True)
class _Box:
    """Tails between low and high, and the solution of the linear program there."""

    low: np.ndarray
    high: np.ndarray
    lines: np.ndarray  # below phi on the box: rows of a tail's index, a and b
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
    """The box, with lines added where its solutions are until they stop helping.

    Args:
        problem: what is bounded.
        low: the least tails.
        high: the greatest tails.
        lines: known to be below phi on the box.
        tails: where to add the first lines.
        enough: no bound needs to be less than this.
    """
    last = np.inf
    while True:
        tails = np.clip(tails, low, high)
        new = _supports(problem.k, low, high, tails)
        # Lines no higher than a linear program's rounding would only repeat others.
        higher = _level(new, tails) > _level(lines, tails) + 1e-9
        lines = np.vstack([lines, new[higher]])
        bound, q = _relaxation(problem, low, high, lines)
        tails = q @ problem.vertices
        if bound <= enough or last - bound < 0.05 * (bound - enough):
            gaps = _phi(problem.k, tails) - _level(lines, tails)
            return _Box(low, high, lines, bound, q, tails, gaps)
        last = bound


def _level(lines: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """The height of the highest line at each tail."""
    level = np.full(tails.size, -np.inf)
    index = lines[:, 0].astype(int)
    np.maximum.at(level, index, lines[:, 1] + lines[:, 2] * tails[index])
    return level


def _supports(k: float, low: np.ndarray, high: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Lines that support phi's convex envelopes on the intervals [low, high] at t.

    An envelope is phi up to the point whose tangent ends in (high, phi(high)), then
    that tangent. A line is below phi if it is so at `high` and up to the inflection:
    beyond it phi is concave. There phi is above its tangent at the point of touch, and
    the line is lowered by what it may exceed that by.
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
    """The two parts of a box, cut across the tail of the largest gap."""
    i = int(box.gaps.argmax())
    tenth = (box.high[i] - box.low[i]) / 10
    cut = np.clip(box.tails[i], box.low[i] + tenth, box.high[i] - tenth)
    across = np.arange(box.gaps.size) == i
    yield box.low, np.where(across, cut, box.high)
    yield np.where(across, cut, box.low), box.high


def _relaxation(
    problem: _Tails, low: np.ndarray, high: np.ndarray, lines: np.ndarray
) -> tuple[float, np.ndarray]:
    """A bound of w . T in a box, and the mixture that the linear program takes.

    Its variables are the mixture, what is taken for phi at each tail, and one
    violation of all constraints, which makes every box feasible.
    """
    from scipy.optimize import linprog  # late: it costs import time

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
    # Where the solver fails, multipliers of 0 bound by the best text.
    q, multipliers = np.ones(n), np.zeros(len(rows))
    if solution.x is not None and solution.ineqlin.marginals is not None:
        q, multipliers = np.maximum(solution.x[:n], 0), -solution.ineqlin.marginals
    # Not 0, so that the weights of a tail's lines have a sum to be divided by.
    multipliers = np.maximum(multipliers, TINY)
    mu, y = multipliers[2 * m], multipliers[:m] - multipliers[m : 2 * m]
    share = multipliers[2 * m + 1 :]
    share = share / np.bincount(index, share)[index]
    size = np.bincount(index, share * (np.abs(a) + np.abs(b))).sum()
    a, b = np.bincount(index, share * a), np.bincount(index, share * b)
    rest = weights - mu * b - y
    bound = mu * (problem.budget - a.sum()) + (vertices @ rest).max()
    bound += np.maximum(y * low, y * high).sum()
    # Rounding: of the shares' sum, phi being 1 at most, of the lines' means and of
    # sums of m terms.
    size = mu * (problem.budget + size + m) + np.abs(weights).sum() + np.abs(y).sum()
    terms = 2 * m + np.bincount(index).max() + 8
    return bound + 2 * terms * EPS * size, q / q.sum()


# --- Quadratic diversity ------------------------------------------------------------


def quadratic_interval(
    pair: KernelPair | BleuPair,
    p: Float[ArrayLike, " texts"],
    start: Float[ArrayLike, " texts"] | None = None,
) -> Interval:
    """Bound QDisc where diversity is minus the expected similarity of two texts.

    Args:
        pair: a kernel, or BLEU with one Self-BLEU reference.
        p: the real distribution, shape (N,).
        start: a model to improve on, shape (N,); P itself by default.

    Returns:
        The interval; the relaxation need not be tight.

    Raises:
        TypeError: another pair.
        ValueError: no distribution, or too many texts.
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

    # If X is a mixture of QQ', its rows are, up to scale, means of the Q's.
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
    """K from 0 to 1, what P spends of it, and what is off by rounding in the two.

    A constant in K is a constant in V, as a distribution sums to 1.
    """
    low = float(kernel.min())
    # Of the halves' sum, or of BLEU's own terms.
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
    """K of V = -Q'KQ, symmetric."""
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
    """A bound of scores . q where q'Kq <= budget, 2 X, and the solver's iterations."""
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
    # A solution that is not accurate, or none, costs tightness alone.
    with warnings.catch_warnings(), suppress(cp.SolverError):
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL)
    solution: Any = price.value, gram.value, entries.dual_value
    mixture = np.zeros((n, n))
    if any(part is None or not np.isfinite(part).all() for part in solution):
        return float(scores.max()), mixture, 0  # of the price 0
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
    """What no scores . q exceeds where q'Kq <= budget, from any multipliers.

    Rounded up: a product of N terms, in whatever order, is off by N EPS times that of
    the absolute values at most.
    """
    price, n = max(float(price), 0.0), scores.size
    eigenvalues, vectors = np.linalg.eigh(gram)
    # Whatever eigh returned, a matrix times its transpose is positive semidefinite.
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0))
    gram, sizes = root @ root.T, np.abs(root) @ np.abs(root).T
    means = (scores[:, None] + scores) / 2
    matrix = means + price * (budget - kernel) + gram
    # Four roundings of each part, and those of the product, counted twice.
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
    """A local maximiser of scores . q over distributions q that spend at most budget.

    Args:
        scores: shape (N,), of a range of about 1.
        spent: what a distribution spends, with its gradient, likewise.
        budget: what it may spend.
        start: a distribution, feasible or not.

    Returns:
        A distribution; over the budget only where SLSQP failed.
    """
    from scipy.optimize import minimize  # late: it costs import time

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
    """The greatest gain in quality among the models as diverse as P, and its model.

    Args:
        pair: its quality is linear in Q.
        p: the real distribution, shape (N,).
        models: to choose from; P itself is among them, so that one is feasible.

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
