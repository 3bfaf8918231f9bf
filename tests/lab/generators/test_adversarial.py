"""Adversarial generators, against automatic derivatives, batches listed and SciPy."""

from dataclasses import replace
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from lab.generators import (
    WGAN,
    AtomTable,
    Autoencoder,
    ContinuousWGAN,
    CoT,
    Elbo,
    LeakGAN,
    LeakyLSTM,
    LogisticDiscriminator,
    LogitTable,
    MaliGAN,
    MatchedCodes,
    MaximumLikelihood,
    PrefixTable,
    RankGAN,
    Sampled,
    SeqGAN,
    SeqGANStep,
    circle_grid,
    discounted_returns,
    expected_share,
    token_policy_gradient,
    train,
)
from lab.generators.adversarial import VARIANTS, prefix_scores
from lab.generators.discriminators import features
from models import DIVERGENCES
from referees.enumerated_batches import batches
from refusals import refused
from scipy.optimize import minimize

import qdtheory as qd

SPACE = qd.TextSpace(2, 3)
RNG = np.random.default_rng(22)
MODEL = PrefixTable(jnp.asarray(RNG.normal(size=(7, 2))))
P = RNG.dirichlet(np.ones(8))
Q = np.asarray(MODEL.probabilities(SPACE))


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def step(objective, model=MODEL, p=P):
    """The direction at a model."""
    p = jnp.asarray(p)
    state = objective.start(model, SPACE, p)
    return flat(objective.ascent(state, model, SPACE, p)[0])


def slope(objective):
    return flat(jax.grad(lambda m: objective(m.probabilities(SPACE)))(MODEL))


def by_length(q):
    """Minus the sum over l of KL(P_l, M_l)."""
    total = 0.0
    for length in (1, 2, 3):
        law, real = (x.reshape(2**length, -1).sum(axis=1) for x in (q, P))
        total = total - qd.kl_divergence(real, (real + law) / 2)
    return total


@pytest.mark.claim("N22.1")
def test_four_generators_ascend_a_divergence():
    for objective, divergence in (
        (MaximumLikelihood(), lambda q: P @ jnp.log(q)),
        (MaliGAN(), lambda q: -DIVERGENCES["D/(1-D)"](q, P)),
        (SeqGAN(), lambda q: -DIVERGENCES["D"](q, P)),
        (SeqGANStep(), by_length),
        (CoT(future=True), lambda q: -DIVERGENCES["-log(1-D)"](q, P)),
    ):
        found, expected = step(objective), slope(divergence)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.claim("N22.2")
@pytest.mark.parametrize(
    "objective",
    [
        *(MaximumLikelihood(), SeqGAN(), SeqGAN(lag=0.8), SeqGANStep(0.5), CoT()),
        *(MaliGAN(), MaliGAN(3), RankGAN(), RankGAN(bound=0.5, num_rivals=2)),
        SeqGAN(LogisticDiscriminator(2)),
        SeqGANStep(0.9, LogisticDiscriminator(1)),
    ],
    ids=repr,
)
def test_every_objective_rests_at_the_real_distribution(objective):
    at_p = PrefixTable.of(P, SPACE)
    np.testing.assert_allclose(step(objective, at_p), 0, atol=1e-14)


@pytest.mark.claim("N22.2")
@pytest.mark.parametrize(
    "objective", [SeqGANStep(0.5), MaliGAN(2), RankGAN(), CoT()], ids=repr
)
def test_training_ends_there(objective):
    found = train(objective, MODEL, SPACE, P, 6000, learning_rate=0.02, every=6000)
    np.testing.assert_allclose(found.model.probabilities(SPACE), P, atol=1e-4)


