"""Metrics on spaces: against all draws, recursions, packages and SciPy."""

from collections import Counter
from importlib import import_module
from itertools import product
from math import ceil, log2

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import corpora, metrics
from lab.metrics.since_2020 import compression_table
from models import draw, oracle, random_distribution, sentences
from numpy.testing import assert_allclose
from referees.enumerated_batches import batches
from referees.nltk_bleu import nltk_scores
from refusals import refused
from scipy.linalg import logm, sqrtm
from scipy.stats import t as student
from scripts import column_of, published

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


@pytest.mark.claim("N25.19")
@pytest.mark.parametrize("num_texts", [1, 3])
def test_expected_compression_is_the_mean_over_all_samples(num_texts):
    space, q = qd.TextSpace(3, 2), np.random.default_rng(0).dirichlet(np.ones(9))

    def ratio(sample):
        tokens = space.tokens[sample].ravel().tolist()
        number = len(cut(tokens))
        bits = sum(ceil(log2(j)) + ceil(log2(3)) for j in range(1, number + 1))
        return len(tokens) * log2(3) / bits

    found = metrics.expected_compression(space, q, num_texts)
    assert found == approx(mean_over_draws(q, num_texts, ratio), abs=1e-13)


# -- BLEU from draws, and pooled -----------------------------------------------------


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_pooled_bleu_of_one_candidate_is_expected_bleu(smoothing):
    q, p = (random_distribution(14, seed, 0.3) for seed in (6, 7))
    for size in ((1, 1), (4, 2)):
        one = metrics.expected_corpus_bleu(MIXED, q, p, *size, 1, smoothing)
        exact = qd.expected_bleu(MIXED, q, p, *size, smoothing)
        assert_allclose(one, exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_monte_carlo_is_the_mean_of_nltks_scores(smoothing):
    rng, words = np.random.default_rng(8), lambda text: text[text >= 0].tolist()
    texts, others = rng.integers(3, size=(60, 8)), rng.integers(3, size=(60, 3, 7))
    for tokens in (texts, others):
        sizes = rng.integers(1, tokens.shape[-1] + 1, size=(*tokens.shape[:-1], 1))
        tokens[np.arange(tokens.shape[-1]) >= sizes] = -1
    references = [[*map(words, each)] for each in others]
    scores = nltk_scores(references, [*map(words, texts)], 3, smoothing)
    mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / 60**0.5
    found = metrics.estimate_bleu(texts, others, 3, smoothing)
    ends = student.interval(0.95, 59, mean, error)
    told = found.value, found.standard_error, found.low, found.high
    assert_allclose(told, (mean, error, *ends), atol=1e-13)


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
    """By the eigenvalues of twelve times the kernel, on the basis e_i - e_N."""
    last = 12 * kernel[-1]  # whole numbers
    rows = 12 * kernel[:-1, :-1] - last[:-1] - 12 * kernel[:-1, -1:] + last[-1]
    return np.count_nonzero(np.linalg.eigvalsh(rows) < -1e-9)


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


@pytest.mark.claim("N25.8")
@pytest.mark.parametrize("kernel", KERNELS)
def test_vendi_is_the_entropy_of_the_weighted_kernel(kernel):
    # Friedman and Dieng take the N by N matrix with entries K_ij root(q_i q_j).
    q = draw(0, len(kernel))
    values = np.linalg.eigvalsh(np.sqrt(q)[:, None] * kernel * np.sqrt(q))
    values = values[values > 1e-13]
    expected = {x: (values**x).sum() ** (1 / (1 - x)) for x in (0.5, 2, 3.5)}
    expected |= {1: np.exp(-values @ np.log(values)), np.inf: 1 / values.max()}
    for order, value in expected.items():
        assert metrics.vendi_score(q, kernel, order) == approx(value, rel=1e-9)


@pytest.mark.claim("N25.10")
@pytest.mark.parametrize("kernel", KERNELS)
def test_relative_entropy_equals_scipys_logarithms(kernel):
    features = features_of(kernel)
    q, p = draw(2, len(kernel)), draw(3, len(kernel))
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
    sizes = {"end": {True: 1, False: size}, "token": dict.fromkeys(range(size), 1)}

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
        some = sizes[kind]
        found = {o: counts[kind, context, o] + alpha * some[o] for o in some}
        found = found if sum(found.values()) else some
        return found[outcome] / sum(found.values())

    return [np.prod([share(*e) for e in events(text)]) for text in sentences(space)]


@pytest.mark.claim("N13.9")
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("size", [(3, 3), (1, 3), (2, (1, 2, 3)), (2, (1, 4))])
def test_projection_agrees_with_counting(size, order):
    space = qd.TextSpace(*size)
    # With zeros some contexts are never continued; counts are weights too.
    for zeros, total, alpha in ((0.0, 1, 0.3), (0.6, 1, 0.0), (0.3, 30, 0.3)):
        q = total * random_distribution(space.num_texts, order, zeros)
        found = project(space, q, order, alpha)
        expected = by_dictionaries(space, q, order, alpha)
        assert_allclose(found, expected, rtol=50 * EPS, atol=1e-300)
    for long in (space.max_length - 1, 40):
        found = metrics.markov_projection(space, q, long)
        assert_allclose(found, q / total, rtol=50 * EPS)


def test_a_projection_has_derivatives_where_texts_are_lacking():
    some = jax.grad(lambda q: project(MIXED, q, 1)[0])(jnp.eye(14)[0])
    assert np.isfinite(some).all()


@pytest.mark.claim("N13.13")
@pytest.mark.parametrize("seed", range(2))
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
    assert (sum(x < cifka["real data"] for x in cifka.values()), len(cifka)) == (7, 15)


# Its functions on histograms; the package exports the one on features only.
mauve_text = import_module("mauve.compute_mauve")
# Compiled once for each of two sizes.
frontier = jax.jit(metrics.divergence_frontier)
integral = jax.jit(metrics.frontier_integral)
mauve = jax.jit(metrics.mauve, static_argnames="num_points")
prd = jax.jit(metrics.precision_recall_distributions, static_argnums=2)


@st.composite
def pairs(draw):
    size, zeros = draw(st.sampled_from([3, 40])), st.sampled_from([0.0, 0.4])
    seeds = st.integers(0, 2**16)
    return tuple(random_distribution(size, draw(seeds), draw(zeros)) for _ in "qp")


# -- MAUVE and PRD -------------------------------------------------------------------


def area(curve):
    """What mauve-text makes of its curve."""
    x, y = curve[np.lexsort((-curve[:, 1], curve[:, 0]))].T
    return mauve_text.compute_area_under_curve(x, y)


WEIGHTS = np.linspace(1e-6, 1 - 1e-6, 25)
mauves_curve = mauve_text.get_divergence_curve_for_multinomials


@given(pairs())
@settings(max_examples=15)
def test_agree_with_mauve_text(qp):
    q, p = qp
    curve = mauves_curve(p, q, WEIGHTS, 5)
    # Its mixture has the weight on p, and its points are sorted by it.
    points = np.exp(-5 * frontier(q, p, 1 - WEIGHTS))
    # 1 - weights has ten digits at its least.
    assert_allclose(points, curve[1:-1], rtol=1e-9)
    assert float(mauve(q, p)) == approx(area(curve), rel=1e-12)
    # It leaves out terms of probabilities closer than 1e-8.
    expected = mauve_text.get_fronter_integral(p, q)
    assert float(integral(q, p)) == approx(expected, abs=1e-12)


@pytest.mark.claim("N13.24")
@pytest.mark.parametrize(("size", "least", "most"), [(500, 0.3, 0.6), (5000, 0, 0.3)])
def test_small_samples_of_a_sharper_model_are_often_ahead(size, least, most):
    rng, ahead = np.random.default_rng(size), []
    p = rng.dirichlet(np.ones(80))
    q = p**1.1 / (p**1.1).sum()
    for _ in range(100):
        of_q, of_p, others = (rng.multinomial(size, x) / size for x in (q, p, p))
        scores = [area(mauves_curve(others, x, WEIGHTS, 5)) for x in (of_q, of_p)]
        ahead.append(scores[0] > scores[1])
    assert least <= np.mean(ahead) <= most


@pytest.mark.claim("N13.17")
@given(pairs())
@settings(max_examples=15)
def test_prd_is_the_algorithm_of_the_paper(qp):
    q, p = qp
    slopes = np.tan(np.linspace(1e-10, np.pi / 2 - 1e-10, 41))
    precision = np.minimum(slopes[:, None] * p, q).sum(axis=1)
    expected = np.stack([precision, precision / slopes], axis=1)
    found = np.asarray(prd(q, p, 41))
    # Inside the angles differ by 1e-10; the ends here are the limits.
    inner = found[1:-1]
    assert_allclose(inner, expected[1:-1], rtol=1e-8)
    ends = [0, p[q > 0].sum()], [q[p > 0].sum(), 0]
    assert_allclose(found[[0, -1]], ends, rtol=1e-14)
    closeness = 1 - float(qd.divergences.total_variation(q, p))
    assert_allclose(found[20], closeness, rtol=1e-13)
    # F scores are maxima of weighted harmonic means.
    for beta, score in zip((8, 1 / 8), metrics.prd_f_scores(found), strict=True):
        weight = np.array([1, beta**2]) / (1 + beta**2)
        best = (1 / (1 / inner @ weight)).max() if inner.any() else 0
        assert float(score) == approx(best, rel=1e-13)


def test_frontiers_of_disjoint_supports():
    q, p = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75])
    points = metrics.divergence_frontier(q, p, np.array([0, 0.2, 1]))
    assert_allclose(points[1], -np.log([0.2, 0.8]), rtol=1e-15)
    assert points[::2].tolist() == [[np.inf, 0], [0, np.inf]]
    assert not metrics.precision_recall_distributions(q, p).any()


