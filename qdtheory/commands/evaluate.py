"""The command evaluate: metrics of generated text against real text."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any, Literal

import typer

from qdtheory.commands import inputs
from qdtheory.commands.inputs import count, flag, option
from qdtheory.commands.outputs import (
    complain,
    exit_on,
    fail,
    line_of,
    require_outputs,
    to_json,
    with_options,
    write,
    write_figure,
)
from qdtheory.commands.prompts import evaluate_prompts
from qdtheory.support.layout import paragraphs, printable
from qdtheory.support.progress import progress
from qdtheory.text import defaults
from qdtheory.text.files import Files, shown

PLAIN = "csv", "markdown", "latex"  # forms of the table alone


def evaluate(
    context: typer.Context,
    candidates: Annotated[
        list[str],
        typer.Argument(
            help="Generated text: files with a sentence a line, or folders; "
            "- is standard input."
        ),
    ],
    references: Annotated[
        list[str] | None,
        option("Real text, one sample in all.", "FILES...", "--references", "-r"),
    ] = None,
    input: Annotated[
        list[str] | None,
        option("Candidates, if not the first words.", "FILES...", "--input", "-i"),
    ] = None,
    metrics: inputs.MetricsOption = None,
    compare: inputs.CompareOption = None,
    max_order: Annotated[
        int, option("Highest order n of n-grams.", min=1, max=100)
    ] = defaults.MAX_ORDER,
    smoothing: Annotated[
        Literal["none", "epsilon"], option("BLEU: counts of 0 stay, or become 0.1.")
    ] = defaults.SMOOTHING,
    estimator: Annotated[
        defaults.Estimator,
        option("CR, NRR and CND: pairs do not depend on the sample size."),
    ] = defaults.ESTIMATOR,
    empty: Annotated[
        defaults.Empty, option("Lines without a token: score them, or skip them.")
    ] = "keep",
    field: inputs.FieldOption = None,
    reference_field: Annotated[
        str | None, option("Field or column of the references, if another.", "NAME")
    ] = None,
    tokenizer: inputs.TokenizerOption = "whitespace",
    lowercase: inputs.LowercaseOption = False,
    draws: Annotated[
        int | None,
        count(
            "k of distinct_k, different n-grams expected among k.",
            f"{defaults.DRAWS}, where samples have as many",
        ),
    ] = None,
    form: inputs.FormatOption = None,
    as_json: inputs.JsonOption = False,
    output: inputs.OutputOption = None,
    plot: inputs.PlotOption = None,
    html: inputs.HtmlOption = None,
    scheduler: Annotated[
        str | None,
        option(
            "Count on a Dask cluster, or on so many processes here: files of any size.",
            "ADDRESS or N",
        ),
    ] = None,
    prompts: Annotated[
        bool, flag("--prompts", "Several outputs for each prompt, see above.")
    ] = False,
) -> None:
    """BLEU, Self-BLEU, CR, NRR, CND, distinct and MS-Jaccard of generated text.

    BLEU and CR are qualities, NRR and distinct diversities, MS-Jaccard mixes both:
    higher is better. Self-BLEU is a lack of diversity, CND the divergence of CR
    and NRR: lower is better. Each comes with a 95 % interval over samples of both
    sides (of BLEU, of candidates), unless too little repeats.

    Files are UTF-8, plain, gzip or zstd; of JSON Lines name the field, of CSV,
    TSV and Parquet the column. A folder of Parquet files or a saved dataset of
    Hugging Face is one sample, and so are several files of references. An empty
    line is a text that the model wrote: it has BLEU 0.

    An option of FILES or NAMES takes all words up to the next option, so that
    candidates come first, or after -i. The last line, the signature, names each
    choice that changes a number, to be printed beside the numbers.

    With --prompts a row is a prompt, its outputs and references, or one output:
    at least two samples of the model a prompt, and human answers if there are.
    Fair kernel scores of candidates with the same prompts, and tests over them.

    Example: qdtheory evaluate model.txt other.txt.gz --references test.txt

    Example: qdtheory evaluate a.txt b.txt -r test.txt -m BLEU CND --compare a.txt b.txt

    Example: qdtheory evaluate model.jsonl other.jsonl --prompts
    """
    _refuse_repeated(candidates, references or [])
    form = inputs.form_of(form, as_json)
    outputs = {"--output": output, "--plot": plot, "--html": html}
    require_outputs(outputs, *candidates, *(references or []))
    if prompts:
        return evaluate_prompts(context, form)
    if references is None:
        fail("Missing option '--references'; see qdtheory evaluate --help")
    _require_compared(compare, candidates, form)
    _require_metrics(metrics, max_order, draws)
    field, of_real, *_ = [*inputs.fields_of(field, 2), None, None]
    reference_field = of_real or reference_field
    shared = candidates if reference_field else [*candidates, *references]
    inputs.refuse_idle_choice(shared, field)
    from qdtheory.text.evaluation import corpora, counted, planned
    from qdtheory.text.looks import told_later

    given = {shown(path): _file(path) for path in candidates}
    real, name = Files(map(_file, references)), ", ".join(map(shown, references))
    where = field, reference_field
    how: Any = {"tokenizer": tokenizer, "lowercase": lowercase, "empty": empty}
    settings: Any = {"max_order": max_order, "estimator": estimator, "draws": draws}
    settings["smoothing"] = None if smoothing == "none" else smoothing
    workers, steps = None, 1 + len(given) + max_order
    if scheduler is not None:
        workers, steps = int(scheduler) if scheduler.isdecimal() else scheduler, None
    with (
        _named_errors(name),
        told_later(),
        progress(steps) as step,
        corpora(given, real, *where, workers, step, **how) as texts,
    ):
        plan = planned(*texts, **settings, empty=empty)
        found = counted(plan, *texts, step)
    _show(found, plan, name, form, outputs, metrics, compare)


# --- Reading ------------------------------------------------------------------------


def _refuse_repeated(candidates: list[str], references: list[str]) -> None:
    for paths in (candidates, references):
        files = [*map(os.path.normpath, paths)]
        for path, file in zip(paths, files):
            if files.count(file) > 1:
                fail(f"{shown(path)}: given more than once")
    if "-" in candidates and "-" in references:
        fail("-: standard input can be read once; give the references as a file")


def _require_compared(compare: Any, candidates: list[str], form: Any) -> None:
    """Fail early unless two of the candidates are to be compared, or none."""
    there = [*map(shown, candidates)]
    if form in PLAIN:
        inputs.refuse_idle(f"with --format {form}", compare=compare)
    if compare and (compare[0] == compare[1] or not {*compare} <= {*there}):
        fail(f"--compare: expected two of the candidates {', '.join(there)}")


def _require_metrics(metrics: list[str] | None, max_order: int, draws: Any) -> None:
    """Fail before an hour of counting if no metric has such a name."""
    if metrics:
        from qdtheory.text.comparison import chosen
        from qdtheory.text.leave_out import KINDS

        kinds = *KINDS, f"distinct_{draws or defaults.DRAWS}"
        orders = range(1, max_order + 1)
        with exit_on(ValueError, of="--metrics: "):
            chosen([f"{kind}-{n}" for kind in kinds for n in orders], metrics)


def _file(path: str) -> Any:
    if not path:  # which Path takes for this folder
        fail("'': No such file or directory")
    return inputs.standard_input() if path == "-" else Path(path)


@contextmanager
def _named_errors(references: str) -> Iterator[None]:
    """Fail with the line of an error, and name the files of the references."""
    try:
        yield
    except ConnectionError as error:
        fail(f"--scheduler: {error}")
    except (OSError, ImportError) as error:
        fail(line_of(error))
    except (ValueError, TypeError) as error:
        said = re.sub("^references(?=: )", lambda _: references, str(error))
        fail(with_options(said))


# --- Writing ------------------------------------------------------------------------


def _show(
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
    with exit_on(ValueError, of="--metrics: "):
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
    rough = f"With fewer than {defaults.NUM_GROUPS} sentences the intervals are rough."
    few = [rough] * (min(found.sizes.values()) < defaults.NUM_GROUPS)
    width = get_terminal_size().columns
    notes = [*str(compared).splitlines(), *few, found.methods]
    heads, notes = (paragraphs(x, width) for x in (heads, notes))
    text = [*heads, "", _shortened(found).to_text(width), *notes]
    return "\n".join([*text, found.signature])  # whole: it is pasted
