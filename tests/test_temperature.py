"""The temperature of tokens against powers of texts, along sweeps and in the table."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lab.corpora.training import from_table, train
from models import power
from referees.prefixes import masses_after
from scipy.special import logsumexp, rel_entr
from scripts import rows_of, script

import qdtheory as qd

LENGTHS = (1, 2, 3, 4)
SPACE = qd.TextSpace(vocab_size=3, lengths=LENGTHS)
seeds = st.integers(0, 2**16)
cold_or_hot = st.sampled_from([0.4, 0.7, 1.4, 2.5])


def oracle_with_end(seed, sigma=2.0, words=3):
    return qd.LSTMLanguageModel.random(
        jax.random.key(seed), words + 1, 6, 6, sigma, end_token=words
    )


def kl(a, b) -> float:
    return float(rel_entr(a, b).sum())


@pytest.mark.claim("N11.1")
@given(seeds, cold_or_hot)
@settings(max_examples=8)
def test_the_entropy_lacking_is_the_least_divergence(seed, temperature):
    """Both from one grid of powers: entropy at equal LL interpolated, KL by hand."""
    model = oracle_with_end(seed)
    p = np.asarray(model.probabilities(SPACE))
    q = np.asarray(model.probabilities(SPACE, temperature))
    powers = [power(p, beta) for beta in np.linspace(0, 8, 4001)]
    quality = np.array([x @ np.log(p) for x in powers])
    entropy = np.array([-(x @ np.log(x)) for x in powers])
    assume(quality[0] < q @ np.log(p) < quality[-1])
    lacking = np.interp(q @ np.log(p), quality, entropy) + q @ np.log(q)
    least = min(kl(q, x) for x in powers)
    # The grid's error is second order in its step, .002, times variances below 30.
    assert lacking == pytest.approx(least, abs=1e-4)
    assert least > 0


@pytest.mark.claim("N11.2")
@given(seeds, st.floats(0.2, 3), st.floats(0.2, 3))
def test_pythagoras_at_equal_quality(seed, beta, other):
    """For any Q of the quality of a power of P: it is moved along SE alone."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(12))
    best = power(p, beta)
    # Directions that keep the sum and the quality.
    kept = np.stack([np.ones(12), np.log(p)])
    move = rng.normal(size=12)
    move -= kept.T @ np.linalg.lstsq(kept.T, move, rcond=None)[0]
    q = best + move * 0.5 * min(best / np.abs(move))
    whole = kl(q, power(p, other))
    assert whole == pytest.approx(kl(q, best) + kl(best, power(p, other)), abs=1e-11)


@pytest.mark.claim("N11.3")
@given(seeds, cold_or_hot)
@settings(max_examples=20)
def test_the_weight_of_a_text_is_the_sum_of_its_normalisers(seed, temperature):
    """log Z_t of each prefix, from the sums over the texts that go on from it."""
    model = oracle_with_end(seed)
    p = np.asarray(model.probabilities(SPACE))

    @cache
    def log_normaliser(prefix):
        mass = masses_after(SPACE, p, prefix)
        return np.log(((mass / mass.sum()) ** (1 / temperature)).sum())

    texts = [tuple(row[row >= 0].tolist()) for row in SPACE.tokens]
    expected = [
        sum(log_normaliser(text[:t]) for t in range(min(len(text) + 1, 4)))
        for text in texts
    ]
    found = model.log_probability(SPACE.tokens) / temperature
    found -= model.log_probability(SPACE.tokens, temperature)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    # Jensen's gap of these weights is the divergence from tempered texts.
    q = np.asarray(model.probabilities(SPACE, temperature))
    gap = np.log(q @ np.exp(expected)) - q @ expected
    assert gap == pytest.approx(kl(q, power(p, 1 / temperature)), abs=1e-10)


def jensen_gap(log_p, log_q, beta, weights):
    w = beta * log_p - log_q
    return logsumexp(w, b=weights) - weights @ w


