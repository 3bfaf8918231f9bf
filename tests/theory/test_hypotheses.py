"""What each hypothesis of the theorems is for: the claims of notebook 05 again."""

from fractions import Fraction
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize

import qdtheory as qd

THIRD = 1 / 3


def cubic_g(x):
    return -((x - THIRD) ** 4) / 4


CUBIC = qd.SeparablePair(qd.CR, cubic_g, "cubic")
SINE = qd.SeparablePair(
    lambda x: jnp.sin(2 * (x - THIRD)), lambda x: jnp.log(jnp.cos(x - THIRD)), "sine"
)
NODE = qd.SeparablePair(
    lambda x: -jnp.exp(THIRD - x),
    lambda x: -jnp.exp(2 * (THIRD - x)) / 2 - jnp.exp(x - THIRD),
    "node",
)


# --- Two texts ----------------------------------------------------------------------

HALF = 8  # probabilities are multiples of 1 / 16
STEPS = st.lists(st.integers(1, 9), min_size=HALF, max_size=HALF)
ANY = st.lists(st.integers(-9, 9), min_size=HALF, max_size=HALF)


@pytest.mark.claim("N5.1")
@given(low_f=ANY, rises=STEPS, low_g=ANY, falls=STEPS)
def test_two_texts_make_every_rational_pair_compatible(low_f, rises, low_g, falls):
    """Any table of f and g with Theorem 1's two properties for N = 2, in integers."""
    whole = 2 * HALF
    f, g = dict(enumerate(low_f)), dict(enumerate(low_g))
    f[HALF] = g[HALF] = 0
    shared = 0
    for step, x in enumerate(range(HALF + 1, whole + 1)):
        f[x] = f[whole - x] + rises[step]
        shared -= falls[step]
        g[x] = shared - g[whole - x]
    for p, q in product(range(whole + 1), repeat=2):
        du = (q - p) * (f[p] - f[whole - p])
        dv = g[q] + g[whole - q] - g[p] - g[whole - p]
        assert not (du >= 0 and dv >= 0 and du + dv > 0), (p, q)


# --- Three texts --------------------------------------------------------------------


@pytest.mark.claim("N5.2", "N5.5")
@pytest.mark.parametrize("power", range(2, 13))
def test_only_the_cube_obeys_the_chord_law(power):
    a, b = sympy.symbols("a b")
    rows = [[1, s, -(s**power)] for s in (a, b, -a - b)]
    area = sympy.expand(sympy.Matrix(rows).det())
    assert (area == 0) == (power == 3)
    if power == 3:
        slope = sympy.cancel((b**3 - a**3) / (a - b))
        assert sympy.expand(slope + a**2 + a * b + b**2) == 0


@pytest.mark.claim("N5.3")
def test_on_three_texts_no_model_has_a_greater_weighted_sum():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(3, 0.7), 5000)
    for p in rng.dirichlet(np.ones(3), 100):
        s = p - THIRD
        w0 = -(s[0] ** 2 + s[0] * s[1] + s[1] ** 2)
        best = cubic_g(p).sum() - w0 * p @ p
        # The sums are of order 1: this is their rounding.
        assert (cubic_g(q).sum(axis=1) - w0 * q @ p <= best + 1e-15).all()


@pytest.mark.claim("N5.4")
@pytest.mark.parametrize("pair", [CUBIC, NODE, SINE], ids=lambda pair: pair.name)
def test_a_line_through_two_points_meets_the_curve_at_the_third(pair):
    def point(x):
        return np.array([pair.f(x), jax.grad(pair.g)(x)], dtype=float)

    def met(a, b, c):
        """Where the line a X + b Y + c = 0 meets the curve, as x = s + 1/3."""
        if pair is CUBIC:
            return np.roots([-b, 0, a, a * THIRD + c]) + THIRD
        if pair is NODE:
            return np.log(np.roots([-b, c, -a, b]).astype(complex)) + THIRD
        return np.arctan(np.roots([-b, c, 2 * a - b, c])) + THIRD

    rng = np.random.default_rng(1)
    for x, y, z in rng.dirichlet(np.full(3, 5.0), 30):
        (x1, y1), (x2, y2) = point(x), point(y)
        a, b = y2 - y1, x1 - x2
        third = met(a, b, -a * x1 - b * y1)
        # The roots of a cubic with two close ones lose half the digits.
        assert abs(third - z).min() <= 1e-6


