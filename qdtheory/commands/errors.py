"""How a command says that it cannot go on."""

import sys
from typing import NoReturn

import typer


def complain(message: str) -> None:
    """Say one line on stderr."""
    first_line, *_ = message.splitlines() or [""]
    print(f"qdtheory: {first_line}", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Say what is wrong in one line, and end with status 1."""
    complain(message)
    raise typer.Exit(1)
