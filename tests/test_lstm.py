"""LSTM language models, against SeqGAN's equations in plain NumPy, text by text."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree
from models import assert_frequencies, assert_slope
from refusals import refused
from scipy.special import logsumexp

import qdtheory as qd
from qdtheory import lstm

seeds = st.integers(0, 2**16)
sigmas = st.sampled_from([0.5, 1.0, 2.0])
temperatures = st.sampled_from([0.3, 1.0, 2.5])
SIZES = [(2, 4), (4, 3), (1, 2), (5, 1)]
sizes = st.sampled_from(SIZES)


def random_model(seed, vocab_size, sigma=1.0, end_token=None, hidden_size=8):
    return qd.LSTMLanguageModel.random(
        jax.random.key(seed), vocab_size, 6, hidden_size, sigma, end_token
    )


# -- SeqGAN's equations --------------------------------------------------------------


def seqgan_arrays(seed, vocab_size=4, embedding=6, hidden=8, sigma=1.0) -> list:
    """The 15 arrays in SeqGAN's order."""
    rng = np.random.default_rng(seed)
    gate = [(embedding, hidden), (hidden, hidden), (hidden,)]
    shapes = [(vocab_size, embedding), *4 * gate, (hidden, vocab_size), (vocab_size,)]
    return [rng.normal(0, sigma, shape) for shape in shapes]


def next_log_probabilities(arrays, prefix, temperature=1.0, start=0) -> np.ndarray:
    """Log-probabilities of the token after a prefix, from the first step on."""
    embeddings, *gates, output_w, output_b = arrays
    h = c = np.zeros(len(output_w))
    for token in (start, *prefix):
        x = embeddings[token]
        i, f, o, cell = (
            x @ gates[k] + h @ gates[k + 1] + gates[k + 2] for k in (0, 3, 6, 9)
        )
        i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
        c = f * c + i * np.tanh(cell)
        h = o * np.tanh(c)
    logits = (h @ output_w + output_b) / temperature
    return logits - logsumexp(logits)


def log_probability_by_hand(arrays, text, temperature=1.0) -> float:
    return sum(
        next_log_probabilities(arrays, text[:t], temperature)[token]
        for t, token in enumerate(text)
    )


def log_probability_with_end(arrays, text, max_length) -> float:
    """The end token is the last, stands before the text and cannot come first."""
    end = len(arrays[0]) - 1
    total = 0.0
    for t, token in enumerate([*text, end][:max_length]):
        log_next = next_log_probabilities(arrays, text[:t], start=end)
        total += log_next[token] - (logsumexp(log_next[:end]) if t == 0 else 0.0)
    return total


@pytest.mark.slow
@pytest.mark.claim("N1.3")
@given(sizes, sigmas, temperatures, seeds)
def test_probabilities_agree_with_plain_numpy(size, sigma, temperature, seed):
    vocab_size, length = size
    arrays = seqgan_arrays(seed, vocab_size, sigma=sigma)
    model = qd.LSTMLanguageModel.from_arrays(arrays)
    texts = list(product(range(vocab_size), repeat=length))
    expected = [log_probability_by_hand(arrays, text, temperature) for text in texts]
    found = model.probabilities(qd.TextSpace(vocab_size, length), temperature)
    np.testing.assert_allclose(found, np.exp(expected), rtol=0, atol=1e-12)
    found = model.log_probability(np.array(texts), temperature)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.claim("N1.11")
@given(st.sampled_from([(2, 3), (3, 2), (1, 4)]), seeds)
def test_end_token_agrees_with_plain_numpy(size, seed):
    num_words, length = size
    arrays = seqgan_arrays(seed, num_words + 1)
    model = replace(qd.LSTMLanguageModel.from_arrays(arrays), end_token=num_words)
    space = qd.TextSpace(num_words, tuple(range(1, length + 1)))
    texts = [tuple(row[row >= 0]) for row in space.tokens]
    expected = [log_probability_with_end(arrays, text, length) for text in texts]
    found = model.probabilities(space)
    assert float(found.sum()) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(found, np.exp(expected), rtol=0, atol=1e-12)
    found = model.log_probability(space.tokens)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.claim("N1.2")
