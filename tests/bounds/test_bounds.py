"""Every result on QDisc: a gain that its model attains, below its upper bound."""

import sys
from collections import Counter
from dataclasses import MISSING, fields
from functools import reduce
from types import SimpleNamespace
from unittest.mock import Mock

import cvxpy
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from formula_texts import SHAPES
from models import assert_attained, draw, oracle, searched
from referees.enumerated_bleu import listed_bleu
from refusals import refused

import qdtheory as qd
from qdtheory import discrepancy
from qdtheory.bounds import cubic, quadratic
from qdtheory.bounds.bounds import sealed_bounds
from qdtheory.bounds.seal import seal
from qdtheory.discrepancy import _bound_of, _cubic, _relaxed
from qdtheory.pairs import bleu_form, form_of, pose

P, SPACE = np.array([0.4, 0.3, 0.2, 0.1]), qd.TextSpace(2, 2)
EXACT, SURE = qd.quality_discrepancy, qd.certify
WORDS, LETTERS, EIGHT = qd.TextSpace(3, 2), qd.TextSpace(6, 1), qd.TextSpace(2, 3)
LONG, BLEU = qd.TextSpace(4, 3), qd.BleuPair(SPACE, 1, 2, 2)
SINGLE = qd.pairs.single_token_bleu_pair


def SQUARE(pair, p):
    """The relaxation of one reference, where `certify` may choose another bound."""
    return _relaxed(pose(bleu_form(pair), p), p)


def CUBE(pair, p):
    return _cubic(pose(bleu_form(pair), p), p)


# --- Above what a search finds, and above every model ---------------------------------


def tails(space, n, k):
    """BLEU-1, by the chances that a text has j or more of a word."""
    counts, length = [Counter(text) for text in space.tokens.tolist()], space.max_length
    places = [(w, j) for w in range(space.vocab_size) for j in range(1, length + 1)]
    held = np.array([[c[w] >= j for w, j in places] for c in counts], float) / length

    def value(q):
        t = length * (q @ held)
        return -(t * (1 - (1 - t) ** k)).sum() / length

    return (lambda p: held @ (1 - (1 - length * (p @ held)) ** n)), value


def listed(space, order, n, k):
    """BLEU, by the list of all texts and references."""
    own, other = (np.asarray(listed_bleu(space, order, m)) for m in (n, k))

    def mean(q, table):
        return reduce(np.matmul, [q] * (table.ndim - 1), table)

    return (lambda p: mean(p, own)), lambda q: -q @ mean(q, other)


def log(x):
    return np.log(x + 1e-300)


TIES, SIMILAR = np.array([0.0, 1.0, 2.0, 2.0]), np.eye(4) + np.eye(4)[[1, 0, 3, 2]] / 2
SIMILAR += np.eye(4)[::-1]
HALVES = np.kron(np.eye(2), np.ones((1, 2)))
# A pair, its N, what bounds it and how closely, and in NumPy the scores at P, and V.
FAMILY = {
    "LL-NRR": (qd.LL_NRR, 5, EXACT, 1e-8, log, lambda q: -q @ q),
    "CR-SE": (qd.CR_SE, 6, EXACT, 1e-8, np.array, lambda q: -q @ log(q)),
    "ties": (
        *(qd.LinearPair(TIES, "-x*log(x) + 1.7*x**2"), 4, EXACT, 1e-8),
        *(lambda p: TIES, lambda q: 1.7 * q @ q - q @ log(q)),
    ),
    "few references": (SINGLE(2, 10), 6, EXACT, 1e-8, *tails(LETTERS, 2, 10)),
    "many": (SINGLE(10, 20), 6, EXACT, 1e-8, *tails(LETTERS, 10, 20)),
    "BLEU-1": (qd.BleuPair(WORDS, 1, 2, 3), 9, SURE, 1e-6, *tails(WORDS, 2, 3)),
    "one": (qd.BleuPair(EIGHT, 2, 1, 1), 8, SURE, 0.02, *listed(EIGHT, 2, 1, 1)),
    "two": (qd.BleuPair(EIGHT, 2, 2, 2), 8, SURE, 1e-6, *listed(EIGHT, 2, 2, 2)),
    "kernel": (
        *(qd.KernelPair(SIMILAR), 4, SURE, 0.1),
        *(lambda p: SIMILAR @ p, lambda q: -q @ SIMILAR @ q),
    ),
    "two classes": (
        qd.ConcavePair(lambda p: jnp.arange(4.0), lambda q: -((HALVES @ q) ** 2).sum()),
        *(4, EXACT, 1e-9, lambda p: np.arange(4.0)),
        lambda q: -((HALVES @ q) ** 2).sum(),
    ),
}
for text in SHAPES:
    g = eval(f"lambda x: ({text}).sum()", {"sqrt": np.sqrt})
    FAMILY[text] = qd.SeparablePair("x", text), 4, SURE, 1e-6, np.array, g


