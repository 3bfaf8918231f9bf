"""The n-gram map of a space and its metrics, against counting text by text."""

from fractions import Fraction
from functools import partial
from itertools import combinations, product

import jax
import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st
from models import (
    CASES,
    SPACES,
    SPACES_OF_ONE_LENGTH,
    assert_slope,
    counted,
    draw,
    positive,
    power,
    shares_of_texts,
)
from referees.enumerated_batches import batches
from refusals import refused
from scipy.linalg import null_space

import qdtheory as qd
from qdtheory.ngrams import chance_seen

SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps
# Calls that are not compiled take a few milliseconds each.
few_examples = settings(max_examples=30)


# -- the map ------------------------------------------------------------------------


@pytest.mark.claim("N1.13")
@pytest.mark.parametrize(("name", "n"), CASES)
def test_map_agrees_with_counting(name, n):
    space = SPACES[name]
    q = draw(n, space.num_texts)
    counts = counted(space, q, n)
    np.testing.assert_allclose(space.ngram_counts(q, n), counts, atol=50 * EPS)
    np.testing.assert_allclose(
        qd.ngrams.ngram_matrix(space, n) @ q, counts, atol=50 * EPS
    )
    np.testing.assert_allclose(
        space.ngram_distribution(q, n), counts / counts.sum(), atol=50 * EPS
    )


@pytest.mark.claim("N2.10", "N14.12")
@pytest.mark.parametrize("n", [1, 2])
@given(seed=SEEDS)
@few_examples
def test_directions_in_the_kernel_go_unseen(n, seed):
    space = SPACES["4^3"]
    p = draw(seed, space.num_texts)
    unseen = null_space(qd.ngrams.ngram_matrix(space, n).astype(float))
    direction = unseen @ np.random.default_rng(seed).normal(size=unseen.shape[1])
    # As far as p allows, without leaving the simplex.
    q = p + direction * (p / np.maximum(-direction, 1e-300)).min()
    q = np.maximum(q, 0)
    q /= q.sum()
    assert qd.cnd(q, p) > 0
    grams = [space.ngram_distribution(x, n) for x in (q, p)]
    assert qd.cnd(*grams) <= 1e-28
    pair = qd.PooledPair(qd.CR_NRR, space.ngrams(n))
    np.testing.assert_allclose(pair.quality(q, p), pair.quality(p, p), atol=1e-13)
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


@pytest.mark.claim("N2.9")
@given(seed=SEEDS, size=st.sampled_from([1, 2, 5, 64]))
@few_examples
def test_cnd_is_a_weighted_sum_of_quality_and_diversity(seed, size):
    q, p = draw(seed, size), draw(seed + 1, size)
    for found in (qd.coverage_rate(q, p), qd.CR_NRR.quality(q, p)):
        np.testing.assert_allclose(found, (q * p).sum(), rtol=100 * EPS, atol=EPS)
    for found in (qd.negative_repetition_rate(q), qd.CR_NRR.diversity(q)):
        np.testing.assert_allclose(found, -(q**2).sum(), rtol=100 * EPS, atol=EPS)

    def psi(q):
        return 2 / 3 * qd.coverage_rate(q, p) + qd.negative_repetition_rate(q) / 3

    # Numbers of size at most 2 are subtracted.
    np.testing.assert_allclose(qd.cnd(q, p), 3 * (psi(p) - psi(q)), atol=20 * EPS)
    squares = ((q - p) ** 2).sum()
    np.testing.assert_allclose(qd.cnd(q, p), squares, rtol=100 * EPS, atol=EPS)


def test_cnd_of_point_masses_and_near_zero():
    assert qd.cnd(*np.eye(4)[:2]) == 2
    p = np.array([0.25, 0.25, 0.5])
    # 2^-40 is added and subtracted without rounding.
    q = p + 2.0**-40 * np.array([1, -1, 0])
    assert qd.cnd(q, p) == 2.0**-79
    assert qd.cnd(p, p) == 0


# -- MS-Jaccard and Distinct-n --------------------------------------------------------


