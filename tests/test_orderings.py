"""How metrics order models: other worlds and seeds, and models by hand."""

from collections import defaultdict
from functools import cache
from itertools import combinations, pairwise, permutations, product

import jax
import numpy as np
import pytest
from lab import metrics
from scipy.linalg import sqrtm
from scipy.stats import kendalltau, pearsonr, spearmanr
from scripts import rows_of

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=2, lengths=(1, 2, 3))
TEXTS = [tuple(row[row >= 0].tolist()) for row in SPACE.tokens]
SIZE = len(TEXTS)


def f_score(which, q, p):
    points = metrics.precision_recall_distributions(q, p, 101)
    return metrics.prd_f_scores(points)[which]


RATIO = {
    "KL": qd.kl_divergence,
    "Jensen-Shannon": qd.jensen_shannon_divergence,
    "total variation": qd.divergences.total_variation,
    "Hellinger": qd.divergences.hellinger_distance,
    "Bhattacharyya": qd.divergences.bhattacharyya_distance,
    "-MAUVE": lambda q, p: -metrics.mauve(q, p),
    "frontier integral": metrics.frontier_integral,
    "-PRD F8": lambda q, p: -f_score(0, q, p),
    "-PRD F1/8": lambda q, p: -f_score(1, q, p),
}


@cache
def of_ngrams(space):
    """Joint metrics that see n-grams of the texts of a space."""
    counts = np.hstack([qd.ngrams.ngram_matrix(space, n).T for n in (1, 2)])
    return {
        "forward CE": lambda q, p: qd.cross_entropy(
            p, metrics.markov_projection(space, q, 1)
        ),
        "CND of pairs": lambda q, p: qd.cnd(
            *(space.ngram_distribution(x, 2) for x in (q, p))
        ),
        "-MS-Jaccard-1": lambda q, p: -qd.ms_jaccard(space, q, p, 1)[-1],
        "-MS-Jaccard-2": lambda q, p: -qd.ms_jaccard(space, q, p, 2)[-1],
        "Frechet": lambda q, p: metrics.frechet_distance(q, p, counts),
    }


JOINT = RATIO | of_ngrams(SPACE) | {"CND": qd.cnd}
QUALITY = {
    "Oracle-NLL": qd.cross_entropy,
    "reverse CE": lambda q, p: qd.cross_entropy(
        q, metrics.markov_projection(SPACE, p, 1)
    ),
    "-CR": lambda q, p: -qd.coverage_rate(q, p),
    "-BLEU-1": lambda q, p: -qd.expected_bleu(SPACE, q, p, 1)[-1],
    "-BLEU-2": lambda q, p: -qd.expected_bleu(SPACE, q, p, 2)[-1],
}
DIVERSITY = {
    "-SE": lambda q, p: -qd.entropy(q),
    "-NRR": lambda q, p: -qd.negative_repetition_rate(q),
    "Self-BLEU-1": lambda q, p: qd.expected_self_bleu(SPACE, q, 1)[-1],
    "Self-BLEU-2": lambda q, p: qd.expected_self_bleu(SPACE, q, 2)[-1],
    "-Distinct-2": lambda q, p: -qd.ngrams.expected_distinct(SPACE, q, 2, 10),
}
ONE_SIDED = QUALITY | DIVERSITY
UNIFORM = np.full(SIZE, 1 / SIZE)
TEMPERATURES = 1.5 ** np.arange(-3.0, 5)


def coefficient(method, x, y):
    return float(np.asarray(method(x, y))[0])


compiled = cache(jax.jit)


def scores(functions, models, p):
    """Name -> the values of all models; the Frechet distance is NumPy's."""
    return {
        name: np.array([float(call(np.asarray(q), p)) for q in models])
        for name, f in functions.items()
        for call in [f if name == "Frechet" else compiled(f)]
    }


