"""Metrics of several candidates side by side: as tables, records and a page."""

import io
import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float

from qdtheory.support.layout import paragraphs, printable
from qdtheory.support.packages import required
from qdtheory.support.records import Display, Estimate, Record, plain
from qdtheory.text import comparison, tables
from qdtheory.text.comparison import KEYS, ByName, lower_is_better, of_references
from qdtheory.text.tables import BEST, Cell, html_table

# The marks of a value that cannot be told from the best, and of one that is not valid.
ALIKE, DEPENDENT = "=", "!"
UNKNOWN = "?"
COLUMNS = ("candidate", "metric", *KEYS)
# What a report says beside its numbers.
SAID = "dependent", "warnings", "conclusions", "methods", "signature"
# What metrics are rounded to, in units of their size if this is above 1.
ROUNDING = 1e-15
# Decimal places that are shown at most: an interval below them leaves a number whole.
PLACES = 9
# Numbers from here on are shown without an exponent.
SMALL = 1e-3


TITLE = "Quality and diversity"
PLANES = "Candidates in two planes of quality and diversity; the table has the numbers"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #1b1b1b; background: #fff }
.wide { overflow-x: auto }
table { border-collapse: collapse }
td { white-space: nowrap }
th, td { padding: .2rem .8rem; text-align: right;
  border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums }
