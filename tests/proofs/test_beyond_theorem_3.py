"""Compatible pairs beyond Theorem 3, by integers, polynomials, grids and searches."""

from itertools import product

import jax
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
    random_points,
)
from qdtheory.proofs.theorem_3 import read_functions

THIRD = 1 / 3


def cubic_g(x):
    return -((x - THIRD) ** 4) / 4


CUBIC, SINE = cubic_pair(), sine_pair()
NODE = qd.SeparablePair(
    lambda x: -jnp.exp(THIRD - x),
    lambda x: -jnp.exp(2 * (THIRD - x)) / 2 - jnp.exp(x - THIRD),
    "node",
)


# --- Two texts ----------------------------------------------------------------------

HALF = 8  # probabilities are multiples of 1 / 16
STEPS = st.lists(st.integers(1, 9), min_size=HALF, max_size=HALF)
ANY = st.lists(st.integers(-9, 9), min_size=HALF, max_size=HALF)


@pytest.mark.claim("N5.1")
@given(low_f=ANY, rises=STEPS, low_g=ANY, falls=STEPS)
def test_two_texts_make_every_rational_pair_compatible(low_f, rises, low_g, falls):
    """Any table of f and g with Theorem 1's two properties for N = 2, in integers."""
    whole = 2 * HALF
    f, g = dict(enumerate(low_f)), dict(enumerate(low_g))
    f[HALF] = g[HALF] = 0
    shared = 0
    for step, x in enumerate(range(HALF + 1, whole + 1)):
        f[x] = f[whole - x] + rises[step]
        shared -= falls[step]
        g[x] = shared - g[whole - x]
    for p, q in product(range(whole + 1), repeat=2):
        du = (q - p) * (f[p] - f[whole - p])
        dv = g[q] + g[whole - q] - g[p] - g[whole - p]
        assert not (du >= 0 and dv >= 0 and du + dv > 0), (p, q)


# --- Three texts --------------------------------------------------------------------


@pytest.mark.claim("N5.2", "N5.5")
@pytest.mark.parametrize("power", range(2, 13))
def test_only_the_cube_obeys_the_chord_law(power):
    a, b = sympy.symbols("a b")
    rows = [[1, s, -(s**power)] for s in (a, b, -a - b)]
    area = sympy.expand(sympy.Matrix(rows).det())
    assert (area == 0) == (power == 3)
    if power == 3:
        slope = sympy.cancel((b**3 - a**3) / (a - b))
        assert sympy.expand(slope + a**2 + a * b + b**2) == 0


@pytest.mark.claim("N5.3", "N6.17")
def test_on_three_texts_no_model_has_a_greater_weighted_sum():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(3, 0.7), 5000)
    for p in rng.dirichlet(np.ones(3), 100):
        s = p - THIRD
        w0 = -(s[0] ** 2 + s[0] * s[1] + s[1] ** 2)
        best = cubic_g(p).sum() - w0 * p @ p
        # The sums are of order 1: this is their rounding.
        assert (cubic_g(q).sum(axis=1) - w0 * q @ p <= best + 1e-15).all()


@pytest.mark.claim("N5.4")
@pytest.mark.parametrize("pair", [CUBIC, NODE, SINE], ids=lambda pair: pair.name)
def test_a_line_through_two_points_meets_the_curve_at_the_third(pair):
    def point(x):
        return np.array([pair.f(x), jax.grad(pair.g)(x)], dtype=float)

    def met(a, b, c):
        """Where the line a X + b Y + c = 0 meets the curve, as x = s + 1/3."""
        if pair is CUBIC:
            return np.roots([-b, 0, a, a * THIRD + c]) + THIRD
        if pair is NODE:
            return np.log(np.roots([-b, c, -a, b]).astype(complex)) + THIRD
        return np.arctan(np.roots([-b, c, 2 * a - b, c])) + THIRD

    rng = np.random.default_rng(1)
    for x, y, z in rng.dirichlet(np.full(3, 5.0), 30):
        (x1, y1), (x2, y2) = point(x), point(y)
        a, b = y2 - y1, x1 - x2
        third = met(a, b, -a * x1 - b * y1)
        # The roots of a cubic with two close ones lose half the digits.
        assert abs(third - z).min() <= 1e-6


