"""Divergences: against SciPy, dit and exact arithmetic, and what all of them keep."""

from decimal import Decimal, localcontext
from itertools import pairwise

import dit
import dit.divergences as theirs
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.metrics import frontier_integral, mauve
from models import (
    assert_compiles_and_batches,
    assert_slope,
    distributions,
    draw,
    random_distribution,
)
from refusals import refused
from scipy.spatial import distance
from scipy.special import rel_entr
from scipy.stats import binom, entropy
from scripts import column_of

import qdtheory as qd
from qdtheory.divergences import (
    bhattacharyya_distance,
    hellinger_distance,
    jeffreys_divergence,
    renyi_divergence,
    total_variation,
)

EPS = np.finfo(float).eps
LOG2 = np.log(2)


def renyi(order):
    def divergence(a, b):
        return renyi_divergence(a, b, order)

    divergence.__name__ = f"renyi_{order}"
    return divergence


def lost_mauve(a, b):
    return 1 - mauve(a, b)


RENYI = [renyi(0.5), renyi(3)]
SYMMETRIC = [
    RENYI[0],
    jeffreys_divergence,
    qd.jensen_shannon_divergence,
    total_variation,
    hellinger_distance,
    bhattacharyya_distance,
    frontier_integral,
    lost_mauve,
]
DIVERGENCES = [qd.kl_divergence, RENYI[1], *SYMMETRIC]
by_name = pytest.mark.parametrize("divergence", DIVERGENCES, ids=lambda d: d.__name__)


@st.composite
def pairs(draw, zeros=(0.0, 0.4)):
    size = draw(st.sampled_from([1, 2, 5, 64]))
    seeds, zeros = st.integers(0, 2**16), st.sampled_from(zeros)
    return tuple(random_distribution(size, draw(seeds), draw(zeros)) for _ in "ab")


# -- values of others ----------------------------------------------------------------


@given(pairs())
def test_agree_with_scipy(ab):
    a, b = ab
    expected = {
        qd.kl_divergence: rel_entr(a, b).sum(),
        qd.cross_entropy: entropy(a) + entropy(a, b),
        jeffreys_divergence: entropy(a, b) + entropy(b, a),
        qd.jensen_shannon_divergence: distance.jensenshannon(a, b) ** 2,
        total_variation: distance.cityblock(a, b) / 2,
        hellinger_distance: distance.euclidean(*np.sqrt(ab)) / 2**0.5,
    }
    for divergence, value in expected.items():
        # Sums of at most 64 terms of both signs, none above about 10.
        assert float(divergence(a, b)) == pytest.approx(value, rel=1e-12, abs=1e-13)
    # The squared distance loses the digits of close distributions' overlap.
    overlap = 1 - distance.euclidean(*np.sqrt(ab)) ** 2 / 2
    found = float(np.exp(-bhattacharyya_distance(a, b)))
    assert found == pytest.approx(overlap, abs=1e-13)


@settings(max_examples=15)
@given(pairs(zeros=(0.0,)), st.sampled_from([0.3, 0.5, 1, 2, 7.5]))
def test_renyi_agrees_with_dit(ab, order):
    # Without zeros: dit leaves a text out where a power is 0 times infinity.
    texts = [str(i) for i in range(ab[0].size)]
    a, b = (dit.Distribution(texts, x) for x in ab)
    expected = theirs.renyi_divergence(a, b, order) * LOG2
    found = float(renyi_divergence(*ab, order))
    # dit's sum is near 1 for close distributions.
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)


# -- digits of close distributions ---------------------------------------------------

# Multiples of 2^-52 with sum 1, so that 64 bits hold both distributions exactly.
UNITS = 2**52


