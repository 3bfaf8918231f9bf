"""Conditional generation: tables of whole numbers, sorting, cvxpy, sums over texts."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from lab import conditional
from lab.conditional import average_discrepancy, pooled_discrepancy, transport_bound
from models import oracle
from numpy.testing import assert_allclose
from referees.conic import DIVERSITIES, most_gained
from refusals import refused
from scipy.optimize import brentq, linear_sum_assignment
from scipy.special import entr, rel_entr

import qdtheory as qd
from qdtheory.proofs import kernel_criterion

average_diversity = conditional.average_diversity
pooled_diversity = conditional.pooled_diversity
conditional_quality = conditional.conditional_quality
HALF, EXAMPLE = np.array([0.5, 0.5]), np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
SPACE = qd.TextSpace(2, 3)
ORACLES = np.stack([oracle(SPACE, seed, sigma=1.0) for seed in (0, 1, 2)])
SHARES = np.array([0.5, 0.3, 0.2])
OUTER = qd.CR_NRR, qd.LL_SE
approx = pytest.approx


def worlds(seed, count, conditions=3, texts=8):
    """Interior real distributions with weights."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        weights = rng.dirichlet(np.ones(conditions))
        yield rng.dirichlet(np.ones(texts), conditions), weights


def rewards_of(pair, p):
    return np.stack([pair.text_quality(row) for row in p])


def gain_of(pair, q, p, weights):
    u, start = (conditional_quality(pair, x, p, weights) for x in (q, p))
    return float(u - start)


def by_cvxpy(pair, p, weights, *, pooled=False, shares=None):
    """The most quality gained at no loss of SE or NRR, by a conic solver."""
    shares = weights if shares is None else shares
    of_one = DIVERSITIES["SE" if pair.g is qd.functions.SE else "NRR"]

    def diversity(q):
        if pooled:
            return of_one(weights @ q)
        return sum(x * of_one(q[c]) for c, x in enumerate(shares))

    return most_gained(weights[:, None] * rewards_of(pair, p), p, diversity)


def by_sorting(rewards, pool, weights):
    """The best quality of two conditions with this pool.

    The first takes the texts that it values more than the second does, first.
    """
    order = np.argsort(rewards[1] - rewards[0])
    before = np.concatenate([[0], np.cumsum(pool[order])[:-1]])
    first = np.zeros_like(pool)
    first[order] = np.clip(weights[0] - before, 0, pool[order])
    return first @ rewards[0] + (pool - first) @ rewards[1]


def shared(q, weights):
    """The information that texts and conditions share, H(c) + H(x) - H(c, x)."""
    joint = weights[:, None] * q
    return entr(weights).sum() + entr(joint.sum(0)).sum() - entr(joint).sum()


@pytest.mark.claim("N18.1")
def test_the_spread_is_the_information_in_the_joint_distribution():
    of_pool, of_each = pooled_diversity, average_diversity
    for q, weights in worlds(2, 20, conditions=4, texts=6):
        # Two conditions drawn at random are this far apart.
        distance = weights @ ((q[:, None] - q) ** 2).sum(axis=2) @ weights / 2
        for pair, by_hand in ((qd.LL_SE, shared(q, weights)), (qd.CR_NRR, distance)):
            spread = of_pool(pair, q, weights) - of_each(pair, q, weights)
            assert float(spread) == approx(by_hand, abs=1e-14)


AVERAGE = average_discrepancy, average_diversity
POOLED = pooled_discrepancy, pooled_diversity


@pytest.mark.claim("N18.3", "N18.11")
@pytest.mark.parametrize(
    ("of", "pair"),
    [(AVERAGE, x) for x in (qd.LL_NRR, qd.CR_SE)]
    + [(POOLED, x) for x in (*OUTER, qd.LL_NRR, qd.CR_SE)],
)
def test_the_discrepancy_is_that_of_a_conic_solver(of, pair):
    (discrepancy, diversity), pooled = of, of is POOLED
    some = [(EXAMPLE, HALF), *worlds(12, 2)] if pooled else worlds(3, 4, 2, 3)
    for p, weights in some:
        found = discrepancy(pair, p, weights)
        by_solver = by_cvxpy(pair, p, weights, pooled=pooled)
        assert 1e-5 < found.qdisc == approx(by_solver, abs=2e-6)
        assert found.status == "certified"
        assert found.upper_bound - found.qdisc <= (1e-9 if pooled else 1e-12)
        assert gain_of(pair, found.q, p, weights) == approx(found.qdisc, abs=1e-14)
        v, least = (diversity(pair, q, weights) for q in (found.q, p))
        assert v >= least - 1e-15
        if pooled:
            assert transport_bound(pair, p, weights).qdisc <= found.qdisc + 1e-12


