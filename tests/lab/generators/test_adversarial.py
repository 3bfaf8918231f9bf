"""Adversarial generators and transport: derivatives, batches, duality, search."""

from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from lab import generators as gen
from lab.generators import CoT, LogitTable, MaliGAN, PrefixTable, RankGAN, SeqGAN
from lab.generators.adversarial import VARIANTS, prefix_scores
from lab.generators.discriminators import features
from models import DIVERGENCES
from numpy.testing import assert_allclose
from referees.enumerated_batches import batches
from refusals import refused
from scipy.optimize import linprog, minimize, minimize_scalar
from scipy.special import softmax
from scipy.stats import norm

import qdtheory as qd

SPACE = qd.TextSpace(2, 3)
RNG = np.random.default_rng(22)
MODEL = PrefixTable(jnp.asarray(RNG.normal(size=(7, 2))))
P = RNG.dirichlet(np.ones(8))
Q = np.asarray(MODEL.probabilities(SPACE))
SEQGANS = SeqGAN(), SeqGAN(lag=0.8), gen.SeqGANStep(0.5)


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def step(objective, model=MODEL, p=P):
    """The direction at a model."""
    p = jnp.asarray(p)
    return flat(objective.ascent(objective.start(model, SPACE, p), model, SPACE, p)[0])


def by_length(q):
    """Minus the sum over l of KL(P_l, M_l)."""
    total = 0.0
    for length in (1, 2, 3):
        law, real = (x.reshape(2**length, -1).sum(axis=1) for x in (q, P))
        total = total - qd.kl_divergence(real, (real + law) / 2)
    return total


# What each algorithm ascends, as a function of q.
ASCENDED = {
    gen.MaximumLikelihood(): lambda q: P @ jnp.log(q),
    MaliGAN(): lambda q: -DIVERGENCES["D/(1-D)"](q, P),
    SeqGAN(): lambda q: -DIVERGENCES["D"](q, P),
    gen.SeqGANStep(): by_length,
    CoT(future=True): lambda q: -DIVERGENCES["-log(1-D)"](q, P),
    gen.WGAN(): lambda q: -gen.wasserstein_distance(q, P, SPACE),
    gen.WGAN("prefix"): lambda q: -gen.wasserstein_distance(q, P, SPACE, "prefix"),
}


@pytest.mark.claim("N22.1")
@pytest.mark.parametrize("objective", ASCENDED, ids=repr)
def test_generators_ascend_a_divergence(objective):
    slope = jax.grad(lambda m: ASCENDED[objective](m.probabilities(SPACE)))(MODEL)
    assert_allclose(step(objective), flat(slope), rtol=1e-11, atol=1e-14)


def test_a_discount_makes_no_gradient_and_cot_drops_where_a_token_leads():
    def field(logits, gamma):
        model, p = PrefixTable(logits), jnp.asarray(P)
        return gen.SeqGANStep(gamma).ascent((), model, SPACE, p)[0].logits

    for gamma, least, most in ((1.0, 0, 1e-13), (0.5, 1e-3, 1)):
        slopes = jax.jacfwd(field)(MODEL.logits, gamma).reshape(14, 14)
        assert least <= np.abs(slopes - slopes.T).max() <= most
    whole, cot = (step(CoT(future=x)) for x in (True, False))
    assert_allclose(cot[6:], whole[6:], atol=1e-15)  # of last tokens
    assert np.abs(cot - whole)[:6].max() >= 1e-3


@pytest.mark.claim("N22.2")
def test_every_objective_rests_at_the_real_distribution():
    logistic = gen.LogisticDiscriminator
    for objective in (
        *(gen.MaximumLikelihood(), *SEQGANS, CoT(), MaliGAN(), MaliGAN(3), RankGAN()),
        *(RankGAN(bound=0.5, num_rivals=2), SeqGAN(logistic(2))),
        gen.SeqGANStep(0.9, logistic(1)),
    ):
        found = step(objective, PrefixTable.of(P, SPACE))
        assert_allclose(found, 0, atol=1e-14, err_msg=repr(objective))


