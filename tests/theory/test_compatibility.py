"""Verdicts against Theorem 3, its known exceptions, and witnesses checked by hand."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from scipy.optimize import linprog

import qdtheory as qd
from qdtheory.pairs.formulas import formula_of
from qdtheory.theory.compatibility import check_compatibility
from qdtheory.theory.theorem_3 import fit_theorem_3, refute_theorem_3


def beta_quality(a):
    return lambda x: (x ** (a - 1) - 1) / (a - 1)


def separable(f, g):
    return qd.SeparablePair(qd.Expression(f), qd.Expression(g))


def itakura_saito():
    return qd.SeparablePair(lambda x: -1 / x, jnp.log, "Itakura-Saito")


def cubic_pair():
    return separable("x", "-(x - 1/3)**4/4")


def hyperbolic_pair():
    """f = sinh 2t and g' = -tanh t on a plane cubic's arc, t = x - 1/3."""
    return separable(
        "exp(2*x - 2/3) - exp(2/3 - 2*x)", "-log(exp(x - 1/3) + exp(1/3 - x))"
    )


def sine_pair():
    """The same with sin 2t and -tan t, known by code."""
    return qd.SeparablePair(
        lambda x: jnp.sin(2 * (x - 1 / 3)), lambda x: jnp.log(jnp.cos(x - 1 / 3))
    )


def bumpy_pair():
    """g'' = -f' exactly, but f falls on a narrow stretch beyond .62."""
    width = 0.01

    def f(x):
        return x + 0.25 * jnp.exp(-(((x - 0.62) / width) ** 2))

    def g(x):
        area = jnp.sqrt(jnp.pi) / 2 * jax.scipy.special.erf((x - 0.62) / width)
        return -(x**2) / 2 - 0.25 * width * area

    return qd.SeparablePair(f, g)


