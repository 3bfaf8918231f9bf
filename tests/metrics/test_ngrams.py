"""The n-gram map of a space and its metrics, against counting text by text."""

from collections import Counter
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qdtheory as qd

SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps
# Calls that are not compiled take a few milliseconds each.
few_examples = settings(max_examples=30)

SPACES = {
    "4^3": qd.TextSpace(4, 3),
    "2^5": qd.TextSpace(2, 5),
    "3^1": qd.TextSpace(3, 1),
    "1^4": qd.TextSpace(1, 4),
    "lengths 1 to 3": qd.TextSpace(3, (1, 2, 3)),
    "lengths 2 and 4": qd.TextSpace(2, (2, 4)),
}
ONE_LENGTH = [name for name, space in SPACES.items() if len(space.lengths) == 1]
CASES = [
    (name, n) for name, space in SPACES.items() for n in range(1, space.max_length + 1)
]


def distribution(seed, size):
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.5))


def counted(space, q, n):
    """Expected n-gram counts, one text and one position at a time."""
    counts = Counter()
    for probability, text in zip(q, space.tokens.tolist(), strict=True):
        text = [token for token in text if token >= 0]
        for start in range(len(text) - n + 1):
            counts[tuple(text[start : start + n])] += probability
    every = product(range(space.vocab_size), repeat=n)
    return np.array([counts[ngram] for ngram in every])


# -- the map ------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n"), CASES)
def test_map_agrees_with_counting(name, n):
    space = SPACES[name]
    q = distribution(n, space.num_texts)
    counts = counted(space, q, n)
    np.testing.assert_allclose(space.ngram_counts(q, n), counts, atol=50 * EPS)
    np.testing.assert_allclose(qd.ngram_matrix(space, n) @ q, counts, atol=50 * EPS)
    np.testing.assert_allclose(
        space.ngram_distribution(q, n), counts / counts.sum(), atol=50 * EPS
    )


@pytest.mark.claim("N2.10")
@pytest.mark.parametrize(
    ("orders", "rank"), [(1, 4), (2, 16), (3, 64), ((1, 2), 19), ((1, 2, 3), 64)]
)
def test_rank_at_four_tokens_and_three_positions(orders, rank):
    assert qd.ngram_rank(SPACES["4^3"], orders) == rank


@pytest.mark.claim("N2.10")
@pytest.mark.parametrize(
    ("vocab_size", "length"), [(2, 2), (2, 5), (2, 7), (3, 3), (3, 4), (5, 2), (1, 3)]
)
def test_rank_for_one_length(vocab_size, length):
    space = qd.TextSpace(vocab_size, length)
    for n in range(1, length + 1):
        assert qd.ngram_rank(space, n) == vocab_size**n
        # A second route: the Gram matrix has as many positive eigenvalues.
        matrix = qd.ngram_matrix(space, n).astype(float)
        eigenvalues = np.linalg.eigvalsh(matrix @ matrix.T)
        assert (eigenvalues > 1e-9 * eigenvalues.max()).sum() == vocab_size**n


@pytest.mark.claim("N2.10")
@pytest.mark.parametrize("n", [1, 2])
@given(seed=SEEDS)
@few_examples
def test_directions_in_the_kernel_go_unseen(n, seed):
    space = SPACES["4^3"]
    p = distribution(seed, space.num_texts)
    matrix = qd.ngram_matrix(space, n).astype(float)
    unseen = np.linalg.svd(matrix)[2][space.vocab_size**n :]
    direction = np.random.default_rng(seed).normal(size=len(unseen)) @ unseen
    # As far as p allows, without leaving the simplex.
    q = p + direction * (p / np.maximum(-direction, 1e-300)).min()
    q = np.maximum(q, 0)
    q /= q.sum()
    assert qd.cnd(q, p) > 0
    grams = [space.ngram_distribution(x, n) for x in (q, p)]
    assert qd.cnd(*grams) <= 1e-28
    pair = qd.NgramPair(space, n)
    np.testing.assert_allclose(pair.diversity(q), pair.diversity(p), atol=1e-13)


@pytest.mark.claim("N2.11")
def test_equal_bigrams_do_not_imply_equal_unigrams():
    # Over 2 tokens and 3 positions: 0 1 0 and 1 0 1.
    space = qd.TextSpace(2, 3)
    q, p = np.zeros((2, 8))
    q[space.index(np.array([0, 1, 0]))] = 1
    p[space.index(np.array([1, 0, 1]))] = 1
    apart = [
        qd.cnd(space.ngram_distribution(q, n), space.ngram_distribution(p, n))
        for n in (1, 2, 3)
    ]
    np.testing.assert_allclose(apart, [2 / 9, 0, 2], atol=4 * EPS)


# -- coverage, repetition, CND ------------------------------------------------------


