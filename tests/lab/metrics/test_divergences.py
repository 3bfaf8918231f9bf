"""MAUVE, PRD and Frechet distance: against packages, SciPy and the formulas."""

from importlib import import_module

import jax
import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import corpora, metrics
from lab.metrics.frechet import gaussian_distance
from models import draw, random_distribution
from numpy.testing import assert_allclose
from refusals import refused
from scipy.linalg import sqrtm
from scripts import published

import qdtheory as qd

approx = pytest.approx

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
# Its functions on histograms; the package exports the one on features only.
mauve_text = import_module("mauve.compute_mauve")
# Compiled once for each of two sizes.
frontier = jax.jit(metrics.divergence_frontier)
integral = jax.jit(metrics.frontier_integral)
mauve = jax.jit(metrics.mauve, static_argnames="num_points")
prd = jax.jit(metrics.precision_recall_distributions, static_argnums=2)
few_examples = settings(max_examples=15)
SEEDS = st.integers(0, 2**16)


@st.composite
def pairs(draw):
    size, zeros = draw(st.sampled_from([3, 40])), st.sampled_from([0.0, 0.4])
    return tuple(random_distribution(size, draw(SEEDS), draw(zeros)) for _ in "qp")


# -- MAUVE and PRD -------------------------------------------------------------------


def area(curve):
    """What mauve-text makes of its curve."""
    x, y = curve[np.lexsort((-curve[:, 1], curve[:, 0]))].T
    return mauve_text.compute_area_under_curve(x, y)


WEIGHTS = np.linspace(1e-6, 1 - 1e-6, 25)
mauves_curve = mauve_text.get_divergence_curve_for_multinomials


@given(pairs())
@few_examples
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
@few_examples
def test_prd_is_the_algorithm_of_the_paper(qp):
    q, p = qp
    slopes = np.tan(np.linspace(1e-10, np.pi / 2 - 1e-10, 41))
    precision = np.minimum(slopes[:, None] * p, q).sum(axis=1)
    expected = np.stack([precision, precision / slopes], axis=1)
    found = np.asarray(prd(q, p, 41))
    assert_allclose(found, prd(p, q, 41)[::-1, ::-1], rtol=1e-12, atol=1e-15)
    # Inside the angles differ by 1e-10; the ends here are the limits.
    inner = found[1:-1]
    assert_allclose(inner, expected[1:-1], rtol=1e-8)
    assert_allclose(found[0], [0, p[q > 0].sum()], rtol=1e-14)
    assert_allclose(found[-1], [q[p > 0].sum(), 0], rtol=1e-14)
    closeness = 1 - float(qd.divergences.total_variation(q, p))
    assert_allclose(found[20], closeness, rtol=1e-13)
    # F scores are maxima of weighted harmonic means.
    for beta, score in zip((8, 1 / 8), metrics.prd_f_scores(found), strict=True):
        weight = np.array([1, beta**2]) / (1 + beta**2)
        best = (1 / (1 / inner @ weight)).max() if inner.any() else 0
        assert float(score) == approx(best, rel=1e-13)


@pytest.mark.parametrize("p", [np.ones(1), np.eye(3)[1], P], ids=str)
def test_equal_distributions(p):
    assert not metrics.divergence_frontier(p, p, np.linspace(0, 1, 5)).any()


def test_frontiers_by_quadrature_and_of_disjoint_supports():
    def integrand(share):
        (point,) = np.asarray(frontier(Q, P, np.array([share])))
        return 2 * (share * point[0] + (1 - share) * point[1])

    expected = scipy.integrate.quad(integrand, 0, 1, epsabs=1e-13)[0]
    assert float(integral(Q, P)) == approx(expected, abs=1e-11)
    q, p = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75])
    points = metrics.divergence_frontier(q, p, np.array([0, 0.2, 1]))
    assert_allclose(points[1], -np.log([0.2, 0.8]), rtol=1e-15)
    assert points[0].tolist() == [np.inf, 0]
    assert points[2].tolist() == [0, np.inf]
    # The curve is x = share^5, y = (1 - share)^5, of area 5 B(5, 6) = 1 / 252.
    coarse, fine = (float(mauve(q, p, num_points=n)) for n in (25, 2001))
    assert fine == approx(1 / 252, rel=1e-4)
    assert fine < coarse  # x -> (1 - x^(1/5))^5 is convex: chords lie above it
    assert not metrics.precision_recall_distributions(q, p).any()


@pytest.mark.claim("N13.18")
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_omitting_and_inventing_look_alike(share):
    a, b, c = (draw(seed, 4, 2.0) for seed in (1, 2, 3))
    real = np.concatenate([share * a, (1 - share) * b, 0 * c])
    omits = np.concatenate([0 * a, b, 0 * c])
    invents = np.concatenate([(1 - share) * real[:8], share * c])
    distance = qd.divergences.bhattacharyya_distance
    symmetric = metrics.mauve, metrics.frontier_integral, distance
    for metric in (*symmetric, qd.jensen_shannon_divergence):
        values = [float(metric(q, real)) for q in (omits, invents)]
        assert values[0] == approx(values[1], rel=1e-12)
    for curve, at in (
        (metrics.divergence_frontier, np.linspace(0.1, 0.9, 9)),
        (metrics.precision_recall_distributions, 21),
    ):
        one, other = (curve(q, real, at) for q in (omits, invents))
        assert_allclose(one, other[::-1, ::-1], rtol=1e-12, atol=1e-14)


