"""Sums of one order: exact beyond the floats, and counts of every size."""

from collections import Counter

import numpy as np
import pytest
from referees.ngram_counts import counted

from qdtheory.text import as_corpus, ngram_sums
from qdtheory.text.ngram_sums import order_sums, text_ngrams
from qdtheory.text.numbered import ngrams_of, number_texts, places


def test_sums_beyond_the_floats_are_exact():
    # Floats hold no odd number of so many bits.
    values = np.array([2**58 + 1, 3, 2**57 + 1, 2**40])
    found = ngram_sums._added_up(values, np.array([0, 0, 1, 1]), 3)
    assert found.tolist() == [2**58 + 4, 2**57 + 1 + 2**40, 0]


def ngrams(texts, real, n, num_groups):
    """Those of all texts and of each."""
    corpora = as_corpus(texts), as_corpus(real)
    sides, numbers = number_texts({"x": corpora[0]}, corpora[1], num_groups)
    begins = [
        part
        for corpus, x in zip(corpora, sides.values())
        for (part,) in places(corpus, x.ids, x.place, numbers, n, [0], 1)
    ]
    *_, every = ngrams_of(begins, numbers, n)
    return [text_ngrams(every, x, n, averaged=False) for x in sides.values()]


def test_the_arrays_are_those_drawn_in_the_docstring():
    found, _ = ngrams(["a b", "a a", "b c"], ["d", "a"], 1, num_groups=2)
    for table in str(ngram_sums.__doc__).split("    by_")[1:]:
        name, *rows = table.partition("\n\n")[0].splitlines()
        for field, *numbers in (row.replace("|", "").split() for row in rows):
            array = getattr(getattr(found, f"by_{name.split()[0]}"), field)
            assert array.tolist() == [*map(int, numbers)]


@pytest.mark.parametrize("small", [1, 3, 256])
@pytest.mark.parametrize("n", [1, 2])
def test_spectra_count_small_and_large_counts(monkeypatch, small, n):
    monkeypatch.setattr(ngram_sums, "SMALL", small)
    rng = np.random.default_rng(0)
    texts = [(rng.zipf(1.6, 7) % 20).tolist() for _ in range(60)] + [[], [5]]
    ours, real = ngrams(texts, texts[:9], n, num_groups=4)
    found, side = order_sums(ours, real, np.zeros((2, len(texts)), int)), ours.text
    group = np.repeat(range(4), np.diff(side.bounds))
    codes, times = found.spectrum
    subset, count = codes >> ngram_sums.COUNT_BITS, codes % 2**ngram_sums.COUNT_BITS
    for g in range(-1, 4):
        kept = [x for x, p in zip(texts, side.place) if group[p] != g]
        every = counted(kept, n)
        here = subset == g + 1
        spectrum = dict(zip(count[here].tolist(), times[here].tolist()))
        assert spectrum == Counter(every.values())
