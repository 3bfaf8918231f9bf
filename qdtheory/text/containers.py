"""Texts in the containers that people have them in, and how they become tokens.

Other packages' containers are recognised by their methods, so that none is imported. A
sentence is split at white space, as mteval-v13a, or into characters.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from importlib.metadata import version
from itertools import chain, islice
from numbers import Integral
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from qdtheory.text.defaults import TokenizerName

Token: TypeAlias = str | int | np.integer
Tokenizer: TypeAlias = TokenizerName | Callable[[str], Sequence[Token]]

# What makes Python objects of an array or column: NumPy and pandas, Arrow, Polars.
TO_LIST = ("tolist", "to_pylist", "to_list")
TABLE = ("column_names", "columns")  # what tables and datasets have
PLAIN = frozenset((str, int))
WANTED = "expected a Corpus, a list of strings or a list of token lists"


def rows(texts: Any) -> Iterable[Any]:
    """Read the rows of a container; refuse what is iterable, but not over texts."""
    if isinstance(texts, list | tuple):
        return texts
    found = kind = type(texts).__name__
    if isinstance(texts, str | bytes | bytearray | PathLike):
        raise TypeError(
            f"expected a list of sentences, got one {kind}: put the sentence in a "
            "list, or read a file with read_corpus"
        )
    if hasattr(texts, "read"):
        found = f"the file {kind}: read_corpus reads files"
    elif any(hasattr(texts, x) for x in TABLE):
        found = f'a {kind}: give one column, as in table["text"]'
    elif isinstance(texts, Mapping):
        keys = ", ".join(map(repr, islice(texts, 5)))
        found = f"a {kind}: give one of its values, of {keys}"
    elif isinstance(texts, Set):
        found = f"a {kind}, which holds no sentence twice: give all sentences in a list"
    elif getattr(texts, "ndim", 1) != 1:
        found = (
            f"a {kind} of shape {texts.shape}: give one column, or token lists by "
            ".tolist()"
        )
    else:
        for name in TO_LIST:
            if hasattr(texts, name):
                return getattr(texts, name)()
        if isinstance(texts, Iterable):
            return texts
    raise TypeError(f"{WANTED}, got {found}")


def token_lists(
    texts: Iterable[Any],
    split: Callable[[str], Sequence[Token]],
    what: str = "text",
    start: int = 0,
) -> tuple[bool, Iterator[Sequence[Token]]]:
    """Split the rows of a container if they are strings, or check its token lists."""
    remaining = iter(texts)
    first = [*islice(remaining, 20)]
    numbered = enumerate(chain(first, remaining), start)
    if not first or isinstance(first[0], str):
        return True, _split(numbered, split, what)
    # The shape of references in other packages.
    inner = [t for text in first if isinstance(text, list | tuple) for t in text]
    spaced = sum(isinstance(token, str) and len(token.split()) > 1 for token in inner)
    if 2 * spaced > len(inner):
        raise TypeError(
            f"expected a list of strings or of token lists, but tokens hold spaces, "
            f"such as {inner[0]!r:.40}: lists of references for each candidate, as in "
            "sacrebleu? Here all candidates share one list of references; join them "
            "into it"
        )
    return False, _checked(numbered, what)


def _split(numbered, split, what: str) -> Iterator[Sequence[Token]]:
    own = split is not str.split
    for number, text in numbered:
        if not isinstance(text, str):
            raise _bad_row(text, what, number, "string")
        tokens = split(text)
        yield as_tokens(tokens, f"tokenizer, {what}", number) if own else tokens


def _checked(numbered, what: str) -> Iterator[Sequence[Token]]:
    for place, (number, text) in enumerate(numbered):
        if isinstance(text, np.ndarray):
            text = text.tolist()
        if not isinstance(text, list | tuple):
            wanted = "list of tokens" if place else "string or a list of tokens"
            raise _bad_row(text, what, number, wanted)
        yield as_tokens(text, what, number)


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


def as_tokens(tokens: Any, what: str, number: int) -> Sequence[Token]:
    """Raise unless something is a list of strings or integers."""
    if not isinstance(tokens, list | tuple):
        kind = type(tokens).__name__
        raise TypeError(f"{what} {number}: expected a list of tokens, got {kind}")
    if PLAIN.issuperset(map(type, tokens)):  # nearly always, and told at once
        return tokens
    for kind in set(map(type, tokens)):
        if not issubclass(kind, str | Integral):
            raise TypeError(
                f"{what} {number}: a token is a {kind.__name__}, expected strings or "
                "integers"
            )
    return tokens


# --- Tokenizers ---------------------------------------------------------------------

_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_APART = re.escape("".join(sorted({*string.punctuation} - {*"',-."})))
_RULES = [
    (re.compile(rf"([{_APART}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
]


def mteval_13a(sentence: str) -> list[str]:
    r"""Split punctuation from words as mteval-v13a, the tokenizer "13a" of sacrebleu.

    Four entities of SGML become characters. ASCII punctuation stands alone, but an
    apostrophe stays in its word, a period or comma between digits in its number, and a
    hyphen in its word unless a digit comes before it.

    References:
        NIST's script mteval-v13a, for Western languages; Post 2018, section 3.

    Example:
        >>> mteval_13a("It's 3.5, isn't it? (3-4 well-fed cats.)")
        ... # doctest: +NORMALIZE_WHITESPACE
        ["It's", '3.5', ',', "isn't", 'it', '?', '(', '3', '-', '4', 'well-fed',
         'cats', '.', ')']
    """
    sentence = sentence.replace("<skipped>", "")
    for entity, character in _ENTITIES.items():
        sentence = sentence.replace(entity, character)
    sentence = f" {sentence} "
    for pattern, replacement in _RULES:
        sentence = pattern.sub(replacement, sentence)
    return sentence.split()


def characters(sentence: str) -> list[str]:
    """Split a sentence into its characters, without the white space between them."""
    return [*"".join(sentence.split())]


TOKENIZERS: dict[str, Callable[[str], Sequence[Token]]] = {
    "whitespace": str.split,
    "13a": mteval_13a,
    "characters": characters,
}


def splitter(tokenizer: Tokenizer, lowercase: bool = False) -> Callable[[str], Any]:
    """Look up a tokenizer by its name."""
    split: Callable[[str], Sequence[Token]] | None
    split = TOKENIZERS.get(tokenizer) if isinstance(tokenizer, str) else tokenizer
    if not callable(split):
        raise ValueError(
            f"tokenizer: expected {', '.join(map(repr, TOKENIZERS))} or a function, "
            f"got {tokenizer!r}"
        )
    return (lambda sentence: split(sentence.lower())) if lowercase else split


def described(tokenizer: Tokenizer, lowercase: bool = False) -> str:
    """Name a tokenizer as the line for a paper does."""
    if not isinstance(tokenizer, str):
        name = getattr(tokenizer, "__name__", type(tokenizer).__name__)
    else:
        name = "white space" if tokenizer == "whitespace" else tokenizer
    return f"{name}, lower-cased" if lowercase else name


def signature_of(choices: str, tokenizers: Iterable[str | None]) -> str:
    """Name each choice that changes a number, in one line as sacrebleu's.

    Example:
        >>> signature_of("level:0.95", ["13a, lower-cased"]).partition("|version:")[0]
        'level:0.95|tok:13a|case:lower'
    """
    split = [(x or "none").partition(", lower-cased") for x in tokenizers]
    by = "+".join(sorted(name for name, _, _ in split)).replace(" ", "")
    case = "lower" if any(mark for _, mark, _ in split) else "mixed"
    return f"{choices}|tok:{by}|case:{case}|version:{version('qdtheory')}"
