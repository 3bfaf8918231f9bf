"""The damages and the embedders of make_sensitivity.py, and its table made anew."""

from itertools import product

import numpy as np
import pytest
from lab.corpora import (
    embed,
    fit_language_model,
    frechet_distance,
    imdb,
    prepare,
    reverse_lm_score,
)
from scipy.special import expit
from scripts import frame, rows_of
from scripts import script as load

from qdtheory.text import (
    Corpus,
    as_corpus,
    bleu,
    cnd,
    ms_jaccard,
    self_bleu,
)

KEYS = ["damage", "strength", "repeat", "metric"]
DAMAGES = ("mode collapse", "word dropout", "word swap")
EMBEDDERS = ("MiniLM", "LSA", "LSTM")


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
    known, clean = corpus[references], corpus[pool[: 2 * size]]
    samples = {
        ("word dropout", 0.4): script.drop_words(clean, 0.4, 0),
        ("word swap", 0.4): script.swap_words(clean, 0.4, 0),
    }
    for row in rows_of("topics.csv"):
        name = "mode collapse" + " (LSA)" * (row["embedder"] == "LSA")
        kept = [i for i in pool if int(row["topics"][i]) in (3, 4)]
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


@pytest.fixture(scope="module")
def samples():
    """(damage, metric) -> values, a row for each strength, a column for each repeat."""
    return {
        key: rows.pivot(index="strength", columns="repeat", values="value")
        for key, rows in frame("sensitivity.csv").groupby(["damage", "metric"])
    }


@pytest.mark.claim("N15.18")
def test_damage_of_sentences_is_seen_by_joint_metrics_and_not_by_words(samples):
    for damage in DAMAGES:
        # On average at each strength at least as bad as undamaged.
        for metric in ("CND-2", "CND-3", *(f"Frechet {name}" for name in EMBEDDERS)):
            assert (np.diff(samples[damage, metric].mean(axis=1)[:5]) > 0).all()
        assert samples[damage, "MS-Jaccard-2"].mean(axis=1).argmax() == 0
    for kind in ("BLEU", "Self-BLEU", "CR", "NRR", "CND", "distinct", "MS-Jaccard"):
        assert not np.ptp(samples["word swap", f"{kind}-1"], axis=0).any()
        assert np.ptp(samples["word swap", f"{kind}-2"], axis=0).all()
    # Sentences of our own, shuffled: words stay, pairs do not.
    rng = np.random.default_rng(18)
    sentences = rng.choice(list("abcdefg"), (60, 6), p=np.arange(1, 8) / 28)
    sentences = np.sort(sentences, axis=1)
    shuffled = rng.permuted(sentences, axis=1).tolist()
    references = np.sort(rng.permuted(sentences, axis=0), axis=1).tolist()
    sentences = sentences.tolist()
    for metric in (ms_jaccard, bleu):
        before, after = (
            np.asarray(metric(x, references, 2)) for x in (sentences, shuffled)
        )
        assert before.ravel()[0] == pytest.approx(after.ravel()[0], abs=1e-12)
        assert before.ravel()[-1] > after.ravel()[-1] + 0.05
    falls = [self_bleu(x, 2)[1] for x in (sentences, shuffled)]
    assert falls[1] < falls[0]


@pytest.mark.claim("N15.21", recount=True)
def test_the_reverse_score_sees_words_before_topics():
    """By slopes and intervals, repeat by repeat."""
    table = frame("reverse_scores.csv").set_index(KEYS[:3])
    for repeat in range(5):
        at = table.xs(repeat, level="repeat")
        slopes = {
            damage: np.polyfit(x.index, x.per_token, 1)[0]
            for damage in DAMAGES
            for x in [at.loc[damage].loc[:0.8]]
        }
        assert 0 < slopes["mode collapse"] < slopes["word swap"]
        assert slopes["word swap"] < slopes["word dropout"]
        clean, one, two, *_, four = at.loc["mode collapse"].itertuples()
        assert clean.low < one.per_token < clean.high  # within its interval
        assert clean.per_token < two.per_token < at.loc["word dropout", 0.2].per_token
        assert four.per_token > clean.high


@pytest.mark.claim("N15.23")
def test_which_topic_is_left_decides_what_bleu_says(samples):
    """With topics by LSA and other orders too, where distances rise in each repeat."""
    for damage in ("mode collapse", "mode collapse (LSA)"):
        for order in (2, 3, 4):
            real, *_, left = samples[damage, f"BLEU-{order}"].to_numpy()
            assert left.min() < real.min() <= real.max() < left.max()
            assert abs(left.mean() / real.mean() - 1) < 0.25
            again = samples[damage, f"Two-sample-BLEU-{order}"].to_numpy()
            assert 0 < (again[-1] < again[0]).sum() < 5
        for name in EMBEDDERS:
            real, *_, left = samples[damage, f"Frechet {name}"].to_numpy()
            assert (left > real).all()
    # BLEU of a sample is the mean of its parts', by their sizes.
    first, second, references = (random_sentences(k, 30 * k) for k in (1, 2, 3))
    both = as_corpus([*first, *second])
    parts = [bleu(x, references) for x in (first, second)]
    np.testing.assert_allclose(
        bleu(both, references), np.average(parts, axis=0, weights=[30, 60]), rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.claim("N15.24", "N15.25")
def test_what_costs_more_depends_on_the_metric_and_its_embedder(script, embedders):
    """600 other sentences, and an LSA of 5,000."""
    references, found = script.damaged(600, 600, 7)
    kinds = ("word swap", 0.0), *zip(DAMAGES, (0.8, 0.6, 0.6), strict=True)
    values = {"BLEU": [-bleu(found[kind], references)[-1] for kind in kinds]}
    lsa = embedders.latent_semantics(script.sentences()[-5000:], 64, 5)
    for name, embedder in {"MiniLM": embed, "LSA": lsa}.items():
        real = embedder(references)
        values[name] = [
            frechet_distance(embedder(found[kind]), real) ** 2 for kind in kinds
        ]
    rises = {name: np.subtract(x[1:], x[0]) for name, x in values.items()}
    topics, drop, swap = (dict(zip(rises, x)) for x in zip(*rises.values()))
    assert min(*drop.values(), *swap.values()) > 0
    assert swap["BLEU"] > drop["BLEU"]
    for name in ("MiniLM", "LSA"):
        assert swap[name] < 0.6 * drop[name]
    assert topics["MiniLM"] < 1.5 * drop["MiniLM"]
    assert topics["LSA"] > 2 * drop["LSA"]


@pytest.mark.slow
@pytest.mark.claim("N15.26")
def test_more_references_do_not_hide_topics_or_dropped_words_from_bleu(script):
    """Pooled, of other sentences and of LSA's topics, by 10,000 and 500."""
    corpus = prepare(imdb(), min_length=5, max_length=20, seed=0)
    topic = script.topics()["LSA"]
    pool, others = np.split(np.random.default_rng(26).permutation(len(corpus)), [9000])
    kinds = [corpus[pool[topic[pool] == k]] for k in range(5)]
    clean = corpus[pool]
    kinds.append(script.drop_words(clean, 0.2, 26))
    few, many = (
        np.array([bleu(x, corpus[others[:n]], aggregate="pooled")[-1] for x in kinds])
        / bleu(clean, corpus[others[:n]], aggregate="pooled")[-1]
        for n in (500, 10_000)
    )
    assert few[:5].min() < many[:5].min() < 0.9 < 1.2 < many[:5].max()
    assert max(few[5], many[5]) < 0.9