# -- Frechet's distance --------------------------------------------------------------


def random_world(seed, texts, features):
    """Two distributions with some zeros, and a feature map."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(2, texts)) * (rng.random((2, texts)) < 0.8)
    weights[:, 0] += 0.1
    return *(w / w.sum() for w in weights), rng.normal(size=(texts, features))


def by_matrix_root(m1, c1, m2, c2):
    """Equation 2 as it is printed, squared."""
    return np.sum((m1 - m2) ** 2) + np.trace(c1 + c2 - 2 * sqrtm(c1 @ c2)).real


@few_examples
@given(seed=SEEDS)
def test_frechet_equals_the_printed_formula_where_covariances_are_regular(seed):
    q, p, features = random_world(seed, texts=40, features=4)
    a, b = features[:25] + 1, features[25:]
    laws, samples = (q, p, features), (a, b)
    by_laws = [(x @ features, np.cov(features.T, aweights=x, ddof=0)) for x in (q, p)]
    by_samples = [(x.mean(axis=0), np.cov(x.T)) for x in (a, b)]
    for distance, given_, moments in (
        (metrics.frechet_distance, laws, by_laws),
        (corpora.frechet_distance, samples, by_samples),
    ):
        found = float(distance(*given_, squared=True))
        # Conditions below 1e3 cost sqrtm a few digits of 16.
        assert found == approx(by_matrix_root(*moments[0], *moments[1]), rel=1e-9)
        assert float(distance(*given_)) ** 2 == approx(found, rel=1e-14)


@few_examples
@given(seed=SEEDS, rank=st.sampled_from([1, 3, 8]))
def test_commuting_covariances_differ_as_their_roots(seed, rank):
    rng, zero = np.random.default_rng(seed), np.zeros(8)
    axes = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    # Standard deviations 0 too: the covariances are singular for ranks 1 and 3.
    a, b = (np.where(np.arange(8) < rank, rng.exponential(size=8), 0) for _ in "ab")
    one, other = ((axes.T * x**2) @ axes for x in (a, b))
    found = gaussian_distance(zero, one, zero, other)
    assert found == approx(np.linalg.norm(a - b), abs=1e-12)


@few_examples
@given(seed=SEEDS, features=st.sampled_from([2, 30]))
def test_frechet_loses_no_digits_near_zero_and_with_few_texts(seed, features):
    q, p, f = random_world(seed, texts=20, features=features)
    rng, distance = np.random.default_rng(seed), metrics.frechet_distance
    assert float(distance(q, q, f)) < 1e-13
    # To first order in the step the distance is linear in it: no digits are lost.
    laws = ((1 - t) * q + t * p for t in (1e-6, 1e-8))
    near, nearer = (float(distance(x, q, f[:, :2])) for x in laws)
    assert near / nearer == approx(100, rel=1e-3)
    # Fewer texts than features, rotated into the plane that holds all texts.
    plane = np.linalg.qr(rng.normal(size=(40, 5)))[0]
    a, b = rng.normal(size=(4, 5)), rng.normal(size=(7, 5))
    expected = corpora.frechet_distance(a, b)
    found = corpora.frechet_distance(a @ plane.T, b @ plane.T)
    assert found == approx(expected, rel=1e-12)


@pytest.mark.claim("E13.2")
def test_the_square_of_the_frechet_distance_is_no_distance():
    # Points on a line: the distance is that of the points. Counts may be features.
    x, points = np.arange(3)[:, None], np.eye(3)
    distance, ends = metrics.frechet_distance, ((0, 1), (1, 2), (0, 2))
    squares = [distance(points[i], points[j], x, squared=True) for i, j in ends]
    assert_allclose(squares, [1, 1, 4], rtol=1e-14)
    root = published("montahaei2019", "1", "MLE", "FBD") ** 0.5
    assert root == approx(1.404, abs=5e-4)


def test_bad_input_is_refused(as_a_user):
    m, half, two = metrics, np.full(2, 0.5), np.ones((2, 1))
    distance, of_samples, ones = m.frechet_distance, corpora.frechet_distance, np.ones
    lone, matrix = "_features: a covariance needs two texts", " must be a matrix with"
    refused(
        ("in [0, 1]", m.divergence_frontier, P, Q, np.array([1.1])),
        ("scaling must be positive and finite, got 0", m.mauve, P, Q, 0),
        ("num_points must be finite and at least 2", m.mauve, P, Q, 5.0, 1),
        ("num_angles must be", m.precision_recall_distributions, P, Q, 1),
        ("3 entries, got 2", m.frontier_integral, P, half),
        ("of the 2 texts, got shape (3, 2)", distance, half, half, ones((3, 2))),
        (f"features{matrix}", distance, half, half, ones(2)),
        ("finite, got nan at [1, 0]", distance, half, half, [[1.0], [np.nan]]),
        ("q must sum to 1", distance, 2 * half, half, two),
        ("p must have 2 entries, got 3", distance, half, P, two),
        ("as many features of candidates as of", of_samples, two, ones((5, 4))),
        (f"candidate{lone}", of_samples, two[:1], two),
        (f"reference{lone}", of_samples, two, two[:1]),
        (f"candidate_features{matrix}", of_samples, ones(5), two),
        ("finite, got inf", of_samples, two, two * np.inf),
    )
    refused(
        ("be real numbers, got dtype <U1", distance, half, half, [["a"], ["b"]]),
        error=TypeError,
    )
