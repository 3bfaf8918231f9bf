"""What `evaluate_prompts` finds: fair kernel scores, tests, and how many prompts."""

from collections.abc import Iterator
from html import escape
from itertools import combinations
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import numpy as np
from jaxtyping import Float

from qdtheory.text.comparison import Named
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.intervals import mean_interval
from qdtheory.text.planner import SampleSize
from qdtheory.text.report import ALIKE, COLUMNS, numbers_of, page, with_margin
from qdtheory.text.tables import (
    BEST,
    Cell,
    csv_table,
    html_table,
    latex_table,
    markdown_table,
    plain_table,
    printable,
)
from qdtheory.world.records import Estimate, Record, plain

PARTS = ("quality", "diversity", "score")
# Numbers of outputs a prompt in the plan, and the fewest that tell of other numbers.
OUTPUTS, LEAST = (2, 4, 8, 16, 32), 4
POWER = 0.8
# Differences below such a part of the scores are rounding.
EQUAL = 1e-12
TITLE = "Several answers a prompt"
LEGEND = "Higher is better; score: 2 quality + diversity; ±: half the interval"
NOT_SAID = (
    "Closer is by one kernel, and by the score: more quality, or more diversity, alone "
    "does not tell. Intervals and tests take prompts as independent, and are too short "
    "if some ask the same in other words; and the outputs for a prompt as independent "
    "samples, which beams and revised answers are not. Each holds at its own level."
)


class KernelScore(Record):
    """Fair kernel score and its halves: numbers, arrays over prompts or estimates.

    Attributes:
        quality: mean similarity of outputs and references.
        diversity: minus the mean similarity of two outputs.
        score: 2 quality + diversity; higher is better, as of all three.
    """

    quality: Any
    diversity: Any
    score: Any


