"""Models that are tables of logits: one per text, or one per prefix and next token."""

from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from qdtheory.world.distributions import check_distribution, check_vector
from qdtheory.world.records import Record
from qdtheory.world.spaces import TextSpace


@runtime_checkable
class Model(Protocol):
    """A pytree of parameters that gives every text of a space a probability."""

    def probabilities(self, space: TextSpace) -> Float[Array, " texts"]:
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
    def of(cls, q: Float[ArrayLike, " texts"]) -> "LogitTable":
        """Build the model of a given distribution.

        Args:
            q: distribution, shape (N,), without zeros.

        Returns:
            The table of log-probabilities.

        Raises:
            ValueError: `q` is not a distribution or has zeros.
        """
        return cls(_logarithm(check_distribution(q, "q")))

    def probabilities(self, space: TextSpace) -> Float[Array, " texts"]:
        """Compute the probability of every text.

        Args:
            space: texts, as many as the table has logits.

        Returns:
            Distribution over the texts, shape (num_texts,).

        Raises:
            ValueError: the space has another number of texts.
        """
        logits = check_vector(self.logits, "logits")
        if logits.size != space.num_texts:
            raise ValueError(
                f"the table has {logits.size} logits, the space {space.num_texts} "
                "texts; a table needs one logit a text"
            )
        return jax.nn.softmax(logits)


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
    def of(cls, q: Float[ArrayLike, " texts"], space: TextSpace) -> "PrefixTable":
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
        q = check_distribution(q, "q", space.num_texts)
        # A row's probabilities are those of its prefix's extensions, up to a factor.
        rows = [
            q.reshape(n, space.vocab_size, -1).sum(axis=-1) for n in num_prefixes(space)
        ]
        table = jnp.concatenate(rows)
        return cls(_logarithm(table / table.sum(axis=1, keepdims=True)))

    def probabilities(self, space: TextSpace) -> Float[Array, " texts"]:
        """Compute the probability of every text.

        Args:
            space: texts of one length, with the prefixes that the table has.

        Returns:
            Distribution over the texts, shape (num_texts,).

        Raises:
            ValueError: the texts differ in length, or the table has other prefixes.
        """
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


def check_tokens(space: TextSpace, what: str, vocab_size: int) -> None:
    """Raise unless texts have one length and as many tokens as a model is for."""
    space.only_length(what)
    if space.vocab_size != vocab_size:
        raise ValueError(
            f"{what} is over {vocab_size} tokens here, the space over "
            f"{space.vocab_size}"
        )


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


def _logarithm(q: Array) -> Array:
    if not isinstance(q, Tracer) and np.asarray(q).min() == 0:
        raise ValueError(
            "q must be positive everywhere, as logits are finite; mix in a little of "
            "the uniform distribution"
        )
    return jnp.log(q)
