"""What is warned of, who depends on the references, and what has an interval."""

import json

import numpy as np
import pytest

from qdtheory.text import evaluate


def test_unequal_sizes_get_a_warning():
    real, ours = ["a b", "b c"] * 30, ["a c", "b a", "c c b"] * 20
    plug_in = {"max_order": 1, "estimator": "plug-in"}
    sides = {"model": ours, "half": ours[:30]}
    said = "depend on the number of sentences, which differs (model 60, half 30)"
    for more, rates in (({"max_order": 2}, ""), (plug_in, "NRR, CND, ")):
        (told, *_) = evaluate(sides, real, **more).warnings
        assert told.startswith(f"Self-BLEU, {rates}distinct and MS-Jaccard {said}")
    equal = evaluate({"a": ours, "b": ours[::-1]}, real, **plug_in)
    assert not any("depend on the number" in line for line in equal.warnings)


@pytest.mark.parametrize(("copied", "warned"), [(0, False), (5, False), (6, True)])
def test_most_sentences_from_the_references_are_told(copied, warned):
    real = [f"a b c{i} d" for i in range(10)]
    ours = [*real[:1] * copied, *(f"b a e{i} c{i}" for i in range(10 - copied))]
    found = evaluate({"ours": ours}, real, max_order=1)
    told = f"{copied * 10}% of the sentences of ours stand in the references"
    assert any(line.startswith(told) for line in found.warnings) == warned


# -- leakage -----------------------------------------------------------------------


def captions(rng, size, words=40):
    """Sentences of which few are alike: six words of Zipf's law."""
    law = 1 / np.arange(1, words + 1)
    return rng.choice(words, (size, 6), p=law / law.sum()).tolist()


@pytest.mark.parametrize(
    ("share", "far"), [(0.02, False), (0.02, True), (0.2, True), (0.49, False)]
)
def test_copies_are_told_at_any_share_and_are_never_called_better(share, far):
    """Of a model of the same law, and of one that is far from it."""
    rng = np.random.default_rng(0)
    real, ours = captions(rng, 1000), captions(rng, 1000, 40 + far)
    copies = int(share * 1000)
    ours[:copies] = [real[i] for i in rng.choice(1000, copies, replace=False)]
    if far:  # a word that the references lack in each
        ours[copies + 1 :] = [[*x[:5], 40] for x in ours[copies + 1 :]]
    found = evaluate({"ours": ours, "fair": captions(rng, 1000)}, real, 2)
    assert found.dependent == ("ours",)
    (line,) = (x for x in found.warnings if "depends on the references" in x)
    told = float(line.split(": ")[1].split("%")[0])
    assert told == pytest.approx(100 * share, abs=2.5)
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
        real, law = captions(rng, 200, 12), captions(rng, 200, 12)
        steep = [x[:1] * 3 + x[1:4] for x in captions(rng, 200, 12)]
        candidates = {"same": law, "steep": steep, "one": [real[0]] * 200}
        candidates["half"] = [*captions(rng, 100, 12), *([real[0]] * 100)]
        assert evaluate(candidates, real, 2).dependent == ()


def test_edited_copies_are_told_by_a_negative_divergence():
    rng = np.random.default_rng(2)
    real = captions(rng, 1000)
    ours = [[*x[:5], 39 - x[5]] for x in real[:400]] + captions(rng, 600)
    found = evaluate({"ours": ours}, real, 3)
    assert found.dependent == ("ours",)
    assert "below 0 beyond its 99.9% interval" in found.warnings[0]


# -- which metrics have an interval: few repeats, nothing repeated, and what covers ---


def test_nothing_repeated_is_not_equal():
    """Four sentences against four with no 4-gram in common: no CND of 0 +- 0."""
    ours = [[4 * i + k for k in (0, 1, 2, 3)] for i in range(4)]
    real = [[*x[:3], 99 + x[0]] for x in ours]
    found = evaluate({"x": ours, "y": real}, real)
    told = json.loads(found.to_json())["candidates"]["x"]["metrics"]["CND-4"]
    assert told == dict.fromkeys(("value", "low", "high", "standard_error"))
    (line,) = (x for x in found.warnings if x.startswith("too few") and "in x:" in x)
    assert line.startswith("too few repeats of order 1, 2, 3, 4 in x: no interval of")
    assert line.endswith("; the data support no order")
    compared = found.compare("x", "y")
    assert compared.better("CND-4") is None
    assert "is not told: too few of them" in compared.sentences(4)[0]


@pytest.mark.parametrize("estimator", ["plug-in", "pairs", "sentence-pairs"])
def test_the_highest_order_that_the_data_support_is_told(estimator):
    texts = np.random.default_rng(0).integers(0, 40, (2, 200, 6)).tolist()
    found = evaluate({"x": texts[0]}, texts[1], 4, estimator=estimator)
    (line,) = (x for x in found.warnings if x.startswith("too few"))
    assert "too few repeats of order 4 in x: no interval of BLEU-4, Self-BLEU-4" in line
    assert line.endswith("; the data support orders up to 3")
    for metric, i in found["x"].items():
        if not metric.startswith("distinct"):  # all words are in many groups
            assert np.isnan(i.low) == metric.endswith("-4"), metric


def test_one_text_again_and_again_is_far_whatever_is_rare():
    """CND has an interval where one of its three parts is seldom seen and small."""
    rng = np.random.default_rng(1)
    real = [[*x, x[0]] for x in rng.integers(0, 5, (300, 5)).tolist()]
    row = evaluate({"x": [[0, 1, 7, 8, 9, i % 2] for i in range(300)]}, real)["x"]
    assert row["CR-4"].value == 0
    assert np.isnan(row["CR-4"].low)
    assert 0 < row["CND-4"].low < row["CND-4"].high


@pytest.mark.usefixtures("as_a_user")  # hundreds of calls
@pytest.mark.parametrize(
    "size", [5, *(pytest.param(size, marks=pytest.mark.slow) for size in (20, 100))]
)
def test_few_sentences_have_intervals_that_cover_or_none(size):
    """NRR-3 and CR-3 of a law of 30 words: of 200 intervals at most 22 miss, but for
    1e-4; the jackknife alone would cover 1 % at 5 sentences."""
    rng = np.random.default_rng(2)
    law = 1 / np.arange(1, 31)
    law /= law.sum()
    exact = (law**2).sum() ** 3
    missed, alone = np.zeros(2), 0
    for _ in range(200):
        one, other = (rng.choice(30, (size, 6), p=law).tolist() for _ in range(2))
        found = evaluate({"x": one}, other, 3)["x"]
        for k, name in enumerate(("NRR-3", "CR-3")):
            i, mean = found[name], exact * (-1) ** (k + 1)
            missed[k] += i.low > mean or i.high < mean
        alone += found["NRR-3"].value == 0
    assert missed.max() <= 22
    assert alone >= {5: 100, 20: 5, 100: 0}[size]


def test_what_most_groups_do_not_change_has_no_interval():
    """Every word is in many sentences, and every sentence is of six words."""
    texts = np.random.default_rng(3).integers(0, 3, (2, 200, 6)).tolist()
    found = evaluate({"x": texts[0]}, texts[1], 2)
    assert np.isnan(found["x"]["distinct-1"].high)
    (said,) = (x for x in found.warnings if x.startswith("no interval of "))
    assert "distinct-1" in said
