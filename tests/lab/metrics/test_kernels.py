"""Similarities of two texts by recursion, Vendi by eigenvalues."""

from itertools import pairwise, product

import numpy as np
import pytest
from flint import fmpz_mat
from lab import corpora, metrics
from refusals import refused
from scipy.linalg import logm

import qdtheory as qd
from qdtheory.kernels import density_matrix, features_of


def by_recursion(a, b):
    """LCS and edit distance of two texts, from the definitions."""
    if not a or not b:
        return 0, len(a) + len(b)
    if a[-1] == b[-1]:
        common, edits = by_recursion(a[:-1], b[:-1])
        return common + 1, edits
    cut_a, cut_b = by_recursion(a[:-1], b), by_recursion(a, b[:-1])
    both = by_recursion(a[:-1], b[:-1])
    return max(cut_a[0], cut_b[0]), 1 + min(cut_a[1], cut_b[1], both[1])


@pytest.mark.claim("N25.13")
def test_subsequences_and_edits_are_those_of_the_recursion():
    for space in (qd.TextSpace(2, 4), qd.TextSpace(3, (1, 2, 3))):
        texts = [tuple(row[row >= 0].tolist()) for row in space.tokens]
        lcs, edits = metrics.lcs_kernel(space), metrics.edit_kernel(space)
        for (i, a), (j, b) in product(enumerate(texts), repeat=2):
            common, distance = by_recursion(a, b)
            size = len(a) + len(b), max(len(a), len(b))
            assert lcs[i, j] == pytest.approx(2 * common / size[0], abs=1e-15)
            assert edits[i, j] == pytest.approx(1 - distance / size[1], abs=1e-15)


def negative_directions(kernel):
    """By the exact characteristic polynomial's signs, on the basis e_i - e_N."""
    whole = np.rint(kernel * 12).astype(int)
    assert np.abs(whole - 12 * kernel).max() < 1e-12
    last = whole[-1]
    rows = whole[:-1, :-1] - last[:-1] - whole[:-1, -1:] + last[-1]
    coefficients = fmpz_mat(rows.tolist()).charpoly().coeffs()
    # Descartes: exact for a polynomial whose roots are all real.
    signs = [c * (-1) ** k > 0 for k, c in enumerate(coefficients) if c]
    return sum(a != b for a, b in pairwise(signs))


@pytest.mark.claim("N25.13")
@pytest.mark.claim("N25.15")
@pytest.mark.parametrize(
    ("size", "lcs", "edits"),
    [((2, 2), 0, 0), ((2, 3), 0, 1), ((3, 2), 0, 0), ((2, 4), 2, 3), ((4, 2), 2, 0)],
)
def test_the_smallest_spaces_where_subsequences_and_edits_fail(size, lcs, edits):
    space = qd.TextSpace(*size)
    for kernel, number in (
        (metrics.lcs_kernel(space), lcs),
        (metrics.edit_kernel(space), edits),
    ):
        assert negative_directions(kernel) == number
        found = qd.check_compatibility(qd.KernelPair(kernel))
        assert found.compatible is (number == 0)


# -- Vendi ----------------------------------------------------------------------------


def cosine_kernel(seed, size, rank):
    x = np.random.default_rng(seed).normal(size=(size, rank))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


KERNELS = [cosine_kernel(0, 7, 3), cosine_kernel(1, 6, 9), np.eye(5), np.ones((4, 4))]


def weights(seed, size):
    return np.random.default_rng(seed).dirichlet(np.ones(size))


@pytest.mark.claim("N25.8")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [0.5, 1, 2, 3.5, np.inf])
def test_equals_the_entropy_of_the_weighted_kernel(kernel, order):
    # Friedman and Dieng take the N by N matrix with entries K_ij root(q_i q_j).
    q = weights(0, len(kernel))
    values = np.linalg.eigvalsh(np.sqrt(q)[:, None] * kernel * np.sqrt(q))
    values = values[values > 1e-13]
    if order == 1:
        expected = np.exp(-values @ np.log(values))
    elif order == np.inf:
        expected = 1 / values.max()
    else:
        expected = (values**order).sum() ** (1 / (1 - order))
    assert metrics.vendi_score(q, kernel, order) == pytest.approx(expected, rel=1e-9)


@pytest.mark.claim("N25.10")
@pytest.mark.parametrize("kernel", KERNELS)
def test_relative_entropy_equals_scipys_logarithms(kernel):
    features = features_of(kernel)
    q, p = weights(2, len(kernel)), weights(3, len(kernel))
    model, real = (np.asarray(density_matrix(x, features)) for x in (q, p))
    expected = np.trace(model @ (logm(model) - logm(real)))
    found = float(metrics.quantum_relative_entropy(q, p, kernel))
    assert found == pytest.approx(float(expected), abs=1e-10)
    assert found >= -1e-14
    if (kernel == np.eye(len(kernel))).all():
        assert found == pytest.approx(float(qd.kl_divergence(q, p)), abs=1e-13)


def test_a_model_without_some_texts_has_finite_entropy():
    q = np.array([0.5, 0.5, 0, 0, 0])
    assert float(metrics.vendi_score(q, np.eye(5))) == pytest.approx(2, abs=1e-12)


@pytest.mark.claim("N25.8")
def test_a_large_sample_comes_close():
    kernel, q = KERNELS[0], weights(4, 7)
    features = features_of(kernel)
    drawn = np.random.default_rng(5).choice(7, p=q, size=50_000)
    for order in (1, 2):
        found = corpora.vendi_score(features[drawn], order)
        assert found == pytest.approx(
            float(metrics.vendi_score(q, kernel, order)), rel=0.01
        )


def test_bad_kernels_are_refused(as_a_user):
    def vendi(kernel, order=1):
        return metrics.vendi_score([0.5, 0.5], np.array(kernel), order)

    refused(
        ("texts of one length", metrics.ngram_kernel, qd.TextSpace(2, (1, 2)), 1),
        ("square matrix", vendi, np.ones((2, 3))),
        ("symmetric", vendi, [[1, 0.5], [0.2, 1]]),
        ("finite, got nan at [0, 1]", vendi, [[1, np.nan], [np.nan, 1]]),
        ("1 on the diagonal", vendi, 2 * np.eye(2)),
        ("positive semidefinite", vendi, [[1, 2.0], [2, 1]]),
        ("order must be positive", vendi, np.eye(2), 0),
    )
