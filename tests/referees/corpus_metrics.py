"""The metrics of corpora, each by its own function, and of corpora without a group."""

from fractions import Fraction
from math import comb

from qdtheory.text import (
    bleu,
    cnd,
    coverage_rate,
    distinct,
    ms_jaccard,
    negative_repetition_rate,
    self_bleu,
)
from qdtheory.text.intervals import random_groups


def one_by_one(candidates, references, max_order=4, smoothed=None, estimated=None):
    """Every metric of a report, a row for each, with a column for each order.

    The last two are the options of BLEU and of rates of n-grams, if not the defaults.
    """
    smoothed, estimated = smoothed or {}, estimated or {}
    orders = range(1, max_order + 1)
    return [
        bleu(candidates, references, max_order, **smoothed),
        self_bleu(candidates, max_order, **smoothed),
        [coverage_rate(candidates, references, n, **estimated) for n in orders],
        [negative_repetition_rate(candidates, n, **estimated) for n in orders],
        [cnd(candidates, references, n, **estimated) for n in orders],
        [distinct(candidates, n) for n in orders],
        ms_jaccard(candidates, references, max_order),
    ]


def without_each_group(corpus) -> list:
    """A corpus, or rows of an array, without each group that the jackknife makes."""
    group = random_groups(len(corpus), min(20, len(corpus)))
    return [corpus[group != g] for g in range(group.max() + 1)]


def distinct_among(counts, draws) -> float:
    """Different classes expected among some draws of all, by whole binomials."""
    n = sum(counts)
    unseen = [Fraction(comb(n - c, draws), comb(n, draws)) for c in counts]
    return float(len(counts) - sum(unseen))
