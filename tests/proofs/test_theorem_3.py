"""Theorem 3 and its divergence, by fractions, many digits, solvers and brute force."""

from fractions import Fraction
from itertools import combinations, product

import jax
import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st
from models import mixtures
from referees.conic import DIVERSITIES, most_gained
from scipy.integrate import cumulative_trapezoid, quad
from scipy.optimize import linprog, minimize
from scipy.special import rel_entr, softmax
from scipy.stats import entropy
from verdict_referee import gains_in_50_digits

import qdtheory as qd
from qdtheory.functions import as_function
from qdtheory.proofs.theorem_3 import GRID, fit_theorem_3, refute_theorem_3

RNG, X = np.random.default_rng, sympy.Symbol("x", positive=True)
# By order: f, g, and w0 and b0 of g' = w0 f + b0. Order 0 is Itakura-Saito.
ORDERS = {
    0: ("-1/x", "log(x)", "-1", "0"),
    0.5: ("(x**(-1/2) - 1)/(-1/2)", "(x - x**(1/2))/(-1/2)", "-1/2", "-1"),
    1: ("log(x)", "-x*log(x)", "-1", "-1"),
    1.5: ("(x**(1/2) - 1)*2", "(x - x**(3/2))*2", "-3/2", "-1"),
    2: ("x", "-x**2", "-2", "0"),
    3: ("(x**2 - 1)/2", "(x - x**3)/2", "-3", "-1"),
}
SYMBOLIC = {
    order: [sympy.sympify(text, locals={"x": X}) for text in texts]
    for order, texts in ORDERS.items()
}
PAIRS = {order: qd.SeparablePair(*texts[:2]) for order, texts in ORDERS.items()}
NAMED = {1: qd.functions.SE, 2: qd.functions.NRR}
NAMED |= {order: qd.Tsallis(order) for order in (0.5, 1.5, 3.0)}
MISMATCHED = qd.LL_NRR, qd.CR_SE
by_order = pytest.mark.parametrize("order", ORDERS)


def interior(rng, size) -> np.ndarray:
    return 0.95 * rng.dirichlet(np.ones(size)) + 0.05 / size


def share(order) -> float:
    """Alpha, from the weight w0."""
    w0 = float(SYMBOLIC[order][2])
    return w0 / (w0 - 1)


def psi_gap(pair, alpha, q, p) -> float:
    """Psi(P) - Psi(Q) from the library's metrics."""
    u = pair.quality(p, p) - pair.quality(q, p)
    v = pair.diversity(p) - pair.diversity(q)
    return float(alpha * u + (1 - alpha) * v)


def dominating(pair, p, models) -> int:
    u = jax.vmap(lambda q: pair.quality(q, p))(models)
    v = jax.vmap(pair.diversity)(models)
    return int(qd.dominance(u, v, pair.quality(p, p), pair.diversity(p)).either.sum())


# --- The lemma of section 5 -----------------------------------------------------------


@pytest.mark.claim("N4.8")
def test_the_example_by_hand_beats_p_up_to_16_elevenths_of_its_step():
    p, score = [Fraction(k, 64) for k in (32, 16, 8, 8)], (-1, -2, -3, -3)
    for t in (Fraction(k, 11) for k in range(1, 24)):
        q = [x + t * d / 64 for x, d in zip(p, (-2, 4, -1, -1))]
        assert sum(x * s for x, s in zip(q, score)) == Fraction(-7, 4)
        assert (sum(x * x for x in q) < sum(x * x for x in p)) == (t < Fraction(16, 11))
        # With the same LL the entropy falls by the divergence, here in bits.
        laws = np.array([q, p], float)
        fall = entropy(laws[1], base=2) - entropy(laws[0], base=2)
        assert fall == pytest.approx(entropy(*laws, base=2), abs=1e-14)
        assert fall > 0