@given(seed=SEEDS, size=st.sampled_from([1, 2, 5, 64]))
@few_examples
def test_metrics_agree_with_numpy(seed, size):
    q, p = distribution(seed, size), distribution(seed + 1, size)
    close = {"rtol": 100 * EPS, "atol": EPS}
    np.testing.assert_allclose(qd.coverage_rate(q, p), (q * p).sum(), **close)
    np.testing.assert_allclose(qd.negative_repetition_rate(q), -(q**2).sum(), **close)
    np.testing.assert_allclose(qd.cnd(q, p), ((q - p) ** 2).sum(), **close)
    # The same numbers as the pair's.
    np.testing.assert_allclose(qd.coverage_rate(q, p), qd.CR_NRR.quality(q, p), **close)
    np.testing.assert_allclose(
        qd.negative_repetition_rate(q), qd.CR_NRR.diversity(q), **close
    )


@pytest.mark.claim("N2.9")
@given(seed=SEEDS, size=st.sampled_from([1, 2, 5, 64]))
@few_examples
def test_cnd_is_a_weighted_sum_of_quality_and_diversity(seed, size):
    q, p = distribution(seed, size), distribution(seed + 1, size)

    def psi(q):
        return 2 / 3 * qd.coverage_rate(q, p) + qd.negative_repetition_rate(q) / 3

    # Numbers of size at most 2 are subtracted.
    np.testing.assert_allclose(qd.cnd(q, p), 3 * (psi(p) - psi(q)), atol=20 * EPS)
    cross = qd.coverage_rate(p, p) + qd.coverage_rate(q, q) - 2 * qd.coverage_rate(q, p)
    np.testing.assert_allclose(qd.cnd(q, p), cross, atol=20 * EPS)


def test_cnd_keeps_its_digits_near_zero():
    p = np.array([0.25, 0.25, 0.5])
    # 2^-40 is added and subtracted without rounding.
    q = p + 2.0**-40 * np.array([1, -1, 0])
    assert qd.cnd(q, p) == 2.0**-79
    assert qd.cnd(p, p) == 0


def test_extremes():
    point, other = np.eye(4)[:2]
    uniform = np.full(4, 0.25)
    assert qd.coverage_rate(point, other) == 0
    assert qd.coverage_rate(point, point) == 1
    assert qd.cnd(point, other) == 2
    assert qd.negative_repetition_rate(point) == -1
    assert qd.negative_repetition_rate(uniform) == -0.25


# -- MS-Jaccard and Distinct-n --------------------------------------------------------


@pytest.mark.parametrize("name", ["4^3", "lengths 1 to 3", "lengths 2 and 4"])
def test_ms_jaccard_agrees_with_counting(name):
    space = SPACES[name]
    q, p = (distribution(seed, space.num_texts) for seed in (1, 2))
    indices = []
    for n in range(1, space.max_length + 1):
        c, d = counted(space, q, n), counted(space, p, n)
        indices.append(np.minimum(c, d).sum() / np.maximum(c, d).sum())
        found = qd.ms_jaccard(space, q, p, n)
        np.testing.assert_allclose(found, np.prod(indices) ** (1 / n), rtol=50 * EPS)
        assert found == pytest.approx(qd.ms_jaccard(space, p, q, n), rel=4 * EPS)


@pytest.mark.claim("N13.4")
@pytest.mark.parametrize("name", ["4^3", "lengths 1 to 3"])
def test_ms_jaccard_is_that_of_a_corpus_with_these_frequencies(name):
    space = SPACES[name]
    rng = np.random.default_rng(3)
    counts = rng.multinomial(50, distribution(1, space.num_texts), size=2)
    q, p = counts / 50
    corpora = [
        [row[row >= 0].astype(str).tolist() for row in np.repeat(space.tokens, c, 0)]
        for c in counts
    ]
    expected = qd.text.ms_jaccard(*corpora, max_order=3)
    found = [qd.ms_jaccard(space, q, p, n) for n in (1, 2, 3)]
    np.testing.assert_allclose(found, expected, rtol=50 * EPS)


def test_ms_jaccard_at_its_ends():
    space = qd.TextSpace(2, 3)
    p = distribution(1, 8)
    assert float(qd.ms_jaccard(space, p, p, 3)) == 1
    # 0 1 0 against 1 0 1: bigrams in common, no trigram.
    q, r = np.eye(8)[[2, 5]]
    assert float(qd.ms_jaccard(space, q, r, 2)) == pytest.approx(0.5**0.5, rel=4 * EPS)
    assert float(qd.ms_jaccard(space, q, r, 3)) == 0
    assert np.isfinite(jax.grad(lambda q: qd.ms_jaccard(space, q, r, 3))(q)).all()


