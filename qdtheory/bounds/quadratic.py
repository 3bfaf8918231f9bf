r"""Certified QDisc where diversity is quadratic, by a semidefinite relaxation.

One Self-BLEU reference, or a kernel: $V = -Q'KQ$ is quadratic. For every
$\eta \ge 0$ and every positive semidefinite S, each Q with $Q'KQ \le s$ satisfies
$$u \cdot Q \le u \cdot Q + \eta (s - Q'KQ) + Q'SQ
\le \max_{ij} [(u_i + u_j) / 2 + \eta (s - K_{ij}) + S_{ij}], \qquad (1)$$
as $Q'MQ$ is a mean of the entries of M. The tightest such bound is the doubly
nonnegative relaxation, a semidefinite program. Its dual has a matrix $X \ge 0$,
$X \succeq 0$ of sum 1 in place of $QQ'$, and maximises the mean of the $u_i$ subject to
$K \cdot X \le s$; X is the multiplier of the maximum in (1).
"""

import math
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from qdtheory.bounds import bounds
from qdtheory.bounds.boxes import climb_from
from qdtheory.forms import Problem
from qdtheory.support.numbers import EPS
from qdtheory.support.packages import required

METHOD = "the doubly nonnegative relaxation"
# The semidefinite program has N^2 / 2 variables and as many constraints, so time grows
# as N^6: 64 texts take some ten seconds, 128 some ten minutes.
MAX_TEXTS = 128


def relaxed_bounds(
    problem: Problem, quadratic: tuple[np.ndarray, float], start: np.ndarray
) -> bounds.Bounds:
    """Bound QDisc for V = -Q'KQ, given K and the error bound of an entry."""
    bounds.require_few_texts(problem, MAX_TEXTS)
    p, scores, error = problem.p, problem.scores, problem.score_error
    units = bounds.in_units(scores, p, error)
    if units is None:
        upper = bounds.constant_gain(scores, problem.p, error)
        return bounds.sealed_bounds(problem, p, upper, METHOD)
    # The solver's tolerances are absolute: scores and K are rescaled to [0, 1].
    kernel, budget, rounding = _unit_kernel(*quadratic, p)
    upper, mixture, steps = _relaxed(units.scores, kernel, budget + rounding)

    def spent(q: np.ndarray) -> tuple[float, np.ndarray]:
        return float(q @ kernel @ q), 2 * kernel @ q

    # Where the relaxation is tight X is a mixture of QQ', so its rows are proportional
    # to means of the Q's, and its row sums are their mean: good starts.
    heaviest = np.argsort(mixture.sum(axis=1), kind="stable")[:-4:-1]
    starts = [mixture.sum(axis=0), *mixture[heaviest], start]
    climbed = [
        climb_from(units.scores, spent, budget, q / q.sum())
        for q in starts
        if q.sum() > 0  # the solver may have failed
    ]
    q = max([p, start, *climbed], key=problem.gain)
    upper = units.gain(upper)
    return bounds.sealed_bounds(problem, q, upper, METHOD, steps=steps)


def _unit_kernel(
    kernel: np.ndarray, error: float, p: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Rescale K to [0, 1]; return it with P'KP and the rounding error of the two.

    A constant in K is a constant in V, as a distribution sums to 1.
    """
    low = float(kernel.min())
    # Not less than the error, which would be most of a K that is constant up to it.
    unit = max(float(np.ptp(kernel)), 4 * error) or 1.0  # of a kernel of zeros
    kernel = (kernel - low) / unit
    # A P of sum 1 + e has low (1 + e)^2 in P'KP, a model low: e (2 + e) more.
    lack = math.fsum([*p.tolist(), -1.0])
    offset = low / unit * lack * (2 + lack)
    # 2 N for the two products by P, 8 for K and the sums; the error of K is in Q'KQ and
    # in P'KP.
    rounding = (2 * p.size + 8) * EPS * (1 + abs(offset)) + 2 * error / unit
    return kernel, float(p @ kernel @ p) + offset, rounding


def _relaxed(
    scores: np.ndarray, kernel: np.ndarray, budget: float
) -> tuple[float, np.ndarray, int]:
    """Upper bound on scores . q if q'Kq <= budget; 2 X; the number of iterations."""
    with required("this certificate", "certify"):
        import cvxpy as cp  # late: an extra, and slow to import

    n = scores.size
    bound, price = cp.Variable(), cp.Variable(nonneg=True)
    gram = cp.Variable((n, n), PSD=True)
    # Minimise (1) over the price and S; of two equal entries one constraint is enough.
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
    # The multiplier of an entry off the diagonal counts for two, and the sum of X and
    # its transpose doubles the diagonal: 2 X.
    mixture[upper] = np.maximum(solution[2], 0)
    bound = _quadratic_bound(scores, kernel, budget, *solution[:2])
    return bound, mixture + mixture.T, steps


def _quadratic_bound(
    u: np.ndarray, kernel: np.ndarray, budget: float, price: float, gram: np.ndarray
) -> float:
    """Upper bound on u . q if q'Kq <= budget, from any multipliers; rounded up.

    An inner product of N terms, summed in any order, is off by at most N EPS times
    that of the absolute values.
    """
    # (1) holds for any price from 0 on, so a negative one is mended, as S is below.
    price, n = max(float(price), 0.0), u.size
    eigenvalues, vectors = np.linalg.eigh(gram)
    # A matrix times its transpose is positive semidefinite, despite errors in eigh.
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0))
    gram, sizes = root @ root.T, np.abs(root) @ np.abs(root).T
    means = (u[:, None] + u) / 2
    matrix = means + price * (budget - kernel) + gram
    # Four roundings per part, and those of the product, counted twice. A negative entry
    # of S lowers the sum, which is still enough: at N > 2 by the product's 2 N sizes,
    # and at N = 2 by the other parts, which are no smaller than that entry where the
    # maximum is, as the maximum is no less than the least score, 0 in units.
    sizes = 2 * n * sizes + 4 * (np.abs(means) + gram)
    sizes += 4 * price * (abs(budget) + np.abs(kernel))
    return float((matrix + 2 * EPS * sizes).max())
