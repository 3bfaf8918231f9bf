"""Convex problems: exact solutions, linear programs, and what is not concave."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import entr
from models import assert_attained, draw, entropy, spread
from refusals import refused
from scipy.optimize import linprog

import qdtheory as qd
from qdtheory.bounds.concavity import look_for_violations
from qdtheory.bounds.interior_point import face_of, favoured, most_diverse

SPACE = qd.TextSpace(vocab_size=2, lengths=3)
SHARES = np.asarray(qd.ngrams.ngram_matrix(SPACE, 2)) / 2
HELD = (np.asarray(qd.ngrams.ngram_matrix(SPACE, 1)) > 0).astype(float)
DISTRIBUTION = np.arange(1, 9) / 36


def ngram_spread(q):
    return -jnp.square(SHARES @ jnp.asarray(q)).sum()


def distinct(q):
    return (1 - (1 - HELD @ jnp.asarray(q)) ** 3).sum()


def gained(scores, diversity, p):
    return qd.quality_discrepancy(qd.ConcavePair(scores, diversity), p)


# --- What is gained -------------------------------------------------------------------

NAMED = {
    "LL-NRR": (jnp.log, spread),
    "CR-SE": (jnp.asarray, entropy),
    "LL-SE": (jnp.log, entropy),
}
# Peaked, random, nearly uniform, uniform, with zeros, a point, tied modes.
NEAR, ZEROS = 1 + 1e-4 * np.cos(np.arange(8)), DISTRIBUTION * (np.arange(8) > 1)
REAL = [
    *(draw(0, 8, 0.1), DISTRIBUTION, NEAR / NEAR.sum(), np.full(8, 1 / 8)),
    *(ZEROS / ZEROS.sum(), np.eye(8)[3], np.r_[0.4, 0.4, np.full(6, 0.2 / 6)]),
]


@pytest.mark.parametrize("name", NAMED)
def test_bounds_enclose_the_exact_solution(name):
    for p in REAL:
        exact, found = qd.quality_discrepancy(name, p), gained(*NAMED[name], p)
        # The bounds meet to 1e-11 of the scores' range, up to 100 for log.
        assert found.qdisc - 1e-12 <= exact.qdisc <= found.upper_bound + 1e-12
        assert found.gap <= 2e-9
        assert found.status == "lower_bound"  # V is code
        assert found.quality_range == pytest.approx(exact.quality_range, abs=1e-11)
        won = exact.qdisc > 1e-9
        assert found.dominated_in == ("quality" if won else exact.dominated_in)
        if won:
            assert_attained(qd.ConcavePair(*NAMED[name]), p, found.q, found.qdisc)


def test_the_most_diverse_model_is_the_best_of_those_that_tie():
    rng, face = np.random.default_rng(3), face_of(ngram_spread, np.zeros(8))
    top = most_diverse(face)
    # Every model with uniform bigrams, of which there is one.
    assert np.abs(SHARES @ top.x - 1 / 4).max() <= 1e-12
    for scores in (*rng.normal(size=(10, 8)), np.arange(8.0)):
        best = linprog(-scores, A_eq=SHARES, b_eq=np.full(4, 1 / 4))
        q = favoured(face, top, scores)
        assert q @ scores == pytest.approx(-best.fun, abs=1e-9)  # HiGHS's tolerance
        assert np.abs(SHARES @ q - 1 / 4).max() <= 1e-14
    # A P of greatest diversity gains all that ties leave.
    found = gained(lambda p: jnp.arange(8.0), ngram_spread, np.full(8, 1 / 8))
    assert found.qdisc == pytest.approx(-best.fun - 3.5, abs=1e-9)
    assert found.drate == pytest.approx(found.qdisc / (7 + best.fun), abs=1e-9)
    # The relaxation by 1e-13 moves the bound by some 1e-6.
    assert found.qdisc <= found.upper_bound <= found.qdisc + 1e-5


def test_where_all_texts_tie_only_diversity_is_gained():
    p = np.r_[0.3, np.full(7, 0.1)]
    found = gained(lambda p: jnp.zeros(8), distinct, p)
    assert (found.qdisc, found.upper_bound, found.drate) == (0, 0, None)
    assert found.dominated_in == "diversity"
    assert distinct(found.q) > distinct(p)


def test_a_diversity_that_only_the_simplex_makes_concave_and_scores_of_minus_infinity():
    def scaled(q):  # of degree 0, so that it is convex across the simplex
        return spread(jnp.asarray(q) / q.sum())

    found, plain = (gained(jnp.log, value, DISTRIBUTION) for value in (scaled, spread))
    assert found.qdisc == pytest.approx(plain.qdisc, abs=1e-10)
    # Their slopes are infinite; the others' segments stay finite.
    p = np.array([0.5, 0.3, 0.2, 0.0])
    exact = qd.quality_discrepancy(qd.LL_SE, p)
    assert gained(jnp.log, entropy, p).qdisc == pytest.approx(exact.qdisc)


# --- What claims to be concave --------------------------------------------------------


def bump(height, centre, width):
    return lambda q: spread(q) + height * jnp.exp(-(((q[0] - centre) / width) ** 2))


def jump(q):
    """Concave inside, and greater where the second text is alone."""
    return spread(q) + 2.0 * (q[1] == 1)


def saddle(q):
    """Convex in one direction that no text's own segment shows."""
    return 3 * (q[0] - q[1]) * (q[2] - q[3]) + 0.9 * spread(q)


