"""The command grade: the exercises of answered notebooks, in one table."""

import re
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any, Literal

import typer

from qdtheory.commands import outputs
from qdtheory.commands.inputs import OutputOption, flag, option
from qdtheory.support.layout import paragraphs, table_lines
from qdtheory.support.packages import required
from qdtheory.support.progress import progress


def grade(
    notebooks: Annotated[list[Path], typer.Argument(help="Answered notebooks.")],
    run: Annotated[
        bool,
        flag(
            "--run",
            "Execute them first, two at a time, with your rights; nothing is saved.",
        ),
    ] = False,
    form: Annotated[
        Literal["table", "csv", "json"] | None,
        option("A table, or for a program.", None, "--format", show_default="table"),
    ] = None,
    as_json: Annotated[bool, flag("--json", "--format json.")] = False,
    output: OutputOption = None,
) -> None:
    """Print how the exercises of answered notebooks were graded.

    Each notebook is a row: right, not yet, or not attempted (-) for each exercise, and
    the number of right answers. What a cell that stopped has not graded is not right:
    the row says stopped, a line below the table why. A notebook that cannot be read
    has a row that says so, and the exit status is 1.

    Without --run these are verdicts as saved in the notebook, text that its owner can
    edit. With it each cell is executed (needs the extra book), in the folder of the
    notebook, with your rights, for ten minutes at most, an hour a notebook. Then only
    the grader's own verdicts count, whatever a cell prints. --run does not protect
    you from code that means harm: it can read and delete your files, use the network,
    change the grader in memory. Run it as a user with nothing to lose.

    Example: qdtheory grade class/*/03_pareto_frontier.ipynb
    """
    if as_json and form not in (None, "json"):
        outputs.fail(f"--json is --format json, and --format {form} is given too")
    form = "json" if as_json else form
    paths = [*dict.fromkeys(notebooks)]
    outputs.require_outputs({"--output": output}, *map(str, paths))
    if run:
        with outputs.exit_on(ImportError), required("--run", "book"):
            import_module("nbclient")
    from qdtheory.course.notebooks import grades

    with progress(len(paths)) as step:
        rows = grades(paths, run, step)
    failed = [row for row in rows if row["error"]]
    if len(failed) < len(rows):
        numbers = sorted({number for row in rows for number in row["exercises"]})
        verdicts = "run" if run else "as saved"
        if form == "json":
            shown = outputs.to_json({"verdicts": verdicts, "notebooks": rows})
        else:
            shown = (_csv if form == "csv" else _table)(rows, numbers, verdicts)
        outputs.write(shown, output)
    for row in failed:
        outputs.complain(f"{row['notebook']}: {row['error']}")
    if failed:
        raise typer.Exit(1)


def _csv(rows: list[dict[str, Any]], numbers: list[str], verdicts: str) -> str:
    from qdtheory.text.tables import csv_table

    lines = [["notebook", *numbers, "right", "of", "verdicts", "note"]]
    for row in rows:
        found, note = row["exercises"], row["error"] or "; ".join(row["stopped"])
        counts = ["", "", ""] if row["error"] else [row["right"], len(found), verdicts]
        marks = [found.get(number, "") for number in numbers]
        lines.append([row["notebook"], *marks, *counts, note])
    return csv_table(lines)


def _table(rows: list[dict[str, Any]], numbers: list[str], verdicts: str) -> str:
    """A row for each notebook, and why cells of it stopped."""
    lines = []
    for row in rows:
        found, error = row["exercises"], row["error"]
        marks = [found.get(n, "").replace("not attempted", "-") for n in numbers]
        total = f"{row['right']} of {len(found)}"
        said = re.split("[:;]", error)[0] if error else total
        lines.append((row["notebook"], *marks, said))
    width = get_terminal_size().columns
    stopped = [f"{row['notebook']}: {said}" for row in rows for said in row["stopped"]]
    table = table_lines(("notebook", *numbers, "right"), lines, width)
    head = "As the notebooks say, which their owners can edit; --run executes them."
    heads = paragraphs([head], width) * (verdicts == "as saved")
    return "\n".join([*heads, *table, *paragraphs(stopped, width)])
