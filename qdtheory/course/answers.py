"""What each exercise asks for: the functions and tests that its grader applies."""

from itertools import permutations, product

import jax
import numpy as np
from numpy.typing import ArrayLike

import qdtheory as qd
from qdtheory.course.grading import (
    Fault,
    Grader,
    as_distribution,
    as_formula,
    as_numbers,
    function,
    number,
    statement,
    witness,
)

# Probabilities of the texts aa, ab, ba, bb, or of a, b, c, d.
HALVES = np.array([0.5, 0.5])
FOUR = (0.4, 0.3, 0.2, 0.1), (0.1, 0.6, 0.05, 0.25), (0.25, 0.25, 0.25, 0.25)


def fours(*more: object) -> list[tuple]:
    """Arguments of a function of four probabilities, and of what else it takes."""
    return [(np.array(p), *more) for p in FOUR]


def temper_tokens(p: np.ndarray, beta: float) -> ArrayLike:
    """Token-level tempering of texts of two tokens over two."""
    by_first = p.reshape(2, 2)
    second = [qd.temper(row / row.sum(), beta) for row in by_first]
    first = qd.temper(by_first.sum(axis=1), beta)
    return (np.asarray(first)[:, None] * np.asarray(second)).ravel()


def has_unlikely_greedy_text(answer: object) -> bool:
    """The text of the likeliest tokens has less than .51 of the mode's probability."""
    by_first = as_distribution(answer, 4).reshape(2, 2)
    first = by_first.sum(axis=1)
    greedy = by_first[first.argmax()].max()
    return first[0] != first[1] and greedy < 0.51 * by_first.max()


def is_rational_cubic(answer: object) -> bool:
    """A rational g = a x^2 + b x^3 that is convex from .55 on."""
    a, b = map(float, as_numbers(answer))
    pair = qd.SeparablePair(qd.formulas.CR, lambda x: a * x**2 + b * x**3)
    return 2 * a + 6 * b * 0.55 >= 0 and qd.check_rationality(pair).rational


def is_pair_of_two_rewards(answer: object) -> bool:
    """A formula of D that is a pair, rewards 1/2 with 1 and e / (1 + e) with 3."""
    rho = qd.generators.given_reward(str(answer))
    rewards = rho.of_discriminator(np.array([0.5, np.e / (1 + np.e)]))
    fits = np.allclose(rewards, [1, 3], atol=1e-9)
    return fits and qd.generators.check_reward(rho).is_pair is True


def is_on_frontier(answer: object) -> bool:
    """Five positive probabilities, not all equal, that LL-NRR has on its frontier."""
    p = as_distribution(answer, 5)
    if p.min() == 0:
        raise Fault("a probability is 0, expected five positive ones")
    if np.ptp(p) <= 1e-3:
        raise Fault("all are equal, which every pair has on its frontier")
    w = -2 * np.ptp(p) / np.ptp(np.log(p))
    q = qd.pareto_optimum(qd.LL_NRR, p, w).q
    return np.abs(q - p).max() <= 1e-9


def quartic_divergence(q: np.ndarray, p: np.ndarray) -> ArrayLike:
    """Psi(P) - Psi(Q) of f = x^3 and g = -x^4, where alpha = 4/5."""
    pair = qd.SeparablePair(lambda x: x**3, lambda x: -(x**4))
    lost = pair.quality(p, p) - pair.quality(q, p)
    return (4 * lost + pair.diversity(p) - pair.diversity(q)) / 5


def is_compatible(f: object, g: str) -> bool:
    """Two formulas are a compatible pair."""
    verdict = qd.check_compatibility(qd.SeparablePair(as_formula(f), as_formula(g)))
    if verdict.compatible is None:
        raise Fault(f"the pair is undecided: {verdict.reason}")
    if not verdict.compatible:
        raise Fault("the pair is incompatible: g' is not a falling line in this f")
    return True


def determines(n: int, m: int, length: int) -> bool:
    """The n-grams of texts of one length determine their m-grams."""
    space = qd.TextSpace(vocab_size=2, lengths=length)
    return qd.metrics.ngram_rank(space, (m, n)) == 2**n


def has_uniform_bigrams(answer: object) -> bool:
    """Texts of three tokens over two, far from uniform, with uniform bigrams."""
    q = as_distribution(answer, 8)
    bigrams = qd.TextSpace(vocab_size=2, lengths=3).ngram_distribution(q, 2)
    moved = np.abs(q - 1 / 8).sum() / 2
    return np.abs(bigrams - 1 / 4).max() <= 1e-12 and moved >= 1 / 4 - 1e-12


