r"""Exact policy gradients: sums over all texts, no samples.

A reward R is held fixed while the model moves. The gradient of the expected reward,
$\nabla_\theta \sum_x R(x)\,Q_\theta(x)$, equals SeqGAN's token form
$\sum_t E[Q^\pi(x_{\le t})\,\nabla_\theta \log q(x_t \mid x_{<t})]$. There $Q^\pi$ is
the mean of R over the completions of $x_{\le t}$ by the model itself. Completions by
another model (stale roll-outs), or a reward for each token, give other fields, which
need not be gradients of anything.
"""

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int

from qdtheory.generators.tables import Model
from qdtheory.world.distributions import check_distribution, check_vector
from qdtheory.world.spaces import TextSpace


def policy_gradient(
    model: Model, space: TextSpace, rewards: Float[ArrayLike, " texts"]
) -> Any:
    r"""The gradient of the expected reward, $\nabla_\theta \sum_x R(x)\,Q_\theta(x)$.

    Args:
        model: any pytree with `probabilities(space)`.
        space: the texts.
        rewards: R of each text, a number that does not depend on the model's
            parameters, shape (num_texts,).

    Returns:
        A pytree like the model: the derivative by each parameter.

    Raises:
        TypeError: the model has no `probabilities`.
        ValueError: the model does not fit the space, or the rewards are not one finite
            number a text.

    References:
        Williams 1992 (REINFORCE), whose expectation this is.

    Claims: N20.1, N20.5.

    Example:
        >>> from qdtheory.generators.tables import LogitTable
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table = LogitTable(np.zeros(2))
        >>> policy_gradient(table, space, np.array([1.0, 0.0])).logits.tolist()
        [0.25, -0.25]
    """
    check_model(model, space)
    rewards = _check_finite(check_vector(rewards, "rewards", space.num_texts))
    return _policy_gradient(model, space, rewards)


@partial(jax.jit, static_argnums=1)
def _policy_gradient(model: Model, space: TextSpace, rewards: Array) -> Any:
    return jax.vjp(lambda m: m.probabilities(space), model)[1](rewards)[0]


def token_policy_gradient(
    model: Model,
    space: TextSpace,
    rewards: Float[ArrayLike, "texts ..."],
    roll_out: Float[ArrayLike, " texts"] | None = None,
) -> Any:
    r"""SeqGAN's form, $\sum_t E[Q^\pi(x_{\le t}) \nabla \log q(x_t \mid x_{<t})]$.

    $Q^\pi(x_{\le t})$ is the mean reward of the completions of a prefix.

    Args:
        model: any pytree with `probabilities(space)`.
        space: the texts; of several lengths, the end of a text is a token.
        rewards: R of each text, shape (num_texts,), or, for each text and position t,
            what choosing $x_t$ is rewarded with, shape (num_texts, max_length). The
            latter may depend on tokens after t.
        roll_out: the distribution that completes prefixes, shape (num_texts,),
            positive; by default the model's own.

    Returns:
        A pytree like the model. With one reward a text and the model's own completions
        it is `policy_gradient`.

    Raises:
        TypeError: the model has no `probabilities`.
        ValueError: the model does not fit the space, the rewards are not finite or of
            another shape, or `roll_out` is not a positive distribution over the space.

    References:
        Yu et al. 2017 (SeqGAN), equation 7.

    Claims: N20.5, N20.10, N20.11, N20.13.

    Example:
        >>> from qdtheory.generators.tables import LogitTable
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table = LogitTable(np.zeros(2))
        >>> token_policy_gradient(table, space, np.array([1.0, 0.0])).logits.tolist()
        [0.25, -0.25]
    """
    check_model(model, space)
    rewards = _check_finite(jnp.asarray(rewards, float))
    shapes = (space.num_texts,), (space.num_texts, space.max_length)
    if rewards.shape not in shapes:
        raise ValueError(
            f"rewards must have shape {shapes[0]}, or {shapes[1]} for one a token, got "
            f"{rewards.shape}"
        )
    if roll_out is not None:
        rewards = completion_values(space, rewards, roll_out)
    elif rewards.ndim == 1:
        rewards = jnp.broadcast_to(rewards[:, None], shapes[1])
    return _token_policy_gradient(model, space, rewards)


