"""Lecture 24b."""

import numpy as np
from scipy.special import entr

import qdtheory as qd
from qdtheory.course.answers.common import Truth


def keeps_more_entropy(p: np.ndarray) -> Truth:
    """The code of top-H sums over kept tokens, unnormalised; .55 is its share."""
    ranked = np.sort(p)[::-1]
    terms = entr(ranked)
    most = 0.55 * terms.sum()
    kept = ranked[: max(1, (terms.cumsum() <= most).sum())]
    return qd.entropy(kept / kept.sum()) > most + 1e-9
