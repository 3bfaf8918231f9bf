"""NumPy arrays that carry their first and second derivative."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, no_type_check

import numpy as np


@no_type_check  # of every operation, in the tests, it takes most of their time
@dataclass(frozen=True)
class Jet:
    """A function's value h(x), slope h'(x) and curvature h''(x) at some x, or at many.

    Arithmetic follows the product and chain rules.

    Example:
        >>> x = Jet(3.0, 1.0, 0.0)
        >>> x * x - x
        Jet(value=6.0, slope=5.0, curvature=2.0)
    """

    value: Any
    slope: Any
    curvature: Any

    def after(self, value: Any, slope: Any, curvature: Any) -> "Jet":
        """The chain rule: another function of this one, given by its derivatives."""
        s, c = self.slope, self.curvature
        if np.all(s == 0) and np.all(c == 0):
            # sqrt(0) is a constant too, although the root's slope is infinite.
            return Jet(value, s, c)
        return Jet(value, slope * s, curvature * s**2 + slope * c)

    def __add__(self, other: "Jet") -> "Jet":
        a, b = self, other
        return Jet(a.value + b.value, a.slope + b.slope, a.curvature + b.curvature)

    def __sub__(self, other: "Jet") -> "Jet":
        return self + -other

    def __mul__(self, other: "Jet") -> "Jet":
        a, b = self, other
        return Jet(
            a.value * b.value,
            a.slope * b.value + a.value * b.slope,
            a.curvature * b.value + 2 * (a.slope * b.slope) + a.value * b.curvature,
        )

    def __truediv__(self, other: "Jet") -> "Jet":
        return self * other**-1

    def __pow__(self, n: Any) -> "Jet":
        a, n = self.value, n.value if isinstance(n, Jet) else n
        if n == 1:  # the rule below would divide by 0 at a = 0
            return self
        return self.after(a**n, n * a ** (n - 1), n * (n - 1) * a ** (n - 2))

    def __neg__(self) -> "Jet":
        return Jet(-self.value, -self.slope, -self.curvature)


def constant_jet(exact: Fraction | float) -> Jet:
    """The jet of a number."""
    return Jet(np.float64(exact), np.float64(0), np.float64(0))


def chosen(which: np.ndarray | np.bool, a: Jet, b: Jet) -> Jet:
    """One of two jets at each x."""
    parts = zip(vars(a).values(), vars(b).values(), strict=True)
    return Jet(*(np.where(which, *part) for part in parts))


@cache
def jet_functions() -> dict[str, Callable]:
    """The functions of jets, by name; arithmetic is that of the class."""

    def sqrt(v):
        root = np.sqrt(v)
        return root, 1 / (2 * root), -1 / (4 * root * v)

    # Of each function: itself and two derivatives at v.
    smooth = {
        "log": lambda v: (np.log(v), 1 / v, -1 / v**2),
        "exp": lambda v: (np.exp(v),) * 3,
        "sqrt": sqrt,
    }
    functions: dict[str, Callable] = {
        name: lambda jet, h=h: jet.after(*h(jet.value)) for name, h in smooth.items()
    }
    return functions | {"where": chosen, "<": lambda a, b: a.value < b.value}
