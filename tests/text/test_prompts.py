"""Several answers a prompt: exact scores, files, tests over prompts and their plans."""

import csv
import gzip
import io
import json
from collections import Counter
from functools import partial
from itertools import permutations, product
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy import stats

from qdtheory import text
from qdtheory.support.records import Estimate
from qdtheory.text.files import FieldWarning
from qdtheory.text.prompt_files import FIELDS, read_prompts
from qdtheory.text.prompt_report import moments

KERNELS = ("exact match", "1-grams", "2-grams", "3-grams")


def similar(kernel, one, other):
    """The similarity of two texts, from counts in dictionaries."""
    if kernel == "exact match":
        return float(one.split() == other.split())
    n = int(kernel[0])
    shares = []
    for words in (one.split(), other.split()):
        counts = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        shares.append({g: x / counts.total() for g, x in counts.items()})
    return sum(x * shares[1].get(g, 0) for g, x in shares[0].items())


def by_loops(kernel, outputs, references):
    near = np.mean([similar(kernel, x, z) for x in outputs for z in references])
    own = np.mean([similar(kernel, *pair) for pair in permutations(outputs, 2)])
    return 2 * near - own, near, -own


def prompts(seed, numbers, longest=7):
    """Lists of short texts over three words, some of them empty."""
    rng = np.random.default_rng(seed)

    def words():
        return " ".join(rng.choice([*"abc"], rng.integers(longest)))

    return [[words() for _ in range(number)] for number in numbers]


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_are_those_of_loops_over_pairs(kernel):
    outputs, references = prompts(0, [2, 3, 5, 8]), prompts(1, [1, 4, 2, 1])
    outputs = [[*x[1:], "a b b c"] for x in outputs]  # which every kernel sees
    expected = [by_loops(kernel, *x) for x in zip(outputs, references)]
    one = [text.kernel_score(*x, kernel) for x in zip(outputs, references)]
    found = [[x.score, x.quality, x.diversity] for x in one]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    sides = {"a": outputs, "b": [x[::-1] for x in outputs[::-1]]}
    report = text.evaluate_prompts(sides, references, [kernel])
    found = np.transpose([*report.scores["a"].values()])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    means = [report["a"][metric].value for metric in report.metrics]
    assert means == pytest.approx(np.mean(expected, axis=0))
    alone = text.evaluate_prompts(sides["b"], references, [kernel])
    assert [*alone["outputs"].values()] == [*report["b"].values()]


@pytest.mark.usefixtures("as_a_user")
def test_strings_and_lists_in_other_containers():
    ours, real = prompts(0, [3, 3, 3]), prompts(1, [1] * 3)
    whole = text.evaluate_prompts(ours, real, ["2-grams"])
    one = text.kernel_score(ours[0], real[0])
    for kind in (pd.Series, tuple, np.array, iter):
        assert text.evaluate_prompts(kind(ours), [*map(kind, real)], "2-grams") == whole
        assert text.kernel_score(kind(ours[0]), kind(real[0])) == one


def test_the_signature_tells_every_choice_that_changes_a_number_and_no_other():
    ours, real = prompts(0, [4, 4, 4]), prompts(1, [1] * 3)
    of = partial(text.evaluate_prompts, ours, real)
    changes = {"kernels": "1-grams", "tokenizer": "13a", "lowercase": True}
    changes["level"] = 0.9
    same = {"prompts": ["x", "y", "z"], "step": lambda said: None}
    found = [of().signature, *(of(**{x: y}).signature for x, y in changes.items())]
    found += [text.evaluate_prompts(prompts(0, [2, 4, 4]), real).signature]
    assert len({*found}) == len(found)
    assert {of(**{x: y}).signature for x, y in same.items()} == {found[0]}
    score = partial(text.kernel_score, ["It is.", "it is ."], ["IT IS."], "exact match")
    assert (score(lowercase=True, tokenizer="13a").score, score().score) == (1, 0)


# -- kernels of users ----------------------------------------------------------------

OURS, REAL = ["a b c", "a b", "c d a"], ["a b d"]


def quartic(texts, others):
    """No kernel, as squares of distances on a line are the most that has a map."""
    return [[-(((len(x) - len(y)) / 4) ** 4) for y in others] for x in texts]


