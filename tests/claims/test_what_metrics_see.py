"""What metrics see of models, and what not: other worlds and seeds, all samples."""

from collections import defaultdict
from functools import cache, partial
from itertools import combinations_with_replacement, compress, permutations, product

import jax
import numpy as np
import pytest
from lab import metrics
from models import draw, power
from scipy.linalg import sqrtm
from scipy.stats import binom, entropy, kendalltau, multinomial, pearsonr, spearmanr
from scripts import rows_of

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=2, lengths=(1, 2, 3))
TWO, THREE = qd.TextSpace(2, 2), qd.TextSpace(2, 3)
TEXTS = [tuple(row[row >= 0].tolist()) for row in SPACE.tokens]
SIZE = len(TEXTS)
UNIFORM = np.full(SIZE, 1 / SIZE)
TEMPERATURES = 1.5 ** np.arange(-3.0, 5)


def f_score(which, q, p):
    points = metrics.precision_recall_distributions(q, p, 101)
    return -metrics.prd_f_scores(points)[which]


def nll(q, p):
    return qd.cross_entropy(p, q)


def restrict(p, keep):
    return np.where(keep, p, 0) / p[keep].sum()


compiled = cache(jax.jit)


RATIO = {
    "KL": qd.kl_divergence,
    "Jensen-Shannon": qd.jensen_shannon_divergence,
    "total variation": qd.divergences.total_variation,
    "Hellinger": qd.divergences.hellinger_distance,
    "Bhattacharyya": qd.divergences.bhattacharyya_distance,
    "-MAUVE": lambda q, p: -metrics.mauve(q, p),
    "frontier integral": metrics.frontier_integral,
    "-PRD F8": partial(f_score, 0),
    "-PRD F1/8": partial(f_score, 1),
}


@cache
def of_ngrams(space):
    """Joint metrics that see n-grams of the texts of a space."""
    counts = np.hstack([qd.ngrams.ngram_matrix(space, n).T for n in (1, 2)])
    pairs = partial(space.ngram_distribution, n=2)
    return {
        "forward CE": lambda q, p: nll(metrics.markov_projection(space, q, 1), p),
        "CND of pairs": lambda q, p: qd.cnd(pairs(q), pairs(p)),
        "-MS-Jaccard-1": lambda q, p: -qd.ms_jaccard(space, q, p, 1)[-1],
        "-MS-Jaccard-2": lambda q, p: -qd.ms_jaccard(space, q, p, 2)[-1],
        "Frechet": lambda q, p: metrics.frechet_distance(q, p, counts),
    }


JOINT = RATIO | of_ngrams(SPACE) | {"CND": qd.cnd}
LINEAR = {
    "Oracle-NLL": qd.cross_entropy,
    "reverse CE": lambda q, p: nll(metrics.markov_projection(SPACE, p, 1), q),
    "-CR": lambda q, p: -qd.coverage_rate(q, p),
    "-BLEU-1": lambda q, p: -qd.expected_bleu(SPACE, q, p, 1)[-1],
    "-BLEU-2": lambda q, p: -qd.expected_bleu(SPACE, q, p, 2)[-1],
}
ONE_SIDED = LINEAR | {
    "-SE": lambda q, p: -qd.entropy(q),
    "-NRR": lambda q, p: -qd.negative_repetition_rate(q),
    "Self-BLEU-1": lambda q, p: qd.expected_self_bleu(SPACE, q, 1)[-1],
    "Self-BLEU-2": lambda q, p: qd.expected_self_bleu(SPACE, q, 2)[-1],
    "-Distinct-2": lambda q, p: -qd.ngrams.expected_distinct(SPACE, q, 2, 10),
}


def scores(functions, models, p):
    """Name -> the values of all models; the Frechet distance is NumPy's."""
    calls = {n: f if n == "Frechet" else compiled(f) for n, f in functions.items()}
    models = [*map(np.asarray, models)]
    return {n: np.array([float(f(q, p)) for q in models]) for n, f in calls.items()}


