"""Sums over n-grams: parts add up to the whole, and metrics of fewer sentences."""

from collections import Counter
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import MODEL, REAL, merged
from referees.corpus_metrics import one_by_one, without_each_group
from referees.ngram_counts import counted
from refusals import refused

from qdtheory.text import as_corpus, ngram_sums, postings
from qdtheory.text.corpus import slices
from qdtheory.text.intervals import random_groups
from qdtheory.text.leave_out import group_scores, groups_seen, metrics_of_sums
from qdtheory.text.partial_sums import partial_sums

words = st.integers(0, 3)
corpora = st.lists(st.lists(words, max_size=6), min_size=3, max_size=30).filter(any)
# With these every rest has pairs of sentences of three words.
LONG = [[0, 1, 2], [1, 2, 0, 1], [3, 3, 3], [2, 0, 1, 1, 1]]
long_corpora = st.lists(st.lists(words, max_size=6), max_size=20).map(LONG.__add__)


def in_parts(texts, real, num_parts, **options):
    how = {"num_parts": num_parts} | options
    return [partial_sums(texts, real, 3, part=k, **how) for k in range(num_parts)]


def scored(sums, smoothing, estimator):
    totals = sums.totals
    lengths = totals.lengths["x"], totals.reference_lengths
    scores = group_scores(enumerate(sums.blocks["x"]), *lengths, smoothing)
    return metrics_of_sums(totals, "x", scores, estimator)