def test_a_function_is_asked_for_all_texts_of_a_prompt_in_lists_of_its_own():
    def same(texts, others):
        gram = [[float(x == y) for y in others] for x in texts]
        texts.sort()  # which are its own
        return gram

    both = text.evaluate_prompts([OURS] * 2, [REAL] * 2, [same, "exact match"])
    scores = both.scores["outputs"]
    for part in ("score", "quality", "diversity"):
        assert (scores[f"same {part}"] == scores[f"exact match {part}"]).all()


def test_weights_of_an_indefinite_kernel_are_shown():
    """The texts of the message have the square that it names."""
    texts = ["a" * size for size in range(7)]
    with pytest.raises(ValueError, match="kernel quartic is indefinite") as raised:
        text.kernel_score(texts[:-1], texts[-1:], quartic)
    said = str(raised.value)
    shown = (x.split(" ", 1) for x in said.rpartition("real text: ")[2].split(", "))
    told = {x.strip("'"): float(weight) for weight, x in shown}
    weights = np.array([told[x] for x in texts])
    square = weights @ np.array(quartic(texts, texts)) @ weights
    named = float(said.partition("square of ")[2].partition(",")[0])
    assert square == pytest.approx(named, abs=0.1)


def test_kernels_that_are_none_are_refused():
    def score(kernel):
        return lambda: text.kernel_score(OURS, REAL, kernel)

    def skewed(texts, others):
        return [[len(x) + 0.5 * len(y) for y in others] for x in texts]

    expected = "kernel {}: expected 4 x 4 finite numbers"
    refused(
        (expected.format("skewed"), score(skewed)),
        (expected.format("<lambda>"), score(lambda a, b: np.full((4, 4), np.inf))),
        ("kernel <lambda> raised KeyError: 'a'", score(lambda a, b: {}["a"])),
        *((f"{x} is not known; take exact match, 1-grams", score(x))
          for x in ("ROUGE-L", "0-grams")),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"^outputs, prompt 'Why': kernel skewed"):
        text.evaluate_prompts([OURS] * 2, [REAL] * 2, [skewed], prompts=["Why", "How"])


@pytest.mark.usefixtures("as_a_user")
def test_what_is_bad_is_told():
    ours, real = [["a", "b"]] * 3, [["a"]] * 3
    evaluate, score = text.evaluate_prompts, text.kernel_score
    few = "expected two prompts or more, each with references and outputs of each"
    refused(
        ("outputs: expected 2 or more, got 1", score, ["a"], ["a"]),
        (few, evaluate, ours[:1], real[:1]),
        ("got 2, references of 3", partial(evaluate, prompts=["x", "y"]), ours, real),
        ("a, prompt 1: outputs: expected", evaluate, {"a": [ours[0], ["x"], []]}, real),
        ("kernels: expected some", evaluate, ours, real, ["1-grams", "1-grams"]),
        ("level: expected", partial(evaluate, level=95), ours, real),
        ("two candidates", evaluate({"a": ours}, real).compare, "a", "a"),
    )  # fmt: skip
    refused(
        ("expected a list of strings, got {'a'", score, {"a": 1, "b": 2}, ["a"]),
        ("got 'a'; put it in a list", evaluate, ours, ["a", "b", "c"]),
        error=TypeError,
    )
    found = text.evaluate_prompts({"a": ours, "b": ours}, real)
    refused(
        ("no metric is called '3-grams score'", found.compare, "a", "b", "3-grams"),
        ("no candidate is called 'c'", found.compare, "a", "c"),
        error=KeyError,
    )


# -- files ---------------------------------------------------------------------------

ROWS = [
    {"prompt": "Why?", "outputs": ["a", "b"], "references": ["a"]},
    {"prompt": "How?", "outputs": ["c", "c d", "d"], "references": ["d", "e"]},
    {"prompt": "Who?", "outputs": ["", "e"], "references": ["f"]},
]


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.jsonl").write_text(lines(ROWS))


