"""The command check: a verdict on a quality-diversity pair."""

import re
from typing import Annotated

import typer

from qdtheory.commands import inputs
from qdtheory.commands.outputs import fail, print_facts, print_json, told
from qdtheory.solvers.progress import progress
from qdtheory.world.layout import number

EXIT_STATUSES = {
    "compatible": 0,
    "incompatible": 2,
    "undecided": 3,
    "not_beaten_at_p": 4,
    "conditional": 5,
}


def check(
    f: inputs.FormulaF = None,
    g: inputs.FormulaG = None,
    pair: inputs.AnyPairName = None,
    quality: inputs.QualityName = None,
    diversity: inputs.DiversityName = None,
    scores: inputs.ScoresFile = None,
    references: inputs.References = None,
    self_references: inputs.SelfReferences = None,
    vocab_size: Annotated[
        int | None, inputs.option("Tokens in the vocabulary of the texts.")
    ] = None,
    length: Annotated[int | None, inputs.option("Tokens in a text.")] = None,
    p: inputs.RealFile = None,
    exit_code: Annotated[
        bool,
        inputs.flag(
            "--exit-code",
            "Exit with 2 if incompatible, 3 if undecided, 4 if only P is cleared, 5 if "
            "it depends on the texts.",
        ),
    ] = False,
    as_json: inputs.AsJson = False,
) -> None:
    """Can the real distribution be beaten in both quality and diversity?

    Give the names of two metrics (--quality and --diversity; the answer says over
    which texts it holds), or the pair as formulas of x (--f and --g: x, numbers,
    log, exp, sqrt, + - * / ^ and parentheses, as in "x log x" or "2x - x^2"), by
    its name (--pair), as functions that JAX can trace, from a module in this folder
    (--quality and --diversity), or as the score of each text, such as another
    model's, and a formula (--scores and --g). A pair of functions or scores is
    tested at P (--p) or at random ones over all texts (--vocab-size and --length),
    over which --pair BLEU-1, BLEU-2, ... is judged too, by default of 4 tokens and
    length 3. "Compatible" holds for every P, over 4 or more texts unless fewer are
    asked for; where it is shown of one P only, the first line says so.

    Example: qdtheory check --quality ROUGE-L --diversity distinct-2
    """
    from qdtheory.theory.compatibility import check_compatibility

    real = inputs.read_distribution(p) if p is not None else None
    alone = f is g is pair is scores is None and None not in (quality, diversity)
    if alone and ":" not in f"{quality} {diversity}":
        from qdtheory.theory.named_pairs import FORMULA, check_names

        names = str(quality), str(diversity)
        if all(re.search(FORMULA, name) for name in names):
            fail("formulas go in as --f and --g, names as --quality and --diversity")
        why = "on metrics by their names, which are judged over all texts"
        inputs.refuse_idle(why, p=p, vocab_size=vocab_size, length=length)
        u = inputs.with_references(names[0], references)
        v = inputs.with_references(names[1], self_references)
        with told(ValueError):
            verdict = check_names(u, v)
        print_json(vars(verdict)) if as_json else print(verdict)
        raise typer.Exit(EXIT_STATUSES[verdict.status] if exit_code else 0)
    of_bleu = inputs.is_bleu(pair, references, self_references)
    if of_bleu:
        vocab_size, length = vocab_size or inputs.VOCAB_SIZE, length or inputs.LENGTH
        num_texts = inputs.count_texts(vocab_size, length, None)
        from qdtheory import TextSpace

        space = TextSpace(vocab_size, length)
        chosen = inputs.bleu_pair(str(pair), space, references, self_references)
    else:
        num_texts = inputs.count_texts(vocab_size, length, real)
        chosen = inputs.chosen_pair(
            f, g, pair, quality, diversity, scores, real, num_texts
        )
    with progress(1) as step:
        step(f"Checking {chosen.name}")
        try:
            verdict = check_compatibility(chosen, real, num_texts=num_texts)
        except ValueError as error:
            # The file is not to blame for a formula.
            of_file = p is not None and str(error).startswith("p must")
            fail(f"{p}: {error}" if of_file else str(error))
        except Exception as error:
            if quality is None:  # only a user's function may raise what it likes
                raise
            fail(f"{chosen.name} failed: {type(error).__name__}: {error}")
    if as_json:
        print_json({"pair": chosen.name} | vars(verdict))
    else:
        size = num_texts if real is None else real.size
        bounded = size and (size < 4 or of_bleu)
        # What Theorem 3 proves holds over any number of texts.
        scope = f" for every P over {size} texts" * bool(bounded and not verdict.exact)
        _print_verdict(chosen.name, verdict, scope)
    if exit_code:
        raise typer.Exit(EXIT_STATUSES[verdict.status])


def _print_verdict(name: str, verdict, scope: str) -> None:
    title = verdict.status + scope * (verdict.compatible is True)
    not_beaten = verdict.status == "not_beaten_at_p"
    if not_beaten or verdict.other_p == "incompatible":
        here = "not beaten" if not_beaten else "undecided"
        title = f"at this P: {here}; for other P: {verdict.other_p}"
    rows = {key: number(getattr(verdict, key)) for key in ("w0", "b0", "alpha")}
    for key, exact in (verdict.exact or {}).items():
        rows[key] = exact if exact == rows[key] else f"{exact} = {rows[key]}"
    rows |= {"Psi": verdict.psi or "", "Psi(P) - Psi(Q)": verdict.divergence or ""}
    if (beats := verdict.witness) is not None:
        names = "real P", "better Q", "quality gain", "diversity gain"
        values = beats.p, beats.q, beats.quality_gain, beats.diversity_gain
        rows |= dict(zip(names, map(number, values)))
    rows["residual"] = number(verdict.residual)
    print_facts(f"{title}: {name}", [verdict.reason], rows.items())
