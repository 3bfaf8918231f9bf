"""Bounds that hold whatever their multipliers are worth, against many models."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from models import oracle

import qdtheory as qd
from qdtheory import discrepancy
from qdtheory.bounds.concave_convex import inflection_point
from qdtheory.bounds.duality import (
    accurate_values,
    concave_convex_bound,
    tangent_bound,
)
from qdtheory.formulas.expressions import Expression
from qdtheory.functions import as_function

CONCAVE = ["-x**2", "-x*log(x)", "x - x**3", "2*sqrt(x)", "log(x + 0.1)"]
CONCAVE_CONVEX = ["-2*x**2 + x**3", "-x*log(x) + 1.5*x**2", "-x*(1 - (1 - x)**20)"]


def models(rng, n, size):
    return rng.dirichlet(np.full(n, rng.choice([0.3, 1, 3])), size)


@pytest.mark.parametrize("text", CONCAVE)
def test_no_model_exceeds_a_bound_by_tangents(text):
    g, rng = Expression(text), np.random.default_rng(1)
    for n in (2, 3, 6):
        q = np.maximum(models(rng, n, 50_000), 1e-300)
        scores, price = rng.normal(size=n), 10 ** rng.uniform(-3, 3)
        # Any points at all; those of no model too.
        for points in (rng.uniform(size=n), rng.dirichlet(np.ones(n)), np.zeros(n)):
            bound = tangent_bound(as_function(g, "g"), scores, price, points)
            assert bound >= (q @ scores + price * g.value(q).sum(axis=1)).max()


@pytest.mark.parametrize("text", CONCAVE)
def test_bound_by_tangents_is_rounded_up_and_tight(text):
    g, rng = Expression(text), np.random.default_rng(2)
    scores = rng.normal(size=5)
    pair = qd.LinearPair(lambda p: jnp.asarray(scores), g)
    for price in (0.01, 1.0, 100.0):
        q = np.asarray(qd.pareto_optimum(pair, np.full(5, 0.2), -1 / price).q)
        bound = tangent_bound(as_function(g, "g"), scores, price, q)
        with mpmath.workdps(50):
            # The same maximum by its definition: no more, and less by rounding alone.
            value = sum(
                mpmath.mpf(u) * mpmath.mpf(x) + price * exactly(text, x)
                for u, x in zip(scores.tolist(), (q / q.sum()).tolist(), strict=True)
            )
            slack = float(bound - value)
        assert 0 <= slack <= 1e-13 * max(1, price)


def exactly(text, x):
    """A formula at 50 digits, read as Python: its own arithmetic, not the library's."""
    names = {"x": mpmath.mpf(x), "log": mpmath.log, "sqrt": mpmath.sqrt}
    if x == 0:
        names["x"] = mpmath.mpf(10) ** -400
    return eval(text, names)


@pytest.mark.slow
@pytest.mark.parametrize("text", CONCAVE_CONVEX)
def test_no_model_exceeds_a_bound_by_boxes(text):
    g, rng = Expression(text), np.random.default_rng(3)
    c = inflection_point(as_function(g, "g"))
    for n in (2, 4):
        q = np.maximum(models(rng, n, 200_000), 1e-300)
        values = g.value(q).sum(axis=1)
        for _ in range(3):
            scores, p = rng.normal(size=n), rng.dirichlet(np.ones(n))
            least = float(g.value(p).sum())
            best = (q[values >= least] @ scores).max(initial=float(p @ scores))
            enough = best + 0.03 * np.ptp(scores)
            bound = concave_convex_bound(as_function(g, "g"), c, scores, least, enough)
            assert bound >= best
            # A fifth of a million models miss the best one by less than this.
            assert bound <= best + 0.1 * np.ptp(scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "p"),
    [
        (qd.LL_NRR, [0.4, 0.3, 0.2, 0.1]),
        (qd.CR_SE, [0.7, 0.2, 0.1]),
        (qd.pairs.single_token_bleu_pair(2, 10), [0.4, 0.3, 0.2, 0.1]),
    ],
    ids=["LL-NRR", "CR-SE", "BLEU-1"],
)
@pytest.mark.parametrize("share", [1e-1, 1e-3, 1e-5])
def test_a_model_that_is_not_the_best_is_not_called_exact(pair, p, share, monkeypatch):
    p = np.array(p)
    right = qd.quality_discrepancy(pair, p)
    assert right.status == "exact"
    found = discrepancy._best_model

    def worse(*args):
        q, _, dominated_in, price = found(*args)
        q = (1 - share) * q + share * p
        return q, float((q - p) @ args[0].scores), dominated_in, price

    monkeypatch.setattr(discrepancy, "_best_model", worse)
    wrong = qd.quality_discrepancy(pair, p)
    assert wrong.status == "lower_bound"
    assert wrong.qdisc < right.qdisc <= wrong.upper_bound


def test_an_impossible_text_counts_as_the_limit_at_0():
    value, _, error = accurate_values(qd.Tsallis(0.01), np.array([0.0, 0.3]))
    wanted = [0, (0.3**0.01 - 0.3) / 0.99]
    assert np.abs(value - wanted).max() <= 4 * error


def test_a_bound_below_what_a_model_gains_seals_nothing(monkeypatch):
    monkeypatch.setattr(discrepancy, "_upper_bound", lambda *args: -1.0)
    found = qd.quality_discrepancy(qd.LL_NRR, np.array([0.6, 0.3, 0.1]))
    assert (found.status, found.upper_bound) == ("lower_bound", np.inf)
    assert "more than the bound" in found.reason


@pytest.mark.parametrize("num_references", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_boxes_far_from_the_usual_price_are_settled(num_references):
    # The prices of these boxes lie between 1 and 1 / 50 of the one to expect.
    p = oracle(qd.TextSpace(vocab_size=4, lengths=3), 0, 1.0, 32)
    pair = qd.pairs.single_token_bleu_pair(num_references, 10)
    found = qd.quality_discrepancy(pair, p)
    assert found.status == "exact"
    bounds = qd.certify(pair, p, found.q)
    assert bounds.qdisc <= found.upper_bound
    assert found.qdisc <= bounds.upper_bound
    assert bounds.upper_bound - found.qdisc <= 1e-5 * np.ptp(pair.f(p))