def test_ms_jaccard_sees_lengths_that_the_ngram_distribution_does_not():
    space = qd.TextSpace(1, (1, 2))
    q, p = np.eye(2)
    assert float(qd.ms_jaccard(space, q, p, 1)) == 0.5
    assert qd.cnd(space.ngram_distribution(q, 1), space.ngram_distribution(p, 1)) == 0


def test_ms_jaccard_refuses_orders_out_of_range():
    space = qd.TextSpace(2, (1, 2))
    only_short = np.array([0.5, 0.5, 0, 0, 0, 0])
    p = distribution(1, 6)
    for order, message in ((0, "at least 1, got 0"), (3, "greatest length, got 3")):
        with pytest.raises(ValueError, match=message):
            qd.ms_jaccard(space, p, p, order)
    with pytest.raises(ValueError, match="has 2 tokens; take a smaller max_order"):
        qd.ms_jaccard(space, only_short, only_short, 2)


def distinct_by_listing(space, q, n, num_texts):
    """The mean over every sample of texts; 0 where there is no n-gram."""
    mean, tokens = 0.0, [row[row >= 0].tolist() for row in space.tokens]
    for sample in product(range(space.num_texts), repeat=num_texts):
        ngrams = [
            tuple(tokens[x][i : i + n])
            for x in sample
            for i in range(len(tokens[x]) - n + 1)
        ]
        mean += np.prod(q[list(sample)]) * len(set(ngrams)) / max(len(ngrams), 1)
    return mean


@pytest.mark.claim("N13.5")
@pytest.mark.parametrize("num_texts", [1, 2, 3])
@pytest.mark.parametrize(
    ("space", "n"),
    [
        (qd.TextSpace(2, 3), 1),
        (qd.TextSpace(2, 3), 2),
        (qd.TextSpace(2, (1, 2)), 1),
        (qd.TextSpace(2, (1, 2)), 2),
        (qd.TextSpace(2, (1, 3)), 2),
        (qd.TextSpace(1, (1, 3)), 1),
    ],
    ids=str,
)
def test_distinct_agrees_with_every_sample(space, n, num_texts):
    q = distribution(num_texts, space.num_texts)
    expected = distinct_by_listing(space, q, n, num_texts)
    found = qd.expected_distinct(space, q, n, num_texts)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("lengths", [4, (2, 4)])
def test_distinct_of_a_corpus_has_this_mean(lengths):
    space = qd.TextSpace(3, lengths)
    q = distribution(5, space.num_texts)
    rng = np.random.default_rng(6)
    texts = [row[row >= 0].astype(str).tolist() for row in space.tokens]
    values = [
        qd.text.distinct([texts[x] for x in rng.choice(len(q), 6, p=q)], 2)
        for _ in range(400)
    ]
    expected = qd.expected_distinct(space, q, 2, 6)
    assert abs(np.mean(values) - expected) <= 4 * np.std(values) / np.sqrt(400)


def test_distinct_of_one_length_among_several_is_that_of_the_length():
    # All mass on length 3: the two formulas must give one number, for large m too.
    one, several = qd.TextSpace(2, 3), qd.TextSpace(2, (1, 3))
    q = distribution(1, 8)
    padded = np.concatenate([np.zeros(2), q])
    for num_texts in (1, 30, 3000):
        np.testing.assert_allclose(
            qd.expected_distinct(several, padded, 2, num_texts),
            qd.expected_distinct(one, q, 2, num_texts),
            rtol=1e-16 * 1e4 * num_texts,  # powers of complex numbers
        )


def test_distinct_is_concave_and_can_be_differentiated():
    for space in (qd.TextSpace(2, 3), qd.TextSpace(2, (1, 3))):
        q, p = (distribution(seed, space.num_texts) for seed in (1, 2))

        def value(q, space=space):
            return qd.expected_distinct(space, q, 1, 5)

        ahead, behind = value(q + 1e-5 * (p - q)), value(q - 1e-5 * (p - q))
        slope = jax.grad(value)(jnp.asarray(q)) @ (p - q)
        np.testing.assert_allclose(slope, (ahead - behind) / 2e-5, rtol=1e-7)
    # One length: a sum of concave functions of linear ones.
    space = qd.TextSpace(2, 3)
    q, p = (distribution(seed, 8) for seed in (1, 2))
    middle = qd.expected_distinct(space, (q + p) / 2, 1, 5)
    ends = [qd.expected_distinct(space, x, 1, 5) for x in (q, p)]
    assert middle > sum(ends) / 2


def test_distinct_refuses_what_it_cannot_compute():
    space = qd.TextSpace(2, (1, 2))
    q = distribution(1, space.num_texts)
    with pytest.raises(ValueError, match="num_texts must be at least 1, got 0"):
        qd.expected_distinct(space, q, 1, 0)
    with pytest.raises(ValueError, match="sums over 2-grams"):
        qd.expected_distinct(space, q, 2, 10**9)


