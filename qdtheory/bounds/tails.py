r"""Certified QDisc of BLEU-1, by branch and bound over the tails of words.

Texts have one length L; any numbers of references will do. A clipped count is
$\min(a, b) = \sum_j [a \ge j][b \ge j]$, where a is the candidate's count of a word g
and b the largest count in the references, which are independent. So expected BLEU-1
depends on Q only through the tail probabilities
$T_{gj} = \Pr_Q(\text{count of } g \ge j)$, linear in Q:
$L\,U = \sum_{gj} T_{gj} (1 - (1 - T_{gj}(P))^n)$ and
$L\,V = -\sum_{gj} \varphi(T_{gj})$ with $\varphi(t) = t - t (1 - t)^k$, which is
convex up to $2 / (k + 1)$ and concave beyond.
Branch and bound on boxes of tails: in each box $\varphi$ is replaced by lines below its
convex envelope, which leaves a linear program over mixtures of count vectors.

Any multipliers give a valid bound. For every $\eta \ge 0$ and y, and lines
$a_i + b_i t \le \varphi(t)$ on the box $[l, h]$, each Q in the box with
$\sum_i \varphi(T_i) \le s$ satisfies
$$w \cdot T \le w \cdot T + \eta \Big(s - \sum_i \varphi(T_i)\Big)
\le \eta \Big(s - \sum_i a_i\Big) + \max_x (w - \eta b - y) \cdot T(x)
+ \sum_i \max(y_i l_i, y_i h_i), \qquad (1)$$
where x ranges over the count vectors: T is a mean of the T(x), and $y_i T_i$ is at most
its maximum over the box. A solver's error can only loosen the bound.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from qdtheory.bounds import bounds
from qdtheory.bounds.boxes import Box, branch_and_bound, climb_from
from qdtheory.forms import Problem
from qdtheory.ngrams import ngram_matrix
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import EPS, TINY

METHOD = "branch and bound"
# Penalty per unit of constraint violation in the linear program, for scores of range 1:
# it keeps the bound finite in a box without a feasible Q. It is far above the usual
# multipliers, and caps those of the other boxes, which costs only tightness.
PENALTY = 1e5


def tail_bounds(
    problem: Problem,
    space: TextSpace,
    references: tuple[float, float],
    start: np.ndarray,
    tolerance: float = 1e-6,
    max_steps: int = 1000,
) -> bounds.Bounds:
    """Bound QDisc of BLEU-1 of (n, k) references, on texts of one length."""
    scores, error = problem.scores, problem.score_error
    if bounds.in_units(scores, problem.p, error) is None:
        upper = bounds.constant_gain(scores, problem.p, error)
        return bounds.sealed_bounds(problem, problem.p, upper, METHOD)
    program, vertex_of = _program(space, *references, problem.p)
    quality = float(program.weights @ program.real)
    support = np.zeros(len(program.vertices), bool)  # of all relaxations' optima

    # Boxes are bounded in w . T: what a model gains is added to that of P.
    def value(q: np.ndarray) -> float:
        return quality + problem.gain(q) / program.unit

    # A local search's time grows as N^3, and few vertices are of use.
    def climb(box: Box) -> np.ndarray:
        part = replace(program, vertices=program.vertices[support])
        mixture, u = np.zeros(support.size), part.vertices @ part.weights
        mixture[support] = climb_from(u, part.spent, part.budget, box.q[support])
        # Texts with the same count vector are equivalent in both metrics.
        return (mixture / np.bincount(vertex_of))[vertex_of]

    def bounded(part: tuple, target: float) -> Box:
        box = _bounded(program, part, target)
        support[box.q > 0] = True
        return box

    best = max([problem.p, start], key=value)
    ends = np.zeros_like(program.real), np.ones_like(program.real)
    root = *ends, np.empty((0, 3)), program.real
    bound, best, splits = branch_and_bound(
        bounded, root, _halves, climb, value, best, tolerance, max_steps
    )
    upper = program.unit * (bound - quality + program.rounding)
    return bounds.sealed_bounds(problem, best, upper, METHOD, steps=splits)


@dataclass(frozen=True)
class _TailProgram:
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


def _program(
    space: TextSpace, n: float, k: float, p: np.ndarray
) -> tuple[_TailProgram, np.ndarray]:
    """Build the problem, and the index of each text's vertex."""
    (length,) = space.lengths
    # T(x) of each text: 1 at (g, j) if the text has j or more of the word g.
    counts = ngram_matrix(space, 1).T[:, :, None]
    tails = (counts >= np.arange(1, length + 1)).reshape(p.size, -1).astype(float)
    vertices, vertex_of = np.unique(tails, axis=0, return_inverse=True)
    # Off by a single rounding error, for any number of texts.
    real = np.array([math.fsum(p[column > 0]) for column in tails.T])
    weights = (1 - (1 - real) ** n) / length
    unit = float(np.ptp(vertices @ weights))
    # BLEU and Self-BLEU of P assume that P sums to 1: in (1 - t)^k the 1 is that sum.
    lack = abs(math.fsum([*p.tolist(), -1.0]))
    spent = _phi(k, real)
    budget = spent.sum() + _phi_error(k, real).sum()
    # Of the sum over tails; and of phi, at a t off by the share `lack`, as phi' <= 2,
    # and of a power whose base is off by `lack`, t k times. The t sum to the length.
    budget += real.size * EPS * spent.sum() + (k + 2) * length * lack
    # A gain is w . (T(Q) - T(P)), with tails that sum to the length twice, and a weight
    # is off by n + 8 roundings over the length.
    rounding = 2 * ((n + 8) * EPS + n * lack) / unit
    # Of the sum w . T(P), of w over the unit, and of the difference that is a gain.
    rounding += (real.size + 8) * EPS * float(weights @ real + weights.sum()) / unit
    weights = weights / unit
    program = _TailProgram(vertices, weights, real, k, float(budget), unit, rounding)
    return program, vertex_of


