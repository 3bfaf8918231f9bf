r"""What the n-grams of one order add to the sums of each text.

The jackknife leaves out one group of sentences at a time. In the same pass, each n-gram
gives what every sum loses without each group that contains it. Most n-grams are in few
groups, so these losses are listed rather than held in a vector.
"""

from typing import Any, NamedTuple

import numpy as np

from qdtheory.text.runs import Runs, changes
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


class Known(NamedTuple):
    """The references' n-grams of one order, each n-gram of any text in its place."""

    most: np.ndarray  # largest count in one sentence
    counts: np.ndarray
    value: np.ndarray
    within: np.ndarray
    size: int  # number of references


class Added(NamedTuple):
    """What the n-grams of one order add to a text's sums."""

    sums: list[np.ndarray]
    bleu: np.ndarray
    self_bleu: np.ndarray
    lost: tuple[np.ndarray, np.ndarray, np.ndarray]  # sentence, group, how many
    spectrum: tuple[np.ndarray, np.ndarray]  # codes of subset and count, how many


def _own(found: Runs, side: Side, n: int, averaged: bool) -> _Own:
    last = side.first + side.size
    kept = np.flatnonzero((found.owner >= side.first) & (found.owner < last))
    owner, times = found.owner[kept] - side.first, found.times[kept]
    values = times / (side.lengths[owner] - n + 1) if averaged else times
    return _Own(found.which[kept], owner, times.astype(np.int32), values)


def known_of(found: Runs, side: Side, n: int, averaged: bool) -> Known:
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
    first = np.flatnonzero(changes(own.which))

    def placed(values: np.ndarray) -> np.ndarray:
        array = np.zeros(len(found.keys), values.dtype)
        array[own.which[first]] = values
        return array

    return Known(
        most=placed(np.maximum.reduceat(own.times, first)),
        counts=placed(_sums_of(own.times, first)),
        value=placed(_sums_of(own.values, first)),
        within=_squares(own.values).sum(),
        size=side.size,
    )


def added_of(found: Runs, side: Side, known: Known, n: int, averaged: bool) -> Added:
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
    sizes = np.diff(side.bounds)
    groups = np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes)[own.owner]
    alike, lost = self_matches(own.which, own.owner, own.times, groups)
    # Clipped matches are at most as many as the sentence has tokens.
    dtype = np.min_scalar_type(side.lengths.max())

    def by_sentence(matches: np.ndarray) -> np.ndarray:
        return np.bincount(own.owner, matches, side.size).astype(dtype)

    sums, spectrum = _sums(own, groups, side, known)
    return Added(
        sums=sums,
        bleu=by_sentence(np.minimum(own.times, known.most[own.which])),
        self_bleu=by_sentence(alike),
        lost=lost,
        spectrum=spectrum,
    )


def _sums(own: _Own, groups: np.ndarray, side: Side, known: Known) -> tuple[list, Any]:
    """The sums of `Sums` and the spectra, of all groups and without each."""
    new = changes(own.which)
    # Sentences stand group after group, and so do the runs of an n-gram.
    parts = np.flatnonzero(new | changes(groups))
    group, first = groups[parts], np.flatnonzero(new[parts])
    ngram = np.cumsum(new[parts]) - 1
    which = own.which[parts[first]]
    alone = first[np.diff(first, append=len(parts)) == 1]
    # Of each n-gram in each group, and of each n-gram.
    x = _sums_of(own.values, parts)
    value = np.add.reduceat(x, first)

    def without(whole: Any, group: np.ndarray, loss: np.ndarray) -> np.ndarray:
        return whole - np.append(0, _by_group(group, loss, side.num_groups))

    theirs = known.value[which]
    squares = _squares(own.values)
    counts = _sums_of(own.times, parts)
    total = np.add.reduceat(counts, first)
    sums = [
        without(len(which), group[alone], np.ones(len(alone), int)),
        without((value**2).sum(), group, x * (2 * value[ngram] - x)),
        without(squares.sum(), groups, squares),
        without((value * theirs).sum(), group, x * theirs[ngram]),
        _overlap(counts, total, group, ngram, which, side, known),
    ]
    return sums, _spectrum(counts, total, group, ngram, side.num_groups)


def _sums_of(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums from each start to the next, of integers in 64 bits."""
    return np.add.reduceat(values, starts, dtype=np.result_type(values, np.int64))


def _squares(values: np.ndarray) -> np.ndarray:
    return np.square(values, dtype=np.result_type(values, np.int64))


def _overlap(
    counts: np.ndarray,
    total: np.ndarray,
    group: np.ndarray,
    ngram: np.ndarray,
    which: np.ndarray,
    side: Side,
    known: Known,
) -> np.ndarray:
    r"""Sums of $\min(c R, r S)$; without a group, c and S are smaller."""
    theirs, ours = known.counts[which], total * known.size
    shared = theirs > 0
    sizes = side.size - np.append(0, np.diff(side.bounds))
    # Groups have at most two sizes.
    whole = {
        size: np.minimum(
            ours, theirs * size, where=shared, out=np.zeros_like(ours)
        ).sum()
        for size in np.unique(sizes)
    }
    kept = np.flatnonzero(shared[ngram])
    ngram, group = ngram[kept], group[kept]
    limit = theirs[ngram] * sizes[1:][group]
    left = ours[ngram] - counts[kept] * known.size
    loss = np.minimum(ours[ngram], limit) - np.minimum(left, limit)
    found = np.array([whole[size] for size in sizes])
    found[1:] -= _by_group(group, loss, side.num_groups)
    return found


def _spectrum(
    counts: np.ndarray,
    total: np.ndarray,
    group: np.ndarray,
    ngram: np.ndarray,
    num_groups: int,
) -> tuple[np.ndarray, np.ndarray]:
    """How many n-grams have which count, of all groups and without each.

    Without a group only its own n-grams have another count. Small counts, which most
    n-grams have, are told by a table, the others by a sort.
    """
    before, subset = total[ngram], group.astype(np.int64) + 1
    table, codes, numbers = _tallied(np.zeros_like(total), total, num_groups)
    table[1:] = table[0]
    subsets = np.arange(num_groups + 1)
    every = [(subsets[:, None] << COUNT_BITS | codes).ravel()]
    many = [np.tile(numbers, len(subsets))]
    for sign, changed in ((-1, before), (1, before - counts)):
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
