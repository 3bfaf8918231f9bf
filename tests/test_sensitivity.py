"""The damages of make_sensitivity.py, and figures of its table measured anew."""

from itertools import product

import numpy as np
import pytest
from scripts import frame
from scripts import script as load

from qdtheory.text import Corpus, as_corpus, imdb, prepare
from qdtheory.text.evaluation import every_metric

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
def table():
    return frame("sensitivity.csv").set_index(KEYS).value.to_dict()


def test_the_table_is_whole(script, table):
    damages = ("mode collapse", "word dropout", "word swap")
    names = [*script.NAMES, "Frechet MiniLM"]
    repeats = range(script.REPEATS)
    assert set(table) == set(product(damages, script.STRENGTHS, repeats, names))
    for repeat, name in product(repeats, names):
        assert len({table[damage, 0.0, repeat, name] for damage in damages}) == 1


def test_measured_anew(script, table):
    corpus = prepare(imdb(), min_length=5, max_length=20, seed=0)
    rng = np.random.default_rng(0)
    references, pool = np.split(rng.permutation(len(corpus)), [script.SIZE])
    metrics = every_metric(corpus[references], script.MAX_ORDER, None, "plug-in")
    clean = corpus[pool[: script.SIZE]]
    for damage, texts in {
        "word dropout": script.drop_words(clean, 0.3, 0),
        "word swap": script.swap_words(clean, 0.3, 0),
    }.items():
        values = metrics(texts).ravel()
        expected = [table[damage, 0.3, 0, name] for name in script.NAMES]
        np.testing.assert_allclose(values, expected, rtol=1e-5)  # six digits are stored
