"""Bytes and lines of files: plain, gzip, zstd or a stream, in bounded memory."""

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from io import BufferedReader, BytesIO, RawIOBase
from os import PathLike
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from qdtheory.world.packages import missing


@runtime_checkable
class Stream(Protocol):
    """A file opened in binary mode, such as `sys.stdin.buffer`."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes."""
        ...


File: TypeAlias = str | PathLike[str] | Stream

# A packed file of a few megabytes can hold terabytes, and a device has no end.
MAX_BYTES = 2**30
MAX_LINE = 2**24  # bytes; a long novel has a sixth
GZIP, ZSTD, PARQUET = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PAR1"
OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}
# UTF-32 first: its mark begins with that of UTF-16.
ENCODINGS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def shown(name: str | PathLike[str]) -> str:
    r"""A file's name as messages give it: quoted if it is empty or cannot be printed.

    Example:
        >>> print(shown("a b.txt"), shown("a\nb"), shown(""))
        a b.txt 'a\nb' ''
    """
    name = os.fspath(name)
    return name if name and name.isprintable() else repr(name)


def contents(file: File) -> BytesIO:
    """Read a file or stream whole, and unpack it."""
    name = name_of(file)
    if not isinstance(file, str | PathLike):
        held = _bounded(file, name)
    else:
        with open(file, "rb", opener=_open) as opened:
            if os.fstat(opened.fileno()).st_size > MAX_BYTES:
                raise too_large(name)
            held = _bounded(opened, name)
    if packed := _packed(_head(held), name):
        kind, reader, *errors = packed
        try:
            held = _bounded(reader(held), name)
        except (EOFError, *errors) as error:
            raise ValueError(f"{name}: the {kind} file is broken: {error}") from None
    _refuse_encoding(_head(held), name)
    return held


@contextmanager
def streamed(file: File) -> Iterator[BufferedReader]:
    """Open a file of any size, to be unpacked while it is read."""
    name = name_of(file)
    with ExitStack() as stack:
        if isinstance(file, str | PathLike):
            stream = stack.enter_context(open(file, "rb", opener=_open))
        else:
            stream = cast(BufferedReader, file)
        errors = ()
        kind = ""
        head, stream = _peeked(stream)
        if packed := _packed(head, name):
            kind, reader, *errors = packed
            stream = BufferedReader(reader(stream))
        try:
            head, stream = _peeked(stream)
            _refuse_encoding(head, name)
            yield stream
        except (EOFError, *errors) as error:
            raise ValueError(f"{name}: the {kind} file is broken: {error}") from None


def lines(held: BytesIO | BufferedReader, name: str) -> Iterator[str]:
    r"""Split UTF-8 text into its lines, without their ends.

    Only `\n` and `\r\n` end a line. A byte-order mark is skipped.
    """
    limited = iter(partial(held.readline, MAX_LINE + 1), b"")
    for number, line in enumerate(limited, start=1):
        if len(line) > MAX_LINE:
            raise _long_line(f"{name}, line {number}")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: byte 0x{line[error.start]:02x} at position "
                f"{error.start + 1} is not UTF-8; convert the file to UTF-8"
            ) from None
        if "\0" in text:
            raise ValueError(f"{name}, line {number}: a NUL byte; expected a text file")
        yield text.removesuffix("\n").removesuffix("\r")


def name_of(file: File) -> str:
    """Name a file or stream in messages."""
    if isinstance(file, str | PathLike):
        return shown(file)
    if file is getattr(sys.stdin, "buffer", None):
        return "standard input"
    return shown(str(getattr(file, "name", "stream")))


def too_large(name: str) -> ValueError:
    """Make the error for a file that holds more than is read."""
    return ValueError(
        f"{name}: more than 1 GiB of text, the most that is read; take a sample of its "
        "lines (shuf -n 1000000)"
    )


def _starts(held: BytesIO, mark: bytes) -> bool:
    return held.getbuffer()[: len(mark)] == mark


def _open(path: str, flags: int) -> int:
    """Open without waiting for a pipe that nothing writes to."""
    if not hasattr(os, "O_NONBLOCK"):
        return os.open(path, flags)
    opened = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(opened, True)
    return opened


class _Joined(RawIOBase):
    """A few bytes, and the stream that they were taken from."""

    def __init__(self, head: bytes, stream: BufferedReader):
        self.head, self.stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.head or self.stream.read1(len(buffer))
        found, self.head = found[: len(buffer)], self.head[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)


def _peeked(stream: BufferedReader) -> tuple[bytes, BufferedReader]:
    """The first bytes of a stream, and a stream with all of them.

    A pipe gives its bytes in pieces, so that `peek` may find one only.
    """
    head = stream.read(8)
    if not stream.seekable():
        return head, BufferedReader(_Joined(head, stream))
    stream.seek(0)
    return head, stream


def _head(held: BytesIO) -> bytes:
    return bytes(held.getbuffer()[:8])


def _refuse_encoding(head: bytes, name: str) -> None:
    for mark, encoding in ENCODINGS.items():
        if head.startswith(mark):
            raise ValueError(
                f"{name}: {encoding}, expected UTF-8; convert it: "
                f"iconv -f {encoding} -t UTF-8 FILE > NEW"
            )


def _packed(head: bytes, name: str) -> Any:
    """Kind and reader of a packed file, and the errors that say it is broken."""
    if head.startswith(GZIP):
        return "gzip", _gunzip, zlib.error, gzip.BadGzipFile
    if head.startswith(ZSTD):
        zstd = _zstd(name)
        return "zstd", zstd.ZstdFile, zstd.ZstdError
    for mark, kind in OTHERS.items():
        if head.startswith(mark):
            raise ValueError(
                f"{name}: a {kind} file, expected text, gzip or zstd; unpack it first"
            )
    return None


def _gunzip(held: Any) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=held)


def _zstd(name: str) -> Any:
    """The standard library's module of Python 3.14, or its backport."""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(module)
        except ImportError:
            pass
    raise missing(f"{name}: reading zstd", "backports.zstd", "zstd")


def _bounded(stream: Any, name: str) -> BytesIO:
    """Read a stream up to the limits."""
    held = BytesIO()
    while chunk := stream.read(MAX_LINE + 1):
        if isinstance(chunk, str):
            raise TypeError(f"{name}: expected a file in binary mode, got one of text")
        held.write(chunk)
        binary = any(_starts(held, mark) for mark in (GZIP, ZSTD, PARQUET))
        if len(chunk) > MAX_LINE and b"\n" not in chunk and not binary:
            raise _long_line(name)
        if held.tell() > MAX_BYTES:
            raise too_large(name)
    held.seek(0)
    return held


def _long_line(where: str) -> ValueError:
    return ValueError(
        f"{where}: a line of more than 16 MiB, the most that is read; expected one "
        "sentence a line"
    )
