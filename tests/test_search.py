"""The search against exact solutions, SLSQP, and the paper's method."""

import json
import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import assert_attained, oracle, searched
from refusals import refused

import qdtheory as qd
from qdtheory.search import penalty_curve, search, search_frontier

SPACE = qd.TextSpace(4, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair",
    [
        qd.LL_NRR,
        qd.CR_SE,
        qd.pairs.single_token_bleu_pair(2, 4),
        qd.pairs.single_token_bleu_pair(5, 20),
    ],
    ids=lambda pair: pair.name,
)
def test_equals_the_exact_solution(pair):
    p = np.random.default_rng(0).dirichlet(np.ones(8), 4)
    found = search(pair, p, num_starts=16)
    for i, row in enumerate(p):
        exact = qd.quality_discrepancy(pair, row, method="exact")
        # The ascent is of first order: 1e-5 of the range is its own bar.
        assert found.gain[i] <= exact.qdisc + 1e-12
        assert found.gain[i] == pytest.approx(exact.qdisc, rel=1e-3, abs=1e-7)
        # An error of 1e-4 in Q' changes V by its square, so that V stops there.
        # With many references one text stands out, and the best of them is taken.
        np.testing.assert_allclose(found.most_diverse[i], exact.most_diverse, atol=1e-3)
        assert found.quality_range[i] == pytest.approx(exact.quality_range, rel=1e-3)
        assert_attained(pair, row, found.q[i], found.gain[i])


@pytest.mark.slow
def test_membership_is_solved_exactly():
    # BLEU of the order of the texts' length, as a sum of powers and as f and g.
    p = oracle(SPACE, 0, 1.0)
    pair = qd.BleuPair(SPACE, 3, 2, 2)
    exact = qd.quality_discrepancy(pair, p)
    assert exact.status == "exact"
    separable = qd.quality_discrepancy(qd.pairs.single_token_bleu_pair(2, 2), p)
    assert exact.qdisc == separable.qdisc
    assert_attained(qd.pairs.single_token_bleu_pair(2, 2), p, exact.q, exact.qdisc)
    # The best few are polished; how many starts came close is another question.
    found = qd.quality_discrepancy(pair, p, method="ascent")
    near = f"before the best few were polished, {found.num_agreeing} came within 1e-4"
    assert near in found.reason
    assert found.status == "lower_bound"
    assert found.qdisc <= exact.qdisc + 1e-12
    assert found.qdisc == pytest.approx(exact.qdisc, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("num_references", [1, 2])
def test_never_below_the_papers_method(num_references):
    pair = qd.BleuPair(SPACE, 2, num_references, num_references)
    p = np.stack([oracle(SPACE, 0, sigma) for sigma in (0.5, 1.0, 2.0)])
    ours, theirs = (search(pair, p, method=m) for m in ("ascent", "sgd"))
    assert (ours.gain >= 1.05 * theirs.gain).all()
    assert (theirs.gain > 0).all()
    # The last digits come slowly where an optimum is all but flat.
    assert (ours.residual <= 1e-4 * ours.quality_range).all()
    assert (ours.converged == (ours.residual <= 1e-5 * ours.quality_range)).all()
    assert ours.converged.any()
    # At sigma = .5 local optima abound, at 1 and 2 most starts meet.
    assert (ours.num_agreeing[1:] > ours.num_starts / 4).all()
    assert (ours.num_agreeing <= ours.num_starts).all()
    for found in (ours, theirs):
        for i, row in enumerate(p):
            assert_attained(pair, row, found.q[i], found.gain[i])


@pytest.mark.slow
def test_reaches_what_slsqp_reaches():
    pair = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(8), 3)
    found = search(pair, p, num_starts=32)
    diversity = jax.jit(jax.value_and_grad(pair.diversity))

    def value(q):
        return np.asarray(diversity(q)[0])

    def slope(q):
        return np.asarray(diversity(q)[1])

    for gain, row in zip(found.gain, p):
        best = searched(np.asarray(pair.text_quality(row)), value, slope, row, rng)
        assert best > 0
        # SLSQP's points may miss the constraint by 1e-12.
        assert gain >= best - 1e-6