# --- Average diversity --------------------------------------------------------------


@pytest.mark.claim("N18.2")
def test_one_multiplier_for_all_conditions_is_enough_and_needed():
    def two_levels(num_high, mean):
        """Four texts of two levels with this logarithmic mean, w = -2 mean."""

        def row(low):
            high = (1 - (4 - num_high) * low) / num_high
            return np.repeat([high, low], [num_high, 4 - num_high])

        def off(low):
            return (row(low)[0] - low) / np.log(row(low)[0] / low) - mean

        return row(brentq(off, 1e-12, 0.25 - 1e-6, xtol=1e-15))

    ((_, weights),) = worlds(4, 1)
    p = np.stack([two_levels(num_high, 0.12) for num_high in (1, 2, 3)])
    found = average_discrepancy(qd.LL_NRR, p, weights)
    assert found.upper_bound <= 1e-13
    assert found.evidence.w == approx(-0.24, rel=1e-9)
    p[1] = two_levels(2, 0.15)
    assert average_discrepancy(qd.LL_NRR, p, weights).qdisc > 1e-5


@pytest.mark.claim("N18.4")
def test_a_uniform_condition_stays_uniform():
    for p, _ in worlds(5, 3, conditions=2, texts=3):
        rows = np.vstack([p, np.full(3, 1 / 3)])
        found = average_discrepancy(qd.LL_NRR, rows, np.array([0.2, 0.2, 0.6]))
        assert found.qdisc > 1e-6
        assert_allclose(found.q[2], 1 / 3, atol=1e-15)
    assert average_discrepancy(qd.LL_NRR, np.full((2, 3), 1 / 3), HALF).qdisc == 0


def bent(x):
    return -x + (x - 1 / 2) ** 2 / 2


# f, g', the number of texts, and whether one multiplier fits one condition, and more.
ANTIPARALLEL = [
    (np.abs, lambda x: -((x - 1 / 3) ** 3), 3, True, False),
    (np.abs, lambda x: 1 - 2 * x, 3, True, True),
    *((np.abs, bent, 3, False, False), (np.abs, bent, 2, True, True)),
    (np.log, lambda x: -2 * x, 2, True, False),
]


@pytest.mark.claim("N18.5", "N18.6")
@pytest.mark.parametrize(("f", "slope", "texts", "one", "more"), ANTIPARALLEL)
def test_antiparallel_only_where_one_multiplier_fits(f, slope, texts, one, more):
    def mismatch(p, weights):
        """1 + cosine of the gradients of U and V along the simplices."""
        root = np.sqrt(np.reshape(weights, (-1, 1)))
        u, v = ((h(p) - h(p).mean(axis=1, keepdims=True)) * root for h in (f, slope))
        return np.sum((u / np.linalg.norm(u) + v / np.linalg.norm(v)) ** 2) / 2

    for p, weights in worlds(6, 50, conditions=3, texts=texts):
        for value, fits in ((mismatch(p[:1], 1), one), (mismatch(p, weights), more)):
            assert value <= 1e-14 if fits else value > 1e-9


@pytest.mark.claim("N18.7")
def test_quality_and_diversity_must_weigh_conditions_alike():
    for pair, (p, weights) in product(OUTER, worlds(8, 2, conditions=2, texts=4)):
        assert by_cvxpy(pair, p, weights) == approx(0, abs=1e-7)
        assert by_cvxpy(pair, p, weights, shares=weights[::-1]) > 1e-4


