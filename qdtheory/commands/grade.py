"""The command grade: the exercises of answered notebooks, in one table."""

import asyncio
import re
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any, Literal

import typer

from qdtheory.commands.inputs import JsonOption, OutputOption, flag, form_of, option
from qdtheory.commands.outputs import complain, exit_on, require_outputs, to_json, write
from qdtheory.support.layout import paragraphs, table_lines
from qdtheory.support.packages import required
from qdtheory.support.progress import progress


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
    require_outputs({"--output": output}, *map(str, paths))
    if run:
        with exit_on(ImportError), required("--run", "book"):
            import_module("nbclient")
    from qdtheory.course.notebooks import grades

    with progress(len(paths)) as step:
        rows = asyncio.run(grades(paths, run, step))
    failed = [row for row in rows if row["error"]]
    if len(failed) < len(rows):
        _show(rows, form, output)
    for row in failed:
        complain(f"{row['notebook']}: {row['error']}")
    if failed:
        raise typer.Exit(1)


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
