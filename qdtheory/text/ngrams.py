"""Coverage, repetition and their divergence on the pooled n-grams of corpora.

The exact wing's functions of the same names take the n-gram distributions of a whole
space; these put in the frequencies of a sample, counts over total.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from qdtheory.text.corpus import Corpus, Texts, Token, as_corpus


@dataclass(frozen=True, eq=False, repr=False)
class NgramCounts:
    """The n-grams of a corpus, each once, with how often it occurs.

    Attributes:
        ngrams: token ids, a row an n-gram, in lexicographic order.
        counts: occurrences of each.
        vocabulary: the token of each id.

    Example:
        >>> table = ngram_counts(["a b a b", "b a"], 2)
        >>> table
        NgramCounts(n=2, 2 distinct, total=4)
        >>> table.ngrams.tolist(), table.counts.tolist()
        ([[0, 1], [1, 0]], [2, 2])
    """

    ngrams: Int[np.ndarray, "distinct n"]
    counts: Int[np.ndarray, " distinct"]
    vocabulary: tuple[Token, ...]

    @property
    def n(self) -> int:
        """The order."""
        return self.ngrams.shape[1]

    @property
    def total(self) -> int:
        """Occurrences of all n-grams."""
        return int(self.counts.sum())

    @property
    def frequencies(self) -> Float[np.ndarray, " distinct"]:
        """Counts over total."""
        return self.counts / self.total

    def __repr__(self) -> str:
        return (
            f"NgramCounts(n={self.n}, {len(self.counts)} distinct, total={self.total})"
        )


Countable: TypeAlias = Texts | NgramCounts


def ngram_counts(texts: Countable, n: int) -> NgramCounts:
    """Count the n-grams inside the sentences; none crosses the end of one.

    The functions below take such a table in place of texts, so that a corpus used
    often is counted once.

    Args:
        texts: a `Corpus`, or whatever `as_corpus` takes; a table is given back.
        n: the order, at least 1.

    Returns:
        The table. The time is that of one sort of the tokens.

    Raises:
        TypeError: when `as_corpus` refuses the texts, or n is no integer.
        ValueError: for n < 1, a table of another order, or no sentence of n tokens.
    """
    if not isinstance(n, Integral):
        raise TypeError(f"n: expected an integer, got {type(n).__name__}")
    if n < 1:
        raise ValueError(f"n: expected 1 or more, got {n}")
    if isinstance(texts, NgramCounts):
        if texts.n != n:
            raise ValueError(f"expected a table of order {n}, got one of {texts.n}")
        return texts
    corpus = as_corpus(texts)
    starts = _starts(corpus, n)
    if not len(starts):
        raise ValueError(
            f"no sentence has {n} tokens: the longest has {corpus.lengths.max()}"
        )
    base = corpus.vocab_size
    keys = _keys((corpus.tokens[starts + k] for k in range(n)), base)
    if _fits(base**n):  # ten times faster: a sort that need not carry positions
        keys, counts = np.unique(keys, return_counts=True)
        ngrams = keys[:, None] // base ** np.arange(n)[::-1] % base
    else:
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        ngrams = corpus.tokens[starts[first][:, None] + np.arange(n)]
    return NgramCounts(ngrams, counts, corpus.vocabulary)


def coverage_rate(candidates: Countable, references: Countable, n: int) -> float:
    r"""Quality: the chance that two n-grams, one from each side, are equal.

    $CR_n = \sum_g q_g p_g$, with $q$, $p$ the pooled n-gram frequencies.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: the same, of real text.
        n: the order, at least 1.

    Returns:
        A number in [0, 1].

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`.

    References:
        Li et al. 2020, section 5.2.

    Example:
        >>> coverage_rate(["a b", "a c"], ["a b c"], 1)
        0.3333333333333333
    """
    q, p = _aligned(candidates, references, n)
    return float(q @ p)


def negative_repetition_rate(candidates: Countable, n: int) -> float:
    r"""Diversity: minus the chance that two n-grams of the candidates are equal.

    $NRR_n = -\sum_g q_g^2$, with $q$ the pooled n-gram frequencies.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.

    Returns:
        A number in [-1, 0). The frequencies of S sentences give it a bias of order 1/S
        downwards.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`.

    References:
        Li et al. 2020, section 5.2.

    Example:
        >>> negative_repetition_rate(["a b", "a c"], 1)
        -0.375
    """
    q = ngram_counts(candidates, n).frequencies
    return -float(q @ q)


def cnd(candidates: Countable, references: Countable, n: int) -> float:
    r"""Squared distance of the n-gram frequencies, the divergence of CR and NRR.

    $CND_n = \sum_g (q_g - p_g)^2$, summed as it stands: the equal value
    $-2 CR_n(q, p) - NRR_n(q) - NRR_n(p)$ loses its digits near zero.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: the same, of real text.
        n: the order, at least 1.

    Returns:
        A number in [0, 2]; 0 where the frequencies are equal.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`.

    References:
        Li et al. 2020, section 5.2.

    Example:
        >>> cnd(["a b", "a c"], ["a b", "a c"], 2), cnd(["a a"], ["b b"], 1)
        (0.0, 2.0)
    """
    q, p = _aligned(candidates, references, n)
    return float(np.sum((q - p) ** 2))


def _starts(corpus: Corpus, n: int) -> Int[np.ndarray, " windows"]:
    """Positions at which n tokens of one sentence start."""
    ends = np.repeat(corpus.offsets[1:], corpus.lengths)
    return np.flatnonzero(np.arange(corpus.num_tokens) + n <= ends)


def _fits(size: int) -> bool:
    return size <= np.iinfo(np.int64).max


def _keys(columns: Iterable[np.ndarray], base: int) -> Int[np.ndarray, " rows"]:
    """One integer a row, equal and ordered as the rows are.

    The digits of a number in this base while it fits 64 bits; from there on the ranks
    of the rows so far stand for them.
    """
    columns = iter(columns)
    keys = next(columns).astype(np.int64)
    size = base
    for column in columns:
        if not _fits(size * base):
            ranks, keys = np.unique(keys, return_inverse=True)
            size = len(ranks)
        keys = keys * base + column
        size *= base
    return keys


def _aligned(candidates: Countable, references: Countable, n: int):
    """Frequencies of both sides over the n-grams of either."""
    q, p = ngram_counts(candidates, n), ngram_counts(references, n)
    ids = {token: index for index, token in enumerate(p.vocabulary)}
    joint = np.array([ids.setdefault(token, len(ids)) for token in q.vocabulary])
    keys = _keys(np.concatenate([joint[q.ngrams], p.ngrams]).T, len(ids))
    _, position = np.unique(keys, return_inverse=True)
    size = position.max() + 1
    split = len(q.counts)
    return (
        np.bincount(position[:split], q.frequencies, size),
        np.bincount(position[split:], p.frequencies, size),
    )
