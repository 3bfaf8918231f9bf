"""Expected BLEU against sums over all tuples of texts, with NLTK inside.

Its tables against joins as random walks and weights in integers.
"""

import itertools
from collections import Counter, defaultdict
from functools import reduce
from math import comb, prod

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from lab import metrics
from models import assert_slope, sentence_bleu, sentences
from nltk.translate import bleu_score as nltk
from referees.enumerated_batches import batches
from refusals import refused

import qdtheory as qd
from qdtheory.bleu import (
    _by_closeness,
    _clipped_counts,
    bleu_table,
    text_bleu,
)

pytestmark = pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")


def nltk_tensor(space, max_order, num_references, smoothing):
    """NLTK's BLEU of every (reference, ..., candidate)."""
    values = [
        sentence_bleu(candidate, references, max_order, smoothing)
        for *references, candidate in itertools.product(
            sentences(space), repeat=num_references + 1
        )
    ]
    return np.reshape(values, (space.num_texts,) * (num_references + 1))


def brute_force(tensor, q, p):
    for _ in range(tensor.ndim - 1):
        tensor = np.tensordot(p, tensor, axes=1)
    return float(tensor @ q)


FEW = [(3, 2, 2), (2, (1, 2), 3)]
MANY = [*((2, 3, n) for n in (1, 2, 3)), *((2, (1, 2, 3), n) for n in (1, 2))]
MANY += [(3, 3, 1), (2, (2, 4), 2), (3, (1, 2), 2), (1, (1, 2, 4, 5), 2)]


@pytest.mark.claim("N7.9", "N7.20")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references"),
    [*FEW, *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in MANY)],
)
def test_equals_the_sum_over_all_tuples(vocab_size, lengths, num_references, smoothing):
    space = qd.TextSpace(vocab_size, lengths)
    rng = np.random.default_rng(0)
    tensors = [nltk_tensor(space, n, num_references, smoothing) for n in (1, 2, 3)]
    for _ in range(9):
        q, p = rng.dirichlet(np.ones(space.num_texts), 2)
        found = qd.expected_bleu(space, q, p, 3, num_references, smoothing)
        sums = [brute_force(tensor, q, p) for tensor in tensors]
        np.testing.assert_allclose(found, sums, rtol=0, atol=1e-12)
        found = qd.expected_self_bleu(space, q, 3, num_references, smoothing)
        sums = [brute_force(tensor, q, q) for tensor in tensors]
        np.testing.assert_allclose(found, sums, rtol=0, atol=1e-12)


