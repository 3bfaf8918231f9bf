"""Witnesses hold by plain NumPy, and in fractions."""

import numpy as np
import sympy
from models import assert_beats, separable

import qdtheory as qd
from qdtheory.theory.compatibility import check_compatibility


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
