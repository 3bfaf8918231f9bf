"""Stored corpora: the same as those in memory, from every kind of file."""

import errno
import gzip
import json
import os
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from models import MODEL, REAL

from qdtheory.text import evaluate, files, read_corpus, stored
from qdtheory.text.corpus import slices
from qdtheory.text.stored import stored_corpus

zstd = files._zstd("tests")  # of Python 3.14, or its backport
LINES = [" ".join(map(str, text)) for text in [*MODEL[:30], [], *MODEL[30:]]]
TEXT = "\r\n".join(LINES).encode()


def alike(one, other):
    return (
        one.tokens.tolist() == other.tokens.tolist()
        and one.offsets.tolist() == other.offsets.tolist()
        and one.vocabulary == other.vocabulary
        and one.tokenizer == other.tokenizer
    )


PACKED = gzip.compress(TEXT, mtime=0)  # the same name of a test in every process


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines(tmp_path, monkeypatch, pack, mark):
    monkeypatch.setattr(stored, "BATCH", 7)
    path = tmp_path / "texts"
    path.write_bytes(pack(mark + TEXT))
    found = stored_corpus(path)
    assert alike(found, read_corpus(path))
    assert len(found) == 61
    with path.open("rb") as file:
        assert alike(stored_corpus(file), found)


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


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_is_read_in_pieces(pack):
    reading, writing = os.pipe()
    packed = pack(b"a b\nc\n" * 1000)

    def write():
        for start in range(0, len(packed), 3):
            os.write(writing, packed[start : start + 3])
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb") as file:
        assert len(stored_corpus(file)) == 2000
    writer.join()


def test_more_than_the_limit_of_memory_is_read(tmp_path, monkeypatch):
    path = tmp_path / "texts.gz"
    path.write_bytes(gzip.compress(TEXT * 20))
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    assert stored_corpus(path).num_tokens > 5000


def test_nothing_is_left_and_the_memory_is_given_back(tmp_path):
    path = tmp_path / "texts"
    path.write_bytes(b"a b c d e f g h\n" * 10**6)
    folder = tmp_path / "tokens"
    folder.mkdir()
    found = stored_corpus(path, folder)
    assert [*folder.iterdir()] == []

    def resident():
        pages = map(str.split, Path("/proc/self/status").read_text().splitlines())
        return next(int(x[1]) for x in pages if x[0] == "RssFile:")

    before = resident()
    total = sum(int(chunk.tokens.sum()) for _, chunk in slices(found))
    assert total == 28 * 10**6
    assert resident() - before < 8_000  # kB, of the file's 32,000
    found.tokens.sum()
    assert resident() - before > 24_000


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "file, line 1: no line has a token"),
        (b"\n \n", "file, line 1: no line has a token"),
        (b"a\n\xff", "file, line 2: byte 0xff at position 1 is not UTF-8"),
        (b"a\n\0", "file, line 2: a NUL byte"),
        (b"BZh91AY", "file: a bzip2 file, expected text, gzip or zstd"),
        ("a".encode("utf-16"), "file: UTF-16, expected UTF-8"),
        (PACKED[:-20], "file: the gzip file is broken"),
        (
            PACKED[:40] + b"x" * 40,
            "file: the gzip file is broken",
        ),
        (zstd.compress(TEXT)[:-20], "file: the zstd file is broken"),
        (b'{"text": "a"}\n', "file, line 1: JSON, where one sentence a line"),
        (b"PAR1xxxxxxxxx", "name the column|Parquet file is broken"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        stored_corpus(path)


def test_a_line_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE", 100)
    path = tmp_path / "file"
    path.write_bytes(b"a\n" + b"b " * 1000)
    with pytest.raises(ValueError, match="line 2: a line of more than 16 MiB"):
        stored_corpus(path)


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