@pytest.mark.claim("N13.18")
@pytest.mark.parametrize("share", [0.05, 0.9])
def test_omitting_and_inventing_look_alike(share):
    a, b, c = (draw(seed, 4, 2.0) for seed in (1, 2, 3))
    real = np.concatenate([share * a, (1 - share) * b, 0 * c])
    omits = np.concatenate([0 * a, b, 0 * c])
    invents = np.concatenate([(1 - share) * real[:8], share * c])
    distances = qd.divergences.bhattacharyya_distance, qd.jensen_shannon_divergence
    for metric in (metrics.mauve, metrics.frontier_integral, *distances):
        one, other = (float(metric(q, real)) for q in (omits, invents))
        assert one == approx(other, rel=1e-12)
    for curve, at in ((frontier, WEIGHTS[1:-1]), (prd, 21)):
        one, other = (curve(q, real, at) for q in (omits, invents))
        assert_allclose(one, other[::-1, ::-1], rtol=1e-12, atol=1e-14)


# -- Frechet's distance --------------------------------------------------------------


def random_world(seed, texts, features):
    """Two distributions with some zeros, and a feature map."""
    q, p = (random_distribution(texts, x, 0.2) for x in (seed, seed + 100))
    return q, p, np.random.default_rng(seed).normal(size=(texts, features))


