"""QDisc and DRate against searches that share nothing with the exact solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import assert_attained, oracle
from scipy.optimize import brentq, minimize

import qdtheory as qd
from qdtheory.certificates.certify import quality_discrepancy
from qdtheory.discrepancy.concave_convex import inflection_point, values_of


def search(scores, g, slope, p, rng, num_starts=25):
    """The best feasible gain by SLSQP from many starts, P among them."""
    n, least, best = p.size, g(p).sum(), 0.0
    constraints = [
        {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": lambda q: np.ones(n)},
        {"type": "ineq", "fun": lambda q: g(q).sum() - least, "jac": slope},
    ]
    starts = [rng.dirichlet(np.full(n, rng.choice([0.2, 1, 3]))) for _ in range(25)]
    corners = 0.9 * np.eye(n) + 0.1 / n
    for start in (p, *corners, *starts[:num_starts]):
        found = minimize(
            lambda q: -q @ scores,
            start,
            jac=lambda q: -scores,
            constraints=constraints,
            bounds=[(0, 1)] * n,
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-15},
        ).x
        q = np.clip(found, 0, 1)
        q /= q.sum()
        if g(q).sum() >= least - 1e-12:
            best = max(best, float((q - p) @ scores))
    return best


def repeated(k):
    """g and g' of single-token NSBLEU with k references."""
    return (
        lambda x: -x + x * (1 - x) ** k,
        lambda x: -1 + (1 - x) ** k - k * x * (1 - x) ** (k - 1),
    )


@pytest.mark.parametrize("seed", range(20))
def test_concave_convex_equals_search_on_single_token_bleu(seed):
    rng = np.random.default_rng(seed)
    size = (3, 4, 5, 6, 8, 11, 16, 21)[seed % 8]
    n, num_references = int(rng.integers(3, 7)), int(rng.choice([1, 2, 5, 10]))
    p = rng.dirichlet(np.full(n, rng.choice([0.5, 1, 3])))
    pair = qd.single_token_bleu_pair(num_references, size - 1)
    found = quality_discrepancy(pair, p)
    best = search(1 - (1 - p) ** num_references, *repeated(size - 1), p, rng)
    # SLSQP stops within 1e-11 of V(P).
    assert found.qdisc == pytest.approx(best, abs=1e-8)
    assert found.dominated_in == "quality"
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize("seed", range(9))
def test_concave_convex_equals_search_with_infinite_slope_and_ties(seed):
    rng = np.random.default_rng(seed)
    a, n = rng.uniform(0.6, 4), int(rng.integers(3, 7))
    p = rng.dirichlet(np.full(n, rng.choice([0.5, 1, 3])))
    scores = [np.log(p), p, rng.choice([0.0, 1.0, 2.0], n)][seed % 3]
    pair = qd.LinearPair(
        lambda p: jnp.asarray(scores), lambda x: jax.scipy.special.entr(x) + a * x**2
    )
    found = quality_discrepancy(pair, p)
    best = search(
        scores,
        lambda x: -x * np.log(np.maximum(x, 1e-300)) + a * x**2,
        lambda x: -np.log(np.maximum(x, 1e-300)) - 1 + 2 * a * x,
        p,
        rng,
    )
    assert found.qdisc == pytest.approx(best, abs=1e-8)
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize(
    ("pair", "g", "slope"),
    [
        (qd.LL_NRR, lambda x: -(x**2), lambda x: -2 * x),
        (qd.CR_SE, lambda x: -x * np.log(x + 1e-300), lambda x: -np.log(x + 1e-300)),
        (
            qd.SeparablePair(qd.LL, qd.Tsallis(1.5)),
            lambda x: 2 * (x - x**1.5),
            lambda x: 2 - 3 * np.sqrt(x),
        ),
        (
            qd.SeparablePair(qd.CR, lambda x: -(x**4) - x**2),
            lambda x: -(x**4) - x**2,
            lambda x: -4 * x**3 - 2 * x,
        ),
    ],
    ids=["LL-NRR", "CR-SE", "LL-Tsallis", "CR-quartic"],
)
def test_concave_equals_search(pair, g, slope):
    rng = np.random.default_rng(1)
    for _ in range(4):
        p = rng.dirichlet(np.ones(int(rng.choice([3, 5]))))
        found = quality_discrepancy(pair, p)
        scores = np.asarray(pair.text_quality(p))
        best = search(scores, g, slope, p, rng, num_starts=3)
        assert found.qdisc == pytest.approx(best, abs=1e-8)
        assert_attained(pair, p, found.q, found.qdisc)
        assert found.status == "exact"
        spread = np.ptp(scores)
        assert 0 <= found.upper_bound - found.qdisc <= 1e-9 * spread
        mean = float(pair.quality(np.full(p.size, 1 / p.size), p))
        assert found.quality_range == pytest.approx(scores.max() - mean, rel=1e-12)
        assert found.drate == pytest.approx(found.qdisc / found.quality_range)


