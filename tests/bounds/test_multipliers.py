"""Bounds from any multipliers, against models, the least of them, and exact numbers."""

import dataclasses
import itertools
from fractions import Fraction
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.spatial
from formula_texts import SHAPES
from models import exact, exact_bleu, mixtures, oracle
from refusals import refused
from scripts import frame

import qdtheory as qd
from qdtheory.bounds import cubic, quadratic, tails
from qdtheory.bounds.bounds import in_units
from qdtheory.bounds.cubic import CubicCertificate, _semidefinite_shift
from qdtheory.bounds.duality import accurate_values, dual_bound, tangent_bound
from qdtheory.bounds.quadratic import _quadratic_bound
from qdtheory.bounds.shapes import CHORD_EXCESS, shape_of
from qdtheory.bounds.tails import _dual_bound, _supports
from qdtheory.functions import as_function
from qdtheory.pairs import bleu_form, pose

RNG = np.random.default_rng
EIGHT = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
CONCAVE = ["-x**2", "-x*log(x)", "x - x**3", "2*sqrt(x)", "log(x + 0.1)"]


def semidefinite(rng, *shape):
    """Random Gram matrices of any rank."""
    root = rng.normal(size=(*shape, rng.integers(1, shape[-1] + 1)))
    return root @ np.swapaxes(root, -1, -2)


# --- No model exceeds a bound ---------------------------------------------------------


@pytest.mark.parametrize("text", CONCAVE)
def test_no_model_exceeds_a_bound_by_tangents_and_the_best_one_meets_it(text):
    g, rng = as_function(text, "g"), RNG(1)
    for n in (2, 3, 6):
        q = rng.dirichlet(np.full(n, rng.choice([0.3, 1, 3])), 20_000) + 1e-300
        scores, price = rng.normal(size=n), 10 ** rng.uniform(-3, 3)
        # Any points at all; those of no model too.
        for points in (rng.uniform(size=n), rng.dirichlet(np.ones(n)), np.zeros(n)):
            bound = tangent_bound(g, scores, price, points)
            assert bound >= (q @ scores + price * g.jet(q).value.sum(axis=1)).max()
    for price in (0.01, 1.0, 100.0):
        q = qd.pareto_optimum(qd.LinearPair(scores, g), np.full(6, 1 / 6), -1 / price).q
        bound = tangent_bound(g, scores, price, np.asarray(q))
        with mpmath.workdps(50):
            # The same maximum by its definition: no more, and less by rounding alone.
            known = {"log": mpmath.log, "sqrt": mpmath.sqrt}
            parts = [mpmath.mpf(x) for x in (q / q.sum()).tolist()]
            bonus = [eval(text, known, {"x": x or mpmath.mpf("1e-400")}) for x in parts]
            value = mpmath.fdot(map(mpmath.mpf, scores), parts) + price * sum(bonus)
            assert 0 <= bound - value <= 1e-13 * max(1, price)


@pytest.mark.claim("N17.1")
@pytest.mark.parametrize("text", SHAPES)
def test_any_price_and_level_bound_every_feasible_model(text):
    g, rng = qd.Expression(text), RNG(0)
    for size in (2, 5):
        scores, p = rng.normal(size=size), rng.dirichlet(np.ones(size))
        least = float(g.value(p).sum())
        models = np.vstack([p, np.eye(size), rng.dirichlet(np.ones(size), 4000)])
        models = models[g.value(models).sum(axis=1) >= least]
        for price, level in rng.normal(scale=5, size=(20, 2)):
            bound = dual_bound(g, scores, least, abs(price), level)
            assert bound >= (models @ scores).max()


@pytest.mark.claim("N17.11")
def test_any_price_and_matrix_bound_quality_for_a_quadratic_diversity():
    rng, grid = RNG(0), mixtures(4, 20)
    for _ in range(60):
        kernel = rng.normal(size=(4, 4))
        kernel = kernel + kernel.T
        scores, p = rng.normal(size=4), rng.dirichlet(np.ones(4))
        spent = np.einsum("qi,ij,qj->q", grid, kernel, grid)
        best = (grid @ scores)[spent <= p @ kernel @ p].max(initial=p @ scores)
        for scale in (0.0, 0.1, 1.0):
            # Neither positive semidefinite nor of the right sign: both are mended.
            gram, price = rng.normal(size=(4, 4)) * scale, rng.normal()
            multipliers = p @ kernel @ p, price, gram + gram.T
            assert _quadratic_bound(scores, kernel, *multipliers) >= best


