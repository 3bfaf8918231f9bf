r"""Sums over n-grams that all metrics of `evaluate` are made of, and that add up.

Every metric is a function of sums over n-grams, $\sum_g s(c_g, r_g)$, and of sums over
the n-grams of each sentence. So the n-grams can be dealt out to K parts: each part
adds up its own, and parts add, in any order. An n-gram belongs to the part that a hash
of its first two tokens names. Then its prefixes, too, are in this part, which numbers
its n-grams one order after another: equal numbers are equal n-grams, of any order and
any vocabulary, and nothing collides.

The jackknife leaves out one group of sentences at a time. In the same pass, each n-gram
gives what every sum loses without each group that contains it. Most n-grams are in few
groups, so these losses are listed rather than held in a vector. The clipped matches of
Self-BLEU are lost too: without group h sentence s, of another group, matches an n-gram
less often only if all other sentences that have it as often as s are in h. That is true
of at most one group, which the largest counts of the n-gram tell.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Integer, Num

from qdtheory.text.corpus import Corpus, common_ids, prefix_sums, slices
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.hashing import hashed
from qdtheory.text.intervals import random_groups
from qdtheory.text.ngrams import check_order
from qdtheory.text.runs import Runs, Windows, changes, orders, sorted_keys
from qdtheory.world.records import Record

MAX_GROUPS = 255  # numbered in a byte
MAX_PARTS = 512
REFERENCES = "\0"  # no candidate is called so
# What counting takes, measured: with the imports, a sentence, and a place of a part.
START_BYTES, SENTENCE_BYTES, PLACE_BYTES = 120 * 10**6, 30, 100


class Lengths(Record):
    """How many sentences of each group have which length.

    Attributes:
        values: the lengths, ascending.
        times: the number of sentences of each group and length.
    """

    values: Int[np.ndarray, " lengths"]
    times: Int[np.ndarray, "groups lengths"]


class Block(Record):
    """What some parts know of the sentences of one group, in the order of the text.

    Attributes:
        lengths: of the sentences.
        bleu: matches with the references, clipped at the largest count in one.
        self_bleu: matches with the other sentences, clipped at their largest count.
        lost: which matches of Self-BLEU are lost without another group, ascending:
            (sentence * groups + group) * orders + order.
        losses: how many of each.
    """

    lengths: Integer[np.ndarray, " sentences"]
    bleu: Integer[np.ndarray, "orders sentences"]
    self_bleu: Integer[np.ndarray, "orders sentences"]
    lost: Int[np.ndarray, " lost"]
    losses: Int[np.ndarray, " lost"]


class Sums(Record):
    r"""Sums over the n-grams of one text: with all groups first, then without each.

    With c the count of an n-gram here, r that in the references, and $c_s$ that in
    sentence s; for the law of sentence-averaged n-grams each count is divided by the
    number of n-grams of its sentence.

    Attributes:
        distinct: number of n-grams.
        squares: $\sum c^2$.
        within: $\sum \sum_s c_s^2$.
        common: $\sum c r$.
        overlap: $\sum \min(c R, r S)$, for S sentences and R references.
    """

    distinct: Int[np.ndarray, "orders subsets"]
    squares: Num[np.ndarray, "orders subsets"]
    within: Num[np.ndarray, "orders subsets"]
    common: Num[np.ndarray, "orders subsets"]
    overlap: Int[np.ndarray, "orders subsets"]


class Totals(Record):
    """What some of the parts that the n-grams are dealt out to add up to.

    Attributes:
        num_parts: how many parts there are.
        parts: those added up here, ascending, from 0.
        averaged: whether counts are divided by the n-grams of their sentence.
        references: `squares` and `within` of the references.
        reference_lengths: lengths of the references, as one group.
        sums: by candidate.
        lengths: lengths of the candidates.
    """

    num_parts: int
    parts: tuple[int, ...]
    averaged: bool
    references: Num[np.ndarray, "sums orders"]
    reference_lengths: Lengths
    sums: dict[str, Sums]
    lengths: dict[str, Lengths]


class PartialSums(Record):
    """Totals, and what the same parts know of each sentence.

    Attributes:
        totals: over all sentences.
        blocks: by candidate, one for each group of sentences.
    """

    totals: Totals
    blocks: dict[str, tuple[Block, ...]]


class Side(NamedTuple):
    """One text among all that are counted together; made by `sides_of`."""

    corpus: Corpus
    ids: np.ndarray  # the id of each word that all texts share
    num_ids: int
    first: int  # number of its first sentence
    place: np.ndarray  # number of each sentence, group after group
    bounds: np.ndarray  # the first sentence of each group
    lengths: np.ndarray  # of the sentences, group after group
    histogram: Lengths

    @property
    def size(self) -> int:
        """Number of sentences."""
        return len(self.lengths)

    @property
    def num_groups(self) -> int:
        """Number of groups."""
        return len(self.bounds) - 1


class _Own(NamedTuple):
    """The runs of one text among those of all."""

    which: np.ndarray
    owner: np.ndarray
    times: np.ndarray
    values: np.ndarray  # times, or times over the number of n-grams of the sentence


class _Known(NamedTuple):
    """The references' n-grams of one order, each n-gram of any text in its place."""

    most: np.ndarray  # largest count in one sentence
    counts: np.ndarray
    value: np.ndarray
    within: np.ndarray
    size: int  # number of references


