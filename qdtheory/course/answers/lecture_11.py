"""Lecture 11."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth, temper_tokens


def has_one_partition(p: np.ndarray) -> Truth:
    """Squaring tokens is squaring texts, and the second depends on the first."""
    after_a, after_b = (row[0] / row.sum() for row in p.reshape(2, 2))
    gap = np.abs(temper_tokens(p, 2.0) - np.asarray(qd.temper(p, 2.0))).max()
    return abs(after_a - after_b) > 0.2 - 1e-9 and gap <= 1e-9