def polar_search(f, g, p, num_angles=65):
    """QDisc on three texts: the best point of the curve V(Q) = V(P) by its angle.

    Seen from the uniform distribution, where V is greatest and concave, the curve
    has one point for each angle, and a linear U one maximum along it.
    """
    axes = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    scores, least = f(p), g(p).sum()
    low, high, best = 0.0, 2 * np.pi, -np.inf
    # Where the maximum is a kink, on the rim, U is off by as much as the angle.
    while high - low > 1e-11:
        angles = np.linspace(low, high, num_angles)
        d = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ axes
        near, far = np.zeros(num_angles), -1 / (3 * d.min(axis=1))
        # V at the rim first: where it is large enough, nothing lies beyond.
        for middle in [far] + [None] * 55:
            middle = (near + far) / 2 if middle is None else middle
            q = np.maximum(THIRD + middle[:, None] * d, 0)
            inside = g(q).sum(axis=1) >= least
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        u = (THIRD + near[:, None] * d) @ scores
        best, step = max(best, u.max()), angles[1] - angles[0]
        low, high = angles[u.argmax()] - step, angles[u.argmax()] + step
    return best - scores @ p


@pytest.mark.slow
@pytest.mark.claim("N5.6")
def test_three_texts_leave_nothing_to_gain():
    rng = np.random.default_rng(2)
    for p in rng.dirichlet(np.ones(3), 200):
        assert polar_search(lambda x: x, cubic_g, p) <= 1e-11
        sine = polar_search(
            lambda x: np.sin(2 * (x - THIRD)), lambda x: np.log(np.cos(x - THIRD)), p
        )
        assert sine <= 1e-11
    for p in rng.dirichlet(np.ones(3), 5):  # the search does find what there is
        expected = qd.quality_discrepancy(qd.LL_NRR, p).qdisc
        assert polar_search(np.log, lambda x: -(x**2), p) == pytest.approx(
            expected, abs=1e-10
        )


# --- Four texts, and a text of probability zero -------------------------------------


