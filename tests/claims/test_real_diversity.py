"""Diversity against real text: hubs, three kinds, averages, EAD and fair scores."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import numpy as np
import prdc
import pytest
from lab import corpora, metrics
from scipy.optimize import minimize
from scipy.special import rel_entr
from scripts import script as load

import qdtheory as qd


def by_package(references, candidates, k):
    """Density and coverage of the package prdc."""
    found = prdc.compute_prdc(references, candidates, nearest_k=k)
    return found["density"], found["coverage"], found["recall"]


# --- hubs ---------------------------------------------------------------------------


@pytest.mark.claim("N25.25")
@pytest.mark.parametrize(("n", "k", "dimension"), [(60, 1, 2), (60, 5, 8), (99, 3, 30)])
def test_density_coverage_and_recall_are_those_of_prdc(n, k, dimension):
    script = load("make_hubs")
    real, model = np.random.default_rng([n, k]).normal(size=(2, n, dimension))
    inside = script.squared_distances(real, model) < script.squared_radii(real, (k,))
    ours = script.density_and_coverage(inside.sum(axis=1).astype(float), n, k, n)
    ours.append(script.recall(real, model, k))
    assert ours == pytest.approx(by_package(real, model, k), abs=1e-9)


@pytest.mark.claim("N25.26")
@pytest.mark.parametrize(("n", "m", "k"), [(4, 4, 1), (5, 3, 2), (3, 5, 1)])
def test_real_against_real_over_all_splits_is_a_fraction(n, m, k):
    points = np.random.default_rng(26).normal(size=(n + m, 3))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    held, covered, splits = 0, 0, comb(n + m, n)
    for real in combinations(range(n + m), n):
        model = [i for i in range(n + m) if i not in real]
        radii = np.sort(apart[np.ix_(real, real)])[:, k]  # each is its own nearest
        inside = (apart[np.ix_(real, model)] < radii[:, None]).sum(axis=1)
        held, covered = held + inside.sum(), covered + (inside > 0).sum()
    assert held == k * m * splits
    coverage = 1 - Fraction(comb(n - 1, k), comb(n + m - 1, k))
    assert Fraction(int(covered), n * splits) == coverage


# --- three kinds --------------------------------------------------------------------


@pytest.mark.claim("N25.28")
def test_precision_and_recall_are_bounded_and_the_frontier_is_strict():
    """Precision at slope s is min(s, 1) at most; MAUVE by SciPy's entropies."""
    rng, shares = np.random.default_rng(28), np.linspace(1e-6, 1 - 1e-6, 25)[:, None]

    def area(q, p):
        mixture = shares * q + (1 - shares) * p
        curve = [np.exp(-5 * rel_entr(x, mixture).sum(axis=1)) for x in (q, p)]
        x, y = ([a, *line, 1 - a] for a, line in zip((0, 1), curve))
        return np.trapezoid(y, x)

    for size in np.repeat((3, 10), 10):
        p, q = rng.dirichlet(np.ones(size), 2)
        q[rng.integers(size)] = 0
        q /= q.sum()
        assert np.minimum(0.3 * p, q).sum() <= 0.3 + 1e-12
        assert area(p, p) == pytest.approx(1, abs=1e-6)
        mauve = pytest.approx(float(metrics.mauve(q, p)), abs=1e-5)
        assert 1 - 1e-6 > area(q, p) == mauve


@pytest.mark.claim("N25.29")
def test_a_calibrated_precision_lets_the_number_of_texts_grow_as_a_fraction():
    p = [Fraction(x, 12) for x in (7, 4, 1)]
    q = [(1 - 3 * p[2]) * x + p[2] for x in p]
    assert sum(min(2 * a, b) for a, b in zip(p, q)) == 1
    assert sum(x**2 for x in q) < sum(x**2 for x in p)


# --- backward BLEU ------------------------------------------------------------------


def slope_along(value, p, move, step=1e-5):
    return (value(p + step * move) - value(p - step * move)) / 2 / step


def found_among(q, p, m):
    """The chance that a token of p is among m of q, by listing."""
    return sum(
        np.prod([q[i] for i in drawn]) * sum(p[i] for i in set(drawn))
        for drawn in product(range(len(q)), repeat=m)
    )


