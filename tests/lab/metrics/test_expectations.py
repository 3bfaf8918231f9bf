"""Metrics on spaces: against all draws, texts counted one by one, and recursions."""

from collections import Counter
from itertools import pairwise, product
from math import ceil, log2

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import fmpz_mat
from lab import metrics
from lab.corpora.compression import lz78_bits, lz78_phrases
from lab.metrics.since_2020 import compression_table
from models import (
    assert_compiles_and_batches,
    assert_slope,
    oracle,
    random_distribution,
    sentence_bleu,
    sentences,
)
from numpy.testing import assert_allclose
from referees.enumerated_batches import batches
from refusals import refused
from scipy.linalg import logm
from scipy.stats import t as student
from scripts import column_of

import qdtheory as qd
from qdtheory.kernels import density_matrix, features_of

approx = pytest.approx

EPS = np.finfo(float).eps
MIXED = qd.TextSpace(2, (1, 2, 3))

# -- k draws, and compression --------------------------------------------------------

Q, UTILITIES = np.array([0.5, 0.3, 0.15, 0.05]), np.array([1.0, 4.0, 10.0, 2.0])


def mean_over_draws(q, k, value):
    """The exact mean of a function of k independent draws."""
    draws, chances = batches(q, k)
    return chances @ [value(d) for d in draws.tolist()]


def reading(draws, patience):
    """What NoveltyBench's reader gets of a sequence of answers."""
    weights = patience ** np.arange(len(draws))
    new = [d not in draws[:i] for i, d in enumerate(draws)]
    return weights @ (UTILITIES[draws] * new) / weights.sum()


@pytest.mark.claim("N25.1", "N25.5", "N25.6")
@pytest.mark.parametrize("k", [1, 2, 5])
def test_metrics_of_k_draws_are_means_over_all_draws(k):
    different = mean_over_draws(Q, k, lambda d: len(set(d)))
    assert metrics.distinct_k(Q, k) == approx(different, abs=1e-13)
    for patience in (0.0, 0.8, 1.0):
        expected = mean_over_draws(Q, k, lambda d, x=patience: reading(d, x))
        found = float(metrics.utility_k(Q, UTILITIES, k, patience))
        assert found == approx(expected, abs=1e-13)
    s = np.array([0.0, 0.25, 1.0])
    right = np.mean([mean_over_draws([1 - x, x], k, lambda d: 1 in d) for x in s])
    assert metrics.pass_at_k(s, k) == approx(right, abs=1e-15)


def cut(tokens):
    """The phrases, each the shortest prefix of the rest that is new."""
    phrases, rest = [], tuple(tokens)
    while rest:
        sizes = range(1, len(rest) + 1)
        size = next((n for n in sizes if rest[:n] not in phrases), len(rest))
        phrases.append(rest[:size])
        rest = rest[size:]
    return phrases


def test_phrases_are_those_of_the_definition():
    for tokens in product(range(2), repeat=9):
        assert lz78_phrases(tokens) == len(cut(tokens))
    assert lz78_phrases([]) == 0
    for number, size in ((1, 2), (7, 3), (20, 5)):
        bits = sum(ceil(log2(j)) + ceil(log2(size)) for j in range(1, number + 1))
        assert lz78_bits(number, size) == bits


@pytest.mark.claim("N25.19")
@pytest.mark.parametrize("num_texts", [1, 2, 3])
def test_expected_compression_is_the_mean_over_all_samples(num_texts):
    space, q = qd.TextSpace(3, 2), np.random.default_rng(0).dirichlet(np.ones(9))

    def ratio(sample):
        tokens = space.tokens[sample].ravel().tolist()
        return len(tokens) * log2(3) / lz78_bits(len(cut(tokens)), 3)

    expected = mean_over_draws(q, num_texts, ratio)
    found = metrics.expected_compression(space, q, num_texts)
    assert found == approx(expected, abs=1e-13)


# -- BLEU from draws, and pooled -----------------------------------------------------


