"""What the answers of several lectures use."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import qdtheory as qd

# What a test of an example returns: a truth value of Python, NumPy or JAX.
Truth: TypeAlias = Any

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


def in_words(found: list) -> str:
    """What a model gains, in words."""
    u, v = map(float, found)
    return f"quality changes by {u:.3g} and diversity by {v:.3g}"


def token_by_token(p: np.ndarray, rule: Callable[[np.ndarray], Any]) -> Any:
    """Texts of two tokens over two, where a rule changes the law of each next token."""
    by_first = p.reshape(2, 2)
    second = [rule(row / row.sum()) for row in by_first]
    first = rule(by_first.sum(axis=1))
    return (np.asarray(first)[:, None] * np.asarray(second)).ravel()


def temper_tokens(p: np.ndarray, beta: float) -> Any:
    """Token-level tempering of texts of two tokens over two."""
    return token_by_token(p, lambda law: qd.temper(law, beta))


def cnd_between(answer: Any, n: int, estimator: str = "plug-in") -> float:
    """CND of two sets of sentences."""
    a, b = ([[*map(str, s)] for s in sentences] for sentences in answer)
    return qd.text.cnd(a, b, n, estimator)  # type: ignore
