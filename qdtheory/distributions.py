"""Probability vectors: checks, normalisation, tempering, mixing, entropy, sampling.

A distribution over N texts is a nonnegative float64 vector of shape (N,) with sum 1.
Every public function checks concrete inputs; inside `jax.jit`, `jax.grad` and
`jax.vmap` values are unknown, so only shape and dtype are checked.

Importing this module switches JAX's 64-bit mode on. Whatever computes exactly imports
it, so that scripts need no switch of their own; metrics of corpora do not. To switch it
on for the time of each call would not do: JAX would round what a call returns in
float64 to float32 in the caller's next operation.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import entr
from jaxtyping import Array, ArrayLike, Int, PRNGKeyArray, Real

from qdtheory.support.numbers import (
    EPS,
    Number,
    PerText,
    Scalar,
    TextArray,
    within,
)
from qdtheory.support.records import tell_caller

jax.config.update("jax_enable_x64", True)

EPS32 = float(np.finfo(np.float32).eps)
IN_32_BITS = (
    "was given in float32 and sums to 1 only up to its rounding; it was divided by its "
    "sum in 64 bits"
)


class Rounded(UserWarning):
    """A distribution in float32 was divided by its sum in 64 bits."""


def require_x64() -> None:
    """Raise if 64-bit mode was switched off again.

    In 32 bits the divergence between two close distributions over a million texts is
    wrong by tens of percent.
    """
    if not jax.config.read("jax_enable_x64"):
        raise RuntimeError(
            "qdtheory computes in 64 bits, but JAX's 64-bit mode was switched off "
            "after qdtheory had switched it on; run "
            "jax.config.update('jax_enable_x64', True) before making any array"
        )


def as_vector(
    x: ArrayLike | Sequence[Number], name: str, size: int | None = None
) -> Array:
    """Return `x` as a JAX vector of float64 after checking its type and shape."""
    require_x64()
    x = _as_array(x, name)
    if not isinstance(x, np.ndarray | jax.Array):
        raise TypeError(
            f"{name} must be an array or list of real numbers, got "
            f"{type(x).__name__}; convert it with numpy.asarray({name}, dtype=float)"
        )
    if x.dtype.kind not in "iuf":
        real = f"{name}.real" if x.dtype.kind == "c" else f"{name}.astype('float64')"
        raise TypeError(
            f"{name} must hold real numbers, got {x.dtype}; convert it with {real}"
        )
    if x.ndim != 1:
        raise ValueError(
            f"{name} must be one vector, got shape {x.shape}; "
            "use jax.vmap for a batch of them"
        )
    if x.size == 0:
        raise ValueError(f"{name} is empty; a distribution needs at least one text")
    if size is not None and x.size != size:
        raise ValueError(
            f"{name} must have {size} entries, got {x.size}; "
            "what is compared must be over the same texts"
        )
    return jnp.asarray(x, float)


def _as_array(x: Any, name: str) -> Any:
    """Make an array of a list of numbers, which may be traced, or of a Series."""
    if not isinstance(x, list | tuple):
        of_others = hasattr(x, "__array__") and not isinstance(x, jax.Array)
        return np.asarray(x) if of_others else x
    try:
        traced = any(isinstance(value, jax.Array) for value in x)
        return jnp.asarray(x) if traced else np.asarray(x, dtype=None if x else float)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be an array or list of real numbers, got a list of "
            f"{type(x[0]).__name__}"
        ) from None


def as_distribution(
    p: ArrayLike | Sequence[Number], name: str = "p", size: int | None = None
) -> Array:
    r"""Check that `p` is a distribution and return it as a JAX array of float64.

    The sum may differ from 1 by $10^{-10}$ plus the rounding of a sum of N terms; then
    `p` is returned unchanged. Of float32, such as a softmax's, it may differ by the
    rounding of that type, $(1 + \sqrt N) \, 2^{-23}$; then `p` is divided by its sum in
    64 bits, with a warning.
    """
    given = _as_array(p, name)
    p = as_vector(given, name, size)
    if isinstance(p, Tracer):
        return p
    values = np.asarray(p)
    require_finite(values, name)
    if values.min() < 0:
        raise ValueError(
            f"{name} must be nonnegative, got {values.min():.6g} at index "
            f"{values.argmin()}"
        )
    total = values.sum()
    excess = abs(total - 1)
    if excess > 1e-10 + values.size * EPS:
        if given.dtype == np.float32 and excess <= (1 + values.size**0.5) * EPS32:
            tell_caller([f"{name} {IN_32_BITS}"], Rounded)
            return jnp.asarray(values / total)
        raise ValueError(
            f"{name} must sum to 1, got {total:.12g}; "
            f"call normalize({name}) if it holds weights"
        )
    return p


def rounding_note(p: ArrayLike, checked: ArrayLike) -> str:
    """What a reason adds if `as_distribution` did not return `p` unchanged."""
    same = np.array_equal(np.asarray(p, float), np.asarray(checked))
    return "" if same else f" Note: p {IN_32_BITS}."


def as_interior(p: ArrayLike, why: str = "", size: int | None = None) -> Array:
    """Check that `p` is a distribution without zeros, for a reason that is told."""
    p = as_distribution(p, "p", size)
    if not isinstance(p, Tracer) and np.asarray(p).min() == 0:
        raise ValueError(
            f"p must be positive everywhere{why}; leave out the texts of probability 0"
        )
    return p


def as_distributions(
    size: int | None = None, **named: ArrayLike | Sequence[Number]
) -> list[Array]:
    """Check distributions over the same texts."""
    checked = []
    for name, p in named.items():
        checked.append(as_distribution(p, name, size))
        size = checked[0].size
    return checked


def require_positive(**numbers: Any) -> None:
    """Raise unless whole numbers are at least 1."""
    within(low=-np.inf, **numbers)  # they are numbers
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")


def require_finite(values: np.ndarray, name: str) -> None:
    """Raise where an entry of a vector or a matrix is not finite."""
    bad = np.argwhere(~np.isfinite(values)).tolist()
    if bad:
        where = bad[0] if values.ndim > 1 else f"index {bad[0][0]}"
        raise ValueError(f"{name} must be finite, got {values[*bad[0]]} at {where}")


def normalize(weights: Real[ArrayLike, " texts"] | Sequence[Number]) -> TextArray:
    r"""Divide nonnegative weights, such as counts, by their sum.

    Args:
        weights: shape (N,), nonnegative, finite, not all zero; an array or a list.

    Returns:
        The distribution $w_i / \sum_j w_j$, shape (N,).

    Raises:
        ValueError: a weight is negative, infinite or NaN, or all are zero.

    Example:
        >>> normalize([2, 1, 1]).tolist()
        [0.5, 0.25, 0.25]
    """
    weights = as_vector(weights, "weights")
    if not isinstance(weights, Tracer):
        values = np.asarray(weights)
        require_finite(values, "weights")
        if values.min() < 0:
            raise ValueError(f"weights must be nonnegative, got {values.min():.6g}")
        if values.max() == 0:
            raise ValueError("weights are all zero; at least one must be positive")
    return _divided_by_sum(weights)


@jax.jit
def _divided_by_sum(weights: Array) -> Array:
    # Rescale weights near either end of the floating-point range first, so that
    # neither their sum nor the reciprocal of the largest overflows.
    largest = weights.max()
    weights = weights * jnp.select(
        [largest > 1e150, largest < 1e-150], [1e-150, 1e150], 1.0
    )
    weights = weights / weights.max()
    return weights / weights.sum()


def temper(p: PerText, beta: Number) -> TextArray:
    r"""Temper a distribution over whole texts: $Q_i \propto P_i^\beta$.

    These are the Pareto-optima of the pair LL-SE, with $w = -\beta$; $1/\beta$ is a
    temperature on whole texts, not on tokens.

    Args:
        p: distribution, shape (N,).
        beta: inverse temperature, nonnegative and finite. 0 gives the uniform
            distribution on the support of `p`, the limit from above.

    Returns:
        The tempered distribution, shape (N,).

    Raises:
        ValueError: `p` is not a distribution, or `beta` is negative or not finite.

    References:
        Li et al. 2020, section 4.2.

    Example:
        >>> print(temper(np.array([0.8, 0.2]), 0.5).round(4))
        [0.6667 0.3333]
    """
    p = as_distribution(p)
    within(beta=beta, low=0)
    return _tempered(p, beta)


@jax.jit
def _tempered(p: Array, beta: Number) -> Array:
    support = p > 0
    log_p = jnp.log(jnp.where(support, p, 1.0))
    return jax.nn.softmax(jnp.where(support, beta * log_p, -jnp.inf))


def mix(p: PerText, q: PerText, epsilon: Number) -> TextArray:
    r"""Mix two distributions: $(1 - \varepsilon) p + \varepsilon q$.

    Args:
        p: the distribution at $\varepsilon = 0$, shape (N,).
        q: the distribution at $\varepsilon = 1$, shape (N,).
        epsilon: share of `q`, in [0, 1].

    Returns:
        The mixture, shape (N,).

    Raises:
        ValueError: `p` and `q` are not distributions of the same size, or `epsilon` is
            outside [0, 1].

    Example:
        >>> mix(np.array([1.0, 0.0]), np.array([0.5, 0.5]), 0.2).tolist()
        [0.9, 0.1]
    """
    p, q = as_distributions(p=p, q=q)
    within(epsilon=epsilon, low=0, high=1)
    return (1 - epsilon) * p + epsilon * q


def entropy(p: PerText) -> Scalar:
    r"""Shannon entropy $-\sum_i p_i \log p_i$, in nats.

    Args:
        p: distribution, shape (N,).

    Returns:
        A scalar in $[0, \log N]$.

    Raises:
        ValueError: `p` is not a distribution.

    Example:
        >>> float(entropy(np.array([0.5, 0.5])).round(6))
        0.693147
    """
    return _entropy(as_distribution(p))


@jax.jit
def _entropy(p: Array) -> Array:
    return entr(p).sum()


def sample(key: PRNGKeyArray, p: PerText, num_samples: int) -> Int[Array, " samples"]:
    """Draw independent indices of texts by inverting the cumulative distribution.

    Args:
        key: a JAX random key, used once.
        p: distribution, shape (N,).
        num_samples: number of draws, at least 1.

    Returns:
        Indices in 0 .. N-1, shape (num_samples,); texts of probability 0 are never
        drawn.

    Raises:
        ValueError: `p` is not a distribution, or `num_samples` is below 1.

    Example:
        >>> sample(jax.random.key(0), np.array([0.0, 1.0]), 3).tolist()
        [1, 1, 1]
    """
    p = as_distribution(p)
    require_positive(num_samples=num_samples)
    cumulative = jnp.cumsum(p)
    # For a uniform on (0, total], the first index whose cumulative sum reaches it has
    # positive probability, even with zeros at either end.
    uniforms = cumulative[-1] * (1 - jax.random.uniform(key, (num_samples,)))
    return jnp.searchsorted(cumulative, uniforms)


def fingerprint(values: ArrayLike) -> str:
    """Hash an array's entries, rounded to 6 decimals, to 8 hexadecimal digits.

    Printed next to a random object, it distinguishes a changed random stream from a
    changed result.

    Example:
        >>> fingerprint(np.array([0.25, 0.75])) == fingerprint(np.array([0.25, 0.5]))
        False
    """
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    rounded = np.round(np.asarray(values, dtype=np.float64), 6) + 0.0
    return hashlib.sha256(rounded.tobytes()).hexdigest()[:8]
