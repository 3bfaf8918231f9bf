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
from referees.ngram_counts import counted
from referees.nltk_bleu import nltk_scores, others
from referees.sample_means import moments
from refusals import refused

import qdtheory as qd
from qdtheory.text import (
    Corpus,
    as_corpus,
    cnd,
    coverage_rate,
    negative_repetition_rate,
)

texts = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=8
)


def cn(n):
    """CR and NRR of an order, as functions on corpora."""
    return (
        lambda candidates, references: coverage_rate(candidates, references, n),
        lambda candidates: negative_repetition_rate(candidates, n, "plug-in"),
    )


# -- the family ----------------------------------------------------------------------


@given(texts, st.floats(0, 1), st.sampled_from([1, 3, None]), st.integers(0, 9))
def test_noise_replaces_a_share_of_the_sentences(texts, share, length, seed):
    noisy = add_noise(texts, share, length=length, seed=seed)
    everything = add_noise(texts, 1.0, length=length, seed=seed)
    corpus = as_corpus(texts)
    assert len(noisy) == len(texts)
    assert noisy.vocabulary == corpus.vocabulary
    assert noisy.lengths.sum() == len(noisy.tokens) == noisy.offsets[-1]
    # Each sentence is the real one or the noise of its place; the noise has a length
    # of its own, or that of the real one.
    number = round(share * len(texts))
    for real, found, noise in zip(corpus, noisy, everything, strict=True):
        assert found in (real, noise)
        assert len(noise) == (length or len(real))
    assert sum(a != b for a, b in zip(corpus, noisy, strict=True)) <= number
    assert sum(a != b for a, b in zip(everything, noisy, strict=True)) <= (
        len(texts) - number
    )


@pytest.mark.claim("N10.18")
def test_share_0_is_the_text_and_a_larger_share_keeps_the_noise_of_a_smaller():
    rng = np.random.default_rng(0)
    corpus = as_corpus(rng.integers(1000, size=(50, 8)).tolist())
    assert list(add_noise(corpus, 0.0)) == list(corpus)
    hit = [
        {i for i, s in enumerate(add_noise(corpus, e)) if s != corpus[i]}
        for e in (0.1, 0.2, 0.6, 1.0)
    ]
    assert [len(part) for part in hit] == [5, 10, 30, 50]
    assert hit[0] < hit[1] < hit[2] < hit[3]
    assert {
        i for i, s in enumerate(add_noise(corpus, 0.2, seed=1)) if s != corpus[i]
    } != hit[1]


@pytest.mark.claim("N10.18")
def test_words_are_uniform_over_the_vocabulary():
    corpus = as_corpus(["a a a a b c d e"] * 4000)
    noise = add_noise(corpus, 1.0, length=5)
    counts = np.bincount(noise.tokens, minlength=5)
    assert counts.sum() == 20_000
    # Chi-square of 4 degrees of freedom: above 23.5 in one of 10,000 draws.
    assert ((counts - 4000) ** 2 / 4000).sum() < 23.5


# -- its discrepancies ---------------------------------------------------------------


def of_length(three=0, four=0):
    """Sentences of three and of four words."""
    return [["a"] * 3] * three + [["a"] * 4] * four