def assert_beats(pair, witness, quality=None, diversity=None):
    """The witness holds, with the metrics computed by plain NumPy if given."""
    p, q = np.asarray(witness.p), np.asarray(witness.q)
    for x in (p, q):
        assert x.min() >= 0
        assert abs(x.sum() - 1) <= 1e-12
    quality = quality or (lambda q, p: float(pair.quality(q, p)))
    diversity = diversity or (lambda q: float(pair.diversity(q)))
    gains = quality(q, p) - quality(p, p), diversity(q) - diversity(p)
    assert min(gains) > 0
    # Two sums of the same terms in another order.
    np.testing.assert_allclose(
        gains, (witness.quality_gain, witness.diversity_gain), rtol=1e-3, atol=1e-13
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "w0", "b0"),
    [
        (qd.LL_SE, -1, -1),
        (qd.CR_NRR, -2, 0),
        (qd.SeparablePair(qd.CR, qd.SDI), -2, 1),
        (qd.single_token_bleu_pair(1, 1), -2, 0),
        (itakura_saito(), -1, 0),
        (qd.SeparablePair(beta_quality(1.7), qd.Tsallis(1.7)), -1.7, -1),
        (qd.SeparablePair(beta_quality(3.0), qd.Tsallis(3.0)), -3, -1),
        (
            qd.SeparablePair(lambda x: 5 * x - 2, lambda x: 3 - 4 * x * x + x),
            -1.6,
            -2.2,
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_matched_pairs_are_compatible(pair, w0, b0):
    formulas = None not in (formula_of(pair.f), formula_of(pair.g))
    for num_texts in (None, 2, 3, 4, 50):
        if not formulas:
            # Points prove nothing of code, however well they fit.
            verdict = check_compatibility(pair, num_texts=num_texts)
            assert verdict.compatible is None
            assert verdict.reason.startswith("No deviation found")
            assert verdict.w0 == pytest.approx(w0, rel=1e-9)
        stated = None if formulas else "matched"
        verdict = check_compatibility(pair, num_texts=num_texts, stated=stated)
        assert verdict.compatible
        assert ("stated by the caller" in verdict.reason) == (not formulas)
        assert verdict.w0 == pytest.approx(w0, rel=1e-9)
        assert verdict.b0 == pytest.approx(b0, rel=1e-9, abs=1e-9)
        assert verdict.alpha == pytest.approx(w0 / (w0 - 1), rel=1e-9)
        assert verdict.exact is not None or verdict.residual <= 1e-9
        assert "Theorem 3" in verdict.reason
        assert "interior P" in verdict.reason
        assert "any number of texts" in verdict.reason
        assert "strictly concave" in verdict.reason
    rng = np.random.default_rng(0)
    for _ in range(5):
        # Psi is greatest at P, against models near and far.
        p = jnp.asarray(rng.dirichlet(np.ones(6)) * 0.94 + 0.01)
        for q in (*rng.dirichlet(np.ones(6), 20), 0.99 * p + 0.01 / 6):
            q = jnp.asarray(q) * 0.94 + 0.01
            psi = [
                verdict.alpha * pair.quality(x, p)
                + (1 - verdict.alpha) * pair.diversity(x)
                for x in (p, q)
            ]
            assert psi[0] >= psi[1]


@pytest.mark.parametrize(
    "pair",
    [
        qd.LL_NRR,
        qd.CR_SE,
        qd.single_token_bleu_pair(1, 2),
        qd.single_token_bleu_pair(2, 1),
        qd.single_token_bleu_pair(10, 10),
        qd.SeparablePair(qd.LL, qd.Tsallis(1.5)),
        bumpy_pair(),
        cubic_pair(),
        sine_pair(),
    ],
    ids=lambda pair: pair.name,
)
def test_other_separable_pairs_are_beaten(pair):
    verdict = check_compatibility(pair)
    assert verdict.compatible is False
    assert verdict.w0 is None
    assert_beats(pair, verdict.witness)


def test_witnesses_hold_in_plain_numpy():
    def repetition(q):
        return -(q**2).sum()

    def likelihood(q, p):
        return q @ np.log(p)

    witness = check_compatibility(qd.LL_NRR).witness
    assert_beats(qd.LL_NRR, witness, likelihood, repetition)


@pytest.mark.slow
def test_perturbed_diversities_are_beaten():
    """A smooth change of g by 1 % of its size, as a formula."""
    rng = np.random.default_rng(1)
    x = np.linspace(0.01, 1, 100)
    waves = ["exp(-{k}*x)", "log(1 + {k}*x)", "(x - 0.5)**{k}", "1/(1 + {k}*x)"]
    for i in range(48):
        f, base = (("log(x)", "-x*log(x)"), ("x", "-x**2"))[i % 2]
        # Not quadratic: with f = x that would fit again.
        wave = waves[i // 2 % 4].format(k=rng.integers(3, 9))
        size = np.ptp(qd.Expression(base).value(x)) / np.ptp(
            qd.Expression(wave).value(x)
        )
        scale = f"{0.01 * size * rng.choice([-1, 1]):.6f}"
        pair = separable(f, f"{base} + ({scale})*({wave})")
        verdict = check_compatibility(pair)
        assert verdict.compatible is False
        assert_beats(pair, verdict.witness)


def test_perturbations_known_by_code_only_are_beaten():
    for base in (qd.SE, qd.NRR):
        f = qd.LL if base is qd.SE else qd.CR
        pair = qd.SeparablePair(
            f, lambda x, base=base: base(x) + 0.01 * jnp.sin(3 * jnp.pi * x)
        )
        verdict = check_compatibility(pair)
        assert verdict.compatible is False
        assert_beats(pair, verdict.witness)


@pytest.mark.parametrize(
    "pair", [cubic_pair(), hyperbolic_pair(), sine_pair()], ids=["cubic", "exp", "sine"]
)
def test_two_and_three_texts_admit_more_pairs(pair):
    for num_texts in (2, 3):
        verdict = check_compatibility(pair, num_texts=num_texts)
        if formula_of(pair.f) is None:
            assert verdict.compatible is None
            assert verdict.reason.startswith("No deviation found")
        else:
            assert verdict.compatible
            assert "N = 4" in verdict.reason
    # Brute force at N = 3: no model on a fine grid of the simplex beats P.
    rng = np.random.default_rng(2)
    i, j = np.meshgrid(np.arange(61), np.arange(61))
    i, j = i[i + j <= 60], j[i + j <= 60]
    grid = jnp.asarray(np.stack([i, j, 60 - i - j], axis=1) / 60)
    diversity = jax.vmap(pair.diversity)(grid)
    for p in rng.dirichlet(np.ones(3), 10):
        quality = jax.vmap(lambda q, p=p: pair.quality(q, p))(grid)
        beats = qd.dominance(
            quality, diversity, pair.quality(p, p) + 1e-12, pair.diversity(p) + 1e-12
        )
        assert not beats.either.any()


def test_two_texts_and_an_irrational_pair():
    # Quality that falls: the less probable text is "better", and evenness is free.
    pair = qd.SeparablePair(lambda x: -x, qd.NRR)
    verdict = check_compatibility(pair, num_texts=2)
    assert verdict.compatible is False
    assert_beats(pair, verdict.witness)


def test_verdict_at_one_p():
    p = np.array([0.3, 0.3, 0.2, 0.2])  # two values: every pair fits a line there
    verdict = check_compatibility(qd.LL_NRR, p)
    assert verdict.compatible
    assert "at the given P" in verdict.reason
    spread = check_compatibility(qd.LL_NRR, np.array([0.4, 0.3, 0.2, 0.1]))
    assert spread.compatible is False
    np.testing.assert_array_equal(spread.witness.p, [0.4, 0.3, 0.2, 0.1])


def test_narrow_bump_at_the_known_p():
    verdict = check_compatibility(bumpy_pair(), np.array([0.627, 0.3, 0.073]))
    assert verdict.compatible is False
    assert "Second-order" in verdict.reason
    assert_beats(bumpy_pair(), verdict.witness)


def kernel_pair(kernel):
    kernel = jnp.asarray(kernel)
    return qd.FunctionPair(lambda q, p: q @ kernel @ p, lambda q: -(q @ kernel @ q))


def test_kernel_pairs_by_second_order():
    # One-reference kernels have antiparallel gradients everywhere.
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5))
    safe = check_compatibility(kernel_pair(root @ root.T), num_texts=5)
    assert safe.compatible is None  # the tests cannot settle it, and say so
    assert "proves nothing" in safe.reason
    assert "locally optimal" in safe.reason
    # Two negative eigenvalues on zero-sum vectors: beaten everywhere.
    zero_sum = np.linalg.svd(np.ones((1, 5)))[2][1:]
    bad = zero_sum.T @ np.diag([1.0, 2.0, -1.0, -0.5]) @ zero_sum + 1
    verdict = check_compatibility(kernel_pair(bad), rng.dirichlet(np.full(5, 5.0)))
    assert verdict.compatible is False
    assert_beats(kernel_pair(bad), verdict.witness)


def test_ngram_pairs_are_settled_at_a_given_p():
    space = qd.TextSpace(vocab_size=2, lengths=3)
    p = np.random.default_rng(4).dirichlet(np.ones(8))
    assert check_compatibility(qd.NgramPair(space, 2), p).compatible
    mismatched = qd.NgramPair(space, 2, qd.LL_NRR)
    verdict = check_compatibility(mismatched, p)
    assert verdict.compatible is False
    assert_beats(mismatched, verdict.witness)


def test_first_order_witness_agrees_with_linear_programming():
    # A direction that improves both to first order exists iff this program has a
    # positive optimum; the verdict must find one exactly then.
    rng = np.random.default_rng(5)
    for pair in (qd.LL_NRR, qd.CR_SE, qd.CR_NRR):
        p = rng.dirichlet(np.ones(5))
        u = np.asarray(jax.grad(lambda q, pair=pair, p=p: pair.quality(q, p))(p))
        v = np.asarray(jax.grad(pair.diversity)(p))
        # Maximise t subject to u.d >= t, v.d >= t, sum d = 0, |d_i| <= 1.
        rows = np.array([[*-u, 1.0], [*-v, 1.0]])
        best = linprog(
            [0] * 5 + [-1.0], rows, [0, 0], [[1.0] * 5 + [0]], [0],
            bounds=[(-1, 1)] * 5 + [(None, None)],
        )  # fmt: skip
        beaten = -best.fun > 1e-9
        assert (check_compatibility(pair, p).compatible is False) == beaten


# --- formulas: proofs and refutations ------------------------------------------------

PROVED = {
    # (f, g): w0, b0 and the divergence's terms, by hand.
    ("log(x)", "-x*log(x)"): ("-1", "-1", lambda q, p: q * np.log(q / p) / 2),
    ("x", "3 - 4*x - x**2/3"): ("-2/3", "-4", lambda q, p: (q - p) ** 2 / 5),
    ("-1/x", "log(x)"): (
        "-1", "0", lambda q, p: (q / p - np.log(q / p) - 1) / 2,
    ),
    ("log(x)/log(2)", "-x*log(x)"): (
        "-log(2)", "-1", lambda q, p: q * np.log(q / p) / (1 + np.log(2)),
    ),
    ("x**2", "3*x**2 - (x + 1)**3"): (
        "-3", "-3", lambda q, p: (q - p) ** 2 * (q + 2 * p) / 4,
    ),
    ("x**0.5", "-x**1.5"): (
        "-3/2", "0", lambda q, p: (q**1.5 - p**1.5 - 1.5 * p**0.5 * (q - p)) * 2 / 5,
    ),
    ("log(x/(1 - x))", "-x*log(x) - (1 - x)*log(1 - x)"): (
        "-1", "0",
        lambda q, p: (q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))) / 2,
    ),
    # In float64, f' and g' drown in the rounding of terms of size 1e12.
    ("(x + 1000000)**3 - 1000000**3 - 3*x*1000000*(x + 1000000)", "-x**4/4"): (
        "-1", "0", lambda q, p: (q**4 / 4 - p**4 / 4 - p**3 * (q - p)) / 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("formulas", "expected"), PROVED.items())
