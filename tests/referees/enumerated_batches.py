"""Batches of texts, listed one by one."""

from itertools import product

import numpy as np


def batches(q, size):
    """All ordered batches of so many texts drawn from q, one a row, with chances."""
    texts = np.array([*product(range(len(q)), repeat=size)])
    return texts, np.asarray(q)[texts].prod(axis=1)
