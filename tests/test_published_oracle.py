"""The scripts that train and count on SeqGAN's oracle, on models of 200 words."""

import itertools
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

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


LOGS = frame("published_logs.csv")
OURS = measured("published_gans.csv")


def test_the_baseline_is_that_of_the_other_table():
    for (run, step), metrics in OURS.items():
        if run == "MLE":
            np.testing.assert_allclose(metrics[0], NOISE[run, step][0], atol=1e-4)


@pytest.mark.claim("N21.19", recount=True)
@pytest.mark.parametrize("log", ["SeqGAN", "RankGAN 1", "RankGAN 2", "RankGAN 3"])
def test_rewards_without_information_reach_seqgans_log_and_not_rankgans(log):
    """At the step of the record, seed by seed, and at any."""
    rows = LOGS[(LOGS.log == log) & (LOGS.phase == "adversarial")]
    found = dict(zip(rows.step, rows.oracle_nll))
    noisy = {
        key: x[:, 0] for key, x in NOISE.items() if key[0] in ("constant", "uniform")
    }
    if log == "SeqGAN":
        assert max(noisy["uniform", 50].max(), noisy["constant", 50].max()) < found[50]
        assert min(noisy["uniform", 150]) < found[150]
    else:
        assert found[195] < min(x.min() for x in noisy.values()) - 0.2
        assert np.polyfit(rows.step, rows.oracle_nll, 1)[0] < 0


@pytest.mark.claim("N21.20", recount=True)
def test_cold_models_with_the_oracle_nll_of_the_logs_lose_real_text():
    """With a parabola through the temperatures."""
    steps = 50, 60, 70, 80, 90
    cold = np.array([OURS["temperature", t][0] for t in steps])
    last = LOGS[LOGS.phase == "adversarial"].groupby("log").oracle_nll.last()
    t, nll, entropy = (
        np.polyval(np.polyfit(cold[:, 0], y, 2), last)
        for y in (np.array(steps) / 100, cold[:, 1], cold[:, 2])
    )
    assert list(last.index[t < 0.8]) == ["RankGAN 1", "RankGAN 2", "RankGAN 3"]
    assert nll.min() > OURS["MLE", 120][0, 1] + 0.3 > np.log(5000)
    assert entropy.max() < OURS["MLE", 120][0, 2] - 0.3


def gan(run):
    """Metrics and judge's views of a run's rows, by step."""
    rows = frame("published_gans.csv")
    return rows[rows.run == run].set_index("step")


@pytest.mark.claim("N21.21", recount=True)
@pytest.mark.parametrize(
    ("run", "last", "gap"), [("D", 0.99, 0.01), ("ranker", 0.9, 0.03)]
)
def test_judges_know_their_training_texts_and_nothing_of_the_oracle(run, last, gap):
    """Seen by how far apart they hold texts of the oracle and texts of the model."""
    views = gan(run).loc[50]
    assert views.judge_training > last
    apart = views.judge_test - views.judge_model
    assert 0 < apart < gap * (views.judge_training - views.judge_test)


@pytest.mark.claim("N21.22", recount=True)
@pytest.mark.claim("N21.23", recount=True)
@pytest.mark.parametrize("run", ["SeqGAN", "RankGAN"])
def test_gans_trade_real_text_for_quality_as_rewards_without_information_do(run):
    """By trends over all steps, and on either side of the rewards' best seeds."""
    rows = gan(run)
    assert [*rows.index] == [*range(5, 201, 5)]
    halves = (
        rows.iloc[:20].mean(numeric_only=True),
        rows.iloc[20:].mean(numeric_only=True),
    )
    assert halves[1].oracle_nll < halves[0].oracle_nll
    assert halves[1].nll_test > halves[0].nll_test > np.log(5000)
    assert halves[1].entropy < halves[0].entropy
    noisy = min(
        (NOISE[reward, t] - NOISE["MLE", 120])[:, 0].min()
        for reward in ("constant", "uniform")
        for t in (25, 50, 100, 150, 200)
    )
    gained = rows.oracle_nll - OURS["MLE", 120][0, 0]
    assert (gained.min() < noisy) == (run == "RankGAN")
    # Between the temperatures that enclose it, by a parabola through the nearest three.
    cold = np.array([OURS["temperature", t][0] for t in (70, 80, 90)])
    best = rows.loc[rows.oracle_nll.idxmin()]
    for k, name, sign in ((1, "nll_test", 1), (2, "entropy", -1)):
        same = np.polyval(np.polyfit(cold[:, 0], cold[:, k], 2), best.oracle_nll)
        assert sign * (same - best[name]) > 0.05
    logs = LOGS[(LOGS.phase == "adversarial") & LOGS.log.str.startswith(run)]
    assert logs.groupby("log").oracle_nll.min().max() < best.oracle_nll