def is_beating_model(answer: object) -> bool:
    """A similarity of four texts, and a model that beats the uniform P under it."""
    kernel, q = answer  # type: ignore
    kernel, q, p = as_numbers(kernel), as_distribution(q, 4), np.full(4, 1 / 4)
    well = (np.diag(kernel) == 1).all() and 0 <= kernel.min() <= kernel.max() <= 1
    pair = qd.KernelPair(kernel)
    du = pair.quality(q, p) - pair.quality(p, p)
    dv = pair.diversity(q) - pair.diversity(p)
    return bool(well and min(du, dv) >= -1e-12 and max(du, dv) > 1e-6)


def distinct_bigrams(q: np.ndarray, num_texts: int) -> ArrayLike:
    """Expected number of different bigrams in texts of three tokens over two."""
    space = qd.TextSpace(vocab_size=2, lengths=3)
    return qd.metrics.expected_distinct(space, q, 2, num_texts) * num_texts * 2


def loses_by_a_reference(answer: object) -> bool:
    """BLEU-1 of a candidate falls when a reference is added; none has one token."""
    candidate, reference, added = ([*map(str, text)] for text in answer)  # type: ignore
    few, more = [reference], [reference, added]
    lengths = [len(text) for text in (candidate, *more)]
    before, after = (qd.text.bleu([candidate], r, 1)[0] for r in (few, more))
    return min(lengths) >= 2 and after < before - 1e-12


def greedy_text_is_rare(answer: object) -> bool:
    """The text decoded greedily is rarer than the average text."""
    p = as_distribution(answer, 9).reshape(3, 3)
    greedy = p[p.sum(axis=1).argmax()].max()
    return bool(-np.log(greedy) > qd.entropy(p.ravel()) + 1e-9)


def information_of_codes(q: np.ndarray, p: np.ndarray) -> ArrayLike:
    """Entropy of codes less that of codes given the text."""
    return qd.entropy(p @ q) - p @ np.array([qd.entropy(row) for row in q])


def posteriors() -> list[tuple]:
    """Posteriors of three texts over four nodes, with the texts' distribution."""
    rng = np.random.default_rng(23)
    return [(rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(3))) for _ in range(3)]


def fourth_power(num_references: int, num_self_references: int) -> ArrayLike:
    """The kappa of notebook 08 at probability 0."""
    pair = qd.pairs.single_token_bleu_pair(num_references, num_self_references)
    rise = jax.grad(pair.f)
    bend = jax.grad(jax.grad(pair.g))
    eta = -rise(0.0) / bend(0.0)
    return (jax.grad(rise)(0.0) + eta * jax.grad(bend)(0.0)) / 2


def beats_under_bleu(answer: object) -> bool:
    """Better than P in BLEU and in Self-BLEU of one word, with two references each."""
    pair, p = qd.pairs.single_token_bleu_pair(2, 2), np.array([0.5, 0.3, 0.15, 0.05])
    q = as_distribution(answer, 4)
    gain = pair.quality(q, p) - pair.quality(p, p)
    return bool(min(gain, pair.diversity(q) - pair.diversity(p)) > 1e-9)


def hides_from_bigrams(answer: object) -> bool:
    """Two distributions of equal bigrams, 0.2 apart in total variation."""
    q, p = (as_distribution(x, 8) for x in answer)  # type: ignore
    space = qd.TextSpace(2, 3)
    cnd = qd.cnd(*(space.ngram_distribution(x, 2) for x in (q, p)))
    return bool(cnd <= 1e-20 and qd.metrics.total_variation(q, p) > 0.2 - 1e-9)


def cnd_between(answer: object, n: int, estimator: str = "plug-in") -> float:
    """CND of two sets of sentences."""
    a, b = ([[*map(str, s)] for s in sentences] for sentences in answer)  # type: ignore
    return qd.text.cnd(a, b, n, estimator)  # type: ignore


def has_exchanged_tails(answer: object) -> bool:
    """Equal unigrams and bigrams, other trigrams."""
    one, two, three = (cnd_between(answer, n) for n in (1, 2, 3))
    return one == two == 0 < three


def copies(answer: object) -> bool:
    """Candidates of BLEU-2 = 1 whose bigrams are not those of the references."""
    candidates, references = answer  # type: ignore
    bleu = qd.text.bleu(candidates, references, 2)[1]
    return bleu > 1 - 1e-12 and cnd_between(answer, 2) > 0.1 - 1e-12


