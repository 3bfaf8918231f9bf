"""Lecture 22b."""

from typing import Any

from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import as_numbers


def luck_wins(answer: Any) -> Truth:
    """The first model has the best run, and is worse by more than the seeds' spread."""
    lucky, steady = as_numbers(answer)
    spread = max(row.std(ddof=1) for row in (lucky, steady))
    worse = lucky.mean() - steady.mean() > spread
    return worse and lucky.size == 7 and lucky.min() < steady.min()
