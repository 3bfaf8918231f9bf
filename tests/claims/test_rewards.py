"""Rewards, divergences and implied truths, against closed forms and integration."""

from functools import partial
from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import metrics
from lab.generators import optimal_discriminator, optimal_rewards, reward_objective
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
    implied_law,
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


# --- rewards of samples -------------------------------------------------------------
SCORES, PEOPLE = np.array([1, 0.8, 0.5, 0.1]), np.array([0.4, 0.3, 0.2, 0.1])


def sets_of(k):
    """All sets of k samples, and how many of a set are equal to each."""
    sets = np.array([*product(range(4), repeat=k)])
    return sets, (sets[:, :, None] == sets[:, None]).sum(2)


SETS, EQUAL = sets_of(3)
EARNED, HUMAN = SCORES[SETS], PEOPLE[SETS]
# The right answers in a set, each once.
RIGHT = (EARNED / EQUAL).sum(1, keepdims=True) + 0 * EARNED
# What each sample of a set is paid, in the words of the recipe.
PAID = {
    "reward": lambda q: EARNED,
    "reward x unlike": lambda q: EARNED * (3 - EQUAL) / 2,
    "reward / cluster": lambda q: EARNED / EQUAL,
    "entropy bonus": lambda q: EARNED - 0.1 * np.log(q[SETS]),
    "KL penalty": lambda q: EARNED - 0.1 * np.log(q[SETS] / HUMAN),
    "pass@k": lambda q: RIGHT,
    "pass@1 + pass@k": lambda q: EARNED + RIGHT,
    "match 2:1": lambda q: 2 * HUMAN - (EQUAL - 1) / 2,
    "match 1:1": lambda q: HUMAN - (EQUAL - 1) / 2,
}


def credits(paid, q):
    """The mean reward of a sample by its answer, and the slope of a set's mean reward.

    The slope of a mean over sets sums the score over all places of an answer. That the
    logarithm of q in a score moves with q adds the same to all slopes.
    """
    slope = np.zeros(4)
    for place in range(3):
        others = q[np.delete(SETS, place, 1)].prod(1)
        slope += np.bincount(SETS[:, place], others * paid.mean(1))
    return np.bincount(SETS[:, 2], others * paid[:, 2]), slope


def assert_rests(ascent, expected, rate=1.5):
    """Training by small steps along the ascent ends there, from three starts."""
    for start in ([0.25] * 4, [0.05, 0.05, 0.1, 0.8], [0.85, 0.05, 0.05, 0.05]):
        q = np.array(start)
        for _ in range(1500):
            q = np.maximum(q * np.exp(rate * ascent(q)), 1e-100)
            q /= q.sum()
        assert q == pytest.approx(expected, rel=0, abs=1e-6)


@pytest.mark.claim("N24.33", "N24.34", "N24.35", "N24.37")
@pytest.mark.parametrize("name", PAID)
@pytest.mark.parametrize("credit", [0, 1])
def test_training_rests_at_the_implied_law_from_any_start(name, credit):
    law = implied_law(name, SCORES, PEOPLE, num_samples=3)
    expected = np.asarray((law.own_credit, law.set_credit)[credit])
    assert_rests(lambda q: credits(PAID[name](q), q)[credit], expected)


@pytest.mark.claim("N24.34")
@pytest.mark.parametrize("credit", [0, 1])
def test_rewards_for_which_reward_times_unlikeness_keeps_peoples_frequencies(credit):
    paid = (1 / (1 - (1 + credit) * PEOPLE))[SETS] * (3 - EQUAL) / 2
    assert_rests(lambda q: credits(paid, q)[credit], PEOPLE, rate=0.3)


@pytest.mark.claim("N24.33")
def test_a_kernel_of_alike_answers_rests_at_people_if_its_diversity_counts_twice():
    """With weights of 2 and 1 where 2 Kp - Kq is level."""
    half = rng().normal(size=(4, 6)) + 1.5 * np.eye(4, 6)
    kernel = half @ half.T
    assert_rests(lambda q: kernel @ (PEOPLE - q), PEOPLE, rate=0.1)
    q = np.full(4, 0.25)
    for _ in range(20_000):
        q = q * np.exp(0.1 * kernel @ (2 * PEOPLE - q))
        q /= q.sum()
    paid = kernel @ (2 * PEOPLE - q)
    assert paid.max() - q @ paid <= 1e-6 < np.abs(q - PEOPLE).max() / 10


