"""The LSTM of SeqGAN as an exact distribution over texts.

One class serves as oracle, trained model and generator; scoring, sampling and
enumeration share one recurrence step.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from math import isqrt

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray

from qdtheory.distributions import (
    as_distribution,
    fingerprint,
    require_finite,
    require_positive,
    require_x64,
)
from qdtheory.spaces import TextSpace, require_space
from qdtheory.support.numbers import STATIC, Number, TextArray, within
from qdtheory.support.records import Record

START_TOKEN = 0
# Texts per batch in scoring and sampling; bounds the memory of the logits.
BATCH_SIZE = 512


@jax.tree_util.register_dataclass
class LSTMLanguageModel(Record):
    r"""An autoregressive LSTM language model, started from a start token.

    $i, f, o = \mathrm{sigmoid}(x W + h U + b)$, $\tilde c = \tanh(x W + h U + b)$
    (each gate has its own W, U, b), $c' = f c + i \tilde c$, $h' = o \tanh c'$, logits
    of the next token $h' W_y + b_y$; h and c start at zero, and token 0, or
    the end token, is read before the first. Without an end token every text has a given
    length; with one, texts have 1 .. max_length tokens: the end token has probability 0
    at the first position, and a text of the greatest length ends with certainty.

    Args:
        embeddings: shape (vocab_size, embedding).
        input_weights: the four W concatenated, gates in the order input, forget,
            output, cell, shape (embedding, 4 hidden).
        recurrent_weights: the four U, shape (hidden, 4 hidden).
        gate_biases: the four b, shape (4 hidden,).
        output_weights: shape (hidden, vocab_size).
        output_biases: shape (vocab_size,).
        end_token: None, or vocab_size - 1: the last token ends a text and also serves
            as start token, and texts are over tokens 0 .. vocab_size - 2.

    Raises:
        ValueError: inconsistent shapes, or an end token other than the last of at
            least two.

    References:
        Yu et al. 2017 (SeqGAN), the oracle; Li et al. 2020, section 6.1.

    Claims: N1.2, N1.7, N1.9, E13.3.

    Example:
        >>> model = LSTMLanguageModel.random(jax.random.key(0), vocab_size=4)
        >>> p = model.probabilities(TextSpace(vocab_size=4, lengths=3))
        >>> p.shape, float(p.sum().round(12))
        ((64,), 1.0)
    """

    embeddings: Float[Array, "*models vocab embedding"]
    input_weights: Float[Array, "*models embedding gates"]
    recurrent_weights: Float[Array, "*models hidden gates"]
    gate_biases: Float[Array, "*models gates"]
    output_weights: Float[Array, "*models hidden vocab"]
    output_biases: Float[Array, "*models vocab"]
    end_token: int | None = field(default=None, metadata=STATIC)

    def __post_init__(self) -> None:
        arrays = jax.tree.leaves(self)
        if not all(isinstance(a, np.ndarray | jax.Array) for a in arrays):
            return  # JAX rebuilds pytrees with placeholders instead of arrays
        shapes = [tuple(a.shape) for a in arrays]
        if [len(shape) for shape in shapes] != [2, 2, 2, 1, 2, 1]:
            return  # a batch of models, under jax.vmap
        (vocab, embedding), hidden = shapes[0], shapes[2][0]
        expected = _shapes(vocab, embedding, hidden)
        if shapes != expected:
            raise ValueError(f"the arrays must have shapes {expected}, got {shapes}")
        if self.end_token is not None and not 0 < self.end_token == vocab - 1:
            raise ValueError(
                f"end_token must be None or the last of at least 2 tokens, "
                f"{vocab - 1}, got {self.end_token}"
            )

    @property
    def vocab_size(self) -> int:
        """Number of tokens the model predicts, the end token included."""
        return self.embeddings.shape[0]

    @property
    def num_words(self) -> int:
        """Number of tokens that texts consist of, the end token excluded."""
        return self.vocab_size - (self.end_token is not None)

    @classmethod
    def random(
        cls,
        key: PRNGKeyArray,
        vocab_size: int,
        embedding_size: int = 32,
        hidden_size: int = 32,
        sigma: float = 1.0,
        end_token: int | None = None,
    ) -> "LSTMLanguageModel":
        r"""Draw all parameters, biases included, from $N(0, \sigma^2)$.

        Args:
            key: a JAX random key, used once.
            vocab_size: number of tokens, the end token included, at least 1.
            embedding_size: width of the embeddings, 32 in SeqGAN.
            hidden_size: width of h and c, 32 in SeqGAN.
            sigma: standard deviation, positive and finite; 1 in SeqGAN. Smaller values
                give flatter distributions: for small sigma a text of length L has, on
                average, $L (|V| - 1) \sigma^2 / (2 |V|)$ nats of entropy less than
                $\log N$.
            end_token: None, or vocab_size - 1.

        Returns:
            The model.

        Raises:
            ValueError: a size is below 1, sigma is not positive and finite, or the end
                token is another one.

        References:
            Yu et al. 2017; Li et al. 2020, section 6.1 (sigma = .5, 1, 2).
        """
        require_x64()
        require_positive(vocab_size=vocab_size)
        require_positive(embedding_size=embedding_size, hidden_size=hidden_size)
        within(sigma=sigma, low=0, ends="()")
        shapes = _shapes(vocab_size, embedding_size, hidden_size)
        keys = jax.random.split(key, len(shapes))
        arrays = (sigma * jax.random.normal(k, s) for k, s in zip(keys, shapes))
        return cls(*arrays, end_token=end_token)

    @classmethod
    def from_arrays(cls, arrays: Sequence[ArrayLike]) -> "LSTMLanguageModel":
        """Build a model from SeqGAN's 15 parameter arrays, which determine its sizes.

        Args:
            arrays: embeddings; W, U, b of the input, forget, output and cell gate;
                output W and b. Float32 files are widened to float64.

        Raises:
            ValueError: not 15 arrays, inconsistent shapes, or an entry that is not
                finite (the message names the first such array).

        References:
            Yu et al. 2017; the order of the published parameter file.
        """
        require_x64()
        if len(arrays) != len(_SEQGAN_NAMES):
            raise ValueError(
                f"expected SeqGAN's {len(_SEQGAN_NAMES)} arrays "
                f"({', '.join(_SEQGAN_NAMES)}), got {len(arrays)}"
            )
        values = [np.asarray(array, dtype=np.float64) for array in arrays]
        if values[0].ndim != 2 or values[2].ndim != 2:
            raise ValueError("embeddings and U_input must be matrices")
        (vocab, embedding), hidden = values[0].shape, values[2].shape[0]
        gate = [(embedding, hidden), (hidden, hidden), (hidden,)]
        expected = [(vocab, embedding), *4 * gate, (hidden, vocab), (vocab,)]
        for name, value, shape in zip(_SEQGAN_NAMES, values, expected):
            if value.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {value.shape}")
            require_finite(value, name)
        kinds = (
            np.concatenate(values[1 + kind : 13 : 3], axis=-1) for kind in range(3)
        )
        arguments = (jnp.asarray(a) for a in (values[0], *kinds, *values[13:]))
        return cls(*arguments, end_token=None)

    @property
    def fingerprint(self) -> str:
        """Hash of the parameters in 8 hex digits, to detect a changed random stream."""
        leaves = jax.tree.leaves(self)
        return fingerprint(np.concatenate([np.ravel(leaf) for leaf in leaves]))

    def probabilities(
        self,
        space: TextSpace,
        temperature: Number = 1.0,
        length_probabilities: Float[ArrayLike, " lengths"] | None = None,
    ) -> TextArray:
        r"""Compute every text's exact probability in one pass over the prefix tree.

        Each prefix is processed once:
        $1 + |V| + \dots + |V|^{L-1} = (N - 1) / (|V| - 1)$ steps for N texts of one
        length L, instead of N L.

        Args:
            space: texts over the model's words. A model with an end token needs
                lengths 1, 2, .., L.
            temperature: token temperature, which divides the logits; positive.
            length_probabilities: for a model without an end token on several lengths,
                the probability of each length, shape (len(space.lengths),).

        Returns:
            Distribution over the texts, shape (num_texts,).

        Raises:
            ValueError: the space has another vocabulary, or lengths other than 1 .. L
                for a model with an end token; `length_probabilities` is missing for
                several lengths, is not a distribution, or is given with an end token;
                or the temperature is not positive and finite.

        References:
            Yu et al. 2017; Li et al. 2020, section 6.1.
        """
        if space.vocab_size != self.num_words:
            raise ValueError(
                f"the model's texts are over {self.num_words} tokens, the space's over "
                f"{space.vocab_size}; an end token is not counted in the space"
            )
        within(temperature=temperature, low=0, ends="()")
        if self.end_token is None:
            weights = _length_weights(space, length_probabilities)
        else:
            weights = None
            if length_probabilities is not None:
                raise ValueError(
                    "length_probabilities is for models without an end token; this "
                    "model gives each length its probability itself"
                )
            if space.lengths != tuple(range(1, space.max_length + 1)):
                raise ValueError(
                    "a model with an end token gives every length up to the greatest; "
                    f"use lengths {tuple(range(1, space.max_length + 1))}, "
                    f"got {space.lengths}"
                )
        return _tree_probabilities(self, space.lengths, temperature, weights)

    def log_probability(
        self, tokens: Int[ArrayLike, "texts length"], temperature: Number = 1.0
    ) -> TextArray:
        """Log-probability of texts, in nats.

        Args:
            tokens: one text per row, shape (num_texts, length). With an end token,
                shorter texts are padded with -1 and the width is the greatest length,
                as in the output of `sample`.
            temperature: token temperature, positive.

        Returns:
            Natural logarithms, shape (num_texts,).

        Raises:
            TypeError: tokens are not integers.
            ValueError: `tokens` is not a table, a token is not one of the model's
                words, a text is empty, padding occurs inside a text or without an end
                token, or the temperature is not positive and finite.
        """
        self._require_tokens(tokens)
        within(temperature=temperature, low=0, ends="()")
        return _log_probability(self, jnp.asarray(tokens), temperature)

    def sample(
        self, key: PRNGKeyArray, num_texts: int, length: int, temperature: Number = 1.0
    ) -> Int[Array, "texts length"]:
        """Draw independent texts.

        Args:
            key: a JAX random key, used once.
            num_texts: number of texts, at least 1.
            length: length of each text or, with an end token, the greatest length; at
                least 1.
            temperature: token temperature, positive.

        Returns:
            Tokens, shape (num_texts, length); -1 after the end of a text.

        Raises:
            ValueError: a number is below 1, or the temperature is not positive and
                finite.
        """
        require_positive(num_texts=num_texts, length=length)
        within(temperature=temperature, low=0, ends="()")
        return _sample(self, key, num_texts, length, temperature)

    def _require_tokens(self, tokens: ArrayLike) -> None:
        if isinstance(tokens, Tracer):
            return
        tokens = np.asarray(tokens)
        if not np.issubdtype(tokens.dtype, np.integer):
            raise TypeError(f"tokens must be integers, got dtype {tokens.dtype}")
        if tokens.ndim != 2 or tokens.shape[1] == 0:
            raise ValueError(
                f"tokens must be a table, one text a row, got shape {tokens.shape}"
            )
        ended = tokens == -1
        if (wrong := ~ended & ((tokens < 0) | (tokens >= self.num_words))).any():
            raise ValueError(
                f"tokens must be 0 .. {self.num_words - 1}, got {tokens[wrong][0]}"
            )
        if ended.any() and self.end_token is None:
            raise ValueError(
                "a model without an end token scores texts of one length; "
                "pass each length in a table of its own, without -1"
            )
        if ended[:, 0].any() or (ended[:, :-1] & ~ended[:, 1:]).any():
            raise ValueError(
                "texts hold at least one token, and -1 only after the last"
            )


_GATES = ("input", "forget", "output", "cell")
_SEQGAN_NAMES = (
    "embeddings",
    *(f"{part}_{gate}" for gate in _GATES for part in "WUb"),
    "W_logits",
    "b_logits",
)


def oracle(
    space: TextSpace, seed: int, sigma: float = 1.0, size: int = 32
) -> TextArray:
    """Draw a real distribution: that of a random LSTM over the texts of a space.

    Args:
        space: texts of one length.
        seed: of the LSTM's parameters.
        sigma: their standard deviation; smaller values give flatter distributions.
        size: width of the embeddings and of the hidden state.

    Returns:
        Probability of every text, shape (num_texts,).

    Raises:
        ValueError: sigma or size is not positive, or the texts differ in length.

    References:
        Yu et al. 2017; Li et al. 2020, section 6.1.

    Example:
        >>> p = oracle(TextSpace(vocab_size=4, lengths=3), seed=0)
        >>> p.shape, float(p.sum().round(12))
        ((64,), 1.0)
    """
    require_space(space)
    key = jax.random.key(seed)
    model = LSTMLanguageModel.random(key, space.vocab_size, size, size, sigma)
    return model.probabilities(space)


def _shapes(vocab: int, embedding: int, hidden: int) -> list[tuple[int, ...]]:
    """Shapes of a model's arrays, in the order of its fields."""
    gates = 4 * hidden
    inner = [(embedding, gates), (hidden, gates), (gates,)]
    return [(vocab, embedding), *inner, (hidden, vocab), (vocab,)]


