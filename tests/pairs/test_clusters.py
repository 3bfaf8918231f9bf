"""Pairs on classes of texts: decided on the classes, blind within them."""

import numpy as np
import pytest

import qdtheory as qd

CLASSES = [0, 1, 0, 2, 2, 3, 0]


def models(seed, number):
    return np.random.default_rng(seed).dirichlet(np.ones(len(CLASSES)), number)


def pooled(q):
    return np.bincount(CLASSES, q)


@pytest.mark.claim("N25.16")
@pytest.mark.parametrize("pair", [qd.LL_SE, qd.CR_NRR, qd.LL_NRR])
def test_values_are_those_of_the_classes(pair):
    on_classes = qd.pairs.ClusterPair(CLASSES, pair)
    q, p = models(0, 2)
    for found, expected in (
        (on_classes.quality(q, p), pair.quality(pooled(q), pooled(p))),
        (on_classes.quality(q, p), q @ on_classes.text_quality(p)),
        (on_classes.diversity(q), pair.diversity(pooled(q))),
    ):
        assert float(found) == pytest.approx(float(expected), abs=1e-14)


@pytest.mark.claim("N25.16")
def test_the_verdict_is_that_of_the_classes():
    assert qd.check_compatibility(qd.pairs.ClusterPair(CLASSES)).compatible is True
    pair = qd.pairs.ClusterPair(CLASSES, qd.LL_NRR)
    for given in (None, models(1, 1)[0]):
        verdict = qd.check_compatibility(pair, given)
        assert verdict.compatible is False
        p, q = verdict.witness.p, verdict.witness.q
        if given is not None:
            np.testing.assert_allclose(p, given, atol=1e-15)
        assert float(pair.quality(q, p)) > float(pair.quality(p, p))
        assert float(pair.diversity(q)) > float(pair.diversity(p))
    with pytest.raises(ValueError, match="the classes are of 7 texts, got 3"):
        qd.check_compatibility(pair, num_texts=3)


@pytest.mark.claim("N25.17")
def test_mass_moved_within_a_class_changes_nothing():
    pair = qd.pairs.ClusterPair(CLASSES)
    (p,) = models(2, 1)
    q = p.copy()
    q[0], q[2] = p[0] + p[2], 0
    assert float(pair.quality(q, p)) == pytest.approx(float(pair.quality(p, p)))
    assert float(pair.diversity(q)) == pytest.approx(float(pair.diversity(p)))
    assert float(qd.metrics.total_variation(q, p)) == pytest.approx(p[2])


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("classes", [[0, 2], [-1, 0], [0.5], [], [[0], [1]]])
def test_bad_classes_are_refused(classes):
    with pytest.raises(ValueError, match="classes must be one whole number a text"):
        qd.pairs.ClusterPair(classes)
