"""What every seal of a bound must not depend on: units, constants, the texts' order."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import entr
from models import oracle, searched_in_vain

import qdtheory as qd
from qdtheory.bounds.seal import seal
from qdtheory.pairs import pose

UNITS = [(1.0, 1.0), (1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e6, 1e-6)]


def sealed(pair, p):
    if isinstance(pair, qd.ConcavePair):
        return qd.quality_discrepancy(pair, p)
    return qd.certify(pair, p, searched_in_vain(pair, p))


def assert_alike(found, other, unit, scale, order=None):
    """Two results, the second in another unit or order: a part of the bar apart."""
    assert other.status == found.status
    # Bounds that are not exact stop somewhere within the tolerance of 1e-6.
    bar = 1e-9 if found.status == "exact" else 1e-6
    assert other.qdisc / unit == pytest.approx(found.qdisc, abs=bar / 100 * scale)
    assert other.dominated_in == found.dominated_in
    upper = pytest.approx(found.upper_bound, abs=2 * bar * scale)
    assert other.upper_bound / unit == upper
    if order is not None:
        assert np.abs(np.asarray(other.q) - np.asarray(found.q)[order]).max() <= 1e-6


# Both have a negative eigenvalue on zero-sum vectors; the second leaves a gap.
KERNELS = {
    "certified": np.array([[1, 0.1, 0.8], [0.1, 0.5, 0.9], [0.8, 0.9, 0.6]]),
    "lower_bound": np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]]),
}


@pytest.mark.parametrize("status", KERNELS)
def test_kernels(status):
    kernel, p = KERNELS[status], np.array([0.3, 0.3, 0.4])
    found = sealed(qd.KernelPair(kernel), p)
    assert found.status == status
    assert found.qdisc > 1e-3
    scale = float(np.ptp(kernel @ p))
    for unit in (1e-6, 1e-3, 1e6):
        other = sealed(qd.KernelPair(unit * kernel), p)
        assert_alike(found, other, unit, scale)
    for constant in (-5.0, 1e3):
        other = sealed(qd.KernelPair(kernel + constant), p)
        assert_alike(found, other, 1.0, scale)
    order = np.array([2, 0, 1])
    other = sealed(qd.KernelPair(kernel[order][:, order]), p[order])
    assert_alike(found, other, 1.0, scale, order)


TWO_PEAKS = "-(x - 0.1)**2*(x - 0.6)**2"
SUMS = {
    "bounded": (sealed, "x", TWO_PEAKS),
    "concave": (qd.quality_discrepancy, "log(x)", "-x**2"),
    "concave-convex": (qd.quality_discrepancy, "x", "-2*x**2 + x**3"),
}
P = np.array([0.45, 0.3, 0.15, 0.1])
# Constants and lines, which cost up to three digits, and factors.
CHANGES = [(c, 0, d, "") for c, d in UNITS[1:]]
CHANGES += [(1, 1e3, 1, ""), (1, -0.3, 1, "+ 3"), (1, 0, 1, "+ 1000*x")]
CHANGES += [(1, 50, 1, "- 30*x + 2")]


@pytest.mark.parametrize("shape", SUMS)
@pytest.mark.parametrize(("c", "constant", "d", "line"), CHANGES)
def test_sums_of_g_in_any_unit_with_constants_and_lines(shape, c, constant, d, line):
    solve, f, g = SUMS[shape]
    found = solve(qd.SeparablePair(f, g), P)
    assert found.status == ("certified" if shape == "bounded" else "exact")
    assert found.dominated_in == "quality"
    changed = qd.SeparablePair(f"{c:f}*{f} + {constant}", f"{d:f}*({g}) {line}")
    scale = np.ptp(np.asarray(qd.SeparablePair(f, g).text_quality(P)))
    assert_alike(found, solve(changed, P), c, scale)


@pytest.mark.parametrize("shape", SUMS)
def test_sums_of_g_over_texts_in_another_order(shape):
    solve, f, g = SUMS[shape]
    pair, order = qd.SeparablePair(f, g), np.array([2, 0, 3, 1])
    assert_alike(solve(pair, P), solve(pair, P[order]), 1.0, 1.0, order)


DIVERSITIES = {
    "entropy": lambda q: entr(jnp.asarray(q)).sum(),
    "pairs": lambda q: -jnp.square(jnp.asarray(q).reshape(-1, 2).sum(axis=1)).sum(),
}


@pytest.mark.parametrize("name", DIVERSITIES)
@pytest.mark.parametrize(("c", "d"), UNITS)
def test_convex_problems_in_any_unit(name, c, d):
    p, value = np.array([0.4, 0.25, 0.2, 0.15]), DIVERSITIES[name]
    scores = jnp.array([0.3, -0.1, 0.9, 0.2])
    found = sealed(qd.ConcavePair(lambda p: scores, value), p)
    assert found.status == "lower_bound"  # V is code
    assert found.upper_bound - found.qdisc <= 1e-9
    pair = qd.ConcavePair(lambda p: c * scores, lambda q: d * value(q))
    assert_alike(found, sealed(pair, p), c, 1.0)
    pair = qd.ConcavePair(lambda p: c * (scores + 1e3), lambda q: d * (value(q) - 7))
    assert_alike(found, sealed(pair, p), c, 1.0)
    order = np.array([2, 3, 1, 0])  # pairs stay together
    pair = qd.ConcavePair(lambda p: c * scores[order], lambda q: d * value(q))
    assert_alike(found, sealed(pair, p[order]), c, 1.0)


@pytest.mark.parametrize("orders", [(1, 2, 3), (2, 2, 1), (2, 2, 2)])
def test_bleu_under_other_names_of_the_words(orders):
    space = qd.TextSpace(2, 3) if orders[0] == 2 else qd.TextSpace(3, 2)
    pair, p = qd.BleuPair(space, *orders), oracle(space, 0, sigma=1.0)
    found = sealed(pair, p)
    names = np.roll(np.arange(space.vocab_size), 1)
    order = space.index(names[space.tokens])
    other = sealed(pair, p[order])
    scale = np.ptp(np.asarray(pair.text_quality(p)))
    assert_alike(found, other, 1.0, scale)


@pytest.mark.parametrize("orders", [(1, 2, 3), (2, 2, 1), (2, 2, 2)])
@pytest.mark.parametrize("flatness", [1e-2, 1e-4])
def test_bleu_near_the_uniform_p_is_held_to_the_same_bar(orders, flatness):
    # The range of scores is 1e-2 or 1e-4 here, and the bar falls with it.
    space = qd.TextSpace(2, 3) if orders[0] == 2 else qd.TextSpace(3, 2)
    noise = np.random.default_rng(0).normal(size=space.num_texts)
    p = (1 + flatness * noise) / (1 + flatness * noise).sum()
    pair = qd.BleuPair(space, *orders)
    scores = np.asarray(pair.text_quality(p))
    found = sealed(pair, p)
    assert found.qdisc <= found.upper_bound <= np.ptp(scores)
    met = found.upper_bound - found.qdisc <= 1e-5 * np.ptp(scores)
    assert (found.status == "certified") == met
    # A model of the exact solution, or of a long search, is within the bounds.
    best = qd.quality_discrepancy(pair, p)
    assert best.qdisc <= found.upper_bound + 1e-12


def test_the_uniform_p_has_scores_alike():
    for pair, p in (
        (qd.BleuPair(qd.TextSpace(2, 1), 1, 2, 2), np.full(2, 0.5)),
        (qd.BleuPair(qd.TextSpace(2, 2), 2, 2, 1), np.full(4, 0.25)),
        (qd.BleuPair(qd.TextSpace(2, 2), 2, 2, 2), np.full(4, 0.25)),
        (qd.KernelPair(np.ones((3, 3))), np.array([0.2, 0.3, 0.5])),
        (qd.KernelPair(np.zeros((3, 3))), np.array([0.2, 0.3, 0.5])),
        (
            qd.LinearPair(np.ones(3), qd.Expression("-(x - 0.3)**4")),
            np.array([0.2, 0.3, 0.5]),
        ),
    ):
        found = sealed(pair, p)
        assert found.status == "certified"
        assert found.qdisc <= found.upper_bound <= 1e-13


def test_the_bar():
    p = np.array([0.0, 0.5, 0.5])

    def status(scores, gain, upper):
        posed = pose(qd.LinearPair(scores, qd.functions.NRR), p)
        return seal(posed, p, gain, upper, "certified")[0]

    # No model gains more than half of the range over this P.
    for unit in (1e-9, 1.0, 1e9):
        scores = unit * np.array([-np.inf, 2.0, 3.0])
        assert status(scores, 0.1 * unit, (0.1 + 0.49e-5) * unit) == "certified"
        assert status(scores, 0.1 * unit, (0.1 + 0.51e-5) * unit) == "lower_bound"
    # All texts alike: what is left is rounding.
    assert status(np.ones(3), 0.0, 1e-16) == "certified"
    assert status(np.ones(3), 0.0, 1e-13) == "lower_bound"


def test_a_search_certified_in_another_unit():
    p = np.array([0.3, 0.3, 0.4])
    one, small = (
        qd.quality_discrepancy(
            qd.KernelPair(unit * KERNELS["certified"]), p, method="certified"
        )
        for unit in (1.0, 1e-6)
    )
    assert one.status == small.status == "certified"
    assert small.qdisc * 1e6 == pytest.approx(one.qdisc, rel=1e-6)
    assert dataclasses.replace(small, pair=one.pair).drate == pytest.approx(
        one.drate, rel=1e-5
    )