def test_average_discrepancy_at_its_ends(monkeypatch):
    # More room than the best texts need: the modes of the scores, at w = -infinity.
    pair = qd.LinearPair(lambda p: np.array([1.0, 1.0, 0.0]), qd.functions.NRR)
    found = average_discrepancy(pair, np.array([[0.9, 0.05, 0.05]]), np.ones(1))
    assert_allclose(found.q, [[0.5, 0.5, 0]], atol=1e-15)
    assert (found.qdisc, found.evidence.w) == (approx(0.05, abs=1e-15), -np.inf)
    # Rounded up by some 20 units in the last place of the scores.
    assert 0 <= found.upper_bound - found.qdisc <= 1e-14
    # Texts of quality minus infinity stay out.
    p = np.array([[0.7, 0.3, 0.0], [0.2, 0.3, 0.5]])
    honest = average_discrepancy(qd.LL_NRR, p, HALF)
    assert honest.qdisc > 1e-4
    assert honest.q[0, 2] == 0
    # Whatever optimum is found, the bound is right.
    p, optima = np.array([[0.6, 0.4], [0.9, 0.1]]), conditional._optima
    honest, near = average_discrepancy(qd.LL_NRR, p, HALF), np.array([0.04, 0.06])
    monkeypatch.setattr(conditional, "_optima", lambda *x: 0.9 * optima(*x) + near)
    found = average_discrepancy(qd.LL_NRR, p, HALF)
    assert found.qdisc + 1e-5 < honest.qdisc <= found.upper_bound


# --- Pooled diversity ---------------------------------------------------------------


@pytest.mark.claim("N18.8")
@pytest.mark.parametrize("pair", OUTER)
def test_transport_is_the_best_assignment_of_twelve_units(pair):
    rng, owner = np.random.default_rng(9), np.repeat(range(3), 4)
    for _ in range(20):
        counts = rng.multinomial(4, rng.dirichlet(np.ones(8)), 3)
        plan = transport_bound(pair, counts / 4, np.full(3, 1 / 3))
        rewards = np.maximum(rewards_of(pair, counts / 4), -1e9)
        cost = rewards[owner][:, np.repeat(range(8), counts.sum(axis=0))]
        best = cost[linear_sum_assignment(cost, maximize=True)].sum()
        by_hand = (best - (counts * rewards).sum()) / 12
        assert_allclose((plan.qdisc, plan.upper_bound), by_hand, atol=1e-14)


@pytest.mark.claim("N18.9", "N18.10", "N18.13")
@pytest.mark.parametrize("pair", OUTER)
def test_transport_of_two_conditions_is_sorting(pair):
    for p, weights in worlds(10, 10, conditions=2):
        plan, rewards = transport_bound(pair, p, weights), rewards_of(pair, p)
        start, pool = weights @ (p * rewards).sum(axis=1), weights @ p
        by_hand = by_sorting(rewards, pool, weights) - start
        assert 0 < plan.qdisc == approx(by_hand, abs=1e-14)
        slack = plan.evidence.conditions[:, None] + plan.evidence.texts - rewards
        assert slack.min() >= -1e-14
        assert abs(slack[plan.q > 0]).max() <= 1e-12
        assert_allclose(weights @ plan.q, pool, atol=1e-14)
        # Of little dependence the gain is in proportion to it, of none it is none; the
        # next term is of order t, with second derivatives of up to 1 / p^2.
        slope = 1 if pair is qd.CR_NRR else 1 / pool
        rate = by_sorting((p - pool) * slope, pool, weights)
        little = transport_bound(pair, pool + 1e-5 * (p - pool), weights)
        assert little.qdisc / 1e-5 == approx(rate, rel=1e-2)
        none = transport_bound(pair, np.tile(pool, (2, 1)), weights)
        assert none.upper_bound <= 1e-14


@pytest.mark.claim("N18.12")
@pytest.mark.parametrize("pair", [qd.CR_SE, qd.CR_NRR])
def test_without_dependence_the_conditions_do_not_matter(pair):
    for p, weights in worlds(13, 3):
        found = pooled_discrepancy(pair, np.tile(p[0], (3, 1)), weights)
        alone = qd.quality_discrepancy(pair, p[0]).qdisc
        assert found.qdisc - 1e-14 <= alone <= found.upper_bound + 1e-14
        assert found.upper_bound - found.qdisc <= 1e-9


