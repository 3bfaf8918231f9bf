"""Along the powers of P: quality, diversity, CND, BLEU; temperatures and samplers."""

from dataclasses import replace
from functools import cache
from itertools import product
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lab import generators as gen
from lab.corpora.training import from_table, train
from models import positive, power, shares_of_texts
from referees.enumerated_bleu import diversity, listed_bleu, quality
from referees.prefixes import masses_after
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import entr, logsumexp, rel_entr, softmax
from scripts import frame

import qdtheory as qd

SEEDS = st.integers(0, 2**16)
SPACE = qd.TextSpace(4, 3)
BETAS = 2.0 ** np.linspace(-2, 2, 81)
MAPS = {n: shares_of_texts(SPACE, n) for n in (1, 2, 3)}


def kl(a, b):
    return float(rel_entr(a, b).sum())


def oracles(seed, number):
    """Laws of LSTMs of the default size and spread."""
    keys = jax.random.split(jax.random.key(seed), number)
    models = (qd.LSTMLanguageModel.random(key, vocab_size=4) for key in keys)
    return np.array([model.probabilities(SPACE) for model in models])


# --- quality, diversity and CND -----------------------------------------------------


@pytest.mark.claim("N9.1")
@given(seed=SEEDS, size=st.sampled_from([2, 5, 64]))
@settings(max_examples=10)
def test_slopes_on_the_powers_integrate_to_the_metrics(seed, size):
    p, nodes = positive(seed, size), np.polynomial.legendre.leggauss(40)
    beta, weights = 1.4 + 1.1 * nodes[0], 1.1 * nodes[1]  # from 0.3 to 2.5
    models = [power(p, b) for b in beta]
    variances = [q @ np.log(p) ** 2 - (q @ np.log(p)) ** 2 for q in models]
    for metric, slope in (
        (lambda q: qd.LL_SE.quality(q, p), 1),
        (qd.entropy, -beta),
        (lambda q: qd.kl_divergence(q, p), beta - 1),
    ):
        change = float(metric(power(p, 2.5)) - metric(power(p, 0.3)))
        # 40 nodes resolve this to rounding.
        assert change == pytest.approx(weights @ (slope * variances), 1e-9, 1e-12)


@pytest.mark.claim("N9.2")
@pytest.mark.parametrize("f", [qd.functions.LL, qd.functions.CR, lambda x: x**3])
@pytest.mark.parametrize("g", [qd.functions.SE, qd.functions.NRR, qd.Tsallis(0.5)])
def test_every_rising_quality_and_concave_diversity_follow_the_powers(f, g):
    pair = qd.SeparablePair(f, g)
    for seed, size in product(range(2), (2, 6)):
        p = positive(seed, size)
        models = [power(p, beta) for beta in np.linspace(0.2, 3, 15)]
        assert (np.diff([float(pair.quality(q, p)) for q in models]) > 0).all()
        assert (np.diff([float(pair.diversity(q)) for q in models]) < 0).all()


@pytest.mark.claim("N9.6")
@pytest.mark.parametrize("n", MAPS)
@pytest.mark.parametrize("kind", ["texts", "tokens"])
def test_cnd_on_the_sweep_is_least_at_one(kind, n):
    model = notebooks_oracle()
    p = np.asarray(model.probabilities(SPACE))

    def apart(beta):
        token = kind == "tokens"
        q = model.probabilities(SPACE, 1 / beta) if token else power(p, beta)
        return np.sum((MAPS[n] @ (np.asarray(q) - p)) ** 2)

    # A root of CND would be a least point: look on both sides and around 1.
    for low, high, least in ((0.25, 4, 1), (0.25, 0.9, 0.9), (1.1, 4, 1.1)):
        found = minimize_scalar(apart, bounds=(low, high), method="bounded")
        np.testing.assert_allclose(found.x, least, atol=1e-5 if least == 1 else 1e-3)
        assert least == 1 or found.fun > 1e-5
    assert apart(1.0) <= 1e-30


