"""The command `qdtheory`: a thin shell over the library, which it imports late."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from threading import Timer
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(version("qdtheory"))
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print it."
        ),
    ] = False,
) -> None:
    """Judge the quality and diversity of text generators."""


@app.command()
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
        _fail(f"--max-order: expected 1 or more, got {max_order}")
    with _progress((1 + len(candidates)) * (1 + max_order)) as step:
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
        _fail(f"{path}: {error.strerror or error}")
    except ValueError as error:
        _fail(str(error))
    tables = []
    for n in range(1, max_order + 1):
        step(f"Counting {n}-grams of {path}")
        try:
            tables.append(ngram_counts(corpus, n))
        except ValueError as error:
            _fail(f"{path}: {error}")
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


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances a bar, drawn on a terminal after two seconds."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=total)
    timer = Timer(2.0, bar.start)
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield lambda text: bar.update(task, advance=1, description=text)
    finally:
        timer.cancel()
        if bar.live.is_started:
            bar.stop()


def _fail(message: str) -> NoReturn:
    print(f"qdtheory: {message}", file=sys.stderr)
    raise typer.Exit(1)
