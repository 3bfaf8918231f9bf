"""The cubic relaxation against brute force, random models and false proofs."""

import dataclasses
import itertools
from collections import Counter
from fractions import Fraction

import jax
import numpy as np
import pytest
from models import assert_attained, exact, exact_bleu, oracle
from scripts import rows_of

import qdtheory as qd
from qdtheory.bounds import cubic
from qdtheory.bounds.cubic import _program, _projected, _semidefinite_shift
from qdtheory.pairs import bleu_form, pose

SPACES = [qd.TextSpace(2, 2), qd.TextSpace(2, 3)]


def semidefinite(rng, *shape):
    """Random Gram matrices of any rank."""
    root = rng.normal(size=(*shape, rng.integers(1, shape[-1] + 1)))
    return root @ np.swapaxes(root, -1, -2)


def bleu_2(candidate, references):
    """BLEU-2 of texts of one length without smoothing, from its definition."""
    precisions = []
    for n in (1, 2):
        grams = [
            Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
            for text in (candidate, *references)
        ]
        most = grams[1] | grams[2]
        precisions.append((grams[0] & most).total() / grams[0].total())
    return np.sqrt(precisions[0] * precisions[1])


def problem_of(pair, p):
    return _program(pose(bleu_form(pair), p), pair.table)


@pytest.mark.claim("N17.21")
@pytest.mark.parametrize("space", SPACES)
def test_the_tensor_is_self_bleu_of_three_texts(space):
    n, texts = space.num_texts, space.tokens.tolist()
    problem = problem_of(qd.BleuPair(space, 2, 5, 2), np.full(n, 1 / n))
    for triple in itertools.combinations_with_replacement(range(n), 3):
        trio = [texts[i] for i in triple]
        scores = [bleu_2(trio[i], trio[:i] + trio[i + 1 :]) for i in range(3)]
        for order in itertools.permutations(triple):
            assert problem.tensor[order] == pytest.approx(np.mean(scores), abs=1e-14)


@pytest.mark.claim("N17.20")
@pytest.mark.parametrize("space", SPACES)
def test_any_price_and_semidefinite_matrices_give_a_bound(space):
    n, rng = space.num_texts, np.random.default_rng(0)
    pair = qd.BleuPair(space, 2, 2, 2)
    models = rng.dirichlet(np.full(n, 0.3), 3000)
    diversity = np.asarray(jax.vmap(pair.diversity)(models))
    tightest = np.inf
    for _ in range(40):
        p = rng.dirichlet(np.ones(n))
        scores = np.asarray(pair.text_quality(p))
        gains = ((models - p) @ scores)[diversity >= float(pair.diversity(p))]
        best = gains.max(initial=0)
        scale = 10.0 ** rng.uniform(-4, 0)
        certificate = cubic.CubicCertificate(
            price=rng.exponential(),
            grams=scale * semidefinite(rng, n, n),
            gram=scale * semidefinite(rng, n),
            floor=best * rng.random(),
        )
        slack = qd.discrepancy.cubic_bound(pair, p, certificate) - best
        assert slack >= 0
        tightest = min(tightest, slack)
    # Some of them say something: a text's quality is between 0 and 1.
    assert tightest < 0.2


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


@pytest.mark.claim("N17.23")
def test_false_proofs_are_refused(as_a_user):
    space, rng = qd.TextSpace(2, 3), np.random.default_rng(0)
    pair, p = qd.BleuPair(space, 2, 2, 2), oracle(space, 0, sigma=2.0)
    found = qd.certify(pair, p)
    good = found.evidence
    shown = qd.discrepancy.cubic_bound(pair, p, good)
    scores = np.asarray(pair.text_quality(p))
    problem = scores - p @ scores, problem_of(pair, p).tensor, -float(pair.diversity(p))
    assert found.qdisc <= shown
    # Of the entry's 6 terms and of what makes the matrices surely semidefinite.
    assert 0 <= shown - largest_entry(*problem, good) <= 1e-10
    gap = 2 * (shown - found.qdisc) + 1e-3
    for name in ("grams", "gram"):
        # The sum of such a matrix's entries is negative.
        matrices = getattr(good, name)
        bad = dataclasses.replace(good, **{name: matrices - matrices.max() - gap})
        with pytest.raises(ValueError, match="must be positive semidefinite"):
            qd.discrepancy.cubic_bound(pair, p, bad)
    lying = dataclasses.replace(good, grams=good.grams - gap)
    assert largest_entry(*problem, lying) < found.qdisc
    # A skew part adds nothing to Q'SQ.
    skew = rng.normal(size=good.grams.shape)
    skew = dataclasses.replace(good, grams=good.grams + skew - skew.transpose(0, 2, 1))
    assert qd.discrepancy.cubic_bound(pair, p, skew) == pytest.approx(shown, abs=1e-9)
    # Paid for being repetitive, the most repetitive models would bound the others.
    with pytest.raises(ValueError, match=r"price must be .* at least 0, got -1"):
        qd.discrepancy.cubic_bound(pair, p, dataclasses.replace(good, price=-1.0))
    with pytest.raises(ValueError, match=r"shape \(8, 8, 8\) and \(8, 8\), got"):
        qd.discrepancy.cubic_bound(pair, p, dataclasses.replace(good, gram=np.eye(7)))