@pytest.mark.claim("N9.7")
def test_order_along_the_sweep_holds_for_most_oracles_by_covariances():
    always = dict.fromkeys(MAPS, 0)
    for p, (n, a) in product(oracles(90, 60), MAPS.items()):
        score, log_p = a.T @ (a @ p), np.log(p)
        models = [power(p, beta) for beta in BETAS[::2]]
        slopes = [q @ (score * log_p) - (q @ score) * (q @ log_p) for q in models]
        always[n] += min(slopes) > 0
    assert always[3] == 60 > always[2] > always[1] >= 30


# --- BLEU beside it, from the table of all triples ----------------------------------


@cache
def triples(n):
    return listed_bleu(SPACE, n)


@cache
def notebooks_oracle():
    key = jax.random.split(jax.random.key(9), 2)[0]
    return qd.LSTMLanguageModel.random(key, vocab_size=4)


@pytest.mark.claim("N9.8")
def test_the_best_trade_off_of_bleu_on_the_sweep():
    p = np.asarray(notebooks_oracle().probabilities(SPACE))
    models = [power(p, beta) for beta in BETAS]
    for (n, a), expected in zip(MAPS.items(), (2.297, 1.366, 1.035)):
        table = triples(n)
        sums = [2 * quality(table, q, p) + diversity(table, q) for q in models]
        assert BETAS[np.argmax(sums)] == pytest.approx(expected, abs=1e-3)
        sums = [2 * (a @ q) @ (a @ p) - (a @ q) @ (a @ q) for q in models]
        assert BETAS[np.argmax(sums)] == 1


@pytest.mark.claim("N9.9")
def test_the_only_weight_that_can_serve_bleu_depends_on_p_and_may_not_serve():
    """dV / dU along the powers of P, in closed form; then a coarse sweep."""
    table, needed, lost = triples(2), [], 0
    key = jax.random.split(jax.random.key(9), 2)[1]
    for each in jax.random.split(key, 100):
        model = qd.LSTMLanguageModel.random(each, vocab_size=4)
        p = np.asarray(model.probabilities(SPACE))
        step = p * (np.log(p) - p @ np.log(p))
        du = quality(table, step, p)
        second = np.einsum("ijk,i,j,k", table, p, step, p, optimize=True)
        needed.append((du + 2 * second) / du)
        q = np.array([p, *(power(p, beta) for beta in BETAS[::4])])
        own = np.einsum("bij,bi,bj->b", np.tensordot(q, table, (1, 2)), q, q)
        sums = needed[-1] * (q @ (table @ p @ p)) - own
        lost += sums.max() > sums[0] + 1e-9
    assert min(needed) < 1.1 < 1.8 < max(needed) < 2
    assert lost == 7


@pytest.mark.claim("N9.11")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_bleu_of_two_texts_is_symmetric_and_a_tilt_beats_p_in_that_of_three(n):
    table = triples(n)
    single = np.einsum("ijj->ij", table)
    assert (single == single.T).all()  # hence dV = -2 dU along every move
    for p in oracles(93, 10) if n < 3 else ():
        gu = np.einsum("ijk,j,k", table, p, p, optimize=True)
        gv = -gu - 2 * np.einsum("ijk,i,k", table, p, p, optimize=True)
        parts = [g - p @ g for g in (gu, gv)]
        tilted = p * np.exp(0.01 * sum(g / np.sqrt(p @ g**2) for g in parts))
        q = tilted / tilted.sum()
        assert quality(table, q, p) > quality(table, p, p)
        assert diversity(table, q) > diversity(table, p)


# --- the temperature of tokens ------------------------------------------------------

LENGTHS = qd.TextSpace(vocab_size=3, lengths=(1, 2, 3, 4))
COLD_OR_HOT = st.sampled_from([0.4, 0.7, 1.4, 2.5])


def with_end(seed, sigma=2.0):
    key = jax.random.key(seed)
    return qd.LSTMLanguageModel.random(key, 4, 6, 6, sigma, end_token=3)