@pytest.mark.parametrize("name", ["4^3", "lengths 1 to 3", "lengths 2 and 4"])
def test_ms_jaccard_agrees_with_counting(name):
    space = SPACES[name]
    q, p = (draw(seed, space.num_texts) for seed in (1, 2))
    indices = []
    for n in range(1, space.max_length + 1):
        c, d = counted(space, q, n), counted(space, p, n)
        indices.append(np.minimum(c, d).sum() / np.maximum(c, d).sum())
    orders = np.arange(1, space.max_length + 1)
    found = qd.ms_jaccard(space, q, p, space.max_length)
    means = np.cumprod(indices) ** (1 / orders)
    np.testing.assert_allclose(found, means, rtol=50 * EPS)
    reverse = qd.ms_jaccard(space, p, q, space.max_length)
    np.testing.assert_allclose(found, reverse, rtol=4 * EPS)


@pytest.mark.claim("N13.4")
@pytest.mark.parametrize("name", ["4^3", "lengths 1 to 3"])
def test_ms_jaccard_is_that_of_a_corpus_with_these_frequencies(name):
    space = SPACES[name]
    rng = np.random.default_rng(3)
    counts = rng.multinomial(50, draw(1, space.num_texts), size=2)
    q, p = counts / 50
    corpora = [
        [row[row >= 0].astype(str).tolist() for row in np.repeat(space.tokens, c, 0)]
        for c in counts
    ]
    expected = qd.text.ms_jaccard(*corpora, max_order=3)
    found = qd.ms_jaccard(space, q, p, max_order=3)
    np.testing.assert_allclose(found, expected, rtol=50 * EPS)


def test_ms_jaccard_at_its_ends():
    space = qd.TextSpace(2, 3)
    p = draw(1, 8)
    assert qd.ms_jaccard(space, p, p, 3).tolist() == [1, 1, 1]
    # 0 1 0 against 1 0 1: bigrams in common, no trigram.
    q, r = np.eye(8)[[2, 5]]
    found = qd.ms_jaccard(space, q, r, 3)
    np.testing.assert_allclose(found, [0.5, 0.5**0.5, 0], rtol=4 * EPS)
    slopes = jax.jacobian(lambda q: qd.ms_jaccard(space, q, r, 3))(q)
    assert np.isfinite(slopes).all()
    assert slopes[1].any()
    assert not slopes[2].any()


def test_ms_jaccard_sees_lengths_that_the_ngram_distribution_does_not():
    space = qd.TextSpace(1, (1, 2))
    q, p = np.eye(2)
    assert qd.ms_jaccard(space, q, p, 1).tolist() == [0.5]
    assert qd.cnd(space.ngram_distribution(q, 1), space.ngram_distribution(p, 1)) == 0


def distinct_by_listing(space, q, n, num_texts):
    """The mean over every sample of texts; 0 where there is no n-gram."""
    mean, tokens = 0.0, [row[row >= 0].tolist() for row in space.tokens]
    for sample, chance in samples(q, num_texts):
        ngrams = [
            tuple(tokens[x][i : i + n])
            for x in sample
            for i in range(len(tokens[x]) - n + 1)
        ]
        mean += chance * len(set(ngrams)) / max(len(ngrams), 1)
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
    q = draw(num_texts, space.num_texts)
    expected = distinct_by_listing(space, q, n, num_texts)
    found = qd.ngrams.expected_distinct(space, q, n, num_texts)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_distinct_of_one_length_among_several_is_that_of_the_length():
    # All mass on length 3: the two formulas must give one number, for large m too.
    one, several = qd.TextSpace(2, 3), qd.TextSpace(2, (1, 3))
    q = draw(1, 8)
    padded = np.concatenate([np.zeros(2), q])
    for num_texts in (1, 30, 3000):
        np.testing.assert_allclose(
            qd.ngrams.expected_distinct(several, padded, 2, num_texts),
            qd.ngrams.expected_distinct(one, q, 2, num_texts),
            rtol=1e-16 * 1e4 * num_texts,  # powers of complex numbers
        )


def test_distinct_is_concave_and_can_be_differentiated():
    q, p = (draw(seed, 14) for seed in (1, 2))
    several = partial(qd.ngrams.expected_distinct, qd.TextSpace(2, (1, 2, 3)))
    assert_slope(lambda q: several(q, 1, 5), q, p - q, atol=0)
    # One length: a sum of concave functions of linear ones.
    q, p = (draw(seed, 8) for seed in (1, 2))
    one = partial(qd.ngrams.expected_distinct, qd.TextSpace(2, 3), n=1, num_texts=5)
    assert_slope(one, q, p - q, atol=0)
    assert one((q + p) / 2) > (one(q) + one(p)) / 2


