r"""Maximise $\sum_i g(q_i) - \sum_i c_i q_i$ over the simplex, for each kind of g.

This is the Pareto-optimum of weight w, Theorem 2 (1) of Li et al. 2020. The costs are
$c_i = |w| e_i$ with the gaps $e_i = \max_j \phi_j - \phi_i \ge 0$ of the scores, at
least one of them 0, possibly some infinite, and $-\infty < w < 0$. The solution
satisfies $g'(q_i) = g'(m) + c_i$ on the support, where m is the largest probability,
that of a text of cost 0: a single unknown in [1/N, 1/M], for M texts of cost 0. It is
found in closed form for SE, after one sort of the gaps (for all w) for Tsallis orders
1.5 and 2, and by root-finding for any other g.

Read `solver` first; what follows is how each of the three kinds is computed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.functions import Function
from qdtheory.support.numbers import (
    EPS,
    LEAST_PROBABILITY,
    NOISE,
    TextArray,
)

MAX_STEPS = 100
# (w, guess) -> (q, guess for the next weight)
Solver = Callable[[Array, Array], tuple[Array, Array]]


def solver(g: Function, gaps: TextArray) -> tuple[Solver, TextArray]:
    """Build a function (w, guess) -> (q, next guess) for one g and its gaps, any w < 0.

    Only the root-finder uses guesses; they are smooth in w: extrapolate them.
    """
    uniform = jnp.full_like(gaps, 1 / gaps.size)
    order = g.order
    if order == 1:
        return _without_guess(lambda w: jax.nn.softmax(w * gaps)), uniform
    if order in (1.5, 2):
        table = _prefix_sums(jnp.sort(gaps))
        threshold = _threshold_2 if order == 2 else _threshold_15
        return _without_guess(lambda w: threshold(w, gaps, table)), uniform
    unknown, inverse = _tsallis_inverse(order) if order else _halley_inverse(g)
    return _root_finder(g, unknown, inverse, gaps), unknown.of(uniform)


def _without_guess(closed_form: Callable[[Array], Array]) -> Solver:
    return lambda w, guess: (closed_form(w), guess)


# --- Orders 1.5 and 2: one sort for all weights ---------------------------------------
# g'(x) is 1 - 2 x for order 2 and 2 - 3 sqrt(x) for order 1.5, so that q_i, or its
# root, falls by t e_i from that of cost 0, with t = -w / 2 or -w / 3. With
# u_i = e_k - e_i over the k least gaps: q_i = r + t u_i, or its square, with r >= 0
# fixed by sum q_i = 1, that is k r + t c_k = 1, or k r^2 + 2 t c_k r + t^2 d_k = 1.
# All sums below have nonnegative terms, so there is no cancellation.
def _prefix_sums(e: Array) -> tuple[Array, Array, Array]:
    """Sorted gaps e_k, c_k = sum_i (e_k - e_i), d_k = sum_i (e_k - e_i)^2 (i <= k)."""
    finite = jnp.isfinite(e)
    last = jnp.where(finite, e, 0.0)
    step = jnp.where(finite, jnp.diff(last, prepend=0.0), 0.0)
    before = jnp.arange(e.size)
    # From k to k + 1, a step s: c grows by k s, and d by 2 s c_k + k s^2.
    c = jnp.cumsum(before * step)
    c_before = jnp.concatenate([jnp.zeros(1), c[:-1]])
    d = jnp.cumsum(step * (2 * c_before + before * step))
    return e, jnp.where(finite, c, jnp.inf), jnp.where(finite, d, jnp.inf)


def _support_2(t: Array, table: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Index of the last text of the support and its probability r, order 2."""
    _, c, _ = table
    k = jnp.searchsorted(c, 1 / t)  # the support is where t c_k < 1
    last = k - 1
    return last, (1 - t * c[last]) / k


def _threshold_2(w: Array, gaps: Array, table: tuple[Array, Array, Array]) -> Array:
    t = -w / 2
    last, r = _support_2(t, table)
    return _positive_part(gaps, table[0][last], r, t)


