"""Lecture 10c."""

from itertools import permutations
from typing import Any

import numpy as np

from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import as_numbers


def turned_round(quality: np.ndarray, diversity: np.ndarray, score: np.ndarray) -> int:
    """Number of pairs ordered by the plane that a score orders the other way."""
    better = zip(quality, diversity, -score, strict=True)
    return sum(bool(np.greater(a, b).all()) for a, b in permutations(better, 2))


def is_open_to_the_plane(answer: Any) -> Truth:
    """Three rows (CR, NRR) on a falling line, the middle one best by CND."""
    cr, nrr = np.array(sorted(as_numbers(answer).tolist())).T
    total = 2 * cr + nrr
    falls = cr.size == 3 and (np.diff(cr) > 0).all() and (np.diff(nrr) < 0).all()
    return falls and total[1] > max(total[0], total[2])
