"""The bootstrap: its error and percentiles of a mean, and its coverage of BLEU."""

from functools import partial

import numpy as np
import pytest
from lab.corpora import bootstrap_interval
from refusals import refused
from scipy import stats

import qdtheory as qd
from qdtheory.text import as_corpus, bleu, bleu_scores, prepare_references


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


def test_arrays_entry_by_entry():
    texts = as_corpus(["a b c", "b a", "c c a", "a a"] * 10)
    references = prepare_references(["a b", "c a a"], 2)
    interval = partial(bootstrap_interval, num_resamples=20)
    both = interval(lambda c: bleu(c, references, 2, smoothing=None), texts)
    for order in (0, 1):
        one = interval(
            lambda c, n=order: bleu(c, references, 2, smoothing=None)[n], texts
        )
        for name in ("value", "low", "high", "standard_error"):
            expected = getattr(one, name)  # NumPy sums arrays in another order
            assert getattr(both, name)[order] == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("as_a_user")  # thousands of calls
def test_it_covers_bleu_with_fixed_references():
    space = qd.TextSpace(vocab_size=4, lengths=5)
    q = np.asarray(qd.oracle(space, 5, 1.0, 8))
    references = prepare_references(space.tokens[[30, 170, 400]].tolist(), 2)
    scores = bleu_scores(space.tokens.tolist(), references, 2, smoothing=None)
    rng = np.random.default_rng(1)
    samples = [rng.choice(space.num_texts, 60, p=q) for _ in range(100)]
    found = [
        bootstrap_interval(
            lambda c: bleu(c, references, 2, smoothing=None)[1],
            as_corpus(space.tokens[index].tolist()),
            level=0.9,
            num_resamples=50,
        )
        for index in samples
    ]
    covered = np.mean([x.low <= q @ scores[:, 1] <= x.high for x in found])
    # 100 intervals of level 0.9: the standard deviation of their coverage is 0.03.
    assert 0.8 <= covered <= 0.98


def test_bad_input(as_a_user):
    interval = bootstrap_interval
    refused(
        ("at least one corpus after the metric", interval, mean_length),
        ("got 95", partial(interval, level=95), mean_length, ["a"]),
        ("from 2 on, got 1", partial(interval, num_resamples=1), mean_length, ["a"]),
    )
