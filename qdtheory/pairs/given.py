"""A pair from what a user has: a name, formulas, functions or scores."""

import inspect
from typing import Any

from qdtheory.pairs.base import FunctionPair, LinearPair, Pair
from qdtheory.pairs.named import named_pair
from qdtheory.pairs.separable import SeparablePair


def given_pair(quality: Any, diversity: Any = None) -> Any:
    """Build a pair from what describes it.

    Args:
        quality: a pair; the name of one ("LL-SE"); f, as a formula in x ("log(x)") or a
            function of one argument; U(q, p), a function of two; or the score of each
            text as numbers.
        diversity: to a pair or its name nothing; to f or scores g, as a formula or
            function; to U(q, p) V(q), a function of the whole distribution.

    Returns:
        The pair: itself, a `SeparablePair`, `FunctionPair` or `LinearPair`.

    Raises:
        TypeError: one of both is missing or of another kind, or JAX cannot trace it.
        ValueError: a text is no name and no formula, or scores are not numbers.

    Example:
        >>> given_pair("log(x)", "-x**2").name
        'f = log(x), g = -x**2'
        >>> given_pair([0.9, 0.1], "SE").name
        'scores-diversity'
        >>> type(given_pair(lambda q, p: q @ p, lambda q: -(q @ q))).__name__
        'FunctionPair'
    """
    if diversity is None:
        if isinstance(quality, str):
            try:
                return named_pair(quality)
            except ValueError as error:
                raise ValueError(f"{error}; a formula f needs a g beside it") from None
        if isinstance(quality, Pair):
            return quality
        raise TypeError(
            "expected a pair, the name of one, or a quality and a diversity; got "
            f"{quality!r:.60} alone"
        )
    if isinstance(quality, Pair):
        raise TypeError(f"{quality!r:.60} is a pair: leave the diversity out")
    if num_arguments(quality) == 2:
        if num_arguments(diversity) is None:
            raise TypeError(
                "quality(q, p) of distributions goes with a function diversity(q); got "
                f"{diversity!r:.60}"
            )
        return FunctionPair(quality, diversity)
    if isinstance(quality, str) or num_arguments(quality) is not None:
        return SeparablePair(quality, diversity)
    return LinearPair(quality, diversity)


def num_arguments(function: Any) -> int | None:
    """Number of arguments that a function needs.

    Args:
        function: anything.

    Returns:
        The number of parameters without a default, 1 for a function that does not tell
        them; None for what is no function.

    Example:
        >>> num_arguments(lambda q, p, base=2: 0), num_arguments([0.5, 0.5])
        (2, None)
    """
    if not callable(function):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function
        return 1
    return sum(
        x.default is x.empty and x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)
        for x in parameters
    )
