"""The compatible quality of a diversity, its divergence, and what a misfit costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.metrics.scoring_rules import bregman_divergence, local_discrepancy
from numpy.testing import assert_allclose
from refusals import refused

import qdtheory as qd
from qdtheory.proofs.optimality import examine, metrics_of

approx = pytest.approx

N = 20
groups = np.random.default_rng(3).dirichlet(np.ones(5), N)


def entropy(q):
    return qd.functions.SE(q).sum()


def repetition(q):
    return qd.functions.NRR(q).sum()


def tsallis(q):
    return qd.Tsallis(1.5)(q).sum()


def group_entropy(q):
    """Of groups that share the texts: concave, no sum over texts, flat in places."""
    return qd.functions.SE(groups.T @ q).sum()


def spherical(q):
    return -jnp.linalg.norm(q)


def groups_in_four(q):
    return (1 - (1 - groups.T @ q) ** 4).sum()


DIVERSITIES = entropy, repetition, tsallis, group_entropy, spherical, groups_in_four
EACH = pytest.mark.parametrize("diversity", DIVERSITIES)


def interior(rng, size=N, count=None):
    return 0.95 * rng.dirichlet(np.ones(size), count) + 0.05 / size


def zero_sum(x):
    return np.asarray(x) - np.mean(x)


def scored(scores, diversity):
    return qd.ConcavePair(lambda p: jnp.asarray(scores), diversity)


@pytest.mark.claim("N16.1")
@EACH
def test_scores_are_what_text_by_text_differences_give(diversity):
    scores = qd.compatible_quality(diversity).text_quality
    value, ways = jax.jit(jax.vmap(diversity)), 1e-6 * (np.eye(N) - 1 / N)
    for p in interior(np.random.default_rng(0), count=5):
        rise = (value(p + ways) - value(p - ways)) / 2e-6
        # Central differences: 1e-16 / 1e-6 of rounding, and a third derivative, which
        # is below 1 / P^2 = 2e5, times 1e-12.
        assert_allclose(zero_sum(scores(p)), -zero_sum(rise), atol=1e-6)


@pytest.mark.slow
@pytest.mark.claim("N16.1", "N16.2")
@pytest.mark.parametrize("diversity", [tsallis, group_entropy, groups_in_four])
def test_no_model_beats_p_by_more_than_the_bound(diversity):
    rng, pair = np.random.default_rng(1), qd.compatible_quality(diversity)
    both = jax.vmap(lambda q, p: (pair.quality(q, p), pair.diversity(q)), (0, None))
    for p in interior(rng, count=12):
        found = qd.quality_discrepancy(pair, p)
        assert 0 <= found.qdisc <= found.upper_bound <= 1e-9
        q = np.vstack([p, interior(rng, count=300), 0.99 * p + 0.01 * interior(rng)])
        u, v = jax.jit(both)(q, p)
        assert not qd.dominance(u[1:] - 1e-13, v[1:] - 1e-13, u[0], v[0]).either.any()


@pytest.mark.claim("N16.3")
def test_divergence_is_the_integral_of_the_curvature():
    rng, kinds = np.random.default_rng(8), (repetition, entropy, group_entropy)
    found = jax.jit(lambda q, p: [bregman_divergence(v, q, p) for v in kinds])
    # D = int_0^1 (1 - s) d'(-H)(P + s d) d ds by Gauss-Legendre, in so many points that
    # probabilities of 1 / 400 at an end cost no digits.
    nodes, weights = np.polynomial.legendre.leggauss(100)
    s, weights = (1 + nodes) / 2, weights / 2
    for share in np.geomspace(0.01, 1, 20):
        p = interior(rng)
        d = share * (interior(rng) - p)
        path = p + s[:, None] * d
        curves = [2 * (d @ d) * np.ones(100), (d**2 / path).sum(axis=1)]
        curves.append(((d @ groups) ** 2 / (path @ groups)).sum(axis=1))
        expected = curves @ (weights * (1 - s))
        # V is at most 3, and its rounding is what D loses.
        assert_allclose(found(p + d, p), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.claim("N16.4")
@pytest.mark.parametrize("diversity", [spherical, groups_in_four])
def test_one_per_cent_off_is_beaten(diversity):
    rng, due = np.random.default_rng(2), qd.compatible_quality(diversity).text_quality
    noise = zero_sum(rng.normal(size=N))

    def scores(p):
        return due(p) + 0.01 * jnp.std(due(p)) * noise / noise.std()

    metrics = metrics_of(qd.ConcavePair(scores, diversity).quality, diversity)
    for p in interior(rng, count=20):
        assert examine(metrics, p).witness.quality_gain > 0


@pytest.mark.claim("N16.5")
@EACH
def test_is_a_proper_scoring_rule(diversity):
    @jax.jit
    def payments(q, p):
        slope = -jax.grad(diversity)(p)
        payment = -diversity(p) + slope - slope @ p
        return q @ payment + diversity(q), bregman_divergence(diversity, q, p)

    for p, q in interior(np.random.default_rng(3), count=(10, 2)):
        lacking, divergence = payments(q, p)
        assert lacking <= 1e-13
        assert_allclose(-lacking, divergence, atol=1e-13)
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.3, 0.6, 0.1])
    assert bregman_divergence(entropy, q, p) == np.inf
    assert_allclose(bregman_divergence(entropy, p, q), qd.kl_divergence(p, q))


@pytest.mark.claim("N16.7")
@pytest.mark.parametrize(("shift", "beaten"), [(-1, False), (0, False), (0.05, True)])
def test_zeros_in_p_only_bound_the_score_from_above(shift, beaten):
    rng, p = np.random.default_rng(16), np.array([0.5, 0.3, 0.2, 0.0])
    way = rng.dirichlet(np.full(4, 0.5), 100_000) - p
    rivals = p + rng.uniform(0, 0.2, (100_000, 1)) * way
    gain = (rivals - p) @ (2 * p + shift * np.array([0, 0, 0, 1]))
    assert ((gain > 1e-6) & ((rivals**2).sum(axis=1) <= p @ p)).any() == beaten


@pytest.mark.claim("N16.9")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_gradient_of_self_bleu_has_a_candidate_and_a_reference_role(k):
    space, q = qd.TextSpace(2, 3), np.random.default_rng(k).dirichlet(np.ones(8))
    pair = qd.BleuPair(space, 2, k, k)
    slope, candidate = -jax.grad(pair.diversity)(q), pair.text_quality(q)
    # The reference role by bumping the references only, in the closed form.
    role = jax.grad(lambda r: qd.expected_bleu(space, q, r, 2, k)[1])(q)
    assert_allclose(slope, candidate + role, rtol=1e-12)
    total = float(slope @ q)  # Euler: V is homogeneous of degree k + 1
    assert total == approx((k + 1) * float(candidate @ q), rel=1e-12)


@pytest.mark.claim("N16.11")
def test_local_discrepancy_is_the_least_price_in_closed_form():
    rng = np.random.default_rng(9)
    for size in np.geomspace(0.01, 0.5, 8):
        p = interior(rng, 6)
        scores = np.log(p) + size * zero_sum(rng.normal(size=6))
        # For the entropy the inverse metric is the covariance under P.
        u, v = scores - p @ scores, -np.log(p) + p @ np.log(p)
        a, b, c = p @ (u * u), p @ (u * v), p @ (v * v)
        found = local_discrepancy(scored(scores, entropy), p)
        assert_allclose(found, np.sqrt(a * c) + b, rtol=1e-7, atol=1e-14)
    assert local_discrepancy(scored(np.ones(6), repetition), p) == approx(0, abs=1e-15)


@pytest.mark.claim("N16.11")
@pytest.mark.parametrize("diversity", [spherical, tsallis, repetition])
def test_small_mismatch_costs_what_the_formula_says(diversity):
    rng, costs = np.random.default_rng(7), []
    p, noise = interior(rng, 8), zero_sum(rng.normal(size=8))
    due = qd.compatible_quality(diversity).text_quality(p)
    for size in (0.005, 0.01):
        pair = scored(due + size * float(jnp.std(due)) * noise, diversity)
        exact = qd.quality_discrepancy(pair, p)
        # The solver's bounds are 1e-11 of the scores' range apart, QDisc some 1e-5.
        assert exact.upper_bound == approx(exact.qdisc, rel=1e-3)
        assert exact.qdisc == approx(local_discrepancy(pair, p), rel=0.02)
        costs.append(exact.qdisc)
    # The next order is smaller by the size times a factor of a few.
    assert costs[1] / costs[0] == approx(4, rel=0.05)


@pytest.mark.claim("N16.12")
def test_strong_convexity_bounds_the_distance():
    rng, blind = np.random.default_rng(10), np.linalg.svd(groups.T)[2][5:]
    kinds = entropy, repetition, group_entropy
    found = jax.jit(lambda q, p: [bregman_divergence(v, q, p) for v in kinds])
    for share in np.geomspace(0.001, 1, 60):
        p = rng.dirichlet(np.ones(N))
        q = (1 - share) * p + share * rng.dirichlet(np.ones(N))
        nats, squares, _ = map(float, found(q, p))
        assert np.abs(q - p).sum() ** 2 <= 2 * nats + 1e-13
        assert ((q - p) ** 2).sum() == approx(squares, abs=1e-14)
        way = blind.T @ (blind @ zero_sum(rng.normal(size=N)))
        assert abs(float(found(p + 0.5 * way * (p / np.abs(way)).min(), p)[2])) <= 1e-13


def test_cr_fits_every_decreasing_function_of_the_norm_and_no_other_norm():
    rng = np.random.default_rng(14)
    models = rng.dirichlet(np.full(5, 0.5), 20_000)
    for p in rng.dirichlet(np.ones(5), 5):
        near = np.vstack([models, 0.99 * p + 0.01 * models])
        better = (near - p) @ p > 1e-14
        for power in (0.5, 1, 2, 3):
            rise = np.linalg.norm(p) ** power - np.linalg.norm(near, axis=1) ** power
            # By Cauchy and Schwarz more of P . Q needs a longer Q; rounding.
            assert not (better & (rise > 1e-14)).any()
        assert (better & (np.sum(p**3) - np.sum(near**3, axis=1) > 1e-14)).any()


def test_bad_input(as_a_user):
    p, half = np.full(4, 0.25), np.ones(2) / 2
    flat = qd.ConcavePair(lambda p: p, lambda q: qd.functions.SE(q[:2]).sum())
    refused(
        ("must be negative definite", local_discrepancy, flat, p),
        ("q must have 2 entries, got 4", bregman_divergence, repetition, p, half),
    )
    words = "diversity must be a function"
    refused((words, qd.compatible_quality, "SE"), error=TypeError)
