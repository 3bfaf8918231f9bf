"""The command qdisc: how far a real distribution is from Pareto-optimal."""

import json
import math
from dataclasses import fields
from typing import Annotated, Any

import typer

from qdtheory.commands.errors import fail
from qdtheory.commands.inputs import (
    FormulaF,
    FormulaG,
    OwnDiversity,
    OwnQuality,
    RealFile,
    chosen_pair,
    count_texts,
    read_distribution,
)
from qdtheory.solvers.progress import progress


def qdisc(
    f: FormulaF = None,
    g: FormulaG = None,
    pair: Annotated[
        str | None,
        typer.Option(
            help="LL or CR, then SE, NRR or SDI: LL-SE, ...; or BLEU-1, BLEU-2, ...",
            metavar="NAME",
        ),
    ] = None,
    quality: OwnQuality = None,
    diversity: OwnDiversity = None,
    references: Annotated[
        int, typer.Option(help="BLEU: references n of a text.", min=1)
    ] = 2,
    self_references: Annotated[
        int, typer.Option(help="Self-BLEU: other texts k of the model.", min=1)
    ] = 2,
    vocab_size: Annotated[
        int, typer.Option(help="Tokens in the vocabulary of the texts.", min=1)
    ] = 4,
    length: Annotated[int, typer.Option(help="Tokens in a text.", min=1)] = 3,
    sigma: Annotated[
        float, typer.Option(help="Spread of the parameters of an LSTM oracle.")
    ] = 1.0,
    hidden_size: Annotated[
        int, typer.Option(help="Hidden and embedding size of an oracle.", min=1)
    ] = 32,
    seeds: Annotated[
        int, typer.Option(help="Oracles, of the seeds 0, 1, ...", min=1)
    ] = 1,
    p: RealFile = None,
    certified: Annotated[
        bool, typer.Option("--certify", help="Bound what a search found.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
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
    from qdtheory import TextSpace, quality_discrepancy

    num_texts = count_texts(vocab_size, length, None)
    if not 0 < sigma < math.inf:
        fail(f"--sigma: expected a positive number, got {sigma}")
    space = TextSpace(vocab_size, length)
    if p is None:
        rows = _oracles(space, sigma, hidden_size, seeds)
    else:
        rows = {str(p): read_distribution(p)}
    real = next(iter(rows.values()))
    if pair is None or not pair.upper().startswith("BLEU-"):
        chosen = chosen_pair(f, g, pair, quality, diversity, real, real.size)
    elif real.size == num_texts:
        chosen = _bleu_pair(pair, space, references, self_references)
    else:
        fail(
            f"{p}: {real.size} probabilities, expected one for each of the "
            f"{vocab_size}**{length} = {num_texts} texts"
        )
    results = []
    with progress(len(rows)) as step:
        for name, row in rows.items():
            step(f"QDisc of {chosen.name}, {name}")
            try:
                found = quality_discrepancy(chosen, row, certify=certified)
            except (ValueError, TypeError, ImportError) as error:
                fail(str(error))
            results.append((name, found))
    if as_json:
        print(json.dumps(_discrepancy_report(chosen.name, results), indent=2))
    else:
        _print_discrepancies(chosen.name, results)


def _oracles(space, sigma: float, hidden_size: int, seeds: int) -> dict[str, Any]:
    from qdtheory import oracle

    return {
        f"seed {seed}": oracle(space, seed, sigma, hidden_size) for seed in range(seeds)
    }


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


def _discrepancy_report(pair: str, results) -> dict:
    rows = []
    for name, found in results:
        row: dict[str, Any] = {"real": name}
        row |= {field.name: getattr(found, field.name) for field in fields(found)}
        del row["pair"]  # named once, above all results
        for key in ("p", "q", "most_diverse"):
            row[key] = row[key].tolist()
        for key in ("upper_bound", "quality_range"):
            if not math.isfinite(row[key]):
                row[key] = None  # JSON knows no infinity
        rows.append(row)
    return {"pair": pair, "results": rows}


def _print_discrepancies(pair: str, results) -> None:
    from statistics import median

    from rich.console import Console
    from rich.table import Table

    table = Table("real P", title=pair)
    for name in ("QDisc", "DRate", "at most", "status"):
        table.add_column(name, justify="right")

    def show(value: float | None) -> str:
        return "-" if value is None or not math.isfinite(value) else f"{value:.6g}"

    for name, found in results:
        values = (found.qdisc, found.drate, found.upper_bound)
        table.add_row(name, *map(show, values), found.status)
    if len(results) > 1:
        rates = [found.drate for _, found in results if found.drate is not None]
        middle = median(found.qdisc for _, found in results)
        table.add_row("median", show(middle), show(median(rates)) if rates else "-")
    console = Console(highlight=False)
    console.print(table)
    for reason in dict.fromkeys(found.reason for _, found in results[:3]):
        console.print(reason, markup=False)
