"""The evaluation: each metric on its own, empty sentences, and its line for a paper."""

import inspect
import io
import json
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from models import MODEL, REAL
from referees.corpus_metrics import distinct_among, one_by_one, without_each_group
from refusals import refused
from scipy import stats

from qdtheory.text import (
    as_corpus,
    evaluate,
    jackknife_interval,
    ngram_counts,
    read_corpus,
)
from qdtheory.text.evaluation import KINDS, RANGES
from qdtheory.text.intervals import random_groups


def test_values_and_intervals_are_those_of_each_metric(found):
    """BLEU is of these references; all others are over both samples."""
    assert found.metrics == tuple(f"{kind}-{n}" for kind in KINDS for n in (1, 2))
    ours, real = as_corpus(MODEL[:30]), as_corpus(REAL)

    def metrics(candidates, references):
        return np.ravel(one_by_one(candidates, references, 2))

    value = metrics(ours, real)
    own = np.array([metrics(x, real) for x in without_each_group(ours)])
    other = np.array([metrics(ours, x) for x in without_each_group(real)])
    other[:, :2] = value[:2]
    variances = [(len(x) - 1) * x.var(axis=0) for x in (own, other)]
    variance = sum(variances)
    degrees = variance**2 / sum(
        v**2 / (len(x) - 1) for v, x in zip(variances, (own, other))
    )
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


def test_the_line_for_a_paper(found):
    assert found.methods == (
        "BLEU and Self-BLEU (orders 1 to 2, means of sentence scores, zero counts set "
        "to 0.1, Self-BLEU leave-one-out), CR, NRR and CND (n-grams of different "
        "sentences), distinct and MS-Jaccard of 30 to 60 sentences against 60 "
        "references; tokens as they came; 95% jackknife intervals over candidates and "
        "references, of BLEU over candidates for these references; "
        f"qdtheory {version('qdtheory')}, JAX {version('jax')}, "
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
    assert rest.scores == clean.scores
    assert rest.sizes == clean.sizes == {"model": 50}
    assert rest.empty == {"model": 3}
    assert rest.num_empty_references == 1
    assert rest.methods == (
        f"{clean.methods}; empty sentences skipped: model 3, references 1"
    )


@pytest.mark.parametrize("estimator", ["plug-in", "pairs"])
def test_intervals_end_where_the_range_of_a_metric_does(estimator):
    texts = ["a b", "a b", "c d e", "a b", "a", "d", "d e", "c"]
    real = ["a b", "a b", "b a", "d", "d e", "c d", "b", "c"]
    found = evaluate({"few": texts}, real, 2, estimator=estimator)
    low, high = found.scores["few"].low, found.scores["few"].high
    lowest = {"NRR": -1, "CND": 0 if estimator == "plug-in" else -2}
    highest = {"NRR": 0, "CND": 2}
    cut = 0
    for name, a, b in zip(found.metrics, low, high, strict=True):
        kind = name[: name.rindex("-")]
        ends = lowest.get(kind, 0), highest.get(kind, 1)
        assert np.isnan(a) or ends[0] <= a <= b <= ends[1]
        cut += (a == ends[0]) + (b == ends[1])
    assert cut >= 3


def test_few_sentences_and_steps():
    steps = []
    found = evaluate({"few": ["a b", "b a", "a b"]}, ["a b"] * 2, 1, step=steps.append)
    assert steps == ["Counting n-grams of order 1"]
    assert found.sizes == {"few": 3}


# -- distinct_k ------------------------------------------------------------------------


def by_binomials(corpus, n, k):
    return distinct_among(ngram_counts(corpus, n).counts.tolist(), k)


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
def test_distinct_k_is_that_of_the_binomials_with_the_jackknifes_interval(k):
    found = evaluate({"model": MODEL, "half": MODEL[:30]}, REAL, 2, draws=k)
    assert found.metrics[-2:] == (f"distinct_{k}-1", f"distinct_{k}-2")
    for name, texts in (("model", MODEL), ("half", MODEL[:30])):
        corpus = as_corpus(texts)
        group = random_groups(len(texts), 20)
        for n in (1, 2):
            direct = jackknife_interval(
                lambda c, n=n: by_binomials(c, n, k), texts, bounds=(1, k)
            )
            ours = found[name][f"distinct_{k}-{n}"]
            for part in ("value", "low", "high", "standard_error"):
                told = getattr(ours, part)
                if np.isnan(told):  # k n-grams, or all that there are, whatever group
                    assert direct.standard_error < 1e-6  # is left out
                else:
                    expected = getattr(direct, part)
                    assert told == pytest.approx(expected, rel=1e-11, abs=1e-11)
            rests = [by_binomials(corpus[group != g], n, k) for g in range(20)]
            column = found.left_out[name][:, found.metrics.index(f"distinct_{k}-{n}")]
            np.testing.assert_allclose(column, rests, rtol=1e-12)
    assert found.methods.endswith(
        f"; distinct_{k}: different n-grams expected among {k}"
    )


def test_distinct_k_is_left_out_where_a_sample_has_fewer_ngrams():
    texts = [["a", "b", "c"]] * 340  # 969 unigrams without a group, 1,020 in all
    assert evaluate({"x": texts}, texts, 1).metrics[-1] == "MS-Jaccard-1"
    texts = texts + texts[:20]  # 1,026 and 684
    found = evaluate({"x": texts}, texts, 2)
    assert found.metrics[-2:] == ("MS-Jaccard-2", "distinct_1000-1")
    both = evaluate({"x": texts, "few": texts[:9]}, texts, 1)
    assert both.metrics[-1] == "MS-Jaccard-1"


# -- where texts are -------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    for name, texts in {"model": MODEL, "half": MODEL[:30], "real": REAL}.items():
        lines = [" ".join(map(str, text)) for text in texts]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
        pd.DataFrame({"text": lines}).to_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


def test_samples_are_paths_streams_tables_or_texts(files):
    strings = {
        name: (files / f"{name}.txt").read_text().splitlines()
        for name in ("model", "half")
    }
    whole = evaluate(strings, files / "real.txt", 2)
    mixed = {
        "model": str(files / "model.parquet"),
        "half": pd.read_parquet(files / "half.parquet"),
    }
    assert evaluate(mixed, files / "real.parquet", 2, column="text") == whole
    stream = io.BytesIO((files / "model.txt").read_bytes())
    mixed = {"model": stream, "half": read_corpus(files / "half.txt")}
    assert evaluate(mixed, files / "real.txt", 2) == whole
    paths = [files / "model.txt", str(files / "half.txt")]
    listed = evaluate(paths, files / "real.txt", 2)
    assert [*listed] == [*map(str, paths)]
    assert [*listed.scores.values()] == [*whole.scores.values()]


STRINGS = [" ".join(f"w{token}" for token in text) for text in MODEL]
REAL_STRINGS = [" ".join(f"w{token}" for token in text) for text in REAL]


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, pd.Series, as_corpus, lambda x: map(str, x)]
)
def test_a_list_of_texts_is_one_sample(kind):
    named = evaluate({"candidates": STRINGS}, REAL_STRINGS, 2)
    assert evaluate(kind(STRINGS), kind(REAL_STRINGS), 2) == named
    assert [*named] == ["candidates"]


