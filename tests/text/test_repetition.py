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


@pytest.mark.claim("N25.18")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_expectations_are_those_of_the_exact_wing(m):
    """Exact means of metrics of m texts drawn from Q."""
    found = np.zeros(3)
    for sample in map(list, product(range(4), repeat=m)):
        texts = SPACE.tokens[sample].tolist()
        values = [text.pairwise_rouge_l(texts), corpora.self_repetition(texts, 1)]
        values.append(corpora.ngram_diversity(texts, 2))
        found += Q[sample].prod() * np.array(values)
    repeated = metrics.expected_self_repetition(SPACE, Q, 1, m)
    distinct = sum(qd.ngrams.expected_distinct(SPACE, Q, n, m) for n in (1, 2))
    expected = Q @ metrics.lcs_kernel(SPACE) @ Q, repeated, distinct
    assert found.tolist() == pytest.approx([*map(float, expected)], abs=1e-12)


def common(a, b):
    """The length of the longest common subsequence, by a table."""
    best = np.zeros((len(a) + 1, len(b) + 1), int)
    for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
        longer = max(best[i, j + 1], best[i + 1, j])
        best[i + 1, j + 1] = best[i, j] + 1 if x == y else longer
    return best[-1, -1]


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
