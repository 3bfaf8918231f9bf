"""Pairs of a similarity, against BLEU, n-grams and what their divergences must be."""

from itertools import chain, pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scoringrules
from lab import metrics
from refusals import refused

import qdtheory as qd
from qdtheory.kernels import bleu_kernel


@pytest.mark.parametrize("max_order", [1, 2, 3])
def test_equals_bleu_with_one_reference_on_both_sides(max_order):
    space = qd.TextSpace(3, 3)
    bleu = qd.BleuPair(space, max_order, 1, 1)
    pair = qd.KernelPair(bleu_kernel(space, max_order))
    rng = np.random.default_rng(max_order)
    for q, p in rng.dirichlet(np.ones(space.num_texts), (5, 2)):
        # Sums of 27 terms in [0, 1] by two routes.
        np.testing.assert_allclose(pair.quality(q, p), bleu.quality(q, p), atol=1e-14)
        np.testing.assert_allclose(pair.diversity(q), bleu.diversity(q), atol=1e-14)
        scores = bleu.text_quality(p)
        np.testing.assert_allclose(pair.text_quality(p), scores, atol=1e-14)


@pytest.mark.claim("N16.13")
def test_gap_is_half_the_squared_mean_discrepancy():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(6, 4))
    pair = qd.KernelPair(features @ features.T)
    q, p = rng.dirichlet(np.ones(6), 2)

    def psi(model):
        return float(pair.quality(model, p) + pair.diversity(model) / 2)

    discrepancy = np.linalg.norm((q - p) @ features)
    assert psi(p) - psi(q) == pytest.approx(discrepancy**2 / 2, rel=1e-12)
    squared = qd.pairs.squared_mmd(pair.kernel, q, p)
    assert float(squared) == pytest.approx(discrepancy**2, rel=1e-12)


# --- kernel scores, against the package scoringrules ---------------------------------

POINTS = np.random.default_rng(0).normal(size=(7, 3))
APART = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)


def psi(kernel, q, p):
    pair = qd.KernelPair(kernel)
    return float(pair.quality(q, p) + pair.diversity(q) / 2)


@pytest.mark.claim("N16.29")
@pytest.mark.parametrize(
    ("theirs", "points", "kernel", "unit"),
    [
        (scoringrules.es_ensemble, POINTS, -APART, 1),
        (scoringrules.gksmv_ensemble, POINTS, np.exp(-(APART**2) / 2), 1),
        # Two different texts are the root of 2 apart.
        (scoringrules.es_ensemble, np.eye(7), np.eye(7), 2**0.5),
    ],
    ids=["energy score", "Gaussian kernel score", "exact match"],
)
def test_a_kernel_score_is_quality_and_half_of_diversity(theirs, points, kernel, unit):
    for q, p in np.random.default_rng(1).dirichlet(np.ones(7), (20, 2)):
        of_q, of_p = (
            p @ [theirs(z, points, ens_w=law) / unit for z in points] for law in (q, p)
        )
        constant = p @ np.diag(kernel) / 2
        assert of_q == pytest.approx(constant - psi(kernel, q, p), abs=1e-12)
        half = float(qd.pairs.squared_mmd(kernel, q, p)) / 2
        assert of_q - of_p == pytest.approx(half, abs=1e-12)
        assert of_q > of_p


@pytest.mark.claim("N16.30")
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("theirs", "kernel"),
    [
        (scoringrules.es_ensemble, -APART),
        (scoringrules.gksmv_ensemble, np.exp(-(APART**2) / 2)),
    ],
    ids=["energy score", "Gaussian kernel score"],
)
def test_the_fair_score_is_that_of_the_law(theirs, kernel, size):
    q, p = np.random.default_rng(2).dirichlet(np.ones(7), 2)
    samples = np.array(list(product(range(7), repeat=size)))
    chance = q[samples].prod(axis=1)
    fair, plain = (
        sum(
            weight
            * chance
            @ theirs(np.tile(z, (len(samples), 1)), POINTS[samples], **how)
            for weight, z in zip(p, POINTS, strict=True)
        )
        for how in ({"estimator": "fair"}, {"estimator": "nrg"})
    )
    law = p @ np.diag(kernel) / 2 - psi(kernel, q, p)
    spread = q @ np.diag(kernel) - q @ kernel @ q
    assert fair == pytest.approx(law, abs=1e-12)
    assert plain == pytest.approx(law + spread / (2 * size), abs=1e-12)