@settings(max_examples=settings().max_examples // 2)
@given(
    long_corpora,
    long_corpora,
    st.sampled_from([None, "epsilon"]),
    st.sampled_from(["plug-in", "pairs", "sentence-pairs"]),
    st.integers(1, 4),
)
def test_metrics_without_each_group_are_those_of_the_smaller_text(
    ours, theirs, smoothing, estimator, num_parts
):
    """Counted in parts that are added, against functions of one metric each."""
    options = {"smoothing": smoothing}, {"estimator": estimator}
    texts, real = as_corpus(ours), as_corpus(theirs)
    averaged = estimator == "sentence-pairs"
    parts = in_parts({"x": texts}, real, num_parts, averaged=averaged)
    found = scored(reduce(merged, parts), smoothing, estimator)
    rests = [(texts, real)]
    rests += [(rest, real) for rest in without_each_group(texts)]
    rests += [(texts, rest) for rest in without_each_group(real)]
    assert found.shape[-1] == len(rests)
    whole = one_by_one(texts, real, 3, *options)[0]
    for subset, (rest, known) in enumerate(rests):
        expected = one_by_one(rest, known, 3, *options)
        if known is not real:  # BLEU is of all references
            expected[0] = whole
        np.testing.assert_allclose(found[..., subset], expected, rtol=1e-12, atol=1e-12)


def test_one_group_has_no_rest():
    texts, real = as_corpus(MODEL), as_corpus(REAL)
    sums = partial_sums({"x": texts}, real, 2, num_groups=1)
    (found,) = np.moveaxis(scored(sums, "epsilon", "pairs"), -1, 0)
    np.testing.assert_allclose(found, one_by_one(texts, real, 2), rtol=1e-12)


@pytest.mark.claim("N12.26")
@given(corpora, corpora, st.integers(2, 6), st.randoms(use_true_random=False))
def test_parts_are_the_whole_in_any_order(ours, theirs, num_parts, random):
    texts, real = {"x": as_corpus(ours), "y": as_corpus(theirs)}, as_corpus(theirs)
    parts = in_parts(texts, real, num_parts)
    while len(parts) > 1:
        random.shuffle(parts)
        parts.append(merged(parts.pop(), parts.pop()))
    assert parts == [partial_sums(texts, real, 3)]


def test_chunks_are_read_one_after_another(monkeypatch):
    both = {"x": as_corpus(MODEL)}, as_corpus(REAL)
    whole = in_parts(*both, 2)
    monkeypatch.setattr(slices, "__defaults__", (40,))
    assert in_parts(*both, 2) == whole


@pytest.mark.parametrize("small", [1, 3, 256])
def test_spectra_count_small_and_large_counts(monkeypatch, small):
    monkeypatch.setattr(ngram_sums, "SMALL", small)
    rng = np.random.default_rng(0)
    texts = [(rng.zipf(1.6, 7) % 20).tolist() for _ in range(60)] + [[], [5]]
    ours, real = as_corpus(texts), as_corpus(texts[:9])
    sums = partial_sums({"x": ours}, real, 2, num_groups=4)
    group = random_groups(len(texts), 4)
    for n in (1, 2):
        spectra = sums.totals.spectra["x"].of(n - 1, 5)
        for g, (counts, times) in enumerate(spectra, start=-1):
            every = counted([x for x, h in zip(texts, group) if h != g], n)
            assert dict(zip(counts, times)) == Counter(every.values())


def test_sums_beyond_the_floats_are_exact():
    # Floats hold no odd number of so many bits.
    values = np.array([2**58 + 1, 3, 2**57 + 1, 2**40])
    found = ngram_sums._added_up(values, np.array([0, 0, 1, 1]), 3)
    assert found.tolist() == [2**58 + 4, 2**57 + 1 + 2**40, 0]


@pytest.mark.parametrize("averaged", [False, True])
def test_groups_that_hold_an_event_are_counted_by_hand(averaged):
    """From the n-grams of each sentence, one after another."""
    ours, theirs = MODEL[:30], REAL[:25]
    both = {"x": as_corpus(ours)}, as_corpus(theirs)
    seen = groups_seen(partial_sums(*both, 4, averaged=averaged).totals, "x")

    def told(texts, others, n):
        """How many groups repeat, share, repeat in any way and have n-grams alone."""
        group = random_groups(len(texts), 20)
        each, known = [counted([x], n) for x in texts], counted(others, n)
        held = Counter(g for x in each for g in x)
        parts = [[texts[i] for i in np.flatnonzero(group == k)] for k in range(20)]
        of_group = [counted(part, n) for part in parts]
        groups = Counter(g for x in of_group for g in x)
        pairs = [*zip(each, group)]
        return {
            "repeated": len({h for x, h in pairs if any(held[g] > 1 for g in x)}),
            "shared": len({h for x, h in pairs if known & x}),
            "again": sum(any(groups[g] > 1 or x[g] > 1 for g in x) for x in of_group),
            "alone": sum(any(groups[g] == 1 for g in x) for x in of_group),
        }

    for n in (1, 2, 3, 4):
        own, real = told(ours, theirs, n), told(theirs, ours, n)
        own |= {f"real {what}": real[what] for what in ("repeated", "shared")}
        assert {what: x[n - 1] for what, x in seen.items()} == own


# -- integers ------------------------------------------------------------------------


@pytest.mark.parametrize(("vectors", "many"), [(True, 0), (False, 0), (False, 10**9)])
@pytest.mark.parametrize("bits", [3, 16, 17, 32, 40, 62])
def test_all_ways_to_sort_keep_equal_keys_in_their_order(
    monkeypatch, bits, vectors, many
):
    monkeypatch.setattr(postings, "VECTORS", vectors)
    monkeypatch.setattr(postings, "MANY", many)
    some = np.random.default_rng(0).integers(2**bits, size=300)
    keys = np.random.default_rng(1).permutation(np.append(some, [0, *some]))
    found, order = postings.sorted_keys(keys.copy(), 2**bits)
    expected = np.argsort(keys, kind="stable")
    assert (order == expected).all()
    assert (found == keys[expected]).all()


def test_bad_input(as_a_user):
    def counting(max_order=2, texts=MODEL, estimator="pairs", **options):
        sums = partial_sums(
            {"x": as_corpus(texts)}, as_corpus(["a b", "b a"]), max_order, **options
        )
        return scored(sums, None, estimator)

    def of(*texts, estimator="plug-in"):
        return lambda: counting(texts=[*texts], estimator=estimator)

    short = "no sentence has 2 tokens: the longest has 1"
    groups = "num_groups: expected a whole number from 1 to 255, got "
    refused(
        ("max_order: expected 1 or more, got 0", counting, 0),
        *((f"{groups}{x}", lambda x=x: counting(num_groups=x)) for x in (0, 256)),
        (short, of("a", "b")),
        (short, of("a b", "b")),
        ("pairs need at least two", of("a b", "b a", "b", estimator="pairs")),
    )
