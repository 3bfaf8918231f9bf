r"""BLEU and ROUGE of reconstructions: each candidate against a reference of its own.

The i-th candidate is compared with the i-th reference only, as an autoencoder's output
is with its input. Both metrics count the n-grams that a pair shares,
$\sum_g \min(a_g, b_g)$, order after order: an n-gram is shared only if its prefix of
n - 1 tokens is, and one sort of integers groups those of all pairs.
"""

import numpy as np
from jaxtyping import Float

from qdtheory.metrics.bleu_formula import (
    Matches,
    Smoothing,
    bleu_of_matches,
    check_smoothing,
    matches,
)
from qdtheory.text.bleu import Aggregate, aggregate_bleu, check_aggregate
from qdtheory.text.corpus import Texts, as_corpus
from qdtheory.text.defaults import MAX_ORDER, SMOOTHING
from qdtheory.text.looks import tell, unlike
from qdtheory.text.ngrams import check_order
from qdtheory.text.runs import changes, places, sorted_keys
from qdtheory.world.records import Record


class Rouge(Record):
    r"""ROUGE-N of pairs of a candidate and a reference.

    Attributes:
        recall: shared n-grams over those of the reference, ROUGE's first definition,
            for each order, shape (orders,) or (pairs, orders).
        precision: shared n-grams over those of the candidate.
        f1: harmonic mean of the two, of each pair before any mean over pairs.
    """

    recall: Float[np.ndarray, "*pairs orders"]
    precision: Float[np.ndarray, "*pairs orders"]
    f1: Float[np.ndarray, "*pairs orders"]


def paired_bleu(
    candidates: Texts,
    references: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    aggregate: Aggregate = "mean",
) -> Float[np.ndarray, " orders"]:
    """BLEU of each candidate against the reference at the same place.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        references: as many texts in the same form.
        max_order: highest order of the n-grams, at least 1.
        smoothing: as in `bleu`.
        aggregate: as in `bleu`; "pooled" is NLTK's `corpus_bleu`.

    Returns:
        BLEU-1 to BLEU-max_order, each in [0, 1]; 1 where a reconstruction is perfect.

    Raises:
        TypeError: see `as_corpus`; or max_order is not an integer.
        ValueError: see `as_corpus`; there are not as many references as candidates;
            strings against token ids; or max_order, smoothing or aggregate is out of
            range.

    References:
        Papineni et al. 2002; Cífka et al. 2018, section 5.2, for reconstructions.

    Example:
        >>> texts = ["a b c", "a c"], ["a b d", "c a"]
        >>> paired_bleu(*texts, max_order=2, smoothing=None).round(4).tolist()
        [0.8333, 0.2887]
    """
    check_smoothing(smoothing)
    check_aggregate(aggregate)
    found = _pairs(candidates, references, max_order)
    return aggregate_bleu(found, smoothing, aggregate)


def paired_bleu_scores(
    candidates: Texts,
    references: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
) -> Float[np.ndarray, "pairs orders"]:
    """Sentence BLEU of each candidate against the reference at the same place.

    Args:
        candidates: as in `paired_bleu`.
        references: as in `paired_bleu`.
        max_order: as in `paired_bleu`.
        smoothing: as in `paired_bleu`.

    Returns:
        A row for each pair, a column for each order.

    Raises:
        TypeError: as in `paired_bleu`.
        ValueError: as in `paired_bleu`.

    Example:
        >>> paired_bleu_scores(["a b c", "a"], ["a b c", "b"], max_order=2).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """
    check_smoothing(smoothing)
    return bleu_of_matches(_pairs(candidates, references, max_order), smoothing).T


