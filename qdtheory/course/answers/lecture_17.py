"""Lecture 17."""

from typing import Any

import qdtheory as qd
from qdtheory.course.answers.common import STEEP, Truth
from qdtheory.course.grading import as_numbers


def proves_optimal(answer: Any) -> Truth:
    """A price and a level whose bound is the quality of P itself, under CR-NRR."""
    price, level = map(float, as_numbers(answer))
    own = float(STEEP @ STEEP)  # its quality, and less it its diversity
    bound = qd.qdisc.dual_bound(qd.formulas.NRR, STEEP, -own, price, level)
    return bound <= own + 1e-9
