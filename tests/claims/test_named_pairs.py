"""Named pairs against SciPy, BLEU of one token by plain NumPy, and spelt pairs."""

import math
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
from models import distribution, distributions, score, seen_sets, separable
from referees.enumerated_batches import batches
from refusals import refused
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from scipy.special import entr
from scipy.stats import entropy

import qdtheory as qd
from qdtheory.pairs import given_pair, num_arguments

EPS, P = np.finfo(float).eps, np.array([0.4, 0.3, 0.2, 0.1])


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


def ascend(height, slope, start, spare=None, towards=None):
    """A highest model, of those with something to spare, by SLSQP."""
    limits = [{"type": "eq", "fun": lambda q: q.sum() - 1}]
    limits += [{"type": "ineq", "fun": spare, "jac": towards}] if spare else []
    settings = {"bounds": [(0, 1)] * start.size, "constraints": limits}
    settings |= {"method": "SLSQP", "options": {"ftol": 1e-14, "maxiter": 500}}
    end = minimize(lambda q: (-height(q), -slope(q)), start, jac=True, **settings)
    return end.x.clip(0, 1) / end.x.clip(0, 1).sum()


# -- verdicts and their evidence ---------------------------------------------------


FORMULAS = {
    "1 - (1 - x)**5": lambda x: 1 - (1 - x) ** 5,
    "-x*log(x)": lambda x: -x * np.log(x),
    "x": lambda x: x,
    "log(1 + 20*x)": lambda x: np.log(1 + 20 * x),
    "x - x**2": lambda x: x - x**2,
    "-x**2": lambda x: -(x**2),
}
NAMES = [*FORMULAS]


@pytest.mark.claim("N6.1")
@pytest.mark.parametrize(("f", "g"), [*zip(NAMES[::2], NAMES[1::2])])
def test_a_witness_gains_by_the_formulas_in_numpy(f, g):
    witness = qd.check_compatibility(separable(f, g)).witness
    (p, q), of_f, of_g = (
        map(np.asarray, (witness.p, witness.q)),
        FORMULAS[f],
        FORMULAS[g],
    )
    gains = (q - p) @ of_f(p), np.sum(of_g(q) - of_g(p))
    assert min(gains) > 0
    stated = witness.quality_gain, witness.diversity_gain
    np.testing.assert_allclose(stated, gains, rtol=1e-6)


@pytest.mark.claim("N6.2")
@pytest.mark.parametrize("n", range(1, 6))
def test_distinct_texts_fit_bleu(n):
    q, x, h = (
        np.random.default_rng(n).dirichlet([1.0] * 5),
        np.linspace(0.1, 0.9, 9),
        1e-4,
    )
    f = qd.pairs.single_token_bleu_pair(n, 1).f
    pair = qd.SeparablePair(f, qd.Expression(f"1 - (1 - x)**{n + 1}"))
    distinct = sum(len(seen) * c for seen, c in seen_sets(q, n + 1).items())
    assert float(pair.diversity(q)) == pytest.approx(distinct, abs=1e-13)
    # g'' / f' by differences of the counts.
    bend = np.diff([score(n + 1, x + d) for d in (-h, 0, h)], 2, axis=0)[0] / h**2
    slope = (score(n, x + h) - score(n, x - h)) / (2 * h)
    # Rounding of a second difference is 1e-16 / h^2; its slope is at least n / 10^6.
    clear = slope > 1e-2
    np.testing.assert_allclose((bend / slope)[clear], -(n + 1), rtol=1e-4)


