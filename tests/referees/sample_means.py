"""Exact means of n-gram rates over samples of some number of sentences."""

from itertools import product
from math import factorial, prod

import numpy as np


def counts_of(space, n):
    """How often each text holds each n-gram, shape (texts, ngrams)."""
    grams = space.ngrams(n)
    return (grams[:, :, None] == np.arange(space.vocab_size**n)).sum(axis=1)


def moments(space, q, n):
    """The n-gram distribution, and tr Cov of one text's n-gram frequencies."""
    counts = counts_of(space, n)
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean = q @ shares
    return mean, float(q @ ((shares - mean) ** 2).sum(axis=1))


def _by_number(space, q, n):
    """Texts with t n-grams for each t: t, probability, E c, E |c|^2, Pr(c_g > 0)."""
    counts = counts_of(space, n)
    totals = counts.sum(axis=1)
    for t in np.unique(totals):
        chance = q[totals == t].sum()
        law, some = q[totals == t] / chance, counts[totals == t]
        yield t, chance, law @ some, law @ (some**2).sum(axis=1), law @ (some > 0)


def expectations(space, q, n, size):
    """What S sentences give on average, two of them or more with n tokens.

    Over all ways to have so many sentences of each length: the frequencies, their
    squared norm, the same from pairs of sentences only, and the distinct n-grams over
    all. Given the lengths, each is a sum over independent sentences or pairs of them.
    """
    totals, chances, means, squares, present = (
        np.array(x) for x in zip(*_by_number(space, q, n), strict=True)
    )
    weights, values = [], []
    for times in product(range(size + 1), repeat=len(totals)):
        k = np.array(times)
        if k.sum() != size or k[totals > 0].sum() < 2:
            continue
        ways = factorial(size) // prod(map(factorial, times))
        weights.append(ways * np.prod(chances**k))
        total, mean = k @ totals, k @ means
        between = mean @ mean - k @ (means**2).sum(axis=1)
        values.append(
            (
                *(mean / total),
                (between + k @ squares) / total**2,
                between / (total**2 - k @ totals**2),
                (1 - np.prod((1 - present) ** k[:, None], axis=0)).sum() / total,
            )
        )
    *frequencies, square, pairs, kinds = np.average(values, axis=0, weights=weights)
    return np.array(frequencies), square, pairs, kinds


def sentence_averaged(space, q, n):
    """The law of an n-gram of a random text among those with n tokens."""
    counts = counts_of(space, n)
    totals = counts.sum(axis=1)
    shares = counts[totals > 0] / totals[totals > 0, None]
    return q[totals > 0] @ shares / q[totals > 0].sum()
