"""Texts in the containers that people have them in: lists, iterators, arrays, columns.

Other packages' containers are recognised by their methods, so that none is imported.
Of a table or a dataset one column is read; a dataset gives its rows one by one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from numbers import Integral
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import numpy as np

from qdtheory.text.tokenizers import Token
from qdtheory.world.packages import required

# What makes Python objects of an array or column: NumPy and pandas, Arrow, Polars.
TO_LIST = ("tolist", "to_pylist", "to_list")
TABLE = ("column_names", "columns")
PLAIN = frozenset((str, int))
WANTED = "expected a Corpus, a list of strings or a list of token lists"


@runtime_checkable
class ArrowColumn(Protocol):
    """A column that hands itself over by the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the stream."""
        ...


@runtime_checkable
class Dataset(Protocol):
    """Rows with named columns, as `datasets.Dataset` of Hugging Face has them."""

    @property
    def column_names(self) -> Any:
        """The names; None if a stream does not tell them."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Go through the rows, each a dictionary by column."""
        ...


def rows(texts: Any, column: str | None = None) -> Iterable[Any]:
    """Read the rows of a container as Python objects.

    Example:
        >>> rows(np.array(["a b", "c"]))
        ['a b', 'c']
    """
    if isinstance(texts, list | tuple):
        return texts
    kind = type(texts).__name__
    for attribute in TABLE:
        if hasattr(type(texts), attribute):
            named = _named(getattr(texts, attribute), kind, column)
            if isinstance(texts, Dataset):
                return _cells(texts, named)
            return rows(texts[named])
    _refuse(texts, kind)
    for name in TO_LIST:
        if hasattr(texts, name):
            return getattr(texts, name)()
    if isinstance(texts, Iterable):
        return texts
    if isinstance(texts, ArrowColumn):
        return _arrow_rows(texts)
    raise TypeError(f"{WANTED}, got {type(texts).__name__}")


def _refuse(texts: Any, kind: str) -> None:
    """Raise for what is iterable, but not over texts."""
    if isinstance(texts, str | bytes | bytearray | PathLike):
        raise TypeError(
            f"expected a list of sentences, got one {kind}: put the sentence in a "
            "list, or read a file with read_corpus"
        )
    if hasattr(texts, "read"):
        raise TypeError(f"{WANTED}, got the file {kind}: read_corpus reads files")
    if isinstance(texts, Mapping):
        keys = ", ".join(map(repr, islice(texts, 5)))
        raise TypeError(f"{WANTED}, got a {kind}: give one of its values, of {keys}")
    if isinstance(texts, Set):
        raise TypeError(
            f"{WANTED}, got a {kind}, which holds no sentence twice: give all "
            "sentences in a list"
        )
    if getattr(texts, "ndim", 1) != 1:
        raise TypeError(
            f"{WANTED}, got a {kind} of shape {texts.shape}: give one column, or token "
            "lists by .tolist()"
        )


def _named(names: Any, kind: str, column: str | None) -> str:
    """The column that was named, of those that are there; None if none is told."""
    there = ", ".join(map(repr, islice(() if names is None else names, 5)))
    if column is None:
        raise TypeError(
            f'{WANTED}, got a {kind}: give one column, as in table["text"], or name it '
            f"(column=NAME); there are: {there}"
        )
    if names is not None and column not in names:
        raise TypeError(f"a {kind} without a column {column!r}; there are: {there}")
    return column


def _cells(dataset: Dataset, column: str) -> Iterator[Any]:
    for number, row in enumerate(dataset):
        if not isinstance(row, Mapping) or column not in row:
            raise TypeError(f"row {number}: expected a dictionary with {column!r}")
        yield row[column]


def _arrow_rows(column: ArrowColumn) -> list[Any]:
    with required(f"reading a {type(column).__name__}", "parquet"):
        from pyarrow import chunked_array
    return chunked_array(column).to_pylist()


def token_lists(
    texts: Iterable[Any],
    split: Callable[[str], Sequence[Token]],
    what: str = "text",
    start: int = 0,
) -> tuple[bool, Iterator[Sequence[Token]]]:
    """Split the rows of a container, or check that they are token lists.

    Example:
        >>> strings, tokens = token_lists(["a b", "c"], str.split)
        >>> strings, list(tokens)
        (True, [['a', 'b'], ['c']])
    """
    remaining = iter(texts)
    first = [*islice(remaining, 20)]
    numbered = enumerate(chain(first, remaining), start)
    if first and isinstance(first[0], str):
        return True, _split(numbered, split, what)
    _refuse_sentences_as_tokens(first)
    return False, _checked(numbered, what)


def _split(numbered, split, what: str) -> Iterator[Sequence[Token]]:
    own = split is not str.split
    for number, text in numbered:
        if not isinstance(text, str):
            raise _bad_row(text, what, number, "string")
        tokens = split(text)
        yield check_tokens(tokens, f"tokenizer, {what}", number) if own else tokens


def _checked(numbered, what: str) -> Iterator[Sequence[Token]]:
    for place, (number, text) in enumerate(numbered):
        if isinstance(text, np.ndarray):
            text = text.tolist()
        if not isinstance(text, list | tuple):
            wanted = "list of tokens" if place else "string or a list of tokens"
            raise _bad_row(text, what, number, wanted)
        yield check_tokens(text, what, number)


def _bad_row(text: Any, what: str, number: int, wanted: str) -> TypeError:
    """An error for a row that is no string, or no token list."""
    kind, where = type(text).__name__, f"{what} {number}"
    if isinstance(text, list | tuple | np.ndarray | str):
        first, other = ("string", kind) if wanted == "string" else ("list", "string")
        return TypeError(
            f"{where} is a {other} and the first a {first}: give strings or token "
            "lists, not both"
        )
    said = f"{where}: expected a {wanted}, got {kind}"
    # NaN is not equal to itself, and pandas' NA to nothing.
    if text is None or kind == "NAType" or (isinstance(text, float) and text != text):
        said += ", a missing value: drop it, or give '' if the model wrote nothing"
    elif not isinstance(text, bytes):
        said += f" {text!r:.40}"
    return TypeError(said)


def check_tokens(tokens: Any, what: str, number: int) -> Sequence[Token]:
    """Raise unless something is a list of strings or integers."""
    if not isinstance(tokens, list | tuple):
        raise TypeError(
            f"{what} {number}: expected a list of tokens, got {type(tokens).__name__}"
        )
    if PLAIN.issuperset(map(type, tokens)):  # nearly always, and told at once
        return tokens
    for kind in set(map(type, tokens)):
        if not issubclass(kind, str | Integral):
            raise TypeError(
                f"{what} {number}: a token is a {kind.__name__}, expected strings or "
                "integers"
            )
    return tokens


def _refuse_sentences_as_tokens(texts: list[Any]) -> None:
    """Raise for lists of sentences, the shape of references in other packages."""
    inner = [t for text in texts if isinstance(text, list | tuple) for t in text]
    spaced = sum(isinstance(token, str) and len(token.split()) > 1 for token in inner)
    if 2 * spaced > len(inner):
        raise TypeError(
            f"expected a list of strings or of token lists, but tokens hold spaces, "
            f"such as {inner[0]!r:.40}: lists of references for each candidate, as in "
            "sacrebleu? Here all candidates share one list of references; join them "
            "into it"
        )