def coefficient(method, x, y):
    return float(np.asarray(method(x, y))[0])


def oracle(seed):
    return qd.LSTMLanguageModel.random(jax.random.key(seed), 3, sigma=0.7, end_token=2)


def mixed(p, other, shares):
    return [(1 - e) * p + e * other for e in shares]


# --- P, noise and topics ------------------------------------------------------------


@pytest.mark.claim("N13.1", "N15.1")
@pytest.mark.parametrize("seed", range(2))
def test_joint_metrics_are_least_at_the_real_distribution_and_one_sided_are_not(seed):
    joint = JOINT | {
        "NLL": nll,
        "Jeffreys": qd.divergences.jeffreys_divergence,
        "Renyi": lambda q, p: qd.divergences.renyi_divergence(q, p, 2),
    }
    rng = np.random.default_rng(seed)
    p, *models = rng.dirichlet(np.ones(SIZE), 10)
    models = [p, *models, *np.eye(SIZE)[2:], UNIFORM]
    for name, values in scores(joint | ONE_SIDED, models, p).items():
        if name in joint:
            assert (values[1:] > values[0] - 1e-12).all(), name
            assert values[1] > values[0] + 1e-4, name
        else:
            assert values[1:].min() < values[0] - 1e-6, name


@pytest.mark.claim("N15.2")
@pytest.mark.parametrize("seed", range(20))
def test_temperature_orders_quality_and_diversity_by_its_range(seed):
    p, beta = draw(seed, 9, 1.0), np.linspace(0.1, 3, 30)
    q = np.array([power(p, b) for b in beta])
    quality, se = -(q @ np.log(p)), entropy(q, axis=1)
    assert (np.diff([quality, se]) < 0).all()
    assert (np.diff((quality - se)[beta <= 1]) < 0).all()
    assert (np.diff((quality - se)[beta >= 1]) > 0).all()


@pytest.mark.claim("N15.3")
@pytest.mark.parametrize("seed", range(3))
def test_joint_metrics_never_fall_with_any_noise(seed):
    p, other = np.random.default_rng(seed).dirichlet(np.full(SIZE, 0.7), 2)
    for name, values in scores(JOINT, mixed(p, other, np.arange(8) / 8), p).items():
        assert np.diff(values).min() > 0, name


def test_squared_frechet_distance_is_convex_by_the_printed_formula():
    def squared(q):
        a, b = (np.cov(x.T, aweights=w, ddof=0) for w in (q, p))
        return np.sum(((q - p) @ x) ** 2) + np.trace(a + b - 2 * sqrtm(a @ b)).real

    rng = np.random.default_rng(4)
    for _ in range(40):
        x, t = rng.normal(size=(12, 3)) ** 3, rng.random()
        p, a, b = rng.dirichlet(np.ones(12), 3)
        chord = (1 - t) * squared(a) + t * squared(b)
        # sqrtm of a product that is not symmetric loses some digits.
        assert squared((1 - t) * a + t * b) < chord + 1e-9


@pytest.mark.claim("N15.5", "N15.16")
@pytest.mark.parametrize("num_topics", [2, 3])
def test_moving_mass_between_topics_is_a_matter_of_their_masses(num_topics):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p, topic = rng.dirichlet(np.ones(SIZE)), rng.permutation(SIZE) % num_topics
        masses, moved = np.bincount(topic, p, minlength=SIZE), np.zeros(SIZE)
        # Of two topics one is left alone: a restriction of P.
        moved[:3] = [1, 0, 0] if num_topics == 2 else rng.dirichlet(np.ones(3))
        found = scores(RATIO, [p * moved[topic] / masses[topic]], p)
        for name, expected in scores(RATIO, [moved], masses).items():
            # A sum of 14 roundings; PRD's angles near 0 multiply them by up to 60.
            assert abs(found[name] - expected).max() < 1e-12, name


