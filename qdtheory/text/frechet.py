"""Frechet distance of two samples of texts, from the features of any encoder."""

import numpy as np
from jaxtyping import Real

from qdtheory.metrics.frechet import check_features, gaussian_distance


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
    a = check_features(candidate_features, "candidate_features")
    b = check_features(reference_features, "reference_features")
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
