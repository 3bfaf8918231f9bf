"""Tests over prompts, their variance by numbers of outputs, and what is said."""

import csv
import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from qdtheory import text
from qdtheory.support.records import Estimate
from qdtheory.text.prompt_report import moments


def world(num_prompts, rng):
    """The laws of 64 answers to some prompts, most of them of a few answers."""
    return rng.dirichlet(np.full(64, 0.1), num_prompts)


def sharper(laws, power=1.6):
    laws = laws**power
    return laws / laws.sum(axis=1, keepdims=True)


def drawn(laws, number, rng):
    """Answers to each prompt, as texts."""
    cuts = laws.cumsum(axis=1)[:, None, :] / laws.sum(axis=1)[:, None, None]
    answers = (rng.random((len(laws), number, 1)) > cuts).sum(axis=2)
    return [[str(x) for x in row] for row in answers.tolist()]


def trial(num_prompts, number, seed, power=1.6, kernels=("exact match",)):
    """Candidates that draw from P and from P^power, against one answer of P."""
    rng = np.random.default_rng(seed)
    laws = world(num_prompts, rng)
    ours, other = drawn(laws, number, rng), drawn(sharper(laws, power), number, rng)
    both, real = {"P": ours, "sharper": other}, drawn(laws, 1, rng)
    return text.evaluate_prompts(both, real, kernels)


@pytest.fixture(scope="module")
def report():
    return trial(300, 8, 0, kernels=("exact match", "1-grams"))


def test_the_test_is_a_paired_t_test(report):
    found = report.compare("P", "sharper", "exact match")
    one, other = (report.scores[name][2] for name in ("P", "sharper"))
    expected = stats.ttest_rel(one, other)
    assert found.p_value == pytest.approx(expected.pvalue)
    ends = expected.confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx([*ends])
    assert found.effect == pytest.approx(expected.statistic / np.sqrt(300))
    turned = report.compare("sharper", "P", "exact match")
    assert found.closer == turned.closer == "P"
    assert turned.difference.value == -found.difference.value
    # The same scores, as exact match of one token is its relative frequency.
    assert report.compare("P", "sharper").kernel == "1-grams"
    assert report.compare("P", "sharper").p_value == pytest.approx(found.p_value)


def test_equal_scores_tell_nothing_and_are_both_the_highest():
    rng = np.random.default_rng(0)
    for _ in range(20):
        ours = [[" ".join(rng.choice([*"abcdefg"], 5)) for _ in range(5)]] * 3
        sides = {"a": ours, "b": [row[::-1] for row in ours]}  # the same but rounding
        report = text.evaluate_prompts(sides, [["a b c"]] * 3)
        for test in report.comparisons:
            assert (test.difference.value, test.p_value, test.effect) == (0, 1, 0)
            assert test.closer is None
            assert np.isinf(test.plan()[5].apart)
            assert str(test).startswith("Nothing is told of a and b by")
        assert [row[-1][1] for row in report.cells().values()] == ["*", "*"]


def test_one_difference_for_all_prompts_tells_nothing():
    """Also one that only rounding varies: of 1/7 in different sums."""
    real = [["a b c d e f g"], ["p q r s t u v"]] * 3
    sides = {"a": [x * 3 for x in real], "b": [["y", "z"]] * 6}
    for kernel in ("exact match", "1-grams"):
        report = text.evaluate_prompts(sides, real, kernel)
        found = report.compare("a", "b")
        assert found.difference.value > 0.1
        assert np.isnan([found.p_value, found.effect]).all()
        assert found.closer is None
        assert report.conclusions[0].startswith("Nothing is told of a and b by")
    # Scores that are 0 but for rounding.
    halves = {"a": [["a b c", "d e f"]] * 3, "b": [["u", "v"]] * 3}
    near = text.evaluate_prompts(halves, [["g", "h"]] * 3, "1-grams")
    assert near.compare("a", "b").p_value == 1


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
        assert chances @ found[:, 2] == pytest.approx(mean)
        variance = chances @ found[:, 2] ** 2 - mean**2
        expected = (4 * (k - 2) * zeta[0] + 2 * zeta[1]) / (k * (k - 1))
        assert variance == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")  # 160,000 calls, as below
def test_variances_at_other_numbers_of_outputs_are_those_of_drawing_as_many():
    found = trial(20_000, 6, 1).compare("P", "sharper")
    assert [*found.variances] == [2, 4, 6, 8, 16, 32]
    own = found.difference.standard_error**2 * 20_000
    assert found.variances[6] == pytest.approx(own)
    for k in (2, 4, 8):
        again = trial(20_000, k, 2).compare("P", "sharper")
        assert found.variances[k] == pytest.approx(again.variances[k], rel=0.1)


def test_variances_at_other_numbers_of_outputs_follow_hoeffding():
    report = trial(200, 6, 1)
    found, spreads = report.compare("P", "sharper"), [*report.spreads.values()]

    def noise(k):
        """Of both candidates, for given prompts."""
        both = ((4 * (k - 2) * a + 2 * b) / (k * (k - 1)) for ((a, b),) in spreads)
        return sum(x.mean() for x in both)

    own = found.difference.standard_error**2 * 200
    expected = {k: own - noise(6) + noise(k) for k in (2, 4, 6, 8, 16, 32)}
    assert found.variances == pytest.approx(expected)


