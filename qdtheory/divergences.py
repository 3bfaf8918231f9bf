r"""Divergences between distributions, one function each, in nats.

Arguments are in mathematical order: `kl_divergence(a, b)` is KL(a || b). Zeros are
handled exactly: $0 \log 0 = 0$, and divergences may be infinite.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array

from qdtheory.distributions import as_distributions
from qdtheory.support.numbers import Number, PerText, Scalar, within


def _log_ratio(a: Array, b: Array) -> Array:
    """log(a / b) of positive numbers.

    Uses log1p of the relative difference, so that close distributions keep their
    precision; both sides of `where` are finite, so that gradients are too.
    """
    close = jnp.abs(a - b) < b / 2
    small = jnp.where(close, (a - b) / jnp.where(close, b, 1.0), 0.0)
    return jnp.where(close, jnp.log1p(small), jnp.log(a) - jnp.log(b))


def _positive(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Mask where both are positive, and both arrays with 1 elsewhere."""
    inside = (a > 0) & (b > 0)
    return inside, jnp.where(inside, a, 1.0), jnp.where(inside, b, 1.0)


@jax.jit
def _kl_terms(a: Array, b: Array) -> Array:
    r"""$a \log(a / b) - a + b \ge 0$, elementwise; their sum is KL(a || b).

    For a and b sum to 1. No term is negative, so nothing cancels.
    """
    inside, a1, b1 = _positive(a, b)
    edge = jnp.where(a > 0, jnp.inf, b)
    return jnp.where(inside, a1 * _log_ratio(a1, b1) - (a1 - b1), edge)


@jax.jit
def _sqrt(a: Array) -> Array:
    """Square root with derivative 0 instead of infinity at 0."""
    positive = a > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, a, 1.0)), 0.0)


def kl_divergence(a: PerText, b: PerText) -> Scalar:
    r"""Kullback-Leibler divergence $KL(a \Vert b) = \sum_i a_i \log(a_i / b_i)$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        Nats, in $[0, \infty]$; infinite if b is 0 where a is not.

    Raises:
        ValueError: `a` and `b` are not distributions of the same size.

    References:
        Li et al. 2020, section 4.3: LL-SE's divergence is $\frac12 KL(Q \Vert P)$.

    Claims: N2.1, N2.2, N9.4.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([0.5, 0.5, 0.0]), np.full(3, 1 / 3)
        >>> float((kl_divergence(a, b) / np.log(2)).round(10))
        0.5849625007
    """
    a, b = as_distributions(a=a, b=b)
    return _kl_terms(a, b).sum()


def jeffreys_divergence(a: PerText, b: PerText) -> Scalar:
    r"""Jeffreys divergence $KL(a \Vert b) + KL(b \Vert a)$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        Nats, in $[0, \infty]$; infinite if anywhere exactly one of the two is 0.

    Raises:
        ValueError: `a` and `b` are not distributions of the same size.

    References:
        Jeffreys 1946.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([0.75, 0.25]), np.array([0.25, 0.75])
        >>> float((jeffreys_divergence(a, b) / np.log(3)).round(12))
        1.0
    """
    a, b = as_distributions(a=a, b=b)
    return (_kl_terms(a, b) + _kl_terms(b, a)).sum()


def renyi_divergence(a: PerText, b: PerText, order: int | float) -> Scalar:
    r"""Renyi divergence $\frac1{r - 1} \log \sum_i a_i^r b_i^{1 - r}$ of order r.

    Nondecreasing in the order; order 1/2 is twice the Bhattacharyya distance, and order
    1 is the limit, $KL(a \Vert b)$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).
        order: r, positive and finite. Within e of 1, but not at 1, rounding costs
            -log10(e) digits.

    Returns:
        Nats, in $[0, \infty]$; infinite on disjoint supports and, for $r \ge 1$, if b
        is 0 where a is not.

    Raises:
        ValueError: `a` and `b` are not distributions of the same size, or the order is
            out of range.

    References:
        Van Erven and Harremoes 2014.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([1.0, 0.0]), np.array([0.25, 0.75])
        >>> float((renyi_divergence(a, b, order=3) / np.log(4)).round(12))
        1.0
    """
    a, b = as_distributions(a=a, b=b)
    within(order=order, low=0, ends="()")
    return _kl_terms(a, b).sum() if order == 1 else _renyi(a, b, order)


@jax.jit
def _renyi(a: Array, b: Array, order: Number) -> Array:
    inside, a1, b1 = _positive(a, b)
    log_ratio, difference = _log_ratio(a1, b1), a1 - b1
    logs = jnp.where(inside, order * log_ratio + jnp.log(b1), -jnp.inf)
    uncovered = ((a > 0) & (b == 0)).any() & (order > 1)
    log_sum = jnp.where(uncovered, jnp.inf, logsumexp(logs))
    # Near 1 the sum itself has lost the digits of close distributions; its distance
    # from 1 is a sum of terms of one sign, $b (x^r - 1 - r (x - 1))$ with x = a / b.
    near = jnp.abs(log_sum) < 0.5
    power = jnp.where(near & inside, order * log_ratio, 0.0)
    # Where a or b is 0, $a^r b^{1 - r}$ is 0 (if not, the sum is infinite).
    edge = jnp.where(b > 0, (order - 1) * b, -order * a)
    terms = jnp.where(inside, b1 * jnp.expm1(power) - order * difference, edge)
    excess = jnp.where(near, terms.sum(), 0.0)
    return jnp.where(near, jnp.log1p(excess), log_sum) / (order - 1)


