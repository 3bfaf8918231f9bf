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
from qdtheory.text.defaults import LEVEL
from qdtheory.text.intervals import interval_of, summed_variance

# Less of these is better; "-n" follows.
LOWER = "Self-BLEU", "CND"
# These are of one text alone, the others of a text and the references; "-n" follows.
ALONE = "Self-BLEU", "NRR", "distinct"

KEYS = "value", "low", "high", "standard_error"  # of an `Estimate`

# What is not said of two candidates, whatever the numbers are.
NOT_SAID = (
    "Better in both BLEU-n and Self-BLEU-n is not closer to real text, as other text "
    "can be better in both than real text; a CND of 0 means equal n-grams, not equal "
    "texts."
)


def lower_is_better(metric: str) -> bool:
    """Whether less of a metric is better."""
    return metric.startswith(LOWER)


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
        paired: whether sentences of one row were left out together.
        fixed: whether the intervals are for these references, not over samples of them.
        level: coverage probability of each interval.
    """

    one: str
    other: str
    metrics: tuple[str, ...]
    difference: Estimate
    dependent: tuple[str, ...]
    paired: bool
    fixed: bool
    level: float

    def better(self, metric: str) -> str | None:
        """Name the candidate that is better by a metric, beyond its interval.

        It is None if the interval of the difference contains 0, there is none, or the
        metric is of the references and one of the candidates depends on them.
        """
        low, high = self._ends(metric)
        if not (low > 0 or high < 0) or (self.dependent and of_references(metric)):
            return None
        first = (low > 0) != lower_is_better(metric)
        return self.one if first else self.other

    def closer(self, quality: str, diversity: str) -> str | None:
        """Name the candidate that is closer to real text, by a compatible pair.

        It has more of CR-n + NRR-n / 2, beyond the interval: of minus half of CND-n,
        but for what both share; if `fixed`, it is closer to these references. If one is
        better in both metrics then it is in the sum, whose error is at most the sum of
        theirs, so that this test finds more.

        Raises:
            KeyError: the report has no such n.
            ValueError: another pair, of which no sum is known to be a divergence.
        """
        kinds = [name.rpartition("-")[::2] for name in (quality, diversity)]
        if [kind for kind, _ in kinds] != ["CR", "NRR"] or kinds[0][1] != kinds[1][1]:
            raise ValueError(
                f"{quality} with {diversity} cannot tell which is closer: text may beat"
                " real text in both; take a compatible pair, CR-n with NRR-n of one n"
            )
        return self.better(f"CND-{kinds[0][1]}")

    def sentences(self, n: int) -> tuple[str, str]:
        """Say what may be said of the two by n-grams of order n: by CND, and by BLEU.

        CR and NRR tell which is closer, see `closer`. BLEU and Self-BLEU do not, even
        where they agree. Closer to real text is said over samples of candidates and
        references, better in BLEU over samples of candidates, for these references.
        """
        return self._closer(n), self._by_bleu(n)

    def _closer(self, n: int) -> str:
        closer = self.closer(f"CR-{n}", f"NRR-{n}")
        low, high = self._ends(f"CND-{n}")
        real = "these references" if self.fixed else "real text"
        over = "samples of candidates" + " and references" * (not self.fixed)
        between = (
            f"{self.level:.0%} interval of the difference in CND-{n}, over {over},"
        )
        untold = f"Which is closer to {real} in {n}-grams is not told"
        if self.dependent:
            verb = "are" if len(self.dependent) > 1 else "is"
            names = " and ".join(self.dependent)
            return f"{untold}: {names} {verb} not independent of the references."
        if not low <= high:
            return f"{untold}: too few of them are repeated or shared."
        if closer is None:
            return (
                f"Neither is shown to be closer to {real} in {n}-grams: the "
                f"{between} {low:.3g} to {high:.3g}, contains 0."
            )
        ends = sorted((abs(low), abs(high)))
        return (
            f"{closer} is closer to {real} in {n}-grams: the {between} is "
            f"{ends[0]:.3g} to {ends[1]:.3g}. {self._where(n)}"
        )

    def _by_bleu(self, n: int) -> str:
        quality, diversity = self.better(f"BLEU-{n}"), self.better(f"Self-BLEU-{n}")
        if quality and quality == diversity:
            return (
                f"{quality} is better in both BLEU-{n}, with these references, and "
                f"Self-BLEU-{n}, which does not mean closer to real text: other text "
                "can be better in both than real text."
            )
        if quality and diversity:
            return (
                f"{quality} is better in BLEU-{n}, with these references, and "
                f"{diversity} in Self-BLEU-{n}: neither is better in both."
            )
        return f"BLEU-{n} and Self-BLEU-{n} do not tell them apart in both."

    def __str__(self) -> str:
        orders = [name[4:] for name in self.metrics if name.startswith("CND-")]
        return "\n".join(line for n in orders for line in self.sentences(int(n)))

    def _ends(self, metric: str) -> tuple[float, float]:
        low, high = map(np.asarray, (self.difference.low, self.difference.high))
        ends = zip(low.tolist(), high.tolist())
        return ByName("metric", zip(self.metrics, ends))[metric]

    def _where(self, n: int) -> str:
        """By which side of the pair the closer one leads."""
        sides = {"quality": f"CR-{n}", "diversity": f"NRR-{n}"}
        said = []
        for name in (self.one, self.other):
            leads = [f"{x} ({m})" for x, m in sides.items() if self.better(m) == name]
            said += [f"{name} has more {' and '.join(leads)}"] * bool(leads)
        return f"{', '.join(said)}." if said else ""


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
    known = ~(np.isnan(left_out[0]).any(axis=0) | np.isnan(left_out[1]).any(axis=0))
    samples = [left_out[0] - left_out[1]] if paired else left_out
    real = [report.real_left_out[name] for name in (one, other)]
    if len(real[0]) > 1 and not fixed:
        samples = [*samples, real[0] - real[1]]
    variance, degrees = summed_variance(*(x[:, known] for x in samples))
    ends = np.array([score.low for score in scores])[:, known]
    variance[np.isnan(ends).any(axis=0)] = np.nan
    value = np.subtract(*(np.asarray(score.value)[known] for score in scores))
    difference = interval_of(value, variance, degrees, level)
    metrics = tuple(compress(report.metrics, known))
    dependent = tuple(name for name in (one, other) if name in report.dependent)
    return Comparison(one, other, metrics, difference, dependent, paired, fixed, level)


def choose(report: Any, *metrics: str) -> Any:
    """Keep some metrics of a report: by name, "CND-2", or of all orders, "CND".

    Capitals, spaces, hyphens and underscores do not matter.

    Raises:
        ValueError: the report has no such metric.

    Example:
        >>> from qdtheory.text import evaluate
        >>> texts = ["a b c", "a c", "b c a"] * 10
        >>> evaluate(texts, texts, max_order=2).choose("self bleu", "CND-2").metrics
        ('Self-BLEU-1', 'Self-BLEU-2', 'CND-2')
    """
    kept = chosen(report.metrics, metrics)

    def some(table: Any) -> Any:
        if isinstance(table, Estimate):
            return Estimate(**{part: getattr(table, part)[kept] for part in KEYS})
        return table[:, kept]

    tables = "scores", "left_out", "real_left_out"
    named = {x: {n: some(y) for n, y in getattr(report, x).items()} for x in tables}
    return replace(report, metrics=(*compress(report.metrics, kept),), **named)


def chosen(names: Sequence[str], metrics: Sequence[str]) -> list[bool]:
    """Tell which names are chosen, or raise if one of the choices is none of them."""
    kinds = [re.sub("-[0-9]+$", "", name) for name in names]
    called = [{*map(_bare, words)} for words in zip(names, kinds)]
    there = ", ".join(dict.fromkeys(kinds))
    metrics = [part for metric in metrics for part in metric.split(",")]
    for metric in metrics:
        if _bare(metric) not in set().union(*called):
            orders = re.findall("-([0-9]+)$", "\n".join(names), re.M)
            upto = f", with n-grams up to {max(map(int, orders))}" * bool(orders)
            raise ValueError(f"no metric is called {metric!r}; there are {there}{upto}")
    return [bool(words & {*map(_bare, metrics)}) for words in called]


def _bare(name: str) -> str:
    """A name without what does not matter; "dist" is distinct."""
    return re.sub(r"^dist(?!inct)", "distinct", re.sub(r"[\s_-]", "", name.casefold()))


def conclusions(report: Any) -> tuple[str, str, str]:
    """Say in words who is closer, what may not be said, and what is missing or leaked.

    Candidates stand in one group, "a or b", unless each of those before is shown to be
    closer than each of those behind. Dependent ones do not take part.
    """
    return printable(_closest(report)), NOT_SAID, printable(_lacking(report))


def _closest(report: Any) -> str:
    names = [name for name in report if name not in report.dependent]
    if len(names) < 2:
        return (
            "Nothing is said to be closer to real text: there are no two candidates "
            "that are independent of the references; put held-out real text beside one."
        )
    pairs = {frozenset(x): compare(report, *x) for x in combinations(names, 2)}
    found: dict[str, list[str]] = {}
    for n in (name[4:] for name in report.metrics if name.startswith("CND-")):
        value = {name: report[name][f"CND-{n}"].value for name in names}
        ranked = sorted(names, key=lambda name: np.nan_to_num(value[name], nan=np.inf))
        closer = {x: y.closer(f"CR-{n}", f"NRR-{n}") for x, y in pairs.items()}
        cuts = {i: product(ranked[:i], ranked[i:]) for i in range(1, len(ranked))}
        apart = (i for i in cuts if all(closer[frozenset(x)] == x[0] for x in cuts[i]))
        ends = pairwise([0, *apart, len(ranked)])
        groups = (sorted(ranked[i:j], key=names.index) for i, j in ends)
        first, *rest = map(" or ".join, groups)
        said = f"{first} is closer to real text than {', then '.join(rest)}"
        said = said if rest else "none is shown to be closer to real text"
        found.setdefault(said, []).append(n)
    if not found:
        return "Which is closer to real text is not told: CND is not among the metrics."
    told = (f"{said} in {'-, '.join(orders)}-grams" for said, orders in found.items())
    return (
        f"By CND, a constant less 2 CR + NRR: {'; '.join(told)} ({LEVEL:.0%} intervals "
        "over candidates and references)."
    )


def _lacking(report: Any) -> str:
    missing = {name: sum(np.isnan(report.scores[name].low)) for name in report}
    said = [
        f"intervals of {x} of {len(report.metrics)} metrics of {name}"
        for name, x in missing.items()
        if x
    ]
    said += [f"{name} depends on the references" for name in report.dependent]
    if not said:
        return "Nothing is missing, and nothing is seen to have leaked."
    return f"Missing or leaked: {'; '.join(said)}. The warnings say why."