@partial(jax.jit, static_argnums=1)
def _token_policy_gradient(model: Model, space: TextSpace, rewards: Array) -> Any:
    prefixes = prefix_ids(space)
    q = model.probabilities(space)
    value = _pooled(prefixes, q[:, None] * rewards) / _pooled(prefixes, q[:, None])

    def surrogate(model: Model) -> Array:
        """Values are fixed and log-probabilities move, so its gradient is the form."""
        seen = _pooled(prefixes, model.probabilities(space)[:, None])
        before = jnp.concatenate([jnp.ones_like(seen[:, :1]), seen[:, :-1]], axis=1)
        return (q[:, None] * value * (jnp.log(seen) - jnp.log(before))).sum()

    return jax.grad(surrogate)(model)


def completion_values(
    space: TextSpace,
    rewards: Float[ArrayLike, "texts ..."],
    roll_out: Float[ArrayLike, " texts"],
) -> Float[Array, "texts max_length"]:
    """The mean reward of the completions of each text's prefixes.

    Args:
        space: the texts; of several lengths, the end of a text is a token.
        rewards: of each text, or of each text and position.
        roll_out: the distribution that completes prefixes, shape (num_texts,),
            positive.

    Returns:
        Means, shape (num_texts, max_length), equal where texts share a prefix.

    Raises:
        ValueError: `roll_out` is not a positive distribution over the space.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> rewards, q = np.array([1.0, 0, 0, 0]), np.full(4, 0.25)
        >>> completion_values(space, rewards, q)[:, 0].tolist()
        [0.5, 0.5, 0.0, 0.0]
    """
    roll_out = check_distribution(roll_out, "roll_out", space.num_texts)
    if not isinstance(roll_out, Tracer) and np.asarray(roll_out).min() == 0:
        raise ValueError("roll_out must be positive, to complete every prefix")
    rewards = jnp.asarray(rewards, float).reshape(space.num_texts, -1)
    prefixes, weights = prefix_ids(space), roll_out[:, None]
    return _pooled(prefixes, weights * rewards) / _pooled(prefixes, weights)


def prefix_distribution(
    space: TextSpace, q: Float[ArrayLike, " texts"]
) -> Float[Array, "texts max_length"]:
    """The probability of each text's first token, first two, and so on.

    Args:
        space: the texts; of several lengths, the end of a text is a token.
        q: distribution over them, shape (num_texts,).

    Returns:
        Probabilities of prefixes, shape (num_texts, max_length); the last column is
        `q`.

    Raises:
        ValueError: `q` is not a distribution over the space.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> prefix_distribution(space, np.array([0.5, 0.25, 0.25, 0.0])).tolist()
        [[0.75, 0.5], [0.75, 0.25], [0.25, 0.25], [0.25, 0.0]]
    """
    q = check_distribution(q, "q", space.num_texts)
    return _pooled(prefix_ids(space), q[:, None])


@lru_cache(maxsize=16)
def prefix_ids(space: TextSpace) -> Int[np.ndarray, "texts max_length"]:
    """Number the prefixes of each length; texts share a number if they share a prefix.

    Example:
        >>> prefix_ids(TextSpace(vocab_size=2, lengths=2)).tolist()
        [[0, 0], [0, 1], [1, 2], [1, 3]]
    """
    starts = (space.tokens[:, : t + 1] for t in range(space.max_length))
    numbers = [np.unique(rows, axis=0, return_inverse=True)[1] for rows in starts]
    return np.stack([number.reshape(-1) for number in numbers], axis=1)


def check_model(model: Any, space: TextSpace) -> None:
    """Raise unless a model gives the texts of a space their probabilities."""
    if not isinstance(model, Model):
        raise TypeError(
            "a model is a pytree with probabilities(space), such as LSTMLanguageModel "
            f"or LogitTable; got a {type(model).__name__}"
        )
    jax.eval_shape(lambda m: m.probabilities(space), model)


def _pooled(prefixes: Int[np.ndarray, "texts positions"], values: Array) -> Array:
    """Sum the values of the texts that share a prefix, for each text and position."""
    values = jnp.broadcast_to(values, prefixes.shape)

    def column(ids: Array, value: Array) -> Array:
        return jax.ops.segment_sum(value, ids, len(prefixes))[ids]

    return jax.vmap(column, 1, 1)(jnp.asarray(prefixes), values)


def _check_finite(rewards: Array) -> Array:
    if not isinstance(rewards, Tracer) and not np.isfinite(np.asarray(rewards)).all():
        raise ValueError(
            "rewards must be finite; a reward of D is infinite where a model or the "
            "real distribution has a text of probability 0"
        )
    return rewards
