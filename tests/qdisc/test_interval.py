"""What all intervals share: scores in units, their rounding, and a last check."""

from fractions import Fraction

import numpy as np
import pytest
from models import exact

from qdtheory.qdisc.interval import checked_interval, in_units


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
    p = np.array([0.5, 0.5])
    found = checked_interval(1.0, 1.0 - 1e-12, p, 3, unit=1.0)
    assert (found.qdisc, found.upper_bound, found.steps) == (1.0, 1.0, 3)
    with pytest.raises(RuntimeError, match="more than the bound"):
        checked_interval(1.0, 0.99, p, 3, unit=1.0)
