"""Closed forms against root-finding, many texts, and weights of any size."""

import jax.numpy as jnp
import numpy as np
import pytest
from models import mixed, problems, saturating

import qdtheory as qd


def plain_square(x):
    return -(x**2)


def plain_entropy(x):
    return -x * jnp.log(x)


@pytest.mark.parametrize(
    ("known", "same"),
    [(qd.functions.NRR, plain_square), (qd.functions.SE, plain_entropy)],
)
@pytest.mark.claim("N3.1")
def test_closed_forms_agree_with_root_finding(known, same):
    for p, w in problems(20, seed=3):
        for f in (qd.functions.LL, qd.functions.CR):
            closed = qd.pareto_optimum(qd.SeparablePair(f, known), p, w)
            found = qd.pareto_optimum(qd.SeparablePair(f, same), p, w)
            assert jnp.abs(closed.q - found.q).max() <= 1e-12
            assert abs(closed.b - found.b) <= 1e-10


def test_tsallis_of_order_near_one_is_shannon():
    p, w = problems(1, seed=5)[0]
    near = qd.pareto_optimum(
        qd.SeparablePair(qd.functions.CR, qd.Tsallis(1 + 1e-7)), p, w
    )
    shannon = qd.pareto_optimum(qd.CR_SE, p, w)
    assert jnp.abs(near.q - shannon.q).max() <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("f", [qd.functions.LL, qd.functions.CR], ids=["LL", "CR"])
def test_many_texts(f):
    # Sizes at which a bracket, a tolerance or a sum could go wrong.
    rng = np.random.default_rng(12)
    p = qd.normalize(rng.random(20_000) ** 4)
    for g in (
        qd.functions.SE,
        qd.functions.NRR,
        qd.Tsallis(1.5),
        qd.Tsallis(1.2),
        mixed,
        saturating,
    ):
        pair = qd.SeparablePair(f, g)
        for w in (-1e-3, -1.0, -50.0):
            optimum = qd.pareto_optimum(pair, p, w)
            assert optimum.residual <= 1e-12
            # Slopes reach 1e3 here, so 1e-10 would be below their rounding.
            assert qd.frontier.kkt_residual(pair, p, optimum) <= 1e-9


@pytest.mark.parametrize(
    ("g", "message"),
    [
        (qd.Tsallis(20.0), "too flat near 0|linear"),
        (lambda x: -(x**12), "too flat near 0|linear"),
        (lambda x: -(jnp.maximum(x - 0.3, 0) ** 2), "linear"),
        (lambda x: jnp.minimum(x, 0.3), "linear"),
        (lambda x: -x, "linear"),
        (lambda x: x**2, "rises"),
    ],
)
def test_unsolvable_diversities_are_refused(as_a_user, g, message):
    p = np.array([0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match=message):
        qd.pareto_optimum(qd.SeparablePair(qd.functions.CR, g), p, -1.0)
    with pytest.raises(ValueError, match=message):
        qd.pareto_frontier(
            qd.SeparablePair(qd.functions.CR, g), np.array([0.5, 0.3, 0.2]), 20
        )


def test_enormous_weights_do_not_overflow():
    p = np.array([0.5, 0.3, 0.2])
    for g in (qd.functions.SE, qd.functions.NRR, qd.Tsallis(1.5), mixed):
        found = qd.pareto_optimum(qd.SeparablePair(qd.functions.CR, g), p, -1e300)
        np.testing.assert_allclose(found.q, [1, 0, 0], atol=1e-12)
