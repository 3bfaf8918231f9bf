"""Theorem 3 and its divergence, by fractions, many digits, solvers and brute force."""

from fractions import Fraction
from itertools import combinations, product

import jax
import jax.numpy as jnp
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

RNG = np.random.default_rng


def beta_pair(a) -> qd.SeparablePair:
    return qd.SeparablePair(f"(x**({a - 1}) - 1)/({a - 1})", qd.Tsallis(a))


ITAKURA_SAITO = qd.SeparablePair("-1/x", "log(x)", "Itakura-Saito")
ORDERS = {
    0: ITAKURA_SAITO,
    0.5: beta_pair(0.5),
    1: qd.LL_SE,
    1.5: beta_pair(1.5),
    2: qd.CR_NRR,
    3: beta_pair(3.0),
}
SYMBOLIC = {  # f, g, w0, b0 as text; x is positive
    0: ("-1/x", "log(x)", -1, 0),
    0.5: ("(x**(-1/2) - 1)/(-1/2)", "(x - x**(1/2))/(-1/2)", "-1/2", -1),
    1: ("log(x)", "-x*log(x)", -1, -1),
    1.5: ("(x**(1/2) - 1)*2", "(x - x**(3/2))*2", "-3/2", -1),
    2: ("x", "-x**2", -2, 0),
    3: ("(x**2 - 1)/2", "(x - x**3)/2", -3, -1),
}
by_order = pytest.mark.parametrize("order", ORDERS)


def interior(rng, size) -> np.ndarray:
    return 0.95 * rng.dirichlet(np.ones(size)) + 0.05 / size


def share(order) -> float:
    """Alpha, from the weight w0 = -a; -1 for Itakura-Saito."""
    w0 = {0: -1.0}.get(order, -float(order))
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


# -- the lemma of section 5 ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("L5.1")
@pytest.mark.parametrize("seed", range(20))
def test_a_divergence_that_agrees_bars_domination(seed):
    # Not by drawing models: an optimiser raises the lesser of both gains. Its
    # diversity is a sum of waves, its divergence KL(P||Q).
    rng = RNG(seed)
    p, a, c = interior(rng, 5), 5 * rng.normal(size=(5, 3)), rng.normal(size=3)

    def gains(logits, sign):
        q = softmax(logits)
        dv = (np.sin(q @ a) - np.sin(p @ a)) @ c
        du = -sign * rel_entr(p, q).sum() - dv * sign
        return min(du, dv)

    def best(sign):
        return max(
            -minimize(
                lambda x: -gains(x, sign),
                np.log(p) + 0.1 * rng.normal(size=5),
                method="Nelder-Mead",
            ).fun
            for _ in range(4)
        )

    # The optimum is P itself, where both gains are 0 up to rounding.
    assert best(sign=1) <= 1e-14
    # U = V + KL: a step that raises V raises U, and the optimiser finds one.
    assert best(sign=-1) > 1e-3


@pytest.mark.claim("L5.2")
@pytest.mark.parametrize("pair", [qd.LL_NRR, qd.CR_SE, qd.LL_SE], ids=lambda p: p.name)
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
    for i, j in product(range(len(d)), repeat=2):
        if u[i] >= u[j] and v[i] >= v[j] and (u[i], v[i]) != (u[j], v[j]):
            assert d[i] < d[j]


# -- if ------------------------------------------------------------------------------


@pytest.mark.claim("T3.2")
@by_order
def test_constants_in_exact_arithmetic(order):
    x = sympy.Symbol("x", positive=True)
    *functions, w0, b0 = SYMBOLIC[order]
    f, g = (sympy.sympify(text, locals={"x": x}) for text in functions)
    w0, b0 = sympy.sympify(w0), sympy.sympify(b0)
    assert sympy.simplify(sympy.diff(g, x) - w0 * f - b0) == 0
    assert float(w0 / (w0 - 1)) == pytest.approx(share(order), rel=1e-15)
    # The text is the pair's f and g.
    for h, text in zip((ORDERS[order].f, ORDERS[order].g), (f, g), strict=True):
        for point in (0.1, 0.5, 0.9):
            assert float(h(point)) == pytest.approx(float(text.subs(x, point)), 1e-14)


