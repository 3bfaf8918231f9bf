"""Every result on QDisc: a gain that its model attains, below its upper bound."""

from fractions import Fraction

import numpy as np
import pytest
from models import assert_attained, exact

import qdtheory as qd
from qdtheory.pairs.forms import pose
from qdtheory.qdisc.bounds import in_units, sealed_bounds

P = np.array([0.4, 0.3, 0.2, 0.1])
BLEU = qd.BleuPair(qd.TextSpace(vocab_size=2, lengths=2), 1, 2, 2)
ROWS, WEIGHTS = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), np.array([0.5, 0.5])


@pytest.mark.parametrize(
    ("of", "pair"),
    [
        (qd.quality_discrepancy, qd.LL_NRR),
        (qd.qdisc.bleu_1_interval, BLEU),
        (qd.qdisc.cubic_interval, BLEU),
    ],
)
def test_of_one_distribution(of, pair):
    found = of(pair, P)
    assert isinstance(found, qd.Bounds)
    assert 0 <= found.qdisc <= found.upper_bound
    assert found.gap == found.upper_bound - found.qdisc
    assert found.status in ("exact", "certified")
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
    assert isinstance(found, qd.Bounds)
    qualities = [
        float(qd.qdisc.conditional_quality(qd.LL_NRR, q, ROWS, WEIGHTS))
        for q in (found.q, ROWS)
    ]
    assert 0 < found.qdisc <= found.upper_bound
    assert found.status == "certified"
    assert found.qdisc == pytest.approx(qualities[0] - qualities[1], abs=1e-14)


def test_scores_in_units_lose_nothing():
    rng, missed = np.random.default_rng(0), 0
    for _ in range(200):
        n = int(rng.integers(2, 9))
        scores = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
        scores += rng.choice([0.0, 1e3, -1e6])
        p = rng.dirichlet(np.ones(n))
        # The sum of p is a rounding off, which a constant multiplies.
        units = in_units(scores, p)
        u, text = exact(scores), int(rng.integers(n))
        truth = u[text] - u @ exact(p)
        bound = float(units.scores[text])
        assert Fraction(units.gain(bound)) >= truth
        assert units.gain(bound) <= float(truth) + 4 * units.rounding * units.unit
        missed += Fraction(units.unit * (bound - float(units.scores @ p))) < truth
    assert missed > 40


def test_a_bound_below_the_gain_is_rounding_or_an_error():
    posed = pose(qd.CR_NRR, np.array([0.6, 0.4]))
    found = sealed_bounds(posed, posed.p, -1e-12, "luck", steps=3)
    assert (found.qdisc, found.upper_bound, found.steps) == (0.0, 0.0, 3)
    assert (found.status, found.reason) == ("certified", "Bounded by luck.")
    with pytest.raises(RuntimeError, match="more than the bound"):
        sealed_bounds(posed, posed.p, -0.01, "luck")
