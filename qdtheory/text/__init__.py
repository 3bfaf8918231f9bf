"""Metrics of corpora: what the exact wing computes on a space, from samples."""

from qdtheory.text.corpus import Corpus, Removed, as_corpus, prepare, read_corpus
from qdtheory.text.datasets import imdb
from qdtheory.text.ngrams import (
    NgramCounts,
    cnd,
    coverage_rate,
    negative_repetition_rate,
    ngram_counts,
)

__all__ = [
    "Corpus",
    "NgramCounts",
    "Removed",
    "as_corpus",
    "cnd",
    "coverage_rate",
    "imdb",
    "negative_repetition_rate",
    "ngram_counts",
    "prepare",
    "read_corpus",
]
