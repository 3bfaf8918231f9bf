"""Metrics that `evaluate` computes on request: of models, or of paired sentences."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qdtheory.metrics.bleu_formula import Smoothing
from qdtheory.text.bhattacharyya import estimate_bhattacharyya
from qdtheory.text.corpus import Corpus, Token
from qdtheory.text.defaults import LEVEL, MAX_ORDER, NUM_GROUPS, SMOOTHING
from qdtheory.text.embeddings import embed
from qdtheory.text.frechet import frechet_distance
from qdtheory.text.intervals import (
    ConfidenceInterval,
    interval_of,
    random_groups,
    summed_variance,
)
from qdtheory.text.lm_scores import (
    FittedModel,
    LanguageModelScore,
    cross_entropy_of,
    fit_language_model,
    known_words,
)
from qdtheory.text.paired import paired_bleu_scores, rouge_scores
from qdtheory.text.report import Report
from qdtheory.text.vendi import vendi_score

# What can be asked for, and what is said of it in the report's methods.
METHODS = {
    "embeddings": "Frechet distance and Vendi score of MiniLM's features",
    "language-model": "LM scores in nats a token, of one LSTM of 64 units each",
    "paired": "paired BLEU and ROUGE F1 of sentences at the same place",
}
LOG_PROBABILITIES = "Bhattacharyya distance from log-probabilities of both samples"
BATCH_SIZE = 32  # less for a few sentences


def with_requested(
    report: Report,
    requests: Collection[str],
    candidates: Mapping[str, Corpus],
    references: Corpus,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    level: float = LEVEL,
    step: Callable[[str], None] = lambda text: None,
    *,
    log_probabilities: Mapping[str, Sequence[Any]] | None = None,
) -> Report:
    """Add metrics of models or of paired sentences to a report of the same texts."""
    for request in requests:
        if request not in METHODS:
            expected = ", ".join(map(repr, METHODS))
            raise ValueError(f"requests: expected some of {expected}, got {request!r}")
    left = report.left_out, report.real_left_out
    names: list[str] = []
    intervals: dict[str, list[ConfidenceInterval]] = {name: [] for name in candidates}
    left_out, real_left_out = ({name: [x[name]] for name in candidates} for x in left)

    def add(
        metrics: list[str],
        name: str,
        found: ConfidenceInterval,
        without: np.ndarray,
        real_without: np.ndarray | None = None,
    ) -> None:
        names.extend(metric for metric in metrics if metric not in names)
        intervals[name].append(found)
        left_out[name].append(without)
        if real_without is None:  # they do not depend on the references' groups
            real_without = np.tile(found.value, (len(real_left_out[name][0]), 1))
        real_left_out[name].append(real_without)

    if "embeddings" in requests:
        step("Embedding the references")
        real, real_group = (
            embed(references),
            _groups(references)[references.lengths > 0],
        )
        for name, corpus in candidates.items():
            step(f"Embedding {name}")
            rows = embed(corpus)
            # Empty sentences have no features; the others keep their groups.
            group = _groups(corpus)[corpus.lengths > 0]

            def distance(kept, real_kept, rows=rows):
                return [frechet_distance(rows[kept], real[real_kept])]

            def vendi(kept, rows=rows):
                return [vendi_score(rows[kept])]

            found = _jackknifed(distance, level, (0, np.inf), group, real_group)
            add(["Frechet MiniLM"], name, *found)
            add(["Vendi MiniLM"], name, *_jackknifed(vendi, level, (1, np.inf), group))
    if "language-model" in requests:
        known = known_words(references)
        step("Fitting a language model to the references")
        of_real = _fitted(references, known)
        for name, corpus in candidates.items():
            step(f"Fitting a language model to {name}")
            own = _fitted(corpus, known)
            found = _joined(
                (cross_entropy_of(corpus, of_real), cross_entropy_of(references, own)),
                level,
            )
            without = np.full((_num_groups(corpus), 2), np.nan)
            add(["LM score", "reverse LM score"], name, found, without)
    if "paired" in requests:
        orders = range(1, max_order + 1)
        metrics = [f"{kind}-{n}" for kind in ("paired BLEU", "ROUGE") for n in orders]
        for name, corpus in candidates.items():
            if len(corpus) != len(references):
                raise ValueError(
                    f"{name}: paired metrics need a reference for each sentence, got "
                    f"{len(corpus):,} sentences and {len(references):,} references"
                )
            step(f"Pairing {name}")
            bleu = paired_bleu_scores(corpus, references, max_order, smoothing)
            rouge = rouge_scores(corpus, references, max_order).f1
            rows = np.hstack([bleu, rouge])

            def mean(kept, rows=rows):
                return rows[kept].mean(axis=0)

            add(metrics, name, *_jackknifed(mean, level, (0, 1), _groups(corpus)))
    if log_probabilities:
        _check_names(log_probabilities, candidates)
        for name, corpus in candidates.items():
            logs = [np.asarray(x, float) for x in log_probabilities[name]]
            _check_sizes(name, logs, len(references), len(corpus))
            try:
                found = _bhattacharyya(
                    logs, _groups(corpus), _groups(references), level
                )
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            add(["Bhattacharyya"], name, *found)
    methods = [METHODS[request] for request in METHODS if request in requests]
    methods += [LOG_PROBABILITIES] * bool(log_probabilities)
    return replace(
        report,
        metrics=(*report.metrics, *names),
        scores={
            name: _stacked([report.scores[name], *found])
            for name, found in intervals.items()
        },
        left_out={name: np.hstack(found) for name, found in left_out.items()},
        real_left_out={name: np.hstack(found) for name, found in real_left_out.items()},
        methods="; ".join([report.methods, *methods]),
    )


def _check_names(given: Mapping[str, Any], candidates: Mapping[str, Corpus]) -> None:
    if given.keys() != candidates.keys():
        raise ValueError(
            "log_probabilities: expected them for the candidates "
            f"{', '.join(candidates)}, got them for {', '.join(map(str, given))}"
        )


def _check_sizes(name: str, logs: list[np.ndarray], real: int, own: int) -> None:
    found = [x.shape for x in logs]
    if found != [(real,)] * 2 + [(own,)] * 2:
        raise ValueError(
            f"{name}: log_probabilities: expected log P and log Q of the {real:,} "
            f"references, then of its {own:,} sentences, got shapes {found}"
        )


def _bhattacharyya(
    logs: list[np.ndarray], group: np.ndarray, real_group: np.ndarray, level: float
) -> tuple:
    """The distance with its interval, and the distance without each group."""
    p, q, own_p, own_q = logs
    found = estimate_bhattacharyya(p, q, own_p, own_q, level)
    left_out = [
        [estimate_bhattacharyya(p, q, own_p[kept], own_q[kept]).distance]
        for kept in _without(group)
    ]
    real_left_out = [
        [estimate_bhattacharyya(p[kept], q[kept], own_p, own_q).distance]
        for kept in _without(real_group)
    ]
    without = np.array(left_out), np.array(real_left_out)
    finite = all(np.isfinite(x).all() for x in without)
    error = np.sqrt(summed_variance(*without)[0]) if finite else np.array([np.nan])
    value, low, high = np.array([[found.distance], [found.low], [found.high]])
    return ConfidenceInterval(value, low, high, error), *without


def _without(group: np.ndarray) -> list[np.ndarray]:
    """What is left without each group."""
    return [group != g for g in range(group.max() + 1)]


def _fitted(corpus: Corpus, known: tuple[Token, ...]) -> FittedModel:
    sentences = int((corpus.lengths > 0).sum())
    batch_size = min(BATCH_SIZE, sentences - max(1, sentences // 10))
    return fit_language_model(corpus, vocabulary=known, batch_size=batch_size)


def _num_groups(corpus: Corpus) -> int:
    return min(NUM_GROUPS, len(corpus))


def _groups(corpus: Corpus) -> np.ndarray:
    """As the n-gram metrics deal sentences out."""
    return random_groups(len(corpus), _num_groups(corpus))


def _jackknifed(metrics: Callable, level: float, bounds, *groups: np.ndarray) -> tuple:
    """The metrics of all rows with their interval, and without each group of a text."""
    every = [np.full(len(group), fill_value=True) for group in groups]
    value = np.asarray(metrics(*every), float)
    without = [
        np.array(
            [metrics(*every[:i], kept, *every[i + 1 :]) for kept in _without(group)]
        )
        for i, group in enumerate(groups)
    ]
    return interval_of(value, *summed_variance(*without), level, bounds), *without


def _joined(scores: tuple[LanguageModelScore, ...], level: float) -> ConfidenceInterval:
    """Nats a token of both scores, with normal intervals at this level."""
    value = np.array([score.per_token.value for score in scores])
    error = np.array([score.per_token.standard_error for score in scores])
    return interval_of(value, error**2, np.inf, level)


def _stacked(found: list[ConfidenceInterval]) -> ConfidenceInterval:
    parts = zip(*((x.value, x.low, x.high, x.standard_error) for x in found))
    return ConfidenceInterval(*map(np.concatenate, parts))
