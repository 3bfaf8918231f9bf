"""Lecture 08."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import STEEP, Truth, gains, in_words
from qdtheory.course.grading import require


def beats_under_bleu(q: np.ndarray) -> Truth:
    """Better than P in BLEU and in Self-BLEU of one word, with two references each."""
    found = gains(qd.pairs.single_token_bleu_pair(2, 2), q, STEEP)
    require(min(found) > 1e-9, f"{in_words(found)}, expected both to rise")
    return True
