"""What `evaluate_prompts` finds: fair kernel scores, tests, and how many prompts."""

from functools import cached_property
from html import escape
from itertools import chain, combinations, product
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from qdtheory.support.layout import printable, wrapped
from qdtheory.support.records import Estimate, Record, plain
from qdtheory.text.checks import require_positive
from qdtheory.text.comparison import ByName
from qdtheory.text.intervals import interval_of, mean_interval
from qdtheory.text.planner import SampleSize
from qdtheory.text.report import (
    COLUMNS,
    STYLE,
    TITLE,
    Out,
    Tabled,
    kept,
    numbers,
    with_margin,
)
from qdtheory.text.tables import BEST, Cell, csv_table, in_markdown, plain_table

PARTS = (" score", " quality", " diversity")
# Numbers of outputs in the plan, and the fewest from which others are reckoned.
OUTPUTS, LEAST = (2, 4, 8, 16, 32), 4
POWER = 0.8
PLAN = (
    "Prompts that tell two apart, if they differ as here, with probability "
    f"{POWER}, by outputs a prompt:"
)
LONG = 10  # letters of a name in the plan, its last
# Differences below such a part of the scores are rounding.
EQUAL = 1e-12
SAID = "warnings", "conclusions", "methods", "signature"
TINY = 1e-11  # of which a p-value says no more than that it is less
NOT_SAID = (
    "Closer is by one kernel, and by the score: more quality, or more diversity, alone "
    "does not tell. Intervals and tests take prompts as independent, and are too short "
    "if some ask the same in other words; and the outputs for a prompt as independent "
    "samples, which beams and revised answers are not. Each holds at its own level."
)


class PromptComparison(Record):
    """Two candidates on the same prompts, by one kernel; made by `compare`.

    Attributes:
        one: name of the first candidate.
        other: name of the second.
        kernel: name of the kernel.
        difference: the first's mean score less the second's, with Student's interval.
        effect: mean difference over its deviation between prompts, NaN if only it is 0.
        p_value: of the paired t-test, two-sided; of the sign test, $2^{1 - n}$, where
            all n prompts differ by the same amount.
        num_prompts: number of prompts.
        num_outputs: number of outputs that both have for each prompt, at least.
        variances: variance of a prompt's difference, by the number of outputs of each
            candidate; of fewer than four outputs only for their number, if all have it.
        level: coverage probability of the interval.
    """

    one: str
    other: str
    kernel: str
    difference: Estimate
    effect: float
    p_value: float
    num_prompts: int
    num_outputs: int
    variances: dict[int, float]
    level: float

    @property
    def closer(self) -> str | None:
        """Name the candidate with the higher score, beyond the interval, or none."""
        if not self.p_value < 1 - self.level:
            return None
        return self.one if self.difference.value > 0 else self.other

    def plan(self, power: float = POWER) -> dict[int, SampleSize]:
        r"""Reckon how many prompts tell the two apart, by outputs of each a prompt.

        $(z_{1 - \alpha/2} + z_{power})^2 / d^2 + z_{1 - \alpha/2}^2 / 2$ prompts for
        the effect d with so many outputs, and as many references as here; the second
        term is for Student's t.

        Args:
            power: chance that the interval of the difference shall leave out 0.

        Raises:
            ValueError: not between 0 and 1.
        """
        from scipy.special import ndtri  # late: slow to import

        require_positive("power", power, below=1)
        d, z, found = self.difference, ndtri((1 + self.level) / 2), {}
        gaps = abs(d.value) + (d.high - d.value) * np.array([0, 1, -1])
        gaps = np.where(gaps > 0, gaps, np.nan)
        for k, variance in self.variances.items():
            needed = variance * (max(z + ndtri(power), 0) / gaps) ** 2 + z**2 / 2
            found[k] = SampleSize(*np.nan_to_num(np.ceil(needed), nan=np.inf).tolist())
        return found

    def __str__(self) -> str:
        d, k = self.difference, self.num_outputs
        if not d.value and not d.standard_error:
            return f"{self.one} and {self.other} have equal scores by {self.kernel}."
        p = f"p < {TINY:g}" if self.p_value < TINY else f"p = {self.p_value:.2g}"
        who = f"Neither of {self.one} and {self.other} is shown to be closer"
        if self.closer:
            other = self.other if self.closer == self.one else self.one
            who = f"{self.closer} is closer than {other}"
        over = f", {self.level:.0%} interval {d.low:.3g} to {d.high:.3g} over"
        more = ""
        if not d.standard_error:
            over, more = " for each of", " by the sign test"
        elif k in self.variances and d.value:
            more = (
                f"; about {self.plan()[k].apart:,.0f} prompts of {k} outputs show such "
                f"a difference with probability {POWER}"
            )
        return (
            f"{who} to what people write by {self.kernel}: difference {d.value:.3g}"
            f"{over} {self.num_prompts:,} prompts, {p}{more}."
        )


