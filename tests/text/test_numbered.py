"""Texts counted together: their groups, and how n-grams are dealt out to parts."""

from collections import Counter

import numpy as np
import pytest
from models import MODEL, REAL
from referees.ngram_counts import counted

from qdtheory.text import as_corpus
from qdtheory.text.intervals import random_groups
from qdtheory.text.numbered import ngrams_of, number_texts, places

TEXTS = [*MODEL, [], [7]]


def test_sentences_stand_group_after_group():
    texts, numbers = number_texts({"x": as_corpus(TEXTS)}, as_corpus(REAL))
    side, real = texts.values()
    assert numbers.sentences == len(TEXTS) + len(REAL)
    group = random_groups(len(TEXTS), 20)
    assert np.diff(side.bounds).tolist() == np.bincount(group).tolist()
    for text, place, g in zip(TEXTS, side.place.tolist(), group.tolist()):
        assert side.lengths[place] == len(text)
        assert side.bounds[g] <= place < side.bounds[g + 1]
    assert (real.first, real.num_groups) == (len(TEXTS), 20)
    assert sorted([*side.place, *real.place]) == [*range(len(TEXTS) + len(REAL))]


@pytest.mark.parametrize("num_parts", [1, 2, 7])
def test_each_part_has_its_own_ngrams_and_all_have_all(num_parts):
    """Each n-gram with its occurrences is in one part; sentences that end in between
    two chosen words make no n-gram."""
    corpora = as_corpus(TEXTS), as_corpus(REAL)
    texts, numbers = number_texts({"x": corpora[0]}, corpora[1])
    each = [
        chunk
        for corpus, x in zip(corpora, texts.values())
        for chunk in places(
            corpus, x.ids, x.place, numbers, 3, range(num_parts), num_parts
        )
    ]
    sizes = Counter()
    for part in zip(*each):
        for n, found in enumerate(ngrams_of(part, numbers, 3), start=1):
            # Counts of the n-grams of this part, whatever number each has.
            many = np.bincount(found.ngram, found.counts, len(found.keys))
            sizes.update((n, int(x)) for x in many)
    for n in (1, 2, 3):
        every = counted([list(map(str, x)) for x in [*TEXTS, *REAL]], n)
        expected = Counter((n, x) for x in every.values())
        assert {k: v for k, v in sizes.items() if k[0] == n} == expected
