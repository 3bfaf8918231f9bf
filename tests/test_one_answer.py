"""One human answer a prompt: what it leaves, its test, and prompt_test.csv."""

from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product
from math import comb, exp, prod, sqrt

import mpmath
import numpy as np
import pytest
import sympy
from lab import metrics
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm, ttest_1samp
from scripts import frame
from scripts import script as load

import qdtheory as qd

TABLE = frame("prompt_test.csv").set_index(
    ["world", "question", "prompts", "generations"]
)
SHARE = (TABLE["named"] / TABLE["runs"]).sort_index()


def fractions(rng, size):
    """A distribution without zeros."""
    parts = [Fraction(int(x)) for x in rng.integers(1, 20, size)]
    return [x / sum(parts) for x in parts]


def symmetric(rng, size):
    found = rng.integers(-9, 10, (size, size))
    return [[Fraction(int(x)) for x in row] for row in found + found.T]


def form(K, p, q):
    places = range(len(p))
    return sum(p[i] * K[i][j] * q[j] for i in places for j in places)


def score(K, x, z, *, self_pairs=False):
    """The kernel score by its definition, over ordered pairs of positions."""
    pairs = [(i, j) for i in range(len(x)) for j in range(len(x)) if i != j]
    pairs += [(i, i) for i in range(len(x))] if self_pairs else []
    near = sum((K[a][b] for a in x for b in z), Fraction(0)) / (len(x) * len(z))
    return 2 * near - sum(K[x[i]][x[j]] for i, j in pairs) / Fraction(len(pairs))


def listed(laws):
    """Every outcome of independent draws, a law for each, with its chance."""
    for places in product(*(range(len(law)) for law in laws)):
        yield places, prod(law[i] for law, i in zip(laws, places))


# --- self-pairs ---------------------------------------------------------------------


@pytest.mark.claim("N18.23")
@pytest.mark.parametrize("p", [(0.5, 0.3, 0.2), (0.6, 0.25, 0.15), (0.4, 0.35, 0.25)])
def test_self_pairs_prefer_a_sharper_power_and_fewer_generations_more_so(p):
    p = np.array(p)
    match = np.eye(3).tolist()
    best = []
    for k, self_pairs in ((4, False), (4, True), (3, True), (2, True)):
        scores = [
            (
                place[:-1],
                place[-1],
                float(score(match, place[:-1], place[-1:], self_pairs=self_pairs)),
            )
            for place in product(range(3), repeat=k + 1)
        ]

        def lost(beta, scores=scores):
            q = p**beta / (p**beta).sum()
            return -sum(prod(q[list(x)]) * p[z] * s for x, z, s in scores)

        best.append(minimize_scalar(lost, (0.5, 2)).x)
    assert best[0] == pytest.approx(1, abs=1e-6)
    assert 1.01 < best[1] < best[2] < best[3]


@pytest.mark.claim("N18.31")
@pytest.mark.parametrize("k", [2, 3, 8])
def test_no_model_has_a_greater_plug_in_score_than_the_stretched_humans(k):
    rng = np.random.default_rng(k)
    for p in rng.dirichlet(np.full(6, 0.6), 5):
        low, high = -2.0, 2.0
        for _ in range(80):
            middle = (low + high) / 2
            above = np.maximum(p * k / (k - 1) - middle, 0).sum() > 1
            low, high = (middle, high) if above else (low, middle)
        best = np.maximum(p * k / (k - 1) - low, 0)

        def expected(q, p=p):
            """Of pairs of generations, one in k is of a text with itself."""
            return 2 * q @ p - (1 - 1 / k) * q @ q - q.sum() / k

        found = minimize(
            lambda q: -expected(q),
            np.full(6, 1 / 6),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            options={"ftol": 1e-14},
        )
        assert expected(best) == pytest.approx(-found.fun, abs=1e-9)
        rivals = rng.dirichlet(np.full(6, 0.3), 2000)
        assert max(map(expected, rivals)) <= expected(best)
        assert best @ best > p @ p


