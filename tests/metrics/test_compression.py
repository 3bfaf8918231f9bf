"""LZ78 against a cut by hand, and its expectation over all samples."""

from itertools import product
from math import ceil, log2

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.metrics.compression import compression_table, lz78_bits, lz78_phrases


def cut(tokens):
    """The phrases, each the shortest prefix of the rest that is new."""
    phrases, rest = [], tuple(tokens)
    while rest:
        sizes = range(1, len(rest) + 1)
        size = next((n for n in sizes if rest[:n] not in phrases), len(rest))
        phrases.append(rest[:size])
        rest = rest[size:]
    return phrases


def test_phrases_are_those_of_the_definition():
    for tokens in product(range(2), repeat=9):
        assert lz78_phrases(tokens) == len(cut(tokens))
    assert lz78_phrases([]) == 0
    for number, size in ((1, 2), (7, 3), (20, 5)):
        bits = sum(ceil(log2(j)) + ceil(log2(size)) for j in range(1, number + 1))
        assert lz78_bits(number, size) == bits


@pytest.mark.claim("N25.19")
@pytest.mark.parametrize("num_texts", [1, 2, 3])
def test_the_expectation_is_the_mean_over_all_samples(num_texts):
    space = qd.TextSpace(2, 2)
    q = np.array([0.1, 0.2, 0.3, 0.4])
    expected = 0.0
    for sample in product(range(4), repeat=num_texts):
        tokens = space.tokens[list(sample)].ravel().tolist()
        ratio = len(tokens) / lz78_bits(len(cut(tokens)), 2)
        expected += q[list(sample)].prod() * ratio
    found = qd.metrics.expected_compression(space, q, num_texts)
    assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.claim("N25.19")
def test_a_long_sample_needs_about_its_entropy_rate():
    tokens = np.random.default_rng(0).choice(2, p=[0.9, 0.1], size=200_000)
    bits = lz78_bits(lz78_phrases(tokens.tolist()), 2) / tokens.size
    rate = float(qd.entropy(np.array([0.9, 0.1]))) / np.log(2)
    # Above the rate by a term that falls like 1 / log n.
    assert rate < bits < 1.35 * rate


def test_too_many_samples_are_refused(as_a_user):
    with pytest.raises(ValueError, match="too many to compress"):
        compression_table(qd.TextSpace(4, 3), 4)
