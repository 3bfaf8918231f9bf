"""Counts of n-grams, of whole texts and in parts, and the metrics made of them."""

import itertools
from collections import Counter
from fractions import Fraction
from functools import partial, reduce
from itertools import combinations, permutations, product
from math import lcm
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lab.corpora import imdb
from models import MODEL, REAL, merged
from referees.corpus_metrics import one_by_one, without_each_group
from referees.ngram_counts import counted, frequencies, ngrams_of
from referees.sample_means import moments
from refusals import refused

import qdtheory as qd
from qdtheory.text import (
    as_corpus,
    coverage_rate,
    distinct,
    jaccard_index,
    ms_jaccard,
    negative_repetition_rate,
    ngram_counts,
    ngram_sums,
    postings,
)
from qdtheory.text import cnd as cnd_of
from qdtheory.text.corpus import slices
from qdtheory.text.intervals import random_groups
from qdtheory.text.leave_out import group_scores, groups_seen, metrics_of_sums
from qdtheory.text.ngrams import Estimator
from qdtheory.text.partial_sums import partial_sums

cnd = partial(cnd_of, estimator="plug-in")
texts = st.lists(
    st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=8
).filter(any)
orders = st.integers(1, 4)
EPS = np.finfo(float).eps


def squared_distance(q, p):
    return sum((q.get(g, 0) - p.get(g, 0)) ** 2 for g in q.keys() | p.keys())


# -- counting by hand ----------------------------------------------------------------


def assert_counted(sentences, n):
    table = ngram_counts(sentences, n)
    words = np.array(table.vocabulary)
    found = dict(zip(map(tuple, words[table.ngrams]), table.frequencies, strict=True))
    assert found == frequencies(sentences, n)
    assert table.total == counted(sentences, n).total()
    assert table.ngrams.tolist() == sorted(table.ngrams.tolist())
    assert distinct(sentences, n) == len(found) / table.total


@given(texts, texts, orders)
def test_tables_and_squared_distances_are_those_of_a_counter(ours, theirs, n):
    assume(all(max(map(len, x)) >= n for x in (ours, theirs)))
    assert_counted(ours, n)
    counts = (counted(side, n) for side in (ours, theirs))
    q, p = ({g: Fraction(k, c.total()) for g, k in c.items()} for c in counts)
    assert cnd(ours, theirs, n) == float(squared_distance(q, p))


@pytest.mark.parametrize("n", [2, 16, 17, 70])
def test_orders_beyond_64_bits_are_counted_too(n):
    """Ranks stand for the n-grams: 1,000 words, 7 and more of them."""
    rng = np.random.default_rng(0)
    # Repeated sentences, so that long n-grams occur more than once.
    pool = [rng.integers(1000, size=70).tolist() for _ in range(5)]
    ours, theirs = pool[:3] + pool[:1], pool[2:]
    assert_counted(ours, n)
    # About 300 terms, all of one sign.
    expected = squared_distance(frequencies(ours, n), frequencies(theirs, n))
    assert cnd(ours, theirs, n) == pytest.approx(expected, rel=300 * EPS)


def equal_share(pairs, averaged) -> float:
    """The share of equal pairs of n-grams in pairs of sentences, or its mean."""
    pairs = list(pairs)
    equal = [np.mean([a == b for a in one for b in other]) for one, other in pairs]
    sizes = [len(a) * len(b) for a, b in pairs]
    return np.average(equal, weights=None if averaged else sizes)


