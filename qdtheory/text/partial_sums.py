r"""Sums over n-grams that all metrics of `evaluate` are made of, and that add up.

Every metric is a function of sums over n-grams, $\sum_g s(c_g, r_g)$, and of sums over
the n-grams of each sentence. So the n-grams can be dealt out to K parts: each part
adds up its own, and parts add, in any order. `numbered` has which n-grams are in a
part, `ngram_sums` what they add.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from itertools import pairwise

import numpy as np
from jaxtyping import Int, Integer, Num

from qdtheory.support.records import Record
from qdtheory.text import ngram_sums, numbered
from qdtheory.text.corpus import Corpus
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.ngrams import require_order
from qdtheory.text.postings import changes, sorted_keys


class GroupMatches(Record):
    """Matches of some parts in the sentences of one group, in the order of the text."""

    lengths: Integer[np.ndarray, " sentences"]
    # Matches with the references and with the other sentences, each clipped at the
    # largest count in one of them.
    bleu: Integer[np.ndarray, "orders sentences"]
    self_bleu: Integer[np.ndarray, "orders sentences"]
    # Matches of Self-BLEU that are lost without another group, ascending:
    # (sentence * groups + group) * orders + order; and how many of each.
    lost: Integer[np.ndarray, " lost"]
    losses: Integer[np.ndarray, " lost"]


class Sums(Record):
    """Sums over the n-grams of one text: with all groups first, then without each.

    With c the count of an n-gram here, r that in the references, and $c_s$ that in
    sentence s; for the law of sentence-averaged n-grams each count is divided by the
    number of n-grams of its sentence.
    """

    distinct: Int[np.ndarray, "orders subsets"]
    squares: Num[np.ndarray, "orders subsets"]  # sum of c**2
    within: Num[np.ndarray, "orders subsets"]  # sum of c_s**2 over n-grams and s
    common: Num[np.ndarray, "orders subsets"]  # sum of c r
    # The sum of min(c R, r S), for S sentences and R references.
    overlap: Int[np.ndarray, "orders subsets"]
    # The same two without each group of the references.
    real_common: Num[np.ndarray, "orders real_subsets"]
    real_overlap: Int[np.ndarray, "orders real_subsets"]


class Spectrum(Record):
    """How many n-grams of a text have which count: of all groups, and without each."""

    # Ascending: (order * subsets + subset) * 2**40 + count; the whole text is subset 0.
    keys: Int[np.ndarray, " keys"]
    times: Int[np.ndarray, " keys"]  # the number of n-grams of each

    def of(self, order: int, num_subsets: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Read the spectra of one order."""
        marks = np.arange(num_subsets + 1) + order * num_subsets
        cuts = np.searchsorted(self.keys, marks << ngram_sums.COUNT_BITS)
        counts = self.keys & ((1 << ngram_sums.COUNT_BITS) - 1)
        return [(counts[a:b], self.times[a:b]) for a, b in pairwise(cuts)]


class CorpusSums(Record):
    """What some of the parts that the n-grams are dealt out to add up to."""

    averaged: bool  # counts are divided by the n-grams of their sentence
    # Their `squares` and `within`, of all groups and without each.
    references: Num[np.ndarray, "sums orders real_subsets"]
    reference_lengths: numbered.Lengths
    sums: dict[str, Sums]  # by candidate, and so below
    spectra: dict[str, Spectrum]
    lengths: dict[str, numbered.Lengths]


class PartialSums(Record):
    """Sums over all sentences, and the matches of the same parts in each sentence."""

    totals: CorpusSums
    blocks: dict[str, tuple[GroupMatches, ...]]  # by candidate, one for each group


def partial_sums(
    candidates: Mapping[str, Corpus],
    references: Corpus,
    max_order: int,
    *,
    averaged: bool = False,
    num_groups: int = NUM_GROUPS,
    part: int = 0,
    num_parts: int = 1,
    step: Callable[[str], None] = lambda text: None,
) -> PartialSums:
    """Add up one part, from 0, of the n-grams of candidates and references."""
    require_order(max_order, "max_order")
    texts, numbers = numbered.number_texts(candidates, references, num_groups)
    settings = numbers, max_order, [part], num_parts
    of_part = (
        begins
        for corpus, text in zip([*candidates.values(), references], texts.values())
        for (begins,) in numbered.places(corpus, text.ids, text.place, *settings)
    )
    return count(texts, [of_part], numbers, max_order, averaged, step)


