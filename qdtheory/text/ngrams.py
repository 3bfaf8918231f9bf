r"""Coverage, repetition, their divergence and overlap, on the n-grams of corpora.

The functions of the same names in `qdtheory.ngrams` take the n-gram distributions of a
whole space. The plug-in estimator uses the frequencies of a sample. Their squared norm
is biased upwards, because n-grams of one sentence are not independent draws; omitting
the pairs within one sentence, as is the default, removes the excess. Let sentence s
have count vector $c_s$, $T_s$ n-grams in total and weight $w_s$ on each; with
$x_s = w_s c_s$, $m_s = w_s T_s$:

$\hat q = \sum_s x_s / \sum_s m_s$ and
$\sum_{s \ne s'} x_s \cdot x_{s'} / \sum_{s \ne s'} m_s m_{s'}
= \Vert \hat q \Vert^2 - excess$.

$w_s = 1$ gives the pooled law, of an n-gram drawn from all n-grams; $w_s = 1 / T_s$ the
sentence-averaged law, of one drawn from a random sentence. They differ if sentences
differ in length. A sentence of fewer than n tokens, such as an empty one, has no
n-grams, $T_s = 0$, and does not contribute.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from qdtheory.text import postings
from qdtheory.text.checks import require_choice
from qdtheory.text.corpus import Corpus, Texts, Token, as_corpus, ids_in
from qdtheory.text.defaults import ESTIMATOR, MAX_ORDER, Estimator


@dataclass(frozen=True, eq=False, repr=False)
class NgramCounts:
    """The distinct n-grams of a corpus with their counts.

    Attributes:
        n: the order.
        counts: number of occurrences of each, in lexicographic order.
        corpus: the sentences counted.
        places: where each occurrence begins among the corpus's tokens, n-gram by
            n-gram.

    Example:
        >>> table = ngram_counts(["a b a b", "b a"], 2)
        >>> table
        NgramCounts(n=2, 2 distinct, total=4)
        >>> table.ngrams.tolist(), table.counts.tolist()
        ([[0, 1], [1, 0]], [2, 2])
    """

    n: int
    counts: Int[np.ndarray, " distinct"]
    corpus: Corpus
    places: Int[np.ndarray, " occurrences"]

    @cached_property
    def starts(self) -> Int[np.ndarray, " distinct"]:
        """Where the first occurrence of each begins."""
        return self.places[np.cumsum(self.counts) - self.counts]

    @cached_property
    def postings(self) -> postings.Postings:
        """The counts in each sentence."""
        keys = np.repeat(np.arange(len(self.counts)), self.counts)
        sentence = postings.token_sentences(self.corpus)[self.places]
        return postings.group(keys, sentence)[0]

    @cached_property
    def ngrams(self) -> Int[np.ndarray, "distinct n"]:
        """Token ids, one row per n-gram."""
        return self.corpus.tokens[self.starts[:, None] + np.arange(self.n)]

    @property
    def vocabulary(self) -> tuple[Token, ...]:
        """The token of each id."""
        return self.corpus.vocabulary

    @property
    def total(self) -> int:
        """Total number of n-grams."""
        return int(self.counts.sum())

    @property
    def frequencies(self) -> Float[np.ndarray, " distinct"]:
        """Counts divided by their total."""
        return self.counts / self.total

    def __repr__(self) -> str:
        distinct = len(self.counts)
        return f"NgramCounts(n={self.n}, {distinct} distinct, total={self.total})"


Countable: TypeAlias = Texts | NgramCounts


def ngram_counts(texts: Countable, n: int) -> NgramCounts:
    """Count the n-grams of a corpus, within sentences, in the time of one sort.

    The functions below accept the table in place of texts, so that a corpus used
    repeatedly is counted once.

    Args:
        texts: a `Corpus`, or any input of `as_corpus`; a table is returned unchanged.
        n: the order, at least 1.

    Raises:
        TypeError: see `as_corpus`; or n is not an integer.
        ValueError: see `as_corpus`; n is below 1, a table has another order, or no
            sentence has n tokens.
    """
    require_order(n, "n")
    if isinstance(texts, NgramCounts):
        if texts.n != n:
            raise ValueError(f"expected a table of order {n}, got one of {texts.n}")
        return texts
    corpus = as_corpus(texts)
    whole = np.arange(corpus.num_tokens) + n <= postings.token_ends(corpus)
    starts = np.flatnonzero(whole)
    if not len(starts):
        longest = corpus.lengths.max()
        raise ValueError(f"no sentence has {n} tokens: the longest has {longest}")
    columns = (corpus.tokens[starts + k] for k in range(n))
    keys, order = postings.sorted_keys(*_keys(columns, corpus.vocab_size))
    counts = np.diff(np.flatnonzero(postings.changes(keys)), append=len(keys))
    return NgramCounts(n, counts, corpus, starts[order])


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

    Claims: N10.6, N10.7, N10.8, N10.9.

    Example:
        >>> coverage_rate(["a b", "a c"], ["a b c"], 1)
        0.3333333333333333
        >>> coverage_rate(["a", "b b b"], ["a"], 1)
        0.25
        >>> coverage_rate(["a", "b b b"], ["a"], 1, estimator="sentence-pairs")
        0.5
    """
    if estimator == "pairs":  # which is the plug-in of two texts, and slower
        estimator = "plug-in"
    tables, totals = _totals(n, estimator, candidates, references)
    return float(_coverage(tables, totals))


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

    Claims: N12.1, N12.2.

    Example:
        >>> negative_repetition_rate(["a b", "a c"], 1)
        -0.25
        >>> negative_repetition_rate(["a b", "a c"], 1, estimator="plug-in")
        -0.375
    """
    _, (ours,) = _totals(n, estimator, candidates)
    return -float(ours.repetition)


def cnd(
    candidates: Countable,
    references: Countable,
    n: int,
    estimator: Estimator = ESTIMATOR,
) -> float:
    r"""Squared distance of the n-gram frequencies, the divergence of CR and NRR.

    $CND_n = \sum_g (q_g - p_g)^2$, computed as $-2 CR_n(q, p) - NRR_n(q) - NRR_n(p)$
    in fractions, which lose no precision near zero; of sentence averages in 64 bits.

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

    Claims: N10.3, N12.7, N12.8.

    Example:
        >>> cnd(["a a", "a"], ["b b", "b"], 1), cnd(["a", "b"], ["a", "b"], 1)
        (2.0, -1.0)
        >>> cnd(["a", "b"], ["a", "b"], 1, estimator="plug-in")
        0.0
    """
    tables, (ours, real) = _totals(n, estimator, candidates, references)
    repetition = ours.repetition + real.repetition
    return float(repetition - 2 * _coverage(tables, (ours, real)))


def distinct(candidates: Countable, n: int) -> float:
    """Distinct-n, a diversity: distinct n-grams over all; decreases with sample size.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.

    Returns:
        A number in (0, 1].

    Raises:
        TypeError, ValueError: see `ngram_counts`.

    References:
        Li et al. 2016 (Distinct-n).

    Claims: N12.14.

    Example:
        >>> distinct(["a b a b", "b a"], 2)
        0.5
    """
    table = ngram_counts(candidates, n)
    return len(table.counts) / table.total


def jaccard_index(candidates: Countable, references: Countable, n: int) -> float:
    r"""Jaccard index of the n-gram multisets of two corpora, counted per sentence.

    $J_n = \sum_g \min(a_g, b_g) / \sum_g \max(a_g, b_g)$, where $a_g$, $b_g$ are the
    counts of g in the two corpora divided by their numbers of sentences. Empty
    sentences have no n-grams but count as sentences.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: real text in the same form.
        n: the order, at least 1.

    Returns:
        A number in [0, 1]; 1 iff the counts per sentence are equal.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; or strings against token ids.

    References:
        Montahaei et al. 2019, equation 1.

    Example:
        >>> jaccard_index(["a b", "a c"], ["a b c"], 2)
        0.2
    """
    (q, p), (ours, real) = _totals(n, "plug-in", candidates, references)
    rows, others = shared_ngrams(q, p)
    a, b = q.counts[rows] * len(p.corpus), p.counts[others] * len(q.corpus)
    return jaccard_of(int(np.minimum(a, b).sum()), ours, real)


def ms_jaccard(
    candidates: Texts, references: Texts, max_order: int = MAX_ORDER
) -> Float[np.ndarray, " orders"]:
    r"""Geometric means of the Jaccard indices of orders 1 to n.

    $\mathrm{MSJ}_n = (J_1 \cdots J_n)^{1/n}$. Symmetric; increases with the number of
    sentences and depends on their lengths: only compare samples of equal size.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        references: real text in the same form.
        max_order: highest order of the n-grams, at least 1.

    Returns:
        MS-Jaccard-1 to MS-Jaccard-max_order, each in [0, 1]; 1 for equal corpora.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; or strings against token ids.

    References:
        Montahaei et al. 2019, section 3.2.1.

    Example:
        >>> ms_jaccard(["a b", "a c"], ["a b c"], max_order=2).round(4).tolist()
        [0.6667, 0.3651]
    """
    require_order(max_order, "max_order")
    left, right = as_corpus(candidates), as_corpus(references)
    orders = range(1, max_order + 1)
    return geometric_means([jaccard_index(left, right, n) for n in orders])


def geometric_means(values: Sequence[float]) -> Float[np.ndarray, " values"]:
    """Geometric means of the first 1, 2, ... of some nonnegative numbers."""
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    return np.exp(np.cumsum(logs) / np.arange(1, len(values) + 1))


# --- Sums over the n-grams of one order ---------------------------------------------


class NgramTotals(NamedTuple):
    """What rates of a text's n-grams of one order are made of."""

    n: int
    estimator: Estimator
    lengths: Int[np.ndarray, " lengths"]  # that sentences have
    times: Int[np.ndarray, " lengths"]  # number of sentences of each
    squares: Any  # sum of the squares of each n-gram's total value
    within: Any  # sum of the squares of its values in each sentence

    @property
    def by_length(self) -> Int[np.ndarray, " lengths"]:
        """N-grams of a sentence of each length."""
        return np.maximum(self.lengths - self.n + 1, 0)

    @property
    def num_ngrams(self) -> int:
        """Number of n-grams, with repetition."""
        return int(self.times @ self.by_length)

    @property
    def num_sentences(self) -> int:
        """Number of sentences."""
        return int(self.times.sum())

    @property
    def num_written(self) -> int:
        """Number of sentences that have n-grams."""
        return int(self.times[self.lengths >= self.n].sum())

    @property
    def mass(self) -> int:
        """The sum of all values."""
        averaged = self.estimator == "sentence-pairs"
        return self.num_written if averaged else self.num_ngrams

    @property
    def lack(self) -> str | None:
        """What there is too little of for the rates, in words; None: of nothing."""
        if not self.num_written:
            longest = self.lengths[self.times > 0].max()
            return f"no sentence has {self.n} tokens: the longest has {longest}"
        if self.estimator != "plug-in" and self.num_written < 2:
            return (
                f"pairs need at least two sentences with {self.n} tokens, got one: "
                "give more sentences, or take the estimator plug-in"
            )
        return None

    @property
    def repetition(self) -> Any:
        """The probability that two n-grams are equal; of counts, as a fraction."""
        if self.lack:
            raise ValueError(self.lack)
        if self.estimator == "plug-in":
            return Fraction(self.squares, self.num_ngrams**2)
        across = self.squares - self.within
        if self.estimator == "sentence-pairs":
            return across / (self.num_written * (self.num_written - 1))
        together = int(self.times @ self.by_length**2)  # pairs of one sentence
        return Fraction(across, self.num_ngrams**2 - together)