@pytest.mark.parametrize(("max_order", "n"), [(1, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_pooled_bleu_of_one_candidate_is_expected_bleu(max_order, n, smoothing):
    space = MIXED
    q, p = (random_distribution(14, seed, 0.3) for seed in (6, 7))
    one = metrics.expected_corpus_bleu(space, q, p, max_order, n, 1, smoothing)
    exact = qd.expected_bleu(space, q, p, max_order, n, smoothing)
    assert_allclose(one, exact, rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_monte_carlo_is_the_mean_of_nltks_scores(smoothing):
    rng = np.random.default_rng(8)
    texts, others = rng.integers(3, size=(60, 8)), rng.integers(3, size=(60, 3, 7))
    for tokens in (texts, others):
        sizes = rng.integers(1, tokens.shape[-1] + 1, size=(*tokens.shape[:-1], 1))
        tokens[np.arange(tokens.shape[-1]) >= sizes] = -1

    def words(text):
        return text[text >= 0].tolist()

    scores = [
        [sentence_bleu(words(c), [*map(words, r)], n, smoothing) for n in (1, 2, 3)]
        for c, r in zip(texts, others, strict=True)
    ]
    mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / 60**0.5
    found = metrics.estimate_bleu(texts, others, 3, smoothing)
    assert_allclose(found.value, mean, atol=1e-14)
    assert_allclose(found.standard_error, error, atol=1e-14)
    ends = student.interval(0.95, 59, mean, error)
    assert_allclose((found.low, found.high), ends, atol=1e-13)


# -- similarities of two texts, and Vendi --------------------------------------------


def by_recursion(a, b):
    """LCS and edit distance of two texts, from the definitions."""
    if not a or not b:
        return 0, len(a) + len(b)
    both = by_recursion(a[:-1], b[:-1])
    if a[-1] == b[-1]:
        return both[0] + 1, both[1]
    cut_a, cut_b = by_recursion(a[:-1], b), by_recursion(a, b[:-1])
    return max(cut_a[0], cut_b[0]), 1 + min(cut_a[1], cut_b[1], both[1])


@pytest.mark.claim("N25.13")
@pytest.mark.parametrize("size", [(2, 4), (3, (1, 2, 3))])
def test_subsequences_and_edits_are_those_of_the_recursion(size):
    space = qd.TextSpace(*size)
    lcs, edits = metrics.lcs_kernel(space), metrics.edit_kernel(space)
    for (i, a), (j, b) in product(enumerate(sentences(space)), repeat=2):
        common, distance = by_recursion(a, b)
        found, expected = 2 * common / (len(a) + len(b)), max(len(a), len(b))
        assert lcs[i, j] == approx(found, abs=1e-15)
        assert edits[i, j] == approx(1 - distance / expected, abs=1e-15)


def negative_directions(kernel):
    """By the exact characteristic polynomial's signs, on the basis e_i - e_N."""
    whole = np.rint(kernel * 12).astype(int)
    assert np.abs(whole - 12 * kernel).max() < 1e-12
    last = whole[-1]
    rows = whole[:-1, :-1] - last[:-1] - whole[:-1, -1:] + last[-1]
    coefficients = fmpz_mat(rows.tolist()).charpoly().coeffs()
    # Descartes: exact for a polynomial whose roots are all real.
    signs = [c * (-1) ** k > 0 for k, c in enumerate(coefficients) if c]
    return sum(a != b for a, b in pairwise(signs))


@pytest.mark.claim("N25.13", "N25.15")
@pytest.mark.parametrize(
    ("size", "lcs", "edits"),
    [((2, 2), 0, 0), ((2, 3), 0, 1), ((3, 2), 0, 0), ((2, 4), 2, 3), ((4, 2), 2, 0)],
)
def test_the_smallest_spaces_where_subsequences_and_edits_fail(size, lcs, edits):
    space = qd.TextSpace(*size)
    for similarity, number in ((metrics.lcs_kernel, lcs), (metrics.edit_kernel, edits)):
        kernel = similarity(space)
        assert negative_directions(kernel) == number
        assert qd.check_compatibility(qd.KernelPair(kernel)).compatible is (number == 0)


def cosine_kernel(seed, size, rank):
    x = np.random.default_rng(seed).normal(size=(size, rank))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


KERNELS = [cosine_kernel(0, 7, 3), cosine_kernel(1, 6, 9), np.eye(5), np.ones((4, 4))]


def weights(seed, size):
    return np.random.default_rng(seed).dirichlet(np.ones(size))


@pytest.mark.claim("N25.8")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [0.5, 1, 2, 3.5, np.inf])
def test_vendi_is_the_entropy_of_the_weighted_kernel(kernel, order):
    # Friedman and Dieng take the N by N matrix with entries K_ij root(q_i q_j).
    q = weights(0, len(kernel))
    values = np.linalg.eigvalsh(np.sqrt(q)[:, None] * kernel * np.sqrt(q))
    values = values[values > 1e-13]
    if order == 1:
        expected = np.exp(-values @ np.log(values))
    elif order == np.inf:
        expected = 1 / values.max()
    else:
        expected = (values**order).sum() ** (1 / (1 - order))
    assert metrics.vendi_score(q, kernel, order) == approx(expected, rel=1e-9)


def test_a_model_without_some_texts_has_finite_entropy():
    found = metrics.vendi_score(np.array([0.5, 0.5, 0, 0, 0]), np.eye(5))
    assert float(found) == approx(2, abs=1e-12)


@pytest.mark.claim("N25.10")
@pytest.mark.parametrize("kernel", KERNELS)
def test_relative_entropy_equals_scipys_logarithms(kernel):
    features = features_of(kernel)
    q, p = weights(2, len(kernel)), weights(3, len(kernel))
    model, real = (np.asarray(density_matrix(x, features)) for x in (q, p))
    expected = np.trace(model @ (logm(model) - logm(real)))
    found = float(metrics.quantum_relative_entropy(q, p, kernel))
    assert found == approx(float(expected), abs=1e-10)
    assert found >= -1e-14
    if (kernel == np.eye(len(kernel))).all():
        assert found == approx(float(qd.kl_divergence(q, p)), abs=1e-13)


# -- the Markov projection -----------------------------------------------------------

# Compiled once for each space and order.
project = jax.jit(metrics.markov_projection, static_argnums=(0, 2))


def by_dictionaries(space, q, order, alpha=0.0):
    """The maximum-likelihood Markov model, event by event."""
    size, counts = space.vocab_size, Counter()

    def events(text):
        padded = [None] * order + [*text]
        for i in range(len(text) + 1):
            context = tuple(padded[i : i + order])
            if i in space.lengths[:-1]:
                yield "end", context, i == len(text)
            if i < len(text):
                yield "token", context, text[i]

    for text, weight in zip(sentences(space), q, strict=True):
        for event in events(text):
            counts[event] += weight

    def share(kind, context, outcome):
        tokens = dict.fromkeys(range(size), 1)
        sizes = {True: 1, False: size} if kind == "end" else tokens
        smoothed = {o: counts[kind, context, o] + alpha * s for o, s in sizes.items()}
        total = sum(smoothed.values())
        if total == 0:
            smoothed, total = sizes, sum(sizes.values())
        return smoothed[outcome] / total

    return [np.prod([share(*e) for e in events(text)]) for text in sentences(space)]


@pytest.mark.claim("N13.9")
@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("size", [(3, 3), (2, 4), (1, 3), (2, (1, 2, 3)), (2, (1, 4))])
def test_projection_agrees_with_counting(size, order, alpha):
    space = qd.TextSpace(*size)
    # With zeros some contexts are never continued; counts are weights too.
    for zeros, total in ((0.0, 1), (0.6, 1), (0.3, 30)):
        q = total * random_distribution(space.num_texts, order, zeros)
        found = project(space, q, order, alpha)
        expected = by_dictionaries(space, q, order, alpha)
        assert_allclose(found, expected, rtol=50 * EPS, atol=1e-300)
        assert_allclose(found.sum(), 1, rtol=50 * EPS)
    for long in (space.max_length - 1, 40):
        found = metrics.markov_projection(space, q, long)
        assert_allclose(found, q / total, rtol=50 * EPS)


def test_derivatives_and_batches():
    space = MIXED
    batch = np.stack([random_distribution(space.num_texts, s, 0) for s in range(3)])
    assert_compiles_and_batches(lambda q: project(space, q, 1, 0.1), batch)

    def forward(q):
        return qd.cross_entropy(batch[0], project(space, q, 1))

    assert_slope(forward, batch[1], batch[2] - batch[1], rtol=1e-6)
    some = jax.grad(lambda q: project(space, q, 1)[0])(jnp.eye(space.num_texts)[0])
    assert np.isfinite(some).all()


@pytest.mark.claim("N13.13")
@pytest.mark.parametrize("seed", range(3))
def test_a_fitted_scorer_can_prefer_a_model_of_more_entropy(seed):
    space = qd.TextSpace(2, 3)
    p = oracle(space, seed, sigma=1.0)
    scorer = metrics.markov_projection(space, p, 0)
    bias = float(qd.kl_divergence(p, scorer))
    # A power so close to 1 that most of the model bias is left as entropy.
    q = qd.temper(scorer, 1 + bias / 10)
    bar, score = (float(qd.cross_entropy(x, scorer)) for x in (p, q))
    assert bar - bias < score < bar
    assert float(qd.entropy(q)) > float(qd.entropy(p))
    cifka = column_of("cifka2018", "1", "Reverse")
    assert sum(x < cifka["real data"] for x in cifka.values()) == 7
    assert len(cifka) == 15


# -- bad input -----------------------------------------------------------------------


def test_bad_input_is_refused(as_a_user):
    def vendi(kernel, order=1):
        return metrics.vendi_score([0.5, 0.5], np.array(kernel), order)

    space, p, fit = qd.TextSpace(2, 2), np.full(4, 0.25), metrics.markov_projection
    texts, others = np.zeros((3, 2), int), np.zeros((3, 1, 2), int)
    corpus, by_draws = metrics.expected_corpus_bleu, metrics.estimate_bleu
    distinct, utility = metrics.distinct_k, metrics.utility_k
    refused(
        ("k must be at least 1", distinct, Q, 0),
        ("must sum to 1", distinct, 2 * Q, 2),
        ("utilities must have 4 entries", utility, Q, [1.0], 2),
        ("patience must lie in", utility, Q, UTILITIES, 2, 1.5),
        ("successes must lie in [0, 1], got [1.5]", metrics.pass_at_k, [1.5], 2),
        ("k must be at least 1", metrics.pass_at_k, [0.5], 0),
        ("too many to compress", compression_table, qd.TextSpace(4, 3), 4),
        ("texts of one length", metrics.ngram_kernel, qd.TextSpace(2, (1, 2)), 1),
        ("square matrix", vendi, np.ones((2, 3))),
        ("symmetric", vendi, [[1, 0.5], [0.2, 1]]),
        ("finite, got nan at [0, 1]", vendi, [[1, np.nan], [np.nan, 1]]),
        ("1 on the diagonal", vendi, 2 * np.eye(2)),
        ("positive semidefinite", vendi, [[1, 2.0], [2, 1]]),
        ("order must be positive", vendi, np.eye(2), 0),
        ("q must have 4 entries, got 3", fit, space, np.full(3, 1 / 3), 1),
        ("nonnegative, got -0.1", fit, space, np.array([0.5, 0.6, -0.1, 0]), 1),
        ("all zero", fit, space, np.zeros(4), 1),
        ("order must be finite and at least 0, got -1", fit, space, p, -1),
        ("alpha must be finite and at least 0, got -0.5", fit, space, p, 1, -0.5),
        ("num_candidates must be a whole", corpus, space, p, p, 2, 2, 0),
        ("multisets of references, 1,000,000", corpus, space, p, p, 2, 500),
        ("(3, 2) and (2, 1, 2)", by_draws, texts, others[:2]),
        ("at least 2 draws, got 1", by_draws, texts[:1], others[:1]),
        ("no text may be empty", by_draws, texts - 1, others),
    )
