"""Files: packed, endless, too large, in other encodings, with names of all kinds."""

import gzip
import io
import os
import sys
import threading
from functools import partial

import pytest

from qdtheory.text import files, read_corpus
from qdtheory.text.files import MAX_BYTES, MAX_LINE, contents, lines, name_of, shown

zstd = files._zstd("tests")  # of Python 3.14, or its backport
compress = partial(gzip.compress, mtime=0)


@pytest.mark.parametrize("pack", [bytes, compress, zstd.compress])
@pytest.mark.parametrize("suffix", ["", ".gz", ".txt"])
def test_packed_files_are_told_by_content(tmp_path, pack, suffix):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(pack(b"\xef\xbb\xbfa b\r\nc\n"))
    assert list(lines(contents(path), "file")) == ["a b", "c"]
    with path.open("rb") as file:
        assert list(read_corpus(file)) == [("a", "b"), ("c",)]


def test_a_stream_is_read_whole_in_pieces():
    reading, writing = os.pipe()

    def write():
        for piece in (b"\x1f", b"\x8b", compress(b"a b\n")[2:]):
            os.write(writing, piece)
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb") as file:
        assert list(read_corpus(file)) == [("a", "b")]
    writer.join()


@pytest.mark.usefixtures("as_a_user")
def test_a_stream_of_text_is_refused():
    with pytest.raises(TypeError, match="expected a file in binary mode, got one of t"):
        read_corpus(io.StringIO("a b"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a".encode("utf-16"), "UTF-16, expected UTF-8; convert it: iconv -f UTF-16"),
        (compress("a".encode("utf-16")), "UTF-16, expected UTF-8"),
        (b"\xfe\xff\0a", "UTF-16, expected UTF-8"),
        ("a".encode("utf-32"), "UTF-32, expected UTF-8; convert it: iconv -f UTF-32"),
        (b"\0\0\xfe\xff\0\0\0a", "UTF-32, expected UTF-8"),
        (b"BZh91AY", "a bzip2 file, expected text, gzip or zstd; unpack it first"),
        (b"\xfd7zXZ\0", "a xz file"),
        (b"PK\x03\x04", "a zip file"),
        (compress(b"a b")[:-3], "the gzip file is broken"),
        (zstd.compress(b"a b" * 99)[:-3], "the zstd file is broken"),
        (zstd.compress(b"a b" * 99)[:9] + b"junk", "the zstd file is broken"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, content, message):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"a.txt: {message}"):
        read_corpus(path)


class Zeros(io.RawIOBase):
    """A stream without end, which counts what was read of it."""

    count = 0

    def __init__(self, line):
        self.line = line

    def readable(self):
        return True

    def read(self, size=-1):
        assert size > 0
        self.count += size
        return (self.line * (size // len(self.line) + 1))[:size]


def test_a_stream_without_end_is_refused_by_size(monkeypatch):
    stream = Zeros(b"\0")
    with pytest.raises(ValueError, match="stream: a line of more than 16 MiB"):
        contents(stream)
    assert stream.count == MAX_LINE + 1
    monkeypatch.setattr(files, "MAX_BYTES", 3 * MAX_LINE)
    stream = Zeros(b"a\n")
    with pytest.raises(ValueError, match="stream: more than 1 GiB of text, the most"):
        contents(stream)
    assert stream.count <= 4 * MAX_LINE + 4


@pytest.mark.parametrize("pack", [compress, zstd.compress])
def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, monkeypatch, pack):
    path = tmp_path / "bomb"
    path.write_bytes(pack(bytes(MAX_LINE + 1)))
    with pytest.raises(ValueError, match="bomb: a line of more than 16 MiB"):
        read_corpus(path)
    monkeypatch.setattr(files, "MAX_BYTES", MAX_LINE)
    path.write_bytes(pack(b"\n" * (MAX_LINE + 1)))
    with pytest.raises(ValueError, match="bomb: more than 1 GiB"):
        read_corpus(path)


def test_a_large_file_is_refused_unread(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ValueError, match="large: more than 1 GiB"):
        read_corpus(path)


def test_a_long_line_names_its_number(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\n" + b"b" * MAX_LINE + b"\nc")
    with pytest.raises(ValueError, match=r"a\.txt, line 2: a line of more than 16"):
        read_corpus(path)
    path.write_bytes(b"a\n" + b"b" * (MAX_LINE - 1) + b"\nc")
    assert len(read_corpus(path)) == 3


def test_without_the_extra_it_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(zstd.compress(b"a b"))
    for module in ("compression", "compression.zstd", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=r'"qdtheory\[zstd\]"'):
        read_corpus(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_that_nothing_writes_to_is_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe, line 1: the file is empty"):
        read_corpus(tmp_path / "pipe")


def test_names_that_cannot_be_printed_are_quoted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert [shown(name) for name in ("a b", "", "a\nb", "\x1b[0m", "\udcff")] == [
        *("a b", "''", "'a\\nb'", "'\\x1b[0m'", "'\\udcff'"),
    ]
    assert name_of(sys.stdin.buffer) == "standard input"
    path = tmp_path / "a\nb"
    path.touch()
    with pytest.raises(ValueError, match=r"a\\nb', line 1: the file is empty"):
        read_corpus(path)
