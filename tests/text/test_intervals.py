"""Intervals: closed forms for a mean, and coverage on an oracle."""

from functools import partial

import numpy as np
import pytest
from lab.corpora import bootstrap_interval
from refusals import refused
from scipy import stats

import qdtheory as qd
from qdtheory.text import (
    as_corpus,
    bleu,
    bleu_scores,
    jackknife_interval,
    prepare_references,
)


def mean_length(corpus) -> float:
    return float(corpus.lengths.mean())


@pytest.fixture(scope="module")
def corpus():
    lengths = np.random.default_rng(0).integers(1, 9, size=60)
    return as_corpus([["a"] * length for length in lengths])


# -- a mean --------------------------------------------------------------------------


def test_leaving_one_out_of_a_mean_is_the_textbook_interval(corpus):
    found = jackknife_interval(mean_length, corpus, level=0.9, num_groups=None)
    error = stats.sem(corpus.lengths)
    low, high = stats.t.interval(0.9, 59, mean_length(corpus), error)
    close = {"rel": 1e-12}
    assert found.value == mean_length(corpus)
    assert found.standard_error == pytest.approx(error, **close)
    assert (found.low, found.high) == (
        pytest.approx(low, **close),
        pytest.approx(high, **close),
    )


def test_groups_of_a_mean(corpus):
    """Its jackknife is the standard error of the means of the groups."""
    sums = []
    found = jackknife_interval(
        lambda c: sums.append(c.num_tokens) or mean_length(c), corpus, num_groups=12
    )
    groups = corpus.num_tokens - np.array([n for n in sums if n < corpus.num_tokens])
    assert len(groups) == 12
    assert groups.sum() == corpus.num_tokens
    assert found.standard_error == pytest.approx(stats.sem(groups / 5), rel=1e-12)


def test_variances_of_two_samples_add_up(corpus):
    second = corpus[:40]
    found = jackknife_interval(
        lambda a, b: mean_length(a) - mean_length(b), corpus, second, num_groups=None
    )
    error = np.hypot(stats.sem(corpus.lengths), stats.sem(second.lengths))
    assert found.standard_error == pytest.approx(error, rel=1e-12)
    margin = stats.t.ppf(0.975, 39) * error
    assert found.high - found.value == pytest.approx(margin, rel=1e-12)


@pytest.mark.parametrize(
    "interval", [jackknife_interval, partial(bootstrap_interval, num_resamples=20)]
)
def test_arrays_entry_by_entry(interval):
    texts = as_corpus(["a b c", "b a", "c c a", "a a"] * 10)
    references = prepare_references(["a b", "c a a"], 2)
    both = interval(lambda c: bleu(c, references, 2, smoothing=None), texts)
    for order in (0, 1):
        one = interval(
            lambda c, n=order: bleu(c, references, 2, smoothing=None)[n], texts
        )
        for name in ("value", "low", "high", "standard_error"):
            expected = getattr(one, name)  # NumPy sums arrays in another order
            assert getattr(both, name)[order] == pytest.approx(expected, rel=1e-12)


def test_seeds(corpus):
    first, same, other = (
        jackknife_interval(mean_length, corpus, seed=seed) for seed in (1, 1, 2)
    )
    assert first == same
    assert first.standard_error != other.standard_error


# -- coverage ------------------------------------------------------------------------


@pytest.mark.usefixtures("as_a_user")  # thousands of calls
@pytest.mark.parametrize(
    "interval", [jackknife_interval, partial(bootstrap_interval, num_resamples=50)]
)
def test_it_covers_bleu_with_fixed_references(interval):
    space = qd.TextSpace(vocab_size=4, lengths=5)
    q = np.asarray(qd.oracle(space, 5, 1.0, 8))
    references = prepare_references(space.tokens[[30, 170, 400]].tolist(), 2)
    scores = bleu_scores(space.tokens.tolist(), references, 2, smoothing=None)
    rng = np.random.default_rng(1)
    samples = [rng.choice(space.num_texts, 60, p=q) for _ in range(100)]
    corpora = [as_corpus(space.tokens[index].tolist()) for index in samples]

    found = [
        interval(lambda c: bleu(c, references, 2, smoothing=None)[1], corpus, level=0.9)
        for corpus in corpora
    ]
    covered = np.mean([x.low <= q @ scores[:, 1] <= x.high for x in found])
    # 100 intervals of level 0.9: the standard deviation of their coverage is 0.03.
    assert 0.8 <= covered <= 0.98


# -- bad input -----------------------------------------------------------------------


def test_bad_input(as_a_user):
    sided = jackknife_interval
    both = ["a"] * 30, ["b"] * 9
    refused(
        ("at least one corpus after the metric", sided, mean_length),
        ("got 95", partial(sided, level=95), mean_length, ["a"]),
        ("2 to 9, the sentences of corpus 1, got 20", sided, mean_length, *both),
        (
            "a whole number from 2 to 1,",
            partial(sided, num_groups=None),
            mean_length,
            ["a"],
        ),
    )
    refused(("got one str", sided, mean_length, "a b"), error=TypeError)
