r"""What autoencoders are trained for: a bound on the likelihood, or codes that match.

Each objective is a frozen set of numbers with `start` and `ascent`, for `train`. The
texts that it averages over are those of the distribution that `train` shows it.
`AUTOENCODERS` are those of Cífka et al. 2018, with latent space, noise and objective.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from lab.generators.autoencoders import (
    Autoencoder,
    LatentGrid,
    circle_grid,
    normal_grid,
)
from lab.generators.training import Objective, Step
from lab.generators.transport import sorted_plan
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import PerText, Scalar, require, within

# Deviation of the noise that a discriminator sees codes without noise through.
RESOLUTION = 0.3


@dataclass(frozen=True)
class Elbo(Objective):
    r"""The objective of a VAE, $\mathrm{E} \log p(x | z) - \beta\,\mathrm{KL}$.

    Args:
        kl_weight: β, at least 0; 1 is the bound on the log-likelihood.
        keep: probability that the decoder sees a token, in (0, 1]: word dropout.
        bag_weight: weight of the bag of words, at least 0; 1 in VAE-bow.

    Raises:
        ValueError: a number is out of range.

    References:
        Kingma and Welling 2014; Bowman et al. 2016, for word dropout; Zhao, Zhao and
        Eskénazi 2017, for the bag of words; Cífka et al. 2018, section 3.1.

    Claims: N23.3, N23.5.

    Example:
        >>> Elbo(keep=1.5)
        Traceback (most recent call last):
        ...
        ValueError: keep must lie in (0, 1], got 1.5
    """

    kl_weight: int | float = 1.0
    keep: int | float = 1.0
    bag_weight: int | float = 0.0

    def __post_init__(self) -> None:
        within(keep=self.keep, low=0, high=1, ends="(]")
        within(kl_weight=self.kl_weight, bag_weight=self.bag_weight, low=0)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Remember nothing."""
        require("an Autoencoder", Autoencoder, model=model)
        if model.log_sigma is None or model.generator is not None:
            raise ValueError(
                "a VAE has noisy codes and a fixed prior; draw the model with a sigma "
                "and without a learned prior"
            )
        return ()

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        """The gradient of the objective."""
        return jax.grad(self.value)(model, space, p), state

    def value(self, model: Autoencoder, space: TextSpace, p: PerText) -> Scalar:
        """The objective, in nats per text.

        Args:
            model: a VAE.
            space: the texts.
            p: their distribution.
        """
        codes, log_q = model.prior_codes(), model.log_posterior()
        gain = model.log_decoded(space, codes, self.keep)
        if self.bag_weight:
            gain = gain + self.bag_weight * model.log_bag(space, codes)
        loss = self.kl_weight * (log_q - jnp.log(model.grid.weights))
        return jnp.asarray(p) @ (jnp.exp(log_q) * (gain.T - loss)).sum(axis=1)


@dataclass(frozen=True)
class MatchedCodes(Objective):
    r"""The objective of adversarial autoencoders, and of plain ones if the weight is 0.

    $\mathrm{E} \log p(x | z) + \lambda\,\mathrm{E} \log D(z)$ with a discriminator of
    codes and prior that is optimal at each step, $D = p / (p + q)$ with the mean
    posterior q. Held fixed, it makes the encoder ascend
    $-2 \lambda\,\mathrm{KL}(M, p)$, $M = (p + q) / 2$.

    Codes without noise are points, which an optimal discriminator always tells from a
    prior with a density: the Jensen-Shannon divergence is log 2 whatever the encoder
    does. Here the discriminator sees them through noise of deviation .3.

    Args:
        weight: λ, at least 0; 20 in the paper.

    Raises:
        ValueError: the weight is out of range.

    References:
        Makhzani et al. 2015; Cífka et al. 2018, sections 3.2 and 4.

    Claims: N23.7, N23.8.

    Example:
        >>> MatchedCodes(weight=0.0)
        MatchedCodes(weight=0.0)
    """

    weight: int | float = 20.0

    def __post_init__(self) -> None:
        within(weight=self.weight, low=0)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Remember nothing: the discriminator is optimal at each step."""
        require("an Autoencoder", Autoencoder, model=model)
        if model.generator is not None:
            raise ValueError(
                "the prior is fixed here; draw a model without a learned one"
            )
        return ()

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        """The gradient with the discriminator held fixed."""
        return jax.grad(self._value)(model, space, p), state

    def _value(self, model: Autoencoder, space: TextSpace, p: Array) -> Array:
        if model.log_sigma is None:
            likelihood = _read(model, space, p)
            log_q = model.log_posterior(RESOLUTION)
        else:
            log_q = model.log_posterior()
            decoded = model.log_decoded(space, model.prior_codes())
            likelihood = p @ (jnp.exp(log_q) * decoded.T).sum(axis=1)
        if not self.weight:
            return likelihood
        w, q = jnp.asarray(model.grid.weights), p @ jnp.exp(log_q)
        log_d = jax.lax.stop_gradient(jnp.log(w) - jnp.log(w + q))
        return likelihood + self.weight * q @ log_d


@dataclass(frozen=True)
class TransportedCodes(Objective):
    r"""The objective of an ARAE: likelihood, and a learned prior near the codes.

    $\mathrm{E} \log p(x | \mu(x)) - \lambda\,W_1$, with the Wasserstein distance of the
    codes, weighted by P, and the nodes of the grid where the generator moves them. The
    critic is optimal: on a line the plan is that of sorting, and encoder and generator
    follow its gradient.

    Args:
        weight: λ, at least 0.

    Raises:
        ValueError: the weight is out of range.

    References:
        Zhao et al. 2018 (ARAE); Cífka et al. 2018, section 4.

    Claims: N23.9.

    Example:
        >>> TransportedCodes(weight=-1.0)
        Traceback (most recent call last):
        ...
        ValueError: weight must be finite and at least 0, got -1.0
    """

    weight: int | float = 1.0

    def __post_init__(self) -> None:
        within(weight=self.weight, low=0)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Remember nothing: the critic is optimal at each step."""
        require("an Autoencoder", Autoencoder, model=model)
        if model.generator is None or model.log_sigma is not None:
            raise ValueError(
                "an ARAE has a learned prior and codes without noise; draw the model "
                "with learned_prior=True and without sigma"
            )
        if model.grid.rule == "circle":
            raise ValueError(
                "codes must lie on a line, where transport is sorting; got a circle"
            )
        return ()

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        """The gradient of the objective."""
        return jax.grad(self._value)(model, space, p), state

    def _value(self, model: Autoencoder, space: TextSpace, p: Array) -> Array:
        x, y = model.text_codes()[:, 0], model.prior_codes()[:, 0]
        fixed = jax.lax.stop_gradient((x, y))
        plan = sorted_plan(fixed[0], p, fixed[1], model.grid.weights)
        distance = (plan * jnp.abs(x[:, None] - y)).sum()
        return _read(model, space, p) - self.weight * distance


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


def _read(model: Autoencoder, space: TextSpace, p: Array) -> Array:
    """The mean log-likelihood of texts given their codes without noise."""
    return p @ jnp.diagonal(model.log_decoded(space, model.text_codes()))
