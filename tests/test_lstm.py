"""LSTM language models, against SeqGAN's equations in plain NumPy, text by text."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from families import assert_frequencies
from hypothesis import given
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree
from models import assert_slope, sentences
from scipy.special import logsumexp

import qdtheory as qd
from qdtheory import lstm

LSTM = qd.LSTMLanguageModel
seeds = st.integers(0, 2**16)
sigmas = st.sampled_from([0.5, 1.0, 2.0])
temperatures = st.sampled_from([0.3, 1.0, 2.5])
SIZES = [(2, 4), (4, 3), (1, 2), (5, 1)]
CUBE = qd.TextSpace(vocab_size=3, lengths=3)


def random_model(seed, vocab_size, sigma=1.0, end_token=None, hidden_size=8):
    key = jax.random.key(seed)
    return LSTM.random(key, vocab_size, 6, hidden_size, sigma, end_token)


# --- SeqGAN's equations ---------------------------------------------------------------
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


def log_probability_by_hand(arrays, text, temperature=1.0, end=None, most=None):
    """An end token stands before and after a text of less than the greatest length.

    It cannot come first.
    """
    tokens = text if end is None else [*text, end][:most]
    before = [text[:t] for t in range(len(tokens))]
    steps = [next_log_probabilities(arrays, x, temperature, end or 0) for x in before]
    total = sum(step[token] for step, token in zip(steps, tokens, strict=True))
    return total - (0.0 if end is None else logsumexp(steps[0][:end]))


WITH_END = [(2, (1, 2, 3)), (3, (1, 2)), (1, (1, 2, 3, 4))]


@pytest.mark.claim("N1.2")
@pytest.mark.parametrize(
    "size",
    [
        *(SIZES[0], WITH_END[0]),
        *(pytest.param(x, marks=pytest.mark.slow) for x in SIZES[1:] + WITH_END[1:]),
    ],
)
@given(sigma=sigmas, temperature=temperatures, seed=seeds)
def test_probabilities_agree_with_plain_numpy(size, sigma, temperature, seed):
    space, end = qd.TextSpace(*size), size[0] if size in WITH_END else None
    arrays = seqgan_arrays(seed, size[0] + (end is not None), sigma=sigma)
    model = replace(LSTM.from_arrays(arrays), end_token=end)
    given = temperature, end, space.max_length
    expected = [log_probability_by_hand(arrays, t, *given) for t in sentences(space)]
    found = model.probabilities(space, temperature)
    assert float(found.sum()) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(found, np.exp(expected), rtol=0, atol=1e-12)
    found = model.log_probability(space.tokens, temperature)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(st.sampled_from([(2, (1, 2, 4)), (3, (2, 3))]), sigmas, seeds)
def test_length_probabilities_weigh_the_lengths(size, sigma, seed):
    space = qd.TextSpace(*size)
    model = random_model(seed, space.vocab_size, sigma)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(space.lengths)))
    expected = [
        weight * model.probabilities(qd.TextSpace(space.vocab_size, length))
        for weight, length in zip(weights, space.lengths, strict=True)
    ]
    found = model.probabilities(space, length_probabilities=weights)
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("vocab_size", "length"), [*SIZES, (3, 6)])
def test_every_prefix_is_read_once(vocab_size, length, monkeypatch):
    read = 0

    def counted(model, state, inputs, step=lstm.lstm_step):
        nonlocal read
        state = step(model, state, inputs)
        read += state[0].size // state[0].shape[-1]
        return state

    monkeypatch.setattr(lstm, "lstm_step", counted)
    # The function under `jax.jit`, so that the steps that run are counted.
    enumerate_tree = lstm._tree_probabilities.__wrapped__
    p = enumerate_tree(random_model(0, vocab_size), (length,), 1.0, None)
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    texts = product(range(vocab_size), repeat=length)
    assert read == len({text[:t] for text in texts for t in range(length)})


# --- Parameters -----------------------------------------------------------------------
def test_an_oracle_is_the_random_model_of_its_seed():
    space = qd.TextSpace(vocab_size=3, lengths=2)
    model = LSTM.random(jax.random.key(5), 3, 8, 8, sigma=0.5)
    p = qd.oracle(space, 5, sigma=0.5, size=8)
    assert (p == model.probabilities(space)).all()
    wide = LSTM.random(jax.random.key(5), vocab_size=3)
    assert (qd.oracle(space, 5) == wide.probabilities(space)).all()


def test_float32_files_are_widened():
    single = [array.astype(np.float32) for array in seqgan_arrays(0)]
    double = [array.astype(np.float64) for array in single]
    model, same = map(LSTM.from_arrays, (single, double))
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype(float)}
    assert model.fingerprint == same.fingerprint
    assert model.fingerprint != random_model(0, 4).fingerprint


@pytest.mark.claim("E13.3")
def test_random_draws_all_15_arrays_alike_and_seqgan_has_333_320_numbers():
    model = random_model(0, 500, sigma=0.7, hidden_size=40)
    for leaf in jax.tree.leaves(model):
        # Mean and variance of at least 160 normal draws, 5 standard errors.
        assert abs(leaf.mean()) < 5 * 0.7 / np.sqrt(leaf.size)
        assert abs(leaf.std() / 0.7 - 1) < 5 / np.sqrt(2 * leaf.size)
    assert (model.vocab_size, model.num_words) == (500, 500)
    assert random_model(0, 5, end_token=4).num_words == 4
    model = LSTM.random(jax.random.key(0), 5000)
    assert model.embeddings.shape == (5000, 32)
    assert sum(leaf.size for leaf in jax.tree.leaves(model)) == 333_320


# --- Sampling and temperatures --------------------------------------------------------
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "end_token", "sigma", "temperature"),
    [
        *((4, 2, None, 2, 0.5), (2, (1, 2, 3), 2, 1, 1)),
        *((v, 1, None, 1, 1) for v in (1, 17, 5000)),
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
    model = LSTM.random(jax.random.key(0), vocab_size=5000)
    texts = model.sample(jax.random.key(1), 1000, 20)
    assert 5.6 < -float(model.log_probability(texts).mean()) / 20 < 6.2


@pytest.mark.claim("N1.8")
def test_the_greedy_text_need_not_be_the_likeliest():
    differ = 0
    for seed in range(40):
        arrays, greedy = seqgan_arrays(seed, 3), ()
        for _ in range(3):
            greedy += (int(next_log_probabilities(arrays, greedy).argmax()),)
        log_p = [log_probability_by_hand(arrays, text) for text in sentences(CUBE)]
        mode, at = int(np.argmax(log_p)), int(CUBE.index(np.array(greedy)))
        model = LSTM.from_arrays(arrays)
        assert int(qd.temper(model.probabilities(CUBE), 1e4).argmax()) == mode
        # Differences of two logits are not below 1e-6 in these draws.
        p = model.probabilities(CUBE, temperature=1e-8)
        assert float(p[at]) == pytest.approx(1, abs=1e-12)
        assert (model.sample(jax.random.key(0), 3, 3, 1e-8) == np.array(greedy)).all()
        assert at == mode or log_p[at] < log_p[mode]
        differ += at != mode
    assert 0 < differ < 40


@pytest.mark.slow
@pytest.mark.claim("N1.9")
@given(seeds, sigmas, st.sampled_from([0.5, 2.0, 4.0]))
def test_token_temperature_is_a_divergence_away_from_a_power(seed, sigma, beta):
    # log Z - E_token[sum_t log Z_t], each Z_t from the plain recurrence.
    arrays, texts = seqgan_arrays(seed, 3, sigma=sigma), sentences(CUBE)
    model = LSTM.from_arrays(arrays)
    log_z = {
        prefix: logsumexp(beta * next_log_probabilities(arrays, prefix))
        for prefix in {text[:t] for text in texts for t in range(3)}
    }
    log_p = np.array([log_probability_by_hand(arrays, text) for text in texts])
    sums = np.array([sum(log_z[text[:t]] for t in range(3)) for text in texts])
    token = np.exp(beta * log_p - sums)
    expected = logsumexp(beta * log_p) - token @ sums
    q = model.probabilities(CUBE, temperature=1 / beta)
    np.testing.assert_allclose(q, token, rtol=0, atol=1e-12)
    found = float(qd.kl_divergence(q, qd.temper(model.probabilities(CUBE), beta)))
    assert found == pytest.approx(expected, abs=1e-12)
    assert expected > 0


@given(seeds, st.sampled_from([0.5, 2.0, 4.0]))
def test_both_temperatures_agree_where_the_past_is_forgotten(seed, beta):
    model = random_model(seed, 3, sigma=2.0)
    forgetful = replace(model, output_weights=jnp.zeros_like(model.output_weights))
    q = forgetful.probabilities(CUBE, temperature=1 / beta)
    power = qd.temper(forgetful.probabilities(CUBE), beta)
    np.testing.assert_allclose(q, power, rtol=0, atol=1e-14)


# --- Entropy against sigma ------------------------------------------------------------
def entropies(space, sigma, num_models, hidden_size=8):
    models = (
        random_model(seed, space.vocab_size, sigma, None, hidden_size)
        for seed in range(num_models)
    )
    return np.array([float(qd.entropy(m.probabilities(space))) for m in models])


def test_small_sigma_loses_entropy_like_sigma_squared():
    # The logits are the output biases b + O(sigma^2), and a softmax of small logits
    # has entropy log V - Var(b) / 2: on average L (V - 1) / (2 V) sigma^2 is lost.
    lost = np.log(27) - entropies(CUBE, 0.01, 300)
    assert abs(lost.mean() - 3 * 2 / 6 * 0.01**2) < 4 * lost.std() / np.sqrt(300)


@pytest.mark.slow
@pytest.mark.claim("N1.7")
@pytest.mark.parametrize("size", [(2, 5), (4, 2), (6, 3)])
def test_entropy_falls_with_sigma_on_average(size):
    space, sigmas = qd.TextSpace(*size), (0.25, 0.5, 1.0, 2.0, 4.0)
    found = [entropies(space, sigma, 40, 32) for sigma in sigmas]
    means, errors = np.mean(found, axis=1), np.std(found, axis=1) / np.sqrt(40)
    assert (np.diff(means) < -2 * np.hypot(errors[1:], errors[:-1])).all()


# --- Under JAX's transformations ------------------------------------------------------
def test_models_make_batches():
    keys = jax.random.split(jax.random.key(0), 3)

    def entropy(key, temperature):
        model = LSTM.random(key, vocab_size=3)
        return qd.entropy(model.probabilities(CUBE, temperature))

    expected = [[float(entropy(key, t)) for t in (0.5, 2.0)] for key in keys]
    over_temperatures = jax.vmap(entropy, (None, 0))
    found = jax.vmap(over_temperatures, (0, None))(keys, np.array([0.5, 2.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_gradients_agree_with_a_difference():
    model, unravel = ravel_pytree(random_model(0, 3))
    towards = ravel_pytree(random_model(1, 3))[0]

    def entropy(parameters):
        return qd.entropy(unravel(parameters).probabilities(CUBE))

    assert_slope(entropy, model, towards, rtol=1e-6)
