r"""Maximise $\sum_i g(q_i) - \sum_i c_i q_i$ over the simplex, for each kind of g.

The costs are $c_i = |w| e_i$ with gaps $e_i \ge 0$, at least one of them 0, perhaps
some infinite, and $-\infty < w < 0$. At the solution $g'(q_i) = g'(m) + c_i$ on the
support, where m is the largest probability, that of a text without cost: one
unknown, in [1/N, 1/M] with M texts without cost. SE gives m in closed form, Tsallis
orders 1.5 and 2 after one sort of the gaps that serves every w, and any other g by
root-finding.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.pairs import NRR, SE, ScalarFunction, Tsallis

# The least probability told from 0; its square, which g'' may need, is a float too.
TINY = float(np.sqrt(np.finfo(float).tiny))
EPS = float(np.finfo(float).eps)
MAX_STEPS = 100

# (largest, q) at one weight, and as the guess for the next.
Solution = tuple[Array, Array]
Solver = Callable[[Array, Solution], Solution]


def order_of(g: ScalarFunction) -> float | None:
    """The Tsallis order a for which g is Tsallis up to a linear term, if known.

    Args:
        g: a diversity.

    Returns:
        a, or None where g is not one of the named diversities.
    """
    if g is SE:
        return 1.0
    if g is NRR:
        return 2.0
    return g.order if isinstance(g, Tsallis) else None


def solver(g: ScalarFunction, gaps: Float[Array, " texts"]) -> Solver:
    """The solver for one g and one vector of gaps, for any finite w < 0.

    Args:
        g: strictly concave.
        gaps: nonnegative, shape (N,), the least is 0; infinite ones get no mass.

    Returns:
        A function (w, guess) -> (m, q); only the root-finder reads the guess.
    """
    order = order_of(g)
    if order == 1:
        return lambda w, guess: _softmax(w * gaps)
    if order in (1.5, 2):
        table = _prefix_sums(jnp.sort(gaps))
        threshold = _threshold_2 if order == 2 else _threshold_15
        return lambda w, guess: threshold(w, gaps, table)
    inverse = _tsallis_inverse(order) if order else _newton_inverse(g)
    return lambda w, guess: _find_root(g, inverse, -w * gaps, guess)


def first_guess(gaps: Float[Array, " texts"]) -> Solution:
    """Where the root-finder starts when nothing is known.

    Args:
        gaps: shape (N,); only the shape counts.

    Returns:
        (m, q).
    """
    uniform = jnp.full_like(gaps, 1 / gaps.size)
    return uniform[0], uniform


def _softmax(scores: Array) -> Solution:
    q = jax.nn.softmax(scores)
    return q.max(), q


# --- Orders 1.5 and 2: one sort for all weights -----------------------------------
# With t = -w / 2 (order 2) or -w / 3 (order 1.5) and u_i = e_k - e_i over the k
# least gaps: q_i = r + t u_i, or its square, with r >= 0 fixed by sum q_i = 1.
# All sums below have nonnegative terms, so that no digits cancel.


def _prefix_sums(e: Array) -> tuple[Array, Array, Array]:
    """Rising gaps e_k, c_k = sum_i (e_k - e_i), d_k = sum_i (e_k - e_i)^2 (i <= k)."""
    finite = jnp.isfinite(e)
    last = jnp.where(finite, e, 0.0)
    step = jnp.where(finite, jnp.diff(last, prepend=0.0), 0.0)
    before = jnp.arange(e.size)
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


def _threshold_2(w: Array, gaps: Array, table: tuple[Array, Array, Array]) -> Solution:
    t = -w / 2
    last, r = _support_2(t, table)
    e_k = table[0][last]
    inside = gaps <= e_k
    q = jnp.where(inside, r + t * jnp.where(inside, e_k - gaps, 0.0), 0.0)
    return r + t * e_k, q


def _threshold_15(w: Array, gaps: Array, table: tuple[Array, Array, Array]) -> Solution:
    t = -w / 3
    e, c, d = table
    k = jnp.searchsorted(jnp.sqrt(d), 1 / t)  # the support is where t^2 d_k < 1
    e_k, tc, room = e[k - 1], t * c[k - 1], 1 - (t * jnp.sqrt(d[k - 1])) ** 2
    # The root of k r^2 + 2 t c r + t^2 d = 1 in the form that does not cancel.
    r = room / (tc + jnp.sqrt(tc * tc + k * room))
    inside = gaps <= e_k
    q = jnp.where(inside, (r + t * jnp.where(inside, e_k - gaps, 0.0)) ** 2, 0.0)
    return (r + t * e_k) ** 2, q


def order_two_moments(
    scores: Float[Array, " texts"], w: Float[Array, " points"]
) -> tuple[Array, Array, Array, Array]:
    r"""Largest $Q_i$, $\sum_i Q_i \phi_i$, $\sum_i Q_i^2$ at many weights.

    By one look-up a weight; no distribution is formed.

    Args:
        scores: in descending order, shape (N,), finite or -inf.
        w: weights in [-inf, 0], both ends included.

    Returns:
        These and $|\sum_i Q_i - 1|$: four vectors, one entry a weight.
    """
    top = scores.max()
    gaps = top - scores
    table = e, c, d = _prefix_sums(gaps)
    t = jnp.where((w == 0) | jnp.isinf(w), 1.0, -w / 2)
    last, r = _support_2(t, table)
    e_k, tc = e[last], t * c[last]
    k = last + 1
    num_modes = (gaps == 0).sum()
    ends = [w == 0, jnp.isinf(w)]
    largest = jnp.select(ends, [1 / scores.size, 1 / num_modes], r + t * e_k)
    quality = jnp.select(
        ends, [scores.mean(), top], top - e_k + r * c[last] + t * d[last]
    )
    residual = jnp.abs(k * r + tc - 1)
    squares = k * r * r + 2 * r * tc + t * t * d[last]
    squares = jnp.select(ends, [1 / scores.size, 1 / num_modes], squares)
    return largest, quality, squares, jnp.where((w == 0) | jnp.isinf(w), 0.0, residual)


# --- Any other g: a root in m, with g' inverted at every step -----------------------

# (m, costs, guess) -> q with g'(q_i) = g'(m) + cost_i, or 0 beyond g'(0).
Inverse = Callable[[Array, Array, Array], Array]


def _tsallis_inverse(order: float) -> Inverse:
    power = order - 1

    def inverse(m: Array, costs: Array, guess: Array) -> Array:
        return jnp.maximum(m**power - power / order * costs, 0.0) ** (1 / power)

    return inverse


def _newton_inverse(g: ScalarFunction) -> Inverse:
    """Invert g' at many points by Newton steps kept inside shrinking brackets.

    Where g'(0) is infinite the unknown is log q, in which such g' are close to
    linear and probabilities of any size keep their digits; else it is q itself.
    """
    at_zero = slope_at_zero(g)
    in_logs = np.isinf(at_zero)
    floor = jnp.log(TINY) if in_logs else 0.0

    def slope(z: Array) -> Array:
        return jax.vmap(jax.grad(g))(jnp.exp(z) if in_logs else z)

    def inverse(m: Array, costs: Array, guess: Array) -> Array:
        target = jax.grad(g)(m) + costs
        lowest = jax.grad(g)(TINY) if in_logs else at_zero
        inside = target < lowest
        target = jnp.where(inside, target, jax.grad(g)(m))
        ceiling = jnp.log(m) if in_logs else m
        # A text that enters the support is best guessed from the slope at 0.
        entering = (target - at_zero) / jax.grad(jax.grad(g))(0.0)
        for other in (entering, m / 2):
            guess = jnp.where(guess > 0, jnp.minimum(guess, m), other)
        # Roots that are known already: no cost, or beyond g'(0) and not wanted.
        guess = jnp.where(inside & (costs > 0), guess, m)

        def step(state):
            z, low, high, last_step, _, steps = state
            value, derivative = jax.jvp(slope, (z,), (jnp.ones_like(z),))
            excess = value - target
            low = jnp.where(excess >= 0, z, low)
            high = jnp.where(excess <= 0, z, high)
            newton = z - excess / derivative
            middle = (low + high) / 2
            new = _newton_or_else(middle, z, newton, low, high, last_step)
            noise = 16 * EPS * jnp.maximum(jnp.abs(target), jnp.abs(value))
            settled = (jnp.abs(excess) <= noise) | (high - low <= 2 * EPS * jnp.abs(z))
            new = jnp.where(settled, z, new)
            # Newton's error after a step is of the order of its square. (An infinite
            # derivative makes a step of 0 that proves nothing.)
            last = (jnp.abs(newton - z) <= 1e-9 * jnp.abs(z)) & jnp.isfinite(derivative)
            new = jnp.where(last & ~settled, newton, new)
            going = ~(settled | last).all()
            return new, low, high, jnp.abs(new - z), going, steps + 1

        def unfinished(state):
            return state[4] & (state[5] < MAX_STEPS)

        start = jnp.log(guess) if in_logs else guess
        low = jnp.full_like(start, floor)
        high = jnp.full_like(start, ceiling)
        last_step = jnp.full_like(start, jnp.inf)
        state = (start, low, high, last_step, jnp.array(True), 0)
        z = jax.lax.while_loop(unfinished, step, state)[0]
        q = jnp.where(inside, jnp.exp(z) if in_logs else z, 0.0)
        return jnp.where(costs == 0, m, q)

    return inverse


def _find_root(
    g: ScalarFunction, inverse: Inverse, costs: Array, guess: Solution
) -> Solution:
    """Find m with sum q(m) = 1 by Newton steps inside a bracket that holds it."""
    curvature = jax.grad(jax.grad(g))
    # Each q_i is at most m, and the texts without cost have exactly m.
    low = 1 / jnp.isfinite(costs).sum()
    high = 1 / (costs == 0).sum()

    def step(state):
        m, q, low, high, last_step, _, steps = state
        q = inverse(m, costs, q)
        excess = q.sum() - 1
        low = jnp.where(excess <= 0, m, low)
        high = jnp.where(excess >= 0, m, high)
        ratio = curvature(m) / jax.vmap(curvature)(jnp.where(q > 0, q, m))
        rise = jnp.where((q > 0) & jnp.isfinite(ratio), ratio, 0.0)
        # Newton's step for m, and what it does to q to first order.
        newton = m - excess / rise.sum()
        predicted = jnp.maximum(q + rise * (newton - m), 0.0)
        done = (jnp.abs(excess) < 1e-7) & (jnp.abs(predicted.sum() - 1) < 1e-13)
        middle = jnp.sqrt(low * high)
        new = _newton_or_else(middle, m, newton, low, high, last_step)
        q = jnp.where(done | (new == newton), predicted, q)
        new = jnp.where(done, newton, new)
        done |= high - low <= 2 * EPS * high
        return new, q, low, high, jnp.abs(new - m), ~done, steps + 1

    def unfinished(state):
        return state[5] & (state[6] < MAX_STEPS)

    m = jnp.clip(guess[0], low, high)
    state = (m, guess[1], low, high, jnp.array(jnp.inf), jnp.array(True), 0)
    m, q, *_ = jax.lax.while_loop(unfinished, step, state)
    return m, q


def _newton_or_else(
    middle: Array, x: Array, newton: Array, low: Array, high: Array, last_step: Array
) -> Array:
    """Newton's point where it stays inside and the steps shrink by half."""
    good = (newton > low) & (newton < high) & (jnp.abs(newton - x) <= last_step / 2)
    return jnp.where(good, newton, middle)


