r"""Upper bounds on QDisc for Self-BLEU with two references, a cubic diversity.

$V = -C(Q, Q, Q)$ for a symmetric tensor C, and the gain in quality is $g \cdot Q$. For
every $\eta \ge 0$, all positive semidefinite $S_1, \dots, S_N, S$ and a known gain f,
each Q with $C(Q, Q, Q) \le s$ and $g \cdot Q \ge f$ satisfies
$$g \cdot Q \le g \cdot Q + \eta (s - C(Q, Q, Q)) + \sum_x Q_x\,Q'S_xQ
+ (g \cdot Q - f)\,Q'SQ,$$
as all added terms are nonnegative. The right side is the mean
$\sum_{xyz} Q_x Q_y Q_z A_{xyz}$,
$$A_{xyz} = \tfrac{1}{3} (g_x + g_y + g_z) + \eta (s - C_{xyz})
+ \mathrm{sym}(R)_{xyz}, \quad R_{xyz} = (S_x)_{yz} + (g_x - f) S_{yz},$$
of the entries of A, so the larger of f and the maximum entry bounds the gain.
`cubic_bound` verifies $\eta$ and the matrices, independently of the solver.

They are computed by the alternating direction method of multipliers (ADMM) on the
dual problem: a symmetric $T \ge 0$ of sum 1 in place of $Q \otimes Q \otimes Q$, with
$C \cdot T \le s$ and positive semidefinite slices $T_x$ and
$\sum_x (g_x - f) T_x$. The last constraint closes the gap left by the others. At the
optimum Q has few texts; each axis is scaled by a unit that grows where Q is small, as
the multipliers of the other texts would otherwise take many times more steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from qdtheory.bleu import BleuTable
from qdtheory.bounds import bounds
from qdtheory.bounds.boxes import climb_from
from qdtheory.problem import Problem
from qdtheory.support.numbers import EPS, TINY, within
from qdtheory.support.records import Record

METHOD = "the cubic relaxation"
# A step diagonalises N matrices of size N x N, .05 s at 64 texts; memory grows as N^3.
MAX_TEXTS = 64
# Probability below which the units of the axes no longer grow.
SMALL = 0.02
# Initial penalty parameter, for gains of range 1, and the largest factor by which it is
# adapted at a check.
RHO, MAX_FACTOR = 2.0, 2.0
OVERRELAXATION = 1.6  # the usual one
STEPS_BETWEEN_CHECKS = 20
# Newton's method takes 3 steps; if it cycles, only tightness is lost.
MAX_NEWTON = 50
# Doublings of the diagonal shift: from a rounding error to more than the matrix.
MAX_SHIFTS = 64


class CubicCertificate(Record):
    r"""Certificate of the upper bound that `cubic_bound` computes.

    Attributes:
        price: $\eta$, nonnegative.
        grams: $S_1, \dots, S_N$, shape (N, N, N).
        gram: S, shape (N, N).
        floor: f, a gain that some model attains.
    """

    price: float
    grams: np.ndarray
    gram: np.ndarray
    floor: float


def cubic_bounds(
    posed: Problem,
    table: BleuTable,
    start: np.ndarray,
    tolerance: float = 1e-6,
    max_steps: int = 3000,
) -> bounds.Bounds:
    """Bound QDisc of BLEU with two Self-BLEU references, by its table."""
    problem, p = _problem(posed, table), posed.p
    unit, n = float(np.ptp(problem.gains)), p.size
    if unit <= problem.error:  # up to rounding no model has another quality than P
        nothing = CubicCertificate(0.0, np.zeros((n, n, n)), np.zeros((n, n)), 0.0)
        upper = _bound(problem, nothing)
        return bounds.sealed_bounds(posed, p, upper, METHOD, evidence=nothing)
    width = tolerance * unit

    def climb(q: np.ndarray) -> np.ndarray:
        shares, q = problem.gains / unit, q / q.sum()
        return climb_from(shares, problem.spent, problem.budget, q)

    q = max([p, start, climb(start)], key=posed.gain)
    lower = posed.gain(q)
    iterates = _iterates(problem, q, lower)
    upper, certificate, steps = np.inf, None, 0
    while certificate is None or (upper - lower > width and steps < max_steps):
        mixture, found = next(iterates)
        steps += STEPS_BETWEEN_CHECKS
        bound = _bound(problem, found)
        if bound < upper:
            upper, certificate = bound, found
        # Local searches cost as much as many steps: run them at check 1, 2, 4, ...
        checks = steps // STEPS_BETWEEN_CHECKS
        if checks & (checks - 1) == 0:
            # If T is a mixture of tensor cubes of Q's, the rows of its sums are
            # proportional to mixtures of the Q's.
            heaviest = mixture[np.argsort(mixture.sum(axis=1), kind="stable")[:-4:-1]]
            models = [climb(model) for model in (mixture.sum(axis=0), *heaviest)]
            better = max([q, *models], key=posed.gain)
            gain = posed.gain(better)
            if gain > lower + width / 10:
                iterates = _iterates(problem, better, gain)
            lower, q = gain, better
    # By the theorem the bound is the certificate's, or the gain that it takes as known.
    upper = max(upper, certificate.floor)
    told = {"steps": steps, "evidence": certificate}
    return bounds.sealed_bounds(posed, q, upper, METHOD, **told)


def certificate_bound(
    posed: Problem, table: BleuTable, certificate: CubicCertificate
) -> float:
    """Upper bound on QDisc from a certificate of any origin."""
    problem = _problem(posed, table)
    n = problem.gains.size
    price, grams, gram = certificate.price, certificate.grams, certificate.gram
    if grams.shape != (n, n, n) or gram.shape != (n, n):
        raise ValueError(
            f"a certificate for {n} texts has matrices of shape {(n, n, n)} and "
            f"{(n, n)}, got {grams.shape} and {gram.shape}"
        )
    within(price=price, low=0)
    return max(certificate.floor, _bound(problem, certificate))


# --- The bound ----------------------------------------------------------------------
@dataclass(frozen=True)
class _Problem:
    """Maximise gains . Q subject to C(Q, Q, Q) <= budget.

    A symmetric tensor is stored as its entries i <= j <= k.
    """

    gains: np.ndarray
    tensor: np.ndarray  # C
    budget: float
    rounding: float  # of C
    error: float  # of the gains
    index: np.ndarray  # i, j and k of each entry, shape (3, M)
    place: np.ndarray  # which entry each of the N^3 is
    count: np.ndarray  # how often an entry occurs among them

    def spent(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return C(q, q, q) and its gradient."""
        slope = self.tensor @ q @ q
        return float(slope @ q), 3 * slope

    def entries(self, tensor: np.ndarray) -> np.ndarray:
        """Return the stored entries of the symmetric part of a tensor."""
        return np.bincount(self.place, tensor.ravel()) / self.count

    def full(self, entries: np.ndarray) -> np.ndarray:
        """Return the full tensor with these entries."""
        return entries[self.place].reshape(self.tensor.shape)