def test_what_cannot_be_computed_is_refused():
    space, distinct = qd.TextSpace(2, (1, 2)), qd.ngrams.expected_distinct
    q, short = draw(1, 6), np.array([0.5, 0.5, 0, 0, 0, 0])
    refused(
        ("max_order must be at least 1, got 0", qd.ms_jaccard, space, q, q, 0),
        ("n must lie in [1, 2], got 3", qd.ms_jaccard, space, q, q, 3),
        ("has 2 tokens; take a smaller", qd.ms_jaccard, space, q, short, 2),
        ("has 2 tokens; take a smaller", qd.ms_jaccard, space, short, q, 2),
        ("num_texts must be at least 1", distinct, space, q, 1, 0),
        ("sums over 2-grams", distinct, space, q, 2, 10**9),
    )


# -- against divergences -----------------------------------------------------------


@pytest.mark.claim("N9.4")
@given(
    seed=SEEDS,
    space=st.sampled_from(SPACES_OF_ONE_LENGTH),
    width=st.sampled_from([0.1, 3]),
)
@few_examples
def test_cnd_is_at_most_kl(seed, space, width):
    q, p = draw(seed, space.num_texts, width), positive(seed + 1, space.num_texts)
    bound = 2 * qd.divergences.total_variation(q, p) ** 2
    assert qd.kl_divergence(q, p) >= bound
    for n in range(1, space.max_length + 1):
        grams = [space.ngram_distribution(x, n) for x in (q, p)]
        assert qd.cnd(*grams) <= bound + EPS


@pytest.mark.claim("N9.4")
def test_the_bound_is_met_where_mass_moves_between_two_texts():
    q, p = np.array([0.6, 0.3, 0.1]), np.array([0.4, 0.5, 0.1])
    tv = float(qd.divergences.total_variation(q, p))
    np.testing.assert_allclose(qd.cnd(q, p), 2 * tv**2, atol=EPS)


# -- samples ------------------------------------------------------------------------

SMALL = [(qd.TextSpace(2, 3), n) for n in (1, 2, 3)] + [(qd.TextSpace(3, 2), 1)]


def gram(space, n):
    """Inner products of the texts' shares."""
    a = shares_of_texts(space, n)
    return a.T @ a


def coverage_variance(k, q, p, s, r):
    """The variance of plug-in CR, from the texts' kernel."""
    kp, kq = k @ p, k @ q
    centred = k - kp[:, None] - kq[None] + q @ kp  # [i, j]: i from Q, j from P
    of_q, of_p = q @ kp**2 - (q @ kp) ** 2, p @ kq**2 - (p @ kq) ** 2
    return of_q / s + of_p / r + q @ centred**2 @ p / (s * r)


def repetition_moments(k, q, s):
    """Mean and variance of plug-in NRR, from the texts' kernel."""
    kq = k @ q
    value = q @ kq
    centred = k - kq[:, None] - kq[None] + value
    along, squares = kq - value, np.diag(centred)
    spread = q @ squares**2 - (q @ squares) ** 2
    variance = 4 * (q @ along**2) / s + 4 * (q @ (along * squares)) / s**2
    variance += (spread + 2 * (s - 1) * (q @ centred**2 @ q)) / s**3
    return -value - q @ squares / s, variance


def samples(q, size):
    """Every sample of texts, as indices, with its chance."""
    return list(zip(*batches(q, size), strict=True))


@pytest.mark.claim("N9.12", "N9.13")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize("s", [1, 2, 3])
def test_moments_of_plug_in_nrr_by_all_samples(space, n, s):
    a, q = shares_of_texts(space, n), draw(3, space.num_texts)
    drawn = [(-np.sum(a[:, x].mean(1) ** 2), chance) for x, chance in samples(q, s)]
    values, chances = np.array(drawn).T
    mean = chances @ values
    expected, variance = repetition_moments(gram(space, n), q, s)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(chances @ (values - mean) ** 2, variance, atol=1e-14)


