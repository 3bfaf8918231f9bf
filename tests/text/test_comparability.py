"""What is refused, and what is warned of."""

import pytest

from qdtheory.text import evaluate


def test_unequal_sizes_get_a_warning():
    real, ours = ["a b", "b c"] * 30, ["a c", "b a", "c c b"] * 20
    found = evaluate({"model": ours, "half": ours[:30]}, real, max_order=2)
    assert found.warnings == (
        "Self-BLEU, distinct and MS-Jaccard depend on the number of sentences, which "
        "differs (model 60, half 30): compare samples of one size",
    )
    plug_in = {"max_order": 1, "estimator": "plug-in"}
    equal = evaluate({"a": ours, "b": ours[::-1]}, real, **plug_in)
    assert equal.warnings == ()
    unequal = evaluate({"a": ours, "b": ours[:40]}, real, **plug_in)
    assert unequal.warnings[0].startswith(
        "Self-BLEU, NRR, CND, distinct and MS-Jaccard"
    )


def test_texts_split_otherwise_than_the_references_are_refused():
    real = ["the cat sat", "a dog ran", "the end"] * 3
    ours = [[1, 2, 3], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match=r"^m: strings against token ids: 1 and 'the'"):
        evaluate({"m": ours}, real, max_order=1)


@pytest.mark.parametrize(
    ("copied", "warned"), [(0, False), (5, False), (6, True), (10, True)]
)
def test_most_sentences_from_the_references_are_told(copied, warned):
    real = [f"a b c{i} d" for i in range(10)]
    ours = [*real[:copied], *(f"b a e{i} c{i}" for i in range(10 - copied))]
    found = evaluate({"ours": ours}, real, max_order=1)
    told = f"{copied * 10}% of the sentences of ours stand in the references"
    assert any(line.startswith(told) for line in found.warnings) == warned
