"""What the map claims: names for one quantity, and better in both against closer."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

import qdtheory as qd


def distributions(size=5):
    weights = st.lists(st.floats(1e-3, 1), min_size=size, max_size=size)
    return weights.map(lambda w: np.array(w) / np.sum(w))


@pytest.mark.claim("N0.1")
@given(q=distributions(), p=distributions())
def test_ll_plus_se_is_minus_kl(q, p):
    total = qd.LL_SE.quality(q, p) + qd.LL_SE.diversity(q)
    assert float(total) == pytest.approx(-entropy(q, p), abs=1e-12)


@pytest.mark.claim("N0.2")
@given(q=distributions(), p=distributions())
def test_ll_is_minus_the_reverse_cross_entropy(q, p):
    # The chain rule: cross-entropy is entropy and divergence together.
    nll = entropy(q) + entropy(q, p)
    assert float(qd.LL_SE.quality(q, p)) == pytest.approx(-nll, abs=1e-12)
    assert float(qd.cross_entropy(q, p)) == pytest.approx(nll, abs=1e-12)


@pytest.mark.claim("N0.3")
@given(q=distributions())
def test_sdi_is_the_chance_that_two_draws_differ(q):
    differ = sum(a * b for i, a in enumerate(q) for j, b in enumerate(q) if i != j)
    sdi = qd.SeparablePair(qd.LL, qd.SDI).diversity(q)
    assert float(sdi) == pytest.approx(differ, abs=1e-12)
    nrr = qd.negative_repetition_rate(q)
    assert float(nrr + 1) == pytest.approx(differ, abs=1e-12)


@pytest.mark.claim("N0.4")
@given(p=distributions(), dropped=st.integers(0, 4))
def test_forward_sees_a_dropped_text_and_reverse_does_not(p, dropped):
    q = p.copy()
    q[dropped] = 0
    q /= q.sum()
    assert qd.cross_entropy(p, q) == np.inf
    assert float(qd.cross_entropy(q, p)) == pytest.approx(
        entropy(q) + entropy(q, p), abs=1e-12
    )


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


@pytest.mark.claim("N0.6")
def test_better_in_both_is_closer_under_ll_se():
    # Every distribution in twentieths, against every other one.
    p = np.array([0.5, 0.3, 0.2])
    parts = [(i, j, 20 - i - j) for i, j in product(range(1, 19), repeat=2)]
    grid = np.array([part for part in parts if part[2] > 0]) / 20
    u, v = grid @ np.log(p), np.asarray(entropy(grid, axis=1))
    better = (u[:, None] > u + 1e-12) & (v[:, None] > v + 1e-12)
    divergence = np.asarray(entropy(grid, np.tile(p, (len(grid), 1)), axis=1))
    winner, loser = np.nonzero(better)
    assert winner.size > 1000
    assert (divergence[winner] < divergence[loser]).all()
    # And the library calls the same models better.
    library = [(qd.LL_SE.quality(q, p), qd.LL_SE.diversity(q)) for q in grid]
    np.testing.assert_allclose(library, np.stack([u, v], axis=1), atol=1e-12)
