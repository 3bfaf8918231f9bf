"""Pooled n-gram metrics: against counting by hand and against whole spaces."""

import subprocess
import sys
from fractions import Fraction
from functools import partial
from itertools import (
    combinations,
    combinations_with_replacement,
    permutations,
    product,
)
from math import lcm
from typing import get_args

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lab.corpora import imdb
from models import BOOK, GUIDE, GUIDES
from referees.ngram_counts import counted, frequencies, ngrams_of
from referees.sample_means import moments
from refusals import refused

import qdtheory as qd
from qdtheory.text import (
    as_corpus,
    cnd,
    coverage_rate,
    distinct,
    jaccard_index,
    ms_jaccard,
    negative_repetition_rate,
    ngram_counts,
)
from qdtheory.text.ngrams import Estimator

texts = st.lists(
    st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=8
).filter(any)
orders = st.integers(1, 4)
EPS = np.finfo(float).eps


def assume_long_enough(n, *corpora):
    assume(all(max(map(len, texts)) >= n for texts in corpora))


# -- counting by hand ----------------------------------------------------------------


@pytest.mark.claim("N10.2")
@given(texts, orders)
def test_table_agrees_with_a_counter(texts, n):
    assume_long_enough(n, texts)
    table = ngram_counts(texts, n)
    words = np.array(table.vocabulary)
    found = dict(zip(map(tuple, words[table.ngrams]), table.frequencies, strict=True))
    assert found == frequencies(texts, n)
    assert table.total == counted(texts, n).total()
    assert table.ngrams.tolist() == sorted(table.ngrams.tolist())
    assert len(table.counts) == len(found)
    assert distinct(texts, n) == len(found) / table.total


def windows(texts, n) -> list[list[tuple]]:
    return [grams for text in texts if (grams := ngrams_of(text, n))]


def equal_share(pairs, averaged) -> float:
    """The share of equal pairs of n-grams in pairs of sentences, or its mean."""
    pairs = list(pairs)
    equal = [np.mean([a == b for a in one for b in other]) for one, other in pairs]
    sizes = [len(a) * len(b) for a, b in pairs]
    return np.average(equal, weights=None if averaged else sizes)


@pytest.mark.claim("N10.3", "N10.4")
@pytest.mark.parametrize("estimator", get_args(Estimator))
@given(texts, texts, orders)
def test_rates_are_the_share_of_equal_pairs(estimator, candidates, references, n):
    """Of any two sentences, or of two that differ."""
    ours, theirs = windows(candidates, n), windows(references, n)
    assume(min(len(ours), len(theirs)) > (estimator != "plug-in"))
    pairs_of = permutations if estimator != "plug-in" else lambda x, _: product(x, x)
    averaged = estimator == "sentence-pairs"
    q, p, both = (
        equal_share(pairs, averaged)
        for pairs in (pairs_of(ours, 2), pairs_of(theirs, 2), product(ours, theirs))
    )
    # About 40 terms of at most 1, times 1 / (1 - share) <= 40.
    close = {"rel": 0, "abs": 1000 * EPS}
    found = -negative_repetition_rate(candidates, n, estimator)
    assert found == pytest.approx(q, **close)
    found = coverage_rate(candidates, references, n, estimator)
    assert found == pytest.approx(both, **close)
    found = cnd(candidates, references, n, estimator)
    assert found == pytest.approx(q + p - 2 * both, **close)


@pytest.mark.parametrize("n", [2, 5, 16, 17, 40, 70])
def test_any_order_and_vocabulary(n):
    """Beyond 64 bits ranks stand for the n-grams: 1,000 words, 7 and more of them."""
    rng = np.random.default_rng(0)
    # Repeated sentences, so that long n-grams occur more than once.
    pool = [rng.integers(1000, size=70).tolist() for _ in range(5)]
    candidates, references = pool[:3] + pool[:1], pool[2:]
    q, p = frequencies(candidates, n), frequencies(references, n)
    table = ngram_counts(candidates, n)
    words = np.array(table.vocabulary)
    found = dict(zip(map(tuple, words[table.ngrams]), table.frequencies, strict=True))
    assert found == q
    expected = sum((q.get(g, 0) - p.get(g, 0)) ** 2 for g in q.keys() | p.keys())
    # About 300 terms, all of one sign.
    assert cnd(candidates, references, n, "plug-in") == pytest.approx(
        expected, rel=300 * EPS
    )


