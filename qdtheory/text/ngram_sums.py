r"""What the n-grams of one order add to the sums of each text.

The jackknife leaves out one group of sentences at a time. In the same pass, each n-gram
gives what every sum loses without each group that contains it. Most n-grams are in few
groups, so these losses are listed rather than held in a vector.

The n-grams of a text, sorted, are numbered in three ways, by sentence (postings), by
group and by n-gram: the rows of each numbering are runs of rows of the one above it.
Sentences stand group after group. Of "a b" and "a a", group 0, and "b c", group 1:

    by_sentence       a in 0   a in 1  |  b in 0  |  b in 2  |  c in 2
        ngram            0        0    |     1    |     1    |     2
        sentence         0        1    |     0    |     2    |     2
        counts           1        2    |     1    |     1    |     1
    by_group               a in 0      |  b in 0  |  b in 1  |  c in 1
        start                 0        |     2    |     3    |     4
        ngram                 0        |     1    |     1    |     2
        group                 0        |     0    |     1    |     1
        counts                3        |     1    |     1    |     1
    by_ngram                  a        |          b          |     c
        start                 0        |          1          |     3
        counts                3        |          2          |     1

So `np.add.reduceat` at the starts adds up one numbering to the next. What two texts
share is looked up by the numbers that n-grams have among those of all texts: these are
`by_sentence.ngram` and `by_ngram.number`.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Integer, Num

from qdtheory.text.numbered import NumberedText
from qdtheory.text.postings import Postings, changes, clipped_at_others

SMALL = 256  # counts below have a column each: nearly all n-grams have such a count
# Of a count in a code, below its subset: 64 bits hold 2**23 subsets of 2**40 n-grams.
COUNT_BITS = 40
# Of a row of `by_group` in a code, below a count: 2**32 rows, and counts up to 2**31.
ROW_BITS = 32


class BySentence(NamedTuple):
    """A row for each posting, an n-gram in a sentence."""

    ngram: Integer[np.ndarray, " postings"]  # among those of all texts
    sentence: Integer[np.ndarray, " postings"]
    counts: Integer[np.ndarray, " postings"]
    # Counts, or counts over the number of n-grams of the sentence; so below.
    values: Num[np.ndarray, " postings"]


class ByGroup(NamedTuple):
    """A row for each n-gram in a group, with sums over its sentences."""

    start: Integer[np.ndarray, " ngrams_of_groups"]  # its first posting
    ngram: Integer[np.ndarray, " ngrams_of_groups"]  # its row in `by_ngram`
    group: Integer[np.ndarray, " ngrams_of_groups"]
    counts: Integer[np.ndarray, " ngrams_of_groups"]
    values: Num[np.ndarray, " ngrams_of_groups"]


class ByNgram(NamedTuple):
    """A row for each n-gram of the text, with sums over all its sentences."""

    start: Integer[np.ndarray, " ngrams"]  # its first row in `by_group`
    number: Integer[np.ndarray, " ngrams"]  # among those of all texts
    counts: Integer[np.ndarray, " ngrams"]
    values: Num[np.ndarray, " ngrams"]


class Lookup(NamedTuple):
    """The same by the numbers of all texts' n-grams, 0 for those of others alone."""

    counts: Integer[np.ndarray, " all_ngrams"]
    values: Num[np.ndarray, " all_ngrams"]
    largest: Integer[np.ndarray, " all_ngrams"]  # count in one sentence


class TextNgrams(NamedTuple):
    """The n-grams of one order of one text, in the numberings drawn above."""

    text: NumberedText
    by_sentence: BySentence
    by_group: ByGroup
    by_ngram: ByNgram
    lookup: Lookup


class Losses(NamedTuple):
    """How many matches of Self-BLEU a sentence loses without another group."""

    sentence: Integer[np.ndarray, " losses"]
    group: Integer[np.ndarray, " losses"]
    matches: Integer[np.ndarray, " losses"]


class OrderSums(NamedTuple):
    """What the n-grams of one order add to a text's sums."""

    sums: dict[str, np.ndarray]  # by the fields of `partial_sums.Sums`
    losses: Losses
    spectrum: tuple[np.ndarray, np.ndarray]  # codes of subset and count, how many