@pytest.mark.claim("N11.4", "N11.12")
@pytest.mark.parametrize("temperature", [1.6, 2.5])
def test_the_gap_from_samples_errs_downwards(temperature):
    """Small samples of the exact distribution: the mean is below, large ones reach."""
    model = oracle_with_end(4)
    q = np.asarray(model.probabilities(SPACE, temperature))
    log_p, log_q = np.log(model.probabilities(SPACE)), np.log(q)
    exact = jensen_gap(log_p, log_q, 1 / temperature, q)
    rng, found = np.random.default_rng(0), {}
    for size in (20, 20_000):
        counts = rng.multinomial(size, q, 4000) / size
        gaps = [jensen_gap(log_p, log_q, 1 / temperature, x) for x in counts]
        found[size] = np.mean(gaps), np.std(gaps) / 4000**0.5
    assert found[20][0] < exact - 4 * found[20][1]
    # The bias is of order 1 / size: a thousandth of the first one.
    bias = (exact - found[20][0]) / 1000
    assert abs(found[20_000][0] - exact) < 4 * found[20_000][1] + 2 * bias


@pytest.mark.claim("N11.5")
@given(seeds)
@settings(max_examples=10)
def test_the_gap_near_the_real_distribution(seed):
    """s by hand: log-probabilities plus entropies of the choices, prefix by prefix."""
    model = qd.LSTMLanguageModel.random(jax.random.key(seed), 3, 6, 6, 1.5)
    space = qd.TextSpace(vocab_size=3, lengths=3)
    p = np.asarray(model.probabilities(space)).reshape(3, 3, 3)
    s = np.zeros_like(p)
    for axis in range(3):
        below = p.sum(axis=tuple(range(axis + 1, 3)), keepdims=True)
        log_next = np.log(below / below.sum(axis=axis, keepdims=True))
        s += log_next - (np.exp(log_next) * log_next).sum(axis=axis, keepdims=True)
    p, s = p.ravel(), s.ravel()
    c = np.cov(np.array([s, np.log(p)]), aweights=p, ddof=0)
    law = (c[0, 0] - c[0, 1] ** 2 / c[1, 1]) / 2
    gaps = []
    for epsilon in (1e-3, -1e-3):
        q = np.asarray(model.probabilities(space, 1 / (1 + epsilon)))
        grid = np.linspace(1 - 3e-3, 1 + 3e-3, 2001)
        gaps.append(min(kl(q, power(p, beta)) for beta in grid))
    # Third-order terms cancel; rounding of KL is about 1e-16 / 1e-6, and half a step of
    # the grid from the best beta costs at most c[1, 1] / 2 times its square.
    step = c[1, 1] / 2 * 1.5e-6**2 / 1e-6
    assert np.mean(gaps) / 1e-6 == pytest.approx(law, rel=1e-3, abs=1e-7 + step)


@pytest.mark.claim("N11.9")
@given(seeds, st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=10)
def test_without_memory_coverage_falls_and_diversity_rises(seed, sigma):
    """Independent tokens: CR_n = CR_1^n and NRR_n = -(-NRR_1)^n, by N9.2 monotone."""
    model = qd.LSTMLanguageModel.random(jax.random.key(seed), 4, 6, 6, sigma)
    forgetful = replace(model, output_weights=jnp.zeros_like(model.output_weights))
    space = qd.TextSpace(vocab_size=4, lengths=4)
    p, rates = forgetful.probabilities(space), []
    for t in 1.5 ** np.arange(-3, 5):
        q = forgetful.probabilities(space, t)
        row = []
        for n in (1, 2, 3):
            q_n, p_n = (np.asarray(space.ngram_distribution(x, n)) for x in (q, p))
            row.append([q_n @ p_n, q_n @ q_n])
        np.testing.assert_allclose(
            row[1:], [np.power(row[0], n) for n in (2, 3)], 1e-12
        )
        rates.append(np.ravel(row))
    assert (np.diff(rates, axis=0) < 0).all()


@pytest.fixture(scope="module")
def learnt():
    """An oracle, a model that learnt from 6,000 of its texts, one from 15."""
    oracle = oracle_with_end(1)
    texts = from_table(oracle.sample(jax.random.key(7), 6000, 4), (0, 1, 2))
    size = {"embedding_size": 8, "hidden_size": 16, "learning_rate": 0.01}
    some = texts[:15] if texts[:15].lengths.max() == 4 else texts[15:30]
    assert some.lengths.max() == 4
    fits = train(texts, **size, batch_size=50, epochs=8)
    return oracle, fits, train(some, **size, batch_size=15, epochs=800, every=800)


