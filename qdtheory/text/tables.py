"""Tables as text: plain to a width, in Markdown, LaTeX, HTML and CSV."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from rich.cells import cell_len

from qdtheory.support.layout import GAP, html_rows, padded, printable, wrapped
from qdtheory.support.records import Estimate

# A number with its margin, "0.51 ±0.02", and its marks: "*" for the best cell of a row,
# a word, or none.
Cell: TypeAlias = tuple[str, str]
BEST = "*"
UNKNOWN = "?"
# What metrics are rounded to, in units of their size if this is above 1.
ROUNDING = 1e-15
# Decimal places that are shown at most: an interval below them leaves a number whole.
PLACES = 9
# Numbers from here on are shown without an exponent.
SMALL = 1e-3
FORMULA = "=", "+", "-", "@"  # beginnings that a spreadsheet computes
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~$#&])")
_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "{}$&#_%"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


def plain_table(
    rows: Sequence[str], columns: Mapping[str, Sequence[Cell]], width: int
) -> str:
    """Lay out a table for a terminal, without cutting a number.

    Columns that do not fit side by side go in blocks.

    Example:
        >>> columns = {"a": [("0.51 ±0.02", "*")], "b": [("0.4 ±0.1", "")]}
        >>> print(plain_table(["CR-1"], columns, 40))
              a             b
        CR-1  0.51 ±0.02 *  0.4 ±0.1
    """
    left = max(map(cell_len, ["", *rows]))
    blocks: list[list[str]] = []
    room = 0
    for name, cells in columns.items():
        shown = [f"{text} {mark}".rstrip() for text, mark in cells]
        room_of_heads = max(width - left - GAP, *map(cell_len, shown))
        heads = wrapped(printable(name), room_of_heads)
        need = max(map(cell_len, [*shown, *heads]))
        if GAP + need > room or len(heads) > 1:
            blocks.append([padded(x, left) for x in [*[""] * len(heads), *rows]])
            room = width - left
        column = [padded(text, need) for text in [*heads, *shown]]
        blocks[-1] = [f"{a}{' ' * GAP}{b}" for a, b in zip(blocks[-1], column)]
        room = 0 if len(heads) > 1 else room - GAP - need
    lines = ([line.rstrip() for line in block] for block in blocks)
    return "\n\n".join(map("\n".join, lines))


def markdown_table(rows: Sequence[str], columns: Mapping[str, Sequence[Cell]]) -> str:
    r"""Lay out a table in Markdown, with the best numbers in bold.

    Example:
        >>> print(markdown_table(["CR-1"], {"a_1": [("0.51 ±0.02", "*")]}))
        |  | a\_1 |
        | --- | --- |
        | CR-1 | **0.51** ±0.02 |
    """

    def shown(text: str, mark: str) -> str:
        value, blank, rest = text.partition(" ")
        if BEST in mark:
            text = f"**{value}**{blank}{rest}"
        return f"{text} {_word(mark)}".rstrip()

    lines = [["", *(in_markdown(printable(name)) for name in columns)]]
    lines.append(["---"] * len(lines[0]))
    lines += _lines([*map(in_markdown, rows)], columns, shown)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def in_markdown(text: str) -> str:
    """Escape what Markdown would read as marks."""
    return _MARKDOWN.sub(r"\\\1", text)


def latex_table(rows: Sequence[str], columns: Mapping[str, Sequence[Cell]]) -> str:
    r"""Lay out a table in LaTeX, which needs no package, with the best numbers in bold.

    Example:
        >>> print(latex_table(["CND-4"], {"a_1": [("2.1e-06 ±1e-07", "=")]}))
        \begin{tabular}{ll}
        \hline
         & a\_1 \\
        \hline
        CND-4 & $2.1 \cdot 10^{-6} \pm 1 \cdot 10^{-7}$ = \\
        \hline
        \end{tabular}
    """

    def number(text: str) -> str:
        digits, _, power = text.partition("e")
        return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits

    def shown(text: str, mark: str) -> str:
        value, half = map(number, text.split(" ±"))
        value = rf"\mathbf{{{value}}}" if BEST in mark else value
        return rf"${value} \pm {half}$ {_word(mark)}".rstrip()

    heads = [printable(name).translate(_LATEX) for name in columns]
    cells = _lines([row.translate(_LATEX) for row in rows], columns, shown)
    body = [f"{' & '.join(line)} \\\\" for line in cells]
    rule = r"\hline"
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{'l' * (1 + len(heads))}}}",
            *(rule, f"{' & '.join(['', *heads])} \\\\", rule, *body, rule),
            r"\end{tabular}",
        ]
    )


def html_table(rows: Sequence[str], columns: Mapping[str, Sequence[Cell]]) -> str:
    """Lay out a table in HTML.

    Example:
        >>> table = html_table(["CR-1"], {"a<b": [("0.51 ±0.02", "*")]})
        >>> "a&lt;b" in table, ">0.51 ±0.02 *</td>" in table
        (True, True)
    """
    lines = _lines(rows, columns, lambda text, mark: f"{text} {mark}".rstrip())
    return html_rows(lines, ["", *map(printable, columns)])


def csv_table(lines: Iterable[Sequence[object]]) -> str:
    """Write rows as CSV, each in a line.

    A text that a spreadsheet would take as a formula, since it begins with =, +, - or
    @, gets an apostrophe before it, as OWASP advises.

    Example:
        >>> print(csv_table([["=1+1", "a=b", -0.5]]))
        '=1+1,a=b,-0.5
    """
    text = io.StringIO()
    shown = ([_cell(entry) for entry in line] for line in lines)
    csv.writer(text, lineterminator="\n").writerows(shown)
    return text.getvalue().rstrip("\n")


def _cell(entry: object) -> str:
    shown = printable(str(entry))  # a tab or a carriage return as an escape
    return "'" * (isinstance(entry, str) and shown.startswith(FORMULA)) + shown


def with_margin(interval: Estimate) -> str:
    """A value and half its interval, to a digit of this, or two if the first is 1.

    An interval that is lost in the places shown is told by its size alone: 21 ±4e-12.
    """
    value, low, high = map(float, (interval.value, interval.low, interval.high))
    half = max(value - low, high - value)  # an end can be clipped to the range
    if math.isnan(low):
        return f"{UNKNOWN if math.isnan(value) else f'{value:z.3g}'} ±{UNKNOWN}"
    if not math.isfinite(half):
        return f"{value:.4g} ±inf"
    if half <= ROUNDING * max(abs(value), 1):
        return f"{value if abs(value) > ROUNDING else 0:.4g} ±0"
    digits = -_exponent(half) + (half < 2 * 10 ** _exponent(half))
    if abs(value) >= SMALL and digits > PLACES:
        return f"{value:.{PLACES}g} ±{half:.0e}"

    def shown(x: float) -> str:
        if max(abs(value), half) >= SMALL:
            return f"{x:z.{max(digits, 0)}f}"
        return f"{x:.{max(_exponent(x) + digits, 0)}e}" if abs(x) > ROUNDING else "0"

    return f"{shown(value)} ±{shown(half)}"


def _exponent(x: float) -> int:
    return math.floor(math.log10(abs(x)))


def _word(mark: str) -> str:
    return mark.replace(BEST, "").strip()


def _lines(rows, columns, shown) -> list[list[str]]:
    cells = zip(*columns.values(), strict=True)
    pairs = zip(rows, cells, strict=True)
    return [[name, *(shown(*cell) for cell in line)] for name, line in pairs]
