"""The functions that exercises.toml names: references, and tests of examples."""

from itertools import permutations, product
from typing import Any, TypeAlias

import jax
import numpy as np

import qdtheory as qd
from qdtheory.course.grading import (
    Fault,
    as_distribution,
    as_formula,
    as_numbers,
    require,
)

# What a test of an example returns: a truth value of Python, NumPy or JAX.
Truth: TypeAlias = Any

# Probabilities of the texts aa, ab, ba, bb, or of a, b, c, d.
FOUR = (0.4, 0.3, 0.2, 0.1), (0.1, 0.6, 0.05, 0.25), (0.25, 0.25, 0.25, 0.25)
STEEP = np.array([0.5, 0.3, 0.15, 0.05])
THREE_TOKENS = qd.TextSpace(vocab_size=2, lengths=3)


def fours(*more: object) -> list[tuple]:
    """Arguments of a function of four probabilities, and of what else it takes."""
    return [(np.array(p), *more) for p in FOUR]


def gains(pair: Any, q: np.ndarray, p: np.ndarray) -> list:
    """What a model gains in quality and in diversity."""
    u, v = pair.quality, pair.diversity
    return [u(q, p) - u(p, p), v(q) - v(p)]


def in_words(found: list) -> str:
    """What a model gains, in words."""
    u, v = map(float, found)
    return f"quality changes by {u:.3g} and diversity by {v:.3g}"


def temper_tokens(p: np.ndarray, beta: float) -> Any:
    """Token-level tempering of texts of two tokens over two."""
    by_first = p.reshape(2, 2)
    second = [qd.temper(row / row.sum(), beta) for row in by_first]
    first = qd.temper(by_first.sum(axis=1), beta)
    return (np.asarray(first)[:, None] * np.asarray(second)).ravel()


def has_unlikely_greedy_text(p: np.ndarray) -> Truth:
    """The text of the likeliest tokens has less than .51 of the mode's probability."""
    by_first = p.reshape(2, 2)
    first = by_first.sum(axis=1)
    require(abs(np.diff(first)) > 1e-9, "a and b are equally likely first tokens")
    share = by_first[first.argmax()].max() / by_first.max()
    told = f"the greedy text has {share:.5g} of the mode's probability"
    require(share < 0.51, f"{told}, expected less than .51")
    return True


def is_rational_cubic(answer: Any) -> Truth:
    """A rational g = a x^2 + b x^3 that is convex from .55 on."""
    a, b = map(float, as_numbers(answer))
    bend = 2 * a + 6 * b * 0.55
    require(bend >= 0, f"g'' is {bend:.3g} at .55, expected 0 or more: g is not convex")
    pair = qd.SeparablePair(qd.formulas.CR, lambda x: a * x**2 + b * x**3)
    x = qd.check_rationality(pair).diversity_violation
    require(x is None, f"g is not rational: g' does not fall enough between {x}")
    return True


def is_pair_of_two_rewards(answer: Any) -> Truth:
    """A formula of D that is a pair, rewards 1/2 with 1 and e / (1 + e) with 3."""
    readable = isinstance(answer, str) or callable(answer)
    require(readable, 'expected a formula of D as text, like "log(D)", or a function')
    try:
        given = answer if callable(answer) else qd.generators.given_reward(answer)
    except (TypeError, ValueError) as error:
        raise Fault(str(error)) from None
    rho: Any = getattr(given, "of_discriminator", given)
    d = np.append([0.5, np.e / (1 + np.e)], np.linspace(0.05, 0.95, 7))
    rewards = np.array([float(as_numbers(rho(x))) for x in d])
    for name, value, expected in zip((".5", ".731"), rewards, (1, 3), strict=False):
        near = np.abs(value - expected) <= 1e-9
        require(near, f"{value:.4g} at D = {name}, expected {expected}")
    # The only pairs are lines in the logit (N20.6), and two values fix a line.
    is_pair = np.allclose(rewards, 1 + 2 * np.log(d / (1 - d)), rtol=0, atol=1e-9)
    require(is_pair, "right at both values, but the objective is no pair (N20.6)")
    return True


def is_on_frontier(p: np.ndarray) -> Truth:
    """Five positive probabilities, not all equal, that LL-NRR has on its frontier."""
    require(p.min() > 0, "a probability is 0, expected five positive ones")
    require(np.ptp(p) > 0, "all are equal, which every pair has on its frontier")
    require(np.ptp(p) >= 1e-3, f"they differ by {np.ptp(p):.2g}, expected .001 or more")
    w = -2 * np.ptp(p) / np.ptp(np.log(p))
    gap = np.abs(qd.pareto_optimum(qd.LL_NRR, p, w).q - p).max()
    why = f"below the frontier: the optimum at weight {w:.3g} is {gap:.2g} away"
    require(gap <= 1e-9, f"{why}, and P must be a line in log P")
    return True


