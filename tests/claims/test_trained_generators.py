"""Rows of the tables of trained generators, made anew by the library or by hand."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from lab import generators as gen
from lab import metrics
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import kstest
from scripts import frame
from scripts import script as load

import qdtheory as qd

SPACE = qd.TextSpace(4, 3)


def lstm(seed, words=4, size=4, sigma=0.3):
    return qd.LSTMLanguageModel.random(jax.random.key(seed), words, size, size, sigma)


def row(table, **where):
    """The one row with these entries; None for a number that is missing."""
    rows = frame(table)
    for column, value in where.items():
        rows = rows[rows[column].isna() if value is None else rows[column] == value]
    assert len(rows) == 1
    return rows.iloc[0]


def apart(p, *models):
    """Jensen-Shannon divergences of their laws."""
    laws = (model.probabilities(SPACE) for model in models)
    return [float(qd.jensen_shannon_divergence(p, q)) for q in laws]


# --- generators.csv -----------------------------------------------------------------


def test_what_a_model_lacks_is_the_frontier_at_its_diversity():
    generators, p = load("make_generators"), np.asarray(qd.oracle(SPACE, 3))
    q = np.random.default_rng(0).dirichlet(np.full(64, 0.3))
    rows = np.asarray(generators.measured(jnp.stack([q, p]), p))
    found, real = (dict(zip(generators.METRICS, x)) for x in rows.reshape(-1, 2).T)
    power = brentq(lambda b: qd.entropy(qd.temper(p, b)) - qd.entropy(q), 0, 99)
    gap = qd.cross_entropy(q, p) - qd.cross_entropy(qd.temper(p, power), p)
    assert found["LL_SE"] == pytest.approx(float(gap), abs=1e-9)

    def water(level):
        return np.maximum(p - level, 0) / np.maximum(p - level, 0).sum()

    level = brentq(lambda t: (water(t) ** 2).sum() - q @ q, -1e3, p.max() - 1e-9)
    assert found["CR_NRR"] == pytest.approx(p @ water(level) - p @ q, abs=1e-7)
    for name in ("LL_SE", "CR_NRR", "js", "cnd", "wasserstein"):
        assert abs(real[name]) < 1e-9


@pytest.mark.parametrize("name", ["VAE (dw=0.5)", "ARAE"])
def test_reconstructions_and_greedy_laws_are_those_of_the_library(name):
    generators, p = load("make_generators"), qd.oracle(SPACE, 1)
    model = generators.AUTOENCODERS[name].model(jax.random.key(0), SPACE)
    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), model)
    read = generators.reading(twice, p, generators.pair_scores())
    found = gen.reconstruct(model, SPACE, p)
    expected = [found.nll, found.accuracy, found.bleu[1], found.rouge[1]]
    np.testing.assert_allclose(np.array(read)[:, 1], expected, atol=1e-12)
    law, _ = gen.greedy_distribution(model, SPACE)
    np.testing.assert_allclose(generators.greedy(twice)[1], law, atol=1e-12)


def js(texts=None):
    """Of generators.csv: an oracle a row and a model a column."""
    rows = frame("generators.csv").query("temperature == 1 and decoding == ''")
    rows = rows[rows.texts.isna() if texts is None else rows.texts == texts]
    rows = rows[rows.pretrained != "no"]
    return rows.pivot(index="oracle", columns="model", values="js")


def least_of_atoms(oracle, size):
    """By dynamic programming: the cheapest way to share k atoms, text by text."""
    p, q = np.asarray(qd.oracle(SPACE, oracle))[:, None], np.arange(size + 1) / size
    middle = (p + q) / 2
    best = np.array([0.0, *[np.inf] * size])
    for line in (rel_entr(p, middle) + rel_entr(q, middle)) / 2:
        best = np.array([min(best[: k + 1] + line[k::-1]) for k in range(size + 1)])
    return best[size]


@pytest.mark.slow
def test_the_language_models_of_the_table_are_what_a_loop_of_adam_gives():
    """Of 600 steps, with an optimiser anew at the half."""
    late, adam, listed = [], optax.adam(0.02), js(128).MLE.loc[90:]

    @jax.jit
    def after_300(model, seen):
        def step(_, at):
            model, state = at
            loss = jax.grad(lambda m: -seen @ jnp.log(m.probabilities(SPACE)))
            move, state = adam.update(loss(model), state)
            return optax.apply_updates(model, move), state

        return jax.lax.fori_loop(0, 300, step, (model, adam.init(model)))[0]

    for seed in listed.index:
        p, seen, _ = shares(seed)
        half = after_300(lstm(1000 + seed), seen)
        late += apart(p, after_300(half, seen))
    np.testing.assert_allclose(late, listed, atol=1e-3)


# --- tuned_generators.csv -----------------------------------------------------------


tuned = partial(load, "make_tuned_generators")


def shares(oracle, size=128):
    """P, and the shares of texts for training and of those that are held out."""
    p = qd.oracle(SPACE, oracle)
    keys = jax.random.key(oracle), jax.random.key(10_000 + oracle)
    draws = (qd.sample(key, p, size) for key in keys)
    return p, *(jnp.bincount(x, length=64) / size for x in draws)


def by_likelihood(model, p, seen, found):
    """As the library trains it at a row's rate, to the row's step."""
    steps = int(found.step)
    settings = {"learning_rate": found.rate, "every": steps, "training": seen}
    start = gen.MaximumLikelihood(), model, SPACE, p, steps
    return gen.train(*start, **settings).model


@pytest.mark.slow
@pytest.mark.claim("N22.40")
def test_a_further_search_of_likelihood_keeps_what_the_library_trains_at_its_rate():
    (p, seen, _), at = shares(0), {"oracle": 0, "selected": "held-out"}
    start = row("tuned_generators.csv", model="MLE", **at)
    start = by_likelihood(lstm(1000), p, seen, start)
    listed = row("equal_budget.csv", search=4, **at)
    found = apart(p, by_likelihood(start, p, seen, listed))
    assert found == pytest.approx([listed.js], rel=1e-2)


@pytest.mark.slow
@pytest.mark.claim("N22.24", "N22.25", "N22.26", "N22.29")
def test_the_row_of_a_leakgan_is_what_two_optimisers_give_at_its_rates_and_steps():
    """By a loop of Optax's own, after a start that the library trains."""
    (p, seen, held), rows = shares(0), {"oracle": 0, "selected": "held-out"}
    rows = partial(row, "tuned_generators.csv", **rows)
    found, key = rows(model="MLE, noleak"), jax.random.key(1000)
    model = gen.LeakyLSTM.random(key, 4, "noleak", 4, 0.3)
    model = by_likelihood(model, p, seen, found)
    found = rows(model="LeakGAN-noleak", pretrained="yes")
    own, learning = optax.adam(-found.rate), optax.adam(-found.second_rate)
    ascent = jax.jit(lambda m: gen.LeakGAN().ascent((), m, SPACE, seen)[0])
    states = own.init(model), learning.init(model.discriminator)
    for _ in range(int(found.step)):
        way = ascent(model)
        ahead, first = own.update(way, states[0])
        behind, second = learning.update(way.discriminator, states[1])
        judge = optax.apply_updates(model.discriminator, behind)
        model = replace(optax.apply_updates(model, ahead), discriminator=judge)
        states = first, second
    q = model.probabilities(SPACE)
    for name, value, digits in (
        ("criterion", qd.cross_entropy(held, q), 1e-3),
        ("js", qd.jensen_shannon_divergence(p, q), 1e-2),
        ("oracle_nll", qd.cross_entropy(q, p), 1e-3),
        ("fd", metrics.frechet_distance(q, p, tuned().FEATURES, squared=True), 2e-2),
    ):
        assert float(value) == pytest.approx(found[name], rel=digits), name


