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

import warnings
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.bleu import BleuPair, text_bleu
from qdtheory.discrepancy import CERTIFIED, Discrepancy
from qdtheory.distributions import check_distribution
from qdtheory.kernels import KernelPair
from qdtheory.ngrams import ngram_matrix
from qdtheory.pairs import LinearPair, Pair, SeparablePair

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
# The cost of a unit of violated constraints in a linear program: its bound is finite
# in a box without a feasible Q too, and no quality, at most 1, is worth a violation.
PENALTY = 1e3
# A local search aims this far inside the constraint, so that rounding keeps it there.
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
        1e-5 of `qdisc`; an exact or a certified result as it is.

    Raises:
        TypeError: a pair for which no bound is known.
        ImportError: the quadratic case without cvxpy.

    Example:
        >>> from qdtheory import TextSpace, quality_discrepancy
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=2), 1, 2, 3)
        >>> p = np.array([0.4, 0.3, 0.2, 0.1])
        >>> certify(pair, p, quality_discrepancy(pair, p)).status
        'certified'
    """
    from qdtheory.concave_envelope import separable_interval  # it imports this module
    from qdtheory.third_order import is_cubic, third_order_interval  # and so does it

    if found.status != "lower_bound":
        return found
    if _has_tails(pair):
        bounds, method = bleu_1_interval(pair, p, start=found.q), "branch and bound"
    elif _is_quadratic(pair):
        bounds = quadratic_interval(pair, p, start=found.q)
        method = "the doubly nonnegative relaxation"
    elif isinstance(pair, SeparablePair | LinearPair):
        bounds = separable_interval(pair, p, start=found.q)
        method = "the concave envelope and branch and bound"
    elif is_cubic(pair):
        bounds = third_order_interval(pair, p, start=found.q)
        method = "the third-order relaxation"
    else:
        raise TypeError(
            "an upper bound is known for BLEU of order 1 on texts of one length, for "
            "BLEU with one or two Self-BLEU references, for a KernelPair and for a "
            "diversity that sums g(Q_i); got "
            f"{getattr(pair, 'name', type(pair).__name__)}"
        )
    # What a local search gives away inside the constraint is no improvement.
    if bounds.lower > found.qdisc + MARGIN:
        size = found.quality_range
        found = replace(
            found,
            qdisc=bounds.lower,
            drate=bounds.lower / size if 0 < size < np.inf else None,
            q=bounds.q,
            dominated_in="quality",
            reason=found.reason + " A local search improved on it.",
        )
    upper = max(bounds.upper, found.qdisc)
    return replace(
        found,
        upper_bound=upper,
        status="certified" if upper <= found.qdisc + CERTIFIED else "lower_bound",
        reason=f"{found.reason} Bounded by {method}.",
    )


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
        tolerance: the width at which to stop, positive.
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
    problem, kind = _tails(pair, p)
    quality = float(problem.weights @ problem.real)
    start = p if start is None else check_distribution(start, "start", p.size)
    gain, q = best_feasible(pair, p, [p, np.asarray(start)])
    enough = quality + gain + tolerance
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
            enough = quality + gain + tolerance
        for low, high in _halves(box):
            half = _bounded(problem, low, high, box.lines, box.tails, enough)
            insort(boxes, half, key=lambda box: box.bound)
    upper = float(max(gain, boxes[-1].bound - quality))
    return Interval(gain, upper, jnp.asarray(q), splits)


@dataclass(frozen=True)
class _Tails:
    """Maximise w . T subject to sum phi(T) <= s, T a mixture of the vertices."""

    vertices: np.ndarray  # T of each count vector, a row of 0 and 1
    weights: np.ndarray  # w
    real: np.ndarray  # T of P
    k: float

    @property
    def budget(self) -> float:
        return float(_phi(self.k, self.real).sum())

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
    counts = ngram_matrix(pair.space, 1).T[:, :, None]
    tails = (counts >= np.arange(1, length + 1)).reshape(p.size, -1).astype(float)
    vertices, kind = np.unique(tails, axis=0, return_inverse=True)
    real = p @ tails
    weights = (1 - (1 - real) ** float(pair.num_references)) / length
    return _Tails(vertices, weights, real, float(pair.num_self_references)), kind


def _phi(k: float, t: np.ndarray) -> np.ndarray:
    return t - t * (1 - t) ** k


def _slope(k: float, t: np.ndarray) -> np.ndarray:
    return 1 - (1 - t) ** k + k * t * (1 - t) ** (k - 1)


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
    that tangent.
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
    rise = (_phi(k, high) - _phi(k, touch)) / np.where(on_phi, 1, high - touch)
    b = np.where(on_phi, _slope(k, t), rise)
    at = np.where(on_phi, t, touch)
    return np.column_stack([np.arange(t.size), _phi(k, at) - b * at, b])


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
    q = np.maximum(solution.x[:n], 0)
    # Not 0, so that the weights of a tail's lines have a sum to be divided by.
    multipliers = np.maximum(-solution.ineqlin.marginals, TINY)
    mu, y = multipliers[2 * m], multipliers[:m] - multipliers[m : 2 * m]
    share = multipliers[2 * m + 1 :]
    share = share / np.bincount(index, share)[index]
    a, b = np.bincount(index, share * a), np.bincount(index, share * b)
    rest = weights - mu * b - y
    bound = mu * (problem.budget - a.sum()) + (vertices @ rest).max()
    bound += np.maximum(y * low, y * high).sum()
    sizes = mu * (problem.budget + np.abs(a).sum()) + np.abs(rest).sum()
    # Sums of fewer than 4 m terms: their rounding.
    return bound + 4 * m * EPS * (sizes + np.abs(y).sum()), q / q.sum()


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
    scores, budget = np.asarray(pair.text_quality(p)), float(p @ kernel @ p)
    upper, mixture, steps = _relaxed(scores, kernel, budget)

    def spent(q: np.ndarray) -> tuple[float, np.ndarray]:
        return float(q @ kernel @ q), 2 * kernel @ q

    # If X is a mixture of QQ', its rows are, up to scale, means of the Q's.
    heaviest = np.argsort(mixture.sum(axis=1))[:-4:-1]
    starts = [mixture.sum(axis=0), *mixture[heaviest], np.asarray(start)]
    climbed = [climb_from(scores, spent, budget, q / q.sum()) for q in starts]
    gain, q = best_feasible(pair, p, [p, np.asarray(start), *climbed])
    return Interval(gain, max(gain, upper - float(p @ scores)), jnp.asarray(q), steps)


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
    with warnings.catch_warnings():
        # Of a solution that is not accurate, which costs tightness alone.
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL)
    solution: Any = price.value, gram.value, entries.dual_value
    steps: Any = program.solver_stats.num_iters
    mixture = np.zeros((n, n))
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
    """What no scores . q exceeds where q'Kq <= budget, from any multipliers."""
    price = max(float(price), 0.0)
    eigenvalues, vectors = np.linalg.eigh(gram)
    # A matrix times its transpose is positive semidefinite, up to its rounding.
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0))
    gram = root @ root.T
    matrix = (scores[:, None] + scores) / 2 + price * (budget - kernel) + gram
    sizes = price * (abs(budget) + np.abs(kernel).max()) + np.abs(scores).max()
    return float(matrix.max() + EPS * (scores.size * gram.max() + 4 * sizes))


# --- Feasible models ----------------------------------------------------------------


def climb_from(
    scores: np.ndarray,
    spent: Callable[[np.ndarray], tuple[float, np.ndarray]],
    budget: float,
    start: np.ndarray,
) -> np.ndarray:
    """A local maximiser of scores . q over distributions q that spend at most budget.

    Args:
        scores: shape (N,).
        spent: what a distribution spends, with its gradient.
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
    return q / q.sum()


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