def is_blind_within_classes(answer: object) -> bool:
    """Two distributions 0.5 apart with one distribution over classes."""
    p, q, classes = answer  # type: ignore
    p, q = as_distribution(p, 4), as_distribution(q, 4)
    pair = qd.pairs.ClusterPair([int(c) for c in classes])  # type: ignore
    same = np.allclose(
        [pair.quality(p, p), pair.diversity(p)],
        [pair.quality(q, p), pair.diversity(q)],
        atol=1e-9,
    )
    return bool(same and qd.metrics.total_variation(p, q) > 0.5 - 1e-9)


def turned_round(quality: np.ndarray, diversity: np.ndarray, score: np.ndarray) -> int:
    """Number of pairs ordered by the plane that a score orders the other way."""
    better = zip(quality, diversity, -score, strict=True)
    return sum(
        all(x > y for x, y in zip(a, b, strict=True))
        for a, b in permutations(better, 2)
    )


def is_open_to_the_plane(answer: object) -> bool:
    """Three rows (CR, NRR) on a falling line, the middle one best by CND."""
    cr, nrr = np.array(sorted(as_numbers(answer).tolist())).T
    total = 2 * cr + nrr
    falls = cr.size == 3 and (np.diff(cr) > 0).all() and (np.diff(nrr) < 0).all()
    return bool(falls and total[1] > max(total[0], total[2]))


def has_one_partition(answer: object) -> bool:
    """Squaring tokens is squaring texts, and the second depends on the first."""
    p = as_distribution(answer, 4)
    after_a, after_b = (row[0] / row.sum() for row in p.reshape(2, 2))
    gap = np.abs(temper_tokens(p, 2.0) - np.asarray(qd.temper(p, 2.0))).max()
    return bool(abs(after_a - after_b) > 0.2 - 1e-9 and gap <= 1e-9)


def between_rows(shares: np.ndarray) -> float:
    """Minus the mean product of two different rows."""
    products = shares @ shares.T
    return -products[~np.eye(len(shares), dtype=bool)].mean()


def mean_cnd_of_copies(p: np.ndarray, num_texts: int) -> float:
    """CND between P and a training set, in the mean over all training sets."""
    mean = 0.0
    for texts in product(range(p.size), repeat=num_texts):
        copies = np.bincount(texts, minlength=p.size) / num_texts
        mean += p[list(texts)].prod() * float(qd.cnd(copies, p))
    return mean


def is_richer_below(answer: object) -> bool:
    """Three distributions: under the scorer, a model below P has more entropy."""
    p, scorer, q = (as_distribution(x, 3) for x in answer)  # type: ignore
    below = qd.cross_entropy(p, scorer) - qd.cross_entropy(q, scorer)
    return bool(below >= 0.1 and qd.entropy(q) - qd.entropy(p) >= 0.1)


def scores_of_distinct(p: np.ndarray) -> np.ndarray:
    """The quality that fits Distinct-1 of ten texts of three tokens over two."""
    space = qd.TextSpace(vocab_size=2, lengths=3)
    pair = qd.compatible_quality(
        lambda q: qd.metrics.expected_distinct(space, q, 1, 10)
    )
    scores = np.asarray(pair.text_quality(p))
    return scores - scores.mean()


def beats_in_coverage_and_words(answer: object) -> bool:
    """P and a model that has more of both CR and NRR-1."""
    p, q = (as_distribution(x, 8) for x in answer)  # type: ignore
    words = qd.TextSpace(vocab_size=2, lengths=3).ngram_distribution
    coverage = [qd.coverage_rate(x, p) for x in (p, q)]
    repetition = [qd.negative_repetition_rate(words(x, 1)) for x in (p, q)]
    return bool(min(np.diff(coverage), np.diff(repetition)) >= 0.01)


def ignores_order(answer: object) -> bool:
    """Features of eight texts: the Fréchet distance does not see the order of words."""
    features = as_numbers(answer).reshape(8, -1)
    counts = np.asarray(
        qd.metrics.ngram_matrix(qd.TextSpace(vocab_size=2, lengths=3), 1)
    )
    alike = (counts[:, :, None] == counts[:, None]).all(axis=0)
    p, first, last = np.arange(1, 9) / 36, np.eye(8)[0], np.eye(8)[-1]
    swapped = p @ (alike / alike.sum(axis=0))
    # The distance is a root: rounding of 1e-15 in a moment is 1e-7 in it.
    unseen = qd.metrics.frechet_distance(swapped, p, features) <= 1e-5
    return bool(unseen and qd.metrics.frechet_distance(first, last, features) > 1e-3)


