"""The scripts that train and count on SeqGAN's oracle, on models of 200 words."""

import itertools
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scripts import frame, rows_of
from scripts import script as load

import qdtheory as qd

DATA = os.environ.get("QDTHEORY_DATA")


@pytest.fixture(scope="module")
def setting():
    return load("seqgan_setting")


@pytest.fixture(scope="module")
def model():
    return qd.LSTMLanguageModel.random(jax.random.key(0), 200, 8, 8, 0.7)


@pytest.mark.claim("N21.12")
def test_points_that_dominate_are_counted_one_by_one():
    script = load("make_oracle_dominance")
    rng = np.random.default_rng(12)
    ours, theirs = rng.integers(0, 6, (40, 2)), rng.integers(0, 6, (30, 2))
    found = script.dominated(ours, theirs)
    for (x, y), mark in zip(ours, found):
        assert mark == any(a <= x and b <= y and (a < x or b < y) for a, b in theirs)
    best = script.efficient(ours)
    assert not script.dominated(best, ours).any()
    assert len(script.measured(np.array([[1, 2], [1, np.nan], [np.inf, 1]]))) == 1


@pytest.mark.claim("N21.12", recount=True)
def test_counts_of_the_table_fit_each_other():
    rows = {(r["model"], r["rival"]): r for r in rows_of("oracle_dominance.csv")}
    mle = ("mle_cvo", "mle_cvot", "mle_cvt")
    for one, other in itertools.permutations(mle, 2):
        lost = rows[one, other]["dominated"], rows[other, one]["rival_dominated"]
        assert lost[0] == lost[1]
    for (_, rival), row in rows.items():
        assert int(row["dominated"]) <= int(row["efficient"]) <= int(row["points"])
        assert int(row["rival_dominated"]) <= int(row["rival_efficient"])
        if rival == "any MLE":
            each = [int(rows[row["model"], m]["dominated"]) for m in mle]
            assert int(row["dominated"]) >= max(each)


@pytest.mark.claim("N21.12")
@pytest.mark.skipif(not DATA, reason="set QDTHEORY_DATA to the folder of the corpora")
def test_counts_are_those_of_the_curves():
    script, folder = load("make_oracle_dominance"), Path(DATA, "caccia_oracle")
    mle = [script.curve(folder, name) for name in script.MLE]
    mle = [tuple(x) for x in np.vstack(mle)]
    for row in rows_of("oracle_dominance.csv"):
        if row["rival"] == "any MLE":
            own = script.efficient(script.measured(script.curve(folder, row["model"])))
            lost = sum(
                any(a <= x and b <= y and (a, b) != (x, y) for a, b in mle)
                for x, y in own
            )
            assert lost == int(row["dominated"])


def measured(table):
    """Oracle-NLL, NLL and entropy of each run under Adam by step, a row a seed."""
    rows = frame(table)
    metrics = rows[["run", "step", "oracle_nll", "nll_test", "entropy"]]
    by_step = metrics[rows.optimiser != "sgd"].groupby(["run", "step"])
    return {key: found.iloc[:, 2:].to_numpy() for key, found in by_step}


NOISE, GANS = (measured(f"{name}.csv") for name in ("reward_noise", "oracle_gans"))


def chance(gaps):
    """Of a sum as great, if each seed's sign were as likely as the other: exact."""
    signs = np.array(list(itertools.product((1, -1), repeat=len(gaps))))
    return np.mean((signs * gaps).sum(axis=1) >= gaps.sum())


@pytest.mark.claim("N21.13", recount=True)
@pytest.mark.parametrize("step", [50, 100, 150, 200])
def test_a_reward_above_0_beats_a_centred_one_on_the_same_texts(step):
    before = NOISE["MLE", 120]
    for positive, centred in (("constant", "sign"), ("uniform", "centred")):
        after = NOISE[positive, step]
        assert len(after) == 5
        assert chance((NOISE[centred, step] - after)[:, 0]) <= 1 / 32
        worse = after[:, 1] - before[:, 1], before[:, 2] - after[:, 2]
        assert np.min(worse) > 0


