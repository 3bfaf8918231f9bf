"""What exercises.toml names: the answers that take more than an expression."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import qdtheory as qd
from qdtheory.bounds.duality import dual_bound as dual_bound
from qdtheory.course.grading import as_formula, as_numbers, require

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


# --- Lecture 04
def is_compatible(f: Any, g: str) -> bool:
    """Two formulas are a compatible pair."""
    why = "the pair is incompatible: g' is not a falling line in this f"
    if callable(f):  # of NumPy, JAX or Python: no proof reads it, its values say enough
        x = np.linspace(0.05, 0.95, 19)
        scores = np.array([float(as_numbers(f(place))) for place in x])
        slopes = np.array([-jax.grad(as_formula(g))(place) for place in x])
        line = np.polyfit(slopes, scores, 1)
        apart = np.abs(np.polyval(line, slopes) - scores).max()
        return require(line[0] > 0 and apart <= 1e-9 * np.ptp(scores), why)
    verdict = qd.check_compatibility(qd.SeparablePair(as_formula(f), as_formula(g)))
    decided = verdict.compatible is not None
    require(decided, "the pair is undecided: {}", verdict.reason)
    return require(verdict.compatible, why)


# --- Lecture 07
def tokens(text: Any) -> list[str]:
    """The words of a text, or the letters of one that is a single word."""
    if not isinstance(text, str):
        return [*map(str, text)]
    return text.split() if " " in text.strip() else [*text]


# --- Lecture 20
def is_pair_of_two_rewards(answer: Any) -> bool:
    """A formula of D that is a pair, rewards 1/2 with 1 and e / (1 + e) with 3."""
    readable = isinstance(answer, str) or callable(answer)
    require(readable, 'expected a formula of D as text, like "log(D)", or a function')
    rho = answer if callable(answer) else as_formula(answer, "D")
    d = np.array([0.5, np.e / (1 + np.e), *np.linspace(0.05, 0.95, 19)])
    rewards = np.array([float(as_numbers(rho(x))) for x in d])
    falls = np.diff(rewards[2:]) < -1e-12
    why = "falls, at D = {:.6g} for one; a text that looks more real must be worth more"
    rises = callable(answer) or not falls.any()
    require(rises, "the reward {} " + why, answer, d[3:][falls.argmax()])
    near(rewards[:1], 1, "{1:.4g} at D = .5, expected 1")
    near(rewards[1:2], 3, "{1:.4g} at D = .731, expected 3")
    # The only pairs are lines in the logit (N20.6), and two values fix a line.
    why = "right at both values, but the objective is no pair (N20.6)"
    return near(rewards, 1 + 2 * np.log(d / (1 - d)), why)
