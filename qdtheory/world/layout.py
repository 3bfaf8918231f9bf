"""How answers are laid out for people: in a terminal of any width, and in notebooks."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest
from shutil import get_terminal_size
from typing import Any, TypeAlias
from unicodedata import combining, east_asian_width

GAP = 2
MOST = 8  # entries of a vector that are shown
WRAP = "white-space: normal; overflow-wrap: anywhere"
# A title, sentences, and what is known: a name and a value each.
Told: TypeAlias = tuple[str, Sequence[str], Iterable[tuple[str, str]]]


class Shown:
    """An answer that `print` and notebooks show by what it tells."""

    def told(self) -> Told:
        """Title, sentences and facts."""
        raise NotImplementedError

    def to_text(self, width: int = 80) -> str:
        """Lay out the answer for a terminal of so many columns."""
        return laid_out(self.told(), width)

    def __str__(self) -> str:
        return self.to_text(get_terminal_size().columns)

    def _repr_html_(self) -> str:
        title, sentences, facts = self.told()
        facts = [(name, value) for name, value in facts if value.strip()]
        said = "".join(f"<p>{escape(text)}</p>" for text in sentences)
        return f"<p><b>{escape(title)}</b></p>{said}{html_rows(facts)}"


def laid_out(told: Told, width: int) -> str:
    """Title, sentences and facts in lines of at most `width` columns.

    Example:
        >>> print(laid_out(("compatible", ["By Theorem 3."], [("w0", "-2")]), 40))
        compatible
        By Theorem 3.
          w0  -2
    """
    title, sentences, facts = told
    lines = [line for text in (title, *sentences) for line in wrapped(text, width)]
    return "\n".join([*lines, *fact_lines(facts, width)])


def fact_lines(facts: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Names with their values beside them, or below where these do not fit."""
    facts = [(name, value) for name, value in facts if value.strip()]
    left = 2 * GAP + max((width_of(name) for name, _ in facts), default=0)
    lines = []
    for name, value in facts:
        least = max(map(width_of, value.split()))
        if left + max(least, min(width_of(value), width // 3)) > width:
            lines += wrapped(name, width, " " * GAP, " " * GAP)
            lines += wrapped(value, width, " " * 2 * GAP, " " * 2 * GAP)
        else:
            head = padded(f"{' ' * GAP}{name}", left)
            lines += wrapped(value, width, head, " " * left)
    return lines


def table_lines(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    numbers: bool = False,
) -> list[str]:
    r"""A table whose cells wrap at blanks, or facts of each row where it does not fit.

    Example:
        >>> rows = [("LL", "compatible", "SE"), ("LL of classes", "none", "")]
        >>> print("\n".join(table_lines(("name", "status", "partner"), rows, 30)))
        name       status      partner
        ---------  ----------  -------
        LL         compatible  SE
        LL of      none
          classes
        >>> print("\n".join(table_lines(("name", "status", "partner"), rows[:1], 24)))
        LL
          status   compatible
          partner  SE
    """
    columns = [*zip_longest(titles, *rows, fillvalue="")]
    widths = [max(map(width_of, column)) for column in columns]
    least = [
        max((width_of(word) for cell in column for word in cell.split()), default=0)
        for column in columns
    ]
    least[0] = min(least[0] + GAP, widths[0])  # it is indented where it wraps
    room = width - GAP * (len(widths) - 1)
    while sum(widths) > room and widths != least:
        _, widest = max((w, i) for i, w in enumerate(widths) if w > least[i])
        widths[widest] -= 1
    if sum(widths) > room:
        blocks = (
            [*wrapped(name, width), *fact_lines(zip(titles[1:], cells), width)]
            for name, *cells in rows
        )
        return [line for block in blocks for line in block]
    lines = []
    for row in (titles, ["-" * w for w in widths], *rows):
        cells = [
            wrapped(cell, w, rest=" " * GAP * (not i))
            for i, (cell, w) in enumerate(zip(row, widths))
        ]
        for parts in zip_longest(*cells, fillvalue=""):
            line = [
                padded(part, w, right=numbers and i > 0)
                for i, (part, w) in enumerate(zip(parts, widths))
            ]
            lines.append((" " * GAP).join(line).rstrip())
    return lines


def html_rows(rows: Iterable[Sequence[str]], titles: Sequence[str] = ()) -> str:
    """A table in HTML whose first column names its rows; long words wrap.

    Example:
        >>> "<th scope='row'" in html_rows([("LL", "a<b")]), html_rows([])
        (True, '')
    """
    style = "style='text-align: left'"
    heads = "".join(f"<th scope='col' {style}>{escape(x)}</th>" for x in titles)
    lines = [f"<tr>{heads}</tr>"] if titles else []
    for name, *cells in rows:
        shown = "".join(f"<td {style}>{escape(cell)}</td>" for cell in cells)
        lines.append(f"<tr><th scope='row' {style}>{escape(name)}</th>{shown}</tr>")
    return f"<table style='{WRAP}'>{''.join(lines)}</table>" if lines else ""


def wrapped(
    text: str, width: int, first: str = "", rest: str = "", cut: bool = True
) -> list[str]:
    """Break a text at blanks, and a word that does not fit a line alone within it.

    Example:
        >>> wrapped("two words", 5, rest="  ")
        ['two', '  wor', '  ds']
        >>> wrapped("文字 文字文字", 6)
        ['文字', '文字文', '字']
    """
    lines, bare = [first], True
    for word in text.split():
        if not bare and width_of(f"{lines[-1]} {word}") > width:
            lines.append(rest)
            bare = True
        for char in word if bare else f" {word}":
            if cut and not bare and width_of(lines[-1] + char) > width:
                lines.append(rest)
            lines[-1] += char
            bare = False
    return lines


def padded(text: str, width: int, right: bool = False) -> str:
    """A text filled with blanks to some columns."""
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes; a CJK letter takes two.

    Example:
        >>> width_of("LL"), width_of("文字")
        (2, 4)
    """
    return sum(
        not combining(char) and 1 + (east_asian_width(char) in "WF") for char in text
    )


def printable(name: str) -> str:
    """Escape what cannot be seen, such as a newline in a file's name."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def number(x: Any) -> str:
    """A number in six digits, one of each text by the first ones; nothing for None.

    Example:
        >>> import numpy as np
        >>> number(20.999999999996), number(1 / 3), number(np.arange(9.0))
        ('21', '0.333333', '0 1 2 3 4 5 6 7 ... (9 texts)')
    """
    if x is None:
        return ""
    if len(shape := getattr(x, "shape", ())) > 1:
        return f"{' x '.join(map(str, shape))} numbers"
    if shape:
        values = " ".join(number(float(value)) for value in x[:MOST])
        return values + f" ... ({len(x)} texts)" * (len(x) > MOST)
    return f"{x:.6g}" if isinstance(x, float) else str(x)
