"""Scores of several answers a prompt: by loops, exactly, and read from files."""

import gzip
import inspect
import io
import json
from collections import Counter
from difflib import SequenceMatcher
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from qdtheory import text
from qdtheory.text.prompt_files import read_prompts
from qdtheory.text.prompt_kernels import kernel_name

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
    return near, -own, 2 * near - own


def prompts(seed, numbers, longest=7):
    """Lists of short texts over three words, some of them empty."""
    rng = np.random.default_rng(seed)

    def words():
        return " ".join(rng.choice([*"abc"], rng.integers(longest)))

    return [[words() for _ in range(number)] for number in numbers]


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_are_those_of_loops_over_pairs(kernel):
    outputs, references = prompts(0, [2, 3, 5, 8]), prompts(1, [1, 4, 2, 1])
    report = text.evaluate_prompts(outputs, references, [kernel])
    expected = [by_loops(kernel, *x) for x in zip(outputs, references)]
    one = [text.kernel_score(*x, kernel) for x in zip(outputs, references)]
    found = [[x.quality, x.diversity, x.score] for x in one]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(report.scores["outputs"].T, expected, atol=1e-12)
    means = [x.value for x in report["outputs"].values()]
    assert means == pytest.approx(np.mean(expected, axis=0))
    assert [*report["outputs"]] == [*report.metrics]


def test_candidates_by_name_are_scored_on_their_own():
    references, ours, other = (prompts(x, [x * x] * 5) for x in (1, 2, 3))
    both = text.evaluate_prompts({"a": ours, "b": other}, references)
    alone = text.evaluate_prompts(other, references)
    np.testing.assert_array_equal(both.scores["b"], alone.scores["outputs"])
    assert both.kernels == KERNELS[:3]
    told = []
    text.evaluate_prompts({"a": ours}, references, ["1-grams"], step=told.append)
    assert told == ["1-grams of a"]


def test_lower_case_and_tokenizer():
    score = partial(text.kernel_score, ["It is.", "it is ."], ["IT IS."], "exact match")
    assert (score(lowercase=True, tokenizer="13a").score, score().score) == (1, 0)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("kind", [pd.Series, tuple, np.array, iter])
def test_strings_and_lists_in_other_containers(kind):
    ours, real = prompts(0, [3, 3, 3]), prompts(1, [1] * 3)
    whole = text.evaluate_prompts(ours, real, ["2-grams"])
    found = text.evaluate_prompts(kind(ours), [*map(kind, real)], "2-grams")
    assert found == whole
    one = text.kernel_score(kind(ours[0]), kind(real[0]))
    assert one == text.kernel_score(ours[0], real[0])


def test_the_signature_tells_every_choice_that_changes_a_number_and_no_other():
    ours, real = prompts(0, [4, 4, 4]), prompts(1, [1] * 3)
    of = partial(text.evaluate_prompts, ours, real)
    changes = {"kernels": ["1-grams"], "tokenizer": "characters", "lowercase": True}
    changes |= {"level": 0.9}
    same = {"prompts": ["x", "y", "z"], "step": lambda said: None}
    parameters = {*inspect.signature(text.evaluate_prompts).parameters}
    assert parameters == {"candidates", "references", *changes, *same}
    found = [of().signature, *(of(**{x: y}).signature for x, y in changes.items())]
    few = text.evaluate_prompts(prompts(0, [2, 4, 4]), real), of(["2-grams", "3-grams"])
    found += [x.signature for x in few]
    assert len({*found}) == len(found)
    assert {of(**{x: y}).signature for x, y in same.items()} == {found[0]}
    assert of(["3-grams", "2-grams"]).signature == found[-1]
    start = "prompts:3|outputs:4+|refs:1+|kernels:1-grams+2-grams+exact match|level:"
    assert found[0].startswith(start)


# -- kernels of users ----------------------------------------------------------------

OURS, REAL = ["a b c", "a b", "c d a"], ["a b d"]


def by_length(texts, others):
    return -np.abs([[len(x) - len(y) for y in others] for x in texts]) + 9.0


