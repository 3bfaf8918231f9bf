"""Pairs whose diversity is any concave function, against pairs that are sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd


def test_equals_the_separable_pair_of_the_same_metrics():
    pair = qd.ConcavePair(jnp.log, lambda q: -jnp.square(q).sum(), "LL-NRR")
    assert isinstance(pair, qd.Pair)
    assert pair.name == qd.LL_NRR.name
    for q, p in np.random.default_rng(0).dirichlet(np.ones(5), (5, 2)):
        assert pair.quality(q, p) == qd.LL_NRR.quality(q, p)
        assert float(pair.diversity(q)) == pytest.approx(float(qd.LL_NRR.diversity(q)))
        compiled = jax.jit(lambda pair, q, p: pair.quality(q, p))(pair, q, p)
        assert float(compiled) == pytest.approx(float(pair.quality(q, p)), rel=1e-14)


def test_a_text_of_score_minus_infinity_costs_nothing_without_mass():
    pair = qd.ConcavePair(jnp.log, lambda q: -jnp.square(q).sum())
    p = np.array([0.5, 0.5, 0.0])
    assert pair.quality(p, p) == np.log(0.5)
    assert pair.quality(np.array([0.5, 0.4, 0.1]), p) == -np.inf


def test_there_is_one_score_a_text():
    pair = qd.ConcavePair(lambda p: p[:2], lambda q: -jnp.square(q).sum())
    with pytest.raises(ValueError, match=r"shape \(3,\), got shape \(2,\)"):
        pair.quality(np.full(3, 1 / 3), np.full(3, 1 / 3))