@pytest.mark.slow
@pytest.mark.claim("N22.28", "N22.29")
@pytest.mark.usefixtures("as_a_user")  # rates stand in a model's place
def test_on_other_oracles_a_search_keeps_low_rates_and_gives_up_recall():
    """For SeqGAN-reinforce, by both criteria."""
    judge = gen.LogisticDiscriminator(order=2, num_steps=5)
    rates, changes = [], []
    for oracle in range(500, 516):
        p, *texts = shares(oracle)
        key, found = jax.random.key(oracle), []
        model = tuned().lstm(key)
        for k, objective in enumerate((gen.MaximumLikelihood(), gen.SeqGAN(judge))):
            drawn = tuned().drawn_rates(oracle, k)
            best = tuned().searched(objective, tuned().STEPS, model, texts, drawn, key)
            model = jax.tree.map(lambda leaf: leaf[0], best.model)
            laws = jax.vmap(lambda model: model.probabilities(SPACE))(best.model)
            both = [(qd.cross_entropy(q, p), qd.cross_entropy(p, q)) for q in laws]
            found.append(np.array(both))
        rates.append(best.rates[:, 0])
        # Against the start, which held-out texts kept.
        changes.append(found[1] - found[0][0])
    for tried in np.log10(rates).T:
        assert kstest((tried + 5) / 4, "uniform", alternative="greater").pvalue < 0.01
    reverse, forward = np.moveaxis(np.array(changes), -1, 0)
    assert min((reverse < 0).mean(), (forward > 0).mean()) > 0.75


