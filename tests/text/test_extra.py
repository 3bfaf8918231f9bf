"""Metrics on request are those of their own functions, with intervals and groups."""

import json

import numpy as np
import pytest
from referees.corpus_metrics import without_each_group
from refusals import refused

from qdtheory import text
from qdtheory.metrics.catalogue import find_metric
from qdtheory.text import embeddings, extra
from qdtheory.text.defaults import REQUESTED

REAL = [f"a {x} {y} end" for x in "bcde" for y in "fghi"] * 2
ONE = [f"a {x} {y} end" for x in "bcbb" for y in "fggi"] * 2
OTHER = [f"{x} a {y} end" for x in "bcde" for y in "ffff"] * 2


def features(texts):
    """Stand-ins for embeddings: counts of letters, without the empty sentences."""
    corpus = text.as_corpus(texts, "skip")
    rows = [[" ".join(s).count(c) + 0.01 for c in "abcdefghi"] for s in corpus]
    return np.array(rows, np.float32)


@pytest.fixture
def letters(monkeypatch):
    monkeypatch.setattr(extra, "embed", features)


def report(*extra, candidates=None, real=REAL, **settings):
    candidates = candidates or {"one": ONE, "other": OTHER}
    return text.evaluate(candidates, real, max_order=2, extra=extra, **settings)


def test_frechet_and_vendi_are_those_of_the_functions(letters):
    found = report("embeddings", level=0.9)
    assert found.metrics[-2:] == ("Frechet MiniLM", "Vendi MiniLM")
    for name, texts in (("one", ONE), ("other", OTHER)):
        rows = features(texts)
        values = [text.frechet_distance(rows, features(REAL)), text.vendi_score(rows)]
        assert found.scores[name].value[-2:].tolist() == pytest.approx(values)

        real, rests = features(REAL), without_each_group(rows)
        own = [(text.frechet_distance(x, real), text.vendi_score(x)) for x in rests]
        theirs = [text.frechet_distance(rows, x) for x in without_each_group(real)]
        variance = 19 * np.var(own, axis=0) + [19 * np.var(theirs), 0]
        told = found.scores[name].standard_error[-2:]
        np.testing.assert_allclose(told, np.sqrt(variance), rtol=1e-9)
        np.testing.assert_allclose(found.left_out[name][:, -2:], own, rtol=1e-9)
        np.testing.assert_allclose(found.real_left_out[name][:, -2], theirs, rtol=1e-9)
    assert "MiniLM's features" in found.methods


def test_empty_sentences_have_no_features_and_others_keep_their_groups(letters):
    texts = ["", *ONE[:20], "", *ONE[20:]]
    found = report("embeddings", candidates={"x": texts})
    value = found["x"]["Vendi MiniLM"].value
    assert value == pytest.approx(text.vendi_score(features(ONE)))
    assert found.left_out["x"].shape == (20, len(found.metrics))
    assert np.isfinite(found.left_out["x"]).all()


def test_paired_metrics_are_means_over_rows():
    found = report("paired")
    for name, texts in (("one", ONE), ("other", OTHER)):
        scores = found[name]
        for n, value in enumerate(text.paired_bleu(texts, REAL, 2), start=1):
            assert scores[f"paired BLEU-{n}"].value == pytest.approx(value)
        for n, value in enumerate(text.rouge(texts, REAL, 2).f1, start=1):
            assert scores[f"ROUGE-{n}"].value == pytest.approx(value)
    # Sentences at the same place: the rows of both candidates answer one another.
    both = found.compare("one", "other", paired=True)
    rows = [text.rouge_scores(x, REAL, 2).f1[:, 0] for x in (ONE, OTHER)]
    error = (rows[0] - rows[1]).std(ddof=1) / np.sqrt(len(REAL))
    i = both.metrics.index("ROUGE-1")
    assert both.difference.standard_error[i] == pytest.approx(error, rel=0.5)
    assert both.difference.value[i] == pytest.approx((rows[0] - rows[1]).mean())


@pytest.mark.parametrize("name", REQUESTED)
def test_metrics_of_one_sample_are_those_of_the_functions(name):
    asked = REQUESTED[name]
    metric = getattr(text, asked.function)
    rng, samples = np.random.default_rng(0), {}
    for candidate, words in {"one": [*"abc"], "other": [*"abcdef"]}.items():
        sizes = rng.integers(4, 9, 40)
        samples[candidate] = [" ".join(rng.choice(words, size)) for size in sizes]
    found = report(name, candidates=samples, real=samples["other"], level=0.9)
    for candidate, texts in samples.items():
        assert found[candidate][name] == text.jackknife_interval(
            metric, texts, level=0.9, bounds=asked.bounds
        )
    # The sample of more words is more diverse, copies of the references or not.
    assert found.compare("one", "other").better(name) == "other"
    assert (f"{name};" in found.legend()) == asked.lower
    assert f"{name} of each sample" in found.methods
    path = f"{metric.__module__}.{asked.function}".removeprefix("qdtheory.")
    assert path in find_metric(name).functions


def test_a_metric_of_one_sample_that_few_groups_change_has_no_interval():
    texts = [f"a{i} b{i} c{i} d{i}" for i in range(40)]
    texts[:2] = texts[2:4]
    found = report("self-repetition", candidates={"x": texts}, real=texts)
    assert found["x"]["self-repetition"].value > 0
    assert np.isnan(found["x"]["self-repetition"].low)
    assert "no interval of self-repetition of x: fewer than 5" in found.warnings[-1]


