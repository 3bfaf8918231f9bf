r"""Optimality conditions at an interior P, for any differentiable pair.

First order: if the zero-sum parts u and v of the two gradients are not antiparallel,
a step along $u/|u| + v/|v|$ improves both metrics. Second order: if $u = -\eta v$, a
curve along a direction of positive curvature of $U + \eta V$ does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

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

Two: TypeAlias = tuple[np.ndarray, np.ndarray]  # one of U, one of V


@dataclass(frozen=True)
class Finding:
    """What the optimality conditions say of one P."""

    text: str
    gap: float | None = None  # 1 + the cosine of the gradients, if both are nonzero
    witness: Witness | None = None
    optimal: bool = False  # whether P is proved to be Pareto-optimal


@runtime_checkable
class Metrics(Protocol):
    """A pair in the form that the conditions use, on NumPy arrays."""

    # Names of the two gradients.
    names: ClassVar[tuple[str, str]]
    # Whether `gains` are rigorous.
    exact: ClassVar[bool]

    def gradients(self, p: np.ndarray) -> Two:
        """The gradients of U(.; P) and V at P, shape (N,)."""
        ...

    def hessians(self, p: np.ndarray) -> Two:
        """The Hessians of U(.; P) and V at P, shape (N, N)."""
        ...

    def values(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """U and V of models, shape (models, N); shape (2, models)."""
        ...

    def noise(self, p: np.ndarray) -> np.ndarray:
        """The rounding errors of U and V near P, shape (2,)."""
        ...

    def gains(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Both gains of a model: lower bounds if `exact`, else computed; shape (2,)."""
        ...

    def concave_at(self, p: np.ndarray) -> bool:
        """Whether U is proved linear, V concave in Q and the gradients at P suffice."""
        ...

    def _rounding(self, p: np.ndarray, eps: float) -> np.ndarray:
        # Errors of a sum of N terms grow like the square root of N; the terms have the
        # sizes of gradients times P, and constants are part of the sum until they are
        # subtracted.
        sums = self.values(p, p[None])[:, 0]
        terms = [np.abs(gradient) @ p for gradient in self.gradients(p)]
        return (16 + np.sqrt(p.size)) * eps * (np.abs(sums) + terms)


# --- The conditions -------------------------------------------------------------------
def why_undefined(metrics: Metrics, p: TextVector) -> str | None:
    """What is not finite at P and has to be for the tests; None if all is."""
    for name, gradient in zip(metrics.names, metrics.gradients(p), strict=True):
        if not (finite := np.isfinite(gradient)).all():
            return (
                f"{name} is not finite at P_i = {p[~finite][0]:.6g}; the tests need "
                "metrics with finite derivatives at every interior P"
            )
    if not np.isfinite(metrics.values(p, p[None])).all():
        return "U or V is not finite at P, where the tests need them"
    return None


