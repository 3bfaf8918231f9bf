"""Evaluate a formula on [0, 1] in 64 bits, its ends included, and know how well.

As written a formula may cancel, as `(exp(1e-6*x) - 1)*1e6` does, or overflow on its
way, as `x*log(1/x)` does in its second derivative. Where 64 bits do not agree with Arb
balls it is evaluated as SymPy simplifies it; where they do not agree then, its error is
infinite, and seals rest on balls alone. Values and slopes at 0 are limits.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from qdtheory.formulas import trees
from qdtheory.formulas.jets import Jet, chosen
from qdtheory.support.numbers import LEAST_PROBABILITY, TINY

# Where 64 bits are compared with balls: from LEAST_PROBABILITY, 2**-332, by factors of
# 16; in between, off the points where people place zeros and poles; and near 1, down to
# a distance of which floats have 14 bits.
TRIED = np.r_[
    2.0 ** -np.arange(332, 5, -4),
    (np.arange(48) + 0.37) / 48,
    1 - 2.0 ** -np.arange(6, 41, 3),
]
# Agreement of the value and two derivatives. Some 80 terms that do not cancel are right
# to 80 * 2**-53 = 1e-14; what loses two digits more is written badly.
AGREED = 1e-12
# Radius of a ball that counts as a number: 11 bits below the last of a float.
RADIUS = 2.0**-64
# A limit is taken along distances from an end, by their exponents of 1/2. On the first
# ladder powers of log(x) take values q, q**2, q**4, and each power of x is as good as
# 0. But (exp(x) - 1)/x has no digit there, as 1 + x takes as many bits as the exponent;
# its slope, divided by x**2, takes twice as many, and (exp(x) - 1 - x)/x**2 thrice. On
# the second, as far as 2**14 bits allow, powers of x take values q, q**2, q**4.
LADDERS = (2**64, 2**128, 2**256), (2**10, 2**11, 2**12)
PRECISIONS = (trees.PRECISION, 2**14)
# The ratio of the differences q**4 - q**2 and q**2 - q, about q, from which the third
# value is the limit: q**4 is then below a rounding, 2**-53.
VANISHING = 2.0**-14


def enclosed(tree: trees.Tree, x: arb, order: int, unit: arb) -> list[arb]:
    """The value and derivatives at x in balls; none if infinite, or hardly known.

    Radii are compared with the largest of all, each times its power of the unit: a
    slope that cancels to 0 is known if it is small beside the value.
    """
    derivatives, largest = [], arb(0)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            derivatives = trees.balls(tree, x, order, precision)
            terms = [h * unit**n for n, h in enumerate(derivatives)]
            largest = max(abs(term).upper() for term in terms)
            if all(term.rad() <= largest * RADIUS for term in terms):
                return derivatives if largest.is_finite() else []
    # What cancels to less than floats hold is 0.
    return [arb(0)] * len(derivatives) if largest < TINY else []


@lru_cache(maxsize=512)
def limits(tree: trees.Tree, end: int) -> tuple[float, float]:
    """The limits of a formula and of its slope at an end of (0, 1); NaN if none.

    >>> limits(("*", "x", ("log", "x")), 0)
    (0.0, -inf)
    """
    for ladder in LADDERS[end:]:  # 1 - 2**-2**64 has too many bits
        with ctx.workprec(PRECISIONS[-1]):
            steps = [arb(2) ** -exponent for exponent in ladder]
            points = [abs(end - step) for step in steps]
        # A value is compared with how far it is from its limit, a slope with the value.
        values = [enclosed(tree, at, 1, step) for at, step in zip(points, steps)]
        slopes = [enclosed(tree, at, 1, arb(1)) for at in points]
        if all(values) and all(slopes):
            with ctx.workprec(PRECISIONS[0]):
                return _limit(*(h for h, _ in values)), _limit(*(h for _, h in slopes))
    return np.nan, np.nan


def _limit(one: arb, two: arb, three: arb) -> float:
    """The limit of numbers along a ladder, infinite if they diverge; NaN if neither."""
    before, after = two - one, three - two
    if after.contains(0) or abs(after) <= abs(before) * VANISHING:
        # If q**4 is all that is left, it is below q**2.
        is_zero = three.contains(0) or abs(three) <= abs(after)
        return 0.0 if is_zero else float(three) + 0.0  # never -0.0
    # On the first ladder log(x) is squared and log(-log(x)) doubled. Its inverse is
    # halved: what changes so slowly may have any limit.
    diverges = abs(after) >= abs(before)
    return float(np.copysign(np.inf, float(after))) if diverges else np.nan


def error_of(tree: trees.Tree) -> float:
    """Error of a formula and of two derivatives in 64 bits, as it is written.

    It is relative to the size of each, and to its change over the distance of the
    nearer end: a relative rounding of x, or of 1 - x, makes as much of it.
    """
    exact = [enclosed(tree, arb(x), 3, arb(x)) for x in TRIED]
    if not all(exact):
        return np.nan  # undefined somewhere, however it is written
    exact = np.array([[float(h) for h in row] for row in exact]).T
    jet = trees.in_numpy(tree, TRIED)
    with np.errstate(all="ignore"):
        ours = np.array([jet.value, jet.slope, jet.curvature])
        exact, beyond = np.nan_to_num(exact), np.isinf(exact[:3])
        scale = np.abs(exact[:3]) + np.minimum(TRIED, 1 - TRIED) * np.abs(exact[1:])
        # Models differ near 0 by factors, near 1 by amounts: there a formula that
        # vanishes may have the error that it has elsewhere.
        usual = np.median(np.abs(exact[:3, TRIED > 0.05]), axis=1, keepdims=True)
        scale += np.where(TRIED > 0.5, usual, 0)
        missed = np.maximum(np.abs(ours - exact[:3]) - TINY, 0)
        errors = missed / np.maximum(scale, TINY)
        errors[beyond] = 0  # what 64 bits cannot hold
    return float(np.nan_to_num(errors, nan=np.inf, posinf=np.inf).max())


# --- One formula --------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Numerics:
    """How a formula is evaluated in 64 bits."""

    # The formula, or a simpler one that is equal.
    tree: trees.Tree
    # Limits of value and slope at 0: infinite, or NaN where there are none.
    zero: tuple[float, float]
    # The largest number at which the tree has a value: 1, or the one below it.
    last: float
    # Whether the tree has these limits and a value at 1 by itself.
    closed: bool
    # As `error_of` has it; infinite if not accurate.
    error: float

    @np.errstate(all="ignore")  # infinite values are for the caller to refuse
    def in_numpy(self, x: np.ndarray) -> Jet:
        """Value, slope and curvature at numbers in [0, 1]."""
        if self.closed:
            return trees.in_numpy(self.tree, x)
        x, (start, _) = np.asarray(x), self.zero
        at, near = np.maximum(x, LEAST_PROBABILITY), x < LEAST_PROBABILITY
        at = np.where(x == 1, self.last, at)
        jet = trees.in_numpy(self.tree, at)
        # Below LEAST_PROBABILITY a line from the limit at 0 or, if there is none, the
        # logarithm a + b*log(x) that goes on with the value and the slope there.
        if np.isfinite(start):
            line = Jet(start + jet.slope * x, jet.slope, 0 * x)
        else:
            by_log = jet.slope * LEAST_PROBABILITY
            value = jet.value + by_log * np.log(x / LEAST_PROBABILITY)
            line = Jet(value, by_log / x, -by_log / x / x)
        return chosen(near, line, jet)

    @cached_property
    def least(self) -> tuple[float, float]:
        """Value and slope at LEAST_PROBABILITY."""
        jet = self.in_numpy(np.array([LEAST_PROBABILITY]))
        return float(jet.value[0]), float(jet.slope[0])

    def from_least_on(self, x: jax.Array) -> jax.Array:
        """The value at numbers from LEAST_PROBABILITY on: no limit at 0 costs time."""
        if self.last < 1:  # a step that no derivative sees
            x += jax.lax.stop_gradient(jnp.where(x == 1, self.last - 1, 0.0))
        return trees.in_jax(self.tree, x)

    def in_jax(self, x: jax.Array) -> jax.Array:
        """The value at numbers in [0, 1], which JAX can differentiate."""
        if self.closed:
            return trees.in_jax(self.tree, x)
        # As in NumPy. No maximum or minimum: at a tie JAX halves their slopes.
        at = jnp.where(x < LEAST_PROBABILITY, LEAST_PROBABILITY, x)
        value = self.from_least_on(at)
        (least, slope), (start, steepest) = self.least, self.zero
        if np.isfinite(start):
            near = start + slope * x
        else:
            near = least + slope * LEAST_PROBABILITY * jnp.log(x / LEAST_PROBABILITY)
        if np.isfinite(start) and np.isinf(steepest):
            # A root has an infinite slope at 0 as the formula has, and no other value.
            root = jnp.sqrt(jnp.where(x == 0, x, 1.0))
            near = jnp.where(x == 0, start + np.sign(steepest) * root, near)
        return jnp.where(x < LEAST_PROBABILITY, near, value)


@lru_cache(maxsize=256)
def numerics(tree: trees.Tree) -> Numerics:
    """Whether a formula is evaluated as it is written or as SymPy simplifies it."""
    zero, error = limits(tree, 0), error_of(tree)  # NaN is no reason to simplify
    if error > AGREED:
        tree = trees.simplified(tree)
        error = error_of(tree)
    error = error if error <= AGREED else np.inf
    ends = trees.in_numpy(tree, np.array([0.0, 1.0]))
    at_zero = ends.value[0], ends.slope[0]
    last = 1.0 if np.isfinite(ends.value[1]) else float(np.nextafter(1, 0))
    # Without a limit there is nothing better than what the tree gives.
    closed = np.isnan(zero[0]) or np.allclose(at_zero, zero, AGREED, TINY)
    return Numerics(tree, zero, last, bool(closed) and last == 1, error)
