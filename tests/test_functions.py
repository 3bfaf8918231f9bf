"""Functions f and g: their sums, formulas and names, and Theorem 1 on them."""

from functools import partial
from itertools import product
from unittest.mock import patch

import families
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from calls import call
from hypothesis import assume, given
from hypothesis import strategies as st
from models import distribution
from scripts import script

import qdtheory as qd
from qdtheory.functions import (
    DIVERSITIES,
    QUALITIES,
    as_function,
    hit_chance,
    minus_repeat_chance,
    named,
)
from qdtheory.pairs import named_pairs

SIZES = st.sampled_from([1, 2, 3, 7])
SEEDS = st.integers(0, 2**32 - 1)


def with_cr(g):
    return qd.SeparablePair(qd.functions.CR, g)


# --- Sums -----------------------------------------------------------------------------
@pytest.mark.claim("N2.1")
@pytest.mark.parametrize("name", families.QUALITIES)
@given(size=SIZES, seed=SEEDS)
def test_quality_is_a_plain_sum_and_linear(name, size, seed):
    pair = qd.SeparablePair(name, qd.functions.SE)
    p, q = distribution(seed, size), distribution(seed + 1, size, zeros=0.3)
    scores = families.QUALITIES[name](p)
    # Sums of at most 7 terms, each rounded a few times.
    close = {"rtol": 1e-14, "atol": 1e-14 * np.abs(scores).max()}
    np.testing.assert_allclose(pair.quality(q, p), (q * scores).sum(), **close)
    # Linear: the gradient is the score, also where q_i = 0.
    np.testing.assert_allclose(jax.grad(pair.quality)(jnp.asarray(q), p), scores)


@pytest.mark.parametrize("name", families.DIVERSITIES)
@given(size=SIZES, seed=SEEDS)
def test_diversity_is_a_plain_sum(name, size, seed):
    g, in_numpy, _, _ = families.DIVERSITIES[name]
    q = distribution(seed, size, zeros=0.3)
    total = qd.SeparablePair("CR", g).diversity(q)
    np.testing.assert_allclose(total, in_numpy(q).sum(), atol=2e-14)


@pytest.mark.claim("N0.3", "N2.3")
@given(size=SIZES, seed=SEEDS)
def test_coverage_and_repetition_are_chances_that_two_draws_agree(size, seed):
    p, q = distribution(seed, size), distribution(seed + 1, size)
    draws = list(product(range(size), repeat=2))
    agree = sum(q[i] * p[j] for i, j in draws if i == j)
    repeat = sum(q[i] * q[j] for i, j in draws if i == j)
    differ = sum(q[i] * q[j] for i, j in draws if i != j)
    found = qd.CR_NRR.quality(q, p), -qd.CR_NRR.diversity(q)
    np.testing.assert_allclose(found, [agree, repeat], rtol=1e-13)
    simpson = with_cr(qd.functions.SDI).diversity(q)
    nrr = qd.negative_repetition_rate(q)
    np.testing.assert_allclose([simpson, nrr + 1], differ, atol=1e-14)


@pytest.mark.claim("N2.2")
@given(size=SIZES, seed=SEEDS)
def test_entropy_falls_short_of_the_uniform_one_by_a_divergence(size, seed):
    q, uniform = distribution(seed, size, zeros=0.3), np.full(size, 1 / size)
    short = np.log(size) - qd.LL_SE.diversity(q)
    np.testing.assert_allclose(short, qd.kl_divergence(q, uniform), atol=1e-12)


@pytest.mark.claim("N2.12")
@given(seed=SEEDS)
def test_a_text_of_probability_zero_hides_every_gain_in_likelihood(seed):
    p, q = np.append(distribution(seed, 3), 0.0), distribution(seed + 1, 4)
    best, worst = int(p.argmax()), int(p[:3].argmin())
    for source in (3, worst):  # nor does LL see a transfer between two other texts
        better = after(q, best, source, q[source] / 2)
        assert qd.LL_SE.quality(q, p) == qd.LL_SE.quality(better, p) == -np.inf
        assert qd.CR_NRR.quality(better, p) > qd.CR_NRR.quality(q, p)


def after(q, i, j, mass):
    """A model with mass moved to text i from text j."""
    return q + mass * (np.eye(q.size)[i] - np.eye(q.size)[j])


# --- Formulas and names ---------------------------------------------------------------
FAMILIES = [qd.Tsallis(0.5), qd.Tsallis(1.7), hit_chance(1), hit_chance(32)]
FAMILIES += [minus_repeat_chance(2), minus_repeat_chance(9)]


def test_a_slope_of_code_that_still_rises_at_0_is_infinite():
    entropy = as_function(lambda x: -x * jnp.log(jnp.maximum(x, 1e-300)), "g")
    assert entropy.at_zero == (0, np.inf)
    assert as_function(lambda x: jnp.log(x + 1e-3), "f").at_zero[1] == 1000