@pytest.mark.claim("N15.22")
@pytest.mark.parametrize("seed", range(3))
def test_one_topic_left_moves_linear_metrics_nowhere_on_average(seed):
    """Topics of texts at random, each as likely as it is in P."""
    rng = np.random.default_rng(seed)
    p, topic = rng.dirichlet(np.ones(SIZE)), rng.permutation(SIZE) % 3
    models = [p, *(restrict(p, topic == t) for t in range(3))]
    for name, (real, *left) in scores(LINEAR | JOINT, models, p).items():
        change = np.bincount(topic, p) @ left - real
        assert abs(change) < 1e-12 if name in LINEAR else change > 1e-6, name


# --- trained models and sweeps ------------------------------------------------------


@cache
def trained():
    """(size, seed, epochs) -> the distribution of notebook 15's trained model."""
    rows = (map(float, row.values()) for row in rows_of("ordering.csv"))
    found = {(h, seed, e): np.exp(log_q) for h, seed, e, *log_q in rows}
    # Log-probabilities are rounded to 4 decimals.
    assert max(abs(q.sum() - 1) for q in found.values()) < 1e-4
    return {key: q / q.sum() for key, q in found.items()}


@cache
def world():
    """Notebook 15's space, P and the frequencies of its training set."""
    space = qd.TextSpace(vocab_size=3, lengths=(1, 2, 3, 4))
    first, second = jax.random.split(jax.random.key(15))
    model = qd.LSTMLanguageModel.random(first, 4, sigma=0.5, end_token=3)
    p = np.asarray(model.probabilities(space))
    drawn = np.asarray(qd.sample(second, p, 400))
    return space, p, np.bincount(drawn, minlength=p.size) / 400


@pytest.mark.claim("N15.7")
def test_each_training_lowers_the_likelihood_it_was_given():
    training, of_model = world()[2], defaultdict(list)
    for (size, seed, _), q in trained().items():
        of_model[size, seed].append(-(training @ np.log(q)))
    for losses in of_model.values():
        assert (np.diff(losses) < 0).all()
        assert min(losses) > entropy(training)


def by_seed(names, sizes_and_epochs):
    """For each seed, name -> values along the given checkpoints."""
    space, p, _ = world()
    bleu = {"BLEU": lambda q, p: -qd.expected_bleu(space, q, p, 2)[-1]}
    every = RATIO | of_ngrams(space) | {"NLL": nll} | bleu
    for seed in range(7):
        models = [trained()[h, seed, e] for h, e in sizes_and_epochs]
        yield scores({name: every[name] for name in names}, models, p)


@pytest.mark.claim("N15.8")
def test_up_to_the_best_epoch_each_seed_gives_the_order():
    best, epochs = {1: 1000, 4: 200, 32: 50}, (10, 20, 50, 100, 200, 500, 1000)
    early = [(h, e) for h, e in product(best, epochs) if e <= best[h]]
    names = "Jensen-Shannon", "BLEU", "Frechet", "forward CE", "NLL"
    for against, *values in map(dict.values, by_seed(names, early)):
        bleu, *others = (coefficient(kendalltau, x, against) for x in values)
        assert bleu < 0.6 < 0.7 < min(others)


@pytest.mark.claim("N15.9")
def test_of_every_seed_the_large_model_learns_by_heart_unseen_by_pairs():
    names = "NLL", "KL", "Hellinger", "Frechet", "forward CE"
    for seed, found in enumerate(by_seed(names, [(32, 50), (32, 1000)])):
        nll, kl, hellinger, *pairs = (last / best for best, last in found.values())
        assert nll > 1.05 < 1.2 < min(kl, hellinger)
        assert max(pairs) < 1.1
        assert abs(trained()[32, seed, 1000] - world()[2]).sum() / 2 < 0.01


def temper_tokens(space, q, t):
    """Token temperature: children over their parent, level by level."""
    tokens, powers = [tuple(x) for x in np.asarray(space.tokens).tolist()], 1.0
    for depth in range(1, space.max_length + 1):
        mass, total = defaultdict(float), defaultdict(float)
        for text, x in zip(tokens, q, strict=True):
            mass[text[:depth]] += x
        for prefix, x in mass.items():
            total[prefix[:-1]] += x ** (1 / t)
        each = ((text[:depth], text[: depth - 1]) for text in tokens)
        powers *= np.array([mass[a] ** (1 / t) / total[b] for a, b in each])
    return powers