@pytest.mark.usefixtures("folder")
def test_prompts_are_matched_and_in_the_order_of_the_first_file():
    turned = [row | {"outputs": ["x", "y"]} for row in ROWS[::-1]]
    turned[1]["references"] = ["e", "d"]  # in another order, the same
    Path("two.jsonl.gz").write_bytes(gzip.compress(lines(turned).encode()))
    prompts, outputs, references = read_prompts(["one.jsonl", "two.jsonl.gz"])
    assert prompts == ["Why?", "How?", "Who?"]
    ours = [row["outputs"] for row in ROWS]
    assert outputs == {"one.jsonl": ours, "two.jsonl.gz": [["x", "y"]] * 3}
    assert references == [row["references"] for row in ROWS]


@pytest.mark.usefixtures("folder")
def test_references_in_a_file_of_their_own_and_other_names_of_fields():
    """Numbers and lists are prompts too, as are the messages of a chat."""
    keys = 7, [{"role": "user", "content": "Why?"}]
    real = [{"id": key, "gold": [f"{i}"], "more": 0} for i, key in enumerate(keys)]
    ours = [{"id": key, "samples": ["a", "b"]} for key in keys[::-1]]
    Path("real.jsonl").write_text(lines(real))
    turned = [{"content": "Why?", "role": "user"}]  # the same message
    Path("other.jsonl").write_text(lines([ours[1], ours[0] | {"id": turned}]))
    files = io.BytesIO(lines(ours).encode()), "other.jsonl"
    fields = "id", "samples", "gold"
    prompts, outputs, references = read_prompts(files, "real.jsonl", fields)
    assert prompts == [json.dumps(keys[1], sort_keys=True), "7"]
    assert [*outputs.values()] == [[["a", "b"]] * 2] * 2
    assert references == [["1"], ["0"]]


LOG = [(x["prompt"], x["outputs"], x["references"][0]) for x in ROWS]
SAMPLES = [(x, [y], z) for x, ys, z in LOG for y in ys]


def log(prompt, outputs, reference, make=lambda texts: texts, rows=LOG, write=lines):
    """A file of these fields, in which the outputs are shaped."""
    return write({prompt: x, outputs: make(ys), reference: z} for x, ys, z in rows)


def chosen(make):
    return lambda texts: [{"index": 0} | make(x) for x in texts]


def only(texts):
    (text,) = texts
    return text


def table(rows):
    return pd.DataFrame([*rows]).to_csv(index=False)


def parquet(rows):
    return pd.DataFrame([*rows]).to_parquet()


def helm(rows):
    """One object, with one list of records."""
    made = [
        {"instance": {"input": {"text": x["q"]}, "references": [{"output": x["z"]}]}}
        | {"result": {"completions": x["a"]}}
        for x in rows
    ]
    return json.dumps({"spec": {"n": 1}, "request_states": made}, indent=1)


MESSAGE = chosen(lambda x: {"message": {"role": "assistant", "content": x}})
NAMES = "prompt", "output", "reference"
SHAPES = {
    "strings as references": log("prompt", "outputs", "references"),
    "a row an output": log(*NAMES, only, SAMPLES),
    "vLLM": log("prompt", "outputs", "answer", chosen(lambda x: {"text": x})),
    "OpenAI": log("prompt", "choices", "label", MESSAGE),
    "a batch of OpenAI": log(
        "custom_id", "response", "target", lambda x: {"body": {"choices": MESSAGE(x)}}
    ),
    "lm-eval": log("doc", "resps", "target", lambda texts: [texts]),
    "HELM": log("q", "a", "z", chosen(lambda x: {"text": x}), write=helm),
    "completions": log("question", "completions", "answers"),
    "generations": log("input", "generations", "gold"),
    "an array": log("query", "responses", "targets", write=lambda x: json.dumps([*x])),
    "gzip": gzip.compress(log("instruction", "predictions", "labels").encode()),
    "CSV": log(*NAMES, only, SAMPLES, table),
    "TSV": log(*NAMES, only, SAMPLES, table).replace(",", "\t"),
    "Parquet": log("prompt", "outputs", "references", write=parquet),
    "lighteval": lines(
        {"doc": {"query": x, "choices": ["?", z], "gold_index": 1}}
        | {"model_response": {"text": ys}}
        for x, ys, z in LOG
    ),
}


def read(content, fields=()):
    data = content.encode() if isinstance(content, str) else content
    return read_prompts([io.BytesIO(data)], fields=fields)


