"""Fitted models: their loss, end and scores; checkpoints that survive a kill."""

import os
from functools import partial
from operator import attrgetter

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import corpora
from lab.corpora import FittedModel, cross_entropy_of, lm_score, training
from lab.corpora.lm_scores import _split
from lab.corpora.training import from_table, to_table, train
from refusals import refused

import qdtheory as qd
from qdtheory.text import as_corpus, jackknife_interval

approx = pytest.approx

SMALL = {"embedding_size": 5, "hidden_size": 6, "batch_size": 8}


def some_corpus(seed=0, sentences=60, longest=20):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=sentences)
    lengths[0] = longest
    return as_corpus([rng.integers(4, size=n).tolist() for n in lengths])


CORPUS = some_corpus()


def random_model(seed):
    key = jax.random.key(seed)
    return qd.LSTMLanguageModel.random(key, 5, 5, 6, 1.0, end_token=4)


def predicted(table):
    """Every token, and an end for all but the texts of full width."""
    return (table >= 0).sum() + (table[:, -1] < 0).sum()


def nll_of(model, table):
    return -float(model.log_probability(table).sum()) / predicted(table)


def same(a, b):
    """Whether two models have the same parameters, bit for bit."""
    return all(map(np.array_equal, *map(jax.tree.leaves, (a, b))))


# -- the loss ------------------------------------------------------------------------


def test_tables_hold_the_sentences():
    corpus = some_corpus(1, sentences=7, longest=6)
    table, names = to_table(corpus, 9), corpus.vocabulary
    for row, sentence in zip(table.tolist(), corpus, strict=True):
        ids = [*map(names.index, sentence)]
        assert row == ids + [-1] * (9 - len(ids))
    assert list(from_table(table, names)) == list(corpus)
    refused(("a sentence has 6 tokens, more than 5", to_table, corpus, 5))


@pytest.mark.parametrize("longest", [7, 8, 9, 20])
def test_batches_score_what_the_model_scores(longest):
    """An epoch's padded batches against one text after the other, in full width."""
    corpus, model = some_corpus(longest, 24, longest=longest), random_model(longest)
    batches = training._batches(corpus, 8, 0, range(3))
    nll, number = sum(np.asarray(training._evaluate(model, x)) for x in batches)
    table = to_table(corpus, longest)
    assert number == predicted(table)
    assert nll / number == approx(nll_of(model, table), rel=1e-12)


def test_an_epoch_takes_each_sentence_once_and_the_next_another_order():
    # 60 sentences make 7 batches of 8; the 4 left out change.
    used = [training._order(CORPUS, 8, 0, epoch).ravel() for epoch in range(5)]
    assert {(order.size, len({*order})) for order in used} == {(56, 56)}
    assert len({*map(frozenset, used)}) > 1


# -- the trained model ---------------------------------------------------------------


@pytest.mark.slow
def test_training_finds_a_small_oracle():
    """KL(P||Q) over all texts, exactly; the sample's own is the bound to beat."""
    space = qd.TextSpace(vocab_size=3, lengths=(1, 2, 3, 4))
    sizes = {"sigma": 2.0, "end_token": 3}
    oracle = qd.LSTMLanguageModel.random(jax.random.key(0), 4, 8, 8, **sizes)
    corpus = from_table(oracle.sample(jax.random.key(10), 8000, 4), (0, 1, 2))
    rates = {"embedding_size": 8, "hidden_size": 16, "learning_rate": 0.01}
    found, parts = [], (corpus[:7000], corpus[7000:])
    more = {"batch_size": 50, "epochs": 12, "report": found.append}
    model = train(*parts, **rates, **more)
    p, q = (x.probabilities(space) for x in (oracle, model))
    # The best table of frequencies of 120 texts loses 119 / (2 * 7000) = .0085 nats.
    assert float(qd.kl_divergence(p, q)) < 0.02
    assert float(qd.kl_divergence(p, np.full(p.size, 1 / p.size))) > 0.3
    # The validation NLL reported last is that of the model returned.
    last, expected = found[-1].validation_nll, nll_of(model, to_table(parts[1], 4))
    assert found[0].validation_nll > last == approx(expected, rel=1e-12)
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype(float)}


@pytest.mark.slow
def test_short_sentences_weigh_no_more_than_long_ones():
    """Half the sentences end after one word; batches hold one length each."""
    corpus = as_corpus([["a"] * n for n in (1, 17)] * 200)
    sizes = {"embedding_size": 4, "hidden_size": 4, "batch_size": 20}
    model = train(corpus, epochs=40, learning_rate=0.01, **sizes)
    (log_q,) = model.log_probability(to_table(as_corpus(["a"]), 17))
    # With each batch over its own predicted tokens it would be 17 / (17 + 2).
    assert float(np.exp(log_q)) == approx(0.5, abs=0.1)


