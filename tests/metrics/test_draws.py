"""Metrics of k draws: against all sequences of k draws, and what they measure."""

from itertools import product

import jax
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.metrics.draws import chance_seen, class_distribution

Q = np.array([0.5, 0.3, 0.15, 0.05])
UTILITIES = np.array([1.0, 4.0, 10.0, 2.0])


def mean_over_draws(q, k, value):
    """The exact mean of a function of k independent draws."""
    draws = product(range(q.size), repeat=k)
    return sum(q[list(d)].prod() * value(d) for d in draws)


@pytest.mark.claim("N25.1")
@pytest.mark.parametrize("k", [1, 2, 5])
def test_distinct_k_is_the_mean_over_all_draws(k):
    expected = mean_over_draws(Q, k, lambda d: len(set(d)))
    assert qd.metrics.distinct_k(Q, k) == pytest.approx(expected, abs=1e-13)
    assert qd.metrics.distinct_k(Q[::-1], 2) == pytest.approx(2 - Q @ Q, abs=1e-15)


def reading(draws, patience):
    """What NoveltyBench's reader gets of a sequence of answers."""
    weights = patience ** np.arange(len(draws))
    new = [d not in draws[:i] for i, d in enumerate(draws)]
    return weights @ (UTILITIES[list(draws)] * new) / weights.sum()


@pytest.mark.claim("N25.5")
@pytest.mark.parametrize("patience", [0.0, 0.4, 0.8, 1.0])
def test_utility_k_is_the_mean_over_all_draws_and_the_closed_form(patience):
    for k in (1, 2, 5):
        expected = mean_over_draws(Q, k, lambda d: reading(d, patience))
        found = float(qd.metrics.utility_k(Q, UTILITIES, k, patience))
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
    assert qd.metrics.pass_at_k(s, 3) == pytest.approx(expected, abs=1e-15)


def test_a_rare_outcome_keeps_its_digits_and_its_slope():
    assert float(chance_seen(1e-12, 10)) == pytest.approx(1e-11, rel=1e-10)
    slopes = jax.vmap(jax.grad(lambda x: chance_seen(x, 3)))(np.array([0, 0.5, 1.0]))
    np.testing.assert_allclose(slopes, [3, 0.75, 0], atol=1e-15)


def test_class_distribution_adds_up():
    found = class_distribution(Q, np.array([1, 0, 1, 1]), 2)
    np.testing.assert_allclose(found, [0.3, 0.7], atol=1e-15)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: qd.metrics.distinct_k(Q, 0), "k must be at least 1"),
        (lambda: qd.metrics.distinct_k(2 * Q, 2), "must sum to 1"),
        (lambda: qd.metrics.utility_k(Q, [1.0], 2), "utilities must have 4 entries"),
        (lambda: qd.metrics.utility_k(Q, UTILITIES, 2, 1.5), "patience must be in"),
        (lambda: qd.metrics.pass_at_k([1.5], 2), "between 0 and 1"),
        (lambda: qd.metrics.pass_at_k([0.5], 0), "k must be at least 1"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