@st.composite
def close_pairs(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    size = draw(st.sampled_from([2, 5, 64]))
    a = rng.integers(UNITS // 4 // size, UNITS // 2 // size, size=size)
    step = 2 ** draw(st.sampled_from([0, 10, 20, 30]))
    moved = rng.integers(-step, step + 1, size=size)
    moved[0] += step
    for move in (a, moved):
        move[-1] += UNITS * (move is a) - move.sum()
    assert (a + moved > 0).all()
    return a / UNITS, (a + moved) / UNITS


def in_50_digits(a, b) -> dict:
    """The divergences of two vectors, from exact decimals."""
    with localcontext() as context:
        context.prec = 50
        a, b = ([Decimal(x) for x in vector.tolist()] for vector in (a, b))

        def kl(a, b):
            return sum(x * (x / y).ln() for x, y in zip(a, b, strict=True))

        m = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
        overlap = sum((x * y).sqrt() for x, y in zip(a, b, strict=True))
        exact = {
            qd.kl_divergence: kl(a, b),
            qd.jensen_shannon_divergence: (kl(a, m) + kl(b, m)) / 2,
            jeffreys_divergence: kl(a, b) + kl(b, a),
            RENYI[0]: -2 * overlap.ln(),
            RENYI[1]: sum(x**3 / y**2 for x, y in zip(a, b, strict=True)).ln() / 2,
            hellinger_distance: (1 - overlap).sqrt(),
            bhattacharyya_distance: -overlap.ln(),
            frontier_integral: sum(
                (x + y) / 2 - x * y * (x / y).ln() / (x - y)
                for x, y in zip(a, b, strict=True)
                if x != y
            ),
        }
        return {divergence: float(value) for divergence, value in exact.items()}


@given(close_pairs())
def test_close_distributions_keep_their_digits(ab):
    for divergence, value in in_50_digits(*ab).items():
        rel = 1e-12 if divergence is frontier_integral else 1e-9
        assert float(divergence(*ab)) == pytest.approx(value, rel=rel), divergence


@pytest.mark.claim("N1.18")
def test_a_million_close_texts_keep_their_digits():
    # b = a (1 + e s) with signs s that cancel: KL = -sum a log(1 + e s), in exact form.
    size, e = 10**6, 1e-7
    signs = np.where(np.arange(size) % 2, 1.0, -1.0)
    a = np.full(size, 1 / size)
    with localcontext() as context:
        context.prec = 50
        exact = float(-(1 - Decimal(e) ** 2).ln() / 2)
    found = float(qd.kl_divergence(a, a * (1 + e * signs)))
    assert found == pytest.approx(exact, rel=1e-8)  # 1 + e rounds by 1e-9 of e


# -- named edge cases ----------------------------------------------------------------


A, B, C = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75]), np.full(4, 0.25)
FAR = np.array([0.5, 0.5]), np.array([1e-300, 1.0])


@pytest.mark.parametrize(
    ("divergence", "a", "b", "value"),
    [
        *((d, A, B, np.inf) for d in (qd.kl_divergence, qd.cross_entropy, *RENYI)),
        *((d, A, B, np.inf) for d in (jeffreys_divergence, bhattacharyya_distance)),
        *((d, A, B, 1) for d in (total_variation, hellinger_distance)),
        (qd.jensen_shannon_divergence, A, B, LOG2),
        (frontier_integral, A, B, 1),
        # Zeros of the first cost nothing, those of the second below order 1.
        *((d, A, C, LOG2) for d in (qd.kl_divergence, *RENYI)),
        (qd.cross_entropy, A, C, 2 * LOG2),
        *((d, C, A, np.inf) for d in (qd.kl_divergence, qd.cross_entropy, RENYI[1])),
        *((d, *x, np.inf) for d in (jeffreys_divergence,) for x in ((A, C), (C, A))),
        (RENYI[0], C, A, LOG2),
        # a^r b^(1-r) is about 10^2700 here; its logarithm is not.
        (renyi(10), *FAR, (10 * np.log(0.5) - 9 * np.log(1e-300)) / 9),
    ],
)
def test_values_with_zeros(divergence, a, b, value):
    assert float(divergence(a, b)) == pytest.approx(value, rel=8 * EPS)


def test_bhattacharyya_on_nearly_disjoint_supports():
    for share in (1e-24, 1e-6, 0.3):  # of b mixed into a, exactly the square overlap
        found = float(bhattacharyya_distance((1 - share) * A + share * B, B))
        assert found == pytest.approx(-np.log(share) / 2, rel=1e-10)


def test_renyi_refuses_an_order_out_of_range():
    one = np.ones(1)
    for order in (0, -1, np.inf, np.nan):
        words = "order must be positive and finite"
        refused((words, renyi_divergence, one, one, order))


# -- inequalities --------------------------------------------------------------------

SLACK = 1e-14  # rounding of sums of at most 64 terms, none above 1


@given(pairs(), st.integers(0, 2**16))
def test_positive_unless_equal_symmetric_and_less_where_texts_are_merged(ab, seed):
    # Two groups, so that hypothesis compiles one shape.
    group = np.random.default_rng(seed).integers(2, size=ab[0].size)
    merged = [np.bincount(group, weights=x, minlength=2) for x in ab]
    for divergence in DIVERGENCES:
        value = float(divergence(*ab))
        assert divergence(ab[0], ab[0]) == 0
        assert (value > 0) == (not np.array_equal(*ab)), divergence
        assert float(divergence(*merged)) <= value + SLACK, divergence
        if divergence in SYMMETRIC:
            assert value == pytest.approx(float(divergence(*ab[::-1])), 1e-12, SLACK)


