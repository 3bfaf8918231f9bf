"""One human answer a prompt: what it leaves, its test, and prompt_test.csv."""

from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from math import comb, prod, sqrt

import mpmath
import numpy as np
import pytest
import sympy
from models import power
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.stats import norm, ttest_1samp
from scripts import frame
from scripts import script as load

import qdtheory as qd

TABLE = frame("prompt_test.csv").set_index(
    ["world", "question", "prompts", "generations"]
)
SHARE = (TABLE["named"] / TABLE["runs"]).sort_index()
MATCH = np.array([[Fraction(i == j) for j in range(3)] for i in range(3)])


def fractions(rng, size):
    """A distribution without zeros."""
    parts = np.array([Fraction(int(x)) for x in rng.integers(1, 20, size)])
    return parts / parts.sum()


def symmetric(rng, size):
    found = rng.integers(-9, 10, (size, size))
    return np.vectorize(Fraction, otypes=[object])(found + found.T)


def score(K, x, z, *, self_pairs=False):
    """The kernel score by its definition, over ordered pairs of positions."""
    near = K[np.ix_(x, z)].sum() / Fraction(len(x) * len(z))
    inner = K[np.ix_(x, x)]
    own = inner.sum() - (0 if self_pairs else inner.trace())
    return 2 * near - own / Fraction(len(x) * (len(x) - (not self_pairs)))


def listed(laws):
    """Every outcome of independent draws, a law for each, with its chance."""
    for places in product(*(range(len(law)) for law in laws)):
        yield places, prod(law[i] for law, i in zip(laws, places))


def plug_in(q, p, k):
    """Of pairs of k generations, one in k is of a text with itself."""
    return 2 * q @ p - (1 - 1 / k) * q @ q - q.sum() / k


# --- self-pairs ---------------------------------------------------------------------


@pytest.mark.claim("N18.23")
@pytest.mark.parametrize("p", [(5, 3, 2), (12, 5, 3)])
def test_self_pairs_prefer_a_sharper_power_and_fewer_generations_more_so(p):
    """The expectations over all samples, as fractions; linear in Q for k = 1."""
    p, q = (np.array([Fraction(x, sum(y)) for x in y]) for y in (p, (2, 1, 1)))
    for k in (1, 2, 3):
        samples = listed([q] * k + [p])
        found = sum(w * score(MATCH, x[:k], x[k:], self_pairs=True) for x, w in samples)
        assert found == plug_in(q, p, Fraction(k))
    p, best = p.astype(float), []
    for k in (np.inf, 4, 3, 2):
        of = lambda b, k=k: -plug_in(power(p, b), p, k)  # noqa: E731
        best.append(minimize_scalar(of, (0.5, 2)).x)
    assert best[0] == pytest.approx(1, abs=1e-6)  # no self-pairs
    assert 1.01 < best[1] < best[2] < best[3]


@pytest.mark.claim("N18.31")
@pytest.mark.parametrize("k", [2, 8])
def test_no_model_has_a_greater_plug_in_score_than_the_stretched_humans(k):
    for p in np.random.default_rng(k).dirichlet(np.full(6, 0.6), 5):

        def stretched(cut, p=p):
            return np.maximum(p * k / (k - 1) - cut, 0)

        best = stretched(brentq(lambda cut: stretched(cut).sum() - 1, -2, 2))
        found = minimize(
            lambda q, p=p: -plug_in(q, p, k),
            np.full(6, 1 / 6),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            options={"ftol": 1e-14},
        )
        assert plug_in(best, p, k) == pytest.approx(-found.fun, abs=1e-9)
        assert best @ best > p @ p


# --- degrees ------------------------------------------------------------------------


def degrees(v, size=3):
    """Degrees on distributions of a diversity and of differences of its slopes."""
    names = sympy.symbols(f"q:{size}")
    last, *slopes = (sympy.diff(v(names), x) for x in names[::-1])
    on_simplex = (
        x.subs(names[-1], 1 - sum(names[:-1]))
        for x in (v(names), *(slope - last for slope in slopes))
    )
    value, *rest = (sympy.Poly(x, *names[:-1]).total_degree() for x in on_simplex)
    return value, max(rest)


