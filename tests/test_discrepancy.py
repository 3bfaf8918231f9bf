"""QDisc: exact, bounded and searched, by referees that share nothing with them."""

import dataclasses
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from families import DIVERSITIES, QUALITIES
from models import assert_attained, entropy, oracle, repeated, searched

import qdtheory as qd
from qdtheory.bounds.seal import seal
from qdtheory.pairs import pose, single_token_bleu_pair
from qdtheory.search import penalty_curve, search, search_frontier

SLOW = pytest.mark.slow
SPACE = qd.TextSpace(4, 3)
P = np.array([0.45, 0.3, 0.15, 0.1])
# Both have a negative eigenvalue on zero-sum vectors; the second leaves a gap.
MEETING = np.array([[1, 0.1, 0.8], [0.1, 0.5, 0.9], [0.8, 0.9, 0.6]])
APART = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
OF_KERNELS = np.array([0.3, 0.3, 0.4])


def searched_in_vain(pair, p, quality_range=1.0):
    """What a search that finds nothing returns."""
    return qd.discrepancy.Discrepancy(
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


def bounded(pair, p):
    return qd.certify(pair, p, searched_in_vain(pair, p))


# --- Exact, against searches and closed forms -----------------------------------------
FORMULAS_F = ["3*log(x)", "log(x)/3", ".1*x", "x**2", "1.5*x**.7", "-2/(x + .3)"]
FORMULAS_G = ["-.3*x**2", "-x**3 - .1*x**2", "-2.5*x*log(x)", "x**.7/3"]
FORMULAS_G += ["7*x - 1.3*x**2 - x**4", "-exp(1.7*x)"]


@pytest.mark.parametrize("text", FORMULAS_G)
@pytest.mark.parametrize(
    "f", [FORMULAS_F[0], *(pytest.param(f, marks=SLOW) for f in FORMULAS_F[1:])]
)
def test_formulas_and_code_equal_a_convex_solver(text, f):
    """Scores that end in a rounded product, which XLA may fuse with what follows."""
    rng = np.random.default_rng([7, len(text), len(f)])
    n = int(rng.choice([3, 5, 6]))
    p = rng.dirichlet(np.ones(n)) * 0.999 + 0.001 / n
    formula, g = qd.Expression(f), sympy.sympify(text)
    scores = formula.value(p)
    size = np.ptp(scores)
    compiled = (sympy.lambdify("x", h) for h in (g, g.diff()))
    value, slope = (lambda x, h=h: h(np.maximum(x, 1e-300)) for h in compiled)
    best = searched(scores, value, slope, p, rng, num_starts=3)
    for code in (formula, formula.__call__):
        pair = qd.SeparablePair(code, qd.Expression(text))
        found = qd.quality_discrepancy(pair, p)
        assert found.status == ("exact" if code is formula else "lower_bound")
        # SLSQP keeps V to 1e-11, which the best price turns into quality.
        assert found.qdisc == pytest.approx(best, abs=1e-7 * size)
        assert_attained(pair, p, found.q, found.qdisc)
        assert 0 <= found.upper_bound - found.qdisc <= 1e-9 * size
        assert found.quality_range == pytest.approx(scores.max() - scores.mean())
        assert found.drate == pytest.approx(found.qdisc / found.quality_range)


def test_a_narrow_feature_of_a_formula_is_not_called_exact():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    g = qd.Expression("-x**2 + .1*exp(-((x - .50037)/1e-5)**2)")
    found = qd.quality_discrepancy(qd.SeparablePair("x", g), p, num_starts=8)
    assert (found.status, found.upper_bound) == ("lower_bound", np.inf)
    # What a grid cannot see: this model gains in both.
    q = np.array([0.50037, 0.35, 0.14963, 0])
    assert (q - p) @ p > 0.03
    assert g.value(q).sum() > g.value(p).sum()


def on_frontier(quality, diversity, p):
    """The conditions of Theorem 2 at Q = P, read off the distinct values of P."""
    f, (*_, slope, slope_at_zero) = QUALITIES[quality], DIVERSITIES[diversity]
    values = np.unique(p[p > 0])
    if values.size == 1:
        return True  # uniform on the modes: the greatest quality
    w = np.diff(slope(values)) / np.diff(f(values))
    fits = np.ptp(w) <= 1e-9 and w[0] <= 0
    if (p == 0).any() and quality == "CR":  # f(0) = 0
        fits = fits and slope_at_zero <= slope(values[0]) - w[0] * values[0] + 1e-12
    return bool(fits)


@pytest.mark.claim("N5.10")
@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("diversity", ["SE", "NRR"])
@pytest.mark.parametrize(
    "weights", ["4321", "7733", "5320", "6220", "5500", "3331", "1111", "1000", "1"]
)
def test_ties_and_zeros_decide_what_a_p_can_show(quality, diversity, weights):
    p = np.array([*map(float, weights)])
    p = p / p.sum()
    found = qd.quality_discrepancy(qd.SeparablePair(quality, diversity), p)
    assert (found.dominated_in is None) == on_frontier(quality, diversity, p)


def test_code_that_is_not_smooth_is_searched():
    p, knots = np.array([0.6, 0.3, 0.1]), jnp.linspace(0.0, 1.0, 3001)
    pair = qd.SeparablePair("LL", lambda x: jnp.interp(x, knots, -(knots**2)))
    found, proved = (qd.quality_discrepancy(x, p) for x in (pair, qd.LL_NRR))
    assert found.status == "lower_bound"
    assert "A search of" in found.reason
    assert found.qdisc == pytest.approx(proved.qdisc, abs=1e-4)


def test_the_uniform_distribution_is_the_most_diverse_by_jensen():
    rng, uniform = np.random.default_rng(4), np.full(64, 1 / 64)
    for g in ("SE", "NRR", qd.Tsallis(1.5)):
        found = qd.quality_discrepancy(qd.LinearPair(rng.normal(size=64), g), uniform)
        assert found.qdisc <= 1e-6  # a root of order two in rounding
        assert found.dominated_in is None
    near = np.array([1 / 3 + 1e-9, 1 / 3, 1 / 3 - 1e-9])
    found = qd.quality_discrepancy(qd.LinearPair([0.0, 1.0, 3.0], "NRR"), near)
    assert found.qdisc <= found.upper_bound <= 1e-6


def test_diversity_so_low_that_quality_is_unbounded():
    # Scores that have nothing to do with P: the best text alone is diverse enough.
    pair = qd.LinearPair([0.0, 1.0, 1.0], "NRR")
    found = qd.quality_discrepancy(pair, np.array([0.9, 0.1, 0.0]))
    assert found.qdisc == pytest.approx(0.9, rel=1e-15)
    np.testing.assert_array_equal(found.q, [0, 0.5, 0.5])
    assert found.drate == pytest.approx(0.9 / (1 - 2 / 3))


def test_zeros_in_p_make_the_quality_range_infinite():
    p = np.array([0.6, 0.3, 0.1, 0.0])
    for g in ("NRR", repeated(4)[0]):
        pair = qd.SeparablePair("LL", g)
        found, inside = (qd.quality_discrepancy(pair, x) for x in (p, p[:3]))
        assert found.qdisc == pytest.approx(inside.qdisc, rel=1e-9)
        assert (found.q[3], found.drate) == (0, None)
        assert "infinite" in found.reason


# --- What no seal depends on: units, constants, the texts' order, spelling ------------
# Of each problem variants: the pair, P, the unit of quality, and the order of texts.
def of_kernel(kernel):
    yield qd.KernelPair(kernel), OF_KERNELS, 1.0, None
    for unit in (1e-6, 1e-3, 1e6):
        yield qd.KernelPair(unit * kernel), OF_KERNELS, unit, None
    for constant in (-5.0, 1e3):
        yield qd.KernelPair(kernel + constant), OF_KERNELS, 1.0, None
    order = np.array([2, 0, 1])
    yield qd.KernelPair(kernel[order][:, order]), OF_KERNELS[order], 1.0, order


UNITS = [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e6, 1e-6)]
# Constants and lines, which cost up to three digits, and factors.
CHANGES = [(c, 0, d, "") for c, d in UNITS]
CHANGES += [(1, 1e3, 1, ""), (1, -0.3, 1, "+ 3"), (1, 0, 1, "+ 1000*x")]


