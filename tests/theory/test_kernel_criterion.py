"""Kernel pairs, and the criterion for them against searches of P and Q."""

from collections import Counter
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.metrics.divergence_frontiers import frontier_integral
from qdtheory.metrics.similarity import bleu_kernel
from qdtheory.theory.kernel_criterion import dominating_model, kernel_criterion

ISOSCELES = np.array([[1, 0.95, 0.95], [0.95, 1, 0.5], [0.95, 0.5, 1]])
RING = np.stack([np.roll([1, 0.9, 0.1, 0.9], k) for k in range(4)])


def assert_beaten(kernel, witness):
    """P is interior, and Q gains in both metrics, by the differences themselves."""
    p, q = np.asarray(witness.p), np.asarray(witness.q)
    assert p.min() > 0
    assert q.min() >= 0
    assert abs(p.sum() - 1) + abs(q.sum() - 1) <= 1e-12
    assert (q - p) @ kernel @ p > 0
    assert (p - q) @ kernel @ (p + q) > 0


@pytest.mark.parametrize("max_order", [1, 2, 3])
def test_equals_bleu_with_one_reference_on_both_sides(max_order):
    space = qd.TextSpace(3, 3)
    bleu = qd.BleuPair(space, max_order, 1, 1)
    pair = qd.KernelPair(bleu_kernel(space, max_order))
    rng = np.random.default_rng(max_order)
    for q, p in rng.dirichlet(np.ones(space.num_texts), (5, 2)):
        # Sums of 27 terms in [0, 1] by two routes.
        np.testing.assert_allclose(pair.quality(q, p), bleu.quality(q, p), atol=1e-14)
        np.testing.assert_allclose(pair.diversity(q), bleu.diversity(q), atol=1e-14)
        scores = bleu.text_quality(p)
        np.testing.assert_allclose(pair.text_quality(p), scores, atol=1e-14)


def test_bleu_of_several_lengths_is_no_kernel(as_a_user):
    # The brevity penalty sees who is the candidate.
    space = qd.TextSpace(2, (1, 2))
    with pytest.raises(ValueError, match="texts of one length only"):
        bleu_kernel(space, 1)
    pair = qd.BleuPair(space, 1, 1, 1)
    kernel = np.stack([pair.text_quality(e) for e in np.eye(6)], axis=1)
    with pytest.raises(ValueError, match="must be symmetric"):
        qd.KernelPair(kernel)
    with pytest.raises(ValueError, match="texts of one length"):
        qd.ngram_kernel(space, 1)


@pytest.mark.claim("N16.13")
def test_gap_is_half_the_squared_mean_discrepancy():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(6, 4))
    pair = qd.KernelPair(features @ features.T)
    q, p = rng.dirichlet(np.ones(6), 2)

    def psi(model):
        return float(pair.quality(model, p) + pair.diversity(model) / 2)

    discrepancy = np.linalg.norm((q - p) @ features)
    assert psi(p) - psi(q) == pytest.approx(discrepancy**2 / 2, rel=1e-12)
    squared = qd.squared_mmd(pair.kernel, q, p)
    assert float(squared) == pytest.approx(discrepancy**2, rel=1e-12)


@pytest.mark.claim("N16.26")
@pytest.mark.parametrize("size", [1, 3, 30])
def test_cosines_of_embeddings_are_safe_and_blind(size):
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(12, size))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[11] = vectors[10]  # two texts with one embedding
    kernel = vectors @ vectors.T
    assert kernel_criterion(kernel).compatible
    pair, p = qd.KernelPair(kernel), rng.dirichlet(np.ones(12))
    for q in rng.dirichlet(np.full(12, 0.3), 300):
        gains = pair.quality(q, p) - pair.quality(p, p), (p - q) @ kernel @ (p + q)
        assert min(gains) <= 1e-14
    q = p.copy()
    q[10:] = p[10] + p[11], 0
    assert pair.quality(q, p) == pytest.approx(float(pair.quality(p, p)), abs=1e-14)
    assert pair.diversity(q) == pytest.approx(float(pair.diversity(p)), abs=1e-14)