@pytest.mark.claim("N22.27")
def test_no_law_of_atoms_is_nearer_than_the_best_of_so_many():
    rows = frame("tuned_generators.csv")
    best = {16: 0, 64: 0, 256: 0}
    mle = rows.query("model == 'MLE' and selected == 'held-out'").set_index("oracle").js
    for (size, oracle), group in rows.groupby(["atoms", "oracle"]):
        least = least_of_atoms(oracle, int(size))
        assert group.js.min() >= least - 1e-6
        best[size] += least < mle[oracle]
    assert [*best.values()] == [1, 8, 2]
    # The distance that the networks descend is that of the linear program.
    seen = jnp.bincount(jnp.arange(128) ** 2 % 61, length=64) / 128
    table = gen.AtomTable(jax.random.normal(jax.random.key(16), (16, 3, 4)))
    expected = float(gen.transport_to_texts(table, SPACE, seen).value)
    assert float(tuned().distance(table, seen)) == pytest.approx(expected, abs=1e-7)


@pytest.mark.slow
@pytest.mark.claim("N22.41")
def test_on_another_oracle_a_continuous_generator_has_more_bleu_and_far_more_fd():
    (p, seen, _), script = shares(500), load("make_protocol")
    settings = {"learning_rate": 0.01, "every": 600, "training": seen}
    atoms = gen.ConvLSTM.random(jax.random.key(500), SPACE, 64)
    runs = (gen.MaximumLikelihood(), lstm(500)), (tuned().Assigned(), atoms)
    models = (gen.train(o, m, SPACE, p, 600, **settings).model for o, m in runs)
    mle, found = (script.measured(m.probabilities(SPACE), p) for m in models)
    assert found["bleu"] > mle["bleu"]
    assert found["fd"] > 2 * mle["fd"]


# --- protocol.csv and training_noise.csv --------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N22.18")
@pytest.mark.parametrize("model", ["MLE", "SeqGAN-reinforce"])
def test_on_other_oracles_the_second_half_of_rates_does_harm(model):
    protocol = load("make_protocol")
    objective, harm = protocol.objective(model, 1), []
    for oracle in range(500, 508):
        p, seen, _ = shares(oracle, protocol.NUM_TEXTS)
        run = partial(protocol.trained, objective, oracle, p, seen)
        ends = [qd.jensen_shannon_divergence(run(rate), p) for rate in (1e-5, 0.1)]
        harm.append(ends[1] > ends[0])
    assert np.mean(harm) >= 0.75


@pytest.mark.claim("N22.20")
def test_at_p_batches_move_some_models_alike_and_others_not_at_all():
    """The mean square of a step is the trace of Fisher's matrix, times the reward's."""
    space, size = qd.TextSpace(2, 3), 16
    p = jnp.asarray(np.random.default_rng(20).dirichlet(np.full(8, 3)))
    model = gen.PrefixTable.of(p, space)
    law = jax.jacobian(lambda x: gen.PrefixTable(x).probabilities(space))
    slopes = law(model.logits).reshape(8, -1) / p[:, None]
    trace = float(p @ (slopes**2).sum(axis=1))
    halved = ("SeqGAN", 1 / 2), ("RankGAN", 1 / 2)
    for name, reward in (("MaximumLikelihood", 1), ("MaliGAN", 1), ("CoT", 0), *halved):
        batches = gen.Sampled(getattr(gen, name)(), size)

        def one(state, _, batches=batches):
            step, state = batches.ascent(state, model, space, p)
            return state, (step.logits**2).sum()

        start = batches.start(model, space, p)
        squares = np.asarray(jax.lax.scan(one, start, length=4000)[1])
        error = 5 * squares.std() / np.sqrt(4000)
        assert abs(squares.mean() - reward**2 * trace / size) <= error + 1e-28


