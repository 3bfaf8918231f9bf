"""Corpora: sentences as integer token ids, read and preprocessed in linear time."""

import gzip
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias, get_args, overload

import numpy as np
from jaxtyping import Int

from qdtheory.text.formats import sentences

Token: TypeAlias = str | int | np.integer
Tokenizer: TypeAlias = Literal["whitespace"] | Callable[[str], Sequence[Token]]
Empty: TypeAlias = Literal["keep", "skip"]


@dataclass(frozen=True)
class Removed:
    """Number of sentences removed by each rule of `prepare`, in the order of the rules.

    Attributes:
        rare: sentences with a rare word (`rare="drop"`).
        unknown: sentences with more than `max_unknown` unknown words.
        short: sentences with fewer than `min_length` tokens.
        long: sentences with more than `max_length` tokens.
    """

    rare: int = 0
    unknown: int = 0
    short: int = 0
    long: int = 0


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
        removed: number of sentences that `prepare` removed, by rule.

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
    removed: Removed = Removed()

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
        return Corpus(tokens, bounds - bounds[0], self.vocabulary)

    def _take(self, order: Int[np.ndarray, " chosen"]) -> "Corpus":
        lengths = self.lengths[order]
        offsets = _prefix_sums(lengths)
        shift = np.repeat(self.offsets[order] - offsets[:-1], lengths)
        tokens = self.tokens[np.arange(offsets[-1]) + shift]
        return Corpus(tokens, offsets, self.vocabulary)

    def __repr__(self) -> str:
        kept = f", num_empty={self.num_empty}" if self.num_empty else ""
        removed = "" if self.removed == Removed() else f", removed={self.removed}"
        return (
            f"Corpus({len(self)} sentences, {self.num_tokens} tokens, "
            f"vocab_size={self.vocab_size}, empty_lines={self.empty_lines}"
            f"{kept}{removed})"
        )


Texts: TypeAlias = Corpus | Sequence[str] | Sequence[Sequence[Token]]


def as_corpus(texts: Texts, empty: Empty = "keep") -> Corpus:
    """Build a corpus from a list of strings or token lists; return a `Corpus` as it is.

    Strings are split at whitespace.

    Args:
        texts: a `Corpus`, a list of strings, or a list of lists of strings or integers.
        empty: treatment of empty sentences. "keep": a generator wrote them, and they
            are scored; "skip": they are dropped and counted in `empty_lines`.

    Returns:
        The corpus; its vocabulary is in order of first occurrence.

    Raises:
        TypeError: a single string, another container, or tokens of another type.
        ValueError: no sentence has a token, or `empty` is unknown.

    Example:
        >>> as_corpus([["a", "b"], [], ["b"]])
        Corpus(3 sentences, 3 tokens, vocab_size=2, empty_lines=0, num_empty=1)
        >>> as_corpus([["a", "b"], [], ["b"]], empty="skip")
        Corpus(2 sentences, 3 tokens, vocab_size=2, empty_lines=1)
    """
    if not isinstance(texts, Corpus):
        texts = _build(_token_lists(texts))
    if not texts.num_tokens:
        raise ValueError("expected at least one sentence with a token, got none")
    return _with_empty(texts, empty)


def _with_empty(corpus: Corpus, empty: Empty) -> Corpus:
    """Return the corpus with its empty sentences kept or skipped."""
    if empty not in get_args(Empty):
        raise ValueError(f'empty: expected "keep" or "skip", got {empty!r}')
    skipped = 0 if empty == "keep" else corpus.num_empty
    if not skipped:
        return corpus
    # An empty sentence is a repeated offset.
    return replace(
        corpus,
        offsets=np.unique(corpus.offsets),
        empty_lines=corpus.empty_lines + skipped,
    )


