"""Two errors that cancel: the law of the correlation, its tests, and two_errors.csv."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import chain, pairwise, product
from math import exp, prod, sqrt

import jax
import mpmath
import numpy as np
import pytest
from lab import corpora, metrics
from models import oracle, positive
from referees.enumerated_bleu import diversity, listed_bleu, quality
from scipy.stats import multivariate_normal, norm
from scripts import frame
from scripts import script as load

import qdtheory as qd
from qdtheory.proofs import kernel_criterion

LOTS, WITNESS = frame("two_errors.csv"), frame("two_errors_witness.csv")
SPACE = qd.TextSpace(vocab_size=3, lengths=2)
Z = norm.isf(0.05)


def scaled(p, u):
    """With mean 0 and deviation 1 under P."""
    u = u - p @ u
    return u / np.sqrt(p @ u**2)


def correlation(p, u, v):
    return p @ (scaled(p, np.asarray(u)) * scaled(p, np.asarray(v)))


# --- metrics of lots, by dictionaries -----------------------------------------------


def ngrams(words, n):
    return Counter(zip(*(words[i:] for i in range(n))))


class Bleu:
    """Smoothed sentence BLEU against many references, by their largest counts."""

    def __init__(self, references):
        self.lengths = Counter(map(len, references))
        self.largest = {n: Counter() for n in (1, 2, 3, 4)}
        for words, n in product(references, self.largest):
            most = self.largest[n]
            for gram, count in ngrams(words, n).items():
                most[gram] = max(most.get(gram, 0), count)

    def __call__(self, words, order):
        hits = []
        for n in range(1, order + 1):
            most = self.largest[n]
            found = sum(min(c, most.get(g, 0)) for g, c in ngrams(words, n).items())
            hits.append((found or 0.1) / max(1, len(words) - n + 1))
            if n == 1 and not found:
                return 0.0
        near = min(self.lengths, key=lambda k: (abs(k - len(words)), k))
        return min(1.0, exp(1 - near / len(words))) * prod(hits) ** (1 / order)


def rates(lot, real, n):
    """Coverage rate, and minus the repetition rate of n-grams of different texts."""
    each, theirs = ([ngrams(words, n) for words in x] for x in (lot, real))
    ours, theirs = (
        Counter(chain.from_iterable(c.elements() for c in x)) for x in (each, theirs)
    )
    shared, same = (sum(c * x[g] for g, c in ours.items()) for x in (theirs, ours))
    same -= sum(c * c for x in each for c in x.values())
    pairs = ours.total() ** 2 - sum(x.total() ** 2 for x in each)
    return shared / ours.total() / theirs.total(), -same / pairs


@cache
def sentences():
    corpus = load("make_two_errors").shuffled()
    words = np.array(corpus.vocabulary, object)[corpus.tokens[: corpus.offsets[6000]]]
    ends = corpus.offsets[:6001]
    return [words[a:b].tolist() for a, b in pairwise(ends.tolist())]


@pytest.mark.slow
@pytest.mark.claim("N26.1")
def test_a_lot_of_the_table_by_dictionaries():
    real, lot = sentences()[:4000], sentences()[4875:5000]
    row = LOTS.query("kind == 'lots' and size == 125 and lot == 7").iloc[0]
    found = {}
    for n in (1, 2):
        found[f"CR-{n}"], found[f"NRR-{n}"] = rates(lot, real, n)
    bleu, own = Bleu(real), [Bleu(lot[:i] + lot[i + 1 :]) for i in range(len(lot))]
    for n in (2, 3, 4):
        found[f"BLEU-{n}"] = np.mean([bleu(x, n) for x in lot])
        found[f"Self-BLEU-{n}"] = -np.mean([of(x, n) for of, x in zip(own, lot)])
    pairs = [x for words in lot for x in pairwise(words)]
    found["distinct-2"] = len(set(pairs)) / len(pairs)
    for name, value in found.items():
        assert row[name] == pytest.approx(value, rel=2e-5), name


# --- the law ------------------------------------------------------------------------

# Scores f(P); values and slopes of diversities, in closed form.
SCORES = {"LL": mpmath.log, "CR": lambda x: x}
DIVERSITIES = {
    "SE": (lambda x: -x * mpmath.log(x), lambda x: -mpmath.log(x) - 1),
    "NRR": (lambda x: -x * x, lambda x: -2 * x),
    "SDI": (lambda x: x - x * x, lambda x: 1 - 2 * x),
}


def gains_of_a_step(p, score, g, step=1e-6):
    """1 + rho and the gains along the direction of the law, to 50 digits."""
    value, slope = DIVERSITIES[g]
    with mpmath.workdps(50):
        p = np.array([mpmath.mpf(x) for x in p])
        p, unit, spreads = p / p.sum(), [], []
        for of in (score, slope):
            x = np.array([of(a) for a in p])
            x = x - p @ x
            spreads.append(mpmath.sqrt(p @ x**2))
            unit.append(x / spreads[-1])
        deviation = 1 + p @ (unit[0] * unit[1])
        if deviation < mpmath.mpf(10) ** -30:
            return 0.0, (0.0, 0.0)
        q = p * (1 + step * sum(unit) / mpmath.sqrt(2 * deviation))
        u = sum((y - x) * score(x) for x, y in zip(p, q))
        v = sum(value(y) - value(x) for x, y in zip(p, q))
        gains = (float(x / s / step) for x, s in zip((u, v), spreads))
        return float(deviation), tuple(gains)


@pytest.mark.claim("N26.2")
@pytest.mark.parametrize(("f", "g"), [*product(SCORES, DIVERSITIES)])
def test_both_gain_as_the_law_says_in_50_digits(f, g):
    for seed in range(3):
        deviation, both = gains_of_a_step(positive(seed, 12), SCORES[f], g)
        if (f, g) in {("LL", "SE"), ("CR", "NRR"), ("CR", "SDI")}:
            assert deviation == 0
        else:
            assert deviation > 1e-4
            assert both == pytest.approx([sqrt(deviation / 2)] * 2, rel=1e-3)


@pytest.mark.claim("N26.3")
@pytest.mark.parametrize(("order", "seed"), [(1, 0), (2, 1)])
def test_influences_of_bleu_from_all_pairs_of_references(order, seed):
    """Differences along each text, of BLEU that is listed for every reference."""
    p, table, step = positive(seed, 9), listed_bleu(SPACE, order), 1e-5
    u = [quality(table, x, p) for x in np.eye(9)]
    ends = [[diversity(table, p + s * x) for x in np.eye(9)] for s in (step, -step)]
    v = np.subtract(*ends) / 2 / step
    pair = qd.BleuPair(SPACE, order, 2, 2)
    slopes = pair.text_quality(p), jax.grad(pair.diversity)(p)
    rho = correlation(p, u, v)
    assert -1 + 1e-9 < rho == pytest.approx(correlation(p, *slopes), abs=1e-8)
    q = p * (1 + 1e-4 * (scaled(p, np.array(u)) + scaled(p, v)))
    assert quality(table, q, p) > quality(table, p, p)
    assert diversity(table, q) > diversity(table, p)


# --- small samples ------------------------------------------------------------------


def squared_by_words(K, p, n):
    """The squared correlation over all ordered samples of n, as a fraction."""
    moments, K = np.zeros(5, object), np.array(K, object)
    for drawn in map(np.array, product(range(len(p)), repeat=n)):
        own = K[np.ix_(drawn, drawn)]
        u = (K @ p)[drawn].sum() / n
        v = -(own.sum() - own.trace()) / Fraction(n * (n - 1))
        moments += p[drawn].prod() * np.array([u, v, u * u, v * v, u * v])
    u, v, uu, vv, uv = moments
    return (uv - u * v) ** 2 / ((uu - u * u) * (vv - v * v))


def squared_by_formula(K, p, n):
    K = np.array(K, object)
    one, two = (p @ x - (p @ K @ p) ** 2 for x in ((K @ p) ** 2, K**2 @ p))
    return 2 * (n - 1) * one / (2 * (n - 2) * one + two)


THREE = np.array([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)])
MATCH = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
LIKE = [[6, 3, 2], [3, 6, 3], [2, 3, 6]]


@pytest.mark.claim("N26.5")
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("K", [MATCH, LIKE])
def test_the_correlation_of_a_kernel_as_a_fraction(K, n):
    assert squared_by_words(K, THREE, n) == squared_by_formula(K, THREE, n)


# --- the tests of "closer" ----------------------------------------------------------


def rejects(a, b, p, n):
    """Chances that CR and NRR both reject and that the sum does, of normal errors."""
    gain = np.array([(a - b) @ p, b @ b - a @ a])
    cov = sum(np.cov(p, -2 * q, aweights=q, ddof=0) for q in (a, b)) / n
    s, eta = np.sqrt(np.diag(cov)), np.array([1, 0.5])
    both = multivariate_normal([0, 0], cov / np.outer(s, s)).cdf(gain / s - Z)
    return both, norm.cdf(eta @ gain / sqrt(eta @ cov @ eta) - Z), gain, cov


@pytest.mark.claim("N26.7")
@pytest.mark.parametrize("n", [50, 500, 50_000])
def test_normal_errors_name_a_farther_model_with_chance_alpha_at_most(n):
    rng = np.random.default_rng(n)
    for p, *models in rng.dirichlet(np.ones(8), (50, 3)):
        near, far = sorted(models, key=lambda q: ((q - p) ** 2).sum())
        share = sqrt(((near - p) ** 2).sum() / ((far - p) ** 2).sum())
        equal = share * far + (1 - share) * p
        for a in (far, equal):
            assert max(rejects(a, near, p, n)[:2]) <= 0.05 + 1e-6


@pytest.mark.claim("N26.8")
def test_the_sum_rejects_whenever_both_do_and_needs_fewer_texts():
    """By drawn normal errors."""
    rng, p = np.random.default_rng(8), oracle(SPACE, 0, 1.0)
    b, top, eta = p.copy(), np.argsort(p)[-4:], np.array([1, 0.5])
    b[top] = p[top[::-1]]
    *expected, gain, cov = rejects((p + b) / 2, b, p, 400)
    normal = rng.multivariate_normal(gain, cov, 10**5)
    both = (normal > Z * np.sqrt(np.diag(cov))).all(axis=1)
    summed = normal @ eta > Z * sqrt(eta @ cov @ eta)
    assert not (both & ~summed).any()
    assert [both.mean(), summed.mean()] == pytest.approx(expected, abs=0.01)
    assert summed.mean() > both.mean()


@pytest.mark.claim("N26.9")
def test_the_number_of_samples_that_misleads_of_one_token():
    """BLEU-1 of 9 references with Self-BLEU-1 of 9, both known in closed form."""
    p, k = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04]), 9
    score = 1 - (1 - p) ** k

    def slope(q):
        return -1 + (1 - q) ** k - k * q * (1 - q) ** (k - 1)

    def both(q):
        return np.array([q @ score, (q * ((1 - q) ** k - 1)).sum(axis=-1)])

    way = scaled(p, score) + scaled(p, slope(p))
    models = p * np.exp(np.linspace(0.05, 1, 20)[:, None] * way)
    models /= models.sum(axis=1, keepdims=True)
    covs = [np.cov(score, slope(x), aweights=x, ddof=0) for x in (p, *models)]
    noise = np.sqrt(np.diagonal(covs, axis1=1, axis2=2))
    gains = (both(models) - both(p)[:, None]).T
    best = (gains / noise[0]).min(axis=1).argmax()
    gain, spread = gains[best], np.hypot(noise[0], noise[1 + best])
    assert gain.min() > 0
    n = round(max(((Z + norm.isf(0.2)) * spread / gain) ** 2))
    rng = np.random.default_rng(9)
    ours, real = (both(rng.multinomial(n, x, 4000) / n) for x in (models[best], p))
    named = (Z * spread / sqrt(n) < (ours - real).T).all(axis=1).mean()
    assert named == pytest.approx(0.8, abs=0.05)


# --- the witness --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N26.10")
def test_short_sentences_beat_fresh_ones_in_bleu_3_by_dictionaries():
    """At the weights of the table, on the first sentences of reviews, in 12 lots."""
    length = WITNESS.query("pair == 'BLEU-3' and own == 0").length.iloc[0]
    corpus, rng = corpora.imdb(), np.random.default_rng(10)
    words, order = np.array(corpus.vocabulary, object), rng.permutation(len(corpus))
    tilt = (corpus.lengths - corpus.lengths.mean()) / corpus.lengths.std()
    tilt = length * tilt.clip(-3, 3)
    chances = np.exp(np.minimum(tilt - np.quantile(tilt, 0.99), 0))
    kept = np.random.default_rng(11).random(len(corpus)) < chances
    gains, size, each = [], 300, len(order) // 12
    for k in range(12):
        real, plain, rest = np.split(order[k * each :][:each], [size, 2 * size])
        real, *lots = (
            [words[corpus[int(i) : int(i) + 1].tokens].tolist() for i in rows]
            for rows in (real, rest[kept[rest]][:size], plain)
        )
        bleu, values = Bleu(real), []
        for lot in lots:
            own = -float(qd.text.self_bleu([" ".join(x) for x in lot], 3)[2])
            values.append([np.mean([bleu(x, 3) for x in lot]), own])
        gains.append(np.subtract(*values))
    scores = np.mean(gains, axis=0) / (np.std(gains, axis=0, ddof=1) / sqrt(12))
    assert min(scores) > Z


# --- where it breaks ----------------------------------------------------------------


@pytest.mark.claim("N26.11")
def test_edit_distance_has_errors_that_cancel_and_a_rival_in_fractions():
    edits = metrics.edit_kernel(qd.TextSpace(vocab_size=2, lengths=3))
    exact = np.vectorize(lambda x: Fraction(float(x)).limit_denominator(60))
    K, p = exact(np.asarray(edits)), np.array([Fraction(k + 8, 92) for k in range(8)])
    witness = kernel_criterion.dominating_model(K.astype(float), p.astype(float))
    assert witness is not None
    q = np.array([Fraction(x) for x in np.asarray(witness.q).tolist()])
    q /= q.sum()
    assert q @ K @ p > p @ K @ p  # quality
    assert q @ K @ q < p @ K @ p  # diversity
    # The slope of minus p'Kp is -2 Kp, so the influences are proportional.
    slope = jax.grad(qd.KernelPair(K.astype(float)).diversity)(p.astype(float))
    assert np.asarray(slope) == pytest.approx(-2 * (K @ p).astype(float), rel=1e-12)


@pytest.mark.claim("N26.12")
@pytest.mark.parametrize(("high", "low"), [(3, 1), (5, 2)])
def test_two_levels_hide_what_a_third_shows(high, low):
    two, three = (np.array([high, high, low, low, x]) for x in (low, low + 0.5))
    two, three = two / two.sum(), three / three.sum()
    assert gains_of_a_step(two, mpmath.log, "NRR")[0] == 0
    # V is at most its tangent at P, which is a falling line of U.
    slope = 2 * (two[0] - two[2]) / np.log(two[0] / two[2])
    q = np.random.default_rng(12).dirichlet(np.ones(5), 1000)
    u, v = (q - two) @ np.log(two), two @ two - (q**2).sum(axis=1)
    assert (v <= -slope * u + 1e-15).all()
    deviation, both = gains_of_a_step(three, mpmath.log, "NRR")
    assert min(deviation, *both) > 0


@pytest.mark.claim("N26.13")
@pytest.mark.parametrize("multiple", [0.5, 4.0])
def test_references_of_their_own_weaken_a_simulated_correlation(multiple):
    p, rng = oracle(SPACE, 1, 1.0), np.random.default_rng(13)
    sizes = 2000, round(multiple * 2000)
    lots, real = (rng.multinomial(n, p, 10_000) / n for n in sizes)
    u, v = (lots * real).sum(axis=1), -(lots**2).sum(axis=1)
    found = np.corrcoef(u, v)[0, 1]
    assert found == pytest.approx(-1 / sqrt(1 + 1 / multiple), abs=0.03)


@pytest.mark.claim("N26.15")
def test_a_rival_that_120_lots_do_not_show():
    """In 50 digits there is one; over 100 times 120 lots both pairs look the same."""
    p = oracle(qd.TextSpace(vocab_size=4, lengths=3), 0, 1.0, size=32)
    deviation, both = gains_of_a_step(p, lambda x: x + mpmath.log(x) / 1000, "NRR")
    assert 1e-3 > min(deviation, *both) > 0
    rng, mixed = np.random.default_rng(15), p + np.log(p) / 1000
    for _ in range(100):
        shares = rng.multinomial(500, p, 120) / 500
        v = -(shares**2).sum(axis=1)
        found = [np.corrcoef(shares @ score, v)[0, 1] for score in (p, mixed)]
        assert abs(np.subtract(*np.arctanh(found))) * sqrt(117) < norm.isf(0.025)