def _threshold_15(w: Array, gaps: Array, table: tuple[Array, Array, Array]) -> Array:
    t = -w / 3
    e, c, d = table
    k = jnp.searchsorted(jnp.sqrt(d), 1 / t)  # the support is where t^2 d_k < 1
    e_k, tc, slack = e[k - 1], t * c[k - 1], 1 - (t * jnp.sqrt(d[k - 1])) ** 2
    # The root of k r^2 + 2 t c r + t^2 d = 1 in the form that does not cancel.
    r = slack / (tc + jnp.sqrt(tc * tc + k * slack))
    return _positive_part(gaps, e_k, r, t) ** 2


def _positive_part(gaps: Array, last: Array, r: Array, t: Array) -> Array:
    """Positive part of r + t (e_k - e_i), which is 0 off the support.

    Comparing the gaps with e_k instead would depend on their last bit.
    """
    finite = jnp.isfinite(gaps)
    below = last - jnp.where(finite, gaps, 0.0)
    return jnp.where(finite, jnp.maximum(r + t * below, 0.0), 0.0)


def order_two_moments(
    scores: TextArray, w: Float[Array, " points"]
) -> tuple[Array, Array, Array, Array]:
    r"""Largest $Q_i$, $\sum_i Q_i \phi_i$, $\sum_i Q_i^2$ at many weights.

    Takes one table look-up per weight and forms no distribution. The last is the
    residual $|\sum_i Q_i - 1|$.
    """
    top = scores.max()
    table = e, c, d = _prefix_sums(top - scores)
    t = -w / 2
    last, r = _support_2(t, table)
    e_k, tc, k = e[last], t * c[last], last + 1
    # Sums over Q_i = r + t u_i, of scores top - e_i = top - e_k + u_i: sum u_i = c_k
    # and sum u_i^2 = d_k.
    return (
        r + t * e_k,
        top - e_k + r * c[last] + t * d[last],
        k * r * r + 2 * r * tc + t * t * d[last],
        jnp.abs(k * r + tc - 1),
    )


# --- Any other g: a root in m, with g' inverted at every step -------------------------
@dataclass(frozen=True)
class _Unknown:
    """The unknown z that root-finding solves for; q is 0 at or below the floor."""

    of: Callable[[Array], Array]
    back: Callable[[Array], Array]
    floor: float

    def probability(self, z: Array) -> Array:
        """Probabilities that correspond to z."""
        return jnp.where(z > self.floor, self.back(z), 0.0)


LOGARITHM = _Unknown(jnp.log, jnp.exp, float(np.log(LEAST_PROBABILITY)))
ITSELF = _Unknown(jnp.asarray, jnp.asarray, 0.0)
# (m, costs, guess) -> z with g'(q_i) = g'(m) + cost_i; the floor if that exceeds g'(0).
Inverse = Callable[[Array, Array, Array], Array]


def _tsallis_inverse(order: float) -> tuple[_Unknown, Inverse]:
    power = order - 1

    # As g'(x) = (1 - a x^(a - 1)) / (a - 1): q^(a - 1) = m^(a - 1) - c (a - 1) / a.
    def inverse(m: Array, costs: Array, guess: Array) -> Array:
        return jnp.maximum(m**power - power / order * costs, 0.0) ** (1 / power)

    return ITSELF, inverse


def _halley_inverse(g: Function) -> tuple[_Unknown, Inverse]:
    """Invert g' at many points by Halley steps kept inside shrinking brackets.

    If g'(0) is infinite the unknown is log q, in which such g' are close to linear and
    small probabilities keep their precision; otherwise it is q. It is not converted
    between steps: XLA folds log(exp(z)), and is slow at logarithms.
    """
    _, at_zero = g.at_zero
    unknown = LOGARITHM if np.isinf(at_zero) else ITSELF
    lowest = jax.grad(g)(LEAST_PROBABILITY) if np.isinf(at_zero) else at_zero

    formula = g.formula if unknown is LOGARITHM else None
    inside = g if formula is None else formula.numerics.from_least_on

    def slope(z: Array) -> Array:
        return jax.vmap(jax.grad(inside))(unknown.back(z))

    def inverse(m: Array, costs: Array, guess: Array) -> Array:
        level, ceiling = jax.grad(g)(m), unknown.of(m)
        support = level + costs < lowest
        target = jnp.where(support, level + costs, level)
        # For a text that enters the support, guess from the slope at 0.
        entering = (target - at_zero) / jax.grad(jax.grad(g))(LEAST_PROBABILITY)
        for other in (entering, unknown.of(m / 2)):
            guess = jnp.where(guess > unknown.floor, jnp.minimum(guess, ceiling), other)
        # Roots known in advance: those of cost 0, and those beyond g'(0), unused.
        start = jnp.where(support & (costs > 0), guess, ceiling)
        # Along a frontier one step from the guess nearly always suffices.
        z, _ = _halley_step(slope, target, start)
        slowly = partial(_invert, slope, target, unknown.floor, ceiling)
        z = jax.lax.cond(_close(z, start).all(), lambda _: z, slowly, start)
        return jnp.where(costs == 0, ceiling, jnp.where(support, z, unknown.floor))

    return unknown, inverse