FORMULAS_F = ["3*log(x)", "log(x)/3", ".1*x", "x**2", "1.5*x**.7", "-2/(x + .3)"]
FORMULAS_G = {
    "-.3*x**2": lambda x: (-0.3 * x**2, -0.6 * x),
    "-x**3 - .1*x**2": lambda x: (-(x**3) - 0.1 * x**2, -3 * x**2 - 0.2 * x),
    "-2.5*x*log(x)": lambda x: (-2.5 * x * np.log(x), -2.5 * np.log(x) - 2.5),
    "x**.7/3": lambda x: (x**0.7 / 3, 0.7 / 3 * x**-0.3),
    "7*x - 1.3*x**2 - x**4": lambda x: (
        7 * x - 1.3 * x**2 - x**4,
        7 - 2.6 * x - 4 * x**3,
    ),
    "-exp(1.7*x)": lambda x: (-np.exp(1.7 * x), -1.7 * np.exp(1.7 * x)),
}


@pytest.mark.parametrize("text", FORMULAS_G)
def test_formulas_and_code_equal_a_convex_solver(text):
    """Scores that end in a rounded product, which XLA may fuse with what follows."""
    rng = np.random.default_rng([7, len(text)])
    both = FORMULAS_G[text]

    def value(x):
        return both(np.maximum(x, 1e-300))[0]

    def slope(x):
        return both(np.maximum(x, 1e-300))[1]

    g = qd.Expression(text)
    for f in FORMULAS_F:
        n = int(rng.choice([3, 6]))
        p = rng.dirichlet(np.ones(n)) * 0.999 + 0.001 / n
        formula = qd.Expression(f)
        scores = formula.value(p)
        best = search(scores, value, slope, p, rng, num_starts=0)
        for code in (formula, formula.__call__):
            pair = qd.SeparablePair(code, g)
            found = quality_discrepancy(pair, p)
            assert found.status == "exact"
            # SLSQP keeps V to 1e-11, which the best price turns into quality.
            assert found.qdisc == pytest.approx(best, abs=1e-7 * np.ptp(scores))
            assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize("g", [qd.NRR, qd.Tsallis(1.5), lambda x: -x * jnp.log(x)])
def test_optimum_inside_a_compiled_function_of_the_reader(g):
    # There the scores are computed by the compiled function itself, in its own way.
    rng = np.random.default_rng(8)
    for f in (lambda x: 3 * jnp.log(x), lambda x: x**2 / 3, lambda x: 1.8 * x - x**2):
        pair = qd.SeparablePair(f, g)
        compiled = jax.jit(lambda p, w, pair=pair: qd.pareto_optimum(pair, p, w).q)
        # Two of the best texts are equal in one of the draws.
        for p in (rng.dirichlet(np.ones(5)), np.array([0.3, 0.3, 0.2, 0.1, 0.1])):
            for w in (0.0, -0.1, -3.0, -1e4, -np.inf):
                plain = qd.pareto_optimum(pair, p, w).q
                np.testing.assert_allclose(compiled(p, w), plain, rtol=0, atol=1e-12)


def test_an_optimum_that_would_be_refused_is_nan_inside_a_compiled_function():
    # g is so flat near 0 that 64 bits do not fix Q.
    pair = qd.SeparablePair(qd.CR, lambda x: -(x**30))
    p = np.random.default_rng(0).dirichlet(np.ones(3))
    with pytest.raises(ValueError, match="miss the sum 1 by 1"):
        qd.pareto_optimum(pair, p, -1.0)
    assert np.isnan(jax.jit(lambda p: qd.pareto_optimum(pair, p, -1.0).q)(p)).all()


def test_a_narrow_feature_of_a_formula_is_not_called_exact():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    g = qd.Expression("-x**2 + .1*exp(-((x - .50037)/1e-5)**2)")
    found = quality_discrepancy(
        qd.SeparablePair(qd.Expression("x"), g), p, num_starts=8
    )
    assert found.status == "lower_bound"
    assert found.upper_bound == np.inf
    # What a grid cannot see: this model gains in both.
    q = np.array([0.50037, 0.35, 0.14963, 0])
    assert (q - p) @ p > 0.03
    assert g.value(q).sum() > g.value(p).sum()


