"""Bias and spread of estimates: every sample listed, or second derivatives.

A mean over all samples of some size is a sum over multisets of texts, each as often as
it can be ordered: no chance, and the metrics are called as they are.
"""

from itertools import combinations_with_replacement, product
from math import factorial, prod

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from lab.corpora import bootstrap_interval
from lab.metrics.bleu import expected_corpus_bleu
from models import oracle
from nltk.translate.bleu_score import sentence_bleu
from referees.metrics_by_text import sets_drawn
from referees.sample_means import expectations, sentence_averaged
from scipy.stats import binom

import qdtheory as qd
from qdtheory.ngrams import ngram_matrix
from qdtheory.text import (
    as_corpus,
    bleu,
    cnd,
    coverage_rate,
    distinct,
    evaluate,
    jackknife_interval,
    negative_repetition_rate,
    ngram_counts,
    self_bleu,
)

# Thousands of calls: their types are checked in the metrics' own tests.
pytestmark = pytest.mark.usefixtures("as_a_user")

# Sums of some thousand products of numbers up to 1.
EXACT = 1e-13
PAIR = qd.TextSpace(vocab_size=2, lengths=2)
TRIPLE = qd.TextSpace(vocab_size=2, lengths=3)
TWO = qd.TextSpace(vocab_size=2, lengths=(1, 2))
SEVERAL = qd.TextSpace(vocab_size=2, lengths=(1, 2, 3))
SEEDS = range(3)
WIDE = qd.TextSpace(vocab_size=5, lengths=4)
KINDS, NRR = ("plug-in", "pairs", "sentence-pairs"), negative_repetition_rate


def law(space, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(space.num_texts))


def sentences(space):
    return as_corpus([row[row >= 0].tolist() for row in space.tokens])


def multisets(space, q, size):
    """Each multiset of texts, with its probability."""
    for texts in combinations_with_replacement(range(space.num_texts), size):
        ways = factorial(size) // prod(map(factorial, np.bincount(texts).tolist()))
        yield np.array(texts), ways * q[list(texts)].prod()


def mean(space, metric, *laws_and_sizes):
    """Over all samples of each law, of a metric of corpora."""
    corpus, total = sentences(space), 0
    for each in product(*(multisets(space, *x) for x in laws_and_sizes)):
        samples, chances = zip(*each)
        total += prod(chances) * np.array(metric(*(corpus[x] for x in samples)))
    return total


def trace_of_covariance(a, q):
    return np.sum(a**2 @ q) - np.sum((a @ q) ** 2)


def uniform(*sizes):
    """A space and its uniform law."""
    space = qd.TextSpace(*sizes)
    return space, np.full(space.num_texts, 1 / space.num_texts)


def shares(space, n):
    counts = ngram_matrix(space, n)
    return counts / counts.sum(axis=0)


def draws(space, q, size, repeats, seed=0):
    corpus, rng = sentences(space), np.random.default_rng(seed)
    for _ in range(repeats):
        yield corpus[rng.choice(len(corpus), size, p=q)]


# -- one length ----------------------------------------------------------------------


@pytest.mark.claim("N10.13", "N12.1", "N12.2")
@pytest.mark.parametrize(("n", "size"), [(1, 2), (1, 4), (2, 3), (3, 2), (3, 3)])
def test_the_plug_in_is_biased_by_the_trace_and_pairs_are_not(n, size):
    q, a = law(TRIPLE, seed=n), shares(TRIPLE, n)
    kinds, exact = KINDS[:2], -np.sum((a @ q) ** 2)
    found = mean(TRIPLE, lambda x: [NRR(x, n, kind) for kind in kinds], (q, size))
    biased = exact - trace_of_covariance(a, q) / size
    assert found == pytest.approx([biased, exact], abs=EXACT)


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_stretch_and_shift_the_plug_in(seed):
    """Hence unbiased in any sample size, as the shift is known to mean."""
    space = qd.TextSpace(vocab_size=3, lengths=4)
    (sample,) = draws(space, law(space, seed), 20, 1, seed)
    a = np.array([[s.count(token) for token in range(3)] for s in sample]) / 4
    by_hand = -np.mean([a[s] @ a[t] for s in range(20) for t in range(20) if s != t])
    plug_in, pairs = (NRR(sample, 1, kind) for kind in KINDS[:2])
    stretched = (20 * plug_in + np.mean(np.sum(a**2, axis=1))) / 19
    assert [stretched, pairs] == pytest.approx([by_hand] * 2, abs=EXACT)