class PromptReport(Record, Tabled):
    """Fair kernel scores of candidates over prompts; made by `evaluate_prompts`.

    `report["model"]["2-grams score"]` is the mean over prompts, an `Estimate` with
    Student's interval.

    Attributes:
        metrics: names of the scores, "2-grams score", and of their halves, "2-grams
            quality" and "2-grams diversity"; higher is better.
        scores: by candidate, each metric of each prompt.
        spreads: by candidate, for each kernel both variances of Hoeffding's
            decomposition for each prompt, see `moments`; NaN for fewer than 4 outputs.
        num_outputs: by candidate, the number of outputs of each prompt.
        kernels: their names.
        prompts: the prompts, or their numbers.
        level: coverage probability of the intervals.
        methods: how the numbers were computed, in one line for a paper.
        signature: each choice that changes a number, in one line to print beside them.
        warnings: kernels that were left out, and what cannot be judged.
        pairs: the candidates that are compared, two by two; none: all.
    """

    metrics: tuple[str, ...]
    scores: dict[str, Float[np.ndarray, "metrics prompts"]]
    spreads: dict[str, Float[np.ndarray, "kernels 2 prompts"]]
    num_outputs: dict[str, Int[np.ndarray, " prompts"]]
    kernels: tuple[str, ...]
    prompts: tuple[Any, ...]
    level: float
    methods: str
    signature: str = ""
    warnings: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, name: str) -> ByName[Estimate]:
        """Return the means over prompts of one candidate, by metric."""
        values = ByName("candidate", self.scores)[name]
        means = (mean_interval(x, self.level) for x in values)
        return ByName("metric", zip(self.metrics, means))

    def compare(self, one: str, other: str, kernel: str = "") -> PromptComparison:
        """Test whether two candidates have equal scores: a paired t-test over prompts.

        The mean difference is unbiased, with one reference and two outputs a prompt as
        with more, for how much less the first's squared MMD from human answers is.

        Args:
            one: name of a candidate.
            other: name of another.
            kernel: name of the kernel; without one, the first of the report.

        Raises:
            KeyError: there is no such candidate or kernel.
            ValueError: one candidate twice, or a report without references.
        """
        from scipy.special import stdtr  # late: slow to import

        if one == other:
            raise ValueError(f"expected two candidates, got {one!r} twice")
        if not self._scored:
            raise ValueError("expected references, by which alone candidates compare")
        kernels, kernel = [*self.kernels], kernel or self.kernels[0]
        row = ByName("kernel", zip(kernels, range(len(kernels))))[kernel]
        sides = [ByName("candidate", self.scores)[name] for name in (one, other)]
        size = len(self.prompts)
        parts = np.reshape(sides, (2, len(PARTS), -1, size))[:, :, row]
        values, rounding = parts[0, 0] - parts[1, 0], EQUAL * np.abs(parts).max()
        values[np.abs(values) <= rounding] = 0
        mean, variance = values.mean(), values.var(ddof=1) * (np.ptp(values) > rounding)
        effect = float(mean / variance**0.5) if variance else np.nan if mean else 0.0
        found = interval_of(mean, variance / size, size - 1, self.level)
        # All signs are the same: with a p-value that is less, so is every other test's.
        signs = max(2.0 ** (1 - size), np.finfo(float).tiny)
        p_value = float(2 * stdtr(size - 1, -abs(effect) * size**0.5))
        return PromptComparison(
            *(one, other, kernel, found, effect),
            p_value=signs if np.isnan(effect) else p_value or signs,
            num_prompts=size,
            num_outputs=int(min(self.num_outputs[x].min() for x in (one, other))),
            variances=self._variances((one, other), row, variance),
            level=self.level,
        )

    def _variances(self, names: Any, row: int, found: float) -> dict[int, float]:
        """Variance of a prompt's difference by the number of outputs, from that found.

        That of the outputs for given prompts changes with their number.
        """
        spreads = [self.spreads[name][row] for name in names]
        numbers = [self.num_outputs[name] for name in names]
        fewest = int(np.min(numbers))
        if not found:
            return {}
        if fewest < LEAST:
            return {fewest: found} if np.max(numbers) == fewest else {}
        between = max(found - sum(map(_noise, spreads, numbers)), 0)
        asked = sorted({*OUTPUTS, fewest})
        within = {k: sum(_noise(spread, k) for spread in spreads) for k in asked}
        return {k: float(between + max(noise, 0)) for k, noise in within.items()}

    @cached_property
    def comparisons(self) -> list[PromptComparison]:
        """The tests of all pairs of candidates, by each kernel."""
        pairs = self.pairs or combinations(self, 2)
        both = product(pairs if self._scored else (), self.kernels)
        return [self.compare(*pair, kernel) for pair, kernel in both]

    @property
    def conclusions(self) -> tuple[str, ...]:
        """Say in words who is closer, and what is not said."""
        said = (*map(printable, map(str, self.comparisons)),)
        return (*said, NOT_SAID) if said else ()

    @property
    def _scored(self) -> bool:
        return len(self.metrics) > len(self.kernels)

    def cells(self) -> dict[str, list[Cell]]:
        """Show each candidate's means, with a mark for the best score."""
        means = {name: self[name] for name in self}
        ranked = self.metrics[: len(self.kernels)] if len(means) > 1 else ()
        best = {m: max(x[m].value for x in means.values()) - EQUAL for m in ranked}

        def cell(metric: str, x: Estimate) -> Cell:
            mark = BEST if x.value >= best.get(metric, np.inf) else ""
            return with_margin(x), mark

        return {x: [cell(*each) for each in means[x].items()] for x in means}

    def legend(self, best: str = BEST) -> str:
        """Say which way is better and what the marks, `best` among them, mean."""
        if not self._scored:
            return "±: half the interval."
        marks = f"; {best}: the highest score" * (len(self.scores) > 1)
        said = "Higher is better; score: 2 quality + diversity; ±: half the interval"
        return f"{said}{marks}."

    def to_text(self, width: int = 80, methods: bool = True) -> str:
        """Lay out scores and tests, their halves, and plans for a terminal."""
        size, cells = len(self.kernels), self.cells()
        tests = [x for x in self.comparisons if x.variances and x.p_value < 1]

        def table(rows: slice) -> str:
            shown = {name: of_one[rows] for name, of_one in cells.items()}
            return plain_table(self.metrics[rows], shown, width)

        parts = [table(slice(size)), *self.warnings, *map(str, self.comparisons)]
        if self._scored:
            parts.append(table(slice(size, None)))
        if tests:
            names = [
                f"{printable(x.one)[-LONG:]}, {printable(x.other)[-LONG:]}: {x.kernel}"
                for x in tests
            ]
            plans = [x.plan() for x in tests]
            columns = {
                f"{k}": [(_told(plan.get(k)), "") for plan in plans]
                for k in sorted({*chain(*plans)})
            }
            parts += [PLAN, plain_table(names, columns, width)]
        parts.append(self.legend())
        if methods:
            parts += [*self.conclusions[-1:], self.methods]
        lines = ([x] if "\n" in x else wrapped(printable(x), width) for x in parts)
        return "\n\n".join(map("\n".join, lines))

    def to_html(self, path: Out = None) -> str:
        """Lay out the table and what it says as a page that needs no other file."""
        page = (
            "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>"
            f"{TITLE}</title><style>{STYLE}</style></head><body><main><h1>{TITLE}</h1>\n"
            f"{self._repr_html_()}\n<p>{escape(self.signature)}</p></main></body></html>"
        )
        return kept(page, path)

    def to_markdown(self, path: Out = None) -> str:
        """Lay out the table in Markdown, and say what the tests find."""
        said = map(in_markdown, self.conclusions)
        return kept("\n\n".join([super().to_markdown(), *said]), path)

    def to_csv(self, path: Out = None) -> str:
        """Write a row for each metric of each candidate, and one for each test.

        A test is a row of "one - other": the difference of their mean scores by a
        kernel, with its interval and the p-value.
        """
        lines: list[Any] = [(*line, "") for line in self._rows()]
        for x in self.comparisons:
            names = f"{x.one} - {x.other}", f"{x.kernel}{PARTS[0]}"
            lines.append((*names, *numbers(x.difference), x.p_value))
        return kept(csv_table([(*COLUMNS, "p_value"), *lines]), path)

    def _plain(self) -> dict[str, Any]:
        tests, values = self.comparisons, plain(self.scores)
        return {
            "prompts": len(self.prompts),
            "candidates": {name: plain(self[name]) for name in self},
            "values": {x: dict(zip(self.metrics, y)) for x, y in values.items()},
            "comparisons": [plain(x) | {"plan": plain(x.plan())} for x in tests],
            **{name: plain(getattr(self, name)) for name in SAID},
        }


