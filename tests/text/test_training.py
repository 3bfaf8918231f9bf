"""Training: its loss, its end, and checkpoints that survive a kill."""

import csv
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
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import qdtheory as qd
from qdtheory.text import Corpus, as_corpus, training
from qdtheory.text.training import from_table, to_table, train

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


def test_a_table_too_narrow():
    with pytest.raises(ValueError, match="a sentence has 3 tokens, more than 2"):
        to_table(as_corpus(["a b c"]), 2)


# -- the loss ------------------------------------------------------------------------


@pytest.mark.claim("N11.7")
@given(st.integers(0, 1000), st.sampled_from([7, 8, 9, 20]))
@settings(max_examples=20)
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


def test_one_more_step_lowers_the_loss_of_its_batch():
    corpus = some_corpus(3, sentences=8)
    state = training._first_state(corpus, 5, 6, seed=0)
    (tokens,) = training._batches(corpus, 8, 0, range(1))
    losses = []
    for _ in range(50):
        state, (nll, predicted) = training._update(state, 0.001, 100.0, tokens)
        losses.append(float(nll / predicted))
    assert (np.diff(losses) < 0).all()


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


# -- the temperature of tokens (notebook 11) ------------------------------------------


LENGTHS = (1, 2, 3, 4)
SPACE = qd.TextSpace(vocab_size=3, lengths=LENGTHS)
seeds = st.integers(0, 2**16)
cold_or_hot = st.sampled_from([0.4, 0.7, 1.4, 2.5])


def oracle_with_end(seed, sigma=2.0, words=3):
    return qd.LSTMLanguageModel.random(
        jax.random.key(seed), words + 1, 6, 6, sigma, end_token=words
    )


def power(p, beta):
    q = p**beta
    return q / q.sum()


def kl(a, b) -> float:
    return float(np.sum(a * np.log(a / b)))


@pytest.mark.claim("N11.1")
@given(seeds, cold_or_hot)
@settings(max_examples=8)
def test_the_entropy_lacking_is_the_least_divergence(seed, temperature):
    """Both from one grid of powers: entropy at equal LL interpolated, KL by hand."""
    model = oracle_with_end(seed)
    p = np.asarray(model.probabilities(SPACE))
    q = np.asarray(model.probabilities(SPACE, temperature))
    powers = [power(p, beta) for beta in np.linspace(0, 8, 4001)]
    quality = np.array([x @ np.log(p) for x in powers])
    entropy = np.array([-(x @ np.log(x)) for x in powers])
    assume(quality[0] < q @ np.log(p) < quality[-1])
    lacking = np.interp(q @ np.log(p), quality, entropy) + q @ np.log(q)
    least = min(kl(q, x) for x in powers)
    # The grid's error is second order in its step, .002, times variances below 30.
    assert lacking == pytest.approx(least, abs=1e-4)
    assert least > 0