def without_end(seed, sigma=2.0, words=3):
    return qd.LSTMLanguageModel.random(jax.random.key(seed), words, 6, 6, sigma)


@pytest.mark.claim("N11.1")
@given(SEEDS, COLD_OR_HOT)
@settings(max_examples=8)
def test_the_entropy_lacking_is_the_least_divergence(seed, temperature):
    """Both from one grid of powers: entropy at equal LL interpolated, KL by hand."""
    model = with_end(seed)
    p, q = (np.asarray(model.probabilities(LENGTHS, t)) for t in (1.0, temperature))
    powers = np.array([power(p, beta) for beta in np.linspace(0, 8, 4001)])
    ll, entropy = powers @ np.log(p), entr(powers).sum(axis=1)
    assume(ll[0] < q @ np.log(p) < ll[-1])
    lacking = np.interp(q @ np.log(p), ll, entropy) - entr(q).sum()
    least = rel_entr(q, powers).sum(axis=1).min()
    # The grid's error is second order in its step, .002, times variances below 30.
    assert lacking == pytest.approx(least, abs=1e-4)
    assert least > 0


@pytest.mark.claim("N11.2")
@given(SEEDS, st.floats(0.2, 3), st.floats(0.2, 3))
@settings(max_examples=10)
def test_pythagoras_at_equal_quality(seed, beta, other):
    """For any Q of the quality of a power of P: it is moved along SE alone."""
    rng = np.random.default_rng(seed)
    p, move = rng.dirichlet(np.ones(12)), rng.normal(size=12)
    best, kept = power(p, beta), np.stack([np.ones(12), np.log(p)])
    # Directions that keep the sum and the quality.
    move -= kept.T @ np.linalg.lstsq(kept.T, move, rcond=None)[0]
    q = best + move * 0.5 * min(best / np.abs(move))
    whole = kl(q, power(p, other))
    assert whole == pytest.approx(kl(q, best) + kl(best, power(p, other)), abs=1e-11)


@pytest.mark.claim("N11.1")
@given(SEEDS, COLD_OR_HOT)
@settings(max_examples=8)
def test_the_weight_of_a_text_is_the_sum_of_its_normalisers(seed, temperature):
    """log Z_t of each prefix, from the sums over the texts that go on from it."""
    model = with_end(seed)
    p, q = (np.asarray(model.probabilities(LENGTHS, t)) for t in (1.0, temperature))

    @cache
    def log_normaliser(prefix):
        mass = masses_after(LENGTHS, p, prefix)
        return np.log(((mass / mass.sum()) ** (1 / temperature)).sum())

    texts = [tuple(row[row >= 0].tolist()) for row in LENGTHS.tokens]
    each = ([x[:t] for t in range(min(len(x) + 1, 4))] for x in texts)
    expected = [sum(map(log_normaliser, prefixes)) for prefixes in each]
    found = model.log_probability(LENGTHS.tokens) / temperature
    found -= model.log_probability(LENGTHS.tokens, temperature)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    # Jensen's gap of these weights is the divergence from tempered texts.
    gap = np.log(q @ np.exp(expected)) - q @ expected
    assert gap == pytest.approx(kl(q, power(p, 1 / temperature)), abs=1e-10)


@pytest.mark.claim("N11.4", "N11.12")
@pytest.mark.parametrize("temperature", [1.6, 2.5])
def test_the_gap_from_samples_errs_downwards(temperature):
    """Small samples of the exact distribution: the mean is below, large ones reach."""
    model, rng, found = with_end(4), np.random.default_rng(0), []
    p, q = (np.asarray(model.probabilities(LENGTHS, t)) for t in (1.0, temperature))
    w = np.log(p) / temperature - np.log(q)
    for size in (20, 20_000):
        samples = [*rng.multinomial(size, q, 4000) / size, q]
        *gaps, exact = (logsumexp(w, b=x) - w @ x for x in samples)
        found.append((np.mean(gaps) - exact, np.std(gaps) / 4000**0.5))
    (few, error), (many, small) = found
    assert few < -4 * error
    # The bias is of order 1 / size: a thousandth of the first one.
    assert abs(many) < 4 * small - few / 500