VIOLATING = [
    # Bumps with a curvature of twice what -q^2 has to spare.
    *(bump(6 * w**2, centre, w) for w in (1e-1, 1e-3) for centre in (1e-3, 0.3, 0.999)),
    *(jump, saddle, lambda q: jnp.floor(4 * q[1]) + spread(q)),
    *(lambda q: jnp.square(q).sum(), lambda q: jnp.sin(20 * q).sum()),
]


@pytest.mark.parametrize("diversity", VIOLATING)
def test_what_is_not_concave_is_found(diversity):
    with pytest.raises(ValueError, match="must be concave"):
        gained(jnp.asarray, diversity, np.array([0.31, 0.29, 0.21, 0.19]))


CONCAVE = {
    "flat": lambda q: 0 * q.sum(),
    "one word": lambda q: entr(q.reshape(2, 3).sum(axis=1)).sum(),
    "steep": lambda q: jnp.sqrt(q).sum(),
    "a step in 64 bits": lambda q: jnp.tanh(1e6 * q).sum(),
    "a kink": lambda q: -jnp.abs(q - 0.2).sum(),
    "logarithms": lambda q: jnp.log(q).sum(),
    "in 32 bits": lambda q: spread(q.astype("float32")),
    "of large numbers": lambda q: 1e12 * entropy(q),
}


@pytest.mark.parametrize("name", CONCAVE)
def test_what_is_concave_is_not_refused(name):
    diversity, p = CONCAVE[name], np.random.default_rng(0).dirichlet(np.ones(6))
    at = (p + 1 / 6) / 2
    slope = np.asarray(jax.grad(lambda q: diversity(q).astype(float))(at))
    heights = float(diversity(jnp.asarray(at))) + slope - slope @ at
    # 32-bit values of V miss the plane by their own rounding.
    models = np.stack([p, np.eye(6)[2]])
    assert look_for_violations(diversity, (*range(6),), at, heights, models) > 1e4


def test_the_bound_names_the_claim_unless_no_tangent_is_needed():
    for scores, needed in ((lambda p: p**2, True), (lambda p: jnp.ones(8), False)):
        found = gained(scores, spread, DISTRIBUTION)
        claim = "if V is concave, as the pair states; no violation found at"
        assert (claim in found.reason) == needed
        assert found.status == "lower_bound"


def undefined(q):
    return spread(q) + 0 * jnp.log(0.9 - q[0])


def steep(q):
    return jnp.log(q[0] - 1 / 8)


def test_bad_pairs():
    p = DISTRIBUTION
    refused(
        ("finite first and second", gained, jnp.asarray, steep, p),
        ("must be a number at every model", gained, jnp.asarray, undefined, p),
        ("shape (8,), got shape (3,)", gained, lambda p: p[:3], spread, p),
        ("P itself must be finite", gained, lambda p: p * jnp.nan, spread, p),
    )
