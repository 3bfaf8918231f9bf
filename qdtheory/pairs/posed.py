"""A pair at one real distribution, which is checked once, at the door of every method.

Past it distributions are arrays that need no further check.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.formulas.tracing import require_traceable, require_values
from qdtheory.pairs.base import (
    LinearPair,
    Pair,
    expected_score,
    one_score_a_text,
    total_diversity,
)
from qdtheory.pairs.bleu import BleuPair
from qdtheory.pairs.concave import ConcavePair
from qdtheory.pairs.kernel import KernelPair
from qdtheory.pairs.ngram import NgramPair
from qdtheory.pairs.separable import SeparablePair
from qdtheory.world.distributions import check_distribution


@dataclass(frozen=True)
class Posed:
    """A pair at one real distribution, checked once. Models are not checked.

    Attributes:
        pair: any pair.
        p: the real distribution, shape (N,).
    """

    pair: Any  # a Pair, with the attributes of its form
    p: Float[np.ndarray, " texts"]

    @cached_property
    def scores(self) -> Float[np.ndarray, " texts"]:
        """Score of each text, finite or minus infinity; U(P) is checked to be finite.

        Not computed in the functions that use them: compiled together, a product and a
        difference may be fused, and `scores.max() - scores` is not 0 at the best text.
        """
        p = jnp.asarray(self.p)
        match self.pair:
            case LinearPair():
                scores = one_score_a_text(self.pair.scores(p), p, "scores")
            case ConcavePair():
                scores = one_score_a_text(self.pair.text_quality(p), p, "text_quality")
            case SeparablePair() | BleuPair() | KernelPair() | NgramPair():
                scores = _text_quality(self.pair, p)
            case pair:
                scores = pair.text_quality(p)
        scores = np.asarray(scores)
        quality = float(expected_score(self.p, scores))
        if not np.isfinite(quality) or not (scores < np.inf).all():
            raise ValueError(
                f"the quality of P itself must be finite, got {quality:.6g}, and no "
                "score NaN or +inf; the pair's scores are not so at this p"
            )
        return scores

    @cached_property
    def spread(self) -> float:
        """The greatest finite score minus the least, the unit of gains."""
        return float(np.ptp(self.scores[np.isfinite(self.scores)]))

    @cached_property
    def real_quality(self) -> float:
        """U(P; P)."""
        return self.quality(self.p)

    @cached_property
    def real_diversity(self) -> float:
        """V(P), which models have to attain; it is checked to be finite."""
        diversity = self.diversity(self.p)
        if not np.isfinite(diversity):
            raise ValueError(
                f"the diversity of P itself is {diversity}; V(P) must be a finite "
                "number (has g a pole at 0, and P a text of probability 0?)"
            )
        return diversity

    def quality(self, q: Float[ArrayLike, " texts"]) -> float:
        """U(Q; P) of a model."""
        match self.pair:
            case SeparablePair() | LinearPair() | ConcavePair():
                return float(expected_score(q, self.scores))
            case BleuPair() | KernelPair() | NgramPair():
                return float(_quality(self.pair, q, self.p))
        return float(self.pair.quality(q, self.p))

    def diversity(self, q: Float[ArrayLike, " texts"]) -> float:
        """V(Q) of a model."""
        match self.pair:
            case SeparablePair() | LinearPair():
                return float(total_diversity(self.pair.g, q))
            case BleuPair() | KernelPair() | NgramPair():
                return float(_diversity(self.pair, q))
        return float(self.pair.diversity(q))

    def gain(self, q: Float[ArrayLike, " texts"]) -> float:
        """U(Q; P) - U(P; P) by the scores; minus infinity if V(Q) < V(P)."""
        if not self.diversity(q) >= self.real_diversity:
            return -np.inf
        return float(expected_score(np.asarray(q) - self.p, self.scores))


def pose(pair: Pair, p: Float[ArrayLike, " texts"]) -> Posed:
    """Check a real distribution, and pose the pair there.

    Args:
        pair: any pair.
        p: the real distribution, shape (N,).

    Returns:
        The pair with `p` as a NumPy array.

    Raises:
        TypeError: `p` is not a NumPy or JAX array of float64, is traced by a caller's
            `jax.jit`, or JAX cannot trace the pair's functions.
        ValueError: `p` is not a distribution.

    Example:
        >>> from qdtheory.pairs.named import CR_NRR
        >>> posed = pose(CR_NRR, np.array([0.75, 0.25]))
        >>> posed.real_quality, posed.real_diversity, posed.spread
        (0.625, -0.625, 0.5)
        >>> posed.gain(np.array([0.5, 0.5]))
        -0.125
    """
    require_values(p)
    p = np.asarray(check_distribution(p))
    require_traceable_pair(pair, p)
    return Posed(pair, p)


def require_traceable_pair(pair: Any, p: Float[np.ndarray, " texts"]) -> None:
    """Raise unless JAX can trace the functions of a user that a pair calls.

    Args:
        pair: any pair.
        p: a distribution to try them at, shape (N,).

    Raises:
        TypeError: see `require_traceable`.
    """
    match pair:
        case SeparablePair() | LinearPair():
            pass  # checked when the pair is made
        case BleuPair() | KernelPair() | NgramPair():
            pass  # the library's own
        case ConcavePair():
            require_traceable(pair.diversity, p, name="diversity(q)")
        case _:
            require_traceable(pair.quality, p, p, name="quality(q, p)")
            require_traceable(pair.diversity, p, name="diversity(q)")


# Compiled, so that the pairs' own checks see no values.
_text_quality = jax.jit(lambda pair, p: pair.text_quality(p))
_quality = jax.jit(lambda pair, q, p: pair.quality(q, p))
_diversity = jax.jit(lambda pair, q: pair.diversity(q))
