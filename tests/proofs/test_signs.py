"""Signs on all of (0, 1), against signs by SymPy in many digits."""

from fractions import Fraction
from itertools import combinations, product
from math import inf

import pytest
import sympy
from flint import arb

import qdtheory as qd
from qdtheory.proofs.signs import (
    INTERVALS,
    find_peak,
    find_sign,
    is_zero,
    number_sign,
    sign_of,
)

X = sympy.Symbol("x", positive=True)


def slope(text):
    return qd.Expression(text).symbolic(X).diff(X)


INCREASING = [
    "log(x/(1 - x))",
    "(x - 0.5)**3",
    "1 - (1 - x)**32",
    "x - x**2 + x**3/3",  # f' = (1 - x)**2 by terms that cancel
    "exp(x) - x",  # f'(0) = 0
    "exp(-1/x)",  # f' has no leading power at 0
    "-1/log(x)",
    "sqrt(x) + sqrt(1 + sqrt(x))",
    "x + 1e-12*exp(-((x - .70037)/1e-9)**2)",  # f' >= .999
    "-x**-2 + 1e-60*x",
    "x + 0.1*log(x)*x**2",
]
FALLING = [
    ("x - 1.0000001*x**2/2", 1.0),
    ("x - 20*(x - 0.6205)/(1 + ((x - 0.6205)*10000)**2)**2", 0.6205),
    ("x + 1e-8*exp(-((x - .70037)/1e-9)**2)", 0.70037),
    ("1.8*x - x**2", 0.95),
    ("log(x) - 1.001*x", 0.9995),
]


@pytest.mark.parametrize("f", INCREASING)
def test_slopes_that_are_nowhere_negative(f):
    found = sign_of(slope(f), X)
    assert found.value == 1
    assert find_sign(slope(f), X, -1) is None
    # Strict where f' has no zero, here all but the cube.
    assert found.strict == (f != "(x - 0.5)**3")


@pytest.mark.parametrize(("f", "near"), FALLING)
def test_slopes_that_are_negative_somewhere(f, near):
    assert sign_of(slope(f), X).value is None
    place = find_sign(slope(f), X, -1)
    assert float(place) == pytest.approx(near, abs=0.05)
    there = sympy.Rational(place.numerator, place.denominator)
    assert sympy.N(slope(f).subs(X, there), 60) < 0


UNBOUNDED = {
    "log(x)*exp(-1/x) - 1": -1,  # 0 times infinity at 0
    "log(x)**3*exp(-1/x) + log(x)": -1,
    "log(x)*exp(-1/x) + 1/100": None,  # negative at 1/e
    "-1/log(x) - 1/1000": None,  # negative below exp(-1000) only
    "x**(1/1000) - 1/2": None,
    "(x - 1/3)**(-2)": None,  # a pole
}


@pytest.mark.parametrize(("h", "sign"), UNBOUNDED.items())
def test_ends_without_finite_bounds(h, sign):
    formula = sympy.sympify(h, locals={"x": X})
    assert sign_of(formula, X).value == sign
    for k in range(1, 200) if sign else ():
        assert sympy.N(formula.subs(X, sympy.Rational(k, 200)), 50) * sign > 0


def test_intervals_hold_what_their_points_give():
    pieces = list(combinations([-inf, -2, -0.5, 0, 0.5, 4, inf], 2))
    for x, y in product([-(2.0**30), -2, -0.25, 0, 0.5, 4, 2.0**30], repeat=2):
        around = [[(arb(a), arb(b)) for a, b in pieces if a <= z <= b] for z in (x, y)]
        for a, b in product(*around):
            found = [(INTERVALS["+"](a, b), x + y), (INTERVALS["*"](a, b), x * y)]
            found += [(INTERVALS["**"](a, n), x**n) for n in (-3, -2, 2, 3) if x]
            assert all(low <= exact <= high for (low, high), exact in found)
    # No bound at all is refused: infinity less infinity, 1 / 0, a negative logarithm.
    zero, infinite, low = ((arb(x), arb(x)) for x in (0, inf, -inf))
    for name, *operands in ("+", infinite, low), ("**", zero, -1), ("log", low):
        with pytest.raises(ValueError, match=r"no enclosure|negative number"):
            INTERVALS[name](*operands)


def test_zeros_and_numbers():
    assert sign_of((X + 1) ** 2 - X**2 - 2 * X - 1, X).value == 0
    assert sign_of(-X, X).value == -1
    assert number_sign(sympy.Rational(-1, 10**70)) == -1
    assert number_sign(sympy.log(4) - 2 * sympy.log(2)) == 0
    assert number_sign(sympy.oo) is None
    assert number_sign(sympy.log(0)) is None
    assert not is_zero(X - sympy.Rational(1, 10**60))


@pytest.mark.parametrize("width", [10**3, 10**6, 10**9])
@pytest.mark.parametrize("place", ["1/7", "1/2", "9/11"])
def test_peaks_are_found_at_any_width(width, place):
    place = sympy.Rational(place)
    bell = sympy.exp(-((width * (X - place)) ** 2)) / 1000
    found = find_peak(bell, X)[0]
    assert abs(found - Fraction(int(place.p), int(place.q))) < Fraction(2, width)
