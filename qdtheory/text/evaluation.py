"""All metrics of several candidates, with intervals and how they were made."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Float

from qdtheory.metrics.bleu_formula import Smoothing, check_smoothing
from qdtheory.text.cluster import sums_on
from qdtheory.text.comparability import (
    require_comparable,
    require_ngrams,
    warn_of_copies,
    warn_of_sizes,
    warn_of_unsplit,
)
from qdtheory.text.corpus import Corpus, Empty, Texts, as_corpus
from qdtheory.text.defaults import ESTIMATOR, LEVEL, MAX_ORDER, SMOOTHING
from qdtheory.text.intervals import (
    ConfidenceInterval,
    check_level,
    interval_of,
    jackknife_variance,
)
from qdtheory.text.leave_out import KINDS, metrics_of_sums
from qdtheory.text.ngrams import Estimator, check_estimator
from qdtheory.text.partial_sums import Block, Totals, partial_sums
from qdtheory.text.report import Report
from qdtheory.text.tokenizers import Tokenizer
from qdtheory.world.packages import versions
from qdtheory.world.records import Record

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
PAIRS = (
    "CR and NRR are divergence-compatible: no text has more of both than text with "
    "the real n-gram frequencies, and CND, their divergence, is 0 only there. It sees "
    "n-grams only: CND of 0 does not mean equal texts.",
    "BLEU and Self-BLEU are not: other text can be better in both than real text. "
    "Better in both does not mean closer to the references' distribution.",
)


class TextSize(Record):
    """How much text there is.

    Attributes:
        sentences: number of sentences, empty ones included if they are kept.
        tokens: number of tokens.
        empty: number of empty sentences, kept or skipped.
    """

    sentences: int
    tokens: int
    empty: int


class Plan(Record):
    """What is known of an evaluation before n-grams are counted, and how they will be.

    Attributes:
        candidates: sizes of the candidates.
        references: size of the references.
        max_order: highest order of the n-grams.
        smoothing: smoothing of BLEU and Self-BLEU.
        estimator: estimator of CR, NRR and CND.
        level: coverage probability of the intervals.
        empty: treatment of empty sentences.
        warnings: comparisons that are not valid.
        methods: how the numbers are computed, in one line.
    """

    candidates: dict[str, TextSize]
    references: TextSize
    max_order: int
    smoothing: Smoothing
    estimator: Estimator
    level: float
    empty: Empty
    warnings: tuple[str, ...]
    methods: str

    @property
    def averaged(self) -> bool:
        """Whether counts are divided by the n-grams of their sentence."""
        return self.estimator == "sentence-pairs"


def evaluate(
    candidates: Mapping[str, Texts],
    references: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
    level: float = LEVEL,
    tokenizer: Tokenizer = "whitespace",
    step: Callable[[str], None] = lambda text: None,
    empty: Empty = "keep",
    lowercase: bool = False,
    client: Any = None,
    requests: Collection[str] = (),
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
        tokenizer: how strings are split, see `as_corpus`.
        step: called with a description before each order of n-grams.
        empty: "keep" or "skip" empty sentences, on both sides.
        lowercase: lower-case strings before they are split.
        client: a `distributed.Client`, whose workers count; None: this process does.
        requests: metrics that are computed on request only: "embeddings",
            "language-model" or "paired", see `with_requested`.

    Returns:
        The report.

    Raises:
        ModuleNotFoundError: distributed is missing, for a client; or the extra of a
            request.
        TypeError: see `as_corpus`; or the client is something else.
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
    plan, corpora, real = planned(
        candidates,
        references,
        max_order,
        smoothing,
        estimator,
        level,
        tokenizer,
        empty,
        lowercase,
    )
    report = counted(plan, corpora, real, step, client)
    if not requests:
        return report
    from qdtheory.text.requested import with_requested  # late: imports JAX

    settings = max_order, smoothing, level, step
    return with_requested(report, requests, corpora, real, *settings)


def planned(
    candidates: Mapping[str, Texts],
    references: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
    level: float = LEVEL,
    tokenizer: Tokenizer = "whitespace",
    empty: Empty = "keep",
    lowercase: bool = False,
) -> tuple[Plan, dict[str, Corpus], Corpus]:
    """Check what is to be evaluated, and describe it.

    Args:
        candidates: as in `evaluate`, and so are all others.
        references: real text.
        max_order: highest order of the n-grams.
        smoothing: smoothing of BLEU and Self-BLEU.
        estimator: estimator of CR, NRR and CND.
        level: coverage probability of the intervals.
        tokenizer: how strings are split.
        empty: treatment of empty sentences.
        lowercase: lower-case strings before they are split.

    Returns:
        The plan, the candidates and the references.

    Raises:
        TypeError: see `evaluate`.
        ValueError: see `evaluate`.

    Example:
        >>> plan, *_ = planned({"x": ["a b", "a c", "b c"]}, ["a b", "b c"], 2)
        >>> plan.candidates, plan.references.tokens
        ({'x': TextSize(sentences=3, tokens=6, empty=0)}, 4)
    """
    if not candidates:
        raise ValueError("expected at least one set of candidates, got none")
    check_smoothing(smoothing)
    check_estimator(estimator)
    check_level(level)
    real = as_corpus(references, empty, tokenizer, lowercase)
    require_ngrams(real, max_order, estimator)
    corpora: dict[str, Corpus] = {}
    for name, texts in candidates.items():
        with _named(name):
            corpora[name] = as_corpus(texts, empty, tokenizer, lowercase)
            require_comparable(corpora[name], real, max_order, estimator)
    sizes = {name: len(corpus) for name, corpus in corpora.items()}
    without = {name: _num_empty(corpus) for name, corpus in corpora.items()}
    plan = Plan(
        candidates={name: _size(corpus) for name, corpus in corpora.items()},
        references=_size(real),
        max_order=max_order,
        smoothing=smoothing,
        estimator=estimator,
        level=level,
        empty=empty,
        warnings=(
            *warn_of_sizes(sizes, estimator),
            *warn_of_copies(corpora, real),
            *warn_of_unsplit({"the references": real} | corpora),
        ),
        methods=_methods(
            sizes, len(real), max_order, smoothing, estimator, level, real.tokenizer
        )
        + _empties(without, _num_empty(real), empty),
    )
    return plan, corpora, real


def counted(
    plan: Plan,
    candidates: Mapping[str, Corpus],
    references: Corpus,
    step: Callable[[str], None] = lambda text: None,
    client: Any = None,
) -> Report:
    """Count all n-grams, in memory.

    Args:
        plan: of the evaluation.
        candidates: as `planned` returns them.
        references: as `planned` returns them.
        step: called with a description before each order of n-grams.
        client: as in `evaluate`.

    Returns:
        The report.

    Raises:
        ModuleNotFoundError: see `evaluate`.
        TypeError: see `evaluate`.
        ValueError: see `reported`.
    """
    texts = candidates, references, plan.max_order
    if client is None:
        sums = partial_sums(*texts, averaged=plan.averaged, step=step)
    else:
        sums = sums_on(client, *texts, averaged=plan.averaged, step=step)
    return reported(plan, sums.totals, sums.blocks)


def reported(
    plan: Plan, totals: Totals, blocks: Mapping[str, Iterable[Block]]
) -> Report:
    """Compute metrics and intervals from the sums of all parts.

    Args:
        plan: of the evaluation.
        totals: of all parts.
        blocks: by candidate, what is known of its sentences; read once, in this order.

    Returns:
        The report.

    Raises:
        ValueError: without a group of sentences a candidate has too few n-grams.
    """
    scores, left_out = {}, {}
    for name, known in blocks.items():
        with _named(name):
            metrics = metrics_of_sums(
                totals, name, known, plan.smoothing, plan.estimator
            )
        scores[name] = _interval(metrics, plan.level, plan.estimator)
        left_out[name] = metrics.reshape(-1, metrics.shape[-1])[:, 1:].T
    orders = range(1, plan.max_order + 1)
    return Report(
        metrics=tuple(f"{kind}-{n}" for kind in KINDS for n in orders),
        scores=scores,
        left_out=left_out,
        sizes={name: size.sentences for name, size in plan.candidates.items()},
        empty={name: size.empty for name, size in plan.candidates.items()},
        num_references=plan.references.sentences,
        num_empty_references=plan.references.empty,
        warnings=plan.warnings,
        pairs=PAIRS,
        methods=plan.methods,
    )


def _interval(
    metrics: Float[np.ndarray, "kinds orders subsets"],
    level: float,
    estimator: Estimator,
) -> ConfidenceInterval:
    """The jackknife's, from the metrics of a text and of it without each group."""
    ranges = RANGES | ({"CND": (0, 2)} if estimator == "plug-in" else {})
    bounds = tuple(np.repeat([*ranges.values()], metrics.shape[1], axis=0).T)
    values = metrics.reshape(-1, metrics.shape[-1])
    return interval_of(
        values[:, 0], *jackknife_variance(values[:, 1:].T), level, bounds
    )


