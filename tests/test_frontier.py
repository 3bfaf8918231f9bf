"""Dominance and the frontier: convex programs, KKT, perturbations and brute force."""

from itertools import product

import cvxpy as cp
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from families import DIVERSITIES
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq

import qdtheory as qd
from qdtheory import plotting

# Of each its g, slope and slope at 0.
SOLVED = {
    name: (g, slope, at_zero)
    for name, (g, _, slope, at_zero) in DIVERSITIES.items()
    if name not in ("SDI", "Tsallis(0.5)")
}

PROGRAMS = {
    "SE": cp.entr,
    "NRR": lambda q: -cp.square(q),
    "Tsallis(1.5)": lambda q: 2 * q - 2 * cp.power(q, 1.5),
    "mixed": lambda q: cp.entr(q) - cp.square(q),
}
SCORES = np.round(3 * np.sin(np.arange(12.0)))
MIXED = DIVERSITIES["mixed"][0]


def pair_of(quality, diversity):
    """The third quality is scores that are no function of P."""
    g = SOLVED[diversity][0]
    by_scores = quality == "scores"
    return qd.LinearPair(SCORES, g) if by_scores else qd.SeparablePair(quality, g)


def problems(count, seed=0, weights=(0.05, 0.3, 1, 3, 20)):
    """Real distributions with ties, zeros in one case of three, and weights."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p = rng.random(12) ** 2
        p[3:6] = p[3]
        p[:2] *= rng.random() > 1 / 3
        yield p / p.sum(), -float(rng.choice(weights))


# --- Dominance ------------------------------------------------------------------------
@pytest.mark.claim("N3.3")
def test_dominance():
    for u, v, a, b in product(*[(-np.inf, 1.0, 2.0), (1.0, 2.0)] * 2):
        found = qd.dominance(u, v, a, b)
        told = bool(found.in_quality), bool(found.in_diversity), bool(found.either)
        in_quality, in_diversity = u > a and v >= b, v > b and u >= a
        assert told == (in_quality, in_diversity, in_quality or in_diversity)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9)
)
def test_pareto_filter_is_dominance_over_all_pairs(points):
    u, v = (np.where(x, x, -np.inf) for x in np.array(points).T)
    beats = qd.dominance(u[:, None], v[:, None], u, v).either
    assert qd.pareto_filter(u, v).tolist() == (~beats.any(axis=0)).tolist()


# --- One optimum ----------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.claim("T2.1")
@pytest.mark.parametrize("quality", ["LL", "CR"])
@pytest.mark.parametrize("diversity", SOLVED)
def test_optimum_satisfies_kkt(quality, diversity):
    # The conditions are written out here from g' by hand, not from kkt_residual.
    _, slope, slope_at_zero = SOLVED[diversity]
    pair = pair_of(quality, diversity)
    for p, w in problems(50):
        optimum = qd.pareto_optimum(pair, p, w)
        q, b = np.asarray(optimum.q), float(optimum.b)
        with np.errstate(divide="ignore"):
            line = w * np.asarray(pair.text_quality(p)) + b
        on = q > 0
        assert np.abs(slope(q[on]) - line[on]).max() <= 1e-10
        # Where g'(0) is infinite, probabilities below 1e-100 may count as 0.
        assert (line[~on] >= min(slope_at_zero, 228)).all()
        assert abs(q.sum() - 1) <= 1e-12
        assert q.min() >= 0
        assert qd.frontier.kkt_residual(pair, p, optimum) <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("quality", ["LL", "CR", "scores"])
@pytest.mark.parametrize("diversity", PROGRAMS)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.claim("T2.2", "L2.1")
def test_optimum_is_the_convex_programs(quality, diversity):
    # Asked for more digits than it promises, Clarabel may stop early and says so
    # (hence the filter): the best of its answers is taken. On exponential cones even
    # that is now and then 3e-6 off in Q, where the objective is flat.
    pair = pair_of(quality, diversity)
    for p, w in problems(20, seed=1, weights=(0.05, 0.2, 0.5, 1, 2)):
        scores = np.asarray(pair.text_quality(p))
        support = np.isfinite(scores)
        q = cp.Variable(int(support.sum()), nonneg=True)
        u, v = scores[support] @ q, cp.sum(PROGRAMS[diversity](q))
        program = cp.Problem(cp.Maximize(v - w * u), [cp.sum(q) == 1])
        answers = []
        for gap in (1e-9, 1e-10, 1e-11, 1e-12):
            value = program.solve(
                solver=cp.CLARABEL, tol_gap_abs=gap, tol_gap_rel=gap, tol_feas=1e-10
            )
            answers.append((value, q.value, u.value, v.value))
        best, best_q, best_u, best_v = max(answers, key=lambda answer: answer[0])
        optimum = qd.pareto_optimum(pair, p, w)
        assert np.abs(np.asarray(optimum.q)[support] - best_q).max() <= 1e-5
        assert abs(optimum.quality - best_u) <= 1e-5
        assert abs(optimum.diversity - best_v) <= 1e-5
        # The weighted sums agree; infeasible by 1e-10, Clarabel may even be ahead.
        ours = float(optimum.diversity - w * optimum.quality)
        assert -1e-8 <= ours - best <= 1e-6


def test_closed_forms_agree_with_root_finding():
    same = {"NRR": lambda x: -(x**2), "SE": lambda x: -x * jnp.log(x)}
    for (p, w), f, known in product(problems(10, seed=3), ("LL", "CR"), same):
        closed = qd.pareto_optimum(qd.SeparablePair(f, known), p, w)
        found = qd.pareto_optimum(qd.SeparablePair(f, same[known]), p, w)
        assert jnp.abs(closed.q - found.q).max() <= 1e-12
        assert abs(closed.b - found.b) <= 1e-10
    near = qd.pareto_optimum(qd.SeparablePair("CR", qd.Tsallis(1 + 1e-7)), p, w)
    assert jnp.abs(near.q - qd.pareto_optimum(qd.CR_SE, p, w).q).max() <= 1e-6


@pytest.mark.claim("T2.6", "T2.13")
@pytest.mark.parametrize(
    "diversity", ["NRR", "Tsallis(1.5)", "Tsallis(3)", "saturating"]
)
@pytest.mark.parametrize("ties", [1, 2])
def test_at_b_the_optimum_stops_moving_and_the_runner_up_has_multiplier_zero(
    diversity, ties
):
    _, slope, slope_at_zero = SOLVED[diversity]
    pair, rng = pair_of("CR", diversity), np.random.default_rng(13)
    modes = np.array([1] * ties + [0] * (5 - ties)) / ties
    for _ in range(5):
        p = np.sort(rng.dirichlet(np.ones(5)))[::-1]
        p[:ties] = p[:ties].mean()
        lowest = (slope(1 / ties) - slope_at_zero) / (p[0] - p[ties])
        found = qd.frontier.saturation_weight(pair, p)
        assert float(found) == pytest.approx(lowest, rel=1e-11)
        # Just above B the runner-up has mass, at B none and the level is g'(0).
        assert qd.pareto_optimum(pair, p, 0.9 * lowest).q[ties] > 0
        optimum = qd.pareto_optimum(pair, p, lowest)
        level = lowest * p[ties] + float(optimum.b)
        assert level == pytest.approx(slope_at_zero, abs=1e-12 * abs(lowest))
        for w in (lowest, 1.5 * lowest, 1e6 * lowest, -np.inf):
            q = qd.pareto_optimum(pair, p, w).q
            np.testing.assert_allclose(q, modes, atol=1e-12)


@pytest.mark.claim("T2.14")
def test_offsets_are_unique_unless_the_inverse_is_clipped_at_one():
    p = np.array([0.5, 0.3, 0.2])
    lowest = -2 / (p[0] - p[1])
    for w in (0.5 * lowest, 2 * lowest):
        offsets = np.linspace(-2 - w * p[0] - 4, 4 - w * p[1], 20_001)
        step = offsets[1] - offsets[0]
        levels = -(w * p[:, None] + offsets) / 2  # g'^{-1} of NRR, not clipped
        b = float(qd.pareto_optimum(qd.CR_NRR, p, w).b)
        for most in (np.inf, 1):
            q = np.clip(levels, 0, most)
            fitting = offsets[np.abs(q.sum(axis=0) - 1) <= step / 2]
            if most == 1 and w < lowest:
                assert fitting.size >= 100
            else:  # as many grid points as one root of slope 1/2 or more can hold
                assert 1 <= fitting.size <= 3
                assert np.abs(fitting - b).max() <= 2 * step


@pytest.mark.claim("L1.1")
@given(
    weights=st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    w=st.floats(-30, -1e-3),
)
def test_lemma_1_order_of_p_is_kept(weights, w):
    p = np.array(weights) / sum(weights)
    for diversity in ("SE", "NRR", "Tsallis(1.5)", "mixed"):
        q = np.asarray(qd.pareto_optimum(pair_of("CR", diversity), p, w).q)
        for i, j in product(range(4), repeat=2):
            assert q[i] == q[j] if p[i] == p[j] else p[i] < p[j] or q[i] >= q[j]


WIDE = np.random.default_rng(8).dirichlet(np.ones(20), 3)
TWO, ZERO = np.array([7, 4, 4]) / 15, np.array([0.5, 0.3, 0.2, 0])
TIED_OF_FIVE = np.array([0.3, 0.3, 0.2, 0.1, 0.1])
TIED, HALVES = np.array([0.3, 0.3, 0.25, 0.15]), np.array([0.5, 0.5, 0, 0])
ONE, POINT = np.ones(1), np.array([0.0, 1.0, 0.0])
KNOWN = [
    # The frontier of LL-SE is the powers of P, of weight -1 P itself.
    *((qd.LL_SE, p, -b, p**b / sum(p**b)) for p, b in zip(WIDE, (0.25, 1.0, 3.0))),
    # P is on the frontier of matched pairs, and of others if two points fix the line.
    *((qd.CR_NRR, p, -2.0, p) for p in WIDE),
    (qd.LL_NRR, TWO, -6 / 15 / np.log(7 / 4), TWO),
    (qd.CR_SE, TWO, -15 / 3 * np.log(7 / 4), TWO),
    # It is so at every weight if uniform on its support, with scores -inf beyond.
    *(
        (qd.SeparablePair(f, "SE"), HALVES, w, HALVES)
        for f, w in product(("log(x)", "-1/x"), (-1e-6, -0.3, -7.0, -200.0))
    ),
    # At w = 0 all texts are alike, just below it those of finite score.
    *((pair, ZERO, 0.0, np.full(4, 0.25)) for pair in (qd.LL_SE, qd.LL_NRR)),
    *((pair, ZERO, -1e-14, (ZERO > 0) / 3) for pair in (qd.LL_SE, qd.LL_NRR)),
    # In the end there are the modes alone, and one model of one text.
    *(
        (pair_of("LL", diversity), p, w, expected)
        for diversity in ("SE", "NRR", "Tsallis(1.5)", "mixed")
        for p, w, expected in (
            *((TIED, -np.inf, HALVES), (TIED, -1e300, HALVES)),
            *((ONE, -2.0, ONE), (POINT, -2.0, POINT)),
        )
    ),
]


@pytest.mark.claim("T2.8", "T2.10", "T2.11")
@pytest.mark.parametrize(("pair", "p", "w", "expected"), KNOWN)
def test_optima_known_by_hand(pair, p, w, expected):
    found = qd.pareto_optimum(pair, p, w)
    np.testing.assert_allclose(found.q, expected, rtol=1e-12, atol=1e-13)
    if pair is qd.LL_SE and p.min() > 0:
        offset = np.log((p**-w).sum()) - 1
        assert float(found.b) == pytest.approx(offset, abs=1e-12)


@pytest.mark.claim("N3.2")
@pytest.mark.parametrize("unit", [1e-18, 1.0, 1e18])
def test_scores_are_tied_by_their_rounding_in_any_unit(unit):
    gaps = qd.frontier.score_gaps(unit * np.array([3, 3 - 4e-16, 1]))
    np.testing.assert_allclose(gaps, unit * np.array([0, 0, 2]))


@pytest.mark.claim("E5.2")
@given(weights=st.lists(st.integers(1, 9), min_size=3, max_size=5))
def test_the_inverse_of_g_is_not_the_maximiser(weights):
    p = np.array(weights) / sum(weights)
    assume(np.ptp(p) > 0)

    def literal(b):
        return np.sqrt(np.maximum(0, 2 * p - b))

    q = literal(brentq(lambda b: literal(b).sum() - 1, -2, 2, xtol=1e-14))
    assert p @ p - (2 * q @ p - q @ q) > 3e-5


# --- Under JAX's transformations ------------------------------------------------------


@pytest.mark.parametrize(
    "g", [qd.functions.NRR, qd.Tsallis(1.5), qd.Expression("-x*log(x)")]
)
def test_optimum_inside_a_compiled_function_of_the_reader_and_in_batches(g):
    # There the scores are computed by the compiled function itself, in its own way.
    # Two of the best texts are equal in one of the draws.
    both = np.stack([np.random.default_rng(8).dirichlet(np.ones(5)), TIED_OF_FIVE])
    for f in (lambda x: 3 * jnp.log(x), lambda x: x**2 / 3, lambda x: 1.8 * x - x**2):
        pair = qd.SeparablePair(f, g)
        optimum = jax.vmap(lambda p, w, x=pair: qd.pareto_optimum(x, p, w).q, (0, None))
        compiled = jax.jit(optimum)
        for w in (0.0, -0.1, -3.0, -1e4, -np.inf):
            plain = [qd.pareto_optimum(pair, p, w).q for p in both]
            np.testing.assert_allclose(compiled(both, w), plain, rtol=0, atol=1e-12)


def test_an_optimum_that_would_be_refused_is_nan_inside_a_compiled_function():
    # g is so flat near 0 that 64 bits do not fix Q.
    pair = qd.SeparablePair(qd.functions.CR, lambda x: -(x**30))
    p = np.random.default_rng(0).dirichlet(np.ones(3))
    with pytest.raises(ValueError, match="miss the sum 1 by 1"):
        qd.pareto_optimum(pair, p, -1.0)
    assert np.isnan(jax.jit(lambda p: qd.pareto_optimum(pair, p, -1.0).q)(p)).all()


def test_gradients_reach_p_and_stay_finite_where_it_is_0():
    p = np.array([0.4, 0.35, 0.15, 0.1])
    direction = np.array([1.0, -1.0, 0.5, -0.5])

    def quality(step, pair):
        return qd.pareto_optimum(pair, p + step * direction, -0.7).quality

    for pair in (qd.LL_SE, qd.CR_NRR, qd.SeparablePair("LL", MIXED)):
        central = (quality(1e-6, pair) - quality(-1e-6, pair)) / 2e-6
        np.testing.assert_allclose(jax.grad(quality)(0.0, pair), central, rtol=1e-6)
    zero = np.array([0.6, 0.4, 0.0])
    for pair in (qd.LL_SE, qd.LL_NRR):
        slope = jax.grad(lambda w, pair=pair: qd.pareto_optimum(pair, zero, w).quality)
        expected = qd.frontier.frontier_slopes(pair, zero, -0.8).quality
        np.testing.assert_allclose(slope(-0.8), expected, rtol=1e-12)


# --- The frontier ---------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("diversity", SOLVED)
@pytest.mark.parametrize("quality", ["LL", "CR"])
@pytest.mark.claim("T2.3")
def test_frontier_is_the_optima_at_its_weights(quality, diversity):
    pair = pair_of(quality, diversity)
    for p, _ in problems(4, seed=6):
        frontier = qd.pareto_frontier(pair, p, 25)
        assert frontier.residual <= 1e-12
        for i, w in enumerate(np.asarray(frontier.w)):
            optimum = qd.pareto_optimum(pair, p, float(w))
            for name in ("quality", "diversity", "b"):
                found, expected = getattr(frontier, name)[i], getattr(optimum, name)
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        finite = np.isfinite(np.asarray(frontier.quality))
        assert (np.diff(np.asarray(frontier.quality)[finite]) >= -1e-13).all()
        assert (np.diff(np.asarray(frontier.diversity)) <= 1e-13).all()


@pytest.mark.slow
@pytest.mark.parametrize("diversity", SOLVED)
@pytest.mark.claim("T2.4", "T2.5")
def test_slopes_of_the_frontier(diversity):
    pair = pair_of("LL", diversity)
    rng = np.random.default_rng(7)
    for _ in range(5):
        p = rng.dirichlet(np.full(8, 2.0))
        w, step = -float(rng.uniform(0.2, 1.5)), 1e-6
        slopes = qd.frontier.frontier_slopes(pair, p, w)
        low, high = (qd.pareto_optimum(pair, p, w + s) for s in (-step, step))
        if ((low.q > 0) != (high.q > 0)).any():
            continue  # a text enters here: one-sided slopes
        assert abs(slopes.diversity / slopes.quality - w) <= 1e-6
        for name in ("quality", "diversity", "b"):
            central = (getattr(high, name) - getattr(low, name)) / (2 * step)
            # Central differences: step^2 and rounding / step, both near 1e-9.
            np.testing.assert_allclose(getattr(slopes, name), central, rtol=1e-6)
        # The offset rises as log P is negative, and falls for scores above 0.
        of_cr = qd.frontier.frontier_slopes(pair_of("CR", diversity), p, w)
        assert slopes.b > 0 > of_cr.b
        automatic = jax.grad(lambda v, p=p: qd.pareto_optimum(pair, p, v).b)(w)
        np.testing.assert_allclose(slopes.b, automatic, rtol=1e-10)


def test_speed_along_the_ll_se_frontier_is_the_variance_of_log_p():
    # The variance as that of a sample: half the mean squared difference of two texts.
    rng = np.random.default_rng(15)
    for beta in (0.2, 1.0, 4.0):
        p = rng.dirichlet(np.ones(12))
        q = p**beta / (p**beta).sum()
        apart = np.subtract.outer(np.log(p), np.log(p)) ** 2
        slopes = qd.frontier.frontier_slopes(qd.LL_SE, p, -beta)
        assert float(slopes.quality) == pytest.approx(-q @ apart @ q / 2, rel=1e-10)


@pytest.mark.claim("T2.7")
def test_infinite_slope_never_reaches_the_modes():
    for pair in (qd.CR_SE, qd.LL_SE, qd.SeparablePair("CR", MIXED)):
        assert qd.frontier.saturation_weight(pair, TIED) == -np.inf
        assert (qd.pareto_optimum(pair, TIED, -100.0).q > 0).all()
        limit = qd.pareto_optimum(pair, TIED, -np.inf)
        assert limit.q.tolist() == HALVES.tolist()
        frontier = qd.pareto_frontier(pair, TIED, 11)
        assert (frontier.w[-1], frontier.quality[-1]) == (-np.inf, limit.quality)
        np.testing.assert_allclose(frontier.alpha, np.linspace(0, 1, 11), rtol=1e-12)


def test_without_a_finite_g_at_0_the_even_model_on_the_modes_is_not_alone():
    """Theorem 2 asks for it: under g = log all models that miss a text are alike."""
    p, shares = np.array([0.375, 0.375, 0.25]), np.arange(65) / 64
    on_modes = np.stack([shares, 1 - shares, 0 * shares], axis=1)
    models = np.vstack([on_modes, np.random.default_rng(0).dirichlet(np.ones(3), 500)])
    u, modes = models @ p, slice(65)
    with np.errstate(divide="ignore"):
        v = np.log(models).sum(axis=1)
    beats = qd.dominance(u[:, None], v[:, None], u[modes], v[modes])
    assert not beats.either.any()
    v = -(models**2).sum(axis=1)
    beats = qd.dominance(u[:, None], v[:, None], u[modes], v[modes])
    assert np.flatnonzero(~beats.either.any(axis=0)).tolist() == [32]


@pytest.mark.claim("T2.8")
def test_zeros_make_the_frontier_jump_between_pareto_optima():
    for pair in (qd.LL_SE, qd.LL_NRR, qd.SeparablePair("LL", MIXED)):
        frontier = qd.pareto_frontier(pair, ZERO, 9)
        assert np.isfinite(frontier.quality).tolist() == [False] + [True] * 8
        limit = float(pair.diversity((ZERO > 0) / 3))
        assert frontier.diversity[1] == pytest.approx(limit, abs=1e-12)
    # f(0) finite: no jump.
    assert jnp.isfinite(qd.pareto_frontier(qd.CR_NRR, ZERO, 9).quality).all()


@pytest.mark.claim("T2.9")
@pytest.mark.parametrize("diversity", ["SE", "NRR", "mixed"])
def test_uniform_p_has_one_optimum(diversity):
    pair, p = pair_of("CR", diversity), np.full(5, 0.2)
    assert jnp.isnan(qd.frontier.saturation_weight(pair, p))
    frontier = qd.pareto_frontier(pair, p, 7)
    assert np.ptp(np.asarray(frontier.quality)) <= 1e-15
    assert np.ptp(np.asarray(frontier.diversity)) <= 1e-12


@pytest.mark.claim("T2.12")
def test_frontier_is_concave_and_no_model_is_above_it():
    rng = np.random.default_rng(10)
    p, models = rng.dirichlet(np.ones(6)), rng.dirichlet(np.full(6, 0.5), 2000)
    for names in product(("LL", "CR"), ("SE", "NRR", "Tsallis(1.5)")):
        pair = pair_of(*names)
        frontier = qd.pareto_frontier(pair, p, 60)
        u, v = np.asarray(frontier.quality), np.asarray(frontier.diversity)
        assert (np.diff(np.diff(v) / np.diff(u)) <= 1e-9).all()
        model_u = jax.vmap(lambda q, pair=pair: pair.quality(q, p))(models)
        model_v = jax.vmap(pair.diversity)(models)
        beats = qd.dominance(model_u[:, None], model_v[:, None], u, v)
        assert not beats.either.any()


# --- Figures --------------------------------------------------------------------------
P = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.fixture
def ax():
    with plt.style.context(plotting.STYLE):
        figure = plt.figure()
    yield figure.gca()
    plt.close(figure)


def test_a_frontier_is_drawn_without_its_points_of_infinite_quality(ax):
    frontier = qd.pareto_frontier(qd.LL_SE, np.array([0.5, 0.3, 0.2, 0.0]), 9)
    assert frontier.quality[0] == -np.inf
    plotting.plot_frontier(frontier, ax=ax, label="LL-SE")
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), frontier.quality[1:])
    np.testing.assert_array_equal(line.get_ydata(), frontier.diversity[1:])
    assert line.get_label() == "LL-SE"


def test_the_plane_has_the_star_in_the_middle(ax):
    curve = qd.pareto_frontier(qd.LL_NRR, P)
    plotting.plot_plane(qd.LL_NRR, P, curve, width=0.1, ax=ax)
    _, star = ax.lines
    u, v = float(qd.LL_NRR.quality(P, P)), float(qd.LL_NRR.diversity(P))
    assert (star.get_xdata(), star.get_ydata()) == (u, v)
    left, right = ax.get_xlim()
    assert (left + right) / 2 == pytest.approx(u, abs=1e-12)