def place_of_least_cnd(model, oracle, n) -> float:
    """Exactly, on a fine grid of temperatures."""

    def ngrams(model, temperature):
        q = model.probabilities(SPACE, temperature)
        return np.asarray(SPACE.ngram_distribution(q, n))

    p, grid = ngrams(oracle, 1.0), 1.5 ** np.linspace(-2, 4, 121)
    return grid[np.argmin([np.sum((ngrams(model, t) - p) ** 2) for t in grid])]


@pytest.mark.slow
@pytest.mark.claim("N11.10", "N11.14")
@pytest.mark.parametrize("n", [2, 3, 4])  # unigrams of three words hardly move
def test_cnd_is_least_near_1_for_a_model_that_fits(learnt, n):
    oracle, fits, _ = learnt
    assert abs(place_of_least_cnd(fits, oracle, n) - 1) < 0.15
    assert place_of_least_cnd(oracle, oracle, n) == pytest.approx(1, abs=1e-9)


@pytest.mark.slow
@pytest.mark.claim("N11.16")
@pytest.mark.parametrize("n", [3, 4])
def test_cnd_is_least_far_above_1_for_a_model_that_learnt_by_heart(learnt, n):
    oracle, _, parrot = learnt
    assert place_of_least_cnd(parrot, oracle, n) > 1.3


@pytest.mark.claim("N11.11")
@given(seeds, st.floats(0.3, 4))
@settings(max_examples=20)
def test_length_without_memory_is_geometric(seed, temperature):
    """The end has one chance at each place but the first; it moves towards 1 / |V|."""
    model = oracle_with_end(seed)
    forgetful = replace(model, output_weights=jnp.zeros_like(model.output_weights))
    # An end that is likelier than any word, as after a full stop.
    biases = model.output_biases.at[-1].set(model.output_biases.max() + 0.5)
    forgetful = replace(forgetful, output_biases=biases)

    def mean_length(t):
        return float(forgetful.probabilities(SPACE, t) @ SPACE.text_lengths)

    end = float(jax.nn.softmax(biases / temperature)[-1])
    expected = sum((1 - end) ** k for k in range(4))
    assert mean_length(temperature) == pytest.approx(expected, abs=1e-12)
    assert mean_length(1.5 * temperature) > mean_length(temperature)


@pytest.mark.claim("N11.13")
@given(seeds)
@settings(max_examples=20)
def test_no_sweep_passes_the_real_distribution_in_cr_and_nrr(seed):
    """CR of P is at least that of any model of equal NRR; texts of one length."""
    space = qd.TextSpace(vocab_size=3, lengths=3)
    p, q = (
        qd.LSTMLanguageModel.random(jax.random.key(seed + k), 3, 6, 6, 2.0)
        for k in range(2)
    )
    real = np.asarray(p.probabilities(space))
    for n in (1, 2, 3):
        p_n = np.asarray(space.ngram_distribution(real, n))
        for t in 1.5 ** np.linspace(-3, 4, 15):
            tempered = np.asarray(q.probabilities(space, t))
            q_n = np.asarray(space.ngram_distribution(tempered, n))
            if q_n @ q_n <= p_n @ p_n:  # as diverse: Cauchy and Schwarz
                assert q_n @ p_n <= p_n @ p_n + 1e-15


@pytest.mark.claim("N11.13")
@pytest.mark.parametrize("order", [2, 3])
def test_expected_bleu_and_self_bleu_fall_on_a_sweep(order):
    """The exact expectations over all texts; most oracles, from t = 1.5^-2 on."""
    space, falls = qd.TextSpace(vocab_size=3, lengths=3), []
    for seed in range(20):
        model = qd.LSTMLanguageModel.random(jax.random.key(seed), 3, 6, 6, 2.0)
        p, rates = model.probabilities(space), []
        for t in 1.5 ** np.arange(-2, 5):
            q = model.probabilities(space, t)
            bleu = qd.expected_bleu(space, q, p, order, 3)
            self_bleu = qd.expected_self_bleu(space, q, order, 3)
            rates.append([float(bleu[-1]), float(self_bleu[-1])])
        change = np.diff(rates, axis=0)
        assert (change[:, 1] < 0).mean() > 0.8
        falls.append((change < 0).all())
    assert sum(falls) >= 12


