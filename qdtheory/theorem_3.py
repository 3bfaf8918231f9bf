r"""Does $g'' = w_0 f'$ hold with a constant $w_0 < 0$, the condition of Theorem 3?

Three answers, from the weakest: a fit on a grid, for functions known by code only; a
refutation by interval arithmetic; a proof by SymPy, which also gives the constants
and the divergence exactly. The last two are for formulas. That f increases, which
makes w0 < 0 enough, is proved or refuted by intervals too.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, inf, nan, prod
from typing import Any

import numpy as np

from qdtheory.expressions import Expression, jet_of
from qdtheory.jets import Jet
from qdtheory.pairs import ScalarFunction
from qdtheory.regularized_argmax import EPS

# Points of the grid too, where all derivatives are known to be finite.
EXACT_POINTS = [Fraction(n, 1000) for n in (137, 414, 691, 953)]
# How near to 0 and 1 the search for a fall goes, and how many pieces it looks at.
NEAREST_END = Fraction(1, 2**60)
MAX_PIECES = 300
# Expanded sums beyond this take SymPy seconds.
MAX_TERMS = 2000
MAX_OPERATIONS = 2000
# A longer divergence is easier to read as F and f.
MAX_READABLE = 12


@dataclass(frozen=True)
class Proof:
    r"""What SymPy proved of f and g.

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
    """Points of (0, 1): every thousandth, and down to a millionth near 0."""
    return np.concatenate(
        [np.geomspace(1e-6, 1e-3, 25)[:-1], np.arange(1, 1000) / 1000]
    )


def fit_theorem_3(f: ScalarFunction, g: ScalarFunction) -> tuple[float, float, float]:
    r"""Fit $g' = w_0 f + b_0$ on (0, 1) and say how far it is from holding.

    Constants and linear terms of g are free, as $\sum_i Q_i = 1$.

    Args:
        f: differentiable on (0, 1).
        g: twice differentiable on (0, 1).

    Returns:
        $w_0$, $b_0$ and the largest relative deviation, over 1,023 points of (0, 1),
        of g'' from $w_0 f'$ and of the change of g' from that of $w_0 f$, which
        sees jumps; infinite where it is not finite.
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
        # The rounding of two values that may be close to each other.
        noise = 16 * EPS * (np.abs(found) + np.abs(expected))
        noise += noise[middle]
        deviations = [
            deviation(diversity.bend, w0 * quality.slope, 0),
            deviation(found - found[middle], expected - expected[middle], noise),
        ]
    if not np.isfinite(deviations).all():
        return nan, nan, inf
    b0 = float(found[middle] - expected[middle])
    # Where g' is steep, b0 is a small difference: -0.0 and rounding become 0.
    b0 = 0.0 if abs(b0) <= 1e-9 * abs(w0) else b0
    return w0, b0, float(np.max(deviations))


def refute_theorem_3(f: Expression, g: Expression) -> str | None:
    """Why f and g cannot have the form, proved by interval arithmetic.

    Args:
        f: a formula with a finite derivative on (0, 1).
        g: a formula with two finite derivatives on (0, 1).

    Returns:
        What is wrong and where, or None where four points show nothing.

    Example:
        >>> refute_theorem_3(Expression("log(x)"), Expression("-x**2"))
        "g''/f' differs between x = 137/1000 and x = 207/500"
    """
    try:
        slopes = [f.enclosure(x).slope for x in EXACT_POINTS]
        bends = [g.enclosure(x).bend for x in EXACT_POINTS]
    except ValueError:  # too wide to tell
        return None
    for x, slope, bend in zip(EXACT_POINTS, slopes, bends, strict=True):
        if slope < 0:
            return f"f falls at x = {x}"
        if bend > 0:
            return f"g is convex at x = {x}"
    for i in range(1, len(EXACT_POINTS)):
        if 0 not in bends[i] * slopes[0] - bends[0] * slopes[i]:
            return (
                f"g''/f' differs between x = {EXACT_POINTS[0]} and x = "
                f"{EXACT_POINTS[i]}"
            )
    return None


@lru_cache(maxsize=128)
def search_fall(f: Expression) -> tuple[Fraction | None, bool]:
    """Look for a place where f falls, by interval arithmetic on ever smaller pieces.

    Args:
        f: a formula.

    Returns:
        A number x in (0, 1) with f'(x) < 0, or None; and whether there is none:
        f' >= 0 from 2**-60 to 1 - 2**-60 is proved. Neither is found if f' stays
        close to 0 over a stretch.

    Example:
        >>> float(search_fall(Expression("x - x**2"))[0])
        0.75
        >>> search_fall(Expression("log(x)"))
        (None, True)
    """
    # By the mean value theorem too, which is closer where terms cancel.
    return _search_negative(f, lambda jet: jet.slope, lambda jet: jet.bend)


@lru_cache(maxsize=128)
def search_convexity(g: Expression) -> Fraction | None:
    """Look for a place where g bends upwards, as `search_fall` does.

    Args:
        g: a formula.

    Returns:
        A number x in (0, 1) with g''(x) > 0, or None.
    """
    return _search_negative(g, lambda jet: -jet.bend)[0]


def _search_negative(
    h: Expression,
    part: Callable[[Jet], Any],
    derivative: Callable[[Jet], Any] | None = None,
) -> tuple[Fraction | None, bool]:
    """A point where a part of h's jet is negative, and whether there is none."""
    # Dyadic ends, whose middles intervals hold without rounding.
    pieces = [(NEAREST_END, Fraction(1, 2)), (Fraction(1, 2), 1 - NEAREST_END)]
    for low, high in pieces:  # grows by the pieces that cannot be told, widest first
        if len(pieces) > MAX_PIECES:
            return None, False
        middle = (low + high) / 2
        told = False
        with suppress(ValueError):  # too wide to tell
            at = part(h.enclosure(middle))
            if at < 0:
                return middle, False
            over = h.enclosure(low, high)
            told = part(over) >= 0
            if derivative and not told:
                half = (high - low) / 2
                change = derivative(over) * half.numerator / half.denominator
                told = at >= abs(change)
        if not told:
            pieces += [(low, middle), (middle, high)]
    return None, True