def test_equals_coverage_and_repetition_of_ngrams():
    space = qd.TextSpace(2, 3)
    kernel = qd.KernelPair(qd.ngram_kernel(space, 2))
    ngrams = qd.NgramPair(space, 2)
    for q, p in np.random.default_rng(1).dirichlet(np.ones(8), (3, 2)):
        np.testing.assert_allclose(kernel.quality(q, p), ngrams.quality(q, p))
        np.testing.assert_allclose(kernel.diversity(q), ngrams.diversity(q))


def test_is_an_argument_of_compiled_code():
    pair = qd.KernelPair(np.eye(3))
    q = np.array([0.5, 0.5, 0.0])
    slope = jax.jit(lambda pair, q: jax.grad(pair.diversity)(q))
    np.testing.assert_allclose(slope(pair, q), -2 * q)
    by_kernel = jax.jit(jax.grad(lambda pair, q: pair.diversity(q)))(pair, q)
    np.testing.assert_allclose(by_kernel.kernel, -np.outer(q, q))
    many = jax.vmap(lambda k: qd.KernelPair(k).diversity(q))(
        jnp.stack([jnp.eye(3), jnp.ones((3, 3))])
    )
    np.testing.assert_allclose(many, [-0.5, -1])


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        ([[1.0]], TypeError, "float64, got a list"),
        (np.eye(2, dtype=int), TypeError, "float64, got dtype int64"),
        (np.ones((2, 3)), ValueError, r"square matrix .* got shape \(2, 3\)"),
        (np.ones(4), ValueError, r"got shape \(4,\)"),
        (np.ones((0, 0)), ValueError, r"got shape \(0, 0\)"),
        (np.diag([1.0, np.nan]), ValueError, r"finite, got nan at \[1, 1\]"),
        (np.array([[1, 0.5], [0.4, 1]]), ValueError, r"symmetric, got 0.5 at \[0, 1\]"),
    ],
)
def test_bad_kernels(kernel, error, message):
    with pytest.raises(error, match=message):
        qd.KernelPair(kernel)


def test_bad_distributions(as_a_user):
    pair, p = qd.KernelPair(np.eye(2)), np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="q must have 2 entries, got 3"):
        pair.quality(np.full(3, 1 / 3), p)
    with pytest.raises(ValueError, match="p must sum to 1"):
        pair.text_quality(p / 2)
    with pytest.raises(ValueError, match="q must be nonnegative"):
        pair.diversity(np.array([1.5, -0.5]))


# --- The criterion -------------------------------------------------------------------


