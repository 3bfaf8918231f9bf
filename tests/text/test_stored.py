"""Stored corpora: the same as those in memory, from every kind of file."""

import errno
import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from models import MODEL, REAL

from qdtheory.text import evaluate, read_corpus, stored
from qdtheory.text.corpus import slices
from qdtheory.text.stored import stored_corpus

LINES = [" ".join(map(str, text)) for text in [*MODEL[:30], [], *MODEL[30:]]]
TEXT = "\r\n".join(LINES).encode()


def alike(one, other):
    return (
        one.tokens.tolist() == other.tokens.tolist()
        and one.offsets.tolist() == other.offsets.tolist()
        and one.vocabulary == other.vocabulary
        and one.tokenizer == other.tokenizer
    )


def test_batches_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "BATCH", 7)
    path = tmp_path / "texts"
    path.write_bytes(TEXT)
    found = stored_corpus(path)
    assert alike(found, read_corpus(path))
    assert len(found) == 61


def test_records_and_tables(tmp_path):
    records = tmp_path / "texts.jsonl"
    records.write_text("\n".join(json.dumps({"text": line}) for line in LINES))
    table = tmp_path / "texts.csv"
    table.write_text("\n".join(["id,text", *(f"1,{line}" for line in LINES)]))
    columns = tmp_path / "texts.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": LINES}), columns)
    for path, options in [
        (records, {"field": "text"}),
        (table, {"column": "text"}),
        (columns, {"column": "text", "lowercase": True, "tokenizer": "13a"}),
    ]:
        assert alike(stored_corpus(path, **options), read_corpus(path, **options))


def test_nothing_is_left_and_the_memory_is_given_back(tmp_path):
    path = tmp_path / "texts"
    path.write_bytes(b"a b c d e f g h\n" * 500_000)
    folder = tmp_path / "tokens"
    folder.mkdir()
    found = stored_corpus(path, folder)
    assert [*folder.iterdir()] == []

    def resident():
        pages = map(str.split, Path("/proc/self/status").read_text().splitlines())
        return next(int(x[1]) for x in pages if x[0] == "RssFile:")

    before = resident()
    total = sum(int(chunk.tokens.sum()) for _, chunk in slices(found))
    assert total == 28 * 500_000
    assert resident() - before < 6_000  # kB, of the file's 16,000
    found.tokens.sum()
    assert resident() - before >= 12_000


def test_evaluate_takes_it(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_bytes(TEXT)
    theirs.write_text("\n".join(" ".join(map(str, text)) for text in REAL))
    for empty in ("keep", "skip"):
        one, other = (
            evaluate({"x": read(ours)}, read(theirs), 2, empty=empty)
            for read in (stored_corpus, read_corpus)
        )
        assert one == other


# -- bad input -----------------------------------------------------------------------


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    full = partial(open, "/dev/full", "r+b", buffering=0)
    monkeypatch.setattr(stored, "_unnamed", lambda folder: full())
    with pytest.raises(OSError, match="No space left on device; TMPDIR") as found:
        stored_corpus(path, tmp_path)
    assert (found.value.errno, found.value.filename) == (errno.ENOSPC, str(tmp_path))


def test_no_such_file_or_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        stored_corpus(tmp_path / "missing")
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        stored_corpus(path, tmp_path / "nowhere")


def test_arrays_of_a_stored_corpus_cannot_be_written(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    with pytest.raises(ValueError, match="read-only"):
        stored_corpus(path).tokens[:] = np.int32(0)
