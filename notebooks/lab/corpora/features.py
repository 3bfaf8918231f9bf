"""Metrics of feature vectors of texts, from any encoder: Frechet distance and Vendi."""

import numpy as np
from jaxtyping import Float, Real

from lab.metrics.frechet import as_features, gaussian_distance


def frechet_distance(
    candidate_features: Real[np.ndarray, "candidates features"],
    reference_features: Real[np.ndarray, "references features"],
    *,
    squared: bool = False,
) -> float:
    r"""Frechet distance of two samples in feature space.

    $\sqrt{\Vert m_1 - m_2 \Vert^2 + tr(C_1 + C_2 - 2 (C_1 C_2)^{1/2})}$, with m the
    sample means and C the unbiased sample covariances. Symmetric; biased upwards, more
    so for small samples: only compare samples of equal size.

    Args:
        candidate_features: one row per text, at least 2, shape (n, d).
        reference_features: the same for real texts, shape (m, d).
        squared: False for the distance of Montahaei et al.; True for its square, which
            FID, Semeniuta et al. and the published code of the Frechet BERT distance
            return.

    Returns:
        A nonnegative number, in the unit of the features or, if squared, its square.

    Raises:
        TypeError: features are not real numbers.
        ValueError: fewer than two texts, or features that differ in dimension or are
            not finite.

    References:
        Montahaei et al. 2019, equation 2; Semeniuta et al. 2018, equation 2 (squared).

    Example:
        >>> candidates, references = np.array([[0.0], [2.0]]), np.array([[0.0], [4.0]])
        >>> round(frechet_distance(candidates, references, squared=True), 6)
        3.0
    """
    a = as_features(candidate_features, "candidate_features")
    b = as_features(reference_features, "reference_features")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"expected as many features of candidates as of references, got "
            f"{a.shape[1]} and {b.shape[1]}: embed both with one model"
        )
    moments = []
    for name, x in (("candidate", a), ("reference", b)):
        if len(x) < 2:
            raise ValueError(f"{name}_features: a covariance needs two texts, got one")
        mean = x.mean(axis=0)
        x -= mean
        moments += [mean, x.T @ x / (len(x) - 1)]
    return gaussian_distance(*moments, squared=squared)


def vendi_score(
    features: Float[np.ndarray, "texts features"], order: int | float = 1
) -> float:
    r"""Vendi score of a sample, the effective number of its different texts.

    The kernel of n texts, the cosines of their features, has the nonzero eigenvalues of
    the d by d matrix $\frac1n \sum_i \phi_i \phi_i'$: one product and one eigenvalue
    problem of size d in place of n.

    Biased downwards: the entropy is concave, and of a sample of n texts at most log n.
    For order 2 the bias is known, $E[1 / \mathrm{Vendi}_2] = (1 - 1/n) / v + 1 / n$,
    where v is the value of the model.

    Args:
        features: one vector a text, such as `embed(texts)`, shape (n, d); they are
            divided by their lengths.
        order: a, positive, as in `metrics.vendi_score`; may be infinite.

    Returns:
        A number from 1 to min(n, d).

    Raises:
        ValueError: the features are not such an array, one has length 0, or the order
            is not positive.

    References:
        Friedman and Dieng 2023, section 3.2; Pasarkar and Dieng 2024 for other orders.

    Claims: N25.11.

    Example:
        >>> round(vendi_score(np.eye(3)), 6), round(vendi_score(np.ones((3, 2))), 6)
        (3.0, 1.0)
    """
    features = np.asarray(features)
    if features.ndim != 2 or not features.size:
        raise ValueError(
            f"features: expected one vector a text, got shape {features.shape}"
        )
    if not order > 0:
        raise ValueError(f"order: expected a positive number, got {order}")
    features = features.astype(float, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
    if not (lengths > 0).all() or not np.isfinite(lengths).all():
        raise ValueError("features: expected finite vectors other than 0")
    unit = features / lengths[:, None]
    values = np.linalg.eigvalsh(unit.T @ unit / len(unit))
    values = values[values > 0]
    if order == 1:
        return float(np.exp(-values @ np.log(values)))
    if order == np.inf:
        return float(1 / values.max())
    return float((values**order).sum() ** (1 / (1 - order)))
