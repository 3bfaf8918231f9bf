r"""Theorem 3: every P is Pareto-optimal if $g'' = w_0 f'$, $w_0 < 0$, and f increases.

Three checks of the condition, of increasing strength: a fit on a grid, for functions
known by their code only; a refutation at four points, by ball arithmetic; a symbolic
proof, which also gives the exact constants and the divergence. The last two apply to
formulas.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, nan
from typing import Any

import jax
import numpy as np

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.formulas.jets import Jet
from qdtheory.functions import Function
from qdtheory.proofs import signs
from qdtheory.proofs.shape import SMOOTH, find_hole
from qdtheory.support.numbers import NOISE

# Points of (0, 1) with step 1/1000, refined towards 0 down to one millionth.
GRID = np.concatenate([np.geomspace(1e-6, 1e-3, 25)[:-1], np.arange(1, 1000) / 1000])
# Also grid points, at which all derivatives are known to be finite.
EXACT_POINTS = [Fraction(n, 1000) for n in (137, 414, 691, 953)]
# Relative error of a second derivative by automatic differentiation, with a margin.
RESIDUAL_TOLERANCE = 1e-9
# Longer divergences are easier to read in terms of F and f.
MAX_READABLE = 12
# Numbers of this size, and the inverses of these, are no simple fractions.
HUGE = 10**60


@dataclass(frozen=True)
class Functions:
    """f and g of a separable pair, read once for every test of a verdict."""

    # U(q, p) and V(q), by the values of f and g.
    metrics: tuple[Callable, Callable]
    # None if f or g is known by its code only.
    formulas: tuple[Expression, Expression] | None
    # f and g with their derivatives on `GRID`.
    f: Jet
    g: Jet

    @property
    def smooth(self) -> bool:
        """Whether f and g are formulas that the proofs take."""
        return self.formulas is not None and all(h.is_smooth for h in self.formulas)

    def constant_metric(self) -> str | None:
        """The metric in which all models are equal, for code up to rounding."""
        f, g = self.f, self.g
        # As sum_i Q_i = 1, U = sum_i Q_i f(P_i) is c for f = c, and V = sum_i g(Q_i) is
        # a N + b for g = a + b x, whatever Q.
        if self.formulas is not None and self.smooth:
            flat = signs.is_zero(self.formulas[0].derivatives()[1])
            linear = signs.is_zero(self.formulas[1].derivatives()[2])
        else:
            flat = not f.slope.any() and _is_constant(f.value, f.value)
            line = GRID * g.slope
            off = g.value - line
            linear = not g.curvature.any() and _is_constant(off, g.value, line)
        if flat:
            return "quality, as f is flat"
        return "diversity, as g is linear" if linear else None


def read_functions(f: Function, g: Function) -> Functions:
    """Read f and g once for all tests; what the theorem needs has to be finite."""
    score, bonus = f.formula, g.formula
    quality, diversity = ((h.formula or h).jet(GRID) for h in (f, g))
    needed = {"f": quality.value, "f'": quality.slope, "g": diversity.value}
    needed |= {"g'": diversity.slope, "g''": diversity.curvature}
    # Floats may overflow even if a formula is proved to be smooth.
    if not all(h and h.is_smooth and find_hole(h)[0] for h in (score, bonus)):
        for name, values in needed.items():
            if not (finite := np.isfinite(values)).all():
                raise ValueError(
                    f"{name} is not finite at x = {GRID[~finite][0]:.6g}; "
                    f"f and g {SMOOTH}"
                )
    formulas = None if score is None or bonus is None else (score, bonus)
    metrics = lambda q, p: q @ jax.vmap(f)(p), lambda q: jax.vmap(g)(q).sum()
    return Functions(metrics, formulas, quality, diversity)


def _is_constant(values: np.ndarray, *terms: np.ndarray) -> bool:
    """Whether values do not vary by more than the rounding errors of their terms."""
    return bool(np.ptp(values) <= NOISE * np.abs(terms).max())


# --- At points: functions known by their code -----------------------------------------
@dataclass(frozen=True)
class Fit:
    r"""The constants in $g' = w_0 f + b_0$ that fit f and g best on the grid."""

    # NaN if a deviation is not finite.
    w0: float
    b0: float
    # The largest relative deviation, of g'' from w0 f' and of increments of g' from
    # those of w0 f, which detects jumps.
    residual: float
    # The hypothesis of Theorem 3 that fails at these points, or None.
    violation: str | None