@pytest.mark.claim("T3.1", "T3.4")
@by_order
@pytest.mark.parametrize("size", [2, 7, 40])
def test_sum_is_the_bregman_divergence_in_25_digits(order, size):
    # The integral of f(t) - f(P_i) from P_i to Q_i is the bracket of T3.1 and, summed,
    # the named divergence of T3.4; no antiderivative is used.
    rng, alpha = RNG(int(10 * order) + size), share(order)
    p = interior(rng, size)
    f = {0: lambda t: -1 / t, 1: mpmath.log, 2: lambda t: t}.get(
        order, lambda t: (t ** (mpmath.mpf(order) - 1) - 1) / (mpmath.mpf(order) - 1)
    )
    cases = [(p, p + s * (interior(rng, size) - p)) for s in (1.0, 1e-3)]
    if order:  # texts that Q or both lack; infinite for Itakura-Saito
        ends = np.eye(size + 1)[0]
        cases += [(np.append(p, 0), ends), (np.append(p / 2, 0.5), ends)]
    for p, q in cases:
        with mpmath.workdps(25):
            exact = mpmath.mpf(0)
            for a, b in zip(q.tolist(), p.tolist(), strict=True):
                if a != b:
                    start = f(mpmath.mpf(b))
                    exact += mpmath.quad(lambda t, start=start: f(t) - start, [b, a])
        found = psi_gap(ORDERS[order], alpha, q, p)
        # Sums of up to 40 terms, each below 100 (1 / P_i for Itakura-Saito).
        assert found == pytest.approx(alpha * float(exact), abs=1e-12)


@pytest.mark.claim("T3.3")
@by_order
def test_the_sum_is_greatest_at_p_alone(order):
    # An optimiser that starts elsewhere ends at P.
    rng, pair, alpha = RNG(5), ORDERS[order], share(order)
    for _ in range(3):
        p = interior(rng, 5)

        def loss(logits, p=p):
            q = jax.nn.softmax(logits)
            return -alpha * pair.quality(q, p) - (1 - alpha) * pair.diversity(q)

        slopes = jax.jit(jax.value_and_grad(loss))
        found = minimize(slopes, rng.normal(size=5), jac=True, tol=1e-12)
        # A quadratic minimum is located to the root of the rounding.
        assert np.abs(softmax(found.x) - p).max() <= 1e-5


@pytest.mark.claim("T3.5")
@by_order
def test_hessian_of_the_divergence_at_p(order):
    rng, alpha = RNG(6), share(order)
    for _ in range(5):
        p = interior(rng, 6)
        zero_sum = np.linalg.svd(np.ones((1, 6)))[2][1:]
        pair = ORDERS[order]

        def along(t, p=p, pair=pair, zero_sum=zero_sum):
            q = p + t @ zero_sum
            return -alpha * pair.quality(q, p) - (1 - alpha) * pair.diversity(q)

        form = alpha * zero_sum @ np.diag(p ** (order - 2.0)) @ zero_sum.T
        hessian = jax.hessian(along)(jnp.zeros(5))
        np.testing.assert_allclose(hessian, form, rtol=1e-9, atol=1e-9 * form.max())


@pytest.mark.slow
@pytest.mark.claim("T3.6")
@by_order
@pytest.mark.parametrize("size", [2, 30])
def test_p_meets_the_conditions_of_weight_w0(order, size):
    p, alpha = interior(RNG(7), size), share(order)
    w0 = alpha / (alpha - 1)
    pair = ORDERS[order]
    slope = np.asarray(jax.vmap(jax.grad(pair.g))(p))
    offset = slope - w0 * np.asarray(pair.text_quality(p))
    assert np.ptp(offset) <= 1e-12 * np.abs(slope).max()
    assert offset[0] == pytest.approx(SYMBOLIC[order][3], abs=1e-11)
    o = qd.pareto_optimum(pair, p, w0)
    assert qd.frontier.kkt_residual(pair, p, o) <= 1e-10
    np.testing.assert_allclose(o.q, p, atol=1e-12)


