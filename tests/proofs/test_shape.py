"""Holes in the domain of a formula, and concavity against second derivatives."""

import jax
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.functions import as_function
from qdtheory.proofs.shape import find_hole


@pytest.mark.parametrize(
    ("h", "proved", "near"),
    [
        ("log(x/(1 - x))", True, None),
        ("log(1 + x*log(x))", True, None),
        ("1/log(x)", True, None),
        ("sqrt(1 - x)", True, None),
        ("log(x - 1e-7)", False, 0),
        ("-log(.9995 - x)", False, 1),
        ("1/(x - 0.3333)", False, 0.3333),
        ("x + log(x - 0.5) - log(x - 0.5)", False, 0.25),
        ("log(log(x))", False, 0.5),
        ("sqrt((x - 0.5)**2)", False, None),  # a corner, which no sign shows
        ("log((x - 0.3)**2)", False, None),
    ],
)
def test_holes_in_the_domain(h, proved, near):
    found, place = find_hole(qd.Expression(h))
    assert found is proved
    assert (place is None) == (near is None)
    if place is not None:
        assert float(place) == pytest.approx(near, abs=1e-3)


SHAPES = {
    qd.functions.SE: 1.0,
    qd.Tsallis(1 / 3): 1.0,
    qd.pairs.single_token_bleu_pair(1, 1).g: 1.0,
    qd.pairs.single_token_bleu_pair(1, 4).g: 2 / 5,
    qd.pairs.single_token_bleu_pair(1, 1000).g: 2 / 1001,
    qd.Expression("-x*log(x)"): 1.0,
    qd.Expression("-(x - 1/3)**4"): 1.0,
    qd.Expression("x**3 - 2*x**2"): 2 / 3,
}


@pytest.mark.parametrize("g", SHAPES)
def test_the_second_derivative_has_the_sign_that_is_proved(g):
    inflection = SHAPES[g]
    g = as_function(g, "g")
    assert g.is_concave(inflection)
    assert g.is_concave() == (inflection == 1)
    x = np.linspace(0, 1, 1000)[1:-1]
    curvature = np.asarray(jax.vmap(jax.grad(jax.grad(g)))(x))
    # Both are tiny far beyond the inflection: (1 - x)^999.
    assert (curvature[x < inflection] < 1e-12).all()
    assert (curvature[x > inflection] > -1e-12).all()


@pytest.mark.parametrize("inflection", [0.5, 0.66, 0.67, 0.8, 1.0])
def test_no_other_inflection_is_proved(inflection):
    assert not as_function("x**3 - 2*x**2", "g").is_concave(inflection)


def test_code_and_a_kink_are_not_proved():
    assert not as_function(lambda x: -(x**2), "g").is_concave()
    kink = as_function("-x**2 + sqrt((x - 1/3)**2)", "g")
    assert not kink.is_concave()
