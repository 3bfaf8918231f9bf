r"""Pairs whose quality is linear in Q and whose diversity is concave.

QDisc, $\max u \cdot Q$ subject to $V(Q) \ge V(P)$, is a convex problem then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from qdtheory.distributions import check_distribution
from qdtheory.pairs import STATIC, expected_score


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConcavePair:
    r"""Linear quality $U = u(P) \cdot Q$, concave diversity V.

    Args:
        text_quality: u, a distribution, shape (N,), to the score of each text, shape
            (N,); JAX can trace it. A score may be $-\infty$.
        diversity: V, a distribution, shape (N,), to a scalar; concave, twice
            differentiable at positive Q, and JAX can trace it. Its slope may be
            infinite at 0.
        name: what to call it.

    Example:
        >>> import numpy as np
        >>> pair = ConcavePair(lambda p: p, lambda q: -jnp.square(q).sum(), "CR-NRR")
        >>> p = np.array([0.75, 0.25])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.625, -0.625)
    """

    text_quality: Callable[[ArrayLike], Array] = field(metadata=STATIC)
    diversity: Callable[[ArrayLike], Array] = field(metadata=STATIC)
    name: str = field(default="linear-concave", metadata=STATIC)

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        r"""$U(Q; P) = \sum_i Q_i u_i(P)$, with $0 \cdot \infty = 0$.

        Args:
            q: the model, shape (N,).
            p: the real distribution, shape (N,).

        Returns:
            A scalar, $-\infty$ where q puts mass on a text of score $-\infty$.

        Raises:
            ValueError: not two distributions of one size, or not one score a text.
        """
        p = check_distribution(p)
        scores = jnp.asarray(self.text_quality(p))
        if scores.shape != p.shape:
            raise ValueError(
                "text_quality(p) must give one score a text, shape "
                f"{p.shape}, got shape {scores.shape}"
            )
        return expected_score(check_distribution(q, "q", p.size), scores)
