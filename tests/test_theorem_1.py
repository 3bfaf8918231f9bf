"""Theorem 1: which pairs are rational, against transfers of mass and in fractions."""

from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models import after, distribution

import qdtheory as qd
from qdtheory.functions import DIVERSITIES, QUALITIES

SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps
# Calls that are not compiled take a few milliseconds each.
few_examples = settings(max_examples=30)


def line_counterexample(x):
    """g with g'(3/4) = g'(1/4) that still has property 2."""
    s = jnp.maximum(x - 0.5, 0.0)
    return -(x**2) / 2 + s**3 * (16 / 3 - 8 * s)


def cubic(a, b, x):
    return a * x**2 + b * x**3


def with_cr(g):
    return qd.SeparablePair(qd.functions.CR, g)


@pytest.mark.claim("T1.4")
@pytest.mark.parametrize("f", QUALITIES.values())
@pytest.mark.parametrize(
    "g", [*DIVERSITIES.values(), *map(qd.Tsallis, (0.5, 1.5, 3.0))]
)
def test_named_pairs_are_rational(f, g):
    verdict = qd.check_rationality(qd.SeparablePair(f, g))
    assert verdict == qd.beaten.Rationality(True, None, None)


@pytest.mark.claim("T1.5")
@pytest.mark.parametrize("a", [-2.0, -1.0, -0.1, 0.0, 0.1, 1.0])
@pytest.mark.parametrize("b", [-2.0, -0.5, 0.0, 0.05, 0.5, 2 / 3, 1.0, 1.5])
def test_rational_cubics(a, b):
    # g'(x1) - g'(x2) = (x1 - x2) (2 a + 3 b (x1 + x2)), with x1 + x2 in (0, 1].
    rational = a <= 0 and 2 * a + 3 * b < -1e-12
    verdict = qd.check_rationality(with_cr(partial(cubic, a, b)))
    assert verdict.rational == rational
    assert (verdict.diversity_violation is None) == rational


@pytest.mark.claim("T1.6")
def test_a_rational_diversity_need_not_be_concave():
    g = partial(cubic, -2.0, 1.0)
    assert jax.grad(jax.grad(g))(0.9) > 0
    assert qd.check_rationality(with_cr(g)).rational
    three_candidates = qd.pairs.single_token_bleu_pair(1, 2).g
    x = np.linspace(0, 1, 101)
    np.testing.assert_allclose(three_candidates(x), g(x), atol=8 * EPS)


@pytest.mark.claim("T1.11")
@few_examples
@given(seed=SEEDS, size=st.sampled_from([2, 3, 5]), share=st.floats(1e-3, 0.999))
def test_equal_slopes_on_the_line_do_not_break_property_two(seed, size, share):
    slope = jax.grad(line_counterexample)
    assert slope(0.75) == slope(0.25)
    q = np.sort(distribution(seed, size))
    moved = q.copy()
    moved[-1] += share * q[-2]
    moved[-2] -= share * q[-2]
    assume(share * q[-2] > 1e-4)
    pair = with_cr(line_counterexample)
    # Near the equal slopes r falls by the cube of the step, 32/3 * 1e-12 at least.
    assert pair.diversity(moved) < pair.diversity(q)


@pytest.mark.claim("T1.11")
def test_equal_slopes_on_the_line_are_allowed_at_isolated_points_only():
    assert qd.check_rationality(with_cr(line_counterexample)).rational
    # Equal on the whole line x1 + x2 = 1: the diversity of (x, 1 - x, 0) is constant.
    flat = partial(cubic, -1.5, 1.0)
    verdict = qd.check_rationality(with_cr(flat))
    assert sum(verdict.diversity_violation) == 1


@pytest.mark.claim("T1.7")
@pytest.mark.parametrize("num_candidates", range(2, 12))
def test_self_bleu_of_one_token_is_rational_up_to_four_candidates(num_candidates):
    pair = qd.pairs.single_token_bleu_pair(1, num_candidates - 1)
    verdict = qd.check_rationality(pair)
    assert verdict.rational == (num_candidates <= 4)
    if num_candidates == 5:
        large, small = verdict.diversity_violation
        slope = jax.grad(pair.g)
        # The maximum 1/9 is at (2/3, 1/3), half a grid step away at most.
        assert large == pytest.approx(2 / 3, abs=1 / 1024)
        assert slope(large) - slope(small) == pytest.approx(1 / 9, abs=1e-6)