@pytest.mark.claim("N24.33", "N24.34")
def test_own_credit_divides_the_weight_of_a_diversity_by_its_degree():
    """Slopes by differences; scores of random tuples, made symmetric."""
    for degree in (1, 2, 3):
        score = rng().normal(size=degree * (4,))
        turns = [score.transpose(x) for x in permutations(range(degree))]
        score = sum(turns) / len(turns)

        def mean(q, left=0, score=score, degree=degree):
            for _ in range(degree - left):
                score = score @ q
            return score

        step = 1e-5 * np.eye(4)
        slope = [(mean(PEOPLE + h) - mean(PEOPLE - h)) / 2e-5 for h in step]
        assert slope == pytest.approx(degree * mean(PEOPLE, 1), rel=0, abs=1e-9)


@pytest.mark.claim("N24.36")
@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_the_mean_of_the_set_as_a_baseline_takes_diversity_away(weight):
    """By all sets of three: half of the unlikeness is left, of two samples none."""
    q = rng().dirichlet(np.ones(4))
    for paid, part in [
        (EARNED * (3 - EQUAL) / 2, SCORES * (1 - q / 2)),
        (weight * HUMAN - (EQUAL - 1) / 2, weight * PEOPLE - q / 2),
    ]:
        mine = q[SETS[:, 1:]].prod(1) * (paid[:, 0] - paid.mean(1))
        assert np.ptp(np.bincount(SETS[:, 0], mine) - 2 / 3 * part) <= 1e-14
    two = SCORES * (1 - q) - (SCORES * (1 - q) + q @ SCORES - q * SCORES) / 2
    assert np.ptp(two - SCORES / 2) <= 1e-15


@pytest.mark.claim("N24.36")
@pytest.mark.parametrize(
    ("k", "divided", "best"),
    [
        (2, 0, 1.0),
        (2, 1, 1.0),
        (4, 0, 0.611),
        (4, 1, 0.686),
        (8, 0, 0.574),
        (8, 1, 0.57),
    ],
)
def test_where_advantages_rest(k, divided, best):
    """By all tuples of k samples, from another start."""
    sets, equal = sets_of(k)
    paid = SCORES[sets] * (k - equal) / (k - 1)
    mine = paid[:, 0] - paid.mean(1)
    if divided:
        mine = mine / (paid.std(1) + 1e-9)
    q = PEOPLE[::-1]
    for _ in range(400):
        pull = np.bincount(sets[:, 0], q[sets[:, 1:]].prod(1) * mine)
        q = q * np.exp(pull)
        q = q / q.sum()
    # The lecture prints two digits; steps that get small are left.
    assert q[0] == pytest.approx(best, rel=0, abs=2e-3)


@pytest.mark.claim("N24.36")
@pytest.mark.parametrize("k", [2, 4])
def test_the_division_moves_no_rest_of_rewards_without_diversity(k):
    """Expected advantages have mean 0 under q, that of the best answer is positive."""
    sets, _ = sets_of(k)
    paid = SCORES[sets]
    mine = (paid[:, 0] - paid.mean(1)) / (paid.std(1) + 1e-9)
    for q in rng().dirichlet(np.ones(4), 20):
        pull = np.bincount(sets[:, 0], q[sets[:, 1:]].prod(1) * mine)
        assert abs(q @ pull) <= 1e-12
        assert pull[0] > 1e-3


