"""Warnings of texts that seem not to be what was meant, in one line each.

A text is checked when it is read: quotes or brackets round its sentences, list numbers,
marks of a start or an end. Two texts are checked where their words meet: token ids
against strings, capitals against lower case. A text in which nothing is wrong costs a
look at 200 of its sentences, two texts a look at each word of both.
"""

import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import ne
from typing import Any

import numpy as np

from qdtheory.support.records import tell_caller
from qdtheory.text.containers import Token

SAMPLE, MOST = 200, 2_000  # sentences that are looked at, at first and then
NEARLY = 0.9  # share of the sentences from which a mark is warned of
LEAST = 3  # sentences, of which a share says something
EDGE = 8  # tokens: the longest mark that a tokenizer splits, such as < | e o s | >
# Shares of words with capitals: in lower case, in true case, and how far that is from
# capitals throughout.
RARELY, OFTEN, FAR = 0.005, 0.05, 0.4
SOME = 0.01  # of the words have the same word in another case on the other side

CLOSING = {'"': '"', "'": "'", "“": "”", "«": "»", "„": "“", "[": "]", "{": "}"}
MARK = r"</?\w{1,20}>|<\|\w{1,20}\|>|\[[A-Z]{2,10}\]"
START, END = re.compile(MARK), re.compile(rf"(?:{MARK})$")
NUMBER = re.compile(r"[(\[]?\d{1,4}[.):\]](?!\d)")
BULLETS = "-", "*", "•"
# The words for a mark, by where it stands.
WORDING = {
    "start": "begin with {0!r}",
    "number": "begin with a list number",
    "end": "end with {0!r}",
    "round": "begin with {0[0]} and end with {0[1]}",
}
# What a list of texts is called.
ALONE = "candidates"


class TextWarning(UserWarning):
    """Texts look as if something else was meant, such as lines in quotes.

    `warnings.simplefilter("error", qd.text.TextWarning)` raises it as an error.
    """


@contextmanager
def told_later() -> Iterator[None]:
    """Give no `TextWarning`: a report has all of them at its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TextWarning)
        yield


@contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix errors with the name of the texts that they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except TypeError as error:
        hint = "; several candidates go by name, {'model': texts}" * (name == ALONE)
        raise TypeError(f"{name}: {error}{hint}") from None


tell = partial(tell_caller, kind=TextWarning)


def odd_ends(corpus: Any, name: str = "this text") -> tuple[str, ...]:
    """Warn of what stands at the ends of nearly every sentence, beside its text."""
    written = np.flatnonzero(corpus.lengths)
    if len(written) < LEAST:
        return ()
    # Of 200 a share that is .9 comes out as .1 less with a chance of 1e-5.
    if not _often(corpus, spread(written, SAMPLE), NEARLY - 0.1):
        return ()
    shares = _often(corpus, spread(written, MOST), NEARLY)
    return tuple(
        f"{share:.0%} of the sentences of {name} {WORDING[where].format(mark)}, which "
        "counts as text: take it off first or, in Python, by a function as tokenizer"
        for (where, mark), share in shares.items()
    )


def spread(order: np.ndarray, most: int) -> np.ndarray:
    """At most so many of some sentences, evenly spaced."""
    return order[np.linspace(0, len(order) - 1, min(most, len(order))).astype(int)]


def _often(corpus: Any, order: np.ndarray, least: float) -> dict[Any, float]:
    """What is at the ends of at least such a share of some sentences."""
    times = Counter(end for tokens in corpus[order] for end in _ends(tokens))
    shares = {end: count / len(order) for end, count in times.items()}
    return {end: share for end, share in shares.items() if share >= least}


def _ends(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """What is at the ends of one sentence, beside its text, and where."""
    head, tail = tokens[0], tokens[-1]
    if not isinstance(head, str) or not isinstance(tail, str):
        return
    # Joined, since a tokenizer may have split a mark.
    start, end = ("".join(map(str, x)) for x in (tokens[:EDGE], tokens[-EDGE:]))
    first, last = START.match(start), END.search(end)
    if first:
        yield "start", first[0]
    elif head in BULLETS or (head.endswith(":") and len(head) > 1):
        yield "start", head
    elif NUMBER.match(start):
        yield "number", ""
    if last:
        yield "end", last[0]
    # Marks are in brackets themselves, and a quotation mark alone is no pair.
    if not first and not last and len(end) > 1 and CLOSING.get(start[0]) == end[-1]:
        yield "round", start[0] + end[-1]


def unlike(
    ours: Collection[Token], theirs: Collection[Token], name: str = "the candidates"
) -> tuple[str, ...]:
    """Warn of words of two texts that differ where they seem to be the same.

    Example:
        >>> print(*unlike(["A", "CAT"], ["a", "cat"]))
        ... # doctest: +NORMALIZE_WHITESPACE
        100% of the words of the candidates have capitals, and 0% of those of the
        references, where 'A' is not found but for its case: lower-case both
        (lowercase=True)
    """
    if ours is theirs:  # parts of one corpus
        return ()
    words, others = (
        [word for word in side if isinstance(word, str)] for side in (ours, theirs)
    )
    if words and others:
        sides = words, others, name
        return tuple(filter(None, (_numbers(*sides), _case(*sides))))
    # Of the side that has strings they must be all.
    strings, side = (words, ours) if words else (others, theirs)
    if strings and ours and theirs and len(strings) == len(side):
        one, other = next(iter(ours)), next(iter(theirs))
        raise ValueError(
            f"strings against token ids: {one!r:.30} and {other!r:.30} are never "
            "equal; decode the ids, or give both as ids"
        )
    return ()


def _numbers(words: Sequence[str], others: Sequence[str], name: str) -> str:
    """A warning of numerals on one side only, or nothing."""
    ours, theirs = (sum(map(str.isdecimal, x)) / len(x) for x in (words, others))
    if max(ours, theirs) < NEARLY or min(ours, theirs) > 1 - NEARLY:
        return ""
    return (
        f"{ours:.0%} of the words of {name} are numbers, and {theirs:.0%} of those of "
        "the references: token ids? decode them first"
    )


def _case(words: Sequence[str], others: Sequence[str], name: str) -> str:
    """A warning of words that the other side has in another case, or nothing."""
    lower, others_lower = ([*map(str.lower, x)] for x in (words, others))
    ours = sum(map(ne, words, lower)) / len(words)
    theirs = sum(map(ne, others, others_lower)) / len(others)
    least, most = sorted([ours, theirs])
    if (least > RARELY or most < OFTEN) and most - least <= FAR:
        return ""
    # Names have capitals on one side only, without a fault: a word has to be on both.
    exact, folded = {*others}, {*others_lower}
    pairs = zip(words, lower)
    apart = [word for word, same in pairs if same in folded and word not in exact]
    if len(apart) < SOME * len(words):
        return ""
    return (
        f"{ours:.0%} of the words of {name} have capitals, and {theirs:.0%} of those "
        f"of the references, where {apart[0]!r:.30} is not found but for its case: "
        "lower-case both (lowercase=True)"
    )