def test_any_price_and_semidefinite_matrices_bound_gains_for_a_cubic_diversity():
    rng, tightest, n = RNG(0), np.inf, 8
    models = rng.dirichlet(np.full(n, 0.3), 3000)
    tensor = cubic._program(pose(bleu_form(EIGHT), models[0]), EIGHT.table).tensor
    spent = np.einsum("xyz,qx,qy,qz->q", tensor, models, models, models)
    for p in rng.dirichlet(np.ones(n), 40):
        gains = (models - p) @ np.asarray(EIGHT.text_quality(p))
        best = gains[-spent >= float(EIGHT.diversity(p))].max(initial=0)
        scale = 10.0 ** rng.uniform(-4, 0)
        certificate = CubicCertificate(
            price=rng.exponential(),
            grams=scale * semidefinite(rng, n, n),
            gram=scale * semidefinite(rng, n),
            floor=best * rng.random(),
        )
        slack = qd.discrepancy.cubic_bound(EIGHT, p, certificate) - best
        assert slack >= 0
        tightest = min(tightest, slack)
    # Some of them say something: a text's quality is between 0 and 1.
    assert tightest < 0.2


# --- Wrong multipliers ----------------------------------------------------------------


@pytest.mark.claim("N17.2")
def test_a_negative_price_is_refused_and_an_indefinite_matrix_mended(as_a_user):
    g, scores, p = qd.Expression("x**2"), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    x = np.linspace(0, 1, 101)
    # (u - nu) x + mu g(x) with mu = -1, nu = -.5 is greatest at .75 and .25.
    wrong = -0.5 + 0.5 + sum(((u + 0.5) * x - x**2).max() for u in scores)
    assert wrong == pytest.approx(0.625, abs=1e-12)
    assert wrong < scores.max()  # of a text, which is as diverse as P
    with pytest.raises(ValueError, match="at least 0, got -1"):
        dual_bound(g, scores, 0.5, -1.0, -0.5)
    p = np.array([0.8, 0.2])
    for scale in (0.5, 1.0, 10.0):
        gram = -scale * np.eye(2)
        assert (np.add.outer(scores, scores) / 2 + gram).max() < scores @ p
        assert _quadratic_bound(scores, np.eye(2), p @ p, 0.0, gram) >= scores @ p


def largest_entry(gains, tensor, budget, shown, number=float):
    """Of A, by its definition: a mean over the orders of each triple."""
    price, floor = number(shown.price), number(shown.floor)
    grams, gram = (
        np.vectorize(number, otypes=[object])(x) for x in (shown.grams, shown.gram)
    )
    added = grams + np.multiply.outer(gains - floor, gram)
    return max(
        sum(added[order] for order in itertools.permutations(xyz)) / 6
        + sum(gains[list(xyz)]) / 3
        + price * (budget - tensor[xyz])
        for xyz in np.ndindex(tensor.shape)
    )


def test_false_proofs_are_refused(as_a_user):
    p, bound = oracle(EIGHT.space, 0, sigma=2.0), qd.discrepancy.cubic_bound
    found = qd.certify(EIGHT, p)
    good = found.evidence
    shown, scores = bound(EIGHT, p, good), np.asarray(EIGHT.text_quality(p))
    tensor = cubic._program(pose(bleu_form(EIGHT), p), EIGHT.table).tensor
    program = scores - p @ scores, tensor, -float(EIGHT.diversity(p))
    assert found.qdisc <= shown
    # Of the entry's 6 terms and of what makes the matrices surely semidefinite.
    assert 0 <= shown - largest_entry(*program, good) <= 1e-10
    gap = 2 * (shown - found.qdisc) + 1e-3
    lying = dataclasses.replace(good, grams=good.grams - gap)
    assert largest_entry(*program, lying) < found.qdisc
    # A skew part adds nothing to Q'SQ.
    skew = RNG(0).normal(size=good.grams.shape)
    skew = dataclasses.replace(good, grams=good.grams + skew - skew.transpose(0, 2, 1))
    assert bound(EIGHT, p, skew) == pytest.approx(shown, abs=1e-9)
    # What one lacks by rounding, here 8e-10 along (1, ..., 1), is added to the bound.
    centred = np.broadcast_to(np.eye(8) - 1 / 8, (8, 8, 8))
    plain = CubicCertificate(0.0, centred, np.zeros((8, 8)), 0.0)
    lacking = dataclasses.replace(plain, grams=centred - 1e-10)
    raised = bound(EIGHT, p, lacking) - bound(EIGHT, p, plain)
    assert raised == pytest.approx(8e-10 - 1e-10, rel=1e-3)
    for words, part, false in (
        # The sum of such a matrix's entries is negative.
        ("must be positive semidefinite", "grams", good.grams - good.grams.max() - gap),
        ("must be positive semidefinite", "gram", good.gram - good.gram.max() - gap),
        # Paid for being repetitive, the most repetitive models would bound the others.
        ("price must be finite and at least 0, got -1", "price", -1.0),
        ("shape (8, 8, 8) and (8, 8), got", "gram", np.eye(7)),
    ):
        refused((words, bound, EIGHT, p, dataclasses.replace(good, **{part: false})))


