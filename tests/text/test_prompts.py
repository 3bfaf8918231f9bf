"""Scores of several answers a prompt: by loops, by other functions, and exactly."""

import inspect
from collections import Counter
from functools import partial
from importlib.metadata import version
from itertools import product

import numpy as np
import pandas as pd
import pytest
from lab.metrics.kernels import ngram_kernel
from refusals import refused

import qdtheory as qd
from qdtheory import text
from qdtheory.pairs import squared_mmd

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
    pairs = [(i, j) for i in range(len(outputs)) for j in range(len(outputs)) if i != j]
    near = [similar(kernel, x, z) for x in outputs for z in references]
    own = [similar(kernel, outputs[i], outputs[j]) for i, j in pairs]
    return np.mean(near), -np.mean(own), 2 * np.mean(near) - np.mean(own)


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
    found = report.scores["outputs"]
    for c, (ours, real) in enumerate(zip(outputs, references)):
        one = text.kernel_score(ours, real, kernel)
        expected = by_loops(kernel, ours, real)
        assert [one.quality, one.diversity, one.score] == pytest.approx(expected)
        assert found[:, c] == pytest.approx(expected)
    # Quality and the diversities of a text's n-grams, those of the whole sample.
    means = [x.value for x in report["outputs"].values()]
    assert means == pytest.approx(found.mean(axis=1))
    assert [*report["outputs"]] == [*report.metrics]


@pytest.mark.parametrize("n", [1, 2])
def test_n_grams_of_one_prompt_are_coverage_and_repetition(n):
    """Of sentence averages, where each text has n-grams."""
    rng = np.random.default_rng(n)
    real, *ours = (
        " ".join(rng.choice([*"abcd"], rng.integers(3, 9))) for _ in range(7)
    )
    found = text.kernel_score(ours, [real], f"{n}-grams")
    how = {"estimator": "sentence-pairs"}
    assert found.quality == pytest.approx(text.coverage_rate(ours, [real], n, **how))
    expected = text.negative_repetition_rate(ours, n, **how)
    assert found.diversity == pytest.approx(expected)


SPACE = qd.TextSpace(2, lengths=2)
TEXTS = [" ".join("ab"[i] for i in row) for row in SPACE.tokens]


