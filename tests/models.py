"""What several files of tests share: distributions, pairs, texts and searches."""

import itertools
from collections import Counter
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax.scipy.special import entr
from nltk.translate import bleu_score as nltk
from referees.ngram_counts import ngrams_of
from scipy.optimize import minimize

import qdtheory as qd
from qdtheory.text.partial_sums import PartialSums, merge_blocks, merge_totals

# -- distributions ------------------------------------------------------------------


def oracle(space, seed, sigma, size=8):
    """P of a random LSTM, a small one unless told."""
    return np.asarray(qd.oracle(space, seed, sigma, size))


def distribution(seed, size, *, zeros=0.0):
    """A random distribution; each entry but the first is 0 with chance `zeros`."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=size) ** 2
    weights[1:] *= rng.random(size - 1) >= zeros
    return weights / weights.sum()


def random_distribution(size, seed, zeros):
    """Gamma weights; a share `zeros` of them is zero."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.5, size=size) * (rng.random(size) >= zeros)
    weights[rng.integers(size)] += 1.0
    return weights / weights.sum()


def distributions(size=5):
    weights = st.lists(st.floats(1e-3, 1), min_size=size, max_size=size)
    return weights.map(lambda w: np.array(w) / np.sum(w))


def draw(seed, size, concentration=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(size, concentration))


def positive(seed, size):
    return qd.mix(draw(seed, size), np.full(size, 1 / size), 0.01).__array__()


def mixtures(size, steps):
    """All distributions over `size` points in units of 1 / steps."""
    bars = np.array(list(itertools.combinations(range(steps + size - 1), size - 1)))
    ends = np.full((len(bars), 1), -1), np.full((len(bars), 1), steps + size - 1)
    return (np.diff(np.hstack([ends[0], bars, ends[1]]), axis=1) - 1) / steps


def power(p, beta):
    weights = p**beta
    return weights / weights.sum()


def centred(vector):
    return vector - vector.mean()


# What a reward of D makes a model descend, by the names of `qd.rewards.REWARDS`.
DIVERGENCES = {
    "D": lambda q, p: qd.kl_divergence(p, (p + q) / 2),
    "log D": lambda q, p: 2 * qd.kl_divergence((p + q) / 2, p),
    "-log(1-D)": lambda q, p: 2 * qd.jensen_shannon_divergence(p, q),
    "D/(1-D)": lambda q, p: qd.kl_divergence(p, q),
    "logit D": qd.kl_divergence,
    "(D/(1-D))**2": lambda q, p: (
        jnp.exp(qd.divergences.renyi_divergence(p, q, order=2)) - 1
    ),
}


# -- what is exact, or found by a search --------------------------------------------


def exact(array):
    """The fractions that numbers in 64 bits are: bounds of them need no rounding."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, float))


def exact_bleu(pair, p, num_references):
    """Expected BLEU of each text, and the weights and sets that it is a sum over."""
    table, n = pair.table, pair.space.num_texts
    sets = np.asarray(table.sets).reshape(-1, n)[: table.num_sets].astype(int)
    weights = np.full((n, table.num_sets), Fraction(0))
    for text, k, weight in zip(table.text, table.set_index, table.weight):
        weights[text, k] += Fraction(float(weight))
    return weights @ (sets @ p) ** num_references, weights, sets


def searched(scores, g, slope, p, rng, num_starts=25):
    """The best feasible gain by SLSQP from many starts, P among them."""
    n, least, best = p.size, g(p).sum(), 0.0
    constraints = [
        {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": lambda q: np.ones(n)},
        {"type": "ineq", "fun": lambda q: g(q).sum() - least, "jac": slope},
    ]
    starts = [rng.dirichlet(np.full(n, rng.choice([0.2, 1, 3]))) for _ in range(25)]
    corners = 0.9 * np.eye(n) + 0.1 / n
    for start in (p, *corners, *starts[:num_starts]):
        found = minimize(
            lambda q: -q @ scores,
            start,
            jac=lambda q: -scores,
            constraints=constraints,
            bounds=[(0, 1)] * n,
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-15},
        ).x
        q = np.clip(found, 0, 1)
        q /= q.sum()
        if g(q).sum() >= least - 1e-12:
            best = max(best, float((q - p) @ scores))
    return best


def assert_attained(pair, p, q, gain):
    """The model is a distribution, as diverse as P, and gains this much quality."""
    q = np.asarray(q)
    assert q.min() >= 0
    assert abs(q.sum() - 1) <= 1e-13  # some hundreds of roundings
    assert pair.diversity(q) >= pair.diversity(p)
    found = float(pair.quality(q, p) - pair.quality(p, p))
    assert abs(found - float(gain)) <= 1e-14


# -- under JAX's transformations -----------------------------------------------------


def assert_compiles_and_batches(function, *batches, rtol=1e-13):
    """`jax.jit` and `jax.vmap` change nothing."""
    one_by_one = [function(*row) for row in zip(*batches, strict=True)]
    np.testing.assert_allclose(jax.vmap(function)(*batches), one_by_one, rtol=rtol)
    compiled = jax.jit(function)(*(batch[0] for batch in batches))
    np.testing.assert_allclose(compiled, one_by_one[0], rtol=rtol)


def assert_slope(function, at, towards, rtol=1e-7, atol=1e-9, h=1e-5):
    """A gradient is a central difference, of error O(h^2) and rounding EPS / h."""
    slope = jax.grad(function)(jnp.asarray(at)) @ towards
    ahead, behind = (float(function(at + t * towards)) for t in (h, -h))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=rtol, atol=atol)


# -- pairs --------------------------------------------------------------------------


def separable(f, g):
    return qd.SeparablePair(qd.Expression(f), qd.Expression(g))


def cubic_pair():
    return separable("x", "-(x - 1/3)**4/4")


def sine_pair():
    """f = sin 2t and g' = -tan t on a plane cubic's arc, t = x - 1/3, known by code."""
    return qd.SeparablePair(
        lambda x: jnp.sin(2 * (x - 1 / 3)),
        lambda x: jnp.log(jnp.cos(x - 1 / 3)),
        "sine",
    )


def bumpy_pair():
    """g'' = -f' exactly, but f falls on a narrow stretch beyond .62."""
    width = 0.01

    def f(x):
        return x + 0.25 * jnp.exp(-(((x - 0.62) / width) ** 2))

    def g(x):
        area = jnp.sqrt(jnp.pi) / 2 * jax.scipy.special.erf((x - 0.62) / width)
        return -(x**2) / 2 - 0.25 * width * area

    return qd.SeparablePair(f, g)