# --- What must be known of g ---------------------------------------------------------


@lru_cache(maxsize=128)
def slope_at_zero(g: ScalarFunction) -> float:
    """g'(0), perhaps infinite, also where the formula is NaN there.

    Args:
        g: a scalar function that JAX can trace, differentiable on (0, 1].

    Returns:
        The limit of g'(x) as x falls to 0.
    """
    with jax.ensure_compile_time_eval():
        slope = jax.grad(g)
        at_zero, near, nearer = (float(slope(x)) for x in (0.0, 1e-100, 1e-200))
    if not np.isnan(at_zero):
        return at_zero
    return np.inf if nearer - near > 1e-6 * max(1.0, abs(near)) else nearer


@lru_cache(maxsize=128)
def require_concave(g: ScalarFunction) -> None:
    """Refuse a g whose derivative does not fall over (0, 1].

    Args:
        g: a scalar function that JAX can trace, differentiable on (0, 1].

    Raises:
        ValueError: on a grid of 1,024 points g' rises, or stays the same over
            neighbours.
    """
    x = np.concatenate([np.geomspace(1e-12, 1e-3, 64), np.linspace(2e-3, 1, 960)])
    with jax.ensure_compile_time_eval():
        slopes = np.asarray(jax.vmap(jax.grad(g))(x))
    with np.errstate(invalid="ignore"):  # two infinite slopes neither rise nor fall
        rise = np.diff(slopes)
    noise = 8 * EPS * np.maximum(np.abs(slopes[1:]), np.abs(slopes[:-1]))
    if np.isnan(slopes).any():
        raise ValueError(
            f"g must be differentiable on (0, 1], but g' is NaN at "
            f"{x[np.isnan(slopes)][0]:.6g}"
        )
    if (rise > noise).any():
        worst = int(np.argmax(rise))
        raise ValueError(
            f"g must be strictly concave on [0, 1], but g'({x[worst]:.6g}) = "
            f"{slopes[worst]:.6g} rises to g'({x[worst + 1]:.6g}) = "
            f"{slopes[worst + 1]:.6g}; Theorem 2 does not hold for it"
        )
    flat = rise >= -noise
    # Near 0 neighbours are too close to tell; beyond, three flat steps are a stretch.
    stretch = flat[64:-2] & flat[65:-1] & flat[66:]
    if stretch.any():
        raise ValueError(
            "g must be strictly concave on [0, 1], but it is linear, to within "
            f"rounding, near {x[64:][stretch.argmax()]:.6g}"
        )
