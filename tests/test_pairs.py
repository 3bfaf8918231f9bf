"""The protocol of a pair, and pairs of functions or scores against plain NumPy sums."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import after, distribution

import qdtheory as qd

EVERY_KIND = [
    qd.LL_SE,
    qd.pairs.single_token_bleu_pair(3, 2),
    qd.LinearPair(lambda p: -((p - 0.3) ** 2), qd.functions.SE),
    qd.FunctionPair(lambda q, p: q @ p, lambda q: 1 - q.max(), "CR-max"),
    qd.ConcavePair(jnp.log, lambda q: -jnp.square(q).sum(), "LL-NRR"),
    qd.VendiPair(np.eye(6)),
]
WITH_ARRAYS = [
    qd.KernelPair(np.eye(6)),
    qd.BleuPair(qd.TextSpace(2, (1, 2)), 2, 2, 2),
    qd.pairs.ngram_pair(qd.TextSpace(2, (1, 2)), 2),
    qd.PooledPair(qd.LL_SE, [0, 0, 1, 2, 2, 1]),
]


@pytest.mark.parametrize("pair", EVERY_KIND + WITH_ARRAYS, ids=lambda pair: pair.name)
def test_every_pair_follows_the_protocol_and_compiles_as_an_argument(pair):
    assert isinstance(pair, qd.Pair)
    q = jnp.stack([jnp.asarray(distribution(seed, 6)) for seed in range(3)])
    p = jnp.asarray(distribution(9, 6))

    @jax.jit
    def metrics(pair, q, p):
        return jax.vmap(lambda row: (pair.quality(row, p), pair.diversity(row)))(q)

    expected = [(pair.quality(row, p), pair.diversity(row)) for row in q]
    found = np.transpose(metrics(pair, q, p))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    # Tables are arguments of compiled code, which would hold a copy of each otherwise.
    sizes = [np.size(leaf) for leaf in jax.tree.leaves(pair)]
    assert (max(sizes, default=0) > 1) == (pair in WITH_ARRAYS)


def test_something_with_one_metric_only_is_no_pair():
    assert not isinstance(qd.functions.SE, qd.Pair)


def test_linear_pair_equals_the_separable_pair_of_the_same_scores():
    p, q = distribution(1, 7), distribution(2, 7)
    linear = qd.LinearPair(lambda p: jnp.sqrt(p), qd.functions.NRR)
    separable = qd.SeparablePair(jnp.sqrt, qd.functions.NRR)
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
    code = qd.LinearPair(lambda p: np.array(scores), qd.functions.SE)
    other = qd.quality_discrepancy(code, p)
    assert (given.status, other.status) == ("exact", "lower_bound")
    assert given.qdisc == other.qdisc
    pair = qd.LinearPair([1, 2], "SE")
    assert pair == qd.LinearPair(np.array([1.0, 2.0]), qd.functions.SE)
    assert pair != qd.LinearPair([1, 3], "SE")
    assert repr(pair.scores) == "<2 scores>"
    with pytest.raises(ValueError, match=r"one score a text, shape \(4,\)"):
        qd.quality_discrepancy(pair, p)


# -- separable pairs ----------------------------------------------------------------

SIZES = st.sampled_from([1, 2, 3, 7])
SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps
# Calls that are not compiled take a few milliseconds each.
few_examples = settings(max_examples=30)

# Each qdtheory function beside the same formula in plain NumPy, 0 log 0 = 0.
QUALITIES = {
    "LL": (qd.functions.LL, np.log),
    "CR": (qd.functions.CR, lambda x: x),
}
DIVERSITIES = {
    "SE": (qd.functions.SE, lambda x: -x * np.log(np.where(x > 0, x, 1))),
    "NRR": (qd.functions.NRR, lambda x: -(x**2)),
    "SDI": (qd.functions.SDI, lambda x: x - x**2),
    "Tsallis(0.5)": (qd.Tsallis(0.5), lambda x: 2 * (np.sqrt(x) - x)),
    "Tsallis(1.5)": (qd.Tsallis(1.5), lambda x: 2 * (x - x**1.5)),
    "Tsallis(3)": (qd.Tsallis(3.0), lambda x: (x - x**3) / 2),
}


# -- definitions ---------------------------------------------------------------------


@pytest.mark.claim("N2.1")
@pytest.mark.parametrize("name", QUALITIES)
@few_examples
@given(size=SIZES, seed=SEEDS)
def test_quality_is_a_plain_sum_and_linear(name, size, seed):
    f, f_numpy = QUALITIES[name]
    pair = qd.SeparablePair(f, qd.functions.SE)
    p, q = distribution(seed, size), distribution(seed + 1, size, zeros=0.3)
    scores = f_numpy(p)
    # Sums of at most 7 terms, each rounded a few times.
    close = {"rtol": 50 * EPS, "atol": 50 * EPS * np.abs(scores).max()}
    np.testing.assert_allclose(pair.quality(q, p), (q * scores).sum(), **close)
    np.testing.assert_allclose(pair.text_quality(p), scores, **close)
    # Linear: the gradient is the score, also where q_i = 0.
    np.testing.assert_allclose(jax.grad(pair.quality)(jnp.asarray(q), p), scores)
    other = distribution(seed + 2, size)
    mixed = pair.quality(qd.mix(q, other, 0.3), p)
    np.testing.assert_allclose(
        mixed, 0.7 * pair.quality(q, p) + 0.3 * pair.quality(other, p), **close
    )


@pytest.mark.parametrize("name", DIVERSITIES)
@few_examples
@given(size=SIZES, seed=SEEDS)
def test_diversity_is_a_plain_sum(name, size, seed):
    g, g_numpy = DIVERSITIES[name]
    q = distribution(seed, size, zeros=0.3)
    np.testing.assert_allclose(
        qd.SeparablePair(qd.functions.CR, g).diversity(q),
        g_numpy(q).sum(),
        atol=100 * EPS,
    )


@pytest.mark.claim("N2.2")
@few_examples
@given(size=SIZES, seed=SEEDS)
def test_entropy_falls_short_of_the_uniform_one_by_a_divergence(size, seed):
    q = distribution(seed, size, zeros=0.3)
    uniform = np.full(size, 1 / size)
    np.testing.assert_allclose(
        qd.LL_SE.diversity(q), np.log(size) - qd.kl_divergence(q, uniform), atol=1e-12
    )
    np.testing.assert_allclose(
        jnp.exp(qd.LL_SE.diversity(uniform)), size, rtol=100 * EPS
    )


def test_a_score_of_minus_infinity_counts_only_where_q_has_mass():
    p = np.array([0.5, 0.5, 0.0])
    assert qd.LL_SE.quality(p, p) == np.log(0.5)
    assert qd.LL_SE.quality(np.array([0.5, 0.4, 0.1]), p) == -np.inf
    assert qd.LL_SE.text_quality(p).tolist() == [np.log(0.5), np.log(0.5), -np.inf]
    # No NaN reaches the gradient where 0 meets infinity.
    gradient = jax.grad(qd.LL_SE.quality)(jnp.asarray(p), p)
    assert gradient[:2].tolist() == [np.log(0.5), np.log(0.5)]
    assert np.isfinite(gradient[2])


def test_names():
    assert qd.LL_SE.name == "LL-SE"
    assert qd.SeparablePair(qd.functions.LL, qd.functions.SDI).name == "LL-SDI"
    assert qd.SeparablePair(qd.functions.CR, qd.Tsallis(1.5)).name == "CR-Tsallis(1.5)"
    assert qd.pairs.single_token_bleu_pair(2, 3).name == (
        "BLEU-NSBLEU, 2 and 3 references"
    )


@pytest.mark.claim("N2.12")
@few_examples
@given(seed=SEEDS)
def test_a_text_of_probability_zero_hides_every_gain_in_likelihood(seed):
    p = np.append(distribution(seed, 3), 0.0)
    q = distribution(seed + 1, 4)
    best = int(p.argmax())
    halved = after(q, best, 3, q[3] / 2)
    assert qd.LL_SE.quality(q, p) == qd.LL_SE.quality(halved, p) == -np.inf
    assert qd.CR_NRR.quality(halved, p) > qd.CR_NRR.quality(q, p)
    # Nor does LL see a transfer between two texts of positive probability.
    worst = int(p[:3].argmin())
    better = after(q, best, worst, q[worst] / 2)
    assert qd.LL_SE.quality(better, p) == -np.inf
    assert qd.CR_NRR.quality(better, p) > qd.CR_NRR.quality(q, p)


def test_each_named_diversity_falls_along_a_chain_of_transfers():
    chain = [np.array([0.25 + s, 0.25 - s, 0.25, 0.25]) for s in np.linspace(0, 0.25)]
    for g, _ in DIVERSITIES.values():
        values = [
            float(qd.SeparablePair(qd.functions.CR, g).diversity(q)) for q in chain
        ]
        assert all(a > b for a, b in pairwise(values))


@pytest.mark.parametrize("other", [None, 3, "log(x)", [0.5, 0.5]])
def test_pairs_of_no_functions_are_refused_when_they_are_made(as_a_user, other):
    for kind, name in ((qd.FunctionPair, "quality"), (qd.ConcavePair, "text_quality")):
        with pytest.raises(TypeError, match=f"^{name} must be a function of .*, got "):
            kind(other, lambda q: 1 - q.max())
        with pytest.raises(
            TypeError, match=r"^diversity must be a function of .*, got"
        ):
            kind(lambda *models: models[0], other)