def oracle(seed):
    return qd.LSTMLanguageModel.random(
        jax.random.key(seed), vocab_size=3, sigma=0.7, end_token=2
    )


def restrict(p, keep):
    return np.where(keep, p, 0) / p[keep].sum()


def families(seed):
    """An oracle's distribution, and four families of models of it."""
    model = oracle(seed)
    p = np.asarray(model.probabilities(SPACE))
    rank = np.argsort(np.argsort(-p))
    return p, {
        "token": [model.probabilities(SPACE, t) for t in TEMPERATURES],
        "text": [p ** (1 / t) / (p ** (1 / t)).sum() for t in TEMPERATURES],
        "noise": [(1 - e) * p + e * UNIFORM for e in (0.1, 0.3, 0.5, 0.7, 0.9)],
        "missing": [restrict(p, rank >= k) for k in (1, 2, 4, 6, 8)],
    }


@cache
def trained():
    """(size, seed, epochs) -> the distribution of notebook 15's trained model."""
    found = {}
    for row in rows_of("ordering.csv"):
        size, seed, epochs, *log_q = row.values()
        q = np.exp(np.array(log_q, float))
        # Log-probabilities are rounded to 4 decimals.
        assert abs(q.sum() - 1) < 1e-4
        found[int(size), int(seed), int(epochs)] = q / q.sum()
    return found


@cache
def world():
    """Notebook 15's space, P and the frequencies of its training set."""
    space = qd.TextSpace(vocab_size=3, lengths=(1, 2, 3, 4))
    first, second = jax.random.split(jax.random.key(15))
    model = qd.LSTMLanguageModel.random(first, 4, sigma=0.5, end_token=3)
    p = np.asarray(model.probabilities(space))
    drawn = np.asarray(qd.sample(second, p, 400))
    return space, p, np.bincount(drawn, minlength=p.size) / 400


@pytest.mark.claim("N15.1")
def test_joint_metrics_are_least_at_the_real_distribution_and_one_sided_are_not():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(SIZE))
        models = [*rng.dirichlet(np.full(SIZE, 0.5), 9), *np.eye(SIZE)[2:], UNIFORM]
        for name, values in scores(JOINT, [p, *models], p).items():
            assert (values[1:] > values[0] - 1e-12).all(), name
        for name, values in scores(ONE_SIDED, [p, *models], p).items():
            assert values[1:].min() < values[0] - 1e-6, name


@pytest.mark.claim("N15.2")
def test_temperature_orders_quality_and_diversity_by_its_range():
    for seed in range(20):
        p = np.random.default_rng(seed).dirichlet(np.ones(9))
        beta = np.linspace(0.1, 3, 30)
        q = p ** beta[:, None]
        q /= q.sum(axis=1, keepdims=True)
        nll, entropy = -(q @ np.log(p)), -(q * np.log(q)).sum(axis=1)
        kl = nll - entropy
        assert (np.diff(nll) < 0).all()
        assert (np.diff(entropy) < 0).all()
        assert (np.diff(kl[beta <= 1]) < 0).all()
        assert (np.diff(kl[beta >= 1]) > 0).all()


@pytest.mark.claim("N15.3")
def test_joint_metrics_never_fall_with_any_noise():
    for seed in range(6):
        p, other = np.random.default_rng(seed).dirichlet(np.full(SIZE, 0.7), 2)
        models = [(1 - e) * p + e * other for e in np.linspace(0, 1, 9)[:-1]]
        for name, values in scores(JOINT, models, p).items():
            assert np.diff(values).min() > 0, name


@pytest.mark.claim("N15.4")
def test_squared_frechet_distance_is_convex_by_the_printed_formula():
    def squared(q, p, x):
        means = [w @ x for w in (q, p)]
        a, b = (np.cov(x.T, aweights=w, ddof=0) for w in (q, p))
        distance = np.sum((means[0] - means[1]) ** 2)
        return distance + np.trace(a + b - 2 * sqrtm(a @ b)).real

    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(12, 3)) ** 3
        p, a, b = rng.dirichlet(np.ones(12), 3)
        t = rng.random()
        chord = (1 - t) * squared(a, p, x) + t * squared(b, p, x)
        # sqrtm of a product that is not symmetric loses some digits.
        assert squared((1 - t) * a + t * b, p, x) < chord + 1e-9


