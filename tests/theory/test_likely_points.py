"""The P that are tried: interior, the same each time, and with the suspect texts."""

from itertools import islice

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.theory.likely_points import likely_points, random_points
from qdtheory.theory.theorem_3 import read_functions

# f falls within 1e-4 of .37037037 only, between the points of the grid.
NARROW = "x - 1e-5*exp(-((10000*x - 3703.7037)**2))"
PAIRS = {
    "formulas": qd.SeparablePair(qd.Expression(NARROW), qd.formulas.NRR),
    "code": qd.SeparablePair(lambda x: x * (1.2 - x), lambda x: -(x**2)),
}


def functions_of(name):
    return read_functions(PAIRS[name].f, PAIRS[name].g)


@pytest.mark.parametrize("num_texts", [2, 3, 9])
@pytest.mark.parametrize("name", PAIRS)
def test_every_p_is_an_interior_distribution(name, num_texts):
    functions = functions_of(name)
    points = list(likely_points(functions, num_texts))
    again = list(likely_points(functions, num_texts))
    np.testing.assert_array_equal(points, again)
    assert np.shape(points)[1] == num_texts
    assert np.min(points) > 0
    np.testing.assert_allclose(np.sum(points, axis=1), 1, rtol=1e-12)
    # The random ones are among them, in their order.
    random = np.array(list(random_points(num_texts)))
    assert len(random) == 64
    rows = [next(i for i, p in enumerate(points) if (p == r).all()) for r in random]
    assert rows == sorted(rows)


def test_a_text_lies_where_f_falls():
    points = list(likely_points(functions_of("formulas"), 4))
    assert np.min(np.abs(np.array(points) - 0.37037)) < 1e-4
    first = list(islice(likely_points(functions_of("code"), 4), 32))
    assert all(p.max() > 0.6 or p[0] >= 0.6 for p in first)


def test_many_texts_are_drawn_less_often():
    assert len(list(random_points(2**14))) == 16
    assert len(list(random_points(2**20))) == 1
