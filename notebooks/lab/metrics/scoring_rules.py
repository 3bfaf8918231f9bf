r"""The compatible quality of a diversity, and proper scoring rules.

Let U be linear in Q with scores $\phi(P)$, and V concave and differentiable. An
interior P that does not maximise V is Pareto-optimal iff
$\phi(P) = -\eta \nabla V(P) + c\,\mathbf 1$ with $\eta > 0$. So a diversity has one
compatible quality up to scale and shift, minus its gradient, and the divergence of the
two is the Bregman divergence of -V. In the theory of forecasts $-\nabla V$ is, up to a
shift, the proper scoring rule whose entropy is V, with P as the forecast.
"""

import jax
import numpy as np

from qdtheory.distributions import as_distribution, as_interior
from qdtheory.forms import Functional, expected_score
from qdtheory.pairs import ConcavePair
from qdtheory.support.numbers import PerText, Scalar


def bregman_divergence(diversity: Functional, q: PerText, p: PerText) -> Scalar:
    r"""Bregman divergence of -V, $V(P) - V(Q) + \nabla V(P) \cdot (Q - P)$.

    The gap $\Psi(P) - \Psi(Q)$ of `compatible_quality(diversity)` with
    $\Psi = U + V$. For the entropy it is KL(Q || P), for NRR the squared distance.

    Args:
        diversity: V, concave, differentiable where P is positive; its slope may be
            infinite at 0.
        q: the model, shape (N,).
        p: the real distribution, shape (N,).

    Returns:
        A scalar in $[0, \infty]$; infinite where Q has a text of infinite slope that P
        lacks. The error is a rounding of V, so that the divergence of two
        distributions about 1e-8 apart is lost.

    Raises:
        ValueError: `q` and `p` are not distributions of the same size.

    References:
        Gneiting and Raftery 2007, section 2.2.

    Claims: N16.3, N16.12.

    Example:
        >>> import jax.numpy as jnp
        >>> a, b = np.array([1.0, 0.0]), np.array([0.5, 0.5])
        >>> float(bregman_divergence(lambda q: -jnp.square(q).sum(), a, b))
        0.5
    """
    p = as_distribution(p)
    q = as_distribution(q, "q", p.size)
    value, slope = jax.value_and_grad(diversity)(p)
    return value - diversity(q) + expected_score(q - p, slope)


def local_discrepancy(pair: ConcavePair, p: PerText) -> float:
    r"""QDisc to leading order if the quality is close to the compatible one.

    With $|x|$ the norm of the zero-sum part of x in the metric $(-\nabla^2 V)^{-1}$,
    and $\cos$ the cosine of $\phi$ and $\nabla V$ in it,
    $\mathrm{QDisc} \approx |\phi|\,|\nabla V|\,(1 + \cos)$: the least over $\eta > 0$
    of $|\phi + \eta \nabla V|^2 / (2 \eta)$. The first-order test asks if it is 0.

    Args:
        pair: V twice differentiable, with a Hessian that is negative definite on
            zero-sum vectors at P.
        p: the real distribution, positive, shape (N,).

    Returns:
        A number, at least 0; the error is of higher order in the mismatch.

    Raises:
        ValueError: `p` is not a distribution or has zeros, or the Hessian of V at `p`
            is not negative definite on zero-sum vectors.

    Claims: N16.11.

    Example:
        >>> import jax.numpy as jnp
        >>> pair = ConcavePair(jnp.log, lambda q: -jnp.square(q).sum(), "LL-NRR")
        >>> print(f"{local_discrepancy(pair, np.array([0.36, 0.33, 0.31])):.3e}")
        8.082e-07
    """
    p = as_interior(p, ", as the estimate takes derivatives there")
    basis = np.linalg.svd(np.ones((1, p.size)))[2][1:]
    hessian = basis @ np.asarray(jax.hessian(pair.diversity)(p)) @ basis.T
    scores, slope = pair.text_quality(p), jax.grad(pair.diversity)(p)
    values, vectors = np.linalg.eigh(-(hessian + hessian.T) / 2)
    if values[0] <= 1e-12 * np.abs(values).max():
        raise ValueError(
            "the Hessian of the diversity must be negative definite on zero-sum "
            "vectors at p; along a direction in which V is flat QDisc is not small"
        )
    root = (vectors / np.sqrt(values)).T @ basis
    u, v = root @ np.asarray(scores), root @ np.asarray(slope)
    sizes = np.linalg.norm(u), np.linalg.norm(v)
    if min(sizes) == 0:
        return 0.0
    # 1 + cosine, without the cancellation of a sum with -1.
    return float(np.prod(sizes) * np.sum((u / sizes[0] + v / sizes[1]) ** 2) / 2)
