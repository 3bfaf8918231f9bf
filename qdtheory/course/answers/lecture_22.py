"""Lecture 22."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth


def hides_from_words(q: np.ndarray) -> Truth:
    """Each of two words occurs as often as in P, and the model is not P."""
    p = np.array([0.4, 0.3, 0.2, 0.1])
    occurs = np.array([[1, 1, 1, 0], [0, 1, 1, 1]])
    same = np.allclose(occurs @ q, occurs @ p, rtol=0, atol=1e-9)
    return same and qd.metrics.total_variation(q, p) > 0.05 - 1e-9
