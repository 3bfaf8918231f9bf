"""Distributions from files, as text or arrays; what is wrong stands in the transcript.

See tests/first_contact.txt.
"""

from pathlib import Path

import pytest

from qdtheory.commands.inputs import read_distribution


@pytest.mark.parametrize("name", ["p.txt", "marked.txt", "quarters.npy"])
def test_files_with_a_mark_and_of_32_bits_are_read(folder, name):
    read = read_distribution(Path(name))
    assert read.dtype == float
    assert abs(read.sum() - 1) < 1e-12