@pytest.mark.claim("N15.10", "N15.20")
@pytest.mark.parametrize("seed", range(2))
def test_a_sweep_follows_from_the_texts_and_a_hot_model_cools_to_its_own(seed):
    model = oracle(seed)
    p, hot = (np.asarray(model.probabilities(SPACE, t)) for t in (1, 1.5**3))
    for t in (0.4, 1.0, 2.5):
        tempered = np.asarray(model.probabilities(SPACE, t))
        assert abs(temper_tokens(SPACE, p, t) - tempered).max() < 1e-14
    assert abs(temper_tokens(SPACE, hot, 1.5**-3) - p).max() < 1e-12
    # A noisy model is closer, at whatever temperature the hot one's sweep ends.
    values = scores(RATIO, [0.9 * p + 0.1 * UNIFORM, hot], p)
    assert all(close < far for close, far in values.values())


@pytest.mark.claim("N15.11")
@pytest.mark.parametrize("seed", [1, 2])
def test_nll_and_bhattacharyya_follow_the_sweeps_of_other_seeds(seed):
    (space, p, _), grid = world(), 1.5 ** np.linspace(-5, 6, 56)
    at = (32, 50), (32, 1000), (4, 1000), (1, 1000)
    models = [trained()[size, seed, epochs] for size, epochs in at]
    models += [p, 0.8 * p + 0.2 / p.size]
    orders, measured = [], []
    inside = (grid > 1.5**-3.01) & (grid < 1.5**4.01)
    for q in models:
        sweep = np.array([temper_tokens(space, q, t) for t in grid])
        plane = -(sweep @ np.log(p)), (sweep * np.log(sweep)).sum(axis=1)
        own = -(p @ np.log(q)), -np.log(np.sqrt(p * q).sum()), -(q @ np.log(p))
        measured.append((*plane, own))
    for (x, y, a), (u, v, b) in permutations(measured, 2):
        u, v = u[inside], v[inside]
        if (np.interp(u, x, y) <= v + 1e-9).all() and x.min() < u.min():
            orders.append(np.less(a, b))
    nll, bhattacharyya, quality = np.mean(orders, axis=0)
    assert nll == bhattacharyya == 1 > quality


# --- correlations over families of models -------------------------------------------


def families(seed):
    """An oracle's distribution, and four families of models of it."""
    model = oracle(seed)
    p = np.asarray(model.probabilities(SPACE))
    rank = np.argsort(np.argsort(-p))
    return p, {
        "token": [model.probabilities(SPACE, t) for t in TEMPERATURES],
        "text": [power(p, 1 / t) for t in TEMPERATURES],
        "noise": mixed(p, UNIFORM, (0.1, 0.3, 0.5, 0.7, 0.9)),
        "missing": [restrict(p, rank >= k) for k in (1, 2, 4, 6, 8)],
    }


@pytest.mark.claim("N15.12", "N15.13")
@pytest.mark.parametrize("seed", range(2))
def test_joint_metrics_correlate_with_divergences_and_the_family_sets_the_sign(seed):
    """By Spearman's coefficient, over all families and in each."""
    p, models = families(seed)
    table, rank = [scores(JOINT | ONE_SIDED, qs, p) for qs in models.values()], {}
    for name in JOINT | ONE_SIDED:
        x, y = ([np.round(t[n], 10) for t in table] for n in (name, "Jensen-Shannon"))
        both = [(np.concatenate(x), np.concatenate(y)), *zip(x, y, strict=True)]
        rank[name] = [coefficient(spearmanr, *pair) for pair in both]
    joint, single = ([rank[name][0] for name in x] for x in (JOINT, ONE_SIDED))
    assert min(rank["-MAUVE"][0], rank["frontier integral"][0]) > 0.99
    assert np.median(joint) > 0.9 > 0.7 > np.median(single)
    assert max(single) < 0.9
    for name in ("Oracle-NLL", "-CR", "-SE", "-NRR"):
        assert np.ptp(rank[name][1:]) > 0.5
    assert min(np.median([rank[name][1:] for name in JOINT], axis=0)) > 0.8
    # Cold texts and noise: a sign each, whatever the oracle.
    for values, kept, sign in ((table[1], 4, -1), (table[2], 5, 1)):
        far = values["Jensen-Shannon"][:kept]
        for name, other in (("Oracle-NLL", sign), ("-SE", -sign)):
            assert coefficient(spearmanr, values[name][:kept], far) * other > 0.99


