"""Lecture 15b."""

from typing import Any

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import THREE_TOKENS, Truth
from qdtheory.course.grading import as_numbers


def ignores_order(answer: Any) -> Truth:
    """Features of eight texts: the Fréchet distance does not see the order of words.

    It compares means and covariances, and sees that the first and last text differ.
    """
    features = as_numbers(answer).reshape(8, -1)
    counts = np.asarray(qd.metrics.ngram_matrix(THREE_TOKENS, 1))
    alike = (counts[:, :, None] == counts[:, None]).all(axis=0)
    p = np.arange(1, 9) / 36
    swapped = p @ (alike / alike.sum(axis=0))
    moments = ([law @ features, (features.T * law) @ features] for law in (p, swapped))
    unseen = all(np.allclose(a, b, 1e-9, 1e-9) for a, b in zip(*moments, strict=True))
    return unseen and np.abs(features[0] - features[-1]).max() > 1e-3
