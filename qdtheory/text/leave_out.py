"""Metrics of a text, and of the text without each group of sentences, from sums.

Integers are divided once, as fractions, so that parts give the same numbers as the
whole, to the last bit.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from qdtheory.metrics.bleu_formula import (
    Smoothing,
    bleu_of_matches,
    closest_length,
    matches,
)
from qdtheory.text.bleu import closest_other
from qdtheory.text.jaccard import geometric_means
from qdtheory.text.ngrams import Estimator, too_few_pairs, too_short
from qdtheory.text.partial_sums import Block, Totals
from qdtheory.text.rarefaction import expected_distinct
from qdtheory.text.sides import Lengths

# The metrics, in the order of the rows that `metrics_of_sums` returns.
KINDS = ("BLEU", "Self-BLEU", "CR", "NRR", "CND", "distinct", "MS-Jaccard")


def metrics_of_sums(
    totals: Totals,
    name: str,
    blocks: Iterable[Block],
    smoothing: Smoothing,
    estimator: Estimator,
) -> Float[np.ndarray, "kinds orders subsets"]:
    """Compute all metrics of a text from the sums of all parts.

    Args:
        totals: of all parts.
        name: which of the texts.
        blocks: what is known of its sentences, one block for each group.
        smoothing: of BLEU and Self-BLEU, None or "epsilon".
        estimator: of CR, NRR and CND; the sums must be of averaged counts if it is
            "sentence-pairs", and of counts otherwise.

    Returns:
        A row for each of `KINDS`, and in it for each order the metric of the whole text
        and of the text without each group; of a text in one group the whole only.

    Raises:
        ValueError: no sentence, or too few for pairs, has as many tokens as an order.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> from qdtheory.text.partial_sums import partial_sums
        >>> texts = as_corpus(["a b", "a c", "b c"])
        >>> found = partial_sums({"x": texts}, texts, 1)
        >>> of_x = found.totals, "x", found.blocks["x"]
        >>> scores = metrics_of_sums(*of_x, None, "plug-in")
        >>> scores[KINDS.index("distinct")].tolist()
        [[0.5, 0.75, 0.75, 0.75]]
    """
    sums, lengths, known = (
        totals.sums[name],
        totals.lengths[name],
        totals.reference_lengths,
    )
    num_orders = len(sums.distinct)
    bleus = _bleus(lengths, blocks, known, num_orders, smoothing)
    rates = []
    for n in range(1, num_orders + 1):
        row = n - 1
        real = _law(
            n,
            known.values,
            known.times[0],
            estimator,
            *totals.references[:, row].tolist(),
        )
        rates.append(
            [
                _rates(
                    _law(n, lengths.values, times, estimator, squares, within),
                    real,
                    common,
                    overlap,
                    distinct,
                )
                for times, squares, within, common, overlap, distinct in zip(
                    _subsets(lengths.times),
                    sums.squares[row].tolist(),
                    sums.within[row].tolist(),
                    sums.common[row].tolist(),
                    sums.overlap[row].tolist(),
                    sums.distinct[row].tolist(),
                )
            ]
        )
    scores = np.concatenate([bleus, np.moveaxis(np.array(rates, float), -1, 0)])
    jaccard = KINDS.index("MS-Jaccard")
    scores[jaccard] = np.transpose(
        [geometric_means(x) for x in scores[jaccard].T.tolist()]
    )
    return scores


def distinct_of_draws(
    totals: Totals, name: str, n: int, draws: int
) -> Float[np.ndarray, " subsets"]:
    """Compute how many n-grams of some are expected to be different, see `distinct_k`.

    Args:
        totals: of all parts.
        name: which of the texts.
        n: the order.
        draws: k, at most the n-grams of each subset, which `num_ngrams` tells.

    Returns:
        The number of the whole text, and of it without each group.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> from qdtheory.text.partial_sums import partial_sums
        >>> texts = as_corpus(["a b", "a c", "b c"])
        >>> found = partial_sums({"x": texts}, texts, 1).totals
        >>> distinct_of_draws(found, "x", 1, 2).round(6).tolist()
        [1.8, 1.833333, 1.833333, 1.833333]
    """
    sizes = num_ngrams(totals.lengths[name], n)
    spectra = totals.spectra[name].of(n - 1, totals.sums[name].distinct.shape[1])
    return np.array(
        [
            expected_distinct(counts, times, size, draws)
            for (counts, times), size in zip(spectra, sizes)
        ]
    )


def num_ngrams(lengths: Lengths, n: int) -> list[int]:
    """Count the n-grams of a text, with repetition.

    Args:
        lengths: of its sentences.
        n: the order.

    Returns:
        The number in the whole text, and without each group.
    """
    ngrams = np.maximum(lengths.values - n + 1, 0)
    return [int(times @ ngrams) for times in _subsets(lengths.times)]


def _subsets(times: Int[np.ndarray, "groups lengths"]) -> list[np.ndarray]:
    """How many sentences have each length, of all groups and without each."""
    whole = times.sum(axis=0)
    return [whole, *(whole - times if len(times) > 1 else [])]


# --- Rates of n-grams ---------------------------------------------------------------


class _Law(NamedTuple):
    """What the n-grams of one order of a text add up to."""

    size: int  # number of sentences
    total: int  # number of n-grams
    mass: int  # what their values add up to
    repetition: Any  # probability that two n-grams are equal


def _law(
    n: int,
    lengths: np.ndarray,
    times: np.ndarray,
    estimator: Estimator,
    squares: Any,
    within: Any,
) -> _Law:
    ngrams = np.maximum(lengths - n + 1, 0)
    written = int(times[ngrams > 0].sum())
    total, own = ((times * ngrams**power).sum().item() for power in (1, 2))
    if not total:
        raise too_short(n, int(lengths[times > 0].max()))
    if estimator == "plug-in":
        return _Law(int(times.sum()), total, total, Fraction(squares, total**2))
    if written < 2:
        raise too_few_pairs(n)
    if estimator == "sentence-pairs":
        total_pairs = written * (written - 1)
        return _Law(int(times.sum()), total, written, (squares - within) / total_pairs)
    repetition = Fraction(squares - within, total**2 - own)
    return _Law(int(times.sum()), total, total, repetition)


def _rates(
    ours: _Law, real: _Law, common: Any, overlap: int, distinct: int
) -> list[float]:
    """CR, NRR, CND, distinct and the Jaccard index."""
    masses = ours.mass * real.mass
    coverage = Fraction(common, masses) if isinstance(common, int) else common / masses
    union = ours.total * real.size + real.total * ours.size - overlap
    return [
        float(coverage),
        -float(ours.repetition),
        float(ours.repetition + real.repetition - 2 * coverage),
        distinct / ours.total,
        overlap / union,
    ]


# --- BLEU and Self-BLEU -------------------------------------------------------------


def _bleus(
    lengths: Lengths,
    blocks: Iterable[Block],
    reference_lengths: Lengths,
    num_orders: int,
    smoothing: Smoothing,
) -> Float[np.ndarray, "2 orders subsets"]:
    """Mean scores of the sentences, of all groups and without each."""
    num_groups = len(lengths.times)
    closest = [
        closest_other(lengths.values, times) for times in _subsets(lengths.times)
    ]
    closest = np.array(closest)
    # Sums of scores by group, and what those of other groups gain without each.
    sums = np.zeros((2, num_orders, num_groups))
    gains = np.zeros((num_orders, num_groups))
    for group, block in enumerate(blocks):
        nearest = closest_length(block.lengths, reference_lengths.values)
        found = matches(block.bleu, block.lengths, nearest)
        sums[0, :, group] = bleu_of_matches(found, smoothing).sum(axis=1)
        rank = np.searchsorted(lengths.values, block.lengths)
        found = matches(block.self_bleu, block.lengths, closest[0, rank])
        scores = bleu_of_matches(found, smoothing)
        sums[1, :, group] = scores.sum(axis=1)
        if num_groups > 1:
            gains += _gains(block, group, closest[:, rank], scores, smoothing)
    sizes = lengths.times.sum(axis=1)
    whole = sums.sum(axis=-1, keepdims=True)
    if num_groups == 1:
        return whole / sizes
    rest = whole - sums
    rest[1] += gains
    return np.concatenate([whole / sizes.sum(), rest / (sizes.sum() - sizes)], axis=-1)


def _gains(
    block: Block,
    group: int,
    closest: np.ndarray,
    scores: np.ndarray,
    smoothing: Smoothing,
) -> Float[np.ndarray, "orders groups"]:
    """What the sentences' scores of Self-BLEU gain, mostly below 0, without a group.

    Only those that lose a match, or a sentence of the closest length, are scored again.
    """
    num_orders, num_groups = len(scores), len(closest) - 1
    moved = closest[1:] != closest[0]
    moved[group] = False
    missed, sentence = np.nonzero(moved)
    losing, order = np.divmod(block.lost, num_orders)
    # A sentence is not scored without its own group.
    other = losing % num_groups != group
    losing, order, losses = losing[other], order[other], block.losses[other]
    cases = np.union1d(losing, sentence * num_groups + missed)
    sentence, missed = np.divmod(cases, num_groups)
    found = block.self_bleu[:, sentence].astype(np.int64)
    found[order, np.searchsorted(cases, losing)] -= losses
    length, nearest = block.lengths[sentence], closest[missed + 1, sentence]
    changed = bleu_of_matches(matches(found, length, nearest), smoothing)
    changed -= scores[:, sentence]
    return np.array([np.bincount(missed, row, num_groups) for row in changed])