@pytest.mark.claim("N15.5", "N15.16")
@pytest.mark.parametrize("num_topics", [2, 3])
@pytest.mark.parametrize("name", RATIO)
def test_moving_mass_between_topics_is_a_matter_of_their_masses(name, num_topics):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(SIZE))
        topic = rng.integers(num_topics, size=SIZE)
        topic[:num_topics] = range(num_topics)
        of_topics = np.bincount(topic, p, minlength=SIZE)
        moved = np.zeros(SIZE)
        # Of two topics one is left alone: a restriction of P.
        moved[:3] = [1, 0, 0] if num_topics == 2 else rng.dirichlet(np.ones(3))
        q = p * moved[topic] / of_topics[topic]
        distance = compiled(RATIO[name])
        found = distance(q, p) - distance(moved, of_topics)
        # A sum of 14 roundings; PRD's angles near 0 multiply them by up to 60.
        assert abs(float(found)) < 1e-12


@pytest.mark.claim("N15.6")
def test_words_see_which_texts_are_missing_not_how_many():
    space = qd.TextSpace(vocab_size=2, lengths=2)
    p = np.array([0.3, 0.2, 0.2, 0.3])  # aa, ab, ba, bb
    without_mixed = np.array([0.5, 0.0, 0.0, 0.5])
    without_aa = np.array([0.0, 2, 2, 3]) / 7
    assert qd.divergences.total_variation(
        without_mixed, p
    ) > qd.divergences.total_variation(without_aa, p)
    for q, perfect in ((without_mixed, True), (without_aa, False)):
        assert (qd.ms_jaccard(space, q, p, 1)[0] > 1 - 1e-15) == perfect
        words = [space.ngram_distribution(x, 1) for x in (q, p)]
        assert (qd.cnd(*words) < 1e-30) == perfect
        counts = qd.ngrams.ngram_matrix(space, 1).T
        means = [x @ counts for x in (q, p)]
        assert np.allclose(*means, rtol=0, atol=1e-15) == perfect


@pytest.mark.claim("N15.7")
def test_each_training_lowers_the_likelihood_it_was_given():
    training = world()[2]
    of_model = defaultdict(list)
    for (size, seed, _), q in trained().items():
        of_model[size, seed].append(-(training @ np.log(q)))
    assert len(of_model) == 21
    seen = training > 0
    least = -(training[seen] @ np.log(training[seen]))
    for losses in of_model.values():
        assert (np.diff(losses) < 0).all()
        assert min(losses) > least


def by_seed(functions, sizes_and_epochs):
    """Seed -> name -> values along the given checkpoints."""
    p = world()[1]
    return [
        scores(functions, [trained()[h, seed, e] for h, e in sizes_and_epochs], p)
        for seed in range(7)
    ]


@pytest.mark.claim("N15.8")
def test_up_to_the_best_epoch_each_seed_gives_the_order():
    early = [(1, e) for e in (10, 20, 50, 100, 200, 500, 1000)]
    early += [(4, e) for e in (10, 20, 50, 100, 200)]
    early += [(32, e) for e in (10, 20, 50)]
    functions = {
        **{n: of_ngrams(world()[0])[n] for n in ("Frechet", "forward CE")},
        "Jensen-Shannon": qd.jensen_shannon_divergence,
        "NLL": lambda q, p: qd.cross_entropy(p, q),
        "BLEU": lambda q, p: -qd.expected_bleu(world()[0], q, p, 2)[-1],
    }
    for values in by_seed(functions, early):
        against = values.pop("Jensen-Shannon")
        taus = {n: coefficient(kendalltau, x, against) for n, x in values.items()}
        assert taus.pop("BLEU") < 0.6
        assert min(taus.values()) > 0.7


