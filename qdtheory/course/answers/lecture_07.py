"""Lecture 07."""

from typing import Any

import qdtheory as qd
from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import require


def tokens(text: Any) -> list[str]:
    """The words of a text, or the letters of one that is a single word."""
    if not isinstance(text, str):
        return [*map(str, text)]
    return text.split() if " " in text.strip() else [*text]


def loses_by_a_reference(answer: Any) -> Truth:
    """BLEU-1 of a candidate falls when a reference is added; none has one token."""
    candidate, reference, added = map(tokens, answer)
    few, more = [reference], [reference, added]
    lengths = [len(text) for text in (candidate, *more)]
    require(min(lengths) >= 2, "a text has fewer than two tokens")
    before, after = (qd.text.bleu([candidate], r, 1)[0] for r in (few, more))
    why = f"BLEU-1 is {before:.3g}, and {after:.3g} with the other reference"
    require(after < before - 1e-12, f"{why}; it must fall")
    return True
