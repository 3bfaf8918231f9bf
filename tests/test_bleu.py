"""Expected BLEU against sums over all tuples of texts, with NLTK inside.

Its tables against joins as random walks; the models that win.
"""

import itertools
from collections import Counter, defaultdict
from functools import reduce
from math import exp, fsum, log1p, prod

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from lab.metrics import expected_corpus_bleu
from models import oracle, sentence_bleu, sentences
from nltk.translate import bleu_score as nltk
from referees.enumerated_batches import batches

import qdtheory as qd
from qdtheory.bleu import _by_closeness, bleu_table, text_bleu
from qdtheory.bleu_formula import bleu_of_matches, matches

pytestmark = pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")
SLOW = pytest.mark.slow
DIGITS = st.integers(1, 9)


# --- The formula ----------------------------------------------------------------------
def test_no_text_scores_nothing():
    nothing = matches(np.zeros((2, 1)), np.array([0]), np.array([3]))
    for smoothing in (None, "epsilon"):
        assert bleu_of_matches(nothing, smoothing).tolist() == [[0], [0]]


@given(st.sets(DIGITS, min_size=1), DIGITS, st.randoms(use_true_random=False))
def test_closest_length_is_the_first_by_closeness(lengths, size, random):
    order = _by_closeness(tuple(sorted(lengths)), size)
    chosen = random.choices(order, k=5)
    closest = nltk.closest_ref_length([" " * m for m in chosen], size)
    assert order[min(map(order.index, chosen))] == closest


# --- Sums over all tuples -------------------------------------------------------------
def nltk_tensor(space, max_order, num_references, smoothing=None):
    """NLTK's BLEU of every (candidate, reference, ...)."""
    values = [
        sentence_bleu(candidate, references, max_order, smoothing)
        for candidate, *references in itertools.product(
            sentences(space), repeat=num_references + 1
        )
    ]
    return np.reshape(values, (space.num_texts,) * (num_references + 1))


def mean(tensor, q, p):
    while tensor.ndim > 1:
        tensor = tensor @ p
    return tensor @ q


FEW = [(3, 2, 2), (2, (1, 2), 3), (1, (1, 2, 3, 5), 2)]
MANY = [*((2, 3, n) for n in (1, 2, 3)), *((2, (1, 2, 3), n) for n in (1, 2))]
MANY += [(3, 3, 1), (2, (2, 4), 2), (3, (1, 2), 2)]


@pytest.mark.claim("N7.9", "N7.20")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references"),
    [*FEW, *(pytest.param(*sizes, marks=SLOW) for sizes in MANY)],
)
def test_equals_the_sum_over_all_tuples(vocab_size, lengths, num_references, smoothing):
    space = qd.TextSpace(vocab_size, lengths)
    rng = np.random.default_rng(0)
    tensors = [nltk_tensor(space, n, num_references, smoothing) for n in (1, 2, 3)]
    for q, p in rng.dirichlet(np.ones(space.num_texts), (9, 2)):
        found = qd.expected_bleu(space, q, p, 3, num_references, smoothing)
        sums = [mean(tensor, q, p) for tensor in tensors]
        np.testing.assert_allclose(found, sums, rtol=0, atol=1e-12)
        found = qd.expected_self_bleu(space, q, 3, num_references, smoothing)
        sums = [mean(tensor, q, q) for tensor in tensors]
        np.testing.assert_allclose(found, sums, rtol=0, atol=1e-12)


@pytest.mark.parametrize("number", [1, 2])
def test_derivatives_equal_those_of_the_sum_over_all_tuples(number):
    space, rng = qd.TextSpace(2, (1, 3)), np.random.default_rng(1)
    tensor = jnp.asarray(nltk_tensor(space, 2, number))
    q, p = (jnp.asarray(x) for x in rng.dirichlet(np.ones(space.num_texts), 2))
    # At zeros of p too, where powers have finite derivatives.
    for real in (p, p.at[:3].set(0.0), jnp.eye(q.size)[1]):
        for order in (jax.jacobian, jax.hessian):
            ours, theirs = (
                np.concatenate(jax.tree.leaves(order(value, (0, 1))(q, real)))
                for value in (
                    lambda q, p: q @ text_bleu(bleu_table(space, 2), p, number),
                    lambda q, p: mean(tensor, q, p),
                )
            )
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)


