"""Corpora: sentences as integer token ids, from texts or files, in linear time."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, pairwise, repeat
from typing import Any, TypeAlias, cast, overload

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from qdtheory.text import containers
from qdtheory.text.checks import require_choice, tell
from qdtheory.text.containers import Token, Tokenizer, described, splitter
from qdtheory.text.defaults import Empty
from qdtheory.text.files import File, Files, name_of
from qdtheory.text.looks import odd_looks, seen, unlike
from qdtheory.text.sources import is_file, opened

CHUNK = 2**17  # tokens that are read at a time


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Sentences as one flat array of token ids; made by `as_corpus` or `read_corpus`.

    Empty sentences count as sentences unless they were skipped. `corpus[i]` is a tuple
    of tokens. A slice is a corpus that shares the array; indexing with an array of
    positions or a mask copies. Parts keep the whole vocabulary.

    Attributes:
        tokens: ids of all tokens, sentence after sentence.
        offsets: sentence i is `tokens[offsets[i]:offsets[i + 1]]`.
        vocabulary: the token of each id.
        empty_lines: number of empty sentences that were skipped.
        tokenizer: what split the sentences; None if they came as tokens.

    Example:
        >>> corpus = as_corpus(["a b a", "b c"])
        >>> corpus
        Corpus(2 sentences, 5 tokens, vocab_size=3, empty_lines=0)
        >>> corpus[0], corpus[1:].num_tokens
        (('a', 'b', 'a'), 2)
    """

    tokens: Int[np.ndarray, " tokens"]
    offsets: Int[np.ndarray, " boundaries"]
    vocabulary: tuple[Token, ...]
    empty_lines: int = 0
    tokenizer: str | None = None

    @property
    def lengths(self) -> Int[np.ndarray, " sentences"]:
        """Number of tokens in each sentence."""
        return np.diff(self.offsets)

    @property
    def num_tokens(self) -> int:
        """Total number of tokens."""
        return len(self.tokens)

    @property
    def num_empty(self) -> int:
        """Number of empty sentences that were kept."""
        return int((self.lengths == 0).sum())

    @property
    def vocab_size(self) -> int:
        """Size of the vocabulary, including unused entries."""
        return len(self.vocabulary)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[tuple[Token, ...]]:
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, index: int | np.integer) -> tuple[Token, ...]: ...
    @overload
    def __getitem__(self, index: slice | np.ndarray) -> "Corpus": ...
    def __getitem__(self, index):
        if isinstance(index, np.ndarray):
            return self._take(np.arange(len(self))[index])
        if not isinstance(index, slice):
            start = range(len(self))[index]
            ids = self.tokens[self.offsets[start] : self.offsets[start + 1]]
            return tuple(map(self.vocabulary.__getitem__, ids.tolist()))
        start, stop, step = index.indices(len(self))
        if step != 1:
            return self._take(np.arange(start, stop, step))
        bounds = self.offsets[start : max(start, stop) + 1]
        tokens = self.tokens[bounds[0] : bounds[-1]]
        offsets = bounds - bounds[0]
        return Corpus(tokens, offsets, self.vocabulary, tokenizer=self.tokenizer)

    def __sizeof__(self) -> int:
        return self.tokens.nbytes + self.offsets.nbytes + 64 * self.vocab_size

    def _take(self, order: Int[np.ndarray, " chosen"]) -> "Corpus":
        lengths = self.lengths[order]
        offsets = prefix_sums(lengths)
        shift = np.repeat(self.offsets[order] - offsets[:-1], lengths)
        tokens = self.tokens[np.arange(offsets[-1]) + shift]
        return Corpus(tokens, offsets, self.vocabulary, tokenizer=self.tokenizer)

    def __repr__(self) -> str:
        kept = f", num_empty={self.num_empty}" if self.num_empty else ""
        return (
            f"Corpus({len(self)} sentences, {self.num_tokens} tokens, "
            f"vocab_size={self.vocab_size}, empty_lines={self.empty_lines}{kept})"
        )


# A corpus, wherever its tokens are: what has the attributes and methods of one.
Sample: TypeAlias = Any
Texts: TypeAlias = Corpus | Iterable[str] | Iterable[Sequence[Token] | np.ndarray]