def distinct(k):
    return lambda q: sum(1 - (1 - x) ** k for x in q)


@pytest.mark.claim("N18.24")
def test_an_estimator_read_off_the_terms_is_unbiased():
    """distinct_3 from four generations, and the library's from k of its own."""
    assert degrees(lambda q: -sum(x**2 for x in q)) == (2, 1)
    assert degrees(lambda q: -((q[0] + 2 * q[1]) ** 3) - q[2] ** 3) == (3, 2)
    assert degrees(distinct(5)) == (5, 4)
    names, p = sympy.symbols("a b c"), fractions(np.random.default_rng(24), 3)
    terms = sympy.Poly(sympy.expand(distinct(3)(names)), *names).terms()
    lifted = sum(
        factor
        * prod(x**n for x, n in zip(names, powers))
        * sum(names) ** (4 - sum(powers))
        for powers, factor in terms
    )
    lifted, mean = sympy.Poly(sympy.expand(lifted), *names), Fraction(0)
    for places, w in listed([p] * 4):
        powers = tuple(places.count(i) for i in range(3))
        orders = comb(4, powers[0]) * comb(4 - powers[0], powers[1])
        mean += w * Fraction(int(lifted.coeff_monomial(powers))) / orders
    assert mean == distinct(3)(p)
    pair = qd.pairs.distinct_k_pair(3)
    assert float(pair.diversity(p.astype(float))) == pytest.approx(float(mean))


@pytest.mark.claim("N18.24")
def test_entropy_and_vendi_are_no_polynomials():
    """Differences of orders 2 to 13 along a line, in 60 digits."""
    near = mpmath.matrix([[1, 0.9, 0.2], [0.9, 1, 0.2], [0.2, 0.2, 1]])

    def entropy(q):
        return -sum(x * mpmath.log(x) for x in q)

    def vendi(q):
        root = mpmath.diag([mpmath.sqrt(x) for x in q])
        return entropy(mpmath.eigsy(root * near * root, eigvals_only=True))

    with mpmath.workdps(60):
        line = [[mpmath.mpf(x) / 40 for x in (4 + n, 26 - n, 10)] for n in range(14)]
        for v, k in product((entropy, vendi), range(2, 14)):
            steps = [(-1) ** i * comb(k, i) * v(q) for i, q in enumerate(line[: k + 1])]
            assert abs(sum(steps)) > mpmath.mpf(10) ** -25


@pytest.mark.claim("N18.36")
@pytest.mark.parametrize("k", range(2, 8))
def test_degrees_are_lower_on_two_texts_for_odd_k(k):
    assert degrees(distinct(k), 2)[0] == k - k % 2
    assert degrees(distinct(k), 3)[0] == k


# --- Theorem K ----------------------------------------------------------------------


@pytest.mark.claim("N18.25")
@pytest.mark.parametrize("r", [1, 2])
def test_psi_is_greatest_at_the_humans_on_a_grid_in_fractions(r):
    features = np.array([[1, 0, 2], [0, 3, 1]])
    places = [(a, b, 4 - a - b) for a, b in product(range(5), repeat=2) if a + b <= 4]
    grid = [np.array([Fraction(x, 4) for x in place]) for place in places]

    def psi(q, p):
        texts = listed([q, *[p] * r])
        u = sum(w * features[:, places].prod(axis=1).sum() for places, w in texts)
        return (r + 1) * u - ((features @ q) ** (r + 1)).sum()

    for p, q in product(grid, repeat=2):
        same = (features @ q == features @ p).all()
        assert psi(q, p) == psi(p, p) if same else psi(q, p) < psi(p, p)


