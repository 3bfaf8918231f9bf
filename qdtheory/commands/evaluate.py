"""The command evaluate: metrics of generated text against real text."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from zipfile import BadZipFile

import typer

from qdtheory.commands.errors import complain, fail, line_of, told, with_options
from qdtheory.commands.outputs import as_json as to_json
from qdtheory.commands.outputs import (
    check_output,
    require_figures,
    write,
    write_figure,
)
from qdtheory.solvers.progress import progress
from qdtheory.text.defaults import (
    DRAWS,
    ESTIMATOR,
    MAX_ORDER,
    NUM_GROUPS,
    SMOOTHING,
    Empty,
    Estimator,
    TokenizerName,
)
from qdtheory.text.files import shown
from qdtheory.text.tables import printable

# The arguments of `estimate_bhattacharyya`.
LOGS = "real_log_p", "real_log_q", "model_log_p", "model_log_q"

Format: TypeAlias = Literal["table", "csv", "markdown", "latex", "json"]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="A table, all its digits, or the table for a paper.",
        show_default="table",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="--format json.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "--out",
        help="Write to a file, whole or not at all.",
        metavar="FILE",
    ),
]
PlotOption = Annotated[
    Path | None,
    typer.Option(help="Draw the planes: an SVG, PDF or PNG file.", metavar="FILE"),
]
HtmlOption = Annotated[
    Path | None,
    typer.Option(help="Write a page with planes and table.", metavar="FILE"),
]


def evaluate(
    candidates: Annotated[
        list[str],
        typer.Argument(
            help="Generated text: files with a sentence a line, or folders; "
            "- is standard input.",
        ),
    ],
    references: Annotated[
        str, typer.Option(help="Real text, one sentence a line.", metavar="FILE")
    ],
    max_order: Annotated[
        int, typer.Option(help="Highest order n of n-grams.", min=1, max=100)
    ] = MAX_ORDER,
    smoothing: Annotated[
        Literal["none", "epsilon"],
        typer.Option(help="BLEU: counts of 0 stay, or become 0.1."),
    ] = SMOOTHING,
    estimator: Annotated[
        Estimator,
        typer.Option(help="CR, NRR and CND: pairs do not depend on the sample size."),
    ] = ESTIMATOR,
    empty: Annotated[
        Empty, typer.Option(help="Lines without a token: score them, or skip them.")
    ] = "keep",
    field: Annotated[
        str | None,
        typer.Option(help="JSON Lines: the field of the sentence.", metavar="NAME"),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            help="Parquet, datasets, CSV, TSV: the column of the sentence.",
            metavar="NAME",
        ),
    ] = None,
    tokenizer: Annotated[
        TokenizerName,
        typer.Option(help="Split sentences at white space, or as sacrebleu."),
    ] = "whitespace",
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Lower-case sentences first.")
    ] = False,
    embeddings: Annotated[
        bool,
        typer.Option("--embeddings", help="Add Frechet distance and Vendi, of MiniLM."),
    ] = False,
    language_model: Annotated[
        bool,
        typer.Option("--language-model", help="Add LM and reverse LM score."),
    ] = False,
    paired: Annotated[
        bool,
        typer.Option("--paired", help="Add BLEU and ROUGE of line i against line i."),
    ] = False,
    log_probabilities: Annotated[
        list[Path] | None,
        typer.Option(
            help="Add the Bhattacharyya distance: an .npz file for each candidate, of "
            "the arguments of qd.text.estimate_bhattacharyya.",
            metavar="FILE",
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            help="k of distinct_k, different n-grams expected among k.",
            min=1,
            show_default=f"{DRAWS}, where samples have as many",
        ),
    ] = None,
    form: FormatOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
    plot: PlotOption = None,
    html: HtmlOption = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Count in parts that fit into so much, such as 2GB, on disk. After an "
            "interruption the same command goes on with the next part.",
            metavar="SIZE",
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Count one part only, such as 3/16, for `qdtheory merge`.",
            metavar="K/N",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Count on this Dask cluster.", metavar="ADDRESS"),
    ] = None,
) -> None:
    """BLEU, Self-BLEU, CR, NRR, CND, distinct and MS-Jaccard of generated text.

    BLEU and CR are qualities, NRR and distinct diversities, MS-Jaccard mixes both:
    higher is better. Self-BLEU is a lack of diversity, CND the divergence of CR
    and NRR: lower is better. Each comes with a 95 % interval over samples of both
    sides (of BLEU, of candidates), unless too little repeats.

    Files are UTF-8, plain, gzip or zstd; of JSON Lines name the field, of CSV,
    TSV and Parquet the column. A folder of Parquet files or a saved dataset of
    Hugging Face is one sample. An empty line is a text that the model wrote: it
    has BLEU 0.

    Example: qdtheory evaluate model.txt other.txt.gz --references test.txt
    """
    from qdtheory.text.evaluation import planned

    _refuse_repeated(candidates, references)
    form = form_of(form, as_json)
    outputs = {"--output": output, "--plot": plot, "--html": html}
    check_outputs(outputs, references, *candidates)
    if part is not None and (output is None or memory or form or plot or html):
        fail(
            "--part: writes a part to --output FILE, and takes no --memory, --format, "
            "--plot or --html; give these to qdtheory merge"
        )
    if scheduler is not None and (part is not None or memory is not None):
        fail("--scheduler: counts on a cluster, without --memory and --part")
    asked = {
        "embeddings": embeddings,
        "language-model": language_model,
        "paired": paired,
    }
    extra = [name for name, wanted in asked.items() if wanted]
    given = ["log-probabilities"] * (log_probabilities is not None)
    for name in [*extra, *given]:
        if part or memory or scheduler:
            fail(f"--{name}: needs all texts at once, in memory")
    logs = _logs(log_probabilities, candidates)
    numbers = None if part is None else _part(part)
    size = None if memory is None else _bytes(memory)
    settings = {"tokenizer": tokenizer, "lowercase": lowercase}
    corpora, real = _read(
        *(candidates, references, size is not None or numbers is not None),
        settings | {"field": field, "column": column},
    )
    with _named_errors(corpora, shown(references)):
        plan, corpora, real = planned(
            corpora,
            real,
            max_order=max_order,
            smoothing=None if smoothing == "none" else smoothing,
            estimator=estimator,
            empty=empty,
            draws=draws,
        )
        texts = plan, corpora, real
        if output is not None and numbers is not None:
            _write_part(*texts, shown(references), numbers, output)
            return
        if size is not None:
            found = _counted_on_disk(*texts, shown(references), size)
        elif scheduler is not None:
            found = _counted_on_cluster(*texts, scheduler)
        else:
            found = _counted(*texts, extra, logs)
    show(found, plan, shown(references), form, outputs)


# --- Reading ------------------------------------------------------------------------


def _refuse_repeated(candidates: list[str], references: str) -> None:
    files = [*map(os.path.normpath, candidates)]
    for path, file in zip(candidates, files):
        if files.count(file) > 1:
            fail(f"{shown(path)}: given more than once")
    if "-" in {*candidates, references} and sys.stdin is None:
        fail("-: there is no standard input; give a file")
    if "-" in candidates and references == "-":
        fail("-: standard input can be read once; give the references as a file")


def _read(
    candidates: list[str], references: str, stored: bool, settings: dict[str, Any]
) -> tuple[dict[str, Any], Any]:
    """The candidates by name, and the references; stored on disk, or in memory."""
    from qdtheory.text.looks import told_later
    from qdtheory.text.reading import read_corpus, stored_corpus

    reader = stored_corpus if stored else read_corpus

    def read(path: str) -> Any:
        step(f"Reading {shown(path)}")
        with told(OSError, ValueError, ImportError, file=path):
            return reader(sys.stdin.buffer if path == "-" else path, **settings)

    with told_later(), progress(1 + len(candidates)) as step:
        real = read(references)
        return {shown(path): read(path) for path in candidates}, real


def _logs(paths: list[Path] | None, candidates: list[str]) -> dict[str, Any] | None:
    """The log-probabilities of each candidate's file."""
    if paths is None:
        return None
    import numpy as np

    if len(paths) != len(candidates):
        fail(
            f"--log-probabilities: expected a file for each of the {len(candidates)} "
            f"candidates, in their order, got {len(paths)}"
        )
    found = {}
    for path, candidate in zip(paths, candidates):
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found[shown(candidate)] = [arrays[name].astype(float) for name in LOGS]
        except OSError as error:
            fail(f"--log-probabilities: {shown(path)}: {error.strerror or error}")
        except (KeyError, ValueError, EOFError, TypeError, AttributeError, BadZipFile):
            fail(
                f"--log-probabilities: {shown(path)}: expected an .npz file of the "
                f"arrays {', '.join(LOGS)}; numpy.savez writes it"
            )
    return found


