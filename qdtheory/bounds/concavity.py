r"""Search for violations of the concavity of a diversity that a bound assumes.

If V is concave, its tangent at any model bounds it from above; for a function given as
code this cannot be proved. On a segment $Q + t (R - Q)$ concavity says of
$h(t) = V(Q + t (R - Q))$, for $t < t'$, that
$h'(t') (t' - t) \le h(t') - h(t) \le h'(t) (t' - t)$ and $h'(t') \le h'(t)$. The search
looks for violations of these, and for V above the tangent that a bound uses, along
segments of models (through P and the optimum to every text, from text to text, between
random models), refined where the slope decreases least; and for V above that tangent
at the end of an ascent on the difference.
"""

from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.bounds.interior_point import not_concave
from qdtheory.forms import Functional
from qdtheory.search import BEST, UNBOUNDED, Program, ascend
from qdtheory.support.numbers import TINY, TextVector

# Share of the uniform distribution mixed into segments, as slopes of V may be infinite
# on the boundary.
INSIDE = 1e-6
# Grid on a segment: evenly spaced, and geometric near its ends.
SMALL = np.geomspace(1e-6, 0.1, 21)
STEPS = np.unique(np.concatenate([np.linspace(0, 1, 193), SMALL, 1 - SMALL]))
# Number of refinements of a segment, around its least decrease of the slope: each has
# the steps of the whole segment on three of its steps.
NUM_ROUNDS = 2
# Maximum number of segments of each kind, each of which costs hundreds of gradients.
MAX_SEGMENTS = 64
# Ascents, which are for what no segment passes.
NUM_CLIMBS, CLIMB_STEPS = 8, 100
# Violations within the rounding error of this many operations are ignored: how many V
# takes is not known, and a concave V must not be refused.
OPERATIONS = 1e5
# A share of the steepest slope, by which another may be rounded in so many operations.
STEEP = 1e-5
# Squared distances below this are too small to measure a height above a tangent, which
# is of their order.
NEAR = 1e-6
CONVEX = "is convex between some models"
ABOVE = "exceeds, at some model, its tangent at another"


@dataclass(frozen=True)
class Segments:
    """V along segments of models."""

    starts: Float[np.ndarray, "segments texts"]
    ends: Float[np.ndarray, "segments texts"]
    steps: Float[np.ndarray, "segments steps"]  # shares of the endpoint, ascending
    values: Float[np.ndarray, "segments steps"]  # V there
    slopes: Float[np.ndarray, "segments steps"]  # its derivatives in the share
    noise: float  # error bound of sums of the size of V

    def refuse_convex(self, steepest: float) -> None:
        """Raise if V is above its own tangents, or its slope increases.

        Where V is steep near one end, a slope elsewhere is rounded as one of that size.
        """
        # t' - t, h(t') - h(t), h'(t) and h'(t'): none of the three differences below
        # may be above 0.
        run, rise = np.diff(self.steps), np.diff(self.values)
        before, after = self.slopes[:, :-1], self.slopes[:, 1:]
        # Infinite slopes, as of log at 0, make differences that are NaN: no violation.
        with np.errstate(invalid="ignore"):
            above = np.maximum(rise - before * run, after * run - rise)
            sizes = np.abs(before) + np.abs(after) + STEEP * steepest
            _refuse(above - self.noise * (1 + sizes * run), CONVEX)
            _refuse(after - before - self.noise * (1 + sizes), CONVEX)

    def refined_steps(self) -> np.ndarray:
        """Refine the steps around the least decrease of the slope."""
        # h'' between two steps: above 0 where V is convex, and close to it nearby.
        with np.errstate(invalid="ignore"):
            curvature = np.diff(self.slopes) / np.diff(self.steps)
        i = np.nan_to_num(curvature, nan=-np.inf, neginf=-np.inf).argmax(axis=1)
        rows, last = np.arange(i.size), self.steps.shape[1] - 1
        # With a step on either side, as the greatest may lie across the border.
        low = self.steps[rows, np.maximum(i - 1, 0)][:, None]
        high = self.steps[rows, np.minimum(i + 2, last)][:, None]
        return low + np.linspace(0, 1, last + 1) * (high - low)

    def minus_plane(self, heights: TextVector) -> np.ndarray:
        """V minus a plane, given by the plane's heights at the single texts."""
        low, high = (models @ heights for models in (self.starts, self.ends))
        return self.values - low[:, None] - self.steps * (high - low)[:, None]

    def nearest(self, excess: np.ndarray, x: np.ndarray, number: int) -> np.ndarray:
        """Models least below a tangent, relative to squared distance from its point."""
        # A smooth V is below its tangent by half of V'' times the squared distance:
        # |Q - x|^2 + 2 t (Q - x) . (R - Q) + t^2 |R - Q|^2.
        away, along = self.starts - x, self.ends - self.starts
        squares = (away**2).sum(1), 2 * (away * along).sum(1), (along**2).sum(1)
        a, b, c = (part[:, None] for part in squares)
        distance = a + b * self.steps + c * self.steps**2
        score = np.where(distance > NEAR, excess / np.maximum(distance, NEAR), -np.inf)
        # One model of a segment, as its neighbours climb to the same place.
        rows = np.argsort(-score.max(axis=1), kind="stable")[:number]
        share = self.steps[rows, score[rows].argmax(axis=1)][:, None]
        return (1 - share) * self.starts[rows] + share * self.ends[rows]


