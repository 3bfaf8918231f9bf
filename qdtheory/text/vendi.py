"""The Vendi score of feature vectors, by their covariance rather than their kernel."""

import numpy as np
from jaxtyping import Float


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
        order: a, positive, as in `qd.metrics.vendi_score`; may be infinite.

    Returns:
        A number from 1 to min(n, d).

    Raises:
        ValueError: the features are not such an array, one has length 0, or the order
            is not positive.

    References:
        Friedman and Dieng 2023, section 3.2; Pasarkar and Dieng 2024 for other orders.

    Claims: N25.11, N25.12.

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