@pytest.mark.claim("N18.14")
def test_the_best_model_gives_the_condition_away():
    for p, weights in worlds(15, 3):
        q = np.random.default_rng(15).dirichlet(np.ones(8), 3)
        total = conditional_quality(qd.LL_SE, q, p, weights)
        total += pooled_diversity(qd.LL_SE, q, weights)
        fit = weights @ rel_entr(q, p).sum(axis=1)
        assert float(total) == approx(shared(q, weights) - fit, abs=1e-14)
        best = np.asarray(pooled_discrepancy(qd.LL_SE, p, weights).q)
        assert shared(best, weights) > shared(p, weights) + 0.1


@pytest.mark.claim("N18.15")
def test_conditions_without_a_text_in_common():
    draw, p = np.random.default_rng(16).dirichlet, np.zeros((2, 6))
    weights, p[0, :3], p[1, 3:] = draw(np.ones(2)), *draw(np.ones(3), 2)
    for pair in OUTER:
        assert transport_bound(pair, p, weights).upper_bound <= 1e-14
    assert pooled_discrepancy(qd.CR_NRR, p, HALF).upper_bound <= 1e-9
    found = pooled_discrepancy(qd.CR_NRR, p, weights)
    by_solver = by_cvxpy(qd.CR_NRR, p, weights, pooled=True)
    assert 1e-6 < found.qdisc == approx(by_solver, abs=1e-6)


@pytest.mark.claim("N18.16")
def test_a_p_of_greatest_quality_may_be_less_diverse_than_it_could_be():
    # Uniform rows whose texts overlap: all models on these texts tie in quality.
    p = np.array([[1, 1, 1, 0], [0, 0, 1, 1]]) / np.array([[3], [2]])
    model = np.array([[5, 5, 2, 0], [0, 0, 3, 5]]) / np.array([[12], [8]])
    weights = np.array([0.6, 0.4])
    assert gain_of(qd.CR_NRR, model, p, weights) == approx(0, abs=1e-15)
    v, least = (pooled_diversity(qd.CR_NRR, q, weights) for q in (model, p))
    assert v == approx(-1 / 4, abs=1e-15)
    assert v > least + 1e-3
    assert pooled_discrepancy(qd.CR_NRR, p, weights).qdisc <= 1e-9


@pytest.mark.claim("N18.17")
def test_what_f_does_not_see_cannot_be_exchanged():
    def coarse(x):
        return jnp.select([x < 0.2, x < 0.45], [0.1, 0.35], 0.55)

    pair, seen = qd.SeparablePair(coarse, qd.functions.NRR), np.array([0.55, 0.35, 0.1])
    p = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1]])
    assert transport_bound(pair, p, HALF).upper_bound <= 1e-15
    pool = np.random.default_rng(17).dirichlet(np.ones(3), (2000, 2)).mean(axis=1)
    lead = seen @ seen / 2 - (pool @ seen - (pool**2).sum(axis=1) / 2)
    # Half the squared distance from the pool of P is lost.
    assert_allclose(lead, ((pool - HALF @ p) ** 2).sum(axis=1) / 2, atol=1e-15)


def test_the_best_texts_where_they_are_more_diverse_than_p():
    p = np.array([[0.45, 0.5, 0.05], [0.35, 0.25, 0.4], [0.88, 0.1, 0.02]])
    weights, best = np.array([0.15, 0.48, 0.37]), np.eye(3)[[1, 2, 0]]
    found = pooled_discrepancy(qd.CR_NRR, p, weights)
    gain = gain_of(qd.CR_NRR, best, p, weights)
    assert found.qdisc <= gain <= found.upper_bound <= found.qdisc + 1e-10


# --- Metrics in use -----------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_text_for_each_condition_repeats_less_than_the_pool(n):
    has = np.asarray(qd.ngrams.ngram_matrix(SPACE, n)).T > 0
    kinds = (has[:, None] | has).sum(axis=2) / (2 * (4 - n))
    for p, _ in worlds(18, 3, conditions=2):
        pool = HALF @ p
        drawn = pool @ kinds @ pool
        found = qd.ngrams.expected_distinct(SPACE, pool, n, num_texts=2)
        assert float(found) == approx(drawn, abs=1e-14)
        assert drawn < p[0] @ kinds @ p[1]


