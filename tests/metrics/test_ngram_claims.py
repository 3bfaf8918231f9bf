"""CR, NRR and CND along sweeps and from samples, by enumeration and plain NumPy."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import qdtheory as qd

SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(float).eps
few_examples = settings(max_examples=30)

SPACE = qd.TextSpace(4, 3)
ONE_LENGTH = [qd.TextSpace(4, 3), qd.TextSpace(2, 5), qd.TextSpace(3, 1)]
BETAS = 2.0 ** np.linspace(-2, 2, 81)
REAL = 40


def draw(seed, size, concentration=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(size, concentration))


def positive(seed, size):
    return qd.mix(draw(seed, size), np.full(size, 1 / size), 0.01).__array__()


def power(p, beta):
    weights = p**beta
    return weights / weights.sum()


def counted(space, n):
    """n-gram shares of each text, one column a text, by a loop."""
    columns = []
    for text in space.tokens.tolist():
        text = [token for token in text if token >= 0]
        grams = Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
        every = product(range(space.vocab_size), repeat=n)
        columns.append([grams[g] / max(1, grams.total()) for g in every])
    return np.array(columns).T


MAPS = {n: counted(SPACE, n) for n in (1, 2, 3)}


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


# -- the sweep of powers ------------------------------------------------------------


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
@pytest.mark.parametrize("f", [qd.LL, qd.CR, lambda x: x**3], ids=["LL", "CR", "cube"])
@pytest.mark.parametrize(
    "g",
    [qd.SE, qd.NRR, qd.Tsallis(0.5), qd.Tsallis(3.0)],
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


@pytest.mark.claim("N9.3")
@pytest.mark.parametrize("space", ONE_LENGTH, ids=str)
def test_the_longest_order_is_the_text(space):
    for seed in range(5):
        q, p = draw(seed, space.num_texts), draw(seed + 50, space.num_texts)
        n = space.max_length
        grams = space.ngram_distribution(q, n)
        np.testing.assert_allclose(grams, q, rtol=1e-14)
        np.testing.assert_allclose(qd.NgramPair(space, n).quality(q, p), (q * p).sum())


@pytest.mark.claim("N9.4")
@given(seed=SEEDS, space=st.sampled_from(ONE_LENGTH), width=st.sampled_from([0.1, 3]))
@few_examples
def test_cnd_is_at_most_kl(seed, space, width):
    q, p = draw(seed, space.num_texts, width), positive(seed + 1, space.num_texts)
    bound = 2 * qd.total_variation(q, p) ** 2
    assert qd.kl_divergence(q, p) >= bound
    for n in range(1, space.max_length + 1):
        grams = [space.ngram_distribution(x, n) for x in (q, p)]
        assert qd.cnd(*grams) <= bound + EPS


@pytest.mark.claim("N9.4")
def test_the_bound_is_met_where_mass_moves_between_two_texts():
    q, p = np.array([0.6, 0.3, 0.1]), np.array([0.4, 0.5, 0.1])
    tv = float(qd.total_variation(q, p))
    np.testing.assert_allclose(qd.cnd(q, p), 2 * tv**2, atol=EPS)


@pytest.mark.claim("N9.5")
@pytest.mark.parametrize("space", [*ONE_LENGTH, qd.TextSpace(3, (1, 2, 3))], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_every_curve_through_p_has_slope_minus_two(space, seed):
    p = positive(seed, space.num_texts)
    step = p * np.random.default_rng(seed).normal(size=p.size) / 10
    step -= p * step.sum()
    t, rises = 1e-3, []
    for n in range(1, space.max_length + 1):
        pair = qd.NgramPair(space, n)
        ends = p + t * step, p - t * step
        du = float(pair.quality(ends[0], p) - pair.quality(ends[1], p))
        dv = float(pair.diversity(ends[0]) - pair.diversity(ends[1]))
        # Central differences are off by the third order: (t / 10)^3 times a constant.
        np.testing.assert_allclose(dv, -2 * du, atol=1e-11)
        rises.append(abs(du))
    assert max(rises) > 1e-7


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
    """BLEU of each candidate with each two references, orders 1 to 3."""
    tables, product_of_precisions = {}, 1.0
    for n, a in MAPS.items():
        counts = np.rint(a.T * (4 - n)).astype(int)
        most = np.maximum(counts[:, None], counts[None])
        clipped = [np.minimum(c, most).sum(-1) for c in counts]
        product_of_precisions = product_of_precisions * np.array(clipped) / (4 - n)
        tables[n] = product_of_precisions ** (1 / n)
    return tables


def quality(table, q, p):
    return np.einsum("ijk,i,j,k", table, q, p, p, optimize=True)


def diversity(table, q):
    return -quality(table, q, q)


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


# -- samples ------------------------------------------------------------------------

SMALL = [(qd.TextSpace(2, 3), n) for n in (1, 2, 3)] + [(qd.TextSpace(3, 2), 1)]


def gram(space, n):
    """Inner products of the texts' shares."""
    a = counted(space, n)
    return a.T @ a