@pytest.mark.claim("N16.31")
def test_crps_and_brier_score_are_kernel_scores():
    rng = np.random.default_rng(3)
    for q, p in rng.dirichlet(np.ones(4), (20, 2)):
        numbers = np.sort(rng.normal(size=4))
        line = -np.abs(numbers[:, None] - numbers)
        crps = p @ [
            scoringrules.crps_ensemble(z, numbers, ens_w=q, estimator="nrg")
            for z in numbers
        ]
        assert crps == pytest.approx(-psi(line, q, p), abs=1e-12)
        # Ranks 0 to 3: the ranked probability score is the CRPS of whole numbers.
        ranks = -np.abs(np.arange(4)[:, None] - np.arange(4.0))
        ranked = p @ scoringrules.rps_score(np.eye(4), np.tile(q, (4, 1)), onehot=True)
        assert ranked == pytest.approx(-psi(ranks, q, p), abs=1e-12)
        # A sum of the scores of four events, each of which is or is not.
        brier = p @ scoringrules.brier_score(np.eye(4), np.tile(q, (4, 1))).sum(axis=1)
        assert brier / 2 == pytest.approx(0.5 - psi(np.eye(4), q, p), abs=1e-12)
        event = np.array([1.0, 0.0, 1.0, 0.0])
        alike = (event[:, None] == event).astype(float)
        once = p @ scoringrules.brier_score(event, np.full(4, q @ event))
        assert once == pytest.approx(0.5 - psi(alike, q, p), abs=1e-12)


@pytest.mark.claim("N16.32")
def test_coverage_and_repetition_of_sentences_are_halves_of_a_fair_energy_score():
    """One n-gram of each sentence is drawn; all draws are listed."""
    rng = np.random.default_rng(4)
    ours, real = rng.integers(3, size=(2, 3, 3)).astype(str).tolist()
    number = {pair: k for k, pair in enumerate(product("012", repeat=2))}
    drawn, observed = (
        [[np.eye(9)[number[pair]] for pair in pairwise(s)] for s in x]
        for x in (ours, real)
    )
    scores = [
        scoringrules.es_ensemble(z, np.array(members), estimator="fair") / 2**0.5
        for members in product(*drawn)
        for z in chain(*observed)
    ]
    cr = qd.text.coverage_rate(ours, real, 2)
    nrr, of_real = (qd.text.negative_repetition_rate(x, 2) for x in (ours, real))
    assert np.mean(scores) == pytest.approx(0.5 - cr - nrr / 2, abs=1e-12)
    cnd = 2 * np.mean(scores) - 1 - of_real
    assert cnd == pytest.approx(qd.text.cnd(ours, real, 2), abs=1e-12)


def test_equals_coverage_and_repetition_of_ngrams():
    space = qd.TextSpace(2, 3)
    kernel = qd.KernelPair(metrics.ngram_kernel(space, 2))
    ngrams = qd.pairs.ngram_pair(space, 2)
    for q, p in np.random.default_rng(1).dirichlet(np.ones(8), (3, 2)):
        np.testing.assert_allclose(kernel.quality(q, p), ngrams.quality(q, p))
        np.testing.assert_allclose(kernel.diversity(q), ngrams.diversity(q))


def test_kernels_are_differentiated_and_batched():
    pair = qd.KernelPair(np.eye(3))
    q = np.array([0.5, 0.5, 0.0])
    by_kernel = jax.jit(jax.grad(lambda pair, q: pair.diversity(q)))(pair, q)
    np.testing.assert_allclose(by_kernel.kernel, -np.outer(q, q))
    many = jax.vmap(lambda k: qd.KernelPair(k).diversity(q))(
        jnp.stack([jnp.eye(3), jnp.ones((3, 3))])
    )
    np.testing.assert_allclose(many, [-0.5, -1])


def test_bad_kernels(as_a_user):
    pair = qd.KernelPair
    refused(
        ("float64, got list", pair, [[1.0]]),
        ("float64, got int64", pair, np.eye(2, dtype=int)),
        error=TypeError,
    )
    refused(
        ("square matrix with a row and a column", pair, np.ones((2, 3))),
        ("got shape (4,)", pair, np.ones(4)),
        ("got shape (0, 0)", pair, np.ones((0, 0))),
        ("finite, got nan at [1, 1]", pair, np.diag([1.0, np.nan])),
        ("symmetric, got 0.5 at [0, 1]", pair, np.array([[1, 0.5], [0.4, 1]])),
    )


