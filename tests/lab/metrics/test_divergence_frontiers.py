"""Divergence frontier, MAUVE and PRD: against mauve-text, prdc and the paper."""

from importlib import import_module

import jax
import numpy as np
import prdc
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import metrics
from models import draw, random_distribution
from refusals import refused

import qdtheory as qd

EPS = np.finfo(float).eps
P, Q, R = (np.array(x) for x in ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5), (0.5, 0.5, 0.0)))
# Its functions on histograms; the package exports the one on features only.
mauve_text = import_module("mauve.compute_mauve")
# Compiled once for each of two sizes.
frontier = jax.jit(metrics.divergence_frontier)
integral = jax.jit(metrics.frontier_integral)
mauve = jax.jit(metrics.mauve, static_argnames="num_points")
prd = jax.jit(metrics.precision_recall_distributions, static_argnums=2)
few_examples = settings(max_examples=20)


@st.composite
def pairs(draw):
    size, seeds = draw(st.sampled_from([3, 40])), st.integers(0, 2**16)
    zeros = st.sampled_from([0.0, 0.4])
    return tuple(random_distribution(size, draw(seeds), draw(zeros)) for _ in "qp")


# -- values of others ----------------------------------------------------------------


def area(curve):
    """What mauve-text makes of its curve."""
    x, y = curve[np.lexsort((-curve[:, 1], curve[:, 0]))].T
    return mauve_text.compute_area_under_curve(x, y)


@given(pairs())
@few_examples
def test_agree_with_mauve_text(qp):
    q, p = qp
    weights = np.linspace(1e-6, 1 - 1e-6, 25)
    curve = mauve_text.get_divergence_curve_for_multinomials(p, q, weights, 5)
    # Its mixture has the weight on p, and its points are sorted by it.
    points = np.exp(-5 * frontier(q, p, 1 - weights))
    # 1 - weights has ten digits at its least.
    np.testing.assert_allclose(points, curve[1:-1], rtol=1e-9)
    assert float(mauve(q, p)) == pytest.approx(area(curve), rel=1e-12)
    # It leaves out terms of probabilities closer than 1e-8.
    expected = mauve_text.get_fronter_integral(p, q)
    assert float(integral(q, p)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.claim("N13.24")
@pytest.mark.parametrize(("size", "least", "most"), [(500, 0.3, 0.6), (5000, 0, 0.3)])
def test_small_samples_of_a_sharper_model_are_often_ahead(size, least, most):
    rng = np.random.default_rng(size)
    p = rng.dirichlet(np.ones(80))
    q = p**1.1 / (p**1.1).sum()
    weights = np.linspace(1e-6, 1 - 1e-6, 25)
    curve = mauve_text.get_divergence_curve_for_multinomials
    ahead = []
    for _ in range(100):
        of_q, of_p, others = (rng.multinomial(size, x) / size for x in (q, p, p))
        scores = [area(curve(others, ours, weights, 5)) for ours in (of_q, of_p)]
        ahead.append(scores[0] > scores[1])
    assert least <= np.mean(ahead) <= most


def test_agrees_with_mauve_text_from_features_on():
    # Six texts as six far points: the package finds the histograms by clustering.
    rng = np.random.default_rng(4)
    texts = [rng.choice(6, 300, p=random_distribution(6, s, 0)) for s in (1, 2)]
    q_features, p_features = (10 * np.eye(6)[x] for x in texts)
    every_dimension = 1 - 1e-9
    out = mauve_text.compute_mauve(
        p_features, q_features, num_buckets=6, kmeans_explained_var=every_dimension
    )
    q, p = (np.bincount(x, minlength=6) / 300 for x in texts)
    assert sorted(zip(q, p, strict=True)) == sorted(
        zip(out.q_hist, out.p_hist, strict=True)
    )
    assert float(metrics.mauve(q, p)) == pytest.approx(out.mauve, rel=1e-12)
    expected = pytest.approx(out.frontier_integral, rel=1e-12)
    assert float(metrics.frontier_integral(q, p)) == expected


@pytest.mark.parametrize("shared", [0, 3, 8])
def test_prdc_of_sets_of_texts_is_the_ends_of_prd(shared):
    # One-hot features put all texts at one distance. With one neighbour a ball holds
    # its own text only, so prdc compares supports; q and p are uniform on theirs.
    size = 12 + 8 - shared
    one_hot = np.eye(size)
    model, real = np.arange(12), np.arange(12 - shared, size)
    found = prdc.compute_prdc(one_hot[real], one_hot[model], nearest_k=1)
    q, p = one_hot[model].mean(axis=0), one_hot[real].mean(axis=0)
    curve = metrics.precision_recall_distributions(q, p, 11)
    assert found["precision"] == found["density"]
    assert found["recall"] == found["coverage"]
    assert found["precision"] == pytest.approx(float(curve[-1, 0]), rel=20 * EPS)
    assert found["recall"] == pytest.approx(float(curve[0, 1]), rel=20 * EPS)


# -- second derivations --------------------------------------------------------------


def test_frontier_integral_to_full_precision():
    q, p = random_distribution(5, 1, 0), random_distribution(5, 2, 0)

    def integrand(share):
        (point,) = np.asarray(frontier(q, p, np.array([share])))
        return 2 * (share * point[0] + (1 - share) * point[1])

    by_quadrature, _ = scipy.integrate.quad(integrand, 0, 1, epsabs=1e-13)
    found = float(metrics.frontier_integral(q, p))
    assert found == pytest.approx(by_quadrature, abs=1e-11)


@pytest.mark.claim("N13.17")
@given(pairs())
@few_examples
def test_prd_is_the_algorithm_of_the_paper(qp):
    q, p = qp
    angles = np.linspace(1e-10, np.pi / 2 - 1e-10, 41)
    slopes = np.tan(angles)
    precision = np.minimum(slopes[:, None] * p, q).sum(axis=1)
    expected = np.stack([precision, precision / slopes], axis=1)
    found = prd(q, p, 41)
    np.testing.assert_allclose(found, prd(p, q, 41)[::-1, ::-1], rtol=1e-12, atol=1e-15)
    # Inside the angles differ by 1e-10; the ends here are the limits.
    np.testing.assert_allclose(found[1:-1], expected[1:-1], rtol=1e-8)
    np.testing.assert_allclose(found[0], [0, p[q > 0].sum()], rtol=1e-14)
    np.testing.assert_allclose(found[-1], [q[p > 0].sum(), 0], rtol=1e-14)
    closeness = 1 - float(qd.divergences.total_variation(q, p))
    np.testing.assert_allclose(found[20], closeness, rtol=1e-13)


@given(pairs())
@few_examples
def test_f_scores_are_maxima_of_weighted_harmonic_means(qp):
    points = prd(*qp, 51)
    inner = np.asarray(points)[1:-1]
    if not inner.any():
        assert metrics.prd_f_scores(points).tolist() == [0, 0]
        return
    for beta, found in zip((8, 1 / 8), metrics.prd_f_scores(points), strict=True):
        weight = np.array([1, beta**2]) / (1 + beta**2)
        assert found == pytest.approx((1 / (1 / inner @ weight)).max(), rel=1e-13)


# -- edges and inequalities ----------------------------------------------------------


@pytest.mark.parametrize("p", [np.ones(1), np.eye(3)[1], P], ids=str)
def test_equal_distributions(p):
    assert not metrics.divergence_frontier(p, p, np.linspace(0, 1, 5)).any()


def test_disjoint_supports():
    q, p = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75])
    points = metrics.divergence_frontier(q, p, np.array([0, 0.2, 1]))
    np.testing.assert_allclose(points[1], -np.log([0.2, 0.8]), rtol=4 * EPS)
    assert points[0].tolist() == [np.inf, 0]
    assert points[2].tolist() == [0, np.inf]
    # The curve is x = share^5, y = (1 - share)^5, of area 5 B(5, 6) = 1 / 252.
    coarse, fine = (float(mauve(q, p, num_points=n)) for n in (25, 2001))
    assert fine == pytest.approx(1 / 252, rel=1e-4)
    # x -> (1 - x^(1/5))^5 is convex: chords lie above it.
    assert fine < coarse
    assert not metrics.precision_recall_distributions(q, p).any()