@pytest.mark.claim("N21.18", recount=True)
@pytest.mark.parametrize("seed", range(5))
def test_the_baseline_after_120_epochs_is_worse_than_no_training(seed):
    curve = {step: x[seed, 1] for (run, step), x in NOISE.items() if run == "MLE"}
    assert min(curve, key=curve.get) == 5
    assert curve[5] < np.log(5000) - 0.8
    assert min(nll for epochs, nll in curve.items() if epochs >= 40) > np.log(5000)


@pytest.mark.claim("N21.14", recount=True)
@pytest.mark.parametrize("run", ["constant", "uniform"])
def test_at_first_it_costs_less_than_a_temperature(run):
    # Seed by seed, with a parabola through three temperatures.
    cool = np.stack([NOISE["temperature", t] for t in (80, 85, 90)])
    for noisy, own in zip(NOISE[run, 50], cool.transpose(1, 0, 2)):
        for column, sign in ((1, -1), (2, 1)):
            same = np.polyval(np.polyfit(own[:, 0], own[:, column], 2), noisy[0])
            assert sign * (noisy[column] - same) > 0.1


@pytest.mark.claim("N21.15", recount=True)
def test_seqgan_rises_again_and_stays_above_a_reward_without_information():
    gan = np.stack([NOISE["SeqGAN-1", t][:, 0] for t in range(25, 201, 25)])
    assert np.polyfit(np.arange(4), gan[4:], 1)[0].min() > 0
    for run in ("constant", "uniform"):
        for gaps in gan - NOISE[run, 50][:, 0]:
            assert chance(gaps) <= 1 / 32


@pytest.mark.claim("N21.16", recount=True)
@pytest.mark.parametrize("run", ["MaliGAN", "MaliGAN-D"])
def test_maligan_moves_away_from_the_oracle_all_the_way(run):
    """At every record, by trends, and from the oracle itself."""
    steps = np.arange(0, 201, 25)
    for seed in (0, 1):
        after = (GANS[run, t][seed] for t in steps[1:])
        records = [GANS["MLE", 120][seed], *after]
        slopes = np.polyfit(steps, records, 1)[0]
        assert np.sign(slopes).tolist() == [1, 1, -1]
        # KL(Q, P) = Oracle-NLL less entropy: the distance itself.
        distance = [x[0] - x[2] for x in records]
        assert min(distance[1:]) > distance[0]
        assert GANS["oracle", 0][seed, 0] < min(x[0] for x in records)


@pytest.mark.claim("N21.17", recount=True)
def test_cot_falls_steadily_and_is_far_behind_an_epoch_count_of_mle():
    found = [GANS["CoT", t][0, 0] for t in range(250, 3001, 250)]
    assert np.polyfit(np.arange(len(found)), found, 1)[0] < 0
    # As many texts were read as MLE reads in 19 epochs.
    epochs = 3000 * 64 / 9984
    assert 19 < epochs < 20
    assert found[-1] > GANS["MLE", 5][0, 0]


def test_loss_has_the_slope_of_its_formula(setting, model):
    tokens = setting.sample(model, jax.random.key(1), 64)
    scale = jax.random.normal(jax.random.key(2), tokens.shape)

    def formula(model):
        h = setting.hidden_states(model, tokens)
        logits = h @ model.output_weights + model.output_biases
        log_next = jax.nn.log_softmax(logits)
        chosen = jnp.take_along_axis(log_next, tokens.T[..., None], axis=2)[..., 0]
        return -(chosen * scale.T).sum()

    found = jax.value_and_grad(setting.loss)(model, tokens, scale)
    expected = jax.value_and_grad(formula)(model)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10)
    nll = -float(model.log_probability(tokens).mean()) / setting.LENGTH
    assert float(setting.nats(model, tokens)) == pytest.approx(nll, rel=1e-12)


def test_words_are_drawn_at_their_quantiles(setting):
    logits = jax.random.normal(jax.random.key(3), (1, 200)) * 2
    p = np.asarray(jax.nn.softmax(logits[0]))
    uniform = (jnp.arange(20_000) + 0.5) / 20_000
    drawn = setting.draw(jnp.repeat(logits, 20_000, axis=0), uniform)
    # A word's share of a grid of quantiles is its probability up to one point.
    share = np.bincount(np.asarray(drawn), minlength=200) / 20_000
    assert np.abs(share - p).max() <= 1.0001 / 20_000


