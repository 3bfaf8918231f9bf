"""How answers are laid out for people: in a terminal of any width, and in notebooks."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeAlias

from rich.cells import cell_len

GAP = 2
MOST = 8  # entries of a vector that are shown
WRAP = "white-space: normal; overflow-wrap: anywhere"
# A title, sentences, and what is known: a name and a value each.
Summary: TypeAlias = tuple[str, Sequence[str], Iterable[tuple[str, str]]]


def laid_out(told: Summary, width: int) -> str:
    """Title, sentences and facts in lines of at most `width` columns.

    Example:
        >>> print(laid_out(("compatible", ["By Theorem 3."], [("w0", "-2")]), 40))
        compatible
        By Theorem 3.
          w0  -2
    """
    title, sentences, facts = told
    lines = paragraphs([title, *sentences], width) + fact_lines(facts, width)
    return "\n".join(lines)


def paragraphs(texts: Iterable[str], width: int) -> list[str]:
    """Lines of at most `width` columns; a text begins a new one."""
    return [line for text in texts for line in wrapped(text, width)]


def fact_lines(facts: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Names with their values beside them, or below where these do not fit."""
    facts = [(name, value) for name, value in facts if value.strip()]
    left = 2 * GAP + max((cell_len(name) for name, _ in facts), default=0)
    lines, blank = [], " " * GAP
    for name, value in facts:
        least = max(map(cell_len, value.split()))
        if left + max(least, min(cell_len(value), width // 3)) > width:
            lines += wrapped(name, width, blank, blank)
            lines += wrapped(value, width, blank * 2, blank * 2)
        else:
            lines += wrapped(value, width, padded(blank + name, left), " " * left)
    return lines


def table_lines(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    numbers: bool = False,
) -> list[str]:
    r"""A table whose last column wraps, or facts of each row where it does not fit.

    Example:
        >>> rows = [("LL", "compatible", "SE"), ("utility", "none", "any concave V")]
        >>> print("\n".join(table_lines(("name", "status", "partner"), rows, 30)))
        name     status      partner
        -------  ----------  ---------
        LL       compatible  SE
        utility  none        any
                             concave V
        >>> print("\n".join(table_lines(("name", "status", "partner"), rows[:1], 24)))
        LL
          status   compatible
          partner  SE
    """
    *columns, last = zip(titles, *rows, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    left = sum(widths) + GAP * len(widths)
    if left + max(map(cell_len, " ".join([*last, "-"]).split())) > width:
        facts = [(x, fact_lines(zip(titles[1:], cells), width)) for x, *cells in rows]
        return [line for x, told in facts for line in (*wrapped(x, width), *told)]
    rule = ["-" * w for w in (*widths, min(width - left, max(map(cell_len, last))))]
    lines = []
    for row in (titles, rule, *rows):
        right = (numbers and i > 0 for i in range(len(widths)))
        cells = [*map(padded, row, widths, right), ""]
        lines += wrapped(row[-1], width, (" " * GAP).join(cells), " " * left)
    return [line.rstrip() for line in lines]


def html_rows(rows: Iterable[Sequence[str]], titles: Sequence[str] = ()) -> str:
    """A table in HTML whose first column names its rows; long words wrap.

    Example:
        >>> "a&lt;b" in html_rows([("LL", "a<b")])
        True
    """
    lines = [[("th", x) for x in titles]] * bool(titles)
    lines += [[("th", x), *(("td", y) for y in rest)] for x, *rest in rows]
    cell = "<{0} style='text-align: left{2}'>{1}</{0}>".format
    # The last column alone gives way; words of the others, which are short, stay whole.
    whole = "; overflow-wrap: break-word"
    told = (
        "".join(cell(x[0], escape(x[1]), whole * (x is not line[-1])) for x in line)
        for line in lines
    )
    shown = "".join(f"<tr>{line}</tr>" for line in told)
    return f"<table style='{WRAP}'>{shown}</table>"


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Break a text at blanks, and a word that does not fit a line alone within it.

    Lines begin with `rest`, but for the first one.

    Example:
        >>> wrapped("two words", 5, "- ", "  ")
        ['- two', '  wor', '  ds']
        >>> wrapped("文字 文字文字", 6)
        ['文字', '文字文', '字']
    """
    from rich.text import Text  # late: slower to import than all else here

    room: Any = max(width - cell_len(rest), 2)
    lines = Text(" ".join(text.split())).wrap(None, room)  # pyright: ignore
    parts = [part for line in lines if (part := line.plain.rstrip())] or [""]
    return [first + parts[0], *(rest + part for part in parts[1:])]


def padded(text: str, width: int, right: bool = False) -> str:
    """A text filled with blanks to some columns."""
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


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
    if getattr(x, "shape", ()):
        values = " ".join(number(float(value)) for value in x[:MOST])
        return values + f" ... ({len(x)} texts)" * (len(x) > MOST)
    x = getattr(x, "item", lambda: x)()  # a scalar of NumPy or JAX
    return f"{x:.6g}" if isinstance(x, float) else "" if x is None else str(x)


def plain_name(name: str) -> str:
    """A name without what does not matter: capitals, spaces, hyphens, underscores."""
    if not isinstance(name, str):
        raise TypeError(f"expected a name, as text, got {name!r:.60}")
    return re.sub(r"[\s_\-\u2010-\u2015\u2212]", "", name.lower())
