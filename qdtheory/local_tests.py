r"""Two tests of any differentiable pair at an interior P: can P be beaten there?

First order: if the zero-sum parts u and v of the two gradients are not antiparallel,
a step along $u/|u| + v/|v|$ improves both metrics. Second order: where they cancel,
$u = -\eta v$, a direction along which $U + \eta V$ bends upwards does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.concave import ConcavePair
from qdtheory.directions import least_direction
from qdtheory.expressions import Expression, formula_of, jet_of
from qdtheory.ngrams import NgramPair
from qdtheory.pairs import LinearPair, Pair, ScalarFunction, SeparablePair
from qdtheory.regularized_argmax import EPS, require_concave
from qdtheory.theorem_3 import grid, search_convexity

# 1 + cosine of the gradients: an angle of 1e-9, far above their rounding.
ANTIPARALLEL_TOLERANCE = 1e-18
# The second-order test fills N x N matrices and finds their eigenvalues.
MAX_SECOND_ORDER = 1024
# Interval arithmetic takes about a millisecond a text.
MAX_PROVED = 64
STEPS = np.geomspace(1, 1e-9, 55)
# Numbers in one batch of models.
BATCH = 2**20


@dataclass(frozen=True)
class Witness:
    """A distribution that beats the real one, checked in float64.

    Attributes:
        p: the real distribution, shape (N,).
        q: the model that beats it, shape (N,).
        quality_gain: U(Q; P) - U(P; P), positive.
        diversity_gain: V(Q) - V(P), positive.
    """

    p: Float[Array, " texts"]
    q: Float[Array, " texts"]
    quality_gain: float
    diversity_gain: float


@dataclass(frozen=True)
class Finding:
    """What the tests say at one P.

    Attributes:
        text: in words.
        gap: 1 + the cosine of the gradients, where both are not zero.
        witness: a model that beats P, if one was found.
        optimal: whether P is shown to be Pareto-optimal.
    """

    text: str
    gap: float | None = None
    witness: Witness | None = None
    optimal: bool = False


@dataclass(frozen=True)
class Metrics:
    """A pair as the tests need it, on NumPy arrays.

    Attributes:
        names: what the two gradients are called.
        gradients: P to the gradients of U(.; P) and V at P, shape (N,) each.
        hessians: P to their Hessians at P, shape (N, N) each.
        values: P and models, shape (models, N), to U and V, shape (2, models).
        holds: whether a witness stands with rounding excluded, or else is confirmed
            above a noise in U and V, shape (2,).
        concave: whether U is linear and V concave in Q, as far as is known at a P.
    """

    names: tuple[str, str]
    gradients: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    hessians: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    values: Callable[[np.ndarray, np.ndarray], np.ndarray]
    holds: Callable[[Witness, np.ndarray], bool]
    concave: Callable[[np.ndarray], bool]


def metrics_of(pair: Pair) -> Metrics:
    """The pair's values and derivatives, by its formulas or by JAX.

    Args:
        pair: anything with `quality(q, p)` and `diversity(q)`, differentiable.

    Returns:
        The functions that the tests call.
    """
    if isinstance(pair, SeparablePair):
        f, g = formula_of(pair.f), formula_of(pair.g)
        if f is not None and g is not None:
            return _by_formulas(pair, f, g)
    return _by_jax(pair)


def _by_formulas(pair: Pair, f: Expression, g: Expression) -> Metrics:
    def gradients(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return f.value(p), g.jet(p).slope

    def hessians(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((p.size, p.size)), np.diag(g.jet(p).bend)

    def values(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.stack([q @ f.value(p), g.value(q).sum(axis=1)])

    def holds(witness: Witness, noise: np.ndarray) -> bool:
        return witness.p.size > MAX_PROVED or _is_proved(f, g, witness)

    return Metrics(
        ("f", "g'"), gradients, hessians, values, holds, lambda p: _is_concave(pair, p)
    )


def _is_proved(f: Expression, g: Expression, witness: Witness) -> bool:
    """Whether both gains are positive by interval arithmetic."""
    p, q = ([Fraction(float(x)) for x in side] for side in (witness.p, witness.q))
    for side in (p, q):  # the floats sum to 1 up to rounding, these exactly
        side[-1] = 1 - sum(side[:-1], Fraction(0))
    try:
        quality = sum(
            f.enclosure(x).value * (y - x).numerator / (y - x).denominator
            for x, y in zip(p, q, strict=True)
        )
        diversity = sum(
            g.enclosure(y).value - g.enclosure(x).value
            for x, y in zip(p, q, strict=True)
        )
    except ValueError:
        return False
    return bool(quality > 0 and diversity > 0)


def _by_jax(pair: Pair) -> Metrics:
    # Compiled once for all P, however many are tried.
    gradient = jax.jit(
        lambda p: (
            jax.grad(lambda q: pair.quality(q, p))(p),
            jax.grad(pair.diversity)(p),
        )
    )
    hessian = jax.jit(
        lambda p: (
            jax.hessian(lambda q: pair.quality(q, p))(p),
            jax.hessian(pair.diversity)(p),
        )
    )
    value = jax.jit(
        jax.vmap(
            lambda p, q: jnp.stack([pair.quality(q, p), pair.diversity(q)]),
            in_axes=(None, 0),
            out_axes=1,
        )
    )

    def gradients(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = gradient(p)
        return np.asarray(u), np.asarray(v)

    def hessians(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bend_u, bend_v = hessian(p)
        return np.asarray(bend_u), np.asarray(bend_v)

    def holds(witness: Witness, noise: np.ndarray) -> bool:
        """Call the pair itself, one distribution at a time."""
        p, q = witness.p, witness.q
        quality_gain = float(pair.quality(q, p)) - float(pair.quality(p, p))
        diversity_gain = float(pair.diversity(q)) - float(pair.diversity(p))
        return bool(quality_gain > noise[0] and diversity_gain > noise[1])

    return Metrics(
        ("grad U", "grad V"),
        gradients,
        hessians,
        lambda p, q: np.asarray(value(p, q)),
        holds,
        lambda p: _is_concave(pair, p),
    )


def examine(metrics: Metrics, p: Float[np.ndarray, " texts"]) -> Finding:
    """Both tests at one P.

    Args:
        metrics: the pair.
        p: the real distribution, positive, shape (N,).

    Returns:
        What they say.

    Raises:
        ValueError: a gradient is not finite at P.
    """
    gradients = metrics.gradients(p)
    for name, gradient in zip(metrics.names, gradients, strict=True):
        if not (finite := np.isfinite(gradient)).all():
            raise ValueError(
                f"{name} is not finite at P_i = {p[~finite][0]:.6g}; the tests need "
                "metrics with finite derivatives at every interior P"
            )
    u, v = (gradient - gradient.mean() for gradient in gradients)
    norm_u, norm_v = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    # What is left of a constant vector is rounding, at most about 1e-15 of it.
    norms = [float(np.linalg.norm(gradient)) for gradient in gradients]
    if norm_u <= 1e-13 * norms[0] or norm_v <= 1e-13 * norms[1]:
        return Finding("A gradient vanishes, which leaves it open")
    # 1 + cosine, without the cancellation of a sum with -1.
    gap = float(np.sum((u / norm_u + v / norm_v) ** 2) / 2)
    if gap > ANTIPARALLEL_TOLERANCE:
        witness = _best_step(metrics, p, u / norm_u + v / norm_v, 0 * p)
        if witness is not None:
            return Finding("First-order test: a step improves both", gap, witness)
        return Finding("No step gains more than rounding, which leaves it open", gap)
    if metrics.concave(p):
        return Finding(
            "The gradients are antiparallel to within an angle of 1e-9, U is linear "
            "and V concave: P is Pareto-optimal",
            gap,
            optimal=True,
        )
    return _second_order(metrics, p, u, norm_u / norm_v, gap)


def _second_order(
    metrics: Metrics, p: np.ndarray, u: np.ndarray, eta: float, gap: float
) -> Finding:
    """Curvature of U + eta V where the gradients cancel, across 1 and u."""
    if p.size > MAX_SECOND_ORDER:
        return Finding(
            "The gradients are antiparallel, and the second-order test takes at most "
            f"{MAX_SECOND_ORDER} texts, which leaves it open",
            gap,
        )
    bend_u, bend_v = metrics.hessians(p)
    size = float((np.abs(bend_u) + eta * np.abs(bend_v)).max())
    bend = bend_u + eta * bend_v
    d = least_direction(-bend, np.stack([np.ones(p.size), u / np.abs(u).max()]))
    if not d.any():
        return Finding("No direction is left to test", gap)
    most = d @ bend @ d
    # Second derivatives have a relative error of some 1e-15, and eta one of 1e-9.
    noise = 1e-8 * size
    if most > noise:
        # Along P + t d + t^2 e / 2 with e along u, the two gains are made equal.
        shift = (eta * (d @ bend_v @ d) - d @ bend_u @ d) / 2
        e = shift * u / (u @ u)
        witness = _best_step(metrics, p, d, e) or _best_step(metrics, p, -d, e)
        if witness is not None:
            return Finding("Second-order test: a curve improves both", gap, witness)
    if most < -noise:
        return Finding("P is locally optimal, which says nothing of distant Q", gap)
    return Finding("Both orders vanish, which leaves it open", gap)


def _best_step(
    metrics: Metrics, p: np.ndarray, d: np.ndarray, e: np.ndarray
) -> Witness | None:
    """The step along P + t d + t^2 e / 2 whose lesser gain is largest, if positive."""
    real = metrics.values(p, p[None])
    # Rounding of a sum of N terms, which grows like the root of N; their sizes are
    # those of the gradients times P, and of the sum before constants are taken off.
    terms = [np.abs(gradient) @ p for gradient in metrics.gradients(p)]
    noise = (16 + np.sqrt(p.size)) * EPS * (np.abs(real[:, 0]) + terms)
    best_q, best = p, np.zeros(2)
    for t in np.array_split(STEPS, 1 + STEPS.size * p.size // BATCH):
        q = p + t[:, None] * d + t[:, None] ** 2 * e / 2
        # Steps that leave the simplex stay at P: one shape is compiled once.
        q = np.where(q.min(axis=1, keepdims=True) > 0, q, p)
        q = q / q.sum(axis=1, keepdims=True)
        gains = np.nan_to_num(metrics.values(p, q) - real, nan=-np.inf)
        clear = (gains > noise[:, None]).all(axis=0)
        lesser = np.where(clear, gains.min(axis=0), 0.0)
        if lesser.max() > best.min():
            best_q, best = q[lesser.argmax()], gains[:, lesser.argmax()]
    if best_q is p:
        return None
    witness = Witness(
        jnp.asarray(p), jnp.asarray(best_q), float(best[0]), float(best[1])
    )
    return witness if metrics.holds(witness, noise) else None


def _is_concave(pair: Pair, p: np.ndarray) -> bool:
    """Whether U is linear and V concave in Q, as far as the pair's kind tells."""
    if isinstance(pair, NgramPair):
        if len(pair.space.lengths) > 1:
            return False
        pair = pair.pair
    if isinstance(pair, ConcavePair):
        # Its maker's word, refused where V bends up at P.
        return p.size > MAX_SECOND_ORDER or _bends_down(pair, p)
    return isinstance(pair, SeparablePair | LinearPair) and is_strictly_concave(pair.g)


