"""Estimators of k draws: their exact expectations over all samples of 2 to 6."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from lab import corpora, metrics
from referees.corpus_metrics import distinct_among
from refusals import refused

import qdtheory as qd
from qdtheory import text
from qdtheory.text.ngrams import expected_distinct

Q = np.array([0.6, 0.3, 0.1])
UTILITIES = np.array([1.0, 5.0, 9.0])


def expectation(n, estimate):
    """The exact mean of a function of n labels drawn from Q."""
    samples = product(range(3), repeat=n)
    return sum(Q[list(s)].prod() * estimate(list(s)) for s in samples)


@pytest.mark.claim("N25.4")
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_distinct_k_is_unbiased(n):
    for k in range(1, n + 1):
        found = expectation(n, lambda s, k=k: corpora.distinct_k(s, k))
        assert found == pytest.approx(float(metrics.distinct_k(Q, k)), abs=1e-12)


@pytest.mark.claim("N25.5")
@pytest.mark.parametrize("n", [2, 4])
def test_utility_k_is_unbiased(n):
    for k, patience in product(range(1, n + 1), (0.0, 0.8, 1.0)):
        found = expectation(
            n,
            lambda s, k=k, x=patience: corpora.utility_k(s, UTILITIES[s], k, x),
        )
        expected = float(metrics.utility_k(Q, UTILITIES, k, patience))
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.claim("N25.6")
@pytest.mark.parametrize("n", [2, 3, 6])
def test_pass_at_k_is_unbiased(n):
    for k in range(1, n + 1):
        found = expectation(n, lambda s, k=k: corpora.pass_at_k(n, s.count(1), k))
        assert found == pytest.approx(1 - (1 - Q[1]) ** k, abs=1e-12)


def test_they_are_means_over_subsets_and_over_orders():
    sample, k = list("aababc"), 4
    subsets = [len(set(s)) for s in combinations(sample, k)]
    assert corpora.distinct_k(sample, k) == pytest.approx(np.mean(subsets))
    worth = {"a": 1.0, "b": 3.0, "c": 4.0}
    weights = 0.7 ** np.arange(k)
    means = [
        sum(
            w * worth[c] * (c not in order[:i])
            for i, (w, c) in enumerate(zip(weights, order))
        )
        for order in permutations(sample, k)
    ]
    found = corpora.utility_k(sample, [worth[c] for c in sample], k, 0.7)
    assert found == pytest.approx(np.mean(means) / weights.sum())


def test_classes_are_labels_sentences_or_a_corpus():
    sentences = ["a b", "a b", "c"]
    expected = corpora.distinct_k([0, 0, 1], 2)
    for classes in (sentences, [s.split() for s in sentences], np.array([0, 0, 1])):
        assert corpora.distinct_k(classes, 2) == expected
    corpus = text.as_corpus(sentences)
    assert corpora.distinct_k(corpus, 2) == expected
    found = text.jackknife_interval(
        lambda c: corpora.distinct_k(c, 2), sentences * 10, num_groups=5
    )
    assert found.low < found.value < found.high


@pytest.mark.parametrize("k", [1, 2, 10, 50, 1000, 3807])
def test_rarefaction_is_that_of_the_binomials(k):
    counts, times = np.array([1, 2, 9, 49, 300, 2000]), np.array([700, 90, 20, 3, 2, 1])
    expected = distinct_among(np.repeat(counts, times).tolist(), k)
    found = expected_distinct(counts, times, int(counts @ times), k)
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.claim("N25.16")
def test_semantic_entropy_is_biased_downwards_by_half_the_classes_over_n():
    bias = expectation(6, corpora.semantic_entropy) - float(qd.entropy(Q))
    assert -1.6 * 2 / 12 < bias < -0.5 * 2 / 12
    assert corpora.semantic_entropy(["x"]) == 0


def test_bad_input_is_refused(as_a_user):
    refused(
        ("at least one sample", corpora.distinct_k, [], 2),
        ("from 1 to 2, the number", corpora.distinct_k, [1, 2], 3),
        ("from 1 to 2, the number of samples, got 0", corpora.distinct_k, [1, 2], 0),
        ("one a sample", corpora.utility_k, [1, 2], [1.0], 2),
        ("patience", corpora.utility_k, [1], [1.0], 1, 2),
        ("from 0 to num_samples", corpora.pass_at_k, 5, [6], 2),
    )
    refused(("a single string", corpora.distinct_k, "abc", 2), error=TypeError)