@pytest.mark.claim("N15.14")
def test_distances_that_are_functions_of_each_other_correlate_in_rank_only():
    rng = np.random.default_rng(14)
    p, models = rng.dirichlet(np.ones(10)), rng.dirichlet(np.full(10, 0.05), 50)
    h, b = (scores(RATIO, models, p)[n] for n in ("Hellinger", "Bhattacharyya"))
    assert np.allclose(np.exp(-b), 1 - h**2, rtol=1e-12, atol=0)
    # One far model turns Pearson's sign; ranks bound what one of n can do.
    far = [*range(20), 1e3], [*range(0, -20, -1), 1e3]
    for x, y, low, high in ((h, b, 0, 0.98), (*far, 0.99, 1)):
        assert low < coefficient(pearsonr, x, y) < high
    assert coefficient(spearmanr, h, b) > 1 - 1e-12
    assert coefficient(spearmanr, *far) < -0.6


# --- damage -------------------------------------------------------------------------


@pytest.mark.claim("N15.15")
def test_no_rearrangement_of_words_moves_the_metrics_of_words():
    rng = np.random.default_rng(15)
    by_words = ("-BLEU-1", "Self-BLEU-1", "-MS-Jaccard-1")
    functions = {n: (JOINT | ONE_SIDED)[n] for n in (*by_words, "-Distinct-2")}
    for _ in range(5):
        p, moved = rng.dirichlet(np.ones(SIZE)), np.zeros(SIZE)
        for text, chance in zip(TEXTS, p, strict=True):
            moved[TEXTS.index(tuple(rng.permutation(text).tolist()))] += chance
        *of_words, of_pairs = map(np.ptp, scores(functions, [p, moved], p).values())
        assert (of_pairs > 1e-6) == (abs(moved - p).max() > 0)
        assert max(of_words) < 1e-13


def dropped(p, s):
    """Word dropout by counting where a shorter text stands in a longer one."""
    q = np.zeros(SIZE)
    for x, chance in zip(TEXTS, p, strict=True):
        for kept in product((False, True), repeat=len(x)):
            weight = chance * (1 - s) ** sum(kept) * s ** (len(x) - sum(kept))
            # Of a text that would be empty one word stays.
            left = [tuple(compress(x, kept))] if any(kept) else [(w,) for w in x]
            for text in left:
                q[TEXTS.index(text)] += weight / len(left)
    return q


@pytest.mark.claim("N15.17")
@pytest.mark.parametrize("seed", range(2))
def test_damage_improves_one_sided_metrics_only(seed):
    p, strengths = np.asarray(oracle(seed).probabilities(SPACE)), (0.1, 0.3, 0.5)
    first = SPACE.tokens[:, 0] == SPACE.tokens[p.argmax(), 0]
    drops = [dropped(p, s) for s in strengths]
    for models in (drops, mixed(p, restrict(p, first), strengths)):
        assert abs(np.sum(models, axis=1) - 1).max() < 1e-14
        found = scores(JOINT | ONE_SIDED, [p, *models], p)
        for name in JOINT:
            assert (found[name][1:] > found[name][0] - 1e-12).all(), name
        assert any((found[x][1:] < found[x][0]).all() for x in ONE_SIDED)