def text_ngrams(
    every: Postings, text: NumberedText, n: int, averaged: bool
) -> TextNgrams:
    """Gather what belongs to one text of the n-grams of all texts."""
    last = text.first + text.size
    kept = (every.sentence >= text.first) & (every.sentence < last)
    ngram, sentence = every.ngram[kept], every.sentence[kept] - text.first
    counts = every.counts[kept]
    # In few bytes: these are the longest arrays, and most counts are 1.
    counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))
    # A sentence of m tokens has m - n + 1 n-grams, of weight 1 together.
    values = counts / (text.lengths[sentence] - n + 1) if averaged else counts
    new, groups = changes(ngram), text.groups[sentence]
    start = np.flatnonzero(new | changes(groups))
    first = np.flatnonzero(new[start])
    number = ngram[start[first]]

    def of_all(values: np.ndarray) -> np.ndarray:
        array = np.zeros(len(every.keys), values.dtype)
        array[number] = values
        return array

    def summed(values: np.ndarray) -> tuple[np.ndarray, ...]:
        # Integers in 64 bits: those of a byte would overflow.
        dtype = np.result_type(values, np.int64)
        in_group = np.add.reduceat(values, start, dtype=dtype)
        in_text = np.add.reduceat(in_group, first)
        return in_group, in_text, of_all(in_text)

    of_counts = of_values = summed(counts)
    if averaged:
        of_values = summed(values)
    # Of each numbering its counts and values.
    by_group, by_ngram, by_number = zip(of_counts, of_values)
    row = np.cumsum(new[start], dtype=np.int32) - np.int32(1)
    return TextNgrams(
        text,
        BySentence(ngram, sentence, counts, values),
        ByGroup(start, row, groups[start], *by_group),
        ByNgram(first, number, *by_ngram),
        Lookup(*by_number, of_all(np.maximum.reduceat(counts, np.flatnonzero(new)))),
    )


def order_sums(ours: TextNgrams, real: TextNgrams, matches: np.ndarray) -> OrderSums:
    """Add up a text, whole and without each group.

    The matches of its sentences, with the references and with each other, are added to
    the two rows of `matches`.
    """
    postings, by_group, first = ours.by_sentence, ours.by_group, ours.by_ngram.start
    self_matches = clipped_at_others(postings.counts, by_group.start[first])
    # BLEU clips a count at the largest in one reference.
    bleu_matches = np.minimum(postings.counts, real.lookup.largest[postings.ngram])
    for row, clipped in zip(matches, (bleu_matches, self_matches)):
        np.add.at(row, postings.sentence, clipped.astype(row.dtype))
    # An n-gram in a single group is one less without it.
    alone = first[np.diff(first, append=len(by_group.group)) == 1]
    alone = np.bincount(by_group.group[alone], minlength=ours.text.num_groups)
    squares, within = repeats(ours)
    sums = {
        "distinct": len(first) - np.append(0, alone),
        "squares": squares,
        "within": within,
        "common": _common(ours, real),
        "overlap": _overlap(ours, real),
        "real_common": _common(real, ours),
        "real_overlap": _overlap(real, ours),
    }
    return OrderSums(sums, _losses(ours), _spectrum(ours))


def _losses(ours: TextNgrams) -> Losses:
    r"""List the matches of Self-BLEU that sentences lose without a group of others.

    Let an n-gram have count c in a sentence s of group g, and at most $C_k$ in a
    sentence of group k. The matches of s are c clipped at the largest count elsewhere:
    in a group h, or M, in groups $k \ne g, h$ and in the other sentences of g. Without
    h some are lost exactly if $C_h > M$ and $c > M$, and they are
    $\min(c, C_h) - M$. So h can only be the first of all groups but g, in the order of
    $C_k$: the first of all or, if this is g, the second.
    """
    counts, by_group, by_ngram = ours.by_sentence.counts, ours.by_group, ours.by_ngram
    # C followed by the number of the row, from 1 on: no two are equal, so that a
    # maximum tells its group, and 0 is below all.
    most = np.maximum.reduceat(counts, by_group.start)
    codes = (most.astype(np.int64) << ROW_BITS) + np.arange(1, len(most) + 1)
    largest = []
    for _ in range(3):
        largest.append(np.maximum.reduceat(codes, by_ngram.start))
        codes[codes == largest[-1][by_group.ngram]] = 0
    # M is at least the third C, so that few counts are above it. In a single group none
    # are: there is no h.
    limit = np.where(largest[1] > 0, largest[2] >> ROW_BITS, most.max(initial=0))
    limit = limit.astype(most.dtype)[by_group.ngram]
    sizes = np.diff(by_group.start, append=len(counts))
    above = np.flatnonzero(counts > np.repeat(limit, sizes))
    c, row = counts[above], np.searchsorted(by_group.start, above, "right") - 1
    first, second, third = (code[by_group.ngram[row]] for code in largest)
    row_of = (1 << ROW_BITS) - 1
    is_first, is_second = ((code & row_of) == row + 1 for code in (first, second))
    h = np.where(is_first, second, first)
    in_others = np.where(is_first | is_second, third, second) >> ROW_BITS
    # Counts of g up to the third C are not needed for M, and where the clip at c lowers
    # M nothing is lost in either case.
    in_own = clipped_at_others(c, np.flatnonzero(changes(row)))
    lost = np.minimum(c, h >> ROW_BITS) - np.maximum(in_others, in_own)
    some = np.flatnonzero(lost > 0)
    sentence = ours.by_sentence.sentence[above[some]].astype(np.int64)
    return Losses(sentence, by_group.group[(h[some] & row_of) - 1], lost[some])