@pytest.mark.claim("N7.14")
@pytest.mark.parametrize(("lengths", "size"), [(2, 2), ((1, 2), 3), (2, 4)])
def test_self_bleu_averages_over_the_candidates_of_a_set(lengths, size):
    space, total = qd.TextSpace(2, lengths), 0.0
    q = np.random.default_rng(6).dirichlet(np.ones(space.num_texts))
    for chosen, chance in zip(*batches(q, size), strict=True):
        words = [sentences(space)[i] for i in chosen]
        scores = [
            sentence_bleu(words[i], words[:i] + words[i + 1 :], 2) for i in range(size)
        ]
        total += chance * np.mean(scores)
    exact = float(qd.expected_self_bleu(space, q, 2, size - 1)[1])
    assert exact == pytest.approx(total, abs=1e-13)


@pytest.mark.parametrize(("vocab_size", "length"), [(2, 5), (3, 4), (6, 2)])
def test_unigrams_with_one_reference_measure_total_variation(vocab_size, length):
    space = qd.TextSpace(vocab_size, length)
    shares = (space.tokens[:, :, None] == np.arange(vocab_size)).mean(1)
    apart = np.abs(shares[:, None] - shares).sum(-1) / 2
    p = np.random.default_rng(5).dirichlet(np.ones(space.num_texts))
    values = text_bleu(bleu_table(space, 1), p, 1)
    np.testing.assert_allclose(values, 1 - apart @ p, rtol=0, atol=1e-13)


@pytest.mark.claim("N7.13")
def test_order_of_the_whole_text_is_membership():
    # BLEU-3 of texts of 3 tokens is 1 if the candidate is a reference, else 0.
    p = np.random.default_rng(2).dirichlet(np.ones(27))
    for n in (1, 2, 50):
        values = text_bleu(bleu_table(qd.TextSpace(3, 3), 3), p, n)
        np.testing.assert_allclose(values, 1 - (1 - p) ** n, rtol=0, atol=1e-13)


@pytest.mark.claim("N7.16", "N7.23")
def test_a_reference_harms_only_by_its_length_and_all_texts_are_enough():
    rng, harmed = np.random.default_rng(7), 0
    for c, r, s in itertools.product(sentences(qd.TextSpace(2, (1, 3, 4))), repeat=3):
        change = sentence_bleu(c, [r, s], 1) - sentence_bleu(c, [r], 1)
        closest = [nltk.closest_ref_length(refs, len(c)) for refs in ([r], [r, s])]
        assert change >= -1e-12 or closest[1] > max(closest[0], len(c))
        assert change >= 0 or len(r) != len(s)
        harmed += change < -1e-12
    assert harmed > 0
    for lengths, order in (((3,), 2), ((1, 2, 4), 2), ((4,), 4)):
        space = qd.TextSpace(2, lengths)
        p = rng.dirichlet(np.full(space.num_texts, 5.0))
        values = text_bleu(bleu_table(space, order), p, 5000)
        # A power of 5000 of a sum that is 1 up to rounding.
        limit = space.text_lengths >= order
        np.testing.assert_allclose(values, limit, rtol=0, atol=1e-11)


@pytest.mark.claim("N7.21")
def test_pooled_bleu_is_a_polynomial_of_the_number_of_candidates():
    # Three candidates, two references, texts of two tokens; from the clipped counts.
    space = qd.TextSpace(2, 2)
    pooled, means = np.zeros((2, 4, 4, 4, 4, 4))
    for index in itertools.product(range(4), repeat=5):
        *candidates, r, s = index
        rows = (clipped(space, 2, c)[[r, s]].max(0) for c in candidates)
        counts = np.array([found(space, 2, c, x) for c, x in zip(candidates, rows)])
        pooled[index] = np.sqrt(prod(counts.sum(0) / [6, 3]))
        means[index] = np.sqrt((counts / [2, 1]).prod(1)).mean()
    a, b, p = np.random.default_rng(9).dirichlet(np.ones(4), 3)

    def along(tensor):
        """At five points of the line through a and b."""
        models = [a + t * (b - a) for t in np.linspace(0, 1, 5)]
        return [np.einsum("ijkrs,i,j,k,r,s", tensor, q, q, q, p, p) for q in models]

    assert np.abs(np.diff(along(pooled), 3)).max() > 1e-5
    assert np.abs(np.diff(along(pooled), 4)).max() <= 1e-14
    assert np.abs(np.diff(along(means), 2)).max() <= 1e-14
    exact = float(qd.expected_bleu(space, a, p, 2, 2)[1])
    assert exact == pytest.approx(along(means)[0], abs=1e-14)
    corpus = float(expected_corpus_bleu(space, a, p, 2, 2, num_candidates=3)[1])
    assert corpus == pytest.approx(along(pooled)[0], abs=1e-14)


