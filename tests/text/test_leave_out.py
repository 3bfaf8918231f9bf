"""Metrics from sums against those of each smaller text, one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import MODEL, REAL, merged
from referees.corpus_metrics import one_by_one, without_each_group
from referees.ngram_counts import counted
from refusals import refused

from qdtheory.text import as_corpus
from qdtheory.text.intervals import random_groups
from qdtheory.text.leave_out import KINDS, group_scores, groups_seen, metrics_of_sums
from qdtheory.text.partial_sums import partial_sums

# Two more words, or as many as an order has, in each sentence: every rest has pairs.
sentences = st.lists(
    st.lists(st.integers(0, 3), min_size=2, max_size=6), min_size=4, max_size=40
)


def from_sums(sums, name, smoothing, estimator):
    totals = sums.totals
    lengths = totals.lengths[name], totals.reference_lengths
    scores = group_scores(enumerate(sums.blocks[name]), *lengths, smoothing)
    return metrics_of_sums(totals, name, scores, estimator)


@settings(deadline=None, max_examples=40)
@given(
    sentences,
    sentences,
    st.sampled_from([None, "epsilon"]),
    st.sampled_from(["plug-in", "pairs", "sentence-pairs"]),
    st.integers(1, 4),
)
def test_metrics_without_each_group_are_those_of_the_smaller_text(
    ours, theirs, smoothing, estimator, num_parts
):
    options = {"smoothing": smoothing}, {"estimator": estimator}
    texts, real = as_corpus(ours), as_corpus(theirs)
    whole, *parts = (
        partial_sums(
            {"x": texts},
            real,
            2,
            averaged=estimator == "sentence-pairs",
            part=part,
            num_parts=num_parts,
        )
        for part in range(num_parts)
    )
    for part in parts:
        whole = merged(part, whole)
    found = from_sums(whole, "x", smoothing, estimator)
    rests = [(texts, real)]
    rests += [(rest, real) for rest in without_each_group(texts)]
    rests += [(texts, rest) for rest in without_each_group(real)]
    assert found.shape[-1] == len(rests)
    whole = one_by_one(texts, real, 2, *options)[0]
    for subset, (rest, known) in enumerate(rests):
        expected = one_by_one(rest, known, 2, *options)
        if known is not real:  # BLEU is of all references
            expected[0] = whole
        np.testing.assert_allclose(found[..., subset], expected, rtol=1e-12, atol=1e-12)


def test_equal_texts_are_not_apart():
    texts = as_corpus(MODEL)
    found = from_sums(partial_sums({"x": texts}, texts, 3), "x", None, "plug-in")
    assert found[KINDS.index("CND"), :, 0].tolist() == [0, 0, 0]
    assert found[KINDS.index("MS-Jaccard"), :, 0].tolist() == [1, 1, 1]


def test_one_group_has_no_rest():
    texts, real = as_corpus(MODEL), as_corpus(REAL)
    sums = partial_sums({"x": texts}, real, 2, num_groups=1)
    found = from_sums(sums, "x", "epsilon", "pairs")
    expected = one_by_one(texts, real, 2)
    assert found.shape == (7, 2, 1)
    np.testing.assert_allclose(found[..., 0], expected, rtol=1e-12)


@pytest.mark.parametrize("averaged", [False, True])
def test_groups_that_hold_an_event_are_counted_by_hand(averaged):
    """From the n-grams of each sentence, one after another."""
    ours, theirs = MODEL[:30], REAL[:25]
    found = partial_sums(
        {"x": as_corpus(ours)}, as_corpus(theirs), 4, averaged=averaged
    )
    seen = groups_seen(found.totals, "x")

    def told(texts, others, n):
        """Groups that repeat, share, repeat in any way and have n-grams alone."""
        group = random_groups(len(texts), 20).tolist()
        each = [counted([x], n) for x in texts]
        known = {*counted(others, n)}
        held = Counter(g for x in each for g in x)
        of_group = [
            sum((x for x, h in zip(each, group) if h == g), Counter())
            for g in range(20)
        ]
        groups = Counter(g for x in of_group for g in x)
        return {
            "repeated": {h for x, h in zip(each, group) if any(held[g] > 1 for g in x)},
            "shared": {h for x, h in zip(each, group) if known & {*x}},
            "again": {
                h
                for h, x in enumerate(of_group)
                if any(groups[g] > 1 or x[g] > 1 for g in x)
            },
            "alone": {
                h for h, x in enumerate(of_group) if any(groups[g] == 1 for g in x)
            },
        }

    for n in (1, 2, 3, 4):
        own, real = told(ours, theirs, n), told(theirs, ours, n)
        own |= {f"real {what}": real[what] for what in ("repeated", "shared")}
        for what, groups in seen.items():
            assert groups[n - 1] == len(own[what]), (what, n)


def test_bad_input():
    def scored(texts, estimator):
        sums = partial_sums({"x": as_corpus(texts)}, as_corpus(["a b", "b a"]), 2)
        return from_sums(sums, "x", None, estimator)

    short = "no sentence has 2 tokens: the longest has 1"
    refused(
        (short, scored, ["a", "b"], "plug-in"),
        (short, scored, ["a b", "b"], "plug-in"),
        ("pairs need at least two", scored, ["a b", "b a", "b"], "pairs"),
    )
