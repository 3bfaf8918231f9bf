"""Metrics that `evaluate` computes if asked: of models, or of paired sentences."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from qdtheory.text.bhattacharyya import estimate_bhattacharyya
from qdtheory.text.corpus import Corpus
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.embeddings import embed
from qdtheory.text.features import frechet_distance, vendi_score
from qdtheory.text.intervals import (
    interval_of,
    random_groups,
    summed_variance,
)
from qdtheory.text.lm_scores import cross_entropy_of, fit_language_model, known_words
from qdtheory.text.paired import paired_bleu_scores, rouge_scores
from qdtheory.text.report import Report
from qdtheory.world.records import Estimate

BATCH_SIZE = 32  # less for a few sentences
# Metrics of one candidate with their intervals, and without each group of its sentences
# and of the references; None: these groups do not matter.
Row: TypeAlias = tuple[list[str], str, Estimate, np.ndarray, np.ndarray | None]


def with_extra(
    report: Report,
    plan: Any,
    candidates: Mapping[str, Corpus],
    references: Corpus,
    extra: Collection[str],
    log_probabilities: Mapping[str, Sequence[Any]] | None = None,
    step: Callable[[str], None] = lambda text: None,
) -> Report:
    """Add metrics of models or of paired sentences to a report of the same texts.

    The intervals of the Frechet distance are over the sentences of candidates and
    references, of paired metrics over the pairs. Those of LM scores are over sentences,
    for a fitted model, and `compare` leaves LM scores out. That of the Bhattacharyya
    distance is over the sentences of both sides, and holds for all sizes.
    """
    for name in extra:
        if name not in EXTRA:
            expected = ", ".join(map(repr, EXTRA))
            raise ValueError(f"extra: expected some of {expected}, got {name!r}")
    texts = plan, candidates, references, step
    rows = [
        row for name, (_, of) in EXTRA.items() if name in extra for row in of(*texts)
    ]
    methods = [said for name, (said, _) in EXTRA.items() if name in extra]
    if log_probabilities:
        rows += _distances(*texts[:3], log_probabilities)
        methods.append("Bhattacharyya distance from log-probabilities of both samples")
    names: list[str] = []
    intervals = {name: [report.scores[name]] for name in candidates}
    left_out, real_left_out = (
        {name: [groups[name]] for name in candidates}
        for groups in (report.left_out, report.real_left_out)
    )
    for metrics, name, interval, without, real_without in rows:
        names += [metric for metric in metrics if metric not in names]
        intervals[name].append(interval)
        left_out[name].append(without)
        if real_without is None:
            size = len(report.real_left_out[name])
            real_without = np.tile(interval.value, (size, 1))
        real_left_out[name].append(real_without)
    return replace(
        report,
        metrics=(*report.metrics, *names),
        scores={name: _joined(found) for name, found in intervals.items()},
        left_out={name: np.hstack(found) for name, found in left_out.items()},
        real_left_out={name: np.hstack(found) for name, found in real_left_out.items()},
        methods="; ".join([report.methods, *methods]),
    )


def _embedded(plan, candidates, references: Corpus, step) -> Iterator[Row]:
    """Frechet distance and Vendi score, of the features of nonempty sentences."""
    step("Embedding the references")
    real, real_groups = embed(references), _groups(references)[references.lengths > 0]
    for name, corpus in candidates.items():
        step(f"Embedding {name}")
        rows = embed(corpus)
        # Empty sentences have no features; the others keep their groups.
        groups = _groups(corpus)[corpus.lengths > 0]

        def distance(kept, real_kept, rows=rows):
            return [frechet_distance(rows[kept], real[real_kept])]

        def vendi(kept, rows=rows):
            return [vendi_score(rows[kept])]

        bounds = (0, np.inf), (1, np.inf)
        found = _jackknifed(distance, plan.level, bounds[0], groups, real_groups)
        yield ["Frechet MiniLM"], name, *found
        yield ["Vendi MiniLM"], name, *_jackknifed(vendi, plan.level, bounds[1], groups)


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
        scores = [
            found.per_token
            for found in (
                cross_entropy_of(corpus, of_real),
                cross_entropy_of(references, fit(corpus)),
            )
        ]
        value = np.array([score.value for score in scores])
        error = np.array([score.standard_error for score in scores])
        interval = interval_of(value, error**2, np.inf, plan.level)
        without = np.full((_num_groups(corpus), 2), np.nan)
        yield ["LM score", "reverse LM score"], name, interval, without, None


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
        rows = np.hstack(
            [paired_bleu_scores(*texts, plan.smoothing), rouge_scores(*texts).f1]
        )

        def mean(kept, rows=rows):
            return rows[kept].mean(axis=0)

        yield metrics, name, *_jackknifed(mean, plan.level, (0, 1), _groups(corpus))


# What can be asked for, and what is said of it in the report's methods.
EXTRA = {
    "embeddings": ("Frechet distance and Vendi score of MiniLM's features", _embedded),
    "language-model": (
        "LM scores in nats a token, of one LSTM of 64 units each",
        _fitted,
    ),
    "paired": ("paired BLEU and ROUGE F1 of sentences at the same place", _paired),
}


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
        try:
            found = estimate_bhattacharyya(*logs, level=plan.level)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

        def distance(kept, real_kept, logs=logs):
            p, q, own_p, own_q = logs
            texts = p[real_kept], q[real_kept], own_p[kept], own_q[kept]
            return [estimate_bhattacharyya(*texts).value]

        without = _without(distance, _groups(corpus), _groups(references))
        finite = all(np.isfinite(x).all() for x in without)
        error = np.sqrt(summed_variance(*without)[0]) if finite else np.array([np.nan])
        value, low, high = np.array([[found.value], [found.low], [found.high]])
        interval = Estimate(value, low, high, error)
        yield ["Bhattacharyya"], name, interval, without[0], without[1]


def _num_groups(corpus: Corpus) -> int:
    return min(NUM_GROUPS, len(corpus))


def _groups(corpus: Corpus) -> np.ndarray:
    """As the n-gram metrics deal sentences out."""
    return random_groups(len(corpus), _num_groups(corpus))


def _without(metrics: Callable, *groups: np.ndarray) -> list[np.ndarray]:
    """The metrics without each group of a text, text after text."""
    every = [np.full(len(group), fill_value=True) for group in groups]
    return [
        np.array(
            [
                metrics(*every[:i], group != g, *every[i + 1 :])
                for g in range(group.max() + 1)
            ]
        )
        for i, group in enumerate(groups)
    ]


def _jackknifed(
    metrics: Callable, level: float, bounds: tuple, *groups: np.ndarray
) -> tuple[Estimate, np.ndarray, np.ndarray | None]:
    """The metrics of all rows with their interval, and without each group of a text."""
    value = np.asarray(metrics(*(np.arange(len(group)) for group in groups)), float)
    without = _without(metrics, *groups)
    interval = interval_of(value, *summed_variance(*without), level, bounds)
    return interval, without[0], without[1] if len(without) > 1 else None


def _joined(found: list[Estimate]) -> Estimate:
    parts = zip(*((x.value, x.low, x.high, x.standard_error) for x in found))
    return Estimate(*map(np.concatenate, parts), bias=None)
