"""Report of all metrics of several candidates, with intervals and warnings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from jaxtyping import Float

from qdtheory.metrics.bleu_formula import Smoothing
from qdtheory.text.bleu import bleu, prepare_references, self_bleu
from qdtheory.text.corpus import Corpus, Empty, Texts, as_corpus
from qdtheory.text.intervals import ConfidenceInterval, jackknife_interval
from qdtheory.text.jaccard import geometric_means, jaccard_index
from qdtheory.text.ngrams import (
    Estimator,
    cnd,
    coverage_rate,
    distinct,
    negative_repetition_rate,
    ngram_counts,
)

NUM_GROUPS = 20
# Share of sentences that stand in the references too, from which a report warns.
MOSTLY = 0.5
# Range of each metric. Without within-sentence pairs, CND can be negative.
RANGES = {
    "BLEU": (0, 1),
    "Self-BLEU": (0, 1),
    "CR": (0, 1),
    "NRR": (-1, 0),
    "CND": (-2, 2),
    "distinct": (0, 1),
    "MS-Jaccard": (0, 1),
}
KINDS = tuple(RANGES)
PAIRS = (
    "CR and NRR are divergence-compatible: no text has more of both than text with "
    "the real n-gram frequencies, and CND, their divergence, is 0 only there. It sees "
    "n-grams only: CND of 0 does not mean equal texts.",
    "BLEU and Self-BLEU are not: other text can be better in both than real text. "
    "Better in both does not mean closer to the references' distribution.",
)


@dataclass(frozen=True)
class Report:
    """Metrics of candidates against one set of references.

    Attributes:
        metrics: metric names, such as "BLEU-2"; lower is better for Self-BLEU and CND,
            higher for all others.
        scores: by candidate name, an interval with one entry per metric.
        sizes: number of sentences of each candidate, including kept empty ones.
        empty: number of empty sentences of each candidate, kept or skipped.
        num_references: number of sentences of the references.
        num_empty_references: number of empty sentences of the references.
        warnings: comparisons that are not valid.
        pairs: which pairs of quality and diversity are divergence-compatible.
        methods: how the numbers were computed, in one line for a paper.
    """

    metrics: tuple[str, ...]
    scores: dict[str, ConfidenceInterval]
    sizes: dict[str, int]
    empty: dict[str, int]
    num_references: int
    num_empty_references: int
    warnings: tuple[str, ...]
    pairs: tuple[str, ...]
    methods: str

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable lists and dictionaries."""
        keys = ("value", "low", "high", "standard_error")
        candidates = {}
        for name, scores in self.scores.items():
            rows = np.transpose([getattr(scores, key) for key in keys]).tolist()
            entries = (dict(zip(keys, row)) for row in rows)
            candidates[name] = {
                "sentences": self.sizes[name],
                "empty": self.empty[name],
                "metrics": dict(zip(self.metrics, entries)),
            }
        return {
            "references": self.num_references,
            "empty_references": self.num_empty_references,
            "candidates": candidates,
            "warnings": list(self.warnings),
            "pairs": list(self.pairs),
            "methods": self.methods,
        }


