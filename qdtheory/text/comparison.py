"""Is one candidate better than another? Differences, intervals, and what follows."""

from itertools import compress
from typing import Any

import numpy as np

from qdtheory.text.defaults import LEVEL
from qdtheory.text.intervals import (
    ConfidenceInterval,
    check_level,
    interval_of,
    jackknife_variance,
)
from qdtheory.world.records import Record

# Less of these is better; "-n" may follow.
LOWER = (
    "Self-BLEU",
    "CND",
    "Frechet MiniLM",
    "LM score",
    "reverse LM score",
    "Bhattacharyya",
)


def lower_is_better(metric: str) -> bool:
    """Whether less of a metric is better.

    Args:
        metric: its name in a report, such as "CND-2" or "LM score".

    Returns:
        True for Self-BLEU, CND, distances and LM scores.

    Example:
        >>> lower_is_better("CND-2"), lower_is_better("NRR-2")
        (True, False)
    """
    return metric.startswith(tuple(f"{name}-" for name in LOWER)) or metric in LOWER


class Comparison(Record):
    """Two candidates of a report, made by `compare`.

    Attributes:
        one: name of the first candidate.
        other: name of the second.
        metrics: names of the metrics, as in the report, without LM scores.
        difference: the first's value less the second's, an entry a metric, with its
            interval.
        paired: whether sentences of one row were left out together.
        level: coverage probability of each interval.
    """

    one: str
    other: str
    metrics: tuple[str, ...]
    difference: ConfidenceInterval
    paired: bool
    level: float

    def better(self, metric: str) -> str | None:
        """Name the candidate that is better by one metric, beyond its interval.

        Args:
            metric: a name such as "CND-2".

        Returns:
            The candidate's name, or None if the interval of the difference contains 0.

        Raises:
            KeyError: the report has no such metric.
        """
        low, high = self._ends(metric)
        if low <= 0 <= high:
            return None
        more = self.one if low > 0 else self.other
        less = self.other if low > 0 else self.one
        return less if lower_is_better(metric) else more

    def sentences(self, n: int) -> tuple[str, str]:
        """Say what may be said of the two by n-grams: by CND, and by BLEU.

        CND decides which is closer, since it is a divergence. BLEU and Self-BLEU do
        not, even where they agree: other text can beat real text in both.

        Args:
            n: an order of the report.

        Returns:
            A sentence by CR, NRR and CND, and one by BLEU and Self-BLEU.

        Raises:
            KeyError: the report has no such order.
        """
        closer = self.better(f"CND-{n}")
        low, high = self._ends(f"CND-{n}")
        between = f"{self.level:.0%} interval of the difference in CND-{n}"
        if closer is None:
            first = (
                f"Neither is shown to be closer to the references in {n}-grams: the "
                f"{between}, {low:.3g} to {high:.3g}, contains 0."
            )
        else:
            ends = sorted((abs(low), abs(high)))
            first = (
                f"{closer} is closer to the references in {n}-grams: the {between} "
                f"is {ends[0]:.3g} to {ends[1]:.3g}. {self._where(n)}"
            )
        quality, diversity = self.better(f"BLEU-{n}"), self.better(f"Self-BLEU-{n}")
        if quality and quality == diversity:
            second = (
                f"{quality} is better in both BLEU-{n} and Self-BLEU-{n}, which does "
                "not mean closer to the references."
            )
        elif quality and diversity:
            second = (
                f"{quality} is better in BLEU-{n} and {diversity} in Self-BLEU-{n}: "
                "neither is better in both."
            )
        else:
            second = f"BLEU-{n} and Self-BLEU-{n} do not tell them apart in both."
        return first, second

    def __str__(self) -> str:
        orders = [name[4:] for name in self.metrics if name.startswith("CND-")]
        return "\n".join(line for n in orders for line in self.sentences(int(n)))

    def _ends(self, metric: str) -> tuple[float, float]:
        if metric not in self.metrics:
            there = ", ".join(self.metrics)
            raise KeyError(f"no metric is called {metric!r}; there are {there}")
        i = self.metrics.index(metric)
        low, high = map(np.asarray, (self.difference.low, self.difference.high))
        return float(low[i]), float(high[i])

    def _where(self, n: int) -> str:
        """By which side of the pair the closer one leads."""
        sides = {"quality": f"CR-{n}", "diversity": f"NRR-{n}"}
        leads: dict[str, list[str]] = {self.one: [], self.other: []}
        for side, metric in sides.items():
            winner = self.better(metric)
            if winner is not None:
                leads[winner].append(f"{side} ({metric})")
        said = [f"{name} has more {' and '.join(x)}" for name, x in leads.items() if x]
        return f"{', '.join(said)}." if said else ""