def rouge(candidates: Texts, references: Texts, max_order: int = MAX_ORDER) -> Rouge:
    """ROUGE-N of each candidate against the reference at the same place, averaged.

    Counts are clipped, as multisets are intersected, and a pair without n-grams on one
    side has 0, as in Google's rouge-score, which gives all three means. Tokens are
    compared as they are: nothing is stemmed.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        references: as many texts in the same form.
        max_order: highest order of the n-grams, at least 1.

    Returns:
        Means over the pairs for ROUGE-1 to ROUGE-max_order, each in [0, 1].

    Raises:
        TypeError: see `as_corpus`; or max_order is not an integer.
        ValueError: see `as_corpus`; there are not as many references as candidates;
            strings against token ids; or max_order is below 1.

    References:
        Lin 2004 (ROUGE), section 2; Cífka et al. 2018, section 5.2, for
        reconstructions.

    Example:
        >>> found = rouge(["a b c", "a a"], ["a b d e", "a c"], max_order=2)
        >>> found.recall.tolist(), found.precision.round(4).tolist()
        ([0.5, 0.16666666666666666], [0.5833, 0.25])
        >>> found.f1.round(4).tolist()
        [0.5357, 0.2]
    """
    scores = rouge_scores(candidates, references, max_order)
    return Rouge(
        *(x.mean(axis=0) for x in (scores.recall, scores.precision, scores.f1))
    )


def rouge_scores(
    candidates: Texts, references: Texts, max_order: int = MAX_ORDER
) -> Rouge:
    """ROUGE-N of each candidate against the reference at the same place.

    Args:
        candidates: as in `rouge`.
        references: as in `rouge`.
        max_order: as in `rouge`.

    Returns:
        Scores with a row for each pair, a column for each order.

    Raises:
        TypeError: as in `rouge`.
        ValueError: as in `rouge`.

    Example:
        >>> rouge_scores(["a b", "a"], ["a b", "b"], max_order=1).f1.tolist()
        [[1.0], [0.0]]
    """
    pairs = _pairs(candidates, references, max_order)
    orders = np.arange(max_order)[:, None]
    ours, theirs = (
        np.maximum(1, lengths - orders) for lengths in (pairs.length, pairs.closest)
    )
    shared = pairs.found
    recall, precision = shared / theirs, shared / ours
    f1 = 2 * recall * precision / np.where(shared > 0, recall + precision, 1)
    return Rouge(recall.T, precision.T, f1.T)


def _pairs(candidates: Texts, references: Texts, max_order: int) -> Matches:
    """Count the n-grams that each pair shares."""
    check_order(max_order, "max_order")
    ours, theirs = as_corpus(candidates), as_corpus(references)
    if len(ours) != len(theirs):
        raise ValueError(
            "each candidate needs a reference of its own, at the same place; got "
            f"{len(ours)} candidates and {len(theirs)} references"
        )
    tell(unlike(ours.vocabulary, theirs.vocabulary))
    ids = {token: index for index, token in enumerate(theirs.vocabulary)}
    renamed = np.array([ids.get(token, len(ids)) for token in ours.vocabulary])
    tokens = np.concatenate([renamed[ours.tokens], theirs.tokens])
    (pair, ends), (other, last) = places(ours), places(theirs)
    pair, ends = np.append(pair, other), np.append(ends, last + ours.num_tokens)
    starts = np.arange(len(tokens))
    rank, size, base = pair, len(ours), len(ids) + 1
    shared = np.zeros((max_order, len(ours)))
    for n in range(max_order):
        whole = starts + n < ends[starts]
        starts, rank = starts[whole], rank[whole]
        keys, order = sorted_keys(rank * base + tokens[starts + n], size * base)
        starts, new = starts[order], changes(keys)
        rank, size = np.cumsum(new) - 1, int(new.sum())
        in_ours = np.bincount(rank, starts < ours.num_tokens, size)
        common = np.minimum(in_ours, np.bincount(rank, minlength=size) - in_ours)
        shared[n] = np.bincount(pair[starts[new]], common, len(ours))
        kept = common[rank] > 0
        starts, rank = starts[kept], rank[kept]
    return matches(shared, ours.lengths, theirs.lengths)
