"""GANs whose rates and ends are chosen on held-out texts: tuned_generators.csv."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from scipy.special import rel_entr
from scripts import frame, script

import qdtheory as qd
from qdtheory.generators import (
    AtomTable,
    LeakGAN,
    LeakyLSTM,
    LogisticDiscriminator,
    MaximumLikelihood,
    SeqGAN,
    train,
    transport_to_texts,
)

ROWS = frame("tuned_generators.csv")
SPACE = qd.TextSpace(4, 3)
SEQGANS = ["SeqGAN-reinforce", "SeqGAN-step", "SeqGAN-rollouts"]
LEAKGANS = ["LeakGAN-leak", "LeakGAN-noleak", "LeakGAN-mixed"]
CONTINUOUS = ["Conv-LSTM", "Conv-Deconv"]


@pytest.fixture(scope="module")
def tuned():
    return script("make_tuned_generators")


def values(metric, models, selected, pretrained="yes", sees=None, atoms=None):
    """A metric, an oracle a row and a model a column."""
    kept = ROWS[(ROWS.selected == selected) & (ROWS.pretrained == pretrained)]
    kept = kept[kept.discriminator.isin(sees or ["", "bigrams", "learning"])]
    kept = kept[kept.model.isin(models)]
    kept = kept[kept.atoms.isna() if atoms is None else kept.atoms == atoms]
    return kept.pivot(index="oracle", columns="model", values=metric)[models]


def shares(oracle):
    """P, and the shares of texts for training and of those that are held out."""
    p = qd.oracle(SPACE, oracle)
    keys = jax.random.key(oracle), jax.random.key(10_000 + oracle)
    draws = (qd.sample(key, p, 128) for key in keys)
    return p, *(jnp.bincount(x, length=64) / 128 for x in draws)


def row(oracle, **where):
    """The one row of an oracle."""
    kept = ROWS[(ROWS.oracle == oracle) & (ROWS.selected == "held-out")]
    for column, value in where.items():
        kept = kept[kept[column] == value]
    assert len(kept) == 1
    return kept.iloc[0]


def checkpoint(objective, model, p, seen, found):
    """The model after the rate and the steps of a row, by the library's loop."""
    steps = int(found.step)
    settings = {"learning_rate": found.rate, "every": steps, "training": seen}
    return train(objective, model, SPACE, p, steps, **settings).model


def assert_is(found, model, p, held):
    q = model.probabilities(SPACE)
    assert float(qd.cross_entropy(held, q)) == pytest.approx(found.criterion, rel=1e-3)
    assert float(qd.jensen_shannon_divergence(p, q)) == pytest.approx(
        found.js, rel=1e-2
    )
    assert float(qd.cross_entropy(q, p)) == pytest.approx(found.oracle_nll, rel=1e-3)


@pytest.mark.slow
@pytest.mark.claim("N22.24")
@pytest.mark.claim("N22.25")
def test_rows_are_what_train_gives_at_their_rates_and_steps():
    oracle = 0
    p, seen, held = shares(oracle)
    fresh = qd.LSTMLanguageModel.random(jax.random.key(1000 + oracle), 4, 4, 4, 0.3)
    found = row(oracle, model="MLE")
    start = checkpoint(MaximumLikelihood(), fresh, p, seen, found)
    assert_is(found, start, p, held)
    kind = {"model": "SeqGAN-reinforce", "discriminator": "bigrams"}
    found = row(oracle, **kind, pretrained="yes")
    bigrams = SeqGAN(LogisticDiscriminator(order=2, num_steps=5))
    model = checkpoint(bigrams, start, p, seen, found)
    assert_is(found, model, p, held)
    laws = (x.probabilities(SPACE) for x in (start, model))
    assert float(qd.jensen_shannon_divergence(*laws)) == pytest.approx(
        found.moved, rel=0.02
    )