def coverage_of(common: Any, ours: NgramTotals, real: NgramTotals) -> Any:
    """The coverage rate, from the sum of products of values; of counts, a fraction."""
    masses = ours.mass * real.mass
    return Fraction(common, masses) if isinstance(common, int) else common / masses


def jaccard_of(overlap: int, ours: NgramTotals, real: NgramTotals) -> float:
    """The Jaccard index, its overlap multiplied by both numbers of sentences."""
    ours_whole = ours.num_ngrams * real.num_sentences
    real_whole = real.num_ngrams * ours.num_sentences
    return overlap / (ours_whole + real_whole - overlap)


def expected_distinct(
    counts: Int[np.ndarray, " counts"],
    times: Int[np.ndarray, " counts"],
    n: int,
    k: int,
) -> float:
    r"""Sum $1 - \binom{n - c}{k} / \binom{n}{k}$ over classes, distinct_k.

    `counts` ascend; `times` classes have each; k is from 1 to n. The quotient is a
    product of k factors, or as well of c.
    """
    few = np.searchsorted(counts, k, side="right")
    steps = np.arange(counts[few - 1] if few else 0)
    factors = np.maximum(n - k - steps, 0) / (n - steps)
    short = np.append(1, np.cumprod(factors))[counts[:few]]
    steps = np.arange(k)[:, None]
    long = np.prod(np.maximum(n - counts[few:] - steps, 0) / (n - steps), axis=0)
    return float(times @ (1 - np.append(short, long)))


