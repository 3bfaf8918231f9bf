"""BLEU of two texts by counting, and derivatives of von Neumann's entropy."""

from collections import Counter
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refused
from scipy.linalg import logm

import qdtheory as qd
from qdtheory.kernels import bleu_kernel, matrix_log, von_neumann_entropy
from qdtheory.proofs.kernel_criterion import kernel_criterion


def test_bleu_of_several_lengths_is_no_kernel(as_a_user):
    # The brevity penalty sees who is the candidate.
    space = qd.TextSpace(2, (1, 2))
    pair = qd.BleuPair(space, 1, 1, 1)
    kernel = np.stack([pair.text_quality(e) for e in np.eye(6)], axis=1)
    refused(
        ("for texts of one length, got", bleu_kernel, space, 1),
        ("must be symmetric", qd.KernelPair, kernel),
    )


def counted_kernel(texts, order):
    """BLEU of each text against each, texts of one length, by counting."""
    product_of = np.ones((len(texts), len(texts)))
    for n in range(1, order + 1):
        bags = [Counter(t[i : i + n] for i in range(len(t) - n + 1)) for t in texts]
        shared = [[(a & b).total() for b in bags] for a in bags]
        product_of *= np.array(shared) / (len(texts[0]) - n + 1)
    return product_of ** (1 / order)


@pytest.mark.claim("N16.28")
@pytest.mark.parametrize("length", range(2, 6))
def test_bleu_is_an_inner_product_at_the_lowest_and_the_highest_order_only(length):
    texts = ["".join(t) for t in product("ab", repeat=length)]
    rng = np.random.default_rng(length)
    d = rng.normal(size=(2000, len(texts)))
    d -= d.mean(axis=1, keepdims=True)
    for order in range(1, length + 1):
        kernel = counted_kernel(texts, order)
        np.testing.assert_allclose(
            kernel, bleu_kernel(qd.TextSpace(2, length), order), atol=1e-14
        )
        if order in (1, length):
            # A Cholesky factor is the proof; the jitter is for the texts that tie.
            np.linalg.cholesky(kernel + 1e-10 * np.eye(len(texts)))
            assert (np.einsum("ix,xy,iy->i", d, kernel, d) >= -1e-10).all()
            continue
        found = kernel_criterion(kernel)
        assert found.all_dominated
        # Over three words the directions are still there: the old texts are a part.
        wider = bleu_kernel(qd.TextSpace(3, length), order) if length < 4 else None
        if wider is not None:
            assert kernel_criterion(wider).num_negative >= found.num_negative
    if length > 1:
        assert np.array_equal(counted_kernel(texts, length), np.eye(len(texts)))


def test_over_one_word_there_is_nothing_to_beat():
    for order in (1, 2, 3):
        assert bleu_kernel(qd.TextSpace(1, 3), order).tolist() == [[1.0]]


def periodic(word, length, starts):
    """Texts of a length that start at some positions of a periodic sequence."""
    return [(word * length)[s : s + length] for s in starts]


@pytest.mark.claim("N25.23")
@pytest.mark.parametrize(
    ("order", "period", "words"),
    [
        (4, 2, ("0011", "0001")),
        (7, 2, ("0011", "0001")),
        (5, 3, ("000111", "010011")),
        (6, 3, ("000111", "010011")),
        (6, 4, ("00001111", "00011001")),
        (8, 6, ("0" * 6 + "1" * 6, "000011100011")),
    ],
)
def test_two_sequences_without_common_ngrams_give_two_negative_directions(
    order, period, words
):
    starts = (0, period // 2, period, period + period // 2)
    length = order + period - 1
    texts = [text for word in words for text in periodic(word, length, starts)]
    kernel = counted_kernel(texts, order)
    d = np.array([1, -1, 1, -1])
    assert (kernel[:4, 4:] == 0).all()
    for block in (kernel[:4, :4], kernel[4:, 4:]):
        assert block[0, 2] == block[1, 3] == 0
        assert d @ block @ d < 0


@pytest.mark.claim("N25.23")
@pytest.mark.parametrize(
    ("order", "length"), [(3, 5), (3, 40), (4, 6), (4, 12), (7, 12), (7, 30), (9, 16)]
)
def test_six_texts_have_two_negative_directions(order, length):
    run = length - order + 1
    texts = ["0" * i + "1" * run + "0" * (order - 1 - i) for i in range(3)]
    images = ["".join("10"[int(c)] for c in text) for text in texts]
    kernel = counted_kernel(texts + images, order)
    assert not np.diag(kernel[:3, 3:]).any()
    # Negative definite on the plane that (1, -1, 0) and (0, 1, -1), twice each, span.
    plane = np.tile([[1, -1, 0], [0, 1, -1]], 2)
    assert np.linalg.eigvalsh(plane @ kernel @ plane.T).max() < -1e-3
    found = kernel_criterion(kernel)
    assert found.num_negative >= 2
    assert found.all_dominated


@pytest.mark.claim("N25.23")
@pytest.mark.parametrize("length", [3, 4, 5, 17, 100, 499, 500, 2011])
def test_pairs_of_words_have_two_negative_directions_at_every_length(length):
    if length < 5:
        texts = list(product("01", repeat=length))
    elif length < 500:
        cuts = [length * i // 8 for i in range(9)]
        ends = [(a, b) for a in cuts for b in cuts if a <= b]
        alternating = "01" * length
        texts = {"0" * a + "1" * (b - a) + alternating[: length - b] for a, b in ends}
    else:
        k, alternating = length // 16, "10" * length
        texts = ["0" * length, "0" * (length - k) + "1" * k]
        texts += ["0" * k + alternating[: length - k], alternating[1 : length + 1]]
        texts += ["".join("10"[int(c)] for c in text) for text in texts]
    kernel = counted_kernel(sorted(map("".join, texts)), 2)
    assert kernel_criterion(kernel).num_negative >= 2


@pytest.mark.claim("N25.23")
@pytest.mark.parametrize(("order", "length"), [(2, 3), (2, 7), (3, 4), (4, 9), (6, 8)])
def test_four_texts_beat_some_p_whatever_the_order(order, length):
    period = length - order + 1
    start = period - order + 1 if period >= order else period // 2
    starts = (0, start, period, period + start)
    texts = periodic("0" * period + "1" * period, length, starts)
    kernel = counted_kernel(texts, order)
    found = kernel_criterion(kernel)
    assert found.num_negative == 1
    assert not found.compatible
    p, q = (np.asarray(x) for x in (found.witness.p, found.witness.q))
    assert min((q - p) @ kernel @ p, (p - q) @ kernel @ (p + q)) > 1e-6


@pytest.mark.parametrize("rho", [np.eye(3) / 3, np.diag([0.5, 0.3, 0.2])])
def test_derivatives_equal_differences_even_of_repeated_eigenvalues(rho):
    step = np.array([[1.0, 0.5, 0], [0.5, -0.7, 0.2], [0, 0.2, -0.3]])

    def along(t):
        return von_neumann_entropy(jnp.asarray(rho) + t * step)

    t = 1e-4
    slope = (along(t) - along(-t)) / (2 * t)
    bend = (along(t) - 2 * along(0.0) + along(-t)) / t**2
    assert jax.grad(along)(0.0) == pytest.approx(float(slope), abs=1e-6)
    assert jax.grad(jax.grad(along))(0.0) == pytest.approx(float(bend), rel=1e-5)
    np.testing.assert_allclose(matrix_log(jnp.asarray(rho)), logm(rho), atol=1e-12)
