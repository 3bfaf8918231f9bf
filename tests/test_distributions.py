"""Probability vectors: against SciPy, exact arithmetic and the law of large numbers."""

import dataclasses
import subprocess
import sys
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from models import assert_compiles_and_batches, assert_frequencies

import qdtheory as qd
from qdtheory.distributions import (
    Rounded,
    as_distribution,
    as_interior,
)

EPS, TINY = np.finfo(float).eps, np.finfo(float).tiny
sizes = st.sampled_from([1, 2, 5, 64])
seeds = st.integers(0, 2**16)


def random_distribution(size, seed) -> np.ndarray:
    """Probabilities over many orders of magnitude, about a third of them zero."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.1, size=size) * (rng.random(size) > 1 / 3)
    weights[rng.integers(size)] = 1.0
    return weights / weights.sum()


distributions = st.builds(random_distribution, sizes, seeds)
POINT, UNIFORM = np.eye(4)[2], np.full(4, 0.25)


def is_distribution(p) -> bool:
    p = np.asarray(p)
    return bool((p >= 0).all()) and abs(p.sum() - 1) <= p.size * EPS


# -- checking ------------------------------------------------------------------------


@given(distributions)
def test_a_distribution_passes_unchanged(p):
    assert np.array_equal(as_distribution(p), p)


@pytest.mark.parametrize("size", [1, 1000, 10**6])
def test_the_tolerance_on_the_sum_leaves_room_for_rounding(size):
    p = np.full(size, 1 / size)
    off = 2e-10 + 2 * size * EPS
    as_distribution(p * (1 + 5e-11))
    for factor in (1 + off, 1 - off):
        with pytest.raises(ValueError, match="must sum to 1"):
            as_distribution(p * factor)


# -- normalising, tempering, mixing --------------------------------------------------


@given(sizes, seeds, st.sampled_from([1e-250, 1.0, 1e307]))
def test_normalize_agrees_with_fractions(size, seed, scale):
    weights = random_distribution(size, seed) * scale
    total = sum(map(Fraction, weights.tolist()))
    exact = [float(Fraction(w) / total) for w in weights.tolist()]
    # A sum of N nonnegative terms and two divisions; XLA flushes subnormals to 0.
    found = qd.normalize(weights)
    np.testing.assert_allclose(found, exact, rtol=(size + 3) * EPS, atol=TINY)


@given(distributions)
def test_temper_0_is_uniform_on_the_support(p):
    support = p > 0
    np.testing.assert_allclose(qd.temper(p, 0.0), support / support.sum(), rtol=EPS)


@given(distributions)
def test_a_large_power_is_uniform_on_the_modes(p):
    p = np.round(p * 64 + (p > 0))  # small integers, so that ties are exact
    modes = p == p.max()
    found = qd.temper(p / p.sum(), 1e5)
    # The next weight is at most 64/65 of the greatest: its share is below 1e-300.
    np.testing.assert_allclose(found, modes / modes.sum(), rtol=1e-12, atol=1e-300)


@given(distributions, st.sampled_from([1, 2, 3, 5]))
def test_temper_agrees_with_fractions(p, power):
    powers = [Fraction(x) ** power for x in p.tolist()]
    exact = [float(x / sum(powers)) for x in powers]
    found = qd.temper(p, float(power))
    # Exponents up to 5 * 745 carry their rounding into the result.
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-300)


@given(distributions, st.sampled_from([0.3, 2.0]), st.sampled_from([0.5, 4.0]))
def test_powers_compose(p, first, second):
    twice = qd.temper(qd.temper(p, first), second)
    np.testing.assert_allclose(twice, qd.temper(p, first * second), atol=1e-12)


@given(sizes, seeds, seeds, st.sampled_from([0.0, 0.25, 1.0]))
def test_mix_is_on_the_line(size, seed_p, seed_q, epsilon):
    p, q = random_distribution(size, seed_p), random_distribution(size, seed_q)
    mixed = qd.mix(p, q, epsilon)
    assert is_distribution(mixed)
    np.testing.assert_allclose(mixed - p, epsilon * (q - p), rtol=0, atol=2 * EPS)
    assert np.array_equal(mixed, qd.mix(q, p, 1 - epsilon))


@given(distributions, st.sampled_from([0.0, 0.5, 1.0, 7.0]))
def test_results_are_distributions(p, beta):
    for q in (qd.normalize(3 * p), qd.temper(p, beta)):
        assert is_distribution(q)
        assert ((np.asarray(q) > 0) <= (p > 0)).all()


# -- entropy -------------------------------------------------------------------------


@given(distributions)
def test_entropy_agrees_with_scipy(p):
    expected = scipy.stats.entropy(p)
    assert float(qd.entropy(p)) == pytest.approx(expected, rel=1e-13, abs=1e-15)
    if (p > 0).sum() == 1:
        assert qd.entropy(p) == 0


@given(distributions)
def test_entropy_is_at_most_log_of_the_support(p):
    assert -EPS <= float(qd.entropy(p)) <= np.log((p > 0).sum()) + 64 * EPS


@given(distributions)
def test_tempering_flattens(p):
    # The entropy of P^beta / Z does not rise with beta: its slope is -beta Var(log P).
    entropies = [float(qd.entropy(qd.temper(p, b))) for b in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert (np.diff(entropies) <= 1e-13).all()


# -- sampling ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 64])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_frequencies_agree_with_probabilities(size, seed):
    p = random_distribution(size, seed)
    draws = qd.sample(jax.random.key(seed), p, 100_000)
    assert_frequencies(np.asarray(draws), p)


@pytest.mark.parametrize("zeros", [[0], [-1], [0, 1, -1], [1, 2]])
def test_a_text_of_probability_zero_is_never_drawn(zeros):
    p = np.full(5, 1.0)
    p[zeros] = 0
    p /= p.sum()
    draws = qd.sample(jax.random.key(4), p, 50_000)
    assert set(np.unique(draws)) == set(np.flatnonzero(p))


# -- fingerprints --------------------------------------------------------------------


def test_fingerprint_sees_what_is_visible():
    p = np.array([0.25, 0.75])
    name = qd.fingerprint(p)
    assert len(name) == 8
    assert int(name, 16) >= 0
    # A changed rule would rename every oracle of the notebooks.
    assert name == "a084810e"
    assert qd.fingerprint(p + 4e-7) == name
    assert qd.fingerprint(p + 6e-7) != name
    assert qd.fingerprint(p[::-1]) != name
    assert qd.fingerprint(np.array([-1e-9])) == qd.fingerprint(np.array([0.0]))
    assert qd.fingerprint(jnp.asarray(p)) == name


# -- under JAX's transformations -----------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        qd.normalize,
        qd.entropy,
        lambda p: qd.temper(p, 0.7),
        lambda p: qd.mix(p, UNIFORM, 0.3),
        lambda p: qd.sample(jax.random.key(0), p, 8),
    ],
    ids=["normalize", "entropy", "temper", "mix", "sample"],
)
def test_jit_and_vmap_change_nothing(function):
    batch = np.stack([random_distribution(4, 0), POINT, UNIFORM])
    assert_compiles_and_batches(function, batch, rtol=4 * EPS)


def test_gradients_agree_with_their_formulas():
    p, beta = np.array([0.5, 0.3, 0.2]), 1.7
    np.testing.assert_allclose(jax.grad(qd.entropy)(p), -np.log(p) - 1, rtol=4 * EPS)
    q = np.asarray(qd.temper(p, beta))
    score = np.log(p) - q @ np.log(p)
    found = jax.jacobian(qd.temper, argnums=1)(p, beta)
    np.testing.assert_allclose(found, q * score, rtol=1e-14, atol=1e-16)
    found = jax.jacobian(qd.temper)(p, beta)
    expected = beta * (np.diag(q) - np.outer(q, q)) / p
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    found = jax.jacobian(qd.mix, argnums=2)(p, q, 0.4)
    np.testing.assert_allclose(found, q - p, rtol=EPS)
    found = jax.jacobian(qd.normalize)(3 * p)
    np.testing.assert_allclose(found, (np.eye(3) - p[:, None]) / 3, atol=1e-15)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_tempering_has_finite_gradients_at_zeros(beta):
    p = np.array([0.5, 0.5, 0.0])
    assert np.isfinite(jax.jacobian(qd.temper)(p, beta)).all()


def test_normalize_near_both_ends_of_the_floats():
    for scale in (1e308, 1e300, 1.0, 1e-300):
        found = qd.normalize(np.array([1.0, 0.5, 0.0]) * scale)
        np.testing.assert_allclose(found, [2 / 3, 1 / 3, 0], rtol=1e-12)


# -- a softmax in 32 bits ------------------------------------------------------------


def softmax(size, seed=0):
    """As networks give it, in 32 bits, and divided by its sum in 64."""
    logits = 3 * np.random.default_rng(seed).normal(size=size).astype(np.float32)
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


def test_more_than_the_rounding_of_32_bits_is_refused():
    p, wide = softmax(64)
    for vector in (p * (1 + 1e-5), np.asarray(p, float), wide * (1 + 1e-8)):
        with pytest.raises(ValueError, match="call normalize"):
            as_distribution(vector)


def test_a_seal_says_that_it_rests_on_a_divided_distribution():
    p, wide = softmax(8)
    said = "p was given in float32"
    answers = {
        "verdict": lambda p: qd.check_compatibility(qd.LL_NRR, p),
        "qdisc": lambda p: qd.quality_discrepancy(qd.LL_NRR, p),
        "bounds": lambda p: qd.certify(qd.LL_NRR, p),
        "improved": lambda p: qd.certify(
            qd.LL_NRR, p, qd.quality_discrepancy(qd.LL_NRR, p)
        ),
    }
    for answer in answers.values():
        with pytest.warns(Rounded):
            found = answer(p)
        expected = answer(wide)
        assert found.reason.startswith(f"{expected.reason} Note: {said}")
        assert said not in expected.reason
        changed = dataclasses.replace(found, reason=expected.reason)
        assert changed == expected


def test_a_frontier_searched_in_32_bits_is_that_in_64():
    p, wide = softmax(3)
    pair = qd.FunctionPair(lambda q, p: q @ p, lambda q: -(q @ q), "CR-NRR")
    with pytest.warns(Rounded):
        found = qd.search.search_frontier(pair, p, 3)
    expected = qd.search.search_frontier(pair, wide, 3)
    np.testing.assert_array_equal(found.quality, expected.quality)


# -- 64 bits -------------------------------------------------------------------------

# A small network of a user, whose parameters and inputs say that they are float32;
# after it calls of the library, in 64 bits without a switch and with it turned off.
OF_A_USER = """
import jax, jax.numpy as jnp, numpy as np

