"""Distributions and divergences: SciPy, dit, exact arithmetic, large samples."""

import dataclasses
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from families import assert_frequencies
from hypothesis import given
from hypothesis import strategies as st
from lab.metrics import frontier_integral, mauve
from models import assert_compiles_and_batches, assert_slope, draw, random_distribution
from scipy.spatial import distance
from scipy.special import rel_entr
from scipy.stats import binom, entropy
from scripts import column_of

import qdtheory as qd
from qdtheory.distributions import Rounded, as_distribution
from qdtheory.divergences import (
    bhattacharyya_distance,
    hellinger_distance,
    jeffreys_divergence,
    renyi_divergence,
    total_variation,
)

EPS, TINY, LOG2 = np.finfo(float).eps, np.finfo(float).tiny, np.log(2)
SLACK = 1e-14  # rounding of sums of at most 64 terms, none above 1
POINT, UNIFORM, KEY = np.eye(4)[2], np.full(4, 0.25), jax.random.key(0)
sizes, seeds = st.sampled_from([1, 2, 5, 64]), st.integers(0, 2**16)


def spread_out(size, seed):
    """Probabilities over many orders of magnitude, about a third of them zero."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.1, size=size) * (rng.random(size) > 1 / 3)
    weights[rng.integers(size)] = 1.0
    return weights / weights.sum()


spread = st.builds(spread_out, sizes, seeds)


# --- Checking, normalising, tempering, mixing -----------------------------------------
@pytest.mark.parametrize("size", [1, 1000, 10**6])
def test_the_tolerance_on_the_sum_leaves_room_for_rounding(size):
    p, off = np.full(size, 1 / size), 2e-10 + 2 * size * EPS
    for passes in (p, p * (1 + 5e-11)):
        assert np.array_equal(as_distribution(passes), passes)
    for factor in (1 + off, 1 - off):
        with pytest.raises(ValueError, match="must sum to 1"):
            as_distribution(p * factor)


@given(sizes, seeds, st.sampled_from([1e-250, 1.0, 1e307]))
def test_normalize_agrees_with_fractions(size, seed, scale):
    weights = spread_out(size, seed) * scale
    total = sum(map(Fraction, weights.tolist()))
    exact = [float(Fraction(w) / total) for w in weights.tolist()]
    # A sum of N nonnegative terms and two divisions; XLA flushes subnormals to 0.
    found = qd.normalize(weights)
    np.testing.assert_allclose(found, exact, rtol=(size + 3) * EPS, atol=TINY)
    for end in (1e308, 1e-300):
        found = qd.normalize(np.array([1.0, 0.5, 0.0]) * end)
        np.testing.assert_allclose(found, [2 / 3, 1 / 3, 0], rtol=1e-12)


@given(spread, st.sampled_from([0, 1, 2, 3, 5]))
def test_temper_agrees_with_fractions(p, power):
    powers = [Fraction(x) ** power * (x > 0) for x in p.tolist()]
    exact = [float(x / sum(powers)) for x in powers]
    found = np.asarray(qd.temper(p, float(power)))
    # Exponents up to 5 * 745 carry their rounding into the result.
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-300)
    assert (found[p == 0] == 0).all()


@given(spread)
def test_a_large_power_is_uniform_on_the_modes(p):
    p = np.round(p * 64 + (p > 0))  # small integers, so that ties are exact
    modes = p == p.max()
    found = qd.temper(p / p.sum(), 1e5)
    # The next weight is at most 64/65 of the greatest: its share is below 1e-300.
    np.testing.assert_allclose(found, modes / modes.sum(), rtol=1e-12, atol=1e-300)


@given(sizes, seeds, seeds, st.sampled_from([0.0, 0.25, 1.0]))
def test_mix_is_on_the_line(size, seed_p, seed_q, epsilon):
    p, q = spread_out(size, seed_p), spread_out(size, seed_q)
    mixed = qd.mix(p, q, epsilon)
    assert float(mixed.sum()) == pytest.approx(1, abs=size * EPS)
    np.testing.assert_allclose(mixed - p, epsilon * (q - p), rtol=0, atol=2 * EPS)
    assert np.array_equal(mixed, qd.mix(q, p, 1 - epsilon))


@given(spread)
def test_entropy_agrees_with_scipy_and_falls_with_the_power(p):
    expected = entropy(p)
    assert float(qd.entropy(p)) == pytest.approx(expected, rel=1e-13, abs=1e-15)
    # Of P^beta / Z its slope is -beta Var(log P).
    entropies = [float(qd.entropy(qd.temper(p, b))) for b in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert (np.diff(entropies) <= 1e-13).all()


@pytest.mark.parametrize("size", [1, 2, 5, 64])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_frequencies_agree_with_probabilities(size, seed):
    p = spread_out(size, seed)
    draws = qd.sample(jax.random.key(seed), p, 100_000)
    assert_frequencies(np.asarray(draws), p)


def test_fingerprint_sees_what_is_visible():
    p = np.array([0.25, 0.75])
    name = qd.fingerprint(p)
    assert name == "a084810e"  # another rule would rename every oracle of the notebooks
    assert qd.fingerprint(jnp.asarray(p + 4e-7)) == name
    assert name not in (qd.fingerprint(p + 6e-7), qd.fingerprint(p[::-1]))
    assert qd.fingerprint(np.array([-1e-9])) == qd.fingerprint(np.array([0.0]))


def test_jit_and_vmap_change_nothing():
    batch = np.stack([spread_out(4, 0), POINT, UNIFORM])
    for function in (
        *(qd.normalize, qd.entropy, lambda p: qd.temper(p, 0.7)),
        *(lambda p: qd.mix(p, UNIFORM, 0.3), lambda p: qd.sample(KEY, p, 8)),
    ):
        assert_compiles_and_batches(function, batch, rtol=4 * EPS)


def test_gradients_agree_with_their_formulas():
    p, beta = np.array([0.5, 0.3, 0.2]), 1.7
    q = np.asarray(qd.temper(p, beta))
    of_beta, of_p = (jax.jacobian(qd.temper, i)(p, beta) for i in (1, 0))
    expected = beta * (np.diag(q) - np.outer(q, q)) / p
    for found, formula in (
        (jax.grad(qd.entropy)(p), -np.log(p) - 1),
        (of_beta, q * (np.log(p) - q @ np.log(p))),
        (of_p, expected),
        (jax.jacobian(qd.mix, argnums=2)(p, q, 0.4), q - p),
        (jax.jacobian(qd.normalize)(3 * p), (np.eye(3) - p[:, None]) / 3),
    ):
        np.testing.assert_allclose(found, formula, rtol=1e-14, atol=1e-15)
    for power in (0.5, 1.0, 2.0):
        slopes = jax.jacobian(qd.temper)(np.array([0.5, 0.5, 0.0]), power)
        assert np.isfinite(slopes).all()


# --- 32 bits --------------------------------------------------------------------------
def softmax(size):
    """As networks give it, in 32 bits, and divided by its sum in 64."""
    logits = 3 * np.random.default_rng(0).normal(size=size).astype(np.float32)
    p = jax.nn.softmax(jnp.asarray(logits, jnp.float32))
    wide = np.asarray(p, float)
    assert p.dtype == jnp.float32
    assert abs(wide.sum() - 1) > 1e-9
    return p, wide / wide.sum()


@pytest.mark.parametrize("size", [3, 64, 10**5])
def test_a_softmax_in_32_bits_is_divided_by_its_sum_and_this_is_said(as_a_user, size):
    p, wide = softmax(size)
    for vector in (p, np.asarray(p), [*np.asarray(p)]):
        with pytest.warns(Rounded, match="^p was given in float32") as told:
            found = as_distribution(vector)
        assert told[0].filename == __file__
        np.testing.assert_array_equal(found, wide)
    # More than the rounding of 32 bits is refused.
    for vector in (p * (1 + 1e-4), np.asarray(p, float), wide * (1 + 1e-8)):
        with pytest.raises(ValueError, match="call normalize"):
            as_distribution(vector)


@pytest.mark.parametrize(
    "seal", [qd.check_compatibility, qd.quality_discrepancy, qd.certify]
)
def test_a_seal_says_that_it_rests_on_a_divided_distribution(seal):
    (p, wide), said = softmax(8), "p was given in float32"
    with pytest.warns(Rounded):
        found = seal(qd.LL_NRR, p)
    expected = seal(qd.LL_NRR, wide)
    assert found.reason.startswith(f"{expected.reason} Note: {said}")
    assert said not in expected.reason
    assert dataclasses.replace(found, reason=expected.reason) == expected


# A step of a user in float32 before and after the library computes; then its calls, in
# 64 bits without a switch and with it turned off.
OF_A_USER = """
import jax, qdtheory as qd
from jax import numpy as jnp
qd.text.evaluate({'a': ['x'] * 3}, ['x'] * 3, 1)
x, step = jnp.arange(12.0) / 7, jax.jit(lambda x: jnp.square(jnp.sin(x)).mean())
p, before = [0.4, 0.3, 0.2, 0.1], step(x)
print(qd.entropy(p).dtype, qd.quality_discrepancy(qd.LL_NRR, p).q.dtype)
print(before.dtype, step(x).dtype, step(x) == before)
space, lstm, p, refused = qd.TextSpace(2, 1), qd.LSTMLanguageModel, [0.5, 0.5], 0
jax.config.update("jax_enable_x64", False)
print(qd.functions.LL(0.5).dtype)
for call in (
    lambda: qd.entropy(p), lambda: qd.normalize(p), lambda: qd.LL_SE.quality(p, p),
    lambda: qd.kl_divergence(p, p), lambda: qd.quality_discrepancy(qd.LL_NRR, p),
    lambda: qd.pareto_optimum(qd.LL_SE, p, -1.0), lambda: qd.dominance(1, 1, 1, 1),
    lambda: qd.expected_bleu(space, p, p, 1, 2), lambda: qd.pareto_frontier("LL-SE", p),
    lambda: space.ngram_distribution(p, 1), lambda: qd.check_rationality(qd.LL_SE),
    lambda: lstm.random(jax.random.key(0), vocab_size=2), lambda: lstm.from_arrays([]),
    lambda: qd.check_compatibility(qd.LL_SE), lambda: qd.check("LL", "distinct-2"),
):
    try:
        print(call())
    except RuntimeError as error:
        assert "jax.config.update('jax_enable_x64', True)" in str(error)
        refused += 1
