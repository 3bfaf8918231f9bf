"""Proofs of concavity: what is proved, and what must not be."""

import qdtheory as qd
from qdtheory.theory.concavity import concavity_claim, is_strictly_concave


def test_concavity():
    assert is_strictly_concave(qd.Expression("-x*log(x)"))
    assert is_strictly_concave(qd.Expression("-(x - 1/3)**4"))
    assert not is_strictly_concave(qd.Expression("x**3 - 2*x**2"))
    assert not is_strictly_concave(qd.Expression("-x**2 + sqrt((x - 1/3)**2)"))


def test_concave_up_to_a_point_and_convex_beyond():
    g = qd.Expression("x**3 - 2*x**2")
    assert is_strictly_concave(g, 2 / 3)
    assert not is_strictly_concave(g, 0.66)
    assert not is_strictly_concave(g, 0.67)
    assert not is_strictly_concave(qd.Expression("-x*log(x)"), 0.5)


def test_a_bump_beyond_every_grid_is_seen():
    bump = "-x**2 + 0.1*exp(-((x - 0.50037)/1e-5)**2)"
    assert not is_strictly_concave(qd.Expression(bump))
    assert concavity_claim(qd.Expression(bump), 1.0) is None


def test_code_is_never_proved():
    assert not is_strictly_concave(lambda x: -(x**2))
    assert concavity_claim(lambda x: -(x**2), 1.0).startswith("so at ")
    assert concavity_claim(qd.SE, 1.0) == "proved"
