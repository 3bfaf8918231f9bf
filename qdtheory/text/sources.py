"""The sentences of a sample, wherever it lies: a file, a folder, a dataset, a table.

A file has one sentence a line, a record a line (JSON Lines, CSV, TSV) or columns
(Parquet, Arrow). Sentences come one after another, so that none need be in memory.
Datasets of Hugging Face are told by what they hold: a folder of `save_to_disk` by its
state.json, one in memory by its rows, so that their package is not imported.
"""

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from itertools import chain, islice, starmap
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard

from qdtheory.support.packages import required
from qdtheory.text.containers import ArrowColumn, Dataset, rows
from qdtheory.text.files import (
    GZIP,
    HEAD,
    MAX_BYTES,
    PARQUET,
    ZSTD,
    File,
    Files,
    lines,
    name_of,
    shown,
    streamed,
    too_large,
)

Source: TypeAlias = File | Files | Dataset | ArrowColumn
Form: TypeAlias = Literal["sentences", "strings", "records", "table"]  # of lines
OPENING = "{", "["  # of a record
SHOWN = 20  # lines that tell a format
LISTS = "lists of several outputs a prompt are for --prompts, or evaluate_prompts"
ONE_A_LINE = "write one object a line (jq -c '.[]' FILE > NEW)"
NO_JSON = "mend or remove this line, which is no JSON"
# The names that datasets are published under: a split, and which of its files.
SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}.*\.parquet")


def is_file(source: object) -> TypeGuard[File | Files]:
    """Tell a path, a stream or some of them from texts in memory."""
    return isinstance(source, str | PathLike | Files) or hasattr(source, "read")


@contextmanager
def opened(
    source: Source,
    field: str | None = None,
    column: str | None = None,
    bounded: bool = True,
) -> Iterator[Iterable[Any]]:
    """Open a sample, to read its sentences one by one; `bounded`, at most 1 GiB."""
    if not is_file(source):
        yield rows(source, column)
        return
    if isinstance(source, Files):
        with ExitStack() as stack:
            each = (opened(file, field, column, bounded) for file in source)
            yield chain.from_iterable([*map(stack.enter_context, each)])
        return
    if None not in (field, column) and field != column:
        raise ValueError(
            "field is for JSON Lines and column for CSV, TSV and Parquet: give one"
        )
    name = name_of(source)
    if isinstance(source, str | PathLike) and os.path.isdir(source):
        kind, read, files = _of_folder(Path(source), name)
        tables = [(shown(path), path) for path in files]
        yield _of_tables(tables, name, kind, read, column, bounded)
        return
    with streamed(source, bounded) as (head, held):
        if not head.startswith(PARQUET):
            yield sentences(lines(held, name, bounded), name, field, column)
            return
        if not held.seekable():
            held = BytesIO(held.read(MAX_BYTES + 1 if bounded else -1))
            if bounded and len(held.getbuffer()) > MAX_BYTES:
                raise too_large(name)
        tables = [(name, held)]
        yield _of_tables(tables, name, "a Parquet file", _parquet, column, bounded)


# --- Lines --------------------------------------------------------------------------


def sentences(
    lines: Iterable[str], path: str, field: str | None = None, column: str | None = None
) -> Iterator[str]:
    """Read the sentences of a file, one a line or one a record."""
    rest = iter(lines)
    first = [*islice(rest, SHOWN)]
    form = form_of(first, rest, path, field, column)
    return in_form(form, chain(first, rest), path, field, column)


def form_of(
    first: list[str],
    rest: Iterator[str],
    path: str,
    field: str | None,
    column: str | None,
) -> Form:
    """What the lines of a file are, by the first few; more are read if it is JSON."""
    strings = [_record(line, '"') for line in first if line.strip()]
    quoted = strings and None not in strings and not _is_named_table(path)
    if field == "." and quoted:
        return "strings"
    if field is not None and any(map(_opens_record, first)):
        return "records"
    if column is not None:
        header = "".join(first[:1])
        if _is_named_table(path) or header == column or {",", "\t"} & {*header}:
            return "table"
    if quoted:
        raise ValueError(
            f"{path}, line 1: JSON strings, where one sentence a line is expected, "
            'whose quotes would count as text: decode them (field=".")'
        )
    _refuse_records(first, rest, path)
    return "sentences"


