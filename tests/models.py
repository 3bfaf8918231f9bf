"""Distributions to test on, exact values, and what a found model has to satisfy."""

import itertools
from collections import Counter
from fractions import Fraction
from itertools import product

import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from nltk.translate import bleu_score as nltk

import qdtheory as qd

pytestmark = pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")


def oracle(space, seed, sigma, size=8):
    """The distribution over the space's texts of a random LSTM oracle."""
    model = qd.LSTMLanguageModel.random(
        jax.random.key(seed),
        vocab_size=space.vocab_size,
        embedding_size=size,
        hidden_size=size,
        sigma=sigma,
    )
    return np.asarray(model.probabilities(space))


def assert_attained(pair, p, q, gain):
    """The model is a distribution, as diverse as P, and gains this much quality."""
    q = np.asarray(q)
    assert q.min() >= 0
    assert abs(q.sum() - 1) <= 1e-13  # some hundreds of roundings
    assert pair.diversity(q) >= pair.diversity(p)
    found = float(pair.quality(q, p) - pair.quality(p, p))
    assert abs(found - float(gain)) <= 1e-14


def exact(array):
    """The fractions that numbers in 64 bits are: bounds of them need no rounding."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, float))


def exact_bleu(pair, p, num_references):
    """Expected BLEU of each text, and the weights and sets that it is a sum over."""
    table, n = pair.table, pair.space.num_texts
    sets = np.asarray(table.sets).reshape(-1, n)[: table.num_sets].astype(int)
    weights = np.full((n, table.num_sets), Fraction(0))
    for text, k, weight in zip(table.text, table.set_index, table.weight):
        weights[text, k] += Fraction(float(weight))
    return weights @ (sets @ p) ** num_references, weights, sets


def mixtures(size, steps):
    """All distributions over `size` points in units of 1 / steps."""
    bars = np.array(list(itertools.combinations(range(steps + size - 1), size - 1)))
    ends = np.full((len(bars), 1), -1), np.full((len(bars), 1), steps + size - 1)
    return (np.diff(np.hstack([ends[0], bars, ends[1]]), axis=1) - 1) / steps


def distribution(seed, size, *, zeros=0.0):
    """A random distribution; each entry but the first is 0 with chance `zeros`."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=size) ** 2
    weights[1:] *= rng.random(size - 1) >= zeros
    return weights / weights.sum()


def distributions(size=5):
    weights = st.lists(st.floats(1e-3, 1), min_size=size, max_size=size)
    return weights.map(lambda w: np.array(w) / np.sum(w))


def centred(vector):
    return vector - vector.mean()


# Dyadic numbers, which floating point holds exactly.
LEAVES = st.sampled_from(["x", "x", "1", "2", "0.5", ".25", "3.0", "1.5e1"])
EXPONENTS = st.sampled_from(["2", "-1", "0.5", "(1/3)", "-2.5", "3"])


def compound(parts):
    return st.one_of(
        st.tuples(parts, st.sampled_from("+-*/"), parts).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        st.tuples(st.sampled_from(["log", "exp", "sqrt", "-", "+"]), parts).map(
            "{0[0]}({0[1]})".format
        ),
        st.tuples(parts, EXPONENTS).map("({0[0]})**{0[1]}".format),
    )


EXPRESSIONS = st.recursive(LEAVES, compound, max_leaves=8)


def sentences(space):
    return [tuple(int(t) for t in row if t >= 0) for row in space.tokens]


def sentence_bleu(candidate, references, max_order):
    score = nltk.sentence_bleu(references, candidate, (1 / max_order,) * max_order)
    return float(np.asarray(score))


def draw(seed, size, concentration=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(size, concentration))


def positive(seed, size):
    return qd.mix(draw(seed, size), np.full(size, 1 / size), 0.01).__array__()


def power(p, beta):
    weights = p**beta
    return weights / weights.sum()


def shares_of_texts(space, n):
    """n-gram shares of each text, one column a text, by a loop."""
    columns = []
    for text in space.tokens.tolist():
        text = [token for token in text if token >= 0]
        grams = Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
        every = product(range(space.vocab_size), repeat=n)
        columns.append([grams[g] / max(1, grams.total()) for g in every])
    return np.array(columns).T


def counted(space, q, n):
    """Expected n-gram counts, one text and one position at a time."""
    counts = Counter()
    for probability, text in zip(q, space.tokens.tolist(), strict=True):
        text = [token for token in text if token >= 0]
        for start in range(len(text) - n + 1):
            counts[tuple(text[start : start + n])] += probability
    every = product(range(space.vocab_size), repeat=n)
    return np.array([counts[ngram] for ngram in every])