def evaluate(
    candidates: Mapping[str, Texts],
    references: Texts,
    max_order: int = 4,
    smoothing: Smoothing = "epsilon",
    estimator: Estimator = "pairs",
    level: float = 0.95,
    tokenizer: str = "white space",
    step: Callable[[str], None] = lambda text: None,
    empty: Empty = "keep",
) -> Report:
    """Compute all metrics of candidates against references, with intervals.

    The intervals are jackknife intervals over 20 groups of the candidates' sentences,
    or over single sentences if there are fewer, for fixed references, clipped to the
    metric's range.

    An empty sentence counts as written by the generator. It has BLEU 0 and Self-BLEU 0,
    and counts in the number of sentences of MS-Jaccard. It has no n-grams, so it does
    not affect CR, NRR, CND and distinct. In the references it is a length for BLEU's
    brevity penalty, and a sentence for MS-Jaccard.

    Args:
        candidates: texts by name.
        references: real text, the same for all candidates.
        max_order: highest order of the n-grams.
        smoothing: smoothing of BLEU and Self-BLEU, None or "epsilon".
        estimator: estimator of CR, NRR and CND; "pairs" does not depend on the sample
            size.
        level: coverage probability of the intervals.
        tokenizer: name of the tokenizer, for the line for a paper.
        step: called with a description before each of up to 21 steps per candidate.
        empty: "keep" or "skip" empty sentences, on both sides.

    Returns:
        The report.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: no candidates, fewer than 3 sentences, no token that is in the
            references too, or bad input to a metric, with the candidate's name
            prefixed.

    Example:
        >>> texts = ["a b c", "a c", "b c a"] * 10
        >>> found = evaluate({"ours": texts}, texts, max_order=2)
        >>> dict(zip(found.metrics, found.scores["ours"].value.round(3).tolist()))
        ... # doctest: +NORMALIZE_WHITESPACE
        {'BLEU-1': 1.0, 'BLEU-2': 1.0, 'Self-BLEU-1': 1.0, 'Self-BLEU-2': 1.0,
         'CR-1': 0.344, 'CR-2': 0.28, 'NRR-1': -0.343, 'NRR-2': -0.27,
         'CND-1': -0.001, 'CND-2': -0.021, 'distinct-1': 0.038, 'distinct-2': 0.08,
         'MS-Jaccard-1': 1.0, 'MS-Jaccard-2': 1.0}
    """
    if not candidates:
        raise ValueError("expected at least one set of candidates, got none")
    real = as_corpus(references, empty)
    metrics = every_metric(real, max_order, smoothing, estimator)
    ranges = RANGES | ({"CND": (0, 2)} if estimator == "plug-in" else {})
    bounds = tuple(np.repeat([*ranges.values()], max_order, axis=0).T)
    scores, sizes, without, copied, known = {}, {}, {}, {}, set(real)
    for name, texts in candidates.items():

        def counted(corpus: Corpus, name=name) -> np.ndarray:
            step(f"Measuring {name}")
            return metrics(corpus).ravel()

        try:
            corpus = as_corpus(texts, empty)
            copied[name] = sum(map(known.__contains__, corpus)) / len(corpus)
            sizes[name] = len(corpus)
            without[name] = corpus.empty_lines + corpus.num_empty
            scores[name] = _interval(counted, corpus, level, bounds)
            _require_common_token(corpus, real)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return Report(
        metrics=tuple(f"{kind}-{n + 1}" for kind in KINDS for n in range(max_order)),
        scores=scores,
        sizes=sizes,
        empty=without,
        num_references=len(real),
        num_empty_references=real.empty_lines + real.num_empty,
        warnings=(*_warnings(sizes, estimator), *_copies(copied)),
        pairs=PAIRS,
        methods=_methods(
            sizes, len(real), max_order, smoothing, estimator, level, tokenizer
        )
        + _empties(without, real.empty_lines + real.num_empty, empty),
    )


def every_metric(
    references: Texts,
    max_order: int = 4,
    smoothing: Smoothing = "epsilon",
    estimator: Estimator = "pairs",
) -> Callable[[Corpus], Float[np.ndarray, "kinds orders"]]:
    """Build a function that computes all metrics, counting the references once.

    Args:
        references: real text.
        max_order: highest order of the n-grams.
        smoothing: smoothing of BLEU and Self-BLEU, None or "epsilon".
        estimator: estimator of CR, NRR and CND.

    Returns:
        A function from candidates to an array with a row for each of `KINDS` and a
        column for each order.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus` and `ngram_counts`.

    Example:
        >>> metrics = every_metric(["a b", "a c"], max_order=2)
        >>> metrics(as_corpus(["a b", "a c"]))[KINDS.index("MS-Jaccard")].tolist()
        [1.0, 1.0]
    """
    real = as_corpus(references)
    known = prepare_references(real, max_order)
    orders = range(1, max_order + 1)
    tables = [ngram_counts(real, n) for n in orders]

    def metrics(corpus: Corpus) -> Float[np.ndarray, "kinds orders"]:
        counts = [ngram_counts(corpus, n) for n in orders]
        both = list(zip(counts, tables, orders, strict=True))
        return np.array(
            [
                bleu(corpus, known, max_order, smoothing),
                self_bleu(corpus, max_order, smoothing),
                [coverage_rate(*sides, estimator) for sides in both],
                [negative_repetition_rate(q, n, estimator) for q, _, n in both],
                [cnd(*sides, estimator) for sides in both],
                [distinct(q, n) for q, _, n in both],
                geometric_means([jaccard_index(*sides) for sides in both]),
            ]
        )

    return metrics


