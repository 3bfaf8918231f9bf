"""The form of a pair, and the scores that a solver may rely on."""

import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.pairs.forms import separable_form
from qdtheory.pairs.posed import pose


def test_bleu_of_whole_texts_is_a_sum_over_texts_and_no_other_bleu_is():
    pair = qd.BleuPair(qd.TextSpace(2, 2), 2, 3, 4)
    same = separable_form(pair)
    for q, p in np.random.default_rng(0).dirichlet(np.ones(4), (5, 2)):
        np.testing.assert_allclose(same.quality(q, p), pair.quality(q, p), atol=1e-14)
        np.testing.assert_allclose(same.diversity(q), pair.diversity(q), atol=1e-14)
    for other in (
        qd.BleuPair(qd.TextSpace(2, 2), 1, 3, 4),
        qd.BleuPair(qd.TextSpace(2, (1, 2)), 2, 3, 4),
        qd.BleuPair(qd.TextSpace(2, 2), 2, 3, 4, smoothing="epsilon"),
        qd.KernelPair(np.eye(4)),
    ):
        assert separable_form(other) is None


def test_scores_are_finite_or_minus_infinity_and_p_has_a_quality():
    p = np.array([0.7, 0.3, 0.0])
    assert pose(qd.LL_SE, p).scores.tolist() == [*np.log(p[:2]).tolist(), -np.inf]
    for scores in ([1.0, -np.inf, 0.0], [1.0, 0.0, np.nan], [1.0, 0.0, np.inf]):
        pair = qd.LinearPair(lambda p, s=scores: jnp.array(s), qd.formulas.SE)
        with pytest.raises(ValueError, match="quality of P itself must be finite"):
            _ = pose(pair, p).scores


def test_a_model_that_is_less_diverse_than_p_gains_nothing():
    posed = pose(qd.KernelPair(np.eye(3)), np.array([0.5, 0.3, 0.2]))
    assert posed.gain(posed.p) == 0
    assert posed.gain(np.eye(3)[0]) == -np.inf
    as_diverse = np.array([0.2, 0.5, 0.3])
    assert posed.gain(as_diverse) == pytest.approx(as_diverse @ posed.p - 0.38)