def quartic_divergence(q: np.ndarray, p: np.ndarray) -> Any:
    """Psi(P) - Psi(Q) of f = x^3 and g = -x^4, where alpha = 4/5."""
    pair = qd.SeparablePair(lambda x: x**3, lambda x: -(x**4))
    return -np.dot([4 / 5, 1 / 5], gains(pair, q, p))


def is_compatible(f: Any, g: str) -> Truth:
    """Two formulas are a compatible pair."""
    why = "the pair is incompatible: g' is not a falling line in this f"
    if callable(f):  # of NumPy, JAX or Python: no proof reads it, its values say enough
        x = np.linspace(0.05, 0.95, 19)
        scores = np.array([float(as_numbers(f(place))) for place in x])
        slopes = np.array([-jax.grad(as_formula(g))(place) for place in x])
        line = np.polyfit(slopes, scores, 1)
        apart = np.abs(np.polyval(line, slopes) - scores).max()
        require(line[0] > 0 and apart <= 1e-9 * np.ptp(scores), why)
        return True
    verdict = qd.check_compatibility(qd.SeparablePair(as_formula(f), as_formula(g)))
    decided = verdict.compatible is not None
    require(decided, f"the pair is undecided: {verdict.reason}")
    require(verdict.compatible, why)
    return True


def has_uniform_bigrams(q: np.ndarray) -> Truth:
    """Texts of three tokens over two, far from uniform, with uniform bigrams."""
    bigrams = THREE_TOKENS.ngram_distribution(q, 2)
    worst = bigrams[np.abs(bigrams - 1 / 4).argmax()]
    require(abs(worst - 1 / 4) <= 1e-9, f"a bigram has {worst:.4g}, expected 1/4")
    moved = np.abs(q - 1 / 8).sum() / 2
    why = f"{moved:.6g} of the mass is moved, expected 1/4 or more"
    require(moved >= 1 / 4 - 1e-9, why)
    return True


def is_beating_model(answer: Any) -> Truth:
    """A similarity of four texts, and a model that beats the uniform P under it."""
    kernel, q = answer
    kernel, q, p = as_numbers(kernel), as_distribution(q, 4), np.full(4, 1 / 4)
    require(kernel.shape == (4, 4), f"K has shape {kernel.shape}, expected (4, 4)")
    require((kernel == kernel.T).all(), "K is not symmetric")
    require((np.diag(kernel) == 1).all(), "K has not 1 on its diagonal")
    require(0 <= kernel.min() <= kernel.max() <= 1, "K has an entry outside [0, 1]")
    found = gains(qd.KernelPair(kernel), q, p)
    beats = min(found) >= -1e-12 and max(found) > 1e-6
    require(beats, f"{in_words(found)}, expected neither to fall and one to rise")
    return True


def tokens(text: Any) -> list[str]:
    """The words of a text, or the letters of one that is a single word."""
    if not isinstance(text, str):
        return [*map(str, text)]
    return text.split() if " " in text.strip() else [*text]


def loses_by_a_reference(answer: Any) -> Truth:
    """BLEU-1 of a candidate falls when a reference is added; none has one token."""
    candidate, reference, added = map(tokens, answer)
    few, more = [reference], [reference, added]
    lengths = [len(text) for text in (candidate, *more)]
    require(min(lengths) >= 2, "a text has fewer than two tokens")
    before, after = (qd.text.bleu([candidate], r, 1)[0] for r in (few, more))
    why = f"BLEU-1 is {before:.3g}, and {after:.3g} with the other reference"
    require(after < before - 1e-12, f"{why}; it must fall")
    return True


def greedy_text_is_rare(p: np.ndarray) -> Truth:
    """The text decoded greedily is rarer than the average text."""
    by_first = p.reshape(3, 3)
    greedy = by_first[by_first.sum(axis=1).argmax()].max()
    return -np.log(greedy) > qd.entropy(p) + 1e-9


def fourth_power(num_references: int, num_self_references: int) -> Any:
    """The kappa of notebook 08 at probability 0."""
    pair = qd.pairs.single_token_bleu_pair(num_references, num_self_references)
    rise, bend = jax.grad(pair.f), jax.grad(jax.grad(pair.g))
    eta = -rise(0.0) / bend(0.0)
    return (jax.grad(rise)(0.0) + eta * jax.grad(bend)(0.0)) / 2


def beats_under_bleu(q: np.ndarray) -> Truth:
    """Better than P in BLEU and in Self-BLEU of one word, with two references each."""
    found = gains(qd.pairs.single_token_bleu_pair(2, 2), q, STEEP)
    require(min(found) > 1e-9, f"{in_words(found)}, expected both to rise")
    return True