def _interval(metric, corpus: Corpus, level: float, bounds) -> ConfidenceInterval:
    """Jackknife interval over groups of the candidates' sentences."""
    if len(corpus) < 3:
        raise ValueError(
            "Self-BLEU compares sentences with each other: expected at least 3 for its "
            f"interval, got {len(corpus)}"
        )
    groups = min(NUM_GROUPS, len(corpus))
    return jackknife_interval(
        metric, corpus, level=level, num_groups=groups, bounds=bounds
    )


def _require_common_token(corpus: Corpus, real: Corpus) -> None:
    """Raise for texts that cannot have been split as the references were."""
    if not {*corpus.vocabulary} & {*real.vocabulary}:
        ours, theirs = (
            f"{side.vocabulary[0]!r:.30} ({type(side.vocabulary[0]).__name__})"
            for side in (corpus, real)
        )
        raise ValueError(
            f"no token is in the references too: expected both to be split alike, got "
            f"{ours} here and {theirs} there"
        )


def _copies(copied: dict[str, float]) -> tuple[str, ...]:
    """Warnings of candidates that repeat most references."""
    return tuple(
        f"{share:.0%} of the sentences of {name} stand in the references: what is "
        "measured is copying, if these are not held out"
        for name, share in copied.items()
        if share > MOSTLY
    )


def _warnings(sizes: dict[str, int], estimator: Estimator) -> tuple[str, ...]:
    if len(set(sizes.values())) == 1:
        return ()
    kinds = "Self-BLEU, distinct and MS-Jaccard"
    if estimator == "plug-in":
        kinds = "Self-BLEU, NRR, CND, distinct and MS-Jaccard"
    numbers = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    return (
        f"{kinds} depend on the number of sentences, which differs ({numbers}): "
        "compare samples of one size",
    )


def _methods(sizes, num_references, max_order, smoothing, estimator, level, tokenizer):
    numbers = sorted(set(sizes.values()))
    many = f"{numbers[0]:,}"
    if len(numbers) > 1:
        many += f" to {numbers[-1]:,}"
    smoothed = "no smoothing" if smoothing is None else "zero counts set to 0.1"
    rates = {
        "plug-in": "pooled frequencies",
        "pairs": "n-grams of different sentences",
        "sentence-pairs": "n-grams of different sentences, sentences of equal weight",
    }[estimator]
    return (
        f"BLEU and Self-BLEU (orders 1 to {max_order}, means of sentence scores, "
        f"{smoothed}, Self-BLEU leave-one-out), CR, NRR and CND ({rates}), "
        f"distinct and MS-Jaccard of {many} sentences against {num_references:,} "
        f"references; tokens by {tokenizer}; {level:.0%} jackknife intervals over the "
        f"candidates; qdtheory {version('qdtheory')}"
    )


def _empties(candidates: dict[str, int], references: int, empty: Empty) -> str:
    """Describe the number and treatment of empty sentences, if there are any."""
    if not references and not any(candidates.values()):
        return ""
    counts = ", ".join(f"{name} {number:,}" for name, number in candidates.items())
    done = "scored, with BLEU 0" if empty == "keep" else "skipped"
    return f"; empty sentences {done}: {counts}, references {references:,}"
