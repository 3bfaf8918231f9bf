r"""What the n-grams of one order add to the sums of each text.

The jackknife leaves out one group of sentences at a time. In the same pass, each n-gram
gives what every sum loses without each group that contains it. Most n-grams are in few
groups, so these losses are listed rather than held in a vector.
"""

from typing import Any, NamedTuple

import numpy as np

from qdtheory.text.numbered import NumberedText
from qdtheory.text.postings import Postings, changes, clipped_at_others

SMALL = 256  # counts below have a table
COUNT_BITS = 40  # of a count in a code, below its subset
RUN_BITS = 32  # of the number of a group's n-gram in a code, below its count


class Summed(NamedTuple):
    """Sums over the sentences that have an n-gram: of each group, and of the text."""

    by_group: np.ndarray
    by_ngram: np.ndarray
    of_all: np.ndarray  # the same for the n-grams of all texts


class TextNgrams(NamedTuple):
    """The n-grams of one order of one text: in its sentences, their groups, and in all.

    Sentences stand group after group, and so do the groups of an n-gram. Values are
    counts, or counts over the number of n-grams of the sentence.
    """

    text: NumberedText
    posting: np.ndarray  # for each n-gram of a sentence its number among all texts'
    sentence: np.ndarray
    counts: np.ndarray
    values: np.ndarray
    starts: np.ndarray  # of each n-gram of a group, its first sentence
    numbers: np.ndarray  # of each n-gram, its number among those of all texts
    first: np.ndarray  # of each n-gram, its first group
    ngram: np.ndarray  # for each n-gram of a group its place in `numbers`
    group: np.ndarray
    count_sums: Summed
    value_sums: Summed
    most: np.ndarray  # largest count in one sentence, of the n-grams of all texts


class OrderSums(NamedTuple):
    """What the n-grams of one order add to a text's sums."""

    sums: list[np.ndarray]
    lost: tuple[np.ndarray, np.ndarray, np.ndarray]  # sentence, group, how many
    spectrum: tuple[np.ndarray, np.ndarray]  # codes of subset and count, how many


def text_ngrams(
    every: Postings, text: NumberedText, n: int, averaged: bool
) -> TextNgrams:
    """Gather what belongs to one text of the n-grams of all texts."""
    last = text.first + text.size
    kept = (every.sentence >= text.first) & (every.sentence < last)
    posting, sentence = every.ngram[kept], every.sentence[kept] - text.first
    counts = every.counts[kept]
    counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))
    new, groups = changes(posting), text.groups[sentence]
    starts = np.flatnonzero(new | changes(groups))
    first = np.flatnonzero(new[starts])
    numbers = posting[starts[first]]

    def of_all(values: np.ndarray) -> np.ndarray:
        array = np.zeros(len(every.keys), values.dtype)
        array[numbers] = values
        return array

    def summed(values: np.ndarray) -> Summed:
        # Of integers in 64 bits.
        dtype = np.result_type(values, np.int64)
        by_group = np.add.reduceat(values, starts, dtype=dtype)
        by_ngram = np.add.reduceat(by_group, first)
        return Summed(by_group, by_ngram, of_all(by_ngram))

    values, count = counts, summed(counts)
    value = count
    if averaged:
        values = counts / (text.lengths[sentence] - n + 1)
        value = summed(values)
    return TextNgrams(
        text=text,
        posting=posting,
        sentence=sentence,
        counts=counts,
        values=values,
        starts=starts,
        numbers=numbers,
        first=first,
        ngram=np.cumsum(new[starts], dtype=np.int32) - np.int32(1),
        group=groups[starts],
        count_sums=count,
        value_sums=value,
        most=of_all(np.maximum.reduceat(counts, np.flatnonzero(new))),
    )


def order_sums(ours: TextNgrams, real: TextNgrams, matches: np.ndarray) -> OrderSums:
    """Add up a text, whole and without each group.

    The matches of its sentences, with the references and with each other, are added to
    the two rows of `matches`.
    """
    text = ours.text
    alike, lost = _self_matches(ours)
    found = np.minimum(ours.counts, real.most[ours.posting]), alike
    for row, values in zip(matches, found):
        np.add.at(row, ours.sentence, values.astype(row.dtype))
    alone = ours.first[np.diff(ours.first, append=len(ours.ngram)) == 1]
    ones = np.ones(len(alone), int)
    sums = [
        _without(len(ours.numbers), ours.group[alone], ones, text),
        *repeats(ours),
        _common(ours, real),
        _overlap(ours, real),
        _common(real, ours),
        _overlap(real, ours),
    ]
    return OrderSums(sums, lost, _spectrum(ours))


