"""Compatible pairs beyond Theorem 3, by integers, polynomials, grids and searches."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from models import cubic_pair, searched, separable, sine_pair
from verdict_referee import beaten, gains_in_50_digits

import qdtheory as qd
from qdtheory.functions import as_function
from qdtheory.proofs.beyond_theorem_3 import (
    keeps_order_with_one_text,
    likely_points,
    orders_two_texts,
    random_points,
)
from qdtheory.proofs.theorem_3 import read_functions

THIRD = 1 / 3
# f, g and g' of t = x - 1/3, whose points (f, g') lie on a cubic curve.
CURVES = {
    "cubic": (lambda t: t + THIRD, lambda t: -(t**4) / 4, lambda t: -(t**3)),
    "isolated point": (
        lambda t: np.sin(2 * t),
        lambda t: np.log(np.cos(t)),
        lambda t: -np.tan(t),
    ),
    "node": (
        lambda t: -np.exp(-t),
        lambda t: -np.exp(-2 * t) / 2 - np.exp(t),
        lambda t: np.exp(-2 * t) - np.exp(t),
    ),
}

# --- Two texts ------------------------------------------------------------------------

HALF = 8  # probabilities are multiples of 1 / 16
STEPS = st.lists(st.integers(1, 9), min_size=HALF, max_size=HALF)
ANY = st.lists(st.integers(-9, 9), min_size=HALF, max_size=HALF)


@pytest.mark.claim("N5.1")
@given(low_f=ANY, rises=STEPS, low_g=ANY, falls=STEPS)
def test_two_texts_make_every_rational_pair_compatible(low_f, rises, low_g, falls):
    """Any table of f and g with Theorem 1's two properties for N = 2, in integers."""
    whole, shared = 2 * HALF, 0
    f, g = dict(enumerate(low_f)) | {HALF: 0}, dict(enumerate(low_g)) | {HALF: 0}
    for step, x in enumerate(range(HALF + 1, whole + 1)):
        f[x] = f[whole - x] + rises[step]
        shared -= falls[step]
        g[x] = shared - g[whole - x]
    for p, q in product(range(whole + 1), repeat=2):
        du = (q - p) * (f[p] - f[whole - p])
        dv = g[q] + g[whole - q] - g[p] - g[whole - p]
        assert not (du >= 0 and dv >= 0 and du + dv > 0), (p, q)


# --- Three texts, four, and one of probability zero -----------------------------------


@pytest.mark.claim("N5.2")
@pytest.mark.parametrize("name", CURVES)
def test_three_points_are_on_a_line_and_no_model_has_a_greater_weighted_sum(name):
    (f, g, slope), rng, weights = CURVES[name], np.random.default_rng(2), []
    q = np.vstack([rng.dirichlet(np.full(3, 0.7), 5000), np.eye(3)])
    for p in np.sort(rng.dirichlet(np.ones(3), 200)):
        (x, y, z), (a, b, c) = f(p - THIRD), slope(p - THIRD)
        assert abs((y - x) * (c - a) - (z - x) * (b - a)) <= 1e-14
        weights.append((c - a) / (z - x))
        best = g(p - THIRD).sum() - weights[-1] * p @ f(p - THIRD)
        sums = g(q - THIRD).sum(axis=1) - weights[-1] * q @ f(p - THIRD)
        # The sums are of order 1: this is their rounding, and that of the weight.
        assert (sums <= best + 1e-14).all()
    assert max(weights) < 0
    assert np.ptp(weights) > 0.1
    pairs = {"cubic": cubic_pair(), "isolated point": sine_pair()}
    for p in rng.dirichlet(np.ones(3), 3) if name in pairs else ():
        assert qd.quality_discrepancy(pairs[name], p).qdisc <= 1e-11


@pytest.mark.claim("N5.7", "N5.9")
@pytest.mark.parametrize("zero", [False, True])
def test_a_fourth_text_breaks_the_cubic(zero):
    (_, g, slope), rng, gains = CURVES["cubic"], np.random.default_rng(3), []
    for p in rng.dirichlet(np.ones(3 if zero else 4), 12):
        p = np.append(p, 0.0) if zero else p
        value, marginal = (lambda q, h=h: h(q - THIRD) for h in (g, slope))
        gain = searched(p, value, marginal, p, rng, 4)
        gains.append(qd.quality_discrepancy(cubic_pair(), p).qdisc)
        # An error of 1e-9 in V is one of about 1e-9 / |w|, w of order .1, in U.
        assert gain == pytest.approx(gains[-1], abs=1e-6)
    assert min(gains) > 0
    assert max(gains) > 0.01


