"""Pooled n-gram metrics: against counting by hand and against the exact wing."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import qdtheory as qd
from qdtheory.text import (
    as_corpus,
    cnd,
    coverage_rate,
    negative_repetition_rate,
    ngram_counts,
)

texts = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=8
)
orders = st.integers(1, 4)
EPS = np.finfo(float).eps


def frequencies(texts, n) -> dict:
    """Counts over total, one n-gram at a time."""
    counts = Counter(
        tuple(text[i : i + n]) for text in texts for i in range(len(text) - n + 1)
    )
    return {ngram: count / counts.total() for ngram, count in counts.items()}


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
    assert table.total == sum(max(len(text) - n + 1, 0) for text in texts)
    assert table.ngrams.tolist() == sorted(table.ngrams.tolist())


@given(texts, texts, orders)
def test_metrics_agree_with_a_counter(candidates, references, n):
    assume_long_enough(n, candidates, references)
    q, p = frequencies(candidates, n), frequencies(references, n)
    union = q.keys() | p.keys()
    # At most 40 terms in [0, 1], each rounded a few times.
    close = {"rel": 0, "abs": 100 * EPS}
    assert coverage_rate(candidates, references, n) == pytest.approx(
        sum(q.get(g, 0) * p.get(g, 0) for g in union), **close
    )
    assert negative_repetition_rate(candidates, n) == pytest.approx(
        -sum(x**2 for x in q.values()), **close
    )
    assert cnd(candidates, references, n) == pytest.approx(
        sum((q.get(g, 0) - p.get(g, 0)) ** 2 for g in union), **close
    )


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
    assert cnd(candidates, references, n) == pytest.approx(expected, rel=300 * EPS)


def test_one_word():
    corpora = [["a"] * 100], [["a"] * 70]
    assert cnd(*corpora, 70) == 0.0
    assert (
        coverage_rate(*corpora, 70) == 1.0 == -negative_repetition_rate(corpora[0], 70)
    )


def test_ngrams_do_not_cross_sentences():
    assert ngram_counts(["a b", "c d"], 2).counts.tolist() == [1, 1]
    part = as_corpus(["a b c", "b c", "a b"])[1:]
    assert negative_repetition_rate(part, 2) == -0.5


# -- properties ----------------------------------------------------------------------


@given(texts, texts, orders)
def test_coverage_is_symmetric(candidates, references, n):
    assume_long_enough(n, candidates, references)
    there = coverage_rate(candidates, references, n)
    back = coverage_rate(references, candidates, n)
    # The same products, summed in another order.
    assert there == pytest.approx(back, rel=40 * EPS)
    assert 0 <= there <= 1


@pytest.mark.claim("N10.3")
@given(texts, texts, orders)
def test_cnd_is_the_squared_distance_of_cr_and_nrr(candidates, references, n):
    assume_long_enough(n, candidates, references)
    expected = (
        -negative_repetition_rate(candidates, n)
        - negative_repetition_rate(references, n)
        - 2 * coverage_rate(candidates, references, n)
    )
    assert cnd(candidates, references, n) == pytest.approx(expected, abs=100 * EPS)


@given(texts, texts, orders)
def test_cnd_is_zero_iff_the_frequencies_agree(candidates, references, n):
    assume_long_enough(n, candidates, references)
    value = cnd(candidates, references, n)
    if frequencies(candidates, n) == frequencies(references, n):
        assert value == 0
    else:  # two fractions with denominators up to 40 differ by 1/1600 at least
        assert value >= 2 / 1600**2


@given(texts, orders)
def test_repetition_lies_between_a_point_mass_and_uniform(texts, n):
    assume_long_enough(n, texts)
    distinct = len(ngram_counts(texts, n).counts)
    value = negative_repetition_rate(texts, n)
    assert -1 - EPS <= value <= -1 / distinct + 40 * EPS


@given(texts, texts, orders, st.integers(2, 4))
def test_copies_of_the_whole_corpus_change_nothing(candidates, references, n, times):
    assume_long_enough(n, candidates, references)
    assert cnd(candidates * times, candidates, n) == 0
    assert coverage_rate(candidates * times, references, n) == pytest.approx(
        coverage_rate(candidates, references, n), rel=40 * EPS
    )


def test_cnd_keeps_its_digits_near_zero():
    """One token of 10^6 differs: by CR and NRR only four digits would be left."""
    big = [["a"] * 1000] * 1000
    other = [["b"] + ["a"] * 999, *big[1:]]
    # 1 - 10^-6 is rounded to 10^-16, which is 10^-10 of the difference.
    assert cnd(other, big, 1) == pytest.approx(2e-12, rel=1e-9)


def test_disjoint_vocabularies():
    assert coverage_rate(["a b"], ["c d"], 1) == 0
    assert cnd(["a a"], ["b b"], 2) == 2


def test_a_table_stands_for_its_texts():
    candidates, references = ["a b a", "c"], ["b a", "c b a"]
    tables = ngram_counts(candidates, 2), ngram_counts(references, 2)
    assert ngram_counts(tables[0], 2) is tables[0]
    assert cnd(*tables, 2) == cnd(candidates, references, 2)
    assert coverage_rate(tables[0], references, 2) == coverage_rate(
        candidates, references, 2
    )


# -- against the exact wing ----------------------------------------------------------


def corpus_of(space, index):
    rows = space.tokens[index]
    return as_corpus([row[row >= 0].tolist() for row in rows])


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
    assert negative_repetition_rate(candidates, n) == pytest.approx(
        float(qd.negative_repetition_rate(exact_q)), **close
    )
    assert cnd(candidates, references, n) == pytest.approx(
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


@pytest.mark.parametrize("n", [1, 2, 3])
def test_samples_converge_to_the_exact_wing(oracles, n):
    r"""$|\Vert\hat p-\hat q\Vert-\Vert p-q\Vert|\le(1+\sqrt{2\log(2/d)})\,2S^{-1/2}$.

    It holds with probability 1 - d whatever the vocabulary; the same bound for one
    norm gives NRR, and both give CR = (|q|^2 + |p|^2 - |q - p|^2) / 2.
    """
    space, q, p = oracles
    exact_q, exact_p = space.ngram_distribution(q, n), space.ngram_distribution(p, n)
    for size in (100, 10_000):
        rng = np.random.default_rng(n)
        candidates, references = (draw(rng, space, x, size) for x in (q, p))
        rate = (1 + np.sqrt(2 * np.log(2 / 1e-9))) * size**-0.5
        assert np.sqrt(cnd(candidates, references, n)) == pytest.approx(
            float(qd.cnd(exact_q, exact_p)) ** 0.5, abs=2 * rate
        )
        assert np.sqrt(-negative_repetition_rate(candidates, n)) == pytest.approx(
            float(-qd.negative_repetition_rate(exact_q)) ** 0.5, abs=rate
        )


def moments(space, q, n):
    """The n-gram distribution, and tr Cov of one text's n-gram frequencies."""
    ngrams = space.ngrams(n)
    rows = np.stack([(ngrams == g).mean(axis=1) for g in range(space.vocab_size**n)])
    mean = rows @ q
    return mean, float(((rows - mean[:, None]) ** 2 @ q).sum())


