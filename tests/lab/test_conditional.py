"""Conditional generation: tables of whole numbers, sorting, cvxpy, sums over texts."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import conditional
from lab.conditional import (
    average_discrepancy,
    average_diversity,
    conditional_quality,
    pooled_discrepancy,
    pooled_diversity,
    transport_bound,
)
from models import oracle
from referees.conic import DIVERSITIES, most_gained
from refusals import refused
from scipy.optimize import brentq, linear_sum_assignment
from scipy.special import entr, rel_entr

import qdtheory as qd
from qdtheory.proofs import kernel_criterion

HALF, EXAMPLE = np.array([0.5, 0.5]), np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
SPACE = qd.TextSpace(2, 3)
ORACLES = np.stack([oracle(SPACE, seed, sigma=1.0) for seed in (0, 1, 2)])
CONVEX = qd.SeparablePair(qd.functions.CR, lambda x: x**2)
INFINITE = qd.SeparablePair(lambda x: x / 0, qd.functions.NRR)


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


def mismatch(f, slope, p, weights):
    """1 + cosine of the gradients of U and V along the simplices."""
    root = np.sqrt(weights)[:, None]
    u, v = ((h(p) - h(p).mean(axis=1, keepdims=True)) * root for h in (f, slope))
    return np.sum((u / np.linalg.norm(u) + v / np.linalg.norm(v)) ** 2) / 2


def by_cvxpy(pair, p, weights, *, pooled=False, diversity_weights=None):
    """The most quality gained at no loss of SE or NRR, by a conic solver."""
    shares = weights if diversity_weights is None else diversity_weights
    of_one = DIVERSITIES["SE" if pair.g is qd.functions.SE else "NRR"]

    def diversity(q):
        if pooled:
            return of_one(weights @ q)
        return sum(share * of_one(q[c]) for c, share in enumerate(shares))

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


def test_metrics_can_be_traced():
    p, weights = next(worlds(1, 1))

    def total(q):
        total = conditional_quality(qd.CR_NRR, q, p, weights)
        return total + pooled_diversity(qd.CR_NRR, q, weights)

    by_hand = weights[:, None] * (p - 2 * weights @ p)
    np.testing.assert_allclose(jax.jit(jax.grad(total))(p), by_hand, atol=1e-15)


@pytest.mark.claim("N18.1")
def test_the_spread_is_the_information_in_the_joint_distribution():
    for q, weights in worlds(2, 20, conditions=4, texts=6):
        # Two conditions drawn at random are this far apart.
        distance = weights @ ((q[:, None] - q) ** 2).sum(axis=2) @ weights / 2
        for pair, by_hand in ((qd.LL_SE, shared(q, weights)), (qd.CR_NRR, distance)):
            spread = pooled_diversity(pair, q, weights)
            spread -= average_diversity(pair, q, weights)
            assert float(spread) == pytest.approx(by_hand, abs=1e-14)


AVERAGE = average_discrepancy, average_diversity
POOLED = pooled_discrepancy, pooled_diversity


@pytest.mark.claim("N18.3")
@pytest.mark.claim("N18.11")
@pytest.mark.parametrize(
    ("of", "pair"),
    [(AVERAGE, x) for x in (qd.LL_NRR, qd.CR_SE)]
    + [(POOLED, x) for x in (qd.CR_NRR, qd.LL_SE, qd.LL_NRR, qd.CR_SE)],
)
def test_the_discrepancy_is_that_of_a_conic_solver(of, pair):
    discrepancy, diversity = of
    some = worlds(3, 4, 2, 3) if of is AVERAGE else [(EXAMPLE, HALF), *worlds(12, 2)]
    for p, weights in some:
        found = discrepancy(pair, p, weights)
        by_solver = by_cvxpy(pair, p, weights, pooled=of is POOLED)
        assert 1e-5 < found.qdisc == pytest.approx(by_solver, abs=2e-6)
        assert isinstance(found, qd.Bounds)
        assert found.status == "certified"
        gap = found.upper_bound - found.qdisc
        assert gap <= (1e-12 if of is AVERAGE else 1e-9)
        gain = gain_of(pair, found.q, p, weights)
        assert gain == pytest.approx(found.qdisc, abs=1e-14)
        v, least = (diversity(pair, q, weights) for q in (found.q, p))
        assert v >= least - 1e-15
        if of is POOLED:
            assert transport_bound(pair, p, weights).qdisc <= found.qdisc + 1e-12


# --- Average diversity --------------------------------------------------------------


@pytest.mark.claim("N18.2")
def test_one_multiplier_for_all_conditions_is_enough_and_needed():
    def two_levels(num_high, mean):
        """Four texts of two levels with this logarithmic mean, w = -2 mean."""

        def levels(low):
            high = (1 - (4 - num_high) * low) / num_high
            return high, (high - low) / np.log(high / low)

        low = brentq(lambda x: levels(x)[1] - mean, 1e-12, 0.25 - 1e-6, xtol=1e-15)
        return np.array([levels(low)[0]] * num_high + [low] * (4 - num_high))

    for mean, (_, weights) in zip((0.12, 0.16, 0.2), worlds(4, 3)):
        p = np.stack([two_levels(num_high, mean) for num_high in (1, 2, 3)])
        found = average_discrepancy(qd.LL_NRR, p, weights)
        assert found.upper_bound <= 1e-13
        assert found.evidence.w == pytest.approx(-2 * mean, rel=1e-9)
        p[1] = two_levels(2, mean + 0.03)
        assert average_discrepancy(qd.LL_NRR, p, weights).qdisc > 1e-5


@pytest.mark.claim("N18.4")
def test_a_uniform_condition_stays_uniform():
    for p, _ in worlds(5, 5, conditions=2, texts=3):
        rows = np.vstack([p, np.full(3, 1 / 3)])
        found = average_discrepancy(qd.LL_NRR, rows, np.array([0.2, 0.2, 0.6]))
        assert found.qdisc > 1e-6
        np.testing.assert_allclose(found.q[2], 1 / 3, atol=1e-15)
    uniform = average_discrepancy(qd.LL_NRR, np.full((2, 3), 1 / 3), HALF)
    assert uniform.qdisc == 0


@pytest.mark.claim("N18.5")
@pytest.mark.claim("N18.6")
def test_gradients_are_antiparallel_only_where_one_multiplier_fits():
    def cubic(x):
        return -((x - 1 / 3) ** 3)

    def bent(x):
        return -x + (x - 1 / 2) ** 2 / 2

    def itself(x):
        return x

    for p, weights in worlds(6, 50, conditions=3, texts=3):
        one = np.ones(1)
        assert mismatch(itself, cubic, p[:1], one) <= 1e-14
        assert mismatch(itself, cubic, p, weights) > 1e-6
        assert mismatch(itself, lambda x: 1 - 2 * x, p, weights) <= 1e-14
        assert mismatch(itself, bent, p, weights) > 1e-9
    for p, weights in worlds(7, 50, conditions=3, texts=2):
        assert mismatch(itself, bent, p, weights) <= 1e-14
        assert mismatch(np.log, lambda x: -2 * x, p[:1], one) <= 1e-14
        assert mismatch(np.log, lambda x: -2 * x, p, weights) > 1e-9


@pytest.mark.claim("N18.7")
def test_quality_and_diversity_must_weigh_conditions_alike():
    for pair in (qd.LL_SE, qd.CR_NRR):
        for p, weights in worlds(8, 2, conditions=2, texts=4):
            other = weights[::-1]
            assert by_cvxpy(pair, p, weights) == pytest.approx(0, abs=1e-7)
            assert by_cvxpy(pair, p, weights, diversity_weights=other) > 1e-4


def test_average_discrepancy_in_another_unit():
    # A quality that ends in a product, which XLA may fuse with what follows.
    tripled = qd.SeparablePair(lambda x: 3 * jnp.log(x), qd.functions.NRR)
    for p, weights in worlds(4, 3, conditions=2, texts=4):
        found = average_discrepancy(tripled, p, weights)
        plain = average_discrepancy(qd.LL_NRR, p, weights)
        assert found.qdisc == pytest.approx(3 * plain.qdisc, rel=1e-9)
        assert found.qdisc <= found.upper_bound <= found.qdisc * (1 + 1e-6)


def test_ends_of_the_average_discrepancy():
    # More room than the best texts need: the modes of the scores, at w = -infinity.
    pair = qd.LinearPair(lambda p: np.array([1.0, 1.0, 0.0]), qd.functions.NRR)
    found = average_discrepancy(pair, np.array([[0.9, 0.05, 0.05]]), np.ones(1))
    np.testing.assert_allclose(found.q, [[0.5, 0.5, 0]], atol=1e-15)
    assert found.qdisc == pytest.approx(0.05, abs=1e-15)
    # Rounded up by some 20 units in the last place of the scores.
    assert 0 <= found.upper_bound - found.qdisc <= 1e-14
    assert found.evidence.w == -np.inf
    # Texts of quality minus infinity stay out.
    p = np.array([[0.7, 0.3, 0.0], [0.2, 0.3, 0.5]])
    found = average_discrepancy(qd.LL_NRR, p, HALF)
    assert found.qdisc > 1e-4
    assert found.q[0, 2] == 0


# --- Pooled diversity ---------------------------------------------------------------


@pytest.mark.claim("N18.8")
def test_transport_is_the_best_assignment_of_twelve_units():
    rng = np.random.default_rng(9)
    third = np.full(3, 1 / 3)
    for pair, _ in product((qd.CR_NRR, qd.LL_SE), range(20)):
        counts = rng.multinomial(4, rng.dirichlet(np.ones(8)), 3)
        plan = transport_bound(pair, counts / 4, third)
        rewards = np.maximum(rewards_of(pair, counts / 4), -1e9)
        owner = np.repeat(range(3), 4)
        texts = np.repeat(range(8), counts.sum(axis=0))
        cost = rewards[owner][:, texts]
        best = cost[linear_sum_assignment(cost, maximize=True)].sum()
        by_hand = (best - (counts * rewards).sum()) / 12
        assert plan.qdisc == pytest.approx(by_hand, abs=1e-14)
        assert plan.upper_bound == pytest.approx(by_hand, abs=1e-14)


@pytest.mark.claim("N18.9")
def test_transport_of_two_conditions_is_sorting():
    for p, weights in worlds(10, 20, conditions=2):
        for pair in (qd.CR_NRR, qd.LL_SE):
            plan, rewards = (transport_bound(pair, p, weights), rewards_of(pair, p))
            start = weights @ (p * rewards).sum(axis=1)
            by_hand = by_sorting(rewards, weights @ p, weights) - start
            assert plan.qdisc == pytest.approx(by_hand, abs=1e-14)
            assert plan.status == "certified"
            slack = plan.evidence.conditions[:, None] + plan.evidence.texts - rewards
            assert slack.min() >= -1e-14
            assert abs(slack[plan.q > 0]).max() <= 1e-12
            np.testing.assert_allclose(weights @ plan.q, weights @ p, atol=1e-14)


@pytest.mark.claim("N18.10")
def test_the_best_exchange_of_two_texts_gains_under_dependence_only():
    for p, weights in worlds(11, 20, texts=4):
        for pair in (qd.CR_NRR, qd.LL_SE):
            rewards, mass = rewards_of(pair, p), weights[:, None] * p
            best = 0.0
            for c, d, x, y in product(range(3), range(3), range(4), range(4)):
                gain = rewards[d, x] + rewards[c, y] - rewards[c, x] - rewards[d, y]
                best = max(best, gain * min(mass[c, x], mass[d, y]))
            assert 0 < best <= transport_bound(pair, p, weights).qdisc + 1e-15
        pool = np.tile(weights @ p, (3, 1))
        assert transport_bound(qd.LL_SE, pool, weights).upper_bound <= 1e-14


@pytest.mark.claim("N18.12")
def test_without_dependence_the_conditions_do_not_matter():
    for pair in (qd.CR_SE, qd.CR_NRR):
        for p, weights in worlds(13, 3):
            found = pooled_discrepancy(pair, np.tile(p[0], (3, 1)), weights)
            alone = qd.quality_discrepancy(pair, p[0]).qdisc
            assert found.qdisc - 1e-14 <= alone <= found.upper_bound + 1e-14
            assert found.upper_bound - found.qdisc <= 1e-9


@pytest.mark.claim("N18.13")
def test_the_gain_grows_in_proportion_to_little_dependence():
    t = 1e-5
    for p, weights in worlds(14, 5, conditions=2):
        pool = weights @ p
        nearly = pool + t * (p - pool)
        for pair, slope in ((qd.CR_NRR, 1), (qd.LL_SE, 1 / pool)):
            rate = by_sorting(slope * (p - pool), pool, weights)
            gain = transport_bound(pair, nearly, weights).qdisc
            # The next term is of order t, with second derivatives of up to 1 / p^2.
            assert gain / t == pytest.approx(rate, rel=1e-2)


@pytest.mark.claim("N18.14")
def test_the_best_model_gives_the_condition_away():
    for p, weights in worlds(15, 5):
        q = np.random.default_rng(15).dirichlet(np.ones(8), 3)
        total = conditional_quality(qd.LL_SE, q, p, weights)
        total += pooled_diversity(qd.LL_SE, q, weights)
        fit = weights @ rel_entr(q, p).sum(axis=1)
        assert float(total) == pytest.approx(shared(q, weights) - fit, abs=1e-14)
        best = np.asarray(pooled_discrepancy(qd.LL_SE, p, weights).q)
        assert shared(best, weights) > shared(p, weights) + 0.1


@pytest.mark.claim("N18.15")
def test_conditions_without_a_text_in_common():
    rng = np.random.default_rng(16)
    for _ in range(5):
        p = np.zeros((2, 6))
        p[0, :3], p[1, 3:] = rng.dirichlet(np.ones(3), 2)
        weights = rng.dirichlet(np.ones(2))
        for pair in (qd.CR_NRR, qd.LL_SE):
            assert transport_bound(pair, p, weights).upper_bound <= 1e-14
        assert pooled_discrepancy(qd.CR_NRR, p, HALF).upper_bound <= 1e-9
        found = pooled_discrepancy(qd.CR_NRR, p, weights)
        by_solver = by_cvxpy(qd.CR_NRR, p, weights, pooled=True)
        assert 1e-6 < found.qdisc == pytest.approx(by_solver, abs=1e-6)
        # Under LL-SE no model on the same texts has a greater sum of both metrics.
        q = np.zeros((500, 2, 6))
        q[:, 0, :3], q[:, 1, 3:] = rng.dirichlet(np.ones(3), (2, 500))
        u = (q * np.log(np.where(p > 0, p, 1))).sum(axis=2) @ weights
        v = entr(weights @ q).sum(axis=1)
        assert (u + v).max() <= entr(weights).sum() + 1e-14


@pytest.mark.claim("N18.16")
def test_a_p_of_greatest_quality_may_be_less_diverse_than_it_could_be():
    # Uniform rows whose texts overlap: all models on these texts tie in quality.
    p = np.array([[1, 1, 1, 0], [0, 0, 1, 1]]) / np.array([[3], [2]])
    model = np.array([[5, 5, 2, 0], [0, 0, 3, 5]]) / np.array([[12], [8]])
    weights = np.array([0.6, 0.4])
    found = pooled_discrepancy(qd.CR_NRR, p, weights)
    assert gain_of(qd.CR_NRR, model, p, weights) == pytest.approx(0, abs=1e-15)
    v, least = (pooled_diversity(qd.CR_NRR, q, weights) for q in (model, p))
    assert v == pytest.approx(-1 / 4, abs=1e-15)
    assert v > least + 1e-3
    assert found.qdisc <= 1e-9


@pytest.mark.claim("N18.17")
def test_what_f_does_not_see_cannot_be_exchanged():
    def coarse(x):
        return jax.numpy.select([x < 0.2, x < 0.45], [0.1, 0.35], 0.55)

    pair = qd.SeparablePair(coarse, qd.functions.NRR)
    p = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1]])
    assert transport_bound(pair, p, HALF).upper_bound <= 1e-15
    q = np.random.default_rng(17).dirichlet(np.ones(3), (2000, 2))
    pool = q.mean(axis=1)
    u, v = pool @ [0.55, 0.35, 0.1], -(pool**2).sum(axis=1)
    # Half the squared distance from the pool of P is lost.
    lost = ((pool - HALF @ p) ** 2).sum(axis=1) / 2
    start = np.square([0.55, 0.35, 0.1]).sum()
    np.testing.assert_allclose(start / 2 - u - v / 2, lost, atol=1e-15)


def test_all_texts_at_their_conditions_where_the_pool_is_uniform():
    # One mode a condition: no other pool is as diverse.
    p = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
    found = pooled_discrepancy(qd.CR_NRR, p, np.full(3, 1 / 3))
    np.testing.assert_allclose(found.q, np.eye(3), atol=1e-15)
    assert found.qdisc == pytest.approx(0.12, abs=1e-15)


def test_the_best_texts_where_they_are_more_diverse_than_p():
    p = np.array([[0.45, 0.5, 0.05], [0.35, 0.25, 0.4], [0.88, 0.1, 0.02]])
    weights = np.array([0.15, 0.48, 0.37])
    found = pooled_discrepancy(qd.CR_NRR, p, weights)
    best = gain_of(qd.CR_NRR, np.eye(3)[[1, 2, 0]], p, weights)
    assert found.qdisc <= best <= found.upper_bound <= found.qdisc + 1e-10
    assert found.evidence.w < -1e9


# --- Metrics in use -----------------------------------------------------------------


@pytest.mark.claim("N18.18")
def test_one_text_for_each_condition_repeats_less_than_the_pool():
    for n, (p, _) in product((1, 2, 3), worlds(18, 3, conditions=2)):
        has = np.asarray(qd.ngrams.ngram_matrix(SPACE, n)).T > 0
        kinds = (has[:, None] | has).sum(axis=2) / (2 * (4 - n))
        one_each = p[0] @ kinds @ p[1]
        pool = HALF @ p
        drawn = pool @ kinds @ pool
        found = qd.ngrams.expected_distinct(SPACE, pool, n, num_texts=2)
        assert float(found) == pytest.approx(drawn, abs=1e-14)
        assert drawn < one_each


@pytest.mark.claim("N18.19")
@pytest.mark.claim("N18.20")
def test_no_metric_of_the_pool_sees_the_best_coupling():
    p, weights = ORACLES, np.array([0.5, 0.3, 0.2])
    unseen = qd.LL_SE, qd.BleuPair(SPACE, 3, 2, 4), qd.pairs.ngram_pair(SPACE, 1)
    for pair in (qd.LL_SE, qd.BleuPair(SPACE, 2, 2, 2), qd.pairs.ngram_pair(SPACE, 2)):
        plan = transport_bound(pair, p, weights)
        assert plan.qdisc > 1e-3
        assert gain_of(pair, plan.q, p, weights) == pytest.approx(plan.qdisc, abs=1e-14)
        # The potentials, against the quality of each text alone.
        alone = np.array([[pair.quality(x, row) for x in np.eye(8)] for row in p])
        slack = plan.evidence.conditions[:, None] + plan.evidence.texts - alone
        assert slack.min() >= -1e-14
        assert weights @ (plan.q * slack).sum(axis=1) <= 1e-14
        for other in unseen:
            v, real = (pooled_diversity(other, q, weights) for q in (plan.q, p))
            assert float(v) == pytest.approx(float(real), abs=1e-13)


@pytest.mark.claim("N18.21")
def test_pairwise_bleu_with_one_reference_is_a_kernel_in_every_condition():
    p, weights = ORACLES, np.array([0.5, 0.3, 0.2])
    zero_sum = np.linalg.svd(np.ones((1, 8)))[2][1:]
    least = [
        np.linalg.eigvalsh(zero_sum @ qd.kernels.bleu_kernel(SPACE, n) @ zero_sum.T)[0]
        for n in (1, 2)
    ]
    assert least[0] >= -1e-14
    assert least[1] < -0.1
    pair = qd.BleuPair(SPACE, 1, 1, 1)
    for q, _ in worlds(19, 10):
        loss = -gain_of(pair, q, p, weights)
        v, real = (average_diversity(pair, x, weights) for x in (q, p))
        kernel = qd.kernels.bleu_kernel(SPACE, 1)
        mmd = np.einsum("c,ci,ij,cj->", weights, q - p, kernel, q - p)
        assert loss + float(real - v) / 2 == pytest.approx(mmd / 2, abs=1e-14)
    # Two negative directions: a step at right angles to Kp in each condition.
    pair = qd.BleuPair(SPACE, 2, 1, 1)
    for row in p:
        q = kernel_criterion.dominating_model(qd.kernels.bleu_kernel(SPACE, 2), row).q
        assert pair.quality(q, row) > pair.quality(row, row)
        assert pair.diversity(q) > pair.diversity(row)


@pytest.mark.claim("N18.22")
@pytest.mark.parametrize("num_references", [1, 2])
def test_pairwise_bleu_of_whole_texts(num_references):
    p = ORACLES[:2]
    pair = qd.SeparablePair(lambda x: 1 - (1 - x) ** num_references, qd.functions.NRR)
    bleu = qd.BleuPair(SPACE, 3, num_references, 1)
    np.testing.assert_allclose(rewards_of(bleu, p), rewards_of(pair, p), atol=1e-14)
    v = [float(average_diversity(x, p, HALF)) for x in (bleu, pair)]
    assert v[0] == pytest.approx(v[1], abs=1e-14)
    found = average_discrepancy(pair, p, HALF).qdisc
    assert found == pytest.approx(by_cvxpy(pair, p, HALF), abs=1e-6)
    assert (found > 1e-4) == (num_references == 2)


# --- Bad input ----------------------------------------------------------------------


def test_bad_input_gets_one_clear_error(as_a_user):
    pair, one = qd.CR_NRR, np.array([1.0])
    refused(
        ("p must be a matrix", transport_bound, pair, EXAMPLE[0], HALF),
        ("p[0] must sum to 1", transport_bound, pair, 2 * EXAMPLE, HALF),
        ("of each of the 2 conditions", transport_bound, pair, EXAMPLE, one),
        ("quality of P itself must be", transport_bound, INFINITE, EXAMPLE, HALF),
        ("weights must be positive; ", pooled_discrepancy, pair, EXAMPLE, np.eye(2)[0]),
        ("finite quality of every", pooled_discrepancy, qd.LL_SE, np.eye(2), HALF),
        ("must be strictly concave", average_discrepancy, CONVEX, EXAMPLE, HALF),
        (
            "the shape of p, (2, 3), got",
            conditional_quality,
            pair,
            EXAMPLE[:, :2],
            EXAMPLE,
            HALF,
        ),
    )


def test_a_wrong_optimum_leaves_the_bound_right(monkeypatch):
    p = np.array([[0.6, 0.4], [0.9, 0.1]])
    honest = average_discrepancy(qd.LL_NRR, p, HALF)
    optima = conditional._optima

    def near(pair, p, w):
        return 0.9 * optima(pair, p, w) + 0.1 * np.array([0.4, 0.6])

    monkeypatch.setattr(conditional, "_optima", near)
    found = average_discrepancy(qd.LL_NRR, p, HALF)
    assert found.qdisc < honest.qdisc - 1e-5
    assert found.upper_bound >= honest.qdisc
