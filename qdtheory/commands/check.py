"""The command check: a verdict on a quality-diversity pair."""

import re
from typing import Annotated

import typer

from qdtheory.commands import inputs
from qdtheory.commands.outputs import exit_on, fail, print_facts, print_json
from qdtheory.support.progress import progress

EXIT_STATUSES = {"compatible": 0, "incompatible": 2, "undecided": 3}
EXIT_STATUSES |= {"not_beaten_at_p": 4, "conditional": 5}


def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Two metrics, or the name of a pair.")
    ] = None,
    f: inputs.FormulaF = None,
    g: inputs.FormulaG = None,
    pair: inputs.AnyPairName = None,
    quality: inputs.QualityName = None,
    diversity: inputs.DiversityName = None,
    scores: inputs.ScoresFile = None,
    references: inputs.References = None,
    self_references: inputs.SelfReferences = None,
    vocab_size: Annotated[
        int | None, inputs.option("Tokens in the vocabulary of the texts.", min=1)
    ] = None,
    length: Annotated[int | None, inputs.option("Tokens in a text.", min=1)] = None,
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

    Give the names of two metrics, as words or as --quality and --diversity (the
    answer says over which texts it holds; an order that is missing is 4), or the pair
    as formulas of x (--f and --g: x, numbers, log, exp, sqrt, + - * / ^ and
    parentheses, as in "x log x" or "2x - x^2"), by its name (--pair), as functions
    that JAX can trace, from a module in this folder (--quality and --diversity), or as
    the score of each text, such as another model's, and a formula (--scores and --g).
    A pair of functions or scores is tested at P (--p) or at random ones over all texts
    (--vocab-size and --length), over which --pair BLEU-1, BLEU-2, ... is judged too, by
    default of 4 tokens and length 3. "Compatible" holds for every P, over 4 or more
    texts unless fewer are asked for; where it is shown of one P only, the first line
    says so.

    Example: qdtheory check ROUGE-L distinct-2
    """
    from qdtheory.compatibility import check_compatibility

    real = inputs.read_distribution(p) if p is not None else None
    if names and (len(names) > 2 or {f, g, pair, quality, diversity, scores} != {None}):
        fail("give two metrics, or options; in quotes a name is one word: 'gen PPL'")
    match names:
        case [one]:
            pair = one
        case [one, two]:
            quality, diversity = one, two
    alone = f is g is pair is scores is None and None not in (quality, diversity)
    if alone and ":" not in f"{quality} {diversity}":
        from qdtheory.catalogue.names import FORMULA, check_names

        both = str(quality), str(diversity)
        if all(re.search(FORMULA, name) for name in both):
            fail("formulas go in as --f and --g, names as --quality and --diversity")
        why = "on metrics by their names, which are judged over all texts"
        inputs.refuse_idle(why, p=p, vocab_size=vocab_size, length=length)
        with exit_on(ValueError):
            verdict = check_names(*both, (references, self_references))
        told = vars(verdict) | {"sentence": verdict.sentence}
        print_json(told) if as_json else print(verdict)
        raise typer.Exit(EXIT_STATUSES[verdict.status] if exit_code else 0)
    given = f, g, pair, quality, diversity, scores
    numbers = references, self_references
    chosen, num_texts = inputs.chosen_pair(given, numbers, (vocab_size, length), real)
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
        title, sentences, facts = verdict.summary()
        size = num_texts if real is None else real.size
        # What Theorem 3 proves holds over any number of texts.
        bounded = verdict.compatible and not verdict.exact
        if bounded and size and (size < 4 or inputs.is_bleu(pair)):
            title += f" for every P over {size} texts"
        print_facts(f"{title}: {chosen.name}", sentences, facts)
    if exit_code:
        raise typer.Exit(EXIT_STATUSES[verdict.status])
