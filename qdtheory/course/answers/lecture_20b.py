"""Lecture 20b."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth


def changes_the_order(p: np.ndarray, *models: np.ndarray) -> Truth:
    """JS prefers the first model, the mixture token by token the second, by .01."""
    by_text, by_token = [], []
    for q in models:
        a, b = (x.reshape(2, 2) for x in (p, q))
        m = (a.sum(axis=1) + b.sum(axis=1))[:, None] / 2
        m = m * (a / a.sum(axis=1)[:, None] + b / b.sum(axis=1)[:, None]) / 2
        by_text.append(qd.jensen_shannon_divergence(q, p))
        by_token.append(sum(qd.kl_divergence(x, m.ravel()) for x in (p, q)) / 2)
    positive = min(p.min(), *map(np.min, models)) > 0
    return positive and min(np.diff(by_text)[0], -np.diff(by_token)[0]) >= 0.01
