"""Conditions of first and second order against linear programs and gradients."""

from collections import Counter
from itertools import product
from math import comb

import jax.numpy as jnp
import numpy as np
import pytest
from models import beaten, bumpy_pair, centred, kernel_pair, separable

import qdtheory as qd
from qdtheory.compatibility import check_compatibility


@pytest.mark.claim("N0.5")
def test_a_step_along_both_gradients_beats_the_real_distribution_under_ll_nrr():
    def zero_sum_unit(gradient):
        centred = gradient - gradient.mean()
        return centred / np.linalg.norm(centred)

    rng = np.random.default_rng(14)
    for size in (3, 5, 64):
        p = rng.dirichlet(np.ones(size))  # three or more distinct values
        d = zero_sum_unit(np.log(p)) + zero_sum_unit(-2 * p)
        q = p + d * min(p.min(), d @ d) / 10
        assert q.min() > 0
        assert qd.LL_NRR.quality(q, p) > qd.LL_NRR.quality(p, p)
        assert qd.LL_NRR.diversity(q) > qd.LL_NRR.diversity(p)
    # Two distinct values: the gradients are antiparallel and no step helps.
    p = np.array([0.3, 0.3, 0.2, 0.2])
    d = zero_sum_unit(np.log(p)) + zero_sum_unit(-2 * p)
    assert np.abs(d).max() <= 1e-15


def test_narrow_bump_at_the_known_p():
    verdict = beaten(bumpy_pair(), np.array([0.627, 0.3, 0.073]))
    assert "Second-order" in verdict.reason


def test_a_kernel_without_negative_eigenvalues_stays_open():
    # One-reference kernels have antiparallel gradients everywhere.
    root = np.random.default_rng(3).normal(size=(5, 5))
    safe = check_compatibility(kernel_pair(root @ root.T), num_texts=5)
    assert safe.compatible is None  # the tests cannot settle it, and say so
    assert "proves nothing" in safe.reason
    assert "locally optimal" in safe.reason


@pytest.mark.parametrize(
    "pair",
    [
        qd.SeparablePair(lambda x: x + (x > 0.5), qd.functions.NRR, "f jumps"),
        qd.SeparablePair(
            qd.functions.CR, lambda x: -(x**2) - jnp.maximum(x - 0.5, 0), "g' jumps"
        ),
        qd.SeparablePair(lambda x: 1.0 * (x > 0.5), qd.functions.NRR, "f is a step"),
        qd.SeparablePair(qd.functions.CR, lambda x: -jnp.abs(x - 1 / 3), "g is a tent"),
    ],
    ids=lambda pair: pair.name,
)
def test_jumps_between_pieces_that_fit_are_beaten(pair):
    beaten(pair)


@pytest.mark.parametrize("num_texts", [None, 2, 3])
def test_a_jump_of_g_alone_is_seen(num_texts):
    # One text gains a unit of diversity beyond .7: V has its maximum there.
    pair = qd.SeparablePair(qd.functions.CR, lambda x: -(x**2) + (x > 0.7))
    verdict = check_compatibility(pair, num_texts=num_texts)
    assert verdict.compatible is None
    assert "g jumps near x = 0.701" in verdict.reason
    assert "Pareto-optimal" not in verdict.reason
    p, q = jnp.array([0.6, 0.4, 0, 0]), jnp.array([0.8, 0.2, 0, 0])
    assert pair.quality(q, p) > pair.quality(p, p)
    assert pair.diversity(q) > pair.diversity(p)


def test_antiparallel_gradients_settle_it_for_concave_pairs_only():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    functions = qd.FunctionPair(qd.CR_NRR.quality, qd.CR_NRR.diversity)
    verdict = check_compatibility(functions, p)
    assert verdict.compatible is None
    assert "locally optimal" in verdict.reason
    # g is concave and agrees with NRR on all of P, but not beyond 1/2.
    other = qd.SeparablePair(
        qd.functions.CR, lambda x: -(x**2) - 0.1 * jnp.maximum(x - 0.5, 0.0) ** 4
    )
    assert check_compatibility(other, p).compatible is None
    # At these four values the formulas are opposite to 1e-40 only.
    near = separable("-x**-2 + 1e-40*x", "-1/x")
    assert check_compatibility(near, p).compatible is None


