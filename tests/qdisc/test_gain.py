"""Every result on QDisc is a gain that its model attains, below its upper bound."""

import numpy as np
import pytest
from models import assert_attained

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=2, lengths=2)
P = np.array([0.4, 0.3, 0.2, 0.1])
ROWS, WEIGHTS = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), np.array([0.5, 0.5])


def test_of_one_distribution():
    found = qd.quality_discrepancy(qd.LL_NRR, P)
    assert isinstance(found, qd.qdisc.Gain)
    assert 0 < found.qdisc <= found.upper_bound
    assert_attained(qd.LL_NRR, P, found.q, found.qdisc)


@pytest.mark.parametrize("of", [qd.qdisc.bleu_1_interval, qd.qdisc.cubic_interval])
def test_of_intervals(of):
    pair = qd.BleuPair(SPACE, 1, 2, 2)
    found = of(pair, P)
    assert isinstance(found, qd.qdisc.Gain)
    assert 0 <= found.qdisc <= found.upper_bound
    assert_attained(pair, P, found.q, found.qdisc)


@pytest.mark.parametrize(
    "of",
    [
        qd.qdisc.average_discrepancy,
        qd.qdisc.pooled_discrepancy,
        qd.qdisc.transport_bound,
    ],
)
def test_of_conditional_models(of):
    found = of(qd.LL_NRR, ROWS, WEIGHTS)
    assert isinstance(found, qd.qdisc.Gain)
    qualities = [
        float(qd.qdisc.conditional_quality(qd.LL_NRR, q, ROWS, WEIGHTS))
        for q in (found.q, ROWS)
    ]
    assert 0 < found.qdisc <= found.upper_bound
    assert found.qdisc == pytest.approx(qualities[0] - qualities[1], abs=1e-14)