def fits_at_a_kink(answer: object) -> bool:
    """Scores that fit -max at (.4, .4, .15, .05), and differ on the first two texts."""
    first, second, *rest = as_numbers(answer)
    return (
        len(rest) == 2 and first != second and rest[0] == rest[1] <= min(first, second)
    )


def is_incompatible_similarity(answer: object) -> bool:
    """An incompatible similarity of three texts, each of similarity 1 to itself."""
    kernel = as_numbers(answer)
    well = kernel.shape == (3, 3) and (kernel == kernel.T).all()
    return well and not (
        (np.diag(kernel) != 1).any() or qd.kernel_criterion(kernel).compatible
    )


def changes_the_order(answer: object) -> bool:
    """JS prefers the first model, the mixture token by token the second, by .01."""
    p, *models = (as_distribution(row, 4) for row in as_numbers(answer))
    by_text, by_token = [], []
    for q in models:
        a, b = (x.reshape(2, 2) for x in (p, q))
        m = (a.sum(axis=1) + b.sum(axis=1))[:, None] / 2
        m = m * (a / a.sum(axis=1)[:, None] + b / b.sum(axis=1)[:, None]) / 2
        by_text.append(qd.jensen_shannon_divergence(q, p))
        by_token.append(sum(qd.kl_divergence(x, m.ravel()) for x in (p, q)) / 2)
    well = len(models) == 2 and min(p.min(), *map(np.min, models)) > 0
    return well and min(np.diff(by_text)[0], -np.diff(by_token)[0]) >= 0.01


def squares_without_each(table: np.ndarray) -> ArrayLike:
    """Sums of squared counts without each column of a table."""
    whole = table.sum(axis=1)
    return (whole @ whole) - (table * (2 * whole[:, None] - table)).sum(axis=0)


def tables_of_counts() -> list[tuple]:
    """Tables with a row for each n-gram and a column for each group."""
    rng = np.random.default_rng(12)
    return [(rng.poisson(0.7, shape),) for shape in ((1, 2), (9, 4), (40, 20))]


def luck_wins(answer: object) -> bool:
    """The first model has the best run, and is worse by more than the seeds' spread."""
    lucky, steady = as_numbers(answer)
    spread = max(row.std(ddof=1) for row in (lucky, steady))
    worse = lucky.mean() - steady.mean() > spread
    return bool(worse and lucky.size == 7 and lucky.min() < steady.min())


def proves_optimal(answer: object) -> bool:
    """A price and a level whose bound is the quality of P itself, under CR-NRR."""
    price, level = map(float, as_numbers(answer))
    p = np.array([0.5, 0.3, 0.15, 0.05])
    bound = qd.qdisc.dual_bound(qd.formulas.NRR, p, float(-(p @ p)), price, level)
    return bool(bound <= p @ p + 1e-9)


def spread_of_entropy(q: np.ndarray, weights: np.ndarray) -> ArrayLike:
    """Pooled less average entropy of a conditional distribution."""
    pooled = qd.qdisc.pooled_diversity(qd.LL_SE, q, weights)
    return pooled - qd.qdisc.average_diversity(qd.LL_SE, q, weights)


def gains_under_any_pool(answer: object) -> bool:
    """A model of more CR than three cyclic conditions, with a uniform pool."""
    q = np.stack([as_distribution(row, 3) for row in answer])  # type: ignore
    real = np.stack([np.roll((0.5, 0.3, 0.2), shift) for shift in range(3)])
    gain = ((q - real) * real).sum() / 3
    return bool(gain >= 0.1 and np.abs(q.mean(axis=0) - 1 / 3).max() <= 1e-9)


def noise_prefers_the_second(answer: object) -> bool:
    """Noise takes from the commonest text and gives most to the second."""
    q = as_distribution(answer)
    first, second = np.argsort(-q)[:2]
    drift = np.asarray(qd.generators.constant_reward_drift(q, 1.0, 1))
    return bool(q.size > 2 and drift[first] < 0 and drift.argmax() == second)


