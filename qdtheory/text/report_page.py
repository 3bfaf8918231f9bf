"""A report as one page of HTML that needs no other file."""

import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from qdtheory.text.tables import BEST, Cell, printable
from qdtheory.world.packages import required

TITLE = "Quality and diversity"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #1b1b1b; background: #fff }
.wide { overflow-x: auto }
table { border-collapse: collapse }
th, td { padding: .2rem .8rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums }
th[scope=row] { text-align: left }
svg { max-width: 100%; height: auto; background: #fff }
.warning { border-left: .3rem solid #b35900; padding-left: .8rem }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #181818 }
  th, td { border-color: #444 }
}
"""


def report_page(report: Any) -> str:
    """Lay out a report as a page of HTML: planes, table, warnings and methods.

    Args:
        report: a `Report`, from `evaluate`.

    Returns:
        The page, which loads nothing and runs no script.

    Raises:
        ModuleNotFoundError: the extra "plot" is not installed.

    Example:
        >>> from qdtheory.text import evaluate
        >>> real = ["a b", "b a", "a a", "b b"]
        >>> page = report_page(evaluate({"a<b": ["a b", "b c", "c"]}, real, 1))
        >>> "a&lt;b" in page, "<script" in page
        (True, False)
    """
    sizes = [
        f"{escape(printable(name))}: {report.sizes[name]:,} sentences, "
        f"{report.empty[name]:,} empty"
        for name in report
    ]
    real = (
        f"References: {report.num_references:,} sentences, "
        f"{report.num_empty_references:,} empty"
    )
    said = [f"<p class='warning'>{escape(text)}</p>" for text in report.warnings]
    said += [f"<p>{escape(text)}</p>" for text in (report.legend(), *report.pairs)]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            "<html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>{TITLE}</title><style>{STYLE}</style></head><body><main>",
            f"<h1>{TITLE}</h1>",
            _figure(report),
            f"<div class='wide'>{_table(report.metrics, report.cells())}</div>",
            *said,
            f"<ul>{''.join(f'<li>{line}</li>' for line in (real, *sizes))}</ul>",
            f"<p>{escape(report.methods)}</p>",
            "</main></body></html>",
        ]
    )


def _figure(report: Any) -> str:
    """The planes as inline SVG, whose ids and text do not change between runs."""
    with required("a page with figures", "plot"):
        import matplotlib.pyplot as plt

        from qdtheory.plotting import STYLE as LOOK
        from qdtheory.plotting import plot_report
    undated: dict[str, Any] = {"Date": None}
    fixed = {"svg.hashsalt": "qdtheory", "svg.fonttype": "none"}
    with plt.style.context([LOOK, fixed]):
        figure = plot_report(report)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata=undated)
        plt.close(figure)
    svg = drawn.getvalue().partition("<svg ")[2]
    told = (
        "Candidates in two planes of quality and diversity; the table has the numbers"
    )
    return f'<svg role="img" aria-label="{told}" {svg}'


def _table(rows: Sequence[str], columns: Mapping[str, Sequence[Cell]]) -> str:
    heads = "".join(f"<th scope='col'>{escape(printable(c))}</th>" for c in columns)
    lines = [f"<tr><td></td>{heads}</tr>"]
    for row, *cells in zip(rows, *columns.values(), strict=True):
        shown = "".join(
            f"<td>{f'<b>{escape(text)}</b>' if mark == BEST else escape(text)} "
            f"{escape(mark)}</td>"
            for text, mark in cells
        )
        lines.append(f"<tr><th scope='row'>{row}</th>{shown}</tr>")
    return f"<table>{''.join(lines)}</table>"
