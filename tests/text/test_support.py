"""Which metrics have an interval: few repeats, nothing repeated, and what covers."""

import json
from collections import Counter

import numpy as np
import pytest
from models import MODEL, REAL
from referees.ngram_counts import counted

from qdtheory.text import as_corpus, evaluate
from qdtheory.text.intervals import random_groups
from qdtheory.text.leave_out import groups_seen
from qdtheory.text.partial_sums import partial_sums


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


def test_nothing_repeated_is_not_equal():
    """Four sentences against four with no 4-gram in common: no CND of 0 +- 0."""
    ours = [[4 * i + k for k in (0, 1, 2, 3)] for i in range(4)]
    real = [[*x[:3], 99 + x[0]] for x in ours]
    found = evaluate({"x": ours}, real)
    row = found["x"]["CND-4"]
    assert np.isnan([row.value, row.low, row.high, row.standard_error]).all()
    told = json.loads(found.to_json())["candidates"]["x"]["metrics"]["CND-4"]
    assert told == dict.fromkeys(("value", "low", "high", "standard_error"))
    (line,) = (x for x in found.warnings if x.startswith("too few repeats of order"))
    assert line.startswith("too few repeats of order 1, 2, 3, 4 in x: no interval of")
    assert line.endswith("; the data support no order")
    assert "CND-4         ? ±?" in found.to_text(80)
    frame = found.to_frame().set_index("metric")
    assert np.isnan(frame.loc["CND-4", "low"])
    assert "? ±?" in found.to_html()
    both = evaluate({"x": ours, "y": real}, real)
    compared = both.compare("x", "y")
    assert compared.better("CND-4") is None
    assert compared.sentences(4)[0] == (
        "Which is closer to real text in 4-grams is not told: too few of them are "
        "repeated or shared."
    )


@pytest.mark.parametrize("estimator", ["plug-in", "pairs", "sentence-pairs"])
def test_the_highest_order_that_the_data_support_is_told(estimator):
    rng = np.random.default_rng(0)
    texts = rng.integers(0, 40, (2, 200, 6)).tolist()
    found = evaluate({"x": texts[0]}, texts[1], 4, estimator=estimator)
    (line,) = (x for x in found.warnings if x.startswith("too few"))
    assert "too few repeats of order 4 in x: no interval of BLEU-4, Self-BLEU-4" in line
    assert line.endswith("; the data support orders up to 3")
    for metric, i in found["x"].items():
        if not metric.startswith("distinct"):  # all words are in many groups
            assert np.isnan(i.low) == metric.endswith("-4"), metric


def test_one_text_again_and_again_is_far_whatever_is_rare():
    """CND has an interval where one of its three parts is seldom seen and small."""
    rng = np.random.default_rng(1)
    real = [[*x, x[0]] for x in rng.integers(0, 5, (300, 5)).tolist()]
    ours = [[0, 1, 7, 8, 9, i % 2] for i in range(300)]
    row = evaluate({"x": ours}, real)["x"]
    assert row["CR-4"].value == 0
    assert np.isnan(row["CR-4"].low)
    assert 0 < row["CND-4"].low < row["CND-4"].high


@pytest.mark.usefixtures("as_a_user")  # hundreds of calls
@pytest.mark.parametrize(
    "size", [5, *(pytest.param(size, marks=pytest.mark.slow) for size in (20, 100))]
)
def test_few_sentences_have_intervals_that_cover_or_none(size):
    """NRR-3 and CR-3 of a law of 30 words: of 200 intervals at most 22 miss, but for
    1e-4; the jackknife alone would cover 1 % at 5 sentences."""
    rng = np.random.default_rng(2)
    law = 1 / np.arange(1, 31)
    law /= law.sum()
    exact = (law**2).sum() ** 3
    missed, alone = np.zeros(2), 0
    for _ in range(200):
        one, other = (rng.choice(30, (size, 6), p=law).tolist() for _ in range(2))
        found = evaluate({"x": one}, other, 3)["x"]
        for k, name in enumerate(("NRR-3", "CR-3")):
            i, mean = found[name], exact * (-1) ** (k + 1)
            missed[k] += i.low > mean or i.high < mean
        alone += found["NRR-3"].value == 0
    assert missed.max() <= 22
    assert alone >= {5: 100, 20: 5, 100: 0}[size]


def test_what_most_groups_do_not_change_has_no_interval():
    """Every word is in many sentences, and every sentence is of six words."""
    rng = np.random.default_rng(3)
    texts = rng.integers(0, 3, (2, 200, 6)).tolist()
    found = evaluate({"x": texts[0]}, texts[1], 2)
    assert np.isnan(found["x"]["distinct-1"].high)
    assert any(
        line.startswith("no interval of ") and "distinct-1" in line
        for line in found.warnings
    )
