"""Lecture 07."""

from typing import Any

import qdtheory as qd
from qdtheory.course.grading import require


def tokens(text: Any) -> list[str]:
    """The words of a text, or the letters of one that is a single word."""
    if not isinstance(text, str):
        return [*map(str, text)]
    return text.split() if " " in text.strip() else [*text]


def loses_by_a_reference(answer: Any) -> bool:
    """BLEU-1 of a candidate falls when a reference is added; none has one token."""
    texts = candidate, reference, added = [*map(tokens, answer)]
    require(min(map(len, texts)) >= 2, "a text has fewer than two tokens")
    few, more = [reference], [reference, added]
    before, after = (qd.text.bleu([candidate], r, 1)[0] for r in (few, more))
    why = "BLEU-1 is {:.3g}, and {:.3g} with the other reference; it must fall"
    return require(after < before - 1e-12, why, before, after)
