"""Text becomes a formula or one clear error, and is never run."""

import ast
import contextlib
import random
import re
from fractions import Fraction

import formula_texts
import numpy as np
import pytest
import scipy.special
import sympy

from qdtheory.formulas.expressions import SPELLINGS, Expression
from qdtheory.formulas.trees import absolute, decided, folded
from qdtheory.pairs import CR_NRR, LL_SE, SeparablePair

X = sympy.Symbol("x", positive=True)

# --- What is read, and as what --------------------------------------------------------

GOOD = {
    " - x * log( x ) ": -X * sympy.log(X),
    "+x--x": 2 * X,
    "x**(2 - 1.5)": sympy.sqrt(X),
    "exp(-sqrt(x))/2": sympy.exp(-sympy.sqrt(X)) / 2,
    ".5 + 2. + 1e-3 + 1E+2": sympy.Rational(102501, 1000),
    "1000000*x**32": 10**6 * X**32,
    "007.5": sympy.Rational(15, 2),
    "2**2**2**2": sympy.Integer(2) ** 16,
    "+".join(["x"] * 40): 40 * X,
    "1e-30*x": X / 10**30,
    # What is computed from numbers alone is exact.
    "x*sqrt(0.1 + 0.2 - 0.3)": sympy.Integer(0),
    "log(2/2) + exp(1 - 1) - sqrt(4/2**2)": sympy.Integer(0),
    "(-2)**3/0.1": sympy.Integer(-80),
}
# What first_contact.txt does not hold.
BAD = {
    "(" * 150 + "x" + ")" * 40: "is not an expression",
    "__import__('os')": "__import__ is not allowed in an expression; use x, numbers",
    "().__class__": ". is not allowed",
    "xlogx": "xlogx is not allowed in an expression; write x log(x)",
    "logx": "logx is not allowed in an expression; write log(x)",
    "f(x) = x^2": "f is not allowed in an expression; give the right side alone",
    "2-gram LL": "gram is not allowed in an expression; metrics by their names come",
    "'x": "' is not allowed",
    "007": "'007' is not an expression",
    "|x": "'|x' is not an expression",
    r"\frac12": r"\frac12 is not allowed in an expression",
    "0e-99999999": "0e-99999999 is not allowed",
    "1000001": "numbers are at most 1000000, got 1000001",
    "x**-33": "powers are at most 32, multiplied where they are nested, got 33",
    "((x + 1)**6 + 1)**6": "powers are at most 32, multiplied where they are nested",
    "x**0.142857": "denominator of at most 1000, got 0.142857; write (1/7)",
    "2 + 3j": "j is not allowed in an expression; its numbers are real ones",
    "x**(1/0)": "1/0 is not a finite real number",
    "x/0 + x": "x/0 is not a finite real number",
    "x/(1 - 1)": "x/(1 - 1) is not a finite real number",
    "log(0)*x": "log(0) is not a finite real number",
    "(-8)**(1/3)": "(-8)**(1/3) is not a finite real number",
    "exp(exp(exp(x*0 + exp(exp(9)))))": "exp(exp(9)) is not a finite real number",
    "x\0": r"\u0000 is not allowed",
    "\uff58": r"\uff58 is not allowed",  # Python reads it as x
    "\udc80": r"\udc80 is not allowed",
    "X*p": "X and p are not one variable",
    "x" * 201: "an expression has at most 200 characters, got 201",
    "+".join(["x"] * 41): "an expression has at most 80 terms",
    # Written out it has 2^26 terms.
    "logit(" * 26 + "x" + ")" * 26: "an expression has at most 80 terms",
}


@pytest.mark.parametrize("text", GOOD)
def test_good_text_is_read_as_python_would(text):
    expression = Expression(text)
    assert sympy.simplify(expression.symbolic(X) - GOOD[text]) == 0
    expected = float(GOOD[text].subs(X, 0.25))
    assert float(expression(0.25)) == pytest.approx(expected, rel=1e-15, abs=0)