@pytest.mark.claim("N17.8", "N17.10", "N17.22")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FAMILY)
def test_the_bounds_hold_what_a_search_finds_and_every_model(name, seed):
    pair, n, of, width, score, value = FAMILY[name]
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n, (0.5, 1, 3)[seed]))
    found, scores, real = of(pair, p), score(p), value(p)
    q = np.asarray(found.q)
    assert_attained(pair, p, q, found.qdisc)
    assert pair.diversity(q) == pytest.approx(value(q), abs=1e-13)
    assert (q - p) @ scores == pytest.approx(found.qdisc, abs=1e-13)
    assert 0 <= found.gap <= width

    def slope(q):  # to all digits, by a complex step
        return 1e30 * np.array([value(q + 1e-30j * step).imag for step in np.eye(n)])

    # SLSQP stops within 1e-12 of V(P), and a local search within 1e-9.
    best = searched(scores, lambda q: np.array(value(q)), slope, p, rng, 4)
    assert found.qdisc - 1e-6 <= best <= found.upper_bound + 1e-7
    models = rng.dirichlet(np.full(n, 0.5), 1000)
    models = np.vstack([models, 0.9 * q + 0.1 * models, 0.9 * p + 0.1 * models])
    feasible = models[np.array([*map(value, models)]) >= real]
    assert ((feasible - p) @ scores).max(initial=0) <= found.upper_bound + 1e-13
    if (shown := found.evidence) is not None:
        assert discrepancy.cubic_bound(pair, p, shown) == found.upper_bound


# Two routes to one problem, each closed to 1e-6. BLEU of as many tokens as the texts
# have asks if the text is the reference.
ALONE = SINGLE(1, 10)
ROUTES = [
    (SURE, CUBE, qd.BleuPair(WORDS, 1, 2, 2), oracle(WORDS, 1, sigma=2.0)),
    (EXACT, CUBE, qd.BleuPair(SPACE, 2, 2, 2), oracle(SPACE, 1, sigma=2.0)),
    (EXACT, SURE, qd.SeparablePair("LL", ALONE.g), np.array([0.5, 0.3, 0.2, 0, 0])),
    (SURE, SQUARE, qd.BleuPair(EIGHT, 1, 3, 1), oracle(EIGHT, 0, sigma=2.0)),
    (EXACT, SQUARE, qd.BleuPair(EIGHT, 3, 3, 1), oracle(EIGHT, 2, sigma=2.0)),
    *((EXACT, SURE, SINGLE(2, k), draw(k, 6, 0.5 + (k == 30))) for k in (3, 30, 1000)),
    *(
        (EXACT, SURE, qd.BleuPair(LETTERS, 1, n, k), draw(n, 6, spread))
        for n, k, spread in ((1, 1, 3), (5, 3, 0.5), (2, 30, 3))
    ),
]  # fmt: skip


@pytest.mark.claim("N17.6")
@pytest.mark.parametrize(("one", "other", "pair", "p"), ROUTES)
def test_two_routes_to_a_problem_meet(one, other, pair, p):
    found = [of(pair, p) for of in (one, other)]
    assert found[0].status == ("exact" if one is EXACT else "certified")
    for bounds in found:
        assert 0 <= bounds.gap == bounds.upper_bound - bounds.qdisc <= 1e-6
    assert_attained(pair, p, found[1].q, found[1].qdisc)
    # Both sides evaluate U(P) and V(P), with rounding; the local search is 1e-9 inside.
    assert found[0].qdisc <= found[1].upper_bound + 1e-12
    assert found[1].qdisc - 1e-9 <= found[0].upper_bound