def test_a_list_of_token_lists_is_one_sample_too():
    assert evaluate(MODEL, REAL, 2) == evaluate({"candidates": MODEL}, REAL, 2)


def test_strings_are_paths_only_if_they_all_name_files(files, monkeypatch):
    monkeypatch.chdir(files)
    assert [*evaluate(["model.txt", "half.txt"], "real.txt", 2)] == [
        "model.txt",
        "half.txt",
    ]
    found = evaluate(["model.txt", "w1 w2", "w1"] * 3, REAL_STRINGS, 1)
    assert found.sizes == {"candidates": 9}


def test_candidates_and_references_may_lie_in_other_fields_and_columns(files):
    whole = evaluate({"x": STRINGS}, REAL_STRINGS, 2)
    rows = zip(STRINGS, REAL_STRINGS, strict=True)
    records = [{"meta": {"output": x}, "target": y} for x, y in rows]
    path, table = files / "both.jsonl", files / "both.csv"
    path.write_text("\n".join(map(json.dumps, records)))
    pd.DataFrame({"output": STRINGS, "target": REAL_STRINGS}).to_csv(table, index=False)
    ours, theirs = {"field": "meta.output"}, {"reference_field": "target"}
    assert evaluate({"x": path}, path, 2, **ours, **theirs) == whole
    assert evaluate({"x": table}, table, 2, column="output", **theirs) == whole
    assert evaluate({"x": path}, table, 2, **ours, **theirs) == whole
    columns = files / "both.parquet"
    pd.DataFrame({"target": REAL_STRINGS}).to_parquet(columns)
    assert evaluate({"x": path}, columns, 2, **ours, **theirs) == whole


