"""Intervals: closed forms for a mean, coverage on an oracle, ends of settings."""

from functools import partial
from typing import Literal

import numpy as np
import pytest
from refusals import refused
from scipy import stats

import qdtheory as qd
from qdtheory import text
from qdtheory.text import as_corpus, bleu, bleu_scores, intervals, jackknife_interval
from qdtheory.text.checks import require_choice, require_positive, require_whole


def mean_length(corpus) -> float:
    return float(corpus.lengths.mean())


CORPUS = as_corpus([["a"] * n for n in np.random.default_rng(0).integers(1, 9, 60)])
close = partial(pytest.approx, rel=1e-12)


def test_leaving_one_out_of_a_mean_is_the_textbook_interval():
    found = jackknife_interval(mean_length, CORPUS, level=0.9, num_groups=None)
    error = stats.sem(CORPUS.lengths)
    low, high = stats.t.interval(0.9, 59, mean_length(CORPUS), error)
    told = found.low, found.value, found.high, found.standard_error
    assert told == close((low, mean_length(CORPUS), high, error))


def test_groups_of_a_mean():
    """Its jackknife is the standard error of the means of the groups."""
    sums, of_groups = [], partial(jackknife_interval, num_groups=12)
    found = of_groups(lambda c: sums.append(c.num_tokens) or mean_length(c), CORPUS)
    again, other = (of_groups(mean_length, CORPUS, seed=x) for x in (0, 1))
    groups = CORPUS.num_tokens - np.array([n for n in sums if n < CORPUS.num_tokens])
    assert (len(groups), groups.sum()) == (12, CORPUS.num_tokens)
    assert found.standard_error == close(stats.sem(groups / 5))
    assert again == found
    assert other.standard_error != found.standard_error


def test_variances_of_two_samples_add_up():
    second = CORPUS[:40]
    found = jackknife_interval(
        lambda a, b: mean_length(a) - mean_length(b), CORPUS, second, num_groups=None
    )
    error = np.hypot(stats.sem(CORPUS.lengths), stats.sem(second.lengths))
    assert found.standard_error == close(error)
    assert found.high - found.value == close(stats.t.ppf(0.975, 39) * error)


def test_means_and_differences_of_draws_are_those_of_scipy():
    """Welch's degrees of two samples, of unequal sizes and spreads."""
    rng, mean_of = np.random.default_rng(0), intervals.mean_interval
    one, other = rng.normal(0, 1, 5), rng.normal(1, 3, 12)
    found = mean_of(one, 0.9)
    textbook = stats.t.interval(0.9, 4, one.mean(), stats.sem(one))
    assert (found.low, found.high) == close(textbook)
    rests = [(x.sum() - x) / (len(x) - 1) for x in (one, other)]
    variance, degrees = intervals.summed_variance(*rests)
    welch = stats.ttest_ind(one, other, equal_var=False)
    assert degrees == close(welch.df)
    assert variance**0.5 == close((one.mean() - other.mean()) / welch.statistic)


def test_arrays_entry_by_entry():
    texts = as_corpus(["a b c", "b a", "c c a", "a a"] * 10)
    metric = partial(bleu, references=["a b", "c a a"], max_order=2, smoothing=None)
    both = jackknife_interval(metric, texts)
    ones = [jackknife_interval(lambda c, n=n: metric(c)[n], texts) for n in (0, 1)]
    for name in ("value", "low", "high", "standard_error"):
        # NumPy sums arrays in another order.
        assert getattr(both, name) == close([getattr(one, name) for one in ones])


@pytest.mark.usefixtures("as_a_user")  # thousands of calls
def test_it_covers_bleu_with_fixed_references():
    space = qd.TextSpace(vocab_size=4, lengths=5)
    q = np.asarray(qd.oracle(space, 5, 1.0, 8))
    references = text.prepare_references(space.tokens[[30, 170, 400]].tolist(), 2)
    metric = partial(bleu, references=references, max_order=2, smoothing=None)
    exact = q @ bleu_scores(space.tokens.tolist(), references, 2, smoothing=None)[:, 1]
    rng, covered = np.random.default_rng(1), 0
    for _ in range(100):
        sample = as_corpus(space.tokens[rng.choice(space.num_texts, 60, p=q)].tolist())
        found = jackknife_interval(lambda c: metric(c)[1], sample, level=0.9)
        covered += found.low <= exact <= found.high
    # 100 intervals of level 0.9: the standard deviation of their number is 3.
    assert 80 <= covered <= 98


def test_bad_input(as_a_user):
    sided, both = jackknife_interval, (["a"] * 30, ["b"] * 9)
    alone = partial(sided, num_groups=None)
    refused(
        ("at least one corpus after the metric", sided, mean_length),
        ("got 95", partial(sided, level=95), mean_length, ["a"]),
        ("2 to 9, the sentences of corpus 1, got 20", sided, mean_length, *both),
        ("a whole number from 2 to 1,", alone, mean_length, ["a"]),
    )
    refused(("got one str", sided, mean_length, "a b"), error=TypeError)


def test_settings_are_whole_positive_or_a_word():
    require_whole("k", np.int8(3), 2, 5)
    require_positive("x", np.float32(0.5), below=1)
    whole, words = "k: expected a whole number from", Literal["a", "b", "d"]
    refused(
        *((f"{whole} 1 on, got {x}", require_whole, "k", x) for x in (0, 2.5, None)),
        (f"{whole} 2 to 5, of six, got 6", require_whole, "k", 6, 2, 5, ", of six"),
        ("x: expected a positive number, got inf", require_positive, "x", np.inf),
        ("got '0.5'", require_positive, "x", "0.5"),
        ('c: expected "a", "b" or "d", got None', require_choice, "c", None, words),
    )
