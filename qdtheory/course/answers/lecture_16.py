"""Lecture 16."""

from typing import Any

from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import as_numbers


def fits_at_a_kink(answer: Any) -> Truth:
    """Scores that fit -max at (.4, .4, .15, .05), and differ on the first two texts."""
    first, second, *rest = as_numbers(answer)
    level = len(rest) == 2 and rest[0] == rest[1]
    return level and first != second and rest[0] <= min(first, second)
