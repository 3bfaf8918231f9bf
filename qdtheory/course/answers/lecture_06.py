"""Lecture 06."""

from typing import Any

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import better, require
from qdtheory.course.grading import as_distribution, as_numbers


def is_beating_model(answer: Any) -> bool:
    """A similarity of four texts, and a model that beats the uniform P under it."""
    kernel, q = answer
    kernel, q, p = as_numbers(kernel), as_distribution(q, 4), np.full(4, 1 / 4)
    require(kernel.shape == (4, 4), f"K has shape {kernel.shape}, expected (4, 4)")
    require((kernel == kernel.T).all(), "K is not symmetric")
    require((np.diag(kernel) == 1).all(), "K has not 1 on its diagonal")
    require(0 <= kernel.min() <= kernel.max() <= 1, "K has an entry outside [0, 1]")
    pair = qd.KernelPair(kernel)
    return better(pair, q, p, -1e-12, "neither to fall and one to rise")
