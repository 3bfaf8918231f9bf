"""What a pair of metrics is, and the pairs made of functions or of scores."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike

from qdtheory.formulas.code import Code, as_it_is_now
from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.posed import (
    Functional,
    expected_score,
    given_scores,
    total_diversity,
)
from qdtheory.formulas.scalar_functions import (
    ScalarFunction,
    evaluate,
    formula_of,
    scalar_function,
)
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC, PerText, Scalar, TextArray, require


@runtime_checkable
class Pair(Protocol):
    """Any object with a quality U(Q; P) and a diversity V(Q); higher is better."""

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Return U(Q; P), the quality of the model `q` given the real `p`."""
        ...

    def diversity(self, q: PerText) -> Scalar:
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

    def __post_init__(self) -> None:
        both = {"quality": self.quality, "diversity": self.diversity}
        require("a function of distributions", Callable, **both)


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
            JAX can trace. No seal rests on code, as g or as scores.
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
        read = scores if callable(scores) else Scores(given_scores(scores))
        set_fields(self, scores=read, g=scalar_function(g, "g"), name=name)

    def text_quality(self, p: PerText) -> TextArray:
        r"""Return the score $\phi_i(P)$ of each text, finite or $-\infty$."""
        p = check_distribution(p)
        return one_score_a_text(self.scores(p), p, "scores")

    def quality(self, q: PerText, p: PerText) -> Scalar:
        r"""$U(Q; P) = \sum_i Q_i \phi_i(P)$, with $0 \cdot \infty = 0$.

        It is $-\infty$ if q puts mass on a text of score $-\infty$.
        """
        scores = self.text_quality(p)
        return expected_score(check_distribution(q, "q", scores.size), scores)

    def diversity(self, q: PerText) -> Scalar:
        r"""$V(Q) = \sum_i g(Q_i)$."""
        return total_diversity(self.g, check_distribution(q, "q"))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, init=False)
class SeparablePair:
    r"""Separable pair of Li et al.: $U = \sum_i Q_i f(P_i)$, $V = \sum_i g(Q_i)$.

    Args:
        f: a scalar function on [0, 1], applied to P: a formula in x ("log(x)"), the
            name of one ("LL"), or code that JAX can trace, on which no seal rests; it
            may be $-\infty$ at 0.
        g: a scalar function on [0, 1], applied to Q, likewise.
        name: display name; made of f and g by default.

    Raises:
        TypeError: JAX cannot trace f or g to one real number.
        ValueError: a text is neither a formula nor a name; see `Expression`.

    References:
        Li et al. 2020, section 3.1.

    Claims: E5.1, E5.2, E5.3.

    Example:
        >>> pair = SeparablePair("x", "-x**2")
        >>> pair.name, float(pair.quality(np.array([1.0, 0]), np.array([0.75, 0.25])))
        ('f = x, g = -x**2', 0.75)
        >>> SeparablePair("CR", "NRR").name
        'CR-NRR'
    """

    f: ScalarFunction = field(metadata=STATIC)
    g: ScalarFunction = field(metadata=STATIC)
    name: str = field(default="", metadata=STATIC)

    def __init__(
        self, f: ScalarFunction | str, g: ScalarFunction | str, name: str = ""
    ) -> None:
        f, g = scalar_function(f, "f"), scalar_function(g, "g")
        set_fields(self, f=f, g=g, name=name or _name_of(f, g))

    def text_quality(self, p: PerText) -> TextArray:
        """Return the score f(P_i) of each text; see `LinearPair.text_quality`."""
        return evaluate(self.f, check_distribution(p))

    # Shared by all pairs with scores and a separable diversity.
    quality = LinearPair.quality
    diversity = LinearPair.diversity


def _name_of(f: ScalarFunction, g: ScalarFunction) -> str:
    names = [getattr(h, "__name__", type(h).__name__) for h in (f, g)]
    if isinstance(f, Expression) or isinstance(g, Expression):
        return "f = {}, g = {}".format(*names)
    return "-".join(names)


# Pairs with a score for each text and a diversity that sums g(Q_i).
SummedPair: TypeAlias = SeparablePair | LinearPair


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConcavePair:
    r"""Linear quality $U = u(P) \cdot Q$, concave diversity V.

    Args:
        text_quality: u, maps a distribution, shape (N,), to the score of each text,
            shape (N,); JAX-traceable. A score may be $-\infty$.
        diversity: V, maps a distribution, shape (N,), to a scalar; concave, twice
            differentiable at positive Q, JAX-traceable. Its slope may be infinite at 0.
        name: display name.

    Example:
        >>> import jax.numpy as jnp
        >>> pair = ConcavePair(lambda p: p, lambda q: -jnp.square(q).sum(), "CR-NRR")
        >>> p = np.array([0.75, 0.25])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.625, -0.625)
    """

    text_quality: Callable[[ArrayLike], Array] = field(metadata=STATIC)
    diversity: Functional = field(metadata=STATIC)
    name: str = field(default="linear-concave", metadata=STATIC)

    def __post_init__(self) -> None:
        both = {"text_quality": self.text_quality, "diversity": self.diversity}
        require("a function of a distribution", Callable, **both)

    def quality(self, q: PerText, p: PerText) -> Scalar:
        r"""$U(Q; P) = \sum_i Q_i u_i(P)$, with $0 \cdot \infty = 0$.

        It is $-\infty$ if q puts mass on a text of score $-\infty$.
        """
        p = check_distribution(p)
        scores = one_score_a_text(self.text_quality(p), p, "text_quality")
        return expected_score(check_distribution(q, "q", p.size), scores)


