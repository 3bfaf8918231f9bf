"""Distributions from files, as text or arrays; what is wrong stands in the transcript.

See tests/first_contact.txt.
"""

from pathlib import Path

import numpy as np
import pytest

from qdtheory.commands.inputs import read_distribution


@pytest.mark.parametrize("name", ["p.txt", "marked.txt", "quarters.npy"])
def test_files_with_a_mark_and_of_32_bits_are_read(folder, name):
    read = read_distribution(Path(name))
    # What was in 32 bits stays so, to be divided by its sum where this is said.
    assert read.dtype == (np.float32 if name == "quarters.npy" else float)
    assert abs(read.sum(dtype=float) - 1) < 1e-12
