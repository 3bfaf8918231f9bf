"""The script that trains four models on captions, on a few made-up captions."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scripts import script

import qdtheory as qd

script_of = script("make_caption_models")
setting = script("seqgan_setting")
CAPTIONS = [x.split() for x in ("a b c", "c b a a", "a", "b b d c c", "c a")]
WORDS = ["a", "b", "c"]


def model_of(num_tokens, seed=0, sigma=0.7):
    """With an end token, the last."""
    key, sizes = jax.random.key(seed), (num_tokens, 8, 8)
    return qd.LSTMLanguageModel.random(key, *sizes, sigma, end_token=num_tokens - 1)


def test_captions_of_known_words_come_back_from_their_numbers():
    table = script_of.numbered([*CAPTIONS, ["a"] * 26, []], WORDS)
    found = script_of.texts_of(table, WORDS)
    assert [*found] == [tuple(x) for x in CAPTIONS if "d" not in x]
    assert script_of.most_frequent(CAPTIONS, 2) == ["a", "c"]


def test_probabilities_of_all_texts_and_of_those_cut_short_sum_to_1():
    end = 2
    texts = {x[: x.index(end)] if end in x else x for x in product(range(3), repeat=3)}
    table = np.full((64, 3), end)
    for row, x in zip(table, sorted(texts)):
        row[: len(x)] = x
    nats = setting.text_nats(model_of(3), jnp.asarray(table))[: len(texts)]
    assert float(jnp.exp(-nats).sum()) == pytest.approx(1)


def test_nll_of_a_caption_is_that_of_the_library_but_for_the_empty_text():
    model, rng = model_of(100), np.random.default_rng(0)
    table = np.full((64, 6), 99)
    for row, n in zip(table[1:], rng.integers(1, 7, 63)):
        row[:n] = rng.integers(0, 99, n)
    nats = setting.text_nats(model, jnp.asarray(table))
    # The library has no empty text.
    none = -np.log1p(-np.exp(-float(nats[0])))
    log_q = model.log_probability(np.where(table == 99, -1, table)[1:])
    np.testing.assert_allclose(nats[1:], none - log_q, rtol=1e-9)


def test_after_the_end_a_sample_has_ends_only_and_the_loss_sees_none_of_them():
    model = model_of(100, sigma=0.3)
    biases = model.output_biases.at[-1].add(3.0)
    model = script_of.replace(model, output_biases=biases)
    tokens = setting.sample(model, jax.random.key(1), 256, 6)
    ended = np.cumsum(tokens == 99, axis=1) > 0
    assert (np.asarray(tokens)[ended] == 99).all()
    share, nats = ended[:, 0].mean(), setting.token_nats(model, tokens)
    first = np.exp(-float(nats[ended[:, 0]][0, 0]))
    assert share == pytest.approx(first, abs=4 * (first * (1 - first) / 256) ** 0.5)
    scale = jax.random.normal(jax.random.key(2), tokens.shape)
    expected = float((scale * nats).sum())
    assert float(setting.loss(model, tokens, scale)) == pytest.approx(expected)


def test_an_epoch_shows_each_caption_once_with_its_end():
    rng = np.random.default_rng(3)
    lengths = rng.integers(5, 26, 300)
    table = np.full((300, 25), 99)
    for i, (row, n) in enumerate(zip(table, lengths)):
        row[:n] = [i % 99, i // 99, *[0] * (n - 2)]
    seen = []
    for batch in script_of.batches(table, 99, [0, 1]):
        assert batch.shape[0] == 64
        assert batch.shape[1] in script_of.WIDTHS
        found = batch[:, 1] * 99 + batch[:, 0]
        assert ((batch < 99).sum(axis=1) == lengths[found]).all()
        seen += found.tolist()
    assert len(seen) == len(set(seen)) == 256


def test_mle_stops_at_the_least_nll_and_a_gan_at_the_greatest_bleu():
    rows = [
        ["x", "adam", 0, *x] for x in ((20, 5.0, 0.1), (40, 4.0, 0.3), (60, 4.5, 0.4))
    ]
    assert script_of.stopped("MLE", rows) == 40
    assert script_of.stopped("SeqGAN", rows) == 60


@pytest.mark.parametrize(("temperature", "sigma"), [(0.7, 0.7), (0.3, 9.0)])
def test_a_cold_model_keeps_its_law_where_exp_overflows(temperature, sigma):
    model = model_of(100, sigma=sigma)
    model = script_of.replace(model, recurrent_weights=0 * model.recurrent_weights)
    small = jax.tree.map(lambda x: x.astype(jnp.float32), model)
    tokens = setting.sample(small, jax.random.key(0), 64, 5)
    found = setting.token_nats(script_of.warmed(small, temperature, tokens), tokens)
    h = setting.hidden_states(model, tokens)
    logits = (h @ model.output_weights + model.output_biases) / temperature
    log_q = jax.nn.log_softmax(logits).swapaxes(0, 1)
    expected = -np.take_along_axis(log_q, np.asarray(tokens)[..., None], 2)[..., 0]
    counts = np.asarray(setting.in_text(model, tokens))
    assert np.abs(np.where(counts, expected, 0) - found).max() < 1e-3 * expected.max()
    assert (float(abs(logits).max()) > 88) == (sigma > 1)


def test_metrics_of_a_sample_are_those_of_a_count_by_hand():
    table = script_of.numbered([5 * x for x in CAPTIONS], WORDS)
    corpus, real = (script_of.texts_of(x, WORDS) for x in (table, table[:2]))
    pairs = [
        [x[i : i + 2] for x in y for i in range(len(x) - 1)] for y in (corpus, real)
    ]
    own, other = ({g: y.count(g) for g in y} for y in pairs)
    found = dict(zip(script_of.COLUMNS[6:], script_of.of_sample(corpus, real)))
    num = [len(corpus), len(real)]
    each = {g: (own.get(g, 0) / num[0], other.get(g, 0) / num[1]) for g in own | other}
    words = [[w for x in y for w in x] for y in (corpus, real)]
    ones = {w: [y.count(w) / n for y, n in zip(words, num)] for w in WORDS}
    scores = [
        sum(map(min, x.values())) / sum(map(max, x.values())) for x in (ones, each)
    ]
    assert found["ms_jaccard_2"] == pytest.approx(np.prod(scores) ** 0.5)
    total = [sum(x.values()) for x in (own, other)]
    cr = sum(own[g] * other[g] for g in own if g in other) / np.prod(total)
    assert found["cr_2"] == pytest.approx(cr)


def test_a_run_goes_on_where_it_was_killed_and_keeps_the_model_of_each_stop(
    tmp_path, monkeypatch
):
    for name in ("NUM_SCORED", "NUM_VALIDATED"):
        monkeypatch.setattr(script_of, name, 64)
    table = script_of.numbered([["a", "b", "c"] * 3] * 64, WORDS)

    def advance(state, step):
        biases = state[0].output_biases.at[step].add(1.0 + step)
        return (script_of.replace(state[0], output_biases=biases),)

    found = []
    for folder, calls in {"whole": ([1, 2, 3],), "parts": ([1], [1, 2, 3])}.items():
        one = script_of.Captions((table, table, WORDS, 0), tmp_path / folder)
        for stops in calls:
            rows = one.run("MLE", "adam", (one.oracle,), stops, advance)[1]
        kept = np.array([one.at("MLE", k).output_biases[:3] for k in (1, 2, 3)])
        moved = kept - np.asarray(one.oracle.output_biases[:3])
        assert moved.round(5).tolist() == [[1, 0, 0], [1, 2, 0], [1, 2, 3]]
        found.append([row[3:] for row in rows])
    assert found[0] == found[1]
    assert [row[0] for row in found[0]] == [1, 2, 3]
    nats = [float(setting.text_nats(one.at("MLE", k), table).mean()) for k in (1, 2, 3)]
    assert [row[1] for row in found[0]] == pytest.approx(nats)