def hides_from_words(answer: object) -> bool:
    """Each of two words occurs as often as in P, and the model is not P."""
    q, p = as_distribution(answer, 4), np.array([0.4, 0.3, 0.2, 0.1])
    occurs = np.array([[1, 1, 1, 0], [0, 1, 1, 1]])
    same = np.allclose(occurs @ q, occurs @ p, rtol=0, atol=1e-9)
    return bool(same and qd.metrics.total_variation(q, p) > 0.05 - 1e-9)


def rank_reward(q: np.ndarray, p: np.ndarray) -> ArrayLike:
    """The chance to rank before a text of the model."""
    ratio = p / q
    return (ratio[:, None] / (ratio[:, None] + ratio)) @ q


def truncation_beats_temperature(answer: object) -> bool:
    """Min-p of 1/2 has more LL and more SE than a temperature of .3."""
    p, two = as_distribution(answer, 4), qd.TextSpace(2, 2)
    if p.min() == 0:
        return False
    q = qd.generators.decode(p, two, qd.generators.MinP(0.5))
    cold = qd.generators.decode(p, two, qd.generators.Temperature(0.3))
    better = (q - cold) @ np.log(p) > 1e-9
    return bool(better and qd.entropy(q) - qd.entropy(cold) > 1e-9)


# --- the exercises, in the order of the notebooks --------------------------------

