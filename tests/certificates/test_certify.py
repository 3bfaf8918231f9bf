"""Certified intervals for QDisc against grids, exact solutions and a lying solver."""

import dataclasses
import itertools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from models import assert_attained, oracle

import qdtheory as qd
from qdtheory.certificates import quadratic
from qdtheory.certificates.quadratic import _quadratic_bound, quadratic_interval
from qdtheory.certificates.tails import _phi, _slope, _supports, bleu_1_interval
from qdtheory.pairs.forms import quadratic_form


def mixtures(size, steps):
    """All distributions over `size` points in units of 1 / steps."""
    bars = np.array(list(itertools.combinations(range(steps + size - 1), size - 1)))
    ends = np.full((len(bars), 1), -1), np.full((len(bars), 1), steps + size - 1)
    return (np.diff(np.hstack([ends[0], bars, ends[1]]), axis=1) - 1) / steps


# --- BLEU-1 ---------------------------------------------------------------------


@pytest.mark.claim("N17.9")
@pytest.mark.parametrize("references", [(1, 1), (2, 2), (3, 5)])
def test_bleu_1_depends_on_the_tails_alone(references):
    space, (n, k) = qd.TextSpace(3, 3), references
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.full(27, 0.5), 2)
    counts = qd.ngram_matrix(space, 1)
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
        slack = np.abs(np.diff(_slope(k, x))).max() * (x[1] - x[0]) / 8
        assert -1e-14 <= chords.min() - (a + b * t) <= slack + 1e-14


@pytest.mark.parametrize("seed", range(6))
def test_bleu_1_interval_holds_the_exact_value_for_texts_of_one_token(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 7))
    n, k = int(rng.choice([1, 2, 5, 10])), (1, 2, 3, 5, 10, 30)[seed]
    p = rng.dirichlet(np.full(size, rng.choice([0.5, 1, 3])))
    exact = qd.quality_discrepancy(qd.single_token_bleu_pair(n, k), p).qdisc
    pair = qd.BleuPair(qd.TextSpace(size, 1), 1, n, k)
    found = bleu_1_interval(pair, p)
    assert_attained(pair, p, found.q, found.lower)
    # Both sides evaluate U(P) and V(P), with rounding.
    assert found.lower - 1e-12 <= exact <= found.upper + 1e-12
    assert found.upper - found.lower <= 1e-6


@pytest.mark.parametrize(
    ("length", "references", "steps"),
    [(2, (1, 2), 1000), (2, (3, 4), 1000), (3, (2, 2), 120)],
)
def test_bleu_1_interval_agrees_with_a_grid(length, references, steps):
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
        found = bleu_1_interval(pair, p)
        assert_attained(pair, p, found.q, found.lower)
        assert found.upper - found.lower <= 1e-6
        assert best <= found.upper
        # The best model is within a step of the grid in each of its probabilities,
        # some of them spent on feasibility; scores are in [0, 1].
        assert best >= found.lower - 2 * length / steps


def test_two_references_over_two_words_and_two_tokens_are_compatible():
    # phi(t) + phi(1 - t) is quadratic, so that U is minus the gradient of V.
    pair = qd.BleuPair(qd.TextSpace(2, 2), 1, 2, 2)
    for seed in range(5):
        p = np.random.default_rng(seed).dirichlet(np.ones(4))
        found = bleu_1_interval(pair, p)
        assert found.lower <= found.upper <= 1e-6


@pytest.mark.claim("N17.10")
@pytest.mark.parametrize("seed", range(10))
def test_bleu_1_with_two_references_is_certified(seed):
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, seed, sigma=(0.5, 1.0, 2.0)[seed % 3])
    found = bleu_1_interval(pair, p)
    assert_attained(pair, p, found.q, found.lower)
    assert found.lower > 1e-4
    assert found.upper - found.lower <= 1e-6
    assert found.steps < 100


