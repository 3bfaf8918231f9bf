r"""The ELBO and its parts, exactly: what codes know of texts, and how they lie.

$\mathrm{ELBO} = \sum_x P(x)\,(\mathrm{E}_{q(z | x)} \log p(x \mid z) -
\mathrm{KL}(q(z | x), p(z)))$. It falls short of the log-likelihood by the KL of the
posteriors from the decoder's own, and its KL term is the mutual information of texts
and codes plus the KL of the mean posterior from the prior.
"""

from dataclasses import fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float

from qdtheory.generators.autoencoders import Autoencoder
from qdtheory.world.distributions import check_distribution
from qdtheory.world.records import Record
from qdtheory.world.spaces import TextSpace

# Two refinements of a grid may change nothing by more than this.
UNMOVED = 1e-9


@jax.tree_util.register_dataclass
class LatentReport(Record):
    r"""What an autoencoder's codes hold, in nats, as means over the real distribution.

    Attributes:
        log_likelihood: $\sum_x P(x) \log p(x)$, minus the forward cross-entropy.
        elbo: the reconstruction less the KL term.
        reconstruction: $\sum_x P(x) \sum_k q(z_k | x) \log p(x | z_k)$.
        kl: the KL term, that of the posteriors from the prior.
        mutual_information: $I_q(x; z)$, what a code tells about its text.
        marginal_kl: KL(q(z), p(z)), that of the mean posterior from the prior.
        gap: the KL of the posteriors from the decoder's own, $p(z | x)$.
    """

    log_likelihood: Float[Array, "*models"]
    elbo: Float[Array, "*models"]
    reconstruction: Float[Array, "*models"]
    kl: Float[Array, "*models"]
    mutual_information: Float[Array, "*models"]
    marginal_kl: Float[Array, "*models"]
    gap: Float[Array, "*models"]


def latent_report(
    model: Autoencoder, space: TextSpace, p: Float[ArrayLike, " texts"]
) -> LatentReport:
    """Compute the ELBO and its parts, on a grid that two refinements do not move.

    Args:
        model: an autoencoder with noisy codes and a fixed prior.
        space: the texts.
        p: the real distribution, shape (num_texts,).

    Returns:
        The parts, each computed from its own definition. Under a JAX transformation
        the grid is taken as it is.

    Raises:
        ValueError: the model does not fit the space, has no posteriors on the grid of
            its prior or holds NaN, or the grid is too coarse: the message names what a
            refinement changed.

    References:
        Kingma and Welling 2014.

    Claims: N23.1, N23.2, N23.5, N23.11.

    Example:
        >>> from qdtheory.generators import circle_grid
        >>> space, p = TextSpace(vocab_size=2, lengths=2), np.full(4, 0.25)
        >>> model = Autoencoder.random(jax.random.key(0), space, circle_grid(128), 0.5)
        >>> found = latent_report(model, space, p)
        >>> float(abs(found.elbo + found.gap - found.log_likelihood).round(12))
        0.0
    """
    p = check_distribution(p, "p", space.num_texts)
    if model.generator is not None:
        raise ValueError(
            "the KL term needs the posteriors and the prior on one grid; the prior of "
            "an ARAE is learned"
        )
    found, q = before = _report(model, space, p)
    if isinstance(found.elbo, Tracer):
        return found
    if np.isnan(q).any() or np.isnan(found.elbo):
        raise ValueError(
            "the model holds NaN: its training diverged; train it anew at a lower "
            "learning rate"
        )
    for _ in range(2):
        size, model = model.grid.size, refined(model)
        after = _report(model, space, p)
        worst, change = _largest_change(before, after)
        if not change <= UNMOVED:
            raise ValueError(
                f"the grid is too coarse: {worst} changes by {change:.1e}, more than "
                f"{UNMOVED:.0e}, when {size} nodes on an axis become "
                f"{model.grid.size}; take more nodes"
            )
        before = after
    return found


def refined(model: Autoencoder) -> Autoencoder:
    """Return a model with the same parameters on a grid of twice as many nodes.

    Args:
        model: an autoencoder.

    Returns:
        The model on the refined grid.
    """
    return replace(model, grid=model.grid.refined())


def _largest_change(before: tuple, after: tuple) -> tuple[str, float]:
    """What changed most, NaN above all, and by how much."""
    (old, q_old), (new, q_new) = before, after
    changes = {"the probability of a text": float(np.abs(q_new - q_old).max())}
    for part in fields(LatentReport):
        name = f"the {part.name.replace('_', ' ')}"
        changes[name] = abs(float(getattr(new, part.name) - getattr(old, part.name)))
    worst = max(changes, key=lambda name: (np.isnan(changes[name]), changes[name]))
    return worst, changes[worst]


@partial(jax.jit, static_argnums=1)
def _report(
    model: Autoencoder, space: TextSpace, p: Array
) -> tuple[LatentReport, Array]:
    """The parts on the grid as it is, and the probabilities of the texts."""
    log_w, log_q = jnp.log(model.grid.weights), model.log_posterior()
    log_decoded = model.log_decoded(space, model.prior_codes()).T
    log_joint = log_w + log_decoded
    log_text = logsumexp(log_joint, axis=1)
    log_marginal = logsumexp(log_q, axis=0, b=p[:, None])

    def mean(values: Array) -> Array:
        return p @ (jnp.exp(log_q) * values).sum(axis=1)

    reconstruction, kl = mean(log_decoded), mean(log_q - log_w)
    parts = LatentReport(
        log_likelihood=p @ log_text,
        elbo=reconstruction - kl,
        reconstruction=reconstruction,
        kl=kl,
        mutual_information=mean(log_q - log_marginal),
        marginal_kl=(jnp.exp(log_marginal) * (log_marginal - log_w)).sum(),
        gap=mean(log_q - (log_joint - log_text[:, None])),
    )
    return parts, jnp.exp(log_text)