GRADERS: dict[str, Grader] = {
    "01.0": number(lambda: qd.TextSpace(4, (1, 2, 3)).num_texts, 0.0),
    "01.1": function(temper_tokens, lambda: [*fours(2.0), *fours(0.5)], 1e-9),
    "01.2": witness(
        has_unlikely_greedy_text,
        "P of aa, ab, ba, bb: four numbers of sum 1; no tie in the first token; a "
        "greedy text of less than .51 of the mode's probability",
    ),
    "01.3": statement("01.3", "fdef5ab8"),
    "02.0": number(
        lambda: qd.coverage_rate(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.3, 0.2])),
        1e-9,
    ),
    "02.1": number(0.5 + ((160**0.5 - 10) / 24) ** 0.5, 1e-4),
    "02.2": witness(
        is_rational_cubic,
        "(a, b) with g = a x^2 + b x^3 rational, and convex from x = .55 on",
    ),
    "02.3": statement("02.3", "a610e495"),
    "03.0": number(
        lambda: qd.pareto_optimum(qd.LL_SE, np.array([0.8, 0.2]), -2.0).q[0], 1e-9
    ),
    "03.1": function(
        lambda p: qd.theory.saturation_weight(
            qd.SeparablePair(qd.formulas.CR, qd.Tsallis(3.0)), p
        ),
        lambda: [
            (np.array(p),) for p in ((0.5, 0.3, 0.1, 0.1), (0.3, 0.3, 0.25, 0.15))
        ],
        1e-9,
    ),
    "03.2": witness(
        is_on_frontier,
        "five positive numbers of sum 1, not all equal, on the frontier of LL-NRR",
    ),
    "03.3": statement("03.3", "bd776dc9"),
    "04.0": number(-2.0, 1e-9),
    "04.1": function(
        quartic_divergence, lambda: [(np.array(FOUR[1]), p) for (p,) in fours()], 1e-9
    ),
    "04.2": witness(
        lambda f: is_compatible(f, "-x*log(x) - x**2"),
        "a formula of f in x, as text, that g = -x*log(x) - x**2 is compatible with",
    ),
    "04.3": statement("04.3", "d2152497"),
    "05.0": number(1.0, 0.0),
    "05.1": function(
        determines,
        lambda: [(n, m, 5) for n in (2, 3, 4, 5) for m in range(1, n)],
        0.0,
    ),
    "05.2": witness(
        has_uniform_bigrams,
        "eight numbers of sum 1, with uniform bigrams and 1/4 of the mass moved",
    ),
    "05.3": statement("05.3", "7ed9a985", "88af9d39"),
    "06.0": number(
        lambda: (
            2
            * qd.metrics.expected_distinct(
                qd.TextSpace(2, 1), np.array([0.5, 0.5]), 1, 2
            )
        ),
        1e-9,
    ),
    "06.1": function(
        lambda q, m: qd.metrics.expected_distinct(qd.TextSpace(4, 1), q, 1, m) * m,
        lambda: [*fours(1), *fours(3)],
        1e-9,
    ),
    "06.2": witness(
        is_beating_model,
        "(K, Q): a symmetric 4 x 4 table of numbers in [0, 1] with 1 on the diagonal, "
        "and a model that beats the uniform P under it",
    ),
    "06.3": statement("06.3", "9b492eb5", "73347e3a"),
    "07.0": number(lambda: qd.text.bleu([[*"aab"]], [[*"abb"]], 1)[0], 1e-9),
    "07.1": function(
        distinct_bigrams,
        lambda: [(np.array(q), 3) for q in ((1 / 8,) * 8, (0.3, *(0.1,) * 7))],
        1e-9,
    ),
    "07.2": witness(
        loses_by_a_reference,
        "three texts of two tokens or more (candidate, reference, another "
        "reference), with a lower BLEU-1 when the last is added",
    ),
    "07.3": statement("07.3", "8840d404"),
    "08.0": number(
        lambda: qd.expected_bleu(
            qd.TextSpace(2, 1), np.array([0.5, 0.5]), np.array([0.5, 0.5]), 1, 2
        )[0],
        1e-9,
    ),
    "08.1": function(fourth_power, lambda: product((1, 2, 5), (1, 2, 10)), 1e-9),
    "08.2": witness(
        beats_under_bleu, "four numbers of sum 1, better than P in both metrics"
    ),
    "08.3": statement("08.3", "7d87e12c"),
    "09.0": number(lambda: qd.negative_repetition_rate(np.full(50, 1 / 50)), 1e-9),
    "09.1": function(lambda p: qd.pareto_optimum(qd.CR_NRR, p, -1.0).q, fours, 1e-9),
    "09.2": witness(
        hides_from_bigrams,
        "two rows of eight numbers of sum 1, of equal bigrams, and 0.2 apart",
    ),
    "09.3": statement("09.3", "11963573"),
    "10.0": number(
        lambda: qd.text.negative_repetition_rate(
            [["the", "film", "the", "film"]], 2, estimator="plug-in"
        ),
        1e-9,
    ),
    "10.1": function(
        lambda candidates, references, n: qd.text.cnd(
            candidates, references, n, "plug-in"
        ),
        lambda: [
            ([[*"abab"], [*"ba"]], [[*"ab"], [*"bb"]], 2),
            ([[*"abcab"], [*"c"]], [[*"cab"], [*"bca"], [*"dd"]], 1),
            ([[*"abcab"], [*"cabc"]], [[*"cab"], [*"bca"], [*"dd"]], 3),
        ],
        1e-12,
    ),
    "10.2": witness(
        has_exchanged_tails,
        "two lists of sentences, lists of words, with CND = 0 for n = 1 and 2, not 3",
    ),
    "10.3": statement("10.3", "913d6848"),
    "10b.0": number(0.5, 1e-9),
    "10b.1": function(
        lambda plug_in, pairs: np.sqrt(plug_in * pairs) + pairs,
        lambda: [(-0.0035, -0.003), (-0.5, -0.125)],
        1e-9,
    ),
    "10b.2": witness(
        copies,
        "candidates and references, lists of lists of words, with BLEU-2 = 1 and "
        "CND of bigrams at least 0.1",
    ),
    "10b.3": statement("10b.3", "bedc9585", "05e6d4f9", "1af2fe1b"),
    "10c.0": number(
        lambda: (
            3
            - int(
                np.sum(
                    qd.pareto_filter(
                        np.array([0.3, 0.2, 0.1]), np.array([-0.2, -0.1, -0.3])
                    )
                )
            )
        ),
        0.0,
    ),
    "10c.1": function(
        turned_round,
        lambda: [
            tuple(np.random.default_rng(seed).random((3, 7))) for seed in range(3)
        ],
        0.0,
    ),
    "10c.2": witness(
        is_open_to_the_plane,
        "three rows (CR, NRR), none better in both, that of middle CR first by CND",
    ),
    "10c.3": statement("10c.3", "1a9b0c49"),
    "11.0": number(lambda: qd.temper(np.array([0.8, 0.2]), 0.5)[0], 1e-9),
    "11.1": function(
        lambda log_p, log_q, beta: qd.kl_divergence(
            np.exp(log_q), qd.temper(np.exp(log_p), beta)
        ),
        lambda: [(np.log(FOUR[0]), np.log(FOUR[1]), beta) for beta in (0.5, 2.0)],
        1e-9,
    ),
    "11.2": witness(
        has_one_partition,
        "four numbers of sum 1; after a the chance of a differs from that after b by "
        "0.2 or more, and both sweeps agree",
    ),
    "11.3": statement("11.3", "edddcbd1", "70de66ee"),
    "12.0": number(
        lambda: qd.text.negative_repetition_rate(
            [["a"], ["a"], ["b"]], 1, estimator="sentence-pairs"
        ),
        1e-9,
    ),
    "12.1": function(
        between_rows,
        lambda: [
            (np.array([FOUR[i] for i in rows]),) for rows in ((0, 1), (0, 1, 2, 0))
        ],
        1e-12,
    ),
    "12.2": number(0.05, 1e-9),
    "12.3": witness(
        lambda answer: cnd_between(answer, 1, "pairs") < 0,
        "two lists of two or more sentences, lists of words, with a negative CND-1",
    ),
    "12.4": statement("12.4", "9d1f8d19"),
    "12b.0": number(2.0, 0.0),
    "12b.1": number(5e9 * (5e9 - 1) / 2**65, 1e-6),
    "12b.2": function(squares_without_each, tables_of_counts, 1e-12),
    "12b.3": statement("12b.3", "b1f672af", "260df96c"),
    "13.0": number(
        lambda: qd.cross_entropy(
            np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.25, 0.25])
        ),
        1e-9,
    ),
    "13.1": number(5 * np.expm1(24.2), 1e-2),
    "13.2": function(
        mean_cnd_of_copies, lambda: [*fours(2), (np.array([0.7, 0.3]), 5)], 1e-9
    ),
    "13.3": witness(
        is_richer_below,
        "(p, scorer, q), each three numbers of sum 1; under the scorer q is below p, "
        "by 0.1, and its entropy is above that of p, by 0.1",
    ),
    "13.4": statement("13.4", "62ca4653", "9c230faf"),
    "14.0": number(lambda: np.log(0.25), 1e-9),
    "14.1": number(1 / 2, 1e-9),
    "14.2": function(
        scores_of_distinct,
        lambda: [(np.array(p),) for p in ((1 / 8,) * 8, (0.3, *(0.1,) * 7))],
        1e-9,
    ),
    "14.3": witness(
        beats_in_coverage_and_words,
        "(p, q), each eight numbers of sum 1; q has more CR and more NRR-1, by 0.01",
    ),
    "14.4": statement("14.4", "893f4786", "0dec06bc", "2a90cf53", "ae30b213"),
    "15.0": number(2 / 3, 1e-9),
    "15.1": number(0.44, 1e-9),
    "15.2": function(
        lambda p, beta: jax.grad(lambda x: qd.cross_entropy(p, qd.temper(p, x)))(beta),
        lambda: [*fours(0.5), *fours(2.0)],
        1e-9,
    ),
    "15.3": witness(
        ignores_order,
        "eight rows of numbers, that tell aaa from bbb, and among texts of the same "
        "words have the same moments",
    ),
    "15.4": statement("15.4", "0fb71978", "6ed6eed5"),
    "16.0": number(lambda: -jax.grad(qd.formulas.NRR)(0.3), 1e-9),
    "16.1": number(8 / 5, 1e-9),
    "16.2": function(
        lambda p: -jax.grad(lambda q: -jax.numpy.log((q**2).sum()))(p), fours, 1e-9
    ),
    "16.3": witness(
        fits_at_a_kink, "four scores that fit, the first two of them different"
    ),
    "16.4": statement("16.4", "671580e5", "ec9ec6b7", "bf310dc9"),
    "16b.0": number(
        lambda: qd.KernelPair(np.eye(2)).quality(
            np.array([0.5, 0.5]), np.array([0.5, 0.5])
        ),
        1e-9,
    ),
    "16b.1": number(4 / 5, 1e-9),
    "16b.2": witness(
        is_incompatible_similarity,
        "a symmetric 3 x 3 table of numbers with 1 on the diagonal, not compatible",
    ),
    "16b.3": statement("16b.3", "4e50e016"),
    "17.0": number(1.0, 1e-9),
    "17.1": number(5 / 6, 1e-3),
    "17.2": witness(
        proves_optimal,
        "(price, level), two numbers whose bound is the quality of P, to 1e-9",
    ),
    "17.3": statement("17.3", "d524379e", "0612a83b"),
    "18.0": number(-1.0, 1e-9),
    "18.1": number(4 / 5, 1e-9),
    "18.2": function(
        spread_of_entropy,
        lambda: [
            (np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]), np.array(weights))
            for weights in ((0.5, 0.5), (0.2, 0.8))
        ],
        1e-9,
    ),
    "18.3": witness(
        gains_under_any_pool,
        "three rows of sum 1 whose mean is uniform, with a CR greater by 0.1",
    ),
    "18.4": statement("18.4", "f966ee16", "37835830", "d8739788"),
    "19.0": number(0.81, 1e-9),
    "19.1": function(
        lambda p, n: p @ (1 - p) ** n, lambda: [*fours(1), *fours(3)], 1e-12
    ),
    "19.2": witness(
        lambda p: qd.quality_discrepancy(qd.LL_NRR, as_distribution(p, 4)).qdisc > 0.05,
        "four numbers of sum 1, with a QDisc of 0.05 nats or more",
    ),
    "19.3": statement("19.3", "5f791dca"),
    "20.0": number(
        lambda: qd.generators.optimal_discriminator(
            np.array([0.1, 0.9]), np.array([0.3, 0.7])
        )[0],
        1e-9,
    ),
    "20.1": number(-1 / 30, 1e-9),
    "20.2": function(lambda d: 4 - 2 / d, lambda: [(0.2,), (0.5,), (0.9,)], 1e-12),
    "20.3": witness(
        is_pair_of_two_rewards,
        "a formula of D with a pair as its objective, 1 at D = 1/2, 3 at .731",
    ),
    "20.4": statement("20.4", "fc5a674a", "3c5dbb32", "f515ec5d"),
    "20b.0": number(9.0, 1e-9),
    "20b.1": number((15.5 + 1 / (1 + np.exp(-8))) / 32, 1e-9),
    "20b.2": witness(
        changes_the_order,
        "three rows of four positive numbers of sum 1: P, the model nearer by JS, and "
        "the one nearer token by token, by .01",
    ),
    "20b.3": statement("20b.3", "ef447d96"),
    "21.0": number(lambda: (np.array([0.5, 0.3, 0.2]) ** 2).sum(), 1e-9),
    "21.1": function(lambda p: (1 + 2 * qd.coverage_rate(p, p)) / 6, fours, 1e-12),
    "21.2": witness(
        noise_prefers_the_second,
        "at least three probabilities, the greatest of which loses and the next gains "
        "most",
    ),
    "21.3": statement("21.3", "c6befd51", "91d4cc41"),
    "22.0": number(0.75, 1e-9),
    "22.1": number(0.8, 1e-9),
    "22.2": function(rank_reward, lambda: fours(np.full(4, 0.25)), 1e-9),
    "22.3": witness(
        hides_from_words,
        "four probabilities, .05 from P in total variation, with the same chance as P "
        "that each word occurs",
    ),
    "22.4": statement("22.4", "3166a6d8"),
    "22b.0": number(lambda: 0.14 / 7**0.5, 1e-6),
    "22b.1": number(1.7492, 0.005),
    "22b.2": witness(
        luck_wins,
        "two rows of seven losses: the first has the least of all, and a mean above "
        "that of the other by more than the standard deviation of either",
    ),
    "22b.3": statement("22b.3", "1561331a"),
    "23.0": number(0.5, 1e-9),
    "23.1": number(0.2, 1e-9),
    "23.2": witness(
        greedy_text_is_rare,
        "nine numbers of sum 1, whose greedy text is rarer than exp(-H)",
    ),
    "23.3": function(information_of_codes, posteriors, 1e-9),
    "23.4": statement("23.4", "c4bd78e8"),
    "24.0": number(
        lambda: qd.generators.decode(
            np.array([0.5, 0.3, 0.2]), qd.TextSpace(3, 1), qd.generators.TopP(0.7)
        )[0],
        1e-9,
    ),
    "24.1": number(69.0, 1e-9),
    "24.2": function(
        lambda share, t: share**t, lambda: [(0.1, 0.5), (0.3, 2.0), (0.5, 1.0)], 1e-12
    ),
    "24.3": witness(
        truncation_beats_temperature,
        "four probabilities for which min-p of 1/2 has more LL and more SE than t = .3",
    ),
    "24.4": statement("24.4", "d1b1cd18"),
    "25.0": number(lambda: qd.metrics.vendi_score(np.full(4, 0.25), np.eye(4)), 1e-9),
    "25.1": number(0.325, 1e-9),
    "25.2": function(
        lambda p, k: qd.pairs.distinct_k_pair(k).text_quality(p),
        lambda: [*fours(2), *fours(10)],
        1e-9,
    ),
    "25.3": witness(
        is_blind_within_classes,
        "p, q and the classes, of four texts; both metrics of p and q are equal, and "
        "they are .5 apart",
    ),
    "25.4": statement("25.4", "a85db122", "2e26ef6b"),
}
