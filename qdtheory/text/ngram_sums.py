r"""What the n-grams of one order add to the sums of each text.

The jackknife leaves out one group of sentences at a time. In the same pass, each n-gram
gives what every sum loses without each group that contains it. Most n-grams are in few
groups, so these losses are listed rather than held in a vector.
"""

from typing import Any, NamedTuple

import numpy as np

from qdtheory.text.postings import Postings, changes
from qdtheory.text.self_matches import self_matches
from qdtheory.text.sides import Side

SMALL = 256  # counts below have a table
COUNT_BITS = 40  # of a count in a code, below its subset


class _Own(NamedTuple):
    """The runs of one text among those of all."""

    which: np.ndarray
    owner: np.ndarray
    times: np.ndarray
    values: np.ndarray  # times, or times over the number of n-grams of the sentence


class Parts(NamedTuple):
    """The n-grams of one text, and how often each is in each group of its sentences.

    A part is an n-gram in a group. Sentences stand group after group, and so do the
    parts of an n-gram.
    """

    which: np.ndarray  # of each n-gram, its place among those of all texts
    first: np.ndarray  # of each n-gram, its first part
    total: np.ndarray  # of each n-gram
    value: np.ndarray  # the same of values
    ngram: np.ndarray  # of each part
    group: np.ndarray
    counts: np.ndarray
    values: np.ndarray


class Known(NamedTuple):
    """The references' n-grams of one order, those of any text in their places."""

    most: np.ndarray  # largest count in one sentence
    counts: np.ndarray
    value: np.ndarray
    parts: Parts
    sums: list[np.ndarray]  # `squares` and `within`
    side: Side


class Added(NamedTuple):
    """What the n-grams of one order add to a text's sums."""

    sums: list[np.ndarray]
    bleu: np.ndarray
    self_bleu: np.ndarray
    lost: tuple[np.ndarray, np.ndarray, np.ndarray]  # sentence, group, how many
    spectrum: tuple[np.ndarray, np.ndarray]  # codes of subset and count, how many


def _own(found: Postings, side: Side, n: int, averaged: bool) -> _Own:
    last = side.first + side.size
    kept = np.flatnonzero((found.sentence >= side.first) & (found.sentence < last))
    owner, times = found.sentence[kept] - side.first, found.counts[kept]
    values = times / (side.lengths[owner] - n + 1) if averaged else times
    return _Own(found.ngram[kept], owner, times.astype(np.int32), values)


def known_of(found: Postings, side: Side, n: int, averaged: bool) -> Known:
    """Gather what is needed of the references' n-grams.

    Args:
        found: the n-grams of one order of all texts.
        side: the references.
        n: the order.
        averaged: whether counts are divided by the n-grams of their sentence.

    Returns:
        Their counts, each n-gram of any text in its place.
    """
    own = _own(found, side, n, averaged)
    parts = _parts(own, side)
    most = np.maximum.reduceat(own.times, np.flatnonzero(changes(own.which)))
    counts, value = _placed(found, parts)
    return Known(
        most=_in_place(found, parts, most),
        counts=counts,
        value=value,
        parts=parts,
        sums=_repeats(own, parts, side),
        side=side,
    )


def added_of(
    found: Postings, side: Side, known: Known, n: int, averaged: bool
) -> Added:
    """Add up what the n-grams of one order are in a text.

    Args:
        found: the n-grams of this order of all texts.
        side: the text.
        known: the references.
        n: the order.
        averaged: whether counts are divided by the n-grams of their sentence.

    Returns:
        Sums of the text and of it without each group, and matches of its sentences.
    """
    own = _own(found, side, n, averaged)
    parts = _parts(own, side)
    alike, lost = self_matches(own.which, own.owner, own.times, side.groups[own.owner])
    # Clipped matches are at most as many as the sentence has tokens.
    dtype = np.min_scalar_type(side.lengths.max())

    def by_sentence(matches: np.ndarray) -> np.ndarray:
        return np.bincount(own.owner, matches, side.size).astype(dtype)

    alone = parts.first[np.diff(parts.first, append=len(parts.ngram)) == 1]
    ones = np.ones(len(alone), int)
    counts, value = _placed(found, parts)
    sums = [
        _without(len(parts.which), parts.group[alone], ones, side),
        *_repeats(own, parts, side),
        _common(parts, side, known.value),
        _overlap(parts, side, known.counts, known.side.size),
        _common(known.parts, known.side, value),
        _overlap(known.parts, known.side, counts, side.size),
    ]
    return Added(
        sums=sums,
        bleu=by_sentence(np.minimum(own.times, known.most[own.which])),
        self_bleu=by_sentence(alike),
        lost=lost,
        spectrum=_spectrum(parts, side.num_groups),
    )


def _parts(own: _Own, side: Side) -> Parts:
    new, groups = changes(own.which), side.groups[own.owner]
    starts = np.flatnonzero(new | changes(groups))
    first = np.flatnonzero(new[starts])
    counts = values = _sums_of(own.times, starts)
    total = value = np.add.reduceat(counts, first)
    if own.values.dtype.kind == "f":
        values = _sums_of(own.values, starts)
        value = np.add.reduceat(values, first)
    return Parts(
        which=own.which[starts[first]],
        first=first,
        total=total,
        value=value,
        ngram=np.cumsum(new[starts], dtype=np.int32) - np.int32(1),
        group=groups[starts],
        counts=counts,
        values=values,
    )


