r"""Models of texts as tables of logits, and exact policy gradients of any model.

A reward R is held fixed while the model moves. The gradient of the expected reward,
$\nabla_\theta \sum_x R(x)\,Q_\theta(x)$ over all texts, equals SeqGAN's token form
$\sum_t E[Q^\pi(x_{\le t})\,\nabla_\theta \log q(x_t \mid x_{<t})]$. There $Q^\pi$ is
the mean of R over the completions of $x_{\le t}$ by the model itself. Completions by
another model (stale roll-outs), or a reward for each token, give other fields, which
need not be gradients of anything.
"""

from functools import lru_cache, partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int

from qdtheory.distributions import as_distribution, as_vector
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import PerText, TextArray, require
from qdtheory.support.records import Record


@runtime_checkable
class Model(Protocol):
    """A pytree of parameters that gives every text of a space a probability."""

    def probabilities(self, space: TextSpace) -> TextArray:
        """Return the probability of every text, shape (num_texts,)."""
        ...


@jax.tree_util.register_dataclass
class LogitTable(Record):
    r"""A model with one parameter per text, $Q_i \propto e^{\theta_i}$.

    Args:
        logits: the parameters, shape (N,).

    Example:
        >>> table = LogitTable(np.log([0.5, 0.25, 0.25]))
        >>> table.probabilities(TextSpace(vocab_size=3, lengths=1)).round(12).tolist()
        [0.5, 0.25, 0.25]
    """

    logits: Float[ArrayLike, "*models texts"]  # several models under jax.vmap

    @classmethod
    def of(cls, q: PerText) -> "LogitTable":
        """Build the model of a given distribution.

        Args:
            q: distribution, shape (N,), without zeros.

        Returns:
            The table of log-probabilities.

        Raises:
            ValueError: `q` is not a distribution or has zeros.
        """
        return cls(_logarithm(as_distribution(q, "q")))

    def probabilities(self, space: TextSpace) -> TextArray:
        """Probability of every text, of which there are as many as logits."""
        return jax.nn.softmax(as_vector(self.logits, "logits", space.num_texts))


@jax.tree_util.register_dataclass
class PrefixTable(Record):
    r"""A model with one parameter per prefix and next token; texts have one length.

    $Q(x) = \prod_t q(x_t \mid x_{<t})$ with $q(a \mid s) \propto e^{\theta_{sa}}$.
    Every positive distribution has this form.

    Args:
        logits: the parameters, shape (prefixes, |V|): a row for each prefix, the empty
            one included, shorter first and lexicographic within one length.

    Example:
        >>> table = PrefixTable(np.log([[0.5, 0.5], [0.75, 0.25], [0.5, 0.5]]))
        >>> table.probabilities(TextSpace(vocab_size=2, lengths=2)).round(12).tolist()
        [0.375, 0.125, 0.25, 0.25]
    """

    logits: Float[ArrayLike, "*models prefixes vocab"]

    @classmethod
    def of(cls, q: PerText, space: TextSpace) -> "PrefixTable":
        """Build the model of a given distribution.

        Args:
            q: distribution over the texts, shape (num_texts,), without zeros.
            space: texts of one length.

        Returns:
            The table of logarithms of its conditional probabilities.

        Raises:
            ValueError: `q` is not a distribution over the space or has zeros, or the
                texts differ in length.
        """
        q = as_distribution(q, "q", space.num_texts)
        # A row's probabilities are those of its prefix's extensions, up to a factor.
        rows = [
            q.reshape(n, space.vocab_size, -1).sum(axis=-1) for n in num_prefixes(space)
        ]
        table = jnp.concatenate(rows)
        return cls(_logarithm(table / table.sum(axis=1, keepdims=True)))

    def probabilities(self, space: TextSpace) -> TextArray:
        """Probability of every text; texts have one length and the table's prefixes."""
        logits = jnp.asarray(self.logits, float)
        expected = sum(num_prefixes(space)), space.vocab_size
        if logits.shape != expected:
            raise ValueError(
                f"the table has logits of shape {logits.shape}, the space needs "
                f"{expected}: a row for each prefix, a column for each token"
            )
        return jnp.exp(text_log_probabilities(jax.nn.log_softmax(logits), space))


