"""Autoencoders: against sampling, a decoder in NumPy, quadrature, derivatives, NLTK."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from lab import corpora
from lab import generators as gen
from lab.generators import Elbo, circle_grid, latent_report, normal_grid, refined, train
from lab.generators.autoencoders import masked_prefixes
from numpy.testing import assert_allclose
from refusals import refused
from scipy.integrate import quad
from scipy.special import rel_entr
from scipy.stats import norm, vonmises, wasserstein_distance

import qdtheory as qd

approx = pytest.approx

SPACE, SHORT, LONG = (qd.TextSpace(2, length) for length in (3, 2, 4))
P, P4 = np.random.default_rng(0).dirichlet(np.ones(8)), np.array([0.1, 0.2, 0.3, 0.4])
P16 = np.random.default_rng(0).dirichlet(np.ones(16))
TEXTS = SPACE.tokens.tolist()
LINE, CIRCLE = normal_grid(257), circle_grid(64)


def draw(grid, sigma=0.5, seed=0, space=SPACE, **settings):
    return gen.Autoencoder.random(jax.random.key(seed), space, grid, sigma, **settings)


def short(grid, sigma=0.5, seed=0, **settings):
    return draw(grid, sigma, seed, SHORT, **settings)


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0])


def ascent(objective, model):
    """The direction at a model."""
    one = jax.jit(lambda m: objective.ascent((), m, SPACE, jnp.asarray(P))[0])
    return flat(one(model))


def next_token(model, codes):
    """Distributions of the next token by prefix, seen or masked, computed apart."""
    inner, shifts, outer, biases = map(np.asarray, jax.tree.leaves(model.decoder))
    hidden = np.tanh(codes @ inner + shifts)
    weights = np.exp(np.hstack([codes, hidden]) @ outer + biases)
    rows = weights.reshape(len(codes), -1, 2)
    rows = rows / rows.sum(axis=-1, keepdims=True)
    seen = masked_prefixes(SPACE)
    return {prefix: rows[:, i] for i, prefix in enumerate(seen)}, rows[:, -1]


@pytest.mark.claim("N23.22")
@pytest.mark.parametrize("learned", [False, True])
def test_a_text_has_its_mean_probability_over_many_codes(learned):
    model = draw(normal_grid(129) if learned else CIRCLE, learned_prior=learned)
    shares = (np.arange(20_000) + 0.5) / 20_000
    codes = np.stack([f(2 * np.pi * shares) for f in (np.cos, np.sin)], axis=1)
    if learned:
        codes = np.asarray(model.generator(jnp.asarray(norm.ppf(shares)[:, None])))
    rows, _ = next_token(model, codes)
    each = [[rows[(*x[:t],)][:, x[t]] for t in range(3)] for x in TEXTS]
    q = np.asarray(model.probabilities(SPACE))
    assert q.sum() == approx(1, abs=1e-12)
    error = 1e-4 if learned else 1e-12
    assert_allclose(np.prod(each, axis=1).mean(axis=1), q, atol=error)


@pytest.mark.claim("N23.3")
@pytest.mark.parametrize("keep", [1.0, 0.2])
def test_word_dropout_is_the_mean_over_all_masks(keep):
    model, codes = draw(normal_grid(9)), np.array([[-1.0], [0.4]])
    (rows, bag), expected = next_token(model, codes), np.zeros((2, 8))
    for seen in product((True, False), repeat=3):
        chance = np.prod([keep if see else 1 - keep for see in seen])
        for i, text in enumerate(TEXTS):
            shown = tuple(a if see else -1 for a, see in zip(text, seen))
            logs = [np.log(rows[shown[:t]][:, text[t]]) for t in range(3)]
            expected[:, i] += chance * np.sum(logs, axis=0)
    codes, words = jnp.asarray(codes), np.log(bag)[:, np.array(TEXTS)].sum(axis=2)
    assert_allclose(model.log_decoded(SPACE, codes, keep), expected, rtol=1e-12)
    assert_allclose(model.log_bag(SPACE, codes), words, rtol=1e-12)


def test_noise_on_the_circle_is_kept_and_elsewhere_learned():
    for grid, moves in ((CIRCLE, False), (normal_grid(65), True)):
        start = draw(grid)
        end = train(Elbo(), start, SPACE, P, 2).model
        assert (np.abs(end.log_sigma - start.log_sigma).max() > 0) == moves
        assert np.abs(end.codes - start.codes).max() > 0


# --- Grids ----------------------------------------------------------------------------


@pytest.mark.claim("N23.2")
def test_posteriors_and_the_prior_integrate_as_scipy():
    grid, sigma = gen.gauss_hermite_grid(41), 0.9
    for code in (-1.2, 0.3):
        expected = norm(code, sigma).expect(np.sin, lb=-9, ub=9, epsabs=1e-13)
        q = np.exp(gen.log_posterior(grid, np.array([[code]]), np.array([[sigma]])))[0]
        assert q @ np.sin(grid.nodes[:, 0]) == approx(expected, abs=1e-8)
        found = grid.weights @ np.sin(grid.nodes[:, 0] - code)
        assert found == approx(-np.exp(-0.5) * np.sin(code), abs=1e-9)


@pytest.mark.claim("N23.2")
def test_noise_on_the_circle_is_von_mises():
    grid, code = circle_grid(256), np.array([[3.0, 4.0]])
    angles = np.arctan2(grid.nodes[:, 1], grid.nodes[:, 0])
    for sigma in (0.1, 0.5, 2.0):
        q = np.exp(gen.log_posterior(grid, code, np.array([[sigma]])))[0]
        expected = vonmises.pdf(angles, 1 / sigma**2, loc=np.arctan2(4, 3))
        assert_allclose(q, 2 * np.pi / 256 * expected, atol=1e-12)


# --- What the codes hold --------------------------------------------------------------


def assert_add_up(report):
    """The bound and the gap to the likelihood, and the parts to the KL term."""
    parts = report.mutual_information + report.marginal_kl
    assert_allclose(report.elbo + report.gap, report.log_likelihood, atol=1e-10)
    assert_allclose(parts, report.kl, atol=1e-10)
    assert min(report.gap, report.mutual_information, report.marginal_kl) >= 0


@pytest.mark.claim("N23.1", "N23.2")
def test_parts_are_integrals_over_the_line():
    model = short(normal_grid(129), 0.7)
    found, codes = latent_report(model, SHORT, P4), np.asarray(model.codes)[:, 0]
    laws = [norm(code, 0.7) for code in codes]
    one = jax.jit(lambda z: model.log_decoded(SHORT, z)[0])

    def mean(law, f):
        return quad(lambda z: law.pdf(z) * f(z), -9, 9, epsabs=1e-11, limit=200)[0]

    def information(law):
        def gain(z):
            return law.logpdf(z) - np.log(sum(p * x.pdf(z) for p, x in zip(P4, laws)))

        return mean(law, gain)

    decoded = [lambda z, i=i: float(one(np.array([[z]]))[i]) for i in range(4)]
    q = [mean(norm, lambda z, f=f: np.exp(f(z))) for f in decoded]
    assert_allclose(model.probabilities(SHORT), q, atol=1e-9)
    assert_add_up(found)
    expected = {
        "reconstruction": P4 @ [*map(mean, laws, decoded)],
        "log_likelihood": P4 @ np.log(q),
        # The divergence of Gaussians in closed form.
        "kl": P4 @ ((0.49 + codes**2 - 1) / 2 - np.log(0.7)),
        "mutual_information": P4 @ [*map(information, laws)],
    }
    for name, value in expected.items():
        assert float(getattr(found, name)) == approx(value, abs=1e-8)


@pytest.mark.claim("N23.1", "N23.11")
@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_noise_on_the_circle_limits_what_a_code_tells(sigma):
    capacity = np.log(2 * np.pi) - vonmises(1 / sigma**2).entropy()
    entropy, model = float(qd.entropy(P4)), short(circle_grid(256), sigma)
    evenly = replace(model, codes=np.stack([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))
    for found in (latent_report(x, SHORT, P4) for x in (model, evenly)):
        assert_add_up(found)
        information = float(found.mutual_information)
        assert information <= min(capacity, entropy) + 1e-9
        assert -float(found.reconstruction) >= entropy - information - 1e-9


# --- Objectives -----------------------------------------------------------------------


@pytest.mark.claim("N23.1")
def test_the_elbo_is_that_of_the_report():
    model = draw(LINE)
    report, codes = latent_report(model, SPACE, P), model.prior_codes()
    for kl_weight, keep, bag in ((1.0, 1.0, 0.0), (0.3, 0.5, 2.0)):
        decoded = model.log_decoded(SPACE, codes, keep)
        decoded = decoded + bag * model.log_bag(SPACE, codes)
        gain = P @ (np.exp(model.log_posterior()) * decoded.T).sum(axis=1)
        found = float(Elbo(kl_weight, keep, bag).value(model, SPACE, P))
        assert found == approx(float(gain - kl_weight * report.kl), abs=1e-12)


def collapsed(p):
    """An autoencoder whose decoder ignores the code and gives each text its share."""
    model, rows = draw(LINE, 1.0), gen.PrefixTable.of(p, SPACE).logits.ravel()
    biases = model.decoder.outer_biases.at[: rows.size].set(rows)
    constant = {"outer": 0 * model.decoder.outer, "outer_biases": biases}
    decoder = replace(model.decoder, **constant)
    return replace(model, codes=jnp.zeros((8, 1)), decoder=decoder)


@pytest.mark.claim("N23.5")
def test_a_collapsed_vae_reaches_the_bound_of_all():
    model, entropy = collapsed(P), float(qd.entropy(P))
    report = latent_report(model, SPACE, P)
    found = float(report.elbo), float(report.kl)
    assert found == approx((-entropy, 0), abs=1e-12)
    assert np.abs(ascent(Elbo(), model)).max() <= 1e-12
    for seed in (0, 1):
        other = latent_report(draw(LINE, seed=seed), SPACE, P)
        assert float(other.elbo) < float(other.log_likelihood) < -entropy + 1e-12


@pytest.mark.claim("N23.6")
def test_greedy_texts_of_a_collapsed_vae_are_one_text():
    for p in np.random.default_rng(6).dirichlet(np.ones(8), 3):
        q, uncertain = gen.greedy_distribution(collapsed(p), SPACE)
        assert (float(q.max()), float(uncertain)) == (approx(1, abs=1e-12), 0)
        tree, text = p.reshape(2, 2, 2), ()
        for _ in range(3):
            text = (*text, tree[text].reshape(2, -1).sum(axis=1).argmax())
        assert int(q.argmax()) == SPACE.index(np.array(text))
    # It may be less likely than the average one: the likelier first token leads to
    # eight equal texts, the other to one.
    p = np.r_[np.full(8, 0.51 / 8), 0.49, np.zeros(7)]
    assert -np.log(p[0]) > float(qd.entropy(p)) >= -np.log(p.max())


def read(model):
    """The mean log-likelihood of texts given their codes, one code at a time."""
    codes = model.text_codes()
    each = (model.log_decoded(SPACE, codes[i : i + 1])[0, i] for i in range(8))
    return P @ jnp.stack([*each])


@pytest.mark.claim("N23.7")
@pytest.mark.parametrize("grid", [LINE, CIRCLE])
def test_matched_codes_ascend_a_divergence_of_codes(grid):
    def value(model):
        w, seen = jnp.asarray(grid.weights), jnp.exp(model.log_posterior())
        decoded, both = model.log_decoded(SPACE, jnp.asarray(grid.nodes)), P @ seen + w
        fit = P @ (seen * decoded.T).sum(axis=1)
        return fit - 7.0 * (both * jnp.log(both / 2 / w)).sum()

    # Without noise and weight an autoencoder ascends the likelihood of its codes.
    for weight, sigma, ascended in ((7.0, 0.5, value), (0.0, None, read)):
        model = draw(grid, sigma)
        expected = flat(jax.jit(jax.grad(ascended))(model))
        assert_allclose(ascent(gen.MatchedCodes(weight), model), expected, atol=1e-11)


@pytest.mark.claim("N23.8")
def test_points_are_told_from_a_density_whatever_the_encoder_does():
    js = []
    for sigma in (0.3, 0.03, 0.003, 0.001):
        model = draw(normal_grid(int(32 / sigma) + 1), None)
        w, q = model.grid.weights, P @ np.exp(np.asarray(model.log_posterior(sigma)))
        js.append(sum(rel_entr(x, (q + w) / 2).sum() for x in (q, w)) / 2)
    assert (np.diff(js) > 0).all()
    assert np.log(2) - 0.05 < js[-1] < np.log(2)


@pytest.mark.claim("N23.9")
def test_transported_codes_descend_the_wasserstein_distance():
    model = draw(LINE, None, learned_prior=True)
    start, build = ravel_pytree(model)

    def value(parameters):
        model = build(parameters)
        x, y = (np.ravel(c) for c in (model.text_codes(), model.prior_codes()))
        return float(read(model)) - 2 * wasserstein_distance(x, y, P, LINE.weights)

    step = ascent(gen.TransportedCodes(2.0), model)
    way = np.random.default_rng(0).normal(size=start.size)
    ends = [value(start + s * way) for s in (1e-5, -1e-5)]
    assert step @ way == approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


@pytest.mark.claim("N23.9")
@pytest.mark.parametrize(("m", "n"), [(1, 4), (6, 9)])
def test_sorted_plans_are_optimal(m, n):
    rng = np.random.default_rng(m)
    (x, a), (y, b) = ((rng.normal(size=k), rng.dirichlet(np.ones(k))) for k in (m, n))
    plan = np.asarray(gen.sorted_plan(x, a, y, b))
    assert_allclose(plan.sum(axis=1), a, atol=1e-14)
    assert_allclose(plan.sum(axis=0), b, atol=1e-14)
    found = (plan * np.abs(x[:, None] - y)).sum()
    assert found == approx(wasserstein_distance(x, y, a, b), abs=1e-12)
    ties = gen.sorted_plan(jnp.zeros(m), a, jnp.zeros(n), b)  # move nothing twice
    assert float(ties.sum()) == approx(1)


@pytest.mark.parametrize("name", gen.AUTOENCODERS)
def test_each_setup_trains(name):
    """On two of four texts, which a model then writes more often than at first."""
    setup, seen = gen.AUTOENCODERS[name], np.r_[0.5, 0.5, 0, 0]
    model, rates = setup.model(jax.random.key(0), SHORT), {"learning_rate": 0.05}
    found = train(setup.objective, model, SHORT, P4, 40, training=seen, **rates)
    before, after = (m.probabilities(SHORT) for m in (model, found.model))
    assert float(after.sum()) == approx(1, abs=1e-12)
    assert after[:2].sum() > 0.95 > before[:2].sum()


# --- Reconstruction -------------------------------------------------------------------

MODEL = draw(CIRCLE, None, 2, LONG)


def greedy_by_hand(model, code):
    text = []
    logits = np.asarray(model.next_token_logits(LONG, jnp.asarray(code)[None])[0])
    for t in range(4):
        row = 2**t - 1 + sum(a * 2 ** (t - 1 - i) for i, a in enumerate(text))
        text.append(int(logits[row].argmax()))
    return text


@pytest.mark.claim("N23.26")
def test_paired_scores_are_those_of_the_texts_decoded():
    found = gen.reconstruct(MODEL, LONG, P16, max_order=4)
    codes, texts = MODEL.text_codes(), LONG.tokens.tolist()
    likely = np.exp(np.asarray(MODEL.log_decoded(LONG, codes)))
    decoded = [greedy_by_hand(MODEL, z) for z in np.asarray(codes)]
    bleu = P16 @ corpora.paired_bleu_scores(decoded, texts, 4, None)
    assert_allclose(found.bleu, bleu, atol=1e-12)
    recall = P16 @ corpora.rouge_scores(decoded, texts, 4).recall
    assert_allclose(found.rouge, recall, atol=1e-12)
    of_whole_texts = found.accuracy, found.bleu[3], found.rouge[3]
    same = [text == other for text, other in zip(texts, decoded)]
    assert_allclose(of_whole_texts, P16 @ same, atol=1e-12)
    assert float(found.nll) == approx(-P16 @ np.log(np.diagonal(likely)))


@pytest.mark.parametrize("grid", [normal_grid(129), circle_grid(128)])
def test_the_greedy_law_converges_within_its_bound(grid):
    model = draw(grid, None, 5, LONG)
    coarse, bound = gen.greedy_distribution(model, LONG)
    for _ in range(5):
        model = refined(model)
    fine, less = gen.greedy_distribution(model, LONG)
    assert float(coarse.sum()) == approx(1, abs=1e-12)
    assert float(jnp.abs(fine - coarse).sum() / 2) <= float(bound + less)
    assert float(less) < 0.1 * float(bound)


@pytest.mark.claim("N23.2")
def test_bad_input(as_a_user):
    def report(model, **change):
        return lambda: latent_report(replace(model, **change), SHORT, P4)

    def trained(objective, *setting, **settings):
        return lambda: train(objective, draw(*setting, **settings), SPACE, P, 1)

    grid, coarse = normal_grid(9), short(normal_grid(33), 0.1)
    lost = replace(coarse.decoder, outer_biases=np.full(10, np.nan))
    learned, moved = {"learned_prior": True}, gen.TransportedCodes()
    refused(
        ("holds NaN: its training diverged", report(coarse, decoder=lost)),
        ("codes without noise are", draw(grid, None).log_posterior),
        ("weight must be finite and at least 0,", Elbo, -1.0),
        ("underflow beyond 350 nodes, got 400", gen.gauss_hermite_grid, 400),
        ("to enumerate: its table of prefix", draw, grid, 0.5, 0, qd.TextSpace(2, 22)),
        ("has 8 codes and 28 outputs, the sp", draw(grid).probabilities, SHORT),
        ("the grid is too coarse: the marginal kl changes by", report(coarse)),
        ("prior of an ARAE is learned", report(short(grid, learned_prior=True))),
        ("keep must lie in (0, 1], got 0", Elbo, 1.0, 0.0),
        ("a VAE has noisy codes and a fixed prior", trained(Elbo(), LINE, None)),
        ("without a learned one", trained(gen.MatchedCodes(), LINE, **learned)),
        ("an ARAE has a learned prior", trained(moved, LINE, None)),
        ("where transport is sorting", trained(moved, CIRCLE, None, **learned)),
    )
    words, other = "must be an Autoencoder, got LogitTable", gen.LogitTable(np.zeros(8))
    refused((words, train, Elbo(), other, SPACE, P, 1), error=TypeError)
