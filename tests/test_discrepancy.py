"""QDisc and DRate against searches that share nothing with the exact solutions."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from models import assert_attained, cubic_pair, repeated, searched, sine_pair
from refusals import refused
from scipy.optimize import brentq

import qdtheory as qd
from qdtheory.discrepancy import quality_discrepancy

SLOW = pytest.mark.slow

FORMULAS_F = ["3*log(x)", "log(x)/3", ".1*x", "x**2", "1.5*x**.7", "-2/(x + .3)"]
FORMULAS_G = {
    "-.3*x**2": lambda x: (-0.3 * x**2, -0.6 * x),
    "-x**3 - .1*x**2": lambda x: (-(x**3) - 0.1 * x**2, -3 * x**2 - 0.2 * x),
    "-2.5*x*log(x)": lambda x: (-2.5 * x * np.log(x), -2.5 * np.log(x) - 2.5),
    "x**.7/3": lambda x: (x**0.7 / 3, 0.7 / 3 * x**-0.3),
    "7*x - 1.3*x**2 - x**4": lambda x: (
        7 * x - 1.3 * x**2 - x**4,
        7 - 2.6 * x - 4 * x**3,
    ),
    "-exp(1.7*x)": lambda x: (-np.exp(1.7 * x), -1.7 * np.exp(1.7 * x)),
}


@pytest.mark.parametrize("text", FORMULAS_G)
@pytest.mark.parametrize(
    "f", [FORMULAS_F[0], *(pytest.param(f, marks=SLOW) for f in FORMULAS_F[1:])]
)
def test_formulas_and_code_equal_a_convex_solver(text, f):
    """Scores that end in a rounded product, which XLA may fuse with what follows."""
    rng = np.random.default_rng([7, len(text), len(f)])
    n = int(rng.choice([3, 5, 6]))
    p = rng.dirichlet(np.ones(n)) * 0.999 + 0.001 / n
    formula = qd.Expression(f)
    scores, both = formula.value(p), FORMULAS_G[text]
    value, slope = (lambda x, i=i: both(np.maximum(x, 1e-300))[i] for i in (0, 1))
    best = searched(scores, value, slope, p, rng, num_starts=3)
    spread = np.ptp(scores)
    for code in (formula, formula.__call__):
        pair = qd.SeparablePair(code, qd.Expression(text))
        found = quality_discrepancy(pair, p)
        assert found.status == ("exact" if code is formula else "lower_bound")
        # SLSQP keeps V to 1e-11, which the best price turns into quality.
        assert found.qdisc == pytest.approx(best, abs=1e-7 * spread)
        assert_attained(pair, p, found.q, found.qdisc)
        assert 0 <= found.upper_bound - found.qdisc <= 1e-9 * spread
        assert found.quality_range == pytest.approx(scores.max() - scores.mean())
        assert found.drate == pytest.approx(found.qdisc / found.quality_range)


def test_a_narrow_feature_of_a_formula_is_not_called_exact():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    g = qd.Expression("-x**2 + .1*exp(-((x - .50037)/1e-5)**2)")
    found = quality_discrepancy(
        qd.SeparablePair(qd.Expression("x"), g), p, num_starts=8
    )
    assert found.status == "lower_bound"
    assert found.upper_bound == np.inf
    # What a grid cannot see: this model gains in both.
    q = np.array([0.50037, 0.35, 0.14963, 0])
    assert (q - p) @ p > 0.03
    assert g.value(q).sum() > g.value(p).sum()


def test_code_bears_no_seal():
    p = np.array([0.6, 0.3, 0.1])
    proved = quality_discrepancy(qd.LL_NRR, p)
    for g in (lambda x: -(x**2), lambda x: -(x**3) / x):
        found = quality_discrepancy(qd.SeparablePair(qd.functions.LL, g), p)
        assert found.status == "lower_bound"
        assert found.reason.endswith("for a proof write it as a formula.")
        assert found.qdisc == pytest.approx(proved.qdisc, abs=1e-12)
    knots = jnp.linspace(0.0, 1.0, 3001)
    found = quality_discrepancy(
        qd.SeparablePair(qd.functions.LL, lambda x: jnp.interp(x, knots, -(knots**2))),
        p,
    )
    assert found.status == "lower_bound"
    assert found.qdisc == pytest.approx(proved.qdisc, abs=1e-4)


@pytest.mark.parametrize("h", [2.0, 1.5])
def test_a_text_split_in_two_halves_is_as_one_text_of_half_the_repetition(h):
    # Of equal scores the halves get the same, as g is concave: 2 g(q / 2) in place of
    # g(q), for g = (x - x^h) / (h - 1), whose linear part is constant.
    scores, p = np.array([0.9, 0.2, 0.5]), np.array([0.5, 0.3, 0.2])
    split = qd.LinearPair(scores[[0, 0, 1, 2]], qd.Tsallis(h))
    found = quality_discrepancy(split, np.array([0.25, 0.25, 0.3, 0.2]))
    assert found.status == "exact"
    assert abs(found.q[0] - found.q[1]) <= 1e-12
    times = np.array([2.0, 1.0, 1.0])

    def value(x):
        return -times * (np.maximum(x, 0) / times) ** h / (h - 1)

    def slope(x):
        return -h * (np.maximum(x, 0) / times) ** (h - 1) / (h - 1)

    best = searched(scores, value, slope, p, np.random.default_rng(9), num_starts=3)
    assert found.qdisc == pytest.approx(best, abs=1e-8)


def test_a_uniform_real_distribution_is_the_most_diverse_by_jensen():
    # Near it V says next to nothing in 64 bits; of it the inequality does.
    pair = qd.LinearPair([0.0, 1.0, 3.0], qd.functions.NRR)
    found = quality_discrepancy(pair, np.full(3, 1 / 3))
    assert (found.qdisc, found.status, found.upper_bound) == (0, "exact", 0)
    near = np.array([1 / 3 + 1e-9, 1 / 3, 1 / 3 - 1e-9])
    found = quality_discrepancy(pair, near / near.sum())
    assert found.qdisc <= found.upper_bound <= 1e-6


def test_cr_se_equals_its_closed_form():
    # The frontier of CR-SE is softmax(beta P): match the entropy in beta.
    p = np.random.default_rng(2).dirichlet(np.ones(64))

    def model(beta):
        q = np.exp(beta * (p - p.max()))
        return q / q.sum()

    def entropy(q):
        return -(q * np.log(q)).sum()

    beta = brentq(lambda b: entropy(model(b)) - entropy(p), 1e-6, 1e4, xtol=1e-12)
    gain = (model(beta) - p) @ p
    assert quality_discrepancy(qd.CR_SE, p).qdisc == pytest.approx(gain, abs=1e-13)


@pytest.mark.parametrize("pair", [qd.LL_SE, qd.CR_NRR], ids=lambda pair: pair.name)
def test_compatible_pairs_leave_nothing(pair):
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 64):
        for _ in range(10):
            p = rng.dirichlet(np.ones(n)) * 0.99 + 0.01 / n
            found = quality_discrepancy(pair, p)
            assert found.qdisc <= 1e-12
            assert found.dominated_in is None


def test_diversity_so_low_that_quality_is_unbounded():
    # Scores that have nothing to do with P: the best text alone is diverse enough.
    pair = qd.LinearPair(lambda p: jnp.array([0.0, 1.0, 1.0]), qd.functions.NRR)
    found = quality_discrepancy(pair, np.array([0.9, 0.1, 0.0]))
    assert found.qdisc == pytest.approx(0.9, rel=1e-15)
    np.testing.assert_array_equal(found.q, [0, 0.5, 0.5])
    assert found.drate == pytest.approx(0.9 / (1 - 2 / 3))


def test_zeros_in_p_make_the_quality_range_infinite():
    p = np.array([0.6, 0.3, 0.1, 0.0])
    for g in (qd.functions.NRR, repeated(4)[0]):
        found = quality_discrepancy(qd.SeparablePair(qd.functions.LL, g), p)
        inside = quality_discrepancy(qd.SeparablePair(qd.functions.LL, g), p[:3])
        assert found.qdisc == pytest.approx(inside.qdisc, rel=1e-9)
        assert found.q[3] == 0
        assert found.drate is None
        assert "infinite" in found.reason


def test_one_text():
    for pair in (qd.LL_SE, qd.pairs.single_token_bleu_pair(2, 5)):
        found = quality_discrepancy(pair, np.ones(1))
        assert (found.qdisc, found.drate, found.dominated_in) == (0, None, None)


def test_bad_input(as_a_user):
    p, ngrams = np.array([0.6, 0.4]), qd.pairs.ngram_pair(qd.TextSpace(2, 1), 1)
    refused(("nonnegative", quality_discrepancy, qd.LL_SE, np.array([0.6, -0.4])))
    exact = partial(quality_discrepancy, method="exact")
    refused(("LinearPair; got a Pooled", exact, ngrams, p), error=TypeError)
    for score in (-np.inf, np.nan, np.inf):
        pair = qd.LinearPair(lambda p, s=score: jnp.array([s, 0.0]), "NRR")
        refused(("quality of P itself must be finite", quality_discrepancy, pair, p))


@pytest.mark.slow
@pytest.mark.parametrize(("make", "beaten"), [(cubic_pair, 0.01), (sine_pair, 1e-4)])
def test_three_texts_are_compatible_where_four_are_not(make, beaten):
    pair, rng = make(), np.random.default_rng(7)
    three, four = (
        max(quality_discrepancy(pair, p).qdisc for p in rng.dirichlet(np.ones(n), size))
        for n, size in ((3, 200), (4, 60))
    )
    assert three <= 1e-11
    assert four > beaten


TIES_AND_ZEROS = [
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
    qd.functions.LL: (np.log, -np.inf),
    qd.functions.CR: (lambda x: x, 0.0),
    qd.functions.SE: (lambda x: -np.log(x) - 1, np.inf),
    qd.functions.NRR: (lambda x: -2 * x, 0.0),
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
@pytest.mark.parametrize("p", TIES_AND_ZEROS, ids=str)
def test_ties_and_zeros_decide_what_a_p_can_show(pair, p):
    p = np.array(p)
    found = qd.quality_discrepancy(pair, p)
    assert (found.dominated_in is None) == on_frontier(pair, p)


@pytest.mark.claim("N14.11")
def test_uniform_distribution_is_not_beaten_under_strictly_concave_sums():
    rng, p = np.random.default_rng(4), np.full(64, 1 / 64)
    for g in (qd.functions.SE, qd.functions.NRR, qd.Tsallis(1.5)):
        scores = rng.normal(size=64)
        found = qd.quality_discrepancy(qd.LinearPair(lambda p, s=scores: s, g), p)
        # A root of order two in rounding.
        assert found.qdisc <= 1e-6
        assert found.dominated_in is None
