"""Conditions of first and second order against gradients and spectra by hand."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from models import beaten, bumpy_pair, centred, kernel_pair, separable

import qdtheory as qd
from qdtheory.compatibility import check_compatibility

# --- First order ----------------------------------------------------------------------


def unit(gradient):
    return centred(gradient) / np.linalg.norm(centred(gradient))


@pytest.mark.claim("N0.5")
@pytest.mark.parametrize("size", [3, 5, 64])
def test_a_step_along_both_gradients_beats_the_real_distribution_under_ll_nrr(size):
    p = np.random.default_rng(14).dirichlet(np.ones(size))  # of three or more values
    d = unit(np.log(p)) + unit(-2 * p)
    q = p + d * min(p.min(), d @ d) / 10
    assert q.min() > 0
    assert (q - p) @ np.log(p) > 0
    assert q @ q < p @ p
    beaten(qd.LL_NRR, p)
    # Two distinct values: the gradients are antiparallel and no step helps.
    p = np.array([0.3, 0.3, 0.2, 0.2])
    assert np.abs(unit(np.log(p)) + unit(-2 * p)).max() <= 1e-15


def differing(vocab_size, length):
    """In how many tokens each two texts differ."""
    texts = np.array(list(product(range(vocab_size), repeat=length)))
    return (texts[:, None] != texts[None]).sum(-1)


@pytest.mark.claim("N6.13")
def test_the_step_along_both_gradients_needs_a_p_without_zeros():
    p = np.array([0.6, 0.4, 0.0])  # f = x, g = -x^3 / 3
    u, v = p - p.mean(), (p**2).mean() - p**2
    assert u @ v / np.linalg.norm(u) / np.linalg.norm(v) > -0.99
    cuts = [(i, j, 200 - i - j) for i in range(201) for j in range(201 - i)]
    q = np.array(cuts) / 200
    du, dv = (q - p) @ p, ((p**3).sum() - (q**3).sum(axis=1)) / 3
    other = np.abs(q - p).sum(axis=1) > 1e-9
    assert not ((du >= -1e-15) & (dv >= -1e-15) & other).any()


@pytest.mark.claim("N6.13")
@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 4)])
def test_two_gradients_give_a_witness(shape):
    near = (differing(*shape) <= 1) * 1.0
    p = np.random.default_rng(len(near)).dirichlet([3.0] * len(near))
    gradients, step = (near @ p, -2 * p), 1e-5
    u, v = map(unit, gradients)
    metrics = (lambda q: q @ near @ p), (lambda q: -q @ q)
    for metric, gradient in zip(metrics, gradients):
        rise = (metric(p + step * (u + v)) - metric(p - step * (u + v))) / (2 * step)
        # Both are at most quadratic, so the quotient errs by rounding only.
        slope = np.linalg.norm(centred(gradient)) * (1 + u @ v)
        assert rise == pytest.approx(slope, abs=1e-9)
    verdict = beaten(qd.FunctionPair(lambda q, p: q @ near @ p, metrics[1]), p)
    q = np.asarray(verdict.witness.q)
    assert (q - p) @ near @ p > 0
    assert q @ q < p @ p


JUMPS = {
    "f jumps": (lambda x: x + (x > 0.5), "-x**2"),
    "g' jumps": ("x", lambda x: -(x**2) - jnp.maximum(x - 0.5, 0)),
}


@pytest.mark.parametrize("name", JUMPS)
def test_jumps_between_pieces_that_fit_are_beaten(name):
    beaten(qd.SeparablePair(*JUMPS[name]))


@pytest.mark.parametrize("num_texts", [None, 2, 3])
def test_a_jump_of_g_alone_is_seen(num_texts):
    # One text gains a unit of diversity beyond .7: V has its maximum there.
    pair = qd.SeparablePair("x", lambda x: -(x**2) + (x > 0.7))
    verdict = check_compatibility(pair, num_texts=num_texts)
    assert verdict.compatible is None
    assert "g jumps near x = 0.701" in verdict.reason
    assert "Pareto-optimal" not in verdict.reason


# --- Second order ---------------------------------------------------------------------


def test_narrow_bump_at_the_known_p():
    verdict = beaten(bumpy_pair(), np.array([0.627, 0.3, 0.073]))
    assert "Second-order" in verdict.reason


def test_what_the_conditions_leave_open_is_said():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    functions = qd.FunctionPair(qd.CR_NRR.quality, qd.CR_NRR.diversity)
    # Concave, and as NRR on all of P, but not beyond 1/2.
    other = lambda x: -(x**2) - 0.1 * jnp.maximum(x - 0.5, 0.0) ** 4  # noqa: E731
    # At these four values the formulas are opposite to 1e-40 only.
    near = separable("-x**-2 + 1e-40*x", "-1/x")
    many = np.arange(1.0, 1026) / np.arange(1.0, 1026).sum()
    # Kernels of one reference have antiparallel gradients everywhere.
    rng = np.random.default_rng(3)
    root, drawn = rng.normal(size=(5, 5)), rng.dirichlet(np.ones(5))
    for pair, at, words in (
        (functions, p, "locally optimal"),
        (qd.SeparablePair("x", other), p, ""),
        (near, p, ""),
        (qd.FunctionPair(lambda q, p: q @ p, lambda q: -q @ q), many, "at most 1024"),
        (kernel_pair(root @ root.T), drawn, "locally optimal"),
    ):
        verdict = check_compatibility(pair, at)
        assert (verdict.compatible, verdict.status) == (None, "undecided")
        assert words in verdict.reason
    two_values = check_compatibility(near, np.array([0.5, 0.25, 0.25]))
    assert two_values.status == "not_beaten_at_p"
    safe = check_compatibility(kernel_pair(root @ root.T), num_texts=5)
    assert "proves nothing" in safe.reason