# --- The table ------------------------------------------------------------------------
def sets_of(table):
    rows = np.asarray(table.sets)
    return rows.reshape(-1, rows.shape[-1])[: table.num_sets].astype(bool)


def sum_by_text(table, set_values):
    """For each candidate the sum of weights times values of its sets."""
    index, text = np.asarray(table.set_index), np.asarray(table.text)
    terms = np.asarray(table.weight) * np.asarray(set_values)[index]
    return np.bincount(text, terms, table.sets.shape[-1])


def kinds(space, max_order, candidate):
    """The candidate's n-grams as (order, number), with their counts."""
    grams = ((n, space.ngrams(n)[candidate]) for n in range(1, max_order + 1))
    return Counter((n, int(g)) for n, row in grams for g in row if g >= 0)


def clipped(space, max_order, candidate):
    """One row a reference, one column an n-gram of the candidate."""
    columns = [
        np.minimum(count, (space.ngrams(n) == g).sum(1))
        for (n, g), count in kinds(space, max_order, candidate).items()
    ]
    return np.stack(columns, axis=1)


def found(space, max_order, candidate, joined):
    """The matches of each order, from a vector of clipped counts."""
    totals = [0] * max_order
    for (n, _), count in zip(kinds(space, max_order, candidate), joined, strict=True):
        totals[n - 1] += int(count)
    return totals


def joined(first, second):
    """The distribution of the join of two independent vectors."""
    joins = defaultdict(float)
    for (s, a), (t, b) in itertools.product(first.items(), second.items()):
        joins[tuple(map(max, s, t))] += a * b
    return joins


def by_random_walk(space, max_order, candidate, p, num_references):
    """Expected BLEU from the distribution of the join, one reference a step."""
    first = defaultdict(float)
    for row, chance in zip(clipped(space, max_order, candidate), p, strict=True):
        first[tuple(row.tolist())] += float(chance)
    steps = [first]
    # Two independent walks of one length are one of twice the length.
    while 2 ** len(steps) <= num_references:
        steps.append(joined(steps[-1], steps[-1]))
    joins = reduce(joined, (s for i, s in enumerate(steps) if num_references >> i & 1))
    places = prod(space.max_length - n for n in range(max_order))
    return sum(
        chance
        * (prod(found(space, max_order, candidate, s)) / places) ** (1 / max_order)
        for s, chance in joins.items()
    )


@pytest.mark.claim("N7.2", "N7.3")
def test_counts_of_references_are_joined_and_their_chances_are_powers():
    # Exact: with P in thirty-sixths, all chances are integers over 36^n.
    space, parts = qd.TextSpace(2, 3), np.arange(1, 9)
    texts = sentences(space)
    for candidate, n in itertools.product(range(8), (1, 2, 3)):
        rows = clipped(space, 2, candidate)
        tuples = np.array([*itertools.product(range(8), repeat=n)])
        joins, chances = rows[tuples].max(axis=1), parts[tuples].prod(axis=1)
        for chosen, join in zip(tuples, joins, strict=True):
            given = [texts[r] for r in chosen], texts[candidate]
            theirs = [nltk.modified_precision(*given, m).numerator for m in (1, 2)]
            assert found(space, 2, candidate, join) == theirs
        for s in np.unique(joins, axis=0):
            inside = parts[(rows <= s).all(axis=1)].sum()
            assert chances[(joins <= s).all(axis=1)].sum() == inside**n