def fit_theorem_3(f: Jet, g: Jet) -> Fit:
    r"""Fit $g' = w_0 f + b_0$ on the grid and look for a violation of Theorem 3.

    Constant and linear terms of g are irrelevant, as $\sum_i Q_i = 1$.
    """
    # f first, whose fall refutes the theorem for any g. The residual before the sign of
    # w0, which is NaN without a fit. A jump of g last: it shows in no derivative.
    w0, b0, residual = _least_deviation(f, g)
    violation = None
    if (at := _fall(f)) is not None:
        violation = f"f does not increase strictly near x = {at:.6g}"
    elif residual > RESIDUAL_TOLERANCE:
        violation = f"g'' = w0 f' is missed by a relative {residual:.1e}"
    elif w0 >= 0:
        violation = f"g'' = w0 f' with w0 = {w0:.6g}, which is not negative"
    elif (at := _jump(g)) is not None:
        violation = f"g jumps near x = {at:.6g}"
    return Fit(w0, b0, residual, violation)


def _least_deviation(f: Jet, g: Jet) -> tuple[float, float, float]:
    # w0 and b0 are read off at one point and tested at all others: where the theorem
    # holds any point gives the same.
    middle = f.value.size // 2

    def deviation(found: np.ndarray, expected: np.ndarray, noise: Any) -> np.ndarray:
        scale = np.maximum(np.abs(found), np.abs(expected))
        missed = np.maximum(np.abs(found - expected) - noise, 0)
        return missed / np.where(scale > 0, scale, 1.0)

    with np.errstate(all="ignore"):
        w0 = float(g.curvature[middle] / f.slope[middle])
        marginal, expected = g.slope, w0 * f.value
        # Rounding error of the difference of two values that may be close.
        noise = 2 * NOISE * (np.abs(marginal) + np.abs(expected))
        noise += noise[middle]
        deviations = [
            deviation(g.curvature, w0 * f.slope, 0),
            deviation(marginal - marginal[middle], expected - expected[middle], noise),
        ]
    if not np.isfinite(deviations).all():
        return nan, nan, inf
    b0 = float(marginal[middle] - expected[middle])
    # If g' is steep, b0 is a small difference: set -0.0 and rounding errors to 0.
    b0 = 0.0 if abs(b0) <= 1e-9 * abs(w0) else b0
    return w0, b0, float(np.max(deviations))


def _fall(f: Jet) -> float | None:
    """First grid point at which f does not increase from the previous one."""
    falls = (f.slope[1:] < 0) | (np.diff(f.value) < 0)
    # A slope of 0 at a single point is allowed: (x - 1/2)**3 increases strictly.
    falls |= (f.slope[1:] == 0) & (f.slope[:-1] == 0)
    return float(GRID[1:][falls][0]) if falls.any() else None


def _jump(g: Jet) -> float | None:
    """First grid point at which g violates the tangent bounds of a concave function."""
    # g'(b) (b - a) <= g(b) - g(a) <= g'(a) (b - a) for a < b and a concave g.
    step, rise = np.diff(GRID), np.diff(g.value)
    noise = 2 * NOISE * (np.abs(g.value[1:]) + np.abs(g.value[:-1]))
    outside = rise > step * g.slope[:-1] + noise
    outside |= rise < step * g.slope[1:] - noise
    return float(GRID[1:][outside][0]) if outside.any() else None


# --- Formulas: refutation and proof ---------------------------------------------------
@dataclass(frozen=True)
class Proof:
    r"""The constants of f and g, SymPy numbers, and their divergence, proved."""

    w0: Any  # in g'' = w0 f'
    b0: Any  # in g' = w0 f + b0
    alpha: Any  # w0 / (w0 - 1)
    rest: Any  # 1 - alpha
    divergence: str  # the formula of Psi(P) - Psi(Q)


def refute_theorem_3(f: Expression, g: Expression) -> str | None:
    """Refute g'' = w0 f' at four points, in ball arithmetic of 77 digits.

    >>> refute_theorem_3(Expression("log(x)"), Expression("-x**2"))
    "g''/f' differs between x = 137/1000 and x = 207/500"
    """
    derivatives = f.derivatives()[1], g.derivatives()[2]
    rows = [[h.subs(variable(), t) for h in derivatives] for t in EXACT_POINTS]
    # f' >= 0 and w0 < 0 make g'' = w0 f' <= 0: one point of another sign refutes that.
    for t, (slope, curvature) in zip(EXACT_POINTS, rows, strict=True):
        if signs.number_sign(slope) == -1:
            return f"f falls at x = {t}"
        if signs.number_sign(curvature) == 1:
            return f"g is convex at x = {t}"
    # g''(t) f'(s) = g''(s) f'(t), without a division by a ball that may hold 0.
    (start, *others), (first, *rest) = EXACT_POINTS, rows
    for t, (slope, curvature) in zip(others, rest, strict=True):
        if signs.number_sign(curvature * first[0] - first[1] * slope) in (1, -1):
            return f"g''/f' differs between x = {start} and x = {t}"
    return None