WORDS = tuple(range(10_000))
FINE = (0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
REAL = of_length(three=100)


def share_of(length):
    return lambda corpus: float(np.mean(corpus.lengths == length))


def iid_corpus(rng, num_words, size, length, times):
    """Corpora of independent words, uniform over the first of 10,000."""
    offsets = np.arange(0, size * length + 1, length)
    return [
        Corpus(rng.integers(num_words, size=size * length), offsets, WORDS)
        for _ in range(times)
    ]


def is_three(candidates, references):
    return share_of(3)(candidates)


@pytest.mark.claim("N10.19")
def test_all_ratios_where_the_curve_is_a_line():
    """Noise is 5 words long, so that U = 1 - V on the curve."""
    found = noise_discrepancy(
        is_three,
        lambda corpus: share_of(5)(corpus) + share_of(4)(corpus) / 2,
        of_length(three=50, four=50),
        REAL,
        quality_range=2.0,
    )
    assert found.shares.tolist() == list(SHARES)
    assert found.quality == pytest.approx(1 - found.shares, abs=1e-15)
    assert found.diversity == pytest.approx(found.shares, abs=1e-15)
    assert (found.candidate_quality, found.candidate_diversity) == (0.5, 0.25)
    ratios = (found.qdisc, found.drate, found.self_ratio, found.ref_ratio)
    assert ratios == pytest.approx((0.25, 0.125, 0.5, 1.25), rel=1e-14)
    assert found.reason is None


@pytest.mark.parametrize("sign", [1, -1])
def test_nothing_is_extrapolated(sign):
    found = noise_discrepancy(
        is_three,
        lambda corpus: share_of(5)(corpus) + sign * share_of(4)(corpus),
        of_length(three=30, four=70),
        REAL,
        family=noise_family(REAL, shares=(0, 0.2, 0.6)),
    )
    assert found.candidate_diversity == sign * 0.7
    assert found.qdisc is found.drate is found.self_ratio is found.ref_ratio is None
    assert "is outside the curve's, 0 to 0.6" in found.reason


def test_the_best_of_several_stretches_counts():
    def diversity(corpus):
        x = share_of(5)(corpus)
        return x * (0.4 - x) + 0.02 * share_of(4)(corpus)

    found = noise_discrepancy(
        is_three,
        diversity,
        of_length(four=100),
        REAL,
        family=noise_family(REAL, shares=(0, 0.2, 0.4, 0.6)),
    )
    assert found.qdisc == pytest.approx(0.9, rel=1e-14)  # not .7, on the way down
    assert found.drate == found.qdisc
    assert found.self_ratio is None
    assert found.reason == "no self_ratio: its unit is not positive"


@pytest.mark.claim("N10.23")
@settings(max_examples=30)
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
    half = (
        cnd(candidates, references.tolist(), n, "plug-in")
        - cnd(at, references.tolist(), n, "plug-in")
    ) / 2
    assert found.qdisc == pytest.approx(half, abs=1e-13)  # differences of rates < 1


@pytest.mark.slow
@pytest.mark.claim("N10.24")
@pytest.mark.parametrize(
    ("made_of", "share"), [("references", 1), ("resample", 0.5), ("third part", 0)]
)
def test_the_floor_of_cr_and_nrr(made_of, share):
    r"""QDisc is half of CND(C, R) - CND(F, R): on average a share of tr Cov / S.

    F has as much of the sampling error of R as it takes sentences from it.
    """
    n, size, repeats = 2, 60, 250
    space = qd.TextSpace(vocab_size=4, lengths=4)
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(space.num_texts, 0.1))
    _, spread = moments(space, p, n)

    def draw():
        return rng.choice(space.num_texts, size, p=p)

    found = np.empty(repeats)
    for i in range(repeats):
        candidates, references = draw(), draw()
        source = {
            "references": references,
            "resample": rng.choice(references, size),
            "third part": draw(),
        }[made_of]
        c, r, f = (
            as_corpus(space.tokens[x].tolist())
            for x in (candidates, references, source)
        )
        found[i] = (cnd(c, r, n, "plug-in") - cnd(f, r, n, "plug-in")) / 2
    error = found.std(ddof=1) / repeats**0.5
    # A resample has 1 - 1 / S of the spread of its source.
    assert found.mean() == pytest.approx(
        share * spread / size, abs=4 * error + spread / size**2
    )
    assert 8 * error < spread / size


