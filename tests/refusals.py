"""A table of refusals: the words of the message, a function, and what it is given."""

from collections.abc import Callable
from typing import Any

import pytest


def refused(
    *rows: tuple[str, Callable, *tuple[Any, ...]],
    error: type[Exception] = ValueError,
) -> None:
    """Each call of a table raises the error, with these words in its message."""
    for words, function, *arguments in rows:
        with pytest.raises(error) as raised:
            function(*arguments)
        assert words in str(raised.value), (words, str(raised.value))
