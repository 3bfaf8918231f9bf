"""Lecture 13."""

from itertools import product

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth


def mean_cnd_of_copies(p: np.ndarray, num_texts: int) -> float:
    """CND between P and a training set, in the mean over all training sets."""
    mean = 0.0
    for texts in product(range(p.size), repeat=num_texts):
        copies = np.bincount(texts, minlength=p.size) / num_texts
        mean += p[list(texts)].prod() * float(qd.cnd(copies, p))
    return mean


def is_richer_below(p: np.ndarray, scorer: np.ndarray, q: np.ndarray) -> Truth:
    """Three distributions: under the scorer, a model below P has more entropy."""
    below = qd.cross_entropy(p, scorer) - qd.cross_entropy(q, scorer)
    return below >= 0.1 and qd.entropy(q) - qd.entropy(p) >= 0.1