def slsqp(scores, g, slope, p, starts):
    """The best gain of quality that a general-purpose optimiser finds."""
    least = g(p).sum()
    ones = np.ones(p.size)
    limits = [
        {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": lambda q: ones},
        {"type": "ineq", "fun": lambda q: g(q).sum() - least, "jac": slope},
    ]
    gains = [0.0]
    for start in starts:
        q = minimize(
            lambda q: -(q @ scores),
            start,
            jac=lambda q: -scores,
            bounds=[(0, 1)] * p.size,
            constraints=limits,
            options={"ftol": 1e-15, "maxiter": 300},
        ).x
        if abs(q.sum() - 1) <= 1e-9 and g(q).sum() >= least - 1e-9:
            gains.append(float((q - p) @ scores))
    return max(gains)


@pytest.mark.claim("N5.7", "N5.9")
@pytest.mark.parametrize("zero", [False, True])
def test_a_fourth_text_breaks_the_cubic(zero):
    rng = np.random.default_rng(3)
    gains = []
    for p in rng.dirichlet(np.ones(3 if zero else 4), 12):
        p = np.append(p, 0.0) if zero else p
        starts = [p, *rng.dirichlet(np.ones(4), 4)]
        gain = slsqp(p, cubic_g, lambda q: -((q - THIRD) ** 3), p, starts)
        exact = qd.quality_discrepancy(CUBIC, p).qdisc
        # An error of 1e-9 in V is one of about 1e-9 / |w|, w of order .1, in U.
        assert gain == pytest.approx(exact, abs=1e-6)
        gains.append(exact)
    assert min(gains) > 0
    assert max(gains) > 0.01


@pytest.mark.claim("N5.8", "N5.9")
def test_the_miss_is_a_product():
    x, y, z = sympy.symbols("x y z")

    def slope(t):
        return -((t - sympy.Rational(1, 3)) ** 3)

    line = slope(x) + (slope(y) - slope(x)) / (y - x) * (z - x)
    miss = sympy.cancel(slope(z) - line)
    assert sympy.expand(miss - (z - x) * (z - y) * (1 - x - y - z)) == 0
    at_zero = miss.subs(z, 0)
    assert sympy.expand(at_zero - x * y * (1 - x - y)) == 0


SHAPES = [
    [0.4, 0.3, 0.2, 0.1],
    [0.35, 0.35, 0.15, 0.15],
    [0.5, 0.3, 0.2, 0.0],
    [0.6, 0.2, 0.2, 0.0],
    [0.5, 0.5, 0.0, 0.0],
    [0.3, 0.3, 0.3, 0.1],
    [0.25, 0.25, 0.25, 0.25],
    [1.0, 0.0, 0.0, 0.0],
]
FORMS = {
    qd.LL: (np.log, -np.inf),
    qd.CR: (lambda x: x, 0.0),
    qd.SE: (lambda x: -np.log(x) - 1, np.inf),
    qd.NRR: (lambda x: -2 * x, 0.0),
}


def on_frontier(pair, p):
    """The conditions of Theorem 2 at Q = P, read off the distinct values of P."""
    f, f_zero = FORMS[pair.f]
    slope, slope_zero = FORMS[pair.g]
    values = np.unique(p[p > 0])
    if values.size == 1:
        return True  # uniform on the modes: the greatest quality
    w = np.diff(slope(values)) / np.diff(f(values))
    b = slope(values[0]) - w[0] * f(values[0])
    fits = np.ptp(w) <= 1e-9 and w[0] <= 0
    if (p == 0).any() and f_zero > -np.inf:
        fits = fits and slope_zero <= w[0] * f_zero + b + 1e-12
    return bool(fits)


@pytest.mark.claim("N5.10")
@pytest.mark.parametrize("pair", [qd.LL_SE, qd.CR_NRR, qd.LL_NRR, qd.CR_SE])
@pytest.mark.parametrize("p", SHAPES, ids=str)
def test_ties_and_zeros_decide_what_a_p_can_show(pair, p):
    p = np.array(p)
    found = qd.quality_discrepancy(pair, p)
    assert (found.dominated_in is None) == on_frontier(pair, p)


# --- f beyond 1/2 -------------------------------------------------------------------


def sum_of_integrals(f, q, p):
    """D = 2/3 sum_i of the integral of f(t) - f(P_i) from P_i to Q_i."""
    areas = [
        quad(lambda t, x=x: f(t) - f(x), x, y, points=[0.5], epsabs=1e-13)[0]
        for x, y in zip(p, q, strict=True)
    ]
    return 2 / 3 * sum(areas)


@pytest.mark.claim("N5.11")
@pytest.mark.parametrize("others", [3, 5, 20])
@pytest.mark.parametrize("mode", [0.55, 0.7, 0.9])
def test_where_f_falls_the_divergence_is_negative(mode, others):
    p = np.array([mode] + [(1 - mode) / others] * others)
    t = 0.5 * (1 - mode) / others
    q = p + t * np.array([others] + [-1] * others)
    d = sum_of_integrals(lambda x: min(x, 0.75 - x / 2), q, p)
    assert d == pytest.approx(others * t * t * (2 - others) / 6, abs=1e-12)
    assert d < 0


@pytest.mark.claim("N5.12")
def test_where_f_is_flat_the_divergence_stays_positive():
    rng = np.random.default_rng(4)
    for concentration in (0.2, 1.0):
        for p, q in rng.dirichlet(np.full(4, concentration), (40, 2)):
            d = sum_of_integrals(lambda x: min(x, 0.5), q, p)
            assert d > 0
            if p.argmax() == q.argmax() and min(p.max(), q.max()) > 0.5:
                others = np.arange(4) != p.argmax()
                squares = ((q - p)[others] ** 2).sum() / 3
                assert d == pytest.approx(squares, abs=1e-12)


# --- g not concave ------------------------------------------------------------------


@pytest.mark.claim("N5.13")
def test_a_solution_of_the_condition_is_beaten_by_a_point_of_a_grid():
    def g(x):
        return -x + x * (1 - x) ** 10

    def slope(x):
        return -1 + (1 - x) ** 10 - 10 * x * (1 - x) ** 9

    scores = 1 - (1 - np.array([0.3, 0.25, 0.15, 0.12, 0.1, 0.08])) ** 10

    def model(b):
        levels = -0.01 * scores + b
        return np.array([brentq(lambda x: slope(x) - v, 0, 2 / 11) for v in levels])  # noqa: B023

    lowest = slope(2 / 11) + 0.01 * scores.max() + 1e-12
    q = model(brentq(lambda b: model(b).sum() - 1, lowest, -1.1, xtol=1e-14))
    bars = np.array([*combinations(range(20 + 5), 5)])
    ends = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), 25)])
    grid = (np.diff(ends) - 1) / 20
    better = (grid @ scores > q @ scores + 0.1) & (g(grid).sum(1) > g(q).sum())
    assert better.any()
    assert (grid[better].max(axis=1) > 2 / 11).all()