@pytest.mark.parametrize("text", BAD)
def test_bad_text_gets_one_clear_line(text):
    with pytest.raises(ValueError, match=r"\A[ -~]+\Z") as caught:
        Expression(text)
    assert BAD[text] in str(caught.value)


@pytest.mark.parametrize("value", [None, 2, b"x", ["x"]])
def test_only_strings_are_read(as_a_user, value):
    with pytest.raises(TypeError, match="an expression is a string, got a"):
        Expression(value)


# --- How people write -----------------------------------------------------------------

# What the random spellings below do not hold, and what people write most.
PLAIN = {
    "log(x)": ["jax.numpy.log(x)", r"\log{x}", r"\log\left(x\right)", "log p"],
    "-x*log(x)": ["-x log x", "\u2013x ln x", "`-P log P`", r"-x\log x"],
    "x**0.5": ["x^(1/2)", r"x^\frac{1}{2}", "x^.5", "x^{1/2}"],
    "x*abs(1 - x)": ["x |1-x|", r"x\left|1-x\right|"],
    "log(x)/log(2)": ["log x / log 2", r"\log_{2} x", "log\u2082(x)", "np.log2(x)"],
    "log(x/(1 - x))": [r"\log\frac{x}{1-x}", "logit x", "ln(x/(1-x))"],
    "exp(-x**2)": ["e^-x^2", "e^{-x^2}", "e^-x\u00b2"],
    "exp(exp(x))": ["e^e^x"],
    "exp(-x*log(2))": ["2^-x", "2**(-x)"],
    "x**2*log(x)": ["x^2log x", "x\u00b2 log x"],
    "x*log(x)*log(x)": ["x log x log x"],
    "log(log(x + 1))": ["ln ln(x+1)"],
    "1e-3*x": ["1e-3x"],
    "2.*x": ["2.x"],
}
SAID = [(said, plain) for plain, said_as in PLAIN.items() for said in said_as]


def plainly(text):
    """The tree of a text of Python's, by Python's own parser; an independent reader."""

    def read(node):
        match node:
            case ast.Name("x"):
                return "x"
            case ast.Constant():
                return Fraction(ast.get_source_segment(text, node))
            case ast.UnaryOp(ast.USub(), a):
                return folded("minus", read(a))
            case ast.BinOp(a, sign, b):
                return folded(SIGNS[type(sign)], read(a), read(b))
            case ast.Call(ast.Name("abs"), [a]):
                return absolute(read(a))
            case ast.Call(ast.Name(name), [a]):
                return folded(name, read(a))

    return read(ast.parse(text, mode="eval").body)


SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


@pytest.mark.parametrize(("said", "plain"), SAID)
def test_a_spelling_becomes_the_tree_of_its_plain_form(said, plain):
    assert Expression(said)._tree == plainly(plain)


AMBIGUOUS = {
    "log x^2": ("log(x)**2", "log(x**2)"),
    "\u221ax\u00b2": ("sqrt(x)**2", "sqrt(x**2)"),
    "log^2 x": ("log(x)**2", "log(log(x))"),
    r"\log{x}^2": ("log(x)**2", "log(x**2)"),
    "log x (1 - x)": ("log(x)*(1 - x)", "log(x*(1 - x))"),
    "exp -2x": ("exp(-2)*x", "exp(-2*x)"),
    "x log x / 2": ("log(x)/2", "log(x/2)"),
    "log log x x": ("log(log(x))*x", "log(log(x)*x)"),
    "1/2x": ("(1/2)*x", "1/(2*x)"),
    "x^2/2(1 - x)": ("(x**2/2)*(1 - x)", "x**2/(2*(1 - x))"),
    "x^2x": ("(x**2)*x", "x**(2*x)"),
    "e^x x": ("(e**x)*x", "e**(x*x)"),
    "e^2 log x": ("(e**2)*log(x)", "e**(2*log(x))"),
    "e^-x/2": ("(e**-x)/2", "e**(-x/2)"),
    "e^-x\u00b2 x": ("(e**-x**2)*x", "e**(-x**2*x)"),
    "x^1/2": ("(x**1)/2", "x**(1/2)"),
    "x\u00b2^3": ("(x**2)**3", "x**(2**3)"),
    "x 2": ("x*2", "x**2"),
}
# Readings that are no formula here: an exponent of x is a number.
NO_FORMULA = {"x**(2*x)"}


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_where_readers_differ_both_readings_are_shown(text):
    assert readings_of(text) == AMBIGUOUS[text]
    both = {*AMBIGUOUS[text]} - NO_FORMULA
    assert len({Expression(one)._tree for one in both}) == len(both)


