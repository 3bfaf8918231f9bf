"""What is refused, and what is warned of."""

import json

import numpy as np
import pytest

from qdtheory.text import evaluate


def test_unequal_sizes_get_a_warning():
    real, ours = ["a b", "b c"] * 30, ["a c", "b a", "c c b"] * 20
    found = evaluate({"model": ours, "half": ours[:30]}, real, max_order=2)
    assert found.warnings[0] == (
        "Self-BLEU, distinct and MS-Jaccard depend on the number of sentences, which "
        "differs (model 60, half 30): compare samples of one size"
    )
    plug_in = {"max_order": 1, "estimator": "plug-in"}
    equal = evaluate({"a": ours, "b": ours[::-1]}, real, **plug_in)
    assert not any("depend on the number" in line for line in equal.warnings)
    unequal = evaluate({"a": ours, "b": ours[:40]}, real, **plug_in)
    assert unequal.warnings[0].startswith(
        "Self-BLEU, NRR, CND, distinct and MS-Jaccard"
    )


@pytest.mark.parametrize(
    ("copied", "warned"), [(0, False), (5, False), (6, True), (9, True)]
)
def test_most_sentences_from_the_references_are_told(copied, warned):
    real = [f"a b c{i} d" for i in range(10)]
    ours = [*real[:copied], *(f"b a e{i} c{i}" for i in range(10 - copied))]
    found = evaluate({"ours": ours}, real, max_order=1)
    told = f"{copied * 10}% of the sentences of ours stand in the references"
    assert any(line.startswith(told) for line in found.warnings) == warned


# -- leakage -----------------------------------------------------------------------


def captions(rng, size, words=40):
    """Sentences of which few are alike: six words of Zipf's law."""
    law = 1 / np.arange(1, words + 1)
    return rng.choice(words, (size, 6), p=law / law.sum()).tolist()


def copied(rng, real, size, share, words=40):
    ours = captions(rng, size, words)
    copies = int(share * size)
    ours[:copies] = [real[i] for i in rng.choice(len(real), copies, replace=False)]
    return ours


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2, 0.49])
@pytest.mark.parametrize("words", [40, 41])
def test_copies_are_told_at_any_share_and_get_no_star(share, words):
    """Of a model of the same law, and of one that is far from it."""
    rng = np.random.default_rng(0)
    real = captions(rng, 1000)
    ours = copied(rng, real, 1000, share, words)
    if words == 41:  # another law: a word that the references lack in each
        ours = [[*x[:5], 40] if i > share * 1000 else x for i, x in enumerate(ours)]
    found = evaluate({"ours": ours, "fair": captions(rng, 1000)}, real, 2)
    assert found.dependent == ("ours",)
    (line,) = (x for x in found.warnings if "depends on the references" in x)
    told = float(line.split(": ")[1].split("%")[0])
    assert told == pytest.approx(100 * share, abs=2.5)
    cells = dict(zip(found.metrics, found.cells()["ours"]))
    for name in ("BLEU-2", "CR-2", "CND-1", "CND-2", "MS-Jaccard-2"):
        assert cells[name][1] == "!"
    assert cells["NRR-2"][1] != "!"
    assert "!: not independent of the references" in found.legend()
    assert json.loads(found.to_json())["dependent"] == ["ours"]
    compared = found.compare("ours", "fair")
    assert {compared.better(x) for x in ("CND-2", "CR-2", "BLEU-2")} == {None}
    assert "ours is not independent of the references" in compared.sentences(2)[0]


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")  # hundreds of calls
def test_copies_are_not_told_where_there_are_none():
    """Same, collapsed and far candidates; 200 samples, one by chance in a thousand."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        real = captions(rng, 200, 12)
        law = captions(rng, 200, 12)
        steep = [x[:1] * 3 + x[1:4] for x in captions(rng, 200, 12)]
        candidates = {"same": law, "steep": steep, "one": [real[0]] * 200, "half": real}
        candidates["half"] = [*captions(rng, 100, 12), *([real[0]] * 100)]
        assert evaluate(candidates, real, 2).dependent == ()


def test_edited_copies_are_told_by_a_negative_divergence():
    rng = np.random.default_rng(2)
    real = captions(rng, 1000)
    ours = [[*x[:5], 39 - x[5]] for x in real[:400]] + captions(rng, 600)
    found = evaluate({"ours": ours}, real, 3)
    assert found.dependent == ("ours",)
    assert "below 0 beyond its 99.9% interval" in found.warnings[0]


@pytest.mark.parametrize("estimator", ["plug-in", "pairs", "sentence-pairs"])
def test_copies_are_told_whatever_the_estimator(estimator):
    rng = np.random.default_rng(3)
    real = captions(rng, 500)
    ours = copied(rng, real, 500, 0.1)
    assert evaluate({"x": ours}, real, 2, estimator=estimator).dependent == ("x",)
