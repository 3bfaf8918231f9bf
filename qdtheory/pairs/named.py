"""Named pairs, single-token BLEU, and a pair from what a user has."""

import inspect
from functools import lru_cache
from itertools import product, starmap
from typing import Any, TypeVar

from qdtheory.formulas.scalar_functions import (
    CR,
    DIVERSITIES,
    LL,
    NRR,
    QUALITIES,
    SE,
    SingleTokenBleu,
    SingleTokenSelfBleu,
)
from qdtheory.pairs.base import (
    FunctionPair,
    LinearPair,
    Pair,
    SeparablePair,
    renewed,
)
from qdtheory.world.distributions import check_positive
from qdtheory.world.layout import plain_name

Known = TypeVar("Known")

LL_SE = SeparablePair(LL, SE)
CR_NRR = SeparablePair(CR, NRR)
LL_NRR = SeparablePair(LL, NRR)
CR_SE = SeparablePair(CR, SE)


def named_pairs() -> dict[str, SeparablePair]:
    """Every named quality with every named diversity, by the names."""
    pairs = starmap(SeparablePair, product(QUALITIES.values(), DIVERSITIES.values()))
    return {pair.name: pair for pair in pairs}


def named_pair(name: str) -> SeparablePair:
    """Find the pair of a name such as "LL-SE", in capitals or not."""
    pairs, wanted = named_pairs(), plain_name(name)
    for known, pair in pairs.items():
        if plain_name(known) == wanted:
            return pair
    hint = "; BLEU needs a space: qd.BleuPair" * wanted.startswith("bleu")
    raise ValueError(f"no pair is called {name!r}; there are {', '.join(pairs)}{hint}")


def as_pair(pair: Known | str) -> Known | SeparablePair:
    """A pair, given by its name or as it is; its code is made anew, see `renewed`."""
    return named_pair(pair) if isinstance(pair, str) else renewed(pair)


@lru_cache(maxsize=64)
def single_token_bleu_pair(
    num_references: int, num_self_references: int
) -> SeparablePair:
    r"""Expected BLEU-1 and negative Self-BLEU-1 of texts of one token.

    $f(x) = 1 - (1 - x)^n$ and $g(x) = -x + x (1 - x)^k$: f is the probability that a
    token is among n references drawn from P, and -g(x) / x that it is among k drawn
    from Q.

    Args:
        num_references: n, at least 1.
        num_self_references: k, the size of the candidate set minus 1, at least 1.

    Returns:
        The pair. g is convex beyond 2 / (k + 1), so Theorem 2 applies for k = 1 only.

    Raises:
        ValueError: n or k is below 1.

    References:
        Li et al. 2020, section 5.1.

    Claims: N2.6, N2.7, N6.2, N6.4, N6.7.

    Example:
        >>> pair = single_token_bleu_pair(num_references=2, num_self_references=1)
        >>> float(pair.f(0.5)), float(pair.g(0.5))
        (0.75, -0.25)
    """
    check_positive(
        num_references=num_references, num_self_references=num_self_references
    )
    return SeparablePair(
        SingleTokenBleu(num_references),
        SingleTokenSelfBleu(num_self_references),
        name=f"BLEU-NSBLEU, {num_references} and {num_self_references} references",
    )


@lru_cache(maxsize=64)
def distinct_k_pair(k: int, num_references: int | None = None) -> SeparablePair:
    r"""NoveltyBench's distinct_k with the quality that fits it, or another one.

    $g(x) = 1 - (1 - x)^k$ and $f(x) = 1 - (1 - x)^n$: V is the expected number of
    different outcomes in k draws from Q, U the chance that a draw from Q is among n
    from P. As $g'' = -k f'$ for n = k - 1 only, the pair is compatible with exactly
    k - 1 references; k = 2 is CR-NRR up to a constant.

    Args:
        k: number of draws, at least 2: for k = 1 the diversity is 1 for every model.
        num_references: n, at least 1; k - 1 by default.

    Returns:
        The pair.

    Raises:
        ValueError: k is below 2, or n below 1.

    References:
        Zhang et al. 2025 (NoveltyBench) for the diversity; the quality is ours.

    Claims: N25.1, N25.2.

    Example:
        >>> pair = distinct_k_pair(10)
        >>> pair.name
        'distinct_10 and 9 references'
        >>> float(pair.f(0.5)) == 1 - 0.5**9, float(pair.g(0.5)) == 1 - 0.5**10
        (True, True)
    """
    if k < 2:
        raise ValueError(f"k must be at least 2, got {k}")
    n = k - 1 if num_references is None else num_references
    check_positive(num_references=n)
    name = f"distinct_{k} and {n} reference{'s' * (n > 1)}"
    return SeparablePair(SingleTokenBleu(n), SingleTokenBleu(k), name)


def given_pair(quality: Any, diversity: Any = None) -> Any:
    """Build the pair that `qdtheory.check` and the command understand."""
    if diversity is None:
        if isinstance(quality, str):
            try:
                return named_pair(quality)
            except ValueError as error:
                said = "a formula, or the name of a metric, needs another beside it"
                raise ValueError(f"{error}; {said}") from None
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
    """Number of parameters without a default; None for what is no function."""
    if not callable(function):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function, which does not tell
        return 1
    return sum(
        x.default is x.empty and x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)
        for x in parameters
    )
