"""The command grade: the exercises of answered notebooks, in one table."""

import asyncio
import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from qdtheory.commands.errors import fail
from qdtheory.commands.inputs import AsJson
from qdtheory.commands.outputs import print_json, print_table

VERDICT = re.compile(r"^(\d\d[a-z]?\.\d) (not attempted|not yet|right)", re.MULTILINE)
CELL_SECONDS = 600
MARKS = {"right": "right", "not yet": "not yet", "not attempted": "-"}


def grade(
    notebooks: Annotated[
        list[Path],
        typer.Argument(help="Answered notebooks."),
    ],
    run: Annotated[
        bool,
        typer.Option(
            "--run", help="Execute them first, code of strangers too; nothing is saved."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print how the exercises of answered notebooks were graded.

    Each notebook is a row: right, not yet, or not attempted (-) for each exercise, and
    the number of right answers. The verdicts are those saved in the notebook, which
    their owner could edit; --run executes it anew (needs the extra book).

    Example: qdtheory grade class/*/03_pareto_frontier.ipynb
    """
    books = {str(path): _read(path) for path in notebooks}
    graded = {
        name: _verdicts(_executed(book, Path(name)) if run else book)
        for name, book in books.items()
    }
    for name, verdicts in graded.items():
        if not verdicts:
            fail(f"{name}: no exercise was graded there; run its cells, or take --run")
    rows = [_row(name, verdicts) for name, verdicts in graded.items()]
    if as_json:
        print_json({"notebooks": rows})
    else:
        _print(rows)


def _read(path: Path) -> dict[str, Any]:
    try:
        book = json.loads(path.read_text("utf-8"))
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")
    except ValueError:  # neither text nor JSON
        book = None
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        fail(f"{path}: expected a notebook, a file that JupyterLab saved as .ipynb")
    return book


def _executed(book: dict[str, Any], path: Path) -> dict[str, Any]:
    """The notebook as its cells leave it, each run even if one before it failed."""
    from qdtheory.world.packages import required

    try:
        with required("--run", "book"):
            import nbclient
            import nbformat
    except ImportError as error:
        fail(str(error))
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
        return asyncio.run(client.async_execute(cwd=str(path.resolve().parent)))
    except Exception as error:  # the notebook is a stranger's: anything may go wrong
        fail(f"{path}: it did not run to its end: {type(error).__name__}")


def _verdicts(book: dict[str, Any]) -> dict[str, str]:
    """Each exercise and how its newest answer was graded."""
    found = {}
    try:
        for cell in book["cells"]:
            for output in cell.get("outputs", []):
                found |= dict(VERDICT.findall("".join(output.get("text", ""))))
    except (AttributeError, TypeError):  # JSON with cells that are no notebook's
        return {}
    return found


def _row(name: str, verdicts: dict[str, str]) -> dict[str, Any]:
    right = sum(verdict == "right" for verdict in verdicts.values())
    return {"notebook": name, "right": right, "exercises": verdicts}


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    numbers = sorted({number for row in rows for number in row["exercises"]})
    table = Table()
    for title in ("notebook", *numbers, "right"):
        table.add_column(title)
    for row in rows:
        verdicts = row["exercises"]
        marks = [MARKS[verdicts[n]] if n in verdicts else "" for n in numbers]
        total = f"{row['right']} of {len(verdicts)}"
        table.add_row(Text(row["notebook"]), *marks, total)
    print_table(table)
