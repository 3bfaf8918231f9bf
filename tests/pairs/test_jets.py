"""Jets of formulas against SymPy's derivatives and JAX's, in three arithmetics."""

from fractions import Fraction

import jax
import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models import EXPRESSIONS
from mpmath.libmp import to_str

from qdtheory.pairs.formulas import Expression

X = sympy.Symbol("x", positive=True)


def parts(jet):
    return jet.value, jet.slope, jet.curvature


@settings(max_examples=100)
@given(EXPRESSIONS, st.sampled_from(["0.0625", "0.3", "0.875"]))
def test_enclosures_hold_what_sympy_differentiates(text, decimal):
    exact = Fraction(decimal)
    try:
        expression = Expression(text)
        jet = expression.enclosure(exact)
    except ValueError:
        assume(False)
    at = sympy.Rational(exact.numerator, exact.denominator)
    symbolic = expression.symbolic(X)
    for order, interval in enumerate(parts(jet)):
        value = sympy.N(symbolic.diff(X, order).subs(X, at), 80)
        assume(value.is_Float or value == 0)  # SymPy may write a real with I
        # SymPy's 80 digits, to within the last few of them.
        room = abs(value) * sympy.Float("1e-75", 80)
        low, high = (sympy.Float(to_str(end, 70), 80) for end in interval._mpi_)
        assert low - room <= value <= high + room


@settings(max_examples=50)
@given(EXPRESSIONS)
def test_enclosures_over_a_stretch_hold_those_of_its_points(text):
    ends = Fraction(1, 4), Fraction(3, 8)
    try:
        expression = Expression(text)
        over = expression.enclosure(*ends)
    except ValueError:
        assume(False)
    for exact in (*ends, Fraction(1, 3)):
        for whole, part in zip(parts(over), parts(expression.enclosure(exact))):
            assert part in whole


SMOOTH = [
    *("x", "2", "-x*log(x)", "(x**0.5 - x)/0.5", "1 - (1 - x)**7", "x**3*x**-2"),
    *("1/(1 + x)**2.5", "exp(-sqrt(x))/2 - 2/x", "log(x/(1 - x))", "sqrt(0) + x**1"),
]


@pytest.mark.parametrize("text", SMOOTH)
def test_numpys_derivatives_are_those_of_jax(text):
    x = np.linspace(0.05, 0.95, 12).reshape(3, 4)
    expression = Expression(text)
    jet = expression.jet(x)
    for part, h in zip(
        parts(jet), (expression, jax.grad(expression), jax.grad(jax.grad(expression)))
    ):
        expected = jax.vmap(jax.vmap(h))(x)
        assert part.shape == x.shape
        # Sums of a few terms, at most about 1e4 in size.
        np.testing.assert_allclose(part, expected, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(expression.value(x), jet.value, rtol=1e-14)


def test_outside_the_domain_the_value_is_not_finite():
    for text in ("log(x - 0.5)", "sqrt(x - 0.5)", "1/(x - 0.25)"):
        assert not np.isfinite(Expression(text).jet(np.array([0.25])).value).any()
        with pytest.raises(ValueError, match=r"bounded|negative"):
            Expression(text).enclosure(Fraction(1, 4))
