"""BLEU-1 by its tails against grids, exact values, exact arithmetic and failures."""

from fractions import Fraction
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.optimize
from models import assert_attained, exact, mixtures, oracle

import qdtheory as qd
from qdtheory.bounds import tails
from qdtheory.bounds.tails import _bounded, _phi, _program, _relaxation, _supports


@pytest.mark.claim("N17.9")
@pytest.mark.parametrize("references", [(1, 1), (2, 2), (3, 5)])
def test_bleu_1_depends_on_the_tails_alone(references):
    space, (n, k) = qd.TextSpace(3, 3), references
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.full(27, 0.5), 2)
    counts = qd.ngrams.ngram_matrix(space, 1)
    tails = np.array([counts >= j for j in (1, 2, 3)], float)
    t_p, t_q = tails @ p, tails @ q
    pair = qd.BleuPair(space, 1, n, k)
    quality = (t_q * (1 - (1 - t_p) ** n)).sum() / 3
    assert float(pair.quality(q, p)) == pytest.approx(quality, abs=1e-14)
    diversity = -(t_q * (1 - (1 - t_q) ** k)).sum() / 3
    assert float(pair.diversity(q)) == pytest.approx(diversity, abs=1e-14)


@pytest.mark.parametrize("k", [1.0, 2.0, 3.0, 20.0, 1000.0])
def test_lines_support_the_convex_envelope(k):
    rng = np.random.default_rng(0)
    lows, highs = np.sort(rng.random((2, 50)) ** rng.choice([1, 4], 50), axis=0)
    points = rng.uniform(lows, highs)
    lines = _supports(k, lows, highs, points)
    for low, high, t, (_, a, b) in zip(lows, highs, points, lines):
        x = np.linspace(low, high, 501)
        assert (a + b * x - _phi(k, x)).max() <= 1e-14
        # The envelope at t is the least chord over t.
        left, right = x[x <= t][:, None], x[x > t]
        share = (t - left) / (right - left)
        chords = (1 - share) * _phi(k, left) + share * _phi(k, right)
        # Chords between points of the grid miss the least by phi'' h^2 / 8 at most.
        slack = np.abs(np.diff(tails._slope(k, x))).max() * (x[1] - x[0]) / 8
        assert -1e-14 <= chords.min() - (a + b * t) <= slack + 1e-14


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "references", "steps"),
    [(2, (1, 2), 1000), (2, (3, 4), 1000), (3, (2, 2), 120)],
)
def test_the_bounds_of_bleu_1_agree_with_a_grid(length, references, steps):
    space = qd.TextSpace(2, length)
    pair = qd.BleuPair(space, 1, *references)
    # A text of each number of ones; texts of one number are alike.
    texts = [2**ones - 1 for ones in range(length + 1)]
    grid = np.zeros((len(mixtures(length + 1, steps)), space.num_texts))
    grid[:, texts] = mixtures(length + 1, steps)
    diversity = np.asarray(jax.vmap(pair.diversity)(grid))
    for seed in range(3):
        p = np.random.default_rng(seed).dirichlet(np.ones(space.num_texts))
        gains = (grid - p) @ np.asarray(pair.text_quality(p))
        best = gains[diversity >= float(pair.diversity(p))].max()
        found = qd.certify(pair, p)
        assert_attained(pair, p, found.q, found.qdisc)
        assert found.upper_bound - found.qdisc <= 1e-6
        assert best <= found.upper_bound
        # The best model is within a step of the grid in each of its probabilities,
        # some of them spent on feasibility; scores are in [0, 1].
        assert best >= found.qdisc - 2 * length / steps


@pytest.mark.slow
@pytest.mark.claim("N17.10")
@pytest.mark.parametrize("seed", range(10))
def test_bleu_1_with_two_references_is_certified(seed):
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, seed, sigma=(0.5, 1.0, 2.0)[seed % 3])
    found = qd.certify(pair, p)
    assert_attained(pair, p, found.q, found.qdisc)
    assert found.qdisc > 1e-4
    assert found.upper_bound - found.qdisc <= 1e-6
    assert found.steps < 100


def test_a_start_is_taken_up():
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, 1, sigma=1.0)
    known = qd.certify(pair, p)
    found = qd.certify(pair, p, known.q, max_steps=0)
    assert found.qdisc == pytest.approx(known.qdisc, abs=1e-15)


def test_a_solver_that_lies_only_widens_the_interval(monkeypatch):
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, 1, sigma=1.0)
    honest = qd.certify(pair, p)
    rng = np.random.default_rng(0)
    solve = scipy.optimize.linprog

    def lie(*args, **kwargs):
        solution = solve(*args, **kwargs)
        size = solution.ineqlin.marginals.size
        solution.ineqlin.marginals *= rng.uniform(0.9, 1.1, size)
        solution.ineqlin.marginals -= 0.01 * rng.random(size)
        return solution

    monkeypatch.setattr(scipy.optimize, "linprog", lie)
    found = qd.certify(pair, p, max_steps=10)
    assert found.upper_bound >= honest.qdisc
    assert found.upper_bound > honest.upper_bound