def test_bad_distributions(as_a_user):
    pair, p = qd.KernelPair(np.eye(2)), np.array([0.5, 0.5])
    refused(
        ("q must have 2 entries, got 3", pair.quality, np.full(3, 1 / 3), p),
        ("p must sum to 1", pair.text_quality, p / 2),
        ("q must be nonnegative", pair.diversity, np.array([1.5, -0.5])),
    )


# -- Vendi --------------------------------------------------------------------------

KERNEL = metrics.lcs_kernel(qd.TextSpace(2, 3))  # positive semidefinite
PAIR = qd.VendiPair(KERNEL)


def models(seed, number):
    return np.random.default_rng(seed).dirichlet(np.ones(8), number)


@pytest.mark.claim("N25.9")
def test_the_quality_is_minus_the_gradient_of_the_diversity():
    for p in models(0, 5):
        scores = np.asarray(PAIR.text_quality(p))
        slope = np.asarray(jax.grad(PAIR.diversity)(p))
        apart = scores + slope
        np.testing.assert_allclose(apart, apart.mean(), atol=1e-10)
        fitted = qd.compatible_quality(PAIR.diversity).text_quality(p)
        np.testing.assert_allclose(
            scores - scores.mean(), fitted - fitted.mean(), atol=1e-10
        )


@pytest.mark.claim("N25.10")
def test_the_divergence_is_the_quantum_relative_entropy():
    p, *others = models(1, 6)
    for q in others:
        gap = PAIR.quality(p, p) + PAIR.diversity(p)
        gap -= PAIR.quality(q, p) + PAIR.diversity(q)
        expected = metrics.quantum_relative_entropy(q, p, KERNEL)
        assert float(gap) == pytest.approx(float(expected), abs=1e-10)
        bregman = metrics.bregman_divergence(PAIR.diversity, q, p)
        assert float(gap) == pytest.approx(float(bregman), abs=1e-10)


@pytest.mark.claim("N25.9")
def test_the_verdict_and_no_model_among_many_that_beats_p():
    verdict = qd.check_compatibility(PAIR)
    assert verdict.compatible is True
    assert (verdict.w0, verdict.alpha) == (-1, 0.5)
    p, *others = models(2, 300)
    for q in others:
        gain = float(PAIR.quality(q, p) - PAIR.quality(p, p))
        rise = float(PAIR.diversity(q) - PAIR.diversity(p))
        assert gain + rise <= 1e-12


def test_with_the_identity_it_is_ll_se():
    pair, (p, q) = qd.VendiPair(np.eye(8)), models(3, 2)
    assert float(pair.quality(q, p)) == pytest.approx(float(qd.LL_SE.quality(q, p)))
    assert float(pair.diversity(q)) == pytest.approx(float(qd.LL_SE.diversity(q)))


def test_the_discrepancy_of_a_compatible_pair_is_0():
    assert qd.VendiPair(KERNEL) == PAIR
    assert hash(PAIR) == hash(qd.VendiPair(KERNEL))
    found = qd.quality_discrepancy(PAIR, models(4, 1)[0])
    assert 0 <= found.qdisc <= found.upper_bound < 1e-9


def test_a_gain_where_the_best_texts_are_alike():
    """The density matrix of the modes is singular, and so is its slope's formula."""
    kernel = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    scores, p = np.array([1.0, 1.0, 0.0]), np.array([0.2, 0.1, 0.7])
    pair = qd.ConcavePair(lambda p: scores, qd.VendiPair(kernel).diversity)
    found = qd.quality_discrepancy(pair, p)
    # Vendi depends on the mass of the third text alone, and is even around 1/2.
    assert found.qdisc == pytest.approx(0.4, abs=1e-9)
    assert found.upper_bound == pytest.approx(0.4, abs=1e-9)


@pytest.mark.parametrize("kernel", [None, 3, 0.5, "cosine"])
def test_what_is_no_matrix_is_refused_at_once(as_a_user, kernel):
    kind = type(kernel).__name__
    with pytest.raises(TypeError, match=f"array of float64, got {kind}; convert it"):
        qd.KernelPair(kernel)