REPEATED = (LONG.tokens == LONG.tokens[:, :1]).all(axis=1) / 4
OF_ONE = qd.BleuPair(qd.TextSpace(1, 2), 1, 2, 2)
# One word, one text, and the most diverse model: none can gain. Nor where U is minus
# the gradient of V: over two words and two tokens, and for a semidefinite kernel.
NOTHING = [
    *((SURE, qd.BleuPair(LONG, 1, 2, 2), p, 1e-12) for p in (np.eye(64)[17], REPEATED)),
    *((of, OF_ONE, np.ones(1), 1e-12) for of in (SURE, CUBE)),
    *((SURE, ALONE, p, 1e-8) for p in (np.eye(5)[2], np.full(5, 0.2), np.ones(1))),
    *((SURE, BLEU, draw(seed, 4, 1), 1e-6) for seed in range(3)),
    (SQUARE, qd.BleuPair(WORDS, 1, 1, 1), oracle(WORDS, 0, sigma=1.0), 1e-7),
    # Scores that differ by rounding, or by little more.
    *(
        (SURE, qd.LinearPair(1 + x * draw(0, 4), "-x**2"), draw(1, 4), x + 1e-14)
        for x in (0, 1e-13, 1e-11, 1e-10)
    ),
]  # fmt: skip


@pytest.mark.parametrize(("of", "pair", "p", "rounding"), NOTHING)
def test_where_no_model_gains(of, pair, p, rounding):
    found = of(pair, p)
    assert 0 <= found.qdisc <= found.upper_bound <= rounding


def test_equal_scores_gain_what_p_lacks_and_large_ones_nothing_more():
    # P sums to 1 but for 9e-11, which a distribution is allowed to.
    p = np.array([0.6, 0.3, 0.1]) * (1 - 9e-11)
    found = SURE(qd.LinearPair([1, 1, 1], "-x**2"), p)
    assert 9e-11 * (1 - 1e-6) <= found.upper_bound <= 1e-10
    scores, p = np.array([3.0, 2.0, 1.0]), np.array([0.5, 0.3, 0.2])
    gain = EXACT(qd.LinearPair(scores, "-x**2"), p).qdisc
    pair = qd.ConcavePair(lambda p: jnp.array(scores + 1e9), lambda q: -(q**2).sum())
    assert gain <= EXACT(pair, p).upper_bound <= gain + 1e-5


@pytest.mark.claim("N17.10")
def test_bleu_1_of_64_texts_is_certified_and_fewer_splits_leave_bounds_that_hold_it():
    pair, p = qd.BleuPair(LONG, 1, 5, 5), oracle(LONG, 0, sigma=0.5)
    narrow = SURE(pair, p)
    assert_attained(pair, p, narrow.q, narrow.qdisc)
    assert narrow.gap <= 1e-6
    again = SURE(pair, p, narrow.q, max_steps=0)  # a start is taken up
    assert again.qdisc == pytest.approx(narrow.qdisc, abs=1e-15)
    for number in (0, 1, 4):
        wide = SURE(pair, p, max_steps=number)
        assert wide.steps == number < narrow.steps < 100
        assert wide.qdisc - 1e-9 <= narrow.upper_bound
        assert wide.upper_bound >= narrow.qdisc
        assert wide.gap > 1e-6


# --- Solvers that are wrong -----------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "share"), [(qd.LL_NRR, 1e-5), (qd.CR_SE, 1e-3), (SINGLE(2, 10), 1e-1)]
)
def test_a_model_that_is_not_the_best_is_not_called_exact(pair, share, monkeypatch):
    right, found = EXACT(pair, P), discrepancy._best_model
    assert right.status == "exact"

    def worse(*args):
        q, _, dominated_in, price = found(*args)
        q = (1 - share) * q + share * P
        return q, float((q - P) @ args[0].scores), dominated_in, price

    monkeypatch.setattr(discrepancy, "_best_model", worse)
    wrong = EXACT(pair, P)
    assert wrong.status == "lower_bound"
    assert wrong.qdisc < right.qdisc <= wrong.upper_bound
    # Nor where the bound is below what a model gains.
    monkeypatch.setattr(discrepancy, "_upper_bound", lambda *args: -9.0)
    wrong = EXACT(pair, P)
    assert (wrong.status, wrong.upper_bound) == ("lower_bound", np.inf)
    assert "more than the bound" in wrong.reason