def _part(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    numbers = tuple(map(int, found.groups())) if found else (0, 0)
    if not 1 <= numbers[0] <= numbers[1]:
        fail(f"--part: expected K/N with K from 1 to N, such as 3/16, got {text}")
    return numbers[0], numbers[1]


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]*)?) *([KMGT])i?B?", text, re.I)
    if not found:
        fail(f"--memory: expected a size such as 2GB or 500MB, got {text}")
    power = "KMGT".index(found[2].upper()) + 1
    return int(float(found[1]) * (1024 if "i" in text.lower() else 1000) ** power)


@contextmanager
def _named_errors(names: Any, references: str) -> Iterator[None]:
    """Fail with the line of an error; only the references' own comes without a name."""
    try:
        yield
    except (OSError, ImportError) as error:
        fail(line_of(error))
    except ValueError as error:
        known = *(f"{name}: " for name in names), "memory: ", "client: "
        named = str(error).startswith(known)
        fail(with_options(str(error) if named else f"{references}: {error}"))


# --- Counting -----------------------------------------------------------------------


def _counted(plan, corpora, real, extra: list[str], logs: Any) -> Any:
    """The report, counted here at once."""
    from qdtheory.text.evaluation import counted
    from qdtheory.text.looks import told_later

    steps = plan.max_order + len(extra) * (1 + len(corpora))
    with told_later(), progress(steps) as step:
        found = counted(plan, corpora, real, step)
        if extra or logs:
            from qdtheory.text.extra import with_extra  # late: imports JAX

            found = with_extra(found, plan, corpora, real, extra, logs, step)
        return found


