"""Lecture 09."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import THREE_TOKENS, Truth
from qdtheory.course.grading import require


def hides_from_bigrams(q: np.ndarray, p: np.ndarray) -> Truth:
    """Two distributions of equal bigrams, 0.2 apart in total variation."""
    a, b = (np.asarray(THREE_TOKENS.ngram_distribution(x, 2)) for x in (q, p))
    most = np.abs(a - b).max()
    require(most <= 1e-9, f"a bigram is {most:.2g} likelier in one, expected equal")
    tv = qd.metrics.total_variation(q, p)
    require(tv > 0.2 - 1e-9, f"they are {tv:.6g} apart, expected .2 or more")
    return True
