"""Training: its loss, its end, and checkpoints that survive a kill."""

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.corpora import training
from lab.corpora.training import from_table, to_table, train
from refusals import refused

import qdtheory as qd
from qdtheory.text import Corpus, as_corpus

ROOT = Path(__file__).parents[2]
SMALL = {"embedding_size": 5, "hidden_size": 6, "batch_size": 8}


def some_corpus(seed=0, sentences=60, words=4, longest=20) -> Corpus:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=sentences)
    lengths[0] = longest
    return as_corpus([rng.integers(words, size=n).tolist() for n in lengths])


def shorter_than(length) -> Corpus:
    corpus = some_corpus()
    return corpus[corpus.lengths < length]


def small_model(seed, words=4):
    return qd.LSTMLanguageModel.random(
        jax.random.key(seed), words + 1, 5, 6, end_token=words
    )


def assert_same(a, b):
    """Bit for bit."""
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


# -- tables --------------------------------------------------------------------------


@given(st.integers(0, 1000), st.integers(0, 5))
def test_tables_hold_the_sentences(seed, more):
    corpus = some_corpus(seed, sentences=7, longest=6)
    table = to_table(corpus, 6 + more)
    assert table.shape == (7, 6 + more)
    for row, sentence in zip(table, corpus, strict=True):
        assert row.tolist() == [
            *map(corpus.vocabulary.index, sentence),
            *[-1] * (6 + more - len(sentence)),
        ]
    assert list(from_table(table, corpus.vocabulary)) == list(corpus)
    with pytest.raises(ValueError, match="a sentence has 6 tokens, more than 5"):
        to_table(corpus, 5)


# -- the loss ------------------------------------------------------------------------


@pytest.mark.claim("N11.7")
@given(st.integers(0, 1000), st.sampled_from([7, 8, 9, 20]))
@settings(max_examples=10)
def test_batches_score_what_the_model_scores(seed, longest):
    """An epoch's padded batches against one text after the other, in full width."""
    corpus, model = some_corpus(seed, 24, longest=longest), small_model(seed)
    batches = list(training._batches(corpus, 8, seed, range(3)))
    found = sum(np.asarray(training._evaluate(model, tokens)) for tokens in batches)
    expected = -float(model.log_probability(to_table(corpus, longest)).sum())
    # Every token, and an end for all but the longest texts.
    ends = int((corpus.lengths < longest).sum())
    assert found[0] == pytest.approx(expected, rel=1e-12)
    assert found[1] == corpus.num_tokens + ends


