"""Trees of formulas: writing, simplifying, and choices made once."""

from fractions import Fraction

import pytest

from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.trees import (
    ball,
    balls,
    decided,
    folded,
    names,
    simplified,
    size_of,
    subtrees,
    written,
)

TEXTS = [
    *("x", "-x*log(x)", "(x - x**1.5)/0.5", "x - (x - 1)", "2/(3/x)", "-(x + 1)**2"),
    *("exp(-x**2)*sqrt(1 + x)", "x**(1/3)", "1e-7*x - 3", "(x*x)**-2", "x/3*4"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_simplified_or_written_and_read_is_equal_to_77_digits(text):
    tree = Expression(text).inside
    for other in (simplified(tree), Expression(written(tree)).inside):
        for k in range(1, 20):
            x = ball(Fraction(k, 21))
            for a, b in zip(balls(tree, x, 2), balls(other, x, 2)):
                assert a.overlaps(b)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("x*log(1/x)", "-1*x*log(x)"), ("x**3/x", "x**2"), ("exp(log(x))", "x")],
)
def test_simplified(text, expected):
    assert written(simplified(Expression(text).inside)) == expected


def test_a_choice_is_made_if_it_falls_one_way_on_all_of_0_to_1():
    half = Fraction(1, 2)
    assert decided(("where", ("<", Fraction(0), "x"), "x", half)) == "x"
    assert decided(("where", ("<", ("exp", "x"), half), "x", half)) == half
    open_choice = ("where", ("<", half, "x"), "x", half)
    assert decided(open_choice) == open_choice
    (value,) = balls(open_choice, ball(Fraction(3, 4)))
    assert float(value) == 0.75
    assert not balls(open_choice, ball(half).union(ball(Fraction(1))))[0].is_finite()


def test_parts():
    tree = folded("+", folded("*", "x", "x"), folded("*", "x", "x"))
    assert size_of(tree) == 7
    assert names(tree) == {"+", "*", "x"}
    assert subtrees(tree)[-1] is tree
    assert folded("sqrt", folded("-", Fraction(3, 10), Fraction(3, 10))) == 0
