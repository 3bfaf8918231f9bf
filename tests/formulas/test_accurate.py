"""Formulas in 64 bits against mpmath at 60 digits, near 0 and at both ends."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from qdtheory.formulas.accurate import limits, numerics
from qdtheory.formulas.expressions import Expression

# What is written and, for mpmath, what it is without cancelling.
WRITTEN = {
    "x*log(1/x)": lambda x: -x * mpmath.log(x),
    "-x*log(x**2)/2": lambda x: -x * mpmath.log(x),
    "-x**3/x": lambda x: -(x**2),
    "1 - (1 - x)**30": lambda x: -mpmath.expm1(30 * mpmath.log1p(-x)),
    "log(1 + (x - 1))": mpmath.log,
    "-(exp(1e-6*x) + exp(-1e-6*x) - 2)*1e6*1e6": lambda x: (
        -4 * mpmath.sinh(x / 2 / 10**6) ** 2 * 10**12
    ),
    "exp(-1/x)": lambda x: mpmath.exp(-1 / x),
    "-x*log(x) - (1 - x)*log(1 - x)": lambda x: (
        -x * mpmath.log(x) - (1 - x) * mpmath.log1p(-x)
    ),
}
POINTS = np.r_[10.0 ** -np.arange(3, 100, 8), 0.01, 0.3, 0.5, 0.77, 0.999999]


@pytest.mark.parametrize("text", WRITTEN)
def test_values_and_slopes_have_all_digits(text):
    h, jet = Expression(text), Expression(text).jet(POINTS)
    values = jax.vmap(h)(POINTS)
    slopes = jax.vmap(jax.grad(h))(POINTS)
    np.testing.assert_allclose(values, jet.value, rtol=1e-13, atol=1e-300)
    # A slope is right to the last digits of its terms: of its size, or of the change.
    near = np.minimum(POINTS, 1 - POINTS)
    size = np.abs(jet.slope) + near * np.abs(jet.curvature)
    assert (np.abs(slopes - jet.slope) <= 1e-12 * size).all()
    with mpmath.workdps(60):
        for x, value, slope, room in zip(POINTS, jet.value, jet.slope, size):
            at = mpmath.mpf(float(x))
            expected = WRITTEN[text](at)
            assert value == pytest.approx(float(expected), rel=1e-12, abs=1e-300)
            steepness = mpmath.diff(WRITTEN[text], at, h=at / 10**15)
            assert abs(slope - float(steepness)) <= 1e-9 * room + 1e-30


@pytest.mark.parametrize(
    ("text", "zero", "one"),
    [
        ("-x*log(x)", (0.0, np.inf), (0.0, -1.0)),
        ("x*log(1/x)", (0.0, np.inf), (0.0, -1.0)),
        ("log(x)", (-np.inf, np.inf), (0.0, 1.0)),
        ("1/x", (np.inf, -np.inf), (1.0, -1.0)),
        ("sqrt(x)", (0.0, np.inf), (1.0, 0.5)),
        ("x**3/x", (0.0, 0.0), (1.0, 2.0)),
        ("-(1 - x)*log(1 - x)", (0.0, 1.0), (0.0, -np.inf)),
        ("exp(-1/x)", (0.0, 0.0), (float(np.exp(-1)), float(np.exp(-1)))),
        ("x/log(x/3)", (0.0, 0.0), None),  # the slope vanishes as 1/log does
    ],
)
def test_limits_at_the_ends(text, zero, one):
    tree = Expression(text).inside
    assert limits(tree, 0) == pytest.approx(zero, rel=1e-14, abs=1e-6)
    if one is not None:
        assert limits(tree, 1) == pytest.approx(one, rel=1e-14)
    value, slope = jax.jit(jax.value_and_grad(Expression(text)))(0.0)
    assert float(value) == pytest.approx(zero[0], abs=1e-90)
    if np.isfinite(zero[0]) and np.isinf(zero[1]):
        assert slope == zero[1]


def test_what_is_right_as_written_is_left_as_written():
    for text in ("x", "-x**2", "-x*log(x)", "x**1.5 - x", "x*(1 - x)", "2"):
        found = numerics(Expression(text).inside)
        assert found.table is None
        assert found.error <= 1e-15


def test_beyond_1_and_outside_the_domain():
    h = Expression("1 - (1 - x)**30")
    assert float(h(1.5)) == pytest.approx(1 - 0.5**30)
    assert not np.isfinite(Expression("log(x - 0.5)")(0.25))
    assert numerics(Expression("log(x - 0.5)").inside).error == np.inf


def test_a_jump_is_where_the_floats_put_it():
    from qdtheory.formulas.code import formula_of_code

    h = formula_of_code(lambda x: jnp.where(x > 0.2, -jnp.expm1(1e-9 * x), x))
    x = np.array([0.1, 0.2, np.nextafter(0.2, 1), 0.7])
    expected = np.where(x > 0.2, -np.expm1(1e-9 * x), x)
    np.testing.assert_allclose(jax.vmap(h)(x), expected, rtol=1e-13)
    np.testing.assert_allclose(h.jet(x).value, expected, rtol=1e-13)