@pytest.mark.claim("N7.4", "N7.10", "N7.11")
@pytest.mark.parametrize(
    ("sizes", "orders", "references", "candidates"),
    [
        ((2, 3), (1, 2, 3), (1, 2, 3), range(8)),
        ((3, 4), (2, 4), (1, 2, 3), range(0, 81, 7)),
        ((4, 3), (2,), (1, 2, 3), range(64)),
        pytest.param((8, 4), (2,), (10,), [0, 9, 100, 585, 1000, 4095], marks=SLOW),
    ],
)
def test_join_as_a_random_walk(sizes, orders, references, candidates):
    space = qd.TextSpace(*sizes)
    p = np.random.default_rng(2).dirichlet(np.full(space.num_texts, 0.5))
    for order, n in itertools.product(orders, references):
        exact = np.asarray(text_bleu(bleu_table(space, order), p, n))
        walks = [by_random_walk(space, order, c, p, n) for c in candidates]
        np.testing.assert_allclose(exact[list(candidates)], walks, rtol=0, atol=1e-13)


@pytest.mark.claim("N7.1")
@pytest.mark.parametrize(
    ("space", "order"),
    [
        *((qd.TextSpace(3, 3), 2), (qd.TextSpace(2, 5), 4)),
        *((qd.TextSpace(3, (1, 2, 4)), 3), (qd.TextSpace(2, (2, 3, 5)), 2)),
    ],
)
def test_weights_of_the_sets_around_some_references_add_up_to_bleu(space, order):
    # What Moebius inversion inverts, for any set of references.
    texts, table = sentences(space), bleu_table(space, order)
    rng = np.random.default_rng(3)
    for number in (1, 3):
        for chosen in rng.integers(space.num_texts, size=(10, number)):
            sums = sum_by_text(table, sets_of(table)[:, chosen].all(axis=1))
            given = [texts[r] for r in chosen]
            theirs = [sentence_bleu(c, given, order) for c in texts]
            np.testing.assert_allclose(sums, theirs, rtol=0, atol=1e-13)
    own = [sum_by_text(table, row)[c] for c, row in enumerate(sets_of(table).T)]
    np.testing.assert_allclose(own, space.text_lengths >= order, atol=1e-14)


SETS = [(4, 3, 1, 13), (4, 3, 2, 155), (4, 3, 3, 65)]
MANY_SETS = [(4, 4, 3, 1255), (5, 4, 2, 2301), (4, 5, 2, 5427), (2, 6, 4, 1781)]


@pytest.mark.claim("N7.6", "N7.24")
@pytest.mark.parametrize(
    ("vocab_size", "length", "order", "num_sets"),
    [*SETS, *(pytest.param(*row, marks=SLOW) for row in MANY_SETS)],
)
def test_sets_of_nonzero_weight(vocab_size, length, order, num_sets):
    # That a reference is in one set and in another is independent, so that a sum which
    # is BLEU has these sets and no others.
    table = bleu_table(qd.TextSpace(vocab_size, length), order)
    rows = np.packbits(sets_of(table), axis=1)
    assert np.sum(table.sets) == np.sum(sets_of(table))  # the rest of a block is empty
    assert len({row.tobytes() for row in rows}) == len(rows) == num_sets
    terms = np.stack([table.text, table.set_index])
    assert np.unique(terms, axis=1).shape == terms.shape
    assert np.abs(table.weight).min() > 1e-6


@pytest.mark.claim("N7.17")
@pytest.mark.parametrize("seed", range(3))
def test_self_bleu_prefers_a_peaked_distribution_in_the_end(seed):
    uniform, peaked = np.full(64, 1 / 64), np.asarray(qd.oracle(SPACE, seed))

    def lacking(q, n):
        return 1 - sum(q[c] * by_random_walk(SPACE, 2, c, q, n) for c in range(64))

    assert lacking(peaked, 1) < lacking(uniform, 1) - 0.1
    assert lacking(peaked, 200) > lacking(uniform, 200) + 1e-4
    assert qd.entropy(peaked) < qd.entropy(uniform) - 1


# --- Models that win, and the most diverse ones ---------------------------------------
SPACE = qd.TextSpace(4, 3)
CUBE = qd.TextSpace(3, 3)
SPACES = [qd.TextSpace(2, 4), CUBE, qd.TextSpace(4, 2), SPACE]


