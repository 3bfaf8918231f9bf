"""Hashes of rows of integers, the same on any machine."""

import numpy as np
from jaxtyping import Integer, UInt64

FACTORS = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
SHIFT = np.uint64(33)


def hashed(*columns: Integer[np.ndarray, " rows"]) -> UInt64[np.ndarray, " rows"]:
    """Hash each row of nonnegative integers to 64 bits, as MurmurHash3 ends.

    Args:
        columns: the rows, one column each.

    Returns:
        A number for each row.

    Example:
        >>> found = hashed(np.array([1, 1, 2]), np.array([2, 2, 1]))
        >>> bool(found[0] == found[1]), bool(found[0] == found[2])
        (True, False)
    """
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed += column.astype(np.uint64) + np.uint64(1)
        for factor in FACTORS:
            mixed ^= mixed >> SHIFT
            mixed *= factor
        mixed ^= mixed >> SHIFT
    return mixed
