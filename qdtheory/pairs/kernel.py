"""Pairs made of a similarity of two texts: its mean, or the Vendi score by it."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from qdtheory.metrics.similarity import (
    check_kernel,
    density_matrix,
    features_of,
    matrix_log,
    von_neumann_entropy,
)
from qdtheory.pairs.base import ConcavePair, Frozen, is_concrete, set_fields
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC, PerText, Scalar, TextArray, TextMatrix


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

    def text_quality(self, p: PerText) -> TextArray:
        """Return the expected similarity K p of each text to a real text."""
        kernel = jnp.asarray(self.kernel)
        return kernel @ check_distribution(p, "p", len(kernel))

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Expected similarity Q'KP of a model text and a real text."""
        return check_distribution(q, "q", len(self.kernel)) @ self.text_quality(p)

    def diversity(self, q: PerText) -> Scalar:
        """Minus the expected similarity Q'KQ of two model texts."""
        q = check_distribution(q, "q", len(self.kernel))
        return -q @ jnp.asarray(self.kernel) @ q


def squared_mmd(kernel: TextMatrix, q: PerText, p: PerText) -> Scalar:
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

    Claims: N16.13, N16.29.

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


@jax.tree_util.register_static
@dataclass(frozen=True, init=False)
class VendiPair:
    r"""Log of Vendi, $V = S(\rho_Q)$, against $U = \mathrm{tr}\,\rho_Q \log \rho_P$.

    The quality is minus the gradient of V at P but for a constant, so it is the only
    compatible one up to scale and shift. The divergence of the pair,
    $U(P) + V(P) - U(Q) - V(Q)$, is the quantum relative entropy of $\rho_Q$ and
    $\rho_P$, at least 0 by Klein's inequality. For $K = I$ the pair is LL-SE.

    Args:
        kernel: K, positive semidefinite with ones on the diagonal, shape (N, N).
        name: display name.

    Raises:
        ValueError: as in `features_of`.

    References:
        Friedman and Dieng 2023 for the diversity; the quality is ours.

    Claims: N25.9, N25.10.

    Example:
        >>> import numpy as np
        >>> pair = VendiPair(np.eye(2))
        >>> p = np.array([0.5, 0.5])
        >>> round(float(pair.quality(p, p)), 6), round(float(pair.diversity(p)), 6)
        (-0.693147, 0.693147)
    """

    features: Frozen
    name: str

    def __init__(self, kernel: TextMatrix, name: str = "Vendi") -> None:
        set_fields(self, features=Frozen(features_of(kernel)), name=name)

    def text_quality(self, p: PerText) -> TextArray:
        r"""Return the scores $\phi_i' \log(\rho_P)\, \phi_i$ of the texts."""
        phi, rho = self._matrices(p, "p")
        return ((phi @ matrix_log(rho)) * phi).sum(axis=1)

    quality = ConcavePair.quality

    def diversity(self, q: PerText) -> Scalar:
        r"""Return the log of the Vendi score, $-\mathrm{tr}\,\rho_Q \log \rho_Q$."""
        return von_neumann_entropy(self._matrices(q, "q")[1])

    def _matrices(self, q: ArrayLike, name: str) -> tuple[Array, Array]:
        """The features, and the density matrix of a distribution."""
        phi = jnp.asarray(self.features.values)
        return phi, density_matrix(check_distribution(q, name, len(phi)), phi)