def _length_weights(
    space: TextSpace, length_probabilities: ArrayLike | None
) -> Array | None:
    if length_probabilities is not None:
        name = "length_probabilities"
        return as_distribution(length_probabilities, name, len(space.lengths))
    if len(space.lengths) > 1:
        raise ValueError(
            f"a model without an end token says nothing about lengths {space.lengths}; "
            "pass length_probabilities, or make the model with an end token"
        )
    return None


# --- The recurrence -------------------------------------------------------------------
# A state is (h, c), each of shape (..., hidden).
def _zero_state(model: LSTMLanguageModel, *batch: int) -> tuple[Array, Array]:
    zeros = jnp.zeros((*batch, model.recurrent_weights.shape[0]))
    return zeros, zeros


def _start(model: LSTMLanguageModel) -> Array:
    """Return the gate input of the start token."""
    token = START_TOKEN if model.end_token is None else model.end_token
    return _inputs(model)[token]


def _inputs(model: LSTMLanguageModel) -> Array:
    """Input contribution of each token to the gates, shape (vocab_size, 4 hidden)."""
    return model.embeddings @ model.input_weights + model.gate_biases


def lstm_step(
    model: LSTMLanguageModel, state: tuple[Array, Array], gate_input: Array
) -> tuple[Array, Array]:
    """Advance the LSTM state by one token."""
    h, c = state
    gates = gate_input + h @ model.recurrent_weights
    i, f, o, cell = jnp.split(gates, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(cell)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def log_next_token(
    model: LSTMLanguageModel, h: Array, temperature: ArrayLike, first: ArrayLike
) -> Array:
    """Log-probabilities of the next token."""
    logits = (h @ model.output_weights + model.output_biases) / temperature
    if model.end_token is not None:
        # No text is empty: the end token cannot come first.
        end = jnp.where(first, -jnp.inf, logits[..., model.end_token])
        logits = logits.at[..., model.end_token].set(end)
    return jax.nn.log_softmax(logits)


def prefix_states(model: LSTMLanguageModel, length: int) -> Iterator[Array]:
    """Go down the prefix tree level by level, processing each prefix once."""
    inputs = _inputs(model)[: model.num_words]
    # States have shape (prefixes, 1, hidden): a step broadcasts over the next word,
    # so that h @ U is computed once per prefix, not once per successor.
    state = lstm_step(model, _zero_state(model, 1, 1), _start(model))
    yield state[0][:, 0]
    for _ in range(1, length):
        h, c = lstm_step(model, state, inputs)
        state = h.reshape(-1, 1, h.shape[-1]), c.reshape(-1, 1, c.shape[-1])
        yield state[0][:, 0]


@partial(jax.jit, static_argnums=1)
def _tree_probabilities(
    model: LSTMLanguageModel,
    lengths: tuple[int, ...],
    temperature: ArrayLike,
    length_weights: Array | None,
) -> Array:
    """Multiply the probabilities of the next token along the prefix tree."""
    words = model.num_words
    log_prefix = jnp.zeros((1, 1))
    levels = []
    states = prefix_states(model, lengths[-1])
    for length, h in enumerate(states, start=1):
        log_next = log_next_token(model, h, temperature, length == 1)
        if model.end_token is not None and length > 1:
            levels.append(jnp.exp(log_prefix[:, 0] + log_next[:, model.end_token]))
        log_prefix = (log_prefix + log_next[:, :words]).reshape(-1, 1)
        # Texts of the greatest length end with certainty.
        if length == lengths[-1] or (model.end_token is None and length in lengths):
            levels.append(jnp.exp(log_prefix[:, 0]))
    if length_weights is not None:
        levels = [w * level for w, level in zip(length_weights, levels)]
    return jnp.concatenate(levels)


def _along_a_text(
    model: LSTMLanguageModel,
    temperature: ArrayLike,
    choose: Callable[[Array, Array, Array], tuple[Array, Array, Array]],
) -> Callable[[Array], Array]:
    """Build a scan over one text, with one input entry and one output per position.

    `choose` maps (log-probabilities of the next token, whether the text ended before
    it, entry) to (token, whether the text has ended, output).
    """
    inputs, start = _inputs(model), _start(model)

    def position(carry, entry):
        state, gate_input, ended, first = carry
        state = lstm_step(model, state, gate_input)
        log_next = log_next_token(model, state[0], temperature, first)
        token, ended, output = choose(log_next, ended, entry)
        return (state, inputs[token], ended, jnp.array(False)), output

    carry = (_zero_state(model), start, jnp.array(False), jnp.array(True))
    return lambda entries: jax.lax.scan(position, carry, entries)[1]


@jax.jit
def _log_probability(
    model: LSTMLanguageModel, tokens: Array, temperature: ArrayLike
) -> Array:
    def read(log_next, ended, token):
        # A model with an end token predicts the end once, after the last token.
        end = model.end_token
        target = token if end is None else jnp.where(token < 0, end, token)
        return token, token < 0, jnp.where(ended, 0.0, log_next[target])

    terms = _along_a_text(model, temperature, read)
    return jax.lax.map(lambda text: terms(text).sum(), tokens, batch_size=BATCH_SIZE)


@partial(jax.jit, static_argnums=(2, 3))
def _sample(
    model: LSTMLanguageModel,
    key: PRNGKeyArray,
    num_texts: int,
    length: int,
    temperature: ArrayLike,
) -> Array:
    def write(log_next, ended, uniform):
        token = _invert(jnp.exp(log_next), uniform)
        if model.end_token is not None:
            ended |= token == model.end_token
        token = jnp.where(ended, -1, token)
        return token, ended, token

    text = _along_a_text(model, temperature, write)
    keys = jax.random.split(key, num_texts)
    return jax.lax.map(
        lambda x: text(jax.random.uniform(x, (length,))), keys, batch_size=BATCH_SIZE
    )


def _invert(p: Array, uniform: Array) -> Array:
    """Find the first index whose cumulative sum reaches (1 - uniform) of the total.

    This is `distributions.sample` for one draw of one token inside compiled code.
    Searches blocks of about the square root of the size, as XLA's cumulative sums are
    slow.
    """
    width = isqrt(p.size - 1) + 1
    blocks = jnp.pad(p, (0, width * width - p.size)).reshape(width, width)
    totals = jnp.cumsum(blocks.sum(axis=1))
    # In (0, total], so that tokens of probability 0 are never drawn.
    target = totals[-1] * (1 - uniform)
    block = jnp.searchsorted(totals, target)
    inside = jnp.cumsum(blocks[block])
    rest = target - jnp.where(block > 0, totals[block - 1], 0.0)
    return block * width + jnp.searchsorted(inside, jnp.minimum(rest, inside[-1]))