# -- the signature ---------------------------------------------------------------------

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
    "field": "text",
    "column": "text",
    "reference_field": "text",
}


def test_the_signature_tells_every_choice_that_changes_a_number_and_no_other():
    parameters = {*inspect.signature(evaluate).parameters}
    assert parameters == {"candidates", "references", *CHANGES, *SAME}
    sample, few = {"x": WRITTEN}, {"x": WRITTEN[:40]}
    of = partial(evaluate, sample, REAL_STRINGS)
    plain = of(max_order=2)
    runs = [plain, evaluate(few, REAL_STRINGS, 2), evaluate(sample, WRITTEN[:30], 2)]
    for name, choice in CHANGES.items():
        found = of(**{"max_order": 2, name: choice})
        assert not same_numbers(found, plain), name
        again = of(**{"max_order": 2, name: choice})
        assert again.signature == found.signature, name
        runs.append(found)
    assert len({run.signature for run in runs}) == len(runs)
    for name, choice in SAME.items():
        found = of(**{"max_order": 2, name: choice})
        assert found.signature == plain.signature
        assert same_numbers(found, plain), name
    defaults = {"smoothing": "epsilon", "estimator": "pairs", "level": 0.95}
    assert of(2, **defaults, empty="keep").signature == plain.signature


def same_numbers(one, other):
    return one.metrics == other.metrics and one.scores == other.scores


def test_the_signature_is_one_line_that_says_what_was_chosen():
    told = evaluate(
        {"x": WRITTEN, "few": WRITTEN[:40]},
        as_corpus(REAL_STRINGS, tokenizer="13a", lowercase=True),
        2,
        None,
        tokenizer="13a",
        lowercase=True,
    ).signature
    assert told == (
        "texts:40-62|refs:60|orders:1-2|smooth:none|est:pairs|empty:keep|draws:1000|"
        f"level:0.95|tok:13a|case:lower|version:{version('qdtheory')}"
    )
    tokens = evaluate(MODEL, REAL, 2).signature
    assert "|tok:none|case:mixed|" in tokens


# -- bad input -------------------------------------------------------------------------


def of_real(candidates, **options):
    return evaluate(candidates, REAL, 2, **options)


def test_bad_input(as_a_user):
    model, body = {"x": MODEL}, {"x": pd.DataFrame({"text": ["a b"]})}
    some = [[5], [5, 1], [5]]
    refused(
        ("expected at least one set of candidates, got none", of_real, []),
        ("at least one set of candidates", of_real, {}),
        ("a list of paths, each once", of_real, [Path("a.txt"), Path("a.txt")]),
        ("candidates: Self-BLEU compares", of_real, ["a b c"]),
        ("draws: expected a whole number", partial(of_real, draws=0), model),
        ("x: distinct_k of 1,000,000 n-gr", partial(of_real, draws=10**6), model),
        ("is the most here", partial(of_real, draws=40), {"x": MODEL[:9]}),
        ("x: Self-BLEU compares", of_real, {"x": ["a b"]}),
        ("at least 3 for its interval, got 1", of_real, {"x": ["a b"]}),
        ("x: expected at least one sentence w", of_real, {"x": ["", " ", "\t"]}),
        ('expected "keep" or "skip"', partial(of_real, empty="drop"), {"x": ["a"] * 4}),
        ("x: no sentence has 2 tokens", of_real, {"x": ["a"] * 4}),
        ("x: pairs need at least two sentences", of_real, {"x": some}),
        ("level: expected", partial(of_real, level=2), {"x": as_corpus(MODEL)}),
        ("smoothing: expected", partial(of_real, smoothing="add-one"), model),
        ("estimator: expected", partial(of_real, estimator="all"), model),
    )
    refused(
        ("or a list of paths, got one str", of_real, "model.txt"),
        ("or a list of paths, got one PosixPath", of_real, Path("model.txt")),
        ("candidates: expected a Corpus, a list of str", of_real, 5),
        ("several candidates go by name, {'model': texts}", of_real, [MODEL]),
        ("references: expected a Corpus, a list", partial(evaluate, model), {"a": []}),
        ("references: expected a list of strings", partial(evaluate, model), [["a b"]]),
        (
            "without a column 'body'; there are: 'text'",
            partial(of_real, column="body"),
            body,
        ),
        error=TypeError,
    )
    refused(
        ("texts themselves go in a list: 'a b'", of_real, {"x": "a b"}),
        ("texts themselves go in a list: 'a b'", partial(evaluate, model), "a b"),
        error=FileNotFoundError,
    )


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