def hides_from_bigrams(q: np.ndarray, p: np.ndarray) -> Truth:
    """Two distributions of equal bigrams, 0.2 apart in total variation."""
    a, b = (np.asarray(THREE_TOKENS.ngram_distribution(x, 2)) for x in (q, p))
    most = np.abs(a - b).max()
    require(most <= 1e-9, f"a bigram is {most:.2g} likelier in one, expected equal")
    tv = qd.metrics.total_variation(q, p)
    require(tv > 0.2 - 1e-9, f"they are {tv:.6g} apart, expected .2 or more")
    return True


def cnd_between(answer: Any, n: int, estimator: str = "plug-in") -> float:
    """CND of two sets of sentences."""
    a, b = ([[*map(str, s)] for s in sentences] for sentences in answer)
    return qd.text.cnd(a, b, n, estimator)  # type: ignore


def has_exchanged_tails(answer: Any) -> Truth:
    """Equal unigrams and bigrams, other trigrams."""
    one, two, three = (cnd_between(answer, n) for n in (1, 2, 3))
    return one == two == 0 < three


def copies(answer: Any) -> Truth:
    """Candidates of BLEU-2 = 1 whose bigrams are not those of the references."""
    bleu = qd.text.bleu(*answer, max_order=2)[1]
    return bleu > 1 - 1e-12 and cnd_between(answer, 2) > 0.1 - 1e-12


def is_blind_within_classes(answer: Any) -> Truth:
    """Two distributions 0.5 apart with one distribution over classes."""
    p, q, classes = answer
    p, q = as_distribution(p, 4), as_distribution(q, 4)
    labels = np.unique([*classes], return_inverse=True)[1]
    pair = qd.PooledPair(qd.LL_SE, labels.tolist())
    same = np.allclose(gains(pair, q, p), 0, atol=1e-9)
    return same and qd.metrics.total_variation(p, q) > 0.5 - 1e-9


def turned_round(quality: np.ndarray, diversity: np.ndarray, score: np.ndarray) -> int:
    """Number of pairs ordered by the plane that a score orders the other way."""
    better = zip(quality, diversity, -score, strict=True)
    return sum(bool(np.greater(a, b).all()) for a, b in permutations(better, 2))


def is_open_to_the_plane(answer: Any) -> Truth:
    """Three rows (CR, NRR) on a falling line, the middle one best by CND."""
    cr, nrr = np.array(sorted(as_numbers(answer).tolist())).T
    total = 2 * cr + nrr
    falls = cr.size == 3 and (np.diff(cr) > 0).all() and (np.diff(nrr) < 0).all()
    return falls and total[1] > max(total[0], total[2])


def has_one_partition(p: np.ndarray) -> Truth:
    """Squaring tokens is squaring texts, and the second depends on the first."""
    after_a, after_b = (row[0] / row.sum() for row in p.reshape(2, 2))
    gap = np.abs(temper_tokens(p, 2.0) - np.asarray(qd.temper(p, 2.0))).max()
    return abs(after_a - after_b) > 0.2 - 1e-9 and gap <= 1e-9


def mean_cnd_of_copies(p: np.ndarray, num_texts: int) -> float:
    """CND between P and a training set, in the mean over all training sets."""
    mean = 0.0
    for texts in product(range(p.size), repeat=num_texts):
        copies = np.bincount(texts, minlength=p.size) / num_texts
        mean += p[list(texts)].prod() * float(qd.cnd(copies, p))
    return mean


def is_richer_below(p: np.ndarray, scorer: np.ndarray, q: np.ndarray) -> Truth:
    """Three distributions: under the scorer, a model below P has more entropy."""
    below = qd.cross_entropy(p, scorer) - qd.cross_entropy(q, scorer)
    return below >= 0.1 and qd.entropy(q) - qd.entropy(p) >= 0.1


def scores_of_distinct(p: np.ndarray) -> np.ndarray:
    """The quality that fits Distinct-1 of ten texts of three tokens over two."""
    distinct = qd.metrics.expected_distinct
    pair = qd.compatible_quality(lambda q: distinct(THREE_TOKENS, q, 1, 10))
    scores = np.asarray(pair.text_quality(p))
    return scores - scores.mean()


def beats_in_coverage_and_words(p: np.ndarray, q: np.ndarray) -> Truth:
    """P and a model that has more of both CR and NRR-1."""
    words = THREE_TOKENS.ngram_distribution
    coverage = [qd.coverage_rate(x, p) for x in (p, q)]
    repetition = [qd.negative_repetition_rate(words(x, 1)) for x in (p, q)]
    return min(np.diff(coverage), np.diff(repetition)) >= 0.01


