r"""Search for models that gain quality at no loss of diversity, for any pair.

Maximise $U(Q; P) - U(P; P)$ subject to $V(Q) \ge V(P)$ by constrained mirror ascent
from evolved starts. The result satisfies the constraint in 64 bits, so its gain is a
lower bound on QDisc.

Each step is a step of mirror ascent in $\log Q$ on the linearised problem: with u and v
the gradients of U and V minus their means under Q, and rate r, $\log Q$ moves by
$r (u + \eta v)$, so that V changes by $r (Cov_Q(u, v) + \eta Var_Q(v))$ to first order.
The least price of diversity $\eta \ge 0$ that keeps the constraint is
$\eta = \max(0, [(V(P) - V(Q)) / r - Cov_Q(u, v)] / Var_Q(v))$. A step that lowers the
merit function $U - c \max(0, V(P) - V(Q))$, with c twice the greatest price so far, is
rejected and r halved.

BLEU has many local optima, so starts are evolved: each round crosses the best models of
the previous round and multiplies the texts' probabilities by noise.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

from qdtheory.distributions import as_distribution
from qdtheory.forms import Functional, Problem
from qdtheory.frontier import ParetoFrontier
from qdtheory.pairs import FunctionPair, Pair, as_pair, known_to_jax, pose
from qdtheory.support.numbers import EPS, NOISE, STATIC, PerText, one_of, within
from qdtheory.support.progress import progress
from qdtheory.support.records import Record

# --- Mirror ascent --------------------------------------------------------------------
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
class Program:
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


def _point(program: Program, log_q: Array) -> _Point:
    log_q = jax.nn.log_softmax(log_q)
    log_q = jnp.where(jnp.isneginf(log_q), log_q, jnp.maximum(log_q, LEAST_LOG_Q))
    q = jax.nn.softmax(log_q)
    u, du = jax.value_and_grad(program.quality)(q)
    v, dv = jax.value_and_grad(program.diversity)(q)
    # A text of probability 0 stays at 0, for any slope.
    du, dv = (jnp.where(q > 0, slope, 0.0) for slope in (du, dv))
    du, dv = du - q @ du, dv - q @ dv
    a, b = program.weights
    return _Point(log_q, q, a * u + b * v, v - program.least, a * du + b * dv, dv)


def ascend(program: Program, start: Array, num_steps: int) -> Array:
    """Run constrained mirror ascent from one start."""

    def step(state, _):
        now, log_q, rate, scale, penalty = state
        new = _point(program, log_q)
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
    program: Program,
    inside: Array,
    parents: Array,
    key: Array,
    num_starts: int,
    num_rounds: int = NUM_ROUNDS,
) -> tuple[Array, Array, Array]:
    """Climb from evolved starts; all models, best first, the best value, all values."""

    def climbed(starts, num_steps):
        return jax.vmap(lambda q: ascend(program, q, num_steps))(starts)

    def repaired(models):
        return jax.vmap(lambda q: _repaired(program, inside, q))(models)

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


def _repaired(program: Program, inside: Array, q: Array) -> tuple[Array, Array]:
    """Mix the model with a feasible one until feasible; return it and its objective."""
    shares = jnp.append(0.0, jnp.geomspace(1e-16, 1.0, 49))[:, None]
    mixed = (1 - shares) * q + shares * inside
    # With a margin, so that another order of summation stays feasible.
    feasible = jax.vmap(program.surplus)(mixed) >= NOISE
    q = jnp.where(feasible.any(), mixed[feasible.argmax()], inside)
    return q, jnp.where(feasible.any(), program.objective(q), -jnp.inf)


def optimality_gap(program: Program, q: Array) -> tuple[Array, Array]:
    """First-order optimality gap of a model, and the price of diversity there.

    The gap is the greatest entry of u + price v, the slopes less their means under Q:
    at a local optimum it is 0 on the support and at most 0 elsewhere.
    """
    end = _point(program, jnp.log(q))
    # If the constraint is inactive, the price is 0.
    price = jnp.where(end.s > 1e-9, 0.0, end.price(0.0))
    return (end.du + price * end.ds).max(), price


def greatest_quality(free: Program, p: Array, *, is_linear: bool) -> Array:
    """Greatest quality of single texts and, unless U is linear in Q, of an ascent."""
    greatest = jax.vmap(free.quality)(jnp.eye(p.size)).max()
    if is_linear:
        return greatest
    return jnp.maximum(greatest, free.quality(ascend(free, p, POLISH_STEPS)))


# --- Search ---------------------------------------------------------------------------
# Relative difference below which gains agree.
AGREEMENT = 1e-4
# Optimality gap at convergence, as a share of the quality range.
TOLERANCE = 1e-5
# The paper's method, SGD with momentum on U - 2 max(0, V(P) - V(Q)) (section 6.1); and
# the relative difference of equal diversities, the rounding of some hundred terms.
SGD_STEPS, LEARNING_RATES, PENALTY, MOMENTUM = 5000, (0.1, 1.0, 10.0), 2.0, 0.9
SAME = 64 * EPS


def quality_of(pair: Pair, p: Array, q: Array) -> Array:
    """The quality of a model, its argument last."""
    return pair.quality(q, p)


def program_of(
    pair: Pair, p: Array, weights: Array | tuple[float, float], least: Array | float
) -> Program:
    """The program of one pair at one real distribution."""
    quality = partial(quality_of, pair, p)
    return Program(quality, pair.diversity, jnp.asarray(weights), least)


@jax.tree_util.register_dataclass
class Search(Record):
    r"""The result of a search for one real distribution, or for a batch.

    Attributes:
        q: the best model found, shape (..., N), with $V(q) \ge V(p)$; p itself if none
            is better.
        gain: U(q) - U(p), at least 0: a lower bound on QDisc.
        most_diverse: Q', the most diverse model found with finite quality, of greatest
            quality among ties found, shape (..., N).
        quality_range: the greatest quality minus that of `most_diverse`; infinite if
            some text alone has quality $-\infty$.
        residual: the first-order optimality gap of q, the largest gain in the
            Lagrangian per unit of mass moved to one text; 0 at a local optimum.
        converged: the residual is at most 1e-5 of the quality range.
        num_agreeing: number of starts within a relative 1e-4 of the best gain, before
            the best four are polished (the best gain is measured after). From the
            second round on, starts descend from earlier ones.
        num_agreeing_diverse: the same for the diversity of `most_diverse`, relative to
            its excess over that of a single text.
        num_starts: total number of starts in all rounds, for each of the two models.
        num_steps: number of steps per model, in all rounds and the polish.
        learning_rate: that of the best iterate for "sgd", otherwise None.
    """

    q: Float[Array, "*batch texts"]
    gain: Float[Array, "*batch"]
    most_diverse: Float[Array, "*batch texts"]
    quality_range: Float[Array, "*batch"]
    residual: Float[Array, "*batch"]
    converged: Bool[Array, "*batch"]
    num_agreeing: Int[Array, "*batch"]
    num_agreeing_diverse: Int[Array, "*batch"]
    num_starts: int = field(metadata=STATIC)
    num_steps: int = field(metadata=STATIC)
    learning_rate: Float[Array, "*batch"] | None = None


def search(
    pair: Pair,
    p: Float[ArrayLike, "*batch texts"],
    *,
    method: Literal["ascent", "sgd"] = "ascent",
    num_starts: int = NUM_STARTS,
    key: PRNGKeyArray | None = None,
) -> Search:
    r"""Search for a model of greater quality and no less diversity than P.

    Args:
        pair: any differentiable pair; a batch shares its compiled code, in parallel:
            on the cores, or shared out among JAX's devices where there are several.
        p: the real distribution, shape (N,), or a batch of them, shape (batch, N).
        method: "ascent", or "sgd": the paper's method, SGD with momentum 0.9 on the
            logits for $U - 2 \max(0, V(P) - V(Q))$, from log P, 5,000 steps at each of
            the rates 0.1, 1 and 10; returns the best feasible iterate. The paper has
            the 2; momentum, steps and rates are ours, as it does not tell its own.
        num_starts: starts in each of the three rounds of "ascent", at least 4.
        key: JAX random key of the starts; `jax.random.key(0)` if None.

    Returns:
        The model found, with its gain and diagnostics.

    Raises:
        ValueError: a row of `p` is not a distribution, its own quality is not finite,
            the method is unknown, or there are fewer than 4 starts.

    References:
        Li et al. 2020, section 6.1 and appendix G.1, for "sgd".

    Claims: N8.5, N8.10.

    Example:
        >>> from qdtheory.pairs import LL_NRR
        >>> found = search(LL_NRR, np.array([0.6, 0.3, 0.1]))
        >>> print(f"{found.gain:.6f}")
        0.013566
    """
    rows: Any = p if np.ndim(p) > 1 else [p]
    problems = [pose(pair, row) for row in rows]
    found = search_each(problems, method=method, num_starts=num_starts, key=key)
    return found if np.ndim(p) > 1 else jax.tree.map(lambda x: x[0], found)


def search_each(
    problems: Sequence[Problem],
    *,
    method: str = "ascent",
    num_starts: int = NUM_STARTS,
    key: PRNGKeyArray | None = None,
) -> Search:
    """Search for a model at each of several real distributions of one pair."""
    one_of(("ascent", "sgd"), method=method)
    within(num_starts=num_starts, low=NUM_POLISHED)
    pair = known_to_jax(problems[0].form.pair, problems[0].p)
    key = jax.random.key(0) if key is None else key
    for at in problems:
        if not np.isfinite(at.real_quality):
            raise ValueError(
                f"the quality of P itself must be finite, got {at.real_quality}"
            )
        _ = at.real_diversity  # raises if it is NaN, which has no slopes either
        _require_slopes(pair, at.p)
    batch = jnp.stack([jnp.asarray(at.p) for at in problems])
    if method == "ascent":
        return _search_rows(pair, batch, key, num_starts)
    return _penalty_batch(pair, batch)


def _require_slopes(pair: Pair, p: np.ndarray) -> None:
    """Raise for code in steps, or of constant diversity: gradients show no way."""
    if not isinstance(pair, FunctionPair):
        return
    slanted = np.arange(1.0, p.size + 1)  # unlike P, the maximum of nothing symmetric
    models = jnp.stack([p, (p + slanted / slanted.sum()) / 2, *np.eye(p.size)[:2]])
    quality = partial(quality_of, pair, jnp.asarray(p))
    for name, metric in (("quality", quality), ("diversity", pair.diversity)):
        if any(jax.grad(metric)(q).any() for q in models[:2]):
            continue
        if name == "diversity" or np.ptp([float(metric(q)) for q in models]) > 0:
            raise ValueError(
                f"the {name} has gradient 0 at P and beside it: a metric that is "
                "constant or in steps, such as a count or a rounded number, cannot be "
                "searched by gradients; give a smooth one"
            )


def _search_rows(pair: Pair, p: Array, key: Array, num_starts: int) -> Search:
    """Run one problem per core, as the starts of one fill a processor's cache.

    The devices take turns, unless one is set as JAX's default.
    """
    keys = jax.random.split(key, len(p))
    default = jax.config.jax_default_device  # pyright: ignore
    devices = jax.devices() if default is None else [default]

    def one(i: int) -> Search:
        with jax.default_device(devices[i % len(devices)]):
            return jax.block_until_ready(_search_one(pair, p[i], keys[i], num_starts))

    with progress(len(p)) as step, ThreadPoolExecutor(os.cpu_count()) as pool:
        step(f"Searching, 1 of {len(p)}")
        found = [one(0)]  # compiles
        # A thread-local 64-bit mode does not apply to the pool's threads.
        reaches = pool.submit(lambda: jax.config.read("jax_enable_x64")).result()
        for result in (pool.map if reaches else map)(one, range(1, len(p))):
            found.append(result)
            step(f"Searching, {len(found)} of {len(p)}")
    return jax.tree.map(lambda *values: jnp.stack(values), *found)


@partial(jax.jit, static_argnums=3)
def _search_one(pair: Pair, p: Array, key: Array, num_starts: int) -> Search:
    # First Q', the most diverse model; then Q, the best model as diverse as P.
    weights = jnp.array([MOST_DIVERSE, BEST])
    least = jnp.array([UNBOUNDED, pair.diversity(p)])

    def task(inside, given):
        weights, least, key = given
        program = program_of(pair, p, weights, least)
        parents = jnp.concatenate([_landmarks(pair, p), inside[None]])
        population, best, values = solve(program, inside, parents, key, num_starts)
        return population[0], (population[0], best, values)

    uniform = _landmarks(pair, p)[1]
    given = (weights, least, jax.random.split(key))
    _, (models, best, values) = jax.lax.scan(task, uniform, given)
    # Self-BLEU with many references is near its minimum for all models.
    one_text = jax.vmap(pair.diversity)(jnp.eye(p.size)).min()
    agreeing = best[0] - AGREEMENT * (best[0] - one_text)
    real = pair.quality(p, p)
    gain = jnp.maximum(best[1] - real, 0.0)
    return _report(
        pair,
        p,
        models[1],
        gain,
        models[0],
        num_agreeing=(values[1] - real >= (1 - AGREEMENT) * gain).sum(),
        num_agreeing_diverse=(values[0] >= agreeing).sum(),
        num_starts=NUM_ROUNDS * num_starts,
        num_steps=NUM_ROUNDS * NUM_STEPS + POLISH_STEPS,
    )


def _landmarks(pair: Pair, p: Array) -> Array:
    """P, the uniform distribution and the best text alone.

    Self-BLEU with many references is best where one text stands out.
    """
    texts, allowed = jnp.eye(p.size), _allowed(pair, p)
    best_text = texts[jax.vmap(partial(quality_of, pair, p))(texts).argmax()]
    return jnp.stack([p, allowed / allowed.sum(), best_text])


def _allowed(pair: Pair, p: Array) -> Array:
    """Mask of the texts of finite score; models of finite quality use no others."""
    uniform = jnp.full(p.shape, 1 / p.size)
    return jnp.isfinite(jax.grad(pair.quality)(uniform, p))


# --- The paper's method ---------------------------------------------------------------
@jax.jit
def _penalty_batch(pair: Pair, p: Array) -> Search:
    return jax.vmap(partial(_penalty_one, pair))(p)


def _penalty_one(pair: Pair, p: Array) -> Search:
    def unbounded(q):
        return jnp.full((), jnp.inf)

    most_diverse, values = _iterates(pair.diversity, unbounded, p)
    most_diverse = most_diverse[values.max(axis=1).argmax()]
    models, values = _penalised(pair, p)
    best = values.max(axis=1).argmax()
    return _report(
        pair,
        p,
        models[best],
        jnp.maximum(values.max() - pair.quality(p, p), 0.0),
        most_diverse,
        num_agreeing=jnp.ones((), int),
        num_agreeing_diverse=jnp.ones((), int),
        num_starts=len(LEARNING_RATES),
        num_steps=SGD_STEPS,
        learning_rate=jnp.array(LEARNING_RATES)[best],
    )


@jax.jit
def _penalised(pair: Pair, p: Array) -> tuple[Array, Array]:
    """The best feasible iterates, and the quality along all, as of `_iterates`."""
    least = pair.diversity(p)

    def surplus(q):
        # The first Q is P: rounding must not decide on which side of the constraint.
        surplus = pair.diversity(q) - least
        tie = jnp.abs(surplus) <= SAME * jnp.abs(least)
        return surplus - jnp.where(tie, jax.lax.stop_gradient(surplus), 0.0)

    return _iterates(partial(quality_of, pair, p), surplus, p)


def _iterates(
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


def penalty_curve(pair: Pair, p: PerText) -> Float[Array, "rates steps"]:
    """Gain in quality along the iterates of the paper's method.

    Returns:
        For each of the learning rates 0.1, 1 and 10 and each of 5,000 steps
        U(Q) - U(P), or NaN where Q does not beat P in both quality and diversity.

    References:
        Li et al. 2020, appendix G.1, figure 5.

    Example:
        >>> from qdtheory.pairs import LL_NRR
        >>> gains = penalty_curve(LL_NRR, np.array([0.6, 0.3, 0.1]))
        >>> print(gains.shape, f"{np.nanmax(gains):.4f}")
        (3, 5000) 0.0134
    """
    p = as_distribution(p)
    pair = known_to_jax(pair, p)
    _, values = _penalised(pair, p)
    gains = values - pair.quality(p, p)
    return jnp.where(gains > 0, gains, jnp.nan)


# --- The frontier ---------------------------------------------------------------------
def search_frontier(
    pair: Pair | str, p: PerText, num_points: int = 10
) -> ParetoFrontier:
    """Search for the frontier of any pair, at descending levels of diversity.

    The levels are evenly spaced from the diversity of the most diverse model found to
    that of the best text alone. Each level's starts descend from those of the previous
    level, which takes some tenths of a second.

    Args:
        pair: any pair that JAX can differentiate, or the name of one ("LL-SE").
        p: the real distribution, shape (N,).
        num_points: at least 3.

    Returns:
        The points, of status "lower_bound", with the models found.

    Raises:
        ValueError: `p` is not a distribution, or fewer than 3 points.

    Claims: N8.11.

    Example:
        >>> from qdtheory.pairs import LL_NRR
        >>> found = search_frontier(LL_NRR, np.array([0.6, 0.3, 0.1]), 3)
        >>> print(found.q[0].round(4), found.q[2].round(4))
        [0.3333 0.3333 0.3333] [1. 0. 0.]
    """
    p = as_distribution(p)
    searched = known_to_jax(as_pair(pair), p)
    within(num_points=num_points, low=3)
    q, prices, gaps = _frontier(searched, p, num_points)

    def point(q, price):
        quality, slope = jax.value_and_grad(searched.quality)(q, p)
        diversity, marginal = jax.value_and_grad(searched.diversity)(q)
        w = -1 / price  # 0 at an infinite price
        return w, 1 / (1 + price), q @ (marginal - w * slope), quality, diversity

    points = jax.lax.map(lambda x: point(*x), (q, prices))
    return ParetoFrontier(*points, residual=gaps.max(), status="lower_bound", q=q)


@partial(jax.jit, static_argnums=2)
def _frontier(pair: Pair, p: Array, num_points: int) -> tuple[Array, Array, Array]:
    first, *keys = jax.random.split(jax.random.key(0), num_points)
    landmarks = _landmarks(pair, p)
    most_diverse = program_of(pair, p, MOST_DIVERSE, UNBOUNDED)
    start, _, _ = solve(most_diverse, landmarks[1], landmarks, first, NUM_STARTS)
    top, end = start[0], landmarks[2]
    levels = jnp.linspace(pair.diversity(top), pair.diversity(end), num_points)[1:]

    def descend(population, given):
        least, key = given
        parents = jnp.concatenate([population[:NUM_POLISHED], landmarks])
        program = program_of(pair, p, BEST, least)
        population, _, _ = solve(program, top, parents, key, NUM_STARTS, num_rounds=1)
        return population, population[0]

    _, models = jax.lax.scan(descend, start, (levels, jnp.stack(keys)))
    # A model found at a higher level of diversity may have higher quality.
    models = jnp.concatenate([top[None], models])
    quality = jax.vmap(partial(quality_of, pair, p))(models)
    best = jax.lax.associative_scan(
        lambda i, j: jnp.where(quality[i] >= quality[j], i, j), jnp.arange(num_points)
    )
    models = models[best]
    # At the end the price is 0, as quality is maximal; at the start it is infinite, as
    # diversity is maximal.
    least = jax.vmap(pair.diversity)(models).at[-1].set(UNBOUNDED)
    gaps, prices = jax.vmap(
        lambda q, s: optimality_gap(program_of(pair, p, BEST, s), q)
    )(models, least)
    return models, prices.at[0].set(jnp.inf), gaps.at[0].set(0.0)


# --- The report -----------------------------------------------------------------------
def _report(
    pair: Pair, p: Array, q: Array, gain: Array, most_diverse: Array, **numbers: Any
) -> Search:
    """Report a model, or P if it gains nothing; `numbers` are those of the method."""
    q = jnp.where(gain > 0, q, p)
    free = program_of(pair, p, BEST, UNBOUNDED)
    greatest = greatest_quality(free, p, is_linear=hasattr(pair, "text_quality"))
    quality_range = greatest - pair.quality(most_diverse, p)
    converged_at = TOLERANCE * quality_range
    residual, _ = optimality_gap(program_of(pair, p, BEST, pair.diversity(p)), q)
    return Search(
        q=q,
        gain=gain,
        most_diverse=most_diverse,
        quality_range=jnp.where(_allowed(pair, p).all(), quality_range, jnp.inf),
        residual=residual,
        converged=residual <= converged_at,
        **numbers,
    )
