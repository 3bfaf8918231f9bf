"""The direction of least curvature, reproducible across machines."""

import numpy as np
from jaxtyping import Float

# Relative distance below which eigenvalues are equal: rounding separates them by some
# 1e-15, errors in derivatives by about 1e-10.
MULTIPLE = 1e-9


def least_direction(
    matrix: Float[np.ndarray, "texts texts"], normals: Float[np.ndarray, "rows texts"]
) -> Float[np.ndarray, " texts"]:
    r"""Minimise $d'Md$ over unit vectors d orthogonal to given vectors.

    Eigenvectors from LAPACK are not unique: the sign, and the direction in the
    eigenspace of a multiple eigenvalue, depend on the processor. So a fixed vector is
    projected onto the eigenspace of the least eigenvalue.

    Args:
        matrix: M, symmetric up to rounding, shape (N, N).
        normals: the vectors, possibly linearly dependent, shape (rows, N).

    Returns:
        The direction, or zeros if there is none.

    Example:
        >>> d = least_direction(np.diag([3.0, 1.0, 1.0, 2.0]), np.ones((1, 4)))
        >>> np.square(d).round(6).tolist()
        [0.0, 0.5, 0.5, 0.0]
    """
    _, sizes, rows = np.linalg.svd(normals)
    basis = rows[(sizes > 1e-12 * sizes[0]).sum() :]
    if not len(basis):
        return np.zeros(len(matrix))
    form = basis @ matrix @ basis.T
    values, vectors = np.linalg.eigh((form + form.T) / 2)
    least = values <= values[0] + MULTIPLE * np.abs(values).max()
    space = vectors[:, least].T @ basis
    # A vector without symmetry, so not orthogonal to the eigenspace by symmetry.
    d = (space @ np.cos(np.arange(1, len(matrix) + 1))) @ space
    return d / np.linalg.norm(d)
