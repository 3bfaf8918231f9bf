"""Expected BLEU against sums over all tuples of texts, with NLTK inside."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import assert_slope, sentence_bleu, sentences
from referees.enumerated_batches import batches
from refusals import refused
from scipy.stats import t as student

import qdtheory as qd
from qdtheory.metrics.bleu import (
    bleu_table,
    estimate_bleu,
    expected_corpus_bleu,
    text_bleu,
)
from qdtheory.metrics.bleu_formula import bleu_of_matches, closest_length, matches

pytestmark = pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")


def nltk_tensor(space, max_order, num_references, smoothing):
    """NLTK's BLEU of every (reference, ..., candidate)."""
    values = [
        sentence_bleu(candidate, references, max_order, smoothing)
        for *references, candidate in itertools.product(
            sentences(space), repeat=num_references + 1
        )
    ]
    return np.reshape(values, (space.num_texts,) * (num_references + 1))


def brute_force(tensor, q, p):
    for _ in range(tensor.ndim - 1):
        tensor = np.tensordot(p, tensor, axes=1)
    return float(tensor @ q)


FEW = [(3, 2, 2), (2, (1, 2), 3)]
MANY = [*((2, 3, n) for n in (1, 2, 3)), *((2, (1, 2, 3), n) for n in (1, 2))]
MANY += [(3, 3, 1), (2, (2, 4), 2), (3, (1, 2), 2), (1, (1, 2, 4, 5), 2)]


@pytest.mark.claim("N7.9", "N7.20")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references"),
    [*FEW, *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in MANY)],
)
def test_equals_the_sum_over_all_tuples(vocab_size, lengths, num_references, smoothing):
    space = qd.TextSpace(vocab_size, lengths)
    rng = np.random.default_rng(0)
    tensors = [nltk_tensor(space, n, num_references, smoothing) for n in (1, 2, 3)]
    for _ in range(9):
        q, p = rng.dirichlet(np.ones(space.num_texts), 2)
        found = qd.expected_bleu(space, q, p, 3, num_references, smoothing)
        sums = [brute_force(tensor, q, p) for tensor in tensors]
        np.testing.assert_allclose(found, sums, rtol=0, atol=1e-12)
        found = qd.expected_self_bleu(space, q, 3, num_references, smoothing)
        sums = [brute_force(tensor, q, q) for tensor in tensors]
        np.testing.assert_allclose(found, sums, rtol=0, atol=1e-12)