@pytest.mark.claim("T3.7")
@by_order
def test_the_tangent_at_p_bounds_every_model(order):
    # The frontier's own slope at P, by differences, not w0, gives the tangent.
    rng, pair, alpha = RNG(8), ORDERS[order], share(order)
    p = interior(rng, 6)
    w0 = alpha / (alpha - 1)
    ends = [qd.pareto_optimum(pair, p, w0 * (1 + s)) for s in (-1e-4, 1e-4)]
    rise = float(ends[1].diversity - ends[0].diversity)
    slope = rise / float(ends[1].quality - ends[0].quality)
    assert slope == pytest.approx(w0, rel=1e-6)
    for q in rng.dirichlet(np.ones(6), 50) * 0.95 + 0.05 / 6:
        run = float(pair.quality(q, p) - pair.quality(p, p))
        height = float(pair.diversity(p)) + w0 * run - float(pair.diversity(q))
        assert height > 0
        found = psi_gap(pair, alpha, q, p)
        assert (1 - alpha) * height == pytest.approx(found, rel=1e-9)


# -- only if -------------------------------------------------------------------------


@pytest.mark.claim("T3.8")
def test_a_step_that_gains_both_exists_iff_the_points_leave_the_line():
    # A linear program looks for a direction with two positive slopes.
    rng = RNG(9)
    for size, pair in product((4, 9), (qd.LL_NRR, qd.CR_SE, *ORDERS.values())):
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
        assert gains == (pair in (qd.LL_NRR, qd.CR_SE))
        assert (qd.check_compatibility(pair, p).compatible is False) == gains


@pytest.mark.claim("T3.9")
def test_three_points_are_collinear_for_matched_pairs_only():
    x = sympy.Symbol("x", positive=True)
    points = [sympy.Rational(k, 20) for k in (1, 3, 5, 11)]

    def determinants(f, g):
        rows = [(1, f.subs(x, t), sympy.diff(g, x).subs(x, t)) for t in points]
        for three in combinations(rows, 3):
            yield sympy.N(sympy.Matrix(three).det(), 30)

    f, g = sympy.log(x), -x * sympy.log(x)
    for order in SYMBOLIC:
        matched = [sympy.sympify(t, locals={"x": x}) for t in SYMBOLIC[order][:2]]
        assert max(abs(d) for d in determinants(*matched)) < 1e-25
    for mismatched in ((f, -(x**2)), (x, g)):
        assert min(abs(d) for d in determinants(*mismatched)) > 1e-3


@pytest.mark.claim("T3.10")
@pytest.mark.parametrize("pair", [qd.LL_NRR, qd.CR_SE], ids=lambda p: p.name)
def test_discrepancy_of_mismatched_pairs_by_a_conic_solver(pair):
    p = RNG(0).random(8)
    p = p / p.sum()
    scores = np.asarray(pair.text_quality(p))
    gain = most_gained(scores, p, DIVERSITIES[pair.name.split("-")[1]])
    result = qd.quality_discrepancy(pair, p)
    assert result.qdisc > 1e-4
    assert gain == pytest.approx(result.qdisc, abs=1e-7)  # Clarabel's gap is 1e-8
    quality_range = float(scores.max() - scores.mean())
    assert result.drate == pytest.approx(result.qdisc / quality_range, rel=1e-9)


@pytest.mark.claim("T3.11")
@pytest.mark.parametrize("num_texts", [4, 5, 12])
@pytest.mark.parametrize("pair", [qd.LL_NRR, qd.CR_SE], ids=lambda p: p.name)
def test_witnesses_against_mismatched_pairs_hold_in_50_digits(pair, num_texts):
    witness = qd.check_compatibility(pair, num_texts=num_texts).witness
    assert witness.p.size == num_texts
    gains = gains_in_50_digits(pair.f, pair.g, witness.p, witness.q)
    assert min(gains) > 0
    told = witness.quality_gain, witness.diversity_gain
    assert [*map(float, gains)] == pytest.approx(told, rel=1e-6)


# -- which divergences are such sums -------------------------------------------------


def random_triples(rng) -> np.ndarray:
    return 0.7 * rng.dirichlet(np.full(5, 2.0), (5, 3)) + 0.3 / 5


HESSIANS = {  # diagonals, by hand
    "KL(Q||P)": (qd.kl_divergence, lambda q, p: 1 / q),
    "squared": (qd.cnd, lambda q, p: np.full(q.size, 2.0)),
    "KL(P||Q)": (lambda q, p: qd.kl_divergence(p, q), lambda q, p: p / q**2),
    "Jensen-Shannon": (
        qd.jensen_shannon_divergence,
        lambda q, p: p / (2 * q * (p + q)),
    ),
}


