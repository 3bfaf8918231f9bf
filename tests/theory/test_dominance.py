"""Dominance and its filter, over all pairs of models; witnesses in fractions."""

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from models import assert_beats, separable

import qdtheory as qd
from qdtheory.theory.compatibility import check_compatibility


@pytest.mark.parametrize(
    ("situation", "first", "second", "in_quality", "in_diversity"),
    [
        ("better in both", (2.0, 2.0), (1.0, 1.0), True, True),
        ("better quality, same diversity", (2.0, 1.0), (1.0, 1.0), True, False),
        ("same quality, better diversity", (1.0, 2.0), (1.0, 1.0), False, True),
        ("equal", (1.0, 1.0), (1.0, 1.0), False, False),
        ("traded", (2.0, 0.0), (1.0, 1.0), False, False),
        ("worse", (0.0, 0.0), (1.0, 1.0), False, False),
        ("over quality -inf", (1.0, 1.0), (-np.inf, 1.0), True, False),
        ("both -inf", (-np.inf, 2.0), (-np.inf, 1.0), False, True),
    ],
)
@pytest.mark.claim("N3.3")
def test_dominance(situation, first, second, in_quality, in_diversity):
    found = qd.dominance(*first, *second)
    assert (bool(found.in_quality), bool(found.in_diversity)) == (
        in_quality,
        in_diversity,
    ), situation
    assert bool(found.either) == (in_quality or in_diversity)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)
)
def test_pareto_filter_is_dominance_over_all_pairs(points):
    u, v = np.array(points, dtype=float).T
    v[v == 0] = -np.inf
    u[u == 0] = -np.inf
    beaten = [
        any(bool(qd.dominance(a, b, c, d).either) for a, b in zip(u, v))
        for c, d in zip(u, v)
    ]
    assert qd.pareto_filter(u, v).tolist() == [not lost for lost in beaten]


def test_witnesses_hold_in_plain_numpy():
    def repetition(q):
        return -(q**2).sum()

    def likelihood(q, p):
        return q @ np.log(p)

    witness = check_compatibility(qd.LL_NRR).witness
    assert_beats(qd.LL_NRR, witness, likelihood, repetition)


def test_witnesses_of_formulas_hold_exactly():
    """With 60 digits and the last probability as 1 minus the others."""
    for f, g in (("log(x)", "-x**2"), ("x", "-x**2 + 0.0001*x**3")):
        witness = check_compatibility(separable(f, g)).witness
        x = sympy.Symbol("x")
        p, q = (
            [sympy.Rational(float(v)) for v in side] for side in (witness.p, witness.q)
        )
        p[-1], q[-1] = 1 - sum(p[:-1]), 1 - sum(q[:-1])
        score, bonus = (qd.Expression(text).symbolic(x) for text in (f, g))
        quality = sum((b - a) * score.subs(x, a) for a, b in zip(p, q))
        diversity = sum(bonus.subs(x, b) - bonus.subs(x, a) for a, b in zip(p, q))
        assert sympy.N(quality, 60) > 0
        assert sympy.N(diversity, 60) > 0