@pytest.mark.claim("N11.5")
@given(SEEDS)
@settings(max_examples=5)
def test_the_gap_near_the_real_distribution(seed):
    """s by hand: log-probabilities plus entropies of the choices, prefix by prefix."""
    model, space = without_end(seed, 1.5), qd.TextSpace(vocab_size=3, lengths=3)
    p, s = np.asarray(model.probabilities(space)).reshape(3, 3, 3), 0
    for axis in range(3):
        below = p.sum(axis=tuple(range(axis + 1, 3)), keepdims=True)
        log_next = np.log(below / below.sum(axis=axis, keepdims=True))
        s = s + log_next - (np.exp(log_next) * log_next).sum(axis=axis, keepdims=True)
    p, s = p.ravel(), s.ravel()
    c = np.cov(np.array([s, np.log(p)]), aweights=p, ddof=0)
    law, gaps = (c[0, 0] - c[0, 1] ** 2 / c[1, 1]) / 2, []
    for epsilon in (1e-3, -1e-3):
        q = np.asarray(model.probabilities(space, 1 / (1 + epsilon)))
        grid = np.linspace(1 - 3e-3, 1 + 3e-3, 2001)
        gaps.append(min(kl(q, power(p, beta)) for beta in grid))
    # Third-order terms cancel; rounding of KL is about 1e-16 / 1e-6, and half a step of
    # the grid from the best beta costs at most c[1, 1] / 2 times its square.
    step = c[1, 1] / 2 * 1.5e-6**2 / 1e-6
    assert np.mean(gaps) / 1e-6 == pytest.approx(law, rel=1e-3, abs=1e-7 + step)


@pytest.mark.claim("N11.9")
@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=6)
def test_without_memory_coverage_falls_and_diversity_and_length_rise(seed, sigma):
    """Independent tokens: CR_n = CR_1^n, NRR_n = -(-NRR_1)^n, and a geometric length.

    The end has one chance at each place but the first; it moves towards 1 / |V|.
    """
    model, rates, lengths = without_end(seed, sigma, 4), [], []
    forgetful = replace(model, output_weights=jnp.zeros_like(model.output_weights))
    p = np.asarray(forgetful.probabilities(SPACE))
    # An end that is likelier than any word, as after a full stop.
    biases = model.output_biases.at[-1].set(model.output_biases.max() + 0.5)
    ending = replace(forgetful, output_biases=biases, end_token=3)
    for t in 1.5 ** np.arange(-3, 5):
        q = np.asarray(forgetful.probabilities(SPACE, t))
        row = [[(a @ q) @ (a @ p), (a @ q) @ (a @ q)] for a in MAPS.values()]
        expected = [np.power(row[0], n) for n in (2, 3)]
        np.testing.assert_allclose(row[1:], expected, 1e-12)
        rates.append(np.ravel(row))
        end = float(jax.nn.softmax(biases / t)[-1])
        lengths.append(float(ending.probabilities(LENGTHS, t) @ LENGTHS.text_lengths))
        expected = sum((1 - end) ** k for k in range(4))
        assert lengths[-1] == pytest.approx(expected, abs=1e-12)
    assert (np.diff(rates, axis=0) < 0).all()
    assert (np.diff(lengths) > 0).all()


@cache
def learnt():
    """An oracle, a model that learnt from 6,000 of its texts, one from 15."""
    oracle = with_end(1)
    texts = from_table(oracle.sample(jax.random.key(7), 6000, 4), (0, 1, 2))
    size = {"embedding_size": 8, "hidden_size": 16, "learning_rate": 0.01}
    some = texts[:15] if texts[:15].lengths.max() == 4 else texts[15:30]
    fits = train(texts, **size, batch_size=50, epochs=8)
    return oracle, fits, train(some, **size, batch_size=15, epochs=800, every=800)