def by_edits(texts, others):
    """Minus the edit distance, row by row."""

    def edits(one, other):
        row = [*range(len(other) + 1)]
        for i, x in enumerate(one, 1):
            last, row[0] = row[0], i
            for j, y in enumerate(other, 1):
                last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
        return -row[-1]

    return [[edits(x.split(), y.split()) for y in others] for x in texts]


def test_a_function_is_asked_for_all_texts_of_a_prompt_in_lists_of_its_own():
    # A distance on a line is of negative type, so minus it is a kernel of zero sums.
    found = text.kernel_score(OURS, REAL, by_length)
    assert found.quality == pytest.approx(9 - 2 / 3)
    assert found.diversity == pytest.approx(-(9 - 4 / 3))

    def same(texts, others):
        gram = [[float(x == y) for y in others] for x in texts]
        texts.sort()  # which are its own
        return gram

    both = text.evaluate_prompts([OURS] * 2, [REAL] * 2, [same, "exact match"])
    assert both.metrics[:2] == ("same quality", "same diversity")
    scores = both.scores["outputs"]
    np.testing.assert_array_equal(scores[:3], scores[3:])


def test_weights_of_an_indefinite_kernel_are_shown():
    """Edit distance: the texts of the message have the square that it names."""
    texts = ["a b", "b a", "a", "b", "a b a", "b b", ""]
    with pytest.raises(ValueError, match="kernel by_edits is indefinite") as raised:
        text.kernel_score(texts[:-1], texts[-1:], by_edits)
    said = str(raised.value)
    shown = (x.split(" ", 1) for x in said.rpartition("real text: ")[2].split(", "))
    told = {x.strip("'"): float(weight) for weight, x in shown}
    assert {*told} == {*texts}
    weights = np.array([told[x] for x in texts])
    assert weights.sum() == pytest.approx(0, abs=0.03)
    square = weights @ np.array(by_edits(texts, texts)) @ weights
    named = float(said.partition("square of ")[2].partition(",")[0])
    assert square == pytest.approx(named, abs=0.1)
    assert square < 0


def test_kernels_that_are_none_are_refused():
    def score(kernel):
        return lambda: text.kernel_score(OURS, REAL, kernel)

    def blocks(texts, others):
        each = [[SequenceMatcher(None, x, y).ratio() for y in others] for x in texts]
        return np.array(each) + [[len(x)] for x in texts]

    def none(texts, others):
        return None

    expected = "kernel {}: expected 4 x 4 finite numbers"
    refused(
        (expected.format("blocks"), score(blocks)),  # not symmetric
        (expected.format("none"), score(none)),
        (expected.format("<lambda>"), score(lambda a, b: np.full((4, 4), np.inf))),
        ("kernel <lambda> raised KeyError: 'a'", score(lambda a, b: {}["a"])),
        ("kernel <lambda> raised ValueError", score(lambda a, b: "one")),
        ("got (4,), up to nan apart", score(lambda a, b: np.ones(4))),
        *(
            (f"{x} is indefinite", score(x))
            for x in ("Self-BLEU", "BLEU-2", "ROUGE-L", "edit")
        ),
        *((f"{x} is not known; take exact match, 1-", score(x))
          for x in ("ROUGE-1", "word2vec", "0-grams")),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"^outputs, prompt 'Why': kernel none"):
        text.evaluate_prompts([OURS] * 2, [REAL] * 2, [none], prompts=["Why", "How"])
    assert [*map(kernel_name, (np.outer, "12-grams"))] == ["outer", "12-grams"]