# -- pairs on n-grams ---------------------------------------------------------------


@pytest.mark.claim("N2.8")
@pytest.mark.parametrize("base", [qd.CR_NRR, qd.LL_SE], ids=lambda pair: pair.name)
@pytest.mark.parametrize(("name", "n"), CASES)
def test_pair_is_the_pair_of_the_ngram_distributions(base, name, n):
    space = SPACES[name]
    q, p = (distribution(seed, space.num_texts) for seed in (1, 2))
    pair = qd.NgramPair(space, n, base)
    q_g, p_g = (
        counts / counts.sum() for counts in (counted(space, x, n) for x in (q, p))
    )
    np.testing.assert_allclose(
        pair.quality(q, p), base.quality(q_g, p_g), rtol=1e-13, atol=1e-14
    )
    np.testing.assert_allclose(
        pair.diversity(q), base.diversity(q_g), rtol=1e-13, atol=1e-14
    )
    assert pair.name == f"{base.name} on {n}-grams"


@pytest.mark.claim("N2.8")
@pytest.mark.parametrize("name", ONE_LENGTH)
def test_the_longest_ngrams_are_the_texts(name):
    space = SPACES[name]
    q, p = (distribution(seed, space.num_texts) for seed in (1, 2))
    pair = qd.NgramPair(space, space.max_length)
    np.testing.assert_allclose(pair.quality(q, p), qd.coverage_rate(q, p), rtol=1e-14)
    np.testing.assert_allclose(
        pair.diversity(q), qd.negative_repetition_rate(q), rtol=1e-14
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_LENGTH)
@pytest.mark.parametrize("base", [qd.CR_NRR, qd.LL_SE], ids=lambda pair: pair.name)
def test_scores_of_texts(name, base):
    space = SPACES[name]
    q, p = (distribution(seed, space.num_texts) for seed in (1, 2))
    for n in range(1, space.max_length + 1):
        pair = qd.NgramPair(space, n, base)
        scores = pair.text_quality(p)
        np.testing.assert_allclose(
            scores @ q, pair.quality(q, p), rtol=1e-13, atol=1e-14
        )
        gradient = jax.grad(pair.quality)(jnp.asarray(q), p)
        # On the simplex a gradient counts up to a constant.
        np.testing.assert_allclose(
            gradient - gradient.mean(), scores - scores.mean(), atol=1e-13
        )


def test_an_ngram_that_p_lacks_gives_its_texts_no_finite_score():
    space = qd.TextSpace(2, 2)
    p = np.array([1.0, 0.0, 0.0, 0.0])
    scores = qd.NgramPair(space, 1, qd.LL_SE).text_quality(p)
    assert scores.tolist() == [0.0, -np.inf, -np.inf, -np.inf]
    assert qd.NgramPair(space, 1, qd.LL_SE).quality(p, p) == 0


@pytest.mark.parametrize("name", ["2^5", "lengths 2 and 4"])
def test_the_table_is_an_argument_of_compiled_code(name):
    space = SPACES[name]
    pair = qd.NgramPair(space, 2)
    (table,) = jax.tree.leaves(pair)
    assert table.shape == space.ngrams(2).shape
    p = jnp.asarray(distribution(1, space.num_texts))
    batch = jnp.stack(
        [jnp.asarray(distribution(seed, space.num_texts)) for seed in range(2, 5)]
    )

    @jax.jit
    def qualities(pair, batch, p):
        return jax.vmap(pair.quality, (0, None))(batch, p)

    expected = [pair.quality(q, p) for q in batch]
    np.testing.assert_allclose(qualities(pair, batch, p), expected, rtol=1e-13)
    # The compiled program names the table among its parameters.
    shapes = [
        x.shape for x in jax.tree.leaves(qualities.lower(pair, batch, p).in_avals)
    ]
    assert table.shape in shapes


@pytest.mark.claim("N2.8")
def test_metrics_are_the_means_over_sampled_texts():
    space = SPACES["4^3"]
    p, q = (distribution(seed, space.num_texts) for seed in (1, 2))
    pair = qd.NgramPair(space, 2)
    num = 40_000
    text_keys = jax.random.split(jax.random.key(0), 2)
    first, second = (np.asarray(qd.sample(key, q, num)) for key in text_keys)
    scores = np.asarray(pair.text_quality(p))[first]
    assert abs(scores.mean() - pair.quality(q, p)) <= 4 * scores.std() / np.sqrt(num)
    # Repetition: a random bigram of each of two texts drawn from q.
    rng = np.random.default_rng(0)
    bigrams = space.ngrams(2)
    agree = (
        bigrams[first, rng.integers(2, size=num)]
        == (bigrams[second, rng.integers(2, size=num)])
    )
    assert abs(agree.mean() + pair.diversity(q)) <= 4 * agree.std() / np.sqrt(num)
