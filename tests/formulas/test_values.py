"""Values, derivatives, balls and limits of formulas against mpmath and SymPy."""

import math
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy
from flint import arb, ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models import EXPRESSIONS
from mpmath import iv
from mpmath.libmp import ComplexResult

from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.numerics import limits, numerics
from qdtheory.formulas.trees import ball, balls, simplified, written

X = sympy.Symbol("x", positive=True)
AS_WRITTEN = ["x", "2", "-x**2", "-x*log(x)", "x**1.5 - x", "x*(1 - x)"]
ACCURATE = [
    *(*AS_WRITTEN, "(x**0.5 - x)/0.5", "x**3*x**-2", "1/(1 + x)**2.5", "x**(1/3)"),
    *("exp(-sqrt(x))/2 - 2/x", "log(x/(1 - x))", "sqrt(0) + x**1", "x - (x - 1)"),
    *("2/(3/x)", "-(x + 1)**2", "exp(-x**2)*sqrt(1 + x)", "1e-7*x - 3", "x/3*4"),
    # Evaluated as SymPy simplifies it: as written 64 bits cancel or overflow.
    *("x*log(1/x)", "-x*log(x**2)/2", "-x**3/x", "log(1 + (x - 1))"),
]
CANCELLING = ["1 - (1 - x)**30", "log(1 + x)", "exp(-1/x)"]
POINTS = np.r_[10.0 ** -np.arange(3, 100, 12), 0.01, 0.3, 0.5, 0.77, 0.999999]


def by_mpmath(text, x):
    """The value and three derivatives, of the text as Python reads it."""
    known = {"log": mpmath.log, "exp": mpmath.exp, "sqrt": mpmath.sqrt}
    with mpmath.workdps(250):
        whole = [
            mpmath.diff(lambda t: eval(text, {"x": t, **known}), mpmath.mpf(x), n)
            for n in range(4)
        ]
        return [float(part) for part in whole]