def as_corpus(
    texts: Texts,
    empty: Empty = "keep",
    tokenizer: Tokenizer = "whitespace",
    lowercase: bool = False,
) -> Corpus:
    """Build a corpus from strings or token lists; return a `Corpus` as it is.

    If nearly all sentences are in quotes, are JSON, have list numbers or end with the
    same mark, such as "</s>", a `TextWarning` says so.

    They may come in a list, a tuple, an iterator, a NumPy array of strings, a column of
    pandas, Polars, Arrow or a dataset of Hugging Face, or anything that is iterable.

    Args:
        texts: a `Corpus`, strings, or lists of tokens, which are strings or integers.
        empty: treatment of empty sentences. "keep": a generator wrote them, and they
            are scored; "skip": they are dropped and counted in `empty_lines`.
        tokenizer: how strings are split: "whitespace" (`str.split`), "13a" (as
            mteval-v13a), "characters", or a function from a string to its tokens.
        lowercase: lower-case strings before they are split.

    Returns:
        The corpus; its vocabulary is in order of first occurrence.

    Raises:
        TypeError: a single string, a file, a table, a container of something else, a
            row that is neither a string nor a token list, or tokens of another type.
        ValueError: no sentence has a token, `empty` or `tokenizer` is unknown, or the
            texts are split already in another way.

    Example:
        >>> as_corpus([["a", "b"], [], ["b"]])
        Corpus(3 sentences, 3 tokens, vocab_size=2, empty_lines=0, num_empty=1)
        >>> as_corpus([["a", "b"], [], ["b"]], empty="skip")
        Corpus(2 sentences, 3 tokens, vocab_size=2, empty_lines=1)
        >>> as_corpus(["A b."], tokenizer="13a", lowercase=True)[0]
        ('a', 'b', '.')
    """
    if isinstance(texts, Corpus):
        corpus = texts
        if corpus.tokenizer != described(tokenizer, lowercase):
            refuse_split(corpus.tokenizer, tokenizer, lowercase)
    else:
        corpus = corpus_of(containers.rows(texts), tokenizer, lowercase)
        tell(odd_looks("this text", seen(corpus)))
    if not corpus.num_tokens:
        raise ValueError("expected at least one sentence with a token, got none")
    return with_empty(corpus, empty)


def read_corpus(
    path: File | Files | Texts,
    tokenizer: Tokenizer = "whitespace",
    empty: Empty = "keep",
    *,
    lowercase: bool = False,
    field: str | None = None,
) -> Corpus:
    r"""Read a corpus from a UTF-8 file with one sentence per line, or from records.

    Gzip, zstd and Parquet are recognised by content, not by name. Only `\n` and `\r\n`
    end a line (U+2028 does not), and there is no line after the last line end. A
    byte-order mark is skipped. At most 1 GiB is read, unpacked, and 16 MiB of a line. A
    `TextWarning` is given as by `as_corpus`.

    Args:
        path: the file, a binary stream such as `sys.stdin.buffer`, or texts in memory,
            which are read as by `as_corpus`.
        tokenizer: "whitespace" (`str.split`), "13a" (as mteval-v13a), "characters", or
            a function from a line to its tokens.
        empty: treatment of empty lines, see `as_corpus`.
        lowercase: lower-case lines before they are split.
        field: of JSON, CSV, TSV and Parquet, the field or column that holds the
            sentence, or a path to it, "choices.0.message.content"; "." if each line is
            a JSON string. None: the only one that is called as texts are,
            "text", "output", ..., which a `FieldWarning` says. A file of plain text is
            read as that.

    Raises:
        OSError: the file cannot be opened.
        TypeError: the tokenizer does not return a list of tokens.
        ValueError: the file is empty, too large, broken or not UTF-8 text, its lines
            are JSON strings, a row lacks the field or has more or fewer cells than the
            header (the message names file and line); it is a folder; or `tokenizer` or
            `empty` is unknown.
        ModuleNotFoundError: an extra is missing, for zstd `qdtheory[zstd]` and for
            Parquet `qdtheory[parquet]`.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        ...     print("a b\n\nb c d", file=file, flush=True)
        ...     read_corpus(file.name)
        Corpus(3 sentences, 5 tokens, vocab_size=4, empty_lines=0, num_empty=1)
    """
    if not is_file(path):
        return as_corpus(cast(Texts, path), empty, tokenizer, lowercase)
    splitter(tokenizer, lowercase)  # an unknown one is told before the file is opened
    name = name_of(path)
    with opened(path, field) as texts:
        corpus = corpus_of(texts, tokenizer, lowercase, "line", 1)
    require_tokens(corpus, name)
    tell(odd_looks(name, seen(corpus)))
    return with_empty(corpus, empty)


