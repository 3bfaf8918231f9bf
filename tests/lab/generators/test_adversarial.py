"""Adversarial generators, against automatic derivatives, batches listed and SciPy."""

from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from lab import generators as gen
from lab.generators import CoT, MaliGAN, PrefixTable, RankGAN, SeqGAN, SeqGANStep, train
from lab.generators.adversarial import VARIANTS, prefix_scores
from lab.generators.discriminators import features
from models import DIVERGENCES
from numpy.testing import assert_allclose, assert_array_equal
from referees.enumerated_batches import batches
from refusals import refused
from scipy.optimize import minimize

import qdtheory as qd

SPACE = qd.TextSpace(2, 3)
RNG = np.random.default_rng(22)
MODEL = PrefixTable(jnp.asarray(RNG.normal(size=(7, 2))))
P = RNG.dirichlet(np.ones(8))
Q = np.asarray(MODEL.probabilities(SPACE))
SEQGANS = SeqGAN(), SeqGAN(lag=0.8), SeqGANStep(0.5)


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
    SeqGANStep(): by_length,
    CoT(future=True): lambda q: -DIVERGENCES["-log(1-D)"](q, P),
    gen.WGAN(): lambda q: -gen.wasserstein_distance(q, P, SPACE),
    gen.WGAN("prefix"): lambda q: -gen.wasserstein_distance(q, P, SPACE, "prefix"),
}


@pytest.mark.claim("N20.11", "N20.13", "N22.1")
@pytest.mark.parametrize("objective", ASCENDED, ids=repr)
def test_generators_ascend_a_divergence(objective):
    slope = jax.grad(lambda m: ASCENDED[objective](m.probabilities(SPACE)))(MODEL)
    assert_allclose(step(objective), flat(slope), rtol=1e-11, atol=1e-14)


@pytest.mark.claim("N20.11", "N20.13")
def test_a_discount_makes_no_gradient_and_cot_drops_where_a_token_leads():
    def field(logits, gamma):
        return SeqGANStep(gamma).ascent((), PrefixTable(logits), SPACE, P)[0].logits

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
        SeqGANStep(0.9, logistic(1)),
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
    gap = odd(SeqGANStep(0.5)) - likelihood / 4
    assert np.abs(gap).max() > 0.05 * np.abs(likelihood).max()


def test_roll_outs_lag_behind():
    """Two steps, the roll-out model averaged by hand."""
    objective, p = SeqGAN(lag=0.8), jnp.asarray(P)
    later = PrefixTable(MODEL.logits.at[0, 0].add(1.0))
    _, state = objective.ascent(objective.start(MODEL, SPACE, p), MODEL, SPACE, p)
    found, _ = objective.ascent(state, later, SPACE, p)
    behind = PrefixTable(0.8 * MODEL.logits + 0.2 * later.logits)
    roll_out = behind.probabilities(SPACE)
    rewards = P / (P + later.probabilities(SPACE))
    expected = gen.token_policy_gradient(later, SPACE, rewards, roll_out)
    assert_allclose(flat(found), flat(expected), rtol=1e-12, atol=1e-15)
    assert_allclose(step(SeqGAN(lag=0.0)), step(SeqGAN()), atol=1e-15)


# --- Batches --------------------------------------------------------------------------


@pytest.mark.claim("N22.4")
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
    r, sizes = P / Q, (1, 10**3, 10**4, 10**6)
    off = {m: m * Q * gen.expected_share(r, Q, m - 1) - P for m in sizes}
    assert_allclose(off[1], Q - P, atol=1e-13)
    limit = P * ((P * r).sum() - r)  # by the delta method
    left = [np.abs(m * off[m] - limit).max() for m in (10**3, 10**4)]
    assert 5 * left[1] < left[0]
    assert left[1] <= 0.05 * np.abs(limit).max()
    assert np.abs(off[10**6] / P).max() <= 1e-4  # among very many rivals it is sure


