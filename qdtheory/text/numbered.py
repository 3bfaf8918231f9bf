r"""The texts that are counted together, and the n-grams of each part of them.

The n-grams of all texts are dealt out to K parts. An n-gram belongs to the part that a
hash of its first two tokens names. Then its prefixes, too, are in this part, which
numbers its n-grams one order after another: equal numbers are equal n-grams, of any
order and any vocabulary, and nothing collides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from qdtheory.support.records import Record
from qdtheory.text import postings
from qdtheory.text.checks import require_whole
from qdtheory.text.corpus import Corpus, Sample, common_ids, prefix_sums, slices
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.intervals import random_groups

MAX_GROUPS = 255  # numbered in a byte
REFERENCES = "\0"  # no candidate is called so


class Lengths(Record):
    """How many sentences of each group have which length; the lengths ascend."""

    values: Int[np.ndarray, " lengths"]
    times: Int[np.ndarray, "groups lengths"]


class NumberedText(NamedTuple):
    """One text among all that are counted together; made by `number_texts`."""

    ids: np.ndarray  # the id of each word that all texts share
    first: int  # number of its first sentence
    place: np.ndarray  # number of each sentence, group after group
    bounds: np.ndarray  # the first sentence of each group
    groups: np.ndarray  # of the sentences, group after group
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


class Numbers(NamedTuple):
    """How many words and sentences all texts have together."""

    words: int
    sentences: int


class Places(NamedTuple):
    """Where the n-grams of one part begin in some sentences."""

    words: np.ndarray  # a word and a sentence that has it, in one number, each once
    times: np.ndarray  # how often
    # Of pairs and all that they begin: how many tokens follow the first one, up to the
    # highest order, the sentence, and in column k the id of the token k places on.
    remaining: np.ndarray
    sentence: np.ndarray
    columns: tuple[np.ndarray, ...]


def number_texts(
    candidates: Mapping[str, Sample], references: Sample, num_groups: int = NUM_GROUPS
) -> tuple[dict[str, NumberedText], Numbers]:
    """Number the words and the sentences of all texts together."""
    require_whole("num_groups", num_groups, 1, MAX_GROUPS)
    corpora = [*candidates.values(), references]
    ids = common_ids(corpora)
    words = 1 + max(int(x.max(initial=0)) for x in ids)
    ids = [x.astype(np.min_scalar_type(words)) for x in ids]
    firsts = prefix_sums([*map(len, corpora)]).tolist()
    each = zip(corpora, ids, firsts)
    texts = [_numbered(*one, min(num_groups, len(one[0]))) for one in each]
    return dict(zip([*candidates, REFERENCES], texts)), Numbers(words, firsts[-1])


def _numbered(corpus: Sample, ids: Any, first: int, num_groups: int) -> NumberedText:
    groups = random_groups(len(corpus), num_groups).astype(np.uint8)
    order = np.argsort(groups, kind="stable")
    # Signed types, of which differences are right; -n fits into one exactly if the
    # numbers up to n - 1 do.
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
    histogram = Lengths(values.astype(np.int64), np.array(times))
    return NumberedText(ids, first, place, bounds, np.sort(groups), lengths, histogram)


def places(
    corpus: Corpus,
    ids: np.ndarray,
    place: np.ndarray,
    numbers: Numbers,
    max_order: int,
    parts: Sequence[int],
    num_parts: int,
) -> Iterator[list[Places]]:
    """Find the n-grams of some parts in some sentences, chunk by chunk.

    Of K parts, the word v is in part -a(v) and the pair v w in part b(w) - a(v), modulo
    K, where a and b are hashes. So a part deals its words and pairs out without a
    division for each token: by a table of a(v) plus its number, compared with 0 or b.
    """
    hashes = (postings.hashed(ids, np.full_like(ids, n)) for n in (0, 1))
    a, b = (x % np.uint64(num_parts) for x in hashes)
    tables = [((part + a) % num_parts).astype(np.uint16) for part in parts]
    b = b.astype(np.uint16)
    bits = numbers.sentences.bit_length()
    for start, chunk in slices(corpus):
        sentence = postings.token_sentences(chunk)
        number = place[start : start + len(chunk)]
        # Zeros stand for the tokens after the last one; `remaining` bars n-grams there.
        padded = np.append(chunk.tokens, np.zeros(max_order, chunk.tokens.dtype))
        second, of_parts = b[chunk.tokens[1:]], []
        for table in tables:
            first = table[chunk.tokens]
            kept = np.flatnonzero(first == 0)
            words = ids[chunk.tokens[kept]].astype(np.int64) << bits
            words, times = np.unique(words | number[sentence[kept]], return_counts=True)
            kept = np.flatnonzero(first[:-1] == second)
            in_sentence = sentence[kept]
            # 0 for the last token of a sentence, which begins no pair with the next.
            after = np.minimum(chunk.offsets[1:][in_sentence] - kept, max_order) - 1
            begins = Places(
                words,
                times.astype(np.min_scalar_type(times.max(initial=0))),
                after.astype(np.min_scalar_type(max_order)),
                number[in_sentence],
                tuple(ids[padded[n:][kept]] for n in range(max_order)),
            )
            of_parts.append(begins)
        yield of_parts


def ngrams_of(
    of_part: Iterable[Places], numbers: Numbers, max_order: int
) -> Iterator[postings.Postings]:
    """Group the n-grams of one part of all texts, one order after another."""
    words, times, remaining, sentence, columns = map(list, zip(*of_part))
    yield _words(words, times, numbers)
    if max_order == 1:
        return
    by_order = [*map(list, zip(*columns))]
    del columns
    # Sorted by sentence once: each order then keeps the sentences of an n-gram sorted.
    keys = np.concatenate(sentence, dtype=np.int64)
    keys, order = postings.sorted_keys(keys, numbers.sentences)
    first, *others = (_joined(pieces, order) for pieces in by_order)
    remaining, sentence = _joined(remaining, order), _joined(sentence, order)
    del keys, order
    # The first token is the prefix of order 1, so that pairs come first.
    num_ids = numbers.words
    positions = postings.Positions(others, remaining, sentence, num_ids, first, num_ids)
    yield from postings.postings_by_order(positions, max_order - 1)


def _joined(pieces: list[np.ndarray], order: Any = ...) -> np.ndarray:
    column = np.concatenate(pieces)
    pieces.clear()  # so that memory never holds a column twice for long
    return column[order]


def _words(words: list, times: list, numbers: Numbers) -> postings.Postings:
    """Group the words: one may be in most sentences, so that they come counted."""
    last = numbers.sentences
    bits = last.bit_length()
    keys, order = postings.sorted_keys(_joined(words), numbers.words << bits)
    counts = _joined(times, order)
    del order
    sentence = (keys & ((1 << bits) - 1)).astype(np.min_scalar_type(-last))
    keys >>= bits
    new = postings.changes(keys)
    ngram = np.cumsum(new, dtype=np.int32) - np.int32(1)
    return postings.Postings(keys[new], np.flatnonzero(new), ngram, sentence, counts)