@pytest.mark.claim("N18.31")
def test_a_single_generation_makes_the_most_frequent_answer_best():
    """And for k = 2 or 3 all samples have the expectation that the claim takes."""
    p, q = [Fraction(3, 6), Fraction(2, 6), Fraction(1, 6)], [Fraction(1, 3)] * 3
    match = [[Fraction(i == j) for j in range(3)] for i in range(3)]
    for k in (1, 2, 3):
        mean = sum(
            w * score(match, place[:k], place[k:], self_pairs=True)
            for place, w in listed([q] * k + [p])
        )
        repeats = (1 - Fraction(1, k)) * form(match, q, q)
        assert mean == 2 * form(match, q, p) - repeats - Fraction(1, k)
    # Linear in Q for k = 1, so that the best model has one answer.


# --- degrees ------------------------------------------------------------------------


X, Y = sympy.symbols("x y")


def degrees(v, size=3):
    """Degrees on distributions of a diversity and of differences of its slopes."""
    names = sympy.symbols(f"q:{size}")
    last = {names[-1]: 1 - sum(names[:-1])}
    on_simplex = [v(names).subs(last)]
    slopes = [sympy.diff(v(names), x) - sympy.diff(v(names), names[-1]) for x in names]
    on_simplex += [x.subs(last) for x in slopes[:-1]]
    found = [sympy.Poly(x, *names[:-1]).total_degree() for x in on_simplex]
    return found[0], max(found[1:])


def distinct(k):
    return lambda q: sum(1 - (1 - x) ** k for x in q)


@pytest.mark.claim("N18.24")
def test_degrees_of_diversities_and_of_their_qualities_by_algebra():
    assert degrees(lambda q: -sum(x**2 for x in q)) == (2, 1)
    assert degrees(lambda q: -((q[0] + 2 * q[1]) ** 3) - q[2] ** 3) == (3, 2)
    assert degrees(distinct(5)) == (5, 4)


@pytest.mark.claim("N18.24")
def test_an_estimator_read_off_the_terms_is_unbiased():
    """distinct_3 from four generations, and the library's from k of its own."""
    names = sympy.symbols("a b c")
    poly = sympy.Poly(sympy.expand(distinct(3)(names)), *names)
    total, k, terms = sympy.Integer(0), 4, sum(names)
    for powers, factor in poly.terms():
        monomial = prod(x**n for x, n in zip(names, powers))
        total += factor * monomial * terms ** (k - sum(powers))
    lifted = sympy.Poly(sympy.expand(total), *names)
    p = fractions(np.random.default_rng(24), 3)
    mean = Fraction(0)
    for places, w in listed([p] * k):
        powers = tuple(places.count(i) for i in range(3))
        orders = comb(k, powers[0]) * comb(k - powers[0], powers[1])
        mean += w * Fraction(int(lifted.coeff_monomial(powers))) / orders
    assert mean == distinct(3)(p)
    pair = qd.pairs.distinct_k_pair(3)
    assert float(pair.diversity(np.array(p, float))) == pytest.approx(float(mean))


@pytest.mark.claim("N18.24")
def test_entropy_and_vendi_are_no_polynomials():
    """Differences of order 13 along a line, in 60 digits; and no slope is bounded."""
    near = np.array([[1, 0.9, 0.2], [0.9, 1, 0.2], [0.2, 0.2, 1]])

    def entropy(q):
        return -sum(x * mpmath.log(x) for x in q)

    def vendi(q):
        root = [mpmath.sqrt(x) for x in q]
        rho = mpmath.matrix(3)
        for i, j in product(range(3), repeat=2):
            rho[i, j] = root[i] * root[j] * near[i, j]
        return entropy(mpmath.eigsy(rho, eigvals_only=True))

    with mpmath.workdps(60):
        for v in (entropy, vendi):
            line = [
                [mpmath.mpf(4 + n) / 40, mpmath.mpf(26 - n) / 40, mpmath.mpf(1) / 4]
                for n in range(14)
            ]
            values = [v(q) for q in line]
            for k in range(1, 13):
                steps = [(-1) ** i * comb(k + 1, i) * values[i] for i in range(k + 2)]
                assert abs(sum(steps)) > mpmath.mpf(10) ** -25
            tiny = mpmath.mpf(10) ** -40
            rises = [
                v([1 - e - tiny, e, tiny]) / e
                for e in (mpmath.mpf(10) ** -n for n in (5, 10, 20))
            ]
            assert rises[0] + 0.5 < rises[1]
            assert rises[1] + 1 < rises[2]