def floor(num_words, repeats, estimator, resampled):
    """Mean QDisc of CR and NRR, its error, and f, where words are independent."""
    size, length = 200, 5
    rng = np.random.default_rng(num_words)
    found = []
    for seed in range(repeats):
        candidates, references = iid_corpus(rng, num_words, size, length, 2)
        source = references[rng.integers(size, size=size)] if resampled else references
        value = noise_discrepancy(
            cn(1)[0],
            lambda x: negative_repetition_rate(x, 1, estimator),
            candidates,
            references,
            family=noise_family(source, shares=FINE, length=length, seed=seed),
        ).qdisc
        if value is not None:
            found.append(value)
    error = np.std(found, ddof=1) / len(found) ** 0.5
    return np.mean(found), error, (1 - 1 / num_words) / (size * length)


@pytest.mark.slow
@pytest.mark.claim("N10.24")
@pytest.mark.parametrize("num_words", [50, 500])
def test_the_floor_of_a_resample(num_words):
    r"""$\sqrt{a (a + f)} - a$, with a one over the number of words."""
    found, error, f = floor(num_words, 80, "plug-in", resampled=True)
    a = 1 / num_words
    # Words of the noise repeat each other too: a few % of f.
    assert found == pytest.approx(np.sqrt(a * (a + f)) - a, abs=4 * error + 0.1 * f)
    assert 4 * error < 0.25 * f


@pytest.mark.claim("N10.25")
def test_the_pair_form_leaves_the_floor():
    found, error, f = floor(20, 60, "pairs", resampled=False)
    assert found == pytest.approx(f, abs=4 * error + 0.1 * f)
    assert 4 * error < 0.3 * f


@pytest.mark.claim("N10.33")
@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.01, 0.19))
def test_a_chord_of_the_curve_hides_quality(seed, share):
    """The exact curve of noise is a parabola in the plane, and concave."""
    p = np.random.default_rng(seed).dirichlet(np.full(16, 0.3))
    u = np.full(16, 1 / 16)
    mixed = [qd.mix(p, u, e) for e in (0.0, share, 0.2)]
    quality = [float(qd.coverage_rate(q, p)) for q in mixed]
    diversity = [float(qd.negative_repetition_rate(q)) for q in mixed]
    on_chord = np.interp(diversity[1], diversity[::2], quality[::2])
    # U falls by e D and V rises by (2 e - e^2) D, with D = CND(u, p).
    expected = share * (0.2 - share) / 1.8 * float(qd.cnd(u, p))
    assert quality[1] - on_chord == pytest.approx(expected, rel=1e-6)


# -- BLEU, by NLTK -------------------------------------------------------------------


@pytest.fixture(scope="module")
def reviews():
    """Three parts of 40 sentences."""
    rule = {"min_count": 50, "rare": "unk", "max_unknown": 4, "min_length": 10}
    corpus = prepare(imdb(1), **rule, seed=0)
    return [corpus[40 * k : 40 * (k + 1)] for k in range(3)]


def nltk_mean(candidates, references, n):
    """The mean of NLTK's BLEU-n against all references."""
    references_of = [references] * len(candidates)
    return nltk_scores(references_of, candidates, n, None)[:, -1].mean()


def nltk_self_bleu(candidates, n):
    return nltk_scores(others(candidates), candidates, n, None)[:, -1].mean()


def rates(texts, references):
    """CR and NRR of bigrams by hand."""
    q, p = counted(texts, 2), counted(references, 2)
    total = q.total()
    cr = sum(count * p[g] for g, count in q.items()) / total / p.total()
    return cr, -sum(count**2 for count in q.values()) / total**2


@pytest.mark.claim("N10.20", "N10.26")
def test_bleu_pays_for_the_references_more_than_cr_does(reviews):
    candidates, references, third = map(list, reviews)
    again = np.random.default_rng(0).integers(40, size=40)
    family = [
        list(add_noise(reviews[1][again], share, length=None))
        for share in (0.0, 0.2, 0.4, 0.6, 0.8)
    ]
    u = [nltk_mean(f, references, 2) for f in family]
    v = [-nltk_self_bleu(f, 2) for f in family]
    own, level = nltk_mean(candidates, references, 2), -nltk_self_bleu(candidates, 2)
    assert v[0] < level < v[-1]
    drate = np.interp(level, v, u) - own
    # Copies score 1 whatever they are; other real text scores as the candidates do.
    assert u[:3] == pytest.approx([1, 0.8, 0.6], abs=0.01)
    assert abs(nltk_mean(third, references, 2) - own) < 0.08 < 0.15 < drate

    u, v = np.transpose([rates(f, references) for f in family])
    own, level = rates(candidates, references)
    assert v[0] < level < v[-1]
    best = max(rates([text], references)[0] for text in references)
    assert 0 < (np.interp(level, v, u) - own) / best < 0.8 * drate