def polar_search(f, g, p, num_angles=65):
    """QDisc on three texts: the best point of the curve V(Q) = V(P) by its angle.

    Seen from the uniform distribution, where V is greatest and concave, the curve
    has one point for each angle, and a linear U one maximum along it.
    """
    axes = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    scores, least = f(p), g(p).sum()
    low, high, best = 0.0, 2 * np.pi, -np.inf
    # Where the maximum is a kink, on the rim, U is off by as much as the angle.
    while high - low > 1e-11:
        angles = np.linspace(low, high, num_angles)
        d = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ axes
        near, far = np.zeros(num_angles), -1 / (3 * d.min(axis=1))
        # V at the rim first: where it is large enough, nothing lies beyond.
        for middle in [far] + [None] * 55:
            middle = (near + far) / 2 if middle is None else middle
            q = np.maximum(THIRD + middle[:, None] * d, 0)
            inside = g(q).sum(axis=1) >= least
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        u = (THIRD + near[:, None] * d) @ scores
        best, step = max(best, u.max()), angles[1] - angles[0]
        low, high = angles[u.argmax()] - step, angles[u.argmax()] + step
    return best - scores @ p


@pytest.mark.slow
@pytest.mark.claim("N5.6")
def test_three_texts_leave_nothing_to_gain():
    rng = np.random.default_rng(2)
    for p in rng.dirichlet(np.ones(3), 200):
        assert polar_search(lambda x: x, cubic_g, p) <= 1e-11
        sine = polar_search(
            lambda x: np.sin(2 * (x - THIRD)), lambda x: np.log(np.cos(x - THIRD)), p
        )
        assert sine <= 1e-11
    for p in rng.dirichlet(np.ones(3), 5):  # the search does find what there is
        expected = qd.quality_discrepancy(qd.LL_NRR, p).qdisc
        assert polar_search(np.log, lambda x: -(x**2), p) == pytest.approx(
            expected, abs=1e-10
        )


# --- Four texts, and a text of probability zero -------------------------------------


@pytest.mark.claim("N5.7", "N5.9", "N6.17")
@pytest.mark.parametrize("zero", [False, True])
def test_a_fourth_text_breaks_the_cubic(zero):
    rng = np.random.default_rng(3)
    gains = []
    for p in rng.dirichlet(np.ones(3 if zero else 4), 12):
        p = np.append(p, 0.0) if zero else p
        gain = searched(p, cubic_g, lambda q: -((q - THIRD) ** 3), p, rng, 4)
        exact = qd.quality_discrepancy(CUBIC, p).qdisc
        # An error of 1e-9 in V is one of about 1e-9 / |w|, w of order .1, in U.
        assert gain == pytest.approx(exact, abs=1e-6)
        gains.append(exact)
    assert min(gains) > 0
    assert max(gains) > 0.01


@pytest.mark.claim("N5.8", "N5.9")
def test_the_miss_is_a_product():
    x, y, z = sympy.symbols("x y z")

    def slope(t):
        return -((t - sympy.Rational(1, 3)) ** 3)

    line = slope(x) + (slope(y) - slope(x)) / (y - x) * (z - x)
    miss = sympy.cancel(slope(z) - line)
    assert sympy.expand(miss - (z - x) * (z - y) * (1 - x - y - z)) == 0
    at_zero = miss.subs(z, 0)
    assert sympy.expand(at_zero - x * y * (1 - x - y)) == 0


# -- Verdicts ----------------------------------------------------------------------


# f = sinh 2t and g' = -tanh t on a plane cubic's arc, t = x - 1/3.


# -- an f that falls ---------------------------------------------------------------


