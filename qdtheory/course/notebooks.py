"""The exercises of answered notebooks, and how each of them was graded."""

import json
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any

from qdtheory.course import MARK
from qdtheory.course.exercises import EXERCISES

EXERCISE = r"(\d\d[a-z]?\.\d)"
VERDICT = re.compile(rf"^{EXERCISE} (not attempted|not yet|right)", re.MULTILINE)
# The exercise that a call of `check` names, or none if it is in a variable.
CALLS = re.compile(rf"\bcheck\((?:\s*[\"']{EXERCISE}[\"'])?")
NOTEBOOK_SECONDS = 3600
AT_ONCE = 2  # notebooks that run side by side


class Ungraded(Exception):
    """Why a notebook has no grades; up to a colon or semicolon its row says it."""


def grades(paths: list[Path], run: bool, step: Callable) -> list[dict[str, Any]]:
    """Grade notebooks, executed first or as they were saved: a row each, in order."""

    def row(path: Path) -> dict[str, Any]:
        step(f"{'Running' if run else 'Reading'} {path}")
        verdicts, stopped, why = {}, [], None
        try:
            book, mark = read(path), token_hex() if run else ""
            verdicts, stopped = graded(executed(path, mark) if run else book, mark)
        except Ungraded as error:
            why = str(error)
        return {
            "notebook": str(path),
            "right": [*verdicts.values()].count("right"),
            "exercises": verdicts,
            "stopped": stopped,
            "error": why,
        }

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [*pool.map(row, paths)]


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


def executed(path: Path, mark: str) -> dict[str, Any]:
    """The notebook as its cells leave it, in whose outputs the grader leaves a mark."""
    runner = Path(__file__).with_name("runner.py")
    with TemporaryDirectory() as folder:
        target = Path(folder, "executed")
        arguments = [sys.executable, "-P", runner, path.resolve(), target]
        # Its standard input closes as this process ends, however it does.
        with Popen(
            arguments,
            env=os.environ | {MARK: mark},
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        ) as process:
            found = "its process was killed"
            try:
                process.wait(NOTEBOOK_SECONDS)
            except TimeoutExpired:
                process.kill()
                found = f"it took more than {NOTEBOOK_SECONDS} seconds"
        if target.exists():
            found = json.loads(target.read_text("utf-8"))
    if isinstance(found, str):
        raise Ungraded(f"did not run to its end: {found}")
    return found


def graded(book: dict[str, Any], mark: str) -> tuple[dict[str, str], list[str]]:
    """Each exercise and how its newest answer was graded, and the cells that stopped.

    A verdict is what the grader marked or, in a notebook that was not run, what a cell
    with a call of `check` seems to have printed. What a cell was to grade stands in its
    source. What one that stopped did not come to is not right; what one that never ran
    would have graded is not attempted.
    """
    verdicts: dict[str, str] = {}
    stopped, graded = [], False
    try:
        for number, cell in enumerate(book["cells"], start=1):
            outputs = cell.get("outputs", [])
            source = re.sub("#.*", "", "".join(cell.get("source", "")))
            calls = CALLS.findall(source) if cell.get("cell_type") == "code" else []
            asked = [exercise for exercise in calls if exercise in EXERCISES]
            # A loop may have graded any of them.
            some = EXERCISES if mark or "" in calls else asked
            texts = (x.get("data", {}) if mark else x for x in outputs)
            said = "\n".join("".join(x.get(mark or "text", "")) for x in texts)
            found = {x: verdict for x, verdict in VERDICT.findall(said) if x in some}
            graded = graded or bool(found)
            errors = [x for x in outputs if x.get("output_type") == "error"]
            if errors and calls:
                missed = [x for x in asked if x not in found]
                missed = missed or [f"cell {number}"] * ("" in calls)
                verdicts |= dict.fromkeys(missed, "stopped")
                why = " ".join(f"{errors[0]['ename']}: {errors[0]['evalue']}".split())
                stopped.append(f"cell {number} stopped: {why:.100}")
            else:
                verdicts = dict.fromkeys(asked, "not attempted") | verdicts
            verdicts |= found
    except (AttributeError, KeyError, TypeError):  # cells that are no notebook's
        graded, stopped = False, []
    if not graded and not stopped:
        hint = "" if mark else "; run its cells, or take --run"
        raise Ungraded(f"no exercise was graded there{hint}")
    return dict(sorted(verdicts.items())), stopped
