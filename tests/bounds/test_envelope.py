"""Bounds by concave envelopes against grids, linear programs and exact solutions."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial
from models import assert_attained, mixtures

import qdtheory as qd
from qdtheory.bounds import duality
from qdtheory.bounds.duality import dual_bound
from qdtheory.bounds.shapes import CHORD_EXCESS, enclosed, shape_of
from qdtheory.functions import CR, as_function

# Two peaks; convex, then concave; three waves; concave-convex; steep at 0; convex.
SHAPES = (
    "-(x - 0.1)**2*(x - 0.6)**2",
    "-x**3 + x**2 - x",
    "30*(x - 0.1)*(x - 0.3)*(x - 0.5)*(x - 0.7)*(x - 0.9)",
    "-x + x*(1 - x)**10",
    "sqrt(x + 0.01) - 20*(x - 0.3)**2*(x - 0.8)**2",
    "x**2",
)


def envelope_optimum(scores, g, least, x):
    """The optimum with g's concave envelope on a grid x, with its two multipliers.

    Each text is a mixture of points of the grid.
    """
    one = np.ones_like(x)
    rows = np.kron(np.eye(scores.size), one)
    total = np.tile(x, scores.size)
    found = scipy.optimize.linprog(
        -np.kron(scores, x),
        A_ub=-np.tile(g(x), scores.size)[None],
        b_ub=[-least],
        A_eq=np.vstack([rows, total]),
        b_eq=np.ones(scores.size + 1),
    )
    return -found.fun, -found.ineqlin.marginals[0], -found.eqlin.marginals[-1]


@pytest.mark.parametrize("text", SHAPES)
def test_the_shape_is_that_of_a_grid(text):
    g = qd.Expression(text)
    read = as_function(g, "g")
    shape, x = shape_of(read), np.linspace(0, 1, 20_001)
    curvature = read.jet(x).curvature
    inside = np.any(
        [(low <= x) & (x <= high) for low, high in shape.concave] or [x < 0], axis=0
    )
    # All but the undecided stretches around an inflection are told right.
    assert (curvature[inside] <= 1e-9).all()
    assert np.mean((curvature <= 0) & ~inside) <= 1e-3
    value, least, greatest = enclosed(read, x[None, ::400])
    jet = read.jet(x[None, ::400])
    assert np.abs(value - jet.value).max() <= 1e-13
    assert (least - 1e-12 <= jet.slope).all()
    assert (jet.slope <= greatest + 1e-12).all()
    low, high = shape.ends[:-1], shape.ends[1:]
    for a, b in zip(low, high):
        if not any(c <= a and b <= d for c, d in shape.concave):
            t = np.linspace(0, 1, 21)
            left, right = g.value(np.array([a, b]))
            chord = (1 - t) * left + t * right
            assert (g.value(a + t * (b - a)) - chord).max() <= CHORD_EXCESS + 1e-15


@pytest.mark.claim("N17.1")
@pytest.mark.parametrize("text", SHAPES)
def test_any_multipliers_bound_every_feasible_model(text):
    g, rng = qd.Expression(text), np.random.default_rng(0)
    for size in (2, 5):
        scores, p = rng.normal(size=size), rng.dirichlet(np.ones(size))
        least = float(g.value(p).sum())
        models = rng.dirichlet(np.ones(size), 4000)
        models = np.vstack([p, np.eye(size), models])
        models = models[g.value(models).sum(axis=1) >= least]
        for price, level in rng.normal(scale=5, size=(20, 2)):
            bound = dual_bound(g, scores, least, abs(price), level)
            assert bound >= (models @ scores).max()


@pytest.mark.claim("N17.2")
def test_a_negative_price_is_refused_as_it_bounds_nothing(as_a_user):
    g, scores, p = qd.Expression("x**2"), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    x = np.linspace(0, 1, 101)
    # (u - nu) x + mu g(x) with mu = -1, nu = -.5 is greatest at .75 and .25.
    wrong = -0.5 + 0.5 + sum(((u + 0.5) * x - x**2).max() for u in scores)
    assert wrong == pytest.approx(0.625, abs=1e-12)
    best = np.array([1.0, 0.0])
    assert g.value(best).sum() >= g.value(p).sum()
    assert wrong < best @ scores
    with pytest.raises(ValueError, match="at least 0, got -1"):
        dual_bound(g, scores, 0.5, -1.0, -0.5)


@pytest.mark.claim("N17.3")
@pytest.mark.parametrize("text", SHAPES[:5])
def test_the_least_bound_is_the_optimum_with_the_envelope(text):
    g, rng = qd.Expression(text), np.random.default_rng(1)
    x = np.linspace(0, 1, 401)
    for _ in range(3):
        p = rng.dirichlet(np.ones(4))
        least = float(g.value(p).sum())
        optimum, price, level = envelope_optimum(p, g.value, least, x)
        bound = dual_bound(g, p, least, price, level)
        # A grid's envelope is lower by |g''| h^2 / 8 a text at most; |g''| <= 130.
        slack = 4 * price * 130 * (1 / 400) ** 2 / 8
        assert optimum - 1e-8 <= bound <= optimum + slack + 1e-8


def largest_gap(g):
    """The greatest difference between g's concave envelope and g, on a grid."""
    x = np.linspace(0, 1, 2001)
    y = g.value(x)
    below = [[0, y.min() - 1], [1, y.min() - 1]]
    hull = scipy.spatial.ConvexHull(np.vstack([np.column_stack([x, y]), below]))
    top = np.sort(hull.vertices[hull.vertices < x.size])
    return float((np.interp(x, x[top], y[top]) - y).max())