@SLOW
@pytest.mark.claim("N8.1")
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_model_beats_the_real_distribution_by_nltk(order):
    scores, pair = nltk_tensor(CUBE, order, 2), qd.BleuPair(CUBE, order, 2, 2)
    for seed in (0, 1):
        p = oracle(CUBE, seed, 1.0)
        best = qd.quality_discrepancy(pair, p)
        q = np.asarray(best.q)
        rise = mean(scores, q - p, p)
        assert rise == pytest.approx(best.qdisc, abs=1e-13)
        assert rise > 1e-6
        assert mean(scores, q, q) <= mean(scores, p, p) + 1e-13


def repeated_words(space):
    """The indices of the texts that repeat one word."""
    return np.flatnonzero((space.tokens == space.tokens[:, :1]).all(axis=1))


@pytest.mark.claim("N8.13")
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_repeated_words_are_most_diverse_up_to_as_many_references(space):
    rng, repeats = np.random.default_rng(13), repeated_words(space)
    for k in range(1, space.vocab_size + 1):
        pair, q = qd.BleuPair(space, 1, 2, k), np.zeros(space.num_texts)
        q[repeats] = 1 / space.vocab_size
        greatest = (1 - 1 / space.vocab_size) ** k
        assert 1 + pair.diversity(q) == pytest.approx(greatest, abs=1e-14)
        # It satisfies the first-order conditions of a maximum over all models.
        slope = np.asarray(jax.grad(pair.diversity)(q))
        assert (slope <= slope[repeats].min() + 1e-13).all()
        for concentration in (0.02, 0.3, 3):
            for other in rng.dirichlet(np.full(q.size, concentration), 10):
                assert 1 + float(pair.diversity(other)) < greatest


@pytest.mark.claim("N8.15")
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_beyond_that_one_word_stands_out(space):
    rng = np.random.default_rng(14)
    words, repeats = space.vocab_size, repeated_words(space)
    for k in (words + 1, 3 * words, 100):
        pair = qd.BleuPair(space, 1, 2, k)
        most = (words - 1) / k * (1 - 1 / k) ** (k - 1)
        built = np.zeros(space.num_texts)
        built[repeats] = 1 / k
        built[repeats[0]] = 1 - (words - 1) / k
        assert (1 - 1 / k) * most <= 1 + pair.diversity(built) + 1e-14 <= most
        # One word's texts beside a little of everything: other ways to collapse.
        for other in rng.dirichlet(np.full(built.size, 0.3), 20):
            for q in (other, 0.9 * np.eye(built.size)[0] + 0.1 * other):
                assert 1 + float(pair.diversity(q)) <= most


@pytest.mark.claim("N8.15")
def test_one_word_of_ten_thousands_by_logarithms():
    words, k = 5473, 49_999
    flat = exp(k * log1p(-1 / words))
    top = 1 - (words - 1) / k
    rest = [exp(k * log1p(-1 / k)) / k] * (words - 1)
    collapsed = fsum([*rest, top * exp(k * log1p(-top))])
    most = (words - 1) / k * exp((k - 1) * log1p(-1 / k))
    assert top == pytest.approx(0.8906, abs=1e-4)
    assert 300 * flat < collapsed < most < (1 + 1e-4) * collapsed


@pytest.mark.claim("N8.19")
def test_bleu_1_and_3_are_squares_and_bleu_2_is_not():
    first, kernel, third = (nltk_tensor(SPACE, n, 1) for n in (1, 2, 3))
    assert min(np.linalg.eigvalsh(x)[0] for x in (first, third)) > -1e-12
    zero_sum = np.linalg.svd(np.ones((1, 64)))[2][1:]
    values, vectors = np.linalg.eigh(zero_sum @ kernel @ zero_sum.T)
    assert values[0] < -0.4
    # Two such directions leave one in which quality stays: diversity rises.
    a, b = (vectors[:, i] @ zero_sum for i in (0, 1))
    for seed in range(3):
        p = oracle(SPACE, seed, 0.5)
        d = (b @ kernel @ p) * a - (a @ kernel @ p) * b
        q = p + d * (p[d < 0] / -d[d < 0]).min()
        assert (q - p) @ kernel @ p == pytest.approx(0, abs=1e-12)
        assert q @ kernel @ q < p @ kernel @ p - 1e-12