# --- four_models.csv and published_size.csv -----------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N22.30", "N22.31")
@pytest.mark.parametrize("batch", [None, 64])
def test_the_library_trains_the_same_models_and_stops_them_there(batch):
    """Its metrics at each step say where the paper's rule stops all models."""
    space = load("make_four_models").SPACE
    p, start = qd.oracle(space, 0), lstm(1000)
    seen = np.asarray(qd.sample(jax.random.key(0), p, 192))[:128]
    settings = {"training": np.bincount(seen, minlength=256) / 128}
    settings |= {"learning_rate": 0.02, "every": 1}
    case = {"oracle": 0, "texts": 128, "batch": batch, "exponent": 0}
    for name, objective, steps in (
        ("MLE", gen.MaximumLikelihood(), 600),
        ("SeqGAN", gen.SeqGAN(gen.LogisticDiscriminator(order=2), lag=0.8), 300),
        ("RankGAN", gen.RankGAN(), 300),
    ):
        objective = gen.Sampled(objective, batch) if batch else objective
        found = gen.train(objective, start, space, p, steps, **settings)
        listed = row("four_models.csv", model=name, stopped="oracle_nll", **case)
        at = int(listed.steps)
        assert int(found.oracle_nll[1:].argmin()) + 1 == at
        for metric in ("oracle_nll", "nll", "entropy", "bhattacharyya", "js", "cnd"):
            value = float(getattr(found, metric)[at])
            assert value == pytest.approx(listed[metric], rel=1e-3)
        if name == "MLE":
            at = int(row("four_models.csv", model=name, stopped="nll", **case).steps)
            start = gen.train(objective, start, space, p, at, **settings).model


@pytest.mark.slow
@pytest.mark.claim("N22.32")
def test_the_lower_sweep_is_found_at_equal_oracle_nll():
    """Solved for the temperature, in place of interpolation."""
    four = load("make_four_models")
    p, models = qd.oracle(four.SPACE, 0), [lstm(0, 4, 32, 1.0), lstm(7, 4, 4, 0.7)]
    at = jax.jit(lambda m, k: four.plane_point(m.probabilities(four.SPACE, 1.5**k), p))
    curves = [np.asarray(four.plane(m, p)) for m in models]
    ends = max(c[0].min() for c in curves), min(c[0].max() for c in curves)

    def height(m, x):
        return float(at(m, brentq(lambda k: float(at(m, k)[0]) - x, -3, 4))[1])

    x = np.linspace(*ends, 61)[1:-1]
    share = np.mean([height(models[0], y) < height(models[1], y) for y in x])
    assert four.below(*curves) == pytest.approx(share, abs=0.03)


@pytest.mark.slow
@pytest.mark.claim("N22.34")
@pytest.mark.parametrize("seed", [100, 101])
def test_one_sided_metrics_change_sign_at_temperature_1_on_other_oracles(seed):
    """Models of other oracles, trained by the library for other numbers of steps."""
    four, model, x = load("make_four_models"), lstm(seed), []
    p, settings = qd.oracle(four.SPACE, seed), {"learning_rate": 0.02, "every": 100}
    texts = np.asarray(qd.sample(jax.random.key(seed), p, 1000))
    settings["training"] = np.bincount(texts, minlength=256) / 1000
    for _ in range(3):
        start = gen.MaximumLikelihood(), model, four.SPACE, p, 100
        model = gen.train(*start, **settings).model
        laws = [model.probabilities(four.SPACE, 1.5**k) for k in four.EXPONENTS]
        x.append(dict(zip(four.METRICS, four.measured(jnp.stack(laws), p))))
    measured = "nll", "oracle_nll", "self_bleu", "ms_jaccard"
    for sign, side in ((1, slice(4, None)), (-1, slice(5))):
        each = [np.ravel([found[name][side] for found in x]) for name in measured]
        nll, oracle_nll, self_bleu, jaccard = each
        assert np.corrcoef(nll, -jaccard)[0, 1] > 0.5
        assert sign * np.corrcoef(nll, oracle_nll)[0, 1] > 0.3
        assert sign * np.corrcoef(nll, self_bleu)[0, 1] < -0.3