@pytest.mark.slow
def test_most_diverse_models_of_bleu():
    # Order 1, 2 references: uniform on the texts of one repeated word. Order 2: the
    # best of many searches. The expected values are derived and measured elsewhere.
    p = np.stack([oracle(SPACE, seed, 1.0) for seed in (0, 1)])
    found = search(qd.BleuPair(SPACE, 1, 2, 2), p, num_starts=16)
    repeated = [(SPACE.tokens == token).all(axis=1) for token in range(4)]
    expected = np.any(repeated, axis=0) / 4
    # V is flat there: an error of 1e-3 changes it by its square.
    np.testing.assert_allclose(found.most_diverse, [expected] * 2, atol=1e-3)
    pair = qd.BleuPair(SPACE, 2, 2, 2)
    found = search(pair, p, num_starts=32)
    for q in found.most_diverse:
        assert float(pair.diversity(q)) == pytest.approx(-0.181769, abs=1e-6)


@pytest.mark.slow
def test_compatible_pairs_leave_nothing():
    p = np.random.default_rng(2).dirichlet(np.ones(8), 2)
    ngrams = qd.pairs.ngram_pair(qd.TextSpace(2, 3), 2)
    for pair in (qd.LL_SE, ngrams):
        for row in p:
            found = qd.quality_discrepancy(pair, row, method="ascent", num_starts=8)
            assert 0 <= found.qdisc <= 1e-12
            assert found.dominated_in is None
            assert found.reason == "A search of 24 starts; none gained quality."


def test_nonlinear_quality_and_a_class_jax_does_not_know():
    class Own:
        def quality(self, q, p):
            return -((q - p) ** 2).sum() - (q[0] - q[1]) ** 2

        def diversity(self, q):
            return -(q**2).sum()

    p = np.array([0.6, 0.2, 0.2])
    found = qd.quality_discrepancy(Own(), p, num_starts=16)
    assert found.status == "lower_bound"
    assert found.upper_bound == np.inf
    # Brute force on a grid of the simplex.
    a, b = np.meshgrid(*[np.linspace(0, 1, 1001)] * 2, indexing="ij")
    q = np.stack([a, b, 1 - a - b])
    quality = -((q - p[:, None, None]) ** 2).sum(axis=0) - (q[0] - q[1]) ** 2
    feasible = (q[2] >= 0) & ((q**2).sum(axis=0) <= (p**2).sum())
    best = quality[feasible].max()
    assert found.qdisc == pytest.approx(best - float(Own().quality(p, p)), abs=1e-5)
    assert found.quality_range == pytest.approx(
        quality[q[2] >= 0].max() - quality[333:335, 333:335].max(), abs=1e-3
    )


@pytest.mark.slow
def test_texts_of_infinite_score_stay_out():
    p = np.array([0.6, 0.3, 0.1, 0.0])
    for method in ("ascent", "sgd"):
        found = search(qd.LL_NRR, p, method=method)
        inside = search(qd.LL_NRR, p[:3], method=method)
        assert found.q[3] == 0
        assert found.gain == pytest.approx(float(inside.gain), rel=1e-3)
        assert found.quality_range == np.inf


@pytest.mark.slow
def test_dominated_in_diversity_only():
    # All models have the same quality, and P is not the most diverse.
    pair = qd.KernelPair(np.diag([1.0, 2.0, 4.0]))
    p = np.array([4.0, 2.0, 1.0]) / 7  # K p is constant, and P maximises V
    assert qd.quality_discrepancy(pair, p, num_starts=8).dominated_in is None
    flat = qd.FunctionPair(lambda q, p: 0.0 * q.sum(), pair.diversity, "flat")
    found = qd.quality_discrepancy(flat, np.full(3, 1 / 3), num_starts=8)
    assert (found.qdisc, found.drate, found.dominated_in) == (0, None, "diversity")
    np.testing.assert_allclose(found.q, p, atol=1e-4)


def test_one_text():
    found = qd.quality_discrepancy(qd.KernelPair(np.eye(1)), np.ones(1), num_starts=8)
    assert (found.qdisc, found.drate, found.dominated_in) == (0, None, None)


