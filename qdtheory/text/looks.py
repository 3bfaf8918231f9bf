"""Warnings of texts that seem not to be what was meant, in one line each.

One text: marks such as <pad>, list numbers, quotes round its sentences. Two: marks and
words of one alone, and words that a map, such as lower case, turns into the other's.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial, reduce
from operator import methodcaller
from typing import Any
from unicodedata import normalize

import numpy as np

SAMPLE, LEAST = 200, 3  # sentences that are looked at
NEARLY, SOME = 0.9, 0.05  # shares of them that are told: of any text, of one of two
FEWER, FAR = 10, 0.5  # so many times fewer on the other side; or so much less
CLOSING = {'"': '"', "'": "'", "“": "”", "«": "»", "„": "“", "[": "]", "{": "}"}
MARK = re.compile(
    r"</?\w{1,20}/?>|<\|\w{1,20}\|>|\[/?[A-Z]{2,10}\]|&[a-z]{2,6};|[Ġ▁]|```|\*\*"
)
THINK = re.compile("</?(think|thinking|thought|reasoning)>")
LABEL, NUMBER = re.compile(r"[-*•#]+|\S+:"), re.compile(r"[(\[]?\d{1,4}[.):\]](?!\d)")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{5}")
TAKE, ALIKE = "which counts as text: take it off first", "split both alike"
DO = {
    "have": f'the other side does not: take marks off, {ALIKE} (tokenizer="13a")',
    "reason in": "which counts as text: take off all up to </think> first",
    "have no space between": 'each is one token: split them (tokenizer="characters")',
}
# What words are mapped by, from which share of them on, and what to do about it.
CURLY = methodcaller("replace", "\u2019", "'")
CUT = re.compile("(?<=[^\\W\\d])[.,;:!?)\"']+(?=\0|$)")
MAPS: tuple[tuple[str, Any, float, str], ...] = (
    ("have other quotes", CURLY, 4e-4, "use one kind"),
    ("are in another Unicode form", partial(normalize, "NFKC"), 4e-4, "use NFKC"),
    ("have capitals", str.lower, 0.01, "lower-case both (lowercase=True)"),
    ("end with punctuation", partial(CUT.sub, ""), 0.02, f'{ALIKE} (tokenizer="13a")'),
)


def seen(corpus: Any) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many of some sentences have which looks, and these without their spaces."""
    order = np.flatnonzero(corpus.lengths)
    if len(order) > SAMPLE:
        some = np.random.default_rng(0).integers(len(order), size=SAMPLE)
        order = order[np.sort(some)]
    texts = [[*map(str, tokens)] for tokens in corpus[order]]
    looks = Counter(look for tokens in texts for look in _looks(tokens))
    return looks, ["".join(x).lower().replace("\u2019", "'") for x in texts]


def _looks(tokens: list[str]) -> Iterator[tuple[str, str]]:
    joined, head = "".join(tokens), tokens[0]  # since a tokenizer may split a mark
    marks = {*MARK.findall(joined)} | {"-100"}.intersection(tokens)
    yield from (("reason in" if THINK.match(x) else "hold", x) for x in sorted(marks))
    if not marks and len(joined) > 1 and CLOSING.get(joined[0]) == joined[-1]:
        yield "stand in", joined[0] + joined[-1]
    elif not marks:
        odd = {x for x in tokens if x.isupper() or not x.isalnum()}
        yield from (("have", x) for x in sorted(odd) if x.isascii())
    if LABEL.fullmatch(head) or NUMBER.match(joined):
        yield "begin with", head if LABEL.fullmatch(head) else "a list number"
    if 2 * len([*filter(UNSPACED.match, tokens)]) > len(tokens):
        yield "have no space between", "words"
    if not joined.strip("-0123456789"):
        yield "have", "numbers alone"


def odd_looks(name: str, ours: Any, *others: Any) -> tuple[str, ...]:
    """Warn of what nearly all sentences have beside their text, or one side alone."""
    (looks, texts), found = ours, {}
    for (verb, x), times in looks.most_common() if len(texts) >= LEAST else ():
        share = times / len(texts)
        rare = any(
            FEWER * max(1, there[verb, x], sum(x.lower() in y for y in side))
            <= share * len(side)
            for there, side in others * (verb[0] in "hr" and share >= SOME)
        )
        if rare or (share >= NEARLY and verb != "have"):
            found.setdefault(verb, [f"{share:.0%}"]).append(x)
    each = ((share, verb, ", ".join(xs[:3])) for verb, (share, *xs) in found.items())
    who = f"of the sentences of {name}"
    return tuple(f"{a} {who} {v} {xs}, {DO.get(v, TAKE)}" for a, v, xs in each)


def unlike(ours: Any, theirs: Any, name: str = "the candidates") -> tuple[str, ...]:
    """Warn of words of two vocabularies that are the same but for a simple map."""
    if ours is theirs or not (ours and theirs):  # parts of one corpus
        return ()
    words = [{x for x in side if isinstance(x, str)} for side in (ours, theirs)]
    if sorted([len(words[0]) / len(ours), len(words[1]) / len(theirs)]) == [0, 1]:
        one, other = next(iter(ours)), next(iter(theirs))
        raise ValueError(
            f"strings against token ids: {one!r:.30} and {other!r:.30} are never "
            "equal; decode the ids, or give both as ids"
        )
    said, alone = [], [[*(words[0] - words[1])], [*(words[1] - words[0])]]
    joined = [*map("\0".join, alone)]  # mapped at once
    for verb, change, least, do in MAPS:
        mapped = [change(side).split("\0") for side in joined]
        new = [[x != y for x, y in zip(*each)] for each in zip(alone, mapped)]
        low, high = sorted(shares := [sum(side) / max(len(side), 1) for side in new])
        if low >= high / FEWER and high - low <= FAR:
            continue
        i = shares.index(high)
        full = [reduce(lambda x, y: y[1](x), MAPS, side).split("\0") for side in joined]
        known = {x: x for x in words[1 - i]} | dict(zip(full[1 - i], alone[1 - i]))
        each = zip(alone[i], full[i], new[i])
        two = [(x, known[y]) for x, y, z in each if z and y in known]
        if len(two) > max(least * len(words[i]), FEWER * (high <= FAR)):
            (x, y), (a, b) = min(two), (f"{share:.0%}" for share in shares)
            told = f"{a} of the words of {name} alone {verb}, {b} of those of the other"
            said.append(f"{told} side alone: {x!r:.30} and {y!r:.30} are two; {do}")
    return tuple(said)
