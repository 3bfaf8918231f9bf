"""The command evaluate: metrics of generated text against real text."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from qdtheory.commands.errors import complain, fail, with_options
from qdtheory.commands.outputs import as_json as to_json
from qdtheory.commands.outputs import (
    check_output,
    require_figures,
    write,
    write_figure,
)
from qdtheory.solvers.progress import progress
from qdtheory.text.defaults import ESTIMATOR, MAX_ORDER, NUM_GROUPS, SMOOTHING


class Smoothing(StrEnum):
    """Smoothing of zero counts in BLEU."""

    none = "none"
    epsilon = "epsilon"


class Estimator(StrEnum):
    """Estimator of CR, NRR and CND from counts."""

    plug_in = "plug-in"
    pairs = "pairs"
    sentence_pairs = "sentence-pairs"


class Format(StrEnum):
    """What the results are printed as."""

    table = "table"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"
    json = "json"


class Tokenizer(StrEnum):
    """How sentences are split; the names are sacrebleu's."""

    whitespace = "whitespace"
    mteval_13a = "13a"
    characters = "characters"


class Empty(StrEnum):
    """Treatment of empty lines."""

    keep = "keep"
    skip = "skip"


def evaluate(
    candidates: Annotated[
        list[str],
        typer.Argument(
            help="Generated text, one sentence a line; - is standard input.",
        ),
    ],
    references: Annotated[
        str, typer.Option(help="Real text, one sentence a line.", metavar="FILE")
    ],
    max_order: Annotated[
        int, typer.Option(help="Highest order n of n-grams.", min=1, max=100)
    ] = MAX_ORDER,
    smoothing: Annotated[
        Smoothing, typer.Option(help="BLEU: counts of 0 stay, or become 0.1.")
    ] = Smoothing[SMOOTHING],
    estimator: Annotated[
        Estimator,
        typer.Option(help="CR, NRR and CND: pairs do not depend on the sample size."),
    ] = Estimator[ESTIMATOR],
    empty: Annotated[
        Empty, typer.Option(help="Lines without a token: score them, or skip them.")
    ] = Empty.keep,
    field: Annotated[
        str | None,
        typer.Option(help="JSON Lines: the field of the sentence.", metavar="NAME"),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            help="Parquet, CSV, TSV: the column of the sentence.", metavar="NAME"
        ),
    ] = None,
    tokenizer: Annotated[
        Tokenizer, typer.Option(help="Split sentences at white space, or as sacrebleu.")
    ] = Tokenizer.whitespace,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Lower-case sentences first.")
    ] = False,
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
        typer.Option(help="Write to a file, whole or not at all.", metavar="FILE"),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the planes: an SVG, PDF or PNG file.", metavar="FILE"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with planes and table.", metavar="FILE"),
    ] = None,
) -> None:
    """BLEU, Self-BLEU, CR, NRR, CND, distinct and MS-Jaccard of generated text.

    BLEU and CR are qualities, NRR and distinct diversities, MS-Jaccard mixes both:
    higher is better. Self-BLEU is a lack of diversity, CND the divergence of CR
    and NRR: lower is better. Each comes with a 95 % interval over the sentences.

    Files are UTF-8, plain, gzip or zstd; of JSON Lines name the field, of CSV,
    TSV and Parquet the column. An empty line is a text that the model wrote: it
    has BLEU 0.

    Example: qdtheory evaluate model.txt other.txt.gz --references test.txt
    """
    from qdtheory.text import evaluation
    from qdtheory.text.files import shown

    _refuse_repeated(candidates, references)
    read = partial(
        _read,
        tokenizer=tokenizer.value,
        lowercase=lowercase,
        field=field,
        column=column,
    )
    inputs = references, *candidates
    if as_json and form not in (None, Format.json):
        fail(f"--json is --format json, and --format {form.value} is given too")
    _check_outputs({"--output": output, "--plot": plot, "--html": html}, inputs)
    steps_a_file = 1 + 1 + NUM_GROUPS
    with progress(1 + len(candidates) * steps_a_file) as step:
        real = read(references, step)
        corpora = {shown(path): read(path, step) for path in candidates}
        try:
            found = evaluation.evaluate(
                corpora,
                real,
                max_order=max_order,
                smoothing=None if smoothing is Smoothing.none else "epsilon",
                estimator=estimator.value,
                step=step,
                empty=empty.value,
            )
        except ValueError as error:
            # Only the references' own failure comes without a name.
            named = any(str(error).startswith(f"{name}: ") for name in corpora)
            said = str(error) if named else f"{shown(references)}: {error}"
            fail(with_options(said))
    found = replace(found, warnings=tuple(map(with_options, found.warnings)))
    files = {shown(references): real} | corpora
    form = Format.json if as_json else form
    skipped = empty is Empty.skip
    text = _laid_out(found, form, files, shown(references), skipped)
    if form in (Format.csv, Format.markdown, Format.latex):
        for warning in found.warnings:
            complain(warning)
    if plot is not None:
        write_figure(_shortened(found), plot)
    if html is not None:
        write(_shortened(found).to_html(), html, "--html")
    write(text, output)


