r"""Kernel pairs: quality and diversity from a similarity of two texts.

For a symmetric similarity K of two texts, quality is $U = Q'KP$ and diversity is
$V = -Q'KQ$. Examples are CR-NRR on n-grams of texts of one length, and BLEU with one
reference on both sides. Whether the real distribution can be beaten depends on the
number of negative eigenvalues of K on zero-sum vectors: with none, never; with two or
more, always; with one, a cone condition decides (`kernel_criterion`).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.beaten import Witness
from qdtheory.distributions import as_interior, require_x64
from qdtheory.kernels import require_kernel
from qdtheory.support.numbers import (
    EPS,
    NOISE,
    PerText,
    TextArray,
    TextMatrix,
    TextVector,
)
from qdtheory.support.records import Record

# Largest kernel whose characteristic polynomial is computed in rational arithmetic.
MAX_ELIMINATED = 32
# Relative distance below which eigenvalues are equal: rounding separates them by some
# 1e-15, errors in derivatives by about 1e-10.
MULTIPLE = 1e-9


class KernelCriterion(Record):
    """Whether a kernel pair is compatible, by the exact criterion.

    Attributes:
        compatible: no interior P is dominated, up to rounding.
        num_negative: number of negative eigenvalues of K on zero-sum vectors.
        least_eigenvalue: the least eigenvalue of K on zero-sum vectors.
        level: c, where Kz = c 1 for some z of sum 1; None if there is no such z.
        greatest: the greatest entry of K.
        all_dominated: every interior P is dominated.
        direction: for an incompatible kernel, a zero-sum d with d'Kd < 0 for which Kd
            has entries of both signs, shape (N,).
        witness: an interior P and a Q along d that beats it.
        reason: the verdict in words.
    """

    compatible: bool
    num_negative: int
    least_eigenvalue: float
    level: float | None
    greatest: float
    all_dominated: bool
    direction: TextArray | None
    witness: Witness | None
    reason: str


def kernel_criterion(kernel: TextMatrix) -> KernelCriterion:
    r"""Decide for all interior P whether some Q beats P in both metrics of a kernel.

    Some interior P is dominated iff there is a zero-sum d with $d'Kd < 0$ for which Kd
    has entries of both signs. Let K have m negative eigenvalues on zero-sum vectors.
    If m = 0 there is no such d; if $m \ge 2$ there is one orthogonal to KP for every
    P. If m = 1, consider z of sum 1 with $Kz = c\,\mathbf 1$. If there is none, again
    every P is dominated. Otherwise P is dominated if $P'KP > c$, and the pair is
    compatible iff no entry of K exceeds c: then all texts lie in one half of the cone
    $(x - z)'K(x - z) \le 0$ with apex z.

    Args:
        kernel: K, symmetric up to rounding, float64, shape (N, N).

    Returns:
        The verdict with its evidence. Magnitudes below 64 N roundings of the greatest
        entry count as 0.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric.

    Claims: N16.14, N16.17, N16.18, N16.19.

    Example:
        >>> kernel_criterion(np.eye(3)).compatible
        True
        >>> near = np.array([[1, 0.95, 0.95], [0.95, 1, 0.5], [0.95, 0.5, 1]])
        >>> result = kernel_criterion(near)
        >>> result.compatible, result.num_negative, round(result.level, 6)
        (True, 1, 1.016667)
        >>> kernel_criterion(1 - np.eye(3)).all_dominated
        True
    """
    require_x64()
    require_kernel(kernel)
    kernel = np.asarray(kernel)
    noise = _rounding_of(kernel)
    values = centred_eigenvalues(kernel)
    num_negative = int((values < -noise).sum())
    # The ones vector has eigenvalue 0, which does not belong to zero-sum vectors.
    least = float(np.delete(values, np.abs(values).argmin()).min(initial=np.inf))
    level, error = _level(kernel, noise)
    greatest = float(kernel.max())
    # P + d dominates P iff 0 <= 2 d'KP <= -d'Kd, not both equal, hence d'Kd < 0. With
    # one negative eigenvalue such d fill a double cone. If all texts lie in one half of
    # it, seen from z, Kd has the same sign at each: then d'KP or -d'K(2 P + d) is
    # negative.
    compatible = num_negative == 0 or (
        num_negative == 1 and level is not None and greatest <= level + error
    )
    all_dominated = num_negative > 1 or (num_negative == 1 and level is None)
    evidence = (None, None) if compatible else _refutation(kernel, level, noise)
    return KernelCriterion(
        compatible=compatible,
        num_negative=num_negative,
        least_eigenvalue=least,
        level=level,
        greatest=greatest,
        all_dominated=all_dominated,
        direction=evidence[0],
        witness=evidence[1],
        reason=_reason(num_negative, least, level, greatest, compatible),
    )


def centred_eigenvalues(matrix: Float[np.ndarray, "texts texts"]) -> TextVector:
    """Eigenvalues of a symmetric matrix on zero-sum vectors, and a 0 for the ones."""
    # C M C with C = I - J / N, J of ones, which leaves a zero-sum d as it is: d'CMCd is
    # d'Md.
    centred = matrix - matrix.mean(axis=0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    return np.linalg.eigvalsh((centred + centred.T) / 2)


def _reason(
    negative: int, least: float, level: float | None, greatest: float, compatible: bool
) -> str:
    if negative == 0:
        return (
            "The kernel is positive semidefinite on zero-sum vectors, up to rounding: "
            "U + V / 2 is greatest at Q = P."
        )
    many = f"{negative} eigenvalues on zero-sum vectors are"
    one = "One eigenvalue on zero-sum vectors is"
    text = f"{one if negative == 1 else many} negative, the least {least:.4g}"
    every = "every interior P is dominated, in diversity alone where KP is constant"
    if negative > 1:
        return f"{text}: {every}."
    if level is None:
        return f"{text}, and no z has Kz constant: {every}."
    if not compatible:
        return (
            f"{text}, and the greatest entry of K, {greatest:.6g}, exceeds the level "
            f"{level:.6g} of Kz = c: some P are dominated, all where P'KP exceeds it."
        )
    return (
        f"{text}, but no entry of K exceeds the level {level:.6g} of Kz = c: no P is "
        "dominated, although no weighted sum of U and V is greatest there."
    )


def _level(kernel: np.ndarray, noise: float) -> tuple[float | None, float]:
    """Solve Kz = c 1, sum(z) = 1; return c, if it exists, and its error bound."""
    # [K, -s 1; s 1', 0] (z, y) = (0, s) says Kz = s y 1 and sum(z) = 1, so c = s y.
    # As s is the size of K, one bound fits the residuals of all rows. There may be many
    # z, but one c: of two solutions z and w it is z'Kw.
    scale = np.abs(kernel).max() or 1.0
    border = np.full((len(kernel), 1), scale)
    bordered = np.block([[kernel, -border], [border.T, np.zeros((1, 1))]])
    target = np.append(np.zeros(len(kernel)), scale)
    solution = np.linalg.lstsq(bordered, target)[0]
    # Least squares always have a solution; whether the equations have is its residual.
    residual = np.abs(bordered @ solution - target).max()
    if residual > noise * np.abs(solution).max():
        return None, 0.0
    # A rounding error E of the kernel changes the level by z'Ez.
    return float(scale * solution[-1]), noise * float(np.abs(solution[:-1]).sum()) ** 2


def dominating_model(kernel: TextMatrix, p: PerText) -> Witness | None:
    """Find a model near P that beats P in both metrics of a kernel.

    Steps along a zero-sum d orthogonal to Kp with d'Kd < 0, scaled so that rare texts
    do not shorten the step, and slightly towards the texts of higher quality. Such a d
    always exists if K has two negative eigenvalues on zero-sum vectors.

    Args:
        kernel: K, symmetric up to rounding, float64, shape (N, N).
        p: the real distribution, positive, shape (N,).

    Returns:
        The model with its gains, both above rounding; None if there is no such d,
        which does not exclude a model far from P, or if Kp is constant.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric, or `p` is
            not a distribution or has zeros.

    Example:
        >>> p = np.array([0.5, 0.3, 0.2])
        >>> dominating_model(np.eye(3), p) is None
        True
        >>> better = dominating_model(1 - np.eye(3), p)
        >>> better.quality_gain > 0, better.diversity_gain > 0
        (True, True)
    """
    require_kernel(kernel)
    kernel = np.asarray(kernel)
    p = np.asarray(as_interior(p, size=len(kernel)))
    size = np.abs(kernel).max()
    # Q = P + t d + t^2 h b: as d'KP = 0, U gains t^2 h b'KP, with b'KP the variance of
    # the scores KP under P, and V gains -t^2 (2 h b'KP + d'Kd), up to t^3. With this h
    # U gains a quarter of -t^2 d'Kd and V half of it.
    d, scores = _least_curvature(kernel, p), kernel @ p
    curvature, better = -d @ kernel @ d, p * (scores - p @ scores)
    if curvature <= 8 * NOISE * len(p) * size * np.abs(d).sum() ** 2:
        return None
    if (slope := better @ scores) <= EPS * size**2:
        return None
    # The sign of d that leaves the simplex later.
    d = d if (d / p).min() > (-d / p).min() else -d
    longest = (p[d < 0] / -d[d < 0]).min()
    for step in longest * 2.0 ** -np.arange(1, 30):
        q = p + step * d + step**2 * curvature / (4 * slope) * better
        if q.min() <= 0:
            continue
        q = q / q.sum()
        # P'KP - Q'KQ, without the cancellation of two values.
        gains = (q - p) @ scores, (p - q) @ kernel @ (p + q)
        if min(gains) > NOISE * size * np.abs(q - p).sum():
            return Witness(jnp.asarray(p), jnp.asarray(q), *map(float, gains))
    return None


def _refutation(
    kernel: np.ndarray, level: float | None, noise: float
) -> tuple[Array, Witness]:
    """Find a direction that refutes the kernel, an interior P and a Q along it."""
    size = len(kernel)
    p = uniform = np.full(size, 1 / size)
    d = _least_curvature(kernel, p)
    if d @ kernel @ d >= -noise * (d @ d) and level is not None:
        # If P'KP > c, P - z is outside the cone of x'Kx <= 0, hence K-orthogonal to
        # some d inside it.
        p = _positive_point(kernel - level)
        d = _least_curvature(kernel, p)
    if d @ kernel @ d >= -noise * (d @ d):
        # The cone is a single direction, as with two texts.
        p, d = uniform, least_direction(kernel, np.ones((1, size)))
    rise = kernel @ d  # has both signs
    top, bottom = np.eye(size)[[rise.argmax(), rise.argmin()]]
    # Move P to where d does not change quality ...
    end = bottom if p @ rise > 0 else top
    share = p @ rise / ((p - end) @ rise)
    p = (1 - share) * p + share * end
    # ... and slightly towards the text of greatest gain, so that quality gains too: by
    # a quarter of -t^2 d'Kd, at this step t, and diversity by half of it.
    step = (p[d < 0] / -d[d < 0]).min() / 2
    ratio = step * -(d @ rise) / (4 * rise.max())
    p, q = p + ratio * top, p + ratio * top + step * d
    p, q = p / p.sum(), q / q.sum()
    gains = (q - p) @ kernel @ p, (p - q) @ kernel @ (p + q)
    witness = Witness(jnp.asarray(p), jnp.asarray(q), *map(float, gains))
    return jnp.asarray(d), witness


def _least_curvature(kernel: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Minimise d'Kd subject to sum(d_i) = 0, d'Kp = 0 and sum(d_i^2 / p_i) = 1.

    The norm does not affect the signs of the eigenvalues.
    """
    # With d_i = sqrt(p_i) x_i the norm is that of x. The two normals are orthogonal
    # too, as the scores less their mean under P have the mean 0.
    root, scores = np.sqrt(p), kernel @ p
    normals = root * np.stack([np.ones(len(p)), scores - p @ scores])
    return root * least_direction(root[:, None] * kernel * root, normals)