def test_code_is_exact_on_the_word_of_its_points():
    found = quality_discrepancy(
        qd.SeparablePair(qd.LL, lambda x: -(x**2)), np.array([0.6, 0.3, 0.1])
    )
    assert found.status == "exact"
    assert "g is strictly concave, so at 1,024 points" in found.reason
    proved = quality_discrepancy(qd.LL_NRR, np.array([0.6, 0.3, 0.1]))
    assert "g is strictly concave, proved" in proved.reason


SHAPES = {
    "concave": ("log(x)", "-x**2"),
    "concave-convex": ("x", "-2*x**2 + x**3"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("c", "d"), [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e6, 1e-6)]
)
def test_exact_in_any_unit(shape, c, d):
    f, g = SHAPES[shape]
    p = np.array([0.45, 0.3, 0.15, 0.1])
    pair = qd.SeparablePair(qd.Expression(f), qd.Expression(g))
    found = quality_discrepancy(pair, p)
    scaled = qd.SeparablePair(
        qd.Expression(f"{c:f}*{f}"), qd.Expression(f"{d:f}*({g})")
    )
    other = quality_discrepancy(scaled, p)
    assert (found.status, other.status) == ("exact", "exact")
    assert other.qdisc / c == pytest.approx(found.qdisc, rel=1e-9)
    assert other.dominated_in == found.dominated_in == "quality"


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_with_constants_lines_and_another_order(shape):
    f, g = SHAPES[shape]
    p = np.array([0.45, 0.3, 0.15, 0.1])
    pair = qd.SeparablePair(qd.Expression(f), qd.Expression(g))
    found = quality_discrepancy(pair, p)
    moved = qd.SeparablePair(
        qd.Expression(f"{f} + 50"), qd.Expression(f"{g} - 30*x + 2")
    )
    other = quality_discrepancy(moved, p)
    assert other.status == "exact"
    # 50 and 30 cost two digits.
    assert other.qdisc == pytest.approx(found.qdisc, rel=1e-8)
    order = np.array([2, 0, 3, 1])
    other = quality_discrepancy(pair, p[order])
    assert other.status == "exact"
    assert other.qdisc == pytest.approx(found.qdisc, rel=1e-12)
    assert np.abs(np.asarray(other.q) - np.asarray(found.q)[order]).max() <= 1e-7


@pytest.mark.parametrize(("g", "h"), [(qd.NRR, 2), (qd.Tsallis(1.5), 1.5)])
def test_a_text_split_in_two_halves_is_as_one_text_of_half_the_repetition(g, h):
    # Of equal scores the halves get the same, as g is concave: 2 g(q / 2) in place of
    # g(q), and for g = -x^2 a half of it.
    scores, p = np.array([0.9, 0.2, 0.5]), np.array([0.5, 0.3, 0.2])
    split = qd.LinearPair(lambda p: jnp.asarray(scores)[jnp.array([0, 0, 1, 2])], g)
    found = quality_discrepancy(split, np.array([0.25, 0.25, 0.3, 0.2]))
    assert found.status == "exact"
    assert abs(found.q[0] - found.q[1]) <= 1e-12
    times = np.array([2.0, 1.0, 1.0])

    def value(x):
        x = np.maximum(x, 0)
        return -times * (x / times) ** h

    def slope(x):
        return -h * (np.maximum(x, 0) / times) ** (h - 1)

    if h == 1.5:  # 2 x - 2 x**1.5, whose linear part is constant
        value, slope = (lambda x, v=v: 2 * v(x) for v in (value, slope))
    best = search(scores, value, slope, p, np.random.default_rng(9), num_starts=3)
    assert found.qdisc == pytest.approx(best, abs=1e-8)


def test_a_uniform_real_distribution_is_the_most_diverse_by_jensen():
    # Near it V says next to nothing in 64 bits; of it the inequality does.
    pair = qd.LinearPair(lambda p: jnp.array([0.0, 1.0, 3.0]), qd.NRR)
    found = quality_discrepancy(pair, np.full(3, 1 / 3))
    assert (found.qdisc, found.status, found.upper_bound) == (0, "exact", 0)
    near = np.array([1 / 3 + 1e-9, 1 / 3, 1 / 3 - 1e-9])
    found = quality_discrepancy(pair, near / near.sum())
    assert found.qdisc <= found.upper_bound <= 1e-6