@given(pairs())
def test_inequalities_between_them(ab):
    kl, js, tv, h, b, cross = (
        float(divergence(*ab))
        for divergence in (
            qd.kl_divergence,
            qd.jensen_shannon_divergence,
            total_variation,
            hellinger_distance,
            bhattacharyya_distance,
            qd.cross_entropy,
        )
    )
    bounds = {
        "Gibbs": (float(qd.entropy(ab[0])), cross),
        "Pinsker": (2 * tv**2, kl),
        "Bretagnolle and Huber": (tv, np.sqrt(-np.expm1(-kl))),
        "Lin": (js, tv * LOG2),
        "Le Cam, from below": (h**2, tv),
        "Le Cam, from above": (tv, h * np.sqrt(2 - h**2)),
        "Jensen": (b, kl / 2),
    }
    for name, (lower, upper) in bounds.items():
        assert lower <= upper + SLACK, name
    assert kl >= 0
    assert tv <= 1 + SLACK


@given(pairs())
def test_renyi_grows_with_its_order(ab):
    values = [float(renyi_divergence(*ab, r)) for r in (0.2, 0.5, 1, 1.5, 3, 20)]
    for lower, higher in pairwise(values):
        assert lower <= higher * (1 + 1e-12) + SLACK
    bhattacharyya = float(bhattacharyya_distance(*ab))
    assert values[1] == pytest.approx(2 * bhattacharyya, rel=1e-12, abs=SLACK)


# -- under JAX's transformations -----------------------------------------------------


@by_name
def test_compiled_in_batches_and_differentiated(divergence):
    a = np.stack([random_distribution(5, seed, 0.4) for seed in range(4)])
    b = np.stack([random_distribution(5, seed, 0.4) for seed in range(4, 8)])
    assert_compiles_and_batches(divergence, a, b)
    a, b, c = (random_distribution(5, s, 0.0) / 2 + 0.1 for s in (1, 2, 3))
    assert_slope(lambda x: divergence(x, b), a, c - a)
    assert_slope(lambda x: divergence(b, x), a, c - a)


@by_name
def test_gradients_vanish_at_equal_distributions(divergence):
    # Along directions of sum zero; where the derivative jumps, its middle is taken.
    p, towards = np.array([0.5, 0.3, 0.2, 0.0]), np.array([1.0, -2.0, 1.0, 0.0])
    for slopes in jax.grad(divergence, (0, 1))(p, p):
        np.testing.assert_allclose(slopes @ towards, 0, atol=1e-13)


@pytest.mark.parametrize("divergence", [*DIVERGENCES, qd.cross_entropy])
def test_gradients_at_zeros_are_finite(divergence):
    a, both = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0])
    for b in (both, np.array([0.25, 0.25, 0.5])):
        for slopes in jax.grad(divergence, (0, 1))(a, b):
            assert np.isfinite(slopes).all()


# -- which divergences are sums ----------------------------------------------------


def interior(rng, size, count):
    return 0.9 * rng.dirichlet(np.ones(size), count) + 0.1 / size


SUMS = qd.kl_divergence, qd.cnd
F_DIVERGENCES = (
    qd.kl_divergence,
    qd.jensen_shannon_divergence,
    total_variation,
    frontier_integral,
)