@pytest.mark.claim("L5.1")
@pytest.mark.parametrize("seed", range(4))
def test_a_divergence_that_agrees_bars_domination(seed):
    # An optimiser raises the lesser of both gains. The diversity is a sum of waves, the
    # divergence KL(P||Q).
    rng = RNG(seed)
    p, a, c = interior(rng, 5), 5 * rng.normal(size=(5, 3)), rng.normal(size=3)

    def lesser_loss(logits, sign):
        q = softmax(logits)
        dv = (np.sin(q @ a) - np.sin(p @ a)) @ c
        return -min(-sign * (rel_entr(p, q).sum() + dv), dv)

    def best(sign):
        starts = np.log(p) + 0.1 * rng.normal(size=(4, 5))
        loss = [minimize(lesser_loss, x, (sign,), "Nelder-Mead").fun for x in starts]
        return -min(loss)

    # The optimum is P itself, where both gains are 0 up to rounding.
    assert best(sign=1) <= 1e-14
    # U = V + KL: a step that raises V raises U, and the optimiser finds one.
    assert best(sign=-1) > 1e-3


@pytest.mark.claim("L5.2")
@pytest.mark.parametrize("pair", [*MISMATCHED, qd.LL_SE], ids=lambda p: p.name)
def test_a_jumping_divergence_exists_where_p_is_optimal(pair):
    # Two values of P are always on one line, so P is on the frontier of any pair.
    rng, p = RNG(0), np.array([0.3, 0.3, 0.3, 0.1])
    # One step to each value: the steps to texts of one value tie up to rounding.
    steps = p + 1e-3 * (np.eye(4)[[0, 3]] - p)
    models = np.vstack([rng.dirichlet(np.ones(4), 300), steps])
    u = np.asarray(jax.vmap(lambda q: pair.quality(q, p))(models) - pair.quality(p, p))
    v = np.asarray(jax.vmap(pair.diversity)(models) - pair.diversity(p))
    d = 3 - np.tanh(u) - np.tanh(v)
    assert d.min() > 2
    won = (u[:, None] >= u) & (v[:, None] >= v) & ((u[:, None] > u) | (v[:, None] > v))
    assert won.sum() > 1000
    assert (d[:, None] < d)[won].all()


# --- If -------------------------------------------------------------------------------


@pytest.mark.claim("T3.2")
@by_order
def test_constants_in_exact_arithmetic(order):
    f, g, w0, b0 = SYMBOLIC[order]
    assert sympy.simplify(sympy.diff(g, X) - w0 * f - b0) == 0
    verdict = qd.check_compatibility(PAIRS[order])
    told = verdict.w0, verdict.b0, verdict.alpha
    assert told == pytest.approx((float(w0), float(b0), share(order)), rel=1e-15)
    for x in (0.1, 0.5, 0.9) if order else ():
        assert float(NAMED[order](x)) == pytest.approx(float(g.subs(X, x)), 1e-14)


@pytest.mark.claim("T3.1", "T3.4", "T3.5")
@by_order
@pytest.mark.parametrize("size", [2, 7, 40])
def test_the_sum_falls_from_p_by_the_bregman_divergence_in_25_digits(order, size):
    # The integral of f(t) - f(P_i) from P_i to Q_i is the bracket of T3.1 and, summed,
    # the named divergence of T3.4; no antiderivative is used.
    rng, alpha, exact = RNG(int(10 * order) + size), share(order), []
    p, f = interior(rng, size), sympy.lambdify(X, SYMBOLIC[order][0], "mpmath")
    d = interior(rng, size) - p
    cases = [(p, p + s * d) for s in (1e-4, -1e-4, 1.0)]
    if order:  # texts that Q or both lack; infinite for Itakura-Saito
        ends = np.eye(size + 1)[0]
        cases += [(np.append(p, 0), ends), (np.append(p / 2, 0.5), ends)]
    for x, y in cases:
        with mpmath.workdps(25):
            areas = [
                mpmath.quad(lambda t, b=b: f(t) - f(mpmath.mpf(b)), [b, a])
                for a, b in zip(y.tolist(), x.tolist(), strict=True)
                if a != b
            ]
            exact.append(alpha * sum(areas))
        # Sums of up to 40 terms, each below 100 (1 / P_i for Itakura-Saito).
        found = psi_gap(PAIRS[order], alpha, y, x)
        assert found == pytest.approx(float(exact[-1]), abs=1e-12)
    assert min(exact) > 0
    # Of two opposite steps the mean is half of the Hessian's form.
    form = alpha * (p ** (order - 2.0) * (1e-4 * d) ** 2).sum()
    assert float(exact[0] + exact[1]) == pytest.approx(form, rel=1e-3)


