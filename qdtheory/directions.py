"""The direction of least curvature, one and the same on every machine."""

import numpy as np
from jaxtyping import Float

# Eigenvalues this near, relatively, are one: rounding parts them by some 1e-15, and
# derivatives carry errors of 1e-10 or so.
MULTIPLE = 1e-9


def least_direction(
    matrix: Float[np.ndarray, "texts texts"], normals: Float[np.ndarray, "rows texts"]
) -> Float[np.ndarray, " texts"]:
    r"""The d of length 1 at right angles to some vectors with the least $d'Md$.

    An eigenvector that LAPACK returns is one of many: its sign, and its place in the
    space of a multiple eigenvalue, depend on the processor. So a fixed vector is
    projected on the whole space of the least eigenvalue.

    Args:
        matrix: M, symmetric up to rounding, shape (N, N).
        normals: the vectors, which may depend on each other, shape (rows, N).

    Returns:
        The direction, or zeros if the vectors leave none.

    Example:
        >>> d = least_direction(np.diag([3.0, 1.0, 1.0, 2.0]), np.ones((1, 4)))
        >>> np.square(d).round(6).tolist()
        [0.0, 0.5, 0.5, 0.0]
    """
    _, sizes, rows = np.linalg.svd(normals)
    basis = rows[(sizes > 1e-12 * sizes[0]).sum() :]
    if not len(basis):
        return np.zeros(len(matrix))
    bend = basis @ matrix @ basis.T
    values, vectors = np.linalg.eigh((bend + bend.T) / 2)
    least = values <= values[0] + MULTIPLE * np.abs(values).max()
    space = vectors[:, least].T @ basis
    # A vector without pattern: no symmetry of the texts puts it across the space.
    d = (space @ np.cos(np.arange(1, len(matrix) + 1))) @ space
    return d / np.linalg.norm(d)
