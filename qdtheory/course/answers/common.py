"""What the answers of several lectures use."""

from collections.abc import Callable
from typing import Any

import numpy as np

import qdtheory as qd
from qdtheory.course.grading import require

# Probabilities of the texts aa, ab, ba, bb, or of a, b, c, d.
FOUR = (0.4, 0.3, 0.2, 0.1), (0.1, 0.6, 0.05, 0.25), (0.25, 0.25, 0.25, 0.25)
STEEP = np.array([0.5, 0.3, 0.15, 0.05])
THREE_TOKENS = qd.TextSpace(vocab_size=2, lengths=3)


def fours(*more: object) -> list[tuple]:
    """Arguments of a function of four probabilities, and of what else it takes."""
    return [(np.array(p), *more) for p in FOUR]


def gains(pair: Any, q: np.ndarray, p: np.ndarray) -> list:
    """What a model gains in quality and in diversity."""
    u, v = pair.quality, pair.diversity
    return [u(q, p) - u(p, p), v(q) - v(p)]


def better(pair: Any, q: np.ndarray, p: np.ndarray, least: float, asked: str) -> bool:
    """Require of a model that its gains are at least so much, and one is a gain."""
    found = gains(pair, q, p)
    told = "quality changes by {:.3g} and diversity by {:.3g}, expected " + asked
    return require(min(found) > least and max(found) > 1e-6, told, *found)


def at_least(value: Any, least: float, fault: str) -> bool:
    """Require a value, which the fault may name, of at least so much less 1e-9."""
    return require(value >= least - 1e-9, fault, value)


def near(x: Any, y: Any, fault: str) -> bool:
    """Require equality to 1e-9; the fault may name the widest gap, and x there."""
    gaps = np.abs(np.subtract(x, y))
    worst = gaps.argmax()
    return require(gaps[worst] <= 1e-9, fault, gaps[worst], np.asarray(x)[worst])


def greedy(p: np.ndarray) -> float:
    """Probability of the text that has the likeliest tokens, of texts of two."""
    by_first = p.reshape(round(p.size**0.5), -1)
    return by_first[by_first.sum(axis=1).argmax()].max()


def token_by_token(p: np.ndarray, rule: Callable[[np.ndarray], Any]) -> Any:
    """Texts of two tokens over two, where a rule changes the law of each next token."""
    by_first = p.reshape(2, 2)
    second = [rule(row / row.sum()) for row in by_first]
    first = rule(by_first.sum(axis=1))
    return (np.asarray(first)[:, None] * np.asarray(second)).ravel()


def temper_tokens(p: np.ndarray, beta: float) -> Any:
    """Token-level tempering of texts of two tokens over two."""
    return token_by_token(p, lambda law: qd.temper(law, beta))


def cnd_between(answer: Any, n: int, estimator: Any = "plug-in") -> float:
    """CND of two sets of sentences."""
    a, b = ([[*map(str, s)] for s in sentences] for sentences in answer)
    return qd.text.cnd(a, b, n, estimator)