@pytest.mark.claim("N22.3")
def test_near_p_they_are_maximum_likelihood():
    """By differences along a small move of a table of texts, not by derivatives."""
    factors = {
        **{SeqGAN(): 1 / 4, SeqGAN(lag=0.8): 1 / 4, CoT(): 1 / 2, MaliGAN(4): 3 / 4},
        **{CoT(future=True): 1 / 2, RankGAN(num_rivals=3): 3 / 16},
        RankGAN(bound=0.5, num_steps=2000): 1 / 4,
    }
    start, move = PrefixTable.of(P, SPACE).logits, 1e-4 * RNG.normal(size=(7, 2))
    there = PrefixTable(start + move), PrefixTable(start - move)

    def odd(objective):
        return (step(objective, there[0]) - step(objective, there[1])) / 2

    likelihood = odd(gen.MaximumLikelihood())
    for objective, factor in factors.items():
        assert_allclose(odd(objective), factor * likelihood, rtol=1e-5, atol=1e-10)
    gap = odd(gen.SeqGANStep(0.5)) - likelihood / 4
    assert np.abs(gap).max() > 0.05 * np.abs(likelihood).max()


def test_roll_outs_lag_behind():
    """Two steps, the roll-out model averaged by hand."""
    objective, p = SeqGAN(lag=0.8), jnp.asarray(P)
    later = PrefixTable(MODEL.logits.at[0, 0].add(1.0))
    _, state = objective.ascent(objective.start(MODEL, SPACE, p), MODEL, SPACE, p)
    found, _ = objective.ascent(state, later, SPACE, p)
    behind = PrefixTable(0.8 * MODEL.logits + 0.2 * later.logits).probabilities(SPACE)
    rewards = P / (P + later.probabilities(SPACE))
    expected = gen.token_policy_gradient(later, SPACE, rewards, behind)
    assert_allclose(flat(found), flat(expected), rtol=1e-12, atol=1e-15)


# --- Batches --------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 5])
def test_the_integral_is_the_sum_over_all_batches(m):
    q = RNG.dirichlet(np.ones(4))
    texts, chances = batches(q, m)
    for weights in (RNG.dirichlet(np.ones(4)) / q, np.array([1e-12, 1e-3, 1.0, 1e7])):
        share = weights[texts] / weights[texts].sum(axis=1, keepdims=True)
        listed = np.bincount(texts.ravel(), (chances[:, None] * share).ravel(), q.size)
        found = m * q * np.asarray(gen.expected_share(weights, q, m - 1))
        assert_allclose(found, listed, rtol=1e-11)
    zero = gen.expected_share(jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5]), 1)
    assert_allclose(zero, [0, 0.75], rtol=1e-13)


@pytest.mark.claim("N20.12")
def test_normalised_batches_are_biased_by_the_inverse_of_their_size():
    r = P / Q
    off = {m: m * Q * gen.expected_share(r, Q, m - 1) - P for m in (1, 10**3, 10**4)}
    assert_allclose(off[1], Q - P, atol=1e-13)
    limit = P * ((P * r).sum() - r)  # by the delta method
    left = [np.abs(m * off[m] - limit).max() for m in (10**3, 10**4)]
    assert 5 * left[1] < left[0]
    assert left[1] <= 0.05 * np.abs(limit).max()


