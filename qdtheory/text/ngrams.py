r"""Coverage, repetition and their divergence on the n-grams of corpora.

The exact wing's functions of the same names take the n-gram distributions of a whole
space. The plug-in estimator uses the frequencies of a sample. Their squared norm is
biased upwards, because n-grams of one sentence are not independent draws; omitting the
pairs within one sentence, as is the default, removes the excess. Let sentence s have
count vector $c_s$, $T_s$ n-grams in total and weight $w_s$ on each; with
$x_s = w_s c_s$, $m_s = w_s T_s$:

$\hat q = \sum_s x_s / \sum_s m_s$ and
$\sum_{s \ne s'} x_s \cdot x_{s'} / \sum_{s \ne s'} m_s m_{s'}
= \Vert \hat q \Vert^2 - excess$.

$w_s = 1$ gives the pooled law, of an n-gram drawn from all n-grams; $w_s = 1 / T_s$ the
sentence-averaged law, of one drawn from a random sentence. They differ if sentences
differ in length. A sentence of fewer than n tokens, such as an empty one, has no
n-grams, $T_s = 0$, and does not contribute.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from numbers import Integral
from typing import TypeAlias, get_args

import numpy as np
from jaxtyping import Float, Int

from qdtheory.text.corpus import Corpus, Texts, Token, as_corpus
from qdtheory.text.defaults import ESTIMATOR, Estimator
from qdtheory.text.looks import tell, unlike


@dataclass(frozen=True, eq=False, repr=False)
class NgramCounts:
    """The distinct n-grams of a corpus with their counts.

    Attributes:
        ngrams: token ids, one row per n-gram, in lexicographic order.
        counts: number of occurrences of each.
        corpus: the sentences counted.

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
        """Total number of n-grams."""
        return int(self.counts.sum())

    @property
    def frequencies(self) -> Float[np.ndarray, " distinct"]:
        """Counts divided by their total."""
        return self.counts / self.total

    @cached_property
    def by_sentence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nonzero counts per sentence: row of the n-gram, sentence, count."""
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


def ngram_counts(texts: Countable, n: int) -> NgramCounts:
    """Count the n-grams of a corpus, within sentences, in the time of one sort.

    The functions below accept the table in place of texts, so that a corpus used
    repeatedly is counted once.

    Args:
        texts: a `Corpus`, or any input of `as_corpus`; a table is returned unchanged.
        n: the order, at least 1.

    Returns:
        The table.

    Raises:
        TypeError: see `as_corpus`; or n is not an integer.
        ValueError: see `as_corpus`; n is below 1, a table has another order, or no
            sentence has n tokens.
    """
    check_order(n, "n")
    if isinstance(texts, NgramCounts):
        if texts.n != n:
            raise ValueError(f"expected a table of order {n}, got one of {texts.n}")
        return texts
    corpus = as_corpus(texts)
    starts = _starts(corpus, n)
    if not len(starts):
        raise too_short(n, corpus.lengths.max())
    base = corpus.vocab_size
    keys = _keys((corpus.tokens[starts + k] for k in range(n)), base)
    if _fits(base**n):  # sorting without positions is ten times faster
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
    estimator: Estimator = ESTIMATOR,
) -> float:
    r"""Coverage rate, a quality: probability that two n-grams, one per side, are equal.

    $CR_n = \sum_g q_g p_g$, with $q$, $p$ the n-gram frequencies.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: real text in the same form.
        n: the order, at least 1.
        estimator: "pairs" or "plug-in", which coincide here as the two n-grams come
            from different sentences: unbiased for the pooled law if all sentences have
            equally many n-grams, otherwise with bias of order 1/S for S sentences.
            "sentence-pairs": always unbiased for the sentence-averaged law.

    Returns:
        A number in [0, 1].

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; strings against token ids; or an unknown
            estimator.

    References:
        Li et al. 2020, section 5.2.

    Claims: N10.4, N10.5, N10.6, N10.7, N10.8, N10.9, N12.15.

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
    candidates: Countable, n: int, estimator: Estimator = ESTIMATOR
) -> float:
    r"""Negative repetition rate, a diversity: minus P(two candidate n-grams are equal).

    $NRR_n = -\sum_g q_g^2$, with $q$ the n-gram frequencies.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.
        estimator: "pairs": only n-grams of different sentences, unbiased for the
            pooled law if all sentences have equally many n-grams, otherwise with a
            bias of order 1/S for S sentences. "sentence-pairs": the same with equal
            weight on each sentence, always unbiased for the sentence-averaged law.
            "plug-in": the frequencies of all, as in the paper, with a larger downward
            bias of order 1/S.

    Returns:
        A number in [-1, 0]; 0 only for the pair estimators.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; an unknown estimator; or fewer than two
            sentences with n tokens for a pair estimator.

    References:
        Li et al. 2020, section 5.2.

    Claims: N10.4, N10.5, N12.1, N12.2, N12.3.

    Example:
        >>> negative_repetition_rate(["a b", "a c"], 1)
        -0.25
        >>> negative_repetition_rate(["a b", "a c"], 1, estimator="plug-in")
        -0.375
    """
    (table,) = _tables(n, estimator, candidates)
    q = _frequencies(table, estimator)
    return _excess(table, estimator) - float(np.sum(q**2))