def ignores_order(answer: Any) -> Truth:
    """Features of eight texts: the Fréchet distance does not see the order of words."""
    features = as_numbers(answer).reshape(8, -1)
    counts = np.asarray(qd.metrics.ngram_matrix(THREE_TOKENS, 1))
    alike = (counts[:, :, None] == counts[:, None]).all(axis=0)
    p, first, last = np.arange(1, 9) / 36, np.eye(8)[0], np.eye(8)[-1]
    swapped = p @ (alike / alike.sum(axis=0))
    # The distance is a root: rounding of 1e-15 in a moment is 1e-7 in it.
    unseen = qd.metrics.frechet_distance(swapped, p, features) <= 1e-5
    return unseen and qd.metrics.frechet_distance(first, last, features) > 1e-3


def fits_at_a_kink(answer: Any) -> Truth:
    """Scores that fit -max at (.4, .4, .15, .05), and differ on the first two texts."""
    first, second, *rest = as_numbers(answer)
    level = len(rest) == 2 and rest[0] == rest[1]
    return level and first != second and rest[0] <= min(first, second)


def is_incompatible_similarity(answer: Any) -> Truth:
    """An incompatible similarity of three texts, each of similarity 1 to itself."""
    kernel = as_numbers(answer)
    well = kernel.shape == (3, 3) and (kernel == kernel.T).all()
    well = well and (np.diag(kernel) == 1).all()
    return well and not qd.kernel_criterion(kernel).compatible


def changes_the_order(p: np.ndarray, *models: np.ndarray) -> Truth:
    """JS prefers the first model, the mixture token by token the second, by .01."""
    by_text, by_token = [], []
    for q in models:
        a, b = (x.reshape(2, 2) for x in (p, q))
        m = (a.sum(axis=1) + b.sum(axis=1))[:, None] / 2
        m = m * (a / a.sum(axis=1)[:, None] + b / b.sum(axis=1)[:, None]) / 2
        by_text.append(qd.jensen_shannon_divergence(q, p))
        by_token.append(sum(qd.kl_divergence(x, m.ravel()) for x in (p, q)) / 2)
    positive = min(p.min(), *map(np.min, models)) > 0
    return positive and min(np.diff(by_text)[0], -np.diff(by_token)[0]) >= 0.01


def luck_wins(answer: Any) -> Truth:
    """The first model has the best run, and is worse by more than the seeds' spread."""
    lucky, steady = as_numbers(answer)
    spread = max(row.std(ddof=1) for row in (lucky, steady))
    worse = lucky.mean() - steady.mean() > spread
    return worse and lucky.size == 7 and lucky.min() < steady.min()


def proves_optimal(answer: Any) -> Truth:
    """A price and a level whose bound is the quality of P itself, under CR-NRR."""
    price, level = map(float, as_numbers(answer))
    own = float(STEEP @ STEEP)  # its quality, and less it its diversity
    bound = qd.qdisc.dual_bound(qd.formulas.NRR, STEEP, -own, price, level)
    return bound <= own + 1e-9


def gains_under_any_pool(*rows: np.ndarray) -> Truth:
    """A model of more CR than three cyclic conditions, with a uniform pool."""
    q = np.stack(rows)
    real = np.stack([np.roll((0.5, 0.3, 0.2), shift) for shift in range(3)])
    gain = ((q - real) * real).sum() / 3
    return gain >= 0.1 and np.abs(q.mean(axis=0) - 1 / 3).max() <= 1e-9


def noise_prefers_the_second(answer: Any) -> Truth:
    """Noise takes from the commonest text and gives most to the second."""
    q = as_distribution(answer)
    first, second = np.argsort(-q)[:2]
    drift = np.asarray(qd.generators.constant_reward_drift(q, 1.0, 1))
    return q.size > 2 and drift[first] < 0 and drift.argmax() == second


def hides_from_words(q: np.ndarray) -> Truth:
    """Each of two words occurs as often as in P, and the model is not P."""
    p = np.array([0.4, 0.3, 0.2, 0.1])
    occurs = np.array([[1, 1, 1, 0], [0, 1, 1, 1]])
    same = np.allclose(occurs @ q, occurs @ p, rtol=0, atol=1e-9)
    return same and qd.metrics.total_variation(q, p) > 0.05 - 1e-9


def truncation_beats_temperature(p: np.ndarray) -> Truth:
    """Min-p of 1/2 has more LL and more SE than a temperature of .3."""
    if p.min() == 0:
        return False
    rules = qd.generators.MinP(0.5), qd.generators.Temperature(0.3)
    q, cold = (qd.generators.decode(p, qd.TextSpace(2, 2), rule) for rule in rules)
    better = (q - cold) @ np.log(p) > 1e-9
    return better and qd.entropy(q) - qd.entropy(cold) > 1e-9
