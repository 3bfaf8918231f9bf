"""Language-model scores: their limits, their arithmetic and their vocabulary."""

import subprocess
import sys
from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.corpora import (
    FittedModel,
    cross_entropy_of,
    fit_language_model,
    known_words,
    lm_score,
    reverse_lm_score,
)
from lab.corpora.lm_scores import _split
from lab.corpora.training import from_table, to_table, train
from refusals import refused

import qdtheory as qd
from qdtheory.text import as_corpus, jackknife_interval

SMALL = {"embedding_size": 8, "hidden_size": 16}
TINY = {"embedding_size": 4, "hidden_size": 4, "batch_size": 8}


def same(a, b):
    """Whether two models have the same parameters."""
    return all(map(np.array_equal, jax.tree.leaves(a), jax.tree.leaves(b)))


# -- limits --------------------------------------------------------------------------

SPACE = qd.TextSpace(vocab_size=3, lengths=(1, 2, 3, 4))
# A fitted model also knows "<unk>".
WIDER = qd.TextSpace(vocab_size=4, lengths=(1, 2, 3, 4))
ORACLE = qd.LSTMLanguageModel.random(jax.random.key(0), 4, 8, 8, sigma=1.5, end_token=3)
HOT = 1.5


def sample(key, size, temperature=1.0):
    drawn = ORACLE.sample(jax.random.key(key), size, 4, temperature)
    return from_table(drawn, (0, 1, 2))


def law(temperature=1.0):
    """The oracle's distribution, over the wider space."""
    p = np.zeros(WIDER.num_texts)
    p[(WIDER.tokens != 3).all(axis=1)] = ORACLE.probabilities(SPACE, temperature)
    return p


def cross_entropy(a, b):
    return -(a[a > 0] @ np.log(b[a > 0]))


@pytest.mark.slow
def test_scores_tend_to_cross_entropies():
    """The model is fitted to P, the oracle with hotter tokens; Q is the oracle."""
    samples = {"Q": sample(1, 5000), "P": sample(2, 5000, HOT)}
    laws, references = {"Q": law(), "P": law(HOT)}, sample(3, 5000, HOT)
    excess = {}
    for size in (300, 5000):
        fitted = fit_language_model(references[:size], **SMALL)
        p_fitted = np.asarray(fitted.model.probabilities(WIDER))
        for name, x in laws.items():
            exact = cross_entropy(x, p_fitted)
            found = cross_entropy_of(samples[name], fitted).per_text
            assert abs(found.value - exact) < 4 * found.standard_error
            excess[name, size] = exact - cross_entropy(x, laws["P"])
    # KL of P from its fit. A table of the frequencies of 120 texts would lose
    # 119 / (2 * 4500) = .013 nats, and .2 with 300 sentences.
    assert 0 < excess["P", 5000] < 0.03 < 0.1 < excess["P", 300]
    assert abs(excess["Q", 5000]) < 0.05 < excess["Q", 300]


# -- arithmetic ----------------------------------------------------------------------


def untrained(seed, max_length):
    """A model of 3 words and "<unk>"; nothing is fitted."""
    model = qd.LSTMLanguageModel.random(jax.random.key(seed), 5, 4, 4, 1.0, end_token=4)
    return FittedModel(model, ("a", "b", "c", "<unk>"), max_length, 1, 0.0)


sentences = st.lists(st.sampled_from("abcde"), min_size=1, max_size=9)
texts = st.lists(sentences, min_size=8, max_size=8)


@settings(max_examples=30)
@given(texts, st.sampled_from([3, 12]))
def test_scores_are_means_of_log_probabilities(texts, max_length):
    """In one table of the greatest length, rows and ends counted by hand."""
    texts = [*texts, ["b"] * 10]
    table = np.full((9, max(max_length, 10)), -1)
    ids = dict(zip("abcde", (0, 1, 2, 3, 3)))
    for row, text in zip(table, texts, strict=True):
        row[: len(text)] = [ids[word] for word in text]
    fitted = untrained(0, max_length)
    total = -float(fitted.model.log_probability(table).sum())
    words, ends = (table >= 0).sum(), (table[:, -1] < 0).sum()
    found = cross_entropy_of(texts, fitted)
    assert found.per_text.value == pytest.approx(total / 9, rel=1e-12)
    assert found.per_token.value == pytest.approx(total / (words + ends), rel=1e-12)
    assert found.unknown == pytest.approx((table == 3).sum() / words, rel=1e-12)


def test_empty_sentences_are_skipped():
    texts = [["a"], ["a", "b"], ["b", "a"], ["b"]] * 4
    several = [[], *texts[:9], [], *texts[9:]]
    model = qd.LSTMLanguageModel.random(jax.random.key(0), 4, 4, 4, end_token=3)
    fitted = FittedModel(model, ("a", "b", "<unk>"), 2, epochs=0, held_out=0.0)
    scores = [cross_entropy_of(some, fitted).per_text for some in (texts, several)]
    assert scores[0] == scores[1]
    models = [train(some, epochs=1, **TINY) for some in (texts, several)]
    assert same(*models)