def test_cr_se_equals_its_closed_form():
    # The frontier of CR-SE is softmax(beta P): match the entropy in beta.
    p = np.random.default_rng(2).dirichlet(np.ones(64))

    def model(beta):
        q = np.exp(beta * (p - p.max()))
        return q / q.sum()

    def entropy(q):
        return -(q * np.log(q)).sum()

    beta = brentq(lambda b: entropy(model(b)) - entropy(p), 1e-6, 1e4, xtol=1e-12)
    gain = (model(beta) - p) @ p
    assert quality_discrepancy(qd.CR_SE, p).qdisc == pytest.approx(gain, abs=1e-13)


@pytest.mark.parametrize("pair", [qd.LL_SE, qd.CR_NRR], ids=lambda pair: pair.name)
def test_compatible_pairs_leave_nothing(pair):
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 64):
        for _ in range(10):
            p = rng.dirichlet(np.ones(n)) * 0.99 + 0.01 / n
            found = quality_discrepancy(pair, p)
            assert found.qdisc <= 1e-12
            assert found.dominated_in is None


def test_optimality_conditions_hold_beyond_the_inflection():
    p = np.random.default_rng(4).dirichlet(np.ones(64))
    for k in (2, 10, 30, 1000):
        pair = qd.single_token_bleu_pair(10, k)
        q = np.asarray(quality_discrepancy(pair, p).q)
        scores = np.asarray(pair.text_quality(p))
        # Repair may leave traces of 1e-17 on the other texts.
        slopes, on = repeated(k)[1](q), q > 1e-12
        # g'(q) is affine in the score on the support and below the line off it.
        fit = np.polynomial.Polynomial.fit(scores[on], slopes[on], 1)
        assert np.abs(fit(scores) - slopes)[on].max() <= 1e-8
        assert fit(scores[~on]).min(initial=0) >= -1e-8
        c = inflection_point(pair.g)
        assert c == pytest.approx(2 / (k + 1), rel=1e-9)
        assert (q > c * (1 + 1e-9)).sum() <= 1