class _Added(NamedTuple):
    """What the n-grams of one order add to a text's sums."""

    sums: list[np.ndarray]
    bleu: np.ndarray
    self_bleu: np.ndarray
    lost: tuple[np.ndarray, np.ndarray, np.ndarray]  # sentence, group, how many


def partial_sums(
    candidates: Mapping[str, Corpus],
    references: Corpus,
    max_order: int,
    *,
    averaged: bool = False,
    num_groups: int = NUM_GROUPS,
    seed: int = 0,
    part: int = 0,
    num_parts: int = 1,
    step: Callable[[str], None] = lambda text: None,
) -> PartialSums:
    """Add up one part of the n-grams of candidates and references.

    Args:
        candidates: texts by name.
        references: real text.
        max_order: highest order of the n-grams, at least 1.
        averaged: whether counts are divided by the n-grams of their sentence.
        num_groups: number of groups that sentences are left out in, at most 255; a text
            of fewer sentences has a group for each; 1: none is left out.
        seed: seed of the random groups.
        part: the part, from 0.
        num_parts: how many parts there are.
        step: called with a description before each order.

    Returns:
        The sums.

    Raises:
        TypeError: `max_order` is not an integer.
        ValueError: `max_order` is below 1, there are more than 255 groups, or there is
            no such part.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> texts = as_corpus(["a b", "a c", "b c"])
        >>> halves = [
        ...     partial_sums({"x": texts}, texts, 2, part=part, num_parts=2)
        ...     for part in (0, 1)
        ... ]
        >>> whole = partial_sums({"x": texts}, texts, 2)
        >>> merge(*halves).totals.sums == whole.totals.sums
        True
    """
    check_order(max_order, "max_order")
    sides = sides_of(candidates, references, num_groups, seed)
    return count(sides, max_order, averaged, part, num_parts, step)


def count(
    sides: Mapping[str, Side],
    max_order: int,
    averaged: bool,
    part: int,
    num_parts: int,
    step: Callable[[str], None] = lambda text: None,
) -> PartialSums:
    """Add up one part of the n-grams of texts that are numbered already.

    Args:
        sides: the candidates by name, and last the references.
        max_order: as in `partial_sums`, and so are the others.
        averaged: whether counts are divided by the n-grams of their sentence.
        part: the part.
        num_parts: how many parts there are.
        step: called with a description before each order.

    Returns:
        The sums.

    Raises:
        ValueError: there is no such part.
    """
    if not 0 <= part < num_parts:
        raise ValueError(f"part: expected 0 to {num_parts - 1}, got {part}")
    *candidates, _ = sides
    *ours, real = sides.values()
    per_order = []
    for n, found in enumerate(_ngrams([*ours, real], max_order, part, num_parts)):
        step(f"Counting n-grams of order {n + 1}")
        known = _known(found, real, n + 1, averaged)
        added = [_added(found, side, known, n + 1, averaged) for side in ours]
        per_order.append((known, added))
    squares = [[(x.value**2).sum(), x.within] for x, _ in per_order]
    columns = [[added[k] for _, added in per_order] for k in range(len(ours))]
    totals = Totals(
        num_parts=num_parts,
        parts=(part,),
        averaged=averaged,
        references=np.transpose(squares),
        reference_lengths=real.histogram,
        sums={x: _stacked(added) for x, added in zip(candidates, columns)},
        lengths={x: side.histogram for x, side in zip(candidates, ours)},
    )
    blocks = {
        x: _blocks(side, added) for x, side, added in zip(candidates, ours, columns)
    }
    return PartialSums(totals, blocks)


