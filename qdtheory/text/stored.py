"""Corpora whose tokens lie in a file without a name, for texts beyond memory."""

import mmap
import tempfile
from collections import defaultdict
from itertools import chain, islice
from os import PathLike
from typing import Any

import numpy as np

from qdtheory.text.corpus import Corpus, release, split_rows
from qdtheory.text.files import name_of, shown
from qdtheory.text.looks import odd_ends, tell
from qdtheory.text.sources import Source, is_file, opened
from qdtheory.text.tokenizers import Token, Tokenizer

BATCH = 5_000  # sentences that are split at a time; the heap keeps what they take


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
            raise ValueError(
                f"{name}, line 1: no line has a token; expected one sentence a line"
            )
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
