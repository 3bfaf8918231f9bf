r"""LeakGAN's generators that see the hidden state of a discriminator, as policies.

A discriminator that judges prefixes step by step is an LSTM; its hidden state after
$x_{<t}$ is an input of the generator that chooses $x_t$. To the generator that state is
a constant: its gradient ends there.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from qdtheory.generators.adversarial import Adversarial, discounted_returns
from qdtheory.generators.tables import check_tokens
from qdtheory.world.language_models import LSTMLanguageModel, prefix_states
from qdtheory.world.numbers import STATIC, within
from qdtheory.world.records import Record
from qdtheory.world.spaces import TextSpace

# What the generator sees of its own state and of the discriminator's.
VARIANTS = {"leak": (False, True), "noleak": (True, False), "mixed": (True, True)}


@jax.tree_util.register_dataclass
class LeakyLSTM(Record):
    r"""A generator that sees a discriminator's hidden state, its own, or both.

    The next token has the logits $W \tanh(A s + a) + b$, s the states that are seen; W
    and b are the generator's output layer. The discriminator's logit of the prefix
    $x_{\le t}$ is its output for $x_t$ after $x_{<t}$.

    Args:
        generator: an LSTM over words.
        discriminator: another over the same words.
        mixing_weights: A, shape (states seen, hidden).
        mixing_biases: a, shape (hidden,).
        variant: "leak", the discriminator's state alone; "noleak", the generator's
            alone; "mixed", both.

    Raises:
        ValueError: the variant is another one.

    References:
        Semeniuta et al. 2018, section 3.2; Guo et al. 2018.

    Claims: N22.8.

    Example:
        >>> model = LeakyLSTM.random(jax.random.key(0), 4, "mixed")
        >>> q = model.probabilities(TextSpace(vocab_size=4, lengths=3))
        >>> q.shape, float(q.sum().round(12))
        ((64,), 1.0)
    """

    generator: LSTMLanguageModel
    discriminator: LSTMLanguageModel
    mixing_weights: Float[Array, "*models seen hidden"]
    mixing_biases: Float[Array, "*models hidden"]
    variant: str = field(default="mixed", metadata=STATIC)

    def __post_init__(self) -> None:
        _check_variant(self.variant)

    @classmethod
    def random(
        cls,
        key: PRNGKeyArray,
        vocab_size: int,
        variant: str = "mixed",
        size: int = 32,
        sigma: float = 1.0,
    ) -> "LeakyLSTM":
        r"""Draw all parameters from $N(0, \sigma^2)$.

        Args:
            key: a JAX random key, used once.
            vocab_size: number of words.
            variant: see above.
            size: width of embeddings and hidden states, of both networks.
            sigma: standard deviation, positive.

        Returns:
            The model.

        Raises:
            ValueError: a number is out of range, or the variant is another one.
        """
        _check_variant(variant)
        keys = jax.random.split(key, 4)
        generator, discriminator = (
            LSTMLanguageModel.random(k, vocab_size, size, size, sigma) for k in keys[:2]
        )
        seen = size * sum(VARIANTS[variant])
        weights = sigma * jax.random.normal(keys[2], (seen, size))
        biases = sigma * jax.random.normal(keys[3], (size,))
        return cls(generator, discriminator, weights, biases, variant)

    def probabilities(self, space: TextSpace) -> Float[Array, " texts"]:
        """Compute the probability of every text.

        Args:
            space: texts of one length over the model's words.

        Returns:
            Distribution over the texts, shape (num_texts,).

        Raises:
            ValueError: the space has another vocabulary, or several lengths.
        """
        check_tokens(space, "a LeakyLSTM", self.generator.num_words)
        own, leaked = (
            list(prefix_states(network, space.max_length))
            for network in (self.generator, jax.lax.stop_gradient(self.discriminator))
        )
        log_prefix = jnp.zeros(1)
        for states in zip(own, leaked):
            seen = [s for s, used in zip(states, VARIANTS[self.variant]) if used]
            mixed = jnp.concatenate(seen, axis=1) @ self.mixing_weights
            hidden = jnp.tanh(mixed + self.mixing_biases)
            output = self.generator.output_weights, self.generator.output_biases
            log_next = jax.nn.log_softmax(hidden @ output[0] + output[1])
            log_prefix = (log_prefix[:, None] + log_next).ravel()
        return jnp.exp(log_prefix)


@dataclass(frozen=True)
class LeakGAN(Adversarial):
    """SeqGAN-step for a `LeakyLSTM`, whose discriminator learns at the same time.

    Both move by the gradients of their objectives at each step of `train`: the
    discriminator by that of the log-likelihood of its judgements of all prefixes.

    Args:
        gamma: the discount, in [0, 1].

    Raises:
        ValueError: `gamma` is out of range.

    References:
        Semeniuta et al. 2018, section 3.2, for these simpler variants of LeakGAN.

    Claims: N22.8.
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        within(gamma=self.gamma, low=0, high=1)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Refuse other models; return an empty state."""
        if not isinstance(model, LeakyLSTM):
            raise TypeError(
                f"LeakGAN trains a LeakyLSTM, got a {type(model).__name__}; train "
                "other models with SeqGANStep"
            )
        return ()

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Judge prefixes and sum what follows."""
        logits = prefix_scores(model.discriminator, space)
        return discounted_returns(jax.nn.sigmoid(logits), self.gamma), state

    def ascent(
        self,
        state: Any,
        model: Any,
        space: TextSpace,
        p: Array,
        shares: Array | None = None,
    ) -> tuple[Any, Any]:
        """Return both directions as one."""
        ascent, state = super().ascent(state, model, space, p, shares)
        q = model.probabilities(space)

        def likelihood(discriminator: LSTMLanguageModel) -> Array:
            logits = prefix_scores(discriminator, space)
            real, fake = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
            return (p @ real + q @ fake).sum()

        learned = jax.grad(likelihood)(model.discriminator)
        return replace(ascent, discriminator=learned), state


def prefix_scores(
    network: LSTMLanguageModel, space: TextSpace
) -> Float[Array, "texts max_length"]:
    """Scores of the prefixes of each text: an LSTM's output for their last token."""
    check_tokens(space, "a discriminator", network.num_words)
    columns = []
    for h in prefix_states(network, space.max_length):
        scores = (h @ network.output_weights + network.output_biases).ravel()
        columns.append(jnp.repeat(scores, space.num_texts // scores.size))
    return jnp.stack(columns, axis=1)


def _check_variant(variant: str) -> None:
    if variant not in VARIANTS:
        raise ValueError(
            f"variant must be one of {', '.join(VARIANTS)}, got {variant!r}"
        )