@pytest.mark.usefixtures("as_a_user")
def test_what_is_bad_is_told():
    ours, real = [["a", "b"]] * 3, [["a"]] * 3
    evaluate, score = text.evaluate_prompts, text.kernel_score
    few = "expected two prompts or more, each with references and outputs of each"
    named = partial(evaluate, [["a"], ["a", "b"]], real[:2], prompts=["Why", "How"])
    refused(
        ("outputs: expected 2 or more, got 1", score, ["a"], ["a"]),
        ("references: expected 1 or more, got 0", score, ["a", "b"], []),
        ("outputs {'a': 3, 'b': 2}", evaluate, {"a": ours, "b": ours[:2]}, real),
        (few, evaluate, ours[:1], real[:1]),
        ("got 2, references of 3", partial(evaluate, prompts=["x", "y"]), ours, real),
        ("a, prompt 1: outputs: expected 2", evaluate, {"a": [*ours[:1], ["x"], []]},
         real),
        ("prompt 'Why': outputs: expected 2", named),
        ("prompt 2: references: expected 1", evaluate, ours, [*real[:2], []]),
        ("kernels: expected some", evaluate, ours, real, ["1-grams", "1-grams"]),
        ("tokenizer: expected", partial(score, tokenizer="bpe"), ["a", "b"], ["a"]),
        ("level: expected", partial(evaluate, level=95), ours, real),
    )  # fmt: skip
    texts, strings = "expected for each prompt a list", "expected a list of strings"
    split = partial(score, tokenizer=lambda x: (c for c in x))
    refused(
        (f"outputs: {strings}, got 'a b'", score, "a b", ["a"]),
        ("strings, got [None]", score, ["a" * 99, None, "b"], ["a"]),
        (f"{strings}, got {{'a'", score, {"a": 1, "b": 2}, ["a"]),
        (f"references: {strings}, got {{'a'}}", score, ["b", "c"], {"a"}),
        ("expected a list of tokens, got generator", split, ["a", "b"], ["a"]),
        ("prompt 0: outputs: expected a list", evaluate, ["a b", "a", "c"], real),
        ("got 'a'; put it in a list", evaluate, ours, ["a", "b", "c"]),
        (f"b: {texts} of texts", evaluate, {"b": "a b"}, real),
        (f"references: {texts}", evaluate, ours, "real.jsonl"),
        error=TypeError,
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


@pytest.mark.usefixtures("as_a_user", "folder")
def test_a_bad_line_is_told_by_its_file_and_number():
    files = {
        "less.jsonl": lines(ROWS[1:2]),
        "twice.jsonl": lines([*ROWS, ROWS[0]]),
        "bare.jsonl": lines([{"prompt": "Why?", "outputs": ["a", "b"]}]),
        "broken.jsonl": lines(ROWS) + '{"prompt": "When?"',
        "empty.jsonl": "",
        "five.jsonl": lines(ROWS[0] | {"prompt": x} for x in "ABCDE"),
    }
    system = "Answer the question in one short sentence, and be kind. " * 2
    long = (row | {"prompt": system + row["prompt"]} for row in ROWS)
    for name, content in (files | {"long.jsonl": lines(long)}).items():
        Path(name).write_text(content)

    def read(*files, **fields):
        def reading():
            Path("two.jsonl").write_text(lines([ROWS[0], ROWS[1] | fields, ROWS[2]]))
            return read_prompts(files or ["one.jsonl", "two.jsonl"])

        return reading

    second, twice = "two.jsonl, line 2", "twice.jsonl, line"
    missing, strings = "prompts of one.jsonl are missing", "expected a list of strings"
    refused(
        (f"{second}: outputs: expected 2 or more, got 1", read(outputs=["a"])),
        (f"{second}: references: expected 1 or more", read(references=[])),
        (f"{second}: other references of 'How?' than one", read(references=["d"])),
        (f"two.jsonl: {missing}: 'How?'", read(prompt="Ho?")),
        (f"less.jsonl: {missing}", read_prompts, ["one.jsonl"], "less.jsonl"),
        ("missing: 'A', 'B', 'C' and 2 more", read("five.jsonl", "one.jsonl")),
        (f"{twice} 4: prompt 'Why?' again, as in {twice} 1", read("twice.jsonl")),
        ("bare.jsonl, line 1: no field 'references'", read("bare.jsonl")),
        ("broken.jsonl, line 4: expected a JSON object", read("broken.jsonl")),
        ("be kind. Why?', 'Answer the question", read("long.jsonl", "one.jsonl")),
        ("empty.jsonl: no prompt; expected a JSON", read("one.jsonl", "empty.jsonl")),
    )
    refused(
        (f"{second}: outputs: {strings}, got 'a b'", read(outputs="a b")),
        (f"{second}: outputs: {strings}, got [1", read(outputs=[1, 2])),
        error=TypeError,
    )
    refused(("lost.jsonl", read_prompts, ["lost.jsonl"]), error=FileNotFoundError)
