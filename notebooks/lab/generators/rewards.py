"""Rewards of the texts of an exact model, at the optimal discriminator."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from qdtheory.distributions import as_distribution, as_interior
from qdtheory.rewards import Integral, Reward
from qdtheory.support.numbers import PerText, Scalar, TextArray


def optimal_discriminator(q: PerText, p: PerText) -> TextArray:
    r"""The probability that a text is real, $D^* = P / (P + Q)$, for equal shares.

    Args:
        q: the model, shape (N,).
        p: the real distribution, positive, shape (N,).

    Returns:
        Probabilities, shape (N,).

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or `p` has zeros.

    References:
        Goodfellow et al. 2014, Proposition 1.

    Example:
        >>> q, p = np.array([0.75, 0.25]), np.array([0.25, 0.75])
        >>> optimal_discriminator(q, p).tolist()
        [0.25, 0.75]
    """
    p = as_positive_everywhere(p)
    q = as_distribution(q, "q", p.size)
    return p / (p + q)


def reward_objective(reward: Reward, q: PerText, p: PerText) -> Scalar:
    r"""The objective that a step ascends, $-\sum_i P_i\,\varphi(Q_i / P_i)$.

    Args:
        reward: see `REWARDS` and `given_reward`.
        q: the model, shape (N,).
        p: the real distribution, positive, shape (N,).

    Returns:
        A scalar, 0 at Q = P and otherwise negative if the reward rises.

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or `p` has zeros.

    References:
        Nowozin et al. 2016 (f-GAN), for the divergence of each reward.

    Claims: N20.1, N20.3, N20.7.

    Example:
        >>> from qdtheory.rewards import given_reward
        >>> q, p = np.array([0.75, 0.25]), np.array([0.25, 0.75])
        >>> found = reward_objective(given_reward("logit D"), q, p)
        >>> float((found / np.log(3)).round(12))
        -0.5
    """
    p = as_positive_everywhere(p)
    q = as_distribution(q, "q", p.size)
    return -(p * reward.phi(q / p)).sum()


def optimal_rewards(reward: Reward, q: PerText, p: PerText) -> TextArray:
    r"""The reward of each text at the optimal discriminator, $\rho(P / (P + Q))$.

    Computed as $-\varphi'(Q / P)$ where φ has a formula of its own: $1 - D$ would lose
    the digits of $Q / P$ at a text that the model all but lacks.

    Args:
        reward: see `REWARDS` and `given_reward`.
        q: the model, shape (N,).
        p: the real distribution, shape (N,); a text that it lacks has D = 0.

    Returns:
        Rewards, shape (N,).

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or `p` has zeros and
            the reward is not finite at D = 0.

    Claims: N20.1, N20.8.

    Example:
        >>> from qdtheory.rewards import given_reward
        >>> q, p = np.array([0.75, 0.25]), np.array([0.25, 0.75])
        >>> optimal_rewards(given_reward("D"), q, p).tolist()
        [0.25, 0.75]
    """
    p = as_rewarded(reward, p)
    q = as_distribution(q, "q", p.size)
    lacking = p == 0
    positive = jnp.where(lacking, 1.0, p)
    if isinstance(reward.phi, Integral):
        rewards = jnp.vectorize(reward.of_discriminator)(positive / (positive + q))
    else:
        rewards = -jax.vmap(jax.grad(reward.phi))(q / positive)
    return jnp.where(lacking, reward.of_discriminator(jnp.zeros(())), rewards)


def as_positive_everywhere(p: PerText, size: int | None = None) -> Array:
    """Check a real distribution that must have no zeros."""
    why = ": the optimal discriminator is certain of a text that P lacks"
    return as_interior(p, f"{why}, and its reward may be infinite", size)


def as_rewarded(reward: Reward, p: PerText, name: str = "p") -> Array:
    """Check a distribution, without zeros if the reward is infinite at D = 0."""
    p = as_distribution(p, name)
    if not isinstance(p, Tracer) and np.asarray(p).min() == 0:
        with np.errstate(all="ignore"):
            least = float(reward.of_discriminator(jnp.zeros(())))
        if not np.isfinite(least):
            raise ValueError(
                f"{name} must be positive everywhere for the reward {reward.name}, "
                f"which is {least} at a text that is never real, where D = 0; mix in a "
                "little of the uniform distribution, or take a reward such as D"
            )
    return p