def _self_matches(
    ours: TextNgrams,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Match each n-gram of a sentence with the other sentences of its text.

    Each count is clipped at the largest of the others. Returns the matches; and those
    that a sentence loses without a group of others: the sentence, the group, how many.

    A sentence can only miss the other group with the largest count, the leader, or the
    second group if its own leads. Then it is clipped at the largest count of the rest:
    of the next group, or of the other sentences of its own.
    """
    alike = clipped_at_others(ours.counts, ours.starts[ours.first])
    # The largest counts of three groups: numbered, so that no two are equal.
    most = np.maximum.reduceat(ours.counts, ours.starts)
    codes = (most.astype(np.int64) << RUN_BITS) + np.arange(1, len(most) + 1)
    largest = []
    for _ in range(3):
        largest.append(np.maximum.reduceat(codes, ours.first))
        codes[codes == largest[-1][ours.ngram]] = 0
    # The third largest remains in any case, and without a second there is no match.
    remains = np.where(largest[1] > 0, largest[2] >> RUN_BITS, most.max(initial=0))
    remains = remains.astype(most.dtype)[ours.ngram]
    sizes = np.diff(ours.starts, append=len(ours.counts))
    kept = np.flatnonzero(ours.counts > np.repeat(remains, sizes))
    run, counts = np.searchsorted(ours.starts, kept, "right") - 1, ours.counts[kept]
    one, two, three = (x[ours.ngram[run]] for x in largest)
    last = (1 << RUN_BITS) - 1
    leads, follows = ((x & last) == run + 1 for x in (one, two))
    missed = np.where(leads, two, one)
    rest = np.where(leads | follows, three, two) >> RUN_BITS
    own = clipped_at_others(counts, np.flatnonzero(changes(run)))
    losses = np.minimum(counts, missed >> RUN_BITS) - np.maximum(rest, own)
    lost = np.flatnonzero(losses > 0)
    group = ours.group[(missed[lost] & last) - 1]
    return alike, (ours.sentence[kept[lost]].astype(np.int64), group, losses[lost])


def repeats(ours: TextNgrams) -> list[np.ndarray]:
    """The sums `squares` and `within` of a text, and without each group."""
    text, value, x = ours.text, ours.value_sums.by_ngram, ours.value_sums.by_group
    squares = np.square(ours.values, dtype=np.result_type(ours.values, np.int64))
    squares = np.add.reduceat(squares, ours.starts)
    loss = x * (2 * value[ours.ngram] - x)
    return [
        _without((value**2).sum(), ours.group, loss, text),
        _without(squares.sum(), ours.group, squares, text),
    ]


def _without(
    whole: Any, group: np.ndarray, loss: np.ndarray, text: NumberedText
) -> np.ndarray:
    """A sum over all groups, and without each, which loses so much."""
    return whole - np.append(0, _by_group(group, loss, text.num_groups))


def _common(ours: TextNgrams, other: TextNgrams) -> np.ndarray:
    """The sum of products of values of two texts, without each group of the first."""
    theirs = other.value_sums.of_all[ours.numbers]
    loss = ours.value_sums.by_group * theirs[ours.ngram]
    whole = (ours.value_sums.by_ngram * theirs).sum()
    return _without(whole, ours.group, loss, ours.text)


def _overlap(ours: TextNgrams, other: TextNgrams) -> np.ndarray:
    r"""Sums of $\min(c R, r S)$; without a group, c and S are smaller."""
    text, size = ours.text, other.text.size
    theirs = other.count_sums.of_all[ours.numbers]
    counts = ours.count_sums.by_ngram * size
    shared = theirs > 0
    sizes = text.size - np.append(0, np.diff(text.bounds))
    # Groups have at most two sizes.
    whole = {
        rest: np.minimum(
            counts, theirs * rest, where=shared, out=np.zeros_like(counts)
        ).sum()
        for rest in np.unique(sizes)
    }
    kept = np.flatnonzero(shared[ours.ngram])
    ngram, group = ours.ngram[kept], ours.group[kept]
    limit = theirs[ngram] * sizes[1:][group]
    left = counts[ngram] - ours.count_sums.by_group[kept] * size
    loss = np.minimum(counts[ngram], limit) - np.minimum(left, limit)
    overlap = np.array([whole[rest] for rest in sizes])
    overlap[1:] -= _by_group(group, loss, text.num_groups)
    return overlap


def _spectrum(ours: TextNgrams) -> tuple[np.ndarray, np.ndarray]:
    """How many n-grams have which count, of all groups and without each.

    Without a group only its own n-grams have another count. A table has a column for
    each small count, which most n-grams have, and for each large one that occurs.
    """
    num_groups, total = ours.text.num_groups, ours.count_sums.by_ngram
    before = total[ours.ngram]
    after = before - ours.count_sums.by_group
    large = np.unique(np.concatenate([x[x >= SMALL] for x in (total, after)]))
    counts = np.append(np.arange(SMALL), large)

    def tallied(subset: Any, some: np.ndarray) -> np.ndarray:
        column = some.copy()
        few = np.flatnonzero(some >= SMALL)
        column[few] = SMALL + np.searchsorted(large, some[few])
        cells = np.bincount(
            subset * len(counts) + column, minlength=(num_groups + 1) * len(counts)
        )
        return cells.reshape(num_groups + 1, -1)

    own = ours.group.astype(np.int64) + 1
    table = tallied(own, after) - tallied(own, before) + tallied(0, total)[0]
    table[:, 0] = 0  # no n-gram any more
    subset, column = np.nonzero(table)
    return subset << COUNT_BITS | counts[column], table[subset, column]


def _by_group(group: np.ndarray, values: np.ndarray, num_groups: int) -> np.ndarray:
    """Sums by group; exact for integers, which `np.bincount` adds up as floats."""
    sums = np.zeros(num_groups, values.dtype)
    np.add.at(sums, group, values)
    return sums
