r"""Does $g'' = w_0 f'$ hold with a constant $w_0 < 0$, the condition of Theorem 3?

Three answers, from the weakest: a fit on a grid, for functions known by code only; a
refutation by interval arithmetic; a proof by SymPy, which also gives the constants
and the divergence exactly. The last two are for formulas.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import comb, inf, nan, prod
from typing import Any

import numpy as np

from qdtheory.expressions import Expression, jet_of
from qdtheory.pairs import ScalarFunction

# Points of the grid too, where all derivatives are known to be finite.
EXACT_POINTS = [Fraction(n, 1000) for n in (137, 414, 691, 953)]
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
        increasing: whether SymPy also proved f' > 0 on (0, 1).
    """

    w0: Any
    b0: Any
    alpha: Any
    rest: Any
    divergence: str
    increasing: bool


def grid() -> np.ndarray:
    """Points of (0, 1): every thousandth, and down to a millionth near 0."""
    return np.concatenate(
        [np.geomspace(1e-6, 1e-3, 25)[:-1], np.arange(1, 1000) / 1000]
    )


def fit_theorem_3(f: ScalarFunction, g: ScalarFunction) -> tuple[float, float, float]:
    r"""Fit $g' = w_0 f + b_0$ on (0, 1) and say how far it is from holding.

    Constants and linear terms of g are free, as $\sum_i Q_i = 1$.

    Args:
        f: twice differentiable on (0, 1).
        g: twice differentiable on (0, 1).

    Returns:
        $w_0$, $b_0$ and the largest relative deviation of g'' from $w_0 f'$ over
        1,023 points of (0, 1), infinite where a derivative is not finite.
    """
    x = grid()
    quality, diversity = jet_of(f, x), jet_of(g, x)
    slope, bend = quality.slope, diversity.bend
    middle = x.size // 2
    with np.errstate(all="ignore"):
        w0 = float(bend[middle] / slope[middle])
        scale = np.maximum(np.abs(bend), np.abs(w0 * slope))
        deviation = np.abs(bend - w0 * slope) / np.where(scale > 0, scale, 1.0)
    if not np.isfinite(deviation).all():
        return nan, nan, inf
    b0 = float(diversity.slope[middle] - w0 * quality.value[middle])
    # Where g' is steep, b0 is a small difference: -0.0 and rounding become 0.
    b0 = 0.0 if abs(b0) <= 1e-9 * abs(w0) else b0
    return w0, b0, float(deviation.max())


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
        _is_positive(x, slope),
    )


def _is_positive(x: Any, h: Any) -> bool:
    """Whether SymPy sees at once that h > 0 on (0, 1)."""
    import sympy

    t = sympy.Symbol("t", positive=True)
    # With x = 1/(1 + t), 1 - x = t/(1 + t) is a positive number too.
    numerator, denominator = sympy.fraction(sympy.together(h.subs(x, 1 / (1 + t))))
    if not denominator.is_positive:
        return False
    if _num_terms(numerator) <= MAX_TERMS:
        numerator = sympy.expand(numerator)
    return bool(numerator.is_positive)


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