def look_for_violations(
    diversity: Functional,
    texts: tuple[int, ...],
    at: TextVector,
    heights: TextVector,
    models: Float[np.ndarray, "models texts"],
) -> int:
    """Raise at a violation of concavity or of one tangent; else count the models."""
    if len(texts) == 1:  # one model
        return 0
    some, size = list(texts), at.size
    allowed = np.isin(np.arange(size), some)
    # Models have no mass on the others, whose heights may be infinite.
    heights = np.where(allowed, heights, 0.0)
    # Towards the texts where the tangent is highest, and with it the bound.
    highest = np.argsort(-heights[some], kind="stable")[:MAX_SEGMENTS]
    corners = np.eye(size)[some][highest]
    starts = np.vstack([_without(model, corners, allowed) for model in models])
    fixed = _searched_once(diversity, texts, size)
    own = _searched(diversity, allowed, starts, np.tile(corners, (len(models), 1)))
    nearest = []
    for segments in (fixed, own):
        excess = segments.minus_plane(heights)
        _refuse(excess - segments.noise, ABOVE)
        nearest.append(segments.nearest(excess, at, NUM_CLIMBS // 2))
    # V may jump at the texts themselves.
    noise = max(fixed.noise, own.noise)
    excess = np.asarray(_values(diversity, corners)) - corners @ heights
    _refuse(excess - noise, ABOVE)
    climbed = _climbed(diversity, heights, np.vstack(nearest))
    _refuse(np.asarray(climbed) - noise, ABOVE)
    num_models = (1 + NUM_ROUNDS) * (fixed.values.size + own.values.size)
    return num_models + len(corners) + climbed.size * CLIMB_STEPS


def _refuse(excess: np.ndarray, what: str) -> None:
    worst = np.nanmax(excess, initial=0)  # NaN of infinite slopes is no violation
    if worst > 0:
        raise not_concave(f"it {what}, by {worst:.3g}")


def _without(model: np.ndarray, corners: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The model without each text: the start of the segment through P to that text."""
    rows = model * (corners == 0)
    # Nothing is left of a point mass: start from the uniform model.
    rows = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, allowed * 1.0)
    return rows / rows.sum(axis=1, keepdims=True)


@lru_cache(maxsize=16)
def _searched_once(
    diversity: Functional, texts: tuple[int, ...], size: int
) -> Segments:
    """Search the segments independent of P: from texts, and between random models."""
    rng, some = np.random.default_rng(0), list(texts)
    allowed = np.isin(np.arange(size), some)
    corners = np.eye(size)[some]
    corners = corners[rng.permutation(len(corners))[:MAX_SEGMENTS]]
    start = _without(allowed / len(some), corners, allowed)
    segments = [(start, corners), (corners, np.roll(corners, 1, axis=0))]
    # Near the boundary, where most mass is on few texts, and anywhere.
    for concentration in (0.1, 1.0):
        models = np.zeros((2, MAX_SEGMENTS // 2, size))
        alphas = np.full(len(some), concentration)
        models[:, :, some] = rng.dirichlet(alphas, (2, MAX_SEGMENTS // 2))
        segments.append((models[0], models[1]))
    return _searched(diversity, allowed, *map(np.vstack, zip(*segments, strict=True)))


def _searched(
    diversity: Functional, allowed: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> Segments:
    """Evaluate V along the segments, with refinement; raise where it is convex."""
    inside = INSIDE * allowed / allowed.sum()
    starts, ends = ((1 - INSIDE) * models + inside for models in (starts, ends))
    steps, rounds, steepest = np.tile(STEPS, (len(starts), 1)), [], 0.0
    for _ in range(1 + NUM_ROUNDS):
        values, slopes = map(np.asarray, _along(diversity, starts, ends, steps))
        if np.isnan(values).any() or (values == np.inf).any():
            raise ValueError(
                "the diversity must be a number at every model that gives every text "
                "of finite score some probability"
            )
        # Minus infinity is a value of a concave V on the boundary, and has no size. In
        # 32 bits the rounding error is that of 32 bits.
        size = np.abs(np.where(np.isfinite(values), values, 0)).max()
        noise = OPERATIONS * float(np.finfo(values.dtype).eps * size)
        segments = Segments(starts, ends, steps, values, slopes, noise)
        steepest = max(steepest, np.abs(slopes[np.isfinite(slopes)]).max(initial=0))
        segments.refuse_convex(steepest)
        rounds.append(segments)
        steps = segments.refined_steps()
    return rounds[0]  # whose steps are spread over the whole segments


@partial(jax.jit, static_argnums=0)
def _along(
    diversity: Functional, starts: Array, ends: Array, steps: Array
) -> tuple[Array, Array]:
    """V and its derivative at each step of each segment."""

    def one(segment: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        start, end, shares = segment
        run = end - start

        def at(share: Array) -> tuple[Array, Array]:
            value, slope = jax.value_and_grad(diversity)(start + share * run)
            # The slope may be infinite at texts that models may not use.
            return value, jnp.where(run == 0, 0.0, slope) @ run

        return jax.vmap(at)(shares)

    # One segment at a time: all at once may not fit into memory.
    return jax.lax.map(one, (starts, ends, steps))


@partial(jax.jit, static_argnums=0)
def _values(diversity: Functional, models: Array) -> Array:
    return jax.vmap(diversity)(models)


@partial(jax.jit, static_argnums=0)
def _climbed(diversity: Functional, heights: Array, models: Array) -> Array:
    """V minus a plane at the ends of ascents from each of the models."""

    def above(q: Array) -> Array:
        return diversity(q) - heights @ q

    def climb(q: Array) -> Array:
        # In the unit of its slope along the simplex, for which the ascent's steps are.
        slope = jnp.where(q > 0, jax.grad(above)(q), 0.0)
        unit = jnp.maximum(jnp.abs(slope - q @ slope).max(), TINY)
        weights, constant = jnp.array(BEST), lambda q: 0 * q.sum()
        free = Program(lambda q: above(q) / unit, constant, weights, UNBOUNDED)
        return above(ascend(free, q, CLIMB_STEPS))

    return jax.vmap(climb)(models)
