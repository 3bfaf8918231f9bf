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


def law(space, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(space.num_texts))


def sentences(space):
    return as_corpus([row[row >= 0].tolist() for row in space.tokens])


def multisets(space, q, size):
    """Each multiset of texts, with its probability."""
    for texts in combinations_with_replacement(range(space.num_texts), size):
        times = np.bincount(texts)
        ways = factorial(size) // prod(map(factorial, times.tolist()))
        yield np.array(texts), ways * q[list(texts)].prod()


def every_sample(space, q, size):
    """The same as corpora."""
    corpus = sentences(space)
    return [(corpus[texts], chance) for texts, chance in multisets(space, q, size)]


def mean(space, q, size, metric) -> np.ndarray:
    samples, chances = zip(*every_sample(space, q, size), strict=True)
    return np.array(chances) @ np.array([metric(sample) for sample in samples])


def shares(space, n):
    counts = ngram_matrix(space, n)
    return counts / counts.sum(axis=0)


def covariance(a, q):
    z = a - (a @ q)[:, None]
    return (z * q) @ z.T


def draws(space, q, size, repeats, seed=0):
    corpus, rng = sentences(space), np.random.default_rng(seed)
    for _ in range(repeats):
        yield corpus[rng.choice(len(corpus), size, p=q)]


# -- one length ----------------------------------------------------------------------


@pytest.mark.claim("N10.13", "N12.1", "N12.2")
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_plug_in_is_biased_by_the_trace_and_pairs_are_not(n, size):
    q = law(TRIPLE, seed=n)
    a = shares(TRIPLE, n)
    exact = -np.sum((a @ q) ** 2)
    plug_in, pairs = mean(
        TRIPLE,
        q,
        size,
        lambda x: [negative_repetition_rate(x, n, k) for k in ("plug-in", "pairs")],
    )
    assert plug_in == pytest.approx(
        exact - np.trace(covariance(a, q)) / size, abs=EXACT
    )
    assert pairs == pytest.approx(exact, abs=EXACT)


@pytest.mark.claim("N12.3")
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_stretch_and_shift_the_plug_in(seed):
    """Hence unbiased in any sample size, as the shift is known to mean."""
    space = qd.TextSpace(vocab_size=3, lengths=4)
    (sample,) = draws(space, law(space, seed), 20, 1, seed)
    a = np.array([[s.count(token) for token in range(3)] for s in sample]) / 4
    by_hand = -np.mean([a[s] @ a[t] for s in range(20) for t in range(20) if s != t])
    plug_in = negative_repetition_rate(sample, 1, "plug-in")
    stretched = (20 * plug_in + np.mean(np.sum(a**2, axis=1))) / 19
    assert stretched == pytest.approx(by_hand, abs=EXACT)
    pairs = negative_repetition_rate(sample, 1, "pairs")
    assert pairs == pytest.approx(by_hand, abs=EXACT)


# -- several lengths -----------------------------------------------------------------

KINDS = "plug-in", "pairs", "sentence-pairs"


def three_forms(sample):
    return [negative_repetition_rate(sample, 1, kind) for kind in KINDS]


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
    _, pairs, by_sentence = mean(SEVERAL, q, 3, three_forms)
    pooled, averaged = two_targets(q)
    assert by_sentence == pytest.approx(averaged, abs=EXACT)
    assert abs(pairs - pooled) > 1e-4
    # Independent tokens, and any law of lengths.
    chance = 0.2 + 0.1 * seed
    ones = np.where(SEVERAL.tokens < 0, 1, np.where(SEVERAL.tokens, chance, 1 - chance))
    q = ones.prod(axis=1) * np.array([0, 0.5, 0.2, 0.3])[SEVERAL.text_lengths]
    pooled, _ = two_targets(q)
    assert mean(SEVERAL, q, 3, three_forms)[1] == pytest.approx(pooled, abs=EXACT)


