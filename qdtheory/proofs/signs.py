r"""Proofs of the sign of a formula on all of (0, 1), ends and holes included.

A formula is split into factors; an even power is never negative, and every other factor
must have a constant sign. Near 0 and 1 this is proved by comparing all terms with the
leading term $y^a |\log y|^b$; in between by bisection in ball arithmetic (Arb). The
proofs are rigorous: balls and intervals enclose all rounding errors.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import comb, prod
from typing import Any

from flint import arb, ctx

from qdtheory.formulas import trees
from qdtheory.support.clock import time_limit

# Distances from an end at which balls take over, as exponents of 1/2, largest first.
NEAR_ENDS = (2, 4, 8, 16, 32, 64, 128)
# Exponent at which the search for a peak drops pieces without a finite bound.
NEAR_BOUND = 20
# Number of derivatives taken at an end where a formula vanishes.
MAX_ORDER = 4
# Work limit of one bisection, in ball operations of about half a microsecond.
MAX_WORK = 150_000
PIECES = (150, 3000)
# Factoring or expanding larger formulas takes SymPy seconds.
MAX_FACTORED = 60
MAX_TERMS = 2000
MAX_OPERATIONS = 2000


@dataclass(frozen=True)
class Sign:
    """The proved sign of a formula on (0, 1)."""

    # 1 or -1 if the formula has that sign on all of (0, 1), except for zeros of even
    # powers; 0 if it vanishes identically; None if nothing is proved.
    value: int | None
    # Whether it has no zeros.
    strict: bool = False
    # A point where the proof failed, or None.
    point: Fraction | None = None


@lru_cache(maxsize=512)
def sign_of(h: Any, x: Any) -> Sign:
    r"""Prove the sign of a formula on all of (0, 1).

    The formula must be analytic there, which `find_hole` proves for the formula it is
    derived from: then its zeros are isolated unless it vanishes identically.

    >>> import sympy
    >>> x = sympy.Symbol("x", positive=True)
    >>> sign_of(1 - 2 * x + x**2, x).value, sign_of(1 / x - 1, x).strict
    (1, True)
    >>> sign_of(9 - 10 * x, x).value is None
    True
    """
    try:
        with time_limit():
            return _sign_of_factors(h, x)
    except TimeoutError:
        return _sign_between(h, x, _sign_around)  # SymPy is slow with it


def _sign_of_factors(h: Any, x: Any) -> Sign:
    if is_zero(h):
        return Sign(0)
    value, strict = 1, True
    for base, exponent in _factors(h):
        one = _one_sign(base, x)
        even = exponent.is_Integer and exponent % 2 == 0
        if one.value is None:
            if not (even and exponent > 0):
                return one
            strict = False
        elif one.value < 0 and not even:
            if not exponent.is_Integer:
                return Sign(None, point=Fraction(1, 2))
            value = -value
    return Sign(value, strict)


@lru_cache(maxsize=512)
def find_sign(h: Any, x: Any, wanted: int) -> Fraction | None:
    """Find a point in (0, 1) where a formula is proved to have a sign, by bisection.

    >>> import sympy
    >>> x = sympy.Symbol("x", positive=True)
    >>> find_sign(9 - 10 * x, x, -1)
    Fraction(15, 16)
    """
    return _bisect(h, x, -wanted, (NEAR_ENDS[-2],) * 2).point


def find_peak(h: Any, x: Any) -> list[Fraction]:
    """Up to four points where |h| is large, the largest first, by branch and bound."""
    tried: list[tuple[float, Fraction]] = []
    with ctx.workprec(trees.PRECISION):
        run, size = _runner(h, x)
        heap = [(0.0, m, 5) for m in range(1, 2**5, 2)]
        for _ in range(MAX_WORK // (8 * size) + 60):
            if not heap:
                break
            _, m, k = heapq.heappop(heap)
            at = run(arb((m, -k)))
            if at.is_finite():
                tried.append((float(abs(at).mid()), Fraction(m, 2**k)))
            if k >= NEAR_ENDS[-2]:
                continue
            for half in (2 * m - 1, 2 * m + 1):
                over = run(arb((half, -k - 1), (1, -k - 1)))
                # The logarithm, as exp(1e9) overflows a float. Pieces without a finite
                # bound, at the ends, would trap the search.
                if over.is_finite():
                    bound = float(over.abs_upper().log())
                    heapq.heappush(heap, (-bound, half, k + 1))
                elif k < NEAR_BOUND:
                    heapq.heappush(heap, (-math.inf, half, k + 1))
    return list(dict.fromkeys(point for _, point in sorted(tried, reverse=True)))[:4]


def is_zero(h: Any) -> bool:
    """Prove that an expression vanishes identically: its numerator expands to 0."""
    import sympy

    if sympy.count_ops(h) > MAX_OPERATIONS:
        return False
    numerator = sympy.fraction(sympy.together(sympy.expand_log(h)))[0]
    return num_terms(numerator) <= MAX_TERMS and sympy.expand(numerator) == 0


def num_terms(h: Any) -> int:
    """Upper bound on the number of terms of an expression after expansion."""
    if h.is_Add:
        return sum(map(num_terms, h.args))
    if h.is_Mul:
        return prod(map(num_terms, h.args))
    if h.is_Pow and h.exp.is_Rational:
        base, power = num_terms(h.base), abs(int(h.exp))
        return comb(base + power - 1, power)
    return 1


def number_sign(number: Any) -> int | None:
    """Prove the sign of a number; None if it is infinite, not real or close to 0."""
    import sympy

    if number.has(sympy.zoo, sympy.oo, -sympy.oo, sympy.nan, sympy.I):
        return None
    with ctx.workprec(trees.PRECISION):
        try:
            value = _runner(number, None)[0](arb(0))
        except ValueError:
            return None
    return _told(value) or (0 if is_zero(number) else None)


# --- One factor -----------------------------------------------------------------------
def _factors(h: Any) -> Iterator[tuple[Any, Any]]:
    """Factor h into bases and exponents, omitting factors that are always positive."""
    import sympy

    h, hidden = _without_exponentials(sympy.expand_log(h))
    numerator, denominator = sympy.fraction(sympy.together(h))
    for part, power in ((numerator, 1), (denominator, -1)):
        if sympy.count_ops(part) <= MAX_FACTORED and num_terms(part) <= MAX_FACTORED:
            factored = sympy.factor(part)
            # If it does not factor, keep the unexpanded form, where fewer terms cancel.
            part = part if factored.is_Add else factored
        whole: Any = part.xreplace(hidden)
        for factor in sympy.Mul.make_args(whole):
            base, exponent = factor.as_base_exp()
            if base is sympy.E or not exponent.is_Rational:
                if base.is_positive:
                    continue
                base, exponent = factor, sympy.Integer(1)
            yield base, exponent * power


def _without_exponentials(h: Any) -> tuple[Any, dict]:
    """Replace exponentials by symbols; return the formula and the substitution.

    SymPy would treat exp(1e9 x) as a power of exp(x), a polynomial of that degree.
    """
    import sympy

    hidden = {part: sympy.Dummy(positive=True) for part in h.atoms(sympy.exp)}
    return h.xreplace(hidden), {symbol: part for part, symbol in hidden.items()}


@lru_cache(maxsize=512)
def _one_sign(h: Any, x: Any) -> Sign:
    """Prove the sign of a factor without zeros on (0, 1)."""
    if h.is_positive or h.is_negative:  # from the signs of its terms and factors
        return Sign(1 if h.is_positive else -1, True)
    if not h.has(x):
        value = number_sign(h)
        return Sign(value or None, True, None if value else Fraction(1, 2))
    return _sign_between(h, x, _end)


def _sign_between(h: Any, x: Any, end: Callable) -> Sign:
    """The sign that balls prove between two ends, whose signs are proved by others."""
    try:
        ends = [end(h, x), end(h.subs(x, 1 - x), x)]
        with ctx.workprec(trees.PRECISION):
            middle = _runner(h, x)[0](trees.ball(Fraction(1, 2)))
        sign = ends[0][0] or ends[1][0] or _told(middle)
        if sign is None:
            return Sign(None, point=Fraction(1, 2))
        between = _bisect(h, x, sign, tuple(k for _, k in ends))
    except ValueError:  # an operation unsupported by balls
        return Sign(None, point=Fraction(1, 2))
    if between.value is None or {sign} != {s for s, _ in ends}:
        point = between.point or (
            Fraction(1, 2**64) if ends[0][0] != sign else 1 - Fraction(1, 2**64)
        )
        return Sign(None, point=point)
    return Sign(sign, True)


def _told(value: Any) -> int | None:
    """The sign of all numbers of a ball."""
    return 1 if value > 0 else -1 if value < 0 else None


def _bisect(h: Any, x: Any, sign: int, near: tuple[int, ...]) -> Sign:
    """Prove that h has a sign from 2**-near[0] to 1 - 2**-near[1], or refute it.

    On failure `point` is a point where the opposite sign is proved, or None.
    """
    with ctx.workprec(trees.PRECISION):
        (run, size), (slope, more) = _runner(h, x), _runner(h.diff(x), x)
        budget = min(max(MAX_WORK // (size + more), PIECES[0]), PIECES[1])
        pieces = deque([(1, 1)])  # (m, k): midpoint m / 2**k, radius 2**-k
        while pieces:
            if (budget := budget - 1) < 0:
                return Sign(None)
            m, k = pieces.popleft()
            if k > near[0] and (m + 1) << near[0] <= 1 << k:
                continue
            if k > near[1] and (2**k - m + 1) << near[1] <= 1 << k:
                continue
            middle, radius = arb((m, -k)), arb(0, (1, -k))
            at = sign * run(middle)
            if at < 0:
                return Sign(None, point=Fraction(m, 2**k))
            if sign * run(middle + radius) > 0:
                continue
            # Also try the mean value form, which is tighter if terms cancel.
            if at > 0 and at + sign * slope(middle + radius) * radius > 0:
                continue
            pieces += [(2 * m - 1, k + 1), (2 * m + 1, k + 1)]
    return Sign(sign, True)


# --- The ends -------------------------------------------------------------------------
def _end(h: Any, y: Any) -> tuple[int | None, int]:
    """Return the sign of h on (0, 2**-k], or None if not proved, and k."""
    if (around := _sign_around(h, y))[0]:
        return around
    ladder, order = [h], 0
    # If h(0) = 0, h and h' have the same sign near 0.
    while order < MAX_ORDER and number_sign(ladder[-1].subs(y, 0)) == 0:
        ladder.append(ladder[-1].diff(y))
        order += 1
    for rung in reversed(ladder):
        terms = _terms(rung, y)
        for k in NEAR_ENDS:
            if sign := _leading_sign(terms, k):
                return sign, k
    return None, NEAR_ENDS[-2]


def _sign_around(h: Any, y: Any) -> tuple[int | None, int]:
    """The sign on [0, 2**-k] in balls, which tell it unless h(0) is 0 or infinite."""
    with ctx.workprec(trees.PRECISION):
        run, _ = _runner(h, y)
        for k in NEAR_ENDS[:4]:
            value = run(arb((1, -k - 1), (1, -k - 1)))
            if sign := _told(value):
                return sign, k
    return None, NEAR_ENDS[-2]


def _terms(h: Any, y: Any) -> list[tuple[Fraction, int, Callable]]:
    """Split an expanded formula into terms y**a log(y)**b r(y); return a, b and r."""
    import sympy

    h, hidden = _without_exponentials(h)
    if num_terms(h) <= MAX_TERMS:
        h = sympy.expand(sympy.expand_log(h))
    h = h.xreplace(hidden)
    terms = []
    for term in sympy.Add.make_args(h):
        a, b, rest = Fraction(0), 0, sympy.Integer(1)
        for factor in sympy.Mul.make_args(term):
            base, exponent = factor.as_base_exp()
            if base == y and exponent.is_Rational:
                a += Fraction(str(exponent))
            elif base == sympy.log(y) and exponent.is_Integer:
                b += int(exponent)
            else:
                rest *= factor
        terms.append((a, b, trees.compiled(trees.of_sympy(rest, y), *_intervals())))
    return terms


def _leading_sign(terms: list, k: int) -> int | None:
    """Prove the sign of a sum on (0, 2**-k], relative to its leading term near 0."""
    number, functions = _intervals()
    exp, log = functions["exp"], functions["log"]
    a0, b0 = min((a, -b) for a, b, _ in terms)
    end, total = number(Fraction(1, 2**k)), number(Fraction(0))
    size = -log(end)  # lower bound on |log y|, which grows towards 0
    try:
        for a, b, rest in terms:
            alpha, beta = a - a0, b + b0
            if alpha > 0 and beta > 0 and not size * float(alpha) > 2 * beta:
                return None  # y**alpha |log y|**beta may decrease before the end
            share = size**beta * exp(number(alpha) * log(end))
            if alpha > 0 or beta < 0:
                share = share.ctx.mpf([0, share.b])
            total += (-1) ** b * share * rest(end.ctx.mpf([0, end.b]))
    except (ValueError, ZeroDivisionError, TypeError, OverflowError):
        return None
    return _told(total)


@cache
def _intervals() -> tuple[Callable, dict[str, Callable]]:
    """Numbers and functions of intervals, which unlike balls may be unbounded.

    In a private context of mpmath: the precision of the shared one is global.
    """
    from mpmath.ctx_iv import MPIntervalContext

    arithmetic: Any = MPIntervalContext()
    arithmetic.prec = trees.PRECISION

    def number(exact: Fraction) -> Any:
        return arithmetic.mpf(exact.numerator) / exact.denominator

    def log(a: Any) -> Any:
        if not a.a >= 0:
            raise ValueError("log of a negative number")
        return arithmetic.log(a)

    def power(a: Any, n: Any) -> Any:
        return a**n if isinstance(n, int) else arithmetic.exp(n * log(a))

    return number, {"exp": arithmetic.exp, "log": log, "**": power}


@lru_cache(maxsize=1024)
def _runner(h: Any, x: Any) -> tuple[Callable[[Any], Any], int]:
    """A SymPy expression as a function of a ball, and its number of parts."""
    tree = trees.of_sympy(h, x)
    return trees.compiled(tree, trees.ball, trees.ball_functions()), len(
        trees.subtrees(tree)
    )
