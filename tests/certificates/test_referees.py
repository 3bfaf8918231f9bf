"""Bounds against the same bounds in exact arithmetic, which they must not undercut.

Every number in 64 bits is a fraction, so that a bound from given multipliers can be
computed without rounding. The bound of the library has to be no less, and would be less
were its own rounding not added: the tests count how often.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize

import qdtheory as qd
from qdtheory.certificates import quadratic, tails
from qdtheory.certificates.cubic import _lack
from qdtheory.certificates.interval import in_units
from qdtheory.certificates.quadratic import _quadratic_bound, quadratic_interval
from qdtheory.certificates.tails import (
    _bounded,
    _relaxation,
    _supports,
    _tails,
    bleu_1_interval,
)


def exact(array):
    """The fractions that numbers in 64 bits are."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, float))


def random_kernel(rng, size):
    kernel = rng.normal(size=(size, size)) * 10.0 ** rng.integers(-3, 4)
    return (kernel + kernel.T) / 2 + rng.choice([0.0, 1e3])


# --- Quadratic ----------------------------------------------------------------------


def root_of(gram):
    """The matrix whose product with its transpose the bound takes."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0))


def exact_quadratic_bound(scores, kernel, budget, price, root):
    u, n = scores, len(scores)
    gram = root @ root.T
    return max(
        (u[i] + u[j]) / 2 + price * (budget - kernel[i, j]) + gram[i, j]
        for i in range(n)
        for j in range(n)
    )


def test_the_quadratic_bound_is_rounded_up():
    rng, missed = np.random.default_rng(0), 0
    for _ in range(100):
        n = int(rng.integers(2, 9))
        scores, kernel = rng.random(n), rng.random((n, n))
        kernel = (kernel + kernel.T) / 2
        budget, price = float(rng.random()), float(rng.exponential())
        factor = rng.normal(size=(n, n))
        gram = factor @ factor.T
        bound = _quadratic_bound(scores, kernel, budget, price, gram)
        root = root_of(gram)
        numbers = map(exact, (scores, kernel, budget, price, root))
        truth = exact_quadratic_bound(*numbers)
        assert truth <= Fraction(bound) <= truth + Fraction(1e-12)
        matrix = (scores[:, None] + scores) / 2 + price * (budget - kernel)
        missed += Fraction(float((matrix + root @ root.T).max())) < truth
    # Without what is added for rounding the bound is too low about half of the time.
    assert missed > 20


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_quadratic_interval_is_rounded_up(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    kernel, p = random_kernel(rng, 4), rng.dirichlet(np.ones(4))
    given = []

    def spy(*args):
        given.append(args)
        return _quadratic_bound(*args)

    monkeypatch.setattr(quadratic, "_quadratic_bound", spy)
    found = quadratic_interval(qd.KernelPair(kernel), p)
    ((_, _, _, price, gram),) = given
    # The multipliers in the kernel's own unit, in which nothing is rounded.
    k, real = exact(kernel), exact(p)
    u, spent = k @ real, real @ k @ real
    unit, unit_of_k = (Fraction(float(np.ptp(x))) for x in (kernel @ p, kernel))
    price = Fraction(max(float(price), 0.0)) * unit / unit_of_k
    root = exact(root_of(gram))
    least = min(u)
    truth = exact_quadratic_bound((u - least) / unit, k, spent, price / unit, root)
    truth = unit * truth + least - u @ real
    assert Fraction(found.upper) >= truth
    rounding = 1e-10 * float(unit) + 1e-14 * np.abs(kernel).max()
    assert found.upper <= float(truth) + rounding


def test_scores_in_units_lose_nothing():
    rng, missed = np.random.default_rng(0), 0
    for _ in range(200):
        n = int(rng.integers(2, 9))
        scores = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
        scores += rng.choice([0.0, 1e3, -1e6])
        p = rng.dirichlet(np.ones(n))
        # The sum of p is a rounding off, which a constant multiplies.
        units = in_units(scores, p)
        u, text = exact(scores), int(rng.integers(n))
        truth = u[text] - u @ exact(p)
        bound = float(units.scores[text])
        assert Fraction(units.gain(bound)) >= truth
        assert units.gain(bound) <= float(truth) + 4 * units.rounding * units.unit
        missed += Fraction(units.unit * (bound - float(units.scores @ p))) < truth
    assert missed > 40


# --- Tails --------------------------------------------------------------------------


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
        problem, kind = _tails(qd.BleuPair(space, 1, n, k), p)
        tails = problem.vertices[kind].astype(int)
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
    pair = qd.BleuPair(qd.TextSpace(2, 3), 1, 2, 3)
    problem, _ = _tails(pair, rng.dirichlet(np.ones(8)))
    low, high = np.zeros(6), np.full(6, 0.9)
    box = _bounded(problem, low, high, np.empty((0, 3)), problem.real, -np.inf)
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
    truth += sum(
        max(y[i] * Fraction(low[i]), y[i] * Fraction(high[i])) for i in range(m)
    )
    assert truth <= Fraction(float(bound)) <= truth + Fraction(1e-10)


# --- Cubic --------------------------------------------------------------------------


def exact_bleu(pair, p, num_references):
    """Expected BLEU of each text, and the weights and sets that it is a sum over."""
    table, n = pair.table, pair.space.num_texts
    sets = np.asarray(table.sets).reshape(-1, n)[: table.num_sets].astype(int)
    weights = np.full((n, table.num_sets), Fraction(0))
    for text, k, weight in zip(table.text, table.set_index, table.weight):
        weights[text, k] += Fraction(float(weight))
    return weights @ (sets @ p) ** num_references, weights, sets


@pytest.mark.parametrize("seed", range(4))
def test_the_cubic_bound_is_rounded_up(seed):
    rng = np.random.default_rng(seed)
    pair = qd.BleuPair(qd.TextSpace(2, 2), 1, 2, 2)
    p = rng.dirichlet(np.ones(4))
    found = qd.cubic_interval(pair, p, max_steps=40)
    shown, real, n = found.certificate, exact(p), 4
    scores, weights, sets = exact_bleu(pair, real, 2)
    gains = scores - scores @ real
    tensor = np.full((n, n, n), Fraction(0))
    for x, y, z in np.ndindex(n, n, n):
        for a, b, c in ((x, y, z), (y, x, z), (z, x, y)):
            tensor[x, y, z] += (weights[a] * sets[:, b] * sets[:, c]).sum() / 3
    budget = tensor @ real @ real @ real
    floor, price = Fraction(shown.floor), Fraction(shown.price)
    grams, gram = exact(shown.grams), exact(shown.gram)
    added = grams + np.multiply.outer(gains - floor, gram)
    largest = max(
        sum(added[order] for order in itertools.permutations(xyz)) / 6
        + sum(gains[list(xyz)]) / 3
        + price * (budget - tensor[xyz])
        for xyz in np.ndindex(n, n, n)
    )
    truth = max(floor, largest)
    # Not even with what the matrices lack, were they to lack nothing.
    assert truth <= Fraction(found.upper) <= truth + Fraction(1e-9)


def is_semidefinite(matrix):
    """By elimination in fractions."""
    matrix = (matrix + matrix.T) / 2
    while len(matrix):
        order = np.argsort([-x for x in np.diag(matrix)], kind="stable")
        matrix = matrix[order][:, order]
        pivot = matrix[0, 0]
        if pivot <= 0:
            return pivot == 0 and not matrix.any()
        matrix = matrix[1:, 1:] - np.outer(matrix[1:, 0], matrix[0, 1:]) / pivot
    return True


def test_what_a_matrix_lacks_makes_it_semidefinite():
    rng, missed = np.random.default_rng(0), 0
    for _ in range(60):
        n = int(rng.integers(2, 6))
        root = rng.normal(size=(n, int(rng.integers(1, n))))
        matrix = root @ root.T * 10.0 ** rng.integers(-8, 9)
        skew = rng.normal(size=(n, n)) * np.abs(matrix).max()
        matrix = matrix + skew - skew.T
        lack = _lack(matrix)
        ones = np.array([[Fraction(int(i == j)) for j in range(n)] for i in range(n)])
        assert is_semidefinite(exact(matrix) + Fraction(lack) * ones)
        assert lack <= 1e-12 * np.abs(matrix).max() * n
        missed += not is_semidefinite(exact(matrix))
    assert missed > 20


# --- Sums of g and convex problems --------------------------------------------------


def test_the_bound_of_a_price_and_a_level_is_rounded_up():
    # With g = -x^2 each maximum is at (u - nu) / (2 mu), or at an end.
    rng, missed = np.random.default_rng(0), 0
    for _ in range(100):
        n = int(rng.integers(2, 7))
        scores, least = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4), -rng.random()
        price, level = rng.exponential() * np.ptp(scores), rng.normal() * np.ptp(scores)
        bound = qd.dual_bound(qd.NRR, scores, least, price, level)
        mu, nu = Fraction(price), Fraction(level)
        truth = plain = nu - mu * Fraction(least)
        plain = float(level - price * least)
        for u in scores.tolist():
            x = min(max((Fraction(u) - nu) / (2 * mu), Fraction(0)), Fraction(1))
            truth += (Fraction(u) - nu) * x - mu * x**2
            x = min(max((u - level) / (2 * price), 0.0), 1.0)
            plain += (u - level) * x - price * x**2
        assert truth <= Fraction(bound)
        assert bound <= float(truth) + 1e-11 * (np.abs(scores).max() + price + abs(nu))
        missed += Fraction(plain) < truth
    assert missed > 20


@pytest.mark.parametrize("seed", range(8))
def test_the_bounds_of_a_sphere(seed):
    """Among models of the repetition of P the best is a point of a sphere."""
    import mpmath

    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    p, scores = rng.dirichlet(np.full(n, 20.0)), rng.normal(size=n)
    with mpmath.workdps(50):
        real, u = (mpmath.matrix([mpmath.mpf(x) for x in row]) for row in (p, scores))
        mean = sum(u) / n
        across = [x - mean for x in u]
        length = mpmath.sqrt(sum(x**2 for x in across))
        radius = mpmath.sqrt(sum(x**2 for x in real) - mpmath.mpf(1) / n)
        best = [mpmath.mpf(1) / n + radius * x / length for x in across]
        assert min(best) > 0  # inside the simplex
        gain = mean + radius * length - sum(x * y for x, y in zip(u, real))
        for unit in (1.0, 1e-6, 1e6):
            fixed = scores * unit
            pairs = (
                qd.ConcavePair(lambda p, s=fixed: s * 1.0, qd.negative_repetition_rate),
                qd.LinearPair(lambda p, s=fixed: s * 1.0, qd.NRR),
            )
            bounds = (
                qd.quality_discrepancy(pairs[0], p).upper_bound,
                qd.separable_interval(pairs[1], p).upper,
            )
            for bound in bounds:
                assert mpmath.mpf(bound) >= gain * unit - abs(gain) * unit * 1e-14
                assert bound <= float(gain) * unit + 1e-6 * np.ptp(fixed)


def test_branch_and_bound_never_falls_below_a_model():
    # Exactly evaluated models of one word's share, as good as the optimum.
    rng = np.random.default_rng(0)
    for _ in range(3):
        p = rng.dirichlet(np.ones(4))
        pair = qd.BleuPair(qd.TextSpace(2, 2), 1, 3, 5)
        found = bleu_1_interval(pair, p)
        real = exact(p) / sum(exact(p))
        scores, _, _ = exact_bleu(pair, real, 3)
        for q in rng.dirichlet(np.full(4, 0.5), 200):
            model = exact(q) / sum(exact(q))
            spent = [x @ exact_bleu(pair, x, 5)[0] for x in (model, real)]
            if spent[0] <= spent[1]:
                assert scores @ (model - real) <= Fraction(found.upper)
