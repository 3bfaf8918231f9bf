r"""The condition of Theorem 3: $g'' = w_0 f'$ with a constant $w_0 < 0$.

Three checks of increasing strength: a fit on a grid, for functions given as code; a
refutation at four points, by ball arithmetic; a symbolic proof, which also gives the
exact constants and the divergence. The last two apply to formulas. That f increases is
proved separately, by `sign_of`.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, nan
from typing import Any

import numpy as np

from qdtheory.pairs.formulas import Expression, jet_of
from qdtheory.pairs.scalar_functions import ScalarFunction
from qdtheory.theory.sign_proofs import is_zero, num_terms, number_sign
from qdtheory.world.numbers import EPS

# Also grid points, at which all derivatives are known to be finite.
EXACT_POINTS = [Fraction(n, 1000) for n in (137, 414, 691, 953)]
# Longer divergences are easier to read in terms of F and f.
MAX_READABLE = 12


@dataclass(frozen=True)
class Proof:
    r"""The constants and the divergence of f and g, proved by SymPy.

    Attributes:
        w0: the constant in $g'' = w_0 f'$, a SymPy number.
        b0: the constant in $g' = w_0 f + b_0$, a SymPy number.
        alpha: $w_0 / (w_0 - 1)$, a SymPy number.
        rest: $1 - \alpha$, a SymPy number.
        divergence: the formula of $\Psi(P) - \Psi(Q)$.
    """

    w0: Any
    b0: Any
    alpha: Any
    rest: Any
    divergence: str


def grid() -> np.ndarray:
    """Grid on (0, 1) with step 1/1000, refined towards 0 down to one millionth."""
    return np.concatenate(
        [np.geomspace(1e-6, 1e-3, 25)[:-1], np.arange(1, 1000) / 1000]
    )


def fit_theorem_3(f: ScalarFunction, g: ScalarFunction) -> tuple[float, float, float]:
    r"""Fit $g' = w_0 f + b_0$ on (0, 1) and measure the deviation.

    Constant and linear terms of g are irrelevant, as $\sum_i Q_i = 1$.

    Args:
        f: differentiable on (0, 1).
        g: twice differentiable on (0, 1).

    Returns:
        $w_0$, $b_0$ and the largest relative deviation, over 1,023 points of (0, 1),
        of g'' from $w_0 f'$ and of increments of g' from those of $w_0 f$, which
        detects jumps. If a deviation is not finite: NaN, NaN and infinity.
    """
    x = grid()
    quality, diversity = jet_of(f, x), jet_of(g, x)
    middle = x.size // 2

    def deviation(found: np.ndarray, expected: np.ndarray, noise: Any) -> np.ndarray:
        scale = np.maximum(np.abs(found), np.abs(expected))
        missed = np.maximum(np.abs(found - expected) - noise, 0)
        return missed / np.where(scale > 0, scale, 1.0)

    with np.errstate(all="ignore"):
        w0 = float(diversity.bend[middle] / quality.slope[middle])
        found, expected = diversity.slope, w0 * quality.value
        # Rounding error of the difference of two values that may be close.
        noise = 16 * EPS * (np.abs(found) + np.abs(expected))
        noise += noise[middle]
        deviations = [
            deviation(diversity.bend, w0 * quality.slope, 0),
            deviation(found - found[middle], expected - expected[middle], noise),
        ]
    if not np.isfinite(deviations).all():
        return nan, nan, inf
    b0 = float(found[middle] - expected[middle])
    # If g' is steep, b0 is a small difference: set -0.0 and rounding errors to 0.
    b0 = 0.0 if abs(b0) <= 1e-9 * abs(w0) else b0
    return w0, b0, float(np.max(deviations))


def refute_theorem_3(f: Expression, g: Expression) -> str | None:
    """Refute g'' = w0 f' at four points, in ball arithmetic of 77 digits.

    Args:
        f: a formula with a finite derivative on (0, 1).
        g: a formula with two finite derivatives on (0, 1).

    Returns:
        The violation and its place, or None if there is none at the four points.

    Example:
        >>> refute_theorem_3(Expression("log(x)"), Expression("-x**2"))
        "g''/f' differs between x = 137/1000 and x = 207/500"
    """
    import sympy

    x = sympy.Symbol("x", positive=True)
    slope, bend = f.symbolic(x).diff(x), g.symbolic(x).diff(x, 2)
    points = [sympy.Rational(t.numerator, t.denominator) for t in EXACT_POINTS]
    slopes = [slope.subs(x, t) for t in points]
    bends = [bend.subs(x, t) for t in points]
    for t, slope_there, bend_there in zip(points, slopes, bends, strict=True):
        if number_sign(slope_there) == -1:
            return f"f falls at x = {t}"
        if number_sign(bend_there) == 1:
            return f"g is convex at x = {t}"
    for i in range(1, len(points)):
        if number_sign(bends[i] * slopes[0] - bends[0] * slopes[i]) in (1, -1):
            return f"g''/f' differs between x = {points[0]} and x = {points[i]}"
    return None


@lru_cache(maxsize=256)
def prove_theorem_3(f: Expression, g: Expression) -> Proof | None:
    """Prove symbolically that g'' = w0 f' with w0 < 0, in bounded time.

    That f and g are defined and f increases on all of (0, 1) is proved elsewhere.

    Args:
        f: a formula for quality.
        g: a formula for diversity.

    Returns:
        The proof with its exact constants, or None if none is found.

    Example:
        >>> proof = prove_theorem_3(Expression("log(x)"), Expression("-x*log(x)"))
        >>> proof.w0, proof.b0, proof.alpha, proof.divergence
        (-1, -1, 1/2, 'sum_i [Q_i*log(Q_i/P_i)/2]')
    """
    import sympy

    x = sympy.Symbol("x", positive=True)
    quality, diversity = f.symbolic(x), g.symbolic(x)
    slope, bend = quality.diff(x), diversity.diff(x, 2)
    for t in map(sympy.Rational, ("1/2", "1/3", "2/7")):
        if number_sign(slope.subs(x, t)):
            break
    else:
        return None
    w0 = _exact((bend / slope).subs(x, t))
    if number_sign(w0) != -1 or not is_zero(bend - w0 * slope):
        return None
    b0 = _exact((diversity.diff(x) - w0 * quality).subs(x, t))
    alpha = _exact(-w0 / (1 - w0))
    antiderivative = (diversity - b0 * x) / w0
    return Proof(
        w0,
        b0,
        alpha,
        _exact(1 / (1 - w0)),
        _divergence(x, quality, antiderivative, alpha),
    )


def _exact(number: Any) -> Any:
    """Simplify a SymPy number, to a rational if it is one."""
    import sympy

    digits = number.evalf(60)
    if number.is_Rational or not digits.is_Float:
        return number
    digits = Fraction(str(digits))
    simple = digits.limit_denominator(10**6)
    if abs(digits - simple) < Fraction(1, 10**50):
        rational = sympy.Rational(simple.numerator, simple.denominator)
        if is_zero(number - rational):
            return rational
    return sympy.expand_log(number)


def _divergence(x: Any, f: Any, antiderivative: Any, alpha: Any) -> str:
    r"""Write $\Psi(P) - \Psi(Q)$ as text, as one explicit term if that is short."""
    import sympy

    if num_terms(antiderivative) <= MAX_READABLE:
        antiderivative = sympy.expand(antiderivative)
    q, p, ratio = sympy.symbols("Q_i P_i R", positive=True)
    bregman = (
        antiderivative.subs(x, q) - antiderivative.subs(x, p) - f.subs(x, p) * (q - p)
    ) * alpha
    if num_terms(bregman) <= 2 * MAX_READABLE:
        term = sympy.expand(bregman)
        coefficients = term.as_coefficients_dict()
        if coefficients[q] == -coefficients[p]:  # sum_i Q_i - P_i = 0
            term -= coefficients[q] * (q - p)
        in_ratio = sympy.expand(term.subs(sympy.log(p), sympy.log(q) - ratio))
        if not in_ratio.has(sympy.log(q)):
            term = in_ratio.subs(ratio, sympy.log(q / p))
        if term.is_rational_function(q, p):
            term = sympy.factor(term)
        if sympy.count_ops(term) <= MAX_READABLE:
            return f"sum_i [{term}]"
    return (
        f"{alpha} * sum_i [F(Q_i) - F(P_i) - f(P_i) (Q_i - P_i)], "
        f"f(x) = {f}, F(x) = {antiderivative}"
    )
