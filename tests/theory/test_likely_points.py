"""Real distributions to try: interior, and with texts at what a formula does."""

from itertools import islice

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.theory.likely_points import likely_points, random_points
from qdtheory.theory.theorem_3 import read_functions


def points(f, g, num_texts):
    pair = qd.SeparablePair(qd.Expression(f), qd.Expression(g))
    return list(likely_points(read_functions(pair), num_texts))


@pytest.mark.parametrize("num_texts", [2, 3, 6])
def test_all_are_interior_distributions(num_texts):
    for p in points("x - x**2", "x - 3*x**2 + 2*x**3", num_texts):
        assert p.shape == (num_texts,)
        assert p.min() > 0
        assert p.sum() == pytest.approx(1, abs=1e-14)


def test_random_ones_go_from_nearly_uniform_to_peaked_and_are_the_same_again():
    first, again = (np.array(list(random_points(5))) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(first) == 64
    assert first.max(axis=1).min() < 0.3
    assert first.max(axis=1).max() > 0.8


def test_fewer_are_drawn_of_many_texts():
    assert len(list(random_points(2**17))) == 2


@pytest.mark.parametrize("place", [0.40813, 0.0125, 0.75037])
def test_a_narrow_fall_of_f_gets_a_text_and_two_if_there_is_room(place):
    dip = f"x + 3*(x - {place})*exp(-((x - {place})/1e-5)**2)"
    dip = dip.replace("+ 3", "- 3")
    found = points(dip, "-x**2", 4)
    near = [np.sum(abs(p - place) < 3e-5) for p in found]
    assert 1 in near
    assert (2 in near) == (2 * place < 1)


def test_a_narrow_bump_of_g_gets_a_text():
    found = points("x", "-x**2 + 1e-9*exp(-((x - 0.5003)/1e-5)**2)", 3)
    assert any(np.any(abs(p - 0.5003) < 5e-5) for p in islice(found, 40))