@pytest.mark.claim("N22.5")
@pytest.mark.parametrize("rivals", [1, 2, 7])
def test_rankgan_is_maligan_in_batches(rivals):
    ranked, weighted = RankGAN(num_rivals=rivals), MaliGAN(rivals + 1)
    assert_allclose((rivals + 1) * step(ranked), step(weighted), rtol=1e-12, atol=1e-15)


@pytest.mark.claim("N22.6")
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


@pytest.mark.claim("N22.7")
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


def test_sampled_steps_scatter_around_the_exact_one():
    sampled, p = gen.Sampled(SeqGAN(), 4), jnp.asarray(P)

    @jax.jit
    def many(state):
        def one(state, _):
            ascent, state = sampled.ascent(state, MODEL, SPACE, p)
            return state, ascent.logits.ravel()

        return jax.lax.scan(one, state, length=20_000)[1]

    steps = np.asarray(many(sampled.start(MODEL, SPACE, p)))
    error = steps.std(axis=0) / np.sqrt(len(steps))
    assert (np.abs(steps.mean(axis=0) - step(SeqGAN())) <= 4.5 * error).all()


VAE = gen.Autoencoder.random(jax.random.key(1), SPACE, gen.circle_grid(32), 0.5)
ATOMS = gen.AtomTable(jnp.asarray(RNG.normal(size=(4, 3, 2))))


@pytest.mark.claim("N22.19")
@pytest.mark.parametrize(
    ("objective", "model"),
    [
        *((gen.MaximumLikelihood(), MODEL), (gen.Elbo(), VAE)),
        *((gen.MatchedCodes(), VAE), (gen.ContinuousWGAN(), ATOMS)),
    ],
)
def test_batches_of_real_texts_are_unbiased_where_p_enters_linearly(objective, model):
    """All batches of two listed; a step of `Sampled` is one of them."""
    texts, chances = batches(P, 2)
    shares = jnp.asarray(np.vstack([np.eye(8)[texts].mean(axis=1), P]))
    sampled, p = gen.Sampled(objective, 2, seed=5), jnp.asarray(P)
    start = sampled.start(model, SPACE, p)

    @jax.jit
    def steps(model):
        def one(seen):
            return ravel_pytree(objective.ascent(start[1], model, SPACE, seen)[0])[0]

        drawn = sampled.ascent(start, model, SPACE, p)[0]
        return jax.lax.map(one, shares), ravel_pytree(drawn)[0]

    (*each, exact), drawn = map(np.asarray, steps(model))
    gap = np.abs(chances @ each - exact).max()
    linear = isinstance(objective, gen.MaximumLikelihood | gen.Elbo)
    assert gap <= 1e-12 if linear else gap > 1e-3
    assert np.abs(drawn - each).max(axis=1).min() <= 1e-12


def test_the_model_decides_on_the_batches_and_its_last_bits_do_not():
    logits, sampled = MODEL.logits - MODEL.logits.mean(), gen.Sampled(SeqGAN(), 8)
    models = (PrefixTable(x) for x in (logits, logits * (1 + 1e-15), -2 * logits))
    starts = [sampled.start(model, SPACE, jnp.asarray(P))[0] for model in models]
    same, rounded, other = map(jax.random.key_data, starts)
    assert_array_equal(same, rounded)
    assert (same != other).any()


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


