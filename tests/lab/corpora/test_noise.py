"""The noise family and its discrepancies: against curves known in closed form."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lab.corpora import imdb, prepare
from lab.corpora.noise import (
    SHARES,
    add_noise,
    highest_coverage,
    noise_discrepancy,
    noise_family,
)
from referees.enumerated_batches import batches
from referees.ngram_counts import counted
from referees.nltk_bleu import nltk_scores, others
from refusals import refused

import qdtheory as qd
from qdtheory import text
from qdtheory.text import as_corpus, cnd, coverage_rate

approx = pytest.approx

REAL = [["a"] * 3] * 100
TEXTS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1)


def cn(n):
    """CR and NRR of an order, as functions on corpora."""
    return (
        lambda candidates, references: coverage_rate(candidates, references, n),
        lambda candidates: text.negative_repetition_rate(candidates, n, "plug-in"),
    )


def share_of(length):
    return lambda corpus: float(np.mean(corpus.lengths == length))


def is_three(candidates, references):
    return share_of(3)(candidates)


# -- the family ----------------------------------------------------------------------


@pytest.mark.claim("N10.18")
@pytest.mark.parametrize("length", [3, None])
def test_noise_replaces_a_share_of_the_sentences_and_those_of_a_smaller_one(length):
    rng = np.random.default_rng(0)
    lengths = rng.integers(8, 12, 50)
    corpus = as_corpus([rng.integers(1000, size=n).tolist() for n in lengths])
    everything, hit = list(add_noise(corpus, 1.0, length=length)), set()
    assert [len(noise) for noise in everything] == [length or n for n in lengths]
    for share in (0.0, 0.11, 0.6, 1.0):
        noisy, fewer = add_noise(corpus, share, length=length), hit
        hit = {i for i, sentence in enumerate(noisy) if sentence != corpus[i]}
        assert len(hit) == round(50 * share)
        assert hit >= fewer
        assert all(noisy[i] == everything[i] for i in hit)
    assert list(add_noise(corpus, 1.0, length=length, seed=1)) != everything


@pytest.mark.claim("N10.18")
def test_words_are_uniform_over_the_vocabulary():
    noise = add_noise(as_corpus(["a a a a b c d e"] * 4000), 1.0, length=5)
    counts = np.bincount(noise.tokens, minlength=5)
    assert counts.sum() == 20_000
    # Chi-square of 4 degrees of freedom: above 23.5 in one of 10,000 draws.
    assert ((counts - 4000) ** 2 / 4000).sum() < 23.5


# -- its discrepancies ---------------------------------------------------------------


@pytest.mark.claim("N10.19")
def test_all_ratios_where_the_curve_is_a_line():
    """Noise is 5 words long, so that U = 1 - V on the curve."""

    def diversity(corpus):
        return share_of(5)(corpus) + share_of(4)(corpus) / 2

    texts = [["a"] * 3] * 50 + [["a"] * 4] * 50, REAL
    found = noise_discrepancy(is_three, diversity, *texts, quality_range=2.0)
    assert found.shares.tolist() == list(SHARES)
    assert found.quality == approx(1 - found.shares, abs=1e-15)
    assert found.diversity == approx(found.shares, abs=1e-15)
    assert (found.candidate_quality, found.candidate_diversity) == (0.5, 0.25)
    ratios = (found.qdisc, found.drate, found.self_ratio, found.ref_ratio)
    assert ratios == approx((0.25, 0.125, 0.5, 1.25), rel=1e-14)
    assert found.reason is None


def test_the_best_of_several_stretches_counts_and_nothing_is_extrapolated():
    family = noise_family(REAL, shares=(0, 0.2, 0.4, 0.6))

    def found(rise, of_four):
        """V as a function of the share of noise, plus some for each 4 words."""

        def diversity(corpus):
            return rise(share_of(5)(corpus)) + of_four * share_of(4)(corpus)

        texts = [["a"] * 4] * 100, REAL
        return noise_discrepancy(is_three, diversity, *texts, family=family)

    hill = found(lambda x: x * (0.4 - x), 0.02)
    assert hill.qdisc == hill.drate == approx(0.9, rel=1e-14)  # .7 further down
    assert hill.self_ratio is None
    assert hill.reason == "no self_ratio: its unit is not positive"
    for beyond in (0.7, -0.7):
        none = found(float, beyond)
        assert none.qdisc is none.drate is none.self_ratio is none.ref_ratio is None
        assert "is outside the curve's, 0 to 0.6" in none.reason


@pytest.mark.claim("N10.23")
@settings(max_examples=15)
@given(st.integers(0, 100), st.sampled_from([1, 2, 3]), st.booleans())
def test_qdisc_of_cr_and_nrr_is_half_the_difference_of_cnd(seed, n, disjoint):
    """Renamed words keep V, so that candidates meet the curve at one of its points."""
    rng = np.random.default_rng(seed)
    references, source = (rng.integers(4, size=(60, 6)) ** 2 % 5 for _ in range(2))
    source = as_corpus((source if disjoint else references).tolist())
    family = noise_family(source, shares=(0, 0.1, 0.2, 0.4))
    at = family.corpora[2]
    renamed = dict(zip(source.vocabulary, np.roll(source.vocabulary, 1).tolist()))
    candidates = [[renamed[word] for word in sentence] for sentence in at]
    found = noise_discrepancy(*cn(n), candidates, references.tolist(), family=family)
    assume((np.diff(found.diversity) > 0).all())
    here, there = (cnd(x, references.tolist(), n, "plug-in") for x in (candidates, at))
    assert found.qdisc == approx((here - there) / 2, abs=1e-13)


@pytest.mark.claim("N10.24", "N10.25")
@pytest.mark.parametrize("estimator", ["plug-in", "pairs"])
def test_the_floor_is_the_sampling_error_that_the_family_shares_with_r(estimator):
    """Half of CND(C, R) - CND(F, R), over all samples of three one-word texts.

    Of f = tr Cov / S all for F = R, also by pairs, and nothing for a third part; about
    half for a resample, which has 1 - 1 / S of the spread of its source.
    """
    p, size = np.array([0.7, 0.3]), 3
    texts, chances = batches(p, size)
    samples = [as_corpus([[word] for word in sample]) for sample in texts.tolist()]
    apart = np.array([[cnd(f, r, 1, estimator) for f in samples] for r in samples])
    again = [batches(np.bincount(r, minlength=2) / size, size)[1] for r in texts]
    half = (1 + 1 / size) / 2 if estimator == "plug-in" else 0.5
    for family, share in ((np.eye(8), 1), (np.array(again), half), (chances, 0)):
        found = chances @ ((chances - family) * apart).sum(axis=1) / 2
        assert found == approx(share * (1 - p @ p) / size, abs=1e-14)


@pytest.mark.claim("N10.33")
@pytest.mark.parametrize("share", [0.01, 0.08, 0.19])
def test_a_chord_of_the_curve_hides_quality(share):
    """The exact curve of noise is a parabola in the plane, and concave."""
    p, u = np.random.default_rng(0).dirichlet(np.full(16, 0.3)), np.full(16, 1 / 16)
    quality, diversity = [], []
    for q in (p + e * (u - p) for e in (0.0, share, 0.2)):
        quality.append(float(qd.coverage_rate(q, p)))
        diversity.append(float(qd.negative_repetition_rate(q)))
    on_chord = np.interp(diversity[1], diversity[::2], quality[::2])
    # U falls by e D and V rises by (2 e - e^2) D, with D = CND(u, p).
    expected = share * (0.2 - share) / 1.8 * float(qd.cnd(u, p))
    assert quality[1] - on_chord == approx(expected, rel=1e-6)
    # U falls by e D and V rises by (2 e - e^2) D, with D = CND(u, p).


# -- reviews, by NLTK and by counting ------------------------------------------------


def nltk_mean(candidates, references_of):
    """The means of NLTK's BLEU-2 and BLEU-3."""
    return nltk_scores(references_of, candidates, 3, None)[:, 1:].mean(axis=0)