def repeats(ours: TextNgrams) -> tuple[np.ndarray, np.ndarray]:
    r"""The sums `squares` and `within` of a text, and without each group.

    With c the value of an n-gram and x that in the group, the first loses
    $c^2 - (c - x)^2 = x (2 c - x)$.
    """
    values, start = ours.by_sentence.values, ours.by_group.start
    c, x = ours.by_ngram.values, ours.by_group.values
    loss = x * (2 * c[ours.by_group.ngram] - x)
    within = np.square(values, dtype=np.result_type(values, np.int64))
    within = np.add.reduceat(within, start)
    return _without((c**2).sum(), loss, ours), _without(within.sum(), within, ours)


def _without(whole: Any, losses: np.ndarray, ours: TextNgrams) -> np.ndarray:
    """A sum over all groups, and without each: so much less for each of its n-grams."""
    lost = _added_up(losses, ours.by_group.group, ours.text.num_groups)
    return whole - np.append(0, lost)


def _common(ours: TextNgrams, other: TextNgrams) -> np.ndarray:
    """The sum of products c r of values of two texts, which without x loses x r."""
    r = other.lookup.values[ours.by_ngram.number]
    loss = ours.by_group.values * r[ours.by_group.ngram]
    return _without((ours.by_ngram.values * r).sum(), loss, ours)


def _overlap(ours: TextNgrams, other: TextNgrams) -> np.ndarray:
    r"""Sums of $\min(c R, r S)$ over n-grams, whole and without each group.

    Without a group of s sentences, S - s replaces S for every n-gram, and c - x
    replaces c for those of the group. So the whole sum is needed at each S - s, and
    loses $\min(c R, r (S - s)) - \min((c - x) R, r (S - s))$ over the group's n-grams.
    """
    text, by_group, num_other = ours.text, ours.by_group, other.text.size
    r = other.lookup.counts[ours.by_ngram.number]
    c = ours.by_ngram.counts * num_other
    shared = r > 0
    sizes = text.size - np.append(0, np.diff(text.bounds))
    # Groups have at most two sizes, so these are two or three sums over all n-grams.
    whole = {
        size: np.minimum(c, r * size, where=shared, out=np.zeros_like(c)).sum()
        for size in np.unique(sizes)
    }
    overlap = np.array([whole[size] for size in sizes])
    # An n-gram that the other text lacks adds 0 to all of them.
    rows = np.flatnonzero(shared[by_group.ngram])
    ngram, group = by_group.ngram[rows], by_group.group[rows]
    limit = r[ngram] * sizes[1:][group]
    remaining = c[ngram] - by_group.counts[rows] * num_other
    loss = np.minimum(c[ngram], limit) - np.minimum(remaining, limit)
    overlap[1:] -= _added_up(loss, group, text.num_groups)
    return overlap


def _spectrum(ours: TextNgrams) -> tuple[np.ndarray, np.ndarray]:
    """How many n-grams have which count, of all groups and without each.

    Without a group only its own n-grams have another count: the spectrum of all loses
    the counts that these had before, and gains those that they have after. A table has
    a column for each small count, and for each large one that occurs.
    """
    num_subsets, total = ours.text.num_groups + 1, ours.by_ngram.counts
    before = total[ours.by_group.ngram]
    after = before - ours.by_group.counts
    large = np.unique(np.concatenate([x[x >= SMALL] for x in (total, after)]))
    counts = np.append(np.arange(SMALL), large)

    def tallied(subset: Any, some: np.ndarray) -> np.ndarray:
        column = some.copy()
        # Few are large: only these are searched for.
        few = np.flatnonzero(some >= SMALL)
        column[few] = SMALL + np.searchsorted(large, some[few])
        size = len(counts)
        cells = np.bincount(subset * size + column, minlength=num_subsets * size)
        return cells.reshape(num_subsets, -1)

    subset = ours.by_group.group.astype(np.int64) + 1
    table = tallied(subset, after) - tallied(subset, before) + tallied(0, total)[0]
    table[:, 0] = 0  # no n-gram any more
    subset, column = np.nonzero(table)
    return subset << COUNT_BITS | counts[column], table[subset, column]


def _added_up(values: np.ndarray, group: np.ndarray, num_groups: int) -> np.ndarray:
    """Sums by group; exact for integers, which `np.bincount` adds up as floats."""
    sums = np.zeros(num_groups, values.dtype)
    np.add.at(sums, group, values)
    return sums
