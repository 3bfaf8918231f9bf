"""The evaluation: each metric on its own, where texts lie, and what is chosen."""

import inspect
import io
import json
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from lab import corpora
from models import MODEL, REAL
from referees.corpus_metrics import distinct_among, one_by_one, without_each_group
from refusals import refused
from scipy import stats

from qdtheory import text
from qdtheory.commands.evaluate import evaluate as command
from qdtheory.text import as_corpus, evaluate, ngram_counts, read_corpus
from qdtheory.text.defaults import Estimator
from qdtheory.text.evaluation import KINDS, RANGES


def test_values_and_intervals_are_those_of_each_metric():
    """BLEU is of these references; all others are over both samples."""
    found = evaluate({"model": MODEL, "half": MODEL[:30]}, REAL, max_order=2)
    assert found.metrics == tuple(f"{kind}-{n}" for kind in KINDS for n in (1, 2))
    ours, real = as_corpus(MODEL[:30]), as_corpus(REAL)

    def metrics(candidates, references):
        return np.ravel(one_by_one(candidates, references, 2))

    value = metrics(ours, real)
    own = np.array([metrics(x, real) for x in without_each_group(ours)])
    other = np.array([metrics(ours, x) for x in without_each_group(real)])
    other[:, :2] = value[:2]
    both = [(19 * x.var(axis=0)) for x in (own, other)]
    variance = sum(both)
    degrees = variance**2 / sum(x**2 / 19 for x in both)
    margins = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    rows = zip(found["half"].items(), value, np.sqrt(variance), margins)
    for (name, told), mean, error, margin in rows:
        assert told.value == pytest.approx(mean, rel=1e-12)
        kind = name[:-2]
        if kind == "distinct":  # every n-gram is in many groups
            assert np.isnan([told.low, told.high, told.standard_error]).all()
            continue
        assert told.standard_error == pytest.approx(error, rel=1e-9)
        ends = mean - margin, mean + margin
        if kind == "CR":  # the outer end is that of the logarithm
            ends = ends[0], mean * np.exp(margin / mean)
        if kind == "NRR":
            ends = mean * np.exp(-margin / mean), ends[1]
        low, high = np.clip(ends, *RANGES[kind])
        assert (told.low, told.high) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize("estimator", get_args(Estimator))
def test_neither_the_order_of_sentences_nor_the_names_of_words_change_a_value(
    estimator,
):
    def values(ours, real):
        return evaluate({"x": ours}, real, 2, estimator=estimator).scores["x"].value

    order = np.random.default_rng(0).permutation(60)
    shuffled = [[x[i] for i in order] for x in (MODEL, REAL[::-1])]
    renamed = [[[f"w{9 - t}" for t in x] for x in side] for side in (MODEL, REAL)]
    for both in (shuffled, renamed):
        np.testing.assert_allclose(values(*both), values(MODEL, REAL), rtol=1e-12)


def test_the_references_themselves_have_the_best_values():
    found = evaluate({"x": REAL}, REAL, 2, estimator="plug-in")["x"]
    for n in (1, 2):
        best = [found[f"{kind}-{n}"].value for kind in ("BLEU", "MS-Jaccard", "CND")]
        assert best == [1, 1, 0]
        assert found[f"CR-{n}"].value == -found[f"NRR-{n}"].value


EMPTY = [*MODEL[:25], [], [], *MODEL[25:50], []]


def test_empty_texts_are_scored_and_counted_or_skipped():
    found = evaluate({"model": EMPTY, "full": MODEL[:53]}, [*REAL, []], 2)
    assert found.sizes == {"model": 53, "full": 53}
    assert found.empty == {"model": 3, "full": 0}
    assert (found.num_references, found.num_empty_references) == (61, 1)
    entry = json.loads(found.to_json())
    assert (entry["candidates"]["model"]["empty"], entry["empty_references"]) == (3, 1)
    rest = evaluate({"model": EMPTY}, [[], *REAL], 2, empty="skip")
    clean = evaluate({"model": MODEL[:50]}, REAL, 2)
    assert rest.scores == clean.scores
    assert rest.sizes == clean.sizes == {"model": 50}
    assert (rest.empty, rest.num_empty_references) == ({"model": 3}, 1)
    # Zeros in the mean of 53; nothing in the counts of n-grams.
    for metric, x in rest["model"].items():
        gap = x.value - found["model"][metric].value
        same = "MS-Jaccard" not in metric
        assert gap > 0 if "BLEU" in metric else (gap == 0) == same