@pytest.mark.slow
def test_lm_scores_are_those_of_the_functions_and_are_not_compared():
    one, real = 2 * ONE, 2 * REAL
    found = report(
        "language-model",
        candidates={"one": one, "other": 2 * OTHER},
        real=real,
        level=0.9,
    )
    known = text.known_words(real)
    forward = text.cross_entropy_of(
        one, text.fit_language_model(real, vocabulary=known)
    ).per_token
    backward = text.cross_entropy_of(
        real, text.fit_language_model(one, vocabulary=known)
    ).per_token
    for name, score in (("LM score", forward), ("reverse LM score", backward)):
        ours = found["one"][name]
        assert ours.value == pytest.approx(score.value, rel=1e-6)
        assert ours.standard_error == pytest.approx(score.standard_error, rel=1e-6)
        share = (ours.high - ours.low) / (score.high - score.low)
        assert share == pytest.approx(1.6449 / 1.96, rel=1e-3)
    compared = found.compare("one", "other").metrics
    assert [name for name in found.metrics if name not in compared] == [
        "LM score",
        "reverse LM score",
    ]
    assert "CND, LM score and reverse LM score;" in found.legend()
    # Few sentences are fitted too.
    few = report("language-model", candidates={"one": ONE[:9], "other": OTHER[:9]})
    assert np.isfinite(few["one"]["reverse LM score"].value)


def logs(rng, real, own):
    """Log P and log Q of texts of both laws, which are over three texts here."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    texts = rng.choice(3, real, p=p), rng.choice(3, own, p=q)
    return [np.log(law)[x] for x in texts for law in (p, q)]


def test_bhattacharyya_is_that_of_its_function_with_its_interval():
    rng = np.random.default_rng(0)
    given = {"one": logs(rng, 32, 32), "other": logs(rng, 32, 32)}
    found = report(log_probabilities=given, level=0.9)
    assert found.metrics[-1] == "Bhattacharyya"
    for name, some in given.items():
        direct = text.estimate_bhattacharyya(*some, level=0.9)
        ours = found[name]["Bhattacharyya"]
        assert (ours.value, ours.low, ours.high) == pytest.approx(
            (direct.value, direct.low, direct.high)
        )
    # The delta method: of the log of a mean, halved, over both samples.
    p, q, own_p, own_q = given["one"]
    terms = np.exp((q - p) / 2), np.exp((own_p - own_q) / 2)
    variance = sum(x.var(ddof=1) / x.mean() ** 2 / len(x) / 4 for x in terms)
    error = found["one"]["Bhattacharyya"].standard_error
    assert error == pytest.approx(np.sqrt(variance), rel=0.5)
    assert "Bhattacharyya" in found.compare("one", "other").metrics
    assert "Bhattacharyya;" in found.legend()
    assert "log-probabilities" in found.methods
    entry = json.loads(found.to_json())["candidates"]["one"]["metrics"]
    assert entry["Bhattacharyya"]["value"] == found["one"]["Bhattacharyya"].value
    assert found.to_frame().metric.tolist().count("Bhattacharyya") == 2
    assert "<th scope='row'>Bhattacharyya" in found.to_html()


def test_laws_without_a_common_text_are_infinitely_far():
    apart = [np.zeros(32), np.full(32, -np.inf), np.full(32, -np.inf), np.zeros(32)]
    found = report(candidates={"one": ONE}, log_probabilities={"one": apart})
    ours = found["one"]["Bhattacharyya"]
    assert (ours.value, ours.high) == (np.inf, np.inf)
    assert np.isnan(ours.standard_error)
    entry = json.loads(found.to_json())["candidates"]["one"]["metrics"]
    assert entry["Bhattacharyya"]["value"] is None
    for shown in (found.to_text(), found.to_markdown(), found.to_latex()):
        assert "inf" in shown


def test_bad_extra(as_a_user):
    def asked(**settings):
        return lambda: text.evaluate({"one": ONE[:-1]}, REAL, max_order=2, **settings)

    def given(one):
        return asked(log_probabilities={"one": one})

    zeros = np.zeros(32)
    shapes = (
        "one: log_probabilities: expected log P and log Q of the 32 references, then "
        "of its 31 sentences, got shapes [(32,), (32,), (32,), (32,)]"
    )
    refused(
        ("expected some of 'embeddings', 'language-mod", asked(extra=["bertscore"])),
        ("one: paired metrics need a reference for each", asked(extra=["paired"])),
        (
            "for the candidates one, got them for two",
            asked(log_probabilities={"two": []}),
        ),
        (shapes, given([zeros] * 4)),
        ("one: real_log_p: expected log-p", given([zeros + 1] * 2 + [zeros[1:]] * 2)),
    )


def test_an_unknown_metric_is_refused_before_a_sentence_is_read(as_a_user):
    sentences = iter(ONE)
    with pytest.raises(ValueError, match="extra: expected some of"):
        text.evaluate({"one": sentences}, REAL, extra=["paired", "bertscore"])
    assert next(sentences) == ONE[0]


def test_the_real_embeddings_are_asked_for():
    assert extra.embed is embeddings.embed