def test_completions_keep_what_is_given(setting, model):
    tokens = setting.sample(model, jax.random.key(4), 64)
    complete = load("make_reward_noise").completions
    found = np.asarray(complete(model, tokens, jax.random.key(5)))
    assert found.shape == (19, 64, 20)
    for given in range(1, 20):
        same = found[given - 1] == np.asarray(tokens)
        assert same[:, :given].all()
        assert given > 15 or not same[:, given:].all()


def test_a_killed_run_goes_on_where_its_file_stands(setting, tmp_path):
    path, calls = tmp_path / "run.npz", []

    def advance(state, step):
        calls.append(step)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return (state[0] + step, state[1])

    def measure(x):
        return [float(x)]

    state, stops = (jnp.zeros(()), jnp.ones(2, jnp.int32)), [2, 4, 8]
    with pytest.raises(KeyboardInterrupt):
        setting.run(path, state, stops, advance, measure)
    found, rows = setting.run(path, state, stops, advance, measure)
    assert rows == [[2, 1.0], [4, 6.0], [8, 28.0]]
    assert calls == [*range(6), *range(4, 8)]
    assert [x.dtype for x in found] == [x.dtype for x in state]
    assert setting.run(path, state, stops, advance, measure)[1] == rows
    assert [x.name for x in tmp_path.iterdir()] == ["run.npz"]
    with pytest.raises(FloatingPointError, match="run gave"):
        setting.run(path, state, [9], advance, lambda x: [np.nan])


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
def test_discriminator_learns_and_rewards_are_probabilities(setting, model):
    judge, noise = load("texygen_discriminator"), load("make_reward_noise")
    model = jax.tree.map(lambda a: a.astype(jnp.float32), model)
    training = jnp.zeros((setting.NUM_TRAINING, setting.LENGTH), int)
    first = judge.first_discriminator(jax.random.key(6), 200)
    learnt = judge.discriminate(first, model, training, jax.random.key(7), 60)

    def real(texts):
        return np.asarray(jax.nn.softmax(judge.opinion(learnt[0], texts)))[:, 1]

    false = setting.sample(model, jax.random.key(8), 64)
    assert real(training[:64]).min() > real(false).max()
    state = model, setting.optimiser("adam").init(model), model, *learnt
    moved = noise.gan_step(1, state, training, jax.random.key(9))
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(moved))
    np.testing.assert_array_equal(moved[2].embeddings, moved[0].embeddings)


def test_shares_of_a_batch_are_those_of_the_odds(setting):
    gans = load("make_oracle_gans")
    logits = jax.random.normal(jax.random.key(10), (64, 2))
    real = np.asarray(jax.nn.softmax(logits))[:, 1]
    for name, worth in (("MaliGAN", real / (1 - real)), ("MaliGAN-D", real)):
        found = gans.shares(name, logits)
        np.testing.assert_allclose(found, worth / worth.sum() - 1 / 64, atol=1e-14)


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
def test_cot_descends_to_its_mediator_and_the_mediator_learns(setting, model):
    gans = load("make_oracle_gans")
    mediator = setting.first_model(jax.random.key(11), 200, 16)
    mediator = jax.tree.map(lambda a: a.astype(float), mediator)
    tokens = setting.sample(model, jax.random.key(12), 64)
    found = gans.divergence(model, mediator, tokens)

    def log_next(model):
        logits = setting.hidden_states(model, tokens) @ model.output_weights
        return jax.nn.log_softmax(logits + model.output_biases)

    log_q, log_m = log_next(model), log_next(mediator)
    expected = (jnp.exp(log_q) * (log_q - log_m)).sum(axis=2).mean()
    assert float(found) == pytest.approx(float(expected), rel=1e-12)
    rules = gans.GENERATOR_RULE.init(model), gans.MEDIATOR_RULE.init(mediator)
    state = model, rules[0], mediator, rules[1]
    real = jnp.zeros((64, setting.LENGTH), int)
    for step in range(40):
        state = gans.cot_step(state, real, jax.random.key(step))
    assert setting.nats(state[2], real) < setting.nats(mediator, real) - 1
    moved, first = (gans.divergence(m, state[2], tokens) for m in (state[0], model))
    assert float(moved) < float(first)
