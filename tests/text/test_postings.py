"""Postings of n-grams against counting by hand; integers sorted and hashed."""

from collections import Counter

import numpy as np
import pytest
from models import MODEL
from referees.ngram_counts import counted

from qdtheory.text import as_corpus
from qdtheory.text import postings as module
from qdtheory.text.postings import (
    hashed,
    positions_of,
    postings,
    postings_by_order,
    sorted_keys,
)


@pytest.mark.parametrize(("vectors", "many"), [(True, 0), (False, 0), (False, 10**9)])
@pytest.mark.parametrize("bits", [3, 16, 17, 32, 40, 62])
def test_all_ways_to_sort_keep_equal_keys_in_their_order(
    monkeypatch, bits, vectors, many
):
    monkeypatch.setattr(module, "VECTORS", vectors)
    monkeypatch.setattr(module, "MANY", many)
    some = np.random.default_rng(0).integers(2**bits, size=300)
    keys = np.random.default_rng(1).permutation(np.append(some, [0, *some]))
    found, order = sorted_keys(keys.copy(), 2**bits)
    expected = np.argsort(keys, kind="stable")
    assert (order == expected).all()
    assert (found == keys[expected]).all()


def test_postings_are_the_counts_of_ngrams_in_sentences():
    positions = positions_of(as_corpus([*MODEL, []]), 5)
    for n, found in enumerate(postings_by_order(positions, 5), start=1):
        expected = [counted([sentence], n) for sentence in MODEL]
        assert len(found.keys) == len(set().union(*expected))
        # The same counts in the same sentences, and as many sentences for an n-gram.
        told = sorted((k, c) for k, one in enumerate(expected) for c in one.values())
        assert sorted(zip(found.sentence.tolist(), found.counts.tolist())) == told
        sentences = Counter(g for one in expected for g in one)
        assert sorted(found.num_sentences) == sorted(sentences.values())
        assert (np.flatnonzero(np.diff(found.ngram, prepend=-1)) == found.first).all()
        most = {g: max(one[g] for one in expected) for g in sentences}
        assert sorted(found.most) == sorted(most.values())


def test_shared_postings_are_those_that_another_sentence_can_have():
    positions = positions_of(as_corpus(MODEL), 4)
    both = (postings_by_order(positions, 4, shared) for shared in (True, False))
    for n, (found, every) in enumerate(zip(*both)):
        several = every.num_sentences > 1
        assert len(found.counts) >= every.num_sentences[several].sum()
        assert (len(found.counts) < len(every.counts)) == (n == 3)


def test_no_occurrences():
    none = np.array([], int)
    found, order, rank = postings(none, 5, none)
    assert [len(x) for x in (*found, order, rank)] == [0] * 7


def by_hand(*row):
    mixed = 0
    for entry in row:
        mixed = (mixed + entry + 1) % 2**64
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed = (mixed ^ (mixed >> 33)) * factor % 2**64
        mixed ^= mixed >> 33
    return mixed


def test_hashes_are_those_of_python_integers():
    columns = np.random.default_rng(0).integers(2**31, size=(3, 50))
    for k in (1, 2, 3):
        expected = [by_hand(*row) for row in columns[:k].T.tolist()]
        assert hashed(*columns[:k]).tolist() == expected