def read_corpus(
    path: str | PathLike[str],
    tokenizer: Tokenizer = "whitespace",
    empty: Empty = "keep",
    *,
    field: str | None = None,
    column: str | None = None,
) -> Corpus:
    r"""Read a corpus from a UTF-8 file, plain or gzip, with one sentence per line.

    Gzip is recognised by content, not by name. Only `\n` and `\r\n` end a line (U+2028
    does not), and there is no line after the last line end. A byte-order mark is
    skipped.

    Args:
        path: the file.
        tokenizer: "whitespace" (`str.split`), or a function from a line to its tokens.
        empty: treatment of empty lines, see `as_corpus`.
        field: for JSON Lines, the field of each line's object that holds the sentence.
        column: for CSV or TSV with a header, the column that holds it.

    Returns:
        The corpus.

    Raises:
        OSError: the file cannot be opened.
        TypeError: the tokenizer does not return a list of tokens.
        ValueError: the file is empty, not UTF-8 text or broken gzip, its lines look
            like JSON or a table, or a record lacks the field or column (the message
            names file and line); or `tokenizer` or `empty` is unknown.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        ...     print("a b\n\nb c d", file=file, flush=True)
        ...     read_corpus(file.name)
        Corpus(3 sentences, 5 tokens, vocab_size=4, empty_lines=0, num_empty=1)
    """
    split = str.split if tokenizer == "whitespace" else tokenizer
    if not callable(split):
        raise ValueError(
            f'tokenizer: expected "whitespace" or a function, got {tokenizer!r}'
        )
    texts = sentences(_lines(Path(path)), str(path), field, column)
    corpus = _build(
        _checked(split(line), "tokenizer, line", number)
        for number, line in enumerate(texts, start=1)
    )
    if not corpus.num_tokens:
        found = "no line has a token" if len(corpus) else "the file is empty"
        raise ValueError(f"{path}, line 1: {found}; expected one sentence a line")
    return _with_empty(corpus, empty)


def prepare(
    corpus: Texts,
    *,
    min_count: int = 1,
    rare: Literal["drop", "unk"] = "drop",
    max_unknown: int | None = None,
    min_length: int = 1,
    max_length: int | None = None,
    seed: int | None = None,
    unknown: str = "<unk>",
) -> Corpus:
    """Remove rare words and sentences that are too short or too long.

    The steps are: count words once, on the corpus as given; drop the sentences with
    rare words, or replace these; filter by length; shuffle; restrict the vocabulary to
    the remaining words. Words that become rare by a removal stay: the papers do not
    iterate.

    Args:
        corpus: a `Corpus`, or any input of `as_corpus`.
        min_count: words with fewer occurrences are rare.
        rare: "drop" removes the sentences with a rare word (Li et al. 2020); "unk"
            replaces every rare word by `unknown` (Montahaei et al. 2019).
        max_unknown: with "unk", sentences with more unknown words are removed; None:
            no limit.
        min_length: minimum number of tokens; 0 keeps empty sentences.
        max_length: maximum number of tokens; None: no limit.
        seed: seed for shuffling the sentences; None keeps their order.
        unknown: the token that replaces rare words.

    Returns:
        A new corpus; its `removed` counts the sentences each rule removed. A sentence
        that violates several rules counts for the first.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; settings are out of range or contradictory, or no
            sentence is left.

    References:
        Li et al. 2020, appendix G.2; Montahaei et al. 2019, section 4.1.

    Claims: N10.1.

    Example:
        >>> prepare(["a b a", "a c", "a a a a"], min_count=2, max_length=3)
        Traceback (most recent call last):
            ...
        ValueError: no sentence is left: Removed(rare=2, unknown=0, short=0, long=1)
        >>> list(prepare(["a b a", "a c", "a a a a"], min_count=2, rare="unk"))
        [('a', '<unk>', 'a'), ('a', '<unk>'), ('a', 'a', 'a', 'a')]
    """
    _check_settings(min_count, rare, max_unknown, min_length, max_length)
    corpus = as_corpus(corpus)
    is_rare = np.bincount(corpus.tokens, minlength=corpus.vocab_size) < min_count
    if rare == "unk":  # a corpus may already contain the unknown word
        is_rare |= np.array([word == unknown for word in corpus.vocabulary])
    num_rare = np.diff(_prefix_sums(is_rare[corpus.tokens])[corpus.offsets])
    lengths = corpus.lengths
    allowed = 0 if rare == "drop" else max_unknown
    too_rare = num_rare > (lengths if allowed is None else allowed)
    too_short = ~too_rare & (lengths < min_length)
    too_long = ~too_rare & (lengths > (lengths if max_length is None else max_length))
    removed = Removed(
        **{"rare" if rare == "drop" else "unknown": int(too_rare.sum())},
        short=int(too_short.sum()),
        long=int(too_long.sum()),
    )
    order = np.flatnonzero(~(too_rare | too_short | too_long))
    if not len(order):
        raise ValueError(f"no sentence is left: {removed}")
    if seed is not None:
        order = np.random.default_rng(seed).permutation(order)
    left = corpus[order]
    ids = np.where(is_rare, corpus.vocab_size, np.arange(corpus.vocab_size))
    tokens, vocabulary = _shrink(ids[left.tokens], (*corpus.vocabulary, unknown))
    return Corpus(tokens, left.offsets, vocabulary, corpus.empty_lines, removed)