def _halley_step(
    slope: Callable[[Array], Array], target: Array, z: Array
) -> tuple[Array, Array]:
    """One step towards slope(z) = target, NaN where it is not trusted; and slope(z).

    With n = (target - s) / s', Newton's step, Halley's is n / (1 + n s'' / (2 s')).
    """

    def slope_and_derivative(z: Array) -> tuple[Array, Array]:
        return jax.jvp(slope, (z,), (jnp.ones_like(z),))

    (value, first), (_, second) = jax.jvp(
        slope_and_derivative, (z,), (jnp.ones_like(z),)
    )
    newton = (target - value) / first
    correction = newton * second / (2 * first)
    # An infinite derivative gives a step of 0, which does not mean convergence; nor do
    # short steps near g'' = 0.
    trusted = jnp.isfinite(first) & jnp.isfinite(second) & (jnp.abs(correction) < 0.25)
    return jnp.where(trusted, z + newton / (1 + correction), jnp.nan), value


def _close(new: Array, z: Array) -> Array:
    """Whether the error after a Halley step, of the order of its cube, is rounding."""
    return jnp.abs(new - z) <= 1e-6 * jnp.abs(z)


def _invert(
    slope: Callable[[Array], Array],
    target: Array,
    floor: float,
    ceiling: Array,
    start: Array,
) -> Array:
    """Solve slope(z) = target for falling slopes, from a start between two limits."""

    def step(z: Array, bracket: _Bracket, _: int) -> tuple[Array, _Bracket, Array]:
        new, value = _halley_step(slope, target, z)
        bracket = bracket.narrowed(z, target - value)
        middle = (bracket.low + bracket.high) / 2
        last = _close(new, z)
        new = jnp.where(last, new, bracket.newton_or(middle, new, z))
        noise = 16 * EPS * jnp.maximum(jnp.abs(target), jnp.abs(value))
        settled = jnp.abs(value - target) <= noise
        settled |= bracket.high - bracket.low <= 2 * EPS * jnp.abs(z)
        new = jnp.where(settled, z, new)
        return new, bracket.after(new, z), ~(settled | last).all()

    ends = jnp.full_like(start, floor), jnp.full_like(start, ceiling)
    return _repeated(step, start, _Bracket(*ends, jnp.full_like(start, jnp.inf)))


