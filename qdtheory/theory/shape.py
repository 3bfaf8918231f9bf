"""Proofs that g is strictly concave, or so up to a point and convex beyond."""

from fractions import Fraction
from functools import lru_cache

from qdtheory.formulas.domains import find_hole
from qdtheory.formulas.expressions import variable
from qdtheory.formulas.scalar_functions import (
    ScalarFunction,
    SingleTokenSelfBleu,
    formula_of,
)
from qdtheory.formulas.signs import sign_of
from qdtheory.solvers.regularized_argmax import order_of


@lru_cache(maxsize=128)
def is_strictly_concave(g: ScalarFunction, inflection: float = 1.0) -> bool:
    """Prove that g'' <= 0 with isolated zeros, on (0, 1) or up to an inflection.

    Args:
        g: a scalar function.
        inflection: c, beyond which g is to be convex; 1 if g is concave.

    Returns:
        True if g is proved to be smooth and of this shape; False if not proved.

    Example:
        >>> from qdtheory.formulas.expressions import Expression
        >>> is_strictly_concave(Expression("-x*log(x)"))
        True
        >>> is_strictly_concave(Expression("x**3 - 2*x**2"))
        False
        >>> is_strictly_concave(Expression("x**3 - 2*x**2"), 2 / 3)
        True
    """
    if order_of(g) is not None:
        return inflection == 1
    if isinstance(g, SingleTokenSelfBleu):
        return (inflection < 1) == (g.num_self_references > 1)
    formula = formula_of(g)
    if formula is None or not formula.is_smooth:
        return False
    import sympy  # late: takes a quarter of a second, and code does not need it

    if not find_hole(formula)[0]:
        return False
    x, curvature = variable(), formula.derivatives()[2]
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