@pytest.mark.claim("N6.3")
@pytest.mark.parametrize("seed", range(3))
def test_qdisc_of_bleu_and_entropy_is_that_of_a_search(seed):
    p = np.random.default_rng(seed).dirichlet([1.0] * 8)
    scores, f = score(5, p), qd.Expression("1 - (1 - x)**5")

    def spare(q):
        return (entr(q) - entr(p)).sum()

    def towards(q):
        return -np.log(q + 1e-300) - 1

    q = ascend(scores.dot, lambda q: scores, p, spare, towards)
    found = qd.quality_discrepancy(qd.SeparablePair(f, qd.functions.SE), p)
    # SLSQP stops within about 1e-8 of the constraint and of the optimum.
    assert 1e-4 < found.qdisc == pytest.approx((q - p) @ scores, abs=1e-6)


@pytest.mark.claim("N4.7")
@pytest.mark.parametrize("t", [0.68, 0.7, 0.8])
def test_one_text_seven_times_in_ten_beats_real_text_in_bleu_and_self_bleu(t):
    p = np.asarray(qd.oracle(qd.TextSpace(vocab_size=64, lengths=1), seed=6))
    q = np.full(64, (1 - t) / 63)
    q[p.argmax()] = t
    assert q @ score(10, p) > p @ score(10, p)
    assert missing(q, 100) > missing(p, 100)


# -- Theorem 3 and Theorem 1 -------------------------------------------------------


@pytest.mark.claim("N6.4")
def test_only_one_reference_and_two_candidates_are_compatible():
    x = sympy.Symbol("x")
    for n, k in product(range(1, 8), range(1, 8)):
        f, g = 1 - (1 - x) ** n, -x + x * (1 - x) ** k
        constant = sympy.cancel(g.diff(x, 2) / f.diff(x)).is_constant()
        assert constant == ((n, k) == (1, 1))
    for n, k in ((1, 1), (1, 4), (5, 1), (5, 5), (40, 7)):
        verdict = qd.check_compatibility(qd.pairs.single_token_bleu_pair(n, k))
        assert verdict.compatible is ((n, k) == (1, 1))
        if witness := verdict.witness:
            p, q = np.asarray(witness.p), np.asarray(witness.q)
            assert (q - p) @ score(n, p) > 0
            assert missing(q, k) > missing(p, k)


@pytest.mark.claim("N6.5")
@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.integers(1, 9))
def test_one_candidate_leaves_quality_alone(weights, n):
    p = [Fraction(w, sum(weights)) for w in weights]
    # One candidate has no other: Self-BLEU is 0 whatever the model.
    assert sum(-x + x * (1 - x) ** 0 for x in p) == 0
    best, real = max(score(n, x) for x in p), sum(x * score(n, x) for x in p)
    assert (best > real) == (len(set(p)) > 1)


@pytest.mark.claim("N6.6")
@pytest.mark.parametrize("k", [2, 3, 4, 5, 30, 400])
def test_self_bleu_rewards_a_transfer_to_the_likelier_text(k):
    m = Fraction(2, k + 1)
    before, after = (
        sum(-x + x * (1 - x) ** k for x in (1 - m + step, m - step))
        for step in (0, m / 1000)
    )
    # For k = 2 the mass goes to the less likely text, for k = 3 they are equal.
    assert (after > before) == (k != 3)
    assert (1 - m > m) == (k > 3)


# -- missing mass and the most diverse distribution ---------------------------------


@pytest.mark.claim("N6.7")
@pytest.mark.parametrize("k", [1, 2, 7])
def test_negative_self_bleu_is_a_missing_mass(k):
    q = np.random.default_rng(k).dirichlet([0.5] * 5)
    sets = seen_sets(q, k).items()
    unseen = sum(chance * (1 - q[list(seen)].sum()) for seen, chance in sets)
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
@pytest.mark.claim("N6.10")
@pytest.mark.parametrize("size", [3, 4, 6])
def test_no_ascent_passes_two_levels(size):
    rng = np.random.default_rng(size)
    p, t = rng.dirichlet([3.0] * size), np.linspace(1 / size, 1, 20_001)
    rest = (1 - t) / (size - 1)
    for k in (2, size, size + 3, 3 * size, 40):
        of = partial(missing, k=k), partial(missing_slope, k=k)
        starts = rng.dirichlet([0.5] * size, 15)
        best = max(missing(ascend(*of, start), k) for start in starts)
        # The grid's step is 5e-5, and the mass is flat at its maximum.
        two_levels = (t * (1 - t) ** k + (1 - t) * (1 - rest) ** k).max()
        assert two_levels == pytest.approx(best, abs=1e-6)
        found = qd.quality_discrepancy(qd.pairs.single_token_bleu_pair(1, k), p)
        q = np.asarray(found.most_diverse)
        assert missing(q, k) == pytest.approx(best, abs=1e-9)