def form_by_line(
    path: str | PathLike[str], field: str | None = None, column: str | None = None
) -> Form | None:
    """What each line of a file is; None if it has to be read from its beginning."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        if file.read(HEAD).startswith((GZIP, ZSTD, PARQUET)):
            return None
    name = name_of(path)
    with streamed(path) as (_, held):
        rest = lines(held, name)
        form = form_of([*islice(rest, SHOWN)], rest, name, field, column)
    return None if form == "table" else form  # whose quotes may go over lines


def in_form(
    form: Form,
    lines: Iterable[str],
    path: str,
    field: str | None = None,
    column: str | None = None,
) -> Iterator[str]:
    """Read the sentences in lines of a known form."""
    if form == "strings":
        return (text for _, text in records(lines, path, str))
    if form == "records":
        held: Any = ((x, field, where, "field") for where, x in records(lines, path))
        return starmap(_string, held)
    if form == "table":
        return _cells(lines, path, str(column))
    return iter(lines)


def _is_named_table(path: str) -> bool:
    return path.removesuffix(".gz").removesuffix(".zst").endswith((".csv", ".tsv"))


def _refuse_records(first: list[str], rest: Iterator[str], path: str) -> None:
    """Raise for JSON or a table where lines should be sentences."""
    records = [record for line in first if line.strip() for record in [_record(line)]]
    if records and all(isinstance(record, dict | list) for record in records):
        keys = [*records[0]] if isinstance(records[0], dict) else []
        hint = next((k for k in keys if isinstance(records[0][k], str)), "NAME")
        lists = f"; {LISTS}" * any(isinstance(records[0][k], list) for k in keys)
        raise ValueError(
            f"{path}, line 1: JSON, where one sentence a line is expected; name the "
            f"field that holds the sentence (field={hint}){lists}"
        )
    if _opens_record("".join(first)):
        first += rest  # one document over several lines is told by its end
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


def _opens_record(line: str) -> bool:
    return line.lstrip().startswith(OPENING)


def _record(line: str, opening: str | tuple[str, ...] = OPENING) -> Any:
    """What a line holds if it is JSON, else None; numbers alone are words."""
    try:
        return json.loads(line) if line.lstrip().startswith(opening) else None
    except (ValueError, RecursionError):
        return None


def records(
    lines: Iterable[str], path: str, kind: type = dict
) -> Iterator[tuple[str, Any]]:
    """Read the objects or strings of JSON Lines, one a line, and where each stands."""
    what, opening = ("object", OPENING) if kind is dict else ("string", '"')
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record, where = _record(line, opening), f"{path}, line {number}"
        if not isinstance(record, kind):
            # One document, over several lines or in one.
            whole = line.strip() in OPENING if record is None else record == []
            whole |= isinstance(record, list) and {*map(type, record)} == {dict}
            hint = f"; {ONE_A_LINE if whole else NO_JSON}" * (whole or record is None)
            raise ValueError(
                f"{where}: expected a JSON {what} on each line, got "
                f"{line.strip():.40}{hint}"
            )
        yield where, record


def _cells(lines: Iterable[str], path: str, column: str) -> Iterator[str]:
    rest = iter(lines)
    header = next(rest, "")
    lines = chain([header], rest)
    table = csv.DictReader(
        (f"{line}\n" for line in lines), delimiter="\t" if "\t" in header else ","
    )
    try:
        for row in table:
            where = f"{path}, line {table.line_num}"
            yield _string(row, column, where, "column")
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {table.line_num}: {error}; is a quote left open?"
        ) from None


def cell(record: dict, name: str, where: str, what: str) -> Any:
    """Look up what a record has under a name, or under a path such as meta.output."""
    if name in record:  # even with a dot in it
        return record[name]
    nested = [key for key in record if isinstance(record[key], dict)]
    if held := [key for key in nested if name.startswith(f"{key}.")]:
        key = max(held, key=len)
        return cell(record[key], name[len(key) + 1 :], f"{where}, {key}", what)
    there = ", ".join(shown(str(key)) for key in record) or "none"
    raise ValueError(f"{where}: no {what} {name!r}; there are: {there}")


def _string(record: dict, name: str, where: str, what: str) -> str:
    found = cell(record, name, where, what)
    if isinstance(found, str):
        return found
    raise ValueError(
        f"{where}: {what} {name!r}: expected a string, got {found!r:.40}"
        + f"; {LISTS}" * isinstance(found, list)
    )


# --- Columns ------------------------------------------------------------------------


def _of_tables(
    tables: Sequence[tuple[str, Any]],
    name: str,
    kind: str,
    read: Callable,
    column: str | None,
    bounded: bool,
) -> Iterator[str]:
    """Read a column of files that Arrow reads; all are opened first, to fail early."""
    with required(f"{name}: reading {kind}", "parquet"):
        import pyarrow.parquet as _
    for path, file in tables:
        with read(file, path) as (names, _):
            if column is None or column not in names:
                said = f"{path}: no column {column!r}" if column else f"{name}: {kind}"
                raise ValueError(
                    f"{said}; name the column that holds the sentence (column=NAME); "
                    f"there are: {', '.join(map(shown, names)) or 'none'}"
                )
    assert column is not None
    size = 0
    for path, file in tables:
        row = 1
        with read(file, path) as (_, batches):
            for batch in batches(column):
                array = batch.column(column)
                for number, text in enumerate(array.to_pylist(), row):
                    where = f"{path}, row {number}"
                    yield _string({column: text}, column, where, "column")
                row += len(array)
                size += array.nbytes
                if bounded and size > MAX_BYTES:
                    raise too_large(name)


@contextmanager
def _parquet(file: Any, path: str) -> Iterator[tuple[Sequence[str], Callable]]:
    """The columns of a Parquet file, and what gives the rows of one in batches."""
    from pyarrow.parquet import ParquetFile

    with _unbroken(path, "Parquet"), ParquetFile(file) as table:
        names = table.schema_arrow.names
        yield names, lambda column: table.iter_batches(columns=[column])


@contextmanager
def _arrow(file: Any, path: str) -> Iterator[tuple[Sequence[str], Callable]]:
    """The same of a stream of Arrow, which `save_to_disk` writes."""
    import pyarrow as pa

    with (
        _unbroken(path, "Arrow"),
        pa.memory_map(str(file)) as mapped,
        pa.ipc.open_stream(mapped) as stream,
    ):
        yield stream.schema.names, lambda column: stream


@contextmanager
def _unbroken(path: str, kind: str) -> Iterator[None]:
    """Say in one line that a file of Parquet or Arrow is broken."""
    from pyarrow import ArrowException

    try:
        yield
    # Broken files get Python's own errors too.
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: the {kind} file is broken: {error}") from None


def _of_folder(root: Path, name: str) -> tuple[str, Callable, list[Path]]:
    """What a folder holds, what reads its files, and these in their order."""
    if (root / "state.json").is_file():
        return "a saved dataset", _arrow, _files_of_dataset(root, name)
    return "a folder of Parquet files", _parquet, _parquet_files(root, name)


def _parquet_files(root: Path, name: str) -> list[Path]:
    splits = root / "dataset_dict.json"
    if splits.is_file():
        there = sorted(path.parent.name for path in root.glob("*/state.json"))
        raise ValueError(
            f"{name}: a saved dataset of several splits; name the folder of one: "
            f"{', '.join(shown(root / split) for split in there) or 'none is there'}"
        )
    files = sorted(path for path in root.glob("*.parquet") if path.is_file())
    if not files:
        raise ValueError(
            f"{name}: a folder, expected a file, or a folder with Parquet files or "
            "with what save_to_disk of a dataset writes"
        )
    found = {match[1] for path in files if (match := SHARD.fullmatch(path.name))}
    if len(found) > 1:
        raise ValueError(
            f"{name}: Parquet files of several splits, {', '.join(sorted(found))}; "
            "give each a folder of its own"
        )
    return files


def _files_of_dataset(root: Path, name: str) -> list[Path]:
    try:
        state = json.loads((root / "state.json").read_text("utf-8"))
        files = [root / entry["filename"] for entry in state["_data_files"]]
        chosen = state.get("_indices_data_files")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{name}: state.json is not what save_to_disk of a dataset writes; save it "
            "again"
        ) from None
    if chosen:
        raise ValueError(
            f"{name}: a selection of rows, as old versions of datasets saved it; load "
            "it and save it again"
        )
    for path in files:
        if not path.is_file():
            raise ValueError(f"{name}: {path.name} is missing; copy the whole folder")
    return files