def mauve(q, p) -> float:
    """The area under the divergence curve by adaptive quadrature."""

    def point(t):
        r = t * p + (1 - t) * q
        return [np.exp(-5 * entropy(x, r)) for x in (q, p)]

    def speed(t):
        # dx/dt by hand: d KL(Q || R) / dt = -sum Q (P - Q) / R.
        r = t * p + (1 - t) * q
        x, y = point(t)
        return y * 5 * x * -(q * (p - q) / r).sum()

    inner = quad(speed, 0, 1, epsabs=1e-13, epsrel=1e-12)[0]
    # The triangles up to the extreme points (1, 0) and (0, 1).
    return inner + point(1.0)[0] * (point(1.0)[1] + 1) / 2


@pytest.mark.slow
@pytest.mark.claim("N4.1")
@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_by_hand(name):
    divergence, diagonal = HESSIANS[name]
    zero_sum = np.linalg.svd(np.ones((1, 5)))[2][1:]
    differ = []
    for q, *reals in random_triples(RNG(10)):
        forms = []
        for p in reals:
            hessian = jax.hessian(lambda t, q=q, p=p: divergence(q + t @ zero_sum, p))
            form = zero_sum @ np.diag(diagonal(q, p)) @ zero_sum.T
            np.testing.assert_allclose(
                hessian(jnp.zeros(4)), form, rtol=1e-9, atol=1e-9
            )
            forms.append(form / np.linalg.norm(form))
        differ.append(np.linalg.norm(forms[0] - forms[1]))
    if name in ("KL(Q||P)", "squared"):
        assert max(differ) == 0
    else:
        assert min(differ) > 0.01


@pytest.mark.claim("N4.1")
def test_curvature_of_mauve_depends_on_p():
    assert mauve(np.array([0.4, 0.6]), np.array([0.4, 0.6])) == pytest.approx(1)
    ratios = []
    for q, *reals in random_triples(RNG(11)):
        curvatures = []
        for p in reals:
            ways = np.eye(5)[:2] - np.eye(5)[[2, 3]]
            at_q = 2 * mauve(q, p)
            around = [[mauve(q + s * way, p) for s in (-1e-3, 1e-3)] for way in ways]
            curvatures.append([sum(ends) - at_q for ends in around])
        a, b = np.array(curvatures)
        ratios.append(np.ptp(a / b) / np.abs(a / b).max())
    # Were the Hessians multiples of each other, the ratio would not vary.
    assert min(ratios) > 0.01


@pytest.mark.claim("N4.2")
def test_difference_in_p_is_linear_in_q_for_the_sums_only():
    rng, anchor = RNG(12), np.full(5, 0.2)
    for name, (divergence, _) in HESSIANS.items():
        p = interior(rng, 5)
        models = 0.8 * rng.dirichlet(np.full(5, 0.5), 60) + 0.04
        gap = np.array(
            [float(divergence(q, anchor) - divergence(q, p)) for q in models]
        )
        # Least squares on Q alone: sum Q = 1 makes the constant a part of it.
        scores, *_ = np.linalg.lstsq(models, gap)
        misfit = np.abs(models @ scores - gap).max()
        if name in ("KL(Q||P)", "squared"):
            assert misfit <= 1e-13
            f = {"KL(Q||P)": np.log(p), "squared": 2 * p}[name]
            np.testing.assert_allclose(
                scores - scores.mean(), f - f.mean(), rtol=1e-11, atol=1e-12
            )
        else:
            assert misfit > 1e-3


@pytest.mark.claim("N4.3")
def test_power_divergences_by_symbolic_derivatives():
    # d2/dq2 of p phi(q / p) is q^(c - 2) p^(1 - c): free of p at c = 1 only.
    q, p = sympy.symbols("q p", positive=True)
    for c in (-1, sympy.Rational(1, 2), 2, 3):
        t = q / p
        d = p * (t**c - 1 - c * (t - 1)) / (c * (c - 1))
        assert sympy.simplify(sympy.diff(d, q, 2) - q ** (c - 2) * p ** (1 - c)) == 0
    order = sympy.Symbol("c")
    bend = sympy.diff(p * ((q / p) ** order - 1), q, 2) / (order * (order - 1))
    assert sympy.simplify(sympy.limit(bend, order, 1) - 1 / q) == 0
    # Other orders depend on p beyond a factor: two texts weigh differently.
    for c in (0.0, 0.5, 2.0):
        weights = [np.array([a, b]) ** (1 - c) for a, b in ((0.5, 0.2), (0.2, 0.5))]
        assert abs(np.divide(*weights[0]) / np.divide(*weights[1]) - 1) > 0.1