# --- blind spots --------------------------------------------------------------------


def in_the_kernel(rows, p, seed):
    """P moved along a null vector of the rows, half-way to the edge."""
    kernel = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    move = np.random.default_rng(seed).normal(size=len(kernel)) @ kernel
    return p + move * (-p / move)[move < 0].min() / 2


@pytest.mark.claim("N13.6", "N13.11")
@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_pairs_are_blind_to_what_keeps_all_pairs(seed):
    p, starts = draw(seed, 8, 2.0), THREE.tokens[:, 0] == np.arange(2)[:, None]
    grams = np.vstack([qd.ngrams.ngram_matrix(THREE, n) for n in (1, 2)]).astype(float)
    q = in_the_kernel(np.vstack([starts, grams]), p, seed)
    jaccard = qd.ms_jaccard(THREE, q, p, 3)
    np.testing.assert_allclose(jaccard[:2], 1, rtol=1e-13)
    assert float(jaccard[-1]) < 1 - 1e-4
    one, two = (
        [metrics.markov_projection(THREE, x, k) for x in (q, p)] for k in (1, 2)
    )
    np.testing.assert_allclose(*one, rtol=1e-13)
    assert float(qd.divergences.total_variation(*two)) > 1e-3
    along = mixed(p, q, np.linspace(0, 1, 5))
    for name in ("KL", "Hellinger"):
        assert (np.diff(scores(RATIO, along, p)[name]) > 0).all()
    assert np.ptp(grams @ np.transpose(along), axis=1).max() < 1e-14


@pytest.mark.claim("N13.7")
def test_frechet_is_blind_to_all_but_two_moments():
    p, x = draw(3, 8, 2.0), np.arange(8.0)
    q = in_the_kernel(x ** np.arange(3)[:, None], p, seed=4)
    assert float(qd.divergences.total_variation(q, p)) > 1e-2
    # The third moment is seen, as a feature.
    for features, low, high in (
        (x[:, None], 0, 1e-6),
        (np.stack([x, x**3], 1), 1e-2, 9),
    ):
        assert low <= float(metrics.frechet_distance(q, p, features)) <= high


# --- bias over every sample ---------------------------------------------------------


def limit(value, size):
    """Of a function of n that is its limit plus O(1/n), from n and 2n."""
    return 2 * value(2 * size) - value(size)


def every_count(n, p):
    """All counts of three outcomes, with their probabilities."""
    pairs = combinations_with_replacement(range(n + 1), 2)
    counts = np.array([(a, b - a, n - b) for a, b in pairs])
    return counts, multinomial.pmf(counts, n, p)


@pytest.mark.claim("N13.2")
def test_bias_of_the_bhattacharyya_estimate_over_every_sample():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.35, 0.4])
    distance = float(qd.divergences.bhattacharyya_distance(q, p))

    def bias_times_n(n):
        both = zip(map(every_count, (n, n), (p, q)), (q / p, p / q))
        logs = [w @ np.log(x @ np.sqrt(ratio) / n) for (x, w), ratio in both]
        return -n * (sum(logs) / 2 + distance)

    expected = (np.sqrt(p * q).sum() ** -2 - 1) / 2
    # The error of the extrapolation is O(n^-2).
    assert limit(bias_times_n, 60) == pytest.approx(expected, rel=1e-3)


@pytest.mark.claim("N13.8")
def test_bias_of_the_frechet_distance_over_every_pair_of_samples():
    p, x = np.array([0.4, 0.35, 0.25]), np.array([0.0, 1.0, 3.0])
    variance = p @ (x - p @ x) ** 2

    def bias_times_n(n):
        counts, weight = every_count(n, p)
        mean = counts @ x / n
        deviation = np.sqrt(np.maximum(counts @ x**2 / n - mean**2, 0))
        # (m - m')^2 + (s - s')^2 of two independent samples.
        return 2 * n * sum(weight @ y**2 - (weight @ y) ** 2 for y in (mean, deviation))

    fourth = p @ (x - p @ x) ** 4 - variance**2
    expected = 2 * variance + fourth / (2 * variance)
    assert limit(bias_times_n, 100) == pytest.approx(expected, rel=1e-2)