def compare(
    report: Any, one: str, other: str, *, paired: bool = False, level: float = LEVEL
) -> Comparison:
    r"""Compare two candidates of a report, metric by metric.

    The variance of a difference is the sum of the candidates' jackknife variances, with
    Welch and Satterthwaite's degrees of freedom. Where row i of both files answers the
    same input, the samples are not independent: `paired` leaves out the same rows of
    both and takes the variance of the differences, which can be much smaller. The
    references are fixed in both cases.

    Each interval holds at its own level. "Better in both" of two metrics needs no
    correction, since it is said only where both intervals exclude 0.

    Args:
        report: a `Report`, from `evaluate`.
        one: name of a candidate.
        other: name of another.
        paired: whether row i of both belongs together.
        level: coverage probability of each interval, in (0, 1).

    Returns:
        The differences, and the sentences that they allow.

    Raises:
        KeyError: the report has no such candidate.
        ValueError: a level outside (0, 1), one candidate twice, or `paired` with
            samples of different sizes.

    References:
        Welch 1947; Berger 1982 (intersection-union tests).

    Example:
        >>> from qdtheory.text import evaluate
        >>> real = ["a b c d", "b c d a", "c d a b", "d a b c"] * 9
        >>> few = {"same": real[:30], "worse": ["a b b b", "d d c d", "a a a c"] * 10}
        >>> found = compare(evaluate(few, real, max_order=2), "same", "worse")
        >>> found.better("CND-2"), found.better("Self-BLEU-2")
        ('same', None)
        >>> print(found.sentences(2)[0])
        same is closer ...
    """
    check_level(level)
    for name in (one, other):
        if name not in report.scores:
            there = ", ".join(report.scores)
            raise KeyError(f"no candidate is called {name!r}; there are {there}")
    if one == other:
        raise ValueError(f"expected two candidates, got {one!r} twice")
    sizes = report.sizes[one], report.sizes[other]
    if paired and sizes[0] != sizes[1]:
        raise ValueError(
            f"paired: expected samples of one size, row by row, got {sizes[0]:,} and "
            f"{sizes[1]:,} sentences; leave it out for independent samples"
        )
    left_out = [report.left_out[name] for name in (one, other)]
    known = ~(np.isnan(left_out[0]).any(axis=0) | np.isnan(left_out[1]).any(axis=0))
    left_out = [values[:, known] for values in left_out]
    values = [np.asarray(report.scores[name].value)[known] for name in (one, other)]
    if paired:
        variance, degrees = jackknife_variance(left_out[0] - left_out[1])
    else:
        (a, of_a), (b, of_b) = map(jackknife_variance, left_out)
        variance = a + b
        with np.errstate(invalid="ignore"):  # 0 / 0: no variance, any degrees
            degrees = variance**2 / (a**2 / of_a + b**2 / of_b)
        degrees = np.where(variance > 0, degrees, np.inf)
    difference = interval_of(values[0] - values[1], variance, degrees, level)
    metrics = tuple(compress(report.metrics, known))
    return Comparison(one, other, metrics, difference, paired, level)
