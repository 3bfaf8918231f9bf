"""Text becomes a formula or one clear error, and is never run."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models import EXPRESSIONS
from mpmath import iv
from mpmath.libmp import ComplexResult

from qdtheory.formulas.expressions import Expression
from qdtheory.pairs.base import SeparablePair
from qdtheory.pairs.named import CR_NRR, LL_SE

X = sympy.Symbol("x", positive=True)


# --- what is read, and as what --------------------------------------------------

GOOD = {
    "x": X,
    " - x * log( x ) ": -X * sympy.log(X),
    "+x--x": 2 * X,
    "-x**2": -(X**2),
    "x**-2": X**-2,
    "x**(1/3)": X ** sympy.Rational(1, 3),
    "x**(2 - 1.5)": sympy.sqrt(X),
    "(x**2)**0.5": X,
    "exp(-sqrt(x))/2": sympy.exp(-sympy.sqrt(X)) / 2,
    "0.1": sympy.Rational(1, 10),
    ".5 + 2. + 1e-3 + 1E+2": sympy.Rational(102501, 1000),
    "1000000*x**32": 10**6 * X**32,
    "007.5": sympy.Rational(15, 2),
    "((((((((((x))))))))))": X,
    "2**0.5": sympy.sqrt(2),
    "2**2**2**2": sympy.Integer(2) ** 16,
    "x/0.3": X * sympy.Rational(10, 3),
    "+".join(["x"] * 40): 40 * X,
    "1e-30*x": X / 10**30,
    # What is computed from numbers alone is exact.
    "x*sqrt(0.1 + 0.2 - 0.3)": sympy.Integer(0),
    "log(2/2) + exp(1 - 1) - sqrt(4/2**2)": sympy.Integer(0),
    "x*(1/3)*3": X,
    "(-2)**3/0.1": sympy.Integer(-80),
}
BAD = {
    "": "'' is not an expression; use x, numbers, log, exp, sqrt, + - * / **",
    "x +": "'x +' is not an expression",
    "(" * 150 + "x" + ")" * 40: "is not an expression",
    # Python warns of these, which tests make an error.
    "1if x else 2": "1if x else 2 is not allowed",
    r"'\d'": r"'\d' is not allowed",
    "1(x)": "1(x) is not allowed",
    "x is 1": "x is 1 is not allowed",
    "__import__('os')": (
        "__import__('os') is not allowed in an expression; use x, numbers, log, exp, "
        "sqrt, + - * / ** and parentheses"
    ),
    "().__class__": "().__class__ is not allowed",
    "lambda: x": "lambda: x is not allowed",
    "x < 1": "x < 1 is not allowed",
    "x^2": "x^2 is not allowed",
    "~x": "~x is not allowed",
    "y": "y is not allowed",
    "log": "log is not allowed",
    "x(2)": "x(2) is not allowed",
    "-x(1 - x)": "x(1 - x) is not allowed",
    "sin(x)": "sin(x) is not allowed",
    "log(x, 2)": "log(x, 2) is not allowed",
    "log(*x)": "*x is not allowed",
    "log(x=x)": "log(x=x) is not allowed",
    "'x'": "'x' is not allowed",
    "True": "True is not allowed",
    "1j": "1j is not allowed",
    "1_000": "1_000 is not allowed",
    "1e999": "1e999 is not allowed",
    "0e-99999999": "0e-99999999 is not allowed",
    "1000001": "numbers are at most 1000000, got 1000001",
    "1e99": "numbers are at most 1000000, got 1e99",
    "x**33": "powers are at most 32, multiplied where they are nested, got 33",
    "x**-33": "powers are at most 32",
    "((x + 1)**6 + 1)**6": "powers are at most 32, multiplied where they are nested",
    "x**x": "an exponent is a number such as 2, -1, 0.5 or (1/3)",
    "x**sqrt(2)": "an exponent is a number",
    "x**0.33333": "with a denominator of at most 1000, got 0.33333",
    "x**(1/0)": "1/0 is not a finite real number",
    "x*log(-1)": "log(-1) is not a finite real number",
    "log(0)*x": "log(0) is not a finite real number",
    "x + 0**-1": "0**-1 is not a finite real number",
    "(-8)**(1/3)": "(-8)**(1/3) is not a finite real number",
    "exp(710)": "exp(710) is not a finite real number",
    "exp(exp(exp(x*0 + exp(exp(9)))))": "exp(exp(9)) is not a finite real number",
    "x # a comment": "a character of 'x # a comment' is not allowed",
    "x\0": r"a character of 'x\x00' is not allowed",
    "x\n": r"a character of 'x\n' is not allowed",
    "\uff58": r"a character of '\uff58' is not allowed",  # Python reads it as x
    "\udc80": r"a character of '\udc80' is not allowed",
    "x" * 201: "an expression has at most 200 characters, got 201",
    "-" * 80 + "x": "an expression has at most 80 terms, got 81",
    "+".join(["x"] * 41): "an expression has at most 80 terms, got 81",
}


@pytest.mark.parametrize("text", GOOD)
def test_good_text_is_read_as_python_would(text):
    expression = Expression(text)
    assert sympy.simplify(expression.symbolic(X) - GOOD[text]) == 0
    expected = float(GOOD[text].subs(X, 0.25))
    assert float(expression(0.25)) == pytest.approx(expected, rel=1e-15, abs=0)


# What is said after the words of the allow-list.
HINTS = {
    "x^2": "a power is x**2",
    "x\u00b2": "a power is x**2",
    "ln(x)": "the natural logarithm is log(x)",
    "log2(x)": "log(x)/log(2) is the logarithm to base 2",
    "2x": "a product is 2*x",
    "1(x)": "a product is 2*x",
    "X": "the variable is x",
    "x*pi": "pi is 3.141592653589793",
    "e**x": "e is exp(1)",
}


@pytest.mark.parametrize("text", BAD | HINTS)
def test_bad_text_gets_one_clear_line(text):
    with pytest.raises(ValueError, match=r"\A[ -~]+\Z") as caught:
        Expression(text)
    assert BAD.get(text, "use x, numbers, log") in str(caught.value)
    hint = f"; {HINTS[text]}" if text in HINTS else ""
    assert str(caught.value).partition("and parentheses")[2] == hint


@pytest.mark.parametrize("value", [None, 2, b"x", ["x"]])
def test_only_strings_are_read(as_a_user, value):
    with pytest.raises(TypeError, match="an expression is a string, got a"):
        Expression(value)


# --- what it computes ------------------------------------------------------------


def test_whole_exponents_and_long_numbers_are_left_as_they_are_written():
    # An exponent read as a float would make the derivative at 0 NaN.
    assert float(jax.grad(jax.grad(Expression("x**2")))(0.0)) == 2
    # A number of thousands of digits is not computed.
    assert np.isfinite(Expression("x + (7**32)**1*(1/3**32)**1/9**32")(0.5))


def test_a_constant_has_the_shape_of_x():
    constant = Expression("3*log(2)")
    assert constant(np.zeros((2, 3))).shape == (2, 3)
    assert constant(np.zeros((2, 3))).dtype == jnp.float64
    assert float(jax.grad(constant)(0.5)) == 0
    assert Expression("x")(1).dtype == jnp.float64


def test_expressions_make_pairs():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    for f, g, pair in (("log(x)", "-x*log(x)", LL_SE), ("x", "-x**2", CR_NRR)):
        ours = SeparablePair(Expression(f), Expression(g))
        assert ours.name == f"f = {f}, g = {g}"
        assert hash(ours) == hash(SeparablePair(Expression(f), Expression(g)))
        np.testing.assert_allclose(ours.quality(q, p), pair.quality(q, p), rtol=1e-15)
        np.testing.assert_allclose(ours.diversity(q), pair.diversity(q), rtol=1e-15)
    # NaN at 0 is read as the limit.
    point = SeparablePair(Expression("log(x)"), Expression("-x*log(x)"))
    assert float(point.diversity(np.array([1.0, 0.0]))) == pytest.approx(0, abs=1e-300)


# --- drawn expressions -----------------------------------------------------------

FLOATS = {"log": math.log, "exp": math.exp, "sqrt": math.sqrt}
INTERVALS = {"log": iv.log, "exp": iv.exp, "sqrt": iv.sqrt, "mpf": iv.mpf}


@settings(max_examples=3 * settings.default.max_examples)
@given(EXPRESSIONS, st.sampled_from([0.0625, 0.25, 0.5, 0.875]))
def test_drawn_expressions_have_pythons_and_sympys_value(text, x):
    """All lie in the interval that arithmetic with 40 bits leaves."""
    try:
        expression = Expression(text)
    except ValueError:  # a constant that is not finite, nested powers beyond 32
        assume(False)
    iv.prec = 40
    try:
        value = eval(text, {"x": x, **FLOATS})
        numbers_as_intervals = re.sub(r"[\d.]+(e\d)?", r"mpf('\g<0>')", text)
        interval = eval(numbers_as_intervals, {"x": iv.mpf(x), **INTERVALS})
        low, high = float(interval.a), float(interval.b)
    except (ZeroDivisionError, ComplexResult, ValueError, TypeError, OverflowError):
        assume(False)
    # A narrow one, or the test would be empty.
    assume(not isinstance(value, complex))
    assume(high - low <= 1e-6 * abs(high) and abs(high) < 1e300)
    assert low <= value <= high
    assert low <= float(expression(x)) <= high
    assert low <= float(expression.symbolic(X).subs(X, sympy.Rational(x))) <= high
