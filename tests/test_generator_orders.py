"""Orders of generators in generators.csv, each oracle by itself."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from lab import generators
from lab.generators import LeakGAN, LeakyLSTM, MaximumLikelihood
from scipy.special import rel_entr
from scripts import column_of, frame

import qdtheory as qd

ROWS = frame("generators.csv")
AS_IS = ROWS[ROWS.temperature == 1]
ORACLES = range(100)
SEQGANS = ["SeqGAN-reinforce", "SeqGAN-step", "SeqGAN-rollouts"]
LEAKGANS = ["LeakGAN-leak", "LeakGAN-noleak", "LeakGAN-mixed"]
EVERY = AS_IS[(AS_IS.texts == 128) & (AS_IS.pretrained == "yes")].model.unique()


def table(metric, decoding="", texts=None, pretrained=("no", "")):
    """A metric, an oracle a row and a model a column; of `texts`, or of P itself."""
    seen = AS_IS.texts.isna() if texts is None else AS_IS.texts == texts
    kept = seen & (AS_IS.decoding == decoding) & AS_IS.pretrained.isin(pretrained)
    found = AS_IS[kept].pivot(index="oracle", columns="model", values=metric)
    assert found.index.tolist() == [*ORACLES]
    return found


# --- Adversarial generators -----------------------------------------------------------


def values(metric, names, texts=None, pretrained="yes"):
    """A metric of each model on each oracle, the oracles in rows."""
    return table(metric, "", texts, (pretrained, ""))[names].to_numpy()


def orders(metric, names, texts):
    """The models from the least value to the greatest, for each oracle."""
    places = values(metric, names, texts).argsort(axis=1, kind="stable")
    return np.array(names)[places].tolist()


@pytest.mark.claim("N22.13", recount=True)
@pytest.mark.parametrize(
    ("rank", "distance", "without"),
    [("RankGAN", (14, 34), (38, 38)), ("RankGAN, bounded", (37, 5), (71, 73))],
)
def test_orders_of_table_4(rank, distance, without):
    mali, seq = "MaliGAN, batches of 3", "SeqGAN-reinforce"
    names = [mali, rank, seq, "MLE"]
    for texts, count, others in zip((None, 128), distance, without, strict=True):
        by_distance = orders("bhattacharyya", names, texts)
        assert by_distance.count(["MLE", mali, seq, rank]) == count
        by_quality = orders("oracle_nll", names, texts)
        assert by_quality.count([seq, rank, "MLE", mali]) <= 1
        by_quality = orders("oracle_nll", names[1:], texts)
        assert by_quality.count([seq, rank, "MLE"]) == others
    # The population's MaliGAN is maximum likelihood.
    for metric in ("nll", "oracle_nll", "entropy"):
        found, likelihood = values(metric, ["MaliGAN", "MLE"], 128).T
        np.testing.assert_allclose(found, likelihood, rtol=0.02)


def of_atoms():
    """The divergence of the nearer of two continuous GANs after argmax."""
    return table("js", "argmax").min(axis=1).to_numpy()


@pytest.mark.claim("N22.14", recount=True)
def test_observations_i_to_iii_of_semeniuta():
    worst = values("js", SEQGANS + LEAKGANS)
    assert sum(worst[:, :3].max(axis=1) < of_atoms()) == 100
    assert sum(worst.max(axis=1) < of_atoms()) == 1
    names = ["SeqGAN-reinforce", "MLE"]
    precision, recall = (values(x, names, 128) for x in ("oracle_nll", "nll"))
    precise, less = precision[:, 0] < precision[:, 1], recall[:, 0] > recall[:, 1]
    assert (sum(precise), sum(precise & less)) == (95, 92)
    bleu = values("bleu", [*SEQGANS, *LEAKGANS, "MLE"], 128)
    assert sum((row[:6] > row[6]).sum() >= 4 for row in bleu) == 48


@pytest.mark.claim("N22.14", recount=True)
def test_observation_iv_depends_on_the_discriminator():
    bar = values("js", ["MLE"], 128)[:, 0]
    bigrams = [f"{name}, bigrams" for name in SEQGANS]
    sets = SEQGANS + LEAKGANS, bigrams + LEAKGANS, EVERY
    nearest = [values("js", names, 128).min(axis=1) for names in sets]
    assert len(EVERY) == 17
    assert [sum(best < 0.95 * bar) for best in nearest] == [14, 52, 89]


@pytest.mark.claim("N22.14", recount=True)
@pytest.mark.parametrize(
    ("texts", "counts"), [(None, (62, 44, 33)), (128, (66, 47, 33))]
)
def test_observation_v_holds_on_a_third(texts, counts):
    leak, noleak, mixed = values("js", LEAKGANS, texts).T
    alone = noleak < leak, noleak < mixed
    assert (*map(sum, alone), sum(alone[0] & alone[1])) == counts


@pytest.mark.claim("N22.14", recount=True)
def test_observation_vi_holds_for_no_seqgan_with_an_optimal_discriminator():
    names = SEQGANS + LEAKGANS
    helped = values("js", names, None, "no") - values("js", names) > 0.01
    assert helped.sum(axis=0).tolist() == [1, 1, 1, 30, 45, 33]
    assert not helped.all(axis=1).any()


@pytest.mark.claim("N22.21")
def test_no_law_of_sixteen_atoms_is_nearer_than_a_seqgan():
    """By dynamic programming: the cheapest way to share k atoms, text by text."""
    q, least = np.arange(17)[None] / 16, []
    for oracle in ORACLES:
        p = np.asarray(qd.oracle(qd.TextSpace(4, 3), oracle))[:, None]
        middle = (p + q) / 2
        cost = (rel_entr(p, middle) + rel_entr(q, middle)) / 2
        best = np.array([0.0, *[np.inf] * 16])
        for row in cost:
            best = np.array([min(best[: k + 1] + row[k::-1]) for k in range(17)])
        least.append(best[16])
    assert (values("js", SEQGANS).max(axis=1) < least).all()
    assert (of_atoms() >= np.subtract(least, 1e-6)).all()
    assert np.median(least) == pytest.approx(0.0545, abs=1e-4)


@pytest.mark.slow
@pytest.mark.claim("N22.22")
def test_a_language_model_of_half_the_steps_is_nearer_and_most_gans_no_more():
    """By a loop of Adam of its own, on oracles that the notebook does not train."""
    space, seeds, adam = qd.TextSpace(4, 3), range(30, 100), optax.adam(0.02)
    ps = jnp.stack([qd.oracle(space, seed) for seed in seeds])
    draws = [qd.sample(jax.random.key(s), p, 128) for s, p in zip(seeds, ps)]
    shares = jnp.stack([jnp.bincount(x, length=64) / 128 for x in draws])
    keys = jnp.stack([jax.random.key(1000 + seed) for seed in seeds])
    models = jax.vmap(lambda k: qd.LSTMLanguageModel.random(k, 4, 4, 4, 0.3))(keys)

    @jax.jit
    @jax.vmap
    def after_300(model, seen):
        def loss(model):
            return -seen @ jnp.log(model.probabilities(space))

        def step(_, at):
            model, state = at
            move, state = adam.update(jax.grad(loss)(model), state)
            return optax.apply_updates(model, move), state

        return jax.lax.fori_loop(0, 300, step, (model, adam.init(model)))[0]

    half = after_300(models, shares)
    laws = [
        jax.vmap(lambda m: m.probabilities(space))(m)
        for m in (half, after_300(half, shares))
    ]
    early, late = (
        np.array(jax.vmap(qd.jensen_shannon_divergence)(ps, q)) for q in laws
    )
    np.testing.assert_allclose(late, values("js", ["MLE"], 128)[30:, 0], atol=1e-3)
    nearest = values("js", EVERY, 128).min(axis=1)[30:]
    assert np.mean(early < late) > 0.85
    assert np.mean(nearest < 0.95 * early) < 0.5 < np.mean(nearest < 0.95 * late)


@pytest.mark.slow
@pytest.mark.claim("N22.23")
def test_a_lower_rate_keeps_a_leakgan_nearer():
    """The variant that mixes the states, on other oracles than the notebook's."""
    space, sizes = qd.TextSpace(4, 3), {"vocab_size": 4, "size": 4, "sigma": 0.3}

    @partial(jax.jit, static_argnums=0)
    def trained(objective, model, p, rate):
        settings = {"learning_rate": rate, "every": 300}
        return generators.train(objective, model, space, p, 300, **settings).model

    for seed in (4, 8):
        p, key = qd.oracle(space, seed), jax.random.key(1000 + seed)
        model = LeakyLSTM.random(key, variant="mixed", **sizes)
        ready = trained(MaximumLikelihood(), model, p, 0.02)
        ends = [trained(LeakGAN(), ready, p, rate) for rate in (0.0002, 0.02)]
        laws = [model.probabilities(space) for model in (ready, *ends)]
        start, slow, fast = (qd.jensen_shannon_divergence(p, q) for q in laws)
        assert start < slow < fast / 2


