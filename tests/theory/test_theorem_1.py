"""The conditions of Theorem 1 under changes that they do not depend on."""

import jax.numpy as jnp
import pytest

import qdtheory as qd

PAIRS = {
    "CR-NRR": qd.CR_NRR,
    "five candidates": qd.single_token_bleu_pair(1, 4),
    "f falls": qd.SeparablePair(lambda x: x * (1 - x), qd.SE),
    "g is linear": qd.SeparablePair(qd.LL, lambda x: 3.0 * x),
}


@pytest.mark.parametrize("name", PAIRS)
def test_scale_shift_and_a_line_change_no_verdict(name):
    f, g = PAIRS[name].f, PAIRS[name].g
    changed = qd.SeparablePair(
        lambda x: 4.0 * f(x) - 8.0, lambda x: 2.0 * g(x) + 0.5 * x + 1.0
    )
    found = qd.check_rationality(PAIRS[name])
    assert qd.check_rationality(changed).rational == found.rational
    assert found.rational == (name == "CR-NRR")


def test_a_violation_refutes_the_property_itself():
    f = PAIRS["f falls"].f
    large, small = qd.check_rationality(PAIRS["f falls"]).quality_violation
    assert large > small
    assert large + small <= 1
    assert f(jnp.asarray(large)) <= f(jnp.asarray(small))