def of_sums(f, g):
    yield qd.SeparablePair(f, g), P, 1.0, None
    for c, constant, d, line in CHANGES:
        changed = f"{c:f}*{f} + {constant}", f"{d:f}*({g}) {line}"
        yield qd.SeparablePair(*changed), P, c, None
    order = np.array([2, 0, 3, 1])
    yield qd.SeparablePair(f, g), P[order], 1.0, order


def of_concave(value):
    scores, order = jnp.array([0.3, -0.1, 0.9, 0.2]), np.array([2, 3, 1, 0])

    def pair(c, d, shift=0.0, order=slice(None), lift=0.0):
        return qd.ConcavePair(
            lambda p: c * (scores[order] + shift), lambda q: d * (value(q) - lift)
        )

    yield pair(1.0, 1.0), P, 1.0, None
    for c, d in UNITS:
        yield pair(c, d), P, c, None
    yield pair(1e6, 1e-6, 1e3, lift=7), P, 1e6, None
    yield pair(1.0, 1.0, order=order), P[order], 1.0, order


def of_bleu(*orders):
    space = qd.TextSpace(2, 3) if orders[0] == 2 else qd.TextSpace(3, 2)
    pair, p = qd.BleuPair(space, *orders), oracle(space, 0, sigma=1.0)
    yield pair, p, 1.0, None
    renamed = np.roll(np.arange(space.vocab_size), 1)[space.tokens]
    yield pair, p[space.index(renamed)], 1.0, None


