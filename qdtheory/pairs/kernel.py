"""Pairs made of a similarity of two texts, and the squared mean discrepancy."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from qdtheory.metrics.similarity import check_kernel
from qdtheory.pairs.base import is_concrete
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KernelPair:
    r"""Similarity to P against dissimilarity within Q: $U = Q'KP$, $V = -Q'KQ$.

    U is the expected similarity of a model text and a real text, -V that of two model
    texts. With $\Psi = U + V / 2$ the gap $\Psi(P) - \Psi(Q)$ is half the squared
    maximum mean discrepancy (MMD) of P and Q.

    Args:
        kernel: K, symmetric up to rounding, finite, float64, shape (N, N); it need
            not be positive semidefinite.
        name: display name.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric.

    References:
        Gretton et al. 2012 for the MMD; the pair is ours.

    Example:
        >>> import numpy as np
        >>> pair = KernelPair(np.array([[1.0, 0.5], [0.5, 1.0]]))
        >>> p = np.array([0.5, 0.5])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.75, -0.75)
    """

    kernel: Any
    name: str = field(default="kernel", metadata=STATIC)

    def __post_init__(self) -> None:
        if is_concrete(self.kernel):
            check_kernel(self.kernel)

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        """Return the expected similarity K p of each text to a real text.

        Args:
            p: the real distribution, shape (N,).

        Returns:
            Scores, shape (N,).

        Raises:
            ValueError: `p` is not a distribution over N texts.
        """
        kernel = jnp.asarray(self.kernel)
        return kernel @ check_distribution(p, "p", len(kernel))

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        """Expected similarity Q'KP of a model text and a real text.

        Args:
            q: the model, shape (N,).
            p: the real distribution, shape (N,).

        Returns:
            A scalar.

        Raises:
            ValueError: `q` or `p` is not a distribution over N texts.
        """
        return check_distribution(q, "q", len(self.kernel)) @ self.text_quality(p)

    def diversity(self, q: Float[ArrayLike, " texts"]) -> Float[Array, ""]:
        """Minus the expected similarity Q'KQ of two model texts.

        Args:
            q: the model, shape (N,).

        Returns:
            A scalar.

        Raises:
            ValueError: `q` is not a distribution over N texts.
        """
        q = check_distribution(q, "q", len(self.kernel))
        return -q @ jnp.asarray(self.kernel) @ q


def squared_mmd(
    kernel: Float[ArrayLike, "texts texts"],
    q: Float[ArrayLike, " texts"],
    p: Float[ArrayLike, " texts"],
) -> Float[Array, ""]:
    r"""Squared maximum mean discrepancy, $(Q - P)'K(Q - P)$.

    Twice the gap $\Psi(P) - \Psi(Q)$ of the kernel pair, with $\Psi = U + V / 2$.
    Computed from the difference, so it keeps its precision when Q is close to P.

    Args:
        kernel: K, symmetric, shape (N, N).
        q: the model, shape (N,).
        p: the real distribution, shape (N,).

    Returns:
        A scalar; nonnegative for all Q and P iff K is positive semidefinite on
        zero-sum vectors.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric, or `q` or
            `p` is not a distribution over N texts.

    References:
        Gretton et al. 2012, lemma 4.

    Claims: N16.13.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> float(squared_mmd(np.eye(2), a, b))
        2.0
    """
    pair = KernelPair(kernel)
    q = check_distribution(q, "q", len(pair.kernel))
    difference = q - check_distribution(p, "p", q.size)
    return difference @ jnp.asarray(kernel) @ difference