def test_bleu_1_interval_of_extreme_distributions_is_0():
    # One word, one text, and the most diverse model: none can gain.
    space = qd.TextSpace(4, 3)
    repeated = (space.tokens == space.tokens[:, :1]).all(axis=1) / 4
    for texts, p in (
        (qd.TextSpace(1, 3), np.ones(1)),
        (space, np.eye(64)[17]),
        (space, repeated),
    ):
        found = bleu_1_interval(qd.BleuPair(texts, 1, 2, 2), p)
        # What is added for rounding: some hundred roundings of scores of 1.
        assert 0 <= found.lower <= found.upper <= 1e-12


def test_splits_that_run_out_leave_an_interval_that_holds_the_value():
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 5, 5)
    p = oracle(space, 0, sigma=0.5)
    narrow = bleu_1_interval(pair, p)
    for splits in (0, 1, 4):
        wide = bleu_1_interval(pair, p, max_splits=splits)
        assert wide.steps == splits
        assert wide.upper - wide.lower > 1e-6
        assert wide.lower <= narrow.upper
        assert wide.upper >= narrow.lower


def test_a_start_is_taken_up():
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, 1, sigma=1.0)
    known = bleu_1_interval(pair, p)
    found = bleu_1_interval(pair, p, start=known.q, max_splits=0)
    assert found.lower == pytest.approx(known.lower, abs=1e-15)


def test_a_solver_that_lies_only_widens_the_interval(monkeypatch):
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, 1, sigma=1.0)
    honest = bleu_1_interval(pair, p)
    rng = np.random.default_rng(0)
    solve = scipy.optimize.linprog

    def lie(*args, **kwargs):
        solution = solve(*args, **kwargs)
        size = solution.ineqlin.marginals.size
        solution.ineqlin.marginals *= rng.uniform(0.9, 1.1, size)
        solution.ineqlin.marginals -= 0.01 * rng.random(size)
        return solution

    monkeypatch.setattr(scipy.optimize, "linprog", lie)
    found = bleu_1_interval(pair, p, max_splits=10)
    assert found.upper >= honest.lower
    assert found.upper > honest.upper


def test_bleu_1_says_what_it_takes(as_a_user):
    space, p = qd.TextSpace(2, 2), np.full(4, 0.25)
    with pytest.raises(ValueError, match="order 1 on texts of one length, got order 2"):
        bleu_1_interval(qd.BleuPair(space, 2), p)
    mixed = qd.TextSpace(2, (1, 2))
    with pytest.raises(ValueError, match=r"lengths \(1, 2\)"):
        bleu_1_interval(qd.BleuPair(mixed, 1), np.full(6, 1 / 6))
    pair = qd.BleuPair(space, 1)
    with pytest.raises(ValueError, match="tolerance must be positive, got 0"):
        bleu_1_interval(pair, p, tolerance=0)
    with pytest.raises(ValueError, match="p must have 4 entries"):
        bleu_1_interval(pair, np.full(3, 1 / 3))
    with pytest.raises(ValueError, match="start must sum to 1"):
        bleu_1_interval(pair, p, start=np.full(4, 0.5))


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
def test_quadratic_interval_agrees_with_a_grid(seed):
    rng = np.random.default_rng(seed)
    kernel = rng.random((3, 3))
    kernel = (kernel + kernel.T) / 2
    pair = qd.KernelPair(kernel)
    p = rng.dirichlet(np.ones(3))
    found = quadratic_interval(pair, p)
    assert_attained(pair, p, found.q, found.lower)
    steps = 500
    grid = mixtures(3, steps)
    spent = np.einsum("qi,ij,qj->q", grid, kernel, grid)
    best = ((grid - p) @ kernel @ p)[spent <= p @ kernel @ p].max(initial=0)
    assert best <= found.upper
    # Rounding to the grid, and back into the constraint, moves a few steps.
    assert abs(best - found.lower) <= 5 / steps


