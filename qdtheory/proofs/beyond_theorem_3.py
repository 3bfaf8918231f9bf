r"""Beyond Theorem 3: pairs that are compatible still, and P that are likely beaten.

Still compatible are some pairs with a nonmonotone f, or with two or three texts.

Let $g' = w_0 f + b_0$ with $w_0 < 0$ and $F' = f$. Then, up to constants,
$V = w_0 \Phi$ with $\Phi(Q) = \sum_i F(Q_i)$, and
$U(Q) - U(P) = \nabla\Phi(P) \cdot (Q - P)$. So Q beats P iff $\Phi$ increases initially
along the segment from P to Q and is lower at its end. No P is beaten iff this never
happens, that is, iff $\Phi$ is *quasiconvex* on the simplex. Theorem 3 requires more, a
convex $\Phi$, hence f increasing on (0, 1).
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.proofs.shape import is_strictly_concave
from qdtheory.proofs.signs import find_peak, find_sign, is_zero, number_sign, sign_of
from qdtheory.proofs.theorem_3 import EXACT_POINTS, GRID, Functions
from qdtheory.support.numbers import TextVector

NUM_SAMPLES = 64
# Total number of probabilities drawn, so that many texts do not take minutes.
MAX_DRAWN = 2**18
# Random P tried before those that a formula suggests, which take longer to find.
NUM_FIRST = 4


def keeps_order_with_one_text(f: Expression) -> bool:
    r"""Prove that $\sum_i F(Q_i)$ is strictly pseudoconvex, although f may decrease.

    Let f' > 0 on (0, 1/2], so that only one text can lie where f falls. Let z be f(0)
    or $-\infty$, and write $\psi = (f - z)^2 / f'$ (for $z = -\infty$: $1 / f'$).
    Suppose that $\psi(x) / x$ does not fall on (0, 1/2], and that
    $f'(1 - x) (f(x) - z)^2 + f'(x) (f(1 - x) - z)^2 \ge 0$ on (1/2, 1) (for
    $z = -\infty$: $f'(1 - x) + f'(x) \ge 0$), one of the two strictly. Then for
    $g' = w_0 f + b_0$, $w_0 < 0$, every interior P of three texts or more is
    Pareto-optimal.

    Proof. At Q let $a = -f'(Q_1) > 0$, and let d be zero-sum with
    $\sum_i f(Q_i) d_i = 0$. Then $\sum_{i > 1} (f(Q_i) - z) d_i = -(f(Q_1) - z) d_1$
    (for $-\infty$: $\sum_{i > 1} d_i = -d_1$). By Cauchy and Schwarz
    $(f(Q_1) - z)^2 d_1^2 \le \sum_{i > 1} f'(Q_i) d_i^2 \cdot \sum_{i > 1} \psi(Q_i)$,
    and the last sum is at most $\psi(1 - Q_1)$, as $\psi(x) / x$ does not fall; it is
    less if that rises, there being two such texts. So $\sum_i f'(Q_i) d_i^2 > 0$ unless
    d = 0. Along any segment every critical point of $\Phi$ is then a strict minimum, so
    there is one at most: where $\Phi$ does not fall at first, it rises to the end. A Q
    of no less quality than P has less diversity. ∎

    For finite f(0) and f'(0) the last condition, as $\ge 0$, is necessary too if no P
    of any number of texts is to be beaten. With texts of x, nearly 1 - x, and m that
    share the rest, $-f'(x)$ may not exceed the least of $\sum_{i > 1} f'(Q_i) d_i^2$
    for $d_1 = -1$, which tends to $(f(x) - z)^2 / \psi(1 - x)$ as m grows.

    >>> keeps_order_with_one_text(Expression("1.8*x - x**2"))
    True
    >>> keeps_order_with_one_text(Expression("x - 3*x**4"))
    False
    """
    x, (score, slope, curvature) = variable(), f.derivatives()
    # A formula on (0, 1/2) is proved on (0, 1) with x / 2 for x, one on (1/2, 1) with
    # (1 + x) / 2.
    if not _holds(slope.subs(x, x / 2), x, 1, strict=True):
        return False
    at_zero = score.subs(x, 0)
    # For z = -infinity psi / x = 1 / (x f') grows iff (x f')' <= 0.
    cases = [((x * slope).diff(x) * -1, slope.subs(x, 1 - x) + slope)]
    if number_sign(at_zero) is not None:
        rise = score - at_zero
        # (psi / x)' = (f - z) [f' (2 x f' - (f - z)) - x (f - z) f''] / (x f')^2, where
        # f > z as f' > 0.
        grows = slope * (2 * x * slope - rise) - x * rise * curvature
        cases.append((grows, mirrored_curvature(f)))
    for grows, mirrored in cases:
        first = sign_of(grows.subs(x, x / 2), x)
        if first.value not in (0, 1):
            continue
        second = sign_of(mirrored.subs(x, (1 + x) / 2), x)
        strict = first.value == 1 or (second.value == 1 and second.strict)
        if second.value in (0, 1) and strict:
            return True
    return False


def mirrored_curvature(f: Expression) -> Any:
    r"""The formula $f'(1 - x) (f(x) - f(0))^2 + f'(x) (f(1 - x) - f(0))^2$.

    Where it is negative at an x above 1/2, some P is beaten that has texts of x and
    nearly 1 - x, and enough others; see `keeps_order_with_one_text`.
    """
    x, (score, slope, _) = variable(), f.derivatives()
    rise = score - score.subs(x, 0)
    return slope.subs(x, 1 - x) * rise**2 + slope * rise.subs(x, 1 - x) ** 2


def orders_two_texts(f: Expression, g: Expression) -> bool:
    r"""Prove that for two texts quality and diversity always move oppositely.

    If $f(t) > f(1 - t)$ for t in (1/2, 1), and $g(t) + g(1 - t)$ falls strictly there,
    every interior P = (t, 1 - t) is Pareto-optimal: from t up quality rises and
    diversity falls; down to 1 - t diversity rises and quality falls; beyond, both fall.

    >>> orders_two_texts(Expression("1 - (1 - x)**5"), Expression("-x**2"))
    True
    >>> orders_two_texts(Expression("x - x**2"), Expression("-x**2"))
    False
    """
    x, score, slope = variable(), f.derivatives()[0], g.derivatives()[1]
    # t = (1 + x) / 2 runs from 1/2 to 1 as x does from 0 to 1. The derivative of
    # g(t) + g(1 - t) is g'(t) - g'(1 - t).
    likely, other = (1 + x) / 2, (1 - x) / 2
    rise = score.subs(x, likely) - score.subs(x, other)
    fall = slope.subs(x, likely) - slope.subs(x, other)
    return _holds(rise, x, 1, strict=True) and _holds(fall, x, -1)


@lru_cache(maxsize=64)
def orders_three_texts(f: Expression, g: Expression) -> bool:
    r"""Prove that for three texts $(f(P_i), g'(P_i))$ lie on a decreasing line.

    Then the gradient of $V - w U$ at P is constant, with w < 0 the slope of that line.
    If g is strictly concave, every P is its unique maximiser.

    >>> orders_three_texts(Expression("x"), Expression("-(x - 1/3)**4"))
    True
    >>> orders_three_texts(Expression("x"), Expression("-x**4"))
    False
    """
    import sympy

    x, (a, b) = variable(), sympy.symbols("a b", positive=True)
    (score, rise, _), slope = f.derivatives(), g.derivatives()[1]
    # (f, g') at a, b and 1 - a - b is on one line iff two differences are parallel.
    df = [score.subs(x, t) - score.subs(x, a) for t in (b, 1 - a - b)]
    dg = [slope.subs(x, t) - slope.subs(x, a) for t in (b, 1 - a - b)]
    # Refuting it at one P is faster than expanding.
    at = {a: sympy.Rational(2, 13), b: sympy.Rational(4, 13)}
    cross = df[0] * dg[1] - df[1] * dg[0]
    if number_sign(cross.subs(at)) in (1, -1) or not is_zero(cross):
        return False
    # f increases and g' falls, so the line does.
    return _holds(rise, x, 1) and is_strictly_concave(g)


def _holds(h: Any, x: Any, value: int, *, strict: bool = False) -> bool:
    sign = sign_of(h, x)
    return sign.value == value and (sign.strict or not strict)


# --- P at which a pair is likely to be beaten, if it is at all ------------------------
def random_points(num_texts: int) -> Iterator[TextVector]:
    """Draw up to 64 interior P, from nearly uniform to peaked."""
    rng = np.random.default_rng(0)
    num_samples = np.clip(MAX_DRAWN // num_texts, 1, NUM_SAMPLES)
    # In turn, so that a few draws already hold every kind.
    for concentration in np.resize([3.0, 1.0, 10.0, 0.5], num_samples):
        draw = rng.dirichlet(np.full(num_texts, concentration)) + 1e-6
        yield draw / draw.sum()


def likely_points(functions: Functions, num_texts: int) -> Iterator[TextVector]:
    """Generate interior P for a separable pair that no theorem shows compatible.

    First those with a text where f decreases or g is convex on the grid, then random
    ones; for formulas also those with a text where ball arithmetic finds a fault.
    """
    wrong = GRID[(functions.f.slope <= 0) | (functions.g.curvature >= 0)]
    # A fault shows only at a P with a text there. Eight places cover a wide one.
    rng = np.random.default_rng(1)
    for i in np.linspace(0, wrong.size - 1, 8 if wrong.size else 0).astype(int):
        x = float(wrong[i])
        yield from (_drawn(num_texts, rng, x) for _ in range(4))
        if x > 0.5 and num_texts > 3:
            # The least that two texts of one sum leave to the others, see
            # `keeps_order_with_one_text`.
            yield _drawn(num_texts, rng, x, 0.99 * (1 - x))
    if (x := _least_curved(functions)) is not None and num_texts > 2:
        yield _drawn(num_texts, rng, x, 0.99 * (1 - x))
    points = random_points(num_texts)
    if functions.formulas is not None and functions.smooth:
        yield from islice(points, NUM_FIRST)
        yield from _at_features(*functions.formulas, num_texts)
    yield from points


def _at_features(f: Expression, g: Expression, num_texts: int) -> Iterator[np.ndarray]:
    """Generate P where f falls, g is convex or (f, g') is far from a line."""
    x, (score, rise, _) = variable(), f.derivatives()
    _, slope, curvature = g.derivatives()
    fall = find_sign(rise, x, -1)
    features = [fall, find_sign(curvature, x, 1)]
    # Where (f, g') is farthest from the line through two ordinary points.
    a, b = EXACT_POINTS[1:3]
    run = score.subs(x, b) - score.subs(x, a)
    if number_sign(run) in (1, -1):
        climb = slope.subs(x, b) - slope.subs(x, a)
        off = slope - slope.subs(x, a) - climb / run * (score - score.subs(x, a))
        features += find_peak(off, x)
    rng = np.random.default_rng(2)
    for feature in filter(None, features):
        at = float(feature)
        yield from (_drawn(num_texts, rng, at) for _ in range(4))
        if feature == fall and 2 * feature < 1 and num_texts > 2:
            # Put two texts there: separating them gains diversity at no cost in U.
            yield _drawn(num_texts, rng, at, at)
    if fall is None or 2 * fall <= 1 or num_texts < 3:
        return
    if number_sign(score.subs(x, 0)) is not None:
        at = find_sign(mirrored_curvature(f).subs(x, (1 + x) / 2), x, -1)
        if at is not None:
            likely = float(1 + at) / 2
            yield _drawn(num_texts, rng, likely, 0.99 * (1 - likely))


def _least_curved(functions: Functions) -> float | None:
    """The likeliest x above 1/2 of the grid for two texts at x and nearly 1 - x."""
    even = GRID >= 1e-3  # from here on the reverse of the grid is 1 - x
    value, slope = functions.f.value[even], functions.f.slope[even]
    rise = value - functions.f.value[0]
    with np.errstate(all="ignore"):
        # The least sum of f'(P_i) d_i^2, see `keeps_order_with_one_text`.
        curved = slope + slope[::-1] * (rise / rise[::-1]) ** 2
    curved = np.where((GRID[even] > 0.5) & np.isfinite(curved), curved, np.inf)
    return float(GRID[even][curved.argmin()]) if curved.min() < 0 else None


def _drawn(num_texts: int, rng: np.random.Generator, *first: float) -> np.ndarray:
    """Draw a P with texts of these probabilities, the others sharing the rest."""
    rest = rng.dirichlet(np.ones(num_texts - len(first))) + 1e-6
    return np.r_[first, (1 - sum(first)) * rest / rest.sum()]