@pytest.mark.parametrize("h", [*QUALITIES.values(), *DIVERSITIES.values(), *FAMILIES])
def test_formulas_of_named_functions_are_their_code(h):
    x = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(h.formula.value(x), jax.vmap(h)(x), rtol=1e-13)
    jets = h.jet(x), as_function(lambda x: h(x), "h").jet(x)
    for exact, code in zip(*(vars(jet).values() for jet in jets)):
        np.testing.assert_allclose(exact, code, rtol=1e-10, atol=1e-12)
    # A derivative does not carry the formula of its function.
    assert as_function(jax.grad(h), "g").formula is None


@pytest.fixture
def entered():
    """A quality and a diversity that fit, entered by their definitions alone."""
    with patch.dict(QUALITIES), patch.dict(DIVERSITIES):

        @named(QUALITIES, "x**2")
        def SQUARE(x):
            return x**2

        @named(DIVERSITIES, "x - x**3")
        def CUBE(x):
            return x - x**3

        yield SQUARE, CUBE


def test_what_is_entered_forms_pairs_and_is_proved(entered):
    pair = named_pairs()["SQUARE-CUBE"]
    assert pair == qd.SeparablePair(*entered)
    verdict = qd.check_compatibility(pair)
    # (x - x^3)' = -3 x^2 + 1.
    assert verdict.exact == {"w0": "-3", "b0": "1", "alpha": "3/4"}
    p = np.array([0.5, 0.3, 0.2])
    found = qd.quality_discrepancy(qd.SeparablePair("LL", entered[1]), p)
    assert found.status == "exact"
    assert "strictly concave, proved" in found.reason


def test_what_is_entered_is_known_to_the_commands_and_to_the_matrix(entered):
    for command in ("check", "qdisc"):
        assert "LL-CUBE" in call(command, "--help").stdout
    matrix = script("make_compatibility_matrix")
    names = [diversity.name for diversity in matrix.diversities()]
    assert [names.count(x) for x in ("CUBE", "SDI")] == [1, 0]  # SDI is NRR + 1
    assert ("SQUARE", None, "CUBE", None) in matrix.theorems()


# --- Theorem 1: which f and g are rational --------------------------------------------
def on_a_line(x):
    """g with g'(3/4) = g'(1/4) that still has property 2."""
    s = jnp.maximum(x - 0.5, 0.0)
    return -(x**2) / 2 + s**3 * (16 / 3 - 8 * s)


def cubic(a, b, x):
    return a * x**2 + b * x**3


def falling(c, x):
    """Falls c times as fast beyond .5 as it rises before."""
    return jnp.minimum(x, (1 + c) / 2 - c * x)


CUBICS = product((-2.0, -1, -0.1, 0, 0.1, 1), (-2.0, -0.5, 0, 0.05, 0.5, 2 / 3, 1, 1.5))
VERDICTS = [
    *((f, g, True) for f, g in product(QUALITIES.values(), DIVERSITIES.values())),
    *((f, qd.Tsallis(a), True) for f in ("LL", "CR") for a in (0.5, 1.5, 3.0)),
    # g'(x1) - g'(x2) = (x1 - x2) (2 a + 3 b (x1 + x2)), with x1 + x2 in (0, 1].
    *(
        ("CR", partial(cubic, a, b), a <= 0 and 2 * a + 3 * b < -1e-12)
        for a, b in CUBICS
    ),
    # Slopes may be equal on the line x1 + x2 = 1, at isolated points only.
    *(("CR", on_a_line, True), ("CR", partial(cubic, -1.5, 1.0), False)),
    *(("CR", minus_repeat_chance(k), k <= 3) for k in (*range(1, 11), 100)),
    ("CR", lambda x: jnp.sin(9 * x), False),
    ("CR", lambda x: -(x**2) - 4 * (x - 0.5) ** 3, False),
    ("LL", lambda x: 3.0 * x, False),
    # f flat from .4 and from .5 on; falling half, just and twice as fast beyond .5.
    *((lambda x, c=c: jnp.minimum(x, c), "SE", c == 0.5) for c in (0.4, 0.5)),
    *((partial(falling, c), "SE", c == 0.5) for c in (0.5, 1, 2)),
    *((lambda x: -x, "SE", False), (lambda x: x * (1 - x), "SE", False)),
    (hit_chance(1000), "SE", True),
]