def _root_finder(
    g: Function, unknown: _Unknown, inverse: Inverse, gaps: Array
) -> Solver:
    """Find m with sum q(m) = 1 by safeguarded Newton steps in a bracket."""
    curvature = jax.grad(jax.grad(g))
    top = jnp.argmin(gaps)
    # Each q_i is at most m, with equality for at least one.
    lowest, highest = 1 / jnp.isfinite(gaps).sum(), 1.0

    def solve(w: Array, guess: Array) -> tuple[Array, Array]:
        def step(state: tuple, bracket: _Bracket, steps: int) -> tuple:
            m, z, _ = state
            z = inverse(m, -w * gaps, z)
            q, scale = jax.jvp(unknown.probability, (z,), (jnp.ones_like(z),))
            excess = q.sum() - 1
            bracket = bracket.narrowed(m, excess)
            # dq_i / dm = g''(m) / g''(q_i), by g'(q_i) = g'(m) + c_i.
            ratio = curvature(m) / jax.vmap(curvature)(jnp.where(q > 0, q, m))
            rise = jnp.where((q > 0) & jnp.isfinite(ratio), ratio, 0.0)
            newton = m - excess / rise.sum()
            middle = jnp.sqrt(bracket.low * bracket.high)
            # Newton's method is fast unless g'' is nearly 0 at some text.
            safe = bracket.newton_or(middle, newton, m)
            new = jnp.where(steps < 10, safe, middle)
            near = jnp.abs(excess) < 1e-7
            # First-order effect of the Newton step for m on z.
            change = jnp.where(near | (new == newton), newton - m, 0.0)
            z += jnp.where(q > 0, rise / scale, 0.0) * change
            q = unknown.probability(z)
            done = near & (jnp.abs(q.sum() - 1) < 1e-13)
            done |= bracket.high - bracket.low <= 2 * EPS * bracket.high
            return (new, z, q), bracket.after(new, m), ~done

        m = jnp.clip(unknown.back(guess[top]), lowest, highest)
        ends = _Bracket(*map(jnp.asarray, (lowest, highest, jnp.inf)))
        _, z, q = _repeated(step, (m, guess, guess), ends)
        return q, z

    return solve


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Bracket:
    """Limits of a root, or of many roots, and the size of the last step to it.

    In each step it is `narrowed` by a sign; `newton_or` then chooses the next point.
    """

    low: Array
    high: Array
    last_step: Array

    def narrowed(self, x: Array, excess: Array) -> "_Bracket":
        """The bracket after a rising function exceeds 0 by so much at x."""
        low = jnp.where(excess <= 0, x, self.low)
        return _Bracket(low, jnp.where(excess >= 0, x, self.high), self.last_step)

    def newton_or(self, middle: Array, newton: Array, x: Array) -> Array:
        """The Newton point if it is in the bracket and steps shrink by half."""
        good = (newton > self.low) & (newton < self.high)
        good &= jnp.abs(newton - x) <= self.last_step / 2
        return jnp.where(good, newton, middle)

    def after(self, new: Array, x: Array) -> "_Bracket":
        """The bracket after a step from x."""
        return replace(self, last_step=jnp.abs(new - x))


def _repeated(step: Callable, state: Any, bracket: _Bracket) -> Any:
    """Repeat a step of (state, bracket, number of steps), which says if to go on."""

    def unfinished(carry: tuple) -> Array:
        _, _, going, steps = carry
        return going & (steps < MAX_STEPS)

    def advance(carry: tuple) -> tuple:
        state, bracket, _, steps = carry
        return *step(state, bracket, steps), steps + 1

    start = (state, bracket, jnp.array(True), 0)
    return jax.lax.while_loop(unfinished, advance, start)[0]


# --- What must be known of g ----------------------------------------------------------
@lru_cache(maxsize=128)
def slopes_of(g: Function) -> tuple[np.ndarray, np.ndarray]:
    """Derivative of g on a grid of (0, 1], geometric up to 1e-3."""
    x = np.concatenate([np.geomspace(1e-12, 1e-3, 64), np.linspace(2e-3, 1, 960)])
    with jax.ensure_compile_time_eval():
        # Jitted as a whole: separate operations compile slowly.
        slopes = np.asarray(jax.jit(jax.vmap(jax.grad(g)))(x))
    if np.isnan(slopes).any():
        raise ValueError(
            f"g must be differentiable on (0, 1], but g' is NaN at "
            f"{x[np.isnan(slopes)][0]:.6g}"
        )
    return x, slopes


@lru_cache(maxsize=128)
def require_concave(g: Function) -> None:
    """Raise, naming the first bend, unless g' decreases on the grid of `slopes_of`."""
    x, slopes = slopes_of(g)
    with np.errstate(invalid="ignore"):  # the difference of infinite slopes is NaN
        rise = np.diff(slopes)
    noise = NOISE * np.maximum(np.abs(slopes[1:]), np.abs(slopes[:-1]))
    if (rise > noise).any():
        worst = int(np.argmax(rise))
        raise ValueError(
            f"g must be strictly concave on [0, 1], but g'({x[worst]:.6g}) = "
            f"{slopes[worst]:.6g} rises to g'({x[worst + 1]:.6g}) = "
            f"{slopes[worst + 1]:.6g}; Theorem 2 does not hold for it"
        )
    flat = rise >= -noise
    # Near 0 neighbours are too close to decide; beyond, three flat steps are a stretch.
    stretch = flat[64:-2] & flat[65:-1] & flat[66:]
    if stretch.any():
        raise ValueError(
            "g must be strictly concave on [0, 1], but it is linear, to within "
            f"rounding, near {x[64:][stretch.argmax()]:.6g}"
        )
