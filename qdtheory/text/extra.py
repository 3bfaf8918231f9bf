"""Metrics that `evaluate` computes if asked: of models, of pairs, of one sample."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import qdtheory.text
from qdtheory.text.bhattacharyya import estimate_bhattacharyya
from qdtheory.text.comparability import unchanged, warnings_of
from qdtheory.text.corpus import Corpus
from qdtheory.text.defaults import NUM_GROUPS, REQUESTED
from qdtheory.text.embeddings import embed
from qdtheory.text.features import frechet_distance, vendi_score
from qdtheory.text.intervals import (
    interval_of,
    random_groups,
    summed_variance,
    without_groups,
)
from qdtheory.text.lm_scores import cross_entropy_of, fit_language_model, known_words
from qdtheory.text.looks import named
from qdtheory.text.paired import paired_bleu_scores, rouge_scores
from qdtheory.text.report import Report
from qdtheory.world.records import Estimate

BATCH_SIZE = 32  # less for a few sentences
# Metrics of one candidate with their intervals, and without each group of its sentences
# and, if these matter, of the references.
Row: TypeAlias = tuple[list[str], str, Estimate, *tuple[np.ndarray, ...]]


def with_extra(
    report: Report,
    plan: Any,
    candidates: Mapping[str, Corpus],
    references: Corpus,
    extra: Collection[str],
    log_probabilities: Mapping[str, Sequence[Any]] | None = None,
    step: Callable[[str], None] = lambda text: None,
) -> Report:
    """Add metrics on request to a report of the same texts.

    The intervals of LM scores are over sentences, for a fitted model, so that `compare`
    leaves them out. That of the Bhattacharyya distance holds for all sizes.
    """
    texts = plan, candidates, references, step
    added = [name for name in EXTRA if name in extra]
    rows: list[Any] = [row for name in added for row in EXTRA[name][1](*texts)]
    methods = [EXTRA[name][0] for name in added]
    if log_probabilities:
        rows += _distances(*texts[:3], log_probabilities)
        methods.append("Bhattacharyya distance from log-probabilities of both samples")
        added.append("log-probabilities")
    warnings = list(report.warnings)
    for candidate in candidates:
        missing = [
            metric
            for (metric, *_), name, interval, *_ in rows
            if name == candidate and metric in REQUESTED and np.isnan(interval.low[0])
        ]
        warnings += warnings_of(candidate, [], missing)
    parts: dict[str, list[tuple]] = {
        name: [(report.scores[name], report.left_out[name], report.real_left_out[name])]
        for name in candidates
    }
    for _, name, interval, *left_out in rows:
        if len(left_out) < 2:  # the groups of the references do not matter
            size = len(report.real_left_out[name])
            left_out.append(np.tile(interval.value, (size, 1)))
        parts[name].append((interval, *left_out))
    joined = {name: [*zip(*some)] for name, some in parts.items()}
    return replace(
        report,
        metrics=(*report.metrics, *dict.fromkeys(x for row in rows for x in row[0])),
        scores={name: _joined(found) for name, (found, _, _) in joined.items()},
        left_out={name: np.hstack(x) for name, (_, x, _) in joined.items()},
        real_left_out={name: np.hstack(x) for name, (_, _, x) in joined.items()},
        methods="; ".join([report.methods, *methods]),
        signature=f"{report.signature}|with:{'+'.join(added)}",
        warnings=tuple(warnings),
    )


def _embedded(plan, candidates, references: Corpus, step) -> Iterator[Row]:
    """Frechet distance and Vendi score, of the features of nonempty sentences."""
    step("Embedding the references")
    real, real_groups = embed(references), _groups(references)[references.lengths > 0]
    for name, corpus in candidates.items():
        step(f"Embedding {name}")
        # Empty sentences have no features; the others keep their groups.
        own, groups = embed(corpus), _groups(corpus)[corpus.lengths > 0]
        of = (own, real), (groups, real_groups)
        found = _jackknifed(frechet_distance, plan.level, (0, np.inf), *of)
        yield ["Frechet MiniLM"], name, *found
        found = _jackknifed(vendi_score, plan.level, (1, np.inf), [own], [groups])
        yield ["Vendi MiniLM"], name, *found


def _fitted(plan, candidates, references: Corpus, step) -> Iterator[Row]:
    """LM and reverse LM score, in nats a token, of an LSTM for each text."""
    known = known_words(references)

    def fit(corpus: Corpus) -> Any:
        size = int((corpus.lengths > 0).sum())
        batch_size = min(BATCH_SIZE, size - max(1, size // 10))
        return fit_language_model(corpus, vocabulary=known, batch_size=batch_size)

    step("Fitting a language model to the references")
    of_real = fit(references)
    for name, corpus in candidates.items():
        step(f"Fitting a language model to {name}")
        both = (corpus, of_real), (references, fit(corpus))
        scores = [cross_entropy_of(*each).per_token for each in both]
        value = np.array([score.value for score in scores])
        error = np.array([score.standard_error for score in scores])
        interval = interval_of(value, error**2, np.inf, plan.level)
        without = np.full((min(NUM_GROUPS, len(corpus)), 2), np.nan)
        yield ["LM score", "reverse LM score"], name, interval, without


def _paired(plan, candidates, references: Corpus, step) -> Iterator[Row]:
    """BLEU and ROUGE of sentences at the same place."""
    orders = range(1, plan.max_order + 1)
    metrics = [f"{kind}-{n}" for kind in ("paired BLEU", "ROUGE") for n in orders]
    for name, corpus in candidates.items():
        if len(corpus) != len(references):
            raise ValueError(
                f"{name}: paired metrics need a reference for each sentence, got "
                f"{len(corpus):,} sentences and {len(references):,} references"
            )
        step(f"Pairing {name}")
        texts = corpus, references, plan.max_order
        bleus = paired_bleu_scores(*texts, plan.smoothing)
        rows = np.hstack([bleus, rouge_scores(*texts).f1])
        mean, groups = partial(np.mean, axis=0), _groups(corpus)
        yield metrics, name, *_jackknifed(mean, plan.level, (0, 1), [rows], [groups])


def _requested(name: str, plan, candidates, references, step) -> Iterator[Row]:
    """A metric of one sample, whatever the references."""
    asked = REQUESTED[name]
    metric = getattr(qdtheory.text, asked.function)
    for candidate, corpus in candidates.items():
        step(f"Computing {name} of {candidate}")
        sample = [corpus], [_groups(corpus)]
        with named(f"{candidate}: {name}"):
            found = _jackknifed(metric, plan.level, asked.bounds, *sample)
        interval, without = found
        if unchanged(without)[0]:
            interval = interval_of(interval.value, np.array([np.nan]), np.inf)
        yield [name], candidate, interval, without


# What can be asked for, and what is said of it in the report's methods.
EXTRA = {
    "embeddings": ("Frechet distance and Vendi score of MiniLM's features", _embedded),
    "language-model": (
        "LM scores in nats a token, of one LSTM of 64 units each",
        _fitted,
    ),
    "paired": ("paired BLEU and ROUGE F1 of sentences at the same place", _paired),
    **{
        name: (f"{name} of each sample", partial(_requested, name))
        for name in REQUESTED
    },
}


def require_known(extra: Collection[str]) -> None:
    """Raise if a metric on request has another name."""
    for name in extra:
        if name not in EXTRA:
            expected = ", ".join(map(repr, EXTRA))
            raise ValueError(f"extra: expected some of {expected}, got {name!r}")


def _distances(plan, candidates, references: Corpus, given) -> Iterator[Row]:
    """The Bhattacharyya distance, with an interval that holds for all sizes."""
    if given.keys() != candidates.keys():
        raise ValueError(
            "log_probabilities: expected them for the candidates "
            f"{', '.join(candidates)}, got them for {', '.join(map(str, given))}"
        )
    for name, corpus in candidates.items():
        logs = [np.asarray(x, float) for x in given[name]]
        real, own, shapes = len(references), len(corpus), [x.shape for x in logs]
        if shapes != [(real,)] * 2 + [(own,)] * 2:
            raise ValueError(
                f"{name}: log_probabilities: expected log P and log Q of the {real:,} "
                f"references, then of its {own:,} sentences, got shapes {shapes}"
            )
        with named(name):
            found = estimate_bhattacharyya(*logs, level=plan.level)
        samples = [np.transpose(x) for x in (logs[:2], logs[2:])]
        groups = [_groups(x) for x in (references, corpus)]
        real_without, without = without_groups(_distance, samples, groups)
        finite = all(np.isfinite(x).all() for x in (without, real_without))
        variance = summed_variance(without, real_without)[0] if finite else [np.nan]
        value, low, high = np.array([[found.value], [found.low], [found.high]])
        interval = Estimate(value, low, high, np.sqrt(variance))
        yield ["Bhattacharyya"], name, interval, without, real_without


def _distance(real: np.ndarray, own: np.ndarray) -> list[Any]:
    """The distance from texts of the references and its own: rows log P, log Q."""
    return [estimate_bhattacharyya(*real.T, *own.T).value]


def _groups(corpus: Corpus) -> np.ndarray:
    """As the n-gram metrics deal sentences out."""
    return random_groups(len(corpus), NUM_GROUPS)


def _jackknifed(
    metrics: Callable, level: float, bounds: tuple, samples: Sequence, groups: Sequence
) -> tuple[Estimate, *tuple[np.ndarray, ...]]:
    """Metrics of rows with their interval, and without each group of each sample."""
    value = np.atleast_1d(metrics(*samples))
    left_out = without_groups(metrics, samples, groups)
    left_out = [x.reshape(-1, len(value)) for x in left_out]
    return interval_of(value, *summed_variance(*left_out), level, bounds), *left_out


def _joined(found: Iterable[Estimate]) -> Estimate:
    parts = zip(*((x.value, x.low, x.high, x.standard_error) for x in found))
    return Estimate(*map(np.concatenate, parts), bias=None)
