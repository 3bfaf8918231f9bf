"""What commands print: errors in one line on stderr, JSON, tables and files."""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, NoReturn

import typer

from qdtheory.support.layout import laid_out, table_lines
from qdtheory.text.files import replacing, shown

FIGURES = ".svg", ".pdf", ".png"
FORMS = {  # of a file by its suffix
    **{".csv": "csv", ".md": "markdown", ".tex": "latex", ".json": "json"},
    **{".txt": "table", ".html": "html"},
}


# --- Errors -------------------------------------------------------------------------


def complain(message: str) -> None:
    """Print one line on stderr."""
    first_line, *_ = message.splitlines() or [""]
    print(f"qdtheory: {first_line}", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Print an error in one line, and exit with status 1."""
    complain(message)
    raise typer.Exit(1)


@contextmanager
def exit_on(*errors: type[Exception], of: str = "", file: Any = "") -> Iterator[None]:
    """Fail with the line of an error of these kinds, about a file or some option."""
    try:
        yield
    except errors as error:
        fail(of + with_options(line_of(error, file)))


def line_of(error: Exception, file: str | Path = "") -> str:
    """What an error says; of an error of the system its file, or this one, and why."""
    if not isinstance(error, OSError) or not error.strerror:
        return " ".join(error.args) if isinstance(error, KeyError) else str(error)
    return f"{shown(error.filename or file)}: {error.strerror}"


def with_options(message: str) -> str:
    """Name the command's options where the library names arguments.

    Example:
        >>> with_options("name the field (field=text), or take max_order=2")
        'name the field (--field text), or take --max-order 2'
    """
    message = message.replace("(lowercase=True)", "(--lowercase)")
    by_sum = "divide the numbers by their sum"  # a command has no functions
    message = message.replace("call normalize(P) if it holds weights", by_sum)
    message = re.sub("^client: ", "--scheduler: ", message)
    message = re.sub(
        "^(calls|lot|alpha|quality|diversity|kernel|given|metrics)s?: ",
        r"--\1: ",
        message,
    )
    # After a space or parenthesis only: a folder may be called max_order=4.
    names = "field|tokenizer|max_order|scheduler"
    return re.sub(
        rf'(?<=[ (])({names})="?([\w.-]+)"?',
        lambda match: f"--{match[1].replace('_', '-')} {match[2]}",
        message,
    )


# --- Answers ------------------------------------------------------------------------


def to_json(report: dict[str, Any]) -> str:
    """Write a report, which may hold records and arrays, as JSON."""
    from qdtheory.support.records import plain

    return json.dumps(plain(report), indent=2, allow_nan=False)


def print_json(report: dict[str, Any]) -> None:
    """Print a report as JSON."""
    print(to_json(report))


def form_for(path: Path | None, form: Any) -> Any:
    """The form of an answer: by the suffix of its file, or as --format says."""
    if path is None or (form and path.suffix.lower() not in FORMS):
        return form
    own = FORMS.get(path.suffix.lower())
    if own is None:
        fail(f"--output: {path}: expected a name that ends in {', '.join(FORMS)}")
    if form and form != own:
        fail(f"--output: {path} is {own} by its name, and --format is {form}")
    return own


def require_outputs(files: dict[str, Path | None], *inputs: str) -> None:
    """Fail early if a file cannot be written or is read, or no figure can be drawn."""
    given = {option: path for option, path in files.items() if path is not None}
    for option, path in given.items():
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
    if len({os.path.realpath(path) for path in given.values()}) < len(given):
        fail(f"{' and '.join(given)} name one file; give each its own")
    pages = (path for path in given.values() if path.suffix.lower() == ".html")
    if given.keys() & {"--plot", "--html"} or any(pages):
        from qdtheory.support.packages import required

        with exit_on(ImportError), required("--plot and --html", "plot"):
            import matplotlib as mpl
        mpl.use("agg")  # nothing is shown
    if (plot := given.get("--plot")) and plot.suffix.lower() not in FIGURES:
        fail(f"--plot: {plot}: expected a name that ends in {', '.join(FIGURES)}")


def write(text: str, path: Path | None, option: str = "--output") -> None:
    """Write text to a file, whole or not at all; without one to standard output."""
    if path is None:
        print(text)
        return
    data = f"{text}\n".encode("utf-8", "backslashreplace")
    with exit_on(OSError, of=f"{option}: "), replacing(path) as unfinished:
        unfinished.write_bytes(data)
    complain(f"wrote {shown(path)}")


def write_figure(report: Any, path: Path) -> None:
    """Draw a report's planes into a file, whole or not at all."""
    import matplotlib.pyplot as plt

    from qdtheory.plotting import STYLE

    with plt.style.context(STYLE):
        figure = report.plot()
        kind = path.suffix[1:].lower()
        with exit_on(OSError, of="--plot: "), replacing(path) as unfinished:
            figure.savefig(unfinished, format=kind, dpi=200)
    complain(f"wrote {shown(path)}")


def print_rows(titles: Sequence[str], rows: Sequence[Any], **settings: Any) -> None:
    """Print a table that fits the terminal; no number is cut."""
    print(*table_lines(titles, rows, get_terminal_size().columns, **settings), sep="\n")


def print_facts(title: str, sentences: Sequence[str] = (), facts: Any = ()) -> None:
    """Print what is known of one thing, wrapped to the terminal."""
    print(laid_out((title, sentences, facts), get_terminal_size().columns))
