"""Lecture 25."""

from typing import Any

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth, gains
from qdtheory.course.grading import as_distribution


def is_blind_within_classes(answer: Any) -> Truth:
    """Two distributions 0.5 apart with one distribution over classes."""
    p, q, classes = answer
    p, q = as_distribution(p, 4), as_distribution(q, 4)
    labels = np.unique([*classes], return_inverse=True)[1]
    pair = qd.PooledPair(qd.LL_SE, labels.tolist())
    same = np.allclose(gains(pair, q, p), 0, atol=1e-9)
    return same and qd.metrics.total_variation(p, q) > 0.5 - 1e-9