def num_prefixes(space: TextSpace) -> list[int]:
    """Count the prefixes of each length below that of the texts: 1, |V|, |V|^2, ..."""
    instead = "take a LogitTable, or an LSTM with an end token"
    length = space.only_length("a table of prefixes", instead)
    return [space.vocab_size**t for t in range(length)]


def require_tokens(space: TextSpace, what: str, vocab_size: int) -> None:
    """Raise unless texts have one length and as many tokens as a model is for."""
    space.only_length(what)
    if space.vocab_size != vocab_size:
        raise ValueError(
            f"{what} is over {vocab_size} tokens here, the space over "
            f"{space.vocab_size}"
        )


def refuse(broken: ArrayLike, message: str) -> None:
    """Raise if a rule is broken somewhere; what JAX traces is not known and passes."""
    if not isinstance(broken, Tracer) and np.asarray(broken).any():
        raise ValueError(message)


def text_log_probabilities(
    log_next: Float[ArrayLike, "*batch prefixes vocab"], space: TextSpace
) -> Float[Array, "*batch texts"]:
    """Add up the log-probabilities of the next token along each text.

    Rows of `log_next` are prefixes, in the order of `PrefixTable`.
    """
    log_next = jnp.asarray(log_next)
    batch = log_next.shape[:-2]
    log_prefix = jnp.zeros((*batch, 1))
    for level in jnp.split(log_next, np.cumsum(num_prefixes(space))[:-1], axis=-2):
        log_prefix = (log_prefix[..., None] + level).reshape(*batch, -1)
    return log_prefix


def policy_gradient(model: Model, space: TextSpace, rewards: PerText) -> Any:
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

    Claims: N20.1.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table = LogitTable(np.zeros(2))
        >>> policy_gradient(table, space, np.array([1.0, 0.0])).logits.tolist()
        [0.25, -0.25]
    """
    require_model(model, space)
    rewards = _require_finite(as_vector(rewards, "rewards", space.num_texts))
    return _policy_gradient(model, space, rewards)


@partial(jax.jit, static_argnums=1)
def _policy_gradient(model: Model, space: TextSpace, rewards: Array) -> Any:
    return jax.vjp(lambda m: m.probabilities(space), model)[1](rewards)[0]


def token_policy_gradient(
    model: Model,
    space: TextSpace,
    rewards: Float[ArrayLike, "texts ..."],
    roll_out: PerText | None = None,
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

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table = LogitTable(np.zeros(2))
        >>> token_policy_gradient(table, space, np.array([1.0, 0.0])).logits.tolist()
        [0.25, -0.25]
    """
    require_model(model, space)
    rewards = _require_finite(jnp.asarray(rewards, float))
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
    space: TextSpace, rewards: Float[ArrayLike, "texts ..."], roll_out: PerText
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
    roll_out = as_distribution(roll_out, "roll_out", space.num_texts)
    refuse(roll_out == 0, "roll_out must be positive, to complete every prefix")
    rewards = jnp.asarray(rewards, float).reshape(space.num_texts, -1)
    prefixes, weights = prefix_ids(space), roll_out[:, None]
    return _pooled(prefixes, weights * rewards) / _pooled(prefixes, weights)


def prefix_distribution(
    space: TextSpace, q: PerText
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
    q = as_distribution(q, "q", space.num_texts)
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


def require_model(model: Any, space: TextSpace) -> None:
    """Raise unless a model gives the texts of a space their probabilities."""
    kind = "a pytree with probabilities(space), such as LogitTable"
    require(kind, Model, model=model)
    jax.eval_shape(lambda m: m.probabilities(space), model)


def _logarithm(q: Array) -> Array:
    refuse(
        q == 0,
        "q must be positive everywhere, as logits are finite; mix in a little of the "
        "uniform distribution",
    )
    return jnp.log(q)


def _pooled(prefixes: Int[np.ndarray, "texts positions"], values: Array) -> Array:
    """Sum the values of the texts that share a prefix, for each text and position."""
    values = jnp.broadcast_to(values, prefixes.shape)

    def column(ids: Array, value: Array) -> Array:
        return jax.ops.segment_sum(value, ids, len(prefixes))[ids]

    return jax.vmap(column, 1, 1)(jnp.asarray(prefixes), values)


def _require_finite(rewards: Array) -> Array:
    refuse(
        ~jnp.isfinite(rewards),
        "rewards must be finite; a reward of D is infinite where a model or the real "
        "distribution has a text of probability 0",
    )
    return rewards
