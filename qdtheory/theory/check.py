"""One call from formulas, names or functions to a verdict."""

from typing import Any

from jaxtyping import ArrayLike, Float

from qdtheory.pairs.given import given_pair
from qdtheory.theory.compatibility import Verdict, check_compatibility


def check(
    quality: Any,
    diversity: Any = None,
    p: Float[ArrayLike, " texts"] | None = None,
    *,
    num_texts: int | None = None,
    stated: str | None = None,
) -> Verdict:
    """Decide whether the real distribution can be beaten in both metrics at once.

    The pair is given as to the command `qdtheory check`; see `given_pair` for all that
    is understood, and `check_compatibility` for what the verdict means.

    Args:
        quality: a pair, its name, f, U(q, p), or the score of each text.
        diversity: g or V(q); nothing beside a pair or its name.
        p: the real distribution to test at, shape (N,), without zeros.
        num_texts: N, if no `p` is given.
        stated: as in `check_compatibility`.

    Returns:
        The verdict with its reason.

    Raises:
        TypeError: see `given_pair`.
        ValueError: see `given_pair` and `check_compatibility`.

    References:
        Li et al. 2020, Theorem 3.

    Example:
        >>> check("log(x)", "-x*log(x)").compatible
        True
        >>> check("log(x)", "-x**2").compatible, check("CR-NRR").compatible
        (False, True)
    """
    pair = given_pair(quality, diversity)
    return check_compatibility(pair, p, num_texts=num_texts, stated=stated)
