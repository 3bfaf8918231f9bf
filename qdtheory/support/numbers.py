"""Types of numbers, constants of 64-bit arithmetic, tolerances, a range check."""

import numbers as kinds
from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Real

# A real number, possibly traced.
Number: TypeAlias = int | float | np.floating | Real[Array, ""]
# One number a text, such as a distribution or scores: given, of JAX, and of NumPy.
PerText: TypeAlias = Float[ArrayLike, " texts"]
TextArray: TypeAlias = Float[Array, " texts"]
TextVector: TypeAlias = Float[np.ndarray, " texts"]
# One for each two texts, such as a kernel or preferences.
TextMatrix: TypeAlias = Float[ArrayLike, "texts texts"]
Scalar: TypeAlias = Float[Array, ""]

STATIC = {"static": True}
# What can be compared with a number.
NUMERIC = kinds.Real | np.ndarray | Array

# --- 64-bit arithmetic --------------------------------------------------------------
EPS = float(np.finfo(float).eps)
# Smallest normal number: stands for 0 where a function or its slope is undefined there.
TINY = float(np.finfo(float).tiny)
# Smallest probability distinguished from 0; its cube, as in g''', is still normal.
LEAST_PROBABILITY = 1e-100
# Rounding error of a sum of a few terms, relative to the sum of absolute values.
NOISE = 8 * EPS
# The smallest tolerance that SciPy's root-finder accepts.
TIGHTEST = np.float64(4 * EPS)

# --- Tolerances of seals, as shares of the range of quality -------------------------
# "exact": a bound by weak duality, from one root of 64 bits, is within this of a gain.
EXACT = 1e-9
# "certified": bounds meet. First-order solvers stop closer; figures show five digits.
CERTIFIED = 1e-5
# A gain may exceed a bound by this. A model as diverse as P in 64 bits may fall short
# of V(P) by a rounding error e, which near the greatest diversity is worth the order of
# the square root of e in quality: 1e-7.
CONTRADICTION = 1e-6
# A local search stays this far inside its constraint, so that rounding does not violate
# it, and a gain within it is no improvement.
MARGIN = 1e-9
# An interior-point method stops when its bounds are this close: a hundred times below
# "exact", a thousand times above the rounding of its sums.
CLOSED = 1e-11


def require(what: str, kind: Any = NUMERIC, **values: Any) -> None:
    """Raise unless values are of a kind, a number by default."""
    for name, value in values.items():
        # NumPy compares complex numbers, and drops what is imaginary.
        if not isinstance(value, kind) or np.iscomplexobj(value):
            shown = " ".join(repr(value).split())  # a table's has several lines
            raise TypeError(f"{name} must be {what}, got {shown:.60}")


def one_of(known: Collection[str], **choices: Any) -> None:
    """Raise unless choices are among those that are known."""
    for name, value in choices.items():
        if not (isinstance(value, str) and value in known):
            names = ", ".join(known)
            raise ValueError(f"{name} must be one of {names}, got {value!r:.60}")


def within(
    *, low: int | float, high: int | float = np.inf, ends: str = "[]", **numbers: Any
) -> None:
    """Raise unless numbers lie in a range: `within(share=share, low=0, high=1)`.

    Brackets say which ends belong to it, "(]" for (low, high]; infinity never does.
    Of an array all entries must. Numbers that JAX traces are not known and pass.
    """
    if high < np.inf:
        words = f"lie in {ends[0]}{low:g}, {high:g}{ends[1]}"
    elif low == 0 and ends[0] == "(":
        words = "be positive and finite"
    else:
        words = f"be finite and {'above' if ends[0] == '(' else 'at least'} {low:g}"
    require("a number", **numbers)
    for name, number in numbers.items():
        if isinstance(number, Tracer):
            continue
        above = number > low if ends[0] == "(" else number >= low
        closed = ends[1] == "]" and high < np.inf
        below = number <= high if closed else number < high
        if not np.all(above & below):  # NaN is in no range
            raise ValueError(f"{name} must {words}, got {number}")