# --- Uniform P ----------------------------------------------------------------------


@pytest.mark.claim("N5.14")
@pytest.mark.parametrize(("num_texts", "k"), [(4, 20), (64, 1000)])
def test_a_uniform_p_can_be_less_diverse_at_equal_quality(num_texts, k):
    def g(x):
        return -x + x * (1 - x) ** k

    uniform = num_texts * g(Fraction(1, num_texts))
    found = qd.quality_discrepancy(
        qd.single_token_bleu_pair(1, k), np.full(num_texts, 1 / num_texts)
    )
    top = Fraction(round(1000 * float(found.q.max())), 1000)
    collapsed = g(top) + (num_texts - 1) * g((1 - top) / (num_texts - 1))
    assert collapsed > uniform
    assert found.qdisc <= 1e-15  # the rounding of a sum of order 1
    assert found.drate is None
    assert found.dominated_in == "diversity"


@pytest.mark.claim("N5.15")
@given(near=st.floats(0, 1), across=st.floats(0, 1))
def test_a_ring_whose_alternating_eigenvalue_is_negative(near, across):
    """V(P + d) - V(P) = -d'Kd; d alternates, an eigenvector, and U does not see it."""
    eigenvalue = 1 - 2 * near + across
    assume(abs(eigenvalue) > 1e-3)
    kernel = jnp.stack(
        [jnp.roll(jnp.array([1, near, across, near]), i) for i in range(4)]
    )
    pair = qd.FunctionPair(lambda q, p: q @ kernel @ p, lambda q: -(q @ kernel @ q))
    p, d = jnp.full(4, 0.25), jnp.array([1, -1, 1, -1]) / 4
    rise = float(pair.diversity(p + d) - pair.diversity(p))
    assert rise == pytest.approx(-eigenvalue / 4, abs=1e-14)
    assert float(pair.quality(p + d, p)) == pytest.approx(
        float(pair.quality(p, p)), abs=1e-14
    )


# --- n-grams ------------------------------------------------------------------------