def _phi(k: float, t: np.ndarray) -> np.ndarray:
    return t - t * (1 - t) ** k


def _slope(k: float, t: np.ndarray) -> np.ndarray:
    return 1 - (1 - t) ** k + k * t * (1 - t) ** (k - 1)


# 1 - t is off by one rounding, its power by k / 2 of them and four more of NumPy's own;
# t itself may be off by one, which phi, of slope at most 2, doubles.
def _phi_error(k: float, t: np.ndarray) -> np.ndarray:
    return EPS * (4 * t + (k + 8) * t * (1 - t) ** k)


# Likewise; 2 is for the difference and the sum, as the slope is at most 2.
def _slope_error(k: float, t: np.ndarray) -> np.ndarray:
    return EPS * (2 + (k + 8) * ((1 - t) ** k + k * t * (1 - t) ** (k - 1)))


def _bounded(program: _TailProgram, part: tuple, target: float) -> Box:
    """Bound a box by cutting planes: add lines at solutions while the bound improves.

    Its variables are the tails, and its planes lines below phi: rows of (index of the
    tail, a, b). A gap is that from the highest line to phi. The part is the box's low
    and high ends, lines, and tails at which to add more.
    """
    (low, high, lines, tails), previous = part, np.inf
    while True:
        # A half starts from the optimum of the whole, which lies outside one of them.
        tails = np.clip(tails, low, high)
        new = _supports(program.k, low, high, tails)
        # Lines within the linear program's tolerance of others are redundant.
        higher = _heights(new, tails) > _heights(lines, tails) + 1e-9
        lines = np.vstack([lines, new[higher]])
        bound, q = _relaxation(program, low, high, lines)
        tails = q @ program.vertices
        # Splitting gains more than lines do that close a twentieth of what is left.
        if bound <= target or previous - bound < 0.05 * (bound - target):
            gaps = _phi(program.k, tails) - _heights(lines, tails)
            return Box(low, high, bound, tails, gaps, q, lines)
        previous = bound