@pytest.mark.claim("N17.4")
@pytest.mark.parametrize("text", [SHAPES[1], SHAPES[3], "-x + x*(1 - x)**30"])
def test_with_one_chord_the_bound_costs_one_gap(text):
    g, grid = qd.Expression(text), mixtures(3, 300)
    gap, diversity = largest_gap(g), g.value(grid).sum(axis=1)
    x = np.linspace(0, 1, 301)
    for seed in range(3):
        p = np.random.default_rng(seed).dirichlet(np.ones(3))
        least = float(g.value(p).sum())
        _, price, level = envelope_optimum(p, g.value, least, x)
        bound = dual_bound(g, p, least, price, level)
        quality = grid @ p
        assert quality[diversity >= least].max() <= bound
        # Two steps of the grid of models, and 1e-3 for those of the envelope.
        assert bound <= quality[diversity >= least - gap - 1e-3].max() + 2 / 300


@pytest.mark.claim("N17.5")
@pytest.mark.parametrize("left", [0.25, 0.3, 0.35])
def test_with_two_chords_it_may_cost_two(left):
    dips = (f"0.05*exp(-200*(x - {c})**2)" for c in (left, 1 - left))
    g = qd.Expression("-x**2 - " + " - ".join(dips))
    scores, x = np.array([1.0, 0.0]), np.linspace(0, 1, 401)
    y = g.value(x)
    diversity, gap = y + y[::-1], largest_gap(g)  # of (x, 1 - x)
    # Of the envelope, which is g and about a gap at the bottoms of both dips.
    least = float(diversity[round(400 * (1 - left))] + 2 * gap - 1e-3)
    bound, *multipliers = envelope_optimum(scores, g.value, least, x)
    bound = dual_bound(g, scores, least, *multipliers)
    one, two = (x[diversity >= least - k * gap - 1e-3].max() for k in (1, 2))
    assert one + 0.01 < bound <= two + 0.01