def examine(metrics: Metrics, p: TextVector) -> Finding:
    """Apply the first-order condition at one positive P, then the second-order one."""
    if (why := why_undefined(metrics, p)) is not None:
        raise ValueError(why)
    gradients = metrics.gradients(p)
    # Q - P is zero-sum, so that a constant added to a gradient changes nothing.
    u, v = (gradient - gradient.mean() for gradient in gradients)
    norm_u, norm_v = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    for name, norm, gradient in zip(metrics.names, (norm_u, norm_v), gradients):
        if norm <= CENTRED * float(np.linalg.norm(gradient)):
            return Finding(
                f"{name} vanishes, as at an extremum or of a metric in steps, which "
                "leaves it open"
            )
    # Along d = u/|u| + v/|v| the slopes of U and V are |u| and |v| times 1 + cosine.
    # That is |d|^2 / 2, a sum of squares: angles of 1e-9 from antiparallel make it
    # 5e-19, which 1 + u.v / (|u| |v|) would lose in the rounding error 1e-16 of the 1.
    d = u / norm_u + v / norm_v
    gap = float(np.sum(d**2) / 2)
    if gap > ANTIPARALLEL_TOLERANCE:
        if witness := _best_step(metrics, p, d, 0 * p):
            return Finding("First-order test: a step improves both", gap, witness)
        return Finding("No step gains more than rounding, which leaves it open", gap)
    # Now u = -eta v. If U + eta V is concave too, P is its maximum on the simplex, and
    # no Q has more of one metric without less of the other.
    if metrics.concave_at(p):
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
    r"""Test the curvature of U + eta V, orthogonally to 1 and u, if u = -eta v.

    Along $Q = P + t d + t^2 e / 2$, with d and e zero-sum and $u \cdot d = 0$, hence
    $v \cdot d = 0$, U gains $(d'H_U d + u \cdot e) t^2 / 2$ and V gains
    $(d'H_V d + v \cdot e) t^2 / 2$, up to $t^3$. As $u + \eta v = 0$, e does not change
    the gain of U + eta V, and only divides it: to this order both metrics can gain iff
    $d'(H_U + \eta H_V) d > 0$ for some such d.
    """
    if p.size > MAX_SECOND_ORDER:
        return Finding(
            "The gradients are antiparallel, and the second-order test takes at most "
            f"{MAX_SECOND_ORDER} texts, which leaves it open",
            gap,
        )
    hessian_u, hessian_v = metrics.hessians(p)
    if not np.isfinite([hessian_u, hessian_v]).all():
        return Finding("A second derivative is not finite, which leaves it open", gap)
    hessian = hessian_u + eta * hessian_v
    # Orthogonal to 1, as the sum stays 1, and to u, or one metric would fall with t. u
    # is scaled, so that a short one is not dropped as a rounding error.
    d = least_direction(-hessian, np.stack([np.ones(p.size), u / np.abs(u).max()]))
    if not d.any():
        return Finding("No direction is left to test", gap)
    curvature = d @ hessian @ d
    # Of the two sizes, not of their sum, in which they may cancel.
    size = float((np.abs(hessian_u) + eta * np.abs(hessian_v)).max())
    noise = HESSIAN_TOLERANCE * size
    if curvature > noise:
        # e = s u / |u|^2 has u.e = s and v.e = -s / eta. With this s U gains as much as
        # eta V, each t^2 / 4 of the curvature.
        shift = (eta * (d @ hessian_v @ d) - d @ hessian_u @ d) / 2
        e = shift * u / (u @ u)
        # The gains along d and -d agree up to t^3, but leave the simplex elsewhere.
        if witness := _best_step(metrics, p, d, e) or _best_step(metrics, p, -d, e):
            return Finding("Second-order test: a curve improves both", gap, witness)
    if curvature < -noise:  # in every direction, as d has the greatest
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
        # Gains as small as rounding errors count as none, so P itself never wins.
        clear = (gains > noise[:, None]).all(axis=0)
        lesser = np.where(clear, gains.min(axis=0), 0.0)
        if lesser.max() > best.min():
            best_q, best = q[lesser.argmax()], gains[:, lesser.argmax()]
    if best_q is not p:
        # By another way than in a batch: with proved bounds, or uncompiled.
        confirmed = metrics.gains(p, best_q)
        if (confirmed > (0 if metrics.exact else noise)).all():
            return Witness(jnp.asarray(p), jnp.asarray(best_q), *map(float, best))
    # Where u and -v nearly agree in direction, gains are positive at steps so short
    # only that they are lost in the rounding of U and V.
    provable = metrics.exact and p.size <= MAX_EXACT
    return _proved_step(metrics, p, d, e) if provable else None


def _proved_step(
    metrics: Metrics, p: np.ndarray, d: np.ndarray, e: np.ndarray
) -> Witness | None:
    """The longest step along P + t d + t^2 e / 2 whose gains are proved positive."""
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