def exact_rank(matrix, prime=2**31 - 1):
    """Rank modulo a prime: at most the rank, and here attained."""
    rows = [[int(x) % prime for x in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, prime)
        for i in range(rank + 1, len(rows)):
            if factor := rows[i][column] * inverse % prime:
                rows[i] = [
                    (x - factor * y) % prime
                    for x, y in zip(rows[i], rows[rank], strict=True)
                ]
        rank += 1
    return rank


@pytest.mark.claim("N5.16")
@pytest.mark.parametrize(("vocab_size", "length"), [(2, 4), (3, 3), (4, 3)])
def test_the_rank_by_elimination(vocab_size, length):
    space = qd.TextSpace(vocab_size=vocab_size, lengths=length)
    matrices = [qd.ngram_matrix(space, n) for n in range(1, length + 1)]
    assert [exact_rank(m) for m in matrices] == [
        vocab_size**n for n in range(1, length + 1)
    ]
    if vocab_size == 4:
        stacked = [exact_rank(np.concatenate(matrices[: n + 1])) for n in range(3)]
        assert stacked == [4, 19, 64]


@pytest.mark.claim("N5.17")
@given(sizes=st.lists(st.integers(-5, 5), min_size=3, max_size=3).filter(any))
def test_swaps_that_keep_all_bigrams_tie(sizes):
    """aba and bab have the bigrams ab and ba, both."""
    space = qd.TextSpace(vocab_size=3, lengths=3)
    q = np.full(27, 1 / 27)
    for size, (a, b) in zip(sizes, ((0, 1), (0, 2), (1, 2)), strict=True):
        q[space.index(np.array([a, b, a]))] += size / 200
        q[space.index(np.array([b, a, b]))] -= size / 200
    p = np.full(27, 1 / 27)
    pair = qd.NgramPair(space, 2)
    assert abs(float(pair.quality(q, p) - pair.quality(p, p))) <= 1e-15
    assert abs(float(pair.diversity(q) - pair.diversity(p))) <= 1e-15
    assert abs(q - p).max() > 1e-3


@pytest.mark.claim("N5.18")
@pytest.mark.parametrize(("vocab_size", "length"), [(2, 3), (2, 4), (2, 5), (3, 3)])
def test_n_grams_determine_m_grams_where_offsets_tile_the_positions(vocab_size, length):
    space = qd.TextSpace(vocab_size=vocab_size, lengths=length)
    for n, m in combinations(range(length, 0, -1), 2):
        of_n, of_m = qd.ngram_matrix(space, n), qd.ngram_matrix(space, m)
        positions = length - n + 1
        if (length - m + 1) % positions == 0:
            grams = list(product(range(vocab_size), repeat=n))
            inside = np.zeros((vocab_size**m, vocab_size**n), dtype=int)
            for column, gram in enumerate(grams):
                for offset in range(0, n - m + 1, positions):
                    digits = gram[offset : offset + m]
                    row = sum(d * vocab_size**i for i, d in enumerate(digits[::-1]))
                    inside[row, column] += 1
            assert (inside @ of_n == of_m).all()
        else:
            assert exact_rank(np.concatenate([of_n, of_m])) > vocab_size**n


# --- Slips in the proofs ------------------------------------------------------------


@pytest.mark.claim("E5.1")
def test_the_slope_of_a_shared_mass_is_odd_around_its_middle():
    x, rest = sympy.symbols("x rest", positive=True)
    c, g = sympy.Symbol("c"), sympy.Function("g")
    slope = sympy.diff(g(x) + g(c - x), x).doit()
    mirrored = slope.subs(x, c - x).doit()
    assert sympy.simplify(slope + mirrored) == 0

    def entropy(y):
        return -y * sympy.log(y)

    shared = sympy.diff(entropy(x) + entropy(c - x), x).subs(c, x + rest)
    assert sympy.simplify(shared - sympy.log(rest / x)) == 0


@pytest.mark.claim("E5.2")
@given(weights=st.lists(st.integers(1, 9), min_size=3, max_size=5))
def test_the_inverse_of_g_is_not_the_maximiser(weights):
    p = np.array(weights) / sum(weights)
    assume(np.ptp(p) > 0)

    def literal(b):
        return np.sqrt(np.maximum(0, 2 * p - b))

    q = literal(brentq(lambda b: literal(b).sum() - 1, -2, 2, xtol=1e-14))

    def psi(x):
        return (2 * x @ p - x @ x) / 3

    assert psi(p) - psi(q) > 1e-5


SHARES = st.fractions(0, 1, max_denominator=50)
POSITIVE = st.fractions(Fraction(1, 50), 5, max_denominator=50)


@pytest.mark.claim("E5.3")
@given(first=POSITIVE, second=POSITIVE, shares=st.tuples(SHARES, SHARES))
def test_two_shares_order_two_optima(first, second, shares):
    """Solve high dU + (1 - high) dV = first, low dU + (1 - low) dV = -second."""
    low, high = sorted(shares)
    assume(low < high)
    difference = (first + second) / (high - low)
    dv = first - high * difference
    du = dv + difference
    assert low * du + (1 - low) * dv == -second
    assert du > 0 > dv
