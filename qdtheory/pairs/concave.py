"""Pairs whose quality is linear and whose diversity is any concave function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import Array, ArrayLike, Float

from qdtheory.pairs.base import expected_score, one_score_a_text
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC

# A scalar of a distribution.
Functional = Callable[[Any], Array]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConcavePair:
    r"""Linear quality $U = u(P) \cdot Q$, concave diversity V.

    Args:
        text_quality: u, maps a distribution, shape (N,), to the score of each text,
            shape (N,); JAX-traceable. A score may be $-\infty$.
        diversity: V, maps a distribution, shape (N,), to a scalar; concave, twice
            differentiable at positive Q, JAX-traceable. Its slope may be infinite at 0.
        name: display name.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> pair = ConcavePair(lambda p: p, lambda q: -jnp.square(q).sum(), "CR-NRR")
        >>> p = np.array([0.75, 0.25])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.625, -0.625)
    """

    text_quality: Callable[[ArrayLike], Array] = field(metadata=STATIC)
    diversity: Functional = field(metadata=STATIC)
    name: str = field(default="linear-concave", metadata=STATIC)

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        r"""$U(Q; P) = \sum_i Q_i u_i(P)$, with $0 \cdot \infty = 0$.

        Args:
            q: the model, shape (N,).
            p: the real distribution, shape (N,).

        Returns:
            A scalar; $-\infty$ if q puts mass on a text of score $-\infty$.

        Raises:
            ValueError: `q` and `p` are not distributions of the same size, or there is
                not one score per text.
        """
        p = check_distribution(p)
        scores = one_score_a_text(self.text_quality(p), p, "text_quality")
        return expected_score(check_distribution(q, "q", p.size), scores)
