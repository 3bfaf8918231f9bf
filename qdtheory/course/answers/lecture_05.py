"""Lecture 05."""

import numpy as np

from qdtheory.course.answers.common import THREE_TOKENS, Truth
from qdtheory.course.grading import require


def has_uniform_bigrams(q: np.ndarray) -> Truth:
    """Texts of three tokens over two, far from uniform, with uniform bigrams."""
    bigrams = THREE_TOKENS.ngram_distribution(q, 2)
    worst = bigrams[np.abs(bigrams - 1 / 4).argmax()]
    require(abs(worst - 1 / 4) <= 1e-9, f"a bigram has {worst:.4g}, expected 1/4")
    moved = np.abs(q - 1 / 8).sum() / 2
    why = f"{moved:.6g} of the mass is moved, expected 1/4 or more"
    require(moved >= 1 / 4 - 1e-9, why)
    return True
