"""Lecture 18."""

import numpy as np

from qdtheory.course.answers.common import Truth


def gains_under_any_pool(*rows: np.ndarray) -> Truth:
    """A model of more CR than three cyclic conditions, with a uniform pool."""
    q = np.stack(rows)
    real = np.stack([np.roll((0.5, 0.3, 0.2), shift) for shift in range(3)])
    gain = ((q - real) * real).sum() / 3
    return gain >= 0.1 and np.abs(q.mean(axis=0) - 1 / 3).max() <= 1e-9
