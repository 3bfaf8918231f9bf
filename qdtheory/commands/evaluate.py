"""The command evaluate: metrics of generated text against real text."""

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from qdtheory.commands.errors import fail
from qdtheory.commands.outputs import print_table
from qdtheory.solvers.progress import progress


class Smoothing(StrEnum):
    """Smoothing of zero counts in BLEU."""

    none = "none"
    epsilon = "epsilon"


class Estimator(StrEnum):
    """Estimator of CR, NRR and CND from counts."""

    plug_in = "plug-in"
    pairs = "pairs"
    sentence_pairs = "sentence-pairs"


class Empty(StrEnum):
    """Treatment of empty lines."""

    keep = "keep"
    skip = "skip"


def evaluate(
    candidates: Annotated[
        list[Path], typer.Argument(help="Generated text, one sentence a line.")
    ],
    references: Annotated[
        Path, typer.Option(help="Real text, one sentence a line.", metavar="FILE")
    ],
    max_order: Annotated[
        int, typer.Option(help="Highest order n of n-grams.", min=1, max=100)
    ] = 4,
    smoothing: Annotated[
        Smoothing, typer.Option(help="BLEU: counts of 0 stay, or become 0.1.")
    ] = Smoothing.epsilon,
    estimator: Annotated[
        Estimator,
        typer.Option(help="CR, NRR and CND: pairs do not depend on the sample size."),
    ] = Estimator.pairs,
    empty: Annotated[
        Empty, typer.Option(help="Lines without a token: score them, or skip them.")
    ] = Empty.keep,
    field: Annotated[
        str | None,
        typer.Option(help="JSON Lines: the field of the sentence.", metavar="NAME"),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(help="CSV or TSV: the column of the sentence.", metavar="NAME"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """BLEU, Self-BLEU, CR, NRR, CND, distinct and MS-Jaccard of generated text.

    BLEU and CR are qualities, NRR and distinct diversities, MS-Jaccard mixes both:
    higher is better. Self-BLEU is a lack of diversity, CND the divergence of CR
    and NRR: lower is better. Each comes with a 95 % interval over the sentences.

    Files are UTF-8, plain or gzip, split at white space; of JSON Lines, CSV and TSV
    name the field or column. An empty line is a text that the model wrote: it has
    BLEU 0.

    Example: qdtheory evaluate model.txt other.txt.gz --references test.txt
    """
    from qdtheory.text import report

    repeated = {str(path) for path in candidates if candidates.count(path) > 1}
    if repeated:
        fail(f"{min(repeated)}: given more than once")
    steps_a_file = 1 + 1 + report.NUM_GROUPS
    with progress(1 + len(candidates) * steps_a_file) as step:
        real = _read(references, step, field, column)
        corpora = {str(path): _read(path, step, field, column) for path in candidates}
        try:
            found = report.evaluate(
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
            fail(str(error) if named else f"{references}: {error}")
    files = {str(references): real} | corpora
    skipped = empty is Empty.skip
    if as_json:
        shown = _as_json(found, files, str(references), skipped)
        print(json.dumps(shown, indent=2))
    else:
        _print(found, files, skipped)


def _read(
    path: Path, step: Callable[[str], None], field: str | None, column: str | None
) -> Any:
    from qdtheory.text import read_corpus

    step(f"Reading {path}")
    try:
        return read_corpus(path, field=field, column=column)
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")
    except ValueError as error:
        fail(str(error))


def _as_json(
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

    result = found.as_dict()
    del result["empty_references"]
    return result | {
        "empty": "skip" if skipped else "keep",
        "references": sizes(references),
        "candidates": [
            sizes(path) | {"metrics": entry["metrics"]}
            for path, entry in result["candidates"].items()
        ],
    }


def _shown(value: float) -> str:
    # Metrics of at most 1 in size are rounded to about this.
    return "0" if abs(value) < 1e-15 else f"{value:.5g}"


def _print(found, files: dict[str, Any], skipped: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from qdtheory.text.report import NUM_GROUPS

    console = Console(highlight=False)
    role = "references"
    for path, corpus in files.items():
        size = len(corpus) - (corpus.num_empty if skipped else 0)
        console.print(
            f"{role} {path}: {size:,} sentences, {corpus.num_tokens:,} tokens, "
            f"{corpus.num_empty} empty lines {'skipped' if skipped else 'scored'}",
            markup=False,  # a path may hold brackets
            soft_wrap=True,
        )
        role = "candidates"
    for path, scores in found.scores.items():
        table = Table("", title=Text(path))
        for name in ("value", "low", "high"):
            table.add_column(name, justify="right")
        rows = zip(scores.value, scores.low, scores.high, strict=True)
        for metric, row in zip(found.metrics, rows, strict=True):
            table.add_row(metric, *map(_shown, row))
        print_table(table)
    notes = ["Higher is better, but lower for Self-BLEU and CND."]
    if min(found.sizes.values()) < NUM_GROUPS:
        notes.append(f"With fewer than {NUM_GROUPS} sentences the intervals are rough.")
    for line in (*notes, *found.warnings, *found.pairs, found.methods):
        console.print(line, markup=False, soft_wrap=True)
