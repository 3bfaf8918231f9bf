"""Error messages of the commands."""

import re
import sys
from typing import NoReturn

import typer


def complain(message: str) -> None:
    """Print one line on stderr."""
    first_line, *_ = message.splitlines() or [""]
    print(f"qdtheory: {first_line}", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Print an error in one line, and exit with status 1."""
    complain(message)
    raise typer.Exit(1)


def with_options(message: str) -> str:
    """Name the command's options where the library names arguments.

    Example:
        >>> with_options("name the field (field=text), or take max_order=2")
        'name the field (--field text), or take --max-order 2'
    """
    message = message.replace("(lowercase=True)", "(--lowercase)")
    # After a space or parenthesis only: a folder may be called max_order=4.
    return re.sub(
        r'(?<=[ (])(field|column|tokenizer|max_order|estimator|draws)="?([\w.-]+)"?',
        lambda found: f"--{found[1].replace('_', '-')} {found[2]}",
        re.sub(
            "^memory: ", "--memory: ", re.sub("^client: ", "--scheduler: ", message)
        ),
    )