def test_the_gradient_is_that_of_the_log_probability():
    corpus, model = some_corpus(1, 8), small_model(1)
    (tokens,) = training._batches(corpus, 8, 0, range(1))
    found = jax.grad(lambda m: training._nll(m, jnp.asarray(tokens))[0])(model)
    table = to_table(corpus, 20)
    expected = jax.grad(lambda m: -m.log_probability(table).sum())(model)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_an_epoch_takes_each_sentence_once_and_the_next_another_order():
    corpus = some_corpus(2, sentences=64)
    epochs = [training._order(corpus, 8, 0, epoch) for epoch in range(3)]
    for order in epochs:
        assert sorted(order.ravel()) == list(range(64))
        # Sorted by width, 64 sentences of 3 widths cross a width in 2 batches at most.
        mixed = [np.unique(-(-corpus.lengths[row] // 8)).size > 1 for row in order]
        assert sum(mixed) <= 2
    assert (epochs[0] != epochs[1]).any()
    assert (epochs[1] != epochs[2]).any()
    # 61 sentences make 7 batches of 8; the 5 left out change.
    left = [
        frozenset(range(61)) - set(training._order(corpus[:61], 8, 0, e).ravel())
        for e in range(5)
    ]
    assert {len(rest) for rest in left} == {5}
    assert len(set(left)) > 1


# -- the trained model ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N11.6")
@pytest.mark.parametrize("seed", [0, 1])
def test_training_finds_a_small_oracle(seed):
    """KL(P||Q) over all texts, exactly; the sample's own is the bound to beat."""
    space = qd.TextSpace(vocab_size=3, lengths=(1, 2, 3, 4))
    oracle = qd.LSTMLanguageModel.random(
        jax.random.key(seed), 4, 8, 8, sigma=2.0, end_token=3
    )
    p = oracle.probabilities(space)
    texts = oracle.sample(jax.random.key(seed + 10), 8000, 4)
    corpus = from_table(texts, (0, 1, 2))
    reports = []
    model = train(
        corpus[:7000],
        corpus[7000:],
        embedding_size=8,
        hidden_size=16,
        learning_rate=0.01,
        batch_size=50,
        epochs=12,
        seed=seed,
        report=reports.append,
    )
    q = model.probabilities(space)
    assert float(q.sum()) == pytest.approx(1, abs=1e-12)
    # The best table of frequencies of 120 texts loses 119 / (2 * 7000) = .0085 nats.
    assert float(qd.kl_divergence(p, q)) < 0.02
    assert float(qd.kl_divergence(p, np.full(p.size, 1 / p.size))) > 0.3
    # The validation NLL reported last is that of the model returned.
    table = to_table(corpus[7000:], 4)
    predicted = (table >= 0).sum() + (table[:, -1] < 0).sum()
    expected = -float(model.log_probability(table).sum()) / predicted
    assert reports[-1].validation_nll == pytest.approx(expected, rel=1e-12)
    assert reports[-1].validation_nll < reports[0].validation_nll
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype(float)}
    assert (model.end_token, model.num_words) == (3, 3)


@pytest.mark.slow
def test_short_sentences_weigh_no_more_than_long_ones():
    """Half the sentences end after one word; batches hold one length each."""
    corpus = as_corpus([["a"] * n for n in (1, 17)] * 200)
    model = train(
        corpus,
        epochs=40,
        embedding_size=4,
        hidden_size=4,
        learning_rate=0.01,
        batch_size=20,
    )
    (log_q,) = model.log_probability(to_table(as_corpus(["a"]), 17))
    # With each batch over its own predicted tokens it would be 17 / (17 + 2).
    assert float(jnp.exp(log_q)) == pytest.approx(0.5, abs=0.1)


# -- checkpoints ---------------------------------------------------------------------


class Stopped(Exception):
    pass


OPTIONS = SMALL | {"epochs": 3, "every": 4}


def steps_of(corpus, file, stop=None):
    """Train with a checkpoint, up to a step: the model, and the steps reported."""
    steps = []

    def report(progress):
        steps.append(progress.step)
        if stop and progress.step >= stop:
            raise Stopped

    return train(corpus, **OPTIONS, checkpoint=file, report=report), steps


@pytest.mark.claim("N11.8")
@pytest.mark.parametrize("step", [4, 8, 12])
def test_a_resumed_training_ends_where_an_unbroken_one_does(tmp_path, step):
    corpus, file = some_corpus(), tmp_path / "model.npz"
    whole = train(corpus, **OPTIONS)
    with pytest.raises(Stopped):
        steps_of(corpus, file, step)
    # 60 sentences, batches of 8: 7 steps an epoch, a stop at the end. Then nothing is
    # left to train, and the file gives the model back.
    for left in ([s for s in (4, 8, 12, 16, 20, 21) if s > step], []):
        resumed, steps = steps_of(corpus, file)
        assert steps == left
        assert_same(whole, resumed)


# Trains, and hangs in the middle of the second write of a checkpoint.
HANG = """
import os, sys, time
import jax
from tests.lab.corpora import test_training as here

calls = []

def hang(*arguments, wanted=getattr(os, sys.argv[2])):
    calls.append(arguments)
    if len(calls) < 2:
        return wanted(*arguments)
    if sys.argv[2] == "fsync":  # as if half of the file had been written
        os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
    print("writing", flush=True)
    time.sleep(600)

setattr(os, sys.argv[2], hang)
here.train(here.some_corpus(), **here.OPTIONS, checkpoint=sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.claim("N11.8")
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_killed_while_it_writes_a_checkpoint(tmp_path, moment):
    file = tmp_path / "model.npz"
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(
        [sys.executable, "-c", HANG, str(file), moment],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    # The second checkpoint was being written, the first is whole.
    assert {path.name for path in tmp_path.iterdir()} == {
        "model.npz",
        "model.npz.unfinished",
    }
    with np.load(file) as archive:
        assert archive["step"] == 4
    resumed, steps = steps_of(some_corpus(), file)
    assert steps[0] == 8
    assert_same(resumed, train(some_corpus(), **OPTIONS))
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The bytes of a checkpoint."""
    file = tmp_path_factory.mktemp("checkpoint") / "model.npz"
    train(some_corpus(), **SMALL, epochs=1, checkpoint=file)
    return file.read_bytes()


@pytest.fixture
def file(tmp_path, finished):
    """A file that holds a finished training."""
    (tmp_path / "model.npz").write_bytes(finished)
    return tmp_path / "model.npz"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 7}, "hidden_size was 6 and is 7; use another file"),
        ({"embedding_size": 7}, "embedding_size was 5 and is 7"),
        ({"learning_rate": 0.01}, "learning_rate was 0.001 and is 0.01"),
        ({"seed": 1, "batch_size": 9}, "batch_size was 8 and is 9; seed was 0 and"),
        ({"corpus": some_corpus(1)}, "the corpus is another"),
        ({"corpus": replace(some_corpus(), vocabulary=tuple("abcd"))}, "the corpus is"),
    ],
)
def test_a_checkpoint_of_another_training(file, finished, change, message):
    arguments = {"corpus": some_corpus()} | SMALL | {"epochs": 2} | change
    with pytest.raises(ValueError, match=f"belongs to another training: .*{message}"):
        train(**arguments, checkpoint=file)
    assert file.read_bytes() == finished


