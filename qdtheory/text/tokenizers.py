"""How a sentence becomes tokens: at white space, as mteval-v13a, or by characters."""

import re
import string
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from qdtheory.text.defaults import TokenizerName

Token: TypeAlias = str | int | np.integer
Tokenizer: TypeAlias = TokenizerName | Callable[[str], Sequence[Token]]

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


def splitter(
    tokenizer: Tokenizer, lowercase: bool = False
) -> Callable[[str], Sequence[Token]]:
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