TWO_PEAKS = "-(x - 0.1)**2*(x - 0.6)**2"
CERTIFIED = partial(qd.quality_discrepancy, method="certified")


@pytest.mark.claim("N17.13")
@pytest.mark.parametrize(
    ("solve", "variants", "status"),
    [
        (bounded, of_kernel(MEETING), "certified"),
        (bounded, of_kernel(APART), "lower_bound"),
        (CERTIFIED, of_kernel(MEETING), "certified"),
        (bounded, of_sums("x", TWO_PEAKS), "certified"),
        (qd.quality_discrepancy, of_sums("log(x)", "-x**2"), "exact"),
        (qd.quality_discrepancy, of_sums("x", "-2*x**2 + x**3"), "exact"),
        (qd.quality_discrepancy, of_concave(entropy), "lower_bound"),  # V is code
        (bounded, of_bleu(1, 2, 3), "certified"),
        (bounded, of_bleu(2, 2, 1), "certified"),
        (bounded, of_bleu(2, 2, 2), "certified"),
    ],
)
def test_units_constants_and_the_order_of_texts_change_no_result(
    solve, variants, status
):
    (first, p, _, _), *others = variants
    found, scale = solve(first, p), np.ptp(np.asarray(first.text_quality(p)))
    assert found.status == status
    assert found.dominated_in == "quality"
    if solve is bounded:
        assert (found.upper_bound > found.qdisc + 1e-5) == (status == "lower_bound")
    # Bounds that are not exact stop somewhere within the tolerance of 1e-6.
    bar = (1e-9 if status == "exact" else 1e-6) * scale
    for pair, p, unit, order in others:
        other = solve(pair, p)
        assert other.status == status
        assert other.qdisc / unit == pytest.approx(found.qdisc, abs=bar / 100)
        assert other.upper_bound / unit == pytest.approx(found.upper_bound, abs=2 * bar)
        assert other.dominated_in == "quality"
        if order is not None:
            moved = np.asarray(other.q) - np.asarray(found.q)[order]
            assert np.abs(moved).max() <= 1e-6