def _check_settings(min_count, rare, max_unknown, min_length, max_length) -> None:
    check_whole("min_count", min_count, 0)
    if max_unknown is not None:
        check_whole("max_unknown", max_unknown, 0)
    check_whole("min_length", min_length, 0)
    if max_length is not None:
        check_whole("max_length", max_length, min_length)
    if rare not in ("drop", "unk"):
        raise ValueError(f'rare: expected "drop" or "unk", got {rare!r}')
    if rare == "drop" and max_unknown is not None:
        raise ValueError('max_unknown counts replaced words: set rare="unk" with it')


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Raise unless a setting is a whole number from some number on.

    Args:
        name: its name in the error message.
        value: the value passed by the caller.
        least: the least value allowed.

    Raises:
        ValueError: it is another type of number or below.
    """
    if not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name}: expected a whole number from {least} on, got {value!r}"
        )


def _shrink(ids, vocabulary):
    """Renumber the words in use from zero, in the order of the vocabulary."""
    used = np.bincount(ids, minlength=len(vocabulary)) > 0
    tokens = (np.cumsum(used) - 1).astype(np.int32)[ids]
    return tokens, tuple(compress(vocabulary, used.tolist()))


def _prefix_sums(values) -> Int[np.ndarray, " boundaries"]:
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])


def _build(token_lists: Iterable[Sequence[Token]]) -> Corpus:
    ids: defaultdict[Token, int] = defaultdict()
    ids.default_factory = ids.__len__  # a new token gets the next id
    sizes: list[int] = []

    def counted() -> Iterator[Sequence[Token]]:
        for tokens in token_lists:
            sizes.append(len(tokens))
            yield tokens

    flat = chain.from_iterable(counted())
    tokens = np.fromiter(map(ids.__getitem__, flat), np.int32)
    lengths = np.array(sizes, np.int64)
    return Corpus(tokens, _prefix_sums(lengths), tuple(ids))


def _token_lists(texts) -> Iterator[Sequence[Token]]:
    if isinstance(texts, str | bytes | PathLike):
        raise TypeError(
            f"expected a list of sentences, got one {type(texts).__name__}: put the "
            "sentence in a list, or read a file with read_corpus"
        )
    if not isinstance(texts, list | tuple):
        raise TypeError(
            "expected a Corpus, a list of strings or a list of token lists, got "
            f"{type(texts).__name__}"
        )
    strings = bool(texts) and isinstance(texts[0], str)
    if not strings:
        _refuse_sentences_as_tokens(texts[:20])
    for index, text in enumerate(texts):
        if isinstance(text, str) != strings:
            raise TypeError(
                f"text {index} is a {type(text).__name__} and text 0 a "
                f"{type(texts[0]).__name__}: give strings or token lists, not both"
            )
        yield text.split() if strings else _checked(text, "text", index)


def _refuse_sentences_as_tokens(texts) -> None:
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


def _checked(tokens, what: str, number: int) -> Sequence[Token]:
    if not isinstance(tokens, list | tuple):
        raise TypeError(
            f"{what} {number}: expected a list of tokens, got {type(tokens).__name__}"
        )
    for kind in set(map(type, tokens)):
        if not issubclass(kind, str | Integral):
            raise TypeError(
                f"{what} {number}: a token is a {kind.__name__}, expected strings or "
                "integers"
            )
    return tokens


def _lines(path: Path) -> Iterator[str]:
    number = 0
    with path.open("rb") as raw:
        packed = raw.peek(2)[:2] == b"\x1f\x8b"
        try:
            file = gzip.GzipFile(fileobj=raw) if packed else raw
            for number, line in enumerate(file, start=1):
                yield _decoded(line, f"{path}, line {number}").removeprefix(
                    "\ufeff" if number == 1 else ""
                )
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path}, line {number + 1}: the gzip file is broken: {error}"
            ) from None


def _decoded(line: bytes, where: str) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: byte 0x{line[error.start]:02x} at position {error.start + 1} "
            "is not UTF-8; convert the file to UTF-8"
        ) from None
    if "\0" in text:
        raise ValueError(f"{where}: a NUL byte; expected a text file")
    return text.removesuffix("\n").removesuffix("\r")
