"""Kernel pairs against BLEU, n-grams and the squared mean discrepancy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.metrics.similarity import bleu_kernel


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


def test_equals_coverage_and_repetition_of_ngrams():
    space = qd.TextSpace(2, 3)
    kernel = qd.KernelPair(qd.metrics.ngram_kernel(space, 2))
    ngrams = qd.pairs.ngram_pair(space, 2)
    for q, p in np.random.default_rng(1).dirichlet(np.ones(8), (3, 2)):
        np.testing.assert_allclose(kernel.quality(q, p), ngrams.quality(q, p))
        np.testing.assert_allclose(kernel.diversity(q), ngrams.diversity(q))


def test_is_an_argument_of_compiled_code():
    pair = qd.KernelPair(np.eye(3))
    q = np.array([0.5, 0.5, 0.0])
    slope = jax.jit(lambda pair, q: jax.grad(pair.diversity)(q))
    np.testing.assert_allclose(slope(pair, q), -2 * q)
    by_kernel = jax.jit(jax.grad(lambda pair, q: pair.diversity(q)))(pair, q)
    np.testing.assert_allclose(by_kernel.kernel, -np.outer(q, q))
    many = jax.vmap(lambda k: qd.KernelPair(k).diversity(q))(
        jnp.stack([jnp.eye(3), jnp.ones((3, 3))])
    )
    np.testing.assert_allclose(many, [-0.5, -1])


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        ([[1.0]], TypeError, "float64, got a list"),
        (np.eye(2, dtype=int), TypeError, "float64, got dtype int64"),
        (np.ones((2, 3)), ValueError, r"square matrix .* got shape \(2, 3\)"),
        (np.ones(4), ValueError, r"got shape \(4,\)"),
        (np.ones((0, 0)), ValueError, r"got shape \(0, 0\)"),
        (np.diag([1.0, np.nan]), ValueError, r"finite, got nan at \[1, 1\]"),
        (np.array([[1, 0.5], [0.4, 1]]), ValueError, r"symmetric, got 0.5 at \[0, 1\]"),
    ],
)
def test_bad_kernels(kernel, error, message):
    with pytest.raises(error, match=message):
        qd.KernelPair(kernel)


def test_bad_distributions(as_a_user):
    pair, p = qd.KernelPair(np.eye(2)), np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="q must have 2 entries, got 3"):
        pair.quality(np.full(3, 1 / 3), p)
    with pytest.raises(ValueError, match="p must sum to 1"):
        pair.text_quality(p / 2)
    with pytest.raises(ValueError, match="q must be nonnegative"):
        pair.diversity(np.array([1.5, -0.5]))
