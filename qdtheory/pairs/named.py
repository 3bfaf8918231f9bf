"""The pairs of a named quality and a named diversity, and single-token BLEU."""

from functools import lru_cache
from itertools import product, starmap

from qdtheory.pairs.scalar_functions import (
    CR,
    DIVERSITIES,
    LL,
    NRR,
    QUALITIES,
    SE,
    SingleTokenBleu,
    SingleTokenSelfBleu,
)
from qdtheory.pairs.separable import SeparablePair

LL_SE = SeparablePair(LL, SE)
CR_NRR = SeparablePair(CR, NRR)
LL_NRR = SeparablePair(LL, NRR)
CR_SE = SeparablePair(CR, SE)


def named_pairs() -> dict[str, SeparablePair]:
    """Every named quality with every named diversity.

    Returns:
        The pairs by their names.

    Example:
        >>> named_pairs()["LL-SE"] == LL_SE
        True
    """
    pairs = starmap(SeparablePair, product(QUALITIES.values(), DIVERSITIES.values()))
    return {pair.name: pair for pair in pairs}


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
    for name, number in (
        ("num_references", num_references),
        ("num_self_references", num_self_references),
    ):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
    return SeparablePair(
        SingleTokenBleu(num_references),
        SingleTokenSelfBleu(num_self_references),
        name=f"BLEU-NSBLEU, {num_references} and {num_self_references} references",
    )