@pytest.mark.parametrize("estimator", ["plug-in", "pairs"])
def test_intervals_end_where_the_range_of_a_metric_does(estimator):
    texts = ["a b", "a b", "c d e", "a b", "a", "d", "d e", "c"]
    real = ["a b", "a b", "b a", "d", "d e", "c d", "b", "c"]
    found = evaluate({"few": texts}, real, 2, estimator=estimator)["few"]
    ranges = {"NRR": (-1, 0), "CND": (0 if estimator == "plug-in" else -2, 2)}
    cut = 0
    for name, x in found.items():
        low, high = ranges.get(name[: name.rindex("-")], (0, 1))
        assert np.isnan(x.low) or low <= x.low <= x.high <= high
        cut += (x.low == low) + (x.high == high)
    assert cut >= 3


@pytest.mark.claim("N12.36")
def test_means_over_pieces_are_those_of_the_whole_for_means_over_sentences_alone():
    """By the sums of all n-grams, where the lecture asks one function a metric."""
    words = np.random.default_rng(0).zipf(1.5, (900, 6)) % 50
    texts = [" ".join(map(str, row[: 2 + row[0] % 5])) for row in words]
    ours, real = texts[:600], texts[600:]
    pieces = {f"{k}": ours[k : k + 60] for k in range(0, 600, 60)}
    every = {"whole": ours} | pieces
    found = evaluate(every, real, max_order=2, estimator="sentence-pairs")

    def gap(metric):
        mean = np.mean([found[name][metric].value for name in pieces])
        return abs(mean / found["whole"][metric].value - 1)

    assert max(gap("BLEU-2"), gap("CR-2")) <= 1e-12
    assert min(gap("Self-BLEU-2"), gap("distinct-2")) > 0.1


@pytest.mark.parametrize("k", [1, 17, 100])
def test_distinct_k_is_that_of_the_binomials_with_the_jackknifes_error(k):
    sides = {"model": MODEL, "half": MODEL[:30]}
    found = evaluate(sides, REAL, 2, draws=k)
    assert found.metrics[-2:] == (f"distinct_{k}-1", f"distinct_{k}-2")
    for name, texts in sides.items():
        corpus = as_corpus(texts)
        for n in (1, 2):
            rests = [
                distinct_among(ngram_counts(x, n).counts.tolist(), k)
                for x in (corpus, *without_each_group(corpus))
            ]
            told = found[name][f"distinct_{k}-{n}"]
            assert told.value == pytest.approx(rests[0], rel=1e-11, abs=1e-11)
            column = found.left_out[name][:, n - 3]
            np.testing.assert_allclose(column, rests[1:], rtol=1e-12)
            error = np.sqrt(19) * np.std(rests[1:])
            if np.isnan(told.low):  # all that there are, whatever group is left out
                assert error < 1e-6
            else:
                close = pytest.approx(error, rel=1e-11, abs=1e-11)
                assert told.standard_error == close
                assert 1 <= told.low <= told.value <= told.high <= k


def test_distinct_k_is_left_out_where_a_sample_has_fewer_ngrams():
    texts = [["a", "b", "c"]] * 340  # 969 unigrams without a group, 1,020 in all
    assert evaluate({"x": texts}, texts, 1).metrics[-1] == "MS-Jaccard-1"
    texts = texts + texts[:20]  # 1,026 and 684
    found = evaluate({"x": texts}, texts, 2)
    assert found.metrics[-2:] == ("MS-Jaccard-2", "distinct_1000-1")
    both = evaluate({"x": texts, "few": texts[:9]}, texts, 1)
    assert both.metrics[-1] == "MS-Jaccard-1"


# -- where texts are -------------------------------------------------------------------

