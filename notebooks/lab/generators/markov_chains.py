r"""Decoders on Markov models, by dynamic programming over positions.

A text of L tokens has the probability $\pi(x_1) \prod_t T(x_{t-1}, x_t)$. A decoder of
tokens makes another such model, and sums over all $|V|^L$ texts of products are sums
over one token after the other, so that entropy, LL, CR and NRR are exact for lengths
that cannot be listed.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import entr, xlogy
from jaxtyping import Array, ArrayLike, Float

from lab.generators.decoders import TokenDecoder
from lab.generators.models import require_tokens
from qdtheory.distributions import require_positive
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import (
    Number,
    Scalar,
    TextArray,
    require,
    within,
)
from qdtheory.support.records import Record


@jax.tree_util.register_dataclass
class MarkovModel(Record):
    r"""A Markov model of order 1.

    Args:
        initial: distribution of the first token, shape (|V|,).
        transitions: of the next token after each, one a row, shape (|V|, |V|).

    Example:
        >>> model = MarkovModel(np.full(2, 0.5), np.array([[0.75, 0.25], [0.5, 0.5]]))
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> model.probabilities(space).tolist()
        [0.375, 0.125, 0.25, 0.25]
    """

    initial: Float[ArrayLike, "*models vocab"]
    transitions: Float[ArrayLike, "*models vocab vocab"]

    def probabilities(self, space: TextSpace) -> TextArray:
        """Probability of every text; texts have one length and the model's tokens."""
        initial, transitions = _checked(self)
        require_tokens(space, "a Markov model", initial.size)
        law = initial
        for _ in range(space.max_length - 1):
            law = (law.reshape(-1, initial.size, 1) * transitions).ravel()
        return law


class MarkovMetrics(Record):
    """Metrics of one Markov model against another, over all texts of a length.

    Attributes:
        se: entropy of the model, in nats per text.
        ll: mean of log P over its texts.
        log_cr: logarithm of the coverage rate, the sum of P Q.
        log_repetition: logarithm of the sum of Q^2, which is -NRR.
    """

    se: float
    ll: float
    log_cr: float
    log_repetition: float

    @property
    def cr(self) -> float:
        """The coverage rate; 0 where it is below the range of floats."""
        return float(np.exp(self.log_cr))

    @property
    def nrr(self) -> float:
        """The negative repetition rate."""
        return -float(np.exp(self.log_repetition))


def decode_markov(model: MarkovModel, *decoders: TokenDecoder) -> MarkovModel:
    """The Markov model that decoders of tokens make of another.

    Args:
        model: the model.
        *decoders: applied in order to each distribution of the next token.

    Raises:
        TypeError: a decoder is not one of tokens.
        ValueError: the model does not hold distributions.

    Example:
        >>> from lab.generators.decoders import TopK
        >>> model = MarkovModel(np.full(2, 0.5), np.array([[0.9, 0.1], [0.5, 0.5]]))
        >>> decode_markov(model, TopK(1)).transitions.tolist()
        [[1.0, 0.0], [0.5, 0.5]]
    """
    initial, transitions = map(np.asarray, _checked(model))
    for decoder in decoders:
        require("one of tokens, as TopK(5)", TokenDecoder, decoder=decoder)
        initial, transitions = decoder(initial), decoder(transitions)
    return MarkovModel(initial, transitions)


def markov_metrics(q: MarkovModel, p: MarkovModel, length: int) -> MarkovMetrics:
    r"""SE, LL, CR and NRR of one Markov model against another, exactly.

    Args:
        q: the model.
        p: the real distribution, over the same tokens.
        length: L, the number of tokens of each text, at least 1.

    Returns:
        The metrics over all $|V|^L$ texts.

    Raises:
        ValueError: a model does not hold distributions, the vocabularies differ, or
            the length is below 1.

    Example:
        >>> p = MarkovModel(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.5, 0.5]]))
        >>> float(round(markov_metrics(p, p, 100).se, 6))
        39.153901
    """
    of_q, of_p = _checked(q), _checked(p)
    if of_q[0].size != of_p[0].size:
        raise ValueError(
            f"the models have {of_q[0].size} and {of_p[0].size} tokens; they need the "
            "same"
        )
    require_positive(length=length)
    return MarkovMetrics(*map(float, _metrics(of_q, of_p, length)))


