"""Partial sums: counting by hand, parts against the whole, in any order."""

from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import MODEL, REAL, merged
from referees.ngram_counts import counted
from refusals import refused

from qdtheory.text import as_corpus
from qdtheory.text.corpus import slices
from qdtheory.text.intervals import random_groups
from qdtheory.text.partial_sums import Sums, partial_sums

sentences = st.lists(
    st.lists(st.integers(0, 3), max_size=6), min_size=3, max_size=30
).filter(any)


def split(candidates, references, num_parts, **options):
    return [
        partial_sums(
            candidates, references, 3, part=part, num_parts=num_parts, **options
        )
        for part in range(num_parts)
    ]


# -- counting by hand ----------------------------------------------------------------


def sums_by_hand(ours, theirs, n):
    """The sums of `Sums`, with a dictionary for each sentence."""
    each = [counted([x], n) for x in ours]
    count, real = counted(ours, n), counted(theirs, n)
    return [
        len(count),
        sum(c * c for c in count.values()),
        sum(c * c for one in each for c in one.values()),
        sum(c * real[g] for g, c in count.items()),
        sum(min(c * len(theirs), real[g] * len(ours)) for g, c in count.items()),
    ]


def rests(texts, group):
    """The texts, and without each group."""
    without = [
        [x for x, h in zip(texts, group) if h != g] for g in range(max(group) + 1)
    ]
    return [texts, *without]


def matches_by_hand(ours, others_of, n):
    """Clipped matches of each sentence with the others that it has."""
    found = []
    for k, sentence in enumerate(ours):
        most = Counter()
        for other in others_of(k):
            most |= counted([other], n)
        found.append((counted([sentence], n) & most).total())
    return found


@settings(deadline=None)
@given(sentences, sentences, st.integers(2, 9))
def test_sums_and_matches_are_those_counted_by_hand(ours, theirs, num_groups):
    found = partial_sums(
        {"x": as_corpus(ours)}, as_corpus(theirs), 3, num_groups=num_groups
    )
    real_group = random_groups(len(theirs), min(num_groups, len(theirs)))
    num_groups = min(num_groups, len(ours))
    group = random_groups(len(ours), num_groups)
    blocks = found.blocks["x"]
    own = [np.flatnonzero(group == g) for g in range(num_groups)]
    for n in (1, 2, 3):
        expected = [sums_by_hand(rest, theirs, n) for rest in rests(ours, group)]
        real = [sums_by_hand(ours, rest, n)[3:] for rest in rests(theirs, real_group)]
        columns = [*zip(*expected), *zip(*real)]
        for part, row in zip(fields(Sums), columns, strict=True):
            told = getattr(found.totals.sums["x"], part.name)[n - 1]
            assert told.tolist() == [*row]
        both = [sums_by_hand(rest, rest, n)[1:3] for rest in rests(theirs, real_group)]
        assert found.totals.references[:, n - 1].T.tolist() == both
        spectra = found.totals.spectra["x"].of(n - 1, num_groups + 1)
        for rest, (counts, times) in zip(rests(ours, group), spectra, strict=True):
            every = counted(rest, n)
            told = sorted(Counter(every.values()).items())
            assert [*zip(counts.tolist(), times.tolist())] == told
        bleu = np.array(matches_by_hand(ours, lambda k: theirs, n))
        alike = matches_by_hand(ours, lambda k: ours[:k] + ours[k + 1 :], n)
        for g, block in enumerate(blocks):
            assert block.bleu[n - 1].tolist() == bleu[own[g]].tolist()
            assert block.self_bleu[n - 1].tolist() == np.array(alike)[own[g]].tolist()
        for h in range(num_groups):
            fewer = matches_by_hand(
                ours,
                lambda k, h=h: [
                    x for j, x in enumerate(ours) if j != k and group[j] != h
                ],
                n,
            )
            lost = np.array(alike) - fewer
            for g, block in enumerate(blocks):
                if g == h:  # what a sentence loses without itself is never read
                    continue
                told = np.zeros(len(own[g]), int)
                case, order = np.divmod(block.lost, 3)
                here = (case % num_groups == h) & (order == n - 1)
                told[case[here] // num_groups] = block.losses[here]
                assert told.tolist() == lost[own[g]].tolist()


def test_lengths_of_each_group():
    ours, theirs = [*MODEL, []], REAL[:20]
    found = partial_sums({"x": as_corpus(ours)}, as_corpus(theirs), 3)
    lengths = found.totals.lengths["x"]
    counted = Counter(map(len, ours))
    assert dict(zip(lengths.values, lengths.times.sum(axis=0))) == counted
    assert lengths.times.sum(axis=1).tolist() == [4] + [3] * 19
    assert [len(block.lengths) for block in found.blocks["x"]] == [4] + [3] * 19
    assert found.totals.reference_lengths.times.sum(axis=1).tolist() == [1] * 20


# -- parts ---------------------------------------------------------------------------


@pytest.mark.claim("N12.26")
@settings(deadline=None, max_examples=40)
@given(
    sentences,
    sentences,
    st.integers(1, 6),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_parts_are_the_whole_in_any_order(ours, theirs, num_parts, averaged, random):
    texts = {"x": as_corpus(ours), "y": as_corpus(theirs)}
    real = as_corpus(theirs)
    whole = partial_sums(texts, real, 3, averaged=averaged)
    parts = split(texts, real, num_parts, averaged=averaged)
    while len(parts) > 1:
        random.shuffle(parts)
        parts.append(merged(parts.pop(), parts.pop()))
    (added,) = parts
    assert added.blocks == whole.blocks
    assert added.totals.lengths == whole.totals.lengths
    assert added.totals.spectra == whole.totals.spectra
    assert added.totals.reference_lengths == whole.totals.reference_lengths
    for one, other in [
        (added.totals.references, whole.totals.references),
        *(
            (getattr(added.totals.sums[name], part.name), getattr(sums, part.name))
            for name, sums in whole.totals.sums.items()
            for part in fields(Sums)
        ),
    ]:
        assert one.dtype == other.dtype
        if other.dtype.kind == "i":
            assert one.tolist() == other.tolist()
        else:
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_chunks_are_read_one_after_another(monkeypatch):
    whole = split({"x": as_corpus(MODEL)}, as_corpus(REAL), 2)
    monkeypatch.setattr(slices, "__defaults__", (40,))
    assert split({"x": as_corpus(MODEL)}, as_corpus(REAL), 2) == whole


# -- bad input -----------------------------------------------------------------------


def test_bad_input(as_a_user):
    def counting(max_order=2, **options):
        texts = as_corpus(MODEL)
        return lambda: partial_sums({"x": texts}, texts, max_order, **options)

    refused(
        ("max_order: expected 1 or more, got 0", counting(0)),
        *(
            (
                f"num_groups: expected a whole number from 1 to 255, got {x}",
                counting(num_groups=x),
            )
            for x in (0, 256)
        ),
    )