def _totals(
    n: int, estimator: Estimator, *texts: Countable
) -> tuple[list[NgramCounts], list[NgramTotals]]:
    require_choice("estimator", estimator, Estimator)
    tables = [ngram_counts(x, n) for x in texts]
    totals = []
    for table in tables:
        lengths, times = np.unique(table.corpus.lengths, return_counts=True)
        squares = (_of_ngrams(table, estimator) ** 2).sum().item()
        # The plug-in has no use for the counts in each sentence.
        pairs = estimator != "plug-in"
        within = (_of_postings(table, estimator) ** 2).sum().item() if pairs else 0
        totals.append(NgramTotals(n, estimator, lengths, times, squares, within))
    return tables, totals


def _of_postings(table: NgramCounts, estimator: Estimator) -> np.ndarray:
    """The value of each posting."""
    held = table.postings
    if estimator != "sentence-pairs":
        return held.counts
    return held.counts / (table.corpus.lengths[held.sentence] - table.n + 1)


def _of_ngrams(table: NgramCounts, estimator: Estimator) -> np.ndarray:
    """The value of each n-gram, a sum over its postings."""
    if estimator != "sentence-pairs":
        return table.counts
    return np.add.reduceat(_of_postings(table, estimator), table.postings.first)


def _coverage(tables: Sequence[NgramCounts], totals: Sequence[NgramTotals]) -> Any:
    q, p = (_of_ngrams(x, totals[0].estimator) for x in tables)
    rows, others = shared_ngrams(*tables)
    return coverage_of((q[rows] * p[others]).sum().item(), *totals)


