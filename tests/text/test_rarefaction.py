"""Rarefaction against binomials in whole numbers, and without JAX."""

import subprocess
import sys
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from qdtheory.text.rarefaction import expected_distinct


@pytest.mark.parametrize("k", [1, 2, 10, 50, 1000])
def test_it_is_that_of_the_binomials(k):
    counts, times = np.array([1, 2, 9, 49, 300, 2000]), np.array([700, 90, 20, 3, 2, 1])
    n = int(counts @ times)
    unseen = [Fraction(comb(n - c, k), comb(n, k)) for c in counts.tolist()]
    expected = sum(t * (1 - u) for t, u in zip(times.tolist(), unseen))
    assert expected_distinct(counts, times, n, k) == pytest.approx(
        float(expected), rel=1e-13
    )


def test_all_draws_see_every_class_and_one_draw_one():
    counts, times = np.array([1, 4]), np.array([3, 2])
    assert expected_distinct(counts, times, 11, 11) == 5
    assert expected_distinct(counts, times, 11, 1) == pytest.approx(1, rel=1e-15)


def test_an_evaluation_does_without_jax():
    code = (
        "import sys; import qdtheory.text.evaluation, qdtheory.text.part_files; "
        "print('jax' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "False\n", run.stderr