def test_formulas_are_proved_with_exact_constants(formulas, expected):
    verdict = check_compatibility(separable(*formulas))
    w0, b0, terms = expected
    exact_w0 = sympy.sympify(w0)
    assert verdict.compatible
    assert "w0 < 0 (proved symbolically)" in verdict.reason
    assert "on (0, 1) (proved by interval arithmetic)" in verdict.reason
    assert (verdict.exact["w0"], verdict.exact["b0"]) == (w0, b0)
    alpha = sympy.sympify(verdict.exact["alpha"])
    assert sympy.simplify(alpha - exact_w0 / (exact_w0 - 1)) == 0
    for name in ("w0", "b0", "alpha"):
        assert getattr(verdict, name) == float(sympy.sympify(verdict.exact[name]))
    assert verdict.residual is None
    # The text of the divergence is the sum of these terms, near P and far from it.
    rng = np.random.default_rng(3)
    for p, q in rng.dirichlet(np.ones(5), (20, 2)):
        for model in (q, 0.999 * p + 0.001 * q):
            assert evaluate_text(verdict.divergence, model, p) == pytest.approx(
                terms(model, p).sum(), abs=1e-12
            )


def evaluate_text(divergence, q, p):
    """The number that the printed formula has, read by SymPy."""
    head, body = divergence.split("sum_i [", 1)
    body, definitions = body.rsplit("]", 1)
    x = sympy.Symbol("x")
    functions = {}
    for name, text in re.findall(r"([fF])\(x\) = (.*?)(?=, F|$)", definitions):
        functions[name] = sympy.Lambda(x, sympy.sympify(text))
    body = re.sub(r"\) \(", ") * (", body)
    term = sympy.lambdify(
        sympy.symbols("Q_i P_i"), sympy.sympify(body, locals=functions)
    )
    return float(sympy.sympify(head + "1")) * sum(map(term, q, p))


