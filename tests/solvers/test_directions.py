"""The direction of least curvature does not depend on LAPACK's choice of a basis."""

import numpy as np
import pytest

from qdtheory.solvers.directions import least_direction


@pytest.mark.parametrize("multiplicity", [1, 2, 5])
def test_it_is_least_at_right_angles_and_of_length_1(multiplicity):
    rng = np.random.default_rng([16, multiplicity])
    frame = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    values = np.concatenate([np.full(multiplicity, -1.0), np.arange(12 - multiplicity)])
    matrix = frame @ np.diag(values) @ frame.T
    d = least_direction(matrix, frame.T[-2:])
    assert np.linalg.norm(d) == pytest.approx(1, abs=1e-14)
    assert d @ matrix @ d == pytest.approx(-1, abs=1e-12)
    np.testing.assert_allclose(frame.T[-2:] @ d, 0, atol=1e-14)


def test_it_is_the_nearest_to_a_fixed_vector_in_the_space_of_the_eigenvalue():
    # One word of three may differ: the eigenvalue -1 is four times there.
    texts = np.stack(np.divmod(np.arange(9), 3), axis=1)
    near = ((texts[:, None] != texts).sum(-1) <= 1) * 1.0
    assert (np.linalg.eigvalsh(near) < -0.5).sum() == 4
    # Its eigenvalues are 5, 2 and -1: a polynomial of it is the projector on the last.
    projector = (near - 5 * np.eye(9)) @ (near - 2 * np.eye(9)) / 18
    expected = projector @ np.cos(np.arange(1, 10))
    d = least_direction(near, np.ones((1, 9)))
    np.testing.assert_allclose(d, expected / np.linalg.norm(expected), atol=1e-13)


def test_rounding_of_the_matrix_does_not_move_it():
    rng = np.random.default_rng([16, 3])
    kernel = np.kron(np.eye(4), 1 - np.eye(4))
    exact = least_direction(kernel, np.ones((1, 16)))
    for _ in range(20):
        noise = rng.normal(size=(16, 16)) * 1e-15
        moved = least_direction(kernel + noise + noise.T, np.ones((1, 16)))
        np.testing.assert_allclose(moved, exact, atol=1e-12)


def test_vectors_that_leave_no_direction_give_zeros():
    np.testing.assert_array_equal(least_direction(np.eye(2), np.eye(2)), 0)
