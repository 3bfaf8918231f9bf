"""Verdicts on rewards: the table, and what is proved of formulas."""

import numpy as np
import pytest
from refusals import refused

import qdtheory as qd
from qdtheory.generators import REWARDS, check_reward, given_reward


@pytest.mark.slow
@pytest.mark.claim("N20.6")
def test_of_the_named_rewards_the_logit_alone_is_a_pair():
    verdicts = {name: check_reward(name) for name in REWARDS}
    assert [v.pair for v in verdicts.values() if v.is_pair] == ["LL + SE"]
    assert all(v.is_pair is not None for v in verdicts.values())
    for name, verdict in verdicts.items():
        assert verdict.rises
        assert verdict.divergence == REWARDS[name].divergence
        assert verdict.optimum == "Q = P alone"
        # φ as SymPy found it differs from the registry's by a multiple of u - 1.
        u = np.array([0.1, 0.5, 3.0])
        found = qd.Expression(verdict.phi, "u").value(u)
        gap = (found - np.asarray(REWARDS[name].phi(u))) / (u - 1)
        np.testing.assert_allclose(gap, gap[0], atol=1e-12)


@pytest.mark.parametrize(
    ("formula", "divergence", "pair"),
    [
        ("0.5*log(D) - 0.5*log(1 - D)", "1/2 KL(Q, P)", "1/2 LL + 1/2 SE"),
        ("3*D - 2", "3 KL(P, M)", None),
        ("2*(D/(1-D))**2", "2 (sum P^2/Q - 1)", None),
        ("sqrt(D)", None, None),
    ],
)
def test_names_hold_up_to_scale_and_shift(formula, divergence, pair):
    verdict = check_reward(formula)
    assert (verdict.divergence, verdict.pair) == (divergence, pair)
    assert verdict.rises
    assert verdict.is_pair == (pair is not None)


def test_rewards_that_do_not_rise():
    falls = check_reward("D*(1 - D)")
    assert not falls.rises
    assert falls.falls_at > 0.5
    assert falls.optimum.startswith("not Q = P")
    minus = check_reward("-D")
    assert minus.divergence == "-KL(P, M)"
    assert minus.optimum.startswith("the rarest text alone")
    constant = check_reward("3")
    assert constant.optimum == "every Q: the reward is constant"
    assert constant.is_pair is False
    # An integral that takes SymPy minutes is not tried.
    assert check_reward("D**0.3*(1 - D)**0.7").phi is None
    # It rises but at one point, where it is flat.
    assert check_reward("(D - 1/2)**3").rises


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    code = given_reward(lambda d: 2 * d)
    refused(
        ("the proofs need a formula of D", check_reward, code),
        ("log2", check_reward, "log2(D)"),
    )
