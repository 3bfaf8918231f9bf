"""Orders of the adversarial generators in generators.csv, each oracle by itself."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from data.tables import read
from scipy.special import rel_entr

import qdtheory as qd
from qdtheory.generators import LeakGAN, LeakyLSTM, MaximumLikelihood

ROWS = read("generators.csv")
ORACLES = sorted({row["oracle"] for row in ROWS}, key=int)


@cache
def rows_of(oracle, texts, pretrained="yes"):
    """The rows of an oracle's models by their names; MLE is always there."""
    return {
        row["model"]: row
        for row in ROWS
        if (row["oracle"], row["texts"]) == (oracle, texts)
        and float(row["temperature"]) == 1
        and row["pretrained"] in (pretrained, "")
    }


def sorted_by(metric, oracle, texts, names):
    rows = rows_of(oracle, texts)
    return sorted(names, key=lambda name: float(rows[name][metric]))


@pytest.mark.claim("N22.13", recount=True)
@pytest.mark.parametrize(
    ("rank", "distance", "without"),
    [("RankGAN", (14, 34), (38, 38)), ("RankGAN, bounded", (37, 5), (71, 73))],
)
def test_orders_of_table_4(rank, distance, without):
    mali, seq = "MaliGAN, batches of 3", "SeqGAN-reinforce"
    names = mali, rank, seq, "MLE"
    by_distance, by_quality = ["MLE", mali, seq, rank], [seq, rank, "MLE", mali]
    for texts, count, others in zip(("", "128"), distance, without, strict=True):
        at = [sorted_by("bhattacharyya", o, texts, names) for o in ORACLES]
        assert at.count(by_distance) == count
        at = [sorted_by("oracle_nll", o, texts, names) for o in ORACLES]
        assert at.count(by_quality) <= 1
        at = [sorted_by("oracle_nll", o, texts, (rank, seq, "MLE")) for o in ORACLES]
        assert at.count([seq, rank, "MLE"]) == others
    # The population's MaliGAN is maximum likelihood.
    for oracle in ORACLES:
        rows = rows_of(oracle, "128")
        for metric in ("nll", "oracle_nll", "entropy"):
            found = float(rows["MaliGAN"][metric])
            assert found == pytest.approx(float(rows["MLE"][metric]), rel=0.02)


SEQGANS = ["SeqGAN-reinforce", "SeqGAN-step", "SeqGAN-rollouts"]
LEAKGANS = ["LeakGAN-leak", "LeakGAN-noleak", "LeakGAN-mixed"]


def values(metric, names, texts="", pretrained="yes"):
    """A metric of each model on each oracle, the oracles in rows."""
    found = [rows_of(oracle, texts, pretrained) for oracle in ORACLES]
    return np.array([[float(rows[name][metric]) for name in names] for rows in found])


def of_atoms():
    """The divergences of the two continuous GANs after argmax."""
    found = [float(row["js"]) for row in ROWS if row["decoding"] == "argmax"]
    return np.array(found).reshape(len(ORACLES), 2)


@pytest.mark.claim("N22.14", recount=True)
def test_observations_i_to_iii_of_semeniuta():
    worst = values("js", SEQGANS + LEAKGANS)
    best = of_atoms().min(axis=1)
    assert sum(worst[:, :3].max(axis=1) < best) == 100
    assert sum(worst.max(axis=1) < best) == 1
    names = "SeqGAN-reinforce", "MLE"
    precision, recall = (values(x, names, "128") for x in ("oracle_nll", "nll"))
    precise, less = precision[:, 0] < precision[:, 1], recall[:, 0] > recall[:, 1]
    assert (sum(precise), sum(precise & less)) == (95, 92)
    bleu = values("bleu", [*SEQGANS, *LEAKGANS, "MLE"], "128")
    assert sum((row[:6] > row[6]).sum() >= 4 for row in bleu) == 48


@pytest.mark.claim("N22.14", recount=True)
def test_observation_iv_depends_on_the_discriminator():
    row_of = rows_of("0", "128")
    every = [name for name, row in row_of.items() if row["pretrained"] == "yes"]
    bar = values("js", ["MLE"], "128")[:, 0]
    bigrams = [f"{name}, bigrams" for name in SEQGANS]
    sets = SEQGANS + LEAKGANS, bigrams + LEAKGANS, every
    nearest = [values("js", names, "128").min(axis=1) for names in sets]
    assert len(every) == 17
    assert [sum(best < 0.95 * bar) for best in nearest] == [14, 52, 89]


@pytest.mark.claim("N22.14", recount=True)
@pytest.mark.parametrize(
    ("texts", "counts"), [("", (62, 44, 33)), ("128", (66, 47, 33))]
)
def test_observation_v_holds_on_a_third(texts, counts):
    leak, noleak, mixed = values("js", LEAKGANS, texts).T
    alone = noleak < leak, noleak < mixed
    assert (*map(sum, alone), sum(alone[0] & alone[1])) == counts


@pytest.mark.claim("N22.14", recount=True)
def test_observation_vi_holds_for_no_seqgan_with_an_optimal_discriminator():
    names = SEQGANS + LEAKGANS
    helped = values("js", names, "", "no") - values("js", names) > 0.01
    assert helped.sum(axis=0).tolist() == [1, 1, 1, 30, 45, 33]
    assert not helped.all(axis=1).any()


@pytest.mark.claim("N22.21")
def test_no_law_of_sixteen_atoms_is_nearer_than_a_seqgan():
    """By dynamic programming: the cheapest way to share k atoms, text by text."""
    q, least = np.arange(17)[None] / 16, []
    for oracle in ORACLES:
        p = np.asarray(qd.oracle(qd.TextSpace(4, 3), int(oracle)))[:, None]
        middle = (p + q) / 2
        cost = (rel_entr(p, middle) + rel_entr(q, middle)) / 2
        best = np.array([0.0, *[np.inf] * 16])
        for row in cost:
            best = np.array([min(best[: k + 1] + row[k::-1]) for k in range(17)])
        least.append(best[16])
    assert (values("js", SEQGANS).max(axis=1) < least).all()
    assert (of_atoms().min(axis=1) >= np.subtract(least, 1e-6)).all()
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
    rows = rows_of("0", "128")
    every = [name for name, row in rows.items() if row["pretrained"] == "yes"]
    np.testing.assert_allclose(late, values("js", ["MLE"], "128")[30:, 0], atol=1e-3)
    nearest = values("js", every, "128").min(axis=1)[30:]
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
        return qd.generators.train(objective, model, space, p, 300, **settings).model

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
    for row in ROWS:
        lacking = float(row["LL_SE"])
        kl = float(row["oracle_nll"]) - float(row["entropy"])
        assert -2e-4 <= lacking <= kl + 2e-4
    lost = []
    for oracle in ORACLES:
        rows = rows_of(oracle, "128")
        worst = max(float(rows[f"LeakGAN-{x}"]["LL_SE"]) for x in ("leak", "mixed"))
        lost.append(worst - float(rows["MLE"]["LL_SE"]))
    assert np.median(lost) > 0.2