def flip(data):
    """One bit in the middle of the arrays."""
    data = bytearray(data)
    data[len(data) // 2] ^= 1
    return bytes(data)


def saved(save, **arrays):
    """Arrays that are no checkpoint."""
    file = io.BytesIO()
    save(file, np.zeros(3), **arrays)
    return lambda data: file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        flip,
        lambda data: b"\x80\x04N.",  # a pickle
        lambda data: b"a text file\n",
        saved(np.save),
        saved(np.savez, step=1, settings="{}"),
    ],
)
def test_a_broken_checkpoint(file, damage):
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=r"or a broken one .*; delete"):
        train(some_corpus(), **SMALL, epochs=2, checkpoint=file)


def test_other_files_as_checkpoint(file):
    def resume(path, epochs=1):
        train(some_corpus(), **SMALL, epochs=epochs, checkpoint=path)

    resume(file, 2)
    refused(
        ("step 14, beyond the last of this training, 7; ask for", resume, file),
        ("no checkpoint, or a broken one", resume, file.parent),
        ("there is no folder", resume, file.parent / "no" / "model.npz"),
    )


# -- progress ------------------------------------------------------------------------


def test_reports_come_every_so_many_steps():
    reports, corpus = [], some_corpus()
    train(corpus, corpus[:9], **SMALL, epochs=2, every=5, report=reports.append)
    assert [r.step for r in reports] == [5, 10, 14]
    assert {r.num_steps for r in reports} == {14}
    assert all(r.tokens_per_second > 0 for r in reports)
    # Parameters of size 0.1 predict almost uniformly: 4 words and the end.
    assert reports[0].training_nll == pytest.approx(np.log(5), abs=0.1)
    assert reports[0].validation_nll == pytest.approx(np.log(5), abs=0.1)


def test_on_a_terminal_one_line_is_written_over(capsys, monkeypatch):
    corpus = some_corpus()
    train(corpus, **SMALL, epochs=1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    train(corpus, corpus[:9], **SMALL, epochs=1, every=4)
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.removesuffix("\n").split("\r")[1:]
    assert first.startswith("step 4 of 7, ")
    assert second.startswith("step 7 of 7, ")
    for line in (first, second):
        assert " tokens/s, NLL 1." in line
        assert ", validation 1." in line


# -- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs: expected a whole number from 1 on, got 0"),
        ({"every": 0}, "every: expected a whole number from 1 on"),
        ({"hidden_size": 0}, "hidden_size: expected"),
        ({"embedding_size": -1}, "embedding_size: expected"),
        ({"batch_size": 0}, "batch_size: expected a whole number"),
        ({"batch_size": 61}, "from 1 to 60, the sentences .*, got 61"),
        ({"seed": -1}, "seed: expected a whole number from 0 on"),
        ({"learning_rate": 0.0}, "learning_rate: expected a positive"),
        ({"validation": ["0 1"]}, "take both as slices of one corpus"),
        (
            {"corpus": shorter_than(20), "validation": some_corpus()[:1]},
            "sentence has 20 tokens, the longest .* corpus .*; remove it with prepare",
        ),
    ],
)
def test_bad_input(as_a_user, change, message):
    with pytest.raises(ValueError, match=message):
        train(**({"corpus": some_corpus()} | SMALL | {"epochs": 1} | change))


def test_a_rate_that_overflows_leaves_no_checkpoint(tmp_path):
    file = tmp_path / "model.npz"
    with pytest.raises(FloatingPointError, match="take a learning_rate below 1e\\+308"):
        train(some_corpus(), **SMALL, epochs=4, learning_rate=1e308, checkpoint=file)
    assert not file.exists()


def test_32_bits_are_refused(as_a_user):
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
        train(some_corpus(), **SMALL)
