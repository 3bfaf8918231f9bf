"""Four kinds of graders: a statement, a number, a function, an example to be tested."""

import dis
import hashlib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from functools import partial
from typing import Any

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
        pick, claims = vote(answer)
        if pick and not claims:
            return f"{pick}, expected with it the claim that refutes it: '{pick} N1.1'"
        if not pick:
            return f"{shown(answer)}, expected a letter and a claim, like 'A N1.1'"
        if {digest(exercise, f"{pick} {claim}") for claim in claims} <= {*expected}:
            return None
        return (
            f"{shown(answer)}, expected another statement, or another claim: read the "
            "claim's line, and see which statement cannot hold beside it"
        )

    return grade


CLAIM = re.compile(r"([TLNE]) ?(\d+[A-Z]?\.\d+)(?!\.?\d)", re.IGNORECASE)
# A letter that an answer begins with, and none that it may be instead.
FIRST = re.compile(r"\W*([A-D])\b(?!\s*(?:or|and|[,/])?\s*[A-D]\b)", re.IGNORECASE)


def vote(answer: object) -> tuple[str, list[str]]:
    """Letter, "" if there is not one, and claims: of "a, n1.1" or ("A", "N1.1")."""
    one = isinstance(answer, str) or not np.iterable(answer)
    parts: Any = [answer] if one else answer
    text = " ".join(part for part in parts if isinstance(part, str))
    first = FIRST.match(CLAIM.sub(" ", text))
    return first[1].upper() if first else "", ["".join(x) for x in CLAIM.findall(text)]


def digest(exercise: str, answer: str) -> str:
    """Digest of a letter and a claim, stored in the table instead of them."""
    letter, claims = vote(answer)
    if not letter or len(claims) != 1:
        raise ValueError(f"{answer!r}: expected a letter and a claim, like 'A N1.1'")
    text = f"{exercise} {letter} {claims[0].upper()}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def number(expected: float, tolerance: float) -> Grader:
    """Grade a number: it is near to a relative tolerance, or well rounded.

    The tolerance is absolute for the number 0. A number is well rounded if it has two
    digits or more, and those of the right one.
    """

    def is_right(given: Decimal, near: float) -> bool:
        digits = len(given.normalize().as_tuple().digits)
        rounded = digits > 1 and float(f"{expected:.{digits - 1}e}") == float(given)
        return rounded or abs(float(given) - expected) <= near * (abs(expected) or 1)

    def grade(answer: object) -> str | None:
        try:
            given = as_number(answer)
        except (TypeError, ValueError, OverflowError):
            why = "expected one number, such as 2/3 or .667"
            return f"{shown(answer)}, {why}; Python computes a term without quotes"
        exact, near = Decimal(str(given)), least_tolerance(given, tolerance)
        if is_right(exact, near):
            return None
        why = difference(*np.array([[given], [expected]], float))
        if is_right(exact.scaleb(-2), near):
            why = "100 times the right value: these are percent"
        return f"{shown(answer)}: {why}"

    return grade


def function(
    reference: Callable[..., ArrayLike], cases: Sequence[tuple], tolerance: float
) -> Grader:
    """Grade a function by its values, to a tolerance relative plus absolute."""

    def agree(given: Any, expected: ArrayLike, value: object = None) -> bool:
        near = least_tolerance(value, tolerance)
        return np.allclose(given, expected, rtol=near, atol=tolerance)

    def grade(answer: object) -> str | None:
        if not callable(answer):
            return f"{shown(answer)}, expected a function: its name, without arguments"
        values = []
        for arguments in cases:
            call = f"your function of ({', '.join(map(shown, arguments))})"
            try:
                value = answer(*deepcopy(arguments))  # it may change them
            except Exception as error:  # the reader's own function may raise anything
                return f"{call} raised {type(error).__name__}: {shown(error)}"
            if value is None:
                if is_stub(answer):
                    raise NotAttempted
                return f"{call} gave None: end it with `return` and the value"
            try:
                given = as_numbers(value)
            except (TypeError, ValueError, OverflowError):
                return f"{call} gave {shown(value)}, expected real numbers"
            expected = np.asarray(reference(*arguments))
            if expected.ndim < 2 and given.size == expected.size:
                given = given.reshape(expected.shape)  # a column, or a list of one
            if given.shape != expected.shape:
                size = f"shape {expected.shape}" if expected.shape else "one number"
                return f"{call} gave {shown(value)}, expected {size}"
            values.append((call, given, expected, value))
        wrong = [row for row in values if not agree(*row[1:])]
        if not wrong:
            return None
        call, given, expected, value = wrong[0]
        _, *columns, _ = zip(*values, strict=True)
        why = difference(*(np.concatenate([*map(np.ravel, x)]) for x in columns))
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            # If these are two, and it takes them so.
            if all(agree(answer(*deepcopy((b, a))), reference(a, b)) for a, b in cases):
                why = "right with its arguments exchanged"
        if expected.ndim and all(agree(*map(np.sort, row[1:3])) for row in values):
            why = "the right numbers in another order"
        return f"{call} gave {shown(value)}: {why}"

    return grade


# A number that is wrong by one of these factors counts something twice, or not at all.
FACTORS = np.array([2, 3, 4, 10, 100, 1 / 2, 1 / 3, 1 / 4, 1 / 10, 1 / 100])


