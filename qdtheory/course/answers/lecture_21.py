"""Lecture 21."""

from typing import Any

import numpy as np

from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import as_distribution


def noise_prefers_the_second(answer: Any) -> Truth:
    """Noise takes from the commonest text and gives most to the second."""
    q = as_distribution(answer)
    first, second = np.argsort(-q)[:2]
    fitness = q * (1 + 2 * q @ q) - 3 * q**2
    drift = q * (fitness - q @ fitness)
    return q.size > 2 and drift[first] < 0 and drift.argmax() == second