@pytest.mark.claim("N16.14")
@pytest.mark.parametrize(
    ("vocab_size", "length", "order", "negative", "least"),
    [
        (4, 3, 1, 0, 0.0),
        (4, 3, 2, 34, -0.4595),
        (2, 3, 2, 2, -0.2845),
        (3, 4, 2, 26, -1.7699),
        (3, 4, 3, 48, -0.4520),
        (3, 4, 4, 0, 1.0),
    ],
)
def test_negative_eigenvalues_of_bleu(vocab_size, length, order, negative, least):
    kernel = bleu_kernel(qd.TextSpace(vocab_size, length), order)
    found = kernel_criterion(kernel)
    assert found.num_negative == negative
    assert found.least_eigenvalue == pytest.approx(least, abs=5e-5)
    assert found.compatible == (negative == 0)
    # Bordered by ones, a matrix has one more negative eigenvalue than on zero-sum
    # vectors, whatever the border's size.
    n = len(kernel)
    bordered = np.block(
        [[kernel, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]
    )
    assert (np.linalg.eigvalsh(bordered) < -1e-9).sum() == negative + 1
    if negative:
        assert_beaten(kernel, found.witness)


def counted_kernel(texts, order):
    """BLEU of each text against each, texts of one length, by counting."""
    product_of = np.ones((len(texts), len(texts)))
    for n in range(1, order + 1):
        bags = [Counter(t[i : i + n] for i in range(len(t) - n + 1)) for t in texts]
        shared = [[(a & b).total() for b in bags] for a in bags]
        product_of *= np.array(shared) / (len(texts[0]) - n + 1)
    return product_of ** (1 / order)


@pytest.mark.claim("N16.28")
@pytest.mark.parametrize("length", range(2, 6))
def test_bleu_is_an_inner_product_at_the_lowest_and_the_highest_order_only(length):
    texts = ["".join(t) for t in product("ab", repeat=length)]
    rng = np.random.default_rng(length)
    d = rng.normal(size=(2000, len(texts)))
    d -= d.mean(axis=1, keepdims=True)
    for order in range(1, length + 1):
        kernel = counted_kernel(texts, order)
        np.testing.assert_allclose(
            kernel, bleu_kernel(qd.TextSpace(2, length), order), atol=1e-14
        )
        if order in (1, length):
            # A Cholesky factor is the proof; the jitter is for the texts that tie.
            np.linalg.cholesky(kernel + 1e-10 * np.eye(len(texts)))
            assert (np.einsum("ix,xy,iy->i", d, kernel, d) >= -1e-10).all()
            continue
        found = kernel_criterion(kernel)
        assert found.all_dominated
        # Over three words the directions are still there: the old texts are a part.
        wider = bleu_kernel(qd.TextSpace(3, length), order) if length < 4 else None
        if wider is not None:
            assert kernel_criterion(wider).num_negative >= found.num_negative
    if length > 1:
        assert np.array_equal(counted_kernel(texts, length), np.eye(len(texts)))


def test_over_one_word_there_is_nothing_to_beat():
    for order in (1, 2, 3):
        assert bleu_kernel(qd.TextSpace(1, 3), order).tolist() == [[1.0]]


@pytest.mark.claim("N16.15")
def test_two_negative_eigenvalues_beat_every_interior_p():
    rng = np.random.default_rng(0)
    kernel = bleu_kernel(qd.TextSpace(3, 3), 2)
    assert kernel_criterion(kernel).all_dominated
    pair = qd.KernelPair(kernel)
    for concentration in (0.3, 1.0, 10.0):
        for p in rng.dirichlet(np.full(27, concentration), 10):
            if p.min() > 0:
                witness = dominating_model(kernel, p)
                assert_beaten(kernel, witness)
                gain = pair.quality(witness.q, p) - pair.quality(p, p)
                assert float(gain) == pytest.approx(witness.quality_gain, abs=1e-14)
    verdict = qd.check_compatibility(pair, rng.dirichlet(np.ones(27)))
    assert verdict.compatible is False


@pytest.mark.claim("N16.16")
@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_criterion_agrees_with_attacks(size):
    """A found witness is checked, and compatible kernels are attacked."""
    rng = np.random.default_rng(size)
    kinds = Counter()
    for k in range(120):
        a, v = rng.normal(size=(size, size)), 1.5 + rng.random(size)
        kernel = [
            a + a.T,
            0.1 * a @ a.T - np.outer(v, v),  # one negative eigenvalue, mostly
            np.round(a + a.T),  # ties and singular kernels
        ][k % 3]
        found = kernel_criterion(kernel)
        kinds[found.compatible, min(found.num_negative, 2)] += 1
        if not found.compatible:
            d = np.asarray(found.direction)
            assert abs(d.sum()) <= 1e-12
            assert d @ kernel @ d < 0
            assert (kernel @ d).min() < 0 < (kernel @ d).max()
            assert_beaten(kernel, found.witness)
            continue
        p = rng.dirichlet(np.full(size, 0.7), 200)
        q = np.vstack([rng.dirichlet(np.full(size, 0.4), 200), np.eye(size)])
        own, other = ((x @ kernel * x).sum(axis=1) for x in (p, q))
        u, fall = p @ kernel @ q.T - own[:, None], other - own[:, None]
        assert not ((u > 1e-9) & (fall < -1e-9)).any()
    assert kinds[True, 1] >= 5
    assert kinds[False, 1] >= 2


@pytest.mark.claim("N16.17")
def test_one_negative_eigenvalue_is_decided_by_the_level():
    found = kernel_criterion(ISOSCELES)
    assert (found.compatible, found.num_negative) == (True, 1)
    assert found.level == pytest.approx(61 / 60)  # by hand: z = (8, -1, -1) / 6
    verdict = qd.check_compatibility(qd.KernelPair(ISOSCELES))
    assert verdict.compatible
    assert verdict.psi is None
    # Where P'KP exceeds the level, and only there, a d at right angles to KP bends up.
    kernel = np.array([[0.3, 0.9, 0.5], [0.9, 0.4, 0.5], [0.5, 0.5, 0.9]])
    level = kernel_criterion(kernel).level
    sides = Counter()
    for p in np.random.default_rng(1).dirichlet(np.ones(3), 200):
        d = np.cross(np.ones(3), kernel @ p)
        sides[bool(d @ kernel @ d < 0), bool(p @ kernel @ p > level)] += 1
    assert set(sides) == {(True, True), (False, False)}


def test_without_a_level_every_p_is_beaten():
    # n = (1, -2, 1) has Kn = 1, so that no z has Kz constant.
    n = np.array([1.0, -2, 1])
    kernel = np.add.outer(n, n) / 6 - np.outer([1.0, 0, -1], [1.0, 0, -1])
    np.testing.assert_allclose(kernel @ n, 1)
    found = kernel_criterion(kernel)
    assert (found.num_negative, found.level, found.all_dominated) == (1, None, True)
    for p in np.random.default_rng(2).dirichlet(np.ones(3), 20):
        assert_beaten(kernel, dominating_model(kernel, p))


@pytest.mark.claim("N16.18")
def test_unit_similarities_of_three_texts_are_safe_and_of_four_not():
    values = np.linspace(-1, 1, 11)
    for a, b, c in product(values, repeat=3):
        kernel = np.array([[1, a, b], [a, 1, c], [b, c, 1]])
        assert kernel_criterion(kernel).compatible
    found = kernel_criterion(RING)
    assert found.level == pytest.approx(0.725)
    assert (found.compatible, found.num_negative) == (False, 1)
    assert_beaten(RING, found.witness)


@pytest.mark.claim("N16.19")
def test_few_texts_and_single_texts_are_safe_under_bleu_2():
    kernel = bleu_kernel(qd.TextSpace(2, 3), 2)
    assert all(
        kernel_criterion(kernel[np.ix_(some, some)]).compatible
        for some in map(list, product(range(8), repeat=3))
        if len(set(some)) == 3
    )
    assert not kernel_criterion(kernel).compatible
    # Quality 1 needs Q on texts that are as P's one text.
    assert (kernel - np.eye(8)).max() < 1


@pytest.mark.claim("N16.20")
def test_bleu_2_of_sentences_is_beaten_and_bleu_1_is_not():
    corpus = [tuple(s) for s in qd.text.imdb(1)[:6000] if len(s) == 5]
    sentences = list(dict.fromkeys(corpus))[:150]
    tables = [qd.text.bleu_scores(sentences, [s], max_order=2) for s in sentences]
    first, second = np.stack(tables, axis=2).transpose(1, 0, 2)
    assert kernel_criterion(first).num_negative == 0
    found = kernel_criterion((second + second.T) / 2)
    assert found.all_dominated
    assert_beaten((second + second.T) / 2, found.witness)


def test_verdicts_of_kernel_pairs(as_a_user):
    verdict = qd.check_compatibility(qd.KernelPair(np.eye(3)))
    assert (verdict.compatible, verdict.alpha) == (True, 2 / 3)
    opposite = qd.KernelPair(np.array([[0.0, 1], [1, 0]]))
    assert qd.check_compatibility(opposite).compatible is False
    # Near a given P there may be nothing better, and afar is not looked at.
    verdict = qd.check_compatibility(opposite, np.array([0.7, 0.3]))
    assert verdict.compatible is None
    with pytest.raises(ValueError, match="the kernel is of 2 texts, got 3"):
        qd.check_compatibility(opposite, num_texts=3)
    with pytest.raises(ValueError, match="p must be positive everywhere"):
        dominating_model(np.eye(2), np.array([1.0, 0.0]))


# --- The map of divergences ----------------------------------------------------------


def interior(rng, size, count):
    return 0.9 * rng.dirichlet(np.ones(size), count) + 0.1 / size


SUMS = qd.kl_divergence, qd.cnd
F_DIVERGENCES = (
    qd.kl_divergence,
    qd.jensen_shannon_divergence,
    qd.total_variation,
    frontier_integral,
)


@pytest.mark.claim("N16.21")
@pytest.mark.parametrize("d", [*SUMS, qd.total_variation, frontier_integral])
def test_three_points_of_a_sum_differ_by_a_linear_term(d):
    """The three-point law D(a; p) + D(p; r) - D(a; r) is linear in a, or is not."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for a, b, p, r in interior(rng, 6, (10, 4)):
        at = [float(d(x, p) - d(x, r)) for x in (a, b, 0.3 * a + 0.7 * b)]
        worst = max(worst, abs(at[2] - 0.3 * at[0] - 0.7 * at[1]))
    assert (worst <= 1e-13) == (d in SUMS)
    assert worst <= 1e-13 or worst >= 1e-3


@pytest.mark.claim("N16.22")
@pytest.mark.parametrize("d", [*F_DIVERGENCES, qd.cnd])
def test_splitting_a_text_changes_no_f_divergence(d):
    rng = np.random.default_rng(4)
    changes = []
    for q, p in interior(rng, 5, (10, 2)):
        split = [np.append(x, 0.3 * x[-1]) - 0.3 * x[-1] * np.eye(6)[4] for x in (q, p)]
        changes.append(abs(float(d(*split) - d(q, p))))
    assert (max(changes) <= 1e-14) == (d in F_DIVERGENCES)


@pytest.mark.claim("N16.23")
@pytest.mark.parametrize("d", F_DIVERGENCES)
def test_of_f_divergences_only_total_variation_is_in_proportion(d):
    rng = np.random.default_rng(5)
    for q, p in interior(rng, 5, (5, 2)):
        half, all_of_it = float(d((q + p) / 2, p)), float(d(q, p))
        proportional = abs(2 * half - all_of_it) <= 1e-14
        assert proportional == (d is qd.total_variation)


@pytest.mark.claim("N16.24")
def test_merging_raises_no_f_divergence_and_the_squared_distance_by_4_thirds():
    rng = np.random.default_rng(6)
    ratios = []
    for q, p in interior(rng, 3, (50, 2)):
        merged = [np.array([x[0] + x[1], x[2]]) for x in (q, p)]
        for d in F_DIVERGENCES:
            assert float(d(*merged)) <= float(d(q, p)) + 1e-15
        ratios.append(float(qd.cnd(*merged) / qd.cnd(q, p)))
    assert 1 < max(ratios) <= 4 / 3 + 1e-12
    a, b = np.array([0.25, 0.25, 0.5]), np.array([0.05, 0.05, 0.9])
    merged = [np.array([x[0] + x[1], x[2]]) for x in (a, b)]
    assert float(qd.cnd(*merged) / qd.cnd(a, b)) == pytest.approx(4 / 3)


@pytest.mark.claim("N16.25")
@pytest.mark.parametrize("length", [3, 5, 7])
def test_alternating_texts_differ_in_unigrams_alone(length):
    texts = np.array([[0, 1] * length, [1, 0] * length])[:, :length].tolist()
    for d in (qd.text.cnd, lambda a, b, n: 1 - qd.text.jaccard_index(a, b, n)):
        assert float(d([texts[0]], [texts[1]], 2)) == pytest.approx(0, abs=1e-15)
        assert float(d([texts[0]], [texts[1]], 1)) > 0
