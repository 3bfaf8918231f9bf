"""The doubly nonnegative relaxation against grids, exact arithmetic, a lying solver."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from models import assert_attained, exact, mixtures, oracle

import qdtheory as qd
from qdtheory.bounds import quadratic
from qdtheory.bounds.quadratic import _quadratic_bound
from qdtheory.pairs import quadratic_form

# --- Quadratic diversity --------------------------------------------------------


@pytest.mark.parametrize("lengths", [3, (1, 2, 3)])
def test_diversity_with_one_self_reference_is_quadratic(lengths):
    space = qd.TextSpace(2, lengths)
    pair = qd.BleuPair(space, 2, 3, 1)
    kernel, _ = quadratic_form(pair)
    np.testing.assert_array_equal(kernel, kernel.T)
    for q in np.random.default_rng(0).dirichlet(np.ones(space.num_texts), 5):
        assert float(pair.diversity(q)) == pytest.approx(-q @ kernel @ q, abs=1e-14)


@pytest.mark.claim("N17.11")
@pytest.mark.parametrize("seed", range(5))
def test_any_multipliers_give_a_bound(seed):
    rng = np.random.default_rng(seed)
    grid = mixtures(4, 24)
    for _ in range(20):
        kernel = rng.normal(size=(4, 4))
        kernel = kernel + kernel.T
        scores, p = rng.normal(size=4), rng.dirichlet(np.ones(4))
        budget = p @ kernel @ p
        spent = np.einsum("qi,ij,qj->q", grid, kernel, grid)
        best = (grid @ scores)[spent <= budget].max(initial=p @ scores)
        for scale in (0.0, 0.1, 1.0):
            # Neither positive semidefinite nor of the right sign: both are mended.
            gram = rng.normal(size=(4, 4)) * scale
            price = rng.normal()
            bound = _quadratic_bound(scores, kernel, budget, price, gram + gram.T)
            assert bound >= best


@pytest.mark.claim("N17.12")
def test_an_indefinite_matrix_is_mended_as_it_would_bound_nothing():
    scores, p = np.array([1.0, 0.0]), np.array([0.8, 0.2])
    for scale in (0.5, 1.0, 10.0):
        gram = -scale * np.eye(2)
        wrong = (np.add.outer(scores, scores) / 2 + gram).max()
        assert wrong < scores @ p
        bound = _quadratic_bound(scores, np.eye(2), p @ p, 0.0, gram)
        assert bound >= scores @ p


@pytest.mark.parametrize("seed", range(5))
def test_the_relaxed_bounds_agree_with_a_grid(seed):
    rng = np.random.default_rng(seed)
    kernel = rng.random((3, 3))
    kernel = (kernel + kernel.T) / 2
    pair = qd.KernelPair(kernel)
    p = rng.dirichlet(np.ones(3))
    found = qd.certify(pair, p)
    assert_attained(pair, p, found.q, found.qdisc)
    steps = 500
    grid = mixtures(3, steps)
    spent = np.einsum("qi,ij,qj->q", grid, kernel, grid)
    best = ((grid - p) @ kernel @ p)[spent <= p @ kernel @ p].max(initial=0)
    assert best <= found.upper_bound
    # Rounding to the grid, and back into the constraint, moves a few steps.
    assert abs(best - found.qdisc) <= 5 / steps


@pytest.mark.parametrize("seed", range(3))
def test_bleu_2_with_one_reference_is_beaten_at_every_oracle(seed):
    # Two negative eigenvalues on zero-sum vectors dominate every interior P.
    space = qd.TextSpace(3, 3)
    pair = qd.BleuPair(space, 2, 1, 1)
    p = oracle(space, seed, sigma=1.0)
    found = qd.certify(pair, p)
    assert_attained(pair, p, found.q, found.qdisc)
    assert found.qdisc > 1e-3
    assert found.upper_bound - found.qdisc <= 0.02 * found.qdisc


def test_without_cvxpy_it_says_what_to_install(as_a_user, monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r'pip install "qdtheory\[certify\]"'):
        qd.certify(qd.KernelPair(np.diag([1.0, 2.0])), np.array([0.6, 0.4]))


def test_a_bound_that_a_model_refutes_is_no_bound(monkeypatch):
    def wrong(*args):
        return -1.0

    pair, p = qd.KernelPair(np.diag([1.0, 2.0, 3.0])), np.array([0.2, 0.3, 0.5])
    monkeypatch.setattr(quadratic, "_quadratic_bound", wrong)
    with pytest.raises(RuntimeError, match="more than the bound"):
        qd.certify(pair, p)


# --- Solvers that fail ----------------------------------------------------------


@pytest.mark.parametrize("failure", ["nothing", "error"])
def test_a_semidefinite_program_without_a_solution_leaves_a_loose_bound(
    monkeypatch, failure
):
    import cvxpy as cp

    def solve(self, **kwargs):
        if failure == "error":
            raise cp.SolverError("failed")

    kernel = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
    p = np.array([0.3, 0.3, 0.4])
    best = qd.certify(qd.KernelPair(kernel), p)
    monkeypatch.setattr(cp.Problem, "solve", solve)
    found = qd.certify(qd.KernelPair(kernel), p)
    scores = kernel @ p
    assert found.steps == 0
    assert 0 <= found.qdisc <= best.upper_bound
    assert best.upper_bound <= found.upper_bound <= scores.max() - scores @ p + 1e-12


# --- Exact arithmetic ---------------------------------------------------------------


def root_of(gram):
    """The matrix whose product with its transpose the bound takes."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0))


def exact_quadratic_bound(scores, kernel, budget, price, root):
    u, n = scores, len(scores)
    gram = root @ root.T
    return max(
        (u[i] + u[j]) / 2 + price * (budget - kernel[i, j]) + gram[i, j]
        for i, j in np.ndindex(n, n)
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
def test_the_whole_bound_is_rounded_up(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    kernel = rng.normal(size=(4, 4)) * 10.0 ** rng.integers(-3, 4)
    kernel = (kernel + kernel.T) / 2 + rng.choice([0.0, 1e3])
    p, given = rng.dirichlet(np.ones(4)), []

    def spy(*args):
        given.append(args)
        return _quadratic_bound(*args)

    monkeypatch.setattr(quadratic, "_quadratic_bound", spy)
    found = qd.certify(qd.KernelPair(kernel), p)
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
    assert Fraction(found.upper_bound) >= truth
    rounding = 1e-10 * float(unit) + 1e-14 * np.abs(kernel).max()
    assert found.upper_bound <= float(truth) + rounding
