"""The protocol of a pair, and the pairs made of functions, scores or a concave V."""

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
    qd.pairs.ngram_pair(qd.TextSpace(2, 2), 1),
    qd.ConcavePair(jnp.log, lambda q: -jnp.square(q).sum(), "LL-NRR"),
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


def test_concave_pair_equals_the_separable_pair_of_the_same_metrics():
    pair = qd.ConcavePair(jnp.log, lambda q: -jnp.square(q).sum(), "LL-NRR")
    assert pair.name == qd.LL_NRR.name
    for q, p in np.random.default_rng(0).dirichlet(np.ones(5), (5, 2)):
        assert pair.quality(q, p) == qd.LL_NRR.quality(q, p)
        assert float(pair.diversity(q)) == pytest.approx(float(qd.LL_NRR.diversity(q)))
    # A score of minus infinity costs nothing without mass.
    p = np.array([0.5, 0.5, 0.0])
    assert pair.quality(p, p) == np.log(0.5)
    assert pair.quality(np.array([0.5, 0.4, 0.1]), p) == -np.inf
    short = qd.ConcavePair(lambda p: p[:2], pair.diversity)
    with pytest.raises(ValueError, match=r"shape \(3,\), got shape \(2,\)"):
        short.quality(p, p)


def test_scores_given_as_numbers():
    p, scores = np.array([0.5, 0.3, 0.2, 0.0]), [3.0, 1.0, 2.0, -np.inf]
    given = qd.quality_discrepancy(qd.LinearPair(scores, "SE"), p)
    code = qd.LinearPair(lambda p: np.array(scores), qd.formulas.SE)
    other = qd.quality_discrepancy(code, p)
    assert given.status == other.status == "exact"
    assert given.qdisc == other.qdisc
    pair = qd.LinearPair([1, 2], "SE")
    assert pair == qd.LinearPair(np.array([1.0, 2.0]), qd.formulas.SE)
    assert pair != qd.LinearPair([1, 3], "SE")
    assert repr(pair.scores) == "<2 scores>"
    with pytest.raises(ValueError, match=r"one score a text, shape \(4,\)"):
        qd.quality_discrepancy(pair, p)
