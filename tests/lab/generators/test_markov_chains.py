"""Sums over positions, against sums over all texts."""

import numpy as np
import pytest
from lab.generators import (
    Beam,
    Greedy,
    MarkovModel,
    Temperature,
    TopK,
    TopP,
    decode,
    decode_markov,
    markov_metrics,
    tempered_markov_metrics,
)
from refusals import refused

import qdtheory as qd


def drawn(rng, size, weight=1.0):
    rows = rng.dirichlet(np.full(size, weight), size + 1)
    return MarkovModel(rows[0], rows[1:])


def listed(q, p):
    """The four metrics from the probabilities of all texts."""
    seen = q > 0
    with np.errstate(divide="ignore"):
        ll = q[seen] @ np.log(p[seen])
    return -q[seen] @ np.log(q[seen]), ll, np.log(q @ p), np.log(q @ q)


@pytest.mark.claim("N24.11")
@pytest.mark.parametrize(("size", "length"), [(3, 5), (2, 8), (4, 1)])
def test_metrics_and_decoders_on_all_texts(size, length):
    rng, space = np.random.default_rng(size), qd.TextSpace(size, length)
    p = drawn(rng, size)
    table = np.asarray(p.probabilities(space))
    for decoders in ((Temperature(0.6),), (TopK(2),), (Temperature(2.0), TopP(0.8))):
        q = decode_markov(p, *decoders)
        law = np.asarray(q.probabilities(space))
        np.testing.assert_allclose(law, decode(table, space, decoders), atol=1e-14)
        found = markov_metrics(q, p, length)
        expected = listed(law, table)
        values = found.se, found.ll, found.log_cr, found.log_repetition
        np.testing.assert_allclose(values, expected, rtol=1e-12)
        assert found.cr == pytest.approx(float(qd.coverage_rate(law, table)), rel=1e-12)
        nrr = float(qd.negative_repetition_rate(law))
        assert found.nrr == pytest.approx(nrr, rel=1e-12)


@pytest.mark.claim("N24.11")
def test_the_frontier_of_ll_se_on_all_texts():
    rng, space = np.random.default_rng(1), qd.TextSpace(3, 6)
    p = drawn(rng, 3)
    table = np.asarray(p.probabilities(space))
    for beta in (0.3, 1.0, 2.5):
        se, ll, *_ = listed(np.asarray(qd.temper(table, beta)), table)
        found = tempered_markov_metrics(p, beta, 6)
        np.testing.assert_allclose(found, (ll, se), rtol=1e-11)


@pytest.mark.claim("N24.11")
def test_long_texts():
    """50 words and 100 tokens; the loss of the sweep grows as the length does."""
    p = drawn(np.random.default_rng(2), 50, 0.3)
    one, two, four = (
        markov_metrics(decode_markov(p, TopK(5)), p, length) for length in (50, 99, 197)
    )
    for name in ("se", "ll", "log_cr", "log_repetition"):
        steps = getattr(two, name) - getattr(one, name), getattr(four, name)
        assert 2 * steps[0] == pytest.approx(steps[1] - getattr(two, name), rel=1e-3)
    same = markov_metrics(p, p, 100)
    assert same.log_cr == pytest.approx(same.log_repetition, rel=1e-12)
    assert same.se == pytest.approx(-same.ll, rel=1e-12)
    # 1e-600 is no float, its logarithm is.
    assert markov_metrics(p, p, 1000).log_cr < -700
    assert markov_metrics(p, p, 1000).cr == 0


def test_what_one_model_never_writes():
    never = MarkovModel(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    p = MarkovModel(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    found = markov_metrics(never, p, 3)
    assert (found.se, found.ll, found.log_cr, found.cr) == (0, -np.inf, -np.inf, 0)
    # Rows that are never reached do not count.
    assert markov_metrics(decode_markov(p, Greedy()), p, 1).ll == 0


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    p, three = (MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n)) for n in (2, 3))
    wide = MarkovModel(np.full(2, 0.5), np.full((2, 3), 0.5))
    light = MarkovModel(np.full(2, 0.4), np.full((2, 2), 0.5))
    one, size = "a Markov model is for texts of one length, got", "over 2 tokens here, "
    refused(
        ("shape (|V|,) and transitions of shape", markov_metrics, p, wide, 3),
        ("must be nonnegative and sum to 1", decode_markov, light, TopK(1)),
        ("the models have 2 and 3 tokens", markov_metrics, p, three, 3),
        ("length must be at least 1, got 0", markov_metrics, p, p, 0),
        ("beta must be positive and finite, got 0", tempered_markov_metrics, p, 0, 3),
        (one, p.probabilities, qd.TextSpace(2, (1, 2))),
        (size + "the space over 3", p.probabilities, qd.TextSpace(3, 2)),
    )
    beam = "decoder must be one of tokens, as TopK(5), got Beam"
    refused((beam, decode_markov, p, Beam(2)), error=TypeError)
