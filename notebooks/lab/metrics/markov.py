r"""The Markov model of order k closest to a distribution over texts.

The cross-entropies of Cifka et al. and the scores of Semeniuta et al. replace Q by a
language model fitted to samples of Q. With k tokens of context and infinite data this
is the projection of Q: `cross_entropy(p, markov_projection(space, q, k))` is their
forward cross-entropy, `cross_entropy(q, markov_projection(space, p, k))` the reverse
one.
"""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from qdtheory.distributions import as_vector, normalize
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import Number, PerText, TextArray, within


def markov_projection(
    space: TextSpace, q: PerText, order: int, alpha: Number = 0.0
) -> TextArray:
    r"""Maximum-likelihood Markov model of order k, as a distribution over the texts.

    It minimises $KL(Q \Vert \cdot)$ over the models that draw each token given the k
    tokens before it (the start of a text is seen). Where the space has several
    lengths the model also draws, given the same k tokens, whether the text ends, at
    each length that is not the greatest; there the text ends by itself. With counts
    in the place of q it is the fit to a sample.

    Args:
        space: the texts.
        q: a distribution over them, or the counts of a sample, shape (num_texts,).
        order: k, from 0 on; from max_length - 1 on the result is q, without alpha.
        alpha: added to the weight, in units of q, of each token and of the end after
            each context (add-alpha smoothing). At 0 a context that q never continues
            gets the limit for small alpha, the uniform distribution.

    Returns:
        A distribution over the texts, shape (num_texts,).

    Raises:
        TypeError: `q` is not an array of float64.
        ValueError: weights that are negative or all zero, or a negative order or
            alpha.

    References:
        Cifka et al. 2018, section 5.1; Semeniuta et al. 2018, section 4.1.

    Claims: N13.9, N13.10, N13.11.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> q = np.array([0.5, 0.0, 0.0, 0.5])
        >>> markov_projection(space, q, order=0).tolist()
        [0.25, 0.25, 0.25, 0.25]
        >>> markov_projection(space, q, order=1).tolist()
        [0.5, 0.0, 0.0, 0.5]
    """
    q = as_vector(q, "q", space.num_texts)
    normalize(q)  # raises if q does not hold weights
    within(order=order, alpha=alpha, low=0)
    lengths, positions = space.text_lengths[:, None], np.arange(space.max_length)
    has_token = positions < lengths
    may_end = np.isin(positions, space.lengths) & (positions <= lengths)
    contexts, num_contexts = _contexts(space, order)
    shape = num_contexts, space.vocab_size
    return _fit(contexts, space.tokens, has_token, may_end, q, alpha, shape)


@partial(jax.jit, static_argnames="shape")
def _fit(
    contexts: ArrayLike,
    tokens: ArrayLike,
    has_token: ArrayLike,
    may_end: ArrayLike,
    q: Array,
    alpha: Number,
    shape: tuple[int, int],
) -> Array:
    """Count what follows each context, and multiply the shares along each text."""
    num_contexts, vocab_size = shape
    weights = q[:, None]
    goes_on = jnp.asarray(has_token)
    counts = jnp.zeros(shape).at[contexts, tokens].add(weights * goes_on)
    next_token = _shares(counts, alpha)
    # The end against going on, which stands for |V| tokens.
    outcome = goes_on.astype(int)
    passed = jnp.zeros((num_contexts, 2)).at[contexts, outcome].add(weights * may_end)
    end = _shares(passed, alpha, np.array([1, vocab_size]))

    factors = jnp.where(goes_on, next_token[contexts, tokens], 1.0)
    return jnp.where(may_end, end[contexts, outcome] * factors, factors).prod(axis=1)


def _shares(counts: Array, alpha: Number, sizes: np.ndarray | int = 1) -> Array:
    """Shares of the outcomes of each row, alpha times their sizes added."""
    smoothed = counts + alpha * sizes
    unseen = smoothed.sum(axis=1, keepdims=True) == 0
    weights = jnp.where(unseen, sizes, smoothed)
    return weights / weights.sum(axis=1, keepdims=True)


@lru_cache(maxsize=16)
def _contexts(space: TextSpace, order: int) -> tuple[np.ndarray, int]:
    """The last k tokens before each position of each text, numbered; how many occur."""
    order = min(order, space.max_length - 1)
    # One more symbol stands for the start, and for what follows a text's end, where
    # nothing is read.
    symbols = np.where(space.tokens < 0, space.vocab_size, space.tokens)
    start = np.full((space.num_texts, order), space.vocab_size)
    padded = np.concatenate([start, symbols], axis=1)
    number = np.zeros(space.tokens.shape, dtype=np.int64)
    for offset in range(order):
        window = padded[:, offset : offset + space.max_length]
        code = number * (space.vocab_size + 1) + window
        number = np.unique(code, return_inverse=True)[1].reshape(window.shape)
    return number, int(number.max()) + 1
