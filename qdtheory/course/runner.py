"""Execute a notebook in a process of its own, which a cell of the notebook may kill."""

import asyncio
import json
import os
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import nbclient
import nbformat

CELL_SECONDS = 600
# The grader is there before the first cell, and has read its mark.
FIRST = "--IPKernelApp.exec_lines=__import__('qdtheory.course')"
SETTINGS: Any = {"timeout": CELL_SECONDS, "allow_errors": True}
SETTINGS |= {"kernel_name": "python3", "extra_arguments": ["--log-level=ERROR", FIRST]}


def executed(path: Path) -> Any:
    """The notebook as its cells leave it, each run even if one before it failed."""
    fresh: Any = nbformat.read(path, as_version=4)
    for cell in fresh.cells:  # an empty cell would keep what it claims to have said
        if cell.cell_type == "code":
            cell.outputs = []
    client = nbclient.NotebookClient(fresh, **SETTINGS)
    return asyncio.run(client.async_execute(cwd=str(path.parent)))


def main(path: Path, target: Path) -> None:
    """Write the notebook, or what stopped it."""
    try:
        told = executed(path)
    except Exception as error:  # the notebook is a stranger's: anything may go wrong
        told = type(error).__name__
    target.write_text(json.dumps(told), "utf-8")
    os._exit(0)


if __name__ == "__main__":
    Thread(target=main, args=map(Path, sys.argv[1:]), daemon=True).start()
    sys.stdin.read()  # the command holds the other end: where it ends, so does this