@given(st.sampled_from([*SIZES, (6, 5)]), sigmas, temperatures, seeds)
def test_probabilities_sum_to_1(size, sigma, temperature, seed):
    vocab_size, length = size
    p = random_model(seed, vocab_size, sigma).probabilities(
        qd.TextSpace(vocab_size, length), temperature
    )
    assert (p >= 0).all()
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.claim("N1.12")
@given(st.sampled_from([(2, (1, 2, 4)), (3, (2, 3))]), sigmas, seeds)
def test_length_probabilities_weigh_the_lengths(size, sigma, seed):
    space = qd.TextSpace(*size)
    model = random_model(seed, space.vocab_size, sigma)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(space.lengths)))
    expected = np.concatenate(
        [
            weight * model.probabilities(qd.TextSpace(space.vocab_size, length))
            for weight, length in zip(weights, space.lengths, strict=True)
        ]
    )
    found = model.probabilities(space, length_probabilities=weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


@pytest.mark.claim("N1.5")
@pytest.mark.parametrize("size", [*SIZES, (3, 6)])
def test_every_prefix_is_read_once(size, monkeypatch):
    vocab_size, length = size
    read = 0

    def counted(model, state, inputs, step=lstm.lstm_step):
        nonlocal read
        state = step(model, state, inputs)
        read += state[0].size // state[0].shape[-1]
        return state

    monkeypatch.setattr(lstm, "lstm_step", counted)
    model = random_model(0, vocab_size)
    # The function under `jax.jit`, so that the steps that run are counted.
    enumerate_tree = lstm._tree_probabilities.__wrapped__
    p = enumerate_tree(model, (length,), 1.0, None)
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    texts = product(range(vocab_size), repeat=length)
    assert read == len({text[:t] for text in texts for t in range(length)})


# -- SeqGAN's parameter files --------------------------------------------------------


def test_an_oracle_is_the_random_model_of_its_seed():
    space = qd.TextSpace(vocab_size=3, lengths=2)
    model = qd.LSTMLanguageModel.random(jax.random.key(5), 3, 8, 8, sigma=0.5)
    p = qd.oracle(space, 5, sigma=0.5, size=8)
    assert (p == model.probabilities(space)).all()
    wide = qd.LSTMLanguageModel.random(jax.random.key(5), vocab_size=3)
    assert (qd.oracle(space, 5) == wide.probabilities(space)).all()
    with pytest.raises(ValueError, match="length"):
        qd.oracle(qd.TextSpace(vocab_size=3, lengths=(1, 2)), 5)


def test_float32_files_are_widened():
    single = [array.astype(np.float32) for array in seqgan_arrays(0)]
    double = [array.astype(np.float64) for array in single]
    model, same = map(qd.LSTMLanguageModel.from_arrays, (single, double))
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype(float)}
    assert model.fingerprint == same.fingerprint
    assert model.fingerprint != random_model(0, 4).fingerprint


@pytest.mark.parametrize("at", range(15))
def test_a_bad_array_is_named(at):
    gates = product(("input", "forget", "output", "cell"), "WUb")
    names = ["embeddings", *(f"{part}_{gate}" for gate, part in gates)]
    name = [*names, "W_logits", "b_logits"][at]
    # The sizes are read from embeddings and U_input.
    shape = "and U_input must be matrices" if at in (0, 2) else "must have shape"
    for words, change in (
        (f"{name} must be finite", lambda x: np.full_like(x, np.nan)),
        (f"{name} {shape}" if at != 2 else shape, lambda x: x[None]),
    ):
        arrays = seqgan_arrays(0)
        arrays[at] = change(arrays[at])
        refused((words, qd.LSTMLanguageModel.from_arrays, arrays))


def test_random_draws_all_15_arrays_alike():
    model = random_model(0, 500, sigma=0.7, hidden_size=40)
    for leaf in jax.tree.leaves(model):
        # Mean and variance of at least 160 normal draws, 5 standard errors.
        assert abs(leaf.mean()) < 5 * 0.7 / np.sqrt(leaf.size)
        assert abs(leaf.std() / 0.7 - 1) < 5 / np.sqrt(2 * leaf.size)
    assert (model.vocab_size, model.num_words) == (500, 500)
    assert random_model(0, 5, end_token=4).num_words == 4


# -- sampling ------------------------------------------------------------------------


