"""The command evaluate: metrics of generated text against real text."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from qdtheory.commands import inputs, outputs
from qdtheory.commands.inputs import flag, option
from qdtheory.commands.prompts import evaluate_prompts
from qdtheory.support.progress import progress
from qdtheory.text import defaults
from qdtheory.text.files import Files, shown

PLAIN = "csv", "markdown", "latex", "html"  # forms of the table alone
# The first panel of the help.
DAILY = "references", "real", "metrics", "all", "compare", "field", "prompts", "output"
# What is typed, or called, instead of options that are gone.
IN_PYTHON = ("smoothing", "estimator", "empty", "draws")
GONE = {f"--{x}": f"in Python: qd.evaluate(..., {x}=...)" for x in IN_PYTHON} | {
    **dict.fromkeys(("--input", "-i"), "write the candidates first"),
    "--reference-field": "name it second, --field text,target",
}


def evaluate(
    context: typer.Context,
    candidates: Annotated[
        list[str],
        typer.Argument(
            help="Generated text: files with a sentence a line; - is standard input."
        ),
    ],
    references: Annotated[
        list[str] | None,
        option("Real text, one sample in all.", "FILES...", "--references", "-r"),
    ] = None,
    real: Annotated[
        str | None,
        option("Held-out real text, as a column; or which candidate is.", "FILE"),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        option(
            "Rows, such as CND BLEU-2; with --prompts kernels, 2-grams.",
            "NAMES...",
            *("--metrics", "-m", "--kernel"),
        ),
    ] = None,
    all: Annotated[bool, flag("--all", "All rows, not eight.")] = False,
    compare: Annotated[
        tuple[str, str] | None, option("Say which of two is closer.", "A B")
    ] = None,
    field: inputs.FieldOption = None,
    prompts: Annotated[bool, flag("--prompts", "Several outputs a prompt.")] = False,
    output: inputs.OutputOption = None,
    form: inputs.FormatOption = None,
    plot: inputs.PlotOption = None,
    html: Annotated[Path | None, option("A page of planes and table.", "FILE")] = None,
    methods: Annotated[bool, flag("--methods", "Legend and methods too.")] = False,
    max_order: Annotated[
        int, option("Highest order n of n-grams.", min=1, max=100)
    ] = defaults.MAX_ORDER,
    tokenizer: inputs.TokenizerOption = "whitespace",
    lowercase: inputs.LowercaseOption = False,
    scheduler: Annotated[
        str | None,
        option("Count on a Dask cluster, or in N processes here.", "ADDRESS or N"),
    ] = None,
) -> None:
    """BLEU, Self-BLEU, CR, NRR, CND, distinct and MS-Jaccard of generated text.

    BLEU and CR are qualities, NRR and distinct diversities. None has a best, as
    other text can beat real text: with --real each is below, like or beyond it.
    Self-BLEU is a lack of diversity, CND the distance to real text by CR and NRR.
    Each comes with a 95 % interval over samples of both sides (of BLEU, of
    candidates), unless too little repeats. Without references: diversity alone.

    Files are UTF-8, plain, gzip or zstd, or JSON, CSV, TSV or Parquet. Several
    files of references are one sample. An empty line is a text that the model
    wrote: it has BLEU 0.

    An option of FILES or NAMES takes all words up to the next option, so that
    candidates come first. The last line ends with the signature, which names each
    choice that changes a number: print it beside the numbers. --output writes
    .csv, .md, .tex, .json, .txt or .html, by the name of its file.

    With --prompts a row is a prompt, its outputs and references, or one output:
    at least two samples of the model a prompt, and human answers if there are.
    Fair kernel scores of candidates with the same prompts, and tests over them.

    Example: qdtheory evaluate model.txt other.txt.gz -r test.txt --real held.txt

    Example: qdtheory evaluate a.txt b.txt -r test.txt -m BLEU CND --compare a.txt b.txt

    Example: qdtheory evaluate model.jsonl other.jsonl --prompts
    """
    _refuse_repeated(candidates, references or [], real)
    form = outputs.form_for(output, form)
    files = {"--output": output, "--plot": plot, "--html": html}
    outputs.require_outputs(files, *candidates, *(references or []), real or "")
    if prompts:
        return evaluate_prompts(context, form)
    if all and metrics:
        outputs.fail("--all and --metrics name the rows; give one of them")
    if references is None:
        idle: Any = {"plot": plot, "html": html, "compare": compare}
        inputs.refuse_idle("without --references", **idle)
    named, aliases = _named(candidates, real)
    pair: Any = compare and tuple(map(aliases.get, compare))
    if pair and (None in pair or pair[0] == pair[1]):
        outputs.fail(f"--compare: expected two of the candidates {', '.join(named)}")
    if form not in (None, "table"):
        idle = {"methods": methods or None, "compare": pair if form in PLAIN else None}
        inputs.refuse_idle(f"with --format {form}", **idle)
    own, of_references, *_ = [*inputs.fields_of(field, 2), None, None]
    shared = [] if of_references else references or []
    inputs.refuse_idle_choice([*named.values(), *shared], own)
    from qdtheory.text.checks import told_later
    from qdtheory.text.evaluation import corpora, counted, planned

    given = {name: inputs.file_of(path) for name, path in named.items()}
    human = Files(map(inputs.file_of, references)) if references else None
    how: Any = {"tokenizer": tokenizer, "lowercase": lowercase, "empty": "keep"}
    rows: Any = {"metrics": ["all"] if all else metrics, "real": aliases.get(real)}
    workers, steps = None, 1 + len(given) + max_order
    if scheduler is not None:
        workers, steps = int(scheduler) if scheduler.isdecimal() else scheduler, None
    name = ", ".join(map(shown, references or []))
    with (
        _named_errors(name),
        told_later(),
        progress(steps) as step,
        corpora(given, human, own, of_references, workers, step, **how) as texts,
    ):
        plan = planned(*texts, max_order=max_order, **rows)
        found = counted(plan, *texts, step)
    found = replace(found, warnings=tuple(map(outputs.with_options, found.warnings)))
    compared = pair and found.compare(*pair)
    if form == "json":
        text = outputs.to_json(_plain(found, plan, named, name, compared))
    elif form in PLAIN:
        text = getattr(found, f"to_{form}")()
    else:
        width, whole = get_terminal_size().columns, methods or output is not None
        *lines, last = found.to_text(width=width, methods=whole).split("\n")
        text = "\n".join([*lines, *[str(compared)] * bool(compared), last])
    if plot is not None:
        outputs.write_figure(found, plot)
    if html is not None:
        outputs.write(found.to_html(), html, "--html")
    outputs.write(text, output)
    few = min(found.sizes.values()) < defaults.NUM_GROUPS
    rough = f"with fewer than {defaults.NUM_GROUPS} sentences intervals are rough"
    for warning in (*found.warnings, *[rough] * few) if form != "json" else ():
        outputs.complain(warning)


def _plain(
    report: Any, plan: Any, named: dict[str, str], references: str, compared: Any
) -> dict[str, Any]:
    """What JSON has: the report, files, sizes, and two that are compared."""
    real, sizes = plan.references, plan.candidates
    each = [
        {"file": shown(path), "name": x, **vars(sizes[x]), "metrics": report.entries(x)}
        for x, path in named.items()
    ]
    told = {"references": real and {"file": references} | vars(real)}
    told |= {"candidates": each, "empty": plan.empty}
    return report._plain() | told | ({"comparison": compared} if compared else {})


# --- Reading ------------------------------------------------------------------------


def _refuse_repeated(candidates: list[str], references: list[str], real: Any) -> None:
    for paths in (candidates, references):
        files = [*map(os.path.normpath, paths)]
        for path, file in zip(paths, files):
            if files.count(file) > 1:
                outputs.fail(f"{shown(path)}: given more than once")
    if "-" in (*candidates, real) and "-" in references:
        outputs.fail("-: standard input is read once; give the references as a file")
    if real and os.path.normpath(real) in map(os.path.normpath, references):
        outputs.fail(
            f"--real: {shown(real)} is among the references; give held-out text"
        )


def _named(candidates: list[str], real: Any) -> tuple[dict[str, str], dict[Any, str]]:
    """Files by their names, without folders if these differ, and the names by paths."""
    paths, called = [*candidates], {Path(path).name for path in candidates}
    # Real text is a candidate by its path, or by its name where no file is called so.
    by_name = len(called) == len(candidates) and not (real and os.path.exists(real))
    known = {*map(os.path.normpath, candidates)} | (called if by_name else set())
    if real is not None and os.path.normpath(real) not in known:
        paths.append(real)
    short = [shown(Path(path).name or path) for path in paths]
    names = short if len({*short}) == len(paths) else [*map(shown, paths)]
    every = (paths, [os.path.normpath(x) for x in paths], map(shown, paths), names)
    aliases = {alias: name for each in every for alias, name in zip(each, names)}
    return dict(zip(names, paths)), aliases


@contextmanager
def _named_errors(references: str) -> Iterator[None]:
    """Fail with the line of an error, and name the files of the references."""
    try:
        yield
    except ConnectionError as error:
        outputs.fail(f"--scheduler: {error}")
    except (OSError, ImportError) as error:
        outputs.fail(outputs.line_of(error))
    except (ValueError, TypeError) as error:
        said = re.sub("^references(?=: )", lambda _: references, str(error))
        outputs.fail(outputs.with_options(said))
