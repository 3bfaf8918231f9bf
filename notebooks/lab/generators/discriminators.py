r"""Discriminators: optimal, or logistic in n-grams and trained for a few steps.

A discriminator gives each text, or each prefix of it, a logit of the probability D that
it is real. The optimal one is $\log P_l - \log Q_l$ with the distributions $P_l$ and
$Q_l$ of the first l tokens. A logistic one ascends

$$\sum_l \sum_x P(x) \log D(x_{\le l}) + Q(x) \log(1 - D(x_{\le l})),$$

which is concave in its weights, from where it was. With φ for what it sees, minus the
Hessian is at most $\frac14 \sum_{x,l} (P + Q)\,\varphi\varphi^\top$; the steps divide
the gradient by that bound, so that each is sure to ascend.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lab.generators.models import prefix_ids
from qdtheory.distributions import require_positive
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import within

# Share of the trace that keeps the bound on the curvature from being singular.
RIDGE = 1e-9
# A logit for each text and position, and the new state.
Judged: TypeAlias = tuple[Float[Array, "texts positions"], Any]


@runtime_checkable
class Discriminator(Protocol):
    """What tells real texts from a model's; hashable."""

    def start(self, space: TextSpace, num_positions: int) -> Any:
        """Return the state before the first step, a pytree."""
        ...

    def logits(
        self,
        state: Any,
        q: Float[Array, "texts positions"],
        p: Float[Array, "texts positions"],
        space: TextSpace,
    ) -> Judged:
        """Learn from the model's and from real prefixes, then judge them.

        With one position these are whole texts.
        """
        ...


@dataclass(frozen=True)
class OptimalDiscriminator:
    r"""The best of all, $D = P / (P + Q)$, known at once.

    References:
        Goodfellow et al. 2014, Proposition 1.

    Example:
        >>> p, q = jnp.array([[0.75], [0.25]]), jnp.array([[0.25], [0.75]])
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> logits, _ = OptimalDiscriminator().logits((), q, p, space)
        >>> logits[:, 0].round(6).tolist()
        [1.098612, -1.098612]
    """

    def start(self, space: TextSpace, num_positions: int) -> Any:
        """Return an empty state."""
        return ()

    def logits(self, state: Any, q: Array, p: Array, space: TextSpace) -> Judged:
        """Compare the distributions."""
        return jnp.log(p) - jnp.log(q), state


@dataclass(frozen=True)
class LogisticDiscriminator:
    r"""Logistic regression on the n-grams that occur, by a few exact steps of ascent.

    Args:
        order: n-grams of up to so many tokens; None for a weight of each prefix, with
            which the optimum is the optimal discriminator.
        num_steps: steps for each one of the generator, at least 1; each maximises a
            lower bound.

    Raises:
        ValueError: a number is out of range.

    References:
        Böhning and Lindsay 1988, for the bound.

    Example:
        >>> p, q = jnp.array([[0.75], [0.25]]), jnp.array([[0.25], [0.75]])
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> learned = LogisticDiscriminator(order=1, num_steps=200)
        >>> logits, _ = learned.logits(learned.start(space, 1), q, p, space)
        >>> logits[:, 0].round(6).tolist()
        [1.098612, -1.098612]
    """

    order: int | None = 2
    num_steps: int = 5

    def __post_init__(self) -> None:
        require_positive(num_steps=self.num_steps)
        if self.order is not None:
            require_positive(order=self.order)

    def start(self, space: TextSpace, num_positions: int) -> Any:
        """Return weights of 0: D is 1/2."""
        return jnp.zeros(features(space, self.order)[:, -num_positions:].shape[2])

    def logits(self, state: Any, q: Array, p: Array, space: TextSpace) -> Judged:
        """Take the steps from the last weights, then judge."""
        inputs = jnp.asarray(features(space, self.order)[:, -q.shape[1] :])
        real, fake = p[:, -1:], q[:, -1:]
        bound = jnp.einsum("xlf,x,xlg->fg", inputs, (real + fake)[:, 0] / 4, inputs)
        # Features may be dependent; a multiple of the identity only adds to a bound.
        ridge = RIDGE * jnp.trace(bound) * jnp.eye(len(bound))
        factor = jax.scipy.linalg.cho_factor(bound + ridge)

        def step(_: Array, weights: Array) -> Array:
            d = jax.nn.sigmoid(inputs @ weights)
            slope = jnp.einsum("xl,xlf->f", real * (1 - d) - fake * d, inputs)
            return weights + jax.scipy.linalg.cho_solve(factor, slope)

        weights = jax.lax.fori_loop(0, self.num_steps, step, state)
        return inputs @ weights, weights


@lru_cache(maxsize=16)
def features(
    space: TextSpace, order: int | None
) -> Float[np.ndarray, "texts max_length features"]:
    """What a logistic discriminator sees of each prefix: n-grams, and its length.

    Each is 1 where the prefix has it; without an order the prefix itself is seen. After
    its end a text stays as it was.
    """
    if order is None:
        ids = prefix_ids(space)
        sizes = ids.max(axis=0) + 1
        places = ids + np.cumsum([0, *sizes[:-1]])
        return (places[..., None] == np.arange(sizes.sum())).astype(float)
    within(order=order, low=1, high=space.max_length)
    columns = []
    for n in range(1, order + 1):
        windows = np.lib.stride_tricks.sliding_window_view(space.tokens, n, axis=1)
        for gram in product(range(space.vocab_size), repeat=n):
            here = np.pad((windows == gram).all(axis=2), ((0, 0), (n - 1, 0)))
            columns.append(np.maximum.accumulate(here, axis=1))
    shape = space.num_texts, space.max_length, space.max_length
    lengths = np.broadcast_to(np.eye(space.max_length), shape)
    return np.concatenate([np.stack(columns, axis=2), lengths], axis=2).astype(float)
