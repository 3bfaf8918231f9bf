"""The pairs that the paper names, and single-token BLEU."""

from functools import lru_cache, partial

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from qdtheory.pairs.scalar_functions import CR, LL, NRR, SE
from qdtheory.pairs.separable import SeparablePair

LL_SE = SeparablePair(LL, SE)
CR_NRR = SeparablePair(CR, NRR)
LL_NRR = SeparablePair(LL, NRR)
CR_SE = SeparablePair(CR, SE)


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
        partial(_found, num_references),
        partial(_repeated, num_self_references),
        name=f"BLEU-NSBLEU, {num_references} and {num_self_references} references",
    )


def _found(num_references: int, x: ArrayLike) -> Array:
    """Compute 1 - (1 - x)^n with an accurate derivative at both ends.

    Near 0 the power loses digits; for larger x the derivative of expm1 rounds to 0.
    """
    x = jnp.asarray(x)
    threshold = min(0.5, 1 / num_references)
    near_zero = num_references * jnp.log1p(-jnp.minimum(x, threshold))
    power = 1 - (1 - x) ** num_references
    return jnp.where(x < threshold, -jnp.expm1(near_zero), power)


def _repeated(num_self_references: int, x: ArrayLike) -> Array:
    return -jnp.asarray(x) * _found(num_self_references, x)
