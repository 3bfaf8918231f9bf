"""Repetition in a sample, against definitions and expectations."""

from itertools import combinations, product

import numpy as np
import pytest
from lab import corpora, metrics
from refusals import refused

import qdtheory as qd
from qdtheory import text

SPACE = qd.TextSpace(2, 2)
Q = np.array([0.4, 0.3, 0.2, 0.1])


def expectation(m, estimate):
    """The exact mean of a metric of m texts drawn from Q."""
    total = 0.0
    for sample in product(range(4), repeat=m):
        texts = SPACE.tokens[list(sample)].tolist()
        total += Q[list(sample)].prod() * estimate(texts)
    return total


@pytest.mark.claim("N25.18")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_expectations_are_those_of_the_exact_wing(m):
    found = expectation(m, lambda t: corpora.self_repetition(t, 1))
    expected = metrics.expected_self_repetition(SPACE, Q, 1, m)
    assert found == pytest.approx(float(expected), abs=1e-12)
    found = expectation(m, lambda t: corpora.ngram_diversity(t, 2))
    expected = sum(float(qd.ngrams.expected_distinct(SPACE, Q, n, m)) for n in (1, 2))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.claim("N25.14")
@pytest.mark.parametrize("m", [2, 3])
def test_pairwise_rouge_l_is_unbiased(m):
    kernel = metrics.lcs_kernel(SPACE)
    found = expectation(m, text.pairwise_rouge_l)
    assert found == pytest.approx(Q @ kernel @ Q, abs=1e-12)


def common(a, b):
    """The length of the longest common subsequence, by a table."""
    best = np.zeros((len(a) + 1, len(b) + 1), int)
    for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
        longer = max(best[i, j + 1], best[i + 1, j])
        best[i + 1, j + 1] = best[i, j] + 1 if x == y else longer
    return best[-1, -1]


@pytest.mark.claim("N25.14")
@pytest.mark.parametrize("longest", [5, 64, 65])
def test_subsequences_of_one_and_several_words_of_bits(longest):
    rng = np.random.default_rng(longest)
    sizes = [longest, *rng.integers(0, longest + 1, 9)]
    texts = [rng.integers(0, 3, size).tolist() for size in sizes]
    expected = [
        2 * common(a, b) / (len(a) + len(b)) if a or b else 0.0
        for a, b in combinations(texts, 2)
    ]
    assert text.pairwise_rouge_l(texts) == pytest.approx(np.mean(expected), abs=1e-14)


def test_bad_input_is_refused(as_a_user):
    refused(
        ("at least two sentences", text.pairwise_rouge_l, ["a"]),
        ("no sentence has 2 tokens", corpora.self_repetition, ["a"], 2),
        ("expected 1 or more", corpora.ngram_diversity, ["a"], 0),
    )