def test_a_bound_below_the_gain_is_rounding_or_an_error(monkeypatch):
    posed = pose(qd.CR_NRR, np.array([0.6, 0.4]))
    found = sealed_bounds(posed, posed.p, -1e-12, "luck", steps=3)
    assert (found.qdisc, found.upper_bound, found.steps) == (0.0, 0.0, 3)
    assert (found.status, found.reason) == ("certified", "Bounded by luck.")
    monkeypatch.setattr(quadratic, "_quadratic_bound", lambda *args: -1.0)
    refused(
        ("more than the bound", sealed_bounds, posed, posed.p, -0.01, "luck"),
        ("more than the bound", SURE, qd.KernelPair(np.diag([1.0, 2, 3, 4])), P),
        error=RuntimeError,
    )


BENT = np.array([[2, 9, 4, 1], [9, 1, 6, 2], [4, 6, 7, 3], [1, 2, 3, 8]]) / 10
BENT, TWO_PEAKS = qd.KernelPair(BENT), qd.SeparablePair("x", SHAPES[0])
SOLVE = scipy.optimize.linprog


def wrong(*args, **kwargs):
    """Multipliers of a linear program that are off by a tenth."""
    solution, rng = SOLVE(*args, **kwargs), np.random.default_rng(0)
    size = solution.ineqlin.marginals.size
    solution.ineqlin.marginals *= rng.uniform(0.9, 1.1, size)
    solution.ineqlin.marginals -= 0.01 * rng.random(size)
    return solution


def ending(x):
    return Mock(return_value=SimpleNamespace(x=x))


LINEAR, LOCAL = "scipy.optimize.linprog", "scipy.optimize.minimize"
FAILED = Mock(side_effect=cvxpy.SolverError("failed"))
BROKEN = [
    (LINEAR, ending(None), qd.BleuPair(SPACE, 1, 2, 3)),
    (LINEAR, wrong, qd.BleuPair(SPACE, 1, 2, 3)),
    (LINEAR, ending(None), qd.SeparablePair("x", "-x**3")),
    (LOCAL, ending(np.full(4, np.nan)), BENT),
    (LOCAL, ending(np.eye(4)[0]), BENT),
    (LOCAL, ending(np.eye(4)[0]), TWO_PEAKS),
    *(("cvxpy.Problem.solve", solver, BENT) for solver in (ending(None), FAILED)),
]


@pytest.mark.parametrize(("target", "solver", "pair"), BROKEN)
def test_a_broken_solver_only_widens_the_interval(target, solver, pair, monkeypatch):
    p = np.array([0.3, 0.3, 0.25, 0.15])
    honest, scores = SURE(pair, p), np.asarray(pose(pair, p).scores)
    monkeypatch.setattr(target, solver)
    found = SURE(pair, p, **({} if pair is BENT else {"max_steps": 3}))
    assert_attained(pair, p, found.q, found.qdisc)
    assert found.gap > honest.gap
    assert found.status == "lower_bound"
    assert 0 <= found.qdisc <= honest.upper_bound
    assert honest.qdisc <= found.upper_bound <= scores.max() - scores @ p + 1e-12


# --- The door of the seals ------------------------------------------------------------