# --- Theorem K ----------------------------------------------------------------------


@pytest.mark.claim("N18.25")
@pytest.mark.parametrize("r", [1, 2])
def test_psi_is_greatest_at_the_humans_on_a_grid_in_fractions(r):
    features = [[1, 0, 2], [0, 3, 1]]
    grid = [
        [Fraction(a, 4), Fraction(b, 4), Fraction(4 - a - b, 4)]
        for a, b in product(range(5), repeat=2)
        if a + b <= 4
    ]

    def along(f, q):
        return sum(x * y for x, y in zip(f, q))

    def psi(q, p):
        u = sum(
            w * (r + 1) * prod(f[i] for i in places)
            for f in features
            for places, w in listed([q, *[p] * r])
        )
        return u - sum(along(f, q) ** (r + 1) for f in features)

    for p in grid:
        top = psi(p, p)
        for q in grid:
            same = all(along(f, q) == along(f, p) for f in features)
            assert psi(q, p) == top if same else psi(q, p) < top


@pytest.mark.claim("N18.25")
def test_another_diversity_lets_two_prompts_be_beaten():
    """One reference goes with NRR; with distinct_3 and with -NRR it does not."""
    rng = np.random.default_rng(25)
    for _ in range(50):
        p = rng.dirichlet(np.full(3, 2.0), 2)
        u = p - p.mean(axis=1, keepdims=True)
        v = 3 * (1 - p) ** 2
        v -= v.mean(axis=1, keepdims=True)
        step = u / np.linalg.norm(u) + v / np.linalg.norm(v)
        q = p + 1e-4 * p.min() * step
        assert (q * p).sum() > (p * p).sum()
        assert distinct(3)(q.ravel()) > distinct(3)(p.ravel())
    p = np.tile(rng.dirichlet(np.ones(3)), (2, 1))
    q = p + 1e-3 * np.array([[1, -1, 0], [-1, 1, 0]])
    assert (q * p).sum() == pytest.approx((p * p).sum(), abs=1e-15)
    assert (q * q).sum() > (p * p).sum() + 1e-6  # the diversity -NRR


@pytest.mark.claim("N18.26")
def test_an_optimizer_beats_two_prompts_and_not_one():
    kernel = np.array([[1, 0.95, 0.95], [0.95, 1, 0.5], [0.95, 0.5, 1]])
    assert qd.kernel_criterion(kernel).compatible
    rng = np.random.default_rng(26)

    def most(p, weights):
        """The greatest gain of diversity at no loss of quality, by SLSQP."""
        prompts, best = len(p), 0.0

        def quality(q):
            return weights @ (((q.reshape(-1, 3) - p) @ kernel) * p).sum(axis=1)

        def likeness(q):
            q = q.reshape(-1, 3)
            return weights @ ((q @ kernel) * q).sum(axis=1)

        for _ in range(6):
            found = minimize(
                likeness,
                rng.dirichlet(np.ones(3), prompts).ravel(),
                bounds=[(0, 1)] * (3 * prompts),
                constraints=[
                    {"type": "eq", "fun": lambda q: q.reshape(-1, 3).sum(axis=1) - 1},
                    {"type": "ineq", "fun": quality},
                ],
                options={"ftol": 1e-13, "maxiter": 300},
            )
            if (
                quality(found.x) > -1e-9
                and np.abs(found.x.reshape(-1, 3).sum(1) - 1).max() < 1e-9
            ):
                best = max(best, likeness(p.ravel()) - found.fun)
        return best

    for p in rng.dirichlet(np.full(3, 3.0), (6, 2)):
        assert most(p, rng.dirichlet(np.full(2, 3.0))) > 1e-5
        assert most(p[:1], np.ones(1)) < 1e-7