@pytest.mark.claim("N25.24")
@pytest.mark.parametrize("num_texts", [3, 5, 12])
@pytest.mark.parametrize(
    ("f", "g"),
    [
        ("log(x) - 1.1*x", "-x*log(x) + 0.55*x**2"),
        ("1.8*x - x**2", "-0.9*x**2 + x**3/3"),
        ("x - x**2", "-x**2/2 + x**3/3"),
    ],
)
def test_no_p_is_beaten_although_f_falls(f, g, num_texts):
    # P near the vertex, where f falls, and models near and far.
    rng = np.random.default_rng(num_texts)
    pair = separable(f, g)
    for _ in range(40):
        top = rng.uniform(0.5, 1)
        p = np.r_[top, (1 - top) * rng.dirichlet(np.full(num_texts - 1, 0.7))] + 1e-12
        p = p / p.sum()
        models = rng.dirichlet(np.full(num_texts, 0.5), 400)
        models = np.concatenate([models, 0.95 * p + 0.05 * models, np.eye(num_texts)])
        gain_u = (models - p) @ pair.f.jet(p).value
        gain_v = (
            pair.g.jet(np.maximum(models, 1e-300)).value.sum(1)
            - pair.g.jet(p).value.sum()
        )
        assert not ((gain_u > 1e-12) & (gain_v > 1e-12)).any()
    assert beaten(pair.f, pair.g, num_texts, rng) is None


@pytest.mark.claim("N25.24")
def test_the_condition_is_necessary_for_many_texts():
    # One text at x, one near 1 - x, and m that share the rest.
    for c, x in ((1.1, 0.97), (1.3, 0.9)):
        f, slope = (lambda t, c=c: t - c * t**4), (lambda t, c=c: 1 - 4 * c * t**3)
        assert slope(1 - x) * f(x) ** 2 + slope(x) * f(1 - x) ** 2 < 0
        p = np.array([x, 1 - x - 1e-3, *[1e-5] * 100])
        normals = np.stack([np.ones(p.size), f(p)])
        plane = np.linalg.svd(normals)[2][2:]
        # V + eta U has Hessian -f'(P): a direction of gain is one of negative slope.
        assert np.linalg.eigvalsh(plane * slope(p) @ plane.T)[0] < -1e-3
        assert slope(0.5) > 0


@pytest.mark.claim("N25.24")
@pytest.mark.parametrize("c", [0.9, 1, 1.001, 1.01, 1.05, 1.2, 1.6])
def test_the_condition_is_proved_up_to_its_end_and_what_fails_it_is_beaten(c):
    pair = separable(f"x - {c}*x**4", f"-x**2/2 + {c}*x**5/5")
    verdict = qd.check_compatibility(pair)
    assert keeps_order_with_one_text(pair.f.formula) is verdict.compatible is (c <= 1)
    if (found := verdict.witness) is not None:
        assert min(gains_in_50_digits(pair.f, pair.g, found.p, found.q)) > 0


# --- The P that are tried: interior, the same each time, with the suspect texts -----

# f falls within 1e-4 of .37037037 only, between the points of the grid.
NARROW = "x - 1e-5*exp(-((10000*x - 3703.7037)**2))"
DRAWN_FOR = {
    "formulas": (qd.Expression(NARROW), qd.functions.NRR),
    "code": (lambda x: x * (1.2 - x), lambda x: -(x**2)),
}


@pytest.mark.parametrize("num_texts", [2, 3, 9])
@pytest.mark.parametrize("name", DRAWN_FOR)
def test_every_p_is_an_interior_distribution(name, num_texts):
    functions = read_functions(*(as_function(h, "h") for h in DRAWN_FOR[name]))
    points = list(likely_points(functions, num_texts))
    again = list(likely_points(functions, num_texts))
    np.testing.assert_array_equal(points, again)
    assert np.shape(points)[1] == num_texts
    assert np.min(points) > 0
    np.testing.assert_allclose(np.sum(points, axis=1), 1, rtol=1e-12)
    # The random ones are among them.
    assert {*map(tuple, random_points(num_texts))} < {*map(tuple, points)}
    # A text lies where f falls.
    place, width = {"formulas": (0.37037, 1e-4), "code": (0.8, 0.2)}[name]
    assert np.abs(np.array(points) - place).min() < width
