"""Pairs against plain NumPy: every kind of them, and those of a similarity."""

from collections import Counter
from itertools import chain, pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scoringrules
from families import PAIRS, WITH_ARRAYS
from lab import metrics
from models import assert_slope, distribution
from scipy.linalg import logm

import qdtheory as qd
from qdtheory import forms
from qdtheory.kernels import bleu_kernel, matrix_log, von_neumann_entropy
from qdtheory.pairs import form_of, pose
from qdtheory.proofs.kernel_criterion import kernel_criterion

P = distribution(9, 6)
MODELS = np.stack([distribution(seed, 6) for seed in range(4)])
KNOWN_TO_JAX = [name for name in PAIRS if name != "one's own"]
SCORED = [name for name, row in PAIRS.items() if hasattr(row[0], "text_quality")]
SCORED.remove("tokens")  # over texts of two lengths U is not linear in Q


# --- What every pair keeps ------------------------------------------------------------
@pytest.mark.parametrize("name", PAIRS)
def test_metrics_are_their_definition_posed_at_p_or_not_and_of_one_form(name):
    pair, kind, quality, diversity = PAIRS[name]
    problem, form = pose(pair, P), form_of(pair)
    assert isinstance(pair, qd.Pair)
    assert type(form) is kind
    assert form.pair is pair
    assert (form.g is not None) == (kind is forms.Separable)
    assert problem.real_quality == pytest.approx(quality(P, P), abs=1e-12)
    assert problem.real_diversity == pytest.approx(diversity(P), abs=1e-12)
    for q in MODELS:
        found = pair.quality(q, P), pair.diversity(q)
        expected = quality(q, P), diversity(q)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        posed = problem.quality(q), problem.diversity(q)
        np.testing.assert_allclose(posed, found, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", KNOWN_TO_JAX)
def test_a_pair_is_an_argument_of_compiled_code_and_serves_batches(name):
    pair, q = PAIRS[name][0], jnp.asarray(MODELS)

    @jax.jit
    def both(pair, q, p):
        return jax.vmap(lambda row: (pair.quality(row, p), pair.diversity(row)))(q)

    expected = [(pair.quality(row, P), pair.diversity(row)) for row in q]
    found = np.transpose(both(pair, q, jnp.asarray(P)))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    sizes = [np.size(leaf) for leaf in jax.tree.leaves(pair)]
    assert (max(sizes, default=0) > 1) == (name in WITH_ARRAYS)


@pytest.mark.parametrize("name", PAIRS)
def test_slopes_are_differences(name):
    pair, (q, other) = PAIRS[name][0], (MODELS[:2] + 1 / 6) / 2
    assert_slope(lambda q: pair.quality(q, P), q, other - q)
    assert_slope(pair.diversity, q, other - q)


@pytest.mark.parametrize("name", SCORED)
def test_where_texts_have_scores_quality_is_linear_in_the_model(name):
    pair, q = PAIRS[name][0], MODELS[0]
    scores = np.asarray(pair.text_quality(P))
    assert float(pair.quality(q, P)) == pytest.approx(q @ scores, abs=1e-14)
    problem = pose(pair, P)
    np.testing.assert_allclose(problem.scores, scores, rtol=1e-14, atol=1e-15)
    assert problem.spread == np.ptp(problem.scores)
    for q in (*MODELS, *np.eye(6)):
        as_diverse = problem.diversity(q) >= problem.diversity(P)
        gain = (q - P) @ scores if as_diverse else -np.inf
        assert problem.gain(q) == pytest.approx(gain, abs=1e-14)


def test_bleu_of_whole_texts_is_a_sum_over_texts_unless_smoothed():
    for smoothing, kind in ((None, forms.Separable), ("epsilon", forms.Bleu)):
        pair = qd.BleuPair(qd.TextSpace(2, 2), 2, 3, 4, smoothing)
        assert type(form_of(pair)) is kind


def test_a_score_of_minus_infinity_counts_only_where_q_has_mass():
    p, log_half = np.array([0.5, 0.5, 0.0]), np.log(0.5)
    scored = qd.LinearPair([log_half, log_half, -np.inf], "SE")
    for pair in (qd.LL_SE, qd.ConcavePair(jnp.log, qd.entropy), scored):
        assert pair.quality(p, p) == log_half
        assert pair.quality(np.array([0.5, 0.4, 0.1]), p) == -np.inf
    assert pose(qd.LL_SE, p).scores.tolist() == [log_half, log_half, -np.inf]
    # No NaN reaches the gradient where 0 meets infinity.
    gradient = jax.grad(qd.LL_SE.quality)(jnp.asarray(p), p)
    assert gradient[:2].tolist() == [log_half, log_half]
    assert np.isfinite(gradient[2])


def test_scores_given_as_numbers_are_compared_by_value_and_earn_a_seal():
    p, scores = np.array([0.5, 0.3, 0.2, 0.0]), [3.0, 1.0, 2.0, -np.inf]
    known = qd.quality_discrepancy(qd.LinearPair(scores, "SE"), p)
    code = qd.LinearPair(lambda p: np.array(scores), qd.functions.SE)
    tried = qd.quality_discrepancy(code, p)
    assert (known.status, tried.status) == ("exact", "lower_bound")
    assert known.qdisc == tried.qdisc
    pair = qd.LinearPair([1, 2], "SE")
    assert pair == qd.LinearPair(np.array([1.0, 2.0]), qd.functions.SE)
    assert pair != qd.LinearPair([1, 3], "SE")


# --- The similarity of two texts ------------------------------------------------------
PLACES = np.random.default_rng(0).normal(size=(7, 3))
APART = np.linalg.norm(PLACES[:, None] - PLACES, axis=2)
GAUSSIAN = np.exp(-(APART**2) / 2)


def psi(kernel, q, p):
    pair = qd.KernelPair(kernel)
    return float(pair.quality(q, p) + pair.diversity(q) / 2)


@pytest.mark.claim("N16.13", "N16.29")
@pytest.mark.parametrize(
    ("theirs", "points", "kernel", "unit"),
    [
        (scoringrules.es_ensemble, PLACES, -APART, 1),
        (scoringrules.gksmv_ensemble, PLACES, GAUSSIAN, 1),
        # Two different texts are the root of 2 apart.
        (scoringrules.es_ensemble, np.eye(7), np.eye(7), 2**0.5),
    ],
    ids=["energy score", "Gaussian kernel score", "exact match"],
)
def test_a_kernel_score_is_quality_and_half_of_diversity(theirs, points, kernel, unit):
    for q, p in np.random.default_rng(1).dirichlet(np.ones(7), (20, 2)):
        of_q, of_p = (
            p @ [theirs(z, points, ens_w=law) / unit for z in points] for law in (q, p)
        )
        constant = p @ np.diag(kernel) / 2
        assert of_q == pytest.approx(constant - psi(kernel, q, p), abs=1e-12)
        half = float(qd.pairs.squared_mmd(kernel, q, p)) / 2
        assert of_q - of_p == pytest.approx(half, abs=1e-12)


@pytest.mark.claim("N16.32")
def test_coverage_and_repetition_of_sentences_are_halves_of_a_fair_energy_score():
    """One n-gram of each sentence is drawn; all draws are listed."""
    rng = np.random.default_rng(4)
    ours, real = rng.integers(3, size=(2, 3, 3)).astype(str).tolist()
    number = {pair: k for k, pair in enumerate(product("012", repeat=2))}
    drawn, observed = (
        [[np.eye(9)[number[pair]] for pair in pairwise(s)] for s in x]
        for x in (ours, real)
    )
    scores = [
        scoringrules.es_ensemble(z, np.array(members), estimator="fair") / 2**0.5
        for members in product(*drawn)
        for z in chain(*observed)
    ]
    cr = qd.text.coverage_rate(ours, real, 2)
    nrr, of_real = (qd.text.negative_repetition_rate(x, 2) for x in (ours, real))
    assert np.mean(scores) == pytest.approx(0.5 - cr - nrr / 2, abs=1e-12)
    cnd = 2 * np.mean(scores) - 1 - of_real
    assert cnd == pytest.approx(qd.text.cnd(ours, real, 2), abs=1e-12)


# --- BLEU of two texts as a similarity ------------------------------------------------
def counted_kernel(texts, order):
    """BLEU of each text against each, texts of one length, by counting."""
    product_of = np.ones((len(texts), len(texts)))
    for n in range(1, order + 1):
        bags = [Counter(t[i : i + n] for i in range(len(t) - n + 1)) for t in texts]
        shared = [[(a & b).total() for b in bags] for a in bags]
        product_of *= np.array(shared) / (len(texts[0]) - n + 1)
    return product_of ** (1 / order)


@pytest.mark.claim("N16.28", "N25.23")
@pytest.mark.parametrize("length", range(1, 6))
def test_bleu_is_an_inner_product_at_the_lowest_and_the_highest_order_only(length):

    texts = list(product("ab", repeat=length))
    for order in range(1, length + 1):
        kernel = counted_kernel(texts, order)
        found = bleu_kernel(qd.TextSpace(2, length), order)
        np.testing.assert_allclose(kernel, found, atol=1e-14)
        if order in (1, length):  # a Cholesky factor is a proof, but for texts that tie
            np.linalg.cholesky(kernel + 1e-10 * np.eye(len(texts)))
        else:
            assert kernel_criterion(kernel).all_dominated


@pytest.mark.claim("N25.23")
@pytest.mark.parametrize(("order", "length"), [(2, 3), (2, 7), (3, 4), (4, 9), (6, 8)])
def test_four_texts_beat_some_p_whatever_the_order(order, length):
    period = length - order + 1
    start = period - order + 1 if period >= order else period // 2
    starts = (0, start, period, period + start)
    sequence = ("0" * period + "1" * period) * length  # periodic
    texts = [sequence[s : s + length] for s in starts]
    kernel = counted_kernel(texts, order)
    found = kernel_criterion(kernel)
    assert (found.num_negative, found.compatible) == (1, False)
    p, q = (np.asarray(x) for x in (found.witness.p, found.witness.q))
    assert min((q - p) @ kernel @ p, (p - q) @ kernel @ (p + q)) > 1e-6


# --- Vendi ----------------------------------------------------------------------------
KERNEL = metrics.lcs_kernel(qd.TextSpace(2, 3))  # positive semidefinite
VENDI = qd.VendiPair(KERNEL)


@pytest.mark.claim("N25.10")
def test_vendi_loses_the_quantum_relative_entropy_to_the_quality_of_its_slope():
    p, *models = np.random.default_rng(1).dirichlet(np.ones(8), 300)
    apart = np.asarray(VENDI.text_quality(p) + jax.grad(VENDI.diversity)(p))
    np.testing.assert_allclose(apart, apart.mean(), atol=1e-10)
    verdict = qd.check_compatibility(VENDI)
    assert (verdict.compatible, verdict.w0, verdict.alpha) == (True, -1, 0.5)
    both = jax.jit(lambda q: VENDI.quality(q, p) + VENDI.diversity(q))
    gaps = [float(both(p) - both(q)) for q in models]
    assert min(gaps) > 0
    for q, gap in zip(models[:5], gaps, strict=False):
        expected = metrics.quantum_relative_entropy(q, p, KERNEL)
        assert gap == pytest.approx(float(expected), abs=1e-10)

    assert {VENDI: 1}[qd.VendiPair(KERNEL)] == 1
    found = qd.quality_discrepancy(VENDI, p)
    assert 0 <= found.qdisc <= found.upper_bound < 1e-9


def test_vendi_gains_where_the_best_texts_are_alike():
    """The density matrix of the modes is singular, and so is its slope's formula."""
    kernel = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    scores, p = np.array([1.0, 1.0, 0.0]), np.array([0.2, 0.1, 0.7])
    pair = qd.ConcavePair(lambda p: scores, qd.VendiPair(kernel).diversity)
    found = qd.quality_discrepancy(pair, p)
    # Vendi depends on the mass of the third text alone, and is even around 1/2.
    np.testing.assert_allclose([found.qdisc, found.upper_bound], 0.4, atol=1e-9)


@pytest.mark.parametrize("rho", [np.eye(3) / 3, np.diag([0.5, 0.3, 0.2])])
def test_slopes_of_von_neumanns_entropy_even_at_repeated_eigenvalues(rho):
    step = np.array([[1.0, 0.5, 0], [0.5, -0.7, 0.2], [0, 0.2, -0.3]])

    def along(t):
        return von_neumann_entropy(jnp.asarray(rho) + t * step)

    t = 1e-4
    slope = (along(t) - along(-t)) / (2 * t)
    bend = (along(t) - 2 * along(0.0) + along(-t)) / t**2
    assert jax.grad(along)(0.0) == pytest.approx(float(slope), abs=1e-6)
    assert jax.grad(jax.grad(along))(0.0) == pytest.approx(float(bend), rel=1e-5)
    np.testing.assert_allclose(matrix_log(jnp.asarray(rho)), logm(rho), atol=1e-12)
