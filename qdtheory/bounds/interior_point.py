r"""Pairs of linear quality and concave diversity, for which QDisc is a convex problem.

Maximise $u \cdot Q$ subject to $V(Q) \ge V(P)$ on the simplex. With Lagrange
multipliers $\eta \ge 0$ of the diversity constraint, $z \ge 0$ of $Q \ge 0$ and $\nu$
of the sum, the optimality conditions are $u + \eta \nabla V(Q) + z = \nu$,
$\eta (V(Q) - V(P)) = 0$ and $z_i Q_i = 0$. Replacing the right-hand sides of the last
two by $\mu > 0$ defines the central path; Newton's method follows it as $\mu$ tends
to 0.

The bounds hold independently of convergence. The iterates Q are feasible, so their
gains are lower bounds. As concave V lies below its tangents, for every $\eta \ge 0$ the
gain of a feasible model is at most
$\max_i [u_i - U(P) + \eta (V(Q) + \partial_i V(Q) - \nabla V(Q) \cdot Q - V(P))]$.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.problem import Functional
from qdtheory.support.numbers import CLOSED, EPS, TextVector

MAX_STEPS = 300
# Factor by which mu decreases near the central path; a step keeps 1 % of each slack.
CENTERING, KEPT = 0.1, 0.01
# How far multipliers may be from those on the path, as a factor.
FAR = 1e3
# If P maximises V, no model is strictly feasible. The constraint is relaxed by this
# share of V, which raises the upper bound by the order of its square root.
RELAXED = 1e-13
# Curvature below this share of the largest counts as 0: V is flat in that direction.
FLAT = 1e-10


@dataclass(frozen=True)
class Face:
    """A face of the simplex: the models on a subset of texts, and their diversity."""

    diversity: Functional  # V, concave
    texts: tuple[int, ...]  # their indices, ascending
    size: int  # N, the total number of texts

    def model(self, x: Float[np.ndarray, " some"]) -> TextVector:
        """Embed a distribution over these texts into one over all texts."""
        q = np.zeros(self.size)
        q[list(self.texts)] = x
        return q

    def value(self, q: TextVector) -> float:
        """V of a distribution over all texts."""
        return float(self.diversity(jnp.asarray(q)))

    def tangent(self, x: Float[np.ndarray, " some"]) -> "Tangent":
        """V at a model, with its derivatives."""
        parts = _derivatives(self.diversity, self.model(x))
        value, slope, hessian = (np.asarray(part) for part in parts)
        if len(self.texts) < self.size:
            some = list(self.texts)
            slope, hessian = slope[some], hessian[np.ix_(some, some)]
        if not (np.isfinite(slope).all() and np.isfinite(hessian).all()):
            raise ValueError(
                "the diversity must have finite first and second derivatives at "
                "models that give every text of finite score some probability"
            )
        return tangent_at(x, float(value), slope, hessian)

    def program(self, scores: Float[np.ndarray, " some"], least: float) -> "Program":
        """Maximise scores subject to V >= least; see `Program`."""
        rows = np.ones((1, len(self.texts)))
        return Program(self.tangent, scores, least, rows, np.ones(1))


@partial(jax.jit, static_argnums=0)
def _derivatives(diversity: Functional, q: Array) -> tuple[Array, Array, Array]:
    value, slope = jax.value_and_grad(diversity)(q)
    return value, slope, jax.hessian(diversity)(q)


@dataclass(frozen=True)
class Tangent:
    """V at a model, with its derivatives along the simplex."""

    x: Float[np.ndarray, " some"]
    value: float
    slope: Float[np.ndarray, " some"]  # the gradient, less its mean under x
    hessian: Float[np.ndarray, "some some"]  # with x in its kernel
    size: float  # of the terms of V, the scale of its rounding error

    @property
    def ends(self) -> Float[np.ndarray, " some"]:
        """The tangent's height at each single text, an upper bound on concave V."""
        return self.value + self.slope


def tangent_at(
    x: np.ndarray, value: float, slope: np.ndarray, hessian: np.ndarray
) -> Tangent:
    """Restrict the derivatives of V to the simplex.

    Those of V(y + (1 - sum y) x), which equals V if y sums to 1 and is concave in every
    direction if V is concave on the simplex.
    """
    size = abs(value) + float(np.abs(slope) @ x)
    along = hessian @ x
    hessian = hessian - along - along[:, None] + along @ x
    return Tangent(x, value, slope - slope @ x, hessian, size)


