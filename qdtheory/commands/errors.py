"""Error messages of the commands."""

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