def limits(q):
    """The limits of S times the biases in the form of the notebook."""
    counts, lengths = ngram_matrix(SEVERAL, 1), SEVERAL.text_lengths
    tau = q @ lengths
    pooled = counts @ q / tau
    d = counts - pooled[:, None] * lengths
    kappa = pooled @ (d * lengths) @ q
    return np.array([2 * kappa - q @ np.sum(d**2, axis=0), 4 * kappa]) / tau**2


@pytest.mark.claim("N12.5")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_limits_of_the_bias_are_half_a_hessian(seed):
    """Of any function of a mean the bias is tr(H Cov) / 2S to first order."""
    q = law(SEVERAL, seed)
    counts, lengths = ngram_matrix(SEVERAL, 1), SEVERAL.text_lengths
    both = np.vstack([counts, lengths])
    center = both @ q

    def plug_in(x):
        return -jnp.sum(x[:-1] ** 2) / x[-1] ** 2

    hessian = np.asarray(jax.hessian(plug_in)(center))
    bias = np.trace(hessian @ covariance(both, q)) / 2
    # Without the diagonals the numerator loses E|c|^2 / S, the denominator E T^2 / S.
    *mu, tau = center
    numerator, denominator = np.sum(counts**2, axis=0) @ q, lengths**2 @ q
    shift = numerator / tau**2 - np.dot(mu, mu) * denominator / tau**4
    assert [bias, bias + shift] == pytest.approx(limits(q), rel=1e-12)


@pytest.mark.claim("N12.6")
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_mean_given_the_lengths_is_that_of_all_samples(size):
    q = law(SEVERAL, size)
    plug_in, pairs, _ = mean(SEVERAL, q, size, three_forms)
    _, square, across, _ = expectations(SEVERAL, q, 1, size)
    assert [plug_in, pairs] == pytest.approx([-square, -across], abs=EXACT)


@pytest.mark.claim("N12.23")
def test_the_pair_form_can_be_worse():
    """Texts `a a a` and `b`: the number of long ones is binomial."""
    q = np.zeros(SEVERAL.num_texts)
    q[SEVERAL.index(np.array([[0, 0, 0], [1, -1, -1]]))] = 5 / 8, 3 / 8
    tau, spread = 9 / 4, 2 * 5 / 8 * 3 / 8 * 9 / (9 / 4) ** 2  # E|d|^2, by hand
    assert limits(q) == pytest.approx([0, 2 * spread / tau**2], abs=EXACT)
    size = 100
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
    ours, theirs = (
        [(ngram_counts(x, n), chance) for x, chance in every_sample(PAIR, law, s)]
        for law, s in zip((q, p), sizes)
    )
    values = [
        (cnd(a, b, n, "pairs"), u * v) for (a, u), (b, v) in product(ours, theirs)
    ]
    return np.transpose(values)


@pytest.mark.claim("N12.7")
@pytest.mark.parametrize("sizes", [(2, 2), (3, 4), (5, 2)])
@pytest.mark.parametrize("n", [1, 2])
def test_null_variance(sizes, n):
    p = law(PAIR, seed=n)
    values, chances = cnd_of_all(p, p, sizes, n)
    s, r = sizes
    norm = np.sum(covariance(shares(PAIR, n), p) ** 2)
    each = 1 / (s * (s - 1)) + 1 / (r * (r - 1)) + 2 / (s * r)
    assert chances @ values == pytest.approx(0, abs=EXACT)
    assert chances @ values**2 == pytest.approx(2 * norm * each, abs=EXACT)
    assert values.min() < 0