@pytest.mark.parametrize("seed", range(5))
def test_frechet_equals_the_printed_formula_where_covariances_are_regular(seed):
    q, p, features = random_world(seed, texts=40, features=4)
    a, b = features[:25] + 1, features[25:]
    by_laws = [(x @ features, np.cov(features.T, aweights=x, ddof=0)) for x in (q, p)]
    by_samples = [(x.mean(axis=0), np.cov(x.T)) for x in (a, b)]
    for distance, given_, ((m1, c1), (m2, c2)) in (
        (metrics.frechet_distance, (q, p, features), by_laws),
        (corpora.frechet_distance, (a, b), by_samples),
    ):
        found = float(distance(*given_, squared=True))
        # Equation 2, squared; conditions below 1e3 cost sqrtm a few digits of 16.
        spread = np.trace(c1 + c2 - 2 * sqrtm(c1 @ c2)).real
        assert found == approx(np.sum((m1 - m2) ** 2) + spread, rel=1e-9)
        assert float(distance(*given_)) ** 2 == approx(found, rel=1e-14)


def test_frechet_loses_no_digits_near_zero():
    q, p, f = random_world(0, texts=20, features=30)
    distance = metrics.frechet_distance
    assert float(distance(q, q, f)) < 1e-13
    # To first order in the step the distance is linear in it: no digits are lost.
    near, nearer = (distance((1 - t) * q + t * p, q, f[:, :2]) for t in (1e-6, 1e-8))
    assert float(near / nearer) == approx(100, rel=1e-3)


@pytest.mark.claim("E13.2")
def test_the_square_of_the_frechet_distance_is_no_distance():
    # Points on a line: the distance is that of the points. Counts may be features.
    x, points = np.arange(3)[:, None], np.eye(3)
    distance, ends = metrics.frechet_distance, ((0, 1), (1, 2), (0, 2))
    squares = [distance(points[i], points[j], x, squared=True) for i, j in ends]
    assert_allclose(squares, [1, 1, 4], rtol=1e-14)
    root = published("montahaei2019", "1", "MLE", "FBD") ** 0.5
    assert root == approx(1.404, abs=5e-4)


def test_metrics_refuse_bad_input(as_a_user):
    def vendi(kernel, order=1):
        return metrics.vendi_score([0.5, 0.5], np.array(kernel), order)

    space, p, fit = qd.TextSpace(2, 2), np.full(4, 0.25), metrics.markov_projection
    texts, others = np.zeros((3, 2), int), np.zeros((3, 1, 2), int)
    corpus, by_draws = metrics.expected_corpus_bleu, metrics.estimate_bleu
    half, two, ones = np.full(2, 0.5), np.ones((2, 1)), np.ones
    distance, of_samples = metrics.frechet_distance, corpora.frechet_distance
    text = "be real numbers, got dtype <U1"
    refused(
        ("utilities must have 4 entries", metrics.utility_k, Q, [1.0], 2),
        ("too many to compress", compression_table, qd.TextSpace(4, 3), 4),
        ("texts of one length", metrics.ngram_kernel, qd.TextSpace(2, (1, 2)), 1),
        *(("1 on", vendi, 2 * np.eye(2)), ("order", vendi, np.eye(2), 0)),
        ("positive semidefinite", vendi, [[1, 2.0], [2, 1]]),
        ("all zero", fit, space, np.zeros(4), 1),
        ("multisets of references, 1,000,000", corpus, space, p, p, 2, 500),
        ("(3, 2) and (2, 1, 2)", by_draws, texts, others[:2]),
        ("at least 2 draws, got 1", by_draws, texts[:1], others[:1]),
        ("no text may be empty", by_draws, texts - 1, others),
        ("of the 2 texts, got shape (3, 2)", distance, half, half, ones((3, 2))),
        ("features must be a matrix", of_samples, ones(5), two),
        ("as many features of candidates as of", of_samples, two, ones((5, 4))),
        ("reference_features: a covariance needs", of_samples, two, two[:1]),
    )
    refused((text, distance, half, half, [["a"], ["b"]]), error=TypeError)
