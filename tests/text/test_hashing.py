"""Hashes of rows: the same everywhere, and evenly spread."""

import numpy as np

from qdtheory.text.hashing import hashed


def by_hand(*row):
    mixed = 0
    for entry in row:
        mixed = (mixed + entry + 1) % 2**64
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed = (mixed ^ (mixed >> 33)) * factor % 2**64
        mixed ^= mixed >> 33
    return mixed


def test_hashes_are_those_of_python_integers():
    columns = np.random.default_rng(0).integers(2**31, size=(3, 50))
    for k in (1, 2, 3):
        expected = [by_hand(*row) for row in columns[:k].T.tolist()]
        assert hashed(*columns[:k]).tolist() == expected


def test_parts_are_of_equal_size():
    first, second = np.divmod(np.arange(10**5), 300)
    for parts in (2, 7, 16):
        sizes = np.bincount(hashed(first, second) % parts)
        # Five standard deviations.
        mean = 10**5 / parts
        assert abs(sizes - mean).max() <= 5 * np.sqrt(mean)
