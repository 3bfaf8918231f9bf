"""Lecture 04."""

from typing import Any

import jax
import numpy as np

import qdtheory as qd
from qdtheory.course.grading import as_formula, as_numbers, require


def is_compatible(f: Any, g: str) -> bool:
    """Two formulas are a compatible pair."""
    why = "the pair is incompatible: g' is not a falling line in this f"
    if callable(f):  # of NumPy, JAX or Python: no proof reads it, its values say enough
        x = np.linspace(0.05, 0.95, 19)
        scores = np.array([float(as_numbers(f(place))) for place in x])
        slopes = np.array([-jax.grad(as_formula(g))(place) for place in x])
        line = np.polyfit(slopes, scores, 1)
        apart = np.abs(np.polyval(line, slopes) - scores).max()
        return require(line[0] > 0 and apart <= 1e-9 * np.ptp(scores), why)
    verdict = qd.check_compatibility(qd.SeparablePair(as_formula(f), as_formula(g)))
    decided = verdict.compatible is not None
    require(decided, "the pair is undecided: {}", verdict.reason)
    return require(verdict.compatible, why)