@pytest.mark.claim("N17.22")
@pytest.mark.parametrize("seed", range(4))
def test_the_interval_closes_on_the_search(seed):
    space = qd.TextSpace(2, 3)
    pair = qd.BleuPair(space, 2, 2, 2)
    p = oracle(space, seed, sigma=2.0)
    found = qd.certify(pair, p)
    assert_attained(pair, p, found.q, found.qdisc)
    assert 0 <= found.upper_bound - found.qdisc <= 1e-6
    assert qd.discrepancy.cubic_bound(pair, p, found.evidence) == found.upper_bound
    searched = qd.quality_discrepancy(pair, p).qdisc
    assert searched <= found.upper_bound
    # The search stops at a relative 1e-6 or so of gains of some percent.
    assert searched >= found.qdisc - 1e-6


@pytest.mark.claim("N17.24", recount=True)
def test_the_tables_intervals_are_narrow_and_hold_what_the_search_found():
    searched = {
        (row["order"], float(row["sigma"]), row["seed"]): float(row["qdisc"])
        for row in rows_of("table1.csv")
        if (row["num_self_references"], row["size"]) == ("2", "32")
    }
    rows = rows_of("certificates.csv")
    assert {row["order"] for row in rows} == {"1", "2"}
    for row in rows:
        lower, upper = float(row["lower"]), float(row["upper"])
        assert 0 < lower <= upper
        found = searched[row["order"], float(row["sigma"]), row["seed"]]
        # The search's values have nine digits.
        assert found <= upper * (1 + 1e-8)
        if row["order"] == "1":
            assert upper - lower <= 1e-5
    for sigma in {row["sigma"] for row in rows}:
        widths = [
            float(row["upper"]) / float(row["lower"]) - 1
            for row in rows
            if (row["order"], row["sigma"]) == ("2", sigma)
        ]
        assert np.mean(np.array(widths) <= 1e-3) >= 0.8


@pytest.mark.slow
def test_unfinished_iterates_bound_an_oracle_of_the_table():
    rows = rows_of("certificates.csv")
    row = next(row for row in rows if row["order"] == "2" and row["sigma"] == "2")
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 2, 2, 2)
    p = oracle(space, int(row["seed"]), float(row["sigma"]), size=32)
    assert qd.fingerprint(p) == row["fingerprint"]
    # From P, with no search: far from closed, and right all the same.
    found = qd.certify(pair, p, max_steps=cubic.STEPS_BETWEEN_CHECKS)
    assert found.steps == cubic.STEPS_BETWEEN_CHECKS
    assert found.qdisc <= float(row["upper"])
    assert float(row["lower"]) <= found.upper_bound < 1
    assert qd.discrepancy.cubic_bound(pair, p, found.evidence) == found.upper_bound


@pytest.mark.parametrize("seed", range(5))
def test_projection_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    pair = qd.BleuPair(qd.TextSpace(2, 2), 2, 2, 2)
    problem = problem_of(pair, rng.dirichlet(np.ones(4)))
    size = problem.count.size
    target = rng.normal(size=size)
    costs = problem.entries(problem.tensor)
    rows = np.stack([np.ones(size), costs])
    entries, prices = _projected(target, rows, problem, np.zeros(2))
    # The conditions of optimality, with what each entry counts.
    assert prices[1] >= 0
    assert entries.min() >= 0
    assert problem.count @ entries == pytest.approx(1, abs=1e-11)
    excess = (problem.count * costs) @ entries - problem.budget
    assert excess <= 1e-11
    assert abs(prices[1] * excess) <= 1e-11
    slopes = entries - target + prices @ rows
    assert slopes.min() >= -1e-12
    assert np.abs(entries * slopes).max() <= 1e-12


# -- Exact arithmetic ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_cubic_bound_is_rounded_up(seed):
    rng = np.random.default_rng(seed)
    pair = qd.BleuPair(qd.TextSpace(2, 2), 1, 2, 2)
    p = rng.dirichlet(np.ones(4))
    found = cubic.cubic_bounds(pose(bleu_form(pair), p), pair.table, p, max_steps=40)
    shown, real, n = found.evidence, exact(p), 4
    scores, weights, sets = exact_bleu(pair, real, 2)
    gains = scores - scores @ real
    tensor = np.full((n, n, n), Fraction(0))
    for x, y, z in np.ndindex(n, n, n):
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
    rng, missed = np.random.default_rng(0), 0
    for _ in range(60):
        n = int(rng.integers(2, 6))
        root = rng.normal(size=(n, int(rng.integers(1, n))))
        matrix = root @ root.T * 10.0 ** rng.integers(-8, 9)
        skew = rng.normal(size=(n, n)) * np.abs(matrix).max()
        matrix = matrix + skew - skew.T
        shift = _semidefinite_shift(matrix)
        ones = np.array([[Fraction(int(i == j)) for j in range(n)] for i in range(n)])
        assert is_semidefinite(exact(matrix) + Fraction(shift) * ones)
        assert shift <= 1e-12 * np.abs(matrix).max() * n
        missed += not is_semidefinite(exact(matrix))
    assert missed > 20
