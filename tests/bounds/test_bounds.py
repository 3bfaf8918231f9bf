"""Every result on QDisc: a gain that its model attains, below its upper bound."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from models import assert_attained, draw, exact, oracle
from refusals import refused

import qdtheory as qd
from qdtheory.bounds import cubic
from qdtheory.bounds.bounds import in_units, sealed_bounds
from qdtheory.discrepancy import _bound_of, _cubic, _relaxed
from qdtheory.forms import Separable
from qdtheory.pairs import bleu_form, form_of, pose

P, SPACE = np.array([0.4, 0.3, 0.2, 0.1]), qd.TextSpace(2, 2)
BLEU = qd.BleuPair(SPACE, 1, 2, 2)
EXACT, SURE = qd.quality_discrepancy, qd.certify
WORDS, LETTERS, EIGHT = qd.TextSpace(3, 2), qd.TextSpace(6, 1), qd.TextSpace(2, 3)
ALONE = qd.pairs.single_token_bleu_pair(1, 10)
LONG, OF_LONG = qd.TextSpace(4, 3), qd.BleuPair(qd.TextSpace(4, 3), 1, 2, 2)


def SQUARE(pair, p):
    """The relaxation of one reference, where `certify` may choose another bound."""
    return _relaxed(pose(bleu_form(pair), p), p)


def CUBE(pair, p):
    return _cubic(pose(bleu_form(pair), p), p)


REPEATED = (LONG.tokens == LONG.tokens[:, :1]).all(axis=1) / 4
# One word, one text, and the most diverse model: none can gain. Nor where U is minus
# the gradient of V: over two words and two tokens, and for a semidefinite kernel.
NOTHING = [
    *((SURE, OF_LONG, p, 1e-12) for p in (np.eye(64)[17], REPEATED)),
    *(
        (of, qd.BleuPair(qd.TextSpace(1, 2), 1, 2, 2), np.ones(1), 1e-12)
        for of in (SURE, CUBE)
    ),
    *((SURE, ALONE, p, 1e-8) for p in (np.eye(5)[2], np.full(5, 0.2), np.ones(1))),
    *((SURE, BLEU, draw(seed, 4, 1), 1e-6) for seed in range(5)),
    (SQUARE, qd.BleuPair(WORDS, 1, 1, 1), oracle(WORDS, 0, sigma=1.0), 1e-7),
]


@pytest.mark.parametrize(("of", "pair", "p", "rounding"), NOTHING)
def test_where_no_model_gains(of, pair, p, rounding):
    found = of(pair, p)
    assert 0 <= found.qdisc <= found.upper_bound <= rounding


def test_equal_scores_gain_what_p_lacks():
    # P sums to 1 but for 9e-11, which a distribution is allowed to.
    p = np.array([0.6, 0.3, 0.1]) * (1 - 9e-11)
    found = qd.certify(qd.LinearPair([1, 1, 1], "-x**2"), p)
    assert 9e-11 * (1 - 1e-6) <= found.upper_bound <= 1e-10


@pytest.mark.parametrize("size", [1e-13, 1e-12, 1e-11, 1e-10])
def test_scores_that_differ_by_little_more_than_rounding_do_not_contradict(size):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4))
    scores = 1 + size * rng.random(4)
    found = qd.certify(qd.LinearPair(scores, "-x**2"), p)
    assert 0 <= found.qdisc <= found.upper_bound <= np.ptp(scores) + 1e-14


def test_large_scores_leave_the_bound_of_a_convex_problem_above_the_gain():
    # Two texts gain what three do but for a constant in the scores.
    scores, p = np.array([3.0, 2.0, 1.0]), np.array([0.5, 0.3, 0.2])
    exact = qd.quality_discrepancy(qd.LinearPair(scores, "-x**2"), p).qdisc
    pair = qd.ConcavePair(
        lambda p: jnp.asarray(scores + 1e9), lambda q: -jnp.square(q).sum()
    )
    found = qd.quality_discrepancy(pair, p)
    assert exact <= found.upper_bound <= exact + 1e-5


def test_scores_in_units_lose_nothing():
    rng, missed = np.random.default_rng(0), 0
    for _ in range(200):
        n = int(rng.integers(2, 9))
        scores = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
        scores += rng.choice([0.0, 1e3, -1e6])
        p = rng.dirichlet(np.ones(n))
        # The sum of p is a rounding off, which a constant multiplies.
        units = in_units(scores, p)
        u, text = exact(scores), int(rng.integers(n))
        truth = u[text] - u @ exact(p)
        bound = float(units.scores[text])
        assert Fraction(units.gain(bound)) >= truth
        assert units.gain(bound) <= float(truth) + 4 * units.rounding * units.unit
        missed += Fraction(units.unit * (bound - float(units.scores @ p))) < truth
    assert missed > 40


def test_a_bound_below_the_gain_is_rounding_or_an_error():
    posed = pose(qd.CR_NRR, np.array([0.6, 0.4]))
    found = sealed_bounds(posed, posed.p, -1e-12, "luck", steps=3)
    assert (found.qdisc, found.upper_bound, found.steps) == (0.0, 0.0, 3)
    assert (found.status, found.reason) == ("certified", "Bounded by luck.")
    with pytest.raises(RuntimeError, match="more than the bound"):
        sealed_bounds(posed, posed.p, -0.01, "luck")


@pytest.mark.parametrize(
    ("of", "pair", "p", "splits"),
    [
        (SURE, qd.BleuPair(LONG, 1, 5, 5), oracle(LONG, 0, sigma=0.5), (0, 1, 4)),
        (SURE, qd.pairs.single_token_bleu_pair(2, 30), draw(1, 12, 3.0), (0, 1)),
    ],
)
def test_splits_that_run_out_leave_bounds_that_hold_the_value(of, pair, p, splits):
    narrow = of(pair, p)
    for number in splits:
        wide = of(pair, p, max_steps=number)
        assert wide.steps == min(number, narrow.steps)
        assert wide.qdisc - 1e-9 <= narrow.upper_bound
        assert wide.upper_bound >= narrow.qdisc
        assert isinstance(form_of(pair), Separable) or wide.gap > 1e-6


@pytest.mark.parametrize(
    ("pair", "method"),
    [
        (BLEU, "branch and bound"),
        (qd.KernelPair(np.diag([1.0, 2.0, 3.0, 4.0])), "the doubly nonnegative"),
        (qd.BleuPair(SPACE, 1, 2, 1), "branch and bound"),
        (qd.BleuPair(qd.TextSpace(2, (1, 2)), 1, 2, 1), "the doubly nonnegative"),
        (qd.BleuPair(qd.TextSpace(2, (1, 2)), 1, 2, 2), "the cubic relaxation"),
        (qd.SeparablePair("x", "x - x**3/3"), "the concave envelope"),
        (qd.VendiPair(np.eye(4)), "a convex problem"),
    ],
)
def test_each_form_has_its_bound(pair, method):
    assert _bound_of(form_of(pair))[1].startswith(method)


# Two routes to one problem, each closed to 1e-6. BLEU of as many tokens as the texts
# have asks if the text is the reference.
ROUTES = [
    (SURE, CUBE, qd.BleuPair(WORDS, 1, 2, 2), oracle(WORDS, 1, sigma=2.0)),
    (EXACT, CUBE, qd.BleuPair(SPACE, 2, 2, 2), oracle(SPACE, 1, sigma=2.0)),
    (EXACT, SURE, qd.BleuPair(SPACE, 2, 2, 3), P),
    (EXACT, SURE, qd.SeparablePair("LL", ALONE.g), np.array([0.5, 0.3, 0.2, 0, 0])),
    (EXACT, SURE, qd.SeparablePair("CR", ALONE.g), np.array([0.3, 0.3, 0.2, 0.2, 0])),
    *(
        (of, SQUARE, qd.BleuPair(EIGHT, order, 3, 1), oracle(EIGHT, seed, sigma=2.0))
        for of, order in ((SURE, 1), (EXACT, 3))
        for seed in range(3)
    ),
    *(
        (EXACT, SURE, qd.pairs.single_token_bleu_pair(2, k), draw(k, 6, spread))
        for k, spread in ((3, 0.5), (30, 2.0), (1000, 0.5))
    ),
    *(
        (EXACT, SURE, qd.BleuPair(LETTERS, 1, n, k), draw(n, 6, spread))
        for n, k, spread in ((1, 1, 3), (2, 2, 1), (5, 3, 0.5), (1, 10, 1), (2, 30, 3))
    ),
]


@pytest.mark.claim("N17.6")
@pytest.mark.parametrize(("one", "other", "pair", "p"), ROUTES)
def test_two_routes_to_a_problem_meet(one, other, pair, p):
    found = [of(pair, p) for of in (one, other)]
    assert found[0].status == ("exact" if one is EXACT else "certified")
    for bounds in found:
        assert isinstance(bounds, qd.Bounds)
        assert 0 <= bounds.gap == bounds.upper_bound - bounds.qdisc <= 1e-6
    assert_attained(pair, p, found[1].q, found[1].qdisc)
    # Both sides evaluate U(P) and V(P), with rounding; the local search is 1e-9 inside.
    assert found[0].qdisc <= found[1].upper_bound + 1e-12
    assert found[1].qdisc - 1e-9 <= found[0].upper_bound


# --- Bad input ----------------------------------------------------------------------

KNOTS = np.array([0.0, 1.0])
BENT, CODE = (
    qd.SeparablePair("x", g)
    for g in ("x**2 - sqrt(x)", lambda x: jnp.interp(x, KNOTS, -KNOTS))
)
TAKES = [BLEU, qd.BleuPair(SPACE, 1, 1, 1), qd.CR_NRR, qd.KernelPair(np.eye(4))]
TAKES += [qd.BleuPair(qd.TextSpace(4, 1), 2, 2, 2)]


@pytest.mark.parametrize("pair", TAKES, ids=lambda pair: getattr(pair, "name", ""))
def test_what_every_bound_asks_for(pair, as_a_user):
    with pytest.raises(ValueError, match=r"p must (have 4 entries|sum to 1)"):
        qd.certify(pair, np.full(3, 0.3))
    with pytest.raises(ValueError, match=r"found must be nonnegative"):
        qd.certify(pair, P, np.array([-0.5, 0.5, 0.5, 0.5]))
    with pytest.raises(ValueError, match=r"found must have 4 entries"):
        qd.certify(pair, P, np.full(3, 1 / 3))
    with pytest.raises(ValueError, match="tolerance must be positive, got 0"):
        qd.certify(pair, P, tolerance=0)


def test_what_one_bound_does_not_take(as_a_user):
    refused(
        ("128 texts at most, got", SURE, qd.KernelPair(np.eye(200)), draw(0, 200)),
        (
            "64 texts at most, got",
            SURE,
            qd.BleuPair(qd.TextSpace(3, 4), 2, 2, 2),
            draw(0, 81),
        ),
        ("256 texts at most, got 300", SURE, qd.CR_NRR, draw(0, 300)),
        ("concave near 0", SURE, BENT, P),
    )
    refused(
        ("there is no certificate: g is code", SURE, CODE, P),
        ("got BLEU-NSBLEU", SURE, qd.BleuPair(EIGHT, 2, 2, 3), draw(0, 8)),
        ("two Self-BLEU references; ", checked, qd.BleuPair(SPACE, 2, 2, 3), P),
        ("got CR-NRR", checked, qd.CR_NRR, P),
        error=TypeError,
    )


def checked(pair, p):
    zeros = np.zeros((4, 4, 4)), np.zeros((4, 4))
    return qd.discrepancy.cubic_bound(pair, p, cubic.CubicCertificate(0.0, *zeros, 0.0))
