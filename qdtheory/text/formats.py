"""Sentences of a file: one a line, or in JSON Lines, CSV, TSV, Parquet or Arrow."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from itertools import chain, islice
from typing import Any

from qdtheory.text.files import MAX_BYTES, shown, too_large
from qdtheory.world.packages import required

SHOWN = 20  # lines that tell a format
ONE_A_LINE = "write one object a line (jq -c '.[]' FILE > NEW)"


def sentences(
    lines: Iterable[str],
    path: str,
    field: str | None = None,
    column: str | None = None,
) -> Iterator[str]:
    """Read the sentences of a file, one a line or one a record."""
    refuse_two_names(field, column)
    if field is not None:
        lines = iter(lines)
        first = [*islice(lines, SHOWN)]
        lines = chain(first, lines)
        if any(map(_opens_record, first)):
            return _fields(lines, path, field)
    if column is not None:
        lines = iter(lines)
        header = next(lines, "")
        lines = chain([header], lines)
        if _is_named_table(path) or header == column or {",", "\t"} & {*header}:
            return _cells(lines, path, column)
    return _plain(lines, path)


def parquet_sentences(
    held: BytesIO | BufferedReader,
    path: str,
    field: str | None = None,
    column: str | None = None,
    bounded: bool = True,
) -> Iterator[str]:
    """Read the sentences of a column of a Parquet file."""
    refuse_two_names(field, column)
    with required(f"{path}: reading Parquet", "parquet"):
        from pyarrow.parquet import ParquetFile
    with unbroken(path):
        table = ParquetFile(held)
        require_column(path, "a Parquet file", table.schema_arrow.names, column)
        assert column is not None
        chunks = numbered(path, table.iter_batches(columns=[column]), column)
        yield from arrow_sentences(chunks, path, column, bounded)


def numbered(
    path: str, batches: Iterable[Any], column: str
) -> Iterator[tuple[str, int, Any]]:
    """Number the rows of a file that Arrow reads."""
    row = 1
    for batch in batches:
        yield path, row, batch.column(column)
        row += len(batch)


def arrow_sentences(
    chunks: Iterable[tuple[str, int, Any]], name: str, column: str, bounded: bool
) -> Iterator[str]:
    """Read the sentences of pieces of a column, each an array of Arrow."""
    size = 0
    for path, first, array in chunks:
        for number, text in enumerate(array.to_pylist(), first):
            yield _string({column: text}, column, f"{path}, row {number}", "column")
        size += array.nbytes
        if bounded and size > MAX_BYTES:
            raise too_large(name)


@contextmanager
def unbroken(path: str) -> Iterator[None]:
    """Say in one line that a file of Parquet or Arrow is broken."""
    from pyarrow import ArrowException

    try:
        yield
    # Broken files get Python's own errors too.
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        kind = "Arrow" if path.endswith(".arrow") else "Parquet"
        raise ValueError(f"{path}: the {kind} file is broken: {error}") from None


def require_column(
    path: str, kind: str, names: Sequence[str], column: str | None
) -> None:
    """Raise unless a column is named that a file has."""
    if column is None or column not in names:
        said = kind if column is None else f"no column {column!r}"
        raise ValueError(
            f"{path}: {said}; name the column that holds the sentence "
            f"(column=NAME); there are: {', '.join(map(shown, names)) or 'none'}"
        )


def refuse_two_names(field: str | None, column: str | None) -> None:
    """Raise if both a field and a column are named."""
    if field is not None and column is not None:
        raise ValueError(
            "field is for JSON Lines and column for CSV, TSV and Parquet: give one"
        )


def _is_named_table(path: str) -> bool:
    return path.removesuffix(".gz").removesuffix(".zst").endswith((".csv", ".tsv"))


def _plain(lines: Iterable[str], path: str) -> Iterator[str]:
    lines = iter(lines)
    first = [*islice(lines, SHOWN)]
    records = [record for line in first if line.strip() for record in [_record(line)]]
    if records and all(isinstance(record, dict | list) for record in records):
        keys = [*records[0]] if isinstance(records[0], dict) else []
        hint = next((k for k in keys if isinstance(records[0][k], str)), "NAME")
        raise ValueError(
            f"{path}, line 1: JSON, where one sentence a line is expected; name the "
            f"field that holds the sentence (field={hint})"
        )
    if _opens_record("".join(first)):
        first += lines  # one document over several lines is told by its end
        if _record("\n".join(first)) is not None:
            raise ValueError(
                f"{path}, line 1: one JSON document, where one sentence a line is "
                f"expected; {ONE_A_LINE}"
            )
    tabs = {line.count("\t") for line in first[:SHOWN] if line}
    if _is_named_table(path) or (len(first) > 1 and len(tabs) == 1 and tabs != {0}):
        raise ValueError(
            f"{path}, line 1: a table, where one sentence a line is expected; name the "
            "column that holds the sentence (column=NAME)"
        )
    return chain(first, lines)


def _opens_record(line: str) -> bool:
    return line.lstrip().startswith(("{", "["))


def _record(line: str) -> Any:
    """What a line holds if it is JSON, else None; numbers alone are words."""
    try:
        return json.loads(line) if _opens_record(line) else None
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
            raise ValueError(
                f"{where}: expected a JSON object on each line, got "
                f"{line.strip():.40}; {ONE_A_LINE}"
            ) from None
        if not isinstance(record, dict):
            raise ValueError(
                f"{where}: expected a JSON object on each line, got {line.strip():.40}"
            )
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
        raise ValueError(
            f"{path}, line {table.line_num}: {error}; is a quote left open?"
        ) from None


def _string(record: dict, name: str, where: str, what: str) -> str:
    if name not in record:
        there = ", ".join(shown(str(key)) for key in record) or "none"
        raise ValueError(f"{where}: no {what} {name!r}; there are: {there}")
    if not isinstance(record[name], str):
        raise ValueError(
            f"{where}: {what} {name!r}: expected a string, got {record[name]!r:.40}"
        )
    return record[name]