@pytest.mark.claim("N6.10")
def test_the_most_diverse_distribution_collapses_once_and_deepens():
    p, tops = np.random.default_rng(10).dirichlet([1.0] * 64), {}
    listed = {75: (1 / 64, -0.688195), 76: (0.171, -0.693025), 1001: (0.937, -0.976835)}
    for size in (2, 74, *listed, 200):
        found = qd.quality_discrepancy(qd.pairs.single_token_bleu_pair(1, size - 1), p)
        q = np.asarray(found.most_diverse)
        tops[size] = q.max()
        if size in listed:
            expected = [pytest.approx(listed[size][0], abs=5e-4), listed[size][1]]
            assert [tops[size], round(missing(q, size - 1) - 1, 6)] == expected
    assert all(abs(top - 1 / 64) <= 1e-12 for size, top in tops.items() if size <= 75)
    assert 0.17 < tops[76] < tops[200] < tops[1001]


@pytest.mark.claim("N6.12")
@pytest.mark.parametrize(("n", "size"), [(1, 2), (1, 3), (10, 3), (1, 6), (5, 11)])
def test_qdisc_of_bleu_is_that_of_a_search(n, size):
    k, rng = size - 1, np.random.default_rng(size)
    p, best = rng.dirichlet([1.0] * 6), 0.0
    scores, floor = score(n, p), missing(p, k)
    slope = partial(missing_slope, k=k)
    for start in (*rng.dirichlet([0.5] * 6, 30), p, topped(0.6, 6), topped(0.9, 6)):
        q = ascend(
            scores.dot, lambda q: scores, start, lambda q: missing(q, k) - floor, slope
        )
        if missing(q, k) >= floor - 1e-9:
            best = max(best, (q - p) @ scores)
    found = qd.quality_discrepancy(qd.pairs.single_token_bleu_pair(n, k), p)
    assert missing(np.asarray(found.q), k) >= floor - 1e-12
    # The constraint may be missed by 1e-9, which quality can turn into 1e-7.
    assert found.qdisc == pytest.approx(best, abs=1e-6)


# -- where it breaks ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N6.16")
@pytest.mark.parametrize("size", [16, 64])
def test_a_locally_optimal_distribution_is_beaten_from_afar(size):
    # A little past the collapse, at a P that is a little off uniform.
    k, p = int(np.ceil(size + np.sqrt(2 * size))), topped(1.05 / size, size)
    assert p.max() < 2 / (k + 1)  # in the concave part: a maximum, locally
    assert np.corrcoef(p, missing_slope(p, k))[0, 1] == pytest.approx(-1, rel=1e-9)
    models = [topped(x, size) for x in np.linspace(p.max(), 1, 2000)[100:]]
    far = max(models, key=partial(missing, k=k))
    assert far @ p > p @ p
    assert missing(far, k) > missing(p, k)
    pair = qd.pairs.single_token_bleu_pair(1, k)
    assert "locally optimal" in qd.check_compatibility(pair, p).reason
    assert qd.quality_discrepancy(pair, p).qdisc >= (far - p) @ p


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


