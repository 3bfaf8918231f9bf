"""The command merge: the report of an evaluation that was counted in parts."""

from pathlib import Path
from typing import Annotated

import typer

from qdtheory.commands.errors import fail, with_options
from qdtheory.commands.evaluate import Format, show
from qdtheory.commands.outputs import check_output


def merge(
    parts: Annotated[
        list[Path], typer.Argument(help="All parts, in any order.", metavar="PARTS...")
    ],
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="A table, all its digits, or the table for a paper.",
            show_default="table",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="--format json.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            help="Write to a file, whole or not at all.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Print the report of an evaluation from its parts, `qdtheory evaluate --part`.

    The numbers are those of one run of evaluate, to the last bit (of the estimator
    sentence-pairs to 1e-12). Parts of other texts, settings or versions, parts that
    were cut short, that are missing or there twice are refused.

    Example: qdtheory merge parts/*.json
    """
    from qdtheory.text.files import shown
    from qdtheory.text.part_files import merged

    if as_json and form not in (None, Format.json):
        fail(f"--json is --format json, and --format {form.value} is given too")
    if output is not None:
        check_output(output, *map(str, parts))
    try:
        job, found = merged(parts)
    except OSError as error:
        fail(f"{shown(error.filename or '')}: {error.strerror or error}")
    except ValueError as error:
        fail(with_options(str(error)))
    form = Format.json if as_json else form
    show(found, job.plan, job.references, form, output)