@pytest.mark.parametrize(
    ("pair", "p"),
    [
        (qd.BleuPair(qd.TextSpace(2, 1), 1, 2, 2), np.full(2, 0.5)),
        (qd.BleuPair(qd.TextSpace(2, 2), 2, 2, 2), np.full(4, 0.25)),
        (qd.KernelPair(np.ones((3, 3))), OF_KERNELS),
        (qd.LinearPair(np.ones(3), "-(x - 0.3)**4"), OF_KERNELS),
    ],
)
def test_where_all_texts_score_alike_nothing_is_gained(pair, p):
    found = bounded(pair, p)
    assert found.status == "certified"
    assert found.qdisc <= found.upper_bound <= 1e-13


def test_the_bar():
    p = np.array([0.0, 0.5, 0.5])

    def status(scores, gain, upper):
        problem = pose(qd.LinearPair(scores, qd.functions.NRR), p)
        return seal(problem, p, gain, upper, "certified")[0]

    # No model gains more than half of the range over this P.
    for unit in (1e-9, 1.0, 1e9):
        scores = unit * np.array([-np.inf, 2.0, 3.0])
        assert status(scores, 0.1 * unit, (0.1 + 0.49e-5) * unit) == "certified"
        assert status(scores, 0.1 * unit, (0.1 + 0.51e-5) * unit) == "lower_bound"
    # All texts alike: what is left is rounding.
    assert status(np.ones(3), 0.0, 1e-16) == "certified"
    assert status(np.ones(3), 0.0, 1e-13) == "lower_bound"


# Ways to write x and log x; {x} and {log} stand for them in f and g.
WAYS = {
    "x": ["exp(log(x))", "1/(1/x)", "sqrt(x)*sqrt(x)", "1-(1-x)", "(x+0.001)-0.001"],
    "log": ["-log(1/x)", "log(x**2)/2", "log(x/7)+log(7)", "log(x+x**2)-log(1+x)"],
}
WRITTEN = [
    (f, g, word, way)
    for f, g in [("{log}", "-{x}**2"), ("{x}", "({x} - {x}**1.5 - {x}*{log})/0.5")]
    for word, ways in WAYS.items()
    for way in ways
]


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("f", "g", "word", "way"), WRITTEN)
def test_another_formula_gets_the_plain_answer_or_no_seal(f, g, word, way):
    p, plain = np.array([0.5, 0.25, 0.125, 0.125]), {"x": "x", "log": "log(x)"}
    pairs = [
        qd.SeparablePair(f.format(**words), g.format(**words))
        for words in (plain, plain | {word: f"({way})"})
    ]
    exact, found = (qd.quality_discrepancy(x, p, num_starts=4) for x in pairs)
    assert exact.status == "exact"
    assert exact.qdisc - 1e-7 <= found.upper_bound
    assert found.qdisc <= exact.upper_bound + 1e-7
    if found.status == "exact":
        assert found.qdisc == pytest.approx(exact.qdisc, abs=1e-7)
    judged, other = (qd.check_compatibility(x).compatible for x in pairs)
    assert other in (judged, None)


# --- Certified: for its own problem alone, with all that is said anew -----------------
def test_certify_bounds_and_improves():
    pair, p = qd.BleuPair(SPACE, 1, 2, 2), oracle(SPACE, 0, sigma=0.5)
    found = qd.certify(pair, p, searched_in_vain(pair, p, 0.5))
    bounds = qd.certify(pair, p)
    assert found.status == "certified"
    assert (found.qdisc, found.upper_bound) == (bounds.qdisc, bounds.upper_bound)
    assert found.drate == pytest.approx(2 * found.qdisc, rel=1e-15)
    assert found.dominated_in == "quality"
    assert found.reason.endswith("improved on it. Bounded by branch and bound.")
    again = qd.certify(pair, p, dataclasses.replace(found, status="lower_bound"))
    assert again.qdisc == pytest.approx(found.qdisc, abs=1e-15)
    assert (again.q is found.q, again.status) == (True, "certified")
    assert qd.certify(pair, p, searched_in_vain(pair, p, 0.0)).drate is None


