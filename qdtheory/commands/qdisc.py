"""The command qdisc: how far a real distribution is from Pareto-optimal."""

import math
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from qdtheory.commands.errors import fail
from qdtheory.commands.inputs import (
    PAIRS,
    AsJson,
    FormulaF,
    FormulaG,
    OwnDiversity,
    OwnQuality,
    RealFile,
    chosen_pair,
    count_texts,
    print_json,
    read_distribution,
)
from qdtheory.solvers.progress import progress

AnyPairName = Annotated[
    str | None,
    typer.Option(help=f"A named pair: {PAIRS}; BLEU-1, BLEU-2, ...", metavar="NAME"),
]


def _count(text: str) -> Any:
    return typer.Option(help=text, min=1)


def qdisc(
    f: FormulaF = None,
    g: FormulaG = None,
    pair: AnyPairName = None,
    quality: OwnQuality = None,
    diversity: OwnDiversity = None,
    references: Annotated[int, _count("BLEU: references n of a text.")] = 2,
    self_references: Annotated[int, _count("Self-BLEU: other texts k of Q.")] = 2,
    vocab_size: Annotated[int, _count("Tokens in the vocabulary of the texts.")] = 4,
    length: Annotated[int, _count("Tokens in a text.")] = 3,
    sigma: Annotated[float, typer.Option(help="Spread of an oracle's weights.")] = 1.0,
    hidden_size: Annotated[int, _count("Hidden, embedding size of an oracle.")] = 32,
    seeds: Annotated[int, _count("LSTM oracles, of the seeds 0, 1, ...")] = 1,
    p: RealFile = None,
    certified: Annotated[
        bool, typer.Option("--certify", help="Bound what a search found.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """How much quality can a model gain over the real distribution?

    QDisc is the greatest gain in quality at no loss of diversity; DRate is its
    share of the range of quality. The real distribution is that of random LSTM
    oracles over all texts of one length, or of a file (--p). The status says if
    the number is exact, certified (an upper bound within 1e-5 of the range of the
    texts' quality is known) or a lower bound that a search found.

    Example: qdtheory qdisc --pair BLEU-2 --sigma 0.5 --seeds 3
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    from qdtheory import TextSpace

    count_texts(vocab_size, length, None)
    space = TextSpace(vocab_size, length)
    rows = _real_distributions(p, space, sigma, hidden_size, seeds)
    real = next(iter(rows.values()))
    if pair is None or not pair.upper().startswith("BLEU-"):
        chosen = chosen_pair(f, g, pair, quality, diversity, real, real.size)
    else:
        if real.size != space.num_texts:
            fail(
                f"{p}: {real.size} probabilities, expected one for each of the "
                f"{vocab_size}**{length} = {space.num_texts} texts"
            )
        chosen = _bleu_pair(pair, space, references, self_references)
    results = _discrepancies(chosen, rows, certified)
    if as_json:
        print_json(_discrepancy_report(chosen.name, results))
    else:
        _print_discrepancies(chosen.name, results)


def _real_distributions(
    p: Path | None, space, sigma: float, hidden_size: int, seeds: int
) -> dict[str, Any]:
    """That of the file or, without one, those of the oracles, by name."""
    from qdtheory import oracle

    if not 0 < sigma < math.inf:
        fail(f"--sigma: expected a positive number, got {sigma}")
    if p is not None:
        return {str(p): read_distribution(p)}
    return {
        f"seed {seed}": oracle(space, seed, sigma, hidden_size) for seed in range(seeds)
    }


def _discrepancies(pair, rows: dict[str, Any], certified: bool) -> dict[str, Any]:
    """QDisc of each real distribution, by its name."""
    from qdtheory import quality_discrepancy

    results = {}
    with progress(len(rows)) as step:
        for name, row in rows.items():
            step(f"QDisc of {pair.name}, {name}")
            try:
                results[name] = quality_discrepancy(pair, row, certify=certified)
            except (ValueError, TypeError, ImportError) as error:
                fail(str(error))
    return results


def _bleu_pair(name: str, space, references: int, self_references: int) -> Any:
    from qdtheory import BleuPair

    order = name[len("BLEU-") :]
    if not order.isdecimal() or int(order) < 1:
        fail(f"--pair: expected BLEU- and an order such as BLEU-2, got {name}")
    if int(order) > max(space.lengths):
        fail(
            f"{name} of texts of {max(space.lengths)} tokens is 0: they have no n-gram "
            f"of order {order}; give a lower order, or --length"
        )
    try:
        return BleuPair(space, int(order), references, self_references)
    except ValueError as error:
        fail(str(error))


def _discrepancy_report(pair: str, results: dict[str, Any]) -> dict:
    from qdtheory import Discrepancy

    names = [field.name for field in fields(Discrepancy) if field.name != "pair"]
    rows = [
        {"real": real} | {name: getattr(found, name) for name in names}
        for real, found in results.items()
    ]
    return {"pair": pair, "results": rows}


def _print_discrepancies(pair: str, results: dict[str, Any]) -> None:
    from statistics import median

    from rich.console import Console
    from rich.table import Table

    table = Table("real P", title=pair)
    for name in ("QDisc", "DRate", "at most", "status"):
        table.add_column(name, justify="right")

    def show(value: float | None) -> str:
        return "-" if value is None or not math.isfinite(value) else f"{value:.6g}"

    for name, found in results.items():
        values = (found.qdisc, found.drate, found.upper_bound)
        table.add_row(name, *map(show, values), found.status)
    if len(results) > 1:
        rates = [found.drate for found in results.values() if found.drate is not None]
        middle = median(found.qdisc for found in results.values())
        table.add_row("median", show(middle), show(median(rates)) if rates else "-")
    console = Console(highlight=False)
    console.print(table)
    for reason in dict.fromkeys(found.reason for found in [*results.values()][:3]):
        console.print(reason, markup=False)