@pytest.mark.claim("N12.8", "N12.24")
@pytest.mark.parametrize("n", [1, 2])
def test_unbiased_until_it_is_cut_and_negative_for_two_laws_too(n):
    q, p, a = law(PAIR, 3), law(PAIR, 4), shares(PAIR, n)
    close = 0.8 * p + 0.2 * q
    for ours in (q, close):
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
@pytest.mark.parametrize(
    ("vocab_size", "length"), [(2, 3), (2, 6), (3, 5), (4, 4), (5, 2)]
)
def test_the_trace_of_uniform_text_is_free_of_the_vocabulary(vocab_size, length):
    space = qd.TextSpace(vocab_size, lengths=length)
    q = np.full(space.num_texts, 1 / space.num_texts)
    for n in range(1, length + 1):
        windows = length - n + 1
        trace = np.trace(covariance(shares(space, n), q))
        assert trace == pytest.approx((1 - vocab_size**-n) / windows, abs=EXACT)
        # What was not seen is error in total variation.
        (sample,) = draws(space, q, 3, 1)
        seen = ngram_counts(sample, n)
        each = vocab_size**-n
        gap = np.abs(seen.frequencies - each).sum() + 1 - each * len(seen.counts)
        assert gap / 2 >= 1 - 3 * windows * each - 1e-15


TEXTS = st.lists(st.text("abc", min_size=3, max_size=3), min_size=2, max_size=6)


@pytest.mark.claim("N12.10")
@pytest.mark.parametrize("size", [2, 5, 8])
@pytest.mark.parametrize("n", [1, 2])
def test_the_tail_of_the_norm_is_below_its_bound(size, n):
    """One side of the bound, from all samples, for every chance at once."""
    p = law(PAIR, seed=size)
    a = shares(PAIR, n)
    target = a @ p
    errors, chances = np.transpose(
        [
            (np.linalg.norm(a[:, texts].mean(axis=1) - target), chance)
            for texts, chance in multisets(PAIR, p, size)
        ]
    )
    trace = np.trace(covariance(a, p))
    assert chances @ errors <= np.sqrt(trace / size) <= size**-0.5
    for delta in (0.5, 0.1, 0.01, 1e-4):
        bound = (1 + np.sqrt(np.log(2 / delta))) / np.sqrt(size)
        assert chances[errors > bound].sum() <= delta / 2


@pytest.mark.claim("N12.11")
@pytest.mark.parametrize("vocab_size", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_relative_error_passes_one_when_all_are_counted(vocab_size, n):
    space = qd.TextSpace(vocab_size, lengths=4)
    q = np.full(space.num_texts, 1 / space.num_texts)
    a = shares(space, n)
    trace, norm, windows = np.trace(covariance(a, q)), np.sum((a @ q) ** 2), 5 - n
    for size in range(1, 40):
        count = size * windows
        if count + 1 == vocab_size**n:
            assert trace / size == pytest.approx(norm, abs=EXACT)
        else:
            assert (trace / size > norm) == (vocab_size**n > count + 1)


# -- sample sizes --------------------------------------------------------------------


@pytest.mark.claim("N12.12")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_self_bleu_of_all_samples(size, smoothing):
    q = law(TRIPLE, size)
    found = mean(TRIPLE, q, size, lambda x: self_bleu(x, 3, smoothing))
    expected = qd.expected_self_bleu(TRIPLE, q, 3, size - 1, smoothing).tolist()
    assert found == pytest.approx(expected, abs=EXACT)


def mean_of_pairs(space, q, p, sizes, metric):
    """The mean of a function of candidates and references."""
    ours, theirs = (every_sample(space, x, size) for x, size in zip((q, p), sizes))
    return sum(a * b * metric(x, y) for (x, a), (y, b) in product(ours, theirs))


@pytest.mark.claim("N12.13")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("space", "sizes"),
    [(PAIR, (3, 2)), (PAIR, (1, 4)), (TWO, (2, 2)), (TRIPLE, (1, 2))],
    ids=str,
)
def test_bleu_of_all_pairs_of_samples(space, sizes, smoothing):
    """Smoothed or not, pooled, and of a second sample."""
    q, p, order = law(space, 8), law(space, 9), space.max_length

    def metric(x, y):
        pooled = bleu(x, y, order, smoothing, aggregate="pooled")
        second = self_bleu(x, order, smoothing, against=y)
        return np.array([pooled, bleu(x, y, order, smoothing), second])

    pooled, alone, second = mean_of_pairs(space, q, p, sizes, metric)
    expected = qd.expected_bleu(space, q, p, order, sizes[1], smoothing).tolist()
    assert alone == pytest.approx(expected, abs=EXACT)
    assert second == pytest.approx(expected, abs=EXACT)
    expected = expected_corpus_bleu(space, q, p, order, *sizes[::-1], smoothing)
    assert pooled == pytest.approx(expected.tolist(), abs=EXACT)