@pytest.mark.claim("T3.6", "T3.7")
@by_order
@pytest.mark.parametrize("size", [2, 6, pytest.param(30, marks=pytest.mark.slow)])
def test_p_is_the_optimum_of_weight_w0_and_its_tangent_bounds_every_model(order, size):
    rng, pair, alpha = RNG(8), PAIRS[order], share(order)
    p, w0 = interior(rng, size), alpha / (alpha - 1)
    best = qd.pareto_optimum(pair, p, w0)
    assert qd.frontier.kkt_residual(pair, p, best) <= 1e-10
    np.testing.assert_allclose(best.q, p, atol=1e-12)
    # The frontier's own slope at P, by differences, not w0, gives the tangent.
    ends = [qd.pareto_optimum(pair, p, w0 * (1 + s)) for s in (-1e-4, 1e-4)]
    rise = float(ends[1].diversity - ends[0].diversity)
    slope = rise / float(ends[1].quality - ends[0].quality)
    assert slope == pytest.approx(w0, rel=1e-6)
    for q in (interior(rng, size) for _ in range(50)):
        run = float(pair.quality(q, p) - pair.quality(p, p))
        height = float(pair.diversity(p)) + w0 * run - float(pair.diversity(q))
        assert height > 0
        found = psi_gap(pair, alpha, q, p)
        assert (1 - alpha) * height == pytest.approx(found, rel=1e-9)


# --- Only if --------------------------------------------------------------------------


@pytest.mark.claim("T3.8")
def test_a_step_that_gains_both_exists_iff_the_points_leave_the_line():
    # A linear program looks for a direction with two positive slopes.
    rng = RNG(9)
    for size, pair in product((4, 9), (*MISMATCHED, *PAIRS.values())):
        p = interior(rng, size)
        u = np.asarray(pair.text_quality(p))
        v = np.asarray(jax.vmap(jax.grad(pair.g))(p))
        u, v = ((x - x.mean()) / np.linalg.norm(x - x.mean()) for x in (u, v))
        best = linprog(
            [0.0] * size + [-1.0],
            np.array([[*-u, 1.0], [*-v, 1.0]]), [0, 0],
            [[1.0] * size + [0.0]], [0], bounds=[(-1, 1)] * size + [(None, None)],
        )  # fmt: skip
        gains = -best.fun > 1e-6
        assert gains == (pair in MISMATCHED)
        assert (qd.check_compatibility(pair, p).compatible is False) == gains


@pytest.mark.claim("T3.9")
def test_three_points_are_collinear_for_matched_pairs_only():
    def areas(f, g):
        points = [sympy.Rational(k, 20) for k in (1, 3, 5, 11)]
        rows = [(1, f.subs(X, t), sympy.diff(g, X).subs(X, t)) for t in points]
        return [abs(sympy.N(sympy.Matrix(x).det(), 30)) for x in combinations(rows, 3)]

    for f, g, *_ in SYMBOLIC.values():
        assert max(areas(f, g)) < 1e-25
    (ll, se, *_), (cr, nrr, *_) = SYMBOLIC[1], SYMBOLIC[2]
    assert min(areas(ll, nrr) + areas(cr, se)) > 1e-3


@pytest.mark.claim("T3.10", "T3.11")
@pytest.mark.parametrize("pair", MISMATCHED, ids=lambda p: p.name)
def test_mismatched_pairs_lose_by_a_conic_solver_and_in_50_digits(pair):
    p = interior(RNG(0), 8)
    scores, found = np.asarray(pair.text_quality(p)), qd.quality_discrepancy(pair, p)
    gain = most_gained(scores, p, DIVERSITIES[pair.name.split("-")[1]])
    assert found.qdisc > 1e-4
    assert gain == pytest.approx(found.qdisc, abs=1e-7)  # Clarabel's gap is 1e-8
    quality_range = float(scores.max() - scores.mean())
    assert found.drate == pytest.approx(found.qdisc / quality_range, rel=1e-9)
    for num_texts in (4, 5, 12):
        witness = qd.check_compatibility(pair, num_texts=num_texts).witness
        assert witness.p.size == num_texts
        gains = gains_in_50_digits(pair.f, pair.g, witness.p, witness.q)
        told = witness.quality_gain, witness.diversity_gain
        assert min(gains) > 0
        assert [*map(float, gains)] == pytest.approx(told, rel=1e-6)


