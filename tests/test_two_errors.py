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
from scipy.optimize import minimize
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
    each = [ngrams(words, n) for words in lot]
    ours = Counter(chain.from_iterable(x.elements() for x in each))
    theirs = Counter(chain.from_iterable(ngrams(x, n).elements() for x in real))
    total, own = ours.total(), sum(x.total() ** 2 for x in each)
    same = sum(c * c for c in ours.values())
    same -= sum(c * c for x in each for c in x.values())
    shared = sum(c * theirs[g] for g, c in ours.items())
    return shared / total / theirs.total(), -same / (total**2 - own)


def longest_common(a, b):
    """Length of the longest common subsequence, by bits of whole numbers."""
    places = Counter()
    for i, word in enumerate(a):
        places[word] |= 1 << i
    row = 0
    for word in b:
        x = row | places.get(word, 0)
        row = x & ~(x - ((row << 1) | 1))
    return row.bit_count()


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
    texts = [*product(lot, real[:1000])]
    rouge = [2 * longest_common(a, b) / (len(a) + len(b)) for a, b in texts]
    found["ROUGE-L"] = np.mean(rouge)
    for name, value in found.items():
        digits = 2e-5 if "R-" in name else 1e-5
        assert row[name] == pytest.approx(value, rel=digits), name


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
        p = [mpmath.mpf(x) for x in p]
        p = [x / mpmath.fsum(p) for x in p]
        unit = []
        for x in ([score(a) for a in p], [slope(a) for a in p]):
            mean = mpmath.fdot(p, x)
            spread = mpmath.sqrt(mpmath.fdot(p, [(a - mean) ** 2 for a in x]))
            unit.append(([(a - mean) / spread for a in x], spread))
        (a, su), (b, sv) = unit
        rho = mpmath.fsum(x * y * z for x, y, z in zip(p, a, b))
        if 1 + rho < mpmath.mpf(10) ** -30:
            return 0.0, (0.0, 0.0)
        h = [(x + y) / mpmath.sqrt(2 + 2 * rho) for x, y in zip(a, b)]
        both = [(x, x * (1 + step * y)) for x, y in zip(p, h)]
        u = mpmath.fsum((y - x) * score(x) for x, y in both) / su / step
        v = mpmath.fsum(value(y) - value(x) for x, y in both) / sv / step
        return float(1 + rho), (float(u), float(v))


@pytest.mark.claim("N26.2")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("f", "g"), [*product(SCORES, DIVERSITIES)])
def test_both_gain_as_the_law_says_in_50_digits(f, g, seed):
    deviation, both = gains_of_a_step(positive(seed, 12), SCORES[f], g)
    if (f, g) in {("LL", "SE"), ("CR", "NRR"), ("CR", "SDI")}:
        assert deviation == 0
    else:
        assert deviation > 1e-4
        assert both == pytest.approx([sqrt(deviation / 2)] * 2, rel=1e-3)
        assert min(both) > 0


@pytest.mark.claim("N26.3")
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_influences_of_bleu_from_all_pairs_of_references(order, seed):
    """Differences along each text, of BLEU that is listed for every reference."""
    p, table = positive(seed, 9), listed_bleu(SPACE, order)
    texts, step = np.eye(9), 1e-5
    u = [quality(table, x, p) for x in texts]
    v = [
        (diversity(table, p + step * x) - diversity(table, p - step * x)) / 2 / step
        for x in texts
    ]
    pair = qd.BleuPair(SPACE, order, 2, 2)
    slopes = pair.text_quality(p), jax.grad(pair.diversity)(p)
    rho = correlation(p, u, v)
    assert rho == pytest.approx(correlation(p, *slopes), abs=1e-8)
    q = p * (1 + 1e-4 * (scaled(p, np.array(u)) + scaled(p, np.array(v))))
    assert rho > -1 + 1e-9
    assert quality(table, q, p) > quality(table, p, p)
    assert diversity(table, q) > diversity(table, p)


@pytest.mark.claim("N26.4")
@pytest.mark.parametrize("seed", range(4))
def test_an_optimizer_finds_no_better_direction(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(6))
    a, b = (scaled(p, rng.normal(size=6)) for _ in range(2))
    found = minimize(
        lambda x: -x[0],
        np.array([0.0, *(a * 0.1)]),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda x: p @ (a * x[1:]) - x[0]},
            {"type": "ineq", "fun": lambda x: p @ (b * x[1:]) - x[0]},
            {"type": "ineq", "fun": lambda x: 1 - p @ x[1:] ** 2},
            {"type": "eq", "fun": lambda x: p @ x[1:]},
        ],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.x[0] == pytest.approx(sqrt((1 + p @ (a * b)) / 2), rel=1e-5)


