"""Error messages of the commands."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from qdtheory.text.files import shown


def complain(message: str) -> None:
    """Print one line on stderr."""
    first_line, *_ = message.splitlines() or [""]
    print(f"qdtheory: {first_line}", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Print an error in one line, and exit with status 1."""
    complain(message)
    raise typer.Exit(1)


@contextmanager
def told(
    *errors: type[Exception], of: str = "", file: str | Path = ""
) -> Iterator[None]:
    """Fail with the line of an error of these kinds, about a file or some option."""
    try:
        yield
    except errors as error:
        fail(of + with_options(line_of(error, file)))


def line_of(error: Exception, file: str | Path = "") -> str:
    """What an error says; of an error of the system its file, or this one, and why."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{shown(error.filename or file)}: {error.strerror}"


def with_options(message: str) -> str:
    """Name the command's options where the library names arguments.

    Example:
        >>> with_options("name the field (field=text), or take max_order=2")
        'name the field (--field text), or take --max-order 2'
    """
    message = message.replace("(lowercase=True)", "(--lowercase)")
    message = re.sub("^memory: ", "--memory: ", message)
    message = re.sub("^client: ", "--scheduler: ", message)
    # After a space or parenthesis only: a folder may be called max_order=4.
    return re.sub(
        r'(?<=[ (])(field|column|tokenizer|max_order|estimator|draws)="?([\w.-]+)"?',
        lambda match: f"--{match[1].replace('_', '-')} {match[2]}",
        message,
    )