@pytest.mark.claim("N10.3")
@pytest.mark.parametrize("estimator", get_args(Estimator))
@given(texts, texts, orders)
def test_rates_are_the_share_of_equal_pairs(estimator, candidates, references, n):
    """Of any two sentences, or of two that differ."""
    ours, theirs = (
        [grams for text in side if (grams := ngrams_of(text, n))]
        for side in (candidates, references)
    )
    assume(min(len(ours), len(theirs)) > (estimator != "plug-in"))
    pairs_of = permutations if estimator != "plug-in" else lambda x, _: product(x, x)
    q, p, both = (
        equal_share(pairs, estimator == "sentence-pairs")
        for pairs in (pairs_of(ours, 2), pairs_of(theirs, 2), product(ours, theirs))
    )
    # About 40 terms of at most 1, times 1 / (1 - share) <= 40.
    close = partial(pytest.approx, rel=0, abs=1000 * EPS)
    assert -negative_repetition_rate(candidates, n, estimator) == close(q)
    assert coverage_rate(candidates, references, n, estimator) == close(both)
    assert cnd_of(candidates, references, n, estimator) == close(q + p - 2 * both)


def test_a_table_stands_for_its_texts():
    ours, theirs = ["a b a", "c"], ["b a", "c b a"]
    tables = ngram_counts(ours, 2), ngram_counts(theirs, 2)
    assert ngram_counts(tables[0], 2) is tables[0]
    assert cnd(*tables, 2) == cnd(ours, theirs, 2)
    assert coverage_rate(tables[0], theirs, 2) == coverage_rate(ours, theirs, 2)


def test_distinct_does_not_fall_with_the_order_in_lots_of_one_length():
    short = [*product("ab", repeat=4)]
    for lot in itertools.combinations_with_replacement(short, 3):
        kinds = [len(frequencies(lot, n)) for n in range(1, 5)]
        shares = [Fraction(k, 3 * (5 - n)) for n, k in enumerate(kinds, 1)]
        assert shares == sorted(shares)
    assert [distinct(lot, n) for n in range(1, 5)] == [*map(float, shares)]
    one, two = (distinct(["a a a a", "b"], n) for n in (1, 2))
    assert one > two  # of two lengths


# -- MS-Jaccard ----------------------------------------------------------------------

long_enough = texts.filter(lambda x: max(map(len, x)) > 1)


def jaccard_by_hand(left, right, n):
    """Equation 1 of Montahaei et al. 2019, in fractions."""
    sides = [(counted(x, n), len(x)) for x in (left, right)]
    rates = [{g: Fraction(k, size) for g, k in x.items()} for x, size in sides]
    both = [[x.get(g, 0) for x in rates] for g in {*rates[0], *rates[1]}]
    return sum(map(min, both)) / sum(map(max, both))


@given(long_enough, long_enough)
def test_ms_jaccard_is_the_geometric_mean_of_counts_in_fractions(left, right):
    first, second = (float(jaccard_by_hand(left, right, n)) for n in (1, 2))
    found = ms_jaccard(left, right, 2)
    assert found == pytest.approx([first, (first * second) ** 0.5], abs=1e-12)


# -- against whole spaces --------------------------------------------------------------


def corpus_of(space, index):
    rows = space.tokens[index]
    return as_corpus([row[row >= 0].tolist() for row in rows])