def parts_for(
    memory: int, candidates: Mapping[str, Corpus], references: Corpus, max_order: int
) -> int:
    """Choose how many parts n-grams are dealt out to, so that one fits into memory.

    Args:
        memory: bytes.
        candidates: texts by name.
        references: real text.
        max_order: highest order of the n-grams.

    Returns:
        The number of parts.

    Raises:
        ValueError: what is known of each sentence takes more.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> texts = as_corpus(["a b", "a c", "b c"])
        >>> parts_for(10**9, {"x": texts}, texts, 4)
        1
    """
    corpora = [*candidates.values(), references]
    sentences = sum(map(len, corpora))
    always = START_BYTES + (SENTENCE_BYTES + 4 * max_order) * sentences
    places = sum(corpus.num_tokens for corpus in corpora)
    # One sixth more, as parts are not of one size.
    counted = (PLACE_BYTES + 4 * max_order) * places * 7 // 6
    left = memory - always
    if left < counted // MAX_PARTS:
        needed = always + counted // MAX_PARTS
        raise ValueError(
            f"memory: expected at least {needed / 1e6:,.0f} MB for {sentences:,} "
            f"sentences, got {memory / 1e6:,.0f} MB"
        )
    return max(1, -(-counted // left))


def merge(one: PartialSums, other: PartialSums) -> PartialSums:
    """Add the sums of different parts of the same texts.

    Args:
        one: some parts.
        other: other parts.

    Returns:
        The parts of both; in which order parts are merged makes no difference, but for
        the rounding of averaged counts.

    Raises:
        ValueError: both hold one part, or they are not of the same texts and settings.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> texts = as_corpus(["a b", "a c", "b c"])
        >>> part = partial_sums({"x": texts}, texts, 2, part=1, num_parts=2)
        >>> merge(part, part)
        Traceback (most recent call last):
        ValueError: part 2 of 2 is there twice: expected each once
    """
    totals = merge_totals(one.totals, other.totals)
    blocks = {
        name: tuple(map(merge_blocks, known, other.blocks[name]))
        for name, known in one.blocks.items()
    }
    return PartialSums(totals, blocks)


def merge_totals(one: Totals, other: Totals) -> Totals:
    """Add the totals of different parts of the same texts, see `merge`.

    Args:
        one: some parts.
        other: other parts.

    Returns:
        The parts of both.

    Raises:
        ValueError: both hold one part, or they are not of the same texts and settings.
    """
    for twice in {*one.parts} & {*other.parts}:
        raise ValueError(
            f"part {twice + 1} of {one.num_parts} is there twice: expected each once"
        )
    if not _same_texts(one, other):
        raise ValueError("expected parts of the same texts and settings, got others")
    return Totals(
        num_parts=one.num_parts,
        parts=tuple(sorted(one.parts + other.parts)),
        averaged=one.averaged,
        references=one.references + other.references,
        reference_lengths=one.reference_lengths,
        sums={name: _plus(x, other.sums[name]) for name, x in one.sums.items()},
        lengths=one.lengths,
    )


def merge_blocks(one: Block, other: Block) -> Block:
    """Add what different parts know of the same sentences.

    Args:
        one: some parts.
        other: other parts.

    Returns:
        Both.
    """
    lost, losses = _gathered(
        np.append(one.lost, other.lost), np.append(one.losses, other.losses)
    )
    bleu, alike = one.bleu + other.bleu, one.self_bleu + other.self_bleu
    return Block(one.lengths, bleu, alike, lost, losses)


def _stacked(added: list[_Added]) -> Sums:
    return Sums(*(np.array(rows) for rows in zip(*(one.sums for one in added))))


def _blocks(side: Side, added: list[_Added]) -> tuple[Block, ...]:
    """Cut the matches of all orders where a group ends."""
    orders, groups = len(added), side.num_groups
    keys = [
        (sentence * groups + group) * orders + n
        for n, (sentence, group, _) in enumerate(one.lost for one in added)
    ]
    lost, losses = _gathered(
        np.concatenate(keys), np.concatenate([one.lost[2] for one in added])
    )
    cuts = np.searchsorted(lost, side.bounds * (groups * orders))
    return tuple(
        Block(
            side.lengths[start:end],
            np.array([one.bleu[start:end] for one in added]),
            np.array([one.self_bleu[start:end] for one in added]),
            lost[a:b] - start * groups * orders,
            losses[a:b],
        )
        for (start, end), (a, b) in zip(pairwise(side.bounds), pairwise(cuts))
    )


def _gathered(lost: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort what is lost, and add up what stands there twice."""
    if not len(lost):
        return lost, losses
    lost, order = sorted_keys(lost, int(lost.max()) + 1)
    first = np.flatnonzero(changes(lost))
    return lost[first], np.add.reduceat(losses[order], first)


def _same_texts(one: Totals, other: Totals) -> bool:
    def told(x: Totals) -> tuple:
        return (
            x.num_parts,
            x.averaged,
            x.references.shape,
            x.reference_lengths,
            x.lengths,
        )

    return all(a == b for a, b in zip(told(one), told(other)))


def _plus(one: Sums, other: Sums) -> Sums:
    return Sums(*(getattr(one, x.name) + getattr(other, x.name) for x in fields(Sums)))


# --- The texts ----------------------------------------------------------------------


def sides_of(
    candidates: Mapping[str, Corpus],
    references: Corpus,
    num_groups: int = NUM_GROUPS,
    seed: int = 0,
) -> dict[str, Side]:
    """Number the words and the sentences of all texts together.

    Args:
        candidates: as in `partial_sums`, and so are the others.
        references: real text.
        num_groups: number of groups that sentences are left out in.
        seed: seed of the random groups.

    Returns:
        The candidates by name, and last the references, which have one group.

    Raises:
        ValueError: there are more than 255 groups, or none.
    """
    if not 1 <= num_groups <= MAX_GROUPS:
        raise ValueError(f"num_groups: expected 1 to {MAX_GROUPS}, got {num_groups}")
    corpora = [*candidates.values(), references]
    ids = common_ids(corpora)
    size = 1 + max(int(x.max(initial=0)) for x in ids)
    groups = [min(num_groups, len(corpus)) for corpus in corpora[:-1]] + [1]
    firsts = prefix_sums([len(corpus) for corpus in corpora]).tolist()
    sides = [
        _side(*each, size, seed)
        for each in zip(corpora, ids, firsts, groups, strict=False)
    ]
    return dict(zip([*candidates, REFERENCES], sides))


def _side(
    corpus: Corpus,
    ids: np.ndarray,
    first: int,
    num_groups: int,
    num_ids: int,
    seed: int,
) -> Side:
    groups = random_groups(len(corpus), num_groups, seed).astype(np.uint8)
    order = np.argsort(groups, kind="stable")
    place = np.empty(len(order), np.min_scalar_type(-first - len(order)))
    place[order] = np.arange(first, first + len(order))
    lengths = corpus.lengths[order]
    del order
    lengths = lengths.astype(np.min_scalar_type(-int(lengths.max())))
    bounds = prefix_sums(np.bincount(groups, minlength=num_groups))
    values = np.unique(lengths)
    times = [
        np.bincount(np.searchsorted(values, lengths[start:end]), minlength=len(values))
        for start, end in pairwise(bounds)
    ]
    return Side(
        corpus=corpus,
        ids=ids,
        num_ids=num_ids,
        first=first,
        place=place,
        bounds=bounds,
        lengths=lengths,
        histogram=Lengths(values.astype(np.int64), np.array(times)),
    )


def _ngrams(
    sides: Sequence[Side], max_order: int, part: int, num_parts: int
) -> Iterator[Runs]:
    """Group the n-grams of one part of all texts, one order after another."""
    if num_parts == 1:
        yield _words(sides, None)
        longer = None
    else:
        ids = np.arange(sides[0].num_ids)
        # Tabulation hashing: a random number for each word and place, joined by XOR.
        tables = [hashed(ids, np.full_like(ids, n)) >> np.uint64(32) for n in (0, 1)]
        first, second = (table.astype(np.uint32) for table in tables)
        yield _words(sides, first % num_parts == part)
        longer = partial(_dealt, first, second, num_parts, part)
    if max_order > 1:
        yield from orders(_windows(sides, max_order, longer), max_order, min_order=2)


def _dealt(
    first: np.ndarray,
    second: np.ndarray,
    num_parts: int,
    part: int,
    one: np.ndarray,
    two: np.ndarray,
) -> np.ndarray:
    """Whether each pair of words is dealt to a part."""
    return (first[one] ^ second[two]) % num_parts == part


def _words(sides: Sequence[Side], chosen: np.ndarray | None) -> Runs:
    """Group the chosen words, or all.

    A word may be in most sentences, and all its runs are in one part: they are made a
    chunk at a time, from few bytes each.
    """
    last = sides[-1].first + sides[-1].size
    bits = last.bit_length()
    keys, times = [], []
    for side in sides:
        for start, chunk in slices(side.corpus):
            tokens = side.ids[chunk.tokens]
            owner = np.repeat(side.place[start : start + len(chunk)], chunk.lengths)
            if chosen is not None:
                kept = np.flatnonzero(chosen[tokens])
                tokens, owner = tokens[kept], owner[kept]
            found = np.unique(
                tokens.astype(np.int64) << bits | owner, return_counts=True
            )
            keys.append(found[0])
            times.append(found[1].astype(np.int32))
    keys, order = sorted_keys(np.concatenate(keys), sides[0].num_ids << bits)
    times = np.concatenate(times)[order]
    del order
    owner = (keys & ((1 << bits) - 1)).astype(np.min_scalar_type(-last))
    keys >>= bits
    new = changes(keys)
    which = np.cumsum(new, dtype=np.int32) - np.int32(1)
    return Runs(keys[new], np.flatnonzero(new), which, owner, times)


def _windows(sides: Sequence[Side], max_order: int, chosen: Callable | None) -> Windows:
    """The places of all texts whose first two tokens are chosen; without a choice all.

    They stand sentence after sentence.
    """
    chunks = (x for side in sides for x in _chunks(side, max_order, chosen))
    rows = [*map(list, zip(*chunks))]
    owner = np.concatenate(rows.pop())
    order = None
    if (owner[1:] < owner[:-1]).any():
        last = sides[-1]
        _, order = sorted_keys(owner.astype(np.int64), last.first + last.size)
        owner = owner[order]
    columns = []
    while rows:  # what is joined is let go of
        column = np.concatenate(rows.pop(0))
        columns.append(column if order is None else column[order])
    *columns, remaining = columns
    return Windows(columns, remaining, owner, sides[0].num_ids)


def _chunks(
    side: Side, max_order: int, chosen: Callable | None
) -> Iterator[tuple[np.ndarray, ...]]:
    """Columns of tokens, how many are left up to the order, and the sentence."""
    for start, chunk in slices(side.corpus):
        tokens = side.ids[chunk.tokens]
        padded = np.append(tokens, np.zeros(max_order, np.int32))
        numbers = np.arange(len(chunk), dtype=np.int32)
        sentence = np.repeat(numbers, chunk.lengths)
        kept = np.arange(len(tokens))
        if chosen is not None:
            kept = np.flatnonzero(chosen(tokens, padded[1:][: len(tokens)]))
            sentence = sentence[kept]
        left = np.minimum(chunk.offsets[1:][sentence] - kept, max_order)
        yield (
            *(padded[n:][kept] for n in range(max_order)),
            left.astype(np.min_scalar_type(max_order)),
            side.place[start:][sentence],
        )


# --- Sums of one order --------------------------------------------------------------


def _own(found: Runs, side: Side, n: int, averaged: bool) -> _Own:
    last = side.first + side.size
    kept = np.flatnonzero((found.owner >= side.first) & (found.owner < last))
    owner, times = found.owner[kept] - side.first, found.times[kept]
    values = times / (side.lengths[owner] - n + 1) if averaged else times
    return _Own(found.which[kept], owner, times.astype(np.int32), values)


def _known(found: Runs, side: Side, n: int, averaged: bool) -> _Known:
    own = _own(found, side, n, averaged)
    first = np.flatnonzero(changes(own.which))

    def placed(values: np.ndarray) -> np.ndarray:
        array = np.zeros(len(found.keys), values.dtype)
        array[own.which[first]] = values
        return array

    return _Known(
        most=placed(np.maximum.reduceat(own.times, first)),
        counts=placed(_sums_of(own.times, first)),
        value=placed(_sums_of(own.values, first)),
        within=_squares(own.values).sum(),
        size=side.size,
    )


def _added(found: Runs, side: Side, known: _Known, n: int, averaged: bool) -> _Added:
    own = _own(found, side, n, averaged)
    sizes = np.diff(side.bounds)
    groups = np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes)[own.owner]
    alike, lost = _among_themselves(own, groups)
    # Clipped matches are at most as many as the sentence has tokens.
    dtype = np.min_scalar_type(side.lengths.max())

    def by_sentence(matches: np.ndarray) -> np.ndarray:
        return np.bincount(own.owner, matches, side.size).astype(dtype)

    return _Added(
        sums=_sums(own, groups, side, known),
        bleu=by_sentence(np.minimum(own.times, known.most[own.which])),
        self_bleu=by_sentence(alike),
        lost=lost,
    )


def _sums(own: _Own, groups: np.ndarray, side: Side, known: _Known) -> list:
    """The sums of `Sums`, of all groups and without each."""
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
    return [
        without(len(which), group[alone], np.ones(len(alone), int)),
        without((value**2).sum(), group, x * (2 * value[ngram] - x)),
        without(squares.sum(), groups, squares),
        without((value * theirs).sum(), group, x * theirs[ngram]),
        _overlap(_sums_of(own.times, parts), group, first, which, side, known),
    ]


def _sums_of(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums from each start to the next, of integers in 64 bits."""
    return np.add.reduceat(values, starts, dtype=np.result_type(values, np.int64))


def _squares(values: np.ndarray) -> np.ndarray:
    return np.square(values, dtype=np.result_type(values, np.int64))


def _overlap(
    counts: np.ndarray,
    group: np.ndarray,
    first: np.ndarray,
    which: np.ndarray,
    side: Side,
    known: _Known,
) -> np.ndarray:
    r"""Sums of $\min(c R, r S)$; without a group, c and S are smaller."""
    theirs = known.counts[which]
    ours = np.add.reduceat(counts, first) * known.size
    shared = theirs > 0
    sizes = side.size - np.append(0, np.diff(side.bounds))
    # Groups have at most two sizes.
    whole = {
        size: np.minimum(
            ours, theirs * size, where=shared, out=np.zeros_like(ours)
        ).sum()
        for size in np.unique(sizes)
    }
    ngram = np.repeat(np.arange(len(which)), np.diff(first, append=len(counts)))
    kept = np.flatnonzero(shared[ngram])
    ngram, group = ngram[kept], group[kept]
    limit = theirs[ngram] * sizes[1:][group]
    left = ours[ngram] - counts[kept] * known.size
    loss = np.minimum(ours[ngram], limit) - np.minimum(left, limit)
    found = np.array([whole[size] for size in sizes])
    found[1:] -= _by_group(group, loss, side.num_groups)
    return found


def _by_group(group: np.ndarray, values: np.ndarray, num_groups: int) -> np.ndarray:
    """Sums by group; exact for integers, which `np.bincount` adds up as floats."""
    if values.dtype.kind == "f" or not len(values):
        return np.bincount(group, values, num_groups)
    if int(values.max()) * len(values) < 2**53:
        return np.bincount(group, values, num_groups).astype(np.int64)
    low, high = values & (2**26 - 1), values >> 26
    sums = (np.bincount(group, x, num_groups).astype(np.int64) for x in (low, high))
    return next(sums) + (next(sums) << 26)


# --- Matches of Self-BLEU -----------------------------------------------------------


def _among_themselves(
    own: _Own, groups: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Matches of each run with the other sentences, and those lost without a group."""
    times, new = own.times, changes(own.which)
    first, which = np.flatnonzero(new), np.cumsum(new, dtype=np.int32) - np.int32(1)
    top = times == np.maximum.reduceat(times, first)[which]
    second = np.maximum.reduceat(np.where(top, 0, times), first)
    # Clip at the second largest count if the sentence alone attains the maximum.
    alone = top & (np.add.reduceat(top, first, dtype=int) == 1)[which]
    alike = np.where(alone, second[which], times)
    # A sentence with fewer than three groups have finds others in one of them.
    third = _third(times, np.flatnonzero(new | changes(groups)), new)
    several = np.diff(first, append=len(times)) > 1
    kept = np.flatnonzero((times > third[which]) & several[which])
    which = which[kept]
    lost = _lost(which, own.owner[kept], groups[kept], times[kept], third[which])
    return alike, lost


def _third(times: np.ndarray, parts: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The third largest of the groups' largest counts of each n-gram, 0 without one."""
    most = np.maximum.reduceat(times, parts).astype(np.int64)
    new = new[parts]
    first, ngram = np.flatnonzero(new), np.cumsum(new) - 1
    # Counts that are all different, of which two are struck out.
    codes = (most << 32) + np.arange(1, len(most) + 1)
    for _ in range(2):
        codes[codes == np.maximum.reduceat(codes, first)[ngram]] = 0
    return (np.maximum.reduceat(codes, first) >> 32).astype(times.dtype)


def _lost(
    which: np.ndarray,
    owner: np.ndarray,
    groups: np.ndarray,
    times: np.ndarray,
    third: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sentences that match an n-gram less without a group, the group, how much less.

    Let f be the first of the sentences by their counts. Any other sentence can only
    miss the group of f. Then it is clipped at the largest count outside this group,
    itself left out. f misses the group of the first of the others. The runs are those
    above the third largest count of a group, which remains in any case.
    """
    new = changes(which)
    first, which = np.flatnonzero(new), np.cumsum(new) - 1
    position = np.arange(len(which))
    # Counts that are all different; 0 is nobody's.
    codes = (times.astype(np.int64) << 32) + position + 1

    def best(codes: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(codes, first)

    leader = best(codes)
    group = groups[(leader & (2**32 - 1)) - 1]
    leads = codes == leader[which]
    outside = np.where(groups == group[which], 0, codes)
    one = best(outside)
    other = best(np.where(outside == one[which], 0, outside))
    clip = np.where(codes == one[which], other[which], one[which]) >> 32
    clip = np.maximum(clip, third)
    losses = np.where(outside > 0, times - np.minimum(times, clip), 0)
    missed = group[which]

    rest = np.where(leads, 0, codes)
    follower = best(rest)
    following = groups[(follower & (2**32 - 1)) - 1]
    away = best(np.where(groups == following[which], 0, rest)) >> 32
    away = np.maximum(away, third[first])
    fewer = np.where(following == group, 0, (follower >> 32) - away)
    losses[leads], missed[leads] = np.maximum(fewer, 0), following
    kept = np.flatnonzero(losses)
    return owner[kept].astype(np.int64), missed[kept], losses[kept]
