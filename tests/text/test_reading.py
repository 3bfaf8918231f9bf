"""Corpora that are read: their lines, and the same in memory and on disk."""

import errno
import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from models import MODEL, REAL

from qdtheory.text import evaluate, read_corpus, reading, stored_corpus
from qdtheory.text.corpus import slices

LINES = [" ".join(map(str, text)) for text in [*MODEL[:30], [], *MODEL[30:]]]
TEXT = "\r\n".join(LINES).encode()
# Without a time stamp: the bytes name the test, and every process must agree on them.
compress = partial(gzip.compress, mtime=0)


def write(tmp_path, content: bytes):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "sentences", "num_empty"),
    [
        (b"a b\nc\n", ["a b", "c"], 0),
        (b"a b\nc", ["a b", "c"], 0),
        (b"a b\r\nc\r\n", ["a b", "c"], 0),
        (b"\n a b \n\t\n\nc\n", ["", "a b", "", "", "c"], 3),
        (b"a b\n\n", ["a b", ""], 1),
        (b"a b\r\n\r\n", ["a b", ""], 1),
        (b"a b\n ", ["a b", ""], 1),
        ("a b\nc\u2028d\x0ce\n".encode(), ["a b", "c d e"], 0),
        ("h\u00e9 \U0001f600".encode(), ["h\u00e9 \U0001f600"], 0),
        (
            gzip.compress(b"a\nb", mtime=0) + gzip.compress(b" c\n", mtime=0),
            ["a", "b c"],
            0,
        ),
    ],
)
def test_read(tmp_path, content, sentences, num_empty):
    path = write(tmp_path, content)
    corpus = read_corpus(path)
    assert [" ".join(text) for text in corpus] == sentences
    assert (corpus.num_empty, corpus.empty_lines) == (num_empty, 0)
    rest = read_corpus(path, empty="skip")
    assert [" ".join(text) for text in rest] == [*filter(None, sentences)]
    assert (rest.num_empty, rest.empty_lines) == (0, num_empty)


def test_read_with_a_tokenizer(tmp_path):
    path = write(tmp_path, b"ab\r\n\nc\n")
    assert list(read_corpus(path, tokenizer=list)) == [("a", "b"), (), ("c",)]
    assert read_corpus(str(path), tokenizer=list, empty="skip").empty_lines == 1


def test_bad_tokenizers(tmp_path, as_a_user):
    path = write(tmp_path, b"a b\nc\n")
    with pytest.raises(ValueError, match="'whitespace', '13a', 'characters' or a f"):
        read_corpus(path, tokenizer="words")
    with pytest.raises(TypeError, match="line 1: expected a list of tokens, got str"):
        read_corpus(path, tokenizer=str.lower)
    with pytest.raises(TypeError, match="line 1: a token is a bytes"):
        read_corpus(path, tokenizer=lambda line: line.encode().split())


# -- on disk ------------------------------------------------------------------------


def alike(one, other):
    return (
        one.tokens.tolist() == other.tokens.tolist()
        and one.offsets.tolist() == other.offsets.tolist()
        and one.vocabulary == other.vocabulary
        and one.tokenizer == other.tokenizer
    )


def test_batches_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BATCH", 7)
    path = write(tmp_path, TEXT)
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


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    path = write(tmp_path, TEXT)
    full = partial(open, "/dev/full", "r+b", buffering=0)
    monkeypatch.setattr(reading, "_unnamed", lambda folder: full())
    with pytest.raises(OSError, match="No space left on device; TMPDIR") as found:
        stored_corpus(path, tmp_path)
    assert (found.value.errno, found.value.filename) == (errno.ENOSPC, str(tmp_path))


def test_no_such_file_or_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        stored_corpus(tmp_path / "missing")
    path = write(tmp_path, TEXT)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        stored_corpus(path, tmp_path / "nowhere")


def test_arrays_of_a_stored_corpus_cannot_be_written(tmp_path):
    path = write(tmp_path, TEXT)
    with pytest.raises(ValueError, match="read-only"):
        stored_corpus(path).tokens[:] = np.int32(0)
