r"""The paper's search: SGD with momentum on the logits, diversity by a penalty.

It ascends $U(Q; P) - 2 \max(0, V(P) - V(Q))$ from log P, for 5,000 steps at each of the
learning rates 0.1, 1 and 10, and keeps the best feasible iterate.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas.posed import Functional
from qdtheory.pairs.base import Pair, known_to_jax
from qdtheory.solvers.mirror_ascent import quality_of
from qdtheory.world.distributions import check_distribution, require_x64
from qdtheory.world.numbers import EPS

# Relative difference of equal diversities: rounding of a sum of some hundred terms.
SAME = 64 * EPS
SGD_STEPS, LEARNING_RATES, PENALTY, MOMENTUM = 5000, (0.1, 1.0, 10.0), 2.0, 0.9


def penalty_curve(
    pair: Pair, p: Float[ArrayLike, " texts"]
) -> Float[Array, "rates steps"]:
    """Gain in quality along the iterates of the paper's method.

    Args:
        pair: any differentiable pair.
        p: the real distribution, shape (N,).

    Returns:
        For each of the learning rates 0.1, 1 and 10 and each of 5,000 steps
        U(Q) - U(P), or NaN where Q does not beat P in both quality and diversity.

    Raises:
        ValueError: `p` is not a distribution.

    References:
        Li et al. 2020, appendix G.1, figure 5.

    Example:
        >>> from qdtheory.pairs.named import LL_NRR
        >>> import numpy as np
        >>> gains = penalty_curve(LL_NRR, np.array([0.6, 0.3, 0.1]))
        >>> print(gains.shape, f"{np.nanmax(gains):.4f}")
        (3, 5000) 0.0134
    """
    require_x64()
    pair, p = known_to_jax(pair), check_distribution(p)
    _, values = penalised(pair, p)
    gains = values - pair.quality(p, p)
    return jnp.where(gains > 0, gains, jnp.nan)


@jax.jit
def penalised(pair: Pair, p: Array) -> tuple[Array, Array]:
    """The best feasible iterates, and the quality along all, as of `iterates`."""
    least = pair.diversity(p)

    def surplus(q):
        # The first Q is P: rounding must not decide on which side of the constraint.
        surplus = pair.diversity(q) - least
        tie = jnp.abs(surplus) <= SAME * jnp.abs(least)
        return surplus - jnp.where(tie, jax.lax.stop_gradient(surplus), 0.0)

    return iterates(partial(quality_of, pair, p), surplus, p)


def iterates(
    objective: Functional, surplus: Functional, p: Array
) -> tuple[Array, Array]:
    """Run SGD with momentum at each of the learning rates.

    Returns the best feasible iterates, shape (rates, N), and the objective at all
    iterates, shape (rates, steps), minus infinity if infeasible.
    """

    def loss(logits):
        q = jax.nn.softmax(logits)
        u, s = objective(q), surplus(q)
        value = jnp.where((s > 0) & ~jnp.isnan(u), u, -jnp.inf)
        return PENALTY * jnp.maximum(0.0, -s) - u, (q, value)

    def descend(rate):
        def step(state, _):
            logits, velocity, best, most = state
            slope, (q, value) = jax.grad(loss, has_aux=True)(logits)
            best = jnp.where(value > most, q, best)
            velocity = MOMENTUM * velocity + jnp.where(p > 0, slope, 0.0)
            state = logits - rate * velocity, velocity, best, most.clip(value)
            return state, value

        start = (jnp.log(p), jnp.zeros_like(p), p, jnp.full((), -jnp.inf))
        (_, _, best, _), values = jax.lax.scan(step, start, length=SGD_STEPS)
        return best, values

    return jax.vmap(descend)(jnp.array(LEARNING_RATES))
