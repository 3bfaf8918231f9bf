"""Metrics of corpora: sample estimates of what the exact wing computes on a space.

Modules that need JAX (language models, embeddings) are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from qdtheory.text.bleu import (
    References,
    bleu,
    bleu_scores,
    prepare_references,
    self_bleu,
    self_bleu_scores,
)
from qdtheory.text.corpus import Corpus, Removed, as_corpus, prepare, read_corpus
from qdtheory.text.datasets import imdb
from qdtheory.text.intervals import (
    ConfidenceInterval,
    bootstrap_interval,
    jackknife_interval,
)
from qdtheory.text.jaccard import jaccard_index, ms_jaccard
from qdtheory.text.ngrams import (
    NgramCounts,
    cnd,
    coverage_rate,
    distinct,
    negative_repetition_rate,
    ngram_counts,
    unique_ngrams,
)
from qdtheory.text.noise import (
    NoiseDiscrepancy,
    NoiseFamily,
    add_noise,
    highest_coverage,
    noise_discrepancy,
    noise_family,
)
from qdtheory.text.report import Report, evaluate

if TYPE_CHECKING:
    from qdtheory.text.embeddings import embed
    from qdtheory.text.frechet import frechet_distance
    from qdtheory.text.lm_scores import (
        FittedModel,
        LanguageModelScore,
        cross_entropy_of,
        fit_language_model,
        known_words,
        lm_score,
        reverse_lm_score,
    )

__all__ = [
    "ConfidenceInterval",
    "Corpus",
    "FittedModel",
    "LanguageModelScore",
    "NgramCounts",
    "NoiseDiscrepancy",
    "NoiseFamily",
    "References",
    "Removed",
    "Report",
    "add_noise",
    "as_corpus",
    "bleu",
    "bleu_scores",
    "bootstrap_interval",
    "cnd",
    "coverage_rate",
    "cross_entropy_of",
    "distinct",
    "embed",
    "evaluate",
    "fit_language_model",
    "frechet_distance",
    "highest_coverage",
    "imdb",
    "jaccard_index",
    "jackknife_interval",
    "known_words",
    "lm_score",
    "ms_jaccard",
    "negative_repetition_rate",
    "ngram_counts",
    "noise_discrepancy",
    "noise_family",
    "prepare",
    "prepare_references",
    "read_corpus",
    "reverse_lm_score",
    "self_bleu",
    "self_bleu_scores",
    "unique_ngrams",
]

_LATE = {
    "FittedModel": "lm_scores",
    "LanguageModelScore": "lm_scores",
    "cross_entropy_of": "lm_scores",
    "embed": "embeddings",
    "fit_language_model": "lm_scores",
    "frechet_distance": "frechet",
    "known_words": "lm_scores",
    "lm_score": "lm_scores",
    "reverse_lm_score": "lm_scores",
}


def __getattr__(name: str) -> Any:
    """Import names from modules that need JAX on first use."""
    if name in _LATE:
        return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
