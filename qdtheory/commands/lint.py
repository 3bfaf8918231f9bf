"""The command lint: which entries of a printed table cannot be?"""

from typing import Annotated, Literal

import typer

from qdtheory.commands.inputs import AsJson, option, standard_input
from qdtheory.commands.outputs import fail, print_facts, print_json, told
from qdtheory.text.files import lines, shown, streamed
from qdtheory.world.layout import number

SIZES = "A size: vocabulary, texts, length (of the shortest text), tokens, references."
Table = Annotated[str, typer.Argument(help="CSV, TSV, Markdown, LaTeX; - is stdin.")]
Given = Annotated[list[str] | None, option(SIZES, "NAME=NUMBER")]
Unit = Annotated[
    Literal["fraction", "percent"] | None,
    option("Of metrics with values in [0, 1].", show_default="by the entries"),
]


def lint(
    table: Table, given: Given = None, unit: Unit = None, as_json: AsJson = False
) -> None:
    """Which entries of a printed table cannot be?

    The table has a row for each system and a column for each metric: BLEU-2,
    SB-3, distinct-2, NLL, entropy, CR, JSD, ... An entry is refused if it breaks
    a proved inequality, however the numbers were rounded. Exceptions that a table
    does not show are named.

    Example: qdtheory lint table.csv --given references=1 --given length=20
    """
    from qdtheory.metrics.lint import check_table

    sizes = {}
    for size in given or ():
        name, _, value = size.partition("=")
        if not value.isdecimal() or not int(value):
            fail(f"--given: expected NAME=NUMBER, such as length=20, got {size}")
        if sizes.setdefault(name, int(value)) != int(value):
            fail(f"--given: {name} is given as {sizes[name]} and as {value}")
    source = standard_input() if table == "-" else table
    with told(OSError, ValueError, file=table):
        with streamed(source, bounded=True) as (_, held):
            text = "\n".join(lines(held, shown(table), bounded=True))
        found, read = check_table(text, sizes, unit)
    if as_json:
        print_json({"findings": found, "columns": read})
        return
    for x in found:
        unless = f", unless {x['unless']}" * bool(x["unless"])
        title = f"{x['row']}: {', '.join(x['entries'])} cannot be{unless}:"
        broken = f"here {number(x['low'])} > {number(x['high'])} ({x['shown']})"
        print_facts(title, facts=[(x["says"], broken)])
    sure = sum(not x["unless"] for x in found)
    known = ", ".join(filter(None, read.values()))
    others = ", ".join(name for name in read if not read[name]) or "nothing"
    counts = f"Findings: {sure}, and {len(found) - sure} with exceptions."
    print_facts(counts, [f"Read: {known}", f"Not read: {others}"])