class PromptReport(Record):
    """Fair kernel scores of candidates, prompt by prompt; made by `evaluate_prompts`.

    `report["model"]["2-grams"]` is a `KernelScore` of means over prompts, each an
    `Estimate` with Student's interval.

    Attributes:
        kernels: their names.
        prompts: the prompts, or their numbers.
        per_prompt: by candidate and kernel, a `KernelScore` of arrays over prompts.
        spreads: by candidate and kernel, for each prompt both variances of Hoeffding's
            decomposition, see `moments`; NaN for fewer than four outputs.
        num_outputs: by candidate, the number of outputs of each prompt.
        level: coverage probability of the intervals.
        methods: how the numbers were computed, in one line for a paper.
    """

    kernels: tuple[str, ...]
    prompts: tuple[Any, ...]
    per_prompt: dict[str, dict[str, KernelScore]]
    spreads: dict[str, dict[str, Float[np.ndarray, "prompts 2"]]]
    num_outputs: dict[str, Any]
    level: float
    methods: str

    def __getitem__(self, name: str) -> Named[KernelScore]:
        """Return the means over prompts of one candidate, by kernel."""
        found = Named("candidate", self.per_prompt)[name]
        means = {
            kernel: KernelScore(
                *(mean_interval(getattr(scores, part), self.level) for part in PARTS)
            )
            for kernel, scores in found.items()
        }
        return Named("kernel", means)

    def __iter__(self) -> Iterator[str]:
        return iter(self.per_prompt)

    def compare(
        self, one: str, other: str, kernel: str | None = None
    ) -> "PromptComparison":
        """Test whether two candidates have equal scores: a paired t-test over prompts.

        The mean difference estimates, without bias, how much nearer the first is to the
        law of human answers in squared MMD, with one reference and two outputs a
        prompt as well as with more.

        Args:
            one: name of a candidate.
            other: name of another.
            kernel: name of the kernel; None: the last of the report.

        Raises:
            KeyError: there is no such candidate or kernel.
            ValueError: one candidate twice.
        """
        from scipy.special import stdtr  # late: slow to import

        if one == other:
            raise ValueError(f"expected two candidates, got {one!r} twice")
        kernel = kernel or self.kernels[-1]
        sides = [Named("candidate", self.per_prompt)[name] for name in (one, other)]
        scores = [Named("kernel", side)[kernel].score for side in sides]
        values = np.subtract(*scores)
        values[np.abs(values) < EQUAL * np.abs(scores).max()] = 0
        found, sd = mean_interval(values, self.level), values.std(ddof=1)
        with np.errstate(all="ignore"):  # no difference, or the same in all prompts
            effect = np.nan_to_num(found.value / sd, posinf=np.inf, neginf=-np.inf)
        size = len(values)
        return PromptComparison(
            one=one,
            other=other,
            kernel=kernel,
            difference=found,
            effect=float(effect),
            p_value=float(2 * stdtr(size - 1, -abs(effect) * np.sqrt(size))),
            num_prompts=size,
            num_outputs=int(min(self.num_outputs[x].min() for x in (one, other))),
            variances=self._variances(one, other, kernel, sd**2),
            level=self.level,
        )

    def _variances(self, one: str, other: str, kernel: str, all_of_it: float) -> Any:
        """Variance of a prompt's difference, by the number of outputs."""
        spreads = [self.spreads[name][kernel] for name in (one, other)]
        numbers = [self.num_outputs[name] for name in (one, other)]
        fewest = int(np.min(numbers))
        found = {}
        if fewest >= LEAST:
            own = sum(noise(x, k).mean() for x, k in zip(spreads, numbers))
            between = max(all_of_it - own, 0)
            noises = {k: sum(noise(x, k).mean() for x in spreads) for k in OUTPUTS}
            found = {k: float(between + max(x, 0)) for k, x in noises.items()}
        return dict(sorted((found | {fewest: float(all_of_it)}).items()))

    @property
    def comparisons(self) -> list["PromptComparison"]:
        """The tests of all pairs of candidates by all kernels."""
        pairs = combinations(self, 2)
        return [
            self.compare(*pair, kernel) for pair in pairs for kernel in self.kernels
        ]

    @property
    def conclusions(self) -> tuple[str, ...]:
        """Say in words who is closer, and what is not said."""
        few = [f"With fewer than {NUM_GROUPS} prompts the intervals are rough."]
        few *= len(self.prompts) < NUM_GROUPS
        return *(str(found) for found in self.comparisons), *few, NOT_SAID

    @property
    def rows(self) -> list[str]:
        """Names of the table's rows."""
        return [f"{kernel}: {part}" for kernel in self.kernels for part in PARTS]

    def cells(self) -> dict[str, list[Cell]]:
        """Show each candidate's means, with a mark for the best score and its like."""
        means = {name: self[name] for name in self}
        best = {
            kernel: max(self, key=lambda name: means[name][kernel].score.value)
            for kernel in self.kernels
        }

        def mark(name: str, kernel: str, part: str) -> str:
            if part != "score" or len(means) == 1:
                return ""
            if name == best[kernel]:
                return BEST
            return "" if self.compare(best[kernel], name, kernel).closer else ALIKE

        return {
            name: [
                (with_margin(getattr(scores, part)), mark(name, kernel, part))
                for kernel, scores in found.items()
                for part in PARTS
            ]
            for name, found in means.items()
        }

    def legend(self, best: str = BEST) -> str:
        """Say which way is better and what the marks, `best` among them, mean."""
        marks = f"; {best}: the best score; {ALIKE}: not told apart from it"
        return LEGEND + marks * (len(self.per_prompt) > 1) + "."

    def __str__(self) -> str:
        return self.to_text(get_terminal_size().columns)

    def to_text(self, width: int = 80) -> str:
        """Lay out table, conclusions and the plan of each pair for a terminal."""
        parts = [
            plain_table(self.rows, self.cells(), width),
            fill(self.legend(), width),
        ]
        parts += [fill(printable(said), width) for said in self.conclusions]
        for pair in combinations(self, 2):
            tests = (self.compare(*pair, kernel) for kernel in self.kernels)
            found = [test for test in tests if test.difference.standard_error]
            title = (
                f"Prompts that tell {' and '.join(pair)} apart with probability "
                f"{POWER:.2g}, by outputs of each, if they differ as here (by as much, "
                "or as little, as the interval allows):"
            )
            columns: dict[str, list[Cell]] = {}
            for comparison in found:
                for k, needed in comparison.plan().items():
                    columns.setdefault(f"{k}", []).append((_told(needed), ""))
            if len(columns) == 1:
                title = f"{title[:-1]}; other numbers need a pilot of {LEAST} or more:"
            table = plain_table([x.kernel for x in found], columns, width)
            parts += [fill(printable(title), width), table] * bool(found)
        return "\n\n".join(parts)

    def to_markdown(self) -> str:
        """Lay out the table in Markdown, with the best scores in bold."""
        return f"{markdown_table(self.rows, self.cells())}\n\n{self.legend('Bold')}"

    def to_latex(self) -> str:
        """Lay out LaTeX's tabular, the best scores in bold and the legend commented."""
        return f"% {self.legend('Bold')}\n{latex_table(self.rows, self.cells())}"

    def to_csv(self) -> str:
        """Write a row for each mean of each candidate, below names of columns."""
        rows = [
            (name, f"{kernel}: {part}", *numbers_of(getattr(scores, part)))
            for name in self
            for kernel, scores in self[name].items()
            for part in PARTS
        ]
        return csv_table([COLUMNS, *rows])

    def to_html(self) -> str:
        """Lay out table, conclusions and methods as one page that needs no other."""
        return page(TITLE, self._repr_html_())

    def _repr_html_(self) -> str:
        said = self.legend(), *self.conclusions, self.methods
        told = "".join(f"<p>{escape(printable(text))}</p>" for text in said)
        return f"<div class='wide'>{html_table(self.rows, self.cells())}</div>{told}"

    def _plain(self) -> dict[str, Any]:
        return {
            "prompts": len(self.prompts),
            "candidates": {name: plain(self[name]) for name in self},
            "comparisons": plain(self.comparisons),
            "conclusions": list(self.conclusions),
            "methods": self.methods,
        }


