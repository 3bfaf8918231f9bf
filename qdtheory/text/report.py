"""Metrics of several candidates side by side: as tables, records and a page."""

import io
from collections.abc import Iterator
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from qdtheory.support.layout import paragraphs, printable
from qdtheory.support.packages import required
from qdtheory.support.records import Display, Estimate, Record, plain
from qdtheory.text import comparison, tables
from qdtheory.text.comparison import ByName, of_references
from qdtheory.text.files import replacing
from qdtheory.text.tables import BEST, UNKNOWN, Cell, with_margin

KEYS = "value", "low", "high", "standard_error"  # of an `Estimate`
DEPENDENT = "!"  # marks what is not valid
REAL = "real text"  # the name of a list of texts, see `evaluate`
COLUMNS = ("candidate", "metric", *KEYS)
# What a report says beside its numbers.
SAID = "dependent", "warnings", "conclusions", "methods", "signature"
Out: TypeAlias = str | PathLike[str] | None  # a file, or none

TITLE = "Quality and diversity"
# What the words of a cell mean.
BESIDE = "below, like, beyond: real text; beyond it is no merit"
PLANES = "Candidates in two planes of quality and diversity; the table has the numbers"
STYLE = "body { font-family: sans-serif } th, td { padding: .2rem .8rem }"


class Tabled(Display):
    """A report that is a table, with a column for each candidate.

    Its methods `to_...` return a text, and write it to a file if they get a path.
    """

    columns = COLUMNS

    def __iter__(self: Any) -> Iterator[str]:
        return iter(self.scores)

    def _laid_out(self: Any, kind: str) -> str:
        rows = getattr(self, "rows", self.metrics)
        return getattr(tables, f"{kind}_table")(rows, self.cells())

    def to_markdown(self: Any, path: Out = None) -> str:
        """Lay out Markdown: table, best values bold, legend, methods, signature."""
        said = self.legend("Bold"), tables.in_markdown(self.methods)
        told = self._laid_out("markdown"), *said, f"`{self.signature}`"
        return kept("\n\n".join(told), path)

    def to_latex(self: Any, path: Out = None) -> str:
        """Lay out LaTeX's tabular, with legend, methods and signature as comments."""
        said = self.legend("Bold"), self.methods, self.signature
        told = "".join(f"% {line}\n" for line in said)
        return kept(f"{told}{self._laid_out('latex')}", path)

    def to_csv(self: Any, path: Out = None) -> str:
        """Write a row for each metric of each candidate, below names of columns.

        A name that a spreadsheet would take as a formula gets an apostrophe before it.
        """
        return kept(tables.csv_table([self.columns, *self._rows()]), path)

    def _rows(self: Any) -> list[tuple]:
        cells = ((name, *cell) for name in self for cell in self[name].items())
        return [(*names, *numbers(interval)) for *names, interval in cells]

    def _repr_html_(self: Any) -> str:
        warnings = getattr(self, "warnings", ())
        said = self.legend(), *warnings, *self.conclusions, self.methods
        told = "".join(f"<p>{escape(printable(text))}</p>" for text in said)
        return f"{self._laid_out('html')}{told}"

    def to_html(self: Any, path: Out = None) -> str:
        """Lay out planes, if there are, table and methods as one page.

        The page needs no other file and runs no script.

        Raises:
            ModuleNotFoundError: the extra "plot" is not installed.
        """
        figure = _figure(self) if getattr(self, "num_references", 0) else ""
        page = (
            "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>"
            f"{TITLE}</title><style>{STYLE}</style></head><body><main><h1>{TITLE}</h1>\n"
            f"{figure}{self._repr_html_()}\n<p>{escape(self.signature)}</p></main></body>"
            "</html>"
        )
        return kept(page, path)