def test_what_sympy_cannot_prove_stays_undecided():
    # Too many terms to expand: g = -h**8 and f = (h**8)'.
    h = "(x + log(1 + x) + exp(x) + sqrt(1 + x) + 1/(1 + x))"
    slope = "(1 + 1/(1 + x) + exp(x) + 0.5/sqrt(1 + x) - 1/(1 + x)**2)"
    verdict = check_compatibility(separable(f"8*{h}**7*{slope}", f"-{h}**8"))
    assert verdict.compatible is None
    assert verdict.reason.startswith("No deviation found")
    assert "no symbolic proof" in verdict.reason


@pytest.mark.parametrize(
    ("f", "g", "why"),
    [
        ("log(x)", "-x**2", "g''/f' differs between x = 137/1000 and x = 207/500"),
        ("x", "-x**2 + 1e-20*x**3", "g''/f' differs between"),
        ("-x", "-x**2", "f falls at x = 137/1000"),
        ("x", "x**2", "g is convex at x = 137/1000"),
        ("log(x)", "-x*log(x)", None),
        ("x", "x", None),
        (
            "x",
            "-x**2/2 + ((x - 0.137)*(x - 0.414)*(x - 0.691)*(x - 0.953))**3",
            None,  # the four points show nothing
        ),
    ],
)
def test_refutations_by_intervals(f, g, why):
    found = refute_theorem_3(qd.Expression(f), qd.Expression(g))
    assert (found is None) == (why is None)
    if why is not None:
        assert found.startswith(why)


