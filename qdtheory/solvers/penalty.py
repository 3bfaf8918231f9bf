r"""The paper's search: SGD with momentum on the logits, diversity by a penalty.

It ascends $U(Q; P) - 2 \max(0, V(P) - V(Q))$ from log P, for 5,000 steps at each of the
learning rates 0.1, 1 and 10, and keeps the best feasible iterate.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from qdtheory.formulas.posed import Functional
from qdtheory.world.numbers import EPS

# Relative difference of equal diversities: rounding of a sum of some hundred terms.
SAME = 64 * EPS
SGD_STEPS, LEARNING_RATES, PENALTY, MOMENTUM = 5000, (0.1, 1.0, 10.0), 2.0, 0.9


def penalised(
    quality: Functional, diversity: Functional, p: Array
) -> tuple[Array, Array]:
    """The best feasible iterates, and the quality along all, as of `iterates`."""
    least = diversity(p)

    def surplus(q):
        # The first Q is P: rounding must not decide on which side of the constraint.
        surplus = diversity(q) - least
        tie = jnp.abs(surplus) <= SAME * jnp.abs(least)
        return surplus - jnp.where(tie, jax.lax.stop_gradient(surplus), 0.0)

    return iterates(quality, surplus, p)


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
