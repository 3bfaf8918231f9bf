"""The protocol of a pair, and the pairs made of functions or of scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import distribution

import qdtheory as qd

EVERY_KIND = [
    qd.LL_SE,
    qd.pairs.single_token_bleu_pair(3, 2),
    qd.LinearPair(lambda p: -((p - 0.3) ** 2), qd.formulas.SE),
    qd.FunctionPair(lambda q, p: q @ p, lambda q: 1 - q.max(), "CR-max"),
    qd.pairs.NgramPair(qd.TextSpace(2, 2), 1),
]


@pytest.mark.parametrize("pair", EVERY_KIND, ids=lambda pair: pair.name)
def test_every_pair_follows_the_protocol_and_compiles_as_an_argument(pair):
    assert isinstance(pair, qd.Pair)
    q = jnp.stack([jnp.asarray(distribution(seed, 4)) for seed in range(3)])
    p = jnp.asarray(distribution(9, 4))

    @jax.jit
    def metrics(pair, q, p):
        return jax.vmap(lambda row: (pair.quality(row, p), pair.diversity(row)))(q)

    quality, diversity = metrics(pair, q, p)
    for i in range(3):
        np.testing.assert_allclose(quality[i], pair.quality(q[i], p), rtol=1e-14)
        np.testing.assert_allclose(diversity[i], pair.diversity(q[i]), rtol=1e-14)


def test_something_with_one_metric_only_is_no_pair():
    assert not isinstance(qd.formulas.SE, qd.Pair)


def test_linear_pair_equals_the_separable_pair_of_the_same_scores():
    p, q = distribution(1, 7), distribution(2, 7)
    linear = qd.LinearPair(lambda p: jnp.sqrt(p), qd.formulas.NRR)
    separable = qd.SeparablePair(jnp.sqrt, qd.formulas.NRR)
    assert linear.quality(q, p) == separable.quality(q, p)
    assert linear.diversity(q) == separable.diversity(q)