class Report(Record, Tabled):
    """Metrics of candidates against one set of references, or of samples alone.

    `report["CND-2"]` is a row, an `Estimate` by candidate, and `report["model"]` a
    column, one by metric; a candidate that is called as a metric hides the row.

    Attributes:
        metrics: metric names, such as "BLEU-2"; less is better for Self-BLEU and CND,
            more for all others.
        scores: by candidate name, an interval with one entry per metric; low, high and
            standard error are NaN where there is none, and CND too where nothing is
            repeated or shared.
        sizes: number of sentences of each candidate, including kept empty ones.
        empty: number of empty sentences of each candidate, kept or skipped.
        num_references: number of sentences of the references; 0 without any.
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
        rows: the metrics that tables and files show, see `choose`.
        real: the candidate that is real text, beside which the others are read.
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
    rows: tuple[str, ...] = ()
    real: str | None = None

    columns = (*COLUMNS, "beside_real")

    def __getitem__(self, name: str) -> "ByName[Estimate]":
        """Return the intervals of one candidate, by metric, or of a metric, by name."""
        if name in self.metrics and name not in self.scores:
            return ByName("candidate", ((x, self[x][name]) for x in self))
        every: Any = {**self.scores, **dict.fromkeys(self.rows), **self.scores}
        scores = ByName("candidate or metric", every)[name]
        rows = np.transpose(numbers(scores)).tolist()
        intervals = (Estimate(*row) for row in rows)
        return ByName("metric", zip(self.metrics, intervals, strict=True))

    compare, choose = comparison.compare, comparison.choose
    conclusions = property(comparison.conclusions)
    beside_real = comparison.beside_real
    best = property(comparison.best_of)

    def __repr__(self) -> str:
        return self.to_text()

    __str__ = __repr__

    def to_text(  # pyright: ignore
        self, path: Out = None, width: int = 80, methods: bool = False
    ) -> str:
        """Lay out the table for a terminal, and below it what it says, line by line.

        Candidates that do not fit side by side go in blocks; no number is cut. With
        `methods`, or in a file, there are warnings, legend and methods too.
        """
        table = tables.plain_table(self.rows, self.cells(), width)
        legend = f"{BESIDE.capitalize()}, and less is better in Self-BLEU and CND."
        lines = [table, *[legend] * bool(self.real), *self.conclusions]
        if methods or path is not None:
            said = *self.warnings, self.legend(), self.methods
            lines = [table, *paragraphs(said, width), *self.conclusions]
        return kept("\n".join(lines), path)

    def to_json(self, path: Out = None, indent: int | None = None) -> str:  # pyright: ignore
        """Write as JSON, infinity and NaN as null."""
        return kept(super().to_json(indent), path)

    def plot(self, n: int | None = None) -> Any:
        """Draw the candidates in two planes; see `qd.text.plot_report`.

        Raises:
            ModuleNotFoundError: the extra "plot" is not installed.
            ValueError: the report has no such order.
        """
        from qdtheory.text.plots import plot_report

        return plot_report(self, n)

    def cells(self) -> dict[str, list[Cell]]:
        """Show each candidate's intervals, with a word beside real text and marks."""
        best, columns = self.best, {}
        for name in self:
            cells = []
            for metric, found, word in self._told(name):
                unfit = name in self.dependent and of_references(metric)
                marks = word, BEST * (best.get(metric) == name), DEPENDENT * unfit
                cells.append((with_margin(found), " ".join(filter(None, marks))))
            told = name == self.real and name != REAL
            columns[name + f" ({REAL})" * told] = cells
        return columns

    def legend(self, best: str = BEST) -> str:
        """Say what the words and marks mean, `best` among them."""
        marks = ["±: the longer half of the interval"]
        marks += ["less is better in Self-BLEU and CND"]
        if self.real:
            marks.append(BESIDE)
        if self.best:
            marks.append(f"{best}: the best beyond chance, where real text is optimal")
        if self.dependent:
            marks.append(f"{DEPENDENT}: not independent of the references")
        if any(UNKNOWN in text for cells in self.cells().values() for text, _ in cells):
            marks.append(f"{UNKNOWN}: undetermined")
        return f"{'; '.join(marks)}."

    def _told(self, name: str) -> list[tuple[str, Estimate, str]]:
        """A candidate's rows, each with its interval and its word beside real text."""
        found, words = self[name], self.beside_real(name)
        return [(x, found[x], words.get(x, "")) for x in self.rows]

    def _rows(self) -> list[tuple]:
        each = ((name, told) for name in self for told in self._told(name))
        return [(name, x, *numbers(found), word) for name, (x, found, word) in each]

    def entries(self, name: str) -> dict[str, Any]:
        """A candidate's column for JSON, each cell with its word beside real text."""
        told, beside = self._told(name), self.real not in (None, name)
        each = ((x, plain(found), {"beside_real": y or None}) for x, found, y in told)
        return {x: found | (word if beside else {}) for x, found, word in each}

    def _plain(self) -> dict[str, Any]:
        each = ((x, self.sizes[x], self.empty[x], self.entries(x)) for x in self)
        keys = "sentences", "empty", "metrics"
        candidates = {name: dict(zip(keys, told)) for name, *told in each}
        return {
            "references": self.num_references,
            "empty_references": self.num_empty_references,
            "real": self.real,
            "best": self.best,
            "candidates": candidates,
            **{name: plain(getattr(self, name)) for name in SAID},
        }


def numbers(interval: Estimate) -> list:
    """Value, ends and standard error, in the order of `KEYS`."""
    return [getattr(interval, key) for key in KEYS]


def kept(text: str, path: str | PathLike[str] | None) -> str:
    """Return a text, which is written to a file too if there is a path."""
    if path is not None:
        with replacing(Path(path)) as unfinished:
            unfinished.write_text(f"{text}\n", "utf-8")
    return text


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