# -- several lengths -----------------------------------------------------------------


def three_forms(q, size):
    """Their means over all samples of a size."""
    return mean(SEVERAL, lambda x: [NRR(x, 1, kind) for kind in KINDS], (q, size))


def two_targets(q):
    """Minus the squared norms of the pooled and the sentence-averaged law."""
    counts = ngram_matrix(SEVERAL, 1)
    pooled = counts @ q / (counts.sum(axis=0) @ q)
    averaged = shares(SEVERAL, 1) @ q
    return -pooled @ pooled, -averaged @ averaged


@pytest.mark.claim("N12.4")
@pytest.mark.parametrize("seed", SEEDS)
def test_sentence_pairs_are_unbiased_and_pairs_where_the_law_ignores_length(seed):
    q = law(SEVERAL, seed)
    (_, pairs, by_sentence), (pooled, averaged) = three_forms(q, 3), two_targets(q)
    assert by_sentence == pytest.approx(averaged, abs=EXACT)
    assert abs(pairs - pooled) > 1e-4
    # Independent tokens, and any law of lengths.
    chance = 0.2 + 0.1 * seed
    ones = np.where(SEVERAL.tokens < 0, 1, np.where(SEVERAL.tokens, chance, 1 - chance))
    q = ones.prod(axis=1) * np.array([0, 0.5, 0.2, 0.3])[SEVERAL.text_lengths]
    assert three_forms(q, 3)[1] == pytest.approx(two_targets(q)[0], abs=EXACT)


def limits(q):
    """The limits of S times the biases in the form of the notebook."""
    counts, lengths = ngram_matrix(SEVERAL, 1), SEVERAL.text_lengths
    tau = q @ lengths
    d = counts - (counts @ q / tau)[:, None] * lengths
    kappa = (counts @ q / tau) @ (d * lengths) @ q
    return np.array([2 * kappa - q @ np.sum(d**2, axis=0), 4 * kappa]) / tau**2