def test_a_refuted_pair_without_a_witness_stays_open():
    verdict = check_compatibility(separable("x", "-x**2 + 1e-9*x**3"))
    assert verdict.compatible is None
    assert "by interval arithmetic" in verdict.reason


# --- what derivatives at points do not show ------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [
        qd.SeparablePair(lambda x: x + (x > 0.5), qd.NRR, "f jumps"),
        qd.SeparablePair(
            qd.CR, lambda x: -(x**2) - jnp.maximum(x - 0.5, 0), "g' jumps"
        ),
        qd.SeparablePair(lambda x: 1.0 * (x > 0.5), qd.NRR, "f is a step"),
        qd.SeparablePair(qd.CR, lambda x: -jnp.abs(x - 1 / 3), "g is a tent"),
    ],
    ids=lambda pair: pair.name,
)
def test_jumps_between_pieces_that_fit_are_beaten(pair):
    verdict = check_compatibility(pair)
    assert verdict.compatible is False
    assert_beats(pair, verdict.witness)


@pytest.mark.parametrize("num_texts", [None, 2, 3])
def test_a_jump_of_g_alone_is_seen(num_texts):
    # One text gains a unit of diversity beyond .7: V has its maximum there.
    pair = qd.SeparablePair(qd.CR, lambda x: -(x**2) + (x > 0.7))
    verdict = check_compatibility(pair, num_texts=num_texts)
    assert verdict.compatible is None
    assert "g jumps near x = 0.701" in verdict.reason
    assert "Pareto-optimal" not in verdict.reason
    p, q = jnp.array([0.6, 0.4, 0, 0]), jnp.array([0.8, 0.2, 0, 0])
    assert pair.quality(q, p) > pair.quality(p, p)
    assert pair.diversity(q) > pair.diversity(p)


def test_an_f_that_is_flat_over_a_stretch():
    # P ties with others there: the sum is no divergence, although g'' = -f'.
    flat = qd.SeparablePair(
        lambda x: jnp.maximum(x, 0.3),
        lambda x: jnp.where(x < 0.3, -0.3 * x, -(x**2 + 0.09) / 2),
    )
    verdict = check_compatibility(flat)
    assert verdict.compatible is None
    assert "f does not increase strictly near" in verdict.reason