@pytest.mark.filterwarnings("ignore::qdtheory.text.files.FieldWarning")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_log_gives_the_report_of_the_plain_one(shape):
    prompts, ours, real = read(SHAPES[shape])
    assert prompts == [x for x, _, _ in LOG]
    plain = [[*column] for column in zip(*((ys, [z]) for _, ys, z in LOG))]
    found = text.evaluate_prompts(ours["stream"], real)
    assert found == text.evaluate_prompts(*plain)


def test_a_guess_is_said():
    said = "prompt from 'doc', outputs from 'resps', references from 'target' "
    with pytest.warns(FieldWarning, match=f"{said}[(]field=doc,resps,target[)]"):
        read(SHAPES["lm-eval"])


def test_without_references_diversity_alone_is_told():
    _, ours, none = read(lines({"prompt": x, "outputs": y} for x, y, _ in LOG))
    assert none is None
    found = text.evaluate_prompts(ours, kernels="1-grams")
    whole = text.evaluate_prompts(ours["stream"], [["a"]] * 3, "1-grams")
    assert [*found["stream"]] == ["1-grams diversity"]
    assert found["stream"]["1-grams diversity"] == whole["outputs"]["1-grams diversity"]
    assert "No references: diversity alone" in str(found)
    both = text.evaluate_prompts(ours | {"b": ours["stream"]})
    refused(("no metric is called", both.compare, "stream", "b"), error=KeyError)


def test_kernels_that_tell_nothing_are_left_out_or_refused():
    """2-grams of single words see nothing; nothing is equal to another text."""
    words, real = [["Paris", "Paris"], ["Rome", "Oslo"]], [["Paris"], ["Rome"]]
    found = text.evaluate_prompts(words, real)
    assert found.kernels == ("1-grams", "exact match")
    assert "Left out, as nothing is alike by it: 2-grams." in str(found)
    alike = text.evaluate_prompts([["a b c", "a b d"]] * 2, [["a b e"]] * 2)
    assert alike.kernels == ("2-grams", "1-grams")
    apart = [["a", "b"]] * 2
    assert text.evaluate_prompts(apart, [["c"]] * 2).kernels == ("exact match",)
    said = "kernel 2-grams sees nothing: no output has 2 tokens; take 1-grams or exact"
    one = {"seen": [["a b", "c"]] * 2, "blind": words}
    refused(
        (said, text.kernel_score, *words[:1], *real[:1]),
        (said, text.evaluate_prompts, one, real, "2-grams"),
        ("1 tokens; take exact m", text.kernel_score, ["", ""], ["a"], "1-grams"),
    )


def test_what_outputs_look_like_is_told_as_of_a_corpus():
    real = [["Un café ici ."], ["Le thé là ."], ["Un été là ."], [""]] * 9
    outputs = [[normalize("NFD", f"{x} <pad>")] * 2 for [x] in real]
    told = "\n".join(text.evaluate_prompts(outputs, real).warnings)
    for said in (
        "9 of the sentences of the references are blank",
        "hold <pad>",
        "NFKC",
    ):
        assert said in told


@pytest.mark.filterwarnings("ignore::qdtheory.text.files.FieldWarning")
def test_options_of_a_question_are_no_outputs_and_a_filter_is_called_so():
    row = {"prompt": "a", "choices": ["b", "c"], "response": ["b", "b"], "answer": "b"}
    rows = [row | {"prompt": x, "content_filter": x} for x in "xy"]
    _, ours, real = read(lines(rows))
    assert ours == {"stream": [["b", "b"]] * 2}
    assert real == [["b"]] * 2