@dataclass(frozen=True)
class Optimum:
    """The best model found, with an upper bound."""

    q: TextVector
    upper: float  # on the gain in quality of models with V(Q) >= V(P)
    price: float  # multiplier of diversity, in quality per unit of diversity
    tangent: Tangent | None  # that the bound uses; None if it uses none


def face_of(diversity: Functional, scores: TextVector) -> Face:
    """Face of the models of finite quality."""
    texts = np.flatnonzero(np.isfinite(scores)).tolist()
    return Face(diversity, tuple(texts), scores.size)


@lru_cache(maxsize=64)
def most_diverse(face: Face) -> Tangent:
    """Maximise V; if there are several maximisers, find one in their interior."""
    n = len(face.texts)
    best = start = face.tangent(np.full(n, 1 / n))
    require_semidefinite(start)
    unit = max(float(np.ptp(start.slope)), EPS * start.size)
    for at, _ in follow_path(face.program(np.zeros(n), -np.inf), start, unit):
        if at.ends.max() - at.value < best.ends.max() - best.value:
            best = at
        if best.ends.max() - best.value <= EPS * best.size:
            break
    return best


def favoured(face: Face, top: Tangent, scores: TextVector) -> TextVector:
    """Maximise quality among the maximisers of diversity.

    V is constant on the segment between two maximisers, so they have the same gradient
    and differ by a direction of zero curvature, which leaves a linear program.
    """
    from scipy.optimize import linprog  # late: slow to import

    curvature, directions = np.linalg.eigh(-top.hessian)
    curved = directions[:, curvature > FLAT * curvature.max()]
    if curved.shape[1] == top.x.size - 1:
        return face.model(top.x)
    rows = np.vstack([curved.T, np.ones(top.x.size)])
    steepest = top.slope.max()
    found = linprog(
        -scores[list(face.texts)],
        A_ub=[steepest - top.slope],
        b_ub=[steepest],
        A_eq=rows,
        b_eq=rows @ top.x,
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        return face.model(top.x)
    # The solver satisfies the equations to 1e-10, the vertex recomputed to rounding.
    basis = np.flatnonzero(found.x > 1e-9)
    x = np.zeros(top.x.size)
    x[basis] = np.linalg.lstsq(rows[:, basis], rows @ top.x)[0]
    if x.min() >= 0 and face.value(face.model(x)) >= top.value - 64 * EPS * top.size:
        return face.model(x / x.sum())
    return face.model(top.x)


def best_model(face: Face, gains: TextVector, p: TextVector) -> Optimum:
    """Maximise quality subject to V(Q) >= V(P)."""
    some = list(face.texts)
    gains, real, top = gains[some], p[some], most_diverse(face)
    value = face.value(p)
    least = min(value, top.value - RELAXED * top.size)
    between = real + top.x
    start = face.tangent(between / between.sum())
    require_semidefinite(start)
    unit = float(np.ptp(gains))
    best, gain, upper, price = real, 0.0, float(gains.max()), 0.0
    tangent = None
    if start.value > least and unit > 0:
        for at, price in follow_path(face.program(gains, least), start, unit):
            _require_concave(at, real, value)
            # Add the rounding error of the sums.
            sizes = np.abs(gains).max() + price * (at.size + np.abs(at.ends).max())
            pad = (16 + real.size) * EPS * sizes
            bound = float((gains + price * (at.ends - least)).max() + pad)
            if bound < upper:
                upper, tangent = bound, at
            if gains @ at.x > gain:
                best, gain = at.x, float(gains @ at.x)
            if upper - gain <= CLOSED * unit:
                break
    return Optimum(face.model(best), upper, price, tangent)


def not_concave(why: str) -> ValueError:
    """What to raise where a diversity is not concave, as its pair states it is."""
    return ValueError(
        f"the diversity must be concave: {why}; use FunctionPair, and a search"
    )


def require_semidefinite(at: Tangent) -> None:
    """Raise unless V curves downwards in every direction at a model."""
    scale = max(float(np.abs(at.hessian).max()), at.size)
    if (most := float(np.linalg.eigvalsh(at.hessian)[-1])) > 1e-9 * scale:
        raise not_concave(f"it is convex at some model, by {most:.3g}")


def _require_concave(at: Tangent, real: np.ndarray, value: float) -> None:
    if value > at.ends @ real + 1e-9 * at.size:
        raise not_concave(
            "that of P is above the tangent at another model, "
            f"{value:.6g} > {at.ends @ real:.6g}"
        )


@dataclass(frozen=True)
class Program:
    """Maximise u . x subject to V(x) >= least and given sums, over positive x."""

    tangent: Callable[[np.ndarray], Tangent]
    scores: Float[np.ndarray, " some"]  # u; zeros to maximise V
    least: float  # the required diversity; minus infinity to maximise V
    rows: Float[np.ndarray, "sums some"]  # disjoint sets of texts, as rows of 0 and 1
    sums: Float[np.ndarray, " sums"]  # what x sums to on each

    @property
    def bounded(self) -> bool:
        """Whether V is required, not maximised."""
        return self.least > -np.inf

    def on_path(self, at: Tangent, mu: float) -> float:
        """The price of diversity at a point of the central path."""
        return mu / (at.value - self.least) if self.bounded else 1.0

    def centred(self, slope: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Project out the multipliers of the sums: they would swamp the other terms."""
        return slope - (self.rows @ (slope * x) / self.sums) @ self.rows

    def uphill(self, at: Tangent, mu: float) -> np.ndarray:
        """Gradient of the barrier function: U or V plus mu times the log slacks."""
        slope = self.scores + self.on_path(at, mu) * at.slope + mu / at.x
        return self.centred(slope, at.x)

    def newton(
        self, at: Tangent, price: float, z: np.ndarray, mu: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Newton steps for u + mu / x and for the slope of V, which keep the sums.

        None if rounding makes the matrix indefinite.
        """
        from scipy.linalg import get_lapack_funcs  # late: slow to import

        (solve,) = get_lapack_funcs(("posv",), dtype=float)
        curvature = -price * at.hessian
        # The last term changes no step that keeps the sums, and is positive across
        # them, where V may be flat.
        across = np.abs(curvature).max() * self.rows.T @ self.rows
        slope = self.centred(self.scores + mu / at.x, at.x)
        parts = np.column_stack([slope, at.slope, self.rows.T])
        _, solved, failed = solve(np.diag(z / at.x) + curvature + across, parts)
        if failed:
            require_semidefinite(at)
            return None
        steps, normal = solved[:, :2], solved[:, 2:]
        steps -= normal @ np.linalg.solve(self.rows @ normal, self.rows @ steps)
        return steps[:, 0], steps[:, 1]

    def search(
        self, at: Tangent, dx: np.ndarray, mu: float
    ) -> tuple[Tangent, float] | None:
        """Halve a step until the barrier function increases; None if it never does."""
        gain = self.uphill(at, mu) @ dx
        step = min(1.0, (1 - KEPT) / max((-dx / at.x).max(), EPS))
        while step >= EPS:
            x = at.x + step * dx
            new = self.tangent(x * ((self.sums / (self.rows @ x)) @ self.rows))
            # The objective is concave: it increased, or barely passed its maximum.
            enough = -gain / 2 - mu / 1000
            if new.value > self.least and self.uphill(new, mu) @ dx >= enough:
                return new, step
            step /= 2
        return None


def follow_path(
    program: Program, at: Tangent, unit: float
) -> Iterator[tuple[Tangent, float]]:
    """Follow the central path; generate models and their prices of diversity."""
    mu = unit / (at.x.size + 1)
    price, z = program.on_path(at, mu), mu / at.x
    for _ in range(MAX_STEPS):
        yield at, price
        solved = program.newton(at, price, z, mu)
        if solved is None:
            return
        (a, b), target = solved, 1.0
        if program.bounded:
            slack = at.value - program.least
            target = (mu - price * at.slope @ a) / (slack + price * at.slope @ b)
        dx = a + target * b
        dz = mu / at.x - z - z / at.x * dx
        gain, found = program.uphill(at, mu) @ dx, program.search(at, dx, mu)
        if found is None:
            return
        at, step = found
        falls = max((-dz / z).max(), 1 - target / price, EPS)
        z = z + min(1.0, (1 - KEPT) / falls) * dz
        price += min(1.0, (1 - KEPT) / falls) * (target - price)
        # Keep multipliers close to those of the point on the path.
        z = np.clip(z, mu / at.x / FAR, mu / at.x * FAR)
        on_path = program.on_path(at, mu)
        price = float(np.clip(price, on_path / FAR, on_path * FAR))
        if step == 1 and gain <= mu:
            mu *= CENTERING