@pytest.mark.claim("N13.10")
def test_data_bias_over_every_sample_of_coins():
    # Texts of one token of two: one free parameter, add one to both counts.
    space, p = qd.TextSpace(2, 1), np.array([0.7, 0.3])

    def excess_times_2n(n):
        heads = np.arange(n + 1)
        fits = np.stack([heads + 1, n - heads + 1]) / (n + 2)
        chances = binom.pmf(heads, n, p[0])
        return -2 * n * (chances @ (p @ np.log(fits)) + entropy(p))

    assert limit(excess_times_2n, 400) == pytest.approx(1, rel=1e-3)
    # The library's fit to counts is this one.
    fit = metrics.markov_projection(space, np.array([7.0, 2.0]), 0, alpha=1.0)
    np.testing.assert_allclose(fit, [8 / 11, 3 / 11], rtol=1e-14)


# --- one text, and copies of the training set ---------------------------------------


@pytest.mark.claim("N13.14")
def test_one_text_has_the_most_of_a_linear_metric():
    p, q = draw(0, SIZE, 2.0), draw(50, SIZE, 2.0)
    values = scores(LINEAR, [q, *np.eye(SIZE)], p)
    for mine, *each in values.values():
        assert min(each) < mine == pytest.approx(q @ each, abs=1e-13)
    assert min(values["Oracle-NLL"][1:]) == pytest.approx(-np.log(p.max()), rel=1e-15)


def over_training_sets(metric, p, m):
    """The mean over every sequence of m texts."""
    sets = np.array([*product(range(4), repeat=m)])
    copies = (sets[:, :, None] == np.arange(4)).mean(axis=1)
    # A batch, so that one shape is compiled.
    return p[sets].prod(axis=1) @ np.asarray(jax.vmap(metric)(copies))


@pytest.mark.claim("N13.19", "N13.20")
@pytest.mark.parametrize("m", [1, 3])
def test_linear_metrics_do_not_see_copies_and_cnd_does_by_one_over_m(m):
    p = draw(7, 4, 2.0)
    for metric, expected in (
        (lambda q: qd.cross_entropy(q, p), entropy(p)),
        (lambda q: qd.coverage_rate(q, p), p @ p),
        (lambda q: qd.cnd(q, p), (1 - p @ p) / m),
    ):
        found = over_training_sets(metric, p, m)
        assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.claim("N13.21")
@pytest.mark.parametrize("m", [2, 5])
def test_memory_sees_what_copies_lack(m):
    p = draw(9, 4, 2.0)

    def infinite(order):
        fit = partial(metrics.markov_projection, TWO, order=order)
        return over_training_sets(lambda q: nll(fit(q), p) == np.inf, p, m)

    # Order 0 lacks a token, order 1 a text: inclusion and exclusion.
    assert infinite(0) == pytest.approx(p[0] ** m + p[3] ** m, rel=1e-12)
    subsets = (np.array(x) for x in product((False, True), repeat=4))
    complete = sum((-1.0) ** (4 - x.sum()) * p[x].sum() ** m for x in subsets)
    assert infinite(1) == pytest.approx(1 - complete, rel=1e-12)


@pytest.mark.claim("N13.22")
@pytest.mark.parametrize("size", [1, 3, 6])
def test_copies_repeat_themselves(size):
    p, m = draw(10, 4, 2.0), 3

    def distinct(q):
        return qd.ngrams.expected_distinct(TWO, q, 2, size)

    # A text of the sample is new unless an earlier one chose the same place of
    # the training set, or another place with the same text.
    j = np.arange(m + 1)
    places = binom.pmf(j, m, p[:, None])
    expected = (1 - places @ (1 - j / m) ** size).sum() / size
    found = over_training_sets(distinct, p, m)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found < float(distinct(p)) or size == 1