@pytest.mark.claim("N10.22")
@pytest.mark.parametrize("length", [3, 5, None])
def test_noise_of_any_length_has_no_bleu(reviews, length):
    noise = list(add_noise(reviews[1], 1.0, length=length))
    assert nltk_mean(noise, list(reviews[1]), 3) < 0.01


@pytest.mark.claim("N10.21")
def test_the_range_of_cr_falls_with_the_order_and_sampling_error_does_not():
    texts = list(imdb(1))[::5]
    best, error = [], []
    for n in (2, 3, 4, 5):
        grams = [list(zip(*(t[k:] for k in range(n)), strict=False)) for t in texts]
        p = Counter(g for text in grams for g in text)
        total = p.total()
        best.append(max(sum(p[g] for g in x) / len(x) for x in grams if x) / total)
        # Pairs of occurrences within one sentence, as in the bias of NRR.
        within = sum(c**2 for text in grams for c in Counter(text).values())
        error.append(within / total**2)
    assert (np.diff(best) < 0).all()
    assert best[0] > 5 * best[-1]
    assert max(error) < 1.5 * min(error)


# -- the range of CR -----------------------------------------------------------------


@given(texts, st.integers(1, 4))
def test_highest_coverage_is_that_of_the_best_sentence(references, n):
    assume(max(map(len, references)) >= n)
    each = [coverage_rate([s], references, n) for s in references if len(s) >= n]
    assert highest_coverage(references, n) == pytest.approx(max(each), rel=1e-13)


# -- bad input -----------------------------------------------------------------------


def noisy(texts=("a b",), share=0.5, **options):
    return add_noise(texts, share, **options)


def compared(**options):
    quality, diversity = cn(1)
    arguments = {"quality": quality, "diversity": diversity}
    arguments |= {"candidates": ["a b", "b a"], "references": ["a b", "b b"]}
    return noise_discrepancy(**(arguments | options))


def family(*shares):
    return noise_family(["a b"], shares=shares)


def test_bad_input(as_a_user):
    nan, inf = float("nan"), float("inf")
    refused(
        *(
            (f"share: expected a number from 0 to 1, got {x!r}", noisy, ("a b",), x)
            for x in (-0.1, 1.5, nan, "half")
        ),
        (
            "length: expected a whole number from 1 on, or None, got 0",
            partial(noisy, length=0),
        ),
        ("got 2.5", partial(noisy, length=2.5)),
        ("at least one sentence", noisy, []),
        ("got 1 and 2; diversity", partial(compared, candidates=["a"])),
        ("quality_range: expected a p", partial(compared, quality_range=0.0)),
        ("got nan", partial(compared, quality_range=nan)),
        ("finite number, got inf", partial(compared, diversity=lambda c: inf)),
        ("from 0 to at most 1, 0.2 among them", family, 0.0, 0.1),
        ("from 0", family, 0.1, 0.2),
        ("increase", family, 0.0, 0.2, 0.2),
        ("at most 1", family, 0.0, 0.2, 1.2),
        ("increase", family, 0.0, nan, 0.2),
        ("increase", family),
        ("no sentence has 3 tokens", highest_coverage, ["a b"], 3),
    )
    refused(
        ("got one str", noisy, "a b"),
        ("got one str", partial(compared, references="a b")),
        ("return a number, got a str", partial(compared, quality=lambda c, r: "high")),
        error=TypeError,
    )
