"""Jets of formulas against SymPy's derivatives and JAX's, in three arithmetics."""

from fractions import Fraction

import jax
import numpy as np
import pytest
import sympy
from flint import arb, ctx
from hypothesis import assume, given
from hypothesis import strategies as st
from models import EXPRESSIONS

from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.trees import ball

X = sympy.Symbol("x", positive=True)


@given(EXPRESSIONS, st.sampled_from(["0.0625", "0.3", "0.875"]))
def test_enclosures_hold_what_sympy_differentiates(text, decimal):
    exact = Fraction(decimal)
    try:
        expression = Expression(text)
    except ValueError:
        assume(False)
    found = expression.balls(ball(exact), 2)
    assume(all(part.is_finite() for part in found))
    at = sympy.Rational(exact.numerator, exact.denominator)
    symbolic = expression.symbolic(X)
    for order, enclosure in enumerate(found):
        value = sympy.N(symbolic.diff(X, order).subs(X, at), 80)
        assume(value.is_Float or value == 0)  # SymPy may write a real with I
        with ctx.workprec(300):
            # SymPy's 80 digits, to within the last few of them.
            written = arb(str(value)) * arb("1 +/- 1e-75") + arb("0 +/- 1e-70")
            assert enclosure.overlaps(written)


@given(EXPRESSIONS)
def test_enclosures_over_a_stretch_hold_those_of_its_points(text):
    ends = Fraction(1, 4), Fraction(3, 8)
    try:
        expression = Expression(text)
    except ValueError:
        assume(False)
    over = expression.balls(ball(ends[0]).union(ball(ends[1])), 2)
    for exact in (*ends, Fraction(1, 3)):
        for whole, part in zip(over, expression.balls(ball(exact), 2)):
            assert whole.overlaps(part) or not whole.is_finite()


SMOOTH = [
    *("x", "2", "-x*log(x)", "(x**0.5 - x)/0.5", "1 - (1 - x)**7", "x**3*x**-2"),
    *("1/(1 + x)**2.5", "exp(-sqrt(x))/2 - 2/x", "log(x/(1 - x))", "sqrt(0) + x**1"),
]


@pytest.mark.parametrize("text", SMOOTH)
def test_numpys_derivatives_are_those_of_jax(text):
    x = np.linspace(0.05, 0.95, 12).reshape(3, 4)
    expression = Expression(text)
    jet = expression.jet(x)
    h = expression
    for part in vars(jet).values():
        expected = jax.vmap(jax.vmap(h))(x)
        assert part.shape == x.shape
        # Sums of a few terms, at most about 1e4 in size.
        np.testing.assert_allclose(part, expected, rtol=1e-12, atol=1e-11)
        h = jax.grad(h)
    np.testing.assert_allclose(expression.value(x), jet.value, rtol=1e-14)


def test_outside_the_domain_the_value_is_not_finite():
    for text in ("log(x - 0.5)", "sqrt(x - 0.5)", "1/(x - 0.25)"):
        assert not np.isfinite(Expression(text).jet(np.array([0.25])).value).any()
        assert not Expression(text).balls(ball(Fraction(1, 4)))[0].is_finite()
