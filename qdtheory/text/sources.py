"""Where a sample can lie: a file, a folder of Parquet files, a dataset, a table.

Whatever it is, its sentences come one after another, so that none need be in memory.
Datasets of Hugging Face are told by what they hold: a folder of `save_to_disk` by its
state.json, one in memory by its rows, so that their package is not imported.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from qdtheory.text.containers import ArrowColumn, Dataset, rows
from qdtheory.text.files import PARQUET, File, contents, lines, name_of, shown, streamed
from qdtheory.text.formats import (
    arrow_sentences,
    numbered,
    parquet_sentences,
    refuse_two_names,
    require_column,
    sentences,
    unbroken,
)
from qdtheory.world.packages import required

Source: TypeAlias = File | Dataset | ArrowColumn
# The names that datasets are published under: a split, and which of its files.
SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}.*\.parquet")


def is_file(source: object) -> TypeGuard[File]:
    """Tell a path or a stream from texts in memory."""
    return isinstance(source, str | PathLike) or hasattr(source, "read")


@contextmanager
def opened(
    source: Source,
    field: str | None = None,
    column: str | None = None,
    bounded: bool = True,
) -> Iterator[Iterable[Any]]:
    """Open a sample, to read its sentences one after another."""
    if not is_file(source):
        yield rows(source, column)
        return
    if isinstance(source, str | PathLike) and os.path.isdir(source):
        yield folder_sentences(source, field, column, bounded)
        return
    name = name_of(source)
    with nullcontext(contents(source)) if bounded else streamed(source) as held:
        if _head(held) != PARQUET:
            yield sentences(lines(held, name), name, field, column)
        else:
            held = held if held.seekable() else BytesIO(held.read())
            yield parquet_sentences(held, name, field, column, bounded)


def folder_sentences(
    folder: str | PathLike[str],
    field: str | None = None,
    column: str | None = None,
    bounded: bool = True,
) -> Iterator[str]:
    """Read the sentences of a folder: Parquet files by name, or a saved dataset.

    All files are opened before the first is read, so that one without the column costs
    no time.
    """
    refuse_two_names(field, column)
    root, name = Path(folder), shown(folder)
    saved = (root / "state.json").is_file()
    files = _files_of_dataset(root, name) if saved else _parquet_files(root, name)
    kind = "a saved dataset" if saved else "a folder of Parquet files"
    with required(f"{name}: reading {kind}", "parquet"):
        import pyarrow.parquet as _
    for path in files:
        with _table(path, saved) as (names, _):
            where = name if column is None else shown(path)
            require_column(where, kind, names, column)
    assert column is not None

    def chunks() -> Iterator[tuple[str, int, Any]]:
        for path in files:
            with _table(path, saved) as (_, batches):
                yield from numbered(shown(path), batches(column), column)

    yield from arrow_sentences(chunks(), name, column, bounded)


@contextmanager
def _table(
    path: Path, saved: bool
) -> Iterator[tuple[Sequence[str], Callable[[str], Iterable[Any]]]]:
    """Open one file: its columns, and the batches of rows that hold one of them.

    `save_to_disk` writes Arrow's format of streams.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with unbroken(shown(path)):
        if saved:
            with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
                yield stream.schema.names, lambda column: stream
        else:
            with ParquetFile(path) as table:
                yield (
                    table.schema_arrow.names,
                    lambda column: table.iter_batches(columns=[column]),
                )


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


def _head(held: Any) -> bytes:
    if isinstance(held, BytesIO):
        return bytes(held.getbuffer()[:4])
    return held.peek(4)[:4]
