"""The damages and the embedders of make_sensitivity.py, and its table made anew."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scripts import frame, rows_of
from scripts import script as load

from qdtheory.text import (
    Corpus,
    as_corpus,
    bleu,
    cnd,
    embed,
    fit_language_model,
    frechet_distance,
    imdb,
    ms_jaccard,
    prepare,
    reverse_lm_score,
    self_bleu,
)

KEYS = ["damage", "strength", "repeat", "metric"]


@pytest.fixture(scope="module")
def script():
    return load("make_sensitivity")


@pytest.fixture(scope="module")
def many() -> Corpus:
    return as_corpus([["a", "b", "c", "d"]] * 10_000)


def test_dropout_takes_words_at_the_stated_rate_and_leaves_one(script, many):
    p = 0.4
    found = script.drop_words(many, p, 0)
    kept = [set(text) for text in found]
    assert all(list(text) == sorted(text) and text for text in found)
    size, noise = len(many), 4 * np.sqrt(0.25 / len(many))  # four deviations at most
    for word in "abcd":  # kept itself, or as the one of four that is left
        share = sum(word in words for words in kept) / size
        assert share == pytest.approx(1 - p + p**4 / 4, abs=noise)
    alone = sum(len(words) == 1 for words in kept) / size
    assert alone == pytest.approx(4 * p**3 * (1 - p) + p**4, abs=noise)


def test_swap_permutes_the_chosen_words(script, many):
    p = 0.5
    found = script.swap_words(many, p, 0)
    texts = list(found)
    assert all(sorted(text) == list("abcd") for text in texts)
    noise = 4 * np.sqrt(0.25 / len(many))
    # By the number k chosen: two words in their places if the others change places.
    chances = {0: 1, 1: 1, 2: 1 / 2, 3: 1 / 6, 4: 1 / 24}
    same = sum(
        p ** sum(chosen) * (1 - p) ** (4 - sum(chosen)) * chances[sum(chosen)]
        for chosen in product((0, 1), repeat=4)
    )
    assert np.mean([text == tuple("abcd") for text in texts]) == pytest.approx(
        same, abs=noise
    )
    # Chosen with the other three alike: a word is anywhere else with equal chance.
    places = [np.mean([text[i] == "a" for text in texts]) for i in (1, 2, 3)]
    assert np.ptp(places) <= 2 * noise


def test_no_strength_no_damage_and_more_strength_more(script):
    texts = as_corpus(["one two three four five six", "a b"] * 50)
    for damage in (script.drop_words, script.swap_words):
        assert list(damage(texts, 0.0, 1)) == list(texts)
    weak, strong = (script.drop_words(texts, p, 1) for p in (0.2, 0.5))
    for less, more in zip(strong, weak, strict=True):
        assert set(less) <= set(more)


@pytest.fixture(scope="module")
def embedders():
    return load("embedders")


def random_sentences(seed: int, size: int, words: str = "abcdefgh") -> Corpus:
    rng = np.random.default_rng(seed)
    return as_corpus([[*rng.choice([*words], rng.integers(1, 9))] for _ in range(size)])


def test_latent_semantics_is_the_svd_of_weighted_words_and_pairs(embedders):
    training, new = random_sentences(0, 200), random_sentences(1, 9, "abcdefghz")
    embed = embedders.latent_semantics(training, num_features=5, min_texts=10)

    def counts(texts, known):
        found = [[*x, *(x[i : i + 2] for i in range(len(x) - 1))] for x in texts]
        return np.array([[x.count(term) for term in known] for x in found])

    pairs = {x[i : i + 2] for x in training for i in range(len(x) - 1)}
    known = [*"abcdefgh", *sorted(pairs)]
    table = counts(training, known)
    often = (table > 0).sum(axis=0)
    weights = np.where(often >= 10, np.log(200 / np.maximum(often, 1)), 0)
    assert (often < 10).any()  # some are left out
    basis = np.linalg.svd(table * weights)[2][:5]
    rows = counts(new, known) * weights @ basis.T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = embed(new)
    np.testing.assert_allclose(found @ found.T, rows @ rows.T, atol=1e-8)
    assert not embed(as_corpus([["z"]])).any()


def test_lstm_states_are_the_greatest_along_a_sentence(embedders):
    training, new = random_sentences(0, 60), random_sentences(1, 9, "abcdefghz")
    settings = {"min_count": 2, "max_epochs": 1, "hidden_size": 4}
    fitted = fit_language_model(training, **settings)

    model = fitted.model
    inputs = np.asarray(model.embeddings @ model.input_weights + model.gate_biases)
    recurrent = np.asarray(model.recurrent_weights)

    def greatest(sentence):
        known = [w if w in fitted.vocabulary else "<unk>" for w in sentence]
        h, c, best = np.zeros(4), np.zeros(4), np.full(4, -np.inf)
        # The end token stands before the first word.
        for i in (-1, *map(fitted.vocabulary.index, known)):
            *gates, cell = np.split(inputs[i] + h @ recurrent, 4)
            write, keep, show = expit(gates)
            c = keep * c + write * np.tanh(cell)
            h = show * np.tanh(c)
            if i >= 0:
                best = np.maximum(best, h)
        return best

    found = embedders.lstm_states(training, **settings)(new)
    np.testing.assert_allclose(found, [greatest(x) for x in new], atol=1e-12)


@pytest.fixture(scope="module")
def table():
    return frame("sensitivity.csv").set_index(KEYS).value.to_dict()


def expected_cells(script):
    """(damage, strength), of mode collapse without the strength that leaves nothing."""
    for damage in ("mode collapse", "mode collapse (LSA)", "word dropout", "word swap"):
        last = -1 if damage.startswith("mode") else None
        yield from product([damage], script.STRENGTHS[:last])


def test_the_table_is_whole(script, table):
    cells, repeats = [*expected_cells(script)], range(script.REPEATS)
    keys = product(cells, repeats, script.NAMES)
    assert set(table) == {(*cell, repeat, name) for cell, repeat, name in keys}
    for repeat, name in product(repeats, script.NAMES):
        assert len({table[d, s, repeat, name] for d, s in cells if s == 0}) == 1
    # Without two words a sentence has no pair.
    lacking = {key for key, value in table.items() if np.isnan(value)}
    assert {(damage, strength) for damage, strength, *_ in lacking} == {
        ("word dropout", 1.0)
    }
    assert not any(name[-2:] == "-1" or "Frechet" in name for *_, name in lacking)


def test_the_reverse_scores_are_whole(script):
    found = frame("reverse_scores.csv").groupby(["damage", "strength"]).repeat
    of_words = load("make_reverse_scores").OF_WORDS
    assert {key: [*repeats] for key, repeats in found} == {
        (damage, strength): [*range(script.REPEATS)]
        for damage, strength in expected_cells(script)
        if damage == "mode collapse" or ("word" in damage and strength in of_words)
    }


def test_topics_are_those_of_the_sentences(script):
    size = len(load("make_topics").sentences())
    for row in rows_of("topics.csv"):
        counted = [row["topics"].count(digit) for digit in "01234"]
        assert counted == [*map(int, row["sizes"].split())]
        assert sum(counted) == len(row["topics"]) == size


def test_measured_anew(script, table):
    """By the public functions, one metric at a time."""
    corpus = prepare(imdb(), min_length=5, max_length=20, seed=0)
    rng = np.random.default_rng(0)
    size = script.SIZE
    references, pool = np.split(rng.permutation(len(corpus)), [size])
    order = rng.permutation(5).tolist()
    known, clean = corpus[references], corpus[pool[: 2 * size]]
    samples = {
        ("word dropout", 0.4): script.drop_words(clean, 0.4, 0),
        ("word swap", 0.4): script.swap_words(clean, 0.4, 0),
    }
    for row in rows_of("topics.csv"):
        name = "mode collapse" + " (LSA)" * (row["embedder"] == "LSA")
        kept = [i for i in pool if int(row["topics"][i]) in order[3:]]
        samples[name, 0.6] = corpus[np.array(kept[: 2 * size])]
    for (damage, strength), texts in samples.items():
        first, second = texts[:size], texts[size:]
        values = {
            "BLEU-2": bleu(first, known, 2)[-1],
            "Self-BLEU-2": self_bleu(first, 2)[-1],
            "Two-sample-BLEU-2": bleu(second, first, 2)[-1],
            "CND-2": cnd(first, known, 2, estimator="plug-in"),
            "MS-Jaccard-2": ms_jaccard(first, known, 2)[-1],
        }
        expected = [table[damage, strength, 0, name] for name in values]
        np.testing.assert_allclose([*values.values()], expected, rtol=1e-4)  # 5 digits


@pytest.mark.slow
def test_distances_and_a_reverse_score_measured_anew(script, table):
    references, samples = script.damaged(script.SIZE, script.SIZE, 1)
    one_topic = samples["mode collapse", 0.8]
    found = frechet_distance(embed(one_topic), embed(references))
    expected = table["mode collapse", 0.8, 1, "Frechet MiniLM"]
    assert found == pytest.approx(expected, rel=1e-3)
    # A fitted model's last digits depend on the machine.
    size = load("make_reverse_scores").SIZE
    references, samples = script.damaged(size, size, 1)
    score = reverse_lm_score(samples["word dropout", 1.0], references, seed=1)
    scores = frame("reverse_scores.csv").set_index(KEYS[:3]).per_token
    expected = scores["word dropout", 1.0, 1]
    assert score.per_token.value == pytest.approx(expected, rel=1e-2)