def moments(gram: Float[np.ndarray, "texts texts"], k: int) -> tuple[float, ...]:
    r"""Quality, diversity and score of k outputs, and both variances of the score's h.

    The score is a U-statistic of $h(x, x') = a(x) + a(x') - K(x, x')$, where a is the
    mean similarity to the references. Given these, $\zeta_1$ is the variance of h's
    mean given x and $\zeta_2$ that of h: here without bias, from pairs, triples and
    quadruples of different outputs, so that they are NaN for fewer than four.

    References:
        Hoeffding 1948.
    """
    own, pairs = gram[:k, :k], k * (k - 1)
    # Without references 0, so that the score is the diversity.
    near = gram[:k, k:].mean(axis=1) if len(gram) > k else np.zeros(k)
    quality, diversity = near.mean(), (np.trace(own) - own.sum()) / pairs
    first = second = np.nan
    if k >= LEAST:
        h = near[:, None] + near - own
        np.fill_diagonal(h, 0)
        rows, squares = h.sum(axis=1), (h**2).sum()
        triples = float(rows @ rows) - squares
        quadruples = rows.sum() ** 2 - 4 * triples - 2 * squares
        square = quadruples / (pairs * (k - 2) * (k - 3))
        first, second = triples / (pairs * (k - 2)) - square, squares / pairs - square
    return quality, diversity, 2 * quality + diversity, first, second


def _noise(spread: Any, k: Any) -> float:
    """Mean variance of the score of k outputs, for given prompts and references."""
    first, second = spread
    return np.mean((4 * (k - 2) * first + 2 * second) / (k * (k - 1)))


def _told(size: SampleSize | None) -> str:
    return f"{size.apart:,.0f}" if size else ""