# --- Solvers that fail ----------------------------------------------------------


def test_a_linear_program_without_a_solution_leaves_a_loose_bound(monkeypatch):
    pair = qd.BleuPair(qd.TextSpace(2, 3), 1, 2, 3)
    p = oracle(qd.TextSpace(2, 3), 0, sigma=1.0)
    best = qd.certify(pair, p)
    monkeypatch.setattr(
        scipy.optimize, "linprog", lambda *args, **kwargs: SimpleNamespace(x=None)
    )
    found = qd.certify(pair, p, max_steps=3)
    scores = np.asarray(pair.text_quality(p))
    assert best.qdisc <= found.upper_bound <= scores.max() - scores @ p + 1e-12
    found = qd.certify(
        qd.SeparablePair(qd.functions.CR, qd.Expression("-x**3")), p, max_steps=3
    )
    assert 0 <= found.qdisc <= found.upper_bound <= p.max() - p @ p + 1e-12


# --- Exact arithmetic ---------------------------------------------------------------


def exact_phi(k, t):
    return t - t * (1 - t) ** k


def count_above(k, rng):
    """How many lines are above phi somewhere, of some hundred."""
    above = 0
    for _ in range(15):
        low, high = np.sort(rng.random((2, 8)) ** rng.choice([1, 4]), axis=0)
        if rng.random() < 0.3:  # narrow boxes, in which a chord's slope is noise
            high = low + 1e-13 * rng.random(8)
        t = rng.uniform(low, high)
        for line in _supports(float(k), low, high, t):
            i, a, b = int(line[0]), Fraction(line[1]), Fraction(line[2])
            grid = [low[i], high[i], t[i], *rng.uniform(low[i], high[i], 4)]
            points = [Fraction(x) for x in grid]
            points.append(min(max(Fraction(2, k + 1), points[0]), points[1]))
            above += any(a + b * x > exact_phi(k, x) for x in points)
    return above


@pytest.mark.parametrize("k", [1, 2, 3, 20, 1000])
def test_no_line_is_above_phi(k, monkeypatch):
    assert count_above(k, np.random.default_rng(k)) == 0
    monkeypatch.setattr(tails, "EPS", 0.0)
    assert count_above(k, np.random.default_rng(k)) > 5


def test_the_budget_and_the_weights_of_the_tails():
    rng, missed = np.random.default_rng(0), 0
    for _ in range(30):
        n, k = int(rng.choice([1, 2, 50])), int(rng.choice([1, 2, 3, 50]))
        space = qd.TextSpace(2, 3)
        p = rng.dirichlet(np.full(8, rng.choice([0.1, 1.0])))
        problem, vertex_of = _program(space, n, k, p)
        tails = problem.vertices[vertex_of].astype(int)
        real = exact(p) @ tails
        real = real / sum(exact(p))
        spent = sum(exact_phi(k, t) for t in real)
        assert spent <= Fraction(problem.budget) <= spent + Fraction(1e-11)
        plain = real.astype(float)
        plain = (plain - plain * (1 - plain) ** k).sum()
        missed += Fraction(float(plain)) < spent
        weights = np.array([(1 - (1 - t) ** n) / 3 for t in real])
        error = sum(abs(exact(problem.weights) * Fraction(problem.unit) - weights))
        assert error <= Fraction(problem.rounding * problem.unit)
    assert missed > 5


@pytest.mark.parametrize("seed", range(5))
def test_the_linear_programs_bound_is_rounded_up(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    problem, _ = _program(qd.TextSpace(2, 3), 2, 3, rng.dirichlet(np.ones(8)))
    low, high = np.zeros(6), np.full(6, 0.9)
    box = _bounded(problem, (low, high, np.empty((0, 3)), problem.real), -np.inf)
    solved, solve = [], scipy.optimize.linprog

    def spy(*args, **kwargs):
        solved.append(solve(*args, **kwargs))
        return solved[-1]

    monkeypatch.setattr(scipy.optimize, "linprog", spy)
    bound, _ = _relaxation(problem, low, high, box.planes)
    index = box.planes[:, 0].astype(int)
    multipliers = exact(np.maximum(-solved[-1].ineqlin.marginals, tails.TINY))
    m = 6
    mu, y = multipliers[2 * m], multipliers[:m] - multipliers[m : 2 * m]
    a, b = [Fraction(0)] * m, [Fraction(0)] * m
    for i in range(m):
        rows = np.flatnonzero(index == i)
        total = sum(multipliers[2 * m + 1 + rows])
        for row in rows:
            share = multipliers[2 * m + 1 + row] / total
            a[i] += share * Fraction(box.planes[row, 1])
            b[i] += share * Fraction(box.planes[row, 2])
    rest = exact(problem.weights) - mu * np.array(b) - y
    truth = mu * (Fraction(problem.budget) - sum(a))
    truth += max(exact(problem.vertices) @ rest)
    truth += np.maximum(y * exact(low), y * exact(high)).sum()
    assert truth <= Fraction(float(bound)) <= truth + Fraction(1e-10)
