"""Kernels of texts: their features, and those of users that are refused."""

from collections import Counter
from difflib import SequenceMatcher

import numpy as np
import pytest
from refusals import refused

from qdtheory import text
from qdtheory.text.prompt_kernels import kernel_name

OURS, REAL = ["a b c", "a b", "c d a"], ["a b d"]


def by_length(texts, others):
    return -np.abs([[len(x) - len(y) for y in others] for x in texts]) + 9.0


def edits(one, other):
    """Edit distance, row by row."""
    row = [*range(len(other) + 1)]
    for i, x in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def by_edits(texts, others):
    return [[-edits(x.split(), y.split()) for y in others] for x in texts]


def test_a_function_is_asked_for_all_texts_of_a_prompt():
    def same(texts, others):
        return [[float(x == y) for y in others] for x in texts]

    expected = text.kernel_score(OURS, REAL, "exact match")
    assert text.kernel_score(OURS, REAL, same) == expected
    # A distance on a line is of negative type, so minus it is a kernel of zero sums.
    found = text.kernel_score(OURS, REAL, by_length)
    assert found.quality == pytest.approx(9 - 2 / 3)
    assert found.diversity == pytest.approx(-(9 - 4 / 3))
    report = text.evaluate_prompts([OURS, OURS], [REAL, REAL], ["1-grams", by_length])
    assert report.metrics[3:] == tuple(
        f"by_length {part}" for part in ("quality", "diversity", "score")
    )


def test_a_kernel_may_change_its_lists():
    def sorts(texts, others):
        texts.sort()
        others.sort()
        return np.eye(len(texts))

    both = text.evaluate_prompts([OURS] * 2, [REAL] * 2, [sorts, "1-grams"])
    alone = text.evaluate_prompts([OURS] * 2, [REAL] * 2, "1-grams")
    np.testing.assert_array_equal(both.scores["outputs"][3:], alone.scores["outputs"])


def test_common_n_grams_over_the_sum_of_both_numbers_are_a_kernel():
    """ROUGE-n, which is not among the refused: its smallest eigenvalue is 0 or more."""
    rng = np.random.default_rng(0)
    texts = [rng.choice(4, rng.integers(1, 8)).tolist() for _ in range(60)]
    for n in (1, 2):
        bags = [Counter(zip(*(x[i:] for i in range(n)))) for x in texts]
        sums = [[max((x + y).total(), 1) for y in bags] for x in bags]
        both = [[2 * (x & y).total() for y in bags] for x in bags]
        assert np.linalg.eigvalsh(np.divide(both, sums)).min() > -1e-12


def test_weights_of_an_indefinite_kernel_are_shown():
    """Edit distance: the texts of the message have the square that it names."""
    texts = ["a b", "b a", "a", "b", "a b a", "b b", ""]
    with pytest.raises(ValueError, match="kernel by_edits is indefinite") as raised:
        text.kernel_score(texts[:-1], texts[-1:], by_edits)
    said = str(raised.value)
    shown = said.rpartition("real text: ")[2].split(", ")
    told = {x.split(" ", 1)[1].strip("'"): float(x.split(" ", 1)[0]) for x in shown}
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
        return [
            [SequenceMatcher(None, x, y).ratio() + len(x) for y in others]
            for x in texts
        ]

    def none(texts, others):
        return None

    expected = "kernel {}: expected 4 x 4 finite numbers"
    refused(
        (expected.format("blocks"), score(blocks)),  # not symmetric
        (expected.format("none"), score(none)),
        (expected.format("<lambda>"), score(lambda a, b: np.ones(4))),
        (expected.format("<lambda>"), score(lambda a, b: np.full((4, 4), np.inf))),
        ("kernel <lambda> raised KeyError: 'a'", score(lambda a, b: {}["a"])),
        ("kernel <lambda> raised ValueError", score(lambda a, b: "one")),
        ("got (4,), up to nan apart", score(lambda a, b: np.ones(4))),
        ("ROUGE-1 is not known", score("ROUGE-1")),
        ("Self-BLEU is indefinite", score("Self-BLEU")),
        ("BLEU-2 is indefinite", score("BLEU-2")),
        ("ROUGE-L is indefinite", score("ROUGE-L")),
        ("edit is indefinite", score("edit")),
        ("word2vec is not known; take exact match, 1-grams", score("word2vec")),
        ("0-grams is not known", score("0-grams")),
    )
    with pytest.raises(ValueError, match=r"^outputs, prompt 'Why': kernel none"):
        text.evaluate_prompts([OURS] * 2, [REAL] * 2, [none], prompts=["Why", "How"])
    assert kernel_name(np.outer) == "outer"
    assert kernel_name("12-grams") == "12-grams"