def difference(x: np.ndarray, y: np.ndarray) -> str:
    """Say how one or more numbers differ from the right ones."""
    if not np.isfinite(x).all():
        return "not a finite number"
    alike = partial(np.allclose, rtol=1e-4, atol=1e-9)
    apart, largest = x - y, abs(y).argmax()
    factor = x[largest] / y[largest] if y.any() else 0.0
    told = factor and (x.size > 1 or min(abs(FACTORS - abs(factor))) < 1e-4)
    broken = x.size == 1 and bool(y % 1)
    close = broken and abs(apart[0]) <= 2e-2 * abs(y[0])
    rounded = float(f"{x[0]:.3e}") == x[0] if close else float(f"{y[0]:.0e}") == x[0]
    shifted = alike(apart, apart[0]) and (x.size > 1 or alike(abs(apart), 1))
    mixed = apart.min() < 0 < apart.max()
    reasons = (
        (broken and rounded, "close; give the term, or more digits"),
        (close, f"close, but off by {abs(apart[0]):.1g}"),
        (alike(x, y), f"close, but off by up to {abs(apart).max():.1g}; do not round"),
        (alike(x, -y), "the sign is the other one"),
        (alike(x * np.log(2), y), "this is in bits; logarithms are natural here"),
        (told and alike(x, factor * y), f"{factor:.3g} times the right value"),
        (alike(x, 1 - y), "1 minus the right value"),
        (alike(x * y, 1), "1 over the right value"),
        (shifted, f"right up to a constant, {apart[0]:.3g}"),
        (mixed, "too large for some arguments, too small for others"),
        (apart.max() > 0, "too large"),
        (True, "too small"),
    )
    return next(reason for holds, reason in reasons if holds)


def is_stub(answer: Callable) -> bool:
    """Whether a function does nothing but return None, as those to be filled in."""
    code = getattr(answer, "__code__", None)
    does = {step.opname for step in dis.get_instructions(code)} if code else set()
    return does <= {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}


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


def as_number(answer: object) -> np.number:
    """Convert an answer to one number; text is a term without x, like "2/3" or "80%".

    A unit may follow, as in "84 texts". A float32 stays one: its digits are fewer.
    """
    if isinstance(answer, str):
        text = re.sub(r"^(\W?0?),(?=\d+%?$)", r"\1.", answer.strip(" \n=~≈$"))  # 0,8
        text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)  # 1,365
        text = re.sub(r"(?<=\d) *(%|per ?cent)$", "e-2", text)
        formula = Expression(re.sub(r"(?<=\d) +(?!bits?$)[a-z]{3,}$", "", text))
        if formula(0.25) != formula(0.5):
            raise TypeError("not a number")
        answer = formula(0.25)
    (given,) = as_numbers(answer).ravel()
    return np.float32(given) if least_tolerance(answer, 0.0) else given


def least_tolerance(answer: object, tolerance: float) -> float:
    """A tolerance, at least 1e-6 for an answer of float32."""
    single = getattr(answer, "dtype", None) == np.float32
    return max(tolerance, 1e-6 * single)


def as_numbers(answer: Any) -> np.ndarray:
    """Convert numbers to float64, by the texts that name them; text is no number."""
    if hasattr(answer, "items") and getattr(answer, "ndim", 1) == 1:  # or of pandas
        pairs = [(x if isinstance(x, str) else "", y) for x, y in answer.items()]
        answer = [y for _, y in sorted(pairs, key=lambda pair: pair[0])]
    if isinstance(answer, Iterator):
        answer = [*answer]
    if np.asarray(answer).dtype.kind in "SUc":  # NumPy would read "0.5"
        raise TypeError("text, or complex")
    return np.asarray(answer, dtype=float)


def as_distribution(answer: Any, size: int = 0) -> np.ndarray:
    """Convert an answer to a probability vector, of this size unless it is 0."""
    try:
        if isinstance(answer, str):
            answer = map(as_number, re.split(r"[,;\s]+", answer.strip("[](){} ")))
        q = as_numbers(answer)
    except (TypeError, ValueError):
        raise Fault("expected probabilities, a list of numbers") from None
    if size == q.size:
        q = q.ravel()  # a table of them, in their order
    if q.ndim != 1 or size not in (0, q.size):
        many = f"a table of shape {q.shape}" if q.ndim > 1 else f"{q.size} numbers"
        raise Fault(f"{many}, expected {size or 'one row of'} probabilities")
    if not (q >= 0).all():
        raise Fault("a probability is negative, or no number")
    if abs(q.sum() - 1) > 1e-9:
        raise Fault(f"the sum is {q.sum():.12g}, expected 1; qd.normalize(q) divides")
    return q


def as_formula(answer: object, letter: str = "x") -> Expression:
    """Convert an answer, text, to a formula in x, or in another letter."""
    if not isinstance(answer, str):
        raise Fault('expected a formula in x as text, like "sqrt(x)"')
    try:
        return Expression(answer, letter)
    except ValueError as error:
        raise Fault(str(error)) from None


def require(holds: object, fault: str, *values: object) -> bool:
    """Return True, or raise a `Fault` in which values stand, if a condition fails."""
    if not holds:
        raise Fault(fault.format(*values))
    return True


def shown(answer: object, width: int = 60) -> str:
    """Format an answer in one short line."""
    try:
        text = "a function" if callable(answer) else " ".join(str(answer).split())
    except Exception:  # an answer may be anything
        text = type(answer).__name__
    return text if len(text) <= width else text[:width] + " ..."