@pytest.mark.claim("N10.7")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_plug_in_bias(oracles, n):
    r"""NRR is low by tr Cov / S, CND high by the sum of both sides', CR unbiased."""
    space, q, p = oracles
    (mean_q, spread_q), (mean_p, spread_p) = (
        moments(space, np.asarray(x), n) for x in (q, p)
    )
    size, size_p, repeats = 20, 30, 400
    rng = np.random.default_rng(n)
    found = np.empty((repeats, 3))
    for row in found:
        candidates, references = draw(rng, space, q, size), draw(rng, space, p, size_p)
        row[:] = (
            coverage_rate(candidates, references, n),
            negative_repetition_rate(candidates, n),
            cnd(candidates, references, n),
        )
    expected = np.array(
        [
            mean_q @ mean_p,
            -(mean_q @ mean_q) - spread_q / size,
            ((mean_q - mean_p) ** 2).sum() + spread_q / size + spread_p / size_p,
        ]
    )
    error = found.std(axis=0, ddof=1) / repeats**0.5
    assert (abs(found.mean(axis=0) - expected) <= 4 * error).all()
    # The bias is no rounding: without it NRR and CND miss by more than 4 errors.
    bias = np.array([spread_q / size, spread_q / size + spread_p / size_p])
    assert (bias > 8 * error[1:]).all()


# -- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("a b", ["a b"], 1), TypeError, "got one str: put the sentence in a list"),
        ((["a b"], "a b", 1), TypeError, "got one str"),
        ((["a b"], None, 1), TypeError, "got NoneType"),
        (([], ["a b"], 1), ValueError, "at least one sentence"),
        ((["a b"], [""], 1), ValueError, "at least one sentence"),
        ((["a b"], ["a b"], 0), ValueError, "n: expected 1 or more, got 0"),
        ((["a b"], ["a b"], 1.0), TypeError, "n: expected an integer, got float"),
        ((["a b"], ["a", "b"], 2), ValueError, "no sentence has 2 tokens: .* has 1"),
        ((["a b"], ["a"], 10**12), ValueError, "no sentence has 1000000000000 tokens"),
        (
            (ngram_counts(["a b"], 1), ["a b"], 2),
            ValueError,
            "of order 2, got one of 1",
        ),
    ],
)
@pytest.mark.parametrize("metric", [coverage_rate, cnd])
def test_bad_input(as_a_user, metric, arguments, error, message):
    with pytest.raises(error, match=message):
        metric(*arguments)


def test_nrr_refuses_the_same(as_a_user):
    with pytest.raises(ValueError, match="no sentence has 3 tokens"):
        negative_repetition_rate(["a b"], 3)


# -- imports -------------------------------------------------------------------------


def test_the_text_wing_needs_numpy_and_jaxtyping_only():
    """Import it below an empty parent package, with the exact wing and JAX blocked."""
    script = f"""
import sys, types
package = types.ModuleType("qdtheory")
package.__path__ = [{str(Path(qd.__file__).parent)!r}]
sys.modules["qdtheory"] = package
sys.modules["jax"] = sys.modules["jaxlib"] = None
from qdtheory.text import cnd
assert cnd(["a b"], ["a c"], 2) == 2
loaded = {{m for m in sys.modules if m.startswith("qdtheory.")}}
assert all(m.startswith("qdtheory.text") for m in loaded), loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True)