# --- Tokens -------------------------------------------------------------------------


def corpus_of(
    texts: Iterable[Any],
    tokenizer: Tokenizer,
    lowercase: bool,
    what: str = "text",
    start: int = 0,
) -> Corpus:
    """Split strings, or check token lists; number the tokens by first occurrence."""
    split = splitter(tokenizer, lowercase)
    strings, sentences = containers.token_lists(texts, split, what, start)
    if not strings:
        refuse_split(None, tokenizer, lowercase)
    ids, sizes = numbering(), []

    def counted() -> Iterator[Sequence[Token]]:
        for tokens in sentences:
            sizes.append(len(tokens))
            yield tokens

    tokens = ids_of(chain.from_iterable(counted()), ids)
    by = described(tokenizer, lowercase) if strings else None
    return Corpus(tokens, prefix_sums(sizes), tuple(ids), tokenizer=by)


def refuse_split(by: str | None, tokenizer: Tokenizer, lowercase: bool) -> None:
    """Raise if texts that are split already are to be split in another way."""
    if lowercase or tokenizer != "whitespace":
        raise ValueError(
            f"tokenizer and lowercase are for strings: these texts came split, by "
            f"{by or 'the caller'}; split them by {described(tokenizer, lowercase)} "
            "instead"
        )


def with_empty(corpus: Corpus, empty: Empty) -> Corpus:
    """Return the corpus with its empty sentences kept or skipped."""
    require_choice("empty", empty, Empty)
    skipped = 0 if empty == "keep" else corpus.num_empty
    if not skipped:
        return corpus
    # An empty sentence is a repeated offset.
    offsets, empty_lines = np.unique(corpus.offsets), corpus.empty_lines + skipped
    return replace(corpus, offsets=offsets, empty_lines=empty_lines)


def slices(corpus: Corpus, num_tokens: int = CHUNK) -> Iterator[tuple[int, Corpus]]:
    """Cut a corpus into slices of about so many tokens, with their first sentences."""
    marks = np.arange(num_tokens, corpus.num_tokens, num_tokens)
    cuts = np.unique(np.searchsorted(corpus.offsets, marks)).tolist()
    for start, end in pairwise([0, *cuts, len(corpus)]):
        yield start, corpus[start:end]


def common_ids(corpora: Sequence[Sample]) -> list[Int[np.ndarray, " words"]]:
    """Number the words of several corpora together."""
    ids = numbering()
    return [ids_of(corpus.vocabulary, ids) for corpus in corpora]


def ids_in(known: Collection[Token], words: Collection[Token]) -> np.ndarray:
    """The place of each word among those that are known; of others, the next one."""
    tell(unlike(words, known))
    ids = {word: place for place, word in enumerate(known)}
    return np.fromiter(map(ids.get, words, repeat(len(ids))), np.int32)


def numbering() -> defaultdict[Token, int]:
    """An empty table of ids, in which a new token gets the next one."""
    return defaultdict(count().__next__)


def ids_of(tokens: Iterable[Token], ids: defaultdict[Token, int]) -> np.ndarray:
    """The id of each token, in a table that grows."""
    return np.fromiter(map(ids.__getitem__, tokens), np.int32)


def prefix_sums(values: ArrayLike) -> Int[np.ndarray, " boundaries"]:
    """Sums of the first 0, 1, ... values: where sentences of these lengths begin."""
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])


def require_tokens(corpus: Sample, name: str) -> None:
    """Raise unless what was read from a file has a token."""
    if not corpus.num_tokens:
        said = "no line has a token" if len(corpus) else "the file is empty"
        raise ValueError(f"{name}, line 1: {said}; expected one sentence a line")