def test_a_batch_equals_its_rows():
    pair = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
    p = np.random.default_rng(3).dirichlet(np.ones(8), 2)
    batch = search(pair, p, num_starts=32)
    for i, row in enumerate(p):
        # Each row has random starts of its own.
        alone = search(pair, row, num_starts=32)
        assert alone.gain == pytest.approx(float(batch.gain[i]), rel=1e-4)


ON_DEVICES = """
import importlib, json, sys
import jax
import numpy as np
import qdtheory as qd

module = importlib.import_module("qdtheory.search")
used, alone = set(), module._search_one
def seen(*args):
    found = alone(*args)
    used.update(found.q.devices())
    return found
module._search_one = seen
pair, p = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2), np.array(json.loads(sys.argv[1]))
found = qd.search.search(pair, p, num_starts=8)
print(json.dumps([len(used), found.gain.tolist(), found.q.tolist()]))
"""


@pytest.mark.slow
def test_two_devices_find_what_one_finds():
    p = np.random.default_rng(3).dirichlet(np.ones(8), 3)
    flags = "--xla_force_host_platform_device_count=2"
    run = subprocess.run(
        [sys.executable, "-c", ON_DEVICES, json.dumps(p.tolist())],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    pair = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
    expected = search(pair, p, num_starts=8)
    devices, gain, q = json.loads(run.stdout)
    assert devices == 2
    # Rounding moves where a search ends, by the square root of what it moves the gain.
    np.testing.assert_allclose(gain, expected.gain, rtol=0, atol=1e-9)
    np.testing.assert_allclose(q, expected.q, rtol=0, atol=1e-5)
    assert min(gain) > 1e-3


# --- The frontier -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("pair", [qd.CR_NRR, qd.LL_SE], ids=lambda pair: pair.name)
def test_a_searched_frontier_equals_the_exact_one(pair):
    p = np.random.default_rng(3).dirichlet(np.ones(8))
    # As two functions nothing is known of the pair's form.
    found = search_frontier(qd.FunctionPair(pair.quality, pair.diversity), p, 8)
    assert found.status == "lower_bound"
    exact = qd.pareto_frontier(pair, p, 5000)
    assert exact.status == "exact"
    assert exact.q is None
    # Quality is smooth in the root of the diversity given up, so that interpolation
    # errs by the square of a step of 1 / 5000.
    given_up, exact_given_up = (
        np.sqrt(np.maximum(exact.diversity[0] - f.diversity, 0)) for f in (found, exact)
    )
    best = np.interp(given_up, exact_given_up, exact.quality)
    spread = float(exact.quality.max() - exact.quality.min())
    assert (found.quality <= best + 1e-6 * spread).all()
    assert (found.quality >= best - 1e-3 * spread).all()
    inner = slice(1, -1)
    weights = np.interp(given_up[inner], exact_given_up, exact.w)
    assert np.asarray(found.w[inner]) == pytest.approx(weights, rel=0.05)
    assert (found.w[0], found.w[-1]) == (0, -np.inf)
    assert (found.alpha[0], found.alpha[-1]) == (0, 1)
    assert found.residual <= 1e-3 * spread


@pytest.mark.slow
def test_the_searched_frontier_of_bleu_lies_above_p():
    pair, p = qd.BleuPair(SPACE, 2, 2, 2), oracle(SPACE, 0, 1.0)
    found = search_frontier(pair, p, 6)
    assert np.asarray(found.quality) == pytest.approx(
        [float(pair.quality(q, p)) for q in found.q], abs=1e-14
    )
    assert np.asarray(found.diversity) == pytest.approx(
        [float(pair.diversity(q)) for q in found.q], abs=1e-14
    )
    assert (np.diff(found.quality) >= 0).all()
    assert (np.diff(found.diversity) <= 0).all()
    best = max(float(pair.quality(q, p)) for q in np.eye(64))
    assert float(found.quality[-1]) == pytest.approx(best, abs=1e-14)
    above = np.interp(
        float(pair.diversity(p)), found.diversity[::-1], found.quality[::-1]
    )
    # Linear interpolation of six points stays above P all the same.
    assert above > float(pair.quality(p, p)) + 0.02


def test_a_real_distribution_of_greatest_diversity_is_searched():
    uniform = np.full(4, 0.25)
    pair = qd.FunctionPair(lambda q, p: q[0], lambda q: -((q - 0.25) ** 2).sum())
    assert qd.quality_discrepancy(pair, uniform).qdisc == 0


# --- Refusals -----------------------------------------------------------------------
def test_bad_input(as_a_user):
    def in_steps(q, p=None):
        return (q > 0.15).sum().astype(float)

    def flat(q):
        return 0 * q.sum()

    def nowhere(q):
        return jnp.log(-q[0])

    def functions(quality=qd.LL_NRR.quality, diversity=qd.LL_NRR.diversity):
        return qd.FunctionPair(quality, diversity)

    solve, exactly = qd.quality_discrepancy, {"method": "exact"}
    p, thirds, four = np.array([0.6, 0.4]), np.full(3, 1 / 3), np.arange(4, 0, -1) / 10
    lost = qd.LinearPair(lambda p: jnp.array([-jnp.inf, 0.0]), qd.functions.NRR)
    convex, kernel = qd.SeparablePair("x", lambda x: x**2), qd.KernelPair(np.eye(3))
    refused(
        ("one of ascent, sgd, got", partial(search, method="adam"), qd.LL_SE, p),
        ("at least 4, got 2", partial(search, num_starts=2), qd.LL_SE, p),
        ("p must sum to 1", search, qd.LL_SE, np.stack([p, 2 * p])),
        ("one vector, got shape", search, qd.LL_SE, p[None, None]),
        ("quality of P itself must be finite, got -inf", search, lost, p),
        ("concave up to one point", partial(solve, **exactly), convex, p),
        ("the quality has gradient 0 at P", solve, functions(quality=in_steps), four),
        ("diversity has gradient 0 at P", solve, functions(diversity=in_steps), four),
        ("diversity has gradient 0 at P", solve, functions(diversity=flat), four),
        ("diversity of P itself is nan", solve, functions(diversity=nowhere), p),
        ("p must sum to 1", search_frontier, kernel, thirds / 2),
        ("finite and at least 3, got 2", search_frontier, kernel, thirds, 2),
    )
    row = "SeparablePair or LinearPair; got a Kernel", partial(solve, **exactly), kernel
    refused(
        (*row, thirds),
        ("search_frontier finds points", qd.pareto_frontier, kernel, thirds),
        error=TypeError,
    )
    assert solve(convex, p).status == "lower_bound"


# --- The paper's method -------------------------------------------------------------
def test_the_papers_curve_is_sgd_with_momentum():
    # A plain loop with gradients by hand; from this P the start has V(Q) = V(P).
    p = np.array([0.5, 0.25, 0.125, 0.125])
    gains = np.asarray(penalty_curve(qd.LL_NRR, p))
    assert gains.shape == (3, 5000)
    for rate, curve in zip((0.1, 1.0, 10.0), gains):
        logits, velocity, expected = np.log(p), np.zeros(4), []
        for _ in range(200):
            q = np.exp(logits) / np.exp(logits).sum()
            u, s = q @ np.log(p), p @ p - q @ q
            gain = u - p @ np.log(p)
            expected.append(gain if gain > 0 and s > 0 else np.nan)
            share = {-1: 1.0, 0: 0.5, 1: 0.0}[int(np.sign(s))]
            slope = -np.log(p) + share * 2 * 2 * q
            velocity = 0.9 * velocity + q * (slope - q @ slope)
            logits = logits - rate * velocity
        assert curve[:200] == pytest.approx(expected, rel=1e-9, nan_ok=True)
    found = qd.search.search(qd.LL_NRR, p, method="sgd")
    assert float(found.gain) == pytest.approx(np.nanmax(gains), rel=1e-12)
    best = np.nan_to_num(gains).max(axis=1).argmax()
    assert float(found.learning_rate) == (0.1, 1.0, 10.0)[best]