@pytest.mark.slow
@pytest.mark.claim("N11.10", "N11.14", "N11.16")
@pytest.mark.parametrize("n", [2, 3, 4])  # unigrams of three words hardly move
def test_cnd_is_least_near_1_unless_texts_are_learnt_by_heart(n):
    """Exactly, on a fine grid of temperatures."""
    grid = 1.5 ** np.linspace(-2, 4, 121)
    p, places = learnt()[0].probabilities(LENGTHS), []
    for model in learnt():
        laws = (model.probabilities(LENGTHS, t) for t in grid)
        both = [[LENGTHS.ngram_distribution(x, n) for x in (q, p)] for q in laws]
        places.append(grid[np.argmin([qd.cnd(*x) for x in both])])
    assert places[0] == pytest.approx(1, abs=1e-9)
    assert abs(places[1] - 1) < 0.15
    assert n == 2 or places[2] > 1.3


@pytest.mark.claim("N11.15")
@pytest.mark.parametrize("n", [2, 3])
def test_the_expected_plug_in_of_few_texts_is_least_elsewhere(n):
    """E CND = CND + tr Cov / S + ..., exactly, along the sweep of the oracle itself."""
    space, model = qd.TextSpace(vocab_size=3, lengths=4), without_end(2)
    shares, grid = shares_of_texts(space, n), 1.5 ** np.linspace(-2, 4, 121)
    q = np.array([model.probabilities(space, t) for t in grid])
    mean = q @ shares.T
    exact = ((mean - shares @ model.probabilities(space)) ** 2).sum(axis=1)
    trace = (q @ shares.T**2).sum(axis=1) - (mean**2).sum(axis=1)
    assert grid[np.argmin(exact)] == pytest.approx(1, abs=1e-9)
    assert abs(grid[np.argmin(exact + trace / 5)] - 1) > 0.05


# --- one sampler for all prompts ----------------------------------------------------


def powers(p, beta):
    """Of each row, by sums of exponentials."""
    return softmax(np.reshape(beta, (-1, 1)) * np.log(p), axis=1)


def common(p, weights, se):
    def excess(b):
        return weights @ entr(powers(p, b)).sum(1) - se

    return brentq(excess, 1e-6, 200, xtol=1e-15)


def optimum(p, weights, quality, diversity, floor):
    """The best mean quality of any model whose mean diversity is at least a number."""

    def mean(of):
        return lambda x: weights @ of(softmax(x.reshape(p.shape), axis=1))

    spare = {"type": "ineq", "fun": lambda x: mean(diversity)(x) - floor}
    start, settings = np.log(p).ravel() * 1.1, {"ftol": 1e-13, "maxiter": 1000}
    settings = {"constraints": spare, "method": "SLSQP", "options": settings}
    return -minimize(lambda x: -mean(quality)(x), start, **settings).fun


@pytest.mark.claim("N24.19")
def test_a_model_loses_its_mean_divergence_from_one_power_the_best_of_all_models():
    """By a search that knows no powers: no temperatures are better than one."""
    rng = np.random.default_rng(19)
    for prompts, texts in ((2, 3), (3, 4), (2, 5)):
        p, q = rng.dirichlet(np.full(texts, 2.0), (2, prompts))
        weights = rng.dirichlet(np.full(prompts, 3.0))

        def ll(q, p=p):
            return (q * np.log(p)).sum(1)

        se = weights @ entr(q).sum(1)
        best = optimum(p, weights, ll, lambda q: entr(q).sum(1), se)
        beta = common(p, weights, se)
        assert best == pytest.approx(weights @ ll(powers(p, beta)), abs=1e-6)
        lost = lost_nats(p, weights, q)
        assert best - weights @ ll(q) == pytest.approx(lost, abs=1e-6)


