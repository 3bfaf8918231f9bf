"""The n-grams of one order after another, grouped by one sort of integers.

An n-gram is identified by the rank of its prefix of n - 1 tokens and its last token, so
that equal integers are equal n-grams, of any order and any vocabulary. As in an
inverted index, a posting is an n-gram in a sentence, with the number of times that it
occurs there.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Integer, UInt64

from qdtheory.text.corpus import Corpus

# The last step of MurmurHash3, in which each bit of a number reaches all others.
FACTORS = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
SHIFT = np.uint64(33)


class Positions(NamedTuple):
    """Where n-grams start: the tokens from each position on, and its sentence."""

    columns: Sequence[np.ndarray]  # column k: the token k positions on, if there is one
    remaining: np.ndarray  # number of tokens up to the end of the sentence
    sentence: np.ndarray  # ascending among n-grams with one prefix
    num_ids: int  # of tokens
    # What the tokens of the columns follow, as an integer: with a prefix in common,
    # n-grams are equal if their tokens are.
    prefix: np.ndarray
    num_prefixes: int


class Postings(NamedTuple):
    """The n-grams of one order, and their counts in each sentence."""

    keys: np.ndarray  # an integer for each n-gram, ascending
    first: np.ndarray  # the first posting of each n-gram
    ngram: np.ndarray  # of each posting
    sentence: np.ndarray  # of each posting, ascending among those of one n-gram
    counts: np.ndarray  # of each posting

    @property
    def most(self) -> Int[np.ndarray, " ngrams"]:
        """The largest count of each n-gram in one sentence."""
        return np.maximum.reduceat(self.counts, self.first)

    @property
    def num_sentences(self) -> Int[np.ndarray, " ngrams"]:
        """The number of sentences that have each n-gram."""
        return np.diff(self.first, append=len(self.counts))


def positions_of(corpus: Corpus, max_order: int) -> Positions:
    """Every position of a corpus, with one id more than words, for unknown ones."""
    columns = [corpus.tokens[n:] for n in range(max_order)]
    remaining = token_ends(corpus) - np.arange(corpus.num_tokens)
    sentence, prefix = token_sentences(corpus), np.zeros(corpus.num_tokens, np.int8)
    return Positions(columns, remaining, sentence, corpus.vocab_size + 1, prefix, 1)


def postings_by_order(
    positions: Positions, max_order: int, shared: bool = False
) -> Iterator[Postings]:
    """Group the n-grams of one order after another, as many as there are columns.

    If `shared`, an n-gram is left out if only one sentence has its prefix.
    """
    length, base = len(positions.sentence), positions.num_ids
    # The positions where n-grams are, in the order of the last sort; and of each the
    # rank of its prefix among `size`.
    where = np.arange(length, dtype=np.min_scalar_type(-length))
    rank, size = positions.prefix, positions.num_prefixes
    for n in range(max_order):
        whole = np.flatnonzero(positions.remaining[where] > n)
        where, keys = where[whole], rank[whole].astype(np.int64)
        del whole, rank
        # rank * base + token: ranks are given anew for each order, so that keys stay
        # below prefixes * words and fit into 64 bits at any order.
        keys *= base
        keys += positions.columns[n][where]
        ngrams, order, rank = postings(keys, size * base, positions.sentence[where])
        where, size = where[order], len(ngrams.keys)
        del keys, order
        yield ngrams
        if shared:
            kept = np.flatnonzero((ngrams.num_sentences > 1)[rank])
            where, rank = where[kept], rank[kept]


def postings(
    keys: np.ndarray, size: int, sentence: np.ndarray
) -> tuple[Postings, np.ndarray, np.ndarray]:
    """Group occurrences, given the n-gram of each, below `size`, and its sentence.

    Also returns the order that sorts the occurrences by n-gram, and else leaves them as
    they were, and the n-gram of each in this order.
    """
    keys, order = sorted_keys(keys, size)
    grouped, rank = group(keys, sentence[order])
    # A sentence has fewer than 2**31 tokens; half of the memory of 64 bits.
    return grouped._replace(counts=grouped.counts.astype(np.int32)), order, rank


def group(keys: np.ndarray, sentence: np.ndarray) -> tuple[Postings, np.ndarray]:
    """Group occurrences that are sorted; and the n-gram of each."""
    new = changes(keys)
    # A posting starts where the n-gram or its sentence changes.
    starts = np.flatnonzero(new | changes(sentence))
    first = np.flatnonzero(new[starts])
    rank = np.cumsum(new, dtype=np.int32)
    rank -= 1
    counts = np.diff(starts, append=len(keys))
    return Postings(keys[new], first, rank[starts], sentence[starts], counts), rank


def clipped_at_others(counts: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Clip the count of an n-gram in each sentence at the most in another sentence.

    That is the largest count or, if the sentence alone attains it, the second largest.
    """
    most, sizes = np.maximum.reduceat(counts, first), np.diff(first, append=len(counts))
    top = counts == np.repeat(most, sizes)
    second = np.maximum.reduceat(np.where(top, 0, counts), first)
    alone = np.add.reduceat(top, first, dtype=int) == 1
    return np.minimum(counts, np.repeat(np.where(alone, second, most), sizes))


def token_sentences(corpus: Corpus) -> Int[np.ndarray, " tokens"]:
    """The sentence of each token."""
    return np.repeat(np.arange(len(corpus)), corpus.lengths)


def token_ends(corpus: Corpus) -> Int[np.ndarray, " tokens"]:
    """Where the sentence of each token ends."""
    return np.repeat(corpus.offsets[1:], corpus.lengths)


# --- Integers -----------------------------------------------------------------------


def sorted_keys(keys: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort integers from 0 to size - 1, equal ones in their order; and the positions.

    Sorted in their own place with the positions packed into the low bits, they take a
    fraction of an argsort.
    """
    bits = len(keys).bit_length()
    if (size << bits) > np.iinfo(np.int64).max:
        order = np.argsort(keys, kind="stable")
        return keys[order], order
    keys <<= bits
    keys |= np.arange(len(keys), dtype=np.min_scalar_type(-len(keys)))
    keys.sort()
    order = keys & ((1 << bits) - 1)
    keys >>= bits
    return keys, order


def changes(values: np.ndarray) -> Bool[np.ndarray, " values"]:
    """Whether each value differs from the one before it; True for the first."""
    changes = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def hashed(*columns: Integer[np.ndarray, " rows"]) -> UInt64[np.ndarray, " rows"]:
    """Hash each row of nonnegative integers to 64 bits, the same on any machine."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed += column.astype(np.uint64) + np.uint64(1)
        for factor in FACTORS:
            mixed ^= mixed >> SHIFT
            mixed *= factor
        mixed ^= mixed >> SHIFT
    return mixed
