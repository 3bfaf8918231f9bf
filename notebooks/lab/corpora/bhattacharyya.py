r"""The Bhattacharyya distance of two laws, from samples with their log-probabilities.

The mean of $\sqrt{Q/P}$ over texts of P is $c = \sum \sqrt{P Q} = e^{-B}$, and so is
the mean of $\sqrt{P/Q}$ over texts of Q. Each sample gives an estimate of its own.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.support.records import Estimate
from qdtheory.text.checks import require_positive
from qdtheory.text.defaults import LEVEL

# Two samples, and three inequalities each that may fail.
EVENTS = 6


def estimate_bhattacharyya(
    real_log_p: Float[ArrayLike, " real"] | Sequence[int | float],
    real_log_q: Float[ArrayLike, " real"] | Sequence[int | float],
    model_log_p: Float[ArrayLike, " model"] | Sequence[int | float],
    model_log_q: Float[ArrayLike, " model"] | Sequence[int | float],
    level: float = LEVEL,
) -> Estimate:
    r"""Bhattacharyya distance $-\log \sum \sqrt{P Q}$, from samples of both laws.

    $\hat B = -\frac12 (\log \frac1N \sum_i \sqrt{Q(x_i) / P(x_i)} + \log \frac1M
    \sum_j \sqrt{P(y_j) / Q(y_j)})$, with $x_i$ from P and $y_j$ from Q. Its bias is
    $\frac14 (e^{2B} - 1) (1/N + 1/M)$ to the first order.

    The interval holds for all P and Q and sizes, at least at the level. The terms are
    not negative and their second moment is at most 1, so with $\bar x$ the mean of N
    terms, $c \le \bar x + \sqrt{2 \log(1/\delta) / N}$ (Chernoff, as
    $e^{-x} \le 1 - x + x^2/2$ for $x \ge 0$), $c \ge \delta \bar x$ (Markov), and $c$
    is at least the lesser root of
    $(\bar x - c)^2 = (1 - c^2) (1 - \delta) / (\delta N)$ (Cantelli), each with
    probability $1 - \delta$. The limits are the best of both samples, with $\delta$ a
    sixth of 1 less the level.

    Args:
        real_log_p: log P of N independent texts of P, in nats, finite, shape (N,).
        real_log_q: log Q of the same texts; -inf where Q is 0.
        model_log_p: log P of M independent texts of Q, shape (M,); -inf where P is 0.
        model_log_q: log Q of the same texts, finite.
        level: the least coverage probability, in (0, 1).

    Returns:
        The estimate, infinite if one law gives all texts of the other 0. Its interval
        is asymmetric: from 0 at least, to infinity where nothing is known. Where its
        bias is not far below 1, the first order says nothing but that the samples are
        too small. The standard error is that of the delta method.

    Raises:
        ValueError: no texts, two shapes of one sample, a log-probability that is NaN
            or above 0, a sampled text of probability 0 under its own law, or a level
            outside (0, 1).

    References:
        Montahaei et al. 2019, equation 3.

    Claims: N13.2, N13.23.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
        >>> x, y = (np.log([p, q])[:, rng.choice(3, 4000, p=law)] for law in (p, q))
        >>> found = estimate_bhattacharyya(*x, *y)
        >>> exact = -np.log(np.sqrt(p * q).sum())
        >>> print(f"{found.value:.3f} in [{found.low:.3f}, {found.high:.3f}]")
        0.071 in [0.022, 0.175]
        >>> print(f"{exact:.3f}, bias {found.bias:.1e}")
        0.070, bias 1.9e-05
    """
    require_positive("level", level, below=1)
    log_means, sizes, variance = [], [], 0.0
    for owner, other, own_log, other_log in (
        ("real_log_p", "real_log_q", real_log_p, real_log_q),
        ("model_log_q", "model_log_p", model_log_q, model_log_p),
    ):
        own_log, other_log = np.asarray(own_log, float), np.asarray(other_log, float)
        _require_log_probabilities(owner, own_log)
        _require_log_probabilities(other, other_log)
        if own_log.shape != other_log.shape:
            raise ValueError(
                f"{owner} and {other}: expected one number a text in both, got "
                f"{len(own_log)} and {len(other_log)}"
            )
        if np.isneginf(own_log).any():
            raise ValueError(
                f"{owner}: text {np.isneginf(own_log).argmax()} has probability 0 "
                "under the law that it was drawn from"
            )
        log_mean, spread = _mean_of_exp((other_log - own_log) / 2)
        log_means.append(log_mean)
        sizes.append(len(own_log))
        variance += spread / (4 * len(own_log))
    distance, sizes = -np.mean(log_means), np.array(sizes)
    lowest, highest = _limits(np.exp(log_means), sizes, 1 - level)
    with np.errstate(divide="ignore", over="ignore"):  # infinite limit, infinite bias
        low, high = -np.log(highest), -np.log(lowest)
        bias = np.expm1(2 * max(distance, 0.0)) * (1 / sizes).sum() / 4
    return Estimate(
        *map(float, (distance, low, high, np.sqrt(variance))), bias=float(bias)
    )


def _require_log_probabilities(name: str, logs: np.ndarray) -> None:
    if logs.ndim != 1 or not len(logs):
        raise ValueError(
            f"{name}: expected the log-probabilities of one text or more, got an "
            f"array of shape {logs.shape}"
        )
    bad = ~(logs <= 0)
    if bad.any():
        raise ValueError(
            f"{name}: expected log-probabilities, at most 0, got "
            f"{logs[bad][0]} at text {bad.argmax()}"
        )


def _mean_of_exp(logs: np.ndarray) -> tuple[float, float]:
    """Log of the mean of numbers given by their logs, and its relative variance."""
    top = logs.max()
    if np.isneginf(top):
        return -np.inf, np.nan
    scaled = np.exp(logs - top)
    mean = scaled.mean()
    spread = scaled.var(ddof=1) / mean**2 if len(logs) > 1 else np.nan
    return float(top + np.log(mean)), float(spread)


def _limits(means: np.ndarray, sizes: np.ndarray, alpha: float) -> tuple[float, float]:
    """Least and greatest c that no inequality rules out, both in [0, 1]."""
    delta = alpha / EVENTS
    above = means + np.sqrt(-2 * np.log(delta) / sizes)
    share = (1 - delta) / (delta * sizes)
    # The lesser root of (mean - c)^2 = share (1 - c^2); none if the mean is too large.
    root = np.sqrt(np.maximum(share * (1 + share - means**2), 0))
    below = np.maximum((means - root) / (1 + share), delta * means)
    highest = min(float(above.min()), 1.0)
    return min(float(below.max()), highest), highest
