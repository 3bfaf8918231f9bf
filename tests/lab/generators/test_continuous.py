"""Continuous generators, against loops, samples and K-medians by enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.generators import (
    AtomTable,
    ContinuousWGAN,
    ConvDeconv,
    ConvLSTM,
    LogitTable,
    optimal_transport,
    train,
    transport_to_texts,
)
from refusals import refused
from scipy.optimize import minimize
from scipy.stats import norm

import qdtheory as qd

SPACE = qd.TextSpace(3, 3)
P = np.asarray(qd.oracle(SPACE, 0))
KEY = jax.random.key(1)
MODELS = {
    "table": AtomTable(jax.random.normal(KEY, (5, 3, 3))),
    "deconv": ConvDeconv.random(KEY, SPACE, num_atoms=5, units=8),
    "lstm": ConvLSTM.random(KEY, SPACE, num_atoms=5, size=8),
}
# Medians of five equal shares of a normal distribution.
QUANTILES = norm.ppf((np.arange(5) + 0.5) / 5)
EACH = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@EACH
def test_both_laws_are_those_of_the_atoms(model):
    atoms = np.asarray(model.atoms(SPACE))
    np.testing.assert_allclose(atoms.sum(axis=-1), 1, atol=1e-14)
    hard, soft = np.zeros(27), np.zeros(27)
    for rows in atoms:
        hard[SPACE.index(rows.argmax(axis=1))] += 1 / 5
        for i, text in enumerate(SPACE.tokens):
            soft[i] += np.prod([row[token] for row, token in zip(rows, text)]) / 5
    np.testing.assert_allclose(model.probabilities(SPACE), hard, atol=1e-14)
    np.testing.assert_allclose(model.soft_probabilities(SPACE), soft, atol=1e-14)
    assert soft.sum() == pytest.approx(1, abs=1e-12)
    assert float(qd.entropy(hard)) <= np.log(5) + 1e-12


def test_a_deconvolution_spreads_the_units_of_a_position():
    model = MODELS["deconv"]
    for z, found in zip(QUANTILES, np.asarray(model.atoms(SPACE))):
        logits = np.tile(model.biases, (3, 1))
        for place in range(2):
            units = z * model.latent_weights[0, place] + model.latent_biases[place]
            for shift in range(2):
                logits[place + shift] += np.maximum(units, 0) @ model.kernel[shift]
        weights = np.exp(logits - logits.max())
        expected = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_lstm_reads_its_own_softmax():
    model = MODELS["lstm"]
    lstm = model.lstm
    latent = np.asarray(model.latent_weights[0]), np.asarray(model.latent_biases)
    for z, found in zip(QUANTILES, np.asarray(model.atoms(SPACE))):
        h, c = np.tanh(z * latent[0] + latent[1]), np.zeros(8)
        for row in found:
            weights = np.exp(h @ lstm.output_weights + lstm.output_biases)
            np.testing.assert_allclose(row, weights / weights.sum(), atol=1e-12)
            gates = row @ lstm.embeddings @ lstm.input_weights + lstm.gate_biases
            i, f, o, cell = np.split(gates + h @ lstm.recurrent_weights, 4)
            c = c / (1 + np.exp(-f)) + np.tanh(cell) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))


def test_the_direction_is_the_sum_over_the_plan():
    model = MODELS["table"]
    direction, _ = ContinuousWGAN().ascent((), model, SPACE, jnp.asarray(P))
    plan = np.asarray(transport_to_texts(model, SPACE, P).plan)
    texts = np.eye(3)[SPACE.tokens]
    for atom, shares, found in zip(model.atoms(SPACE), plan, direction.logits):
        away = np.asarray(atom) - texts
        lengths = np.sqrt((away**2).sum(axis=(1, 2)))
        slope = np.tensordot(shares / lengths, away, 1)
        # Through the softmax: each row's slope less its mean under the row.
        mean = (atom * slope).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, -atom * (slope - mean), atol=1e-12)


def test_an_atom_that_is_a_text_has_a_direction():
    model = AtomTable(np.where(np.arange(3) == 0, 0, -1000.0) * np.ones((1, 3, 1)))
    direction, _ = ContinuousWGAN().ascent((), model, SPACE, jnp.asarray(P))
    assert np.isfinite(direction.logits).all()


def geometric_median(points, weights):
    """The least weighted sum of distances: at a point, or where its slope is 0."""

    def loss(x):
        return weights @ np.sqrt(((points - x) ** 2).sum(axis=1) + 1e-18)

    inside = minimize(loss, weights @ points / weights.sum(), tol=1e-12).fun
    return min(inside, *map(loss, points))


@pytest.mark.slow
@pytest.mark.claim("N22.12")
def test_training_ends_at_k_medians():
    """Four texts and two atoms of half the mass: all ways to share the texts."""
    space, p = qd.TextSpace(2, 2), np.array([0.4, 0.1, 0.2, 0.3])
    texts = np.eye(2)[space.tokens].reshape(4, 4)
    # An optimal plan is a vertex, which splits one text at most.
    best = np.inf
    for order in itertools.permutations(range(4)):
        left = np.zeros(4)
        for i in order:
            left[i] = min(p[i], 0.5 - left.sum())
        value = geometric_median(texts, left) + geometric_median(texts, p - left)
        best = min(best, value)
    found = []
    for seed in range(2):
        model = AtomTable(jax.random.normal(jax.random.key(seed), (2, 2, 2)))
        settings = {"learning_rate": 0.05, "every": 250}
        run = train(ContinuousWGAN(), model, space, p, 250, **settings)
        found.append(float(transport_to_texts(run.model, space, p).value))
        assert float(run.entropy[-1]) <= np.log(2) + 1e-12
        assert run.nll[-1] == np.inf
    assert min(found) >= best - 1e-7
    assert min(found) == pytest.approx(best, abs=5e-3)


@pytest.mark.claim("N22.12")
def test_a_soft_atom_lies_between_texts_and_argmax_is_farther():
    """Three texts that differ in one place: their median is none of them."""
    space = qd.TextSpace(3, 1)
    p = np.full(3, 1 / 3)
    middle = AtomTable(np.zeros((1, 1, 3)))
    corner = AtomTable(np.array([[[50.0, 0, 0]]]))
    soft = float(transport_to_texts(middle, space, p).value)
    hard = float(transport_to_texts(corner, space, p).value)
    assert soft == pytest.approx(np.sqrt(2 / 3), abs=1e-12)
    assert hard == pytest.approx(2 / 3 * np.sqrt(2), abs=1e-9)
    assert soft < hard
    cost = np.sqrt(2) * (1 - np.eye(3))[:1]
    again = optimal_transport(cost, np.ones(1), p).value
    assert float(again) == pytest.approx(hard, abs=1e-9)


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    table, one = MODELS["table"], "continuous generator is for texts of one length, g"
    refused(
        ("shape (3, 3), the space texts of 2", table.probabilities, qd.TextSpace(3, 2)),
        (one, ConvDeconv.random, KEY, qd.TextSpace(2, (1, 2))),
        ("num_atoms must be at least 1, got 0", ConvLSTM.random, KEY, SPACE, 0),
        ("p must have 27 entries, got 8", transport_to_texts, table, SPACE, P[:8]),
    )
    other = LogitTable(np.zeros(27)), SPACE, P, 1
    words = "has atoms(space), such as AtomTable"
    refused((words, train, ContinuousWGAN(), *other), error=TypeError)