def coverage_variance(k, q, p, s, r):
    """The variance of plug-in CR, from the texts' kernel."""
    kp, kq = k @ p, k @ q
    centred = k - kp[:, None] - kq[None] + q @ kp  # [i, j]: i from Q, j from P
    of_q, of_p = q @ kp**2 - (q @ kp) ** 2, p @ kq**2 - (p @ kq) ** 2
    return of_q / s + of_p / r + q @ centred**2 @ p / (s * r)


def repetition_moments(k, q, s):
    """Mean and variance of plug-in NRR, from the texts' kernel."""
    kq = k @ q
    value = q @ kq
    centred = k - kq[:, None] - kq[None] + value
    along, squares = kq - value, np.diag(centred)
    spread = q @ squares**2 - (q @ squares) ** 2
    variance = 4 * (q @ along**2) / s + 4 * (q @ (along * squares)) / s**2
    variance += (spread + 2 * (s - 1) * (q @ centred**2 @ q)) / s**3
    return -value - q @ squares / s, variance


def samples(q, size):
    """Every sample of texts, as indices, with its chance."""
    for sample in product(range(q.size), repeat=size):
        yield list(sample), np.prod(q[list(sample)])


@pytest.mark.claim("N9.12", "N9.13")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize("s", [1, 2, 3])
def test_moments_of_plug_in_nrr_by_all_samples(space, n, s):
    a, q = counted(space, n), draw(3, space.num_texts)
    drawn = [(-np.sum(a[:, x].mean(1) ** 2), chance) for x, chance in samples(q, s)]
    values, chances = np.array(drawn).T
    mean = chances @ values
    expected, variance = repetition_moments(gram(space, n), q, s)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(chances @ (values - mean) ** 2, variance, atol=1e-14)


@pytest.mark.claim("N9.12", "N9.13")
@pytest.mark.parametrize(("space", "n"), SMALL[:3], ids=str)
@pytest.mark.parametrize(("s", "r"), [(1, 1), (2, 1), (2, 2)])
def test_moments_of_plug_in_cr_by_all_samples(space, n, s, r):
    a = counted(space, n)
    q, p = draw(4, space.num_texts), draw(5, space.num_texts)
    ours, theirs = (
        [(a[:, x].mean(1), chance) for x, chance in samples(*side)]
        for side in ((q, s), (p, r))
    )
    values = np.array([x for x, _ in ours]) @ np.array([x for x, _ in theirs]).T
    chances = np.outer([c for _, c in ours], [c for _, c in theirs])
    mean = np.sum(chances * values)
    np.testing.assert_allclose(mean, q @ gram(space, n) @ p, rtol=1e-12)
    variance = coverage_variance(gram(space, n), q, p, s, r)
    found = np.sum(chances * (values - mean) ** 2)
    np.testing.assert_allclose(found, variance, atol=1e-14)


