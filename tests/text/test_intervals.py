"""Intervals: closed forms for a mean, coverage on an oracle, ends of settings."""

from functools import partial
from typing import Literal

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from qdtheory import text
from qdtheory.text import as_corpus, intervals, jackknife_interval
from qdtheory.text.checks import require_choice, require_positive, require_whole
from qdtheory.text.comparability import warnings_of_texts


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
    other = of_groups(mean_length, CORPUS, seed=1)
    groups = CORPUS.num_tokens - np.array([n for n in sums if n < CORPUS.num_tokens])
    assert (len(groups), groups.sum()) == (12, CORPUS.num_tokens)
    assert found.standard_error == close(stats.sem(groups / 5))
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
    both = jackknife_interval(lambda c: np.array([1, 2]) * mean_length(c), CORPUS)
    one = jackknife_interval(mean_length, CORPUS)
    for name in ("value", "low", "high", "standard_error"):
        # NumPy sums arrays in another order.
        assert getattr(both, name) == close(np.array([1, 2]) * getattr(one, name))


def test_sentences_repeated_beyond_chance_are_told_and_chance_is_not():
    rng = np.random.default_rng(0)
    laws = rng.integers(0, 50, 400), rng.integers(0, 400, 400), rng.zipf(1.5, 400)
    twice, half = np.repeat(np.arange(200), 2), [*range(300), *range(100)]
    few = [*range(10_000), *range(45)]  # beyond chance, and less than one in a hundred
    for rows, told in (*((x, 0) for x in laws), (few, 0), (twice, 1), (half, 1)):
        texts = {"x": as_corpus([[int(x), 7] for x in rows])}
        said = warnings_of_texts(texts, as_corpus([[7]] * 9), "pairs")
        assert sum("of x stand there more than once" in line for line in said) == told
    assert said[0].startswith("50% of the sentences of x stand there more than once")


@pytest.mark.parametrize(("draws", "given"), [(299, True), (301, False)])
def test_no_interval_of_distinct_k_where_k_is_above_half_of_the_ngrams(draws, given):
    ours, real = np.random.default_rng(0).integers(0, 99, (2, 200, 3)).tolist()
    found = text.evaluate({"x": ours}, real, 1, draws=draws, metrics="all")
    (said,) = found.warnings
    assert "no interval of distinct-1" in said  # all words are in many sentences
    assert (f"distinct_{draws}-1" in said) is not given
    assert np.isfinite(found["x"][f"distinct_{draws}-1"].low) == given


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
    whole, words = "k: expected a whole number from", Literal["a", "b", "d"]
    refused(
        *((f"{whole} 1 on, got {x}", require_whole, "k", x) for x in (0, 2.5, None)),
        (f"{whole} 2 to 5, of six, got 6", require_whole, "k", 6, 2, 5, ", of six"),
        ("x: expected a positive number, got inf", require_positive, "x", np.inf),
        ("got '0.5'", require_positive, "x", "0.5"),
        ('c: expected "a", "b" or "d", got None', require_choice, "c", None, words),
    )