@pytest.mark.claim("N15.9")
def test_of_every_seed_the_large_model_learns_by_heart_unseen_by_pairs():
    functions = {
        "NLL": lambda q, p: qd.cross_entropy(p, q),
        "KL": qd.kl_divergence,
        "Hellinger": qd.divergences.hellinger_distance,
        **{n: of_ngrams(world()[0])[n] for n in ("Frechet", "forward CE")},
    }
    ends = [(32, 50), (32, 1000)]
    for seed, values in enumerate(by_seed(functions, ends)):
        ratio = {name: last / best for name, (best, last) in values.items()}
        assert ratio["NLL"] > 1.05
        assert min(ratio["KL"], ratio["Hellinger"]) > 1.2
        assert max(ratio["Frechet"], ratio["forward CE"]) < 1.1
        apart = abs(trained()[32, seed, 1000] - world()[2]).sum() / 2
        assert apart < 0.01


def temper_tokens(space, q, t):
    """Token temperature: children over their parent, level by level."""
    tokens, powers = space.tokens, np.ones(q.size)
    groups = [tuple(map(tuple, tokens[:, :d])) for d in range(space.max_length + 1)]
    for upper, lower in pairwise(groups):
        mass, total = defaultdict(float), defaultdict(float)
        for prefix, x in zip(lower, q, strict=True):
            mass[prefix] += x
        for prefix, x in mass.items():
            total[prefix[:-1]] += x ** (1 / t)
        powers *= [
            mass[b] ** (1 / t) / total[a] for a, b in zip(upper, lower, strict=True)
        ]
    return powers


@pytest.mark.claim("N15.10")
def test_a_sweep_of_tokens_follows_from_the_texts():
    for seed, t in product(range(3), (0.4, 1.0, 2.5)):
        p = np.asarray(oracle(seed).probabilities(SPACE))
        tempered = np.asarray(oracle(seed).probabilities(SPACE, t))
        assert abs(temper_tokens(SPACE, p, t) - tempered).max() < 1e-14


@pytest.mark.claim("N15.11")
@pytest.mark.parametrize("seed", [1, 2])
def test_nll_and_bhattacharyya_follow_the_sweeps_of_other_seeds(seed):
    p = world()[1]
    models = {
        "real": p,
        "best": trained()[32, seed, 50],
        "late": trained()[32, seed, 1000],
        "middle": trained()[4, seed, 1000],
        "small": trained()[1, seed, 1000],
        "noise": 0.8 * p + 0.2 / p.size,
    }
    grid = 1.5 ** np.linspace(-5, 6, 56)
    planes = {}
    for name, model in models.items():
        q = np.array([temper_tokens(world()[0], model, t) for t in grid])
        planes[name] = -(q @ np.log(p)), (q * np.log(q)).sum(axis=1)
    pairs = []
    for a, b in permutations(models, 2):
        (x, y), (u, v) = planes[a], planes[b]
        inside = (grid > 1.5**-3.01) & (grid < 1.5**4.01)
        y_there = np.interp(u[inside], x, y)
        if (y_there <= v[inside] + 1e-9).all() and x.min() < u[inside].min():
            pairs.append((a, b))
    assert len(pairs) >= 4
    numbers = {
        name: (
            -(p @ np.log(q)),
            -np.log(np.sqrt(p * q).sum()),
            -(q @ np.log(p)),
        )
        for name, q in models.items()
    }
    right = np.sum([np.less(numbers[a], numbers[b]) for a, b in pairs], axis=0)
    assert right[0] == right[1] == len(pairs) > right[2]


