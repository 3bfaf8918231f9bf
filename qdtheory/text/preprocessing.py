"""Preprocessing as the papers do it: rare words and sentence lengths."""

from dataclasses import replace
from itertools import compress
from typing import Literal

import numpy as np

from qdtheory.text.corpus import (
    Corpus,
    Removed,
    Texts,
    as_corpus,
    check_whole,
    prefix_sums,
)


def prepare(
    corpus: Texts,
    *,
    min_count: int = 1,
    rare: Literal["drop", "unk"] = "drop",
    max_unknown: int | None = None,
    min_length: int = 1,
    max_length: int | None = None,
    seed: int | None = None,
    unknown: str = "<unk>",
) -> Corpus:
    """Remove rare words and sentences that are too short or too long.

    The steps are: count words once, on the corpus as given; drop the sentences with
    rare words, or replace these; filter by length; shuffle; restrict the vocabulary to
    the remaining words. Words that become rare by a removal stay: the papers do not
    iterate.

    Args:
        corpus: a `Corpus`, or any input of `as_corpus`.
        min_count: words with fewer occurrences are rare.
        rare: "drop" removes the sentences with a rare word (Li et al. 2020); "unk"
            replaces every rare word by `unknown` (Montahaei et al. 2019).
        max_unknown: with "unk", sentences with more unknown words are removed; None:
            no limit.
        min_length: minimum number of tokens; 0 keeps empty sentences.
        max_length: maximum number of tokens; None: no limit.
        seed: seed for shuffling the sentences; None keeps their order.
        unknown: the token that replaces rare words.

    Returns:
        A new corpus; its `removed` counts the sentences each rule removed. A sentence
        that violates several rules counts for the first.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; settings are out of range or contradictory, or no
            sentence is left.

    References:
        Li et al. 2020, appendix G.2; Montahaei et al. 2019, section 4.1.

    Claims: N10.1.

    Example:
        >>> prepare(["a b a", "a c", "a a a a"], min_count=2, max_length=3)
        Traceback (most recent call last):
            ...
        ValueError: no sentence is left: Removed(rare=2, unknown=0, short=0, long=1)
        >>> list(prepare(["a b a", "a c", "a a a a"], min_count=2, rare="unk"))
        [('a', '<unk>', 'a'), ('a', '<unk>'), ('a', 'a', 'a', 'a')]
    """
    _check_settings(min_count, rare, max_unknown, min_length, max_length)
    corpus = as_corpus(corpus)
    is_rare = np.bincount(corpus.tokens, minlength=corpus.vocab_size) < min_count
    if rare == "unk":  # a corpus may already contain the unknown word
        is_rare |= np.array([word == unknown for word in corpus.vocabulary])
    num_rare = np.diff(prefix_sums(is_rare[corpus.tokens])[corpus.offsets])
    lengths = corpus.lengths
    allowed = 0 if rare == "drop" else max_unknown
    too_rare = num_rare > (lengths if allowed is None else allowed)
    too_short = ~too_rare & (lengths < min_length)
    too_long = ~too_rare & (lengths > (lengths if max_length is None else max_length))
    removed = Removed(
        **{"rare" if rare == "drop" else "unknown": int(too_rare.sum())},
        short=int(too_short.sum()),
        long=int(too_long.sum()),
    )
    order = np.flatnonzero(~(too_rare | too_short | too_long))
    if not len(order):
        raise ValueError(f"no sentence is left: {removed}")
    if seed is not None:
        order = np.random.default_rng(seed).permutation(order)
    left = corpus[order]
    ids = np.where(is_rare, corpus.vocab_size, np.arange(corpus.vocab_size))
    tokens, vocabulary = _shrink(ids[left.tokens], (*corpus.vocabulary, unknown))
    return replace(
        left,
        tokens=tokens,
        vocabulary=vocabulary,
        empty_lines=corpus.empty_lines,
        removed=removed,
    )


def _check_settings(min_count, rare, max_unknown, min_length, max_length) -> None:
    check_whole("min_count", min_count, 0)
    if max_unknown is not None:
        check_whole("max_unknown", max_unknown, 0)
    check_whole("min_length", min_length, 0)
    if max_length is not None:
        check_whole("max_length", max_length, min_length)
    if rare not in ("drop", "unk"):
        raise ValueError(f'rare: expected "drop" or "unk", got {rare!r}')
    if rare == "drop" and max_unknown is not None:
        raise ValueError('max_unknown counts replaced words: set rare="unk" with it')


def _shrink(ids, vocabulary):
    """Renumber the words in use from zero, in the order of the vocabulary."""
    used = np.bincount(ids, minlength=len(vocabulary)) > 0
    tokens = (np.cumsum(used) - 1).astype(np.int32)[ids]
    return tokens, tuple(compress(vocabulary, used.tolist()))
