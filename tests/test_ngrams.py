"""Spaces, their n-grams and pairs on them: counting text by text, listing samples."""

import tracemalloc
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import jax
import numpy as np
import pytest
from families import OF_ONE_LENGTH, ORDERS, SPACES
from flint import fmpz_mat
from hypothesis import given
from hypothesis import strategies as st
from models import (
    assert_slope,
    counts_of_texts,
    draw,
    oracle,
    positive,
    power,
    random_distribution,
    seen_sets,
    sentences,
    shares_of_texts,
)
from referees.enumerated_batches import batches
from referees.ngram_counts import ngrams_of
from scipy.linalg import null_space

import qdtheory as qd
from qdtheory.ngrams import chance_seen, expected_distinct, ngram_matrix, ngram_rank
from qdtheory.pairs import ngram_pair

SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps
SMALL = [(qd.TextSpace(2, 3), n) for n in (1, 2, 3)] + [(qd.TextSpace(3, 2), 1)]


# --- The order of the texts -----------------------------------------------------------
@pytest.mark.claim("N1.1")
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_texts_and_their_ngrams_are_all_there_in_order(space):
    """Shorter texts first, then as a dictionary orders them."""
    words = range(space.vocab_size)
    texts = [t for length in space.lengths for t in product(words, repeat=length)]
    padded = [[*text, *[-1] * (space.max_length - len(text))] for text in texts]
    assert space.tokens.tolist() == padded
    assert space.text_lengths.tolist() == [len(text) for text in texts]
    assert space.num_texts == len(texts)
    for n in range(1, space.max_length + 1):
        number = {gram: i for i, gram in enumerate(product(words, repeat=n))}
        width = space.max_length - n + 1
        for row, text in zip(space.ngrams(n).tolist(), texts, strict=True):
            numbers = [number[gram] for gram in ngrams_of(text, n)]
            assert row == numbers + [-1] * (width - len(numbers))
    for shape in ((), (3,), (2, 3), (space.num_texts,)):
        index = np.random.default_rng(0).integers(space.num_texts, size=shape)
        found = space.index(space.tokens[index])
        assert found.shape == shape
        assert np.array_equal(found, index)


@given(st.sampled_from(SPACES), st.integers(0, 2**16))
def test_what_is_no_text_has_no_index(space, seed):
    # Every row of -1 .. |V| either is a text, and has its index, or is refused.
    rng = np.random.default_rng(seed)
    row = rng.integers(-1, space.vocab_size + 1, size=space.max_length)
    rows = space.tokens.tolist()
    if row.tolist() in rows:
        assert space.index(row) == rows.index(row.tolist())
    else:
        with pytest.raises(ValueError, match="is no text of this space"):
            space.index(row)


def test_equal_spaces_are_one_key(as_a_user):
    same = [qd.TextSpace(3, 2), qd.TextSpace(3, (2,)), qd.TextSpace(np.int64(3), 2)]
    assert len({*same}) == 1
    assert not {qd.TextSpace(3, (1, 2)), qd.TextSpace(2, 3)} & {*same}