@pytest.mark.claim("T1.4", "T1.5", "T1.6", "T1.7", "T1.8", "T1.10", "T1.11")
@pytest.mark.parametrize(("f", "g", "rational"), VERDICTS)
def test_which_pairs_are_rational(f, g, rational):
    pair = qd.SeparablePair(f, g)
    verdict = qd.check_rationality(pair)
    violations = verdict.quality_violation, verdict.diversity_violation
    assert verdict.rational == rational == (violations == (None, None))
    for large, small in filter(None, violations):
        assert large > small > 0
        assert large + small <= 1
    if verdict.quality_violation:
        # A transfer of mass to the likelier text does not raise quality.
        large, small = verdict.quality_violation
        p, q = np.array([large, small, 1 - large - small]), np.array([1, 2, 1]) / 4
        assert pair.quality(after(q, 0, 1, 0.25), p) <= pair.quality(q, p)
    if verdict.diversity_violation:
        # A transfer to the greater text raises diversity, unless both slopes are equal.
        large, small = verdict.diversity_violation
        q, slope = np.array([large, small, 1 - large - small]), jax.grad(pair.g)
        rise = pair.diversity(after(q, 0, 1, small * 1e-3)) - pair.diversity(q)
        assert rise > 0 or abs(slope(large) - slope(small)) <= 1e-12


RATIONAL = {
    "LL-SE": qd.LL_SE,
    "CR-NRR": qd.CR_NRR,
    "four candidates": qd.pairs.single_token_bleu_pair(2, 3),
    "cubic": qd.SeparablePair("LL", partial(cubic, -2.0, 1.0)),
    "f falls beyond .5": qd.SeparablePair(partial(falling, 0.5), "SE"),
}


@pytest.mark.claim("T1.1", "T1.2", "T1.3")
@pytest.mark.parametrize("name", RATIONAL)
@given(seed=SEEDS, size=st.sampled_from([2, 3, 5]))
def test_rational_pairs_reward_quality_and_punish_concentration(name, seed, size):
    pair, rng = RATIONAL[name], np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(size, 0.7), 2) + 1e-3
    p, q = p / p.sum(), q / q.sum()
    j, i = sorted(rng.permutation(size)[:2], key=lambda k: q[k])
    mass = rng.uniform(0.05, 0.95) * q[j]
    moved = after(q, i, j, mass)
    fall = pair.diversity(moved) - pair.diversity(q)
    assert fall < 0
    # By Theorem 1's proof only the two texts matter, and the slope is theirs.
    change = pair.g(moved[i]) + pair.g(moved[j]) - pair.g(q[i]) - pair.g(q[j])
    np.testing.assert_allclose(fall, change, atol=1e-13)
    gradient, slope = jax.grad(pair.diversity)(jnp.asarray(moved)), jax.grad(pair.g)
    expected = slope(moved[i]) - slope(moved[j])
    np.testing.assert_allclose(gradient[i] - gradient[j], expected, rtol=1e-12)
    assume(abs(p[i] - p[j]) > 1e-4)
    up, down = (i, j) if p[i] > p[j] else (j, i)
    rise = pair.quality(after(q, up, down, mass), p) - pair.quality(q, p)
    assert rise > 0
    expected = mass * (pair.f(p[up]) - pair.f(p[down]))
    np.testing.assert_allclose(rise, expected, atol=1e-13)


def test_property_2_says_nothing_of_the_value_of_g_at_1():
    """So statement D of exercise 02.3 needs a g that is continuous there too."""

    def diversity(q):
        return (3 * (q == 1) - q**2).sum()

    for a, b in product(range(2, 9), repeat=2):
        if 10 - a >= b <= a:
            q = np.array([a, b, 10 - a - b]) / 10
            assert diversity(after(q, 0, 1, 0.1)) < diversity(q)
    assert diversity(np.eye(3)[0]) > diversity(np.full(3, 1 / 3))


@pytest.mark.claim("T1.9")
def test_two_texts_do_not_see_the_odd_part_of_a_diversity():
    pair = with_cr(lambda x: -(x**2) - 4 * (x - 0.5) ** 3)
    for seed in range(100):
        q = distribution(seed, 2)
        np.testing.assert_allclose(pair.diversity(q), -(q**2).sum(), atol=1e-14)
    # With a third text the slopes rise wherever x1 + x2 < 5/6.
    rising = np.array([0.3, 0.2, 0.5])
    assert pair.diversity(after(rising, 0, 1, 0.1)) > pair.diversity(rising)


@pytest.mark.claim("E5.1")
def test_the_slope_of_a_shared_mass_is_odd_around_its_middle():
    x, c = sympy.symbols("x c")

    def slope(g):
        return sympy.diff(g(x) + g(c - x), x).doit()

    of_any = slope(sympy.Function("g"))
    assert sympy.simplify(of_any + of_any.subs(x, c - x).doit()) == 0
    of_entropy = slope(lambda y: -y * sympy.log(y))
    assert sympy.simplify(of_entropy - sympy.log(c - x) + sympy.log(x)) == 0


@pytest.mark.parametrize(
    ("g", "rational"), [(qd.functions.NRR, True), (minus_repeat_chance(4), False)]
)
def test_scale_shift_and_a_line_change_no_verdict(g, rational):
    changed = lambda x: 4.0 * x - 8.0, lambda x: 2.0 * g(x) + 0.5 * x + 1.0
    assert qd.check_rationality(qd.SeparablePair(*changed)).rational == rational