def tempered_markov_metrics(
    p: MarkovModel, beta: Number, length: int
) -> tuple[Scalar, Scalar]:
    r"""LL and SE of $P^\beta / Z_\beta$ over whole texts: the LL-SE frontier of P.

    $\log Z_\beta = \log \sum_x P(x)^\beta$ is a product of matrices, LL its derivative
    and $SE = \log Z_\beta - \beta\,LL$.

    Args:
        p: the real distribution.
        beta: inverse temperature of whole texts, positive and finite.
        length: L, the number of tokens of each text, at least 1.

    Returns:
        LL and SE, in nats per text.

    Raises:
        ValueError: the model does not hold distributions, or a number is out of range.

    References:
        Li et al. 2020, Theorem 2.

    Example:
        >>> p = MarkovModel(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.5, 0.5]]))
        >>> ll, se = tempered_markov_metrics(p, 1.0, 100)
        >>> float(-ll.round(6)), float(se.round(6))
        (39.153901, 39.153901)
    """
    start, move = _checked(p)
    require_positive(length=length)
    within(beta=beta, low=0, ends="()")
    log_z, ll = _log_partition(jnp.asarray(beta, float), start, move, length)
    return ll, log_z - beta * ll


@partial(jax.jit, static_argnums=2)
def _metrics(
    of_q: tuple[Array, Array], of_p: tuple[Array, Array], length: int
) -> tuple[Array, Array, Array, Array]:
    (start, move), (real_start, real_move) = of_q, of_p
    visits = _expected_visits(start, move, length)
    # Of tokens that are never visited, rows of log P may be infinite.
    scores = jnp.where(visits > 0, xlogy(move, real_move).sum(axis=1), 0)
    return (
        entr(start).sum() + visits @ entr(move).sum(axis=1),
        xlogy(start, real_start).sum() + visits @ scores,
        _log_total(start * real_start, move * real_move, length),
        _log_total(start**2, move**2, length),
    )


@partial(jax.jit, static_argnums=3)
@jax.value_and_grad
def _log_partition(beta: Array, start: Array, move: Array, length: int) -> Array:
    return _log_total(_power(start, beta), _power(move, beta), length)


def _expected_visits(start: Array, move: Array, length: int) -> Array:
    """How often each token is expected before the last position."""

    def step(law: Array, _: None) -> tuple[Array, Array]:
        return law @ move, law

    return jax.lax.scan(step, start, length=length - 1)[1].sum(axis=0)


def _log_total(start: Array, move: Array, length: int) -> Array:
    """The logarithm of the sum over all texts of a product of nonnegative factors."""

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        law, log_scale = state
        total = law.sum()
        scaled = law / jnp.where(total > 0, total, 1)
        return (scaled @ move, log_scale + jnp.log(total)), None

    state = jax.lax.scan(step, (start, jnp.zeros(())), length=length - 1)[0]
    return jnp.log(state[0].sum()) + state[1]


def _power(x: Array, beta: Number) -> Array:
    positive = x > 0
    return jnp.where(positive, jnp.exp(beta * jnp.log(jnp.where(positive, x, 1.0))), 0)


def _checked(model: MarkovModel) -> tuple[Array, Array]:
    start, move = (jnp.asarray(x, float) for x in (model.initial, model.transitions))
    if start.ndim != 1 or move.shape != (start.size, start.size):
        raise ValueError(
            "a Markov model has an initial distribution of shape (|V|,) and "
            f"transitions of shape (|V|, |V|), got {start.shape} and {move.shape}"
        )
    if not isinstance(start, Tracer) and not isinstance(move, Tracer):
        rows = np.vstack([start, move])
        if not (rows >= 0).all() or not (abs(rows.sum(axis=1) - 1) <= 1e-10).all():
            raise ValueError(
                "the initial distribution and each row of the transitions must be "
                "nonnegative and sum to 1"
            )
    return start, move
