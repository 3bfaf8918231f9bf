"""Holes in the domain of a formula, and none where it is smooth."""

import pytest

import qdtheory as qd
from qdtheory.formulas.domains import find_hole


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
