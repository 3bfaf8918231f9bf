r"""Upper bounds on QDisc for Self-BLEU with two references, a cubic diversity.

$V = -C(Q, Q, Q)$ for a symmetric tensor C, and the gain in quality is $g \cdot Q$. Let
f be a gain that some model attains. For every $\eta \ge 0$ and all positive
semidefinite $S_1, \dots, S_N, S$, each Q with $C(Q, Q, Q) \le s$ and $g \cdot Q \ge f$
satisfies
$$g \cdot Q \le g \cdot Q + \eta (s - C(Q, Q, Q)) + \sum_x Q_x\,Q'S_xQ
+ (g \cdot Q - f)\,Q'SQ, \qquad (1)$$
as all added terms are nonnegative. The right side is the mean
$\sum_{xyz} Q_x Q_y Q_z A_{xyz}$,
$$A_{xyz} = \tfrac{1}{3} (g_x + g_y + g_z) + \eta (s - C_{xyz})
+ \mathrm{sym}(R)_{xyz}, \quad R_{xyz} = (S_x)_{yz} + (g_x - f) S_{yz}, \qquad (2)$$
of the entries of A, so the larger of f and the maximum entry bounds the gain.
f need not be attained: if it is too large, the bound is loose. `certificate_bound`
verifies $\eta$ and the matrices, independently of the solver.

The solver minimises the maximum entry. The dual of that problem has a symmetric tensor
T in place of $Q \otimes Q \otimes Q$: maximise $\sum_{xyz} g_x T_{xyz}$ subject to

* (a) $T \ge 0$, $\sum_{xyz} T_{xyz} = 1$, $C \cdot T \le s$,
* (b) $T_x \succeq 0$ for the slice $(T_x)_{yz} = T_{xyz}$ of each text x,
* (c) $\sum_x (g_x - f)\,T_x \succeq 0$, which narrows the gap that (b) leaves; of a
  model's tensor the sum is $(g \cdot Q - f)\,QQ'$.

$\eta$, $S_x$ and S are the multipliers of $C \cdot T \le s$, of (b) and of (c). At the
optimum Q has few texts, and the multipliers of the others would take many times more
steps. So each axis is scaled by a unit $d_x$ that grows where Q is small: T stands from
here on for $d_x d_y d_z T_{xyz}$, $o_{xyz} = 1 / (d_x d_y d_z)$ scales back, and (c)
reads $\sum_x v_x T_x \succeq 0$ with v the vector $(g_x - f) / d_x$ at length 1.

The alternating direction method of multipliers (ADMM) has T satisfy (a), a copy X of it
(b), and a copy Y (c). With the penalty $\rho$, multipliers $M_x \succeq 0$ and
$m \succeq 0$ in units of $\rho$ (minus Boyd's u, so that $\rho M_x$ and $\rho m$ are
the $S_x$ and S of (1), scaled), and the objective $c = \tfrac{1}{3} (g_x + g_y + g_z)
o_{xyz}$, a step minimises the augmented Lagrangian
$$-c \cdot T + \tfrac{\rho}{2} \|T - X - M\|^2
+ \tfrac{\rho}{2} \|T - Y - v \otimes m\|^2 \qquad (3)$$
over T, then over X and Y, and updates the multipliers:
$$T \leftarrow \max(0, \tau - \lambda\,o - \mu\,C o), \quad
\tau = \tfrac{1}{2} (X + M + Y + v \otimes m) + \tfrac{1}{2 \rho} c, \qquad (4)$$
$$X_x \leftarrow (W_x)_+, \quad M_x \leftarrow (W_x)_-, \quad
W_x = \hat T_x - M_x, \qquad (5)$$
$$Y \leftarrow \hat T + v \otimes (w_- - m), \quad m \leftarrow w_-, \quad
w = \sum_x v_x \hat T_x - m. \qquad (6)$$
Here C o is entry by entry, $\lambda$ and $\mu \ge 0$ are such that (a) holds,
$W = W_+ - W_-$ are the parts of the positive and of the negative eigenvalues, and
$\hat T$ is T, overrelaxed: it overshoots the old copy. At a fixed point T = X = Y, and
by (4) the multipliers of the unscaled problem are
$$\eta = 2 \rho \mu, \quad S_x = \rho\,d_x\,D M_x D, \quad
S = \rho\,D m D\,/\,\|((g_x - f) / d_x)_x\|, \quad D = \mathrm{diag}(d). \qquad (7)$$

References:
    Boyd et al. 2011, Distributed Optimization and Statistical Learning via the
    Alternating Direction Method of Multipliers, sections 3.1 to 3.4.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from qdtheory.bleu import BleuTable
from qdtheory.bounds import bounds
from qdtheory.bounds.boxes import climb_from
from qdtheory.forms import Problem
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
OVERRELAXATION = 1.6  # 1.5 to 1.8 are usual (Boyd et al. 2011, section 3.4.3)
STEPS_BETWEEN_CHECKS = 20
# Newton's method takes 3 steps; if it cycles, only tightness is lost.
MAX_NEWTON = 50
# How far T may be from the sum 1 and from the budget: far less than a step changes.
FEASIBLE = 1e-12
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
    problem: Problem,
    table: BleuTable,
    start: np.ndarray,
    tolerance: float = 1e-6,
    max_steps: int = 3000,
) -> bounds.Bounds:
    """Bound QDisc of BLEU with two Self-BLEU references, by its table."""
    program, p = _program(problem, table), problem.p
    unit, n = float(np.ptp(program.gains)), p.size
    if unit <= program.error:  # up to rounding no model has another quality than P
        zero = CubicCertificate(0.0, np.zeros((n, n, n)), np.zeros((n, n)), 0.0)
        upper = _bound(program, zero)
        return bounds.sealed_bounds(problem, p, upper, METHOD, evidence=zero)
    width = tolerance * unit

    def climb(q: np.ndarray) -> np.ndarray:
        scores, q = program.gains / unit, q / q.sum()
        return climb_from(scores, program.spent, program.budget, q)

    q = max([p, start, climb(start)], key=problem.gain)
    lower = problem.gain(q)
    iterates = _iterates(program, q, lower)
    upper, certificate, steps = np.inf, None, 0
    while certificate is None or (upper - lower > width and steps < max_steps):
        marginal, new = next(iterates)
        steps += STEPS_BETWEEN_CHECKS
        # Each certificate bounds by itself, so the lowest bound of all counts.
        bound = _bound(program, new)
        if bound < upper:
            upper, certificate = bound, new
        # Local searches cost as much as many steps: run them at check 1, 2, 4, ...
        checks = steps // STEPS_BETWEEN_CHECKS
        if checks & (checks - 1) == 0:
            # If T is a mixture of tensor cubes of Q's, the rows of its sums are
            # proportional to mixtures of the Q's.
            heaviest = marginal[np.argsort(marginal.sum(axis=1), kind="stable")[:-4:-1]]
            models = [climb(model) for model in (marginal.sum(axis=0), *heaviest)]
            better = max([q, *models], key=problem.gain)
            gain = problem.gain(better)
            # (c) and the units depend on f and Q: start anew if they move by much.
            if gain > lower + width / 10:
                iterates = _iterates(program, better, gain)
            lower, q = gain, better
    # (1) bounds the models that gain f or more, and the others gain less than f.
    upper = max(upper, certificate.floor)
    details = {"steps": steps, "evidence": certificate}
    return bounds.sealed_bounds(problem, q, upper, METHOD, **details)


def certificate_bound(
    problem: Problem, table: BleuTable, certificate: CubicCertificate
) -> float:
    """Upper bound on QDisc from a certificate of any origin."""
    program, n = _program(problem, table), problem.p.size
    shapes = certificate.grams.shape, certificate.gram.shape
    if shapes != ((n, n, n), (n, n)):
        raise ValueError(
            f"a certificate for {n} texts has matrices of shape {(n, n, n)} and "
            f"{(n, n)}, got {shapes[0]} and {shapes[1]}"
        )
    # Else the first term that (1) adds may be negative.
    within(price=certificate.price, low=0)
    return max(certificate.floor, _bound(program, certificate))


# --- The bound ----------------------------------------------------------------------
@dataclass(frozen=True)
class CubicProgram:
    """Maximise gains . Q subject to C(Q, Q, Q) <= budget.

    A symmetric tensor is stored as its entries i <= j <= k.
    """

    gains: np.ndarray  # g
    tensor: np.ndarray  # C
    budget: float  # s
    rounding: float  # error bound of an entry of C
    error: float  # error bound of a gain
    index: np.ndarray  # i, j and k of each entry, shape (3, M)
    place: np.ndarray  # which entry each of the N^3 is
    count: np.ndarray  # how often an entry occurs among them

    def spent(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return C(q, q, q) and its gradient."""
        slope = self.tensor @ q @ q
        return float(slope @ q), 3 * slope

    def entries(self, tensor: np.ndarray) -> np.ndarray:
        """Return the stored entries of the symmetric part of a tensor."""
        # The mean over the places of an entry is that over the orders of its indices.
        return np.bincount(self.place, tensor.ravel()) / self.count

    def full(self, entries: np.ndarray) -> np.ndarray:
        """Return the full tensor with these entries."""
        return entries[self.place].reshape(self.tensor.shape)