def test_bad_input_is_refused(as_a_user):
    m = metrics
    refused(
        ("in [0, 1]", m.divergence_frontier, P, Q, np.array([1.1])),
        ("scaling must be positive and finite, got 0", m.mauve, P, Q, 0),
        ("num_points must be finite and at least 2", m.mauve, P, Q, 5.0, 1),
        ("num_angles must be", m.precision_recall_distributions, P, Q, 1),
        ("3 entries, got 2", m.frontier_integral, P, np.ones(2) / 2),
    )


@pytest.mark.claim("N13.18")
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_omitting_and_inventing_look_alike(share):
    a, b, c = (draw(seed, 4, 2.0) for seed in (1, 2, 3))
    real = np.concatenate([share * a, (1 - share) * b, 0 * c])
    omits = np.concatenate([0 * a, b, 0 * c])
    invents = np.concatenate([(1 - share) * real[:8], share * c])
    for metric in (
        metrics.mauve,
        metrics.frontier_integral,
        qd.jensen_shannon_divergence,
        qd.divergences.bhattacharyya_distance,
    ):
        values = [float(metric(q, real)) for q in (omits, invents)]
        assert values[0] == pytest.approx(values[1], rel=1e-12)
    lambdas = np.linspace(0.1, 0.9, 9)
    points = [metrics.divergence_frontier(q, real, lambdas) for q in (omits, invents)]
    np.testing.assert_allclose(points[0], points[1][::-1, ::-1], rtol=1e-12)
    curves = [
        metrics.precision_recall_distributions(q, real, 21) for q in (omits, invents)
    ]
    np.testing.assert_allclose(curves[0], curves[1][::-1, ::-1], rtol=1e-12, atol=1e-14)