def cnd(
    candidates: Countable,
    references: Countable,
    n: int,
    estimator: Estimator = ESTIMATOR,
) -> float:
    r"""Squared distance of the n-gram frequencies, the divergence of CR and NRR.

    $CND_n = \sum_g (q_g - p_g)^2$, computed as a sum of squares: the equal expression
    $-2 CR_n(q, p) - NRR_n(q) - NRR_n(p)$ loses precision near zero.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: real text in the same form.
        n: the order, at least 1.
        estimator: the estimator of $NRR_n$ on both sides. "pairs" and "sentence-pairs",
            U-statistics of the MMD, can be negative, and are unbiased if those of
            $NRR_n$ are and the candidates are independent of the references. "plug-in"
            has upward bias of order 1/S.

    Returns:
        For the plug-in estimator a number in [0, 2], 0 iff the frequencies are equal.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `negative_repetition_rate`; or strings against token ids.

    References:
        Li et al. 2020, section 5.2; Gretton et al. 2012, lemma 6.

    Claims: N10.3, N10.5, N12.7, N12.8, N12.10.

    Example:
        >>> cnd(["a a", "a"], ["b b", "b"], 1), cnd(["a", "b"], ["a", "b"], 1)
        (2.0, -1.0)
        >>> cnd(["a", "b"], ["a", "b"], 1, estimator="plug-in")
        0.0
    """
    ours, theirs = _tables(n, estimator, candidates, references)
    rows, others = shared_ngrams(ours, theirs)
    q, p = _frequencies(ours, estimator), _frequencies(theirs, estimator)
    q[rows] -= p[others]
    p[others] = 0
    excess = _excess(ours, estimator) + _excess(theirs, estimator)
    return float(np.sum(q**2) + np.sum(p**2)) - excess


def unique_ngrams(candidates: Countable, n: int) -> int:
    """Number of distinct n-grams in the candidates; increases with sample size.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.

    Returns:
        A number, at least 1.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`.

    Example:
        >>> unique_ngrams(["a b a b", "b a"], 2)
        2
    """
    return len(ngram_counts(candidates, n).counts)


def distinct(candidates: Countable, n: int) -> float:
    """Distinct-n, a diversity: distinct n-grams over all; decreases with sample size.

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

    Claims: N12.14.

    Example:
        >>> distinct(["a b a b", "b a"], 2)
        0.5
    """
    table = ngram_counts(candidates, n)
    return len(table.counts) / table.total


def _tables(n: int, estimator: Estimator, *texts: Countable) -> list[NgramCounts]:
    check_estimator(estimator)
    return [ngram_counts(x, n) for x in texts]