@pytest.mark.parametrize("distance", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("k", [3, 4])
def test_concave_convex_near_the_most_diverse(distance, k):
    # So close to the uniform distribution V depends on the distance alone: the best
    # model lies in the direction of the scores.
    scores, step = np.array([3.0, 5.0, 1.5, 0.0]), np.array([1.0, 0.0, 2.0, -3.0])
    pair = qd.LinearPair(lambda p: jnp.asarray(scores), repeated(k)[0])
    p = 1 / 4 + distance * step
    found = quality_discrepancy(pair, p)
    centred = scores - scores.mean()
    gain = np.linalg.norm(p - 1 / 4) * np.linalg.norm(centred) - centred @ (p - 1 / 4)
    assert found.qdisc == pytest.approx(gain, rel=10 * distance + 1e-5)
    assert found.dominated_in == "quality"
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize("k", [50, 10**6])
def test_concave_convex_where_all_but_one_text_vanish(k):
    # V(P) is within 1e-14 of a point mass's, so that the best text takes all.
    p = np.array([0.4, 0.35, 0.25]) if k > 50 else np.array([0.52, 0.48])
    scores = np.array([1.0, 5.0, 3.0])[: p.size]
    pair = qd.single_token_bleu_pair(1, k)
    found = quality_discrepancy(qd.LinearPair(lambda p: jnp.asarray(scores), pair.g), p)
    assert found.qdisc == pytest.approx(5 - p @ scores, rel=1e-12)
    assert pair.diversity(found.q) >= pair.diversity(p)


def test_never_two_beyond_the_inflection():
    # By search alone: maximisers put at most one text where g is convex.
    rng = np.random.default_rng(5)
    p = np.array([0.55, 0.4, 0.03, 0.02])
    for k in (6, 10, 20):
        g, slope = repeated(k)
        grid = rng.dirichlet(np.full(4, 0.4), 200_000)
        feasible = grid[g(grid).sum(axis=1) >= g(p).sum()]
        two = (feasible > 2 / (k + 1)).sum(axis=1) == 2
        best = search(p, g, slope, p, rng)
        assert two.any()
        assert ((feasible[two] - p) @ p).max() < best


@pytest.mark.parametrize("size", [40, 75, 76, 300, 1001])
def test_most_diverse_collapses_beyond_75(size):
    p = np.random.default_rng(6).dirichlet(np.ones(64))
    pair = qd.single_token_bleu_pair(10, size - 1)
    q = np.asarray(quality_discrepancy(pair, p).most_diverse)
    g, _ = repeated(size - 1)
    # All distributions with two levels and one text on top.
    tops = np.linspace(1 / 64, 1, 200_001)
    best = (g(tops) + 63 * g((1 - tops) / 63)).max()
    assert g(q).sum() >= best - 1e-15
    assert g(q).sum() == pytest.approx(best, abs=1e-8)
    assert q.argmax() == p.argmax() if size > 75 else np.ptp(q) == 0


def test_uniform_real_distribution_is_dominated_in_diversity_only():
    p = np.full(64, 1 / 64)
    pair = qd.single_token_bleu_pair(10, 1000)
    found = quality_discrepancy(pair, p)
    assert found.qdisc <= 1e-15
    assert found.dominated_in == "diversity"
    assert found.drate is None
    assert "range is 0" in found.reason
    assert float(found.q @ p - p @ p) == pytest.approx(0, abs=1e-16)
    assert pair.diversity(found.q) > pair.diversity(p) + 0.02
    # With fewer references the uniform distribution is the most diverse.
    calm = quality_discrepancy(qd.single_token_bleu_pair(10, 10), p)
    assert (calm.qdisc, calm.dominated_in, calm.drate) == (0, None, None)


def test_real_distribution_that_maximises_diversity_on_the_wrong_text():
    pair = qd.LinearPair(lambda p: jnp.array([0.0, 1.0, 3.0]), repeated(10)[0])
    q = np.asarray(quality_discrepancy(pair, np.array([0.2, 0.3, 0.5])).most_diverse)
    assert q.argmax() == 2
    found = quality_discrepancy(pair, q[[2, 1, 0]])
    assert found.qdisc == pytest.approx(3 * (q[2] - q[0]), rel=1e-9)
    assert found.dominated_in == "quality"


def test_diversity_so_low_that_quality_is_unbounded():
    # Scores that have nothing to do with P: the best text alone is diverse enough.
    pair = qd.LinearPair(lambda p: jnp.array([0.0, 1.0, 1.0]), qd.NRR)
    found = quality_discrepancy(pair, np.array([0.9, 0.1, 0.0]))
    assert found.qdisc == pytest.approx(0.9, rel=1e-15)
    np.testing.assert_array_equal(found.q, [0, 0.5, 0.5])
    assert found.drate == pytest.approx(0.9 / (1 - 2 / 3))


def test_zeros_in_p_make_the_quality_range_infinite():
    p = np.array([0.6, 0.3, 0.1, 0.0])
    for g in (qd.NRR, repeated(4)[0]):
        found = quality_discrepancy(qd.SeparablePair(qd.LL, g), p)
        inside = quality_discrepancy(qd.SeparablePair(qd.LL, g), p[:3])
        assert found.qdisc == pytest.approx(inside.qdisc, rel=1e-9)
        assert found.q[3] == 0
        assert found.drate is None
        assert "infinite" in found.reason


def test_one_text():
    for pair in (qd.LL_SE, qd.single_token_bleu_pair(2, 5)):
        found = quality_discrepancy(pair, np.ones(1))
        assert (found.qdisc, found.drate, found.dominated_in) == (0, None, None)


@pytest.mark.parametrize(
    ("g", "message"),
    [
        (lambda x: x**2, "concave up to one point and convex beyond"),
        (lambda x: -x, "linear"),
        (lambda x: jnp.sin(9 * x), "concave up to one point and convex beyond"),
        (lambda x: -jnp.abs(x - 0.3), "linear"),
        (lambda x: jnp.sqrt(x - 0.5), "g' is NaN at 1e-12"),
    ],
    ids=["convex", "linear", "wave", "tent", "undefined"],
)
def test_other_shapes_are_refused(g, message):
    with pytest.raises(ValueError, match=message):
        inflection_point(g)
    pair = qd.SeparablePair(qd.CR, g)
    with pytest.raises(ValueError, match=message):
        quality_discrepancy(pair, np.array([0.6, 0.4]), method="exact")


def test_bad_input(as_a_user):
    p = np.array([0.6, 0.4])
    with pytest.raises(ValueError, match="nonnegative"):
        quality_discrepancy(qd.LL_SE, p - 0.5)
    with pytest.raises(TypeError, match="SeparablePair or LinearPair; got a Ngram"):
        quality_discrepancy(qd.NgramPair(qd.TextSpace(2, 1), 1), p, method="exact")
    for scores in ([-np.inf, 0.0], [np.nan, 0.0], [np.inf, 0.0]):
        pair = qd.LinearPair(lambda p, scores=scores: jnp.array(scores), qd.NRR)
        with pytest.raises(ValueError, match="the quality of P itself must be finite"):
            quality_discrepancy(pair, p)


@pytest.mark.parametrize("slope", ["cubic", "sine"])
def test_three_texts_are_compatible_where_four_are_not(slope):
    if slope == "cubic":
        pair = qd.SeparablePair(qd.CR, lambda x: -((x - 1 / 3) ** 4) / 4)
    else:
        pair = qd.SeparablePair(
            lambda x: jnp.sin(2 * (x - 1 / 3)), lambda x: jnp.log(jnp.cos(x - 1 / 3))
        )
    rng = np.random.default_rng(7)
    worst = max(
        quality_discrepancy(pair, rng.dirichlet(np.ones(3))).qdisc for _ in range(200)
    )
    assert worst <= 1e-11
    four = max(
        quality_discrepancy(pair, rng.dirichlet(np.ones(4))).qdisc for _ in range(60)
    )
    assert four > {"cubic": 0.01, "sine": 1e-4}[slope]


@pytest.mark.parametrize("a", [1.5, 1.0, 0.75])
@pytest.mark.parametrize("f", ["x", "log(x)", "1 + 0*x"])
def test_an_inflection_at_the_uniform_distribution(f, a):
    # -a x^2 + x^3 has it at a / 3; over two texts the first is a constant diversity.
    pair = qd.SeparablePair(qd.Expression(f), qd.Expression(f"-{a}*x**2 + x**3"))
    n = round(3 / a)
    for p in (np.full(n, 1 / n), np.linspace(1, 2, n) / np.linspace(1, 2, n).sum()):
        found = quality_discrepancy(pair, p)
        scores = np.asarray(pair.text_quality(p))
        assert found.status == "exact"
        # V is least at the uniform distribution, so that one text alone is feasible.
        assert found.qdisc == pytest.approx(scores.max() - p @ scores, abs=1e-12)


def test_no_warning_at_an_inflection_where_some_texts_are_left_out():
    # g'' is 0 at 1/4, the uniform distribution on the texts of finite score.
    pair = qd.SeparablePair(qd.LL, qd.Expression("sqrt(x) + x**2"))
    p = np.array([0, 0.3, 0.2, 0.3, 0.2])
    found = quality_discrepancy(pair, p)
    assert found.status == "exact"
    assert_attained(pair, p, found.q, found.qdisc)


@pytest.mark.parametrize("references", [(2, 30), (10, 64), (100, 10_000)])
def test_a_candidate_that_newton_loses_is_no_warning(references):
    # Warnings are errors here: one of the points to polish has no solution nearby.
    pair = qd.single_token_bleu_pair(*references)
    p = oracle(qd.TextSpace(4, 3), 0, 1.0, 32)
    found = quality_discrepancy(pair, p)
    assert_attained(pair, p, found.q, found.qdisc)
    _, slope, bend = values_of(pair.g, np.asarray(found.q))
    # The winner was polished: the conditions hold for one w and b.
    rest = np.delete(np.arange(64), np.asarray(found.q).argmax())
    inside = rest[(np.asarray(found.q)[rest] > 1e-9) & (bend[rest] < -1e-3)]
    scores = np.asarray(pair.text_quality(p))[inside]
    w, b = np.polyfit(scores, slope[inside], 1)
    assert w < 0
    assert slope[inside] == pytest.approx(w * scores + b, abs=1e-8)


def test_the_reason_counts_starts_before_the_polish():
    # BLEU-3 asks for whole texts, so that QDisc is known, and the best few are polished
    # to it; how many starts came close on their own is another question.
    space = qd.TextSpace(2, 3)
    p = np.random.default_rng(0).dirichlet(np.ones(8))
    pair = qd.BleuPair(space, 3, 2, 1)
    exact = qd.quality_discrepancy(pair, p)
    found = qd.quality_discrepancy(pair, p, method="ascent")
    assert found.qdisc == pytest.approx(exact.qdisc, rel=1e-6)
    near = f"before the best few were polished, {found.num_agreeing} came within 1e-4"
    assert near in found.reason
    found = qd.quality_discrepancy(qd.CR_NRR, p, method="ascent")
    assert found.reason == "A search of 192 starts; none gained quality."
