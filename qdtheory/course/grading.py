"""Four kinds of graders: a statement, a number, a function, an example to be tested."""

import hashlib
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from qdtheory.formulas.expressions import Expression

# A grader returns what is wrong with an answer, or None if it is right.
Grader = Callable[[object], str | None]


class NotAttempted(Exception):
    """The answer is a function that returns None."""


class Fault(ValueError):
    """What is wrong with an answer, in words that lead on."""


def statement(exercise: str, *expected: str) -> Grader:
    """Grade a wrong statement, and the claim that refutes it.

    A letter alone is guessed in four tries. The table holds digests, so that it does
    not reveal the answer; a letter that is right with another claim is not told from
    a wrong letter.
    """

    def grade(answer: object) -> str | None:
        text = answer.strip() if isinstance(answer, str) else ""
        if re.fullmatch("[A-Da-d]", text):
            return f"{text}, expected with it the claim that refutes it: '{text} N1.1'"
        if not STATEMENT.fullmatch(text):
            return f"{shown(answer)}, expected a letter and a claim, like 'A N1.1'"
        if digest(exercise, text) in expected:
            return None
        return (
            f"{shown(text)}, expected another statement, or another claim: read the "
            "claim's line, and see which statement cannot hold beside it"
        )

    return grade


# However it is written: "A N1.1", "a, n1.1", "A (N1.1)".
STATEMENT = re.compile(r"\W*([A-D])\W*([TLNE]\d+[a-z]?\.\d+)\W*", re.IGNORECASE)


def digest(exercise: str, answer: str) -> str:
    """Digest of a letter and a claim, stored in the table instead of them."""
    match = STATEMENT.fullmatch(answer.strip().upper())
    if match is None:
        raise ValueError(f"{answer!r}: expected a letter and a claim, like 'A N1.1'")
    text = " ".join([exercise, *match.groups()])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def number(expected: float, tolerance: float) -> Grader:
    """Grade a number to a relative tolerance, which is absolute for the number 0."""

    def grade(answer: object) -> str | None:
        try:
            given = as_numbers(answer)
            if given.ndim:
                raise TypeError("not one number")
        except (TypeError, ValueError):
            return f"{shown(answer)}, expected one number"
        missed = abs(given - expected)
        if missed <= tolerance * (abs(expected) or 1):
            return None
        if missed <= 1e-3 * abs(expected) and expected % 1:
            return f"{shown(answer)}: close; give the term, or more digits"
        return f"{shown(answer)}, expected another number"

    return grade


def function(
    reference: Callable[..., ArrayLike], cases: Sequence[tuple], tolerance: float
) -> Grader:
    """Grade a function by its values, to a tolerance relative plus absolute."""

    def grade(answer: object) -> str | None:
        if not callable(answer):
            return f"{shown(answer)}, expected a function"
        for arguments in cases:
            call = f"your function of ({', '.join(map(shown, arguments))})"
            try:
                value = answer(*arguments)
            except Exception as error:  # the reader's own function may raise anything
                return f"{call} raised {type(error).__name__}: {shown(error)}"
            if value is None:
                raise NotAttempted
            try:
                given = as_numbers(value)
            except (TypeError, ValueError):
                return f"{call} gave {shown(value)}, expected numbers"
            expected = np.asarray(reference(*arguments))
            if given.shape != expected.shape:
                size = f"shape {expected.shape}" if expected.shape else "one number"
                return f"{call} gave {shown(value)}, expected {size}"
            if not np.allclose(given, expected, rtol=tolerance, atol=tolerance):
                return f"{call} gave {shown(value)}, expected another value"
        return None

    return grade


def witness(test: Callable[..., object], requirement: str) -> Grader:
    """Grade an example by a test, whose `Fault` says what is wrong with it."""

    def grade(answer: object) -> str | None:
        try:
            passed = bool(test(answer))
        except Fault as fault:
            return f"{shown(answer)}: {fault}"
        except Exception:  # not an example of the kind that the test reads
            passed = False
        return None if passed else f"{shown(answer)}, expected {requirement}"

    return grade


# --- reading answers -----------------------------------------------------------


def as_numbers(answer: object) -> np.ndarray:
    """Convert an answer of numbers to float64; text that looks like one is none."""
    if np.asarray(answer).dtype.kind in "SU":  # NumPy would read "0.5"
        raise TypeError("text")
    return np.asarray(answer, dtype=float)


def as_distribution(answer: object, size: int | None = None) -> np.ndarray:
    """Convert an answer to a probability vector, of this size if one is given."""
    try:
        q = as_numbers(answer)
    except (TypeError, ValueError):
        raise Fault("expected probabilities, a list of numbers") from None
    if q.ndim != 1 or size not in (None, q.size):
        many = f"{q.size} numbers" if q.ndim == 1 else f"a table of shape {q.shape}"
        raise Fault(f"{many}, expected {size or 'one row of'} probabilities")
    if not (q >= 0).all():
        raise Fault("a probability is negative, or no number")
    if abs(q.sum() - 1) > 1e-9:
        raise Fault(f"the sum is {q.sum():.9g}, expected 1; qd.normalize(q) divides")
    return q


def as_formula(answer: object) -> Expression:
    """Convert an answer, text, to a formula in x."""
    if not isinstance(answer, str):
        raise Fault('expected a formula in x as text, like "sqrt(x)"')
    try:
        return Expression(answer)
    except ValueError as error:
        raise Fault(str(error)) from None


def shown(answer: object, width: int = 60) -> str:
    """Format an answer in one short line."""
    try:
        text = " ".join(str(answer).split())
    except Exception:  # an answer may be anything
        text = type(answer).__name__
    if callable(answer):
        text = "a function"
    return text if len(text) <= width else text[:width] + " ..."