@pytest.mark.claim("N7.15")
def test_gradients_equal_those_of_the_sum_over_all_tuples():
    space = qd.TextSpace(2, (1, 3))
    tensor = jnp.asarray(nltk_tensor(space, 2, 2, None))
    rng = np.random.default_rng(1)
    q, p = (jnp.asarray(x) for x in rng.dirichlet(np.ones(space.num_texts), 2))
    # At a zero of p too: powers of 0 have finite derivatives.
    for real in (p, p.at[:3].set(0.0)):
        exact = jax.grad(
            lambda q, p: q @ text_bleu(bleu_table(space, 2), p, 2), argnums=(0, 1)
        )(q, real)
        tuples = jax.grad(
            lambda q, p: jnp.einsum("abc,a,b,c", tensor, p, p, q), argnums=(0, 1)
        )(q, real)
        for ours, theirs in zip(exact, tuples, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
    # Finite differences, along a direction.
    pair = qd.BleuPair(space, 2, 2, 3)
    d = jnp.asarray(rng.normal(size=q.size))
    d -= d.mean()
    assert_slope(pair.diversity, q, d, atol=0)


def test_pooled_bleu_of_one_candidate_is_expected_bleu():
    space = qd.TextSpace(2, (1, 2, 3))
    q, p = np.random.default_rng(6).dirichlet(np.ones(14), 2)
    p[3] = 0
    p /= p.sum()
    for max_order, n in ((1, 1), (2, 2), (4, 2)):
        for smoothing in (None, "epsilon"):
            one = expected_corpus_bleu(space, q, p, max_order, n, 1, smoothing)
            exact = qd.expected_bleu(space, q, p, max_order, n, smoothing)
            np.testing.assert_allclose(one, exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_monte_carlo_is_the_mean_of_nltks_scores(smoothing):
    rng = np.random.default_rng(8)
    texts, others = rng.integers(3, size=(60, 8)), rng.integers(3, size=(60, 3, 7))
    for tokens in (texts, others):
        sizes = rng.integers(1, tokens.shape[-1] + 1, size=(*tokens.shape[:-1], 1))
        tokens[np.arange(tokens.shape[-1]) >= sizes] = -1

    def words(text):
        return text[text >= 0].tolist()

    scores = [
        [sentence_bleu(words(c), [*map(words, r)], n, smoothing) for n in (1, 2, 3)]
        for c, r in zip(texts, others, strict=True)
    ]
    mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / 60**0.5
    found = estimate_bleu(texts, others, 3, smoothing)
    np.testing.assert_allclose(found.value, mean, atol=1e-14)
    np.testing.assert_allclose(found.standard_error, error, atol=1e-14)
    ends = student.interval(0.95, 59, mean, error)
    np.testing.assert_allclose((found.low, found.high), ends, atol=1e-13)


def test_of_two_lengths_equally_close_the_shorter_counts_and_no_text_scores_nothing():
    lengths = closest_length(np.array([4, 4]), np.array([3, 5]))
    assert lengths.tolist() == [3, 3]
    assert closest_length(np.array([4]), np.array([5])).tolist() == [5]
    nothing = matches(np.zeros((2, 1)), np.array([0]), np.array([3]))
    for smoothing in (None, "epsilon"):
        assert bleu_of_matches(nothing, smoothing).tolist() == [[0], [0]]


def test_bad_input_is_refused(as_a_user):
    bleu, corpus, by_draws = qd.expected_bleu, expected_corpus_bleu, estimate_bleu
    space, p, eight = qd.TextSpace(2, 2), np.full(4, 0.25), np.full(8, 1 / 8)
    texts, others = np.zeros((3, 2), int), np.zeros((3, 1, 2), int)
    pair = qd.BleuPair
    refused(
        ("num_references must be a whole number", bleu, space, p, p, 2, 0),
        ("number from 1 on, got 1.5", bleu, space, p, p, 2, 1.5),
        ("num_self_references must be a whole number", pair, space, 2, 2, 0),
        ("max_order must be at least 1, got 0", bleu, space, p, p, 0),
        ("expected None or \"epsilon\", got 'add'", bleu, space, p, p, 2, 2, "add"),
        ("q must have 4 entries, got 8", bleu, space, eight, p),
        ("p must have 4 entries, got 8", bleu, space, p, eight),
        ("BLEU table alone would take", pair, qd.TextSpace(5, 8)),
        ("num_candidates must be a whole", corpus, space, p, p, 2, 2, 0),
        ("multisets of references, 1,000,000", corpus, space, p, p, 2, 500),
        ("(3, 2) and (2, 1, 2)", by_draws, texts, others[:2]),
        ("at least 2 draws, got 1", by_draws, texts[:1], others[:1]),
        ("no text may be empty", by_draws, texts - 1, others),
        ("texts of 63 n-grams and lengths", bleu_table, qd.TextSpace(1, 12), 7),
    )


@pytest.mark.claim("N7.14")
@pytest.mark.parametrize(("lengths", "size"), [(2, 2), ((1, 2), 3), (2, 4)])
def test_self_bleu_averages_over_the_candidates_of_a_set(lengths, size):
    space = qd.TextSpace(2, lengths)
    texts = sentences(space)
    q = np.random.default_rng(6).dirichlet(np.ones(space.num_texts))
    total = 0.0
    for chosen, chance in zip(*batches(q, size), strict=True):
        words = [texts[i] for i in chosen]
        scores = [
            sentence_bleu(words[i], words[:i] + words[i + 1 :], 2) for i in range(size)
        ]
        total += chance * np.mean(scores)
    exact = float(qd.expected_self_bleu(space, q, 2, size - 1)[1])
    assert exact == pytest.approx(total, abs=1e-13)