@pytest.mark.claim("N22.15", recount=True)
def test_distances_to_the_frontier():
    """No model of its entropy is nearer than P, so it lacks KL(Q, P) at most."""
    kl = ROWS.oracle_nll - ROWS.entropy
    assert ROWS.LL_SE.between(-2e-4, kl + 2e-4).all()
    worst = values("LL_SE", ["LeakGAN-leak", "LeakGAN-mixed"], 128).max(axis=1)
    assert np.median(worst - values("LL_SE", ["MLE"], 128)[:, 0]) > 0.2


# --- Autoencoders of Cífka et al. -----------------------------------------------------

WORD_DROPOUT = ["VAE (dw=0.5)", "VAE (dw=0.75)"]


def autoencoders(metric, decoding="drawn"):
    """A metric of the twelve models of the paper, of those that saw P."""
    found = table(metric, decoding).filter(regex="^(VAE|AAE|AE-|ARAE)")
    found = found.drop(columns="AAE-gauss")
    assert found.shape[1] == 12
    return found


@pytest.mark.claim("N23.12", recount=True)
def test_greedy_decoding_puts_vaes_below_real_text():
    real = table("oracle_nll")["real data"]
    below = autoencoders("oracle_nll", "greedy").lt(real, axis=0).mean()
    assert below.filter(like="VAE").min() >= 0.7
    assert below[~below.index.str.contains("VAE")].max() <= 0.2
    gaps = autoencoders("oracle_nll")[WORD_DROPOUT].sub(real, axis=0)
    assert abs(np.median(gaps)) <= 0.05


