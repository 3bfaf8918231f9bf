"""Files: packed, endless, too large, in other encodings, with names of all kinds."""

import gzip
import io
import os
import sys
import threading
from functools import partial

import pytest
from refusals import refused

from qdtheory.text import files, read_corpus
from qdtheory.text.files import MAX_LINE, lines, name_of, shown, streamed
from qdtheory.text.sources import opened

zstd = files._zstd("tests")  # of Python 3.14, or its backport
compress = partial(gzip.compress, mtime=0)


@pytest.mark.parametrize("pack", [bytes, compress, zstd.compress])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_packed_files_are_told_by_content(tmp_path, pack, mark):
    path = tmp_path / "file.txt"
    path.write_bytes(pack(mark + b"a b\r\nc\n"))
    assert list(read_corpus(path)) == [("a", "b"), ("c",)]
    with path.open("rb") as file:
        assert list(read_corpus(file)) == [("a", "b"), ("c",)]
    with path.open("rb", buffering=0) as file, streamed(file) as (_, stream):
        assert list(lines(stream, "file")) == ["a b", "c"]


@pytest.mark.parametrize("pack", [bytes, compress])
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
        assert len(read_corpus(file)) == 2000
    writer.join()


@pytest.mark.usefixtures("as_a_user")
def test_a_stream_of_text_is_refused():
    with pytest.raises(TypeError, match="expected a file in binary mode, got one of t"):
        read_corpus(io.StringIO("a b"))


ZSTD = zstd.compress(b"a b" * 99)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.txt, line 1: (the file is empty|no line has a token)"),
        (b"a\n\xff", "a.txt, line 2: byte 0xff at position 1 is not UTF-8"),
        (b"a\n\0", "a.txt, line 2: a NUL byte"),
        (compress("a".encode("utf-16")), "a.txt: UTF-16, expected UTF-8"),
        (b"\xfe\xff\0a", "a.txt: UTF-16, expected UTF-8"),
        ("a".encode("utf-32"), "a.txt: UTF-32, expected UTF-8; convert it: iconv -f U"),
        (b"\0\0\xfe\xff\0\0\0a", "a.txt: UTF-32, expected UTF-8"),
        (b"BZh91AY", "a.txt: a bzip2 file, expected text, gzip or zstd; unpack it fir"),
        (b"\xfd7zXZ\0", "a.txt: a xz file"),
        (compress(b"a b" * 99)[:15] + b"x" * 40, "a.txt: the gzip file is broken"),
        (ZSTD[:9] + b"junk", "a.txt: the zstd file is broken"),
        (b"PAR1xxxxxxxxx", "a.txt: the Parquet file is broken"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, content, message):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_corpus(path)


class Endless(io.RawIOBase):
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
    stream = Endless(b"\0")
    refused(("stream, line 1: a line of more than 16 MiB", read_corpus, stream))
    assert stream.count <= MAX_LINE + 2**17
    monkeypatch.setattr(files, "MAX_BYTES", 2**16)
    stream = Endless(b"a\n")
    refused(("stream: more than 1 GiB of text, the most", read_corpus, stream))
    assert stream.count <= 2**18


@pytest.mark.parametrize("pack", [compress, zstd.compress])
def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, monkeypatch, pack):
    path = tmp_path / "bomb"
    monkeypatch.setattr(files, "MAX_BYTES", 10**5)
    path.write_bytes(pack(b"a\n" * 10**5))
    refused(("bomb: more than 1 GiB", read_corpus, path))
    with opened(path, bounded=False) as texts:
        assert sum(1 for _ in texts) == 10**5


def test_a_long_line_names_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE", 100)
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\n" + b"b" * 100 + b"\nc")
    refused(("a.txt, line 2: a line of more than 16", read_corpus, path))
    path.write_bytes(b"a\n" + b"b" * 99 + b"\nc")
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
    refused(("pipe, line 1: the file is empty", read_corpus, tmp_path / "pipe"))


def test_names_that_cannot_be_printed_are_quoted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    names = {"a b": "a b", "": "''", "a\nb": "'a\\nb'", "\x1b[0m": "'\\x1b[0m'"}
    assert {name: shown(name) for name in names} == names
    assert name_of(sys.stdin.buffer) == "standard input"
    path = tmp_path / "a\nb"
    path.touch()
    refused((r"a\nb', line 1: the file is empty", read_corpus, path))
