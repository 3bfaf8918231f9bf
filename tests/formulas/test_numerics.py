"""Formulas in 64 bits against mpmath at 60 digits, near 0 and at both ends."""

from fractions import Fraction

import jax
import mpmath
import numpy as np
import pytest

from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.numerics import limits, numerics
from qdtheory.formulas.trees import ball

# What is written and, for mpmath, what it is without cancelling.
WRITTEN = {
    "x*log(1/x)": lambda x: -x * mpmath.log(x),
    "-x*log(x**2)/2": lambda x: -x * mpmath.log(x),
    "-x**3/x": lambda x: -(x**2),
    "log(1 + (x - 1))": mpmath.log,
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
        ("1/log(x/3)", (0.0, -np.inf), None),
        ("1/log(log(4/x))", (np.nan, np.inf), None),  # too slow to tell
        ("log(log(3/x))/log(3/x)", (0.0, np.inf), None),
        ("x**0.001", (0.0, np.inf), (1.0, 0.001)),  # 1e-100**0.001 is 0.8
        ("1000*(x - x**1.001)", (0.0, 1000.0), (0.0, -1.0)),
        ("x**(1/999)*log(x)", (0.0, -np.inf), (0.0, 1.0)),
        ("(exp(x) - 1 - x)/x**2", (0.5, 1 / 6), None),
        ("1e-15*log(x) + 1", (-np.inf, np.inf), (1.0, 1e-15)),
    ],
)
def test_limits_at_the_ends(text, zero, one):
    tree = Expression(text).inside
    assert limits(tree, 0) == pytest.approx(zero, rel=1e-14, abs=0, nan_ok=True)
    if one is not None:
        assert limits(tree, 1) == pytest.approx(one, rel=1e-14)
    value, slope = jax.jit(jax.value_and_grad(Expression(text)))(0.0)
    assert np.isnan(zero[0]) or float(value) == pytest.approx(zero[0], abs=1e-90)
    if np.isfinite(zero[0]) and np.isinf(zero[1]):
        assert slope == zero[1]


def test_what_is_right_as_written_is_left_as_written():
    for text in ("x", "-x**2", "-x*log(x)", "x**1.5 - x", "x*(1 - x)", "2"):
        found = numerics(Expression(text).inside)
        assert found.tree == Expression(text).inside
        assert found.error <= 1e-15


@pytest.mark.parametrize("text", ["1 - (1 - x)**30", "log(1 + x)", "exp(-1/x)"])
def test_what_64_bits_do_not_tell_has_no_error_bound(text):
    h = numerics(Expression(text).inside)
    assert h.error == np.inf
    # It is right to the rounding of its terms.
    x = Fraction(3, 1000)
    expected = float(Expression(text).balls(ball(x))[0])
    assert h.in_numpy(np.array([float(x)])).value == pytest.approx(expected, abs=1e-15)


def test_a_value_at_1_that_floats_lack_is_the_one_next_to_it():
    h = Expression("-(1 - x)*log(1 - x)")
    assert float(h(1.0)) == pytest.approx(0, abs=1e-14)
    assert h.jet(np.array([1.0])).slope[0] == float(jax.grad(h)(1.0)) < -30


def test_beyond_1_and_outside_the_domain():
    h = Expression("1 - (1 - x)**30")
    assert float(h(1.5)) == pytest.approx(1 - 0.5**30)
    assert not np.isfinite(Expression("log(x - 0.5)")(0.25))
    assert numerics(Expression("log(x - 0.5)").inside).error == np.inf
