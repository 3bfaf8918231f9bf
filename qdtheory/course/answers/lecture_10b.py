"""Lecture 10b."""

from typing import Any

import qdtheory as qd
from qdtheory.course.answers.common import Truth, cnd_between


def copies(answer: Any) -> Truth:
    """Candidates of BLEU-2 = 1 whose bigrams are not those of the references."""
    bleu = qd.text.bleu(*answer, max_order=2)[1]
    return bleu > 1 - 1e-12 and cnd_between(answer, 2) > 0.1 - 1e-12
