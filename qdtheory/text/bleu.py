r"""BLEU and Self-BLEU of corpora, all orders in one pass and in linear time.

An n-gram is identified by the rank of its prefix of n - 1 tokens and its last token, so
that one sort of integers, one per occurrence, groups equal n-grams. Only the maximum
count of an n-gram in a single reference matters. To score each sentence against all
others, two more numbers suffice: how many sentences attain the maximum, and the second
largest count.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from qdtheory.bleu_formula import (
    Matches,
    Smoothing,
    bleu_of_matches,
    closest_length,
    matches,
    require_smoothing,
)
from qdtheory.text.checks import require_choice
from qdtheory.text.corpus import Corpus, Texts, Token, as_corpus, ids_in
from qdtheory.text.defaults import MAX_ORDER, SMOOTHING
from qdtheory.text.ngrams import require_order
from qdtheory.text.postings import (
    clipped_at_others,
    positions_of,
    postings,
    postings_by_order,
    token_ends,
    token_sentences,
)

Aggregate: TypeAlias = Literal["mean", "pooled"]


@dataclass(frozen=True, eq=False, repr=False)
class References:
    """Preprocessed references for BLEU; made by `prepare_references`.

    Attributes:
        ids: the id of each token.
        keys: for each order the n-grams as integers, ascending: the position of the
            first n - 1 tokens among the keys of the previous order, times the number
            of ids plus 1, plus the id of the last token.
        most: for each order the maximum count of each n-gram in one sentence.
        lengths: the distinct sentence lengths, ascending.
    """

    ids: dict[Token, int]
    keys: tuple[Int[np.ndarray, " _"], ...]
    most: tuple[Int[np.ndarray, " _"], ...]
    lengths: Int[np.ndarray, " lengths"]

    @property
    def max_order(self) -> int:
        """The highest order."""
        return len(self.keys)

    def __repr__(self) -> str:
        sizes = ", ".join(str(len(keys)) for keys in self.keys)
        return f"References(max_order={self.max_order}, distinct n-grams: {sizes})"


Prepared: TypeAlias = Texts | References


def prepare_references(references: Prepared, max_order: int = MAX_ORDER) -> References:
    """Preprocess references once, for use with many candidates.

    The functions below accept the result in place of texts.

    Args:
        references: a `Corpus`, or any input of `as_corpus`; references already
            prepared for this or a higher order are returned unchanged.
        max_order: highest order of the n-grams, at least 1.

    Raises:
        TypeError: see `as_corpus`; or max_order is not an integer.
        ValueError: see `as_corpus`; or max_order is below 1, or above that of
            prepared references.

    Example:
        >>> known = prepare_references(["a b a", "b a"], max_order=2)
        >>> known
        References(max_order=2, distinct n-grams: 2, 2)
        >>> bleu(["a b"], known, max_order=2).tolist()
        [1.0, 1.0]
    """
    require_order(max_order, "max_order")
    if isinstance(references, References):
        if references.max_order < max_order:
            raise ValueError(
                f"the references are prepared for orders up to {references.max_order}, "
                f"got max_order={max_order}: prepare them for that"
            )
        return references
    corpus = as_corpus(references)
    counted = list(postings_by_order(positions_of(corpus, max_order), max_order))
    return References(
        ids=dict(zip(corpus.vocabulary, range(corpus.vocab_size))),
        keys=tuple(order.keys for order in counted),
        most=tuple(order.most for order in counted),
        lengths=np.unique(corpus.lengths),
    )


def bleu(
    candidates: Texts,
    references: Prepared,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    aggregate: Aggregate = "mean",
) -> Float[np.ndarray, " orders"]:
    r"""BLEU of the candidates, each against all references, as NLTK computes it.

    $BLEU_n = \exp(\min(0, 1 - r / c))\,(\prod_{m \le n} p_m)^{1/n}$ with the clipped
    precisions $p_m$, the candidate's length $c$ and the closest reference length $r$
    (the shorter on ties). Smoothing replaces counts of 0 by 0.1, but a candidate
    without a matching token has BLEU 0. With `smoothing=None`, NLTK's default, so has
    one with no match of some order, such as one shorter than that order.

    An empty candidate also has BLEU 0, as a generator is scored for its empty lines.
    When pooled, it adds no matches and no length, but its closest reference length and
    1 possible n-gram of each order. An empty reference matches nothing and is no length
    for the penalty, unlike in NLTK.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists; see `as_corpus`
            to skip sentences without tokens.
        references: real text in the same form, or the result of `prepare_references`.
        max_order: highest order of the n-grams, at least 1.
        smoothing: "epsilon" (NLTK's method 1), or None.
        aggregate: "mean" of the candidates' scores (Texygen; Montahaei et al. 2019);
            "pooled": counts and lengths are summed first (NLTK's `corpus_bleu`; Li et
            al. 2020).

    Returns:
        BLEU-1 to BLEU-max_order, each in [0, 1], with equal weights of the orders.

    Raises:
        TypeError: see `prepare_references`.
        ValueError: see `prepare_references`; strings against token ids; or unknown
            smoothing or aggregate.

    References:
        Papineni et al. 2002; Li et al. 2020, section 5.1.

    Claims: N12.19, N13.25, N13.27.

    Example:
        >>> texts = ["a b c", "a c"], ["a b d", "c a"]
        >>> bleu(*texts, max_order=2).round(4).tolist()
        [1.0, 0.5117]
        >>> bleu(*texts, max_order=2, smoothing=None).round(4).tolist()
        [1.0, 0.3536]
    """
    require_smoothing(smoothing)
    require_choice("aggregate", aggregate, Aggregate)
    statistics = _against(as_corpus(candidates), references, max_order)
    return aggregate_bleu(statistics, smoothing, aggregate)


def bleu_scores(
    candidates: Texts,
    references: Prepared,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
) -> Float[np.ndarray, "sentences orders"]:
    """Sentence BLEU of each candidate against all references; arguments as in `bleu`.

    Returns:
        A row for each candidate, a column for each order.

    Raises:
        TypeError, ValueError: as in `bleu`.

    Example:
        >>> bleu_scores(["a b c", "a c"], ["a b d", "c a"], max_order=1).tolist()
        [[1.0], [1.0]]
    """
    require_smoothing(smoothing)
    statistics = _against(as_corpus(candidates), references, max_order)
    return bleu_of_matches(statistics, smoothing).T


def self_bleu(
    candidates: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    aggregate: Aggregate = "mean",
    against: Prepared | None = None,
) -> Float[np.ndarray, " orders"]:
    """BLEU of each candidate against all other candidates; lower is more diverse.

    It increases with the number of sentences: only compare samples of equal size. An
    empty sentence has BLEU 0 against all others, empty ones included, and lowers the
    mean.

    Args:
        candidates: as in `bleu`.
        max_order: as in `bleu`.
        smoothing: as in `bleu`.
        aggregate: as in `bleu`.
        against: a second sample of the same model, used as references instead of the
            other candidates (Semeniuta et al. 2018).

    Returns:
        Self-BLEU-1 to Self-BLEU-max_order, each in [0, 1].

    Raises:
        TypeError: as in `bleu`.
        ValueError: as in `bleu`; or a single sentence without a second sample.

    References:
        Zhu et al. 2018 (Texygen); Semeniuta et al. 2018; Li et al. 2020, section 5.1.

    Claims: N12.12, N12.20.

    Example:
        >>> self_bleu(["a b", "a b", "c d"], max_order=2).round(4).tolist()
        [0.6667, 0.6667]
        >>> self_bleu(["a b", "c d"], max_order=1, against=["a b", "a d"]).tolist()
        [0.75]
    """
    require_smoothing(smoothing)
    require_choice("aggregate", aggregate, Aggregate)
    statistics = _self_matches(as_corpus(candidates), max_order, against)
    return aggregate_bleu(statistics, smoothing, aggregate)


def self_bleu_scores(
    candidates: Texts, max_order: int = MAX_ORDER, smoothing: Smoothing = SMOOTHING
) -> Float[np.ndarray, "sentences orders"]:
    """BLEU of each candidate against all other candidates; arguments as in `self_bleu`.

    Returns:
        A row for each candidate, a column for each order.

    Raises:
        TypeError, ValueError: as in `self_bleu`.

    Example:
        >>> self_bleu_scores(["a b", "a b", "c d"], max_order=1).tolist()
        [[1.0], [1.0], [0.0]]
    """
    require_smoothing(smoothing)
    statistics = _self_matches(as_corpus(candidates), max_order)
    return bleu_of_matches(statistics, smoothing).T


def aggregate_bleu(
    statistics: Matches, smoothing: Smoothing, aggregate: Aggregate
) -> Float[np.ndarray, " orders"]:
    """BLEU of several candidates in one number for each order."""
    if aggregate == "mean":
        return bleu_of_matches(statistics, smoothing).mean(axis=-1)
    pooled = Matches(*(x.sum(axis=-1) for x in statistics))
    return bleu_of_matches(pooled, smoothing)


# --- Matches ------------------------------------------------------------------------


def _against(candidates: Corpus, references: Prepared, max_order: int) -> Matches:
    known, lengths = prepare_references(references, max_order), candidates.lengths
    tokens = ids_in(known.ids, candidates.vocabulary)[candidates.tokens]
    base = len(known.ids) + 1  # one id more, of all other words
    sentence, ends = token_sentences(candidates), token_ends(candidates)
    starts = np.arange(candidates.num_tokens)
    rank, size = np.zeros(len(starts), int), 1
    clipped = np.zeros((max_order, len(lengths)))
    for n, (keys, most) in enumerate(zip(known.keys[:max_order], known.most)):
        if not len(keys):
            break
        # An n-gram occurs in the references only if its prefix of n - 1 tokens does.
        whole = np.flatnonzero(starts + n < ends[starts])
        starts, rank = starts[whole], rank[whole]
        rank = rank * base + tokens[starts + n]
        ngrams, order, rank = postings(rank, size * base, sentence[starts])
        index = np.searchsorted(keys, ngrams.keys).clip(max=len(keys) - 1)
        hit = keys[index] == ngrams.keys
        limit = np.where(hit, most[index], 0)[ngrams.ngram]
        counts = np.minimum(ngrams.counts, limit)
        clipped[n] = np.bincount(ngrams.sentence, counts, len(lengths))
        kept = np.flatnonzero(hit[rank])
        starts, rank = starts[order[kept]], index[rank[kept]]
        size = len(keys)
    return matches(clipped, lengths, closest_length(lengths, known.lengths))


def _self_matches(candidates: Corpus, max_order: int, against: Any = None) -> Matches:
    if against is not None:
        return _against(candidates, against, max_order)
    require_order(max_order, "max_order")
    if len(candidates) < 2:
        raise ValueError(
            "Self-BLEU needs another sentence to compare with, got one: give at least "
            "2 candidates, or a second sample as `against`"
        )
    positions, lengths = positions_of(candidates, max_order), candidates.lengths
    clipped = np.zeros((max_order, len(lengths)))
    for n, ngrams in enumerate(postings_by_order(positions, max_order, shared=True)):
        counts = clipped_at_others(ngrams.counts, ngrams.first)
        clipped[n] = np.bincount(ngrams.sentence, counts, len(lengths))
    known, index, many = np.unique(lengths, return_inverse=True, return_counts=True)
    closest = closest_length(known, known, many == 1)[index]
    # All others can be empty: nothing matches, whatever the length.
    return matches(clipped, lengths, np.nan_to_num(closest))
