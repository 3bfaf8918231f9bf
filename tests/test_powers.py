"""Quality, diversity, CND and BLEU along the powers of the real distribution."""

from itertools import product

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import positive, power, shares_of_texts
from referees.enumerated_bleu import diversity, listed_bleu, quality
from scipy.optimize import minimize_scalar

import qdtheory as qd

SEEDS = st.integers(0, 2**32 - 1)
few_examples = settings(max_examples=30)

SPACE = qd.TextSpace(4, 3)
BETAS = 2.0 ** np.linspace(-2, 2, 81)
REAL = 40


MAPS = {n: shares_of_texts(SPACE, n) for n in (1, 2, 3)}


def oracles(seed, number):
    keys = jax.random.split(jax.random.key(seed), number)

    def one(key):
        model = qd.LSTMLanguageModel.random(key, vocab_size=4)
        return model.probabilities(SPACE)

    return np.asarray(jax.lax.map(one, keys))


@pytest.fixture(scope="module")
def oracle():
    """The oracle of the notebook."""
    key = jax.random.split(jax.random.key(9), 2)[0]
    return qd.LSTMLanguageModel.random(key, vocab_size=4)


# -- quality and diversity ---------------------------------------------------------


@pytest.mark.claim("N9.1")
@given(seed=SEEDS, size=st.sampled_from([2, 5, 64]))
@few_examples
def test_slopes_on_the_powers_integrate_to_the_metrics(seed, size):
    p = positive(seed, size)
    log_p = np.log(p)
    low, high = 0.3, 2.5
    nodes, weights = np.polynomial.legendre.leggauss(40)
    nodes, weights = low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2
    models = [power(p, beta) for beta in nodes]
    variances = np.array([q @ log_p**2 - (q @ log_p) ** 2 for q in models])
    a, b = power(p, low), power(p, high)

    def change(metric):
        return float(metric(b) - metric(a))

    close = {"rtol": 1e-9, "atol": 1e-12}  # 40 nodes resolve this to rounding
    rise = change(lambda q: qd.LL_SE.quality(q, p))
    np.testing.assert_allclose(rise, weights @ variances, **close)
    fall = change(qd.entropy)
    np.testing.assert_allclose(fall, -weights @ (nodes * variances), **close)
    apart = change(lambda q: qd.kl_divergence(q, p))
    np.testing.assert_allclose(apart, weights @ ((nodes - 1) * variances), **close)


@pytest.mark.claim("N9.2")
@pytest.mark.parametrize(
    "f", [qd.functions.LL, qd.functions.CR, lambda x: x**3], ids=["LL", "CR", "cube"]
)
@pytest.mark.parametrize(
    "g",
    [qd.functions.SE, qd.functions.NRR, qd.Tsallis(0.5), qd.Tsallis(3.0)],
    ids=lambda g: g.__name__,
)
def test_every_rising_quality_and_concave_diversity_follow_the_powers(f, g):
    pair = qd.SeparablePair(f, g)
    for seed, size in product(range(3), (2, 6, 64)):
        p = positive(seed, size)
        models = [power(p, beta) for beta in np.linspace(0.2, 3, 15)]
        u = [float(pair.quality(q, p)) for q in models]
        v = [float(pair.diversity(q)) for q in models]
        assert (np.diff(u) > 0).all()
        assert (np.diff(v) < 0).all()


# -- n-grams ------------------------------------------------------------------------


@pytest.mark.claim("N9.6")
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["texts", "tokens"])
def test_cnd_on_the_sweep_is_least_at_one(oracle, kind, n):
    p = np.asarray(oracle.probabilities(SPACE))

    def apart(beta):
        token = kind == "tokens"
        q = oracle.probabilities(SPACE, 1 / beta) if token else power(p, beta)
        return np.sum((MAPS[n] @ (np.asarray(q) - p)) ** 2)

    # A root of CND would be a least point: look on both sides and around 1.
    found = minimize_scalar(apart, bounds=(0.25, 4), method="bounded")
    np.testing.assert_allclose(found.x, 1, atol=1e-5)
    for ends in ((0.25, 0.9), (1.1, 4)):
        side = minimize_scalar(apart, bounds=ends, method="bounded")
        nearest = min(ends, key=lambda b: abs(b - 1))
        np.testing.assert_allclose(side.x, nearest, atol=1e-3)
        assert side.fun > 1e-5
    assert apart(1.0) <= 1e-30