@pytest.mark.claim("N1.4")
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "end_token", "sigma", "temperature"),
    [
        *((v, n, None, s, t) for v, n, s in ((2, 4, 0.5), (4, 2, 2)) for t in (0.5, 2)),
        *((v, n, None, s, 1) for v, n, s in ((2, 4, 2), (4, 2, 0.5))),
        (2, (1, 2, 3), 2, 1, 1),
        *((v, 1, None, 1, 1) for v in (1, 2, 5, 17, 5000)),
    ],
)
def test_samples_follow_the_probabilities(
    vocab_size, lengths, end_token, sigma, temperature
):
    space = qd.TextSpace(vocab_size, lengths)
    words = vocab_size + (end_token is not None)
    model = random_model(1, words, float(sigma), end_token)
    p = np.asarray(model.probabilities(space, temperature))
    texts = model.sample(jax.random.key(5), 50_000, space.max_length, temperature)
    assert_frequencies(space.index(texts), p)


@pytest.mark.slow
@pytest.mark.claim("N1.17")
def test_a_fresh_draw_at_seqgan_size():
    # 24 fresh draws had 5.93 +- .08; 5.75 belongs to SeqGAN's parameter file.
    model = qd.LSTMLanguageModel.random(jax.random.key(0), vocab_size=5000)
    texts = model.sample(jax.random.key(1), 1000, 20)
    assert 5.6 < -float(model.log_probability(texts).mean()) / 20 < 6.2


# -- temperatures --------------------------------------------------------------------


@given(sizes, seeds)
def test_a_low_temperature_takes_the_likeliest_token_each_time(size, seed):
    vocab_size, length = size
    arrays = seqgan_arrays(seed, vocab_size)
    model = qd.LSTMLanguageModel.from_arrays(arrays)
    space = qd.TextSpace(vocab_size, length)
    path = ()
    for _ in range(length):
        path += (int(next_log_probabilities(arrays, path).argmax()),)
    # Differences of two logits are not below 1e-6 in these draws.
    p = model.probabilities(space, temperature=1e-8)
    assert float(p[space.index(np.array(path))]) == pytest.approx(1, abs=1e-12)
    assert (np.asarray(model.sample(jax.random.key(0), 3, length, 1e-8)) == path).all()


@pytest.mark.claim("N1.8")
def test_the_greedy_text_need_not_be_the_likeliest():
    space = qd.TextSpace(vocab_size=3, lengths=3)
    differ = 0
    for seed in range(40):
        arrays = seqgan_arrays(seed, 3)
        log_p = [
            log_probability_by_hand(arrays, text)
            for text in product(range(3), repeat=3)
        ]
        mode = int(np.argmax(log_p))
        model = qd.LSTMLanguageModel.from_arrays(arrays)
        assert int(qd.temper(model.probabilities(space), 1e4).argmax()) == mode
        greedy = int(model.probabilities(space, temperature=1e-8).argmax())
        assert (greedy == mode) or log_p[greedy] < log_p[mode]
        differ += greedy != mode
    assert 0 < differ < 40


@pytest.mark.slow
@pytest.mark.claim("N1.9")
@given(seeds, sigmas, st.sampled_from([0.5, 2.0, 4.0]))
def test_token_temperature_is_a_divergence_away_from_a_power(seed, sigma, beta):
    # log Z - E_token[sum_t log Z_t], each Z_t from the plain recurrence.
    arrays = seqgan_arrays(seed, 3, sigma=sigma)
    model = qd.LSTMLanguageModel.from_arrays(arrays)
    texts = list(product(range(3), repeat=3))
    log_z = {
        prefix: logsumexp(beta * next_log_probabilities(arrays, prefix))
        for prefix in {text[:t] for text in texts for t in range(3)}
    }
    log_p = np.array([log_probability_by_hand(arrays, text) for text in texts])
    sums = np.array([sum(log_z[text[:t]] for t in range(3)) for text in texts])
    token = np.exp(beta * log_p - sums)
    expected = logsumexp(beta * log_p) - token @ sums
    space = qd.TextSpace(vocab_size=3, lengths=3)
    q = model.probabilities(space, temperature=1 / beta)
    np.testing.assert_allclose(q, token, rtol=0, atol=1e-12)
    found = float(qd.kl_divergence(q, qd.temper(model.probabilities(space), beta)))
    assert found == pytest.approx(expected, abs=1e-12)
    assert expected > 0


