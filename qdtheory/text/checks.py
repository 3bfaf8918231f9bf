"""Checks of settings before anything is counted, and how a text's faults are told."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any, get_args

from qdtheory.support.records import tell_caller

ALONE = "candidates"  # what a list of texts is called


def require_whole(
    name: str,
    value: object,
    least: int = 1,
    most: int | float = math.inf,
    why: str = "",
    *,
    optional: bool = False,
) -> None:
    """Raise unless a setting is a whole number in a range, or None if it may be.

    Example:
        >>> require_whole("k", 9, 1, 5, ", the number of samples")
        Traceback (most recent call last):
        ValueError: k: expected a whole number from 1 to 5, the number of samples, got 9
    """
    if optional and value is None:
        return
    if not isinstance(value, Integral) or not least <= int(value) <= most:
        end = "on" if most == math.inf else f"to {most:,}{why}"
        wanted = f"a whole number from {least} {end}" + ", or None" * optional
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")


def require_positive(name: str, value: Any, below: int | float = math.inf) -> None:
    """Raise unless a setting is a number between 0 and another, neither included."""
    if not isinstance(value, Real) or not 0 < float(value) < below:
        bounded = f"a number between 0 and {below:g}"
        wanted = "a positive number" if below == math.inf else bounded
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")


def require_choice(name: str, value: object, known: Any) -> None:
    """Raise unless a setting is one of the words of a `Literal`."""
    if not (isinstance(value, str) and value in get_args(known)):
        *words, last = (f'"{word}"' for word in get_args(known))
        wanted = f"{', '.join(words)} or {last}"
        raise ValueError(f"{name}: expected {wanted}, got {value!r}")


class TextWarning(UserWarning):
    """Texts look as if something else was meant, such as lines in quotes.

    `warnings.simplefilter("error", qd.text.TextWarning)` raises it as an error.
    """


tell = partial(tell_caller, kind=TextWarning)


@contextmanager
def told_later() -> Iterator[None]:
    """Give no `TextWarning`: a report has all of them at its end."""
    with warnings.catch_warnings(action="ignore", category=TextWarning):
        yield


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Prefix errors with the name of the texts that they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except TypeError as error:
        hint = "; several candidates go by name, {'model': texts}" * (name == ALONE)
        raise TypeError(f"{name}: {error}{hint}") from None