# --- Which divergences are such sums --------------------------------------------------

# The divergence and, by hand, the diagonal of its Hessian in Q; of the two that are
# such sums also f.
DIVERGENCES = {
    "KL(Q||P)": (qd.kl_divergence, lambda q, p: 1 / q, np.log),
    "squared": (qd.cnd, lambda q, p: np.full(q.size, 2.0), lambda p: 2 * p),
    "KL(P||Q)": (lambda q, p: qd.kl_divergence(p, q), lambda q, p: p / q**2, None),
    "JS": (qd.jensen_shannon_divergence, lambda q, p: p / (2 * q * (p + q)), None),
}


@pytest.mark.claim("N4.1")
@pytest.mark.parametrize("name", DIVERGENCES)
def test_a_sum_has_a_hessian_free_of_p_and_differences_in_p_linear_in_q(name):
    (divergence, diagonal, f), rng = DIVERGENCES[name], RNG(10)
    zero_sum, differ = np.linalg.svd(np.ones((1, 5)))[2][1:], []
    hessian = jax.jit(jax.hessian(divergence))
    for q, *reals in 0.7 * rng.dirichlet(np.full(5, 2.0), (5, 3)) + 0.3 / 5:
        forms = [zero_sum @ np.diag(diagonal(q, p)) @ zero_sum.T for p in reals]
        for p, form in zip(reals, forms):
            found = zero_sum @ hessian(q, p) @ zero_sum.T
            np.testing.assert_allclose(found, form, rtol=1e-9, atol=1e-9)
        one, other = (form / np.linalg.norm(form) for form in forms)
        differ.append(np.linalg.norm(one - other))
    models, p = 0.8 * rng.dirichlet(np.full(5, 0.5), 60) + 0.04, interior(rng, 5)
    anchor = np.full(5, 0.2)
    gap = np.array([float(divergence(q, anchor) - divergence(q, p)) for q in models])
    # Least squares on Q alone: sum Q = 1 makes the constant a part of it.
    scores = np.linalg.lstsq(models, gap)[0]
    misfit = np.abs(models @ scores - gap).max()
    if f is None:
        assert min(differ) > 0.01
        assert misfit > 1e-3
    else:
        assert max(differ) == 0
        assert misfit <= 1e-13
        off = scores - scores.mean() - f(p) + f(p).mean()
        assert np.abs(off).max() <= 1e-11


@pytest.mark.claim("N4.3")
def test_power_divergences_by_symbolic_derivatives():
    # d2/dq2 of p phi(q / p) is q^(c - 2) p^(1 - c): free of p at c = 1 only.
    q, p, order = sympy.symbols("q p c", positive=True)
    for c in (-1, sympy.Rational(1, 2), 2, 3):
        t = q / p
        d = p * (t**c - 1 - c * (t - 1)) / (c * (c - 1))
        assert sympy.simplify(sympy.diff(d, q, 2) - q ** (c - 2) * p ** (1 - c)) == 0
    bend = sympy.diff(p * ((q / p) ** order - 1), q, 2) / (order * (order - 1))
    assert sympy.simplify(sympy.limit(bend, order, 1) - 1 / q) == 0


@pytest.mark.slow
@pytest.mark.claim("N4.4")
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "n"), [(3, 3, 2), (2, (1, 2, 3), 1)], ids=str
)
@pytest.mark.parametrize("pair", [qd.CR_NRR, qd.LL_SE], ids=lambda p: p.name)
def test_compatibility_carries_to_texts(vocab_size, lengths, n, pair):
    rng, space = RNG(13), qd.TextSpace(vocab_size, lengths)
    on_texts = qd.pairs.ngram_pair(space, n, pair)
    p = rng.dirichlet(np.ones(space.num_texts))
    models = rng.dirichlet(np.full(space.num_texts, 0.5), 300)
    assert dominating(on_texts, p, np.vstack([models, 0.9 * p + 0.1 * models])) == 0
    p_g, *q_g = (np.asarray(space.ngram_distribution(x, n)) for x in (p, *models[:20]))
    for q, grams in zip(models, q_g):
        if pair is qd.CR_NRR:
            alpha, expected = 2 / 3, ((grams - p_g) ** 2).sum() / 3
        else:
            alpha, expected = 1 / 2, entropy(grams, p_g) / 2
        assert psi_gap(on_texts, alpha, q, p) == pytest.approx(expected, abs=1e-13)
    # Quality bends between texts of one and of several tokens.
    ends = np.eye(space.num_texts)[[0, -1]] * 0.9 + 0.1 / space.num_texts
    values = [float(on_texts.quality(q, p)) for q in (*ends, ends.mean(axis=0))]
    bends = abs(values[2] - np.mean(values[:2])) > 1e-3
    assert bends == (lengths != 3)


