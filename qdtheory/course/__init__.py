"""Grade the exercises of the notebooks: `check("03.1", answer)` prints one line."""

from qdtheory.course.answers import GRADERS
from qdtheory.course.grading import NotAttempted
from qdtheory.course.mistakes import MISTAKES


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
    if exercise not in GRADERS:
        raise ValueError(
            f"no exercise {exercise!r}; there are: {', '.join(GRADERS)}: "
            "use the number that the notebook gives"
        )
    fault = None
    try:
        if answer is not None:
            fault = GRADERS[exercise](answer)
            if fault:
                fault = known_mistake(exercise, answer) or fault
    except NotAttempted:
        answer = None
    if answer is None:
        print(exercise, "not attempted")
    else:
        print(exercise, f"not yet: {fault}" if fault else "right")


def known_mistake(exercise: str, answer: object) -> str | None:
    """Say what leads on from a wrong answer that is known, or None."""
    for same, words in MISTAKES.get(exercise, ()):
        try:
            if same(answer) is None:
                return words
        except NotAttempted:  # for some arguments the function gives nothing
            return None
    return None
