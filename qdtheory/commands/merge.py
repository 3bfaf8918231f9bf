"""The command merge, and how the report of an evaluation is shown and written."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from qdtheory.commands import inputs
from qdtheory.commands.outputs import (
    check_outputs,
    complain,
    fail,
    to_json,
    told,
    with_options,
    write,
    write_figure,
)
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.world.layout import paragraphs, printable

PLAIN = "csv", "markdown", "latex"  # forms of the table alone


def merge(
    parts: Annotated[
        list[Path], typer.Argument(help="All parts, in any order.", metavar="PARTS...")
    ],
    form: inputs.FormatOption = None,
    as_json: inputs.JsonOption = False,
    output: inputs.OutputOption = None,
    plot: inputs.PlotOption = None,
    html: inputs.HtmlOption = None,
    metrics: inputs.MetricsOption = None,
    compare: inputs.CompareOption = None,
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
    check_compared(compare, found, form)
    show(found, job.plan, job.references, form, outputs, metrics, compare)


# --- Writing ------------------------------------------------------------------------


def form_of(form: Any, as_json: bool) -> Any:
    """Read --format and --json as one option."""
    if as_json and form not in (None, "json"):
        fail(f"--json is --format json, and --format {form} is given too")
    return "json" if as_json else form


def show(
    found,
    plan,
    references: str,
    form: inputs.Format | None,
    outputs: dict[str, Path | None],
    metrics: list[str] | None,
    compare: tuple[str, str] | None,
) -> None:
    """Print a report in the form that was asked for, or write it to files."""
    found = replace(found, warnings=tuple(map(with_options, found.warnings)))
    with told(ValueError, of="--metrics: "):
        table = found.choose(*metrics) if metrics else found
    compared = {"comparison": found.compare(*compare)} if compare else {}
    text = _laid_out(table, plan, references, form, compared)
    if form in PLAIN:
        for warning in found.warnings:
            complain(warning)
    plot, html = outputs["--plot"], outputs["--html"]
    if plot is not None:
        write_figure(_shortened(found), plot)
    if html is not None:
        write(_shortened(found).to_html(), html, "--html")
    write(text, outputs["--output"])


def check_compared(compare: Any, names: Iterable[str], form: Any) -> None:
    """Fail early unless two of the candidates are to be compared, or none."""
    there = [*names]
    if form in PLAIN:
        inputs.refuse_idle(f"with --format {form}", compare=compare)
    if compare and (compare[0] == compare[1] or not {*compare} <= {*there}):
        fail(f"--compare: expected two of the candidates {', '.join(there)}")


def _laid_out(found, plan, references: str, form: Any, compared: dict) -> str:
    if form == "json":
        return to_json(_contents(found, plan, references) | compared)
    if form in PLAIN:
        named = found if form == "csv" else _shortened(found)
        return getattr(named, f"to_{form}")()
    return _text(found, plan, references, *compared.values())


def _contents(found, plan, references: str) -> dict[str, Any]:
    from qdtheory.text.report import SAID

    def sizes(path: str, size) -> dict[str, Any]:
        return {
            "file": path,
            "sentences": size.sentences,
            "tokens": size.tokens,
            "empty_lines": size.empty,
        }

    return {
        "references": sizes(references, plan.references),
        "candidates": [
            sizes(path, size) | {"metrics": found[path]}
            for path, size in plan.candidates.items()
        ],
        **{name: getattr(found, name) for name in SAID},
        "empty": plan.empty,
    }


def _shortened(found) -> Any:
    """The report under the files' names, without their folders if these differ."""
    names = {path: Path(path).name for path in found}
    if len({*names.values()}) < len(names):
        return found
    tables = "scores", "sizes", "empty", "left_out", "real_left_out"
    changed = {x: dict(zip(names.values(), getattr(found, x).values())) for x in tables}
    dependent = tuple(names[path] for path in found.dependent)
    return replace(found, **changed, dependent=dependent)


def _text(found, plan, references: str, compared: Any = "") -> str:
    """The table between what it is of and what to know about it."""
    files = [("references", references, plan.references)]
    files += [("candidates", path, size) for path, size in plan.candidates.items()]
    done = "skipped" if plan.empty == "skip" else "scored"
    heads = [
        f"{role} {printable(path)}: {size.sentences:,} sentences, "
        f"{size.tokens:,} tokens, {size.empty} empty lines {done}"
        for role, path, size in files
    ]
    rough = f"With fewer than {NUM_GROUPS} sentences the intervals are rough."
    few = [rough] * (min(found.sizes.values()) < NUM_GROUPS)
    width = get_terminal_size().columns
    notes = [*str(compared).splitlines(), *few, found.methods]
    heads, notes = (paragraphs(x, width) for x in (heads, notes))
    shown = [*heads, "", _shortened(found).to_text(width), *notes]
    return "\n".join([*shown, found.signature])  # whole: it is pasted