@pytest.mark.claim("N22.3")
def test_near_p_they_are_maximum_likelihood():
    """By differences along a small move of a table of texts, not by derivatives."""
    factors = {
        SeqGAN(): 1 / 4,
        SeqGAN(lag=0.8): 1 / 4,
        MaliGAN(4): 3 / 4,
        RankGAN(num_rivals=3): 3 / 16,
        RankGAN(bound=0.5, num_steps=2000): 1 / 4,
        CoT(): 1 / 2,
        CoT(future=True): 1 / 2,
    }
    start = PrefixTable.of(P, SPACE).logits
    moves = 1e-4 * RNG.normal(size=(3, 7, 2))
    for move in moves:
        there = PrefixTable(start + move), PrefixTable(start - move)

        def odd(objective, there=there):
            return (step(objective, there[0]) - step(objective, there[1])) / 2

        likelihood = odd(MaximumLikelihood())
        for objective, factor in factors.items():
            np.testing.assert_allclose(
                odd(objective), factor * likelihood, rtol=1e-5, atol=1e-10
            )
        gap = odd(SeqGANStep(0.5)) - likelihood / 4
        assert np.abs(gap).max() > 0.05 * np.abs(likelihood).max()


def test_roll_outs_lag_behind():
    """Two steps, the roll-out model averaged by hand."""
    objective = SeqGAN(lag=0.8)
    state = objective.start(MODEL, SPACE, jnp.asarray(P))
    later = PrefixTable(MODEL.logits.at[0, 0].add(1.0))
    _, state = objective.ascent(state, MODEL, SPACE, jnp.asarray(P))
    found, _ = objective.ascent(state, later, SPACE, jnp.asarray(P))
    behind = PrefixTable(0.8 * MODEL.logits + 0.2 * later.logits)
    q = later.probabilities(SPACE)
    roll_out = behind.probabilities(SPACE)
    expected = token_policy_gradient(later, SPACE, P / (P + q), roll_out)
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(step(SeqGAN(lag=0.0)), step(SeqGAN()), atol=1e-15)


def listed_shares(weights, q, m):
    """m times the mean of a text's share of a batch, over all batches of m texts."""
    texts, chances = batches(q, m)
    share = weights[texts] / weights[texts].sum(axis=1, keepdims=True)
    return np.bincount(texts.ravel(), (chances[:, None] * share).ravel(), q.size)


@pytest.mark.slow
@pytest.mark.claim("N22.4")
def test_the_integral_is_the_sum_over_all_batches():
    space = qd.TextSpace(4, 3)
    for seed in range(5):
        p = np.asarray(qd.oracle(space, seed, size=8))
        q = np.asarray(qd.temper(p, 0.3 + 0.2 * seed))
        for m in (1, 2, 3):
            found = m * q * np.asarray(expected_share(p / q, q, m - 1))
            np.testing.assert_allclose(found, listed_shares(p / q, q, m), rtol=1e-11)


def test_shares_of_wild_weights_and_of_many_rivals():
    q = RNG.dirichlet(np.ones(4))
    weights = np.array([1e-12, 1e-3, 1.0, 1e7])
    for m in (2, 5):
        found = m * q * np.asarray(expected_share(weights, q, m - 1))
        np.testing.assert_allclose(found, listed_shares(weights, q, m), rtol=1e-11)
    # Among very many rivals the sum is sure.
    found = 10**6 * np.asarray(expected_share(P / Q, Q, 10**6 - 1))
    np.testing.assert_allclose(found, P / Q, rtol=1e-4)
    zero = expected_share(jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5]), 1)
    np.testing.assert_allclose(zero, [0, 0.75], rtol=1e-13)


@pytest.mark.claim("N22.5")
@pytest.mark.parametrize("rivals", [1, 2, 7])
def test_rankgan_is_maligan_in_batches(rivals):
    ranked, weighted = RankGAN(num_rivals=rivals), MaliGAN(rivals + 1)
    found = (rivals + 1) * step(ranked)
    np.testing.assert_allclose(found, step(weighted), rtol=1e-12, atol=1e-15)


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
        assert met.any()
        assert np.ptp(rewards[met]) <= 1e-12


def mean_over_batches(objective, m):
    """The mean of the step over all ordered batches of m texts."""
    texts, chances = batches(Q, m)
    state = objective.start(MODEL, SPACE, jnp.asarray(P))

    @jax.jit
    @jax.vmap
    def each(shares):
        return objective.ascent(state, MODEL, SPACE, jnp.asarray(P), shares)[0].logits

    steps = each(jnp.asarray(np.eye(8)[texts].mean(axis=1)))
    return (chances @ np.asarray(steps).reshape(len(texts), -1)).ravel()