@pytest.mark.usefixtures("as_a_user", "folder")
def test_a_bad_line_is_told_by_its_file_and_number():
    def written(**fields):
        def reading():
            Path("two.jsonl").write_text(lines([ROWS[0], ROWS[1] | fields, ROWS[2]]))
            return read_prompts(["one.jsonl", "two.jsonl"])

        return reading

    twice = [{"prompt": "a", "outputs": ["b", "c"], "filter": x} for x in ("x", "y")]
    other = [("Why?", ["a"], "b"), *SAMPLES]
    second, missing = "two.jsonl, line 2", "prompts of one.jsonl are missing"
    refused(
        (f"{second}: outputs: expected 2 or more, got 1; draw", written(outputs=["a"])),
        (f"{second}: other references of 'How?' than one", written(references=["d"])),
        (f"two.jsonl: {missing}: 'How?'", written(prompt="Ho?")),
        ("line 4: prompt 'Why?' again, as in stream, line 1;", read, lines(ROWS * 2)),
        ("one in each with the same ref", read, log(*FIELDS, rows=other)),
        ("line 2: prompt 'a' again, as in stream, line 1, by another filter, y; keep"
         """ the rows of one: jq -c 'select(.filter == "x")'""", read, lines(twice)),
        ("line, or a table, of prompts and outputs", read, "a b\nc"),
        ("no field of outputs, such as 'outputs'; name them (field=prompt,outputs,ref"
         "erences); there are: prompt, x", read, lines([{"prompt": "a", "x": 1}] * 2)),
        ("expected objects with a prompt, got 'a'", read, '["a", "b"]'),
        ("stream, line 2: references, 'references', but none in row 1", read,
         lines([{"prompt": "x", "outputs": ["a", "b"]}, *ROWS])),
        ("no field of references, such as 'lost'; n", partial(read,
         fields=("prompt", "outputs", "lost")), lines(ROWS)),
    )  # fmt: skip
    refused(
        (f"{second}: references: expected a list of strings", written(references=None)),
        error=TypeError,
    )


# -- tests over prompts ---------------------------------------------------------------


def drawn(laws, number, rng):
    """Answers to each prompt, as texts."""
    return [[*map(str, rng.choice(64, number, p=law))] for law in laws]


