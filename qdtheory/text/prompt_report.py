"""What `evaluate_prompts` finds: fair kernel scores, tests, and how many prompts."""

from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from qdtheory.support.layout import printable, wrapped
from qdtheory.support.records import Estimate, Record, plain
from qdtheory.text.checks import require_positive
from qdtheory.text.comparison import ByName
from qdtheory.text.intervals import interval_of, mean_interval
from qdtheory.text.planner import POWER, needed
from qdtheory.text.report import SAID, Tabled
from qdtheory.text.tables import Cell, plain_table, with_margin

PARTS = (" score", " quality", " diversity")
# Numbers of outputs in the plan, and the fewest from which others are reckoned.
OUTPUTS, LEAST = (2, 4, 8, 16, 32), 4
PLAN = (
    "Prompts that tell two apart, if they differ as here, with probability "
    f"{POWER}, by outputs a prompt:"
)
LONG = 16  # letters of a name in the plan, its last
# Differences below such a part of the scores are rounding.
EQUAL = 1e-12
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
        p_value: of the paired t-test, two-sided; of the sign test, $2^{1 - n}$, where
            all n prompts differ by the same amount.
        num_prompts: number of prompts.
        variances: variance of a prompt's difference, by the number of outputs of each
            candidate; of fewer than four outputs only for their number, if all have it.
        level: coverage probability of the interval.
    """

    one: str
    other: str
    kernel: str
    difference: Estimate
    p_value: float
    num_prompts: int
    variances: dict[int, float]
    level: float

    @property
    def closer(self) -> str | None:
        """Name the candidate with the higher score, beyond the interval, or none."""
        if not self.p_value < 1 - self.level:
            return None
        return self.one if self.difference.value > 0 else self.other

    def plan(self, power: float = POWER) -> dict[int, float]:
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
        z, gap = ndtri((1 + self.level) / 2), abs(float(self.difference))
        errors = {k: variance**0.5 for k, variance in self.variances.items()}
        times = {k: needed(gap, z * x, x, power) for k, x in errors.items()}
        return {k: float(np.ceil(x + z**2 / 2)) for k, x in times.items()}

    def __str__(self) -> str:
        d = self.difference
        p = f"p < {TINY:g}" if self.p_value < TINY else f"p = {self.p_value:.2g}"
        better, worse = (self.one, self.other)[:: 1 if float(d) > 0 else -1]
        who = f"Neither of {self.one} and {self.other} is shown to be closer"
        if self.closer:
            who = f"{better} is closer than {worse}"
        over, by = f", {self.level:.0%} interval {d.low:.3g} to {d.high:.3g} over", ""
        if not d.standard_error:
            over, by = " for each of", " by the sign test"
        return (
            f"{who} to what people write by {self.kernel}: difference {d.value:.3g}"
            f"{over} {self.num_prompts:,} prompts, {p}{by}."
        )


class PromptReport(Record, Tabled):
    """Fair kernel scores of candidates over prompts; made by `evaluate_prompts`.

    `report["model"]["2-grams score"]` is the mean over prompts, an `Estimate` with
    Student's interval.

    Attributes:
        metrics: names of the scores, "2-grams score", and of their halves, "2-grams
            quality" and "2-grams diversity"; higher is better.
        scores: by candidate and metric, that of each prompt.
        spreads: by candidate and kernel, both variances of Hoeffding's decomposition
            for each prompt, see `moments`; NaN for fewer than 4 outputs.
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
    scores: dict[str, dict[str, Float[np.ndarray, " prompts"]]]
    spreads: dict[str, dict[str, Float[np.ndarray, "2 prompts"]]]
    num_outputs: dict[str, Int[np.ndarray, " prompts"]]
    kernels: tuple[str, ...]
    prompts: tuple[Any, ...]
    level: float
    methods: str
    signature: str = ""
    warnings: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()

    num_references = 0  # in one list for all prompts, with which a page has planes

    def __getitem__(self, name: str) -> ByName[Estimate]:
        """Return the means over prompts of one candidate, by metric."""
        values = ByName("candidate", self.scores)[name].items()
        return ByName("metric", ((x, mean_interval(y, self.level)) for x, y in values))

    def compare(self, one: str, other: str, kernel: str = "") -> PromptComparison:
        """Test whether two candidates have equal scores: a paired t-test over prompts.

        The mean difference is unbiased, with one reference and two outputs a prompt as
        with more, for how much less the first's squared MMD from human answers is.

        Args:
            one: name of a candidate.
            other: name of another.
            kernel: name of the kernel; without one, the first of the report.

        Raises:
            KeyError: there is no such candidate or kernel, or no references.
            ValueError: one candidate twice.
        """
        from scipy.special import stdtr  # late: slow to import

        if one == other:
            raise ValueError(f"expected two candidates, got {one!r} twice")
        kernel = kernel or self.kernels[0]
        values = (ByName("candidate", self.scores)[name] for name in (one, other))
        ours, theirs = (ByName("metric", x)[kernel + PARTS[0]] for x in values)
        values, rounding = ours - theirs, EQUAL * np.abs([ours, theirs]).max(initial=1)
        values[np.abs(values) <= rounding] = 0
        mean, size = values.mean(), len(values)
        variance = float(values.var(ddof=1)) * (np.ptp(values) > rounding)
        found = interval_of(mean, variance / size, size - 1, self.level)
        if variance:
            p_value = 2 * stdtr(size - 1, -abs(mean) / (variance / size) ** 0.5)
        else:  # all signs are the same
            p_value = 2.0 ** (1 - size) if mean else 1.0
        return PromptComparison(
            *(one, other, kernel, found, float(p_value)),
            num_prompts=size,
            variances=self._variances((one, other), kernel, variance),
            level=self.level,
        )

    def _variances(self, names: Any, kernel: str, found: float) -> dict[int, float]:
        """Variance of a prompt's difference by the number of outputs, from that found.

        That of the outputs for given prompts changes with their number.
        """
        spreads = [self.spreads[name][kernel] for name in names]
        numbers = [self.num_outputs[name] for name in names]
        fewest = int(np.min(numbers))
        if not found or fewest < LEAST:
            return {fewest: found} if found and np.max(numbers) == fewest else {}
        between = max(found - sum(map(_noise, spreads, numbers)), 0)
        within = {k: sum(_noise(x, k) for x in spreads) for k in {*OUTPUTS, fewest}}
        return {k: float(between + max(within[k], 0)) for k in sorted(within)}

    @cached_property
    def comparisons(self) -> list[PromptComparison]:
        """The tests of all pairs of candidates, by each kernel."""
        pairs = self.pairs or combinations(self if self._scored else (), 2)
        return [self.compare(*x, kernel) for x in pairs for kernel in self.kernels]

    @property
    def conclusions(self) -> tuple[str, ...]:
        """Say in words who is closer, and what is not said."""
        said = [printable(str(x)) for x in self.comparisons]
        return (*said, *[NOT_SAID] * bool(said))

    @property
    def _scored(self) -> bool:
        return len(self.metrics) > len(self.kernels)

    def cells(self) -> dict[str, list[Cell]]:
        """Show each candidate's means."""
        return {x: [(with_margin(y), "") for y in self[x].values()] for x in self}

    def legend(self, best: str = "") -> str:
        """Say which way is better, and what the margin means."""
        scored = "Higher is better; score: 2 quality + diversity; " * self._scored
        return f"{scored}±: half the interval."

    def to_text(self, width: int = 80, methods: bool = True) -> str:
        """Lay out scores (or diversity), tests and plans for a terminal."""
        size, tests = len(self.kernels), [x for x in self.comparisons if x.plan()]
        rows = {name: cells[:size] for name, cells in self.cells().items()}
        parts = [plain_table(self.metrics[:size], rows, width)]
        parts += [*self.warnings, *map(str, self.comparisons)]
        if tests:
            two = len({(x.one, x.other) for x in tests}) > 1
            left = [f"{_end(x.one)}, {_end(x.other)}: " * two + x.kernel for x in tests]
            plans = [x.plan() for x in tests]
            columns = {
                f"{k}": [(f"{x[k]:,.0f}" if k in x else "", "") for x in plans]
                for k in sorted({*chain(*plans)})
            }
            parts += [PLAN, plain_table(left, columns, width)]
        parts.append(self.legend())
        if methods:
            parts += [*self.conclusions[-1:], self.methods]
        lines = ([x] if "\n" in x else wrapped(printable(x), width) for x in parts)
        return "\n\n".join(map("\n".join, lines))

    def _plain(self) -> dict[str, Any]:
        tests = self.comparisons
        return {
            "prompts": len(self.prompts),
            "candidates": {name: plain(self[name]) for name in self},
            "values": plain(self.scores),
            "comparisons": [plain(x) | {"plan": plain(x.plan())} for x in tests],
            **{name: plain(getattr(self, name)) for name in SAID[1:]},
        }


def moments(gram: Float[np.ndarray, "texts texts"], k: int) -> tuple[float, ...]:
    r"""Score, quality and diversity of k outputs, and both variances of the score's h.

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
    return 2 * quality + diversity, quality, diversity, first, second


def _noise(spread: Any, k: Any) -> float:
    """Mean variance of the score of k outputs, for given prompts and references."""
    first, second = spread
    return np.mean((4 * (k - 2) * first + 2 * second) / (k * (k - 1)))


def _end(name: str) -> str:
    """The end of a long name, which tells files of many folders apart."""
    shown = printable(name)
    return shown if len(shown) <= LONG else f"...{shown[3 - LONG :]}"
