"""The command evaluate: metrics of generated text against real text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from qdtheory.commands.errors import fail
from qdtheory.progress import progress


def evaluate(
    candidates: Annotated[
        list[Path], typer.Argument(help="Generated text, one sentence a line.")
    ],
    references: Annotated[
        Path, typer.Option(help="Real text, one sentence a line.", metavar="FILE")
    ],
    max_order: Annotated[int, typer.Option(help="Highest order n of n-grams.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Coverage rate, negative repetition rate and CND of generated text.

    CR is a quality and NRR a diversity: higher is better. CND is their
    divergence, the squared distance of the n-gram frequencies: lower is
    better. All three depend on the number of sentences, so compare files
    of equal size.

    Files are UTF-8, plain or gzip, split at white space.

    Example: qdtheory evaluate model.txt other.txt.gz --references test.txt
    """
    if max_order < 1:
        fail(f"--max-order: expected 1 or more, got {max_order}")
    with progress((1 + len(candidates)) * (1 + max_order)) as step:
        reference, reference_tables = _count(references, max_order, step)
        results = []
        for path in candidates:
            corpus, tables = _count(path, max_order, step)
            results.append(corpus | {"orders": _scores(tables, reference_tables)})
    report = {"references": reference, "candidates": results}
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        _print_tables(report)


def _count(path: Path, max_order: int, step: Callable[[str], None]):
    """A file's sizes, and its n-gram tables of orders 1 to max_order."""
    from qdtheory.text import ngram_counts, read_corpus

    step(f"Reading {path}")
    try:
        corpus = read_corpus(path)
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")
    except ValueError as error:
        fail(str(error))
    tables = []
    for n in range(1, max_order + 1):
        step(f"Counting {n}-grams of {path}")
        try:
            tables.append(ngram_counts(corpus, n))
        except ValueError as error:
            fail(f"{path}: {error}")
    sizes = {
        "file": str(path),
        "sentences": len(corpus),
        "tokens": corpus.num_tokens,
        "empty_lines": corpus.empty_lines,
    }
    return sizes, tables


def _scores(tables, reference_tables) -> list[dict[str, int | float]]:
    from qdtheory.text import cnd, coverage_rate, negative_repetition_rate

    return [
        {
            "n": n,
            "cr": coverage_rate(table, reference, n),
            "nrr": negative_repetition_rate(table, n),
            "cnd": cnd(table, reference, n),
        }
        for n, (table, reference) in enumerate(
            zip(tables, reference_tables, strict=True), start=1
        )
    ]


def _print_tables(report: dict) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)

    def print_sizes(role: str, sizes: dict) -> None:
        console.print(
            f"{role} {sizes['file']}: {sizes['sentences']} sentences, "
            f"{sizes['tokens']} tokens, {sizes['empty_lines']} empty lines skipped",
            markup=False,  # a path may hold brackets
            soft_wrap=True,
        )

    print_sizes("references", report["references"])
    for result in report["candidates"]:
        print_sizes("candidates", result)
        table = Table("n")
        for name in ("CR", "NRR", "CND"):
            table.add_column(name, justify="right")
        for row in result["orders"]:
            values = (f"{row[name]:.5e}" for name in ("cr", "nrr", "cnd"))
            table.add_row(str(row["n"]), *values)
        console.print(table)
