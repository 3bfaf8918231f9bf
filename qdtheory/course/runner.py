"""Execute a notebook in a process of its own, which a cell of the notebook may kill."""

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


def main(path: Path, target: Path) -> None:
    """Write the notebook as its cells, each of which runs, leave it; or what failed."""
    try:
        told: Any = nbclient.execute(
            nbformat.read(path, as_version=4),
            cwd=str(path.parent),
            timeout=CELL_SECONDS,
            allow_errors=True,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR", FIRST],
        )
    except Exception as error:  # the notebook is a stranger's: anything may go wrong
        told = type(error).__name__
    target.write_text(json.dumps(told), "utf-8")
    os._exit(0)


if __name__ == "__main__":
    # Beside the main thread nbclient catches no signal.
    Thread(target=main, args=map(Path, sys.argv[1:]), daemon=True).start()
    os.read(0, 1)  # the command holds the other end: where it ends, so does this