@pytest.mark.parametrize("seed", range(3))
def test_membership_is_solved_exactly(seed):
    # BLEU-3 of texts of three tokens asks if the text is the reference: V is NRR.
    space = qd.TextSpace(2, 3)
    p = oracle(space, seed, sigma=2.0)
    exact = qd.quality_discrepancy(qd.single_token_bleu_pair(3, 1), p).qdisc
    found = quadratic_interval(qd.BleuPair(space, 3, 3, 1), p)
    # Clarabel stops at 1e-8, relatively; the local search 1e-9 inside.
    assert exact == pytest.approx(found.lower, abs=1e-7)
    assert exact == pytest.approx(found.upper, abs=1e-7)
    assert found.lower <= exact + 1e-14
    assert found.upper >= exact - 1e-14


def test_branch_and_bound_agrees_with_the_relaxation():
    space = qd.TextSpace(2, 3)
    pair = qd.BleuPair(space, 1, 3, 1)
    for seed in range(3):
        p = oracle(space, seed, sigma=2.0)
        tails, relaxation = bleu_1_interval(pair, p), quadratic_interval(pair, p)
        assert relaxation.upper - relaxation.lower <= 1e-7
        assert tails.lower <= relaxation.upper
        assert relaxation.lower <= tails.upper


def test_a_semidefinite_kernel_admits_no_gain():
    space = qd.TextSpace(3, 2)
    p = oracle(space, 0, sigma=1.0)
    found = quadratic_interval(qd.BleuPair(space, 1, 1, 1), p)
    assert found.lower <= found.upper <= 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_bleu_2_with_one_reference_is_beaten_at_every_oracle(seed):
    # Two negative eigenvalues on zero-sum vectors dominate every interior P.
    space = qd.TextSpace(3, 3)
    pair = qd.BleuPair(space, 2, 1, 1)
    p = oracle(space, seed, sigma=1.0)
    found = quadratic_interval(pair, p)
    assert_attained(pair, p, found.q, found.lower)
    assert found.lower > 1e-3
    assert found.upper - found.lower <= 0.02 * found.lower


def test_quadratic_interval_says_what_it_takes(as_a_user, monkeypatch):
    space, p = qd.TextSpace(2, 2), np.full(4, 0.25)
    with pytest.raises(TypeError, match="one Self-BLEU reference; got BLEU-NSBLEU"):
        quadratic_interval(qd.BleuPair(space, 2, 1, 2), p)
    with pytest.raises(TypeError, match="got CR-NRR"):
        quadratic_interval(qd.CR_NRR, p)
    with pytest.raises(ValueError, match="128 texts at most, got 200"):
        quadratic_interval(qd.KernelPair(np.eye(200)), np.full(200, 1 / 200))
    pair = qd.BleuPair(space, 2, 1, 1)
    with pytest.raises(ValueError, match="p must have 4 entries"):
        quadratic_interval(pair, np.full(3, 1 / 3))
    with pytest.raises(ValueError, match="start must be nonnegative"):
        quadratic_interval(pair, p, start=np.array([-0.5, 0.5, 0.5, 0.5]))
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"pip install 'qdtheory\[certify\]'"):
        quadratic_interval(pair, np.array([0.4, 0.3, 0.2, 0.1]))


# --- Certificates of a search ---------------------------------------------------


def blind(pair, p, quality_range):
    """What a search that finds nothing returns."""
    return qd.Discrepancy(
        qdisc=0.0,
        q=jnp.asarray(p),
        status="lower_bound",
        upper_bound=np.inf,
        quality_range=quality_range,
        most_diverse=jnp.asarray(p),
        dominated_in=None,
        reason="A search.",
        pair=pair,
        p=jnp.asarray(p),
    )


def test_certify_bounds_and_improves():
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, 0, sigma=0.5)
    found = qd.certify(pair, p, blind(pair, p, 0.5))
    bounds = bleu_1_interval(pair, p)
    assert found.status == "certified"
    assert (found.qdisc, found.upper_bound) == (bounds.lower, bounds.upper)
    assert found.drate == pytest.approx(2 * found.qdisc, rel=1e-15)
    assert found.dominated_in == "quality"
    assert found.reason.endswith("improved on it. Bounded by branch and bound.")
    again = qd.certify(pair, p, dataclasses.replace(found, status="lower_bound"))
    assert again.qdisc == pytest.approx(found.qdisc, abs=1e-15)
    assert again.q is found.q
    assert again.status == "certified"
    assert qd.certify(pair, p, blind(pair, p, 0.0)).drate is None


