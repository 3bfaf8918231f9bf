"""The convex problem against exact solutions, cvxpy, linear programs and any model."""

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import assert_attained, entropy, spread
from referees.conic import most_gained
from scipy.optimize import linprog

import qdtheory as qd
from qdtheory.bounds.interior_point import face_of, favoured, most_diverse

SPACE = qd.TextSpace(vocab_size=2, lengths=3)
SHARES = {n: np.asarray(qd.ngrams.ngram_matrix(SPACE, n)) / (4 - n) for n in (1, 2)}
HELD = {n: (shares > 0).astype(float) for n, shares in SHARES.items()}


def ngram_spread(q):
    return -jnp.square(SHARES[2] @ jnp.asarray(q)).sum()


def distinct(q):
    return (1 - (1 - HELD[1] @ jnp.asarray(q)) ** 3).sum()


NAMED = {
    (qd.functions.LL, qd.functions.SE): (jnp.log, entropy),
    (qd.functions.CR, qd.functions.NRR): (jnp.asarray, spread),
    (qd.functions.LL, qd.functions.NRR): (jnp.log, spread),
    (qd.functions.CR, qd.functions.SE): (jnp.asarray, entropy),
}


def reals(rng):
    """Peaked, random, nearly uniform, uniform, with zeros, a point, tied modes."""
    yield rng.dirichlet(np.full(8, 0.1))
    yield rng.dirichlet(np.ones(8))
    near = 1 + 1e-4 * rng.normal(size=8)
    yield near / near.sum()
    yield np.full(8, 1 / 8)
    zeros = rng.dirichlet(np.ones(8)) * (np.arange(8) > 1)
    yield zeros / zeros.sum()
    yield np.eye(8)[3]
    yield np.r_[0.4, 0.4, np.full(6, 0.2 / 6)]


@pytest.mark.slow
@pytest.mark.parametrize(("f", "g"), NAMED)
def test_bounds_enclose_the_exact_solution(f, g):
    pair, exact_pair = qd.ConcavePair(*NAMED[f, g]), qd.SeparablePair(f, g)
    for p in reals(np.random.default_rng(0)):
        exact = qd.quality_discrepancy(exact_pair, p)
        found = qd.quality_discrepancy(pair, p)
        # The bounds meet to 1e-11 of the scores' range, up to 100 for log.
        assert found.qdisc - 1e-12 <= exact.qdisc <= found.upper_bound + 1e-12
        assert found.upper_bound - found.qdisc <= 2e-9
        assert found.status == "lower_bound"  # V is code
        assert found.quality_range == pytest.approx(exact.quality_range, abs=1e-11)
        if exact.qdisc > 1e-9:
            assert found.dominated_in == "quality"
            assert_attained(pair, p, found.q, found.qdisc)
        else:
            assert found.dominated_in == exact.dominated_in


@pytest.mark.parametrize("seed", range(6))
def test_bounds_enclose_cvxpy_on_ngrams_and_distinct(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(8, rng.choice([0.3, 1.0, 5.0])))
    scores = rng.normal(size=8)
    for value, conic in (
        (ngram_spread, lambda q: -cp.sum_squares(SHARES[2] @ q)),
        (distinct, lambda q: cp.sum(1 - cp.power(1 - HELD[1] @ q, 3))),
    ):
        pair = qd.ConcavePair(lambda p: jnp.asarray(scores), value)
        found = qd.quality_discrepancy(pair, p)
        # Clarabel stops at a gap of 1e-8; a point mass is no part of these draws.
        assert found.qdisc == pytest.approx(most_gained(scores, p, conic), abs=2e-6)
        assert found.upper_bound - found.qdisc <= 1e-9
        assert_attained(pair, p, found.q, found.qdisc)


