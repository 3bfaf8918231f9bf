"""No answer is no attempt, and every grader refuses wrong answers."""

import numpy as np
import pytest

from qdtheory.course import check
from qdtheory.course.answers import GRADERS


class Unprintable:
    def __str__(self):
        raise RuntimeError("no text")


WRONG = (
    *(Unprintable(), "no", "?", [], {}, np.inf, -1234.5, np.full((3, 2), np.nan)),
    *([[1], [1, 2]], lambda: 1, lambda *_: "text"),
    *(lambda *_: 1 / 0, object, np),
)


@pytest.mark.parametrize("exercise", GRADERS)
def test_nothing_is_no_attempt_and_a_wrong_answer_is_refused(exercise, capsys):
    check(exercise, None)
    for answer in WRONG:
        check(exercise, answer)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"{exercise} not attempted"
    assert len(others) == len(WRONG)
    assert all(line.startswith(f"{exercise} not yet: ") for line in others)


def test_an_unknown_exercise_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"no exercise '99.1'; there are: 01.0, 01.1"):
        check("99.1", None)
