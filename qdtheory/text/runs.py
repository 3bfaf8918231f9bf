"""The n-grams of one order after another, grouped by one sort of integers.

An n-gram is identified by the rank of its prefix of n - 1 tokens and its last token, so
that equal integers are equal n-grams, of any order and any vocabulary. A run holds the
occurrences of one n-gram in one sentence.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from qdtheory.text.corpus import Corpus


class Windows(NamedTuple):
    """Places of a text at which n-grams start, sentence after sentence.

    Attributes:
        columns: in column k the token k places after each; columns may end earlier, as
            the last places have fewer tokens after them.
        remaining: number of tokens from each place to the end of its sentence.
        owner: the sentence of each, ascending.
        num_ids: number of token ids.
    """

    columns: Sequence[Int[np.ndarray, " _"]]
    remaining: Int[np.ndarray, " places"]
    owner: Int[np.ndarray, " places"]
    num_ids: int


class Runs(NamedTuple):
    """The n-grams of one order.

    Attributes:
        keys: one integer for each n-gram, ascending.
        first: the first run of each n-gram.
        which: the n-gram of each run.
        owner: the sentence of each run, ascending among those of one n-gram.
        times: the number of occurrences in each run.
    """

    keys: Int[np.ndarray, " ngrams"]
    first: Int[np.ndarray, " ngrams"]
    which: Int[np.ndarray, " runs"]
    owner: Int[np.ndarray, " runs"]
    times: Int[np.ndarray, " runs"]


def windows_of(corpus: Corpus, max_order: int) -> Windows:
    """Every place of a corpus.

    Args:
        corpus: the sentences.
        max_order: highest order of the n-grams.

    Returns:
        The places, with one id more than there are words, for unknown tokens.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> found = windows_of(as_corpus(["a b", "b"]), 2)
        >>> [column.tolist() for column in found.columns], found.remaining.tolist()
        ([[0, 1, 1], [1, 1]], [2, 1, 1])
    """
    owner, ends = places(corpus)
    return Windows(
        columns=[corpus.tokens[n:] for n in range(max_order)],
        remaining=ends - np.arange(corpus.num_tokens),
        owner=owner,
        num_ids=corpus.vocab_size + 1,
    )


def orders(
    windows: Windows, max_order: int, min_order: int = 1, shared: bool = False
) -> Iterator[Runs]:
    """Group the n-grams of orders min_order to max_order.

    Args:
        windows: where they start.
        max_order: the highest order.
        min_order: the lowest order, 1 or 2.
        shared: only n-grams whose prefix occurs in at least two sentences.

    Yields:
        The n-grams of each order.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> texts = windows_of(as_corpus(["a b a b", "b a"]), 2)
        >>> [found.times.tolist() for found in orders(texts, 2)]
        [[2, 1, 2, 1], [2, 1, 1]]
    """
    many = len(windows.owner)
    place, base = np.arange(many, dtype=np.min_scalar_type(-many)), windows.num_ids
    rank, size = np.zeros(len(place), np.int64), 1
    if min_order == 2:
        rank, size = windows.columns[0].astype(np.int64), base
    for n in range(min_order - 1, max_order):
        whole = windows.remaining[place] > n
        place, rank = place[whole], rank[whole]
        rank *= base
        rank += windows.columns[n][place]
        found, order, rank = runs(rank, size * base, windows.owner[place])
        yield found
        place, size = place[order], len(found.keys)
        if shared:
            kept = (np.diff(found.first, append=len(found.times)) > 1)[rank]
            place, rank = place[kept], rank[kept]


def runs(
    keys: np.ndarray, size: int, sentence: np.ndarray
) -> tuple[Runs, np.ndarray, np.ndarray]:
    """Group occurrences into n-grams and runs.

    Args:
        keys: the n-gram of each occurrence, sentence after sentence.
        size: a number that exceeds the keys.
        sentence: the sentence of each.

    Returns:
        The n-grams, the order of the occurrences that sorts them, and the n-gram of
        each in this order. Occurrences of one n-gram keep the order of the text.
    """
    keys, order = sorted_keys(keys, size)
    new, owner = changes(keys), sentence[order]
    starts = np.flatnonzero(new | changes(owner))
    first = np.flatnonzero(new[starts])
    rank = np.cumsum(new)
    rank -= 1
    times = np.diff(starts, append=len(keys))
    return Runs(keys[new], first, rank[starts], owner[starts], times), order, rank


def places(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Find where each token stands.

    Args:
        corpus: the sentences.

    Returns:
        The sentence of each token, and the end of that sentence.
    """
    sentence = np.repeat(np.arange(len(corpus)), corpus.lengths)
    return sentence, corpus.offsets[1:][sentence]


def sorted_keys(keys: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort keys below `size`, those that are equal in their order.

    Sorting integers with the positions packed into the low bits is several times
    faster than an argsort.

    Args:
        keys: nonnegative integers.
        size: a number that exceeds them.

    Returns:
        The sorted keys, and their original positions.
    """
    bits = len(keys).bit_length()
    if (size << bits) > np.iinfo(np.int64).max:
        order = np.argsort(keys, kind="stable")
        return keys[order], order
    packed = keys << bits
    packed |= np.arange(len(keys))
    packed.sort()
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    return packed, order


def changes(values: np.ndarray) -> Bool[np.ndarray, " values"]:
    """Mark where values change.

    Args:
        values: any values.

    Returns:
        Whether a value differs from its predecessor; True for the first.
    """
    changes = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes
