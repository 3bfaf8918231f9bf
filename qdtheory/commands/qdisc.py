"""The command qdisc: how far a real distribution is from Pareto-optimal."""

import math
from typing import Annotated, Any

from qdtheory.commands import inputs
from qdtheory.commands.inputs import LENGTH, VOCAB_SIZE
from qdtheory.commands.outputs import exit_on, print_facts, print_json, print_rows
from qdtheory.support.layout import number
from qdtheory.support.progress import progress

SIGMA, HIDDEN_SIZE, SEEDS = 1.0, 32, 1


def qdisc(
    f: inputs.FormulaF = None,
    g: inputs.FormulaG = None,
    pair: inputs.AnyPairName = None,
    quality: inputs.OwnQuality = None,
    diversity: inputs.OwnDiversity = None,
    scores: inputs.ScoresFile = None,
    references: inputs.References = None,
    self_references: inputs.SelfReferences = None,
    vocab_size: Annotated[
        int | None, inputs.count("Tokens in the vocabulary of the texts.", VOCAB_SIZE)
    ] = None,
    length: Annotated[int | None, inputs.count("Tokens in a text.", LENGTH)] = None,
    sigma: Annotated[
        float | None,
        inputs.option("Spread of an oracle's weights.", show_default=f"{SIGMA:g}"),
    ] = None,
    hidden_size: Annotated[
        int | None,
        inputs.count("Hidden, embedding size of an oracle.", HIDDEN_SIZE, 4096),
    ] = None,
    seeds: Annotated[
        int | None, inputs.count("LSTM oracles, of the seeds 0, 1, ...", SEEDS, 10**6)
    ] = None,
    p: inputs.RealFile = None,
    certified: Annotated[
        bool, inputs.flag("--certify", "Bound what a search found.")
    ] = False,
    as_json: inputs.AsJson = False,
) -> None:
    """How much quality can a model gain over the real distribution?

    QDisc is the greatest gain in quality at no loss of diversity; DRate is its
    share of the range of quality. The real distribution is that of random LSTM
    oracles over all texts of one length, or of a file (--p). The status says if
    the number is exact, certified (an upper bound within 1e-5 of the range of the
    texts' quality is known) or a lower bound that a search found.

    Example: qdtheory qdisc --pair BLEU-2 --sigma 0.5 --seeds 3
    """
    real: Any = None
    if p is not None:
        idle = {"sigma": sigma, "hidden_size": hidden_size, "seeds": seeds}
        if not inputs.is_bleu(pair):
            idle |= {"vocab_size": vocab_size, "length": length}
        inputs.refuse_idle("beside --p", **idle)
        real = inputs.read_distribution(p)
    else:
        vocab_size, length = vocab_size or VOCAB_SIZE, length or LENGTH
    # Before the oracles, which take seconds: errors of the pair are told at once.
    given = f, g, pair, quality, diversity, scores
    numbers = references, self_references
    chosen, _ = inputs.chosen_pair(given, numbers, (vocab_size, length), real)
    from qdtheory import oracle, quality_discrepancy

    results: dict[str, Any] = {}
    method = "certified" if certified else None
    spread, size = SIGMA if sigma is None else sigma, hidden_size or HIDDEN_SIZE
    names = [str(p)] if p else [f"seed {n}" for n in range(seeds or SEEDS)]
    with progress(len(names)) as step:
        for n, name in enumerate(names):
            step(f"QDisc of {chosen.name}, {name}")
            if p is None:
                with exit_on(ValueError, of="--"):
                    space = inputs.space_of(vocab_size, length)
                    real = oracle(space, n, spread, size)
            with exit_on(ValueError, TypeError, ImportError):
                results[name] = quality_discrepancy(chosen, real, method=method)
    if as_json:
        rows = [{"real": name} | vars(found) for name, found in results.items()]
        print_json({"pair": chosen.name, "results": rows})
    else:
        _print_discrepancies(chosen.name, results)


def _print_discrepancies(pair: str, results: dict[str, Any]) -> None:
    from statistics import median

    def show(value: float | None) -> str:
        return "-" if value is None or not math.isfinite(value) else number(value)

    rows = []
    for name, found in results.items():
        # What is not in quality is a gain by rounding.
        some = found.dominated_in == "quality"
        gains = (x if some else x and 0.0 for x in (found.qdisc, found.drate))
        rows.append((name, *map(show, (*gains, found.upper_bound)), found.status))
    if len(results) > 1:
        rates = [found.drate for found in results.values() if found.drate is not None]
        middle = median(found.qdisc for found in results.values())
        rate = show(median(rates)) if rates else "-"
        rows.append(("median", show(middle), rate, "", ""))
    print_facts(pair)
    print_rows(("real P", "QDisc", "DRate", "at most", "status"), rows, numbers=True)
    reasons = [found.reason for found in [*results.values()][:3]]
    if any((found.drate or 0) > 1 for found in results.values()):
        reasons.append("DRate exceeds 1: the most diverse model beats P in quality.")
    for reason in dict.fromkeys(reasons):
        print_facts(reason)