@pytest.mark.claim("N1.10")
@given(seeds, st.sampled_from([0.5, 2.0, 4.0]))
def test_both_temperatures_agree_where_the_past_is_forgotten(seed, beta):
    model = random_model(seed, 3, sigma=2.0)
    forgetful = replace(model, output_weights=jnp.zeros_like(model.output_weights))
    space = qd.TextSpace(vocab_size=3, lengths=4)
    q = forgetful.probabilities(space, temperature=1 / beta)
    power = qd.temper(forgetful.probabilities(space), beta)
    np.testing.assert_allclose(q, power, rtol=0, atol=1e-14)


# -- entropy against sigma -----------------------------------------------------------


@pytest.mark.claim("N1.6")
def test_small_sigma_loses_entropy_like_sigma_squared():
    # The logits are the output biases b + O(sigma^2), and a softmax of small logits
    # has entropy log V - Var(b) / 2: on average L (V - 1) / (2 V) sigma^2 is lost.
    space, sigma = qd.TextSpace(vocab_size=3, lengths=4), 0.01
    lost = [
        np.log(81) - float(qd.entropy(random_model(s, 3, sigma).probabilities(space)))
        for s in range(300)
    ]
    mean, error = np.mean(lost), np.std(lost) / np.sqrt(300)
    assert abs(mean - 4 * 2 / 6 * sigma**2) < 4 * error


@pytest.mark.slow
@pytest.mark.claim("N1.7")
@pytest.mark.parametrize("size", [(2, 5), (4, 2), (6, 3)])
def test_entropy_falls_with_sigma_on_average(size):
    space = qd.TextSpace(*size)
    means, errors = [], []
    for sigma in (0.25, 0.5, 1.0, 2.0, 4.0):
        models = (random_model(s, space.vocab_size, sigma, None, 32) for s in range(40))
        entropies = [float(qd.entropy(m.probabilities(space))) for m in models]
        means.append(np.mean(entropies))
        errors.append(np.std(entropies) / np.sqrt(40))
    errors = np.array(errors)
    assert (np.diff(means) < -2 * np.hypot(errors[1:], errors[:-1])).all()


# -- under JAX's transformations -----------------------------------------------------


def test_models_make_batches():
    space = qd.TextSpace(vocab_size=3, lengths=3)
    keys = jax.random.split(jax.random.key(0), 3)

    def entropy(key, temperature):
        model = qd.LSTMLanguageModel.random(key, vocab_size=3)
        return qd.entropy(model.probabilities(space, temperature))

    expected = [[float(entropy(key, t)) for t in (0.5, 2.0)] for key in keys]
    over_temperatures = jax.vmap(entropy, (None, 0))
    found = jax.vmap(over_temperatures, (0, None))(keys, np.array([0.5, 2.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    model, texts = random_model(0, 3), jnp.asarray(space.tokens)
    compiled = jax.jit(lambda texts: model.log_probability(texts))(texts)
    np.testing.assert_allclose(compiled, model.log_probability(texts), rtol=1e-12)


def test_gradients_agree_with_a_difference():
    space = qd.TextSpace(vocab_size=3, lengths=3)
    model, unravel = ravel_pytree(random_model(0, 3))

    def entropy(parameters):
        return qd.entropy(unravel(parameters).probabilities(space))

    towards = ravel_pytree(random_model(1, 3))[0]
    assert_slope(entropy, model, towards, rtol=1e-6)


def test_the_constructor_checks_shapes_and_the_end_token(as_a_user):
    model = qd.LSTMLanguageModel.random(jax.random.key(0), 4, 3, 2)
    leaves = jax.tree.leaves(model)
    narrow = [*leaves[:4], leaves[4][:, :3], leaves[5]]
    refused(
        ("end_token", qd.LSTMLanguageModel, *leaves, 0),
        ("shapes", qd.LSTMLanguageModel, *narrow),
    )
    with pytest.raises(TypeError, match="integers"):
        model.log_probability(np.zeros((2, 3)))


# -- SeqGAN's sizes ------------------------------------------------------------------


@pytest.mark.claim("E13.3")
def test_parameters_of_seqgans_oracle():
    model = qd.LSTMLanguageModel.random(jax.random.key(0), 5000, 32, 32)
    assert model.embeddings.shape == (5000, 32)
    assert sum(leaf.size for leaf in jax.tree.leaves(model)) == 333_320
