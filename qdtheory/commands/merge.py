"""The command merge: the report of an evaluation that was counted in parts."""

from pathlib import Path
from typing import Annotated

import typer

from qdtheory.commands.errors import told
from qdtheory.commands.evaluate import (
    FormatOption,
    HtmlOption,
    JsonOption,
    OutputOption,
    PlotOption,
    check_outputs,
    form_of,
    show,
)


def merge(
    parts: Annotated[
        list[Path], typer.Argument(help="All parts, in any order.", metavar="PARTS...")
    ],
    form: FormatOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
    plot: PlotOption = None,
    html: HtmlOption = None,
) -> None:
    """Print the report of an evaluation from its parts, `qdtheory evaluate --part`.

    The numbers are those of one run of evaluate, to the last bit (of the estimator
    sentence-pairs to 1e-12). Parts of other texts, settings or versions, parts that
    were cut short, that are missing or there twice are refused.

    Example: qdtheory merge parts/*.json
    """
    from qdtheory.text.part_files import merged

    form = form_of(form, as_json)
    outputs = {"--output": output, "--plot": plot, "--html": html}
    check_outputs(outputs, *map(str, parts))
    with told(OSError, ValueError):
        job, found = merged(parts)
    show(found, job.plan, job.references, form, outputs)