# -- n-grams and sums of pairs -------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N4.4", "N4.5")
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "n"), [(2, 3, 1), (3, 3, 2), (2, (1, 2, 3), 1)], ids=str
)
@pytest.mark.parametrize("pair", [qd.CR_NRR, qd.LL_SE], ids=lambda p: p.name)
def test_compatibility_carries_to_texts(vocab_size, lengths, n, pair):
    space = qd.TextSpace(vocab_size=vocab_size, lengths=lengths)
    rng = RNG(13)
    on_texts = qd.pairs.ngram_pair(space, n, pair)
    assert isinstance(on_texts, qd.PooledPair)
    p = rng.dirichlet(np.ones(space.num_texts))
    models = rng.dirichlet(np.full(space.num_texts, 0.5), 300)
    models = np.vstack([models, 0.9 * p + 0.1 * models])
    assert dominating(on_texts, p, models) == 0
    p_g = np.asarray(space.ngram_distribution(p, n))
    alpha = 2 / 3 if pair is qd.CR_NRR else 1 / 2
    for q in models[:20]:
        q_g = np.asarray(space.ngram_distribution(q, n))
        if pair is qd.CR_NRR:
            expected = ((q_g - p_g) ** 2).sum() / 3
        else:
            expected = entropy(q_g, p_g) / 2
        assert psi_gap(on_texts, alpha, q, p) == pytest.approx(expected, abs=1e-13)


@pytest.mark.claim("N4.5")
def test_quality_is_not_linear_with_several_lengths():
    space = qd.TextSpace(vocab_size=2, lengths=(1, 3))
    pair, p = qd.pairs.ngram_pair(space, 1), np.full(10, 0.1)
    short, long = np.eye(10)[0], np.eye(10)[-1]
    p = p + 0.05 * (short - np.eye(10)[1])
    half = float(pair.quality((short + long) / 2, p))
    mean = float(pair.quality(short, p) + pair.quality(long, p)) / 2
    assert abs(half - mean) > 1e-3


@pytest.mark.claim("N4.6")
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.3, 2.0), (5.0, 0.1)])
def test_pairs_of_one_weight_add_up(weights):
    a, b = weights

    def pair(share):
        """LL-SE times a, plus b times CR with this share of NRR."""
        return qd.SeparablePair(
            qd.Expression(f"{a}*log(x) + {b}*x"),
            qd.Expression(f"-{a}*x*log(x) - {b}*{share}*x**2"),
        )

    verdict = qd.check_compatibility(pair(0.5))
    assert verdict.compatible
    assert float(verdict.w0) == pytest.approx(-1)
    assert qd.check_compatibility(pair(1.0)).compatible is False
    rng = RNG(15)
    for _ in range(20):
        q, p = interior(rng, 6), interior(rng, 6)
        parts = a * entropy(q, p) / 2 + b * ((q - p) ** 2).sum() / 4
        assert psi_gap(pair(0.5), 0.5, q, p) == pytest.approx(parts, abs=1e-12)


# -- where it breaks -----------------------------------------------------------------


