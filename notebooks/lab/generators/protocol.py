"""The protocol of Semeniuta et al.: random search, selection, and seven fresh seeds.

A model is trained with settings drawn at random from declared ranges, the best by one
metric is retrained with new seeds, and the mean and deviation of those runs are its
result. The value that a setting was selected for is not: it is the least of many, and
lower than what its setting gives on average. The same loop with metrics of samples in
place of exact ones shows which setting the noise, or the metric itself, selects.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from qdtheory.distributions import (
    as_distributions,
    require_positive,
    sample,
)
from qdtheory.support.numbers import PerText, one_of, within
from qdtheory.support.records import Record

# A run with given settings and a seed: the values of its metrics, by name.
Run = Callable[[Mapping[str, Any], int], Mapping[str, float]]
Metrics = Callable[[Array, Array], Mapping[str, float]]


class Range(Record):
    """An interval to draw a number from, whose logarithm is uniform.

    Attributes:
        low: its lower end, positive.
        high: its upper end, above the lower one.

    Raises:
        ValueError: the ends are not finite, not in order, or not positive.
    """

    low: int | float
    high: int | float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.high) and self.low < self.high):
            raise ValueError(
                f"a range needs two finite ends in order, got {self.low}, {self.high}"
            )
        if self.low <= 0:
            raise ValueError(
                f"a range of logarithms needs positive ends, got {self.low}"
            )

    def at(self, share: float) -> float:
        """The number below which a share in [0, 1] of all draws lie."""
        return float(self.low * (self.high / self.low) ** share)


class Trials(Record):
    """The runs of a random search.

    Attributes:
        settings: of each run, by their names.
        values: the metrics, by their names, shape (trials,).
    """

    settings: tuple[dict[str, Any], ...]
    values: dict[str, Float[np.ndarray, " trials"]]


class Tuned(Record):
    """The setting that a search selected, and what it gives with fresh seeds.

    Attributes:
        metric: the name of the metric that selected it.
        settings: the setting.
        selected_at: the metrics of the run that was selected, by their names.
        values: those of the runs with fresh seeds, shape (seeds,).
        mean: their means.
        deviation: their standard deviations, with divisor seeds - 1; NaN if a value is
            infinite.
        trials: all runs of the search.
    """

    metric: str
    settings: dict[str, Any]
    selected_at: dict[str, float]
    values: dict[str, Float[np.ndarray, " seeds"]]
    mean: dict[str, float]
    deviation: dict[str, float]
    trials: Trials


def random_search(
    run: Run,
    ranges: Mapping[str, Range | tuple | list],
    metric: str,
    *,
    lowest: bool = True,
    num_trials: int = 100,
    num_seeds: int = 7,
    seed: int = 0,
    trials: Trials | None = None,
) -> Tuned:
    """Draw settings, select the best by one metric, and retrain it with fresh seeds.

    Args:
        run: trains a model: run(settings, seed) gives its metrics by their names.
        ranges: for each setting a `Range`, or the values to choose from.
        metric: the name of the metric that selects.
        lowest: whether its lowest value is the best, else its highest.
        num_trials: number of runs of the search, at least 1.
        num_seeds: number of runs with the selected setting, at least 2.
        seed: of the search; the runs have the seeds from here on, each another.
        trials: those of an earlier search, to select from by another metric without
            repeating them.

    Returns:
        The selected setting with the means and deviations of its runs. A run whose
        metric is not finite, as training diverged, is not selected.

    Raises:
        ValueError: there is no range, a choice is empty, a number is out of range, the
            metric has another name, or is finite in no run.

    References:
        Semeniuta et al. 2018, section 4.2: 100 trials, 7 seeds, selected by FD.

    Claims: N22.16.

    Example:
        >>> def run(settings, seed):
        ...     noise = np.random.default_rng(seed).normal()
        ...     return {"loss": abs(np.log10(settings["rate"]) + 2) + 0.01 * noise}
        >>> found = random_search(run, {"rate": Range(1e-4, 1)}, "loss")
        >>> round(float(np.log10(found.settings["rate"])), 1), len(found.values["loss"])
        (-2.0, 7)
    """
    require_positive(num_trials=num_trials)
    within(num_seeds=num_seeds, low=2)  # for a deviation
    if trials is None:
        trials = _search(run, ranges, num_trials, seed)
    one_of(trials.values, metric=metric)
    scores = trials.values[metric] * (1 if lowest else -1)
    scores = np.where(np.isfinite(scores), scores, np.inf)
    best = int(scores.argmin())
    if scores[best] == np.inf:
        raise ValueError(f"{metric} is finite in none of {len(scores)} runs")
    settings = trials.settings[best]
    fresh = seed + len(scores)
    values = _table([run(settings, fresh + k) for k in range(num_seeds)])
    with np.errstate(invalid="ignore"):  # NaN where a value is infinite
        spread = {name: float(np.std(of, ddof=1)) for name, of in values.items()}
    return Tuned(
        metric=metric,
        settings=settings,
        selected_at={name: float(of[best]) for name, of in trials.values.items()},
        values=values,
        mean={name: float(np.mean(of)) for name, of in values.items()},
        deviation=spread,
        trials=trials,
    )


def of_samples(
    metrics: Metrics, q: PerText, p: PerText, num_samples: int, seed: int
) -> Mapping[str, float]:
    """Metrics as an experiment sees them: of the frequencies of texts drawn.

    Args:
        metrics: metrics(q, p) gives numbers by their names.
        q: the model, shape (N,).
        p: the real distribution, shape (N,).
        num_samples: number of texts drawn from each of the two.
        seed: of the draws.

    Returns:
        The metrics of the two empirical distributions.

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or `num_samples` is
            below 1.

    Example:
        >>> q = np.array([0.5, 0.5])
        >>> of_samples(lambda q, p: {"cr": float(q @ p)}, q, q, 4, seed=0)
        {'cr': 0.625}
    """
    q, p = as_distributions(q=q, p=p)
    keys = jax.random.split(jax.random.key(seed))
    drawn = (sample(key, x, num_samples) for key, x in zip(keys, (q, p)))
    return metrics(*(jnp.bincount(i, length=q.size) / num_samples for i in drawn))


def _search(run: Run, ranges: Mapping, num_trials: int, seed: int) -> Trials:
    if not ranges:
        raise ValueError("there is nothing to search: give a range for each setting")
    for name, choices in ranges.items():
        if not isinstance(choices, Range) and not len(choices):
            raise ValueError(f"{name} has no values to choose from")
    shares = np.random.default_rng(seed).random((num_trials, len(ranges)))
    settings = tuple(
        {
            name: x.at(u) if isinstance(x, Range) else x[int(u * len(x))]
            for (name, x), u in zip(ranges.items(), row)
        }
        for row in shares
    )
    runs = [run(each, seed + k) for k, each in enumerate(settings)]
    return Trials(settings, _table(runs))


def _table(runs: list[Mapping[str, float]]) -> dict[str, np.ndarray]:
    return {name: np.array([float(run[name]) for run in runs]) for name in runs[0]}
