"""What `qdtheory evaluate --prompts` does: several answers a prompt."""

from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import typer

from qdtheory.commands import inputs
from qdtheory.commands.outputs import exit_on, fail, write
from qdtheory.support.progress import progress
from qdtheory.text.files import shown

HOW = "tokenizer", "lowercase"
# The options that do something here; how a report is written comes in as a whole.
OWN = "candidates", "references", "prompts", "metrics", "field", "compare", "html"
FORM = "form", "output", "methods"


def evaluate_prompts(context: typer.Context, form: str | None) -> None:
    """Evaluate files of prompts with the options that were given."""
    given = context.params
    for name in given.keys() - {*OWN, *FORM, *HOW}:
        source = context.get_parameter_source(name)
        if source and source.name != "DEFAULT":
            inputs.refuse_idle("with --prompts", **{name: 1})
    kernels = [*map(inputs.named_or_loaded, given["metrics"] or [])] or None
    from qdtheory.text.prompt_files import FIELDS, read_prompts
    from qdtheory.text.prompts import KERNELS, evaluate_prompts

    fields = inputs.fields_of(given["field"], len(FIELDS))
    settings: Any = {name: given[name] for name in HOW}
    files = [*map(inputs.file_of, given["candidates"])]
    human = given["references"] or []
    if len(human) > 1:
        fail(f"--prompts: expected one file of references, got {len(human)}")
    with (
        exit_on(OSError, TypeError, ValueError, KeyError, ImportError),
        progress(len(files) * len(kernels or KERNELS)) as settings["step"],
    ):
        real = inputs.file_of(human[0]) if human else None
        settings["prompts"], outputs, real = read_prompts(files, real, fields)
        found = evaluate_prompts(outputs, real, kernels, **settings)
        if given["compare"]:
            pair: Any = tuple(shown(Path(x)) for x in given["compare"])
            found = replace(found, pairs=(pair,))
            found.compare(*pair)
    if given["html"]:
        write(found.to_html(), given["html"], "--html")
    methods = given["methods"] or given["output"] is not None
    told = f"{found.to_text(get_terminal_size().columns, methods)}\n\n{found.signature}"
    laid_out = getattr(found, f"to_{form}", lambda: told)
    write(laid_out(**{"indent": 2} if form == "json" else {}), given["output"])