@pytest.mark.parametrize("number", [1, 7, 1000])
def test_chance_of_being_found_keeps_its_digits(number):
    found = qd.pairs.single_token_bleu_pair(number, 1).f
    for x in (0.0, 1e-300, 1e-9, 1e-3, 0.3, 0.7, 1.0):
        exact = 1 - (1 - Fraction(x)) ** number
        slope = float(number * (1 - Fraction(x)) ** (number - 1))
        # A power of 1 - x repeats the rounding of its base `number` times.
        near = number * EPS * float(1 - exact)
        assert float(found(x)) == pytest.approx(float(exact), rel=8 * EPS, abs=near)
        near = pytest.approx(slope, rel=2 * (number + 4) * EPS, abs=1e-300)
        assert float(jax.grad(found)(x)) == near


@pytest.mark.claim("N0.1", "N0.2")
@given(q=distributions(), p=distributions())
def test_ll_is_minus_the_reverse_cross_entropy_and_with_se_minus_kl(q, p):
    quality, kl = float(qd.LL_SE.quality(q, p)), entropy(q, p)
    assert quality + float(qd.LL_SE.diversity(q)) == pytest.approx(-kl, abs=1e-12)
    # The chain rule: cross-entropy is entropy and divergence together.
    nll = pytest.approx(entropy(q) + kl, abs=1e-12)
    assert -quality == nll == float(qd.cross_entropy(q, p))


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
@pytest.mark.parametrize("n", [1, 9, 30])
def test_another_number_of_references_lets_a_model_win(n):
    pair, scores = qd.pairs.distinct_k_pair(10, n), 1 - (1 - P) ** n

    def spare(q):
        return ((1 - P) ** 10 - (1 - q) ** 10).sum()

    best = ascend(scores.dot, lambda q: scores, (P + 0.25) / 2, spare)
    gain = float((best - P) @ scores)
    assert qd.quality_discrepancy(pair, P).qdisc == pytest.approx(gain, abs=1e-7)
    assert (gain > 1e-6) == (n != 9)


# -- pairs by names, formulas, functions and scores ---------------------------------


# Each is LL or CR with NRR or SE, whose numbers are known.
# Each is LL or CR with NRR or SE, whose numbers are known.
@pytest.mark.parametrize(
    ("quality", "diversity", "same"),
    [
        ("ll-nrr", None, qd.LL_NRR),
        ("log(x)", "-x**2", qd.LL_NRR),
        ("LL", lambda x: -(x**2), qd.LL_NRR),
        (qd.functions.LL, "-x*x", qd.LL_NRR),
        (lambda x: x, qd.functions.SE, qd.CR_SE),
        (partial(lambda a, x: a * x, 1.0), "SE", qd.CR_SE),
        (P, "SE", qd.CR_SE),
        (lambda q, p: q @ p, lambda q: -(q @ q), qd.CR_NRR),
        (lambda q, p, scale=1.0: scale * (q @ p), lambda q: -(q @ q), qd.CR_NRR),
    ],
)
def test_all_spellings_mean_the_same_pair(as_a_user, quality, diversity, same):
    pair, q = given_pair(quality, diversity), P[::-1].copy()
    assert float(pair.quality(q, P)) == pytest.approx(float(same.quality(q, P)))
    assert float(pair.diversity(q)) == pytest.approx(float(same.diversity(q)))


def test_misspelt_pairs_are_refused(as_a_user):
    refused(
        ("k must be at least 2", qd.pairs.distinct_k_pair, 1),
        ("must be at least 1", qd.pairs.distinct_k_pair, 5, 0),
        ("no pair is called 'LL-XX'; there are LL-SE", given_pair, "LL-XX"),
        ("a formula, or the name of a metric, needs another", given_pair, "log(x)"),
        ("write log(x)**2 or log(x**2)", given_pair, "log x^2", "x"),
        ("shape (N,), got shape ()", given_pair, 3, "SE"),
        ("got shape (0,)", given_pair, [], "SE"),
        ("got nan for text 1", given_pair, [1.0, np.nan], "SE"),
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
    assert (num_arguments(dict), num_arguments("x")) == (1, None)