@pytest.mark.claim("N17.24", recount=True)
def test_the_tables_intervals_are_narrow_and_hold_what_the_search_found():
    keys, rows = ["order", "sigma", "seed"], frame("certificates.csv")
    searched = frame("table1.csv").query("num_self_references == 2 and size == 32")
    found = searched.set_index(keys).qdisc.reindex(rows[keys].apply(tuple, axis=1))
    # The search's values have nine digits.
    assert (rows.upper >= np.maximum(rows.lower, found.to_numpy() / (1 + 1e-8))).all()
    assert (found.to_numpy() >= 0.97 * rows.upper).all()
    ends = rows.groupby(["order", "sigma"]).lower.agg(["max", "min"])
    assert (ends["max"] > 1.9 * ends["min"]).all()
    assert rows.lower.min() > 0
    first, second = (group for _, group in rows.groupby("order"))
    assert (first.upper - first.lower).max() <= 1e-5
    narrow = second.upper / second.lower - 1 <= 1e-3
    assert narrow.groupby(second.sigma).mean().min() >= 0.8


# --- The least bound ------------------------------------------------------------------


def envelope_optimum(scores, g, least, x):
    """The optimum with g's concave envelope on a grid x, with its two multipliers.

    Each text is a mixture of points of the grid.
    """
    n = scores.size
    found = scipy.optimize.linprog(
        -np.kron(scores, x),
        A_ub=-np.tile(g(x), n)[None],
        b_ub=[-least],
        A_eq=np.vstack([np.kron(np.eye(n), np.ones_like(x)), np.tile(x, n)]),
        b_eq=np.ones(n + 1),
    )
    return -found.fun, -found.ineqlin.marginals[0], -found.eqlin.marginals[-1]


def largest_gap(g):
    """The greatest difference between g's concave envelope and g, on a grid."""
    x = np.linspace(0, 1, 2001)
    y = g.value(x)
    below = [[0, y.min() - 1], [1, y.min() - 1]]
    hull = scipy.spatial.ConvexHull(np.vstack([np.column_stack([x, y]), below]))
    top = np.sort(hull.vertices[hull.vertices < x.size])
    return float((np.interp(x, x[top], y[top]) - y).max())


@pytest.mark.claim("N17.3")
@pytest.mark.parametrize("text", [*SHAPES[:5], "-x + x*(1 - x)**30"])
def test_the_least_bound_is_the_optimum_with_the_envelope_and_costs_one_gap(text):
    g, grid, x = qd.Expression(text), mixtures(3, 300), np.linspace(0, 1, 301)
    gap, diversity = largest_gap(g), g.value(grid).sum(axis=1)
    for p in RNG(0).dirichlet(np.ones(3), 3):
        least, quality = float(g.value(p).sum()), grid @ p
        optimum, price, level = envelope_optimum(p, g.value, least, x)
        bound = dual_bound(g, p, least, price, level)
        # A grid's envelope is lower by |g''| h^2 / 8 a text at most; |g''| <= 130.
        slack = 3 * price * 130 / 300**2 / 8
        assert optimum - 1e-8 <= bound <= optimum + slack + 1e-8
        assert quality[diversity >= least].max() <= bound
        # With one chord; two steps of the grid, and 1e-3 for those of the envelope.
        if len(shape_of(as_function(g, "g")).concave) == 1:
            assert bound <= quality[diversity >= least - gap - 1e-3].max() + 2 / 300


@pytest.mark.claim("N17.3")
@pytest.mark.parametrize("left", [0.25, 0.35])
def test_with_two_chords_it_may_cost_two(left):
    dips = (f"0.05*exp(-200*(x - {c})**2)" for c in (left, 1 - left))
    g, scores = qd.Expression("-x**2 - " + " - ".join(dips)), np.array([1.0, 0.0])
    x = np.linspace(0, 1, 401)
    y = g.value(x)
    diversity, gap = y + y[::-1], largest_gap(g)  # of (x, 1 - x)
    # Of the envelope, which is g and about a gap at the bottoms of both dips.
    least = float(diversity[round(400 * (1 - left))] + 2 * gap - 1e-3)
    multipliers = envelope_optimum(scores, g.value, least, x)[1:]
    bound = dual_bound(g, scores, least, *multipliers)
    one, two = (x[diversity >= least - k * gap - 1e-3].max() for k in (1, 2))
    assert one + 0.01 < bound <= two + 0.01