@pytest.mark.claim("N18.19", "N18.20")
def test_no_metric_of_the_pool_sees_the_best_coupling():
    unseen = qd.LL_SE, qd.BleuPair(SPACE, 3, 2, 4), qd.pairs.ngram_pair(SPACE, 1)
    for pair in (qd.LL_SE, qd.BleuPair(SPACE, 2, 2, 2), qd.pairs.ngram_pair(SPACE, 2)):
        plan = transport_bound(pair, ORACLES, SHARES)
        gain = gain_of(pair, plan.q, ORACLES, SHARES)
        assert 1e-3 < plan.qdisc == approx(gain, abs=1e-14)
        # The potentials, against the quality of each text alone.
        alone = np.array([[pair.quality(x, p) for x in np.eye(8)] for p in ORACLES])
        slack = plan.evidence.conditions[:, None] + plan.evidence.texts - alone
        assert slack.min() >= -1e-14
        assert SHARES @ (plan.q * slack).sum(axis=1) <= 1e-14
        for other in unseen:
            v, real = (pooled_diversity(other, q, SHARES) for q in (plan.q, ORACLES))
            assert float(v) == approx(float(real), abs=1e-13)


@pytest.mark.claim("N18.21")
def test_pairwise_bleu_with_one_reference_is_a_kernel_in_every_condition():
    zero_sum = np.linalg.svd(np.ones((1, 8)))[2][1:]
    kernels = [qd.kernels.bleu_kernel(SPACE, n) for n in (1, 2)]
    least = [np.linalg.eigvalsh(zero_sum @ k @ zero_sum.T)[0] for k in kernels]
    assert least[0] >= -1e-14 > -0.1 > least[1]
    pair = qd.BleuPair(SPACE, 1, 1, 1)
    for q, _ in worlds(19, 5):
        gain = gain_of(pair, q, ORACLES, SHARES)
        v, real = (average_diversity(pair, x, SHARES) for x in (q, ORACLES))
        d = q - ORACLES
        mmd = SHARES @ ((d @ kernels[0]) * d).sum(axis=1)
        assert float(real - v) / 2 - gain == approx(mmd / 2, abs=1e-14)
    # Two negative directions: a step at right angles to Kp in each condition.
    pair = qd.BleuPair(SPACE, 2, 1, 1)
    for row in ORACLES:
        q = kernel_criterion.dominating_model(kernels[1], row).q
        assert pair.quality(q, row) > pair.quality(row, row)
        assert pair.diversity(q) > pair.diversity(row)


@pytest.mark.claim("N18.22")
@pytest.mark.parametrize("num_references", [1, 2])
def test_pairwise_bleu_of_whole_texts(num_references):
    p, bleu = ORACLES[:2], qd.BleuPair(SPACE, 3, num_references, 1)
    pair = qd.SeparablePair(lambda x: 1 - (1 - x) ** num_references, qd.functions.NRR)
    assert_allclose(rewards_of(bleu, p), rewards_of(pair, p), atol=1e-14)
    v = [float(average_diversity(x, p, HALF)) for x in (bleu, pair)]
    assert v[0] == approx(v[1], abs=1e-14)
    found = average_discrepancy(pair, p, HALF).qdisc
    assert found == approx(by_cvxpy(pair, p, HALF), abs=1e-6)
    assert (found > 1e-4) == (num_references == 2)


def test_bad_input_gets_one_clear_error(as_a_user):
    pair, one, matrix = qd.CR_NRR, np.array([1.0]), EXAMPLE[:, :2]
    convex = qd.SeparablePair(qd.functions.CR, lambda x: x**2)
    infinite = qd.SeparablePair(lambda x: x / 0, qd.functions.NRR)
    refused(
        ("p must be a matrix", transport_bound, pair, EXAMPLE[0], HALF),
        ("of each of the 2 conditions", transport_bound, pair, EXAMPLE, one),
        ("quality of P itself must be", transport_bound, infinite, EXAMPLE, HALF),
        ("finite quality of every", pooled_discrepancy, qd.LL_SE, np.eye(2), HALF),
        ("must be strictly concave", average_discrepancy, convex, EXAMPLE, HALF),
        ("shape of p, (2, 3), got", conditional_quality, pair, matrix, EXAMPLE, HALF),
    )