# -- properties ----------------------------------------------------------------------


@given(texts, texts, orders)
def test_cnd_is_the_squared_distance_and_zero_where_that_is(candidates, references, n):
    assume_long_enough(n, candidates, references)
    q, p = (
        {g: Fraction(k, c.total()) for g, k in c.items()}
        for c in (counted(candidates, n), counted(references, n))
    )
    expected = sum((q.get(g, 0) - p.get(g, 0)) ** 2 for g in q.keys() | p.keys())
    assert cnd(candidates, references, n, "plug-in") == float(expected)


def test_cnd_keeps_its_digits_near_zero():
    """One token of 10^6 differs: by CR and NRR only four digits would be left."""
    big = [["a"] * 1000] * 1000
    other = [["b"] + ["a"] * 999, *big[1:]]
    # 1 - 10^-6 is rounded to 10^-16, which is 10^-10 of the difference.
    assert cnd(other, big, 1, "plug-in") == pytest.approx(2e-12, rel=1e-9)


def test_a_table_stands_for_its_texts():
    candidates, references = ["a b a", "c"], ["b a", "c b a"]
    tables = ngram_counts(candidates, 2), ngram_counts(references, 2)
    assert ngram_counts(tables[0], 2) is tables[0]
    assert cnd(*tables, 2, "plug-in") == cnd(candidates, references, 2, "plug-in")
    assert coverage_rate(tables[0], references, 2) == coverage_rate(
        candidates, references, 2
    )


@pytest.mark.claim("N13.28")
def test_distinct_does_not_fall_with_the_order_in_lots_of_one_length():
    short = [*product("ab", repeat=4)]
    for lot in combinations_with_replacement(short, 3):
        kinds = [len(frequencies(lot, n)) for n in range(1, 5)]
        shares = [Fraction(k, 3 * (5 - n)) for n, k in enumerate(kinds, 1)]
        assert shares == sorted(shares)
    assert [distinct(lot, n) for n in range(1, 5)] == [*map(float, shares)]
    of_two_lengths = [text[:n] for text in short for n in (2, 4)]
    for lot in combinations_with_replacement(of_two_lengths, 2):
        one, two = (
            Fraction(len(c), c.total()) for c in (counted(lot, 1), counted(lot, 2))
        )
        assert two >= one / 2


# -- MS-Jaccard ----------------------------------------------------------------------

pairs_at_least = st.lists(
    st.lists(st.sampled_from("abc"), min_size=2, max_size=6) | st.just([]),
    min_size=1,
    max_size=6,
).filter(any)


def jaccard_by_hand(left, right, n):
    """Equation 1 of Montahaei et al. 2019, in fractions."""
    rates = []
    for texts in (left, right):
        counts = counted(texts, n)
        rates.append({g: Fraction(count, len(texts)) for g, count in counts.items()})
    both = [(rates[0].get(g, 0), rates[1].get(g, 0)) for g in {*rates[0], *rates[1]}]
    return sum(map(min, both)) / sum(map(max, both))


@given(left=pairs_at_least, right=pairs_at_least)
def test_ms_jaccard_equals_the_count_in_fractions(left, right):
    found = ms_jaccard(left, right, 2)
    first, second = (float(jaccard_by_hand(left, right, n)) for n in (1, 2))
    assert found == pytest.approx([first, (first * second) ** 0.5], abs=1e-12)


def test_ms_jaccard_of_the_example_of_its_authors():
    found = ms_jaccard([GUIDE, BOOK], GUIDES, 5)
    # Printed with two places, two of them rounded and the last one cut.
    assert found[2:] == pytest.approx([0.17, 0.13, 0.09], abs=0.01)


