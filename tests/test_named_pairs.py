"""Named pairs against SciPy, BLEU of one token by plain NumPy, and spelt pairs."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import product

import jax
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from lab import metrics
from models import centred, distribution, distributions, score, seen_sets, separable
from referees.enumerated_batches import batches
from refusals import refused
from scipy.optimize import fsolve, minimize
from scipy.spatial import ConvexHull
from scipy.stats import entropy

import qdtheory as qd
from qdtheory.pairs import given_pair, num_arguments

EPS = np.finfo(float).eps


def missing(q, k):
    """1 + V: the chance that a draw from q is none of k earlier ones."""
    return (q * (1 - q) ** k).sum()


def missing_slope(q, k):
    return (1 - q) ** (k - 1) * (1 - (k + 1) * q)


def topped(t, size):
    """One text of probability t, the others equal."""
    q = np.full(size, (1 - t) / (size - 1))
    q[0] = t
    return q


def ascend(height, slope, start, *constraints):
    end = minimize(
        lambda q: -height(q),
        start,
        jac=lambda q: -slope(q),
        method="SLSQP",
        bounds=[(0, 1)] * start.size,
        constraints=[{"type": "eq", "fun": lambda q: q.sum() - 1}, *constraints],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.clip(end.x, 0, 1) / np.clip(end.x, 0, 1).sum()


# -- verdicts and their evidence ---------------------------------------------------


@pytest.mark.claim("N6.1")
@pytest.mark.parametrize(
    ("f", "g"),
    [
        ("1 - (1 - x)**5", "-x*log(x)"),
        ("x", "log(1 + 20*x)"),
        ("sqrt(x)", "-x**2"),
        ("x - x**2", "-x**2"),
    ],
)
def test_a_witness_gains_by_the_formulas_in_numpy(f, g):
    witness = qd.check_compatibility(separable(f, g)).witness

    def in_numpy(formula, x):
        return eval(formula, {"x": x, "log": np.log, "sqrt": np.sqrt})

    p, q = (np.asarray(x) for x in (witness.p, witness.q))
    gains = (q - p) @ in_numpy(f, p), np.sum(in_numpy(g, q) - in_numpy(g, p))
    assert min(gains) > 0
    stated = witness.quality_gain, witness.diversity_gain
    np.testing.assert_allclose(stated, gains, rtol=1e-6)


@pytest.mark.claim("N6.1")
@pytest.mark.parametrize("n", range(1, 7))
def test_a_divergence_is_the_gap_of_the_weighted_sum(n):
    f, g = (f"1 - (1 - x)**{m}" for m in (n, n + 1))
    verdict = qd.check_compatibility(separable(f, g))
    a = verdict.alpha
    assert a == pytest.approx((n + 1) / (n + 2), rel=1e-12)
    rng = np.random.default_rng(n)
    for p, q in zip(rng.dirichlet([1.0] * 6, 50), rng.dirichlet([1.0] * 6, 50)):
        psi = [a * x @ score(n, p) + (1 - a) * score(n + 1, x).sum() for x in (p, q)]
        # F with F' = f, and its gap above the tangent at P.
        area_p, area_q = (x + (1 - x) ** (n + 1) / (n + 1) for x in (p, q))
        gap = a * (area_q - area_p - score(n, p) * (q - p)).sum()
        assert psi[0] - psi[1] == pytest.approx(gap, abs=1e-14)
        assert gap > 0


@pytest.mark.claim("N6.2")
@pytest.mark.parametrize("n", range(1, 8))
def test_distinct_texts_fit_bleu(n):
    q = np.random.default_rng(n).dirichlet([1.0] * 5)
    pair = qd.SeparablePair(
        qd.pairs.single_token_bleu_pair(n, 1).f, qd.Expression(f"1 - (1 - x)**{n + 1}")
    )
    distinct = sum(len(seen) * c for seen, c in seen_sets(q, n + 1).items())
    assert float(pair.diversity(q)) == pytest.approx(distinct, abs=1e-13)
    # g'' / f' by differences of the counts.
    x, h = np.linspace(0.1, 0.9, 9), 1e-4
    bend = np.diff([score(n + 1, x + d) for d in (-h, 0, h)], 2, axis=0)[0] / h**2
    slope = (score(n, x + h) - score(n, x - h)) / (2 * h)
    # Rounding of a second difference is 1e-16 / h^2; its slope is at least n / 10^6.
    clear = slope > 1e-2
    np.testing.assert_allclose((bend / slope)[clear], -(n + 1), rtol=1e-4)


@pytest.mark.claim("N6.3")
@pytest.mark.parametrize("seed", range(4))
def test_qdisc_of_bleu_and_entropy_is_that_of_a_search(seed):
    p = np.random.default_rng(seed).dirichlet([1.0] * 8)
    scores, entropy = score(5, p), qd.entropy(p)
    floor = {
        "type": "ineq",
        "fun": lambda q: -(q * np.log(q + 1e-300)).sum() - entropy,
        "jac": lambda q: -np.log(q + 1e-300) - 1,
    }
    q = ascend(lambda q: q @ scores, lambda q: scores, p, floor)
    f = qd.Expression("1 - (1 - x)**5")
    pair = qd.SeparablePair(f, qd.functions.SE)
    found = qd.quality_discrepancy(pair, p)
    # SLSQP stops within about 1e-8 of the constraint and of the optimum.
    assert found.qdisc == pytest.approx((q - p) @ scores, abs=1e-6)
    assert found.qdisc > 1e-4
    fitting = qd.SeparablePair(f, qd.Expression("-(1 - x)**6"))
    assert qd.quality_discrepancy(fitting, p).qdisc <= 1e-12


# -- Theorem 3 and Theorem 1 -------------------------------------------------------


@pytest.mark.claim("N6.4")
def test_only_one_reference_and_two_candidates_are_compatible():
    x = sympy.Symbol("x")
    constant = []
    for n, k in product(range(1, 8), range(1, 8)):
        f, g = 1 - (1 - x) ** n, -x + x * (1 - x) ** k
        if sympy.cancel(g.diff(x, 2) / f.diff(x)).is_constant():
            constant.append((n, k))
    assert constant == [(1, 1)]
    for n, k in ((1, 1), (1, 4), (5, 1), (5, 5), (40, 7)):
        verdict = qd.check_compatibility(qd.pairs.single_token_bleu_pair(n, k))
        assert verdict.compatible is ((n, k) == (1, 1))
        if witness := verdict.witness:
            p, q = np.asarray(witness.p), np.asarray(witness.q)
            assert (q - p) @ score(n, p) > 0
            assert missing(q, k) > missing(p, k)


@pytest.mark.claim("N6.5")
@given(
    weights=st.lists(st.integers(1, 50), min_size=2, max_size=6), n=st.integers(1, 9)
)
def test_one_candidate_leaves_quality_alone(weights, n):
    p = [Fraction(w, sum(weights)) for w in weights]
    best = max(score(n, x) for x in p)
    # One candidate has no other: Self-BLEU is 0 whatever the model.
    assert sum(-x + x * (1 - x) ** 0 for x in p) == 0
    beaten = best > sum(x * score(n, x) for x in p)
    assert beaten == (len(set(p)) > 1)


@pytest.mark.claim("N6.6")
def test_self_bleu_rewards_a_transfer_to_the_likelier_text():
    def diversity(k, q):
        return sum(-x + x * (1 - x) ** k for x in q)

    for k in range(2, 400):
        m = Fraction(2, k + 1)
        step = m / 1000
        change = diversity(k, (1 - m + step, m - step)) - diversity(k, (1 - m, m))
        # For k = 2 the mass goes to the less likely text, for k = 3 they are equal.
        assert (change > 0) == (k != 3)
        assert (1 - m > m) == (k > 3)


# -- missing mass and the most diverse distribution ---------------------------------


@pytest.mark.claim("N6.7")
@given(st.lists(st.integers(0, 6), min_size=2, max_size=30))
def test_self_bleu_of_a_sample_is_one_minus_its_singletons(texts):
    total = Fraction(0)
    for i, text in enumerate(texts):
        others = texts[:i] + texts[i + 1 :]
        # Precision of one unigram, clipped at its greatest count in one reference.
        total += min(1, max(int(other == text) for other in others))
    singletons = sum(number == 1 for number in Counter(texts).values())
    assert total / len(texts) == 1 - Fraction(singletons, len(texts))


@pytest.mark.claim("N6.7")
@pytest.mark.parametrize("k", range(1, 8))
def test_negative_self_bleu_is_a_missing_mass(k):
    q = np.random.default_rng(k).dirichlet([0.5] * 5)
    unseen = sum(
        chance * (1 - q[list(seen)].sum()) for seen, chance in seen_sets(q, k).items()
    )
    pair = qd.pairs.single_token_bleu_pair(1, k)
    assert 1 + float(pair.diversity(q)) == pytest.approx(unseen, abs=1e-13)


@pytest.mark.claim("N6.8")
@pytest.mark.parametrize("k", [2, 3, 5, 10, 50, 400])
def test_the_concave_envelope_leaves_g_at_one_over_k(k):
    x = np.linspace(0, 1, 20_001)
    heights = x * (1 - x) ** k
    hull = ConvexHull(np.stack([x, heights], axis=1), qhull_options="Qt")
    corners = np.sort(hull.vertices)
    top = corners[heights[corners] > 0]
    # Up to the next grid point, and the hull's own rounding.
    assert x[top].max() == pytest.approx(1 / k, abs=1e-3 / k + 2 * x[1])
    line = (1 - x) / (1 - 1 / k) * (1 - 1 / k) ** k / k
    assert (heights <= line + 1e-15)[x >= 1 / k].all()


@pytest.mark.slow
@pytest.mark.claim("N6.9")
@pytest.mark.parametrize("size", [3, 4, 6])
def test_no_ascent_passes_two_levels(size):
    rng = np.random.default_rng(size)
    pair_p = rng.dirichlet([3.0] * size)
    for k in (2, size, size + 3, 3 * size, 40):
        t = np.linspace(1 / size, 1, 20_001)
        rest = (1 - t) / (size - 1)
        two_levels = (t * (1 - t) ** k + (1 - t) * (1 - rest) ** k).max()
        ends = [
            ascend(partial(missing, k=k), partial(missing_slope, k=k), start)
            for start in rng.dirichlet([0.5] * size, 15)
        ]
        best = max(missing(q, k) for q in ends)
        # The grid's step is 5e-5, and the mass is flat at its maximum.
        assert two_levels == pytest.approx(best, abs=1e-6)
        found = qd.quality_discrepancy(qd.pairs.single_token_bleu_pair(1, k), pair_p)
        q = np.asarray(found.most_diverse)
        assert missing(q, k) == pytest.approx(best, abs=1e-9)


@pytest.mark.claim("N6.10")
def test_the_most_diverse_distribution_collapses_once_and_deepens():
    p, tops = np.random.default_rng(10).dirichlet([1.0] * 64), {}
    listed = {75: (1 / 64, -0.688195), 76: (0.171, -0.693025), 1001: (0.937, -0.976835)}
    for size in (2, 30, 74, *listed, 200):
        found = qd.quality_discrepancy(qd.pairs.single_token_bleu_pair(1, size - 1), p)
        q = np.asarray(found.most_diverse)
        tops[size] = q.max()
        if size in listed:
            top, v = listed[size]
            assert tops[size] == pytest.approx(top, abs=5e-4)
            assert missing(q, size - 1) - 1 == pytest.approx(v, abs=1e-6)
    assert all(abs(top - 1 / 64) <= 1e-12 for size, top in tops.items() if size <= 75)
    assert 0.17 < tops[76] < tops[200] < tops[1001]


@pytest.mark.claim("N6.11")
def test_the_threshold_solves_two_equations():
    rests = []
    for power in range(3, 17):
        n = 2**power

        def conditions(at, n=n):
            k, t = at
            rest = (1 - t) / (n - 1)
            collapsed = t * (1 - t) ** k + (1 - t) * (1 - rest) ** k
            slopes = [(1 - x) ** (k - 1) * (1 - (k + 1) * x) for x in (t, rest)]
            # Scaled so that both are of order 1 beside the threshold.
            level = (collapsed - (1 - 1 / n) ** k) * n
            return level, (slopes[0] - slopes[1]) * np.sqrt(n)

        start = n + np.sqrt(2 * n), np.sqrt(2 / n)
        (k, t), _, flag, _ = fsolve(conditions, start, full_output=True, xtol=1e-12)
        assert flag == 1
        rests.append(k - n - np.sqrt(2 * n))
        assert t > 2 / n
    assert np.max(np.abs(rests)) < 0.5
    assert (np.diff(rests) > 0).all()
    # The next order of the expansion; the one after is of the order of t.
    assert rests[-1] == pytest.approx(-1 / 3, abs=t)
    assert t / np.sqrt(2 / n) == pytest.approx(1, abs=5e-3)


@pytest.mark.claim("N6.12")
@pytest.mark.parametrize(("n", "size"), [(1, 2), (1, 3), (10, 3), (1, 6), (5, 11)])
def test_qdisc_of_bleu_is_that_of_a_search(n, size):
    k, rng = size - 1, np.random.default_rng(size)
    p = rng.dirichlet([1.0] * 6)
    scores, floor = score(n, p), missing(p, k)
    constraint = {
        "type": "ineq",
        "fun": lambda q: missing(q, k) - floor,
        "jac": lambda q: missing_slope(q, k),
    }
    best = 0.0
    for start in (*rng.dirichlet([0.5] * 6, 30), p, topped(0.6, 6), topped(0.9, 6)):
        q = ascend(lambda q: q @ scores, lambda q: scores, start, constraint)
        if missing(q, k) >= floor - 1e-9:
            best = max(best, (q - p) @ scores)
    found = qd.quality_discrepancy(qd.pairs.single_token_bleu_pair(n, k), p)
    assert missing(np.asarray(found.q), k) >= floor - 1e-12
    # The constraint may be missed by 1e-9, which quality can turn into 1e-7.
    assert found.qdisc == pytest.approx(best, abs=1e-6)


# -- where it breaks ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N6.16")
@pytest.mark.parametrize("size", [16, 32, 64])
def test_a_locally_optimal_distribution_is_beaten_from_afar(size):
    # A little past the collapse, at a P that is a little off uniform.
    k = int(np.ceil(size + np.sqrt(2 * size)))
    p = topped(1.05 / size, size)
    assert p.max() < 2 / (k + 1)  # in the concave part: a maximum, locally
    u, v = centred(p), centred(missing_slope(p, k))
    assert u @ v == pytest.approx(-np.linalg.norm(u) * np.linalg.norm(v), rel=1e-9)
    t = np.linspace(p.max(), 1, 2000)
    mass = np.array([missing(topped(x, size), k) for x in t])
    far = topped(t[100:][np.argmax(mass[100:])], size)
    assert far @ p > p @ p
    assert missing(far, k) > missing(p, k)
    pair = qd.pairs.single_token_bleu_pair(1, k)
    assert "locally optimal" in qd.check_compatibility(pair, p).reason
    assert qd.quality_discrepancy(pair, p).qdisc >= (far - p) @ p


@pytest.mark.claim("N6.17")
@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
def test_two_texts_are_compatible_up_to_four_candidates(size):
    k = size - 1
    x = np.arange(1, 200) / 200
    mass = x * (1 - x) ** k + (1 - x) * x**k
    for n in (1, 5):
        quality = np.outer(x, score(n, x)) + np.outer(1 - x, score(n, 1 - x))
        at_p = np.diag(quality)
        # Row q, column p; ties of mirror images differ by rounding.
        better = (quality > at_p + 1e-12) & (mass[:, None] >= mass - 1e-15)
        assert better.any() == (size > 4)
        pair = qd.pairs.single_token_bleu_pair(n, k)
        verdict = qd.check_compatibility(pair, num_texts=2)
        assert (verdict.compatible is True) == (size <= 4)


# -- definitions -------------------------------------------------------------------


@pytest.mark.claim("N2.6", "N2.7")
@pytest.mark.parametrize(("size", "number"), [(2, 1), (2, 2), (3, 4), (4, 3)])
def test_bleu_and_self_bleu_of_one_token_are_means_over_all_sets(size, number):
    p, q = distribution(1, size), distribution(2, size)
    references, chances = batches(p, number)
    found = [(references == token).any(axis=1) @ chances for token in range(size)]
    pair = qd.pairs.single_token_bleu_pair(number, number)
    np.testing.assert_allclose(pair.quality(q, p), q @ found, rtol=1e-13)
    texts, chances = batches(q, number + 1)
    repeated = (texts[:, :, None] == texts[:, None]).sum(axis=-1) > 1
    mean = chances @ repeated.mean(axis=1)
    np.testing.assert_allclose(pair.diversity(q), -mean, rtol=1e-13)


@pytest.mark.parametrize("number", [1, 2, 7, 1000])
def test_chance_of_being_found_keeps_its_digits(number):
    found = qd.pairs.single_token_bleu_pair(number, 1).f
    for x in (0.0, 1e-300, 1e-9, 1e-3, 0.3, 0.7, 1.0):
        exact = 1 - (1 - Fraction(x)) ** number
        slope = number * (1 - Fraction(x)) ** (number - 1)
        # A power of 1 - x repeats the rounding of its base `number` times.
        np.testing.assert_allclose(
            found(x), float(exact), rtol=8 * EPS, atol=number * EPS * float(1 - exact)
        )
        np.testing.assert_allclose(
            jax.grad(found)(x), float(slope), rtol=2 * (number + 4) * EPS, atol=1e-300
        )


def test_bleu_pairs_are_one_object():
    make = qd.pairs.single_token_bleu_pair
    assert make(2, 3) is make(2, 3)


@pytest.mark.claim("N0.1", "N0.2")
@given(q=distributions(), p=distributions())
def test_ll_is_minus_the_reverse_cross_entropy_and_with_se_minus_kl(q, p):
    total = qd.LL_SE.quality(q, p) + qd.LL_SE.diversity(q)
    assert float(total) == pytest.approx(-entropy(q, p), abs=1e-12)
    # The chain rule: cross-entropy is entropy and divergence together.
    nll = entropy(q) + entropy(q, p)
    assert float(qd.LL_SE.quality(q, p)) == pytest.approx(-nll, abs=1e-12)
    assert float(qd.cross_entropy(q, p)) == pytest.approx(nll, abs=1e-12)


@pytest.mark.claim("N25.1", "N25.2")
def test_distinct_k_fits_exactly_k_minus_1_references():
    q, p = np.random.default_rng(0).dirichlet(np.ones(6), 2)
    make = qd.pairs.distinct_k_pair
    pair = make(10)
    assert float(pair.diversity(q)) == pytest.approx(float(metrics.distinct_k(q, 10)))
    assert float(pair.quality(q, p)) == pytest.approx(q @ (1 - (1 - p) ** 9))
    verdict = qd.check_compatibility(pair)
    assert verdict.compatible is True
    assert verdict.exact == {"w0": "-10", "b0": "10", "alpha": "10/11"}
    for other in (make(10, 10), make(10, 8), make(3, 1)):
        assert qd.check_compatibility(other).compatible is False


@pytest.mark.claim("N25.3")
def test_another_number_of_references_lets_a_model_win():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    spare = {"type": "ineq", "fun": lambda q: ((1 - p) ** 10 - (1 - q) ** 10).sum()}
    for n in (1, 5, 9, 30):
        pair, scores = qd.pairs.distinct_k_pair(10, n), 1 - (1 - p) ** n
        best = ascend(scores.dot, lambda q, s=scores: s, (p + 0.25) / 2, spare)
        gain = float((best - p) @ scores)
        assert qd.quality_discrepancy(pair, p).qdisc == pytest.approx(gain, abs=1e-7)
        assert (gain > 1e-6) == (n != 9)


# -- pairs by names, formulas, functions and scores ---------------------------------
P = np.array([0.4, 0.3, 0.2, 0.1])


def repetition(q):
    return -(q @ q)


# Each is LL or CR with NRR or SE, whose numbers are known.
@pytest.mark.parametrize(
    ("quality", "diversity", "same"),
    [
        ("LL-NRR", None, qd.LL_NRR),
        ("ll-nrr", None, qd.LL_NRR),
        (qd.LL_NRR, None, qd.LL_NRR),
        ("log(x)", "-x**2", qd.LL_NRR),
        ("LL", "NRR", qd.LL_NRR),
        ("LL", lambda x: -(x**2), qd.LL_NRR),
        (qd.functions.LL, "-x*x", qd.LL_NRR),
        (lambda x: x, qd.functions.SE, qd.CR_SE),
        (partial(lambda a, x: a * x, 1.0), "SE", qd.CR_SE),
        (P, "SE", qd.CR_SE),
        (P.tolist(), qd.functions.SE, qd.CR_SE),
        (np.log(P).astype("float32").astype(float), "NRR", None),
        (lambda q, p: q @ p, repetition, qd.CR_NRR),
        (lambda q, p, scale=1.0: scale * (q @ p), repetition, qd.CR_NRR),
    ],
)
def test_all_spellings_mean_the_same_pair(as_a_user, quality, diversity, same):
    pair = given_pair(quality, diversity)
    q = P[::-1].copy()
    if same is not None:
        assert float(pair.quality(q, P)) == pytest.approx(float(same.quality(q, P)))
        assert float(pair.diversity(q)) == pytest.approx(float(same.diversity(q)))


def test_misspelt_pairs_are_refused(as_a_user):
    refused(
        ("k must be at least 2", qd.pairs.distinct_k_pair, 1),
        ("must be at least 1", qd.pairs.distinct_k_pair, 5, 0),
        ("no pair is called 'LL-XX'; there are LL-SE", given_pair, "LL-XX"),
        ("a formula, or the name of a metric, needs another", given_pair, "log(x)"),
        ("y is not allowed", given_pair, "log(y)", "x"),
        ("write log(x)**2 or log(x**2)", given_pair, "log x^2", "x"),
        ("shape (N,), got shape ()", given_pair, 3, "SE"),
        ("got shape (0,)", given_pair, [], "SE"),
        ("got nan for text 1", given_pair, [1.0, np.nan], "SE"),
        ("got inf for text 0", given_pair, [np.inf, 1.0], "SE"),
    )
    refused(
        ("leave the diversity out", given_pair, qd.LL_SE, "x"),
        ("alone", given_pair, math.log),
        ("got None alone", given_pair, None),
        ("one number a text", given_pair, ["a"], "SE"),
        ("one number a text", given_pair, [1.0, [2.0]], "SE"),
        ("a function diversity(q)", given_pair, lambda q, p: q @ p, "SE"),
        ("g: expected", given_pair, "log(x)", 3),
        error=TypeError,
    )


def test_a_function_without_a_signature_is_one_of_numbers():
    assert num_arguments(dict) == 1
    assert num_arguments("x") is None