def test_the_cost_of_unequal_temperatures():
    rng, misses = np.random.default_rng(21), []
    p, weights = rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(3))
    beta, steps = rng.uniform(0.5, 3), rng.normal(size=3)
    for size in (1e-3, 1e-4):
        own = beta + size * steps
        q = powers(p, own)
        best = powers(p, common(p, weights, weights @ entr(q).sum(1)))
        lost = weights @ ((best - q) * np.log(p)).sum(1)
        mean = (best * np.log(p)).sum(1)
        v = weights * ((best * np.log(p) ** 2).sum(1) - mean**2)
        said = v @ (own - v @ own / v.sum()) ** 2 / (2 * (v @ own / v.sum()))
        misses.append(abs(lost / said - 1))
    assert misses[1] < misses[0] / 5 < 0.01


def lost_nats(p, weights, q):
    """As a divergence from the common power."""
    beta = common(p, weights, weights @ entr(q).sum(1))
    return weights @ rel_entr(q, powers(p, beta)).sum(1) / beta


@pytest.mark.claim("N24.22")
def test_fifty_prompts():
    """The same worlds; what is lost is summed as a divergence."""
    rng, weights, found = np.random.default_rng([24, 22]), np.full(50, 0.02), []
    p = [rng.dirichlet(np.full(200, a)) for a in np.geomspace(0.02, 3, 50)]
    p = (1 - 1e-6) * np.array(p) + 1e-6 / 200
    for sd in (0.1, 0.3, 0.5):
        drawn = np.exp(sd * rng.normal(size=(40, 50)))
        found.append(np.mean([lost_nats(p, weights, powers(p, own)) for own in drawn]))
    assert found == pytest.approx([0.0050, 0.0473, 0.1227], abs=6e-5)
    level = entr(p).sum(1).mean()
    own = [common(row[None], np.ones(1), level) for row in p]
    assert lost_nats(p, weights, powers(p, own)) == pytest.approx(0.47, abs=0.005)


def test_the_common_dial_of_coverage_and_repetition_is_a_tilt():
    rng, tilts = np.random.default_rng(23), 0
    for weight in (1.0, 1.0, 30.0, 30.0):
        p, q = rng.dirichlet(np.full(4, weight), (2, 2))
        weights = rng.dirichlet([3, 3])
        repeats = weights @ (q**2).sum(1)

        def cr(q, p=p):
            return (p * q).sum(1)

        # Of all interior models of equal repetition: 1/4 + slope (P - 1/4).
        slope = np.sqrt((repeats - 0.25) / (weights @ ((p - 0.25) ** 2).sum(1)))
        tilted = 0.25 + slope * (p - 0.25)
        if tilted.min() >= 0:
            tilts += 1
            best = optimum(p, weights, cr, lambda q: -(q**2).sum(1), -repeats)
            lost = weights @ ((q - tilted) ** 2).sum(1) / (2 * slope)
            assert best == pytest.approx(weights @ cr(tilted), abs=1e-6)
            assert best - weights @ cr(q) == pytest.approx(lost, abs=1e-6)
    assert tilts >= 2


@pytest.mark.claim("N24.24")
def test_token_temperatures_of_their_own_can_be_better():
    """Two prompts of random laws: both temperatures moved at one mean entropy."""
    rng, space, better = np.random.default_rng(24), qd.TextSpace(3, 3), 0
    for _ in range(10):
        laws = [rng.dirichlet(np.full(3, 0.7), (2, 3**i)) for i in range(3)]
        p = [gen.text_distribution([law[c] for law in laws], space) for c in (0, 1)]

        def mean(*dials, p=p):
            """Of LL and SE."""
            dials = (gen.Temperature(float(t)) for t in dials)
            q = [gen.decode(x, space, dial) for x, dial in zip(p, dials)]
            ll, se = [y @ np.log(x) for x, y in zip(p, q)], entr(q).sum(axis=1)
            return np.array([np.mean(ll), np.mean(se)])

        one, gains = mean(0.45, 0.45), [-np.inf]
        for first in 0.45 * np.linspace(0.8, 1.25, 19):

            def excess(t, first=first, mean=mean, one=one):
                return (mean(first, t) - one)[1]

            if excess(0.1) < 0 < excess(3):
                other = brentq(excess, 0.1, 3, xtol=1e-12)
                gains.append((mean(first, other) - one)[0])
        better += bool(max(gains) > 1e-7)
    assert better >= 9


