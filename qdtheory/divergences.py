r"""Divergences between distributions, one function each, in nats.

Each follows the order of its mathematics: `kl_divergence(a, b)` is KL(a || b).
Zeros are exact: $0 \log 0 = 0$, and a divergence is infinite where it should be.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from qdtheory.distributions import check_distribution


def _checked(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    a = check_distribution(a, "a")
    return a, check_distribution(b, "b", a.size)


def _kl_terms(a: Array, b: Array) -> Array:
    r"""$a \log(a / b) - a + b \ge 0$, elementwise; their sum is KL(a || b).

    Through log1p of the relative difference, so that close distributions keep their
    digits; both sides of `where` are finite, so that gradients are too.
    """
    inside = (a > 0) & (b > 0)
    a1, b1 = jnp.where(inside, a, 1.0), jnp.where(inside, b, 1.0)
    difference = a1 - b1
    close = jnp.abs(difference) < b1 / 2
    small = jnp.where(close, difference / jnp.where(close, b1, 1.0), 0.0)
    log_ratio = jnp.where(close, jnp.log1p(small), jnp.log(a1) - jnp.log(b1))
    edge = jnp.where(a > 0, jnp.inf, b)
    return jnp.where(inside, a1 * log_ratio - difference, edge)


def _sqrt(a: Array) -> Array:
    """The square root, with derivative 0 in place of infinity at 0."""
    positive = a > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, a, 1.0)), 0.0)


def kl_divergence(
    a: Float[ArrayLike, " texts"], b: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""Kullback-Leibler divergence $KL(a \Vert b) = \sum_i a_i \log(a_i / b_i)$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        Nats, in $[0, \infty]$; infinite where b is 0 and a is not.

    Raises:
        ValueError: not two distributions of one size.

    References:
        Li et al. 2020, section 4.3: LL-SE's divergence is $\frac12 KL(Q \Vert P)$.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([0.5, 0.5, 0.0]), np.full(3, 1 / 3)
        >>> float((kl_divergence(a, b) / np.log(2)).round(10))
        0.5849625007
    """
    a, b = _checked(a, b)
    return _kl_terms(a, b).sum()


def cross_entropy(
    a: Float[ArrayLike, " texts"], b: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""Cross-entropy $H(a, b) = -\sum_i a_i \log b_i$; -LL(Q; P) = H(Q, P).

    Args:
        a: distribution that texts are drawn from, shape (N,).
        b: distribution that scores them, shape (N,).

    Returns:
        Nats per text, in $[0, \infty]$.

    Raises:
        ValueError: not two distributions of one size.

    Example:
        >>> import numpy as np
        >>> a = np.array([0.5, 0.5])
        >>> float(cross_entropy(a, a).round(6))
        0.693147
    """
    a, b = _checked(a, b)
    # A text that neither side knows costs nothing, and has a derivative of 0.
    unknown = (a == 0) & (b == 0)
    return -(a * jnp.log(jnp.where(unknown, 1.0, b))).sum()


def jensen_shannon_divergence(
    a: Float[ArrayLike, " texts"], b: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""Jensen-Shannon divergence $\frac12 KL(a \Vert m) + \frac12 KL(b \Vert m)$.

    Here $m = (a + b) / 2$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        Nats, in $[0, \log 2]$.

    Raises:
        ValueError: not two distributions of one size.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> float(jensen_shannon_divergence(a, b).round(6))
        0.693147
    """
    a, b = _checked(a, b)
    m = (a + b) / 2
    return (_kl_terms(a, m) + _kl_terms(b, m)).sum() / 2


def total_variation(
    a: Float[ArrayLike, " texts"], b: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""Total variation distance $\frac12 \sum_i |a_i - b_i|$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        A scalar in [0, 1].

    Raises:
        ValueError: not two distributions of one size.

    Example:
        >>> import numpy as np
        >>> float(total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75])))
        0.25
    """
    a, b = _checked(a, b)
    return jnp.abs(a - b).sum() / 2


def hellinger_distance(
    a: Float[ArrayLike, " texts"], b: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""Hellinger distance $\sqrt{\frac12 \sum_i (\sqrt{a_i} - \sqrt{b_i})^2}$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        A scalar in [0, 1].

    Raises:
        ValueError: not two distributions of one size.

    Example:
        >>> import numpy as np
        >>> float(hellinger_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
        1.0
    """
    a, b = _checked(a, b)
    return _sqrt(((_sqrt(a) - _sqrt(b)) ** 2).sum() / 2)


def bhattacharyya_distance(
    a: Float[ArrayLike, " texts"], b: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""Bhattacharyya distance $-\log \sum_i \sqrt{a_i b_i}$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        Nats, in $[0, \infty]$; infinite on disjoint supports.

    Raises:
        ValueError: not two distributions of one size.

    References:
        Montahaei et al. 2019, equation 3, estimates it.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([0.5, 0.5]), np.array([0.25, 0.75])
        >>> float(jnp.exp(-bhattacharyya_distance(a, b)).round(10))
        0.9659258263
    """
    a, b = _checked(a, b)
    coefficient = (_sqrt(a) * _sqrt(b)).sum()
    # 1 minus the coefficient is the squared Hellinger distance, which keeps the
    # digits of close distributions that the coefficient itself has lost; far apart
    # it is the other way round. Both sides of `where` are finite.
    close = coefficient > 0.5
    squared = jnp.where(close, hellinger_distance(a, b) ** 2, 0.5)
    far = jnp.where(close | (coefficient == 0), 1.0, coefficient)
    distance = jnp.where(close, -jnp.log1p(-squared), -jnp.log(far))
    return jnp.where(coefficient == 0, jnp.inf, distance)