def cross_entropy(a: PerText, b: PerText) -> Scalar:
    r"""Cross-entropy $H(a, b) = -\sum_i a_i \log b_i$; -LL(Q; P) = H(Q, P).

    Estimated by `lab.corpora.lm_score`, with a fitted model in place of `b`.

    Args:
        a: distribution that texts are drawn from, shape (N,).
        b: distribution that scores them, shape (N,).

    Returns:
        Nats per text, in $[0, \infty]$.

    Raises:
        ValueError: `a` and `b` are not distributions of the same size.

    Claims: N0.2, N0.4.

    Example:
        >>> import numpy as np
        >>> a = np.array([0.5, 0.5])
        >>> float(cross_entropy(a, a).round(6))
        0.693147
    """
    a, b = as_distributions(a=a, b=b)
    return _cross_entropy(a, b)


@jax.jit
def _cross_entropy(a: Array, b: Array) -> Array:
    # A text of probability 0 on both sides contributes 0, with derivative 0.
    unknown = (a == 0) & (b == 0)
    return -(a * jnp.log(jnp.where(unknown, 1.0, b))).sum()


def jensen_shannon_divergence(a: PerText, b: PerText) -> Scalar:
    r"""Jensen-Shannon divergence $\frac12 KL(a \Vert m) + \frac12 KL(b \Vert m)$.

    Here $m = (a + b) / 2$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        Nats, in $[0, \log 2]$.

    Raises:
        ValueError: `a` and `b` are not distributions of the same size.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> float(jensen_shannon_divergence(a, b).round(6))
        0.693147
    """
    a, b = as_distributions(a=a, b=b)
    m = (a + b) / 2
    return (_kl_terms(a, m) + _kl_terms(b, m)).sum() / 2


def total_variation(a: PerText, b: PerText) -> Scalar:
    r"""Total variation distance $\frac12 \sum_i |a_i - b_i|$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        A scalar in [0, 1].

    Raises:
        ValueError: `a` and `b` are not distributions of the same size.

    Example:
        >>> import numpy as np
        >>> float(total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75])))
        0.25
    """
    a, b = as_distributions(a=a, b=b)
    return jnp.abs(a - b).sum() / 2


def hellinger_distance(a: PerText, b: PerText) -> Scalar:
    r"""Hellinger distance $\sqrt{\frac12 \sum_i (\sqrt{a_i} - \sqrt{b_i})^2}$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        A scalar in [0, 1].

    Raises:
        ValueError: `a` and `b` are not distributions of the same size.

    Example:
        >>> import numpy as np
        >>> float(hellinger_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
        1.0
    """
    a, b = as_distributions(a=a, b=b)
    return _sqrt(_squared_hellinger(a, b))


@jax.jit
def _squared_hellinger(a: Array, b: Array) -> Array:
    return ((_sqrt(a) - _sqrt(b)) ** 2).sum() / 2


def bhattacharyya_distance(a: PerText, b: PerText) -> Scalar:
    r"""Bhattacharyya distance $-\log \sum_i \sqrt{a_i b_i}$.

    Args:
        a: distribution, shape (N,).
        b: distribution, shape (N,).

    Returns:
        Nats, in $[0, \infty]$; infinite on disjoint supports.

    Raises:
        ValueError: `a` and `b` are not distributions of the same size.

    References:
        Montahaei et al. 2019, equation 3, estimates it.

    Claims: N13.2.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([0.5, 0.5]), np.array([0.25, 0.75])
        >>> float(jnp.exp(-bhattacharyya_distance(a, b)).round(10))
        0.9659258263
    """
    a, b = as_distributions(a=a, b=b)
    return _bhattacharyya(a, b)


@jax.jit
def _bhattacharyya(a: Array, b: Array) -> Array:
    coefficient = (_sqrt(a) * _sqrt(b)).sum()
    # 1 minus the coefficient is the squared Hellinger distance, which keeps the
    # digits of close distributions that the coefficient itself has lost; far apart
    # it is the other way round. Both sides of `where` are finite.
    close = coefficient > 0.5
    squared = jnp.where(close, _squared_hellinger(a, b), 0.5)
    far = jnp.where(close | (coefficient == 0), 1.0, coefficient)
    distance = jnp.where(close, -jnp.log1p(-squared), -jnp.log(far))
    return jnp.where(coefficient == 0, jnp.inf, distance)
