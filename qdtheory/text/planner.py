"""How many sentences an evaluation needs, reckoned from a pilot."""

from typing import Any

import numpy as np

from qdtheory.support.records import Record
from qdtheory.text.checks import require_positive

POWER = 0.8
# The means of these do not change with the number of sentences.
PLANNED = "BLEU-", "CR-", "NRR-", "CND-", "distinct_"


class SampleSize(Record):
    """Sentences of each candidate, references in the pilot's proportion; or prompts.

    Attributes:
        apart: to tell the two apart, if they differ as in the pilot.
        low: the same, if they differ by as much as the difference's interval allows.
        high: if by as little; infinity where it holds 0.
        within: for an interval of each that is as short as was asked for; not of
            prompts.
    """

    apart: float
    low: float
    high: float
    within: float | None = None


def plan(
    report: Any,
    one: str,
    other: str,
    power: float = POWER,
    within: float = 0.1,
    **how: Any,
) -> dict[str, SampleSize]:
    """Reckon how many sentences tell two candidates apart, from a report of some.

    Errors are taken to fall as one over the root of the number. Those of CND fall as
    one over the number at first: below the pilot's size they are taken to do so, above
    it fewer may do. `low` and `high` show the pilot's error. Metrics that change with
    size are left out.

    Args:
        report: of `evaluate`, of a pilot in which both have as many sentences.
        one: name of a candidate.
        other: name of another.
        power: chance that the interval of the difference shall leave out 0.
        within: half the interval of each candidate over its value, at most.
        how: `paired`, `fixed` and `level`, as in `compare`.

    Raises:
        KeyError, ValueError: see `compare`; sizes differ; not between 0 and 1.

    Example:
        >>> from qdtheory.text import evaluate
        >>> some = {"a": ["a b", "b c", "c d"] * 40, "b": ["a b", "b a", "b b"] * 40}
        >>> plan(evaluate(some, some["a"][::-1], 1), "a", "b")["CND-1"].apart < 120
        True
    """
    require_positive("power", power, below=1)
    require_positive("within", within, below=1)
    compared: Any = report.compare(one, other, **how)
    size, more = report.sizes[one], report.sizes[other]
    if size != more:
        raise ValueError(f"expected samples of one size, got {size:,} and {more:,}")
    d, found = compared.difference, {}
    rows = zip(compared.metrics, abs(d.value), d.high - d.value, d.standard_error)
    for metric, gap, margin, error in rows:
        if not metric.startswith(PLANNED) or np.isnan(margin):
            continue
        gaps = np.maximum([gap, gap + margin, gap - margin], 0)
        scores = [report[name][metric] for name in (one, other)]
        with np.errstate(all="ignore"):  # a value of 0
            share = max(np.divide(x.high - x.low, 2 * abs(x.value)) for x in scores)
        cnd = metric.startswith("CND-")
        times = (
            needed(gaps, margin, error, power, cnd),
            needed(within, share, 0, 0.5, cnd),
        )
        found[metric] = SampleSize(*np.ceil(size * np.hstack(times)).tolist())
    return found


def needed(gap: Any, margin: Any, error: Any, power: float, cnd: bool = False) -> Any:
    """How many times the sentences show a gap with this power, by half an interval.

    The variance of CND is a/n + b/n^2. With b alone the number is the ratio of what is
    to be seen, with a alone its square: the larger of the two is taken.
    """
    from scipy.special import ndtri  # late: slow to import

    with np.errstate(all="ignore"):  # no gap
        ratio = np.maximum(margin + ndtri(power) * error, 0) / gap
    return np.maximum(ratio, ratio**2) if cnd else ratio**2