# --- small samples ------------------------------------------------------------------


def squared_by_words(K, p, n):
    """The squared correlation over all ordered samples of n, as a fraction."""
    moments, scores = np.zeros(5, object), K @ p
    off = np.array([(i, j) for i, j in product(range(n), repeat=2) if i != j])
    for drawn in map(np.array, product(range(len(p)), repeat=n)):
        u = scores[drawn].sum() / n
        v = -K[tuple(drawn[off].T)].sum() / Fraction(len(off))
        moments += p[drawn].prod() * np.array([u, v, u * u, v * v, u * v])
    u, v, uu, vv, uv = moments
    return (uv - u * v) ** 2 / ((uu - u * u) * (vv - v * v))


def squared_by_formula(K, p, n):
    scores, mean = K @ p, p @ K @ p
    one, two = p @ scores**2 - mean**2, p @ K**2 @ p - mean**2
    return 2 * (n - 1) * one / (2 * (n - 2) * one + two)


def kernel(alike):
    return np.array([[alike(i, j) for j in range(3)] for i in range(3)])


THREE = np.array([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)])
MATCH = kernel(lambda i, j: Fraction(i == j))
LIKE = kernel(lambda i, j: Fraction(1, 1 + abs(i - j)))


@pytest.mark.claim("N26.5")
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("K", [MATCH, LIKE])
def test_the_correlation_of_a_kernel_as_a_fraction(K, n):
    assert squared_by_words(K, THREE, n) == squared_by_formula(K, THREE, n)


@pytest.mark.claim("N26.6")
def test_two_sizes_of_simulated_lots_come_nearer_to_the_limit():
    p = np.array([0.5, 0.25, 0.15, 0.1])
    limit, rng = correlation(p, np.log(p), -2 * p), np.random.default_rng(26)
    found = []
    for n in (20, 80):
        shares = rng.multinomial(n, p, 10**6) / n
        u, v = shares @ np.log(p), -(shares**2).sum(axis=1)
        found.append(np.corrcoef(u, v)[0, 1])
    assert found == pytest.approx([-0.90524, -0.96163], abs=2e-3)
    two_sizes = (4 * found[1] - found[0]) / 3
    assert abs(two_sizes - limit) < abs(found[1] - limit) / 3


# --- the tests of "closer" ----------------------------------------------------------


def moments(a, b, p):
    """Differences of CR and NRR, and the covariance of their errors for one text."""
    gain = np.array([(a - b) @ p, b @ b - a @ a])
    cov = sum(np.cov(p, -2 * q, aweights=q, ddof=0) for q in (a, b))
    return gain, cov


def rejects(gain, cov, n):
    """Chances that both tests reject and that the sum does, of normal errors."""
    s, eta = np.sqrt(np.diag(cov)), np.array([1, 0.5])
    both = multivariate_normal([0, 0], cov / np.outer(s, s))
    total = sqrt(n) * eta @ gain / sqrt(eta @ cov @ eta)
    return both.cdf(sqrt(n) * gain / s - Z), norm.cdf(total - Z)


@pytest.mark.claim("N26.7")
@pytest.mark.parametrize("n", [50, 500, 50_000])
def test_normal_errors_name_a_farther_model_with_chance_alpha_at_most(n):
    rng = np.random.default_rng(n)
    for _ in range(100):
        p = rng.dirichlet(np.ones(8))
        near, far = sorted(
            rng.dirichlet(np.ones(8), 2), key=lambda q: ((q - p) ** 2).sum()
        )
        share = sqrt(((near - p) ** 2).sum() / ((far - p) ** 2).sum())
        equal = share * far + (1 - share) * p
        for a in (far, equal):
            both, total = rejects(*moments(a, near, p), n)
            assert both <= 0.05 + 1e-6
            assert total <= 0.05 + 1e-6


