"""Find entries of a printed table that cannot be, by proved inequalities.

Names, patterns and inequalities stand in `lint.toml`, which the site's page reads too.
"""

import csv
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import permutations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from qdtheory.world.numbers import require

BOOK: Any = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NAMES = {x: m for m, names in BOOK["names"].items() for x in str(names).split()}


def check_table(
    table: str,
    given: Mapping[str, int] = {},
    unit: Literal["fraction", "percent"] | None = None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    r"""Find the entries of a table that cannot be.

    The table has a row for each system and a column for each metric, or the reverse, in
    CSV, TSV, Markdown or LaTeX. An entry .42 stands for [.415, .425]; `.42 ± .03` and
    `.42 (.03)` are a mean and a deviation. A metric with values in [0, 1], all its
    orders together, is read in per cent if a head or an entry has a % sign, or if more
    than half of its entries are above 1.

    Args:
        table: its text.
        given: sizes that it does not print: `vocabulary`, `texts`, `length` (tokens of
            the shortest text), `tokens`, `references`, `items`.
        unit: of all metrics with values in [0, 1]; if None, see above.

    Returns:
        What is found, first what has no exception, and how each column is read, with
        nothing for one that no rule knows. A finding has the `row` (or two), its
        `entries`, what the inequality `says`, its sides `low` and `high` at the best
        for the table, exceptions `unless` that the table does not show, and by what
        claim or why it is `shown`.

    Raises:
        ValueError: no table, a metric twice or none that is known, an entry that is no
            number, or a size that is unknown.

    References:
        Lin 1991, for the bound of a Jensen-Shannon divergence; Bhatia and Davis 2000,
        for that of a variance.

    Claims: N13.25, N13.26, N13.27, N13.28, N13.29, N13.30.

    Example:
        >>> found, read = check_table("model,BLEU-4,BLEU-5\nours,.50,.62")
        >>> found[0]["says"], found[0]["shown"], read["BLEU-5"]
        ('BLEU-5 <= BLEU-4^(4/5)', 'N13.25', 'BLEU-5 as fraction')
    """
    require("the text of a table, as of frame.to_csv()", str, table=table)
    if unit not in (None, "fraction", "percent"):
        raise ValueError(f"unit must be 'fraction' or 'percent', got {unit!r}")
    head, *rows = _cells(table)
    for name in given:
        if name not in BOOK["sizes"] or not str(given[name]).isdecimal():
            raise _error("given", known=", ".join(BOOK["sizes"]), got=name)
    head, rows = [*head, *given], [[*row, *map(str, given.values())] for row in rows]
    keys = [_key(title) for title in head]
    if not {metric for metric, _ in keys}.difference(BOOK["sizes"], [""]):
        raise _error("unknown")
    if twice := [x for x, key in zip(head, keys) if key[0] and keys.count(key) > 1]:
        raise _error("twice", got=" and ".join(twice))
    body = [dict(_entries(head, keys, row)) for row in rows]
    percent = set()
    for metric in BOOK["shares"]:
        own = [e for row in body for (m, _), e in row.items() if m == metric]
        signs, above = any("%" in e.text for e in own), sum(e.lo > 1 for e in own)
        if unit == "percent" or (not unit and (signs or 2 * above > len(own))):
            percent |= {metric, f"{metric}-deviation"}
    for key, entry in (item for row in body for item in row.items()):
        by = 100 if key[0] in percent else 1
        entry.lo, entry.hi = entry.lo / by, entry.hi / by
    found = []
    for rule, columns, words in _rules({key for row in body for key in row}):
        for chosen in permutations(zip(rows, body), rule.get("rows", 1)):
            entries = [row.get(key) for _, row in chosen for key in columns]
            scope = vars(math) | words | dict(zip("abcdef", entries))
            try:
                when, *sides = (eval(rule[x], scope) for x in ("when", "low", "high"))
                excess = sides[0] - sides[1] - 1e-9 * max(1, abs(sides[1]))
                broken = when and 0 < excess < math.inf
            except (ArithmeticError, AttributeError, TypeError, ValueError):
                continue  # undefined here, or an entry is missing
            if broken:
                said = {x: rule[x].format(**words) for x in ("says", "unless", "shown")}
                who = " and ".join(row[0] for row, _ in chosen)
                texts = [entry.text for entry in entries if entry]
                sides = dict(zip(("low", "high"), map(float, sides)))
                found.append({"row": who, "entries": texts} | sides | said)
    units = {m: f" as {('fraction', 'percent')[m in percent]}" for m in BOOK["shares"]}
    called = [f"{m}-{n}".removesuffix("-0") + units.get(m, "") for m, n in keys]
    read = {x: name * (key[0] > "") for x, name, key in zip(head, called, keys) if x}
    return sorted(found, key=lambda finding: finding["unless"] > ""), read


def _error(name: str, **words: str) -> ValueError:
    return ValueError(BOOK["errors"][name].format(**words))


def _cells(table: str) -> list[list[str]]:
    """Cells without typography; a row for each system."""
    lines = [x for x in table.splitlines() if not re.search(BOOK["rule_lines"], x)]
    mark = next((m for m in BOOK["separators"] if all(m in x for x in lines)), "")
    lines = [x.strip().strip("|") if mark == "|" else x for x in lines]
    try:
        cells = [*csv.reader(lines, delimiter=mark or "\t")]
    except csv.Error:
        raise _error("table") from None
    rows = [[re.sub(BOOK["typography"], "", x).strip() for x in row] for row in cells]
    if not mark or len(rows) < 2 or {len(row) for row in rows} != {len(rows[0])}:
        raise _error("table")
    if not any(_key(title)[0] for title in rows[0]):
        rows = [list(column) for column in zip(*rows)]
    if _key(rows[0][0])[0]:  # the rows have no names
        rows = [[f"row {i}" * (i > 0), *row] for i, row in enumerate(rows)]
    return rows


def _key(title: str) -> tuple[str, int]:
    """The metric and the order that the head of a column names; 0 is no order."""
    word = re.sub("[^a-z0-9]", "", re.sub(BOOK["remarks"], "", title.lower()))
    base = word if word in NAMES else re.sub(BOOK["deviation"], "", word)
    metric = NAMES.get(base) or NAMES.get(re.sub("[0-9]", "", base), "")
    order = "0" if base in NAMES else "0" + re.sub("[^0-9]", "", base)
    return metric + "-deviation" * (metric > "" and base != word), int(order)


def _entries(head: list[str], keys: list[Any], row: list[str]) -> Iterator[Any]:
    """Keys and entries of a row, with the deviation that an entry may have."""
    for title, (metric, order), text in zip(head, keys, row):
        plain = text.lower().replace("\N{MINUS SIGN}", "-")
        if not metric or re.search(BOOK["missing"], plain):
            continue
        if not (found := re.search(BOOK["entry"], plain)):
            raise _error("entry", row=row[0], title=title, got=text[:40])
        printed = text + "%" * ("%" in title)
        for name, x in zip((metric, f"{metric}-deviation"), found.groups()[1:]):
            if x:
                unit = 10.0 ** int(Decimal(x).as_tuple().exponent)
                half = 0 if metric in BOOK["sizes"] else unit / 2
                low = -math.inf if found[1] == "<" else float(x) - half
                high = math.inf if found[1] == ">" else float(x) + half
                yield (name, order), SimpleNamespace(text=printed, lo=low, hi=high)


def _rules(keys: set[tuple[str, int]]) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Rules with columns that they are about, and these columns' orders and names."""
    for rule in BOOK["rules"]:
        for x in rule.get("each", [""]):
            wanted = [y.replace("X", x).rsplit("-", 1) for y in rule["columns"]]
            there = ([key for key in sorted(keys) if key[0] == m] for m, _ in wanted)
            for columns in product(*there):
                orders: dict[str, Any] = {}
                pairs = [(letter, n) for (_, letter), (_, n) in zip(wanted, columns)]
                if all(orders.setdefault(letter, n) == n for letter, n in pairs):
                    called = [f"{m}-{n}".removesuffix("-0") for m, n in columns]
                    yield rule, columns, orders | dict(zip("abcd", called))
