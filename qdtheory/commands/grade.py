"""The command grade: the exercises of answered notebooks, in one table."""

import asyncio
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any, Literal

import typer

from qdtheory.commands.inputs import JsonOption, OutputOption, flag, form_of, option
from qdtheory.commands.outputs import check_outputs, complain, to_json, told, write
from qdtheory.support.layout import paragraphs, table_lines
from qdtheory.support.packages import required
from qdtheory.support.progress import progress

EXERCISE = r"(\d\d[a-z]?\.\d)"
VERDICT = re.compile(rf"^{EXERCISE} (not attempted|not yet|right)", re.MULTILINE)
# The exercise that a call of `check` names, or none if it is in a variable.
CALLS = re.compile(rf"\bcheck\((?:\s*[\"']{EXERCISE}[\"'])?")
CELL_SECONDS = 600
AT_ONCE = 2  # notebooks that run side by side


class Ungraded(Exception):
    """Why a notebook has no grades; up to a colon or semicolon its row says it."""


def grade(
    notebooks: Annotated[list[Path], typer.Argument(help="Answered notebooks.")],
    run: Annotated[
        bool,
        flag(
            "--run",
            "Execute them first, two at a time, code of strangers too; nothing "
            "is saved.",
        ),
    ] = False,
    form: Annotated[
        Literal["table", "csv", "json"] | None,
        option("A table, or for a program.", None, "--format", show_default="table"),
    ] = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Print how the exercises of answered notebooks were graded.

    Each notebook is a row: right, not yet, or not attempted (-) for each exercise, and
    the number of right answers. What a cell that stopped has not graded is not right:
    the row says stopped, a line below the table why. A notebook that cannot be read
    has a row that says so, and the exit status is 1.

    The verdicts are those saved in the notebook, which their owner could edit; --run
    executes it anew (needs the extra book).

    Example: qdtheory grade class/*/03_pareto_frontier.ipynb
    """
    form = form_of(form, as_json)
    paths = [*dict.fromkeys(notebooks)]
    check_outputs({"--output": output}, *map(str, paths))
    if run:
        with told(ImportError), required("--run", "book"):
            import_module("nbclient")
    with progress(len(paths)) as step:
        rows = asyncio.run(_rows(paths, run, step))
    failed = [row for row in rows if row["error"]]
    if len(failed) < len(rows):
        _show(rows, form, output)
    for row in failed:
        complain(f"{row['notebook']}: {row['error']}")
    if failed:
        raise typer.Exit(1)


async def _rows(
    paths: list[Path], run: bool, step: Callable[[str], None]
) -> list[dict[str, Any]]:
    """A row for each notebook, in their order."""
    free = asyncio.Semaphore(AT_ONCE)

    async def row(path: Path) -> dict[str, Any]:
        async with free:
            step(f"{'Running' if run else 'Reading'} {path}")
            verdicts, stopped, why = {}, [], None
            try:
                book = _read(path)
                if run:
                    book = await _executed(book, path)
                verdicts, stopped = _graded(book)
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


def _read(path: Path) -> dict[str, Any]:
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


async def _executed(book: dict[str, Any], path: Path) -> dict[str, Any]:
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


def _graded(book: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
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


def _show(rows: list[dict[str, Any]], form: Any, output: Path | None) -> None:
    from qdtheory.text.tables import csv_table

    numbers = sorted({number for row in rows for number in row["exercises"]})
    if form == "json":
        write(to_json({"notebooks": rows}), output)
    elif form == "csv":
        lines: list[list[Any]] = [["notebook", *numbers, "right", "of", "note"]]
        for row in rows:
            verdicts, note = row["exercises"], row["error"] or "; ".join(row["stopped"])
            counts = ["", ""] if row["error"] else [row["right"], len(verdicts)]
            marks = [verdicts.get(number, "") for number in numbers]
            lines.append([row["notebook"], *marks, *counts, note])
        write(csv_table(lines), output)
    else:
        write("\n".join(_table(rows, numbers)), output)


def _table(rows: list[dict[str, Any]], numbers: list[str]) -> list[str]:
    """A row for each notebook, and why cells of it stopped."""
    lines = []
    for row in rows:
        verdicts, error = row["exercises"], row["error"]
        marks = [verdicts.get(n, "").replace("not attempted", "-") for n in numbers]
        total = f"{row['right']} of {len(verdicts)}"
        said = re.split("[:;]", error)[0] if error else total
        lines.append((row["notebook"], *marks, said))
    width = get_terminal_size().columns
    stopped = [f"{row['notebook']}: {said}" for row in rows for said in row["stopped"]]
    table = table_lines(("notebook", *numbers, "right"), lines, width)
    return [*table, *paragraphs(stopped, width)]
