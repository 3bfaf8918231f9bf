"""Bytes and lines of files: plain, gzip, zstd or a stream, in bounded memory."""

import gzip
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from io import BufferedReader, RawIOBase
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from qdtheory.support.packages import missing


@runtime_checkable
class Stream(Protocol):
    """A file opened in binary mode, such as `sys.stdin.buffer`."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes."""
        ...


File: TypeAlias = str | PathLike[str] | Stream


class Files(tuple[File, ...]):
    """Files that are one sample, read one after another."""


class FieldWarning(UserWarning):
    """Fields were not named, and those are read that are called as most are."""


# A packed file of a few megabytes can hold terabytes, and a device has no end.
MAX_BYTES = 2**30
MAX_LINE = 2**24  # bytes; a long novel has a sixth
HEAD = 8  # bytes that tell a kind of file
CHUNK = 2**17  # bytes that are read at a time of what is packed or piped
GZIP, ZSTD, PARQUET = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PAR1"
OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}
# UTF-32 first: its mark begins with that of UTF-16.
UTF_32, UTF_16 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), (b"\xff\xfe", b"\xfe\xff")
ENCODINGS = {"UTF-32": UTF_32, "UTF-16": UTF_16}


def shown(name: str | PathLike[str]) -> str:
    """A file's name as messages give it: quoted if it is empty or cannot be printed."""
    name = os.fspath(name)
    return name if name and name.isprintable() else repr(name)


@contextmanager
def streamed(file: File, bounded: bool = False) -> Iterator[tuple[bytes, Any]]:
    """Open a file of any size: its first bytes, and all of it, unpacked when read."""
    name = name_of(file)
    with ExitStack() as stack:
        stream: Any = file
        if isinstance(file, str | PathLike):
            stream = stack.enter_context(open(file, "rb", opener=_open))
            if bounded and os.fstat(stream.fileno()).st_size > MAX_BYTES:
                raise too_large(name)
        kind, errors = "", ()
        head, stream = _peeked(stream, name)
        if packed := _packed(head, name):
            kind, reader, *errors = packed
            # A packed stream can be sought in, but neither fast nor from its end.
            stream = BufferedReader(_Joined(b"", reader(stream)), CHUNK)
        try:
            head, stream = _peeked(stream, name)
            for encoding, marks in ENCODINGS.items():
                if head.startswith(marks):
                    raise ValueError(
                        f"{name}: {encoding}, expected UTF-8; convert it: "
                        f"iconv -f {encoding} -t UTF-8 FILE > NEW"
                    )
            yield head, stream
        except (EOFError, *errors) as error:
            raise ValueError(f"{name}: the {kind} file is broken: {error}") from None


def lines(held: Any, name: str, bounded: bool = False) -> Iterator[str]:
    r"""Split UTF-8 text at `\n` and `\r\n` only, and skip a byte-order mark."""
    size = 0
    limited = iter(partial(held.readline, MAX_LINE + 1), b"")
    for number, line in enumerate(limited, start=1):
        size += len(line)
        if b"\r" in line.rstrip(b"\r\n"):
            what = r"carriage return (CR) inside; put a space: sed 's/\r\(.\)/ \1/g'"
            if not line.endswith(b"\n"):  # all lines of an old Mac are one
                what = r"line end of old Macs (CR) inside; write \n: tr '\r' '\n'"
            raise ValueError(f"{name}, line {number}: a {what} < FILE > NEW")
        if len(line) > MAX_LINE:
            raise ValueError(
                f"{name}, line {number}: a line of more than 16 MiB, the most that is "
                "read; expected one sentence a line"
            )
        if bounded and size > MAX_BYTES:
            raise too_large(name)
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
        yield text.rstrip("\r\n")


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield where to write, so that readers find the old file or all of the new one."""
    path = Path(os.path.realpath(path))  # a link stays one
    device = path.exists() and not path.is_file()
    target = path if device else path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield target
        if not device:
            if path.exists():
                shutil.copymode(path, target)
            target.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        if not device:
            target.unlink(missing_ok=True)


def name_of(file: File | Files) -> str:
    """Name a file, a stream or some of them in messages."""
    if isinstance(file, Files):
        return ", ".join(map(name_of, file))
    if isinstance(file, str | PathLike):
        return shown(file)
    if file is getattr(sys.stdin, "buffer", None):
        return "standard input"
    return shown(str(getattr(file, "name", "stream")))


def too_large(name: str) -> ValueError:
    """Make the error for a file that holds more than is read."""
    return ValueError(
        f"{name}: more than 1 GiB of text, the most that is read; evaluate it on "
        "workers (scheduler=2), or take a sample of its lines (shuf -n 1000000)"
    )


def _open(path: str, flags: int) -> int:
    """Open without waiting for a pipe that nothing writes to."""
    if not hasattr(os, "O_NONBLOCK"):
        return os.open(path, flags)
    opened = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(opened, True)
    return opened


class _Joined(RawIOBase):
    """A few bytes, and the stream that they were taken from."""

    def __init__(self, head: bytes, stream: Any):
        self.head, self.stream = head, stream
        self.read_some = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.head or self.read_some(len(buffer))
        found, self.head = found[: len(buffer)], self.head[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)


def _peeked(stream: Any, name: str) -> tuple[bytes, Any]:
    """The first bytes of a stream, where a pipe may peek at one only, and all of it."""
    head = b""
    while len(head) < HEAD and (piece := stream.read(HEAD - len(head))):
        if isinstance(piece, str):
            raise TypeError(f"{name}: expected a file in binary mode, got one of text")
        head += piece
    if getattr(stream, "seekable", lambda: False)():
        stream.seek(-len(head), os.SEEK_CUR)
        return head, stream
    return head, BufferedReader(_Joined(head, stream), CHUNK)


def _packed(head: bytes, name: str) -> Any:
    """Kind and reader of a packed file, and the errors that say it is broken."""
    if head.startswith(GZIP):
        return "gzip", gzip.open, zlib.error, gzip.BadGzipFile
    if head.startswith(ZSTD):
        zstd = _zstd(name)
        return "zstd", zstd.ZstdFile, zstd.ZstdError
    for mark, kind in OTHERS.items():
        if head.startswith(mark):
            wanted = "expected text, gzip or zstd; unpack it first"
            raise ValueError(f"{name}: a {kind} file, {wanted}")
    return None


def _zstd(name: str) -> Any:
    """The standard library's module of Python 3.14, or its backport."""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(module)
        except ImportError:
            pass
    raise missing(f"{name}: reading zstd", "backports.zstd", "zstd")