@pytest.mark.claim("N17.13")
def test_certify_leaves_an_interval_where_the_bounds_do_not_meet():
    kernel = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
    pair, p = qd.KernelPair(kernel), np.array([0.3, 0.3, 0.4])
    found = qd.certify(pair, p, blind(pair, p, 1.0))
    assert found.status == "lower_bound"
    assert found.qdisc + 1e-5 < found.upper_bound < np.inf
    assert found.reason.endswith("Bounded by the doubly nonnegative relaxation.")


def test_certify_keeps_what_is_exact_and_names_what_it_takes(as_a_user):
    p = np.array([0.5, 0.3, 0.2])
    exact = qd.quality_discrepancy(qd.LL_NRR, p)
    assert qd.certify(qd.LL_NRR, p, exact) is exact
    space = qd.TextSpace(2, 2)
    pair, p = qd.BleuPair(space, 2, 2, 3), np.full(4, 0.25)
    with pytest.raises(TypeError, match="an upper bound is known for BLEU of order 1"):
        qd.certify(pair, p, blind(pair, p, 1.0))


PAIRS = {
    "kernel": lambda: qd.KernelPair(
        np.array([[1, 0.2, 0], [0.2, 1, 0.1], [0, 0.1, 1]])
    ),
    "BLEU": lambda: qd.BleuPair(qd.TextSpace(3, 1), 1, 2, 2),
    "separable": lambda: qd.SeparablePair(qd.CR, qd.Expression("-x**3")),
    "linear": lambda: qd.LinearPair(jnp.sqrt, qd.NRR),
    "concave": lambda: qd.ConcavePair(jnp.log, qd.negative_repetition_rate),
    "functions": lambda: qd.FunctionPair(qd.coverage_rate, qd.negative_repetition_rate),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_result_is_certified_for_its_own_problem_alone(name):
    p = np.array([0.5, 0.3, 0.2])
    pair, twin = PAIRS[name](), PAIRS[name]()
    found = dataclasses.replace(blind(pair, p, 1.0), status="exact")
    assert qd.certify(pair, p, found) is found
    assert qd.certify(twin, p.copy(), found) is found
    for other, make in PAIRS.items():
        if other != name:
            with pytest.raises(ValueError, match="found must be about this pair"):
                qd.certify(make(), p, found)
    with pytest.raises(ValueError, match="found must be about this p"):
        qd.certify(pair, p[::-1], found)


def test_parameters_tell_pairs_apart():
    # Self-BLEU with 9 references; one entry of a kernel; g of another function.
    p = np.array([0.4, 0.3, 0.2, 0.1])
    space = qd.TextSpace(2, 2)
    found = qd.quality_discrepancy(qd.BleuPair(space, 1, 2, 9), p)
    pair = qd.BleuPair(space, 1, 2, 3)
    with pytest.raises(ValueError, match=r"certify=True\), which does both"):
        qd.certify(pair, p, found)
    certified = qd.quality_discrepancy(pair, p, certify=True)
    assert certified.status == "certified"
    assert certified.upper_bound < 0.0088 < found.qdisc
    kernel = np.eye(4)
    found = blind(qd.KernelPair(kernel), p, 1.0)
    with pytest.raises(ValueError, match="another one, kernel"):
        qd.certify(qd.KernelPair(np.eye(4) * [1, 1, 1, 1 + 1e-15]), p, found)
    found = blind(qd.ConcavePair(lambda p: p, qd.negative_repetition_rate), p, 1.0)
    other = qd.ConcavePair(lambda p: p, qd.negative_repetition_rate)
    with pytest.raises(ValueError, match="the same if they are one object"):
        qd.certify(other, p, found)
    with pytest.raises(ValueError, match="another one, NoneType"):
        qd.certify(other, p, dataclasses.replace(found, pair=None))


def test_what_a_result_says_of_its_model_is_computed_anew():
    space = qd.TextSpace(2, 2)
    pair, p = qd.BleuPair(space, 1, 2, 3), np.array([0.4, 0.3, 0.2, 0.1])
    honest = qd.quality_discrepancy(pair, p, certify=True)
    boast = dataclasses.replace(honest, status="lower_bound", qdisc=0.07)
    found = qd.certify(pair, p, boast)
    assert found.qdisc == pytest.approx(honest.qdisc, abs=1e-12)
    # A model that gains more and is less diverse than P.
    best = np.eye(4)[np.asarray(pair.text_quality(p)).argmax()]
    found = qd.certify(pair, p, dataclasses.replace(boast, q=jnp.asarray(best)))
    assert found.qdisc == pytest.approx(honest.qdisc, abs=1e-8)
    assert pair.diversity(found.q) >= pair.diversity(p)


def test_a_bound_that_a_model_refutes_is_no_bound(monkeypatch):
    def wrong(*args):
        return -1.0

    pair, p = qd.KernelPair(np.diag([1.0, 2.0, 3.0])), np.array([0.2, 0.3, 0.5])
    monkeypatch.setattr(quadratic, "_quadratic_bound", wrong)
    with pytest.raises(RuntimeError, match="more than the bound"):
        quadratic_interval(pair, p)


def test_the_bar_is_a_share_of_the_range_of_scores():
    kernel = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
    p = np.array([0.3, 0.3, 0.4])
    for unit in (1e-6, 1.0, 1e6):
        pair = qd.KernelPair(unit * kernel)
        found = qd.certify(pair, p, blind(pair, p, 1.0))
        assert found.status == "lower_bound"
        assert found.upper_bound - found.qdisc > 0.005 * unit


def test_certified_in_one_call_or_refused_before_the_search(as_a_user, monkeypatch):
    p = np.full(4, 0.25)
    exact = qd.quality_discrepancy(qd.LL_NRR, p, certify=True)
    assert exact.status == "exact"
    monkeypatch.delattr("qdtheory.discrepancy.quality.search")
    pair = qd.BleuPair(qd.TextSpace(2, 2), 2, 2, 3)
    pair = dataclasses.replace(pair, space=qd.TextSpace(2, 2), smoothing="epsilon")
    with pytest.raises(TypeError, match="an upper bound is known for BLEU of order 1"):
        qd.quality_discrepancy(pair, p, certify=True)


# --- Solvers that fail ----------------------------------------------------------


class Nothing:
    """What a solver returns that gave up."""

    x = None


def test_a_linear_program_without_a_solution_leaves_a_loose_bound(monkeypatch):
    pair = qd.BleuPair(qd.TextSpace(2, 3), 1, 2, 3)
    p = oracle(qd.TextSpace(2, 3), 0, sigma=1.0)
    best = bleu_1_interval(pair, p)
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *args, **kwargs: Nothing())
    found = bleu_1_interval(pair, p, max_splits=3)
    scores = np.asarray(pair.text_quality(p))
    assert best.lower <= found.upper <= scores.max() - scores @ p + 1e-12
    found = qd.separable_interval(
        qd.SeparablePair(qd.CR, qd.Expression("-x**3")), p, max_splits=3
    )
    assert 0 <= found.lower <= found.upper <= p.max() - p @ p + 1e-12


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
    best = quadratic_interval(qd.KernelPair(kernel), p)
    monkeypatch.setattr(cp.Problem, "solve", solve)
    found = quadratic_interval(qd.KernelPair(kernel), p)
    scores = kernel @ p
    assert found.steps == 0
    assert 0 <= found.lower <= best.upper
    assert best.upper <= found.upper <= scores.max() - scores @ p + 1e-12


def test_a_local_search_that_fails_leaves_the_start(monkeypatch):
    class Lost:
        x = np.full(3, np.nan)

    kernel = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
    p = np.array([0.3, 0.3, 0.4])
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *args, **kwargs: Lost())
    found = quadratic_interval(qd.KernelPair(kernel), p)
    assert found.lower == 0
    assert found.q.tolist() == p.tolist()