def _size(corpus: Corpus) -> TextSize:
    return TextSize(len(corpus), corpus.num_tokens, _num_empty(corpus))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say in errors whose texts they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _num_empty(corpus: Corpus) -> int:
    """Number of sentences without a token, skipped or kept."""
    return corpus.empty_lines + corpus.num_empty


def every_metric(
    references: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
) -> Callable[[Corpus], Float[np.ndarray, "kinds orders"]]:
    """Build a function that computes all metrics without intervals.

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
        ValueError: see `as_corpus`; or, from the function, no sentence has as many
            tokens as an order.

    Example:
        >>> metrics = every_metric(["a b", "a c"], max_order=2)
        >>> metrics(as_corpus(["a b", "a c"]))[KINDS.index("MS-Jaccard")].tolist()
        [1.0, 1.0]
    """
    real, averaged = as_corpus(references), estimator == "sentence-pairs"

    def metrics(corpus: Corpus) -> Float[np.ndarray, "kinds orders"]:
        sums = partial_sums(
            {"": corpus}, real, max_order, averaged=averaged, num_groups=1
        )
        known = sums.totals, "", sums.blocks[""]
        return metrics_of_sums(*known, smoothing, estimator)[..., 0]

    return metrics


def _methods(sizes, num_references, max_order, smoothing, estimator, level, tokenizer):
    numbers = sorted(set(sizes.values()))
    many = f"{numbers[0]:,}"
    if len(numbers) > 1:
        many += f" to {numbers[-1]:,}"
    by = f"by {tokenizer}" if tokenizer else "as they came"
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
        f"references; tokens {by}; {level:.0%} jackknife intervals over the "
        f"candidates; {versions()}"
    )


def _empties(candidates: dict[str, int], references: int, empty: Empty) -> str:
    """Describe the number and treatment of empty sentences, if there are any."""
    if not references and not any(candidates.values()):
        return ""
    counts = ", ".join(f"{name} {number:,}" for name, number in candidates.items())
    done = "scored, with BLEU 0" if empty == "keep" else "skipped"
    return f"; empty sentences {done}: {counts}, references {references:,}"
