"""Objectives of autoencoders, against automatic differentiation and a solver."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data.tables import read as table
from jax.flatten_util import ravel_pytree
from lab.generators import (
    AUTOENCODERS,
    Autoencoder,
    Elbo,
    LogitTable,
    MatchedCodes,
    Objective,
    PrefixTable,
    TransportedCodes,
    circle_grid,
    greedy_distribution,
    latent_report,
    normal_grid,
    train,
)
from refusals import refused
from scipy.special import rel_entr
from scipy.stats import wasserstein_distance

import qdtheory as qd

SPACE = qd.TextSpace(2, 3)
P = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(8)))
LINE, CIRCLE = normal_grid(257), circle_grid(64)


def draw(grid, sigma=0.5, seed=0, **settings):
    return Autoencoder.random(jax.random.key(seed), SPACE, grid, sigma, **settings)


def read(model):
    """The mean log-likelihood of texts given their codes, one code at a time."""
    codes = model.text_codes()
    each = (model.log_decoded(SPACE, codes[i : i + 1])[0, i] for i in range(8))
    return P @ jnp.stack([*each])


def collapsed(p):
    """An autoencoder whose decoder ignores the code and gives each text its share."""
    model = draw(LINE, 1.0)
    table = PrefixTable.of(p, SPACE).logits.ravel()
    decoder = replace(
        model.decoder,
        outer=jnp.zeros_like(model.decoder.outer),
        outer_biases=model.decoder.outer_biases.at[: table.size].set(table),
    )
    return replace(model, codes=jnp.zeros((8, 1)), decoder=decoder)


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.mark.claim("N23.1")
def test_the_elbo_is_that_of_the_report():
    model = draw(LINE)
    found = float(Elbo().value(model, SPACE, P))
    report = latent_report(model, SPACE, P)
    assert found == pytest.approx(float(report.elbo), abs=1e-12)
    weighted = float(Elbo(kl_weight=0.3).value(model, SPACE, P))
    expected = float(report.reconstruction - 0.3 * report.kl)
    assert weighted == pytest.approx(expected, abs=1e-12)


@pytest.mark.claim("N23.5")
def test_a_collapsed_vae_reaches_the_bound_of_all():
    model = collapsed(P)
    report = latent_report(model, SPACE, P)
    entropy = float(qd.entropy(P))
    assert float(report.elbo) == pytest.approx(-entropy, abs=1e-12)
    assert float(report.kl) == pytest.approx(0, abs=1e-12)
    slope = flat(Elbo().ascent((), model, SPACE, P)[0])
    assert np.abs(slope).max() <= 1e-12
    for seed in range(5):
        other = latent_report(draw(LINE, seed=seed), SPACE, P)
        assert float(other.elbo) < float(other.log_likelihood) < -entropy + 1e-12


@pytest.mark.claim("N23.6")
def test_greedy_texts_of_a_collapsed_vae_are_one_text():
    rng = np.random.default_rng(6)
    for p in rng.dirichlet(np.ones(8), 5):
        q, uncertain = greedy_distribution(collapsed(p), SPACE)
        assert float(q.max()) == pytest.approx(1, abs=1e-12)
        assert float(uncertain) == 0
        tree, text = p.reshape(2, 2, 2), ()
        for _ in range(3):
            text = (*text, tree[text].reshape(2, -1).sum(axis=1).argmax())
        assert int(q.argmax()) == SPACE.index(np.array(text))
        assert -np.log(p.max()) <= float(qd.entropy(p))


@pytest.mark.claim("N23.6")
def test_a_greedy_text_may_be_less_likely_than_the_average_one():
    # The likelier first token leads to eight equal texts, the other to one.
    p = np.r_[np.full(8, 0.51 / 8), 0.49, np.zeros(7)]
    assert -np.log(p[0]) > float(qd.entropy(p)) >= -np.log(p.max())


@pytest.mark.claim("N23.7")
@pytest.mark.parametrize("grid", [LINE, CIRCLE])
def test_matched_codes_ascend_a_divergence_of_codes(grid):
    model = draw(grid)

    def value(model):
        w = jnp.asarray(grid.weights)
        seen = jnp.exp(model.log_posterior())
        decoded = model.log_decoded(SPACE, jnp.asarray(grid.nodes))
        middle = (P @ seen + w) / 2
        fit = P @ (seen * decoded.T).sum(axis=1)
        return fit - 2 * 7.0 * (middle * jnp.log(middle / w)).sum()

    found = MatchedCodes(7.0).ascent((), model, SPACE, P)[0]
    expected = jax.grad(value)(model)
    np.testing.assert_allclose(flat(found), flat(expected), atol=1e-11)


@pytest.mark.claim("N23.8")
def test_points_are_told_from_a_density_whatever_the_encoder_does():
    for seed in (0, 1):
        js = []
        for sigma in (0.3, 0.03, 0.003, 0.001):
            grid = normal_grid(int(32 / sigma) + 1)
            model = draw(grid, None, seed)
            w = grid.weights
            q = P @ np.exp(np.asarray(model.log_posterior(sigma)))
            kl = [rel_entr(x, (q + w) / 2).sum() for x in (q, w)]
            js.append(sum(kl) / 2)
        assert (np.diff(js) > 0).all()
        assert np.log(2) - 0.05 < js[-1] < np.log(2)
        slope = MatchedCodes(20.0).ascent((), model, SPACE, P)[0]
        assert np.isfinite(flat(slope)).all()


def test_a_plain_autoencoder_ascends_the_likelihood_of_its_codes():
    for model in (draw(CIRCLE, None), draw(LINE, None)):
        found = MatchedCodes(0.0).ascent((), model, SPACE, P)[0]
        expected = jax.jit(jax.grad(read))(model)
        np.testing.assert_allclose(flat(found), flat(expected), atol=1e-12)


@pytest.mark.claim("N23.9")
def test_transported_codes_descend_the_wasserstein_distance():
    model = draw(LINE, None, learned_prior=True)
    start, build = ravel_pytree(model)

    def value(parameters):
        model = build(parameters)
        x, y = (np.ravel(c) for c in (model.text_codes(), model.prior_codes()))
        return float(read(model)) - 2 * wasserstein_distance(x, y, P, LINE.weights)

    step = flat(TransportedCodes(2.0).ascent((), model, SPACE, P)[0])
    way = np.random.default_rng(0).normal(size=start.size)
    ends = [value(start + s * way) for s in (1e-5, -1e-5)]
    assert step @ way == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_setups_have_the_names_of_the_papers_table():
    published = table("published.csv")
    named = {r["row"] for r in published if r["paper"] == "cifka2018"}
    assert set(AUTOENCODERS) - named == {"AAE-gauss"}
    assert named - set(AUTOENCODERS) == {"real data", "LM", "ARAE (default)"}


@pytest.mark.parametrize("name", AUTOENCODERS)
def test_each_setup_trains(name):
    """On two of four texts, which a model then writes more often than at first."""
    space, p = qd.TextSpace(2, 2), np.array([0.1, 0.2, 0.3, 0.4])
    setup = AUTOENCODERS[name]
    model = setup.model(jax.random.key(0), space)
    assert isinstance(setup.objective, Objective)
    settings = {"training": np.r_[0.5, 0.5, 0, 0], "learning_rate": 0.05, "every": 20}
    found = train(setup.objective, model, space, p, 40, **settings)
    before, after = (m.probabilities(space) for m in (model, found.model))
    assert float(after.sum()) == pytest.approx(1, abs=1e-12)
    assert after[:2].sum() > 0.95 > before[:2].sum()
    assert np.isfinite(found.js).all()


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    def trained(objective, *setting, **settings):
        return lambda: train(objective, draw(*setting, **settings), SPACE, P, 1)

    learned = {"learned_prior": True}
    circle = "codes must lie on a line, where transport is sorting; got a circle"
    refused(
        ("keep must lie in (0, 1], got 0", Elbo, 1.0, 0.0),
        ("kl_weight must be finite and at least 0, got -1", Elbo, -1.0),
        ("bag_weight must be finite and at least 0, got inf", Elbo, 1.0, 1.0, np.inf),
        ("weight must be finite and at least 0, got -2", MatchedCodes, -2.0),
        ("weight must be finite and at least 0, got inf", TransportedCodes, np.inf),
        ("a VAE has noisy codes and a fixed prior", trained(Elbo(), LINE, None)),
        ("without a learned one", trained(MatchedCodes(), LINE, **learned)),
        ("an ARAE has a learned prior", trained(TransportedCodes(), LINE, None)),
        (circle, trained(TransportedCodes(), CIRCLE, None, **learned)),
    )
    words, table = "must be an Autoencoder, got LogitTable", LogitTable(np.zeros(8))
    for objective in (Elbo(), MatchedCodes(), TransportedCodes()):
        refused((words, train, objective, table, SPACE, P, 1), error=TypeError)