@pytest.mark.claim("N9.14")
def test_relative_errors_grow_with_the_order(oracle):
    space = qd.TextSpace(4, 4)
    for model in (oracle, *map(model_of, range(3))):
        p = np.asarray(model.probabilities(space))
        q, errors = power(p, 0.8), []
        for n in (1, 2, 3, 4):
            k = gram(space, n)
            mean, variance = repetition_moments(k, q, 100)
            value = q @ k @ q
            cr = np.sqrt(coverage_variance(k, q, p, 100, 100)) / (q @ k @ p)
            errors.append([cr, np.sqrt(variance) / value, (-mean - value) / value])
        assert (np.diff(errors, axis=0) > 0).all()
        # Twice the error is four times the texts.
        assert errors[3][0] > 2 * errors[0][0]


def model_of(seed):
    return qd.LSTMLanguageModel.random(jax.random.key(seed + 500), vocab_size=4)


@pytest.mark.claim("N9.15")
@given(seed=SEEDS, base=st.sampled_from([2, 3, 4]))
@few_examples
def test_agreement_of_texts_falls_with_every_token(seed, base):
    p = draw(seed, base**5)
    agreement = [np.sum(p.reshape(base**m, -1).sum(1) ** 2) for m in range(6)]
    assert (np.diff(agreement) < 0).all()


@pytest.mark.claim("N9.16")
@pytest.mark.parametrize("seed", range(5))
def test_the_expected_plug_in_cnd_still_falls_at_p(seed):
    p = positive(seed, 4)
    theirs = list(samples(p, 2))

    def expected(q):
        """By all samples of two texts on each side, n = L."""
        total = 0.0
        for (x, chance), (y, other) in product(samples(q, 2), theirs):
            apart = (np.eye(4)[x].mean(0) - np.eye(4)[y].mean(0)) ** 2
            total += chance * other * apart.sum()
        return total

    noise = (1 - p @ p) / 2
    np.testing.assert_allclose(expected(p), 2 * noise, rtol=1e-12)
    rise = expected(power(p, 1.001)) - expected(power(p, 0.999))
    log_p = np.log(p)
    slope = -(p @ (p * log_p) - (p @ p) * (p @ log_p))  # -Cov_P(P, log P)
    assert slope < 0
    np.testing.assert_allclose(rise / 0.002, slope, rtol=1e-4)


# -- log-likelihood -----------------------------------------------------------------


def seen_sets(space, q, n, draws):
    """The chance of each set of n-grams seen in a number of texts, by recursion."""
    held = [frozenset(row) for row in space.ngrams(n).tolist()]
    chances = Counter({frozenset(): 1.0})
    for _ in range(draws):
        after = Counter()
        for seen, chance in chances.items():
            for grams, share in zip(held, q, strict=True):
                after[seen | grams] += chance * share
        chances = after
    return chances


def chance_seen(space, p, n, r, target):
    """Inclusion and exclusion over the subsets of the target."""
    held = [frozenset(row) for row in space.ngrams(n).tolist()]
    total = 0.0
    for size in range(len(target) + 1):
        for subset in map(frozenset, combinations(sorted(target), size)):
            stays = sum(x for x, grams in zip(p, held, strict=True) if grams <= subset)
            total += (-1) ** (len(target) - size) * stays**r
    return total


@pytest.mark.claim("N9.17")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize("r", [1, 3, 8])
def test_the_chance_of_each_seen_set_by_recursion(space, n, r):
    p = draw(6, space.num_texts)
    by_recursion = seen_sets(space, p, n, r)
    everything = frozenset(range(space.vocab_size**n))
    for target in {*by_recursion, everything}:
        np.testing.assert_allclose(
            chance_seen(space, p, n, r, target), by_recursion[target], atol=1e-13
        )


@pytest.mark.claim("N9.18")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize(("s", "r"), [(1, 1), (2, 5), (6, 3)])
def test_the_chance_of_a_finite_log_likelihood_by_recursion(space, n, s, r):
    q, p = draw(7, space.num_texts), draw(8, space.num_texts)
    held = [frozenset(row) for row in space.ngrams(n).tolist()]
    ours, theirs = seen_sets(space, q, n, s), seen_sets(space, p, n, r)
    direct = sum(
        x * y for (a, x), (b, y) in product(ours.items(), theirs.items()) if a <= b
    )
    formula = sum(
        chance_seen(space, p, n, r, seen)
        * sum(x for x, grams in zip(q, held, strict=True) if grams <= seen) ** s
        for seen in theirs
    )
    np.testing.assert_allclose(formula, direct, atol=1e-12)


