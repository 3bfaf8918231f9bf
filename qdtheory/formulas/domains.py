"""Proofs that a formula is defined and smooth on all of (0, 1)."""

from fractions import Fraction
from functools import lru_cache

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.formulas.signs import find_sign, sign_of

SMOOTH = "must be defined and smooth on all of (0, 1)"


@lru_cache(maxsize=256)
def find_hole(h: Expression) -> tuple[bool, Fraction | None]:
    """Prove that a formula is analytic on all of (0, 1), or find where it is not.

    Arguments of logarithms and bases of roots must be positive, and divisors nonzero;
    `sign_of` proves this from the innermost part outwards.

    Args:
        h: a formula.

    Returns:
        Whether it is proved; and a point at or next to which the formula is proved to
        be undefined or not smooth, or None.

    Example:
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


def check_smooth(h: Expression, name: str) -> str | None:
    """Raise if a formula provably has a hole in (0, 1).

    Args:
        h: a formula.
        name: its name in messages, f or g.

    Returns:
        None if it is proved to be smooth; otherwise a message that it is not proved.

    Raises:
        ValueError: it is undefined or not smooth at some point.

    Example:
        >>> check_smooth(Expression("log(x)"), "f")
        >>> check_smooth(Expression("log(x - 1e-7)"), "f")
        Traceback (most recent call last):
        ...
        ValueError: f is not defined near x = 5.96046e-08; f and g must be defined \
and smooth on all of (0, 1)
    """
    proved, place = find_hole(h)
    if proved:
        return None
    if place is None:
        return f"{name} was not shown to be defined and smooth on all of (0, 1)"
    raise ValueError(
        f"{name} is not defined near x = {float(place):.6g}; f and g {SMOOTH}"
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