@pytest.mark.claim("N22.7")
def test_the_mean_of_batches_is_the_exact_step():
    seqgans = SeqGAN(), SeqGAN(lag=0.8), SeqGANStep(0.5)
    for objective in (*seqgans, CoT(), WGAN("prefix")):
        found = mean_over_batches(objective, 2)
        np.testing.assert_allclose(found, step(objective), atol=1e-14)
    for m in (2, 3):
        found = mean_over_batches(MaliGAN(), m)
        np.testing.assert_allclose(found, step(MaliGAN(m)), atol=1e-12)


def test_sampled_steps_scatter_around_the_exact_one():
    sampled, p = Sampled(SeqGAN(), 4), jnp.asarray(P)

    @jax.jit
    def many(state):
        def one(state, _):
            ascent, state = sampled.ascent(state, MODEL, SPACE, p)
            return state, ascent.logits.ravel()

        return jax.lax.scan(one, state, length=20_000)[1]

    steps = np.asarray(many(sampled.start(MODEL, SPACE, p)))
    error = steps.std(axis=0) / np.sqrt(len(steps))
    assert (np.abs(steps.mean(axis=0) - step(SeqGAN())) <= 4.5 * error).all()


def steps(objective, model, shares):
    """The step at each row of shares, and one of `Sampled`."""
    sampled, p = Sampled(objective, 2, seed=5), jnp.asarray(P)
    start = sampled.start(model, SPACE, p)

    def one(seen):
        return ravel_pytree(objective.ascent(start[1], model, SPACE, seen)[0])[0]

    drawn = sampled.ascent(start, model, SPACE, p)[0]
    return jax.lax.map(one, shares), ravel_pytree(drawn)[0]


@pytest.mark.claim("N22.19")
def test_batches_of_real_texts_are_unbiased_where_p_enters_linearly():
    """All batches of two listed, for the objectives that average over real texts."""
    texts, chances = batches(P, 2)
    shares = jnp.asarray(np.eye(8)[texts].mean(axis=1))
    vae = Autoencoder.random(jax.random.key(1), SPACE, circle_grid(32), 0.5)
    atoms = AtomTable(jnp.asarray(RNG.normal(size=(4, 3, 2))))
    for objective, model, linear in (
        (MaximumLikelihood(), MODEL, True),
        (Elbo(), vae, True),
        (MatchedCodes(), vae, False),
        (ContinuousWGAN(), atoms, False),
    ):
        found = jax.jit(partial(steps, objective, model))(jnp.vstack([shares, P]))
        (*each, exact), drawn = map(np.asarray, found)
        gap = np.abs(chances @ each - exact).max()
        assert gap <= 1e-12 if linear else gap > 1e-3
        # A step of `Sampled` is one of these.
        assert np.abs(drawn - each).max(axis=1).min() <= 1e-12


def test_mapped_models_draw_batches_of_their_own():
    logits = jnp.stack([MODEL.logits, MODEL.logits + 0.1])

    def run(logits):
        objective = Sampled(MaliGAN(), 8, seed=3)
        found = train(objective, PrefixTable(logits), SPACE, P, 3, every=3)
        return found.model.probabilities(SPACE)

    both = np.asarray(jax.vmap(run)(logits))
    np.testing.assert_allclose(both[0], run(logits[0]), rtol=1e-10)
    assert np.abs(both[0] - both[1]).max() > 1e-3  # else the same: a shift of logits


def test_the_model_decides_on_the_batches_and_its_last_bits_do_not():
    centred = MODEL.logits - MODEL.logits.mean()
    logits = centred, centred * (1 + 1e-15), -2 * centred
    batches = Sampled(SeqGAN(), 8, seed=3)
    starts = [batches.start(PrefixTable(x), SPACE, jnp.asarray(P))[0] for x in logits]
    same, rounded, other = map(jax.random.key_data, starts)
    np.testing.assert_array_equal(same, rounded)
    assert (same != other).any()


