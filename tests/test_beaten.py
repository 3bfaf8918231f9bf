"""Dominance and its filter, over all pairs of models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qdtheory as qd


@pytest.mark.parametrize(
    ("situation", "first", "second", "in_quality", "in_diversity"),
    [
        ("better in both", (2.0, 2.0), (1.0, 1.0), True, True),
        ("better quality, same diversity", (2.0, 1.0), (1.0, 1.0), True, False),
        ("same quality, better diversity", (1.0, 2.0), (1.0, 1.0), False, True),
        ("equal", (1.0, 1.0), (1.0, 1.0), False, False),
        ("traded", (2.0, 0.0), (1.0, 1.0), False, False),
        ("worse", (0.0, 0.0), (1.0, 1.0), False, False),
        ("over quality -inf", (1.0, 1.0), (-np.inf, 1.0), True, False),
        ("both -inf", (-np.inf, 2.0), (-np.inf, 1.0), False, True),
    ],
)
@pytest.mark.claim("N3.3")
def test_dominance(situation, first, second, in_quality, in_diversity):
    found = qd.dominance(*first, *second)
    assert (bool(found.in_quality), bool(found.in_diversity)) == (
        in_quality,
        in_diversity,
    ), situation
    assert bool(found.either) == (in_quality or in_diversity)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)
)
def test_pareto_filter_is_dominance_over_all_pairs(points):
    u, v = np.array(points, dtype=float).T
    v[v == 0] = -np.inf
    u[u == 0] = -np.inf
    beaten = [
        any(bool(qd.dominance(a, b, c, d).either) for a, b in zip(u, v))
        for c, d in zip(u, v)
    ]
    assert qd.pareto_filter(u, v).tolist() == [not lost for lost in beaten]