def _heights(lines: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """Height of the highest line at each tail."""
    heights = np.full(tails.size, -np.inf)
    index = lines[:, 0].astype(int)
    np.maximum.at(heights, index, lines[:, 1] + lines[:, 2] * tails[index])
    return heights


def _supports(k: float, low: np.ndarray, high: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Supporting lines at t of the convex envelopes of phi on [low, high].

    The envelope is phi up to the point whose tangent passes through (high, phi(high)),
    then that tangent. A line is below phi if it is so at `high` and up to the
    inflection, as phi is concave beyond. Up to the inflection phi is above its tangent
    at the point of contact; the line is lowered by as much as it may exceed that.
    """
    inflection = 2 / (k + 1)
    # Bisection: a tangent's height at `high` grows with its point, as phi is convex up
    # to the inflection. Where the box lies beyond, contact is at `low`: a chord.
    touch, end = np.minimum(low, inflection), np.minimum(high, inflection)
    for _ in range(53):  # bits of a float
        middle = (touch + end) / 2
        tangent = _phi(k, middle) + _slope(k, middle) * (high - middle)
        below = tangent < _phi(k, high)
        touch, end = np.where(below, middle, touch), np.where(below, end, middle)
    touch = np.maximum(touch, low)
    # At t the envelope is phi, with its tangent there, or the tangent from `touch`, by
    # the chord to (high, phi(high)).
    on_phi = (high <= inflection) | (t < touch)
    run = np.where(on_phi, 1, np.maximum(high - touch, TINY))
    rise = (_phi(k, high) - _phi(k, touch)) / run
    b = np.where(on_phi, _slope(k, t), rise)
    at = np.where(on_phi, t, touch)
    a = _phi(k, at) - b * at
    # b and the tangent's slope differ by rounding. By how much the line may exceed the
    # tangent: left of the contact if it is less steep, right of it if it is steeper.
    steeper, error = _slope(k, at) - b, _slope_error(k, at)
    turn = np.clip(inflection, low, high)
    excess = np.maximum(steeper + error, 0) * (at - low)
    excess += np.maximum(error - steeper, 0) * np.maximum(turn - at, 0)
    # By how much at `high`.
    at_high = a + b * high - _phi(k, high) + _phi_error(k, high)
    excess = np.maximum(excess + _phi_error(k, at), at_high)
    # And the roundings of a and of `at_high`, of terms of size 1 and |b|.
    a -= excess + 4 * EPS * (1 + np.abs(b))
    return np.column_stack([np.arange(t.size), a, b])


def _halves(box: Box) -> Iterator[tuple]:
    """Split a box in two along the tail with the largest gap."""
    i, cut = box.cut()
    across = np.arange(box.at.size) == i
    # A line below phi in the box is so in both halves.
    yield box.low, np.where(across, cut, box.high), box.planes, box.at
    yield np.where(across, cut, box.low), box.high, box.planes, box.at


def _relaxation(
    program: _TailProgram, low: np.ndarray, high: np.ndarray, lines: np.ndarray
) -> tuple[float, np.ndarray]:
    """Upper bound on w . T in a box, and the optimal mixture of the linear program.

    The variables are the mixture, a value in place of phi at each tail, and one slack
    shared by all constraints, which makes every box feasible.
    """
    from scipy.optimize import linprog  # late: slow to import

    vertices, (n, m) = program.vertices, program.vertices.shape
    index, (a, b) = lines[:, 0].astype(int), lines[:, 1:].T
    rows = np.zeros((2 * m + 1 + index.size, n + m + 1))
    # T <= h, T >= l, the sum of the values <= s, each up to the slack; and for each
    # line, a + b T_i <= the value at its tail.
    rows[:m, :n], rows[m : 2 * m, :n] = vertices.T, -vertices.T
    rows[2 * m, n : n + m] = 1
    rows[: 2 * m + 1, -1] = -1
    rows[2 * m + 1 :, :n] = b[:, None] * vertices.T[index]
    rows[2 * m + 1 + np.arange(index.size), n + index] = -1
    solution = linprog(
        np.concatenate([-vertices @ program.weights, np.zeros(m), [PENALTY]]),
        A_ub=rows,
        b_ub=np.concatenate([high, -low, [program.budget], -a]),
        A_eq=np.repeat([[1.0, 0.0]], [n, m + 1], axis=1),
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)] * m + [(0, None)],
        method="highs-ds",
    )
    # If the solver fails, multipliers of 0 give the score of the best text as bound.
    q, multipliers = np.ones(n), np.zeros(len(rows))
    if solution.x is not None and solution.ineqlin.marginals is not None:
        q, multipliers = np.maximum(solution.x[:n], 0), -solution.ineqlin.marginals
    return _dual_bound(program, (low, high), lines, multipliers), q / q.sum()


def _dual_bound(
    program: _TailProgram, ends: tuple, lines: np.ndarray, multipliers: np.ndarray
) -> float:
    """The bound (1), from the multipliers of the linear program's rows; rounded up."""
    weights, m = program.weights, program.weights.size
    index, (a, b) = lines[:, 0].astype(int), lines[:, 1:].T
    # Positive, so that the weights of a tail's lines can be normalised.
    multipliers = np.maximum(multipliers, TINY)
    price, y = multipliers[2 * m], multipliers[:m] - multipliers[m : 2 * m]
    # A mean of lines below phi is such a line: it is the a_i + b_i t of (1).
    share = multipliers[2 * m + 1 :]
    share = share / np.bincount(index, share)[index]
    size = np.bincount(index, share * (np.abs(a) + np.abs(b))).sum()
    a, b = np.bincount(index, share * a), np.bincount(index, share * b)
    bound = price * (program.budget - a.sum())
    bound += (program.vertices @ (weights - price * b - y)).max()
    bound += np.maximum(*(y * end for end in ends)).sum()
    # Rounding of the sum of the shares (phi is at most 1), of the means of the lines
    # and of sums of m terms.
    size = price * (program.budget + size + m) + np.abs(weights).sum() + np.abs(y).sum()
    terms = 2 * m + np.bincount(index).max() + 8
    return bound + 2 * terms * EPS * size