@pytest.mark.claim("N22.9")
@pytest.mark.parametrize("kind", [SeqGAN, MaliGAN])
def test_a_discriminator_of_ngrams_is_blind_to_more(kind):
    """Mass moved so that no bigram becomes more or less likely leaves all at rest."""
    space = qd.TextSpace(3, 3)
    p = qd.oracle(space, 1, size=8)
    seen = features(space, 2)[:, -1]
    way = np.linalg.svd(seen.T)[2][np.linalg.matrix_rank(seen)]
    q = p + 0.9 * jnp.min(p / np.abs(way).clip(1e-12)) * way
    assert q.min() > 0
    assert qd.kl_divergence(p, q) > 1e-4
    objective = kind(discriminator=LogisticDiscriminator(2, 50))
    state, model = objective.start(None, space, p), LogitTable.of(q)
    rest = objective.ascent(state, model, space, p)[0]
    np.testing.assert_allclose(flat(rest), 0, atol=1e-14)


@pytest.mark.claim("N22.10")
def test_the_training_set_is_what_is_learned():
    seen = np.array([3, 0, 1, 2, 0, 0, 1, 1]) / 8
    for objective in (MaximumLikelihood(), SeqGAN(), MaliGAN(2), RankGAN(), CoT()):
        assert np.isfinite(step(objective, MODEL, seen)).all()
    table, settings = LogitTable(np.log(Q)), {"training": seen, "every": 3000}
    found = train(SeqGAN(), table, SPACE, P, 3000, **settings)
    np.testing.assert_allclose(found.model.probabilities(SPACE), seen, atol=0.02)


# --- LeakGAN --------------------------------------------------------------------------


def draw(variant, seed=0):
    return LeakyLSTM.random(jax.random.key(seed), 2, variant, size=3, sigma=0.7)


def states(network, text):
    """h after the start token and after each token but the last, in NumPy."""
    w = {k: np.asarray(v) for k, v in vars(network).items() if k != "end_token"}
    h = c = np.zeros(w["recurrent_weights"].shape[0])
    found = []
    for token in [0, *text[:-1]]:
        gates = w["embeddings"][token] @ w["input_weights"] + w["gate_biases"]
        gates = gates + h @ w["recurrent_weights"]
        i, f, o, cell = np.split(gates, 4)
        sigmoid = [1 / (1 + np.exp(-x)) for x in (i, f, o)]
        c = sigmoid[1] * c + sigmoid[0] * np.tanh(cell)
        h = sigmoid[2] * np.tanh(c)
        found.append(h)
    return found


def next_tokens(model, text):
    """The laws of each token of a text, in NumPy."""
    own, leaked = VARIANTS[model.variant]
    networks = model.generator, model.discriminator
    for g, d in zip(*(states(n, text) for n in networks)):
        seen = np.concatenate([g] * own + [d] * leaked)
        hidden = np.tanh(seen @ model.mixing_weights + model.mixing_biases)
        logits = hidden @ model.generator.output_weights + model.generator.output_biases
        yield np.exp(np.asarray(logits)) / np.exp(logits).sum()


@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_are_a_product_over_tokens(variant):
    model = draw(variant)
    q = np.asarray(model.probabilities(SPACE))
    scores = np.asarray(prefix_scores(model.discriminator, SPACE))
    judge = model.discriminator
    for row, text in enumerate(product(range(2), repeat=3)):
        chances = [law[token] for token, law in zip(text, next_tokens(model, text))]
        assert q[row] == pytest.approx(np.prod(chances), rel=1e-12)
        judged = np.array(states(judge, text)) @ judge.output_weights
        expected = np.asarray(judged + judge.output_biases)[range(3), text]
        np.testing.assert_allclose(scores[row], expected, rtol=0, atol=1e-13)


