r"""Frechet distance: the 2-Wasserstein distance of the Gaussians with given moments.

With $C_a = R_a'R_a$, $C_b = R_b'R_b$ and $R_a R_b' = U S V'$,

$tr(C_a + C_b - 2 (C_a C_b)^{1/2}) = \min_{O'O = I} \Vert R_a - O R_b \Vert^2
= \Vert R_a - U V' R_b \Vert^2$,

a sum of squares: no root of a product that is not symmetric, nothing to cancel where
the moments are close, nothing to invert where a covariance is singular.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Real

from qdtheory.distributions import as_distributions, require_finite
from qdtheory.support.numbers import EPS, PerText, Scalar


def frechet_distance(
    q: PerText,
    p: PerText,
    features: Real[ArrayLike, "texts features"],
    *,
    squared: bool = False,
) -> Scalar:
    r"""Frechet distance of Q and P under a feature map of texts.

    $\sqrt{\Vert m_Q - m_P \Vert^2 + tr(C_Q + C_P - 2 (C_Q C_P)^{1/2})}$, with m and C
    the exact mean and covariance of the features. 0 iff these agree, which does not
    mean Q = P unless the map is rich enough.

    Estimated by `corpora.frechet_distance`, of features of samples.

    Args:
        q: the model, shape (N,).
        p: the real distribution, shape (N,).
        features: of each text, shape (N, d).
        squared: False for the distance of Montahaei et al.; True for its square, which
            FID, Semeniuta et al. and the published code of the Frechet BERT distance
            return.

    Returns:
        A nonnegative scalar, in units of the features or, squared, of their squares.
        JAX cannot trace it.

    Raises:
        TypeError: `q` or `p` is not an array of float64, or features are not real.
        ValueError: `q` and `p` are not distributions of the same size, or there is not
            one row of finite features per text.

    References:
        Montahaei et al. 2019, equation 2; Semeniuta et al. 2018, equation 2 (squared);
        Bhatia, Jain and Lim 2019, theorem 1 (the minimum over orthogonal matrices).

    Claims: N13.7, E13.2.

    Example:
        >>> features = np.array([[-1.0], [1.0]])
        >>> q, p = np.array([0.5, 0.5]), np.array([0.9, 0.1])
        >>> round(float(frechet_distance(q, p, features)), 6)
        0.894427
        >>> round(float(frechet_distance(q, p, features, squared=True)), 6)
        0.8
    """
    q, p = map(np.asarray, as_distributions(q=q, p=p))
    features = as_features(features, "features")
    if len(features) != q.size:
        raise ValueError(
            f"features must have a row for each of the {q.size} texts, got shape "
            f"{features.shape}"
        )
    moments = []
    for weights in (q, p):
        mean = weights @ features
        factor = np.sqrt(weights)[:, None] * (features - mean)
        moments += [mean, factor.T @ factor]
    return jnp.asarray(gaussian_distance(*moments, squared=squared))


def gaussian_distance(
    mean_a: Float[np.ndarray, " d"],
    covariance_a: Float[np.ndarray, "d d"],
    mean_b: Float[np.ndarray, " d"],
    covariance_b: Float[np.ndarray, "d d"],
    *,
    squared: bool = False,
) -> float:
    """2-Wasserstein distance of two Gaussians."""
    a, b = _root(covariance_a), _root(covariance_b)
    u, _, v = np.linalg.svd(a @ b.T)
    norm = np.linalg.norm
    distance = np.hypot(norm(mean_a - mean_b), norm(a - u @ (v @ b)))
    return float(distance**2 if squared else distance)


def _root(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """Compute R with R'R equal to the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    # Rounding turns a zero into some eps, with root 1e-8: cut off as in matrix_rank.
    values[values < len(values) * EPS * values[-1]] = 0
    return np.sqrt(values)[:, None] * vectors.T


def as_features(features: ArrayLike, name: str) -> Float[np.ndarray, "rows columns"]:
    """Check features and copy them to a float64 matrix."""
    values = np.asarray(features)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, got dtype {values.dtype}")
    if values.ndim != 2 or not values.size:
        raise ValueError(
            f"{name} must be a matrix with a row a text and a column a feature, got "
            f"shape {values.shape}"
        )
    require_finite(values, name)
    return values.astype(float)