@pytest.mark.claim("N7.15")
def test_gradients_equal_those_of_the_sum_over_all_tuples():
    space = qd.TextSpace(2, (1, 3))
    tensor = jnp.asarray(nltk_tensor(space, 2, 2, None))
    rng = np.random.default_rng(1)
    q, p = (jnp.asarray(x) for x in rng.dirichlet(np.ones(space.num_texts), 2))
    # At a zero of p too: powers of 0 have finite derivatives.
    for real in (p, p.at[:3].set(0.0)):
        exact = jax.grad(
            lambda q, p: q @ text_bleu(bleu_table(space, 2), p, 2), argnums=(0, 1)
        )(q, real)
        tuples = jax.grad(
            lambda q, p: jnp.einsum("abc,a,b,c", tensor, p, p, q), argnums=(0, 1)
        )(q, real)
        for ours, theirs in zip(exact, tuples, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
    # Finite differences, along a direction.
    pair = qd.BleuPair(space, 2, 2, 3)
    d = jnp.asarray(rng.normal(size=q.size))
    d -= d.mean()
    assert_slope(pair.diversity, q, d, atol=0)


def test_bad_input_is_refused(as_a_user):
    bleu, pair, space = qd.expected_bleu, qd.BleuPair, qd.TextSpace(2, 2)
    p, eight = np.full(4, 0.25), np.full(8, 1 / 8)
    refused(
        ("num_references must be a whole number", bleu, space, p, p, 2, 0),
        ("number from 1 on, got 1.5", bleu, space, p, p, 2, 1.5),
        ("num_self_references must be a whole number", pair, space, 2, 2, 0),
        ("max_order must be at least 1, got 0", bleu, space, p, p, 0),
        ("expected None or \"epsilon\", got 'add'", bleu, space, p, p, 2, 2, "add"),
        ("q must have 4 entries, got 8", bleu, space, eight, p),
        ("p must have 4 entries, got 8", bleu, space, p, eight),
        ("BLEU table alone would take", pair, qd.TextSpace(5, 8)),
        ("texts of 63 n-grams and lengths", bleu_table, qd.TextSpace(1, 12), 7),
    )


@pytest.mark.claim("N7.14")
@pytest.mark.parametrize(("lengths", "size"), [(2, 2), ((1, 2), 3), (2, 4)])
def test_self_bleu_averages_over_the_candidates_of_a_set(lengths, size):
    space = qd.TextSpace(2, lengths)
    texts = sentences(space)
    q = np.random.default_rng(6).dirichlet(np.ones(space.num_texts))
    total = 0.0
    for chosen, chance in zip(*batches(q, size), strict=True):
        words = [texts[i] for i in chosen]
        scores = [
            sentence_bleu(words[i], words[:i] + words[i + 1 :], 2) for i in range(size)
        ]
        total += chance * np.mean(scores)
    exact = float(qd.expected_self_bleu(space, q, 2, size - 1)[1])
    assert exact == pytest.approx(total, abs=1e-13)


# -- the table


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


@pytest.mark.claim("N7.1")
@pytest.mark.parametrize("lengths", [(2, 3, 5), (1, 4)])
def test_one_candidate_and_one_reference(lengths):
    space = qd.TextSpace(3, lengths)
    texts, values = sentences(space), jax.jit(text_bleu)
    rng = np.random.default_rng(0)
    for order in (1, 2, 3):
        for r in rng.integers(space.num_texts, size=5):
            one = np.zeros(space.num_texts)
            one[r] = 1.0
            exact = np.asarray(values(bleu_table(space, order), one, 1.0))
            for c in rng.integers(space.num_texts, size=60):
                theirs = sentence_bleu(texts[c], [texts[r]], order)
                assert abs(exact[c] - theirs) <= 1e-13


@pytest.mark.claim("N7.2")
def test_bits_of_several_references_are_or_ed():
    space = qd.TextSpace(3, (2, 4, 5))
    texts = sentences(space)
    rng = np.random.default_rng(1)
    for c in rng.integers(space.num_texts, size=20):
        bits, segments = _clipped_counts(space, 3, int(c))
        for chosen in rng.integers(space.num_texts, size=(20, 4)):
            joined = int(reduce(np.bitwise_or, bits[chosen]))
            references = [texts[r] for r in chosen]
            for n, (start, size) in enumerate(segments[:3], start=1):
                matches = (joined >> start & ((1 << size) - 1)).bit_count()
                precision = nltk.modified_precision(references, texts[c], n)
                assert matches == precision.numerator


@pytest.mark.claim("N7.3")
def test_chance_that_all_references_lie_in_a_set():
    # Exact: with P in thirty-sixths, all chances are integers over 36^n.
    space = qd.TextSpace(2, 3)
    parts = np.arange(1, 9)
    for candidate, n in itertools.product(range(8), (1, 2, 4)):
        rows = clipped(space, 2, candidate)
        multisets = list(itertools.combinations_with_replacement(range(8), n))
        for s in {tuple(rows[list(m)].max(axis=0)) for m in multisets}:
            inside = parts[(rows <= s).all(axis=1)].sum()
            total = 0
            for chosen in multisets:
                if (rows[list(chosen)].max(axis=0) <= s).all():
                    orders = prod(range(1, n + 1))
                    for times in Counter(chosen).values():
                        orders //= prod(range(1, times + 1))
                    total += orders * prod(parts[list(chosen)].tolist())
            assert total == int(inside) ** n


@pytest.mark.claim("N7.4", "N7.10")
@pytest.mark.parametrize(
    ("vocab_size", "length", "orders", "candidates"),
    [
        (2, 3, (1, 2, 3), range(8)),
        (3, 4, (2, 4), range(0, 81, 7)),
        (4, 3, (2,), range(64)),
    ],
)
def test_join_as_a_random_walk(vocab_size, length, orders, candidates):
    space = qd.TextSpace(vocab_size, length)
    p = np.random.default_rng(2).dirichlet(np.full(space.num_texts, 0.5))
    for order, n in itertools.product(orders, (1, 2, 3)):
        exact = np.asarray(text_bleu(bleu_table(space, order), p, n))
        walks = [by_random_walk(space, order, c, p, n) for c in candidates]
        np.testing.assert_allclose(exact[list(candidates)], walks, rtol=0, atol=1e-13)


@pytest.mark.claim("N7.5")
@pytest.mark.parametrize(("vocab_size", "length", "order"), [(3, 3, 2), (2, 5, 4)])
def test_weights_of_the_sets_around_some_references_add_up_to_bleu(
    vocab_size, length, order
):
    # What Moebius inversion inverts, for any set of references.
    space = qd.TextSpace(vocab_size, length)
    texts, table = sentences(space), bleu_table(space, order)
    sets = sets_of(table)
    rng = np.random.default_rng(3)
    for chosen in rng.integers(space.num_texts, size=(20, 3)):
        sums = sum_by_text(table, sets[:, chosen].all(axis=1))
        theirs = [sentence_bleu(c, [texts[r] for r in chosen], order) for c in texts]
        np.testing.assert_allclose(sums, theirs, rtol=0, atol=1e-13)


def without_powers(number, order):
    """(s, k) with number = s^order k and k free of order-th powers."""
    s, d = 1, 2
    while d**order <= number:
        while number % d**order == 0:
            number, s = number // d**order, s * d
        d += 1
    return s, number


def exact_sets(space, max_order):
    """The sets of nonzero weight, decided in integers.

    Up to one factor a BLEU value is the root of an integer, s times the root of a k
    free of powers; roots of different such k are independent over the rationals
    (Besicovitch 1940). So a weight is a vector of integers, one entry a k.
    """
    sets, patterns = set(), {}
    for candidate in range(space.num_texts):
        rows = clipped(space, max_order, candidate)
        tokens = space.tokens[candidate].tolist()
        pattern = tuple(map(tokens.index, tokens))
        if pattern not in patterns:
            joins = set()
            for row in map(tuple, np.unique(rows, axis=0).tolist()):
                joins |= {row} | {tuple(map(max, row, s)) for s in joins}
            ordered = np.array(sorted(joins, key=sum))
            parts = [
                without_powers(prod(found(space, max_order, candidate, s)), max_order)
                for s in ordered
            ]
            weights = np.zeros((len(ordered), 1 + max(k for _, k in parts)), int)
            for i in reversed(range(len(ordered))):
                s, k = parts[i]
                above = (ordered[i + 1 :] >= ordered[i]).all(axis=1)
                weights[i] -= weights[i + 1 :][above].sum(axis=0)
                weights[i, k] += s * (k > 0)
            patterns[pattern] = ordered[weights.any(axis=1)]
        below = (rows <= patterns[pattern][:, None]).all(axis=2)
        sets.update(row.tobytes() for row in np.packbits(below, axis=1))
    return sets


SETS = [(4, 3, 1, 13), (4, 3, 2, 155), (4, 3, 3, 65)]
MANY_SETS = [(4, 4, 2, 963), (4, 4, 3, 1255), (5, 4, 2, 2301), (4, 5, 2, 5427)]
MANY_SETS += [(2, 6, 4, 1781)]


@pytest.mark.claim("N7.6", "N7.7", "N7.24")
@pytest.mark.parametrize(
    ("vocab_size", "length", "order", "num_sets"),
    [*SETS, *(pytest.param(*row, marks=pytest.mark.slow) for row in MANY_SETS)],
)
def test_sets_by_exact_weights(vocab_size, length, order, num_sets):
    space = qd.TextSpace(vocab_size, length)
    table = bleu_table(space, order)
    rows = np.packbits(sets_of(table), axis=1)
    assert np.sum(table.sets) == np.sum(sets_of(table))  # the rest of a block is empty
    assert len(rows) == num_sets
    exact = exact_sets(space, order)
    assert len(exact) == num_sets
    assert exact == {row.tobytes() for row in rows}


@pytest.mark.claim("N7.8")
@settings(max_examples=2 * settings().max_examples)
@given(
    st.sets(st.integers(1, 9), min_size=1),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
)
def test_closest_length_is_the_first_by_closeness(lengths, size, random):
    order = _by_closeness(tuple(sorted(lengths)), size)
    chosen = random.choices(order, k=5)
    closest = nltk.closest_ref_length([" " * m for m in chosen], size)
    assert order[min(map(order.index, chosen))] == closest


@pytest.mark.slow
@pytest.mark.claim("N7.11")
def test_a_large_space_against_the_random_walk():
    space = qd.TextSpace(8, 4)
    p = np.random.default_rng(4).dirichlet(np.full(space.num_texts, 0.3))
    exact = np.asarray(text_bleu(bleu_table(space, 2), p, 10))
    for candidate in (0, 9, 100, 585, 1000, 4095):
        walk = by_random_walk(space, 2, candidate, p, 10)
        assert abs(exact[candidate] - walk) <= 1e-12


@pytest.mark.claim("N7.12")
@pytest.mark.parametrize(("vocab_size", "length"), [(2, 5), (3, 4), (6, 2)])
def test_unigrams_with_one_reference_measure_total_variation(vocab_size, length):
    space = qd.TextSpace(vocab_size, length)
    shares = (space.tokens[:, :, None] == np.arange(vocab_size)).mean(1)
    apart = np.abs(shares[:, None] - shares).sum(-1) / 2
    p = np.random.default_rng(5).dirichlet(np.ones(space.num_texts))
    values = text_bleu(bleu_table(space, 1), p, 1)
    np.testing.assert_allclose(values, 1 - apart @ p, rtol=0, atol=1e-13)


@pytest.mark.claim("N7.16")
def test_one_more_reference_never_harms_and_all_texts_are_enough():
    rng = np.random.default_rng(7)
    for _ in range(200):
        candidate, *references = rng.integers(3, size=(5, 6)).tolist()
        scores = [sentence_bleu(candidate, references[:n], 3) for n in range(1, 5)]
        assert np.diff(scores).min() >= -1e-15
    for lengths, order in (((3,), 2), ((1, 2, 4), 2), ((4,), 4)):
        space = qd.TextSpace(2, lengths)
        p = rng.dirichlet(np.full(space.num_texts, 5.0))
        values = text_bleu(bleu_table(space, order), p, 5000)
        limit = (space.text_lengths >= order).astype(float)
        # A power of 5000 of a sum that is 1 up to rounding.
        np.testing.assert_allclose(values, limit, rtol=0, atol=1e-11)


@pytest.mark.claim("N7.17")
@pytest.mark.parametrize("seed", range(3))
def test_self_bleu_prefers_a_peaked_distribution_in_the_end(seed):
    space = qd.TextSpace(4, 3)
    uniform = np.full(64, 1 / 64)
    peaked = np.asarray(
        qd.LSTMLanguageModel.random(jax.random.key(seed), 4).probabilities(space)
    )

    def lacking(q, n):
        return 1 - sum(
            q[c] * by_random_walk(space, 2, c, q, n) for c in range(space.num_texts)
        )

    assert lacking(peaked, 1) < lacking(uniform, 1) - 0.1
    assert lacking(peaked, 200) > lacking(uniform, 200) + 1e-4
    assert qd.entropy(peaked) < qd.entropy(uniform) - 1


@pytest.mark.claim("N7.18")
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_a_text_against_itself(order):
    space = qd.TextSpace(3, (1, 2, 4))
    table = bleu_table(space, order)
    own = [sum_by_text(table, row)[c] for c, row in enumerate(sets_of(table).T)]
    np.testing.assert_allclose(own, space.text_lengths >= order, atol=1e-14)


@pytest.mark.claim("N7.19")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_lengths_alone(n):
    # One token: a reference is its length, and so is its number less one.
    space = qd.TextSpace(1, (1, 2, 3, 4, 5))
    p = np.random.default_rng(8).dirichlet(np.ones(5))
    values = text_bleu(bleu_table(space, 1), p, n)
    for size in range(1, 6):
        total = 0.0
        for lengths in itertools.product(range(1, 6), repeat=n):
            closest = min(lengths, key=lambda m: (abs(m - size), m))
            score = min(size, max(lengths)) / size * min(1, np.exp(1 - closest / size))
            total += score * prod(p[m - 1] for m in lengths)
        assert abs(values[size - 1] - total) <= 1e-13


@pytest.mark.claim("N7.21")
def test_pooled_bleu_is_a_polynomial_of_the_number_of_candidates():
    # Three candidates, two references, texts of two tokens; from the clipped counts.
    space = qd.TextSpace(2, 2)
    pooled, mean = np.zeros((2, 4, 4, 4, 4, 4))
    for *candidates, r, s in itertools.product(range(4), repeat=5):
        matches = np.array(
            [
                found(space, 2, c, clipped(space, 2, c)[[r, s]].max(0))
                for c in candidates
            ]
        )
        index = (*candidates, r, s)
        pooled[index] = np.sqrt(prod(matches.sum(0) / [6, 3]))
        mean[index] = np.sqrt((matches / [2, 1]).prod(1)).mean()
    a, b, p = np.random.default_rng(9).dirichlet(np.ones(4), 3)

    def along(tensor):
        """At five points of the line through a and b."""
        models = [a + t * (b - a) for t in np.linspace(0, 1, 5)]
        return np.array(
            [np.einsum("ijkrs,i,j,k,r,s", tensor, q, q, q, p, p) for q in models]
        )

    assert np.abs(np.diff(along(pooled), 3)).max() > 1e-5
    assert np.abs(np.diff(along(pooled), 4)).max() <= 1e-14
    assert np.abs(np.diff(along(mean), 2)).max() <= 1e-14
    exact = float(qd.expected_bleu(space, a, p, 2, 2)[1])
    assert exact == pytest.approx(along(mean)[0], abs=1e-14)
    corpus = float(metrics.expected_corpus_bleu(space, a, p, 2, 2, num_candidates=3)[1])
    assert corpus == pytest.approx(along(pooled)[0], abs=1e-14)
    assert abs(corpus - exact) > 1e-2


@pytest.mark.claim("N7.22")
@pytest.mark.parametrize("n", [2, 3])
def test_references_without_replacement(n):
    space = qd.TextSpace(3, 2)
    texts, table = sentences(space), bleu_table(space, 2)
    sizes = sets_of(table).sum(1)
    chance = np.array([comb(int(a), n) / comb(9, n) for a in sizes])
    ours = sum_by_text(table, chance)
    direct = [
        np.mean([sentence_bleu(c, r, 2) for r in itertools.combinations(texts, n)])
        for c in texts
    ]
    np.testing.assert_allclose(ours, direct, rtol=0, atol=1e-13)
    powers = text_bleu(table, np.full(9, 1 / 9), n)
    assert np.mean(direct) - float(powers.mean()) > 5e-3


@pytest.mark.claim("N7.23")
def test_a_reference_harms_only_by_its_length():
    texts = sentences(qd.TextSpace(2, (1, 3, 4)))
    harmed = 0
    for c, r, s in itertools.product(texts, repeat=3):
        change = sentence_bleu(c, [r, s], 1) - sentence_bleu(c, [r], 1)
        closest = [nltk.closest_ref_length(refs, len(c)) for refs in ([r], [r, s])]
        if change < -1e-12:
            harmed += 1
            assert closest[1] > max(closest[0], len(c))
        if len(r) == len(s):
            assert change >= 0
    assert harmed > 0


@pytest.mark.claim("N7.13")
def test_order_of_the_whole_text_is_membership():
    # BLEU-3 of texts of 3 tokens is 1 if the candidate is a reference, else 0.
    space = qd.TextSpace(3, 3)
    p = np.random.default_rng(2).dirichlet(np.ones(27))
    for n in (1, 2, 50):
        values = text_bleu(bleu_table(space, 3), p, n)
        np.testing.assert_allclose(values, 1 - (1 - p) ** n, rtol=0, atol=1e-13)


def test_one_compiled_function_serves_any_number_of_references():
    space = qd.TextSpace(2, 3)
    compiled = jax.jit(lambda table, p, n: text_bleu(table, p, n))
    p = np.random.default_rng(3).dirichlet(np.ones(8))
    table = bleu_table(space, 2)
    for n in (1, 2, 1000):
        values = compiled(table, p, float(n))
        np.testing.assert_allclose(values, text_bleu(table, p, n), rtol=1e-13)
    assert compiled._cache_size() == 1
    batch = jax.vmap(lambda p: text_bleu(table, p, 2))(jnp.stack([p, p[::-1]]))
    np.testing.assert_allclose(batch[1], text_bleu(table, p[::-1], 2), rtol=1e-13)


@pytest.mark.parametrize("num_references", [1, 2])
def test_second_derivatives_at_a_point_mass(num_references):
    # Where chances are 0 the powers' derivatives are 0, not 0 / 0.
    space = qd.TextSpace(2, 2)
    table = bleu_table(space, 2)
    corner = np.eye(4)[1]

    def total(p):
        return text_bleu(table, p, num_references).sum()

    hessian = jax.hessian(total)(corner)
    step = 1e-4
    for i, a in enumerate(np.eye(4)):
        for j, b in enumerate(np.eye(4)):
            # Exact for a polynomial of degree 2, up to its rounding over step^2.
            change = total(corner + step * (a + b)) - total(corner + step * a)
            change -= total(corner + step * b) - total(corner)
            assert hessian[i, j] == pytest.approx(float(change) / step**2, abs=1e-6)
