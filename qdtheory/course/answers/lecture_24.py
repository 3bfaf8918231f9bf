"""Lecture 24."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth, temper_tokens, token_by_token


def min_p(law: np.ndarray) -> np.ndarray:
    """Keep the tokens of half the greatest probability or more."""
    kept = law * (law >= law.max() / 2)
    return kept / kept.sum()


def truncation_beats_temperature(p: np.ndarray) -> Truth:
    """Min-p of 1/2 has more LL and more SE than a temperature of .3."""
    if p.min() == 0:
        return False
    q, cold = token_by_token(p, min_p), temper_tokens(p, 1 / 0.3)
    better = (q - cold) @ np.log(p) > 1e-9
    return better and qd.entropy(q) - qd.entropy(cold) > 1e-9
