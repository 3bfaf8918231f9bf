r"""Proofs of the sign of a formula on all of (0, 1), ends and holes included.

A formula is split into factors; an even power is never negative, and every other factor
must have a constant sign. Near 0 and 1 this is proved by comparing all terms with the
leading term $y^a |\log y|^b$; in between by bisection. The proofs are rigorous: Arb's
balls enclose all rounding errors. Near an end, where a bound may be infinite on one
side only, as that of no ball is, intervals between two balls take their place.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import comb, prod
from typing import Any

from flint import arb, ctx

from qdtheory.formulas import trees
from qdtheory.support.clock import time_limit

# Distances from an end at which bisection takes over, as exponents of 1/2, largest
# first.
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
INFINITY = arb("inf")
Interval = tuple[arb, arb]  # from the first number to the second


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
        sign = _one_sign(base, x)
        even = exponent.is_Integer and exponent % 2 == 0
        if sign.value is None:
            # b^2 >= 0 whatever the sign of b, with a zero where b has one; but 1 / b^2
            # has a pole there, so that b needs a sign.
            if not (even and exponent > 0):
                return sign
            strict = False
        elif sign.value < 0 and not even:
            if not exponent.is_Integer:  # a root of a negative number
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
        # Pieces m / 2^k +- 2^-k; the greatest bound on |h| comes first.
        heap = [(0.0, m, 5) for m in range(1, 2**5, 2)]
        for _ in range(MAX_WORK // (8 * size) + 60):
            if not heap:
                break
            _, m, k = heapq.heappop(heap)
            value = run(arb((m, -k)))
            if value.is_finite():
                tried.append((float(abs(value).mid()), Fraction(m, 2**k)))
            if k >= NEAR_ENDS[-2]:
                continue
            for half in (2 * m - 1, 2 * m + 1):
                enclosure = run(arb((half, -k - 1), (1, -k - 1)))
                # The logarithm, as exp(1e9) overflows a float. Pieces without a finite
                # bound, at the ends, would trap the search.
                if enclosure.is_finite():
                    bound = float(enclosure.abs_upper().log())
                    heapq.heappush(heap, (-bound, half, k + 1))
                elif k < NEAR_BOUND:
                    heapq.heappush(heap, (-math.inf, half, k + 1))
    return list(dict.fromkeys(point for _, point in sorted(tried, reverse=True)))[:4]


def is_zero(h: Any) -> bool:
    """Prove that an expression vanishes identically: its numerator expands to 0."""
    import sympy

    if sympy.count_ops(h) > MAX_OPERATIONS:
        return False
    # A polynomial in x and in its logarithms, roots and exponentials. That it expands
    # to 0 suffices; it is not necessary, as these may obey relations.
    numerator = sympy.fraction(sympy.together(sympy.expand_log(h)))[0]
    return num_terms(numerator) <= MAX_TERMS and sympy.expand(numerator) == 0


def num_terms(h: Any) -> int:
    """Upper bound on the number of terms of an expression after expansion."""
    if h.is_Add:
        return sum(map(num_terms, h.args))
    if h.is_Mul:
        return prod(map(num_terms, h.args))
    if h.is_Pow and h.exp.is_Rational:
        # The monomials of degree p in n unknowns number C(n + p - 1, p).
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
    # A ball that holds 0 settles nothing; SymPy takes longer, so it comes second.
    return _common_sign(value, value) or (0 if is_zero(number) else None)


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
                if base.is_positive:  # so is any power of it
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
    """The sign that balls prove between two ends, whose signs `end` proves."""
    try:
        ends = [end(h, x), end(h.subs(x, 1 - x), x)]
        # The first sign that is proved is the only one that h can have everywhere.
        with ctx.workprec(trees.PRECISION):
            middle = _runner(h, x)[0](trees.ball(Fraction(1, 2)))
        sign = ends[0][0] or ends[1][0] or _common_sign(middle, middle)
        if sign is None:
            return Sign(None, point=Fraction(1, 2))
        between = _bisect(h, x, sign, tuple(k for _, k in ends))
    except ValueError:  # an operation unsupported by balls
        return Sign(None, point=Fraction(1, 2))
    if between.value is None or {sign} != {s for s, _ in ends}:
        # A point of the other sign, or one at the end where the proof failed.
        least = Fraction(1, 2 ** NEAR_ENDS[-2])
        at_end = least if ends[0][0] != sign else 1 - least
        return Sign(None, point=between.point or at_end)
    return Sign(sign, True)


def _common_sign(low: Any, high: Any) -> int | None:
    """The sign of all numbers between two balls."""
    return 1 if low > 0 else -1 if high < 0 else None


def _bisect(h: Any, x: Any, sign: int, near: tuple[int, ...]) -> Sign:
    """Prove that h has a sign from 2**-near[0] to 1 - 2**-near[1], or refute it.

    On failure `point` is a point where the opposite sign is proved, or None.
    """
    with ctx.workprec(trees.PRECISION):
        (run, size), (slope, slope_size) = _runner(h, x), _runner(h.diff(x), x)
        budget = min(max(MAX_WORK // (size + slope_size), PIECES[0]), PIECES[1])
        # (m, k): midpoint m / 2**k, radius 2**-k. Wide pieces first, so that a midpoint
        # of the other sign is met before one hard place uses the budget up.
        pieces = deque([(1, 1)])
        while pieces:
            if (budget := budget - 1) < 0:
                return Sign(None)
            m, k = pieces.popleft()
            # What lies below 2**-near[0] or above 1 - 2**-near[1] is left to the ends.
            if (m + 1) << near[0] <= 1 << k or (2**k - m + 1) << near[1] <= 1 << k:
                continue
            middle, radius = arb((m, -k)), arb(0, (1, -k))
            value = sign * run(middle)
            if value < 0:
                return Sign(None, point=Fraction(m, 2**k))
            if sign * run(middle + radius) > 0:
                continue
            # The mean value form h(c) + h'(piece) [-r, r] is tighter if terms cancel.
            if value > 0 and value + sign * slope(middle + radius) * radius > 0:
                continue
            pieces += [(2 * m - 1, k + 1), (2 * m + 1, k + 1)]
    return Sign(sign, True)


# --- The ends -------------------------------------------------------------------------
def _end(h: Any, y: Any) -> tuple[int | None, int]:
    """Return the sign of h on (0, 2**-k], or None if not proved, and k."""
    if (around := _sign_around(h, y))[0]:
        return around
    ladder = [h]
    # If h(0) = 0, then h(y) is the integral of h' from 0 to y and has its sign if that
    # is constant. The last derivative comes first: those before it vanish at 0.
    while len(ladder) <= MAX_ORDER and number_sign(ladder[-1].subs(y, 0)) == 0:
        ladder.append(ladder[-1].diff(y))
    for rung in reversed(ladder):
        if (near := _near_zero(_terms(rung, y), NEAR_ENDS))[0]:
            return near
    return None, NEAR_ENDS[-2]


def _sign_around(h: Any, y: Any) -> tuple[int | None, int]:
    """The same with h as one term, where bounds near 0 settle it without SymPy."""
    return _near_zero([(Fraction(0), 0, _over_intervals(h, y))], NEAR_ENDS[:4])


def _near_zero(terms: list, exponents: Iterable[int]) -> tuple[int | None, int]:
    """The sign of a sum on the largest (0, 2**-k] on which it is proved, and k."""
    signs = ((_leading_sign(terms, k), k) for k in exponents)
    return next((near for near in signs if near[0]), (None, NEAR_ENDS[-2]))


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
        terms.append((a, b, _over_intervals(rest, y)))
    return terms


def _leading_sign(terms: list, k: int) -> int | None:
    """Prove the sign of a sum on (0, 2**-k], relative to its leading term near 0."""
    # Near 0 that of the least a is the greatest, and among these of the greatest b.
    # The sum is divided by y**a0 L**-b0 > 0, L = |log y|.
    a0, b0 = min((a, -b) for a, b, _ in terms)
    total = arb(0), arb(0)
    with ctx.workprec(trees.PRECISION):
        end = arb((1, -k))
        least = -end.log()  # L >= least on all of (0, 2**-k]
        try:
            for a, b, rest in terms:
                alpha, beta = a - a0, b + b0
                # y**alpha L**beta = exp(-alpha L) L**beta tends to 0 at 0, unless both
                # are 0, and falls in L once alpha L > beta; 2 is a margin. Then it is
                # at most what it is at the end.
                if alpha > 0 and beta > 0 and not least * trees.ball(alpha) > 2 * beta:
                    return None
                share = (-1) ** b * least**beta * end ** trees.ball(alpha)
                shares = _hull(share, arb(0) if alpha or beta else share)
                total = _plus(total, _times(shares, rest((arb(0), end))))
        except ValueError:
            return None
    return _common_sign(*total)


# --- Intervals near an end, where logarithms and divisors leave no finite bound -------
# An infinite end is a limit and belongs to no interval: at each y > 0 all is finite.
def _hull(*balls: arb) -> Interval:
    """The least interval that holds all numbers of some balls."""
    low, high = reduce(arb.min, balls).lower(), reduce(arb.max, balls).upper()
    # NaN, of infinity minus infinity say, compares as false with every number.
    if not low <= high:
        raise ValueError("no enclosure")
    return low, high


def _plus(a: Interval, b: Interval) -> Interval:
    return _hull(a[0] + b[0], a[1] + b[1])


def _times(a: Interval, b: Interval) -> Interval:
    # 0 times a limit is 0, as it is 0 times each of the finite numbers before it.
    return _hull(*(x * y if x != 0 != y else arb(0) for x in a for y in b))


def _exp(a: Interval) -> Interval:
    return _hull(a[0].exp(), a[1].exp())


def _log(a: Interval) -> Interval:
    if not a[1] > 0 <= a[0]:
        raise ValueError("log of a negative number")
    return _hull(*(x.log() if x > 0 else -INFINITY for x in a))


def _power(a: Interval, n: int | Interval) -> Interval:
    if not isinstance(n, int):
        return _exp(_times(n, _log(a)))
    # Of |x|, as Arb has no powers of minus infinity. Even powers are least at 0.
    ends = [abs(x) ** abs(n) * (-1 if x < 0 and n % 2 else 1) for x in a]
    low, high = _hull(*ends, *[arb(0)] * (a[0] < 0 < a[1]))
    if n > 0:
        return low, high
    # 1 / z falls on either side of 0; below 0 it tends to -inf, above to inf. That of
    # 0 itself is NaN, which has no hull.
    return _hull(
        -INFINITY if low < 0 <= high else 1 / high,
        INFINITY if low <= 0 < high else 1 / low,
    )


INTERVALS = {"+": _plus, "*": _times, "exp": _exp, "log": _log, "**": _power}


def _over_intervals(h: Any, y: Any) -> Callable[[Interval], Interval]:
    tree = trees.of_sympy(h, y)
    return trees.compiled(tree, lambda n: _hull(trees.ball(n)), INTERVALS)


@lru_cache(maxsize=1024)
def _runner(h: Any, x: Any) -> tuple[Callable[[Any], Any], int]:
    """A SymPy expression as a function of a ball, and its number of parts."""
    tree = trees.of_sympy(h, x)
    run = trees.compiled(tree, trees.ball, trees.ball_functions())
    return run, len(trees.subtrees(tree))