@pytest.mark.claim("N25.31")
@pytest.mark.parametrize("m", [1, 2, 5])
def test_the_slope_of_backward_bleu_by_listing_all_draws(m):
    p = np.array([0.5, 0.3, 0.15, 0.05])
    slope = m * p * (1 - p) ** (m - 1)
    for move in np.array([[1, -1, 0, 0], [0, 1, -1, 0], [1, 0, 1, -2]]):
        found = slope_along(lambda q: found_among(q, p, m), p, move)
        assert found == pytest.approx(slope @ move, abs=1e-8)


@pytest.mark.claim("N25.32")
@pytest.mark.parametrize("m", [2, 5, 9])
def test_a_sharper_model_gains_backward_where_no_token_is_above_one_over_m(m):
    rng = np.random.default_rng(m)
    for _ in range(20):
        weights = rng.random(4 * m) + 0.5
        p = weights / weights.sum()
        assert p.max() < 1 / m
        step = 1e-5 * p * (np.log(p) - p @ np.log(p))
        assert p @ ((1 - p) ** m - (1 - p - step) ** m) > 0
        assert step @ (1 - (1 - p) ** 3) > 0


@pytest.mark.claim("N25.34")
def test_slopes_of_density_and_coverage_by_listing_all_draws():
    rng, k, m = np.random.default_rng(34), 2, 3
    inside, p = rng.random((4, 5)) < 0.5, rng.dirichlet(np.ones(5))
    inside[0] = True
    drawn = np.array([*product(range(5), repeat=m)])
    held = inside[:, drawn].sum(axis=2)
    both = np.array([held.sum(axis=0) / (k * m), (held > 0).mean(axis=0)])
    u, v = inside.sum(axis=0) / k, m * ((1 - inside @ p) ** (m - 1) @ inside) / 4
    for move in (np.eye(5) - p)[:3]:
        slope = slope_along(lambda q: both @ q[drawn].prod(axis=1), p, move)
        assert slope == pytest.approx([u @ move, v @ move], abs=1e-8)


# --- averages -----------------------------------------------------------------------


def maximised(objective, size):
    """The best distribution, by sequential quadratic programming."""
    settings = {"bounds": [(0, 1)] * size, "options": {"ftol": 1e-14, "maxiter": 1000}}
    settings |= {"constraints": {"type": "eq", "fun": lambda q: q.sum() - 1}}
    return minimize(lambda q: -objective(q), np.full(size, 1 / size), **settings).x


@pytest.mark.claim("N25.35")
@pytest.mark.parametrize("alpha", [0.5, 2 / 3, 0.8])
def test_ibleu_is_greatest_at_p_for_two_thirds_only(alpha):
    p = np.array([0.4, 0.3, 0.2, 0.1])
    q = maximised(lambda q: alpha * q @ p - (1 - alpha) * q @ q, 4)
    assert (abs(q - p).max() < 1e-5) == (alpha == 2 / 3)
    found = qd.rewards.implied_truths(p, "-x**2", [(1 - alpha) / alpha]).p[0]
    assert np.asarray(found) == pytest.approx(q, abs=1e-5)


@pytest.mark.claim("N25.36")
@pytest.mark.parametrize(("m", "moved", "left"), [(2, 0.56, 3), (9, 0.19, 8)])
def test_the_best_harmonic_mean_by_quadratic_programming(m, moved, left):
    p = np.asarray(qd.oracle(qd.TextSpace(vocab_size=4, lengths=3), seed=0))

    def both(q):
        return (1 - (1 - p) ** m) @ q, p @ (1 - (1 - q) ** m)

    q = maximised(lambda q: 2 * np.prod(both(q)) / sum(both(q)), 64)
    assert abs(q - p).sum() / 2 == pytest.approx(moved, abs=0.006)
    assert (q > 1e-3).sum() <= left
    assert np.greater(both(q), both(p)).all()


# --- Distinct -----------------------------------------------------------------------


