"""Expected BLEU and Self-BLEU as a pair, by NLTK, enumeration and models by hand."""

from itertools import product
from math import exp, fsum, log1p

import jax
import numpy as np
import pytest
from models import beaten, oracle, sentence_bleu, sentences

import qdtheory as qd

pytestmark = pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")

SPACE = qd.TextSpace(4, 3)
ORDERS = (1, 2, 3)


def test_with_two_references_the_gradients_decide():
    pair = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
    p = np.random.default_rng(4).dirichlet(np.ones(8))
    np.testing.assert_array_equal(beaten(pair, p).witness.p, p)


def nltk_scores(space, order, num_references=2):
    """BLEU of each candidate with each tuple of references."""
    texts = sentences(space)
    found = [
        sentence_bleu(candidate, references, order)
        for candidate, *references in product(texts, repeat=1 + num_references)
    ]
    return np.reshape(found, (len(texts),) * (1 + num_references))


# -- models that win ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.claim("N8.1")
@pytest.mark.parametrize("order", ORDERS)
def test_a_model_beats_the_real_distribution_by_nltk(order):
    space = qd.TextSpace(3, 3)
    scores, pair = nltk_scores(space, order), qd.BleuPair(space, order, 2, 2)
    for seed in (0, 1):
        p = oracle(space, seed, 1.0)
        found = qd.quality_discrepancy(pair, p)
        q = np.asarray(found.q)
        rise = np.einsum("cab,c,a,b", scores, q - p, p, p)
        least, own = (np.einsum("cab,c,a,b", scores, x, x, x) for x in (p, q))
        assert rise == pytest.approx(found.qdisc, abs=1e-13)
        assert rise > 1e-6
        assert own <= least + 1e-13


# -- the most diverse models --------------------------------------------------------

SPACES = [qd.TextSpace(2, 4), qd.TextSpace(3, 3), qd.TextSpace(4, 2), SPACE]


def repeated_words(space):
    """The indices of the texts that repeat one word."""
    same = (space.tokens == space.tokens[:, :1]).all(axis=1)
    return np.flatnonzero(same)


@pytest.mark.claim("N8.13")
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_repeated_words_are_most_diverse_up_to_as_many_references(space):
    rng = np.random.default_rng(13)
    for k in range(1, space.vocab_size + 1):
        pair = qd.BleuPair(space, 1, 2, k)
        q = np.zeros(space.num_texts)
        q[repeated_words(space)] = 1 / space.vocab_size
        greatest = (1 - 1 / space.vocab_size) ** k
        assert 1 + pair.diversity(q) == pytest.approx(greatest, abs=1e-14)
        # It satisfies the first-order conditions of a maximum over all models.
        slope = np.asarray(jax.grad(pair.diversity)(q))
        assert (slope <= slope[repeated_words(space)].min() + 1e-13).all()
        for concentration in (0.02, 0.3, 3):
            for other in rng.dirichlet(np.full(q.size, concentration), 10):
                assert 1 + float(pair.diversity(other)) < greatest


@pytest.mark.claim("N8.14")
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_beyond_that_one_word_stands_out(space):
    rng = np.random.default_rng(14)
    words, repeats = space.vocab_size, repeated_words(space)
    for k in (words + 1, 3 * words, 100):
        pair = qd.BleuPair(space, 1, 2, k)
        most = (words - 1) / k * (1 - 1 / k) ** (k - 1)
        built = np.zeros(space.num_texts)
        built[repeats] = 1 / k
        built[repeats[0]] = 1 - (words - 1) / k
        assert (1 - 1 / k) * most <= 1 + pair.diversity(built) + 1e-14 <= most
        # One word's texts beside a little of everything: other ways to collapse.
        for other in rng.dirichlet(np.full(built.size, 0.3), 20):
            mixed = 0.9 * np.eye(built.size)[0] + 0.1 * other
            for q in (other, mixed):
                assert 1 + float(pair.diversity(q)) <= most


@pytest.mark.claim("N8.14")
@pytest.mark.parametrize("order", ORDERS)
def test_repeated_words_are_in_the_references_or_not(order):
    scores = nltk_scores(qd.TextSpace(3, 3), order)
    repeats = repeated_words(qd.TextSpace(3, 3))
    part = scores[np.ix_(repeats, repeats, repeats)]
    member = [[[c in (a, b) for b in range(3)] for a in range(3)] for c in range(3)]
    np.testing.assert_allclose(part, np.array(member, float), atol=1e-12)


@pytest.mark.claim("N8.15")
def test_one_word_of_ten_thousands_by_logarithms():
    words, k = 5473, 49_999
    flat = exp(k * log1p(-1 / words))
    top = 1 - (words - 1) / k
    rest = [exp(k * log1p(-1 / k)) / k] * (words - 1)
    collapsed = fsum([*rest, top * exp(k * log1p(-top))])
    most = (words - 1) / k * exp((k - 1) * log1p(-1 / k))
    assert top == pytest.approx(0.8906, abs=1e-4)
    assert 300 * flat < collapsed < most < (1 + 1e-4) * collapsed


# -- one reference on each side -----------------------------------------------------


@pytest.mark.claim("N8.19")
def test_bleu_1_and_3_are_squares_and_bleu_2_is_not():
    counts = np.stack([(SPACE.tokens == word).sum(1) for word in range(4)], axis=1)
    tails = (counts[:, :, None] >= np.arange(1, 4)).reshape(64, -1).astype(float)
    np.testing.assert_allclose(
        nltk_scores(SPACE, 1, 1), tails @ tails.T / 3, atol=1e-12
    )
    np.testing.assert_allclose(nltk_scores(SPACE, 3, 1), np.eye(64), atol=1e-12)
    kernel = nltk_scores(SPACE, 2, 1)
    zero_sum = np.linalg.svd(np.ones((1, 64)))[2][1:]
    values, vectors = np.linalg.eigh(zero_sum @ kernel @ zero_sum.T)
    assert values[0] < -0.4
    # Two such directions leave one in which quality stays: diversity rises.
    a, b = (vectors[:, i] @ zero_sum for i in (0, 1))
    for seed in range(3):
        p = oracle(SPACE, seed, 0.5)
        d = (b @ kernel @ p) * a - (a @ kernel @ p) * b
        q = p + d * (p[d < 0] / -d[d < 0]).min()
        assert (q - p) @ kernel @ p == pytest.approx(0, abs=1e-12)
        assert q @ kernel @ q < p @ kernel @ p - 1e-12