@pytest.mark.claim("N9.7")
def test_order_along_the_sweep_holds_for_most_oracles_by_covariances():
    always = dict.fromkeys(MAPS, 0)
    for p in oracles(90, 60):
        log_p = np.log(p)
        for n, a in MAPS.items():
            score = a.T @ (a @ p)
            signs = []
            for beta in BETAS[::2]:
                q = power(p, beta)
                signs.append(q @ (score * log_p) - (q @ score) * (q @ log_p) > 0)
            always[n] += all(signs)
    assert always[3] == 60
    assert 30 <= always[1] < 60
    assert always[1] < always[2] < 60


# -- BLEU beside it, from the table of all triples ----------------------------------


@pytest.fixture(scope="module")
def triples():
    return {order: listed_bleu(SPACE, order) for order in (1, 2, 3)}


@pytest.mark.claim("N9.8")
def test_the_best_trade_off_of_bleu_on_the_sweep(oracle, triples):
    p = np.asarray(oracle.probabilities(SPACE))
    models = [power(p, beta) for beta in BETAS]
    best = []
    for table in triples.values():
        sums = [2 * quality(table, q, p) + diversity(table, q) for q in models]
        best.append(BETAS[np.argmax(sums)])
    np.testing.assert_allclose(best, [2.297, 1.366, 1.035], atol=1e-3)
    for a in MAPS.values():
        grams = [a @ q for q in models]
        sums = [2 * g @ (a @ p) - g @ g for g in grams]
        assert np.argmax(sums) == REAL


def slope_at_p(table, p):
    """dV / dU along the powers of P, in closed form."""
    step = p * (np.log(p) - p @ np.log(p))
    du = quality(table, step, p)
    second = np.einsum("ijk,i,j,k", table, p, step, p, optimize=True)
    return -(du + 2 * second) / du


@pytest.mark.claim("N9.9")
def test_the_weight_that_bleu_needs_depends_on_p(triples):
    needed = np.array([slope_at_p(triples[2], p) for p in oracles(91, 30)])
    assert np.ptp(needed) > 0.5
    assert (needed > -2).all()
    pair = qd.BleuPair(SPACE, 2, 2, 2)
    p = oracles(91, 30)[0]
    du, dv = (
        jax.grad(lambda b, m=m: m(qd.temper(p, b)))(1.0)
        for m in (lambda q: pair.quality(q, p), pair.diversity)
    )
    np.testing.assert_allclose(dv / du, needed[0], rtol=1e-9)


@pytest.mark.claim("N9.10")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_bleu_of_two_texts_is_symmetric(triples, n):
    single = np.einsum("ijj->ij", triples[n])
    assert (single == single.T).all()
    rng = np.random.default_rng(n)
    for p in oracles(92, 5):
        d = rng.normal(size=64)
        d -= d.mean()
        du, dv = d @ single @ p, -(d @ single @ p + p @ single @ d)
        np.testing.assert_allclose(dv, -2 * du, rtol=1e-10)


@pytest.mark.claim("N9.11")
@pytest.mark.parametrize("n", [1, 2])
def test_a_tilt_beats_p_in_bleu_and_in_self_bleu(triples, n):
    table = triples[n]
    for p in oracles(93, 10):
        gu = np.einsum("ijk,j,k", table, p, p, optimize=True)
        gv = -gu - 2 * np.einsum("ijk,i,k", table, p, p, optimize=True)
        parts = [g - p @ g for g in (gu, gv)]
        d = sum(g / np.sqrt(p @ g**2) for g in parts)
        assert p @ (gu * d) - (p @ gu) * (p @ d) > 0
        tilted = p * np.exp(0.01 * d)
        q = tilted / tilted.sum()
        assert quality(table, q, p) > quality(table, p, p)
        assert diversity(table, q) > diversity(table, p)