def test_the_step_moves_both():
    model, p = draw("mixed"), jnp.asarray(P)
    ascent = jax.jit(LeakGAN(0.9).ascent, static_argnums=2)
    found, _ = ascent((), model, SPACE, p)
    q = model.probabilities(SPACE)

    def likelihood(discriminator):
        d = jax.nn.sigmoid(prefix_scores(discriminator, SPACE))
        return (p[:, None] * jnp.log(d) + q[:, None] * jnp.log(1 - d)).sum()

    expected = flat(jax.jit(jax.grad(likelihood))(model.discriminator))
    learned = flat(found.discriminator)
    np.testing.assert_allclose(learned, expected, rtol=1e-10, atol=1e-14)
    d = np.asarray(jax.nn.sigmoid(prefix_scores(model.discriminator, SPACE)))
    earned = d.copy()
    for t in (1, 0):
        earned[:, t] += 0.9 * earned[:, t + 1]
    field = token_policy_gradient(model, SPACE, earned)
    assert np.abs(flat(field.discriminator)).max() == 0
    field = replace(field, discriminator=found.discriminator)
    np.testing.assert_allclose(flat(found), flat(field), atol=1e-14)


@pytest.mark.claim("N22.8")
def test_a_table_takes_the_same_step_whatever_is_leaked():
    """Logits of a table plus any function of the prefix and the next token."""
    rng = np.random.default_rng(1)
    logits = jnp.asarray(rng.normal(size=(7, 2)))

    @jax.jit
    def both(leak, rewards):
        def probabilities(theta):
            return PrefixTable(theta + leak).probabilities(SPACE)

        q, pull = jax.vjp(probabilities, logits - leak)
        return q, pull(rewards)[0]

    for seed in range(20):
        leak = np.random.default_rng(seed).normal(size=(7, 2), scale=3)
        # Rewards of whole texts are enough: with tokens' the pooling is the same.
        rewards = rng.normal(size=8)
        expected = token_policy_gradient(PrefixTable(logits), SPACE, rewards).logits
        q, found = both(leak, rewards)
        np.testing.assert_allclose(found, expected, atol=1e-13)
        assert q.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(expected).max() > 0


@pytest.mark.claim("N22.8")
def test_noleak_does_not_see_the_discriminator():
    for variant in VARIANTS:
        model = draw(variant)
        other = replace(model, discriminator=draw(variant, 5).discriminator)
        q, moved = (m.probabilities(SPACE) for m in (model, other))
        assert (np.abs(q - moved).max() > 1e-3) == (variant != "noleak")
        assert variant != "noleak" or (q == moved).all()


@pytest.mark.slow
def test_training():
    model = draw("leak")
    first = train(MaximumLikelihood(), model, SPACE, P, 300, every=300)
    assert float(first.nll[-1]) < float(first.nll[0])
    np.testing.assert_array_equal(
        flat(first.model.discriminator), flat(model.discriminator)
    )
    for objective in (LeakGAN(), Sampled(LeakGAN(), 16)):
        found = train(objective, first.model, SPACE, P, 10, every=10)
        moved = flat(found.model.discriminator) - flat(model.discriminator)
        assert np.abs(moved).max() > 1e-3
        assert np.isfinite(float(found.js[-1]))


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    rewards = np.ones((1, 1))
    refused(
        ("lag must lie in [0, 1), got 1.0", lambda: SeqGAN(lag=1.0)),
        ("gamma must lie in [0, 1], got 1.5", SeqGANStep, 1.5),
        ("batch_size must be at least 1, got 0", MaliGAN, 0),
        ("bound must be positive and finite, got 0.0", RankGAN, 0.0),
        ("num_rivals must be at least 1, got 0", RankGAN, None, 0),
        ("batch_size must be at least 1, got 0", Sampled, CoT(), 0),
        ("num_rivals must be finite and at least 0, got -1", expected_share, P, Q, -1),
        ("gamma must lie in [0, 1], got 2", discounted_returns, rewards, 2),
    )
    leaky = draw("leak").probabilities
    refused(
        ("variant must be one of leak, noleak, mixed, got 'both'", draw, "both"),
        ("over 2 tokens here, the space over 3", leaky, qd.TextSpace(3, 2)),
        ("a LeakyLSTM is for texts of one", leaky, qd.TextSpace(2, (1, 2))),
        ("gamma must lie in [0, 1], got 2", LeakGAN, 2),
    )
    words = "be a LeakyLSTM (train others with SeqGANStep), got PrefixTable"
    refused(
        ("objective must be an Objective, such as", Sampled, "D", 4),
        (words, train, LeakGAN(), MODEL, SPACE, P, 1),
        error=TypeError,
    )
