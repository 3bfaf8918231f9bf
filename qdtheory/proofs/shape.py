"""Proofs that a formula is smooth, or strictly concave, on all of (0, 1)."""

from fractions import Fraction
from functools import lru_cache

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.proofs.signs import find_sign, sign_of

SMOOTH = "must be defined and smooth on all of (0, 1)"


@lru_cache(maxsize=256)
def find_hole(h: Expression) -> tuple[bool, Fraction | None]:
    """Whether a formula is proved to be analytic on (0, 1); else a point where not.

    Arguments of logarithms and bases of roots must be positive, and divisors nonzero;
    `sign_of` proves this from the innermost part outwards. The point is one at or next
    to which the formula is proved to be undefined or not smooth, None if none is known.

    >>> find_hole(Expression("log(x/(1 - x))"))
    (True, None)
    >>> float(find_hole(Expression("-log(0.9995 - x)"))[1]) >= 0.9995
    True
    """
    import sympy

    x = variable()
    for part, positive in h.guards(x):
        if part.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I):
            return False, None
        sign = sign_of(part, x)
        if sign.value == 0:
            return False, Fraction(1, 2)
        if sign.strict and (sign.value == 1 or not positive):
            continue
        if sign.value is not None and not (positive and sign.value == -1):
            return False, None  # a zero somewhere, perhaps
        below = find_sign(part, x, -1)
        if below is None or positive:
            return False, below
        above = find_sign(part, x, 1)
        return False, None if above is None else _between(part, x, below, above)
    return True, None


def why_not_smooth(h: Expression, name: str) -> str | None:
    """Raise if a formula provably has a hole in (0, 1); say if that is not known."""
    proved, hole = find_hole(h)
    if proved:
        return None
    if hole is None:
        return f"{name} was not shown to be defined and smooth on all of (0, 1)"
    raise ValueError(
        f"{name} is not defined near x = {float(hole):.6g}; f and g {SMOOTH}"
    )


def _between(h, x, low: Fraction, high: Fraction) -> Fraction:
    """Locate a zero of h, which is negative at low and positive at high."""
    import sympy

    for _ in range(60):
        middle = (low + high) / 2
        value = h.subs(x, sympy.Rational(middle)).evalf(30)
        if value == 0:
            return middle
        low, high = (middle, high) if value < 0 else (low, middle)
    return low


@lru_cache(maxsize=128)
def is_strictly_concave(g: Expression, inflection: float = 1.0) -> bool:
    """Prove that g'' <= 0 with isolated zeros, on (0, 1) or up to an inflection.

    With an inflection c below 1, g must be convex beyond it. False: not proved.

    >>> is_strictly_concave(Expression("-x*log(x)"))
    True
    >>> is_strictly_concave(Expression("x**3 - 2*x**2"))
    False
    >>> is_strictly_concave(Expression("x**3 - 2*x**2"), 2 / 3)
    True
    """
    if not g.is_smooth:
        return False
    import sympy  # late: takes a quarter of a second, and code does not need it

    if not find_hole(g)[0]:
        return False
    x, curvature = variable(), g.derivatives()[2]
    if inflection == 1:
        return sign_of(curvature, x).value == -1
    # Except within 1e-12 of c, where a wrong sign costs 1e-24 of the third derivative.
    below, above = (
        sympy.Rational(Fraction(inflection)) * (1 + sympy.Rational(sign, 10**12))
        for sign in (-1, 1)
    )
    concave = sign_of(curvature.subs(x, below * x), x).value == -1
    convex = sign_of(curvature.subs(x, above + (1 - above) * x), x).value == 1
    return concave and convex