def rates(texts, references):
    """CR and NRR of bigrams by hand."""
    q, p = counted(texts, 2), counted(references, 2)
    total = q.total()
    cr = sum(count * p[g] for g, count in q.items()) / total / p.total()
    return cr, -sum(count**2 for count in q.values()) / total**2


@pytest.mark.claim("N10.20", "N10.22", "N10.26")
def test_bleu_pays_for_the_references_more_than_cr_does():
    rule = {"min_count": 50, "rare": "unk", "max_unknown": 4, "min_length": 10}
    corpus = prepare(imdb(1), **rule, seed=0)
    candidates, references, third = (list(corpus[40 * k :][:40]) for k in range(3))
    source = corpus[40:80][np.random.default_rng(0).integers(40, size=40)]
    shares, against = (0.0, 0.2, 0.4, 0.6, 0.8), [references] * 40
    family = [list(add_noise(source, share, length=None)) for share in shares]
    u = [nltk_mean(f, against)[0] for f in family]
    *v, level = (-nltk_mean(f, others(f))[0] for f in (*family, candidates))
    own = nltk_mean(candidates, against)[0]
    assert v[0] < level < v[-1]
    drate = np.interp(level, v, u) - own
    # Copies score 1 whatever they are; other real text scores as the candidates do.
    assert u[:3] == approx([1, 0.8, 0.6], abs=0.01)
    assert abs(nltk_mean(third, against)[0] - own) < 0.08 < 0.15 < drate
    for length in (3, 5, None):  # noise of any length has no BLEU
        noise = list(add_noise(corpus[40:80], 1.0, length=length))
        assert nltk_mean(noise, against)[1] < 0.01

    u, v = np.transpose([rates(f, references) for f in family])
    own, level = rates(candidates, references)
    assert v[0] < level < v[-1]
    best = max(rates([sentence], references)[0] for sentence in references)
    assert 0 < (np.interp(level, v, u) - own) / best < 0.8 * drate