STRINGS, REAL_STRINGS = (
    [" ".join(f"w{token}" for token in x) for x in side] for side in (MODEL, REAL)
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sides = {"model": STRINGS, "half": STRINGS[:30], "real": REAL_STRINGS}
    for name, lines in sides.items():
        Path(f"{name}.txt").write_text("\n".join(lines) + "\n")
        pd.DataFrame({"text": lines}).to_parquet(f"{name}.parquet")


@pytest.mark.usefixtures("files")
def test_samples_are_paths_streams_tables_or_texts():
    real = Path("real.txt")
    whole = evaluate({"model": STRINGS, "half": STRINGS[:30]}, real, 2)
    half = pd.read_parquet("half.parquet")
    columns = {"model": "model.parquet", "half": half}
    assert evaluate(columns, "real.parquet", 2, column="text") == whole
    stream = io.BytesIO(Path("model.txt").read_bytes())
    mixed = {"model": stream, "half": read_corpus("half.txt")}
    assert evaluate(mixed, real, 2) == whole
    # Strings are paths only if they all name files.
    listed = evaluate([Path("model.txt"), "half.txt"], "real.txt", 2)
    assert [*listed] == ["model.txt", "half.txt"]
    assert [*listed.scores.values()] == [*whole.scores.values()]
    steps = []
    few = evaluate(["model.txt", "w1 w2", "w1"], REAL_STRINGS, 1, step=steps.append)
    assert (few.sizes, steps) == ({"candidates": 3}, ["Counting n-grams of order 1"])


@pytest.mark.parametrize("kind", [tuple, np.array, pd.Series, as_corpus, iter])
def test_a_list_of_texts_is_one_sample(kind):
    named = evaluate({"candidates": STRINGS}, REAL_STRINGS, 1)
    assert evaluate(kind(STRINGS), kind(REAL_STRINGS), 1) == named
    assert evaluate(MODEL, REAL, 1) == evaluate({"candidates": MODEL}, REAL, 1)


def test_candidates_and_references_may_lie_in_other_fields_and_columns(files):
    whole = evaluate({"x": STRINGS}, REAL_STRINGS, 2)
    rows = zip(STRINGS, REAL_STRINGS, strict=True)
    records = [{"meta": {"output": x}, "target": y} for x, y in rows]
    Path("both.jsonl").write_text("\n".join(map(json.dumps, records)))
    table = pd.DataFrame({"output": STRINGS, "target": REAL_STRINGS})
    table.to_csv("both.csv", index=False)
    table[["target"]].to_parquet("both.parquet")
    ours, theirs = {"field": "meta.output"}, {"reference_field": "target"}
    for real in ("both.jsonl", "both.csv", "both.parquet"):
        assert evaluate({"x": "both.jsonl"}, real, 2, **ours, **theirs) == whole
    both = {"x": "both.csv"}, "both.csv"
    assert evaluate(*both, 2, column="output", **theirs) == whole


# -- choices -------------------------------------------------------------------------

FUNCTIONS = {
    name: inspect.signature(found).parameters
    for name in dir(text)
    if inspect.isfunction(found := getattr(text, name))
} | {
    "every_metric": inspect.signature(corpora.every_metric).parameters,
    "bootstrap_interval": inspect.signature(corpora.bootstrap_interval).parameters,
    "command": inspect.signature(command).parameters,
}


@pytest.mark.parametrize(
    ("setting", "least"),
    [("smoothing", 7), ("estimator", 6), ("max_order", 10), ("level", 4), ("empty", 4)],
)
def test_a_setting_has_one_default_wherever_it_occurs(setting, least):
    having = {name: x[setting] for name, x in FUNCTIONS.items() if setting in x}
    assert len(having) >= least
    assert {x.default for x in having.values()} == {having["evaluate"].default}


WRITTEN = [text.title() if i % 3 else text for i, text in enumerate(STRINGS)] + ["", ""]
# Another choice of each option, which changes a number.
CHANGES = {
    "max_order": 3,
    "smoothing": None,
    "estimator": "plug-in",
    "level": 0.9,
    "tokenizer": "characters",
    "empty": "skip",
    "lowercase": True,
    "draws": 50,
}
# These say where texts are and how they are counted, and change none.
SAME = {
    "step": lambda text: None,
    "scheduler": None,
    **dict.fromkeys(["field", "column", "reference_field"], "text"),
}


def test_the_signature_tells_every_choice_that_changes_a_number_and_no_other():
    parameters = {*inspect.signature(evaluate).parameters}
    assert parameters == {"candidates", "references", *CHANGES, *SAME}
    sample, few = {"x": WRITTEN}, {"x": WRITTEN[:40]}
    of = partial(evaluate, sample, REAL_STRINGS)
    plain = of(max_order=2)
    numbers = plain.metrics, plain.scores
    runs = [plain, evaluate(few, REAL_STRINGS, 2), evaluate(sample, WRITTEN[:30], 2)]
    for name, choice in CHANGES.items():
        found = of(**{"max_order": 2, name: choice})
        assert (found.metrics, found.scores) != numbers, name
        runs.append(found)
    assert len({run.signature for run in runs}) == len(runs)
    for name, choice in SAME.items():
        found = of(**{"max_order": 2, name: choice})
        assert found.signature == plain.signature
        assert (found.metrics, found.scores) == numbers, name
    defaults = {"smoothing": "epsilon", "estimator": "pairs", "level": 0.95}
    assert of(2, **defaults, empty="keep").signature == plain.signature


# -- bad input -------------------------------------------------------------------------


def of_real(candidates, **options):
    return evaluate(candidates, REAL, 2, **options)


def test_bad_input(as_a_user):
    model, body = {"x": MODEL}, {"x": pd.DataFrame({"text": ["a b"]})}
    some, against = [[5], [5, 1], [5]], partial(evaluate, model)
    refused(
        ("expected at least one set of candidates, got none", of_real, []),
        ("a list of paths, each once", of_real, [Path("a.txt"), Path("a.txt")]),
        ("candidates: Self-BLEU compares", of_real, ["a b c"]),
        ("draws: expected a whole number", partial(of_real, draws=0), model),
        ("x: distinct_k of 1,000,000 n-gr", partial(of_real, draws=10**6), model),
        ("at least 3 for its interval, got 1", of_real, {"x": ["a b"]}),
        ("x: expected at least one sentence w", of_real, {"x": ["", " ", "\t"]}),
        ('expected "keep" or "skip"', partial(of_real, empty="drop"), {"x": ["a"] * 4}),
        ("x: no sentence has 2 tokens", of_real, {"x": ["a"] * 4}),
        ("x: pairs need at least two sentences", of_real, {"x": some}),
        ("level: expected", partial(of_real, level=2), {"x": as_corpus(MODEL)}),
        ("smoothing: expected", partial(of_real, smoothing="add-one"), model),
        ("estimator: expected", partial(of_real, estimator="all"), model),
    )
    without = "without a column 'body'; there are: 'text'"
    refused(
        ("or a list of paths, got one str", of_real, "model.txt"),
        ("or a list of paths, got one PosixPath", of_real, Path("model.txt")),
        ("candidates: expected a Corpus, a list of str", of_real, 5),
        ("several candidates go by name, {'model': texts}", of_real, [MODEL]),
        ("references: expected a Corpus, a list", against, {"a": []}),
        (without, partial(of_real, column="body"), body),
        error=TypeError,
    )
    refused(
        ("texts themselves go in a list: 'a b'", against, "a b"),
        error=FileNotFoundError,
    )


@pytest.mark.usefixtures("as_a_user")
def test_the_page_on_reporting_shows_the_line_that_is_printed():
    page = (Path(__file__).parents[2] / "docs/what_to_report.md").read_text()
    shown = " ".join(page.replace("\n>", "\n").split())
    texts = ["a b c d", "b c d a", "c d a b", "d a b c"]
    told = evaluate({"held_out.txt": texts * 500}, texts * 1000).methods
    for name in ("qdtheory", "JAX", "NumPy"):
        told = told.replace(f"{name} {version(name.lower())}", f"{name} VERSION")
    assert told in shown