@pytest.mark.claim("T3.12")
@pytest.mark.parametrize("p", [(3, 1), (4, 2, 1, 1), (2, 2, 2, 1, 1)], ids=str)
def test_weight_zero_leaves_only_the_modes(p):
    # Binary fractions, so that V is exactly equal.
    p = np.array(p) / 2 ** (len(p) // 2 + 1)
    assert p.sum() == 1
    on_mode = np.eye(p.size)[p.argmax()]
    for f, slope in product((qd.functions.LL, qd.functions.CR), (-1.0, 0.0, 2.0)):
        pair = qd.SeparablePair(f, lambda x, slope=slope: slope * x)
        assert pair.diversity(on_mode) == pair.diversity(p)
        assert dominating(pair, p, on_mode[None]) == 1


def bump(x):
    return x + 0.25 * np.exp(-(((x - 0.62) / 0.01) ** 2))


@pytest.mark.claim("T3.13")
def test_an_f_that_falls_loses_by_brute_force():
    # Plain NumPy on a grid of the simplex; the diversity is minus a sum of integrals.
    grid = np.linspace(0, 1, 20001)
    area = cumulative_trapezoid(bump(grid), grid, initial=0)

    def gains(q, p):
        v = -np.interp(q, grid, area).sum(-1) + np.interp(p, grid, area).sum()
        return (q - p) @ bump(p), v

    p = np.array([0.627, 0.3, 0.073])
    x, y = np.meshgrid(np.linspace(0.62, 0.64, 81), np.linspace(0.26, 0.31, 81))
    q = np.stack([x, y, 1 - x - y], axis=-1).reshape(-1, 3)
    du, dv = gains(q, p)
    assert np.minimum(du, dv).max() > 1e-5
    # Where f rises on all of the way from P to Q, nothing is gained.
    safe = np.array([0.5, 0.3, 0.2])
    q = RNG(17).dirichlet(np.ones(3), 4000)
    du, dv = gains(q[q.max(axis=1) < 0.6], safe)
    assert np.minimum(du, dv).max() <= 1e-9  # the integrals' error


@pytest.mark.claim("T3.14")
def test_zeros_in_p():
    rng = RNG(18)
    for size in (2, 5):
        p = np.r_[interior(rng, size), 0.0]
        on_mode = np.eye(size + 1)[[p.argmax()]]
        models = np.vstack([on_mode, rng.dirichlet(np.ones(size + 1), 300)])
        models = np.vstack(
            [models, np.c_[rng.dirichlet(np.ones(size), 300), [0] * 300]]
        )
        for order in (0.5, 1, 1.5, 2, 3):
            assert dominating(ORDERS[order], p, models) == 0
        assert dominating(ITAKURA_SAITO, p, on_mode) == 1
        assert float(ITAKURA_SAITO.diversity(p)) == -np.inf


# -- LL and SE ---------------------------------------------------------------------


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
    # And the library calls the same models better.
    library = [(qd.LL_SE.quality(q, p), qd.LL_SE.diversity(q)) for q in grid]
    np.testing.assert_allclose(library, np.stack([u, v], axis=1), atol=1e-12)


# -- f beyond 1/2 ------------------------------------------------------------------


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


# --- a slip in the proof ------------------------------------------------------------

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


# -- fits and refutations ----------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "g", "why"),
    [
        ("log(x)", "-x**2", "g''/f' differs between x = 137/1000 and x = 207/500"),
        ("x", "-x**2 + 1e-20*x**3", "g''/f' differs between"),
        ("-x", "-x**2", "f falls at x = 137/1000"),
        ("x", "x**2", "g is convex at x = 137/1000"),
        ("log(x)", "-x*log(x)", None),
        ("x", "x", None),
        (
            "x",
            "-x**2/2 + ((x - 0.137)*(x - 0.414)*(x - 0.691)*(x - 0.953))**3",
            None,  # the four points show nothing
        ),
    ],
)
def test_refutations_by_intervals(f, g, why):
    found = refute_theorem_3(qd.Expression(f), qd.Expression(g))
    assert (found is None) == (why is None)
    if why is not None:
        assert found.startswith(why)


def test_fit_reports_the_deviation():
    log, shannon, repetition, flat = (
        as_function(h, "h").jet(GRID)
        for h in (qd.functions.LL, qd.functions.SE, qd.functions.NRR, lambda x: 0 * x)
    )
    fit = fit_theorem_3(log, shannon)
    assert (fit.w0, fit.b0) == pytest.approx((-1, -1), rel=1e-15)
    assert fit.residual <= 1e-12
    assert fit.violation is None
    assert fit_theorem_3(log, repetition).residual > 0.1
    assert fit_theorem_3(flat, repetition).residual == np.inf


def test_numbers_beyond_all_fractions_take_no_time():
    for f, g in (
        ("exp(x)", "exp(exp(x)*10**7)"),
        ("exp(1e-3**-2.5 * x**-2.5)", "log(x)"),
    ):
        assert "overflows" in qd.check(f, g).reason
    for g in ("-exp(x + 1000)", "-exp(x - 1000)"):
        assert qd.check("exp(x)", g).compatible
