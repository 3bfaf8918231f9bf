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
    read_distribution,
)
from qdtheory.commands.outputs import print_json, print_table
from qdtheory.solvers.progress import progress

AnyPairName = Annotated[
    str | None,
    typer.Option(help=f"A named pair: {PAIRS}; BLEU-1, BLEU-2, ...", metavar="NAME"),
]
MANY = 10**9
REFERENCES = SELF_REFERENCES = 2
VOCAB_SIZE, LENGTH = 4, 3
SIGMA, HIDDEN_SIZE, SEEDS = 1.0, 32, 1


def _count(text: str, default: int, most: int | None = None) -> Any:
    # None stands for the default, as a given option that does nothing is refused.
    return typer.Option(help=text, min=1, max=most, show_default=str(default))


def _refuse_idle(why: str, **options: float | None) -> None:
    """Fail if an option is given that would do nothing."""
    for name, value in options.items():
        if value is not None:
            fail(f"--{name.replace('_', '-')} has no effect {why}; leave it out")


def qdisc(
    f: FormulaF = None,
    g: FormulaG = None,
    pair: AnyPairName = None,
    quality: OwnQuality = None,
    diversity: OwnDiversity = None,
    references: Annotated[
        int | None, _count("BLEU: references n of a text.", REFERENCES, MANY)
    ] = None,
    self_references: Annotated[
        int | None, _count("Self-BLEU: other texts k of Q.", SELF_REFERENCES, MANY)
    ] = None,
    vocab_size: Annotated[
        int | None, _count("Tokens in the vocabulary of the texts.", VOCAB_SIZE)
    ] = None,
    length: Annotated[int | None, _count("Tokens in a text.", LENGTH)] = None,
    sigma: Annotated[
        float | None,
        typer.Option(help="Spread of an oracle's weights.", show_default=f"{SIGMA:g}"),
    ] = None,
    hidden_size: Annotated[
        int | None, _count("Hidden, embedding size of an oracle.", HIDDEN_SIZE, 4096)
    ] = None,
    seeds: Annotated[
        int | None, _count("LSTM oracles, of the seeds 0, 1, ...", SEEDS, 10**6)
    ] = None,
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
    of_bleu = pair is not None and pair.upper().startswith("BLEU-")
    if not of_bleu:
        _refuse_idle(
            "on a pair that is not BLEU-1, BLEU-2, ...",
            references=references,
            self_references=self_references,
        )
    if p is not None:
        _refuse_idle("beside --p", sigma=sigma, hidden_size=hidden_size, seeds=seeds)
        if not of_bleu:
            _refuse_idle("beside --p", vocab_size=vocab_size, length=length)
    vocab_size, length = vocab_size or VOCAB_SIZE, length or LENGTH
    count_texts(vocab_size, length, None)
    import jax

    jax.config.update("jax_enable_x64", True)
    from qdtheory import TextSpace

    space = TextSpace(vocab_size, length)
    spread = SIGMA if sigma is None else sigma  # 0 is given, and refused
    size, number = hidden_size or HIDDEN_SIZE, seeds or SEEDS
    rows = _real_distributions(p, space, spread, size, number)
    real = next(iter(rows.values()))
    if not of_bleu:
        chosen = chosen_pair(f, g, pair, quality, diversity, real, real.size)
    else:
        if real.size != space.num_texts:
            fail(
                f"{p}: {real.size} probabilities, expected one for each of the "
                f"{vocab_size}**{length} = {space.num_texts} texts"
            )
        numbers = references or REFERENCES, self_references or SELF_REFERENCES
        chosen = _bleu_pair(str(pair), space, *numbers)
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

    from rich.table import Table
    from rich.text import Text

    table = Table("real P", title=Text(pair))
    for name in ("QDisc", "DRate", "at most", "status"):
        table.add_column(name, justify="right")

    def show(value: float | None) -> str:
        return "-" if value is None or not math.isfinite(value) else f"{value:.6g}"

    for name, found in results.items():
        # What is not in quality is a gain by rounding.
        some = found.dominated_in == "quality"
        gains = (x if some else x and 0.0 for x in (found.qdisc, found.drate))
        table.add_row(name, *map(show, (*gains, found.upper_bound)), found.status)
    if len(results) > 1:
        rates = [found.drate for found in results.values() if found.drate is not None]
        middle = median(found.qdisc for found in results.values())
        table.add_row("median", show(middle), show(median(rates)) if rates else "-")
    print_table(table)
    reasons = [found.reason for found in [*results.values()][:3]]
    if any((found.drate or 0) > 1 for found in results.values()):
        reasons.append("DRate exceeds 1: the most diverse model beats P in quality.")
    for reason in dict.fromkeys(reasons):
        print(reason)