@pytest.mark.claim("N4.6")
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 2.0), (5.0, 0.1)])
def test_pairs_of_one_weight_add_up(a, b):
    """LL-SE times a, plus b times CR with a share of NRR."""
    f = f"{a}*log(x) + {b}*x"
    half, whole = (
        qd.SeparablePair(f, f"-{a}*x*log(x) - {b}*{share}*x**2") for share in (0.5, 1)
    )
    verdict, rng = qd.check_compatibility(half), RNG(15)
    assert (verdict.compatible, verdict.w0) == (True, -1)
    assert qd.check_compatibility(whole).compatible is False
    for _ in range(20):
        q, p = interior(rng, 6), interior(rng, 6)
        parts = a * entropy(q, p) / 2 + b * ((q - p) ** 2).sum() / 4
        assert psi_gap(half, 0.5, q, p) == pytest.approx(parts, abs=1e-12)


# --- Where it breaks ------------------------------------------------------------------


@pytest.mark.claim("T3.12")
@pytest.mark.parametrize("p", [(3, 1), (4, 2, 1, 1), (2, 2, 2, 1, 1)], ids=str)
def test_weight_zero_leaves_only_the_modes(p):
    # Binary fractions, so that V is exactly equal.
    p = np.array(p) / 2 ** (len(p) // 2 + 1)
    on_mode = np.eye(p.size)[p.argmax()]
    for f, slope in product(("log(x)", "x"), (-1.0, 0.0, 2.0)):
        pair = qd.SeparablePair(f, lambda x, slope=slope: slope * x)
        assert pair.diversity(on_mode) == pair.diversity(p)
        assert dominating(pair, p, on_mode[None]) == 1


@pytest.mark.claim("T3.13")
def test_an_f_that_falls_loses_by_brute_force():
    # Plain NumPy on a grid of the simplex; the diversity is minus a sum of integrals.
    def f(x):
        return x + 0.25 * np.exp(-(((x - 0.62) / 0.01) ** 2))

    grid = np.linspace(0, 1, 20001)
    area = cumulative_trapezoid(f(grid), grid, initial=0)

    def lesser_gain(q, p):
        v = np.interp(p, grid, area).sum() - np.interp(q, grid, area).sum(-1)
        return np.minimum((q - p) @ f(p), v).max()

    x, y = np.meshgrid(np.linspace(0.62, 0.64, 81), np.linspace(0.26, 0.31, 81))
    q = np.stack([x, y, 1 - x - y], axis=-1).reshape(-1, 3)
    assert lesser_gain(q, np.array([0.627, 0.3, 0.073])) > 1e-5
    # Where f rises on all of the way from P to Q, nothing is gained.
    q = RNG(17).dirichlet(np.ones(3), 4000)
    safe = lesser_gain(q[q.max(axis=1) < 0.6], np.array([0.5, 0.3, 0.2]))
    assert safe <= 1e-9  # the integrals' error


@pytest.mark.claim("T3.14")
@pytest.mark.parametrize("size", [2, 5])
def test_zeros_in_p(size):
    rng = RNG(18)
    p = np.r_[interior(rng, size), 0.0]
    on_mode = np.eye(size + 1)[[p.argmax()]]
    inside = np.c_[rng.dirichlet(np.ones(size), 300), np.zeros(300)]
    models = np.vstack([on_mode, rng.dirichlet(np.ones(size + 1), 300), inside])
    assert [dominating(PAIRS[order], p, models) for order in NAMED] == [0] * 5
    assert dominating(PAIRS[0], p, on_mode) == 1
    assert float(PAIRS[0].diversity(p)) == -np.inf


@pytest.mark.claim("N0.6")
def test_better_in_both_is_closer_under_ll_se():
    # Every distribution in twentieths, against every other one.
    p, grid = np.array([0.5, 0.3, 0.2]), mixtures(3, 20)
    grid = grid[grid.min(axis=1) > 0]
    u, v = grid @ np.log(p), np.asarray(entropy(grid, axis=1))
    better = (u[:, None] > u + 1e-12) & (v[:, None] > v + 1e-12)
    divergence = np.asarray(entropy(grid, np.tile(p, (len(grid), 1)), axis=1))
    winner, loser = np.nonzero(better)
    assert winner.size > 1000
    assert (divergence[winner] < divergence[loser]).all()


def sum_of_integrals(f, q, p):
    """D = 2/3 sum_i of the integral of f(t) - f(P_i) from P_i to Q_i."""
    areas = [
        quad(lambda t, x=x: f(t) - f(x), x, y, points=[0.5], epsabs=1e-13)[0]
        for x, y in zip(p, q, strict=True)
    ]
    return 2 / 3 * sum(areas)


@pytest.mark.claim("N5.11", "N5.12")
@pytest.mark.parametrize("others", [3, 5, 20])
def test_the_divergence_is_negative_where_f_falls_and_not_where_it_is_flat(others):
    rng = RNG(4)
    for mode in (0.55, 0.7, 0.9):
        p = np.r_[mode, np.full(others, (1 - mode) / others)]
        t = 0.5 * (1 - mode) / others
        q = p + t * np.array([others] + [-1] * others)
        falling = sum_of_integrals(lambda x: min(x, 0.75 - x / 2), q, p)
        assert falling == pytest.approx(others * t * t * (2 - others) / 6, abs=1e-12)
    for p, q in rng.dirichlet(np.full(4, 1 / others), (40, 2)):
        flat = sum_of_integrals(lambda x: min(x, 0.5), q, p)
        assert flat > 0
        if p.argmax() == q.argmax() and min(p.max(), q.max()) > 0.5:
            squares = ((q - p)[np.arange(4) != p.argmax()] ** 2).sum() / 3
            assert flat == pytest.approx(squares, abs=1e-12)


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
    assert low * (dv + difference) + (1 - low) * dv == -second
    assert dv + difference > 0 > dv


# --- Fits and refutations -------------------------------------------------------------


REFUTED = [
    ("log(x)", "-x**2", "g''/f' differs between x = 137/1000 and x = 207/500"),
    ("x", "-x**2 + 1e-20*x**3", "g''/f' differs between"),
    ("-x", "-x**2", "f falls at x = 137/1000"),
    ("x", "x**2", "g is convex at x = 137/1000"),
    # The four points show nothing.
    ("x", "-x**2/2 + ((x - 0.137)*(x - 0.414)*(x - 0.691)*(x - 0.953))**3", ""),
]


@pytest.mark.parametrize(("f", "g", "why"), REFUTED)
def test_refutations_by_intervals(f, g, why):
    found = refute_theorem_3(qd.Expression(f), qd.Expression(g)) or ""
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_fit_reports_the_deviation():
    flat = as_function(lambda x: 0 * x, "h")
    functions = qd.functions.LL, qd.functions.SE, qd.functions.NRR, flat
    log, shannon, repetition, flat = (as_function(h, "h").jet(GRID) for h in functions)
    fit = fit_theorem_3(log, shannon)
    assert (fit.w0, fit.b0) == pytest.approx((-1, -1), rel=1e-15)
    assert (fit.residual <= 1e-12, fit.violation) == (True, None)
    assert fit_theorem_3(log, repetition).residual > 0.1
    assert fit_theorem_3(flat, repetition).residual == np.inf


def test_numbers_beyond_all_fractions_take_no_time():
    huge = "exp(1e-3**-2.5 * x**-2.5)"
    for f, g in (("exp(x)", "exp(exp(x)*10**7)"), (huge, "log(x)")):
        assert "overflows" in qd.check(f, g).reason
    for g in ("-exp(x + 1000)", "-exp(x - 1000)"):
        assert qd.check("exp(x)", g).compatible


@pytest.mark.parametrize(
    ("f", "g", "word"),
    [("log(x)", "2*x + 1", "g is linear"), ("3", "-x**2", "f is flat")],
)
def test_a_metric_in_which_all_models_are_equal_is_named(f, g, word):
    verdict = qd.check_compatibility(qd.SeparablePair(f, g))
    assert verdict.compatible is None
    assert word in verdict.reason