def readings_of(text):
    """The plain forms that a text is refused for."""
    said = str(tree_or_refusal(text))
    found = re.search(r" is ambiguous; write (.*) or (.*)", said)
    return found.groups() if found else ()


def test_spaces_may_decide_whether_a_text_is_read_but_never_how():
    rng, read = random.Random(8), 0
    for _ in range(300):
        text, _ = formula_texts.spelled(rng)
        spaced = re.sub(r"(?<=[\^*/+()|{}x])(?=[-+*/()|{}x])(?<!\*(?=\*))", " ", text)
        with contextlib.suppress(ValueError):
            assert Expression(spaced)._tree == Expression(text)._tree
            read += 1
    assert read > 200


def tree_or_refusal(text):
    try:
        return Expression(text)._tree
    except ValueError as error:
        return str(error)


def test_a_random_tree_is_read_from_a_random_spelling():
    rng, read, count = random.Random(0), 0, 500
    for _ in range(count):
        text, tree = formula_texts.spelled(rng, rng.choice([1, 2, 3, 3, 4]))
        found = tree_or_refusal(text)
        read += found == tree
        # The writer minds precedence, not limits.
        assert found == tree or re.search("is not a finite real|at most", found), text
    assert read > 0.9 * count


@pytest.mark.parametrize("name", SPELLINGS["functions"])
def test_a_named_function_is_that_of_numpy_or_scipy(name):
    of_scipy = {"logit": "logit", "logistic": "expit"}
    others = {"rsqrt": lambda x: x**-0.5, "atanh": np.arctanh}
    others |= {key: getattr(scipy.special, of) for key, of in of_scipy.items()}
    function, x = others.get(name) or getattr(np, name), np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(Expression(f"{name}(x)").value(x), function(x), 1e-14)


# --- What a formula is ----------------------------------------------------------------


def test_two_expressions_are_equal_if_their_texts_are():
    assert Expression("x^2") == Expression("x^2")
    assert Expression("x^2") != Expression("x**2")


def test_another_letter_has_the_same_spellings_and_is_the_only_one():
    for text in ("logit(D)", "logit(d)", r"\log\frac{D}{1-D}"):
        assert Expression(text, "D")._tree == plainly("log(x/(1 - x))")
    for text in ("x", "p", "log(D)/u"):
        with pytest.raises(ValueError, match="in an expression; use D, numbers"):
            Expression(text, "D")


def test_an_absolute_value_of_one_sign_is_smooth_and_a_kink_is_not():
    for text in ("|log x|", "|x log x|", "|1 - x|", "|x - 2|", "||x| - 1|"):
        assert Expression(text).is_smooth
    kinked = Expression("|x - 1/2|")
    assert not kinked.is_smooth
    assert kinked(np.array([0.25, 0.75])).tolist() == [0.25, 0.25]


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


def test_choices_of_products_are_decided_by_both_signs():
    log = ("log", "x")
    for product, chosen in ((("*", log, log), log), (("*", log, "x"), "x")):
        below = ("<", product, Fraction(0))
        assert decided(("where", below, "x", log)) == chosen


def test_a_power_below_0_or_of_a_root_guards_its_base():
    x = sympy.Symbol("x")
    for power, guards in (("-2", [(x, False)]), ("2", []), ("(1/2)", [(x, True)])):
        assert Expression(f"x**{power}").guards(x) == guards
