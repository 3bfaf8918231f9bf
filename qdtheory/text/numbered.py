r"""The texts that are counted together, and the n-grams of each part of them.

The n-grams of all texts are dealt out to K parts. An n-gram belongs to the part that a
hash of its first two tokens names. Then its prefixes, too, are in this part, which
numbers its n-grams one order after another: equal numbers are equal n-grams, of any
order and any vocabulary, and nothing collides.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from qdtheory.text.checks import check_whole
from qdtheory.text.corpus import Corpus, common_ids, prefix_sums, slices
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.intervals import random_groups
from qdtheory.text.postings import (
    Positions,
    Postings,
    changes,
    hashed,
    postings_by_order,
    sorted_keys,
    token_sentences,
)
from qdtheory.world.records import Record

MAX_GROUPS = 255  # numbered in a byte
REFERENCES = "\0"  # no candidate is called so


class Lengths(Record):
    """How many sentences of each group have which length; the lengths ascend."""

    values: Int[np.ndarray, " lengths"]
    times: Int[np.ndarray, "groups lengths"]


class NumberedText(NamedTuple):
    """One text among all that are counted together; made by `number_texts`."""

    corpus: Corpus
    ids: np.ndarray  # the id of each word that all texts share
    num_ids: int
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


def number_texts(
    candidates: Mapping[str, Corpus], references: Corpus, num_groups: int = NUM_GROUPS
) -> dict[str, NumberedText]:
    """Number the words and the sentences of all texts together."""
    check_whole("num_groups", num_groups, 1, MAX_GROUPS)
    corpora = [*candidates.values(), references]
    ids = common_ids(corpora)
    size = 1 + max(int(x.max(initial=0)) for x in ids)
    groups = [min(num_groups, len(corpus)) for corpus in corpora]
    firsts = prefix_sums([len(corpus) for corpus in corpora]).tolist()
    each = zip(corpora, ids, firsts, groups, strict=False)
    texts = [_numbered(*one, size) for one in each]
    return dict(zip([*candidates, REFERENCES], texts))


def _numbered(
    corpus: Corpus, ids: np.ndarray, first: int, num_groups: int, num_ids: int
) -> NumberedText:
    groups = random_groups(len(corpus), num_groups).astype(np.uint8)
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
    return NumberedText(
        corpus=corpus,
        ids=ids,
        num_ids=num_ids,
        first=first,
        place=place,
        bounds=bounds,
        groups=np.sort(groups),
        lengths=lengths,
        histogram=Lengths(values.astype(np.int64), np.array(times)),
    )


def ngrams_of(
    texts: Sequence[NumberedText], max_order: int, part: int, num_parts: int
) -> Iterator[Postings]:
    """Group the n-grams of one part of all texts, one order after another."""
    chosen = _dealt(texts[0].num_ids, part, num_parts)
    yield _words(texts, chosen[0] == 0)
    if max_order > 1:
        positions = _positions(texts, max_order, chosen)
        yield from postings_by_order(positions, max_order - 1)


def _dealt(num_ids: int, part: int, num_parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Deal words and pairs of words out, without a division for each token.

    A word is in the part if its first number is 0, and a pair if the first number of
    one word is the second of the other: each number is a hash modulo the parts, so that
    they are as likely to be equal as any part.
    """
    ids = np.arange(num_ids)
    one, two = (
        hashed(ids, np.full_like(ids, n)) % np.uint64(num_parts) for n in (0, 1)
    )
    first = (part + one) % num_parts
    return first.astype(np.uint16), two.astype(np.uint16)


def _words(texts: Sequence[NumberedText], chosen: np.ndarray) -> Postings:
    """Group the chosen words in chunks: one may be in most sentences."""
    last = texts[-1].first + texts[-1].size
    bits = last.bit_length()
    keys, times = [], []
    for text in texts:
        wanted = chosen[text.ids]
        for start, chunk in slices(text.corpus):
            kept = np.flatnonzero(wanted[chunk.tokens])
            place = text.place[start : start + len(chunk)]
            sentence = np.repeat(place, chunk.lengths)[kept]
            words = text.ids[chunk.tokens[kept]].astype(np.int64) << bits | sentence
            words, many = np.unique(words, return_counts=True)
            keys.append(words)
            times.append(many.astype(np.int32))
    keys, order = sorted_keys(np.concatenate(keys), texts[0].num_ids << bits)
    times = np.concatenate(times)[order]
    del order
    sentence = (keys & ((1 << bits) - 1)).astype(np.min_scalar_type(-last))
    keys >>= bits
    new = changes(keys)
    ngram = np.cumsum(new, dtype=np.int32) - np.int32(1)
    return Postings(keys[new], np.flatnonzero(new), ngram, sentence, times)


def _positions(
    texts: Sequence[NumberedText], max_order: int, chosen: Sequence[np.ndarray]
) -> Positions:
    """The places whose first two tokens are chosen, sentence after sentence."""
    chunks = (x for text in texts for x in _chunks(text, max_order, chosen))
    rows = [*map(list, zip(*chunks))]
    sentence = np.concatenate(rows.pop())
    order = None
    if (sentence[1:] < sentence[:-1]).any():
        last = texts[-1]
        _, order = sorted_keys(sentence.astype(np.int64), last.first + last.size)
        sentence = sentence[order]
    columns = []
    while rows:  # what is joined is let go of
        column = np.concatenate(rows.pop(0))
        columns.append(column if order is None else column[order])
    first, *columns, remaining = columns
    num_ids = texts[0].num_ids
    return Positions(columns, remaining - 1, sentence, num_ids, first, num_ids)


def _chunks(
    text: NumberedText, max_order: int, chosen: Sequence[np.ndarray]
) -> Iterator[tuple[np.ndarray, ...]]:
    """Columns of tokens, how many are left up to the order, and the sentence."""
    first, second = (x[text.ids] for x in chosen)
    for start, chunk in slices(text.corpus):
        tokens = chunk.tokens
        # The last token of a sentence begins no pair, whatever stands behind it.
        kept = np.flatnonzero(first[tokens[:-1]] == second[tokens[1:]])
        sentence = token_sentences(chunk)[kept]
        left = np.minimum(chunk.offsets[1:][sentence] - kept, max_order)
        padded = np.append(tokens, np.zeros(max_order, tokens.dtype))
        yield (
            *(text.ids[padded[n:][kept]] for n in range(max_order)),
            left.astype(np.min_scalar_type(max_order)),
            text.place[start:][sentence],
        )
