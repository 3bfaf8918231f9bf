r"""Constrained mirror ascent from evolved starts, for any differentiable pair.

Each step is a step of mirror ascent in $\log Q$ on the linearised problem: with u and v
the gradients of U and V minus their means under Q, and rate r,
$\log Q$ moves by $r (u + \eta v)$ with $\eta = \max(0, [(V(P) - V(Q)) / r -
Cov_Q(u, v)] / Var_Q(v))$, the least price of diversity that keeps the constraint to
first order. A step that lowers the merit function $U - c \max(0, V(P) - V(Q))$, with c
twice the greatest price so far, is rejected and r halved.

BLEU has many local optima, so starts are evolved: each round crosses the best models of
the previous round and multiplies the texts' probabilities by noise.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from qdtheory.formulas.posed import Functional
from qdtheory.world.numbers import NOISE

NUM_STARTS, NUM_ROUNDS, NUM_STEPS = 64, 3, 120
NUM_POLISHED, POLISH_STEPS = 4, 1000
# A lower bound on diversity that every model satisfies.
UNBOUNDED = -1e30
# Floor of log-probabilities, from which a text can still regain mass.
LEAST_LOG_Q = float(np.log(1e-12))
# Weights of quality and diversity. A small weight on quality breaks ties among models
# of equal diversity.
BEST, MOST_DIVERSE = (1.0, 0.0), (1e-5, 1.0)


@dataclass(frozen=True)
class Problem:
    """Maximise a weighted sum of quality and diversity s.t. diversity >= `least`."""

    quality: Functional
    diversity: Functional
    weights: Array
    least: Array | float

    def objective(self, q: Array) -> Array:
        """Return the weighted sum."""
        u, v = self.weights
        return u * self.quality(q) + v * self.diversity(q)

    def surplus(self, q: Array) -> Array:
        """Return the diversity above the least."""
        return self.diversity(q) - self.least


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Point:
    """A model, with objective u, constraint surplus s, and their centred gradients."""

    log_q: Array
    q: Array
    u: Array
    s: Array
    du: Array
    ds: Array

    def price(self, change: Array | float) -> Array:
        """The price at which du + price ds changes the surplus at this rate."""
        cov, var = self.q @ (self.du * self.ds), self.q @ self.ds**2
        return jnp.maximum(0.0, (change - cov) / jnp.where(var > 0, var, jnp.inf))


def _point(problem: Problem, log_q: Array) -> _Point:
    log_q = jax.nn.log_softmax(log_q)
    log_q = jnp.where(jnp.isneginf(log_q), log_q, jnp.maximum(log_q, LEAST_LOG_Q))
    q = jax.nn.softmax(log_q)
    u, du = jax.value_and_grad(problem.quality)(q)
    v, dv = jax.value_and_grad(problem.diversity)(q)
    # A text of probability 0 stays at 0, for any slope.
    du, dv = (jnp.where(q > 0, slope, 0.0) for slope in (du, dv))
    du, dv = du - q @ du, dv - q @ dv
    a, b = problem.weights
    return _Point(log_q, q, a * u + b * v, v - problem.least, a * du + b * dv, dv)


def ascend(problem: Problem, start: Array, num_steps: int) -> Array:
    """Run constrained mirror ascent from one start."""

    def step(state, _):
        now, log_q, rate, scale, penalty = state
        new = _point(problem, log_q)
        change = new.u - now.u
        change += penalty * (jnp.minimum(new.s, 0.0) - jnp.minimum(now.s, 0.0))
        good = (change >= 0) | jnp.isneginf(now.u)
        now = jax.tree.map(lambda a, b: jnp.where(good, a, b), new, now)
        # A clipped move is not evidence on the rate; once halved, it must be below the
        # clipping threshold.
        grown = jnp.where(scale < 1, rate, 1.05 * rate)
        rate = jnp.where(good, grown, rate * scale / 2)
        penalty = jnp.maximum(penalty, 2 * now.price(0.0))
        move = rate * (now.du + now.price(-now.s / rate) * now.ds)
        scale = jnp.minimum(1.0, 1 / move.max())  # no text grows by more than e
        log_q = now.log_q + jnp.maximum(scale * move, -5.0)
        return (now, log_q, rate, scale, penalty), None

    # Initial point worse than any model, so that the first step moves to the start.
    none, log_q = jnp.zeros_like(start), jnp.log(start)
    nowhere = _Point(none, none, jnp.array(-jnp.inf), jnp.array(0.0), none, none)
    state = (nowhere, log_q, 1.0, 0.0, 0.0)
    (end, *_), _ = jax.lax.scan(step, state, length=num_steps + 1)
    return end.q


def solve(
    problem: Problem,
    inside: Array,
    parents: Array,
    key: Array,
    num_starts: int,
    num_rounds: int = NUM_ROUNDS,
) -> tuple[Array, Array, Array]:
    """Climb from evolved starts; all models, best first, the best value, all values."""

    def climbed(starts, num_steps):
        return jax.vmap(lambda q: ascend(problem, q, num_steps))(starts)

    def repaired(models):
        return jax.vmap(lambda q: _repaired(problem, inside, q))(models)

    def breed(state, round_key):
        q, values = state
        starts = _children(round_key, q[: num_starts // 4], num_starts)
        new, value = repaired(climbed(starts, NUM_STEPS))
        value = jnp.where(jnp.isnan(value), -jnp.inf, value)
        q, values = jnp.concatenate([q, new]), jnp.append(values, value)
        best = jnp.argsort(-values)[:num_starts]
        return (q[best], values[best]), value

    population = parents[jnp.arange(num_starts) % len(parents)]
    start = (population, jnp.full(num_starts, -jnp.inf))
    (bred, _), values = jax.lax.scan(breed, start, jax.random.split(key, num_rounds))
    polished = climbed(bred[:NUM_POLISHED], POLISH_STEPS)
    finals, worth = repaired(jnp.concatenate([polished, parents]))
    return bred.at[0].set(finals[worth.argmax()]), worth.max(), values


def _children(key: Array, parents: Array, num: int) -> Array:
    """Mixtures of two parents each, times noise; the first parent unchanged."""
    which, weight, noise = jax.random.split(key, 3)
    a, b = parents[jax.random.randint(which, (2, num), 0, len(parents))]
    share = jax.random.uniform(weight, (num, 1))
    children = share * a + (1 - share) * b
    children *= jax.random.exponential(noise, children.shape)
    allowed = (parents > 0).any(axis=0)
    children = 0.99 * children / children.sum(axis=1, keepdims=True)
    children += 0.01 * allowed / allowed.sum()
    return children.at[0].set(parents[0])


def _repaired(problem: Problem, inside: Array, q: Array) -> tuple[Array, Array]:
    """Mix the model with a feasible one until feasible; return it and its objective."""
    shares = jnp.append(0.0, jnp.geomspace(1e-16, 1.0, 49))[:, None]
    mixed = (1 - shares) * q + shares * inside
    # With a margin, so that another order of summation stays feasible.
    feasible = jax.vmap(problem.surplus)(mixed) >= NOISE
    q = jnp.where(feasible.any(), mixed[feasible.argmax()], inside)
    return q, jnp.where(feasible.any(), problem.objective(q), -jnp.inf)


def optimality_gap(problem: Problem, q: Array) -> tuple[Array, Array]:
    """First-order optimality gap of a model, and the price of diversity there."""
    end = _point(problem, jnp.log(q))
    # If the constraint is inactive, the price is 0.
    price = jnp.where(end.s > 1e-9, 0.0, end.price(0.0))
    return jnp.where(q >= 0, end.du + price * end.ds, 0.0).max(), price


def greatest_quality(free: Problem, p: Array, *, is_linear: bool) -> Array:
    """Greatest quality of single texts and, unless U is linear in Q, of an ascent."""
    greatest = jax.vmap(free.quality)(jnp.eye(p.size)).max()
    if is_linear:
        return greatest
    return jnp.maximum(greatest, free.quality(ascend(free, p, POLISH_STEPS)))
