r"""Continuous generators: networks that map latent points to rows of the simplex.

A continuous generator G turns a latent point z into a row of token probabilities for
each position and feeds them to the critic as they are; a text is read off by argmax.
On K equally likely latent points it gives K atoms $G(z_k)$ in the convex hull of
the one-hot texts, and $W_1$ between these two weighted sets of points is a linear
program. So training is quantisation with K equal shares of P: each atom goes to the
geometric median of its share, mostly between texts, and argmax leaves K texts at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from lab.generators.training import Objective, Step
from lab.generators.transport import Coupling, optimal_transport
from qdtheory.distributions import as_distribution, require_positive
from qdtheory.lstm import LSTMLanguageModel, log_next_token, lstm_step
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import STATIC, PerText, TextArray, require
from qdtheory.support.records import Record


class ContinuousGenerator:
    """A model that is a set of equally likely points of the simplex to the power L."""

    def atoms(self, space: TextSpace) -> Float[Array, "atoms length vocab"]:
        """Return the token probabilities at each position, for each latent point."""
        raise NotImplementedError

    def probabilities(self, space: TextSpace) -> TextArray:
        """Probability of every text by argmax at each position, a multiple of 1 / K."""
        atoms = self.atoms(space)
        places = space.vocab_size ** jnp.arange(space.max_length)[::-1]
        texts = (atoms.argmax(axis=-1) * places).sum(axis=-1)
        return jnp.zeros(space.num_texts).at[texts].add(1 / len(atoms))

    def soft_probabilities(self, space: TextSpace) -> TextArray:
        """Probability of every text if each token is drawn from its row instead.

        Args:
            space: texts of one length, over the model's tokens.

        Returns:
            Distribution over the texts, shape (num_texts,).

        Raises:
            ValueError: the space has other tokens or another length.
        """
        atoms = self.atoms(space)
        positions = jnp.arange(space.max_length)
        return atoms[:, positions, space.tokens].prod(axis=-1).mean(axis=0)


@jax.tree_util.register_dataclass
class AtomTable(ContinuousGenerator, Record):
    """A continuous generator with parameters of its own for each latent point.

    Args:
        logits: shape (K, length, vocab_size).

    Claims: N22.12.

    Example:
        >>> table = AtomTable(np.log([[[0.75, 0.25]], [[0.5, 0.5]], [[0.25, 0.75]]]))
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table.probabilities(space).round(3).tolist()
        [0.667, 0.333]
        >>> table.soft_probabilities(space).tolist()
        [0.5, 0.5]
    """

    logits: Float[ArrayLike, "*models atoms length vocab"]

    def atoms(self, space: TextSpace) -> Float[Array, "atoms length vocab"]:
        """See `ContinuousGenerator`."""
        return _checked(jax.nn.softmax(jnp.asarray(self.logits, float)), space)


@jax.tree_util.register_dataclass
class ConvDeconv(ContinuousGenerator, Record):
    """A layer of rectified units at each of a few positions, and a deconvolution.

    Args:
        latent_weights: from z to the units, shape (1, positions, units).
        latent_biases: shape (positions, units).
        kernel: of the transposed convolution, shape (width, units, vocab_size); texts
            have positions + width - 1 tokens.
        biases: of the logits, shape (vocab_size,).
        num_atoms: K; latent points are quantiles of a standard normal.

    References:
        Gulrajani et al. 2017; Semeniuta et al. 2018, section 3.1 (Conv-Deconv).
    """

    latent_weights: Float[Array, "*models latent positions units"]
    latent_biases: Float[Array, "*models positions units"]
    kernel: Float[Array, "*models width units vocab"]
    biases: Float[Array, "*models vocab"]
    num_atoms: int = field(default=16, metadata=STATIC)

    @classmethod
    def random(
        cls, key: PRNGKeyArray, space: TextSpace, num_atoms: int = 16, units: int = 32
    ) -> "ConvDeconv":
        """Draw the parameters from normal distributions.

        Args:
            key: a JAX random key, used once.
            space: texts of one length.
            num_atoms: K, at least 1.
            units: at each position, at least 1.

        Returns:
            The model.

        Raises:
            ValueError: a number is below 1, or texts differ in length.
        """
        require_positive(num_atoms=num_atoms, units=units)
        length = space.only_length("a continuous generator")
        positions = (length + 1) // 2
        shapes = (
            (1, positions, units),
            (positions, units),
            (length - positions + 1, units, space.vocab_size),
            (space.vocab_size,),
        )
        return cls(*_normal(key, shapes, units), num_atoms=num_atoms)

    def atoms(self, space: TextSpace) -> Float[Array, "atoms length vocab"]:
        """See `ContinuousGenerator`."""
        z = latent_points(self.num_atoms)
        units = jnp.tensordot(z, self.latent_weights, 1) + self.latent_biases
        spread = jnp.einsum("kpu,wuv->kpwv", jax.nn.relu(units), self.kernel)
        width = spread.shape[2]
        logits = sum(
            jnp.pad(spread[:, :, w], ((0, 0), (w, width - 1 - w), (0, 0)))
            for w in range(width)
        )
        return _checked(jax.nn.softmax(logits + self.biases), space)


@jax.tree_util.register_dataclass
class ConvLSTM(ContinuousGenerator, Record):
    """An LSTM that starts at the latent point and reads its own softmax as input.

    Args:
        lstm: the recurrence; its input at a position is the mean embedding under the
            token probabilities of the position before.
        latent_weights: from z to the first hidden state, shape (1, hidden).
        latent_biases: shape (hidden,).
        num_atoms: K; latent points are quantiles of a standard normal.

    References:
        Semeniuta et al. 2018, section 3.1 (Conv-LSTM: a convolutional critic, an LSTM
        as generator).
    """

    lstm: LSTMLanguageModel
    latent_weights: Float[Array, "*models latent hidden"]
    latent_biases: Float[Array, "*models hidden"]
    num_atoms: int = field(default=16, metadata=STATIC)

    @classmethod
    def random(
        cls, key: PRNGKeyArray, space: TextSpace, num_atoms: int = 16, size: int = 32
    ) -> "ConvLSTM":
        """Draw the parameters from normal distributions.

        Args:
            key: a JAX random key, used once.
            space: texts of one length.
            num_atoms: K, at least 1.
            size: width of the embeddings and of the hidden state, at least 1.

        Returns:
            The model.

        Raises:
            ValueError: a number is below 1, or texts differ in length.
        """
        require_positive(num_atoms=num_atoms, size=size)
        space.only_length("a continuous generator")
        inner, outer = jax.random.split(key)
        deviation = 1 / np.sqrt(size)
        words = space.vocab_size
        lstm = LSTMLanguageModel.random(inner, words, size, size, deviation)
        latent = _normal(outer, ((1, size), (size,)), 1)
        return cls(lstm, *latent, num_atoms=num_atoms)

    def atoms(self, space: TextSpace) -> Float[Array, "atoms length vocab"]:
        """See `ContinuousGenerator`."""
        z = latent_points(self.num_atoms)
        h = jnp.tanh(z @ self.latent_weights + self.latent_biases)
        inputs = self.lstm.embeddings @ self.lstm.input_weights + self.lstm.gate_biases
        state, rows = (h, jnp.zeros_like(h)), []
        for _ in range(space.max_length):
            rows.append(jnp.exp(log_next_token(self.lstm, state[0], 1.0, False)))
            state = lstm_step(self.lstm, state, rows[-1] @ inputs)
        return _checked(jnp.stack(rows, axis=1), space)


@dataclass(frozen=True)
class ContinuousWGAN(Objective):
    """An objective of `train`: to descend W1 between atoms and one-hot texts.

    The critic is optimal among all functions with slopes of at most 1, by linear
    programming. The gradient penalty, which stands for this constraint in a network, is
    left out.

    References:
        Gulrajani et al. 2017 (WGAN-GP); Semeniuta et al. 2018, equation 1.
    """

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Refuse other models; there is no state, as each step's critic is optimal."""
        kind = "one that has atoms(space), such as AtomTable, ConvLSTM or ConvDeconv"
        require(kind, ContinuousGenerator, model=model)
        return ()

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        """See `Objective`; each atom moves towards the texts that the plan gives it."""

        def loss(model: Any) -> Array:
            return transport_to_texts(model, space, p).value

        return jax.tree.map(jnp.negative, jax.grad(loss)(model)), state