def _placed(found: Postings, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """Counts and values of a text's n-grams, those of all texts in their places."""
    counts = value = _in_place(found, parts, parts.total)
    if parts.value is not parts.total:
        value = _in_place(found, parts, parts.value)
    return counts, value


def _in_place(found: Postings, parts: Parts, values: np.ndarray) -> np.ndarray:
    array = np.zeros(len(found.keys), values.dtype)
    array[parts.which] = values
    return array


def _without(whole: Any, group: np.ndarray, loss: np.ndarray, side: Side) -> np.ndarray:
    """A sum over all groups, and without each, which loses so much."""
    return whole - np.append(0, _by_group(group, loss, side.num_groups))


def _repeats(own: _Own, parts: Parts, side: Side) -> list[np.ndarray]:
    """The sums `squares` and `within`."""
    value, x, squares = parts.value, parts.values, _squares(own.values)
    loss = x * (2 * value[parts.ngram] - x)
    return [
        _without((value**2).sum(), parts.group, loss, side),
        _without(squares.sum(), side.groups[own.owner], squares, side),
    ]


def _common(parts: Parts, side: Side, other: np.ndarray) -> np.ndarray:
    """The sum of products of values of a text and another's, without each group."""
    theirs = other[parts.which]
    loss = parts.values * theirs[parts.ngram]
    return _without((parts.value * theirs).sum(), parts.group, loss, side)


def _sums_of(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums from each start to the next, of integers in 64 bits."""
    return np.add.reduceat(values, starts, dtype=np.result_type(values, np.int64))


def _squares(values: np.ndarray) -> np.ndarray:
    return np.square(values, dtype=np.result_type(values, np.int64))


def _overlap(parts: Parts, side: Side, other: np.ndarray, size: int) -> np.ndarray:
    r"""Sums of $\min(c R, r S)$; without a group, c and S are smaller."""
    theirs, ours = other[parts.which], parts.total * size
    shared = theirs > 0
    sizes = side.size - np.append(0, np.diff(side.bounds))
    # Groups have at most two sizes.
    whole = {
        rest: np.minimum(
            ours, theirs * rest, where=shared, out=np.zeros_like(ours)
        ).sum()
        for rest in np.unique(sizes)
    }
    kept = np.flatnonzero(shared[parts.ngram])
    ngram, group = parts.ngram[kept], parts.group[kept]
    limit = theirs[ngram] * sizes[1:][group]
    left = ours[ngram] - parts.counts[kept] * size
    loss = np.minimum(ours[ngram], limit) - np.minimum(left, limit)
    found = np.array([whole[rest] for rest in sizes])
    found[1:] -= _by_group(group, loss, side.num_groups)
    return found


def _spectrum(parts: Parts, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """How many n-grams have which count, of all groups and without each.

    Without a group only its own n-grams have another count. Small counts, which most
    n-grams have, are told by a table, the others by a sort.
    """
    total, before = parts.total, parts.total[parts.ngram]
    subset = parts.group.astype(np.int64) + 1
    table, codes, numbers = _tallied(np.zeros_like(total), total, num_groups)
    table[1:] = table[0]
    subsets = np.arange(num_groups + 1)
    every = [(subsets[:, None] << COUNT_BITS | codes).ravel()]
    many = [np.tile(numbers, len(subsets))]
    for sign, changed in ((-1, before), (1, before - parts.counts)):
        own, codes, numbers = _tallied(subset, changed, num_groups)
        table += sign * own
        every.append(codes)
        many.append(sign * numbers)
    table[:, 0] = 0  # no n-gram any more
    few = np.nonzero(table)
    every.append(few[0] << COUNT_BITS | few[1])
    many.append(table[few])
    codes, place = np.unique(np.concatenate(every), return_inverse=True)
    numbers = np.zeros(len(codes), np.int64)
    np.add.at(numbers, place, np.concatenate(many))
    kept = np.flatnonzero(numbers)
    return codes[kept], numbers[kept]


def _tallied(
    subset: np.ndarray, count: np.ndarray, num_groups: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table of subsets by small counts; codes of the others, and their numbers."""
    large = np.flatnonzero(count >= SMALL)
    codes = subset[large] << COUNT_BITS | count[large]
    codes, numbers = np.unique(codes, return_counts=True)
    # The large ones go where no n-gram is counted.
    places = np.where(count < SMALL, subset * SMALL + count, 0)
    table = np.bincount(places, minlength=(num_groups + 1) * SMALL)
    return table.reshape(num_groups + 1, SMALL), codes, numbers


def _by_group(group: np.ndarray, values: np.ndarray, num_groups: int) -> np.ndarray:
    """Sums by group; exact for integers, which `np.bincount` adds up as floats."""
    if values.dtype.kind == "f" or not len(values):
        return np.bincount(group, values, num_groups)
    if int(values.max()) * len(values) < 2**53:
        return np.bincount(group, values, num_groups).astype(np.int64)
    low, high = values & (2**26 - 1), values >> 26
    sums = (np.bincount(group, x, num_groups).astype(np.int64) for x in (low, high))
    return next(sums) + (next(sums) << 26)