@pytest.mark.parametrize("text", SHAPES)
def test_the_shape_of_g_is_that_of_a_grid(text):
    g, x = as_function(text, "g"), np.linspace(0, 1, 20_001)
    shape, curvature = shape_of(g), g.jet(x).curvature
    inside = np.zeros(x.size, bool)
    for low, high in shape.concave:
        inside |= (low <= x) & (x <= high)
    # All but the undecided stretches around an inflection are told right.
    assert (curvature[inside] <= 1e-9).all()
    assert np.mean((curvature <= 0) & ~inside) <= 1e-3
    for ends in itertools.pairwise(shape.ends):
        t = np.linspace(*ends, 21)
        above = g.jet(t).value - np.interp(t, ends, g.jet(np.array(ends)).value)
        within = any(low <= ends[0] and ends[1] <= high for low, high in shape.concave)
        assert within or above.max() <= CHORD_EXCESS + 1e-15


def test_an_impossible_text_counts_as_the_limit_at_0():
    value, _, error = accurate_values(qd.Tsallis(0.01), np.array([0.0, 0.3]))
    wanted = [0, (0.3**0.01 - 0.3) / 0.99]
    assert np.abs(value - wanted).max() <= 4 * error


# --- Rounded up: never below what exact fractions give --------------------------------


def by_price_and_level(rng):
    """With g = -x^2 each maximum is at (u - nu) / (2 mu), or at an end."""
    n = int(rng.integers(2, 7))
    scores, least = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4), -rng.random()
    price, level = rng.exponential() * np.ptp(scores), rng.normal() * np.ptp(scores)
    bound = dual_bound(qd.functions.NRR, scores, least, price, level)

    def total(number, scores, least, mu, nu):
        x = [min(max((u - nu) / (2 * mu), number(0)), number(1)) for u in scores]
        best = sum((u - nu) * t - mu * t**2 for u, t in zip(scores, x))
        return nu - mu * least + best

    numbers = scores.tolist(), least, price, level
    fractions = map(Fraction, numbers[1:])
    truth = total(Fraction, exact(scores), *fractions)
    size = np.abs(scores).max() + price + abs(level)
    return bound, truth, total(float, *numbers), 1e-11 * size


def by_scores_in_units(rng):
    """The sum of p is a rounding off, which a constant multiplies."""
    n = int(rng.integers(2, 9))
    scores = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
    scores += rng.choice([0.0, 1e3, -1e6])
    p, text = rng.dirichlet(np.ones(n)), int(rng.integers(n))
    units, u = in_units(scores, p), exact(scores)
    bound = float(units.scores[text])
    plain = units.unit * (bound - float(units.scores @ p))
    room = 4 * units.rounding * units.unit
    return units.gain(bound), u[text] - u @ exact(p), plain, room


def by_matrix(rng):
    """In the units of a quadratic bound, whose multipliers are spied on."""
    kernel = rng.normal(size=(4, 4)) * 10.0 ** rng.integers(-3, 4)
    kernel = (kernel + kernel.T) / 2 + rng.choice([0.0, 1e3])
    p, bound = rng.dirichlet(np.ones(4)), _quadratic_bound
    with patch.object(quadratic, "_quadratic_bound", side_effect=bound) as spy:
        found = qd.certify(qd.KernelPair(kernel), p)
    _, _, _, price, gram = spy.call_args.args

    def total(k, p, root, unit, unit_of_k, price):
        u, spent = k @ p, p @ k @ p
        means = (np.add.outer(u, u) / 2 - min(u)) / unit
        largest = (means + price / unit_of_k * (spent - k) + root @ root.T).max()
        # No score is above the greatest, whatever the multipliers.
        return min(unit * largest + min(u), max(u)) - u @ p

    units = float(np.ptp(kernel @ p)), float(np.ptp(kernel))
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0))
    numbers = kernel, p, root, *units, max(float(price), 0.0)
    exactly = [exact(x) if np.ndim(x) else Fraction(x) for x in numbers]
    room = 1e-10 * units[0] + 1e-14 * np.abs(kernel).max()
    return found.upper_bound, total(*exactly), total(*numbers), room


def exact_phi(k, t):
    return t - t * (1 - t) ** k


