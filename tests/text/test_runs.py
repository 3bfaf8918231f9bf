"""Runs of n-grams against counting by hand."""

from collections import Counter

import numpy as np
import pytest
from models import MODEL

from qdtheory.text import as_corpus
from qdtheory.text.runs import orders, runs, sorted_keys, windows_of


@pytest.mark.parametrize("size", [100, 2**62])
def test_both_ways_to_sort(size):
    keys = np.random.default_rng(0).integers(100, size=1000)
    found, order = sorted_keys(keys, size)
    expected = np.argsort(keys, kind="stable")
    assert (order == expected).all()
    assert (found == keys[expected]).all()


def ngrams(sentence, n):
    return [tuple(sentence[i : i + n]) for i in range(len(sentence) - n + 1)]


@pytest.mark.claim("N12.28")
@pytest.mark.parametrize("min_order", [1, 2])
def test_runs_are_the_counts_of_ngrams_in_sentences(min_order):
    windows = windows_of(as_corpus([*MODEL, []]), 5)
    for n, found in enumerate(orders(windows, 5, min_order), min_order):
        expected = [Counter(ngrams(sentence, n)) for sentence in MODEL]
        assert len(found.keys) == len(set().union(*expected))
        assert found.times.sum() == sum(map(Counter.total, expected))
        # The same counts in the same sentences, and as many sentences for an n-gram.
        counted = sorted((k, c) for k, one in enumerate(expected) for c in one.values())
        assert sorted(zip(found.owner.tolist(), found.times.tolist())) == counted
        sentences = Counter(g for one in expected for g in one)
        assert sorted(np.bincount(found.which)) == sorted(sentences.values())
        assert (np.flatnonzero(np.diff(found.which, prepend=-1)) == found.first).all()


def test_shared_runs_are_those_that_another_sentence_can_have():
    windows = windows_of(as_corpus(MODEL), 4)
    for n, (found, every) in enumerate(
        zip(orders(windows, 4, shared=True), orders(windows, 4))
    ):
        several = np.bincount(every.which) > 1
        assert len(found.times) >= np.bincount(every.which)[several].sum()
        assert (len(found.times) < len(every.times)) == (n == 3)


def test_no_occurrences():
    none = np.array([], int)
    found, order, rank = runs(none, 5, none)
    assert [len(x) for x in (*found, order, rank)] == [0] * 7