@given(st.integers(0, 10**6), st.sampled_from(["entropy", "distinct"]))
def test_no_model_exceeds_the_bound_of_any_price(seed, name):
    rng = np.random.default_rng(seed)
    p, scores = rng.dirichlet(np.ones(8)), rng.normal(size=8)
    diversity, by_numpy = {
        "entropy": (entropy, lambda q: -(q * np.log(q)).sum(axis=-1)),
        "distinct": (distinct, lambda q: (1 - (1 - q @ HELD[1].T) ** 3).sum(axis=-1)),
    }[name]
    at = face_of(diversity, scores).tangent(rng.dirichlet(np.full(8, 2.0)))
    real = by_numpy(p)
    bound = (scores - scores @ p + rng.exponential() * (at.ends - real)).max()
    # A bound that is too low fails where models are best: near the best text.
    models = rng.dirichlet(np.full(8, 1.0), 300)
    shares = rng.uniform(size=(300, 1))
    near_best = 0.99 * np.eye(8)[scores.argmax()] + 0.00125
    models = (1 - shares) * models + shares * near_best
    feasible = models[by_numpy(models) >= real]
    # Rounding of sums of 8 terms.
    assert ((feasible - p) @ scores <= bound + 1e-13).all()


def test_most_diverse_model_is_the_best_of_those_that_tie():
    shares, rng = SHARES[2], np.random.default_rng(3)
    face = face_of(ngram_spread, np.zeros(8))
    top = most_diverse(face)
    # Every model with uniform bigrams, of which there is one.
    assert np.abs(shares @ top.x - 1 / 4).max() <= 1e-12
    for _ in range(20):
        scores = rng.normal(size=8)
        best = linprog(-scores, A_eq=shares, b_eq=np.full(4, 1 / 4))
        q = favoured(face, top, scores)
        assert q @ scores == pytest.approx(-best.fun, abs=1e-9)  # HiGHS's tolerance
        assert np.abs(shares @ q - 1 / 4).max() <= 1e-14


def test_p_of_greatest_diversity_gains_all_that_ties_leave():
    scores = np.arange(8.0)
    pair = qd.ConcavePair(lambda p: jnp.asarray(scores), ngram_spread)
    p = np.full(8, 1 / 8)
    best = linprog(-scores, A_eq=SHARES[2], b_eq=np.full(4, 1 / 4))
    found = qd.quality_discrepancy(pair, p)
    assert found.qdisc == pytest.approx(-best.fun - 3.5, abs=1e-9)
    assert found.drate == pytest.approx(found.qdisc / (7 + best.fun), abs=1e-9)
    # The relaxation by 1e-13 moves the bound by some 1e-6.
    assert found.qdisc <= found.upper_bound <= found.qdisc + 1e-5


def test_where_all_texts_tie_only_diversity_is_gained():
    pair = qd.ConcavePair(lambda p: jnp.zeros(8), distinct)
    p = np.r_[0.3, np.full(7, 0.1)]
    found = qd.quality_discrepancy(pair, p)
    assert (found.qdisc, found.upper_bound, found.drate) == (0, 0, None)
    assert found.dominated_in == "diversity"
    assert distinct(found.q) > distinct(p)


def test_a_diversity_that_only_the_simplex_makes_concave():
    def scaled(q):  # of degree 0, so that it is convex across the simplex
        q = jnp.asarray(q)
        return spread(q / q.sum())

    p = np.random.default_rng(4).dirichlet(np.ones(8))
    found, plain = (
        qd.quality_discrepancy(qd.ConcavePair(jnp.log, value), p)
        for value in (scaled, spread)
    )
    assert found.qdisc == pytest.approx(plain.qdisc, abs=1e-10)


@pytest.mark.parametrize(
    ("scores", "diversity", "message"),
    [
        (jnp.asarray, lambda q: jnp.square(q).sum(), "must be concave"),
        (jnp.asarray, lambda q: jnp.sin(20 * q).sum(), "must be concave"),
        (jnp.asarray, lambda q: jnp.log(q[0] - 1 / 8), "finite first and second"),
        (lambda p: p[:3], spread, r"shape \(8,\), got shape \(3,\)"),
        (lambda p: p * jnp.nan, spread, "quality of P itself must be finite"),
    ],
)
def test_bad_pairs(scores, diversity, message):
    pair = qd.ConcavePair(scores, diversity)
    with pytest.raises(ValueError, match=message):
        qd.quality_discrepancy(pair, np.arange(1, 9) / 36)