print(refused)
"""


def test_what_computes_exactly_does_so_in_64_bits_and_all_else_as_before():
    command = [sys.executable, "-c", OF_A_USER]
    done = subprocess.run(command, capture_output=True, text=True)
    expected = "float64 float64\nfloat32 float32 True\nfloat32\n15\n"
    assert done.stdout == expected, done.stderr


# --- Divergences, against values of others --------------------------------------------
def renyi(order):
    return lambda a, b: renyi_divergence(a, b, order)


RENYI = [renyi(0.5), renyi(3)]
SYMMETRIC = [
    *(RENYI[0], jeffreys_divergence, qd.jensen_shannon_divergence, total_variation),
    *(hellinger_distance, bhattacharyya_distance, frontier_integral),
    lambda a, b: 1 - mauve(a, b),
]
DIVERGENCES = [qd.kl_divergence, RENYI[1], *SYMMETRIC]


@st.composite
def pairs(draw, zeros=(0.0, 0.4)):
    size, zeros = draw(sizes), st.sampled_from(zeros)
    return tuple(random_distribution(size, draw(seeds), draw(zeros)) for _ in "ab")


@given(pairs())
def test_divergences_agree_with_scipy(ab):
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


def two_close(size, e):
    """A size that is a power of 2 and whole units of 2^-52, which 64 bits hold."""
    return np.full(size, 1 / size), (1 + e * np.resize([1.0, -1.0], size)) / size


def in_50_digits(a, b):
    """The divergences of two vectors, from exact decimals."""
    with localcontext(prec=50):
        both = [[Decimal(x) for x in vector.tolist()] for vector in (a, b)]
        joint = list(zip(*both, strict=True))
        overlap = sum((x * y).sqrt() for x, y in joint)
        ab = sum(x * (x / y).ln() for x, y in joint)
        ba = sum(y * (y / x).ln() for x, y in joint)
        js = sum(
            x * (2 * x / (x + y)).ln() + y * (2 * y / (x + y)).ln() for x, y in joint
        )
        exact = {
            qd.kl_divergence: ab,
            qd.jensen_shannon_divergence: js / 2,
            jeffreys_divergence: ab + ba,
            RENYI[0]: -2 * overlap.ln(),
            RENYI[1]: sum(x**3 / y**2 for x, y in joint).ln() / 2,
            hellinger_distance: (1 - overlap).sqrt(),
            bhattacharyya_distance: -overlap.ln(),
            frontier_integral: sum(
                (x + y) / 2 - x * y * (x / y).ln() / (x - y) for x, y in joint if x != y
            ),
        }
        return {divergence: float(value) for divergence, value in exact.items()}


@pytest.mark.parametrize("size", [2, 64, 2**20])
@pytest.mark.parametrize("units", [450_359_963, 4_398_046_511_105])
def test_close_distributions_keep_their_digits(size, units):
    # All are sums of terms of degree 1, so that two texts have the same as a million.
    e = units / 2**52
    for divergence, value in in_50_digits(*two_close(2, e)).items():
        found = float(divergence(*two_close(size, e)))
        # The rounding of a term of size e, before a sum of size e^2.
        assert found == pytest.approx(value, rel=4 * EPS / e, abs=0)


A, B, C = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75]), UNIFORM
FAR = np.array([0.5, 0.5]), np.array([1e-300, 1.0])


@pytest.mark.parametrize(
    ("divergence", "a", "b", "value"),
    [
        *((d, A, B, np.inf) for d in RENYI),
        (frontier_integral, A, B, 1),
        # Zeros of the first cost nothing, those of the second below order 1.
        *((d, A, C, LOG2) for d in RENYI),
        *((RENYI[0], C, A, LOG2), (RENYI[1], C, A, np.inf)),
        # a^r b^(1-r) is about 10^2700 here; its logarithm is not.
        (renyi(10), *FAR, (10 * np.log(0.5) - 9 * np.log(1e-300)) / 9),
    ],
)
def test_values_with_zeros(divergence, a, b, value):
    assert float(divergence(a, b)) == pytest.approx(value, rel=8 * EPS)


# --- What divergences keep ------------------------------------------------------------
@given(pairs(), seeds)
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
def test_renyi_grows_with_its_order_from_the_bhattacharyya_distance(ab):
    values = [float(renyi_divergence(*ab, r)) for r in (0.2, 0.5, 1, 1.5, 3, 20)]
    for lower, higher in pairwise(values):
        assert lower <= higher * (1 + 1e-12) + SLACK
    bhattacharyya = float(bhattacharyya_distance(*ab))
    assert values[1] == pytest.approx(2 * bhattacharyya, rel=1e-12, abs=SLACK)
    assert values[2] == float(qd.kl_divergence(*ab))


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_compiled_in_batches_and_differentiated(divergence):
    a, b = (
        np.stack([random_distribution(5, seed + i, 0.4) for seed in range(4)])
        for i in (0, 4)
    )
    assert_compiles_and_batches(divergence, a, b)
    a, b, c = (random_distribution(5, s, 0.0) / 2 + 0.1 for s in (1, 2, 3))
    assert_slope(lambda x: divergence(x, b), a, c - a)
    assert_slope(lambda x: divergence(b, x), a, c - a)


@pytest.mark.parametrize("divergence", [*DIVERGENCES, qd.cross_entropy])
def test_gradients_vanish_at_equal_distributions_and_are_finite_at_zeros(divergence):
    # Along directions of sum zero; where the derivative jumps, its middle is taken.
    p, towards = np.array([0.5, 0.3, 0.2, 0.0]), np.array([1.0, -2.0, 1.0, 0.0])
    slopes = jax.grad(divergence, (0, 1))
    if divergence is not qd.cross_entropy:
        for slope in slopes(p, p):
            np.testing.assert_allclose(slope @ towards, 0, atol=1e-13)
    for b in ([0.25, 0.75, 0.0], [0.25, 0.25, 0.5]):
        for slope in slopes(np.array([0.5, 0.5, 0.0]), np.array(b)):
            assert np.isfinite(slope).all()


def interior(seed, size, count):
    rng = np.random.default_rng(seed)
    return 0.9 * rng.dirichlet(np.ones(size), count) + 0.1 / size


SUMS = qd.kl_divergence, qd.cnd
F_DIVERGENCES = [
    *(qd.kl_divergence, qd.jensen_shannon_divergence, total_variation),
    frontier_integral,
]


@pytest.mark.claim("N16.21")
@pytest.mark.parametrize("d", [*SUMS, total_variation, frontier_integral])
def test_three_points_of_a_sum_differ_by_a_linear_term(d):
    """The three-point law D(a; p) + D(p; r) - D(a; r) is linear in a, or is not."""
    worst = 0.0
    for a, b, p, r in interior(3, 6, (10, 4)):
        at = [float(d(x, p) - d(x, r)) for x in (a, b, 0.3 * a + 0.7 * b)]
        worst = max(worst, abs(at[2] - 0.3 * at[0] - 0.7 * at[1]))
    assert worst <= 1e-13 if d in SUMS else worst >= 1e-3


def merged(x):
    return np.array([x[0] + x[1], x[2]])


@pytest.mark.claim("N16.21")
@pytest.mark.parametrize("d", [*F_DIVERGENCES, qd.cnd])
def test_f_divergences_see_no_split_and_fall_by_merging_and_one_is_proportional(d):
    changes, ratios = [], []
    for q, p in interior(4, 3, (50, 2)):
        split = [np.append(x, 0.3 * x[2]) * [1, 1, 0.7, 1] for x in (q, p)]
        changes.append(abs(float(d(*split) - d(q, p))))
        half, whole = float(d((q + p) / 2, p)), float(d(q, p))
        assert (abs(2 * half - whole) <= 1e-14) == (d is total_variation)
        ratios.append(float(d(merged(q), merged(p))) / whole)
    assert (max(changes) <= 1e-14) == (d is not qd.cnd)
    assert max(ratios) <= (4 / 3 if d is qd.cnd else 1) + 1e-12
    if d is qd.cnd:  # the bound is met
        a, b = np.array([0.25, 0.25, 0.5]), np.array([0.05, 0.05, 0.9])
        assert float(d(merged(a), merged(b)) / d(a, b)) == pytest.approx(4 / 3)


@pytest.mark.claim("N13.3")
def test_bhattacharyya_estimates_at_the_published_distances():
    rng = np.random.default_rng(1)
    distances = column_of("montahaei2019", "4", "Bhattacharyya")
    assert sorted(distances.values()) == [7.105, 8.503, 10.076, 12.127]
    for b in distances.values():
        a = (1 + np.sqrt(1 - np.exp(-b / 10))) / 2
        laws = np.stack([binom.pmf(np.arange(21), 20, x) for x in (a, 1 - a)])
        assert float(bhattacharyya_distance(*laws)) == pytest.approx(b, rel=1e-9)
        # Samples as histograms of the number of first tokens.
        first, second = (rng.multinomial(25_000, law, 400) / 25_000 for law in laws)
        root = np.sqrt(laws[1] / laws[0])
        found = -(np.log(first @ root) + np.log(second @ (1 / root))) / 2
        assert 0.1 < found.mean() - b < 2


@pytest.mark.claim("N13.12", "N13.15")
@pytest.mark.parametrize("seed", range(20))
def test_a_low_oracle_nll_means_little_entropy_and_is_no_small_kl(seed):
    p, q = draw(seed, 8, 2.0), draw(seed + 100, 8, 2.0)
    real = float(qd.entropy(p))
    for model in (q * p**2 / (q @ p**2), np.asarray(qd.temper(p, 2.0))):
        nll, kl, own = -model @ np.log(p), qd.kl_divergence(model, p), qd.entropy(model)
        assert nll == pytest.approx(float(own + kl), rel=1e-13)
        assert nll == pytest.approx(float(qd.cross_entropy(model, p)), rel=1e-13)
        assert own < real or nll >= real
    assert nll < real
    assert kl > 0


@pytest.mark.claim("N0.4", "N13.16")
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
        (renyi_divergence(p, q, 0.5), -s),
    ):
        # 1 - eps has a rounding error of 1e-16.
        assert float(found) == pytest.approx(value, rel=1e-12, abs=1e-15)
    integral = 1 + (1 - eps) / eps * s
    assert float(frontier_integral(q, p)) == pytest.approx(integral, abs=1e-7)
    assert qd.cross_entropy(p, q) == jeffreys_divergence(p, q) == np.inf
    reverse = entropy(q) + entropy(q, p)
    assert float(qd.cross_entropy(q, p)) == pytest.approx(reverse, abs=1e-12)
