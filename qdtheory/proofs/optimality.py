r"""Optimality conditions at an interior P, for any differentiable pair.

First order: if the zero-sum parts u and v of the two gradients are not antiparallel,
a step along $u/|u| + v/|v|$ improves both metrics. Second order: if $u = -\eta v$, a
curve along a direction of positive curvature of $U + \eta V$ does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import ctx
from jax.extend.core import jaxprs_in_params

from qdtheory.beaten import Witness
from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.trees import PRECISION, ball
from qdtheory.proofs.kernel_criterion import least_direction
from qdtheory.proofs.shape import is_strictly_concave
from qdtheory.support.numbers import EPS, TextVector

# Bound on 1 + cosine of the gradients: an angle of 1e-9, far above rounding errors.
ANTIPARALLEL_TOLERANCE = 1e-18
# Length of a centred gradient that is due to rounding, relative to the gradient's.
CENTRED = 1e-13
# Relative error of a quadratic form in the Hessians: that of a second derivative is
# about 1e-15, that of the multiplier 1e-9.
HESSIAN_TOLERANCE = 1e-8
# The second-order test computes eigenvalues of N x N matrices.
MAX_SECOND_ORDER = 1024
# Largest N for which gains lost in float64 are computed exactly, some 10 us per text.
MAX_EXACT = 64
# Relative steps at which the rounding error of code is measured.
PROBES = (1e-7, 1e-8)
STEPS = np.geomspace(1, 1e-9, 55)
SMALL_STEPS = np.geomspace(1, 1e-13, 79)
# Number of entries in one batch of models.
BATCH = 2**20


@dataclass(frozen=True)
class Finding:
    """What the optimality conditions say of one P."""

    text: str
    gap: float | None = None  # 1 + the cosine of the gradients, if both are nonzero
    witness: Witness | None = None
    optimal: bool = False  # whether P is proved to be Pareto-optimal


@dataclass(frozen=True)
class Metrics:
    """A pair in the form that the conditions use, on NumPy arrays."""

    # Names of the two gradients.
    names: tuple[str, str]
    # Map P to the gradients of U(.; P) and V at P, shape (N,), and to the Hessians.
    gradients: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    hessians: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    # Maps P and models, shape (models, N), to U and V, shape (2, models).
    values: Callable[[np.ndarray, np.ndarray], np.ndarray]
    # Maps P to the rounding errors of U and V near P, shape (2,).
    noise: Callable[[np.ndarray], np.ndarray]
    # Maps P and a model to both gains, shape (2,): rigorous lower bounds if `exact`,
    # otherwise as computed by the pair.
    gains: Callable[[np.ndarray, np.ndarray], np.ndarray]
    # Whether U is proved to be linear and V concave in Q, and the gradients at P tell.
    concave: Callable[[np.ndarray], bool]
    exact: bool = False


def metrics_of(
    quality: Callable, diversity: Callable, concave: bool = False
) -> Metrics:
    """The values and derivatives of any U(q, p) and V(q), by JAX."""
    gradients, hessians = (
        _compiled(lambda p, d=derivative: (d(quality)(p, p), d(diversity)(p)))
        for derivative in (jax.grad, jax.hessian)
    )

    def both(p, q):
        return jnp.stack([quality(q, p), diversity(q)])

    values = _compiled(jax.vmap(both, in_axes=(None, 0), out_axes=1))

    def noise(p: np.ndarray) -> np.ndarray:
        real, slopes = values(p, p[None]), gradients(p)
        metrics = jax.make_jaxpr(lambda q: (quality(q, p), diversity(q)))(p)
        known = _rounding(real[:, 0], slopes, p, _coarsest(metrics.jaxpr))
        return np.maximum(known, _measured(values, slopes, p, real))

    def gains(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """By the pair itself, one distribution at a time."""
        model, real = ((quality(x, p), diversity(x)) for x in (q, p))
        return np.array(model, float) - np.array(real, float)

    names = "grad U", "grad V"
    return Metrics(names, gradients, hessians, values, noise, gains, lambda _: concave)


def _compiled(h: Callable) -> Callable:
    """Compile a function, once for all P, and return NumPy arrays from it."""
    compiled = jax.jit(h)
    return lambda *arrays: jax.tree.map(np.asarray, compiled(*arrays))


def metrics_of_formulas(f: Expression, g: Expression) -> Metrics:
    """The values and derivatives of a separable pair, with proved gains."""

    def gradients(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return f.value(p), g.jet(p).slope

    def values(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.stack([q @ f.value(p), g.value(q).sum(axis=1)])

    return Metrics(
        ("f", "g'"),
        gradients,
        lambda p: (np.zeros((p.size, p.size)), np.diag(g.jet(p).curvature)),
        values,
        lambda p: _rounding(values(p, p[None])[:, 0], gradients(p), p, EPS),
        lambda p, q: _exact_gains(f, g, p, q),
        # Nearly antiparallel gradients prove optimality only if P has two values, for
        # which (f, g') always lie on a line.
        lambda p: np.unique(p).size <= 2 and is_strictly_concave(g),
        exact=True,
    )


def _exact_gains(
    f: Expression, g: Expression, p: np.ndarray, q: np.ndarray
) -> np.ndarray:
    """Rigorous lower bounds on both gains, for the exact values of the floats."""
    real, model = ([Fraction(float(x)) for x in side] for side in (p, q))
    for side in (real, model):  # make the sum exactly 1, which floats are not
        side[-1] = 1 - sum(side[:-1], Fraction(0))
    total = [ball(Fraction()), ball(Fraction())]
    with ctx.workprec(PRECISION):
        for x, y in zip(real, model, strict=True):
            if x != y:
                total[0] += ball(y - x) * f.balls(ball(x))[0]
                total[1] += g.balls(ball(y))[0] - g.balls(ball(x))[0]
        return np.array([float(gain.lower()) for gain in total])


def _rounding(
    real: np.ndarray, gradients: Iterable[np.ndarray], p: np.ndarray, eps: float
) -> np.ndarray:
    # Rounding of a sum of N terms grows like the square root of N; the sizes of the
    # terms are gradients times P, and the sum before constants are subtracted.
    terms = [np.abs(gradient) @ p for gradient in gradients]
    return (16 + np.sqrt(p.size)) * eps * (np.abs(real) + terms)


def _coarsest(jaxpr: Any) -> float:
    """Machine epsilon of the lowest precision in which code computes."""
    coarsest = EPS
    for equation in jaxpr.eqns:
        for out in equation.outvars:
            if jnp.issubdtype(getattr(out.aval, "dtype", int), jnp.floating):
                coarsest = max(coarsest, float(jnp.finfo(out.aval.dtype).eps))
        for inner in jaxprs_in_params(equation.params):
            coarsest = max(coarsest, _coarsest(inner))
    return coarsest


def _measured(
    values: Callable, slopes: Iterable[np.ndarray], p: np.ndarray, real: np.ndarray
) -> np.ndarray:
    """Estimate rounding errors as deviations of U and V from tangents at tiny steps.

    Code is bounded by no formula: what a user's function cancels inside is seen only
    in its values.
    """
    rng = np.random.default_rng(0)
    missed = []
    for size in PROBES:
        q = p * (1 + size * rng.normal(size=(16, p.size)))
        q = q / q.sum(axis=1, keepdims=True)
        tangent = np.stack([(q - p) @ slope for slope in slopes])
        missed.append(np.abs(values(p, q) - real - tangent).max(axis=1))
    # Curvature scales with the square of the step, rounding errors do not.
    return 16 * np.min(missed, axis=0)


def is_defined(metrics: Metrics, p: TextVector) -> bool:
    """Whether the metrics and their gradients are finite at P, as the tests need."""
    return bool(
        np.isfinite(metrics.gradients(p)).all()
        and np.isfinite(metrics.values(p, p[None])).all()
    )


def examine(metrics: Metrics, p: TextVector) -> Finding:
    """Apply the first-order condition at one positive P, then the second-order one."""
    gradients = metrics.gradients(p)
    for name, gradient in zip(metrics.names, gradients, strict=True):
        if not (finite := np.isfinite(gradient)).all():
            raise ValueError(
                f"{name} is not finite at P_i = {p[~finite][0]:.6g}; the tests need "
                "metrics with finite derivatives at every interior P"
            )
    if not np.isfinite(metrics.values(p, p[None])).all():
        raise ValueError("U or V is not finite at P, where the tests need them")
    u, v = (gradient - gradient.mean() for gradient in gradients)
    norm_u, norm_v = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    sides = zip(metrics.names, (norm_u, norm_v), gradients, strict=True)
    for name, norm, gradient in sides:
        if norm <= CENTRED * float(np.linalg.norm(gradient)):
            return Finding(
                f"{name} vanishes, as at an extremum or of a metric in steps, which "
                "leaves it open"
            )
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
            "and V concave (g'' < 0 is proved): P is Pareto-optimal",
            gap,
            optimal=True,
        )
    return _second_order(metrics, p, u, norm_u / norm_v, gap)


def _second_order(
    metrics: Metrics, p: np.ndarray, u: np.ndarray, eta: float, gap: float
) -> Finding:
    """Test the curvature of U + eta V, orthogonally to 1 and u, if u = -eta v."""
    if p.size > MAX_SECOND_ORDER:
        return Finding(
            "The gradients are antiparallel, and the second-order test takes at most "
            f"{MAX_SECOND_ORDER} texts, which leaves it open",
            gap,
        )
    hessian_u, hessian_v = metrics.hessians(p)
    if not np.isfinite([hessian_u, hessian_v]).all():
        return Finding("A second derivative is not finite, which leaves it open", gap)
    size = float((np.abs(hessian_u) + eta * np.abs(hessian_v)).max())
    hessian = hessian_u + eta * hessian_v
    d = least_direction(-hessian, np.stack([np.ones(p.size), u / np.abs(u).max()]))
    if not d.any():
        return Finding("No direction is left to test", gap)
    most = d @ hessian @ d
    noise = HESSIAN_TOLERANCE * size
    if most > noise:
        # Choose e along u so that the two gains along P + t d + t^2 e / 2 are equal.
        shift = (eta * (d @ hessian_v @ d) - d @ hessian_u @ d) / 2
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
    """Maximise the smaller gain along P + t d + t^2 e / 2; None unless positive."""
    real, noise = metrics.values(p, p[None]), metrics.noise(p)
    best_q, best = p, np.zeros(2)
    for t in np.array_split(STEPS, 1 + STEPS.size * p.size // BATCH):
        q = p + t[:, None] * d + t[:, None] ** 2 * e / 2
        # Replace steps outside the simplex by P, which keeps the shape compiled.
        q = np.where(q.min(axis=1, keepdims=True) > 0, q, p)
        q = q / q.sum(axis=1, keepdims=True)
        gains = np.nan_to_num(metrics.values(p, q) - real, nan=-np.inf)
        clear = (gains > noise[:, None]).all(axis=0)
        lesser = np.where(clear, gains.min(axis=0), 0.0)
        if lesser.max() > best.min():
            best_q, best = q[lesser.argmax()], gains[:, lesser.argmax()]
    if best_q is not p:
        confirmed = metrics.gains(p, best_q)
        if (confirmed > (0 if metrics.exact else noise)).all():
            return Witness(jnp.asarray(p), jnp.asarray(best_q), *map(float, best))
    if not metrics.exact or p.size > MAX_EXACT:
        return None
    for t in SMALL_STEPS:
        q = p + t * d + t**2 * e / 2
        if q.min() <= 0:
            continue
        q = q / q.sum()
        gains = metrics.gains(p, q)
        if gains.min() > 0:
            return Witness(jnp.asarray(p), jnp.asarray(q), *map(float, gains))
        if np.isnan(gains).any():
            break  # a formula without an enclosure here has none for shorter steps
    return None
