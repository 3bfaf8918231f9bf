r"""Coverage, repetition and their divergence on the n-grams of corpora.

The exact wing's functions of the same names take the n-gram distributions of a whole
space. The plug-in puts in the frequencies of a sample. Their squared norm is too large
on average, because n-grams of one sentence are no independent draws; leaving out the
pairs from one sentence takes the excess away. With sentence s holding $c_s$, $T_s$
n-grams in all, and weight $w_s$ on each, $x_s = w_s c_s$, $m_s = w_s T_s$:

$\hat q = \sum_s x_s / \sum_s m_s$ and
$\sum_{s \ne s'} x_s \cdot x_{s'} / \sum_{s \ne s'} m_s m_{s'}
= \Vert \hat q \Vert^2 - excess$.

$w_s = 1$ gives the law of an n-gram drawn from all of them, $w_s = 1 / T_s$ that of one
drawn from a random sentence. They differ where sentences have several lengths. A
sentence of fewer than n tokens, an empty one for every n, has no n-gram: $T_s = 0$, and
nothing here depends on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from numbers import Integral
from typing import Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Float, Int

from qdtheory.text.corpus import Corpus, Texts, Token, as_corpus


@dataclass(frozen=True, eq=False, repr=False)
class NgramCounts:
    """The n-grams of a corpus, each once, with how often it occurs.

    Attributes:
        ngrams: token ids, a row an n-gram, in lexicographic order.
        counts: occurrences of each.
        corpus: the sentences they are from.

    Example:
        >>> table = ngram_counts(["a b a b", "b a"], 2)
        >>> table
        NgramCounts(n=2, 2 distinct, total=4)
        >>> table.ngrams.tolist(), table.counts.tolist()
        ([[0, 1], [1, 0]], [2, 2])
    """

    ngrams: Int[np.ndarray, "distinct n"]
    counts: Int[np.ndarray, " distinct"]
    corpus: Corpus

    @property
    def vocabulary(self) -> tuple[Token, ...]:
        """The token of each id."""
        return self.corpus.vocabulary

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

    @cached_property
    def by_sentence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each n-gram of each sentence once: its row, the sentence, its count there."""
        starts = _starts(self.corpus, self.n)
        columns = (self.corpus.tokens[starts + k] for k in range(self.n))
        _, row = np.unique(_keys(columns, self.corpus.vocab_size), return_inverse=True)
        sentence = np.searchsorted(self.corpus.offsets, starts, side="right") - 1
        size = len(self.counts)
        pairs, counts = np.unique(sentence * size + row, return_counts=True)
        return pairs % size, pairs // size, counts

    def __repr__(self) -> str:
        return (
            f"NgramCounts(n={self.n}, {len(self.counts)} distinct, total={self.total})"
        )


Countable: TypeAlias = Texts | NgramCounts
Estimator: TypeAlias = Literal["plug-in", "pairs", "sentence-pairs"]


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
    check_order(n, "n")
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
        ngrams = np.empty((len(keys), n), np.int32)
        for column in reversed(range(n)):
            keys, ngrams[:, column] = np.divmod(keys, base)
    else:
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        ngrams = corpus.tokens[starts[first][:, None] + np.arange(n)]
    return NgramCounts(ngrams, counts, corpus)


def coverage_rate(
    candidates: Countable,
    references: Countable,
    n: int,
    estimator: Estimator = "plug-in",
) -> float:
    r"""Quality: the chance that two n-grams, one from each side, are equal.

    $CR_n = \sum_g q_g p_g$, with $q$, $p$ the n-gram frequencies.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: the same, of real text.
        n: the order, at least 1.
        estimator: "plug-in" or "pairs", one value here because n-grams of two sides
            are of two sentences: unbiased for the pooled law where all sentences have
            equally many n-grams, with a bias of order 1/S otherwise.
            "sentence-pairs": unbiased for the sentence-averaged law always.

    Returns:
        A number in [0, 1].

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; or another estimator.

    References:
        Li et al. 2020, section 5.2.

    Example:
        >>> coverage_rate(["a b", "a c"], ["a b c"], 1)
        0.3333333333333333
        >>> coverage_rate(["a", "b b b"], ["a"], 1)
        0.25
        >>> coverage_rate(["a", "b b b"], ["a"], 1, estimator="sentence-pairs")
        0.5
    """
    ours, theirs = _tables(n, estimator, candidates, references)
    rows, others = shared_ngrams(ours, theirs)
    q, p = _frequencies(ours, estimator), _frequencies(theirs, estimator)
    return float(np.sum(q[rows] * p[others]))


def negative_repetition_rate(
    candidates: Countable, n: int, estimator: Estimator = "plug-in"
) -> float:
    r"""Diversity: minus the chance that two n-grams of the candidates are equal.

    $NRR_n = -\sum_g q_g^2$, with $q$ the n-gram frequencies.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.
        estimator: "plug-in": the frequencies of S sentences, with a bias of order 1/S
            downwards. "pairs": n-grams of different sentences only, unbiased for the
            pooled law where all sentences have equally many n-grams, with a smaller
            bias of order 1/S otherwise. "sentence-pairs": the same with equal weight
            on each sentence, unbiased for the sentence-averaged law always.

    Returns:
        A number in [-1, 0]; 0 only for pairs.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; another estimator; or pairs of fewer than two
            sentences with n tokens.

    References:
        Li et al. 2020, section 5.2.

    Example:
        >>> negative_repetition_rate(["a b", "a c"], 1)
        -0.375
        >>> negative_repetition_rate(["a b", "a c"], 1, estimator="pairs")
        -0.25
    """
    (table,) = _tables(n, estimator, candidates)
    q = _frequencies(table, estimator)
    return _excess(table, estimator) - float(np.sum(q**2))


