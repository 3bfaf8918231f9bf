"""The sentences of a sample in files, of any form.

A file has one sentence a line, or rows with fields: JSON Lines, one JSON document (an
array, or an object with one list of records), CSV, TSV, Parquet. Rows come one after
another, so that none need be in memory, and each knows where it stands.
"""

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from itertools import chain, islice
from os import PathLike
from typing import Any, Literal, TypeAlias, TypeGuard

from qdtheory.support.packages import required
from qdtheory.support.records import tell_caller
from qdtheory.text import files

Form: TypeAlias = Literal["sentences", "strings", "records", "document", "table"]
Row: TypeAlias = tuple[str, Any]  # where it stands, and what it holds by field
SHOWN = 20  # lines that tell a format
# How an object or an array of JSON begins; prose may begin with [ applause ].
JSON = re.compile(r"""\s*(\{\s*(["}]|$)|\[\s*([\[{"\]]|$))""").match
# Where a field is not named, the only one of these that holds a string.
TEXTS = (
    *("text", "output", "completion", "generation", "response", "prediction"),
    *("generated_text", "sentence", "content", "caption"),
)
# Of an object that stands for a text, as a choice of OpenAI, the field that has it.
HOLDERS = "text", "content", "message", "output", "generated_text"
# What a row of a log answers.
ASKED = "doc_id", "prompt", "question", "doc"
LISTS = "add --prompts for lists of outputs a prompt (evaluate_prompts in Python)"


def is_file(source: object) -> TypeGuard[files.File | files.Files]:
    """Tell a path, a stream or some of them from texts in memory."""
    return isinstance(source, str | PathLike | files.Files) or hasattr(source, "read")


@contextmanager
def opened(
    source: files.File | files.Files, field: str | None = None, bounded: bool = True
) -> Iterator[Iterator[str]]:
    """Open a sample, to read its sentences one by one; `bounded`, at most 1 GiB."""
    if isinstance(source, files.Files):
        with ExitStack() as stack:
            each = (opened(file, field, bounded) for file in source)
            yield chain.from_iterable([*map(stack.enter_context, each)])
    else:
        with opened_rows(source, field, bounded) as (form, found):
            yield sentences(form, found, files.name_of(source), field)


@contextmanager
def opened_rows(
    file: files.File, field: str | None = None, bounded: bool = True
) -> Iterator[tuple[Form, Iterator[Any]]]:
    """Open a file: what it is, and its lines or its rows, one by one.

    The field that will be asked for helps to tell what lines are; of columns the others
    are not read.
    """
    name = files.name_of(file)
    if isinstance(file, str | PathLike) and os.path.isdir(file):
        raise ValueError(f"{name}: a folder, expected a file; give its files singly")
    with files.streamed(file, bounded) as (head, held):
        if head.startswith(files.PARQUET):
            if not held.seekable():
                held = BytesIO(held.read(files.MAX_BYTES + 1 if bounded else -1))
                if bounded and len(held.getbuffer()) > files.MAX_BYTES:
                    raise files.too_large(name)
            yield "table", _of_parquet(held, name, field, bounded)
            return
        rest = files.lines(held, name, bounded)
        first = [*islice(rest, SHOWN)]
        form = _form_of(first, name, field)
        if form != "document":
            yield form, rows_in(form, chain(first, rest), name)
            return
        # One document over several lines is told by its end.
        first += rest
        whole = "\n".join(first)
        values = _values(whole, name, bool(field) or _named(name, "json", "jsonl"))
        if values is None:
            yield "sentences", iter(first)
        else:
            yield form, _of_document(values, name, field)