def loss(weights, x):
    hidden = jax.nn.relu(x @ weights[0] + 0.5)
    return jnp.square(hidden @ weights[1]).mean() / 3

rng = np.random.default_rng(0)
weights = [jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((4, 8), (8, 1))]
x = jnp.asarray(rng.normal(size=(16, 4)), jnp.float32)

def step():
    value, slopes = jax.jit(jax.value_and_grad(loss))(weights, x)
    return [np.asarray(part) for part in (value, *slopes)]

before = step()
import qdtheory as qd
p = [0.4, 0.3, 0.2, 0.1]
print(qd.entropy(p).dtype, qd.quality_discrepancy(qd.LL_NRR, p).q.dtype)
for old, new in zip(before, step(), strict=True):
    assert new.dtype == np.float32 and (old == new).all()
jax.config.update("jax_enable_x64", False)
print(qd.functions.LL(0.5).dtype)
space = qd.TextSpace(2, 1)
for call in (qd.entropy, qd.normalize, lambda p: qd.LL_SE.quality(p, p),
             lambda p: qd.quality_discrepancy(qd.LL_NRR, p),
             lambda p: qd.pareto_optimum(qd.LL_SE, p, -1.0),
             lambda p: qd.expected_bleu(space, p, p, 1, 2)):
    try:
        print(call([0.5, 0.5]))
    except RuntimeError as error:
        assert "64-bit mode was switched off" in str(error)
"""
OF_TEXT = """
import qdtheory
from qdtheory.text import evaluate
evaluate({'a': ['x'] * 3}, ['x'] * 3, 1)
import jax.numpy as jnp
print(jnp.ones(1).dtype)
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [(OF_A_USER, "float64 float64\nfloat32\n"), (OF_TEXT, "float32\n")],
)
def test_what_computes_exactly_does_so_in_64_bits_and_all_else_as_before(code, printed):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == printed, done.stderr


def test_a_distribution_that_traced_code_closes_over_is_checked():
    def shifted(p):
        return jax.jit(lambda x: x + as_interior(p).sum())(1.0)

    assert shifted(jnp.array([0.5, 0.5])) == 2
    with pytest.raises(ValueError, match="p must be positive everywhere"):
        shifted(jnp.array([1.0, 0.0]))