@pytest.mark.claim("N22.35")
def test_mle_at_the_published_size_is_measured_as_the_library_does():
    size, key = load("make_published_size"), jax.random.key(3)
    oracle, model = (lstm(k, 200, 8) for k in (0, 1))
    test = setting().sample(oracle, jax.random.key(2), 128)
    own = setting().sample(model, key, 128)
    one = SimpleNamespace(oracle=oracle, test=test, keys=(None, key))
    logs = [[m.log_probability(x) for m in (oracle, model)] for x in (test, own)]
    (p, q), (own_p, own_q) = np.array(logs)
    means = np.exp((q - p) / 2).mean(), np.exp((own_p - own_q) / 2).mean()
    expected = [-own_p.mean(), -q.mean(), -own_q.mean(), -np.log(means).sum() / 2]
    assert size.AtSize.measure(one, model)[:4] == pytest.approx(expected, rel=1e-9)


# --- code_dimensions.csv and code_places.csv ----------------------------------------


def decoded(model, seed, dimension, of=jnp.asarray):
    """The law of 20,000 codes that NumPy draws."""
    z = np.random.default_rng(seed).normal(size=(20_000, dimension))
    return np.exp(model.log_decoded(SPACE, of(z))).mean(axis=0)


codes = partial(load, "make_code_dimensions")


@pytest.mark.claim("N23.22")
@pytest.mark.parametrize("name", ["VAE (dw=0.5)", "AE-sph (sigma=0.1)"])
def test_standard_errors_are_the_spread_over_repeats_around_the_grid(name):
    p = qd.oracle(SPACE, 0)
    model = codes().drawn(gen.AUTOENCODERS[name], SPACE, 1, 0)
    draws = jax.random.normal(jax.random.key(7), (40, codes().CHUNK, 9))
    each = [codes().by_draws(3, model, p, x) for x in draws]
    values, errors = (np.array([e[i] for e in each]) for i in (1, 2))
    ratio = values.std(axis=0, ddof=1) / errors.mean(axis=0)
    assert 0.6 < ratio.min() < ratio.max() < 1.5
    law = replace(model, grid=model.grid.refined()).probabilities(SPACE)
    exact = [qd.cross_entropy(p, law), qd.cross_entropy(law, p)]
    away = abs(values[:, :2].mean(axis=0) - np.array(exact))
    assert (away < 5 * errors[:, :2].mean(axis=0) / np.sqrt(40)).all()


def trained_plainly(name, length, dimension, oracle):
    """A plain autoencoder without noise, for which there is nothing to draw."""
    space, adam = codes().SPACES[length], optax.adam(codes().RATE)
    p = qd.oracle(space, oracle)

    @jax.jit
    @jax.grad
    def slope(model):
        return -p @ jnp.diagonal(model.log_decoded(space, model.text_codes()))

    def step(_, at):
        move, state = adam.update(slope(at[0]), at[1])
        return optax.apply_updates(at[0], move), state

    model = codes().drawn(gen.AUTOENCODERS[name], space, dimension, oracle)
    for _ in range(2):  # Adam starts anew at the half
        at = model, adam.init(model)
        model, _ = jax.lax.fori_loop(0, codes().STEPS // 2, step, at)
    listed = {"length": length, "dimension": dimension, "oracle": oracle, "model": name}
    return model, space, p, row("code_dimensions.csv", **listed)


@pytest.mark.slow
@pytest.mark.claim("N23.23")
def test_a_row_is_made_again_by_plain_gradients_and_draws_of_numpy():
    model, space, p, listed = trained_plainly("AE-gauss-det (d=1)", 3, 4, 1)
    read = gen.reconstruct(model, space, p).nll
    assert float(read) == pytest.approx(listed.read_nll, rel=1e-2)
    q = decoded(model, 8, 4)
    laws = {"nll": qd.cross_entropy(p, q), "oracle_nll": qd.cross_entropy(q, p)}
    for column, found in laws.items():
        # Two independent samples: the table's is 2**16 draws, this one 20,000.
        error = listed[f"{column}_error"] * np.sqrt(1 + 2**16 / 20_000)
        assert abs(found - listed[column]) < 4.5 * error + 1e-3 * listed[column]


@pytest.mark.slow
@pytest.mark.claim("N23.26")
def test_reconstruction_of_longer_texts_is_made_again():
    model, space, p, listed = trained_plainly("AE-sph (sigma=0 d=1)", 6, 8, 0)
    found = gen.reconstruct(model, space, p)
    expected = listed[["read_accuracy", "read_bleu", "read_rouge"]].astype(float)
    scores = [found.accuracy, found.bleu[2], found.rouge[2]]
    np.testing.assert_allclose(scores, expected, atol=1e-3)


@pytest.mark.slow
@pytest.mark.claim("N23.25")
def test_an_arae_at_its_default_is_further_from_real_text_when_trained_again():
    """Its critic makes each run another one, down to the rounding of sums."""
    p = qd.oracle(SPACE, 0)
    start = codes().drawn(codes().ARAE_DEFAULT, SPACE, 2, 0)
    model = codes().trained_arae(3, codes().STEPS, start, p, jax.random.key(2000))
    q = decoded(model, 9, 3, model.generator)
    ours = row("generators.csv", model="ARAE", decoding="drawn", oracle=0)
    assert qd.cross_entropy(p, q) > 1.05 * ours.nll
    assert qd.cross_entropy(q, p) > 1.05 * ours.oracle_nll


def trained_once(kind, name, oracle, key):
    """P and a model of texts of three words, with codes of eight dimensions."""
    p, setup = qd.oracle(SPACE, oracle), gen.AUTOENCODERS[name]
    start = codes().drawn(setup, SPACE, 8, oracle), codes().numbers(setup, 8)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], start)
    model = codes().trained(kind, 3, codes().STEPS, *one, p, key)
    return p, jax.tree.map(lambda leaf: leaf[0], model)