@pytest.mark.claim("N17.8")
@pytest.mark.parametrize("text", SHAPES)
def test_intervals_close_and_hold_what_a_grid_finds(text):
    g, steps = qd.Expression(text), 60
    grid = mixtures(4, steps)
    diversity = g.value(grid).sum(axis=1)
    p = np.random.default_rng(1).dirichlet(np.ones(4))
    pair = qd.SeparablePair(CR, g)
    found = qd.certify(pair, p)
    assert_attained(pair, p, found.q, found.qdisc)
    assert found.upper_bound - found.qdisc <= 1e-6
    best = ((grid - p) @ p)[diversity >= float(pair.diversity(p))].max()
    assert best <= found.upper_bound
    # Some point of the grid is within two steps of the best model.
    assert best >= found.qdisc - 4 / steps


@pytest.mark.claim("N17.7")
@pytest.mark.parametrize("seed", [0, 3, 4])
def test_a_thousand_candidates_and_64_texts_close(seed):
    # From the relaxation of seed 4 SLSQP stops outside of its budget each time.
    pair = qd.pairs.single_token_bleu_pair(1000, 1000)
    p = np.asarray(qd.oracle(qd.TextSpace(4, 3), seed, 1.0, size=8))
    exact = qd.quality_discrepancy(pair, p)
    found = qd.certify(pair, p)
    assert_attained(pair, p, found.q, found.qdisc)
    assert found.upper_bound - found.qdisc <= 1e-6
    assert found.qdisc - 1e-9 <= exact.qdisc <= found.upper_bound + 1e-12
    assert found.steps <= 20


def test_the_bound_of_a_price_and_a_level_is_rounded_up():
    # With g = -x^2 each maximum is at (u - nu) / (2 mu), or at an end.
    rng, missed = np.random.default_rng(0), 0
    for _ in range(100):
        n = int(rng.integers(2, 7))
        scores, least = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4), -rng.random()
        price, level = rng.exponential() * np.ptp(scores), rng.normal() * np.ptp(scores)
        bound = duality.dual_bound(qd.functions.NRR, scores, least, price, level)
        mu, nu = Fraction(price), Fraction(level)
        truth = plain = nu - mu * Fraction(least)
        plain = float(level - price * least)
        for u in scores.tolist():
            x = min(max((Fraction(u) - nu) / (2 * mu), Fraction(0)), Fraction(1))
            truth += (Fraction(u) - nu) * x - mu * x**2
            x = min(max((u - level) / (2 * price), 0.0), 1.0)
            plain += (u - level) * x - price * x**2
        assert truth <= Fraction(bound)
        assert bound <= float(truth) + 1e-11 * (np.abs(scores).max() + price + abs(nu))
        missed += Fraction(plain) < truth
    assert missed > 20


@pytest.mark.parametrize("seed", range(8))
def test_the_bounds_of_a_sphere(seed):
    """Among models of the repetition of P the best is a point of a sphere."""
    import mpmath

    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    p, scores = rng.dirichlet(np.full(n, 20.0)), rng.normal(size=n)
    with mpmath.workdps(50):
        real, u = (mpmath.matrix([mpmath.mpf(x) for x in row]) for row in (p, scores))
        mean = sum(u) / n
        across = [x - mean for x in u]
        length = mpmath.sqrt(sum(x**2 for x in across))
        radius = mpmath.sqrt(sum(x**2 for x in real) - mpmath.mpf(1) / n)
        best = [mpmath.mpf(1) / n + radius * x / length for x in across]
        assert min(best) > 0  # inside the simplex
        gain = mean + radius * length - sum(x * y for x, y in zip(u, real))
        for unit in (1.0, 1e-6, 1e6):
            fixed = scores * unit
            code, nrr = qd.negative_repetition_rate, qd.functions.NRR
            concave = qd.ConcavePair(lambda p, s=fixed: s * 1.0, code)
            found = [qd.quality_discrepancy(concave, p)]
            found += [qd.certify(qd.LinearPair(fixed, nrr), p)]
            for bound in (bounds.upper_bound for bounds in found):
                assert mpmath.mpf(bound) >= gain * unit - abs(gain) * unit * 1e-14
                assert bound <= float(gain) * unit + 1e-6 * np.ptp(fixed)
