"""A pair is posed once: P is checked at the door, and every value is the pair's own."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import Tracer

import qdtheory as qd
from qdtheory import distributions
from qdtheory.pairs import pose

P = np.array([0.4, 0.3, 0.2, 0.1])
SPACE = qd.TextSpace(vocab_size=2, lengths=2)


class Mine:
    """A pair of a reader's own, unknown to JAX."""

    text_quality = staticmethod(jnp.log)
    quality = staticmethod(lambda q, p: jnp.log(p) @ q)
    diversity = staticmethod(lambda q: -jnp.square(q).sum())


PAIRS = {
    "LL-SE": qd.LL_SE,
    "BLEU of one token": qd.pairs.single_token_bleu_pair(2, 10),
    "linear": qd.LinearPair(jnp.sqrt, qd.functions.NRR),
    "BLEU-1": qd.BleuPair(SPACE, 1, 2, 3),
    "BLEU-2, quadratic": qd.BleuPair(SPACE, 2, 2, 1, smoothing="epsilon"),
    "kernel": qd.KernelPair(np.eye(4) + 0.2),
    "n-grams": qd.pairs.ngram_pair(SPACE, 1),
    "concave": qd.ConcavePair(jnp.asarray, lambda q: -jnp.square(q).sum()),
    "functions": qd.FunctionPair(lambda q, p: q @ p, lambda q: -jnp.square(q).sum()),
}
ALL = PAIRS | {"one's own": Mine()}
BOUNDED = PAIRS.keys() - {"n-grams", "linear", "concave", "functions"}


@pytest.fixture
def calls(monkeypatch):
    """The vectors that are checked, in whatever module."""
    check, found = distributions.as_distribution, []

    def spy(p, *args, **kwargs):
        if not isinstance(p, Tracer):  # a compiled function checks shapes alone
            found.append(p)
        return check(p, *args, **kwargs)

    for name, module in list(sys.modules.items()):
        if name.startswith("qdtheory") and hasattr(module, "as_distribution"):
            monkeypatch.setattr(module, "as_distribution", spy)
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_a_discrepancy_checks_p_once(name, calls):
    options = {"num_starts": 4} if name in ("BLEU-1", "n-grams") else {}
    qd.quality_discrepancy(
        PAIRS[name], P, method="certified" if name in BOUNDED else None, **options
    )
    assert len(calls) == 1


@pytest.mark.parametrize("name", ALL)
def test_a_posed_pair_has_the_values_of_the_pair(name):
    pair, posed = ALL[name], pose(ALL[name], P)
    assert posed.real_quality == pytest.approx(float(pair.quality(P, P)), abs=1e-15)
    assert posed.real_diversity == pytest.approx(float(pair.diversity(P)), abs=1e-15)
    for q in np.random.default_rng(0).dirichlet(np.ones(4), 5):
        assert posed.quality(q) == pytest.approx(float(pair.quality(q, P)), abs=1e-15)
        assert posed.diversity(q) == pytest.approx(float(pair.diversity(q)), abs=1e-15)


@pytest.mark.parametrize(
    "name", ["LL-SE", "linear", "BLEU-1", "kernel", "concave", "one's own"]
)
def test_a_gain_is_that_of_a_model_as_diverse_as_p(name):
    posed = pose(ALL[name], P)
    scores = np.asarray(ALL[name].text_quality(P))
    np.testing.assert_array_equal(posed.scores, scores)
    assert posed.spread == np.ptp(scores)
    assert posed.gain(P) == 0
    assert posed.gain(np.eye(4)[0]) == -np.inf
    uniform = np.full(4, 0.25)
    assert posed.gain(uniform) == pytest.approx((uniform - P) @ scores, abs=1e-15)
