r"""Pairs of linear quality and concave diversity, for which QDisc is a convex problem.

Maximise $u \cdot Q$ subject to $V(Q) \ge V(P)$ on the simplex. With Lagrange
multipliers $\eta \ge 0$ of the diversity constraint, $z \ge 0$ of $Q \ge 0$ and $\nu$
of the sum, the optimality conditions with $\mu = 0$ are
$$u + \eta \nabla V(Q) + z = \nu, \quad \eta\,(V(Q) - V(P)) = \mu, \quad
z_i Q_i = \mu. \qquad (1)$$
With $\mu > 0$ they define the central path, on which Q maximises the barrier function
$u \cdot Q + \mu \log(V(Q) - V(P)) + \mu \sum_i \log Q_i$. Newton's method follows it as
$\mu$ tends to 0. Linearised, the last two conditions give the steps of z and $\eta$,
$$dz_i = \mu / Q_i - z_i - (z_i / Q_i)\,dQ_i, \quad
\eta' = \frac{\mu - \eta\,\nabla V \cdot a}{V(Q) - V(P) + \eta\,\nabla V \cdot b}, \quad
dQ = a + \eta' b, \qquad (2)$$
where $\eta'$ is the new price and, by the first, a and b keep the sum and solve
$$(\mathrm{diag}(z / Q) - \eta\,\nabla^2 V)\,a = u + \mu / Q - \nu, \quad
(\mathrm{diag}(z / Q) - \eta\,\nabla^2 V)\,b = \nabla V - \nu'. \qquad (3)$$

The bounds hold independently of convergence. The iterates Q are feasible, so their
gains are lower bounds. As concave V lies below its tangents, for every $\eta \ge 0$ the
gain of a feasible model is at most
$$\max_i [u_i - U(P) + \eta\,(V(Q) + \partial_i V(Q) - \nabla V(Q) \cdot Q - V(P))].
\qquad (4)$$
On the path the two are at most $(N + 1) \mu$ apart, for N texts.

References:
    Boyd and Vandenberghe 2004, Convex Optimization, section 11.7.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.forms import Functional
from qdtheory.support.numbers import CLOSED, EPS, TextVector

MAX_STEPS = 300
# Factor by which mu decreases near the central path; a step keeps 1 % of each slack, as
# the logarithms are finite inside only.
CENTERING, KEPT = 0.1, 0.01
# How far multipliers may be from those on the path, as a factor.
FAR = 1e3
# If P maximises V, no model is strictly feasible. The constraint is relaxed by this
# share of V, which raises the upper bound by the order of its square root: near its
# maximum V falls with the square of the distance.
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
        value, slope, hessian = map(np.asarray, parts)
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
    # With J = I - x 1', the gradient is J' V' and the Hessian J' V'' J.
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
        # By its tangent no model exceeds `at` by more than that difference.
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
    # No step in a curved direction, the sum 1, and slope . x >= 0, without which the
    # tangent is below the maximum; (steepest - slope) . x has no negative coefficient.
    rows = np.vstack([curved.T, np.ones(top.x.size)])
    steepest = top.slope.max()
    solution = linprog(
        -scores[list(face.texts)],
        A_ub=[steepest - top.slope],
        b_ub=[steepest],
        A_eq=rows,
        b_eq=rows @ top.x,
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if solution.x is None:
        return face.model(top.x)
    # The solver satisfies the equations to 1e-10, the vertex recomputed to rounding.
    basis = np.flatnonzero(solution.x > 1e-9)
    x = np.zeros(top.x.size)
    x[basis] = np.linalg.lstsq(rows[:, basis], rows @ top.x)[0]
    # To second order only is V constant: what does not have the diversity is refused.
    if x.min() >= 0 and face.value(face.model(x)) >= top.value - 64 * EPS * top.size:
        return face.model(x / x.sum())
    return face.model(top.x)


def best_model(face: Face, gains: TextVector, p: TextVector) -> Optimum:
    """Maximise quality subject to V(Q) >= V(P)."""
    some = list(face.texts)
    gains, real, top = gains[some], p[some], most_diverse(face)
    value = face.value(p)
    # Relaxing the constraint leaves the upper bound valid: V(Q) >= V(P) >= least.
    least = min(value, top.value - RELAXED * top.size)
    # Half-way to the maximum: by concavity strictly feasible, unless P maximises V.
    between = real + top.x
    start = face.tangent(between / between.sum())
    require_semidefinite(start)
    unit = float(np.ptp(gains))
    best, gain, upper, price, tangent = real, 0.0, float(gains.max()), 0.0, None
    if start.value > least and unit > 0:
        for at, price in follow_path(face.program(gains, least), start, unit):
            _require_concave(at, real, value)
            # (4), with the rounding errors of V and of the sums, shares of their terms.
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
    # A concave V has eigenvalues up to the rounding of its second derivatives.
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

    def central_price(self, at: Tangent, mu: float) -> float:
        """The price of diversity at a point of the central path, by (1)."""
        # V that is maximised has the price 1.
        return mu / (at.value - self.least) if self.least > -np.inf else 1.0

    def centred(self, slope: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Project out the multipliers of the sums: they would swamp the other terms.

        On each set, less the mean under x: by (1), on the path that mean is nu.
        """
        return slope - (self.rows @ (slope * x) / self.sums) @ self.rows

    def gradient(self, at: Tangent, mu: float) -> np.ndarray:
        """Gradient of the barrier function: U or V plus mu times the log slacks."""
        slope = self.scores + self.central_price(at, mu) * at.slope + mu / at.x
        return self.centred(slope, at.x)

    def newton(
        self, at: Tangent, price: float, z: np.ndarray, mu: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The Newton steps a and b of (3); None if rounding makes it indefinite."""
        from scipy.linalg import get_lapack_funcs  # late: slow to import

        (solve,) = get_lapack_funcs(("posv",), dtype=float)
        curvature = -price * at.hessian
        # The last term of the matrix changes no step that keeps the sums, and is
        # positive across them, where V may be flat.
        across = np.abs(curvature).max() * self.rows.T @ self.rows
        slope = self.centred(self.scores + mu / at.x, at.x)
        sides = np.column_stack([slope, at.slope, self.rows.T])
        _, solved, failed = solve(np.diag(z / at.x) + curvature + across, sides)
        if failed:
            require_semidefinite(at)
            return None
        # The multipliers nu and nu' of (3) are those that make the steps keep the sums.
        steps, normal = solved[:, :2], solved[:, 2:]
        steps -= normal @ np.linalg.solve(self.rows @ normal, self.rows @ steps)
        return steps[:, 0], steps[:, 1]

    def line_search(
        self, at: Tangent, dx: np.ndarray, mu: float
    ) -> tuple[Tangent, float] | None:
        """Halve a step until the barrier function increases; None if it never does."""
        rise = self.gradient(at, mu) @ dx
        step = min(1.0, (1 - KEPT) / max((-dx / at.x).max(), EPS))
        while step >= EPS:
            x = at.x + step * dx
            # The step keeps the sums up to rounding, which would add up.
            new = self.tangent(x * ((self.sums / (self.rows @ x)) @ self.rows))
            # The objective is concave: it increased, or barely passed its maximum.
            least_rise = -rise / 2 - mu / 1000
            if new.value > self.least and self.gradient(new, mu) @ dx >= least_rise:
                return new, step
            step /= 2
        return None


def follow_path(
    program: Program, at: Tangent, unit: float
) -> Iterator[tuple[Tangent, float]]:
    """Follow the central path; generate models and their prices of diversity."""
    # Of N texts the bounds are (N + 1) mu apart at most: at first, the whole range.
    mu = unit / (at.x.size + 1)
    price, z = program.central_price(at, mu), mu / at.x
    for _ in range(MAX_STEPS):
        yield at, price
        steps = program.newton(at, price, z, mu)
        if steps is None:
            return
        # (2)
        (a, b), new_price = steps, 1.0
        if program.least > -np.inf:
            slack = at.value - program.least
            new_price = (mu - price * at.slope @ a) / (slack + price * at.slope @ b)
        dx = a + new_price * b
        dz = mu / at.x - z - z / at.x * dx
        rise, moved = program.gradient(at, mu) @ dx, program.line_search(at, dx, mu)
        if moved is None:
            return
        at, step = moved
        # The multipliers have a step length of their own, which keeps them positive.
        decrease = max((-dz / z).max(), 1 - new_price / price, EPS)
        z = z + min(1.0, (1 - KEPT) / decrease) * dz
        price += min(1.0, (1 - KEPT) / decrease) * (new_price - price)
        # Keep multipliers close to those of the point on the path.
        z = np.clip(z, mu / at.x / FAR, mu / at.x * FAR)
        central = program.central_price(at, mu)
        price = float(np.clip(price, central / FAR, central * FAR))
        # Near the path `rise / mu` is the squared Newton decrement of the barrier
        # function over mu; from 1 on down Newton's method converges fast.
        if step == 1 and rise <= mu:
            mu *= CENTERING
