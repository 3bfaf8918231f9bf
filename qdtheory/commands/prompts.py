"""What `qdtheory evaluate --prompts` does: several answers a prompt."""

import sys
from pathlib import Path
from typing import Any

import typer

from qdtheory.commands import inputs
from qdtheory.commands.merge import check_outputs, form_of
from qdtheory.commands.outputs import fail, to_json, told, write
from qdtheory.solvers.progress import progress
from qdtheory.text.files import shown

# The options that say something of prompts.
OPTIONS = (
    *("candidates", "references", "prompts", "kernel", "fields"),
    *("tokenizer", "lowercase", "form", "as_json", "output", "html"),
)


def evaluate_prompts(context: typer.Context) -> None:
    """Evaluate files of prompts with the options that were given."""
    given = context.params
    for name in given:
        source = context.get_parameter_source(name)
        if name not in OPTIONS and source and source.name != "DEFAULT":
            inputs.refuse_idle("with --prompts", **{name: 1})
    paths, references = given["candidates"], given["references"]
    inputs.refuse_repeated(paths, references)
    form = form_of(given["form"], given["as_json"])
    outputs = {"--output": given["output"], "--html": given["html"]}
    check_outputs(outputs, *paths, *filter(None, [references]))
    own = [inputs.load_function(x) if ":" in x else x for x in given["kernel"] or []]
    from qdtheory.text.prompt_files import FIELDS, read_prompts
    from qdtheory.text.prompts import KERNELS, evaluate_prompts

    fields = (given["fields"] or ",".join(FIELDS)).split(",")
    if len(fields) != len(FIELDS):
        fail(f"--fields: expected three names, such as {','.join(FIELDS)}")
    kernels = own or KERNELS
    settings = {name: given[name] for name in ("tokenizer", "lowercase")}
    names = [Path(path).name for path in paths]
    if len({*names}) < len(names):
        names = [*map(shown, paths)]
    with (
        told(OSError, TypeError, ValueError, ImportError),
        progress(len(paths) * len(kernels)) as step,
    ):
        files = zip(names, map(_file, paths))
        real = None if references is None else _file(references)
        prompts, candidates, real = read_prompts(dict(files), real, fields)
        found = evaluate_prompts(
            candidates, real, kernels, prompts=prompts, step=step, **settings
        )
    if given["html"] is not None:
        write(found.to_html(), given["html"], "--html")
    write(_laid_out(found, form), given["output"])


def _file(path: str) -> Any:
    if path == "-" and sys.stdin is None:
        fail("-: there is no standard input; give a file")
    return sys.stdin.buffer if path == "-" else path


def _laid_out(found: Any, form: str | None) -> str:
    match form:
        case "json":
            return to_json(found)
        case "csv":
            return found.to_csv()
        case "markdown":
            return found.to_markdown()
        case "latex":
            return found.to_latex()
    return f"{found}\n\n{found.methods}"