@pytest.mark.claim("N9.19")
@given(seed=SEEDS, n=st.sampled_from([1, 2, 3]))
@few_examples
def test_only_the_references_must_hold_every_ngram(seed, n):
    rng = np.random.default_rng(seed)
    full, pair = positive(seed, 64), qd.NgramPair(SPACE, n, qd.LL_SE)
    # Texts without token 3: no n-gram with it.
    lacking = np.where((SPACE.tokens < 3).all(1), rng.random(64), 0)
    lacking /= lacking.sum()
    assert np.isfinite(pair.quality(lacking, full))
    assert np.isfinite(pair.diversity(lacking))
    assert pair.quality(full, lacking) == -np.inf


@pytest.mark.claim("N9.20")
@given(seed=SEEDS)
@few_examples
def test_smoothed_log_likelihood_goes_like_the_unseen_mass(seed):
    rng = np.random.default_rng(seed)
    q_g, p_hat = draw(seed, 16), rng.multinomial(10, draw(seed + 1, 16)) / 10
    unseen = p_hat == 0
    mass = q_g[unseen].sum()
    assume(mass > 1e-3)
    rest = q_g[~unseen] @ np.log(p_hat[~unseen]) - mass * np.log(16)
    for epsilon in (1e-6, 1e-9):
        smooth = qd.mix(p_hat, np.full(16, 1 / 16), epsilon)
        ll = float(qd.LL_SE.quality(q_g, smooth))
        np.testing.assert_allclose(ll, rest + mass * np.log(epsilon), atol=2 * epsilon)


# -- where it breaks ----------------------------------------------------------------


@pytest.mark.claim("N9.21")
@pytest.mark.parametrize(("vocab_size", "length"), [(2, 3), (3, 2), (5, 3)])
def test_unigrams_do_not_see_powers_of_a_symmetric_p(vocab_size, length):
    space = qd.TextSpace(vocab_size, length)
    p = draw(11, space.num_texts)
    turned = [
        p[space.index((space.tokens + shift) % vocab_size)]
        for shift in range(vocab_size)
    ]
    symmetric, a = np.mean(turned, axis=0), counted(space, 1)
    for beta in (0.2, 1, 5):
        q = power(symmetric, beta)
        np.testing.assert_allclose(a @ q, 1 / vocab_size, atol=1e-15)
    assert abs(power(symmetric, 5) - symmetric).sum() > 0.5


@pytest.mark.claim("N9.22")
@pytest.mark.parametrize("length", [4, 8])
def test_pooling_several_lengths_exceeds_the_bound(length):
    space = qd.TextSpace(2, (1, length))
    small, large = Fraction(1, 100), Fraction(1, 10)
    share = [length * x / (1 + (length - 1) * x) for x in (large, small)]
    by_hand = 2 * (share[0] - share[1]) ** 2
    models = []
    for x in (large, small):
        q = np.zeros(space.num_texts)
        q[0], q[-1] = float(1 - x), float(x)
        models.append(q)
    cnd = qd.cnd(*(space.ngram_distribution(q, 1) for q in models))
    np.testing.assert_allclose(cnd, float(by_hand), rtol=1e-12)
    assert by_hand > 2 * (large - small) ** 2


@pytest.mark.claim("N9.23")
@given(seed=SEEDS, share=st.sampled_from([0.1, 0.5, 0.9]))
@few_examples
def test_the_longest_order_does_not_see_shorter_texts(seed, share):
    space = qd.TextSpace(3, (1, 2, 3))
    p, rng = draw(seed, space.num_texts), np.random.default_rng(seed)
    longest = space.text_lengths == 3
    short = np.where(longest, 0, rng.random(space.num_texts))
    kept = np.where(longest, p, 0)
    q = share * kept / kept.sum() + (1 - share) * short / short.sum()
    apart = [
        qd.cnd(*(space.ngram_distribution(x, n) for x in (q, p))) for n in (1, 2, 3)
    ]
    assert apart[2] <= 1e-30 < apart[0]
    assert qd.total_variation(q, p) > 1e-3