@pytest.mark.claim("N22.10")
def test_the_training_set_is_what_is_learned():
    seen = np.array([3, 0, 1, 2, 0, 0, 1, 1]) / 8
    for objective in (gen.MaximumLikelihood(), SeqGAN(), MaliGAN(2), RankGAN(), CoT()):
        assert np.isfinite(step(objective, MODEL, seen)).all()
    table, settings = gen.LogitTable(np.log(Q)), {"training": seen, "every": 3000}
    found = train(SeqGAN(), table, SPACE, P, 3000, **settings)
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
    learned, optimal = (
        gen.LogisticDiscriminator(order, 5000),
        gen.OptimalDiscriminator(),
    )
    seen = features(SPACE, order)
    laws = [gen.prefix_distribution(SPACE, x) for x in (Q, P)]
    found, weights = learned.logits(learned.start(SPACE, 3), *laws, SPACE)
    best = minimize(lambda w: -likelihood(seen @ w), np.zeros(weights.size))
    assert likelihood(np.asarray(found)) >= -best.fun - 1e-7
    if order is None:  # a weight for each prefix learns the optimum
        best, _ = optimal.logits((), *laws, SPACE)
        assert_allclose(found, best, atol=1e-6)
        assert_allclose(best, np.log(laws[1] / laws[0]), atol=1e-13)
        p, q = jnp.array([[0.5], [0.0]]), jnp.full((2, 1), 0.5)
        assert optimal.logits((), q, p, SPACE)[0][:, 0].tolist() == [0, -np.inf]
    learned, values = gen.LogisticDiscriminator(order, 1), []
    one, weights = jax.jit(lambda w: learned.logits(w, *laws, SPACE)), 0 * weights
    for _ in range(50):
        logits, weights = one(weights)
        values.append(likelihood(np.asarray(logits)))
    assert (np.diff(values) >= -1e-13).all()
    assert values[0] > -6 * np.log(2)  # three judgements of two texts


# --- LeakGAN --------------------------------------------------------------------------


def states(network, text):
    """h after the start token and after each token but the last, in NumPy."""
    w = {k: np.asarray(v) for k, v in vars(network).items() if k != "end_token"}
    h, c, found = np.zeros(3), np.zeros(3), []
    for token in [0, *text[:-1]]:
        gates = w["embeddings"][token] @ w["input_weights"] + w["gate_biases"]
        i, f, o, cell = np.split(gates + h @ w["recurrent_weights"], 4)
        i, f, o = (1 / (1 + np.exp(-x)) for x in (i, f, o))
        c = f * c + i * np.tanh(cell)
        h = o * np.tanh(c)
        found.append(h)
    return np.array(found)


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

    @jax.jit
    def leaked(leak, rewards):
        def earned(theta):
            return PrefixTable(theta + leak).probabilities(SPACE) @ rewards

        return jax.grad(earned)(MODEL.logits - leak)

    for leak in rng.normal(size=(10, 7, 2), scale=3):
        # Rewards of whole texts are enough: with tokens' the pooling is the same.
        rewards = rng.normal(size=8)
        expected = gen.token_policy_gradient(MODEL, SPACE, rewards).logits
        assert_allclose(leaked(leak, rewards), expected, atol=1e-13)


def test_bad_input(as_a_user):
    rewards, long, texts = np.ones((1, 1)), gen.LogisticDiscriminator(4), leaky("leak")
    logistic, returns = gen.LogisticDiscriminator, gen.discounted_returns
    one, mixed = "a LeakyLSTM is for texts of one", qd.TextSpace(2, (1, 2))
    refused(
        ("lag must lie in [0, 1), got 1.0", partial(SeqGAN, lag=1.0)),
        ("gamma must lie in [0, 1], got 1.5", SeqGANStep, 1.5),
        ("batch_size must be at least 1, got 0", MaliGAN, 0),
        ("bound must be positive and finite, got 0.0", RankGAN, 0.0),
        ("num_rivals must be at least 1, got 0", RankGAN, None, 0),
        ("batch_size must be at least 1, got 0", gen.Sampled, CoT(), 0),
        ("num_rivals must be finite and at least", gen.expected_share, P, Q, -1),
        ("gamma must lie in [0, 1], got 2", returns, rewards, 2),
        ("variant must be one of leak, noleak, mixed, got 'both'", leaky, "both"),
        ("here, the space over 3", texts.probabilities, qd.TextSpace(3, 2)),
        (one, texts.probabilities, mixed),
        ("gamma must lie in [0, 1], got 2", gen.LeakGAN, 2),
        ("num_steps must be at least 1, got 0", logistic, 2, 0),
        ("order must be at least 1, got 0", logistic, 0),
        ("order must lie in [1, 3], got 4", long.start, SPACE, 1),
    )
    words = "be a LeakyLSTM (train others with SeqGANStep), got PrefixTable"
    refused(
        ("objective must be an Objective, such as", gen.Sampled, "D", 4),
        (words, train, gen.LeakGAN(), MODEL, SPACE, P, 1),
        error=TypeError,
    )