@pytest.mark.claim("N21.24", recount=True)
def test_seqgan_from_the_best_epoch_comes_back_and_loses_real_text():
    rows = gan("SeqGAN-best")
    start = OURS["MLE", 5][0]
    low = rows.oracle_nll.idxmin()
    assert low < 50
    assert np.polyfit(rows.loc[low:].index, rows.loc[low:].oracle_nll, 1)[0] > 0
    assert rows.oracle_nll.iloc[-1] > start[0] > rows.oracle_nll.loc[low]
    assert rows.nll_test.min() > start[1]


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


FILTERS = {1: 3, 3: 4, 20: 2}


@pytest.fixture(scope="module")
def published():
    return load("make_published_gans")


@pytest.fixture(scope="module")
def judge(model):
    """A small discriminator in float64, of the words of the model."""
    first = load("texygen_discriminator").first_discriminator
    d = first(jax.random.key(20), model.vocab_size, FILTERS, 6)[0]
    return jax.tree.map(lambda a: a.astype(float), d)


def test_the_published_discriminator_has_the_published_filters(published):
    assert sum(published.FILTERS.values()) == 1720
    assert list(published.FILTERS) == [*range(1, 11), 15, 20]
    assert {published.FILTERS[n] for n in range(2, 6)} == {200}


def test_a_loss_has_the_slope_of_plain_filters(setting, model, published, judge):
    """Texts repeat words, so that a filter's greatest answer comes twice."""
    plain = load("texygen_discriminator")
    tokens = setting.sample(model, jax.random.key(21), 64) % 7
    real = jax.random.bernoulli(jax.random.key(22), 0.5, (64,)).astype(int)
    key = jax.random.key(23)

    def formula(d):
        y = plain.highway(d, plain.pooled(d, tokens))
        y = y * jax.random.bernoulli(key, 0.75, y.shape) / 0.75
        chosen = jax.nn.log_softmax(y @ d["out"] + d["out_bias"])
        size = (d["out"] ** 2).sum() + (d["out_bias"] ** 2).sum()
        return 0.2 * size / 2 - chosen[jnp.arange(64), real].mean()

    found = jax.value_and_grad(published.d_loss)(judge, tokens, real, None, key)
    expected = jax.value_and_grad(formula)(judge)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)


def test_ranks_and_their_loss_by_hand(published, monkeypatch):
    """Cosines with (1, 0) and (0, 2) add up to 1, 1 and the root of 2."""
    of_text = jnp.array([[1.0, 0], [0, 1], [1, 1], [0, 2]])
    monkeypatch.setattr(published, "features", lambda d, x, key: of_text[x[:, 0]])
    texts, references = jnp.array([[0], [1], [2]]), jnp.array([[0], [3]])
    e, root = np.e, np.sqrt(2)
    total = 2 * e + np.exp(root)
    found = published.rank_worth({}, texts, references)
    np.testing.assert_allclose(found, [e / total, e / total, np.exp(root) / total])
    found = published.rank_worth({}, texts, references, gamma=0.5)
    half = np.exp([0.5, 0.5, root / 2])
    np.testing.assert_allclose(found, half / half.sum())
    loss = published.rank_loss({}, texts, jnp.array([1, 0, 0]), references, None)
    assert float(loss) == pytest.approx((1 + root) / 2 - 1)
    half = published.rank_loss({}, texts, jnp.array([1, 0, 0]), references, None, 0.5)
    assert float(half) == pytest.approx(float(loss) / 2)