# --- the fair score -----------------------------------------------------------------


@pytest.mark.claim("N18.27")
@pytest.mark.parametrize(("k", "r"), [(2, 1), (2, 3), (3, 2), (4, 1)])
def test_the_fair_score_is_unbiased_over_all_samples_in_fractions(k, r):
    rng = np.random.default_rng([k, r])
    p, q, K = fractions(rng, 3), fractions(rng, 3), symmetric(rng, 3)
    mean = sum(
        w * score(K, place[:k], place[k:]) for place, w in listed([q] * k + [p] * r)
    )
    apart = [a - b for a, b in zip(q, p)]
    assert mean == form(K, p, p) - form(K, apart, apart)
    values = np.array(K, float), np.array(q, float), np.array(p, float)
    mmd = float(qd.pairs.squared_mmd(*values))
    assert float(form(K, p, p) - mean) == pytest.approx(mmd, rel=1e-12)


@pytest.mark.claim("N18.27")
def test_minus_a_distance_gives_the_energy_score():
    """Its gap is twice the squared difference of cumulated chances, as of the CRPS."""
    rng = np.random.default_rng(27)
    K = [[Fraction(-abs(i - j)) for j in range(4)] for i in range(4)]
    p, q = fractions(rng, 4), fractions(rng, 4)
    gap = sum(
        w * (score(K, (a, b), (z,)) - score(K, (c, d), (z,)))
        for (a, b, c, d, z), w in listed([p, p, q, q, p])
    )
    cumulated = [sum(p[:i]) - sum(q[:i]) for i in range(1, 4)]
    assert gap == 2 * sum(x**2 for x in cumulated)


@pytest.mark.claim("N18.27")
def test_two_generations_and_exact_match_estimate_a_brier_score():
    p, q = (fractions(np.random.default_rng(x), 4) for x in (1, 2))
    mean = sum(
        w * ((x == z) + (y == z) - (x == y)) for (x, y, z), w in listed([q, q, p])
    )
    brier = sum(
        w * sum((q[i] - (i == z)) ** 2 for i in range(4)) for (z,), w in listed([p])
    )
    assert mean == 1 - brier


def variance_by_formula(K, q, rival, p, k, r):
    """Of the difference of two models, the formula of the lecture in fractions."""

    def image(law):
        return [sum(x * y for x, y in zip(row, law)) for row in K]

    def cov(w, x, y):
        both = sum(a * b * c for a, b, c in zip(w, x, y))
        return both - sum(a * b for a, b in zip(w, x)) * sum(
            a * b for a, b in zip(w, y)
        )

    def of_kernel(a, b):
        square = [[x * x for x in row] for row in K]
        return form(square, a, b) - form(K, a, b) ** 2

    total = -Fraction(8, r) * cov(p, image(q), image(rival))
    for law in (q, rival):
        a, b = image(p), image(law)
        one = (r - 1) * cov(law, a, a) + (k - 1) * cov(p, b, b) + of_kernel(law, p)
        two = 4 * (k - 2) * cov(law, b, b) + 2 * of_kernel(law, law)
        total += Fraction(4, k * r) * one + Fraction(1, k * (k - 1)) * two
        total -= Fraction(8, k) * cov(law, a, b)
    return total


@pytest.mark.claim("N18.28")
@pytest.mark.parametrize(
    ("size", "k", "r"), [(3, 2, 1), (2, 2, 2), (2, 3, 1), (2, 3, 2)]
)
def test_the_variance_of_a_difference_over_all_samples_in_fractions(size, k, r):
    rng = np.random.default_rng([size, k, r])
    p, q, rival = (fractions(rng, size) for _ in range(3))
    K, mean, square = symmetric(rng, size), Fraction(0), Fraction(0)
    for place, w in listed([q] * k + [rival] * k + [p] * r):
        z = place[2 * k :]
        apart = score(K, place[:k], z) - score(K, place[k : 2 * k], z)
        mean, square = mean + w * apart, square + w * apart**2
    assert square - mean**2 == variance_by_formula(K, q, rival, p, k, r)