@pytest.mark.claim("N10.13", "N12.14", "N12.15")
@pytest.mark.parametrize(
    ("space", "sizes", "n"),
    [(PAIR, (3, 2), 1), (PAIR, (3, 2), 2), (TWO, (2, 2), 1)],
    ids=str,
)
def test_rates_of_all_pairs_of_samples_by_every_estimator(space, sizes, n):
    q, p = law(space, 8), law(space, 9)

    def metric(x, y):
        both = [f(x, y, n, kind) for f in (coverage_rate, cnd) for kind in KINDS]
        return np.array([distinct(x, n), *both])

    found = mean_of_pairs(space, q, p, sizes, metric)
    (mean_q, square_q, pairs_q, kinds), (mean_p, square_p, pairs_p, _) = (
        expectations(space, x, n, size) for x, size in zip((q, p), sizes)
    )
    ours, theirs = (sentence_averaged(space, x, n) for x in (q, p))
    by_texts = qd.ngrams.expected_distinct(space, q, n, sizes[0])
    assert kinds == pytest.approx(float(by_texts), abs=EXACT)
    coverage = mean_q @ mean_p
    expected = [
        kinds,
        coverage,
        coverage,
        ours @ theirs,
        square_q + square_p - 2 * coverage,
        pairs_q + pairs_p - 2 * coverage,
        ((ours - theirs) ** 2).sum(),
    ]
    assert found == pytest.approx(expected, abs=EXACT)


def mean_self_bleu(space, q, size, seed):
    return np.mean(
        [self_bleu(x, 3, smoothing=None)[2] for x in draws(space, q, size, 30, seed)]
    )


@pytest.mark.claim("N12.16")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_sample_hides_a_sharp_model(seed):
    space = qd.TextSpace(vocab_size=5, lengths=4)
    p = oracle(space, seed, sigma=1.0)
    sharp = np.asarray(qd.temper(p, 1.5))
    small, same, large = (
        mean_self_bleu(space, x, size, seed)
        for x, size in ((sharp, 8), (p, 8), (p, 300))
    )
    assert same + 0.05 < small < large - 0.05


@pytest.mark.claim("N12.17")
def test_curves_cross():
    """From samples, on a smaller space."""
    space = qd.TextSpace(vocab_size=5, lengths=4)
    stuck = np.full(space.num_texts, 0.5 / space.num_texts)
    stuck[0] += 0.5
    narrow = np.zeros(space.num_texts)
    narrow[::53] = 1 / 12
    assert np.count_nonzero(narrow) == 12
    few, many = (
        [mean_self_bleu(space, q, size, 0) for q in (stuck, narrow)] for size in (2, 60)
    )
    assert few[0] > few[1] + 0.05
    assert many[0] < many[1] - 0.05


# -- brevity -------------------------------------------------------------------------


@pytest.mark.claim("N10.32", "N12.18")
@given(TEXTS, st.text("abc", min_size=3, max_size=3), st.integers(3, 5))
def test_with_one_length_a_reference_more_never_lowers_bleu(texts, other, length):
    references = [list(x) for x in texts]
    candidates = [list(("abcab" + other)[-length:])]
    before = bleu(candidates, references, 3, "epsilon")
    after = bleu(candidates, [*references, list(other)], 3, "epsilon")
    assert (after >= before - 1e-15).all()