class PromptComparison(Record):
    """Two candidates on the same prompts, by one kernel; made by `compare`.

    Attributes:
        one: name of the first candidate.
        other: name of the second.
        kernel: name of the kernel.
        difference: the first's mean score less the second's, with Student's interval.
        effect: the mean difference over its standard deviation between prompts.
        p_value: of the paired t-test, two-sided.
        num_prompts: number of prompts.
        num_outputs: number of outputs that both have for each prompt, at least.
        variances: variance of a prompt's difference, by the number of outputs of each
            candidate; of fewer than four outputs only for their own number.
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
        if self.difference.low > 0:
            return self.one
        return self.other if self.difference.high < 0 else None

    def plan(self, power: float = POWER) -> dict[int, SampleSize]:
        r"""Reckon how many prompts tell the two apart, by outputs of each a prompt.

        $(z_{1 - \alpha/2} + z_{power})^2 / d^2 + z_{1 - \alpha/2}^2 / 2$ prompts for
        the effect d with so many outputs, and as many references as here.

        Args:
            power: chance that the interval of the difference shall leave out 0.

        Raises:
            ValueError: not between 0 and 1.

        References:
            Guenther 1981, for the second term, which Student's t needs.
        """
        from scipy.special import ndtri  # late: slow to import

        if not 0 < power < 1:
            raise ValueError(f"power: expected a number between 0 and 1, got {power}")
        gap, margin = abs(self.difference.value), self.difference.high
        margin -= self.difference.value
        gaps = np.maximum([gap, gap + margin, gap - margin], 0)
        z = ndtri((1 + self.level) / 2)
        found = {}
        for k, variance in self.variances.items():
            with np.errstate(all="ignore"):  # no difference
                needed = variance * ((z + ndtri(power)) / gaps) ** 2 + z**2 / 2
            needed = np.nan_to_num(needed, nan=np.inf, posinf=np.inf)
            found[k] = SampleSize(*np.ceil(needed).tolist())
        return found

    def __str__(self) -> str:
        d = self.difference
        if not d.standard_error:
            return (
                f"{self.kernel} tells nothing of {self.one} and {self.other}: for all "
                f"prompts their scores differ by {d.value:.3g}."
            )
        who = f"Neither {self.one} nor {self.other} is shown to be closer"
        if self.closer:
            less = self.other if self.closer == self.one else self.one
            who = f"{self.closer} is closer than {less}"
        k, many = self.num_outputs, self.plan()[self.num_outputs].apart
        return (
            f"{who} to what people write by {self.kernel}: difference {d.value:.3g}, "
            f"{self.level:.0%} interval {d.low:.3g} to {d.high:.3g} over "
            f"{self.num_prompts:,} prompts, p = {self.p_value:.2g}; about {many:,.0f} "
            f"prompts of {k} outputs show such a difference with probability {POWER}."
        )


def noise(
    spreads: Float[np.ndarray, "prompts 2"], k: Any
) -> Float[np.ndarray, " prompts"]:
    """Variance of the score of k outputs, for a given prompt and its references."""
    first, second = spreads.T
    return (4 * (k - 2) * first + 2 * second) / (k * (k - 1))


def moments(gram: Float[np.ndarray, "texts texts"], k: int) -> tuple[float, ...]:
    r"""Quality and diversity of k outputs, and both variances of their score's kernel.

    The score is a U-statistic of $h(x, x') = a(x) + a(x') - K(x, x')$, where a is the
    mean similarity to the references. Given these, $\zeta_1$ is the variance of h's
    mean given x and $\zeta_2$ that of h: here without bias, from pairs, triples and
    quadruples of different outputs, so that they are NaN for fewer than four.

    References:
        Hoeffding 1948.
    """
    own, near = gram[:k, :k], gram[:k, k:].mean(axis=1)
    pairs = k * (k - 1)
    quality, diversity = near.mean(), (np.trace(own) - own.sum()) / pairs
    if k < LEAST:
        return float(quality), float(diversity), np.nan, np.nan
    h = near[:, None] + near - own
    np.fill_diagonal(h, 0)
    rows, squares = h.sum(axis=1), (h**2).sum()
    triples = rows @ rows - squares
    quadruples = rows.sum() ** 2 - 4 * triples - 2 * squares
    square = quadruples / (pairs * (k - 2) * (k - 3))
    first, second = triples / (pairs * (k - 2)) - square, squares / pairs - square
    return float(quality), float(diversity), float(first), float(second)


def _told(needed: SampleSize) -> str:
    """Numbers of prompts: as found, and at the ends of the interval."""
    return f"{needed.apart:,.0f} ({needed.low:,.0f}, {needed.high:,.0f})"
