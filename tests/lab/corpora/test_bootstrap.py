"""The bootstrap of a mean; beside the jackknife it is tested in test_intervals.py."""

from functools import partial

import numpy as np
import pytest
from lab.corpora import bootstrap_interval
from refusals import refused
from scipy import stats

from qdtheory.text import as_corpus


def mean_length(corpus) -> float:
    return float(corpus.lengths.mean())


def test_of_a_mean():
    lengths = np.random.default_rng(0).integers(1, 9, size=60)
    corpus = as_corpus([["a"] * length for length in lengths])
    found = bootstrap_interval(mean_length, corpus, num_resamples=4000)
    error = corpus.lengths.std() / 60**0.5
    # 4,000 resamples: a standard deviation to 1.1 %, the percentiles to 0.04 of it.
    assert found.standard_error == pytest.approx(error, rel=0.05)
    assert (found.low, found.high) == pytest.approx(
        stats.norm.interval(0.95, found.value, error), abs=0.2 * error
    )


def test_bad_input(as_a_user):
    interval = bootstrap_interval
    refused(
        ("at least one corpus after the metric", interval, mean_length),
        ("got 95", partial(interval, level=95), mean_length, ["a"]),
        ("from 2 on, got 1", partial(interval, num_resamples=1), mean_length, ["a"]),
    )