@pytest.fixture(scope="module")
def correlations():
    """For other oracles: name -> Spearman with Jensen-Shannon, pooled and by family."""
    found = []
    for seed in range(4):
        p, models = families(seed)
        table = {f: scores(JOINT | ONE_SIDED, qs, p) for f, qs in models.items()}
        rank = {}
        for name in JOINT | ONE_SIDED:
            x, y = (
                [np.round(table[f][n], 10) for f in table]
                for n in (name, "Jensen-Shannon")
            )
            both = [(np.concatenate(x), np.concatenate(y)), *zip(x, y, strict=True)]
            rank[name] = [coefficient(spearmanr, *pair) for pair in both]
        found.append(rank)
    return found


@pytest.mark.claim("N15.12")
def test_joint_metrics_correlate_with_divergences_one_sided_ones_do_not(correlations):
    for rank in correlations:
        joint = [rank[name][0] for name in JOINT]
        single = [rank[name][0] for name in ONE_SIDED]
        assert rank["-MAUVE"][0] > 0.99
        assert rank["frontier integral"][0] > 0.99
        assert np.median(joint) > 0.9 > 0.7 > np.median(single)
        assert max(single) < 0.9


@pytest.mark.claim("N15.13")
def test_the_family_sets_the_sign(correlations):
    for rank in correlations:
        for name in ("Oracle-NLL", "-CR", "-SE", "-NRR"):
            assert np.ptp(rank[name][1:]) > 0.5
        assert min(np.median([rank[name][1:] for name in JOINT], axis=0)) > 0.8
    # Cold texts and noise: a sign each, whatever the oracle.
    for seed in range(4):
        p, models = families(seed)
        for family, sign in (("text", -1), ("noise", 1)):
            chosen = models[family][:4] if family == "text" else models[family]
            values = scores({**ONE_SIDED, **RATIO}, chosen, p)
            far = values["Jensen-Shannon"]
            assert coefficient(spearmanr, values["Oracle-NLL"], far) * sign > 0.99
            assert coefficient(spearmanr, values["-SE"], far) * sign < -0.99


@pytest.mark.claim("N15.14")
def test_distances_that_are_functions_of_each_other_correlate_in_rank_only():
    rng = np.random.default_rng(14)
    p = rng.dirichlet(np.ones(10))
    models = rng.dirichlet(np.full(10, 0.05), 50)
    h, b = scores(
        {n: RATIO[n] for n in ("Hellinger", "Bhattacharyya")}, models, p
    ).values()
    assert np.allclose(np.exp(-b), 1 - h**2, rtol=1e-12, atol=0)
    assert coefficient(spearmanr, h, b) > 1 - 1e-12
    assert coefficient(pearsonr, h, b) < 0.98
    # One far model turns Pearson's sign; ranks bound what one of n can do.
    x, y = np.arange(20.0), -np.arange(20.0)
    assert coefficient(pearsonr, [*x, 1e3], [*y, 1e3]) > 0.99
    assert coefficient(spearmanr, [*x, 1e3], [*y, 1e3]) < -0.6


@pytest.mark.claim("N15.15")
def test_no_rearrangement_of_words_moves_the_metrics_of_words():
    rng = np.random.default_rng(15)
    by_words = ("-BLEU-1", "Self-BLEU-1", "-MS-Jaccard-1")
    functions = {n: (JOINT | ONE_SIDED)[n] for n in by_words}
    functions["Distinct-1"] = lambda q, p: qd.ngrams.expected_distinct(SPACE, q, 1, 5)
    functions["Distinct-2"] = lambda q, p: qd.ngrams.expected_distinct(SPACE, q, 2, 5)
    for _ in range(5):
        p = rng.dirichlet(np.ones(SIZE))
        moved = np.zeros(SIZE)
        for text, chance in zip(TEXTS, p, strict=True):
            moved[TEXTS.index(tuple(rng.permutation(text).tolist()))] += chance
        values = scores(functions, [p, moved], p)
        pairs = np.ptp(values.pop("Distinct-2"))
        assert (pairs > 1e-6) == (abs(moved - p).max() > 0)
        assert max(np.ptp(x) for x in values.values()) < 1e-13


