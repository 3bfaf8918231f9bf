"""Tables of metrics of texts made anew, by counting or on other sentences."""

from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import corpora
from scipy.special import expit
from scripts import frame, published
from scripts import script as load

from qdtheory import text
from qdtheory.text import as_corpus, bleu, cnd, ms_jaccard, self_bleu

table = cache(frame)
DAMAGES = "mode collapse", "word dropout", "word swap"
EMBEDDERS = "MiniLM", "LSA", "LSTM"


def jaccard(candidates, references, max_order):
    """MS-Jaccard up to each order by hand: counts per sentence."""
    found = []
    for n in range(1, max_order + 1):
        q, p = (
            Counter(x[i : i + n] for x in corpus for i in range(len(x) - n + 1))
            for corpus in (candidates, references)
        )
        pairs = [(q[g] / len(candidates), p[g] / len(references)) for g in q | p]
        found.append(sum(map(min, pairs)) / sum(map(max, pairs)))
    return np.exp(np.cumsum(np.log(found)) / np.arange(1, max_order + 1))


# --- the noise family, samples of models, rows of real text -------------------------


def real_row(min_count, candidates, corpus="IMDB"):
    """MS-Jaccard of orders 2 to 5, with half as many references."""
    rows = frame("real_row.csv").query("metric == 'MS-Jaccard' and corpus == @corpus")
    rows = rows.query("min_count == @min_count and candidates == @candidates")
    return rows[rows.references == candidates // 2].value.to_numpy()[1:]


@pytest.mark.claim("N10.47")
def test_real_text_of_the_other_tables_has_more_in_common_the_larger_it_is():
    """Reviews are counted anew by hand; news and reviews of a tenth of the size."""
    reviews, news = (
        [published("montahaei2019", t, "Real Data", f"MSJ{n}") for n in (2, 3, 4, 5)]
        for t in "32"
    )
    few, many = (real_row(k, 20000) for k in (17, 50))
    assert ((few < reviews) & (reviews < many)).all()
    assert (real_row(3, 6424, "news") < np.array(news) - 0.015).all()
    rule = {"rare": "unk", "max_unknown": 4, "min_length": 5, "max_length": 40}
    real = corpora.imdb(sentences_per_review=2)
    real = corpora.prepare(real, min_count=17, **rule, seed=0)
    part, whole = (
        jaccard(real[:a], real[20000 : 20000 + a // 2], 2)[1] for a in (3212, 20000)
    )
    assert few[0] == pytest.approx(whole, rel=1e-5)
    # What half of the news' sentences of reviews lack is more than the news lack.
    assert part < few[0] - 0.126


def behind_noise(points):
    """Real text behind a cubic through the noise, over its width and over quality."""
    (u, v), *curve = points
    x, y = np.transpose(curve)
    return (np.polyval(np.polyfit(y, x, 3), v) - u) / [np.ptp(x), u]


@pytest.mark.claim("N10.56")
def test_real_text_is_closer_to_the_noise_in_cr_than_in_bleu():
    """Captions in the table; anew on reviews, of which 8,000 a side are few."""
    real = corpora.prepare(corpora.imdb(), min_count=50, rare="unk", seed=56)
    source = real[np.random.default_rng(56).integers(8000, 16000, size=8000)]
    family = corpora.noise_family(source, shares=(0, 0.2, 0.4, 0.6), length=5)
    captions, reviews = [], []
    for pair, t in table("noise_plane.csv").groupby("pair"):
        captions.append(behind_noise(t[["quality", "diversity"]].to_numpy()))
        u, v = load("make_table2").metrics(pair, real[8000:16000])(3)
        points = [(u(x, None), v(x)) for x in (real[:8000], *family.corpora)]
        reviews.append(behind_noise(points))
    expected = [(0.117, 0.084), (0.036, 0.012)]
    np.testing.assert_allclose(captions, expected, atol=5e-4)
    assert reviews[0][1] > 3 * abs(reviews[1][1])


TEXTS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=2, max_size=5), min_size=1, max_size=6
)


@pytest.mark.claim("N10.39")
@given(TEXTS, TEXTS, TEXTS, st.integers(1, 2))
def test_more_of_cr_and_nrr_is_less_cnd(one, other, references, n):
    def all_three(x):
        quality = text.coverage_rate(x, references, n)
        diversity = text.negative_repetition_rate(x, n, "plug-in")
        return np.array([quality, diversity, cnd(x, references, n, "plug-in")])

    quality, diversity, distance = all_three(one) - all_three(other)
    assert distance == pytest.approx(-2 * quality - diversity, abs=1e-14)
    assert distance < 0 or min(quality, diversity) <= 1e-14


# --- damaged texts ------------------------------------------------------------------


def random_sentences(seed, size, words="abcdefgh"):
    rng = np.random.default_rng(seed)
    return as_corpus([[*rng.choice([*words], rng.integers(1, 9))] for _ in range(size)])


def test_lstm_states_are_the_greatest_along_a_sentence():
    training, new = random_sentences(0, 60), random_sentences(1, 9, "abcdefghz")
    options = {"min_count": 2, "max_epochs": 1, "hidden_size": 4}
    fitted = corpora.fit_language_model(training, **options)
    model = fitted.model
    inputs = np.asarray(model.embeddings @ model.input_weights + model.gate_biases)

    def greatest(sentence):
        known = [w if w in fitted.vocabulary else "<unk>" for w in sentence]
        h, c, states = np.zeros(4), np.zeros(4), []
        # The end token stands before the first word.
        for i in (-1, *map(fitted.vocabulary.index, known)):
            *gates, cell = np.split(inputs[i] + h @ model.recurrent_weights, 4)
            write, keep, show = expit(gates)
            c = keep * c + write * np.tanh(cell)
            h = show * np.tanh(c)
            states.append(h)
        return np.max(states[1:], axis=0)

    found = load("embedders").lstm_states(training, **options)(new)
    np.testing.assert_allclose(found, [greatest(x) for x in new], atol=1e-12)


def measured(damage, metric):
    """A row for each strength, a column for each repeat."""
    rows = table("sensitivity.csv").query("damage == @damage and metric == @metric")
    return rows.pivot(index="strength", columns="repeat", values="value")


@pytest.mark.claim("N15.18")
def test_damage_of_sentences_is_seen_by_joint_metrics_and_not_by_words():
    for damage in DAMAGES:
        # On average at each strength at least as bad as undamaged.
        for metric in ("CND-2", "CND-3", *(f"Frechet {name}" for name in EMBEDDERS)):
            assert (np.diff(measured(damage, metric).mean(axis=1)[:5]) > 0).all()
        assert measured(damage, "MS-Jaccard-2").mean(axis=1).argmax() == 0
    for kind in ("BLEU", "Self-BLEU", "CR", "NRR", "CND", "distinct", "MS-Jaccard"):
        assert not np.ptp(measured("word swap", f"{kind}-1"), axis=0).any()
        assert np.ptp(measured("word swap", f"{kind}-2"), axis=0).all()
    # Sentences of our own, shuffled: words stay, pairs do not.
    rng = np.random.default_rng(18)
    plain = rng.choice(list("abcdefg"), (60, 6), p=np.arange(1, 8) / 28)
    plain = np.sort(plain, axis=1)
    references = np.sort(rng.permuted(plain, axis=0), axis=1).tolist()
    both = plain.tolist(), rng.permuted(plain, axis=1).tolist()
    for metric in (ms_jaccard, bleu):
        before, after = (np.ravel(metric(x, references, 2)) for x in both)
        assert before[0] == pytest.approx(after[0], abs=1e-12)
        assert before[-1] > after[-1] + 0.05
    assert self_bleu(both[1], 2)[1] < self_bleu(both[0], 2)[1]


@pytest.mark.claim("N15.23")
@pytest.mark.parametrize("damage", ["mode collapse", "mode collapse (LSA)"])
def test_which_topic_is_left_decides_what_bleu_says(damage):
    """With topics by LSA and other orders too, where distances rise in each repeat."""
    for order in (2, 3, 4):
        real, *_, left = measured(damage, f"BLEU-{order}").to_numpy()
        assert left.min() < real.min() <= real.max() < left.max()
        assert abs(left.mean() / real.mean() - 1) < 0.25
        again = measured(damage, f"Two-sample-BLEU-{order}").to_numpy()
        assert 0 < (again[-1] < again[0]).sum() < 5
    for name in EMBEDDERS:
        real, *_, left = measured(damage, f"Frechet {name}").to_numpy()
        assert (left > real).all()
    # BLEU of a sample is the mean of its parts', by their sizes.
    first, second, references = (random_sentences(k, 30 * k) for k in (1, 2, 3))
    parts = [bleu(x, references) for x in (first, second)]
    whole = bleu(as_corpus([*first, *second]), references)
    np.testing.assert_allclose(whole, np.average(parts, axis=0, weights=[1, 2]), 1e-12)


@pytest.mark.slow
@pytest.mark.claim("N15.24", "N15.25")
def test_what_costs_more_depends_on_the_metric_and_its_embedder():
    """600 other sentences, and an LSA of 5,000."""
    script = load("make_sensitivity")
    references, found = script.damaged(600, 600, 7)
    kinds = ("word swap", 0.0), *zip(DAMAGES, (0.8, 0.6, 0.6), strict=True)
    real, *kinds = (found[kind] for kind in kinds)

    def rises(cost):
        return [cost(x) - cost(real) for x in kinds]

    topics, drop, swap = rises(lambda x: -bleu(x, references)[-1])
    assert swap > drop > 0
    lsa = load("embedders").latent_semantics(script.sentences()[-5000:], 64, 5)
    for embed, low, high in ((corpora.embed, -np.inf, 1.5), (lsa, 2, np.inf)):
        distance = partial(corpora.frechet_distance, embed(references))
        topics, drop, swap = rises(lambda x, f=embed, d=distance: d(f(x)) ** 2)
        assert 0 < swap < 0.6 * drop
        assert low < topics / drop < high


@pytest.mark.slow
@pytest.mark.claim("N15.26")
def test_more_references_do_not_hide_topics_or_dropped_words_from_bleu():
    """Pooled, of other sentences and of LSA's topics, by 10,000 and 500."""
    corpus = corpora.prepare(corpora.imdb(), min_length=5, max_length=20, seed=0)
    order, script = (
        np.random.default_rng(26).permutation(len(corpus)),
        load("make_sensitivity"),
    )
    topic, pool, others = script.topics()["LSA"], order[:9000], order[9000:]
    kinds = [corpus[pool[topic[pool] == k]] for k in range(5)]
    kinds += [script.drop_words(corpus[pool], 0.2, 26), corpus[pool]]
    few, many = (
        np.array([bleu(x, corpus[others[:n]], aggregate="pooled")[-1] for x in kinds])
        for n in (500, 10_000)
    )
    few, many = few / few[-1], many / many[-1]
    assert few[:5].min() < many[:5].min() < 0.9 < 1.2 < many[:5].max()
    assert max(few[5], many[5]) < 0.9
