"""Evaluate a formula on [0, 1] in 64 bits, its ends included, and know how well.

As written a formula may cancel, as `(exp(1e-6*x) - 1)*1e6` does, or overflow on its
way, as `x*log(1/x)` does in its second derivative. Where 64 bits do not agree with Arb
balls it is evaluated as SymPy simplifies it; where they do not agree then, its error is
infinite, and seals rest on balls alone. Values and slopes at 0 are limits.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from qdtheory.formulas import trees
from qdtheory.formulas.jets import Jet, chosen
from qdtheory.support.numbers import LEAST_PROBABILITY, TINY

# Where 64 bits are compared with balls: near 0, in between and near 1.
TRIED = np.r_[
    2.0 ** -np.arange(332, 5, -4),
    (np.arange(48) + 0.37) / 48,
    1 - 2.0 ** -np.arange(6, 41, 3),
]
# Agreement of the value and two derivatives, relative to their size and their changes.
AGREED = 1e-12
# Exponents of 1/2 of the distances from an end along which a limit is taken.
LADDER = (2**10, 2**11, 2**12, 2**13)
# Bits of balls, the second where a sum such as 1 + (x - 1) needs them; and of their
# relative error.
PRECISIONS = (trees.PRECISION, 2**14)
TOLD = 64


def enclosed(
    tree: trees.Tree, x: Fraction, order: int, unit: Fraction = Fraction(1)
) -> list | None:
    """Taylor's coefficients at x, told to 64 bits of the largest; None if infinite."""
    terms, largest = [], arb(0)
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            terms = trees.balls(tree, trees.ball(x), order, precision, unit)
            largest = max(abs(term).upper() for term in terms)
            if all(term.rad() * 2**TOLD <= largest for term in terms):
                return terms if largest.is_finite() else None
    return [arb(0)] * len(terms) if largest < TINY else None


@lru_cache(maxsize=512)
def limits(tree: trees.Tree, end: int) -> tuple[float, float]:
    """The limits of a formula and of its slope at an end of (0, 1); NaN if none.

    >>> limits(("*", "x", ("log", "x")), 0)
    (0.0, -inf)
    """
    values, slopes = [], []
    for step in (Fraction(1, 2**k) for k in LADDER):
        at = abs(end - step)
        # A value is compared with how far it is from its limit, a slope with the value.
        by_step, by_value = enclosed(tree, at, 1, step), enclosed(tree, at, 1)
        if by_step is None or by_value is None:
            return np.nan, np.nan
        values.append(by_step[0])
        slopes.append(by_value[1])
    with ctx.workprec(PRECISIONS[0]):
        return _limit(values), _limit(slopes)


def _limit(sequence: list) -> float:
    """Limit of numbers at distances that are squared from one to the next."""
    before, after = (b - a for a, b in pairwise(sequence[1:]))
    last = sequence[-1]
    if after.contains(0) or abs(after) <= abs(last) * 1e-12:
        return 0.0 if last.contains(0) else float(last) + 0.0
    ratio = float(after / before) if before != 0 else np.inf
    if abs(ratio) > 0.75:  # a logarithm's doubles
        return float(np.copysign(np.inf, float(after)))
    # Differences like those of 1/log(x) halve: add what is left of them.
    limit = float(last + after * ratio / (1 - ratio))
    return limit if abs(limit) > 1e-6 * abs(float(after)) else 0.0


def error_of(tree: trees.Tree) -> float:
    """Error of a formula and of two derivatives in 64 bits, as it is written."""
    ours = trees.in_numpy(tree, TRIED)
    tried = [enclosed(tree, Fraction(x), 3, Fraction(x)) for x in TRIED]
    if len(rows := [row for row in tried if row]) < len(tried):
        return np.nan
    exact = np.array([_derivatives(row, x) for row, x in zip(rows, TRIED, strict=True)])
    exact, beyond = np.nan_to_num(exact.T), np.isinf(exact.T)  # what 64 bits can hold
    with np.errstate(all="ignore"):
        jet = np.array([ours.value, ours.slope, ours.curvature])
        scale = np.abs(exact[:3]) + np.minimum(TRIED, 1 - TRIED) * np.abs(exact[1:])
        # Near 1 no probabilities are compared by their ratio.
        usual = np.median(np.abs(exact[:3, TRIED > 0.05]), axis=1, keepdims=True)
        scale += np.where(TRIED > 0.5, usual, 0)
        errors = np.maximum(np.abs(jet - exact[:3]) - TINY, 0) / np.maximum(scale, TINY)
        errors[beyond[:3]] = 0
    return float(np.nan_to_num(errors, nan=np.inf, posinf=np.inf).max())


def _derivatives(terms: list, x: float) -> list[float]:
    """Derivatives from coefficients in units of x, which alone would underflow."""
    with ctx.workprec(PRECISIONS[0]):
        unit = trees.ball(Fraction(x))
        return [float(t / unit**n * factorial(n)) for n, t in enumerate(terms)]


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
    # Whether the tree needs no limit at 0 or 1.
    whole: bool
    # Of value and slope, relative to size and change; infinite if not accurate.
    error: float

    @np.errstate(all="ignore")  # infinite values are told by who uses them
    def in_numpy(self, x: np.ndarray) -> Jet:
        """Value, slope and curvature at numbers in [0, 1]."""
        if self.whole:
            return trees.in_numpy(self.tree, x)
        x, (start, _) = np.asarray(x), self.zero
        at, near = np.maximum(x, LEAST_PROBABILITY), x < LEAST_PROBABILITY
        at = np.where(x == 1, self.last, at)
        jet = trees.in_numpy(self.tree, at)
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
        if self.last < 1:
            x += jax.lax.stop_gradient(jnp.where(x == 1, self.last - 1, 0.0))
        return trees.in_jax(self.tree, x)

    def in_jax(self, x: jax.Array) -> jax.Array:
        """The value at numbers in [0, 1], which JAX can differentiate."""
        if self.whole:
            return trees.in_jax(self.tree, x)
        # No maximum or minimum: at a tie JAX halves their slopes.
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
    zero, error = limits(tree, 0), error_of(tree)
    if error > AGREED:
        tree = trees.simplified(tree)
        error = error_of(tree)
    error = error if error <= AGREED else np.inf
    ends = trees.in_numpy(tree, np.array([0.0, 1.0]))
    there = ends.value[0], ends.slope[0]
    last = 1.0 if np.isfinite(ends.value[1]) else float(np.nextafter(1, 0))
    whole = np.isnan(zero[0]) or np.allclose(there, zero, 1e-12, TINY)
    return Numerics(tree, zero, last, bool(whole) and last == 1, error)