@pytest.mark.claim("N12.5")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_limits_of_the_bias_are_half_a_hessian(seed):
    """Of any function of a mean the bias is tr(H Cov) / 2S to first order."""
    q = law(SEVERAL, seed)
    both = np.vstack([ngram_matrix(SEVERAL, 1), SEVERAL.text_lengths])
    *mu, tau = center = both @ q
    hessian = jax.hessian(lambda x: -jnp.sum(x[:-1] ** 2) / x[-1] ** 2)(center)
    bias = float(np.sum(hessian * np.cov(both, aweights=q, ddof=0))) / 2
    # Without the diagonals the numerator loses E|c|^2 / S, the denominator E T^2 / S.
    *squares, denominator = both**2 @ q
    shift = sum(squares) / tau**2 - np.dot(mu, mu) * denominator / tau**4
    assert [bias, bias + shift] == pytest.approx(limits(q), rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_mean_given_the_lengths_is_that_of_all_samples(size):
    q = law(SEVERAL, size)
    _, square, across, _ = expectations(SEVERAL, q, 1, size)
    found = three_forms(q, size)[:2]
    assert found == pytest.approx([-square, -across], abs=EXACT)


@pytest.mark.claim("N12.23")
def test_the_pair_form_can_be_worse():
    """Texts `a a a` and `b`: the number of long ones is binomial."""
    q, size = np.zeros(SEVERAL.num_texts), 100
    q[SEVERAL.index(np.array([[0, 0, 0], [1, -1, -1]]))] = 5 / 8, 3 / 8
    tau, spread = 9 / 4, 2 * 5 / 8 * 3 / 8 * 9 / (9 / 4) ** 2  # E|d|^2, by hand
    assert limits(q) == pytest.approx([0, 2 * spread / tau**2], abs=EXACT)
    k = np.arange(size + 1)
    a, b = 3 * k, size - k
    plug_in = -(a**2 + b**2) / (a + b) ** 2
    pairs = -(a**2 - 9 * k + b**2 - b) / ((a + b) ** 2 - 9 * k - b)
    bias = binom.pmf(k, size, 5 / 8) @ np.array([plug_in, pairs]).T - two_targets(q)[0]
    assert size * bias == pytest.approx(limits(q), abs=0.005)  # the next order, 1/S
    assert abs(bias[1]) > 50 * abs(bias[0])


# -- CND -----------------------------------------------------------------------------


def cnd_of_all(q, p, sizes, n):
    """CND of every pair of samples, and the probabilities."""
    corpus, ours = sentences(PAIR), multisets(PAIR, q, sizes[0])
    every = product(ours, multisets(PAIR, p, sizes[1]))
    values = (
        (cnd(corpus[a], corpus[b], n, "pairs"), u * v) for (a, u), (b, v) in every
    )
    return np.transpose([*values])


@pytest.mark.claim("N12.7")
@pytest.mark.parametrize(("sizes", "n"), [((2, 2), 1), ((3, 4), 2), ((5, 2), 1)])
def test_null_variance(sizes, n):
    p, (s, r) = law(PAIR, seed=n), sizes
    values, chances = cnd_of_all(p, p, sizes, n)
    norm = np.sum(np.cov(shares(PAIR, n), aweights=p, ddof=0) ** 2)
    each = 1 / (s * (s - 1)) + 1 / (r * (r - 1)) + 2 / (s * r)
    found = chances @ values, chances @ values**2
    assert found == pytest.approx((0, 2 * norm * each), abs=EXACT)
    assert values.min() < 0


@pytest.mark.claim("N12.8", "N12.24")
@pytest.mark.parametrize("n", [1, 2])
def test_unbiased_until_it_is_cut_and_negative_for_two_laws_too(n):
    q, p, a = law(PAIR, 3), law(PAIR, 4), shares(PAIR, n)
    for ours in (q, 0.8 * p + 0.2 * q):
        distance = np.sum((a @ (ours - p)) ** 2)
        values, chances = cnd_of_all(ours, p, (3, 3), n)
        assert chances @ values == pytest.approx(distance, abs=EXACT)
        assert distance > 1e-4
    # Of the close one, over all samples, each with its chance: beyond rounding.
    assert chances @ (values < -1e-12) > 0.3
    values, chances = cnd_of_all(p, p, (3, 3), n)
    assert chances @ np.maximum(values, 0) > 0.01


# -- rates ---------------------------------------------------------------------------


@pytest.mark.claim("N12.9")
@pytest.mark.parametrize("sizes", [(2, 3), (2, 6), (3, 5), (4, 4), (5, 2)])
def test_the_trace_of_uniform_text_is_free_of_the_vocabulary(sizes):
    (space, q), (words, length) = uniform(*sizes), sizes
    for n in range(1, length + 1):
        windows, each = length - n + 1, words**-n
        trace = trace_of_covariance(shares(space, n), q)
        assert trace == pytest.approx((1 - each) / windows, abs=EXACT)
        # What was not seen is error in total variation.
        (sample,) = draws(space, q, 3, 1)
        seen = ngram_counts(sample, n)
        gap = np.abs(seen.frequencies - each).sum() + 1 - each * len(seen.counts)
        assert gap / 2 >= 1 - 3 * windows * each - 1e-15


TEXTS = st.lists(st.text("abc", min_size=3, max_size=3), min_size=2, max_size=6)


@pytest.mark.claim("N12.11")
@pytest.mark.parametrize("words", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_relative_error_passes_one_when_all_are_counted(words, n):
    space, q = uniform(words, 4)
    a = shares(space, n)
    ratio = trace_of_covariance(a, q) / np.sum((a @ q) ** 2)
    for size in range(1, 40):
        missing = words**n - size * (5 - n) - 1
        assert np.sign(round(ratio / size - 1, 12)) == np.sign(missing)


# -- sample sizes --------------------------------------------------------------------


@pytest.mark.claim("N12.12")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize("size", [2, 4])
def test_self_bleu_of_all_samples(size, smoothing):
    q = law(TRIPLE, size)
    found = mean(TRIPLE, lambda x: self_bleu(x, 3, smoothing), (q, size))
    expected = qd.expected_self_bleu(TRIPLE, q, 3, size - 1, smoothing).tolist()
    assert found == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("space", "sizes"), [(PAIR, (3, 2)), (TWO, (2, 2)), (TRIPLE, (1, 2))], ids=str
)
def test_bleu_of_all_pairs_of_samples(space, sizes, smoothing):
    """Smoothed or not, pooled, and of a second sample."""
    q, p, order = law(space, 8), law(space, 9), space.max_length

    def metric(x, y):
        pooled = bleu(x, y, order, smoothing, aggregate="pooled")
        second = self_bleu(x, order, smoothing, against=y)
        return [pooled, bleu(x, y, order, smoothing), second]

    found = mean(space, metric, (q, sizes[0]), (p, sizes[1]))
    alone = qd.expected_bleu(space, q, p, order, sizes[1], smoothing)
    pooled = expected_corpus_bleu(space, q, p, order, *sizes[::-1], smoothing)
    np.testing.assert_allclose(found, [pooled, alone, alone], rtol=0, atol=EXACT)


@pytest.mark.claim("N10.13", "N12.14")
@pytest.mark.parametrize(
    ("space", "sizes", "n"),
    [(PAIR, (3, 2), 1), (PAIR, (3, 2), 2), (TWO, (2, 2), 1)],
    ids=str,
)
def test_rates_of_all_pairs_of_samples_by_every_estimator(space, sizes, n):
    laws = law(space, 8), law(space, 9)

    def metric(x, y):
        both = [f(x, y, n, kind) for f in (coverage_rate, cnd) for kind in KINDS]
        return [distinct(x, n), *both]

    (mean_q, square_q, pairs_q, kinds), (mean_p, square_p, pairs_p, _) = (
        expectations(space, x, n, size) for x, size in zip(laws, sizes)
    )
    ours, theirs = (sentence_averaged(space, x, n) for x in laws)
    by_texts = qd.ngrams.expected_distinct(space, laws[0], n, sizes[0])
    assert kinds == pytest.approx(float(by_texts), abs=EXACT)
    coverage = mean_q @ mean_p
    expected = [kinds, coverage, coverage, ours @ theirs]
    expected += [x - 2 * coverage for x in (square_q + square_p, pairs_q + pairs_p)]
    expected += [((ours - theirs) ** 2).sum()]
    found = mean(space, metric, *zip(laws, sizes))
    assert found == pytest.approx(expected, abs=EXACT)


def mean_self_bleu(space, q, size, seed):
    samples = draws(space, q, size, 30, seed)
    return np.mean([self_bleu(x, 3, smoothing=None)[2] for x in samples])


@pytest.mark.claim("N12.16")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_sample_hides_a_sharp_model(seed):
    p = oracle(WIDE, seed, sigma=1.0)
    of = (np.asarray(qd.temper(p, 1.5)), 8), (p, 8), (p, 300)
    small, same, large = (mean_self_bleu(WIDE, *x, seed) for x in of)
    assert same + 0.05 < small < large - 0.05


@pytest.mark.claim("N12.17")
def test_curves_cross():
    """From samples, on a smaller space."""
    stuck, narrow = np.full(625, 0.5 / 625), np.zeros(625)
    stuck[0] += 0.5
    narrow[::53] = 1 / 12
    for size, sign in ((2, 1), (60, -1)):
        one, other = (mean_self_bleu(WIDE, q, size, 0) for q in (stuck, narrow))
        assert sign * (one - other) > 0.05


# -- brevity -------------------------------------------------------------------------


@pytest.mark.claim("N10.32")
@given(TEXTS, st.text("abc", min_size=3, max_size=3), st.integers(3, 5))
def test_with_one_length_a_reference_more_never_lowers_bleu(texts, other, length):
    candidates = [list(("abcab" + other)[-length:])]
    before = bleu(candidates, [*map(list, texts)], 3, "epsilon")
    after = bleu(candidates, [*map(list, texts), list(other)], 3, "epsilon")
    assert (after >= before - 1e-15).all()


@pytest.mark.claim("N12.19")
def test_with_several_lengths_it_can():
    """Every set of the six texts as the set seen: inclusion and exclusion, NLTK."""
    texts = [list(x) for x in ("a", "b", "c", "d", "abc", "abcd")]

    def mean_bleu(chances, candidate, k):
        """By inclusion and exclusion over the texts that have a chance."""
        some, total = np.flatnonzero(chances), 0.0
        for seen, chance in sets_drawn(chances[some], k):
            references = [texts[some[i]] for i in seen]
            total += chance * float(sentence_bleu(references, candidate, (1.0,)))
        return total

    *_, long, longest = np.eye(6)
    singles = np.array([1, 1, 1, 1, 0, 0]) / 4
    real = 0.99 * singles + 0.01 * longest
    values = [mean_bleu(real, texts[4], k) for k in (15, 1000)]
    assert values == pytest.approx([0.949, np.exp(-1 / 3)], abs=5e-4)
    own = 0.987 * singles + 0.003 * long + 0.01 * longest
    falls = [own @ [mean_bleu(own, text, k) for text in texts] for k in (37, 150)]
    assert falls == pytest.approx([0.999748, 0.999578], abs=5e-7)


# -- intervals -----------------------------------------------------------------------


@pytest.mark.claim("N12.20")
def test_only_the_jackknife_covers():
    q, size = oracle(WIDE, 1, sigma=1.0), 40
    aim = float(qd.expected_self_bleu(WIDE, q, 3, size - 1)[-1])

    def coverage(interval, **options):
        samples = draws(WIDE, q, size, 40)
        metric = lambda x: self_bleu(x, 3, smoothing=None)[2]  # noqa: E731
        found = [interval(metric, x, level=0.9, **options) for x in samples]
        return np.mean([x.low <= aim <= x.high for x in found])

    # 40 intervals of level 0.9: the standard deviation of their coverage is 0.05.
    assert coverage(jackknife_interval) >= 0.75
    assert coverage(bootstrap_interval, num_resamples=40) <= 0.6


@pytest.mark.claim("N12.21")
@pytest.mark.parametrize("n", [1, 2])
def test_the_mean_of_the_bootstrap_is_that_of_the_empirical_law(n):
    """All resamples of four sentences."""
    own, a = (
        np.bincount([1, 3, 3, 6], minlength=TRIPLE.num_texts) / 4,
        shares(TRIPLE, n),
    )
    mine, nrr = mean(
        TRIPLE, lambda x: [self_bleu(x, n, None)[-1], NRR(x, n, "plug-in")], (own, 4)
    )
    expected = float(qd.expected_self_bleu(TRIPLE, own, n, 3)[-1])
    assert mine == pytest.approx(expected, abs=EXACT)
    assert mine >= 1 - (1 - 1 / 4) ** 3
    exact = -np.sum((a @ own) ** 2) - trace_of_covariance(a, own) / 4
    assert nrr == pytest.approx(exact, abs=EXACT)


@pytest.mark.claim("N12.22")
def test_intervals_shrink_round_a_number_that_moves():
    """Zipf's words in sentences of several lengths."""
    rng, zipf = np.random.default_rng(0), 1 / np.arange(1, 301)
    lengths = rng.integers(5, 15, size=2600)
    words = (rng.choice(300, length, p=zipf / zipf.sum()) for length in lengths)
    corpus = as_corpus([x.tolist() for x in words])
    small, large = (
        evaluate({"": corpus[600 : 600 + size]}, corpus[:600], 2).scores[""]
        for size in (200, 1800)
    )
    half = [np.asarray(x.high) - x.value for x in (small, large)]
    moved = abs(large.value - small.value) / np.hypot(*half)
    bigrams = moved.reshape(-1, 2)[:, 1]  # of each metric's pair
    fixed, own = bigrams[[0, 2, 3, 4]], bigrams[[1, 5, 6]]
    assert fixed.max() <= 2 < 3 <= own.min()
    # A ninth of the sentences: three times as wide, each uncertain by a sixth; less
    # where the references are a share of the error, and none where all words are known.
    assert 1.5 < np.nanmedian(half[0] / half[1]) < 4.5