@pytest.mark.claim("N22.5")
@pytest.mark.parametrize("rivals", [1, 2, 7])
def test_rankgan_is_maligan_in_batches(rivals):
    ranked, weighted = RankGAN(num_rivals=rivals), MaliGAN(rivals + 1)
    assert_allclose((rivals + 1) * step(ranked), step(weighted), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bound", [0.1, 0.5])
def test_the_bounded_ranker_is_the_best_in_its_box(bound):
    pairs, p = P[:, None] * Q, jnp.asarray(P)

    def loss(scores):
        return (pairs * np.logaddexp(0, scores - scores[:, None])).sum()

    best = minimize(loss, np.zeros(8), bounds=8 * [(-bound, bound)], tol=1e-14)
    ranker = RankGAN(bound, num_steps=3000)
    state = ranker.start(MODEL, SPACE, p)
    rewards, weights = ranker.rewards(state, MODEL, jnp.asarray(Q), SPACE, p)
    scores, rewards = np.log(weights), np.asarray(rewards)
    assert np.abs(scores).max() <= bound + 1e-12
    assert loss(scores) <= best.fun + 1e-9
    # Rewards never fall with P/Q, and are equal where the scores meet the bound.
    assert (np.diff(rewards[np.argsort(P / Q)]) >= -1e-12).all()
    for met in (scores >= bound - 1e-9, scores <= 1e-9 - bound):
        assert np.ptp(rewards[met]) <= 1e-12


def leaky(variant, seed=0):
    return gen.LeakyLSTM.random(jax.random.key(seed), 2, variant, size=3, sigma=0.7)


@pytest.mark.parametrize(
    ("objective", "m", "exact"),
    [(x, 2, x) for x in (*SEQGANS, CoT(), gen.WGAN("prefix"))]
    + [(MaliGAN(), m, MaliGAN(m)) for m in (2, 3)],
)
def test_the_mean_of_batches_is_the_exact_step(objective, m, exact):
    """Over all ordered batches of m texts."""
    (texts, chances), p = batches(Q, m), jnp.asarray(P)
    state = objective.start(MODEL, SPACE, p)

    @jax.jit
    @jax.vmap
    def each(shares):
        return objective.ascent(state, MODEL, SPACE, p, shares)[0].logits.ravel()

    found = chances @ each(jnp.asarray(np.eye(8)[texts].mean(axis=1)))
    error = 1e-14 if exact is objective else 1e-12
    assert_allclose(found, step(exact), atol=error)


VAE = gen.Autoencoder.random(jax.random.key(1), SPACE, gen.circle_grid(32), 0.5)
ATOMS = gen.AtomTable(jnp.asarray(RNG.normal(size=(4, 3, 2))))


@pytest.mark.parametrize(
    ("objective", "model", "linear"),
    [
        *((gen.MaximumLikelihood(), MODEL, True), (gen.Elbo(), VAE, True)),
        *((gen.MatchedCodes(), VAE, False), (gen.ContinuousWGAN(), ATOMS, False)),
    ],
)
def test_batches_of_real_texts_are_unbiased_if_linear(objective, model, linear):
    """All batches of two listed; a step of `Sampled` is one of them."""
    texts, chances = batches(P, 2)
    shares = jnp.asarray(np.vstack([np.eye(8)[texts].mean(axis=1), P]))
    sampled, p = gen.Sampled(objective, 2, seed=5), jnp.asarray(P)
    start = sampled.start(model, SPACE, p)

    def one(m, seen):
        return ravel_pytree(objective.ascent(start[1], m, SPACE, seen)[0])[0]

    many = jax.jit(lambda m: jax.lax.map(lambda seen: one(m, seen), shares))
    *each, exact = np.asarray(many(model))
    gap = np.abs(chances @ each - exact).max()
    assert gap <= 1e-12 if linear else gap > 1e-3
    drawn = flat(jax.jit(lambda m: sampled.ascent(start, m, SPACE, p)[0])(model))
    assert np.abs(drawn - each).max(axis=1).min() <= 1e-12


# --- Discriminators -------------------------------------------------------------------


@pytest.mark.claim("N22.9")
@pytest.mark.parametrize("kind", [SeqGAN, MaliGAN])
def test_a_discriminator_of_ngrams_is_blind_to_more(kind):
    """Mass moved so that no bigram becomes more or less likely leaves all at rest."""
    space = qd.TextSpace(3, 3)
    p, seen = qd.oracle(space, 1, size=8), features(space, 2)[:, -1]
    way = np.linalg.svd(seen.T)[2][np.linalg.matrix_rank(seen)]
    q = p + 0.9 * jnp.min(p / np.abs(way).clip(1e-12)) * way
    assert q.min() > 0
    assert qd.kl_divergence(p, q) > 1e-4
    objective = kind(discriminator=gen.LogisticDiscriminator(2, 50))
    state, model = objective.start(None, space, p), gen.LogitTable.of(q)
    assert_allclose(flat(objective.ascent(state, model, space, p)[0]), 0, atol=1e-14)


def test_the_training_set_is_what_is_learned():
    seen, table = np.array([3, 0, 1, 2, 0, 0, 1, 1]) / 8, gen.LogitTable(np.log(Q))
    for objective in (gen.MaximumLikelihood(), SeqGAN(), MaliGAN(2), RankGAN(), CoT()):
        assert np.isfinite(step(objective, MODEL, seen)).all()
    found = gen.train(SeqGAN(), table, SPACE, P, 3000, training=seen, every=3000)
    assert_allclose(found.model.probabilities(SPACE), seen, atol=0.02)


@pytest.mark.parametrize("space", [SPACE, qd.TextSpace(3, (1, 2, 3))])
def test_features_are_the_ngrams_of_a_prefix(space):
    found, words = features(space, 2), range(space.vocab_size)
    grams = [*product(words), *product(words, words)]
    for row, text in enumerate(space.tokens.tolist()):
        for end in range(space.max_length):
            prefix = [t for t in text[: end + 1] if t >= 0]
            windows = {*zip(prefix), *pairwise(prefix)}
            held = [float(gram in windows) for gram in grams]
            assert found[row, end].tolist() == held + np.eye(3)[end].tolist()


def likelihood(logits):
    """Of judging real prefixes real and the model's not, per position of each text."""
    return -(P @ np.logaddexp(0, -logits) + Q @ np.logaddexp(0, logits)).sum()


@pytest.mark.parametrize("order", [1, 2, None])
def test_long_training_is_logistic_regression(order):
    learned, seen = gen.LogisticDiscriminator(order, 5000), features(SPACE, order)
    laws = [gen.prefix_distribution(SPACE, x) for x in (Q, P)]
    found, weights = learned.logits(learned.start(SPACE, 3), *laws, SPACE)
    best = minimize(lambda w: -likelihood(seen @ w), np.zeros(weights.size))
    assert likelihood(np.asarray(found)) >= -best.fun - 1e-7
    if order is None:  # a weight for each prefix learns the optimum
        optimal = gen.OptimalDiscriminator()
        best, _ = optimal.logits((), *laws, SPACE)
        assert_allclose(found, best, atol=1e-6)
        assert_allclose(best, np.log(laws[1] / laws[0]), atol=1e-13)
        p, q = jnp.array([[0.5], [0.0]]), jnp.full((2, 1), 0.5)
        assert optimal.logits((), q, p, SPACE)[0][:, 0].tolist() == [0, -np.inf]


# --- LeakGAN --------------------------------------------------------------------------


def cell(network, read, h, c):
    """The next h and c of an LSTM, in NumPy."""
    gates = read @ network.input_weights + network.gate_biases
    i, f, o, g = np.split(np.asarray(gates + h @ network.recurrent_weights), 4)
    c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
    return np.tanh(c) / (1 + np.exp(-o)), c


def states(network, text):
    """h after the start token and after each token but the last."""
    found = [(np.zeros(3), np.zeros(3))]
    for token in [0, *text[:-1]]:
        found.append(cell(network, network.embeddings[token], *found[-1]))
    return np.array([h for h, _ in found[1:]])


@pytest.mark.claim("N22.8")
@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_are_a_product_over_tokens_that_noleak_makes_alone(variant):
    model, (own, leaked) = leaky(variant), VARIANTS[variant]
    q, judge = np.asarray(model.probabilities(SPACE)), model.discriminator
    scores = np.asarray(prefix_scores(judge, SPACE))
    for row, text in enumerate(product(range(2), repeat=3)):
        g, d = (states(network, text) for network in (model.generator, judge))
        seen = np.hstack([g] * own + [d] * leaked)
        hidden = np.tanh(seen @ model.mixing_weights + model.mixing_biases)
        logits = hidden @ model.generator.output_weights
        logits = np.asarray(logits + model.generator.output_biases)
        judged = np.asarray(d @ judge.output_weights + judge.output_biases)
        laws = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        assert q[row] == pytest.approx(laws[range(3), text].prod(), rel=1e-12)
        assert_allclose(scores[row], judged[range(3), text], rtol=0, atol=1e-13)
    other = replace(model, discriminator=leaky(variant, 5).discriminator)
    moved = np.abs(q - other.probabilities(SPACE)).max()
    assert moved == 0 if variant == "noleak" else moved > 1e-3


def test_the_step_moves_both():
    model, p, shares = leaky("mixed"), jnp.asarray(P), jnp.eye(8)[1:3].mean(axis=0)
    ascent = jax.jit(gen.LeakGAN(0.9).ascent, static_argnums=2)
    found, q = ascent((), model, SPACE, p, shares)[0], model.probabilities(SPACE)

    def seen(discriminator):
        d = jax.nn.sigmoid(prefix_scores(discriminator, SPACE))
        return (p[:, None] * jnp.log(d) + q[:, None] * jnp.log(1 - d)).sum()

    expected = jax.jit(jax.grad(seen))(model.discriminator)
    learned = found.discriminator
    assert_allclose(flat(learned), flat(expected), rtol=1e-10, atol=1e-14)
    earned = np.array(jax.nn.sigmoid(prefix_scores(model.discriminator, SPACE)))
    for t in (1, 0):
        earned[:, t] += 0.9 * earned[:, t + 1]
    field = gen.token_policy_gradient(model, SPACE, earned * (shares / q)[:, None])
    assert np.abs(flat(field.discriminator)).max() == 0
    field = replace(field, discriminator=learned)
    assert_allclose(flat(found), flat(field), atol=1e-14)


@pytest.mark.claim("N22.8")
def test_a_table_takes_the_same_step_whatever_is_leaked():
    """Logits of a table plus any function of the prefix and the next token."""
    rng = np.random.default_rng(1)
    # Rewards of whole texts are enough: with tokens' the pooling is the same.
    leak, rewards = rng.normal(size=(7, 2), scale=3), rng.normal(size=8)
    earned = jax.grad(lambda x: PrefixTable(x + leak).probabilities(SPACE) @ rewards)
    expected = gen.token_policy_gradient(MODEL, SPACE, rewards).logits
    assert_allclose(earned(MODEL.logits - leak), expected, atol=1e-13)


approx = pytest.approx

NINE, PAIRS, MIXED = qd.TextSpace(3, 2), qd.TextSpace(2, 2), qd.TextSpace(2, (1, 2, 3))
GROUNDS = "hamming", "prefix"


def distances(space, ground):
    """The distance of every two texts, from its definition."""
    tokens = space.tokens
    differ = tokens[:, None] != tokens
    if ground == "prefix":
        differ = np.logical_or.accumulate(differ, axis=-1)
    return differ.sum(axis=-1).astype(float)


def draws(space, number, seed=0):
    rng, weights = np.random.default_rng(seed), np.full(space.num_texts, 0.3)
    return rng.dirichlet(weights, (number, 2))


@pytest.mark.parametrize("ground", GROUNDS)
def test_w1_is_the_transport_between_all_pairs_of_texts(ground):
    single = qd.TextSpace(1, 3)
    for space in (NINE, single, MIXED if ground == "prefix" else qd.TextSpace(2, 4)):
        cost, ends = distances(space, ground), np.eye(space.num_texts)[[0, -1]]
        for q, p in (*draws(space, 3), ends):
            coupled = gen.optimal_transport(cost, q, p)
            plan, u, v, value = map(np.asarray, jax.tree.leaves(coupled))
            assert plan.min() >= 0
            assert_allclose(plan.sum(axis=1), q, atol=1e-14)
            assert_allclose(plan.sum(axis=0), p, atol=1e-14)
            assert (u[:, None] + v <= cost + 1e-14).all()
            assert value == approx((plan * cost).sum(), abs=1e-14)
            found = float(gen.wasserstein_distance(q, p, space, ground))
            assert (value, q @ u + p @ v) == approx((found, found), abs=1e-8)
            critic = np.asarray(gen.wasserstein_critic(q, p, space, ground))
            assert (critic[:, None] - critic <= cost + 1e-12).all()


def test_the_derivative_is_the_potential():
    rng = np.random.default_rng(4)
    cost, b, (mass, way) = rng.random((4, 5)), np.full(5, 0.2), rng.normal(size=(2, 4))

    @jax.jit
    def value(logits):
        return gen.optimal_transport(cost, jax.nn.softmax(logits), b).value

    up, down = (float(value(mass + s * way)) for s in (1e-6, -1e-6))
    assert float(jax.grad(value)(mass) @ way) == approx((up - down) / 2e-6, rel=1e-6)


@pytest.mark.parametrize(("q", "p"), draws(PAIRS, 2, seed=6))
def test_the_penalised_critic_maximises_along_paths_of_the_tree(q, p):
    """The value of each edge, found by search: |s| P(edge) less the penalty on it."""
    penalty, edges = 0.7, []

    def loss(s, gain, length):
        return -s * gain + penalty * length * (abs(s) - 1) ** 2

    # Mass on the edges of the tree of two tokens, those of the first first.
    masses = [np.append(x.reshape(2, 2).sum(axis=1), x) for x in (q, p)]
    for of_q, of_p in np.transpose(masses):
        # Mean length of the paths between a text of P and one of Q on this edge.
        length = (of_p * (1 - of_q) + of_q * (1 - of_p)) / 2
        sign, told = np.sign(of_p - of_q), ((of_p - of_q) / 2, length)
        around = (0.5 * sign, 2 * sign)
        edges.append(minimize_scalar(loss, around, args=told, tol=1e-12).x / 2)
    expected = [edges[a] + edges[2 + 2 * a + b] for a in (0, 1) for b in (0, 1)]
    critic = partial(gen.wasserstein_critic, q, p, PAIRS, "prefix")
    assert_allclose(critic(penalty), expected, atol=1e-6)
    given = (), LogitTable.of(q), jnp.asarray(q), PAIRS, jnp.asarray(p)
    rewards, _ = gen.WGAN("prefix", penalty).rewards(*given)
    assert_allclose(rewards, expected, atol=1e-6)
    assert_allclose(critic(1e9), critic(), atol=1e-8)


def test_a_solution_that_is_not_optimal_is_refused(monkeypatch):
    q, p = draws(NINE, 1, seed=9)[0]

    def spoilt(*args, **settings):
        found = linprog(*args, **settings)
        found.x = found.x + 1e-6
        return found

    monkeypatch.setattr("scipy.optimize.linprog", spoilt)
    program = "the linear program was not solved"
    refused(
        ("bounds must meet within 1e-08 of 2", gen.wasserstein_distance, q, p, NINE),
        (program, gen.optimal_transport, distances(NINE, "hamming"), q, p),
        error=RuntimeError,
    )


@pytest.mark.parametrize("objective", [gen.WGAN(), gen.WGAN("prefix")], ids=str)
def test_a_critic_of_a_model_that_diverged_is_nan(objective):
    p = jnp.full(9, 1 / 9)
    critic = jax.jit(lambda q: objective.rewards((), LogitTable(q), q, NINE, p)[0])
    assert np.isnan(critic(jnp.full(9, jnp.nan))).all()


@pytest.mark.claim("N22.11")
@pytest.mark.parametrize("ground", GROUNDS)
def test_w1_bends_in_q_where_p_says(ground):
    """A sum of a quality and a diversity would bend at Q alike for every P."""
    rng, way = np.random.default_rng(11), np.zeros(9)
    cost, (q, far) = distances(NINE, ground), rng.dirichlet(np.full(9, 5), 2)
    way[[0, 8]] = 1e-3, -1e-3

    def bend(p):
        at = q + way, q - way, q
        up, down, here = (float(gen.optimal_transport(cost, x, p).value) for x in at)
        return up + down - 2 * here

    assert bend(q) == approx(2e-3 * cost[0, 8], abs=1e-9)
    assert bend(0.5 * q + 0.5 * np.eye(9)[0]) == approx(0, abs=1e-9)
    assert bend(far) < 1e-3 * cost[0, 8]


# --- Continuous generators ------------------------------------------------------------

TRIPLES, KEY = qd.TextSpace(3, 3), jax.random.key(1)
ORACLE = np.asarray(qd.oracle(TRIPLES, 0))
MODELS = {
    "table": gen.AtomTable(jax.random.normal(KEY, (5, 3, 3))),
    "deconv": gen.ConvDeconv.random(KEY, TRIPLES, num_atoms=5, units=8),
    "lstm": gen.ConvLSTM.random(KEY, TRIPLES, num_atoms=5, size=8),
}
# Medians of five equal shares of a normal distribution.
QUANTILES = norm.ppf((np.arange(5) + 0.5) / 5)


@pytest.mark.claim("N22.12")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_both_laws_are_those_of_the_atoms(model):
    atoms, hard, soft = np.asarray(model.atoms(TRIPLES)), np.zeros(27), np.zeros(27)
    assert_allclose(atoms.sum(axis=-1), 1, atol=1e-14)
    for rows in atoms:
        hard[TRIPLES.index(rows.argmax(axis=1))] += 1 / 5
        for i, text in enumerate(TRIPLES.tokens):
            soft[i] += np.prod([row[token] for row, token in zip(rows, text)]) / 5
    assert_allclose(model.probabilities(TRIPLES), hard, atol=1e-14)
    assert_allclose(model.soft_probabilities(TRIPLES), soft, atol=1e-14)
    assert np.isinf(qd.cross_entropy(ORACLE, hard)) > (soft.min() <= 0)
    assert float(qd.entropy(hard)) <= np.log(5) + 1e-12


def test_a_deconvolution_spreads_the_units_of_a_position():
    model = MODELS["deconv"]
    for z, found in zip(QUANTILES, np.asarray(model.atoms(TRIPLES))):
        logits = np.tile(model.biases, (3, 1))
        for place in range(2):
            units = z * model.latent_weights[0, place] + model.latent_biases[place]
            for shift in range(2):
                logits[place + shift] += np.maximum(units, 0) @ model.kernel[shift]
        assert_allclose(found, softmax(logits, axis=1), atol=1e-12)


def test_the_lstm_reads_its_own_softmax():
    model, lstm = MODELS["lstm"], MODELS["lstm"].lstm
    for z, found in zip(QUANTILES, np.asarray(model.atoms(TRIPLES))):
        h, c = np.tanh(z * model.latent_weights[0] + model.latent_biases), np.zeros(8)
        for row in found:
            assert_allclose(row, softmax(h @ lstm.output_weights + lstm.output_biases))
            h, c = cell(lstm, row @ lstm.embeddings, h, c)


def test_the_direction_is_the_sum_over_the_plan():
    model, texts = MODELS["table"], np.eye(3)[TRIPLES.tokens]
    objective, p = gen.ContinuousWGAN(), jnp.asarray(ORACLE)
    ascent = jax.jit(lambda m: objective.ascent((), m, TRIPLES, p)[0].logits)
    plan = np.asarray(gen.transport_to_texts(model, TRIPLES, ORACLE).plan)
    for atom, shares, found in zip(model.atoms(TRIPLES), plan, ascent(model)):
        away = np.asarray(atom) - texts
        slope = np.tensordot(shares / np.sqrt((away**2).sum(axis=(1, 2))), away, 1)
        # Through the softmax: each row's slope less its mean under the row.
        mean = (atom * slope).sum(axis=1, keepdims=True)
        assert_allclose(found, -atom * (slope - mean), atol=1e-12)
    text = gen.AtomTable(np.where(np.arange(3) == 0, 0, -1000.0) * np.ones((1, 3, 1)))
    assert np.isfinite(ascent(text)).all()


def test_adversaries_and_transport_refuse_bad_input(as_a_user):
    q, mixed, ones = np.full(9, 1 / 9), np.full(14, 1 / 14), np.ones((9, 9))
    leaks = leaky("leak").probabilities
    w1, solved = gen.wasserstein_distance, gen.optimal_transport
    critic = partial(gen.wasserstein_critic, q, q, NINE, "hamming", 10)
    refused(
        ("must be one of hamming, prefix, got 'edit'", w1, q, q, NINE, "edit"),
        ("Hamming's distance is for texts of one length", w1, mixed, mixed, MIXED),
        ("solved on the prefix tree only", critic),
        ("got shape (9, 8)", solved, ones[:, :8], q, q),
        ("cost must be finite", solved, ones * np.inf, q, q),
        ("shape (3, 3), the space texts of", MODELS["table"].probabilities, NINE),
        ("lag must lie in [0, 1), got 1.0", partial(SeqGAN, lag=1.0)),
        ("variant must be one of leak, noleak, mixed, got 'both'", leaky, "both"),
        ("here, the space over 3", leaks, qd.TextSpace(3, 2)),
    )
    words, other = "has atoms(space), such as AtomTable", LogitTable(np.zeros(27))
    call = gen.train, gen.ContinuousWGAN(), other, TRIPLES, ORACLE, 1
    lstm = "be a LeakyLSTM (train others with SeqGANStep), got PrefixTable"
    leak = lstm, gen.train, gen.LeakGAN(), MODEL, SPACE, P, 1
    refused((words, *call), leak, error=TypeError)
