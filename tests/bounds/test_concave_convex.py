"""Exact optima for g concave up to a point, by conditions and in the limit."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from models import assert_attained, draw, mixtures, oracle, repeated
from scipy.optimize import brentq

import qdtheory as qd
from qdtheory.bounds.concave_convex import inflection_point
from qdtheory.discrepancy import quality_discrepancy

SINGLE = qd.pairs.single_token_bleu_pair
ORACLE, DRAWN = oracle(qd.TextSpace(4, 3), 0, 1.0, 32), draw(4, 64, 1.0)
LARGE = [(10, 64, ORACLE), (100, 10_000, ORACLE), (10, 2, DRAWN), (10, 1000, DRAWN)]
LARGE = [pytest.param(*row, marks=pytest.mark.slow) for row in LARGE]


@pytest.mark.parametrize(("num_references", "k", "p"), [(2, 30, ORACLE), *LARGE])
def test_optimality_conditions_hold_beyond_the_inflection(num_references, k, p):
    # Warnings are errors here: one of the points to polish has no solution nearby.
    pair = SINGLE(num_references, k)
    found = quality_discrepancy(pair, p)
    assert found.status == "exact"
    assert_attained(pair, p, found.q, found.qdisc)
    q, scores = np.asarray(found.q), np.asarray(pair.text_quality(p))
    # Repair may leave traces of 1e-17 on the other texts.
    slopes, on = repeated(k)[1](q), q > 1e-12
    # g'(q) is affine in the score on the support and below the line off it.
    fit = np.polynomial.Polynomial.fit(scores[on], slopes[on], 1)
    assert np.abs(fit(scores) - slopes)[on].max() <= 1e-8
    assert fit(scores[~on]).min(initial=0) >= -1e-8
    c = inflection_point(pair.g)
    assert c == pytest.approx(2 / (k + 1), rel=1e-9)
    assert (q > c * (1 + 1e-9)).sum() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("distance", [1e-3, 1e-6])
@pytest.mark.parametrize("k", [3, 4])
def test_near_the_most_diverse_model_the_best_lies_towards_the_scores(distance, k):
    # So close to the uniform distribution V depends on the distance alone.
    scores, step = np.array([3.0, 5.0, 1.5, 0.0]), np.array([1.0, 0.0, 2.0, -3.0])
    pair, p = qd.LinearPair(scores, SINGLE(1, k).g), 1 / 4 + distance * step
    found, centred = quality_discrepancy(pair, p), scores - scores.mean()
    gain = np.linalg.norm(p - 1 / 4) * np.linalg.norm(centred) - centred @ (p - 1 / 4)
    assert found.qdisc == pytest.approx(gain, rel=10 * distance + 1e-5)
    assert found.dominated_in == "quality"
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize(("k", "p"), [(50, [0.52, 0.48]), (10**6, [0.4, 0.35, 0.25])])
def test_all_but_one_text_vanish(k, p):
    # V(P) is within 1e-14 of a point mass's, so that the best text takes all.
    scores, pair = np.array([1.0, 5.0, 3.0])[: len(p)], SINGLE(1, k)
    found = quality_discrepancy(qd.LinearPair(scores, pair.g), np.array(p))
    assert found.qdisc == pytest.approx(5 - p @ scores, rel=1e-12)
    assert pair.diversity(found.q) >= pair.diversity(np.array(p))


@pytest.mark.parametrize("size", [40, 75, 76, 1001])
def test_the_most_diverse_model_collapses_beyond_75_candidates(size):
    p = np.random.default_rng(6).dirichlet(np.ones(64))
    q = np.asarray(quality_discrepancy(SINGLE(10, size - 1), p).most_diverse)
    g, _ = repeated(size - 1)
    # All distributions with two levels and one text on top.
    tops = np.linspace(1 / 64, 1, 200_001)
    best = (g(tops) + 63 * g((1 - tops) / 63)).max()
    assert best - 1e-15 <= g(q).sum() == pytest.approx(best, abs=1e-8)
    assert q.argmax() == p.argmax() if size > 75 else np.ptp(q) == 0


@pytest.mark.slow
def test_a_p_that_maximises_diversity_on_the_wrong_text_and_a_g_of_no_end():
    pair = qd.LinearPair([0.0, 1.0, 3.0], SINGLE(1, 10).g)
    q = np.asarray(quality_discrepancy(pair, np.array([0.2, 0.3, 0.5])).most_diverse)
    assert q.argmax() == 2
    found = quality_discrepancy(pair, q[[2, 1, 0]])
    # V is flat at its greatest value: its last digit moves q by the root of it.
    assert found.qdisc == pytest.approx(3 * (q[2] - q[0]), rel=1e-7)
    assert found.dominated_in == "quality"
    pair = qd.SeparablePair("x", "x**20 - 4*x**2 - 0.1*(1-x)**20")
    found = quality_discrepancy(pair, np.array([0.5, 0.3, 0.2]))
    assert 0 <= found.qdisc <= found.upper_bound


OTHERS = [
    (lambda x: x**2, "concave up to one point and convex beyond"),
    *((lambda x: -x, "linear"), (lambda x: jnp.sqrt(x - 0.5), "g' is NaN at 1e-12")),
]


@pytest.mark.parametrize(("g", "message"), OTHERS)
def test_other_shapes_are_refused(g, message):
    pair = qd.SeparablePair("x", g)
    with pytest.raises(ValueError, match=message):
        inflection_point(pair.g)
    with pytest.raises(ValueError, match=f"{message}|must be a finite"):
        quality_discrepancy(pair, np.array([0.6, 0.4]), method="exact")


@pytest.mark.parametrize(("f", "a"), [("x", 1.5), ("log(x)", 1.0), ("1 + 0*x", 0.75)])
def test_an_inflection_at_the_uniform_distribution(f, a):
    # -a x^2 + x^3 has it at a / 3; over two texts the first is a constant diversity.
    pair, n = qd.SeparablePair(f, f"-{a}*x**2 + x**3"), round(3 / a)
    for p in (np.full(n, 1 / n), np.linspace(1, 2, n) / np.linspace(1, 2, n).sum()):
        found, scores = quality_discrepancy(pair, p), np.asarray(pair.text_quality(p))
        assert found.status == "exact"
        # V is least at the uniform distribution, so that one text alone is feasible.
        assert found.qdisc == pytest.approx(scores.max() - p @ scores, abs=1e-12)


def test_an_inflection_at_the_uniform_distribution_on_texts_of_finite_score():
    pair, p = qd.SeparablePair("LL", "sqrt(x) + x**2"), np.array([0, 3, 2, 3, 2]) / 10
    found = quality_discrepancy(pair, p)
    assert found.status == "exact"
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.claim("N5.13")
def test_a_solution_of_the_condition_is_beaten_by_a_point_of_a_grid():
    g, slope = repeated(10)
    scores = 1 - (1 - np.array([0.3, 0.25, 0.15, 0.12, 0.1, 0.08])) ** 10

    def model(b):
        levels = -0.01 * scores + b
        return np.array([brentq(lambda x: slope(x) - v, 0, 2 / 11) for v in levels])  # noqa: B023

    lowest = slope(2 / 11) + 0.01 * scores.max() + 1e-12
    q = model(brentq(lambda b: model(b).sum() - 1, lowest, -1.1, xtol=1e-14))
    grid = mixtures(6, 20)
    better = (grid @ scores > q @ scores + 0.1) & (g(grid).sum(1) > g(q).sum())
    assert better.any()
    assert (grid[better].max(axis=1) > 2 / 11).all()


@pytest.mark.claim("N5.14")
@pytest.mark.parametrize(("num_texts", "k", "few"), [(4, 20, 2), (64, 1000, 10)])
def test_a_uniform_p_can_be_less_diverse_at_equal_quality(num_texts, k, few):
    (g, _), p = repeated(k), np.full(num_texts, 1 / num_texts)
    found = quality_discrepancy(SINGLE(1, k), p)
    top = Fraction(round(1000 * float(found.q.max())), 1000)
    collapsed = g(top) + (num_texts - 1) * g((1 - top) / (num_texts - 1))
    assert collapsed > num_texts * g(Fraction(1, num_texts))
    assert found.qdisc <= 1e-15  # the rounding of a sum of order 1
    assert (found.drate, found.dominated_in) == (None, "diversity")
    assert "range is 0" in found.reason
    # With fewer references the uniform distribution is the most diverse.
    calm = quality_discrepancy(SINGLE(1, few), p)
    assert (calm.qdisc, calm.dominated_in, calm.drate) == (0, None, None)