th[scope=row] { text-align: left }
svg { max-width: 100%; height: auto; background: #fff }
.warning { border-left: .3rem solid #b35900; padding-left: .8rem }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #181818 }
  th, td { border-color: #444 }
}
"""


class Tabled(Display):
    """A report that is a table, with a column for each candidate."""

    def __iter__(self: Any) -> Iterator[str]:
        return iter(self.scores)

    def to_markdown(self: Any) -> str:
        """Lay out the table in Markdown, with the best values in bold."""
        table = tables.markdown_table(self.metrics, self.cells())
        return f"{table}\n\n{self.legend('Bold')}"

    def to_latex(self: Any) -> str:
        """Lay out LaTeX's tabular, the best values in bold and the legend commented."""
        table = tables.latex_table(self.metrics, self.cells())
        return f"% {self.legend('Bold')}\n{table}"

    def to_csv(self: Any) -> str:
        """Write a row for each metric of each candidate, below names of columns."""
        return tables.csv_table([COLUMNS, *self._rows()])

    def to_frame(self: Any) -> Any:
        """Make a data frame of pandas in long form, a row for each candidate's metric.

        Its columns are candidate, metric, value, low, high and standard_error. A table
        with candidates side by side is
        `frame.pivot(index="metric", columns="candidate", values="value")`.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        with required("a data frame", extra=None):
            import pandas as pd
        return pd.DataFrame(self._rows(), columns=list(COLUMNS))

    def _rows(self: Any) -> list[tuple]:
        cells = ((name, *cell) for name in self for cell in self[name].items())
        return [(*names, *numbers(interval)) for *names, interval in cells]

    def _repr_html_(self: Any) -> str:
        warnings = getattr(self, "warnings", ())
        said = self.legend(), *warnings, *self.conclusions, self.methods
        told = "".join(f"<p>{escape(printable(text))}</p>" for text in said)
        return f"{html_table(self.metrics, self.cells())}{told}"


class Report(Record, Tabled):
    """Metrics of candidates against one set of references.

    Attributes:
        metrics: metric names, such as "BLEU-2"; lower is better for Self-BLEU and CND,
            higher for all others.
        scores: by candidate name, an interval with one entry per metric; low, high and
            standard error are NaN where there is none, and CND too where nothing is
            repeated or shared.
        sizes: number of sentences of each candidate, including kept empty ones.
        empty: number of empty sentences of each candidate, kept or skipped.
        num_references: number of sentences of the references.
        num_empty_references: number of empty sentences of the references.
        warnings: comparisons that are not valid, and texts that seem to be something
            else, such as lines in quotes.
        methods: how the numbers were computed, in one line for a paper.
        left_out: by candidate name, the metrics without each group of its sentences,
            shape (groups, metrics). Samples of one size have the same rows in a group.
        real_left_out: the same without each group of the references.
        dependent: candidates that are shown not to be independent of the references, as
            they share more sentences than chance, or CND is below 0 at level .999.
        signature: each choice that changes a number, in one line to print beside them,
            see `signature_of`.
    """

    metrics: tuple[str, ...]
    scores: dict[str, Estimate]
    sizes: dict[str, int]
    empty: dict[str, int]
    num_references: int
    num_empty_references: int
    warnings: tuple[str, ...]
    methods: str
    left_out: dict[str, Float[np.ndarray, "groups metrics"]]
    real_left_out: dict[str, Float[np.ndarray, "real_groups metrics"]]
    dependent: tuple[str, ...]
    signature: str = ""

    def __getitem__(self, name: str) -> "ByName[Estimate]":
        """Return the intervals of one candidate, by metric."""
        scores = ByName("candidate", self.scores)[name]
        rows = np.transpose(numbers(scores)).tolist()
        intervals = (Estimate(*row) for row in rows)
        return ByName("metric", zip(self.metrics, intervals, strict=True))

    compare, choose = comparison.compare, comparison.choose
    conclusions = property(comparison.conclusions)

    def to_text(self, width: int = 80) -> str:
        """Lay out the table for a terminal, with legend, warnings and conclusions.

        Lines have `width` characters. Candidates that do not fit side by side go in
        blocks; no number is cut.
        """
        table = tables.plain_table(self.metrics, self.cells(), width)
        said = "", self.legend(), *self.warnings, "", *self.conclusions
        return "\n".join([table, *paragraphs(said, width)])

    def to_html(self) -> str:
        """Lay out planes, table and methods as one page that needs no other file.

        The page loads nothing and runs no script.

        Raises:
            ModuleNotFoundError: the extra "plot" is not installed.
        """
        sizes = [("References", self.num_references, self.num_empty_references)]
        sizes += [(name, self.sizes[name], self.empty[name]) for name in self]
        lines = [
            f"<li>{escape(printable(name))}: {size:,} sentences, {empty:,} empty</li>"
            for name, size, empty in sizes
        ]
        said = [f"<p class='warning'>{escape(text)}</p>" for text in self.warnings]
        told = self.legend(), *self.conclusions
        said += [f"<p>{escape(text)}</p>" for text in told]
        return "\n".join(
            [
                "<!DOCTYPE html>",
                "<html lang='en'><head><meta charset='utf-8'>",
                "<meta name='viewport' content='width=device-width, initial-scale=1'>",
                f"<title>{TITLE}</title><style>{STYLE}</style></head><body><main>",
                f"<h1>{TITLE}</h1>",
                _figure(self),
                f"<div class='wide'>{html_table(self.metrics, self.cells())}</div>",
                *said,
                f"<ul>{''.join(lines)}</ul>",
                f"<p>{escape(self.methods)}</p><p>{escape(self.signature)}</p>",
                "</main></body></html>",
            ]
        )

    def plot(self, n: int | None = None) -> Any:
        """Draw the candidates in two planes; see `qd.text.plot_report`.

        Raises:
            ModuleNotFoundError: the extra "plot" is not installed.
            ValueError: the report has no such order.
        """
        from qdtheory.text.plots import plot_report

        return plot_report(self, n)

    def cells(self) -> dict[str, list[Cell]]:
        """Show each candidate's intervals, with a mark for the best and its like."""
        scores = [self[name] for name in self]
        lines = []
        for metric in self.metrics:
            out = [of_references(metric) and name in self.dependent for name in self]
            intervals = [found[metric] for found in scores]
            lines.append(_marked(intervals, lower_is_better(metric), out))
        columns = zip(*lines, strict=True)
        return dict(zip(self, map(list, columns), strict=True))

    def legend(self, best: str = BEST) -> str:
        """Say which way is better and what the marks, `best` among them, mean."""
        marks = [
            f"{best}: the best",
            f"{ALIKE}: its interval overlaps that of the best",
        ]
        marks *= len(self.scores) > 1
        if self.dependent:
            marks.append(f"{DEPENDENT}: not independent of the references")
        if any(np.isnan(found.low).any() for found in self.scores.values()):
            marks.append(f"{UNKNOWN}: undetermined")
        return (
            f"Higher is better, but lower for {' and '.join(comparison.LOWER)}; "
            f"{'; '.join(['±: the longer half of the interval', *marks])}."
        )

    def _plain(self) -> dict[str, Any]:
        candidates = {
            name: {
                "sentences": self.sizes[name],
                "empty": self.empty[name],
                "metrics": plain(self[name]),
            }
            for name in self
        }
        return {
            "references": self.num_references,
            "empty_references": self.num_empty_references,
            "candidates": candidates,
            **{name: plain(getattr(self, name)) for name in SAID},
        }


def numbers(interval: Estimate) -> list:
    """Value, ends and standard error, in the order of `KEYS`."""
    return [getattr(interval, key) for key in KEYS]


def _marked(
    intervals: Sequence[Estimate], lower: bool, out: Sequence[bool]
) -> list[Cell]:
    """Show the intervals of one metric, and mark the best of those that compare."""
    rest = [i for i, no in zip(intervals, out) if not no and not math.isnan(i.low)]
    best = (min if lower else max)(rest, key=lambda i: i.value, default=None)

    def mark(i: Estimate, no: bool) -> str:
        if no:
            return DEPENDENT
        if len(intervals) == 1 or best is None or math.isnan(i.low):
            return ""
        if abs(i.value - best.value) <= _rounding(best.value):
            return BEST
        return ALIKE if i.low <= best.high and best.low <= i.high else ""

    return [(with_margin(i), mark(i, no)) for i, no in zip(intervals, out)]


def with_margin(interval: Estimate) -> str:
    """A value and half its interval, to a digit of this, or two if the first is 1.

    An interval that is lost in the places shown is told by its size alone: 21 ±4e-12.
    """
    value, low, high, _ = numbers(interval)
    half = max(value - low, high - value)  # an end can be clipped to the range
    if math.isnan(low):
        return f"{UNKNOWN if math.isnan(value) else f'{value:z.3g}'} ±{UNKNOWN}"
    if not math.isfinite(half):
        return f"{value:.4g} ±inf"
    if half <= _rounding(value):
        return f"{value if abs(value) > ROUNDING else 0:.4g} ±0"
    digits = -_exponent(half) + (half < 2 * 10 ** _exponent(half))
    if abs(value) >= SMALL and digits > PLACES:
        return f"{value:.{PLACES}g} ±{half:.0e}"

    def shown(x: float) -> str:
        if max(abs(value), half) >= SMALL:
            return f"{x:z.{max(digits, 0)}f}"
        return f"{x:.{max(_exponent(x) + digits, 0)}e}" if abs(x) > ROUNDING else "0"

    return f"{shown(value)} ±{shown(half)}"


def _rounding(value: Any) -> float:
    return ROUNDING * max(abs(value), 1)


def _exponent(x: float) -> int:
    return math.floor(math.log10(abs(x)))


def _figure(report: Any) -> str:
    """The planes as inline SVG, whose ids and text do not change between runs."""
    with required("a page with figures", "plot"):
        import matplotlib.pyplot as plt

        from qdtheory.text.plots import LOOK, plot_report
    undated: dict[str, Any] = {"Date": None}
    fixed = {"svg.hashsalt": "qdtheory", "svg.fonttype": "none"}
    with plt.style.context([LOOK, fixed]):
        figure = plot_report(report)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata=undated)
        plt.close(figure)
    svg = drawn.getvalue().partition("<svg ")[2]
    return f'<svg role="img" aria-label="{PLANES}" {svg}'
