"""Lecture 14."""

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import THREE_TOKENS, Truth


def scores_of_distinct(p: np.ndarray) -> np.ndarray:
    """The quality that fits Distinct-1 of ten texts of three tokens over two."""
    distinct = qd.metrics.expected_distinct
    pair = qd.compatible_quality(lambda q: distinct(THREE_TOKENS, q, 1, 10))
    scores = np.asarray(pair.text_quality(p))
    return scores - scores.mean()


def beats_in_coverage_and_words(p: np.ndarray, q: np.ndarray) -> Truth:
    """P and a model that has more of both CR and NRR-1."""
    words = THREE_TOKENS.ngram_distribution
    coverage = [qd.coverage_rate(x, p) for x in (p, q)]
    repetition = [qd.negative_repetition_rate(words(x, 1)) for x in (p, q)]
    return min(np.diff(coverage), np.diff(repetition)) >= 0.01
