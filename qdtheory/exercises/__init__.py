"""Grade the exercises of the notebooks: `check("03.1", answer)` prints one line."""

from qdtheory.exercises.answers import GRADERS
from qdtheory.exercises.grading import NotAttempted


def check(exercise: str, answer: object) -> None:
    """Print whether an answer to an exercise is right, not yet right, or not attempted.

    Args:
        exercise: its number, as the notebook prints it: "03.1".
        answer: any object; None, or a function that returns None, means not attempted.

    Raises:
        ValueError: there is no such exercise.

    Example:
        >>> check("03.1", None)
        03.1 not attempted
        >>> check("03.3", 7)
        03.3 not yet: 7, expected one letter
    """
    if exercise not in GRADERS:
        raise ValueError(
            f"no exercise {exercise!r}; there are: {', '.join(GRADERS)}: "
            "use the number that the notebook gives"
        )
    fault = None
    try:
        if answer is not None:
            fault = GRADERS[exercise](answer)
    except NotAttempted:
        answer = None
    if answer is None:
        print(exercise, "not attempted")
    else:
        print(exercise, f"not yet: {fault}" if fault else "right")