@pytest.mark.claim("N12.19")
def test_with_several_lengths_it_can():
    """Every set of the six texts as the set seen: inclusion and exclusion, NLTK."""
    texts = [list(x) for x in ("a", "b", "c", "d", "abc", "abcd")]

    def mean_bleu(chances, candidate, k):
        """By inclusion and exclusion over the texts that have a chance."""
        some = np.flatnonzero(chances)
        total = 0.0
        for seen, chance in sets_drawn(chances[some], k):
            references = [texts[some[i]] for i in seen]
            score = sentence_bleu(references, candidate, (1.0,))
            total += chance * float(np.asarray(score))
        return total

    singles = np.array([1, 1, 1, 1, 0, 0]) / 4
    real = 0.99 * singles + 0.01 * np.eye(6)[5]
    values = [mean_bleu(real, texts[4], k) for k in (15, 1000)]
    assert values == pytest.approx([0.949, np.exp(-1 / 3)], abs=5e-4)
    own = 0.987 * singles + 0.003 * np.eye(6)[4] + 0.01 * np.eye(6)[5]
    falls = [
        sum(own[i] * mean_bleu(own, texts[i], k) for i in range(6)) for k in (37, 150)
    ]
    assert falls == pytest.approx([0.999748, 0.999578], abs=5e-7)


# -- intervals -----------------------------------------------------------------------


@pytest.mark.claim("N12.20")
def test_only_the_jackknife_covers():
    space = qd.TextSpace(vocab_size=5, lengths=4)
    q, size = oracle(space, 1, sigma=1.0), 40
    aim = float(qd.expected_self_bleu(space, q, 3, size - 1)[-1])

    def metric(x):
        return self_bleu(x, 3, smoothing=None)[2]

    def coverage(interval, **options):
        samples = draws(space, q, size, 40)
        found = [interval(metric, x, level=0.9, **options) for x in samples]
        return np.mean([x.low <= aim <= x.high for x in found])

    # 40 intervals of level 0.9: the standard deviation of their coverage is 0.05.
    assert coverage(jackknife_interval) >= 0.75
    assert coverage(bootstrap_interval, num_resamples=40) <= 0.6


@pytest.mark.claim("N12.21")
@pytest.mark.parametrize("n", [1, 2])
def test_the_mean_of_the_bootstrap_is_that_of_the_empirical_law(n):
    """All 256 resamples of four sentences."""
    texts, chosen = sentences(TRIPLE), np.array([1, 3, 3, 6])
    resamples = [
        texts[chosen[list(x)]] for x in product(range(len(chosen)), repeat=len(chosen))
    ]
    own = np.bincount(chosen, minlength=TRIPLE.num_texts) / len(chosen)
    found = np.mean([self_bleu(x, n, smoothing=None)[n - 1] for x in resamples])
    assert found == pytest.approx(
        float(qd.expected_self_bleu(TRIPLE, own, n, 3)[-1]), abs=EXACT
    )
    assert found >= 1 - (1 - 1 / 4) ** 3
    a = shares(TRIPLE, n)
    found = np.mean([negative_repetition_rate(x, n, "plug-in") for x in resamples])
    exact = -np.sum((a @ own) ** 2) - np.trace(covariance(a, own)) / 4
    assert found == pytest.approx(exact, abs=EXACT)


@pytest.mark.claim("N12.22")
def test_intervals_shrink_round_a_number_that_moves():
    """Zipf's words in sentences of several lengths."""
    rng = np.random.default_rng(0)
    chances = 1 / np.arange(1, 301)
    corpus = as_corpus(
        [
            rng.choice(300, length, p=chances / chances.sum()).tolist()
            for length in rng.integers(5, 15, size=2600)
        ]
    )
    small, large = (
        evaluate({"": corpus[600 : 600 + size]}, corpus[:600], 2).scores[""]
        for size in (200, 1800)
    )
    order = 1  # of each metric's pair, bigrams
    half = [np.asarray(x.high) - x.value for x in (small, large)]
    moved = abs(large.value - small.value) / np.hypot(*half)
    by_kind = moved.reshape(-1, 2)[:, order]
    fixed, own = by_kind[[0, 2, 3, 4]], by_kind[[1, 5, 6]]
    assert fixed.max() <= 2 < 3 <= own.min()
    # A ninth of the sentences: three times as wide, each uncertain by a sixth; less
    # where the references are a share of the error, and none where all words are known.
    assert 1.5 < np.nanmedian(half[0] / half[1]) < 4.5