@pytest.mark.parametrize("lengths", [3, (1, 2, 3)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_equal_to_the_exact_wing_on_the_whole_space(lengths, n):
    """Each text as often as q says: the pooled frequencies are the distribution."""
    space = qd.TextSpace(vocab_size=3, lengths=lengths)
    times = np.random.default_rng(n).integers(5, size=(2, space.num_texts))
    q, p = (space.ngram_distribution(row / row.sum(), n) for row in times)
    every = np.arange(space.num_texts)
    ours, theirs = (corpus_of(space, np.repeat(every, row)) for row in times)
    found = [
        coverage_rate(ours, theirs, n),
        negative_repetition_rate(ours, n, "plug-in"),
        cnd(ours, theirs, n),
    ]
    exact = qd.coverage_rate(q, p), qd.negative_repetition_rate(q), qd.cnd(q, p)
    # Sums of at most 27 products.
    assert found == pytest.approx([*map(float, exact)], rel=1e-13)


# -- what spoilt text gets (notebook 10) ---------------------------------------------

words = st.lists(st.sampled_from("abc"), min_size=3, max_size=3)


@pytest.mark.slow
@pytest.mark.claim("N10.6")
@settings(max_examples=20)
@given(st.lists(words, min_size=1, max_size=4), st.integers(1, 3))
def test_uniform_noise_costs_coverage_linearly_and_cnd_quadratically(references, n):
    """Every text of the space once is noise; copies set its share."""
    noise = [list(text) for text in product("abc", repeat=3)]
    copies = lcm(len(references), len(noise))
    real, random = (x * (copies // len(x)) for x in (references, noise))
    whole = cnd(noise, references, n)
    assume(whole > 0)
    ends = [coverage_rate(x, references, n) for x in (references, noise)]
    rates = []
    for share in range(5):
        candidates = real * (4 - share) + random * share
        cr, value = coverage_rate(candidates, references, n), cnd(candidates, real, n)
        assert cr == pytest.approx(np.interp(share, [0, 4], ends), rel=1e-12)
        assert value == pytest.approx((share / 4) ** 2 * whole, rel=1e-12)
        rates.append((-cr, negative_repetition_rate(candidates, n, "plug-in"), value))
    assert (np.diff(rates, axis=0) > 0).all()


@pytest.mark.claim("N10.7")
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("known", [1, 2, 4])
def test_collapse_keeps_coverage_and_costs_diversity(n, known):
    """Mean over all choices of k sentences: sampling without replacement."""
    nrr = partial(negative_repetition_rate, n=n, estimator="plug-in")
    real = np.random.default_rng(n).integers(3, size=(8, 4)).tolist()
    parts = [*map(list, combinations(real, known))]
    found = np.mean([(coverage_rate(x, real, n), nrr(x)) for x in parts], axis=0)
    spread = np.mean([cnd([sentence], real, n) for sentence in real])
    lost = spread * (8 - known) / (known * 7)
    expected = coverage_rate(real, real, n), nrr(real) - lost
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.claim("N10.8")
@given(st.integers(0, 1000))
def test_sharpening_raises_coverage_above_that_of_real_text(seed):
    """Q ~ P^beta beyond beta = 1, over all texts of a space."""
    p = np.random.default_rng(seed).dirichlet(np.ones(27))
    sharp = [qd.temper(p, beta) for beta in (1.0, 1.5, 2.0, 4.0)]
    rates = [
        (qd.coverage_rate(q, p), -qd.negative_repetition_rate(q), qd.cnd(q, p))
        for q in sharp
    ]
    assert (np.diff(np.array(rates), axis=0) > 0).all()


@pytest.mark.claim("N10.9")
@given(texts, st.randoms(use_true_random=False))
def test_order_one_is_blind_to_word_order(candidates, random):
    shuffled = [random.sample(text, len(text)) for text in candidates]
    assert frequencies(shuffled, 1) == frequencies(candidates, 1)
    assert cnd(shuffled, candidates, 1) == 0
    # One exchange of two unlike words is enough for order 2 to see it.
    assert cnd([["a", "b"]], [["b", "a"]], 2) == 2


@pytest.mark.claim("N10.10", "N10.11")
@given(st.integers(0, 1000), st.floats(0, 1))
def test_noise_slides_along_the_frontier(seed, share):
    r"""From $q_0$ near p it stays within $(1 - share)^2 CND(q_0, p)$ of the optimum.

    The frontier's gap V - w U is $\Vert q - Q(w)\Vert^2$, and Q(w) is p with noise: by
    KKT, inside the simplex, $-2 q_i - w p_i$ is one number, w = -2 (1 - share).
    """
    q, p = np.random.default_rng(seed).dirichlet(np.full(16, 0.3), size=2)
    # Without noise, no model passes the frontier: the gap is CND, which is not below 0.
    share *= seed % 4 > 0
    noisy, optimal = (qd.mix(x, np.full(16, 1 / 16), share) for x in (q, p))
    w = -2 * (1 - share)
    assert np.ptp(-2 * optimal - w * p) <= 10 * EPS
    best = qd.pareto_optimum(qd.CR_NRR, p, w)
    gap = (best.diversity - w * best.quality) - (
        qd.negative_repetition_rate(noisy) - w * qd.coverage_rate(noisy, p)
    )
    assert gap == pytest.approx((1 - share) ** 2 * float(qd.cnd(q, p)), abs=20 * EPS)


@pytest.mark.claim("N10.12")
def test_sampling_takes_over_with_the_order():
    sentences = list(imdb(1)[::-8])
    relative, unseen = [], []
    for n in (1, 2, 3, 4):
        counts = (counted(x, n) for x in (sentences[::2], sentences[1::2]))
        both = ((x, x.total()) for x in counts)  # once: there are many
        q, p = ({g: k / total for g, k in x.items()} for x, total in both)
        relative.append(squared_distance(q, p) / sum(x**2 for x in p.values()))
        unseen.append(sum(x for g, x in q.items() if g not in p))
    assert (np.diff([relative, unseen]) > 0).all()


@pytest.mark.claim("N10.14")
def test_equal_bigrams_and_other_unigrams():
    space = qd.TextSpace(vocab_size=2, lengths=3)
    both = np.eye(space.num_texts)[space.index(np.array([[0, 1, 0], [1, 0, 1]]))]
    laws = [[space.ngram_distribution(x, n) for x in both] for n in (1, 2, 3)]
    values = [float(qd.cnd(*x)) for x in laws]
    assert values == pytest.approx([2 / 9, 0, 2], abs=EPS)


@pytest.mark.claim("N10.15")
@given(texts, texts, st.data())
def test_exchanged_tails_keep_bigrams(firsts, seconds, data):
    crossed = []
    for x, y in zip(firsts, seconds, strict=False):
        meets = [(i, j) for i, a in enumerate(x) for j, b in enumerate(y) if a == b]
        i, j = data.draw(st.sampled_from(meets)) if meets else (0, 0)
        crossed += [x[:i] + y[j:], y[:j] + x[i:]] if meets else [x, y]
    both = [t for pair in zip(firsts, seconds, strict=False) for t in pair]
    for n in (1, 2):
        assert frequencies(crossed, n) == frequencies(both, n)


@pytest.mark.claim("N10.16")
@pytest.mark.parametrize("n", [1, 2])
def test_scoring_a_resample_on_its_source_halves_the_floor(n):
    space, size, repeats = qd.TextSpace(vocab_size=4, lengths=4), 25, 400
    rng = np.random.default_rng(n)
    p = rng.dirichlet(np.ones(space.num_texts))
    _, spread = moments(space, p, n)
    found = np.empty((repeats, 2))
    for row in found:
        one, other = rng.choice(space.num_texts, (2, size), p=p)
        real = corpus_of(space, one)
        resampled = real[rng.integers(size, size=size)]
        row[:] = cnd(resampled, real, n), cnd(corpus_of(space, other), real, n)
    # The spread of a sample of S sentences is (S - 1) / S of the source's.
    expected = spread / size * np.array([(size - 1) / size, 2])
    error = found.std(axis=0, ddof=1) / repeats**0.5
    assert (abs(found.mean(axis=0) - expected) <= 4 * error).all()


@pytest.mark.claim("N10.17")
def test_words_and_characters_rank_two_candidates_in_opposite_ways():
    sides = ["ab cd"], ["cd ab"], ["ab cd", "xx yy", "xx yy", "xx yy"]
    real, *ours = sides
    assert [cnd(x, real, 2) for x in ours] == [2, 1.125]  # 2 (3/4)^2
    real, *ours = (list(map(list, x)) for x in sides)
    # Four of eight, 1/4 apart, and eight, 3/16 apart.
    assert [cnd(x, real, 2) for x in ours] == [0.25, 0.28125]


# -- sums in parts, and of fewer sentences --------------------------------------------

sentences = st.lists(st.integers(0, 3), max_size=6)
corpora = st.lists(sentences, min_size=3, max_size=30).filter(any)
# With these every rest has pairs of sentences of three words.
LONG = [[0, 1, 2], [1, 2, 0, 1], [3, 3, 3], [2, 0, 1, 1, 1]]
long_corpora = st.lists(sentences, max_size=20).map(LONG.__add__)


def in_parts(texts, real, num_parts, **options):
    how = {"num_parts": num_parts} | options
    return [partial_sums(texts, real, 3, part=k, **how) for k in range(num_parts)]


def scored(sums, smoothing, estimator):
    totals = sums.totals
    lengths = totals.lengths["x"], totals.reference_lengths
    scores = group_scores(enumerate(sums.blocks["x"]), *lengths, smoothing)
    return metrics_of_sums(totals, "x", scores, estimator)


@settings(max_examples=settings().max_examples // 2)
@given(
    long_corpora,
    long_corpora,
    st.sampled_from([None, "epsilon"]),
    st.sampled_from(["plug-in", "pairs", "sentence-pairs"]),
    st.integers(1, 4),
)
def test_metrics_of_fewer_sentences(ours, theirs, smoothing, estimator, num_parts):
    """Counted in parts that are added, against functions of one metric each."""
    options = {"smoothing": smoothing}, {"estimator": estimator}
    texts, real = as_corpus(ours), as_corpus(theirs)
    averaged = estimator == "sentence-pairs"
    parts = in_parts({"x": texts}, real, num_parts, averaged=averaged)
    found = scored(reduce(merged, parts), smoothing, estimator)
    rests = [(texts, real)]
    rests += [(rest, real) for rest in without_each_group(texts)]
    rests += [(texts, rest) for rest in without_each_group(real)]
    assert found.shape[-1] == len(rests)
    whole = one_by_one(texts, real, 3, *options)[0]
    for subset, (rest, known) in enumerate(rests):
        expected = one_by_one(rest, known, 3, *options)
        if known is not real:  # BLEU is of all references
            expected[0] = whole
        np.testing.assert_allclose(found[..., subset], expected, rtol=1e-12, atol=1e-12)


def test_one_group_has_no_rest():
    texts, real = as_corpus(MODEL), as_corpus(REAL)
    sums = partial_sums({"x": texts}, real, 2, num_groups=1)
    (found,) = np.moveaxis(scored(sums, "epsilon", "pairs"), -1, 0)
    np.testing.assert_allclose(found, one_by_one(texts, real, 2), rtol=1e-12)


@pytest.mark.claim("N12.26")
@given(corpora, corpora, st.integers(2, 6), st.randoms(use_true_random=False))
def test_parts_are_the_whole_in_any_order(ours, theirs, num_parts, random):
    texts, real = {"x": as_corpus(ours), "y": as_corpus(theirs)}, as_corpus(theirs)
    parts = in_parts(texts, real, num_parts)
    while len(parts) > 1:
        random.shuffle(parts)
        parts.append(merged(parts.pop(), parts.pop()))
    assert parts == [partial_sums(texts, real, 3)]


def test_chunks_are_read_one_after_another(monkeypatch):
    both = {"x": as_corpus(MODEL)}, as_corpus(REAL)
    whole = in_parts(*both, 2)
    monkeypatch.setattr(slices, "__defaults__", (40,))
    assert in_parts(*both, 2) == whole


@pytest.mark.parametrize("small", [1, 3, 256])
def test_spectra_count_small_and_large_counts(monkeypatch, small):
    monkeypatch.setattr(ngram_sums, "SMALL", small)
    rng = np.random.default_rng(0)
    texts = [(rng.zipf(1.6, 7) % 20).tolist() for _ in range(60)] + [[], [5]]
    ours, real = as_corpus(texts), as_corpus(texts[:9])
    sums = partial_sums({"x": ours}, real, 2, num_groups=4)
    group = random_groups(len(texts), 4)
    for n in (1, 2):
        spectra = sums.totals.spectra["x"].of(n - 1, 5)
        for g, (counts, times) in enumerate(spectra, start=-1):
            every = counted([x for x, h in zip(texts, group) if h != g], n)
            assert dict(zip(counts, times)) == Counter(every.values())


def test_sums_beyond_the_floats_are_exact():
    # Floats hold no odd number of so many bits.
    values = np.array([2**58 + 1, 3, 2**57 + 1, 2**40])
    found = ngram_sums._added_up(values, np.array([0, 0, 1, 1]), 3)
    assert found.tolist() == [2**58 + 4, 2**57 + 1 + 2**40, 0]


@pytest.mark.parametrize("averaged", [False, True])
def test_groups_that_hold_an_event_are_counted_by_hand(averaged):
    """From the n-grams of each sentence, one after another."""
    ours, theirs = MODEL[:30], REAL[:25]
    both = {"x": as_corpus(ours)}, as_corpus(theirs)
    seen = groups_seen(partial_sums(*both, 4, averaged=averaged).totals, "x")

    def told(texts, others, n):
        """How many groups repeat, share, repeat in any way and have n-grams alone."""
        group = random_groups(len(texts), 20)
        each, known = [counted([x], n) for x in texts], counted(others, n)
        held = Counter(g for x in each for g in x)
        parts = [[texts[i] for i in np.flatnonzero(group == k)] for k in range(20)]
        of_group = [counted(part, n) for part in parts]
        groups = Counter(g for x in of_group for g in x)
        pairs = [*zip(each, group)]
        return {
            "repeated": len({h for x, h in pairs if any(held[g] > 1 for g in x)}),
            "shared": len({h for x, h in pairs if known & x}),
            "again": sum(any(groups[g] > 1 or x[g] > 1 for g in x) for x in of_group),
            "alone": sum(any(groups[g] == 1 for g in x) for x in of_group),
        }

    for n in (1, 2, 3, 4):
        own, real = told(ours, theirs, n), told(theirs, ours, n)
        own |= {f"real {what}": real[what] for what in ("repeated", "shared")}
        assert {what: x[n - 1] for what, x in seen.items()} == own


# -- keys ------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [3, 16, 40, 62])
def test_equal_keys_keep_their_order_when_sorted(bits):
    some = np.random.default_rng(0).integers(2**bits, size=300)
    keys = np.random.default_rng(1).permutation(np.append(some, [0, *some]))
    found, order = postings.sorted_keys(keys.copy(), 2**bits)
    expected = np.argsort(keys, kind="stable")
    assert (order == expected).all()
    assert (found == keys[expected]).all()


# -- bad input -----------------------------------------------------------------------


def test_bad_input(as_a_user):
    real, table, some = ["a b"], ngram_counts(["a b"], 1), ["a b", "a"]
    for metric in (coverage_rate, cnd, jaccard_index):
        refused(
            ("at least one sentence", metric, real, [""], 1),
            ("expected 1 or more, got 0", metric, real, real, 0),
            ("no sentence has 2 tokens: the longest has 1", metric, real, ["a"], 2),
            ("of order 2, got one of 1", metric, table, real, 2),
        )
        integer = "expected an integer, got float"
        refused((integer, metric, real, real, 1.0), error=TypeError)
    known = '"plug-in", "pairs" or "sentence-pairs", got \'pair\''
    lone = "two sentences with 2 tokens, got one"
    nrr = negative_repetition_rate
    refused(
        ("no sentence has 1000000000000 tokens", cnd, real, real, 10**12),
        ("no sentence has 3", ms_jaccard, real, ["a b c"], 3),
        (known, nrr, some, 1, "pair"),
        *((known, f, some, some, 1, "pair") for f in (coverage_rate, cnd_of)),
        *((lone, nrr, some, 2, x) for x in ("pairs", "sentence-pairs")),
    )
    both = {"x": as_corpus(real)}, as_corpus(real)
    groups = "num_groups: expected a whole number from 1 to 255, got "
    for number in (0, 256):
        counted_so = partial(partial_sums, num_groups=number)
        refused((f"{groups}{number}", counted_so, *both, 1))