def test_a_right_answer_is_sealed_and_a_wrong_one_told_by_what_is_wrong():
    p = np.array([0.5, 0.3, 0.2])
    posed, found = pose(qd.LL_NRR, p), EXACT(qd.LL_NRR, p)
    q, gain = np.asarray(found.q), found.qdisc
    assert seal(posed, q, gain, found.upper_bound, "exact") == ("exact", "")
    assert seal(posed, q, gain, gain + 1e-3, "exact")[0] == "lower_bound"
    for q, gain, upper, why in (
        ([0.5, 0.6, -0.1], 0.0, 0.0, "no distribution"),
        ([np.nan, 0.3, 0.3], 0.0, 0.0, "no distribution"),
        ([0.52, 0.29, 0.19], 0.01, 0.01, "falls short of the diversity of P"),
        ([0.5, 0.3, 0.2], 0.1, 0.0, "the bound is below the gain"),
        ([0.5, 0.3, 0.2], 0.0, np.nan, "the bound is below the gain"),
    ):
        status, fault = seal(posed, np.array(q), gain, upper, "exact")
        assert status == "lower_bound"
        assert why in fault
    # f = -1/x^2: the score of the rare text is -1e22, and what is missed 1.
    p = np.array([0.5, 0.3, 0.2 - 1e-11, 1e-11])
    posed = pose(qd.LinearPair([3.0, 2.0, 1.0, -1e11], "-x**2"), p)
    for aim in ("exact", "certified"):
        assert seal(posed, p, 0.0, 1e-3, aim)[0] == "lower_bound"
    # No record has a seal by default.
    for record in (discrepancy.Discrepancy, qd.ParetoFrontier):
        assert {x.default for x in fields(record) if x.name == "status"} == {MISSING}


@pytest.mark.parametrize("g", ["-x**2 + 1/x", lambda x: 1 / x, "log(x)"])
def test_a_pole_of_g_at_a_p_of_0_is_named(g):
    p = np.array([0.6, 0.4, 0.0])
    with pytest.raises(ValueError, match="V\\(P\\) must be a finite number"):
        EXACT(qd.SeparablePair("x", g), p)
    # This one is convex, without a pole.
    found = EXACT(qd.SeparablePair("x", "-x*log(1/x)"), p)
    assert found.status == "lower_bound"


# --- What a bound takes ---------------------------------------------------------------

METHOD = {
    "branch and bound": [BLEU, qd.BleuPair(SPACE, 1, 2, 1)],
    "the doubly nonnegative": [BENT, qd.BleuPair(qd.TextSpace(2, (1, 2)), 1, 2, 1)],
    "the cubic relaxation": [qd.BleuPair(qd.TextSpace(2, (1, 2)), 1, 2, 2)],
    "the concave envelope": [qd.SeparablePair("x", "x - x**3/3")],
    "a convex problem": [qd.VendiPair(np.eye(4))],
}


@pytest.mark.parametrize("method", METHOD)
def test_each_form_has_its_bound_which_asks_for_a_p_and_a_model(method, as_a_user):
    for pair in METHOD[method]:
        assert _bound_of(form_of(pair))[1].startswith(method)
    n = 6 if method == "the cubic relaxation" else 4
    p, pair, negative = np.full(n, 1 / n), METHOD[method][0], np.eye(n)[0] * 2 - 1 / n
    refused(
        ("p must ", SURE, pair, np.full(3, 0.3)),
        ("found must be nonnegative", SURE, pair, p, negative),
        (f"found must have {n} entries", SURE, pair, p, np.full(3, 1 / 3)),
        ("tolerance must be positive", lambda: SURE(pair, p, tolerance=0)),
    )


def checked(pair, p):
    zeros = np.zeros((4, 4, 4)), np.zeros((4, 4))
    return discrepancy.cubic_bound(pair, p, cubic.CubicCertificate(0.0, *zeros, 0.0))


def test_what_one_bound_does_not_take(as_a_user, monkeypatch):
    large = qd.BleuPair(qd.TextSpace(3, 4), 2, 2, 2)
    bent = qd.SeparablePair("x", "x**2 - sqrt(x)")
    refused(
        ("128 texts at most, got", SURE, qd.KernelPair(np.eye(200)), draw(0, 200)),
        ("64 texts at most, got", SURE, large, draw(0, 81)),
        ("256 texts at most, got 300", SURE, qd.CR_NRR, draw(0, 300)),
        ("concave near 0", SURE, bent, P),
    )
    code = qd.SeparablePair("x", lambda x: -x)
    refused(
        ("there is no certificate: g is code", SURE, code, P),
        ("got BLEU-NSBLEU", SURE, qd.BleuPair(EIGHT, 2, 2, 3), draw(0, 8)),
        ("two Self-BLEU references; ", checked, qd.BleuPair(SPACE, 2, 2, 3), P),
        ("got CR-NRR", checked, qd.CR_NRR, P),
        error=TypeError,
    )
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    refused(('pip install "qdtheory[certify]"', SURE, BENT, P), error=ImportError)