def cnd(
    candidates: Countable,
    references: Countable,
    n: int,
    estimator: Estimator = "plug-in",
) -> float:
    r"""Squared distance of the n-gram frequencies, the divergence of CR and NRR.

    $CND_n = \sum_g (q_g - p_g)^2$, summed as it stands: the equal value
    $-2 CR_n(q, p) - NRR_n(q) - NRR_n(p)$ loses its digits near zero.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: the same, of real text.
        n: the order, at least 1.
        estimator: that of $NRR_n$ on both sides. "plug-in": too large by order 1/S;
            the others can be negative, and are unbiased, an MMD's U-statistic, where
            those of $NRR_n$ are and the candidates are not drawn from the references.

    Returns:
        The plug-in a number in [0, 2], 0 where the frequencies are equal.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `negative_repetition_rate`.

    References:
        Li et al. 2020, section 5.2; Gretton et al. 2012, lemma 6.

    Example:
        >>> cnd(["a b", "a c"], ["a b", "a c"], 2), cnd(["a a"], ["b b"], 1)
        (0.0, 2.0)
        >>> cnd(["a b", "a c"], ["a b", "a c"], 2, estimator="pairs")
        -1.0
    """
    ours, theirs = _tables(n, estimator, candidates, references)
    rows, others = shared_ngrams(ours, theirs)
    q, p = _frequencies(ours, estimator), _frequencies(theirs, estimator)
    q[rows] -= p[others]
    p[others] = 0
    excess = _excess(ours, estimator) + _excess(theirs, estimator)
    return float(np.sum(q**2) + np.sum(p**2)) - excess


def unique_ngrams(candidates: Countable, n: int) -> int:
    """How many different n-grams the candidates hold; it grows with their number.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.

    Returns:
        A number from 1 on.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`.

    Example:
        >>> unique_ngrams(["a b a b", "b a"], 2)
        2
    """
    return len(ngram_counts(candidates, n).counts)


def distinct(candidates: Countable, n: int) -> float:
    """Diversity: different n-grams over all n-grams; it falls with their number.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.

    Returns:
        A number in (0, 1].

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`.

    References:
        Li et al. 2016 (Distinct-n).

    Example:
        >>> distinct(["a b a b", "b a"], 2)
        0.5
    """
    table = ngram_counts(candidates, n)
    return len(table.counts) / table.total


def _tables(n: int, estimator: Estimator, *texts: Countable) -> list[NgramCounts]:
    if estimator not in get_args(Estimator):
        known = ", ".join(f'"{name}"' for name in get_args(Estimator))
        raise ValueError(f"estimator: expected one of {known}, got {estimator!r}")
    return [ngram_counts(x, n) for x in texts]


def _frequencies(table: NgramCounts, estimator: Estimator) -> np.ndarray:
    if estimator != "sentence-pairs":
        return table.frequencies
    row, sentence, counts = table.by_sentence
    totals = np.bincount(sentence, counts)
    sums = np.bincount(row, counts / totals[sentence])
    return sums / np.count_nonzero(totals)


def _excess(table: NgramCounts, estimator: Estimator) -> float:
    """What the pairs from one sentence add to the squared norm of the frequencies."""
    if estimator == "plug-in":
        return 0.0
    _, sentence, weights = table.by_sentence
    masses = np.bincount(sentence, weights)
    if np.count_nonzero(masses) < 2:
        raise ValueError(
            f"pairs need at least two sentences with {table.n} tokens, got one: give "
            "more sentences, or take the estimator plug-in"
        )
    if estimator == "sentence-pairs":
        weights, masses = weights / masses[sentence], (masses > 0).astype(float)
    together = np.sum(_frequencies(table, estimator) ** 2)
    squares = np.sum(masses**2)
    share = squares / masses.sum() ** 2
    return float((np.sum(weights**2) / squares - together) * share / (1 - share))


def check_order(order: int, name: str) -> None:
    """Refuse an order of n-grams that is no integer from 1 on.

    Args:
        order: what was given.
        name: of the parameter.

    Raises:
        TypeError: no integer.
        ValueError: below 1.
    """
    if not isinstance(order, Integral):
        raise TypeError(f"{name}: expected an integer, got {type(order).__name__}")
    if order < 1:
        raise ValueError(f"{name}: expected 1 or more, got {order}")


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
        keys *= base
        keys += column
        size *= base
    return keys


def shared_ngrams(q: NgramCounts, p: NgramCounts) -> tuple[np.ndarray, np.ndarray]:
    """The n-grams of both sides: their rows in the one table and in the other.

    Args:
        q: a table.
        p: another of the same order, perhaps over other words.

    Returns:
        Rows of q, in rising order, and those of p with the same n-grams.
    """
    ids = dict(zip(p.vocabulary, range(len(p.vocabulary))))
    unknown = len(ids)  # one id for all of these: p has no n-gram with it
    renamed = np.fromiter(map(ids.get, q.vocabulary, repeat(unknown)), np.int32)
    keys = _keys(np.concatenate([renamed[q.ngrams], p.ngrams]).T, unknown + 1)
    # Those of p are in rising order.
    ours, theirs = np.split(keys, [len(q.counts)])
    place = np.searchsorted(theirs, ours)
    rows = np.flatnonzero(theirs.take(place, mode="clip") == ours)
    return rows, place[rows]
