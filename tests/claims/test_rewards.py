"""Rewards, divergences and implied truths, against closed forms and integration."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import metrics
from models import DIVERGENCES
from refusals import refused
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import softmax

import qdtheory as qd
from qdtheory.rewards import (
    REWARDS,
    check_reward,
    given_reward,
    optimal_discriminator,
    optimal_rewards,
    reward_objective,
)

# The rewards by hand, as functions of u = Q / P.


def rng():
    return np.random.default_rng(0)


@pytest.mark.claim("N20.1")
@pytest.mark.parametrize("name", REWARDS)
def test_the_objective_is_a_known_divergence(name):
    for q, p in rng().dirichlet(np.ones(9), (20, 2)):
        found = reward_objective(REWARDS[name], q, p)
        # Sums of nine terms of either sign, which cancel at a small divergence.
        expected = pytest.approx(float(DIVERGENCES[name](q, p)), rel=1e-11, abs=1e-13)
        assert -float(found) == expected


# The rewards by hand, as functions of u = Q / P.
OF_RATIO = {
    "D": lambda u: 1 / (1 + u),
    "log D": lambda u: -np.log1p(u),
    "-log(1-D)": lambda u: np.log1p(1 / u),
    "D/(1-D)": lambda u: 1 / u,
    "logit D": lambda u: -np.log(u),
    "(D/(1-D))**2": lambda u: u**-2,
}


@pytest.mark.parametrize("name", REWARDS)
def test_phi_is_minus_the_integral_of_the_reward(name):
    code = given_reward(lambda d: 1.0 * REWARDS[name].of_discriminator(d))
    for u in (0.03, 0.6, 1.0, 30.0):
        expected = pytest.approx(-quad(OF_RATIO[name], 1, u, epsabs=1e-12)[0], abs=1e-9)
        assert float(REWARDS[name].phi(u)) == expected == float(code.phi(u))


def test_rewards_at_the_optimum_are_those_of_the_discriminator():
    q, p = rng().dirichlet(np.ones(9), 2)
    np.testing.assert_allclose(optimal_discriminator(q, p), p / (p + q), rtol=1e-14)
    for name, of_ratio in OF_RATIO.items():
        found = optimal_rewards(REWARDS[name], q, p)
        np.testing.assert_allclose(found, of_ratio(q / p), rtol=1e-12, atol=1e-14)
    # Code can be differentiated.
    both = given_reward(lambda d: jnp.log(d)), REWARDS["log D"]
    slopes = [jax.grad(reward_objective, 1)(r, q, p) for r in both]
    np.testing.assert_allclose(*slopes, rtol=1e-11, atol=1e-11)


def test_a_text_that_is_never_real_has_d_zero():
    q, p = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4, 0.0])
    d = p / (p + q)
    for name, values in {
        "-log(1-D)": -np.log(1 - d),
        "D/(1-D)": p / q,
        "(D/(1-D))**2": (p / q) ** 2,
        "D**2 + D": d**2 + d,
    }.items():
        found = optimal_rewards(given_reward(name), q, p)
        np.testing.assert_allclose(found, values, rtol=1e-14)
    for name in ("log D", "logit D", "1 - 1/D"):
        with pytest.raises(ValueError, match=r"-inf at a text that is never real"):
            optimal_rewards(given_reward(name), q, p)


@pytest.mark.claim("N20.8")
@pytest.mark.parametrize("name", REWARDS)
def test_kl_never_rises_along_the_flow_with_an_optimal_discriminator(name):
    """d KL(P, Q)/dt = -sum P q'/Q, wherever the flow is."""
    starts = np.exp(rng().normal(scale=2, size=(20_000, 2, 6)))
    q, p = np.moveaxis(starts / starts.sum(axis=-1, keepdims=True), 1, 0)
    rewards = np.asarray(REWARDS[name].of_discriminator(p / (p + q)))
    terms = p * (rewards - (q * rewards).sum(axis=1, keepdims=True))
    # Sums of six terms, rounding relative to them.
    assert (terms.sum(axis=1) >= -1e-13 * np.abs(terms).sum(axis=1)).all()


@pytest.mark.claim("N20.3")
@pytest.mark.parametrize("name", [*REWARDS, "0.3*log(D) - 0.3*log(1 - D) + 2", "D**3"])
def test_the_curvature_in_q_depends_on_p_but_for_the_logit(name):
    reward, ratios = given_reward(name), []
    curvature = jax.jit(jax.hessian(lambda q, p: reward_objective(reward, q, p)))
    for q, p in rng().dirichlet(np.ones(4), (20, 2)):
        # Text 0 gains at the expense of text 3; Q and the other texts stay.
        moved = p + p[3] / 2 * np.array([1, 0, 0, -1])
        before, after = (float(curvature(q, x)[0, 0]) for x in (p, moved))
        ratios.append(after / before)
    worst = np.abs(np.array(ratios) - 1).max()
    # The integral of a formula, differentiated twice.
    assert worst <= 1e-6 if name.startswith(("logit", "0.3")) else worst >= 0.1


@pytest.mark.claim("N20.7")
def test_a_multiple_of_the_logit_is_that_of_ll_plus_se():
    reward = given_reward("0.5*log(D/(1 - D)) - 3")
    for q, p in rng().dirichlet(np.ones(7), (5, 2)):
        pair = qd.LL_SE.quality(q, p) + qd.LL_SE.diversity(q)
        found = reward_objective(reward, q, p)
        np.testing.assert_allclose(found, pair / 2, atol=1e-12)