@pytest.mark.parametrize("text", [*ACCURATE, *CANCELLING])
def test_values_and_two_derivatives_have_all_digits_in_numpy_and_jax(text):
    h, x = Expression(text), POINTS if text in ACCURATE else POINTS[-5:]
    exact = np.array([by_mpmath(text, float(point)) for point in x]).T
    # Right to the last digits of its size, or of the change that a rounding of x or of
    # 1 - x makes; near 1 also of what is usual elsewhere.
    room = np.abs(exact[:3]) + np.minimum(x, 1 - x) * np.abs(exact[1:])
    room += (x > 0.5) * np.abs(exact[:3, x > 0.05]).max(1, keepdims=True)
    assert (h.numerics.error <= 1e-12) == (text in ACCURATE)
    if text in CANCELLING:  # right to the rounding of its terms
        assert h.numerics.error == np.inf
        room = room + 1e-3 * np.maximum(1, np.abs(exact[:3]))
    jet, traced, held = h.jet(x), h, np.isfinite(exact[:3])  # in 64 bits
    for n, part in enumerate(vars(jet).values()):
        assert part.shape == x.shape
        missed = np.abs(part - exact[n])[held[n]]
        assert (missed <= 1e-12 * room[n, held[n]] + 1e-220).all()
        ours = jax.vmap(traced)(x[-5:])
        assert (np.abs(ours - part[-5:]) <= 1e-12 * room[n, -5:]).all()
        traced = jax.grad(traced)
    np.testing.assert_allclose(jax.vmap(h)(x), jet.value, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(h.value(x[None]), jet.value[None])


@pytest.mark.parametrize("text", [*ACCURATE, "1 - (1 - x)**7"])
def test_what_is_simplified_or_written_and_read_is_equal_to_77_digits(text):
    tree = Expression(text).inside
    assert (numerics(tree).tree == tree) or text not in AS_WRITTEN
    for other in (simplified(tree), Expression(written(tree)).inside):
        for k in range(1, 20, 3):
            x = ball(Fraction(k, 21))
            for a, b in zip(balls(tree, x, 2), balls(other, x, 2)):
                assert a.overlaps(b)


# --- Drawn formulas -------------------------------------------------------------------

FLOATS = {"log": math.log, "exp": math.exp, "sqrt": math.sqrt}
INTERVALS = {"log": iv.log, "exp": iv.exp, "sqrt": iv.sqrt, "number": iv.mpf}
SYMBOLS = {"log": sympy.log, "exp": sympy.exp, "sqrt": sympy.sqrt}
SYMBOLS |= {"number": sympy.Rational, "x": X}
IMPOSSIBLE = ZeroDivisionError, ComplexResult, ValueError, TypeError, OverflowError


@settings(max_examples=2 * settings.default.max_examples)
@given(EXPRESSIONS, st.sampled_from([Fraction(1, 16), Fraction(1, 2), Fraction(7, 8)]))
def test_a_drawn_formula_has_pythons_value_and_balls_around_sympys_derivatives(text, x):
    """The value lies in the interval that arithmetic with 40 bits leaves."""
    try:
        expression = Expression(text)
    except ValueError:  # a constant that is not finite, nested powers beyond 32
        assume(False)
    iv.prec, exactly = 40, re.sub(r"[\d.]+(e\d)?", r"number('\g<0>')", text)
    try:
        value = eval(text, {"x": float(x), **FLOATS})
        interval = eval(exactly, {"x": iv.mpf(float(x)), **INTERVALS})
        low, high = float(interval.a), float(interval.b)
    except IMPOSSIBLE:
        assume(False)
    # A narrow one, or the test would be empty.
    assume(not isinstance(value, complex))
    assume(high - low <= 1e-6 * abs(high) and abs(high) < 1e300)
    assert low <= value <= high
    assert low <= float(expression(float(x))) <= high
    over = expression.balls(ball(x).union(ball(x + Fraction(1, 16))), 2)
    symbolic = eval(exactly, SYMBOLS)
    for order, (part, whole) in enumerate(zip(expression.balls(ball(x), 2), over)):
        assert whole.overlaps(part) or not whole.is_finite()
        exact = sympy.N(symbolic.diff(X, order).subs(X, sympy.Rational(x)), 80)
        # SymPy may write a real with I.
        if part.is_finite() and (exact.is_Float or exact == 0):
            with ctx.workprec(300):  # to within the last few of SymPy's digits
                wide = arb(str(exact)) * arb("1 +/- 1e-75") + arb("0 +/- 1e-70")
                assert part.overlaps(wide)


# --- The ends -------------------------------------------------------------------------

SLOW_LIMITS = [
    ("x/log(x/3)", (0.0, 0.0), None),  # the slope vanishes as 1/log does
    ("1/log(log(4/x))", (np.nan, np.inf), None),  # too slow to tell
    ("log(log(3/x))/log(3/x)", (0.0, np.inf), None),
    ("x**0.001", (0.0, np.inf), (1.0, 0.001)),  # 1e-100**0.001 is 0.8
    ("1000*(x - x**1.001)", (0.0, 1000.0), (0.0, -1.0)),
    ("x**(1/999)*log(x)", (0.0, -np.inf), (0.0, 1.0)),
    ("(exp(x) - 1 - x)/x**2", (0.5, 1 / 6), None),
    ("1e-15*log(x) + 1", (-np.inf, np.inf), (1.0, 1e-15)),
]
LIMITS = [
    ("x*log(1/x)", (0.0, np.inf), (0.0, -1.0)),
    ("log(x)", (-np.inf, np.inf), (0.0, 1.0)),
    ("1/x", (np.inf, -np.inf), (1.0, -1.0)),
    ("x**3/x", (0.0, 0.0), (1.0, 2.0)),
    ("-(1 - x)*log(1 - x)", (0.0, 1.0), (0.0, -np.inf)),
    ("exp(-1/x)", (0.0, 0.0), (float(np.exp(-1)), float(np.exp(-1)))),
]


@pytest.mark.parametrize(("text", "zero", "one"), LIMITS + SLOW_LIMITS)
def test_limits_at_the_ends(text, zero, one):
    tree = Expression(text).inside
    assert limits(tree, 0) == pytest.approx(zero, rel=1e-14, abs=0, nan_ok=True)
    if one is not None:
        assert limits(tree, 1) == pytest.approx(one, rel=1e-14)
    value, slope = jax.value_and_grad(Expression(text))(0.0)
    assert np.isnan(zero[0]) or float(value) == pytest.approx(zero[0], abs=1e-90)
    if np.isfinite(zero[0]) and np.isinf(zero[1]):
        assert slope == zero[1]


def test_a_value_at_1_that_floats_lack_is_the_one_next_to_it():
    h = Expression("-(1 - x)*log(1 - x)")
    assert float(h(1.0)) == pytest.approx(0, abs=1e-14)
    assert h.jet(np.array([1.0])).slope[0] == float(jax.grad(h)(1.0)) < -30


def test_next_to_0_it_is_a_line_or_a_logarithm():
    """As the formula is there, but for terms 1e97 times smaller."""
    x = np.array([1e-150])
    line, log = (Expression(h).jet(x) for h in ("-x*log(x)", "log(x) - x*log(x)"))
    slope = -np.log(1e-100) - 1
    assert [*vars(line).values()] == [slope * x, slope, 0]
    parts = np.array([*vars(log).values()])[:, 0]
    np.testing.assert_allclose(parts, [np.log(1e-150), 1e150, -1e300], rtol=1e-9)


def test_beyond_1_and_outside_the_domain():
    assert float(Expression("1 - (1 - x)**30")(1.5)) == pytest.approx(1 - 0.5**30)
    for text in ("log(x - 0.5)", "sqrt(x - 0.5)", "1/(x - 0.25)"):
        h = Expression(text)
        assert not np.isfinite([h(0.25), *h.jet(np.array([0.25])).value]).any()
        assert not h.balls(ball(Fraction(1, 4)))[0].is_finite()
        assert (h.numerics.error == np.inf) == (text != "1/(x - 0.25)")


def test_a_constant_has_the_shape_of_x_and_whole_powers_all_derivatives():
    constant = Expression("3*log(2)")
    assert constant(np.zeros((2, 3))).shape == (2, 3)
    assert constant(np.zeros((2, 3))).dtype == Expression("x")(1).dtype == jnp.float64
    assert float(jax.grad(constant)(0.5)) == 0
    # An exponent read as a float would make the derivative at 0 NaN.
    assert float(jax.grad(jax.grad(Expression("x**2")))(0.0)) == 2
    # A number of thousands of digits is not computed.
    assert np.isfinite(Expression("x + (7**32)**1*(1/3**32)**(1)/9**32")(0.5))