def transport_to_texts(
    model: ContinuousGenerator, space: TextSpace, p: PerText
) -> Coupling:
    r"""The cheapest plan between a model's atoms and the one-hot texts of P.

    Distances are Euclidean, those of two texts $\sqrt{2}$ times the root of Hamming's.
    The derivative by an atom is $\sum_j \pi_{kj} (G_k - e_j) / |G_k - e_j|$.

    Args:
        model: a continuous generator.
        space: texts of one length.
        p: the real distribution, shape (num_texts,).

    Returns:
        The plan, its potentials and W1.

    Raises:
        ValueError: the space does not fit the model, or `p` is not a distribution over
            it.
        RuntimeError: the linear program was not solved.

    Claims: N22.12.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> middle = AtomTable(np.zeros((1, 1, 2)))
        >>> found = transport_to_texts(middle, space, np.array([0.5, 0.5]))
        >>> round(float(found.value), 6)
        0.707107
    """
    p = as_distribution(p, "p", space.num_texts)
    atoms = model.atoms(space)
    texts = jax.nn.one_hot(space.tokens, space.vocab_size, dtype=float)
    squares = ((atoms[:, None] - texts) ** 2).sum(axis=(-2, -1))
    # An atom that is a text has no direction to it: the slope there is taken as 0.
    apart = squares > 0
    cost = jnp.where(apart, jnp.sqrt(jnp.where(apart, squares, 1)), 0)
    return optimal_transport(cost, jnp.full(len(atoms), 1 / len(atoms)), p)


def latent_points(num_atoms: int) -> Float[Array, "atoms 1"]:
    """Equally likely points of a standard normal: the medians of K equal shares."""
    require_positive(num_atoms=num_atoms)
    return ndtri((jnp.arange(num_atoms) + 0.5) / num_atoms)[:, None]


def _normal(
    key: PRNGKeyArray, shapes: Sequence[tuple[int, ...]], units: int
) -> list[Array]:
    keys = jax.random.split(key, len(shapes))
    scales = [1 if shape[0] == 1 or len(shape) < 3 else units**-0.5 for shape in shapes]
    draws = (jax.random.normal(k, s, dtype=float) for k, s in zip(keys, shapes))
    return [scale * draw for scale, draw in zip(scales, draws)]


def _checked(atoms: Array, space: TextSpace) -> Array:
    expected = space.only_length("a continuous generator"), space.vocab_size
    if atoms.ndim == 3 and atoms.shape[1:] == expected:
        return atoms
    raise ValueError(
        f"the model has atoms of shape {atoms.shape[1:]}, the space texts of "
        f"{expected[0]} tokens out of {expected[1]}"
    )