# --- The two kinds of metrics ---------------------------------------------------------
class CodeMetrics(Metrics):
    """Any U(q, p) and V(q), with their derivatives by JAX."""

    names, exact = ("grad U", "grad V"), False

    def __init__(self, quality: Callable, diversity: Callable, concave: bool = False):
        self.quality, self.diversity, self.concave = quality, diversity, concave
        # Compiled once for all P of a size; in a method it would be at each call.
        self._gradients = jax.jit(partial(self._derivatives, jax.grad))
        self._hessians = jax.jit(partial(self._derivatives, jax.hessian))
        self._values = jax.jit(jax.vmap(self._both, in_axes=(None, 0), out_axes=1))

    def _derivatives(self, derivative: Callable, p: Any) -> Any:
        return derivative(self.quality)(p, p), derivative(self.diversity)(p)

    def _both(self, p: Any, q: Any) -> Any:
        return jnp.stack([self.quality(q, p), self.diversity(q)])

    def gradients(self, p: np.ndarray) -> Two:
        """By automatic differentiation in the model, which U takes first."""
        return jax.tree.map(np.asarray, self._gradients(p))

    def hessians(self, p: np.ndarray) -> Two:
        """By automatic differentiation, twice."""
        return jax.tree.map(np.asarray, self._hessians(p))

    def values(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Of all models at once."""
        return np.asarray(self._values(p, q))

    def noise(self, p: np.ndarray) -> np.ndarray:
        """The larger of two estimates: of sums of N terms, and of what is measured."""
        jaxpr = jax.make_jaxpr(partial(self._both, p))(p).jaxpr
        return np.maximum(self._rounding(p, _coarsest(jaxpr)), self._deviation(p))

    def _deviation(self, p: np.ndarray) -> np.ndarray:
        """Estimate rounding errors as deviations from tangents at tiny steps.

        Code is bounded by no formula: what a user's function cancels inside is seen
        only in its values.
        """
        real, slopes = self.values(p, p[None]), self.gradients(p)
        rng, deviations = np.random.default_rng(0), []
        for size in PROBES:
            q = p * (1 + size * rng.normal(size=(16, p.size)))
            q = q / q.sum(axis=1, keepdims=True)
            tangent = np.stack([(q - p) @ slope for slope in slopes])
            deviations.append(np.abs(self.values(p, q) - real - tangent).max(axis=1))
        # Curvature scales with the square of the step, rounding errors do not: the
        # lesser deviation holds less of it.
        return 16 * np.min(deviations, axis=0)

    def gains(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """By the pair itself, one distribution at a time."""
        model, real = ((self.quality(x, p), self.diversity(x)) for x in (q, p))
        return np.array(model, float) - np.array(real, float)

    def concave_at(self, p: np.ndarray) -> bool:
        """At every P, if at all."""
        return self.concave


metrics_of = CodeMetrics  # as lectures call it


def _coarsest(jaxpr: Any) -> float:
    """Machine epsilon of the lowest precision in which code computes."""
    kinds = [getattr(out.aval, "dtype", int) for e in jaxpr.eqns for out in e.outvars]
    floats = [kind for kind in kinds if jnp.issubdtype(kind, jnp.floating)]
    inner = [_coarsest(part) for e in jaxpr.eqns for part in jaxprs_in_params(e.params)]
    return max([EPS, *inner, *(float(jnp.finfo(kind).eps) for kind in floats)])


@dataclass(frozen=True)
class FormulaMetrics(Metrics):
    """A separable pair of two formulas, with gains that are proved."""

    f: Expression
    g: Expression
    names, exact = ("f", "g'"), True

    def gradients(self, p: np.ndarray) -> Two:
        """The values f(P_i) and g'(P_i)."""
        return self.f.value(p), self.g.jet(p).slope

    def hessians(self, p: np.ndarray) -> Two:
        """0, as U is linear in Q, and the diagonal of g'', as V is a sum over texts."""
        return np.zeros((p.size, p.size)), np.diag(self.g.jet(p).curvature)

    def values(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The sums of Q_i f(P_i) and of g(Q_i)."""
        return np.stack([q @ self.f.value(p), self.g.value(q).sum(axis=1)])

    def noise(self, p: np.ndarray) -> np.ndarray:
        """Of the two sums, as if f and g had no errors: `gains` are what counts."""
        return self._rounding(p, EPS)

    def gains(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Rigorous lower bounds, for the exact values of the floats."""
        real, model = ([Fraction(float(x)) for x in side] for side in (p, q))
        for side in (real, model):  # make the sum exactly 1, which floats are not
            side[-1] = 1 - sum(side[:-1], Fraction(0))
        total = [ball(Fraction()), ball(Fraction())]
        with ctx.workprec(PRECISION):
            for x, y in zip(real, model, strict=True):
                if x != y:
                    total[0] += ball(y - x) * self.f.balls(ball(x))[0]
                    total[1] += self.g.balls(ball(y))[0] - self.g.balls(ball(x))[0]
            return np.array([float(gain.lower()) for gain in total])

    def concave_at(self, p: np.ndarray) -> bool:
        """If P has two values at most: any (f, g') of two points lie on a line."""
        # With more, nearly antiparallel gradients need not be antiparallel.
        return np.unique(p).size <= 2 and is_strictly_concave(self.g)
