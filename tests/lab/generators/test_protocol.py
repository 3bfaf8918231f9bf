"""Random search and retraining, against order statistics and loops by hand."""

import jax
import numpy as np
import pytest
from lab.generators import (
    LogitTable,
    Range,
    of_samples,
    random_search,
    train,
)
from refusals import refused

import qdtheory as qd

SPACE = qd.TextSpace(2, 3)
RANGES = {"rate": Range(1e-3, 10), "kind": ("a", "b")}


def noise(settings, seed):
    """Metrics that ignore the settings."""
    rng = np.random.default_rng(seed)
    return {"fd": rng.normal(), "bleu": rng.normal()}


def test_logarithms_and_choices_are_uniform():
    found = random_search(noise, RANGES, "fd", num_trials=2000).trials.settings
    rates = np.log10([each["rate"] for each in found])
    assert -3 <= rates.min() < -2.99
    assert 0.99 < rates.max() <= 1
    assert abs(rates.mean() + 1) < 4 * (4 / np.sqrt(12 * 2000))
    shares = np.mean([each["kind"] == "a" for each in found])
    assert abs(shares - 0.5) < 4 * 0.5 / np.sqrt(2000)


@pytest.mark.claim("N22.16")
def test_the_least_of_many_runs_is_not_what_its_setting_gives():
    """Of pure noise the best of 100 is 2.5 deviations low, its retrained mean at 0."""
    found = [random_search(noise, RANGES, "fd", seed=1000 * k) for k in range(40)]
    least = np.mean([each.selected_at["fd"] for each in found])
    draws = np.random.default_rng(0).normal(size=(4000, 100)).min(axis=1)
    assert abs(least - draws.mean()) < 4 * draws.std() / np.sqrt(40)
    fresh = np.mean([each.mean["fd"] for each in found])
    assert abs(fresh) < 4 / np.sqrt(40 * 7)
    spread = np.mean([each.deviation["fd"] ** 2 for each in found])
    assert abs(spread - 1) < 4 * np.sqrt(2 / 6 / 40)
    # The other metric of the run is not selected for, and stays at its mean.
    assert abs(np.mean([each.selected_at["bleu"] for each in found])) < 4 / np.sqrt(40)


def test_each_run_has_a_seed_of_its_own_and_trials_are_kept():
    seeds = []

    def run(settings, seed):
        seeds.append(seed)
        return noise(settings, seed)

    found = random_search(run, RANGES, "fd", num_trials=9, num_seeds=3, seed=5)
    assert seeds == list(range(5, 17))
    values = found.trials.values["fd"]
    assert values.tolist() == [noise({}, 5 + k)["fd"] for k in range(9)]
    assert found.settings == found.trials.settings[int(values.argmin())]
    fresh = [noise({}, 14 + k)["bleu"] for k in (0, 1, 2)]
    assert found.values["bleu"].tolist() == fresh
    assert found.deviation["fd"] == pytest.approx(np.std(found.values["fd"], ddof=1))
    seeds.clear()
    settings = {"num_seeds": 3, "trials": found.trials, "seed": 5}
    other = random_search(run, RANGES, "bleu", lowest=False, **settings)
    assert seeds == [14, 15, 16]
    best = int(found.trials.values["bleu"].argmax())
    assert other.settings == found.trials.settings[best]
    assert other.trials == found.trials


def test_a_run_that_diverged_is_not_selected():
    def run(settings, seed):
        return {"loss": np.nan if seed % 2 else (-np.inf if seed == 4 else seed)}

    found = random_search(run, RANGES, "loss", num_trials=6, num_seeds=2)
    assert found.selected_at == {"loss": 0.0}
    assert np.isnan(found.deviation["loss"])

    def infinite(settings, seed):
        return {"loss": seed, "nll": np.inf}

    found = random_search(infinite, RANGES, "loss", num_trials=2, num_seeds=2)
    assert found.mean["nll"] == np.inf
    assert np.isnan(found.deviation["nll"])
    with pytest.raises(ValueError, match="loss is finite in none of 6 runs"):
        random_search(lambda *_: {"loss": np.nan}, RANGES, "loss", num_trials=6)


def test_a_metric_of_quality_alone_selects_the_longer_training():
    """By Oracle-NLL the largest rate wins, as D drives a model to its best text."""
    p = np.asarray(qd.oracle(SPACE, 0))
    start = LogitTable(np.random.default_rng(0).normal(size=8))
    rewards = jax.tree_util.Partial(lambda q, p: p)  # the quality CR, no divergence

    def run(settings, seed):
        found = train(rewards, start, SPACE, p, 20, every=20, **settings)
        return {"oracle_nll": found.oracle_nll[-1], "js": found.js[-1]}

    ranges = {"learning_rate": Range(1e-3, 1)}
    chosen = random_search(run, ranges, "oracle_nll", num_trials=8, num_seeds=2)
    other = random_search(run, ranges, "js", num_seeds=2, trials=chosen.trials)
    assert chosen.settings["learning_rate"] > other.settings["learning_rate"]
    assert chosen.mean["js"] > other.mean["js"]
    assert chosen.deviation["js"] < 1e-12


def test_metrics_of_samples_converge_to_the_exact_ones():
    rng = np.random.default_rng(3)
    q, p = rng.dirichlet(np.ones(8), 2)

    def metrics(q, p):
        return {"cr": float(q @ p), "nrr": -float(q @ q)}

    exact = metrics(q, p)
    found = [of_samples(metrics, q, p, 400, seed) for seed in range(60)]
    for name, bias in (("cr", 0), ("nrr", -(1 - q @ q) / 400)):
        values = np.array([each[name] for each in found])
        error = 4 * values.std(ddof=1) / np.sqrt(60)
        assert abs(values.mean() - exact[name] - bias) < error


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    def search(ranges=RANGES, metric="fd", **settings):
        return lambda: random_search(noise, ranges, metric, **settings)

    q, p = np.full(8, 1 / 8), np.full(4, 1 / 4)
    refused(
        ("two finite ends in order, got 1, 0", Range, 1, 0),
        ("needs positive ends, got 0", Range, 0, 1),
        ("nothing to search", search({})),
        ("kind has no values to choose from", search({"kind": ()})),
        ("metric must be one of fd, bleu, got 'js'", search(metric="js", num_trials=2)),
        ("num_trials must be at least 1, got 0", search(num_trials=0)),
        ("num_seeds must be finite and at least 2, got 1", search(num_seeds=1)),
        ("must have 8 entries, got 4", of_samples, lambda q, p: {}, q, p, 10, 0),
    )