@pytest.mark.claim("N16.25")
@pytest.mark.parametrize("length", [3, 5, 7])
def test_alternating_texts_differ_in_unigrams_alone(length):
    texts = np.array([[0, 1] * length, [1, 0] * length])[:, :length].tolist()
    for d in (
        partial(cnd, estimator="plug-in"),
        lambda a, b, n: 1 - jaccard_index(a, b, n),
    ):
        assert float(d([texts[0]], [texts[1]], 2)) == pytest.approx(0, abs=1e-15)
        assert float(d([texts[0]], [texts[1]], 1)) > 0


# -- against whole spaces --------------------------------------------------------------


def corpus_of(space, index):
    rows = space.tokens[index]
    return as_corpus([row[row >= 0].tolist() for row in rows])


@pytest.mark.claim("N10.5")
@pytest.mark.parametrize("lengths", [3, (1, 2, 3)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_equal_to_the_exact_wing_on_the_whole_space(lengths, n):
    """Each text as often as q says: the pooled frequencies are the distribution."""
    space = qd.TextSpace(vocab_size=3, lengths=lengths)
    rng = np.random.default_rng(n)
    times = rng.integers(5, size=(2, space.num_texts))
    q, p = (qd.normalize(row.astype(float)) for row in times)
    candidates, references = (
        corpus_of(space, np.repeat(np.arange(space.num_texts), row)) for row in times
    )
    exact_q, exact_p = space.ngram_distribution(q, n), space.ngram_distribution(p, n)
    # Sums of at most 27 products.
    close = {"rel": 1e-13}
    assert coverage_rate(candidates, references, n) == pytest.approx(
        float(qd.coverage_rate(exact_q, exact_p)), **close
    )
    assert negative_repetition_rate(candidates, n, "plug-in") == pytest.approx(
        float(qd.negative_repetition_rate(exact_q)), **close
    )
    assert cnd(candidates, references, n, "plug-in") == pytest.approx(
        float(qd.cnd(exact_q, exact_p)), **close
    )


@pytest.fixture(scope="module")
def oracles():
    """Two unlike distributions over the texts of one length."""
    space = qd.TextSpace(vocab_size=4, lengths=4)
    keys = jax.random.split(jax.random.key(7), 2)
    q, p = (qd.normalize(jax.random.exponential(key, space.num_texts)) for key in keys)
    return space, qd.temper(q, 2.0), p


def draw(rng, space, q, size):
    return corpus_of(space, rng.choice(space.num_texts, size, p=np.asarray(q)))


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
    assume(cnd(noise, references, n, "plug-in") > 0)
    rates = []
    for share in range(5):
        candidates = real * (4 - share) + random * share
        cr = coverage_rate(candidates, references, n)
        ends = [coverage_rate(x, references, n) for x in (references, noise)]
        assert cr == pytest.approx(np.interp(share, [0, 4], ends), rel=1e-12)
        value = cnd(candidates, references, n, "plug-in")
        assert value == pytest.approx(
            (share / 4) ** 2 * cnd(noise, references, n, "plug-in"), rel=1e-12
        )
        rates.append((-cr, negative_repetition_rate(candidates, n, "plug-in"), value))
    assert (np.diff(rates, axis=0) > 0).all()


@pytest.mark.claim("N10.7")
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("known", [1, 2, 4])
def test_collapse_keeps_coverage_and_costs_diversity(n, known):
    """Mean over all choices of k sentences: sampling without replacement."""
    rng = np.random.default_rng(n)
    real = [text.tolist() for text in rng.integers(3, size=(8, 4))]
    found = np.mean(
        [
            (coverage_rate(part, real, n), negative_repetition_rate(part, n, "plug-in"))
            for part in map(list, combinations(real, known))
        ],
        axis=0,
    )
    spread = np.mean([cnd([sentence], real, n, "plug-in") for sentence in real])
    lost = spread * (8 - known) / (known * 7)
    assert found[0] == pytest.approx(coverage_rate(real, real, n), rel=1e-12)
    assert found[1] == pytest.approx(
        negative_repetition_rate(real, n, "plug-in") - lost, rel=1e-12
    )


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
    assert cnd(shuffled, candidates, 1, "plug-in") == 0
    # One exchange of two unlike words is enough for order 2 to see it.
    assert cnd([["a", "b"]], [["b", "a"]], 2, "plug-in") == 2


@pytest.mark.claim("N10.10")
@given(texts, texts, st.sampled_from([-0.3, -2.0, -7.0]))
def test_no_candidate_passes_the_frontier(candidates, references, w):
    """V - w U of any candidates is at most that of the optimum of weight w."""
    union = sorted(frequencies(candidates + references, 1))
    assume(len(union) > 1)
    found = frequencies(references, 1)
    optimum = qd.pareto_optimum(
        qd.CR_NRR, np.array([found.get(g, 0.0) for g in union]), w
    )
    value = negative_repetition_rate(candidates, 1, "plug-in") - w * coverage_rate(
        candidates, references, 1
    )
    assert value <= optimum.diversity - w * optimum.quality + 100 * EPS


@pytest.mark.claim("N10.10")
@given(st.integers(0, 1000), st.floats(0, 1))
def test_noise_slides_along_the_frontier(seed, share):
    r"""From $q_0$ near p it stays within $(1 - share)^2 CND(q_0, p)$ of the optimum.

    The frontier's gap V - w U is $\Vert q - Q(w)\Vert^2$, and Q(w) is p with noise.
    """
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet(np.full(16, 0.3), size=2)
    noisy = qd.mix(q, np.full(16, 1 / 16), share)
    w = -2 * (1 - share)
    best = qd.pareto_optimum(qd.CR_NRR, p, w)
    gap = (best.diversity - w * best.quality) - (
        qd.negative_repetition_rate(noisy) - w * qd.coverage_rate(noisy, p)
    )
    assert gap == pytest.approx((1 - share) ** 2 * float(qd.cnd(q, p)), abs=20 * EPS)


@pytest.mark.claim("N10.11")
@given(st.integers(0, 1000), st.floats(0, 1))
def test_noisy_text_is_pareto_optimal(seed, share):
    r"""KKT: inside the simplex, $-2 q_i - w p_i$ is one number, w = -2 (1 - share)."""
    p = np.random.default_rng(seed).dirichlet(np.full(16, 0.3))
    q = qd.mix(p, np.full(16, 1 / 16), share)
    assert np.ptp(-2 * q + 2 * (1 - share) * p) <= 10 * EPS


@pytest.mark.claim("N10.12")
def test_sampling_takes_over_with_the_order():
    sentences = list(imdb(1))[::-8]
    ours, theirs = sentences[::2], sentences[1::2]
    relative, unseen = [], []
    for n in (1, 2, 3, 4):
        q, p = frequencies(ours, n), frequencies(theirs, n)
        norm = sum(x**2 for x in p.values())
        apart = sum((q.get(g, 0) - p.get(g, 0)) ** 2 for g in q.keys() | p.keys())
        relative.append(apart / norm)
        unseen.append(sum(x for g, x in q.items() if g not in p))
    assert (np.diff(relative) > 0).all()
    assert (np.diff(unseen) > 0).all()


@pytest.mark.claim("N10.14")
def test_equal_bigrams_and_other_unigrams():
    space = qd.TextSpace(vocab_size=2, lengths=3)
    aba, bab = np.eye(space.num_texts)[space.index(np.array([[0, 1, 0], [1, 0, 1]]))]
    values = [
        float(
            qd.cnd(space.ngram_distribution(aba, n), space.ngram_distribution(bab, n))
        )
        for n in (1, 2, 3)
    ]
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
    assert frequencies(crossed, 1) == frequencies(both, 1)
    assert frequencies(crossed, 2) == frequencies(both, 2)


@pytest.mark.claim("N10.16")
@pytest.mark.parametrize("n", [1, 2])
def test_scoring_a_resample_on_its_source_halves_the_floor(oracles, n):
    space, _, p = oracles
    size, repeats = 25, 400
    _, spread = moments(space, np.asarray(p), n)
    rng = np.random.default_rng(n)
    found = np.empty((repeats, 2))
    for row in found:
        references = draw(rng, space, p, size)
        resampled = references[rng.integers(size, size=size)]
        row[:] = (
            cnd(resampled, references, n, "plug-in"),
            cnd(draw(rng, space, p, size), references, n, "plug-in"),
        )
    # The spread of a sample of S sentences is (S - 1) / S of the source's.
    expected = spread / size * np.array([(size - 1) / size, 2])
    error = found.std(axis=0, ddof=1) / repeats**0.5
    assert (abs(found.mean(axis=0) - expected) <= 4 * error).all()


@pytest.mark.claim("N10.17")
def test_words_and_characters_rank_two_candidates_in_opposite_ways():
    references, shuffled = ["ab cd"], ["cd ab"]
    noisy = ["ab cd", "xx yy", "xx yy", "xx yy"]
    assert cnd(shuffled, references, 2, "plug-in") == 2
    assert cnd(noisy, references, 2, "plug-in") == 1.125  # 2 (3/4)^2
    letters = [list(map(list, x)) for x in (references, shuffled, noisy)]
    assert cnd(letters[1], letters[0], 2, "plug-in") == 0.25  # four of eight, 1/4 apart
    assert cnd(letters[2], letters[0], 2, "plug-in") == 0.28125  # eight, 3/16 apart


# -- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize("metric", [coverage_rate, cnd, jaccard_index])
def test_bad_input(as_a_user, metric):
    real, table = ["a b"], ngram_counts(["a b"], 1)
    refused(
        ("at least one sentence", metric, [], real, 1),
        ("at least one sentence", metric, real, [""], 1),
        ("expected 1 or more, got 0", metric, real, real, 0),
        ("no sentence has 2 tokens: the longest has 1", metric, real, ["a", "b"], 2),
        ("no sentence has 1000000000000 tokens", metric, real, ["a"], 10**12),
        ("of order 2, got one of 1", metric, table, real, 2),
    )
    refused(
        ("got one str: put the sentence in a list", metric, "a b", real, 1),
        ("got one str", metric, real, "a b", 1),
        ("got NoneType", metric, real, None, 1),
        ("expected an integer, got float", metric, real, real, 1.0),
        error=TypeError,
    )


def test_other_metrics_refuse_the_same(as_a_user):
    nrr, some = negative_repetition_rate, ["a b", "a"]
    known = '"plug-in", "pairs" or "sentence-pairs", got \'pair\''
    lone = "two sentences with 2 tokens, got one"
    refused(
        ("has 3 tokens", nrr, ["a b"], 3),
        ("expected 1 or more", ms_jaccard, ["a b"], ["a b"], 0),
        ("no sentence has 3", ms_jaccard, ["a b"], ["a b c"], 3),
        ("no sentence has 3", ms_jaccard, ["a b c"], ["a b"], 3),
        (known, nrr, some, 1, "pair"),
        *((known, f, some, some, 1, "pair") for f in (coverage_rate, cnd)),
        *((lone, nrr, some, 2, x) for x in ("pairs", "sentence-pairs")),
        *((lone, cnd, ["a b"], some, 2, x) for x in ("pairs", "sentence-pairs")),
    )
    refused(("got float", ms_jaccard, some, some, 1.5), error=TypeError)
    for estimator in ("pairs", "sentence-pairs"):
        assert coverage_rate(["a b"], ["a b"], 2, estimator) == 1


# -- imports -------------------------------------------------------------------------


def test_metrics_of_corpora_need_no_jax_and_little_of_the_rest():
    script = """
import sys
sys.modules["jax"] = sys.modules["jaxlib"] = None
from qdtheory.text import cnd
assert cnd(["a b"], ["a c"], 2, "plug-in") == 2
loaded = {m for m in sys.modules if m.startswith("qdtheory.")}
others = {"support"}
others |= {f"support.{name}" for name in ("layout", "packages", "records")}
loaded -= {f"qdtheory.{name}" for name in others}
assert all(m.startswith("qdtheory.text") for m in loaded), loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_evaluation_does_without_jax():
    code = (
        "import sys; import qdtheory.text.evaluation, qdtheory.text.cluster; "
        "print('jax' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "False\n", run.stderr