@pytest.mark.claim("N5.2", "N5.8", "N5.9")
def test_only_the_cube_obeys_the_chord_law_and_misses_by_a_product():
    a, b, x, y, z = sympy.symbols("a b x y z")
    for power in range(2, 13):
        rows = [[1, s, -(s**power)] for s in (a, b, -a - b)]
        assert (sympy.expand(sympy.Matrix(rows).det()) == 0) == (power == 3)
    slope = sympy.cancel((b**3 - a**3) / (a - b))
    assert sympy.expand(slope + a**2 + a * b + b**2) == 0

    def cube(t):
        return -((t - sympy.Rational(1, 3)) ** 3)

    line = cube(x) + (cube(y) - cube(x)) / (y - x) * (z - x)
    miss = sympy.cancel(cube(z) - line)
    assert sympy.expand(miss - (z - x) * (z - y) * (1 - x - y - z)) == 0
    assert sympy.expand(miss.subs(z, 0) - x * y * (1 - x - y)) == 0


# --- An f that falls ------------------------------------------------------------------


KEEPING = [
    ("log(x) - 1.1*x", "-x*log(x) + 0.55*x**2"),
    ("x - x**2", "-x**2/2 + x**3/3"),
]


@pytest.mark.parametrize("num_texts", [3, 5, 12])
@pytest.mark.parametrize(("f", "g"), KEEPING)
def test_no_p_is_beaten_although_f_falls(f, g, num_texts):
    # P near the vertex, where f falls, and models near and far.
    rng, pair = np.random.default_rng(num_texts), separable(f, g)
    assert keeps_order_with_one_text(pair.f.formula)
    for top in rng.uniform(0.5, 1, 40):
        p = np.r_[top, (1 - top) * rng.dirichlet(np.full(num_texts - 1, 0.7))] + 1e-12
        p = p / p.sum()
        models = rng.dirichlet(np.full(num_texts, 0.5), 400)
        models = np.vstack([models, 0.95 * p + 0.05 * models, np.eye(num_texts)])
        gain_u = (models - p) @ pair.f.jet(p).value
        values = (pair.g.jet(np.maximum(q, 1e-300)).value for q in (models, p))
        gain_v = np.subtract(*(value.sum(-1) for value in values))
        assert not ((gain_u > 1e-12) & (gain_v > 1e-12)).any()
    assert beaten(pair.f, pair.g, num_texts, rng) is None


@pytest.mark.parametrize("c", [0.9, 1, 1.001, 1.05, 1.6])
def test_the_condition_is_proved_up_to_its_end_and_what_fails_it_is_beaten(c):
    pair = separable(f"x - {c}*x**4", f"-x**2/2 + {c}*x**5/5")
    verdict = qd.check_compatibility(pair)
    assert keeps_order_with_one_text(pair.f.formula) is verdict.compatible is (c <= 1)
    if (found := verdict.witness) is not None:
        assert min(gains_in_50_digits(pair.f, pair.g, found.p, found.q)) > 0


# --- The P that are tried: interior, the same each time, with the suspect texts -------

# f falls within 1e-4 of .37037037 only, between the points of the grid; or beyond .6.
NARROW = qd.Expression("x - 1e-5*exp(-((10000*x - 3703.7037)**2))")
SUSPECT = [
    (NARROW, qd.functions.NRR, 0.37037, 1e-4),
    (lambda x: x * (1.2 - x), lambda x: -jnp.square(x), 0.8, 0.2),
]


@pytest.mark.parametrize("num_texts", [2, 3, 9])
@pytest.mark.parametrize(("f", "g", "place", "width"), SUSPECT)
def test_every_p_is_an_interior_distribution(f, g, place, width, num_texts):
    functions = read_functions(as_function(f, "f"), as_function(g, "g"))
    points, again = (np.array([*likely_points(functions, num_texts)]) for _ in "12")
    np.testing.assert_array_equal(points, again)
    assert points.shape[1] == num_texts
    assert points.min() > 0
    np.testing.assert_allclose(points.sum(axis=1), 1, rtol=1e-12)
    # The random ones are among them, and a text lies where f falls.
    assert {*map(tuple, random_points(num_texts))} < {*map(tuple, points)}
    assert np.abs(points - place).min() < width


def test_two_texts_are_ordered_only_where_evenness_raises_the_diversity():
    rising = qd.Expression("x")
    assert orders_two_texts(rising, qd.Expression("-x**2"))
    assert not orders_two_texts(rising, qd.Expression("x**2"))
