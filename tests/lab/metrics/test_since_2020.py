"""Metrics since 2020: against all sequences of draws, and cuts by hand."""

from itertools import product
from math import ceil, log2

import numpy as np
import pytest
from lab import metrics
from lab.corpora.compression import lz78_bits, lz78_phrases
from lab.metrics.since_2020 import compression_table
from referees.enumerated_batches import batches
from refusals import refused

import qdtheory as qd

# -- k draws -------------------------------------------------------------------------

Q = np.array([0.5, 0.3, 0.15, 0.05])
UTILITIES = np.array([1.0, 4.0, 10.0, 2.0])


def mean_over_draws(q, k, value):
    """The exact mean of a function of k independent draws."""
    draws, chances = batches(q, k)
    return chances @ [value(d) for d in draws.tolist()]


@pytest.mark.claim("N25.1")
@pytest.mark.parametrize("k", [1, 2, 5])
def test_distinct_k_is_the_mean_over_all_draws(k):
    expected = mean_over_draws(Q, k, lambda d: len(set(d)))
    assert metrics.distinct_k(Q, k) == pytest.approx(expected, abs=1e-13)
    assert metrics.distinct_k(Q[::-1], 2) == pytest.approx(2 - Q @ Q, abs=1e-15)


def reading(draws, patience):
    """What NoveltyBench's reader gets of a sequence of answers."""
    weights = patience ** np.arange(len(draws))
    new = [d not in draws[:i] for i, d in enumerate(draws)]
    return weights @ (UTILITIES[draws] * new) / weights.sum()


@pytest.mark.claim("N25.5")
@pytest.mark.parametrize("patience", [0.0, 0.4, 0.8, 1.0])
def test_utility_k_is_the_mean_over_all_draws_and_the_closed_form(patience):
    for k in (1, 2, 5):
        expected = mean_over_draws(Q, k, lambda d: reading(d, patience))
        found = float(metrics.utility_k(Q, UTILITIES, k, patience))
        assert found == pytest.approx(expected, abs=1e-13)
        if patience < 1:
            left = patience * (1 - Q)
            closed = UTILITIES @ (Q * (1 - left**k) / (1 - left))
            closed *= (1 - patience) / (1 - patience**k)
            assert found == pytest.approx(closed, abs=1e-13)


@pytest.mark.claim("N25.6")
def test_pass_at_k_is_the_chance_of_one_right_answer():
    s = np.array([0.0, 0.25, 1.0])
    expected = np.mean(
        [mean_over_draws(np.array([1 - x, x]), 3, lambda d: 1 in d) for x in s]
    )
    assert metrics.pass_at_k(s, 3) == pytest.approx(expected, abs=1e-15)


# -- compression ---------------------------------------------------------------------


def cut(tokens):
    """The phrases, each the shortest prefix of the rest that is new."""
    phrases, rest = [], tuple(tokens)
    while rest:
        sizes = range(1, len(rest) + 1)
        size = next((n for n in sizes if rest[:n] not in phrases), len(rest))
        phrases.append(rest[:size])
        rest = rest[size:]
    return phrases


def test_phrases_are_those_of_the_definition():
    for tokens in product(range(2), repeat=9):
        assert lz78_phrases(tokens) == len(cut(tokens))
    assert lz78_phrases([]) == 0
    for number, size in ((1, 2), (7, 3), (20, 5)):
        bits = sum(ceil(log2(j)) + ceil(log2(size)) for j in range(1, number + 1))
        assert lz78_bits(number, size) == bits


@pytest.mark.claim("N25.19")
@pytest.mark.parametrize("num_texts", [1, 2, 3])
def test_the_expectation_is_the_mean_over_all_samples(num_texts):
    space = qd.TextSpace(2, 2)
    q = np.array([0.1, 0.2, 0.3, 0.4])

    def ratio(sample):
        tokens = space.tokens[sample].ravel().tolist()
        return len(tokens) / lz78_bits(len(cut(tokens)), 2)

    expected = mean_over_draws(q, num_texts, ratio)
    found = metrics.expected_compression(space, q, num_texts)
    assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.claim("N25.19")
def test_a_long_sample_needs_about_its_entropy_rate():
    tokens = np.random.default_rng(0).choice(2, p=[0.9, 0.1], size=200_000)
    bits = lz78_bits(lz78_phrases(tokens.tolist()), 2) / tokens.size
    rate = float(qd.entropy(np.array([0.9, 0.1]))) / np.log(2)
    # Above the rate by a term that falls like 1 / log n.
    assert rate < bits < 1.35 * rate


# -- bad input -----------------------------------------------------------------------


def test_bad_input_is_refused(as_a_user):
    distinct, utility = metrics.distinct_k, metrics.utility_k
    refused(
        ("k must be at least 1", distinct, Q, 0),
        ("must sum to 1", distinct, 2 * Q, 2),
        ("utilities must have 4 entries", utility, Q, [1.0], 2),
        ("patience must lie in", utility, Q, UTILITIES, 2, 1.5),
        ("successes must lie in [0, 1], got [1.5]", metrics.pass_at_k, [1.5], 2),
        ("k must be at least 1", metrics.pass_at_k, [0.5], 0),
        ("too many to compress", compression_table, qd.TextSpace(4, 3), 4),
    )
