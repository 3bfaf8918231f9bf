"""How many sentences are needed: by hand, and by drawing as many."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from qdtheory.text import evaluate, plan
from qdtheory.text.comparison import compare

LAWS = np.ones((3, 30))
LAWS[0, 20:], LAWS[1, :10], LAWS[2, 10:20] = 1.2, 2, 1.6
LAWS /= LAWS.sum(axis=1, keepdims=True)


def pilot(size, seed, max_order=1):
    """Two candidates and the references, of independent words."""
    rng = np.random.default_rng(seed)
    real, one, other = (rng.choice(30, (size, 6), p=p).tolist() for p in LAWS)
    return evaluate({"one": one, "other": other}, real, max_order)


@pytest.fixture(scope="module")
def report():
    return pilot(4000, 0, 2)


def test_errors_that_fall_as_the_root_of_the_size_are_as_long_as_was_asked(report):
    """With as many sentences the difference is so many errors away, by its interval."""
    found = plan(report, "one", "other", power=0.9, within=0.05)
    names = "BLEU-2", "CR-1", "CR-2", "NRR-1", "NRR-2", "CND-1", "CND-2"
    assert {*found} == {*names, "distinct_1000-2"}  # no word of 30 is new
    ours = compare(report, "one", "other")
    for metric, needed in found.items():
        shrunk = np.sqrt(4000 / (needed.apart - 1)), np.sqrt(4000 / needed.apart)
        i, d = ours.metrics.index(metric), ours.difference
        margin, error = d.high[i] - d.value[i], d.standard_error[i]
        for x, sign in zip(shrunk, (-1, 1)):
            # The chance that an interval of this half width leaves 0 out, on one side.
            away = (abs(d.value[i]) - x * margin) / (x * error)
            assert sign * (stats.norm.cdf(away) - 0.9) >= -1e-9, metric
        assert needed.low <= needed.apart <= needed.high
        # The shorter interval is told by the larger of two shares.
        halves = [
            (x.high - x.low) / 2 / abs(x.value)
            for x in (report[name][metric] for name in ("one", "other"))
        ]
        assert needed.within == np.ceil(4000 * (max(halves) / 0.05) ** 2)


def test_what_may_be_no_difference_has_no_upper_end():
    found = plan(pilot(60, 3), "one", "other")
    assert np.isinf(found["CR-1"].high)
    assert np.isfinite(found["CR-1"].low)
    same = pilot(60, 3)
    same = replace(
        same,
        scores=dict.fromkeys(same, same.scores["one"]),
        left_out=dict.fromkeys(same, same.left_out["one"]),
    )
    assert np.isinf(plan(same, "one", "other")["NRR-1"].apart)
    fixed = plan(pilot(60, 3), "one", "other", fixed=True)
    assert fixed["CND-1"].apart < found["CND-1"].apart


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")  # hundreds of calls
def test_as_many_sentences_as_planned_have_the_power():
    """Of 150 runs .8 are 120, with a deviation of 5; nine pilots give the median.

    They are larger than the plan. Of the errors the linear parts alone fall as the root
    of the size, so that with fewer sentences than the pilot's the power is a bit less.
    """
    plans = [plan(pilot(4000, [3, seed]), "one", "other") for seed in range(9)]
    for metric in ("NRR-1", "CND-1"):
        size = int(np.median([needed[metric].apart for needed in plans]))
        assert size < 4000

        def found(size, seed, times, metric=metric):
            runs = (
                pilot(size, [seed, x]).compare("one", "other") for x in range(times)
            )
            return sum(run.better(metric) is not None for run in runs)

        assert 95 <= found(size, 1, 150) <= 138, metric
        assert found(size // 3, 2, 100) <= 55, metric


@pytest.mark.slow
def test_repeats_need_so_many_ngrams():
    """At most 4 / (eps**2 sqrt(r)), for a share eps of the rate r; see what_to_report.

    The variance of the rate of equal pairs among n independent n-grams is known, and
    the sum of cubes of a law is at most its rate to the power 1.5.
    """
    rng = np.random.default_rng(4)
    eps = 0.2
    for power in (0, 0.6, 1, 1.5):
        p = np.arange(1.0, 1001) ** -power
        p /= p.sum()
        rate, cubes = (p**2).sum(), (p**3).sum()
        assert cubes <= rate**1.5
        n = int(4 / (eps**2 * np.sqrt(rate)))
        counts = rng.multinomial(n, p, 4000)
        found = (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
        exact = (4 * (n - 2) * (cubes - rate**2) + 2 * (rate - rate**2)) / (n * (n - 1))
        assert found.var() == pytest.approx(exact, rel=0.15)
        assert found.std() / rate <= eps * (1 + eps**2)
        # Fewer than these are never enough: pairs among as many meet twice by chance.
        few = int(np.sqrt(2 * (1 - rate) / rate) / eps)
        assert 2 * (rate - rate**2) / (few * (few - 1)) >= (eps * rate) ** 2


def test_bad_input(report, as_a_user):
    again = pilot(60, 1)
    again.sizes["other"] = 61
    known = partial(plan, report, "one", "other")
    refused(
        ("power: expected a number between 0 and 1, got 80", partial(known, 80)),
        ("within: expected a number between 0 and 1, got 0", partial(known, 0.8, 0)),
        ("samples of one size, got 60 and 61", plan, again, "one", "other"),
        ("level: expected", partial(known, level=2)),
    )
    refused(("no candidate is called 'x'", plan, report, "one", "x"), error=KeyError)
    refused(
        (
            "report: expected a Report, as evaluate returns, got a str",
            plan,
            "a",
            "b",
            "c",
        ),
        ("expected the name of a candidate, got ['one']", plan, report, ["one"], "x"),
        error=TypeError,
    )
