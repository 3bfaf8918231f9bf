"""All metrics of several candidates, with intervals and how they were made.

`evaluate` goes in four steps, and the command line takes the same:

    corpora    texts, files, a scheduler -> a corpus of each candidate, and the real one
    planned    corpora, settings -> a `Plan`: all is checked before hours of counting
    counted    plan, corpora -> sums over n-grams, and scores of each group of sentences
    reported   plan, sums, scores -> the `Report`
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from qdtheory.bleu_formula import Smoothing, require_smoothing
from qdtheory.support.packages import versions
from qdtheory.support.records import Estimate, Record
from qdtheory.text import checks, comparability, leave_out
from qdtheory.text.comparison import of_references, rows_of
from qdtheory.text.containers import Tokenizer, signature_of
from qdtheory.text.corpus import Corpus, Sample, Texts, read_corpus
from qdtheory.text.defaults import DRAWS, ESTIMATOR, LEVEL, MAX_ORDER, SMOOTHING, Empty
from qdtheory.text.files import File, name_of
from qdtheory.text.intervals import interval_of, summed_variance
from qdtheory.text.leave_out import KINDS, GroupScores, group_scores, num_ngrams
from qdtheory.text.ngrams import Estimator
from qdtheory.text.partial_sums import CorpusSums, partial_sums
from qdtheory.text.report import KEYS, REAL, Report
from qdtheory.text.sources import is_file

# Range of each metric. Without within-sentence pairs, CND can be negative.
RANGES = dict.fromkeys(KINDS, (0, 1)) | {"NRR": (-1, 0), "CND": (-2, 2)}
# The level at which a CND below 0 is no chance: it is asked of each order of each
# candidate, so that a report of samples that are independent seldom says otherwise.
SURE = 0.999


class TextSize(Record):
    """How much text there is, with empty sentences counted even if they are skipped."""

    sentences: int
    tokens: int
    empty_lines: int


class Plan(Record):
    """An evaluation before n-grams are counted: its settings, sizes and warnings."""

    candidates: dict[str, TextSize]
    references: TextSize | None
    max_order: int
    smoothing: Smoothing
    estimator: Estimator
    level: float
    empty: Empty
    draws: int  # k of distinct_k
    copied: dict[str, float]  # share of a candidate's sentences in the references
    dependent: tuple[str, ...]  # candidates that share more than independent ones do
    warnings: tuple[str, ...]
    tokenizers: tuple[str | None, ...]
    metrics: Any  # names that are shown, by what they were asked for
    real: str | None  # the candidate that is real text


class Columns(NamedTuple):
    """The metrics of a report, a column each."""

    names: tuple[str, ...]
    kept: np.ndarray  # without references, those of one sample
    ranges: tuple[np.ndarray, np.ndarray]
    are_rates: np.ndarray  # rates of repeats, whose intervals are skewed
    drawn: list[int]  # orders of distinct_k


@checks.told_later()
def evaluate(
    candidates: Mapping[str, Texts | File] | Texts | Sequence[File],
    references: Texts | File | None = None,
    max_order: int = MAX_ORDER,
    *,
    real: Texts | File | None = None,
    metrics: str | Sequence[str] | None = None,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
    level: float = LEVEL,
    tokenizer: Tokenizer = "whitespace",
    step: Callable[[str], None] = lambda text: None,
    empty: Empty = "keep",
    lowercase: bool = False,
    scheduler: Any = None,
    field: str | None = None,
    reference_field: str | None = None,
    draws: int | None = None,
) -> Report:
    """Compute all metrics of candidates against references, with intervals.

    Without references, only those of one sample: Self-BLEU, NRR and distinct.

    The intervals are jackknife intervals over the sentences of the candidates and of
    the references, each in 20 groups, or one by one if there are fewer, clipped to the
    metric's range: they are for the mean over samples of both, at these sizes. Those of
    BLEU are over the candidates, for these references, which are a part of that metric.
    There is no interval, and a warning says why, where fewer than five groups hold an
    n-gram that is repeated or shared, as a metric counts it. Where a few sentences
    decide a metric, as those that repeat one word, intervals cover less than they say.

    An empty sentence counts as written by the generator. It has BLEU 0 and Self-BLEU 0,
    and counts in the number of sentences of MS-Jaccard. It has no n-grams, so it does
    not affect CR, NRR, CND and distinct. In the references it is a sentence for
    MS-Jaccard, and no length for BLEU's brevity penalty.

    Texts may be in memory, in any container of `as_corpus`, or in a file that
    `read_corpus` reads. On workers, files may have any size. They give the numbers of
    this process to the last bit, those of "sentence-pairs" to 1e-12.

    Args:
        candidates: texts or paths by name; or a list of texts, called "candidates"; or
            a list of paths, as objects or as strings that all name files.
        references: real text, the same for all candidates; or None.
        max_order: highest order of the n-grams.
        real: held-out real text, which is one more column that the others are read
            beside; or the name of the candidate that is real text.
        metrics: names of those that tables and files show, "CND-2", "CND" for all
            orders, or "all"; None: eight.
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
        field: of JSON and tables, the field of the sentence, see `read_corpus`.
        reference_field: that of the references, if it is another.
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
        >>> report = evaluate({"ours": texts}, texts, max_order=1)
        >>> {name: round(float(x), 3) for name, x in report["ours"].items()}
        ... # doctest: +NORMALIZE_WHITESPACE
        {'BLEU-1': 1.0, 'Self-BLEU-1': 1.0, 'CR-1': 0.344, 'NRR-1': -0.343,
         'CND-1': -0.001, 'distinct-1': 0.037, 'MS-Jaccard-1': 1.0}
        >>> float(report["distinct-1"]["ours"]) == float(report["ours"]["distinct-1"])
        True
        >>> report.signature.rpartition("|")[0]
        ... # doctest: +NORMALIZE_WHITESPACE
        'texts:30|refs:30|orders:1-1|smooth:epsilon|est:pairs|empty:keep|draws:1000|level:0.95|tok:whitespace|case:mixed'
    """
    where = field, reference_field
    how: Any = {"tokenizer": tokenizer, "lowercase": lowercase, "empty": empty}
    settings = max_order, smoothing, estimator, level, empty, draws
    named, real = with_real(candidates, real)
    with corpora(named, references, *where, scheduler, step, **how) as texts:
        plan = planned(*texts, *settings, metrics, real)
        return counted(plan, *texts, step)


# --- Texts --------------------------------------------------------------------------


@contextmanager
def corpora(
    candidates: Mapping[str, Any],
    references: Any,
    field: str | None,
    reference_field: str | None,
    scheduler: Any,
    step: Callable[[str], None],
    **how: Any,
) -> Iterator[tuple[dict[str, Sample], Sample | None]]:
    """Read texts as corpora, here or on workers."""
    with ExitStack() as stack:
        read = partial(read_corpus, **how)
        if scheduler is not None:
            # Late: Dask is an extra.
            from qdtheory.text.cluster import connected, on_workers

            client = stack.enter_context(connected(scheduler))
            read = partial(on_workers, client, **how)

        def sample(name: str, texts: Any, field: Any) -> Any:
            if not is_file(texts):
                with checks.naming(name):  # errors of files begin with the file's name
                    return read(texts, field=field)
            if isinstance(texts, str) and not os.path.exists(texts):
                raise FileNotFoundError(
                    2, "no such file or folder; texts themselves go in a list", texts
                )
            step(f"Reading {name_of(texts)}")
            return read(texts, field=field)

        real = None
        if references is not None:
            real = sample("references", references, reference_field or field)
        each = candidates.items()
        yield {name: sample(name, texts, field) for name, texts in each}, real


def with_real(candidates: Any, real: Any) -> tuple[Mapping[str, Any], str | None]:
    """Candidates by name, real text among them, and its name."""
    named = _by_name(candidates)
    if real is None or (isinstance(real, str) and real in named):
        return named, real
    name = name_of(real) if is_file(real) else REAL
    if name in named:
        raise ValueError(f"real: {name} is among the candidates; give its name alone")
    return {**named, name: real}, name


def _by_name(candidates: Any) -> Mapping[str, Any]:
    """Candidates under their names; files are called as they are."""
    if isinstance(candidates, Mapping):
        return candidates
    if is_file(candidates):
        raise TypeError(
            "candidates: expected a list of texts, texts by name, such as {'model': "
            f"texts}}, or a list of paths, got one {type(candidates).__name__}"
        )
    if not isinstance(candidates, list | tuple) or not all(
        os.path.exists(x) if isinstance(x, str) else is_file(x) for x in candidates
    ):
        return {checks.ALONE: candidates}
    by_name = {name_of(path): path for path in candidates}
    if len(by_name) < len(candidates):
        raise ValueError("candidates: expected a list of paths, each once")
    return by_name


# --- Plan and counts ----------------------------------------------------------------


def planned(
    candidates: Mapping[str, Sample],
    references: Sample | None,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
    level: float = LEVEL,
    empty: Empty = "keep",
    draws: int | None = None,
    metrics: Any = None,
    real: str | None = None,
) -> Plan:
    """Check corpora that are to be evaluated, and describe them."""
    if not candidates:
        raise ValueError("expected at least one set of candidates, got none")
    require_smoothing(smoothing)
    checks.require_choice("estimator", estimator, Estimator)
    checks.require_positive("level", level, below=1)
    checks.require_whole("draws", draws, optional=True)
    if metrics:  # fail before an hour of counting if one has no such name
        orders = range(1, max_order + 1)
        kinds = *KINDS, f"distinct_{draws or DRAWS}"
        names = [f"{kind}-{n}" for kind in kinds for n in orders]
        rows_of(names, metrics, references is None)
    # References first: a fault of theirs would else bear a candidate's name.
    if references is not None:
        with checks.naming("references"):
            comparability.require_ngrams(references, max_order, estimator)
    texts = dict(candidates)
    for name, corpus in texts.items():
        with checks.naming(name):
            comparability.require_comparable(corpus, references, max_order, estimator)
            if draws is not None:
                comparability.require_draws(corpus, max_order, draws)
    return Plan(
        {name: _size(corpus) for name, corpus in texts.items()},
        None if references is None else _size(references),
        *(max_order, smoothing, estimator, level, empty, draws or DRAWS),
        *comparability.copies_of(texts, references),
        comparability.warnings_of_texts(texts, references, estimator),
        tuple(x.tokenizer for x in (references, *texts.values()) if x),
        *(metrics, real),
    )


def counted(
    plan: Plan,
    candidates: Mapping[str, Sample],
    references: Sample | None,
    step: Callable[[str], None] = lambda text: None,
) -> Report:
    """Count all n-grams, here or where the corpora are, and report."""
    n, smoothing = plan.max_order, plan.smoothing
    # Only this estimator weights n-grams by sentence: the others' sums are integers.
    averaged = plan.estimator == "sentence-pairs"
    ours: Any = candidates
    # Without references a candidate takes their place, and what it says is left out.
    real: Any = next(iter(ours.values())) if references is None else references
    if not isinstance(real, Corpus):
        from qdtheory.text.cluster import sums_on

        # Groups are scored on the workers: only sums come here.
        return reported(plan, *sums_on(ours, real, n, averaged, smoothing, step))
    sums = partial_sums(ours, real, n, averaged=averaged, step=step)
    totals, lengths = sums.totals, sums.totals.reference_lengths
    of_groups = {
        name: group_scores(enumerate(blocks), totals.lengths[name], lengths, smoothing)
        for name, blocks in sums.blocks.items()
    }
    return reported(plan, totals, of_groups)


# --- Report -------------------------------------------------------------------------


def reported(
    plan: Plan, totals: CorpusSums, of_groups: Mapping[str, Sequence[GroupScores]]
) -> Report:
    """Compute metrics and intervals from all sums and the scores of each group."""
    columns, each = _columns(plan, totals), {}
    names, real = (*compress(columns.names, columns.kept),), plan.references
    for name, groups in of_groups.items():
        with checks.naming(name):
            each[name] = _estimated(plan, totals, columns, name, groups)
    scores, left_out, real_left_out, negative, warnings = (
        dict(zip(each, x)) for x in zip(*each.values())
    )
    dependent = {x: n for x, n in negative.items() if n or x in plan.dependent}
    copies = comparability.warn_of_copies(plan.copied, dependent, SURE)
    return Report(
        metrics=names,
        scores=scores,
        left_out=left_out,
        real_left_out=real_left_out,
        sizes={name: size.sentences for name, size in plan.candidates.items()},
        empty={name: size.empty_lines for name, size in plan.candidates.items()},
        num_references=getattr(real, "sentences", 0),
        num_empty_references=getattr(real, "empty_lines", 0),
        dependent=tuple(dependent),
        warnings=(*plan.warnings, *copies, *chain(*warnings.values())),
        methods=_methods(plan, columns.drawn),
        signature=_signature(plan),
        rows=rows_of(names, plan.metrics, real is None),
        real=plan.real,
    )


def _columns(plan: Plan, totals: CorpusSums) -> Columns:
    """The metrics in the order of `metrics_of_sums`, with the range of each."""
    orders, k, texts = range(1, plan.max_order + 1), plan.draws, totals.lengths.values()
    # All candidates have k n-grams of these orders, whatever group is left out.
    drawn = [n for n in orders if min(min(num_ngrams(x, n)) for x in texts) >= k]
    # A squared distance of frequencies, if pairs of a sentence with itself count.
    ranges = RANGES | ({"CND": (0, 2)} if plan.estimator == "plug-in" else {})
    rows = [(f"{kind}-{n}", *ends) for kind, ends in ranges.items() for n in orders]
    rows += [(f"distinct_{k}-{n}", 1, k) for n in drawn]
    names, low, high = zip(*rows)
    are_rates = np.array([name.startswith(("CR-", "NRR-")) for name in names])
    kept = np.array([bool(plan.references) or not of_references(x) for x in names])
    return Columns(names, kept, (np.array(low), np.array(high)), are_rates, drawn)


def _estimated(
    plan: Plan,
    totals: CorpusSums,
    columns: Columns,
    name: str,
    scores: Sequence[GroupScores],
) -> tuple[Estimate, np.ndarray, np.ndarray, list[int], tuple[str, ...]]:
    """The metrics of one candidate, and what is to be said of them.

    They come with intervals; without each of its groups; without each of the
    references'; with the orders whose CND is surely below 0; and with warnings.
    """
    metrics = leave_out.metrics_of_sums(totals, name, scores, plan.estimator)
    rows = metrics.reshape(-1, metrics.shape[-1])
    drawn, k = columns.drawn, plan.draws
    more = [leave_out.distinct_of_draws(totals, name, n, k) for n in drawn]
    # It does not depend on the references: without their groups it is as of the whole.
    size = rows.shape[1] - min(map(len, more), default=0)
    rows = np.vstack([rows, *(np.append(x, np.repeat(x[0], size)) for x in more)])
    value, without = rows[:, 0].copy(), rows.T[1:]
    left_out, real_left_out = np.split(without, [len(totals.lengths[name].times)])
    # Candidates and references are drawn independently: the variances add. With a
    # single group there is nothing to leave out.
    samples = [x for x in (left_out, real_left_out) if len(x) > 1]
    variance, degrees = summed_variance(*samples)
    each = value, np.sqrt(variance), *samples
    missing = comparability.unsupported(totals, name, columns.names, *each)
    variance[missing[0] | missing[1]] = np.nan
    orders, kinds = range(1, plan.max_order + 1), ("CND", "CR", "NRR")
    rates = np.array([[columns.names.index(f"{x}-{n}") for n in orders] for x in kinds])
    # If nothing repeats, and nothing is shared, CND is 0 whatever the two laws are.
    value[rates[0, ~value[rates].any(axis=0)]] = np.nan
    estimate = value, variance, degrees
    intervals = interval_of(*estimate, plan.level, columns.ranges, columns.are_rates)
    # The mean of CND over independent samples is a squared distance, so not below 0.
    highest = np.asarray(interval_of(*estimate, SURE).high)[rates[0]]
    kept = columns.kept
    negative = [n for n, high in zip(orders, highest) if high < 0 and kept[rates[0, 0]]]
    rows = rows_of(columns.names, plan.metrics, plan.references is None)
    few, same = ([y for y in compress(columns.names, x) if y in rows] for x in missing)
    warnings = comparability.warnings_of(name, few, same)
    warnings += comparability.decided_by_few(totals, name)
    told = {part: getattr(intervals, part)[kept] for part in KEYS}
    rest = left_out[:, kept], real_left_out[:, kept]
    return Estimate(**told), *rest, negative, warnings


def _size(corpus: Sample) -> TextSize:
    empty = corpus.empty_lines + corpus.num_empty  # skipped or kept
    return TextSize(len(corpus), corpus.num_tokens, empty)


def _methods(plan: Plan, drawn: list[int]) -> str:
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
    kinds = "Self-BLEU", "NRR", "distinct", "without references", "candidates"
    if real:
        kinds = "BLEU and Self-BLEU", "CR, NRR and CND", "distinct and MS-Jaccard"
        over = "candidates and references, of BLEU over candidates for these references"
        kinds = *kinds, f"against {real.sentences:,} references", over
    text = (
        f"{kinds[0]} (orders 1 to {plan.max_order}, means of sentence scores, "
        f"{smoothed}, Self-BLEU leave-one-out), {kinds[1]} ({rates}), {kinds[2]} of "
        f"{many} sentences {kinds[3]}; tokens {by}; {plan.level:.0%} jackknife "
        f"intervals over {kinds[4]}; {versions()}"
    )
    every = sizes | ({"references": real} if real else {})
    if any(size.empty_lines for size in every.values()):
        counts = ", ".join(f"{x} {size.empty_lines:,}" for x, size in every.items())
        done = "scored, with BLEU 0" if plan.empty == "keep" else "skipped"
        text += f"; empty sentences {done}: {counts}"
    if drawn:
        k = plan.draws
        text += f"; distinct_{k}: different n-grams expected among {k:,}"
    return text


def _ends(plan: Plan) -> list[int]:
    """The least and the greatest number of sentences, or one if they are equal."""
    sizes = [size.sentences for size in plan.candidates.values()]
    return sorted({min(sizes), max(sizes)})


def _signature(plan: Plan) -> str:
    """Each choice that changes a number, and the numbers of sentences, in one line."""
    text = (
        f"texts:{'-'.join(map(str, _ends(plan)))}|"
        f"refs:{getattr(plan.references, 'sentences', 0)}|orders:1-{plan.max_order}|"
        f"smooth:{plan.smoothing or 'none'}|est:{plan.estimator}|empty:{plan.empty}|"
        f"draws:{plan.draws}|level:{plan.level}"
    )
    return signature_of(text, {*plan.tokenizers})