def _bends_down(pair: ConcavePair, p: np.ndarray) -> bool:
    bend = np.asarray(jax.hessian(pair.diversity)(jnp.asarray(p)))
    bend = bend - bend.mean(axis=0)
    bend = bend - bend.mean(axis=1, keepdims=True)
    values = np.linalg.eigvalsh((bend + bend.T) / 2)
    return bool(values[-1] <= 1e-8 * np.abs(values).max())


@lru_cache(maxsize=128)
def is_strictly_concave(g: ScalarFunction) -> bool:
    """Whether nothing speaks against strict concavity over (0, 1].

    Args:
        g: a scalar function that JAX can trace.

    Returns:
        False where g' rises or stays on a grid, where g jumps there, or where a
        formula bends upwards by interval arithmetic.
    """
    try:
        require_concave(g)
    except ValueError:
        return False
    formula = formula_of(g)
    if formula is not None and search_convexity(formula) is not None:
        return False
    return find_jump(g) is None


def find_jump(g: ScalarFunction) -> float | None:
    """Where a concave g leaves its tangents, which its derivatives do not show.

    Args:
        g: a scalar function that JAX can trace, with a falling derivative.

    Returns:
        A number in (0, 1), or None.
    """
    x, jet = grid(), jet_of(g, grid())
    step, rise = np.diff(x), np.diff(jet.value)
    noise = 16 * EPS * (np.abs(jet.value[1:]) + np.abs(jet.value[:-1]))
    above = rise > step * jet.slope[:-1] + noise
    outside = above | (rise < step * jet.slope[1:] - noise)
    return float(x[1:][outside][0]) if outside.any() else None