def test_intervals_are_those_of_the_jackknife():
    rng = np.random.default_rng(0)
    texts = [list(rng.choice(list("abcd"), n)) for n in rng.integers(1, 7, 40)]
    fitted = untrained(1, 7)
    found = cross_entropy_of(texts, fitted)
    # That of a mean is the same formula; of a ratio, but for terms of order 1 / 40.
    for name, rel in (("per_text", 1e-9), ("per_token", 0.05)):
        slow = jackknife_interval(
            lambda c, name=name: getattr(cross_entropy_of(c, fitted), name).value,
            texts,
            num_groups=None,
        )
        fast = getattr(found, name)
        assert fast.value == pytest.approx(slow.value, rel=1e-12)
        assert fast.standard_error == pytest.approx(slow.standard_error, rel=rel)
        half = 1.959964 * fast.standard_error
        ends = fast.value - half, fast.value + half
        assert (fast.low, fast.high) == pytest.approx(ends, rel=1e-6)


# -- vocabulary ----------------------------------------------------------------------


@given(texts, st.integers(1, 4))
def test_known_words_are_those_that_occur_often(texts, min_count):
    words = [word for text in texts for word in text]
    expected = [w for w in dict.fromkeys(words) if words.count(w) >= min_count]
    if expected:
        assert known_words(texts, min_count) == tuple(expected)
        part = as_corpus([["z"], *texts])[1:]  # keeps "z" in its vocabulary
        assert known_words(part, min_count) == tuple(expected)


# -- fitting -------------------------------------------------------------------------

# One word is already named as the unknown ones will be.
REAL = as_corpus(["a", "a", "a b", "b a <unk>"] * 20)


@pytest.fixture(scope="module")
def fitted():
    return fit_language_model(REAL, **TINY, learning_rate=0.1)


def test_training_ends_before_held_out_sentences_lose(fitted):
    """The parameters are those of an unbroken training of as many epochs."""
    assert fitted.vocabulary == ("a", "b", "<unk>")
    assert fitted.epochs > 1  # so that a checkpoint was read
    rest, held_out = _split(REAL, seed=0)
    assert (len(rest), len(held_out)) == (72, 8)
    assert sorted([*rest, *held_out]) == sorted(REAL)
    table = to_table(held_out, 3)
    predictions = (table >= 0).sum() + (table[:, -1] < 0).sum()
    nll = []
    for epochs in range(1, fitted.epochs + 2):
        model = train(rest, epochs=epochs, **TINY, learning_rate=0.1)
        nll.append(-float(model.log_probability(table).sum()) / predictions)
        if epochs == fitted.epochs:
            assert same(model, fitted.model)
    assert fitted.held_out == pytest.approx(nll[-2], rel=1e-12)
    assert nll[-1] >= nll[-2] == min(nll[:-1])
    assert (np.diff(nll[:-1]) < 0).all()


def test_the_longest_sentence_is_trained_on():
    for seed in range(20):
        rest, _ = _split(as_corpus(["a"] * 9 + ["a b c"] + ["a"] * 9), seed)
        assert rest.lengths.max() == 3


# -- which side is fitted ------------------------------------------------------------


def test_a_mode_wins_by_the_one_score_and_loses_by_the_other(fitted):
    options = TINY | {"learning_rate": 0.1}
    mode, real = as_corpus(["a"] * 40), REAL
    quality = [lm_score(x, real, **options) for x in (mode, real)]
    assert quality[1] == cross_entropy_of(real, fitted)
    assert quality[0].per_text.value < quality[1].per_text.value
    both = [reverse_lm_score(x, real, **options) for x in (mode, real)]
    assert both[1] == quality[1]
    # Half of the references have words that never occur in the samples.
    assert both[0].per_text.value > 2 * both[1].per_text.value
    # They are known nevertheless.
    assert both[0].unknown == 20 / 140


# -- the extra, and bad input --------------------------------------------------------


def test_training_is_an_extra():
    """Absent, it is missed by its name, and only where it is needed."""
    code = (
        "import sys; sys.modules['optax'] = None\n"
        "from lab import corpora\n"
        "assert 'lab.corpora.training' not in sys.modules\n"
        "try: corpora.lm_score(['a'] * 20, ['a'] * 20)\n"
        "except ImportError as error: print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "qdtheory[train]"' in found.stdout


def test_bad_input(as_a_user):
    some = ["a b"] * 20
    refused(
        ("2 sentences to score", lm_score, ["a"], some),
        ("no word occurs 2 times", lm_score, some, ["a", "b"]),
        ("2 sentences to fit", lm_score, some, ["a a"]),
        ("batch_size: expected a whole number from 1 to 18, the", lm_score, some, some),
        ("got 0", known_words, some, 0),
        ("max_epochs: expected", partial(lm_score, max_epochs=0), some, some),
        ("2 sentences to fit", reverse_lm_score, ["a a"], some),
    )