@pytest.mark.claim("N11.2")
@given(seeds, st.floats(0.2, 3), st.floats(0.2, 3))
def test_pythagoras_at_equal_quality(seed, beta, other):
    """For any Q of the quality of a power of P: it is moved along SE alone."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(12))
    best = power(p, beta)
    # Directions that keep the sum and the quality.
    kept = np.stack([np.ones(12), np.log(p)])
    move = rng.normal(size=12)
    move -= kept.T @ np.linalg.lstsq(kept.T, move, rcond=None)[0]
    q = best + move * 0.5 * min(best / np.abs(move))
    whole = kl(q, power(p, other))
    assert whole == pytest.approx(kl(q, best) + kl(best, power(p, other)), abs=1e-11)


@pytest.mark.claim("N11.3")
@given(seeds, cold_or_hot)
@settings(max_examples=20)
def test_the_weight_of_a_text_is_the_sum_of_its_normalisers(seed, temperature):
    """log Z_t of each prefix, from the sums over the texts that go on from it."""
    model = oracle_with_end(seed)
    p = np.asarray(model.probabilities(SPACE))
    texts = [tuple(row[row >= 0].tolist()) for row in SPACE.tokens]
    mass = dict.fromkeys((text[:t] for text in texts for t in range(5)), 0.0)
    for text, chance in zip(texts, p, strict=True):
        for t in range(len(text) + 1):
            mass[text[:t]] += chance
    chances = dict(zip(texts, p, strict=True))

    def log_normaliser(prefix):
        follow = [mass[(*prefix, v)] / mass[prefix] for v in range(3)]
        if prefix:
            follow.append(chances[prefix] / mass[prefix])
        return np.log(np.sum(np.array(follow) ** (1 / temperature)))

    expected = [
        sum(log_normaliser(text[:t]) for t in range(min(len(text) + 1, 4)))
        for text in texts
    ]
    found = model.log_probability(SPACE.tokens) / temperature
    found -= model.log_probability(SPACE.tokens, temperature)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    # Jensen's gap of these weights is the divergence from tempered texts.
    q = np.asarray(model.probabilities(SPACE, temperature))
    gap = np.log(q @ np.exp(expected)) - q @ expected
    assert gap == pytest.approx(kl(q, power(p, 1 / temperature)), abs=1e-10)


def jensen_gap(log_p, log_q, beta, weights):
    w = beta * log_p - log_q
    return logsumexp(w, b=weights) - weights @ w


@pytest.mark.claim("N11.4", "N11.12")
@pytest.mark.parametrize("temperature", [1.6, 2.5])
def test_the_gap_from_samples_errs_downwards(temperature):
    """Small samples of the exact distribution: the mean is below, large ones reach."""
    model = oracle_with_end(4)
    q = np.asarray(model.probabilities(SPACE, temperature))
    log_p, log_q = np.log(model.probabilities(SPACE)), np.log(q)
    exact = jensen_gap(log_p, log_q, 1 / temperature, q)
    rng, found = np.random.default_rng(0), {}
    for size in (20, 20_000):
        counts = rng.multinomial(size, q, 4000) / size
        gaps = [jensen_gap(log_p, log_q, 1 / temperature, x) for x in counts]
        found[size] = np.mean(gaps), np.std(gaps) / 4000**0.5
    assert found[20][0] < exact - 4 * found[20][1]
    # The bias is of order 1 / size: a thousandth of the first one.
    bias = (exact - found[20][0]) / 1000
    assert abs(found[20_000][0] - exact) < 4 * found[20_000][1] + 2 * bias


@pytest.mark.claim("N11.5")
@given(seeds)
@settings(max_examples=10)
def test_the_gap_near_the_real_distribution(seed):
    """s by hand: log-probabilities plus entropies of the choices, prefix by prefix."""
    model = qd.LSTMLanguageModel.random(jax.random.key(seed), 3, 6, 6, 1.5)
    space = qd.TextSpace(vocab_size=3, lengths=3)
    p = np.asarray(model.probabilities(space)).reshape(3, 3, 3)
    s = np.zeros_like(p)
    for axis in range(3):
        below = p.sum(axis=tuple(range(axis + 1, 3)), keepdims=True)
        log_next = np.log(below / below.sum(axis=axis, keepdims=True))
        s += log_next - (np.exp(log_next) * log_next).sum(axis=axis, keepdims=True)
    p, s = p.ravel(), s.ravel()
    c = np.cov(np.array([s, np.log(p)]), aweights=p, ddof=0)
    law = (c[0, 0] - c[0, 1] ** 2 / c[1, 1]) / 2
    gaps = []
    for epsilon in (1e-3, -1e-3):
        q = np.asarray(model.probabilities(space, 1 / (1 + epsilon)))
        grid = np.linspace(1 - 3e-3, 1 + 3e-3, 2001)
        gaps.append(min(kl(q, power(p, beta)) for beta in grid))
    # Third-order terms cancel; rounding of KL is about 1e-16 / 1e-6.
    assert np.mean(gaps) / 1e-6 == pytest.approx(law, rel=1e-3, abs=1e-7)


@pytest.mark.claim("N11.9")
@given(seeds, st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=10)
def test_without_memory_coverage_falls_and_diversity_rises(seed, sigma):
    """Independent tokens: CR_n = CR_1^n and NRR_n = -(-NRR_1)^n, by N9.2 monotone."""
    model = qd.LSTMLanguageModel.random(jax.random.key(seed), 4, 6, 6, sigma)
    forgetful = replace(model, output_weights=jnp.zeros_like(model.output_weights))
    space = qd.TextSpace(vocab_size=4, lengths=4)
    p = np.asarray(forgetful.probabilities(space))
    rates = []
    for t in 1.5 ** np.arange(-3, 5):
        q = np.asarray(forgetful.probabilities(space, t))
        row = []
        for n in (1, 2, 3):
            q_n, p_n = (np.asarray(space.ngram_distribution(x, n)) for x in (q, p))
            row += [-(q_n @ p_n), -(q_n @ q_n)]
        one = row[:2]
        assert row[2:4] == pytest.approx([-(x**2) for x in one], rel=1e-12)
        assert row[4:] == pytest.approx([-((-x) ** 3) for x in one], rel=1e-12)
        rates.append(row)
    assert (np.diff(rates, axis=0) > 0).all()


@pytest.fixture(scope="module")
def learnt():
    """An oracle, a model that learnt from 6,000 of its texts, one from 15."""
    oracle = oracle_with_end(1)
    texts = from_table(oracle.sample(jax.random.key(7), 6000, 4), (0, 1, 2))
    size = {"embedding_size": 8, "hidden_size": 16, "learning_rate": 0.01}
    some = texts[:15] if texts[:15].lengths.max() == 4 else texts[15:30]
    assert some.lengths.max() == 4
    return (
        oracle,
        train(texts, **size, batch_size=50, epochs=8),
        train(some, **size, batch_size=15, epochs=800, every=800),
    )


def place_of_least_cnd(model, oracle, n) -> float:
    """Exactly, on a fine grid of temperatures."""
    p = space_ngrams(oracle, 1.0, n)
    grid = 1.5 ** np.linspace(-2, 4, 121)
    return grid[np.argmin([np.sum((space_ngrams(model, t, n) - p) ** 2) for t in grid])]


def space_ngrams(model, temperature, n):
    q = np.asarray(model.probabilities(SPACE, temperature))
    return np.asarray(SPACE.ngram_distribution(q, n))


@pytest.mark.claim("N11.10", "N11.14")
@pytest.mark.parametrize("n", [2, 3, 4])  # unigrams of three words hardly move
def test_cnd_is_least_near_1_for_a_model_that_fits(learnt, n):
    oracle, fits, _ = learnt
    assert abs(place_of_least_cnd(fits, oracle, n) - 1) < 0.15
    assert place_of_least_cnd(oracle, oracle, n) == pytest.approx(1, abs=1e-9)


@pytest.mark.claim("N11.16")
@pytest.mark.parametrize("n", [3, 4])
def test_cnd_is_least_far_above_1_for_a_model_that_learnt_by_heart(learnt, n):
    oracle, _, parrot = learnt
    assert place_of_least_cnd(parrot, oracle, n) > 1.3


@pytest.mark.claim("N11.11")
@given(seeds, st.floats(0.3, 4))
@settings(max_examples=20)
def test_length_without_memory_is_geometric(seed, temperature):
    """The end has one chance at each place but the first; it moves towards 1 / |V|."""
    model = oracle_with_end(seed)
    forgetful = replace(model, output_weights=jnp.zeros_like(model.output_weights))
    # An end that is likelier than any word, as after a full stop.
    biases = model.output_biases.at[-1].set(model.output_biases.max() + 0.5)
    forgetful = replace(forgetful, output_biases=biases)

    def mean_length(t):
        return float(forgetful.probabilities(SPACE, t) @ SPACE.text_lengths)

    end = float(jax.nn.softmax(biases / temperature)[-1])
    expected = sum((1 - end) ** k for k in range(4))
    assert mean_length(temperature) == pytest.approx(expected, abs=1e-12)
    assert mean_length(1.5 * temperature) > mean_length(temperature)


@pytest.mark.claim("N11.13")
@given(seeds)
@settings(max_examples=20)
def test_no_sweep_passes_the_real_distribution_in_cr_and_nrr(seed):
    """CR of P is at least that of any model of equal NRR; texts of one length."""
    space = qd.TextSpace(vocab_size=3, lengths=3)
    p, q = (
        qd.LSTMLanguageModel.random(jax.random.key(seed + k), 3, 6, 6, 2.0)
        for k in range(2)
    )
    real = np.asarray(p.probabilities(space))
    for n in (1, 2, 3):
        p_n = np.asarray(space.ngram_distribution(real, n))
        for t in 1.5 ** np.linspace(-3, 4, 15):
            tempered = np.asarray(q.probabilities(space, t))
            q_n = np.asarray(space.ngram_distribution(tempered, n))
            if q_n @ q_n <= p_n @ p_n:  # as diverse: Cauchy and Schwarz
                assert q_n @ p_n <= p_n @ p_n + 1e-15


@pytest.mark.claim("N11.13")
@pytest.mark.parametrize("order", [2, 3])
def test_expected_bleu_and_self_bleu_fall_on_a_sweep(order):
    """The exact expectations over all texts; most oracles, from t = 1.5^-2 on."""
    space = qd.TextSpace(vocab_size=3, lengths=3)
    falls = 0
    for seed in range(20):
        model = qd.LSTMLanguageModel.random(jax.random.key(seed), 3, 6, 6, 2.0)
        p = model.probabilities(space)
        rates = []
        for t in 1.5 ** np.arange(-2, 5):
            q = model.probabilities(space, t)
            rates.append(
                (
                    float(qd.expected_bleu(space, q, p, order, 3)),
                    float(qd.expected_self_bleu(space, q, order, 3)),
                )
            )
        assert (np.diff(rates, axis=0)[:, 1] < 0).mean() > 0.8
        falls += (np.diff(rates, axis=0) < 0).all()
    assert falls >= 12


@pytest.mark.claim("N11.14")
def test_the_table_of_the_sweep_agrees_with_itself():
    r"""$CND + 2 CR + NRR$ is $\Vert p \Vert^2$, of the references alone."""
    path = ROOT / "notebooks" / "data" / "temperature_sweep.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(x for x in lines if x[0] != "#"))
    whole = [r for r in rows if not r["left_out"]]
    assert len(whole) == 4 * 11
    for n in "1234":
        mine = [r for r in whole if r["n"] == n]
        for cnd, nrr in [
            ("cnd", "negative_repetition_rate"),
            ("cnd_pairs", "nrr_pairs"),
        ]:
            norms = [
                float(r[cnd]) + 2 * float(r["coverage_rate"]) + float(r[nrr])
                for r in mine
            ]
            # Six digits of each term are kept.
            scale = max(abs(float(r[nrr])) for r in mine)
            assert np.ptp(norms) < 4e-6 * scale
        # A group left out moves a rate by about its share, a twentieth.
        for r in (r for r in rows if r["n"] == n and r["left_out"]):
            (same,) = (x for x in mine if x["temperature"] == r["temperature"])
            assert float(r["coverage_rate"]) == pytest.approx(
                float(same["coverage_rate"]), rel=0.2
            )


@pytest.mark.claim("N11.14")
@pytest.mark.parametrize("n", "1234")
def test_cnd_in_the_table_is_least_at_1(n):
    """As measured, without the fit, and by each estimate."""
    path = ROOT / "notebooks" / "data" / "temperature_sweep.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith("--full")
    rows = [r for r in csv.DictReader(x for x in lines if x[0] != "#") if r["n"] == n]
    mine = [r for r in rows if not r["left_out"] and r["temperature"] != "real"]
    for estimate in ("cnd", "cnd_pairs"):
        least = min(mine, key=lambda row: float(row[estimate]))
        assert least["temperature"] == "1"
    # And ||q||^2 - 2 q.p without each of the groups, against the two neighbours.
    for group in {r["left_out"] for r in rows} - {""}:
        cold, at_1, hot = (
            -float(r["nrr_pairs"]) - 2 * float(r["coverage_rate"])
            for r in rows
            if r["left_out"] == group and 0.8 < float(r["temperature"]) < 1.3
        )
        assert at_1 < min(cold, hot)


@pytest.mark.claim("N11.15")
@pytest.mark.parametrize("n", [2, 3])
def test_the_expected_plug_in_of_few_texts_is_least_elsewhere(n):
    """E CND = CND + tr Cov / S + ..., exactly, along the sweep of the oracle itself."""
    space = qd.TextSpace(vocab_size=3, lengths=4)
    model = qd.LSTMLanguageModel.random(jax.random.key(2), 3, 6, 6, 2.0)
    ngrams = space.ngrams(n)
    shares = np.stack([(ngrams == g).mean(axis=1) for g in range(3**n)])
    p = shares @ np.asarray(model.probabilities(space))
    grid = 1.5 ** np.linspace(-2, 4, 121)
    exact, plug_in = [], []
    for t in grid:
        q = np.asarray(model.probabilities(space, t))
        mean = shares @ q
        spread = (shares**2 @ q).sum() - mean @ mean
        exact.append(((mean - p) ** 2).sum())
        plug_in.append(exact[-1] + spread / 5)
    assert grid[np.argmin(exact)] == pytest.approx(1, abs=1e-9)
    assert abs(grid[np.argmin(plug_in)] - 1) > 0.05


# -- checkpoints ---------------------------------------------------------------------


class Stopped(Exception):
    pass


def stop_at(step):
    def report(progress):
        if progress.step >= step:
            raise Stopped

    return report


@pytest.mark.claim("N11.8")
@pytest.mark.parametrize("step", [4, 8, 12])
def test_a_resumed_training_ends_where_an_unbroken_one_does(tmp_path, step):
    corpus, file = some_corpus(), tmp_path / "model.npz"
    options = SMALL | {"epochs": 3, "every": 4}
    whole = train(corpus, **options)
    with pytest.raises(Stopped):
        train(corpus, **options, checkpoint=file, report=stop_at(step))
    steps = []
    resumed = train(
        corpus, **options, checkpoint=file, report=lambda p: steps.append(p.step)
    )
    # 60 sentences, batches of 8: 7 steps an epoch, a stop at the end.
    assert steps == [s for s in (4, 8, 12, 16, 20, 21) if s > step]
    assert_same(whole, resumed)
    # Done: nothing is left to train, and the file gives the model back.
    steps.clear()
    assert_same(whole, train(corpus, **options, checkpoint=file, report=steps.append))
    assert steps == []


def test_more_epochs_continue_a_finished_training(tmp_path):
    corpus, file = some_corpus(), tmp_path / "model.npz"
    train(corpus, **SMALL, epochs=2, checkpoint=file)
    longer = train(corpus, **SMALL, epochs=3, checkpoint=file, every=5)
    assert_same(longer, train(corpus, **SMALL, epochs=3))


# Trains, and hangs in the middle of the second write of a checkpoint.
HANG = """
import os, sys, time
import jax
jax.config.update("jax_enable_x64", True)
from tests.text import test_training as here

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
here.train(here.some_corpus(), **here.SMALL, epochs=3, every=4, checkpoint=sys.argv[1])
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
    steps, options = [], SMALL | {"epochs": 3, "every": 4}
    resumed = train(
        some_corpus(),
        **options,
        checkpoint=file,
        report=lambda progress: steps.append(progress.step),
    )
    assert steps[0] == 8
    assert_same(resumed, train(some_corpus(), **options))
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The bytes of a checkpoint."""
    file = tmp_path_factory.mktemp("checkpoint") / "model.npz"
    train(some_corpus(), **SMALL, epochs=1, checkpoint=file)
    return file.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 7}, "hidden_size was 6 and is 7; use another file"),
        ({"embedding_size": 7}, "embedding_size was 5 and is 7"),
        ({"batch_size": 9}, "batch_size was 8 and is 9"),
        ({"learning_rate": 0.01}, "learning_rate was 0.001 and is 0.01"),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"seed": 1, "batch_size": 9}, "batch_size was 8 and is 9; seed was 0 and"),
        ({"corpus": some_corpus(1)}, "the corpus is another"),
    ],
)
def test_a_checkpoint_of_another_training(tmp_path, finished, change, message):
    file = tmp_path / "model.npz"
    file.write_bytes(finished)
    arguments = {"corpus": some_corpus()} | SMALL | {"epochs": 2} | change
    with pytest.raises(ValueError, match=f"belongs to another training: .*{message}"):
        train(**arguments, checkpoint=file)
    assert file.read_bytes() == finished


def test_renamed_words_make_another_corpus(tmp_path, finished):
    file = tmp_path / "model.npz"
    file.write_bytes(finished)
    corpus = some_corpus()
    renamed = replace(corpus, vocabulary=tuple("abcd"))
    with pytest.raises(ValueError, match="the corpus is another"):
        train(renamed, **SMALL, checkpoint=file)


def test_a_checkpoint_beyond_the_last_step(tmp_path):
    file = tmp_path / "model.npz"
    train(some_corpus(), **SMALL, epochs=2, checkpoint=file)
    with pytest.raises(ValueError, match=r"step 14, beyond the last .* 7; ask for"):
        train(some_corpus(), **SMALL, epochs=1, checkpoint=file)


def flip(data):
    """One bit in the middle of the arrays."""
    data = bytearray(data)
    data[len(data) // 2] ^= 1
    return bytes(data)


def as_npy(_):
    from io import BytesIO

    file = BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def without_arrays(_):
    from io import BytesIO

    file = BytesIO()
    np.savez(file, np.zeros(3), step=1, settings="{}")
    return file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        flip,
        lambda data: b"\x80\x04N.",  # a pickle
        lambda data: b"a text file\n",
        as_npy,
        without_arrays,
    ],
    ids=["empty", "half", "cut", "flipped", "pickle", "text", "npy", "npz"],
)
def test_a_broken_checkpoint(tmp_path, finished, damage):
    file = tmp_path / "model.npz"
    file.write_bytes(damage(finished))
    with pytest.raises(ValueError, match=r"or a broken one .*; delete"):
        train(some_corpus(), **SMALL, epochs=2, checkpoint=file)


def test_a_folder_as_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="no checkpoint, or a broken one"):
        train(some_corpus(), **SMALL, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        train(some_corpus(), **SMALL, checkpoint=tmp_path / "no" / "model.npz")


# -- progress ------------------------------------------------------------------------


def test_reports_come_every_so_many_steps():
    reports = []
    corpus = some_corpus()
    train(corpus, corpus[:9], **SMALL, epochs=2, every=5, report=reports.append)
    assert [r.step for r in reports] == [5, 10, 14]
    assert {r.num_steps for r in reports} == {14}
    assert all(r.tokens_per_second > 0 for r in reports)
    # Parameters of size 0.1 predict almost uniformly: 4 words and the end.
    assert reports[0].training_nll == pytest.approx(np.log(5), abs=0.1)
    assert reports[0].validation_nll == pytest.approx(np.log(5), abs=0.1)


def test_without_a_terminal_nothing_is_printed(capfd):
    train(some_corpus(), **SMALL, epochs=1)
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_one_line_is_written_over(capsys, monkeypatch):
    corpus = some_corpus()
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
    ("change", "error", "message"),
    [
        ({"corpus": "a b"}, TypeError, "got one str: put the sentence in a list"),
        ({"corpus": []}, ValueError, "at least one sentence"),
        ({"epochs": 0}, ValueError, "epochs: expected a whole number from 1 on, got 0"),
        ({"epochs": 1.5}, ValueError, "epochs: expected a whole number"),
        ({"every": 0}, ValueError, "every: expected a whole number from 1 on"),
        ({"hidden_size": 0}, ValueError, "hidden_size: expected"),
        ({"embedding_size": -1}, ValueError, "embedding_size: expected"),
        ({"batch_size": 0}, ValueError, "batch_size: expected a whole number"),
        ({"batch_size": 61}, ValueError, "at most the 60 sentences .*, got 61"),
        ({"seed": -1}, ValueError, "seed: expected a whole number from 0 on"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate: expected a positive"),
        ({"learning_rate": np.nan}, ValueError, "learning_rate: expected a positive"),
        ({"validation": ["0 1"]}, ValueError, "take both as slices of one corpus"),
        ({"validation": some_corpus()[:0]}, ValueError, "at least one sentence"),
        (
            {"corpus": shorter_than(20), "validation": some_corpus()[:1]},
            ValueError,
            "sentence has 20 tokens, the longest .* corpus .*; remove it with prepare",
        ),
    ],
)
def test_bad_input(as_a_user, change, error, message):
    with pytest.raises(error, match=message):
        train(**({"corpus": some_corpus()} | SMALL | {"epochs": 1} | change))


def test_a_rate_that_overflows_leaves_no_checkpoint(tmp_path):
    file = tmp_path / "model.npz"
    with pytest.raises(FloatingPointError, match="take a learning_rate below 1e\\+308"):
        train(some_corpus(), **SMALL, epochs=4, learning_rate=1e308, checkpoint=file)
    assert not file.exists()


def test_32_bits_are_refused(as_a_user):
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
        train(some_corpus(), **SMALL)