@pytest.mark.claim("N10.21")
def test_the_range_of_cr_falls_with_the_order_and_sampling_error_does_not():
    best, error, texts = [], [], list(imdb(1))[::5]
    for n in (2, 3, 4, 5):
        grams = [list(zip(*(t[k:] for k in range(n)), strict=False)) for t in texts]
        p = Counter(g for sentence in grams for g in sentence)
        each = [sum(p[g] for g in x) / len(x) for x in grams if x]
        best.append(max(each) / p.total())
        # Pairs of occurrences within one sentence, as in the bias of NRR.
        within = sum(c**2 for x in grams for c in Counter(x).values())
        error.append(within / p.total() ** 2)
    assert (np.diff(best) < 0).all()
    assert best[0] > 5 * best[-1]
    assert max(error) < 1.5 * min(error)


@given(TEXTS, st.integers(1, 4))
def test_highest_coverage_is_that_of_the_best_sentence(references, n):
    assume(max(map(len, references)) >= n)
    each = [coverage_rate([s], references, n) for s in references if len(s) >= n]
    assert highest_coverage(references, n) == approx(max(each), rel=1e-13)


# -- bad input -----------------------------------------------------------------------


def test_bad_input(as_a_user):
    def compared(**options):
        metrics = dict(zip(("quality", "diversity"), cn(1)))
        texts = {"candidates": ["a b", "b a"], "references": ["a b", "b b"]}
        return partial(noise_discrepancy, **metrics | texts | options)

    def family(*shares):
        return partial(noise_family, texts, shares=shares)

    nan, texts, length = float("nan"), ["a b"], partial(partial, add_noise, ["a"], 0.5)
    share, whole = "share: expected a number from 0 to 1, got", "expected a whole numb"
    refused(
        *((f"{share} {x!r}", add_noise, texts, x) for x in (-0.1, 1.5, nan, "half")),
        (f"length: {whole}er from 1 on, or None, got 0", length(length=0)),
        ("at least one sentence", add_noise, [], 0.5),
        ("got 1 and 2; diversity", compared(candidates=["a"])),
        ("quality_range: expected a p", compared(quality_range=0.0)),
        ("finite number, got nan", compared(diversity=lambda c: nan)),
        ("from 0 to at most 1, 0.2 among them", family(0.0, 0.1)),
        *(("increase", family(*x)) for x in ((), (0.1, 0.2), (0.0, 0.2, 0.2))),
        *(("increase", family(0.0, 0.2, x)) for x in (1.2, nan)),
        ("no sentence has 3 tokens", highest_coverage, ["a b"], 3),
    )
    refused(
        ("got one str", add_noise, "a b", 0.5),
        ("got one str", compared(references="a b")),
        ("return a number, got a str", compared(quality=lambda c, r: "high")),
        error=TypeError,
    )
