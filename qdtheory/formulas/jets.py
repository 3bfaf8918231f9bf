"""Numbers that carry their first and second derivative, in any arithmetic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np


@no_type_check  # of every operation, in the tests, it takes most of their time
@dataclass(frozen=True)
class Jet:
    """A function's value and two derivatives at some x, or at many.

    Arithmetic follows the product and chain rules. The parts may be of any type with
    addition and multiplication: NumPy arrays, or intervals.

    Args:
        value: h(x).
        slope: h'(x).
        curvature: h''(x).

    Example:
        >>> x = Jet(3.0, 1.0, 0.0)
        >>> x * x - x
        Jet(value=6.0, slope=5.0, curvature=2.0)
    """

    value: Any
    slope: Any
    curvature: Any

    def after(self, value: Any, slope: Any, curvature: Any) -> "Jet":
        """The chain rule: another function of this one, given by its derivatives.

        Args:
            value: h(self.value).
            slope: h' there.
            curvature: h'' there.

        Returns:
            The composed function.
        """
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

    def __pos__(self) -> "Jet":
        return self


@no_type_check
def jet_functions(log: Callable, exp: Callable, sqrt: Callable) -> dict[str, Callable]:
    """The functions of jets, from those of the arithmetic of their parts.

    Args:
        log: the natural logarithm.
        exp: the exponential function.
        sqrt: the square root.

    Returns:
        The three by name.
    """

    def log_of(jet: Jet) -> Jet:
        return jet.after(log(jet.value), 1 / jet.value, -1 / jet.value**2)

    def exp_of(jet: Jet) -> Jet:
        value = exp(jet.value)
        return jet.after(value, value, value)

    def sqrt_of(jet: Jet) -> Jet:
        root = sqrt(jet.value)
        return jet.after(root, 1 / (2 * root), -1 / (4 * root * jet.value))

    return {"log": log_of, "exp": exp_of, "sqrt": sqrt_of}