def test_few_outputs_plan_for_their_own_number_only():
    assert [*trial(100, 3, 0).compare("P", "sharper").plan()] == [3]
    # Of unequal numbers, some of them fewer, none is.
    sides = {"a": [["1", "2"], ["3"] * 9], "b": [["1", "3"], ["2", "3"]]}
    uneven = text.evaluate_prompts(sides, [["1"], ["3"]], "exact match")
    assert uneven.compare("a", "b").plan() == {}
    # Of unequal numbers all are reckoned, for the fewest too.
    rng = np.random.default_rng(0)
    laws = world(50, rng)
    sides = {"a": drawn(laws, 9, rng), "b": drawn(laws, 5, rng)}
    mixed = text.evaluate_prompts(sides, drawn(laws, 1, rng)).compare("a", "b")
    assert [*mixed.plan()] == [2, 4, 5, 8, 16, 32]
    assert mixed.num_outputs == 5
    assert (np.diff([*mixed.variances.values()]) <= 0).all()


@pytest.mark.parametrize("power", [0.5, 0.95])
def test_a_plan_has_its_power_by_the_noncentral_t(power):
    """And without one prompt in 50, it has less."""
    for effect in (0.03, 0.2, 0.5, 1.0):
        d = Estimate(effect, effect - 0.1, effect + 0.1, 0.05)
        known = "a", "b", "exact match", d, effect, 0.01, 100, 8, {8: 1.0}, 0.95
        test = text.PromptComparison(*known)
        size = test.plan(power)[8]

        def chance(n, effect=effect):
            critical = stats.t.ppf(0.975, n - 1)
            return stats.nct.sf(critical, n - 1, effect * np.sqrt(n))

        assert chance(size.apart) > power - 0.005
        assert chance(min(size.apart - 1, size.apart * 0.98)) < power + 0.005
        assert size.low <= size.apart <= size.high
        assert np.isinf(size.high) == (effect < 0.1)
    assert test.plan(0.001)[8].apart <= test.plan(0.02)[8].apart  # chance alone
    refused(("power: expected a number between 0 and 1", test.plan, 1.2))


def test_every_format_holds_the_same_numbers(report):
    rows, told = [*csv.DictReader(report.to_csv().splitlines())], report._plain()
    assert told == json.loads(report.to_json())
    values = told["values"]["sharper"]
    assert [*values] == [*report.metrics]
    assert values["1-grams score"] == report.scores["sharper"][-1].tolist()
    for row, line in zip(rows, report.to_frame().to_dict("records")):
        name, metric = row["candidate"], row["metric"]
        value = report[name][metric].value
        found = told["candidates"][name][metric]["value"], line["value"]
        assert [float(row["value"]), *found] == [value] * 3
    for row, x, found in zip(rows[12:], report.comparisons, told["comparisons"]):
        assert row["candidate"] == "P - sharper"
        assert row["metric"] == f"{x.kernel} score"
        assert float(row["p_value"]) == found["p_value"] == x.p_value
        assert found["plan"]["8"]["apart"] == x.plan()[8].apart
    shown = [report.to_text(200), report.to_markdown(), report._repr_html_()]
    for form in shown:
        for cells in report.cells().values():
            assert all(cell in form.replace("*", "") for cell, _ in cells)
    size = report.comparisons[0].plan()[8].apart
    said = report.conclusions[0]
    assert said.startswith("P is closer than sharper to what people write by exact mat")
    assert f"about {size:,.0f} prompts of 8 outputs show such" in said
    assert trial(10, 4, 0).conclusions[0].startswith("Neither of P and sharper is sho")
    strange = text.evaluate_prompts({"<b>\n": [["a", "b"]] * 2}, [["a"]] * 2)
    assert "<b>" not in strange._repr_html_().replace("<b>1", "")
    assert max(map(len, strange.to_text(60).splitlines())) <= 60


def test_unknown_names_are_told(report):
    refused(("expected two candidates", report.compare, "P", "P"))
    refused(
        ("no candidate is called 'Q'", report.compare, "P", "Q"),
        ("no kernel is called '3-grams'", report.compare, "P", "sharper", "3-grams"),
        ("no candidate is called 'Q'", report.__getitem__, "Q"),
        ("no metric is called", report["P"].__getitem__, "score"),
        error=KeyError,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("num_prompts", "number"), [(100, 2), (300, 4), (100, 8)])
def test_the_level_is_that_of_the_test(num_prompts, number):
    """Two candidates of one law, 1,000 times: .05 has a deviation of .007."""
    seeds = ([5, num_prompts, seed] for seed in range(1000))
    tests = (trial(num_prompts, number, seed, power=1) for seed in seeds)
    told = np.mean([x.compare("P", "sharper").p_value < 0.05 for x in tests])
    assert 0.03 <= told <= 0.07


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
def test_as_many_prompts_as_planned_have_the_power():
    """A pilot's variances, with the true difference: .8 has a deviation of .028."""
    laws = world(200_000, np.random.default_rng(0))
    apart = ((sharper(laws) - laws) ** 2).sum(axis=1).mean()
    pilot = trial(1000, 8, 6).compare("P", "sharper")
    true = replace(pilot, difference=Estimate(apart, 0, apart, 0))
    for k in (4, 8, 16):
        size = int(true.plan()[k].apart)
        tests = (trial(size, k, [7, k, seed]) for seed in range(200))
        told = np.mean([x.compare("P", "sharper").closer == "P" for x in tests])
        assert 0.7 < told < 0.9, (k, size, told)
