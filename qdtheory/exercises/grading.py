"""Four kinds of graders: a letter, a number, a function, an example to be tested."""

import hashlib
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

# A grader returns what is wrong with an answer, or None if it is right.
Grader = Callable[[object], str | None]


class NotAttempted(Exception):
    """The answer is a function that returns None."""


def letter(exercise: str, expected: str) -> Grader:
    """Grade a letter by its digest, so that the table does not reveal it."""

    def grade(answer: object) -> str | None:
        if not isinstance(answer, str) or len(answer.strip()) != 1:
            return f"{shown(answer)}, expected one letter"
        right = digest(exercise, answer) == expected
        return None if right else f"{shown(answer)}, expected another letter"

    return grade


def digest(exercise: str, answer: str) -> str:
    """Digest of a letter, stored in the table instead of the letter.

    Example:
        >>> digest("00.0", "A") == digest("00.0", " a ")
        True
    """
    text = f"{exercise} {answer.strip().upper()}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def number(value: float | Callable[[], ArrayLike], tolerance: float) -> Grader:
    """A number, or a function of no argument that computes it, to a relative tolerance.

    For the number 0 the tolerance is absolute.
    """

    def grade(answer: object) -> str | None:
        try:
            found = as_numbers(answer)
            if found.ndim:
                raise TypeError("not one number")
        except (TypeError, ValueError):
            return f"{shown(answer)}, expected one number"
        expected = float(np.asarray(value() if callable(value) else value))
        if abs(found - expected) <= tolerance * (abs(expected) or 1):
            return None
        return f"{shown(answer)}, expected another number, to {tolerance:g}"

    return grade


def function(
    reference: Callable[..., ArrayLike],
    inputs: Callable[[], Iterable[tuple]],
    tolerance: float,
) -> Grader:
    """A function that agrees with the library's own route.

    Args:
        reference: the function to compare with.
        inputs: a function of no argument that gives tuples of arguments.
        tolerance: relative plus absolute.
    """

    def grade(answer: object) -> str | None:
        if not callable(answer):
            return f"{shown(answer)}, expected a function"
        for arguments in inputs():
            call = f"your function of ({', '.join(map(shown, arguments))})"
            try:
                value = answer(*arguments)
            except Exception as error:  # the reader's own function may raise anything
                return f"{call} raised {type(error).__name__}: {shown(error)}"
            if value is None:
                raise NotAttempted
            try:
                found = as_numbers(value)
            except (TypeError, ValueError):
                return f"{call} gave {shown(value)}, expected numbers"
            expected = np.asarray(reference(*arguments))
            if found.shape != expected.shape:
                size = f"shape {expected.shape}" if expected.shape else "one number"
                return f"{call} gave {shown(value)}, expected {size}"
            if not np.allclose(found, expected, rtol=tolerance, atol=tolerance):
                return f"{call} gave {shown(value)}, expected another value"
        return None

    return grade


def witness(test: Callable[..., object], hint: str) -> Grader:
    """Grade an example of the reader's own by a test.

    Args:
        test: whether the example is valid; raising an exception counts as failure.
        hint: the requirement, printed if the example fails.
    """

    def grade(answer: object) -> str | None:
        try:
            passed = bool(test(answer))
        except Exception:  # not an example of the kind that the test reads
            passed = False
        return None if passed else f"{shown(answer)}, expected {hint}"

    return grade


# --- reading answers -----------------------------------------------------------


def as_numbers(answer: object) -> np.ndarray:
    """Convert an answer of numbers to float64.

    Raises:
        TypeError: text, or anything else that is not a number.
        ValueError: rows of several lengths.
    """
    if np.asarray(answer).dtype.kind in "SU":  # NumPy would read "0.5"
        raise TypeError("text")
    return np.asarray(answer, dtype=float)


def as_distribution(answer: object, size: int | None = None) -> np.ndarray:
    """Convert an answer to a probability vector.

    Raises:
        ValueError: it is not a probability vector, or has another size.
    """
    q = as_numbers(answer)
    well = q.ndim == 1 and size in (None, q.size) and (q >= 0).all()
    if not well or abs(q.sum() - 1) > 1e-9:
        raise ValueError("not a probability vector")
    return q


def shown(answer: object, width: int = 60) -> str:
    """Format an answer in one short line."""
    try:
        text = " ".join(str(answer).split())
    except Exception:  # an answer may be anything
        text = type(answer).__name__
    if callable(answer):
        text = "a function"
    return text if len(text) <= width else text[:width] + " ..."
