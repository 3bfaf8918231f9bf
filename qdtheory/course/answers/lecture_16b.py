"""Lecture 16b."""

from typing import Any

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import as_numbers


def is_incompatible_similarity(answer: Any) -> Truth:
    """An incompatible similarity of three texts, each of similarity 1 to itself."""
    kernel = as_numbers(answer)
    well = kernel.shape == (3, 3) and (kernel == kernel.T).all()
    well = well and (np.diag(kernel) == 1).all()
    return well and not qd.kernel_criterion(kernel).compatible