@pytest.mark.claim("N18.26")
def test_an_optimizer_beats_two_prompts_and_not_one():
    """The greatest gain of diversity at no loss of quality, by SLSQP."""
    kernel = np.array([[1, 0.95, 0.95], [0.95, 1, 0.5], [0.95, 0.5, 1]])
    assert qd.kernel_criterion(kernel).compatible
    rng = np.random.default_rng(26)

    def likeness(q, p, weights):
        return weights @ ((q.reshape(p.shape) @ kernel) * p).sum(axis=1)

    def most(p, weights):
        def own(q):
            return likeness(q, q.reshape(p.shape), weights)

        def quality(q):
            return likeness(q - p.ravel(), p, weights)

        def excess(q):
            return q.reshape(p.shape).sum(axis=1) - 1

        limits = {"type": "eq", "fun": excess}, {"type": "ineq", "fun": quality}
        settings = {"bounds": [(0, 1)] * p.size, "constraints": limits}
        settings |= {"options": {"ftol": 1e-13, "maxiter": 300}}
        gains = [0.0]
        for start in rng.dirichlet(np.ones(3), (6, len(p))):
            found = minimize(own, start.ravel(), **settings)
            if quality(found.x) > -1e-9 and np.abs(excess(found.x)).max() < 1e-9:
                gains.append(own(p.ravel()) - found.fun)
        return max(gains)

    for p in rng.dirichlet(np.full(3, 3.0), (6, 2)):
        assert most(p, rng.dirichlet(np.full(2, 3.0))) > 1e-5
        assert most(p[:1], np.ones(1)) < 1e-7


# --- the fair score -----------------------------------------------------------------


@pytest.mark.claim("N18.27")
@pytest.mark.parametrize(("k", "r"), [(2, 1), (2, 3), (3, 2)])
def test_the_fair_score_is_unbiased_over_all_samples_in_fractions(k, r):
    rng = np.random.default_rng([k, r])
    p, q, K = fractions(rng, 3), fractions(rng, 3), symmetric(rng, 3)

    def mean(K):
        samples = listed([q] * k + [p] * r)
        return sum(w * score(K, place[:k], place[k:]) for place, w in samples)

    apart = q - p
    lost = p @ K @ p - mean(K)
    assert lost == apart @ K @ apart
    mmd = float(qd.pairs.squared_mmd(*(x.astype(float) for x in (K, q, p))))
    assert float(lost) == pytest.approx(mmd, rel=1e-12)
    brier = sum(w * ((q - MATCH[z]) ** 2).sum() for z, w in enumerate(p))
    assert mean(MATCH) == 1 - brier


def differences(rng, n, beta, k):
    """Fair scores of P of n prompts less those of its power, by exact match."""
    p = rng.dirichlet(np.full(64, 0.1), n) + 1e-300
    laws = [x / x.sum(axis=1, keepdims=True) for x in (p, p**beta)]
    z = (rng.random((n, 1)) > laws[0].cumsum(axis=1)).sum(axis=1).clip(max=63)
    x, y = (rng.multinomial(k, law) for law in laws)
    twins = ((y * (y - 1)).sum(axis=1) - (x * (x - 1)).sum(axis=1)) / (k * (k - 1))
    return 2 * (x - y)[np.arange(n), z] / k + twins


# --- the test over prompts ----------------------------------------------------------


@cache
def drawn_differences(beta):
    """Of 400,000 prompts with two generations, a new P each."""
    rng = np.random.default_rng(29)
    return np.concatenate([differences(rng, 10_000, beta, 2) for _ in range(40)])


@pytest.mark.claim("N18.30")
@pytest.mark.parametrize(
    ("question", "beta", "k"), [("same", 1, 4), ("sharper", 1.6, 8)]
)
def test_the_table_of_exact_matches_by_other_code(question, beta, k):
    rng, runs = np.random.default_rng([30, k]), 300
    d = np.array([differences(rng, 100, beta, k) for _ in range(runs)])
    wins = (ttest_1samp(d, 0, axis=1, alternative="greater").pvalue < 0.05).mean()
    said = SHARE["exact match", question, 100, k]
    assert wins == pytest.approx(said, abs=4 * sqrt(said / runs))