@pytest.mark.claim("N11.14", recount=True)
@pytest.mark.parametrize("n", "1234")
def test_the_table_of_the_sweep_agrees_with_itself_and_has_least_cnd_at_1(n):
    r"""$CND + 2 CR + NRR$ is $\Vert p \Vert^2$, of the references alone."""
    assert script("tables").provenance("temperature_sweep.csv")[0].endswith("--full")
    rows = [r for r in rows_of("temperature_sweep.csv") if r["n"] == n]
    mine = {r["temperature"]: r for r in rows if not r["left_out"]}
    assert len(mine) == 11
    rates = {t: float(r["coverage_rate"]) for t, r in mine.items()}
    for cnd, nrr in (("cnd", "negative_repetition_rate"), ("cnd_pairs", "nrr_pairs")):
        terms = np.array([(r[cnd], r[nrr]) for r in mine.values()], float)
        norms = terms.sum(axis=1) + 2 * np.array([*rates.values()])
        # Six digits of each term are kept.
        assert np.ptp(norms) < 4e-6 * np.abs(terms[:, 1]).max()
        # As measured, without the fit.
        assert min(mine.keys() - {"real"}, key=lambda t: float(mine[t][cnd])) == "1"
    # A group left out moves a rate by about its share, a twentieth.
    for r in rows:
        expected = pytest.approx(rates[r["temperature"]], rel=0.2)
        assert not r["left_out"] or float(r["coverage_rate"]) == expected
    # And ||q||^2 - 2 q.p without each of the groups, against the two neighbours.
    for group in {r["left_out"] for r in rows} - {""}:
        cold, at_1, hot = (
            -float(r["nrr_pairs"]) - 2 * float(r["coverage_rate"])
            for r in rows
            if r["left_out"] == group and 0.8 < float(r["temperature"]) < 1.3
        )
        assert at_1 < min(cold, hot)


@pytest.mark.claim("N11.17", recount=True)
@pytest.mark.parametrize("n", "1234")
def test_cnd_of_captions_is_least_at_1(n):
    """By the plug-in too, and without any of the groups."""
    table = [r for r in rows_of("caption_sweep.csv") if r["n"] == n]
    mine = [r for r in table if not r["left_out"] and r["temperature"] != "real"]
    assert {r["sentences"] for r in mine} == {"50000"}
    assert len(mine) == 10
    for cnd in ("cnd", "cnd_pairs"):
        assert min(mine, key=lambda r: float(r[cnd]))["temperature"] == "1"
    swept = [[float(r[x]) for r in mine] for x in ("coverage_rate", "nrr_pairs")]
    assert swept[0] == sorted(swept[0], reverse=True)
    assert swept[1] == sorted(swept[1])
    for group in {r["left_out"] for r in table} - {""}:
        cold, at_1, hot = (
            -float(r["nrr_pairs"]) - 2 * float(r["coverage_rate"])
            for r in table
            if r["left_out"] == group and 0.8 < float(r["temperature"]) < 1.3
        )
        assert at_1 < min(cold, hot)


@pytest.mark.claim("N11.15")
@pytest.mark.parametrize("n", [2, 3])
def test_the_expected_plug_in_of_few_texts_is_least_elsewhere(n):
    """E CND = CND + tr Cov / S + ..., exactly, along the sweep of the oracle itself."""
    space = qd.TextSpace(vocab_size=3, lengths=4)
    model = qd.LSTMLanguageModel.random(jax.random.key(2), 3, 6, 6, 2.0)
    ngrams = space.ngrams(n)
    shares = np.stack([(ngrams == g).mean(axis=1) for g in range(3**n)])
    p = shares @ np.asarray(model.probabilities(space))
    grid = 1.5 ** np.linspace(-2, 4, 121)
    exact, plug_in = [], []
    for t in grid:
        q = np.asarray(model.probabilities(space, t))
        mean = shares @ q
        spread = (shares**2 @ q).sum() - mean @ mean
        exact.append(((mean - p) ** 2).sum())
        plug_in.append(exact[-1] + spread / 5)
    assert grid[np.argmin(exact)] == pytest.approx(1, abs=1e-9)
    assert abs(grid[np.argmin(plug_in)] - 1) > 0.05
