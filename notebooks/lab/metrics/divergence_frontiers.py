r"""Trade-off curves between two distributions: divergence frontier, MAUVE and PRD.

Unlike the Pareto frontier, which runs over models, these curves run over mixtures or
slopes for one model: one end measures the mass that the model has and the real
distribution lacks, the other the mass it misses. Every point is a pair of
f-divergences, and the ideal point is on the curve iff q = p.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.distributions import as_distributions, as_vector
from qdtheory.divergences import kl_divergence
from qdtheory.support.numbers import Number, PerText, Scalar, within

# The package's first and last mixture are this far from the ends.
MAUVE_MARGIN = 1e-6
# The F-scores of a PRD curve: recall counts this much more than precision, or less.
BETA = 8


def divergence_frontier(
    q: PerText, p: PerText, lambdas: Float[ArrayLike, " points"]
) -> Float[Array, "points 2"]:
    r"""Divergence frontier: $(KL(Q \Vert R), KL(P \Vert R))$ along mixtures R.

    $R = \lambda Q + (1 - \lambda) P$. The first coordinate is large where Q has texts
    that P lacks, the second where Q lacks texts of P.

    Args:
        q: the model, shape (N,).
        p: the real distribution, shape (N,).
        lambdas: shares of Q in the mixture, each in [0, 1], shape (points,).

    Returns:
        Nats, shape (points, 2); infinite only at the ends 0 and 1.

    Raises:
        ValueError: `q` and `p` are not distributions of the same size, or a share is
            outside [0, 1].

    References:
        Djolonga et al. 2020; Pillutla et al. 2021.

    Example:
        >>> q, p = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
        >>> divergence_frontier(q, p, np.array([0.5])).round(12).tolist()
        [[0.066414314382, 0.066414314382]]
    """
    q, p = as_distributions(q=q, p=p)
    lambdas = as_vector(lambdas, "lambdas")
    within(lambdas=lambdas, low=0, high=1)
    return _points(q, p, lambdas)


@jax.jit
def _points(q: Array, p: Array, lambdas: Array) -> Array:
    def point(share: Array) -> Array:
        mixture = share * q + (1 - share) * p
        return jnp.stack([kl_divergence(q, mixture), kl_divergence(p, mixture)])

    return jax.vmap(point)(lambdas)


def frontier_integral(q: PerText, p: PerText) -> Scalar:
    r"""Frontier integral: the mean of the frontier's weighted divergences, doubled.

    $2 \int_0^1 [\lambda KL(Q \Vert R) + (1 - \lambda) KL(P \Vert R)] \, d\lambda
    = \sum_i \left[ \frac{q_i + p_i}2
    - \frac{q_i p_i}{q_i - p_i} \log \frac{q_i}{p_i} \right]$,
    with R as in `divergence_frontier`.

    Args:
        q: the model, shape (N,).
        p: the real distribution, shape (N,).

    Returns:
        A scalar in [0, 1]; 0 iff q = p, 1 on disjoint supports.

    Raises:
        ValueError: `q` and `p` are not distributions of the same size.

    References:
        Liu et al. 2021.

    Claims: N13.18.

    Example:
        >>> q, p = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
        >>> print(f"{frontier_integral(q, p):.6f}")
        0.089140
    """
    q, p = as_distributions(q=q, p=p)
    total = q + p
    d = (q - p) / jnp.where(total > 0, total, 1.0)
    # A term is (q + p) / 2 times 1 - (1 - d^2) artanh(d) / d. Where that loses digits,
    # its series sum_k 2 d^(2k) / (4k^2 - 1) has all of them.
    far = jnp.abs(d) > 0.1
    edge = jnp.abs(d) == 1
    x = jnp.where(far & ~edge, d, 0.5)
    by_formula = jnp.where(edge, 1.0, 1 - (1 - x**2) * jnp.arctanh(x) / x)
    k = np.arange(1, 9)  # the ninth term is below 1e-18 of the first
    near = jnp.where(far, 0.0, d)[:, None]
    by_series = (2 * near ** (2 * k) / (4 * k**2 - 1)).sum(axis=1)
    return (total / 2 * jnp.where(far, by_formula, by_series)).sum()


def mauve(
    q: PerText, p: PerText, scaling: Number = 5.0, num_points: int = 25
) -> Scalar:
    r"""MAUVE: the area under the divergence frontier, scaled into the unit square.

    The curve is $(e^{-c\,KL(Q \Vert R)}, e^{-c\,KL(P \Vert R)})$ with the scaling c,
    at equally spaced mixtures R and the two ends, joined by straight lines: what the
    package mauve-text computes on two histograms. It clusters embeddings first; here
    every text is a cluster of its own.

    Args:
        q: the model, shape (N,).
        p: the real distribution, shape (N,).
        scaling: c, positive.
        num_points: mixtures on the curve, at least 2.

    Returns:
        A scalar in [0, 1]; 1 iff q = p.

    Raises:
        ValueError: `q` and `p` are not distributions of the same size, the scaling is
            not positive, or fewer than 2 points.

    References:
        Pillutla et al. 2021.

    Example:
        >>> q = np.array([0.5, 0.3, 0.2])
        >>> float(mauve(q, q))
        1.0
    """
    within(scaling=scaling, low=0, ends="()")
    within(num_points=num_points, low=2)
    lambdas = jnp.linspace(MAUVE_MARGIN, 1 - MAUVE_MARGIN, num_points)
    curve = jnp.exp(-scaling * divergence_frontier(q, p, lambdas))
    x, y = jnp.concatenate([jnp.eye(2)[1:], curve, jnp.eye(2)[:1]]).T
    return jnp.trapezoid(y, x)


def precision_recall_distributions(
    q: PerText, p: PerText, num_angles: int = 1001
) -> Float[Array, "angles 2"]:
    r"""PRD: the attainable pairs of precision and recall of Q against P.

    At the slope $\lambda = \tan\theta$ precision is
    $\sum_i \min(\lambda P_i, Q_i)$ and recall precision over $\lambda$, for angles
    $\theta$ from 0 to $\pi / 2$, the ends as limits: the greatest recall is
    P(supp Q), the greatest precision Q(supp P). At 45 degrees both are 1 minus the
    total variation.

    Args:
        q: the model, shape (N,).
        p: the real distribution, shape (N,).
        num_angles: equally spaced angles, at least 2.

    Returns:
        Columns precision and recall, each in [0, 1], shape (num_angles, 2).

    Raises:
        ValueError: `q` and `p` are not distributions of the same size, or fewer than 2
            angles.

    References:
        Sajjadi et al. 2018.

    Claims: N13.18.

    Example:
        >>> q, p = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
        >>> precision_recall_distributions(q, p, num_angles=3).round(12).tolist()
        [[0.0, 1.0], [0.7, 0.7], [1.0, 0.0]]
    """
    q, p = as_distributions(q=q, p=p)
    within(num_angles=num_angles, low=2)
    angles = np.linspace(0, np.pi / 2, num_angles)
    sine, cosine = np.sin(angles)[:, None], np.cos(angles)[:, None]
    sine[-1], cosine[-1] = 1, 0

    def shared(a: Array, b: Array, slope: np.ndarray, other: np.ndarray) -> Array:
        """The sum of min(slope / other * a, b), at other = 0 its limit."""
        reached = jnp.minimum(slope * a / np.where(other == 0, 1, other), b)
        return jnp.where(other == 0, jnp.where(a > 0, b, 0), reached).sum(axis=1)

    precision, recall = shared(p, q, sine, cosine), shared(q, p, cosine, sine)
    return jnp.stack([precision, recall], axis=1)


def prd_f_scores(points: Float[ArrayLike, "angles 2"]) -> Float[Array, "2"]:
    r"""The greatest $F_8$ and $F_{1/8}$ of a PRD curve, one for each end.

    $F_\beta = (1 + \beta^2) \alpha \rho / (\beta^2 \alpha + \rho)$ with precision
    $\alpha$ and recall $\rho$: for a great $\beta$ recall counts, for a small one
    precision.

    Args:
        points: columns precision and recall, as from
            `precision_recall_distributions`.

    Returns:
        The two scores, each in [0, 1].

    References:
        Sajjadi et al. 2018.

    Example:
        >>> prd_f_scores(np.array([[0.5, 1.0], [0.0, 1.0]])).round(4).tolist()
        [0.9848, 0.5039]
    """
    precision, recall = jnp.asarray(points).T
    square = np.array([[BETA**2], [BETA**-2]])
    weighted = square * precision + recall
    scores = (1 + square) * precision * recall / jnp.where(weighted > 0, weighted, 1.0)
    return jnp.max(scores, axis=1)
