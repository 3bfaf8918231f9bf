"""Signs on all of (0, 1), holes and concavity: by SymPy's digits and by Sturm."""

from fractions import Fraction
from itertools import combinations, product
from math import inf

import numpy as np
import pytest
import sympy
from flint import arb

import qdtheory as qd
from qdtheory.functions import as_function
from qdtheory.proofs.shape import find_hole
from qdtheory.proofs.signs import (
    INTERVALS,
    find_peak,
    find_sign,
    is_zero,
    number_sign,
    sign_of,
)

X = sympy.Symbol("x", positive=True)


# f' cancels to (1 - x)**2; vanishes at 0; has no leading power there; is >= .999; and
# others. Then those that fall, and where.
RISING = [
    *("x - x**2 + x**3/3", "exp(x) - x", "exp(-1/x)", "-1/log(x)", "log(x/(1 - x))"),
    *("x + 1e-12*exp(-((x - .70037)/1e-9)**2)", "sqrt(x) + sqrt(1 + sqrt(x))"),
    *("-x**-2 + 1e-60*x", "x + 0.1*log(x)*x**2", "1 - (1 - x)**32"),
]
SLOPES = dict.fromkeys(RISING) | {
    "x - 1.0000001*x**2/2": 1.0,
    "x - 20*(x - 0.6205)/(1 + ((x - 0.6205)*10000)**2)**2": 0.6205,
    "x + 1e-8*exp(-((x - .70037)/1e-9)**2)": 0.70037,
    "log(x) - 1.001*x": 0.9995,
}


@pytest.mark.parametrize(("f", "near"), SLOPES.items())
def test_a_slope_is_nowhere_negative_or_there(f, near):
    slope = qd.Expression(f).symbolic(X).diff(X)
    found, place = sign_of(slope, X), find_sign(slope, X, -1)
    assert (found.value, found.strict) == ((1, True) if near is None else (None, False))
    assert (place is None) == (near is None)
    if place is not None:
        assert float(place) == pytest.approx(near, abs=0.05)
        assert sympy.N(slope.subs(X, sympy.Rational(place)), 60) < 0


def test_a_polynomial_has_the_sign_that_sturm_gives():
    rng, signs = np.random.default_rng(0), []
    for _ in range(60):
        roots = rng.integers(-9, 24, rng.integers(1, 4)).tolist()
        h = sympy.prod(X - sympy.Rational(root, 12) for root in roots)
        h = int(rng.choice([-1, 1])) * h + int(rng.choice([0, 0, 1]))
        places = [z for z in sympy.Poly(h, X).real_roots() if 0 < z < 1]
        # Roots of even multiplicity change no sign.
        constant = not any(places.count(z) % 2 for z in places)
        middle = int(sympy.sign(h.subs(X, sympy.Rational(317, 1000))))
        sign = middle if constant else None
        found = sign_of(h, X)
        assert (found.value, found.strict) == (sign, constant and not places)
        signs.append(sign)
    assert min(map(signs.count, (None, 1, -1))) > 5


UNBOUNDED = {
    "log(x)*exp(-1/x) - 1": -1,  # 0 times infinity at 0
    "log(x)*exp(-1/x) + 1/100": None,  # negative at 1/e
    "-1/log(x) - 1/1000": None,  # negative below exp(-1000) only
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
    assert number_sign(sympy.Rational(-1, 10**70)) == -1
    assert number_sign(sympy.log(4) - 2 * sympy.log(2)) == 0
    assert number_sign(sympy.oo) is number_sign(sympy.log(0)) is None
    assert not is_zero(X - sympy.Rational(1, 10**60))


@pytest.mark.parametrize("width", [10**3, 10**6, 10**9])
@pytest.mark.parametrize("place", [Fraction(1, 7), Fraction(1, 2), Fraction(9, 11)])
def test_peaks_are_found_at_any_width(width, place):
    bell = sympy.exp(-((width * (X - sympy.Rational(place))) ** 2)) / 1000
    assert abs(find_peak(bell, X)[0] - place) < Fraction(2, width)


# Holes, and where; of a corner no sign shows the place.
HOLES = {
    **{"log(x - 1e-7)": 0, "-log(.9995 - x)": 1, "1/(x - 0.3333)": 0.3333},
    **{"x + log(x - 0.5) - log(x - 0.5)": 0.25, "log(log(x))": 0.5},
    **{"sqrt((x - 0.5)**2)": None, "log((x - 0.3)**2)": None},
}


@pytest.mark.parametrize(("h", "near"), HOLES.items())
def test_holes_in_the_domain(h, near):
    proved, place = find_hole(qd.Expression(h))
    assert not proved
    expected = near if near is None else pytest.approx(near, abs=1e-3)
    assert (place and float(place)) == expected


@pytest.mark.parametrize("h", ["log(x/(1 - x))", "log(1 + x*log(x))", "1/log(x)"])
def test_formulas_without_a_hole(h):
    assert find_hole(qd.Expression(h)) == (True, None)


CONCAVE_UP_TO = {
    qd.functions.SE: 1.0,
    qd.Tsallis(1 / 3): 1.0,
    **{qd.pairs.single_token_bleu_pair(1, k).g: 2 / (k + 1) for k in (1, 4, 1000)},
    qd.Expression("-(x - 1/3)**4"): 1.0,
    qd.Expression("x**3 - 2*x**2"): 2 / 3,
}


@pytest.mark.parametrize("g", CONCAVE_UP_TO)
def test_g_is_proved_concave_up_to_its_inflection_and_to_no_other_point(g):
    inflection, formula = CONCAVE_UP_TO[g], isinstance(g, qd.Expression)
    g = as_function(g, "g")
    assert g.is_concave(inflection)
    assert g.is_concave() == (inflection == 1)
    for other in (0.66, 0.67, 0.99) if formula else ():
        assert not g.is_concave(other)
    # Both are tiny far beyond the inflection: (1 - x)^999.
    x = np.linspace(0, 1, 1000)[1:-1]
    curvature = g.jet(x).curvature
    assert (curvature[x < inflection] < 1e-12).all()
    assert (curvature[x > inflection] > -1e-12).all()


def test_code_and_a_kink_are_not_proved():
    assert not as_function(lambda x: -(x**2), "g").is_concave()
    assert not as_function("-x**2 + sqrt((x - 1/3)**2)", "g").is_concave()
