"""Lecture 02."""

from typing import Any

import qdtheory as qd
from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import as_numbers, require


def is_rational_cubic(answer: Any) -> Truth:
    """A rational g = a x^2 + b x^3 that is convex from .55 on."""
    a, b = map(float, as_numbers(answer))
    bend = 2 * a + 6 * b * 0.55
    require(bend >= 0, f"g'' is {bend:.3g} at .55, expected 0 or more: g is not convex")
    pair = qd.SeparablePair(qd.formulas.CR, lambda x: a * x**2 + b * x**3)
    x = qd.check_rationality(pair).diversity_violation
    require(x is None, f"g is not rational: g' does not fall enough between {x}")
    return True