@pytest.mark.claim("N9.12", "N9.13")
@pytest.mark.parametrize(("space", "n"), SMALL[:3], ids=str)
@pytest.mark.parametrize(("s", "r"), [(1, 1), (2, 1), (2, 2)])
def test_moments_of_plug_in_cr_by_all_samples(space, n, s, r):
    a = shares_of_texts(space, n)
    q, p = draw(4, space.num_texts), draw(5, space.num_texts)
    ours, theirs = (
        [(a[:, x].mean(1), chance) for x, chance in samples(*side)]
        for side in ((q, s), (p, r))
    )
    values = np.array([x for x, _ in ours]) @ np.array([x for x, _ in theirs]).T
    chances = np.outer([c for _, c in ours], [c for _, c in theirs])
    mean = np.sum(chances * values)
    np.testing.assert_allclose(mean, q @ gram(space, n) @ p, rtol=1e-12)
    variance = coverage_variance(gram(space, n), q, p, s, r)
    found = np.sum(chances * (values - mean) ** 2)
    np.testing.assert_allclose(found, variance, atol=1e-14)


@pytest.mark.claim("N9.14")
def test_relative_errors_grow_with_the_order():
    space = qd.TextSpace(4, 4)
    notebooks = jax.random.split(jax.random.key(9), 2)[0]
    for key in (notebooks, *map(jax.random.key, range(500, 503))):
        model = qd.LSTMLanguageModel.random(key, vocab_size=4)
        p = np.asarray(model.probabilities(space))
        q, errors = power(p, 0.8), []
        for n in (1, 2, 3, 4):
            k = gram(space, n)
            mean, variance = repetition_moments(k, q, 100)
            value = q @ k @ q
            cr = np.sqrt(coverage_variance(k, q, p, 100, 100)) / (q @ k @ p)
            errors.append([cr, np.sqrt(variance) / value, (-mean - value) / value])
        assert (np.diff(errors, axis=0) > 0).all()
        # Twice the error is four times the texts.
        assert errors[3][0] > 2 * errors[0][0]


@pytest.mark.claim("N9.15")
@given(seed=SEEDS, base=st.sampled_from([2, 3, 4]))
@few_examples
def test_agreement_of_texts_falls_with_every_token(seed, base):
    p = draw(seed, base**5)
    agreement = [np.sum(p.reshape(base**m, -1).sum(1) ** 2) for m in range(6)]
    assert (np.diff(agreement) < 0).all()


@pytest.mark.claim("N9.16")
@pytest.mark.parametrize("seed", range(5))
def test_the_expected_plug_in_cnd_still_falls_at_p(seed):
    p = positive(seed, 4)
    theirs = samples(p, 2)

    def expected(q):
        """By all samples of two texts on each side, n = L."""
        total = 0.0
        for (x, chance), (y, other) in product(samples(q, 2), theirs):
            apart = (np.eye(4)[x].mean(0) - np.eye(4)[y].mean(0)) ** 2
            total += chance * other * apart.sum()
        return total

    noise = (1 - p @ p) / 2
    np.testing.assert_allclose(expected(p), 2 * noise, rtol=1e-12)
    rise = expected(power(p, 1.001)) - expected(power(p, 0.999))
    log_p = np.log(p)
    slope = -(p @ (p * log_p) - (p @ p) * (p @ log_p))  # -Cov_P(P, log P)
    assert slope < 0
    np.testing.assert_allclose(rise / 0.002, slope, rtol=1e-4)


# -- where it breaks ----------------------------------------------------------------


@pytest.mark.claim("N9.21")
@pytest.mark.parametrize(("vocab_size", "length"), [(2, 3), (3, 2), (5, 3)])
def test_unigrams_do_not_see_powers_of_a_symmetric_p(vocab_size, length):
    space = qd.TextSpace(vocab_size, length)
    p = draw(11, space.num_texts)
    turned = [
        p[space.index((space.tokens + shift) % vocab_size)]
        for shift in range(vocab_size)
    ]
    symmetric, a = np.mean(turned, axis=0), shares_of_texts(space, 1)
    for beta in (0.2, 1, 5):
        q = power(symmetric, beta)
        np.testing.assert_allclose(a @ q, 1 / vocab_size, atol=1e-15)
    assert abs(power(symmetric, 5) - symmetric).sum() > 0.5