@pytest.mark.claim("N16.21")
@pytest.mark.parametrize("d", [*SUMS, total_variation, frontier_integral])
def test_three_points_of_a_sum_differ_by_a_linear_term(d):
    """The three-point law D(a; p) + D(p; r) - D(a; r) is linear in a, or is not."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for a, b, p, r in interior(rng, 6, (10, 4)):
        at = [float(d(x, p) - d(x, r)) for x in (a, b, 0.3 * a + 0.7 * b)]
        worst = max(worst, abs(at[2] - 0.3 * at[0] - 0.7 * at[1]))
    assert (worst <= 1e-13) == (d in SUMS)
    assert worst <= 1e-13 or worst >= 1e-3


@pytest.mark.claim("N16.22")
@pytest.mark.parametrize("d", [*F_DIVERGENCES, qd.cnd])
def test_splitting_a_text_changes_no_f_divergence(d):
    rng = np.random.default_rng(4)
    changes = []
    for q, p in interior(rng, 5, (10, 2)):
        split = [np.append(x, 0.3 * x[-1]) - 0.3 * x[-1] * np.eye(6)[4] for x in (q, p)]
        changes.append(abs(float(d(*split) - d(q, p))))
    assert (max(changes) <= 1e-14) == (d in F_DIVERGENCES)


@pytest.mark.claim("N16.23")
@pytest.mark.parametrize("d", F_DIVERGENCES)
def test_of_f_divergences_only_total_variation_is_in_proportion(d):
    rng = np.random.default_rng(5)
    for q, p in interior(rng, 5, (5, 2)):
        half, all_of_it = float(d((q + p) / 2, p)), float(d(q, p))
        proportional = abs(2 * half - all_of_it) <= 1e-14
        assert proportional == (d is total_variation)


@pytest.mark.claim("N16.24")
def test_merging_raises_no_f_divergence_and_the_squared_distance_by_4_thirds():
    rng = np.random.default_rng(6)
    ratios = []
    for q, p in interior(rng, 3, (50, 2)):
        merged = [np.array([x[0] + x[1], x[2]]) for x in (q, p)]
        for d in F_DIVERGENCES:
            assert float(d(*merged)) <= float(d(q, p)) + 1e-15
        ratios.append(float(qd.cnd(*merged) / qd.cnd(q, p)))
    assert 1 < max(ratios) <= 4 / 3 + 1e-12
    a, b = np.array([0.25, 0.25, 0.5]), np.array([0.05, 0.05, 0.9])
    merged = [np.array([x[0] + x[1], x[2]]) for x in (a, b)]
    assert float(qd.cnd(*merged) / qd.cnd(a, b)) == pytest.approx(4 / 3)


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


# -- quality beside them -------------------------------------------------------------


@pytest.mark.claim("N13.3")
def test_bhattacharyya_estimates_at_the_published_distances():
    rng = np.random.default_rng(1)
    distances = column_of("montahaei2019", "4", "Bhattacharyya")
    assert sorted(distances.values()) == [7.105, 8.503, 10.076, 12.127]
    for b in distances.values():
        a = (1 + np.sqrt(1 - np.exp(-b / 10))) / 2
        k = np.arange(21)
        laws = np.stack([binom.pmf(k, 20, x) for x in (a, 1 - a)])
        assert -np.log(np.sqrt(laws[0] * laws[1]).sum()) == pytest.approx(b, rel=1e-9)
        # Samples as histograms of the number of first tokens.
        first, second = (rng.multinomial(25_000, law, 400) / 25_000 for law in laws)
        root = np.sqrt(laws[1] / laws[0])
        found = -(np.log(first @ root) + np.log(second @ (1 / root))) / 2
        assert 0.1 < found.mean() - b < 2


@pytest.mark.claim("N13.12")
@pytest.mark.parametrize("seed", range(20))
def test_below_the_entropy_of_the_scorer_means_less_entropy(seed):
    p = draw(seed, 8, 2.0)
    q = draw(seed + 100, 8, 2.0) * p**2
    q /= q.sum()
    reverse, own, real = -q @ np.log(p), -q @ np.log(q), -p @ np.log(p)
    assert own <= reverse + 1e-14
    assert not (reverse < real <= own)


@pytest.mark.claim("N13.15")
def test_oracle_nll_and_kl_disagree():
    p = draw(1, 8, 2.0)
    q = qd.temper(p, 2.0)
    by_hand = sum(a * np.log(a / b) - a * np.log(a) for a, b in zip(q, p, strict=True))
    assert float(qd.cross_entropy(q, p)) == pytest.approx(float(by_hand), rel=1e-13)
    assert qd.cross_entropy(q, p) < qd.cross_entropy(p, p)
    assert qd.kl_divergence(q, p) > qd.kl_divergence(p, p)


@pytest.mark.claim("N13.16")
@pytest.mark.parametrize("eps", [1e-9, 0.1, 0.9])
def test_a_dropped_text_in_closed_form(eps):
    p = np.array([eps, (1 - eps) / 4, (1 - eps) * 3 / 4])
    q = np.array([0, 1 / 4, 3 / 4])
    s = np.log1p(-eps)
    for found, value in (
        (total_variation(q, p), eps),
        (hellinger_distance(q, p) ** 2, -np.expm1(s / 2)),
        (bhattacharyya_distance(q, p), -s / 2),
        (qd.kl_divergence(q, p), -s),
        (renyi_divergence(q, p, 3), -s),
        (renyi_divergence(p, q, 0.5), -s),
    ):
        # 1 - eps has a rounding error of 1e-16.
        assert float(found) == pytest.approx(value, rel=1e-12, abs=1e-15)
    integral = 1 + (1 - eps) / eps * s
    assert float(frontier_integral(q, p)) == pytest.approx(integral, abs=1e-7)
    assert qd.cross_entropy(p, q) == jeffreys_divergence(p, q) == np.inf