def _positive_point(excess: np.ndarray) -> np.ndarray:
    """Find an interior P with P'EP > 0, near a text or the edge between two texts.

    E = K - c has a positive entry. If it has none on the diagonal, the two texts of the
    greatest one lie in opposite halves of the cone, and the edge between them leaves
    it, unless it passes through z.
    """
    size = len(excess)
    own = np.diag(excess)
    i, j = np.unravel_index(excess.argmax(), excess.shape)
    corner = np.eye(size)[own.argmax()]
    if own.max() <= 0:
        # The maximum of the parabola a^2 E_ii + 2 a b E_ij + b^2 E_jj, a + b = 1, where
        # a : b = E_ij - E_jj : E_ij - E_ii, both positive as E_ij > 0 >= E_ii, E_jj.
        share = excess[i, j] - own[[j, i]]
        corner = share / share.sum() @ np.eye(size)[[i, j]]
    height = corner @ excess @ corner
    # Inwards by so little that at least half of the excess is left.
    for weight in 2.0 ** -np.arange(2, 20):
        p = (1 - weight) * corner + weight / size
        if p @ excess @ p > height / 2 > 0:
            return p
    return np.full(size, 1 / size)


# --- Exact arithmetic, where rounding leaves the criterion undecided ---------
def rounding_doubt(kernel: TextMatrix, criterion: KernelCriterion) -> str | None:
    """Why a kernel that is called compatible is so up to rounding only."""
    kernel = np.asarray(kernel)
    noise = _rounding_of(kernel)
    if criterion.num_negative and criterion.level is not None:
        near = criterion.greatest > criterion.level - noise
        return "The level is that entry, up to rounding." if near else None
    if criterion.least_eigenvalue > noise or _is_semidefinite(kernel):
        return None
    return "An eigenvalue is 0 up to rounding, and its sign was not shown."