@pytest.mark.claim("N9.22")
@pytest.mark.parametrize("length", [4, 8])
def test_pooling_several_lengths_exceeds_the_bound(length):
    space = qd.TextSpace(2, (1, length))
    small, large = Fraction(1, 100), Fraction(1, 10)
    share = [length * x / (1 + (length - 1) * x) for x in (large, small)]
    by_hand = 2 * (share[0] - share[1]) ** 2
    models = []
    for x in (large, small):
        q = np.zeros(space.num_texts)
        q[0], q[-1] = float(1 - x), float(x)
        models.append(q)
    cnd = qd.cnd(*(space.ngram_distribution(q, 1) for q in models))
    np.testing.assert_allclose(cnd, float(by_hand), rtol=1e-12)
    assert by_hand > 2 * (large - small) ** 2


@pytest.mark.claim("N9.23")
@given(seed=SEEDS, share=st.sampled_from([0.1, 0.5, 0.9]))
@few_examples
def test_the_longest_order_does_not_see_shorter_texts(seed, share):
    space = qd.TextSpace(3, (1, 2, 3))
    p, rng = draw(seed, space.num_texts), np.random.default_rng(seed)
    longest = space.text_lengths == 3
    short = np.where(longest, 0, rng.random(space.num_texts))
    kept = np.where(longest, p, 0)
    q = share * kept / kept.sum() + (1 - share) * short / short.sum()
    apart = [
        qd.cnd(*(space.ngram_distribution(x, n) for x in (q, p))) for n in (1, 2, 3)
    ]
    assert apart[2] <= 1e-30 < apart[0]
    assert qd.divergences.total_variation(q, p) > 1e-3


# -- the map in integers -----------------------------------------------------------


def exact_rank(*matrices):
    return fmpz_mat(np.concatenate(matrices).tolist()).rank()


@pytest.mark.claim("N2.10", "N5.16")
@pytest.mark.parametrize(
    ("vocab_size", "length"),
    [(2, 2), (2, 4), (2, 5), (2, 7), (3, 3), (3, 4), (5, 2), (4, 3), (1, 3)],
)
def test_the_rank_in_integers(vocab_size, length):
    space = qd.TextSpace(vocab_size=vocab_size, lengths=length)
    matrices = [qd.ngrams.ngram_matrix(space, n) for n in range(1, length + 1)]
    for n, matrix in enumerate(matrices, start=1):
        assert exact_rank(matrix) == qd.ngrams.ngram_rank(space, n) == vocab_size**n
    if vocab_size == 4:
        stacked = [exact_rank(*matrices[: n + 1]) for n in range(3)]
        assert stacked == [4, 19, 64]


@pytest.mark.claim("N5.18")
@pytest.mark.parametrize(("vocab_size", "length"), [(2, 3), (2, 4), (2, 5), (3, 3)])
def test_n_grams_determine_m_grams_where_offsets_tile_the_positions(vocab_size, length):
    space = qd.TextSpace(vocab_size=vocab_size, lengths=length)
    for n, m in combinations(range(length, 0, -1), 2):
        of_n, of_m = (qd.ngrams.ngram_matrix(space, order) for order in (n, m))
        positions = length - n + 1
        if (length - m + 1) % positions == 0:
            grams, shorter = (
                list(product(range(vocab_size), repeat=order)) for order in (n, m)
            )
            inside = np.zeros((vocab_size**m, vocab_size**n), dtype=int)
            for column, gram in enumerate(grams):
                for offset in range(0, n - m + 1, positions):
                    inside[shorter.index(gram[offset : offset + m]), column] += 1
            assert (inside @ of_n == of_m).all()
        else:
            assert exact_rank(of_n, of_m) > vocab_size**n


@pytest.mark.claim("N8.12")
def test_coverage_and_repetition_lose_the_squared_distance_in_fractions():
    rng = np.random.default_rng(12)
    for size in (2, 3, 64):
        for _ in range(20):
            p, q = (
                [Fraction(int(x), int(w.sum())) for x in w]
                for w in rng.integers(1, 100, (2, size))
            )
            u = sum(x * y - y * y for x, y in zip(q, p))
            v = sum(y * y - x * x for x, y in zip(q, p))
            assert 2 * u + v == -sum((x - y) ** 2 for x, y in zip(q, p))


def test_a_rare_outcome_keeps_its_digits_and_its_slope():
    assert float(chance_seen(1e-12, 10)) == pytest.approx(1e-11, rel=1e-10)
    slopes = jax.vmap(jax.grad(lambda x: chance_seen(x, 3)))(np.array([0, 0.5, 1.0]))
    np.testing.assert_allclose(slopes, [3, 0.75, 0], atol=1e-15)
