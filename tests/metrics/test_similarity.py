"""BLEU of each text by each: symmetric, an inner product at the end orders only."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.metrics.similarity import bleu_kernel
from qdtheory.theory.kernel_criterion import kernel_criterion


def test_bleu_of_several_lengths_is_no_kernel(as_a_user):
    # The brevity penalty sees who is the candidate.
    space = qd.TextSpace(2, (1, 2))
    with pytest.raises(ValueError, match="texts of one length only"):
        bleu_kernel(space, 1)
    pair = qd.BleuPair(space, 1, 1, 1)
    kernel = np.stack([pair.text_quality(e) for e in np.eye(6)], axis=1)
    with pytest.raises(ValueError, match="must be symmetric"):
        qd.KernelPair(kernel)
    with pytest.raises(ValueError, match="texts of one length"):
        qd.ngram_kernel(space, 1)


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