def _rounding_of(kernel: np.ndarray) -> float:
    """Magnitude up to which eigenvalues and entries count as 0."""
    return 8 * NOISE * len(kernel) * float(np.abs(kernel).max())


def _is_semidefinite(kernel: np.ndarray) -> bool:
    """Whether d'Kd >= 0 for all zero-sum d, in exact rational arithmetic."""
    from flint import fmpq, fmpq_mat

    if len(kernel) > MAX_ELIMINATED:
        return False
    # On the basis e_i - e_N of the zero-sum vectors: a change of basis keeps the signs
    # of the eigenvalues (Sylvester), and this one is of integers.
    basis = np.eye(len(kernel))[:-1] - np.eye(len(kernel))[-1]
    form, directions = (
        fmpq_mat([[fmpq(*float(x).as_integer_ratio()) for x in row] for row in matrix])
        for matrix in ((kernel + kernel.T) / 2, basis)
    )
    # A polynomial with real roots has no negative one iff its signs alternate.
    descending = (directions * form * directions.transpose()).charpoly().coeffs()[::-1]
    return all((-1) ** k * number >= 0 for k, number in enumerate(descending))


def least_direction(
    matrix: Float[np.ndarray, "texts texts"], normals: Float[np.ndarray, "rows texts"]
) -> TextVector:
    """Minimise $d'Md$ over unit vectors d orthogonal to given vectors.

    Eigenvectors from LAPACK are not unique: the sign, and the direction in the
    eigenspace of a multiple eigenvalue, depend on the processor. So a fixed vector is
    projected onto the eigenspace of the least eigenvalue.
    """
    # The last rows of the decomposition are a basis of what is orthogonal to all.
    _, sizes, rows = np.linalg.svd(normals)
    basis = rows[(sizes > 1e-12 * sizes[0]).sum() :]
    if not len(basis):
        return np.zeros(len(matrix))
    form = basis @ matrix @ basis.T
    values, vectors = np.linalg.eigh((form + form.T) / 2)
    least = values <= values[0] + MULTIPLE * np.abs(values).max()
    space = vectors[:, least].T @ basis
    # A vector without symmetry, so not orthogonal to the eigenspace by symmetry.
    d = (space @ np.cos(np.arange(1, len(matrix) + 1))) @ space
    return d / np.linalg.norm(d)
