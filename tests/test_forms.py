"""The form of a pair is told once, and what it gives is the pair's own."""

import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.forms import Bleu, Concave, Form, Kernel, Pooled, Separable, Vendi
from qdtheory.pairs import form_of, pose

TEXTS = qd.TextSpace(2, 2)
FORMS = [
    (qd.LL_SE, Separable),
    (qd.LinearPair([1.0, 2.0], "SE"), Separable),
    (qd.BleuPair(TEXTS, 2, 3, 4), Separable),  # of whole texts
    (qd.BleuPair(TEXTS, 1, 3, 4), Bleu),
    (qd.BleuPair(qd.TextSpace(2, (1, 2)), 2, 3, 4), Bleu),
    (qd.BleuPair(TEXTS, 2, 3, 4, smoothing="epsilon"), Bleu),
    (qd.KernelPair(np.eye(4)), Kernel),
    (qd.pairs.ngram_pair(TEXTS, 1), Pooled),
    (qd.ConcavePair(jnp.log, lambda q: -(q @ q)), Concave),
    (qd.VendiPair(np.eye(4)), Vendi),
    (qd.FunctionPair(lambda q, p: q @ p, lambda q: -(q @ q)), Form),
]


@pytest.mark.parametrize(("pair", "form"), FORMS, ids=lambda x: getattr(x, "name", ""))
def test_every_pair_has_one_form(pair, form):
    told = form_of(pair)
    assert type(told) is form
    assert told.pair is pair
    assert (told.g is not None) == (form is Separable)


def test_bleu_of_whole_texts_is_a_sum_over_texts():
    pair = qd.BleuPair(TEXTS, 2, 3, 4)
    form = form_of(pair)
    for q, p in np.random.default_rng(0).dirichlet(np.ones(4), (5, 2)):
        np.testing.assert_allclose(form.scores(p), pair.text_quality(p), atol=1e-14)
        np.testing.assert_allclose(form.diversity(q), pair.diversity(q), atol=1e-14)


def test_scores_are_finite_or_minus_infinity_and_p_has_a_quality():
    p = np.array([0.7, 0.3, 0.0])
    assert pose(qd.LL_SE, p).scores.tolist() == [*np.log(p[:2]).tolist(), -np.inf]
    for scores in ([1.0, -np.inf, 0.0], [1.0, 0.0, np.nan], [1.0, 0.0, np.inf]):
        pair = qd.LinearPair(lambda p, s=scores: jnp.array(s), qd.functions.SE)
        with pytest.raises(ValueError, match="quality of P itself must be finite"):
            _ = pose(pair, p).scores
