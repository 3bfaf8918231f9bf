"""Scalar functions: chances of equal draws, limits, formulas."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import distribution

import qdtheory as qd
from qdtheory.formulas.expressions import Expression
from qdtheory.functions import (
    DIVERSITIES,
    QUALITIES,
    as_function,
    hit_chance,
    minus_repeat_chance,
)

SIZES = st.sampled_from([1, 2, 3, 7])
SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps
# Calls that are not compiled take a few milliseconds each.
few_examples = settings(max_examples=30)


@pytest.mark.claim("N0.3")
@pytest.mark.claim("N2.3")
@few_examples
@given(size=SIZES, seed=SEEDS)
def test_coverage_and_repetition_are_chances_that_two_draws_agree(size, seed):
    p, q = distribution(seed, size), distribution(seed + 1, size)
    agree_qp = sum(q[i] * p[j] for i, j in product(range(size), repeat=2) if i == j)
    agree_qq = sum(q[i] * q[j] for i, j in product(range(size), repeat=2) if i == j)
    differ = sum(q[i] * q[j] for i, j in product(range(size), repeat=2) if i != j)
    np.testing.assert_allclose(qd.CR_NRR.quality(q, p), agree_qp, rtol=1e-13)
    np.testing.assert_allclose(qd.CR_NRR.diversity(q), -agree_qq, rtol=1e-13)
    simpson = qd.SeparablePair(qd.functions.CR, qd.functions.SDI).diversity(q)
    np.testing.assert_allclose(simpson, differ, atol=1e-14)
    nrr = qd.negative_repetition_rate(q)
    np.testing.assert_allclose(simpson, nrr + 1, atol=1e-14)


@pytest.mark.claim("N2.4")
@pytest.mark.parametrize("order", [2, 3, 4])
def test_tsallis_of_whole_order_is_a_chance_that_draws_are_not_all_equal(order):
    q = distribution(3, 3)
    not_all_equal = sum(
        np.prod(q[list(draws)])
        for draws in product(range(3), repeat=order)
        if len(set(draws)) > 1
    )
    tsallis = qd.SeparablePair(qd.functions.CR, qd.Tsallis(float(order))).diversity(q)
    np.testing.assert_allclose(tsallis, not_all_equal / (order - 1), rtol=1e-13)


@pytest.mark.claim("N2.5")
@pytest.mark.parametrize("offset", [1e-2, -1e-2, 1e-4, -1e-4])
def test_tsallis_goes_to_the_shannon_entropy(offset):
    q = distribution(5, 7, zeros=0.3)
    tsallis = qd.SeparablePair(qd.functions.CR, qd.Tsallis(1 + offset)).diversity(q)
    # By Taylor's formula the gap of each term is (a - 1) x^c log(x)^2 / 2 with c
    # between 1 and a, at most .3 |a - 1|; below that, a - 1 costs digits.
    gap = abs(float(tsallis - qd.LL_SE.diversity(q)))
    assert 0 < gap <= 0.3 * q.size * abs(offset)


# -- formulas

FAMILIES = [qd.Tsallis(0.5), qd.Tsallis(1.7)]
FAMILIES += [hit_chance(1), minus_repeat_chance(2)]
FAMILIES += [hit_chance(32), minus_repeat_chance(9)]


@pytest.mark.parametrize("h", [*QUALITIES.values(), *DIVERSITIES.values(), *FAMILIES])
def test_formulas_of_named_functions_are_their_code(h):
    formula = h.formula
    assert formula is not None
    x = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(formula.value(x), jax.vmap(h)(x), rtol=1e-13)
    jets = h.jet(x), as_function(lambda x: h(x), "h").jet(x)
    for exact, code in zip(*(vars(jet).values() for jet in jets)):
        np.testing.assert_allclose(exact, code, rtol=1e-10, atol=1e-12)


def test_formulas_that_are_not_known():
    assert as_function(jnp.log, "f").formula is None
    expression = Expression("x")
    assert as_function(expression, "f").formula is expression


@pytest.mark.parametrize(
    "h", [qd.functions.SE, qd.functions.SDI, minus_repeat_chance(2), Expression("x")]
)
def test_a_derivative_does_not_carry_the_formula_of_its_function(h):
    assert as_function(jax.grad(h), "g").formula is None
