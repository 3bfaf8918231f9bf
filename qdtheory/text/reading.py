"""Corpora from files, folders and tables: in memory, or on disk if they are beyond it.

A stored corpus has its tokens in a file without a name.
"""

import mmap
import tempfile
from collections import defaultdict
from itertools import chain, islice
from os import PathLike
from typing import Any, cast

import numpy as np

from qdtheory.text.corpus import (
    Corpus,
    Texts,
    as_corpus,
    corpus_of,
    release,
    split_rows,
    with_empty,
)
from qdtheory.text.defaults import Empty
from qdtheory.text.files import name_of, shown
from qdtheory.text.looks import odd_ends, tell
from qdtheory.text.sources import Source, is_file, opened
from qdtheory.text.tokenizers import Token, Tokenizer, splitter

BATCH = 5_000  # sentences that are split at a time; the heap keeps what they take


def read_corpus(
    path: Source,
    tokenizer: Tokenizer = "whitespace",
    empty: Empty = "keep",
    *,
    lowercase: bool = False,
    field: str | None = None,
    column: str | None = None,
) -> Corpus:
    r"""Read a corpus from a UTF-8 file with one sentence per line, or from records.

    Gzip, zstd and Parquet are recognised by content, not by name. Only `\n` and `\r\n`
    end a line (U+2028 does not), and there is no line after the last line end. A
    byte-order mark is skipped. At most 1 GiB is read, unpacked, and 16 MiB of a line. A
    `TextWarning` is given as by `as_corpus`.

    A folder is read if it holds Parquet files, in the order of their names, or a
    dataset of Hugging Face that was saved by `save_to_disk`. A table or dataset in
    memory is read too, as by `as_corpus`.

    Args:
        path: the file or folder, a binary stream such as `sys.stdin.buffer`, or a table
            or dataset.
        tokenizer: "whitespace" (`str.split`), "13a" (as mteval-v13a), "characters", or
            a function from a line to its tokens.
        empty: treatment of empty lines, see `as_corpus`.
        lowercase: lower-case lines before they are split.
        field: for JSON Lines, the field of each line's object that holds the sentence;
            a file of plain text is read as that.
        column: for Parquet, datasets and tables, or CSV or TSV with a header, the
            column that holds it; a file of plain text is read as that.

    Returns:
        The corpus.

    Raises:
        OSError: the file cannot be opened.
        TypeError: the tokenizer does not return a list of tokens; or see `as_corpus`,
            for a table.
        ValueError: the file is empty, too large, broken or not UTF-8 text, its lines
            look like JSON or a table, or a record lacks the field or column (the
            message names file and line); a folder holds nothing that is read, or
            several splits; or `tokenizer` or `empty` is unknown.
        ModuleNotFoundError: an extra is missing, for zstd `qdtheory[zstd]` and for
            Parquet and datasets `qdtheory[parquet]`.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        ...     print("a b\n\nb c d", file=file, flush=True)
        ...     read_corpus(file.name)
        Corpus(3 sentences, 5 tokens, vocab_size=4, empty_lines=0, num_empty=1)
    """
    if not is_file(path):
        return as_corpus(cast(Texts, path), empty, tokenizer, lowercase, column)
    splitter(tokenizer, lowercase)  # an unknown one is told before the file is opened
    name = name_of(path)
    with opened(path, field, column) as texts:
        corpus = corpus_of(*split_rows(texts, tokenizer, lowercase, "line", 1))
    if not corpus.num_tokens:
        raise _no_token(name, len(corpus))
    tell(odd_ends(corpus, name))
    return with_empty(corpus, empty)


def stored_corpus(
    path: Source,
    folder: str | PathLike[str] | None = None,
    tokenizer: Tokenizer = "whitespace",
    *,
    lowercase: bool = False,
    field: str | None = None,
    column: str | None = None,
) -> Corpus:
    r"""Read a corpus of any size, as `read_corpus` does, with its tokens on disk.

    The file that holds them is deleted at once and its space is free when the corpus
    is, however the process ends.

    Args:
        path: the file or folder, a binary stream such as `sys.stdin.buffer`, or a table
            or dataset.
        folder: where the tokens are stored, 4 bytes each, and 8 bytes a sentence; None:
            where temporary files are.
        tokenizer: see `read_corpus`, and so for all others.
        lowercase: lower-case lines before they are split.
        field: for JSON Lines, the field of the sentence.
        column: for Parquet, CSV or TSV, the column of the sentence.

    Returns:
        The corpus.

    Raises:
        OSError: the file cannot be opened, or the disk is full.
        TypeError: see `read_corpus`.
        ValueError: see `read_corpus`; there is no limit to the size of the file.
        ModuleNotFoundError: see `read_corpus`.

    Example:
        >>> with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        ...     print("a b\n\nb c d", file=file, flush=True)
        ...     stored_corpus(file.name)
        Corpus(3 sentences, 5 tokens, vocab_size=4, empty_lines=0, num_empty=1)
    """
    name, what = type(path).__name__, ("text", 0)
    if is_file(path):
        name, what = name_of(path), ("line", 1)
    folder = folder or tempfile.gettempdir()
    ids: defaultdict[Token, int] = defaultdict()
    ids.default_factory = ids.__len__
    end = 0
    with (
        opened(path, field, column, bounded=False) as texts,
        _unnamed(folder) as tokens,
        _unnamed(folder) as offsets,
    ):
        token_rows, by = split_rows(texts, tokenizer, lowercase, *what)
        _write(offsets, np.zeros(1, np.int64), folder)
        while batch := [*islice(token_rows, BATCH)]:
            flat = map(ids.__getitem__, chain.from_iterable(batch))
            _write(tokens, np.fromiter(flat, np.int32), folder)
            ends = end + np.cumsum([*map(len, batch)], dtype=np.int64)
            _write(offsets, ends, folder)
            end = int(ends[-1])
        if not ids:
            raise _no_token(name, offsets.tell() // 8 - 1)
        corpus = Corpus(
            _mapped(tokens, np.int32),
            _mapped(offsets, np.int64),
            tuple(ids),
            tokenizer=by,
        )
    tell(odd_ends(corpus, name))
    for array in (corpus.tokens, corpus.offsets):
        release(array)
    return corpus


def _no_token(name: str, num_sentences: int) -> ValueError:
    said = "no line has a token" if num_sentences else "the file is empty"
    return ValueError(f"{name}, line 1: {said}; expected one sentence a line")


def _unnamed(folder: str | PathLike[str]) -> Any:
    # Without a buffer, whose rest would be written again when a full disk is left.
    return tempfile.TemporaryFile(dir=folder, buffering=0)


def _write(file: Any, array: np.ndarray, folder: str | PathLike[str]) -> None:
    rest = array.tobytes()
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:  # such as a full disk; the file has no name to tell
        said = f"{error.strerror}; TMPDIR names another folder for the tokens"
        raise OSError(error.errno, said, shown(folder)) from None


def _mapped(file: Any, dtype: type) -> np.ndarray:
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(pages, dtype)