@pytest.mark.usefixtures("as_a_user")
def test_a_judge_that_knows_nothing_gives_a_constant_reward(setting, model, published):
    """The step is that of every text's being rewarded with 1/2, or with 1/32."""
    model = jax.tree.map(lambda a: a.astype(jnp.float32), model)
    key, rule = jax.random.key(24), setting.optimiser("adam")
    training = setting.sample(model, key, 64)
    zeros = jnp.zeros((2, 2), jnp.float32)
    blank = {"out": zeros[:1], "out_bias": zeros[0]}

    def same(d, texts, key):
        return jnp.ones((len(texts), 1), jnp.float32)

    tokens = setting.sample(model, jax.random.split(key, 3)[0], 64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "NUM_COMPLETIONS", 1)
        patch.setattr(published, "features", same)
        for kind, share in ((published.D, 1 / 2), (published.RANKER, 1 / 32)):
            first = model, rule.init(model), model, blank, training
            found = published.generator_step(kind, *first, key)[0]
            texts = tokens[: kind.num_texts]
            scale = jnp.full(texts.shape, share, jnp.float32)
            expected = setting.descend(rule, *first[:2], texts, scale)[0]
            for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
                np.testing.assert_allclose(x, y, atol=1e-6)
    published.generator_step.clear_cache()


@pytest.mark.slow
def test_rewards_are_the_mean_over_all_completions(setting):
    """Only two words of 100 are ever drawn, so that the last three can be listed."""
    model = qd.LSTMLanguageModel.random(jax.random.key(25), 100, 4, 4, 1.5)
    model = replace(model, output_biases=model.output_biases.at[2:].set(-1e3))
    tokens = setting.sample(model, jax.random.key(26), 64)[:2]
    assert int(tokens.max()) == 1

    weights = jax.random.normal(jax.random.key(32), (20,))

    def worth(texts):
        return jax.nn.sigmoid(texts @ weights)

    number = 500
    noise = load("make_reward_noise")
    found = jax.jit(lambda key: noise.rewards(worth, model, tokens, key, number))
    found = np.asarray(found(jax.random.key(27)))
    for text, earned in zip(np.asarray(tokens), found):
        for rest in (1, 2, 3):
            ends = np.array(list(itertools.product((0, 1), repeat=rest)))
            given = np.tile(text[: 20 - rest], (len(ends), 1))
            texts = jnp.asarray(np.hstack([given, ends]))
            log_p = np.asarray(model.log_probability(texts))
            chance = np.exp(log_p - log_p.max())
            chance /= chance.sum()
            value = np.asarray(worth(texts))
            mean = chance @ value
            error = np.sqrt(chance @ (value - mean) ** 2 / number)
            assert 0 < abs(earned[19 - rest] - mean) < 4 * error
    np.testing.assert_allclose(found[:, -1], worth(tokens), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("name", ["D", "RANKER"])
def test_a_judge_learns_in_its_rounds(setting, model, published, name):
    kind = getattr(published, name)
    model = jax.tree.map(lambda a: a.astype(jnp.float32), model)
    training = jax.random.randint(jax.random.key(28), (640, 20), 0, 20)
    first = load("texygen_discriminator").first_discriminator
    start = first(jax.random.key(29), 200, FILTERS, 6)
    learnt = published.judge_round(kind, 60, start, model, training, jax.random.key(30))
    false = setting.sample(model, jax.random.key(31), 64)
    ranks = kind.worth(
        learnt[0], jnp.concatenate([training[:64], false]), training[:16]
    )
    assert float(ranks[:64].mean()) > 1.2 * float(ranks[64:].mean())


def test_rows_come_at_each_stop_and_only_once(
    setting, published, tmp_path, monkeypatch
):
    monkeypatch.setattr(published, "measure", lambda one, judge, x: [float(x)])

    def go(name, rule, state, stops, advance, measure):
        path = tmp_path / f"{name}.npz"
        state, rows = setting.run(path, state, stops, advance, measure)
        return state, [[name, rule, 0, *row] for row in rows]

    one, state = SimpleNamespace(run=go), (jnp.zeros(()),)

    def add(state, step):
        return (state[0] + step,)

    def rows():
        return published.in_turn(one, None, "x", state, [5, 10, 15], add)

    all_rows = [["x", "adam", 0, 5, 10.0], ["x", "adam", 0, 10, 45.0]]
    begun = rows()
    assert [next(begun), next(begun)] == [all_rows[:1], all_rows[1:]]
    assert [*rows()] == [all_rows, [], [["x", "adam", 0, 15, 105.0]]]