@pytest.mark.slow
@pytest.mark.claim("N18.37")
@pytest.mark.parametrize(("copies", "said"), [(1, 0.05), (4, 0.205)])
def test_prompts_that_are_counted_more_than_once(copies, said):
    rng, d, wins = np.random.default_rng(37), drawn_differences(1), 0
    for _ in range(3000):
        rows = np.repeat(d[rng.integers(len(d), size=250)], copies)
        wins += rows.mean() > 1.6465 * rows.std(ddof=1) / sqrt(len(rows))
    assert wins / 3000 == pytest.approx(said, abs=0.02)
    assert norm.sf(1.6449 / sqrt(copies)) == pytest.approx(said, abs=5e-3)


# --- similarities that are refused --------------------------------------------------


def by_subsequences(x, y):
    """Longest common subsequence, by listing all of them."""
    for n in range(min(len(x), len(y)), 0, -1):
        if {*combinations(x, n)} & {*combinations(y, n)}:
            return n
    return 0


@cache
def edits(x, y):
    if not x or not y:
        return len(x) + len(y)
    change = edits(x[1:], y[1:]) + (x[0] != y[0])
    return min(change, edits(x[1:], y) + 1, edits(x, y[1:]) + 1)


@pytest.mark.claim("N18.32")
def test_six_orders_refuse_rouge_l_and_edit_distance():
    plus, minus = ("cbda", "dacb", "abdc", "bacd"), ("acbd", "bdac")
    weights = dict.fromkeys(plus, 1) | dict.fromkeys(minus, -2)
    for alike, said in (
        (by_subsequences, Fraction(-1, 8)),
        (lambda x, y: 4 - edits(x, y), Fraction(-3, 32)),
    ):
        pairs = product(weights.items(), repeat=2)
        assert sum(a * b * alike(x, y) for (x, a), (y, b) in pairs) == said * 64


@pytest.mark.claim("N18.33")
@pytest.mark.parametrize("length", [3, 4, 6, 9])
def test_four_windows_refuse_bleu_of_every_order_between(length):
    """By the BLEU of `qdtheory.text`, on words."""
    for n in range(2, length):
        m = length - n + 1
        circle = [f"w{i % (2 * m)}" for i in range(3 * length + 2 * m)]
        texts = [circle[s : s + length] for s in (0, 1, m, m + 1)]
        bleu = (qd.text.bleu([x], [y], n, smoothing=None) for x in texts for y in texts)
        K = np.reshape([x[-1] for x in bleu], (4, 4))
        assert K[0, 2] == K[1, 3] == 0
        assert K[0, 1] + K[0, 3] + K[1, 2] + K[2, 3] > 2
        assert (1, -1, 1, -1) @ K @ (1, -1, 1, -1) < 0


@pytest.mark.claim("N18.35")
def test_gains_and_covariance_of_the_wrong_winner_by_listing():
    """All triples of two generations and an answer, given the answer."""
    names = ["".join(x) for x in permutations("abcd")]
    K = np.array([[by_subsequences(x, y) / 4 for y in names] for x in names])
    p, q = load("make_prompt_test").orders()
    assert [p.sum(), q.sum()] == pytest.approx([1, 1])
    u, v = np.broadcast_arrays((K[:, None] + K) / 2, -K[:, :, None])  # x, y, z
    gain, cov, given = 0, 0, []
    for law, sign in ((q, 1), (p, -1)):
        w = law[:, None, None] * law[:, None] * p
        mean = np.array([(w * u).sum(), (w * v).sum()])
        gain = gain + sign * mean
        square = [[(w * a * b).sum() for a in (u, v)] for b in (u, v)]
        cov = cov + np.array(square) - np.outer(mean, mean)
        given.append((w * u).sum(axis=(0, 1)) / p - mean[0])
    assert gain == pytest.approx([0.030625, 0.050625], abs=1e-12)
    # Both are scored by the same answer.
    cov[0, 0] -= 2 * (p @ (given[0] * given[1]))
    draws = np.random.default_rng(35).multivariate_normal(gain, cov / 500, 20_000)
    named = (draws > 1.648 * np.sqrt(np.diag(cov) / 500)).all(axis=1).mean()
    assert named == pytest.approx(SHARE["ROUGE-L", "both", 500, 2], abs=0.02)