def dropped(p, s):
    """Word dropout by counting where a shorter text stands in a longer one."""
    q = np.zeros(SIZE)
    for x, chance in zip(TEXTS, p, strict=True):
        for length in range(1, len(x) + 1):
            weight = (1 - s) ** length * s ** (len(x) - length)
            for places in combinations(range(len(x)), length):
                q[TEXTS.index(tuple(x[i] for i in places))] += chance * weight
        for word in x:
            q[TEXTS.index((word,))] += chance * s ** len(x) / len(x)
    return q


@pytest.mark.claim("N15.17")
def test_damage_improves_one_sided_metrics_only():
    for seed in range(3):
        p = np.asarray(oracle(seed).probabilities(SPACE))
        first = SPACE.tokens[:, 0] == SPACE.tokens[p.argmax(), 0]
        damages = (
            [dropped(p, s) for s in (0.1, 0.3, 0.5)],
            [(1 - s) * p + s * restrict(p, first) for s in (0.1, 0.3, 0.5)],
        )
        for models in damages:
            assert abs(np.sum(models, axis=1) - 1).max() < 1e-14
            for name, values in scores(JOINT, [p, *models], p).items():
                assert (values[1:] > values[0] - 1e-12).all(), name
            better = [
                name
                for name, values in scores(ONE_SIDED, [p, *models], p).items()
                if (values[1:] < values[0]).all()
            ]
            assert better


@pytest.mark.claim("N15.19")
def test_crossing_texts_over_at_a_word_keeps_all_pairs():
    space = qd.TextSpace(vocab_size=3, lengths=3)
    p = np.random.default_rng(19).dirichlet(np.full(27, 5.0))
    # 0 1 0 and 2 1 2 become 0 1 2 and 2 1 0.
    index = [int(space.index(np.array(x))) for x in ((0, 1, 0), (2, 1, 2))]
    crossed = [int(space.index(np.array(x))) for x in ((0, 1, 2), (2, 1, 0))]
    q = p.copy()
    amount = 0.9 * p[index].min()
    q[index] -= amount
    q[crossed] += amount
    for n in (1, 2):
        assert abs(space.ngram_counts(q, n) - space.ngram_counts(p, n)).max() < 1e-15
    assert abs(qd.ms_jaccard(space, q, p, 2) - 1).max() < 1e-14
    ends = [metrics.markov_projection(space, x, 1) for x in (q, p)]
    assert abs(ends[0] - ends[1]).max() < 1e-15
    assert qd.divergences.total_variation(q, p) > 1e-3


@pytest.mark.claim("N15.20")
def test_a_hot_model_cools_to_its_sweep_and_is_far_before():
    for seed in range(4):
        model = oracle(seed)
        p, hot = (np.asarray(model.probabilities(SPACE, t)) for t in (1, 1.5**3))
        assert abs(temper_tokens(SPACE, hot, 1.5**-3) - p).max() < 1e-12
        # A noisy model is closer, at whatever temperature the hot one's sweep ends.
        noisy = 0.9 * p + 0.1 * UNIFORM
        values = scores(RATIO, [noisy, hot], p)
        assert all(close < far for close, far in values.values())


@pytest.mark.claim("N15.22")
def test_one_topic_left_moves_linear_metrics_nowhere_on_average():
    """Topics of texts at random, each as likely as it is in P."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(SIZE))
        topic = rng.permutation(np.arange(SIZE) % 3)
        shares = np.bincount(topic, p)
        models = [p, *(restrict(p, topic == t) for t in range(3))]
        for name, (real, *left) in scores(QUALITY, models, p).items():
            assert abs(shares @ left - real) < 1e-12, name
        for name, (real, *left) in scores(JOINT, models, p).items():
            assert shares @ left > real + 1e-6, name