@lru_cache(maxsize=256)
def prove_theorem_3(f: Expression, g: Expression) -> Proof | None:
    """Prove symbolically that g'' = w0 f' with w0 < 0, in bounded time.

    That f and g are defined and f increases on all of (0, 1) is proved elsewhere.

    >>> proof = prove_theorem_3(Expression("log(x)"), Expression("-x*log(x)"))
    >>> proof.w0, proof.b0, proof.alpha, proof.divergence
    (-1, -1, 1/2, 'sum_i [Q_i*log(Q_i/P_i)/2]')
    """
    import sympy

    x, (quality, slope, _) = variable(), f.derivatives()
    diversity, marginal, curvature = g.derivatives()
    # The constants need one point with f' != 0; at a point of inflection f' may be 0,
    # as that of (x - 1/2)**3 is at 1/2.
    for t in map(sympy.Rational, ("1/2", "1/3", "2/7")):
        if signs.number_sign(slope.subs(x, t)):
            break
    else:
        return None
    # w0 is g'' / f' at this point, if anywhere; that g'' - w0 f' is 0 is then proved.
    w0 = _exact((curvature / slope).subs(x, t))
    if signs.number_sign(w0) != -1 or not signs.is_zero(curvature - w0 * slope):
        return None
    b0 = _exact((marginal - w0 * quality).subs(x, t))
    # Psi = alpha U + (1 - alpha) V has the gradient alpha f + (1 - alpha) (w0 f + b0),
    # constant at Q = P iff alpha + (1 - alpha) w0 = 0. F = (g - b0 x) / w0 has F' = f.
    alpha = _exact(-w0 / (1 - w0))
    divergence = _divergence(x, quality, (diversity - b0 * x) / w0, alpha)
    return Proof(w0, b0, alpha, _exact(1 / (1 - w0)), divergence)


def increases(f: Expression) -> signs.Sign:
    """Prove that f increases strictly on (0, 1), or falls: the sign of its slope."""
    return signs.sign_of(f.derivatives()[1], variable())


def open_hypotheses(f: Expression, g: Expression, proof: Proof | None) -> Iterator[str]:
    """List the hypotheses of Theorem 3 that fail or are not proved."""
    # A refutation stands alone: it settles what else would be listed as open.
    if proof is None:
        refuted = refute_theorem_3(f, g)
        if refuted is not None:
            yield f"{refuted}, by interval arithmetic"
            return
        yield "no symbolic proof of g'' = w0 f' with w0 < 0 was found"
    rise = increases(f)
    if rise.value in (-1, 0):
        yield "f does not increase, by interval arithmetic"
    elif rise.value is None:
        fall = signs.find_sign(f.derivatives()[1], variable(), -1)
        if fall is not None:
            yield f"f falls at x = {float(fall):.6g}, by interval arithmetic"
        elif rise.point is not None:
            yield f"that f increases was not proved near x = {float(rise.point):.6g}"


def _exact(number: Any) -> Any:
    """Simplify a SymPy number, to a rational if it is one."""
    import sympy

    digits = number.evalf(60)
    # Beyond these sizes a fraction could fill the memory.
    if digits.is_Float and 1 < abs(digits) * HUGE < HUGE**2:
        simple = sympy.Rational(Fraction(str(digits)).limit_denominator(10**6))
        if signs.is_zero(number - simple):
            return simple
    return sympy.expand_log(number)


def _divergence(x: Any, f: Any, antiderivative: Any, alpha: Any) -> str:
    r"""Write $\Psi(P) - \Psi(Q)$ as text, as one explicit term if that is short."""
    import sympy

    if signs.num_terms(antiderivative) <= MAX_READABLE:
        antiderivative = sympy.expand(antiderivative)
    # alpha (U + V / -w0) = alpha sum_i [f(P_i) Q_i - F(Q_i)] + constant, greatest at
    # Q = P: the difference is a Bregman divergence of F.
    q, p, ratio = sympy.symbols("Q_i P_i R", positive=True)
    bregman = (
        antiderivative.subs(x, q) - antiderivative.subs(x, p) - f.subs(x, p) * (q - p)
    ) * alpha
    if signs.num_terms(bregman) <= 2 * MAX_READABLE:
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
