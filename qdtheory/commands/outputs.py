"""What commands print on standard output: JSON and tables."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from qdtheory.commands.errors import fail, told
from qdtheory.text.files import replacing

FIGURES = ".svg", ".pdf", ".png"


def as_json(report: dict[str, Any]) -> str:
    """Write a report, which may hold records and arrays, as JSON."""
    from qdtheory.world.records import plain

    return json.dumps(plain(report), indent=2, allow_nan=False)


def print_json(report: dict[str, Any]) -> None:
    """Print a report as JSON."""
    print(as_json(report))


def check_output(path: Path, *inputs: str, option: str = "--output") -> None:
    """Fail early if a file cannot be written, or is one of those that are read."""
    for name in inputs:
        if path.exists() and Path(name).exists() and path.samefile(name):
            fail(f"{option}: {path} is a file that is read; name another")
    if path.is_dir():
        fail(f"{option}: {path} is a folder; name a file")
    if not path.parent.is_dir():
        fail(f"{option}: there is no folder {path.parent}")
    target = Path(os.path.realpath(path))
    device = target.exists() and not target.is_file()  # which nothing replaces
    written = target if device else target.parent
    if not os.access(written, os.W_OK):
        fail(f"{option}: {path}: no permission to write to {written}")


def write(text: str, path: Path | None, option: str = "--output") -> None:
    """Write text to a file, whole or not at all; without one to standard output."""
    if path is None:
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            text = text.replace("±", "+-")
        print(text)
        return
    data = f"{text}\n".encode("utf-8", "backslashreplace")
    with told(OSError, of=f"{option}: "), replacing(path) as unfinished:
        unfinished.write_bytes(data)


def require_figures(path: Path | None) -> None:
    """Fail early if no figure can be drawn, or none of this kind."""
    from qdtheory.world.packages import required

    with told(ImportError), required("--plot and --html", "plot"):
        import matplotlib as mpl
    mpl.use("agg")  # nothing is shown
    if path is not None and path.suffix.lower() not in FIGURES:
        fail(f"--plot: {path}: expected a name that ends in {', '.join(FIGURES)}")


def write_figure(report: Any, path: Path) -> None:
    """Draw a report's planes into a file, whole or not at all."""
    import matplotlib.pyplot as plt

    from qdtheory.plotting import STYLE

    with plt.style.context(STYLE):
        figure = report.plot()
        kind = path.suffix[1:].lower()
        with told(OSError, of="--plot: "), replacing(path) as unfinished:
            figure.savefig(unfinished, format=kind, dpi=200)


def print_rows(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    numbers: bool = False,
    file: Any = None,
) -> None:
    """Print a table of rich in full, beyond the terminal's width if need be.

    Rich would cut what does not fit, and with it the exponent of a number.
    """
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None)
    for i, name in enumerate(titles):
        table.add_column(name, justify="right" if numbers and i else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(highlight=False, file=file)
    unbounded = console.options.update(max_width=10_000)
    natural = Measurement.get(console, unbounded, table).maximum
    console.width = max(console.width, natural)
    console.print(table)
