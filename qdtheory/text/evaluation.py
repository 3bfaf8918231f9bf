"""All metrics of several candidates, with intervals and how they were made."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import compress
from typing import Any, cast

import numpy as np

from qdtheory.bleu_formula import Smoothing, check_smoothing
from qdtheory.support.packages import versions
from qdtheory.support.records import Record
from qdtheory.text import comparability
from qdtheory.text.checks import check_choice, check_positive, check_whole
from qdtheory.text.containers import Tokenizer, signature_of
from qdtheory.text.corpus import Corpus, Sample, Texts, as_corpus, read_corpus
from qdtheory.text.defaults import DRAWS, ESTIMATOR, LEVEL, MAX_ORDER, SMOOTHING, Empty
from qdtheory.text.files import File, name_of
from qdtheory.text.intervals import interval_of, summed_variance
from qdtheory.text.leave_out import (
    KINDS,
    GroupScores,
    distinct_of_draws,
    group_scores,
    metrics_of_sums,
    num_ngrams,
)
from qdtheory.text.looks import ALONE, named, told_later
from qdtheory.text.ngrams import Estimator
from qdtheory.text.partial_sums import CorpusSums, partial_sums
from qdtheory.text.report import Report
from qdtheory.text.sources import is_file

# Range of each metric. Without within-sentence pairs, CND can be negative.
RANGES = dict.fromkeys(KINDS, (0, 1)) | {"NRR": (-1, 0), "CND": (-2, 2)}
# The level at which a CND below 0 is no chance.
SURE = 0.999


class TextSize(Record):
    """How much text there is, with empty sentences counted even if they are skipped."""

    sentences: int
    tokens: int
    empty: int


class Plan(Record):
    """What is known of an evaluation before n-grams are counted."""

    candidates: dict[str, TextSize]
    references: TextSize
    max_order: int
    smoothing: Smoothing
    estimator: Estimator
    level: float
    empty: Empty
    draws: int | None  # k of distinct_k; None: 1,000, where all have as many n-grams
    copied: dict[str, float]  # share of a candidate's sentences in the references
    dependent: tuple[str, ...]  # candidates that share more than independent ones do
    warnings: tuple[str, ...]
    tokenizers: tuple[str | None, ...]  # of the references, and of the candidates


@told_later()
def evaluate(
    candidates: Mapping[str, Texts | File] | Texts | Sequence[File],
    references: Texts | File,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
    level: float = LEVEL,
    tokenizer: Tokenizer = "whitespace",
    step: Callable[[str], None] = lambda text: None,
    empty: Empty = "keep",
    lowercase: bool = False,
    scheduler: Any = None,
    *,
    field: str | None = None,
    column: str | None = None,
    reference_field: str | None = None,
    draws: int | None = None,
) -> Report:
    """Compute all metrics of candidates against references, with intervals.

    The intervals are jackknife intervals over the sentences of the candidates and of
    the references, each in 20 groups, or one by one if there are fewer, clipped to the
    metric's range: they are for the mean over samples of both, at these sizes. Those of
    BLEU are over the candidates, for these references, which are a part of that metric.
    There is no interval, and a warning says why, where fewer than five groups hold an
    n-gram that is repeated or shared, as a metric counts it. Where a few sentences
    decide a metric, as those that repeat one word, intervals cover less than they say.

    An empty sentence counts as written by the generator. It has BLEU 0 and Self-BLEU 0,
    and counts in the number of sentences of MS-Jaccard. It has no n-grams, so it does
    not affect CR, NRR, CND and distinct. In the references it is a length for BLEU's
    brevity penalty, and a sentence for MS-Jaccard.

    Texts may be in memory, in any container of `as_corpus`, or in a file or folder that
    `read_corpus` reads. On workers, files may have any size. They give the numbers of
    this process to the last bit, those of "sentence-pairs" to 1e-12.

    Args:
        candidates: texts or paths by name; or a list of texts, called "candidates"; or
            a list of paths, as objects or as strings that all name files.
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
        scheduler: who counts: None, this process; a number of processes to start here;
            or the address of a Dask scheduler, or a `distributed.Client`, whose workers
            see the files under the same names.
        field: for JSON Lines, the field of the sentence, see `read_corpus`.
        column: for tables and datasets, the column of the sentence.
        reference_field: the field or column of the references, if it is another.
        draws: k of distinct_k, the number of different n-grams expected among k. None:
            1,000, left out for orders of which a candidate has fewer n-grams.

    Raises:
        OSError: a file cannot be opened; or no scheduler answers, or workers died more
            than three times (ConnectionError).
        ModuleNotFoundError: the extra "scale" is missing, for workers.
        TypeError: see `as_corpus`.
        ValueError: no candidates, fewer than 3 sentences, no token that is in the
            references too, or bad input to a metric, with the candidate's name
            prefixed.

    Example:
        >>> texts = ["a b c", "a c", "b c a"] * 10
        >>> found = evaluate({"ours": texts}, texts, max_order=1)
        >>> dict(zip(found.metrics, found.scores["ours"].value.round(3).tolist()))
        ... # doctest: +NORMALIZE_WHITESPACE
        {'BLEU-1': 1.0, 'Self-BLEU-1': 1.0, 'CR-1': 0.344, 'NRR-1': -0.343,
         'CND-1': -0.001, 'distinct-1': 0.038, 'MS-Jaccard-1': 1.0}
        >>> found.signature.rpartition("|")[0]
        ... # doctest: +NORMALIZE_WHITESPACE
        'texts:30|refs:30|orders:1-1|smooth:epsilon|est:pairs|empty:keep|draws:1000|level:0.95|tok:whitespace|case:mixed'
    """
    where = field, column, reference_field
    how: Any = {"tokenizer": tokenizer, "lowercase": lowercase, "empty": empty}
    settings = max_order, smoothing, estimator, level
    with corpora(candidates, references, *where, scheduler, step, **how) as texts:
        plan = planned(*texts, *settings, empty=empty, draws=draws)
        return counted(plan, *texts, step)


@contextmanager
def corpora(
    candidates: Any,
    references: Any,
    field: str | None,
    column: str | None,
    reference_field: str | None,
    scheduler: Any,
    step: Callable[[str], None],
    **how: Any,
) -> Iterator[tuple[dict[str, Sample], Sample]]:
    """Read texts as corpora, candidates by name, here or on workers."""
    own = (reference_field, reference_field) if reference_field else (field, column)
    with ExitStack() as stack:
        read = partial(_here, **how)
        if scheduler is not None:
            from qdtheory.text.cluster import connected, on_workers

            client = stack.enter_context(connected(scheduler))
            read = partial(on_workers, client, **how)

        def sample(name: str, texts: Any, field: Any, column: Any) -> Any:
            if not is_file(texts):
                with named(name):
                    return read(texts, field=None, column=column)
            if isinstance(texts, str) and not os.path.exists(texts):
                raise FileNotFoundError(
                    2, "no such file or folder; texts themselves go in a list", texts
                )
            step(f"Reading {name_of(texts)}")
            return read(texts, field=field, column=column)

        real = sample("references", references, *own)
        each = _by_name(candidates).items()
        yield {name: sample(name, texts, field, column) for name, texts in each}, real


def _here(texts: Any, field: Any, column: Any, **how: Any) -> Corpus:
    if is_file(texts):
        return read_corpus(texts, field=field, column=column, **how)
    return as_corpus(texts, column=column, **how)


def _by_name(candidates: Any) -> Mapping[str, Any]:
    """Candidates under their names; files are called as they are."""
    if isinstance(candidates, Mapping):
        return candidates
    if is_file(candidates):
        raise TypeError(
            "candidates: expected a list of texts, texts by name, such as {'model': "
            f"texts}}, or a list of paths, got one {type(candidates).__name__}"
        )
    if not isinstance(candidates, list | tuple) or not all(map(_is_there, candidates)):
        return {ALONE: candidates}
    named = {name_of(path): path for path in candidates}
    if len(named) < len(candidates):
        raise ValueError("candidates: expected a list of paths, each once")
    return named


def _is_there(file: Any) -> bool:
    """Whether something is a path or a stream; a string, only if there is the file."""
    return os.path.exists(file) if isinstance(file, str) else is_file(file)


def planned(
    candidates: Mapping[str, Sample],
    references: Sample,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
    level: float = LEVEL,
    empty: Empty = "keep",
    draws: int | None = None,
) -> Plan:
    """Check corpora that are to be evaluated, and describe them."""
    if not candidates:
        raise ValueError("expected at least one set of candidates, got none")
    check_smoothing(smoothing)
    check_choice("estimator", estimator, Estimator)
    check_positive("level", level, below=1)
    check_whole("draws", draws, optional=True)
    with named("references"):
        comparability.require_ngrams(references, max_order, estimator)
    texts = dict(candidates)
    for name, corpus in texts.items():
        with named(name):
            comparability.require_comparable(corpus, references, max_order, estimator)
            if draws is not None:
                comparability.require_draws(corpus, max_order, draws)
    return Plan(
        {name: _size(corpus) for name, corpus in texts.items()},
        _size(references),
        *(max_order, smoothing, estimator, level, empty, draws),
        *comparability.copies_of(texts, references),
        comparability.warnings_of_texts(texts, references, estimator),
        (references.tokenizer, *(x.tokenizer for x in texts.values())),
    )


def counted(
    plan: Plan,
    candidates: Mapping[str, Sample],
    references: Sample,
    step: Callable[[str], None] = lambda text: None,
) -> Report:
    """Count all n-grams, here or where the corpora are, and report."""
    n, smoothing = plan.max_order, plan.smoothing
    averaged = plan.estimator == "sentence-pairs"
    ours, real = cast(Any, candidates), cast(Any, references)
    if not isinstance(references, Corpus):
        from qdtheory.text.cluster import sums_on

        found = sums_on(ours, real, n, averaged, smoothing, step)
        return reported(plan, *found)
    found = partial_sums(ours, real, n, averaged=averaged, step=step)
    totals, lengths = found.totals, found.totals.reference_lengths
    scores = {
        name: group_scores(enumerate(blocks), totals.lengths[name], lengths, smoothing)
        for name, blocks in found.blocks.items()
    }
    return reported(plan, totals, scores)


def reported(
    plan: Plan, totals: CorpusSums, of_groups: Mapping[str, Sequence[GroupScores]]
) -> Report:
    """Compute metrics and intervals from all sums and the scores of each group."""
    orders = range(1, plan.max_order + 1)
    draws = plan.draws or DRAWS
    # All candidates have k n-grams of these orders, whatever group is left out.
    texts = totals.lengths.values()
    drawn = [n for n in orders if min(min(num_ngrams(x, n)) for x in texts) >= draws]
    names = (
        *(f"{kind}-{n}" for kind in KINDS for n in orders),
        *(f"distinct_{draws}-{n}" for n in drawn),
    )
    ranges = RANGES | ({"CND": (0, 2)} if plan.estimator == "plug-in" else {})
    ends = [end for end in ranges.values() for _ in orders] + [(1, draws)] * len(drawn)
    low, high = np.array(ends).T
    are_rates = np.array([name.startswith(("CR-", "NRR-")) for name in names])
    scores, left_out, real_left_out, below, warnings = {}, {}, {}, {}, []
    for name, of_group in of_groups.items():
        with named(name):
            values = _values(plan, totals, name, of_group, drawn)
        groups = len(totals.lengths[name].times)
        value, without = values[:, 0].copy(), values.T[1:]
        left_out[name], real_left_out[name] = without[:groups], without[groups:]
        samples = [x for x in (without[:groups], without[groups:]) if len(x) > 1]
        variance, degrees = summed_variance(*samples)
        found = value, np.sqrt(variance), *samples
        missing = comparability.unsupported(totals, name, names, *found)
        variance[missing[0] | missing[1]] = np.nan
        for n in orders:  # 0 whatever the laws are, if nothing repeats
            rates = [names.index(f"{kind}-{n}") for kind in ("CND", "CR", "NRR")]
            if not value[rates].any():
                value[rates[0]] = np.nan
        known = value, variance, degrees
        scores[name] = interval_of(*known, plan.level, (low, high), are_rates)
        most = np.asarray(interval_of(*known, SURE).high)
        below[name] = [n for n in orders if most[names.index(f"CND-{n}")] < 0]
        lacking = ([*compress(names, x)] for x in missing)
        warnings += comparability.warnings_of(name, *lacking)
    dependent = {x: below[x] for x in scores if below[x] or x in plan.dependent}
    copies = comparability.warn_of_copies(plan.copied, dependent, SURE)
    more = f"; distinct_{draws}: different n-grams expected among {draws:,}"
    return Report(
        metrics=names,
        scores=scores,
        left_out=left_out,
        real_left_out=real_left_out,
        sizes={name: size.sentences for name, size in plan.candidates.items()},
        empty={name: size.empty for name, size in plan.candidates.items()},
        num_references=plan.references.sentences,
        num_empty_references=plan.references.empty,
        dependent=tuple(dependent),
        warnings=(*plan.warnings, *copies, *warnings),
        methods=_methods(plan) + more * bool(drawn),
        signature=_signature(plan),
    )


def _values(
    plan: Plan,
    totals: CorpusSums,
    name: str,
    of_groups: Sequence[GroupScores],
    drawn: list[int],
) -> np.ndarray:
    """All metrics of a text, without each of its groups, and of the references."""
    metrics = metrics_of_sums(totals, name, of_groups, plan.estimator)
    rows = metrics.reshape(-1, metrics.shape[-1])
    draws = plan.draws or DRAWS
    more = [distinct_of_draws(totals, name, n, draws) for n in drawn]
    rest = rows.shape[1] - min(map(len, more), default=0)  # it is of one text
    return np.vstack([rows, *(np.append(x, np.repeat(x[0], rest)) for x in more)])


def _size(corpus: Sample) -> TextSize:
    empty = corpus.empty_lines + corpus.num_empty  # skipped or kept
    return TextSize(len(corpus), corpus.num_tokens, empty)


def _methods(plan: Plan) -> str:
    """How the numbers are computed, and what is done with empty sentences."""
    sizes, real = plan.candidates, plan.references
    many = " to ".join(f"{number:,}" for number in _ends(plan))
    by = f"by {plan.tokenizers[0]}" if plan.tokenizers[0] else "as they came"
    smoothed = "no smoothing" if plan.smoothing is None else "zero counts set to 0.1"
    rates = {
        "plug-in": "pooled frequencies",
        "pairs": "n-grams of different sentences",
        "sentence-pairs": "n-grams of different sentences, sentences of equal weight",
    }[plan.estimator]
    said = (
        f"BLEU and Self-BLEU (orders 1 to {plan.max_order}, means of sentence scores, "
        f"{smoothed}, Self-BLEU leave-one-out), CR, NRR and CND ({rates}), "
        f"distinct and MS-Jaccard of {many} sentences against {real.sentences:,} "
        f"references; tokens {by}; {plan.level:.0%} jackknife intervals over "
        "candidates and references, of BLEU over candidates for these references; "
        f"{versions()}"
    )
    if real.empty or any(size.empty for size in sizes.values()):
        counts = ", ".join(f"{name} {size.empty:,}" for name, size in sizes.items())
        done = "scored, with BLEU 0" if plan.empty == "keep" else "skipped"
        said += f"; empty sentences {done}: {counts}, references {real.empty:,}"
    return said


def _ends(plan: Plan) -> list[int]:
    """The least and the greatest number of sentences, or one if they are equal."""
    sizes = [size.sentences for size in plan.candidates.values()]
    return sorted({min(sizes), max(sizes)})


def _signature(plan: Plan) -> str:
    """Each choice that changes a number, and the numbers of sentences, in one line."""
    said = (
        f"texts:{'-'.join(map(str, _ends(plan)))}|"
        f"refs:{plan.references.sentences}|orders:1-{plan.max_order}|"
        f"smooth:{plan.smoothing or 'none'}|est:{plan.estimator}|empty:{plan.empty}|"
        f"draws:{plan.draws or DRAWS}|level:{plan.level}"
    )
    return signature_of(said, {*plan.tokenizers})