def form_by_line(path: str | PathLike[str], field: str | None = None) -> Form | None:
    """What each line of a file is; None if it has to be read from its beginning."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        if file.read(files.HEAD).startswith((files.GZIP, files.ZSTD, files.PARQUET)):
            return None
    with opened_rows(path, field, bounded=False) as (form, _):
        # Quotes of a table go over lines, and the first record names the field.
        whole = form in ("document", "table") or (form == "records" and not field)
        return None if whole else form


def rows_in(form: Form, held: Iterator[str], path: str) -> Iterator[Any]:
    """Read the sentences, or the rows, in lines of a known form."""
    if form == "table":
        return _of_csv(held, path)
    if form == "sentences":
        return held
    return _of_lines(held, path, str if form == "strings" else dict)


def sentences(
    form: Form, found: Iterator[Any], path: str, field: str | None = None
) -> Iterator[str]:
    """Read the sentences of rows, or hand on lines that are sentences."""
    if form == "sentences":
        return found
    first = [*islice(found, 1)]
    if first and field is None:
        field = _obvious(path, first[0][1])
    return _strings(chain(first, found), str(field), *first)


def _strings(rows: Iterator[Row], field: str, *first: Row) -> Iterator[str]:
    """Read the sentence of each row; refuse a log that has each once a filter."""
    logs = [x for x in first if isinstance(x[1], dict) and "filter" in x[1]]
    for at, row in rows:
        for there, other in logs:
            if same := [x for x in ASKED if x in row and row[x] == other.get(x)]:
                again = f"{at}: the {same[0]} of {there} again"
                require_filter(again, row.get("filter"), other["filter"])
        yield _string(row, field, at)


def require_filter(again: str, by: Any, other: Any) -> None:
    """Raise if a harness wrote a row again, by another filter of its outputs."""
    if by != other:
        keep = f"jq -c 'select(.filter == {json.dumps(other)})' FILE > NEW"
        said = f"{again}, by another filter, {by}; keep the rows of one"
        raise ValueError(f"{said}: {keep}")


# --- Lines --------------------------------------------------------------------------


def _form_of(first: list[str], path: str, field: str | None) -> Form:
    """What the lines of a file are, by the first few."""
    if _named(path, ".csv", ".tsv"):
        return "table"
    filled = [line for line in first if line.strip()]
    if filled and all(isinstance(_record(x, '"'), str) for x in filled):
        if field == ".":
            return "strings"
        raise ValueError(
            f"{path}, line 1: JSON strings, where one sentence a line is expected, "
            'whose quotes would count as text: decode them (field=".")'
        )
    objects = [isinstance(_record(line), dict) for line in filled]
    begins = bool(filled and JSON(filled[0]))
    # An array may have an object a line too, all but the last with a comma.
    most = begins and (objects[0] or 2 * sum(objects) >= len(objects))
    if len(objects) > 1 and (most or (field and any(objects) and not begins)):
        return "records"
    if begins:
        return "document"
    return "table" if _is_table(first, path, field) else "sentences"


def _is_table(first: list[str], path: str, field: str | None) -> bool:
    """Whether lines are CSV or TSV: by header, or by as many cells in each."""
    filled = [line for line in first if line]
    mark = _delimiter("".join(filled[:1]), path)
    names = [name.strip('"') for line in filled[:1] for name in line.split(mark)]
    if field in names:
        return True
    # Prose has commas too, but no header without blanks beside them.
    alike = {line.count(mark) for line in filled} == {len(names) - 1} != {0}
    good = mark == "\t" or (len(filled) > 2 and all(x == x.strip() for x in names))
    return alike and len(filled) > 1 and good


def _delimiter(header: str, path: str) -> str:
    there = [mark for mark in "\t,;" if mark in header]
    return there[0] if there else "\t" if _named(path, ".tsv") else ","


def _named(path: str, *ends: str) -> bool:
    return path.removesuffix(".gz").removesuffix(".zst").endswith(ends)


def _record(line: str, opening: str | tuple[str, ...] = ("{", "[")) -> Any:
    """What a line holds if it is JSON, else None; numbers alone are words."""
    try:
        return json.loads(line) if line.lstrip().startswith(opening) else None
    except (ValueError, RecursionError):
        return None


def _of_lines(held: Iterable[str], path: str, kind: type) -> Iterator[Row]:
    """Read the objects or strings of JSON Lines."""
    what, opening = ("object", "{") if kind is dict else ("string", '"')
    for number, line in enumerate(held, start=1):
        if not line.strip():
            continue
        record, where = _record(line, opening), f"{path}, line {number}"
        if not isinstance(record, kind):
            raise ValueError(
                f"{where}: expected a JSON {what} on each line, got "
                f"{line.strip():.40}; mend or remove this line"
            )
        yield where, record


def _values(text: str, path: str, asked: bool) -> list[Any] | None:
    """The JSON values of a text one after another; None if it is none and may be so."""
    found, at, decode = [], 0, json.JSONDecoder().raw_decode
    try:
        while rest := re.compile(r"\S").search(text, at):
            value, at = decode(text, rest.start())
            found.append(value)
    except (ValueError, RecursionError) as error:
        if not asked:
            return None
        line, why = getattr(error, "lineno", 1), getattr(error, "msg", error)
        raise ValueError(
            f"{path}, line {line}: expected a JSON object on each line, or one JSON "
            f"document, which breaks or ends here: {why}"
        ) from None
    return found


def _of_document(values: list[Any], path: str, field: str | None) -> Iterator[Row]:
    """Read the records of a document: an array, or the one list of an object."""
    sought = [field] if field else TEXTS
    match values:
        case [list(listed)]:
            values = listed
        case [dict(whole)] if not any(holds(whole, x) for x in sought):
            lists = [x for x in whole.values() if isinstance(x, list) and x]
            lists = [x for x in lists if all(isinstance(y, dict) for y in x)]
            values = lists[0] if len(lists) == 1 else values
    for number, value in enumerate(values, 1):
        where = f"{path}, record {number}"
        if not isinstance(value, dict | str) or type(value) is not type(values[0]):
            raise ValueError(f"{where}: expected a JSON object, got {value!r:.40}")
        yield where, value


def _of_csv(held: Iterator[str], path: str) -> Iterator[Row]:
    """Read the rows of CSV or TSV; what the header does not promise is refused."""
    header = next(held, "")
    ended = (f"{line}\n" for line in chain([header], held))
    mark = _delimiter(header, path)
    csv.field_size_limit(max(files.MAX_LINE, csv.field_size_limit()))
    table = csv.reader(ended, delimiter=mark, strict=True)
    names, start = [], 1
    try:
        for cells in table:
            where, start = f"{path}, line {start}", table.line_num + 1
            if not names:
                names = _different(cells, where)
                continue
            if not cells and len(names) > 1:  # a blank line
                continue
            cells = cells or [""]
            if len(cells) != len(names):
                raise ValueError(
                    f"{where}: {len(cells)} cells, expected {len(names)} as in the "
                    f"header ({mark.join(names):.60}); quote a cell that holds {mark!r}"
                )
            yield where, dict(zip(names, cells))
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {start}: {error}; does a quote that opens in this row not "
            'close? Write " inside a cell as ""'
        ) from None


def _different(names: list[str], where: str) -> list[str]:
    """The names of columns, or an error where one stands twice."""
    if twice := {name for name in names if names.count(name) > 1}:
        said = f"columns of one name, {', '.join(map(repr, twice))}"
        raise ValueError(f"{where}: {said}; rename all but one")
    return names


def _of_parquet(file: Any, path: str, field: Any, bounded: bool) -> Iterator[Row]:
    """Read the rows of a Parquet file, of the columns that are asked for."""
    with required(f"{path}: reading columns", "parquet"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    row, size = 1, 0
    try:
        with ParquetFile(file) as table:
            names = _different(table.schema_arrow.names, path)
            leads = [x for x in names if not field or f"{field}.".startswith(f"{x}.")]
            if not leads:
                there = f"there are: {listed(names)}"
                raise ValueError(f"{path}: no field {field!r} (field=NAME); {there}")
            for batch in table.iter_batches(columns=leads):
                for number, record in enumerate(batch.to_pylist(), row):
                    yield f"{path}, row {number}", record
                row += len(batch)
                size += batch.nbytes
                if bounded and size > files.MAX_BYTES:
                    raise files.too_large(path)
    # Broken files get Python's own errors too.
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: the Parquet file is broken: {error}") from None


# --- Fields -------------------------------------------------------------------------


def cell(record: Any, name: str, where: str) -> Any:
    """Look up what a record has in a field, or at a path such as choices.0.text."""
    if name == ".":
        return record
    if isinstance(record, list):
        record = {str(place): value for place, value in enumerate(record)}
    if name in record:  # even with a dot in it
        return record[name]
    nested = [key for key in record if isinstance(record[key], dict | list)]
    if held := [key for key in nested if name.startswith(f"{key}.")]:
        key = max(held, key=len)
        return cell(record[key], name[len(key) + 1 :], f"{where}, {key}")
    raise ValueError(f"{where}: no field {name!r}; there are: {listed(record)}")


def listed(names: Iterable[Any]) -> str:
    """Name some fields in a message."""
    return ", ".join(files.shown(str(name)) for name in names) or "none"


def texts_of(value: Any) -> list[Any]:
    """The texts in a field: of lists and objects within, the strings; else itself."""
    if isinstance(value, list):
        return [text for each in value for text in texts_of(each)]
    held = [key for key in HOLDERS if key in value] if isinstance(value, dict) else []
    return texts_of(value[held[0]]) if held else [value]


def tell(said: str) -> None:
    """Say which fields are read, where none were named."""
    tell_caller([said], files.FieldWarning)


def holds(record: dict, name: str) -> bool:
    """Whether a record has a field, or something at a path."""
    try:
        cell(record, name, "")
    except ValueError:
        return False
    return True


def _obvious(path: str, record: Any) -> str:
    """The only field that is called as texts are, said; or an error with all names."""
    if isinstance(record, str):
        return "."
    found = [name for name in TEXTS if isinstance(record.get(name), str)]
    if len(found) != 1:
        lists = f"; {LISTS}" * any(isinstance(x, list) for x in record.values())
        raise ValueError(
            f"{path}: name the field that holds the sentence (field=NAME); there are: "
            f"{listed(record)}{lists}"
        )
    more = "; if these are outputs of prompts, add --prompts" * ("prompt" in record)
    tell(f"{path}: sentences are read from {found[0]!r} (field={found[0]}){more}")
    return found[0]


def _string(record: Any, field: str, where: str) -> str:
    found = record if isinstance(record, str) else cell(record, field, where)
    if isinstance(found, str):
        return found
    match texts_of(found):
        case [str(text)]:
            return text
    hint = f"; {LISTS}, or take one of each, {field}.0" * isinstance(found, list)
    said = f"expected a string, got {found!r:.40}{hint}"
    raise ValueError(f"{where}: field {field!r}: {said}")