def narrow_bump():
    """f falls over a width of 1e-4 only, and g'' = -f' exactly."""
    width = "(1 + ((x - 0.6205)*10000)**2)"
    return f"x - 20*(x - 0.6205)/{width}**2", f"-x**2/2 - 0.0000001/{width}"


@pytest.mark.slow
def test_a_fall_between_the_points_of_the_grid_is_found():
    pair = separable(*narrow_bump())
    verdict = check_compatibility(pair)
    assert verdict.compatible is False
    assert "f falls at x = 0.620" in verdict.reason
    assert_beats(pair, verdict.witness)


@pytest.mark.parametrize("scale", [1e-20, 1e-9, 1e9])
def test_scales_of_the_metrics_do_not_matter(scale):
    for f, g in ((qd.LL, qd.NRR), (qd.LL, qd.SE)):
        pair = qd.SeparablePair(
            lambda x, f=f: scale * f(x), lambda x, g=g: g(x) / scale
        )
        verdict = check_compatibility(pair)
        assert verdict.compatible is (None if g is qd.SE else False)
        if g is qd.NRR:
            witness = verdict.witness
            assert_gains_in_fractions(witness)


def assert_gains_in_fractions(witness):
    """Of LL-NRR, by 40 digits."""
    p, q = ([sympy.Rational(float(x)) for x in side] for side in (witness.p, witness.q))
    p[-1], q[-1] = 1 - sum(p[:-1]), 1 - sum(q[:-1])
    assert sum(((b - a) * sympy.log(a)).evalf(40) for a, b in zip(p, q)) > 0
    assert sum(a * a - b * b for a, b in zip(p, q)) > 0


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-8, 1e-9, 1e-12])
def test_rounding_is_no_witness(spread):
    # Compatible, with gradients that cancel down to rounding and large values.
    rng = np.random.default_rng(6)
    for scale in (1e-15, 1.0, 1e10):
        p = 1 + spread * rng.normal(size=6)
        pair = qd.FunctionPair(
            lambda q, p, scale=scale: scale * (q @ jnp.log(p) + np.log(6)),
            lambda q, scale=scale: -scale * (q @ jnp.log(q) + np.log(6)),
        )
        assert check_compatibility(pair, p / p.sum()).compatible is None


@pytest.mark.parametrize(
    ("f", "g"), [("3", "-x**2"), ("log(x)", "2*x - 1"), ("x", "(x + 1)**2 - x**2")]
)
def test_a_metric_that_ranks_nothing_is_named(f, g):
    verdict = check_compatibility(separable(f, g))
    assert verdict.compatible is None
    assert "All models have the same" in verdict.reason


def test_an_f_that_increases_only_up_to_one_half():
    # g'' = -f' holds. With two texts f(t) = f(1 - t): all models have one quality.
    pair = separable("x - x**2", "x**3/3 - x**2/2")
    verdict = check_compatibility(pair)
    assert verdict.compatible
    assert "pseudoconvex" in verdict.reason
    assert "three texts or more" in verdict.reason
    assert check_compatibility(pair, num_texts=2).compatible is None


def test_witnesses_of_formulas_hold_exactly():
    """With 60 digits and the last probability as 1 minus the others."""
    for f, g in (("log(x)", "-x**2"), ("x", "-x**2 + 0.0001*x**3")):
        witness = check_compatibility(separable(f, g)).witness
        x = sympy.Symbol("x")
        p, q = (
            [sympy.Rational(float(v)) for v in side] for side in (witness.p, witness.q)
        )
        p[-1], q[-1] = 1 - sum(p[:-1]), 1 - sum(q[:-1])
        score, bonus = (qd.Expression(text).symbolic(x) for text in (f, g))
        quality = sum((b - a) * score.subs(x, a) for a, b in zip(p, q))
        diversity = sum(bonus.subs(x, b) - bonus.subs(x, a) for a, b in zip(p, q))
        assert sympy.N(quality, 60) > 0
        assert sympy.N(diversity, 60) > 0


