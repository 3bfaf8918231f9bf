"""The command doctor: can real text beat real text in a pair of metrics?"""

import re
from pathlib import Path
from typing import Annotated

import typer

from qdtheory.commands import inputs, outputs
from qdtheory.commands.inputs import count, option
from qdtheory.support.progress import progress
from qdtheory.text.defaults import NUM_CALLS
from qdtheory.text.files import shown


def doctor(
    texts: Annotated[
        str,
        typer.Argument(help="Real text: a file with a sentence a line; - is stdin."),
    ],
    quality: Annotated[
        str,
        option(
            "BLEU-2, CR-2, ROUGE-L, ..., or your own quality(texts, references) of "
            "two lists of strings.",
            "NAME or MODULE:FUNCTION",
        ),
    ],
    diversity: Annotated[
        str,
        option(
            "Self-BLEU-2, NRR-2, distinct-2, ..., or your own diversity(texts).",
            "NAME or MODULE:FUNCTION",
        ),
    ],
    calls: Annotated[
        int | None, count("Calls of each metric, about.", NUM_CALLS)
    ] = None,
    lot: Annotated[
        int | None, count("Texts of a lot.", "a hundredth of all, at most 500")
    ] = None,
    alpha: Annotated[float, option("Level of the test.")] = 0.05,
    witness: Annotated[
        Path | None, option("Write the sentences that beat real text.", "FILE")
    ] = None,
    field: inputs.FieldOption = None,
    tokenizer: inputs.TokenizerOption = "whitespace",
    lowercase: inputs.LowercaseOption = False,
    as_json: inputs.AsJson = False,
) -> None:
    """Can real text beat real text in a pair of metrics?

    If so, a model that is better in both need not be closer to real text. From
    one file of at least 2,000 real sentences: lots of them, of which the errors
    of quality and diversity cancel for a sound pair; and sentences drawn by
    weights, tested against sentences that nothing has seen. More is better of
    both functions; names know their own way.

    Example: qdtheory doctor real.txt --quality BLEU-2 --diversity Self-BLEU-2
    """
    outputs.require_outputs({"--witness": witness}, texts)
    u, v = map(inputs.named_or_loaded, (quality, diversity))
    settings = {"tokenizer": tokenizer, "lowercase": lowercase}
    inputs.refuse_idle_choice([texts], field)
    real = inputs.read_text(texts, field=field, **settings)
    from qdtheory.text.doctor import doctor as diagnose

    calls = calls or NUM_CALLS
    with outputs.exit_on(ValueError), progress(calls) as step:
        try:
            found = diagnose(u, v, real, lot=lot, calls=calls, alpha=alpha, step=step)
        except ValueError as error:
            told = re.sub("^texts(?=: )", shown(texts), str(error))
            raise ValueError(told) from error
    outputs.write(found.to_json(indent=2) if as_json else str(found), None)
    if witness is not None:
        if not found.beaten:
            outputs.fail(f"--witness: {shown(texts)} has none: {found.verdict}")
        outputs.write("\n".join(found.witness), witness, "--witness")
