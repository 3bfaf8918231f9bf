"""Records: frozen dataclasses that print short, compare by value and turn into JSON."""

import json
import math
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from shutil import get_terminal_size
from typing import Any, cast, dataclass_transform

import numpy as np
from jaxtyping import Float

from qdtheory.support.layout import Summary, html_rows, laid_out

# Arrays of at most so many entries are shown in full, and strings of so many letters.
FEW, LONG = 4, 72
TOLD = "status", "reason"  # which stand above the other fields
INSIDE = "qdtheory.", "jaxtyping."  # which wraps the functions in the tests


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """Makes a frozen dataclass of each subclass.

    Records are equal if they are of one class and hold equal values; NaN equals NaN.
    A large array is shown by its size.

    Example:
        >>> class Found(Record):
        ...     quality: float
        ...     q: np.ndarray
        >>> found = Found(1 / 3, np.full(64, 1 / 64))
        >>> found
        Found(quality=0.333333, q=<64 numbers>)
        >>> found == Found(1 / 3, np.full(64, 1 / 64))
        True
        >>> Found(np.inf, np.array([0.5, 0.5])).to_json()
        '{"quality": null, "q": [0.5, 0.5]}'
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, repr=False)(cls)

    def __repr__(self) -> str:
        shown = (
            f"{part.name}={_short(value)}"
            for part in fields(self)
            if part.repr
            and ((value := getattr(self, part.name)) is not None or part.default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return _same(self, other) if type(other) is type(self) else NotImplemented

    def to_json(self, indent: int | None = None) -> str:
        """Write as JSON: a pair by its name, infinity and NaN as null."""
        return json.dumps(plain(self), indent=indent, allow_nan=False)

    def _plain(self) -> dict[str, Any]:
        return {part.name: plain(getattr(self, part.name)) for part in fields(self)}


class Display:
    """A record that `print` and notebooks show by what it tells."""

    def summary(self) -> Summary:
        """Status, reason and what else is known, by the names of the fields."""
        known = (part.name for part in fields(cast(Any, self)) if part.repr)
        facts = ((name, getattr(self, name)) for name in known if name not in TOLD)
        shown = [(name, shown_value(x)) for name, x in facts if x is not None]
        return cast(Any, self).status, [cast(Any, self).reason], shown

    def to_text(self, width: int = 80) -> str:
        """Lay out the answer for a terminal of so many columns."""
        return laid_out(self.summary(), width)

    def __str__(self) -> str:
        return self.to_text(get_terminal_size().columns)

    def _repr_html_(self) -> str:
        title, sentences, facts = self.summary()
        said = "".join(f"<p>{escape(text)}</p>" for text in sentences)
        return f"<p><b>{escape(title)}</b></p>{said}{html_rows(facts)}"


class Estimate(Record):
    """A number that is estimated from samples, with its interval; or an array of them.

    Attributes:
        value: the estimate.
        low: lower limit, one for each entry of the value.
        high: upper limit.
        standard_error: estimated standard deviation over samples.
        bias: expected excess of the value, to the first order; None if it is not told.

    Example:
        >>> found = Estimate(value=0.25, low=0.2, high=0.3, standard_error=0.02)
        >>> found
        Estimate(value=0.25, low=0.2, high=0.3, standard_error=0.02)
        >>> float(found)
        0.25
        >>> found.to_json()
        '{"value": 0.25, "low": 0.2, "high": 0.3, "standard_error": 0.02}'
    """

    value: Float[np.ndarray, "*entries"] | float
    low: Float[np.ndarray, "*entries"] | float
    high: Float[np.ndarray, "*entries"] | float
    standard_error: Float[np.ndarray, "*entries"] | float
    bias: float | None = None

    def __float__(self) -> float:
        return float(self.value)

    def _plain(self) -> dict[str, Any]:
        told = super()._plain()
        if self.bias is None:
            del told["bias"]
        return told


def tell_caller(said: Iterable[str], kind: type[Warning]) -> None:
    """Warn, at the line that called the library."""
    for line in said:
        frame, level = sys._getframe(), 1
        while frame.f_back and frame.f_globals["__name__"].startswith(INSIDE):
            frame, level = frame.f_back, level + 1
        warnings.warn(line, kind, stacklevel=level)


def plain(value: Any) -> Any:
    """Turn a value into what JSON has: None for NaN, a name for what it has not."""
    match value:
        case Record():
            return value._plain()
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else None
        case dict():
            return {str(key): plain(entry) for key, entry in value.items()}
        case tuple() | list():
            return [plain(entry) for entry in value]
    if hasattr(value, "__array__"):
        return plain(np.asarray(value).tolist())
    return getattr(value, "name", None) or str(value)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; what cannot be compared is not."""
    if one is other:
        return True
    match one, other:
        case (dict(), dict()):
            keys = one.keys()
            return keys == other.keys() and all(_same(one[k], other[k]) for k in keys)
        case (tuple() | list(), tuple() | list()):
            return len(one) == len(other) and all(map(_same, one, other))
    if any(isinstance(x, float | complex) or hasattr(x, "shape") for x in (one, other)):
        try:
            return np.array_equal(one, other, equal_nan=True)
        except TypeError:  # None, or an array that JAX traces
            return False
    if is_dataclass(one) and type(one) is type(other):
        compared = (part.name for part in fields(one) if part.compare)
        return all(_same(getattr(one, k), getattr(other, k)) for k in compared)
    return bool(one == other)


def shown_value(value: Any) -> str:
    """A value for people: a text whole, an exact value of each name."""
    if isinstance(value, dict):
        return ", ".join(f"{name} = {entry}" for name, entry in value.items())
    return value if isinstance(value, str) else _short(value)


def _short(value: Any) -> str:
    """A value in a few words."""
    match value:
        case str():
            return repr(value if len(value) <= LONG else f"{value[: LONG - 3]}...")
        case float():
            return f"{value:.6g}"
        case dict():
            return f"<{', '.join(map(str, value))}>"
        case tuple() | list():
            parts = ", ".join(map(_short, value[:FEW]))
            return f"[{parts}, ... {len(value)}]" if len(value) > FEW else f"[{parts}]"
    shape = getattr(value, "shape", None)
    if shape is None:
        return repr(value)
    if hasattr(value, "__array__") and math.prod(shape) <= FEW:
        try:
            return _short(np.asarray(value).tolist())
        except TypeError:  # an array that JAX traces has no values
            pass
    kind = "booleans" if value.dtype == bool else "numbers"
    return f"<{' x '.join(map(str, shape)) or '1'} {kind}>"


def set_fields(self: object, **fields: object) -> None:
    """Set the fields of a frozen dataclass in its own `__init__`."""
    for name, value in fields.items():
        object.__setattr__(self, name, value)


class Frozen:
    """A float64 array as bytes: hashable, so that a pair can be a static argument."""

    def __init__(self, values: np.ndarray) -> None:
        self.key = np.ascontiguousarray(values).tobytes(), values.shape

    @property
    def values(self) -> np.ndarray:
        """The array."""
        data, shape = self.key
        return np.frombuffer(data).reshape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)
