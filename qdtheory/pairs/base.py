"""What a pair of metrics is, and the pairs made of functions or of scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas.scalar_functions import ScalarFunction, scalar_function
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC


@runtime_checkable
class Pair(Protocol):
    """Any object with a quality U(Q; P) and a diversity V(Q); higher is better."""

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        """Return U(Q; P), the quality of the model `q` given the real `p`."""
        ...

    def diversity(self, q: Float[ArrayLike, " texts"]) -> Float[Array, ""]:
        """Return V(Q), the diversity of the model `q`."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FunctionPair:
    """A pair made of any two functions that JAX can trace.

    Args:
        quality: U(q, p), maps two vectors to a scalar.
        diversity: V(q), maps a vector to a scalar.
        name: display name.

    Example:
        >>> pair = FunctionPair(lambda q, p: q @ p, lambda q: 1 - q.max(), "CR-max")
        >>> float(pair.diversity(np.array([0.75, 0.25])))
        0.25
    """

    quality: Callable[[ArrayLike, ArrayLike], ArrayLike] = field(metadata=STATIC)
    diversity: Callable[[ArrayLike], ArrayLike] = field(metadata=STATIC)
    name: str = field(default="quality-diversity", metadata=STATIC)


def set_fields(self: object, **fields: object) -> None:
    """Set the fields of a frozen dataclass in its own `__init__`.

    Args:
        self: the new object.
        **fields: the values by name.
    """
    for name, value in fields.items():
        object.__setattr__(self, name, value)


def known_to_jax(pair: Pair) -> Any:
    """Return the pair as one that compiled functions take as an argument."""
    if jax.tree_util.all_leaves([pair]):  # a class of the user, unknown to JAX
        return FunctionPair(pair.quality, pair.diversity)
    return pair


@jax.tree_util.register_dataclass
@dataclass(frozen=True, init=False)
class LinearPair:
    r"""Linear quality, separable diversity: $U = \phi(P) \cdot Q$, $V = \sum_i g(Q_i)$.

    This is the form that Theorem 2 requires.

    Args:
        scores: $\phi$: the score of each text as numbers, shape (N,), such as a
            scorer's; or a function that maps a distribution, shape (N,), to them. A
            score may be $-\infty$.
        g: a scalar function on [0, 1]: a formula in x, the name of one, or code that
            JAX can trace.
        name: display name.

    Raises:
        TypeError: the scores are neither numbers nor a function, or JAX cannot trace g.
        ValueError: the scores are not one vector, one is NaN or $+\infty$, or g is a
            text that is neither a formula nor a name.

    Example:
        >>> pair = LinearPair([0.0, 1.0], "SE")
        >>> float(pair.quality(np.array([0.25, 0.75]), np.array([0.5, 0.5])))
        0.75
    """

    scores: Callable[[Array], Array] = field(metadata=STATIC)
    g: ScalarFunction = field(metadata=STATIC)
    name: str = field(default="scores-diversity", metadata=STATIC)

    def __init__(
        self,
        scores: Callable[[Array], Array] | Sequence[int | float] | np.ndarray | Array,
        g: ScalarFunction | str,
        name: str = "scores-diversity",
    ) -> None:
        read = scores if callable(scores) else given_scores(scores)
        set_fields(self, scores=read, g=scalar_function(g, "g"), name=name)

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        r"""Return the score $\phi_i(P)$ of each text.

        Args:
            p: the real distribution, shape (N,).

        Returns:
            Scores, shape (N,), finite or $-\infty$.

        Raises:
            ValueError: `p` is not a distribution, or the scores differ in length.
        """
        p = check_distribution(p)
        return one_score_a_text(self.scores(p), p, "scores")

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        r"""$U(Q; P) = \sum_i Q_i \phi_i(P)$, with $0 \cdot \infty = 0$.

        Args:
            q: the model, shape (N,).
            p: the real distribution, shape (N,).

        Returns:
            A scalar; $-\infty$ if q puts mass on a text of score $-\infty$.

        Raises:
            ValueError: `q` and `p` are not distributions of the same size.
        """
        scores = self.text_quality(p)
        return expected_score(check_distribution(q, "q", scores.size), scores)

    def diversity(self, q: Float[ArrayLike, " texts"]) -> Float[Array, ""]:
        r"""$V(Q) = \sum_i g(Q_i)$.

        Args:
            q: the model, shape (N,).

        Returns:
            A scalar.

        Raises:
            ValueError: `q` is not a distribution.
        """
        return total_diversity(self.g, check_distribution(q, "q"))


@dataclass(frozen=True)
class GivenScores:
    """Scores that are the same for every P; made by `given_scores`.

    Attributes:
        data: the float64 numbers as bytes, as pairs are keys of compiled functions.
    """

    data: bytes

    def __call__(self, p: Float[ArrayLike, " texts"]) -> Array:
        """Return the scores, whatever `p` is."""
        return jnp.asarray(np.frombuffer(self.data))

    def __repr__(self) -> str:
        return f"<{len(self.data) // 8} scores>"


def given_scores(scores: ArrayLike | Sequence[int | float]) -> GivenScores:
    """Check scores given as numbers.

    Args:
        scores: one number a text, shape (N,), finite or minus infinity.

    Returns:
        A function that returns them for any P.

    Raises:
        TypeError: they are not numbers.
        ValueError: they are not one vector, or one is NaN or plus infinity.

    Example:
        >>> given_scores([0.5, 1])(np.ones(2) / 2).tolist()
        [0.5, 1.0]
    """
    try:
        values = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            "scores: expected one number a text, or a function of p that gives them, "
            f"got {scores!r:.60}"
        ) from None
    if values.ndim != 1 or not values.size:
        raise ValueError(
            f"scores: expected one number a text, shape (N,), got shape {values.shape}"
        )
    bad = np.flatnonzero(~(values < np.inf))
    if bad.size:
        raise ValueError(
            f"scores: expected numbers or minus infinity, got {values[bad[0]]} for "
            f"text {bad[0]}"
        )
    return GivenScores(values.tobytes())


def one_score_a_text(scores: ArrayLike, p: ArrayLike, name: str) -> Array:
    """Return the scores as a JAX array after checking their number.

    Args:
        scores: what the pair's function returned.
        p: the distribution that it was given, shape (N,).
        name: its name in the error message.

    Returns:
        The same scores, shape (N,).

    Raises:
        ValueError: there is not one score per text.
    """
    if jnp.shape(scores) != jnp.shape(p):
        raise ValueError(
            f"{name}(p) must give one score a text, shape {jnp.shape(p)}, got shape "
            f"{jnp.shape(scores)}"
        )
    return jnp.asarray(scores)


@jax.jit
def expected_score(
    q: Float[ArrayLike, " texts"], scores: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""Expected score $\sum_i q_i \phi_i$ with $0 \cdot \infty = 0$, linear in q.

    Args:
        q: distribution, shape (N,).
        scores: $\phi$, shape (N,), finite or $-\infty$.

    Returns:
        A scalar, finite or $-\infty$.
    """
    q = jnp.asarray(q)
    return (q * jnp.where((q == 0) & jnp.isinf(scores), 0.0, scores)).sum()


@partial(jax.jit, static_argnums=0)
def total_diversity(
    g: ScalarFunction, q: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    """Separable diversity of a distribution.

    Args:
        g: a scalar function on [0, 1] that JAX can trace.
        q: distribution, shape (N,).

    Returns:
        A scalar.
    """
    return jax.vmap(g)(q).sum()