def test_many_texts_are_left_open_by_the_second_order_test():
    n = 1025
    pair = qd.FunctionPair(lambda q, p: q @ p, lambda q: -(q @ q))
    p = np.arange(1.0, n + 1) / (n * (n + 1) / 2)
    verdict = check_compatibility(pair, p)
    assert verdict.compatible is None
    assert "at most 1024 texts" in verdict.reason


def differing(vocab_size, length):
    """In how many tokens each two texts differ."""
    texts = np.array(list(product(range(vocab_size), repeat=length)))
    return (texts[:, None] != texts[None]).sum(-1)


@pytest.mark.claim("N6.13")
@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 4)])
def test_two_gradients_give_a_witness(shape):
    distance = differing(*shape)
    near, size = (distance <= 1) * 1.0, len(distance)
    p = np.random.default_rng(size).dirichlet([3.0] * size)
    u, v = centred(near @ p), centred(-2 * p)
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    d, step = u + v, 1e-5
    for metric, unit, norm in (
        (lambda q: q @ near @ p, u, np.linalg.norm(centred(near @ p))),
        (lambda q: -q @ q, v, np.linalg.norm(centred(2 * p))),
    ):
        rise = (metric(p + step * d) - metric(p - step * d)) / (2 * step)
        # Both are at most quadratic, so the quotient errs by rounding only.
        assert rise == pytest.approx(norm * (1 + u @ v), abs=1e-9)
        assert rise == pytest.approx(norm * (unit @ d), abs=1e-9)
    pair = qd.FunctionPair(lambda q, p: q @ near @ p, lambda q: -q @ q)
    q = np.asarray(qd.check_compatibility(pair, p).witness.q)
    assert (q - p) @ near @ p > 0
    assert q @ q < p @ p


@pytest.mark.claim("N6.14")
@pytest.mark.parametrize("shape", [(3, 2), (2, 4), (4, 2), (3, 3)])
def test_a_match_within_one_token_is_beaten_everywhere(shape):
    vocab_size, length = shape
    near = (differing(*shape) <= 1) * 1.0
    size = len(near)
    # Kronecker sums: 1 + L (|V| - 1) - |V| j, C(L, j) (|V| - 1)^j times.
    spectrum = [
        1 + length * (vocab_size - 1) - vocab_size * j
        for j in range(length + 1)
        for _ in range(comb(length, j) * (vocab_size - 1) ** j)
    ]
    values, vectors = np.linalg.eigh(near)
    np.testing.assert_allclose(values, sorted(spectrum), atol=1e-12)
    negative = vectors[:, values < -0.5]
    assert negative.shape[1] >= 2
    for p in np.random.default_rng(size).dirichlet([2.0] * size, 20):
        u = near @ p
        d = negative @ np.linalg.svd((u @ negative)[None])[2][-1]
        q = p + p.min() / np.abs(d).max() * d
        assert q @ u == pytest.approx(p @ u, abs=1e-15)
        assert q @ near @ q < p @ near @ p
    assert qd.check_compatibility(kernel_pair(near), p).compatible is False


@pytest.mark.claim("N6.15")
@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 4)])
def test_tables_without_negative_eigenvalues_are_not_beaten(shape):
    vocab_size, length = shape
    texts = np.array(list(product(range(vocab_size), repeat=length)))
    # How often a token occurs at least j times: K is a sum of their products.
    features = np.stack(
        [
            (texts == token).sum(1) >= j
            for token, j in product(range(vocab_size), range(1, length + 1))
        ],
        axis=1,
    ).astype(float)
    counts = [Counter(text.tolist()) for text in texts]
    shared = [[(a & b).total() for b in counts] for a in counts]
    np.testing.assert_array_equal(features @ features.T, shared)

    fading = 0.5 ** differing(*shape)
    one_token = 0.5 * (np.eye(vocab_size) + 1)
    power = one_token
    for _ in range(length - 1):
        power = np.kron(power, one_token)
    np.testing.assert_allclose(fading, power)

    rng = np.random.default_rng(length)
    for K in (np.array(shared, float), fading):
        p, *models = rng.dirichlet([1.0] * len(texts), 300)
        for q in models:
            gain_u, gain_v = (q - p) @ K @ p, p @ K @ p - q @ K @ q
            form = (q - p) @ K @ (q - p)
            assert gain_u + gain_v / 2 == pytest.approx(-form / 2, abs=1e-14)
            assert form > 0
        assert qd.check_compatibility(kernel_pair(K), p).compatible is None