def test_reports_come_every_so_many_steps():
    found, settings = [], SMALL | {"every": 5}
    train(CORPUS, CORPUS[:9], **settings, epochs=2, report=found.append)
    assert [(r.step, r.num_steps) for r in found] == [(5, 14), (10, 14), (14, 14)]
    # Parameters of size 0.1 predict almost uniformly: 4 words and the end.
    nll = found[0].training_nll, found[0].validation_nll
    assert nll == approx((np.log(5), np.log(5)), abs=0.1)


# -- checkpoints ---------------------------------------------------------------------


OPTIONS = SMALL | {"epochs": 3, "every": 4}


def steps_of(file):
    """Train with a checkpoint: the model, and the steps reported."""
    found = []
    model = train(CORPUS, **OPTIONS, checkpoint=file, report=found.append)
    return model, [progress.step for progress in found]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_killed_while_it_writes_a_checkpoint(tmp_path, monkeypatch, moment):
    """The second is written by half, or not yet in its place; the first is whole."""
    file, wanted, calls = tmp_path / "model.npz", getattr(os, moment), []

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) < 2:
            return wanted(*arguments)
        if moment == "fsync":
            os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, moment, killed)
        with pytest.raises(KeyboardInterrupt):
            steps_of(file)
    whole, (resumed, steps) = train(CORPUS, **OPTIONS), steps_of(file)
    assert steps[0] == 8
    again, none = steps_of(file)  # nothing is left to train
    assert (same(resumed, whole), same(again, whole), none) == (True, True, [])
    assert [*tmp_path.iterdir()] == [file]


def test_a_broken_or_another_checkpoint_is_refused_and_kept(tmp_path):
    file, nowhere = tmp_path / "model.npz", tmp_path / "no" / "model.npz"

    def resume(epochs=2, corpus=CORPUS, **change):
        settings = SMALL | {"epochs": epochs, "checkpoint": file} | change
        return partial(train, corpus, **settings)

    resume(1)()
    finished = file.read_bytes()
    refused(
        ("was 8 and is 9; seed was 0 and", resume(seed=1, batch_size=9)),
        ("other training: the corpus is another", resume(corpus=some_corpus(1))),
        ("no checkpoint, or a broken one", resume(checkpoint=tmp_path)),
        ("there is no folder", resume(checkpoint=nowhere)),
    )
    assert file.read_bytes() == finished
    resume()()
    refused(("step 14, beyond the last of this training, 7; ask for", resume(1)))
    # One bit in the middle of the arrays; the last is a pickle.
    flipped = bytearray(finished)
    flipped[len(flipped) // 2] ^= 1
    np.savez(file, np.zeros(3), step=1, settings="{}")
    for broken in (file.read_bytes(), b"", finished[:-1], flipped, b"\x80\x04N."):
        file.write_bytes(broken)
        refused(("or a broken one", resume()))


# -- scores by fitted models ---------------------------------------------------------

TINY = {"embedding_size": 4, "hidden_size": 4, "batch_size": 8}
# One word is already named as the unknown ones will be.
REAL = as_corpus(["a", "a", "a b", "b a <unk>"] * 20)
WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=9)
TEXTS = st.lists(WORDS, min_size=8, max_size=8)


def untrained(seed, max_length):
    """A model of 3 words and "<unk>"; nothing is fitted."""
    return FittedModel(random_model(seed), ("a", "b", "c", "<unk>"), max_length, 1, 0.0)


@settings(max_examples=15)
@given(TEXTS, st.sampled_from([3, 12]))
def test_scores_are_means_of_log_probabilities(texts, max_length):
    """In one table of the greatest length, rows and ends counted by hand."""
    texts = [*texts, ["b"] * 10]
    table = np.full((9, max(max_length, 10)), -1)
    for row, text in zip(table, texts, strict=True):
        row[: len(text)] = ["abcd".find(word) % 4 for word in text]
    fitted = untrained(0, max_length)
    found = cross_entropy_of([[], *texts], fitted)  # an empty sentence is skipped
    nll = nll_of(fitted.model, table)
    assert found.per_token.value == approx(nll, rel=1e-12)
    assert found.per_text.value == approx(nll * predicted(table) / 9, rel=1e-12)
    assert found.unknown == approx((table == 3).sum() / (table >= 0).sum(), rel=1e-12)