def by_tails(rng):
    """The budget of the tails."""
    n, k = int(rng.choice([1, 2, 50])), int(rng.choice([1, 2, 3, 50]))
    p = rng.dirichlet(np.full(8, rng.choice([0.1, 1.0])))
    program, vertex_of = tails._program(EIGHT.space, n, k, p)
    real = exact(p) @ program.vertices[vertex_of].astype(int) / sum(exact(p))
    weights = np.array([(1 - (1 - t) ** n) / 3 for t in real])
    error = sum(abs(exact(program.weights) * Fraction(program.unit) - weights))
    assert error <= Fraction(program.rounding * program.unit)
    plain = exact_phi(k, real.astype(float)).sum()
    return program.budget, sum(exact_phi(k, t) for t in real), plain, 1e-11


def by_linear_program(rng):
    """The bound of a box from any multipliers of the program of the tails."""
    program, _ = tails._program(EIGHT.space, 2, 3, rng.dirichlet(np.ones(8)))
    m, low = program.real.size, np.zeros(program.real.size)
    lines = np.vstack([_supports(3.0, low, low + 0.9, rng.random(m)) for _ in range(2)])
    multipliers = rng.exponential(size=2 * m + 1 + len(lines))
    bound = _dual_bound(program, (low, low + 0.9), lines, multipliers)

    def total(multipliers, lines, weights, vertices, budget, high):
        price, y = multipliers[2 * m], multipliers[:m] - multipliers[m : 2 * m]
        shares = multipliers[2 * m + 1 :].reshape(2, m)
        shares = shares / shares.sum(axis=0)
        a, b = ((shares * x.reshape(2, m)).sum(axis=0) for x in lines.T[1:])
        best = max(vertices @ (weights - price * b - y))
        return price * (budget - sum(a)) + best + np.maximum(y * 0, y * high).sum()

    numbers = multipliers, lines, program.weights, program.vertices
    numbers += program.budget, low + 0.9
    return float(bound), total(*map(exact, numbers)), float(total(*numbers)), 1e-10


ROUNDED = by_price_and_level, by_scores_in_units, by_matrix, by_tails, by_linear_program


@pytest.mark.parametrize("drawn", ROUNDED)
def test_a_bound_is_rounded_up(drawn):
    rng, missed = RNG(0), 0
    for _ in range(10 if drawn is by_matrix else 60):
        bound, truth, plain, room = drawn(rng)
        assert truth <= Fraction(bound) <= truth + Fraction(room)
        missed += Fraction(float(plain)) < truth
    # Without what is added for rounding a bound is too low in many cases.
    assert missed > 2


@pytest.mark.parametrize("seed", range(3))
def test_the_cubic_bound_is_rounded_up(seed):
    pair, p = qd.BleuPair(qd.TextSpace(2, 2), 1, 2, 2), RNG(seed).dirichlet(np.ones(4))
    found = cubic.cubic_bounds(pose(bleu_form(pair), p), pair.table, p, max_steps=40)
    shown, real, tensor = found.evidence, exact(p), np.full((4, 4, 4), Fraction(0))
    scores, weights, sets = exact_bleu(pair, real, 2)
    gains = scores - scores @ real
    for x, y, z in np.ndindex(tensor.shape):
        for a, b, c in ((x, y, z), (y, x, z), (z, x, y)):
            tensor[x, y, z] += (weights[a] * sets[:, b] * sets[:, c]).sum() / 3
    budget = tensor @ real @ real @ real
    largest = largest_entry(gains, tensor, budget, shown, Fraction)
    truth = max(Fraction(shown.floor), largest)
    # The truth is without the shifts that make the matrices semidefinite.
    assert truth <= Fraction(found.upper_bound) <= truth + Fraction(1e-9)


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


def test_a_matrix_and_its_shift_are_semidefinite():
    rng, missed = RNG(0), 0
    for _ in range(60):
        n = int(rng.integers(2, 6))
        root = rng.normal(size=(n, int(rng.integers(1, n))))
        matrix = root @ root.T * 10.0 ** rng.integers(-8, 9)
        skew = rng.normal(size=(n, n)) * np.abs(matrix).max()
        matrix = matrix + skew - skew.T
        shift = _semidefinite_shift(matrix)
        assert is_semidefinite(exact(matrix) + Fraction(shift) * exact(np.eye(n)))
        assert shift <= 1e-12 * np.abs(matrix).max() * n
        missed += not is_semidefinite(exact(matrix))
    assert missed > 20


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


@pytest.mark.parametrize("k", [1, 3, 1000])
def test_no_line_is_above_phi(k, monkeypatch):
    assert count_above(k, RNG(k)) == 0
    monkeypatch.setattr(tails, "EPS", 0.0)
    assert count_above(k, RNG(k)) > 5