@pytest.mark.claim("T1.7")
def test_self_bleu_slopes_in_fractions():
    def slope(k, x):
        return -1 + (1 - x) ** k - k * x * (1 - x) ** (k - 1)

    for x in (Fraction(i, 97) for i in range(98)):
        assert slope(3, 1 - x) - slope(3, x) == (2 * x - 1) ** 3
        assert slope(4, 1 - x) - slope(4, x) >= -Fraction(1, 9) or x < Fraction(1, 2)
    third = Fraction(1, 3)
    assert slope(4, 2 * third) - slope(4, third) == Fraction(1, 9)


SHAPES_OF_F = {
    "flat from .4 on": (lambda x: jnp.minimum(x, 0.4), False),
    "flat from .5 on": (lambda x: jnp.minimum(x, 0.5), True),
    "falls half as fast beyond .5": (lambda x: jnp.minimum(x, 0.75 - x / 2), True),
    "falls as fast beyond .5": (lambda x: jnp.minimum(x, 1 - x), False),
    "falls twice as fast beyond .5": (lambda x: jnp.minimum(x, 1.5 - 2 * x), False),
    "falls": (lambda x: -x, False),
    "saturates at 1,000 references": (qd.pairs.single_token_bleu_pair(1000, 1).f, True),
}


@pytest.mark.claim("T1.10")
@pytest.mark.parametrize("shape", SHAPES_OF_F)
def test_shapes_of_f(shape):
    f, rational = SHAPES_OF_F[shape]
    pair = qd.SeparablePair(f, qd.functions.SE)
    verdict = qd.check_rationality(pair)
    assert verdict.rational == rational
    assert verdict.diversity_violation is None
    if not rational:
        large, small = verdict.quality_violation
        assert large > small
        assert large + small <= 1
        assert f(large) <= f(small)
        # A transfer of mass to the likelier text does not raise quality.
        p, q = np.array([large, small, 1 - large - small]), np.array([1, 2, 1]) / 4
        assert pair.quality(after(q, 0, 1, 0.25), p) <= pair.quality(q, p)


def transfer(seed, size):
    """P, Q, (i, j) with Q_i >= Q_j, and a mass below Q_j."""
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(size, 0.7)) + 1e-3 for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    i, j = rng.permutation(size)[:2]
    i, j = (i, j) if q[i] >= q[j] else (j, i)
    return p, q, i, j, rng.uniform(0.05, 0.95) * q[j]


RATIONAL = {
    "LL-SE": qd.LL_SE,
    "CR-NRR": qd.CR_NRR,
    "CR-Tsallis(0.5)": with_cr(qd.Tsallis(0.5)),
    "four candidates": qd.pairs.single_token_bleu_pair(2, 3),
    "cubic": qd.SeparablePair(qd.functions.LL, partial(cubic, -2.0, 1.0)),
    "f falls beyond .5": qd.SeparablePair(
        SHAPES_OF_F["falls half as fast beyond .5"][0], qd.functions.SE
    ),
}


@pytest.mark.claim("T1.1", "T1.2")
@pytest.mark.parametrize("name", RATIONAL)
@few_examples
@given(seed=SEEDS, size=st.sampled_from([2, 3, 5]))
def test_rational_pairs_reward_quality_and_punish_concentration(name, seed, size):
    pair = RATIONAL[name]
    p, q, i, j, mass = transfer(seed, size)
    moved = after(q, i, j, mass)
    up, down = (i, j) if p[i] > p[j] else (j, i)
    gain = after(q, up, down, mass * q[down] / max(q[i], q[j]))
    assume(abs(p[i] - p[j]) > 1e-4)
    assert pair.quality(gain, p) > pair.quality(q, p)
    assert pair.diversity(moved) < pair.diversity(q)
    # By Theorem 1's proof only the two texts matter.
    fall = pair.diversity(moved) - pair.diversity(q)
    change = pair.g(moved[i]) + pair.g(moved[j]) - pair.g(q[i]) - pair.g(q[j])
    np.testing.assert_allclose(fall, change, atol=1e-13)
    rise = pair.quality(gain, p) - pair.quality(q, p)
    change = (gain[up] - q[up]) * (pair.f(p[up]) - pair.f(p[down]))
    np.testing.assert_allclose(rise, change, atol=1e-13)