def _check_outputs(files: dict[str, Path | None], inputs: tuple[str, ...]) -> None:
    given = {option: path for option, path in files.items() if path is not None}
    for option, path in given.items():
        check_output(path, *inputs, option=option)
    if len({os.path.realpath(path) for path in given.values()}) < len(given):
        fail(f"{' and '.join(given)} name one file; give each its own")
    if len(given) > ("--output" in given):
        require_figures(given.get("--plot"))


def _laid_out(
    found, form: Format | None, files: dict[str, Any], references: str, skipped: bool
) -> str:
    match form:
        case Format.json:
            return to_json(_contents(found, files, references, skipped))
        case Format.csv:
            return found.to_csv()
        case Format.markdown:
            return _shortened(found).to_markdown()
        case Format.latex:
            return _shortened(found).to_latex()
    return _text(found, files, skipped)


def _refuse_repeated(candidates: list[str], references: str) -> None:
    from qdtheory.text.files import shown

    files = [*map(os.path.normpath, candidates)]
    for path, file in zip(candidates, files):
        if files.count(file) > 1:
            fail(f"{shown(path)}: given more than once")
    if "-" in {*candidates, references} and sys.stdin is None:
        fail("-: there is no standard input; give a file")
    if "-" in candidates and references == "-":
        fail("-: standard input can be read once; give the references as a file")


def _read(path: str, step: Callable[[str], None], **options: Any) -> Any:
    from qdtheory.text import read_corpus
    from qdtheory.text.files import shown

    step(f"Reading {shown(path)}")
    try:
        return read_corpus(sys.stdin.buffer if path == "-" else path, **options)
    except OSError as error:
        fail(f"{shown(path)}: {error.strerror or error}")
    except (ValueError, ImportError) as error:
        fail(with_options(str(error)))


def _contents(
    found, files: dict[str, Any], references: str, skipped: bool
) -> dict[str, Any]:
    def sizes(path: str) -> dict[str, Any]:
        corpus = files[path]
        return {
            "file": path,
            "sentences": len(corpus) - (corpus.num_empty if skipped else 0),
            "tokens": corpus.num_tokens,
            "empty_lines": corpus.num_empty,
        }

    return {
        "references": sizes(references),
        "candidates": [sizes(path) | {"metrics": found[path]} for path in found],
        "warnings": found.warnings,
        "pairs": found.pairs,
        "methods": found.methods,
        "empty": "skip" if skipped else "keep",
    }


def _shortened(found) -> Any:
    """The report under the files' names, without their folders if these differ."""
    names = [Path(path).name for path in found]
    if len(set(names)) < len(names):
        return found
    tables = found.scores, found.sizes, found.empty
    scores, sizes, empty = (dict(zip(names, x.values())) for x in tables)
    return replace(found, scores=scores, sizes=sizes, empty=empty)


def _text(found, files: dict[str, Any], skipped: bool) -> str:
    """The table between what it is of and what to know about it."""
    from qdtheory.text.tables import printable

    roles = ["references", *["candidates"] * len(found.scores)]
    heads = [
        f"{role} {printable(path)}: "
        f"{len(corpus) - (corpus.num_empty if skipped else 0):,} sentences, "
        f"{corpus.num_tokens:,} tokens, "
        f"{corpus.num_empty} empty lines {'skipped' if skipped else 'scored'}"
        for role, (path, corpus) in zip(roles, files.items())
    ]
    rough = f"With fewer than {NUM_GROUPS} sentences the intervals are rough."
    few = [rough] * (min(found.sizes.values()) < NUM_GROUPS)
    notes = [*few, *found.pairs, found.methods]
    return "\n".join([*heads, "", str(_shortened(found)), *notes])