# --- the test over prompts ----------------------------------------------------------


def by_counts(rng, p, laws, k):
    """Fair scores by exact match of each law, from the counts of the answers."""
    z = (
        (rng.random((len(p), 1)) > p.cumsum(axis=1))
        .sum(axis=1)
        .clip(max=p.shape[1] - 1)
    )
    found = []
    for q in laws:
        counts = rng.multinomial(k, q)
        hits = counts[np.arange(len(p)), z]
        twins = (counts * (counts - 1)).sum(axis=1) / (k * (k - 1))
        found.append(2 * hits / k - twins)
    return found


def world(rng, n, beta):
    """P of n prompts, and its power."""
    p = rng.dirichlet(np.full(64, 0.1), n) + 1e-300
    q = p**beta
    return p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)


@cache
def drawn_differences(beta):
    """Of 400,000 prompts with two generations, a new P each."""
    rng = np.random.default_rng(29)
    found = []
    for _ in range(40):
        p, q = world(rng, 10_000, beta)
        a, b = by_counts(rng, p, (p, q), 2)
        found.append(a - b)
    return np.concatenate(found)


def shares(beta):
    values, counts = np.unique(drawn_differences(beta), return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    return counts / counts.sum()


@pytest.mark.slow
@pytest.mark.claim("N18.29")
@pytest.mark.filterwarnings("ignore:Precision loss", "ignore:divide by zero")
@pytest.mark.parametrize(
    ("beta", "three", "five"), [(1, 0.012, 0.0433), (1.6, 0.017, 0.0562)]
)
def test_few_prompts_by_listing_all_differences(beta, three, five):
    chance = shares(beta)
    for n, said in ((3, three), (5, five)):
        total = 0.0
        for places in product(range(5), repeat=n):
            d = np.array(places) - 2.0
            if np.ptp(d) == 0:  # the t statistic is infinite or undefined
                rejected = d[0] > 0
            else:
                rejected = ttest_1samp(d, 0, alternative="greater").pvalue < 0.05
            total += rejected * prod(chance[list(places)])
        assert total == pytest.approx(said, abs=0.002)


@pytest.mark.slow
@pytest.mark.claim("N18.29")
@pytest.mark.parametrize(("beta", "said"), [(1, 0.0499), (1.6, 0.2295)])
def test_five_hundred_prompts_by_simulation(beta, said):
    rng = np.random.default_rng(30)
    d = rng.multinomial(500, shares(beta), 20_000)
    values = np.arange(-2, 3)
    mean = d @ values / 500
    spread = np.sqrt((d @ values**2 - 500 * mean**2) / 499 / 500)
    found = (mean > 1.64791 * spread).mean()  # t at .05 with 499 degrees
    assert found == pytest.approx(said, abs=0.012)


@pytest.mark.claim("N18.30")
@pytest.mark.parametrize(("question", "k"), [("same", 4), ("sharper", 8)])
def test_the_table_of_exact_matches_by_other_code(question, k):
    rng, wins, runs = np.random.default_rng([30, k]), 0, 300
    beta = 1 if question == "same" else 1.6
    for _ in range(runs):
        p, q = world(rng, 100, beta)
        a, b = by_counts(rng, p, (p, q), k)
        wins += ttest_1samp(a - b, 0, alternative="greater").pvalue < 0.05
    said = SHARE["exact match", question, 100, k]
    assert wins / runs == pytest.approx(said, abs=4 * sqrt(said / runs))


@pytest.mark.claim("N18.30")
def test_the_two_models_of_a_tie_are_equally_far():
    made = load("make_prompt_test")
    rng = np.random.default_rng(31)
    p, sharp = world(rng, 20_000, made.SHARP)
    flat = made.power(p, made.FLAT)
    apart = ((flat - p) ** 2).sum(axis=1) - ((sharp - p) ** 2).sum(axis=1)
    assert abs(apart.mean()) < 4 * apart.std() / sqrt(len(apart))
    assert ((sharp - p) ** 2).sum(axis=1).mean() == pytest.approx(0.033, abs=0.001)


@pytest.mark.claim("N18.30", recount=True)
def test_the_table_keeps_the_level_and_more_of_each_has_more_power():
    for question in ("same", "tie"):
        found = SHARE["exact match", question].unstack().loc[30:]
        assert ((found > 0.035) & (found < 0.065)).all(axis=None)
    power = SHARE["exact match", "sharper"].unstack()
    assert (power.diff().iloc[1:] > 0).all(axis=None)
    assert power.loc[500, 8] > power.loc[2000, 2]


# --- similarities that are refused --------------------------------------------------

PLUS, MINUS = ("cbda", "dacb", "abdc", "bacd"), ("acbd", "bdac")
WEIGHTS = dict.fromkeys(PLUS, Fraction(1, 4)) | dict.fromkeys(MINUS, Fraction(-1, 2))


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
@pytest.mark.parametrize(
    ("alike", "said"),
    [
        (lambda x, y: Fraction(by_subsequences(x, y), 4), Fraction(-1, 8)),
        (lambda x, y: 1 - Fraction(edits(x, y), 4), Fraction(-3, 32)),
    ],
    ids=["ROUGE-L", "edit"],
)
def test_six_orders_refuse_rouge_l_and_edit_distance(alike, said):
    assert sum(WEIGHTS.values()) == 0
    pairs = product(WEIGHTS.items(), repeat=2)
    assert sum(a * b * alike(x, y) for (x, a), (y, b) in pairs) == said


@pytest.mark.claim("N18.33")
@pytest.mark.parametrize("length", range(3, 10))
def test_four_windows_refuse_bleu_of_every_order_between(length):
    """By the BLEU of `qdtheory.text`, on words."""
    for n in range(2, length):
        m = length - n + 1
        circle = [f"w{i % (2 * m)}" for i in range(3 * length + 2 * m)]
        texts = [circle[s : s + length] for s in (0, 1, m, m + 1)]
        K = np.array(
            [
                [qd.text.bleu([x], [y], n, smoothing=None)[-1] for y in texts]
                for x in texts
            ]
        )
        assert K[0, 2] == K[1, 3] == 0
        assert K[0, 1] + K[0, 3] + K[1, 2] + K[2, 3] > 2
        assert (1, -1, 1, -1) @ K @ (1, -1, 1, -1) < 0


@pytest.mark.claim("N18.34")
def test_slopes_of_no_function_have_a_circulation():
    """Round a triangle of texts slopes add up to 0; expected BLEU-1 does not."""
    space = qd.TextSpace(vocab_size=2, lengths=(1, 2))
    pair, corners = qd.BleuPair(space, 1, 1, 1), np.eye(space.num_texts)
    tokens = [tuple(x[x >= 0].tolist()) for x in np.asarray(space.tokens)]

    def bleu(x, z):
        common = sum(min(x.count(w), z.count(w)) for w in {*x})
        return min(1, exp(1 - len(z) / len(x))) * common / len(x)

    def circulation(field, triple):
        turns = zip(triple, (*triple[1:], triple[0]))
        return sum(
            (corners[j] - corners[i]) @ field((corners[i] + corners[j]) / 2)
            for i, j in turns
        )

    by_hand = np.array([[bleu(x, z) for z in tokens] for x in tokens])
    rouge = np.asarray(metrics.lcs_kernel(space))
    triples = [*combinations(range(space.num_texts), 3)]
    found = [circulation(lambda p: by_hand @ p, x) for x in triples]
    library = [
        circulation(lambda p: np.asarray(pair.text_quality(p)), x) for x in triples
    ]
    assert library == pytest.approx(found, abs=1e-12)
    assert 2 * max(map(abs, found)) == pytest.approx(0.132, abs=1e-3)
    assert max(abs(circulation(lambda p: rouge @ p, x)) for x in triples) < 1e-15


@pytest.mark.claim("N18.35")
def test_gains_and_covariance_of_the_wrong_winner_by_listing():
    """All triples of two generations and an answer, given the answer."""
    made = load("make_prompt_test")
    names = ["".join(x) for x in permutations("abcd")]
    K = np.array([[by_subsequences(x, y) / 4 for y in names] for x in names])
    p, q = made.orders()
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    found = {}
    for name, law in (("human", p), ("model", q)):
        w = law[:, None, None] * law[:, None] * p  # x, y, z
        u = np.broadcast_to((K[:, None] + K) / 2, w.shape)
        v = np.broadcast_to(-K[:, :, None], w.shape)
        given = (w * u).sum(axis=(0, 1)) / p, (w * v).sum(axis=(0, 1)) / p
        square = [(w * a * b).sum() for a, b in ((u, u), (v, v), (u, v))]
        found[name] = np.array([x @ p for x in given]), square, given[0]
    (means, (uu, vv, uv), by_z), (human, (a, b, c), by_z2) = (
        found["model"],
        found["human"],
    )
    gain = means - human
    assert gain == pytest.approx([0.030625, 0.050625], abs=1e-12)
    shared = p @ (by_z * by_z2) - means[0] * human[0]
    var_u = uu + a - means[0] ** 2 - human[0] ** 2 - 2 * shared
    var_v = vv + b - means[1] ** 2 - human[1] ** 2
    both = uv + c - means[0] * means[1] - human[0] * human[1]
    rng, n = np.random.default_rng(35), 500
    draws = rng.multivariate_normal(
        gain, np.array([[var_u, both], [both, var_v]]) / n, 20_000
    )
    named = (draws > 1.648 * np.sqrt([var_u / n, var_v / n])).all(axis=1).mean()
    assert named == pytest.approx(SHARE["ROUGE-L", "both", n, 2], abs=0.02)


@pytest.mark.claim("N18.35")
def test_the_table_of_wrong_winners_by_other_code():
    made, rng, wins, runs, n, k = (
        load("make_prompt_test"),
        np.random.default_rng(36),
        0,
        150,
        100,
        4,
    )
    names = ["".join(x) for x in permutations("abcd")]
    K = np.array([[by_subsequences(x, y) / 4 for y in names] for x in names])
    p, q = made.orders()
    for _ in range(runs):
        z, means = rng.choice(24, n, p=p), []
        for law in (q, p):
            x = rng.choice(24, (n, k), p=law)
            pairs = [K[x[:, i], x[:, j]] for i, j in combinations(range(k), 2)]
            means.append((K[x, z[:, None]].mean(axis=1), np.mean(pairs, axis=0)))
        gains = means[0][0] - means[1][0], means[1][1] - means[0][1]
        wins += all(
            ttest_1samp(g, 0, alternative="greater").pvalue < 0.05 for g in gains
        )
    said = SHARE["ROUGE-L", "both", n, k]
    assert wins / runs == pytest.approx(said, abs=4 * sqrt(said * (1 - said) / runs))


# --- where it breaks ----------------------------------------------------------------


@pytest.mark.claim("N18.36")
@pytest.mark.parametrize("k", range(2, 8))
def test_degrees_are_lower_on_two_texts_for_odd_k(k):
    assert degrees(distinct(k), 2)[0] == k - k % 2
    assert degrees(distinct(k), 3)[0] == k


@pytest.mark.slow
@pytest.mark.claim("N18.37")
@pytest.mark.parametrize(("copies", "said"), [(1, 0.05), (2, 0.123), (4, 0.205)])
def test_prompts_that_are_counted_more_than_once(copies, said):
    rng = np.random.default_rng(37)
    d = drawn_differences(1)
    wins = 0
    for _ in range(3000):
        rows = np.repeat(d[rng.integers(len(d), size=250)], copies)
        wins += rows.mean() > 1.6465 * rows.std(ddof=1) / sqrt(len(rows))
    assert wins / 3000 == pytest.approx(said, abs=0.02)
    assert norm.sf(1.6449 / sqrt(copies)) == pytest.approx(said, abs=5e-3)
