"""Text becomes a formula or one clear error, and is never run."""

import math
import re
import warnings
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import iv
from mpmath.libmp import ComplexResult, to_str

from qdtheory.pairs.formulas import Expression
from qdtheory.pairs.named import CR_NRR, LL_SE, single_token_bleu_pair
from qdtheory.pairs.scalar_functions import (
    DIVERSITIES,
    QUALITIES,
    SE,
    Tsallis,
    formula_of,
    jet_of,
)
from qdtheory.pairs.separable import SeparablePair

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
    "x/0.3": X * sympy.Rational(10, 3),
    "+".join(["x"] * 40): 40 * X,
}
BAD = {
    "": "'' is not an expression; use x, numbers, log, exp, sqrt, + - * / **",
    "x +": "'x +' is not an expression",
    "x y": "'x y' is not an expression",
    "2x": "'2x' is not an expression",
    "(" * 150 + "x" + ")" * 40: "is not an expression",
    "x; x": "'x; x' is not an expression",
    "x = 1": "'x = 1' is not an expression",
    "1if x else 2": "1if x else 2 is not allowed",
    "__import__('os')": (
        "__import__('os') is not allowed in an expression; use x, numbers, log, exp, "
        "sqrt, + - * / ** and parentheses"
    ),
    "x.real": "x.real is not allowed",
    "().__class__": "().__class__ is not allowed",
    "[x]": "[x] is not allowed",
    "lambda: x": "lambda: x is not allowed",
    "(x := 1)": "x := 1 is not allowed",
    "x if x else x": "x if x else x is not allowed",
    "x < 1": "x < 1 is not allowed",
    "x^2": "x^2 is not allowed",
    "x % 2": "x % 2 is not allowed",
    "x // 2": "x // 2 is not allowed",
    "~x": "~x is not allowed",
    "not x": "not x is not allowed",
    "y": "y is not allowed",
    "X": "X is not allowed",
    "log": "log is not allowed",
    "x(2)": "x(2) is not allowed",
    "sin(x)": "sin(x) is not allowed",
    "log(x, 2)": "log(x, 2) is not allowed",
    "log()": "log() is not allowed",
    "log(*x)": "*x is not allowed",
    "log(x=x)": "log(x=x) is not allowed",
    "log(log)": "log is not allowed",
    "'x'": "'x' is not allowed",
    "f'{x}'": "f'{x}' is not allowed",
    "True": "True is not allowed",
    "None": "None is not allowed",
    "...": "... is not allowed",
    "1j": "1j is not allowed",
    "0x10": "0x10 is not allowed",
    "1_000": "1_000 is not allowed",
    "1e999": "1e999 is not allowed",
    "0e-99999999": "0e-99999999 is not allowed",
    "1000001": "numbers are at most 1000000, got 1000001",
    "1e99": "numbers are at most 1000000, got 1e99",
    "1" + "0" * 150: "numbers are at most 1000000",
    "x**33": "powers are at most 32, multiplied where they are nested, got 33",
    "x**-33": "powers are at most 32",
    "((x + 1)**6 + 1)**6": "powers are at most 32, multiplied where they are nested",
    "x**x": "an exponent is a number such as 2, -1, 0.5 or (1/3)",
    "2**x": "an exponent is a number",
    "2**-x**2": "an exponent is a number",
    "x**sqrt(2)": "an exponent is a number",
    "2**2**2**2": "an exponent is a number",
    "x**0.33333": "with a denominator of at most 1000, got 0.33333",
    "x**(1/0)": "1/0 is not a finite real number",
    "x*log(-1)": "log(-1) is not a finite real number",
    "log(0)*x": "log(0) is not a finite real number",
    "sqrt(-2)": "sqrt(-2) is not a finite real number",
    "x + 0**-1": "0**-1 is not a finite real number",
    "(-8)**(1/3)": "(-8)**(1/3) is not a finite real number",
    "exp(710)": "exp(710) is not a finite real number",
    "exp(exp(exp(x*0 + exp(exp(9)))))": "exp(exp(9)) is not a finite real number",
    "x # a comment": "a character of 'x # a comment' is not allowed",
    "x\0": r"a character of 'x\x00' is not allowed",
    "x\n": r"a character of 'x\n' is not allowed",
    "\x1b[31mx": r"a character of '\x1b[31mx' is not allowed",
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
    assert float(expression(0.25)) == pytest.approx(
        float(GOOD[text].subs(X, 0.25)), rel=1e-15
    )


@pytest.mark.parametrize("text", BAD)
def test_bad_text_gets_one_clear_line(text):
    with pytest.raises(ValueError, match=r"\A[ -~]+\Z") as caught:
        Expression(text)
    assert BAD[text] in str(caught.value)


@pytest.mark.parametrize("value", [None, 2, b"x", ["x"]])
def test_only_strings_are_read(as_a_user, value):
    with pytest.raises(TypeError, match="an expression is a string, got a"):
        Expression(value)


def test_python_warns_of_nothing_it_reads():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in ("1if x else 2", r"'\d'", "1(x)", "x is 1"):
            with pytest.raises(ValueError, match="not allowed"):
                Expression(text)
    assert caught == []


# --- what it computes ------------------------------------------------------------


def test_numbers_are_exact():
    third = Expression("0.1 + 0.2 - 0.3").symbolic(X)
    assert third == 0
    assert Expression("1e-30*x").symbolic(X) == X / 10**30
    assert Fraction(1, 3) == Expression("x**(1/3)").symbolic(X).exp


def test_jax_differentiates_maps_and_compiles():
    f = Expression("x**1.5*log(x) + exp(-2*x)/sqrt(1 + x)")
    formula = sympy.diff(f.symbolic(X), X, 2)
    x = np.linspace(0.05, 1, 20)
    bend = jax.jit(jax.vmap(jax.grad(jax.grad(f))))(x)
    exact = [float(formula.subs(X, value)) for value in x]
    # A dozen operations on numbers of size 1.
    np.testing.assert_allclose(bend, exact, rtol=1e-13, atol=1e-13)
    # An exponent read as a float would make the derivative at 0 NaN.
    assert float(jax.grad(jax.grad(Expression("x**2")))(0.0)) == 2


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
        assert ours.name == f"{f}-{g}"
        assert hash(ours) == hash(SeparablePair(Expression(f), Expression(g)))
        np.testing.assert_allclose(ours.quality(q, p), pair.quality(q, p), rtol=1e-15)
        np.testing.assert_allclose(ours.diversity(q), pair.diversity(q), rtol=1e-15)
    # NaN at 0 is read as the limit.
    point = SeparablePair(Expression("log(x)"), Expression("-x*log(x)"))
    assert float(point.diversity(np.array([1.0, 0.0]))) == pytest.approx(0, abs=1e-300)


# --- drawn expressions -----------------------------------------------------------

# Dyadic numbers, which floating point holds exactly.
LEAVES = st.sampled_from(["x", "x", "1", "2", "0.5", ".25", "3.0", "1.5e1"])
EXPONENTS = st.sampled_from(["2", "-1", "0.5", "(1/3)", "-2.5", "3"])


def compound(parts):
    return st.one_of(
        st.tuples(parts, st.sampled_from("+-*/"), parts).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        st.tuples(st.sampled_from(["log", "exp", "sqrt", "-", "+"]), parts).map(
            "{0[0]}({0[1]})".format
        ),
        st.tuples(parts, EXPONENTS).map("({0[0]})**{0[1]}".format),
    )


EXPRESSIONS = st.recursive(LEAVES, compound, max_leaves=8)
FLOATS = {"log": math.log, "exp": math.exp, "sqrt": math.sqrt}
INTERVALS = {"log": iv.log, "exp": iv.exp, "sqrt": iv.sqrt, "mpf": iv.mpf}


@settings(max_examples=300)
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


# --- derivatives without JAX ----------------------------------------------------


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


NAMED = [*QUALITIES.values(), *DIVERSITIES.values(), Tsallis(0.5), Tsallis(1.7)]
NAMED += [
    h
    for pair in (single_token_bleu_pair(1, 2), single_token_bleu_pair(32, 9))
    for h in (pair.f, pair.g)
]


@pytest.mark.parametrize("h", NAMED)
def test_formulas_of_named_functions_are_their_code(h):
    formula = formula_of(h)
    x = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(formula.value(x), jax.vmap(h)(x), rtol=1e-13)
    for exact, code in zip(parts(jet_of(h, x)), parts(jet_of(lambda x: h(x), x))):
        np.testing.assert_allclose(exact, code, rtol=1e-10, atol=1e-12)


def test_formulas_that_are_not_known():
    for h in (jnp.log, Tsallis(1 / 3), single_token_bleu_pair(33, 1).f):
        assert formula_of(h) is None
    # JAX copies the attributes of a function to its derivative.
    for h in (SE, Tsallis(1.7), single_token_bleu_pair(1, 2).g, Expression("x")):
        assert formula_of(jax.grad(h)) is None
    expression = Expression("x")
    assert formula_of(expression) is expression
