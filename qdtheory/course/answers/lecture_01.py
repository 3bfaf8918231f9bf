"""Lecture 01."""

import numpy as np

from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import require


def has_unlikely_greedy_text(p: np.ndarray) -> Truth:
    """The text of the likeliest tokens has less than .51 of the mode's probability."""
    by_first = p.reshape(2, 2)
    first = by_first.sum(axis=1)
    require(abs(np.diff(first)) > 1e-9, "a and b are equally likely first tokens")
    share = by_first[first.argmax()].max() / by_first.max()
    told = f"the greedy text has {share:.5g} of the mode's probability"
    require(share < 0.51, f"{told}, expected less than .51")
    return True