def require_order(order: int, name: str) -> None:
    """Raise unless an n-gram order is a positive integer."""
    if not isinstance(order, Integral):
        raise TypeError(f"{name}: expected an integer, got {type(order).__name__}")
    if order < 1:
        raise ValueError(f"{name}: expected 1 or more, got {order}")


def _keys(columns: Iterable[np.ndarray], base: int) -> tuple[np.ndarray, int]:
    """Encode each row as an integer, preserving equality and order; and their bound.

    The columns are the digits of a number in this base; when it would exceed 64 bits,
    the prefixes are replaced by their ranks.
    """
    columns = iter(columns)
    keys, size = next(columns).astype(np.int64), base
    for column in columns:
        if size * base > np.iinfo(np.int64).max:
            ascending, order = postings.sorted_keys(keys, size)
            keys[order] = np.cumsum(postings.changes(ascending)) - 1
            size = len(keys)
        keys *= base
        keys += column
        size *= base
    return keys, size


def shared_ngrams(q: NgramCounts, p: NgramCounts) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the n-grams that occur in both tables, of one order, in each of them."""
    # One id for all unknown tokens: no n-gram of p contains it.
    renamed, unknown = ids_in(p.vocabulary, q.vocabulary), len(p.vocabulary)
    columns = (
        np.append(renamed[q.corpus.tokens[q.starts + k]], p.corpus.tokens[p.starts + k])
        for k in range(q.n)
    )
    # The keys of p are ascending.
    ours, theirs = np.split(_keys(columns, unknown + 1)[0], [len(q.counts)])
    index = np.searchsorted(theirs, ours)
    rows = np.flatnonzero(theirs.take(index, mode="clip") == ours)
    return rows, index[rows]