@pytest.mark.claim("N1.16")
def test_a_large_space_is_refused_before_allocation():
    tracemalloc.start()
    for sizes, texts in (
        *(((10, 12), "1,000,000,000,000"), ((5000, 20), r"10\^74.0")),
        ((10**6, (1, 2)), "1,000,001,000,000"),
    ):
        words = rf"{texts}.* texts .* GiB .*fewer tokens or shorter"
        with pytest.raises(ValueError, match=words):
            qd.TextSpace(*sizes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6  # bytes; one int64 a text would be 8e12


# --- The map from texts to n-grams ----------------------------------------------------
@pytest.mark.claim("N1.13", "N2.8", "N9.3")
@pytest.mark.parametrize(("space", "n"), ORDERS, ids=str)
def test_map_and_pairs_agree_with_counting(space, n):
    q, p = (draw(seed, space.num_texts) for seed in (n, n + 50))
    counts, of_p = (counts_of_texts(space, n) @ x for x in (q, p))
    np.testing.assert_allclose(space.ngram_counts(q, n), counts, atol=50 * EPS)
    np.testing.assert_allclose(ngram_matrix(space, n) @ q, counts, atol=50 * EPS)
    q_g, p_g = counts / counts.sum(), of_p / of_p.sum()
    np.testing.assert_allclose(space.ngram_distribution(q, n), q_g, atol=50 * EPS)
    for base in (qd.CR_NRR, qd.LL_SE):
        pair = ngram_pair(space, n, base)
        found = pair.quality(q, p), pair.diversity(q)
        expected = base.quality(q_g, p_g), base.diversity(q_g)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
        if len(space.lengths) == 1:
            scores = pair.text_quality(p) @ q
            np.testing.assert_allclose(scores, found[0], rtol=1e-13, atol=1e-14)
    if space.lengths == (n,):
        np.testing.assert_allclose(q_g, q, rtol=1e-14)


def test_an_ngram_that_p_lacks_gives_its_texts_no_finite_score():
    p, pair = np.eye(4)[0], ngram_pair(qd.TextSpace(2, 2), 1, qd.LL_SE)
    assert pair.text_quality(p).tolist() == [0.0, -np.inf, -np.inf, -np.inf]
    assert pair.quality(p, p) == 0


@pytest.mark.claim("N1.14", "N1.15")
@given(st.sampled_from(SPACES), st.data())
def test_one_length_is_linear_and_several_weigh_by_length(space, data):
    n = data.draw(st.integers(1, min(space.lengths)))
    share = data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    seeds = data.draw(st.tuples(SEEDS, SEEDS))
    p, q = (random_distribution(space.num_texts, seed, 1 / 3) for seed in seeds)
    mixed = space.ngram_distribution((1 - share) * p + share * q, n)
    # The share of q's n-grams among all; its share of texts for one length.
    t_p, t_q = ((r * (space.text_lengths - n + 1)).sum() for r in (p, q))
    weight = share * t_q / ((1 - share) * t_p + share * t_q)
    if len(space.lengths) == 1:
        assert weight == pytest.approx(share, abs=1e-14)
    expected = (1 - weight) * space.ngram_distribution(p, n)
    expected += weight * space.ngram_distribution(q, n)
    np.testing.assert_allclose(mixed, expected, rtol=0, atol=1e-14)


def exact_rank(*matrices):
    return fmpz_mat(np.concatenate(matrices).tolist()).rank()


@pytest.mark.claim("N2.10", "N5.16")
@pytest.mark.parametrize(
    "sizes", [(2, 2), (2, 4), (2, 5), (2, 7), (3, 3), (3, 4), (5, 2), (4, 3), (1, 3)]
)
def test_the_rank_in_integers(sizes):
    space = qd.TextSpace(*sizes)
    matrices = [ngram_matrix(space, n) for n in range(1, sizes[1] + 1)]
    for n, matrix in enumerate(matrices, start=1):
        assert exact_rank(matrix) == ngram_rank(space, n) == sizes[0] ** n
    if sizes == (4, 3):
        assert [exact_rank(*matrices[: n + 1]) for n in range(3)] == [4, 19, 64]


@pytest.mark.claim("N5.18")
@pytest.mark.parametrize("sizes", [(2, 3), (2, 4), (2, 5), (3, 3)])
def test_n_grams_determine_m_grams_where_offsets_tile_the_positions(sizes):
    (words, length), space = sizes, qd.TextSpace(*sizes)
    for n, m in combinations(range(length, 0, -1), 2):
        of_n, of_m = (ngram_matrix(space, order) for order in (n, m))
        positions = length - n + 1
        if (length - m + 1) % positions:
            assert exact_rank(of_n, of_m) > words**n
            continue
        grams, shorter = (list(product(range(words), repeat=k)) for k in (n, m))
        inside = np.zeros((words**m, words**n), dtype=int)
        for column, gram in enumerate(grams):
            for offset in range(0, n - m + 1, positions):
                inside[shorter.index(gram[offset : offset + m]), column] += 1
        assert (inside @ of_n == of_m).all()


# Two distributions, and their CND of each order that tells something.
def unseen_by(n, space=SPACES[0], seed=0):
    """As far as p allows in a direction that the map does not see."""
    unseen, p = null_space(ngram_matrix(space, n).astype(float)), draw(seed, 64)
    direction = unseen @ np.random.default_rng(seed).normal(size=unseen.shape[1])
    q = np.maximum(p + direction * (p / np.maximum(-direction, 1e-300)).min(), 0)
    return space, q / q.sum(), p, {n: 0}


def swapped():
    """aba and bab have the bigrams ab and ba, both."""
    space, p = qd.TextSpace(3, 3), np.full(27, 1 / 27)
    q = p.copy()
    for size, (a, b) in zip((5, -3, 1), combinations(range(3), 2), strict=True):
        q[space.index(np.array([[a, b, a], [b, a, b]]))] += size / 200, -size / 200
    return space, q, p, {2: 0}


def sharpened(*sizes):
    """A power of a P that is alike under turns of the words."""
    space, p = qd.TextSpace(*sizes), draw(11, sizes[0] ** sizes[1])
    turned = [p[space.index((space.tokens + i) % sizes[0])] for i in range(sizes[0])]
    symmetric = np.mean(turned, axis=0)
    return space, power(symmetric, 5), symmetric, {1: 0}


def shortened(share, space=SPACES[4]):
    """The longest texts in their proportions, and others among the shorter."""
    p, longest = draw(0, space.num_texts), space.text_lengths == 3
    kept, short = np.where(longest, p, 0), np.where(longest, 0, draw(1, p.size))
    q = share * kept / kept.sum() + (1 - share) * short / short.sum()
    return space, q, p, {3: 0}


def of_two_lengths(length):
    """CND of tokens exceeds twice the squared distance, .09."""
    space, shares = qd.TextSpace(2, (1, length)), [Fraction(1, 10), Fraction(1, 100)]
    a, b = (length * x / (1 + (length - 1) * x) for x in shares)
    assert a - b > shares[0] - shares[1]
    ends = np.eye(space.num_texts)[[0, -1]]
    q, p = ((1 - float(x)) * ends[0] + float(x) * ends[1] for x in shares)
    return space, q, p, {1: float(2 * (a - b) ** 2)}


ABA, BAB = np.eye(8)[[2, 5]]


@pytest.mark.claim("N2.10", "N2.11", "N5.17", "N9.22", "N14.12")
@pytest.mark.parametrize(
    ("space", "q", "p", "distances"),
    [
        *(unseen_by(n, seed=seed) for n in (1, 2) for seed in (0, 1)),
        *(swapped(), *(sharpened(*x) for x in ((2, 3), (3, 2), (5, 3)))),
        *(*map(shortened, (0.1, 0.5, 0.9)), *map(of_two_lengths, (4, 8))),
        (qd.TextSpace(2, 3), ABA, BAB, {1: 2 / 9, 2: 0, 3: 2}),
    ],
)
def test_what_ngrams_see_of_two_distributions(space, q, p, distances):
    assert qd.divergences.total_variation(q, p) > 1e-4
    for n, expected in distances.items():
        found = qd.cnd(*(space.ngram_distribution(x, n) for x in (q, p)))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-28)
        if not expected:
            assert_ties(ngram_pair(space, n), q, p)


