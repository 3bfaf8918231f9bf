"""What published code of text GANs computes, as the errata say, by other routes."""

from itertools import product
from math import frexp, log

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import draw, mixtures
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from referees.prefixes import masses_after
from scipy.optimize import approx_fprime
from scipy.special import log_expit, log_softmax, softmax
from scipy.stats import multinomial, spearmanr

import qdtheory as qd

# -- LeakGAN -------------------------------------------------------------------------


def places(keys):
    """Reward of each key by its place in the order of the keys, as `rescale` has it."""
    order = list(dict.fromkeys(keys))
    x = [16 * (order.index(key) + 1) / len(keys) - 8 for key in keys]
    return np.exp(x) / (1 + np.exp(x))


def python_2_order(keys):
    """The order in which CPython 2.7 reads a dictionary of different floats."""

    def put(table, key):
        mantissa, exponent = frexp(key)
        high = int(mantissa * 2**31)
        low = int((mantissa * 2**31 - high) * 2**31)
        slot = shift = (high + low + (exponent << 15)) % 2**64
        while table[slot % len(table)] is not None:
            slot = (5 * slot + shift + 1) % 2**64
            shift >>= 5
        table[slot % len(table)] = key

    table = [None] * 8
    for size, key in enumerate(keys, 1):
        put(table, key)
        if 3 * size >= 2 * len(table):
            old, table = table, [None] * 2 ** (4 * size).bit_length()
            for key in filter(None, old):
                put(table, key)
    return [*filter(None, table)]


@pytest.mark.claim("N20.31")
def test_a_reward_by_place_ignores_the_scores_in_the_order_of_either_python():
    rng, by_hash = np.random.default_rng(31), []
    for _ in range(400):
        scores = rng.uniform(0.02, 0.6, (4, 64)).astype(np.float32).sum(axis=0).tolist()
        assert (np.diff(places(scores)) > 0).all()  # rising with the place in the batch
        order = python_2_order(scores)
        assert sorted(order) == sorted({*scores})
        by_hash.append(spearmanr([*map(order.index, scores)], scores).statistic)
    assert abs(np.mean(by_hash)) < 4 * 0.126 / np.sqrt(400)


@pytest.mark.parametrize(("size", "equal"), [(64, 1), (32, 1), (64, 8), (64, 64)])
def test_the_mean_of_sigmoids_of_ranks_is_a_constant_and_equal_scores_share_a_place(
    size, equal
):
    scores = np.random.default_rng(size).random(size)
    scores[:equal] = 2.0
    with mpmath.workdps(40):
        ranks = [0] * (equal - 1) + [*range(size - equal + 1)]
        odds = [mpmath.exp(mpmath.mpf(16) * (k + 1) / size - 8) for k in ranks]
        mean = sum(x / (1 + x) for x in odds) / size
        # Without ties the terms of k and of size - k add up to 1.
        pairs = (mpmath.mpf(size - 1) / 2 + 1 / (1 + mpmath.exp(-8))) / size
        assert (abs(mean - pairs) < 1e-35) == (equal == 1)
    assert places(scores).mean() == pytest.approx(float(mean), rel=1e-13)


def cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


@pytest.mark.parametrize("each", [False, True])
def test_a_scalar_cosine_leaves_the_manager_the_sum_of_the_rewards(each):
    rng = np.random.default_rng(33)
    (goals, features), rewards = rng.normal(size=(2, 5, 3)), rng.random(5)

    def gradient(rewards):
        def loss(x):
            found = cosine(x.reshape(5, 3), features)
            return (rewards * (found if each else found.mean())).mean()

        return approx_fprime(goals.ravel(), loss, 1e-6)

    gap = np.abs(gradient(rewards) - gradient(np.full(5, rewards.mean()))).max()
    assert gap > 1e-3 if each else gap < 1e-8


@pytest.mark.parametrize("size", [2, 6])
def test_a_mean_reward_leaves_one_part_in_b_of_the_step(size):
    q, reward = draw(34, 3, 1.0), np.random.default_rng(34).normal(size=3)
    share = mixtures(3, size)
    steps = (share @ reward)[:, None] * (share - q)
    found = multinomial.pmf(np.rint(share * size).astype(int), size, q) @ steps
    assert found == pytest.approx(q * (reward - q @ reward) / size, abs=1e-14)


@pytest.mark.claim("N20.35")
@pytest.mark.parametrize("seed", range(3))
def test_cooling_an_oracles_tokens_lowers_its_own_oracle_nll(seed):
    space = qd.TextSpace(3, 3)
    oracle = qd.LSTMLanguageModel.random(jax.random.key(seed), 3)
    p, exact = (np.asarray(oracle.probabilities(space, t)) for t in (1, 2 / 3))
    tree, cool = p.reshape(3, 3, 3), 1.0
    for t in range(3):
        law = tree.sum(axis=tuple(range(t + 1, 3)), keepdims=True) ** 1.5
        cool = cool * law / law.sum(axis=t, keepdims=True)
    assert cool.ravel() == pytest.approx(exact, abs=1e-12)
    assert -(exact @ np.log(p)) < -(p @ np.log(p)) - 0.01