@pytest.mark.claim("N23.13", recount=True)
def test_the_adversary_moves_less_than_the_noise():
    kept = []
    for metric in ("nll", "oracle_nll"):
        found = autoencoders(metric)
        moved = found.sub(found["AE-sph (sigma=0.1)"], axis=0).abs()
        kept.append(moved["AAE-sph (sigma=0.1)"] < moved["AE-sph (sigma=0.05)"])
    assert np.mean(kept) >= 0.9


@pytest.mark.claim("N23.14", recount=True)
def test_vaes_sample_best_and_read_worst():
    for metric in ("js", "read_accuracy"):
        places = autoencoders(metric).rank(axis=1)[WORD_DROPOUT]
        assert (places <= 3).all(axis=1).mean() >= 0.9
    assert (autoencoders("js").idxmax(axis=1) == "ARAE").mean() <= 0.1


@pytest.mark.claim("N23.15", recount=True)
def test_forward_and_reverse_cross_entropy_rise_together():
    pair = (autoencoders(metric) for metric in ("oracle_nll", "nll"))
    ranks = [found.rank(axis=1) for found in pair]
    assert (ranks[0].corrwith(ranks[1], axis=1) > 0).all()


@pytest.mark.claim("N23.16", recount=True)
def test_vaes_with_word_dropout_lie_nearest_to_the_frontier():
    found = autoencoders("LL_SE")
    others = found.loc[:, ~found.columns.str.contains("VAE")]
    assert (found[WORD_DROPOUT].max(axis=1) < others.min(axis=1)).all()


AE = "AE-sph (sigma=0.1)"
OTHER_TYPES = "^(VAE|AAE-gauss|AE-gauss|ARAE)"


@pytest.mark.claim("N23.17", recount=True)
@pytest.mark.parametrize("metric", ["nll", "js"])
def test_the_adversary_matters_for_a_gaussian_prior_alone(metric):
    found = autoencoders(metric)
    plain = found[["AE-gauss-det (d=1)", AE]].to_numpy()
    moved = plain - found[["AAE-gauss-det (lambda=10 d=1)", "AAE-sph (sigma=0.1)"]]
    assert (moved.iloc[:, 0] > abs(moved.iloc[:, 1])).all()


@pytest.mark.claim("N23.18", recount=True)
@pytest.mark.parametrize(
    ("metric", "column", "sign"), [("read_bleu", "BLEU", 1), ("read_nll", "NLL", -1)]
)
def test_less_reverse_cross_entropy_goes_with_worse_reconstruction(
    metric, column, sign
):
    reverse, read = (autoencoders(x).rank(axis=1) for x in ("oracle_nll", metric))
    found = sign * reverse.corrwith(read, axis=1)
    assert found.min() > 0.5
    theirs = column_of("cifka2018", "1", "Reverse"), column_of("cifka2018", "1", column)
    ranks = [pd.Series(values)[[*theirs[1]]].rank() for values in theirs]
    assert len(ranks[0]) == 13
    printed = sign * ranks[0].corr(ranks[1])
    assert printed == pytest.approx({"BLEU": 0.58, "NLL": 0.35}[column], abs=0.005)
    assert printed < found.median()


@pytest.mark.claim("N23.19", recount=True)
def test_forward_cross_entropy_of_ae_sph_is_never_the_least():
    found, theirs = autoencoders("nll"), column_of("cifka2018", "1", "Forward")
    others = found.filter(regex=OTHER_TYPES)
    assert others.shape[1] == 6
    assert (found[AE] > others.filter(like="VAE").max(axis=1)).all()
    assert all(theirs[AE] < theirs[name] for name in others)


@pytest.mark.claim("N23.20", recount=True)
@pytest.mark.parametrize("decoding", ["drawn", "greedy"])
def test_reverse_cross_entropy_of_ae_sph_is_above_vaes_and_real_text(decoding):
    found = autoencoders("oracle_nll", decoding)
    bar = found.filter(like="VAE").max(axis=1)
    assert (found[AE] > np.maximum(bar, table("oracle_nll")["real data"])).all()
    theirs = column_of("cifka2018", "1", "Reverse")
    assert max(theirs[m] for m in theirs if "VAE" in m) < theirs[AE]
    assert theirs[AE] < theirs["real data"]


@pytest.mark.claim("N23.21", recount=True)
def test_ae_sph_reconstructs_better_than_vaes():
    for metric, sign in (("read_nll", -1), ("read_bleu", 1), ("read_accuracy", 1)):
        found = sign * autoencoders(metric)
        assert (found[AE] > found.filter(like="VAE").max(axis=1)).all()