@pytest.mark.claim("N25.37")
def test_ead_of_two_tokens_is_one_for_the_uniform_law_only():
    def ead(p, size):
        drawn = product(range(4), repeat=size)
        total = sum(prod(p[i] for i in x) * len(set(x)) for x in drawn)
        return total / (4 * (1 - Fraction(3, 4) ** size))

    zipf = [Fraction(12, 25 * i) for i in (1, 2, 3, 4)]
    assert [ead([Fraction(1, 4)] * 4, c) for c in (1, 2, 3, 5)] == [1] * 4
    assert ead(zipf, 1) == 1 > ead(zipf, 2) > ead(zipf, 3) > ead(zipf, 5)
    # Words of Zipf's law, 10,000 of them: the chance that each is among the draws.
    p = 1 / np.arange(1, 10_001)
    for size, expected in ((100, 0.75), (1000, 0.54), (10_000, 0.45)):
        different = (1 - (1 - p / p.sum()) ** size).sum()
        found = different / (10_000 * (1 - (1 - 1e-4) ** size))
        assert found == pytest.approx(expected, abs=0.012)


@pytest.mark.claim("N25.38")
@pytest.mark.parametrize("size", [200, 1000, 10_000])
def test_rarefied_words_do_not_depend_on_the_number_of_draws(size):
    rng, weights, k = np.random.default_rng(38), 1 / np.arange(1, 2001), 200
    p = weights / weights.sum()
    draws = rng.choice(2000, (60, size), p=p).tolist()
    found = [corpora.distinct_k(x, k) for x in draws]
    gap = np.mean(found) - (1 - (1 - p) ** k).sum()
    assert abs(gap) < 4 * np.std(found) / np.sqrt(60)


# --- fair scores --------------------------------------------------------------------


@pytest.mark.claim("N25.39")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_brier_n_of_all_draws_is_the_norm_less_the_squared_distance(n):
    """In units of the 32nds that the laws are made of."""
    texts = [x[:n] for x in product("ab", repeat=3)]
    q, p = (3, 1, 4, 1, 5, 9, 2, 7), (2, 7, 1, 8, 3, 1, 4, 6)
    total, apart, real = 0, Counter(), Counter()
    for (x, a), (y, b), (z, c) in product(zip(texts, q), zip(texts, q), zip(texts, p)):
        total += a * b * c * ((x == z) + (y == z) - (x == y))
    for text, a, b in zip(texts, q, p):
        apart[text] += a - b
        real[text] += b
    lost = sum(x**2 for x in apart.values())
    assert total == 32 * (sum(x**2 for x in real.values()) - lost)


@pytest.mark.claim("N25.40")
def test_one_answer_has_a_high_product_if_it_is_nearly_always_wrong():
    """Over all next texts of a model that always says the same, as fractions."""
    accuracies = [Fraction(2, 5), Fraction(1, 5), Fraction(1, 10), Fraction(1, 20)]
    briers, worse = ([2 * a / k - 1 for a in accuracies] for k in (1, 10))
    assert max(briers) < 0
    assert max(prod(briers), 0) ** 0.25 > 0.5
    assert prod(worse) > prod(briers)


@pytest.mark.claim("N25.41")
def test_the_energy_score_on_a_line_as_a_fraction():
    at = [0, 1, 3, 7]
    p = [Fraction(x, 10) for x in (1, 2, 3, 4)]
    q = [Fraction(x, 10) for x in (4, 1, 4, 1)]

    def apart(a, b):
        return sum(x * y * abs(s - t) for x, s in zip(a, at) for y, t in zip(b, at))

    excess = apart(q, p) - apart(q, q) / 2 - apart(p, p) / 2
    steps = [sum(q[: i + 1]) - sum(p[: i + 1]) for i in range(3)]
    assert excess == sum(s**2 * (b - a) for s, a, b in zip(steps, at, at[1:]))
    assert excess > 0


@pytest.mark.claim("N25.42")
def test_pairwise_cosines_are_those_of_the_means():
    rng = np.random.default_rng(42)
    x = rng.normal(size=(5, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    p, q = rng.dirichlet(np.ones(5), 2)
    lost = 2 * (p - q) @ (x @ x.T) @ p - p @ (x @ x.T) @ p + q @ (x @ x.T) @ q
    assert lost == pytest.approx(np.sum(((q - p) @ x) ** 2), abs=1e-12)
    # Two opposite texts are as diverse as can be, and as four corners.
    pair, corners = np.array([[1.0, 0], [-1, 0]]), np.array([[0, 1.0], [0, -1]])
    assert 1 - (pair @ pair.T).mean() == 1 - (corners @ corners.T).mean() == 1
