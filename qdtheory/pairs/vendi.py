"""The log of the Vendi score as a diversity, with the quality that fits it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from qdtheory.metrics.since_2020 import (
    density_matrix,
    features_of,
    matrix_log,
    von_neumann_entropy,
)
from qdtheory.pairs.base import ConcavePair, Frozen, set_fields
from qdtheory.world.distributions import check_distribution


@dataclass(frozen=True)
class VendiQuality:
    r"""The scores $\phi_i' \log(\rho_P)\, \phi_i$."""

    features: Frozen

    def __call__(self, p: Float[ArrayLike, " texts"]) -> Array:
        """Return the score of each text given the real `p`."""
        phi = jnp.asarray(self.features.values)
        p = check_distribution(p, "p", len(phi))
        return ((phi @ matrix_log(density_matrix(p, phi))) * phi).sum(axis=1)


@dataclass(frozen=True)
class VendiDiversity:
    r"""The log of the Vendi score, $-\mathrm{tr}\,\rho_Q \log \rho_Q$."""

    features: Frozen

    def __call__(self, q: Float[ArrayLike, " texts"]) -> Array:
        """Return the entropy of the density matrix of `q`."""
        phi = jnp.asarray(self.features.values)
        q = check_distribution(q, "q", len(phi))
        return von_neumann_entropy(density_matrix(q, phi))


@jax.tree_util.register_static
@dataclass(frozen=True, init=False)
class VendiPair(ConcavePair):
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

    def __init__(
        self, kernel: Float[ArrayLike, "texts texts"], name: str = "Vendi"
    ) -> None:
        features = Frozen(features_of(kernel))
        set_fields(
            self,
            text_quality=VendiQuality(features),
            diversity=VendiDiversity(features),
            name=name,
        )