@pytest.mark.claim("N24.32")
def test_temperatures_undo_what_a_model_is_too_sure_of():
    p, half = np.random.default_rng(32).dirichlet(np.ones(5), 2), np.full(2, 0.5)
    model = powers(p, [2.0, 0.5])
    # The temperatures 2 t and t / 2 of the model are t of P; one is not.
    for t in (0.5, 1.0, 2.0):
        assert abs(lost_nats(p, half, powers(model, [1 / (2 * t), 2 / t]))) <= 1e-9
        assert lost_nats(p, half, powers(model, 1 / t)) > 0.01


# --- samplers.csv -------------------------------------------------------------------

EIGHT = qd.TextSpace(vocab_size=8, lengths=3)


@cache
def frontiers(k):
    """An oracle's law; its LL by SE and CR by repetition, as curves."""
    p = np.asarray(qd.oracle(EIGHT, k))
    q = powers(p[None], np.geomspace(40, 0.3, 300))
    ll = PchipInterpolator(entr(q).sum(1), q @ np.log(p))
    # The optimum of CR is the projection of a multiple of P.
    slopes, m = np.geomspace(0.3, 3e4, 500)[:, None], np.arange(1, 513)
    tau = ((slopes * np.sort(p)[::-1].cumsum() - 1) / m).max(axis=1, keepdims=True)
    best = np.maximum(slopes * p - tau, 0)
    x, first = np.unique((best**2).sum(1), return_index=True)
    return p, ll, PchipInterpolator(x, (best @ p)[first])


def medians(decoders, blur, kept=None):
    """Over the oracles, of the medians over a dial: nats, and the share of CR."""
    reals = [frontiers(k) for k in range(100)]
    laws = gen.next_token_distributions(np.array([p for p, *_ in reals]), EIGHT)
    laws = [(1 - blur) * law + blur / 8 for law in laws]
    nats, shares = [[] for _ in reals], [[] for _ in reals]
    for decoder in decoders:
        q = gen.text_distribution([decoder(law) for law in laws], EIGHT)
        for mine, (p, ll, cr), x, y in zip(q, reals, nats, shares):
            part = entr(mine).sum() / entr(p).sum()
            if 0.25 < part < 0.95 if kept is None else abs(part - kept) <= 0.05:
                x.append(ll(entr(mine).sum()) - mine @ np.log(p))
            if 0.25 < log(mine @ mine) / log(p @ p) < 0.95:
                best = cr(mine @ mine)
                y.append((best - mine @ p) / (best - p @ p))
    return [np.median([np.median(x) for x in y if x]) for y in (nats, shares)]


def listed(world, sampler, measure, kept=None):
    """The median of the table."""
    rows = frame("samplers.csv").query("world == @world and measure == @measure")
    rows = rows[rows.sampler == sampler]
    return rows[rows.kept.isna() if kept is None else rows.kept == kept].q50.iloc[0]


GRID = np.linspace(0.025, 0.975, 39)
DIALS = {
    "temperature": [gen.Temperature(t) for t in np.geomspace(0.05, 0.95, 39)],
    "min-p": [gen.MinP(share) for share in GRID],
    "top-H": [gen.TopH(share) for share in GRID],
}


@pytest.mark.slow
@pytest.mark.claim("N24.28", "N24.30", "N24.31")
@pytest.mark.parametrize("sampler", DIALS)
@pytest.mark.parametrize(("world", "blur"), [("itself", 0.0), ("blurred", 0.1)])
def test_rows_of_the_table_by_interpolated_frontiers(sampler, world, blur):
    found = medians(DIALS[sampler], blur), medians(DIALS[sampler], blur, 0.7)
    for (nats, _), kept in zip(found, (None, 0.7)):
        assert listed(world, sampler, "nats", kept) == pytest.approx(nats, rel=5e-3)
    share = pytest.approx(found[0][1], rel=3e-2)
    assert listed(world, sampler, "of CR") == share
