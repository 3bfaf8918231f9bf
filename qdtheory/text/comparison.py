"""Is one candidate better than another? Differences, intervals, and what follows."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, compress, pairwise, product
from typing import Any, TypeVar

import numpy as np

from qdtheory.support.layout import printable
from qdtheory.support.records import Estimate, Record
from qdtheory.text.checks import require_positive
from qdtheory.text.defaults import LEVEL, NUM_GROUPS, ROWS
from qdtheory.text.intervals import interval_of, summed_variance
from qdtheory.text.planner import POWER, needed
from qdtheory.text.tables import with_margin

# Less of these is better; "-n" follows.
LOWER = "Self-BLEU", "CND"
# These are of one text alone, the others of a text and the references; "-n" follows.
ALONE = "Self-BLEU", "NRR", "distinct"
# Real text is the optimum of these, so that they alone have a best.
OPTIMAL = "CND", "MS-Jaccard"
# These change with the number of sentences.
SIZED = "Self-BLEU", "distinct-", "MS-Jaccard"
# A candidate beside real text, by which of the two is better.
WORDS: dict[float, str] = {-1: "below", 0: "like", 1: "beyond"}
JUDGED = "2", "3"  # orders by which two candidates are compared
MOST = 3  # candidates that have a line each

NO_REFERENCES = (
    "Without references nothing tells how good the texts are, or how close to real "
    "text: noise is diverse too."
)


def of_references(metric: str) -> bool:
    """Whether a metric compares a text with the references."""
    return not metric.startswith(ALONE)


Entry = TypeVar("Entry")


class ByName(dict[str, Entry]):
    """A dictionary that tells its names when asked for another."""

    def __init__(self, kind: str, entries: Any):
        super().__init__(entries)
        self.kind = kind

    def __getitem__(self, name: str) -> Entry:
        """Return the entry of a name."""
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a {self.kind}, got {name!r:.40}")
        return super().__getitem__(name)

    def __missing__(self, name: str) -> Entry:
        there = ", ".join(self)
        raise KeyError(f"no {self.kind} is called {name!r}; there are {there}")


class Comparison(Record):
    """Two candidates of a report, made by `compare`.

    Attributes:
        one: name of the first candidate.
        other: name of the second.
        metrics: names of the metrics, as in the report.
        difference: the first's value less the second's, an entry a metric, with its
            interval; NaN where one of them has none.
        dependent: those of the two that depend on the references, see `Report`.
        uneven: whether their numbers of sentences differ.
        paired: whether sentences of one row were left out together.
        fixed: whether the intervals are for these references, not over samples of them.
        level: coverage probability of each interval.
    """

    one: str
    other: str
    metrics: tuple[str, ...]
    difference: Estimate
    dependent: tuple[str, ...]
    uneven: bool
    paired: bool
    fixed: bool
    level: float

    def lead(self, metric: str) -> float:
        """1 if the first is better beyond the interval, -1 if the other is, else 0.

        It is NaN if there is no interval, the metric is of the references and one of
        the two depends on them, or it changes with the size and their sizes differ.
        """
        low, high = self._ends(metric)
        unfit = self.dependent and of_references(metric)
        if unfit or (self.uneven and metric.startswith(SIZED)) or not low <= high:
            return np.nan
        sign = -1.0 if metric.startswith(LOWER) else 1.0
        return sign * ((low > 0) - (high < 0))

    def better(self, metric: str) -> str | None:
        """Name the candidate that is better by a metric, beyond its interval, if any.

        Better by a quality or a diversity alone is not closer to real text.
        """
        lead = self.lead(metric)
        return self.one if lead > 0 else self.other if lead < 0 else None

    def sentence(self, n: int | str) -> str:
        """Say which of the two is closer to real text in n-grams, by CND.

        CND-n is minus twice CR-n + NRR-n / 2, but for what both share. If one is better
        in both metrics then it is in the sum, whose error is at most the sum of theirs,
        so that this test finds more.
        """
        low, high = self._ends(f"CND-{n}")
        real = "these references" if self.fixed else "real text"
        over = "samples of candidates" + " and references" * (not self.fixed)
        between = (
            f"the {self.level:.0%} interval of the difference in CND-{n}, over {over}, "
            f"is {low:.3g} to {high:.3g}."
        )
        untold = f"Which is closer to {real} in {n}-grams is not told"
        if self.dependent:
            verb = "are" if len(self.dependent) > 1 else "is"
            names = " and ".join(self.dependent)
            return f"{untold}: {names} {verb} not independent of the references."
        if not low <= high:
            return f"{untold}: too few of them are repeated or shared."
        who = self.better(f"CND-{n}")
        who = f"{who} is" if who else "Neither is shown to be"
        return f"{who} closer to {real} in {n}-grams: {between}"

    def __str__(self) -> str:
        orders = [name[4:] for name in self.metrics if name.startswith("CND-")]
        judged = [n for n in orders if n in JUDGED] or orders
        return "\n".join(map(self.sentence, judged))

    def _ends(self, metric: str) -> tuple[float, float]:
        low, high = map(np.asarray, (self.difference.low, self.difference.high))
        ends = zip(low.tolist(), high.tolist())
        return ByName("metric", zip(self.metrics, ends))[metric]


def compare(
    report: Any,
    one: str,
    other: str,
    *,
    paired: bool = False,
    fixed: bool = False,
    level: float = LEVEL,
) -> Comparison:
    r"""Compare two candidates of a report, metric by metric.

    The variance of a difference is the sum of the candidates' jackknife variances and
    of that of the difference over the references, which both share, with Welch and
    Satterthwaite's degrees of freedom. So the interval is over samples of candidates
    and references; that of BLEU is over candidates, for these references. With `fixed`
    all are: then "closer" is to these references, and other ones may say otherwise.
    Where row i of both files answers the same input, the samples are not independent:
    `paired` leaves out the same rows of both and takes the variance of the differences,
    which can be much smaller.

    CND is quadratic in each sample and linear in their product, of which the jackknife
    counts all but the linear part twice: its interval covers more than it says, up to
    1.4 times too wide, where two candidates are about equally close.

    Each interval holds at its own level. "Better in both" of two metrics needs no
    correction, since it is said only where both intervals exclude 0.

    References:
        Welch 1947; Berger 1982 (intersection-union tests).
    """
    require_positive("level", level, below=1)
    if not hasattr(report, "real_left_out"):
        kind = type(report).__name__
        raise TypeError(f"report: expected a Report, as evaluate returns, got a {kind}")
    scores = [ByName("candidate", report.scores)[name] for name in (one, other)]
    if one == other:
        raise ValueError(f"expected two candidates, got {one!r} twice")
    sizes = report.sizes[one], report.sizes[other]
    if paired and sizes[0] != sizes[1]:
        raise ValueError(
            f"paired: expected samples of one size, row by row, got {sizes[0]:,} and "
            f"{sizes[1]:,} sentences; leave it out for independent samples"
        )
    left_out = [report.left_out[name] for name in (one, other)]
    samples = [left_out[0] - left_out[1]] if paired else left_out
    real = [report.real_left_out[name] for name in (one, other)]
    if len(real[0]) > 1 and not fixed:
        samples = [*samples, real[0] - real[1]]
    variance, degrees = summed_variance(*samples)
    variance[np.isnan([score.low for score in scores]).any(axis=0)] = np.nan
    value = np.subtract(*(score.value for score in scores))
    difference = interval_of(value, variance, degrees, level)
    dependent = tuple(name for name in (one, other) if name in report.dependent)
    how = sizes[0] != sizes[1], paired, fixed, level
    return Comparison(one, other, report.metrics, difference, dependent, *how)


# --- Rows ---------------------------------------------------------------------------


def choose(report: Any, *metrics: str) -> Any:
    """Show some metrics of a report: by name, "CND-2", of all orders, "CND", or "all".

    Capitals, spaces, hyphens and underscores do not matter. The report still has the
    others.

    Raises:
        ValueError: the report has no such metric.

    Example:
        >>> from qdtheory.text import evaluate
        >>> texts = ["a b c", "a c", "b c a"] * 10
        >>> evaluate(texts, texts, max_order=2).choose("self bleu", "CND-2").rows
        ('Self-BLEU-1', 'Self-BLEU-2', 'CND-2')
    """
    return replace(report, rows=rows_of(report.metrics, metrics))


def rows_of(
    names: Sequence[str], metrics: Sequence[str] | None = None, alone: bool = False
) -> tuple[str, ...]:
    """Names of the metrics that are shown: those asked for, or the usual ones.

    If a sample stands alone, without references, there are fewer.
    """
    names = [name for name in names if not (alone and of_references(name))]
    where = " without references" * alone
    kinds, orders = zip(*(name.rpartition("-")[::2] for name in names))
    if not metrics:
        most = max(map(int, orders))
        usual = dict.fromkeys(f"{kind}-{min(n, most)}" for kind, n in ROWS)
        return tuple(name for name in usual if name in names)
    called = [{*map(_bare, (*words, "all"))} for words in zip(names, kinds)]
    asked = [metrics] if isinstance(metrics, str) else metrics
    asked = [part for metric in asked for part in metric.split(",")]
    for metric in asked:
        if _bare(metric) not in set().union(*called):
            raise ValueError(
                f"metrics: no metric is called {metric!r}{where}; there are "
                f"{', '.join(dict.fromkeys(kinds))}, with n-grams up to "
                f"{max(map(int, orders))}"
            )
    wanted = {*map(_bare, asked)}
    return tuple(compress(names, (wanted & words for words in called)))


def _bare(name: str) -> str:
    """A name without what does not matter; "dist" is distinct."""
    return re.sub(r"^dist(?!inct)", "distinct", re.sub(r"[\s_-]", "", name.casefold()))


# --- What is said -------------------------------------------------------------------


def beside_real(report: Any, name: str) -> dict[str, str]:
    """Whether a candidate is below, like or beyond real text, for each row of a report.

    By the interval of the difference; "" where `Comparison.lead` tells none.
    """
    if report.real in (None, name):
        return {}
    pair = compare(report, name, report.real)
    return {metric: WORDS.get(pair.lead(metric), "") for metric in report.rows}


def best_of(report: Any) -> dict[str, str]:
    """The best candidate by row, where real text is the optimum and intervals tell."""
    rivals, found = _rivals(report), {}
    rows = [metric for metric in report.rows if metric.startswith(OPTIMAL)]
    for name in rivals:
        pairs = [compare(report, name, x) for x in rivals if x != name]
        leads = [x for x in rows if pairs and all(y.lead(x) > 0 for y in pairs)]
        found |= dict.fromkeys(leads, name)
    return found


def conclusions(report: Any) -> tuple[str, ...]:
    """Say of each candidate how far it is, which is closer, and what a paper needs."""
    cnd = [metric for metric in report.rows if metric.startswith("CND-")]
    said = []
    if cnd:
        metric = "CND-2" if "CND-2" in cnd else cnd[0]
        each = (_from_real(report, name, metric) for name in report)
        each = [f"{told}." for told in each if told]
        lines = each if len(each) <= MOST else [" ".join(each)]
        said = [f"In {metric[4:]}-grams {line}" for line in lines]
        said.append(_closest(report, cnd))
    said.append(NO_REFERENCES * (not report.num_references))
    n = min(2, max(int(metric.rpartition("-")[2]) for metric in report.metrics))
    pair = (f"{kind}-{n}" for kind in ("CR", "NRR", "CND"))
    rows = ", ".join(metric for metric in pair if metric in report.metrics)
    real = report.real or "held-out real text"
    said.append(f"For the paper print {rows} beside {real}, and {report.signature}")
    return tuple(map(printable, filter(None, said)))


def _from_real(report: Any, name: str, metric: str) -> str:
    """How far a candidate is from real text; of real text only what is wrong."""
    x, size = report[name][metric], report.sizes[name]
    if name in report.dependent:
        return f"{name} cannot be judged, as it depends on the references"
    if np.isnan(x.low):
        return f"{name} cannot be judged, as too few of them are repeated or shared"
    far = f"{metric} {with_margin(x).replace('±', '± ')}"
    if name == report.real:
        if x.low <= 0:
            return ""
        return f"{name}, real text, differs from the references itself, {far}"
    differs = "differs" if x.low > 0 else "cannot be told"
    told = f"{name} {differs} from real text, {far}"
    if x.value > 0:
        size *= needed(x.value, x.value - x.low, x.standard_error, POWER, cnd=True)
        size = max(size, NUM_GROUPS)  # of fewer the error is not known
        about = f"about {float(f'{size:.3g}'):,.0f} sentences would tell it from"
        so = "" if x.low > 0 else "if it differs so, "
        told += f"; {so}{about} held-out text, with references in proportion"
    words = beside_real(report, name).items()
    beyond = ", ".join(metric for metric, word in words if word == WORDS[1])
    return told + f"; being beyond real text in {beyond} is no merit" * bool(beyond)


def _rivals(report: Any) -> list[str]:
    """Candidates that can be closer to real text than another."""
    return [x for x in report if x != report.real and x not in report.dependent]


def _closest(report: Any, cnd: Sequence[str]) -> str:
    """Candidates in groups, "a or b", each of which is closer than those behind.

    A group ends where each of those before is shown to be closer than each behind.
    """
    names = _rivals(report)
    if len(names) < 2:
        return ""
    pairs = {frozenset(x): compare(report, *x) for x in combinations(names, 2)}
    found: dict[str, list[str]] = {}
    for metric in cnd:
        value = {name: report[name][metric].value for name in names}
        ranked = sorted(names, key=lambda name: np.nan_to_num(value[name], nan=np.inf))
        closer = {x: y.better(metric) for x, y in pairs.items()}
        cuts = {i: product(ranked[:i], ranked[i:]) for i in range(1, len(ranked))}
        apart = (i for i in cuts if all(closer[frozenset(x)] == x[0] for x in cuts[i]))
        ends = pairwise([0, *apart, len(ranked)])
        groups = (sorted(ranked[i:j], key=names.index) for i, j in ends)
        first, *rest = map(" or ".join, groups)
        said = f"{first} is closer to real text than {', then '.join(rest)}"
        said = said if rest else "none is shown to be closer to real text"
        found.setdefault(said, []).append(metric[4:])
    told = (f"{said} in {'-, '.join(orders)}-grams" for said, orders in found.items())
    over = "candidates and references"
    return f"By CND {'; '.join(told)} ({LEVEL:.0%} intervals over {over})."