# --- Verdicts -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N20.6")
@pytest.mark.parametrize("name", REWARDS)
def test_of_the_named_rewards_the_logit_alone_is_a_pair(name):
    found, u = check_reward(name), np.array([0.1, 0.5, 3.0])
    assert (found.is_pair, found.rises) == (name == "logit D", True)
    assert found.pair == ("LL + SE" if name == "logit D" else None)
    assert found.divergence == REWARDS[name].divergence
    assert found.optimum == "Q = P alone"
    # φ as SymPy found it differs from the registry's by a multiple of u - 1.
    gap = qd.Expression(found.phi, "u").value(u) - np.asarray(REWARDS[name].phi(u))
    np.testing.assert_allclose(gap / (u - 1), gap[0] / (u[0] - 1), atol=1e-12)


@pytest.mark.parametrize(
    ("formula", "divergence", "pair"),
    [
        ("0.5*log(D) - 0.5*log(1 - D)", "1/2 KL(Q, P)", "1/2 LL + 1/2 SE"),
        ("2*(D/(1-D))**2", "2 (sum P^2/Q - 1)", None),
        ("3*log(D)", "6 KL(M, P)", None),
        ("(D - 1/2)**3", None, None),  # it rises but at one point, where it is flat
    ],
)
def test_names_hold_up_to_scale_and_shift(formula, divergence, pair):
    found = check_reward(formula)
    assert found.rises
    assert (found.divergence, found.pair) == (divergence, pair)
    assert found.is_pair == (pair is not None)


def test_rewards_that_do_not_rise():
    falls, minus, constant = map(check_reward, ("D*(1 - D)", "-D", "3"))
    assert (falls.rises, falls.falls_at > 0.5) == (False, True)
    assert falls.optimum.startswith("not Q = P")
    assert minus.divergence == "-KL(P, M)"
    assert minus.optimum.startswith("the rarest text alone")
    assert constant.optimum == "every Q: the reward is constant"
    assert constant.is_pair is False
    assert check_reward("1 + D - D**8/2").optimum == "Q = P, judged on a grid"
    # An integral that takes SymPy minutes is not tried.
    assert check_reward("D**0.3*(1 - D)**0.7").phi is None


@pytest.mark.parametrize("said", ["logit(D)", "logit D", "ln D - ln(1 - D)", "logit d"])
def test_a_reward_is_written_as_people_write(said):
    found, named = vars(check_reward(said)), vars(check_reward("logit D"))
    assert found | {"reward": ""} == named | {"reward": ""}


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    half, zero, third = [0.5, 0.5], [1.0, 0.0], [0.2, 0.3, 0.5]
    everywhere, smooth = "p must be positive every", "smooth for every D in (0, 1)"
    for function in (reward_objective, optimal_rewards):
        refused(
            (everywhere, function, REWARDS["log D"], half, zero),
            ("q must have 2 entries, got 3", function, REWARDS["log D"], third, half),
        )
    refused(
        (everywhere, optimal_discriminator, half, zero),
        ("use D, numbers", given_reward, "x**2"),
        (f"{smooth}; it is not near D = 0.25", given_reward, "sqrt(D - 1/2)"),
        (smooth, given_reward, lambda d: 1 / (d - 0.5) ** 2),
        ("falls, at D = 0.75 for one", given_reward, "D*(1 - D)"),
        ("<lambda> falls, at D = 1 ", given_reward, lambda d: d * (1 - d)),
        ("the proofs need a formula of D", check_reward, given_reward(jnp.sqrt)),
        (smooth, check_reward, "log|D - 1/2|"),
        ("scores must be finite", truths, [1.0, -np.inf], "SE", [1.0]),
        ("prices must be positive", truths, SCORES, "SE", [0.0]),
        ("prices must be positive", truths, SCORES, "SE", []),
        ("concave", truths, SCORES, "x**2", [1.0]),
    )
    refused(
        ("expected a reward, ", given_reward, 3),
        ("the reward of D", given_reward, lambda d: np.log(d) if d > 0.5 else d),
        error=TypeError,
    )


# --- implied truths -------------------------------------------------------------------

SCORES = np.array([3.0, 1.0, 2.5, 0.5, 1.5])
truths = qd.rewards.implied_truths


@pytest.mark.claim("N25.7")
def test_they_are_the_softmax_with_entropy_and_a_closed_form_with_distinct_k():
    found = truths(SCORES, "SE", [0.5, 2.0, 8.0])
    for eta, p in zip(found.prices, found.p):
        np.testing.assert_allclose(p, softmax(SCORES / eta), atol=1e-6)
    assert max(found.gap) <= 1e-9 * np.ptp(SCORES)
    k, eta = 5, 2.0

    def model(c):
        return 1 - np.clip((c - SCORES) / (eta * k), 0, 1) ** (1 / (k - 1))

    (p,) = truths(SCORES, partial(metrics.distinct_k, k=k), [eta]).p
    c = brentq(lambda c: model(c).sum() - 1, 0, 3 + eta * k)
    np.testing.assert_allclose(p, model(c), atol=1e-6)


@pytest.mark.claim("N25.7")
def test_pass_at_1_against_pass_at_k():
    right = np.array([0.5, 0.3, 0.15, 0.05])  # the chance that each answer is right
    pass_at_10 = lambda q: jnp.vdot(right, 1 - (1 - q) ** 10)  # noqa: E731
    p = np.asarray(truths(right, pass_at_10, [0.3]).p[0])
    gain = right + 0.3 * right * 10 * (1 - p) ** 9
    assert np.ptp(gain[p > 1e-6]) < 1e-6
    # The answers' own frequencies are not among the family.
    pair = qd.ConcavePair(lambda p: jnp.asarray(right), pass_at_10)
    assert qd.check_compatibility(pair, right).compatible is False
