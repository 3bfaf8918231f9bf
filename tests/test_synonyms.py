"""Names of different papers for one quantity, against SciPy and plain sums."""

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
    by_hand = sum(a * np.log(b) for a, b in zip(q, p))
    assert float(qd.LL_SE.quality(q, p)) == pytest.approx(by_hand, abs=1e-12)
    assert float(qd.cross_entropy(q, p)) == pytest.approx(-by_hand, abs=1e-12)


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
