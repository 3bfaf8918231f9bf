"""Time the Pareto frontier against one SciPy root-finder a weight.

    python benchmarks/frontier.py

The baseline is what one writes from Theorem 2: for each weight, `brentq` finds b
with sum(Q) = 1, where Q = g'^-1(min(g'(0), w phi + b)) is one vectorised NumPy
expression. It runs on some of the weights and its time is scaled to all of them.
Peak memory is that of our side with all imports, read before the baseline starts.
"""

from collections.abc import Callable

import numpy as np
from measure import peak, run, seconds

import qdtheory as qd

NUM_WEIGHTS = 200
# The baseline runs on every tenth weight.
EVERY, RUNS = 10, 3


def invert_nrr(slopes: np.ndarray) -> np.ndarray:
    """Probabilities q with -2 q = slope, or 0."""
    return np.maximum(-slopes / 2, 0)


def slope(q: np.ndarray) -> np.ndarray:
    return -2 * q - np.log(q) - 1


def curvature(q: np.ndarray) -> np.ndarray:
    return -2 - 1 / q


def invert_by_newton(slopes: np.ndarray) -> np.ndarray:
    """Probabilities q with g'(q) = slope, by Newton steps in log q from the uniform q.

    In log q this g' is concave and falls, so that from the second step on Newton's
    points fall to the root and need no bracket.
    """
    z = np.full_like(slopes, -np.log(slopes.size))
    for _ in range(50):
        q = np.exp(z)
        step = (slope(q) - slopes) / (curvature(q) * q)
        # The first step may pass q = 1, far beyond which exp overflows.
        z = np.minimum(z - step, 1.0)
        if np.abs(step).max() < 1e-12:
            break
    return np.exp(z)


def by_brentq(
    invert: Callable, slope: Callable, scores: np.ndarray, w: float
) -> tuple[float, float]:
    """(b, U) at one weight."""
    from scipy.optimize import brentq  # late: it is no part of our peak memory

    line = w * scores
    # The largest probability lies in [1/N, 1]: that brackets b.
    low, high = (slope(q) - line.min() for q in (1.0, 1 / scores.size))
    b = brentq(
        lambda b: invert(line + b).sum() - 1, low, high, xtol=1e-10 / scores.size
    )
    return b, float(invert(line + b) @ scores)


def compare(
    name: str,
    pair: qd.SeparablePair,
    num_texts: int,
    invert: Callable,
    slope: Callable,
    bar: float,
) -> None:
    p = np.random.default_rng(0).exponential(size=num_texts)
    p /= p.sum()
    first, frontier = seconds(qd.pareto_frontier, pair, p, NUM_WEIGHTS)
    memory = peak()

    scores = np.asarray(pair.text_quality(p))
    w, quality = np.asarray(frontier.w), np.asarray(frontier.quality)
    chosen = [i for i in range(EVERY // 2, NUM_WEIGHTS, EVERY) if -np.inf < w[i] < 0]

    # Interleaved, so that other load on the machine meets both.
    ours, theirs = [], []
    for _ in range(RUNS):
        ours += [seconds(qd.pareto_frontier, pair, p, NUM_WEIGHTS)[0] for _ in range(3)]
        time_taken, points = seconds(
            lambda: [by_brentq(invert, slope, scores, w[i]) for i in chosen]
        )
        theirs.append(time_taken * NUM_WEIGHTS / len(chosen))
    np.testing.assert_allclose([u for _, u in points], quality[chosen], rtol=1e-9)

    print(
        f"{name}, N = {num_texts:,}: ours {np.median(ours):.2f} s (least "
        f"{min(ours):.2f}; first call {first:.1f}), brentq {np.median(theirs):.0f} s "
        f"(least {min(theirs):.0f}; scaled from {len(chosen)} weights), ratio "
        f"{np.median(theirs) / np.median(ours):.0f} (of the least "
        f"{min(theirs) / min(ours):.0f}; bar {bar:g}); peak memory {memory:.0f} MB",
        flush=True,
    )


def closed() -> None:
    compare("CR-NRR", qd.CR_NRR, 1_000_000, invert_nrr, lambda q: -2 * q, bar=100)


def no_closed_inverse() -> None:
    for f in (qd.functions.CR, qd.functions.LL):
        pair = qd.SeparablePair(f, "-x**2 - x*log(x)")
        name = f"{f.__name__} and g = -x^2 - x log x"
        compare(name, pair, 100_000, invert_by_newton, slope, bar=10)


if __name__ == "__main__":
    run({"closed": closed, "open": no_closed_inverse})