@pytest.mark.slow
@pytest.mark.claim("N22.26")
def test_a_leakgan_is_what_two_optimisers_give():
    """The generator's rate and the discriminator's, in a loop of Optax's own."""
    oracle = 0
    p, seen, held = shares(oracle)
    fresh = LeakyLSTM.random(jax.random.key(1000 + oracle), 4, "noleak", 4, 0.3)
    start = checkpoint(
        MaximumLikelihood(), fresh, p, seen, row(oracle, model="MLE, noleak")
    )
    found = row(oracle, model="LeakGAN-noleak", pretrained="yes")
    own, learning = optax.adam(-found.rate), optax.adam(-found.second_rate)
    ascent = jax.jit(lambda m: LeakGAN().ascent((), m, SPACE, seen)[0])
    model, states = start, (own.init(start), learning.init(start.discriminator))
    for _ in range(int(found.step)):
        way = ascent(model)
        ahead, first = own.update(way, states[0])
        behind, second = learning.update(way.discriminator, states[1])
        judge = optax.apply_updates(model.discriminator, behind)
        model = replace(optax.apply_updates(model, ahead), discriminator=judge)
        states = first, second
    assert_is(found, model, p, held)


@pytest.mark.claim("N22.27")
@pytest.mark.parametrize("size", [16, 64, 256])
def test_an_assignment_costs_what_the_linear_program_does(tuned, size):
    shares_of = jnp.bincount(jnp.arange(128) ** 2 % 61, length=64) / 128
    table = AtomTable(jax.random.normal(jax.random.key(size), (size, 3, 4)))
    if size < 256:  # the linear program of 256 atoms takes long
        expected = transport_to_texts(table, SPACE, shares_of).value
        found = tuned.distance(table, shares_of)
        assert float(found) == pytest.approx(float(expected), abs=1e-7)
    cost = np.random.default_rng(size).random((size, 64))
    plan = tuned.plans(cost, shares_of)
    np.testing.assert_allclose(plan.sum(axis=1), 1 / size, atol=1e-12)
    np.testing.assert_allclose(plan.sum(axis=0), shares_of, atol=1e-12)


@pytest.mark.claim("N22.27")
@pytest.mark.parametrize("size", [16, 64, 256])
def test_no_law_of_atoms_is_nearer_than_the_best_of_so_many(size):
    """By dynamic programming: the cheapest way to share k atoms, text by text."""
    q = np.arange(size + 1)[None] / size
    kept = ROWS[ROWS.atoms == size]
    assert len(kept)
    for oracle, rows in kept.groupby("oracle"):
        p = np.asarray(qd.oracle(SPACE, oracle))[:, None]
        middle = (p + q) / 2
        cost = (rel_entr(p, middle) + rel_entr(q, middle)) / 2
        best = np.array([0.0, *[np.inf] * size])
        for line in cost:
            best = np.array([min(best[: k + 1] + line[k::-1]) for k in range(size + 1)])
        assert rows.js.min() >= best[size] - 1e-6
        if size > 16:
            lm = row(oracle, model="MLE").js
            networks = rows[rows.model != "Free atoms"]
            assert best[size] < lm < networks.js.min()


def test_frechet_distances_are_those_of_the_library(tuned):
    laws = np.random.default_rng(0).dirichlet(np.full(64, 0.2), 2)
    expected = qd.metrics.frechet_distance(*laws, tuned.FEATURES, squared=True)
    found = tuned.frechet(*map(jnp.asarray, laws))
    assert float(found) == pytest.approx(float(expected), abs=1e-7)


def test_rates_are_those_that_the_random_search_draws(tuned):
    rates = np.concatenate([tuned.drawn_rates(k, 0).ravel() for k in range(40)])
    places = (np.log10(rates) + 5) / 4
    assert places.min() >= 0
    assert places.max() <= 1
    assert abs(places.mean() - 1 / 2) < 0.03
    seen = pd.to_numeric(ROWS[["rate", "second_rate"]].stack()).dropna()
    assert seen.between(1e-5, 0.1).all()