def compatible_quality(diversity: Functional, name: str | None = None) -> ConcavePair:
    r"""The pair of a diversity with its compatible quality, $\phi(P) = -\nabla V(P)$.

    Where V is not differentiable, JAX chooses one of several slopes, and the quality is
    one of several compatible ones if that slope is a supergradient.

    Args:
        diversity: V, maps a distribution, shape (N,), to a scalar; concave and
            JAX-traceable. Concavity is not checked: without it the quality is
            necessary for compatibility, not sufficient.
        name: display name; by default "compatible with" and the diversity's name.

    Returns:
        The pair, for the frontier, the verdict and the discrepancy.

    References:
        Gneiting and Raftery 2007, Theorem 2 (McCarthy, Savage), for the scoring rule;
        that it is the only compatible quality is ours.

    Claims: N16.1, N16.2, N16.4.

    Example:
        >>> pair = compatible_quality(lambda q: -jnp.square(q).sum())
        >>> pair.text_quality(np.array([0.75, 0.25])).tolist()
        [1.5, 0.5]
    """
    require("a function of a distribution", Callable, diversity=diversity)
    own = getattr(diversity, "__name__", type(diversity).__name__)
    quality = partial(_minus_gradient, diversity)
    return ConcavePair(quality, diversity, name or f"compatible with {own}")


def _minus_gradient(diversity: Functional, p: ArrayLike) -> Array:
    return -jax.grad(diversity)(check_distribution(p))


# --- What the pairs share -----------------------------------------------------------
def require_pair(pair: Any) -> None:
    """Raise unless it is a pair."""
    require("a pair, such as qd.LL_SE or qd.SeparablePair(f, g)", Pair, pair=pair)


def set_fields(self: object, **fields: object) -> None:
    """Set the fields of a frozen dataclass in its own `__init__`."""
    for name, value in fields.items():
        object.__setattr__(self, name, value)


def is_concrete(field: Any) -> bool:
    """Whether a user gave a field; JAX rebuilds pairs with objects in its place."""
    given = np.ndarray | jax.Array | list | tuple | str | int | float | None
    return isinstance(field, given) and not isinstance(field, Tracer)


def known_to_jax(pair: Pair, p: ArrayLike) -> Any:
    """Return the pair as one that compiled functions take as an argument, anew."""
    require_pair(pair)
    own = is_own(pair)
    return renewed(pair if own else FunctionPair(pair.quality, pair.diversity), p)


def is_own(pair: Any) -> bool:
    """Whether the class of a pair is one of the library's."""
    return type(pair).__module__.startswith(__name__.partition(".")[0] + ".")


def renewed(pair: Any, p: ArrayLike | None = None) -> Any:
    """The pair with objects for its code as it is now, by which compiled code is kept.

    A function may read what changes between two calls. Formulas and arrays stay.
    """
    if not is_own(pair):
        return pair
    fields = {name: _anew(name, value, p) for name, value in vars(pair).items()}
    if all(fields[name] is value for name, value in vars(pair).items()):
        return pair
    new = copy(pair)
    set_fields(new, **fields)
    return new


def _anew(name: str, value: Any, p: Any) -> Any:
    match value:
        case Code(function=function):
            return as_it_is_now(Code, function, np.array(0.5))
        case Pair():
            return renewed(value)
        case Scores():
            return value
    if not callable(value) or formula_of(cast(Any, value)) is not None:
        return value
    arguments = (p, p) if name == "quality" else (p,)
    return partial(value) if p is None else as_it_is_now(partial, value, *arguments)


class Frozen:
    """A float64 array as bytes: hashable, so that a pair can be a static argument."""

    def __init__(self, values: np.ndarray) -> None:
        self.key = np.ascontiguousarray(values).tobytes(), values.shape

    @property
    def values(self) -> np.ndarray:
        """The array."""
        data, shape = self.key
        return np.frombuffer(data).reshape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Scores(Frozen):
    """Scores that are the same for every P."""

    def __call__(self, p: PerText) -> Array:
        """Return the scores, whatever `p` is."""
        return jnp.asarray(self.values)

    def __repr__(self) -> str:
        return f"<{self.values.size} scores>"


def one_score_a_text(scores: ArrayLike, p: ArrayLike, name: str) -> Array:
    """Return what the user's function `name` gave, if there is one score a text."""
    if jnp.shape(scores) != jnp.shape(p):
        raise ValueError(
            f"{name}(p) must give one score a text, shape {jnp.shape(p)}, got shape "
            f"{jnp.shape(scores)}"
        )
    return jnp.asarray(scores)
