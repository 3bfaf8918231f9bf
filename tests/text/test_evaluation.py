"""The evaluation: each metric on its own, empty sentences, and its line for a paper."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from models import MODEL, REAL

from qdtheory.text import (
    as_corpus,
    bleu,
    cnd,
    coverage_rate,
    distinct,
    evaluate,
    jackknife_interval,
    ms_jaccard,
    negative_repetition_rate,
    self_bleu,
)
from qdtheory.text.evaluation import RANGES


def test_values_and_intervals_are_those_of_each_metric(found):
    metrics = {
        "BLEU": lambda c, n: bleu(c, REAL, n, "epsilon")[n - 1],
        "Self-BLEU": lambda c, n: self_bleu(c, n, "epsilon")[n - 1],
        "CR": lambda c, n: coverage_rate(c, REAL, n, "pairs"),
        "NRR": lambda c, n: negative_repetition_rate(c, n, "pairs"),
        "CND": lambda c, n: cnd(c, REAL, n, "pairs"),
        "distinct": distinct,
        "MS-Jaccard": lambda c, n: ms_jaccard(c, REAL, n)[n - 1],
    }
    assert found.metrics == tuple(f"{name}-{n}" for name in metrics for n in (1, 2))
    scores = found.scores["half"]
    for position, (name, n) in enumerate((m, n) for m in metrics for n in (1, 2)):
        expected = jackknife_interval(
            lambda c, m=metrics[name], n=n: m(c, n), MODEL[:30], bounds=RANGES[name]
        )
        for name in ("value", "low", "high", "standard_error"):
            assert getattr(scores, name)[position] == pytest.approx(
                getattr(expected, name), rel=1e-12
            )


def test_the_line_for_a_paper(found):
    assert found.methods == (
        "BLEU and Self-BLEU (orders 1 to 2, means of sentence scores, zero counts set "
        "to 0.1, Self-BLEU leave-one-out), CR, NRR and CND (n-grams of different "
        "sentences), distinct and MS-Jaccard of 30 to 60 sentences against 60 "
        "references; tokens as they came; 95% jackknife intervals over the "
        f"candidates; qdtheory {version('qdtheory')}, JAX {version('jax')}, "
        f"NumPy {version('numpy')}"
    )


EMPTY = [*MODEL[:25], [], [], *MODEL[25:50], []]


def test_empty_texts_are_scored_and_counted():
    found = evaluate({"model": EMPTY, "full": MODEL[:53]}, [*REAL, []], 2)
    assert found.sizes == {"model": 53, "full": 53}
    assert found.empty == {"model": 3, "full": 0}
    assert (found.num_references, found.num_empty_references) == (61, 1)
    assert found.methods.endswith(
        "; empty sentences scored, with BLEU 0: model 3, full 0, references 1"
    )
    value = dict(zip(found.metrics, found.scores["model"].value, strict=True))
    rest = evaluate({"model": EMPTY}, [*REAL, []], 2, empty="skip")
    other = dict(zip(rest.metrics, rest.scores["model"].value, strict=True))
    for n in (1, 2):
        # Zeros in the mean of 53; nothing in the counts of n-grams.
        assert value[f"BLEU-{n}"] < other[f"BLEU-{n}"]
        assert value[f"Self-BLEU-{n}"] < other[f"Self-BLEU-{n}"]
        for name in ("CR", "NRR", "CND", "distinct"):
            assert value[f"{name}-{n}"] == other[f"{name}-{n}"]
        assert value[f"MS-Jaccard-{n}"] != other[f"MS-Jaccard-{n}"]
    entry = json.loads(found.to_json())
    assert entry["candidates"]["model"]["empty"] == 3
    assert entry["empty_references"] == 1


def test_skipping_gives_the_numbers_of_the_texts_that_are_left():
    rest = evaluate({"model": EMPTY}, [[], *REAL], 2, empty="skip")
    clean = evaluate({"model": MODEL[:50]}, REAL, 2)
    for name in ("value", "low", "high", "standard_error"):
        assert (
            getattr(rest.scores["model"], name).tolist()
            == getattr(clean.scores["model"], name).tolist()
        )
    assert rest.sizes == clean.sizes == {"model": 50}
    assert rest.empty == {"model": 3}
    assert rest.num_empty_references == 1
    assert rest.methods == (
        f"{clean.methods}; empty sentences skipped: model 3, references 1"
    )


@pytest.mark.parametrize("estimator", ["plug-in", "pairs"])
def test_intervals_end_where_the_range_of_a_metric_does(estimator):
    texts = ["a b", "a b", "c d e", "a b", "a"]
    found = evaluate({"few": texts}, ["a b", "a b", "b a"], 2, estimator=estimator)
    low, high = found.scores["few"].low, found.scores["few"].high
    lowest = {"NRR": -1, "CND": 0 if estimator == "plug-in" else -2}
    highest = {"NRR": 0, "CND": 2}
    cut = 0
    for name, a, b in zip(found.metrics, low, high, strict=True):
        kind = name[: name.rindex("-")]
        ends = lowest.get(kind, 0), highest.get(kind, 1)
        assert ends[0] <= a <= b <= ends[1]
        cut += (a == ends[0]) + (b == ends[1])
    assert cut >= 5


def test_few_sentences_and_steps():
    steps = []
    found = evaluate({"few": ["a b", "b a", "a b"]}, ["a b"] * 2, 1, step=steps.append)
    assert steps == ["Counting n-grams of order 1"]
    assert found.sizes == {"few": 3}


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        ({}, {}, "at least one set of candidates"),
        ({"one.txt": ["a b"]}, {}, "^one.txt: Self-BLEU .* at least 3 .*, got 1"),
        ({"x": [""]}, {}, "^x: expected at least one sentence with a token"),
        ({"x": ["", " ", "\t"]}, {}, "^x: expected at least one sentence with a"),
        ({"x": ["a b"] * 4}, {"empty": "drop"}, 'empty: expected "keep" or "skip"'),
        ({"x": ["a"] * 4}, {}, "^x: no sentence has 2 tokens"),
        ({"x": [[5], [5, 1], [1, 5], [5]]}, {}, "^x: pairs need .* two sentences"),
        ({"x": as_corpus(MODEL)}, {"level": 2}, "^level: expected"),
        ({"x": MODEL}, {"smoothing": "add-one"}, "^smoothing: expected"),
        ({"x": MODEL}, {"estimator": "all"}, "^estimator: expected"),
    ],
)
def test_bad_input(as_a_user, candidates, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(candidates, REAL, 2, **options)


@pytest.mark.usefixtures("as_a_user")
def test_the_page_on_reporting_shows_the_line_that_is_printed():
    page = (Path(__file__).parents[2] / "docs/what_to_report.md").read_text()
    shown = " ".join(page.replace("\n>", "\n").split())
    texts = ["a b c d", "b c d a", "c d a b", "d a b c"]
    found = evaluate({"held_out.txt": texts * 500}, texts * 1000)
    told = found.methods
    for name in ("qdtheory", "JAX", "NumPy"):
        told = told.replace(f"{name} {version(name.lower())}", f"{name} VERSION")
    assert told in shown
