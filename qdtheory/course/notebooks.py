"""The exercises of answered notebooks, and how each of them was graded."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXERCISE = r"(\d\d[a-z]?\.\d)"
VERDICT = re.compile(rf"^{EXERCISE} (not attempted|not yet|right)", re.MULTILINE)
# The exercise that a call of `check` names, or none if it is in a variable.
CALLS = re.compile(rf"\bcheck\((?:\s*[\"']{EXERCISE}[\"'])?")
CELL_SECONDS = 600
AT_ONCE = 2  # notebooks that run side by side


class Ungraded(Exception):
    """Why a notebook has no grades; up to a colon or semicolon its row says it."""


async def grades(
    paths: list[Path], run: bool, step: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Grade notebooks, executed first or as they were saved: a row each, in order."""
    free = asyncio.Semaphore(AT_ONCE)

    async def row(path: Path) -> dict[str, Any]:
        async with free:
            step(f"{'Running' if run else 'Reading'} {path}")
            verdicts, stopped, why = {}, [], None
            try:
                book = read(path)
                if run:
                    book = await executed(book, path)
                verdicts, stopped = graded(book)
            except Ungraded as error:
                why = str(error)
        return {
            "notebook": str(path),
            "right": [*verdicts.values()].count("right"),
            "exercises": verdicts,
            "stopped": stopped,
            "error": why,
        }

    return await asyncio.gather(*map(row, paths))


def read(path: Path) -> dict[str, Any]:
    """Read a notebook, or raise why it is none."""
    try:
        book = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise Ungraded(f"cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):  # neither text nor JSON
        book = None
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        wanted = "expected a notebook, a file that JupyterLab saved as .ipynb"
        raise Ungraded(f"cannot be read: {wanted}")
    return book


async def executed(book: dict[str, Any], path: Path) -> dict[str, Any]:
    """The notebook as its cells leave it, each run even if one before it failed."""
    import nbclient
    import nbformat

    try:
        fresh = nbformat.reads(json.dumps(book), as_version=4)
        for cell in fresh.cells:  # an empty cell would keep what it claims to have said
            if cell.cell_type == "code":
                cell.outputs = []
        client = nbclient.NotebookClient(
            fresh,
            timeout=CELL_SECONDS,
            allow_errors=True,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],
        )
        # Not `execute`, which leaves an event loop open.
        return await client.async_execute(cwd=str(path.resolve().parent))
    except Exception as error:  # the notebook is a stranger's: anything may go wrong
        raise Ungraded(f"did not run to its end: {type(error).__name__}") from None


def graded(book: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Each exercise and how its newest answer was graded, and the cells that stopped.

    What a cell was to grade stands in its source. What one that stopped did not come to
    is not right; what one that never ran would have graded is not attempted.
    """
    verdicts: dict[str, str] = {}
    stopped, printed = [], False
    try:
        for number, cell in enumerate(book["cells"], start=1):
            outputs = cell.get("outputs", [])
            found: dict[str, str] = {}
            for output in outputs:
                found |= dict(VERDICT.findall("".join(output.get("text", ""))))
            printed = printed or bool(found)
            source = re.sub("#.*", "", "".join(cell.get("source", "")))
            calls = CALLS.findall(source) if cell.get("cell_type") == "code" else []
            asked = [exercise for exercise in calls if exercise]
            errors = [x for x in outputs if x.get("output_type") == "error"]
            if errors and calls:
                missed = [x for x in asked if x not in found]
                if not missed and len(asked) < len(calls):  # as in a loop
                    missed = [f"cell {number}"]
                verdicts |= dict.fromkeys(missed, "stopped")
                said = " ".join(f"{errors[0]['ename']}: {errors[0]['evalue']}".split())
                stopped.append(f"cell {number} stopped: {said:.100}")
            else:
                verdicts = dict.fromkeys(asked, "not attempted") | verdicts
            verdicts |= found
    except (AttributeError, KeyError, TypeError):  # cells that are no notebook's
        printed, stopped = False, []
    if not printed and not stopped:
        raise Ungraded("no exercise was graded there; run its cells, or take --run")
    return dict(sorted(verdicts.items())), stopped
