r"""BLEU and ROUGE of reconstructions: each candidate against a reference of its own.

The i-th candidate is compared with the i-th reference only, as an autoencoder's output
is with its input. Both metrics count the n-grams that a pair shares,
$\sum_g \min(a_g, b_g)$.
"""

import numpy as np
from jaxtyping import Float

from qdtheory.bleu_formula import (
    Matches,
    Smoothing,
    bleu_of_matches,
    matches,
    require_smoothing,
)
from qdtheory.support.records import Record
from qdtheory.text.bleu import Aggregate, aggregate_bleu
from qdtheory.text.checks import require_choice
from qdtheory.text.corpus import Corpus, Texts, as_corpus, ids_in
from qdtheory.text.defaults import MAX_ORDER, SMOOTHING
from qdtheory.text.ngrams import require_order
from qdtheory.text.postings import positions_of, postings_by_order


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
    require_smoothing(smoothing)
    require_choice("aggregate", aggregate, Aggregate)
    counted = _pairs(candidates, references, max_order)
    return aggregate_bleu(counted, smoothing, aggregate)


def paired_bleu_scores(
    candidates: Texts,
    references: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
) -> Float[np.ndarray, "pairs orders"]:
    """BLEU of each candidate against the reference at its place, as in `paired_bleu`.

    Returns:
        A row for each pair, a column for each order.

    Raises:
        TypeError, ValueError: as in `paired_bleu`.

    Example:
        >>> paired_bleu_scores(["a b c", "a"], ["a b c", "b"], max_order=2).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """
    require_smoothing(smoothing)
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
    """ROUGE-N of each candidate against the reference at the same place, see `rouge`.

    Returns:
        Scores with a row for each pair, a column for each order.

    Raises:
        TypeError, ValueError: as in `rouge`.

    Example:
        >>> rouge_scores(["a b", "a"], ["a b", "b"], max_order=1).f1.tolist()
        [[1.0], [0.0]]
    """
    pairs = _pairs(candidates, references, max_order)
    shared = pairs.clipped
    recall = shared / matches(shared, pairs.closest, pairs.length).possible
    precision = shared / pairs.possible
    f1 = 2 * recall * precision / np.where(shared > 0, recall + precision, 1)
    return Rouge(recall.T, precision.T, f1.T)


def _pairs(candidates: Texts, references: Texts, max_order: int) -> Matches:
    """Count the n-grams that each pair shares."""
    require_order(max_order, "max_order")
    ours, theirs = as_corpus(candidates), as_corpus(references)
    if len(ours) != len(theirs):
        raise ValueError(
            "each candidate needs a reference of its own, at the same place; got "
            f"{len(ours)} candidates and {len(theirs)} references"
        )
    renamed = ids_in(theirs.vocabulary, ours.vocabulary)
    both = Corpus(
        np.concatenate([renamed[ours.tokens], theirs.tokens]),
        np.append(ours.offsets, theirs.offsets[1:] + ours.num_tokens),
        theirs.vocabulary,
    )
    positions, size = positions_of(both, max_order), len(ours)
    # N-grams of different pairs are different: the number of the pair begins them.
    positions = positions._replace(prefix=positions.sentence % size, num_prefixes=size)
    shared = np.zeros((max_order, size))
    for n, ngrams in enumerate(postings_by_order(positions, max_order, shared=True)):
        first = ngrams.first[ngrams.num_sentences == 2]
        common = np.minimum(ngrams.counts[first], ngrams.counts[first + 1])
        shared[n] = np.bincount(ngrams.sentence[first], common, size)
    return matches(shared, ours.lengths, theirs.lengths)
