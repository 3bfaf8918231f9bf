"""A source of sentences whose metrics have known means at every sample size.

A sentence has a topic, and its words are independent draws from the topic's law. So
sentences are independent, words of one sentence are not.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from qdtheory.text import Corpus, negative_repetition_rate


class TopicSource(NamedTuple):
    """Shares of the topics, the law of words in each, and the number of words."""

    shares: np.ndarray
    laws: np.ndarray
    length: int


def topic_source(vocab: int, topics: int, length: int, seed: int) -> TopicSource:
    """A source whose words follow Zipf's law, more or less, in each topic."""
    rng = np.random.default_rng(seed)
    weights = np.exp(rng.normal(size=(topics, vocab))) / np.arange(2, vocab + 2)
    laws = weights / weights.sum(axis=1, keepdims=True)
    return TopicSource(rng.dirichlet(np.full(topics, 3.0)), laws, length)


def draw(source: TopicSource, size: int, rng: np.random.Generator) -> Corpus:
    """Independent sentences."""
    topic = rng.choice(len(source.shares), size, p=source.shares)
    words = np.empty((size, source.length), np.int32)
    for k, law in enumerate(source.laws):
        here = np.flatnonzero(topic == k)
        u = rng.random((len(here), source.length))
        found = np.searchsorted(np.cumsum(law), u, side="right")
        words[here] = np.minimum(found, len(law) - 1)
    offsets = np.arange(size + 1) * source.length
    return Corpus(words.ravel(), offsets, tuple(range(source.laws.shape[1])))


def means(source: TopicSource, references: Corpus, size: int) -> dict[str, float]:
    """Means of metrics of a sample against fixed references of the same length.

    BLEU and Self-BLEU are without smoothing, CR, NRR and CND are those of pairs.
    """
    shares, laws, length = source
    times = np.arange(1, length + 1)[:, None]
    # Chance that a word occurs so many times, or more, in a sentence.
    reached = sum(s * binom.sf(times - 1, length, law) for s, law in zip(shares, laws))
    rows = references.tokens.reshape(-1, length)
    most = np.zeros(laws.shape[1], int)
    for row in rows:
        np.maximum.at(most, *np.unique(row, return_counts=True))
    others = -np.expm1((size - 1) * np.log1p(-reached))
    seen = -np.expm1(size * np.log1p(-reached[0])).sum()
    repeated = shares @ (laws @ laws.T) ** 2 @ shares
    first, second = laws[:, rows[:, :-1]], laws[:, rows[:, 1:]]
    covered = np.tensordot(shares, first * second, 1).mean()
    theirs = -negative_repetition_rate(references, 2, "pairs")
    return {
        "BLEU-1": (reached * (times <= most)).sum() / length,
        "Self-BLEU-1": (reached * others).sum() / length,
        "CR-2": covered,
        "NRR-2": -repeated,
        "CND-2": repeated + theirs - 2 * covered,
        "distinct-1": seen / (size * length),
    }