@pytest.mark.claim("N24.36")
def test_clipping_does_not_move_the_first_step():
    old = rng().dirichlet(np.ones(4))
    paid = PAID["reward x unlike"](old)
    mine = (paid - paid.mean(1, keepdims=True)).ravel()
    chance = np.repeat(old[SETS].prod(1), 3)

    def objective(logits, low, high):
        ratio = (jax.nn.softmax(logits) / old)[SETS].ravel()
        clipped = jnp.clip(ratio, low, high)
        return (chance * jnp.minimum(ratio * mine, clipped * mine)).sum()

    plain, clipped = (
        jax.grad(objective)(jnp.log(old), *ends) for ends in [(0, np.inf), (0.8, 1.2)]
    )
    np.testing.assert_allclose(clipped, plain, atol=1e-15)
    # A step further it clips.
    far = jnp.log(old) + jnp.array([1.0, 0, 0, 0])
    assert objective(far, 0.8, 1.2) < objective(far, 0, np.inf) - 0.01


@pytest.mark.slow
@pytest.mark.claim("N24.33", "N24.37")
def test_sampled_training_stays_near_the_implied_law():
    """REINFORCE from one human answer and two samples at a time, softmax of 4."""
    draws, logits, mean = rng(), np.zeros(4), np.zeros(4)
    for step in range(40_000):
        q = np.exp(logits - logits.max())
        q /= q.sum()
        (human,), x = draws.choice(4, 1, p=PEOPLE), draws.choice(4, 2, p=q)
        paid = (x == human) - 1.0 * (x[0] == x[1])
        for answer, reward in zip(x, paid):
            logits += 0.01 * reward * (np.eye(4)[answer] - q)
        mean += q * (step >= 10_000) / 30_000
    # Drift and noise of steps of this size; by 2 to 1 the first would be .533.
    assert mean == pytest.approx(PEOPLE, rel=0, abs=0.04)


def drawn(name, rate, steps, chains=256):
    """REINFORCE on sets of three, softmax of 4: mean of the later half, error."""
    draws, logits, later = rng(), np.zeros((chains, 4)), np.zeros((chains, 4))
    rows = np.arange(chains)[:, None]
    for step in range(steps):
        q = softmax(logits, axis=1)
        x = (draws.random((chains, 3, 1)) > q.cumsum(1)[:, None, :3]).sum(2)
        paid = PAID[name](PEOPLE)[x @ (16, 4, 1)]
        change = -paid.sum(1, keepdims=True) * q
        np.add.at(change, (rows, x), paid)
        logits += rate * change
        later += q * (step >= steps // 2) * 2 / steps
    return later.mean(0), later.var(0, ddof=1) / chains


def expected(name, rate, steps):
    """The same along the expected step."""
    logits, later = np.zeros(4), np.zeros(4)
    for step in range(steps):
        q = softmax(logits)
        paid = credits(PAID[name](PEOPLE), q)[0]
        logits += 3 * rate * q * (paid - q @ paid)
        later += q * (step >= steps // 2) * 2 / steps
    return later


@pytest.mark.slow
@pytest.mark.claim("N24.33", "N24.34", "N24.37")
@pytest.mark.parametrize("name", sorted(PAID.keys() - {"entropy bonus", "KL penalty"}))
def test_sampled_training_is_expected_training_within_its_error(name):
    """Twice the value at half the rate less that at the whole: first orders cancel."""
    sizes = (0.02, 2000), (0.01, 4000)
    whole, half = (drawn(name, *size) for size in sizes)
    law, near = (expected(name, *size) for size in sizes)
    error = np.sqrt(whole[1] + 4 * half[1])
    assert (np.abs(2 * half[0] - whole[0] - 2 * near + law) <= 4 * error).all()
    assert error.max() <= 0.01


def test_bad_recipes_are_refused(as_a_user):
    refused(
        ("recipe must be one of reward, ", implied_law, "best", [1, 2]),
        ("two or more numbers from 0", implied_law, "reward", [1, -1]),
        ("two or more numbers from 0", implied_law, "reward", [np.nan, 1]),
        ("two or more numbers from 0", implied_law, "reward", [1.0]),
        ("p must have 2 entries", implied_law, "reward", [1, 2], [0.5, 0.25, 0.25]),
        ("p must be positive", implied_law, "match 1:1", [1, 2], [1.0, 0.0]),
    )
    for number in (1, 2.5):
        with pytest.raises(ValueError, match="whole, at least 2, and price"):
            implied_law("pass@k", [1, 2], num_samples=number)