def count(
    texts: Mapping[str, numbered.NumberedText],
    parts: Iterable[Iterable[numbered.Places]],
    numbers: numbered.Numbers,
    max_order: int,
    averaged: bool,
    step: Callable[[str], None] = lambda text: None,
) -> PartialSums:
    """Add up the n-grams that begin in these places, one part after another."""
    *names, _ = texts
    *ours, real = texts.values()
    # Clipped matches are at most as many as the sentence has tokens. Those of all parts
    # are added to one array, in place: it is as long as the text.
    matches = {
        name: np.zeros((2, max_order, x.size), np.min_scalar_type(x.lengths.max()))
        for name, x in zip(names, ours)
    }
    totals, losses = [], {name: [] for name in names}
    for of_part in parts:
        references, added = [], {name: [] for name in names}
        # One order after another, so that memory holds the n-grams of one only.
        for n, ngrams in enumerate(numbered.ngrams_of(of_part, numbers, max_order)):
            step(f"Counting n-grams of order {n + 1}")
            of_real = ngram_sums.text_ngrams(ngrams, real, n + 1, averaged)
            references.append(ngram_sums.repeats(of_real))
            for name, text in zip(names, ours):
                of_ours = ngram_sums.text_ngrams(ngrams, text, n + 1, averaged)
                sums = ngram_sums.order_sums(of_ours, of_real, matches[name][:, n])
                added[name].append(sums)
                losses[name].append((n, *sums.losses))
        one = CorpusSums(
            averaged=averaged,
            references=np.array(references).swapaxes(0, 1),
            reference_lengths=real.histogram,
            sums={x: _stacked(orders) for x, orders in added.items()},
            spectra={x: _spectrum(orders) for x, orders in added.items()},
            lengths={x: texts[x].histogram for x in names},
        )
        totals.append(one)
    blocks = {x: _blocks(texts[x], matches[x], losses[x]) for x in names}
    return PartialSums(reduce(merge_totals, totals), blocks)


def merge_totals(one: CorpusSums, other: CorpusSums) -> CorpusSums:
    """Add the totals of different parts of the same texts."""
    # Lengths are those of all sentences, whatever the part.
    return replace(
        one,
        references=one.references + other.references,
        sums={name: _plus(x, other.sums[name]) for name, x in one.sums.items()},
        spectra={
            name: Spectrum(*_added_by_key([x.keys, y.keys], [x.times, y.times]))
            for name, x in one.spectra.items()
            for y in [other.spectra[name]]
        },
    )


def merge_blocks(one: Mapping, other: Mapping) -> dict[str, tuple[GroupMatches, ...]]:
    """Add the matches of different parts in the same sentences."""
    return {name: tuple(map(merge_matches, x, other[name])) for name, x in one.items()}


def merge_matches(one: GroupMatches, other: GroupMatches) -> GroupMatches:
    """Add the matches of different parts in the sentences of one group."""
    losses = _added_by_key([one.lost, other.lost], [one.losses, other.losses])
    bleu, self_bleu = one.bleu + other.bleu, one.self_bleu + other.self_bleu
    return GroupMatches(one.lengths, bleu, self_bleu, *_in_few_bytes(*losses))


def _stacked(added: list[ngram_sums.OrderSums]) -> Sums:
    return Sums(**{x: np.array([one.sums[x] for one in added]) for x in added[0].sums})


def _blocks(
    text: numbered.NumberedText, matches: np.ndarray, by_order: Sequence[tuple]
) -> tuple[GroupMatches, ...]:
    """Cut the matches of all orders where a group ends."""
    orders, groups = matches.shape[1], text.num_groups
    # In the order of the sentences first, so that those of a group are one piece.
    keys = [(x * groups + group) * orders + n for n, x, group, _ in by_order]
    lost, losses = _added_by_key(keys, [x for *_, x in by_order])
    cuts = np.searchsorted(lost, text.bounds * (groups * orders))
    return tuple(
        GroupMatches(
            text.lengths[start:end],
            *matches[:, :, start:end],
            # A group counts its sentences from 0.
            *_in_few_bytes(lost[a:b] - start * groups * orders, losses[a:b]),
        )
        for (start, end), (a, b) in zip(pairwise(text.bounds), pairwise(cuts))
    )


def _in_few_bytes(*columns: np.ndarray) -> list[np.ndarray]:
    """Nonnegative integers in as few bytes as hold them."""
    return [x.astype(np.min_scalar_type(x.max(initial=0))) for x in columns]


def _spectrum(added: list[ngram_sums.OrderSums]) -> Spectrum:
    """Join the spectra of all orders."""
    subsets = len(added[0].sums["distinct"])
    keys, times = zip(*(one.spectrum for one in added))
    keys = [x + (n * subsets << ngram_sums.COUNT_BITS) for n, x in enumerate(keys)]
    return Spectrum(*_added_by_key(keys, times))


def _added_by_key(
    keys: Sequence[np.ndarray], numbers: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Sort keys, and add up the numbers of those that are there twice."""
    joined, values = (np.concatenate(x).astype(np.int64) for x in (keys, numbers))
    # There is no largest key of none, nor a first one to add up from.
    if not len(joined):
        return joined, values
    joined, order = sorted_keys(joined, int(joined.max()) + 1)
    first = np.flatnonzero(changes(joined))
    return joined[first], np.add.reduceat(values[order], first)


def _plus(one: Sums, other: Sums) -> Sums:
    return Sums(*(getattr(one, x.name) + getattr(other, x.name) for x in fields(Sums)))
