"""What a lecture shows: sentences with their numbers, and tables."""

import sys
from collections.abc import Sequence
from textwrap import fill

from qdtheory.support.layout import table_lines

WIDTH = 76
TABLE_WIDTH = 100  # that of the widest one


def claim(text: str) -> None:
    """Show a claim of a notebook: its number, and one sentence in words.

    A notebook shows it as Markdown, so that math stands between dollars; elsewhere it
    is printed. Line breaks are spaces.

    Args:
        text: the number, a space and the sentence, with the values that the cell has
            just checked: f"N8.16 Some model gains {gain:.1f} points of BLEU-2."

    Example:
        >>> claim("N8.16 Some model gains 3.3 points of BLEU-2.")
        N8.16  Some model gains 3.3 points of BLEU-2.
    """
    number, _, sentence = " ".join(text.split()).partition(" ")
    indent = " " * (len(number) + 2)
    said = f"{number}  {sentence}"
    plain = fill(said, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    show(plain, f"**{number}** {sentence}")


def tabulate(head: Sequence[object], *rows: Sequence[object]) -> None:
    """Show a table of a notebook.

    A notebook shows it as Markdown, so that math stands between dollars; elsewhere it
    is printed.

    Args:
        head: the titles of the columns.
        rows: the cells of each row, as many as titles.

    Example:
        >>> tabulate(("pair", "QDisc"), ("BS-1", 0.5), ("BS-2", 0.25))
        pair  QDisc
        ----  -----
        BS-1  0.5
        BS-2  0.25
    """
    titles, *cells = [[*map(str, row)] for row in (head, *rows)]
    plain = "\n".join(table_lines(titles, cells, TABLE_WIDTH))
    lines = (" | ".join(row) for row in (titles, ["---"] * len(titles), *cells))
    show(plain, "\n".join(f"| {line} |" for line in lines))


def show(plain: str, markdown: str) -> None:
    """Show Markdown in a notebook, and plain text elsewhere."""
    # Outside of IPython, or before it runs, there is nobody to show Markdown to.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        print(plain)
    else:
        shell.display_pub.publish({"text/plain": plain, "text/markdown": markdown})
