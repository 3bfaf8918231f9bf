"""Exact optima for g concave up to a point against searches and conditions."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import assert_attained, draw, mixtures, oracle, repeated, searched
from scipy.optimize import brentq

import qdtheory as qd
from qdtheory.bounds.concave_convex import inflection_point
from qdtheory.discrepancy import quality_discrepancy


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_concave_convex_equals_search_on_single_token_bleu(seed):
    rng = np.random.default_rng(seed)
    size = (3, 4, 5, 6, 8, 11, 16, 21)[seed % 8]
    n, num_references = int(rng.integers(3, 7)), int(rng.choice([1, 2, 5, 10]))
    p = rng.dirichlet(np.full(n, rng.choice([0.5, 1, 3])))
    pair = qd.pairs.single_token_bleu_pair(num_references, size - 1)
    found = quality_discrepancy(pair, p)
    best = searched(1 - (1 - p) ** num_references, *repeated(size - 1), p, rng)
    # SLSQP stops within 1e-11 of V(P).
    assert found.qdisc == pytest.approx(best, abs=1e-8)
    assert found.dominated_in == "quality"
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize("seed", range(9))
def test_concave_convex_equals_search_with_infinite_slope_and_ties(seed):
    rng = np.random.default_rng(seed)
    a, n = rng.uniform(0.6, 4), int(rng.integers(3, 7))
    p = rng.dirichlet(np.full(n, rng.choice([0.5, 1, 3])))
    scores = [np.log(p), p, rng.choice([0.0, 1.0, 2.0], n)][seed % 3]
    pair = qd.LinearPair(
        lambda p: jnp.asarray(scores), lambda x: jax.scipy.special.entr(x) + a * x**2
    )
    found = quality_discrepancy(pair, p)
    best = searched(
        scores,
        lambda x: -x * np.log(np.maximum(x, 1e-300)) + a * x**2,
        lambda x: -np.log(np.maximum(x, 1e-300)) - 1 + 2 * a * x,
        p,
        rng,
    )
    assert found.qdisc == pytest.approx(best, abs=1e-8)
    assert_attained(pair, p, found.q, found.qdisc)


ORACLE, DRAWN = oracle(qd.TextSpace(4, 3), 0, 1.0, 32), draw(4, 64, 1.0)
LARGE = [(10, 64, ORACLE), (100, 10_000, ORACLE)]
LARGE += [(10, k, DRAWN) for k in (2, 10, 30, 1000)]


@pytest.mark.parametrize(
    ("num_references", "k", "p"),
    [(2, 30, ORACLE), *(pytest.param(*row, marks=pytest.mark.slow) for row in LARGE)],
)
def test_optimality_conditions_hold_beyond_the_inflection(num_references, k, p):
    # Warnings are errors here: one of the points to polish has no solution nearby.
    pair = qd.pairs.single_token_bleu_pair(num_references, k)
    found = quality_discrepancy(pair, p)
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
@pytest.mark.parametrize("distance", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("k", [3, 4])
def test_concave_convex_near_the_most_diverse(distance, k):
    # So close to the uniform distribution V depends on the distance alone: the best
    # model lies in the direction of the scores.
    scores, step = np.array([3.0, 5.0, 1.5, 0.0]), np.array([1.0, 0.0, 2.0, -3.0])
    pair = qd.LinearPair(lambda p: jnp.asarray(scores), repeated(k)[0])
    p = 1 / 4 + distance * step
    found = quality_discrepancy(pair, p)
    centred = scores - scores.mean()
    gain = np.linalg.norm(p - 1 / 4) * np.linalg.norm(centred) - centred @ (p - 1 / 4)
    assert found.qdisc == pytest.approx(gain, rel=10 * distance + 1e-5)
    assert found.dominated_in == "quality"
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize("k", [50, 10**6])
def test_concave_convex_where_all_but_one_text_vanish(k):
    # V(P) is within 1e-14 of a point mass's, so that the best text takes all.
    p = np.array([0.4, 0.35, 0.25]) if k > 50 else np.array([0.52, 0.48])
    scores = np.array([1.0, 5.0, 3.0])[: p.size]
    pair = qd.pairs.single_token_bleu_pair(1, k)
    found = quality_discrepancy(qd.LinearPair(lambda p: jnp.asarray(scores), pair.g), p)
    assert found.qdisc == pytest.approx(5 - p @ scores, rel=1e-12)
    assert pair.diversity(found.q) >= pair.diversity(p)


@pytest.mark.parametrize("size", [40, 75, 76, 300, 1001])
def test_most_diverse_collapses_beyond_75(size):
    p = np.random.default_rng(6).dirichlet(np.ones(64))
    pair = qd.pairs.single_token_bleu_pair(10, size - 1)
    q = np.asarray(quality_discrepancy(pair, p).most_diverse)
    g, _ = repeated(size - 1)
    # All distributions with two levels and one text on top.
    tops = np.linspace(1 / 64, 1, 200_001)
    best = (g(tops) + 63 * g((1 - tops) / 63)).max()
    assert g(q).sum() >= best - 1e-15
    assert g(q).sum() == pytest.approx(best, abs=1e-8)
    assert q.argmax() == p.argmax() if size > 75 else np.ptp(q) == 0


@pytest.mark.slow
def test_real_distribution_that_maximises_diversity_on_the_wrong_text():
    pair = qd.LinearPair(lambda p: jnp.array([0.0, 1.0, 3.0]), repeated(10)[0])
    q = np.asarray(quality_discrepancy(pair, np.array([0.2, 0.3, 0.5])).most_diverse)
    assert q.argmax() == 2
    found = quality_discrepancy(pair, q[[2, 1, 0]])
    # V is flat at its greatest value: its last digit moves q by the root of it.
    assert found.qdisc == pytest.approx(3 * (q[2] - q[0]), rel=1e-7)
    assert found.dominated_in == "quality"


@pytest.mark.parametrize(
    ("g", "message"),
    [
        (lambda x: x**2, "concave up to one point and convex beyond"),
        (lambda x: -x, "linear"),
        (lambda x: jnp.sin(9 * x), "concave up to one point and convex beyond"),
        (lambda x: -jnp.abs(x - 0.3), "linear"),
        (lambda x: jnp.sqrt(x - 0.5), "g' is NaN at 1e-12"),
    ],
    ids=["convex", "linear", "wave", "tent", "undefined"],
)
def test_other_shapes_are_refused(g, message):
    pair = qd.SeparablePair(qd.functions.CR, g)
    with pytest.raises(ValueError, match=message):
        inflection_point(pair.g)
    with pytest.raises(ValueError, match=f"{message}|must be a finite"):
        quality_discrepancy(pair, np.array([0.6, 0.4]), method="exact")


@pytest.mark.parametrize("a", [1.5, 1.0, 0.75])
@pytest.mark.parametrize("f", ["x", "log(x)", "1 + 0*x"])
def test_an_inflection_at_the_uniform_distribution(f, a):
    # -a x^2 + x^3 has it at a / 3; over two texts the first is a constant diversity.
    pair = qd.SeparablePair(qd.Expression(f), qd.Expression(f"-{a}*x**2 + x**3"))
    n = round(3 / a)
    for p in (np.full(n, 1 / n), np.linspace(1, 2, n) / np.linspace(1, 2, n).sum()):
        found = quality_discrepancy(pair, p)
        scores = np.asarray(pair.text_quality(p))
        assert found.status == "exact"
        # V is least at the uniform distribution, so that one text alone is feasible.
        assert found.qdisc == pytest.approx(scores.max() - p @ scores, abs=1e-12)


def test_no_warning_at_an_inflection_where_some_texts_are_left_out():
    # g'' is 0 at 1/4, the uniform distribution on the texts of finite score.
    pair = qd.SeparablePair(qd.functions.LL, qd.Expression("sqrt(x) + x**2"))
    p = np.array([0, 0.3, 0.2, 0.3, 0.2])
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
    g, _ = repeated(k)
    uniform = num_texts * g(Fraction(1, num_texts))
    pair = qd.pairs.single_token_bleu_pair(1, k)
    found = qd.quality_discrepancy(pair, np.full(num_texts, 1 / num_texts))
    top = Fraction(round(1000 * float(found.q.max())), 1000)
    collapsed = g(top) + (num_texts - 1) * g((1 - top) / (num_texts - 1))
    assert collapsed > uniform
    assert found.qdisc <= 1e-15  # the rounding of a sum of order 1
    assert found.drate is None
    assert "range is 0" in found.reason
    assert found.dominated_in == "diversity"
    # With fewer references the uniform distribution is the most diverse.
    calm = qd.pairs.single_token_bleu_pair(1, few)
    calm = qd.quality_discrepancy(calm, np.full(num_texts, 1 / num_texts))
    assert (calm.qdisc, calm.dominated_in, calm.drate) == (0, None, None)