def assert_ties(pair, q, p):
    """Assert that two distributions have the same quality and diversity."""
    gain = pair.quality(q, p) - pair.quality(p, p)
    rise = pair.diversity(q) - pair.diversity(p)
    np.testing.assert_allclose([gain, rise], 0, atol=1e-14)


@pytest.mark.claim("N25.16")
def test_mass_moved_within_a_class_changes_nothing():
    p = draw(2, 7, 1.0)
    q = p + p[2] * (np.eye(7)[0] - np.eye(7)[2])
    assert_ties(qd.PooledPair(qd.LL_SE, [0, 1, 0, 2, 2, 3, 0]), q, p)
    assert float(qd.divergences.total_variation(q, p)) == pytest.approx(p[2])


@pytest.mark.claim("N9.5")
@pytest.mark.parametrize("space", [*OF_ONE_LENGTH, SPACES[4]], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_every_curve_through_p_has_slope_minus_two(space, seed):
    p = positive(seed, space.num_texts)
    step = p * np.random.default_rng(seed).normal(size=p.size) / 10
    step -= p * step.sum()
    ends, rises = (p + 1e-3 * step, p - 1e-3 * step), []
    for n in range(1, space.max_length + 1):
        pair = ngram_pair(space, n)
        du = float(pair.quality(ends[0], p) - pair.quality(ends[1], p))
        dv = float(pair.diversity(ends[0]) - pair.diversity(ends[1]))
        # Central differences are off by the third order: (t / 10)^3 times a constant.
        np.testing.assert_allclose(dv, -2 * du, atol=1e-11)
        rises.append(abs(du))
    assert max(rises) > 1e-7


# --- Coverage, repetition, CND --------------------------------------------------------
@pytest.mark.claim("N2.9", "N8.12")
@given(seed=SEEDS, size=st.sampled_from([1, 2, 5, 64]))
def test_cnd_is_a_weighted_sum_of_quality_and_diversity(seed, size):
    q, p = draw(seed, size), draw(seed + 1, size)
    cr, nrr = qd.coverage_rate(q, p), qd.negative_repetition_rate(q)
    np.testing.assert_allclose([cr, nrr], [q @ p, -q @ q], rtol=100 * EPS, atol=EPS)
    lost = 2 * (qd.coverage_rate(p, p) - cr) + qd.negative_repetition_rate(p) - nrr
    # Numbers of size at most 2 are subtracted.
    np.testing.assert_allclose(qd.cnd(q, p), lost, atol=20 * EPS)
    squares = ((q - p) ** 2).sum()
    np.testing.assert_allclose(qd.cnd(q, p), squares, rtol=100 * EPS, atol=EPS)


def test_cnd_near_zero():
    p = np.array([0.25, 0.25, 0.5])
    # 2^-40 is added and subtracted without rounding.
    assert qd.cnd(p + 2.0**-40 * np.array([1, -1, 0]), p) == 2.0**-79


@pytest.mark.claim("N9.4")
@given(
    seed=SEEDS, space=st.sampled_from(OF_ONE_LENGTH), width=st.sampled_from([0.1, 3])
)
def test_cnd_is_at_most_kl(seed, space, width):
    q, p = draw(seed, space.num_texts, width), positive(seed + 1, space.num_texts)
    bound = 2 * qd.divergences.total_variation(q, p) ** 2
    assert qd.kl_divergence(q, p) >= bound
    for n in range(1, space.max_length + 1):
        assert qd.cnd(*(space.ngram_distribution(x, n) for x in (q, p))) <= bound + EPS


# --- MS-Jaccard and Distinct-n --------------------------------------------------------


@pytest.mark.claim("N13.4")
@pytest.mark.parametrize("space", [SPACES[i] for i in (0, 4, 5)], ids=str)
def test_ms_jaccard_is_that_of_a_corpus_with_these_frequencies(space):
    counts = np.random.default_rng(3).multinomial(50, draw(1, space.num_texts), size=2)
    texts = [[*map(str, text)] for text in sentences(space)]
    corpora = [[texts[i] for i in np.repeat(range(len(texts)), c)] for c in counts]
    expected = qd.text.ms_jaccard(*corpora, max_order=3)
    found = qd.ms_jaccard(space, *counts / 50, max_order=3)
    np.testing.assert_allclose(found, expected, rtol=50 * EPS)


def test_ms_jaccard_has_a_slope_at_its_ends():
    # 0 1 0 against 1 0 1: bigrams in common, no trigram.
    space, (q, r) = qd.TextSpace(2, 3), np.eye(8)[[2, 5]]
    found = qd.ms_jaccard(space, q, r, 3)
    np.testing.assert_allclose(found, [0.5, 0.5**0.5, 0], rtol=4 * EPS)
    slopes = jax.jacobian(lambda q: qd.ms_jaccard(space, q, r, 3))(q)
    assert np.isfinite(slopes).all()
    assert [slope.any() for slope in slopes] == [True, True, False]


def samples(q, size):
    """Every sample of texts, as indices, with its chance."""
    return list(zip(*batches(q, size), strict=True))


@pytest.mark.parametrize("num_texts", [1, 2, 3])
@pytest.mark.parametrize(
    ("sizes", "n"), [((2, 3), 2), ((2, (1, 2)), 1), ((2, (1, 3)), 2), ((1, (1, 3)), 1)]
)
def test_distinct_agrees_with_every_sample(sizes, n, num_texts):
    space = qd.TextSpace(*sizes)
    q, mean = draw(num_texts, space.num_texts), 0.0
    grams = [ngrams_of(text, n) for text in sentences(space)]
    for sample, chance in samples(q, num_texts):
        drawn = [gram for i in sample for gram in grams[i]]
        mean += chance * len({*drawn}) / max(len(drawn), 1)  # 0 without n-grams
    found = expected_distinct(space, q, n, num_texts)
    np.testing.assert_allclose(found, mean, rtol=1e-13)


def test_distinct_of_one_length_among_several_is_that_of_the_length():
    # All mass on length 3: the two formulas must give one number, for large m too.
    one, several = qd.TextSpace(2, 3), qd.TextSpace(2, (1, 3))
    q, padded = draw(1, 8), np.concatenate([np.zeros(2), draw(1, 8)])
    for num_texts in (1, 30, 3000):
        found = expected_distinct(several, padded, 2, num_texts)
        expected = expected_distinct(one, q, 2, num_texts)
        # Powers of complex numbers.
        np.testing.assert_allclose(found, expected, rtol=1e-12 * num_texts)


def test_distinct_can_be_differentiated():
    value = partial(expected_distinct, qd.TextSpace(2, (1, 2, 3)), n=1, num_texts=5)
    q, p = (draw(seed, 14) for seed in (1, 2))
    assert_slope(value, q, p - q, atol=0)


def test_a_rare_outcome_keeps_its_digits_and_its_slope():
    assert float(chance_seen(1e-12, 10)) == pytest.approx(1e-11, rel=1e-10)
    slopes = jax.vmap(jax.grad(lambda x: chance_seen(x, 3)))(np.array([0, 0.5, 1.0]))
    np.testing.assert_allclose(slopes, [3, 0.75, 0], atol=1e-15)


# --- Samples --------------------------------------------------------------------------
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


@pytest.mark.claim("N9.12")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize(("s", "r"), [(1, 1), (2, 1), (2, 2), (3, 1)])
def test_moments_of_plug_in_nrr_and_cr_by_all_samples(space, n, s, r):
    a, k = shares_of_texts(space, n), gram(space, n)
    q, p = draw(4, space.num_texts), draw(5, space.num_texts)
    ours, theirs = (batches(*side) for side in ((q, s), (p, r)))
    of_q, of_p = (a[:, texts].mean(axis=2) for texts, _ in (ours, theirs))
    nrr = -np.sum(of_q**2, axis=0), ours[1], *repetition_moments(k, q, s)
    chances = np.outer(ours[1], theirs[1])
    cr = of_q.T @ of_p, chances, q @ k @ p, coverage_variance(k, q, p, s, r)
    for values, chance, mean, variance in (nrr, cr):
        np.testing.assert_allclose(np.sum(chance * values), mean, rtol=1e-12)
        found = np.sum(chance * (values - mean) ** 2)
        np.testing.assert_allclose(found, variance, atol=1e-14)


@pytest.mark.claim("N9.14")
@pytest.mark.parametrize("seed", [500, 501, 502])
def test_relative_errors_grow_with_the_order(seed):
    space = qd.TextSpace(4, 4)
    p = oracle(space, seed, 1.0, 32)
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
def test_agreement_of_texts_falls_with_every_token(seed, base):
    p = draw(seed, base**5)
    agreement = [np.sum(p.reshape(base**m, -1).sum(1) ** 2) for m in range(6)]
    assert (np.diff(agreement) < 0).all()


@pytest.mark.claim("N9.16")
@pytest.mark.parametrize("seed", range(5))
def test_the_expected_plug_in_cnd_still_falls_at_p(seed):
    p, log_p = positive(seed, 4), np.log(positive(seed, 4))
    theirs = samples(p, 2)

    def expected(q):
        """By all samples of two texts on each side, n = L."""
        total = 0.0
        for (x, chance), (y, other) in product(samples(q, 2), theirs):
            apart = (np.eye(4)[x].mean(0) - np.eye(4)[y].mean(0)) ** 2
            total += chance * other * apart.sum()
        return total

    np.testing.assert_allclose(expected(p), 1 - p @ p, rtol=1e-12)
    rise = expected(power(p, 1.001)) - expected(power(p, 0.999))
    slope = -(p @ (p * log_p) - (p @ p) * (p @ log_p))  # -Cov_P(P, log P)
    assert slope < 0
    np.testing.assert_allclose(rise / 0.002, slope, rtol=1e-4)


@pytest.mark.claim("N9.18")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize(("s", "r"), [(1, 1), (2, 5), (6, 3), (3, 8)])
def test_the_chance_of_a_finite_log_likelihood_by_recursion(space, n, s, r):
    q, p = draw(7, space.num_texts), draw(8, space.num_texts)
    held = [frozenset(row) for row in space.ngrams(n).tolist()]
    ours, theirs = seen_sets(q, s, held), seen_sets(p, r, held)
    finite = sum(
        chance * sum(x for x, grams in zip(q, held, strict=True) if grams <= seen) ** s
        for seen, chance in theirs.items()
    )
    listed = product(ours.items(), theirs.items())
    direct = sum(x * y for (a, x), (b, y) in listed if a <= b)
    np.testing.assert_allclose(finite, direct, atol=1e-12)


@pytest.mark.claim("N9.19")
@given(seed=SEEDS, n=st.sampled_from([1, 2, 3]))
def test_only_the_references_must_hold_every_ngram(seed, n):
    full, pair = positive(seed, 64), ngram_pair(SPACES[0], n, qd.LL_SE)
    # Texts without token 3: no n-gram with it.
    lacking = full * (SPACES[0].tokens < 3).all(1)
    lacking /= lacking.sum()
    assert np.isfinite([pair.quality(lacking, full), pair.diversity(lacking)]).all()
    assert pair.quality(full, lacking) == -np.inf
