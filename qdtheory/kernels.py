r"""Kernel pairs: which similarities of two texts give a divergence.

With a symmetric similarity K of two texts, quality is $U = Q'KP$ and diversity is
$V = -Q'KQ$. CR-NRR on n-grams of texts of one length is such a pair, and BLEU with
one reference on both sides. Whether the real distribution can be beaten depends on
the negative eigenvalues of K on zero-sum vectors: none, and it cannot; two, and it
can, whatever it is; one, and a cone decides (`kernel_criterion`).
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from qdtheory.bleu import bleu_table, text_bleu
from qdtheory.directions import least_direction
from qdtheory.distributions import check_distribution, require_x64
from qdtheory.local_tests import Witness
from qdtheory.ngrams import ngram_matrix
from qdtheory.pairs import STATIC
from qdtheory.spaces import TextSpace

EPS = float(np.finfo(float).eps)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KernelPair:
    r"""Similarity to P against dissimilarity within Q: $U = Q'KP$, $V = -Q'KQ$.

    U is the expected similarity of a model's and a real text, -V that of two texts of
    the model. With $\Psi = U + V / 2$ the gap $\Psi(P) - \Psi(Q)$ is half the squared
    maximum mean discrepancy of P and Q.

    Args:
        kernel: K, symmetric up to rounding, finite, float64, shape (N, N); it need
            not be positive semidefinite.
        name: what to call it.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric.

    References:
        Gretton et al. 2012 for the discrepancy; the pair is ours.

    Example:
        >>> pair = KernelPair(np.array([[1.0, 0.5], [0.5, 1.0]]))
        >>> p = np.array([0.5, 0.5])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.75, -0.75)
    """

    kernel: Any
    name: str = field(default="kernel", metadata=STATIC)

    def __post_init__(self) -> None:
        # JAX rebuilds the pair around tracers and placeholders too.
        if isinstance(self.kernel, np.ndarray | jax.Array | list | tuple) and not (
            isinstance(self.kernel, Tracer)
        ):
            _check_kernel(self.kernel)

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        """The expected similarity K p of each text to a real one.

        Args:
            p: the real distribution, shape (N,).

        Returns:
            Scores, shape (N,).

        Raises:
            ValueError: `p` is no distribution over N texts.
        """
        kernel = jnp.asarray(self.kernel)
        return kernel @ check_distribution(p, "p", len(kernel))

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        """The expected similarity Q'KP of a model's text and a real one.

        Args:
            q: the model, shape (N,).
            p: the real distribution, shape (N,).

        Returns:
            A scalar.

        Raises:
            ValueError: not two distributions over N texts.
        """
        return check_distribution(q, "q", len(self.kernel)) @ self.text_quality(p)

    def diversity(self, q: Float[ArrayLike, " texts"]) -> Float[Array, ""]:
        """Minus the expected similarity Q'KQ of two texts of the model.

        Args:
            q: the model, shape (N,).

        Returns:
            A scalar.

        Raises:
            ValueError: `q` is no distribution over N texts.
        """
        q = check_distribution(q, "q", len(self.kernel))
        return -q @ jnp.asarray(self.kernel) @ q


def _check_kernel(kernel: Any) -> None:
    if not isinstance(kernel, np.ndarray | jax.Array) or kernel.dtype != np.float64:
        got = (
            f"dtype {kernel.dtype}"
            if hasattr(kernel, "dtype")
            else f"a {type(kernel).__name__}"
        )
        raise TypeError(
            f"kernel must be a NumPy or JAX array of float64, got {got}; "
            "convert it with numpy.asarray(kernel, dtype=float)"
        )
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1] or not kernel.size:
        raise ValueError(
            "kernel must be a square matrix with a row and a column for each text, "
            f"got shape {kernel.shape}"
        )
    values = np.asarray(kernel)
    if not np.isfinite(values).all():
        i, j = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"kernel must be finite, got {values[i, j]} at [{i}, {j}]")
    asymmetry = np.abs(values - values.T)
    if asymmetry.max() > 8 * np.finfo(float).eps * np.abs(values).max():
        i, j = np.unravel_index(asymmetry.argmax(), values.shape)
        raise ValueError(
            f"kernel must be symmetric, got {values[i, j]:.6g} at [{i}, {j}] and "
            f"{values[j, i]:.6g} at [{j}, {i}]; (kernel + kernel.T) / 2 is symmetric"
        )


def squared_mmd(
    kernel: Float[ArrayLike, "texts texts"],
    q: Float[ArrayLike, " texts"],
    p: Float[ArrayLike, " texts"],
) -> Float[Array, ""]:
    r"""Squared maximum mean discrepancy, $(Q - P)'K(Q - P)$.

    Twice the gap $\Psi(P) - \Psi(Q)$ of the kernel pair, with $\Psi = U + V / 2$.
    Summed over the difference, so it keeps its digits where Q is close to P.

    Args:
        kernel: K, symmetric, shape (N, N).
        q: the model, shape (N,).
        p: the real distribution, shape (N,).

    Returns:
        A scalar; not negative for all Q and P iff K is positive semidefinite on
        zero-sum vectors.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: a bad kernel, or not two distributions over N texts.

    References:
        Gretton et al. 2012, lemma 4.

    Example:
        >>> a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> float(squared_mmd(np.eye(2), a, b))
        2.0
    """
    pair = KernelPair(kernel)
    q = check_distribution(q, "q", len(pair.kernel))
    difference = q - check_distribution(p, "p", q.size)
    return difference @ jnp.asarray(kernel) @ difference


def ngram_kernel(space: TextSpace, n: int) -> Float[np.ndarray, "texts texts"]:
    """The n-gram kernel: the chance that an n-gram of each of two texts agree.

    Its pair is CR-NRR on n-grams, and its squared discrepancy is CND.

    Args:
        space: texts of one length.
        n: order, 1 .. the texts' length.

    Returns:
        K, shape (num_texts, num_texts), positive semidefinite.

    Raises:
        ValueError: `n` is out of range, the matrix would not fit, or the texts have
            several lengths, where n-gram frequencies are not linear in Q.

    Example:
        >>> ngram_kernel(TextSpace(vocab_size=2, lengths=2), 1)[0].tolist()
        [1.0, 0.5, 0.5, 0.0]
    """
    if len(space.lengths) > 1:
        raise ValueError(
            "the n-gram kernel needs texts of one length, got lengths "
            f"{space.lengths}; NgramPair takes several"
        )
    counts = ngram_matrix(space, n)
    return counts.T @ counts / (space.max_length - n + 1) ** 2


def bleu_kernel(space: TextSpace, max_order: int) -> Float[np.ndarray, "texts texts"]:
    """BLEU of one text against another as the one reference.

    Its pair is expected BLEU and Self-BLEU with one reference each.

    Args:
        space: texts of one length.
        max_order: highest order of the n-grams.

    Returns:
        K, shape (num_texts, num_texts), symmetric.

    Raises:
        ValueError: max_order below 1, a table that would not fit, or texts of several
            lengths, where the brevity penalty makes BLEU depend on who is judged.

    References:
        Li et al. 2020, section 5.1; that it is a kernel is ours.

    Example:
        >>> bleu_kernel(TextSpace(vocab_size=2, lengths=2), 2)[1].round(4).tolist()
        [0.0, 1.0, 0.0, 0.0]
    """
    if len(space.lengths) > 1:
        raise ValueError(
            "BLEU is a symmetric kernel for texts of one length only, got lengths "
            f"{space.lengths}"
        )
    space.refuse_beyond_memory(8 * space.num_texts**2, "BLEU kernel")
    table = bleu_table(space, max_order)
    columns = jax.lax.map(lambda b: text_bleu(table, b, 1), jnp.eye(space.num_texts))
    kernel = np.asarray(columns)
    # Equal up to the rounding of sums in another order.
    return (kernel + kernel.T) / 2


# --- The criterion -----------------------------------------------------------------


@dataclass(frozen=True)
class KernelCriterion:
    """Whether a kernel pair is compatible, by the exact criterion.

    Attributes:
        compatible: no interior P is dominated, up to rounding.
        num_negative: how many eigenvalues of K on zero-sum vectors are negative.
        least_eigenvalue: the least of them.
        level: c, where Kz = c 1 for some z of sum 1; None if there is no such z.
        greatest: the greatest entry of K.
        all_dominated: every interior P is dominated.
        direction: of an incompatible kernel a zero-sum d with d'Kd < 0 for which Kd
            has both signs, shape (N,).
        witness: an interior P and the Q along d that beats it.
        reason: in words.
    """

    compatible: bool
    num_negative: int
    least_eigenvalue: float
    level: float | None
    greatest: float
    all_dominated: bool
    direction: Float[Array, " texts"] | None
    witness: Witness | None
    reason: str


def kernel_criterion(kernel: Float[ArrayLike, "texts texts"]) -> KernelCriterion:
    r"""Decide for all interior P whether some Q beats P in both metrics of a kernel.

    P is dominated for some interior P iff a zero-sum d has $d'Kd < 0$ and Kd of both
    signs. Let K have m negative eigenvalues on zero-sum vectors. If m = 0 there is no
    such d; if $m \ge 2$ there is one at right angles to KP for every P. If m = 1, look
    for z of sum 1 with $Kz = c\,\mathbf 1$. Without one, again every P is dominated.
    With one, P is dominated where $P'KP > c$, and the pair is compatible iff no entry
    of K exceeds c: then all texts lie in one half of the cone
    $(x - z)'K(x - z) \le 0$ with its tip at z.

    Args:
        kernel: K, symmetric up to rounding, float64, shape (N, N).

    Returns:
        The verdict with its evidence. Up to rounding: 64 N roundings of the
        greatest entry count as none.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric.

    Example:
        >>> kernel_criterion(np.eye(3)).compatible
        True
        >>> near = np.array([[1, 0.95, 0.95], [0.95, 1, 0.5], [0.95, 0.5, 1]])
        >>> found = kernel_criterion(near)
        >>> found.compatible, found.num_negative, round(found.level, 6)
        (True, 1, 1.016667)
        >>> kernel_criterion(1 - np.eye(3)).all_dominated
        True
    """
    require_x64()
    _check_kernel(kernel)
    kernel = np.asarray(kernel)
    size = len(kernel)
    noise = 64 * size * EPS * float(np.abs(kernel).max())
    centred = kernel - kernel.mean(axis=0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    values = np.linalg.eigvalsh((centred + centred.T) / 2)
    num_negative = int((values < -noise).sum())
    # Of the ones vector comes one eigenvalue 0 that is not of zero-sum vectors.
    least = float(np.delete(values, np.abs(values).argmin()).min(initial=np.inf))
    level, error = _level(kernel, noise)
    greatest = float(kernel.max())
    compatible = num_negative == 0 or (
        num_negative == 1 and level is not None and greatest <= level + error
    )
    all_dominated = num_negative > 1 or (num_negative == 1 and level is None)
    direction, witness = None, None
    if not compatible:
        direction, witness = _beaten(kernel, level, noise)
    return KernelCriterion(
        compatible=compatible,
        num_negative=num_negative,
        least_eigenvalue=least,
        level=level,
        greatest=greatest,
        all_dominated=all_dominated,
        direction=direction,
        witness=witness,
        reason=_reason(num_negative, least, level, greatest, compatible),
    )


def _reason(
    num_negative: int,
    least: float,
    level: float | None,
    greatest: float,
    compatible: bool,
) -> str:
    if num_negative == 0:
        return (
            "The kernel is positive semidefinite on zero-sum vectors, up to rounding: "
            "U + V / 2 is greatest at Q = P."
        )
    found = f"{num_negative} eigenvalues on zero-sum vectors are negative"
    if num_negative == 1:
        found = "One eigenvalue on zero-sum vectors is negative"
    found += f", the least {least:.4g}"
    every = "every interior P is dominated, in diversity alone where KP is constant"
    if num_negative > 1:
        return f"{found}: {every}."
    if level is None:
        return f"{found}, and no z has Kz constant: {every}."
    if not compatible:
        return (
            f"{found}, and the greatest entry of K, {greatest:.6g}, exceeds the level "
            f"{level:.6g} of Kz = c: some P are dominated, all where P'KP exceeds it."
        )
    return (
        f"{found}, but no entry of K exceeds the level {level:.6g} of Kz = c: no P is "
        "dominated, although no weighted sum of U and V is greatest there."
    )


def _level(kernel: np.ndarray, noise: float) -> tuple[float | None, float]:
    """The number c with Kz = c 1 and sum(z) = 1, if there is one, and its error."""
    size = len(kernel)
    scale = np.abs(kernel).max() or 1.0
    border = np.full((size, 1), scale)
    bordered = np.block([[kernel, -border], [border.T, np.zeros((1, 1))]])
    target = np.append(np.zeros(size), scale)
    solution = np.linalg.lstsq(bordered, target)[0]
    missed = np.abs(bordered @ solution - target).max()
    if missed > noise * np.abs(solution).max():
        return None, 0.0
    # Of a kernel off by a rounding E the level is off by z'Ez.
    return float(scale * solution[-1]), noise * float(np.abs(solution[:-1]).sum()) ** 2


def dominating_model(
    kernel: Float[ArrayLike, "texts texts"], p: Float[ArrayLike, " texts"]
) -> Witness | None:
    """A model that beats P in both metrics of a kernel, near P.

    It steps along a zero-sum d at right angles to Kp with d'Kd < 0, scaled so that rare
    texts do not shorten the step, and a little towards the texts of higher quality.
    With two negative eigenvalues on zero-sum vectors there always is such a d.

    Args:
        kernel: K, symmetric up to rounding, float64, shape (N, N).
        p: the real distribution, positive, shape (N,).

    Returns:
        The model with its gains, both above rounding; None where there is no such d,
        which does not exclude a model far from P, or where Kp is constant.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: a bad kernel, or `p` is no distribution or has zeros.

    Example:
        >>> p = np.array([0.5, 0.3, 0.2])
        >>> dominating_model(np.eye(3), p) is None
        True
        >>> found = dominating_model(1 - np.eye(3), p)
        >>> found.quality_gain > 0, found.diversity_gain > 0
        (True, True)
    """
    _check_kernel(kernel)
    kernel = np.asarray(kernel)
    p = np.asarray(check_distribution(p, "p", len(kernel)))
    if p.min() == 0:
        raise ValueError(
            "p must be positive everywhere; leave out the texts of probability 0"
        )
    size = np.abs(kernel).max()
    d, scores = _unseen(kernel, p), kernel @ p
    bend, better = -d @ kernel @ d, p * (scores - p @ scores)
    if bend <= 64 * len(p) * EPS * size * np.abs(d).sum() ** 2:
        return None
    if (slope := better @ scores) <= EPS * size**2:
        return None
    d = d if (d / p).min() > (-d / p).min() else -d
    longest = (p[d < 0] / -d[d < 0]).min()
    for step in longest * 2.0 ** -np.arange(1, 30):
        q = p + step * d + step**2 * bend / (4 * slope) * better
        if q.min() <= 0:
            continue
        q = q / q.sum()
        gains = (q - p) @ scores, (p - q) @ kernel @ (p + q)
        if min(gains) > 8 * EPS * size * np.abs(q - p).sum():
            return Witness(jnp.asarray(p), jnp.asarray(q), *map(float, gains))
    return None


def _beaten(
    kernel: np.ndarray, level: float | None, noise: float
) -> tuple[Array, Witness]:
    """A direction that refutes the kernel, with an interior P and the Q along it."""
    size = len(kernel)
    p = uniform = np.full(size, 1 / size)
    d = _unseen(kernel, p)
    if d @ kernel @ d >= -noise * (d @ d) and level is not None:
        p = _above(kernel - level)
        d = _unseen(kernel, p)
    if d @ kernel @ d >= -noise * (d @ d):
        # The cone has no inside but one direction, as with two texts.
        p, d = uniform, least_direction(kernel, np.ones((1, size)))
    rise = kernel @ d
    top, bottom = np.eye(size)[[rise.argmax(), rise.argmin()]]
    # P is moved to where it does not see d ...
    end = bottom if p @ rise > 0 else top
    share = p @ rise / ((p - end) @ rise)
    p = (1 - share) * p + share * end
    # ... and a little up the rise, so that quality gains too.
    step = (p[d < 0] / -d[d < 0]).min() / 2
    ratio = step * -(d @ rise) / (4 * rise.max())
    p, q = p + ratio * top, p + ratio * top + step * d
    p, q = p / p.sum(), q / q.sum()
    gains = (q - p) @ kernel @ p, (p - q) @ kernel @ (p + q)
    witness = Witness(jnp.asarray(p), jnp.asarray(q), *map(float, gains))
    return jnp.asarray(d), witness


def _unseen(kernel: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The zero-sum d at right angles to Kp of least d'Kd, for d of size 1 against P.

    That is in the norm of sum(d_i^2 / p_i); the signs of the eigenvalues are those of
    any other.
    """
    root, scores = np.sqrt(p), kernel @ p
    normals = root * np.stack([np.ones(len(p)), scores - p @ scores])
    return root * least_direction(root[:, None] * kernel * root, normals)


def _above(excess: np.ndarray) -> np.ndarray:
    """An interior P with P'EP > 0 near a text or the edge of two, if there is one.

    E has a positive entry, and one positive eigenvalue at most on zero-sum vectors
    with a negative diagonal.
    """
    size = len(excess)
    own = np.diag(excess)
    i, j = np.unravel_index(excess.argmax(), excess.shape)
    corner = np.eye(size)[own.argmax()]
    if own.max() <= 0:
        # The top of a parabola along the edge, where E_ij > 0 >= E_ii, E_jj.
        share = excess[i, j] - own[[j, i]]
        corner = share / share.sum() @ np.eye(size)[[i, j]]
    height = corner @ excess @ corner
    for mixed in 2.0 ** -np.arange(2, 20):
        p = (1 - mixed) * corner + mixed / size
        if p @ excess @ p > height / 2 > 0:
            return p
    return np.full(size, 1 / size)
