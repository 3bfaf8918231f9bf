"""Expected BLEU against sums over all tuples of texts, with NLTK inside."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import sentence_bleu, sentences

import qdtheory as qd
from qdtheory.metrics.bleu import (
    bleu_table,
    estimate_bleu,
    expected_corpus_bleu,
    text_bleu,
)

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


@pytest.mark.slow
@pytest.mark.claim("N7.9", "N7.20")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references"),
    [
        (2, 3, 1),
        (2, 3, 2),
        (2, 3, 3),
        (3, 2, 2),
        (3, 3, 1),
        (2, (1, 2, 3), 1),
        (2, (1, 2, 3), 2),
        (2, (2, 4), 2),
        (2, (1, 2), 3),
        (3, (1, 2), 2),
        (1, (1, 2, 4, 5), 2),
    ],
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
    slope = jax.grad(pair.diversity)(q) @ d
    step = 1e-6
    change = pair.diversity(q + step * d) - pair.diversity(q - step * d)
    assert float(change / (2 * step)) == pytest.approx(float(slope), rel=1e-7)


def test_orders_beyond_every_text():
    space = qd.TextSpace(2, (1, 2))
    p = np.full(6, 1 / 6)
    assert qd.expected_bleu(space, p, p).tolist()[2:] == [0, 0]
    smooth = float(qd.expected_bleu(space, p, p, 3, 2, "epsilon")[2])
    tensor = nltk_tensor(space, 3, 2, "epsilon")
    assert smooth == pytest.approx(brute_force(tensor, p, p), abs=1e-12)


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references", "num_candidates"),
    [(2, 2, 2, 2), (2, (1, 2), 2, 2), (2, (1, 3), 1, 2), (2, (1, 2), 1, 3)],
)
def test_pooled_bleu_equals_the_sum_over_all_tuples(
    vocab_size, lengths, num_references, num_candidates, smoothing
):
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    method = SmoothingFunction().method1 if smoothing else None
    space = qd.TextSpace(vocab_size, lengths)
    texts, n = sentences(space), space.num_texts
    q, p = np.random.default_rng(5).dirichlet(np.ones(n), 2)
    ours = expected_corpus_bleu(
        space, q, p, 2, num_references, num_candidates, smoothing
    )
    for max_order, found in enumerate(ours, start=1):
        total = 0.0
        for rs in itertools.product(range(n), repeat=num_references):
            references = [[texts[r] for r in rs]] * num_candidates
            for cs in itertools.product(range(n), repeat=num_candidates):
                score = corpus_bleu(
                    references,
                    [texts[c] for c in cs],
                    (1 / max_order,) * max_order,
                    method,
                )
                total += p[list(rs)].prod() * q[list(cs)].prod() * score
        assert found == pytest.approx(total, abs=1e-12)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references"), [(8, 4, 10), (2, (1, 3, 5), 2)]
)
def test_monte_carlo_agrees(vocab_size, lengths, num_references):
    space = qd.TextSpace(vocab_size, lengths)
    rng = np.random.default_rng(7)
    q, p = rng.dirichlet(np.full(space.num_texts, 0.5), 2)
    candidates = rng.choice(space.num_texts, size=20_000, p=q)
    references = rng.choice(space.num_texts, size=(20_000, num_references), p=p)
    for smoothing in (None, "epsilon"):
        found = estimate_bleu(
            space.tokens[candidates], space.tokens[references], 2, smoothing
        )
        exact = qd.expected_bleu(space, q, p, 2, num_references, smoothing)
        assert (abs(found.value - exact) <= 4 * found.standard_error).all()
        assert (found.standard_error <= 0.01).all()


def test_monte_carlo_scores_single_draws_as_nltk_does():
    rng = np.random.default_rng(8)
    for _ in range(30):
        candidate = rng.integers(3, size=(1, rng.integers(1, 9)))
        references = rng.integers(3, size=(1, 3, 7))
        for row, length in enumerate(rng.integers(1, 8, size=3)):
            references[0, row, length:] = -1
        # The mean of two equal draws is the score itself.
        found = estimate_bleu(candidate.repeat(2, 0), references.repeat(2, 0), 3)
        texts = [[int(t) for t in row if t >= 0] for row in references[0]]
        scores = [sentence_bleu(candidate[0].tolist(), texts, n) for n in (1, 2, 3)]
        assert found.value == pytest.approx(scores, abs=1e-14)
        assert not found.standard_error.any()


SPACE, P, EIGHT = qd.TextSpace(2, 2), np.full(4, 0.25), np.full(8, 1 / 8)
TEXTS, REFERENCES = np.zeros((3, 2), int), np.zeros((3, 1, 2), int)
REFUSED = [
    (lambda: qd.expected_bleu(SPACE, P, P, 2, 0), "num_references must be a whole num"),
    (lambda: qd.expected_bleu(SPACE, P, P, 2, 1.5), "number from 1 on, got 1.5"),
    (lambda: qd.BleuPair(SPACE, 2, 2, 0), "num_self_references must be a whole number"),
    (lambda: qd.expected_bleu(SPACE, P, P, 0), "max_order must be at least 1, got 0"),
    (
        lambda: qd.expected_bleu(SPACE, P, P, 2, 2, "add"),
        "expected None or \"epsilon\", got 'add'",
    ),
    (lambda: qd.expected_bleu(SPACE, EIGHT, P), "q must have 4 entries, got 8"),
    (lambda: qd.expected_bleu(SPACE, P, EIGHT), "p must have 4 entries, got 8"),
    (lambda: qd.BleuPair(qd.TextSpace(5, 8)), r"BLEU table .* GiB"),
    (
        lambda: expected_corpus_bleu(SPACE, P, P, num_candidates=0),
        "num_candidates must be a whole number from 1 on, got 0",
    ),
    (
        lambda: expected_corpus_bleu(SPACE, P, P, num_references=500),
        "multisets of references, 1,000,000",
    ),
    (lambda: estimate_bleu(TEXTS, REFERENCES[:2]), r"\(3, 2\) and \(2, 1, 2\)"),
    (lambda: estimate_bleu(TEXTS[:1], REFERENCES[:1]), "at least 2 draws, got 1"),
    (lambda: estimate_bleu(TEXTS - 1, REFERENCES), "no text may be empty"),
    (lambda: bleu_table(qd.TextSpace(1, 12), 7), "texts of 63 n-grams and lengths"),
]


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.claim("N7.14")
@pytest.mark.parametrize(("lengths", "size"), [(2, 2), ((1, 2), 3), (2, 4)])
def test_self_bleu_averages_over_the_candidates_of_a_set(lengths, size):
    space = qd.TextSpace(2, lengths)
    texts = sentences(space)
    q = np.random.default_rng(6).dirichlet(np.ones(space.num_texts))
    total = 0.0
    for chosen in itertools.product(range(space.num_texts), repeat=size):
        words = [texts[i] for i in chosen]
        scores = [
            sentence_bleu(words[i], words[:i] + words[i + 1 :], 2) for i in range(size)
        ]
        total += q[list(chosen)].prod() * np.mean(scores)
    exact = float(qd.expected_self_bleu(space, q, 2, size - 1)[1])
    assert exact == pytest.approx(total, abs=1e-13)