@pytest.mark.parametrize(("outputs", "references"), [(2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("kernel", ["exact match", "1-grams"])
def test_the_mean_over_all_samples_is_that_of_the_exact_wing(
    kernel, outputs, references
):
    """Quality, diversity, and |P|^2 less the squared MMD: enumerated, no sample."""
    rng = np.random.default_rng(7)
    q, p = rng.dirichlet(np.ones(len(TEXTS)), 2)
    gram = np.eye(len(TEXTS)) if kernel == "exact match" else ngram_kernel(SPACE, 1)
    mean = np.zeros(3)
    for x in product(range(len(TEXTS)), repeat=outputs):
        for z in product(range(len(TEXTS)), repeat=references):
            ours, real = ([TEXTS[i] for i in rows] for rows in (x, z))
            found = text.kernel_score(ours, real, kernel)
            chance = q[[*x]].prod() * p[[*z]].prod()
            mean += chance * np.array([found.quality, found.diversity, found.score])
    pair = qd.CR_NRR if kernel == "exact match" else qd.KernelPair(gram)
    assert mean[0] == pytest.approx(float(pair.quality(q, p)))
    assert mean[1] == pytest.approx(float(pair.diversity(q)))
    distance = float(squared_mmd(gram, q, p))
    assert mean[2] == pytest.approx(p @ gram @ p - distance)


def test_lower_case_and_tokenizer():
    how = {"kernel": "exact match", "lowercase": True, "tokenizer": "13a"}
    assert text.kernel_score(["It is.", "it is ."], ["IT IS."], **how).score == 1
    assert (
        text.kernel_score(["It is.", "it is ."], ["IT IS."], "exact match").score == 0
    )


def test_candidates_by_name_are_scored_on_their_own():
    references, ours, other = (
        prompts(1, [1] * 5),
        prompts(2, [2] * 5),
        prompts(3, [4] * 5),
    )
    both = text.evaluate_prompts({"a": ours, "b": other}, references)
    alone = text.evaluate_prompts(other, references)
    np.testing.assert_array_equal(both.scores["b"], alone.scores["outputs"])
    assert (
        "5 prompts, 2+ outputs, 1+ references each; n-grams and exact" in both.methods
    )
    assert "negative direction" not in both.methods
    assert both.kernels == KERNELS[:3]
    told = []
    text.evaluate_prompts({"a": ours}, references, ["1-grams"], step=told.append)
    assert told == ["1-grams of a"]


def test_what_is_known_of_a_users_kernel_is_said():
    def same(a, b):
        return np.equal.outer(a, b)

    report = text.evaluate_prompts([["a", "b"]] * 2, [["a"]] * 2, ["1-grams", same])
    assert "; same has no negative direction seen within a prompt;" in report.methods


@pytest.mark.usefixtures("as_a_user")
def test_one_kernel_alone_and_outputs_that_are_no_lists():
    ours, real = prompts(0, [3, 2, 4]), prompts(1, [1] * 3)
    found = text.evaluate_prompts(map(iter, ours), real, "2-grams")
    assert found == text.evaluate_prompts(ours, real, ["2-grams"])
    one = text.kernel_score(iter(ours[0]), (*real[0],))
    assert one == text.kernel_score(ours[0], real[0])


def test_the_signature_tells_every_choice_that_changes_a_number_and_no_other():
    ours, real = prompts(0, [4, 4, 4]), prompts(1, [1] * 3)
    of = partial(text.evaluate_prompts, ours, real)
    changes = {
        "kernels": ["1-grams"],
        "tokenizer": "characters",
        "lowercase": True,
        "level": 0.9,
    }
    same = {"prompts": ["x", "y", "z"], "step": lambda said: None}
    parameters = {*inspect.signature(text.evaluate_prompts).parameters}
    assert parameters == {"candidates", "references", *changes, *same}
    found = [of().signature, *(of(**{x: y}).signature for x, y in changes.items())]
    few = text.evaluate_prompts(prompts(0, [2, 4, 4]), real), of(["2-grams", "3-grams"])
    found += [x.signature for x in few]
    assert len({*found}) == len(found)
    assert {of(**{x: y}).signature for x, y in same.items()} == {found[0]}
    assert of(["3-grams", "2-grams"]).signature == found[-1]
    assert found[0] == (
        "prompts:3|outputs:4+|refs:1+|kernels:1-grams+2-grams+exact match|level:0.95|"
        f"tok:whitespace|case:mixed|version:{version('qdtheory')}"
    )


@pytest.mark.parametrize("kind", [pd.Series, tuple, np.array])
def test_strings_and_lists_in_other_containers(kind):
    ours, real = prompts(0, [3, 3, 3]), prompts(1, [1] * 3)
    whole = text.evaluate_prompts(ours, real)
    assert text.evaluate_prompts(kind(ours), [*map(kind, real)]) == whole
    one = text.kernel_score(kind(ours[0]), kind(real[0]))
    assert one == text.kernel_score(ours[0], real[0])


@pytest.mark.usefixtures("as_a_user")
def test_what_is_bad_is_told():
    ours, real = [["a", "b"]] * 3, [["a"]] * 3
    evaluate, score = text.evaluate_prompts, text.kernel_score
    few = "expected two prompts or more, each with references and outputs of each"
    refused(
        ("outputs: expected 2 or more, got 1", score, ["a"], ["a"]),
        ("references: expected 1 or more, got 0", score, ["a", "b"], []),
        (few, evaluate, {"a": ours, "b": ours[:2]}, real),
        ("outputs {'a': 3, 'b': 2}", evaluate, {"a": ours, "b": ours[:2]}, real),
        (few, evaluate, ours[:1], real[:1]),
        (few, evaluate, {}, real),
        ("got 2, references of 3", lambda: evaluate(ours, real, prompts=["x", "y"])),
        ("kernel: None is not known", score, ["a", "b"], ["a"], None),
        (
            "a, prompt 1: outputs: expected 2",
            evaluate,
            {"a": [*ours[:1], ["x"], []]},
            real,
        ),
        ("prompt 2: references: expected 1", evaluate, ours, [*real[:2], []]),
        ("kernels: expected some, each once", evaluate, ours, real, []),
        ("kernels: expected some", evaluate, ours, real, ["1-grams", "1-grams"]),
        ("is indefinite", evaluate, ours, real, ["ROUGE-L"]),
        ("tokenizer: expected", lambda: score(["a", "b"], ["a"], tokenizer="bpe")),
        ("level: expected", lambda: evaluate(ours, real, level=95)),
    )
    with pytest.raises(ValueError, match="prompt 'Why': outputs: expected 2"):
        evaluate([["a"], ["a", "b"]], real[:2], prompts=["Why", "How"])
    refused(
        ("outputs: expected a list of strings, got 'a b'", score, "a b", ["a"]),
        ("outputs: expected a list of strings, got [1, 2]", score, [1, 2], ["a"]),
        ("strings, got [None]", score, ["a" * 99, None, "b"], ["a"]),
        ("expected a list of strings, got {'a'", score, {"a": 1, "b": 2}, ["a"]),
        ("references: expected a list of strings, got {'a'}", score, ["b", "c"], {"a"}),
        (
            "expected a list of tokens, got generator",
            lambda: score(["a", "b"], ["a"], tokenizer=lambda x: (c for c in x)),
        ),
        ("references: expected a list of strings, got 7", score, ["a", "b"], 7),
        ("prompt 0: outputs: expected a list", evaluate, ["a b", "a", "c"], real),
        ("got 'a'; put it in a list", evaluate, ours, ["a", "b", "c"]),
        ("outputs: expected for each prompt a list of texts", evaluate, "a b", real),
        ("b: expected for each prompt a list of texts", evaluate, {"b": "a b"}, real),
        ("references: expected for each prompt a list", evaluate, ours, "real.jsonl"),
        ("references: expected for each prompt a list", evaluate, ours, {"a": real}),
        error=TypeError,
    )