def test_intervals_are_those_of_the_jackknife():
    rng, fitted = np.random.default_rng(0), untrained(1, 7)
    texts = [list(rng.choice(list("abcd"), n)) for n in rng.integers(1, 7, 40)]
    found = cross_entropy_of(texts, fitted)
    # That of a mean is the same formula; of a ratio, but for terms of order 1 / 40.
    for name, rel in (("per_text", 1e-9), ("per_token", 0.05)):
        fast, get = getattr(found, name), attrgetter(f"{name}.value")
        one = partial(lambda get, c: get(cross_entropy_of(c, fitted)), get)
        slow = jackknife_interval(one, texts, num_groups=None)
        assert fast.standard_error == approx(slow.standard_error, rel=rel)
        half = 1.959964 * fast.standard_error
        ends = fast.value - half, fast.value + half
        assert (fast.low, fast.high) == approx(ends, rel=1e-6)


def test_known_words_are_those_that_occur_often():
    part = as_corpus(["z", "c a b", "a b a", "d c"])[1:]  # has "z" in its vocabulary
    known = [corpora.known_words(part, number) for number in (1, 2, 3)]
    assert known == [("c", "a", "b", "d"), ("c", "a", "b"), ("a",)]


@pytest.fixture(scope="module")
def fitted():
    return corpora.fit_language_model(REAL, **TINY, learning_rate=0.1)


def test_training_ends_before_held_out_sentences_lose(fitted):
    """The parameters are those of an unbroken training of as many epochs."""
    assert fitted.vocabulary == ("a", "b", "<unk>")
    assert fitted.epochs > 1  # so that a checkpoint was read
    rest, held_out = _split(REAL, seed=0)
    assert sorted([*rest, *held_out]) == sorted(REAL)
    nll = []
    for epochs in range(1, fitted.epochs + 2):
        model = train(rest, epochs=epochs, **TINY, learning_rate=0.1)
        nll.append(nll_of(model, to_table(held_out, 3)))
        assert (epochs == fitted.epochs) == same(model, fitted.model)
    assert fitted.held_out == approx(nll[-2], rel=1e-12)
    assert (np.diff(nll) < 0).tolist() == [True] * (fitted.epochs - 1) + [False]
    for seed in range(20):  # the longest sentence is trained on
        rest, _ = _split(as_corpus(["a"] * 9 + ["a b c"] + ["a"] * 9), seed)
        assert rest.lengths.max() == 3


def test_a_mode_wins_by_the_one_score_and_loses_by_the_other(fitted):
    options, mode = TINY | {"learning_rate": 0.1}, as_corpus(["a"] * 40)
    quality = [lm_score(x, REAL, **options) for x in (mode, REAL)]
    assert quality[1] == cross_entropy_of(REAL, fitted)
    assert quality[0].per_text.value < quality[1].per_text.value
    both = [corpora.reverse_lm_score(x, REAL, **options) for x in (mode, REAL)]
    assert both[1] == quality[1]
    # Half of the references have words that never occur in the samples, but are known.
    assert both[0].per_text.value > 2 * both[1].per_text.value
    assert both[0].unknown == 20 / 140


# -- bad input -----------------------------------------------------------------------


def test_bad_input(as_a_user):
    def run(corpus=CORPUS, **change):
        return partial(train, corpus, **SMALL | {"epochs": 1} | change)

    some, long = ["a b"] * 20, CORPUS.lengths > 19
    short = run(CORPUS[~long], validation=CORPUS[long])
    refused(
        ("number from 1 to 60, the sentences", run(batch_size=61)),
        ("take both as slices of one corpus", run(validation=["0 1"])),
        ("a sentence has 20 tokens, the longest of the training corpus", short),
        ("2 sentences to score", lm_score, ["a"], some),
        ("no word occurs 2 times", lm_score, some, ["a", "b"]),
        ("2 sentences to fit", lm_score, some, ["a a"]),
    )


def test_a_rate_that_overflows_and_32_bits_are_refused(tmp_path, as_a_user):
    options = {"epochs": 4, "learning_rate": 1e308, "checkpoint": tmp_path / "model"}
    run = partial(train, CORPUS, **SMALL | options)
    refused(("take a learning_rate below 1e+308", run), error=FloatingPointError)
    assert [*tmp_path.iterdir()] == []
    with jax.enable_x64(False):
        refused(("jax_enable_x64", run), error=RuntimeError)