def _problem(posed: Problem, table: BleuTable) -> _Problem:
    bounds.require_few_texts(posed, MAX_TEXTS)
    p, scores, n = posed.p, posed.scores, posed.p.size
    tensor, rounding = _self_bleu(table, n)
    key = np.sort(np.indices((n, n, n)).reshape(3, -1), axis=0)
    code = (key[0] * n + key[1]) * n + key[2]
    codes, place, count = np.unique(code, return_inverse=True, return_counts=True)
    return _Problem(
        gains=scores - p @ scores,
        tensor=tensor,
        budget=float(tensor @ p @ p @ p),
        rounding=rounding,
        error=posed.score_error + bounds.constant_gain(scores),
        index=np.stack([codes // n**2, codes // n % n, codes % n]),
        place=place,
        count=count.astype(float),
    )


def _self_bleu(table: BleuTable, n: int) -> tuple[np.ndarray, float]:
    """The mean BLEU of three texts, each against the others, and its rounding.

    Exact is what the weights of the table say.
    """
    sets = np.asarray(table.sets).reshape(-1, n)[: table.num_sets].astype(float)
    weights = np.zeros((n, len(sets)))
    pairs = np.asarray(table.text), np.asarray(table.set_index)
    np.add.at(weights, pairs, table.weight)
    tensor = np.stack([(row * sets.T) @ sets for row in weights])
    tensor = (tensor + tensor.transpose(1, 0, 2) + tensor.transpose(2, 1, 0)) / 3
    # A sum of products has at most as many roundings as it has terms.
    return tensor, EPS * (len(sets) + 4) * float(np.abs(weights).sum(axis=1).max())


def _bound(problem: _Problem, certificate: CubicCertificate) -> float:
    """The largest entry of A, with what the matrices lack to be semidefinite."""
    price, grams, gram = certificate.price, certificate.grams, certificate.gram
    gains, n = problem.gains, problem.gains.size
    gap = gains - certificate.floor
    added = problem.entries(grams + gap[:, None, None] * gram)
    entries = gains[problem.index].mean(axis=0) + added
    entries += price * (problem.budget - problem.entries(problem.tensor))
    # S + c is semidefinite, and Q'(S + c)Q exceeds Q'SQ by c at most.
    lacks = [_lack(matrix) for matrix in (*grams, gram)]
    shift = max(lacks[:n]) + lacks[n] * max(gap.max(), 0)
    largest, most = np.abs(gram).max(), np.abs(gains).max() + abs(certificate.floor)
    # Each entry is a sum of six means of three or six terms, each off by a rounding.
    sizes = np.abs(gains).max() + np.abs(grams).max() + most * largest
    sizes += price * (1 + problem.budget)
    rounding = 64 * EPS * sizes + problem.error * (1 + largest)
    # The budget is a sum of N^3 products, and is off by what C is off by, as C is.
    rounding += price * (2 * problem.rounding + 4 * (n + 1) * EPS * problem.budget)
    return float(entries.max() + shift + rounding)


def _lack(matrix: np.ndarray) -> float:
    """Diagonal shift that makes a matrix provably positive semidefinite.

    If a Cholesky factorisation succeeds in floating point, the matrix is within
    (N + 1) EPS times its trace of a positive semidefinite one.

    References:
        Rump 2006, Verification of positive definiteness, BIT 46, Theorem 2.3.
    """
    size, n = float(np.linalg.norm(matrix)), len(matrix)
    matrix = (matrix + matrix.T) / 2
    least = float(np.linalg.eigvalsh(matrix)[0])
    if not least >= -1e-9 * size:
        raise ValueError(
            "the matrices of a certificate must be positive semidefinite, up to "
            f"rounding; got the eigenvalue {least:.2g}"
        )
    shift = max(0.0, -least) + n * EPS * size + TINY
    for _ in range(MAX_SHIFTS):
        raised = matrix + shift * np.eye(n)
        try:
            np.linalg.cholesky(raised)
        except np.linalg.LinAlgError:
            shift *= 2
        else:
            # Plus the rounding of the sums above.
            return shift + (n + 4) * EPS * (float(np.trace(raised)) + size)
    raise ValueError("a matrix of a certificate is not finite")


# --- The solver ---------------------------------------------------------------------
def _iterates(
    problem: _Problem, q: np.ndarray, floor: float
) -> Iterator[tuple[np.ndarray, CubicCertificate]]:
    """Generate T and a certificate every `STEPS_BETWEEN_CHECKS` steps of the ADMM.

    The method keeps T in the polytope of its linear constraints, a copy of it with
    semidefinite slices, another with a semidefinite sum of slices, and multipliers,
    which are minus the negative parts removed by the projections.
    """
    n, units = q.size, ((q.max() + SMALL) / (q + SMALL)) ** 0.5
    scale = max(float(np.ptp(problem.gains)), EPS)
    # Coefficients of the entries: in their sum, in the budget and in the objective.
    ones = 1 / units[problem.index].prod(axis=0)
    rows = np.stack([ones, problem.entries(problem.tensor) * ones])
    gains = problem.gains[problem.index].mean(axis=0) / scale * ones
    direction = (problem.gains - floor) / units
    length = max(float(np.linalg.norm(direction)), EPS)
    direction = direction / length
    area, across = units[:, None] * units, direction[:, None, None]
    slices = np.einsum("i,j,k->ijk", *[units * q] * 3)
    summed, rho = slices, RHO
    grams, gram = np.zeros_like(slices), np.zeros((n, n))
    start = problem.entries(slices) + gains / (2 * rho)
    prices = np.array([(start / ones).min(), 0.0])
    for step in count(1):
        before = slices, summed
        target = problem.entries(slices + grams + summed + across * gram) / 2
        target += gains / (2 * rho)
        entries, prices = _projected(target, rows, problem, prices)
        tensor = problem.full(entries)
        # Each copy moves to W = P - M; it keeps P, and M is the new multiplier.
        first = tensor + (OVERRELAXATION - 1) * (tensor - slices) - grams
        second = tensor + (OVERRELAXATION - 1) * (tensor - summed)
        along = np.tensordot(direction, second, 1) - gram
        parts = _negative_parts(np.concatenate([first, along[None]]))
        slices, summed = first + parts[:n], second + across * (parts[n] - gram)
        grams, gram = parts[:n], parts[n]
        if step % STEPS_BETWEEN_CHECKS:
            continue
        unit = rho * scale
        certificate = CubicCertificate(
            price=unit * float(2 * prices[1]),
            grams=unit * units[:, None, None] * area * grams,
            gram=unit / length * area * gram,
            floor=floor,
        )
        yield problem.full(entries * ones).sum(axis=0), certificate
        apart = np.hypot(*(np.linalg.norm(tensor - x) for x in (slices, summed)))
        moved = np.hypot(*map(np.linalg.norm, (slices - before[0], summed - before[1])))
        # Such that both vanish alike.
        ratio = np.sqrt((apart + TINY) / (moved + TINY))
        factor = float(np.clip(ratio, 1 / MAX_FACTOR, MAX_FACTOR))
        rho *= factor
        grams, gram, prices = grams / factor, gram / factor, prices / factor


def _negative_parts(matrices: np.ndarray) -> np.ndarray:
    """M of P - M, both semidefinite, with PM = 0; shape (K, N, N)."""
    values, vectors = np.linalg.eigh(matrices)
    root = vectors * np.sqrt(np.maximum(-values, 0))[:, None, :]
    return root @ root.transpose(0, 2, 1)


def _projected(
    target: np.ndarray, rows: np.ndarray, problem: _Problem, prices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Project onto the entries of sum 1 within the budget; return them and the prices.

    Newton's method on the two prices: entries are max(0, target - prices . rows).
    """
    goal = np.array([1.0, problem.budget])
    for _ in range(MAX_NEWTON):
        entries = np.maximum(target - prices @ rows, 0)
        excess = (rows * problem.count) @ entries - goal
        slack = prices[1] == 0 and excess[1] <= 0
        if abs(excess[0]) < 1e-12 and (slack or abs(excess[1]) < 1e-12):
            break
        on = entries > 0
        slopes = (rows[:, on] * problem.count[on]) @ rows[:, on].T
        if not on.any():
            # Just below the least price that leaves nothing.
            least = ((target - prices[1] * rows[1]) / rows[0]).max()
            prices = np.array([least - 1e-3 * abs(least) - 1e-9, prices[1]])
            continue
        alone = excess / np.maximum(np.diag(slopes), EPS)
        if slack or np.linalg.det(slopes) <= 1e-14 * slopes[0, 0] * slopes[1, 1]:
            # One price at a time: entries of one cost cannot tell them apart.
            first = slack or abs(excess[0]) >= 1e-12
            moved = prices + np.where([first, not first], alone, 0)
        else:
            moved = prices + np.linalg.solve(slopes, excess)
            if moved[1] < 0:
                moved = np.array([prices[0] + alone[0], 0.0])
        prices = np.array([moved[0], max(moved[1], 0.0)])
    return np.maximum(target - prices @ rows, 0), prices
