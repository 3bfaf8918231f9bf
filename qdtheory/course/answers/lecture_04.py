"""Lecture 04."""

from typing import Any

import jax
import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth, gains
from qdtheory.course.grading import as_formula, as_numbers, require


def quartic_divergence(q: np.ndarray, p: np.ndarray) -> Any:
    """Psi(P) - Psi(Q) of f = x^3 and g = -x^4, where alpha = 4/5."""
    pair = qd.SeparablePair(lambda x: x**3, lambda x: -(x**4))
    return -np.dot([4 / 5, 1 / 5], gains(pair, q, p))


def is_compatible(f: Any, g: str) -> Truth:
    """Two formulas are a compatible pair."""
    why = "the pair is incompatible: g' is not a falling line in this f"
    if callable(f):  # of NumPy, JAX or Python: no proof reads it, its values say enough
        x = np.linspace(0.05, 0.95, 19)
        scores = np.array([float(as_numbers(f(place))) for place in x])
        slopes = np.array([-jax.grad(as_formula(g))(place) for place in x])
        line = np.polyfit(slopes, scores, 1)
        apart = np.abs(np.polyval(line, slopes) - scores).max()
        require(line[0] > 0 and apart <= 1e-9 * np.ptp(scores), why)
        return True
    verdict = qd.check_compatibility(qd.SeparablePair(as_formula(f), as_formula(g)))
    decided = verdict.compatible is not None
    require(decided, f"the pair is undecided: {verdict.reason}")
    require(verdict.compatible, why)
    return True