def trial(num_prompts, number, seed, kernels=("exact match",)):
    """Candidates that draw from laws and from sharper ones, against one answer."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(64, 0.1), num_prompts)
    sharper = laws**1.6 / (laws**1.6).sum(axis=1, keepdims=True)
    both = {"P": drawn(laws, number, rng), "sharper": drawn(sharper, number, rng)}
    return text.evaluate_prompts(both, drawn(laws, 1, rng), kernels)


@pytest.fixture(scope="module")
def report():
    return trial(300, 8, 0, kernels=("exact match", "1-grams"))


def test_the_test_is_a_paired_t_test(report):
    found = report.compare("P", "sharper", "exact match")
    scores = (report.scores[name] for name in ("P", "sharper"))
    one, other = (x["exact match score"] for x in scores)
    expected = stats.ttest_rel(one, other)
    assert found.p_value == pytest.approx(expected.pvalue)
    ends = expected.confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx([*ends])
    assert found.closer == report.compare("sharper", "P").closer == "P"


def test_scores_that_are_equal_but_for_rounding_tell_nothing():
    rng = np.random.default_rng(0)
    for _ in range(20):
        ours = [[" ".join(rng.choice([*"abcdefg"], 5)) for _ in range(5)]] * 3
        sides = {"a": ours, "b": [row[::-1] for row in ours]}
        report = text.evaluate_prompts(sides, [["a b c"]] * 3)
        for test in report.comparisons:
            assert (test.difference.value, test.p_value, test.plan()) == (0, 1, {})
    # Scores that are 0 but for rounding.
    halves = {"a": [["a b c", "d e f"]] * 3, "b": [["u", "v"]] * 3}
    near = text.evaluate_prompts(halves, [["g", "h"]] * 3, "1-grams")
    assert near.compare("a", "b").p_value == 1


@pytest.mark.parametrize(("pairs", "closer"), [(1, None), (3, "a"), (99, "a")])
def test_one_difference_for_all_prompts_is_told_by_the_sign_test(pairs, closer):
    """Also one that only rounding varies: of 1/7 in different sums."""
    real = [["a b c d e f g"], ["p q r s t u v"]] * pairs
    sides = {"a": [x * 3 for x in real], "b": [["y", "z"]] * len(real)}
    for kernel in ("exact match", "1-grams"):
        found = text.evaluate_prompts(sides, real, kernel).compare("a", "b")
        assert found.difference.value > 0.1
        signs = stats.binomtest(len(real), len(real)).pvalue
        assert found.p_value == pytest.approx(signs)
        assert (found.closer, found.plan()) == (closer, {})
        said = "p < 1e-11" if pairs == 99 else f"p = {signs:.2g}"
        assert str(found).endswith(f"prompts, {said} by the sign test.")


def test_variances_within_a_prompt_are_unbiased():
    """Enumerated: zeta of Hoeffding, and with them the variance at other numbers."""
    rng = np.random.default_rng(2)
    features, p = rng.normal(size=(3, 2)), np.array([0.5, 0.3, 0.2])
    gram, real = features @ features.T, [0, 2]
    near = gram[:, real].mean(axis=1)
    h = near[:, None] + near - gram
    mean = p @ h @ p
    zeta = np.array([p @ (h @ p) ** 2 - mean**2, p @ h**2 @ p - mean**2])
    for k in (2, 3, 4, 5):
        samples = np.array([*product(range(3), repeat=k)])
        rows = [moments(gram[np.ix_([*x, *real], [*x, *real])], k) for x in samples]
        chances, found = p[samples].prod(axis=1), np.array(rows)
        if k > 3:
            assert chances @ found[:, 3:] == pytest.approx(zeta)
        assert chances @ found[:, 0] == pytest.approx(mean)
        variance = chances @ found[:, 0] ** 2 - mean**2
        expected = (4 * (k - 2) * zeta[0] + 2 * zeta[1]) / (k * (k - 1))
        assert variance == pytest.approx(expected)


def test_variances_at_other_numbers_of_outputs_follow_hoeffding():
    report = trial(200, 6, 1)
    found, spreads = report.compare("P", "sharper"), [*report.spreads.values()]

    def noise(k):
        """Of both candidates, for given prompts."""
        both = (y for x in spreads for y in x.values())
        return sum(((4 * (k - 2) * a + 2 * b) / (k * (k - 1))).mean() for a, b in both)

    own = found.difference.standard_error**2 * 200
    expected = {k: own - noise(6) + noise(k) for k in (2, 4, 6, 8, 16, 32)}
    assert found.variances == pytest.approx(expected)


def test_few_outputs_plan_for_their_own_number_only():
    assert [*trial(100, 3, 0).compare("P", "sharper").plan()] == [3]
    # Of unequal numbers, some of them fewer, none is.
    sides = {"a": [["1", "2"], ["3"] * 9], "b": [["1", "3"], ["2", "3"]]}
    uneven = text.evaluate_prompts(sides, [["1"], ["3"]], "exact match")
    assert uneven.compare("a", "b").plan() == {}


@pytest.mark.parametrize("power", [0.5, 0.95])
def test_a_plan_has_its_power_by_the_noncentral_t(power):
    """And without one prompt in 50, it has less."""
    for effect in (0.03, 0.2, 0.5, 1.0):
        d = Estimate(effect, effect - 0.1, effect + 0.1, 0.05)
        test = text.PromptComparison("a", "b", "", d, 0.01, 100, {8: 1.0}, 0.95)
        size = test.plan(power)[8]

        def chance(n, effect=effect):
            critical = stats.t.ppf(0.975, n - 1)
            return stats.nct.sf(critical, n - 1, effect * np.sqrt(n))

        assert chance(size) > power - 0.005
        assert chance(min(size - 1, size * 0.98)) < power + 0.005
    refused(("power: expected a number between 0 and 1", test.plan, 1.2))


def test_every_format_holds_the_same_numbers(report):
    rows, told = [*csv.DictReader(report.to_csv().splitlines())], report._plain()
    assert told == json.loads(report.to_json())
    shown = [report.to_markdown(), report._repr_html_(), report.to_html()]
    told_text = report.to_text()
    for row in rows:
        found = told["candidates"][row["candidate"]][row["metric"]]
        assert float(row["value"]) == found["value"]
        cell, _ = report.cells()[row["candidate"]][report.metrics.index(row["metric"])]
        assert float(cell.split()[0]) == pytest.approx(found["value"], abs=0.006)
        assert all(cell in form for form in shown)
        assert (row["metric"] in told_text) == row["metric"].endswith("score")
    for x, found in zip(report.comparisons, told["comparisons"], strict=True):
        assert (found["p_value"], found["plan"]["8"]) == (x.p_value, x.plan()[8])
        assert f"{x.plan()[8]:,.0f}" in told_text
    assert report.conclusions[0].startswith("P is closer than sharper to what people w")
    assert "P is closer" in report.to_html()