# --- what is left open ----------------------------------------------------------------


def test_antiparallel_gradients_settle_it_for_concave_pairs_only():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    functions = qd.FunctionPair(qd.CR_NRR.quality, qd.CR_NRR.diversity)
    verdict = check_compatibility(functions, p)
    assert verdict.compatible is None
    assert "locally optimal" in verdict.reason
    # g is concave and agrees with NRR on all of P, but not beyond 1/2.
    other = qd.SeparablePair(
        qd.CR, lambda x: -(x**2) - 0.1 * jnp.maximum(x - 0.5, 0.0) ** 4
    )
    assert check_compatibility(other, p).compatible is None
    verdict = check_compatibility(other, p, stated="concave")
    assert verdict.compatible
    assert "stated by the caller" in verdict.reason
    assert "Pareto-optimal at the given P" in verdict.reason
    # At these four values the formulas are opposite to 1e-40 only.
    near = separable("-x**-2 + 1e-40*x", "-1/x")
    assert check_compatibility(near, p).compatible is None


def test_many_texts_are_left_open_by_the_second_order_test():
    n = 1025
    pair = qd.FunctionPair(lambda q, p: q @ p, lambda q: -(q @ q))
    p = np.arange(1.0, n + 1) / (n * (n + 1) / 2)
    verdict = check_compatibility(pair, p)
    assert verdict.compatible is None
    assert "at most 1024 texts" in verdict.reason


def test_fit_reports_the_deviation():
    w0, b0, residual = fit_theorem_3(qd.LL, qd.SE)
    assert (w0, b0) == pytest.approx((-1, -1), rel=1e-15)
    assert residual <= 1e-12
    assert fit_theorem_3(qd.LL, qd.NRR)[2] > 0.1
    assert fit_theorem_3(lambda x: 0 * x, qd.NRR)[2] == np.inf


def test_one_text():
    assert check_compatibility(qd.LL_NRR, num_texts=1).compatible


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_compatibility(kernel_pair(np.eye(3))), "pass p or num_texts"),
        (lambda: check_compatibility(qd.LL_SE, stated="true"), "stated must be one"),
        (lambda: check_compatibility(qd.LL_SE, np.array([0.5, 0.5, 0.0])), "positive"),
        (lambda: check_compatibility(qd.LL_SE, num_texts=0), "at least 1"),
        (
            lambda: check_compatibility(qd.LL_SE, np.array([0.5, 0.5]), num_texts=3),
            "must have 3 entries",
        ),
        (lambda: check_compatibility(qd.LL_SE, np.array([0.5, 0.6])), "sum to 1"),
        (
            lambda: check_compatibility(
                qd.FunctionPair(lambda q, p: q @ jnp.log(p - p), lambda q: -(q @ q)),
                np.array([0.5, 0.5]),
            ),
            "grad U is not finite at P_i = 0.5",
        ),
        (
            lambda: check_compatibility(separable("log(x - 0.5)", "-x**2")),
            "^f is not finite at x = 1e-06; f and g must be defined and smooth",
        ),
        (
            lambda: check_compatibility(separable("sqrt((x - 0.5)**2)", "-x**2")),
            "^f' is not finite at x = 0.5",
        ),
        (
            lambda: check_compatibility(separable("x", "1/(x - 0.25)")),
            "^g is not finite at x = 0.25",
        ),
        (
            # Undefined between the grid's points only.
            lambda: check_compatibility(
                separable("sqrt((x - 1/3)**2 - 1e-8)", "-x**2"),
                np.array([1 / 3, 1 / 3, 1 / 6, 1 / 6]),
            ),
            "^f is not defined near x = 0.333",
        ),
    ],
)
def test_bad_input(as_a_user, call, message):
    with pytest.raises(ValueError, match=message):
        call()