def kernel_pair(kernel):
    kernel = jnp.asarray(kernel)
    return qd.FunctionPair(lambda q, p: q @ kernel @ p, lambda q: -(q @ kernel @ q))


# -- scalar functions and their sums ------------------------------------------------


def beaten(pair, p=None, **options):
    """The verdict on a pair, which has to be "incompatible", with a sound witness."""
    verdict = qd.check_compatibility(pair, p, **options)
    assert verdict.compatible is False
    witness = verdict.witness
    p, q = np.asarray(witness.p), np.asarray(witness.q)
    for x in (p, q):
        assert x.min() >= 0
        assert abs(x.sum() - 1) <= 1e-12
    gains = pair.quality(q, p) - pair.quality(p, p), pair.diversity(q)
    gains = float(gains[0]), float(gains[1] - pair.diversity(p))
    assert min(gains) > 0
    expected = witness.quality_gain, witness.diversity_gain
    # Two sums of the same terms in another order.
    np.testing.assert_allclose(gains, expected, rtol=1e-3, atol=1e-13)
    return verdict


def score(n, x):
    """The chance that a text of probability x is one of n references."""
    return 1 - (1 - x) ** n


def repeated(k):
    """g and g' of single-token NSBLEU with k references."""
    return (
        lambda x: -x + x * (1 - x) ** k,
        lambda x: -1 + (1 - x) ** k - k * x * (1 - x) ** (k - 1),
    )


def spread(q):
    return -jnp.square(jnp.asarray(q)).sum()


def entropy(q):
    return entr(jnp.asarray(q)).sum()


# Dyadic numbers, which floating point holds exactly.
LEAVES = st.sampled_from(["x", "x", "1", "2", "0.5", ".25", "3.0", "1.5e1"])
EXPONENTS = st.sampled_from(["2", "-1", "0.5", "(1/3)", "-2.5", "3"])


def compound(parts):
    return st.one_of(
        st.tuples(parts, st.sampled_from("+-*/"), parts).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        st.tuples(st.sampled_from(["log", "exp", "sqrt", "-", "+"]), parts).map(
            "{0[0]}({0[1]})".format
        ),
        st.tuples(parts, EXPONENTS).map("({0[0]})**{0[1]}".format),
    )


EXPRESSIONS = st.recursive(LEAVES, compound, max_leaves=8)


# -- texts --------------------------------------------------------------------------

RNG = np.random.default_rng(0)
# Two samples of 60 sentences over 6 tokens.
REAL, MODEL = (
    [RNG.integers(6, size=size).tolist() for size in RNG.integers(2, 9, 60)]
    for _ in range(2)
)

# The examples of Papineni et al. 2002.
GUIDE = (
    "It is a guide to action which ensures that the military always obeys the "
    "commands of the party"
)
TROOPS = (
    "It is to insure the troops forever hearing the activity guidebook that party "
    "direct"
)
BOOK = "he read the book because he was interested in world history"
GUIDES = [
    "It is a guide to action that ensures that the military will forever heed Party "
    "commands",
    "It is the guiding principle which guarantees the military forces always being "
    "under the command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
]


def sentences(space):
    return [tuple(int(t) for t in row if t >= 0) for row in space.tokens]


def sentence_bleu(candidate, references, max_order, smoothing=None):
    method = nltk.SmoothingFunction().method1 if smoothing else None
    weights = (1 / max_order,) * max_order
    score = nltk.sentence_bleu(references, candidate, weights, method)
    return float(np.asarray(score))


def counts_of_texts(space, n):
    """n-grams of each text, one column a text, by a loop."""
    every = list(product(range(space.vocab_size), repeat=n))
    bags = [Counter(ngrams_of(text, n)) for text in sentences(space)]
    return np.array([[bag[ngram] for bag in bags] for ngram in every])


def shares_of_texts(space, n):
    """The same divided by the number of a text's n-grams."""
    counts = counts_of_texts(space, n)
    return counts / np.maximum(1, counts.sum(axis=0))


def seen_sets(q, draws, held=None):
    """The chance of each set seen in a number of draws, by recursion.

    Seen is the text drawn or, if given, the n-grams that it holds.
    """
    held = held or [frozenset([text]) for text in range(len(q))]
    chances = Counter({frozenset(): 1.0})
    for _ in range(draws):
        after = Counter()
        for seen, chance in chances.items():
            for new, share in zip(held, q, strict=True):
                after[seen | new] += chance * share
        chances = after
    return chances


def merged(one, other):
    """The sums of different parts of the same texts, added."""
    totals = merge_totals(one.totals, other.totals)
    return PartialSums(totals, merge_blocks(one.blocks, other.blocks))