def _counted_on_disk(plan, corpora, real, references: str, size: int) -> Any:
    """The report, counted in parts that fit into so many bytes."""
    from qdtheory.text.part_files import job_of, run_parts, work_folder
    from qdtheory.text.partial_sums import parts_for

    num_parts = parts_for(size, corpora, real, plan.max_order)
    job = job_of(plan, corpora, real, references, num_parts)
    with work_folder(job) as folder, progress(num_parts + 1) as step:
        _, found = run_parts(job, corpora, real, folder, step)
    return found


def _counted_on_cluster(plan, corpora, real, address: str) -> Any:
    """The report, counted by the workers of a Dask cluster."""
    from qdtheory.text.cluster import connected, num_parts_on
    from qdtheory.text.evaluation import counted

    with ExitStack() as stack:
        with told(ModuleNotFoundError, ConnectionError, of="--scheduler: "):
            client = stack.enter_context(connected(address))
        step = stack.enter_context(progress(num_parts_on(client)))
        return counted(plan, corpora, real, step, client)


def _write_part(
    plan, corpora, real, references: str, numbers: tuple[int, int], output: Path
) -> None:
    """Count one part only, and write it to a file."""
    from qdtheory.text.numbered import number_texts
    from qdtheory.text.part_files import count_part, job_of, write_part

    part, num_parts = numbers
    job = job_of(plan, corpora, real, references, num_parts)
    write_part(output, job, count_part(job, number_texts(corpora, real), part - 1))


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
    form: Format | None,
    outputs: dict[str, Path | None],
) -> None:
    """Print a report in the form that was asked for, or write it to files."""
    found = replace(found, warnings=tuple(map(with_options, found.warnings)))
    text = _laid_out(found, plan, references, form)
    if form in ("csv", "markdown", "latex"):
        for warning in found.warnings:
            complain(warning)
    plot, html = outputs["--plot"], outputs["--html"]
    if plot is not None:
        write_figure(_shortened(found), plot)
    if html is not None:
        write(_shortened(found).to_html(), html, "--html")
    write(text, outputs["--output"])


def check_outputs(files: dict[str, Path | None], *inputs: str) -> None:
    """Fail early if a file cannot be written, or no figure can be drawn."""
    given = {option: path for option, path in files.items() if path is not None}
    for option, path in given.items():
        check_output(path, *inputs, option=option)
    if len({os.path.realpath(path) for path in given.values()}) < len(given):
        fail(f"{' and '.join(given)} name one file; give each its own")
    if len(given) > ("--output" in given):
        require_figures(given.get("--plot"))


def _laid_out(found, plan, references: str, form: Format | None) -> str:
    match form:
        case "json":
            return to_json(_contents(found, plan, references))
        case "csv":
            return found.to_csv()
        case "markdown":
            return _shortened(found).to_markdown()
        case "latex":
            return _shortened(found).to_latex()
    return _text(found, plan, references)


def _contents(found, plan, references: str) -> dict[str, Any]:
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
        "dependent": found.dependent,
        "warnings": found.warnings,
        "pairs": found.pairs,
        "methods": found.methods,
        "empty": plan.empty,
    }


def _shortened(found) -> Any:
    """The report under the files' names, without their folders if these differ."""
    names = {path: Path(path).name for path in found}
    if len({*names.values()}) < len(names):
        return found
    tables = found.scores, found.sizes, found.empty
    scores, sizes, empty = (dict(zip(names.values(), x.values())) for x in tables)
    dependent = tuple(names[path] for path in found.dependent)
    changed = {"scores": scores, "sizes": sizes, "empty": empty}
    return replace(found, **changed, dependent=dependent)


def _text(found, plan, references: str) -> str:
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
    notes = [*few, *found.pairs, found.methods]
    return "\n".join([*heads, "", str(_shortened(found)), *notes])