@pytest.mark.slow
@pytest.mark.claim("N23.24")
def test_an_adversary_harms_the_gaussian_autoencoder_in_eight_dimensions():
    found = []
    for name in ("AE-gauss-det (d=1)", "AAE-gauss-det (lambda=10 d=1)"):
        p, model = trained_once("line", name, 1, jax.random.key(2001))
        found.append(qd.cross_entropy(p, decoded(model, 11, 8)))
    assert found[1] > found[0] + 0.1


@pytest.mark.slow
@pytest.mark.claim("N23.27")
def test_codes_of_a_vae_stray_as_often_when_drawn_again():
    p, model = trained_once("VAE", "VAE (dw=0.5)", 0, jax.random.key(2000))
    texts = np.argsort(-np.asarray(p))[:10]
    mean, sigma = np.asarray(model.codes)[texts], np.exp(model.log_sigma)[texts]
    noise = np.random.default_rng(10).normal(size=(1000, 10, 8))
    gaps = ((mean + sigma * noise)[:, :, None] - mean) ** 2
    found = (gaps.sum(axis=-1).argmin(axis=-1) != np.arange(10)).mean()
    places = frame("code_places.csv").query("dimension == 8 and model == 'VAE'")
    assert found == pytest.approx((places.nearest != places.text).mean(), abs=0.07)


# --- on SeqGAN's oracle, by models of 200 words -------------------------------------


setting = partial(load, "seqgan_setting")


@pytest.mark.claim("N21.12")
def test_points_that_dominate_are_counted_one_by_one():
    script, rng = load("make_oracle_dominance"), np.random.default_rng(12)
    ours, theirs = rng.integers(0, 6, (40, 2)), rng.integers(0, 6, (30, 2))
    for (x, y), mark in zip(ours, script.dominated(ours, theirs)):
        assert mark == any(a <= x and b <= y and (a < x or b < y) for a, b in theirs)
    assert not script.dominated(script.efficient(ours), ours).any()
    assert len(script.measured(np.array([[1, 2], [1, np.nan], [np.inf, 1]]))) == 1


def test_texts_are_drawn_and_the_loss_has_the_slope_of_its_formula():
    logits = jax.random.normal(jax.random.key(3), (1, 200)) * 2
    uniform = (jnp.arange(20_000) + 0.5) / 20_000
    drawn = setting().draw(jnp.repeat(logits, 20_000, axis=0), uniform)
    # A word's share of a grid of quantiles is its probability up to one point.
    share = np.bincount(np.asarray(drawn), minlength=200) / 20_000
    assert np.abs(share - jax.nn.softmax(logits[0])).max() <= 1.0001 / 20_000
    model = lstm(0, 200, 8, 0.7)
    tokens = setting().sample(model, jax.random.key(1), 64)
    scale = jax.random.normal(jax.random.key(2), (64, 1))
    losses = (
        lambda m: setting().loss(m, tokens, jnp.broadcast_to(scale, tokens.shape)),
        lambda m: -scale[:, 0] @ m.log_probability(tokens),
    )
    both = (jax.tree.leaves(jax.value_and_grad(f)(model)) for f in losses)
    for x, y in zip(*both):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10)
