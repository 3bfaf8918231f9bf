"""Conditions of first and second order against linear programs and gradients."""

import numpy as np
import pytest

import qdtheory as qd


@pytest.mark.claim("N0.5")
def test_a_step_along_both_gradients_beats_the_real_distribution_under_ll_nrr():
    def zero_sum_unit(gradient):
        centred = gradient - gradient.mean()
        return centred / np.linalg.norm(centred)

    rng = np.random.default_rng(14)
    for size in (3, 5, 64):
        p = rng.dirichlet(np.ones(size))  # three or more distinct values
        d = zero_sum_unit(np.log(p)) + zero_sum_unit(-2 * p)
        q = p + d * min(p.min(), d @ d) / 10
        assert q.min() > 0
        assert qd.LL_NRR.quality(q, p) > qd.LL_NRR.quality(p, p)
        assert qd.LL_NRR.diversity(q) > qd.LL_NRR.diversity(p)
    # Two distinct values: the gradients are antiparallel and no step helps.
    p = np.array([0.3, 0.3, 0.2, 0.2])
    d = zero_sum_unit(np.log(p)) + zero_sum_unit(-2 * p)
    assert np.abs(d).max() <= 1e-15