@pytest.mark.claim("N26.8")
def test_the_sum_rejects_whenever_both_do_and_needs_fewer_texts():
    """By drawn normal errors."""
    rng, p, n = np.random.default_rng(8), oracle(SPACE, 0, 1.0), 400
    b, top = p.copy(), np.argsort(p)[-4:]
    b[top] = p[top[::-1]]
    gain, cov = moments((p + b) / 2, b, p)
    normal = rng.multivariate_normal(gain, cov / n, 10**5)
    both = (normal > Z * np.sqrt(np.diag(cov) / n)).all(axis=1)
    eta = np.array([1, 0.5])
    summed = normal @ eta > Z * sqrt(eta @ cov @ eta / n)
    assert not (both & ~summed).any()
    found = [both.mean(), summed.mean()]
    assert found == pytest.approx(rejects(gain, cov, n), abs=0.01)
    assert found[1] > found[0]


@pytest.mark.claim("N26.9")
def test_the_number_of_samples_that_misleads_of_one_token():
    """BLEU-1 of 9 references with Self-BLEU-1 of 9, both known in closed form."""
    p, k = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04]), 9
    score = 1 - (1 - p) ** k

    def slope(q):
        return -1 + (1 - q) ** k - k * q * (1 - q) ** (k - 1)

    def value(q):
        return (q * ((1 - q) ** k - 1)).sum(axis=-1)

    way = scaled(p, score) + scaled(p, slope(p))
    noise = [np.sqrt(p @ (x - p @ x) ** 2) for x in (score, slope(p))]
    models = p * np.exp(np.linspace(0.05, 1, 20)[:, None] * way)
    models /= models.sum(axis=1, keepdims=True)
    gains = np.array([models @ score - p @ score, value(models) - value(p)]).T / noise
    best = gains.min(axis=1).argmax()
    assert gains[best].min() > 0
    q = models[best]
    covs = [np.cov(score, slope(x), aweights=x, ddof=0) for x in (q, p)]
    spread = np.sqrt(np.diag(covs[0] + covs[1]))
    gain = np.array([score @ (q - p), value(q) - value(p)])
    n = round(max(((Z + norm.isf(0.2)) * spread / gain) ** 2))
    rng = np.random.default_rng(9)
    ours, real = (rng.multinomial(n, x, 4000) / n for x in (q, p))
    seen = np.array([(ours - real) @ score, value(ours) - value(real)]).T
    named = (seen > Z * spread / sqrt(n)).all(axis=1).mean()
    assert named == pytest.approx(0.8, abs=0.05)


# --- the witness --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N26.10")
def test_short_sentences_beat_fresh_ones_in_bleu_3_by_dictionaries():
    """At the weights of the table, on the first sentences of reviews, in 12 lots."""
    rows = WITNESS.query("pair == 'BLEU-3'")
    own, length = rows[["own", "length"]].iloc[0]
    assert own == 0
    corpus = corpora.imdb()
    words = np.array(corpus.vocabulary, object)
    order = np.random.default_rng(10).permutation(len(corpus))
    tilt = (corpus.lengths - corpus.lengths.mean()) / corpus.lengths.std()
    tilt = length * tilt.clip(-3, 3)
    chances = np.exp(np.minimum(tilt - np.quantile(tilt, 0.99), 0))
    kept = np.random.default_rng(11).random(len(corpus)) < chances

    def texts(rows):
        return [words[corpus[int(i) : int(i) + 1].tokens].tolist() for i in rows]

    gains, size, each = [], 300, len(order) // 12
    for k in range(12):
        real, plain, rest = np.split(order[k * each :][:each], [size, 2 * size])
        drawn, real, plain = map(texts, (rest[kept[rest]][:size], real, plain))
        assert len(drawn) == size
        bleu, values = Bleu(real), []
        for lot in (drawn, plain):
            own = -float(qd.text.self_bleu([" ".join(x) for x in lot], 3)[2])
            values.append([np.mean([bleu(x, 3) for x in lot]), own])
        gains.append(np.subtract(*values))
    scores = np.mean(gains, axis=0) / (np.std(gains, axis=0, ddof=1) / sqrt(12))
    assert min(scores) > Z


# --- where it breaks ----------------------------------------------------------------