def test_certify_takes_the_limits_of_its_method():
    pair, p = qd.BleuPair(qd.TextSpace(2, (1, 2)), 2, 2, 2), np.full(6, 1 / 6)
    found = qd.certify(pair, p, searched_in_vain(pair, p), max_steps=40)
    assert found.steps == 40
    shown = qd.discrepancy.cubic_bound(pair, p, found.evidence)
    assert shown == found.upper_bound


KINDS = {
    "kernel": lambda: qd.KernelPair(np.diag([1, 2, 1.0]) + 0.1),
    "near kernel": lambda: qd.KernelPair(np.diag([1, 2, 1 + 1e-15]) + 0.1),
    "BLEU": lambda: qd.BleuPair(qd.TextSpace(3, 1), 1, 2, 2),
    "BLEU of ten": lambda: qd.BleuPair(qd.TextSpace(3, 1), 1, 2, 9),
    "separable": lambda: qd.SeparablePair("CR", "-x**3"),
    "another g": lambda: qd.SeparablePair("CR", "-x**2"),
    "linear": lambda: qd.LinearPair([0.7, 0.5, 0.4], "NRR"),
    "concave": lambda: qd.VendiPair(np.eye(3)),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_result_is_certified_for_its_own_problem_alone(name):
    p, pair, twin = np.array([0.5, 0.3, 0.2]), KINDS[name](), KINDS[name]()
    found = dataclasses.replace(searched_in_vain(pair, p), status="exact")
    assert qd.certify(pair, p, found) is found
    assert qd.certify(twin, p.copy(), found) is found
    others = [(make(), found) for other, make in KINDS.items() if other != name]
    for other, given in (*others, (pair, dataclasses.replace(found, pair=None))):
        with pytest.raises(ValueError, match="found must be about this pair"):
            qd.certify(other, p, given)
    with pytest.raises(ValueError, match="found must be about this p"):
        qd.certify(pair, p[::-1], found)


@SLOW
def test_what_a_result_says_of_its_model_is_computed_anew():
    pair = qd.BleuPair(qd.TextSpace(2, 2), 1, 2, 3)
    p = np.array([0.4, 0.3, 0.2, 0.1])
    honest = CERTIFIED(pair, p)
    boast = dataclasses.replace(honest, status="lower_bound", qdisc=0.07)
    assert qd.certify(pair, p, boast).qdisc == pytest.approx(honest.qdisc, abs=1e-12)
    # A model that gains more and is less diverse than P.
    best = np.eye(4)[np.asarray(pair.text_quality(p)).argmax()]
    found = qd.certify(pair, p, dataclasses.replace(boast, q=jnp.asarray(best)))
    assert found.qdisc == pytest.approx(honest.qdisc, abs=1e-8)
    assert pair.diversity(found.q) >= pair.diversity(p)


def test_certified_in_one_call_or_refused_before_the_search(as_a_user, monkeypatch):
    p = np.full(4, 0.25)
    assert CERTIFIED(qd.LL_NRR, p).status == "exact"
    exact = qd.quality_discrepancy(qd.LL_NRR, p)
    assert qd.certify(qd.LL_NRR, p, exact) is exact
    monkeypatch.delattr("qdtheory.discrepancy.search_each")
    pair = qd.BleuPair(qd.TextSpace(2, 2), 2, 2, 3, "epsilon")
    with pytest.raises(TypeError, match="an upper bound is known for BLEU of order 1"):
        CERTIFIED(pair, p)


# --- Searched -------------------------------------------------------------------------
@SLOW
@pytest.mark.parametrize(
    "pair",
    [qd.LL_NRR, qd.CR_SE, *(single_token_bleu_pair(*x) for x in [(2, 4), (5, 20)])],
    ids=lambda pair: pair.name,
)
def test_a_search_equals_the_exact_solution(pair):
    p = np.random.default_rng(0).dirichlet(np.ones(8), 4)
    found = search(pair, p, num_starts=16)
    for i, row in enumerate(p):
        exact = qd.quality_discrepancy(pair, row, method="exact")
        # The ascent is of first order: 1e-5 of the range is its own bar.
        assert found.gain[i] <= exact.qdisc + 1e-12
        assert found.gain[i] == pytest.approx(exact.qdisc, rel=1e-3, abs=1e-7)
        # An error of 1e-4 in Q' changes V by its square, so that V stops there.
        # With many references one text stands out, and the best of them is taken.
        np.testing.assert_allclose(found.most_diverse[i], exact.most_diverse, atol=1e-3)
        assert found.quality_range[i] == pytest.approx(exact.quality_range, rel=1e-3)
        assert_attained(pair, row, found.q[i], found.gain[i])


@SLOW
@pytest.mark.parametrize("num_references", [1, 2])
def test_a_search_is_never_below_the_papers_method(num_references):
    pair = qd.BleuPair(SPACE, 2, num_references, num_references)
    p = np.stack([oracle(SPACE, 0, sigma) for sigma in (0.5, 1.0, 2.0)])
    ours, theirs = (search(pair, p, method=m) for m in ("ascent", "sgd"))
    assert (ours.gain >= 1.05 * theirs.gain).all()
    assert (theirs.gain > 0).all()
    # The last digits come slowly where an optimum is all but flat.
    assert (ours.residual <= 1e-4 * ours.quality_range).all()
    assert (ours.converged == (ours.residual <= 1e-5 * ours.quality_range)).all()
    # At sigma = .5 local optima abound, at 1 and 2 most starts meet.
    assert (ours.num_agreeing[1:] > ours.num_starts / 4).all()

    for found in (ours, theirs):
        for i, row in enumerate(p):
            assert_attained(pair, row, found.q[i], found.gain[i])


def test_nonlinear_quality_and_a_class_jax_does_not_know():
    class Own:
        def quality(self, q, p):
            return -((q - p) ** 2).sum() - (q[0] - q[1]) ** 2

        def diversity(self, q):
            return -(q**2).sum()

    p = np.array([0.6, 0.2, 0.2])
    found = qd.quality_discrepancy(Own(), p, num_starts=16)
    assert (found.status, found.upper_bound) == ("lower_bound", np.inf)
    # Brute force on a grid of the simplex.
    a, b = np.meshgrid(*[np.linspace(0, 1, 1001)] * 2, indexing="ij")
    q = np.stack([a, b, 1 - a - b])
    quality = -((q - p[:, None, None]) ** 2).sum(axis=0) - (q[0] - q[1]) ** 2
    feasible = (q[2] >= 0) & ((q**2).sum(axis=0) <= (p**2).sum())
    best = quality[feasible].max() - float(Own().quality(p, p))
    assert found.qdisc == pytest.approx(best, abs=1e-5)


@SLOW
def test_texts_of_infinite_score_stay_out():
    p = np.array([0.6, 0.3, 0.1, 0.0])
    for method in ("ascent", "sgd"):
        found, inside = (search(qd.LL_NRR, x, method=method) for x in (p, p[:3]))
        assert (found.q[3], found.quality_range) == (0, np.inf)
        assert found.gain == pytest.approx(float(inside.gain), rel=1e-3)


@SLOW
def test_dominated_in_diversity_only():
    # All models have the same quality, and P is not the most diverse.
    diversity = qd.KernelPair(np.diag([1.0, 2.0, 4.0])).diversity
    flat = qd.FunctionPair(lambda q, p: 0.0 * q.sum(), diversity)
    found = qd.quality_discrepancy(flat, np.full(3, 1 / 3), num_starts=8)
    assert (found.qdisc, found.drate, found.dominated_in) == (0, None, "diversity")
    np.testing.assert_allclose(found.q, np.array([4, 2, 1]) / 7, atol=1e-4)


def test_more_diversity_at_the_price_of_quality_is_no_dominance():
    pair = qd.FunctionPair(lambda q, p: q @ jnp.log(p), lambda q: -q @ jnp.log(q))
    found = qd.quality_discrepancy(pair, np.array([0.5, 0.3, 0.2]))
    assert (found.qdisc, found.dominated_in) == (0, None)


def test_starts_agree_on_the_most_diverse_model_whatever_constant_is_added():
    def agreeing(shift):
        pair = qd.FunctionPair(lambda q, p: q @ p, lambda q: shift - q @ q)
        return search(pair, jnp.array([0.5, 0.3, 0.2])).num_agreeing_diverse

    assert agreeing(-50) == agreeing(0) > 0


def test_a_real_distribution_of_greatest_diversity_is_searched():
    pair = qd.FunctionPair(lambda q, p: q[0], lambda q: -((q - 0.25) ** 2).sum())
    assert qd.quality_discrepancy(pair, np.full(4, 0.25)).qdisc == 0


def test_a_batch_equals_its_rows():
    pair = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
    p = np.random.default_rng(3).dirichlet(np.ones(8), 2)
    batch = search(pair, p, num_starts=32)
    for row, gain in zip(p, batch.gain, strict=True):
        # Each row has random starts of its own.
        alone = search(pair, row, num_starts=32)
        assert alone.gain == pytest.approx(float(gain), rel=1e-4)


# --- The searched frontier, and the paper's method ------------------------------------
@SLOW
@pytest.mark.parametrize("pair", [qd.CR_NRR, qd.LL_SE], ids=lambda pair: pair.name)
def test_a_searched_frontier_equals_the_exact_one(pair):
    p = np.random.default_rng(3).dirichlet(np.ones(8))
    # As two functions nothing is known of the pair's form.
    found = search_frontier(qd.FunctionPair(pair.quality, pair.diversity), p, 8)
    exact = qd.pareto_frontier(pair, p, 5000)
    assert (found.status, exact.status, exact.q) == ("lower_bound", "exact", None)
    # Quality is smooth in the root of the diversity given up, so that interpolation
    # errs by the square of a step of 1 / 5000.
    given_up, exact_given_up = (
        np.sqrt(np.maximum(exact.diversity[0] - f.diversity, 0)) for f in (found, exact)
    )
    best = np.interp(given_up, exact_given_up, exact.quality)
    size = float(exact.quality.max() - exact.quality.min())
    assert (found.quality <= best + 1e-6 * size).all()
    assert (found.quality >= best - 1e-3 * size).all()
    weights = np.interp(given_up[1:-1], exact_given_up, exact.w)
    assert np.asarray(found.w[1:-1]) == pytest.approx(weights, rel=0.05)
    ends = found.w[0], found.w[-1], found.alpha[0], found.alpha[-1]
    assert [*map(float, ends)] == [0, -np.inf, 0, 1]
    assert found.residual <= 1e-3 * size
    said = np.stack([found.quality, found.diversity], axis=1)
    expected = [[pair.quality(q, p), pair.diversity(q)] for q in found.q]
    np.testing.assert_allclose(said, expected, atol=1e-14)


def test_the_papers_curve_is_sgd_with_momentum():
    # A plain loop with gradients by hand; from this P the start has V(Q) = V(P).
    p = np.array([0.5, 0.25, 0.125, 0.125])
    gains = np.asarray(penalty_curve(qd.LL_NRR, p))
    assert gains.shape == (3, 5000)
    for rate, curve in zip((0.1, 1.0, 10.0), gains):
        logits, velocity, expected = np.log(p), np.zeros(4), []
        for _ in range(200):
            q = np.exp(logits) / np.exp(logits).sum()
            gain, s = (q - p) @ np.log(p), p @ p - q @ q
            expected.append(gain if gain > 0 and s > 0 else np.nan)
            share = {-1: 1.0, 0: 0.5, 1: 0.0}[int(np.sign(s))]
            slope = -np.log(p) + share * 2 * 2 * q
            velocity = 0.9 * velocity + q * (slope - q @ slope)
            logits = logits - rate * velocity
        assert curve[:200] == pytest.approx(expected, rel=1e-9, nan_ok=True)
    found = search(qd.LL_NRR, p, method="sgd")
    assert float(found.gain) == pytest.approx(np.nanmax(gains), rel=1e-12)
    best = np.nan_to_num(gains).max(axis=1).argmax()
    assert float(found.learning_rate) == (0.1, 1.0, 10.0)[best]
