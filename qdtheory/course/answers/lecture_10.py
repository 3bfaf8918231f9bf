"""Lecture 10."""

from typing import Any

from qdtheory.course.answers.common import Truth, cnd_between


def has_exchanged_tails(answer: Any) -> Truth:
    """Equal unigrams and bigrams, other trigrams."""
    one, two, three = (cnd_between(answer, n) for n in (1, 2, 3))
    return one == two == 0 < three