# -- MaliGAN and RankGAN in Texygen --------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_score_itself_ascends_kl_to_the_mixture_and_its_odds_the_likelihood(seed):
    p, q = draw(seed, 6, 1.0), draw(seed + 10, 6, 1.0)
    for weights, objective in (
        (p / (p + q), lambda x: -p @ np.log(2 * p / (p + softmax(x)))),
        (p / q, lambda x: p @ np.log(softmax(x))),
    ):
        # The expected step: each text's weight over the mean weight, less 1.
        step = q * weights / (q @ weights) - q
        slope = approx_fprime(np.log(q), objective, 1e-7) / (q @ weights)
        assert step == pytest.approx(slope, abs=1e-6)


@given(st.integers(0, 100), st.sampled_from([2, 8, 64]))
@settings(max_examples=10)
def test_a_softmax_over_the_batch_has_one_mean_and_odds_of_e_at_most(seed, size):
    rng = np.random.default_rng(seed)
    features, references = (rng.gamma(0.1, size=(n, 6)) for n in (size, 4))
    rewards = softmax(cosine(features[:, None], references).mean(axis=1))
    assert np.mean(rewards) == pytest.approx(1 / size, rel=1e-12)
    assert max(rewards) <= np.e * min(rewards)


# -- TextGAN-PyTorch -----------------------------------------------------------------


@pytest.mark.claim("N20.38")
def test_the_reshaped_table_mixes_sixteen_neighbours_of_one_roll_out():
    scores = np.random.default_rng(38).random((16, 20, 64))  # roll-out, t, text
    found = scores.reshape(320, 64).reshape(64, 20, 16).mean(axis=-1)
    own = 0
    for text, t in product(range(64), range(20)):
        block = 16 * (t % 4)
        of = scores[text // 4, 5 * (text % 4) + t // 4, block : block + 16]
        assert found[text, t] == pytest.approx(of.mean(), rel=1e-14)
        own += (block <= text < block + 16) / 16
    assert own / (64 * 20) == 1 / 64


# -- CoT -----------------------------------------------------------------------------


@pytest.mark.parametrize(("vocab_size", "length"), [(2, 4), (3, 3), (4, 1)])
def test_the_mixture_of_tokens_adds_a_divergence_to_that_of_texts(vocab_size, length):
    space = qd.TextSpace(vocab_size, length)
    p, q = (np.asarray(qd.oracle(space, seed, 2.0)) for seed in (0, 1))
    number, by_token = 0.0, np.ones(space.num_texts)
    # The chain rule: a sum over prefixes of divergences of the next token.
    for t in range(length):
        for prefix in product(range(vocab_size), repeat=t):
            masses = [masses_after(space, x, prefix)[:-1] for x in (p, q)]
            laws = [mass / mass.sum() for mass in masses]
            mixed = sum(laws) / 2
            number += sum(m @ np.log(law / mixed) for m, law in zip(masses, laws)) / 2
            after = (space.tokens[:, :t] == prefix).all(axis=1)
            by_token[after] *= mixed[space.tokens[after, t]]
    half = (p + q) / 2
    exact = qd.jensen_shannon_divergence(q, p) + half @ np.log(half / by_token)
    assert number == pytest.approx(float(exact), rel=1e-11)
    assert (number > log(2)) == (length > 1)


# -- two that change nothing, and ties -----------------------------------------------


def test_a_gradient_through_the_rewards_does_not_touch_the_generator():
    both, texts = np.random.default_rng(40).normal(size=8), [0, 2, 3, 3]

    def loss(both):
        log_q, rewards = log_softmax(both[:4]), log_expit(both[4:])
        return -np.mean(log_q[texts] * rewards[texts])

    whole = approx_fprime(both, loss, 1e-7)
    scores = np.eye(4)[texts] - softmax(both[:4])
    alone = -(log_expit(both[4:])[texts, None] * scores).mean(axis=0)
    assert whole[:4] == pytest.approx(alone, abs=1e-6)
    assert np.abs(whole[4:]).max() > 0.01


@pytest.mark.claim("N20.41")
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=4, max_size=8), min_size=2))
def test_a_text_among_its_references_has_bleu_1(sample):
    smooth = SmoothingFunction().method1
    found = qd.text.bleu(sample[:1], sample, max_order=4)
    theirs = sentence_bleu(sample, sample[0], smoothing_function=smooth)
    assert found[3] == pytest.approx(theirs) == pytest.approx(1)
    assert found[0] == pytest.approx(1)
