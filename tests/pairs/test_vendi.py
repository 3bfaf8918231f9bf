"""Vendi's pair: its quality is the partner, its divergence the relative entropy."""

import jax
import numpy as np
import pytest

import qdtheory as qd

KERNEL = qd.metrics.lcs_kernel(qd.TextSpace(2, 3))  # positive semidefinite
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
        expected = qd.metrics.quantum_relative_entropy(q, p, KERNEL)
        assert float(gap) == pytest.approx(float(expected), abs=1e-10)
        bregman = qd.theory.bregman_divergence(PAIR.diversity, q, p)
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
    assert found.status == "certified"
