"""Quality-diversity pairs: the protocol, and the pairs of the literature.

A pair has `quality(q, p)` and `diversity(q)`, which take one distribution per call
and return a scalar; use `jax.vmap` for batches. Pairs whose quality is linear in q
also have `text_quality(p)`, the score of each text, with
`quality = text_quality(p) @ q`. The named qualities f and diversities g combine
freely: `SeparablePair(LL, NRR)`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, ArrayLike, Float

from qdtheory.distributions import check_distribution, require_x64

# A scalar function that JAX can trace.
ScalarFunction = Callable[[Any], Array]
STATIC = {"static": True}


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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LinearPair:
    r"""Linear quality, separable diversity: $U = \phi(P) \cdot Q$, $V = \sum_i g(Q_i)$.

    This is the form that Theorem 2 requires.

    Args:
        scores: $\phi$, maps a distribution, shape (N,), to the score of each text,
            shape (N,); JAX-traceable. A score may be $-\infty$.
        g: a scalar function on [0, 1] that JAX can trace.
        name: display name.

    Example:
        >>> pair = LinearPair(lambda p: jnp.arange(2.0), SE, "index-SE")
        >>> float(pair.quality(np.array([0.25, 0.75]), np.array([0.5, 0.5])))
        0.75
    """

    scores: Callable[[Array], Array] = field(metadata=STATIC)
    g: ScalarFunction = field(metadata=STATIC)
    name: str = field(default="scores-diversity", metadata=STATIC)

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
        scores = self.scores(p)
        if jnp.shape(scores) != p.shape:
            raise ValueError(
                f"scores(p) must give one score a text, shape {p.shape}, got shape "
                f"{jnp.shape(scores)}"
            )
        return jnp.asarray(scores)

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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SeparablePair:
    r"""Separable pair of Li et al.: $U = \sum_i Q_i f(P_i)$, $V = \sum_i g(Q_i)$.

    Args:
        f: a scalar function on [0, 1] that JAX can trace, applied to P; it may be
            $-\infty$ at 0.
        g: a scalar function on [0, 1] that JAX can trace, applied to Q.
        name: display name; the names of f and g by default.

    References:
        Li et al. 2020, section 3.1.

    Example:
        >>> SeparablePair(LL, NRR).name
        'LL-NRR'
        >>> p = np.array([0.75, 0.25])
        >>> float(CR_NRR.quality(p, p))
        0.625
    """

    f: ScalarFunction = field(metadata=STATIC)
    g: ScalarFunction = field(metadata=STATIC)
    name: str = field(default="", metadata=STATIC)

    def __post_init__(self) -> None:
        if not self.name:
            names = [getattr(h, "__name__", type(h).__name__) for h in (self.f, self.g)]
            object.__setattr__(self, "name", "-".join(names))

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        """Return the score f(P_i) of each text; see `LinearPair.text_quality`."""
        return _apply(self.f, check_distribution(p))

    # Shared by all pairs with scores and a separable diversity.
    quality = LinearPair.quality
    diversity = LinearPair.diversity


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
    return _expected_score(jnp.asarray(q), jnp.asarray(scores))


@jax.jit
def _expected_score(q: Array, scores: Array) -> Array:
    """Jitted as a whole, like those below: separate operations compile slowly."""
    return (q * jnp.where((q == 0) & jnp.isinf(scores), 0.0, scores)).sum()


def total_diversity(
    g: ScalarFunction, q: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    """Separable diversity of a distribution; if g(0) is NaN, its limit is used.

    Args:
        g: a scalar function on [0, 1] that JAX can trace.
        q: distribution, shape (N,).

    Returns:
        A scalar.
    """
    return _total_diversity(g, jnp.asarray(q))


@partial(jax.jit, static_argnums=0)
def _total_diversity(g: ScalarFunction, q: Array) -> Array:
    if np.isnan(value_at_zero(g)):
        # A formula such as -x * log(x) is NaN at 0, although its limit is finite.
        q = jnp.maximum(q, np.finfo(float).tiny)
    return jax.vmap(g)(q).sum()


@partial(jax.jit, static_argnums=0)
def _apply(h: ScalarFunction, x: Array) -> Array:
    return jax.vmap(h)(x)


def value_at_zero(h: ScalarFunction) -> float:
    """Return h(0) as a Python float, even while JAX is tracing."""
    with jax.ensure_compile_time_eval():
        return float(_apply(h, jnp.zeros(1))[0])


# --- Named qualities f and diversities g ---------------------------------------
# Named by the paper's abbreviations, hence not lower case.


def LL(x: ArrayLike) -> Array:
    r"""Log-likelihood, $f(x) = \log x$ in nats; U is the negative cross-entropy."""
    return jnp.log(x)


def CR(x: ArrayLike) -> Array:
    """Coverage rate, f(x) = x."""
    return jnp.asarray(x)


def SE(x: ArrayLike) -> Array:
    r"""Shannon entropy, $g(x) = -x \log x$ in nats."""
    return entr(jnp.asarray(x))


def NRR(x: ArrayLike) -> Array:
    """Negative repetition rate, g(x) = -x^2."""
    return -jnp.square(x)


@dataclass(frozen=True)
class Tsallis:
    r"""Tsallis entropy of order a, $g(x) = (x - x^a) / (a - 1)$.

    Order 2 is Simpson's diversity index SDI = NRR + 1; as a tends to 1 it tends to
    the Shannon entropy SE.

    Args:
        order: a, positive and finite, not 1.

    Raises:
        ValueError: the order is not positive and finite, or is 1 (use `SE`).

    Example:
        >>> float(Tsallis(2.0)(0.5))
        0.25
    """

    order: float

    def __post_init__(self) -> None:
        if not 0 < self.order < np.inf:
            raise ValueError(f"order must be positive and finite, got {self.order}")
        if self.order == 1:
            raise ValueError("order 1 is the Shannon entropy; use qdtheory.SE")

    @property
    def __name__(self) -> str:
        return f"Tsallis({self.order:g})"

    def __call__(self, x: ArrayLike) -> Array:
        """g(x)."""
        x = jnp.asarray(x)
        return (x - x**self.order) / (self.order - 1)


@dataclass(frozen=True)
class _Simpson(Tsallis):
    order: float = 2.0

    @property
    def __name__(self) -> str:
        return "SDI"


SDI = _Simpson()

LL_SE = SeparablePair(LL, SE)
CR_NRR = SeparablePair(CR, NRR)
LL_NRR = SeparablePair(LL, NRR)
CR_SE = SeparablePair(CR, SE)


@lru_cache(maxsize=64)
def single_token_bleu_pair(
    num_references: int, num_self_references: int
) -> SeparablePair:
    r"""Expected BLEU-1 and negative Self-BLEU-1 of texts of one token.

    $f(x) = 1 - (1 - x)^n$ and $g(x) = -x + x (1 - x)^k$: f is the probability that a
    token is among n references drawn from P, and -g(x) / x that it is among k drawn
    from Q.

    Args:
        num_references: n, at least 1.
        num_self_references: k, the size of the candidate set minus 1, at least 1.

    Returns:
        The pair. g is convex beyond 2 / (k + 1), so Theorem 2 applies for k = 1 only.

    Raises:
        ValueError: n or k is below 1.

    References:
        Li et al. 2020, section 5.1.

    Example:
        >>> pair = single_token_bleu_pair(num_references=2, num_self_references=1)
        >>> float(pair.f(0.5)), float(pair.g(0.5))
        (0.75, -0.25)
    """
    for name, number in (
        ("num_references", num_references),
        ("num_self_references", num_self_references),
    ):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
    return SeparablePair(
        partial(_found, num_references),
        partial(_repeated, num_self_references),
        name=f"BLEU-NSBLEU, {num_references} and {num_self_references} references",
    )


def _found(num_references: int, x: ArrayLike) -> Array:
    """Compute 1 - (1 - x)^n with an accurate derivative at both ends.

    Near 0 the power loses digits; for larger x the derivative of expm1 rounds to 0.
    """
    x = jnp.asarray(x)
    threshold = min(0.5, 1 / num_references)
    near_zero = num_references * jnp.log1p(-jnp.minimum(x, threshold))
    power = 1 - (1 - x) ** num_references
    return jnp.where(x < threshold, -jnp.expm1(near_zero), power)


def _repeated(num_self_references: int, x: ArrayLike) -> Array:
    return -jnp.asarray(x) * _found(num_self_references, x)


# --- Theorem 1 -----------------------------------------------------------------


@dataclass(frozen=True)
class Rationality:
    """Whether a separable pair satisfies the rationality conditions of Theorem 1.

    Attributes:
        rational: both conditions hold at every pair of probabilities tested.
        quality_violation: (x1, x2) with x1 > x2 and f(x1) <= f(x2), or None.
        diversity_violation: (x1, x2) with x1 > x2 and g'(x1) >= g'(x2), or None.
    """

    rational: bool
    quality_violation: tuple[float, float] | None
    diversity_violation: tuple[float, float] | None


def check_rationality(pair: SeparablePair, resolution: int = 1024) -> Rationality:
    r"""Test the conditions of Theorem 1 on a grid of pairs of probabilities.

    For all $x_1 > x_2 > 0$ with $x_1 + x_2 \le 1$: $f(x_1) > f(x_2)$ and
    $g'(x_1) < g'(x_2)$, where on the line $x_1 + x_2 = 1$ equality of g' is allowed
    at isolated points. With N >= 3 texts these conditions are necessary and
    sufficient for "moving mass to a more probable text raises quality" and "moving
    mass to a text of no smaller probability lowers diversity".

    Args:
        pair: f and g, differentiable.
        resolution: the grid is 1/resolution, 2/resolution, ...; violations between
            grid points are not detected.

    Returns:
        The verdict, with the worst violation of each kind. Values equal up to
        rounding count as a violation unless the derivative shows a strict change
        between them.

    Raises:
        ValueError: a resolution below 3, which would test nothing.

    References:
        Li et al. 2020, Theorem 1; the exact condition on the line is ours.

    Example:
        >>> check_rationality(single_token_bleu_pair(1, 3)).rational
        True
        >>> check_rationality(single_token_bleu_pair(1, 4)).diversity_violation
        (0.6669921875, 0.3330078125)
    """
    require_x64()
    if resolution < 3:
        raise ValueError(f"resolution must be at least 3, got {resolution}")
    quality = _violation(pair.f, resolution, isolated_ties_on_line=False)
    minus_slope = jax.grad(lambda x: -pair.g(x))
    diversity = _violation(minus_slope, resolution, isolated_ties_on_line=True)
    return Rationality(quality is None and diversity is None, quality, diversity)


def _violation(
    h: ScalarFunction, resolution: int, *, isolated_ties_on_line: bool
) -> tuple[float, float] | None:
    """Find the worst pair x1 + x2 <= 1 where h fails to increase strictly."""
    x = np.arange(1, resolution) / resolution
    values, slopes = (np.asarray(a) for a in jax.vmap(jax.value_and_grad(h))(x))
    small, large = np.triu_indices(x.size, k=1)
    on_line = small + large + 2 == resolution
    inside = small + large + 2 <= resolution
    small, large, on_line = small[inside], large[inside], on_line[inside]

    rise = values[large] - values[small]
    scale = np.maximum(np.abs(values[large]), np.abs(values[small]))
    tied = np.abs(rise) <= 8 * np.finfo(float).eps * scale
    # Where values saturate, rounding hides a strict increase; a derivative that is
    # never negative and somewhere positive in between still proves it.
    positive, negative = (
        np.concatenate([[0], np.cumsum(s)]) for s in (slopes > 0, slopes < 0)
    )
    shown = (positive[large + 1] > positive[small]) & (
        negative[large + 1] == negative[small]
    )
    bad_tie = tied & ~shown
    if isolated_ties_on_line:
        ties_on_line = np.sort(large[bad_tie & on_line])
        isolated = not (np.diff(ties_on_line) == 1).any()
        bad_tie &= ~on_line | (not isolated)
    bad = bad_tie | (~tied & (rise < 0)) | np.isnan(rise)
    if not bad.any():
        return None
    worst = np.where(bad)[0][np.argmin(rise[bad])]
    return float(x[large[worst]]), float(x[small[worst]])
