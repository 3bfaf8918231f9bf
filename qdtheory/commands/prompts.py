"""What `qdtheory evaluate --prompts` does: several answers a prompt."""

from typing import Any

import typer

from qdtheory.commands import inputs
from qdtheory.commands.outputs import exit_on, fail, write
from qdtheory.support.progress import progress

OWN = "candidates", "references", "prompts", "kernel", "fields"
SHARED = "tokenizer", "lowercase", "form", "as_json", "output"


def evaluate_prompts(context: typer.Context, form: str | None) -> None:
    """Evaluate files of prompts with the options that were given."""
    given = context.params
    for name in given.keys() - {*OWN, *SHARED}:
        source = context.get_parameter_source(name)
        if source and source.name != "DEFAULT":
            inputs.refuse_idle("with --prompts", **{name: 1})
    kernels = [*map(inputs.named_or_loaded, given["kernel"] or [])]
    from qdtheory.text.prompt_files import FIELDS, read_prompts
    from qdtheory.text.prompts import KERNELS, evaluate_prompts

    fields = given["fields"].split(",") if given["fields"] else FIELDS
    if len(fields) != len(FIELDS):
        fail(f"--fields: expected three names, such as {','.join(FIELDS)}")
    settings: Any = {name: given[name] for name in SHARED[:2]}
    files, human = [*map(_file, given["candidates"])], given["references"] or []
    if len(human) > 1:
        fail(f"--prompts: expected one file of references, got {len(human)}")
    with (
        exit_on(OSError, TypeError, ValueError, ImportError),
        progress(len(files) * len(kernels or KERNELS)) as settings["step"],
    ):
        real = _file(human[0]) if human else None
        settings["prompts"], outputs, real = read_prompts(files, real, fields)
        found = evaluate_prompts(outputs, real, kernels or KERNELS, **settings)
    laid_out = getattr(found, f"to_{form}", lambda: f"{found}\n\n{found.signature}")
    write(laid_out(**{"indent": 2} if form == "json" else {}), given["output"])


def _file(path: str) -> Any:
    return inputs.standard_input() if path == "-" else path
