"""Sentences in the lines of a file: plain text, JSON Lines, CSV or TSV."""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

SHOWN = 20  # lines that tell a format


def sentences(
    lines: Iterable[str],
    path: str,
    field: str | None = None,
    column: str | None = None,
) -> Iterator[str]:
    """Read the sentences of a file, one a line or one a record.

    Args:
        lines: lines of the file, without their ends.
        path: its name in error messages.
        field: name of the field that holds the sentence, of a file with a JSON object
            on each line; blank lines are passed over.
        column: name of the column, of a file of comma- or tab-separated values with a
            header.

    Yields:
        The sentences.

    Raises:
        ValueError: both names are given, a record has no such field or column or holds
            no string there, or lines of plain text look like records; the message
            names the line.

    Example:
        >>> list(sentences(['{"text": "a b"}'], "model.jsonl", field="text"))
        ['a b']
        >>> list(sentences(["id,text", '1,"a, b"'], "model.csv", column="text"))
        ['a, b']
    """
    if field is not None and column is not None:
        raise ValueError("give a field (JSON Lines) or a column (CSV), not both")
    if field is not None:
        return _fields(lines, path, field)
    if column is not None:
        return _cells(lines, path, column)
    return _plain(lines, path)


def _plain(lines: Iterable[str], path: str) -> Iterator[str]:
    lines = iter(lines)
    first = [*islice(lines, SHOWN)]
    records = [record for line in first if line.strip() for record in [_record(line)]]
    if records and all(isinstance(record, dict | list) for record in records):
        keys = [*records[0]] if isinstance(records[0], dict) else []
        hint = next((k for k in keys if isinstance(records[0][k], str)), "NAME")
        raise ValueError(
            f"{path}, line 1: JSON, where one sentence a line is expected; name the "
            f"field that holds the sentence (--field {hint})"
        )
    tabs = {line.count("\t") for line in first if line}
    named = path.removesuffix(".gz").endswith((".csv", ".tsv"))
    if named or (len(first) > 1 and len(tabs) == 1 and tabs != {0}):
        raise ValueError(
            f"{path}, line 1: a table, where one sentence a line is expected; name the "
            "column that holds the sentence (--column NAME)"
        )
    return chain(first, lines)


def _record(line: str) -> Any:
    """What a line holds if it is JSON, else None; numbers alone are words."""
    try:
        return json.loads(line) if line.lstrip()[:1] in "{[" else None
    except (ValueError, RecursionError):
        return None


def _fields(lines: Iterable[str], path: str, field: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise ValueError(f"{where}: expected a JSON object, got no JSON") from None
        if not isinstance(record, dict):
            raise ValueError(f"{where}: expected a JSON object, got {line.strip():.40}")
        yield _string(record, field, where, "field")


def _cells(lines: Iterable[str], path: str, column: str) -> Iterator[str]:
    lines = iter(lines)
    header = next(lines, "")
    table = csv.DictReader(
        (f"{line}\n" for line in chain([header], lines)),
        delimiter="\t" if "\t" in header else ",",
    )
    try:
        for row in table:
            where = f"{path}, line {table.line_num}"
            yield _string(row, column, where, "column")
    except csv.Error as error:
        raise ValueError(f"{path}, line {table.line_num}: {error}") from None


def _string(record: dict, name: str, where: str, what: str) -> str:
    if name not in record:
        there = ", ".join(str(key) for key in record) or "none"
        raise ValueError(f"{where}: no {what} {name!r}; there are: {there}")
    if not isinstance(record[name], str):
        kind = type(record[name]).__name__
        raise ValueError(f"{where}: {what} {name!r} is no string but a {kind}")
    return record[name]