def prove_theorem_3(f: Expression, g: Expression) -> Proof | None:
    """Prove that g'' = w0 f' with w0 < 0, in bounded time.

    Args:
        f: a formula of quality.
        g: a formula of diversity.

    Returns:
        The proof with its exact constants, or None where none is found.

    Example:
        >>> proof = prove_theorem_3(Expression("log(x)"), Expression("-x*log(x)"))
        >>> proof.w0, proof.b0, proof.alpha, proof.divergence
        (-1, -1, 1/2, 'sum_i [Q_i*log(Q_i/P_i)/2]')
    """
    import sympy

    x = sympy.Symbol("x", positive=True)
    quality, diversity = f.symbolic(x), g.symbolic(x)
    slope, bend = quality.diff(x), diversity.diff(x, 2)
    w0 = _exact((bend / slope).subs(x, sympy.Rational(1, 2)))
    if not (w0.is_negative and _is_zero(bend - w0 * slope)):
        return None
    remainder = diversity.diff(x) - w0 * quality
    b0 = _exact(remainder.subs(x, sympy.Rational(1, 2)))
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
    """A SymPy number in its simplest form, a rational one where it is rational."""
    import sympy

    digits = number.evalf(60)
    if number.is_Rational or not digits.is_Float:
        return number
    digits = Fraction(str(digits))
    simple = digits.limit_denominator(10**6)
    if abs(digits - simple) < Fraction(1, 10**50):
        rational = sympy.Rational(simple.numerator, simple.denominator)
        if _is_zero(number - rational):
            return rational
    return sympy.expand_log(number)


def _is_zero(h: Any) -> bool:
    """Whether an expression is shown to vanish: its numerator expands to 0."""
    import sympy

    if sympy.count_ops(h) > MAX_OPERATIONS:
        return False
    numerator = sympy.fraction(sympy.together(sympy.expand_log(h)))[0]
    return _num_terms(numerator) <= MAX_TERMS and sympy.expand(numerator) == 0


def _num_terms(h: Any) -> int:
    """At most so many terms has an expression when it is expanded."""
    if h.is_Add:
        return sum(map(_num_terms, h.args))
    if h.is_Mul:
        return prod(map(_num_terms, h.args))
    if h.is_Pow and h.exp.is_Rational:
        base, power = _num_terms(h.base), abs(int(h.exp))
        return comb(base + power - 1, power)
    return 1


def _divergence(x: Any, f: Any, antiderivative: Any, alpha: Any) -> str:
    r"""$\Psi(P) - \Psi(Q)$ as text, term by term where that is short."""
    import sympy

    if _num_terms(antiderivative) <= MAX_READABLE:
        antiderivative = sympy.expand(antiderivative)
    q, p, ratio = sympy.symbols("Q_i P_i R", positive=True)
    bregman = (
        antiderivative.subs(x, q) - antiderivative.subs(x, p) - f.subs(x, p) * (q - p)
    ) * alpha
    if _num_terms(bregman) <= 2 * MAX_READABLE:
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