@pytest.mark.claim("N26.11")
def test_edit_distance_has_errors_that_cancel_and_a_rival_in_fractions():
    space = qd.TextSpace(vocab_size=2, lengths=3)
    edits = np.asarray(metrics.edit_kernel(space)).tolist()
    K = np.array([[Fraction(x).limit_denominator(60) for x in row] for row in edits])
    p = np.array([Fraction(k + 8, 92) for k in range(8)])
    witness = kernel_criterion.dominating_model(K.astype(float), p.astype(float))
    assert witness is not None
    q = np.array([Fraction(x) for x in np.asarray(witness.q).tolist()])
    q /= q.sum()
    assert p.sum() == q.sum() == 1
    assert q @ K @ p > p @ K @ p  # quality
    assert q @ K @ q < p @ K @ p  # diversity
    # The slope of minus p'Kp is -2 Kp, so the influences are proportional.
    slope = jax.grad(qd.KernelPair(K.astype(float)).diversity)(p.astype(float))
    assert np.asarray(slope) == pytest.approx(-2 * (K @ p).astype(float), rel=1e-12)
    middle = (p + q) / 2
    assert middle @ K @ middle > (p @ K @ p + q @ K @ q) / 2


@pytest.mark.claim("N26.12")
@pytest.mark.parametrize("levels", [(3, 1), (5, 2)])
def test_two_levels_hide_what_a_third_shows(levels):
    high, low = levels
    two = np.array([high, high, low, low, low]) / (2 * high + 3 * low)
    three = np.array([high, high, low, low, low + 0.5]) / (2 * high + 3 * low + 0.5)
    deviation, _ = gains_of_a_step(two, mpmath.log, "NRR")
    assert deviation == 0
    # V is at most its tangent at P, which is a falling line of U.
    slope = 2 * (two[0] - two[2]) / np.log(two[0] / two[2])
    rng = np.random.default_rng(12)
    for q in rng.dirichlet(np.ones(5), 1000):
        u, v = (q - two) @ np.log(two), two @ two - q @ q
        assert v <= -slope * u + 1e-15
    deviation, both = gains_of_a_step(three, mpmath.log, "NRR")
    assert deviation > 0
    assert min(both) > 0


@pytest.mark.claim("N26.13")
@pytest.mark.parametrize("multiple", [0.5, 1.0, 4.0])
def test_references_of_their_own_weaken_a_simulated_correlation(multiple):
    p, n, rng = oracle(SPACE, 1, 1.0), 2000, np.random.default_rng(13)
    lots = rng.multinomial(n, p, 10_000) / n
    real = rng.multinomial(round(multiple * n), p, 10_000) / round(multiple * n)
    u, v = (lots * real).sum(axis=1), -(lots**2).sum(axis=1)
    found = np.corrcoef(u, v)[0, 1]
    assert found == pytest.approx(-1 / sqrt(1 + 1 / multiple), abs=0.03)


@pytest.mark.claim("N26.14")
def test_a_loud_rare_text_as_a_fraction():
    K = kernel(lambda i, j: Fraction([(2, 1, 0), (1, 2, 0), (0, 0, 200)][i][j]))
    base, rare = np.array([Fraction(7, 10), Fraction(3, 10), Fraction(0)]), np.eye(3)[2]
    for share in (Fraction(1, 1000), Fraction(1, 100)):
        p = (1 - share) * base + share * rare.astype(int)
        for n in (2, 5):
            assert squared_by_words(K, p, n) == squared_by_formula(K, p, n)
    loud, quiet = (float(squared_by_formula(K, x, 100)) for x in (p, base))
    assert -sqrt(loud) == pytest.approx(-0.7884, abs=1e-3)
    assert -sqrt(quiet) < -0.98


@pytest.mark.claim("N26.15")
def test_a_rival_that_120_lots_do_not_show():
    """In 50 digits there is one; over 300 times 120 lots both pairs look the same."""
    p = oracle(qd.TextSpace(vocab_size=4, lengths=3), 0, 1.0, size=32)
    mixed = lambda x: x + mpmath.log(x) / 1000  # noqa: E731
    deviation, both = gains_of_a_step(p, mixed, "NRR")
    assert 0 < deviation < 1e-3
    assert min(both) > 0
    rng, inside = np.random.default_rng(15), 0
    for _ in range(300):
        shares = rng.multinomial(500, p, 120) / 500
        v = -(shares**2).sum(axis=1)
        found = [
            np.corrcoef(shares @ score, v)[0, 1] for score in (p, p + np.log(p) / 1000)
        ]
        inside += abs(np.subtract(*np.arctanh(found))) * sqrt(117) < norm.isf(0.025)
    assert inside == 300
