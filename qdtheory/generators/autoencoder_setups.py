"""The autoencoders of Cífka et al. 2018: latent space, noise and objective of each."""

from dataclasses import dataclass

from jaxtyping import PRNGKeyArray

from qdtheory.generators.autoencoder_objectives import (
    Elbo,
    MatchedCodes,
    TransportedCodes,
)
from qdtheory.generators.autoencoders import Autoencoder
from qdtheory.generators.latents import LatentGrid, circle_grid, normal_grid
from qdtheory.world.spaces import TextSpace


@dataclass(frozen=True)
class AutoencoderSetup:
    """A kind of autoencoder: its latent space, its noise and its objective.

    Args:
        grid: the latent space with its prior.
        objective: what it is trained for.
        sigma: the noise to start with; None: codes without noise.
        learned_prior: whether a network moves the prior's nodes.

    References:
        Cífka et al. 2018, section 4 and Table 1.
    """

    grid: LatentGrid
    objective: Elbo | MatchedCodes | TransportedCodes
    sigma: float | None = None
    learned_prior: bool = False

    def model(self, key: PRNGKeyArray, space: TextSpace) -> Autoencoder:
        """Draw a model of this kind.

        Args:
            key: a JAX random key, used once.
            space: texts of one length.

        Returns:
            The model, untrained.

        Raises:
            ValueError: the texts have several lengths.
        """
        return Autoencoder.random(
            key, space, self.grid, self.sigma, learned_prior=self.learned_prior
        )


LINE, CIRCLE = normal_grid(129), circle_grid(128)

# The rows of Cífka et al. 2018, Table 1, under their names in notebooks/data, and
# AAE-gauss of their section 4. "ARAE (default)" is left out: it differs from ARAE in
# the sizes of the networks and the time of training.
AUTOENCODERS: dict[str, AutoencoderSetup] = {
    "VAE (dw=0.5)": AutoencoderSetup(LINE, Elbo(keep=0.5), 0.5),
    "VAE (dw=0.75)": AutoencoderSetup(LINE, Elbo(keep=0.75), 0.5),
    "VAE-bow (dw=1)": AutoencoderSetup(LINE, Elbo(bag_weight=1.0), 0.5),
    "AAE-gauss": AutoencoderSetup(LINE, MatchedCodes(), 0.5),
    "AAE-gauss-det (lambda=10 d=1)": AutoencoderSetup(LINE, MatchedCodes(10.0)),
    "AE-gauss-det (d=1)": AutoencoderSetup(LINE, MatchedCodes(0.0)),
    "AAE-sph (sigma=0.1)": AutoencoderSetup(CIRCLE, MatchedCodes(), 0.1),
    "AAE-sph (sigma=0.075)": AutoencoderSetup(CIRCLE, MatchedCodes(), 0.075),
    "AAE-sph (sigma=0.05 lambda=10)": AutoencoderSetup(
        CIRCLE, MatchedCodes(10.0), 0.05
    ),
    "AE-sph (sigma=0.1)": AutoencoderSetup(CIRCLE, MatchedCodes(0.0), 0.1),
    "AE-sph (sigma=0.05)": AutoencoderSetup(CIRCLE, MatchedCodes(0.0), 0.05),
    "AE-sph (sigma=0 d=1)": AutoencoderSetup(CIRCLE, MatchedCodes(0.0)),
    "ARAE": AutoencoderSetup(LINE, TransportedCodes(), learned_prior=True),
}
