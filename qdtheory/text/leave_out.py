"""Metrics of a text, and without each group of its or the references' sentences.

Integers are divided once, as fractions, so that parts give the same numbers as the
whole, to the last bit.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from qdtheory.bleu_formula import Smoothing, bleu_of_matches, closest_length, matches
from qdtheory.text import ngrams
from qdtheory.text.ngrams import Estimator, NgramTotals
from qdtheory.text.numbered import Lengths
from qdtheory.text.partial_sums import CorpusSums, GroupMatches

# The metrics, in the order of the rows that `metrics_of_sums` returns.
KINDS = ("BLEU", "Self-BLEU", "CR", "NRR", "CND", "distinct", "MS-Jaccard")
ROUNDING = 1e-9


class GroupScores(NamedTuple):
    """BLEU and Self-BLEU of the sentences of one group."""

    sums: Float[np.ndarray, "2 orders"]
    # What Self-BLEU gains, mostly below 0, without each of the other groups.
    gains: Float[np.ndarray, "orders groups"]


def metrics_of_sums(
    totals: CorpusSums,
    name: str,
    of_groups: Sequence[GroupScores],
    estimator: Estimator,
) -> Float[np.ndarray, "kinds orders subsets"]:
    """Compute all metrics of a text from the sums of all parts: a row for each kind.

    A row has for each order the metric of the whole text, without each group of its
    sentences, and without each group of the references: NaN where too few are left.
    Sums are of averaged counts exactly if the estimator is "sentence-pairs".
    """
    sums, lengths = totals.sums[name], totals.lengths[name]
    known = totals.reference_lengths
    each = sums.common, sums.overlap, sums.distinct, sums.real_common, sums.real_overlap
    bleus = _bleus(lengths, of_groups)
    rests = len(_subsets(known.times)) - 1
    bleus = np.concatenate([bleus, np.repeat(bleus[..., :1], rests, axis=-1)], axis=-1)
    rates = []
    for n in range(1, len(sums.distinct) + 1):
        ours = _totals(n, lengths, estimator, sums.squares, sums.within)
        real, *fewer = _totals(n, known, estimator, *totals.references)
        common, overlap, distinct, *of_real = (x[n - 1].tolist() for x in each)
        rows: list[Any] = [*zip(ours, repeat(real), common, overlap, distinct)]
        left = (None if x.lack else x for x in fewer)
        rest = (x[1:] for x in of_real)
        rows += zip(repeat(ours[0]), left, *rest, repeat(distinct[0]))
        rates.append([_rates(*row) for row in rows])
    scores = np.concatenate([bleus, np.moveaxis(np.array(rates, float), -1, 0)])
    # The last row is of Jaccard indices so far.
    means = [ngrams.geometric_means(x) for x in scores[-1].T.tolist()]
    scores[-1] = np.transpose(means)
    return scores


def groups_seen(totals: CorpusSums, name: str) -> dict[str, Int[np.ndarray, " orders"]]:
    """Count, by order, the groups that hold what the metrics of a text count.

    These are n-grams repeated in another sentence of the text or of the references,
    shared by both, that occurred before, or that are in no other group.
    """
    sums, (squares, within) = totals.sums[name], totals.references
    orders, lengths = range(1, len(sums.distinct) + 1), totals.lengths[name]
    all_of = np.array([num_ngrams(lengths, n) for n in orders])
    told = {
        "repeated": sums.squares - sums.within,
        "real repeated": squares - within,
        "shared": sums.common,
        "real shared": sums.real_common,
        "again": all_of - sums.distinct[:, : all_of.shape[1]],
        "alone": sums.distinct,
    }
    # Losses of averaged counts are rounded.
    return {
        what: np.sum(x[:, :1] - x[:, 1:] > ROUNDING * x[:, :1], axis=1)
        for what, x in told.items()
    }


def distinct_of_draws(
    totals: CorpusSums, name: str, n: int, draws: int
) -> Float[np.ndarray, " subsets"]:
    """Compute distinct_k of n-grams, of all groups and without each."""
    sizes = num_ngrams(totals.lengths[name], n)
    spectra = totals.spectra[name].of(n - 1, totals.sums[name].distinct.shape[1])
    each = zip(spectra, sizes)
    return np.array([ngrams.expected_distinct(*x, size, draws) for x, size in each])


def num_ngrams(lengths: Lengths, n: int) -> list[int]:
    """Count the n-grams, with repetition, of a text and of it without each group."""
    each = np.maximum(lengths.values - n + 1, 0)
    return [int(times @ each) for times in _subsets(lengths.times)]


def _subsets(times: Int[np.ndarray, "groups lengths"]) -> list[np.ndarray]:
    """How many sentences have each length, of all groups and without each."""
    whole = times.sum(axis=0)
    return [whole, *(whole - times if len(times) > 1 else [])]


# --- Rates of n-grams ---------------------------------------------------------------


def _totals(n: int, lengths: Lengths, estimator: Estimator, *sums: Any) -> list[Any]:
    """What the n-grams of a text add up to, and without each group."""
    each = zip(_subsets(lengths.times), *(x[n - 1].tolist() for x in sums))
    known = n, estimator, lengths.values
    return [NgramTotals(*known, times, *some) for times, *some in each]


def _rates(
    ours: NgramTotals, real: NgramTotals | None, common: Any, overlap: int, kinds: int
) -> list[float]:
    """CR, NRR, CND, distinct and the Jaccard index."""
    repetition, distinct = ours.repetition, kinds / ours.num_ngrams
    if real is None:
        return [np.nan, -float(repetition), np.nan, distinct, np.nan]
    coverage = ngrams.coverage_of(common, ours, real)
    cnd = float(repetition + real.repetition - 2 * coverage)
    jaccard = ngrams.jaccard_of(overlap, ours, real)
    return [float(coverage), -float(repetition), cnd, distinct, jaccard]


# --- BLEU and Self-BLEU -------------------------------------------------------------


def group_scores(
    blocks: Iterable[tuple[int, GroupMatches]],
    lengths: Lengths,
    reference_lengths: Lengths,
    smoothing: Smoothing,
) -> list[GroupScores]:
    """Score the sentences of some groups, numbered, of a text of these lengths."""
    num_groups, values = len(lengths.times), lengths.values
    subsets = _subsets(lengths.times)
    nearby = [closest_length(values, values[x > 0], lone=x == 1) for x in subsets]
    closest, found = np.array(nearby), []
    for group, block in blocks:
        nearest = closest_length(block.lengths, reference_lengths.values)
        counted = matches(block.bleu, block.lengths, nearest)
        bleu = bleu_of_matches(counted, smoothing).sum(axis=1)
        rank = np.searchsorted(values, block.lengths)
        counted = matches(block.self_bleu, block.lengths, closest[0, rank])
        scores = bleu_of_matches(counted, smoothing)
        gains = np.zeros((len(scores), num_groups))
        if num_groups > 1:
            gains = _gains(block, group, closest[:, rank], scores, smoothing)
        found.append(GroupScores(np.array([bleu, scores.sum(axis=1)]), gains))
    return found


def _bleus(
    lengths: Lengths, scores: Sequence[GroupScores]
) -> Float[np.ndarray, "2 orders subsets"]:
    """Mean scores of the sentences, of all groups and without each."""
    sums = np.stack([x.sums for x in scores], axis=-1)
    whole = sums.sum(axis=-1, keepdims=True)
    sizes = lengths.times.sum(axis=1)
    if len(sizes) == 1:
        return whole / sizes
    rest = whole - sums
    rest[1] += sum(x.gains for x in scores)
    return np.concatenate([whole / sizes.sum(), rest / (sizes.sum() - sizes)], axis=-1)


def _gains(
    block: GroupMatches,
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
    losing, order = np.divmod(block.lost.astype(np.int64), num_orders)
    # A sentence is not scored without its own group.
    other = losing % num_groups != group
    losing, order, losses = losing[other], order[other], block.losses[other]
    cases = np.union1d(losing, sentence * num_groups + missed)
    sentence, missed = np.divmod(cases, num_groups)
    counted = block.self_bleu[:, sentence].astype(np.int64)
    counted[order, np.searchsorted(cases, losing)] -= losses
    length, nearest = block.lengths[sentence], closest[missed + 1, sentence]
    changed = bleu_of_matches(matches(counted, length, nearest), smoothing)
    changed -= scores[:, sentence]
    return np.array([np.bincount(missed, row, num_groups) for row in changed])