@pytest.mark.claim("T1.3")
@pytest.mark.parametrize("name", RATIONAL)
@few_examples
@given(seed=SEEDS)
def test_slope_of_diversity_along_a_transfer(name, seed):
    pair = RATIONAL[name]
    _, q, i, j, mass = transfer(seed, 3)
    moved = after(q, i, j, mass)
    gradient = jax.grad(pair.diversity)(jnp.asarray(moved))
    slope = jax.grad(pair.g)
    np.testing.assert_allclose(
        gradient[i] - gradient[j], slope(moved[i]) - slope(moved[j]), rtol=1e-12
    )


@pytest.mark.claim("T1.8")
@pytest.mark.parametrize(
    "pair",
    [
        qd.pairs.single_token_bleu_pair(1, 4),
        qd.pairs.single_token_bleu_pair(1, 100),
        with_cr(partial(cubic, 1.0, -0.5)),
        with_cr(lambda x: jnp.sin(9 * x)),
    ],
    ids=["five candidates", "101 candidates", "cubic", "sine"],
)
def test_a_diversity_violation_gives_a_transfer_that_raises_diversity(pair):
    large, small = qd.check_rationality(pair).diversity_violation
    assert large > small > 0
    assert large + small <= 1
    slope = jax.grad(pair.g)
    assert slope(large) > slope(small)
    step = small * 1e-3
    q = np.array([large, small, 1 - large - small])
    moved = after(q, 0, 1, step)
    assert pair.diversity(moved) > pair.diversity(q)


@pytest.mark.claim("T1.9")
def test_two_texts_do_not_see_the_odd_part_of_a_diversity():
    pair = with_cr(lambda x: -(x**2) - 4 * (x - 0.5) ** 3)
    assert not qd.check_rationality(pair).rational
    for seed in range(100):
        q = distribution(seed, 2)
        np.testing.assert_allclose(pair.diversity(q), -(q**2).sum(), atol=1e-14)
    # With a third text the slopes rise wherever x1 + x2 < 5/6.
    rising = np.array([0.3, 0.2, 0.5])
    moved = after(rising, 0, 1, 0.1)
    assert pair.diversity(moved) > pair.diversity(rising)


@pytest.mark.claim("E5.1")
def test_the_slope_of_a_shared_mass_is_odd_around_its_middle():
    x, rest = sympy.symbols("x rest", positive=True)
    c, g = sympy.Symbol("c"), sympy.Function("g")
    slope = sympy.diff(g(x) + g(c - x), x).doit()
    mirrored = slope.subs(x, c - x).doit()
    assert sympy.simplify(slope + mirrored) == 0

    def entropy(y):
        return -y * sympy.log(y)

    shared = sympy.diff(entropy(x) + entropy(c - x), x).subs(c, x + rest)
    assert sympy.simplify(shared - sympy.log(rest / x)) == 0


# -- what a verdict does not depend on

CHANGED = {
    "CR-NRR": qd.CR_NRR,
    "five candidates": qd.pairs.single_token_bleu_pair(1, 4),
    "f falls": qd.SeparablePair(lambda x: x * (1 - x), qd.functions.SE),
    "g is linear": qd.SeparablePair(qd.functions.LL, lambda x: 3.0 * x),
}


@pytest.mark.parametrize("name", CHANGED)
def test_scale_shift_and_a_line_change_no_verdict(name):
    f, g = CHANGED[name].f, CHANGED[name].g
    changed = qd.SeparablePair(
        lambda x: 4.0 * f(x) - 8.0, lambda x: 2.0 * g(x) + 0.5 * x + 1.0
    )
    found = qd.check_rationality(CHANGED[name])
    assert qd.check_rationality(changed).rational == found.rational
    assert found.rational == (name == "CR-NRR")