def _frequencies(table: NgramCounts, estimator: Estimator) -> np.ndarray:
    if estimator != "sentence-pairs":
        return table.frequencies
    row, sentence, counts = table.by_sentence
    totals = np.bincount(sentence, counts)
    sums = np.bincount(row, counts / totals[sentence])
    return sums / np.count_nonzero(totals)


def _excess(table: NgramCounts, estimator: Estimator) -> float:
    """Contribution of within-sentence pairs to the squared norm of the frequencies."""
    if estimator == "plug-in":
        return 0.0
    _, sentence, weights = table.by_sentence
    masses = np.bincount(sentence, weights)
    if np.count_nonzero(masses) < 2:
        raise too_few_pairs(table.n)
    if estimator == "sentence-pairs":
        weights, masses = weights / masses[sentence], (masses > 0).astype(float)
    together = np.sum(_frequencies(table, estimator) ** 2)
    squares = np.sum(masses**2)
    share = squares / masses.sum() ** 2
    return float((np.sum(weights**2) / squares - together) * share / (1 - share))


def too_short(n: int, longest: int) -> ValueError:
    """Make the error for texts without an n-gram of some order.

    Args:
        n: the order.
        longest: the greatest length of a sentence.

    Returns:
        The error.
    """
    return ValueError(f"no sentence has {n} tokens: the longest has {longest}")


def too_few_pairs(n: int) -> ValueError:
    """Make the error for texts with n-grams in one sentence only.

    Args:
        n: the order.

    Returns:
        The error.
    """
    return ValueError(
        f"pairs need at least two sentences with {n} tokens, got one: give more "
        "sentences, or take the estimator plug-in"
    )


def check_estimator(estimator: Estimator) -> None:
    """Raise unless the estimator is known.

    Args:
        estimator: the value passed by the caller.

    Raises:
        ValueError: it is not one of `Estimator`.
    """
    if estimator not in get_args(Estimator):
        known = ", ".join(f'"{name}"' for name in get_args(Estimator))
        raise ValueError(f"estimator: expected one of {known}, got {estimator!r}")


def check_order(order: int, name: str) -> None:
    """Raise unless an n-gram order is a positive integer.

    Args:
        order: the order.
        name: the name of the parameter in the error message.

    Raises:
        TypeError: `order` is not an integer.
        ValueError: `order` is below 1.
    """
    if not isinstance(order, Integral):
        raise TypeError(f"{name}: expected an integer, got {type(order).__name__}")
    if order < 1:
        raise ValueError(f"{name}: expected 1 or more, got {order}")


def _starts(corpus: Corpus, n: int) -> Int[np.ndarray, " windows"]:
    """Positions at which an n-gram within one sentence starts."""
    ends = np.repeat(corpus.offsets[1:], corpus.lengths)
    return np.flatnonzero(np.arange(corpus.num_tokens) + n <= ends)


def _fits(size: int) -> bool:
    return size <= np.iinfo(np.int64).max


def _keys(columns: Iterable[np.ndarray], base: int) -> Int[np.ndarray, " rows"]:
    """Encode each row as an integer, preserving equality and order.

    The columns are the digits of a number in this base; when it would exceed 64 bits,
    the prefixes are replaced by their ranks.
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
    """Find the n-grams that occur in both tables.

    Args:
        q: a table.
        p: a table of the same order, possibly over another vocabulary.

    Returns:
        Rows of q, ascending, and the rows of p with the same n-grams.

    Raises:
        ValueError: strings against token ids.
    """
    tell(unlike(q.vocabulary, p.vocabulary))
    ids = dict(zip(p.vocabulary, range(len(p.vocabulary))))
    unknown = len(ids)  # one id for all unknown tokens: no n-gram of p contains it
    renamed = np.fromiter(map(ids.get, q.vocabulary, repeat(unknown)), np.int32)
    keys = _keys(np.concatenate([renamed[q.ngrams], p.ngrams]).T, unknown + 1)
    # The keys of p are ascending.
    ours, theirs = np.split(keys, [len(q.counts)])
    place = np.searchsorted(theirs, ours)
    rows = np.flatnonzero(theirs.take(place, mode="clip") == ours)
    return rows, place[rows]
