"""Grade the exercises of the notebooks: `check("03.1", answer)` prints one line."""

import os
import sys
from contextlib import suppress

from qdtheory.course.exercises import EXERCISES, grader
from qdtheory.course.grading import NotAttempted
from qdtheory.course.shown import claim as claim
from qdtheory.course.shown import tabulate as tabulate

MARK = "QDTHEORY_MARK"
# What `qdtheory grade --run` knows a verdict by: a cell can print all but this.
_MARK = os.environ.pop(MARK, "")


def check(exercise: str, answer: object) -> None:
    """Print whether an answer to an exercise is right, not yet right, or not attempted.

    What is not yet right gets a reason; a mistake that many make, a hint that leads on.

    Args:
        exercise: its number, as the notebook prints it: "03.1".
        answer: any object; None, or a function that returns None, means not attempted.

    Raises:
        ValueError: there is no such exercise.

    Example:
        >>> check("03.1", None)
        03.1 not attempted
        >>> check("03.3", 7)
        03.3 not yet: 7, expected a letter and a claim, like 'A N1.1'
    """
    if not isinstance(exercise, str) or exercise not in EXERCISES:
        raise ValueError(
            f"no exercise {exercise!r}; there are: {', '.join(EXERCISES)}: "
            "use the number that the notebook gives"
        )
    verdict = why = "not attempted"
    with suppress(NotAttempted):
        if answer is not None:
            fault = grader(exercise)(answer)
            verdict = "not yet" if fault else "right"
            why = f"not yet: {hint(exercise, answer) or fault}" if fault else "right"
    print(exercise, why)
    if _MARK:
        publish = sys.modules["IPython"].get_ipython().display_pub.publish
        publish({_MARK: f"{exercise} {verdict}"})


def hint(exercise: str, answer: object) -> str | None:
    """Say what leads on from a wrong answer that many give, or None."""
    with suppress(NotAttempted):  # for some arguments the function gives nothing
        for mistake in EXERCISES[exercise].get("mistakes", ()):
            if grader(exercise, mistake)(answer) is None:
                return mistake["hint"]
    return None
