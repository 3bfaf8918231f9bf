"""The criterion for kernel pairs against searches of P and Q."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lab import corpora

import qdtheory as qd
from qdtheory.kernels import bleu_kernel
from qdtheory.proofs.kernel_criterion import (
    dominating_model,
    kernel_criterion,
    least_direction,
    rounding_doubt,
)


def ring(near, across):
    """Four texts, each alike to its two neighbours."""
    return np.stack([np.roll([1, near, across, near], k) for k in range(4)])


def gains(kernel, q, p):
    """In quality and in diversity, by the differences themselves."""
    return (q - p) @ kernel @ p, (p - q) @ kernel @ (p + q)


def assert_beaten(kernel, witness):
    """P is interior, and Q gains in both metrics."""
    p, q = np.asarray(witness.p), np.asarray(witness.q)
    assert p.min() > 0
    assert q.min() >= 0
    assert abs(p.sum() - 1) + abs(q.sum() - 1) <= 1e-12
    assert min(gains(kernel, q, p)) > 0
    told = witness.quality_gain, witness.diversity_gain
    assert gains(kernel, q, p) == pytest.approx(told, rel=1e-6, abs=1e-14)


@pytest.mark.claim("N16.26")
@pytest.mark.parametrize("size", [1, 30])
def test_cosines_of_embeddings_are_safe_and_blind(size):
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(12, size))
    vectors[11] = vectors[10]  # two texts with one embedding
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kernel, p = vectors @ vectors.T, rng.dirichlet(np.ones(12))
    assert kernel_criterion(kernel).compatible
    for q in rng.dirichlet(np.full(12, 0.3), 300):
        assert min(gains(kernel, q, p)) <= 1e-14
    q = np.r_[p[:10], p[10] + p[11], 0]
    assert gains(kernel, q, p) == pytest.approx((0, 0), abs=1e-14)


# By vocabulary, length and order of BLEU: how many eigenvalues are negative, the least.
NEGATIVE = {(4, 3, 1): (0, 0.0), (4, 3, 2): (34, -0.4595), (3, 4, 2): (26, -1.7699)}
NEGATIVE |= {(3, 4, 3): (48, -0.4520), (3, 4, 4): (0, 1.0)}


@pytest.mark.claim("N16.14")
@pytest.mark.parametrize("case", NEGATIVE)
def test_negative_eigenvalues_of_bleu(case):
    (*shape, order), (negative, least) = case, NEGATIVE[case]
    kernel = bleu_kernel(qd.TextSpace(*shape), order)
    found = kernel_criterion(kernel)
    assert found.num_negative == negative
    assert found.least_eigenvalue == pytest.approx(least, abs=5e-5)
    assert found.compatible == (negative == 0)
    assert ("every interior P is dominated" in found.reason) == (negative > 1)
    # Bordered by ones, a matrix has one more negative eigenvalue than on zero-sum
    # vectors.
    bordered = np.pad(kernel, (0, 1), constant_values=1)
    bordered[-1, -1] = 0
    assert (np.linalg.eigvalsh(bordered) < -1e-9).sum() == negative + 1
    if negative:
        assert_beaten(kernel, found.witness)


# With n = (1, -2, 1) this K has Kn = 1, so that no z has Kz constant.
N = np.array([1.0, -2, 1])
NO_LEVEL = np.add.outer(N, N) / 6 - np.outer([1.0, 0, -1], [1.0, 0, -1])


@pytest.mark.claim("N16.15")
@pytest.mark.parametrize("kernel", [bleu_kernel(qd.TextSpace(3, 3), 2), NO_LEVEL])
def test_two_negative_eigenvalues_or_none_and_no_level_beat_every_interior_p(kernel):
    rng, found = np.random.default_rng(0), kernel_criterion(kernel)
    assert found.all_dominated
    assert (found.num_negative == 1) == (found.level is None) == (kernel is NO_LEVEL)
    for concentration in (0.5, 1.0, 10.0):
        for p in rng.dirichlet(np.full(len(kernel), concentration), 10):
            if p.min() > 0:
                assert_beaten(kernel, dominating_model(kernel, p))
    assert qd.check_compatibility(qd.KernelPair(kernel), p).compatible is False


@pytest.mark.claim("N16.18")
@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_the_criterion_agrees_with_attacks(size):
    """A found witness is checked, and compatible kernels are attacked."""
    rng, kinds = np.random.default_rng(size), Counter()
    for k in range(120):
        a, v = rng.normal(size=(size, size)), 1.5 + rng.random(size)
        kernel = [
            a + a.T,
            0.1 * a @ a.T - np.outer(v, v),  # one negative eigenvalue, mostly
            np.round(a + a.T),  # ties and singular kernels
        ][k % 3]
        found = kernel_criterion(kernel)
        kinds[found.compatible, min(found.num_negative, 2)] += 1
        if not found.compatible:
            d = np.asarray(found.direction)
            assert abs(d.sum()) <= 1e-12
            assert d @ kernel @ d < 0
            assert (kernel @ d).min() < 0 < (kernel @ d).max()
            assert_beaten(kernel, found.witness)
            continue
        p = rng.dirichlet(np.full(size, 0.7), 200)
        q = np.vstack([rng.dirichlet(np.full(size, 0.4), 200), np.eye(size)])
        own, other = ((x @ kernel * x).sum(axis=1) for x in (p, q))
        u, fall = p @ kernel @ q.T - own[:, None], other - own[:, None]
        assert not ((u > 1e-9) & (fall < -1e-9)).any()
    assert kinds[True, 1] >= 5
    assert kinds[False, 1] >= 2


@pytest.mark.claim("N16.17")
def test_one_negative_eigenvalue_is_decided_by_the_level():
    near = np.array([[1, 0.95, 0.95], [0.95, 1, 0.5], [0.95, 0.5, 1]])
    found, verdict = kernel_criterion(near), qd.check_compatibility(qd.KernelPair(near))
    assert (found.compatible, found.num_negative) == (True, 1)
    assert found.level == pytest.approx(61 / 60)  # by hand: z = (8, -1, -1) / 6
    assert (verdict.compatible, verdict.psi) == (True, None)
    # Where P'KP exceeds the level, and only there, a d at right angles to KP bends up.
    kernel = np.array([[0.3, 0.9, 0.5], [0.9, 0.4, 0.5], [0.5, 0.5, 0.9]])
    level, sides = kernel_criterion(kernel).level, set()
    for p in np.random.default_rng(1).dirichlet(np.ones(3), 200):
        d = np.cross(np.ones(3), kernel @ p)
        sides.add((bool(d @ kernel @ d < 0), bool(p @ kernel @ p > level)))
    assert sides == {(True, True), (False, False)}


@pytest.mark.claim("N16.18")
def test_unit_similarities_of_three_texts_are_safe_and_of_four_not():
    for a, b, c in product(np.linspace(-1, 1, 9), repeat=3):
        kernel = np.array([[1, a, b], [a, 1, c], [b, c, 1]])
        assert kernel_criterion(kernel).compatible
    found = kernel_criterion(ring(0.9, 0.1))
    assert found.level == pytest.approx(0.725)
    assert (found.compatible, found.num_negative) == (False, 1)
    assert_beaten(ring(0.9, 0.1), found.witness)


@pytest.mark.claim("N16.19")
def test_few_texts_and_single_texts_are_safe_under_bleu_2():
    kernel = bleu_kernel(qd.TextSpace(2, 3), 2)
    for some in combinations(range(8), 3):
        assert kernel_criterion(kernel[np.ix_(some, some)]).compatible
    assert not kernel_criterion(kernel).compatible
    # Quality 1 needs Q on texts that are as P's one text.
    assert (kernel - np.eye(8)).max() < 1


@pytest.mark.claim("N16.20")
def test_bleu_2_of_sentences_is_beaten_and_bleu_1_is_not():
    corpus = [tuple(s) for s in corpora.imdb(1)[:6000] if len(s) == 5]
    sentences = list(dict.fromkeys(corpus))[:150]
    scores = [
        qd.text.bleu_scores(sentences, [s], max_order=2, smoothing=None)
        for s in sentences
    ]
    first, second = np.stack(scores, axis=2).transpose(1, 0, 2)
    assert kernel_criterion(first).num_negative == 0
    found = kernel_criterion((second + second.T) / 2)
    assert found.all_dominated
    assert_beaten((second + second.T) / 2, found.witness)


def test_verdicts_of_kernel_pairs(as_a_user):
    verdict = qd.check_compatibility(qd.KernelPair(np.eye(3)))
    assert (verdict.compatible, verdict.alpha) == (True, 2 / 3)
    opposite = qd.KernelPair(np.array([[0.0, 1], [1, 0]]))
    assert qd.check_compatibility(opposite).compatible is False
    # Near a given P there may be nothing better, and afar is not looked at.
    verdict = qd.check_compatibility(opposite, np.array([0.7, 0.3]))
    assert verdict.compatible is None
    with pytest.raises(ValueError, match="p must be positive everywhere"):
        dominating_model(np.eye(2), np.array([1.0, 0.0]))


@pytest.mark.claim("N5.15")
@given(near=st.floats(0, 1), across=st.floats(0, 1))
def test_a_ring_whose_alternating_eigenvalue_is_negative(near, across):
    """V(P + d) - V(P) = -d'Kd; d alternates, an eigenvector, and U does not see it."""
    eigenvalue = 1 - 2 * near + across
    assume(abs(eigenvalue) > 1e-3)
    pair = qd.KernelPair(ring(near, across))
    p, d = np.full(4, 0.25), np.array([1, -1, 1, -1]) / 4
    rise = float(pair.diversity(p + d) - pair.diversity(p))
    assert rise == pytest.approx(-eigenvalue / 4, abs=1e-14)
    gain = float(pair.quality(p + d, p) - pair.quality(p, p))
    assert gain == pytest.approx(0, abs=1e-14)


# --- The direction of least curvature, whatever basis LAPACK chooses ------------------


def test_rounding_does_not_move_it_and_where_none_is_left_it_is_0():
    rng = np.random.default_rng([16, 3])
    kernel = np.kron(np.eye(4), 1 - np.eye(4))
    exact = least_direction(kernel, np.ones((1, 16)))
    for _ in range(20):
        noise = rng.normal(size=(16, 16)) * 1e-15
        moved = least_direction(kernel + noise + noise.T, np.ones((1, 16)))
        np.testing.assert_allclose(moved, exact, atol=1e-12)
    np.testing.assert_array_equal(least_direction(np.eye(2), np.eye(2)), 0)


def test_an_eigenvalue_of_0_is_no_doubt_and_one_below_by_rounding_is():
    singular, below = np.ones((3, 3)), np.ones((3, 3))
    below[0, 1] = below[1, 0] = 1 + 2**-50
    doubts = [rounding_doubt(k, kernel_criterion(k)) for k in (singular, below)]
    assert doubts[0] is None
    assert doubts[1].startswith("An eigenvalue is 0 up to rounding")