def _program(problem: Problem, table: BleuTable) -> CubicProgram:
    bounds.require_few_texts(problem, MAX_TEXTS)
    p, scores, n = problem.p, problem.scores, problem.p.size
    tensor, rounding = _self_bleu(table, n)
    gains, budget = scores - p @ scores, float(tensor @ p @ p @ p)
    # Of u_x and of U(P): the errors of both scores, as `score_error` counts two units
    # of roundoff (EPS) where one is due, and the sum of N products.
    error = problem.score_error + bounds.rounding_of(scores)
    # One number for each multiset of three texts: that of its ascending indices.
    key = np.sort(np.indices((n, n, n)).reshape(3, -1), axis=0)
    code = (key[0] * n + key[1]) * n + key[2]
    codes, place, count = np.unique(code, return_inverse=True, return_counts=True)
    index = np.stack([codes // n**2, codes // n % n, codes % n])
    times = count.astype(float)
    return CubicProgram(gains, tensor, budget, rounding, error, index, place, times)


def _self_bleu(table: BleuTable, n: int) -> tuple[np.ndarray, float]:
    """The mean BLEU of three texts, each against the others, and its rounding.

    Exact is what the weights of the table say.
    """
    sets = np.asarray(table.sets).reshape(-1, n)[: table.num_sets].astype(float)
    weights = np.zeros((n, len(sets)))
    pairs = np.asarray(table.text), np.asarray(table.set_index)
    np.add.at(weights, pairs, table.weight)
    # BLEU of x against y and z: the weights of the sets that hold both references.
    tensor = np.stack([(row * sets.T) @ sets for row in weights])
    tensor = (tensor + tensor.transpose(1, 0, 2) + tensor.transpose(2, 1, 0)) / 3
    # A sum of products has at most as many roundings as it has terms; sets are 0 or 1.
    return tensor, EPS * (len(sets) + 4) * float(np.abs(weights).sum(axis=1).max())


def _bound(program: CubicProgram, certificate: CubicCertificate) -> float:
    """The largest entry of A, with what makes the matrices semidefinite; rounded up."""
    price, grams, gram = certificate.price, certificate.grams, certificate.gram
    gains, n = program.gains, program.gains.size
    gap = gains - certificate.floor
    # (2), from its last term to its first.
    added = program.entries(grams + gap[:, None, None] * gram)
    entries = gains[program.index].mean(axis=0) + added
    entries += price * (program.budget - program.entries(program.tensor))
    # S + a I is semidefinite, and Q'(S + a I)Q exceeds Q'SQ by a at most, as Q'Q <= 1:
    # in (1) by the mean of the a of the S_x, and by (g . Q - f) times that of S. Both
    # depend on Q: take the largest a, and the largest gain above f.
    shifts = [_semidefinite_shift(matrix) for matrix in (*grams, gram)]
    shift = max(shifts[:n]) + shifts[n] * max(gap.max(), 0)
    # Each entry is a mean of three gains, one of six entries of R, and the price times
    # a difference, a dozen roundings of terms of these sizes; 64 EPS is 128 of them.
    largest, most = np.abs(gram).max(), np.abs(gains).max() + abs(certificate.floor)
    sizes = np.abs(gains).max() + np.abs(grams).max() + most * largest
    sizes += price * (1 + program.budget)
    # A gain stands in (2) by itself and as the factor of S.
    rounding = 64 * EPS * sizes + program.error * (1 + largest)
    # The budget is a sum of N^3 products, and is off by what C is off by, as C is.
    rounding += price * (2 * program.rounding + 4 * (n + 1) * EPS * program.budget)
    return float(entries.max() + shift + rounding)


def _semidefinite_shift(matrix: np.ndarray) -> float:
    """Multiple of the identity that makes a matrix provably positive semidefinite.

    If a Cholesky factorisation succeeds in floating point, the matrix is within
    (N + 1) EPS times its trace of a positive semidefinite one.

    References:
        Rump 2006, Verification of positive definiteness, BIT 46, Theorem 2.3.
    """
    size, n = float(np.linalg.norm(matrix)), len(matrix)
    matrix = (matrix + matrix.T) / 2  # a skew part adds nothing to Q'SQ
    least = float(np.linalg.eigvalsh(matrix)[0])
    # A solver's matrices are so up to rounding; mending others would hide a mistake.
    if not least >= -1e-9 * size:
        raise ValueError(
            "the matrices of a certificate must be positive semidefinite, up to "
            f"rounding; got the eigenvalue {least:.2g}"
        )
    # By the eigenvalue, and its error; it suffices nearly always.
    shift = max(0.0, -least) + n * EPS * size + TINY
    for _ in range(MAX_SHIFTS):
        raised = matrix + shift * np.eye(n)
        try:
            np.linalg.cholesky(raised)
            # Plus Rump's (N + 1) EPS times the trace, and three for the roundings of
            # the shifted diagonal, of the trace and of this sum.
            return shift + (n + 4) * EPS * (float(np.trace(raised)) + size)
        except np.linalg.LinAlgError:
            shift *= 2
    raise ValueError("a matrix of a certificate is not finite")


# --- The solver ---------------------------------------------------------------------
@dataclass(frozen=True)
class _Relaxation:
    """The scaled problem of (3): what no step changes."""

    program: CubicProgram
    floor: float  # f
    scale: float  # the range of the gains, which is 1 in c
    units: np.ndarray  # d
    # Of the stored entries: o and C o, the coefficients of the sum and of C . T; and c.
    costs: np.ndarray
    objective: np.ndarray
    direction: np.ndarray  # v
    length: float  # of (g - f) / d


@dataclass(frozen=True)
class _State:
    """The variables of the ADMM."""

    tensor: np.ndarray  # T
    slices: np.ndarray  # X, of semidefinite slices
    summed: np.ndarray  # Y, of semidefinite sum of slices
    grams: np.ndarray  # M
    gram: np.ndarray  # m
    prices: np.ndarray  # lambda and mu
    rho: float


def _iterates(
    program: CubicProgram, q: np.ndarray, floor: float
) -> Iterator[tuple[np.ndarray, CubicCertificate]]:
    """Generate the sum of T's slices and a certificate every few steps of the ADMM."""
    relaxation, state = _start(program, q, floor)
    for step in count(1):
        previous, state = state, _step(relaxation, state)
        if step % STEPS_BETWEEN_CHECKS == 0:
            unscaled = state.tensor * program.full(relaxation.costs[0])
            yield unscaled.sum(axis=0), _certificate(relaxation, state)
            state = _balanced(previous, state)


def _start(
    program: CubicProgram, q: np.ndarray, floor: float
) -> tuple[_Relaxation, _State]:
    """Scale the problem around a model, and start from T = X = Y, its tensor cube."""
    units = ((q.max() + SMALL) / (q + SMALL)) ** 0.5  # d
    ones = 1 / units[program.index].prod(axis=0)  # o
    costs = np.stack([ones, program.entries(program.tensor) * ones])
    scale = max(float(np.ptp(program.gains)), EPS)
    objective = program.gains[program.index].mean(axis=0) / scale * ones  # c
    direction = (program.gains - floor) / units
    length = max(float(np.linalg.norm(direction)), EPS)
    direction = direction / length  # v
    # The cube is the optimum if the relaxation is tight at Q.
    cube = np.einsum("i,j,k->ijk", *[units * q] * 3)
    # Up to this lambda no entry of (4) is cut off at 0: the sum, convex in lambda, is
    # linear there, so that Newton's method does not overshoot.
    target = program.entries(cube) + objective / (2 * RHO)
    prices, zeros = np.array([(target / ones).min(), 0.0]), np.zeros_like(cube)
    return (
        _Relaxation(program, floor, scale, units, costs, objective, direction, length),
        _State(cube, cube, cube, zeros, zeros[0], prices, RHO),
    )


def _step(relaxation: _Relaxation, state: _State) -> _State:
    """One step of the ADMM: (4), (5) and (6)."""
    program, across = relaxation.program, relaxation.direction[:, None, None]
    slices, summed, grams, gram = state.slices, state.summed, state.grams, state.gram
    # (4): (3) is rho |T - tau|^2 plus a constant, so T is the projection of tau. T is
    # symmetric and the copies are not: the entries are those of the symmetric part.
    target = program.entries(slices + grams + summed + across * gram) / 2
    target += relaxation.objective / (2 * state.rho)
    entries, prices = _projected(target, relaxation.costs, program, state.prices)
    tensor = program.full(entries)
    # (5) and (6), each with T^ = T + (alpha - 1) (T - its old copy): X minimises
    # |X - W|, and Y |Y - (T^ - v x m)|. As |v| = 1, the latter
    # has the component v x w along v, on which alone (c) depends.
    over_slices = tensor + (OVERRELAXATION - 1) * (tensor - slices) - grams  # W
    over_summed = tensor + (OVERRELAXATION - 1) * (tensor - summed)  # T^ of (6)
    along = np.tensordot(relaxation.direction, over_summed, 1) - gram  # w
    parts = _negative_parts(np.concatenate([over_slices, along[None]]))
    slices = over_slices + parts[:-1]  # W + W_- = W_+
    summed = over_summed + across * (parts[-1] - gram)
    return _State(tensor, slices, summed, parts[:-1], parts[-1], prices, state.rho)


def _negative_parts(matrices: np.ndarray) -> np.ndarray:
    """W_- of W = W_+ - W_-, both semidefinite, with W_+ W_- = 0; shape (K, N, N)."""
    values, vectors = np.linalg.eigh(matrices)
    # A matrix times its transpose: semidefinite despite errors of eigh.
    root = vectors * np.sqrt(np.maximum(-values, 0))[:, None, :]
    return root @ root.transpose(0, 2, 1)


def _projected(
    target: np.ndarray, costs: np.ndarray, program: CubicProgram, prices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Project onto (a), as in (4); return the entries, and lambda and mu.

    Newton's method on the conditions, which are piecewise linear in the two prices.
    """
    goal = np.array([1.0, program.budget])
    for _ in range(MAX_NEWTON):
        entries = np.maximum(target - prices @ costs, 0)
        excess = (costs * program.count) @ entries - goal
        # Complementary slackness: mu is 0, or the budget is spent.
        slack = prices[1] == 0 and excess[1] <= 0
        if abs(excess[0]) < FEASIBLE and (slack or abs(excess[1]) < FEASIBLE):
            break
        # Minus the derivatives of the excess, to which only positive entries add.
        on = entries > 0
        slopes = (costs[:, on] * program.count[on]) @ costs[:, on].T
        if not on.any():
            # Just below the least lambda that leaves nothing.
            least = ((target - prices[1] * costs[1]) / costs[0]).max()
            prices = np.array([least - 1e-3 * abs(least) - 1e-9, prices[1]])
            continue
        alone = excess / np.maximum(np.diag(slopes), EPS)
        if slack or np.linalg.det(slopes) <= 1e-14 * slopes[0, 0] * slopes[1, 1]:
            # One price at a time: entries of one cost C cannot tell them apart, as
            # both rows are then proportional (equality in Cauchy and Schwarz).
            first = slack or abs(excess[0]) >= FEASIBLE
            moved = prices + np.where([first, not first], alone, 0)
        else:
            moved = prices + np.linalg.solve(slopes, excess)
            if moved[1] < 0:  # stop at mu = 0, and correct the sum alone
                moved = np.array([prices[0] + alone[0], 0.0])
        prices = np.array([moved[0], max(moved[1], 0.0)])
    return np.maximum(target - prices @ costs, 0), prices


def _certificate(relaxation: _Relaxation, state: _State) -> CubicCertificate:
    """The multipliers (7), times the range of the gains, which is 1 in c."""
    units, unit = relaxation.units, state.rho * relaxation.scale
    area = units[:, None] * units  # D M D multiplies the entries of M by these
    return CubicCertificate(
        price=unit * float(2 * state.prices[1]),
        grams=unit * units[:, None, None] * area * state.grams,
        gram=unit / relaxation.length * area * state.gram,
        floor=relaxation.floor,
    )


def _balanced(previous: _State, state: _State) -> _State:
    """Adapt rho, such that the primal and the dual residual vanish alike.

    The first is the distance of T from its copies, and the second how far these moved,
    both in units of T: a larger rho holds T closer to the copies, which then lag.
    """
    norm, x, y = np.linalg.norm, state.slices, state.summed
    primal = np.hypot(norm(state.tensor - x), norm(state.tensor - y))
    dual = np.hypot(norm(x - previous.slices), norm(y - previous.summed))
    ratio = np.sqrt((primal + TINY) / (dual + TINY))
    factor = float(np.clip(ratio, 1 / MAX_FACTOR, MAX_FACTOR))
    # The multipliers themselves stay; in units of rho they change.
    grams, gram, prices = (x / factor for x in (state.grams, state.gram, state.prices))
    return replace(state, grams=grams, gram=gram, prices=prices, rho=state.rho * factor)
