r"""Autoencoders as exact distributions: the codes of a grid, mixed by the prior.

An encoder gives each text a code μ(x), with noise or without; a decoder gives each code
z a law over texts, $p(x \mid z) = \prod_t p(x_t \mid x_{<t}, z)$; texts are drawn from
$p(x) = \sum_k w_k\,p(x \mid z_k)$. The encoder is a table, the best that any network
could be. Whether this is a VAE, an adversarial or a plain autoencoder is a matter of
the objective, see `autoencoder_objectives`.
"""

from dataclasses import field
from functools import lru_cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from qdtheory.generators.latents import LatentGrid, log_posterior, placed
from qdtheory.generators.tables import num_prefixes, text_log_probabilities
from qdtheory.world.distributions import Number, check_positive
from qdtheory.world.numbers import STATIC
from qdtheory.world.records import Record
from qdtheory.world.spaces import TextSpace


@jax.tree_util.register_dataclass
class Perceptron(Record):
    """One hidden layer of tanh, and a linear way past it.

    Args:
        inner: weights of the hidden layer, shape (inputs, hidden).
        inner_biases: shape (hidden,).
        outer: weights of inputs and hidden units, shape (inputs + hidden, outputs).
        outer_biases: shape (outputs,).
    """

    inner: Float[ArrayLike, "*models inputs hidden"]
    inner_biases: Float[ArrayLike, "*models hidden"]
    outer: Float[ArrayLike, "*models width outputs"]
    outer_biases: Float[ArrayLike, "*models outputs"]

    @classmethod
    def random(
        cls, key: PRNGKeyArray, inputs: int, hidden: int, outputs: int
    ) -> "Perceptron":
        """Draw a network whose hidden units bend where a normal prior has its mass.

        Args:
            key: a JAX random key, used once.
            inputs: number of inputs.
            hidden: number of hidden units.
            outputs: number of outputs.

        Returns:
            The network.
        """
        keys = jax.random.split(key, 3)
        inner = 2 * jax.random.normal(keys[0], (inputs, hidden))
        places = jax.random.uniform(keys[1], (hidden,), minval=-4, maxval=4)
        outer = 0.3 * jax.random.normal(keys[2], (inputs + hidden, outputs))
        return cls(inner, places, outer, jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Apply the network to each row."""
        hidden = jnp.tanh(x @ self.inner + self.inner_biases)
        return jnp.concatenate([x, hidden], axis=-1) @ self.outer + self.outer_biases


@jax.tree_util.register_dataclass
class Autoencoder(Record):
    r"""An encoder by a table of codes, a decoder by a network, and a prior on a grid.

    Args:
        codes: μ of each text, shape (texts, dim); on the circle its direction counts.
        log_sigma: logarithms of the noise, one for each text and dimension, which
            training learns; one number on the circle, which it keeps; None for codes
            without noise.
        decoder: from codes to the logits of the next token after each prefix, those
            without masked tokens first, and of a bag of words.
        generator: None, or a network that moves the nodes of the grid: the learned
            prior of an ARAE.
        grid: the prior and its nodes.

    References:
        Cífka et al. 2018, section 4.

    Claims: N23.4.
    """

    codes: Float[ArrayLike, "*models texts dim"]
    log_sigma: Float[ArrayLike, "..."] | None  # several shapes, see above
    decoder: Perceptron
    generator: Perceptron | None
    grid: LatentGrid = field(metadata=STATIC)

    @classmethod
    def random(
        cls,
        key: PRNGKeyArray,
        space: TextSpace,
        grid: LatentGrid,
        sigma: Number | None = None,
        *,
        hidden_size: int = 16,
        learned_prior: bool = False,
    ) -> "Autoencoder":
        """Draw an autoencoder with random codes.

        Args:
            key: a JAX random key, used once.
            space: texts of one length.
            grid: the latent space with its prior.
            sigma: the noise to start with, which training keeps on the circle and
                learns elsewhere; None: codes without noise.
            hidden_size: number of hidden units of each network.
            learned_prior: whether a network moves the nodes of the grid.

        Returns:
            The model.

        Raises:
            ValueError: the texts have several lengths, or a number is out of range.

        Example:
            >>> from qdtheory.generators import circle_grid
            >>> space = TextSpace(vocab_size=2, lengths=3)
            >>> key, grid = jax.random.key(0), circle_grid(64)
            >>> model = Autoencoder.random(key, space, grid, sigma=0.5)
            >>> float(model.probabilities(space).sum().round(12))
            1.0
        """
        num_rows = len(masked_prefixes(space))
        check_positive(hidden_size=hidden_size)
        if sigma is not None and not isinstance(sigma, Tracer) and not 0 < sigma < 100:
            raise ValueError(f"sigma must lie in (0, 100), got {sigma}")
        keys, dim = jax.random.split(key, 3), grid.nodes.shape[1]
        codes = jax.random.normal(keys[0], (space.num_texts, dim))
        log_sigma = None
        if sigma is not None:
            shape = () if grid.rule == "circle" else codes.shape
            log_sigma = jnp.full(shape, jnp.log(sigma))
        outputs = (num_rows + 1) * space.vocab_size
        decoder = Perceptron.random(keys[1], dim, hidden_size, outputs)
        moved = Perceptron.random(keys[2], dim, hidden_size, dim)
        return cls(codes, log_sigma, decoder, moved if learned_prior else None, grid)

    def probabilities(self, space: TextSpace) -> Float[Array, " texts"]:
        """Compute the probability of every text, a sum over the nodes of the grid.

        Args:
            space: the texts, as many as there are codes.

        Returns:
            Distribution over the texts, shape (num_texts,).

        Raises:
            ValueError: the texts have several lengths, or are not those of the codes.
        """
        log_decoded = self.log_decoded(space, self.prior_codes())
        return jnp.asarray(self.grid.weights) @ jnp.exp(log_decoded)

    def prior_codes(self) -> Float[Array, "nodes dim"]:
        """Codes that texts are generated from, each with the weight of its node."""
        nodes = jnp.asarray(self.grid.nodes)
        return nodes if self.generator is None else self.generator(nodes)

    def text_codes(self) -> Float[Array, "texts dim"]:
        """Codes of the texts without noise, on the circle normalised."""
        return placed(self.grid, self.codes)

    def log_posterior(self, sigma: Number | None = None) -> Float[Array, "texts nodes"]:
        """Log-probabilities of the nodes of the grid given each text.

        Args:
            sigma: noise; by default the model's own.

        Returns:
            A row for each text.

        Raises:
            ValueError: the model's codes have no noise.
        """
        if sigma is not None:
            return log_posterior(self.grid, self.codes, jnp.full((1, 1), sigma))
        if self.log_sigma is None:
            raise ValueError(
                "codes without noise are points, and a grid has no posterior for them; "
                "draw the model with a sigma"
            )
        learned = self.grid.rule != "circle"
        log_sigma = jnp.atleast_2d(jnp.asarray(self.log_sigma, float))
        kept = log_sigma if learned else jax.lax.stop_gradient(log_sigma)
        return log_posterior(self.grid, self.codes, jnp.exp(kept))

    def log_decoded(
        self, space: TextSpace, codes: Float[Array, "codes dim"], keep: float = 1.0
    ) -> Float[Array, "codes texts"]:
        r"""Log-likelihood of each text given each code, with word dropout.

        With word dropout the decoder sees each earlier token with probability `keep`
        and a mask otherwise. The mean of $\log p(x \mid z, \text{masks})$ is exact:
        the term of token t depends on the $2^{t-1}$ choices of masks before it.

        Args:
            space: the texts, as many as there are codes of texts.
            codes: codes to decode.
            keep: probability that a token is seen.

        Returns:
            A row for each code, in nats.

        References:
            Bowman et al. 2016, for word dropout.

        Claims: N23.3.
        """
        masked = keep < 1
        log_next = jax.nn.log_softmax(self.next_token_logits(space, codes, masked))
        if masked:
            log_next = jnp.einsum("pr,crv->cpv", _masking(space, keep), log_next)
        return text_log_probabilities(log_next, space)

    def log_bag(
        self, space: TextSpace, codes: Float[Array, "codes dim"]
    ) -> Float[Array, "codes texts"]:
        r"""Log-likelihood of each text's bag of words, $\sum_t \log p_{bow}(x_t | z)$.

        Args:
            space: the texts.
            codes: codes to decode.

        Returns:
            A row for each code, in nats.

        References:
            Zhao, Zhao and Eskénazi 2017.
        """
        logits = self.decoder(codes)[:, -space.vocab_size :]
        counts = np.eye(space.vocab_size)[space.tokens].sum(axis=1)
        return jax.nn.log_softmax(logits) @ counts.T

    def next_token_logits(
        self,
        space: TextSpace,
        codes: Float[Array, "codes dim"],
        masked: bool = False,
    ) -> Float[Array, "codes prefixes vocab"]:
        """Logits of the next token after each prefix, in the order of `PrefixTable`.

        Args:
            space: the texts.
            codes: codes to decode.
            masked: whether prefixes with masked tokens follow, see `masked_prefixes`.

        Returns:
            For each code a row for each prefix.

        Raises:
            ValueError: the texts have several lengths, or are not those of the codes.
        """
        num_rows, size = len(masked_prefixes(space)), space.vocab_size
        shapes = jnp.shape(self.codes)[0], jnp.shape(self.decoder.outer)[1]
        expected = space.num_texts, (num_rows + 1) * size
        if shapes != expected:
            raise ValueError(
                f"the autoencoder has {shapes[0]} codes and {shapes[1]} outputs, the "
                f"space needs {expected[0]} and {expected[1]}; draw a model for it"
            )
        rows = num_rows if masked else sum(num_prefixes(space))
        seen = Perceptron(
            self.decoder.inner,
            self.decoder.inner_biases,
            jnp.asarray(self.decoder.outer)[:, : rows * size],
            jnp.asarray(self.decoder.outer_biases)[: rows * size],
        )
        return seen(codes).reshape(len(codes), rows, size)


@lru_cache(maxsize=16)
def masked_prefixes(space: TextSpace) -> tuple[tuple[int, ...], ...]:
    """List the prefixes that a decoder may see, those without masks first.

    Args:
        space: texts of one length.

    Returns:
        Prefixes over the tokens and -1, the mask; within each half shorter ones first.

    Raises:
        ValueError: the texts have several lengths.

    Example:
        >>> masked_prefixes(TextSpace(vocab_size=2, lengths=2))
        ((), (0,), (1,), (-1,))
    """
    if len(space.lengths) > 1:
        raise ValueError(
            f"an autoencoder is for texts of one length, got lengths {space.lengths}"
        )
    space.refuse_beyond_memory(
        8 * space.max_length * (space.vocab_size + 1) ** (space.max_length - 1),
        "table of prefixes with masks",
    )
    tokens = (*range(space.vocab_size), -1)
    lengths = range(space.max_length)
    every = [s for length in lengths for s in product(tokens, repeat=length)]
    return tuple(sorted(every, key=lambda s: -1 in s))


@lru_cache(maxsize=16)
def _masking(space: TextSpace, keep: float) -> Float[np.ndarray, "prefixes seen"]:
    """Probability that a prefix is seen with each choice of masks."""
    prefixes = masked_prefixes(space)
    place = {prefix: i for i, prefix in enumerate(prefixes)}
    chances = np.zeros((sum(num_prefixes(space)), len(prefixes)))
    for row, prefix in enumerate(prefixes[: len(chances)]):
        for seen in product((True, False), repeat=len(prefix)):
            masked = tuple(a if see else -1 for a, see in zip(prefix, seen))
            kept = sum(seen)
            chance = keep**kept * (1 - keep) ** (len(prefix) - kept)
            chances[row, place[masked]] = chance
    return chances
