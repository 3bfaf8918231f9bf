"""Transport, WGAN and continuous generators: by duality, trees, loops, enumeration."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import generators as gen
from lab.generators import WGAN, LogitTable, optimal_transport, wasserstein_distance
from numpy.testing import assert_allclose
from refusals import refused
from scipy.optimize import linprog, minimize_scalar
from scipy.stats import norm

import qdtheory as qd

approx = pytest.approx

SPACE, PAIRS, MIXED = qd.TextSpace(3, 2), qd.TextSpace(2, 2), qd.TextSpace(2, (1, 2, 3))
GROUNDS = "hamming", "prefix"


def distances(space, ground):
    """The distance of every two texts, from its definition."""
    tokens = space.tokens
    differ = tokens[:, None] != tokens
    if ground == "prefix":
        differ = np.logical_or.accumulate(differ, axis=-1)
    return differ.sum(axis=-1).astype(float)


def draws(space, number, seed=0):
    rng, weights = np.random.default_rng(seed), np.full(space.num_texts, 0.3)
    return rng.dirichlet(weights, (number, 2))


@pytest.mark.parametrize(
    ("space", "ground"),
    [(x, "hamming") for x in (SPACE, qd.TextSpace(2, 4), qd.TextSpace(1, 3))]
    + [(x, "prefix") for x in (SPACE, MIXED, qd.TextSpace(1, 3))],
)
def test_w1_is_the_transport_between_all_pairs_of_texts(space, ground):
    cost, ends = distances(space, ground), np.eye(space.num_texts)[[0, -1]]
    for q, p in (*draws(space, 5), ends):
        coupled = optimal_transport(cost, q, p)
        found = float(wasserstein_distance(q, p, space, ground))
        assert found == approx(float(coupled.value), abs=1e-8)
        critic = np.asarray(gen.wasserstein_critic(q, p, space, ground))
        assert (critic[:, None] - critic <= cost + 1e-12).all()
        assert critic @ (p - q) == approx(found, abs=1e-12)


@pytest.mark.parametrize(("sources", "targets"), [(1, 4), (4, 1), (7, 9)])
def test_the_plan_is_feasible_and_the_potentials_support_it(sources, targets):
    rng = np.random.default_rng(1)
    cost = rng.normal(size=(sources, targets))
    a, b = (rng.dirichlet(np.full(n, 0.4)) for n in (sources, targets))
    found = optimal_transport(cost, a, b)
    u, v = found.source_potential, found.target_potential
    assert float(jnp.min(found.plan)) >= 0
    assert_allclose(found.plan.sum(axis=1), a, atol=1e-14)
    assert_allclose(found.plan.sum(axis=0), b, atol=1e-14)
    assert (u[:, None] + v <= cost + 1e-14).all()
    value = float(found.value)
    assert value == approx(float((found.plan * cost).sum()), abs=1e-14)
    assert value == approx(float(a @ u + b @ v), abs=1e-8)


def test_derivatives_are_the_plan_and_the_potentials():
    rng = np.random.default_rng(4)
    cost, mass = rng.random((4, 5)), rng.normal(size=(2, 4))
    b = rng.dirichlet(np.ones(5))

    @jax.jit
    def value(cost, logits):
        return optimal_transport(cost, jax.nn.softmax(logits), b).value

    slopes = jax.grad(value, argnums=(0, 1))(cost, mass[0])
    ways = rng.normal(size=(4, 5)), rng.normal(size=4)
    for slope, step in zip(slopes, ((ways[0], 0), (0, ways[1]))):
        ends = [value(cost + s * step[0], mass[0] + s * step[1]) for s in (1e-6, -1e-6)]
        found = float((slope * (step[0] + step[1])).sum())
        assert found == approx(float(ends[0] - ends[1]) / 2e-6, rel=1e-6)
    together = jax.vmap(value, (None, 0))(cost, mass)
    apart = [value(cost, logits) for logits in mass]
    assert_allclose(together, apart, rtol=1e-12)


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_critic_is_minus_the_derivative_of_w1_by_the_model(ground):
    (q, p), (other, _) = draws(SPACE, 2, seed=5)
    q, other = 0.02 + 0.82 * q, 0.02 + 0.82 * other
    slope = jax.grad(wasserstein_distance)(jnp.asarray(q), p, SPACE, ground)
    assert_allclose(slope, -gen.wasserstein_critic(q, p, SPACE, ground), atol=1e-12)
    moved = q + 1e-6 * (other - q), q - 1e-6 * (other - q)
    up, down = (wasserstein_distance(x, p, SPACE, ground) for x in moved)
    assert float(slope @ (other - q)) == approx(float(up - down) / 2e-6, abs=1e-5)


@pytest.mark.parametrize(("q", "p"), draws(PAIRS, 3, seed=6))
def test_the_penalised_critic_maximises_along_paths_of_the_tree(q, p):
    """The value of each edge, found by search: |s| P(edge) less the penalty on it."""
    penalty, edges, crossings = 0.7, [], 0.0
    # Mass on the edges of the tree of two tokens, those of the first first.
    masses = [np.append(x.reshape(2, 2).sum(axis=1), x) for x in (q, p)]
    for of_q, of_p in np.transpose(masses):
        # Mean length of the paths between a text of P and one of Q on this edge.
        length = (of_p * (1 - of_q) + of_q * (1 - of_p)) / 2
        crossings += length

        def loss(s, gain=(of_p - of_q) / 2, length=length):
            return -s * gain + penalty * length * (abs(s) - 1) ** 2

        sign = 1 if of_p > of_q else -1
        edges.append(minimize_scalar(loss, (0.5 * sign, 2 * sign), tol=1e-12).x / 2)
    assert crossings == approx(p @ distances(PAIRS, "prefix") @ q, abs=1e-14)
    expected = [edges[a] + edges[2 + 2 * a + b] for a in (0, 1) for b in (0, 1)]
    critic = partial(gen.wasserstein_critic, q, p, PAIRS, "prefix")
    assert_allclose(critic(penalty), expected, atol=1e-6)
    given = (), LogitTable.of(q), jnp.asarray(q), PAIRS, jnp.asarray(p)
    rewards, _ = WGAN("prefix", penalty).rewards(*given)
    assert_allclose(rewards, expected, atol=1e-6)
    assert_allclose(critic(1e9), critic(), atol=1e-8)


def test_a_solution_that_is_not_optimal_is_refused(monkeypatch):
    q, p = draws(SPACE, 1, seed=9)[0]

    def spoilt(*args, **settings):
        found = linprog(*args, **settings)
        found.x = found.x + 1e-6
        return found

    monkeypatch.setattr("scipy.optimize.linprog", spoilt)
    with pytest.raises(RuntimeError, match=r"bounds must meet within 1e-08 of 2"):
        wasserstein_distance(q, p, SPACE)
    with pytest.raises(RuntimeError, match="the linear program was not solved"):
        optimal_transport(distances(SPACE, "hamming"), q, p)
    # In a compiled run too, with one line.
    with pytest.raises(RuntimeError, match=r"^the linear program .* cost$"):
        gen.train(WGAN(), LogitTable.of(q), SPACE, p, 3)


@pytest.mark.parametrize("objective", [WGAN(), WGAN("prefix")], ids=str)
def test_a_critic_of_a_model_that_diverged_is_nan_and_training_says_so(objective):
    _, p = draws(SPACE, 1, seed=9)[0]

    @jax.jit
    def critic(q):
        return objective.rewards((), LogitTable(q), q, SPACE, jnp.asarray(p))[0]

    assert np.isnan(critic(jnp.full(9, jnp.nan))).all()
    model = LogitTable(np.r_[np.nan, np.zeros(8)])
    with pytest.raises(FloatingPointError, match="not finite before the first step"):
        gen.train(objective, model, SPACE, p, 3)


@pytest.mark.claim("N22.11")
@pytest.mark.parametrize("ground", GROUNDS)
def test_w1_bends_in_q_where_p_says(ground):
    """A sum of a quality and a diversity would bend at Q alike for every P."""
    rng, way = np.random.default_rng(11), np.zeros(9)
    cost, (q, far) = distances(SPACE, ground), rng.dirichlet(np.full(9, 5), 2)
    way[[0, 8]] = 1e-3, -1e-3

    def bend(p):
        at = q + way, q - way, q
        up, down, here = (float(optimal_transport(cost, x, p).value) for x in at)
        return up + down - 2 * here

    assert bend(q) == approx(2e-3 * cost[0, 8], abs=1e-9)
    assert bend(0.5 * q + 0.5 * np.eye(9)[0]) == approx(0, abs=1e-9)
    assert bend(far) < 1e-3 * cost[0, 8]


# --- Continuous generators ------------------------------------------------------------

TRIPLES, KEY = qd.TextSpace(3, 3), jax.random.key(1)
P = np.asarray(qd.oracle(TRIPLES, 0))
MODELS = {
    "table": gen.AtomTable(jax.random.normal(KEY, (5, 3, 3))),
    "deconv": gen.ConvDeconv.random(KEY, TRIPLES, num_atoms=5, units=8),
    "lstm": gen.ConvLSTM.random(KEY, TRIPLES, num_atoms=5, size=8),
}
# Medians of five equal shares of a normal distribution.
QUANTILES = norm.ppf((np.arange(5) + 0.5) / 5)


@pytest.mark.claim("N22.12")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_both_laws_are_those_of_the_atoms(model):
    atoms, hard, soft = np.asarray(model.atoms(TRIPLES)), np.zeros(27), np.zeros(27)
    assert_allclose(atoms.sum(axis=-1), 1, atol=1e-14)
    for rows in atoms:
        hard[TRIPLES.index(rows.argmax(axis=1))] += 1 / 5
        for i, text in enumerate(TRIPLES.tokens):
            soft[i] += np.prod([row[token] for row, token in zip(rows, text)]) / 5
    assert_allclose(model.probabilities(TRIPLES), hard, atol=1e-14)
    assert_allclose(model.soft_probabilities(TRIPLES), soft, atol=1e-14)
    assert np.isinf(qd.cross_entropy(P, hard)) > (soft.min() <= 0)
    assert float(qd.entropy(hard)) <= np.log(5) + 1e-12


def test_a_deconvolution_spreads_the_units_of_a_position():
    model = MODELS["deconv"]
    for z, found in zip(QUANTILES, np.asarray(model.atoms(TRIPLES))):
        logits = np.tile(model.biases, (3, 1))
        for place in range(2):
            units = z * model.latent_weights[0, place] + model.latent_biases[place]
            for shift in range(2):
                logits[place + shift] += np.maximum(units, 0) @ model.kernel[shift]
        expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        assert_allclose(found, expected, atol=1e-12)


def test_the_lstm_reads_its_own_softmax():
    model, lstm = MODELS["lstm"], MODELS["lstm"].lstm
    latent = np.asarray(model.latent_weights[0]), np.asarray(model.latent_biases)
    for z, found in zip(QUANTILES, np.asarray(model.atoms(TRIPLES))):
        h, c = np.tanh(z * latent[0] + latent[1]), np.zeros(8)
        for row in found:
            weights = np.exp(h @ lstm.output_weights + lstm.output_biases)
            assert_allclose(row, weights / weights.sum(), atol=1e-12)
            gates = row @ lstm.embeddings @ lstm.input_weights + lstm.gate_biases
            i, f, o, cell = np.split(gates + h @ lstm.recurrent_weights, 4)
            c = c / (1 + np.exp(-f)) + np.tanh(cell) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))


def test_the_direction_is_the_sum_over_the_plan():
    model, texts = MODELS["table"], np.eye(3)[TRIPLES.tokens]
    objective, p = gen.ContinuousWGAN(), jnp.asarray(P)
    ascent = jax.jit(lambda m: objective.ascent((), m, TRIPLES, p)[0].logits)
    plan = np.asarray(gen.transport_to_texts(model, TRIPLES, P).plan)
    for atom, shares, found in zip(model.atoms(TRIPLES), plan, ascent(model)):
        away = np.asarray(atom) - texts
        slope = np.tensordot(shares / np.sqrt((away**2).sum(axis=(1, 2))), away, 1)
        # Through the softmax: each row's slope less its mean under the row.
        mean = (atom * slope).sum(axis=1, keepdims=True)
        assert_allclose(found, -atom * (slope - mean), atol=1e-12)
    text = gen.AtomTable(np.where(np.arange(3) == 0, 0, -1000.0) * np.ones((1, 3, 1)))
    assert np.isfinite(ascent(text)).all()


@pytest.mark.claim("N22.12")
def test_a_soft_atom_lies_between_texts_and_argmax_is_farther():
    """Three texts that differ in one place: their median is none of them."""
    space, p, corner = qd.TextSpace(3, 1), np.full(3, 1 / 3), np.array([[[50.0, 0, 0]]])
    atoms = map(gen.AtomTable, (np.zeros((1, 1, 3)), corner))
    soft, hard = (float(gen.transport_to_texts(x, space, p).value) for x in atoms)
    assert soft == approx(np.sqrt(2 / 3), abs=1e-12)
    assert hard == approx(2 / 3 * np.sqrt(2), abs=1e-9)


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    q, short, mixed = np.full(9, 1 / 9), np.full(8, 1 / 8), np.full(14, 1 / 14)
    w1, critic, ones = wasserstein_distance, gen.wasserstein_critic, np.ones((9, 9))
    one = "Hamming's distance is for texts of one length, got lengths (1, 2, 3); take "
    table, single = MODELS["table"], "continuous generator is for texts of one length"
    refused(
        ("must be one of hamming, prefix, got 'edit'", w1, q, q, SPACE, "edit"),
        ("q must have 9 entries, got 8", w1, short, q, SPACE),
        (one + 'ground="prefix"', w1, mixed, mixed, MIXED),
        ("solved on the prefix tree only", critic, q, q, SPACE, "hamming", 10),
        ("must be positive and finite, got 0", critic, q, q, SPACE, "prefix", 0),
        ("got shape (9, 8)", optimal_transport, np.ones((9, 8)), q, q),
        ("cost must be finite", optimal_transport, ones * np.inf, q, q),
        ("a must sum to 1", optimal_transport, ones, 2 * q, q),
        ("shape (3, 3), the space texts of 2", table.probabilities, SPACE),
        (single, gen.ConvDeconv.random, KEY, MIXED),
        ("num_atoms must be at least 1, got 0", gen.ConvLSTM.random, KEY, TRIPLES, 0),
        (
            "p must have 27 entries, got 8",
            gen.transport_to_texts,
            table,
            TRIPLES,
            P[:8],
        ),
    )
    words = "has atoms(space), such as AtomTable"
    other = LogitTable(np.zeros(27)), TRIPLES, P, 1
    refused((words, gen.train, gen.ContinuousWGAN(), *other), error=TypeError)
