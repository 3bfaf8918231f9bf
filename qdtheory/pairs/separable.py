"""Pairs of two scalar functions, f of P and g of Q."""

from dataclasses import dataclass, field

import jax
from jaxtyping import Array, ArrayLike, Float

from qdtheory.pairs.base import LinearPair
from qdtheory.pairs.scalar_functions import ScalarFunction, evaluate
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SeparablePair:
    r"""Separable pair of Li et al.: $U = \sum_i Q_i f(P_i)$, $V = \sum_i g(Q_i)$.

    Args:
        f: a scalar function on [0, 1] that JAX can trace, applied to P; it may be
            $-\infty$ at 0.
        g: a scalar function on [0, 1] that JAX can trace, applied to Q.
        name: display name; the names of f and g by default.

    References:
        Li et al. 2020, section 3.1.

    Claims: E5.1, E5.2, E5.3.

    Example:
        >>> import numpy as np
        >>> from qdtheory.pairs.scalar_functions import CR, NRR
        >>> pair = SeparablePair(CR, NRR)
        >>> pair.name, float(pair.quality(np.array([1.0, 0]), np.array([0.75, 0.25])))
        ('CR-NRR', 0.75)
    """

    f: ScalarFunction = field(metadata=STATIC)
    g: ScalarFunction = field(metadata=STATIC)
    name: str = field(default="", metadata=STATIC)

    def __post_init__(self) -> None:
        if not self.name:
            names = [getattr(h, "__name__", type(h).__name__) for h in (self.f, self.g)]
            object.__setattr__(self, "name", "-".join(names))

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        """Return the score f(P_i) of each text; see `LinearPair.text_quality`."""
        return evaluate(self.f, check_distribution(p))

    # Shared by all pairs with scores and a separable diversity.
    quality = LinearPair.quality
    diversity = LinearPair.diversity
